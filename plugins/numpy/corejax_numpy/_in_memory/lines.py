"""Differences, lines through points, integrals."""

from __future__ import annotations

from math import pi
from typing import Any

import numpy as np

from corejax.plugin import NotDirectly
from corejax_reductions import in_memory

__all__ = ["diff", "ediff1d", "gradient", "interp", "trapezoid", "unwrap"]


def diff(a: Any, n: Any = 1, axis: Any = -1) -> Any:
    x = in_memory.numbers(a)
    if n != 1 or type(axis) is not int or not x.ndim or x.dtype.char == "?":
        raise NotDirectly
    if axis == -1 or axis == x.ndim - 1:
        return x[..., 1:] - x[..., :-1]
    return np.diff(x, axis=axis)


def ediff1d(ary: Any) -> Any:
    x = in_memory.numbers(ary).ravel()
    if x.dtype.char == "?":
        raise NotDirectly
    return x[1:] - x[:-1]


def gradient(f: Any, *, axis: Any = None, edge_order: Any = None) -> Any:
    x = in_memory.numbers(f)
    if x.ndim != 1 or x.dtype.kind not in "fc" or edge_order not in (None, 1) or x.size < 2 or axis not in (None, 0,
                                                                                                            -1):
        raise NotDirectly
    found = np.empty_like(x)
    np.divide(x[2:] - x[:-2], 2.0, found[1:-1])
    found[0] = x[1] - x[0]
    found[-1] = x[-1] - x[-2]
    return found


def trapezoid(y: Any, x: Any = None, dx: Any = 1.0, axis: Any = -1) -> Any:
    y = in_memory.numbers(y)
    if x is not None or type(dx) not in (int, float) or axis != -1 or y.ndim == 0 or y.dtype.kind not in "fc":
        raise NotDirectly
    if y.shape[-1] < 2:
        raise NotDirectly
    return np.add.reduce((y[..., 1:] + y[..., :-1]) * dx / 2.0, -1)


def interp(x: Any, xp: Any, fp: Any, left: Any = None, right: Any = None) -> Any:
    xp, fp = np.asarray(xp), np.asarray(fp)
    if (xp.dtype.char, fp.dtype.char) not in (("d", "d"), ("d", "D"), ("f", "f")):
        raise NotDirectly
    if isinstance(left, str) or isinstance(right, str):
        raise NotDirectly
    if not (type(x) is float or np.asarray(x).dtype == xp.dtype):
        raise NotDirectly
    found = np.interp(x, xp, fp, left, right)
    if np.isnan(found).any() or (xp[1:] - xp[:-1] < 1e-30).any():
        raise NotDirectly
    return found.astype(fp.dtype, copy=False)


def unwrap(p: Any, discont: Any = None, axis: Any = -1, period: Any = 2 * pi) -> Any:
    x = in_memory.numbers(p)
    if x.dtype.kind != "f" or discont is not None or axis != -1 or type(period) not in (int, float) or not x.size:
        raise NotDirectly
    half, step = period / 2, x[..., 1:] - x[..., :-1]
    turned = np.mod(step + half, period) - half
    turned[(turned == -half) & (step > 0)] = half
    moved = turned - step
    moved[np.abs(step) < half] = 0
    found = x.copy()
    found[..., 1:] += np.add.accumulate(moved, -1)
    return found
