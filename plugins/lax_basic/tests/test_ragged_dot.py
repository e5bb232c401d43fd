"""Products of groups beside sums over masked operands: values, derivatives, maps; and beside jax if it is installed."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import corejax as cj
from corejax import lax
from corejax.errors import CorejaxError
from corejax_lax_basic._ragged_layout import Layout

PLAIN = ((((1,), (1,)), ((), ())), (0,), (0,))


def masked(x: Any, sizes: Any, numbers: Any) -> Any:
    """The elements of lhs in each group, zeros elsewhere: with a new first axis."""
    ((lc, _), (lb, _)), (ragged,), _ = numbers
    axes = lc if ragged in lc else [d for d in range(x.ndim) if d not in (*lc, *lb)]
    prefix = [*lb, *axes[:axes.index(ragged)]]
    count = x.shape[ragged]
    sizes = np.broadcast_to(sizes, [*[x.shape[d] for d in prefix], sizes.shape[-1]])
    ends = np.minimum(sizes.cumsum(-1), count)
    starts = np.minimum(ends, np.concatenate([np.zeros_like(ends[..., :1]), ends[..., :-1]], -1))
    row = np.arange(count)
    mask = np.moveaxis((row >= starts[..., None]) & (row < ends[..., None]), -2, 0)
    order = np.argsort([*prefix, ragged], kind="stable")
    mask = mask.transpose(0, *(order + 1)).reshape(
        mask.shape[0], *[x.shape[d] if d in (*prefix, ragged) else 1 for d in range(x.ndim)])
    return np.where(mask, x, 0)


def expected(x: Any, y: Any, sizes: Any, numbers: Any) -> Any:
    ((lc, rc), (lb, rb)), (ragged,), group = numbers
    left = "abcdefgh"[:x.ndim]
    names = dict(zip((*rc, *rb), [left[d] for d in (*lc, *lb)], strict=True)) | {d: "z" for d in group}
    right = "".join([names.get(d, "mnopqrst"[d]) for d in range(y.ndim)])
    out = [left[d] for d in lb] + [left[d] for d in range(x.ndim) if d not in (*lc, *lb)]
    out += [right[d] for d in range(y.ndim) if d not in names]
    return np.einsum(f"z{left},{right}->{'z' if ragged in lc else ''}{''.join(out)}", masked(x, sizes, numbers), y)


def draw(rng: np.random.Generator) -> tuple[Any, Any, Any, Any]:
    """Operands and dimension numbers: axes in any order, of any kind, some of size 0 or 1."""
    contracted = bool(rng.integers(2))
    batch, contract, free, others = rng.integers(0, 3), rng.integers(contracted, 3), rng.integers(not contracted, 3), 1
    kinds = [*[("b", i) for i in range(batch)], *[("c", i) for i in range(contract)]]
    left, right = [*kinds, *[("f", i) for i in range(free)]], [*kinds, *[("r", i) for i in range(others)]]
    if not contracted:
        right.append(("g", 0))
    size = {kind: int(rng.choice([0, 1, 2, 3, 5], p=[0.05, 0.2, 0.3, 0.25, 0.2])) for kind in {*left, *right}}
    size["g", 0] = int(rng.integers(0, 4))
    left, right = [left[i] for i in rng.permutation(len(left))], [right[i] for i in rng.permutation(len(right))]
    pairs = [tuple([(side.index((kind, i))) for i in range(n)]) for kind, n in (("c", contract), ("b", batch))
             for side in (left, right)]
    ragged = left.index(("c" if contracted else "f", 0))
    numbers = (((pairs[0], pairs[1]), (pairs[2], pairs[3])), (ragged,), () if contracted else (right.index(("g", 0)),))
    x, y = (rng.standard_normal([size[kind] for kind in side]) for side in (left, right))
    axes = pairs[0] if contracted else tuple([d for d in range(x.ndim) if d not in (*pairs[0], *pairs[2])])
    prefix = [x.shape[d] for d in (*pairs[2], *axes[:axes.index(ragged)])] if rng.random() < 0.6 else []
    return x, y, rng.integers(0, max(2, x.shape[ragged] // 2 + 2), [*prefix, size["g", 0]]), numbers


def products(numbers: Any) -> Any:
    chosen = lax.RaggedDotDimensionNumbers(*numbers)
    return lambda x, y, sizes: lax.ragged_dot_general(x, y, sizes, chosen)


@pytest.mark.parametrize("seed", range(12))
def test_products_derivatives_and_maps_are_those_of_masked_operands(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(seed)
    x, y, sizes, numbers = draw(rng)
    fun, wanted = products(numbers), expected(x, y, sizes, numbers)
    assert_allclose(np.asarray(fun(x, y, sizes)), wanted, atol=1e-12)
    for always in (False, True):  # both ways to compute it in a program
        monkeypatch.setattr(Layout, "loops", property(lambda how, always=always: always and how.work > 0))
        assert_allclose(np.asarray(cj.jit(lambda *args: fun(*args))(x, y, sizes)), wanted, atol=1e-12)
    ct, x_dot, y_dot = (rng.standard_normal(shape) for shape in (wanted.shape, x.shape, y.shape))
    x_bar, y_bar = cj.vjp(lambda x, y: fun(x, y, sizes), x, y)[1](ct)
    assert_allclose(np.sum(x_bar * x_dot), np.sum(expected(x_dot, y, sizes, numbers) * ct), atol=1e-10)
    assert_allclose(np.sum(y_bar * y_dot), np.sum(expected(x, y_dot, sizes, numbers) * ct), atol=1e-10)
    for which in product((False, True), repeat=3):
        if not any(which):
            continue
        args = [x, y, sizes]
        dims = [int(rng.integers(0, arg.ndim + 1)) if batched else None
                for arg, batched in zip(args, which, strict=True)]
        stacked = [np.stack([arg, arg // 2 if arg is sizes else arg * 2], d) if d is not None else arg
                   for arg, d in zip(args, dims, strict=True)]
        out = np.asarray(cj.vmap(fun, tuple(dims))(*stacked))
        for k in range(2):
            parts = [np.take(arg, k, d) if d is not None else arg for arg, d in zip(stacked, dims, strict=True)]
            assert_allclose(out[k], expected(*parts, numbers), atol=1e-12, err_msg=str(dims))


@pytest.mark.parametrize(("rows", "columns", "groups"), [(200, 64, 8), (300, 100, 40), (8, 400, 20), (640, 40, 3)])
def test_large_products_run_in_a_loop(rows: int, columns: int, groups: int) -> None:
    rng = np.random.default_rng(rows)
    x, y = rng.standard_normal((rows, columns)), rng.standard_normal((groups, columns, 30))
    for p in (np.full(groups, 0.9 / groups), np.eye(groups)[groups // 2]):  # all alike, and all rows in one group
        sizes = rng.multinomial(rows, [*p, 1 - p.sum()])[:-1]
        jitted = cj.jit(lax.ragged_dot)
        assert "stablehlo.while" in jitted.lower(x, y, sizes).as_text()
        assert_allclose(np.asarray(jitted(x, y, sizes)), expected(x, y, sizes, PLAIN), atol=1e-10)


@pytest.mark.parametrize("call", [lambda f: f, cj.jit])
def test_sizes_may_be_too_large_or_negative(call: Any) -> None:
    x, y = np.ones((4, 1)), np.array([[[1.0]], [[2.0]], [[3.0]]])
    for sizes, wanted in (([2, 9, 9], [1, 1, 2, 2]), ([-3, 1, 2], [2, 3, 3, 0]), ([2 ** 40, 1, 1], [1, 1, 1, 1])):
        out = call(lambda x, y, sizes: lax.ragged_dot(x, y, sizes))(x, y, np.array(sizes))
        assert wanted == np.asarray(out)[:, 0].tolist()
    for dtype in (np.int8, np.uint8, np.int32, np.uint32):
        narrow = np.array([100, 100, 90], dtype)
        out = call(lambda x, y, sizes: lax.ragged_dot(x, y, sizes))(np.ones((300, 1)), y, narrow)
        assert 100 * 1 + 100 * 2 + 90 * 3 == out.sum()


@pytest.mark.parametrize("call", [lambda f: f, cj.jit])
def test_a_group_sees_nothing_of_the_others(call: Any) -> None:
    y = np.array([[[1.0]], [[np.inf]], [[np.nan]]])
    out = call(lambda x, y, sizes: lax.ragged_dot(x, y, sizes))(np.zeros((3, 1)) + 1, y, np.array([2, 0, 0]))
    assert_array_equal(np.asarray(out)[:, 0], [1.0, 1.0, 0.0])
    numbers = lax.RaggedDotDimensionNumbers((((0,), (0,)), ((), ())), [0], [])
    out = call(lambda x, y, sizes: lax.ragged_dot_general(x, y, sizes, numbers))(
        np.array([[1.0], [np.inf]]), np.array([[1.0], [np.nan]]), np.array([1, 0, 1]))
    assert_array_equal(np.asarray(out)[:, 0, 0], [1.0, 0.0, np.nan])


def test_types_precisions_and_batches() -> None:
    x, y, sizes = np.ones((3, 2), np.float16), np.ones((2, 2, 4), np.float16), np.array([1, 2])
    for call in (lambda f: f, cj.jit):
        out = call(lambda x, y: lax.ragged_dot(x, y, sizes, "F32_F32_F32", np.float32))(x, y)
        assert np.float32 == out.dtype
        assert_array_equal(np.asarray(out), np.full((3, 4), 2))
    (eqn,) = cj.make_jaxpr(lambda x, y: lax.ragged_dot(x, y, sizes, ("high", "highest")))(x, y).eqns
    assert ("HIGH", "HIGHEST") == eqn.params["precision"]
    batch = lax.RaggedDotDimensionNumbers((((2,), (1,)), ((0,), (0,))), [0], [])
    left, right = np.ones((4, 2, 3)), np.ones((4, 3, 5))
    assert_array_equal(np.asarray(lax.ragged_dot_general(left, right, np.array([1, 1]), batch)), left @ right)
    assert batch == lax.RaggedDotDimensionNumbers((((2,), (1,)), ((0,), (0,))), (0,), ())


@pytest.mark.parametrize("sizes", [np.array(3), np.array([1.0, 2.0]), np.array([[1], [2]]), np.array([1, 1, 1])])
def test_sizes_that_do_not_fit_are_refused(sizes: Any) -> None:
    with pytest.raises(CorejaxError, match="ragged_dot_general"):
        lax.ragged_dot(np.ones((3, 2)), np.ones((2, 2, 4)), sizes)


@pytest.mark.parametrize("seed", range(6))
def test_products_are_those_of_jax(seed: int) -> None:
    jax = pytest.importorskip("jax")
    rng = np.random.default_rng(100 + seed)
    x, y, sizes, numbers = draw(rng)
    theirs = jax.lax.ragged_dot_general(x, y, sizes, jax.lax.RaggedDotDimensionNumbers(*numbers))
    ours = cj.jit(products(numbers))(x, y, sizes)
    assert theirs.shape == ours.shape and theirs.dtype == ours.dtype
    assert_allclose(np.asarray(ours), np.asarray(theirs), atol=1e-12)
