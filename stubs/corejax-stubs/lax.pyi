# Written by `python -m corejax stubs`: don't edit it.

"""Everything that the installed packs provide, by name."""

import numpy
from collections.abc import Callable, Sequence
from corejax.core import Array, ArrayLike, DTypeLike, Jaxpr
from corejax_control_flow.call import Flags
from corejax_control_flow.conditional import Result
from corejax_control_flow.scanning import Carry, Stacked
from corejax_lax_basic._placing import GatherDimensionNumbers as GatherDimensionNumbers, ScatterDimensionNumbers as ScatterDimensionNumbers
from corejax_lax_basic.identity import Tree
from corejax_lax_basic.linear_algebra import Contraction
from corejax_lax_basic.rounding import RoundingMethod as RoundingMethod
from typing import Any, overload

def abs(x: ArrayLike) -> Array:
    """The absolute value; real for complex x. Its derivative at 0 counts as 1, or 0 for complex x.

    >>> abs(np.array([3.0, -4.0])).tolist()
    [3.0, 4.0]
    """

def acos(x: ArrayLike) -> Array:
    """The inverse of the cosine, from 0 to pi.

    >>> acos(0.5)
    Array(1.04719755, dtype=float64, weak_type=True)
    """

def add(x: ArrayLike, y: ArrayLike) -> Array:
    """The sum x + y.

    >>> add(np.array([1.0, 2.0]), 0.5).tolist()
    [1.5, 2.5]
    """

def approx_max_k(operand: ArrayLike, k: int, reduction_dimension: int = -1, recall_target: float = 0.95, reduction_input_size_override: int = -1, aggregate_to_topk: bool = True) -> tuple[Array, Array]:
    """`approx_max_k(operand, k, reduction_dimension=-1, recall_target=0.95, ...)`: the k largest floats, or nearly.

    At least the share `recall_target` of them are among the results; here all are, on every platform, so this is
    `top_k`. Without `aggregate_to_topk` there are more results than k: as many as an approximation on a TPU needs,
    which depends on `reduction_input_size_override`, the size of the whole where the operand is a part of it.

    >>> values, places = approx_max_k(np.array([9.0, 3.0, 6.0, 10.0]), 2)
    >>> values.tolist(), places.tolist()
    ([10.0, 9.0], [3, 0])
    """

def approx_min_k(operand: ArrayLike, k: int, reduction_dimension: int = -1, recall_target: float = 0.95, reduction_input_size_override: int = -1, aggregate_to_topk: bool = True) -> tuple[Array, Array]:
    """`approx_min_k(operand, k, reduction_dimension=-1, recall_target=0.95, ...)`: the k smallest floats, or nearly.

    The results rise; NaN comes last. As for the rest, see `approx_max_k`.

    >>> values, places = approx_min_k(np.array([9.0, 3.0, 6.0, 10.0]), 2)
    >>> values.tolist(), places.tolist()
    ([3.0, 6.0], [1, 2])
    """

def argmax(operand: ArrayLike, axis: int, index_dtype: DTypeLike | None = None) -> Array:
    """`argmax(operand, axis, index_dtype)`: the position of the largest element along an axis; NaN counts as largest.

    Among equal elements, it is the first. By default, `index_dtype` is the default integer dtype.

    >>> int(lax.argmax(np.array([1.0, 3.0, 2.0]), 0, np.int32))
    1
    """

def argmin(operand: ArrayLike, axis: int, index_dtype: DTypeLike | None = None) -> Array:
    """`argmin(operand, axis, index_dtype)`: the position of the smallest element along an axis; NaN counts as smallest.

    Among equal elements, it is the first. By default, `index_dtype` is the default integer dtype.

    >>> int(lax.argmin(np.array([1.0, 3.0, 2.0]), 0, np.int32))
    0
    """

def asin(x: ArrayLike) -> Array:
    """The inverse of the sine, from -pi/2 to pi/2.

    >>> asin(0.5)
    Array(0.52359878, dtype=float64, weak_type=True)
    """

def atan(x: ArrayLike) -> Array:
    """The inverse of the tangent, from -pi/2 to pi/2.

    >>> atan(0.5)
    Array(0.46364761, dtype=float64, weak_type=True)
    """

def atan2(x: ArrayLike, y: ArrayLike) -> Array:
    """The angle, from -pi to pi, of the point whose ordinate is x and whose abscissa is y.

    >>> atan2(1.0, 1.0)
    Array(0.78539816, dtype=float64, weak_type=True)
    """

def batch_matmul(lhs: ArrayLike, rhs: ArrayLike, precision: object | None = None) -> Array:
    """Matrix products along equal leading axes: `(..., n, k)` and `(..., k, m)` give `(..., n, m)`.

    >>> batch_matmul(np.ones((5, 2, 3)), np.ones((5, 3, 4))).shape
    (5, 2, 4)
    """

def bessel_i0e(x: ArrayLike) -> Array:
    """exp(-|x|) I_0(x), with I_0 the modified Bessel function of the first kind of order 0.

    >>> bessel_i0e(1.0)
    Array(0.46575961, dtype=float64, weak_type=True)
    """

def bessel_i1e(x: ArrayLike) -> Array:
    """exp(-|x|) I_1(x), with I_1 the modified Bessel function of the first kind of order 1.

    >>> bessel_i1e(1.0)
    Array(0.20791042, dtype=float64, weak_type=True)
    """

def bitwise_and(x: ArrayLike, y: ArrayLike) -> Array:
    """x and y.

    >>> bitwise_and(6, 3).item()
    2
    """

def bitwise_not(x: ArrayLike) -> Array:
    """Not x.

    >>> bitwise_not(6).item()
    -7
    """

