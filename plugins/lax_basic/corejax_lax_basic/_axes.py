"""Checks of shapes and dtypes, shared by the structural primitives; those of axes are in `corejax.plugin.shaping`."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from corejax.core import Linear, ShapedArray, aval_of, dtypes
from corejax.plugin import refused

Shape = tuple[int, ...]


def as_list(primitive: str, what: str, values: Any) -> list[Any]:
    """The entries of a sequence, which may be an array."""
    if isinstance(values, Sequence) and not isinstance(values, str):
        return list(values)
    if getattr(values, "ndim", 0):
        return list(values)
    raise refused(primitive, f"{what} must be a sequence", got=f"{values!r:.80}", wanted="a list or a tuple",
                  todo="put a single one in a list")


def check_shape(primitive: str, what: str, shape: Shape) -> None:
    """Check that a param is a valid shape."""
    if any([type(size) is not int or size < 0 for size in shape]):
        raise refused(primitive, f"{what} has an entry that isn't a size", got=shape, wanted="non-negative integers",
                      todo="compute the sizes first; only array.reshape accepts -1")


def broadcast_shape(shapes: Sequence[Shape]) -> Shape | None:
    """The shape to which these broadcast, by NumPy's law; None if they don't."""
    common: Shape = ()
    for shape in shapes:
        if not common:
            common = shape
        elif not shape or shape == common[-len(shape):]:
            continue
        elif common == shape[-len(common):]:
            common = shape
        else:
            rank = max(len(common), len(shape))
            pairs = [*zip((1,) * (rank - len(common)) + common, (1,) * (rank - len(shape)) + shape, strict=True)]
            if any([m != n and m != 1 and n != 1 for m, n in pairs]):
                return None
            common = tuple([m if n == 1 else n for m, n in pairs])
    return common


@lru_cache(maxsize=1024)
def last_axes(count: int, ndim: int) -> Shape:
    """The last axes of an array."""
    return tuple(range(ndim - count, ndim))


def same_dtype(primitive: str, avals: Sequence[ShapedArray]) -> None:
    """Check that operands have the same dtype."""
    if any([aval.dtype != avals[0].dtype for aval in avals]):
        raise refused(primitive, "operands differ in dtype", got=" and ".join(map(str, avals)), wanted="one dtype",
                      todo="convert with lax.convert_element_type or x.astype(...)")


def all_weak(avals: Sequence[ShapedArray]) -> bool:
    """Whether all types are weak, and so the result's."""
    return all([aval.weak_type for aval in avals])


def canonical_dtype(dtype: Any) -> np.dtype:
    """The dtype that a dtype, scalar type, name or Python type stands for."""
    return ShapedArray((), dtype).dtype


def dtype_kind(dtype: np.dtype) -> str:
    """`b`, `i`, `u`, `f` or `c`; `E` for elements of packs' own types."""
    return dtype.kind if dtype.kind != "V" else dtypes.kind(dtype)


def shape_of(x: Any) -> Shape:
    """The shape of an array, a scalar or a `Linear` placeholder."""
    return x.aval.shape if isinstance(x, Linear) else aval_of(x).shape


def inverse(permutation: Sequence[int]) -> Shape:
    """The permutation that undoes another."""
    undone = [0] * len(permutation)
    for position, axis in enumerate(permutation):
        undone[axis] = position
    return tuple(undone)
