"""Where operations come from, as debug information in the program."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from corejax.base.source import line_of
from corejax.kernel.primitive import Primitive, Rule

if TYPE_CHECKING:
    from corejax.xla.lowering.programs import Lowering


class LocatedRules(dict[Primitive, Rule]):
    """The lowering rules of a module, wrapped to record which equation each operation comes from."""

    def __init__(self, ctx: Lowering) -> None:
        super().__init__()
        self._ctx = ctx

    def get(self, primitive: Primitive, default: object = None) -> Rule:
        found = super().get(primitive)
        if found is None:
            found = self[primitive] = _located(primitive.lowering(self._ctx.platform))
        return found


def _located(rule: Rule) -> Rule:
    def lowering(ctx: Lowering, args: object, /, **params: Any) -> Any:
        with _location(ctx):
            return rule(ctx, args, **params)
    return lowering


def _location(ctx: Lowering) -> Any:
    """The current equation's location: its name within its named scopes, with file and line if known."""
    eqn, location = ctx.eqn, ctx.ir.Location
    assert eqn is not None
    name = "/".join([*eqn.scope, eqn.primitive.name])
    if eqn.source is None:
        return location.name(name, context=ctx.context)
    place = location.file(eqn.source[0].co_filename, line_of(eqn.source), 0, context=ctx.context)
    return location.name(name, place, context=ctx.context)
