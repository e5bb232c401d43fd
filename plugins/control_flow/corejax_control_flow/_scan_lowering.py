"""`scan` in StableHLO: a counted loop that reads one slice of each input and writes one of each output.

The outputs are allocated up front and written in place. Constants and inputs pass through the loop unchanged, which
costs nothing: the compiler sees that no step writes to them. A scan in the step of a scan reads and writes the rows
that it shares with that in place, too: see `_nested_scans`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any, NamedTuple

import numpy as np

from corejax.core import Jaxpr, ShapedArray
from corejax.plugin import Effect
from corejax_control_flow._nested_scans import nested_scan

Values = list[Any]


class Row(NamedTuple):
    """A row of an array that a nested loop reads or writes in place: at these indices, which are MLIR values."""

    array: Any
    at: tuple[Any, ...]


class Loop(NamedTuple):
    """A scan to be lowered: the program of a step, and the number of operands of each kind."""

    ctx: Any
    jaxpr: Jaxpr
    length: int
    reverse: bool
    num_consts: int
    num_carry: int

    @property
    def y_avals(self) -> list[ShapedArray]:
        """The types of a step's outputs, without the carry."""
        return self.jaxpr.out_avals[self.num_carry:]

    def steps(self, count: int, consts: Values, carry: Values, xs: Values, ys: Values, start: Any
              ) -> tuple[Values, Values]:
        """The carry and the outputs after `count` steps, which read and write slices from `start` on, an MLIR value.

        All slices are read in one operation, and written in one.
        """
        ctx = self.ctx
        blocks = [read(ctx, x, start, count) for x in xs]
        rows: list[Values] = []
        for k in reversed(range(count)) if self.reverse else range(count):
            outs = ctx.call(self.jaxpr, [*consts, *carry, *[row(ctx, block, k) for block in blocks]], "scan_body")
            carry = outs[: self.num_carry]
            rows.append(outs[self.num_carry:])
        if self.reverse:
            rows.reverse()
        return carry, [write(ctx, y, [outs[i] for outs in rows], start) for i, y in enumerate(ys)]


def lower_scan(loop: Loop, args: Sequence[Any], unroll: int) -> Values:
    """The carry and the outputs of a scan, with `unroll` steps in each round of the loop."""
    ys = [empty(loop.ctx, loop.length, aval) for aval in loop.y_avals]
    carry, ys = lower_loop(loop, *_three([*args], loop), ys, unroll)
    return [*carry, *ys]


def lower_loop(loop: Loop, consts: Values, carry: Values, xs: Values, ys: Values, unroll: int) -> tuple[Values, Values]:
    """The carry, and the arrays in which the outputs are; inputs and outputs may be rows of arrays."""
    rounds, rest = divmod(loop.length, unroll)
    if rounds == 1:
        rounds, rest = 0, loop.length
    if rounds:
        carry, ys = _rounds(loop, consts, carry, xs, ys, rounds, unroll)
    if rest:
        start = integer(loop.ctx, 0 if loop.reverse else loop.length - rest, loop.length)
        carry, ys = _steps(loop, rest, consts, carry, xs, ys, start)
    return carry, [_array_of(y) for y in ys]


def _rounds(loop: Loop, consts: Values, carry: Values, xs: Values, ys: Values, rounds: int, unroll: int
            ) -> tuple[Values, Values]:
    """A loop of `rounds` rounds, each of `unroll` steps."""
    ctx, n = loop.ctx, loop.length
    indices = [*{i: None for x in (*xs, *ys) if isinstance(x, Row) for i in x.at}]
    sizes = len(indices), loop.num_consts, loop.num_carry, len(xs)

    def condition(count: Any, *_: Any) -> Values:
        return [compare_lt(ctx, count, integer(ctx, rounds, n))]

    def body(count: Any, *state: Any) -> Values:
        inside, consts, carry, arrays, outputs = parts(state, sizes)
        moved = dict(zip(indices, inside, strict=True))
        start = count if unroll == 1 else binary(ctx, "multiply", count, integer(ctx, unroll, n))
        if loop.reverse:
            start = binary(ctx, "subtract", integer(ctx, n - unroll, n), start)
        carry, outputs = _steps(loop, unroll, consts, carry, _with_arrays(xs, arrays, moved),
                                _with_arrays(ys, outputs, moved), start)
        return [binary(ctx, "add", count, integer(ctx, 1, n)), *inside, *consts, *carry, *arrays,
                *map(_array_of, outputs)]

    state = [*indices, *consts, *carry, *map(_array_of, xs), *map(_array_of, ys)]
    outs = while_op(ctx, [integer(ctx, 0, n), *state], condition, body)
    _, _, carry, _, arrays = parts(outs[1:], sizes)
    return carry, _with_arrays(ys, arrays, {i: i for i in indices})


