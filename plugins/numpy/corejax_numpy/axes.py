"""The axes of arrays in another order, and elements moved along axes."""

# mypy: no-warn-return-any

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from corejax import lax
from corejax.core import Array, aval_of, dtypes
from corejax.errors import CorejaxValueError
from corejax.plugin import directly, operators, refused, shaping
from corejax_numpy._arrays import array

__all__ = ["flip", "fliplr", "flipud", "matrix_transpose", "moveaxis", "permute_dims", "roll", "rollaxis", "rot90",
           "swapaxes", "transpose"]

Axes = int | Sequence[int]


# Another order of the axes

@directly(np.transpose)
def transpose(a: Any, axes: Axes | None = None) -> Array:
    """The axes in another order; reversed by default.

    >>> transpose(jnp.ones((2, 3, 4)), (1, 0, 2)).shape
    (3, 2, 4)
    """
    return operators.transpose(array(a), axes)


@directly(np.transpose)
def permute_dims(a: Any, /, axes: Axes) -> Array:
    """The axes in another order.

    >>> permute_dims(jnp.ones((2, 3)), (1, 0)).shape
    (3, 2)
    """
    return operators.transpose(array(a), axes)


@directly(np.matrix_transpose)
def matrix_transpose(x: Any, /) -> Array:
    """The matrices along the last two axes, transposed.

    >>> matrix_transpose(jnp.ones((2, 3, 4))).shape
    (2, 4, 3)
    """
    return operators.mT(array(x))


@directly(np.swapaxes)
def swapaxes(a: Any, axis1: int, axis2: int) -> Array:
    """The array with two axes exchanged.

    >>> swapaxes(jnp.ones((2, 3, 4)), 0, 2).shape
    (4, 3, 2)
    """
    return operators.swapaxes(array(a), axis1, axis2)


@directly(np.moveaxis)
def moveaxis(a: Any, source: Axes, destination: Axes) -> Array:
    """The array with axes moved to other positions; the rest stays in order.

    >>> moveaxis(jnp.ones((2, 3, 4)), 0, -1).shape
    (3, 4, 2)
    """
    a = array(a)
    sources, targets = [shaping.canonical_axes("moveaxis", axes, a.ndim) for axes in (source, destination)]
    if len(sources) != len(targets):
        raise refused("moveaxis", "source and destination differ in length", got=f"{source} to {destination}",
                      wanted="as many destinations as sources", todo="give a destination for each axis",
                      kind=CorejaxValueError)
    order = [d for d in range(a.ndim) if d not in sources]
    for target, axis in sorted(zip(targets, sources, strict=True)):
        order.insert(target, axis)
    return _in_order(a, tuple(order))


@directly(np.rollaxis)
def rollaxis(a: Any, axis: int, start: int = 0) -> Array:
    """The array with an axis moved before the one at `start`.

    >>> rollaxis(jnp.ones((2, 3, 4)), 2).shape
    (4, 2, 3)
    """
    a = array(a)
    source = shaping.canonical_axis("rollaxis", axis, a.ndim)
    before = a.ndim if start == a.ndim else shaping.canonical_axis("rollaxis", start, a.ndim)
    order = [d for d in range(a.ndim) if d != source]
    order.insert(before - (source < before), source)
    return _in_order(a, tuple(order))


def _in_order(a: Any, order: tuple[int, ...]) -> Any:
    return a if order == tuple(range(len(order))) else lax.transpose(a, order)


# Elements moved along axes

@directly(np.flip)
def flip(m: Any, axis: Axes | None = None) -> Array:
    """The elements in reverse order along axes; along all by default.

    >>> flip([1, 2, 3])
    Array([3, 2, 1], dtype=int64)
    """
    m = array(m)
    return lax.rev(m, tuple(range(m.ndim)) if axis is None else shaping.canonical_axes("flip", axis, m.ndim))


