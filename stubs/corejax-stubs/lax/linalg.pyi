# Written by `python -m corejax stubs`: don't edit it.

"""`cj.lax.linalg`: factorisations, systems of equations, eigenvalues; of batches of matrices in the last two axes.

`linalg.cholesky_p` is the primitive of that name, as in jaxprs.
"""

from collections.abc import Callable
from corejax.core import Array, ArrayLike
from corejax_linear_algebra.eigenvalues import EighImplementation as _EighImplementation
from corejax_linear_algebra.general_eigenvalues import EigImplementation as _EigImplementation
from corejax_linear_algebra.linalg import EigImplementation as EigImplementation, EighImplementation as EighImplementation, FailedFactorizationError as FailedFactorizationError, SvdAlgorithm as SvdAlgorithm, qdwh as qdwh
from corejax_linear_algebra.singular_values import SvdAlgorithm as _SvdAlgorithm
from typing import Any

def cholesky(x: ArrayLike, *, symmetrize_input: bool = True) -> Array:
    """`cholesky(x, *, symmetrize_input=True)`: the lower triangular l with l l^H = x, for positive definite x.

    Without `symmetrize_input`, only the lower triangle of `x` is read; else it is (x + x^H) / 2 that is decomposed. A
    matrix that isn't positive definite gives NaNs, or an error where `cj.config.numerical_failures` is "error".

    >>> lax.linalg.cholesky(np.array([[4.0, 2.0], [2.0, 5.0]])).tolist()
    [[2.0, 0.0], [1.0, 2.0]]
    """

def cholesky_update(r_matrix: ArrayLike, w_vector: ArrayLike, /) -> Array:
    """`cholesky_update(r_matrix, w_vector)`: the upper triangular factor of r^T r + w w^T, where r is upper triangular.

    >>> r = lax.linalg.cholesky_update(np.array([[3.0, 0.0], [0.0, 1.0]]), np.array([4.0, 0.0]))
    >>> r.tolist()
    [[5.0, 0.0], [0.0, 1.0]]
    """

def eig(x: ArrayLike, *, compute_left_eigenvectors: bool = True, compute_right_eigenvectors: bool = True, enable_eigvec_derivs: bool = False, implementation: _EigImplementation | None = None, use_magma: bool | None = None) -> list[Array]:
    """`eig(x, *, compute_left_eigenvectors=True, compute_right_eigenvectors=True, ...)`: `[w, vl, vr]`.

    The eigenvalues w, complex and in no order, and as columns the left and right eigenvectors, of length 1:
    vl^H x = w vl^H and x vr = vr w. Those not asked for are left out. NaN where LAPACK finds no solution;
    an error where `cj.config.numerical_failures` is "error".

    Eigenvectors have derivatives only with `enable_eigvec_derivs`, since these assume what can't be checked: distinct
    eigenvalues, and in each vector a single largest component, which LAPACK makes real.

    >>> w, vr = lax.linalg.eig(np.array([[0.0, 1.0], [-1.0, 0.0]]), compute_left_eigenvectors=False)
    >>> w.tolist()
    [1j, -1j]
    """

def eigh(x: ArrayLike, *, lower: bool = True, symmetrize_input: bool = True, sort_eigenvalues: bool = True, subset_by_index: tuple[int, int] | None = None, implementation: _EighImplementation | None = None) -> tuple[Array, Array]:
    """`eigh(x, *, lower=True, symmetrize_input=True, sort_eigenvalues=True, ...)`: eigenvalues of Hermitian matrices.

    The eigenvectors and eigenvalues `(v, w)`: x v = v w, with orthonormal columns v and rising w.
    Without `symmetrize_input`, only the triangle that `lower` names is read, and derivatives are those of a
    function of Hermitian matrices. Eigenvalues are sorted whatever `sort_eigenvalues` says, and `subset_by_index` must
    be all of them. NaN where LAPACK finds no solution; an error where `cj.config.numerical_failures` is "error".

    >>> v, w = lax.linalg.eigh(np.array([[2.0, 1.0], [1.0, 2.0]]))
    >>> w
    Array([1., 3.], dtype=float64)
    """