def _steps(loop: Loop, count: int, consts: Values, carry: Values, xs: Values, ys: Values, start: Any
           ) -> tuple[Values, Values]:
    """The same as `loop.steps`; a scan in a single step reads and writes in place."""
    ctx = loop.ctx
    nested = None
    if count == 1 and ctx.partitioning is None:  # whoever divides arrays among devices gathers rows before inner loops
        nested = nested_scan(loop.jaxpr, ctx.eqn.primitive, loop.num_consts, loop.num_carry)
    if nested is None or max(loop.length, nested.inner.params["length"]) >= 2 ** 31:  # indices would be of two types
        return loop.steps(count, consts, carry, xs, ys, start)
    params = nested.inner.params
    inner = Loop(ctx, *[params[name] for name in Loop._fields[1:]])
    rows = [row(ctx, read(ctx, x, start, 1), 0) for i, x in enumerate(xs) if i not in nested.inputs]
    args = [*consts, *carry, *rows]
    found = iter(ctx.call(nested.before, args, "scan_body"))
    places = {inner.num_consts + inner.num_carry + j: _place(xs[i], start) for i, j in nested.inputs.items()}
    operands = [places[k] if k in places else next(found) for k in range(len(nested.inner.invars))]
    written = {j: _place(ys[i], start) for i, j in nested.outputs.items()}
    outs = [written[j] if j in written else empty(ctx, inner.length, aval) for j, aval in enumerate(inner.y_avals)]
    outer, ctx.eqn = ctx.eqn, nested.inner
    try:
        state, outs = lower_loop(inner, *_three(operands, inner), outs, params["unroll"])
    finally:
        ctx.eqn = outer
    others = [y for j, y in enumerate(outs) if j not in written]
    news = ctx.call(nested.after, [*args, *found, *state, *others], "scan_body")
    slices = iter(news[loop.num_carry:])
    return news[:loop.num_carry], [outs[nested.outputs[i]] if i in nested.outputs else
                                   write(ctx, y, [next(slices)], start) for i, y in enumerate(ys)]


def _three(operands: Values, loop: Loop) -> tuple[Values, Values, Values]:
    consts, carry, xs = parts(operands, (loop.num_consts, loop.num_carry))
    return consts, carry, xs


def _place(x: Any, index: Any) -> Row:
    """The row of an array, or of a row, at an index."""
    return Row(x.array, (*x.at, index)) if isinstance(x, Row) else Row(x, (index,))


def _array_of(x: Any) -> Any:
    """The array in which a row is; an array is in itself."""
    return x.array if isinstance(x, Row) else x


def _with_arrays(xs: Values, arrays: Values, moved: dict[Any, Any]) -> Values:
    """The same rows of other arrays."""
    return [Row(array, tuple([moved[i] for i in x.at])) if isinstance(x, Row) else array
            for x, array in zip(xs, arrays, strict=True)]


def parts(values: Sequence[Any], sizes: Sequence[int]) -> list[Values]:
    """The values in parts of these sizes, and the rest as one more part."""
    found, start = [], 0
    for size in sizes:
        found.append([*values[start:start + size]])
        start += size
    return [*found, [*values[start:]]]


def while_op(ctx: Any, state: Sequence[Any], condition: Callable[..., Values], body: Callable[..., Values],
             effects: Collection[Effect] = ()) -> Values:
    """A `stablehlo.while`, each function filling a region of it; returns the final state.

    A condition with `effects` is evaluated before the loop and at the end of each step: the compiler leaves out a
    region that decides where it knows how many steps there are, and such a region returns no tokens.
    """
    if effects:
        def step(_: Any, *state: Any) -> Values:
            new = body(*state)
            return [*condition(*new), *new]

        return while_op(ctx, [*condition(*state), *state], lambda going, *_: [going], step)[1:]
    # The compiler drops what has no elements, and then constants that no step changes. To drop all ends the process.
    spare = [] if state and not any([0 in value.type.shape for value in state]) else [integer(ctx, 0, 1)]

    def loop(tokens: Values, token_types: Values) -> Any:
        kinds = [*token_types, *[value.type for value in (*spare, *state)]]
        outs = ctx.op("stablehlo.while", [*tokens, *spare, *state], None, kinds, 2)
        for region, write_region in zip(ctx.regions, (condition, body), strict=True):
            block = region.blocks.append(*kinds)
            passed, count, inner = parts(list(block.arguments), (len(tokens), len(spare)))
            with ctx.inside(block, passed):
                outputs = write_region(*inner)
                if write_region is body:
                    outputs = [*ctx.tokens, *[binary(ctx, "add", x, integer(ctx, 1, 1)) for x in count], *outputs]
                ctx.op("stablehlo.return", outputs, None, [])
        return outs

    found: Values = ctx.in_order(loop)
    return found[len(spare):]


def integer(ctx: Any, value: int, bound: int) -> Any:
    """An integer constant of a width that can hold `bound`, for counters and indices."""
    return ctx.constant(np.asarray(value, np.int32 if bound < 2 ** 31 else np.int64))


