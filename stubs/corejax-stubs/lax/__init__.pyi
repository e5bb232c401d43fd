# Written by `python -m corejax stubs`: don't edit it.

"""Everything that the installed packs provide, by name."""

from corejax.lax import linalg as linalg
import numpy
from collections.abc import Callable, Hashable, Sequence
from corejax.core import AnyMesh, Array, ArrayLike, DTypeLike, Jaxpr, Mesh, NamedSharding, Primitive, ShapedArray
from corejax.plugin import carrying
from corejax_callbacks._calling import Callback
from corejax_checkify._sites import Sites
from corejax_collectives._axes import Groups, Names
from corejax_collectives.constraining import Tree as _______Tree
from corejax_collectives.exchanging import Tree as _Tree
from corejax_collectives.gathering import Tree
from corejax_collectives.parallel_mapping import Dims
from corejax_collectives.permuting import Tree as ____Tree
from corejax_collectives.reducing import Tree as ______Tree
from corejax_collectives.shard_mapping import Axes, Specs
from corejax_collectives.varying import Tree as _____Tree
from corejax_control_flow.call import Flags as __Flags
from corejax_control_flow.checkpointing import Flags, Policy
from corejax_control_flow.conditional import Result
from corejax_control_flow.naming import Tree as __Tree
from corejax_control_flow.scanning import Carry, Stacked
from corejax_control_flow.segmented_scanning import Flags as _Flags
from corejax_fft.transforming import FftType as FftType
from corejax_lax_basic import PrecisionLike as _PrecisionLike
from corejax_lax_basic._axes import Shape
from corejax_lax_basic._placing import GatherDimensionNumbers as GatherDimensionNumbers, GatherScatterMode as GatherScatterMode, ScatterDimensionNumbers as ScatterDimensionNumbers
from corejax_lax_basic.accuracy import AccuracyMode as AccuracyMode, Canonical, Tolerance as Tolerance
from corejax_lax_basic.identity import Tree as ___Tree
from corejax_lax_basic.linear_algebra import DotDimensionNumbers as DotDimensionNumbers
from corejax_lax_basic.precision import DotAlgorithm as DotAlgorithm, DotAlgorithmPreset as DotAlgorithmPreset, Precision as Precision, PrecisionLike as PrecisionLike
from corejax_lax_basic.ragged import RaggedDotDimensionNumbers as RaggedDotDimensionNumbers
from corejax_lax_basic.random_bits import RandomAlgorithm as RandomAlgorithm
from corejax_lax_basic.rounding import RoundingMethod as RoundingMethod
from corejax_lax_basic.scattering import ScatterDimensionNumbers as _ScatterDimensionNumbers
from corejax_nn._attention_types import Names as _Names, Window
from corejax_random.keyed import Shape as __Shape
from corejax_reductions.associative import Elements
from corejax_reductions.reducing import Elements as _Elements
from corejax_windows._windowing import Ints
from corejax_windows.conv_dimension_numbers import ConvDimensionNumbers as ConvDimensionNumbers, ConvGeneralDilatedDimensionNumbers as ConvGeneralDilatedDimensionNumbers, Numbers
from corejax_windows.conv_shapes import Shape as _Shape
from corejax_windows.window_reducing import Elements as __Elements
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

def acosh(x: ArrayLike) -> Array:
    """The inverse of the hyperbolic cosine, for x from 1 on. Its derivative at 1 is infinite.

    >>> acosh(2.0)
    Array(1.3169579, dtype=float64, weak_type=True)
    """

def add(x: ArrayLike, y: ArrayLike) -> Array:
    """The sum x + y.

    >>> add(np.array([1.0, 2.0]), 0.5).tolist()
    [1.5, 2.5]
    """

def after_all(*tokens: ArrayLike) -> Array:
    """`after_all(*tokens)`: a token that comes after each of these; they all have the same shape.

    >>> after_all(create_token(), create_token())
    Array(token, dtype=token)
    """

def all_gather(x: Tree, axis_name: Any, *, axis_index_groups: Any = None, axis: int = 0, tiled: bool = False, to: str = 'varying') -> Tree:
    """`all_gather(x, axis_name, *, axis_index_groups=None, axis=0, tiled=False, to="varying")`: what all have.

    The values are stacked along a new `axis`, or concatenated along that one if `tiled`. `x` may be a pytree. On a mesh
    whose axes are tracked, `to="invarying"` gives a result that is known to be the same on all devices.

    >>> import numpy as np, corejax as cj
    >>> cj.vmap(lambda x: lax.all_gather(x, "rows"), axis_name="rows")(np.array([1, 2])).tolist()
    [[1, 2], [1, 2]]
    """

def all_gather_invariant(x: ArrayLike, /, *, all_gather_dimension: int, axis_name: Names, axis_size: int, tiled: bool) -> Array:
    """What all positions along tracked axes have: the same on all devices. `all_gather(..., to="invarying")`.

    >>> import numpy as np, corejax as cj
    >>> def everything(x):
    ...     return lax.all_gather_invariant(x, all_gather_dimension=0, axis_name=("i",), axis_size=2, tiled=False)
    >>> cj.vmap(everything, axis_name="i", out_axes=None)(np.array([1.0, 2.0])).tolist()
    [1.0, 2.0]
    """

def all_to_all(x: _Tree, axis_name: Any, split_axis: int, concat_axis: int, *, axis_index_groups: Any = None, tiled: bool = False) -> _Tree:
    """`all_to_all(x, axis_name, split_axis, concat_axis, *, axis_index_groups=None, tiled=False)`: exchanges parts.

    Each position divides `split_axis` among all positions, and stacks what it gets along a new axis, which the result
    has at `concat_axis`. So `split_axis`, which must be as large as the named axis, and the named axis change places.
    If `tiled`, `split_axis` is divided into as many equal parts, and parts are concatenated along `concat_axis`. `x`
    may be a pytree.

    >>> import numpy as np, corejax as cj
    >>> x = np.arange(4).reshape(2, 2)
    >>> cj.vmap(lambda row: lax.all_to_all(row, "rows", 0, 0), axis_name="rows")(x).tolist()
    [[0, 2], [1, 3]]
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

def approx_top_k(operand: ArrayLike, /, *, k: int, reduction_dimension: int, recall_target: float = 0.95, is_max_k: bool = True, reduction_input_size_override: int = -1, aggregate_to_topk: bool = True) -> list[Array]:
    """`approx_top_k(operand, ...)`: what `approx_max_k` and `approx_min_k` apply; `is_max_k` says which.

    >>> values, _ = approx_top_k(np.array([9.0, 3.0, 6.0]), k=2, reduction_dimension=0, is_max_k=False)
    >>> values.tolist()
    [3.0, 6.0]
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

def asinh(x: ArrayLike) -> Array:
    """The inverse of the hyperbolic sine.

    >>> asinh(0.5)
    Array(0.48121183, dtype=float64, weak_type=True)
    """

def associative_scan(fn: Callable[[Any, Any], Any], elems: Elements, reverse: bool = False, axis: int = 0) -> Elements:
    """Element i is elements 0 to i along an axis, combined by `fn`; from i to the end if `reverse`.

    `fn(a, b)` combines slices of `elems`, a pytree of arrays of the same size along `axis`: for each position along
    that axis, the result is that of the two elements. It must be associative, but needn't be commutative: `a` comes
    first along the way. It returns what it gets, in structure, shapes and dtypes, and is called twice for each
    doubling of the size. If `reverse`, the way starts at the end.

    >>> lax.associative_scan(lax.add, np.array([1.0, 2.0, 3.0])).tolist()
    [1.0, 3.0, 6.0]
    >>> lax.associative_scan(lax.add, np.array([1.0, 2.0, 3.0]), reverse=True).tolist()
    [6.0, 5.0, 3.0]
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

def atanh(x: ArrayLike) -> Array:
    """The inverse of the hyperbolic tangent, between -1 and 1.

    >>> atanh(0.5)
    Array(0.54930614, dtype=float64, weak_type=True)
    """

def axis_index(axis_name: Any) -> Array:
    """`axis_index(axis_name)`: the position along a named axis, as int32; along several, the last name runs fastest.

    >>> import numpy as np, corejax as cj
    >>> cj.vmap(lambda x: x * 10 + lax.axis_index("rows"), axis_name="rows")(np.array([1, 2, 3])).tolist()
    [10, 21, 32]
    """

def axis_size(axis_name: Any) -> int:
    """`axis_size(axis_name)`: the size of a named axis, or of several taken together: a Python integer.

    >>> import numpy as np, corejax as cj
    >>> cj.vmap(lambda x: x / lax.axis_size("rows"), axis_name="rows")(np.array([1.0, 2.0])).tolist()
    [0.5, 1.0]
    """

def batch_matmul(lhs: ArrayLike, rhs: ArrayLike, precision: PrecisionLike = None) -> Array:
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

def betainc(a: ArrayLike, b: ArrayLike, x: ArrayLike, /) -> Array:
    """The regularized incomplete beta function: the integral of t^(a - 1) (1 - t)^(b - 1) from 0 to x, by B(a, b).

    >>> betainc(2.0, 3.0, 0.5)
    Array(0.6875, dtype=float64, weak_type=True)
    """

def bitcast_convert_type(operand: ArrayLike, new_dtype: DTypeLike) -> Array:
    """`bitcast_convert_type(operand, new_dtype)`: the same bits, taken as numbers of another dtype.

    A wider operand is split: the result has one more axis, over its parts. Elements of a narrower operand are put
    together along the last axis, which must have as many of them as are needed. Least significant parts come first.

    >>> bitcast_convert_type(np.float32(1.0), np.int32).item() == 0x3F800000
    True
    >>> bitcast_convert_type(np.array([1, 258], np.uint16), np.uint8).tolist()
    [[1, 0], [2, 1]]
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

