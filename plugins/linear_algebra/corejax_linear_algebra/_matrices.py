"""Matrices in the last two axes: what rules do with them, and checks of operands.

The axes before the last two are a batch, which all operands of a primitive have in common.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from corejax import lax
from corejax.core import ShapedArray, aval_of, dtypes, to_dim
from corejax.errors import CorejaxError, CorejaxTypeError, CorejaxValueError
from corejax.plugin import refused

Shape = tuple[int, ...]

#: The types that LAPACK computes with.
REAL = (np.dtype(np.float32), np.dtype(np.float64))
COMPLEX = (np.dtype(np.complex64), np.dtype(np.complex128))
INEXACT = (*REAL, *COMPLEX)

INT32 = np.dtype(np.int32)


# Parts and forms of matrices; all of it works on arrays and on traced values

def is_complex(x: Any) -> bool:
    """Whether the elements of an array, or of a type, are complex."""
    dtype = x.dtype if isinstance(x, ShapedArray) else aval_of(x).dtype
    return bool(dtype.kind == "c")


def real_dtype(dtype: np.dtype) -> np.dtype:
    """The type of the real parts."""
    return np.dtype(f"f{dtype.itemsize // 2}") if dtype.kind == "c" else dtype


def swapped(x: Any) -> Any:
    """The transposed matrices."""
    ndim = x.ndim
    return lax.transpose(x, (*range(ndim - 2), ndim - 1, ndim - 2))


def conjugate(x: Any) -> Any:
    """The complex conjugate; real arrays as they are."""
    return lax.conj(x) if is_complex(x) else x


def adjoint(x: Any) -> Any:
    """The conjugate transposes."""
    return conjugate(swapped(x))


def symmetrized(x: Any) -> Any:
    """The Hermitian parts, (x + x^H) / 2."""
    return (x + adjoint(x)) / 2


def hermitian_of_lower(x: Any) -> Any:
    """The Hermitian matrices with these lower triangles; imaginary parts of the diagonal don't count."""
    below = lower_part(x, -1)
    middle = lax.select(_at_or_below(x.shape, 0, lax.eq), x, lax.full_like(x, 0))
    if is_complex(x):
        middle = lax.convert_element_type(lax.real(middle), x.dtype)
    return below + middle + adjoint(below)


def identity(dtype: np.dtype, rows: int, columns: int | None = None, batch: Shape = ()) -> Any:
    """Matrices with ones on the diagonal and zeros elsewhere."""
    shape = (*batch, rows, rows if columns is None else columns)
    return lax.convert_element_type(_at_or_below(shape, 0, lax.eq), dtype)


def lower_part(x: Any, k: int = 0) -> Any:
    """The elements at and below the k-th diagonal, with zeros above."""
    return lax.select(_at_or_below(x.shape, k, lax.ge), x, lax.full_like(x, 0))


def upper_part(x: Any, k: int = 0) -> Any:
    """The elements at and above the k-th diagonal, with zeros below."""
    return lax.select(_at_or_below(x.shape, k, lax.le), x, lax.full_like(x, 0))


def _at_or_below(shape: Shape, k: int, compare: Callable[..., Any]) -> Any:
    """How rows, moved down by k, compare with columns: a comparison of places, so that no constant is in programs."""
    matrix = shape[-2:]
    rows, columns = [lax.broadcasted_iota(INT32, matrix, axis) for axis in (0, 1)]
    return broadcast_to(compare(rows + np.int32(k) if k else rows, columns), shape)


def diagonal(x: Any) -> Any:
    """The diagonals of matrices, as vectors."""
    size = min(x.shape[-2:])
    square = x[..., :size, :size] if x.shape[-2] != x.shape[-1] else x
    return lax.select(_at_or_below(square.shape, 0, lax.eq), square, lax.full_like(square, 0)).sum(-1)


def on_diagonal(x: Any) -> Any:
    """Square matrices with these vectors on their diagonals."""
    shape = (*x.shape, x.shape[-1])
    spread = lax.broadcast_in_dim(x, shape, tuple(range(x.ndim)))
    return lax.select(_at_or_below(shape, 0, lax.eq), spread, lax.full_like(spread, 0))


def broadcast_to(x: Any, shape: Shape) -> Any:
    """The array repeated along new leading axes, or along those of size 1."""
    ndim = aval_of(x).ndim
    if aval_of(x).shape == tuple(shape):
        return x
    return lax.broadcast_in_dim(x, tuple(shape), tuple(range(len(shape) - ndim, len(shape))))


def product(x: Any, y: Any) -> Any:
    """The products of matrices in batches of one shape, in full precision."""
    batch = tuple(range(x.ndim - 2))
    return lax.dot_general(x, y, (((x.ndim - 1,), (y.ndim - 2,)), (batch, batch)), precision="highest")


