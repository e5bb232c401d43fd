"""Quantiles, and what else needs an order."""

# mypy: disable-error-code="call-overload"
# What NumPy takes is passed on as it came.

from __future__ import annotations

from typing import Any

import numpy as np

from corejax.plugin import NotDirectly
from corejax_reductions import in_memory

__all__ = ["median", "percentile", "quantile"]


def median(a: Any, axis: Any = None, out: None = None, overwrite_input: bool = False, keepdims: bool = False) -> Any:
    return quantile(a, 0.5, axis, keepdims=keepdims)


def percentile(a: Any, q: Any, axis: Any = None, out: None = None, overwrite_input: bool = False,
               method: str = "linear", keepdims: bool = False) -> Any:
    return quantile(a, q / 100.0 if type(q) in (int, float) else np.true_divide(q, 100.0), axis, out, overwrite_input,
                    method, keepdims)


def quantile(a: Any, q: Any, axis: Any = None, out: None = None, overwrite_input: bool = False,
             method: str = "linear", keepdims: bool = False) -> Any:
    x = _floats(a)
    if method != "linear" or not x.size or keepdims or type(axis) is tuple or not x.ndim:
        raise NotDirectly
    if type(q) is float or type(q) is int:
        return _quantile(x, float(q), axis)
    shares = np.asarray(q)
    if x.dtype.char != "d" or not shares.ndim or shares.dtype.kind not in "fiu":
        raise NotDirectly
    return _quantiles(x, shares.astype(float), axis)


def _floats(a: Any) -> Any:
    x = in_memory.numbers(a)
    if x.dtype.kind == "f":
        return x
    if x.dtype.kind == "c":
        raise NotDirectly
    return x.astype("d" if x.dtype.itemsize == 8 else "f")


def _rising(x: Any, axis: Any) -> Any:
    """Sorted elements along the last axis."""
    if axis is None or x.ndim == 1:
        return np.sort(x, axis=None)
    return np.sort(np.moveaxis(x, axis, -1))


def _quantile(x: Any, q: float, axis: Any) -> Any:
    if not 0.0 <= q <= 1.0:
        raise NotDirectly
    rising = _rising(x, axis)
    at = q * (rising.shape[-1] - 1)
    below = int(at)
    share = at - below
    low = rising[..., below]
    if share:
        number = x.dtype.type
        low = low * number(number(1) - number(share)) + rising[..., below + 1] * number(share)
    last = rising[..., -1]
    if rising.ndim == 1:
        return last if last != last else low
    return np.where(last != last, last, low)


def _quantiles(x: Any, q: Any, axis: Any) -> Any:
    if not ((q >= 0.0) & (q <= 1.0)).all():
        raise NotDirectly
    rising = _rising(x, axis)
    size = rising.shape[-1]
    at = q * (size - 1)
    below = at.astype(int)
    share = at - below
    low, high = rising[..., below], rising[..., np.minimum(below + 1, size - 1)]
    last = rising[..., -1]
    last = last.reshape(last.shape + (1,) * q.ndim)
    found = np.where(last != last, last, np.where(share == 0, low, low * (1 - share) + high * share))
    return np.moveaxis(found, range(-q.ndim, 0), range(q.ndim))


def nanmedian(a: Any, axis: Any = None, out: None = None, overwrite_input: bool = False, keepdims: bool = False) -> Any:
    return nanquantile(a, 0.5, axis, keepdims=keepdims)


def nanpercentile(a: Any, q: Any, axis: Any = None, out: None = None, overwrite_input: bool = False,
                  method: str = "linear", keepdims: bool = False) -> Any:
    if type(q) not in (int, float):
        raise NotDirectly
    return nanquantile(a, q / 100.0, axis, out, overwrite_input, method, keepdims)


def nanquantile(a: Any, q: Any, axis: Any = None, out: None = None, overwrite_input: bool = False,
                method: str = "linear", keepdims: bool = False) -> Any:
    x = _floats(a)
    if x.dtype.char not in "fd" or not x.size or not x.ndim or axis is not None and x.ndim > 1:
        raise NotDirectly
    present = x[x == x]
    if not present.size:
        raise NotDirectly
    return quantile(present, q if type(q) in (int, float) else _refuse(), None, None, False, method, keepdims)


def _refuse() -> Any:
    raise NotDirectly


# Sorting

def sort(a: Any, axis: Any = -1, kind: Any = None, order: Any = None, *, stable: Any = True) -> Any:
    x = in_memory.numbers(a)
    if x.dtype.kind == "c" or kind is not None or order is not None or not x.ndim:
        raise NotDirectly
    return np.sort(x, axis, kind="stable" if x.dtype.kind == "f" and x.size > 1 and not x.all() else None)


def argsort(a: Any, axis: Any = -1, kind: Any = None, order: Any = None, *, stable: Any = True) -> Any:
    x = in_memory.numbers(a)
    if x.dtype.kind == "c" or kind is not None or order is not None or not x.ndim:
        raise NotDirectly
    return x.argsort(axis, kind="stable")


