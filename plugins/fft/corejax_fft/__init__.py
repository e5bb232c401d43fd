"""Fourier transforms along the last axes."""

from corejax_fft.transforming import FftType, fft

__all__ = ["FftType", "fft"]