def bitwise_or(x: ArrayLike, y: ArrayLike) -> Array:
    """x or y.

    >>> bitwise_or(6, 3).item()
    7
    """

def bitwise_xor(x: ArrayLike, y: ArrayLike) -> Array:
    """x or else y.

    >>> bitwise_xor(6, 3).item()
    5
    """

def broadcast(operand: ArrayLike, sizes: Sequence[int]) -> Array:
    """Repeat the operand along new leading axes of these sizes.

    >>> broadcast(np.arange(2), (3,)).tolist()
    [[0, 1], [0, 1], [0, 1]]
    """

def broadcast_in_dim(operand: ArrayLike, shape: Sequence[int], broadcast_dimensions: Sequence[int]) -> Array:
    """`broadcast_in_dim(operand, shape, broadcast_dimensions)`: repeat along new axes and along axes of size 1.

    Axis i of the operand becomes axis `broadcast_dimensions[i]` of the result.

    >>> lax.broadcast_in_dim(np.arange(3.0), (2, 3), (1,)).tolist()
    [[0.0, 1.0, 2.0], [0.0, 1.0, 2.0]]
    """

def broadcasted_iota(dtype: DTypeLike, shape: Sequence[int], dimension: int) -> Array:
    """An array of this shape, with each element's index along `dimension`.

    >>> broadcasted_iota(np.int32, (2, 3), 1).tolist()
    [[0, 1, 2], [0, 1, 2]]
    """

def ceil(x: ArrayLike) -> Array:
    """The smallest integer not less than x.

    >>> ceil(np.array([1.5, -1.5])).tolist()
    [2.0, -1.0]
    """

def checkpoint_call(*operands: ArrayLike, jaxpr: Jaxpr, prevent_cse: bool = True, differentiated: bool = False) -> list[Array]:
    """`checkpoint_call(*operands, jaxpr=..., prevent_cse=True, differentiated=False)`: call a jaxpr, recomputed.

    The jaxpr has no constvars. `differentiated` marks a call that computes values a second time; `prevent_cse` keeps
    the compiler from noticing that they were computed before.

    >>> staged = stage(lambda x: [x + 1.0], [ShapedArray((), "float64")])
    >>> checkpoint_call(np.float64(2.0), jaxpr=staged.jaxpr)
    [Array(3., dtype=float64)]
    """

def clamp(min: ArrayLike, x: ArrayLike, max: ArrayLike) -> Array:
    """`clamp(min, x, max)`: x limited to the bounds, which may be scalars; `max` wins if they cross.

    >>> clamp(0.0, np.array([-1.0, 0.5, 2.0]), 1.0).tolist()
    [0.0, 0.5, 1.0]
    """

def collapse(operand: ArrayLike, start_dimension: int, stop_dimension: int | None = None) -> Array:
    """The operand with the axes from `start_dimension` up to `stop_dimension` merged into one.

    >>> collapse(np.ones((2, 3, 4)), 0, 2).shape
    (6, 4)
    """

def complex(x: ArrayLike, y: ArrayLike) -> Array:
    """The complex numbers x + iy, from two float32 or float64 arrays.

    >>> complex(1.0, 2.0).item()
    (1+2j)
    """

def concatenate(operands: Sequence[ArrayLike] | ArrayLike, dimension: int) -> Array:
    """`concatenate(operands, dimension)`: arrays one after the other along an axis.

    >>> lax.concatenate([np.zeros(2), np.ones(1)], 0).tolist()
    [0.0, 0.0, 1.0]
    """

def cond(pred: ArrayLike, true_fun: Callable[..., Result], false_fun: Callable[..., Result], *operands: Any, operand: Any = ...) -> Result:
    """`cond(pred, true_fun, false_fun, *operands)`: `true_fun(*operands)` if `pred` holds, else `false_fun(*operands)`.

    The predicate is a boolean, or a number that counts as one. Both functions return pytrees of the same structure,
    with arrays of the same types; both are traced, one is run. They may close over arrays. Under `vmap` with a
    batched predicate, both are run and the results are selected.

    >>> lax.cond(True, lambda x: x + 1.0, lambda x: x - 1.0, 5.0).item()
    6.0
    """

def conj(x: ArrayLike) -> Array:
    """The complex conjugate; complex even for real operands.

    >>> conj(np.array([1 + 2j])).tolist()
    [(1-2j)]
    """

def convert_element_type(operand: ArrayLike, new_dtype: DTypeLike) -> Array:
    """`convert_element_type(operand, new_dtype)`: the same numbers in another dtype, as far as it can hold them.

    >>> convert_element_type(np.array([1.9, -1.9, np.nan, 300.0]), np.int8).tolist()
    [1, -1, 0, 127]
    """

def copy(x: ArrayLike, /) -> Array:
    """`copy(x)`: the same values in new memory.

    >>> copy(np.arange(3)).tolist()
    [0, 1, 2]
    """

def cos(x: ArrayLike) -> Array:
    """The cosine.

    >>> cos(0.5)
    Array(0.87758256, dtype=float64, weak_type=True)
    """

def cosh(x: ArrayLike) -> Array:
    """The hyperbolic cosine.

    >>> cosh(0.5)
    Array(1.12762597, dtype=float64, weak_type=True)
    """

def cumsum(operand: ArrayLike, axis: int = 0, reverse: bool = False) -> Array:
    """`cumsum(operand, axis=0, reverse=False)`: element i is the sum of elements 0 to i, or i to the end if `reverse`.

    Floats narrower than 32 bits accumulate in float32.

    >>> lax.cumsum(np.array([1.0, 2.0, 3.0])).tolist()
    [1.0, 3.0, 6.0]
    """