def partition(a: Any, kth: Any, axis: Any = -1) -> Any:
    if type(kth) is not int or not -np.asarray(a).shape[axis or 0] <= kth or axis is None:
        raise NotDirectly
    if not kth < np.asarray(a).shape[axis]:
        raise NotDirectly
    return sort(a, axis)


def argpartition(a: Any, kth: Any, axis: Any = -1) -> Any:
    if type(kth) is not int or not -np.asarray(a).shape[axis or 0] <= kth or axis is None:
        raise NotDirectly
    if not kth < np.asarray(a).shape[axis]:
        raise NotDirectly
    return argsort(a, axis)


def lexsort(keys: Any, axis: Any = -1) -> Any:
    parts = [np.asarray(key) for key in keys]
    if not parts[0].ndim or [part for part in parts if part.dtype.kind not in "biuf"]:
        raise NotDirectly
    return np.lexsort(parts, axis)


def sort_complex(a: Any) -> Any:
    x = in_memory.numbers(a)
    return np.sort(x.astype("D" if x.dtype.itemsize == 8 else "F"), kind="stable") if x.dtype.kind != "c" else sort(x)


def searchsorted(a: Any, v: Any, side: str = "left", *, method: str = "scan") -> Any:
    a, v = in_memory.numbers(a), v if type(v) in (int, float) else np.asarray(v)
    if type(v) is float and a.dtype.char != "d" or type(v) is int and a.dtype.kind not in "f":
        raise NotDirectly
    if isinstance(v, np.ndarray) and v.dtype != a.dtype or a.ndim != 1:
        raise NotDirectly
    return a.searchsorted(v, side)


def isin(element: Any, test_elements: Any, assume_unique: bool = False, invert: bool = False) -> Any:
    x, tests = np.asarray(element), np.asarray(test_elements)
    if x.dtype != tests.dtype:
        raise NotDirectly
    if tests.size <= 16 and x.size <= 1000 and x.ndim == 1:
        found = (x == tests.reshape(-1, 1)).any(0)
        return ~found if invert else found
    return np.isin(x, tests, invert=invert)


def digitize(x: Any, bins: Any, right: bool = False) -> Any:
    values, bounds = np.asarray(x), in_memory.numbers(bins)
    if values.dtype != bounds.dtype or values.dtype.kind not in "iuf" or not bounds.size or bounds.ndim != 1:
        raise NotDirectly
    if not bounds[0] <= bounds[-1]:
        raise NotDirectly
    return bounds.searchsorted(values, "left" if right else "right")


def _bins(x: Any, bins: Any) -> tuple[Any, Any]:
    """The bin of each element of a vector, and the bounds."""
    if x.dtype.char != "d" or type(bins) is not int or not x.size:
        raise NotDirectly
    edges = histogram_bin_edges(x, bins)
    low, high = edges[0], edges[bins]
    near = ((x - low) * (float(bins) / (high - low))).clip(0, bins - 1).astype(np.int32)
    near -= (x < edges[near]) & (near > 0)
    near += (x >= edges[near + 1]) & (near < bins - 1)
    return near, edges


def histogram_bin_edges(a: Any, bins: Any = 10) -> Any:
    x = in_memory.numbers(a)
    if x.dtype.char != "d" or type(bins) is not int or not x.size:
        raise NotDirectly
    low, high = x.min(), x.max()
    if not low < high or not np.isfinite(high - low):
        raise NotDirectly
    edges = (high - low) / float(bins) * np.arange(bins + 1) + low
    edges[bins] = high
    return edges


def histogram(a: Any, bins: Any = 10) -> Any:
    near, edges = _bins(in_memory.numbers(a).ravel(), bins)
    return np.bincount(near, minlength=bins), edges


def histogram2d(x: Any, y: Any, bins: Any = 10) -> Any:
    if x.ndim != 1 or x.shape != y.shape:
        raise NotDirectly
    (rows, above), (columns, along) = _bins(x, bins), _bins(y, bins)
    found = np.bincount(rows * np.int64(bins) + columns, minlength=bins * bins)
    return found.reshape(bins, bins).astype(float), above, along


def cov(m: Any) -> Any:
    x = in_memory.numbers(m)
    if x.dtype.char not in "fd" or x.ndim not in (1, 2) or x.shape[-1] < 2 or not x.size:
        raise NotDirectly
    x = x.reshape(1, x.size) if x.ndim == 1 else x
    offset = x - np.add.reduce(x, 1, None, None, True) / x.dtype.type(x.shape[1])
    found = (offset @ offset.T) / x.dtype.type(x.shape[1] - 1)
    return found.squeeze() if found.shape[0] > 1 else found.reshape(())


def corrcoef(x: Any) -> Any:
    found = cov(x)
    if not found.ndim:
        return found / found
    spread = np.sqrt(found.diagonal())
    return np.minimum(np.maximum(found / spread[:, None] / spread, -1), 1)
