"""Shapes that follow from other shapes, and operands brought to them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from corejax.core import Array, ArrayLike, aval_of
from corejax.errors import CorejaxValueError
from corejax.plugin import public, refused, shaping
from corejax_lax_basic._axes import Shape, broadcast_shape, check_shape, shape_of
from corejax_lax_basic.shapes import broadcast_in_dim, reshape

__all__ = ["broadcast_like", "broadcast_shapes", "broadcast_to_rank", "padtype_to_pads", "shape_as_value"]

#: As many as NumPy's arrays can have.
_MOST_AXES = 64


@public
def broadcast_shapes(*shapes: Sequence[int]) -> Shape:
    """The shape of what is computed from operands of these shapes by NumPy's law of broadcasting.

    >>> broadcast_shapes((3, 1), (1, 4), (5, 1, 1))
    (5, 3, 4)
    """
    given = [shaping.as_ints("broadcast_shapes", "a shape", shape) for shape in shapes]
    for shape in given:
        check_shape("broadcast_shapes", "a shape", shape)
    found = broadcast_shape(given)
    if found is None:
        raise refused("broadcast_shapes", "the shapes don't broadcast", got=", ".join(map(str, given)),
                      wanted="sizes that are equal or 1, compared from the last axis on",
                      todo="reshape one of the operands, so that each axis has its place", kind=CorejaxValueError)
    return found


@public
def broadcast_like(arr: ArrayLike, like_arr: ArrayLike) -> Array:
    """The array in the shape of another one, by NumPy's law of broadcasting.

    >>> broadcast_like(np.array([1, 2, 3]), np.zeros((2, 3))).tolist()
    [[1, 2, 3], [1, 2, 3]]
    """
    shape, wanted = shape_of(arr), shape_of(like_arr)
    if shape == wanted and isinstance(arr, Array):
        return arr
    end = wanted[len(wanted) - len(shape):]
    if len(shape) > len(wanted) or any([n not in (1, m) for n, m in zip(shape, end, strict=True)]):
        raise refused("broadcast_like", f"{aval_of(arr)} doesn't broadcast to shape {wanted}", got=str(aval_of(arr)),
                      wanted=f"sizes that are 1 or those at the end of {wanted}", todo="reshape the first operand",
                      kind=CorejaxValueError)
    return broadcast_in_dim(arr, wanted, range(len(wanted) - len(shape), len(wanted)))  # type: ignore[no-any-return]


@public
def broadcast_to_rank(x: ArrayLike, rank: int) -> Array:
    """The array with as many leading axes of size 1 as it takes to have `rank` axes.

    >>> broadcast_to_rank(np.ones(3), 2).shape
    (1, 3)
    """
    shape, count = shape_of(x), shaping.as_int("broadcast_to_rank", "rank", rank)
    if not len(shape) <= count <= _MOST_AXES:
        raise refused("broadcast_to_rank", f"{aval_of(x)} has {len(shape)} axes", got=count,
                      wanted=f"a rank from {len(shape)} to {_MOST_AXES}", kind=CorejaxValueError,
                      todo="squeeze or reshape it to remove axes" if count < len(shape) else
                      f"ask for fewer axes: an array has at most {_MOST_AXES}")
    return reshape(x, (1,) * (count - len(shape)) + shape)  # type: ignore[no-any-return]


@public
def shape_as_value(shape: Sequence[int]) -> np.ndarray:
    """The sizes as a vector of int32, to compute with.

    >>> shape_as_value((2, 3)).tolist()
    [2, 3]
    """
    sizes = shaping.as_ints("shape_as_value", "shape", shape)
    check_shape("shape_as_value", "shape", sizes)
    if any([size > np.iinfo(np.int32).max for size in sizes]):
        raise refused("shape_as_value", "a size doesn't fit into int32", got=sizes, wanted="sizes below 2**31",
                      todo="compute with Python's integers", kind=CorejaxValueError)
    return np.array(sizes, np.int32)


@public
def padtype_to_pads(in_shape: Sequence[int], window_shape: Sequence[int], window_strides: Sequence[int],
                    padding: str) -> list[tuple[int, int]]:
    """How many elements to pad before and after each axis, so that windows fit as `padding` says.

    "VALID" pads nothing. "SAME" pads so that there is a window for every `stride` elements, with an odd one after the
    operand; "SAME_LOWER" with an odd one before it.

    >>> padtype_to_pads((5,), (2,), (1,), "SAME"), padtype_to_pads((5,), (2,), (1,), "SAME_LOWER")
    ([(0, 1)], [(1, 0)])
    """
    sizes, windows, strides = [shaping.as_ints("padtype_to_pads", what, values) for what, values in (
        ("in_shape", in_shape), ("window_shape", window_shape), ("window_strides", window_strides))]
    kind = padding.upper() if isinstance(padding, str) else padding
    if kind not in ("SAME", "SAME_LOWER", "VALID"):
        raise refused("padtype_to_pads", "unknown padding", got=repr(padding), wanted="'SAME', 'SAME_LOWER' or 'VALID'",
                      todo="give the numbers of elements themselves, a pair for each axis", kind=CorejaxValueError)
    if not len(sizes) == len(windows) == len(strides) or any([stride < 1 for stride in strides]):
        raise refused("padtype_to_pads", "the sizes, windows and strides don't fit each other",
                      got=f"{sizes}, {windows}, {strides}", wanted="one of each for every axis, and strides from 1 on",
                      todo="leave out batch and feature axes everywhere", kind=CorejaxValueError)
    if kind == "VALID":
        return [(0, 0)] * len(sizes)
    missing = [max(0, (-(-n // stride) - 1) * stride + window - n)
               for n, window, stride in zip(sizes, windows, strides, strict=True)]
    return [(n // 2, n - n // 2) if kind == "SAME" else (n - n // 2, n // 2) for n in missing]
