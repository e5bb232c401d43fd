"""Transforms of NumPy arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

#: For each number of a FftType, the transform along the last axis, and along those before it.
_LAST = (np.fft.fft, np.fft.ifft, np.fft.rfft, np.fft.irfft)
_OTHERS = (np.fft.fft, np.fft.ifft, np.fft.fft, np.fft.ifft)


def transformed(x: Any, fft_type: int, lengths: tuple[int, ...]) -> Any:
    """The transform of an array that has elements. NumPy keeps the precision of single-precision operands."""
    if len(lengths) == 1:
        return _LAST[fft_type](x, lengths[0])
    others, own = range(-len(lengths), -1), None  # `own` is memory that isn't the operand's
    if fft_type != 3:
        x = own = _LAST[fft_type](x, lengths[-1])
    for axis in others:
        x = own = _OTHERS[fft_type](x, axis=axis, out=own)
    return x if fft_type != 3 else _LAST[fft_type](x, lengths[-1])
