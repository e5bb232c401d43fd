"""Structured functions with random params beside jax: values, types, two orders of derivatives, and maps."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np
import pytest
from numpy.testing import assert_allclose

import corejax as cj
from corejax import lax
from exhaustive import exhaustive_unless

jax = pytest.importorskip("jax")

Rng = np.random.Generator

#: One set of params is drawn for each function and seed: 3,240 in all.
SEEDS = exhaustive_unless((0).__eq__, range(120))

FLOATS, INTEGERS = ("float32", "float64"), ("int8", "uint32", "int64")


class Drawn(NamedTuple):
    """One set: a function of the library's lax and of arrays, and these. `smooth` says that derivatives agree, too."""

    call: Callable[..., Any]
    args: Sequence[np.ndarray]
    smooth: bool = True


def shape(rng: Rng, least: int = 0, most: int = 3) -> tuple[int, ...]:
    """Often with an axis of size 1, now and then without elements."""
    return tuple(int(rng.choice([0, 1, 1, 2, 2, 3, 3, 4, 5, 7])) for _ in range(rng.integers(least, most + 1)))


def numbers(rng: Rng, sizes: Sequence[int], dtype: str = "float64") -> np.ndarray:
    """Without ties, which derivatives of extremes share out."""
    if np.dtype(dtype).kind in "iu":
        return rng.integers(0, 6, sizes).astype(dtype)
    count = int(np.prod(sizes))
    return (rng.permutation(count).reshape(sizes) / max(count, 1) * 3.0 - 1.4 + rng.uniform(0, 0.01)).astype(dtype)


def operand(rng: Rng, least: int = 1, kinds: Sequence[str] = (*FLOATS, *INTEGERS)) -> np.ndarray:
    return numbers(rng, shape(rng, least), str(rng.choice(kinds)))


def some_axis(rng: Rng, x: np.ndarray, negative: bool = True) -> int:
    return int(rng.integers(-x.ndim if negative else 0, x.ndim))


def some_axes(rng: Rng, x: np.ndarray) -> tuple[int, ...]:
    return tuple(int(d) for d in rng.permutation(x.ndim)[:rng.integers(0, x.ndim + 1)])


def flag(rng: Rng) -> bool:
    return bool(rng.integers(2))


# What is drawn

def sort(rng: Rng) -> Drawn:
    x, count = operand(rng), int(rng.integers(1, 4))
    xs = [x, *[numbers(rng, x.shape, str(rng.choice(FLOATS))) for _ in range(count - 1)]]
    keys, axis = int(rng.integers(1, count + 1)), some_axis(rng, x)
    return Drawn(lambda L, *xs: L.sort(xs, dimension=axis, is_stable=True, num_keys=keys), xs)


def sort_key_val(rng: Rng) -> Drawn:
    keys = operand(rng)
    axis = some_axis(rng, keys)
    return Drawn(lambda L, *xs: L.sort_key_val(*xs, dimension=axis), [keys, numbers(rng, keys.shape)])


def top_k(rng: Rng) -> Drawn:
    x = operand(rng)
    axis = some_axis(rng, x)
    k = int(rng.integers(0, x.shape[axis] + 1))
    return Drawn(lambda L, x: L.top_k(x, k, axis=axis), [x])


def approx_k(rng: Rng) -> Drawn:
    x = operand(rng, kinds=FLOATS)
    x = numbers(rng, tuple(n or 1 for n in x.shape), x.dtype.name)
    axis, name, whole = some_axis(rng, x), str(rng.choice(["approx_max_k", "approx_min_k"])), flag(rng)
    k = int(rng.integers(1, x.shape[axis] + 1))
    return Drawn(lambda L, x: getattr(L, name)(x, k, reduction_dimension=axis, aggregate_to_topk=whole), [x])


def cumulative(rng: Rng) -> Drawn:
    name = str(rng.choice(["cumsum", "cumprod", "cummax", "cummin", "cumlogsumexp"]))
    x = operand(rng, kinds=FLOATS if name == "cumlogsumexp" else (*FLOATS, *INTEGERS))
    axis, reverse = some_axis(rng, x, False), flag(rng)
    return Drawn(lambda L, x: getattr(L, name)(x, axis=axis, reverse=reverse), [x])