def custom_call(*operands: ArrayLike, call: Any, jaxpr: Jaxpr | None) -> list[Array]:
    """`custom_call(*operands, call=..., jaxpr=...)`: call a function that has custom derivatives.

    `call` holds its rules. `jaxpr` is its program, whose first `call.n_consts` operands are values that it closes over;
    None if the Python function itself is run.

    >>> sample = next(custom_call.primitive.samples(np.random.default_rng(0)))
    >>> len(custom_call(*sample.args, **sample.params))
    2
    """

def custom_pullback(*values: ArrayLike, pullback: Any, nonzero: tuple[bool, ...]) -> list[Array]:
    """`custom_pullback(*residuals, *primals, *tangents, pullback=..., nonzero=...)`: waits for cotangents on a tape.

    It maps tangents of inputs, those that are `nonzero`, to tangents of outputs. Its transpose is the bwd rule. Only if
    there is a jvp rule too does it take primals, and can be computed forward.

    >>> sample = next(custom_pullback.primitive.samples(np.random.default_rng(0)))
    >>> len(custom_pullback(*sample.args, **sample.params))
    1
    """

def digamma(x: ArrayLike) -> Array:
    """The derivative of lgamma. It is NaN at 0, -1, -2, and so on.

    >>> digamma(1.0)
    Array(-0.57721566, dtype=float64, weak_type=True)
    """

def div(x: ArrayLike, y: ArrayLike) -> Array:
    """The quotient x / y; for integers, rounded towards zero.

    >>> div(np.array([7, -7]), 2).tolist()
    [3, -3]
    """

def dot(lhs: ArrayLike, rhs: ArrayLike, *, dimension_numbers: Contraction | None = None, precision: object | None = None, preferred_element_type: DTypeLike | None = None) -> Array:
    """The product of vectors and matrices; with `dimension_numbers`, the same as `dot_general`.

    >>> dot(np.ones((2, 3)), np.ones(3)).tolist()
    [3.0, 3.0]
    """

def dot_general(lhs: ArrayLike, rhs: ArrayLike, dimension_numbers: Contraction, precision: object | None = None, preferred_element_type: DTypeLike | None = None) -> Array:
    """`dot_general(lhs, rhs, dimension_numbers, precision=None, preferred_element_type=None)`: contract two arrays.

    `dimension_numbers` is `((lhs contracting, rhs contracting), (lhs batch, rhs batch))`. The result's axes are the
    batch axes, then lhs's others, then rhs's. Accumulates in, and returns, `preferred_element_type` if given.

    >>> lax.dot_general(np.ones((2, 3)), np.ones((3, 4)), (((1,), (0,)), ((), ()))).shape
    (2, 4)
    """

def dynamic_index_in_dim(operand: ArrayLike, index: ArrayLike, axis: int = 0, keepdims: bool = True, *, allow_negative_indices: bool = True) -> Array:
    """The slice at a computed index along one axis, with or without that axis.

    >>> dynamic_index_in_dim(np.arange(5), np.int32(2), keepdims=False).tolist()
    2
    """

def dynamic_slice(operand: ArrayLike, start_indices: Sequence[ArrayLike] | ArrayLike, slice_sizes: Sequence[int], *, allow_negative_indices: bool | Sequence[bool] = True) -> Array:
    """`dynamic_slice(operand, start_indices, slice_sizes)`: a part of static size that starts at computed indices.

    A negative start counts from the end; then starts are clamped so that the part is within the operand.

    >>> lax.dynamic_slice(np.arange(5), (np.int32(9),), (2,)).tolist()
    [3, 4]
    """

def dynamic_slice_in_dim(operand: ArrayLike, start_index: ArrayLike, slice_size: int, axis: int = 0, *, allow_negative_indices: bool = True) -> Array:
    """`slice_size` elements along one axis, from a computed start.

    >>> dynamic_slice_in_dim(np.arange(5), np.int32(2), 2).tolist()
    [2, 3]
    """

def dynamic_update_index_in_dim(operand: ArrayLike, update: ArrayLike, index: ArrayLike, axis: int, *, allow_negative_indices: bool = True) -> Array:
    """The operand with the slice at a computed index along one axis replaced.

    >>> dynamic_update_index_in_dim(np.arange(3), np.int64(9), np.int32(1), 0).tolist()
    [0, 9, 2]
    """

def dynamic_update_slice(operand: ArrayLike, update: ArrayLike, start_indices: Sequence[ArrayLike] | ArrayLike, *, allow_negative_indices: bool | Sequence[bool] = True) -> Array:
    """`dynamic_update_slice(operand, update, start_indices)`: the operand with a part replaced.

    The part's position is determined as in `dynamic_slice`.

    >>> lax.dynamic_update_slice(np.zeros(4), np.ones(2), (np.int32(1),)).tolist()
    [0.0, 1.0, 1.0, 0.0]
    """

def dynamic_update_slice_in_dim(operand: ArrayLike, update: ArrayLike, start_index: ArrayLike, axis: int, *, allow_negative_indices: bool = True) -> Array:
    """The operand with a part along one axis replaced, from a computed start.

    >>> dynamic_update_slice_in_dim(np.arange(4), np.array([8, 9]), np.int32(1), 0).tolist()
    [0, 8, 9, 3]
    """

def eq(x: ArrayLike, y: ArrayLike) -> Array:
    """Is x == y?

    >>> eq(np.array([1, 2, 3]), 2).tolist()
    [False, True, False]
    """

