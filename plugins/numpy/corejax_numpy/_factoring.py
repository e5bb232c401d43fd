"""Decompositions of matrices: Cholesky, QR, singular values, eigenvalues."""

# mypy: no-warn-return-any

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from corejax import lax
from corejax.core import Array, ArrayLike
from corejax.errors import CorejaxValueError
from corejax.plugin import directly, operators, public, refused, shaping
from corejax_numpy._arrays import array
from corejax_numpy._in_memory import matrices as in_memory
from corejax_numpy._matrices import adjoint, by_lapack, matrices, square_matrices, swapped

__all__ = ["EigResult", "EighResult", "QRResult", "SVDResult", "cholesky", "eig", "eigh", "eigvals", "eigvalsh", "qr",
           "svd", "svdvals"]


class EigResult(NamedTuple):
    """Eigenvalues and eigenvectors."""

    eigenvalues: Array
    eigenvectors: Array


class EighResult(NamedTuple):
    """Eigenvalues and eigenvectors of Hermitian matrices."""

    eigenvalues: Array
    eigenvectors: Array


class QRResult(NamedTuple):
    """A unitary and an upper triangular matrix."""

    Q: Array
    R: Array


class SVDResult(NamedTuple):
    """Singular values between the vectors to their left and right."""

    U: Array
    S: Array
    Vh: Array


@directly(in_memory.cholesky)
def cholesky(a: ArrayLike, *, upper: bool = False, symmetrize_input: bool = True) -> Array:
    """The lower triangular l with l l^H = a, for positive definite matrices; its adjoint if `upper`.

    With `symmetrize_input`, it is (a + a^H) / 2 that is decomposed; else only the lower triangle of `a` is read. Other
    matrices give NaNs, or an error where `cj.config.numerical_failures` is "error".

    >>> jnp.linalg.cholesky(jnp.array([[4.0, 2.0], [2.0, 5.0]]))
    Array([[2., 0.],
           [1., 2.]], dtype=float64)
    """
    factor = lax.linalg.cholesky(square_matrices("cholesky", a), symmetrize_input=symmetrize_input)
    return adjoint(factor) if shaping.as_flag("cholesky", "upper", upper) else factor


@directly(in_memory.qr)
def qr(a: ArrayLike, mode: str = "reduced") -> Array | QRResult:
    """A unitary q and an upper triangular r with q r = a.

    `mode` is "reduced" (q has as many columns as r has rows), "complete" (q is square), "r" (r alone), or "raw"
    (LAPACK's reflections, transposed, and their factors).

    >>> q, r = jnp.linalg.qr(jnp.array([[3.0, 1.0], [4.0, 2.0]]))
    >>> jnp.round(r, 6)
    Array([[-5. , -2.2],
           [ 0. ,  0.4]], dtype=float64)
    """
    x = matrices("qr", a)
    if mode == "raw":
        reflections, factors = lax.linalg.geqrf_p.bind(x)
        return QRResult(swapped(reflections), factors)
    if mode not in ("reduced", "complete", "r", "full"):
        raise refused("qr", "there is no such mode", got=f"mode={mode!r}", wanted="'reduced', 'complete', 'r' or 'raw'",
                      todo="leave it out for 'reduced'", kind=CorejaxValueError)
    q, r = lax.linalg.qr(x, full_matrices=mode == "complete")
    return r if mode == "r" else QRResult(q, r)


@directly(in_memory.svd)
def svd(a: ArrayLike, full_matrices: bool = True, compute_uv: bool = True, hermitian: bool = False,
        subset_by_index: tuple[int, int] | None = None) -> Array | SVDResult:
    """Singular values s, which fall, and the vectors u and vh with u diag(s) vh = a; s alone without `compute_uv`.

    With `full_matrices`, u and vh are square. `hermitian` says that `a` is, which is faster.

    >>> u, s, vh = jnp.linalg.svd(jnp.array([[0.0, 2.0], [-3.0, 0.0], [0.0, 0.0]]), full_matrices=False)
    >>> s, (u * s @ vh).tolist()
    (Array([3., 2.], dtype=float64), [[0.0, 2.0], [-3.0, 0.0], [0.0, 0.0]])
    """
    x = matrices("svd", a)
    vectors = shaping.as_flag("svd", "compute_uv", compute_uv)
    if shaping.as_flag("svd", "hermitian", hermitian):
        return _of_hermitian(square_matrices("svd", x), vectors, subset_by_index)
    found = lax.linalg.svd(x, full_matrices=full_matrices, compute_uv=vectors, subset_by_index=subset_by_index)
    return SVDResult(*found) if vectors else found


