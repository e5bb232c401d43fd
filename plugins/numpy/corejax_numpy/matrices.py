"""Matrices of a pattern: ones and zeros, diagonals, triangles, powers."""

# mypy: no-warn-return-any

from __future__ import annotations

from typing import Any

import numpy as np

from corejax import lax
from corejax.core import Array, DTypeLike, dtypes
from corejax.errors import CorejaxValueError
from corejax.plugin import NotDirectly, directly, operators, refused, shaping
from corejax_numpy._arrays import array
from corejax_numpy._asked import checked_order, placed, shape as sizes_of
from corejax_numpy._in_memory import polynomials as in_memory_polynomials
from corejax_numpy._values import spread

__all__ = ["diag", "diagflat", "eye", "identity", "tri", "tril", "triu", "vander"]


def _below(rows: int, columns: int, k: Any, equal: bool) -> Any:
    """Whether an element is on the k-th diagonal, or, unless `equal`, on it or below."""
    i, j = [lax.broadcasted_iota(dtypes.default_dtype("i"), (rows, columns), axis) for axis in (0, 1)]
    i = operators.add(i, k) if not (type(k) is int and k == 0) else i
    return operators.eq(i, j) if equal else operators.ge(i, j)


def _pattern(name: str, rows: Any, columns: Any, k: Any, dtype: DTypeLike | None, equal: bool) -> Any:
    (rows,), (columns,) = sizes_of(name, rows), sizes_of(name, rows if columns is None else columns)
    if not isinstance(k, Array):
        k = shaping.as_int(name, "k", k)
    elif k.ndim or not dtypes.is_integer(k.dtype):
        raise refused(name, "the diagonal is given by an integer", got=str(k.aval), wanted="an integer",
                      todo="pass one")
    wanted = dtypes.default_dtype("f") if dtype is None else dtypes.canonical(dtype)
    return operators.astype(_below(rows, columns, k, equal), wanted)


@directly(lambda N, M=None, k=0, dtype=float, *, device=None: np.eye(N, M, k, dtype or float), arrays=0)
def eye(N: int, M: int | None = None, k: Any = 0, dtype: DTypeLike | None = None, *, device: Any = None,
        order: str = "C") -> Array:
    """A matrix with ones on the k-th diagonal, and zeros elsewhere.

    >>> eye(2)
    Array([[1., 0.],
           [0., 1.]], dtype=float64)
    """
    checked_order("eye", order)
    return placed("eye", _pattern("eye", N, M, k, dtype, True), device)


@directly(lambda n, dtype=float: np.eye(n, dtype=dtype or float), arrays=0)
def identity(n: int, dtype: DTypeLike | None = None) -> Array:
    """A square matrix with ones on its diagonal, and zeros elsewhere.

    >>> identity(2, int)
    Array([[1, 0],
           [0, 1]], dtype=int64)
    """
    return _pattern("identity", n, n, 0, dtype, True)


@directly(lambda N, M=None, k=0, dtype=float: np.tri(N, M, k, dtype or float), arrays=0)
def tri(N: int, M: int | None = None, k: Any = 0, dtype: DTypeLike | None = None) -> Array:
    """A matrix with ones on the k-th diagonal and below it, and zeros elsewhere.

    >>> tri(2)
    Array([[1., 0.],
           [1., 1.]], dtype=float64)
    """
    return _pattern("tri", N, M, k, dtype, False)


def _triangle(name: str, m: Any, k: Any, lower: bool) -> Any:
    m = array(m)
    if not m.ndim:
        raise refused(name, "a scalar has no triangle", got=str(m.aval), wanted="at least one axis",
                      todo="pass a matrix", kind=CorejaxValueError)
    if m.ndim == 1:  # it is every row of a square
        m = spread(name, m, (m.size, m.size))
    k = k if isinstance(k, Array) else shaping.as_int(name, "k", k)
    mask = spread(name, _below(m.shape[-2], m.shape[-1], k if lower else k - 1, False), m.shape)
    zeros = lax.full_like(m, 0)
    return lax.select_n(mask, zeros, m) if lower else lax.select_n(mask, m, zeros)