def bounded_while_loop(cond_fun: Callable[[Any], ArrayLike], body_fun: Callable[[Any], Carry], init_val: Any, *, max_steps: int, checkpoints: int | None = None) -> Carry:
    """`bounded_while_loop(cond_fun, body_fun, init_val, *, max_steps, checkpoints=None)`: `while_loop`, differentiable.

    Applies `body_fun` while `cond_fun` holds, as `while_loop` does and with the same results, but stops after
    `max_steps` steps if it still holds then. That bound, a Python integer, makes reverse mode possible; it costs no
    time, as no step is taken after the condition fails, forward or backward.

    Reverse mode keeps about `2 * sqrt(max_steps)` states and computes each step twice. `checkpoints` is how many may be
    kept at once: with `max_steps` of them nothing is computed again, and with `2 * n` if `n * n >= max_steps`, or
    `3 * n` if `n * n * n >= max_steps`, and so on, each step is computed 2, or 3, or so many times. Forward mode keeps
    nothing. Under `vmap`, each element stops when its own condition says so, and no step is evaluated at a state that
    the loop of no element reaches.

    >>> def root(a):
    ...     return lax.bounded_while_loop(lambda x: abs(x * x - a) > 1e-9, lambda x: (x + a / x) / 2.0, a, max_steps=50)
    >>> root(9.0).item(), lax.bounded_while_loop(lambda n: n < 100, lambda n: n + 1, 0, max_steps=9).item()
    (3.0..., 9)
    >>> import corejax as cj
    >>> abs(cj.grad(root)(9.0).item() - 1 / 6) < 1e-6
    True
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

def broadcast_like(arr: ArrayLike, like_arr: ArrayLike) -> Array:
    """The array in the shape of another one, by NumPy's law of broadcasting.

    >>> broadcast_like(np.array([1, 2, 3]), np.zeros((2, 3))).tolist()
    [[1, 2, 3], [1, 2, 3]]
    """

def broadcast_shapes(*shapes: Sequence[int]) -> Shape:
    """The shape of what is computed from operands of these shapes by NumPy's law of broadcasting.

    >>> broadcast_shapes((3, 1), (1, 4), (5, 1, 1))
    (5, 3, 4)
    """

def broadcast_to_rank(x: ArrayLike, rank: int) -> Array:
    """The array with as many leading axes of size 1 as it takes to have `rank` axes.

    >>> broadcast_to_rank(np.ones(3), 2).shape
    (1, 3)
    """

def broadcasted_iota(dtype: DTypeLike, shape: Sequence[int], dimension: int) -> Array:
    """An array of this shape, with each element's index along `dimension`.

    >>> broadcasted_iota(np.int32, (2, 3), 1).tolist()
    [[0, 1, 2], [0, 1, 2]]
    """

def cbrt(x: ArrayLike, *, accuracy: Tolerance | AccuracyMode | None = None) -> Array:
    """The cubic root, negative for negative x. Its derivative at 0 is infinite.

    >>> cbrt(np.array([8.0, -1.0])).tolist()
    [2.0, -1.0]
    """

def ceil(x: ArrayLike) -> Array:
    """The smallest integer not less than x.

    >>> ceil(np.array([1.5, -1.5])).tolist()
    [2.0, -1.0]
    """

def check(code: ArrayLike, /, *values: ArrayLike, sites: Sites, debug: bool = False) -> list[Array]:
    """`check(code, *values, sites=..., debug=False)`: `code` is 0, or the number of the site whose check has failed.

    `values` are what the sites report, in the order of their types. With `debug`, nothing happens where it isn't
    functionalized by `checkify`.

    >>> sample = next(check_p.primitive.samples(np.random.default_rng(0)))
    >>> check_p.primitive.bind(*sample.args, **sample.params)
    []
    """

def checkpoint_call(*operands: ArrayLike, jaxpr: Jaxpr, prevent_cse: bool | Flags = True, differentiated: bool = False, policy: Policy | None = None, as_one: bool = False) -> list[Array]:
    """`checkpoint_call(*operands, jaxpr=..., prevent_cse=True, differentiated=False, policy=None, as_one=False)`.

    A call of which reverse mode computes everything again.

    The jaxpr has no constvars. `differentiated` marks a call that computes values a second time; `prevent_cse`, a flag
    or one for each operand, keeps the compiler from noticing that they were computed before. A `policy` says what is
    saved; without one, nothing is. In another checkpointed program, its policy is asked about each operation within, or
    with `as_one` about the call.

    >>> staged = stage(lambda x: [x + 1.0], [ShapedArray((), "float64")])
    >>> checkpoint_call(np.float64(2.0), jaxpr=staged.jaxpr)
    [Array(3., dtype=float64)]
    """

def checkpoint_name(x: __Tree, name: str) -> __Tree:
    """`checkpoint_name(x, name)`: x, an array or a pytree of arrays, with a name for policies of `checkpoint`.

    Those of `corejax.checkpoint_policies` go by names.

    >>> import corejax as cj
    >>> cj.ad_checkpoint.checkpoint_name({"a": 1.0}, "start")
    {'a': Array(1., dtype=float64, weak_type=True)}
    """

def checkpointed_scan(*operands: ArrayLike, jaxpr: Jaxpr, length: int, reverse: bool, num_consts: int, num_carry: int, unroll: int, every: int) -> list[Array]:
    """`checkpointed_scan(*operands, jaxpr=..., length=..., reverse=..., num_consts=..., num_carry=..., unroll=...,
    every=...)`: a scan of which reverse mode keeps the carry of every `every`-th step only.

    >>> body = stage(lambda c, x: [c * x], [ShapedArray((), "float64")] * 2).jaxpr
    >>> checkpointed_scan(1.0, np.array([2.0, 3.0, 4.0]), jaxpr=body, length=3, reverse=False, num_consts=0,
    ...                   num_carry=1, unroll=1, every=2)[0].item()
    24.0
    """

def clamp(min: ArrayLike, x: ArrayLike, max: ArrayLike) -> Array:
    """`clamp(min, x, max)`: x limited to the bounds, which may be scalars; `max` wins if they cross.

    >>> clamp(0.0, np.array([-1.0, 0.5, 2.0]), 1.0).tolist()
    [0.0, 0.5, 1.0]
    """

def clz(x: ArrayLike) -> Array:
    """How many bits are 0 before the first that is 1: the leading zeros.

    >>> clz(np.array([0, 7, -1], np.int8)).tolist()
    [8, 5, 0]
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

def composite(decomposition: Callable[..., Any], name: str, version: int = 0) -> Callable[..., Any]:
    """The function `decomposition`, as an operation of its own in the lowered program: for compilers that know it.

    `name` has a namespace, as in "my.softmax"; `version` is a number that changes with the meaning. The function takes
    pytrees of arrays by position. Its keyword arguments are static, and are attributes of the operation as well, unless
    they are None: numbers, strings, NumPy arrays, sequences and dictionaries of these. A compiler that doesn't know the
    operation compiles the decomposition. Derivatives and maps are those of the decomposition.

    >>> tangent = lax.composite(lambda x: lax.sin(x) / lax.cos(x), "my.tangent")
    >>> tangent(0.5)
    Array(0.54630249, dtype=float64, weak_type=True)
    """

def composite_call(*operands: ArrayLike, jaxpr: Jaxpr, name: str, version: int, attributes: Any) -> list[Array]:
    """`composite_call(*operands, jaxpr=..., name=..., version=0, attributes=())`: call a jaxpr as a composite.

    `attributes` are pairs of a name and a value: a number, a boolean, a string, or nested tuples and `Elements`.

    >>> staged = stage(lambda x: [x + 1.0], [ShapedArray((), "float64")])
    >>> composite_call(np.float64(2.0), jaxpr=staged.jaxpr, name="my.increment", version=0, attributes=())
    [Array(3., dtype=float64)]
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

def conv(lhs: ArrayLike, rhs: ArrayLike, window_strides: Sequence[int], padding: str | Sequence[tuple[int, int]], precision: _PrecisionLike = None, preferred_element_type: DTypeLike | None = None) -> Array:
    """`conv(lhs, rhs, window_strides, padding, precision=None, ...)`: `conv_general_dilated` without dilation.

    Axes are batch, features, space; those of rhs output features, input features, space.

    >>> import numpy as np
    >>> conv(np.ones((1, 3, 9, 9)), np.ones((5, 3, 2, 2)), (1, 1), "SAME").shape
    (1, 5, 9, 9)
    """

def conv_dimension_numbers(lhs_shape: Sequence[int], rhs_shape: Sequence[int], dimension_numbers: ConvGeneralDilatedDimensionNumbers) -> ConvDimensionNumbers:
    """`conv_dimension_numbers(lhs_shape, rhs_shape, dimension_numbers)`: what three words, or None, are in numbers.

    >>> conv_dimension_numbers((1, 3, 8), (5, 3, 2), None)
    ConvDimensionNumbers(lhs_spec=(0, 1, 2), rhs_spec=(0, 1, 2), out_spec=(0, 1, 2))
    """

def conv_general_dilated(lhs: ArrayLike, rhs: ArrayLike, window_strides: Sequence[int], padding: str | Sequence[tuple[int, int]], lhs_dilation: Sequence[int] | None = None, rhs_dilation: Sequence[int] | None = None, dimension_numbers: ConvGeneralDilatedDimensionNumbers = None, feature_group_count: int = 1, batch_group_count: int = 1, precision: _PrecisionLike = None, preferred_element_type: DTypeLike | None = None) -> Array:
    """`conv_general_dilated(lhs, rhs, window_strides, padding, ...)`: slide the window rhs over lhs, and sum products.

    `dimension_numbers` say which axes are batch, features and space: None for ("NCHW", "OIHW", "NCHW"), three other
    words, or a `ConvDimensionNumbers`; `window_strides`, `padding` and the dilations have an entry for each axis in
    space, in the order of the second word. `padding` is "SAME", "SAME_LOWER", "VALID", or pairs (before, after), where
    negative numbers remove elements. With `feature_group_count`, each group of output features sees its own group of
    input features; with `batch_group_count`, its own part of the batch.

    Sums are computed in, and returned as, `preferred_element_type` if it is given.

    >>> x, window = np.array([[[1.0, 2.0, 4.0, 8.0]]]), np.array([[[1.0, -1.0]]])
    >>> conv_general_dilated(x, window, (1,), "VALID").tolist()
    [[[-1.0, -2.0, -4.0]]]
    >>> conv_general_dilated(np.ones((1, 9, 9, 3)), np.ones((2, 2, 3, 5)), (1, 2), "SAME",
    ...                      dimension_numbers=("NHWC", "HWIO", "NHWC")).shape
    (1, 9, 5, 5)
    """

def conv_general_dilated_local(lhs: ArrayLike, rhs: ArrayLike, window_strides: Sequence[int], padding: str | Sequence[tuple[int, int]], filter_shape: Sequence[int], lhs_dilation: Sequence[int] | None = None, rhs_dilation: Sequence[int] | None = None, dimension_numbers: ConvGeneralDilatedDimensionNumbers = None, precision: _PrecisionLike = None) -> Array:
    """`conv_general_dilated_local(lhs, rhs, window_strides, padding, filter_shape, ...)`: another window at each place.

    In space, rhs has the sizes of the result; its input features are all elements within a window, in the order that
    `conv_general_dilated_patches` has.

    >>> import numpy as np
    >>> x, windows = np.array([[[1.0, 2.0, 3.0]]]), np.array([[[1.0, 0.0], [0.0, 10.0]]])
    >>> conv_general_dilated_local(x, windows, (1,), "VALID", (2,)).tolist()
    [[[1.0, 30.0]]]
    """

def conv_general_dilated_patches(lhs: ArrayLike, filter_shape: Sequence[int], window_strides: Sequence[int], padding: str | Sequence[tuple[int, int]], lhs_dilation: Sequence[int] | None = None, rhs_dilation: Sequence[int] | None = None, dimension_numbers: ConvGeneralDilatedDimensionNumbers = None, precision: _PrecisionLike = None, preferred_element_type: DTypeLike | None = None) -> Array:
    """`conv_general_dilated_patches(lhs, filter_shape, window_strides, padding, ...)`: what each window sees.

    The features of the result are all elements within a window: those of the first feature of lhs, of the second, and
    so on. Other arguments are those of `conv_general_dilated`; `filter_shape` has the sizes of the window in space.

    >>> import numpy as np
    >>> x = np.array([[[1.0, 2.0, 3.0, 4.0]]])
    >>> conv_general_dilated_patches(x, (2,), (1,), "VALID").tolist()
    [[[1.0, 2.0, 3.0], [2.0, 3.0, 4.0]]]
    """

def conv_general_permutations(dimension_numbers: Sequence[str]) -> Numbers:
    """`conv_general_permutations(dimension_numbers)`: what three words are in numbers.

    Axes in space come in the order that they have in the second word.

    >>> conv_general_permutations(("NHWC", "HWIO", "NWHC"))
    ((0, 3, 1, 2), (3, 2, 0, 1), (0, 3, 2, 1))
    """

def conv_general_shape_tuple(lhs_shape: Sequence[int], rhs_shape: Sequence[int], window_strides: Sequence[int], padding: str | Sequence[tuple[int, int]], dimension_numbers: tuple[str, str, str]) -> _Shape:
    """`conv_general_shape_tuple(lhs_shape, rhs_shape, window_strides, padding, dimension_numbers)`: likewise.

    >>> conv_general_shape_tuple((1, 9, 9, 3), (2, 2, 3, 5), (2, 1), "SAME", ("NHWC", "HWIO", "NHWC"))
    (1, 5, 9, 5)
    """

def conv_shape_tuple(lhs_shape: Sequence[int], rhs_shape: Sequence[int], strides: Sequence[int], pads: str | Sequence[tuple[int, int]], batch_group_count: int = 1) -> _Shape:
    """`conv_shape_tuple(lhs_shape, rhs_shape, strides, pads, batch_group_count=1)`: the shape of a convolution.

    All shapes have batch and features first; that of rhs has output and input features first.

    >>> conv_shape_tuple((1, 3, 9, 9), (5, 3, 2, 2), (2, 1), "VALID")
    (1, 5, 4, 8)
    """

def conv_transpose(lhs: ArrayLike, rhs: ArrayLike, strides: Sequence[int], padding: str | Sequence[tuple[int, int]], rhs_dilation: Sequence[int] | None = None, dimension_numbers: ConvGeneralDilatedDimensionNumbers = None, transpose_kernel: bool = False, precision: _PrecisionLike = None, preferred_element_type: DTypeLike | None = None, use_consistent_padding: bool = False) -> Array:
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

def conv_transpose_shape_tuple(lhs_shape: Sequence[int], rhs_shape: Sequence[int], window_strides: Sequence[int], padding: str | Sequence[tuple[int, int]], dimension_numbers: tuple[str, str, str]) -> _Shape:
    """`conv_transpose_shape_tuple(lhs_shape, rhs_shape, window_strides, ...)`: that of a transposed convolution.

    >>> conv_transpose_shape_tuple((1, 4, 4, 3), (2, 2, 3, 5), (2, 2), "SAME", ("NHWC", "HWIO", "NHWC"))
    (1, 8, 8, 5)
    """

def conv_with_general_padding(lhs: ArrayLike, rhs: ArrayLike, window_strides: Sequence[int], padding: str | Sequence[tuple[int, int]], lhs_dilation: Sequence[int] | None, rhs_dilation: Sequence[int] | None, precision: _PrecisionLike = None, preferred_element_type: DTypeLike | None = None) -> Array:
    """`conv_with_general_padding(lhs, rhs, window_strides, padding, lhs_dilation, rhs_dilation, ...)`: with dilation.

    >>> import numpy as np
    >>> x, window = np.ones((1, 3, 9)), np.ones((5, 3, 2))
    >>> conv_with_general_padding(x, window, (2,), [(0, 3)], None, (2,)).shape
    (1, 5, 5)
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

