"""Transforms of NumPy arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

#: For each number of a FftType, the transform along the last axis, and along those before it.
_LAST: tuple[Callable[..., Any], ...] = (np.fft.fft, np.fft.ifft, np.fft.rfft, np.fft.irfft)
_OTHERS: tuple[Callable[..., Any], ...] = (np.fft.fft, np.fft.ifft, np.fft.fft, np.fft.ifft)


def transformed(x: Any, fft_type: int, lengths: tuple[int, ...]) -> Any:
    """The transform of an array that has elements. NumPy keeps the precision of single-precision operands."""
    along_last, along_other, count = _LAST[fft_type], _OTHERS[fft_type], len(lengths)
    if count == 1:
        return along_last(x, lengths[0])
    half_comes_last = along_last is np.fft.irfft
    new = None if half_comes_last else along_last(x, lengths[-1])
    for axis in range(-count, -1):
        new = along_other(x if new is None else new, axis=axis, out=new)  # in place, but not in the operand's
    return along_last(new, lengths[-1]) if half_comes_last else new
