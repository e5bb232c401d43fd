"""Functions of elements."""

# mypy: disable-error-code="call-overload"
# What NumPy takes is passed on as it came.

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from corejax.plugin import NotDirectly

__all__ = ["clip", "i0", "imag", "real", "reciprocal", "rounded"]


def real(function: Any) -> Callable[[Any, Any], Any]:
    """A function of two operands that aren't complex."""
    def call(x1: Any, x2: Any) -> Any:
        found = function(x1, x2)
        if found.dtype.kind == "c":
            raise NotDirectly
        return found
    return call


def reciprocal(x: Any) -> Any:
    found = np.true_divide(1.0, x)
    if found.dtype.kind == "c":
        raise NotDirectly
    return found


def imag(val: Any) -> Any:
    x = np.asarray(val)
    if x.dtype.kind == "c":
        raise NotDirectly
    return np.zeros(x.shape, x.dtype)


def i0(x: Any) -> Any:
    if np.asarray(x).dtype.char != "d":
        raise NotDirectly
    return np.i0(x).reshape(np.shape(x))


def clip(arr: Any, min: Any = None, max: Any = None) -> Any:
    x = arr if min is None else np.maximum(arr, min)
    return x if max is None else np.minimum(x, max)


def rounded(a: Any, decimals: int = 0, out: None = None) -> Any:
    if np.asarray(a).dtype.kind != "f":
        raise NotDirectly
    return np.rint(a) if decimals == 0 else np.round(a, decimals)
