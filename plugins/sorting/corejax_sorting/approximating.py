"""The largest and the smallest floats along an axis, approximately: here, all of them, as `top_k` finds them."""

from __future__ import annotations

from collections.abc import Iterator
from math import ceil, floor, log, log2
from typing import Any

import numpy as np

from corejax import lax
from corejax.core import Array, ArrayLike, ShapedArray, Zero, aval_of, dtypes
from corejax.errors import CorejaxValueError
from corejax.plugin import Sample, define, hookimpl, not_linear, public, refused, shaping
from corejax_sorting import _host
from corejax_sorting._elements import taken
from corejax_sorting.largest import top_k

__all__ = ["approx_max_k", "approx_min_k", "approx_top_k"]


class ApproxTopK:
    """`approx_top_k(operand, ...)`: what `approx_max_k` and `approx_min_k` apply; `is_max_k` says which.

    >>> values, _ = approx_top_k(np.array([9.0, 3.0, 6.0]), k=2, reduction_dimension=0, is_max_k=False)
    >>> values.tolist()
    [3.0, 6.0]
    """

    name = "approx_top_k"
    operands = ("operand",)
    multiple_results = True
    transpose = not_linear("which elements are the largest is no linear function of them; the derivative is a gather")

    @hookimpl
    def impl(self, args: Any, *, k: int, reduction_dimension: int, recall_target: float, is_max_k: bool,
             reduction_input_size_override: int, aggregate_to_topk: bool) -> Any:
        (x,) = args
        count = _count(x, k, reduction_dimension, recall_target, reduction_input_size_override, aggregate_to_topk)
        if is_max_k:
            return _host.largest(x, count, reduction_dimension)
        wide = x if x.dtype.itemsize > 1 else x.astype(np.float32)
        if wide is not x:  # NaNs of one byte need not keep their signs
            wide = np.where(np.isnan(wide), np.float32(np.nan), wide)
        values, places = _host.largest(-wide, count, reduction_dimension)
        return [(-values).astype(x.dtype, copy=False), places]

    @hookimpl
    def abstract_eval(self, avals: Any, *, k: int, reduction_dimension: int, recall_target: float = 0.95,
                      is_max_k: bool = True, reduction_input_size_override: int = -1,
                      aggregate_to_topk: bool = True) -> Any:
        (x,) = avals
        shaping.as_flag(self.name, "is_max_k", is_max_k)
        shaping.check_axes(self.name, "reduction_dimension", (reduction_dimension,), x.ndim)
        count, at = _approximated(self.name, x, k, reduction_dimension, recall_target, reduction_input_size_override,
                                  aggregate_to_topk)
        shape = (*x.shape[:at], count, *x.shape[at + 1:])
        return x.update(shape=shape), x.update(shape=shape, dtype=dtypes.int32)

    @hookimpl
    def decompose(self, args: Any, *, k: int, reduction_dimension: int, recall_target: float, is_max_k: bool,
                  reduction_input_size_override: int, aggregate_to_topk: bool) -> Any:
        (x,) = args
        count = _count(aval_of(x), k, reduction_dimension, recall_target, reduction_input_size_override,
                       aggregate_to_topk)
        return _found(x, count, reduction_dimension, is_max_k)

    @hookimpl
    def jvp(self, primals: Any, tangents: Any, *, reduction_dimension: int, **params: Any) -> Any:
        values, places = approx_top_k.primitive.bind(*primals, reduction_dimension=reduction_dimension, **params)
        return [values, places], [taken(tangents[0], places, reduction_dimension, unique=True),
                                  Zero(aval_of(places).tangent)]

    @hookimpl
    def vmap(self, axis: Any, args: Any, dims: Any, *, k: int, reduction_dimension: int, recall_target: float,
             is_max_k: bool, reduction_input_size_override: int, aggregate_to_topk: bool) -> Any:
        (x,), (dim,) = args, dims
        ndim = aval_of(x).ndim - 1
        (at,) = shaping.shifted((reduction_dimension,), dim)
        if aggregate_to_topk:
            return approx_top_k.primitive.bind(
                x, k=k, reduction_dimension=at, recall_target=recall_target, is_max_k=is_max_k, aggregate_to_topk=True,
                reduction_input_size_override=reduction_input_size_override), [dim] * 2
        # how many partial results there are depends on the number of axes
        count = _partial_count(aval_of(x).shape[at], ndim, k, recall_target, reduction_input_size_override)
        return _found(x, count, at, is_max_k), [dim] * 2

    @hookimpl
    def samples(self, rng: Any) -> Iterator[Sample]:
        def params(k: int, reduction_dimension: int = 0, is_max_k: bool = True, recall_target: float = 0.95,
                   reduction_input_size_override: int = -1, aggregate_to_topk: bool = True) -> dict[str, Any]:
            return {"k": k, "reduction_dimension": reduction_dimension, "recall_target": recall_target,
                    "is_max_k": is_max_k, "reduction_input_size_override": reduction_input_size_override,
                    "aggregate_to_topk": aggregate_to_topk}

        def apart(*shape: int) -> Any:  # far from each other, so that differences don't see ties
            return (rng.permutation(int(np.prod(shape))).reshape(shape) - 2.3) * 0.5

        for is_max in (True, False):
            yield Sample([apart(5)], params(2, is_max_k=is_max))
            yield Sample([apart(2, 6)], params(3, 1, is_max, 0.5))
            yield Sample([apart(6, 2)], params(2, 0, is_max, aggregate_to_topk=False))
            yield Sample([apart(4).astype(np.float16)], params(2, 0, is_max, reduction_input_size_override=9))
        x = np.array([9.0, 3.0, 6.0, 10.0])
        yield Sample([x], params(2), results=[np.array([10.0, 9.0]), np.array([3, 0], np.int32)])
        yield Sample([x], params(2, is_max_k=False), results=[np.array([3.0, 6.0]), np.array([1, 2], np.int32)])
        for bad in (params(0), params(5), params(1, recall_target=0.0), params(1, reduction_input_size_override=3)):
            yield Sample([x], bad, error=ValueError)
        yield Sample([np.arange(3)], params(1), error=ValueError)
        yield Sample([x], params(1, 1), error=IndexError)


