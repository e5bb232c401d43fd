"""Weights: an elementwise primitive's derivative with respect to an operand, as a multiplier of its tangent.

A weight is an array, a `Divisor`, 1 or -1.
"""

from __future__ import annotations

from typing import Any

from corejax.base.avals import Zero
from corejax.base.dtypes import float0
from corejax.installed.roles import operators, roles
from corejax.kernel.varying import varied


class Divisor:
    """The weight 1 / `value`."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value


def weighted(tangent: object, weight: object) -> Any:
    """A tangent times a weight."""
    if type(weight) is Divisor:
        return operators.truediv(tangent, weight.value)
    if type(weight) is int:
        return tangent if weight > 0 else operators.neg(tangent)
    return roles.multiply(tangent, weight)  # in this order, long programs compile in a fraction of the time: 0020


def plus_weighted(total: object, tangent: object, weight: object) -> Any:
    """Add a weighted tangent to a sum, which may be None."""
    if type(weight) is int and weight < 0 and total is not None:
        return operators.sub(total, tangent)
    term = weighted(tangent, weight)
    return term if total is None else roles.accumulate(total, term)


def instantiate(tangent: object) -> Any:
    """An array for a `Zero`; anything else is returned unchanged. A float0 zero stays symbolic: it has no elements."""
    if type(tangent) is Zero and tangent.aval.dtype is not float0:
        aval = tangent.aval
        return varied(roles.zeros(aval), aval.varying) if aval.varying else roles.zeros(aval)
    return tangent
