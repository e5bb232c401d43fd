"""Conditionals beside those of jax: the same values and derivatives, from no more equations."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import corejax as cj
from corejax import lax
from corejax.ir import count_eqns, typecheck

jax = pytest.importorskip("jax")

X = np.array([0.3, -0.7, 1.1])
W = np.arange(9.0).reshape(3, 3) / 7
PREDS, XS = np.array([True, False, True]), np.stack([X, X * 2, X - 1])


@pytest.fixture(autouse=True)
def _x64():
    with jax.enable_x64(True):
        yield


def programs(L: Any) -> dict[str, Any]:
    """Functions of (a predicate, an array), written once for both libraries; L is their lax."""
    def nested(p, x):
        return L.cond(p, lambda x: L.cond(x.sum() > 0.0, lambda x: L.sin(x) * x, lambda x: x * 3.0, x),
                      lambda x: L.exp(x), x).sum()

    def closing_over(p, x):
        y = L.sin(x)
        return L.cond(p, lambda: y * x, lambda: x * 2.0).sum()

    def layers(p, x):
        return L.cond(p, lambda x: L.tanh(L.dot(W, x)), lambda x: L.dot(W, L.sin(L.tanh(x))), x).sum()

    def three(p, x):
        return L.switch(L.convert_element_type(p, np.int32) + 1,
                        [lambda x: x, lambda x: L.sin(x) * L.cos(x), lambda x: L.exp(x) * x], x).sum()

    def constant(p, x):
        return L.cond(p, lambda x: x * 0.5, lambda x: np.ones(3), x).sum()

    def on_data(p, x):
        return L.cond(x.sum() > 0.0, lambda x: L.sin(x), lambda x: L.cos(x) * x, x).sum()

    def twice(p, x):
        y = L.cond(p, lambda x: L.sin(x), lambda x: L.cos(x) * x, x)
        return L.cond(p, lambda x: L.sin(x), lambda x: L.cos(x) * x, y).sum()

    def handing_on(p, x):
        a, b, c = L.cond(p, lambda x: (x, L.sin(x), x), lambda x: (x, x, L.cos(x)), x)
        return (a * b * c).sum()

    return {f.__name__: f for f in (nested, closing_over, layers, three, constant, on_data, twice, handing_on)}


def grad(M: Any, f: Any) -> Any:
    return M.grad(lambda p, x: f(p, x).sum(), 1)


def hessian_times_x(M: Any, f: Any) -> Any:
    return lambda p, x: M.jvp(lambda x: grad(M, f)(p, x), (x,), (x,))[1]


#: For each, the transformation (M is the library), and whether predicate and array have a leading batch axis.
TRANSFORMATIONS: dict[str, tuple[Any, bool, bool]] = {
    "identity": (lambda M, f: f, False, False),
    "jvp": (lambda M, f: lambda p, x: M.jvp(lambda x: f(p, x), (x,), (x,)), False, False),
    "grad": (grad, False, False),
    "grad of grad": (lambda M, f: grad(M, grad(M, f)), False, False),
    "jvp of grad": (hessian_times_x, False, False),
    "grad of jvp": (lambda M, f: grad(M, lambda p, x: M.jvp(lambda x: f(p, x), (x,), (x,))[1]), False, False),
    "vmap": (lambda M, f: M.vmap(f), True, True),
    "vmap of arrays": (lambda M, f: M.vmap(f, (None, 0)), False, True),
    "vmap of predicates": (lambda M, f: M.vmap(f, (0, None)), True, False),
    "vmap of grad": (lambda M, f: M.vmap(grad(M, f)), True, True),
    "vmap of grad, of arrays": (lambda M, f: M.vmap(grad(M, f), (None, 0)), False, True),
    "grad of vmap": (lambda M, f: grad(M, M.vmap(f)), True, True),
    "grad of vmap, of predicates": (lambda M, f: grad(M, M.vmap(f, (0, None))), True, False),
    "vmap of jvp of grad": (lambda M, f: M.vmap(hessian_times_x(M, f)), True, True),
}


def count_in_jax(jaxpr: Any) -> int:
    total = 0
    for eqn in jaxpr.eqns:
        total += 1
        for param in eqn.params.values():
            for inner in param if isinstance(param, (tuple, list)) else (param,):
                inner = getattr(inner, "jaxpr", inner)
                total += count_in_jax(inner) if hasattr(inner, "eqns") else 0
    return total


@pytest.mark.sample(50)
@pytest.mark.parametrize("transformation", TRANSFORMATIONS)
@pytest.mark.parametrize("program", programs(lax))
def test_values_are_those_of_jax_and_equations_no_more(program, transformation):
    transform, batched_p, batched_x = TRANSFORMATIONS[transformation]
    args = PREDS if batched_p else np.True_, XS if batched_x else X
    ours, theirs = transform(cj, programs(lax)[program]), transform(jax, programs(jax.lax)[program])
    closed, wanted = cj.make_jaxpr(ours)(*args), jax.make_jaxpr(theirs)(*args)
    typecheck(closed.jaxpr)
    assert count_eqns(closed.jaxpr) <= count_in_jax(wanted.jaxpr)
    expected = jax.tree.leaves(jax.jit(theirs)(*args))
    for got in (ours(*args), cj.jit(ours)(*args)) if transformation in ("grad", "vmap of grad") else (ours(*args),):
        for one, other in zip(cj.tree.leaves(got), expected, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-12)
            assert np.asarray(one).dtype == other.dtype


@pytest.mark.parametrize("index", [-3, 0, 1, 2, 9, np.int8(-1), np.uint8(255)])
def test_switch_clamps_as_jax_does(index):
    def f(L):
        return lambda i: L.switch(i, [lambda: 10, lambda: 20, lambda: 30])

    assert int(f(jax.lax)(index)) == int(f(lax)(index)) == int(cj.jit(f(lax))(index))


@pytest.mark.parametrize("pred", [True, 1, 0, 2, -1, 0.5, 0.0, np.nan, np.float32(2), np.int8(3), np.array(False)])
def test_cond_takes_the_predicates_that_jax_takes(pred):
    def f(L):
        return lambda p: L.cond(p, lambda: 10, lambda: 20)

    assert int(f(jax.lax)(pred)) == int(f(lax)(pred)) == int(cj.jit(f(lax))(pred))


@pytest.mark.parametrize("pred", [1j, None, "a", [True], np.array([True])])
def test_cond_refuses_the_predicates_that_jax_refuses(pred):
    for cond in (jax.lax.cond, lax.cond):
        with pytest.raises(TypeError):
            cond(pred, lambda: 1, lambda: 2)
