"""Axes, shapes and errors about them, shared by the structural primitives."""

from __future__ import annotations

from collections.abc import Sequence
from operator import index
from typing import Any

import numpy as np

from corejax.core import Linear, ShapedArray, aval_of, here
from corejax.errors import CorejaxError, CorejaxIndexError, CorejaxTypeError

Shape = tuple[int, ...]


def wrong(primitive: str, problem: str, *, got: Any, wanted: Any, todo: str,
          kind: type[CorejaxError] = CorejaxTypeError) -> CorejaxError:
    """The error for operands or params that `primitive` rejects."""
    return kind(f"{primitive}: {problem}", primitive=primitive, got=got, wanted=wanted, where=here(), todo=todo)


def as_int(primitive: str, what: str, value: Any) -> int:
    """Convert to a static integer."""
    try:
        return int(index(value))
    except TypeError as error:
        if isinstance(error, CorejaxError):
            raise
        raise wrong(primitive, f"{what} must be an integer", got=repr(value), wanted="a static integer",
                    todo="pass a Python integer; shapes and axes can't depend on traced values") from error


def as_ints(primitive: str, what: str, values: Any) -> Shape:
    """Convert a sequence of static integers, or a single one, to a tuple."""
    if type(values) is tuple and all([type(v) is int for v in values]):
        return values
    if (isinstance(values, Sequence) and not isinstance(values, str)) or getattr(values, "ndim", 0) == 1:
        entry = what if what.startswith("a") else f"an entry of {what}"
        return tuple([as_int(primitive, entry, v) for v in values])
    return (as_int(primitive, what, values),)


def as_list(primitive: str, what: str, values: Any) -> list[Any]:
    """The entries of a sequence, which may be an array."""
    if isinstance(values, Sequence) and not isinstance(values, str):
        return list(values)
    if getattr(values, "ndim", 0):
        return list(values)
    raise wrong(primitive, f"{what} must be a sequence", got=f"{values!r:.80}", wanted="a list or a tuple",
                todo="put a single one in a list")


def canonical_axis(primitive: str, axis: Any, ndim: int) -> int:
    """An axis from 0 to ndim - 1; a negative one counts from the end."""
    number = as_int(primitive, "an axis", axis)
    if -ndim <= number < ndim:
        return number + ndim if number < 0 else number
    raise wrong(primitive, f"axis {number} is out of bounds for {ndim} dimensions", got=number,
                wanted=f"an axis from {-ndim} to {ndim - 1}" if ndim else "no axis: the operand is a scalar",
                todo="pass an axis that the operand has", kind=CorejaxIndexError)


def canonical_axes(primitive: str, axes: Any, ndim: int) -> Shape:
    """Distinct axes from 0 to ndim - 1, in the order given; a single integer is one axis."""
    found = tuple([canonical_axis(primitive, axis, ndim) for axis in as_ints(primitive, "an axis", axes)])
    if len(set(found)) != len(found):
        raise wrong(primitive, "an axis appears twice", got=axes, wanted="distinct axes", todo="name each axis once")
    return found


def check_axes(primitive: str, what: str, axes: Shape, ndim: int) -> None:
    """Check that a param contains distinct axes from 0 to ndim - 1."""
    if len(set(axes)) != len(axes) or any([not 0 <= axis < ndim for axis in axes]):
        raise wrong(primitive, f"{what} must be distinct axes of the operand", got=axes,
                    wanted=f"distinct axes from 0 to {ndim - 1}" if ndim else "(): the operand is a scalar",
                    todo="name each axis once, within the operand's dimensions")


def check_shape(primitive: str, what: str, shape: Shape) -> None:
    """Check that a param is a valid shape."""
    if any([type(size) is not int or size < 0 for size in shape]):
        raise wrong(primitive, f"{what} has an entry that isn't a size", got=shape, wanted="non-negative integers",
                    todo="compute the sizes first; only array.reshape accepts -1")


def same_dtype(primitive: str, avals: Sequence[ShapedArray]) -> None:
    """Check that operands have the same dtype."""
    if any([aval.dtype != avals[0].dtype for aval in avals]):
        raise wrong(primitive, "operands differ in dtype", got=" and ".join(map(str, avals)), wanted="one dtype",
                    todo="convert with lax.convert_element_type or x.astype(...)")


def all_weak(avals: Sequence[ShapedArray]) -> bool:
    """Whether all types are weak, and so the result's."""
    return all([aval.weak_type for aval in avals])


def canonical_dtype(dtype: Any) -> np.dtype:
    """The dtype that a dtype, scalar type, name or Python type stands for."""
    return ShapedArray((), dtype).dtype


def dtype_kind(dtype: np.dtype) -> str:
    """`b`, `i`, `u`, `f` or `c`; the small floats of ml_dtypes are floats."""
    return "f" if dtype.kind == "V" else dtype.kind


def shape_of(x: Any) -> Shape:
    """The shape of an array, a scalar or a `Linear` placeholder."""
    return x.aval.shape if isinstance(x, Linear) else aval_of(x).shape


def insert(values: Sequence[Any], position: int, value: Any) -> tuple[Any, ...]:
    """The tuple with one more entry before `position`."""
    return (*values[:position], value, *values[position:])


def shifted(axes: Sequence[int], batch_dim: int) -> Shape:
    """The same axes in an operand that has a batch axis at `batch_dim`."""
    return tuple([axis + (axis >= batch_dim) for axis in axes])


def inverse(permutation: Sequence[int]) -> Shape:
    """The permutation that undoes another."""
    undone = [0] * len(permutation)
    for position, axis in enumerate(permutation):
        undone[axis] = position
    return tuple(undone)