@directly(np.flipud)
def flipud(m: Any) -> Array:
    """The elements in reverse order along the first axis.

    >>> flipud([[1, 2], [3, 4]]).tolist()
    [[3, 4], [1, 2]]
    """
    m = array(m)
    return lax.rev(m, (shaping.canonical_axis("flipud", 0, m.ndim),))


@directly(np.fliplr)
def fliplr(m: Any) -> Array:
    """The elements in reverse order along the second axis.

    >>> fliplr([[1, 2], [3, 4]]).tolist()
    [[2, 1], [4, 3]]
    """
    m = array(m)
    return lax.rev(m, (shaping.canonical_axis("fliplr", 1, m.ndim),))


@directly(np.rot90)
def rot90(m: Any, k: int = 1, axes: tuple[int, int] = (0, 1)) -> Array:
    """The array turned by k quarters, from the first of two axes towards the second.

    >>> rot90([[1, 2], [3, 4]]).tolist()
    [[2, 4], [1, 3]]
    """
    m, turns = array(m), shaping.as_int("rot90", "k", k) % 4
    both = shaping.canonical_axes("rot90", axes, m.ndim)
    if len(both) != 2:
        raise refused("rot90", "a plane has two axes", got=f"axes={axes}", wanted="two different axes",
                      todo="pass two axes", kind=CorejaxValueError)
    if turns == 2:
        return lax.rev(m, both)
    if turns == 1:
        return operators.swapaxes(lax.rev(m, (both[1],)), *both)
    return lax.rev(operators.swapaxes(m, *both), (both[1],)) if turns else m


@directly(np.roll)
def roll(a: Any, shift: Any, axis: Axes | None = None) -> Array:
    """The elements moved along axes, those beyond the end to the front; in row-major order without axes.

    >>> roll(jnp.arange(4), 1)
    Array([3, 0, 1, 2], dtype=int64)
    """
    a = array(a)
    if axis is None:
        return lax.reshape(roll(operators.ravel(a), shift, 0), a.shape)
    axes = shaping.as_ints("roll", "an axis", axis)
    axes = tuple([shaping.canonical_axis("roll", d, a.ndim) for d in axes])  # one may be there twice
    for step, d in _steps(shift, axes):
        a = _rolled(a, step, d)
    return a


def _steps(shift: Any, axes: tuple[int, ...]) -> list[tuple[Any, int]]:
    steps = list(shift) if isinstance(shift, (list, tuple)) else [shift]
    if isinstance(shift, (Array, np.ndarray)) and shift.ndim == 1:
        steps = [shift[i] for i in range(len(shift))]
    if len(steps) != len(axes) and 1 not in (len(steps), len(axes)):
        raise refused("roll", "shifts and axes differ in number", got=f"{len(steps)} shifts, {len(axes)} axes",
                      wanted="a shift for each axis", todo="pass as many", kind=CorejaxValueError)
    count = len(axes) if len(steps) == 1 else len(steps)
    return list(zip(steps * count if len(steps) == 1 else steps, axes * count if len(axes) == 1 else axes,
                    strict=False))


def _rolled(a: Any, step: Any, axis: int) -> Any:
    size = a.shape[axis]
    if isinstance(step, Array):
        aval = aval_of(step)
        if aval.ndim or not dtypes.is_integer(aval.dtype):
            raise refused("roll", "a shift must be an integer", got=str(aval), wanted="integers",
                          todo="convert it with x.astype(int)")
        if not size:
            return a
        start = operators.mod(operators.neg(operators.astype(step, dtypes.default_dtype("i"))), size)
        return lax.dynamic_slice_in_dim(lax.concatenate([a, a], axis), start, size, axis)
    step = shaping.as_int("roll", "a shift", step)
    if not size or not step % size:
        return a
    cut = size - step % size
    return lax.concatenate([lax.slice_in_dim(a, cut, size, axis=axis), lax.slice_in_dim(a, 0, cut, axis=axis)], axis)