approx_top_k: Any = define(ApproxTopK())


@public
def approx_max_k(operand: ArrayLike, k: int, reduction_dimension: int = -1, recall_target: float = 0.95,
                 reduction_input_size_override: int = -1, aggregate_to_topk: bool = True) -> tuple[Array, Array]:
    """`approx_max_k(operand, k, reduction_dimension=-1, recall_target=0.95, ...)`: the k largest floats, or nearly.

    At least the share `recall_target` of them are among the results; here all are, on every platform, so this is
    `top_k`. Without `aggregate_to_topk` there are more results than k: as many as an approximation on a TPU needs,
    which depends on `reduction_input_size_override`, the size of the whole where the operand is a part of it.

    >>> values, places = approx_max_k(np.array([9.0, 3.0, 6.0, 10.0]), 2)
    >>> values.tolist(), places.tolist()
    ([10.0, 9.0], [3, 0])
    """
    return _bound("approx_max_k", True, operand, k, reduction_dimension, recall_target, reduction_input_size_override,
                  aggregate_to_topk)


@public
def approx_min_k(operand: ArrayLike, k: int, reduction_dimension: int = -1, recall_target: float = 0.95,
                 reduction_input_size_override: int = -1, aggregate_to_topk: bool = True) -> tuple[Array, Array]:
    """`approx_min_k(operand, k, reduction_dimension=-1, recall_target=0.95, ...)`: the k smallest floats, or nearly.

    The results rise; NaN comes last. As for the rest, see `approx_max_k`.

    >>> values, places = approx_min_k(np.array([9.0, 3.0, 6.0, 10.0]), 2)
    >>> values.tolist(), places.tolist()
    ([3.0, 6.0], [1, 2])
    """
    return _bound("approx_min_k", False, operand, k, reduction_dimension, recall_target, reduction_input_size_override,
                  aggregate_to_topk)


