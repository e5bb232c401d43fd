"""Elements repeated, inserted and deleted."""

# mypy: no-warn-return-any

from __future__ import annotations

from typing import Any

import numpy as np

from corejax import lax
from corejax.core import Array, Tracer, aval_of, dtypes, is_concrete
from corejax.errors import CorejaxIndexError, CorejaxValueError
from corejax.plugin import NotDirectly, directly, operators, refused, shaping
from corejax_numpy._arrays import array
from corejax_numpy._asked import placed
from corejax_numpy._in_memory import sets as in_memory_sets
from corejax_numpy._values import constant, spread

__all__ = ["delete", "insert", "repeat", "tile"]


def _flat_unless(name: str, a: Any, axis: Any) -> tuple[Any, int]:
    """The array and the axis; without an axis, all its elements along one."""
    a = array(a)
    return (operators.ravel(a), 0) if axis is None else (a, shaping.canonical_axis(name, axis, a.ndim))


def _is_traced(x: Any) -> bool:
    return isinstance(x, Tracer) or isinstance(x, (list, tuple)) and any(map(_is_traced, x))


# Repeated

@directly(lambda A, reps: np.tile(A, reps))
def tile(A: Any, reps: Any) -> Array:
    """The array as a whole, repeated so many times along each axis.

    >>> tile(jnp.array([1, 2]), (2, 2))
    Array([[1, 2, 1, 2],
           [1, 2, 1, 2]], dtype=int64)
    """
    A, times = array(A), shaping.as_ints("tile", "a count", reps)
    if any([n < 0 for n in times]):
        raise refused("tile", "an array can't be repeated so often", got=times, wanted="counts of 0 or more",
                      todo="check them", kind=CorejaxValueError)
    ndim = max(A.ndim, len(times))
    A = lax.reshape(A, (*[1] * (ndim - A.ndim), *A.shape)) if A.ndim < ndim else A
    return lax.tile(A, (*[1] * (ndim - len(times)), *times))


def _repeated(a: Any, repeats: Any, axis: Any = None) -> Any:
    if isinstance(repeats, (Array, list, tuple)):  # the shape would depend on values
        raise NotDirectly
    return np.repeat(a, repeats, axis)


@directly(_repeated)
def repeat(a: Any, repeats: Any, axis: int | None = None, *, total_repeat_length: int | None = None,
           out_sharding: Any = None) -> Array:
    """Each element repeated, along an axis or of all elements: so many times, or each by a count of its own.

    Where the counts are traced, `total_repeat_length` says how long the result is: it is cut there, or goes on with the
    last element.

    >>> repeat(jnp.array([1, 2]), 2), repeat(jnp.array([1, 2]), jnp.array([1, 3]))
    (Array([1, 1, 2, 2], dtype=int64), Array([1, 2, 2, 2], dtype=int64))
    """
    a, at = _flat_unless("repeat", a, axis)
    size = a.shape[at]
    if total_repeat_length is None and not _is_traced(repeats) and not np.ndim(repeats):
        times = _count(repeats)
        shape = (*a.shape[:at + 1], times, *a.shape[at + 1:])
        kept = tuple([d for d in range(a.ndim + 1) if d != at + 1])
        out = lax.reshape(lax.broadcast_in_dim(a, shape, kept), (*a.shape[:at], size * times, *a.shape[at + 1:]))
    else:
        out = _by_counts(a, at, repeats, total_repeat_length)
    return placed("repeat", out, None, out_sharding)


def _count(repeats: Any) -> int:
    times = shaping.as_int("repeat", "a count", repeats)
    if times < 0:
        raise refused("repeat", "an element can't be repeated so often", got=times, wanted="counts of 0 or more",
                      todo="check them", kind=CorejaxValueError)
    return times


