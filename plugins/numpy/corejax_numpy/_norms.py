"""Norms of vectors and matrices, condition numbers and ranks."""

# mypy: no-warn-return-any

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from corejax import lax
from corejax.core import Array, ArrayLike, dtypes
from corejax.errors import CorejaxValueError
from corejax.plugin import directly, operators, public, refused, shaping
from corejax_numpy._arrays import array
from corejax_numpy._factoring import svd, svdvals
from corejax_numpy._in_memory import matrices as in_memory
from corejax_numpy._matrices import floats, matrices, mismatch
from corejax_numpy._solving import inv

__all__ = ["cond", "matrix_norm", "matrix_rank", "norm", "vector_norm"]

_INF = float("inf")


@directly(np.linalg.norm)
def norm(x: ArrayLike, ord: float | str | None = None, axis: int | Sequence[int] | None = None,
         keepdims: bool = False) -> Array:
    """The norms of vectors along an axis, or of matrices along two; by default the 2-norm of all elements.

    `ord` is a number for vectors; for matrices "fro", "nuc", 1, -1, 2, -2, inf or -inf.

    >>> jnp.linalg.norm(jnp.array([[3.0, 4.0], [0.0, 12.0]])), jnp.linalg.norm(jnp.array([3.0, -4.0]), 1)
    (Array(13., dtype=float64), Array(7., dtype=float64))
    """
    (y,), keepdims = floats(x), shaping.as_flag("norm", "keepdims", keepdims)
    if axis is None and ord is None:
        return _root_of_squares(y, None, keepdims)
    axes = tuple(range(y.ndim)) if axis is None else shaping.canonical_axes("norm", axis, y.ndim)
    if len(axes) == 1:
        return _vector_norm(y, 2 if ord is None else ord, axes, keepdims)
    if len(axes) == 2:
        return _matrix_norm(y, "fro" if ord is None else ord, axes, keepdims)
    raise refused("norm", "only vectors and matrices have norms", got=f"axes {axes} of {y.aval}",
                  wanted="one axis or two", todo="pass axis=..., or no ord for the 2-norm of all elements",
                  kind=CorejaxValueError)


@directly(np.linalg.vector_norm)
def vector_norm(x: ArrayLike, /, *, axis: int | Sequence[int] | None = None, keepdims: bool = False,
                ord: float = 2) -> Array:
    """The norms of vectors, whose elements are along one or several axes.

    >>> jnp.linalg.vector_norm(jnp.array([3.0, -4.0])), jnp.linalg.vector_norm(jnp.array([3.0, -4.0]), ord=jnp.inf)
    (Array(5., dtype=float64), Array(4., dtype=float64))
    """
    (y,) = floats(x)
    axes = None if axis is None else shaping.canonical_axes("vector_norm", axis, y.ndim)
    return _vector_norm(y, 2 if ord is None else ord, axes, shaping.as_flag("vector_norm", "keepdims", keepdims))


@directly(np.linalg.matrix_norm)
def matrix_norm(x: ArrayLike, /, *, keepdims: bool = False, ord: float | str | None = "fro") -> Array:
    """The norms of matrices: "fro", "nuc", 1, -1, 2, -2, inf or -inf.

    >>> jnp.linalg.matrix_norm(jnp.array([[3.0, 4.0], [0.0, 12.0]]), ord=1)
    Array(16., dtype=float64)
    """
    y = matrices("matrix_norm", x)
    return _matrix_norm(y, "fro" if ord is None else ord, (y.ndim - 2, y.ndim - 1),
                        shaping.as_flag("matrix_norm", "keepdims", keepdims))


def _vector_norm(x: Any, ord: Any, axes: Any, keepdims: bool) -> Any:
    if isinstance(ord, str) or not isinstance(ord, (int, float, np.number)):
        raise refused("norm", "there is no such norm of vectors", got=f"ord={ord!r}", wanted="a number",
                      todo="pass jnp.inf for the largest element", kind=CorejaxValueError)
    if ord == 2:
        return _root_of_squares(x, axes, keepdims)
    size = array(lax.abs(x))
    if ord == 0:
        return operators.sum(array(lax.convert_element_type(size != 0, size.dtype)), axes, keepdims=keepdims)
    if ord == _INF:
        return operators.max(size, axes, keepdims=keepdims, initial=0)
    if ord == -_INF:
        return operators.min(size, axes, keepdims=keepdims)
    if ord == 1:
        return operators.sum(size, axes, keepdims=keepdims)
    return operators.sum(array(size ** float(ord)), axes, keepdims=keepdims) ** (1.0 / float(ord))


