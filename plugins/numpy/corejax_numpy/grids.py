"""Places in arrays: grids of coordinates, and indices of diagonals and triangles.

>>> import corejax.numpy as jnp
>>> jnp.r_[1:3, 0, jnp.array([5, 6])]
Array([1, 2, 0, 5, 6], dtype=int64)
>>> [x.tolist() for x in jnp.ogrid[:2, :3]]
[[[0], [1]], [[0, 1, 2]]]
"""

# mypy: no-warn-return-any

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy import index_exp, s_

from corejax import lax
from corejax.core import Array, DTypeLike, Tracer, aval_of, dtypes
from corejax.errors import CorejaxIndexError, CorejaxTypeError, CorejaxValueError
from corejax.plugin import NotDirectly, directly, operators, public, refused, shaping
from corejax_numpy._arrays import array
from corejax_numpy._asked import checked_order, shape as sizes_of
from corejax_numpy._values import spread
from corejax_numpy.joining_by_index import c_, r_
from corejax_numpy.ranges import along

__all__ = [
    "c_", "diag_indices", "diag_indices_from", "index_exp", "indices", "ix_", "mask_indices", "meshgrid", "mgrid",
    "ogrid", "r_", "ravel_multi_index", "s_", "tril_indices", "tril_indices_from", "triu_indices", "triu_indices_from",
    "unravel_index",
]


_ALL = 32  # of the arguments are operands


# Grids

@directly(lambda dimensions, dtype=int, sparse=False: np.indices(dimensions, dtype or int, sparse), arrays=0)
def indices(dimensions: Sequence[int], dtype: DTypeLike | None = None, sparse: bool = False) -> Array | tuple[Array,
                                                                                                              ...]:
    """The index along each axis of an array of this shape: in one array, or with `sparse` in one for each axis.

    >>> indices((2, 2)).tolist()
    [[[0, 0], [1, 1]], [[0, 1], [0, 1]]]
    """
    sizes = sizes_of("indices", dimensions)
    wanted = dtypes.default_dtype("i") if dtype is None else dtypes.canonical(dtype)
    if shaping.as_flag("indices", "sparse", sparse):
        return _open_mesh([lax.iota(wanted, size) for size in sizes])
    if not sizes:
        return lax.full((0,), 0, wanted)
    return lax.stack([lax.broadcasted_iota(wanted, sizes, axis) for axis in range(len(sizes))])


def _open_by_numpy(*args: Any) -> Any:
    vectors = [np.asarray(x) for x in args]
    if any([x.dtype.kind == "b" or not x.size for x in vectors]):
        raise NotDirectly
    return np.ix_(*vectors)


def _open_mesh(vectors: Sequence[Any]) -> tuple[Any, ...]:
    """Each vector along an axis of its own."""
    count = len(vectors)
    return tuple([lax.reshape(x, (*[1] * axis, aval_of(x).size, *[1] * (count - axis - 1)))
                  for axis, x in enumerate(vectors)])


@directly(np.meshgrid, arrays=_ALL)
def meshgrid(*xi: Any, copy: bool = True, sparse: bool = False, indexing: str = "xy") -> tuple[Array, ...]:
    """Vectors of coordinates spread over a grid; with `sparse`, only given an axis each.

    >>> [x.tolist() for x in meshgrid(jnp.array([1, 2]), jnp.array([3, 4]))]
    [[[1, 2], [1, 2]], [[3, 3], [4, 4]]]
    """
    if indexing not in ("xy", "ij"):
        raise refused("meshgrid", "unknown order of the axes", got=f"indexing={indexing!r}", kind=CorejaxValueError,
                      wanted="'xy' or 'ij'", todo="'ij' has the axes in the order of the arguments")
    vectors = [array(x) for x in xi]
    if any([x.ndim > 1 for x in vectors]):
        raise refused("meshgrid", "coordinates must be vectors", got=[x.aval for x in vectors], kind=CorejaxValueError,
                      wanted="at most one axis each", todo="ravel them")
    count, swapped = len(vectors), indexing == "xy"
    places = [1 - i if swapped and i < 2 and count > 1 else i for i in range(count)]
    by_axis = [vectors[places.index(axis)] for axis in range(count)]
    mesh = _open_mesh(by_axis)
    if not shaping.as_flag("meshgrid", "sparse", sparse):
        shape = tuple([x.size for x in by_axis])
        mesh = tuple([spread("meshgrid", x, shape) for x in mesh])
    return tuple([mesh[place] for place in places])


