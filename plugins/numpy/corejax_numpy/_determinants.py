"""Determinants, and their logarithms."""

# mypy: no-warn-return-any

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from corejax import lax
from corejax.core import Array, ArrayLike, dtypes
from corejax.errors import CorejaxNotImplementedError, CorejaxValueError
from corejax.plugin import NotDirectly, directly, operators, public, refused
from corejax_numpy._arrays import array
from corejax_numpy._matrices import by_lapack, square_matrices, with_slope
from corejax_numpy._solving import solved
from corejax_numpy.products import diagonal

__all__ = ["SlogdetResult", "det", "slogdet"]


class SlogdetResult(NamedTuple):
    """The sign of a determinant, and the logarithm of its absolute value."""

    sign: Array
    logabsdet: Array


_det_by_lapack = by_lapack("det", may_overflow=True)


def _det_by_numpy(a: Any) -> Any:
    size = a.shape[-1]
    if size > 3:
        return _det_by_lapack(a)
    if not size or a.shape[-2] != size or a.dtype.char not in "fdFD":
        raise NotDirectly
    return _of_few([[a[..., i, j] for j in range(size)] for i in range(size)])


@directly(_det_by_numpy)
def det(a: ArrayLike) -> Array:
    """The determinants of square matrices.

    >>> jnp.linalg.det(jnp.array([[1.0, 2.0], [3.0, 4.0]]))
    Array(-2., dtype=float64)
    """
    x = square_matrices("det", a)
    size = x.shape[-1]
    if size > 3:
        return _det(x)
    if not size:
        return lax.full(x.shape[:-2], 1, x.dtype)
    return _of_few([[x[..., i, j] for j in range(size)] for i in range(size)])


def _of_few(e: Any) -> Any:
    """The determinant of one to three rows, by its definition."""
    size = len(e)
    if size == 1:
        return e[0][0]
    if size == 2:
        return e[0][0] * e[1][1] - e[0][1] * e[1][0]
    return sum([e[0][i] * (e[1][j] * e[2][k] - e[1][k] * e[2][j]) for i, j, k in ((1, 2, 0), (2, 0, 1))],
               e[0][0] * (e[1][1] * e[2][2] - e[1][2] * e[2][1]))


@public
def slogdet(a: ArrayLike, *, method: str | None = None) -> SlogdetResult:
    """The signs of determinants, and the logarithms of their absolute values: -inf for singular matrices.

    The sign of a complex number is the one of absolute value 1 in its direction. `method` is "lu" or "qr".

    >>> jnp.linalg.slogdet(-jnp.eye(3))
    SlogdetResult(sign=Array(-1., dtype=float64), logabsdet=Array(0., dtype=float64))
    """
    if method not in (None, "lu", "qr"):
        raise refused("slogdet", "there is no such method", got=f"method={method!r}", wanted="'lu' or 'qr'",
                      todo="leave it out", kind=CorejaxValueError)
    return SlogdetResult(*(_slogdet_by_qr if method == "qr" else _slogdet)(a))


def _slogdet_by_qr(a: Any) -> Any:
    x = square_matrices("slogdet", a)
    if dtypes.is_complex(x.dtype):
        raise refused("slogdet", "there is no QR decomposition of complex matrices here", got=str(x.aval),
                      wanted="real matrices", todo="leave method out", kind=CorejaxNotImplementedError)
    return _by_qr(x)


@directly(by_lapack("slogdet"))
def _slogdet(a: Any) -> Any:
    x = square_matrices("slogdet", a)
    return tuple(_by_lu(x))

# By the LU decomposition

def _slopes_of_logarithm(primals: Any, tangents: Any) -> Any:
    """The logarithm changes by the trace of x^-1 x', of which the imaginary part turns the sign."""
    (x,), (x_dot,) = primals, tangents
    sign, logarithm = _by_lu(x)
    change = _trace(solved(x, x_dot))
    if not dtypes.is_complex(x.dtype):
        return (sign, logarithm), (lax.full_like(sign, 0), change)
    size = lax.real(change)
    turned = (change - lax.convert_element_type(size, change.dtype)) * sign
    return (sign, logarithm), (turned, size)


