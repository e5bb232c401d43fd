"""What the incomplete gamma and beta functions are made of: logarithms and gamma functions, and loops."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import reduce
from typing import Any

from corejax import lax
from corejax.core import aval_of
from corejax_special._polynomials import polynomial

ROOT_TWO_PI = math.sqrt(2.0 * math.pi)

#: From here on, Stirling's formula has a polynomial: `LGAMMA_FAR`.
LARGE = 2.5


def excess(mu: Any, ratio: Any) -> Any:
    """mu - log(1 + mu), which is positive, with all digits. `ratio` is 1 + mu, as exact as it is known.

    Near zero, with r = mu / (2 + mu), log(1 + mu) is 2 atanh(r), and mu - 2 r is mu r.
    """
    r = mu / (2.0 + mu)
    square = r * r
    near = mu * r - 2.0 * r * square * polynomial("ATANH_REST", square)
    return lax.select(lax.abs(r) < 1.0 / 3.0, near, mu - lax.log(ratio))


def lgamma_of_next(a: Any) -> tuple[Any, Any]:
    """For a from 0 to 5/2, (lgamma(1 + t), c) with Gamma(1 + a) = c Gamma(1 + t); the first is small if a is."""
    small = a <= 1.5
    t = lax.select(small, a, a - 1.0)
    return t * (t - 1.0) * polynomial("LGAMMA_NEAR", t), lax.select(small, lax.full_like(a, 1.0), a)


def stirling_rest(a: Any) -> Any:
    """What lgamma has beyond Stirling's formula (a - 1/2) log a - a + log(2 pi) / 2, for a from 5/2."""
    inverse = 1.0 / a
    return inverse * polynomial("LGAMMA_FAR", inverse)


def most(active: Any, estimate: Any) -> Any:
    """The largest of some estimates of how many steps it takes, rounded up; 0 if none is active."""
    counts = lax.select(active, lax.ceil(estimate), lax.full_like(estimate, 0.0))
    return lax.max(lax.reduce_max(counts, tuple(range(aval_of(counts).ndim))), 0.0)


def descending(steps: Any, step: Callable[..., tuple[Any, ...]], *start: Any) -> tuple[Any, ...]:
    """(values) after `step(k, *values)` for k = steps, ..., 2, 1.

    Series by Horner's rule and continued fractions from their end: no rounding error of a step is enlarged by the next
    ones, nothing overflows, and more steps than an element needs do no harm.
    """
    _, *found = lax.while_loop(lambda carry: carry[0] > 0.0,
                               lambda carry: (carry[0] - 1.0, *step(*carry)), (steps, *start))
    return tuple(found)


def anything(*masks: Any) -> Any:
    """Where any of these holds."""
    return reduce(lax.bitwise_or, masks)


def everything(*masks: Any) -> Any:
    """Where all of these hold."""
    return reduce(lax.bitwise_and, masks)


def settled(found: Any, *cases: tuple[Any, float]) -> Any:
    """`found`, or where masks hold, their values; the last one that holds counts."""
    for mask, value in cases:
        found = lax.select(mask, lax.full_like(found, value), found)
    return found
