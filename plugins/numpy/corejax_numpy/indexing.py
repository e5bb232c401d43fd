"""Reading and writing at places: where elements hold, along axes, on diagonals."""

# mypy: no-warn-return-any
# What roles return has no type that a checker knows.

from __future__ import annotations

from typing import Any

import numpy as np

from corejax import lax
from corejax.core import Array, ArrayLike, aval_of, dtypes
from corejax.errors import CorejaxIndexError, CorejaxTypeError, CorejaxValueError
from corejax.plugin import directly, operators, public, refused, shaping
from corejax_numpy._arrays import array, no_out
from corejax_numpy._choices import as_bool, flat, fresh, is_computed, known, plain_axis, size_of
from corejax_numpy._finding import count_of, first_places, unraveled
from corejax_numpy._in_memory import places as in_memory_places, sets as in_memory_sets
from corejax_numpy._picking import operand
from corejax_numpy._values import constant, spread_to

__all__ = ["argwhere", "compress", "extract", "fill_diagonal", "flatnonzero", "nonzero", "place", "put",
           "put_along_axis", "take", "take_along_axis"]


# Where elements are nonzero

@directly(in_memory_sets.nonzero, sizes_vary=True)
def nonzero(a: ArrayLike, *, size: int | None = None, fill_value: ArrayLike | tuple[ArrayLike, ...] | None = None
            ) -> tuple[Array, ...]:
    """The places of nonzero elements along each axis; the first `size` of them, filled up, where that is given.

    >>> jnp.nonzero(jnp.array([0.0, 5.0, 6.0]))
    (Array([1, 2], dtype=int64),)
    """
    x = array(a)
    if not aval_of(x).ndim:
        raise refused("nonzero", "a scalar has no places", got=str(aval_of(x)), wanted="at least one axis",
                      todo="use jnp.atleast_1d(x) first", kind=CorejaxValueError)
    return _nonzero("nonzero", x, size, fill_value)


@directly(in_memory_sets.argwhere, sizes_vary=True)
def argwhere(a: ArrayLike, *, size: int | None = None, fill_value: ArrayLike | None = None) -> Array:
    """The places of nonzero elements, a row for each; `size` and `fill_value` as in `nonzero`.

    >>> jnp.argwhere(jnp.array([[0, 5], [6, 0]]))
    Array([[0, 1],
           [1, 0]], dtype=int64)
    """
    x = array(a)
    if not aval_of(x).ndim:
        rows = int(bool(known("argwhere", x))) if size is None else size_of("argwhere", size)
        return lax.full((rows, 0), 0, dtypes.default_dtype("i"))
    return lax.stack(_nonzero("argwhere", x, size, fill_value), 1)


@directly(in_memory_sets.flatnonzero, sizes_vary=True)
def flatnonzero(a: ArrayLike, *, size: int | None = None, fill_value: ArrayLike | None = None) -> Array:
    """The places of nonzero elements in the flattened array; `size` and `fill_value` as in `nonzero`.

    >>> jnp.flatnonzero(jnp.array([[0, 5], [6, 0]]))
    Array([1, 2], dtype=int64)
    """
    return _nonzero("flatnonzero", flat(array(a)), size, fill_value)[0]


def _nonzero(name: str, x: Any, size: Any, fill_value: Any) -> tuple[Any, ...]:
    shape, dtype = aval_of(x).shape, dtypes.default_dtype("i")
    if size is None:
        found = known(name, x).nonzero()
        return tuple([fresh(places.astype(dtype, copy=False)) for places in found])
    mask, number = flat(as_bool(x)), size_of(name, size)
    places = unraveled(first_places(mask, number, 0), shape)
    fills = fill_value if isinstance(fill_value, tuple) else (0 if fill_value is None else fill_value,) * len(shape)
    if len(fills) != len(shape):
        raise refused(name, "there must be a fill value for each axis", got=f"{len(fills)} of them",
                      wanted=f"a number, or {len(shape)} of them", todo="pass one for all", kind=CorejaxValueError)
    beyond = lax.ge(lax.iota(dtype, number), spread_to(operators.astype(count_of(mask), dtype), (number,)))
    return tuple([lax.select(beyond, spread_to(constant(name, fill, dtype), (number,)), found)
                  for found, fill in zip(places, fills, strict=True)])


