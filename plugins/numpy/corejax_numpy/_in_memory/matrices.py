"""Decompositions, least squares and what is made of them.

Results that aren't finite are left to the general functions, which know what settings say about them.
"""

# mypy: disable-error-code="call-overload"
# What NumPy takes is passed on as it came.

from __future__ import annotations

from typing import Any

import numpy as np

from corejax.plugin import NotDirectly
from corejax_numpy._matrices import by_lapack

__all__ = ["cholesky", "eigh", "eigvalsh", "eps_of", "lstsq", "matrix_power", "matrix_rank", "multi_dot", "pinv", "qr",
           "svd", "tensorinv"]

_singular_values, _lower_factor = by_lapack("svd"), by_lapack("cholesky_lo")
_lower_values, _upper_values = by_lapack("eigvalsh_lo"), by_lapack("eigvalsh_up")
_few_vectors, _all_vectors = by_lapack("svd_s"), by_lapack("svd_f")
_lower_vectors, _upper_vectors = by_lapack("eigh_lo"), by_lapack("eigh_up")


def _of_doubles(a: Any) -> Any:
    """An operand for functions that compute in double precision, and have no special case for empty matrices."""
    if a.dtype.char not in "dD" or not a.size or a.ndim < 2:
        raise NotDirectly
    return a


def _finite(out: Any) -> Any:
    if not np.isfinite(out).all():
        raise NotDirectly
    return out


def _symmetrized(a: Any) -> Any:
    if a.ndim < 2 or not a.size:
        raise NotDirectly
    return (a + a.mT.conj()) / 2 if a.dtype.kind == "c" else (a + a.mT) / 2


def cholesky(a: Any, *, upper: bool = False, symmetrize_input: bool = True) -> Any:
    if upper is not False or symmetrize_input is not True:
        raise NotDirectly
    return _lower_factor(_symmetrized(a))


def eigh(a: Any, UPLO: str | None = "L", symmetrize_input: bool = True) -> Any:
    return (_lower_vectors if UPLO in ("L", "l", None) else _upper_vectors)(_symmetrized(a) if symmetrize_input else a)


def eigvalsh(a: Any, UPLO: str | None = "L", *, symmetrize_input: bool = True) -> Any:
    return (_lower_values if UPLO in ("L", "l", None) else _upper_values)(_symmetrized(a) if symmetrize_input else a)


def svd(a: Any, full_matrices: bool = True, compute_uv: bool = True) -> Any:
    if a.ndim < 2 or not a.size:
        raise NotDirectly
    if not compute_uv:
        return _singular_values(a)
    return (_all_vectors if full_matrices else _few_vectors)(a)


def qr(a: Any, mode: str = "reduced") -> Any:
    if mode not in ("reduced", "complete", "r"):
        raise NotDirectly
    found = np.linalg.qr(_finite(_of_doubles(a)), mode)
    return found if mode == "r" else tuple(found)


def tensorinv(a: Any, ind: int = 2) -> Any:
    return _finite(np.linalg.tensorinv(_of_doubles(a), ind))


def matrix_power(a: Any, n: int) -> Any:
    if n < 1 or a.dtype.kind == "b":
        raise NotDirectly
    return np.linalg.matrix_power(a, n)


def multi_dot(arrays: Any) -> Any:
    return np.linalg.multi_dot(arrays)


def matrix_rank(A: Any) -> Any:
    if A.ndim < 2 or not A.size:
        raise NotDirectly
    s = _singular_values(A)
    limit = s[..., :1] * (max(A.shape[-2:]) * eps_of(s))
    return np.add.reduce(s > limit, -1)


def eps_of(x: Any) -> float:
    return _EPS[x.dtype.char.lower()]


_EPS = {"f": float(np.finfo(np.float32).eps), "d": float(np.finfo(np.float64).eps)}


def pinv(a: Any, rcond: Any = None) -> Any:
    if a.ndim < 2 or not a.size or type(rcond) not in (float, type(None)):
        raise NotDirectly
    u, s, vh = _few_vectors(a)
    limit = 10.0 * max(a.shape[-2:]) * eps_of(a) if rcond is None else rcond
    inverse = _inverted(s, s > s[..., :1] * limit)
    return (inverse[..., None, :] * vh.mT.conj()) @ u.mT.conj()


def _inverted(s: Any, taken: Any) -> Any:
    return np.divide(1, s, out=np.zeros_like(s), where=taken)


def lstsq(a: Any, b: Any, rcond: Any = None) -> Any:
    if a.dtype is not b.dtype or a.ndim != 2 or b.ndim not in (1, 2) or not a.size or type(rcond) not in (
            float, type(None)):
        raise NotDirectly
    u, s, vh = _few_vectors(a)
    eps = eps_of(a)
    limit = eps * max(a.shape) if rcond is None else eps if rcond < 0 else rcond
    taken = (s > 0) & (s >= s[0] * s.dtype.type(limit))
    inverse, columns = _inverted(s, taken), b if b.ndim == 2 else b[:, None]
    found = vh.T.conj() @ ((u.T.conj() @ columns) * inverse[:, None])
    rest = columns - a @ found
    squares = rest * rest if rest.dtype.kind != "c" else rest.real * rest.real + rest.imag * rest.imag
    return found if b.ndim == 2 else found[:, 0], np.add.reduce(squares, 0), np.add.reduce(taken), s
