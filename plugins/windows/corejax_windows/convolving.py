"""Convolutions with fewer options than `conv_general_dilated`, and transposed ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

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
from corejax_windows.conv_shapes import dilated, positive, transposed_pads
from corejax_windows.convolution import conv_general_dilated

__all__ = ["conv", "conv_transpose", "conv_with_general_padding"]

#: The words that `conv_transpose` takes for images and the like, by the number of axes
_CHANNELS_LAST = {2: ("NC", "IO", "NC"), 3: ("NHC", "HIO", "NHC"), 4: ("NHWC", "HWIO", "NHWC"),
                  5: ("NHWDC", "HWDIO", "NHWDC")}


@public
def conv(lhs: ArrayLike, rhs: ArrayLike, window_strides: Sequence[int], padding: str | Sequence[tuple[int, int]],
         precision: PrecisionLike = None, preferred_element_type: DTypeLike | None = None) -> Array:
    """`conv(lhs, rhs, window_strides, padding, precision=None, ...)`: `conv_general_dilated` without dilation.

    Axes are batch, features, space; those of rhs output features, input features, space.

    >>> import numpy as np
    >>> conv(np.ones((1, 3, 9, 9)), np.ones((5, 3, 2, 2)), (1, 1), "SAME").shape
    (1, 5, 9, 9)
    """
    return conv_general_dilated(lhs, rhs, window_strides, padding, precision=precision,  # type: ignore[no-any-return]
                                preferred_element_type=preferred_element_type)


@public
def conv_with_general_padding(lhs: ArrayLike, rhs: ArrayLike, window_strides: Sequence[int],
                              padding: str | Sequence[tuple[int, int]], lhs_dilation: Sequence[int] | None,
                              rhs_dilation: Sequence[int] | None, precision: PrecisionLike = None,
                              preferred_element_type: DTypeLike | None = None) -> Array:
    """`conv_with_general_padding(lhs, rhs, window_strides, padding, lhs_dilation, rhs_dilation, ...)`: with dilation.

    >>> import numpy as np
    >>> x, window = np.ones((1, 3, 9)), np.ones((5, 3, 2))
    >>> conv_with_general_padding(x, window, (2,), [(0, 3)], None, (2,)).shape
    (1, 5, 5)
    """
    return conv_general_dilated(lhs, rhs, window_strides, padding, lhs_dilation,  # type: ignore[no-any-return]
                                rhs_dilation, precision=precision, preferred_element_type=preferred_element_type)


@public
def conv_transpose(lhs: ArrayLike, rhs: ArrayLike, strides: Sequence[int], padding: str | Sequence[tuple[int, int]],
                   rhs_dilation: Sequence[int] | None = None,
                   dimension_numbers: ConvGeneralDilatedDimensionNumbers = None, transpose_kernel: bool = False,
                   precision: PrecisionLike = None, preferred_element_type: DTypeLike | None = None,
                   use_consistent_padding: bool = False) -> Array:
    """`conv_transpose(lhs, rhs, strides, padding, ...)`: a convolution of lhs dilated by strides, which enlarges it.

    Words for `padding` are those of the convolution to be transposed: "SAME" makes the result as many times larger as
    the strides say. Pairs are padding of the dilated lhs; with `use_consistent_padding`, of the convolution, too. By
    default, features come last: ("NHWC", "HWIO", "NHWC"). With `transpose_kernel` the window is reversed in space and
    its input and output features change places, so that this is the cotangent of lhs in a convolution.

    >>> import numpy as np
    >>> x, window = np.array([[[1.0], [2.0]]]), np.array([[[1.0]], [[10.0]]])
    >>> conv_transpose(x, window, (2,), "SAME").ravel().tolist()
    [10.0, 1.0, 20.0, 2.0]
    >>> conv_transpose(x, window, (2,), "SAME", transpose_kernel=True).ravel().tolist()
    [1.0, 10.0, 2.0, 20.0]
    """
    name, ndim, kernel = "conv_transpose", aval_of(lhs).ndim, aval_of(rhs)
    if dimension_numbers is None:
        if ndim not in _CHANNELS_LAST:
            raise refused(name, f"there are no dimension numbers by default for {ndim} axes", got=aval_of(lhs),
                          wanted="from 2 to 5 axes", kind=CorejaxValueError,
                          todo='pass dimension_numbers, such as ("NHWDTC", "HWDTIO", "NHWDTC")')
        dimension_numbers = _CHANNELS_LAST[ndim]
    numbers = canonical_numbers(name, ndim, kernel.ndim, dimension_numbers)
    outs, ins, *space = numbers[1]
    steps = positive(name, "strides", strides, len(space))
    apart = positive(name, "rhs_dilation", rhs_dilation, len(space))
    consistent = shaping.as_flag(name, "use_consistent_padding", use_consistent_padding)
    pads: Any = padding
    if consistent or (isinstance(padding, str) and (padding in ("SAME", "VALID") or steps != (1,) * len(space))):
        pads = transposed_pads(name, dilated([kernel.shape[d] for d in space], apart), steps, padding)
    if shaping.as_flag(name, "transpose_kernel", transpose_kernel):
        swapped = [*range(ndim)]
        swapped[outs], swapped[ins] = ins, outs
        rhs = lax.transpose(lax.rev(rhs, space), swapped)
    return conv_general_dilated(lhs, rhs, (1,) * len(space), pads, steps, apart,  # type: ignore[no-any-return]
                                ConvDimensionNumbers(*numbers), precision=precision,
                                preferred_element_type=preferred_element_type)