def erf(x: ArrayLike) -> Array:
    """The error function: the integral of 2 / sqrt(pi) exp(-t * t) from 0 to x.

    >>> erf(0.5)
    Array(0.52049988, dtype=float64, weak_type=True)
    """

def erf_inv(x: ArrayLike) -> Array:
    """The inverse of erf: infinite at 1 and -1, NaN beyond.

    >>> erf_inv(0.5)
    Array(0.47693628, dtype=float64, weak_type=True)
    """

def erfc(x: ArrayLike) -> Array:
    """1 - erf(x), which has all its digits for large x, too.

    >>> erfc(5.0)
    Array(1.53745979e-12, dtype=float64, weak_type=True)
    """

def exp(x: ArrayLike) -> Array:
    """e to the power of x.

    >>> exp(0.5)
    Array(1.64872127, dtype=float64, weak_type=True)
    """

def expand_dims(array: ArrayLike, dimensions: Sequence[int]) -> Array:
    """The array with new axes of size 1 at these positions of the result; negative ones count from the end.

    >>> expand_dims(np.ones(3), (0, -1)).shape
    (1, 3, 1)
    """

def expm1(x: ArrayLike) -> Array:
    """exp(x) - 1, accurate even near 0.

    >>> expm1(0.5)
    Array(0.64872127, dtype=float64, weak_type=True)
    """

def exported_call(*operands: ArrayLike, program: Any) -> list[Array]:
    """`exported_call(*args, program=...)`: call a program that was made elsewhere.

    `program` has a `name`, `in_avals`, `out_avals`, a `__corejax_key__`, and `lower(ctx, args)`, which adds the call to
    a module and returns its results.

    >>> from corejax import export, jit
    >>> program = export.export(jit(lambda x: x + 1.0))(2.0)
    >>> program.call(2.0)
    Array(3., dtype=float64, weak_type=True)
    """

def floor(x: ArrayLike) -> Array:
    """The largest integer not greater than x.

    >>> floor(np.array([1.5, -1.5])).tolist()
    [1.0, -2.0]
    """

def fori_loop(lower: ArrayLike, upper: ArrayLike, body_fun: Callable[[Any, Any], Carry], init_val: Any, *, unroll: int | bool | None = None) -> Carry:
    """Start with `val = init_val`, run `val = body_fun(i, val)` for each `i` in `range(lower, upper)`, return `val`.

    `val` is a pytree of arrays that keeps its structure and types. Bounds may also be floats: `i` then counts up by 1
    from `lower`. Between integers that are known at trace time, the loop is a `scan`: it has a reverse mode, and
    `unroll` steps are compiled into each round. Otherwise it is a `while_loop`.

    >>> lax.fori_loop(0, 5, lambda i, total: total + i, 0)
    Array(10, dtype=int64, weak_type=True)
    """

def full(shape: Sequence[int], fill_value: ArrayLike, dtype: DTypeLike | None = None) -> Array:
    """An array filled with the scalar `fill_value`; by default, of the fill value's type.

    >>> full((2,), 7, np.float32).dtype.name
    'float32'
    """

def full_like(x: Any, fill_value: ArrayLike, dtype: DTypeLike | None = None, shape: Sequence[int] | None = None) -> Array:
    """An array filled with `fill_value`, with the dtype and shape of `x` unless they are given.

    >>> full_like(np.zeros(2, np.float32), 7)
    Array([7., 7.], dtype=float32)
    """

def gather(operand: ArrayLike, start_indices: ArrayLike, dimension_numbers: GatherDimensionNumbers, slice_sizes: Sequence[int], *, unique_indices: bool = False, indices_are_sorted: bool = False, mode: str | None = None, fill_value: ArrayLike | None = None) -> Array:
    """`gather(operand, start_indices, dimension_numbers, slice_sizes, ...)`: one window for each index vector.

    `mode` says what happens to windows out of bounds: "clip", the default, moves them inside, "fill" gives
    `fill_value`, "promise_in_bounds" says that there are none.

    >>> numbers = GatherDimensionNumbers(offset_dims=(), collapsed_slice_dims=(0,), start_index_map=(0,))
    >>> gather(np.arange(5) * 10, np.array([[3], [1]]), numbers, (1,)).tolist()
    [30, 10]
    """

def ge(x: ArrayLike, y: ArrayLike) -> Array:
    """Is x >= y?

    >>> ge(np.array([1, 2, 3]), 2).tolist()
    [False, True, True]
    """

def gt(x: ArrayLike, y: ArrayLike) -> Array:
    """Is x > y?

    >>> gt(np.array([1, 2, 3]), 2).tolist()
    [False, False, True]
    """

def imag(x: ArrayLike) -> Array:
    """The imaginary part of a complex array.

    >>> imag(np.array([1 + 2j])).tolist()
    [2.0]
    """

def index_in_dim(operand: ArrayLike, index: int, axis: int = 0, keepdims: bool = True) -> Array:
    """The slice at a static index along one axis, with or without that axis.

    >>> index_in_dim(np.arange(5), -1, keepdims=False).tolist()
    4
    """

def integer_pow(x: ArrayLike, y: int) -> Array:
    """`integer_pow(x, y)`: x to the power of a Python integer, by repeated multiplication.

    >>> integer_pow(np.array([2.0, 3.0]), -2).tolist()
    [0.25, 0.1111111111111111]
    """

def iota(dtype: DTypeLike, size: int) -> Array:
    """`iota(dtype, size)`: 0, 1, 2, ... as an array with one axis; see `broadcasted_iota` for more axes.

    >>> lax.iota(np.int32, 3).tolist()
    [0, 1, 2]
    """

def is_finite(x: ArrayLike) -> Array:
    """Whether x is neither infinite nor NaN.

    >>> is_finite(np.array([1.5, np.inf])).tolist()
    [True, False]
    """