def _bound(name: str, is_max: bool, operand: ArrayLike, k: int, dimension: int, recall: float, whole: int,
           aggregated: bool) -> tuple[Array, Array]:
    """The primitive, applied to params that are checked under the name of the function."""
    _, at = _approximated(name, aval_of(operand), k, dimension, recall, whole, aggregated)
    values, places = approx_top_k.primitive.bind(
        operand, k=shaping.as_int(name, "k", k), reduction_dimension=at, recall_target=float(recall), is_max_k=is_max,
        reduction_input_size_override=shaping.as_int(name, "an overridden size", whole),
        aggregate_to_topk=shaping.as_flag(name, "aggregate_to_topk", aggregated))
    return values, places


def _found(x: Any, count: int, dimension: int, is_max: bool) -> list[Any]:
    if is_max:
        return [*top_k(x, count, axis=dimension)]
    values, places = top_k(_negated(x), count, axis=dimension)
    values, dtype = lax.neg(values), aval_of(x).dtype
    return [values if aval_of(values).dtype == dtype else lax.convert_element_type(values, dtype), places]


def _count(x: Any, k: int, dimension: int, recall: float, whole: int, aggregated: bool) -> int:
    """How many results there are for an operand, by its shape."""
    return k if aggregated else _partial_count(x.shape[dimension], x.ndim, k, recall, whole)


def _negated(x: Any) -> Any:
    """The numbers with the other sign, NaNs too: where these need not keep theirs, in a wider dtype."""
    if aval_of(x).dtype.itemsize > 1:
        return lax.neg(x)
    wide = lax.convert_element_type(x, dtypes.float32)
    return lax.neg(lax.select(lax.ne(wide, wide), lax.full_like(wide, np.nan), wide))


def _approximated(name: str, aval: ShapedArray, k: int, dimension: int, recall: float, whole: int,
                  aggregated: bool) -> tuple[int, int]:
    """How many results there are, and along which axis."""
    at = shaping.canonical_axis(name, dimension, aval.ndim)
    if not dtypes.is_float(aval.dtype):
        raise refused(name, "only floats are approximated", got=str(aval), wanted="real floating-point numbers",
                      todo="use lax.top_k, which takes integers and is exact", kind=CorejaxValueError)
    size, k, whole = aval.shape[at], shaping.as_int(name, "k", k), shaping.as_int(name, "an overridden size", whole)
    if not 1 <= k <= size:
        raise refused(name, f"there are no {k} of {size} elements to find", got=f"k={k} for {aval}",
                      wanted=f"k from 1 to the size of axis {at}", todo="test the shape, which is static, first",
                      kind=CorejaxValueError)
    if not 0.0 < recall <= 1.0:
        raise refused(name, "recall_target is the share to be found", got=f"recall_target={recall}",
                      wanted="a number above 0, at most 1", todo="pass 0.95 to find 95%", kind=CorejaxValueError)
    if whole != -1 and whole < size:
        raise refused(name, "the whole can't be smaller than this part of it",
                      got=f"reduction_input_size_override={whole} for {aval}", wanted=f"at least {size}, or -1",
                      todo="leave it out unless the operand is a part of something larger", kind=CorejaxValueError)
    if shaping.as_flag(name, "aggregate_to_topk", aggregated):
        return k, at
    return _partial_count(size, aval.ndim, k, recall, whole), at


def _partial_count(size: int, ndim: int, k: int, recall: float, whole: int) -> int:
    """How many partial results an approximation keeps: whole tiles of a TPU, 2 ** n elements giving one of them."""
    tile = 1024 if ndim == 1 else 128
    if size <= tile:
        return size
    if k == 1:
        return tile
    if recall >= 1.0:
        return size
    whole = size if whole == -1 else whole
    needed = min(max(floor((1 - k) / log(recall)), tile), whole)
    halvings = floor(log2(whole // needed))
    if not halvings:
        return size
    tiles = ceil(ceil(size / tile) / (1 << min(halvings, ceil(log2(size // tile)))))
    return min(tiles * tile, size)  # XLA pads a part of little more than a tile; here there is nothing beyond it
