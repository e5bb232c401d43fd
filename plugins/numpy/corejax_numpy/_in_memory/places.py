"""Parts at places."""

# mypy: disable-error-code="call-overload"
# What NumPy takes is passed on as it came.

from __future__ import annotations

from typing import Any

import numpy as np

from corejax.plugin import NotDirectly

__all__ = ["put_along_axis", "take", "take_along_axis"]


def take(a: Any, indices: Any, axis: Any = None, out: None = None, mode: str | None = None) -> Any:
    x: Any = np.asarray(a)
    places = np.asarray(indices)
    if mode == "fill" or places.dtype.kind not in "iu":
        raise NotDirectly
    found = x.take(places, axis, None, "raise" if mode is None else mode)
    return found.copy() if isinstance(found, np.ndarray) and found.base is not None else found


#: The kinds of dtypes that hold Python's numbers.
_HOLDS = {int: "iufc", float: "fc"}


def put_along_axis(arr: Any, indices: Any, values: Any, axis: Any = -1, inplace: bool = True) -> Any:
    x, places = np.asarray(arr), np.asarray(indices)
    fits = x.dtype.kind in _HOLDS.get(type(values), "") or getattr(values, "dtype", None) == x.dtype
    if inplace or axis is None or places.dtype.kind not in "iu" or not fits:
        raise NotDirectly
    found = x.copy()
    np.put_along_axis(found, places, values, axis)
    return found


def take_along_axis(arr: Any, indices: Any, axis: Any = -1) -> Any:
    return np.take_along_axis(np.asarray(arr), np.asarray(indices), axis)
