"""Windows and convolutions: what is computed from the neighbourhood of each element."""

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
    "reduce_window", "reduce_window_max", "reduce_window_min", "reduce_window_shape_tuple", "reduce_window_sum",
    "select_and_gather_add", "select_and_scatter", "select_and_scatter_add",
]