def hessenberg(a: ArrayLike, /) -> list[Array]:
    """`hessenberg(a)`: `(h, taus)`, a matrix reduced to zeros below its first subdiagonal, in LAPACK's storage.

    The upper Hessenberg form is in h's upper triangle and first subdiagonal. Below them are the vectors of the
    reflections that lead to it, and `taus` has their factors: `householder_product(h[1:, :-1], taus)` is the unitary
    matrix of all rows and columns but the first.

    >>> h, taus = lax.linalg.hessenberg(np.array([[1.0, 2.0], [3.0, 4.0]]))
    >>> h.tolist(), taus.tolist()
    ([[1.0, 2.0], [3.0, 4.0]], [0.0])
    """

def householder_product(a: ArrayLike, taus: ArrayLike, /) -> Array:
    """`householder_product(a, taus)`: the first columns of a product of reflections, as many as `a` has.

    >>> a, taus = lax.linalg.geqrf_p.bind(np.array([[3.0], [4.0]]))
    >>> np.asarray(lax.linalg.householder_product(a, taus)).round(6).tolist()
    [[-0.6], [-0.8]]
    """

def lu(x: ArrayLike) -> tuple[Array, Array, Array]:
    """`lu(x)`: `(lu, pivots, permutation)` with x[permutation] = l u, of which l has a unit diagonal.

    `lu` has u in its upper triangle and l below. `pivots` says which row each row was exchanged with, one after the
    other; `permutation` is their result.

    >>> factors, pivots, permutation = lax.linalg.lu(np.array([[1.0, 2.0], [4.0, 4.0]]))
    >>> factors.tolist(), pivots.tolist(), permutation.tolist()
    ([[4.0, 4.0], [0.25, 1.0]], [1, 1], [1, 0])
    """

def lu_pivots_to_permutation(pivots: ArrayLike, permutation_size: int) -> Array:
    """`lu_pivots_to_permutation(pivots, permutation_size)`: the permutation that a sequence of exchanges makes.

    Row i is exchanged with row `pivots[i]`, one after the other.

    >>> lax.linalg.lu_pivots_to_permutation(np.array([2, 2, 2], np.int32), 4).tolist()
    [2, 0, 1, 3]
    """

def ormqr(a: ArrayLike, taus: ArrayLike, c: ArrayLike, *, left: bool = True, transpose: bool = False) -> Array:
    """`ormqr(a, taus, c, *, left=True, transpose=False)`: c times the product of reflections, without making that.

    It is q c if `left`, else c q; with q^H in place of q if `transpose`.

    >>> a, taus = lax.linalg.geqrf_p.bind(np.array([[3.0], [4.0]]))
    >>> np.asarray(lax.linalg.ormqr(a, taus, np.eye(2))).round(6).tolist()
    [[-0.6, -0.8], [-0.8, 0.6]]
    """

def qr(x: ArrayLike, *, pivoting: bool = False, full_matrices: bool = True, use_magma: bool | None = None) -> tuple[Array, ...]:
    """`qr(x, *, pivoting=False, full_matrices=True, use_magma=None)`: a unitary q, an upper triangular r, q r = x.

    With `pivoting`, it is q r = x[..., p], for places p of columns such that the diagonal of r falls; the result is
    `(q, r, p)`. Without `full_matrices`, q has only those columns that count. `use_magma` concerns GPUs alone.

    >>> q, r = lax.linalg.qr(np.array([[3.0, 1.0], [4.0, 2.0]]))
    >>> np.asarray(r).round(6).tolist()
    [[-5.0, -2.2], [0.0, 0.4]]
    """

def schur(x: ArrayLike, *, compute_schur_vectors: bool = True, sort_eig_vals: bool = False, select_callable: Callable[..., Any] | None = None) -> list[Array]:
    """`schur(x, *, compute_schur_vectors=True, sort_eig_vals=False, select_callable=None)`: a triangular form.

    `[t, z]` with x = z t z^H, where z is unitary and t upper triangular; if x is real, t has blocks of 2 by 2 on its
    diagonal, for pairs of complex eigenvalues. Only `[t]` without `compute_schur_vectors`. NaN where LAPACK fails.
    Eigenvalues can't be sorted: `sort_eig_vals` must be false, and `select_callable` is not called.

    >>> t, z = lax.linalg.schur(np.array([[1.0, 2.0], [0.0, 3.0]]))
    >>> t.tolist(), z.tolist()
    ([[1.0, 2.0], [0.0, 3.0]], [[1.0, 0.0], [0.0, 1.0]])
    """