def cos(x: ArrayLike, *, accuracy: Tolerance | AccuracyMode | None = None) -> Array:
    """The cosine.

    >>> cos(0.5)
    Array(0.87758256, dtype=float64, weak_type=True)
    """

def cosh(x: ArrayLike) -> Array:
    """The hyperbolic cosine.

    >>> cosh(0.5)
    Array(1.12762597, dtype=float64, weak_type=True)
    """

def counted_scan(count: ArrayLike, /, *operands: ArrayLike, jaxpr: Jaxpr, length: int, reverse: bool, num_consts: int, num_carry: int) -> list[Array]:
    """`counted_scan(count, *operands, jaxpr=..., length=..., reverse=..., num_consts=..., num_carry=...)`.

    The first `count` steps of a scan, or with `reverse` those steps from the last to the first. At most `length`; rows
    of outputs that no step writes are zero. If `count` is an array, as many steps as its largest element says are
    taken, and the body changes nothing in those that an element doesn't count.

    >>> body = stage(lambda c, x: [c + x, c * x], [ShapedArray((), "float64")] * 2).jaxpr
    >>> total, products = counted_scan(np.int32(2), 0.0, np.array([1.0, 2.0, 3.0]), jaxpr=body, length=3,
    ...                                reverse=False, num_consts=0, num_carry=1)
    >>> total.item(), products.tolist()
    (3.0, [0.0, 2.0, 0.0])
    """

def create_token(ignored: Any = None) -> Array:
    """`create_token()`: a token that nothing has to come before. An argument is ignored, as it is in JAX.

    >>> create_token()
    Array(token, dtype=token)
    """

def cumlogsumexp(operand: ArrayLike, axis: int = 0, reverse: bool = False) -> Array:
    """`cumlogsumexp(operand, axis=0, reverse=False)`: element i is log(exp(x[0]) + ... + exp(x[i])).

    The sum is from i to the end if `reverse`. No exponential overflows. Complex results have an imaginary part from
    -pi to pi.

    >>> lax.cumlogsumexp(np.array([1000.0, 1000.0, -np.inf])).tolist()
    [1000.0, 1000.6931471805599, 1000.6931471805599]
    """

def cummax(operand: ArrayLike, axis: int = 0, reverse: bool = False) -> Array:
    """`cummax(operand, axis=0, reverse=False)`: element i is the largest of elements 0 to i, or i to the end.

    It goes from the end if `reverse`. NaN counts as largest.

    >>> lax.cummax(np.array([1.0, 3.0, 2.0])).tolist()
    [1.0, 3.0, 3.0]
    """

def cummin(operand: ArrayLike, axis: int = 0, reverse: bool = False) -> Array:
    """`cummin(operand, axis=0, reverse=False)`: element i is the smallest of elements 0 to i, or i to the end.

    It goes from the end if `reverse`. NaN counts as smallest.

    >>> lax.cummin(np.array([3.0, 1.0, 2.0])).tolist()
    [3.0, 1.0, 1.0]
    """

def cumprod(operand: ArrayLike, axis: int = 0, reverse: bool = False) -> Array:
    """`cumprod(operand, axis=0, reverse=False)`: element i is the product of elements 0 to i, or i to the end.

    It goes from the end if `reverse`. Floats narrower than 32 bits accumulate in float32. Derivatives hold at zeros.

    >>> lax.cumprod(np.array([1.0, 2.0, 3.0])).tolist()
    [1.0, 2.0, 6.0]
    >>> lax.cumprod(np.array([1.0, 2.0, 3.0]), reverse=True).tolist()
    [6.0, 6.0, 3.0]
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

def custom_fwd_call(*operands: ArrayLike, fwd: Jaxpr, primal: Jaxpr) -> list[Array]:
    """`custom_fwd_call(*operands, fwd=..., primal=...)`: the output of a function, and the residuals of its fwd rule.

    Both are programs of the same operands; the results of `fwd` begin with those of `primal`.

    >>> sample = next(custom_fwd_call.primitive.samples(np.random.default_rng(0)))
    >>> len(custom_fwd_call(*sample.args, **sample.params))
    2
    """

def custom_linear_solve(matvec: Callable[[Any], Any], b: Any, solve: Callable[..., Any], transpose_solve: Callable[..., Any] | None = None, symmetric: bool = False, has_aux: bool = False) -> Array | Any:
    """`custom_linear_solve(matvec, b, solve, transpose_solve=None, symmetric=False, has_aux=False)`: A x = b.

    `matvec(x)` is A x, and is differentiable. `solve(matvec, b)` finds the solution, by whatever means; it isn't
    differentiated. `b` and the solution are pytrees of the same structure and types. Reverse mode needs
    `transpose_solve(vecmat, b)` too, which solves with the transpose of A, or `symmetric=True`. With `has_aux`, solvers
    return a pair, the solution and something else, which has no derivative. All functions may close over arrays, also
    over traced ones; derivatives are with respect to b and to what `matvec` closes over.

    >>> matrix = np.array([[2.0, 0.0], [0.0, 4.0]])
    >>> def solve(matvec, b):
    ...     return b / matvec(np.ones(2))
    >>> lax.custom_linear_solve(lambda x: lax.dot(matrix, x), np.array([1.0, 2.0]), solve, symmetric=True).tolist()
    [0.5, 0.5]
    """

def custom_pullback(*values: ArrayLike, pullback: Any, nonzero: tuple[bool, ...]) -> list[Array]:
    """`custom_pullback(*residuals, *primals, *tangents, pullback=..., nonzero=...)`: waits for cotangents on a tape.

    It maps tangents of inputs, those that are `nonzero`, to tangents of outputs. Its transpose is the bwd rule. Only if
    there is a jvp rule too does it take primals, and can be computed forward.

    >>> sample = next(custom_pullback.primitive.samples(np.random.default_rng(0)))
    >>> len(custom_pullback(*sample.args, **sample.params))
    1
    """

def custom_root(f: Callable[[Any], Any], initial_guess: Any, solve: Callable[..., Any], tangent_solve: Callable[..., Any], has_aux: bool = False) -> Array | Any:
    """`custom_root(f, initial_guess, solve, tangent_solve, has_aux=False)`: an x for which f(x) = 0.

    `solve(f, initial_guess)` finds it, by whatever means; it isn't differentiated. The derivative is that of a root:
    with respect to what `f` closes over, by `tangent_solve(g, y)`, which finds the z for which g(z) = y, where g is f
    linearized at the root. For a single number that is `lambda g, y: y / g(1.0)`; in general a linear solver, such as
    `custom_linear_solve`, which reverse mode can transpose. Arguments and results of all functions are pytrees like
    the guess. With `has_aux`, `solve` returns a pair, the root and something else, which has no derivative.

    >>> def newton(f, x):
    ...     return lax.fori_loop(0, 6, lambda _, x: x - f(x) / (2.0 * x), x)
    >>> def square_root(a):
    ...     return lax.custom_root(lambda x: x * x - a, 1.0, newton, lambda g, y: y / g(1.0))
    >>> square_root(9.0).item(), lax.custom_root.primitive.name
    (3.0, 'custom_root')
    """

def custom_vmap_call(*operands: ArrayLike, call: Any, jaxpr: Jaxpr) -> list[Array]:
    """`custom_vmap_call(*operands, call=..., jaxpr=...)`: call a function that has a rule for vmap.

    `jaxpr` is its program, whose first operands may be values that it closes over; `call` holds the rule.

    >>> sample = next(custom_vmap_call.primitive.samples(np.random.default_rng(0)))
    >>> len(custom_vmap_call(*sample.args, **sample.params))
    2
    """

def dce_sink(val: Any, *, prevent_mlir_dce: bool = False) -> None:
    """`dce_sink(val, *, prevent_mlir_dce=False)`: keep what computes the arrays in a pytree, though nothing uses them.

    It keeps the equations of the traced program, which is where unused ones are removed. The compiler may still remove
    the operations, unless `prevent_mlir_dce` says that it mustn't. A program with a sink has an effect.

    >>> dce_sink({"x": 1.0})
    """

def debug_callback(*operands: ArrayLike, call: Callback, ordered: bool) -> list[Array]:
    """`debug_callback(*operands, call, ordered)`: what `cj.debug.callback` and `cj.debug.print` apply. No results.

    >>> sample = next(debug_callback_p.primitive.samples(np.random.default_rng(0)))
    >>> debug_callback_p(*sample.args, **sample.params)
    []
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

def dot(lhs: ArrayLike, rhs: ArrayLike, *, dimension_numbers: DotDimensionNumbers | None = None, precision: PrecisionLike = None, preferred_element_type: DTypeLike | None = None) -> Array:
    """The product of vectors and matrices; with `dimension_numbers`, the same as `dot_general`.

    >>> dot(np.ones((2, 3)), np.ones(3)).tolist()
    [3.0, 3.0]
    """