@directly(_open_by_numpy, arrays=_ALL)
def ix_(*args: Any) -> tuple[Array, ...]:
    """Vectors of indices, each along an axis of its own: with them as an index, the part of an array in these rows
    and columns. Booleans stand for the places where they are true.

    >>> jnp.arange(6).reshape(2, 3)[ix_([0, 1], [0, 2])].tolist()
    [[0, 2], [3, 5]]
    """
    vectors = []
    for arg in args:
        x = array(arg)
        if x.ndim != 1:
            raise refused("ix_", "indices must be vectors", got=str(x.aval), wanted="one axis", todo="ravel it",
                          kind=CorejaxValueError)
        if not x.size:
            x = operators.astype(x, dtypes.default_dtype("i"))
        vectors.append(_places(x) if dtypes.kind(x.dtype) == "b" else x)
    return _open_mesh(vectors)


def _places(mask: Any) -> Any:
    from corejax_numpy import nonzero

    return nonzero(mask)[0]


class _Grid:
    """Grids by slices: `[start:stop:step, ...]`, where an imaginary step is a number of points."""

    def __init__(self, name: str, sparse: bool) -> None:
        self._name, self._sparse = name, sparse

    @public
    def __getitem__(self, key: Any) -> Any:
        slices = key if isinstance(key, tuple) else (key,)
        vectors = [along(self._name, one) for one in slices]
        dtype = dtypes.promote(*[(x.dtype, False) for x in vectors])[0] if vectors else None
        vectors = [operators.astype(x, dtype) for x in vectors]
        if not isinstance(key, tuple):
            return vectors[0]
        if self._sparse:
            return _open_mesh(vectors)
        shape = tuple([x.size for x in vectors])
        return lax.stack([spread(self._name, x, shape) for x in _open_mesh(vectors)])

    def __repr__(self) -> str:
        return f"jnp.{self._name}"


mgrid = _Grid("mgrid", sparse=False)
ogrid = _Grid("ogrid", sparse=True)


# Diagonals and triangles

@directly(lambda n, ndim=2: np.diag_indices(n, ndim), arrays=0)
def diag_indices(n: int, ndim: int = 2) -> tuple[Array, ...]:
    """The indices of the diagonal of an array with `ndim` axes of size `n`.

    >>> jnp.eye(2)[diag_indices(2)]
    Array([1., 1.], dtype=float64)
    """
    (size,), count = sizes_of("diag_indices", n), shaping.as_int("diag_indices", "ndim", ndim)
    if count < 0:
        raise refused("diag_indices", "there can't be so many axes", got=f"ndim={count}", wanted="0 or more",
                      todo="check it", kind=CorejaxValueError)
    return (lax.iota(dtypes.default_dtype("i"), size),) * count


@public
def diag_indices_from(arr: Any) -> tuple[Array, ...]:
    """The indices of the diagonal of an array whose axes are all of one size.

    >>> diag_indices_from(jnp.ones((2, 2)))
    (Array([0, 1], dtype=int64), Array([0, 1], dtype=int64))
    """
    shape = array(arr).shape
    if len(shape) < 2 or len(set(shape)) > 1:
        raise refused("diag_indices_from", "the axes must be of one size", got=f"shape {shape}", kind=CorejaxValueError,
                      wanted="at least two axes of one size", todo="use jnp.diag_indices(min(x.shape), x.ndim)")
    return diag_indices(shape[0], len(shape))


