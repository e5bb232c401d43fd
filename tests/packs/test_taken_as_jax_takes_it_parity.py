"""Calls as they are in programs written for JAX: NumPy integers, lists, arrays of JAX's own, older forms.

Each line is an expression of `L`, which is `jax.lax` and then `corejax.lax`; eager and compiled results must agree in
value, shape, dtype and weakness, and what JAX takes must be taken.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

import corejax as cj
from corejax import lax

I64, I32 = np.int64, np.int32
X, V, M = np.arange(24.0).reshape(2, 3, 4), np.arange(6.0), np.arange(12.0).reshape(3, 4)
B = np.array([[True, False], [False, True]])

AXES = """
    L.reduce_sum(X, [I64(0), 2])
    L.reduce_max(X, (I32(1),))
    L.reduce_prod(X, np.array([0, 1]))
    L.argmax(X, I64(1), np.int32)
    L.argmin(X, axis=1, index_dtype=np.uint8)
    L.cumsum(X, I64(1))
    L.cumprod(np.arange(1, 5, dtype=np.int8))
    L.cummax(X, axis=2, reverse=True)
    L.cumlogsumexp(V, reverse=np.bool_(True))
    L.transpose(X, [2, 0, 1])
    L.transpose(X, np.array([2, 0, 1]))
    L.reshape(X, [I64(6), 4])
    L.reshape(X, np.array([6, 4]))
    L.reshape(X, (4, 6), (2, 1, 0))
    L.broadcast(V, [I64(2), 3])
    L.broadcast_in_dim(V, [2, I64(6)], [I64(1)])
    L.concatenate([V, V], I64(0))
    L.concatenate(X, 0)
    L.rev(X, [I64(0), 2])
    L.squeeze(X[:1], [I64(0)])
    L.squeeze(X[..., :1], [-1])
    L.expand_dims(X, [I64(0), -1])
    L.collapse(X, I64(0), 2)
    L.collapse(X, -2)
    L.split(V, [I64(2), 4])
    L.split(X, np.array([1, 2]), axis=I64(1))
    L.tile(M, [I64(2), 1])
    L.iota(np.int32, I64(5))
    L.broadcasted_iota(np.float32, [I64(2), 3], I64(1))
    L.full([I64(2), 3], 1.0)
    L.full(3, 1)
    L.full(np.array([2, 3]), 1.0, np.float32)
    L.full_like(V, 3, shape=[2])
    L.broadcast_to_rank(V, rank=I64(3))
    L.shape_as_value((2, I64(3)))
    L.broadcast_shapes([2, 1], (3,))
    L.padtype_to_pads([5, I64(6)], (2, 2), [1, 1], "SAME")
