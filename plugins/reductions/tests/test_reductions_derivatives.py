"""Derivatives of reductions: at ties and zeros, what they cost, and beside jax."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import corejax as cj
from corejax import lax

CASES = {
    "sum": lambda x: lax.reduce_sum(x, (0, 2)),
    "sum of none": lambda x: lax.reduce_sum(x, ()),
    "max": lambda x: lax.reduce_max(x, (1,)),
    "min": lambda x: lax.reduce_min(x, (0, 1)),
    "product": lambda x: lax.reduce_prod(x, (2, 0)),
    "product of all": lambda x: lax.reduce_prod(x, (0, 1, 2)),
    "cumsum": lambda x: lax.cumsum(x, 1),
    "reversed cumsum": lambda x: lax.cumsum(x, 2, reverse=True),
}
SHAPE = (2, 3, 4)


@pytest.fixture
def rng():
    return np.random.default_rng(1)


@pytest.mark.parametrize("name", ["reduce_max", "reduce_min"])
def test_elements_that_tie_share_the_derivative_equally(name):
    x = np.array([[1.0, 3.0, 3.0, 3.0], [2.0, 2.0, 2.0, 2.0]]) * (1 if name == "reduce_max" else -1)
    got = cj.grad(lambda x: getattr(lax, name)(x, (1,)).sum())(x)
    np.testing.assert_allclose(got, [[0, 1 / 3, 1 / 3, 1 / 3], [0.25] * 4])


@pytest.mark.parametrize("zeros", [(), (1,), (1, 3), (0, 1, 2)])
@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 7, 8, 13])
def test_products_differentiate_at_zeros_to_second_order(rng, zeros, size):
    x = rng.standard_normal(size)
    x[[i for i in zeros if i < size]] = 0.0

    def product(x):
        return lax.reduce_prod(x, (0,))

    others = np.array([np.prod(np.delete(x, i)) for i in range(size)])
    np.testing.assert_allclose(cj.grad(product)(x), others, rtol=1e-12)
    pairs = np.array([[0.0 if i == j else np.prod(np.delete(x, [i, j])) for j in range(size)] for i in range(size)])
    for hessian in (cj.hessian(product), cj.jacrev(cj.jacrev(product)), cj.jacfwd(cj.jacfwd(product))):
        np.testing.assert_allclose(hessian(x), pairs, rtol=1e-12)


def test_the_third_derivative_of_a_product_holds_at_zeros():
    third = cj.jacfwd(cj.jacfwd(cj.jacfwd(lambda x: lax.reduce_prod(x, (0,)))))(np.zeros(3))
    wanted = np.zeros((3, 3, 3))
    for order in itertools.permutations(range(3)):
        wanted[order] = 1.0
    np.testing.assert_array_equal(third, wanted)


def test_the_derivative_of_a_product_has_logarithmically_many_equations():
    counts = [len(cj.make_jaxpr(cj.grad(lambda x: lax.reduce_prod(x, (0,))))(np.ones(n)).eqns) for n in (16, 1024)]
    assert counts[1] <= counts[0] + 6 * 8


def test_cumsum_transposes_to_the_reversed_cumsum():
    closed = cj.make_jaxpr(cj.grad(lambda x: (lax.cumsum(x) * np.arange(4.0)).sum()))(np.ones(4))
    reverses = [eqn.params["reverse"] for eqn in closed.eqns if eqn.primitive.name == "cumsum"]
    assert True in reverses
    np.testing.assert_array_equal(cj.grad(lambda x: (lax.cumsum(x) * np.arange(4.0)).sum())(np.ones(4)), [6, 6, 5, 3])


def test_the_gradient_of_a_sum_is_one_broadcast():
    closed = cj.make_jaxpr(cj.grad(lambda x: lax.reduce_sum(x, (0, 1))))(np.ones((2, 3)))
    names = [eqn.primitive.name for eqn in closed.eqns if eqn.primitive.name != "reduce_sum"]
    assert ["broadcast_in_dim"] == names


@pytest.mark.parametrize("name", ["argmax", "argmin"])
def test_positions_have_a_zero_derivative(name):
    def f(x):
        return x[getattr(lax, name)(x, 0, np.int32)] * 2.0

    np.testing.assert_array_equal(
        cj.grad(f)(np.array([1.0, 3.0, 0.0])), [0, 2, 0] if name == "argmax" else [0, 0, 2])


@pytest.mark.parametrize("case", CASES)
def test_derivatives_agree_with_jax(rng, case):
    jax = pytest.importorskip("jax")
    jax.config.update("jax_enable_x64", True)
    theirs = {
        "sum": lambda x: jax.lax.reduce_sum(x, (0, 2)), "sum of none": lambda x: x,
        "max": lambda x: jax.lax.reduce_max(x, (1,)), "min": lambda x: jax.lax.reduce_min(x, (0, 1)),
        "product": lambda x: jax.lax.reduce_prod(x, (2, 0)),
        "product of all": lambda x: jax.lax.reduce_prod(x, (0, 1, 2)),
        "cumsum": lambda x: jax.lax.cumsum(x, 1), "reversed cumsum": lambda x: jax.lax.cumsum(x, 2, reverse=True)}[case]
    for x in (rng.standard_normal(SHAPE), rng.integers(-1, 2, SHAPE).astype(float)):
        wanted = jax.grad(lambda x: (theirs(x) ** 2).sum() + theirs(x).sum())(x)
        got = cj.grad(lambda x: (CASES[case](x) ** 2).sum() + CASES[case](x).sum())(x)
        np.testing.assert_allclose(got, wanted, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("name", ["float16", "bfloat16"])
def test_more_ties_than_a_narrow_float_counts_share_a_derivative(name):
    dtype = cj.core.dtypes.canonical(name)
    x = np.zeros(70_000, dtype)
    for reduce in (lax.reduce_max, lax.reduce_min):
        got = np.asarray(cj.grad(lambda x: reduce(x, (0,)))(x)).astype(float)  # noqa: B023
        np.testing.assert_allclose(got, 1 / 70_000, rtol=5e-3)
