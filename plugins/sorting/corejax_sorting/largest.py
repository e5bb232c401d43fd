"""The largest and the smallest elements along an axis, and where they are.

They are found in the total order of floats: -NaN < -inf < ... < -0.0 < 0.0 < ... < inf < NaN. Of equal elements, those
at lower places come first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import ceil, floor, log, log2
from typing import Any

import numpy as np

from corejax import lax
from corejax.core import Array, ArrayLike, ShapedArray, Zero, aval_of, dtypes
from corejax.errors import CorejaxValueError
from corejax.plugin import Sample, define, hookimpl, not_linear, public, refused, shaping
from corejax_sorting import _host, _lowering
from corejax_sorting._elements import taken

__all__ = ["approx_max_k", "approx_min_k", "top_k"]


class TopK:
    """`top_k(operand, k, *, axis=-1)`: the k largest elements along an axis, falling, and their places as int32.

    Of equal elements, those at lower places come first. Floats are in their total order: NaN is above infinity, 0.0
    above -0.0, and a NaN with a minus sign is below everything.

    >>> values, places = top_k(np.array([9.0, 3.0, 6.0, 10.0]), 2)
    >>> values.tolist(), places.tolist()
    ([10.0, 9.0], [3, 0])
    """

    name = "top_k"
    operands = ("operand",)
    multiple_results = True
    transpose = not_linear("which elements are the largest is no linear function of them; the derivative is a gather")

    def function(self, bind: Callable[..., Any]) -> Any:
        def top_k(operand: ArrayLike, k: int, *, axis: int = -1) -> tuple[Array, Array]:
            at = shaping.canonical_axis("top_k", axis, aval_of(operand).ndim)
            values, places = bind(operand, k=shaping.as_int("top_k", "k", k), dimension=at)
            return values, places
        return top_k

    @hookimpl
    def impl(self, args: Any, *, k: int, dimension: int) -> Any:
        return _host.largest(args[0], k, dimension)

    @hookimpl
    def abstract_eval(self, avals: Any, *, k: int, dimension: int) -> Any:
        (x,) = avals
        shaping.check_axes(self.name, "dimension", (dimension,), x.ndim)
        if dtypes.kind(x.dtype) not in "biuf":
            raise refused(self.name, f"elements of type {dtypes.short_name(x.dtype)} have no largest ones", got=str(x),
                          wanted="real numbers or booleans", kind=CorejaxValueError,
                          todo="take the largest moduli or real parts; lax.sort orders complex numbers")
        size = x.shape[dimension]
        if not 0 <= k <= size:
            raise refused(self.name, f"there are no {k} largest of {size} elements", got=f"k={k} for {x}",
                          wanted=f"k from 0 to {size}, the size of axis {dimension}", kind=CorejaxValueError,
                          todo=f"pass min(k, {size})" if k > 0 else "pass how many elements are wanted")
        if size - 1 > np.iinfo(np.int32).max:
            raise refused(self.name, "places are int32, and there are more than that counts", got=str(x),
                          wanted="at most 2147483648 elements along the axis", kind=CorejaxValueError,
                          todo="split the axis, and take the largest of the largest")
        shape = (*x.shape[:dimension], k, *x.shape[dimension + 1:])
        return x.update(shape=shape), x.update(shape=shape, dtype=dtypes.int32)

    @hookimpl
    def jvp(self, primals: Any, tangents: Any, *, k: int, dimension: int) -> Any:
        values, places = top_k.primitive.bind(*primals, k=k, dimension=dimension)
        return [values, places], [taken(tangents[0], places, dimension, unique=True), Zero(aval_of(places).tangent)]

    @hookimpl
    def vmap(self, axis: Any, args: Any, dims: Any, *, k: int, dimension: int) -> Any:
        (at,) = shaping.shifted((dimension,), dims[0])
        return top_k.primitive.bind(args[0], k=k, dimension=at), [dims[0]] * 2

    @hookimpl
    def xla_translation(self, ctx: Any, args: Any, *, k: int, dimension: int) -> Any:
        return _lowering.largest(ctx, args[0], k, dimension)

    @hookimpl
    def samples(self, rng: Any) -> Iterator[Sample]:
        def apart(*shape: int) -> Any:  # far from each other, so that differences don't see ties
            return (rng.permutation(int(np.prod(shape))).reshape(shape) - 2.3) * 0.5

        for shape, k, dimension in [((5,), 2, 0), ((2, 3), 3, 1), ((3, 2, 2), 1, 0), ((2, 20, 3), 3, 1), ((1,), 1, 0),
                                    ((0, 2), 0, 0), ((3,), 0, 0), ((2, 0), 1, 0)]:
            yield Sample([apart(*shape)], {"k": k, "dimension": dimension})
        # ties have no derivative: differences are of doubles only
        special = np.array([1.0, np.nan, -0.0, 0.0, np.inf, -np.inf, 0.0, 2.0], np.float32)
        yield Sample([special], {"k": 6, "dimension": 0}, results=[special[[1, 4, 7, 0, 3, 6]],
                                                                   np.array([1, 4, 7, 0, 3, 6], np.int32)])
        ties = rng.integers(0, 3, 40)
        yield Sample([ties], {"k": 4, "dimension": 0})
        for dtype in (np.bool_, np.int8, np.int32, np.uint32, np.uint64, np.float16):
            yield Sample([(ties % 3).reshape(2, 20).astype(dtype)], {"k": 3, "dimension": 1})
        yield Sample([rng.integers(-2 ** 31, 2 ** 31, 9).astype(np.int32)], {"k": 5, "dimension": 0})
        yield Sample([np.ones(3)], {"k": 4, "dimension": 0}, error=ValueError)
        yield Sample([np.ones(3)], {"k": -1, "dimension": 0}, error=ValueError)
        yield Sample([np.ones(3)], {"k": 1, "dimension": 1}, error=IndexError)
        yield Sample([np.ones(3, complex)], {"k": 1, "dimension": 0}, error=ValueError)


top_k: Any = define(TopK())


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
    count, at = _approximated("approx_max_k", aval_of(operand), k, reduction_dimension, recall_target,
                              reduction_input_size_override, aggregate_to_topk)
    values, places = top_k(operand, count, axis=at)
    return values, places


@public
def approx_min_k(operand: ArrayLike, k: int, reduction_dimension: int = -1, recall_target: float = 0.95,
                 reduction_input_size_override: int = -1, aggregate_to_topk: bool = True) -> tuple[Array, Array]:
    """`approx_min_k(operand, k, reduction_dimension=-1, recall_target=0.95, ...)`: the k smallest floats, or nearly.

    The results rise; NaN comes last. As for the rest, see `approx_max_k`.

    >>> values, places = approx_min_k(np.array([9.0, 3.0, 6.0, 10.0]), 2)
    >>> values.tolist(), places.tolist()
    ([3.0, 6.0], [1, 2])
    """
    count, at = _approximated("approx_min_k", aval_of(operand), k, reduction_dimension, recall_target,
                              reduction_input_size_override, aggregate_to_topk)
    values, places = top_k(_negated(operand), count, axis=at)
    values, dtype = lax.neg(values), aval_of(operand).dtype
    return values if aval_of(values).dtype == dtype else lax.convert_element_type(values, dtype), places


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