"""
INDICES = """
    L.slice(X, [0, I64(1), 0], np.array([2, 3, 4]))
    L.slice(X, (0, 0, 0), (2, 3, 4), [1, I64(2), 2])
    L.slice_in_dim(X, None, I64(-1), 1, I64(2))
    L.index_in_dim(X, I64(1), I64(1), False)
    L.dynamic_slice(X, np.array([0, 1, 1]), [2, 1, 2])
    L.dynamic_slice(X, jnp.array([0, 1, 1]), (2, 1, 2))
    L.dynamic_slice_in_dim(X, I64(-2), I64(2), axis=2)
    L.dynamic_index_in_dim(X, I64(-1), 1, keepdims=False)
    L.dynamic_update_slice(X, np.ones((1, 1, 1)), [I64(0), 1, 1])
    L.dynamic_update_slice(V, np.zeros(2), (np.uint8(3),))
    L.dynamic_update_slice_in_dim(X, np.zeros((2, 1, 4)), -1, 1)
    L.dynamic_update_index_in_dim(X, np.zeros((2, 4)), I64(1), 1)
    L.index_take(M, (np.array([0, 2]), np.array([1, 1])), (0, 1))
    L.pad(V, np.float64(0), [(-1, 2, 1)])
    L.gather(M, np.array([[0], [2]]), L.GatherDimensionNumbers((1,), (0,), (0,)), [I64(1), 4])
    L.gather(M, np.array([[0], [9]]), L.GatherDimensionNumbers((1,), (0,), (0,)), (1, 4), mode="fill", fill_value=-1)
    L.gather(M, np.array([[0], [9]]), L.GatherDimensionNumbers((1,), (0,), (0,)), (1, 4), mode=L.GatherScatterMode.CLIP)
    L.scatter(V, np.array([[1]], np.int8), np.ones(1), L.ScatterDimensionNumbers((), (0,), (0,)))
    L.scatter(V, np.array([[11]]), np.ones(1), L.ScatterDimensionNumbers((), (0,), (0,)), mode="drop")
    L.scatter_add(V, np.array([[0], [0]]), np.ones(2), L.ScatterDimensionNumbers((), (0,), (0,)))
    L.scatter_sub(V, np.array([[1]]), np.ones(1), L.ScatterDimensionNumbers((), (0,), (0,)))
    L.scatter_mul(V, np.array([[1]]), np.full(1, 3.0), L.ScatterDimensionNumbers((), (0,), (0,)), unique_indices=True)
    L.sort(X, dimension=I64(1))
    L.sort([V[::-1], V])
    L.sort((V // 2, -V), num_keys=2, is_stable=False)
    L.sort_key_val(-V, V)
    L.top_k(V, I64(2))
    L.top_k(V, 0)
    L.top_k(X, 2, axis=1)
    L.approx_max_k(V.astype("f4"), 2)
    L.dot_general(M, M, (([1], [I64(1)]), ([], [])))
    L.dot_general(X, X, [[[2], [2]], [[0], [0]]])
    L.dot_general(X, X, ((np.array([2]), np.array([2])), ((0,), (0,))))
    L.dot_general(M.astype("i1"), M.astype("i1"), (((1,), (1,)), ((), ())), preferred_element_type=np.int32)
    L.batch_matmul(X, np.swapaxes(X, 1, 2))
"""
PROGRAMS = """
    L.fori_loop(0.0, 5.0, lambda k, c: c + k, 0.0)
    L.fori_loop(np.uint8(0), np.uint8(5), lambda k, c: c + k, np.uint8(0))
    L.fori_loop(jnp.array(0), 5, lambda k, c: c + k, 0)
    L.fori_loop(np.array(0), np.array(3), lambda k, c: c + k, 1, unroll=True)
    L.scan(lambda c, _: (c + 1, c), 0, None, length=I64(3))
    L.scan(lambda c, _: (c + 1, c), 0, None, length=3.0)
    L.scan(lambda c, t: (c + t[0], t[1]), 0.0, [V, V])
    L.scan(lambda c, t: (c + t, c), 0.0, V, unroll=I64(2), reverse=np.bool_(True))
    L.scan(lambda c, t: (c + t, c), jnp.float64(0.0), jnp.arange(3.0))
    L.while_loop(lambda c: c[0] < 5, lambda c: [c[0] + 1, c[1] * 2], [np.int32(0), np.float32(1)])
    L.cond(np.bool_(True), lambda a: a + 1, lambda a: a, 1.0)
    L.cond(0.5, lambda a: a + 1, lambda a: a, 1.0)
    L.cond(True, lambda _: 1.0, lambda _: 2.0, None)
    L.cond(True, lambda a: a + 1, lambda a: a, operand=1.0)
    L.cond(True, 1.0, lambda a: a + 1, 2.0, lambda a: a - 1)
    L.switch(I64(7), [lambda a: a, lambda a: a * 2], 3.0)
    L.map(lambda t: t * 2, V, batch_size=I64(2))
    L.associative_scan(lambda a, b: a * b, X, reverse=True, axis=I64(1))
    L.associative_scan(L.add, X, axis=-1)
    L.associative_scan(lambda a, b: {"p": a["p"] * b["p"], "q": a["q"] * b["p"] + b["q"]}, {"p": V, "q": V + 1})
    L.reduce(X, 0.0, L.add, [I64(0)])
    L.reduce(X, 0, L.add, (0,))
    L.reduce((V, np.arange(6)), (-np.inf, 0), lambda a, b: (L.max(a[0], b[0]), L.min(a[1], b[1])), (0,))
    L.platform_dependent(V, cpu=lambda t: t + 1, default=lambda t: t)
    L.custom_linear_solve(lambda t: 2.0 * t, V, lambda mv, b: b / 2.0, lambda mv, b: b / 2.0)
    L.custom_root(lambda t: t * t - 2, 1.0, lambda f, t: newton(L, f, t), lambda g, y: y / g(1.0))
    L.stop_gradient({"a": V, "b": (M, None)})
    L.optimization_barrier((V, np.float32(3)))
"""
NUMBERS = """
    L.convert_element_type(V, int)
    L.convert_element_type(3, float)
    L.convert_element_type(V, complex)
    L.bitcast_convert_type(V, np.uint32)
    L.bitcast_convert_type(np.arange(4, dtype=np.uint8).reshape(2, 2), np.uint16)
    L.reduce_precision(V / 3, I64(5), I64(2))
    L.clamp(0.0, V, 2.0)
    L.clamp(V - 1, V, V + 1)
    L.clamp(1, np.arange(5), 3)
    L.select(True, V, V)
    L.select_n(B.astype("i4"), np.ones((2, 2)), np.zeros((2, 2)))
    L.round(V / 2, L.RoundingMethod.TO_NEAREST_EVEN)
    L.round(V / 2, 1)
    L.pow(V, 2)
    L.pow(V, np.int32(2))
    L.pow(np.ones((2, 1)), np.ones((2, 3)))
    L.integer_pow(V, I64(3))
    L.integer_pow(V + 1, -2)
    L.abs(-3)
    L.div(-7, 2)
    L.rem(-7, 3)
    L.bitwise_and(B, True)
    L.population_count(np.arange(3))
    L.mulhi(np.int32(2**30), np.int32(8))
    L.zeta(2.0, np.array([1.0, 2.0]))
    L.polygamma(1.0, V + 1)
    L.conj(V)
    L.neg(np.uint8(3))
    L.max(B, ~B)
    L.eq(B, B)
    L.sign(np.arange(-1, 2).astype(np.int8))
"""
OF_TWO = "add mul sub div max min pow atan2 rem nextafter complex eq lt".split()
FORMS = ("(V, 2.0)", "(2.0, 3.0)", "(jnp.arange(3.0), np.arange(3.0))", "(np.float32(3), np.float32(2))", "(V, V[:1])",
         "(np.ones((2, 1)), np.ones((2, 3)))", "(np.ones((2, 1, 3)), np.ones((2, 2, 1)))", "(np.ones((0, 1)), M[:1])")

CALLS = [line.strip() for text in (AXES, INDICES, PROGRAMS, NUMBERS) for line in text.strip().splitlines()]
CALLS += [f"L.{name}{form}" for name in OF_TWO for form in FORMS]


def newton(L: Any, f: Any, x: Any) -> Any:
    return L.fori_loop(0, 9, lambda _, x: x - f(x) / x / 2, x)


def described(leaves: list[Any]) -> list[tuple[np.ndarray, str, bool]]:
    return [(np.asarray(leaf), str(getattr(leaf, "dtype", type(leaf))), getattr(leaf, "weak_type", False))
            for leaf in leaves]


@pytest.mark.sample(70)
@pytest.mark.parametrize("call", CALLS)
def test_parity_of_a_call(call: str) -> None:
    jax = pytest.importorskip("jax")
    compute = eval(f"lambda L, jnp: {call}", globals())
    wanted = described(jax.tree.leaves(compute(jax.lax, jax.numpy)))
    under_jit = described(jax.tree.leaves(jax.jit(lambda: compute(jax.lax, jax.numpy))()))
    for found, theirs in ((compute(lax, jax.numpy), wanted),
                          (cj.jit(lambda: compute(lax, jax.numpy))(), under_jit)):
        ours = described(cj.tree.leaves(found))
        assert [each[1:] for each in theirs] == [each[1:] for each in ours]
        for (y, *_), (x, *_) in zip(theirs, ours, strict=True):
            assert_allclose(x, y, rtol=1e-6, atol=1e-12, strict=True)
