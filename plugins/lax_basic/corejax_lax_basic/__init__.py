"""The basic primitives of numerical programs, as functions: everything in `corejax.lax` that comes from this pack."""

from __future__ import annotations

from corejax_lax_basic.accuracy import AccuracyMode, Tolerance, with_accuracy
from corejax_lax_basic.applying import scatter_apply
from corejax_lax_basic.arithmetic import (
    abs,
    add,
    div,
    integer_pow,
    max,
    min,
    mul,
    neg,
    reciprocal,
    rem,
    sign,
    square,
    sub,
)
from corejax_lax_basic.bits import bitcast_convert_type, clz, mulhi, nextafter, population_count, reduce_precision
from corejax_lax_basic.comparison import eq, eq_to, ge, gt, le, le_to, lt, lt_to, ne
from corejax_lax_basic.complex_parts import complex, conj, imag, real
from corejax_lax_basic.conversion import convert_element_type, dtype
from corejax_lax_basic.creation import as_dtype as as_dtype, broadcasted_iota, empty, full, full_like, iota
from corejax_lax_basic.exponential import cbrt, exp, exp2, expm1, log, log1p, logistic, pow, rsqrt, sqrt
from corejax_lax_basic.gathering import GatherDimensionNumbers, GatherScatterMode, gather
from corejax_lax_basic.identity import copy, optimization_barrier, stop_gradient
from corejax_lax_basic.joining import concatenate, pad
from corejax_lax_basic.linear_algebra import DotDimensionNumbers, batch_matmul, dot, dot_general
from corejax_lax_basic.logic import (
    bitwise_and,
    bitwise_not,
    bitwise_or,
    bitwise_xor,
    shift_left,
    shift_right_arithmetic,
    shift_right_logical,
)
from corejax_lax_basic.picking import index_take
from corejax_lax_basic.precision import DotAlgorithm, DotAlgorithmPreset, Precision, PrecisionLike
from corejax_lax_basic.promoting import (
    broadcast_together as broadcast_together,
    of_one_dtype as of_one_dtype,
    promoted as promoted,
)
from corejax_lax_basic.ragged import RaggedDotDimensionNumbers, ragged_dot, ragged_dot_general
from corejax_lax_basic.random_bits import RandomAlgorithm, rng_bit_generator, rng_uniform
from corejax_lax_basic.rounding import RoundingMethod, ceil, floor, is_finite, round
from corejax_lax_basic.scaled import scaled_dot
from corejax_lax_basic.scattering import (
    ScatterDimensionNumbers,
    scatter,
    scatter_add,
    scatter_max,
    scatter_min,
    scatter_mul,
    scatter_sub,
)
from corejax_lax_basic.selection import clamp, limited as limited, select, select_n
from corejax_lax_basic.shapes import (
    broadcast,
    broadcast_in_dim,
    collapse,
    expand_dims,
    reshape,
    rev,
    squeeze,
    transpose,
)
from corejax_lax_basic.sizes import (
    broadcast_like,
    broadcast_shapes,
    broadcast_to_rank,
    padtype_to_pads,
    shape_as_value,
)
from corejax_lax_basic.slicing import (
    dynamic_index_in_dim,
    dynamic_slice,
    dynamic_slice_in_dim,
    dynamic_update_index_in_dim,
    dynamic_update_slice,
    dynamic_update_slice_in_dim,
    index_in_dim,
    slice,
    slice_in_dim,
)
from corejax_lax_basic.stacking import stack, unstack
from corejax_lax_basic.tiling import split, tile
from corejax_lax_basic.trigonometric import (
    acos,
    acosh,
    asin,
    asinh,
    atan,
    atan2,
    atanh,
    cos,
    cosh,
    sin,
    sinh,
    tan,
    tanh,
)

__all__ = [
    "AccuracyMode", "DotAlgorithm", "DotAlgorithmPreset", "DotDimensionNumbers", "GatherDimensionNumbers",
    "GatherScatterMode", "Precision", "PrecisionLike", "RaggedDotDimensionNumbers", "RandomAlgorithm",
    "RoundingMethod", "ScatterDimensionNumbers", "Tolerance", "abs", "acos", "acosh", "add", "asin", "asinh",
    "atan", "atan2", "atanh", "batch_matmul", "bitcast_convert_type", "bitwise_and", "bitwise_not", "bitwise_or",
    "bitwise_xor", "broadcast", "broadcast_in_dim", "broadcast_like", "broadcast_shapes", "broadcast_to_rank",
    "broadcasted_iota", "cbrt", "ceil", "clamp", "clz", "collapse", "complex", "concatenate", "conj",
    "convert_element_type", "copy", "cos", "cosh", "div", "dot", "dot_general", "dtype", "dynamic_index_in_dim",
    "dynamic_slice", "dynamic_slice_in_dim", "dynamic_update_index_in_dim", "dynamic_update_slice",
    "dynamic_update_slice_in_dim", "empty", "eq", "eq_to", "exp", "exp2", "expand_dims", "expm1", "floor", "full",
    "full_like", "gather", "ge", "gt", "imag", "index_in_dim", "index_take", "integer_pow", "iota", "is_finite",
    "le", "le_to", "log", "log1p", "logistic", "lt", "lt_to", "max", "min", "mul", "mulhi", "ne", "neg", "nextafter",
    "optimization_barrier", "pad", "padtype_to_pads", "population_count", "pow", "ragged_dot", "ragged_dot_general",
    "real", "reciprocal", "reduce_precision", "rem", "reshape", "rev", "rng_bit_generator", "rng_uniform", "round",
    "rsqrt", "scaled_dot", "scatter", "scatter_add", "scatter_apply", "scatter_max", "scatter_min", "scatter_mul",
    "scatter_sub", "select", "select_n", "shape_as_value", "shift_left", "shift_right_arithmetic",
    "shift_right_logical", "sign", "sin", "sinh", "slice", "slice_in_dim", "split", "sqrt", "square", "squeeze",
    "stack", "stop_gradient", "sub", "tan", "tanh", "tile", "transpose", "unstack", "with_accuracy",
]
