"""NumPy functions that join, split, repeat and rearrange, for traced values."""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from typing import Any

import numpy as np

from corejax import lax
from corejax.core import aval_of, from_array_like
from corejax.plugin import operators, refused, shaping
from corejax_lax_basic import of_one_dtype

# Joining

def _joinable(arrays: Any, dtype: Any = None) -> list[Any]:
    """The arrays of a sequence in one dtype: their common one, or the requested one."""
    operands = [from_array_like(x) for x in arrays]
    return operands and (of_one_dtype(operands) if dtype is None else [operators.astype(x, dtype) for x in operands])


def concatenate(arrays: Any, /, axis: int | None = 0, *, dtype: Any = None) -> Any:
    """`np.concatenate`."""
    operands = _joinable(arrays, dtype)
    if axis is None:
        operands, axis = [operators.ravel(x) for x in operands], 0
    ndim = aval_of(operands[0]).ndim if operands else 0
    return lax.concatenate(operands, shaping.canonical_axis("concatenate", axis, ndim))


def stack(arrays: Any, axis: int = 0, *, dtype: Any = None) -> Any:
    """`np.stack`."""
    return lax.stack(_joinable(arrays, dtype), axis)


def vstack(tup: Any, *, dtype: Any = None) -> Any:
    """`np.vstack`."""
    return concatenate([atleast_2d(x) for x in tup], 0, dtype=dtype)


def hstack(tup: Any, *, dtype: Any = None) -> Any:
    """`np.hstack`."""
    arrays = [atleast_1d(x) for x in tup]
    return concatenate(arrays, 0 if arrays and arrays[0].ndim == 1 else 1, dtype=dtype)


def dstack(tup: Any) -> Any:
    """`np.dstack`."""
    return concatenate([atleast_3d(x) for x in tup], 2)


def column_stack(tup: Any) -> Any:
    """`np.column_stack`: vectors become columns."""
    return concatenate([lax.expand_dims(x, (1,)) if x.ndim == 1 else x for x in map(atleast_1d, tup)], 1)


def append(arr: Any, values: Any, axis: int | None = None) -> Any:
    """`np.append`."""
    return concatenate((arr, values), axis)

# Axes

def _at_least(ndim: int, arrays: Sequence[Any]) -> Any:
    found = tuple([_with_axes(from_array_like(x), ndim) for x in arrays])
    return found[0] if len(found) == 1 else found


def _with_axes(x: Any, ndim: int) -> Any:
    shape = aval_of(x).shape
    if len(shape) >= ndim:
        return x
    new = {0: (1,) * ndim, 1: (1, *shape, 1)[3 - ndim:] if ndim > 1 else shape, 2: (*shape, 1)}[len(shape)]
    return operators.reshape(x, new)


def atleast_1d(*arys: Any) -> Any:
    """`np.atleast_1d`."""
    return _at_least(1, arys)


def atleast_2d(*arys: Any) -> Any:
    """`np.atleast_2d`."""
    found = tuple([x if x.ndim > 1 else operators.reshape(x, (1, x.size)) for x in map(from_array_like, arys)])
    return found[0] if len(found) == 1 else found


def atleast_3d(*arys: Any) -> Any:
    """`np.atleast_3d`."""
    return _at_least(3, arys)


def reshape(a: Any, /, shape: Any, order: str = "C", *, copy: bool | None = None) -> Any:
    """`np.reshape`."""
    return operators.reshape(from_array_like(a), shape, order=order)


def transpose(a: Any, axes: Any = None) -> Any:
    """`np.transpose`."""
    return operators.transpose(from_array_like(a), axes)


def matrix_transpose(x: Any, /) -> Any:
    """`np.matrix_transpose`."""
    return operators.mT(from_array_like(x))


def moveaxis(a: Any, source: Any, destination: Any) -> Any:
    """`np.moveaxis`."""
    a = from_array_like(a)
    sources, targets = [shaping.canonical_axes("moveaxis", axes, a.ndim) for axes in (source, destination)]
    if len(sources) != len(targets):
        raise refused("moveaxis", "source and destination differ in length", got=f"{source} to {destination}",
                      wanted="as many destinations as sources", todo="give a destination for each axis")
    order = [d for d in range(a.ndim) if d not in sources]
    for target, axis in sorted(zip(targets, sources, strict=True)):
        order.insert(target, axis)
    return lax.transpose(a, tuple(order))


def rollaxis(a: Any, axis: int, start: int = 0) -> Any:
    """`np.rollaxis`: moves the axis before the one that is at `start`."""
    a = from_array_like(a)
    source = shaping.canonical_axis("rollaxis", axis, a.ndim)
    before = a.ndim if start == a.ndim else shaping.canonical_axis("rollaxis", start, a.ndim)
    return moveaxis(a, source, before - (source < before))


def expand_dims(a: Any, axis: Any) -> Any:
    """`np.expand_dims`."""
    return lax.expand_dims(from_array_like(a), shaping.as_ints("expand_dims", "an axis", axis))


def broadcast_to(array: Any, shape: Any, subok: bool = False) -> Any:
    """`np.broadcast_to`."""
    array, sizes = from_array_like(array), shaping.as_ints("broadcast_to", "a size", shape)
    own, lead = array.shape, len(sizes) - array.ndim
    if lead < 0 or any([m not in (1, n) for m, n in zip(own, sizes[lead:], strict=True)]):
        raise refused("broadcast_to", f"{array.aval} doesn't fit this shape", got=sizes,
                      wanted="along each axis, counted from the last, equal sizes or 1", todo="reshape it first")
    return lax.broadcast_in_dim(array, sizes, tuple(range(lead, len(sizes))))


