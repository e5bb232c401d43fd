"""Operands of the functions: arrays, in a floating-point dtype."""

from __future__ import annotations

from typing import Any

from corejax import lax
from corejax.core import Array, aval_of, dtypes
from corejax.errors import CorejaxTypeError, kind_of
from corejax.plugin import refused
from corejax_numpy import asarray

__all__ = ["floating", "operand"]


def operand(name: str, x: Any) -> Any:
    """An argument that should be an array of numbers."""
    if isinstance(x, Array):
        return x
    try:
        return asarray(x)
    except CorejaxTypeError as error:
        raise refused(name, "this isn't an array of numbers", got=kind_of(x), wanted="an array or a number",
                      todo="convert it with np.asarray") from error


def floating(name: str, x: Any, complexes: bool = False) -> Any:
    """The same in a floating-point dtype, to which integers are converted."""
    x = operand(name, x)
    aval = aval_of(x)
    if dtypes.is_float(aval.dtype) or (complexes and dtypes.is_complex(aval.dtype)):
        return x
    if dtypes.kind(aval.dtype) in "biu":
        return lax.convert_element_type(x, dtypes.default_dtype("f"))
    raise refused(name, "this takes real numbers" if not complexes else "this takes numbers", got=aval,
                  wanted="floating-point numbers", todo="take the parts of complex numbers one by one: x.real, x.imag")