def le(x: ArrayLike, y: ArrayLike) -> Array:
    """Is x <= y?

    >>> le(np.array([1, 2, 3]), 2).tolist()
    [True, True, False]
    """

def lgamma(x: ArrayLike) -> Array:
    """The logarithm of the absolute value of the gamma function. It is infinite at 0, -1, -2, and so on.

    >>> lgamma(0.5)
    Array(0.57236494, dtype=float64, weak_type=True)
    """

def log(x: ArrayLike) -> Array:
    """The natural logarithm.

    >>> log(2.0)
    Array(0.69314718, dtype=float64, weak_type=True)
    """

def log1p(x: ArrayLike) -> Array:
    """log(1 + x), accurate even near 0.

    >>> log1p(0.5)
    Array(0.40546511, dtype=float64, weak_type=True)
    """

def logistic(x: ArrayLike) -> Array:
    """The logistic function 1 / (1 + exp(-x)).

    >>> logistic(0.5)
    Array(0.62245933, dtype=float64, weak_type=True)
    """

def lt(x: ArrayLike, y: ArrayLike) -> Array:
    """Is x < y?

    >>> lt(np.array([1, 2, 3]), 2).tolist()
    [True, False, False]
    """

def map(f: Callable[[Any], Stacked], xs: Any, *, batch_size: int | None = None) -> Stacked:
    """Apply `f` to each slice of `xs` along its leading axes, one after the other, and stack the results.

    With `batch_size`, it is mapped over that many slices at a time.

    >>> lax.map(lambda x: x * x, lax.iota("int64", 4)).tolist()
    [0, 1, 4, 9]
    """

def max(x: ArrayLike, y: ArrayLike) -> Array:
    """The larger of x and y; NaN if either is.

    >>> max(np.array([1.0, -2.0]), 0.0).tolist()
    [1.0, 0.0]
    """

def min(x: ArrayLike, y: ArrayLike) -> Array:
    """The smaller of x and y; NaN if either is.

    >>> min(np.array([1.0, -2.0]), 0.0).tolist()
    [0.0, -2.0]
    """

def mul(x: ArrayLike, y: ArrayLike) -> Array:
    """The product x * y.

    >>> mul(np.array([1.0, 2.0]), 0.5).tolist()
    [0.5, 1.0]
    """

def ne(x: ArrayLike, y: ArrayLike) -> Array:
    """Is x != y?

    >>> ne(np.array([1, 2, 3]), 2).tolist()
    [True, False, True]
    """

def neg(x: ArrayLike) -> Array:
    """The negation -x.

    >>> neg(np.array([1.0, -2.0])).tolist()
    [-1.0, 2.0]
    """

def optimization_barrier(operand: Tree) -> Tree:
    """`optimization_barrier(operand)`: a pytree of arrays, unchanged, behind a barrier for the compiler.

    The compiler doesn't move computations across it, or see that the values on both sides are equal. The whole operand
    is computed before any part of the result.

    >>> optimization_barrier({"x": 1.0, "y": np.arange(2)})
    {'x': Array(1., dtype=float64, weak_type=True), 'y': Array([0, 1], dtype=int64)}
    """

def pad(operand: ArrayLike, padding_value: ArrayLike, padding_config: Sequence[tuple[int, int, int]]) -> Array:
    """`pad(operand, padding_value, padding_config)`: (low, high, interior) padding for each axis.

    `interior` elements are inserted between neighbours; negative low or high padding removes elements.

    >>> lax.pad(np.arange(1.0, 3.0), 0.0, [(1, 0, 1)]).tolist()
    [0.0, 1.0, 0.0, 2.0]
    """

def polygamma(x: ArrayLike, y: ArrayLike) -> Array:
    """The derivative of digamma of an order m, a float with a whole value; NaN for other m.

    >>> polygamma(1.0, 1.0)
    Array(1.64493407, dtype=float64, weak_type=True)
    """

def pow(x: ArrayLike, y: ArrayLike) -> Array:
    """x to the power of y. Beside a float or complex x, y may be an integer.

    >>> pow(np.array([2.0, 3.0]), 3).tolist()
    [8.0, 27.0]
    """

def real(x: ArrayLike) -> Array:
    """The real part of a complex array.

    >>> real(np.array([1 + 2j])).tolist()
    [1.0]
    """

def reduce_and(operand: ArrayLike, axes: int | Sequence[int] | None) -> Array:
    """`reduce_and(operand, axes)`: `and` along axes, bit by bit for integers; all bits set if there are no elements.

    >>> lax.reduce_and(np.array([[True, False], [True, True]]), (0,)).tolist()
    [True, False]
    """

def reduce_max(operand: ArrayLike, axes: int | Sequence[int] | None) -> Array:
    """`reduce_max(operand, axes)`: the largest element along axes; the least value of the dtype if there is none.

    >>> lax.reduce_max(np.array([[1.0, 5.0], [3.0, 4.0]]), (0,)).tolist()
    [3.0, 5.0]
    """

def reduce_min(operand: ArrayLike, axes: int | Sequence[int] | None) -> Array:
    """`reduce_min(operand, axes)`: the smallest element along axes; the greatest value of the dtype if there is none.

    >>> lax.reduce_min(np.array([[1.0, 5.0], [3.0, 4.0]]), (0,)).tolist()
    [1.0, 4.0]
    """

def reduce_or(operand: ArrayLike, axes: int | Sequence[int] | None) -> Array:
    """`reduce_or(operand, axes)`: `or` along axes, bit by bit for integers; no bit set if there are no elements.

    >>> lax.reduce_or(np.array([[True, False], [False, False]]), (0,)).tolist()
    [True, False]
    """

