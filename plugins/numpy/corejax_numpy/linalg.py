"""`corejax.numpy.linalg`: norms, systems of equations, factorisations, eigenvalues; of batches of matrices."""

from __future__ import annotations

from corejax.plugin import namespace
from corejax_numpy._array_products import (
    cross,
    diagonal,
    matmul,
    matrix_power,
    matrix_transpose,
    multi_dot,
    outer,
    tensordot,
    trace,
    vecdot,
)
from corejax_numpy._determinants import det, slogdet
from corejax_numpy._factoring import cholesky, eig, eigh, eigvals, eigvalsh, qr, svd, svdvals
from corejax_numpy._missing import instead_of
from corejax_numpy._norms import cond, matrix_norm, matrix_rank, norm, vector_norm
from corejax_numpy._solving import inv, lstsq, pinv, solve, tensorinv, tensorsolve

__all__ = [
    "cholesky", "cond", "cross", "det", "diagonal", "eig", "eigh", "eigvals", "eigvalsh", "inv", "lstsq", "matmul",
    "matrix_norm", "matrix_power", "matrix_rank", "matrix_transpose", "multi_dot", "norm", "outer", "pinv", "qr",
    "slogdet", "solve", "svd", "svdvals", "tensordot", "tensorinv", "tensorsolve", "trace", "vecdot", "vector_norm",
]

_, __getattr__, __dir__ = namespace(__name__, {}, __all__, instead_of)