def _of_triangle(name: str, triangle: Callable[..., Any], n: Any, k: Any, m: Any) -> tuple[Array, Array]:
    (rows,), (columns,) = sizes_of(name, n), sizes_of(name, n if m is None else m)
    i, j = triangle(rows, shaping.as_int(name, "k", k), columns)
    return array(i.astype(dtypes.default_dtype("i"))), array(j.astype(dtypes.default_dtype("i")))


@directly(lambda n, k=0, m=None: np.tril_indices(n, k, m), arrays=0)
def tril_indices(n: int, k: int = 0, m: int | None = None) -> tuple[Array, Array]:
    """The indices of the elements on the k-th diagonal of an n x m matrix and below it.

    >>> tril_indices(2)
    (Array([0, 1, 1], dtype=int64), Array([0, 0, 1], dtype=int64))
    """
    return _of_triangle("tril_indices", np.tril_indices, n, k, m)


@directly(lambda n, k=0, m=None: np.triu_indices(n, k, m), arrays=0)
def triu_indices(n: int, k: int = 0, m: int | None = None) -> tuple[Array, Array]:
    """The indices of the elements on the k-th diagonal of an n x m matrix and above it.

    >>> triu_indices(2)
    (Array([0, 0, 1], dtype=int64), Array([0, 1, 1], dtype=int64))
    """
    return _of_triangle("triu_indices", np.triu_indices, n, k, m)


def _matrix_shape(name: str, arr: Any) -> tuple[int, int]:
    shape = tuple(arr.shape) if hasattr(arr, "shape") else array(arr).shape
    if len(shape) != 2:
        raise refused(name, "the operand must be a matrix", got=f"shape {shape}", wanted="two axes",
                      todo="pass the size itself to the function without _from", kind=CorejaxValueError)
    return shape


@public
def tril_indices_from(arr: Any, k: int = 0) -> tuple[Array, Array]:
    """The indices of the elements on the k-th diagonal of a matrix and below it.

    >>> jnp.array([[1, 2], [3, 4]])[tril_indices_from(jnp.ones((2, 2)))]
    Array([1, 3, 4], dtype=int64)
    """
    rows, columns = _matrix_shape("tril_indices_from", arr)
    return tril_indices(rows, k, columns)


@public
def triu_indices_from(arr: Any, k: int = 0) -> tuple[Array, Array]:
    """The indices of the elements on the k-th diagonal of a matrix and above it.

    >>> jnp.array([[1, 2], [3, 4]])[triu_indices_from(jnp.ones((2, 2)))]
    Array([1, 2, 4], dtype=int64)
    """
    rows, columns = _matrix_shape("triu_indices_from", arr)
    return triu_indices(rows, k, columns)


@public
def mask_indices(n: int, mask_func: Callable[..., Any], k: int = 0, *, size: int | None = None) -> tuple[Array, ...]:
    """The indices where `mask_func(ones, k)` isn't zero, for an n x n matrix of ones.

    >>> mask_indices(2, jnp.tril)
    (Array([0, 1, 1], dtype=int64), Array([0, 0, 1], dtype=int64))
    """
    from corejax_numpy import nonzero

    (count,) = sizes_of("mask_indices", n)
    return nonzero(mask_func(lax.full((count, count), 1, dtypes.default_dtype("i")), k), size=size)


# Places in a flat order

def _unravelled_by_numpy(indices: Any, shape: Any) -> Any:
    return np.unravel_index(indices, shape)  # raises where places are clipped, or count from the end


def _ravelled_by_numpy(multi_index: Any, dims: Any, mode: Any = "raise") -> Any:
    return np.ravel_multi_index(tuple(multi_index), dims, mode)