def dot_general(lhs: ArrayLike, rhs: ArrayLike, dimension_numbers: DotDimensionNumbers, precision: PrecisionLike = None, preferred_element_type: DTypeLike | None = None) -> Array:
    """`dot_general(lhs, rhs, dimension_numbers, precision=None, preferred_element_type=None)`: contract two arrays.

    `dimension_numbers` is `((lhs contracting, rhs contracting), (lhs batch, rhs batch))`. The result's axes are the
    batch axes, then lhs's others, then rhs's. Accumulates in, and returns, `preferred_element_type` if given.

    >>> lax.dot_general(np.ones((2, 3)), np.ones((3, 4)), (((1,), (0,)), ((), ()))).shape
    (2, 4)
    """

def dtype(x: ArrayLike | DTypeLike) -> numpy.dtype:
    """The dtype of a value, or the one that a type or a name stands for.

    >>> dtype(np.zeros(2, np.float32)).name, dtype(1).name, dtype("bfloat16").name
    ('float32', 'int64', 'bfloat16')
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

def empty(shape: Sequence[int], dtype: DTypeLike) -> Array:
    """An array for values that don't matter, which are zeros.

    >>> empty((2, 3), np.float32).shape
    (2, 3)
    """

def eq(x: ArrayLike, y: ArrayLike) -> Array:
    """Is x == y?

    >>> eq(np.array([1, 2, 3]), 2).tolist()
    [False, True, False]
    """

def eq_to(x: ArrayLike, y: ArrayLike) -> Array:
    """Have x and y the same place in the total order?

    >>> eq_to(np.array([0.0, np.nan]), np.array([-0.0, np.nan])).tolist()
    [False, True]
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

def exp(x: ArrayLike, *, accuracy: Tolerance | AccuracyMode | None = None) -> Array:
    """e to the power of x.

    >>> exp(0.5)
    Array(1.64872127, dtype=float64, weak_type=True)
    """

def exp2(x: ArrayLike, *, accuracy: Tolerance | AccuracyMode | None = None) -> Array:
    """2 to the power of x.

    >>> exp2(np.array([3.0, -1.0])).tolist()
    [8.0, 0.5]
    """

def expand_dims(array: ArrayLike, dimensions: Sequence[int]) -> Array:
    """The array with new axes of size 1 at these positions of the result; negative ones count from the end.

    >>> expand_dims(np.ones(3), (0, -1)).shape
    (1, 3, 1)
    """

def expm1(x: ArrayLike, *, accuracy: Tolerance | AccuracyMode | None = None) -> Array:
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

def fft(x: ArrayLike, fft_type: FftType | str, fft_lengths: Sequence[int]) -> Array:
    """`fft(x, fft_type, fft_lengths)`: the discrete Fourier transform along as many last axes as there are lengths.

    `fft_type` is a `FftType`, or its name. "fft" and "ifft" are from complex to complex numbers; "rfft" is from real
    numbers to the `n // 2 + 1` first ones of the last axis, the others being their conjugates; "irfft" is its inverse.
    `fft_lengths` are the numbers of points, n: from one axis to three. Inverses divide by the number of points.

    >>> lax.fft(np.array([1.0, 2.0, 3.0, 4.0]), "fft", (4,)).tolist()
    [(10+0j), (-2+2j), (-2+0j), (-2-2j)]
    >>> spectrum = lax.fft(np.array([1.0, 2.0, 3.0, 4.0]), "rfft", (4,))
    >>> spectrum.tolist(), lax.fft(spectrum, "irfft", (4,)).tolist()
    ([(10+0j), (-2+2j), (-2+0j)], [1.0, 2.0, 3.0, 4.0])
    """

def floor(x: ArrayLike) -> Array:
    """The largest integer not greater than x.

    >>> floor(np.array([1.5, -1.5])).tolist()
    [1.0, -2.0]
    """

def fori_loop(lower: ArrayLike, upper: ArrayLike, body_fun: Callable[[Any, Any], Carry], init_val: Any, *, unroll: int | bool | None = None) -> Carry:
    """Start with `val = init_val`, run `val = body_fun(i, val)` for each `i` in `range(lower, upper)`, return `val`.

    `val` is a pytree of arrays that keeps its structure and types. Between integers that are known at trace time, the
    loop is a `scan`: it has a reverse mode, and `unroll` steps are compiled into each round. Otherwise it is a
    `while_loop`. Bounds may also be floats. Known ones that are whole numbers count as integers; otherwise `i` is a
    float, which counts up by 1 from `lower`.

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

def igamma(x: ArrayLike, y: ArrayLike) -> Array:
    """The regularized incomplete gamma function P: the integral of t^(a - 1) exp(-t) from 0 to x, by Gamma(a).

    >>> igamma(1.0, 1.0)
    Array(0.63212056, dtype=float64, weak_type=True)
    """

def igamma_grad_a(x: ArrayLike, y: ArrayLike) -> Array:
    """The derivative of igamma(a, x) by a; NaN unless a > 0 and x >= 0.

    >>> igamma_grad_a(1.0, 1.0)
    Array(-0.43172971, dtype=float64, weak_type=True)
    """

def igammac(x: ArrayLike, y: ArrayLike) -> Array:
    """1 - igamma(a, x), which has all its digits where it is small, too.

    >>> igammac(1.0, 1.0)
    Array(0.36787944, dtype=float64, weak_type=True)
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

def index_take(src: ArrayLike, idxs: Sequence[ArrayLike], axes: Sequence[int]) -> Array:
    """The parts of `src` at vectors of indices along some axes, stacked along a first axis. Negative indices wrap.

    >>> index_take(np.arange(6).reshape(2, 3), [np.array([0, -1])], (1,)).tolist()
    [[0, 3], [2, 5]]
    """

def integer_pow(x: ArrayLike, y: int) -> Array:
    """`integer_pow(x, y)`: x to the power of a Python integer, by repeated multiplication.

    >>> integer_pow(np.array([2.0, 3.0]), -2).tolist()
    [0.25, 0.1111111111111111]
    """

def io_callback(*operands: ArrayLike, call: Callback, results: tuple[ShapedArray, ...], ordered: bool) -> list[Array]:
    """`io_callback(*operands, call, results, ordered)`: what `cj.experimental.io_callback` applies.

    >>> sample = next(io_callback_p.primitive.samples(np.random.default_rng(0)))
    >>> io_callback_p(*sample.args, **sample.params)
    [Array([0., 1., 2.], dtype=float64)]
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

def le_to(x: ArrayLike, y: ArrayLike) -> Array:
    """Is x before y in the total order, or at the same place?

    >>> le_to(np.array([0.0, np.nan]), np.array([-0.0, np.nan])).tolist()
    [False, True]
    """

def lgamma(x: ArrayLike) -> Array:
    """The logarithm of the absolute value of the gamma function. It is infinite at 0, -1, -2, and so on.

    >>> lgamma(0.5)
    Array(0.57236494, dtype=float64, weak_type=True)
    """

def linear_call(fun: Callable[[Any, Any], Any], fun_transpose: Callable[[Any, Any], Any], residual_args: Any, linear_args: Any) -> Array | Any:
    """`linear_call(fun, fun_transpose, residual_args, linear_args)`: `fun(residual_args, linear_args)`.

    `fun` is linear in its second argument. `fun_transpose(residual_args, ct)` is its transpose: from something like the
    result of `fun` to something like `linear_args`. Arguments and results are pytrees, of floats or complex numbers
    where the functions are linear.

    >>> import corejax as cj
    >>> from corejax.custom_derivatives import linear_call
    >>> def divide(y, x):
    ...     return linear_call(lambda y, x: x / y, lambda y, ct: ct / y, y, x)
    >>> divide(2.0, 3.0), cj.grad(divide, argnums=(0, 1))(2.0, 3.0)
    (Array(1.5, dtype=float64, weak_type=True), (Array(-0.75, dtype=float64, weak_type=True), Array(0.5, dtype=float64, weak_type=True)))
    """

def linear_recurrence(factors: ArrayLike, terms: ArrayLike, axis: int = 0, reverse: bool = False) -> Array:
    """`linear_recurrence(factors, terms, axis=0, reverse=False)`: y[i] = factors[i] * y[i-1] + terms[i].

    It starts with y[0] = terms[0], and from the other end if `reverse`: y[i] = factors[i] * y[i+1] + terms[i]. Both
    operands have the same type. Floats narrower than 32 bits accumulate in float32. It has derivatives of all orders
    by both operands, which are recurrences as well.

    >>> lax.linear_recurrence(np.array([0.0, 2.0, 3.0]), np.ones(3)).tolist()
    [1.0, 3.0, 10.0]
    """

def log(x: ArrayLike, *, accuracy: Tolerance | AccuracyMode | None = None) -> Array:
    """The natural logarithm.

    >>> log(2.0)
    Array(0.69314718, dtype=float64, weak_type=True)
    """

def log1p(x: ArrayLike, *, accuracy: Tolerance | AccuracyMode | None = None) -> Array:
    """log(1 + x), accurate even near 0.

    >>> log1p(0.5)
    Array(0.40546511, dtype=float64, weak_type=True)
    """

def logistic(x: ArrayLike, *, accuracy: Tolerance | AccuracyMode | None = None) -> Array:
    """The logistic function 1 / (1 + exp(-x)).

    >>> logistic(0.5)
    Array(0.62245933, dtype=float64, weak_type=True)
    """

def lt(x: ArrayLike, y: ArrayLike) -> Array:
    """Is x < y?

    >>> lt(np.array([1, 2, 3]), 2).tolist()
    [True, False, False]
    """

def lt_to(x: ArrayLike, y: ArrayLike) -> Array:
    """Is x before y in the total order?

    >>> lt_to(np.array([-0.0, 1.0]), np.array([0.0, np.nan])).tolist()
    [True, True]
    """

def map(f: Callable[[Any], Stacked], xs: Any, *, batch_size: int | None = None) -> Stacked:
    """Apply `f` to each slice of `xs` along its leading axes, one after the other, and stack the results.

    With `batch_size`, it is mapped over that many slices at a time; 0 is as None.

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

def mul(x: ArrayLike, y: ArrayLike, *, out_dtype: DTypeLike | None = None) -> Array:
    """The product x * y, computed in `out_dtype` if that is given.

    >>> mul(np.array([1.0, 2.0]), 0.5).tolist()
    [0.5, 1.0]
    """