def _by_counts(a: Any, at: int, repeats: Any, length: int | None) -> Any:
    size = a.shape[at]
    counts = spread("repeat", _integers("repeat", repeats), (size,))
    if not isinstance(counts, Tracer):
        host = np.asarray(counts)
        if host.size and host.min() < 0:
            _count(host.min())
        if length is None:
            return _taken(a, np.repeat(np.arange(size), host), at)
    if length is None:
        raise refused("repeat", "how long the result is depends on traced counts", got=str(aval_of(repeats)),
                      wanted="total_repeat_length=...", todo="pass the sum of the counts, or an upper bound of it")
    total = shaping.as_int("repeat", "total_repeat_length", length)
    if not size:
        return lax.full_like(a, 0, shape=(*a.shape[:at], total, *a.shape[at + 1:]))
    # Element i of the result is the first element whose counts up to it add up to more than i.
    ends = lax.cumsum(counts)
    starts = operators.sub(ends, counts)
    marks = operators.at(lax.full((total,), 0, dtypes.default_dtype("i")))[starts].add(1, mode="drop")
    places = operators.sub(lax.cumsum(marks), 1) if total else marks
    return _taken(a, places, at)


def _taken(a: Any, places: Any, at: int) -> Any:
    return operators.getitem(a, (*[slice(None)] * at, places))


def _integers(name: str, x: Any) -> Any:
    x = array(x)
    if dtypes.kind(x.dtype) == "b" or not x.size:
        return operators.astype(x, dtypes.default_dtype("i"))
    if not dtypes.is_integer(x.dtype):
        raise refused(name, "integers are needed", got=str(x.aval), wanted="an integer dtype",
                      todo="convert it with x.astype(int)")
    return operators.astype(x, dtypes.default_dtype("i"))


def _known_integers(name: str, x: np.ndarray) -> np.ndarray:
    """The same for what is known, also within a program."""
    if x.size and x.dtype.kind not in "biu":
        _integers(name, x)  # raises
    return x.astype(np.int64)


# Deleted and inserted

@directly(in_memory_sets.delete, arrays=2, sizes_vary=True)
def delete(arr: Any, obj: Any, axis: int | None = None, *, assume_unique_indices: bool = False) -> Array:
    """Without the elements at some indices along an axis: an integer, a slice, an array of indices, or a mask.

    Traced indices must differ from each other: `assume_unique_indices=True` says so.

    >>> delete(jnp.array([5, 6, 7, 8]), [0, 2])
    Array([6, 8], dtype=int64)
    """
    arr, at = _flat_unless("delete", arr, axis)
    size = arr.shape[at]
    if isinstance(obj, slice):
        return _without(arr, at, np.arange(size)[obj])
    if not _is_traced(obj):
        known = np.asarray(array(obj))
        if known.dtype == np.bool_ and known.shape == (size,):
            return _without(arr, at, np.flatnonzero(known))
        return _without(arr, at, _in_bounds("delete", _known_integers("delete", known), size))
    places: Any = _integers("delete", obj) if aval_of(array(obj)).dtype != dtypes.bool_ else None
    if places is None or (places.ndim and not assume_unique_indices):
        raise refused("delete", "how many elements are deleted depends on traced values", got=str(aval_of(array(obj))),
                      wanted="a traced integer, or indices that all differ", kind=CorejaxValueError,
                      todo="pass assume_unique_indices=True if they do; there is no size= for this")
    places = operators.ravel(places)
    places = lax.select_n(operators.lt(places, 0), places, operators.add(places, size))
    # Each kept place moves up by the number of deleted ones before it.
    rising = lax.sort(operators.sub(lax.sort(places), lax.iota(places.dtype, places.size)))
    kept = lax.iota(places.dtype, size - places.size)
    before = [lax.broadcast_in_dim(x, (kept.size, places.size), (d,)) for d, x in enumerate((kept, rising))]
    shift = operators.astype(operators.ge(*before), places.dtype)
    return _taken(arr, operators.add(kept, lax.reduce_sum(shift, (1,))), at)


def _in_bounds(name: str, places: np.ndarray, size: int) -> np.ndarray:
    if places.size and not (places.min() >= -size and places.max() < size):
        raise refused(name, "an index is out of bounds", got=places.ravel().tolist()[:8],
                      wanted=f"indices from {-size} to {size - 1}", todo="check them", kind=CorejaxIndexError)
    return places.ravel() % size if size else places.ravel()


