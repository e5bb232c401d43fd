"""Systems of linear equations: `solve`, `inv`, least squares, pseudo-inverses, and those of tensors."""

# mypy: no-warn-return-any

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from corejax import lax
from corejax.core import Array, ArrayLike, aval_of, dtypes, is_concrete
from corejax.errors import CorejaxTypeError
from corejax.plugin import directly, failures_are_errors, operators, public, refused, shaping
from corejax_linear_algebra import FailedFactorizationError
from corejax_numpy._arrays import array
from corejax_numpy._factoring import svd
from corejax_numpy._in_memory import matrices as in_memory
from corejax_numpy._matrices import (
    adjoint,
    by_lapack,
    conjugate,
    epsilon,
    eye,
    floats,
    matrices,
    mismatch,
    product,
    spread,
    square_matrices,
    with_slope,
)

__all__ = ["inv", "lstsq", "pinv", "solve", "solved", "tensorinv", "tensorsolve"]

_solve_one, _solve_many, _invert = by_lapack("solve1"), by_lapack("solve"), by_lapack("inv")


def _solve_by_numpy(a: Any, b: Any) -> Any:
    return _solve_one(a, b) if b.ndim == 1 else _solve_many(a, b)


@directly(_solve_by_numpy, arrays=2)
def solve(a: ArrayLike, b: ArrayLike) -> Array:
    """The x with a x = b, for batches of square matrices `a`. `b` is a vector if it has one axis, else matrices.

    A singular matrix gives infinities or NaNs, or an error where `cj.config.numerical_failures` is "error".

    >>> jnp.linalg.solve(jnp.array([[2.0, 0.0], [0.0, 4.0]]), jnp.array([2.0, 2.0]))
    Array([1. , 0.5], dtype=float64)
    """
    x, y = floats(a, b)
    square_matrices("solve", x)
    if not y.ndim or y.shape[-2 if y.ndim > 1 else 0] != x.shape[-1]:
        raise mismatch("solve", "the right-hand side doesn't fit the matrix", f"{x.aval} and {y.aval}",
                       f"{x.shape[-1]} rows of b", "a batch of vectors is b[..., None], and x[..., 0] its solution")
    if y.ndim == 1:
        out = solved(x, spread(lax.expand_dims(y, (1,)), x.shape[:-2]))
        return _regular("solve", lax.squeeze(out, (aval_of(out).ndim - 1,)))
    return _regular("solve", solved(x, y))


@directly(_invert)
def inv(a: ArrayLike) -> Array:
    """The inverse matrices. Singular ones give infinities or NaNs; see `jnp.linalg.solve`.

    >>> jnp.linalg.inv(jnp.array([[2.0, 0.0], [0.0, 4.0]]))
    Array([[0.5 , 0.  ],
           [0.  , 0.25]], dtype=float64)
    """
    x = square_matrices("inv", a)
    return _regular("inv", solved(x, eye(x.dtype, x.shape[-1], x.shape[:-2])))


def solved(a: Any, b: Any) -> Any:
    """a^-1 b for matrices of one dtype, whose batches broadcast; one factorisation serves all derivatives."""
    try:
        batch = np.broadcast_shapes(a.shape[:-2], aval_of(b).shape[:-2])
    except ValueError:
        raise mismatch("solve", "the batches don't broadcast", f"{aval_of(a)} and {aval_of(b)}",
                       "axes before the last two that broadcast", "reshape one of the operands") from None
    size, count = aval_of(b).shape[-2:]
    if not size or not count or not prod(batch):
        return lax.full((*batch, size, count), 0, aval_of(b).dtype)
    if batch and not a.shape[:-2]:  # one matrix: all are columns of one right-hand side
        order = (len(batch), *range(len(batch)), len(batch) + 1)
        columns = operators.reshape(array(lax.transpose(b, order)), (size, prod(batch) * count))
        found = operators.reshape(array(solved(a, columns)), (size, *batch, count))
        return lax.transpose(found, (*range(1, len(batch) + 1), 0, len(batch) + 1))
    factors, _, permutation = lax.linalg.lu(lax.stop_gradient(a))
    a, factors, b = spread(a, batch), spread(factors, batch), spread(b, batch)
    permutation = spread(permutation, batch, 1)
    return lax.custom_linear_solve(lambda x: product(a, x), b, lambda _, y: _substituted(factors, permutation, y),
                                   lambda _, y: conjugate(_substituted_back(factors, permutation, conjugate(y))))


def _substituted(factors: Any, permutation: Any, b: Any) -> Any:
    y = lax.linalg.triangular_solve(factors, _rows_of(b, permutation), left_side=True, lower=True, unit_diagonal=True)
    return lax.linalg.triangular_solve(factors, y, left_side=True)