def svd(x: ArrayLike, *, full_matrices: bool = True, compute_uv: bool = True, subset_by_index: tuple[int, int] | None = None, algorithm: _SvdAlgorithm | None = None) -> Array | tuple[Array, Array, Array]:
    """`svd(x, *, full_matrices=True, compute_uv=True, subset_by_index=None, algorithm=None)`: singular values.

    `(u, s, vh)` such that x = u diag(s) vh, with orthonormal columns u and rows vh, and falling s; with
    `full_matrices`, u and vh are square. Only s without `compute_uv`. NaN where LAPACK finds no solution;
    an error where `cj.config.numerical_failures` is "error". `subset_by_index` must be all of them.

    >>> u, s, vh = lax.linalg.svd(np.array([[0.0, 2.0], [-3.0, 0.0], [0.0, 0.0]]), full_matrices=False)
    >>> s, (u * s @ vh).tolist()
    (Array([3., 2.], dtype=float64), [[0.0, 2.0], [-3.0, 0.0], [0.0, 0.0]])
    """

def symmetric_product(a_matrix: ArrayLike, c_matrix: ArrayLike, *, alpha: float = 1.0, beta: float = 0.0, symmetrize_output: bool = False) -> Array:
    """`symmetric_product(a_matrix, c_matrix, *, alpha=1.0, beta=0.0, symmetrize_output=False)`: alpha a a^T + beta c.

    GPUs compute the lower triangle only; with `symmetrize_output`, its transpose is put in place of the upper one.

    >>> lax.linalg.symmetric_product(np.array([[1.0], [2.0]]), np.eye(2), beta=1.0).tolist()
    [[2.0, 2.0], [2.0, 5.0]]
    """

def triangular_solve(a: ArrayLike, b: ArrayLike, *, left_side: bool = False, lower: bool = False, transpose_a: bool = False, conjugate_a: bool = False, unit_diagonal: bool = False) -> Array:
    """`triangular_solve(a, b, *, left_side=False, lower=False, ...)`: x with op(a) x = b, or x op(a) = b.

    The equation is op(a) x = b if `left_side`. Of `a`, the triangle that `lower` says is read; with `unit_diagonal`,
    its diagonal counts as ones. op transposes if `transpose_a`, and conjugates if `conjugate_a`. `b` may be a vector.

    >>> a = np.array([[2.0, 0.0], [1.0, 4.0]])
    >>> lax.linalg.triangular_solve(a, np.array([2.0, 9.0]), left_side=True, lower=True).tolist()
    [1.0, 2.0]
    """

def tridiagonal(a: ArrayLike, *, lower: bool = True) -> tuple[Array, Array, Array, Array]:
    """`tridiagonal(a, *, lower=True)`: `(a, d, e, taus)`, a Hermitian matrix reduced to three diagonals, by LAPACK.

    `d` is the real main diagonal, `e` the one beside it. They are also in the resulting matrix, together with the
    vectors of the reflections that lead there, below the subdiagonal (above the superdiagonal without `lower`);
    `taus` has the factors of these. Only the triangle that `lower` names is read.

    >>> _, d, e, _ = lax.linalg.tridiagonal(np.array([[1.0, 2.0], [2.0, 3.0]]))
    >>> d.tolist(), e.tolist()
    ([1.0, 3.0], [2.0])
    """

def tridiagonal_solve(dl: ArrayLike, d: ArrayLike, du: ArrayLike, b: ArrayLike, *, perturb_singular: bool = False) -> Array:
    """`tridiagonal_solve(dl, d, du, b, *, perturb_singular=False)`: x with a x = b, for tridiagonal a.

    `d` is the diagonal of a, `dl` and `du` those below and above, all of one size: dl[i] is a[i, i - 1], du[i] is
    a[i, i + 1]; dl[0] and du[-1] aren't read. If a is singular, x is NaN; with `perturb_singular`, a matrix close to it
    is solved for instead.

    >>> ones, twos = np.ones(3), np.full(3, 2.0)
    >>> lax.linalg.tridiagonal_solve(-ones, twos, -ones, np.array([[1.0], [0.0], [1.0]])).ravel().round(6).tolist()
    [1.0, 1.0, 1.0]
    """
