"""Products of operands that come with scales for blocks of their elements, as narrow floats need them."""

from __future__ import annotations

from typing import Any

import numpy as np

from corejax import lax
from corejax.core import Array, ArrayLike, DTypeLike, aval_of, dtypes
from corejax.plugin import public, refused
from corejax_lax_basic._axes import Shape, canonical_dtype, dtype_kind, shape_of
from corejax_lax_basic.linear_algebra import DotDimensionNumbers, canonical_dot_numbers, check_dot_numbers, dot_general
from corejax_lax_basic.shapes import broadcast_in_dim, reshape

__all__ = ["scaled_dot"]


@public
def scaled_dot(lhs: ArrayLike, rhs: ArrayLike, *, lhs_scale: ArrayLike | None = None,
               rhs_scale: ArrayLike | None = None, dimension_numbers: DotDimensionNumbers | None = None,
               preferred_element_type: DTypeLike | None = None) -> Array:
    """The product of `lhs * lhs_scale` and `rhs * rhs_scale`, multiplied as bfloat16.

    A scale has the axes of its operand. Along contracted axes it may be shorter: each of its elements is for a block of
    so many elements of the operand. Without a scale the operand is as it is. `dimension_numbers` are those of
    `dot_general`; without them, this is the matrix product over the last two axes. The result is bfloat16 unless
    `preferred_element_type` says otherwise.

    >>> scaled_dot(np.ones((1, 4)), np.ones((4, 1)), lhs_scale=np.array([[1.0, 2.0]])).item()
    6.0
    """
    left, right = aval_of(lhs), aval_of(rhs)
    if dimension_numbers is None:
        if left.ndim < 2 or left.ndim != right.ndim:
            raise refused("scaled_dot", "the operands must be matrices, or stacks of them of equal rank",
                          got=f"{left} and {right}", wanted="equal ranks of at least 2",
                          todo="give dimension_numbers, as for lax.dot_general")
        stacks = tuple(range(left.ndim - 2))
        dimension_numbers = ((left.ndim - 1,), (left.ndim - 2,)), (stacks, stacks)
    numbers = canonical_dot_numbers(dimension_numbers)
    check_dot_numbers("scaled_dot", left, right, numbers)
    wanted = np.dtype(dtypes.bfloat16) if preferred_element_type is None else canonical_dtype(preferred_element_type)
    operands = [_scaled("lhs", lhs, lhs_scale, numbers[0][0]), _scaled("rhs", rhs, rhs_scale, numbers[0][1])]
    out: Array = dot_general(*operands, numbers, preferred_element_type=wanted)
    return out


def _scaled(side: str, x: Any, scale: Any, contracted: Shape) -> Any:
    """The operand as bfloat16, times its scale."""
    aval, narrow = aval_of(x), np.dtype(dtypes.bfloat16)
    if dtype_kind(aval.dtype) != "f":
        raise refused("scaled_dot", f"{side} must be of floats", got=str(aval), wanted="floats",
                      todo="convert it with x.astype(...), or call lax.dot_general")
    x = lax.convert_element_type(x, narrow)
    if scale is None:
        return x
    sizes = shape_of(scale)
    fits = len(sizes) == aval.ndim and all([
        n == m or (d in contracted and m and n % m == 0)
        for d, (n, m) in enumerate(zip(aval.shape, sizes, strict=True))])
    if not fits or dtype_kind(aval_of(scale).dtype) != "f":
        raise refused("scaled_dot", f"{side}_scale doesn't fit {side}", got=f"{aval_of(scale)} for {aval}",
                      wanted="floats, with the same axes; contracted ones may be shorter, by a factor",
                      todo="have a scale for each element, or for blocks of equal size along contracted axes")
    scale = lax.convert_element_type(scale, narrow)
    if sizes != aval.shape:  # each element of the scale as often as its block is long
        blocks = [part for n, m in zip(aval.shape, sizes, strict=True) for part in (m, n // m if m else 1)]
        scale = reshape(broadcast_in_dim(scale, tuple(blocks), tuple(range(0, 2 * len(sizes), 2))), aval.shape)
    return lax.mul(x, scale)