@directly(in_memory_sets.compress, arrays=2, sizes_vary=True)
def compress(condition: ArrayLike, a: ArrayLike, axis: int | None = None, out: None = None, *, size: int | None = None,
             fill_value: ArrayLike = 0) -> Array:
    """The parts along an axis, or elements of the flattened array, for which the condition holds.

    The first `size` of them, with `fill_value` where there are no more, where that is given.

    >>> jnp.compress(jnp.array([True, False, True]), jnp.array([1.0, 2.0, 3.0]))
    Array([1., 3.], dtype=float64)
    """
    no_out("compress", out)
    return _compressed("compress", array(condition), array(a), axis, size, fill_value)


@directly(in_memory_sets.extract, arrays=2, sizes_vary=True)
def extract(condition: ArrayLike, arr: ArrayLike, *, size: int | None = None, fill_value: ArrayLike = 0) -> Array:
    """The elements for which the condition holds, in one axis; `size` and `fill_value` as in `compress`.

    >>> jnp.extract(jnp.array([[True, False]]), jnp.array([[1.0, 2.0]]))
    Array([1.], dtype=float64)
    """
    return _compressed("extract", flat(array(condition)), flat(array(arr)), 0, size, fill_value)


def _compressed(name: str, condition: Any, x: Any, axis: Any, size: Any, fill_value: Any) -> Any:
    if aval_of(condition).ndim != 1:
        raise refused(name, "the condition must be a vector", got=str(aval_of(condition)), wanted="one axis",
                      todo="use jnp.extract for a mask of the array's shape", kind=CorejaxValueError)
    x, at = plain_axis(name, x, axis)
    length, before = aval_of(x).shape[at], (slice(None),) * at
    if size is None:
        places = known(name, condition).astype(bool).nonzero()[0]
        if places.size and places[-1] >= length:
            raise refused(name, f"there is no place {places[-1]} along an axis of size {length}",
                          got=str(aval_of(condition)), wanted=f"a condition for {length} places",
                          todo="make the condition as long as the axis", kind=CorejaxIndexError)
        return operators.getitem(x, (*before, places))
    number, count = size_of(name, size), min(length, aval_of(condition).size)
    mask = as_bool(lax.slice_in_dim(condition, 0, count))
    return operators.at(x)[(*before, first_places(mask, number, length))].get(mode="fill",
                                                                              fill_value=_scalar(fill_value, x))


def _scalar(value: Any, x: Any) -> Any:
    """A value to fill in, in the dtype of `x`."""
    return value if type(value) in dtypes.PYTHON_SCALARS else constant("a fill value", value, aval_of(x).dtype)


# Reading at places

@directly(in_memory_places.take, arrays=2)
def take(a: ArrayLike, indices: ArrayLike, axis: int | None = None, out: None = None, mode: str | None = None,
         unique_indices: bool = False, indices_are_sorted: bool = False, fill_value: ArrayLike | None = None) -> Array:
    """The parts at indices along an axis, or elements of the flattened array. Negative ones count from the end.

    Beyond the end, static indices are errors, and those in arrays give `fill_value`: by default NaN, or the extreme of
    an integer dtype. With `mode`, all of them give it ("fill"), the nearest part ("clip", where negative ones are
    beyond the end, too), or start anew ("wrap").

    >>> jnp.take(jnp.array([1.0, 2.0, 3.0]), jnp.array([2, 0]))
    Array([3., 1.], dtype=float64)
    """
    no_out("take", out)
    x, at = plain_axis("take", array(a), axis)
    size = aval_of(x).shape[at]
    places = _as_places("take", indices)
    if mode not in (None, "raise", "fill", "clip", "wrap"):
        raise refused("take", "there is no such mode", got=f"mode={mode!r}", wanted="'fill', 'clip', 'wrap' or None",
                      todo="leave it out", kind=CorejaxValueError)
    if not size and aval_of(places).size and mode in ("clip", "wrap"):
        raise refused("take", "an empty axis has no parts", got=str(aval_of(x)),
                      wanted="a positive size along the axis",
                      todo="test the shape first", kind=CorejaxIndexError)
    if mode == "wrap":
        places = places % size
    if mode == "clip":
        places = places.clip(0, size - 1)
    part = (*[slice(None)] * at, places)
    if mode in (None, "raise") and fill_value is None and not is_computed(places):
        return operators.getitem(x, part)
    return operators.at(x)[part].get(mode="promise_in_bounds" if mode in ("clip", "wrap") else "fill",
                                     fill_value=None if fill_value is None else _scalar(fill_value, x),
                                     unique_indices=unique_indices, indices_are_sorted=indices_are_sorted)


