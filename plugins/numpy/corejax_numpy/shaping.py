"""The same elements in other shapes."""

# mypy: no-warn-return-any

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np

from corejax import lax
from corejax.core import Array, Tracer, dtypes
from corejax.errors import CorejaxValueError
from corejax.plugin import directly, operators, public, refused, shaping as checks
from corejax_numpy._arrays import array
from corejax_numpy._asked import checked_order, placed, shape as sizes_of
from corejax_numpy._values import spread

__all__ = [
    "atleast_1d", "atleast_2d", "atleast_3d", "broadcast_arrays", "broadcast_shapes", "broadcast_to", "expand_dims",
    "ndim", "ravel", "reshape", "resize", "shape", "size", "squeeze", "trim_zeros",
]

Axes = int | Sequence[int]


# What the shape is

def _shape(a: Any) -> tuple[int, ...]:
    if type(a) in dtypes.PYTHON_SCALARS:  # of any size
        return ()
    found = getattr(a, "shape", None)
    return tuple(found) if found is not None else array(a).shape


@public
def shape(a: Any) -> tuple[int, ...]:
    """The sizes along each axis.

    >>> shape([[1, 2, 3]])
    (1, 3)
    """
    return _shape(a)


@public
def ndim(a: Any) -> int:
    """The number of axes.

    >>> ndim([[1, 2, 3]])
    2
    """
    return len(_shape(a))


@public
def size(a: Any, axis: Axes | None = None) -> int:
    """The number of elements, or the size along one axis or several.

    >>> size([[1, 2, 3]]), size([[1, 2, 3]], 0)
    (3, 1)
    """
    sizes = _shape(a)
    return prod(sizes if axis is None else [sizes[d] for d in checks.canonical_axes("size", axis, len(sizes))])


# Another shape

@directly(np.reshape)
def reshape(a: Any, shape: Any, order: str = "C", *, copy: bool | None = None, out_sharding: Any = None) -> Array:
    """The same elements in another shape, in row-major order or, with `order="F"`, in column-major order.

    >>> reshape(jnp.arange(4), (2, -1)), reshape(jnp.arange(4), (2, 2), order="F")
    (Array([[0, 1],
           [2, 3]], dtype=int64), Array([[0, 2],
           [1, 3]], dtype=int64))
    """
    x = operators.reshape(array(a), shape, order=checked_order("reshape", order, "F"))
    return placed("reshape", operators.copy(x) if copy else x, None, out_sharding)


@directly(np.ravel)
def ravel(a: Any, order: str = "C", *, out_sharding: Any = None) -> Array:
    """All elements along one axis, in row-major order or, with `order="F"`, in column-major order.

    >>> ravel([[1, 2], [3, 4]])
    Array([1, 2, 3, 4], dtype=int64)
    """
    return placed("ravel", operators.ravel(array(a), order=checked_order("ravel", order, "F")), None, out_sharding)


