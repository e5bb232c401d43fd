"""Windowed reductions beside NumPy: ties, padding, derivatives of every order, maps, and windows of any size."""

from __future__ import annotations

import itertools
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import corejax as cj
from corejax import lax
from random_windows import apart, random_windows

RNG = np.random.default_rng(0)

WAYS: dict[str, Any] = {"eager": lambda f: f, "compiled": cj.jit}
every_way = pytest.mark.parametrize("way", WAYS)


def padded(x: np.ndarray, padding: Any, base: Any) -> Any:
    """The operand with NaN for padding and dilation."""
    x = np.asarray(x, float)
    for axis, ((low, high), d) in enumerate(zip(padding, base, strict=True)):
        x = np.moveaxis(x, axis, 0)
        wide = np.full((max((len(x) - 1) * d + 1, 0), *x.shape[1:]), np.nan)
        wide[::d] = x
        edges = [np.full((max(n, 0), *x.shape[1:]), np.nan) for n in (low, high)]
        wide = np.concatenate([edges[0], wide[max(-low, 0):len(wide) - max(-high, 0)], edges[1]])
        x = np.moveaxis(wide, 0, axis)
    return x


def by_loops(x: np.ndarray, sizes: Any, strides: Any, padding: Any, base: Any, dilation: Any, f: Any) -> np.ndarray:
    """What `f` makes of the elements in each window, in row-major order."""
    wide = padded(x, padding, base)
    counts = lax.reduce_window_shape_tuple(x.shape, sizes, strides, padding, base, dilation)
    out = np.zeros(counts)
    for at in itertools.product(*map(range, counts)):
        window = wide[tuple(slice(i * s, i * s + (n - 1) * d + 1, d)
                            for i, s, n, d in zip(at, strides, sizes, dilation, strict=True))]
        out[at] = f(window[~np.isnan(window)])
    return out