def binary(ctx: Any, name: str, x: Any, y: Any) -> Any:
    """`stablehlo.name` of two values of the same type."""
    return ctx.op(f"stablehlo.{name}", [x, y], None, [x.type])


def compare_lt(ctx: Any, x: Any, y: Any) -> Any:
    """x < y for signed integers."""
    attributes = {"comparison_direction": ctx.attribute("#stablehlo<comparison_direction LT>"),
                  "compare_type": ctx.attribute("#stablehlo<comparison_type SIGNED>")}
    return ctx.op("stablehlo.compare", [x, y], attributes, [ctx.type_of(ShapedArray((), "bool"))])


def empty(ctx: Any, length: int, aval: ShapedArray) -> Any:
    """An array for `length` values of a type, yet to be written."""
    kind = ctx.type_of(aval.update(shape=(length, *aval.shape)))
    zero = ctx.constant(np.zeros((), aval.stored.dtype))
    return ctx.op("stablehlo.broadcast_in_dim", [zero], {"broadcast_dimensions": _i64s(ctx, [])}, [kind])


def read(ctx: Any, x: Any, start: Any, count: int) -> Any:
    """`count` slices of `x` along its first axis, from `start` on."""
    if isinstance(x, Row):
        sizes = [*[1] * len(x.at), count, *x.array.type.shape[len(x.at) + 1:]]
        found = ctx.op("stablehlo.dynamic_slice", [x.array, *_start(ctx, [*x.at, start], len(sizes))],
                       {"slice_sizes": _i64s(ctx, sizes)}, [_shaped(ctx, x.array, sizes)])
        return ctx.op("stablehlo.reshape", [found], None, [_shaped(ctx, found, sizes[len(x.at):])])
    shape = x.type.shape
    if count == shape[0]:
        return x
    return ctx.op("stablehlo.dynamic_slice", [x, *_start(ctx, [start], len(shape))],
                  {"slice_sizes": _i64s(ctx, [count, *shape[1:]])}, [_with_rows(ctx, x, count)])


def row(ctx: Any, block: Any, k: int) -> Any:
    """The k-th slice of a block along its first axis, which is dropped."""
    shape = block.type.shape
    if shape[0] > 1:
        rank = len(shape)
        block = ctx.op("stablehlo.slice", [block], {
            "start_indices": _i64s(ctx, [k] + [0] * (rank - 1)), "limit_indices": _i64s(ctx, [k + 1, *shape[1:]]),
            "strides": _i64s(ctx, [1] * rank)}, [_with_rows(ctx, block, 1)])
    return ctx.op("stablehlo.reshape", [block], None, [
        ctx.ir.RankedTensorType.get(shape[1:], block.type.element_type)])


def write(ctx: Any, xs: Any, rows: Values, start: Any) -> Any:
    """`xs` with these slices written along its first axis, from `start` on."""
    array, at = (xs.array, xs.at) if isinstance(xs, Row) else (xs, ())
    shape = array.type.shape[len(at):]
    kind = _shaped(ctx, array, [1, *shape[1:]])
    block = [ctx.op("stablehlo.reshape", [x], None, [kind]) for x in rows]
    if len(block) > 1:
        block = [ctx.op("stablehlo.concatenate", block, {"dimension": ctx.attribute("0 : i64")},
                        [_shaped(ctx, array, [len(block), *shape[1:]])])]
    if at:
        block = [ctx.op("stablehlo.reshape", block, None, [_shaped(ctx, array, [
            *[1] * len(at), len(rows), *shape[1:]])])]
    elif len(rows) == shape[0]:
        return block[0]
    array = ctx.op("stablehlo.dynamic_update_slice", [
        array, *block, *_start(ctx, [*at, start], len(at) + len(shape))], None, [array.type])
    return Row(array, at) if at else array


def _with_rows(ctx: Any, x: Any, count: int) -> Any:
    """The type of `x` with a different size along the first axis."""
    return _shaped(ctx, x, [count, *x.type.shape[1:]])


def _shaped(ctx: Any, x: Any, shape: Sequence[int]) -> Any:
    """The type of elements of `x` in this shape."""
    return ctx.ir.RankedTensorType.get(shape, x.type.element_type)


def _start(ctx: Any, indices: Values, rank: int) -> Values:
    """Where a slice starts: at these indices along the first axes, at 0 along the others."""
    if rank == len(indices):
        return indices
    kind = indices[0].type
    zero = ctx.op("stablehlo.constant", [], {"value": ctx.ir.DenseElementsAttr.get_splat(
        kind, ctx.ir.IntegerAttr.get(kind.element_type, 0))}, [kind])
    return [*indices, *[zero] * (rank - len(indices))]


def _i64s(ctx: Any, values: Sequence[int]) -> Any:
    return ctx.ir.DenseI64ArrayAttr.get(values)