def reduce_known(rng: Rng) -> Drawn:
    x = operand(rng, 0)
    name, init = [("add", 0), ("mul", 1), ("max", 0 if x.dtype == "uint32" else -100), ("min", 100)][rng.integers(4)]
    start, axes = np.asarray(init, x.dtype), some_axes(rng, x)
    return Drawn(lambda L, x: L.reduce(x, start, getattr(L, name), axes), [x])


def reduce_unknown(rng: Rng) -> Drawn:
    x = operand(rng, 0, FLOATS)
    axes = some_axes(rng, x)
    low, zero = np.asarray(-100, x.dtype), np.zeros((), x.dtype)
    return Drawn(lambda L, x, y: L.reduce((x, y), (low, zero), lambda a, b: (L.max(a[0], b[0]), L.add(a[1], b[1])),
                                          axes), [x, numbers(rng, x.shape, x.dtype.name)], smooth=False)


def reduce_bits(rng: Rng) -> Drawn:
    x = operand(rng, 0, INTEGERS)
    axes = some_axes(rng, x)
    name = str(rng.choice(["reduce_or", "reduce_and", "reduce_xor", "reduce_sum", "reduce_prod"]))
    return Drawn(lambda L, x: getattr(L, name)(x, axes), [x])


def arg_extreme(rng: Rng) -> Drawn:
    x = numbers(rng, tuple(n or 1 for n in shape(rng, 1)), str(rng.choice((*FLOATS, *INTEGERS))))
    axis, dtype = some_axis(rng, x, False), str(rng.choice(["int8", "uint16", "int32", "int64"]))
    name = str(rng.choice(["argmax", "argmin"]))
    return Drawn(lambda L, x: getattr(L, name)(x, axis, dtype), [x])


def dot_general(rng: Rng) -> Drawn:
    batch, contracted = shape(rng, 0, 2), shape(rng, 0, 2)
    sides = []
    for free in (shape(rng, 0, 1), shape(rng, 0, 1)):
        sizes = [*batch, *contracted, *free]
        order = rng.permutation(len(sizes))
        where = np.argsort(order)
        sides.append((tuple(sizes[i] for i in order), tuple(int(i) for i in where[:len(batch)]),
                      tuple(int(i) for i in where[len(batch):len(batch) + len(contracted)])))
    (left, left_batch, left_axes), (right, right_batch, right_axes) = sides
    dtype = str(rng.choice([*FLOATS, "int32"]))
    wanted = rng.choice([None, "float64"]) if dtype != "int32" else rng.choice([None, "int32", "int64"])
    precision = rng.choice([None, "highest", "default"])
    numbers_ = ((left_axes, right_axes), (left_batch, right_batch))
    return Drawn(lambda L, x, y: L.dot_general(x, y, numbers_, precision=precision, preferred_element_type=wanted),
                 [numbers(rng, left, dtype), numbers(rng, right, dtype)])


def ragged_dot(rng: Rng) -> Drawn:
    m, k, n, groups = (int(size) for size in rng.integers((0, 1, 1, 1), (9, 5, 5, 5)))
    sizes = rng.multinomial(m, np.full(groups, 1 / groups)).astype(np.int32)
    dtype = str(rng.choice(FLOATS))
    sides = [numbers(rng, (m, k), dtype), numbers(rng, (groups, k, n), dtype)]
    return Drawn(lambda L, x, y: L.ragged_dot(x, y, sizes), sides)


def split(rng: Rng) -> Drawn:
    x = operand(rng)
    axis = some_axis(rng, x)
    cuts = np.sort(rng.integers(0, x.shape[axis] + 1, rng.integers(0, 4)))
    sizes = [int(n) for n in np.diff([0, *cuts, x.shape[axis]])]
    return Drawn(lambda L, x: L.split(x, sizes, axis), [x])


def tile(rng: Rng) -> Drawn:
    x = operand(rng, 0)
    reps = [int(n) for n in rng.integers(0, 4, x.ndim)]
    return Drawn(lambda L, x: L.tile(x, reps), [x])


