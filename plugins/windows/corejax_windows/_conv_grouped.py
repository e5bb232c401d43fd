"""Convolutions in groups on CPUs, where XLA is slow at them: computed by what it is fast at.

With one input feature in each group, XLA multiplies with a dense kernel of which all groups but one are zero: a NaN in
one group then reaches the others, and the work grows with the square of their number. Here they are a few shifted
products, which the compiler fuses. Groups of the batch, which appear in derivatives of convolutions with groups of
features, are slower by a factor of 50 than groups of features; they become such by a transposition.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any, NamedTuple

import numpy as np

from corejax import lax
from corejax.core import aval_of, dtypes
from corejax_windows._conv_axes import merged, split
from corejax_windows.conv_dimension_numbers import Numbers
from corejax_windows.conv_shapes import Pads, Shape

#: Up to so many products are worth more operations in the program.
_MOST_PRODUCTS = 32


class Grouped(NamedTuple):
    """The params of a convolution in groups, the dtype of sums, and the shape of the result."""

    numbers: Numbers
    strides: Shape
    pads: Pads
    lhs_dilation: Shape
    rhs_dilation: Shape
    feature_groups: int
    batch_groups: int
    dtype: np.dtype
    out: Shape

    def space(self) -> Shape:
        """The sizes of the result in space."""
        return tuple([self.out[d] for d in self.numbers[2][2:]])


Way = Callable[[Any, Any, Grouped], Any]


def way(conv: Grouped, lhs: Shape, rhs: Shape) -> Way | None:
    """How to compute a convolution of operands of these shapes in another way, if that is faster."""
    (batch, _, *_), (outs, ins, *window), _ = conv.numbers
    if conv.dtype == np.bool_:
        return None
    if conv.batch_groups > 1:
        if not lhs[batch] == rhs[outs] == conv.batch_groups:
            return _by_features
        return _by_results if np.prod(conv.space(), dtype=int) <= _MOST_PRODUCTS else None
    few = np.prod([rhs[d] for d in window], dtype=int) <= _MOST_PRODUCTS
    return _by_window if conv.feature_groups > 1 and rhs[ins] == 1 and few else None


def _by_window(x: Any, y: Any, conv: Grouped) -> Any:
    """One input feature in each group: for each element of the window, all results at once."""
    (batch, features, *space), (outs, ins, *window), _ = conv.numbers
    x, y = _wide(_padded(x, conv), conv), _wide(y, conv)
    shape, kernel, sizes = aval_of(x).shape, aval_of(y).shape, conv.space()
    whole = [*shape]
    for d, size in zip(space, sizes, strict=True):
        whole[d] = size
    each, full = kernel[outs] // shape[features], (*whole[:features + 1], kernel[outs] // shape[features],
                                                   *whole[features + 1:])
    own = tuple([d + (d > features) for d in range(len(shape))])

    def product(at: Shape) -> Any:
        starts, steps, one = [0] * len(shape), [1] * len(shape), [0] * len(shape)
        for d, of, i, apart, step in zip(space, window, at, conv.rhs_dilation, conv.strides, strict=True):
            starts[d], steps[d], one[of] = i * apart, step, i
        stops = [start + (size - 1) * step + 1 for start, size, step in zip(starts, whole, steps, strict=True)]
        weights = lax.slice(y, one, [n + 1 if d != outs else kernel[outs] for d, n in enumerate(one)])
        weights = lax.reshape(weights, (shape[features], each))
        part = lax.broadcast_in_dim(lax.slice(x, starts, stops, steps), full, own)
        return lax.mul(part, lax.broadcast_in_dim(weights, full, (features, features + 1)))

    total = _sum([product(at) for at in np.ndindex(*[kernel[d] for d in window])], conv)
    return _placed(merged(total, features, features), (batch, features, *space), conv)


def _by_results(x: Any, y: Any, conv: Grouped) -> Any:
    """One element of the batch and one output feature in each group: for each result, the whole window at once."""
    (batch, features, *space), rhs_axes, _ = conv.numbers
    x, y = _wide(_padded(x, conv), conv), _wide(y, conv)
    order = [0] * len(rhs_axes)
    for own, theirs in zip((batch, features, *space), rhs_axes, strict=True):
        order[own] = theirs
    y = lax.transpose(y, order)
    shape, others = aval_of(y).shape, tuple([d for d in range(len(order)) if d != batch])

    def result(at: Shape) -> Any:
        starts, steps = [0] * len(shape), [1] * len(shape)
        for d, i, apart, step in zip(space, at, conv.rhs_dilation, conv.strides, strict=True):
            starts[d], steps[d] = i * step, apart
        stops = [start + (size - 1) * step + 1 for start, size, step in zip(starts, shape, steps, strict=True)]
        return lax.reduce_sum(lax.mul(lax.slice(x, starts, stops, steps), y), others)

    sizes = conv.space()
    found = lax.stack([result(at) for at in np.ndindex(*sizes)], axis=1)
    found = lax.convert_element_type(lax.reshape(found, (1, shape[batch], *sizes)), conv.dtype)
    return _placed(found, tuple(range(len(shape))), conv)


def _by_features(x: Any, y: Any, conv: Grouped) -> Any:
    """Groups of the batch as groups of features."""
    batch, features = conv.numbers[0][:2]
    x = merged(split(x, batch, conv.batch_groups), batch, features)
    return lax.conv_general_dilated(
        x, y, conv.strides, conv.pads, conv.lhs_dilation, conv.rhs_dilation,
        lax.ConvDimensionNumbers(*conv.numbers), conv.batch_groups, preferred_element_type=conv.dtype)


def _padded(x: Any, conv: Grouped) -> Any:
    config = [(0, 0, 0)] * len(conv.numbers[0])
    for d, (low, high), step in zip(conv.numbers[0][2:], conv.pads, conv.lhs_dilation, strict=True):
        config[d] = (low, high, step - 1)
    if all([entry == (0, 0, 0) for entry in config]):
        return x
    return lax.pad(x, np.zeros((), aval_of(x).dtype), config)


def _wide(x: Any, conv: Grouped) -> Any:
    """The operand in the dtype to add up in: floats narrower than 32 bits in that."""
    narrow = dtypes.kind(conv.dtype) == "f" and conv.dtype.itemsize < 4
    dtype = dtypes.float32 if narrow else conv.dtype
    return x if aval_of(x).dtype == dtype else lax.convert_element_type(x, dtype)


def _sum(products: list[Any], conv: Grouped) -> Any:
    total = reduce(lax.add, products)
    return total if aval_of(total).dtype == conv.dtype else lax.convert_element_type(total, conv.dtype)


def _placed(x: Any, axes: Shape, conv: Grouped) -> Any:
    """The result, of which `axes` are batch, features and space, with these where they belong."""
    out = conv.numbers[2]
    order = [axes[out.index(d)] for d in range(len(out))]
    return x if order == [*range(len(order))] else lax.transpose(x, order)
