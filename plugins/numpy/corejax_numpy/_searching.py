"""Where elements are among sorted ones: by bisection, by sorting them together, or by comparing each with all."""

# mypy: no-warn-return-any
# What roles return has no type that a checker knows.

from __future__ import annotations

from typing import Any

import numpy as np

from corejax import lax
from corejax.core import Array, aval_of, context, dtypes, from_array_like
from corejax.errors import CorejaxValueError
from corejax.plugin import operators, refused
from corejax_numpy._choices import flat

__all__ = ["places_among"]

_METHODS = ("scan", "scan_unrolled", "sort", "compare_all")


def places_among(rising: Any, v: Any, before_equal: bool, method: str = "scan", name: str = "searchsorted") -> Any:
    """How many elements of the sorted vector are less than each of `v`, or not greater; NaN counts as greatest."""
    if method not in _METHODS:
        raise refused(name, "there is no such method", got=f"method={method!r}",
                      wanted=f"one of: {', '.join(_METHODS)}",
                      todo="leave it out: it is 'scan'", kind=CorejaxValueError)
    rising, v = lax.stop_gradient(rising), lax.stop_gradient(v)
    size = aval_of(rising).size
    dtype = np.dtype(np.int32 if size < np.iinfo(np.int32).max else np.int64)
    if not size or not aval_of(v).size:
        return lax.full(aval_of(v).shape, 0, dtype)
    found = _in_memory(rising, v, before_equal, dtype)
    if found is not None:
        return found
    if method == "sort":
        return _by_sort(rising, v, before_equal, dtype)
    if method == "compare_all":
        return _by_comparing(rising, v, before_equal, dtype)
    return _by_bisection(rising, v, before_equal, dtype, unrolled=method == "scan_unrolled")


def _in_memory(rising: Any, v: Any, before_equal: bool, dtype: np.dtype) -> Any:
    """The same by NumPy, which has this order, for arrays in host memory; None for others.

    A loop would be compiled, and what is compiled doesn't come home.
    """
    if not (context.trace.knows_values and type(rising) is Array is type(v) and hasattr(rising, "_host")
            and hasattr(v, "_host") and rising.aval.dtype.isbuiltin == 1):
        return None
    found = np.asarray(rising).searchsorted(np.asarray(v), "left" if before_equal else "right")
    return from_array_like(np.asarray(found, dtype))


def is_less(x: Any, y: Any) -> Any:
    """Whether x is before y in the order of `sort`: NaN is last, complex numbers are compared by their parts."""
    dtype = aval_of(x).dtype
    if dtypes.is_complex(dtype):
        real, other = lax.real(x), lax.real(y)
        alike = (real == other) | ((real != real) & (other != other))
        return is_less(real, other) | (alike & is_less(lax.imag(x), lax.imag(y)))
    if not dtypes.is_inexact(dtype):
        return x < y if dtype != dtypes.bool_ else ~x & y
    return (x < y) | ((x == x) & (y != y))


def _goes_after(element: Any, v: Any, before_equal: bool) -> Any:
    """Whether the place of `v` is after the element."""
    return is_less(element, v) if before_equal else ~is_less(v, element)


def _by_comparing(rising: Any, v: Any, before_equal: bool, dtype: np.dtype) -> Any:
    shape, size = aval_of(v).shape, aval_of(rising).size
    both = (*shape, size)
    after = _goes_after(lax.broadcast_in_dim(rising, both, (len(shape),)),
                        lax.broadcast_in_dim(v, both, tuple(range(len(shape)))), before_equal)
    return lax.reduce_sum(lax.convert_element_type(after, dtype), (len(shape),))


def _by_sort(rising: Any, v: Any, before_equal: bool, dtype: np.dtype) -> Any:
    """The place of each of `v` in the sorted union, less the place among themselves."""
    values, size, count = flat(v), aval_of(rising).size, aval_of(v).size
    places = lax.iota(dtype, size + count)
    if before_equal:  # a stable sort puts them before equal elements
        joined, own = lax.concatenate([values, rising], 0), lax.lt(places, count)
        names = places
    else:
        joined, own = lax.concatenate([rising, values], 0), lax.ge(places, size)
        names = places - size
    _, names, own = lax.sort((joined, names, own), 0, num_keys=1)
    before = lax.cumsum(lax.convert_element_type(~own, dtype), 0)  # elements so far
    target = lax.select(own, names, lax.full_like(names, count))
    found = operators.at(lax.full((count,), 0, dtype))[target].set(before, mode="drop")
    return operators.reshape(found, aval_of(v).shape)


def _by_bisection(rising: Any, v: Any, before_equal: bool, dtype: np.dtype, unrolled: bool) -> Any:
    """Halve the part in which each place is, as often as the size of the whole has bits."""
    size, shape = aval_of(rising).size, aval_of(v).shape

    def halved(_: Any, bounds: Any) -> Any:
        low, high = bounds
        middle = low + lax.shift_right_logical(high - low, lax.full_like(low, 1))
        after = _goes_after(_read(rising, middle), v, before_equal)
        return (lax.select(after, middle + 1, low), lax.select(after, high, middle))

    bounds = lax.full(shape, 0, dtype), lax.full(shape, size, dtype)
    steps = size.bit_length()
    if unrolled:
        for i in range(steps):
            bounds = _limited(halved(i, bounds), bounds)
        return bounds[0]
    return lax.fori_loop(0, steps, lambda i, bounds: _limited(halved(i, bounds), bounds), bounds)[0]


def _limited(new: Any, old: Any) -> Any:
    """The new bounds, except where the old ones had met."""
    open_ = lax.lt(old[0], old[1])
    return lax.select(open_, new[0], old[0]), lax.select(open_, new[1], old[1])


def _read(x: Any, places: Any) -> Any:
    """Elements of a vector; a place beyond its end reads the last one."""
    ndim = aval_of(places).ndim
    numbers = lax.GatherDimensionNumbers((), collapsed_slice_dims=(0,), start_index_map=(0,))
    return lax.gather(x, lax.expand_dims(places, (ndim,)), numbers, (1,), mode="clip")