def mulhi(x: ArrayLike, y: ArrayLike) -> Array:
    """The upper half of the bits of the product x * y, which has twice as many as x and y.

    >>> mulhi(np.array([100, -100], np.int8), np.int8(100)).tolist()
    [39, -40]
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

def nextafter(x: ArrayLike, y: ArrayLike) -> Array:
    """The next number after x1 in the direction of x2 that the dtype can represent.

    >>> nextafter(1.0, 2.0).item()
    1.0000000000000002
    """

def nn_attention(query: ArrayLike, key: ArrayLike, value: ArrayLike, /, *others: ArrayLike, scale: float, is_causal: bool, window: Window, extras: _Names) -> list[Array]:
    """`nn_attention(query, key, value, *others, ...)`: what queries find, and the logarithms of their powers' sums.

    Shapes are `[B, T, N, H]` for queries, `[B, S, K, H]` for keys and values, `[B or 1, N or 1, T or 1, S or 1]` for
    bias and mask, `[B]` for lengths; `extras` names the others that are there. The results are `[B, T, N, H]`, and
    `[B, T, N]` in the dtype of scores.

    >>> x = np.zeros((1, 3, 2, 4))
    >>> out, log = lax.nn_attention(x, x, x, scale=0.5, is_causal=True, window=None, extras=())
    >>> out.shape, np.exp(log[0, :, 0]).round(9).tolist()
    ((1, 3, 2, 4), [1.0, 2.0, 3.0])
    """

def nn_attention_back(query: ArrayLike, key: ArrayLike, value: ArrayLike, /, *others: ArrayLike, scale: float, is_causal: bool, window: Window, extras: _Names, wrt: _Names) -> list[Array]:
    """`nn_attention_back(*operands, out, log, out_bar, log_bar, ...)`: cotangents of the operands of `nn_attention`.

    After the operands of that come its results, and their cotangents. There is a result for each name in `wrt`.
    """

def nn_attention_forward(query: ArrayLike, key: ArrayLike, value: ArrayLike, /, *others: ArrayLike, scale: float, is_causal: bool, window: Window, extras: _Names, wrt: _Names) -> list[Array]:
    """`nn_attention_forward(*operands, out, log, *tangents, ...)`: tangents of the results of `nn_attention`.

    After the operands of that and its results come tangents of the operands that `wrt` names.
    """

def nn_gelu_tanh(x: ArrayLike) -> Array:
    """x times the normal distribution's share below x, by a hyperbolic tangent.

    >>> nn_gelu_tanh(0.0).item()
    0.0
    """

def nn_hard_sigmoid(x: ArrayLike) -> Array:
    """A straight line from 0 at -3 to 1 at 3.

    >>> nn_hard_sigmoid(0.0).item()
    0.5
    """

def nn_hard_silu(x: ArrayLike) -> Array:
    """x times hard_sigmoid(x).

    >>> nn_hard_silu(3.0).item()
    3.0
    """

def nn_hard_tanh(x: ArrayLike) -> Array:
    """x between -1 and 1.

    >>> nn_hard_tanh(-3.0).item()
    -1.0
    """

def nn_log1mexp(x: ArrayLike) -> Array:
    """log(1 - exp(-x)), for positive x.

    >>> nn_log1mexp(800.0).item()
    -0.0
    """

def nn_mish(x: ArrayLike) -> Array:
    """x times the hyperbolic tangent of softplus(x).

    >>> nn_mish(0.0).item()
    0.0
    """

def nn_relu(x: ArrayLike) -> Array:
    """The larger of x and 0; its derivative at 0 is 0.

    >>> nn_relu(-1.0).item()
    0.0
    """

def nn_relu6(x: ArrayLike) -> Array:
    """x between 0 and 6.

    >>> nn_relu6(7.0).item()
    6.0
    """

def nn_selu(x: ArrayLike) -> Array:
    """x above 0, 1.673 (exp(x) - 1) below, all times 1.0507.

    >>> nn_selu(0.0).item()
    0.0
    """

def nn_silu(x: ArrayLike) -> Array:
    """x times its logistic.

    >>> nn_silu(0.0).item()
    0.0
    """

def nn_soft_sign(x: ArrayLike) -> Array:
    """x / (1 + |x|).

    >>> nn_soft_sign(1.0).item()
    0.5
    """

def nn_softplus(x: ArrayLike) -> Array:
    """log(1 + exp(x)), without overflow.

    >>> nn_softplus(800.0).item()
    800.0
    """

def nn_sparse_plus(x: ArrayLike) -> Array:
    """0 up to -1, x from 1 on, a parabola in between.

    >>> nn_sparse_plus(0.0).item()
    0.25
    """

def nn_sparse_sigmoid(x: ArrayLike) -> Array:
    """A straight line from 0 at -1 to 1 at 1.

    >>> nn_sparse_sigmoid(0.0).item()
    0.5
    """

def optimization_barrier(operand: ___Tree) -> ___Tree:
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

def padtype_to_pads(in_shape: Sequence[int], window_shape: Sequence[int], window_strides: Sequence[int], padding: str) -> list[tuple[int, int]]:
    """How many elements to pad before and after each axis, so that windows fit as `padding` says.

    "VALID" pads nothing. "SAME" pads so that there is a window for every `stride` elements, with an odd one after the
    operand; "SAME_LOWER" with an odd one before it.

    >>> padtype_to_pads((5,), (2,), (1,), "SAME"), padtype_to_pads((5,), (2,), (1,), "SAME_LOWER")
    ([(0, 1)], [(1, 0)])
    """

def pbroadcast(x: ____Tree, axis_name: Any, source: int) -> ____Tree:
    """`pbroadcast(x, axis_name, source)`: all positions along named axes get what the position `source` has.

    `x` may be a pytree.

    >>> import numpy as np, corejax as cj
    >>> cj.vmap(lambda x: lax.pbroadcast(x, "rows", 1), axis_name="rows")(np.array([1, 2, 3])).tolist()
    [2, 2, 2]
    """

def pcast(x: _____Tree, axis_name: Any, *, to: str) -> _____Tree:
    """`pcast(x, axis_name, *, to)`: the same values, with a type that says that they vary along these axes.

    `x` may be a pytree; `to` must be "varying". Only axes of `cj.shard_map(..., check_vma=True)` appear in types, so
    along others nothing is to be done. Its transpose is `psum`: where all devices use a value, its cotangent is the sum
    of theirs.

    >>> import numpy as np, corejax as cj
    >>> cj.vmap(lambda x: lax.pcast(x, "rows", to="varying"), axis_name="rows")(np.arange(3.0)).tolist()
    [0.0, 1.0, 2.0]
    """

def philox4x32(k0: ArrayLike, k1: ArrayLike, x0: ArrayLike, x1: ArrayLike, x2: ArrayLike, x3: ArrayLike, /) -> list[Array]:
    """`philox4x32(k0, k1, x0, x1, x2, x3)`: four words, mixed with a key of two words.

    >>> [hex(word.item()) for word in philox4x32_p.primitive.bind(*[np.uint32(0)] * 6)]
    ['0x6627e8d5', '0xe169c58d', '0xbc57ac4c', '0x9b00dbd8']
    """

def platform_dependent(*operands: Any, default: Callable[..., Result] | None = None, **per_platform: Callable[..., Result]) -> Result:
    """`platform_dependent(*operands, default=None, cpu=..., ...)`: the function for the platform, of these arguments.

    A keyword is the name of a platform, such as `cpu`, `cuda`, `rocm` or `tpu`; `default` is for all others. In a
    program that is traced, all functions are, and must return the same types; it is lowered with one of them, or, if
    it is exported, with one for each platform. Otherwise the function for the platform of the arguments is called.

    >>> lax.platform_dependent(2.0, cpu=lambda x: x + 1.0, default=lambda x: x - 1.0)
    Array(3., dtype=float64, weak_type=True)
    """

def pmax(x: ______Tree, axis_name: Any, *, axis_index_groups: Any = None) -> ______Tree:
    """`pmax(x, axis_name, *, axis_index_groups=None)`: the largest of the values at the positions along named axes.

    `x` may be a pytree. NaN wins over every number. Positions that tie share the derivative equally. See `psum`.

    >>> import numpy as np, corejax as cj
    >>> cj.vmap(lambda x: x - lax.pmax(x, "rows"), axis_name="rows")(np.array([1.0, 5.0, 3.0])).tolist()
    [-4.0, 0.0, -2.0]
    """

def pmean(x: ______Tree, axis_name: Any, *, axis_index_groups: Any = None) -> ______Tree:
    """`pmean(x, axis_name, *, axis_index_groups=None)`: the mean over the positions along named axes. See `psum`.

    >>> import numpy as np, corejax as cj
    >>> cj.vmap(lambda x: x - lax.pmean(x, "rows"), axis_name="rows")(np.array([1.0, 2.0, 6.0])).tolist()
    [-2.0, -1.0, 3.0]
    """

def pmin(x: ______Tree, axis_name: Any, *, axis_index_groups: Any = None) -> ______Tree:
    """`pmin(x, axis_name, *, axis_index_groups=None)`: the smallest of the values at the positions along named axes.

    `x` may be a pytree. NaN wins over every number. Positions that tie share the derivative equally. See `psum`.

    >>> import numpy as np, corejax as cj
    >>> cj.vmap(lambda x: x - lax.pmin(x, "rows"), axis_name="rows")(np.array([1.0, 5.0, 3.0])).tolist()
    [0.0, 4.0, 2.0]
    """

def polygamma(x: ArrayLike, y: ArrayLike) -> Array:
    """The derivative of digamma of an order m, a float with a whole value; NaN for other m.

    >>> polygamma(1.0, 1.0)
    Array(1.64493407, dtype=float64, weak_type=True)
    """

def population_count(x: ArrayLike) -> Array:
    """How many bits are 1.

    >>> population_count(np.array([0, 7, -1], np.int8)).tolist()
    [0, 3, 8]
    """

def pow(x: ArrayLike, y: ArrayLike) -> Array:
    """x to the power of y. Beside a float or complex x, y may be an integer.

    >>> pow(np.array([2.0, 3.0]), 3).tolist()
    [8.0, 27.0]
    """

def ppermute(x: ____Tree, axis_name: Any, perm: Sequence[tuple[int, int]]) -> ____Tree:
    """`ppermute(x, axis_name, perm)`: values sent from position to position, zeros where nothing arrives.

    `perm` is a sequence of pairs `(sender, receiver)`; each position sends and receives at most once. `x` may be a
    pytree.

    >>> import numpy as np, corejax as cj
    >>> ring = [(0, 1), (1, 2), (2, 0)]
    >>> cj.vmap(lambda x: lax.ppermute(x, "rows", ring), axis_name="rows")(np.array([1, 2, 3])).tolist()
    [3, 1, 2]
    """

def precv(token: Array, out_shape: Any, axis_name: Any, perm: Sequence[tuple[int, int]]) -> Array:
    """`precv(token, out_shape, axis_name, perm)`: receives an array of the type of `out_shape`. For GPUs.

    `token` is that of the `psend` that sends it, or `lax.create_token()`. See `psend`.

    >>> import corejax as cj
    >>> lax.create_token().shape
    ()
    """

def psend(x: ArrayLike, axis_name: Any, perm: Sequence[tuple[int, int]]) -> Array:
    """`psend(x, axis_name, perm)`: sends arrays from position to position; returns a token for `precv`. For GPUs.

    `perm` is a sequence of pairs `(sender, receiver)`, as for `ppermute`, which sends and receives at once, anywhere.

    >>> import numpy as np, corejax as cj
    >>> send = lambda x: lax.psend(x, "i", [(0, 1)])  # for two GPUs, in cj.pmap(..., axis_name="i")
    """

def pshuffle(x: ____Tree, axis_name: Any, perm: Sequence[int]) -> ____Tree:
    """`pshuffle(x, axis_name, perm)`: position i along the axis gets what position `perm[i]` has. See `ppermute`.

    >>> import numpy as np, corejax as cj
    >>> cj.vmap(lambda x: lax.pshuffle(x, "rows", [2, 0, 1]), axis_name="rows")(np.array([1, 2, 3])).tolist()
    [3, 1, 2]
    """

def psum(x: ______Tree, axis_name: Any, *, axis_index_groups: Any = None) -> ______Tree:
    """`psum(x, axis_name, *, axis_index_groups=None)`: the sum over the positions along named axes.

    `x` may be a pytree; booleans are counted as int32. An integer among the names is an axis of the arrays themselves.
    With groups of positions, each position gets the sum over its group. Of a value that isn't traced, the sum is found
    at once: `psum(1, name)` is the size of the axis, a Python integer.

    >>> import numpy as np, corejax as cj
    >>> cj.vmap(lambda x: x / lax.psum(x, "rows"), axis_name="rows")(np.array([1.0, 2.0, 5.0])).tolist()
    [0.125, 0.25, 0.625]
    """

def psum_invariant(x: ArrayLike, /, *, axes: Names) -> Array:
    """The sum over tracked axes of a mesh, along which the result doesn't vary. `psum` applies it.

    >>> import numpy as np, corejax as cj
    >>> cj.vmap(lambda x: lax.psum_invariant(x, axes=("i",)), axis_name="i")(np.arange(3.0)).tolist()
    [3.0, 3.0, 3.0]
    """

def psum_scatter(x: Tree, axis_name: Any, *, scatter_dimension: int = 0, axis_index_groups: Any = None, tiled: bool = False) -> Tree:
    """`psum_scatter(x, axis_name, *, scatter_dimension=0, axis_index_groups=None, tiled=False)`: each keeps a part.

    Position i along the axis gets element i, along `scatter_dimension`, of the sum over all positions; if `tiled`, the
    i-th of as many equal parts. `x` may be a pytree.

    >>> import numpy as np, corejax as cj
    >>> cj.vmap(lambda x: lax.psum_scatter(x, "rows"), axis_name="rows")(np.array([[1, 2], [30, 40]])).tolist()
    [31, 42]
    """

def pswapaxes(x: _Tree, axis_name: Any, axis: int, *, axis_index_groups: Any = None) -> _Tree:
    """`pswapaxes(x, axis_name, axis, *, axis_index_groups=None)`: a named axis and one of the array change places.

    It is `all_to_all(x, axis_name, axis, axis)`: the two must have the same size.

    >>> import numpy as np, corejax as cj
    >>> x = np.arange(4).reshape(2, 2)
    >>> cj.vmap(lambda row: lax.pswapaxes(row, "rows", 0), axis_name="rows")(x).tolist()
    [[0, 2], [1, 3]]
    """

def pure_callback(*operands: ArrayLike, call: Callback, results: tuple[ShapedArray, ...], vmap_method: str | None) -> list[Array]:
    """`pure_callback(*operands, call, results, vmap_method)`: what `cj.pure_callback` applies.

    >>> sample = next(pure_callback_p.primitive.samples(np.random.default_rng(0)))
    >>> len(pure_callback_p(*sample.args, **sample.params))
    1
    """

def ragged_all_to_all(operand: ArrayLike, output: ArrayLike, input_offsets: ArrayLike, send_sizes: ArrayLike, output_offsets: ArrayLike, recv_sizes: ArrayLike, *, axis_name: Any, axis_index_groups: Any = None) -> Array:
    """`ragged_all_to_all(operand, output, input_offsets, send_sizes, output_offsets, recv_sizes, *, axis_name, ...)`.

    Each position sends rows of `operand` to each other one. The result is `output` with the rows written that arrive.
    The four vectors of integers have the same size, a multiple of the number of positions, and are divided among the
    receivers. Part k is the `send_sizes[k]` rows from `input_offsets[k]` on; the receiver has them from
    `output_offsets[k]` on. `recv_sizes` says of how many rows the parts are that arrive; it must agree with what is
    sent. Parts must not overlap where they arrive. With `axis_index_groups`, positions exchange within groups.

    >>> import numpy as np, corejax as cj
    >>> def exchange(rows):  # each of two positions sends its first row to the first, and its second to the second
    ...     me, two = lax.axis_index("i"), lax.iota("int32", 2)
    ...     at, one = lax.full_like(two, 0) + me, lax.full_like(two, 1)
    ...     return lax.ragged_all_to_all(rows, lax.full_like(rows, 0.0), two, one, at, one, axis_name="i")
    >>> cj.vmap(exchange, axis_name="i")(np.array([[1.0, 2.0], [3.0, 4.0]])).tolist()
    [[1.0, 3.0], [2.0, 4.0]]
    """

def ragged_dot(lhs: ArrayLike, rhs: ArrayLike, group_sizes: ArrayLike, precision: PrecisionLike = None, preferred_element_type: DTypeLike | None = None, group_offset: ArrayLike | None = None) -> Array:
    """Each group of consecutive rows of lhs, `(m, k)`, times its matrix in rhs, `(groups, k, n)`: a matrix `(m, n)`.

    `group_sizes` has the number of rows of each group. Rows after the last group give zeros.

    >>> ragged_dot(np.ones((4, 1)), np.array([[[2.0]], [[3.0]]]), np.array([1, 2])).tolist()
    [[2.0], [3.0], [3.0], [0.0]]
    """

def ragged_dot_general(lhs: ArrayLike, rhs: ArrayLike, group_sizes: ArrayLike, ragged_dot_dimension_numbers: RaggedDotDimensionNumbers, precision: PrecisionLike = None, preferred_element_type: DTypeLike | None = None, group_offset: ArrayLike | None = None) -> Array:
    """`ragged_dot_general(lhs, rhs, group_sizes, ragged_dot_dimension_numbers, ...)`: products of groups of rows.

    The ragged axis of lhs is divided into groups of consecutive elements; `group_sizes` says how many each has. Its
    last axis enumerates groups. It may have more axes before: those of lhs that are batch axes, and those before the
    ragged one among the contracted or the other axes, whichever it is one of. Each of their elements is then divided in
    its own way.

    - If the ragged axis isn't contracted, rhs has an axis that enumerates groups: each group is multiplied by its part.
    - If it is contracted, the result has a new first axis, with the contraction within each group.
    - If it is a batch axis, this is `dot_general`.

    Elements in no group give zeros. `precision` and `preferred_element_type` are as in `dot_general`.

    >>> numbers = RaggedDotDimensionNumbers((((0,), (0,)), ((), ())), [0], [])
    >>> ragged_dot_general(np.ones((5, 1)), np.ones((5, 1)), np.array([2, 3]), numbers).tolist()
    [[[2.0]], [[3.0]]]
    """

def random_bits(keys: ArrayLike, /, *, bit_width: int, shape: __Shape) -> Array:
    """random_bits(keys; bit_width, shape): unsigned integers, an array of this shape for each key.

    >>> lax.random_bits(_KEYS, bit_width=8, shape=(2,)).shape
    (3, 2)
    """

def random_clone(keys: ArrayLike, /) -> Array:
    """random_clone(keys): the same keys, to be used again on purpose.

    >>> lax.random_clone(_KEY) == _KEY
    Array(True, dtype=bool)
    """

def random_erf(x: ArrayLike) -> Array:
    """The error function, as the compiler approximates it.

    >>> lax.random_erf(0.0)
    Array(0., dtype=float64, weak_type=True)
    """

def random_erf_inv(x: ArrayLike) -> Array:
    """The inverse of the error function, as the compiler approximates it.

    >>> lax.random_erf_inv(0.0)
    Array(0., dtype=float64, weak_type=True)
    """

def random_fold_in(keys: ArrayLike, data: ArrayLike, /) -> Array:
    """random_fold_in(keys, data): a new key for each, by a number.

    >>> lax.random_fold_in(_KEYS, np.arange(3, dtype=np.uint32)).shape
    (3,)
    """

def random_gamma(keys: ArrayLike, shape: ArrayLike, /, *, log_space: bool) -> Array:
    """random_gamma(keys, shape; log_space): numbers of the gamma distribution, or their logarithms.

    There is a key for each of the first axes; it is split for what these have.

    >>> key = THREEFRY.of(np.array([3, 5], np.uint32))
    >>> lax.random_gamma(key, np.array([0.5, 3.0]), log_space=False)
    Array([0.44692262, 0.68021051], dtype=float64)
    """

def random_gamma_grad(x: ArrayLike, y: ArrayLike) -> Array:
    """The derivative by a of a number x drawn from the gamma distribution of shape a, with igamma(a, x) kept.

    >>> random_gamma_grad(1.0, 1.0)
    Array(1.17356303, dtype=float64, weak_type=True)
    """

def random_lgamma(x: ArrayLike) -> Array:
    """The logarithm of the gamma function, as the compiler approximates it.

    >>> lax.random_lgamma(1.0)
    Array(0., dtype=float64, weak_type=True)
    """

def random_log1p(x: ArrayLike) -> Array:
    """log(1 + x), as the compiler approximates it.

    >>> lax.random_log1p(0.0)
    Array(0., dtype=float64, weak_type=True)
    """

def random_seed(seeds: ArrayLike, /, *, dtype: numpy.dtype) -> Array:
    """random_seed(seeds; dtype): keys, from integers, of which the lower 64 bits count.

    >>> lax.random_seed(np.array([7, -1]), dtype=THREEFRY.dtype)
    Array([00000000:00000007, ffffffff:ffffffff], dtype=key<fry>)
    """

def random_split(keys: ArrayLike, /, *, shape: __Shape) -> Array:
    """random_split(keys; shape): an array of new keys for each.

    >>> lax.random_split(_KEYS, shape=(2,)).shape
    (3, 2)
    """

def random_unwrap(keys: ArrayLike, /) -> Array:
    """random_unwrap(keys): what is stored of them, along the last axes.

    >>> lax.random_unwrap(_KEY)
    Array([3, 5], dtype=uint32)
    """

def random_wrap(words: ArrayLike, /, *, dtype: numpy.dtype) -> Array:
    """random_wrap(words; dtype): keys, from what is stored of them along the last axes.

    >>> lax.random_wrap(np.array([0, 7], np.uint32), dtype=THREEFRY.dtype)
    Array(00000000:00000007, dtype=key<fry>)
    """

def real(x: ArrayLike) -> Array:
    """The real part of a complex array.

    >>> real(np.array([1 + 2j])).tolist()
    [1.0]
    """

def reciprocal(x: ArrayLike) -> Array:
    """1 / x, for floats and complex numbers.

    >>> reciprocal(np.array([2.0, -4.0])).tolist()
    [0.5, -0.25]
    """

def reduce(operands: _Elements, init_values: Any, computation: Callable[[Any, Any], Any], dimensions: int | Sequence[int]) -> _Elements:
    """`reduce(operands, init_values, computation, dimensions)`: combine all elements along axes by a function.

    `operands` is an array, or a pytree of arrays of one shape; `init_values` has a scalar for each, which changes
    nothing that it is combined with; `computation(x, y)` combines two scalars, or two pytrees of them, and must be
    associative and commutative, since the order isn't specified. Without elements, the results are the `init_values`.

    >>> lax.reduce(np.array([[1.0, 5.0], [3.0, 4.0]]), 0.0, lambda x, y: x + y, (0,)).tolist()
    [4.0, 9.0]
    >>> x, y = lax.reduce((np.array([3.0, 1.0]), np.array([1, 2])), (np.inf, 0),
    ...                   lambda a, b: lax.cond(a[0] < b[0], lambda: a, lambda: b), (0,))
    >>> float(x), int(y)
    (1.0, 2)
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

