"""Polynomials."""

# mypy: disable-error-code="call-overload"
# What NumPy takes is passed on as it came.

from __future__ import annotations

from typing import Any

import numpy as np

from corejax.plugin import NotDirectly
from corejax_numpy._in_memory.matrices import eps_of, lstsq

__all__ = ["poly", "polyadd", "polyder", "polyfit", "polyint", "polysub", "powers", "roots"]


def polyadd(a1: Any, a2: Any) -> Any:
    return np.add(*_padded(a1, a2))


def polysub(a1: Any, a2: Any) -> Any:
    return np.subtract(*_padded(a1, a2))


def _padded(a1: Any, a2: Any) -> tuple[Any, Any]:
    missing = a1.size - a2.size
    if not missing:
        return a1, a2
    zeros = np.zeros(abs(missing), (a2 if missing > 0 else a1).dtype)
    return (a1, np.concatenate((zeros, a2))) if missing > 0 else (np.concatenate((zeros, a1)), a2)


def powers(x: Any, count: int, increasing: bool = False) -> Any:
    """`np.vander`, but in the vector's dtype."""
    found = np.ones((x.size, count), np.int64 if x.dtype.kind == "b" else x.dtype)
    rising = found if increasing else found[:, ::-1]
    if count > 1:
        rising[:, 1:] = x[:, None]
        np.multiply.accumulate(rising[:, 1:], 1, None, rising[:, 1:])
    return found


def polyder(p: Any, m: int = 1) -> Any:
    if type(m) is not int or m != 1 or p.dtype.char not in "fd" or p.ndim != 1 or p.size < 2:
        raise NotDirectly
    return p[:-1] * np.arange(p.size - 1, 0, -1, p.dtype)


def polyint(p: Any, m: int = 1) -> Any:
    if type(m) is not int or m != 1 or p.dtype.char not in "fd" or p.ndim != 1:
        raise NotDirectly
    found = np.zeros(p.size + 1, p.dtype)
    np.divide(p, np.arange(p.size, 0, -1, p.dtype), found[:-1])
    return found


def poly(seq_of_zeros: Any) -> Any:
    x = seq_of_zeros
    if x.ndim != 1 or x.dtype.char not in "fd" or not np.isfinite(x).all():
        raise NotDirectly
    if not x.size:
        return x.dtype.type(1)
    found = np.zeros(x.size + 1, x.dtype)
    found[0] = 1
    for k in range(x.size):
        found[1:k + 2] -= x[k] * found[:k + 1]
    return found


def roots(p: Any) -> Any:
    if p.dtype.char != "d" or p.ndim != 1 or not np.isfinite(p).all():
        raise NotDirectly
    return np.roots(p).astype(complex)


def polyfit(x: Any, y: Any, deg: int, rcond: float | None = None) -> Any:
    if x.dtype.char not in "fd" or x.dtype is not y.dtype or x.ndim != 1 or not x.size or deg < 0:
        raise NotDirectly
    matrix = powers(x, deg + 1)
    scale = np.sqrt(np.add.reduce(matrix * matrix, 0))
    found = lstsq(matrix / scale, y, x.size * eps_of(x) if rcond is None else float(rcond))[0]
    return found / (scale if y.ndim == 1 else scale[:, None])

