"""StableHLO with regions: reductions, positions and running results.

Each function inserts operations at the current insertion point of `ctx` and returns a value.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
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
    ctx.fill(ctx.regions[0], [scalar, scalar], lambda a, b: [combine(a, b)])
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
    either = binary(ctx, "or")

    # Of many forms that say the same, this one becomes quick code for rows and for columns, alone and after others.
    def combine(a: Any, a_index: Any, b: Any, b_index: Any) -> list[Any]:
        a_wins = a_first = compare(ctx, a, b, direction)
        lower = compare(ctx, a_index, b_index, "LT")
        if dtypes.is_float(aval.dtype):
            a_is_nan = compare(ctx, a, a, "NE")
            a_wins = either(a_wins, a_is_nan)
            a_first = select(ctx, a_is_nan, either(lower, compare(ctx, b, b, "EQ")), a_first)
        a_first = select(ctx, compare(ctx, a, b, "EQ"), lower, a_first)
        return [select(ctx, a_wins, a, b), select(ctx, a_first, a_index, b_index)]

    value, index = [ctx.types[ShapedArray((), dtype)] for dtype in (aval.dtype, index_dtype)]
    ctx.fill(ctx.regions[0], [value, index, value, index], combine)
    return outs[1]


def running(ctx: Any, xs: Sequence[Any], aval: ShapedArray, axis: int, reverse: bool, start: Callable[..., Any],
            step: Callable[..., Any]) -> Any:
    """Running results along an axis: the first is `start(*rows)`, each other one `step(result before, *rows)`.

    All operands and the result have the type `aval`. Rows are what the operands have at one position along the axis.
    A single sequential pass, which on a CPU takes less time than any tree: a third of that of windows.
    """
    before, count, after = prod(aval.shape[:axis]), aval.shape[axis], prod(aval.shape[axis + 1:])
    flat = aval.update(shape=(before, count, after))
    whole, row, counter = [ctx.types[kind] for kind in (flat, flat.update(shape=(1, 1, after)), _COUNTER)]
    sizes = {"slice_sizes": ctx.ir.DenseI64ArrayAttr.get([1, 1, after])}

    def at(block: Any, position: Any) -> list[Any]:
        if reverse:
            position = binary(ctx, "subtract")(_counter(ctx, count - 1), position)
        return [block, position, _counter(ctx, 0)]

    def read(operands: Sequence[Any], where: Sequence[Any]) -> list[Any]:
        return [ctx.op("stablehlo.dynamic_slice", [x, *where], sizes, [row]) for x in operands]

    def write(out: Any, so_far: Any, where: Sequence[Any]) -> Any:
        return ctx.op("stablehlo.dynamic_update_slice", [out, so_far, *where], None, [whole])

    def along(block: Any, *state: Any) -> list[Any]:
        *operands, out = state
        where = at(block, _counter(ctx, 0))
        so_far = start(*read(operands, where))
        state = (block, *operands, write(out, so_far, where), so_far)
        return _counted(ctx, 1, count, [counter, *[whole] * len(state[1:-1]), row], state, onward)[1:-1]

    def onward(position: Any, block: Any, *state: Any) -> list[Any]:
        *operands, out, so_far = state
        where = at(block, position)
        so_far = step(so_far, *read(operands, where))
        return [block, *operands, write(out, so_far, where), so_far]

    zero = ctx.constant(np.zeros((), aval.dtype))
    out = ctx.op("stablehlo.broadcast_in_dim", [zero], {"broadcast_dimensions": ctx.ir.DenseI64ArrayAttr.get([])},
                 [whole])
    state = [*[ctx.op("stablehlo.reshape", [x], None, [whole]) for x in xs], out]
    found = (along(_counter(ctx, 0), *state) if before == 1 else
             _counted(ctx, 0, before, [whole] * len(state), state, along))
    return ctx.op("stablehlo.reshape", found[-1:], None, [ctx.types[aval]])


def running_by_windows(ctx: Any, x: Any, aval: ShapedArray, axis: int, reverse: bool, identity: Any, combine: Combine
                       ) -> Any:
    """Running results along an axis, each of a window that reaches back over the whole axis.

    Compilers for parallel machines turn it into a tree. In that, they may swap what they combine.
    """
    count = aval.shape[axis]
    padding = np.zeros((aval.ndim, 2), np.int64)
    padding[axis] = (0, count - 1) if reverse else (count - 1, 0)
    sizes = [count if d == axis else 1 for d in range(aval.ndim)]
    attributes = {"window_dimensions": ctx.ir.DenseI64ArrayAttr.get(sizes),
                  "padding": ctx.ir.DenseIntElementsAttr.get(padding)}
    start = ctx.constant(np.asarray(identity, aval.dtype))
    out = ctx.op("stablehlo.reduce_window", [x, start], attributes, [x.type], 1)
    scalar = ctx.types[ShapedArray((), aval.dtype)]
    ctx.fill(ctx.regions[0], [scalar, scalar], lambda a, b: [combine(a, b)])
    return out


_COUNTER = ShapedArray((), dtypes.int32)


def _counter(ctx: Any, value: int) -> Any:
    return ctx.constant(np.asarray(value, np.int32))


def _counted(ctx: Any, start: int, stop: int, kinds: Sequence[Any], state: Sequence[Any], body: Callable[..., list[Any]]
             ) -> list[Any]:
    """A loop over integers: `state = body(i, *state)` for each i from `start` on."""
    kinds = [ctx.types[_COUNTER], *kinds]
    outs = ctx.op("stablehlo.while", [_counter(ctx, start), *state], None, kinds, 2)
    condition, step = ctx.regions
    ctx.fill(condition, kinds, lambda i, *_: [compare(ctx, i, _counter(ctx, stop), "LT")])
    ctx.fill(step, kinds, lambda i, *state: [binary(ctx, "add")(i, _counter(ctx, 1)), *body(i, *state)])
    return outs[1:]  # type: ignore[no-any-return]


def _dimensions(ctx: Any, axes: Sequence[int]) -> dict[str, Any]:
    return {"dimensions": ctx.ir.DenseI64ArrayAttr.get(list(axes))}


def _integer(ctx: Any, value: int) -> Any:
    return ctx.ir.IntegerAttr.get(ctx.ir.IntegerType.get_signless(64), value)
