"""Jets beside jax.experimental.jet, for what that has rules for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import corejax as cj
import corejax.numpy as jnp
from corejax import lax, taylor

jax = pytest.importorskip("jax")
jet_of_jax = pytest.importorskip("jax.experimental.jet").jet

ORDER = 5
X = np.array([[0.3, 0.7, 1.2], [0.9, 0.45, 1.6]])


@pytest.fixture(autouse=True)
def x64() -> Any:
    with jax.enable_x64(True):
        yield


def same(ours: Callable[..., Any], theirs: Callable[..., Any], *xs: Any, order: int = ORDER, **options: Any) -> None:
    rng = np.random.default_rng(3)
    series = [[rng.standard_normal(np.shape(x)) for _ in range(order)] for x in xs]
    got, got_series = taylor.jet(ours, xs, series, **options)
    wanted, wanted_series = jet_of_jax(theirs, xs, series, **options)
    leaves, tree = cj.tree.flatten((got, got_series))
    others = jax.tree.leaves((wanted, wanted_series))
    assert [(x.shape, x.dtype) for x in leaves] == [(np.shape(x), np.asarray(x).dtype) for x in others]
    for x, y in zip(leaves, others, strict=True):
        np.testing.assert_allclose(np.asarray(x), np.asarray(y), rtol=1e-10, atol=1e-10 * np.abs(np.asarray(y)).max())


UNARY = ("abs ceil cos cosh erf erf_inv exp expm1 floor log log1p logistic neg round rsqrt sign sin sinh sqrt square "
         "stop_gradient tanh").split()


@pytest.mark.parametrize("name", UNARY)
def test_functions_of_one_array(name: str) -> None:
    x = X / 2 if name == "erf_inv" else X
    same(getattr(lax, name), getattr(jax.lax, name), x)


@pytest.mark.parametrize("name", ["add", "sub", "mul", "div", "pow", "max", "min", "atan2"])
def test_functions_of_two_arrays(name: str) -> None:
    same(getattr(lax, name), getattr(jax.lax, name), X, X[::-1] + 0.15)


@pytest.mark.parametrize("y", [-3, -1, 0, 1, 2, 3, 4, 7])
def test_integer_powers(y: int) -> None:
    same(lambda x: lax.integer_pow(x, y), lambda x: jax.lax.integer_pow(x, y), X)


FUNCTIONS: dict[str, Callable[[Any, Any], Callable[..., Any]]] = {
    "sum": lambda np_, lax_: lambda x: np_.sum(x, axis=0),
    "max": lambda np_, lax_: lambda x: np_.max(x, axis=1),
    "cumsum": lambda np_, lax_: lambda x: lax_.cumsum(x, axis=1),
    "cumprod": lambda np_, lax_: lambda x: lax_.cumprod(x, axis=1),
    "matmul": lambda np_, lax_: lambda x: np_.sin(x) @ x.T,
    "where": lambda np_, lax_: lambda x: np_.where(x > 0.8, np_.exp(x), x * x),
    "index": lambda np_, lax_: lambda x: x[1, ::2] * x[0, 0],
    "concatenate": lambda np_, lax_: lambda x: np_.concatenate([x, x * x], axis=1),
    "logsumexp": lambda np_, lax_: lambda x: np_.log(np_.sum(np_.exp(x), axis=-1)),
    "softmax": lambda np_, lax_: lambda x: np_.exp(x) / np_.sum(np_.exp(x), axis=-1, keepdims=True),
    "reshape": lambda np_, lax_: lambda x: np_.reshape(x * x, (3, 2)).T,
    "layers": lambda np_, lax_: lambda x: np_.tanh(np_.tanh(x @ np_.ones((3, 3))) @ np_.ones((3, 2)) + 0.1),
    "tree": lambda np_, lax_: lambda x: {"a": [x * x, np_.sin(x)], "b": x},
    "two": lambda np_, lax_: lambda x, y: np_.sin(x * y) / (x + y * y),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_of_arrays(name: str) -> None:
    make = FUNCTIONS[name]
    xs = [X, X[::-1] + 0.1] if name == "two" else [X]
    same(make(jnp, lax), make(jax.numpy, jax.lax), *xs)


def test_plain_coefficients() -> None:
    same(lambda x: lax.exp(x) * x, lambda x: jax.lax.exp(x) * x, X, factorial_scaled=False)


def test_scalars_and_order_zero() -> None:
    same(lambda x: lax.sin(x) * x, lambda x: jax.lax.sin(x) * x, np.float64(0.4))
    same(lax.sin, jax.lax.sin, X, order=0)


def test_programs_have_fewer_equations_than_those_of_jax() -> None:
    ours = len(cj.make_jaxpr(lambda x, *c: taylor.jet(lambda x: jnp.tanh(jnp.exp(jnp.sin(x))), (x,), (list(c),)))(
        X, *[X] * 4).eqns)
    theirs = len(jax.make_jaxpr(lambda x, *c: jet_of_jax(
        lambda x: jax.numpy.tanh(jax.numpy.exp(jax.numpy.sin(x))), (x,), (list(c),)))(X, *[X] * 4).eqns)
    assert ours < theirs