def reduce_prod(operand: ArrayLike, axes: int | Sequence[int] | None) -> Array:
    """`reduce_prod(operand, axes)`: the product along axes, in the operand's dtype; 1 if there are no elements.

    Floats narrower than 32 bits accumulate in float32.

    >>> lax.reduce_prod(np.array([[1.0, 2.0], [3.0, 4.0]]), (0,)).tolist()
    [3.0, 8.0]
    """

def reduce_sum(operand: ArrayLike, axes: int | Sequence[int] | None) -> Array:
    """`reduce_sum(operand, axes)`: the sum along axes, in the operand's dtype; 0 if there are no elements.

    Floats narrower than 32 bits accumulate in float32.

    >>> lax.reduce_sum(np.array([[1.0, 2.0], [3.0, 4.0]]), (0,)).tolist()
    [4.0, 6.0]
    """

def rem(x: ArrayLike, y: ArrayLike) -> Array:
    """The remainder of x / y, with the sign of x.

    >>> rem(np.array([7, -7]), 2).tolist()
    [1, -1]
    """

def reshape(operand: ArrayLike, new_sizes: Sequence[int], dimensions: Sequence[int] | None = None) -> Array:
    """`reshape(operand, new_sizes, dimensions=None)`: the same elements in row-major order, in another shape.

    With `dimensions`, the operand's axes are taken in that order first.

    >>> lax.reshape(np.arange(6), (2, 3)).shape
    (2, 3)
    """

def rev(operand: ArrayLike, dimensions: Sequence[int]) -> Array:
    """`rev(operand, dimensions)`: the elements in reverse order along some axes.

    >>> lax.rev(np.arange(3), (0,)).tolist()
    [2, 1, 0]
    """

def round(x: ArrayLike, rounding_method: int = ...) -> Array:
    """`round(x, rounding_method=0)`: the nearest integer; halves away from zero, or to even.

    >>> round(np.array([0.5, 1.5, -0.5]), RoundingMethod.TO_NEAREST_EVEN).tolist()
    [0.0, 2.0, -0.0]
    """

def rsqrt(x: ArrayLike) -> Array:
    """1 / sqrt(x).

    >>> rsqrt(4.0).item()
    0.5
    """

def scan(f: Callable[[Any, Any], tuple[Carry, Stacked]], init: Any, xs: Any = None, length: int | None = None, reverse: bool = False, unroll: int | bool = 1) -> tuple[Carry, Stacked]:
    """`scan(f, init, xs=None, length=None, reverse=False, unroll=1)`: a loop over the leading axis of `xs`.

    `f(carry, x)` returns `(carry, y)`; `carry` starts as `init` and keeps its type, `x` is one slice of `xs`. Returns
    the last carry and the `y`s, stacked. All of them are pytrees of arrays. Without inputs, `xs` is None and `length`
    says how many steps there are; `reverse` starts at the end; `unroll` steps are compiled into each round of the loop
    (True: all of them).

    >>> total, sums = lax.scan(lambda total, x: (total + x, total), 0, lax.iota("int64", 5))
    >>> int(total), sums.tolist()
    (10, [0, 0, 1, 3, 6])
    """

def scatter(operand: ArrayLike, scatter_indices: ArrayLike, updates: ArrayLike, dimension_numbers: ScatterDimensionNumbers, *, indices_are_sorted: bool = False, unique_indices: bool = False, mode: str | None = None) -> Array:
    """`scatter(operand, scatter_indices, updates, dimension_numbers, ...)`: the operand with windows replaced.

    `mode` says what happens to windows out of bounds: "fill" or "drop" skips them, "clip" moves them inside,
    "promise_in_bounds" says that there are none. Where windows overlap, one of them wins.

    >>> numbers = ScatterDimensionNumbers((), inserted_window_dims=(0,), scatter_dims_to_operand_dims=(0,))
    >>> scatter(np.zeros(4), np.array([[3], [1]]), np.ones(2), numbers).tolist()
    [0.0, 1.0, 0.0, 1.0]
    """

def scatter_add(operand: ArrayLike, scatter_indices: ArrayLike, updates: ArrayLike, dimension_numbers: ScatterDimensionNumbers, *, indices_are_sorted: bool = False, unique_indices: bool = False, mode: str | None = None) -> Array:
    """`scatter_add(operand, scatter_indices, updates, dimension_numbers, ...)`: adds windows; repeated ones all count.

    `mode` is as in `scatter`.

    >>> numbers = ScatterDimensionNumbers((), inserted_window_dims=(0,), scatter_dims_to_operand_dims=(0,))
    >>> scatter_add(np.zeros(3), np.array([[2], [2]]), np.ones(2), numbers).tolist()
    [0.0, 0.0, 2.0]
    """

def scatter_max(operand: ArrayLike, scatter_indices: ArrayLike, updates: ArrayLike, dimension_numbers: ScatterDimensionNumbers, *, indices_are_sorted: bool = False, unique_indices: bool = False, mode: str | None = None) -> Array:
    """`scatter_max(operand, scatter_indices, updates, dimension_numbers, ...)`: the greater of old and new.

    >>> numbers = ScatterDimensionNumbers((), inserted_window_dims=(0,), scatter_dims_to_operand_dims=(0,))
    >>> scatter_max(np.zeros(3), np.array([[1], [2]]), np.array([4.0, -4.0]), numbers).tolist()
    [0.0, 4.0, 0.0]
    """

