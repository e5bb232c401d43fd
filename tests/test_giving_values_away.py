"""A differentiated value isn't given away to Python or NumPy without a word: its derivative would be lost."""

from __future__ import annotations

import array
import copy
import math
import operator
import random
import statistics

import numpy as np
import pytest

import corejax as cj
from corejax import lax
from corejax.errors import ConcretizationError, CorejaxError, LostDerivativeError

X = np.array([0.5, 1.5, 2.5])


def assigned(x):
    z = np.zeros(3)
    z[:] = x
    return z.sum()


#: What takes a value away, and what the error calls it.
GIVES_AWAY = {
    "np.asarray": (lambda x: np.asarray(x).sum(), "np.asarray(x)"),
    "np.array": (lambda x: np.array(x).sum(), "np.array(x)"),
    "np.array of scalars": (lambda x: np.array([x[0], x[1]]).sum(), "np.array([x[0], x[1]])"),
    "np.array of arrays": (lambda x: np.array([x, x]).sum(), "np.array([x, x])"),
    "np.float64": (lambda x: np.float64(x[0]), "np.float64(x[0])"),
    "np.full": (lambda x: np.full(3, x[0]).sum(), "np.full(3, x[0])"),
    "np.random": (lambda x: np.random.default_rng(0).normal(x).sum(), "normal(x)"),
    "float": (lambda x: float(x[0]), "float(x[0])"),
    "complex": (lambda x: complex(x[0]).real, "complex(x[0])"),
    "math.sin": (lambda x: math.sin(x[0]), "math.sin(x[0])"),
    "math.fsum": (lambda x: math.fsum(x), "math.fsum(x)"),
    "math.hypot": (lambda x: math.hypot(x[0], x[1]), "math.hypot(x[0], x[1])"),
    "item": (lambda x: x[0].item(), "x.item()"),
    "item at an index": (lambda x: x.item(1), "x.item()"),
    "tolist": (lambda x: sum(x.tolist()), "x.tolist()"),
    "device_get": (lambda x: cj.device_get(x).sum(), "cj.device_get(x)"),
    "%f": (lambda x: float("%f" % x[0]), '"%f" % x[0]'),  # noqa: UP031
    "statistics": (lambda x: statistics.fmean(x), "fsum"),
    "array.array": (lambda x: array.array("d", [x[0]])[0], "array.array("),
    "assigning to an ndarray": (assigned, "z[:] = x"),
}


@pytest.mark.parametrize("case", GIVES_AWAY)
def test_what_would_lose_a_derivative_names_itself_and_what_to_do(case):
    function, name = GIVES_AWAY[case]
    for transformed in (cj.grad(function), lambda x: cj.jvp(function, (x,), (x,)), lambda x: cj.linearize(function, x),
                        cj.grad(lambda x: cj.grad(function)(x).sum())):
        with pytest.raises(LostDerivativeError, match=r"(?s)would lose the derivative.*lax.*stop_gradient") as caught:
            transformed(X)
        assert name in caught.value.message
        assert isinstance(caught.value, ConcretizationError)
        assert __file__ in caught.value.where or "statistics" in caught.value.where


def test_numpy_hides_the_error_of_an_element_behind_one_of_its_own():
    def first(x):
        z = np.zeros(3)
        z[0] = x[0]
        return z.sum()

    with pytest.raises(ValueError) as caught:
        cj.grad(first)(X)
    assert isinstance(caught.value.__cause__, LostDerivativeError)
    assert "z[0] = x[0]" in caught.value.__cause__.message


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.complex128, cj.bfloat16])
def test_no_element_of_an_inexact_ndarray_is_set_to_a_differentiated_value(dtype):
    def first(x):
        z = np.zeros(3, dtype)
        z[0] = x[0]
        return x.sum()

    with pytest.raises((LostDerivativeError, TypeError, ValueError)):
        cj.grad(first)(X)


@pytest.mark.parametrize("give", [memoryview, np.from_dlpack, cj.from_dlpack, bytes])
def test_memory_is_not_given_away_either(give):
    with pytest.raises((CorejaxError, TypeError)):
        cj.grad(lambda x: give(x).sum())(X)


