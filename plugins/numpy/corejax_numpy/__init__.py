"""`corejax.numpy`: NumPy's functions on arrays of corejax, under every transformation, with NumPy's names.

>>> import corejax as cj
>>> import corejax.numpy as jnp
>>> x = jnp.linspace(0.0, 1.0, 5)
>>> jnp.where(x > 0.5, x, 0.0).sum()
Array(1.75, dtype=float64)
>>> cj.grad(lambda x: jnp.linalg.norm(x))(jnp.array([3.0, 4.0]))
Array([0.6, 0.8], dtype=float64)

A function is imported when it is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from corejax.plugin import namespace
from corejax_numpy._missing import instead_of

NAMESPACE = "numpy"

#: The modules, and the public names that each has.
_NAMES = {
    "elementwise":
        "abs absolute acos acosh add angle arccos arccosh arcsin arcsinh arctan arctan2 arctanh asin asinh atan "
        "atan2 atanh bitwise_and bitwise_count bitwise_invert bitwise_left_shift bitwise_not bitwise_or "
        "bitwise_right_shift bitwise_xor cbrt ceil conj conjugate copysign cos cosh deg2rad degrees divide divmod "
        "equal exp exp2 expm1 fabs float_power floor floor_divide fmax fmin fmod frexp gcd greater greater_equal "
        "heaviside hypot i0 imag invert iscomplex isfinite isinf isnan isneginf isposinf isreal lcm ldexp "
        "left_shift less less_equal log log10 log1p log2 logaddexp logaddexp2 logical_and logical_not logical_or "
        "logical_xor maximum minimum mod modf multiply negative nextafter not_equal positive pow power rad2deg "
        "radians real reciprocal remainder right_shift rint sign signbit sin sinc sinh spacing sqrt square "
        "subtract tan tanh true_divide trunc",
    "ufuncs": "frompyfunc ufunc",
    "choosing": "around choose clip fix nan_to_num packbits piecewise round select unpackbits where",
    "comparing": "allclose array_equal array_equiv isclose",
    "vectorizing": "apply_along_axis apply_over_axes fromfunction vectorize",
    "creation":
        "array asarray copy empty empty_like from_dlpack frombuffer fromfile fromiter fromstring full full_like ones "
        "ones_like zeros zeros_like",
    "ranges": "arange geomspace linspace logspace",
    "matrices": "diag diagflat eye identity tri tril triu vander",
    "grids":
        "c_ diag_indices diag_indices_from index_exp indices ix_ mask_indices meshgrid mgrid ogrid r_ "
        "ravel_multi_index s_ tril_indices tril_indices_from triu_indices triu_indices_from unravel_index",
    "types":
        "ComplexWarning astype bfloat16 bool bool_ can_cast cdouble character complex128 complex64 complex_ "
        "complexfloating csingle double dtype finfo flexible float16 float32 float4_e2m1fn float64 float8_e3m4 "
        "float8_e4m3 float8_e4m3b11fnuz float8_e4m3fn float8_e4m3fnuz float8_e5m2 float8_e5m2fnuz float8_e8m0fnu "
        "float_ floating generic iinfo inexact int16 int2 int32 int4 int64 int8 int_ integer iscomplexobj isdtype "
        "isrealobj isscalar issubdtype iterable ndarray number object_ promote_types result_type signedinteger single "
        "uint uint16 uint2 uint32 uint4 uint64 uint8 unsignedinteger",
    "constants": "e euler_gamma inf nan newaxis pi",
    "shaping":
        "atleast_1d atleast_2d atleast_3d broadcast_arrays broadcast_shapes broadcast_to expand_dims ndim ravel "
        "reshape resize shape size squeeze trim_zeros",
    "axes":
        "flip fliplr flipud matrix_transpose moveaxis permute_dims roll rollaxis rot90 swapaxes transpose",
    "joining":
        "append block column_stack concat concatenate dstack hstack stack unstack vstack",
    "splitting": "array_split dsplit hsplit split vsplit",
    "padding": "pad",
    "editing": "delete insert repeat tile",
    "files": "array_repr array_str get_printoptions load printoptions save savez set_printoptions",
    "totals":
        "all amax amin any argmax argmin average count_nonzero cumprod cumsum cumulative_prod cumulative_sum max "
        "mean min prod ptp std sum var",
    "nan_totals":
        "nanargmax nanargmin nancumprod nancumsum nanmax nanmean nanmedian nanmin nanpercentile nanprod "
        "nanquantile nanstd nansum nanvar",
    "quantiles": "median percentile quantile",
    "statistics": "bincount corrcoef cov digitize histogram histogram2d histogram_bin_edges histogramdd",
    "sorting": "argpartition argsort lexsort partition searchsorted sort sort_complex",
    "sets":
        "intersect1d isin setdiff1d setxor1d union1d unique unique_all unique_counts unique_inverse unique_values",
    "indexing":
        "argwhere compress extract fill_diagonal flatnonzero nonzero place put put_along_axis take "
        "take_along_axis",
    "differences": "diff ediff1d gradient interp trapezoid unwrap",
    "products": "cross diagonal dot inner kron matmul matvec outer tensordot trace vdot vecdot vecmat",
    "einsums": "einsum einsum_path",
    "polynomials": "poly polyadd polyder polydiv polyfit polyint polymul polysub polyval roots",
    "signals": "bartlett blackman convolve correlate hamming hanning kaiser",
    "fft": "=fft",
    "linalg": "=linalg",
    "_array_api": "__array_api_version__ __array_namespace_info__",
}

if TYPE_CHECKING:
    def __getattr__(name: str) -> Any: ...
else:
    __all__, __getattr__, __dir__ = namespace(__name__, _NAMES, hint=instead_of)
