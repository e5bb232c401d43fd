"""The same while loops on jax: values, tangents, batches, types, and no more equations than jax has."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

import corejax as cj
from corejax import lax
from corejax.ir import count_eqns

jax = pytest.importorskip("jax")

RNG = np.random.default_rng(3)
X, Y, V = RNG.uniform(0.5, 1.5, 3), RNG.uniform(1.0, 2.0, 3), RNG.standard_normal((2, 3))
XS, YS = RNG.uniform(0.5, 1.5, (4, 3)), RNG.uniform(1.0, 2.0, (4, 3))


def programs(L):
    """Loops of two vectors, written once for both libraries; L is their lax."""
    def growing(x, y):
        return L.while_loop(lambda x: x.sum() < 20.0, lambda x: x * y + L.sin(x), x)

    def counting(x, y):
        return L.while_loop(lambda v: v[0] < 3, lambda v: (v[0] + 1, L.cos(v[1]) * y), (0, x))[1]

    def invariant(x, y):
        return L.while_loop(lambda v: v[2] < v[1][0] * 5, lambda v: (v[0] * L.exp(-v[1]), v[1], v[2] + 1), (x, y, 0))[0]

    def turning(x, y):
        return L.while_loop(lambda v: v[3] < 4, lambda v: (v[1], v[2], v[0] * 0.5, v[3] + 1), (x, y, x * y, 0))[:3]

    def computed_bound(x, y):
        n = (x.sum() * 3.0).astype("int64")
        return L.fori_loop(0, n, lambda i, v: L.sin(v) + y * (0.1 * i), x)

    def nested(x, y):
        def body(v):
            i, x = v
            return i + 1, L.while_loop(lambda x: x.sum() < 10.0 + i, lambda x: x + L.sin(y), x)
        return L.while_loop(lambda v: v[0] < 3, body, (0, x))[1]

    def collatz(x, y):
        n = (x * 10.0).astype("int64")[0]
        return L.while_loop(lambda v: v[0] > 1, lambda v: (
            L.select(v[0] % 2 == 0, v[0] // 2, 3 * v[0] + 1), v[1] + 1), (n, 0))

    return [growing, counting, invariant, turning, computed_bound, nested, collatz]


PAIRS = list(zip(programs(lax), programs(jax.lax), strict=True))
every_program = pytest.mark.parametrize(("ours", "theirs"), PAIRS, ids=[ours.__name__ for ours, _ in PAIRS])


def transformed(api, f):
    """Every transformation of a loop that jax has, by name."""
    return {
        "value": (lambda x, y: f(x, y), (X, Y)),
        "jit": (api.jit(f), (X, Y)),
        "vmap of both": (api.vmap(f), (XS, YS)),
        "vmap of x": (api.vmap(f, (0, None)), (XS, Y)),
        "vmap of y": (api.vmap(f, (None, 0)), (X, YS)),
        "jvp": (lambda x, y: api.jvp(f, (x, y), tuple(V)), (X, Y)),
        "jvp of y": (lambda x, y: api.jvp(lambda y: f(x, y), (y,), (V[0],)), (X, Y)),
        "linearize": (lambda x, y: api.linearize(f, x, y)[1](*V), (X, Y)),
        "vmap of jvp": (api.vmap(lambda x, y: api.jvp(f, (x, y), tuple(V))), (XS, YS)),
        "jvp of vmap": (lambda x, y: api.jvp(api.vmap(f), (x, y), (x * 0.1, y * 0.2)), (XS, YS)),
        "jvp of jvp": (lambda x, y: api.jvp(lambda x: api.jvp(f, (x, y), tuple(V))[1], (x,), (V[1],))[1], (X, Y)),
    }


@pytest.fixture(autouse=True)
def _double_precision():
    with jax.enable_x64(True):
        yield


@pytest.mark.sample(4)
@every_program
def test_values_tangents_and_batches_are_those_of_jax(ours, theirs):
    references = transformed(jax, theirs)
    for name, (f, args) in transformed(cj, ours).items():
        got, wanted = cj.tree.leaves(f(*args)), jax.tree.leaves(references[name][0](*map(jax.numpy.asarray, args)))
        wanted = [x for x in wanted if x.dtype != jax.dtypes.float0]
        got = [x for x in got if str(x.dtype) != "float0" and np.asarray(x).dtype.kind != "V"]
        assert len(wanted) == len(got), name
        for x, y in zip(got, wanted, strict=True):
            assert y.dtype == x.dtype, name
            assert_allclose(np.asarray(x), np.asarray(y), rtol=1e-11, atol=1e-13, err_msg=name)


@every_program
def test_there_are_no_more_equations_than_jax_has(ours, theirs):
    references = transformed(jax, theirs)
    for name, (f, args) in transformed(cj, ours).items():
        if name in ("value", "vmap of both", "vmap of x", "jvp", "jvp of y", "linearize", "vmap of jvp"):
            mine = count_eqns(cj.make_jaxpr(f)(*args).jaxpr)
            theirs_count = _count(jax.make_jaxpr(references[name][0])(*args).jaxpr)
            assert mine <= theirs_count, f"{name}: {mine} equations, jax has {theirs_count}"


def _count(jaxpr):
    """The equations of a jaxpr of jax, those of jaxprs in params included."""
    total = 0
    for eqn in jaxpr.eqns:
        total += 1
        for value in eqn.params.values():
            for inner in value if isinstance(value, (tuple, list)) else [value]:
                inner = getattr(inner, "jaxpr", inner)
                total += _count(inner) if hasattr(inner, "eqns") else 0
    return total


@pytest.mark.parametrize("make", [
    lambda L: lambda: L.while_loop(lambda x: x < 3, lambda x: x + 1.0, 1),
    lambda L: lambda: L.fori_loop(0, 3, lambda i, x: x + i, np.float32(1.0)),
    lambda L: lambda: L.fori_loop(0, 3, lambda i, x: x + i, 1),
    lambda L: lambda: L.fori_loop(np.int32(0), np.int32(3), lambda i, x: x + i, np.int32(1)),
    lambda L: lambda: L.fori_loop(3, 0, lambda i, x: x * 2, 1.5),
])
def test_results_have_the_types_that_jax_gives_them(make):
    ours, theirs = make(lax)(), make(jax.lax)()
    for x, y in zip(cj.tree.leaves(ours), jax.tree.leaves(theirs), strict=True):
        assert (y.dtype, y.shape) == (x.dtype, x.shape)
        assert_allclose(np.asarray(x), np.asarray(y))


@pytest.mark.parametrize("make", [
    lambda api: lambda: api.lax.while_loop(lambda x: x, lambda x: x + 1.0, 0.0),
    lambda api: lambda: api.lax.while_loop(lambda x: x < 3, lambda x: (x, x), 0.0),
    lambda api: lambda: api.lax.while_loop(1, lambda x: x, 0.0),
    lambda api: lambda: api.lax.fori_loop(np.int32(0), np.int64(3), lambda i, x: x, 0.0),
    lambda api: lambda: api.jit(lambda n: api.lax.fori_loop(0, n, lambda i, x: x, 0.0, unroll=4))(3),
])
def test_what_jax_refuses_is_refused_with_the_same_class(make):
    with pytest.raises((TypeError, ValueError)) as theirs:
        make(jax)()
    with pytest.raises(theirs.type):
        make(cj)()
