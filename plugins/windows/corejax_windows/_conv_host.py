"""Convolutions by NumPy: the matrix of the kernel times those of all windows, for a part of the batch at a time."""

from __future__ import annotations

from math import prod

import numpy as np
from numpy.lib.stride_tricks import as_strided

from corejax.core import dtypes
from corejax_windows.conv_dimension_numbers import Numbers
from corejax_windows.conv_shapes import Pads, Shape, dilated

#: A matrix of windows has about so many elements, to stay in the cache.
_MATRIX = 1 << 18

#: Operands with padding of so many elements are fine in any case.
_MOST_PADDED = 1 << 24


def convolution(lhs: np.ndarray, rhs: np.ndarray, numbers: Numbers, strides: Shape, pads: Pads,
                dilations: tuple[Shape, Shape], groups: tuple[int, int], dtype: np.dtype) -> np.ndarray:
    """The convolution, added up in `dtype`; floats narrower than 32 bits in that."""
    wide = np.dtype(np.float32) if dtypes.kind(dtype) == "f" and dtype.itemsize < 4 else dtype
    x = _padded(lhs.transpose(numbers[0]).astype(wide, copy=False), pads, dilations[0])
    y = rhs.transpose(numbers[1]).astype(wide, copy=False)
    outs, ins, *window = y.shape
    feature_groups, batch_groups = groups
    count, batch, terms = feature_groups * batch_groups, len(x) // batch_groups, ins * prod(window)
    # groups, batch, input features, and the axes in space
    if batch_groups > 1:
        x = x.reshape(batch_groups, batch, *x.shape[1:])
    else:
        x = x.reshape(batch, feature_groups, ins, *x.shape[2:]).swapaxes(0, 1)
    seen = _windows(x, window, strides, dilations[1])
    sizes = seen.shape[3 + len(window):]
    places, each = prod(sizes), outs // count
    kernel = y.reshape(count, 1, each, terms)
    out = np.zeros((batch, count, each, places), wide)
    step = max(1, _MATRIX // max(1, places * terms * count))
    for start in range(0, batch if out.size and terms else 0, step):
        part = seen[:, start:start + step]
        found = kernel @ part.reshape(count, part.shape[1], terms, places)
        out[start:start + step] = found.swapaxes(0, 1)
    return out.reshape(batch, outs, *sizes).transpose(np.argsort(numbers[2])).astype(dtype, order="C", copy=False)


def is_mostly_padding(lhs: np.ndarray, numbers: Numbers, pads: Pads, dilation: Shape) -> bool:
    """Whether it would take a lot of memory to pad the operand, where a compiled program takes none."""
    batch, features, *space = [lhs.shape[d] for d in numbers[0]]
    wide = prod([size + max(low, 0) + max(high, 0)
                 for size, (low, high) in zip(dilated(space, dilation), pads, strict=True)])
    return bool(batch * features * wide > max(_MOST_PADDED, 64 * lhs.size))


def _padded(x: np.ndarray, pads: Pads, dilation: Shape) -> np.ndarray:
    """Batch and features as they are, and space with zeros in between, before and after, or with some left out."""
    if all([pair == (0, 0) for pair in pads]) and all([step == 1 for step in dilation]):
        return x
    wide = dilated(x.shape[2:], dilation)
    spread = np.zeros((*x.shape[:2], *[size + max(low, 0) + max(high, 0)
                                       for size, (low, high) in zip(wide, pads, strict=True)]), x.dtype)
    inside = [slice(max(low, 0), max(low, 0) + size, step)
              for size, (low, _), step in zip(wide, pads, dilation, strict=True)]
    kept = [slice(max(-low, 0), size - max(-high, 0))
            for size, (low, high) in zip(spread.shape[2:], pads, strict=True)]
    both = slice(None), slice(None)
    spread[(*both, *inside)] = x
    return spread[(*both, *kept)]


def _windows(x: np.ndarray, window: list[int], strides: Shape, apart: Shape) -> np.ndarray:
    """A view of all windows: groups, batch, input features, space in the window, results in space."""
    sizes = [max(0, (size - k) // step + 1)
             for size, k, step in zip(x.shape[3:], dilated(window, apart), strides, strict=True)]
    steps = [own * step for own, step in zip(x.strides[3:], strides, strict=True)]
    within = [own * step for own, step in zip(x.strides[3:], apart, strict=True)]
    if 0 in sizes or not x.size:
        return np.zeros((*x.shape[:3], *window, *sizes), x.dtype)
    return as_strided(x, (*x.shape[:3], *window, *sizes), (*x.strides[:3], *within, *steps), writeable=False)
