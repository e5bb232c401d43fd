"""The same loops on jax: values, types, gradients, and no more equations than jax has."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

import corejax as cj
from corejax import lax
from corejax.ir import count_eqns

jax = pytest.importorskip("jax")

RNG = np.random.default_rng(2)
W, U, B = RNG.standard_normal((3, 3)), RNG.standard_normal((3, 3)), RNG.standard_normal(3)
H, XS = RNG.standard_normal(3), RNG.standard_normal((5, 3))
ARGS = W, U, B, H, XS


def programs(L, dot):
    """Loops written once for both libraries; L is their lax."""
    def rnn(w, u, b, h, xs):
        def f(h, x):
            h = L.tanh(dot(w, h) + dot(u, x) + b)
            return h, (h * h).sum()
        h, ys = L.scan(f, h, xs)
        return h.sum() + ys.sum()

    def counting(w, u, b, h, xs):
        def f(c, x):
            h, i, total = c
            h = L.tanh(dot(w, h) + x)
            return (h, i + 1, total + h.sum()), None
        (h, _, total), _ = L.scan(f, (h, 0, 0.0), xs)
        return h.sum() + total

    def cumulative(w, u, b, h, xs):
        def f(c, x):
            c = c + x * L.sin(b)
            return c, c
        c, ys = L.scan(f, h, xs)
        return (c * c).sum() + (ys * ys).sum()

    def nested(w, u, b, h, xs):
        def f(c, x):
            d, ys = L.scan(lambda d, y: (L.sin(d) * y + dot(w, d), d * y), c, xs)
            return d * x, ys.sum()
        c, ys = L.scan(f, h, xs)
        return c.sum() + ys.sum()

    def mapped(w, u, b, h, xs):
        return L.map(lambda x: L.sin(dot(w, x)) * b, xs).sum()

    def polynomial(w, u, b, h, xs):
        return L.scan(lambda c, x: (c * h + x, None), h, xs, reverse=True)[0].sum()

    def without_inputs(w, u, b, h, xs):
        c, ys = L.scan(lambda c, _: (L.sin(c) * b, c), h, None, length=4)
        return c.sum() + ys.sum()

    def pair(w, u, b, h, xs):
        def f(c, x):
            return {"p": c["p"] + 0.1 * c["q"], "q": c["q"] - 0.1 * L.sin(c["p"])}, None
        c, _ = L.scan(f, {"p": h, "q": b}, xs, unroll=2)
        return (c["p"] * c["q"]).sum()

    return {f.__name__: f for f in (rnn, counting, cumulative, nested, mapped, polynomial, without_inputs, pair)}


OURS, THEIRS = programs(lax, lax.dot), programs(jax.lax, jax.numpy.dot)
ALL = (0, 1, 2, 3, 4)


def count_jax(jaxpr):
    """Equations, those of loops' bodies included, calls not counted."""
    total = 0
    for eqn in jaxpr.eqns:
        inner = [getattr(p, "jaxpr", p) for p in eqn.params.values() if hasattr(getattr(p, "jaxpr", p), "eqns")]
        total += sum(map(count_jax, inner)) + (eqn.primitive.name not in ("jit", "pjit", "closed_call"))
    return total


@pytest.mark.parametrize("name", OURS)
def test_values_and_gradients_equal_those_of_jax(name):
    with jax.enable_x64(True):
        wanted = jax.value_and_grad(THEIRS[name], ALL)(*ARGS)
    got = cj.jit(cj.value_and_grad(OURS[name], ALL))(*ARGS)
    assert_allclose(got[0], wanted[0], rtol=1e-12)
    for x, y in zip(got[1], wanted[1], strict=True):
        assert_allclose(x, y, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", OURS)
def test_derivatives_and_batches_have_no_more_equations_than_jax_has(name, record_property):
    transformations = {
        "grad": lambda api, f: api.grad(f, ALL),
        "vmap": lambda api, f: api.vmap(f, (None, None, 0, None, None)),
        "grad of grad": lambda api, f: api.grad(lambda *a: sum([(g * g).sum() for g in api.grad(f, ALL)(*a)]), (0, 3)),
    }
    args = W, U, XS, H, XS
    for what, transform in transformations.items():
        args = (W, U, XS, H, XS) if what == "vmap" else ARGS
        ours = count_eqns(cj.make_jaxpr(transform(cj, OURS[name]))(*args).jaxpr)
        with jax.enable_x64(True):
            theirs = count_jax(jax.make_jaxpr(transform(jax, THEIRS[name]))(*args).jaxpr)
        record_property(what, (ours, theirs))
        assert ours <= theirs, what


@pytest.mark.parametrize("init", [0.0, 1, np.float32(2.0), True, 1j])
@pytest.mark.parametrize("length", [0, 3])
def test_types_of_results_equal_those_of_jax(init, length):
    def f(L, xs):
        return L.scan(lambda c, x: (c + x, (c, x * 2)), init, xs)

    for dtype in (np.float32, np.float64, np.int8, np.complex64):
        xs = np.ones(length, dtype)
        with jax.enable_x64(True):
            try:
                shapes = jax.eval_shape(lambda xs: f(jax.lax, xs), xs)
                wanted = [(x.shape, x.dtype, x.weak_type) for x in jax.tree.leaves(shapes)]
            except TypeError:
                with pytest.raises(TypeError, match="changes the type"):
                    f(lax, xs)
                continue
        assert wanted == [(x.shape, x.dtype, x.weak_type) for x in cj.tree.leaves(f(lax, xs))]