def _matrix_norm(x: Any, ord: Any, axes: tuple[int, ...], keepdims: bool) -> Any:
    if ord in ("fro", "f"):
        return _root_of_squares(x, axes, keepdims)
    if ord in ("nuc", 2, -2):
        order = (*[d for d in range(x.ndim) if d not in axes], *axes)
        s = array(svdvals(x if order == tuple(range(x.ndim)) else lax.transpose(x, order)))
        found = (operators.sum(s, -1) if ord == "nuc" else operators.max(s, -1, initial=0) if ord == 2 else
                 operators.min(s, -1))
        return lax.expand_dims(found, tuple(sorted(axes))) if keepdims else found
    if ord not in (1, -1, _INF, -_INF):
        raise refused("norm", "there is no such norm of matrices", got=f"ord={ord!r}",
                      wanted="'fro', 'nuc', 1, -1, 2, -2, inf or -inf", todo="pass one of these",
                      kind=CorejaxValueError)
    rows, columns = axes
    summed, chosen = (rows, columns) if ord in (1, -1) else (columns, rows)
    sums = operators.sum(array(lax.abs(x)), summed, keepdims=True)
    found = operators.max(sums, chosen, keepdims=True, initial=0) if ord > 0 else operators.min(sums, chosen,
                                                                                                keepdims=True)
    return found if keepdims else lax.squeeze(found, axes)


def _root_of_squares(x: Any, axes: Any, keepdims: bool) -> Any:
    squares = x * x if not dtypes.is_complex(x.dtype) else lax.square(lax.real(x)) + lax.square(lax.imag(x))
    return lax.sqrt(operators.sum(array(squares), axes, keepdims=keepdims))

# Of singular values

@public
def cond(x: ArrayLike, p: float | str | None = None) -> Array:
    """The condition numbers of matrices: by default the largest singular value by the smallest; else by a norm `p`.

    >>> jnp.linalg.cond(jnp.array([[4.0, 0.0], [0.0, 2.0]]))
    Array(2., dtype=float64)
    """
    y = matrices("cond", x)
    if 0 in y.shape[-2:]:
        raise mismatch("cond", "a matrix without elements has no condition", y, "rows and columns", "leave it out")
    if p is None or p in (2, -2):
        s = svdvals(y)
        first, last = s[..., 0], s[..., s.shape[-1] - 1]
        if p != -2:
            return first / last
        found = last / first
    else:
        found = matrix_norm(y, ord=p) * matrix_norm(inv(y), ord=p)
    singular = array(found != found) & ~operators.any(array(y != y), (-2, -1))
    return lax.select(singular, lax.full_like(found, np.inf), found)


@directly(in_memory.matrix_rank)
def matrix_rank(A: ArrayLike, tol: ArrayLike | None = None, hermitian: bool = False, *,
                rtol: ArrayLike | None = None) -> Array:
    """How many singular values are larger than `tol`, or than `rtol` times the largest.

    By default, `rtol` is the number of rows or columns times the distance from 1 to the next number.

    >>> jnp.linalg.matrix_rank(jnp.array([[1.0, 2.0], [2.0, 4.0]]))
    Array(1, dtype=int64)
    """
    (x,) = floats(A)
    if tol is not None and rtol is not None:
        raise refused("matrix_rank", "there are two limits", got="tol and rtol", wanted="one of them",
                      todo="leave one out", kind=CorejaxValueError)
    if x.ndim < 2:
        return lax.convert_element_type(operators.any(array(x != 0)), dtypes.default_dtype("i"))
    s = array(svd(x, full_matrices=False, compute_uv=False, hermitian=hermitian))
    largest = operators.max(s, -1, keepdims=True, initial=0)
    if tol is not None:
        limit = _column(tol, s)
    elif rtol is not None:
        limit = largest * _column(rtol, s)
    else:
        limit = largest * (max(x.shape[-2:]) * float(np.finfo(s.dtype).eps))
    return operators.sum(array(s > limit), -1)


def _column(limit: Any, s: Any) -> Any:
    limit = array(limit)
    return lax.expand_dims(lax.convert_element_type(limit, s.dtype), (limit.ndim,))