@pytest.mark.parametrize("seen, function", [
    (True, lambda x: bool(x)), (True, lambda x: bool(x > 1.0)), (1, lambda x: int(x)), (1, math.trunc),
    (1, math.floor), (2, math.ceil), ("1.50", lambda x: f"{x:.2f}"), ("1.5", lambda x: f"{x}"), ("1.5", str),
    ("JVPTracer<f64[]: 1.5>", repr),
    ("1", lambda x: "%d" % x), ("1.5", lambda x: "%s" % x),  # noqa: UP031
    (20, lambda x: [10, 20, 30][lax.convert_element_type(x, np.int64)]),
    (1, lambda x: operator.index(lax.convert_element_type(x, np.int32))),
    (1, lambda x: lax.convert_element_type(x, np.int32).item()),
    (np.int64(1), lambda x: np.asarray(lax.convert_element_type(x, np.int64))),
    (np.sin(1.5), lambda x: np.sin(lax.stop_gradient(x))), (math.sin(1.5), lambda x: math.sin(lax.stop_gradient(x))),
    (1.5, lambda x: lax.stop_gradient(x).tolist()), (True, lambda x: 1.5 in [x]),
    (1.5, lambda x: float(round(x) - 0.5)),
])
def test_decisions_and_what_has_no_derivative_see_the_value(seen, function):
    found = []

    def loss(x):
        found.append(function(x))
        return x * x

    assert 3.0 == cj.grad(loss)(1.5)
    assert 2.0 == cj.grad(cj.grad(loss))(1.5)
    assert 3.0 == cj.jvp(loss, (1.5,), (1.0,))[1]
    assert 3.0 == cj.linearize(loss, 1.5)[1](1.0)
    if seen != "JVPTracer<f64[]: 1.5>":
        assert [seen] * len(found) == found


def test_python_control_flow_goes_by_the_value():
    def clipped_steps(x):
        steps = 0
        while x < 10.0:
            x, steps = x * 2.0, steps + 1
        return max(x, 0.0) + [0.0, 1.0, 2.0, 3.0, 4.0][steps] + sorted([x, 1.0])[0]

    assert 16.0 == cj.grad(clipped_steps)(0.7)


def test_values_without_their_derivatives_are_plain_arrays():
    kinds = []

    def loss(x):
        kinds.append(type(lax.stop_gradient(x)))
        return (lax.stop_gradient(x) * x).sum()

    assert X.tolist() == cj.grad(loss)(X).tolist()
    cj.jvp(loss, (X,), (X,))
    cj.hessian(loss)(X)
    assert {cj.Array} == {*kinds[:2]}


def test_random_numbers_and_copies_keep_the_derivative():
    assert 1.0 == cj.grad(lambda x: random.gauss(x, 1.0))(2.0)
    assert 2.0 == cj.grad(lambda x: copy.deepcopy(x) + copy.copy(x))(2.0)


@pytest.mark.parametrize("transformation", [cj.jit, lambda f: cj.vmap(f), lambda f: cj.grad(cj.jit(f)),
                                            lambda f: cj.vmap(cj.grad(f))])
def test_where_the_value_is_not_known_that_is_what_is_said(transformation):
    x = np.stack([X, X])
    with pytest.raises(ConcretizationError, match="only its type is known"):
        transformation(lambda x: np.asarray(x).sum())(x)


def test_a_tracer_shows_itself_where_its_value_is_not_known_or_no_longer():
    seen = []
    cj.jit(cj.grad(lambda x: seen.append(repr(x)) or x))(1.0)
    assert ["JVPTracer<~f64[]>"] == seen
    cj.grad(lambda x: seen.append(x) or x * x)(1.0)
    assert "JVPTracer<~f64[]>" == repr(seen[1]) == str(seen[1])


def test_the_line_is_the_users_that_called_numpy():
    with pytest.raises(LostDerivativeError) as caught:
        cj.grad(lambda x: np.full((3,), x).sum())(1.0)
    assert "test_giving_values_away.py" in caught.value.where
    closed = cj.make_jaxpr(lambda x: np.mean(x))(X)
    assert all([eqn.source[0].co_filename == __file__ for eqn in closed.eqns])
