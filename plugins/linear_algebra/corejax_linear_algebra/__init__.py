"""Linear algebra: factorisations, triangular systems, eigenvalues; of batches of matrices."""

from corejax_linear_algebra._failures import FailedFactorizationError
from corejax_linear_algebra.condensed_forms import hessenberg, schur, tridiagonal
from corejax_linear_algebra.eigenvalues import EighImplementation, eigh
from corejax_linear_algebra.general_eigenvalues import EigImplementation, eig
from corejax_linear_algebra.householder import householder_product, ormqr
from corejax_linear_algebra.orthogonal import qr
from corejax_linear_algebra.pivoted import lu, lu_pivots_to_permutation
from corejax_linear_algebra.polar import qdwh
from corejax_linear_algebra.positive_definite import cholesky, cholesky_update
from corejax_linear_algebra.singular_values import SvdAlgorithm, svd
from corejax_linear_algebra.symmetric_products import symmetric_product
from corejax_linear_algebra.triangular import triangular_solve
from corejax_linear_algebra.tridiagonal_systems import tridiagonal_solve

__all__ = [
    "EigImplementation", "EighImplementation", "FailedFactorizationError", "SvdAlgorithm", "cholesky",
    "cholesky_update", "eig", "eigh", "hessenberg", "householder_product", "lu", "lu_pivots_to_permutation", "ormqr",
    "qdwh", "qr", "schur", "svd", "symmetric_product", "triangular_solve", "tridiagonal", "tridiagonal_solve",
]
