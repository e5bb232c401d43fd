"""`associative_scan` beside jax: of trees, along every axis, under transformations; and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import corejax as cj
from corejax import lax
from corejax.errors import CorejaxError

jax = pytest.importorskip("jax")
cnp = pytest.importorskip("corejax.numpy")

RNG = np.random.default_rng(0)
X, M = RNG.standard_normal((5, 4, 3)), RNG.standard_normal((7, 2, 2))


@pytest.fixture(autouse=True)
def _x64():
    with jax.enable_x64(True):
        yield


def calls(lib: Any, L: Any, xp: Any) -> dict[str, Callable[[], Any]]:
    def affine(p: Any, q: Any) -> Any:
        return p[0] * q[0], q[0] * p[1] + q[1]

    def both(p: Any, q: Any) -> Any:
        return p[0] + q[0], p[1] * q[1]

    scan, x, m, mul = L.associative_scan, xp.asarray(X), xp.asarray(M), xp.matmul
    return {
        **{f"{n} elements": lambda n=n: scan(mul, m[:n]) for n in range(8)},
        **{f"{n} elements from the end": lambda n=n: scan(mul, m[:n], reverse=True) for n in range(8)},
        **{f"axis {axis}": lambda axis=axis: scan(L.add, x, axis=axis) for axis in range(-4, 4)},
        **{f"axis {axis} from the end": lambda axis=axis: scan(L.mul, x, True, axis) for axis in range(3)},
        "a tree": lambda: scan(affine, (x, x)),
        "a tree from the end": lambda: scan(affine, (x, x), reverse=True),
        "other ranks": lambda: scan(both, (x, x[:, 0, 0])),
        "other ranks, the last axis of the first": lambda: scan(both, (x[:, 0, 0], x), axis=-1),
        "other ranks, an axis that one lacks": lambda: scan(both, (x, x[:, 0, 0]), axis=-1),
        "a dict with None": lambda: scan(lambda p, q: {"a": p["a"] + q["a"], "n": None}, {"a": x, "n": None}),
        "lists of other dtypes": lambda: scan(lambda p, q: [a + b for a, b in zip(p, q, strict=True)],
                                              [np.arange(3), np.arange(3.0), np.arange(3, dtype=np.int8)]),
        "bools": lambda: scan(L.bitwise_or, np.array([0, 1, 0], bool)),
        "bfloat16": lambda: scan(L.add, np.arange(5).astype(ml_dtypes.bfloat16)),
        "constant results": lambda: scan(lambda p, q: p * 0 + 2.0, x),
        "rows without elements": lambda: scan(affine, (x[:, :0], x[:, :0])),
        "by keyword": lambda: scan(fn=L.add, elems=x, axis=2),
        "an axis from NumPy": lambda: scan(L.add, x, axis=np.int64(1)),
        "grad": lambda: lib.grad(lambda m: (scan(mul, m) ** 2).sum())(m),
        "hessian": lambda: lib.hessian(lambda x: (scan(L.mul, x) ** 2).sum())(x[:, 0, 0]),
        "jvp": lambda: lib.jvp(lambda x: scan(affine, (x, x), reverse=True), (x,), (x,)),
        "vmap": lambda: lib.vmap(lambda m: scan(mul, m), in_axes=1)(xp.stack([m, m + 1], 1)),
        "vmap of the last axis": lambda: lib.vmap(lambda x: scan(L.add, x, axis=-1), in_axes=2, out_axes=1)(x),
        "jit": lambda: lib.jit(scan, static_argnums=(0, 2, 3))(L.max, x, True, 1),
        "jit of grad of vmap": lambda: lib.jit(lib.grad(lambda x: lib.vmap(lambda x: scan(L.mul, x))(x).sum()))(x),
        "a differentiated value inside": lambda: lib.grad(lambda w: scan(lambda p, q: p * q * w, x).sum())(1.5),
        "a mapped value inside": lambda: lib.vmap(lambda w: scan(lambda p, q: p * q * w, x))(xp.arange(3.0)),
        # refused
        "numbers": lambda: scan(L.add, 1.0),
        "a list of numbers": lambda: scan(L.add, [1.0, 2.0]),
        "no arrays": lambda: scan(L.add, ()),
        "a str": lambda: scan(L.add, "abc"),
        "other sizes": lambda: scan(lambda p, q: p, (x, x[:3])),
        "another dtype": lambda: scan(lambda p, q: (p + q).astype("float32"), x),
        "another shape": lambda: scan(lambda p, q: (p + q).sum(0), x),
        "another structure": lambda: scan(lambda p, q: (p, q), x),
        "no function": lambda: scan(3, x),
        "a function of one": lambda: scan(lambda p: p, x),
        "an axis that is a float": lambda: scan(L.add, x, axis=1.0),
        "no axis": lambda: scan(L.add, x, axis=None),
        "two axes": lambda: scan(L.add, x, axis=(0, 1)),
    }


@pytest.mark.sample(14)
@pytest.mark.parametrize("name", calls(cj, lax, cnp))
def test_parity_of_associative_scan(name):
    try:
        wanted = calls(jax, jax.lax, jax.numpy)[name]()
    except Exception:
        with pytest.raises((TypeError, ValueError, IndexError)) as caught:
            calls(cj, lax, cnp)[name]()
        assert isinstance(caught.value, CorejaxError)
        return
    found = calls(cj, lax, cnp)[name]()
    assert str(jax.tree.structure(wanted)) == str(cj.tree.structure(found))
    for x, y in zip(jax.tree.leaves(wanted), cj.tree.leaves(found), strict=True):
        assert (x.shape, x.dtype) == (y.shape, y.dtype)
        np.testing.assert_allclose(np.asarray(x, float), np.asarray(y, float), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("axis", [-1, -2, -3])
def test_a_negative_axis_from_the_end_which_jax_refuses(axis):
    with pytest.raises(TypeError):
        jax.lax.associative_scan(jax.lax.add, X, reverse=True, axis=axis)
    wanted = np.flip(np.cumsum(np.flip(X, axis), axis), axis)
    np.testing.assert_allclose(wanted, lax.associative_scan(lax.add, X, reverse=True, axis=axis), rtol=1e-12)
