"""The product along axes."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from corejax import lax
from corejax.plugin import partials
from corejax_reductions._reduction import Axes, Reduction, defined
from corejax_reductions.sums import reduce_sum

__all__ = ["reduce_prod"]


def _sum_of_products(x_dot: Any, out: Any, x: Any, *, axes: Axes) -> Any:
    """The sum of each tangent times the product of all other elements.

    It doesn't divide by the element, so it holds at zeros, and so do its derivatives, which are those of products.
    """
    shape = x.shape
    if len(shape) == len(axes) == 1:
        return reduce_sum(lax.mul(x_dot, _product_of_others(x)), axes)
    order = (*axes, *[d for d in range(len(shape)) if d not in axes])
    moved = tuple([shape[d] for d in order])
    flat = lax.reshape(lax.transpose(x, order), (prod(moved[: len(axes)]), *moved[len(axes):]))
    back = tuple([order.index(d) for d in range(len(shape))])
    others = lax.transpose(lax.reshape(_product_of_others(flat), moved), back)
    return reduce_sum(lax.mul(x_dot, others), axes)


def _product_of_others(x: Any) -> Any:
    """For each element along axis 0, the product of all the others, with a tree of logarithmic depth.

    The first half is paired with the second. The product of the others is the partner times the product without the
    pair.
    """
    size = x.shape[0]
    if size == 0:
        return x
    if size == 1:
        return lax.full_like(x, 1)
    if size % 2:
        x = lax.concatenate([x, lax.full((1, *x.shape[1:]), 1, x.dtype)], 0)
    half = x.shape[0] // 2
    first, second = lax.slice_in_dim(x, 0, half), lax.slice_in_dim(x, half, 2 * half)
    if half == 1:
        return lax.concatenate([second, first], 0)
    beyond = _product_of_others(lax.mul(first, second))
    found = lax.concatenate([lax.mul(beyond, second), lax.mul(beyond, first)], 0)
    return lax.slice_in_dim(found, 0, size) if size % 2 else found


class ReduceProd(Reduction):
    """`reduce_prod(operand, axes)`: the product along axes, in the operand's dtype; 1 if there are no elements.

    Floats narrower than 32 bits accumulate in float32.

    >>> lax.reduce_prod(np.array([[1.0, 2.0], [3.0, 4.0]]), (0,)).tolist()
    [3.0, 8.0]
    """

    name = "reduce_prod"
    jvp = partials(_sum_of_products)

    _ufunc = np.multiply
    _operation = "multiply"
    _wide = True
    _exempt_of_several = {"extreme numbers agree": "whether a product overflows on its way depends on the order"}

    def _identity(self, dtype: np.dtype) -> Any:
        return 1


reduce_prod = defined(ReduceProd())