def reduce_precision(operand: ArrayLike, exponent_bits: int, mantissa_bits: int) -> Array:
    """`reduce_precision(operand, exponent_bits, mantissa_bits)`: rounded as if floats had only so many bits.

    Numbers that are too large become infinite, and those that are too small zero. Tangents are rounded likewise: the
    derivative is that of the identity, in this precision.

    >>> reduce_precision(np.float32(1.2345), exponent_bits=5, mantissa_bits=3).item()
    1.25
    """

def reduce_prod(operand: ArrayLike, axes: int | Sequence[int] | None) -> Array:
    """`reduce_prod(operand, axes)`: the product along axes, in the operand's dtype; 1 if there are no elements.

    Floats narrower than 32 bits accumulate in float32.

    >>> lax.reduce_prod(np.array([[1.0, 2.0], [3.0, 4.0]]), (0,)).tolist()
    [3.0, 8.0]
    """

def reduce_scatter(x: ArrayLike, /, *, axis_name: Names, scatter_dimension: int, axis_index_groups: Groups, axis_size: int, tiled: bool) -> Array:
    """The sum over positions along named axes, of which each keeps a part. `psum_scatter` applies it.

    >>> import numpy as np, corejax as cj
    >>> def part(x):
    ...     return lax.reduce_scatter(x, axis_name=("i",), scatter_dimension=0, axis_index_groups=None, axis_size=2,
    ...                               tiled=False)
    >>> cj.vmap(part, axis_name="i")(np.array([[1.0, 2.0], [3.0, 4.0]])).tolist()
    [4.0, 6.0]
    """

