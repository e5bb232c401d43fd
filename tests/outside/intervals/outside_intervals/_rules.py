"""What arithmetic and elementary functions do with intervals."""

import math

import numpy as np

from corejax import lax
from outside_intervals._evaluation import rule
from outside_intervals._values import Interval, as_interval, hull, outward

__all__ = []


def _rising(function, least=None):
    """The rule of a function that never falls; below `least` it isn't defined."""
    def bound(x):
        lower = x.lower if least is None else lax.max(x.lower, least)
        return outward(function(lower), function(x.upper), 4)
    return bound


for _function in (lax.exp, lax.expm1, lax.tanh, lax.logistic, lax.sinh, lax.asin, lax.atan):
    rule(_function, _rising(_function))
for _function, _least in ((lax.log, 0.0), (lax.sqrt, 0.0), (lax.log1p, -1.0)):
    rule(_function, _rising(_function, _least))
for _function in (lax.max, lax.min):
    rule(_function, lambda x, y, function=_function: Interval(*[
        function(a, b) for a, b in zip(_ends(x), _ends(y), strict=True)]))


def _ends(x):
    x = as_interval(x)
    return x.lower, x.upper


@rule(lax.neg)
def _neg(x):
    return Interval(-x.upper, -x.lower)


@rule(lax.add)
def _add(x, y):
    x, y = as_interval(x), as_interval(y)
    return outward(x.lower + y.lower, x.upper + y.upper)


@rule(lax.sub)
def _sub(x, y):
    return _add(x, _neg(as_interval(y)))


@rule(lax.mul)
def _mul(x, y):
    products = [lax.mul(a, b) for a in _ends(x) for b in _ends(y)]
    products = [lax.select(p != p, 0.0, p) for p in products]  # zero times infinity
    found = hull([Interval(p, p) for p in products])
    return outward(found.lower, found.upper)


@rule(lax.div)
def _div(x, y):
    y = as_interval(y)
    touches = (y.lower <= 0.0) & (y.upper >= 0.0)
    return _mul(x, outward(lax.select(touches, -np.inf, 1.0 / y.upper), lax.select(touches, np.inf, 1.0 / y.lower)))


@rule(lax.abs)
def _abs(x):
    crosses = (x.lower < 0.0) & (x.upper > 0.0)
    ends = abs(x.lower), abs(x.upper)
    return Interval(lax.select(crosses, 0.0, lax.min(*ends)), lax.max(*ends))


@rule(lax.integer_pow)
def _integer_pow(x, *, y):
    if y < 0:
        return _div(lax.full_like(x.lower, 1.0), _integer_pow(x, y=-y))
    x = x if y % 2 else _abs(x)
    return outward(x.lower ** y, x.upper ** y, 2 * y)


@rule(lax.square)
def _square(x):
    return _integer_pow(x, y=2)


@rule(lax.pow)
def _pow(x, y):
    x = as_interval(x)
    found = _rising(lax.exp)(_mul(y, _rising(lax.log, 0.0)(x)))
    undefined = x.lower < 0.0
    return Interval(lax.select(undefined, -np.inf, found.lower), lax.select(undefined, np.inf, found.upper))


@rule(lax.cos)
def _cos(x):
    def passes(point):
        turns = [(end - point) / (2.0 * math.pi) for end in (x.lower, x.upper)]
        return lax.floor(turns[1]) >= lax.ceil(turns[0])

    ends = lax.cos(x.lower), lax.cos(x.upper)
    return outward(lax.select(passes(math.pi), -1.0, lax.min(*ends)), lax.select(passes(0.0), 1.0, lax.max(*ends)), 4)


@rule(lax.sin)
def _sin(x):
    return _cos(_sub(x, 0.5 * math.pi))


@rule(lax.gt)
def _gt(x, y):
    x, y = as_interval(x), as_interval(y)
    return Interval(lax.gt(x.lower, y.upper), lax.gt(x.upper, y.lower))


@rule(lax.lt)
def _lt(x, y):
    return _gt(y, x)


@rule(lax.ge)
def _ge(x, y):
    x, y = as_interval(x), as_interval(y)
    return Interval(lax.ge(x.lower, y.upper), lax.ge(x.upper, y.lower))


@rule(lax.le)
def _le(x, y):
    return _ge(y, x)


@rule(lax.dot_general)
def _dot_general(x, y, **params):
    x, y = as_interval(x), as_interval(y)

    def dot(a, b):
        return lax.dot_general.primitive.bind(a, b, **params)

    middle, radii = dot(x.middle, y.middle), dot(x.radius, abs(y.middle) + y.radius) + dot(abs(x.middle), y.radius)
    size = dot(abs(x.middle) + x.radius, abs(y.middle) + y.radius)
    slack = 4 * x.lower.size * np.finfo(middle.dtype).eps * size
    return Interval(middle - radii - slack, middle + radii + slack)