def scatter_min(operand: ArrayLike, scatter_indices: ArrayLike, updates: ArrayLike, dimension_numbers: ScatterDimensionNumbers, *, indices_are_sorted: bool = False, unique_indices: bool = False, mode: str | None = None) -> Array:
    """`scatter_min(operand, scatter_indices, updates, dimension_numbers, ...)`: the lesser of old and new.

    >>> numbers = ScatterDimensionNumbers((), inserted_window_dims=(0,), scatter_dims_to_operand_dims=(0,))
    >>> scatter_min(np.zeros(3), np.array([[1], [2]]), np.array([4.0, -4.0]), numbers).tolist()
    [0.0, 0.0, -4.0]
    """

def scatter_mul(operand: ArrayLike, scatter_indices: ArrayLike, updates: ArrayLike, dimension_numbers: ScatterDimensionNumbers, *, indices_are_sorted: bool = False, unique_indices: bool = False, mode: str | None = None) -> Array:
    """`scatter_mul(operand, scatter_indices, updates, dimension_numbers, ...)`: multiplies windows by others.

    Its derivative with respect to updates that may overlap (not `unique_indices`) is a `lax.scan` over windows.

    >>> numbers = ScatterDimensionNumbers((), inserted_window_dims=(0,), scatter_dims_to_operand_dims=(0,))
    >>> scatter_mul(np.ones(3), np.array([[2], [2]]), np.full(2, 3.0), numbers).tolist()
    [1.0, 1.0, 9.0]
    """

def select(pred: ArrayLike, on_true: ArrayLike, on_false: ArrayLike) -> Array:
    """The elements of `on_true` where `pred` holds, and of `on_false` elsewhere.

    >>> select(np.array([True, False]), np.zeros(2), np.ones(2)).tolist()
    [0.0, 1.0]
    """

def select_n(which: ArrayLike, *cases: ArrayLike) -> Array:
    """`select_n(which, *cases)`: each element comes from the case that `which` selects at its place.

    `which` is boolean for one or two cases (False is the first), else int32, clamped to the number of cases. It is a
    scalar, or has the cases' shape.

    >>> select_n(np.array([True, False]), np.zeros(2), np.ones(2)).tolist()
    [1.0, 0.0]
    """

def shift_left(x: ArrayLike, y: ArrayLike) -> Array:
    """x shifted left by y bits, filled with zeros.

    >>> shift_left(1, 3).item()
    8
    """

def shift_right_arithmetic(x: ArrayLike, y: ArrayLike) -> Array:
    """x shifted right by y bits, filled with the sign bit.

    >>> shift_right_arithmetic(-8, 1).item()
    -4
    """

def shift_right_logical(x: ArrayLike, y: ArrayLike) -> Array:
    """x shifted right by y bits, filled with zeros.

    >>> shift_right_logical(np.int8(-8), np.int8(1)).item()
    124
    """

def sign(x: ArrayLike) -> Array:
    """-1, 0 or 1; x / |x| for complex numbers. Its derivative at 0 counts as 0.

    >>> sign(np.array([3.0, -4.0])).tolist()
    [1.0, -1.0]
    """

def sin(x: ArrayLike) -> Array:
    """The sine.

    >>> sin(0.5)
    Array(0.47942554, dtype=float64, weak_type=True)
    """

def sinh(x: ArrayLike) -> Array:
    """The hyperbolic sine.

    >>> sinh(0.5)
    Array(0.52109531, dtype=float64, weak_type=True)
    """

def slice(operand: ArrayLike, start_indices: Sequence[int], limit_indices: Sequence[int], strides: Sequence[int] | None = None) -> Array:
    """`slice(operand, start_indices, limit_indices, strides=None)`: start to limit by strides, along each axis.

    >>> lax.slice(np.arange(10), (2,), (9,), (3,)).tolist()
    [2, 5, 8]
    """

def slice_in_dim(operand: ArrayLike, start_index: int | None, limit_index: int | None, stride: int = 1, axis: int = 0) -> Array:
    """A slice along one axis; None and negative bounds mean the same as in Python's slices.

    >>> slice_in_dim(np.arange(5), 1, -1).tolist()
    [1, 2, 3]
    """

@overload
def sort(operand: Array | numpy.ndarray, dimension: int = -1, is_stable: bool = True, num_keys: int = 1) -> Array: ...
@overload
def sort(operand: Sequence[ArrayLike], dimension: int = -1, is_stable: bool = True, num_keys: int = 1) -> tuple[Array, ...]:
    """`sort(operand, dimension=-1, is_stable=True, num_keys=1)`: the elements in rising order along an axis.

    NaN comes last, and 0.0 and -0.0 are equal. Complex numbers are ordered by real, then by imaginary parts. Of a
    sequence of arrays, the first `num_keys` are sorted lexicographically, and the others are rearranged with them: the
    result is a tuple. With `is_stable`, what is equal stays in order.

    >>> lax.sort(np.array([3.0, np.nan, 1.0])).tolist()
    [1.0, 3.0, nan]
    >>> keys, names = lax.sort((np.array([2, 1, 2]), np.array([7, 8, 6])), num_keys=2)
    >>> keys.tolist(), names.tolist()
    ([1, 2, 2], [8, 6, 7])
    """

def sort_key_val(keys: ArrayLike, values: ArrayLike, dimension: int = -1, is_stable: bool = True) -> tuple[Array, Array]:
    """`sort_key_val(keys, values, dimension=-1, is_stable=True)`: both arrays, rearranged so that the keys rise.

    >>> keys, values = sort_key_val(np.array([3, 1, 2]), np.array([0.3, 0.1, 0.2]))
    >>> values.tolist()
    [0.1, 0.2, 0.3]
    """

