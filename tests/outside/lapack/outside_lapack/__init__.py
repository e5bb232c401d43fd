"""FFT, sort and Cholesky for corejax."""

from outside_lapack.matrices import cholesky, triangular_solve
from outside_lapack.sorting import argsort, searchsorted, sort_rows
from outside_lapack.transforms import fft

__all__ = ["argsort", "cholesky", "fft", "searchsorted", "sort_rows", "triangular_solve"]
