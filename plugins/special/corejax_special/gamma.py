"""The logarithm of the gamma function, and its derivatives."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from corejax import lax
from corejax.core import aval_of
from corejax.plugin import define, factors, families, not_differentiable, partials
from corejax_special._few_samples import FewSamples
from corejax_special._polynomials import constant, is_double, lowered, polynomial, where_any
from corejax_special.zeta import direct_terms, euler_maclaurin, is_even, zeta, zeta_of

__all__ = ["digamma", "lgamma", "polygamma"]

_HALF_LOG_TWO_PI = 0.5 * math.log(2.0 * math.pi)


@lowered
def _lgamma(x: Any) -> Any:
    """Of y = |x|, by a polynomial up to 5/2 and Stirling's formula beyond; at negative x, by reflection.

    Below 1, y Gamma(y) = Gamma(1 + y) is used. What remains of all cases are two logarithms, so that they are computed
    together: one of y, and one of what is left over, y or sin(pi y) / pi.
    """
    y = lax.abs(x)
    small, large, negative = y <= 1.0, y > 2.5, x < 0.0
    t = lax.select(small, y, y - 1.0)
    core = t * (t - 1.0) * polynomial("LGAMMA_NEAR", t)
    logarithm = lax.log(y)
    stirling = (y - 0.5) * (logarithm - 1.0) + (_HALF_LOG_TWO_PI - 0.5 + polynomial("LGAMMA_FAR", 1.0 / y) / y)
    core = lax.select(large, stirling, core)
    sine = lax.abs(_sine(y))
    reflected = -lax.log(lax.select(small, sine, y * sine)) - core
    found = lax.select(negative, reflected, lax.select(small, core - logarithm, core))
    return lax.select(y == math.inf, y, found)


def _sine(y: Any) -> Any:
    """sin(pi y) / pi but for its sign, with all digits near its zeros."""
    rest = y - lax.round(y)
    return rest * polynomial("SINE", rest * rest)


def digamma_of(x: Any) -> Any:
    """Of y = |x|, by polynomials times the distance from the zero, or beside the logarithm.

    Below 1 the polynomial is that of 1 + y. At negative x, digamma(x) = digamma(y) + 1 / y + pi cot(pi y).
    """
    y = lax.abs(x)
    small, negative = y < 1.0, x < 0.0
    high, low = constant("DIGAMMA_ROOT", x)
    shifted = lax.select(small, y + 1.0, y)
    distance = lax.select(small, y - (high - 1.0), y - high) - low
    core = lax.select(y < 2.0, distance * polynomial("DIGAMMA_NEAR", shifted),
                      lax.log(y) - polynomial("DIGAMMA_FAR", 1.0 / y) / y)
    rest = y - lax.round(y)
    square = rest * rest
    reflected = core + ((lax.select(small, 0.0 * y, 1.0 / y) - rest * polynomial("COTANGENT", square)) + 1.0 / rest)
    found = lax.select(negative, reflected, lax.select(small, core - 1.0 / y, core))
    return lax.select(lax.bitwise_and(x <= 0.0, rest == 0.0), lax.full_like(x, math.nan), found)


@lowered
def _polygamma(n: Any, x: Any) -> Any:
    """(-1)^(n + 1) n! zeta(n + 1, x); NaN if n isn't 0, 1, 2, and so on."""
    last, smallest = (170, 1e-290) if is_double(n) else (34, 1e-30)
    s = n + 1.0
    sums = zeta_of(s, x)
    finite_and_positive = lax.bitwise_and(x > 0.0, x < math.inf)
    extreme = lax.bitwise_and(lax.bitwise_or(n > float(last), sums < smallest), finite_and_positive)
    found = where_any(extreme, lambda: _of_large_order(s, x), _factorial(n, last) * sums)
    found = lax.select(is_even(n), -found, found)
    found = where_any(n == 0.0, lambda: digamma_of(x), found)
    natural = lax.bitwise_and(lax.bitwise_and(n >= 0.0, n < math.inf), lax.floor(n) == n)
    return lax.select(natural, found, lax.full_like(x, math.nan))


def _factorial(n: Any, last: int) -> Any:
    """n! for whole numbers; infinite after the last that the type can hold."""
    table = np.array([*map(math.factorial, range(last + 1)), math.inf], aval_of(n).dtype)
    places = lax.convert_element_type(lax.clamp(0.0, n, float(last + 1)), np.int32)
    numbers = lax.GatherDimensionNumbers(offset_dims=(), collapsed_slice_dims=(0,), start_index_map=(0,))
    return lax.gather(table, lax.expand_dims(places, (places.ndim,)), numbers, slice_sizes=(1,))


def _of_large_order(s: Any, x: Any) -> Any:
    """Gamma(s) zeta(s, x), by Stirling's formula, with what would overflow or underflow by itself in one power."""
    total = lax.full_like(x, 1.0)
    terms = direct_terms(s)
    for k in range(1, terms):
        total = total + lax.pow(x / (x + float(k)), s)
    a = x + float(terms)
    inverse, scale = 1.0 / a, lax.pow(x / a, s)
    rest = scale * (a / (s - 1.0) + 0.5 + inverse * euler_maclaurin(s, inverse))
    total = total + lax.select(scale == 0.0, scale, rest)
    stirling = lax.sqrt((2.0 * math.pi) / s) * lax.exp(polynomial("LGAMMA_FAR", 1.0 / s) / s)
    return lax.pow(s / math.e / x, s) * (stirling * total)


lgamma: Any = define(families.unary(
    "lgamma", None, hlo=_lgamma, dtypes="f", jvp=factors(lambda out, x: digamma(x)), domain=(0.2, 6.0),
    results={1.0: 0.0, 2.0: 0.0, 0.5: 0.5723649429247001, 10.0: 12.801827480081469, -0.5: 1.2655121234846454},
    doc="The logarithm of the absolute value of the gamma function. It is infinite at 0, -1, -2, and so on.",
    example="lgamma(0.5) -> Array(0.57236494, dtype=float64, weak_type=True)"))

digamma: Any = define(families.unary(
    "digamma", None, hlo=lowered(digamma_of), dtypes="f", domain=(0.2, 6.0),
    jvp=factors(lambda out, x: zeta(2.0, x)),  # polygamma(1, x), in half the time
    results={1.0: -0.5772156649015329, 0.5: -1.9635100260214235, 10.0: 2.251752589066721, -0.5: 0.03648997397857652},
    doc="The derivative of lgamma. It is NaN at 0, -1, -2, and so on.",
    example="digamma(1.0) -> Array(-0.57721566, dtype=float64, weak_type=True)"))


class _Polygamma(FewSamples):
    operands = ("m", "x")
    _domains = (None, (0.5, 4.0))


polygamma: Any = define(_Polygamma(
    "polygamma", None, arity=2, hlo=_polygamma, dtypes="f",
    jvp=partials(not_differentiable("the order is a whole number"),
                 lambda x_dot, out, n, x: lax.mul(x_dot, polygamma(lax.add(n, 1.0), x))),
    results={
        (0.0, 1.0): -0.5772156649015329, (1.0, 1.0): math.pi ** 2 / 6.0, (2.0, 1.0): -2.4041138063191885,
        (1.0, -0.5): math.pi ** 2 / 2.0 + 4.0, (3.0, 0.5): math.pi ** 4},
    doc="The derivative of digamma of an order m, a float with a whole value; NaN for other m.",
    example="polygamma(1.0, 1.0) -> Array(1.64493407, dtype=float64, weak_type=True)"))
