"""The arguments with which public functions are timed, by name; and which aren't timed, and why."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import isqrt
from typing import Any

import numpy as np

MODULES = ("numpy", "numpy.linalg", "numpy.fft", "lax", "lax.linalg")

#: The arguments for a number of elements, or of rows: ndarrays and lists of them are operands, the rest is static;
#: a dict at the end has keywords.
Arguments = Callable[[int], tuple[Any, ...]]


@dataclass(frozen=True)
class Function:
    """A function of the library's own, passed as an argument."""

    name: str


@dataclass(frozen=True)
class Step:
    """A function of the user's, passed as an argument."""

    name: str


def _drawn(seed: int, low: float, high: float, *shape: int) -> np.ndarray:
    return np.random.default_rng(seed).uniform(low, high, shape).astype("f4")


def x(n: int) -> np.ndarray:
    return _drawn(0, -1.0, 1.0, n)


def y(n: int) -> np.ndarray:
    return _drawn(1, -1.0, 1.0, n)


def positive(n: int) -> np.ndarray:
    return _drawn(2, 0.1, 0.9, n)


def large(n: int) -> np.ndarray:
    return _drawn(2, 1.1, 3.0, n)


def whole(n: int, most: int = 100) -> np.ndarray:
    return np.random.default_rng(3).integers(1, most, n).astype("i4")


def mask(n: int) -> np.ndarray:
    return x(n) > 0


def matrix(n: int) -> np.ndarray:
    return x(isqrt(n) ** 2).reshape(isqrt(n), isqrt(n))


def square(side: int) -> np.ndarray:
    """Far from singular."""
    return _drawn(4, -1.0, 1.0, side, side) + 2.0 * side ** 0.5 * np.eye(side, dtype="f4")


def definite(side: int) -> np.ndarray:
    a = _drawn(5, -1.0, 1.0, side, side)
    return (a @ a.T + side * np.eye(side)).astype("f4")


def of(*make: Any) -> Arguments:
    """What these make of the size; what isn't made is static."""
    return lambda n: tuple([each(n) if callable(each) else each for each in make])


def named(names: str, *make: Any) -> dict[str, Arguments]:
    return dict.fromkeys(names.split(), of(*make))


def pair(n: int) -> list[np.ndarray]:
    return [x(n), y(n)]


def image(n: int) -> np.ndarray:
    return x(max(isqrt(n), 4) ** 2).reshape(1, 1, max(isqrt(n), 4), max(isqrt(n), 4))


def kernel(_: int) -> np.ndarray:
    return y(9).reshape(1, 1, 3, 3)


def ints_to(n: int) -> np.ndarray:
    return np.random.default_rng(6).integers(0, n, n).astype("i4")


def root(n: int) -> np.ndarray:
    return x(isqrt(n))


