"""The same on jax: linear functions in and out of transformations, and `Partial`.

jax refuses pullbacks as carries and as results of branches: there, two of one function have different structures.
"""

from __future__ import annotations

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
