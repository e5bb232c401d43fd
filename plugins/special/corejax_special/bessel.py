"""Modified Bessel functions of the first kind, scaled by exp(-|x|) so that they don't overflow."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from corejax import lax
from corejax.plugin import define, factors, families
from corejax_special._polynomials import constant, horner, lowered, polynomial

__all__ = ["bessel_i0e", "bessel_i1e"]

@lowered
def _i0e(x: Any) -> Any:
    y = lax.abs(x)
    return _in_pieces("BESSEL_I0E", y, lambda near: near, lambda far: far)


@lowered
def _i1e(x: Any) -> Any:
    return _in_pieces("BESSEL_I1E", lax.abs(x), lambda near: x * near, lambda far: lax.select(x < 0.0, -far, far))


def _in_pieces(name: str, y: Any, near: Callable[[Any], Any], far: Callable[[Any], Any]) -> Any:
    """From polynomials in y up to 1.25, 3 and 8, each over so short a range that its terms don't cancel, and beyond."""
    close = lax.select(y < 3.0, polynomial(f"{name}_MIDDLE", y), polynomial(f"{name}_NEXT", y))
    close = lax.select(y < 1.25, polynomial(f"{name}_NEAR", y), close)
    return lax.select(y < 8.0, near(close), far(_over_root(f"{name}_FAR", y)))


def _over_root(name: str, y: Any) -> Any:
    """A polynomial in 1 / y, divided by the root of y. What rounding the root lost is made up for in the polynomial."""
    root, inverse = lax.sqrt(y), 1.0 / y
    lost = (y + root * -root) * (0.5 * inverse)  # the compiler would take root * root for y
    origin, (*others, constant_term) = constant(name, y)
    u = inverse - origin
    found = (constant_term + (horner(others, u) * u - constant_term * lost)) / root
    return lax.select(y == math.inf, lax.full_like(y, 0.0), found)


def _i0e_slope(out: Any, x: Any) -> Any:
    return lax.sub(bessel_i1e(x), lax.mul(lax.sign(x), out))


def _i1e_slope(out: Any, x: Any) -> Any:
    """i0e(x) - sign(x) i1e(x) - i1e(x) / x, where the quotient is 1/2 at 0."""
    zero = lax.eq(x, 0.0)
    quotient = lax.select_n(zero, lax.div(out, lax.select_n(zero, x, lax.full_like(x, 1.0))), lax.full_like(x, 0.5))
    return lax.sub(lax.sub(bessel_i0e(x), lax.mul(lax.sign(x), out)), quotient)


bessel_i0e: Any = define(families.unary(
    "bessel_i0e", None, hlo=_i0e, dtypes="f", jvp=factors(_i0e_slope), domain=(-12.0, 12.0), singular=(0.0,),
    results={1.0: 0.46575960759364043, -10.0: 0.1278333371634286},
    doc="exp(-|x|) I_0(x), with I_0 the modified Bessel function of the first kind of order 0.",
    example="bessel_i0e(1.0) -> Array(0.46575961, dtype=float64, weak_type=True)"))

bessel_i1e: Any = define(families.unary(
    "bessel_i1e", None, hlo=_i1e, dtypes="f", jvp=factors(_i1e_slope), domain=(-12.0, 12.0), singular=(0.0,),
    results={1.0: 0.2079104153497085, -10.0: -0.12126268138445554},
    doc="exp(-|x|) I_1(x), with I_1 the modified Bessel function of the first kind of order 1.",
    example="bessel_i1e(1.0) -> Array(0.20791042, dtype=float64, weak_type=True)"))