def _of_factors(x: Any) -> tuple[Any, Any]:
    factors, pivots, _ = lax.linalg.lu(x)
    diagonals = array(diagonal(factors, 0, -2, -1))
    size = lax.abs(diagonals)
    exchanged = pivots != lax.broadcasted_iota(pivots.dtype, pivots.shape, pivots.ndim - 1)
    odd = lax.reduce_xor(exchanged, (pivots.ndim - 1,)) if x.shape[-1] else lax.full(x.shape[:-2], False, np.bool_)
    singular = operators.any(array(size) == 0, -1)
    one = lax.full_like(diagonals, 1)
    directions = diagonals / lax.convert_element_type(size, x.dtype) if dtypes.is_complex(x.dtype) else lax.select(
        diagonals < 0, -one, one)
    sign = operators.prod(directions, -1)
    sign = lax.select(odd, -sign, sign)
    logarithm = operators.sum(array(lax.log(size)), -1)
    return (lax.select(singular, lax.full_like(sign, 0), sign),
            lax.select(singular, lax.full_like(logarithm, -np.inf), logarithm))


_by_lu = with_slope(_slopes_of_logarithm)(_of_factors)


def _of_reflections(x: Any) -> tuple[Any, Any]:
    found, taus = lax.linalg.geqrf_p.bind(x)
    diagonals = array(diagonal(found, 0, -2, -1))
    logarithm = operators.sum(array(lax.log(lax.abs(diagonals))), -1)
    reflected = lax.reduce_xor(array(taus[..., :max(x.shape[-1] - 1, 0)]) != 0, (taus.ndim - 1,))
    sign = operators.prod(array(lax.sign(diagonals)), -1)
    return lax.select(reflected, -sign, sign), logarithm


_by_qr = with_slope(_slopes_of_logarithm)(_of_reflections)


def _det_slope(primals: Any, tangents: Any) -> Any:
    (x,), (x_dot,) = primals, tangents
    value, moved = _times_adjugate(x, x_dot)
    return value, _trace(moved)


@with_slope(_det_slope)
def _det(x: Any) -> Any:
    sign, logarithm = _of_factors(x)
    return sign * lax.convert_element_type(lax.exp(logarithm), x.dtype)


def _times_adjugate(a: Any, b: Any) -> tuple[Any, Any]:
    """The determinant of a, and det(a) a^-1 b, which is there even for a singular matrix.

    From a = p l u, with det(a) taken into the solution of u y = x: its last element is x's times the product of the
    others on the diagonal, without a division by the last one, which is 0 for a matrix of rank n - 1. For those of
    lower rank the adjugate is 0.
    """
    *batch, n, _ = a.shape
    lead = tuple(range(len(batch)))
    factors, pivots, permutation = lax.linalg.lu(a)
    diagonals = array(diagonal(factors, 0, -2, -1))
    exchanged = pivots != lax.broadcasted_iota(pivots.dtype, pivots.shape, pivots.ndim - 1)
    odd = lax.reduce_xor(exchanged, (pivots.ndim - 1,))
    products = lax.cumprod(diagonals, len(batch))
    signed = lax.select(lax.broadcast_in_dim(odd, products.shape, lead), -products, products)
    value, others = signed[..., n - 1], signed[..., n - 2]
    factors = operators.at(array(factors))[..., n - 1, n - 1].set(1 / others)
    probe = lax.linalg.triangular_solve(factors, lax.full((*batch, n), 1, a.dtype), left_side=True)
    low = operators.any(~_is_finite(array(probe)), -1)
    low = lax.broadcast_in_dim(low, b.shape, lead)
    b = array(lax.select(low, lax.full_like(b, 0), b))
    grids = [lax.broadcasted_iota(permutation.dtype, permutation.shape, axis) for axis in range(len(batch))]
    x = b[(*grids, permutation)]
    x = lax.linalg.triangular_solve(factors, x, left_side=True, lower=True, unit_diagonal=True)
    last = lax.broadcasted_iota(np.int32, x.shape, len(batch)) == n - 1
    x = lax.select(last, x, x * lax.broadcast_in_dim(value, x.shape, lead))
    x = lax.linalg.triangular_solve(factors, x, left_side=True)
    return value, lax.select(low, lax.full_like(x, 0), x)


def _is_finite(x: Any) -> Any:
    if dtypes.is_complex(x.dtype):
        return lax.is_finite(lax.real(x)) & lax.is_finite(lax.imag(x))
    return lax.is_finite(x)


def _trace(x: Any) -> Any:
    return operators.sum(array(diagonal(x, 0, -2, -1)), -1)


