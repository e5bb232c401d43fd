"""What each window of a convolution sees, and convolutions with a window of their own at each place."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from corejax import lax
from corejax.core import Array, ArrayLike, DTypeLike, aval_of
from corejax.errors import CorejaxValueError
from corejax.plugin import public, refused, shaping
from corejax_lax_basic import PrecisionLike
from corejax_windows.conv_dimension_numbers import (
    ConvDimensionNumbers,
    ConvGeneralDilatedDimensionNumbers,
    canonical_numbers,
)
from corejax_windows.convolution import canonical_levels, conv_general_dilated

__all__ = ["conv_general_dilated_local", "conv_general_dilated_patches"]


@public
def conv_general_dilated_patches(lhs: ArrayLike, filter_shape: Sequence[int], window_strides: Sequence[int],
                                 padding: str | Sequence[tuple[int, int]], lhs_dilation: Sequence[int] | None = None,
                                 rhs_dilation: Sequence[int] | None = None,
                                 dimension_numbers: ConvGeneralDilatedDimensionNumbers = None,
                                 precision: PrecisionLike = None,
                                 preferred_element_type: DTypeLike | None = None) -> Array:
    """`conv_general_dilated_patches(lhs, filter_shape, window_strides, padding, ...)`: what each window sees.

    The features of the result are all elements within a window: those of the first feature of lhs, of the second, and
    so on. Other arguments are those of `conv_general_dilated`; `filter_shape` has the sizes of the window in space.

    >>> import numpy as np
    >>> x = np.array([[[1.0, 2.0, 3.0, 4.0]]])
    >>> conv_general_dilated_patches(x, (2,), (1,), "VALID").tolist()
    [[[1.0, 2.0, 3.0], [2.0, 3.0, 4.0]]]
    """
    name, x = "conv_general_dilated_patches", aval_of(lhs)
    window = _window(name, filter_shape, x.ndim)
    numbers = canonical_numbers(name, x.ndim, len(window) + 2, dimension_numbers)
    features, count = x.shape[numbers[0][1]], prod(window)
    if not features:
        raise refused(name, "there are no features to take patches of", got=x, wanted="at least one feature",
                      todo="test the shape, which is static, first", kind=CorejaxValueError)
    # a window for each of its elements, which is one there and zero elsewhere
    ones = lax.eq(lax.broadcasted_iota("int32", (count, count), 0), lax.broadcasted_iota("int32", (count, count), 1))
    kernel = lax.broadcast_in_dim(lax.convert_element_type(ones, x.dtype), (features, count, count), (1, 2))
    kernel = lax.reshape(kernel, (features * count, 1, *window))
    kernel = lax.transpose(kernel, [numbers[1].index(d) for d in range(x.ndim)])
    levels = canonical_levels(name, precision)
    return conv_general_dilated(lhs, kernel, window_strides, padding, lhs_dilation,  # type: ignore[no-any-return]
                                rhs_dilation, ConvDimensionNumbers(*numbers), features,
                                precision=None if levels is None else (levels[0], "DEFAULT"),
                                preferred_element_type=preferred_element_type)


@public
def conv_general_dilated_local(lhs: ArrayLike, rhs: ArrayLike, window_strides: Sequence[int],
                               padding: str | Sequence[tuple[int, int]], filter_shape: Sequence[int],
                               lhs_dilation: Sequence[int] | None = None, rhs_dilation: Sequence[int] | None = None,
                               dimension_numbers: ConvGeneralDilatedDimensionNumbers = None,
                               precision: PrecisionLike = None) -> Array:
    """`conv_general_dilated_local(lhs, rhs, window_strides, padding, filter_shape, ...)`: another window at each place.

    In space, rhs has the sizes of the result; its input features are all elements within a window, in the order that
    `conv_general_dilated_patches` has.

    >>> import numpy as np
    >>> x, windows = np.array([[[1.0, 2.0, 3.0]]]), np.array([[[1.0, 0.0], [0.0, 10.0]]])
    >>> conv_general_dilated_local(x, windows, (1,), "VALID", (2,)).tolist()
    [[[1.0, 30.0]]]
    """
    name, ndim = "conv_general_dilated_local", aval_of(lhs).ndim
    levels = canonical_levels(name, precision)
    numbers = canonical_numbers(name, ndim, len(_window(name, filter_shape, ndim)) + 2, dimension_numbers)
    patches = conv_general_dilated_patches(lhs, filter_shape, window_strides, padding, lhs_dilation, rhs_dilation,
                                           ConvDimensionNumbers(*numbers), None if levels is None else levels[0])
    _, (_, ins, *rhs_space), (batch, features, *space) = numbers
    _check_windows(name, patches, rhs, (features, *space), (ins, *rhs_space))
    order = sorted(range(len(space)), key=space.__getitem__)
    found = lax.dot_general(patches, rhs, (((features,), (ins,)), ([space[i] for i in order],
                                                                   [rhs_space[i] for i in order])), precision)
    axes = [*[space[i] for i in order], batch, features]  # where each axis of the products belongs
    return lax.transpose(found, [axes.index(d) for d in range(ndim)])  # type: ignore[no-any-return]


def _window(name: str, filter_shape: Sequence[int], ndim: int) -> tuple[int, ...]:
    window = shaping.as_ints(name, "filter_shape", filter_shape)
    if len(window) != ndim - 2 or any([size < 1 for size in window]):
        raise refused(name, f"filter_shape={window} must have a size from 1 on for each axis in space", got=window,
                      wanted=f"{max(ndim - 2, 0)} positive integers", kind=CorejaxValueError,
                      todo="the axes in space are all of lhs but batch and features")
    return window


def _check_windows(name: str, patches: Array, rhs: ArrayLike, axes: Sequence[int], rhs_axes: Sequence[int]) -> None:
    have, want = aval_of(rhs), aval_of(patches)
    if have.ndim != want.ndim or [have.shape[d] for d in rhs_axes] != [want.shape[d] for d in axes]:
        sizes = [want.shape[d] for d in axes]
        raise refused(name, "rhs must have a window for each place", got=have,
                      wanted=f"{sizes[0]} input features, and the sizes {tuple(sizes[1:])} in space",
                      todo="give rhs a window for each element of the result in space; its input features are the "
                      "features of lhs times the product of filter_shape", kind=CorejaxValueError)
    if have.dtype != want.dtype:
        raise refused(name, "operands differ in dtype", got=f"{want} and {have}", wanted="one dtype",
                      todo="convert with lax.convert_element_type or x.astype(...)")
