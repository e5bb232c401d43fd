"""Transforms of NumPy arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

#: For each number of a FftType, the transform along the last axis, and along several.
_ALONG_ONE = (np.fft.fft, np.fft.ifft, np.fft.rfft, np.fft.irfft)
_ALONG_SEVERAL = (np.fft.fftn, np.fft.ifftn, np.fft.rfftn, np.fft.irfftn)


def transformed(x: Any, fft_type: int, lengths: tuple[int, ...]) -> Any:
    """The transform of an array that has elements. NumPy keeps the precision of single-precision operands."""
    if len(lengths) == 1:
        return _ALONG_ONE[fft_type](x, lengths[0])
    return _ALONG_SEVERAL[fft_type](x, lengths, tuple(range(-len(lengths), 0)))