@directly(np.tril)
def tril(m: Any, k: Any = 0) -> Array:
    """The matrices along the last two axes, with zeros above the k-th diagonal.

    >>> tril(jnp.ones((2, 2)))
    Array([[1., 0.],
           [1., 1.]], dtype=float64)
    """
    return _triangle("tril", m, k, True)


@directly(np.triu)
def triu(m: Any, k: Any = 0) -> Array:
    """The matrices along the last two axes, with zeros below the k-th diagonal.

    >>> triu(jnp.ones((2, 2)))
    Array([[1., 1.],
           [0., 1.]], dtype=float64)
    """
    return _triangle("triu", m, k, False)


@directly(lambda v, k=0: np.diag(v, k).copy())
def diag(v: Any, k: int = 0) -> Array:
    """A matrix with a vector on its k-th diagonal, or the k-th diagonal of a matrix.

    >>> diag(jnp.array([1, 2])), diag(jnp.array([[1, 2], [3, 4]]))
    (Array([[1, 0],
           [0, 2]], dtype=int64), Array([1, 4], dtype=int64))
    """
    v, offset = array(v), shaping.as_int("diag", "k", k)
    if v.ndim == 2:
        from corejax_numpy import diagonal

        return diagonal(v, offset)
    if v.ndim != 1:
        raise refused("diag", "the operand must be a vector or a matrix", got=str(v.aval), wanted="one axis or two",
                      todo="jnp.diagonal takes more axes", kind=CorejaxValueError)
    return _with_diagonal(v, offset)


def _with_diagonal(v: Any, k: int) -> Any:
    size, places = v.size + abs(k), np.arange(v.size)
    zeros = lax.full_like(v, 0, shape=(size, size))
    return operators.at(zeros)[places + max(-k, 0), places + max(k, 0)].set(v, unique_indices=True)


@directly(np.diagflat)
def diagflat(v: Any, k: int = 0) -> Array:
    """A matrix with all elements of an array on its k-th diagonal.

    >>> diagflat([[1, 2]])
    Array([[1, 0],
           [0, 2]], dtype=int64)
    """
    return _with_diagonal(operators.ravel(array(v)), shaping.as_int("diagflat", "k", k))


def _powers_by_numpy(x: Any, N: int | None = None, increasing: bool = False) -> Any:
    if x.dtype.kind == "c" or x.ndim != 1:  # infinite numbers have other products
        raise NotDirectly
    return in_memory_polynomials.powers(x, x.size if N is None else N, increasing)


@directly(_powers_by_numpy)
def vander(x: Any, N: int | None = None, increasing: bool = False) -> Array:
    """Powers of the elements of a vector, from the highest to 1, or the other way round: one in each column.

    >>> vander([2, 3], 3)
    Array([[4, 2, 1],
           [9, 3, 1]], dtype=int64)
    """
    x = array(x)
    if x.ndim != 1:
        raise refused("vander", "the operand must be a vector", got=str(x.aval), wanted="one axis", todo="ravel it",
                      kind=CorejaxValueError)
    count = x.size if N is None else shaping.as_int("vander", "N", N)
    if count < 0:
        raise refused("vander", "there can't be so many columns", got=f"N={count}", wanted="N of 0 or more",
                      todo="check it", kind=CorejaxValueError)
    if dtypes.kind(x.dtype) == "b":
        x = operators.astype(x, dtypes.default_dtype("i"))
    if not count:
        return lax.full((x.size, 0), 0, x.dtype)
    columns = lax.broadcast_in_dim(x, (x.size, count), (0,))
    first = lax.broadcasted_iota(np.dtype(np.int32), (x.size, count), 1)
    factors = lax.select_n(operators.eq(first, 0), columns, lax.full_like(columns, 1))
    powers = lax.cumprod(factors, axis=1)
    return powers if shaping.as_flag("vander", "increasing", increasing) else lax.rev(powers, (1,))
