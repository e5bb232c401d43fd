"""StableHLO with regions: reductions, positions and running sums.

Each function inserts operations at the current insertion point of `ctx` and returns a value.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from corejax.core import ShapedArray, dtypes

#: Combines two MLIR values of rank 0 into one.
Combine = Callable[[Any, Any], Any]


def binary(ctx: Any, operation: str) -> Combine:
    """A StableHLO operation whose two operands and result have the same type."""
    name = f"stablehlo.{operation}"
    return lambda x, y: ctx.op(name, [x, y], None, [x.type])


def compare(ctx: Any, x: Any, y: Any, direction: str) -> Any:
    """A boolean: whether `x` compares with `y` in this `direction` (`GT`, `EQ`, ...)."""
    attribute = ctx.ir.Attribute.parse(f"#stablehlo<comparison_direction {direction}>")
    shape = tuple(x.type.shape)
    return ctx.op("stablehlo.compare", [x, y], {"comparison_direction": attribute},
                  [ctx.types[ShapedArray(shape, dtypes.bool_)]])


def select(ctx: Any, pred: Any, on_true: Any, on_false: Any) -> Any:
    """One of two values, elementwise."""
    return ctx.op("stablehlo.select", [pred, on_true, on_false], None, [on_true.type])


def convert(ctx: Any, x: Any, shape: tuple[int, ...], dtype: np.dtype) -> Any:
    """A value in another dtype."""
    return ctx.op("stablehlo.convert", [x], None, [ctx.types[ShapedArray(shape, dtype)]])


def reduce(ctx: Any, x: Any, out_aval: ShapedArray, axes: Sequence[int], identity: Any, combine: Combine) -> Any:
    """`combine` along axes, starting from its identity."""
    out = ctx.op("stablehlo.reduce", [x, ctx.constant(identity)], _dimensions(ctx, axes), [ctx.types[out_aval]], 1)
    scalar = ctx.types[ShapedArray((), out_aval.dtype)]
    _fill(ctx, out.owner.regions[0], [scalar, scalar], lambda a, b: [combine(a, b)])
    return out


def position(ctx: Any, x: Any, aval: ShapedArray, axis: int, index_dtype: np.dtype, worst: Any, direction: str) -> Any:
    """The index of the best element along an axis; `direction` is how it compares with the others.

    The operation is commutative, so it doesn't matter in which order the compiler combines: NaN beats numbers, and
    among equals (including NaNs) the lower index wins.
    """
    kind = ShapedArray(aval.shape, index_dtype)
    counted = ctx.op("stablehlo.iota", [], {"iota_dimension": _integer(ctx, axis)}, [ctx.types[kind]])
    shape = (*aval.shape[:axis], *aval.shape[axis + 1:])
    outs = ctx.op("stablehlo.reduce",
                  [x, counted, ctx.constant(np.asarray(worst, aval.dtype)), ctx.constant(np.zeros((), index_dtype))],
                  _dimensions(ctx, (axis,)),
                  [ctx.types[ShapedArray(shape, dtype)] for dtype in (aval.dtype, index_dtype)], 1)
    is_float = dtypes.is_float(aval.dtype)

    def claims(a: Any, b: Any) -> Any:
        better = compare(ctx, a, b, direction)
        return ctx.op("stablehlo.or", [better, compare(ctx, a, a, "NE")], None, [better.type]) if is_float else better

    def combine(a: Any, a_index: Any, b: Any, b_index: Any) -> list[Any]:
        a_claims, b_claims = claims(a, b), claims(b, a)
        a_wins = select(ctx, compare(ctx, a_claims, b_claims, "EQ"), compare(ctx, a_index, b_index, "LT"), a_claims)
        return [select(ctx, a_wins, a, b), select(ctx, a_wins, a_index, b_index)]

    value, index = [ctx.types[ShapedArray((), dtype)] for dtype in (aval.dtype, index_dtype)]
    _fill(ctx, outs[0].owner.regions[0], [value, index, value, index], combine)
    return outs[1]


def running_sum(ctx: Any, x: Any, aval: ShapedArray, axis: int, reverse: bool) -> Any:
    """For each element, the sum up to it along an axis, or from it to the end if `reverse`."""
    if aval.shape[axis] <= 1 or not aval.size:
        return x
    if ctx.platform == "cpu":
        return _running_sum_by_loop(ctx, x, aval, axis, reverse)
    return _running_sum_by_windows(ctx, x, aval, axis, reverse)


def _running_sum_by_loop(ctx: Any, x: Any, aval: ShapedArray, axis: int, reverse: bool) -> Any:
    """A single sequential pass: on a CPU, two to five times as fast as windows, which compute a tree."""
    count = aval.shape[axis]
    counter = ctx.types[ShapedArray((), dtypes.int32)]
    row = ctx.types[aval.update(shape=(*aval.shape[:axis], 1, *aval.shape[axis + 1:]))]
    sizes = {"slice_sizes": ctx.ir.DenseI64ArrayAttr.get([1 if d == axis else n for d, n in enumerate(aval.shape)])}
    add = binary(ctx, "add")

    def integer(value: int) -> Any:
        return ctx.constant(np.asarray(value, np.int32))

    def start(step: Any) -> list[Any]:
        at = binary(ctx, "subtract")(integer(count - 1), step) if reverse else step
        return [at if d == axis else integer(0) for d in range(aval.ndim)]

    def body(step: Any, operand: Any, sums: Any, so_far: Any) -> list[Any]:
        indices = start(step)
        so_far = add(so_far, ctx.op("stablehlo.dynamic_slice", [operand, *indices], sizes, [row]))
        sums = ctx.op("stablehlo.dynamic_update_slice", [sums, so_far, *indices], None, [x.type])
        return [add(step, integer(1)), operand, sums, so_far]

    zeros = ctx.constant(np.zeros((), aval.dtype))
    empty = {"broadcast_dimensions": ctx.ir.DenseI64ArrayAttr.get([])}
    carry = [integer(0), x, *[ctx.op("stablehlo.broadcast_in_dim", [zeros], empty, [kind]) for kind in (x.type, row)]]
    kinds = [counter, x.type, x.type, row]
    outs = ctx.op("stablehlo.while", carry, None, kinds, 2)
    condition, step = outs[0].owner.regions
    _fill(ctx, condition, kinds, lambda step, *_: [compare(ctx, step, integer(count), "LT")])
    _fill(ctx, step, kinds, body)
    return outs[2]


def _running_sum_by_windows(ctx: Any, x: Any, aval: ShapedArray, axis: int, reverse: bool) -> Any:
    """A window that reaches back over the whole axis; compilers for parallel machines turn it into a tree."""
    count = aval.shape[axis]
    padding = np.zeros((aval.ndim, 2), np.int64)
    padding[axis] = (0, count - 1) if reverse else (count - 1, 0)
    sizes = [count if d == axis else 1 for d in range(aval.ndim)]
    attributes = {"window_dimensions": ctx.ir.DenseI64ArrayAttr.get(sizes),
                  "padding": ctx.ir.DenseIntElementsAttr.get(padding)}
    out = ctx.op("stablehlo.reduce_window", [x, ctx.constant(np.zeros((), aval.dtype))], attributes, [x.type], 1)
    scalar = ctx.types[ShapedArray((), aval.dtype)]
    add = binary(ctx, "add")
    _fill(ctx, out.owner.regions[0], [scalar, scalar], lambda a, b: [add(a, b)])
    return out


def _fill(ctx: Any, region: Any, kinds: Sequence[Any], body: Callable[..., Sequence[Any]]) -> None:
    """Fill a region with a block that has arguments of these types and returns the results of `body`."""
    block = region.blocks.append(*kinds)
    with ctx.ir.InsertionPoint(block):
        ctx.op("stablehlo.return", body(*block.arguments), None, [])


def _dimensions(ctx: Any, axes: Sequence[int]) -> dict[str, Any]:
    return {"dimensions": ctx.ir.DenseI64ArrayAttr.get(list(axes))}


def _integer(ctx: Any, value: int) -> Any:
    return ctx.ir.IntegerAttr.get(ctx.ir.IntegerType.get_signless(64), value)