def broadcast_arrays(*args: Any, subok: bool = False) -> Any:
    """`np.broadcast_arrays`."""
    arrays = [from_array_like(x) for x in args]
    shape = np.broadcast_shapes(*[x.shape for x in arrays])
    return tuple([broadcast_to(x, shape) for x in arrays])


def meshgrid(*xi: Any, copy: bool = True, sparse: bool = False, indexing: str = "xy") -> Any:
    """`np.meshgrid`."""
    if indexing not in ("xy", "ij"):
        raise refused("meshgrid", "unknown order of the axes", got=f"indexing={indexing!r}",
                      wanted="'xy' or 'ij'", todo="'ij' has the axes in the order of the arguments")
    arrays = [operators.ravel(from_array_like(x)) for x in xi]
    count, swapped = len(arrays), indexing == "xy" and len(arrays) > 1
    places = [1 - i if swapped and i < 2 else i for i in range(count)]
    spread = [operators.reshape(x, tuple([-1 if d == place else 1 for d in range(count)]))
              for x, place in zip(arrays, places, strict=True)]
    return tuple(spread) if sparse else broadcast_arrays(*spread)

# Parts, order and repetition

def flip(m: Any, axis: Any = None) -> Any:
    """`np.flip`."""
    m = from_array_like(m)
    return lax.rev(m, tuple(range(m.ndim)) if axis is None else shaping.canonical_axes("flip", axis, m.ndim))


def roll(a: Any, shift: Any, axis: Any = None) -> Any:
    """`np.roll`, by static steps."""
    a = from_array_like(a)
    if axis is None:
        return operators.reshape(roll(operators.ravel(a), shift, 0), a.shape)
    steps, axes = np.broadcast_arrays(shaping.as_ints("roll", "a shift", shift),
                                      shaping.canonical_axes("roll", axis, a.ndim))
    for step, d in zip(steps.tolist(), axes.tolist(), strict=True):
        size = a.shape[d]
        if size and step % size:
            cut = size - step % size
            a = lax.concatenate([lax.slice_in_dim(a, cut, size, axis=d),
                                     lax.slice_in_dim(a, 0, cut, axis=d)], d)
    return a


def array_split(ary: Any, indices_or_sections: Any, axis: int = 0) -> list[Any]:
    """`np.array_split`."""
    ary = from_array_like(ary)
    size = ary.shape[shaping.canonical_axis("split", axis, ary.ndim)]
    if np.ndim(indices_or_sections):
        bounds = [0, *shaping.as_ints("split", "an index", indices_or_sections), size]
    else:
        bounds = [0, *np.cumsum([len(part) for part in np.array_split(np.empty(size, bool), indices_or_sections)])]
    parts = [slice(start, stop).indices(size) for start, stop in zip(bounds, bounds[1:], strict=False)]
    return [lax.slice_in_dim(ary, start, builtins.max(start, stop), axis=axis) for start, stop, _ in parts]


def split(ary: Any, indices_or_sections: Any, axis: int = 0) -> list[Any]:
    """`np.split`."""
    ary = from_array_like(ary)
    size = ary.shape[shaping.canonical_axis("split", axis, ary.ndim)]
    if not np.ndim(indices_or_sections) and size % shaping.as_int("split", "a number of parts", indices_or_sections):
        raise refused("split", "the parts would differ in size", got=f"{size} into {indices_or_sections}",
                      wanted="parts of equal size", todo="use np.array_split, or pass the indices at which to cut")
    return array_split(ary, indices_or_sections, axis)


def tile(A: Any, reps: Any) -> Any:
    """`np.tile`."""
    A, times = from_array_like(A), shaping.as_ints("tile", "a count", reps)
    ndim = builtins.max(A.ndim, len(times))
    times = (1,) * (ndim - len(times)) + times
    shape = (1,) * (ndim - A.ndim) + A.shape
    spread = lax.broadcast_in_dim(operators.reshape(A, shape), tuple([n for pair in zip(times, shape, strict=True)
                                                                         for n in pair]), range(1, 2 * ndim, 2))
    return operators.reshape(spread, tuple([n * m for n, m in zip(times, shape, strict=True)]))


def repeat(a: Any, repeats: Any, axis: int | None = None) -> Any:
    """`np.repeat`, by static counts."""
    a = from_array_like(a)
    if axis is None:
        a, axis = operators.ravel(a), 0
    at = shaping.canonical_axis("repeat", axis, a.ndim)
    positions = np.repeat(np.arange(a.shape[at]), shaping.as_ints("repeat", "a count", repeats))
    return take(a, positions, at)


def take(a: Any, indices: Any, axis: int | None = None, *, mode: str = "raise") -> Any:
    """`np.take`; a computed index beyond the end gives what indexing gives."""
    a, indices = from_array_like(a), indices if hasattr(indices, "aval") else np.asarray(indices)
    if axis is None:
        a, axis = operators.ravel(a), 0
    at = shaping.canonical_axis("take", axis, a.ndim)
    if mode == "wrap":
        indices = indices % a.shape[at]
    if mode == "clip":
        indices = indices.clip(0, a.shape[at] - 1)
    return operators.getitem(a, (*[slice(None)] * at, indices))


def diff(a: Any, n: int = 1, axis: int = -1) -> Any:
    """`np.diff`."""
    a = from_array_like(a)
    at = shaping.canonical_axis("diff", axis, a.ndim)
    for _ in range(shaping.as_int("diff", "a count", n)):
        size, boolean = a.shape[at], a.dtype == np.bool_
        later = lax.slice_in_dim(a, builtins.min(1, size), size, axis=at)
        earlier = lax.slice_in_dim(a, 0, builtins.max(size - 1, 0), axis=at)
        a = operators.ne(later, earlier) if boolean else operators.sub(later, earlier)
    return a