def stack_and_unstack(rng: Rng) -> Drawn:
    x = operand(rng, 0)
    axis = int(rng.integers(-x.ndim - 1, x.ndim + 1))
    return Drawn(lambda L, *xs: L.unstack(L.stack(xs, axis), axis), [x] * int(rng.integers(1, 4)))


def pad(rng: Rng) -> Drawn:
    x = operand(rng, 0)
    how = []
    for n in x.shape:
        inner = int(rng.integers(0, 3))
        whole = n + max(n - 1, 0) * inner
        low = int(rng.integers(-min(whole, 2), 3))
        how.append((low, int(rng.integers(-min(whole + min(low, 0), 2), 3)), inner))
    return Drawn(lambda L, x, fill: L.pad(x, fill, how), [x, np.asarray(2, x.dtype)])


def moved(rng: Rng) -> Drawn:
    x = operand(rng, 0)
    axes, order = some_axes(rng, x), tuple(int(d) for d in rng.permutation(x.ndim))
    new = tuple(int(d) for d in rng.permutation(x.ndim + 2)[:2] - rng.integers(0, 2) * (x.ndim + 2))
    return Drawn(lambda L, x: L.expand_dims(L.transpose(L.rev(x, axes), order), new), [x])


def broadcast_in_dim(rng: Rng) -> Drawn:
    x = operand(rng, 0)
    rank = x.ndim + int(rng.integers(0, 3))
    axes = tuple(sorted(int(d) for d in rng.permutation(rank)[:x.ndim]))
    sizes = [int(n) for n in rng.integers(0, 4, rank)]
    for d, n in zip(axes, x.shape, strict=True):
        sizes[d] = n if n != 1 or flag(rng) else sizes[d]
    return Drawn(lambda L, x: L.broadcast_in_dim(x, tuple(sizes), axes), [x])


def strided(rng: Rng) -> Drawn:
    x = operand(rng, 0)
    starts = [int(rng.integers(0, n + 1)) for n in x.shape]
    ends = [int(rng.integers(low, n + 1)) for low, n in zip(starts, x.shape, strict=True)]
    strides = [int(n) for n in rng.integers(1, 4, x.ndim)]
    return Drawn(lambda L, x: L.slice(x, starts, ends, strides), [x])


def dynamic_slice(rng: Rng) -> Drawn:
    x = operand(rng)
    sizes = [int(rng.integers(0, n + 1)) for n in x.shape]
    dtype = str(rng.choice(["int32", "int64", "int8"]))
    places = [np.asarray(rng.integers(-9, 9), dtype) for _ in x.shape]
    return Drawn(lambda L, x, *at: L.dynamic_slice(x, at, sizes), [x, *places])


def dynamic_update_slice(rng: Rng) -> Drawn:
    x = operand(rng)
    update = numbers(rng, [int(rng.integers(0, n + 1)) for n in x.shape], x.dtype.name)
    places = [np.asarray(rng.integers(-9, 9), "int32") for _ in x.shape]
    return Drawn(lambda L, x, y, *at: L.dynamic_update_slice(x, y, at), [x, update, *places])


def index_take(rng: Rng) -> Drawn:
    x = numbers(rng, tuple(n or 1 for n in shape(rng, 1)), str(rng.choice((*FLOATS, *INTEGERS))))
    axes = tuple(sorted(int(d) for d in rng.permutation(x.ndim)[:rng.integers(1, x.ndim + 1)]))
    count = int(rng.integers(0, 4))
    places = [rng.integers(0, x.shape[d], count).astype("int32") for d in axes]
    return Drawn(lambda L, x, *at: L.index_take(x, at, axes), [x, *places])


def scattered(rng: Rng) -> Drawn:
    x = numbers(rng, tuple(n or 1 for n in shape(rng, 1, 2)), str(rng.choice(FLOATS)))
    name = str(rng.choice(["scatter_sub", "scatter_add", "scatter_mul"]))
    mode = str(rng.choice(["clip", "fill", "promise_in_bounds"]))
    low, high = (0, x.shape[0]) if mode == "promise_in_bounds" or name == "scatter_mul" else (-2, x.shape[0] + 2)
    places = rng.permutation(np.arange(low, high))[:int(rng.integers(0, 4))].astype("int32")[:, None]
    if name == "scatter_mul" and mode != "promise_in_bounds":
        places = np.unique(places)[:, None]
    updates = numbers(rng, (len(places), *x.shape[1:]), x.dtype.name)
    window = tuple(range(1, x.ndim))
    return Drawn(lambda L, x, y: getattr(L, name)(
        x, places, y, L.ScatterDimensionNumbers(window, (0,), (0,)), mode=mode,
        unique_indices=name == "scatter_mul"), [x, updates])


