"""The Hurwitz zeta function."""

from __future__ import annotations

import math
from typing import Any

from corejax import lax
from corejax.plugin import define, not_differentiable, partials
from corejax_special._few_samples import FewSamples
from corejax_special._polynomials import constant, is_double, lowered, where_any

__all__ = ["zeta"]

def _hurwitz(s: Any, q: Any) -> Any:
    """The sum of (q + k)^-s for k = 0, 1, ..., with s > 1 and q > 0.

    Some terms are summed as they are, and the rest by the formula of Euler and Maclaurin. If that rest underflows, the
    series of the formula may have overflowed.
    """
    terms = direct_terms(s)
    total = _inverse_power(q, s)
    for k in range(1, terms):
        total = total + _inverse_power(q + float(k), s)
    a = q + float(terms)
    inverse = 1.0 / a
    scale = lax.pow(a, 1.0 - s)
    rest = scale * (1.0 / (s - 1.0) + inverse * (0.5 + inverse * euler_maclaurin(s, inverse)))
    return total + lax.select(scale == 0.0, scale, rest)


def direct_terms(s: Any) -> int:
    """How many terms are summed as they are."""
    return 8 if is_double(s) else 5


def euler_maclaurin(s: Any, inverse: Any) -> Any:
    """The series s (B_2 / 2! + (s + 1) (s + 2) / a^2 (B_4 / 4! + ...)), by 1 / a."""
    square = inverse * inverse
    first, *others = reversed(list(enumerate(constant("BERNOULLI", s))))
    total: Any = first[1]
    for j, c in others:
        total = c + total * ((s + (2.0 * j + 1.0)) * (s + (2.0 * j + 2.0)) * square)
    return s * total


def _inverse_power(x: Any, s: Any) -> Any:
    return lax.pow(x, -s)


def is_even(s: Any) -> Any:
    """Whether a number is even."""
    half = 0.5 * s
    return lax.floor(half) == half


def zeta_of(s: Any, q: Any) -> Any:
    """The formula for all numbers: at poles it is infinite if all terms are positive, else NaN.

    For negative q and whole s, the terms of positive and those of negative numbers are two such sums.
    """
    floor, whole = lax.floor(q), lax.floor(s) == s
    above = _hurwitz(s, lax.select(q < 0.0, q - floor, q))

    def mirrored() -> Any:
        sign = lax.select(is_even(s), lax.full_like(s, 1.0), lax.full_like(s, -1.0))
        return (above + sign * _hurwitz(s, lax.ceil(q) - q)) - sign * _hurwitz(s, 1.0 - q)

    found = where_any(lax.bitwise_and(q < 0.0, whole), mirrored, above)
    undefined = lax.bitwise_or(s < 1.0, lax.bitwise_and(q < 0.0, lax.bitwise_not(whole)))
    found = lax.select(undefined, lax.full_like(s, math.nan), found)
    at_pole = lax.select(lax.bitwise_and(is_even(s), s > 1.0), lax.full_like(s, math.inf), lax.full_like(s, math.nan))
    return lax.select(lax.bitwise_and(q <= 0.0, floor == q), at_pole, found)


@lowered
def _zeta(s: Any, q: Any) -> Any:
    return zeta_of(s, q)


class _Zeta(FewSamples):
    operands = ("x", "q")


zeta: Any = define(_Zeta(
    "zeta", None, arity=2, hlo=_zeta, dtypes="f",
    jvp=partials(not_differentiable("its derivative by the exponent has no formula of known functions"),
                 lambda q_dot, out, s, q: lax.mul(q_dot, lax.mul(lax.neg(s), zeta(lax.add(s, 1.0), q)))),
    results={
        (2.0, 1.0): math.pi ** 2 / 6.0, (4.0, 1.0): math.pi ** 4 / 90.0, (3.0, 0.5): 8.41439832211716,
        (2.0, -0.5): math.pi ** 2 / 2.0 + 4.0},
    doc="The Hurwitz zeta function: the sum of (q + k)^-x for k = 0, 1, 2, and so on; NaN where that has no limit.",
    example="zeta(2.0, 1.0) -> Array(1.64493407, dtype=float64, weak_type=True)"))
