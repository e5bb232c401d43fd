"""Bringing operands together, as NumPy does: the kernel's promotion of dtypes, and broadcasting of shapes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from corejax.core import aval_of, dtypes
from corejax.plugin import families, refused
from corejax_lax_basic import shapes
from corejax_lax_basic._axes import broadcast_shape, last_axes
from corejax_lax_basic.conversion import convert_element_type

_SCALARS = dtypes.PYTHON_SCALARS
_weak_scalar = families.weak_scalar
_bool = dtypes.bool_
_convert = convert_element_type.primitive.bind  # type: ignore[attr-defined]
_AT_LEAST = {"i": "iufc", "f": "fc"}  # the kinds that a dtype of at least some kind may have


def promoted(operands: Sequence[Any], at_least: str = "b") -> list[Any]:
    """The operands in their common dtype, of at least this kind, broadcast against each other except for scalars."""
    return broadcast_together(of_one_dtype(operands, at_least))


def of_one_dtype(operands: Sequence[Any], at_least: str = "b") -> list[Any]:
    """The operands in their common dtype, of at least this kind."""
    avals = [aval_of(x) for x in operands]
    first = avals[0].dtype
    if all([aval.dtype is first for aval in avals]) and (at_least == "b" or dtypes.kind(first) in _AT_LEAST[at_least]):
        return [_weak_scalar(x, first) if type(x) in _SCALARS else x for x in operands]
    dtype, weak = dtypes.promote(*[(aval.dtype, aval.weak_type) for aval in avals])
    if at_least == "f":
        dtype = dtypes.inexact(dtype, weak)
    elif at_least == "i" and dtype == _bool:
        dtype = dtypes.default_dtype("i")
    out = []
    for x, aval in zip(operands, avals, strict=True):
        if type(x) in _SCALARS:
            x = _weak_scalar(x, dtype)
        elif aval.dtype != dtype:
            x = _convert(x, new_dtype=dtype, weak_type=weak)
        out.append(x)
    return out


def broadcast_together(operands: list[Any]) -> list[Any]:
    """The operands in their common shape; scalars stay scalars, since elementwise primitives take them."""
    sizes = [aval_of(x).shape for x in operands]
    common: tuple[int, ...] = ()
    for size in sizes:
        if size and size != common:
            found = broadcast_shape((common, size)) if common else size
            if found is None:
                raise refused("broadcasting", "the shapes don't fit together",
                              got=" and ".join([str(aval_of(operand)) for operand in operands]),
                              wanted="along each axis, counted from the last, equal sizes or 1",
                              todo="reshape one of the operands, or index it with None to add an axis")
            common = found
    return [x if not size or size == common else shapes.broadcast_in_dim.primitive.bind(
        x, shape=common, broadcast_dimensions=last_axes(len(size), len(common)))
        for x, size in zip(operands, sizes, strict=True)]