def _substituted_back(factors: Any, permutation: Any, b: Any) -> Any:
    """The solution with the adjoint matrix."""
    way: dict[str, Any] = {"left_side": True, "transpose_a": True, "conjugate_a": True}
    y = lax.linalg.triangular_solve(factors, b, **way)
    y = lax.linalg.triangular_solve(factors, y, lower=True, unit_diagonal=True, **way)
    places = lax.broadcasted_iota(permutation.dtype, permutation.shape, permutation.ndim - 1)
    _, back = lax.sort((permutation, places), dimension=-1, num_keys=1)
    return _rows_of(y, back)


def _rows_of(x: Any, places: Any) -> Any:
    """The rows at these places, which each matrix has of its own."""
    grids = [lax.broadcasted_iota(places.dtype, places.shape, axis) for axis in range(aval_of(places).ndim - 1)]
    return operators.getitem(array(x), (*grids, places))


def _regular(name: str, out: Any) -> Any:
    """The result; an error if it isn't finite, where settings ask for that."""
    if failures_are_errors() and is_concrete(out) and not np.isfinite(np.asarray(out)).all():
        raise refused(name, "a matrix is singular, or has elements that aren't finite", got=str(aval_of(out)),
                      wanted="matrices that have an inverse", kind=FailedFactorizationError, todo="look at the matrix; "
                      "cj.config(numerical_failures='nan') gives NaNs or infinities instead of this error")
    return out

# Least squares

@directly(in_memory.pinv)
def pinv(a: ArrayLike, rcond: ArrayLike | None = None, hermitian: bool = False, *, rtol: ArrayLike | None = None
         ) -> Array:
    """The pseudo-inverses: singular values up to `rcond` (or `rtol`) times the largest count as 0.

    By default it is 10 max(rows, columns) times the distance from 1 to the next number.

    >>> jnp.linalg.pinv(jnp.array([[2.0, 0.0], [0.0, 0.0], [0.0, 0.0]])).tolist()
    [[0.5, 0.0, 0.0], [0.0, 0.0, 0.0]]
    """
    x = matrices("pinv", a)
    if rcond is not None and rtol is not None:
        raise refused("pinv", "rcond and rtol are the same", got="both", wanted="one of them", todo="leave one out")
    hermitian = shaping.as_flag("pinv", "hermitian", hermitian)
    *batch, m, n = x.shape
    if not m or not n:
        return lax.full((*batch, n, m), 0, x.dtype)
    limit = rtol if rcond is None else rcond
    if limit is None:
        limit = 10.0 * max(m, n) * epsilon(x.dtype)
    return _pseudo_inverse(x, limit, hermitian)


@directly(in_memory.lstsq, arrays=2)
def lstsq(a: ArrayLike, b: ArrayLike, rcond: float | None = None, *, numpy_resid: bool = False
          ) -> tuple[Array, Array, Array, Array]:
    """The x for which the squares of a x - b are smallest; their sums, the rank of `a`, and its singular values.

    Singular values below `rcond` times the largest count as 0. With `numpy_resid`, there are no sums where NumPy has
    none: if the rank isn't full, or there are no more rows than columns.

    >>> x, *_ = jnp.linalg.lstsq(jnp.array([[1.0], [1.0]]), jnp.array([1.0, 3.0]))
    >>> jnp.round(x, 6)
    Array([2.], dtype=float64)
    """
    x, y = floats(a, b)
    if x.ndim != 2 or y.ndim not in (1, 2) or x.shape[0] != y.shape[0]:
        raise mismatch("lstsq", "the operands don't fit together", f"{x.aval} and {y.aval}",
                       "one matrix, and a vector or a matrix with as many rows", "apply cj.vmap for a batch")
    (m, n), columns = x.shape, y if y.ndim == 2 else lax.expand_dims(y, (1,))
    if not m or not n:
        s, rank = lax.full((0,), 0, np.zeros((), x.dtype).real.dtype), lax.full((), 0, dtypes.default_dtype("i"))
        found = lax.full((n, aval_of(columns).shape[1]), 0, x.dtype)
    else:
        found, rank, s = _least_squares(x, columns, rcond)
    if shaping.as_flag("lstsq", "numpy_resid", numpy_resid) and (m <= n or _known(rank) < n):
        rest = lax.full((0,), 0, s.dtype)
    else:
        rest = _sums_of_squares(array(columns) - product(x, found))
    if y.ndim == 1:
        found = lax.squeeze(found, (1,))
    return found, rest, rank, s


