"""`corejax.ops`: sums, products and extremes of groups of rows, each told by a number.

>>> from corejax.ops import segment_sum
>>> segment_sum(np.array([1.0, 2.0, 4.0]), np.array([0, 1, 0]))
Array([5., 2.], dtype=float64)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from corejax import lax
from corejax.core import Array, ArrayLike, Tracer, aval_of, dtypes
from corejax.errors import ConcretizationError, CorejaxValueError
from corejax.plugin import operators, public, refused, shaping
from corejax_numpy._arrays import array
from corejax_numpy._asked import placed, static
from corejax_numpy.totals import max as total_max, min as total_min, prod, sum as total

__all__ = ["segment_max", "segment_min", "segment_prod", "segment_sum"]

NAMESPACE = "ops"


@public
def segment_sum(data: ArrayLike, segment_ids: ArrayLike, num_segments: int | None = None,
                indices_are_sorted: bool = False, unique_indices: bool = False, bucket_size: int | None = None,
                mode: Any = None, out_sharding: Any = None) -> Array:
    """The sum of the rows of each segment: row `i` belongs to the segment `segment_ids[i]`.

    `num_segments` says how many there are, by default one more than the largest; within a program it must be given.
    Rows of other segments, and of negative ones, are left out. `indices_are_sorted` and `unique_indices` promise that
    ids are. With `bucket_size`, so many rows each are summed first, which rounds less.

    >>> segment_sum(np.arange(5), np.array([0, 0, 1, 1, 2]))
    Array([1, 5, 4], dtype=int64)
    """
    return _of_segments("segment_sum", "add", lambda dtype: 0, total, data, segment_ids, num_segments,
                        indices_are_sorted, unique_indices, bucket_size, mode, out_sharding)


@public
def segment_prod(data: ArrayLike, segment_ids: ArrayLike, num_segments: int | None = None,
                 indices_are_sorted: bool = False, unique_indices: bool = False, bucket_size: int | None = None,
                 mode: Any = None, out_sharding: Any = None) -> Array:
    """The product of the rows of each segment, 1 for an empty one; see `segment_sum`.

    >>> segment_prod(np.array([2.0, 3.0, 4.0]), np.array([0, 2, 0]))
    Array([8., 1., 3.], dtype=float64)
    """
    return _of_segments("segment_prod", "multiply", lambda dtype: 1, prod, data, segment_ids, num_segments,
                        indices_are_sorted, unique_indices, bucket_size, mode, out_sharding)


@public
def segment_max(data: ArrayLike, segment_ids: ArrayLike, num_segments: int | None = None,
                indices_are_sorted: bool = False, unique_indices: bool = False, bucket_size: int | None = None,
                mode: Any = None, out_sharding: Any = None) -> Array:
    """The largest row of each segment, the dtype's least value for an empty one; see `segment_sum`.

    >>> segment_max(np.array([2.0, 3.0, 4.0]), np.array([0, 2, 0]))
    Array([  4., -inf,   3.], dtype=float64)
    """
    return _of_segments("segment_max", "max", lambda dtype: _extreme(dtype, False), total_max, data, segment_ids,
                        num_segments, indices_are_sorted, unique_indices, bucket_size, mode, out_sharding)


@public
def segment_min(data: ArrayLike, segment_ids: ArrayLike, num_segments: int | None = None,
                indices_are_sorted: bool = False, unique_indices: bool = False, bucket_size: int | None = None,
                mode: Any = None, out_sharding: Any = None) -> Array:
    """The smallest row of each segment, the dtype's largest value for an empty one; see `segment_sum`.

    >>> segment_min(np.array([2.0, 3.0, 4.0]), np.array([0, 2, 0]))
    Array([ 2., inf,  3.], dtype=float64)
    """
    return _of_segments("segment_min", "min", lambda dtype: _extreme(dtype, True), total_min, data, segment_ids,
                        num_segments, indices_are_sorted, unique_indices, bucket_size, mode, out_sharding)


def _extreme(dtype: np.dtype, largest: bool) -> Any:
    if dtypes.is_integer(dtype):
        limits = dtypes.integer_limits(dtype)
        return limits.max if largest else limits.min
    return largest if dtype == dtypes.bool_ else np.inf if largest else -np.inf


def _of_segments(name: str, update: str, empty: Callable[[np.dtype], Any], combine: Callable[..., Any], data: Any,
                 segment_ids: Any, num_segments: Any, indices_are_sorted: bool, unique_indices: bool, bucket_size: Any,
                 mode: Any, out_sharding: Any) -> Array:
    data, ids = array(data), array(segment_ids)
    if not dtypes.is_integer(ids.dtype):
        raise refused(name, "segments are told by integers", got=aval_of(ids), wanted="an integer for each row",
                      todo="convert segment_ids with .astype(int)")
    if ids.shape != data.shape[:ids.ndim] or not ids.ndim:
        raise refused(name, "each row needs a segment", got=f"segment_ids of shape {ids.shape} for data of shape "
                      f"{data.shape}", wanted="segment_ids with the leading axes of data",
                      todo="check that they have the same length", kind=CorejaxValueError)
    if data.dtype == dtypes.bool_ and update in ("add", "multiply"):
        raise refused(name, "truth values have no sums and products of their own", got=aval_of(data), wanted="numbers",
                      todo="convert them: data.astype(int) counts; segment_max is any, segment_min is all")
    count = _count(name, ids) if num_segments is None else _checked_count(name, num_segments)
    options = {"indices_are_sorted": shaping.as_flag(name, "indices_are_sorted", indices_are_sorted),
               "unique_indices": shaping.as_flag(name, "unique_indices", unique_indices),
               "mode": "drop" if mode is None else mode, "wrap_negative_indices": False}
    start = empty(data.dtype)
    if bucket_size is None:
        out = lax.full((count, *data.shape[ids.ndim:]), start, data.dtype)
        return placed(name, getattr(out.at[ids], update)(data, **options), None, out_sharding)  # type: ignore[no-any-return]
    size = _checked_size(name, bucket_size)
    buckets = max(1, -(-ids.shape[0] // size))
    out = lax.full((buckets, count, *data.shape[ids.ndim:]), start, data.dtype)
    which = np.arange(ids.shape[0]).reshape((-1,) + (1,) * (ids.ndim - 1)) // size
    found = getattr(out.at[np.broadcast_to(which, ids.shape), ids], update)(data, **options)
    return placed(name, operators.astype(combine(found, axis=0), data.dtype), None, out_sharding)  # type: ignore[no-any-return]


def _count(name: str, ids: Any) -> int:
    if isinstance(ids, Tracer):
        try:
            ids = ids.concrete("the number of segments")
        except ConcretizationError as error:
            raise refused(name, "within a program, the number of segments must be given", got=aval_of(ids),
                          wanted="num_segments, on which the result's shape depends",
                          todo=f"{name}(data, segment_ids, num_segments=...)", kind=ConcretizationError) from error
    return max(int(np.asarray(ids).max()) + 1, 0) if ids.size else 0


def _checked_count(name: str, num_segments: Any) -> int:
    (count,) = shaping.as_ints(name, "num_segments", static(name, "num_segments", num_segments))
    if count < 0:
        raise refused(name, "the number of segments can't be negative", got=count, wanted="0 or more",
                      todo="check how it is computed", kind=CorejaxValueError)
    return count


def _checked_size(name: str, bucket_size: Any) -> int:
    (size,) = shaping.as_ints(name, "bucket_size", bucket_size)
    if size < 1:
        raise refused(name, "a bucket needs rows", got=f"bucket_size={size}", wanted="1 or more",
                      todo="leave it out for one bucket", kind=CorejaxValueError)
    return size