def nan_unless(ok: Any, x: Any) -> Any:
    """The matrices (or vectors) of a batch, with NaN in place of each for which `ok` is false."""
    nan = complex(np.nan, np.nan) if is_complex(x) else np.nan
    mask = lax.broadcast_in_dim(ok, x.shape, tuple(range(ok.ndim)))
    return lax.select(mask, x, lax.full_like(x, nan))


# Checks of operands

def matrices(name: str, avals: Sequence[ShapedArray], ranks: Sequence[int], accepted: Sequence[np.dtype] = INEXACT,
             ) -> tuple[Shape, list[Shape]]:
    """The common batch, and each operand's own shape: of its last `rank` axes. Raises unless they fit together."""
    for aval, rank in zip(avals, ranks, strict=True):
        if aval.ndim < rank:
            raise refused(name, f"an operand has too few axes: {_what(rank)} is wanted", got=str(aval),
                          wanted=f"at least {rank} {'axis' if rank == 1 else 'axes'}",
                          todo="axes before these are a batch; add the missing ones with x[None] or x.reshape(...)")
        check_dtype(name, aval, accepted)
    if any([aval.dtype != avals[0].dtype for aval in avals]):
        raise refused(name, "operands differ in dtype", got=list(avals), wanted="one dtype",
                      todo="convert with lax.convert_element_type or x.astype(...)")
    batches = [aval.shape[:aval.ndim - rank] for aval, rank in zip(avals, ranks, strict=True)]
    if any([batch != batches[0] for batch in batches]):
        shown = ", ".join([f"{batch} of {aval}" for batch, aval in zip(batches, avals, strict=True)])
        raise refused(name, "operands differ in the axes before those of their matrices", got=shown,
                      wanted="one batch for all", todo="broadcast them to one batch with lax.broadcast_in_dim; or "
                      "apply cj.vmap, whose in_axes=None repeats an operand")
    return batches[0], [aval.shape[aval.ndim - rank:] for aval, rank in zip(avals, ranks, strict=True)]


def check_dtype(name: str, aval: ShapedArray, accepted: Sequence[np.dtype] = INEXACT) -> None:
    """Raise unless the elements have one of the accepted types."""
    if aval.dtype not in accepted:
        wanted = ", ".join([dtypes.short_name(dtype) for dtype in accepted])
        raise refused(name, f"there is no such function of elements of type {dtypes.short_name(aval.dtype)}",
                      got=str(aval), wanted=f"one of {wanted}", kind=CorejaxTypeError,
                      todo="convert the operand: x.astype(np.float32), for example")


def check_square(name: str, aval: ShapedArray, what: str = "the operand") -> None:
    """Raise unless the matrices have as many rows as columns."""
    if aval.shape[-2] != aval.shape[-1]:
        raise mismatch(name, f"{what} must be a square matrix", [aval], "as many rows as columns",
                       "look at the last two axes: those before are a batch")


def mismatch(name: str, problem: str, avals: Sequence[ShapedArray], wanted: str, todo: str) -> CorejaxError:
    """The error for shapes that don't fit."""
    return refused(name, problem, got=list(avals), wanted=wanted, todo=todo, kind=CorejaxValueError)


def _what(rank: int) -> str:
    return "a vector, or a batch of them," if rank == 1 else "a matrix, or a batch of them,"


def all_weak(avals: Sequence[ShapedArray]) -> bool:
    """Whether all types are weak, and so the result's."""
    return all([aval.weak_type for aval in avals])


def typed(aval: ShapedArray, shape: Shape, dtype: np.dtype, weak: bool = False) -> ShapedArray:
    """The type of a result, with the operand's other properties."""
    found: ShapedArray = aval.update(shape=tuple(shape), dtype=dtype, weak_type=weak)
    return found


# Batches

def batched_first(axis: Any, args: Sequence[Any], dims: Sequence[int | None]) -> list[Any]:
    """The operands with the batch axis as their first; those that have none are repeated."""
    return [to_dim(x, dim, 0, axis.size) for x, dim in zip(args, dims, strict=True)]


def rows_and_columns(w: Any) -> tuple[Any, Any]:
    """Square matrices that have w_i, and w_j, at i, j."""
    *batch, size = w.shape
    axes, shape, n = tuple(range(len(batch))), (*batch, size, size), len(batch)
    return lax.broadcast_in_dim(w, shape, (*axes, n)), lax.broadcast_in_dim(w, shape, (*axes, n + 1))


def reciprocal_gaps(w: Any, of_squares: bool = False) -> Any:
    """1 / (w_j - w_i), or of their squares, and 0 on the diagonal; infinite for values that are repeated."""
    rows, columns = rows_and_columns(w)
    gaps = columns - rows
    # (a + b)(a - b) keeps the digits of close numbers, which squares lose
    gaps = (columns + rows) * gaps if of_squares else gaps
    one = identity(aval_of(w).dtype, w.shape[-1], batch=w.shape[:-1])
    return lax.integer_pow(gaps + one, -1) - one
