"""Whatever arguments are drawn from intervals, the results are in the bounds."""

import pickle

import numpy as np
import pytest

import corejax as cj
from corejax import lax
from corejax.interval import Interval, bounds

WEIGHTS = np.random.default_rng(0).normal(size=(3, 3))

FUNCTIONS = {
    "polynomials": lambda x: (x * x - 3.0 * x ** 3 + 2.0) / (x ** 2 + 0.5),
    "elementary functions": lambda x: lax.exp(lax.sin(3.0 * x)) * lax.cos(x) - lax.log(abs(x) + 0.1) + lax.sqrt(x * x),
    "powers": lambda x: abs(x) ** 1.5 + (1.5 + lax.tanh(x)) ** x,
    "a layer": lambda x: lax.tanh(WEIGHTS @ x).sum() - cj.jit(lax.logistic)(x).max(),
    "choices": lambda x: lax.select(x > 0.1, x, -2.0 * x)[::-1],
    "a conditional": lambda x: lax.cond(x.sum() > 0.0, lambda: x, lambda: x * x),
    "a loop": lambda x: lax.scan(lambda c, y: (c * y + 1.0, c - y), 0.5, x),
    "a counted loop": lambda x: lax.fori_loop(0, 4, lambda i, c: c * x + i, x),
    "a gradient": cj.grad(lambda x: (lax.exp(-x * x) * x / (2.0 + x)).sum()),
}


def leaves(tree):
    return [np.asarray(x) for x in cj.tree.leaves(tree)]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_results_are_within_their_bounds(name):
    rng, function = np.random.default_rng(1), cj.jit(FUNCTIONS[name])
    middle, radius = np.array([-0.6, 0.1, 0.7]), 0.3
    box = Interval(middle - radius, middle + radius)
    found = bounds(FUNCTIONS[name])(box)
    compiled = cj.jit(bounds(FUNCTIONS[name]))(box)
    for ours, theirs in zip(leaves(found), leaves(compiled), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-10)
    for _ in range(40):
        outs = leaves(function(middle + radius * rng.uniform(-1.0, 1.0, 3)))
        for out, lower, upper in zip(outs, leaves(found)[::2], leaves(found)[1::2], strict=True):
            assert (lower <= out).all() and (out <= upper).all()


def test_a_point_has_narrow_bounds_and_exact_values_stay_exact():
    point = Interval(np.array([0.3]), np.array([0.3]))
    found = bounds(FUNCTIONS["elementary functions"])(point)
    assert (0.0 < found.upper - found.lower).all() and (found.upper - found.lower < 1e-13).all()
    exact, doubled = bounds(lambda x, y: (x, 2.0 * y))(0.3, point)
    assert exact == 0.3 and isinstance(doubled, Interval)


def test_bounds_are_mapped_and_differentiated():
    def upper(radius):
        return bounds(lambda x: x * lax.sin(x))(Interval(1.0 - radius, 1.0 + radius)).upper

    radii, h = np.array([0.1, 0.3]), 1e-6
    slopes = cj.jit(cj.vmap(cj.grad(upper)))(radii)
    np.testing.assert_allclose(slopes, (cj.vmap(upper)(radii + h) - cj.vmap(upper)(radii - h)) / (2.0 * h), rtol=1e-6)


def test_it_is_a_namespace_of_corejax():
    assert cj.interval.Interval is Interval and "interval" in dir(cj)
    assert pickle.loads(pickle.dumps(Interval(0.0, 1.0))) == Interval(0.0, 1.0)


def test_others_add_rules_for_their_primitives():
    with pytest.raises(NotImplementedError, match="erf .outside-special 1.0.0. has no rule for intervals"):
        bounds(lax.erf)(Interval(0.0, 1.0))
    cj.interval.rule(lax.erf, lambda x: Interval(lax.erf(x.lower), lax.erf(x.upper)))
    assert bounds(lax.erf)(Interval(0.0, 1.0)) == Interval(lax.erf(0.0), lax.erf(1.0))
