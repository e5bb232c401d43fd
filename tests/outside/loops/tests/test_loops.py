"""Values, derivatives beside differences, nested transformations, mistakes, and the laws of the kit."""

import numpy as np
import pytest

import corejax as cj
from corejax import lax
from corejax.errors import CorejaxTypeError
from corejax.testing import pack_tests
from outside_loops import bounded_while, newton

test_rules = pack_tests("outside-loops")


def root(a):
    return newton(lambda x: x * x - a, 1.0)


def doubled(x):
    """The first of x, 2x, 4x, ... that is above 10, and how many steps that took."""
    return bounded_while(lambda s: s["x"] < 10.0, lambda s: {"x": 2.0 * s["x"] * scale(x), "n": s["n"] + 1},
                         {"x": x, "n": 0}, 30)


def scale(x):
    return lax.exp(0.01 * x)


def test_the_derivative_of_a_root_is_not_that_of_the_steps():
    a = np.array([2.0, 9.0])
    for number in (a[0], 2.0, np.float32(2.0)):
        np.testing.assert_allclose(root(number), np.sqrt(2.0), rtol=1e-7 if number is not a[0] else 1e-12)
        np.testing.assert_allclose(cj.grad(root)(number), np.sqrt(0.125), rtol=1e-6)
    for order, known in enumerate([a ** 0.5, a ** -0.5 / 2.0, -a ** -1.5 / 4.0, 3.0 * a ** -2.5 / 8.0]):
        f = root
        for _ in range(order):
            f = cj.grad(f)
        np.testing.assert_allclose(cj.jit(cj.vmap(f))(a) if order % 2 else cj.vmap(cj.jit(f))(a), known, rtol=1e-10)
    forward = cj.jvp(cj.vmap(root), (a,), (np.ones(2),))[1]
    np.testing.assert_allclose(forward, a ** -0.5 / 2.0, rtol=1e-10)


def test_a_root_stays_one_equation_when_it_is_mapped():
    applied = [eqn.primitive for eqn in cj.make_jaxpr(cj.vmap(root))(np.ones(3)).eqns]
    assert applied[-1] is newton.primitive and applied.count(newton.primitive) == 1


def test_a_bounded_loop_stops_has_a_gradient_and_maps_with_different_counts():
    x, h = np.array([0.7, 3.0, 11.0]), 1e-6
    found = cj.jit(cj.vmap(doubled))(x)
    assert found["n"].tolist() == [4, 2, 0]
    slopes = cj.jit(cj.vmap(cj.grad(lambda x: doubled(x)["x"])))(x)
    steps = [(doubled(v + h)["x"] - doubled(v - h)["x"]) / (2.0 * h) for v in x]
    np.testing.assert_allclose(slopes, steps, rtol=1e-6)
    assert bounded_while(lambda x: x > 0.0, lambda x: x + 1.0, 1.0, 5) == 6.0


@pytest.mark.parametrize("mistake, message", [
    (lambda: newton(3, 1.0), "newton: the function must be a function"),
    (lambda: newton(lambda x: (x, x), 1.0), "newton: the function returns a carry of a different"),
    (lambda: newton(lambda x: x, "1.0"), "newton: start is a str"),
    (lambda: bounded_while(lambda x: x, lambda x: x, 1.0, 3), "bounded_while: the condition must return one boolean"),
])
def test_mistakes_are_told(mistake, message):
    with pytest.raises(CorejaxTypeError, match=message):
        mistake()
