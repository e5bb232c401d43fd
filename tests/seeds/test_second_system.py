"""What the second, context-dispatched seed system shows: x (x + 3) under three interpreters."""

from __future__ import annotations

import numpy as np
import pytest

import corejax as cj
from corejax import lax
from corejax.core import eval_jaxpr


def foo(x):
    return lax.mul(x, lax.add(x, 3.0))


def derivative(fun, x):
    return cj.jvp(fun, (x,), (1.0,))[1]


def nth_derivative(n, fun, x):
    if n == 0:
        return fun(x)
    return derivative(lambda x: nth_derivative(n - 1, fun, x), x)


def test_evaluation():
    assert 10.0 == float(foo(2.0))


def test_the_tangent_agrees_with_a_finite_difference():
    step = 1e-6
    numeric = (float(foo(2.0 + step)) - float(foo(2.0 - step))) / (2 * step)
    np.testing.assert_allclose(numeric, 7.0, rtol=1e-8)
    assert (10.0, 7.0) == tuple(map(float, cj.jvp(foo, (2.0,), (1.0,))))


def test_the_same_by_hand_with_pairs():
    # (2 + e)(2 + e + 3) = 10 + 7 e + O(e^2)
    (x, x_dot), three = (2.0, 1.0), 3.0
    s, s_dot = x + three, x_dot
    assert (10.0, 7.0) == (x * s, x * s_dot + x_dot * s)


@pytest.mark.parametrize(("n", "expected"), [(0, 10.0), (1, 7.0), (2, 2.0), (3, 0.0), (4, 0.0)])
def test_nth_derivative(n, expected):
    assert expected == float(nth_derivative(n, foo, 2.0))


def test_perturbations_are_not_confused():
    def fun(x):
        return lax.mul(x, derivative(lambda y: x, 0.0))

    assert 0.0 == float(derivative(fun, 0.0))
    assert 0.0 == float(derivative(fun, 2.0))


def test_staging_gives_the_program():
    jaxpr = cj.make_jaxpr(foo)(2.0).jaxpr
    add, mul = jaxpr.eqns
    assert ("add", "mul") == (add.primitive.name, mul.primitive.name)
    assert add.invars[0] is jaxpr.invars[0] and 3.0 == float(add.invars[1].val)
    assert list(mul.invars) == [jaxpr.invars[0], add.outvars[0]]
    assert jaxpr.outvars[0] is mul.outvars[0]


def test_evaluating_the_program_makes_a_round_trip():
    jaxpr = cj.make_jaxpr(foo)(2.0).jaxpr
    assert 10.0 == float(eval_jaxpr(jaxpr, (), 2.0)[0])


def test_the_evaluated_program_can_be_differentiated_again():
    def again(x):
        return eval_jaxpr(cj.make_jaxpr(foo)(x).jaxpr, (), x)[0]

    assert (10.0, 7.0) == tuple(map(float, cj.jvp(again, (2.0,), (1.0,))))
