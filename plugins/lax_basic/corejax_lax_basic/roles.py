"""What the kernel needs from basic primitives. Each name here is that of a role."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from corejax.core import Array, ShapedArray, aval_of, dtypes
from corejax_lax_basic import arithmetic, conversion, shapes, slicing, stacking
from corejax_lax_basic.shapes import expand, move_axis

__all__ = ["accumulate", "broadcast", "convert", "expand", "index", "move_axis", "multiply", "stack", "standard_basis",
           "zeros"]

#: x + y, for two values of the same type.
accumulate = arithmetic.add.primitive.bind_two  # type: ignore[attr-defined]

#: x * y, for two values of the same dtype, one of which may be a scalar.
multiply = arithmetic.mul.primitive.bind_two

_spread = shapes.broadcast_in_dim.primitive.bind
_stacked = stacking.stack.primitive.bind


def broadcast(x: Any, shape: tuple[int, ...], axes: tuple[int, ...]) -> Any:
    """`x` broadcast to this shape; its own axes become `axes` of the result."""
    return _spread(x, shape=shape, broadcast_dimensions=axes)


def zeros(aval: ShapedArray) -> Any:
    """Zeros of a type; of a pack's own elements, those that are stored as zeros."""
    if aval.dtype.type is np.void:
        return Array.from_host(np.zeros(aval.shape, aval.dtype), aval)
    scalar = Array.from_host(aval.dtype.type(0), ShapedArray((), aval.dtype, aval.weak_type))
    return broadcast(scalar, aval.shape, ()) if aval.shape else scalar


def stack(xs: Sequence[Any]) -> Any:
    """Stack arrays along a new leading axis."""
    return _stacked(*xs, dimension=0)


def index(x: Any, i: Any) -> Any:
    """The slice at `i`, which may be traced, along the leading axis, without that axis."""
    if isinstance(i, int):
        return slicing.index_in_dim(x, i, 0, keepdims=False)
    return slicing.dynamic_index_in_dim(x, i, 0, keepdims=False)


def convert(x: Any, dtype: Any, weak_type: bool = False) -> Any:
    """`x` in a dtype, weakly typed or not."""
    wanted, aval = dtypes.canonical(dtype), aval_of(x)
    if aval.dtype == wanted and aval.weak_type == weak_type:
        return x
    return conversion.convert_element_type.primitive.bind(  # type: ignore[attr-defined]
        x, new_dtype=wanted, weak_type=weak_type)


def standard_basis(aval: ShapedArray) -> Any:
    """The unit vectors of a type, stacked."""
    size = aval.size
    return Array.from_host(np.eye(size, dtype=aval.dtype).reshape(size, *aval.shape),
                           ShapedArray((size, *aval.shape), aval.dtype, aval.weak_type))
