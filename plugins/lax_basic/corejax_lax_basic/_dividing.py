"""Division with the quotient rounded down, and its remainder: what `//` and `%` mean, as in Python and NumPy.

Of zeros, too, the signs are NumPy's: a quotient has that of x / y, a remainder that of y.
"""

# mypy: no-warn-return-any

from __future__ import annotations

from typing import Any

from corejax.core import aval_of, dtypes
from corejax.plugin import families, refused
from corejax_lax_basic import arithmetic, comparison, logic, rounding, selection

__all__ = ["floor_divide", "modulo"]


def floor_divide(x: Any, y: Any) -> Any:
    """The quotient rounded down."""
    dtype = aval_of(x).dtype
    if dtypes.is_complex(dtype):
        raise refused("floor division", "complex numbers can't be rounded down", got=str(aval_of(x)),
                      wanted="real numbers", todo="use /")
    if not dtypes.is_integer(dtype):
        return _whole_quotient(x, y)
    quotient = arithmetic.div(x, y)
    if dtypes.kind(dtype) == "u":
        return quotient
    opposite = comparison.ne(arithmetic.sign(x), arithmetic.sign(y))
    inexact = comparison.ne(arithmetic.rem(x, y), 0)
    return selection.select_n(logic.bitwise_and(opposite, inexact), quotient, arithmetic.sub(quotient, 1))


def modulo(x: Any, y: Any) -> Any:
    """The remainder with the sign of the divisor; 0 for integers modulo zero."""
    dtype = aval_of(x).dtype
    if dtypes.is_complex(dtype):
        raise refused("modulo", "complex numbers have no remainder", got=str(aval_of(x)), wanted="real numbers",
                      todo="take the remainder of the real and imaginary parts")
    if not dtypes.is_integer(dtype):
        return _remainder_of_floats(x, y)
    remainder = arithmetic.rem(x, selection.select_n(comparison.eq(y, 0), y, families.weak_scalar(1, dtype)))
    if dtypes.kind(dtype) == "u":
        return remainder
    opposite = comparison.ne(comparison.lt(remainder, 0), comparison.lt(y, 0))
    below = logic.bitwise_and(opposite, comparison.ne(remainder, 0))
    return selection.select_n(below, remainder, arithmetic.add(remainder, y))


def _whole_quotient(x: Any, y: Any) -> Any:
    remainder = arithmetic.rem(x, y)
    # a zero has the sign of x; at y = 0 the remainder is NaN, but the quotient should be infinite like x / y
    whole = selection.select_n(comparison.eq(remainder, x), arithmetic.sub(x, remainder), arithmetic.mul(x, 0))
    quotient = arithmetic.div(selection.select_n(comparison.eq(y, 0), whole, x), y)
    below = comparison.lt(arithmetic.mul(remainder, arithmetic.sign(y)), 0)
    return rounding.round(selection.select_n(below, quotient, arithmetic.sub(quotient, 1)))


def _remainder_of_floats(x: Any, y: Any) -> Any:
    side = arithmetic.sign(y)
    remainder = arithmetic.mul(arithmetic.rem(x, y), side)  # as if y were positive
    none = families.weak_scalar(0, aval_of(y).dtype)
    step = selection.select_n(comparison.lt(remainder, 0), none, arithmetic.mul(y, side))
    return arithmetic.mul(arithmetic.add(remainder, step), side)  # the sum of -0 and 0 is 0
