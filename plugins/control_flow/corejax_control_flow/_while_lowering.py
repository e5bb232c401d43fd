"""StableHLO of a while loop."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from corejax.core import ShapedArray, dtypes
from corejax_control_flow._scan_lowering import while_op
from corejax_control_flow._while_rules import Loop


class Lowering(NamedTuple):
    """A loop in StableHLO. Constants pass through it unchanged, which costs nothing."""

    ctx: Any
    loop: Loop

    def _cond(self, operands: Sequence[Any]) -> Any:
        cond_consts, _, carry = self.loop.operands(operands)
        return self.ctx.call(self.loop.cond, [*cond_consts, *carry], "while_cond")[0]

    def _body(self, operands: Sequence[Any]) -> list[Any]:
        cond_consts, body_consts, carry = self.loop.operands(operands)
        return [*cond_consts, *body_consts, *self.ctx.call(self.loop.body, [*body_consts, *carry], "while_body")]

    def plain(self, args: Sequence[Any]) -> list[Any]:
        """The loop for a condition that is a single boolean."""
        outs = while_op(self.ctx, args, lambda *state: [self._cond(state)], lambda *state: self._body(state),
                        self.loop.cond.effects)
        return self.loop.operands(outs)[2]

    def masked(self, args: Sequence[Any]) -> list[Any]:
        """The loop that runs while any boolean holds, and changes the carry only where it holds.

        The condition for the next round is part of the state, so it is evaluated once per round.
        """
        ctx, n = self.ctx, self.loop.cond_nconsts + self.loop.body_nconsts

        def body(going: Any, *state: Any) -> list[Any]:
            new = self._body(state)
            new[n:] = [self._select(going, x, y) for x, y in zip(new[n:], state[n:], strict=True)]
            return [self._cond(new), *new]

        outs = while_op(ctx, [self._cond(args), *args], lambda going, *_: [self._any(going)], body)
        return outs[1 + n:]

    def _select(self, going: Any, new: Any, old: Any) -> Any:
        """The new value where the loop goes on, else the old one. Their leading axes are those of the condition."""
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
        block = ctx.regions[0].blocks.append(scalar, scalar)
        with ctx.ir.InsertionPoint(block):
            ctx.op("stablehlo.return", [ctx.op("stablehlo.or", block.arguments, None, [scalar])], None, [])
        return found
