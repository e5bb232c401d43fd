"""The same on jax: linear functions in and out of transformations, and `Partial`.

jax refuses pullbacks as carries and as results of branches: there, two of one function have different structures.
"""

from __future__ import annotations

import functools

import numpy as np
import pytest
from numpy.testing import assert_allclose

import corejax as cj
from corejax import lax

jax = pytest.importorskip("jax")

X = np.array([0.5, 1.5, 2.5])


def programs(m, L, partial):
    """Uses of linear functions written once for both libraries; L is the lax of m."""
    def f(x):
        return L.sin(x) * x / (1.0 + x * x) + 2.0 * x * 3.0

    def at(x):
        return m.vjp(f, x)[1]

    def custom():
        sine = m.custom_vjp(L.sin)
        sine.defvjp(lambda x: m.vjp(L.sin, x), lambda pull, ct: pull(ct))
        return sine

    return {
        "out of jit": lambda x: m.jit(at)(x)(x),
        "into jit": lambda x: m.jit(lambda p, ct: p(ct))(at(x), x),
        "out of vmap and into it": lambda x: m.vmap(lambda p, ct: p(ct))(m.vmap(at)(x), x),
        "stacked by scan": lambda x: m.vmap(lambda p, ct: p(ct))(L.scan(lambda c, x: (c, at(x)), 0.0, x)[1], x),
        "linearize, stacked": lambda x: m.vmap(lambda p, t: p(t))(m.vmap(lambda x: m.linearize(f, x)[1])(x), x),
        "checkpointed": lambda x: m.grad(lambda x: m.checkpoint(at)(x)(x)[0].sum())(x),
        "transposed": lambda x: m.jit(lambda y: m.linear_transpose(lambda x: y * x, x))(x)(x),
        "residual": lambda x: m.jit(m.vmap(m.grad(custom())))(x),
        "residual, twice": lambda x: m.vmap(m.grad(m.grad(custom())))(x),
        "differentiated": lambda x: m.grad(lambda x: m.jit(lambda p, ct: p(ct))(at(x), x)[0].sum())(x),
        "forward": lambda x: m.jvp(lambda x: at(x)(x), (x,), (x,)),
        "partial": lambda x: m.jit(lambda p: p(x))(m.jit(lambda x: partial(lambda a, b: a * L.sin(b), x))(x)),
        "partial, differentiated": lambda x: m.grad(lambda p: p(x).sum())(partial(lambda a, b: a * L.sin(b), x)),
    }


OURS = programs(cj, lax, cj.tree.Partial)
THEIRS = programs(jax, jax.lax, jax.tree_util.Partial)


@pytest.mark.parametrize("name", OURS)
def test_linear_functions_are_passed_as_in_jax(name):
    ours, theirs = cj.tree.leaves(OURS[name](X)), jax.tree.leaves(THEIRS[name](X))
    assert len(theirs) == len(ours)
    for x, y in zip(ours, theirs, strict=True):
        assert_allclose(y, x, rtol=1e-12)
        assert y.dtype == x.dtype


HALVES = {
    "one argument": (0, False),
    "the last": (-1, False),
    "a tuple of one": ((1,), False),
    "both": ([1, 0], False),
    "aux": ((0, 1), True),
}


@pytest.mark.parametrize("jitted", [True, False])
@pytest.mark.parametrize("name", HALVES)
def test_the_halves_of_reverse_mode_are_those_of_jax(name, jitted):
    argnums, has_aux = HALVES[name]

    def found(m):
        def f(x, d):
            y = m.numpy.sin(x) * d["w"]
            return (y, {"twice": 2 * x}) if has_aux else y

        fwd, bwd = m.fwd_and_bwd(f, argnums, has_aux, jitted)
        out, residuals, *aux = fwd(X, {"w": X + 1})
        return m.tree.leaves_with_path((out, aux, bwd(residuals, X), m.jit(bwd)(residuals, X)))

    ours, theirs = [{m.tree_util.keystr(path): x for path, x in found(m)} for m in (cj, jax)]
    assert theirs.keys() == ours.keys()
    for path, y in theirs.items():
        assert_allclose(y, ours[path], rtol=1e-12)
        assert y.dtype == ours[path].dtype


