"""Totals without NaN."""

# mypy: disable-error-code="call-overload"
# What NumPy takes is passed on as it came.

from __future__ import annotations

from typing import Any

import numpy as np

from corejax.plugin import NotDirectly
from corejax_reductions import in_memory

_add: Any = np.add.reduce

__all__ = ["nanargmax", "nanargmin", "nancumprod", "nancumsum", "nanmax", "nanmean", "nanmin", "nanprod", "nanstd",
           "nansum", "nanvar"]


def _without_nan(a: Any, value: float) -> Any:
    x = in_memory.numbers(a)
    if x.dtype.kind not in "fc":
        return x
    missing = x != x
    return np.where(missing, x.dtype.type(value), x) if missing.any() else x


def nansum(a: Any, axis: Any = None, dtype: Any = None, out: None = None, keepdims: bool = False) -> Any:
    return in_memory.sum(_without_nan(a, 0), axis, dtype, None, keepdims)


def nanprod(a: Any, axis: Any = None, dtype: Any = None, out: None = None, keepdims: bool = False) -> Any:
    return in_memory.prod(_without_nan(a, 1), axis, dtype, None, keepdims)


def _extreme(reduce: Any, a: Any, axis: Any, keepdims: bool) -> Any:
    x = in_memory.numbers(a)
    if not x.size or not x.ndim or x.dtype.kind == "c":
        raise NotDirectly
    return reduce(x, axis, None, None, keepdims)


def nanmax(a: Any, axis: Any = None, out: None = None, keepdims: bool = False) -> Any:
    return _extreme(np.fmax.reduce, a, axis, keepdims)


def nanmin(a: Any, axis: Any = None, out: None = None, keepdims: bool = False) -> Any:
    return _extreme(np.fmin.reduce, a, axis, keepdims)


def _floats(a: Any, dtype: Any) -> Any:
    x = in_memory.numbers(a)
    if x.dtype.char not in "fd" or not x.size or not x.ndim or dtype is not None:
        raise NotDirectly
    return x


def nanmean(a: Any, axis: Any = None, dtype: Any = None, out: None = None, keepdims: bool = False) -> Any:
    x = _floats(a, dtype)
    present = x == x
    total = _add(np.where(present, x, x.dtype.type(0)), axis, None, None, keepdims)
    return total / _add(present, axis, x.dtype, None, keepdims)


def nanvar(a: Any, axis: Any = None, dtype: Any = None, out: None = None, ddof: float = 0,
           keepdims: bool = False) -> Any:
    x = _floats(a, dtype)
    if ddof:
        raise NotDirectly
    present, zero = x == x, x.dtype.type(0)
    count = _add(present, axis, x.dtype, None, True)
    offset = x - _add(np.where(present, x, zero), axis, None, None, True) / count
    found = _add(np.where(present, np.square(offset), zero), axis, None, None, True) / count
    if keepdims:
        return found
    return found.reshape(()) if axis is None else np.squeeze(found, axis)


def nanstd(a: Any, axis: Any = None, dtype: Any = None, out: None = None, ddof: float = 0,
           keepdims: bool = False) -> Any:
    return np.sqrt(nanvar(a, axis, dtype, out, ddof, keepdims))


def _position(x: Any, find: str, worst: float, axis: Any, keepdims: Any) -> Any:
    x = in_memory.numbers(x)
    if x.dtype.char not in "fd" or not x.size or not x.ndim or keepdims:
        raise NotDirectly
    missing = x != x
    if not missing.any():
        return getattr(x, find)(axis)
    found = getattr(np.where(missing, x.dtype.type(worst), x), find)(axis)
    return np.where(missing.all(axis), -1, found)


def nanargmax(a: Any, axis: Any = None, out: None = None, keepdims: bool | None = None) -> Any:
    return _position(a, "argmax", -np.inf, axis, keepdims)


def nanargmin(a: Any, axis: Any = None, out: None = None, keepdims: bool | None = None) -> Any:
    return _position(a, "argmin", np.inf, axis, keepdims)


def nancumsum(a: Any, axis: Any = None, dtype: Any = None, out: None = None) -> Any:
    return in_memory.cumsum(_without_nan(a, 0), axis, dtype)


def nancumprod(a: Any, axis: Any = None, dtype: Any = None, out: None = None) -> Any:
    return in_memory.cumprod(_without_nan(a, 1), axis, dtype)
