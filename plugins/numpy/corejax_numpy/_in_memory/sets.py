"""Places and parts of which there are as many as values say."""

# mypy: disable-error-code="call-overload"
# What NumPy takes is passed on as it came.

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from corejax.plugin import NotDirectly

__all__ = ["argwhere", "bincount", "compress", "delete", "extract", "flatnonzero", "insert", "nonzero", "of_two",
           "unique", "unique_all", "unique_counts", "unique_inverse", "unique_values"]


# Where elements are nonzero

def nonzero(a: Any) -> Any:
    return np.asarray(a).nonzero()


def argwhere(a: Any) -> Any:
    x = np.asarray(a)
    if not x.ndim:
        raise NotDirectly
    return np.stack(x.nonzero(), 1)


def flatnonzero(a: Any) -> Any:
    return np.asarray(a).ravel().nonzero()[0]


def compress(condition: Any, a: Any, axis: Any = None, out: None = None) -> Any:
    return np.asarray(a).compress(condition, axis)


def extract(condition: Any, arr: Any) -> Any:
    return np.asarray(arr).ravel().compress(np.asarray(condition).ravel())


def bincount(x: Any, weights: Any = None, minlength: int = 0) -> Any:
    numbers = np.asarray(x)
    if weights is not None or numbers.dtype.kind not in "iu":
        raise NotDirectly
    return np.bincount(numbers, None, minlength)


# Sets

def _sortable(x: Any) -> Any:
    x = np.asarray(x)
    if x.dtype.isbuiltin != 1:
        raise NotDirectly
    return x


def unique(ar: Any, return_index: bool = False, return_inverse: bool = False, return_counts: bool = False) -> Any:
    return np.unique(_sortable(ar), return_index, return_inverse, return_counts)


def unique_all(x: Any) -> Any:
    return np.unique(_sortable(x), True, True, True, equal_nan=False)


def unique_counts(x: Any) -> Any:
    return np.unique(_sortable(x), False, False, True, equal_nan=False)


def unique_inverse(x: Any) -> Any:
    return np.unique(_sortable(x), False, True, False, equal_nan=False)


def unique_values(x: Any) -> Any:
    return np.unique(_sortable(x), equal_nan=False)


def of_two(function: Any) -> Callable[..., Any]:
    """A function of two sets of one dtype: NumPy compares others without rounding."""
    def call(ar1: Any, ar2: Any, *flags: Any) -> Any:
        x, y = _sortable(ar1), _sortable(ar2)
        if x.dtype is not y.dtype:
            raise NotDirectly
        return function(x, y, *flags)
    return call


# Deleted and inserted

def delete(arr: Any, obj: Any, axis: Any = None) -> Any:
    places = np.asarray(obj)
    if places.dtype.kind not in "iub":
        raise NotDirectly
    return np.delete(np.asarray(arr), obj if type(obj) is int else places, axis)


def insert(arr: Any, obj: Any, values: Any, axis: Any = None) -> Any:
    x, places = np.asarray(arr), np.asarray(obj)
    if places.dtype.kind not in "iu" or np.result_type(x, values) is not x.dtype:
        raise NotDirectly
    return np.insert(x, obj if type(obj) is int else places, values, axis)