@directly(lambda a, new_shape: np.resize(a, new_shape))
def resize(a: Any, new_shape: Any) -> Array:
    """An array of another shape with these elements, repeated from the start as often as it takes.

    >>> resize(jnp.arange(3), (2, 4))
    Array([[0, 1, 2, 0],
           [1, 2, 0, 1]], dtype=int64)
    """
    sizes, flat = sizes_of("resize", new_shape), operators.ravel(array(a))
    total = prod(sizes)
    if not flat.size or not total:
        return lax.full_like(flat, 0, shape=sizes)
    times = -(-total // flat.size)
    repeated = lax.tile(flat, (times,)) if times > 1 else flat
    return operators.reshape(lax.slice_in_dim(repeated, 0, total), sizes)


@directly(np.squeeze)
def squeeze(a: Any, axis: Axes | None = None) -> Array:
    """Without axes of size 1: all of them, or those that are given.

    >>> squeeze(jnp.ones((1, 2, 1)), 0).shape
    (2, 1)
    """
    return operators.squeeze(array(a), axis)


@directly(np.expand_dims)
def expand_dims(a: Any, axis: Axes) -> Array:
    """With new axes of size 1, at these positions of the result.

    >>> expand_dims(jnp.ones(3), (0, -1)).shape
    (1, 3, 1)
    """
    a, new = array(a), checks.as_ints("expand_dims", "an axis", axis)
    places = checks.canonical_axes("expand_dims", new, a.ndim + len(new))
    rest = iter(a.shape)
    return lax.reshape(a, tuple([1 if d in places else next(rest) for d in range(a.ndim + len(new))]))


# More axes

def _one_of(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """NumPy's function of a single array."""
    return lambda x: function(x)


def _at_least(least: int, arys: Sequence[Any]) -> Any:
    found = []
    for ary in arys:
        x = array(ary)
        if x.ndim < least:
            new = {0: (1,) * least, 1: (1, x.size, 1)[3 - least:] if least > 2 else (1, x.size), 2: (*x.shape, 1)}
            x = lax.reshape(x, new[x.ndim])
        found.append(x)
    return found[0] if len(found) == 1 else tuple(found)


@directly(_one_of(np.atleast_1d))
def atleast_1d(*arys: Any) -> Array | tuple[Array, ...]:
    """Arrays with at least one axis: a number becomes a vector.

    >>> atleast_1d(3.0, [1, 2])
    (Array([3.], dtype=float64, weak_type=True), Array([1, 2], dtype=int64))
    """
    return _at_least(1, arys)


@directly(_one_of(np.atleast_2d))
def atleast_2d(*arys: Any) -> Array | tuple[Array, ...]:
    """Arrays with at least two axes: a vector becomes a row.

    >>> atleast_2d([1, 2])
    Array([[1, 2]], dtype=int64)
    """
    return _at_least(2, arys)


@directly(_one_of(np.atleast_3d))
def atleast_3d(*arys: Any) -> Array | tuple[Array, ...]:
    """Arrays with at least three axes: a vector becomes the middle one, a matrix the first two.

    >>> atleast_3d([1, 2]).shape, atleast_3d([[1, 2]]).shape
    ((1, 2, 1), (1, 2, 1))
    """
    return _at_least(3, arys)


# Broadcasting

@public
def broadcast_shapes(*shapes: Any) -> tuple[int, ...]:
    """The shape that arrays of these shapes are broadcast to.

    >>> broadcast_shapes((3, 1), (2,), ())
    (3, 2)
    """
    each = [sizes_of("broadcast_shapes", one) for one in shapes]
    try:
        return np.broadcast_shapes(*each)
    except ValueError as error:
        raise refused("broadcast_shapes", "the shapes don't fit together", got=each, kind=CorejaxValueError,
                      wanted="along each axis, counted from the last, equal sizes or 1", todo="check them") from error


@directly(lambda array, shape: np.broadcast_to(array, shape).copy())
def broadcast_to(array: Any, shape: Any, subok: bool = False, *, out_sharding: Any = None) -> Array:
    """The array repeated along new leading axes, and along axes of size 1, to have this shape.

    >>> broadcast_to(jnp.arange(2), (2, 2))
    Array([[0, 1],
           [0, 1]], dtype=int64)
    """
    return placed("broadcast_to", spread("broadcast_to", array, sizes_of("broadcast_to", shape)), None, out_sharding)


def _broadcast_by_numpy(*args: Any) -> tuple[Any, ...]:
    shape = np.broadcast(*args).shape
    return tuple([np.broadcast_to(x, shape).copy() for x in args])


@directly(_broadcast_by_numpy, arrays=32)
def broadcast_arrays(*args: Any, subok: bool = False) -> tuple[Array, ...]:
    """The arrays in their common shape.

    >>> [x.tolist() for x in broadcast_arrays([1, 2], 3)]
    [[1, 2], [3, 3]]
    """
    arrays = [array(x) for x in args]
    sizes = broadcast_shapes(*[x.shape for x in arrays])
    return tuple([spread("broadcast_arrays", x, sizes) for x in arrays])


# Trimming

@directly(lambda filt, trim="fb": np.trim_zeros(filt, trim), sizes_vary=True)
def trim_zeros(filt: Any, trim: str = "fb", axis: Axes | None = None) -> Array:
    """Without the zeros at the front ("f") and the back ("b") along axes. Its shape depends on the values.

    >>> trim_zeros(jnp.array([0, 0, 1, 0, 2, 0]))
    Array([1, 0, 2], dtype=int64)
    """
    x = array(filt)
    if not isinstance(trim, str) or not set(trim.lower()) <= {"f", "b"}:
        raise refused("trim_zeros", "unknown ends", got=f"trim={trim!r}", wanted="'f', 'b' or 'fb'",
                      todo="leave it out: it is 'fb'", kind=CorejaxValueError)
    if isinstance(x, Tracer):
        raise refused("trim_zeros", "the shape of the result depends on values, which a traced array doesn't have",
                      got=str(x.aval), wanted="an array outside of transformations",
                      todo="trim it before the transformed function, or keep the zeros: there is no size= for this")
    host = np.asarray(x) != 0
    axes = range(x.ndim) if axis is None else checks.canonical_axes("trim_zeros", axis, x.ndim)
    index = [slice(None)] * x.ndim
    for d in axes:
        found = np.flatnonzero(host.any(tuple([other for other in range(x.ndim) if other != d])))
        start, stop = (int(found[0]), int(found[-1]) + 1) if found.size else (x.shape[d], x.shape[d])
        index[d] = slice(start if "f" in trim.lower() else 0, stop if "b" in trim.lower() else None)
        if not found.size and "f" not in trim.lower():
            index[d] = slice(0, 0)
    return x[tuple(index)]
