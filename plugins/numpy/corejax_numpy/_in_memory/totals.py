"""Totals that aren't array methods: those are in the pack of reductions."""

from __future__ import annotations

from typing import Any

import numpy as np

from corejax_reductions import in_memory

__all__ = ["average", "count_nonzero", "cumulative_prod", "cumulative_sum", "ptp"]


def ptp(a: Any, axis: Any = None, out: None = None, keepdims: bool = False) -> Any:
    x = in_memory.numbers(a)
    return in_memory.max(x, axis, None, keepdims) - in_memory.min(x, axis, None, keepdims)


def count_nonzero(a: Any, axis: Any = None, keepdims: bool = False) -> Any:
    x = np.asarray(a)
    if axis is None and not keepdims:
        return np.int64(np.count_nonzero(x))
    count: Any = np.add.reduce
    return count(x if x.dtype.char == "?" else x != 0, axis, None, None, keepdims)


def cumulative_sum(x: Any, /, *, axis: Any = None) -> Any:
    return in_memory.running(np.add.accumulate, x, axis, None)


def cumulative_prod(x: Any, /, *, axis: Any = None) -> Any:
    return in_memory.running(np.multiply.accumulate, x, axis, None)


def average(a: Any, axis: Any = None) -> Any:
    return in_memory.mean(a, axis)