@directly(by_lapack("svd"))
def svdvals(x: ArrayLike, /) -> Array:
    """The singular values, which fall.

    >>> jnp.linalg.svdvals(jnp.array([[0.0, 2.0], [-3.0, 0.0]]))
    Array([3., 2.], dtype=float64)
    """
    return lax.linalg.svd(matrices("svdvals", x), full_matrices=False, compute_uv=False)


def _of_hermitian(x: Any, vectors: bool, subset: Any) -> Any:
    """By eigenvalues: singular values are their absolute values."""
    v, w = lax.linalg.eigh(x, subset_by_index=subset)
    s, last = lax.abs(w), w.ndim - 1
    if not vectors:
        return lax.rev(lax.sort(s), (last,))
    places = lax.broadcasted_iota(np.int32, s.shape, last)
    s, places, sign = [lax.rev(part, (last,)) for part in lax.sort((s, places, lax.sign(w)), dimension=-1, num_keys=1)]
    grids = [lax.broadcasted_iota(np.int32, v.shape, axis) for axis in range(last + 1)]
    columns = lax.broadcast_in_dim(places, v.shape, (*range(last), last + 1))
    u = operators.getitem(array(v), (*grids, columns))
    signed = u * lax.expand_dims(lax.convert_element_type(sign, u.dtype), (last,))
    return SVDResult(u, s, adjoint(signed))

# Eigenvalues

@public
def eig(a: ArrayLike) -> EigResult:
    """The eigenvalues of square matrices, in no order, and eigenvectors of length 1, as columns; always complex.

    >>> w, v = jnp.linalg.eig(jnp.array([[0.0, 1.0], [-1.0, 0.0]]))
    >>> w
    Array([0.+1.j, 0.-1.j], dtype=complex128)
    """
    return EigResult(*lax.linalg.eig(square_matrices("eig", a), compute_left_eigenvectors=False))


@public
def eigvals(a: ArrayLike) -> Array:
    """The eigenvalues of square matrices, in no order; always complex.

    >>> jnp.linalg.eigvals(jnp.array([[0.0, 1.0], [-1.0, 0.0]]))
    Array([0.+1.j, 0.-1.j], dtype=complex128)
    """
    return lax.linalg.eig(square_matrices("eigvals", a), compute_left_eigenvectors=False,
                          compute_right_eigenvectors=False)[0]


@directly(in_memory.eigh)
def eigh(a: ArrayLike, UPLO: str | None = "L", symmetrize_input: bool = True) -> EighResult:
    """The eigenvalues of Hermitian matrices, which rise, and orthonormal eigenvectors, as columns.

    With `symmetrize_input`, it is (a + a^H) / 2 that is decomposed; else only the lower triangle of `a` is read, or
    the upper one if `UPLO` is "U".

    >>> w, v = jnp.linalg.eigh(jnp.array([[2.0, 1.0], [1.0, 2.0]]))
    >>> w
    Array([1., 3.], dtype=float64)
    """
    v, w = _eigh("eigh", a, UPLO, symmetrize_input)
    return EighResult(w, v)


@directly(in_memory.eigvalsh)
def eigvalsh(a: ArrayLike, UPLO: str | None = "L", *, symmetrize_input: bool = True) -> Array:
    """The eigenvalues of Hermitian matrices, which rise; see `jnp.linalg.eigh`.

    >>> jnp.linalg.eigvalsh(jnp.array([[2.0, 1.0], [1.0, 2.0]]))
    Array([1., 3.], dtype=float64)
    """
    return _eigh("eigvalsh", a, UPLO, symmetrize_input)[1]


def _eigh(name: str, a: Any, triangle: Any, symmetrize_input: bool) -> tuple[Any, Any]:
    if triangle not in ("L", "U", "l", "u", None):
        raise refused(name, "there is no such triangle", got=f"UPLO={triangle!r}", wanted="'L' or 'U'",
                      todo="leave it out for the lower one", kind=CorejaxValueError)
    return lax.linalg.eigh(square_matrices(name, a), lower=triangle in ("L", "l", None),
                           symmetrize_input=symmetrize_input)
