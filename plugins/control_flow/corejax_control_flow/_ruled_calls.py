"""What calls of a program have in common for which a user's object `call` says something more: a rule."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from corejax.core import Jaxpr, ShapedArray, aval_of, eval_jaxpr
from corejax.plugin import carrying, hookimpl


class RuledCall:
    """Hooks of a primitive that calls its param `jaxpr`: those about which its param `call` says nothing."""

    name: str
    tracks_varying = True
    operands = ("*operands",)
    multiple_results = True
    symbolic_zeros = True

    @hookimpl
    def evaluate(self, args: Any, *, call: Any, jaxpr: Jaxpr) -> list[Any]:
        if len(args) != len(jaxpr.invars):
            carrying.check_operands(self.name, jaxpr, [aval_of(x) for x in args])
        return eval_jaxpr(jaxpr, (), *args)

    @hookimpl
    def abstract_eval(self, avals: Any, *, call: Any, jaxpr: Jaxpr) -> list[ShapedArray]:
        carrying.check_operands(self.name, jaxpr, avals)
        return jaxpr.out_avals

    @hookimpl
    def xla_translation(self, ctx: Any, args: Any, *, jaxpr: Jaxpr) -> Any:
        return ctx.call(jaxpr, args)

    @hookimpl
    def effects(self, avals: Any, *, jaxpr: Jaxpr) -> frozenset[Any]:
        return jaxpr.effects

    def widened(self, axes: Sequence[Any], *, call: Any, jaxpr: Jaxpr) -> dict[str, Any]:
        """The program for operands that vary along these axes of a mesh."""
        return {"jaxpr": carrying.retyped(jaxpr, axes)}
