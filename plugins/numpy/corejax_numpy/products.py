"""Products: of vectors, of matrices, of all elements with all others; and diagonals with their sums."""

# mypy: no-warn-return-any

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from corejax import lax
from corejax.core import Array, ArrayLike, DTypeLike, aval_of, dtypes
from corejax.errors import CorejaxValueError
from corejax.plugin import directly, operators, refused, shaping
from corejax_lax_basic import PrecisionLike, of_one_dtype
from corejax_numpy._arrays import array, no_out
from corejax_numpy._contracting import Names, contracted, no_sharding
from corejax_numpy._picking import operand

__all__ = ["cross", "diagonal", "dot", "inner", "kron", "matmul", "matvec", "outer", "tensordot", "trace", "vdot",
           "vecdot", "vecmat"]


@directly(np.dot, arrays=2, whole=True)
def dot(a: ArrayLike, b: ArrayLike, out: None = None, *, precision: PrecisionLike = None,
        preferred_element_type: DTypeLike | None = None, out_sharding: None = None) -> Array:
    """The sums of products over the last axis of `a` and the second-to-last of `b`, or its only one.

    >>> jnp.dot(jnp.array([[1.0, 2.0], [3.0, 4.0]]), jnp.array([1.0, 10.0]))
    Array([21., 43.], dtype=float64)
    """
    no_out("dot", out)
    no_sharding("dot", out_sharding)
    a, b = of_one_dtype((operand(a), operand(b)))
    a_ndim, b_ndim = aval_of(a).ndim, aval_of(b).ndim
    if not a_ndim or not b_ndim:
        return _times(a, b, preferred_element_type)
    axes = (a_ndim - 1,), (max(b_ndim - 2, 0),)
    _check_sizes("dot", a, b, *axes)
    return lax.dot_general(a, b, (axes, ((), ())), precision, preferred_element_type)


@directly(lambda a, b: a @ b, arrays=2, whole=True)
def matmul(a: ArrayLike, b: ArrayLike, *, precision: PrecisionLike = None,
           preferred_element_type: DTypeLike | None = None, out_sharding: None = None) -> Array:
    """The matrix product `a @ b`; the axes before the last two are batches, which broadcast.

    >>> jnp.matmul(jnp.array([[1.0, 2.0], [3.0, 4.0]]), jnp.array([[0.0, 1.0], [1.0, 0.0]]))
    Array([[2., 1.],
           [4., 3.]], dtype=float64)
    """
    no_sharding("matmul", out_sharding)
    if precision is None and preferred_element_type is None:
        return operators.matmul(array(a), array(b))
    a, b = of_one_dtype((operand(a), operand(b)))
    return _batched("matmul", a, "nk"[aval_of(a).ndim < 2:], b, "km"[:aval_of(b).ndim], precision,
                    preferred_element_type)


