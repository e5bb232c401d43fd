"""The incomplete beta function.

With p = x, q = 1 - x, where p is below a / (a + b) or so (else a and b, and p and q, are exchanged), it is
F / (a (1 + d_1 p / (1 + d_2 p / (1 + ...)))): DLMF 8.17.22, with F = p^a q^b / B(a, b).

- F for large a and b is sqrt(a b / (2 pi (a + b))) exp(-a h(u) - b h(v)) and a quotient of what Stirling's formula
  lacks, with h(u) = u - log(1 + u), 1 + u = p (a + b) / a and 1 + v = q (a + b) / b: both terms have one sign.
- F for a small one of them has its gamma function, and the quotient of the other two as one function.
- Where both are so large that the fraction takes too many steps, and p is near a / (a + b), the normal distribution and
  the next term are enough: DLMF 8.18.9.
- If exchanging leaves a small difference from 1, since b is small, a series has it: DLMF 8.17.7.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from corejax import lax
from corejax.core import aval_of
from corejax.plugin import define, not_differentiable, partials
from corejax_special._few_samples import FewSamples
from corejax_special._gamma_parts import (
    LARGE,
    ROOT_TWO_PI,
    anything,
    descending,
    everything,
    excess,
    lgamma_of_next,
    most,
    settled,
    stirling_rest,
)
from corejax_special._polynomials import constant, is_double, lowered, where_any
from corejax_special.error import erfc
from corejax_special.gamma import lgamma

__all__ = ["betainc"]

_SHIFT = 3  # added to what is below 5/2, Stirling's formula holds


def _growth(s: Any, large: Any, p: Any) -> Any:
    """log(p^s Gamma(L + s) / Gamma(L)), for L from 5/2 and smaller s: its error is small beside s."""
    above, below = 1.0 / (large + s), 1.0 / large
    origin, coefficients = constant("LGAMMA_FAR", s)
    value: Any = coefficients[0]
    quotient: Any = 0.0  # the divided difference of the polynomial, by the same rule
    for c in coefficients[1:]:
        quotient = quotient * (below - origin) + value
        value = value * (above - origin) + c
    rest = -s * above * below * (value + below * quotient)
    return s * lax.log(p * (large + s)) + ((large - 0.5) * lax.log1p(s * below) - s) + rest


def _distance(a: Any, b: Any, p: Any, q: Any) -> tuple[Any, Any]:
    """p from its mean, times a + b; and a h(u) + b h(v), which is how far the logarithm of F is from its largest."""
    delta, total = p * b - q * a, a + b
    return delta, a * excess(delta / a, p * (total / a)) + b * excess(-delta / b, q * (total / b))


def _factor(a: Any, b: Any, p: Any, q: Any) -> Any:
    """F = p^a q^b / B(a, b)."""
    _, lost = _distance(a, b, p, q)
    total = a + b
    stirling = stirling_rest(total) - stirling_rest(a) - stirling_rest(b)
    both_large = lax.sqrt(a * (b / total)) * lax.exp(stirling - lost) / ROOT_TWO_PI

    first = a < b
    s, p, other, q = (lax.select(first, *pair) for pair in ((a, b), (p, q), (b, a), (q, p)))
    shifted = other < LARGE
    large = lax.select(shifted, other + float(_SHIFT), other)
    scale = s
    for k in range(_SHIFT):
        scale = scale * lax.select(shifted, (other + float(k)) / (other + (s + float(k))), lax.full_like(s, 1.0))
    rest, factor = lgamma_of_next(s)
    power = other * lax.select(q < 0.5, lax.log(q), lax.log1p(-p))
    small = lax.exp(_growth(s, large, p) - rest + power) * (scale / factor)
    return lax.select(s < LARGE, small, both_large)


def _fraction(a: Any, b: Any, p: Any, q: Any, levels: Any) -> Any:
    """I / F: the even part of the continued fraction, in which all is positive up to the level b."""
    gap = (a * q - b * p) + 1.0

    def level(k: Any, tail: Any) -> tuple[Any]:
        inverse = 1.0 / (a + (2.0 * k - 1.0))
        middle = k * (b - k) * p * inverse
        end = (a + k) * (gap + k * (1.0 + q)) / (a + (2.0 * k + 1.0))
        return (middle * ((a + (k - 1.0)) * ((a + b) + (k - 1.0)) * p * inverse) / (k + middle + end + tail),)

    (tail,) = descending(levels, level, lax.full_like(p, 0.0))
    return 1.0 / (a * gap / (a + 1.0) + tail)


def _complement_of_small(a: Any, b: Any, p: Any) -> Any:
    """1 - I for small a, as for the incomplete gamma functions."""
    shifted = b < LARGE
    exponent = _growth(a, lax.select(shifted, b + float(_SHIFT), b), p) - lgamma_of_next(a)[0]
    for k in range(_SHIFT):
        exponent = exponent - lax.select(shifted, lax.log1p(a / (b + float(k))), lax.full_like(a, 0.0))
    terms = 52.0 if is_double(p) else 24.0
    (total,) = descending(np.asarray(terms, aval_of(p).dtype), lambda n, t: (
        (t + 1.0 / (a + n)) * (p * ((n - b) / n)),), lax.full_like(p, 0.0))
    return -lax.expm1(exponent) - lax.exp(exponent) * (a * total)


def _normal(a: Any, b: Any, p: Any, q: Any) -> Any:
    """erfc(-z / sqrt(2)) / 2 - exp(-z^2 / 2) / sqrt(2 pi) (1 / w - 1 / z): w in standard deviations, z near w."""
    delta, lost = _distance(a, b, p, q)
    total = a + b
    sigma = lax.sqrt(a * (b / total))
    w, root = delta / sigma, lax.sqrt(2.0 * lost)
    z = lax.select(delta < 0.0, -root, root)
    limit = (1.0 / 3.0) * (a - b) / total / sigma
    near = lax.abs(w) < (1e-4 if is_double(p) else 0.03)
    skewness = lax.select(near, limit, 1.0 / w - 1.0 / z)
    return 0.5 * erfc(-z * math.sqrt(0.5)) - lax.exp(-lost) / ROOT_TWO_PI * skewness


@lowered
def _betainc(a: Any, b: Any, x: Any) -> Any:
    double, y = is_double(x), 1.0 - x
    valid = everything(a > 0.0, b > 0.0, a < math.inf, b < math.inf, x > 0.0, x < 1.0)
    swapped = x * (a + b + 2.0) > a + 1.0
    a_, b_, p, q = (lax.select(swapped, *pair) for pair in ((b, a), (a, b), (y, x), (x, y)))
    smaller = lax.min(a, b)
    normal = lax.bitwise_and(valid, smaller > (1e8 if double else 1e5))
    root = lax.cbrt(smaller)
    slow = lax.select(b_ < 2.0, a_ / (a_ + 60.0), lax.full_like(a, 0.0))
    levels = 15.0 + 9.0 * root + 75.0 * slow if double else 8.0 + 6.5 * root + 25.0 * slow
    others = lax.bitwise_and(valid, lax.bitwise_not(normal))
    part = _factor(a_, b_, p, q) * _fraction(a_, b_, p, q, most(others, levels))
    found = lax.select(swapped, 1.0 - part, part)
    found = where_any(everything(others, swapped, b < 1.0), lambda: _complement_of_small(a_, b_, p), found)
    found = where_any(normal, lambda: _normal(a, b, x, y), found)
    found = lax.select(found > 1.0, 1.0, found)  # by the last rounding
    left, right = anything(a == 0.0, b == math.inf), anything(b == 0.0, a == math.inf)  # where all the weight is
    return settled(
        found, (anything(x == 0.0, right), 0.0), (anything(x == 1.0, everything(left, x > 0.0)), 1.0),
        (anything(everything(left, right), a < 0.0, b < 0.0, x < 0.0, x > 1.0, a != a, b != b, x != x), math.nan))


# The primitive

def _density(a: Any, b: Any, x: Any) -> Any:
    """The derivative by x: x^(a - 1) (1 - x)^(b - 1) / B(a, b), DLMF 8.17.1."""
    beta = lax.sub(lax.add(lgamma(a), lgamma(b)), lgamma(lax.add(a, b)))
    powers = lax.add(lax.mul(lax.sub(a, 1.0), lax.log(x)), lax.mul(lax.sub(b, 1.0), lax.log1p(lax.neg(x))))
    return lax.exp(lax.sub(powers, beta))


_NO_FORMULA = not_differentiable("its derivative by this exponent has no formula of known functions")


class _BetaInc(FewSamples):
    operands = ("a", "b", "x")
    _domains = ((0.8, 4.0), (0.8, 4.0), (0.1, 0.9))


betainc: Any = define(_BetaInc(
    "regularized_incomplete_beta", None, arity=3, hlo=_betainc, dtypes="f",
    jvp=partials(_NO_FORMULA, _NO_FORMULA, lambda x_dot, out, a, b, x: lax.mul(x_dot, _density(a, b, x))),
    results={(1.0, 1.0, 0.25): 0.25, (2.0, 3.0, 0.5): 0.6875, (0.5, 0.5, 0.25): 1.0 / 3.0, (5.0, 1.0, 0.5): 0.03125},
    doc="The regularized incomplete beta function: the integral of t^(a - 1) (1 - t)^(b - 1) from 0 to x, by B(a, b).",
    example="betainc(2.0, 3.0, 0.5) -> Array(0.6875, dtype=float64, weak_type=True)"), name="betainc")
