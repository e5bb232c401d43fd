"""The same orders with NumPy, for values on the host."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from corejax.core import dtypes

_BITS = {size: np.dtype(f"int{8 * size}") for size in (1, 2, 4, 8)}


def sorted_along(x: Any, axis: int) -> Any:
    """One array, sorted: NaN last, and equal zeros of either sign in the order in which they stand."""
    kind = dtypes.kind(x.dtype)
    if kind == "c":
        return _taken(x, _permutation([x], axis), axis)
    if x.dtype.isbuiltin != 1:  # NumPy is slow to compare elements of added dtypes, and has no order for their NaNs
        return np.sort(_known(x), axis, kind="stable").astype(x.dtype)
    out = x.copy()
    out.sort(axis)
    if kind == "f" and np.count_nonzero(out) < out.size and np.signbit(out[out == 0]).any():
        return np.sort(x, axis, kind="stable")  # the fast sort isn't, which only zeros show
    return out


def sorted_together(operands: Sequence[Any], axis: int, num_keys: int) -> list[Any]:
    """Arrays rearranged by one permutation, which sorts the first `num_keys` of them lexicographically."""
    order = _permutation(operands[:num_keys], axis)
    return [_taken(x, order, axis) for x in operands]


def largest(x: Any, k: int, axis: int) -> tuple[Any, Any]:
    """The k largest elements and their places, in the total order of floats; the first ones of equal elements."""
    key = _total_order(x)
    if x.ndim == 1:
        places = _largest_of_row(key, k)
    elif 0 < 4 * k < x.shape[axis] and x.size:
        rows = np.moveaxis(key, axis, -1)
        places = np.array([_largest_of_row(row, k) for row in rows.reshape(-1, rows.shape[-1])])
        places = np.moveaxis(places.reshape(*rows.shape[:-1], k), -1, axis)
    else:
        part = tuple([slice(k) if d == axis else slice(None) for d in range(x.ndim)])
        places = np.argsort(~key, axis, kind="stable")[part]
    return _taken(x, places, axis), places.astype(np.int32)


def _largest_of_row(key: Any, k: int) -> Any:
    size = key.size
    if not 0 < 4 * k < size:
        return (~key).argsort(kind="stable")[:k]
    threshold = np.partition(key, size - k)[size - k]
    places = (key >= threshold).nonzero()[0]
    if places.size > k:  # of those that equal the k-th, the first
        found = key[places]
        level = found == threshold
        level &= level.cumsum() <= k - (found > threshold).sum()
        places = places[level | (found > threshold)]
    return places[(~key[places]).argsort(kind="stable")]


def _permutation(keys: Sequence[Any], axis: int) -> Any:
    parts = [part for key in keys for part in ((key.real, key.imag) if key.dtype.kind == "c" else (_known(key),))]
    if len(parts) > 1:
        return np.lexsort(parts[::-1], axis)
    (key,) = parts
    if key.ndim == 1 and key.size > 16:
        order = key.argsort()  # five times as fast as a stable sort, and the same if nothing is equal
        rising = key[order]
        last = rising[-1]
        if last == last and (rising[1:] != rising[:-1]).all():
            return order
    return key.argsort(axis, kind="stable")


def _taken(x: Any, places: Any, axis: int) -> Any:
    return x[places] if x.ndim == 1 else np.take_along_axis(x, places, axis)


def _known(x: Any) -> Any:
    """The same numbers in a dtype of NumPy's own."""
    return x if x.dtype.isbuiltin == 1 else x.astype(np.float32)


def _total_order(x: Any) -> Any:
    """Integers, or booleans, in the same order; -NaN < -inf < ... < -0.0 < 0.0 < ... < inf < NaN."""
    dtype = x.dtype
    if not dtypes.is_float(dtype):
        return x
    if dtype.itemsize == 1:
        x = x.astype(np.float32)
        if dtypes.short_name(dtype).endswith("fnuz"):  # the one NaN has the bit of a sign, but none
            x = np.where(np.isnan(x), np.float32(np.nan), x)
    kind = _BITS[x.dtype.itemsize]
    bits = np.ascontiguousarray(x).view(kind)
    return bits ^ ((bits >> (kind.itemsize * 8 - 1)) & np.iinfo(kind).max)