def _as_places(name: str, indices: Any) -> Any:
    """Indices as an array of integers: of ours if they are computed, else an ndarray."""
    places = array(indices) if is_computed(indices) or isinstance(indices, (list, tuple)) else np.asarray(indices)
    if not is_computed(indices) and type(places) is Array:
        places = np.asarray(places)
    if not aval_of(places).size and not dtypes.is_integer(aval_of(places).dtype) and isinstance(indices, (list, tuple)):
        places = np.zeros(places.shape, np.int64)  # of an empty list
    if not dtypes.is_integer(aval_of(places).dtype):
        raise refused(name, "indices must be integers", got=str(aval_of(places)), wanted="an integer dtype",
                      todo="convert them with .astype(int); for a mask, index: x[mask]")
    return places


@directly(in_memory_places.take_along_axis, arrays=2)
def take_along_axis(arr: ArrayLike, indices: ArrayLike, axis: int | None = -1, mode: str | None = None,
                    fill_value: ArrayLike | None = None, *, wrap_negative_indices: bool | None = None) -> Array:
    """The elements at indices along an axis, each in the row of its index; the other axes broadcast.

    Beyond the end, static indices are errors, and those in arrays give `fill_value`: by default NaN, or the extreme of
    an integer dtype; with `mode` "fill", all of them do, with "clip" they give the nearest element.

    >>> x = jnp.array([[3.0, 1.0], [2.0, 4.0]])
    >>> jnp.take_along_axis(x, jnp.argsort(x), -1)
    Array([[1., 3.],
           [2., 4.]], dtype=float64)
    """
    x, at = plain_axis("take_along_axis", array(arr), axis)
    places = _as_places("take_along_axis", indices)
    shape, own = aval_of(x).shape, aval_of(places).shape
    _check_rows("take_along_axis", shape, own, at)
    wrap = True if wrap_negative_indices is None else shaping.as_flag("take_along_axis", "wrap_negative_indices",
                                                                      wrap_negative_indices)
    if mode not in (None, "fill", "clip", "promise_in_bounds"):
        raise refused("take_along_axis", "there is no such mode", got=f"mode={mode!r}", kind=CorejaxValueError,
                      wanted="'fill', 'clip', 'promise_in_bounds' or None", todo="leave it out")
    if mode is None and fill_value is None and not is_computed(places):
        _check_inside("take_along_axis", places, shape[at], wrap)
        mode = "promise_in_bounds"
    places = operators.astype(array(places), np.int32 if shape[at] < np.iinfo(np.int32).max and
                              _fits(places, np.int32) else np.int64)
    if wrap and dtypes.kind(aval_of(places).dtype) != "u":
        places = lax.select(lax.lt(places, 0), places + shape[at], places)
    beside = np.broadcast_shapes(_without(shape, at), _without(own, at))
    x = spread_to(x, (*beside[:at], shape[at], *beside[at:]))
    places = spread_to(places, (*beside[:at], own[at], *beside[at:]))
    return _rows_at(x, places, at, mode or "fill", fill_value)


def _fits(places: Any, dtype: Any) -> bool:
    return aval_of(places).dtype.itemsize <= np.dtype(dtype).itemsize and dtypes.kind(aval_of(places).dtype) == "i" or (
        not is_computed(places))


def _without(shape: tuple[int, ...], at: int) -> tuple[int, ...]:
    return (*shape[:at], *shape[at + 1:])


def _check_rows(name: str, shape: tuple[int, ...], own: tuple[int, ...], at: int) -> None:
    """Raise unless the other axes of the indices broadcast with those of the array."""
    if len(own) != len(shape):
        raise refused(name, "array and indices must have equally many axes", got=f"{len(shape)} and {len(own)}",
                      wanted="an index array with an axis for each of the array", todo="add axes with None",
                      kind=CorejaxValueError)
    if [n for n, m in zip(_without(shape, at), _without(own, at), strict=True) if n != m and 1 not in (n, m)]:
        raise refused(name, "the other axes must fit", got=f"shapes {shape} and {own}", kind=CorejaxIndexError,
                      wanted="equal sizes or 1 along all other axes", todo="broadcast the indices")


