"""`while_loop` in StableHLO."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from corejax.core import ShapedArray, dtypes
from corejax_control_flow._scan_lowering import while_op
from corejax_control_flow._while_forms import Loop


def lower_while(ctx: Any, loop: Loop, args: Sequence[Any]) -> list[Any]:
    """The results of a loop."""
    lowering = _Lowering(ctx, loop)
    return lowering.masked(args) if loop.cond.out_avals[0].shape else lowering.plain(args)


class _Lowering(NamedTuple):
    """A loop in StableHLO. Constants travel through it unchanged, which costs nothing."""

    ctx: Any
    loop: Loop

    def _cond(self, operands: Sequence[Any]) -> Any:
        cond_consts, _, carry = self.loop.operands(operands)
        return self.ctx.call(self.loop.cond, [*cond_consts, *carry], "while_cond")[0]

    def _body(self, operands: Sequence[Any]) -> list[Any]:
        cond_consts, body_consts, carry = self.loop.operands(operands)
        return [*cond_consts, *body_consts, *self.ctx.call(self.loop.body, [*body_consts, *carry], "while_body")]

    def plain(self, args: Sequence[Any]) -> list[Any]:
        """The loop on a condition that is one boolean."""
        spare = [] if args else [self.ctx.constant(np.False_)]  # a loop has a state
        outs = while_op(self.ctx, [*spare, *args], lambda *state: [self._cond(state[len(spare):])],
                        lambda *state: [*state[: len(spare)], *self._body(state[len(spare):])])
        return self.loop.operands(outs[len(spare):])[2]

    def masked(self, args: Sequence[Any]) -> list[Any]:
        """The loop that runs as long as any boolean holds, and changes what is carried only where it does.

        The condition of the next round is part of the state: it is evaluated once for each.
        """
        ctx, n = self.ctx, self.loop.cond_nconsts + self.loop.body_nconsts

        def body(going: Any, *state: Any) -> list[Any]:
            new = self._body(state)
            new[n:] = [self._select(going, x, y) for x, y in zip(new[n:], state[n:], strict=True)]
            return [self._cond(new), *new]

        outs = while_op(ctx, [self._cond(args), *args], lambda going, *_: [self._any(going)], body)
        return outs[1 + n:]

    def _select(self, going: Any, new: Any, old: Any) -> Any:
        """The new value where the loop goes on; its leading axes are those of the condition."""
        ctx, shape = self.ctx, new.type.shape
        if shape != going.type.shape:
            axes = ctx.ir.DenseI64ArrayAttr.get(range(len(going.type.shape)))
            kind = ctx.type_of(ShapedArray(tuple(shape), dtypes.bool_))
            going = ctx.op("stablehlo.broadcast_in_dim", [going], {"broadcast_dimensions": axes}, [kind])
        return ctx.op("stablehlo.select", [going, new, old], None, [new.type])

    def _any(self, going: Any) -> Any:
        ctx = self.ctx
        scalar = ctx.type_of(ShapedArray((), dtypes.bool_))
        axes = ctx.ir.DenseI64ArrayAttr.get(range(len(going.type.shape)))
        found = ctx.op("stablehlo.reduce", [going, ctx.constant(np.False_)], {"dimensions": axes}, [scalar], 1)
        block = found.owner.regions[0].blocks.append(scalar, scalar)
        with ctx.ir.InsertionPoint(block):
            ctx.op("stablehlo.return", [ctx.op("stablehlo.or", block.arguments, None, [scalar])], None, [])
        return found
