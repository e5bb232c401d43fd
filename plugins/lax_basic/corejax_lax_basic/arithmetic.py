"""Arithmetic: sums, products, quotients, remainders, powers with a fixed integer exponent, extremes, signs.

Integers wrap around. Dividing an integer by zero gives -1 (all bits set), its remainder is the dividend.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from corejax import dtypes
from corejax.core import ShapedArray, Zero, aval_of
from corejax.errors import CorejaxTypeError
from corejax.plugin import Sample, define, factors, families, hookimpl, partials
from corejax.source import here

from corejax_lax_basic.comparison import eq
from corejax_lax_basic.complex_parts import conj, real, to_complex
from corejax_lax_basic.conversion import convert_element_type
from corejax_lax_basic.selection import select_n

__all__ = ["abs", "add", "div", "integer_pow", "max", "min", "mul", "neg", "rem", "sign", "square", "sub"]

_python_abs, _python_max, _python_min = abs, max, min


# Sums

class _Sum(families.Elementwise):
    """add or sub: linear in both operands, jointly; a tangent of zero costs nothing."""

    symbolic_zeros = True

    def __init__(self, name: str, impl: Any, hlo: str, doc: str, second: Callable[[Any], Any]) -> None:
        super().__init__(name, impl, arity=2, hlo=hlo, dtypes="iufc", jvp=hookimpl(self._jvp), doc=doc, linear=(0, 1),
                         transpose=(lambda ct, x, y: ct, lambda ct, x, y: second(ct)))
        self._second = second

    def _jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        out, (x_dot, y_dot) = self._bind(*primals), tangents
        if type(y_dot) is Zero:
            return out, x_dot if type(x_dot) is Zero else families.spread(x_dot, out)
        if type(x_dot) is Zero:
            return out, families.spread(self._second(y_dot), out)
        return out, self._bind(x_dot, y_dot)


add = define(_Sum("add", np.add, "add", "The sum x + y.", lambda y_dot: y_dot))
sub = define(_Sum("sub", np.subtract, "subtract", "The difference x - y.", lambda y_dot: neg(y_dot)))

neg = define(families.unary(
    "neg", np.negative, hlo="negate", dtypes="iufc", jvp=None, linear=(0,), transpose=(lambda ct, x: neg(ct),),
    doc="The negation -x."))


# Products and quotients

mul = define(families.binary(
    "mul", np.multiply, hlo="multiply", dtypes="iufc",
    jvp=factors(lambda out, x, y: y, lambda out, x, y: x),
    transpose=(lambda ct, x, y: mul(ct, y), lambda ct, x, y: mul(x, ct)),
    doc="The product x * y."))

square = define(families.unary(
    "square", np.square, hlo=lambda ctx, args: ctx.op("stablehlo.multiply", [args[0], args[0]]), dtypes="iufc",
    jvp=factors(lambda out, x: mul(x, 2)), doc="The square x * x."))


def _divide(x: Any, y: Any) -> Any:
    if x.dtype.kind not in "iu":
        return np.true_divide(x, y)
    quotient = (x - np.fmod(x, y)) // y  # NumPy's own division rounds down
    return np.where(y == 0, ~x.dtype.type(0), quotient)


def _remainder(x: Any, y: Any) -> Any:
    return np.fmod(x, y) if x.dtype.kind not in "iu" else np.where(y == 0, x, np.fmod(x, y))


def _truncated_quotient(x: Any, y: Any) -> Any:
    from_zero = div(x, y)
    return mul(sign(from_zero), _rounding().floor(abs(from_zero)))


div = define(families.binary(
    "div", _divide, hlo="divide", dtypes="iufc",
    jvp=factors(lambda out, x, y: div(1, y), lambda out, x, y: neg(div(out, y))),
    transpose=(lambda ct, x, y: div(ct, y), None), domain=(0.5, 3.0),
    doc="The quotient x / y; of integers, rounded towards zero."))
