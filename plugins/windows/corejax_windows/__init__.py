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
from corejax_windows.pooling import (
    reduce_window_max,
    reduce_window_min,
    reduce_window_shape_tuple,
    reduce_window_sum,
)
from corejax_windows.select_scattering import select_and_scatter
from corejax_windows.selecting import select_and_gather_add, select_and_scatter_add
from corejax_windows.window_reducing import reduce_window

__all__ = [
    "ConvDimensionNumbers", "ConvGeneralDilatedDimensionNumbers", "conv", "conv_dimension_numbers",
    "conv_general_dilated", "conv_general_dilated_local", "conv_general_dilated_patches", "conv_general_permutations",
    "conv_general_shape_tuple", "conv_shape_tuple", "conv_transpose", "conv_transpose_shape_tuple",
    "conv_with_general_padding", "reduce_window", "reduce_window_max", "reduce_window_min", "reduce_window_shape_tuple",
    "reduce_window_sum", "select_and_gather_add", "select_and_scatter", "select_and_scatter_add",
]
