"""Functions of elements."""

# mypy: disable-error-code="call-overload"
# What NumPy takes is passed on as it came.

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from corejax.plugin import NotDirectly
from corejax_lax_basic import limited

__all__ = ["clip", "float_power", "i0", "imag", "real", "reciprocal", "rounded", "spacing"]


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


def spacing(x: Any) -> Any:
    return np.copysign(np.spacing(np.abs(x)), x)  # that of -0.0 is negative


def float_power(x1: Any, x2: Any) -> Any:
    if not any([type(x) is complex or getattr(x, "dtype", _DOUBLE).kind == "c" for x in (x1, x2)]):
        return np.float_power(x1, x2)
    raise NotDirectly


_DOUBLE = np.dtype(np.float64)


def i0(x: Any) -> Any:
    if np.asarray(x).dtype.char != "d":
        raise NotDirectly
    return np.i0(x).reshape(np.shape(x))


def clip(arr: Any, min: Any = None, max: Any = None) -> Any:
    if type(arr) is np.ndarray and min is not None and max is not None:
        return limited(min, arr, max)
    x = arr if min is None else np.maximum(arr, min)
    return x if max is None else np.minimum(x, max)


def rounded(a: Any, decimals: int = 0, out: None = None) -> Any:
    if np.asarray(a).dtype.kind != "f":
        raise NotDirectly
    return np.rint(a) if decimals == 0 else np.round(a, decimals)