def _without(arr: Any, at: int, places: np.ndarray) -> Any:
    kept = np.setdiff1d(np.arange(arr.shape[at]), places)
    if kept.size == arr.shape[at]:
        return arr
    ends = np.flatnonzero(np.diff(kept) != 1)
    if not kept.size or ends.size > 3:
        return _taken(arr, kept, at)
    runs = zip(kept[[0, *(ends + 1)]], kept[[*ends, -1]] + 1, strict=True)  # several times as fast as one by one
    parts = [lax.slice_in_dim(arr, int(start), int(stop), axis=at) for start, stop in runs]
    return parts[0] if len(parts) == 1 else lax.concatenate(parts, at)


@directly(in_memory_sets.insert, arrays=3, sizes_vary=True)
def insert(arr: Any, obj: Any, values: Any, axis: int | None = None) -> Array:
    """With values put before the elements at some indices along an axis; the indices count in the given array.

    >>> insert(jnp.array([1, 2, 3]), 1, 9), insert(jnp.array([1, 2, 3]), [0, 2], [7, 8])
    (Array([1, 9, 2, 3], dtype=int64), Array([7, 1, 2, 8, 3], dtype=int64))
    """
    arr, at = _flat_unless("insert", arr, axis)
    size, values = arr.shape[at], constant("insert", values, arr.dtype)
    if isinstance(obj, slice):
        obj = np.arange(size)[obj]
    if not _is_traced(obj):
        known = np.asarray(array(obj))
        obj = np.flatnonzero(known) if known.dtype == np.bool_ else _fitting(_known_integers("insert", known), size)
    places = array(obj)
    if places.ndim > 1:
        raise refused("insert", "indices must be a number or a vector", got=str(places.aval), wanted="at most one axis",
                      todo="ravel them", kind=CorejaxValueError)
    values, count = _for_places(arr, values, places, at)
    if places.size == 1 and is_concrete(places):
        before = int(np.asarray(places).ravel()[0])
        before += size * (before < 0)
        return lax.concatenate([lax.slice_in_dim(arr, 0, before, axis=at), values,
                                lax.slice_in_dim(arr, before, size, axis=at)], at)
    places = spread("insert", operators.ravel(_integers("insert", places)), (count,))
    places = lax.select_n(operators.lt(places, 0), places, operators.add(places, size))
    # Behind the values that go before it: those at smaller indices, and earlier ones at the same.
    order = operators.argsort(places)
    moved = operators.add(lax.sort(places), lax.iota(places.dtype, count))
    places = operators.at(lax.full_like(places, 0))[order].set(moved)
    return _merged(arr, values, places, at)


def _fitting(places: np.ndarray, size: int) -> np.ndarray:
    if places.size and not (places.min() >= -size and places.max() <= size):
        raise refused("insert", "an index is out of bounds", got=places.ravel().tolist()[:8],
                      wanted=f"indices from {-size} to {size}", todo="check them", kind=CorejaxIndexError)
    return places


def _for_places(arr: Any, values: Any, places: Any, at: int) -> tuple[Any, int]:
    """The values along the axis, and how many there are."""
    if not places.ndim:  # numbers along an axis are then several values at one place
        values = lax.reshape(values, (*[1] * (arr.ndim - values.ndim),
                                      *values.shape)) if values.ndim < arr.ndim else values
        if values.ndim and at:
            values = lax.transpose(values, (*range(1, at + 1), 0, *range(at + 1, values.ndim)))
    if values.ndim > arr.ndim:
        raise refused("insert", "the values have more axes than the array", got=f"{values.aval} into {arr.aval}",
                      wanted=f"at most {arr.ndim} axes", todo="reshape them", kind=CorejaxValueError)
    lead = arr.ndim - values.ndim
    along = values.shape[at - lead] if at >= lead else 1
    count = places.size if places.size != 1 else along
    shape = (*arr.shape[:at], count, *arr.shape[at + 1:])
    return spread("insert", values, shape), count


def _merged(arr: Any, values: Any, places: Any, at: int) -> Any:
    """The array with values at these places of the result."""
    total = arr.shape[at] + aval_of(places).size
    taken = operators.at(lax.full((total,), 0, dtypes.default_dtype("i")))[places].set(1)
    rest = operators.sub(lax.iota(dtypes.default_dtype("i"), total), lax.cumsum(taken))
    source = operators.at(rest)[places].set(operators.add(lax.iota(places.dtype, aval_of(places).size), arr.shape[at]))
    return _taken(lax.concatenate([arr, values], at), source, at)