def split(operand: ArrayLike, sizes: Sequence[int], axis: int = 0) -> list[Array]:
    """Split the operand along an axis into parts of these sizes.

    >>> [part.tolist() for part in split(np.arange(5), (2, 3))]
    [[0, 1], [2, 3, 4]]
    """

def sqrt(x: ArrayLike) -> Array:
    """The square root. Its derivative at 0 is infinite.

    >>> sqrt(4.0).item()
    2.0
    """

def square(x: ArrayLike) -> Array:
    """The square x * x.

    >>> square(3.0).item()
    9.0
    """

def squeeze(array: ArrayLike, dimensions: Sequence[int]) -> Array:
    """`squeeze(array, dimensions)`: drop axes of size 1; negative axes count from the end.

    >>> lax.squeeze(np.ones((1, 3, 1)), (0, -1)).shape
    (3,)
    """

def stack(operands: Sequence[ArrayLike] | ArrayLike, axis: int = 0) -> Array:
    """Stack arrays of the same shape along a new axis.

    >>> stack([np.zeros(2), np.ones(2)]).shape
    (2, 2)
    """

def stop_gradient(x: ArrayLike, /) -> Array:
    """`stop_gradient(x)`: x, with a derivative of zero.

    >>> stop_gradient(np.float64(2.0)).tolist()
    2.0
    """

def sub(x: ArrayLike, y: ArrayLike) -> Array:
    """The difference x - y.

    >>> sub(np.array([1.0, 2.0]), 0.5).tolist()
    [0.5, 1.5]
    """

def switch(index: ArrayLike, branches: Sequence[Callable[..., Result]], *operands: Any, operand: Any = ...) -> Result:
    """`branches[index](*operands)`, with the index clamped to the valid range.

    The index is an integer, traced or not. All branches return pytrees of the same structure, with arrays of the same
    types; all are traced, one is run.

    >>> switch(1, [lambda x: x + 1.0, lambda x: x - 2.0, lambda x: x + 3.0], 5.0).item()
    3.0
    """

def tan(x: ArrayLike) -> Array:
    """The tangent.

    >>> tan(0.5)
    Array(0.54630249, dtype=float64, weak_type=True)
    """

def tanh(x: ArrayLike) -> Array:
    """The hyperbolic tangent.

    >>> tanh(0.5)
    Array(0.46211716, dtype=float64, weak_type=True)
    """

def top_k(operand: ArrayLike, k: int, *, axis: int = -1) -> tuple[Array, Array]:
    """`top_k(operand, k, *, axis=-1)`: the k largest elements along an axis, falling, and their places as int32.

    Of equal elements, those at lower places come first. Floats are in their total order: NaN is above infinity, 0.0
    above -0.0, and a NaN with a minus sign is below everything.

    >>> values, places = top_k(np.array([9.0, 3.0, 6.0, 10.0]), 2)
    >>> values.tolist(), places.tolist()
    ([10.0, 9.0], [3, 0])
    """

def transpose(operand: ArrayLike, permutation: Sequence[int]) -> Array:
    """`transpose(operand, permutation)`: axis i of the result is axis `permutation[i]` of the operand.

    >>> lax.transpose(np.ones((2, 3)), (1, 0)).shape
    (3, 2)
    """

def untaken(x: ArrayLike, /) -> Array:
    """`untaken(x)`: x without derivatives: its tangent is zero, or its cotangent if it is itself a tangent.

    Whatever is computed from it won't be selected, so nothing is lost. Unlike `stop_gradient`, it may be applied to a
    tangent, which happens when a rule that carries one through a `cond` is mapped.

    >>> untaken(np.float64(2.0)).tolist()
    2.0
    """

def while_loop(cond_fun: Callable[[Any], ArrayLike], body_fun: Callable[[Any], Carry], init_val: Any) -> Carry:
    """`while_loop(cond_fun, body_fun, init_val)`: apply `body_fun` repeatedly while `cond_fun` holds.

    Starts from `init_val`, a pytree of arrays; `cond_fun(val)` returns a boolean, `body_fun(val)` the next value, of
    the same structure and types. Both are traced, and may close over arrays. Under `vmap`, each element stops when its
    own condition says so. There is no reverse mode, since the number of steps to remember isn't known in advance: use
    `lax.scan`, or `lax.fori_loop` between bounds that are Python integers.

    >>> lax.while_loop(lambda x: x < 100.0, lambda x: x * 3.0, 1.0)
    Array(243., dtype=float64, weak_type=True)
    """

def xla_call(*operands: ArrayLike, jaxpr: Jaxpr, name: str = '', donated: Flags | None = None, inline: bool = False, keep_unused: bool = False) -> list[Array]:
    """`xla_call(*operands, jaxpr=..., name="", donated=None, inline=False, keep_unused=False)`: call a jaxpr.

    The jaxpr has no constvars. `donated` says which operands' memory the program may reuse. With `inline`, the call is
    evaluated equation by equation instead, wherever a transformation is active.

    >>> staged = stage(lambda x: [x + 1.0], [ShapedArray((), "float64")])
    >>> xla_call(np.float64(2.0), jaxpr=staged.jaxpr)
    [Array(3., dtype=float64)]
    """

def xor(x: ArrayLike, y: ArrayLike) -> Array:
    """x or else y.

    >>> bitwise_xor(6, 3).item()
    5
    """

def zeta(x: ArrayLike, y: ArrayLike) -> Array:
    """The Hurwitz zeta function: the sum of (q + k)^-x for k = 0, 1, 2, and so on; NaN where that has no limit.

    >>> zeta(2.0, 1.0)
    Array(1.64493407, dtype=float64, weak_type=True)
    """