@directly(_unravelled_by_numpy)
def unravel_index(indices: Any, shape: Any, order: str = "C") -> tuple[Array, ...]:
    """The indices along each axis of places in an array of this shape, counted in row-major order.

    Places beyond the ends are clipped; negative ones count from the end.

    >>> unravel_index(jnp.array([1, 5]), (2, 3))
    (Array([0, 1], dtype=int64), Array([1, 2], dtype=int64))
    """
    places = _integers("unravel_index", indices)
    sizes, backward = sizes_of("unravel_index", shape), checked_order("unravel_index", order, "F") == "F"
    total = int(np.prod(sizes, dtype=object))
    if not sizes:
        return ()
    if not isinstance(places, Tracer) and places.size and not total:
        raise refused("unravel_index", "an empty array has no places", got=f"shape {sizes}", kind=CorejaxValueError,
                      wanted="positive sizes", todo="check the shape")
    places = operators.clip(places, -total, max(total - 1, 0))
    places = lax.select_n(operators.lt(places, 0), places, operators.add(places, total)) if dtypes.kind(
        places.dtype) == "i" else places
    found = []
    for size in sizes if backward else reversed(sizes):
        found.append(operators.mod(places, max(size, 1)))
        places = operators.floordiv(places, max(size, 1))
    return tuple(found if backward else reversed(found))


@directly(_ravelled_by_numpy, sequences=1)
def ravel_multi_index(multi_index: Any, dims: Any, mode: Any = "raise", order: str = "C", *,
                      dtype: DTypeLike | None = None) -> Array:
    """The places in an array of this shape, counted in row-major order, of indices along each axis.

    `mode` says what becomes of those out of bounds: "raise", which needs known values, "clip" or "wrap".

    >>> ravel_multi_index(([0, 1], [1, 2]), (2, 3))
    Array([1, 5], dtype=int64)
    """
    name, sizes = "ravel_multi_index", sizes_of("ravel_multi_index", dims)
    parts = [_integers(name, part) for part in multi_index]
    modes = mode if isinstance(mode, tuple) else (mode,) * len(sizes)
    if len(parts) != len(sizes) or len(modes) != len(sizes):
        raise refused(name, "each axis needs an index and a mode", got=f"{len(parts)} indices, {len(modes)} modes",
                      wanted=f"{len(sizes)}, one for each axis", todo="check dims", kind=CorejaxValueError)
    parts = [_inside(name, *each) for each in zip(parts, sizes, modes, strict=True)]
    wanted = dtypes.default_dtype("i") if dtype is None else dtypes.canonical(dtype)
    pairs = list(zip(parts, sizes, strict=True))
    total: Any = lax.full((), 0, wanted)
    for part, size in pairs if checked_order(name, order, "F") == "C" else reversed(pairs):
        total = operators.add(operators.mul(total, size), operators.astype(part, wanted))
    return total


def _inside(name: str, part: Any, size: int, mode: Any) -> Any:
    if mode == "clip":
        return operators.clip(part, 0, size - 1)
    if mode == "wrap":
        return operators.mod(part, size)
    if mode != "raise":
        raise refused(name, "there is no such mode", got=f"mode={mode!r}", wanted="'raise', 'clip' or 'wrap'",
                      todo="use 'clip' for traced values", kind=CorejaxValueError)
    if isinstance(part, Tracer):
        raise refused(name, "whether traced indices are in bounds isn't known", got=f"{part.aval}, mode='raise'",
                      wanted="mode='clip' or mode='wrap'", todo="pass one of these modes")
    host = np.asarray(part)
    if host.size and not (host.min() >= 0 and host.max() < size):
        raise refused(name, "an index is out of bounds", got=f"{host.min()} to {host.max()}",
                      wanted=f"indices from 0 to {size - 1}", todo="pass mode='clip' or mode='wrap'",
                      kind=CorejaxIndexError)
    return part


def _integers(name: str, x: Any) -> Any:
    x = array(x)
    if not x.size and isinstance(x, Array) and not dtypes.is_integer(x.dtype):
        x = operators.astype(x, dtypes.default_dtype("i"))
    if not dtypes.is_integer(x.dtype):
        raise refused(name, "indices must be integers", got=str(x.aval), wanted="an integer dtype",
                      kind=CorejaxTypeError,
                      todo="convert them with x.astype(int)")
    return x