def associative_scan(rng: Rng) -> Drawn:
    x = operand(rng, kinds=FLOATS)
    axis, reverse, name = some_axis(rng, x, False), flag(rng), str(rng.choice(["add", "mul", "max"]))
    return Drawn(lambda L, x, y: L.associative_scan(
        lambda a, b: (L.mul(a[0], b[0]), L.add(L.mul(b[0], a[1]), b[1])) if name == "mul" else (
            getattr(L, name)(a[0], b[0]), L.add(a[1], b[1])), (x, y), reverse=reverse, axis=axis),
        [x, numbers(rng, x.shape, x.dtype.name)])


def bitcast(rng: Rng) -> Drawn:
    kinds = {1: ["int8", "uint8"], 2: ["int16", "float16", "bfloat16"], 4: ["uint32", "float32"],
             8: ["int64", "float64"]}
    size, other = (int(rng.choice([*kinds])) for _ in range(2))
    sizes = shape(rng, 0)
    sizes = (*sizes, other // size) if other > size else sizes
    bits = rng.integers(0, 60, (*sizes, size), np.uint8)  # no NaN among the results
    kind, new = str(rng.choice(kinds[size])), str(rng.choice(kinds[other]))
    dtype = np.dtype(ml_dtypes.bfloat16 if kind == "bfloat16" else kind)
    return Drawn(lambda L, x: L.bitcast_convert_type(x, new), [bits.view(dtype)[..., 0]], smooth=False)


def reduce_precision(rng: Rng) -> Drawn:
    x = operand(rng, 0, FLOATS)
    exponent, mantissa = int(rng.integers(1, 12)), int(rng.integers(0, 24))
    return Drawn(lambda L, x: L.reduce_precision(x, exponent, mantissa), [x], smooth=False)


def clamp_or_select(rng: Rng) -> Drawn:
    x = operand(rng, 0, FLOATS)
    if flag(rng):
        low, high = (np.asarray(end, x.dtype) if flag(rng) else np.full(x.shape, end, x.dtype) for end in (-0.7, 0.8))
        alike = low.shape == high.shape == x.shape  # jax has no derivatives beside scalars
        return Drawn(lambda L, *xs: L.clamp(*xs), [low, x, high], smooth=alike)
    which = rng.integers(0, 3, x.shape if flag(rng) else ()).astype("int32")
    return Drawn(lambda L, which, *xs: L.select_n(which, *xs), [which, x, 2 * x, 3 * x])


def linear_solve(rng: Rng) -> Drawn:
    n, symmetric, aux = int(rng.integers(1, 4)), flag(rng), flag(rng)
    a = rng.normal(size=(n, n)) / 4 + 2 * np.eye(n)
    a = (a + a.T) / 2 if symmetric else a

    def call(L: Any, a: Any, b: Any) -> Any:
        whole = L.mul(0.5, L.add(a, L.transpose(a, (1, 0)))) if symmetric else a

        def solve(matvec: Any, b: Any) -> Any:
            columns = [matvec(np.eye(n)[:, i]) for i in range(n)]
            matrix = L.transpose(L.stack(columns, 0), (1, 0))
            x = b
            for _ in range(60):  # Richardson's iteration, as neither library needs another then
                x = L.add(x, L.mul(0.3, L.sub(b, L.dot(matrix, x))))
            return (x, L.mul(2.0, b[0])) if aux else x
        return L.custom_linear_solve(lambda x: L.dot(whole, x), b, solve, None if symmetric else solve,
                                     symmetric=symmetric, has_aux=aux)
    return Drawn(call, [a, numbers(rng, (n,))])


DRAWS = {draw.__name__: draw for draw in (
    sort, sort_key_val, top_k, approx_k, cumulative, reduce_known, reduce_unknown, reduce_bits, arg_extreme,
    dot_general, ragged_dot, split, tile, stack_and_unstack, pad, moved, broadcast_in_dim, strided, dynamic_slice,
    dynamic_update_slice, index_take, scattered, associative_scan, bitcast, reduce_precision, clamp_or_select,
    linear_solve)}


# What is compared

def flat(outs: Any) -> list[Any]:
    return [*outs] if isinstance(outs, (tuple, list)) else [outs]


def same(ours: Any, theirs: Any, loose: float = 1.0) -> None:
    for x, y in zip(flat(ours), flat(theirs), strict=True):
        if not isinstance(y, np.ndarray):  # jax gives back the operand where there is nothing to do
            assert (x.shape, x.dtype, x.weak_type) == (y.shape, y.dtype, y.weak_type)
        wide = np.float64 if x.dtype.kind in "fV" else x.dtype
        eps = float(ml_dtypes.finfo(x.dtype).eps) if x.dtype.kind in "fV" else 0.0
        wanted = np.asarray(y).astype(wide)
        size = float(np.abs(wanted).max(initial=1.0)) if eps else 0.0
        assert_allclose(np.asarray(x).astype(wide), wanted, rtol=64 * loose * eps, atol=64 * loose * eps * size)


def compare(drawn: Drawn, rng: Rng) -> None:
    def ours(*args: Any) -> Any:
        return drawn.call(lax, *args)

    def theirs(*args: Any) -> Any:
        return drawn.call(jax.lax, *args)

    args, there = drawn.args, [jax.numpy.asarray(x) for x in drawn.args]
    wanted = jax.jit(theirs)(*there)
    for call in (ours, cj.jit(ours)):
        same(call(*map(cj.device_put, args)), wanted)

    moving = [i for i, x in enumerate(args) if x.dtype in FLOATS]
    if moving and drawn.smooth:
        def along(run: Any, library: Any) -> Any:
            def of_moving(*moved: Any) -> Any:
                given = [*(there if library is jax else map(cj.device_put, args))]
                for i, x in zip(moving, moved, strict=True):
                    given[i] = x
                return [out for out in flat(run(*given)) if out.dtype in FLOATS]
            return of_moving

        tangents = [rng.normal(size=args[i].shape).astype(args[i].dtype) for i in moving]
        points = [args[i] for i in moving]
        cts = [rng.normal(size=out.shape).astype(out.dtype) for out in flat(wanted) if out.dtype in FLOATS]

        def second(library: Any, run: Any) -> Any:
            def gradient(*at: Any) -> Any:
                outs, pull = library.vjp(along(run, library), *at)
                return pull(type(outs)(cts))
            return library.jvp(gradient, tuple(points), tuple(tangents))

        mine, others = cj.jit(lambda: second(cj, ours))(), jax.jit(lambda: second(jax, theirs))()
        for x, y in zip(mine, others, strict=True):
            same(x, y, 16.0)
        same(cj.jvp(along(ours, cj), tuple(points), tuple(tangents))[1],
             jax.jvp(along(theirs, jax), tuple(points), tuple(tangents))[1], 4.0)

    dims = [int(rng.integers(0, x.ndim + 1)) if i == 0 or flag(rng) else None for i, x in enumerate(args)]
    batch = int(rng.integers(1, 4))
    rows = [x if d is None else np.stack([x] * batch, d) for x, d in zip(args, dims, strict=True)]
    try:
        mapped = jax.jit(jax.vmap(theirs, dims))(*map(jax.numpy.asarray, rows))
    except (NotImplementedError, ValueError, IndexError):  # of ragged_dot, bitcast_convert_type
        mapped = cj.vmap(ours, dims)(*map(cj.device_put, rows))
        for k in range(batch):
            same([out[k] for out in flat(mapped)], wanted)
    for run in (cj.vmap(ours, dims), cj.jit(cj.vmap(ours, dims))):
        same(run(*map(cj.device_put, rows)), mapped)


@pytest.mark.sample(12)
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", DRAWS)
def test_random_params_mean_what_they_mean_to_jax(name: str, seed: int) -> None:
    with jax.enable_x64(True):
        rng = np.random.default_rng([zlib.crc32(name.encode()), seed])
        compare(DRAWS[name](rng), rng)
