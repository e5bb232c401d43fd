"""`corejax.numpy.fft`: discrete Fourier transforms, with NumPy's names and signatures."""

from __future__ import annotations