def _check_inside(name: str, places: Any, size: int, wrap: bool) -> None:
    if places.size and not (int(places.min()) >= (-size if wrap else 0) and int(places.max()) < size):
        wrong = places[(places < (-size if wrap else 0)) | (places >= size)].flat[0]
        raise refused(name, f"index {wrong} is out of bounds for an axis of size {size}", got=int(wrong),
                      wanted=f"indices from {-size if wrap else 0} to {size - 1}", kind=CorejaxIndexError,
                      todo='check the indices, or say what happens out of bounds: mode="clip"')


def _rows_at(x: Any, places: Any, at: int, mode: str, fill_value: Any) -> Any:
    """One gather, with the other axes as batch axes: no index but the place is ever made."""
    ndim = aval_of(x).ndim
    beside = tuple([d for d in range(ndim) if d != at])
    numbers = lax.GatherDimensionNumbers((), (at,), (at,), beside, beside)
    if not aval_of(x).size and aval_of(places).size:
        if mode != "fill":
            raise refused("take_along_axis", "an empty axis has no elements", got=str(aval_of(x)),
                          wanted="a positive size along the axis", todo="test the shape first", kind=CorejaxIndexError)
        value = np.nan if fill_value is None and dtypes.is_inexact(aval_of(x).dtype) else fill_value or 0
        return lax.full(aval_of(places).shape, value, aval_of(x).dtype)
    if not aval_of(places).size:
        return lax.full(aval_of(places).shape, 0, aval_of(x).dtype)
    return lax.gather(x, lax.expand_dims(places, (ndim,)), numbers, (1,) * ndim, mode=mode,
                      fill_value=None if fill_value is None else _scalar(fill_value, x))


# Writing at places

def _not_in_place(name: str, inplace: Any) -> None:
    if inplace is not False:
        raise refused(name, "arrays are immutable, so it can't be done in place", got=f"inplace={inplace!r}",
                      wanted="inplace=False", kind=CorejaxValueError,
                      todo=f"pass inplace=False, and use the changed array that jnp.{name} returns")


def _repeated(name: str, values: Any, count: int, dtype: np.dtype) -> Any:
    """As many values as that: they start anew where there are fewer."""
    found = flat(constant(name, values, dtype))
    size = aval_of(found).size
    if size == count or not count:
        return found if size == count else lax.slice_in_dim(found, 0, 0)
    if not size:
        raise refused(name, "there are no values to write", got="an empty array", wanted="at least one value",
                      todo="pass a value", kind=CorejaxValueError)
    if size > count:
        return lax.slice_in_dim(found, 0, count)
    return operators.getitem(found, np.arange(count) % size)


@public
def put(a: ArrayLike, ind: ArrayLike, v: ArrayLike, mode: str | None = None, *, inplace: bool = True) -> Array:
    """The array with values at indices of its flattened elements, which start anew where there are fewer values.

    Static indices beyond the end are errors; those in arrays write to the nearest element. With `mode`, all do ("clip",
    where negative ones are beyond the end, too), or start anew ("wrap"). Pass `inplace=False`.

    >>> jnp.put(jnp.array([1.0, 2.0, 3.0]), jnp.array([0, 2]), 9.0, inplace=False)
    Array([9., 2., 9.], dtype=float64)
    """
    _not_in_place("put", inplace)
    x, places = array(a), _as_places("put", ind)
    if mode not in (None, "raise", "clip", "wrap"):
        raise refused("put", "there is no such mode", got=f"mode={mode!r}", wanted="'clip', 'wrap' or None",
                      todo="leave it out", kind=CorejaxValueError)
    size = aval_of(x).size
    if not size or not aval_of(places).size:
        return x
    if mode in (None, "raise") and not is_computed(places):
        _check_inside("put", places, size, True)
    places = flat(array(places))
    if mode in (None, "raise"):
        places = lax.select(lax.lt(places, 0), places + size, places)
    if mode == "wrap":
        places = places % size
    else:
        places = operators.clip(places, 0, size - 1)
    values = _repeated("put", v, aval_of(places).size, aval_of(x).dtype)
    return operators.reshape(operators.at(flat(x))[places].set(values, mode="drop"), aval_of(x).shape)