NUMPY: dict[str, Arguments] = {
    **named("abs absolute acos angle arccos arcsin arctan asin asinh atan arcsinh cbrt ceil conj conjugate cos "
            "cosh deg2rad degrees exp exp2 expm1 fabs fix floor frexp imag iscomplex isfinite isinf isnan "
            "isneginf isposinf isreal modf nan_to_num negative positive rad2deg radians real reciprocal rint "
            "round around sign signbit sin sinc sinh spacing square tan tanh trunc copy ravel atleast_1d "
            "atleast_2d atleast_3d asarray array squeeze zeros_like ones_like empty_like logical_not i0", x),
    **named("log log10 log1p log2 sqrt arctanh atanh", positive), **named("acosh arccosh", large),
    **named("add arctan2 atan2 copysign divide equal float_power floor_divide fmax fmin fmod greater "
            "greater_equal heaviside hypot less less_equal logaddexp logaddexp2 logical_and logical_or "
            "logical_xor maximum minimum mod multiply nextafter not_equal remainder subtract true_divide divmod "
            "isclose allclose array_equal array_equiv dot inner vdot vecdot append", x, positive),
    **named("power pow", positive, x), "ldexp": of(x, lambda n: whole(n, 4)),
    **named("bitwise_and bitwise_or bitwise_xor gcd lcm", whole, whole),
    **named("bitwise_left_shift bitwise_right_shift left_shift right_shift", whole, lambda n: whole(n, 4)),
    **named("bitwise_count bitwise_invert bitwise_not invert", whole),
    **named("all any argmax argmin amax amin max min mean sum prod std var ptp count_nonzero cumsum cumprod "
            "cumulative_sum cumulative_prod nanargmax nanargmin nancumprod nancumsum nanmax nanmean nanmin "
            "nanprod nanstd nansum nanvar average median nanmedian sort argsort diff ediff1d gradient unwrap "
            "trapezoid sort_complex flip nonzero argwhere flatnonzero unique unique_all unique_counts "
            "unique_inverse unique_values", x),
    **named("percentile nanpercentile", x, 30.0), **named("quantile nanquantile", x, 0.3),
    "digitize": of(x, lambda n: np.linspace(-1, 1, 20, dtype="f4")),
    "searchsorted": of(lambda n: np.sort(x(n)), y), "interp": of(x, lambda n: np.linspace(-1, 1, 50, dtype="f4"),
                                                                 lambda n: y(50)),
    **named("partition argpartition", x, lambda n: n // 2), "lexsort": lambda n: ([x(n), y(n)],),
    "histogram": of(x), "histogram_bin_edges": of(x), "histogram2d": of(x, y),
    "histogramdd": of(lambda n: x(2 * n).reshape(n, 2)), "bincount": of(whole), "packbits": of(mask),
    "unpackbits": of(lambda n: whole(n).astype("u1")), "where": of(mask, x, y), "clip": of(x, -0.5, 0.5),
    "select": lambda n: ([mask(n), y(n) > 0], [x(n), y(n)]), "choose": of(lambda n: whole(n, 3) - 1, pair),
    "piecewise": lambda n: (x(n), [mask(n)], [1.0, 2.0]),
    "take": of(x, ints_to), "take_along_axis": of(x, ints_to, 0), "compress": of(mask, x), "extract": of(mask, x),
    "delete": of(x, 3), "insert": of(x, 3, 1.0), "repeat": of(x, 2), "tile": of(x, 2),
    "resize": of(x, lambda n: (2 * n,)),
    "roll": of(x, 3), "rollaxis": of(matrix, 1), "moveaxis": of(matrix, 0, 1), "swapaxes": of(matrix, 0, 1),
    **named("transpose matrix_transpose fliplr flipud rot90 diagonal trace tril triu diagflat", matrix),
    "diagflat": of(root), "diag": of(root), "permute_dims": of(matrix, (1, 0)), "expand_dims": of(x, 0),
    "broadcast_to": of(x, lambda n: (3, n)), "broadcast_arrays": of(x, lambda n: x(1)), "reshape": of(x, (2, -1)),
    **named("concatenate concat stack hstack vstack dstack column_stack", pair), "block": of(pair),
    **named("split array_split hsplit", x, 2), "vsplit": of(matrix, 1), "unstack": of(lambda n: x(n).reshape(2, -1)),
    "dsplit": of(lambda n: x(n).reshape(1, 2, -1), 2), "pad": of(x, 2), "trim_zeros": of(x), "astype": of(x, "i4"),
    **named("outer", root, root), "kron": of(lambda n: x(isqrt(n)), lambda n: x(isqrt(n))),
    "cross": of(lambda n: x(n // 3 * 3).reshape(-1, 3), lambda n: y(n // 3 * 3).reshape(-1, 3)),
    "matmul": of(matrix, matrix), "matvec": of(matrix, root), "vecmat": of(root, matrix),
    "tensordot": of(matrix, matrix, 1), "einsum": of("ij,jk->ik", matrix, matrix),
    "convolve": of(x, lambda n: y(5)), "correlate": of(x, lambda n: y(5)), "cov": of(lambda n: x(n).reshape(4, -1)),
    "corrcoef": of(lambda n: x(n).reshape(4, -1)), "fill_diagonal": of(matrix, 1.0, {"inplace": False}),
    "intersect1d": of(whole, whole), "isin": of(whole, lambda n: whole(10)), "setdiff1d": of(whole, whole),
    "setxor1d": of(whole, whole), "union1d": of(whole, whole),
    "polyval": of(lambda n: x(5), x), "polyadd": of(x, y), "polysub": of(x, y), "polyder": of(x), "polyint": of(x),
    "polymul": of(root, root), "polydiv": of(lambda n: x(min(n, 1000)), lambda n: large(3)),
    "polyfit": of(x, y, 2), "poly": of(lambda n: x(min(n, 100))), "roots": of(lambda n: large(min(n, 50))),
    "vander": of(lambda n: x(n // 4), 4), "ravel_multi_index": lambda n: ([whole(n, 9), whole(n, 9)], (10, 10)),
    "unravel_index": of(lambda n: whole(n, 99), (10, 10)),
    "ix_": of(lambda n: whole(isqrt(n)), lambda n: whole(isqrt(n))),
    "meshgrid": of(root, root), "put": of(x, lambda n: whole(5, 8), 1.0, {"mode": "clip", "inplace": False}),
    "put_along_axis": of(x, ints_to, 1.0, 0, {"inplace": False}), "full_like": of(x, 2.0),
    "apply_along_axis": lambda n: (Function("sum"), 0, x(n).reshape(2, -1)),
    "apply_over_axes": lambda n: (Function("sum"), x(n).reshape(2, -1), (0, 1)),
    **named("zeros ones empty", lambda n: n), "full": of(lambda n: n, 2.0), "arange": of(lambda n: n),
    "linspace": of(0.0, 1.0, lambda n: n), "logspace": of(0.0, 1.0, lambda n: n),
    "geomspace": of(1.0, 9.0, lambda n: n),
    **named("eye identity tri", isqrt), **named("bartlett blackman hamming hanning", lambda n: n),
    "kaiser": of(lambda n: n, 2.0), "indices": lambda n: ((isqrt(n), isqrt(n)),),
    **named("tril_indices triu_indices diag_indices", isqrt),
    **named("tril_indices_from triu_indices_from diag_indices_from", matrix)}

LINALG: dict[str, Arguments] = {
    **named("det inv eig eigvals pinv qr slogdet svd svdvals cond matrix_norm matrix_rank norm matrix_transpose "
            "diagonal trace", square),
    **named("cholesky eigh eigvalsh", definite), **named("solve", square, x), "lstsq": of(square, x),
    "matmul": of(square, square), "matrix_power": of(square, 3), "multi_dot": lambda n: ([square(n)] * 3,),
    "vector_norm": of(x), "vecdot": of(square, square), "outer": of(x, y), "tensordot": of(square, square, {"axes": 1}),
    "cross": of(lambda n: x(3 * n).reshape(n, 3), lambda n: y(3 * n).reshape(n, 3)),
    "tensorinv": of(lambda n: square(n).reshape(n, 1, n), 2), "tensorsolve": of(square, x)}

FFT: dict[str, Arguments] = {
    **named("fft ifft rfft fftshift ifftshift", x), **named("irfft hfft", x), "ihfft": of(x),
    **named("fft2 ifft2 rfft2 irfft2 fftn ifftn rfftn irfftn", matrix), **named("fftfreq rfftfreq", lambda n: n)}

LAX: dict[str, Arguments] = {
    **named("abs acos asin asinh atan ceil cos cosh cbrt digamma erf erfc exp exp2 expm1 floor is_finite lgamma "
            "log1p logistic neg round sign sin sinh softplus square tan tanh bessel_i0e bessel_i1e reciprocal "
            "copy stop_gradient sort cumsum cumprod cummax cummin cumlogsumexp", positive),
    **named("real imag conj", lambda n: x(n).astype("c8")),
    **named("log sqrt rsqrt erf_inv atanh", positive), "acosh": of(large),
    **named("add atan2 div eq eq_to ge gt le le_to lt lt_to max min mul ne nextafter pow rem sub complex igamma "
            "igammac igamma_grad_a random_gamma_grad dot", positive, positive),
    "zeta": of(large, positive), "polygamma": of(lambda n: np.ones(n, "f4"), positive),
    **named("betainc regularized_incomplete_beta", positive, positive, positive),
    **named("and bitwise_and or bitwise_or xor bitwise_xor mulhi", whole, whole),
    **named("not bitwise_not clz population_count", whole),
    **named("shift_left shift_right_arithmetic shift_right_logical", whole, lambda n: whole(n, 4)),
    "integer_pow": of(x, 3), "clamp": of(lambda n: np.float32(-0.5), x, lambda n: np.float32(0.5)),
    **named("select", mask, x, y), "select_n": of(mask, x, y), "argmax": of(x, 0, "i4"), "argmin": of(x, 0, "i4"),
    **named("reduce_max reduce_min reduce_prod reduce_sum", x, (0,)), **named("reduce_and reduce_or", mask, (0,)),
    "reduce_xor": of(whole, (0,)), "reduce_precision": of(x, 5, 10), "top_k": of(x, 5),
    **named("approx_max_k approx_min_k", x, 5), "sort_key_val": of(x, y),
    "convert_element_type": of(x, "i4"), "bitcast_convert_type": of(x, "i4"),
    "broadcast": of(x, (3,)), "broadcast_in_dim": of(x, lambda n: (3, n), (1,)), "broadcast_to_rank": of(x, 2),
    "broadcast_like": of(x, y), "collapse": of(matrix, 0, 2), "concatenate": of(pair, 0), "stack": of(pair),
    "unstack": of(lambda n: x(n).reshape(2, -1)), "split": of(x, lambda n: (n // 2, n - n // 2)),
    "expand_dims": of(x, (0,)), "squeeze": of(lambda n: x(n).reshape(1, n), (0,)),
    "reshape": of(x, lambda n: (2, n // 2)),
    "rev": of(x, (0,)), "tile": of(x, (2,)), "transpose": of(matrix, (1, 0)),
    "pad": of(x, lambda n: np.float32(0), [(1, 1, 0)]), "slice": of(x, (1,), lambda n: (n - 1,)),
    "slice_in_dim": of(x, 1, 5), "index_in_dim": of(x, 3), "dynamic_slice": of(x, lambda n: [np.int32(2)], (4,)),
    "dynamic_slice_in_dim": of(x, lambda n: np.int32(2), 4), "dynamic_index_in_dim": of(x, lambda n: np.int32(2)),
    "dynamic_update_slice": of(x, lambda n: y(4), lambda n: [np.int32(2)]),
    "dynamic_update_slice_in_dim": of(x, lambda n: y(4), lambda n: np.int32(2), 0),
    "dynamic_update_index_in_dim": of(x, lambda n: np.float32(2), lambda n: np.int32(2), 0),
    "index_take": lambda n: (x(n), [ints_to(n)], (0,)), "iota": of("f4", lambda n: n),
    "broadcasted_iota": of("f4", lambda n: (n,), 0), "full": of(lambda n: (n,), 2.0), "full_like": of(x, 2.0),
    "empty": of(lambda n: (n,), "f4"), "batch_matmul": of(lambda n: matrix(n)[None], lambda n: matrix(n)[None]),
    "dot_general": of(matrix, matrix, (((1,), (0,)), ((), ()))),
    "conv": of(image, kernel, (1, 1), "SAME"), "conv_general_dilated": of(image, kernel, (1, 1), "SAME"),
    "conv_with_general_padding": of(image, kernel, (1, 1), [(1, 1), (1, 1)], (1, 1), (1, 1)),
    "conv_general_dilated_patches": of(image, (3, 3), (1, 1), "SAME"),
    "conv_transpose": of(lambda n: image(n).transpose(0, 2, 3, 1), lambda n: kernel(n).transpose(2, 3, 0, 1), (1, 1),
                         "SAME"),
    "fft": of(lambda n: x(n).astype("c8"), "FFT", lambda n: (n,)), "optimization_barrier": of(x),
    "associative_scan": lambda n: (Function("add"), x(n)), "map": lambda n: (Function("sin"), x(min(n, 1000))),
    "fori_loop": lambda n: (0, 100, Step("fori"), x(n)),
    "while_loop": lambda n: (Step("below"), Step("twice"), positive(n)),
    "scan": lambda n: (Step("carry"), np.float32(0.5), x(min(n, 10_000))),
    "cond": lambda n: (np.bool_(True), Function("sin"), Function("cos"), x(n)),
    "switch": lambda n: (np.int32(1), [Function("sin"), Function("cos")], x(n)),
    "reduce": lambda n: (x(n), np.float32(0), Function("add"), (0,)),
    "reduce_window": lambda n: (x(n), np.float32(0), Function("add"), (4,), (1,), "SAME"),
    "linear_recurrence": of(positive, x)}

LAX_LINALG: dict[str, Arguments] = {
    **named("cholesky eigh symmetric_product", definite), **named("eig lu qr svd schur hessenberg qdwh", square),
    "cholesky_update": of(lambda n: np.linalg.cholesky(definite(n)).T.copy(), x),
    "householder_product": of(square, x), "tridiagonal": of(definite), "lu_pivots_to_permutation": of(
        lambda n: np.arange(n, dtype="i4"), lambda n: n), "symmetric_product": of(square, square),
    "triangular_solve": of(square, square), "tridiagonal_solve": of(x, large, y, lambda n: x(n).reshape(n, 1))}

ARGUMENTS = {f"{module}.{name}": make for module, functions in zip(
    MODULES, (NUMPY, LINALG, FFT, LAX, LAX_LINALG), strict=True) for name, make in functions.items()}

#: The shapes of their results depend on values, or what is refused does.
EAGER_ONLY = frozenset([f"numpy.{name}" for name in """nonzero argwhere flatnonzero unique unique_all unique_counts
    unique_inverse unique_values bincount choose compress extract trim_zeros intersect1d setdiff1d setxor1d union1d
    roots ravel_multi_index""".split()])

#: What isn't timed, by the reason.
NOT_TIMED: dict[str, str] = {
    "it computes nothing from arrays": """numpy.array_repr numpy.array_str numpy.broadcast_shapes numpy.can_cast
        numpy.einsum_path numpy.finfo numpy.get_printoptions numpy.iinfo numpy.iscomplexobj numpy.isdtype
        numpy.isrealobj numpy.isscalar numpy.issubdtype numpy.iterable numpy.ndim numpy.printoptions
        numpy.promote_types numpy.result_type numpy.set_printoptions numpy.shape numpy.size lax.broadcast_shapes
        lax.dtype lax.conv_dimension_numbers lax.conv_general_permutations lax.conv_general_shape_tuple
        lax.conv_shape_tuple lax.conv_transpose_shape_tuple lax.padtype_to_pads lax.reduce_window_shape_tuple
        lax.shape_as_value lax.ConvGeneralDilatedDimensionNumbers lax.DotDimensionNumbers lax.PrecisionLike""",
    "it reads or writes files or other libraries' memory": """numpy.from_dlpack numpy.frombuffer numpy.fromfile
        numpy.fromiter numpy.fromstring numpy.load numpy.save numpy.savez""",
    "it makes a function, or calls one of the user's": """numpy.frompyfunc numpy.fromfunction numpy.vectorize
        numpy.mask_indices lax.bounded_while_loop lax.composite lax.custom_linear_solve lax.custom_root lax.linear_call
        lax.debug_callback lax.io_callback lax.platform_dependent lax.pure_callback""",
    "it changes an ndarray in place": "numpy.place",
    "it is what a function of corejax.nn computes with": """lax.nn_attention lax.nn_attention_back
        lax.nn_attention_forward lax.nn_gelu_tanh lax.nn_hard_sigmoid lax.nn_hard_silu lax.nn_hard_tanh
        lax.nn_log1mexp lax.nn_mish lax.nn_relu lax.nn_relu6 lax.nn_selu lax.nn_silu lax.nn_soft_sign lax.nn_softplus
        lax.nn_sparse_plus lax.nn_sparse_sigmoid""",
    "it is a step of corejax.random's functions, which benchmarks.random_rows times": """lax.philox4x32
        lax.random_bits lax.random_clone lax.random_erf lax.random_erf_inv lax.random_fold_in lax.random_gamma
        lax.random_lgamma lax.random_log1p lax.random_seed lax.random_split lax.random_unwrap lax.random_wrap
        lax.threefry2x32""",
    "it works on several devices, or on values mapped along an axis": """lax.all_gather lax.all_gather_invariant
        lax.all_to_all lax.axis_index lax.axis_size lax.pbroadcast lax.pcast lax.pmax lax.pmean lax.pmin lax.ppermute
        lax.precv lax.psend lax.pshuffle lax.psum lax.psum_invariant lax.psum_scatter lax.pswapaxes
        lax.ragged_all_to_all lax.reduce_scatter lax.shard_map lax.sharding_constraint lax.with_sharding_constraint
        lax.xla_pmap""",
    "a primitive behind other functions, which are timed": """
        lax.approx_top_k lax.check lax.checkpoint_call lax.checkpoint_name lax.checkpointed_scan lax.composite_call
        lax.counted_scan lax.custom_call lax.custom_fwd_call lax.custom_pullback lax.custom_vmap_call lax.dce_sink
        lax.exported_call lax.reduce_window_max lax.reduce_window_min lax.reduce_window_sum lax.segmented_scan
        lax.select_and_gather_add lax.select_and_scatter lax.select_and_scatter_add lax.stage lax.stage_value
        lax.to_memory lax.untaken lax.with_accuracy lax.xla_call""",
    "its arguments are descriptions of many dimensions: what uses it is timed": """lax.gather lax.scatter
        lax.scatter_add lax.scatter_apply lax.scatter_max lax.scatter_min lax.scatter_mul lax.scatter_sub
        lax.conv_general_dilated_local lax.ragged_dot lax.ragged_dot_general lax.scaled_dot lax.after_all
        lax.create_token""",
    "random numbers": "lax.rng_bit_generator lax.rng_uniform",
    "of another function's results": "lax.linalg.ormqr"}

_NUMPY = "NumPy computes it, in one thread and without compiling: what is small takes a few µs"
_ACCURATE = "right to a few units in the last place, where the compiler's own loses many"
_DOUBLE = "64-bit floats, like NumPy's, where JAX's are 32 bits wide"
_SAME_PROGRAM = "XLA makes the very same program of JAX's: what differs is the memory that it gets, and chance"
_IN_RANGE = "numbers out of range become the nearest one, and NaN 0, where NumPy gives anything"

#: Functions that are slower than JAX's eagerly, and why, where NumPy's own time and the number of operations don't say.
REASONS: dict[str, str] = {
    **{f"numpy.{name}": _NUMPY for name in """where select logical_and logical_or logical_xor logical_not heaviside
       nan_to_num cross isreal iscomplex std var prod cumprod interp searchsorted spacing nextafter isclose allclose
       deg2rad rad2deg degrees radians fabs isin logaddexp logaddexp2 float_power hypot trapezoid tile broadcast_to diag
       histogram2d polyfit linalg.cross""".split()},
    **{f"lax.{name}": _NUMPY for name in """fft select select_n clz round sign nextafter mulhi iota tile reduce_prod
       broadcasted_iota reduce_window logistic reduce_precision complex integer_pow population_count top_k approx_max_k
       broadcast clamp""".split()},
    "numpy.astype": _IN_RANGE,
    **{f"lax.{name}": _ACCURATE for name in "erf erfc erf_inv igamma igammac zeta polygamma betainc".split()}}

#: The same of compiled functions.
REASONS_COMPILED: dict[str, str] = {
    **{f"{module}.{name}": _ACCURATE for module, names in (
        ("lax", "acosh asinh atanh cbrt exp2 erf erfc erf_inv igamma igammac zeta polygamma betainc"),
        ("numpy", "acosh arccosh asinh arcsinh atanh arctanh cbrt exp2 logaddexp logaddexp2"))
       for name in names.split()},
    **{f"numpy.{name}": _DOUBLE for name in ("tri", "float_power")},
    **{f"{module}.{name}": _SAME_PROGRAM for module, names in (
        ("lax", "log1p complex conj is_finite imag abs bitwise_or broadcast_like"),
        ("numpy", "roll fft.rfftn fft.rfft2 cosh linalg.outer linalg.matmul reciprocal correlate"))
       for name in names.split()},
    "numpy.vander": "products, one after the other, as NumPy's: JAX's are powers",
    "numpy.trapezoid": "the ends are added, not taken from the sum of all: an infinite one doesn't make NaN"}

#: Where nothing else is said of a compiled function of few elements.
CALL = "the call: some 0.8 µs of Python beside JAX's C++"
#: Where NumPy's own function takes as long.
NUMPYS_TIME = "NumPy's own function takes as long: one thread, and memory for each operation's result"
#: Where nothing else is said of an eager call that takes little time.
SEVERAL = "several operations, each started by Python, where JAX starts one program"

STEPS: dict[str, Callable[..., Any]] = {
    "fori": lambda i, x: x * 0.9 + 0.1, "below": lambda x: x[0] < 100.0, "twice": lambda x: x * 2.0,
    "carry": lambda c, x: (c * 0.9 + x, c)}