def reduce_sum(operand: ArrayLike, axes: int | Sequence[int] | None) -> Array:
    """`reduce_sum(operand, axes)`: the sum along axes, in the operand's dtype; 0 if there are no elements.

    Floats narrower than 32 bits accumulate in float32.

    >>> lax.reduce_sum(np.array([[1.0, 2.0], [3.0, 4.0]]), (0,)).tolist()
    [4.0, 6.0]
    """

def reduce_window(operand: __Elements, init_value: Any, computation: Callable[[Any, Any], Any], window_dimensions: Sequence[int], window_strides: Sequence[int] | None = None, padding: str | Sequence[tuple[int, int]] = 'VALID', base_dilation: Sequence[int] | None = None, window_dilation: Sequence[int] | None = None) -> __Elements:
    """`reduce_window(operand, init_value, computation, window_dimensions, window_strides=None, padding="VALID", ...)`.

    `operand` is an array, or a pytree of arrays of one shape; `init_value` has a scalar for each, which changes nothing
    that it is combined with; `computation(x, y)` combines two scalars, or two pytrees of them, and must be associative.
    There is one entry for each axis in `window_dimensions`, `window_strides`, `base_dilation` and `window_dilation`,
    and a pair in `padding`, unless that is "VALID", "SAME" or "SAME_LOWER".

    >>> x = np.array([[1.0, 5.0, 2.0, 0.0], [3.0, 4.0, 7.0, 6.0]])
    >>> lax.reduce_window(x, -np.inf, lax.max, (2, 2), (1, 2)).tolist()
    [[5.0, 7.0]]
    >>> lax.reduce_window(x, 1.0, lax.mul, (1, 2), padding="SAME").tolist()
    [[5.0, 10.0, 0.0, 0.0], [12.0, 28.0, 42.0, 6.0]]
    """

def reduce_window_max(operand: ArrayLike, window_dimensions: Sequence[int], window_strides: Sequence[int] | None = None, padding: str | Sequence[tuple[int, int]] = 'VALID', base_dilation: Sequence[int] | None = None, window_dilation: Sequence[int] | None = None) -> Array:
    """`reduce_window_max(operand, window_dimensions, window_strides=None, padding="VALID", ...)`: windows' maxima.

    Where all of a window is padding, it is the least value of the dtype.

    >>> lax.reduce_window_max(np.array([1.0, 3.0, 2.0, 0.0]), (2,), (2,)).tolist()
    [3.0, 2.0]
    """

def reduce_window_min(operand: ArrayLike, window_dimensions: Sequence[int], window_strides: Sequence[int] | None = None, padding: str | Sequence[tuple[int, int]] = 'VALID', base_dilation: Sequence[int] | None = None, window_dilation: Sequence[int] | None = None) -> Array:
    """`reduce_window_min(operand, window_dimensions, window_strides=None, padding="VALID", ...)`: windows' minima.

    Where all of a window is padding, it is the greatest value of the dtype.

    >>> lax.reduce_window_min(np.array([1.0, 3.0, 2.0, 0.0]), (2,), (2,)).tolist()
    [1.0, 0.0]
    """

def reduce_window_shape_tuple(operand_shape: Sequence[int], window_dimensions: Sequence[int], window_strides: Sequence[int], padding: Sequence[tuple[int, int]], base_dilation: Sequence[int] | None = None, window_dilation: Sequence[int] | None = None) -> Ints:
    """How many windows there are along each axis of an operand of this shape.

    >>> reduce_window_shape_tuple((8, 8), (2, 3), (2, 1), ((0, 0), (1, 1)))
    (4, 8)
    """

def reduce_window_sum(operand: ArrayLike, window_dimensions: Sequence[int], window_strides: Sequence[int] | None = None, padding: str | Sequence[tuple[int, int]] = 'VALID', base_dilation: Sequence[int] | None = None, window_dilation: Sequence[int] | None = None) -> Array:
    """`reduce_window_sum(operand, window_dimensions, window_strides=None, padding="VALID", ...)`: windows' sums.

    >>> lax.reduce_window_sum(np.array([1.0, 2.0, 3.0, 4.0]), (2,), padding="SAME").tolist()
    [3.0, 5.0, 7.0, 4.0]
    """

def reduce_xor(operand: ArrayLike, axes: int | Sequence[int] | None) -> Array:
    """`reduce_xor(operand, axes)`: exclusive `or` along axes, bit by bit for integers; no bit set if there are none.

    >>> lax.reduce_xor(np.array([[True, False], [True, True]]), (0,)).tolist()
    [False, True]
    """

def regularized_incomplete_beta(a: ArrayLike, b: ArrayLike, x: ArrayLike, /) -> Array:
    """The regularized incomplete beta function: the integral of t^(a - 1) (1 - t)^(b - 1) from 0 to x, by B(a, b).

    >>> betainc(2.0, 3.0, 0.5)
    Array(0.6875, dtype=float64, weak_type=True)
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

def rng_bit_generator(key: ArrayLike, shape: Sequence[int], dtype: DTypeLike = ..., algorithm: RandomAlgorithm | int = ...) -> tuple[Array, Array]:
    """`rng_bit_generator(key, shape, dtype=uint32, algorithm=RandomAlgorithm.RNG_DEFAULT)`: a new key, and random bits.

    The key is a vector of two uint64, a seed and a counter, or of the four uint32 that these consist of. The new key is
    for the next call: its counter has grown by the blocks that were used. The bits are unsigned integers. On the CPU,
    `RNG_DEFAULT` is `RNG_PHILOX`; elsewhere it may be something else.

    >>> key, bits = rng_bit_generator(np.zeros(2, np.uint64), (2, 2))
    >>> key.tolist(), [hex(word) for word in bits.ravel().tolist()]
    ([0, 1], ['0x6627e8d5', '0xe169c58d', '0xbc57ac4c', '0x9b00dbd8'])
    """

def rng_uniform(a: ArrayLike, b: ArrayLike, shape: Sequence[int]) -> Array:
    """`rng_uniform(a, b, shape)`: numbers between `a` and `b`, from a generator of the device that has no key.

    Each call and each step of a loop gives other numbers, and nobody can have the same ones again, so a function that
    draws them can't be checkpointed or exported. Integers are below `b`; where `b <= a`, the results mean nothing.
    `rng_bit_generator` gives the same bits for the same key.

    >>> bool(rng_uniform(0.0, 1.0, (1000,)).max() < 1)
    True
    >>> rng_uniform(3, 4, (2,)).tolist()
    [3, 3]
    """

def round(x: ArrayLike, rounding_method: int = ...) -> Array:
    """`round(x, rounding_method=0)`: the nearest integer; halves away from zero, or to even.

    >>> round(np.array([0.5, 1.5, -0.5]), RoundingMethod.TO_NEAREST_EVEN).tolist()
    [0.0, 2.0, -0.0]
    """

def rsqrt(x: ArrayLike, *, accuracy: Tolerance | AccuracyMode | None = None) -> Array:
    """1 / sqrt(x).

    >>> rsqrt(4.0).item()
    0.5
    """

def scaled_dot(lhs: ArrayLike, rhs: ArrayLike, *, lhs_scale: ArrayLike | None = None, rhs_scale: ArrayLike | None = None, dimension_numbers: DotDimensionNumbers | None = None, preferred_element_type: DTypeLike | None = None) -> Array:
    """The product of `lhs * lhs_scale` and `rhs * rhs_scale`, multiplied as bfloat16.

    A scale has the axes of its operand. Along contracted axes it may be shorter: each of its elements is for a block of
    so many elements of the operand. Without a scale the operand is as it is. `dimension_numbers` are those of
    `dot_general`; without them, this is the matrix product over the last two axes. The result is bfloat16 unless
    `preferred_element_type` says otherwise.

    >>> scaled_dot(np.ones((1, 4)), np.ones((4, 1)), lhs_scale=np.array([[1.0, 2.0]])).item()
    6.0
    """

def scan(f: Callable[[Any, Any], tuple[Carry, Stacked]], init: Any, xs: Any = None, length: int | None = None, reverse: bool = False, unroll: int | bool = 1, _split_transpose: bool = False, *, checkpoint_every: int | None = None) -> tuple[Carry, Stacked]:
    """Call `f` with each slice of `xs`, one after the other, and with what it carries from one call to the next.

    `f(carry, x)` returns `(carry, y)`; `carry` starts as `init` and keeps its type, `x` is one slice of `xs` along the
    leading axis. Returns the last carry and the `y`s, stacked. All of them are pytrees of arrays. Without inputs, `xs`
    is None and `length` says how many steps there are; `reverse` starts at the end; `unroll` steps are compiled into
    each round of the loop (True: all of them). With `checkpoint_every`, reverse mode keeps the carry of every so many
    steps only, and computes the steps between them again: the gradient is the same. `_split_transpose` is there for
    JAX's sake, without effect.

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

