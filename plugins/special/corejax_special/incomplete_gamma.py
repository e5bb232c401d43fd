"""The incomplete gamma functions P and Q, the derivative of P by a, and that of gamma variates.

The three formulas have a factor in common, D = x^a exp(-x) / Gamma(a + 1):

- a series for x below a, P = D (1 + x / (a + 1) (1 + x / (a + 2) (1 + ...))): DLMF 8.11.4;
- a continued fraction for x above a, Q = a D / (x + 1 - a + (a - 1) / (x + 3 - a + 2 (a - 2) / (x + 5 - a + ...))):
  DLMF 8.9.2, even part;
- for large a and x of the same size, Temme's uniform expansion, Q = erfc(y) / 2 + D B, with y^2 = a (mu - log(1 + mu)),
  mu = x / a - 1 and a series B by eta = y sqrt(2 / a): DLMF 8.12.3, 8.12.4.

The smaller one of P and Q is computed, the other is its difference from 1. For small x and a, where that loses the
digits of Q, another series has them: DLMF 8.7.1.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from corejax import lax
from corejax.plugin import Sample, define, hookimpl, not_differentiable, partials
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
from corejax_special.gamma import digamma, lgamma

__all__ = ["igamma", "igamma_grad_a", "igammac", "random_gamma_grad"]

_SMALL = 1.125  # from here on, the continued fraction takes few enough steps even if a is smaller


class _Regions(NamedTuple):
    """Which formula holds where, and how many steps the first two take."""

    series: Any
    fraction: Any
    uniform: Any
    terms: Any
    levels: Any


def _regions(a: Any, x: Any) -> _Regions:
    double = is_double(x)
    valid = everything(a > 0.0, x > 0.0, a < math.inf, x < math.inf)
    uniform = everything(valid, a > (20.0 if double else 8.0), x > 0.3 * a, x * 0.425 < a)
    rest = lax.bitwise_and(valid, lax.bitwise_not(uniform))
    below = anything(x < a, x < _SMALL)
    series, fraction = lax.bitwise_and(rest, below), lax.bitwise_and(rest, lax.bitwise_not(below))
    root = lax.sqrt(lax.select(x < 20.0, x, lax.full_like(x, 20.0)))
    terms = 15.0 + 9.0 * root if double else 8.0 + 5.0 * root
    levels = 15.0 + 90.0 / x if double else 6.0 + 20.0 / x
    return _Regions(series, fraction, uniform, most(series, terms), most(fraction, levels))


def _factor(a: Any, x: Any) -> Any:
    """D = x^a exp(-x) / Gamma(a + 1)."""
    rest, factor = lgamma_of_next(a)
    small = lax.exp(a * lax.log(x) - x - rest) / factor
    ratio = x / a
    large = lax.exp(-a * excess((x - a) / a, ratio) - stirling_rest(a)) / (ROOT_TWO_PI * lax.sqrt(a))
    return lax.select(a < LARGE, small, large)


def _series(a: Any, x: Any, terms: Any) -> Any:
    """P / D."""
    (total,) = descending(terms, lambda k, s: (1.0 + s * (x / (a + k)),), lax.full_like(x, 1.0))
    return total


def _fraction(a: Any, x: Any, levels: Any) -> Any:
    """Q / (a D)."""
    start = x + (1.0 - a)
    (tail,) = descending(levels, lambda k, t: (k * (a - k) / (start + 2.0 * k + t),), lax.full_like(x, 0.0))
    return 1.0 / (start + tail)


class _Temme(NamedTuple):
    """The parts of the uniform expansion: eta; B and its derivative by a; and G with Gamma(a + 1) = G (Stirling's)."""

    eta: Any
    total: Any
    total_slope: Any
    gamma: Any
    gamma_slope: Any


def _temme(a: Any, x: Any) -> _Temme:
    """B solves B' = a (eta B + G - f), with f = eta / mu: so its coefficients follow from those of f, the last first.

    G is what makes the equation hold for the power 0. Derivatives by a are those for a fixed eta.
    """
    mu = (x - a) / a
    root = lax.sqrt(2.0 * excess(mu, x / a))
    eta = lax.select(mu < 0.0, -root, root)
    inverse, (*coefficients, last, end) = 1.0 / a, constant("TEMME", a)
    zero = lax.full_like(a, 0.0)
    before, now = (zero + end, zero), (zero + last, zero)
    total, total_slope = end * eta + last, zero
    for n in range(len(coefficients) - 1, 0, -1):
        scale = (n + 1.0) * inverse
        new = coefficients[n] + scale * before[0], scale * (before[1] - inverse * before[0])
        before, now = now, new
        total, total_slope = total * eta + now[0], total_slope * eta + now[1]
    return _Temme(eta, total, total_slope, 1.0 + inverse * before[0], inverse * (before[1] - inverse * before[0]))


def _complement_of_small(a: Any, x: Any) -> Any:
    """Q for x and a up to about 1: 1 - x^a / Gamma(a + 1), and the rest of the series; both are of order a."""
    exponent = a * lax.log(x) - lgamma_of_next(a)[0]
    total: Any = lax.full_like(x, 0.0)
    for n in range(20 if is_double(x) else 11, 0, -1):
        total = (total + 1.0 / (a + float(n))) * (x * (-1.0 / n))
    return -lax.expm1(exponent) - lax.exp(exponent) * (a * total)


def _values(a: Any, x: Any, *, upper: bool) -> Any:
    """P, or Q if `upper`."""
    regions, factor = _regions(a, x), _factor(a, x)
    lower_part = factor * _series(a, x, regions.terms)
    upper_part = factor * (a * _fraction(a, x, regions.levels))

    def uniform() -> Any:
        temme = _temme(a, x)
        y = temme.eta * lax.sqrt(0.5 * a)
        return 0.5 * erfc(y) + factor * temme.total if upper else 0.5 * erfc(-y) - factor * temme.total

    found = lax.select(regions.series, 1.0 - lower_part, upper_part) if upper else lax.select(
        regions.series, lower_part, 1.0 - upper_part)
    if upper:
        small = everything(regions.series, x < _SMALL, a < 1.0)
        found = where_any(small, lambda: _complement_of_small(a, x), found)
    found = where_any(regions.uniform, uniform, found)
    none, all_ = (1.0, 0.0) if upper else (0.0, 1.0)
    return settled(found, (anything(x == 0.0, a == math.inf), none), (anything(x == math.inf, a == 0.0), all_),
                   (anything(a < 0.0, x < 0.0, a != a, x != x, everything(a == 0.0, x == 0.0),
                             everything(a == math.inf, x == math.inf)), math.nan))


@lowered
def _igamma(a: Any, x: Any) -> Any:
    return _values(a, x, upper=False)


@lowered
def _igammac(a: Any, x: Any) -> Any:
    return _values(a, x, upper=True)


# The derivative by a

def _steepness(a: Any, x: Any) -> Any:
    """-(dP/da) / D. It is also a d(log x)/da where P is kept the same, as dP/dx is a D / x."""
    regions = _regions(a, x)
    logarithm = lax.log(x) - digamma(a + 1.0)  # of D, the derivative by a

    def series(k: Any, s: Any, slope: Any) -> tuple[Any, Any]:
        inverse = 1.0 / (a + k)
        quotient = x * inverse
        return 1.0 + s * quotient, (slope - s * inverse) * quotient

    one, zero = lax.full_like(x, 1.0), lax.full_like(x, 0.0)
    total, slope = descending(regions.terms, series, one, zero)
    below = -(total * logarithm + slope)

    start = x + (1.0 - a)

    def fraction(k: Any, tail: Any, slope: Any) -> tuple[Any, Any]:
        inverse = 1.0 / (start + 2.0 * k + tail)
        tail = k * (a - k) * inverse
        return tail, (k - tail * (slope - 1.0)) * inverse

    tail, slope = descending(regions.levels, fraction, zero, zero)
    found = 1.0 / (start + tail)
    above = found * (a * (logarithm - found * (slope - 1.0)) + 1.0)

    def uniform() -> Any:
        eta, total, total_slope, gamma, gamma_slope = _temme(a, x)
        return 1.0 + total_slope - total * (gamma_slope / gamma) - 0.5 * (
            gamma * eta + total * (eta * eta + 1.0 / a))

    return where_any(regions.uniform, uniform, lax.select(regions.series, below, above))


@lowered
def _igamma_grad_a(a: Any, x: Any) -> Any:
    found = lax.select(x == math.inf, lax.full_like(x, 0.0), -_factor(a, x) * _steepness(a, x))
    return _where_defined(found, a, x)


@lowered
def _random_gamma_grad(a: Any, x: Any) -> Any:
    return _where_defined(_steepness(a, x) * (x / a), a, x)


def _where_defined(found: Any, a: Any, x: Any) -> Any:
    return settled(found, (x == 0.0, 0.0), (anything(a <= 0.0, x < 0.0, a == math.inf, a != a, x != x), math.nan))


# The primitives

def density(a: Any, x: Any) -> Any:
    """dP/dx = x^(a - 1) exp(-x) / Gamma(a): DLMF 8.8.13."""
    return lax.exp(lax.sub(lax.sub(lax.mul(lax.sub(a, 1.0), lax.log(x)), x), lgamma(a)))


def _density_slope(a: Any, x: Any) -> Any:
    """The derivative of log(dP/dx) by a."""
    return lax.sub(lax.log(x), digamma(a))


_NO_SECOND = "the second derivative of igamma by a has no formula of known functions"


class _OfAAndX(FewSamples):
    operands = ("a", "x")


class _Incomplete(_OfAAndX):
    """Its second derivatives are those that there are: all but the one by a."""

    @hookimpl
    def samples(self, rng: np.random.Generator) -> Iterator[Sample]:
        for sample in super().samples(rng):
            if sample.error is None and sample.args[0].size:
                sample.exempt = dict.fromkeys(("second derivatives agree with differences", "hessians are symmetric",
                                               "orderings to depth two agree"), _NO_SECOND)
            yield sample


igamma_grad_a: Any = define(_OfAAndX(
    "igamma_grad_a", None, arity=2, hlo=_igamma_grad_a, dtypes="f",
    jvp=partials(not_differentiable(_NO_SECOND),
                 lambda x_dot, out, a, x: lax.mul(x_dot, lax.mul(density(a, x), _density_slope(a, x)))),
    results={
        (1.0, 1.0): -0.4317297106348987, (2.5, 0.5): -0.06885559236096406, (30.0, 28.0): -0.070492692760120132},
    doc="The derivative of igamma(a, x) by a; NaN unless a > 0 and x >= 0.",
    example="igamma_grad_a(1.0, 1.0) -> Array(-0.43172971, dtype=float64, weak_type=True)"))

igamma: Any = define(_Incomplete(
    "igamma", None, arity=2, hlo=_igamma, dtypes="f",
    jvp=partials(lambda a_dot, out, a, x: lax.mul(a_dot, igamma_grad_a(a, x)),
                 lambda x_dot, out, a, x: lax.mul(x_dot, density(a, x))),
    results={(1.0, 1.0): -math.expm1(-1.0), (0.5, 4.0): math.erf(2.0), (2.0, 0.5): 1.0 - 1.5 * math.exp(-0.5)},
    doc="The regularized incomplete gamma function P: the integral of t^(a - 1) exp(-t) from 0 to x, by Gamma(a).",
    example="igamma(1.0, 1.0) -> Array(0.63212056, dtype=float64, weak_type=True)"))

igammac: Any = define(_Incomplete(
    "igammac", None, arity=2, hlo=_igammac, dtypes="f",
    jvp=partials(lambda a_dot, out, a, x: lax.mul(lax.neg(a_dot), igamma_grad_a(a, x)),
                 lambda x_dot, out, a, x: lax.mul(lax.neg(x_dot), density(a, x))),
    results={(1.0, 1.0): math.exp(-1.0), (0.5, 4.0): math.erfc(2.0), (2.0, 0.5): 1.5 * math.exp(-0.5)},
    doc="1 - igamma(a, x), which has all its digits where it is small, too.",
    example="igammac(1.0, 1.0) -> Array(0.36787944, dtype=float64, weak_type=True)"))

random_gamma_grad: Any = define(_OfAAndX(
    "random_gamma_grad", None, arity=2, hlo=_random_gamma_grad, dtypes="f",
    jvp=partials(not_differentiable(_NO_SECOND),
                 lambda x_dot, out, a, x: lax.mul(lax.neg(x_dot), lax.add(_density_slope(a, x), lax.mul(
                     out, lax.sub(lax.div(lax.sub(a, 1.0), x), 1.0))))),
    results={
        (1.0, 1.0): 1.1735630272247269, (2.5, 0.5): 0.42684249818525007, (30.0, 28.0): 0.971282368474091},
    doc="The derivative by a of a number x drawn from the gamma distribution of shape a, with igamma(a, x) kept.",
    example="random_gamma_grad(1.0, 1.0) -> Array(1.17356303, dtype=float64, weak_type=True)"))
