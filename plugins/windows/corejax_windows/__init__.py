"""Windows and convolutions: what is computed from the neighbourhood of each element."""

from __future__ import annotations

from corejax_windows.conv_dimension_numbers import (
    ConvDimensionNumbers,
    ConvGeneralDilatedDimensionNumbers,
    conv_dimension_numbers,
    conv_general_permutations,
)
from corejax_windows.conv_patches import conv_general_dilated_local, conv_general_dilated_patches
from corejax_windows.conv_shapes import conv_general_shape_tuple, conv_shape_tuple, conv_transpose_shape_tuple
from corejax_windows.convolution import conv_general_dilated
from corejax_windows.convolving import conv, conv_transpose, conv_with_general_padding

__all__ = [
    "ConvDimensionNumbers", "ConvGeneralDilatedDimensionNumbers", "conv", "conv_dimension_numbers",
    "conv_general_dilated", "conv_general_dilated_local", "conv_general_dilated_patches", "conv_general_permutations",
    "conv_general_shape_tuple", "conv_shape_tuple", "conv_transpose", "conv_transpose_shape_tuple",
    "conv_with_general_padding",
]