@every_way
@pytest.mark.parametrize("seed", range(12))
def test_windows_hold_what_loops_find(way: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    w = random_windows(rng, text=False)
    x = rng.standard_normal(w.shape)
    for init, computation, f in ((0.0, lax.add, np.sum), (-np.inf, lax.max, lambda v: max(v, default=-np.inf)),
                                 (np.inf, lax.min, lambda v: min(v, default=np.inf)), (1.0, lax.mul, np.prod)):
        got = WAYS[way](lambda x, i=init, c=computation: lax.reduce_window(x, i, c, *w.args))(x)
        assert_allclose(got, by_loops(x, *w.args, f), rtol=1e-12, atol=1e-13)


@every_way
def test_of_elements_that_tie_the_first_is_selected(way: str) -> None:
    x = np.array([[2.0, 2.0, 2.0, 1.0], [2.0, 2.0, 0.0, 2.0]])
    pool = WAYS[way](cj.grad(lambda x: lax.reduce_window(x, -np.inf, lax.max, (2, 2), (1, 2)).sum()))
    assert_array_equal(pool(x), [[1, 0, 1, 0], [0, 0, 0, 0]])
    rows = WAYS[way](lambda t: cj.jvp(lambda x: lax.reduce_window(x, -np.inf, lax.max, (1, 2), (1, 2)), (x,), (t,))[1])
    assert_array_equal(rows(np.arange(8.0).reshape(2, 4)), [[0, 2], [4, 7]])


@every_way
def test_windows_of_padding_alone_have_the_identity_and_no_derivative(way: str) -> None:
    x = np.array([1.0, 2.0])
    def pool(x: Any) -> Any:
        return lax.reduce_window(x, -np.inf, lax.max, (2,), (3,), ((4, 4),))
    assert_array_equal(WAYS[way](pool)(x), [-np.inf, 1.0, -np.inf])
    assert_array_equal(WAYS[way](lambda x: cj.vjp(pool, x)[1](np.ones(3))[0])(x), [1.0, 0.0])


@pytest.mark.parametrize("seed", range(8))
def test_sums_are_linear_and_transposed_by_their_matrix(seed: int) -> None:
    rng = np.random.default_rng(seed)
    w = random_windows(rng, text=False)
    size = int(np.prod(w.shape))
    def total(x: Any) -> Any:
        return lax.reduce_window(x.reshape(w.shape), 0.0, lax.add, *w.args).reshape(-1)
    forward = np.asarray(cj.vmap(total, out_axes=1)(np.eye(size))) if size else np.zeros((0, 0))
    reverse = np.asarray(cj.jacrev(total)(np.zeros(size)))
    if size:
        assert_array_equal(forward, reverse)


@pytest.mark.parametrize("select", ["ge", "le"])
def test_derivatives_of_dilated_windows_are_those_of_differences(select: str) -> None:
    x, v = apart(RNG, (7, 5)), RNG.standard_normal((7, 5))
    init, f = (-np.inf, lax.max) if select == "ge" else (np.inf, lax.min)
    weights = RNG.standard_normal((3, 7))
    def loss(x: Any) -> Any:
        out = lax.reduce_window(x, init, f, (2, 3), (2, 1), ((1, 1), (0, 2)), (1, 2), (3, 2))
        return (lax.tanh(out) * weights).sum()
    slope = (loss(x + 1e-6 * v) - loss(x - 1e-6 * v)) / 2e-6
    assert_allclose(cj.jvp(loss, (x,), (v,))[1], slope, rtol=1e-6)
    assert_allclose((cj.grad(loss)(x) * v).sum(), slope, rtol=1e-6)
    curve = (np.asarray(cj.grad(loss)(x + 1e-6 * v)) - np.asarray(cj.grad(loss)(x - 1e-6 * v))) / 2e-6
    assert_allclose(cj.jit(lambda x, v: cj.jvp(cj.grad(loss), (x,), (v,))[1])(x, v), curve, atol=1e-7)


def test_large_windows_have_the_derivatives_of_small_ones() -> None:
    x = apart(RNG, (9, 9))
    def loss(x: Any, size: int) -> Any:
        return (lax.reduce_window(x, -np.inf, lax.max, (size, size), (1, 2)) ** 2).sum()
    for size in (5, 6, 9):  # more elements than are taken apart
        wanted = np.zeros_like(x)
        for i, j in itertools.product(range(10 - size), range(0, 10 - size, 2)):
            part = x[i:i + size, j:j + size]
            at = np.unravel_index(part.argmax(), part.shape)
            wanted[i + at[0], j + at[1]] += 2 * part.max()
        for way in WAYS.values():
            assert_allclose(way(cj.grad(lambda x, s=size: loss(x, s)))(x), wanted, rtol=1e-12)


def test_any_function_has_derivatives_in_both_modes() -> None:
    x, v = RNG.uniform(0.5, 1.5, (6, 5)), RNG.standard_normal((6, 5))
    def loss(x: Any) -> Any:
        return (lax.reduce_window(x, 0.0, lambda a, b: lax.sqrt(a * a + b * b), (3, 2), (1, 2), "SAME") ** 3).sum()
    def plain(x: Any) -> Any:
        return (lax.reduce_window(x * x, 0.0, lax.add, (3, 2), (1, 2), "SAME") ** 1.5).sum()
    assert_allclose(loss(x), plain(x), rtol=1e-12)
    for way in WAYS.values():
        assert_allclose(way(cj.grad(loss))(x), cj.grad(plain)(x), rtol=1e-11)
        assert_allclose(way(lambda x, v: cj.jvp(cj.grad(loss), (x,), (v,))[1])(x, v),
                        cj.jvp(cj.grad(plain), (x,), (v,))[1], rtol=1e-10, atol=1e-11)


def test_functions_may_close_over_traced_values_and_call_conditions() -> None:
    x = RNG.standard_normal(8)
    def scaled(a: Any) -> Any:
        return lax.reduce_window(x, -np.inf, lambda p, q: lax.max(p, q * a / a), (3,)).sum()
    assert_allclose(cj.jit(scaled)(2.0), sum(max(x[i:i + 3]) for i in range(6)), rtol=1e-12)
    def larger(p: Any, q: Any) -> Any:
        return lax.cond(p >= q, lambda: p, lambda: q)
    assert_allclose(lax.reduce_window(x, -np.inf, larger, (3,)), [max(x[i:i + 3]) for i in range(6)])


def test_initial_values_count_once_and_may_be_mapped() -> None:
    x = np.arange(4.0)
    wanted = [5.0, 6.0, 8.0, 10.0, 8.0]
    def total(x: Any, init: Any) -> Any:
        return lax.reduce_window(x, init, lax.add, (2,), (1,), ((1, 1),))
    assert_array_equal(total(x, 5.0), wanted)
    assert_array_equal(cj.vmap(total, in_axes=(None, 0))(x, np.array([5.0, 6.0])), [wanted, np.add(wanted, 1.0)])
    assert_array_equal(cj.jacfwd(lambda i: total(x, i))(5.0), np.ones(5))
    assert_array_equal(cj.grad(lambda i: total(x, i).sum())(5.0), 5.0)


def test_trees_of_arrays_are_reduced_together() -> None:
    x, y = np.array([3.0, 1.0, 2.0, 5.0]), np.arange(4)
    def best(a: Any, b: Any) -> Any:
        first = a["x"] >= b["x"]
        return {"x": lax.select(first, a["x"], b["x"]), "i": lax.select(first, a["i"], b["i"])}
    found = lax.reduce_window({"x": x, "i": y}, {"x": -np.inf, "i": -1}, best, (2,))
    assert_array_equal(found["i"], [0, 2, 3])
    slopes = cj.grad(lambda x: lax.reduce_window({"x": x, "i": y}, {"x": -np.inf, "i": -1}, best, (2,))["x"].sum())(x)
    assert_array_equal(slopes, [1.0, 0.0, 1.0, 1.0])


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint64", "float16", ml_dtypes.bfloat16, "complex64"])
def test_extrema_of_every_dtype(dtype: Any) -> None:
    x = np.array([1, 0, 3, 2, 1, 2]).astype(dtype)
    for way in WAYS.values():
        found = way(lambda x: lax.reduce_window_max(x, (2,), (2,)))(x)
        assert found.dtype == x.dtype
        assert_array_equal(np.asarray(found), np.array([1, 3, 2]).astype(dtype))


def test_windows_far_larger_than_the_operand_take_no_time() -> None:
    huge = 2 ** 40
    for way in WAYS.values():
        total = way(lambda x: lax.reduce_window(x, 0.0, lax.add, (huge,), (1,), ((huge - 1, 0),)))
        assert_array_equal(total(np.arange(4.0)), [0.0, 1.0, 3.0, 6.0])
    assert_array_equal(lax.reduce_window(np.ones(3), 0.0, lax.add, (2,), (huge,), ((0, huge),)), [2.0, 0.0])
    assert lax.reduce_window(np.ones(3), 0.0, lax.add, (huge,)).shape == (0,)


def test_empty_operands_and_batches() -> None:
    assert_array_equal(lax.reduce_window(np.ones((0, 2)), 0.0, lax.add, (2, 1), (1, 1), ((2, 2), (0, 0))),
                       np.zeros((3, 2)))
    pool = cj.vmap(cj.grad(lambda x: lax.reduce_window(x, -np.inf, lax.max, (2,)).sum()))
    assert pool(np.ones((0, 4))).shape == cj.jit(pool)(np.ones((0, 4))).shape == (0, 4)
    assert_array_equal(cj.grad(lambda x: lax.reduce_window(x, -np.inf, lax.max, (5,)).sum())(np.ones(3)), np.zeros(3))


def test_a_rule_of_pooling_works_within_loops_of_mapped_gradients() -> None:
    x = apart(RNG, (3, 6))
    def step(x: Any, _: Any) -> Any:
        return x - 0.1 * cj.grad(lambda x: (lax.reduce_window(x, -np.inf, lax.max, (2,), (2,)) ** 2).sum())(x), None
    looped = cj.jit(cj.vmap(lambda x: lax.scan(step, x, None, length=4)[0]))
    wanted = []
    for row in x:
        for _ in range(4):
            row, _ = step(row, None)
        wanted.append(np.asarray(row))
    assert_allclose(looped(x), wanted, rtol=1e-12)


@pytest.mark.sample(12)
@pytest.mark.parametrize(("combine", "init"), [(lax.add, 0.0), (lax.max, -np.inf), (lax.min, np.inf), (lax.mul, 1.0)])
@pytest.mark.parametrize(("size", "window", "padding", "stride"), [
    (1, 1, (1, 1), 1), (1, 2, (3, 0), 1), (5, 3, (2, -4), 1), (3, 2, (1, -2), 1), (2, 1, (-1, 0), 1),
    (4, 1, (-1, -1), 2)])
def test_windows_that_come_down_to_one_element_leave_the_process_alive(
        combine: Any, init: float, size: int, window: int, padding: Any, stride: int) -> None:
    x = RNG.standard_normal((size, 2))

    def reduced(x: Any) -> Any:
        return lax.reduce_window(x, init, combine, (window, 1), (stride, 1), (padding, (0, 0)))

    def slope(x: Any) -> Any:
        return cj.grad(lambda x: lax.tanh(reduced(x)).sum())(x)
    assert_array_equal(cj.jit(reduced)(x), reduced(x))
    assert_allclose(cj.jit(slope)(x), slope(x), rtol=1e-12)
    assert_allclose(cj.jit(cj.vmap(slope))(x[None])[0], slope(x), rtol=1e-12)
