"""Arithmetic of coefficients: each is an array or a tracer, or a `Zero`, which costs nothing."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from corejax import lax
from corejax.core import ShapedArray, aval_of, instantiate
from corejax.plugin import Zero, families, roles

__all__: list[str] = []


def plus(x: Any, y: Any) -> Any:
    """The sum of two coefficients, whose shapes are equal or () for one that spreads."""
    if type(x) is Zero:
        return y
    if type(y) is Zero:
        return x
    return roles.accumulate(x, y) if x.aval.shape == y.aval.shape else lax.add(x, y)


def minus(x: Any, y: Any) -> Any:
    """The difference of two coefficients."""
    if type(y) is Zero:
        return x
    return lax.neg(y) if type(x) is Zero else lax.sub(x, y)


def total(terms: Iterable[Any], aval: ShapedArray) -> Any:
    """The sum of coefficients; a `Zero` of this type if there are none."""
    found: Any = Zero(aval)
    for term in terms:
        found = plus(found, term)
    return found


def times(x: Any, factor: int) -> Any:
    """A coefficient times a positive integer."""
    if type(x) is Zero or factor == 1:
        return x
    return roles.multiply(x, families.weak_scalar(factor, x.aval.dtype))


def divided(x: Any, divisor: int) -> Any:
    """A coefficient over a positive integer."""
    if type(x) is Zero or divisor == 1:
        return x
    if divisor & (divisor - 1):
        return lax.div(x, families.weak_scalar(divisor, x.aval.dtype))
    return roles.multiply(x, families.weak_scalar(1 / divisor, x.aval.dtype))  # exact, and cheaper


def settled(x: Any, aval: ShapedArray) -> Any:
    """A coefficient of a value whose tangents are of type `aval`: of this type, if it only spreads or is weak."""
    found = x.aval
    if found is aval:
        return x
    if type(x) is Zero:
        return Zero(aval)
    if found.shape != aval.shape and not found.shape:
        x = roles.broadcast(x, aval.shape, ())
    return roles.convert(x, aval.dtype) if aval_of(x).weak_type else x


def as_array(x: Any) -> Any:
    """An array for a `Zero`."""
    return instantiate(x)