@directly(in_memory_places.put_along_axis, arrays=3)
def put_along_axis(arr: ArrayLike, indices: ArrayLike, values: ArrayLike, axis: int | None = -1, inplace: bool = True,
                   *, mode: str | None = None) -> Array:
    """The array with values at indices along an axis, each in the row of its index. Pass `inplace=False`.

    >>> jnp.put_along_axis(jnp.zeros((2, 2)), jnp.array([[1], [0]]), 5.0, 1, inplace=False)
    Array([[0., 5.],
           [5., 0.]], dtype=float64)
    """
    _not_in_place("put_along_axis", inplace)
    original = array(arr)
    x, at = plain_axis("put_along_axis", original, axis)
    places = array(_as_places("put_along_axis", indices))
    shape, own = aval_of(x).shape, aval_of(places).shape
    _check_rows("put_along_axis", shape, own, at)
    rows: list[Any] = [np.arange(n).reshape([-1 if d == k else 1 for k in range(len(shape))])
                       for d, n in enumerate(shape)]
    rows[at] = places
    values = constant("put_along_axis", values, aval_of(x).dtype)
    written = operators.at(x)[tuple(rows)].set(values, mode=mode or "drop")
    return operators.reshape(written, aval_of(original).shape)


@public
def place(arr: ArrayLike, mask: ArrayLike, vals: ArrayLike, *, inplace: bool = True) -> Array:
    """The array with values where the mask holds, which start anew where there are fewer. Pass `inplace=False`.

    >>> jnp.place(jnp.array([1.0, 2.0, 3.0]), jnp.array([True, False, True]), jnp.array([8.0, 9.0]), inplace=False)
    Array([8., 2., 9.], dtype=float64)
    """
    _not_in_place("place", inplace)
    x, where = array(arr), array(mask)
    values = flat(constant("place", vals, aval_of(x).dtype))
    if aval_of(where).size != aval_of(x).size:
        raise refused("place", "the mask must be as large as the array", got=f"{aval_of(x)} and {aval_of(where)}",
                      wanted="equally many elements", todo="broadcast the mask", kind=CorejaxValueError)
    if not aval_of(values).size:
        if not aval_of(x).size:
            return x
        raise refused("place", "there are no values to write", got=str(aval_of(values)), wanted="at least one value",
                      todo="pass a value", kind=CorejaxValueError)
    holds = flat(as_bool(where))
    before = lax.cumsum(lax.convert_element_type(holds, np.int64), 0) - 1
    written = operators.getitem(values, before % aval_of(values).size)
    return operators.reshape(lax.select(holds, written, flat(x)), aval_of(x).shape)


@public
def fill_diagonal(a: ArrayLike, val: ArrayLike, wrap: bool = False, *, inplace: bool = True) -> Array:
    """The array with values on its main diagonal, which starts anew below in a tall matrix if `wrap` is set.

    Pass `inplace=False`.

    >>> jnp.fill_diagonal(jnp.zeros((2, 2)), 5.0, inplace=False)
    Array([[5., 0.],
           [0., 5.]], dtype=float64)
    """
    _not_in_place("fill_diagonal", inplace)
    x = array(a)
    shape = aval_of(x).shape
    if len(shape) < 2 or len(shape) > 2 and len(set(shape)) > 1:
        raise refused("fill_diagonal", "the array has no main diagonal", got=str(aval_of(x)), kind=CorejaxValueError,
                      wanted="a matrix, or more axes of one size", todo="reshape it")
    size, end = aval_of(x).size, aval_of(x).size
    step = shape[1] + 1 if len(shape) == 2 else 1 + int(np.cumprod(shape[:-1]).sum())
    if len(shape) == 2 and not shaping.as_flag("fill_diagonal", "wrap", wrap):
        end = min(size, shape[1] * shape[1])
    places = np.arange(0, end, step)
    if not places.size:
        return x
    if dtypes.is_complex(aval_of(operand(val)).dtype) and not dtypes.is_complex(aval_of(x).dtype):
        raise refused("fill_diagonal", "complex values don't fit real elements", got=str(aval_of(operand(val))),
                      wanted=str(aval_of(x)), todo="convert one of them", kind=CorejaxTypeError)
    values = _repeated("fill_diagonal", val, places.size, aval_of(x).dtype)
    return operators.reshape(operators.at(flat(x))[places].set(values), shape)
