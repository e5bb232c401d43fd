"""What NumPy computes at once for arrays in host memory: the array methods of the same names.

Arguments that aren't here, and operands for which these raise `NotDirectly`, go to the methods themselves.
"""

# mypy: disable-error-code="call-overload"
# What NumPy takes is passed on as it came.

from __future__ import annotations

from math import prod as product_of
from typing import Any

import numpy as np

from corejax.plugin import NotDirectly

__all__ = ["all", "any", "argmax", "argmin", "cumprod", "cumsum", "max", "mean", "min", "numbers", "prod", "reduced",
           "running", "std", "sum", "var"]

_add: Any
_mul: Any
_max: Any
_min: Any
_or: Any = np.logical_or.reduce
_and: Any = np.logical_and.reduce
_add, _mul = np.add.reduce, np.multiply.reduce
_max, _min = np.maximum.reduce, np.minimum.reduce


def numbers(x: Any) -> Any:
    """An operand as an ndarray of a dtype of NumPy's own of 32 bits or more, booleans or integers."""
    x = np.asarray(x)
    if x.dtype.char == "e" or x.dtype.isbuiltin != 1:
        raise NotDirectly
    return x


def reduced(reduce: Any, x: Any, axis: Any, dtype: Any, keepdims: bool) -> Any:
    x = numbers(x)
    if not x.size or x.ndim == 0 or dtype is not None:
        raise NotDirectly
    return reduce(x, axis, None, None, keepdims)


def sum(a: Any, axis: Any = None, dtype: Any = None, out: None = None, keepdims: bool = False) -> Any:
    return reduced(_add, a, axis, dtype, keepdims)


def prod(a: Any, axis: Any = None, dtype: Any = None, out: None = None, keepdims: bool = False) -> Any:
    return reduced(_mul, a, axis, dtype, keepdims)


def max(a: Any, axis: Any = None, out: None = None, keepdims: bool = False) -> Any:
    return reduced(_max, a, axis, None, keepdims)


def min(a: Any, axis: Any = None, out: None = None, keepdims: bool = False) -> Any:
    return reduced(_min, a, axis, None, keepdims)


def count_of(x: Any, axis: Any) -> float:
    """How many elements go into each result."""
    if axis is None:
        return float(x.size)
    if type(axis) is int:
        return float(x.shape[axis])
    return float(product_of([x.shape[d] for d in axis]))


_WIDE = {"f": "f", "d": "d", "F": "F", "D": "D"}  # what a mean is computed in: doubles for all others


def _averaged(a: Any, dtype: Any) -> tuple[Any, Any]:
    """The numbers in the dtype to compute in, and the dtype of the result."""
    x = numbers(a)
    char = x.dtype.char
    if dtype is not None or not x.size or not x.ndim:
        raise NotDirectly
    if char in _WIDE:
        return x, char
    return x, "d" if x.dtype.itemsize == 8 else "f"


def mean(a: Any, axis: Any = None, dtype: Any = None, out: None = None, keepdims: bool = False) -> Any:
    x, wanted = _averaged(a, dtype)
    total = _add(x, axis, _WIDE.get(x.dtype.char, "d"), None, keepdims) / count_of(x, axis)
    return total if total.dtype.char == wanted else total.astype(wanted)


def var(a: Any, axis: Any = None, dtype: Any = None, out: None = None, ddof: float = 0, keepdims: bool = False, *,
        correction: float | None = None) -> Any:
    x, wanted = _averaged(a, dtype)
    if correction is not None:
        if ddof:
            raise NotDirectly
        ddof = correction
    wide, count = _WIDE.get(x.dtype.char, "d"), count_of(x, axis)
    if count <= ddof:
        raise NotDirectly
    if x.dtype.char != wide:
        x = x.astype(wide)
    offset = x - _add(x, axis, None, None, True) / x.dtype.type(count)
    if wide in "FD":
        offset, wanted = np.abs(offset), wanted.lower()
    total = _add(np.square(offset), axis, None, None, keepdims) / (count - ddof)
    return total if total.dtype.char == wanted else total.astype(wanted)


def std(a: Any, axis: Any = None, dtype: Any = None, out: None = None, ddof: float = 0, keepdims: bool = False, *,
        correction: float | None = None) -> Any:
    return np.sqrt(var(a, axis, dtype, out, ddof, keepdims, correction=correction))


def any(a: Any, axis: Any = None, out: None = None, keepdims: bool = False) -> Any:
    return _or(a, axis, None, None, keepdims)


def all(a: Any, axis: Any = None, out: None = None, keepdims: bool = False) -> Any:
    return _and(a, axis, None, None, keepdims)


def argmax(a: Any, axis: Any = None, out: None = None, keepdims: bool | None = None) -> Any:
    if keepdims:
        raise NotDirectly
    return numbers(a).argmax(axis)


def argmin(a: Any, axis: Any = None, out: None = None, keepdims: bool | None = None) -> Any:
    if keepdims:
        raise NotDirectly
    return numbers(a).argmin(axis)


def running(accumulate: Any, a: Any, axis: Any, dtype: Any) -> Any:
    x = numbers(a)
    if dtype is not None or x.dtype.char == "?":
        raise NotDirectly
    return accumulate(x.ravel(), 0, x.dtype) if axis is None else accumulate(x, axis, x.dtype)


def cumsum(a: Any, axis: Any = None, dtype: Any = None, out: None = None) -> Any:
    return running(np.add.accumulate, a, axis, dtype)


def cumprod(a: Any, axis: Any = None, dtype: Any = None, out: None = None) -> Any:
    return running(np.multiply.accumulate, a, axis, dtype)