def _least_squares(a: Any, b: Any, rcond: Any) -> tuple[Any, Any, Any]:
    u, s, vh = svd(a, full_matrices=False)
    eps = epsilon(a.dtype)
    if rcond is None:
        rcond = eps * max(a.shape)
    elif isinstance(rcond, (int, float)):
        rcond = eps if rcond < 0 else rcond
    limit = lax.convert_element_type(rcond, s.dtype)
    taken = (s > 0) & (s >= s[0] * limit)
    inverse = lax.select(taken, 1 / lax.select(taken, s, lax.full_like(s, 1)), lax.full_like(s, 0))
    scaled = product(adjoint(u), b) * lax.expand_dims(lax.convert_element_type(inverse, a.dtype), (1,))
    return product(adjoint(vh), scaled), operators.sum(taken), s


def _sums_of_squares(x: Any) -> Any:
    squares = x * x if not dtypes.is_complex(x.dtype) else lax.square(lax.real(x)) + lax.square(lax.imag(x))
    return operators.sum(squares, 0)


def _known(rank: Any) -> int:
    if not is_concrete(rank):
        raise refused("lstsq", "numpy_resid makes the shape of a result depend on the rank", got=str(aval_of(rank)),
                      wanted="a matrix that isn't traced", todo="leave numpy_resid out", kind=CorejaxTypeError)
    return int(rank)


def _pseudo_inverse_slope(limit: Any, hermitian: bool, primals: Any, tangents: Any) -> Any:
    """-p a' p, and what leaves the spaces of rows and columns."""
    (a,), (a_dot,) = primals, tangents
    p = _pseudo_inverse(a, limit, hermitian)
    if hermitian:
        a, a_dot = [(x + adjoint(x)) / 2 for x in (a, a_dot)]
    p_adjoint, back = adjoint(p), adjoint(a_dot)
    left, right = product(product(p, p_adjoint), back), product(back, product(p_adjoint, p))
    return p, (-product(product(p, a_dot), p) + left - product(left, product(a, p))
               + right - product(product(p, a), right))

@with_slope(_pseudo_inverse_slope, (1, 2))
def _pseudo_inverse(a: Any, limit: Any, hermitian: bool) -> Any:
    u, s, vh = svd(a, full_matrices=False, hermitian=hermitian)
    limit = array(limit)
    cutoff = lax.convert_element_type(limit, s.dtype) * s[..., 0]
    taken = s > lax.expand_dims(cutoff, (s.ndim - 1,))
    inverse = lax.select(taken, 1 / lax.select(taken, s, lax.full_like(s, 1)), lax.full_like(s, 0))
    return product(adjoint(vh), adjoint(u) * lax.expand_dims(lax.convert_element_type(inverse, u.dtype), (s.ndim,)))

# Tensors

@directly(in_memory.tensorinv)
def tensorinv(a: ArrayLike, ind: int = 2) -> Array:
    """The inverse of the linear map of tensors that `tensordot(a, ., ind)` is; `ind` axes of `a` come first.

    >>> a = jnp.reshape(2.0 * jnp.eye(4), (4, 2, 2))
    >>> jnp.linalg.tensorinv(a, 1).shape
    (2, 2, 4)
    """
    (x,), ind = floats(a), shaping.as_int("tensorinv", "ind", ind)
    first, last = x.shape[:max(ind, 0)], x.shape[max(ind, 0):]
    if ind <= 0 or prod(first) != prod(last):
        raise mismatch("tensorinv", "the axes don't make a square matrix", f"{x.aval}, ind={ind}",
                       "a positive ind, with as many elements in the first axes as in the others", "choose another ind")
    found = inv(operators.reshape(x, (prod(first), prod(last))))
    return operators.reshape(found, (*last, *first))


@public
def tensorsolve(a: ArrayLike, b: ArrayLike, axes: Sequence[int] | None = None) -> Array:
    """The x with tensordot(a, x, x.ndim) = b; `axes` of `a` are moved to its end first.

    >>> a = jnp.reshape(2.0 * jnp.eye(4), (4, 2, 2))
    >>> jnp.linalg.tensorsolve(a, jnp.ones(4)).tolist()
    [[0.5, 0.5], [0.5, 0.5]]
    """
    x, y = floats(a, b)
    if axes is not None:
        moved = shaping.canonical_axes("tensorsolve", axes, x.ndim)
        x = array(lax.transpose(x, (*[d for d in range(x.ndim) if d not in moved], *moved)))
    rest = x.shape[y.ndim:]
    if x.shape[:y.ndim] != y.shape or prod(rest) != y.size:
        raise mismatch("tensorsolve", "the operands don't fit together", f"{x.aval} and {y.aval}",
                       "first axes of a as b has them, and as many elements in the others", "pass axes=...")
    found = solve(operators.reshape(x, (y.size, y.size)), operators.ravel(y))
    return operators.reshape(found, rest)