@directly(getattr(np, "matvec", None) or (lambda x1, x2: np.matmul(x1, x2[..., None])[..., 0]), arrays=2, whole=True)
def matvec(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """The products of matrices and vectors, in batches that broadcast.

    >>> jnp.matvec(jnp.array([[1.0, 2.0], [3.0, 4.0]]), jnp.array([[1.0, 0.0], [0.0, 1.0]]))
    Array([[1., 3.],
           [2., 4.]], dtype=float64)
    """
    return _batched("matvec", array(x1), "nk", array(x2), "k")


@directly(getattr(np, "vecmat", None) or (lambda x1, x2: np.matmul(np.conj(x1)[..., None, :], x2)[..., 0, :]),
          arrays=2, whole=True)
def vecmat(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """The products of vectors, which are conjugated, and matrices, in batches that broadcast.

    >>> jnp.vecmat(jnp.array([1.0, 10.0]), jnp.array([[1.0, 2.0], [3.0, 4.0]]))
    Array([31., 42.], dtype=float64)
    """
    return _batched("vecmat", _conjugate(array(x1)), "k", array(x2), "km")


@directly(np.vecdot, arrays=2, whole=True)
def vecdot(x1: ArrayLike, x2: ArrayLike, /, *, axis: int = -1, precision: PrecisionLike = None,
           preferred_element_type: DTypeLike | None = None) -> Array:
    """The products of vectors along an axis, the first ones conjugated, in batches that broadcast.

    >>> jnp.vecdot(jnp.array([[1.0, 2.0], [3.0, 4.0]]), jnp.array([1.0, 10.0]))
    Array([21., 43.], dtype=float64)
    """
    parts = []
    for x in (_conjugate(array(x1)), array(x2)):
        at, last = shaping.canonical_axis("vecdot", axis, x.ndim), x.ndim - 1
        parts.append(x if at == last else lax.transpose(x, (*[d for d in range(x.ndim) if d != at], at)))
    return _batched("vecdot", parts[0], "k", parts[1], "k", precision, preferred_element_type)


@directly(np.vdot, arrays=2, whole=True)
def vdot(a: ArrayLike, b: ArrayLike, *, precision: PrecisionLike = None,
         preferred_element_type: DTypeLike | None = None) -> Array:
    """The sum of products of all elements, those of `a` conjugated.

    >>> jnp.vdot(jnp.array([1j, 2.0]), jnp.array([1j, 1.0]))
    Array(3.+0.j, dtype=complex128)
    """
    a, b = of_one_dtype((operators.ravel(_conjugate(array(a))), operators.ravel(array(b))))
    _check_sizes("vdot", a, b, (0,), (0,))
    return lax.dot_general(a, b, (((0,), (0,)), ((), ())), precision, preferred_element_type)


@directly(np.inner, arrays=2, whole=True)
def inner(a: ArrayLike, b: ArrayLike, *, precision: PrecisionLike = None,
          preferred_element_type: DTypeLike | None = None) -> Array:
    """The sums of products over the last axes.

    >>> jnp.inner(jnp.array([[1.0, 2.0], [3.0, 4.0]]), jnp.array([1.0, 10.0]))
    Array([21., 43.], dtype=float64)
    """
    a, b = of_one_dtype((operand(a), operand(b)))
    a_ndim, b_ndim = aval_of(a).ndim, aval_of(b).ndim
    if not a_ndim or not b_ndim:
        return _times(a, b, preferred_element_type)
    axes = (a_ndim - 1,), (b_ndim - 1,)
    _check_sizes("inner", a, b, *axes)
    return lax.dot_general(a, b, (axes, ((), ())), precision, preferred_element_type)


@directly(np.outer, arrays=2, whole=True)
def outer(a: ArrayLike, b: ArrayLike, out: None = None) -> Array:
    """Each element of `a` times each of `b`, as a matrix.

    >>> jnp.outer(jnp.array([1.0, 2.0]), jnp.array([3.0, 4.0, 5.0]))
    Array([[ 3.,  4.,  5.],
           [ 6.,  8., 10.]], dtype=float64)
    """
    no_out("outer", out)
    a, b = operators.ravel(array(a)), operators.ravel(array(b))
    return operators.mul(lax.expand_dims(a, (1,)), lax.expand_dims(b, (0,)))


@directly(np.tensordot, arrays=2, whole=True)
def tensordot(a: ArrayLike, b: ArrayLike, axes: int | Sequence[int] | Sequence[Sequence[int]] = 2, *,
              precision: PrecisionLike = None, preferred_element_type: DTypeLike | None = None,
              out_sharding: None = None) -> Array:
    """The sums of products over axes: over the last ones of `a` and the first of `b`, or over those that are named.

    >>> jnp.tensordot(jnp.ones((2, 3, 4)), jnp.ones((4, 3)), axes=([1, 2], [1, 0]))
    Array([12., 12.], dtype=float64)
    """
    no_sharding("tensordot", out_sharding)
    a, b = of_one_dtype((operand(a), operand(b)))
    left, right = _paired_axes(axes, aval_of(a).ndim, aval_of(b).ndim)
    _check_sizes("tensordot", a, b, left, right)
    return lax.dot_general(a, b, ((left, right), ((), ())), precision, preferred_element_type)


@directly(np.kron, arrays=2, whole=True)
def kron(a: ArrayLike, b: ArrayLike) -> Array:
    """Blocks of `b`, each times an element of `a`.

    >>> jnp.kron(jnp.array([1.0, 10.0]), jnp.array([1.0, 2.0, 3.0]))
    Array([ 1.,  2.,  3., 10., 20., 30.], dtype=float64)
    """
    parts: list[Any] = [array(a), array(b)]
    ndim = max([x.ndim for x in parts])
    left, right = [(1,) * (ndim - x.ndim) + x.shape for x in parts]
    blocks = [size for m in left for size in (m, 1)], [size for n in right for size in (1, n)]
    product = operators.mul(*[operators.reshape(x, tuple(sizes)) for x, sizes in zip(parts, blocks, strict=True)])
    return operators.reshape(product, tuple([m * n for m, n in zip(left, right, strict=True)]))


def _cross_of_three(a: Any, b: Any, *args: Any, **kwargs: Any) -> Any:
    if args or kwargs or a.shape != b.shape or a.shape[-1:] != (3,):
        return np.cross(a, b, *args, **kwargs) if (a.shape[-1:], b.shape[-1:]) == ((3,), (3,)) else None
    out = np.empty(a.shape, np.result_type(a, b))
    for i, j, k in ((0, 1, 2), (1, 2, 0), (2, 0, 1)):
        np.subtract(a[..., j] * b[..., k], a[..., k] * b[..., j], out=out[..., i])
    return out


@directly(_cross_of_three, arrays=2, whole=True)
def cross(a: ArrayLike, b: ArrayLike, axisa: int = -1, axisb: int = -1, axisc: int = -1,
          axis: int | None = None) -> Array:
    """The cross products of vectors with two or three components, the missing one counting as 0.

    Of two vectors with two components, it is the third component alone. `axisa`, `axisb` and `axisc` say which axes
    have the components; `axis` means all three.

    >>> jnp.cross(jnp.array([1.0, 0.0, 0.0]), jnp.array([0.0, 1.0, 0.0]))
    Array([0., 0., 1.], dtype=float64)
    """
    if axis is not None:
        axisa = axisb = axisc = axis
    left, right = [_components(array(x), at) for x, at in ((a, axisa), (b, axisb))]
    if len(left) == len(right) == 2:
        return left[0] * right[1] - left[1] * right[0]
    (x1, x2, x3), (y1, y2, y3) = [part if len(part) == 3 else [*part, None] for part in (left, right)]
    parts = [_determinant(x2, x3, y2, y3), _determinant(x3, x1, y3, y1), _determinant(x1, x2, y1, y2)]
    ndim = aval_of(parts[0]).ndim + 1
    order = list(range(1, ndim))
    order.insert(shaping.canonical_axis("cross", axisc, ndim), 0)
    beside = lax.concatenate([lax.expand_dims(part, (0,)) for part in parts], 0)  # several times as fast as at the end
    return lax.transpose(beside, tuple(order))


def _numpy_trace(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: Any = None) -> Any:
    return np.add.reduce(a.diagonal(offset, axis1, axis2), -1, dtype)


@directly(_numpy_trace, whole=True)
def trace(a: ArrayLike, offset: int | ArrayLike = 0, axis1: int = 0, axis2: int = 1, dtype: DTypeLike | None = None,
          out: None = None) -> Array:
    """The sum of a diagonal: of elements whose indices along the two axes differ by `offset`.

    >>> jnp.trace(jnp.array([[1.0, 2.0], [3.0, 4.0]]))
    Array(5., dtype=float64)
    """
    no_out("trace", out)
    x = array(a)
    if isinstance(offset, (int, np.integer)):
        return operators.sum(array(diagonal(x, int(offset), axis1, axis2)), -1, dtype)
    x = _matrices_last("trace", x, axis1, axis2)
    rows, columns = [lax.broadcasted_iota(np.int32, x.shape[-2:], d) for d in (0, 1)]
    there = array(lax.sub(columns, rows)) == offset
    there = lax.broadcast_in_dim(there, x.shape, (x.ndim - 2, x.ndim - 1))
    return operators.sum(array(lax.select(there, x, lax.full_like(x, 0))), (-2, -1), dtype)


@directly(lambda a, *args, **kwargs: a.diagonal(*args, **kwargs))
def diagonal(a: ArrayLike, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Array:
    """The elements whose indices along the two axes differ by `offset`, along a new last axis.

    >>> jnp.diagonal(jnp.array([[1.0, 2.0], [3.0, 4.0]]), 1)
    Array([2.], dtype=float64)
    """
    offset = shaping.as_int("diagonal", "offset", offset)
    x = _matrices_last("diagonal", array(a), axis1, axis2)
    *batch, m, n = x.shape
    start = (max(-offset, 0), max(offset, 0))
    count = max(0, min(m - start[0], n - start[1]))
    if not count:
        return lax.full((*batch, 0), 0, x.dtype)
    # they are equally far apart, where the elements of a matrix stand in one row
    first, lead = start[0] * n + start[1], len(batch)
    last = first + (count - 1) * (n + 1)
    return lax.slice(operators.reshape(x, (*batch, m * n)), (*[0] * lead, first), (*batch, last + 1),
                     (*[1] * lead, n + 1))

# Parts

def _batched(name: str, x: Any, x_core: str, y: Any, y_core: str, precision: PrecisionLike = None,
             preferred: DTypeLike | None = None) -> Any:
    """Products along the axis k; the axes before those that have letters are batches, which broadcast."""
    shapes = aval_of(x).shape, aval_of(y).shape
    cores = x_core, y_core
    if any([len(shape) < max(1, len(core)) for shape, core in zip(shapes, cores, strict=True)]):
        raise _misfit(name, x, y, f"operands of at least {len(x_core) or 1} and {len(y_core) or 1} axes")
    lead = [shape[:len(shape) - len(core)] for shape, core in zip(shapes, cores, strict=True)]
    sizes = [shape[len(shape) - len(core) + core.index("k")] for shape, core in zip(shapes, cores, strict=True)]
    longest = max(map(len, lead))
    names: list[Names] = [(*range(longest - len(part), longest), *core) for part, core in zip(lead, cores, strict=True)]
    fits = all([m == n or 1 in (m, n) for m, n in zip(lead[0][::-1], lead[1][::-1], strict=False)])
    if sizes[0] != sizes[1] or not fits:
        raise _misfit(name, x, y, "axes to sum over of equal size, and batches that broadcast")
    out = (*range(longest), *[n for n in (*x_core, *y_core) if n != "k"])
    return contracted(x, names[0], y, names[1], out, precision, preferred)


def _check_sizes(name: str, a: Any, b: Any, left: Sequence[int], right: Sequence[int]) -> None:
    shapes = aval_of(a).shape, aval_of(b).shape
    if [shapes[0][d] for d in left] != [shapes[1][d] for d in right]:
        raise _misfit(name, a, b, "axes to sum over of equal size")


def _misfit(name: str, a: Any, b: Any, wanted: str) -> Exception:
    return refused(name, "the shapes of the operands don't fit together", got=f"{aval_of(a)} and {aval_of(b)}",
                   wanted=wanted, todo="transpose, reshape or slice one of the operands", kind=CorejaxValueError)


def _times(a: Any, b: Any, preferred: DTypeLike | None) -> Any:
    if preferred is not None:
        a, b = lax.convert_element_type(a, preferred), lax.convert_element_type(b, preferred)
    return operators.mul(array(a), b)


def _conjugate(x: Any) -> Any:
    return lax.conj(x) if dtypes.is_complex(x.dtype) else x


def _paired_axes(axes: Any, a_ndim: int, b_ndim: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    if isinstance(axes, (list, tuple, np.ndarray)):
        if len(axes) != 2:
            raise _no_pairs(axes)
        left, right = [shaping.canonical_axes("tensordot", part, ndim) for part, ndim in zip(axes, (a_ndim, b_ndim),
                                                                                             strict=True)]
        if len(left) != len(right):
            raise _no_pairs(axes)
        return left, right
    count = shaping.as_int("tensordot", "axes", axes)
    if not 0 <= count <= min(a_ndim, b_ndim):
        raise refused("tensordot", "the operands don't have so many axes", got=f"axes={count}",
                      wanted=f"at most {min(a_ndim, b_ndim)}", todo="sum over fewer axes", kind=CorejaxValueError)
    return tuple(range(a_ndim - count, a_ndim)), tuple(range(count))


def _no_pairs(axes: Any) -> Exception:
    return refused("tensordot", "axes must be a number, or a pair", got=f"axes={axes!r}",
                   wanted="as many axes of the one operand as of the other", todo="pass axes=([0, 1], [1, 0])",
                   kind=CorejaxValueError)


def _components(x: Any, axis: int) -> list[Any]:
    """The parts of an array along an axis, of which there must be two or three."""
    at = shaping.canonical_axis("cross", axis, x.ndim) if x.ndim else 0
    size = x.shape[at] if x.ndim else 0
    if size not in (2, 3):
        raise refused("cross", "vectors must have two or three components", got=f"{x.aval}, axis {axis}",
                      wanted="an axis of size 2 or 3", todo="say which axis with axisa=, axisb= or axis=",
                      kind=CorejaxValueError)
    return [lax.index_in_dim(x, i, at, keepdims=False) for i in range(size)]


def _determinant(a: Any, b: Any, c: Any, d: Any) -> Any:
    """a d - b c, in which None is 0: of a and c, or of b and d, at most one may be missing, with the other there."""
    if a is None or d is None:
        return -(b * c)
    return a * d if b is None or c is None else a * d - b * c


def _matrices_last(name: str, x: Any, axis1: int, axis2: int) -> Any:
    """The array with these axes as its last ones."""
    if x.ndim < 2:
        raise refused(name, "a diagonal needs two axes", got=str(x.aval), wanted="at least two axes",
                      todo="jnp.diag makes a matrix from a vector", kind=CorejaxValueError)
    rows, columns = [shaping.canonical_axis(name, axis, x.ndim) for axis in (axis1, axis2)]
    if rows == columns:
        raise refused(name, "the two axes are the same", got=f"axis1={axis1}, axis2={axis2}",
                      wanted="two axes", todo="pass different ones", kind=CorejaxValueError)
    order = (*[d for d in range(x.ndim) if d not in (rows, columns)], rows, columns)
    return x if order == tuple(range(x.ndim)) else lax.transpose(x, order)