def scatter_apply(operand: ArrayLike, scatter_indices: ArrayLike, func: Callable[[Array], Array], dimension_numbers: _ScatterDimensionNumbers, *, update_shape: Sequence[int] = (), indices_are_sorted: bool = False, unique_indices: bool = False, mode: str | None = None) -> Array:
    """The operand, with `func` applied to the elements of the windows at the indices; as often as there are windows.

    `func` takes and returns a scalar of the operand's dtype. `update_shape` is the shape that the updates of `scatter`
    would have; the other options are as there. With `unique_indices`, all windows are computed at once; otherwise by a
    `lax.scan`, one after the other, since they may overlap. Both have derivatives.

    >>> import numpy as np
    >>> numbers = ScatterDimensionNumbers((), inserted_window_dims=(0,), scatter_dims_to_operand_dims=(0,))
    >>> indices = np.array([[2], [2], [0]])
    >>> scatter_apply(np.array([1.0, 2.0, 3.0]), indices, lambda x: x * 2, numbers, update_shape=(3,)).tolist()
    [2.0, 2.0, 12.0]
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

def scatter_sub(operand: ArrayLike, scatter_indices: ArrayLike, updates: ArrayLike, dimension_numbers: ScatterDimensionNumbers, *, indices_are_sorted: bool = False, unique_indices: bool = False, mode: str | None = None) -> Array:
    """`scatter_sub(operand, scatter_indices, updates, dimension_numbers, ...)`: subtracts windows; repeated ones count.

    `mode` is as in `scatter`.

    >>> numbers = ScatterDimensionNumbers((), inserted_window_dims=(0,), scatter_dims_to_operand_dims=(0,))
    >>> scatter_sub(np.array([5, 5, 5]), np.array([[2], [2]]), np.array([1, 2]), numbers).tolist()
    [5, 5, 2]
    """

def segmented_scan(*operands: ArrayLike, jaxpr: Jaxpr, length: int, reverse: bool, num_consts: int, num_carry: int, unroll: int, every: int, unknown: _Flags) -> list[Array]:
    """`segmented_scan(*operands, ..., unknown=...)`: those results of a checkpointed scan that depend on tangents.

    `unknown` says which operands of the scan are tangents, a carry as it is in every step. In place of a carry that
    isn't, it takes what that is at the start of each segment; what it is in between is computed again.

    >>> sample = next(segmented_scan.primitive.samples(np.random.default_rng(0)))
    >>> len(segmented_scan(*sample.args, **sample.params))
    2
    """

def select(pred: ArrayLike, on_true: ArrayLike, on_false: ArrayLike) -> Array:
    """The elements of `on_true` where `pred` holds, and of `on_false` elsewhere.

    >>> select(np.array([True, False]), np.zeros(2), np.ones(2)).tolist()
    [0.0, 1.0]
    """

def select_and_gather_add(tangents: ArrayLike, operand: ArrayLike, select_prim: Primitive, window_dimensions: Sequence[int], window_strides: Sequence[int] | None = None, padding: str | Sequence[tuple[int, int]] = 'VALID', base_dilation: Sequence[int] | None = None, window_dilation: Sequence[int] | None = None) -> Array:
    """`select_and_gather_add(tangents, operand, select_prim, window_dimensions, ...)`: what the windows' best have.

    For each window of the operand, the element of `tangents` where the operand is largest (`lax.ge_p`) or smallest
    (`lax.le_p`); 0 where all of a window is padding.

    >>> lax.select_and_gather_add(np.array([1, 2, 3, 4]), np.array([7.0, 9.0, 5.0, 6.0]), lax.ge_p, (2,), (2,)).tolist()
    [2, 4]
    """

def select_and_scatter(operand: ArrayLike, select: Callable[..., Any], window_dimensions: Sequence[int], window_strides: Sequence[int] | None, padding: str | Sequence[tuple[int, int]], source: ArrayLike, init_value: ArrayLike, scatter: Callable[..., Any]) -> Array:
    """`select_and_scatter(operand, select, window_dimensions, window_strides, padding, source, init_value, scatter)`.

    `select(x, y)` says whether x stays selected beside y, of two elements of a window. There is one element of `source`
    for each window; `scatter(x, y)` combines those whose windows select the same element, beginning with `init_value`,
    which is also what all other elements get. Neither function may close over traced values.

    >>> x, pull = np.array([1.0, 5.0, 2.0, 3.0]), np.array([10.0, 20.0, 30.0])
    >>> lax.select_and_scatter(x, lax.ge, (2,), (1,), "VALID", pull, 0.0, lax.add).tolist()
    [0.0, 30.0, 0.0, 30.0]
    """

def select_and_scatter_add(source: ArrayLike, operand: ArrayLike, select_prim: Primitive, window_dimensions: Sequence[int], window_strides: Sequence[int] | None = None, padding: str | Sequence[tuple[int, int]] = 'VALID') -> Array:
    """`select_and_scatter_add(source, operand, select_prim, window_dimensions, ...)`: sums at the windows' best.

    There is one element of `source` for each window of the operand. It is added at the place where that window is
    largest (`lax.ge_p`) or smallest (`lax.le_p`); the result has the shape of the operand.

    >>> x = np.array([7.0, 9.0, 5.0, 6.0])
    >>> lax.select_and_scatter_add(np.array([1.0, 2.0, 3.0]), x, lax.ge_p, (2,)).tolist()
    [0.0, 3.0, 0.0, 3.0]
    """

def select_n(which: ArrayLike, *cases: ArrayLike) -> Array:
    """`select_n(which, *cases)`: each element comes from the case that `which` selects at its place.

    `which` is boolean for one or two cases (False is the first), or an integer, clamped to the number of cases. It is
    a scalar, or has the cases' shape.

    >>> select_n(np.array([True, False]), np.zeros(2), np.ones(2)).tolist()
    [1.0, 0.0]
    """

def shape_as_value(shape: Sequence[int]) -> numpy.ndarray:
    """The sizes as a vector of int32, to compute with.

    >>> shape_as_value((2, 3)).tolist()
    [2, 3]
    """

def shard_map(*operands: ArrayLike, jaxpr: Jaxpr, axes: Axes, mesh: AnyMesh, in_specs: Specs, out_specs: Specs) -> list[Array]:
    """`shard_map(*operands, jaxpr, axes, mesh, in_specs, out_specs)`: run a program on each device of a mesh.

    The program is of parts of the operands, and has no constvars. `axes` are those axes of the mesh along which each
    device has its own part.

    >>> import numpy as np, corejax as cj
    >>> mesh = cj.make_mesh((1,), ("i",))
    >>> run = cj.shard_map(lax.sin, mesh=mesh, in_specs=cj.P("i"), out_specs=cj.P("i"))
    >>> [eqn.primitive for eqn in cj.make_jaxpr(run)(np.ones(1)).eqns]
    [shard_map]
    """

def sharding_constraint(x: ArrayLike, /, *, sharding: NamedSharding) -> Array:
    """`sharding_constraint(x, *, sharding)`: the same array, divided among devices as the sharding says.

    >>> import numpy as np, corejax as cj
    >>> sharding = cj.NamedSharding(cj.make_mesh((1,), ("x",)), cj.P("x"))
    >>> lax.sharding_constraint(np.arange(3.0), sharding=sharding).tolist()
    [0.0, 1.0, 2.0]
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

def sin(x: ArrayLike, *, accuracy: Tolerance | AccuracyMode | None = None) -> Array:
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
    """`split(operand, sizes, axis=0)`: the parts of the operand of these sizes, along an axis.

    >>> [part.tolist() for part in split(np.arange(5), (2, 3))]
    [[0, 1], [2, 3, 4]]
    """

def sqrt(x: ArrayLike, *, accuracy: Tolerance | AccuracyMode | None = None) -> Array:
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
    """`stack(operands, axis=0)`: arrays of the same shape, stacked along a new axis.

    >>> stack([np.zeros(2), np.ones(2)]).tolist()
    [[0.0, 0.0], [1.0, 1.0]]
    """

def stage(x: ArrayLike, /) -> Array:
    """x, as a value of the program that is being traced; if there is none, as an array.

    >>> stage(2.0)
    Array(2., dtype=float64, weak_type=True)
    """

def stage_value(x: ArrayLike, /) -> Array:
    """`stage_value(x)`: x. Under `jit`, it is a value of the program.

    >>> stage_value(2.0)
    Array(2., dtype=float64, weak_type=True)
    """

def stop_gradient(x: ___Tree) -> ___Tree:
    """`stop_gradient(x)`: x, an array or a pytree of arrays, with a derivative of zero.

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
    types; all are traced, one is run. A single branch is called as it is.

    >>> switch(1, [lambda x: x + 1.0, lambda x: x - 2.0, lambda x: x + 3.0], 5.0).item()
    3.0
    """

def tan(x: ArrayLike, *, accuracy: Tolerance | AccuracyMode | None = None) -> Array:
    """The tangent.

    >>> tan(0.5)
    Array(0.54630249, dtype=float64, weak_type=True)
    """

def tanh(x: ArrayLike, *, accuracy: Tolerance | AccuracyMode | None = None) -> Array:
    """The hyperbolic tangent.

    >>> tanh(0.5)
    Array(0.46211716, dtype=float64, weak_type=True)
    """

def threefry2x32(k0: ArrayLike, k1: ArrayLike, x0: ArrayLike, x1: ArrayLike, /) -> list[Array]:
    """`threefry2x32(k0, k1, x0, x1)`: two words, mixed with a key of two words.

    >>> [hex(word.item()) for word in threefry2x32_p.primitive.bind(*[np.uint32(0)] * 4)]
    ['0x6b200159', '0x99ba4efe']
    """

def tile(operand: ArrayLike, reps: Sequence[int]) -> Array:
    """`tile(operand, reps)`: the operand repeated as a whole, a number of times along each axis.

    >>> tile(np.array([[1, 2]]), (2, 2)).tolist()
    [[1, 2, 1, 2], [1, 2, 1, 2]]
    """

def to_memory(x: ArrayLike, *, kind: str) -> Array:
    """`to_memory(x, kind=...)`: x, in memory of that kind where a compiled program's device has several.

    On a CPU, and outside of programs, it is x where it is. The kinds are XLA's: "device", "pinned_host".

    >>> to_memory(2.0, kind="pinned_host").item()
    2.0
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

def unstack(x: ArrayLike, axis: int = 0) -> tuple[Array, ...]:
    """`unstack(x, axis=0)`: the parts of an array along an axis, which they don't have.

    >>> [part.tolist() for part in unstack(np.array([[1, 2], [3, 4]]), axis=1)]
    [[1, 3], [2, 4]]
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
    `lax.bounded_while_loop`, `lax.scan`, or `lax.fori_loop` between bounds that are Python integers.

    >>> lax.while_loop(lambda x: x < 100.0, lambda x: x * 3.0, 1.0)
    Array(243., dtype=float64, weak_type=True)
    """

def with_accuracy(x: ArrayLike, /, *, function: str, accuracy: Canonical) -> Array:
    """`with_accuracy(x, function=name, accuracy=...)`: an elementwise function, at least as accurate as asked for.

    `accuracy` is "HIGHEST", or three tolerances: an absolute one, a relative one, and one in ulps. It is passed on to
    the compiler. Call the function itself, with its option `accuracy`.

    >>> lax.with_accuracy(0.0, function="cos", accuracy="HIGHEST").item()
    1.0
    """

def with_sharding_constraint(x: _______Tree, shardings: Any) -> _______Tree:
    """The same arrays, divided among devices as `shardings` says: one for all, or a prefix of the pytree `x`.

    A `PartitionSpec` stands for a sharding on the mesh of `with mesh:`. `P.UNCONSTRAINED` leaves a dimension to the
    compiler. Within `jit`, sizes needn't be multiples of those of the mesh: 10 over 8 is fine. Outside of it, arrays
    are moved, and all parts of an array have one size.

    >>> import numpy as np, corejax as cj
    >>> sharding = cj.NamedSharding(cj.make_mesh((1,), ("x",)), cj.P("x"))
    >>> cj.jit(lambda x: lax.with_sharding_constraint(x * 2.0, sharding))(np.arange(3.0)).tolist()
    [0.0, 2.0, 4.0]
    """

def xla_call(*operands: ArrayLike, jaxpr: Jaxpr, name: str = '', donated: __Flags | None = None, inline: bool = False, keep_unused: bool = False) -> list[Array]:
    """`xla_call(*operands, jaxpr=..., name="", donated=None, inline=False, keep_unused=False)`: call a jaxpr.

    The jaxpr has no constvars. `donated` says which operands' memory the program may reuse. With `inline`, the call is
    evaluated equation by equation instead, wherever a transformation is active.

    >>> staged = stage(lambda x: [x + 1.0], [ShapedArray((), "float64")])
    >>> xla_call(np.float64(2.0), jaxpr=staged.jaxpr)
    [Array(3., dtype=float64)]
    """

def xla_pmap(*operands: ArrayLike, mesh: Mesh, axis_name: Hashable, axis_size: int, backend: str | None, call_jaxpr: Jaxpr, devices: Any, donated_invars: carrying.Flags, global_axis_size: int | None, in_axes: Dims, name: str, out_axes: Dims) -> list[Array]:
    """`xla_pmap(*operands, call_jaxpr, axis_name, axis_size, in_axes, out_axes, ...)`: map a program over devices.

    The program is of one element of each operand along `in_axes`, and has no constvars. `donated_invars` says of which
    operands the memory may be used for results.

    >>> import numpy as np, corejax as cj
    >>> run = cj.pmap(lax.sin)
    >>> [eqn.primitive for eqn in cj.make_jaxpr(run)(np.ones(1)).eqns]
    [xla_pmap]
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
