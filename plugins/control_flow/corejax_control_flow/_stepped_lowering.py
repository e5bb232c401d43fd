"""StableHLO of loops over at most `length` steps, which read and write a slice in each: `lax.scan`'s steps in a while.

How many steps there are is known when the loop runs: from an operand, or from a condition of the carry.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from corejax.core import Jaxpr, ShapedArray
from corejax_control_flow._scan_lowering import Loop, Values, binary, compare_lt, empty, integer, parts, while_op


def lower_counted(loop: Loop, count: Any, args: Sequence[Any]) -> Values:
    """The carry and the outputs after as many steps as the largest of `count` says."""
    ctx = loop.ctx
    sizes = 1, loop.num_consts, loop.num_carry, len(args) - loop.num_consts - loop.num_carry
    ys = [empty(ctx, loop.length, aval) for aval in loop.y_avals]

    def condition(step: Any, count: Any, *_: Any) -> Values:
        return [compare_lt(ctx, step, count)]

    def body(step: Any, *state: Any) -> Values:
        (count,), consts, carry, xs, ys = parts(state, sizes)
        one = integer(ctx, 1, loop.length)
        after = binary(ctx, "add", step, one)
        row = binary(ctx, "subtract", count, after) if loop.reverse else step
        carry, ys = loop.steps(1, consts, carry, xs, ys, row)
        return [after, count, *consts, *carry, *xs, *ys]

    count = binary(ctx, "minimum", _reduced(ctx, "maximum", count, 0), integer(ctx, loop.length, loop.length))
    outs = while_op(ctx, [integer(ctx, 0, loop.length), count, *args, *ys], condition, body)
    _, _, carry, _, ys = parts(outs[1:], sizes)
    return [*carry, *ys]


def lower_bounded(loop: Loop, cond: Jaxpr, cond_consts: Values, args: Sequence[Any]) -> Values:
    """The number of steps, the carry and the outputs when `cond` holds nowhere or all steps are taken."""
    ctx = loop.ctx
    sizes = len(cond_consts), loop.num_consts, loop.num_carry
    ys = [empty(ctx, loop.length, aval) for aval in loop.y_avals]

    def condition(step: Any, *state: Any) -> Values:
        cond_consts, _, carry, _ = parts(state, sizes)
        holds = _reduced(ctx, "or", ctx.call(cond, [*cond_consts, *carry], "while_cond")[0], False)
        return [binary(ctx, "and", compare_lt(ctx, step, integer(ctx, loop.length, loop.length)), holds)]

    def body(step: Any, *state: Any) -> Values:
        cond_consts, consts, carry, ys = parts(state, sizes)
        carry, ys = loop.steps(1, consts, carry, [], ys, step)
        return [binary(ctx, "add", step, integer(ctx, 1, loop.length)), *cond_consts, *consts, *carry, *ys]

    count, *outs = while_op(ctx, [integer(ctx, 0, loop.length), *cond_consts, *args, *ys], condition, body,
                            cond.effects)
    _, _, carry, ys = parts(outs, sizes)
    return [count, *carry, *ys]


def _reduced(ctx: Any, name: str, x: Any, start: int | bool) -> Any:
    """`stablehlo.name` of all elements."""
    if not x.type.shape:
        return x
    scalar = ctx.ir.RankedTensorType.get([], x.type.element_type)
    axes = ctx.ir.DenseI64ArrayAttr.get(range(len(x.type.shape)))
    is_bool = isinstance(start, bool)
    first = ctx.constant(np.bool_(start)) if is_bool else integer(ctx, start, 2 ** (x.type.element_type.width - 1) - 1)
    found = ctx.op("stablehlo.reduce", [x, first], {"dimensions": axes}, [scalar], 1)
    block = ctx.regions[0].blocks.append(scalar, scalar)
    with ctx.ir.InsertionPoint(block):
        ctx.op("stablehlo.return", [ctx.op(f"stablehlo.{name}", block.arguments, None, [scalar])], None, [])
    return found


def count_type(length: int) -> ShapedArray:
    """The type of a number of steps that is at most `length`."""
    return ShapedArray((), np.dtype("int32" if length < 2 ** 31 else "int64"))
