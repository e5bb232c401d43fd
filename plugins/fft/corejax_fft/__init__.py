"""Fourier transforms along the last axes."""

__all__: list[str] = []