def test_the_halves_are_traced_once():
    traced = []

    def f(x):
        traced.append(x)
        return lax.sin(x)

    fwd, bwd = cj.fwd_and_bwd(f, 0)
    for x in (X, X + 1):
        assert_allclose(np.cos(x), bwd(fwd(x)[1], np.ones(3)))
    assert 1 == len(traced)


@pytest.mark.parametrize(("use", "match"), [
    (lambda: cj.fwd_and_bwd(lax.sin, 1)[0](X), "there is no argument number 1"),
    (lambda: cj.fwd_and_bwd(lax.sin, "x"), "fwd_and_bwd: argnums must be positions"),
    (lambda: cj.fwd_and_bwd(lax.sin, 0)[1](X, X), "bwd takes the residuals that fwd returned"),
])
def test_wrong_uses_of_the_halves(use, match):
    with pytest.raises((TypeError, IndexError), match=match):
        use()


def test_named_calls_are_scopes_as_in_jax():
    for m in (cj, jax):
        def inner(x):
            return m.lax.sin(x)  # noqa: B023
        for f, name in ((m.named_call(inner), "inner"), (m.named_call(inner, name="layer"), "layer")):
            text = m.jit(lambda x: f(x) * 2).lower(X).as_text(debug_info=True)  # noqa: B023
            assert f"{name}/sin" in text and "inner" == f.__name__
            assert_allclose(np.sin(X), f(X))
    assert 1.0 == cj.named_call(functools.partial(lax.mul, 2.0))(0.5)
    with pytest.raises(TypeError, match="named_call: expected a function"):
        cj.named_call(3)
    with pytest.raises(TypeError, match="a scope needs a name"):
        cj.named_call(lax.sin, name=3)


N = np.arange(3)

#: Linear functions of integers, and the cotangent of what they return; L and np are m's.
OF_INTEGERS = {
    "twice": (lambda m, L, np, n: 2 * n, N),
    "a sum": (lambda m, L, np, n: np.sum(n), np.int64(3)),
    "joined": (lambda m, L, np, n: np.concatenate([n, -n]), np.arange(6)),
    "a call": (lambda m, L, np, n: m.jit(lambda n: n * 2)(n), N),
    "a loop": (lambda m, L, np, n: L.scan(lambda c, a: (c + a, c * 2), n.sum() * 0, n), (np.int64(1), N)),
    "a branch": (lambda m, L, np, n: L.cond(True, lambda n: n * 3, lambda n: n * 2, n), N),
    "a slice": (lambda m, L, np, n: n[1:], N[:2]),
    "picked": (lambda m, L, np, n: n[np.array([0, 0, 1])], N),
    "padded": (lambda m, L, np, n: L.pad(n, 0, [(1, 1, 0)]), np.arange(5)),
    "running sums": (lambda m, L, np, n: np.cumsum(n), N),
    "selected": (lambda m, L, np, n: np.where(np.array([True, False, True]), n, 0), N),
    "mapped": (lambda m, L, np, n: m.vmap(lambda n: L.psum(n, "i"), axis_name="i")(n), N),
    "itself": (lambda m, L, np, n: n, N),
    "beside a constant": (lambda m, L, np, n: (n, 3), (N, 1)),
}


@pytest.mark.parametrize("jit", [False, True])
@pytest.mark.parametrize("name", OF_INTEGERS)
def test_functions_of_integers_are_transposed_as_in_jax(name, jit):
    fun, ct = OF_INTEGERS[name]

    def back(m, L, np):
        transpose = m.linear_transpose(lambda n: fun(m, L, np, n), N)
        return (m.jit(transpose) if jit else transpose)(ct)[0]

    ours, theirs = back(cj, lax, cj.numpy), back(jax, jax.lax, jax.numpy)
    np.testing.assert_array_equal(theirs, ours)
    assert theirs.dtype == ours.dtype == N.dtype


@pytest.mark.parametrize(("fun", "ct", "wanted"), [
    (lambda np, n: np.arange(6).reshape(2, 3) @ n, np.array([1, 10]), [30, 41, 52]),
    (lambda np, n: np.sum(n.astype(np.int8)), 3, [3, 3, 3]),
])
def test_jax_drops_the_cotangents_of_some_functions_of_integers(fun, ct, wanted):
    ours, = cj.linear_transpose(lambda n: fun(cj.numpy, n), N)(ct)
    theirs, = jax.linear_transpose(lambda n: fun(jax.numpy, n), N)(ct)
    assert wanted == ours.tolist() and cj.float0 == theirs.dtype
