"""Where operations come from: for those who read a program with its debug information."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from corejax.base.source import line_of
from corejax.kernel.primitive import Primitive


class LocatedRules(dict[Any, Callable[..., Any]]):
    """The lowering rules of a module, each of which says of its operations which equation they come from."""

    def __init__(self, ctx: Any) -> None:
        super().__init__()
        self._ctx = ctx

    def get(self, primitive: Primitive, default: Any = None) -> Any:
        found = super().get(primitive)
        if found is None:
            found = self[primitive] = _located(primitive.lowering(self._ctx.platform))
        return found


def _located(rule: Callable[..., Any]) -> Callable[..., Any]:
    def lowering(ctx: Any, args: Any, /, **params: Any) -> Any:
        with _location(ctx):
            return rule(ctx, args, **params)
    return lowering


def _location(ctx: Any) -> Any:
    """The place of the equation at hand: its name with the named scopes around it, and file and line if known."""
    eqn, location = ctx.eqn, ctx.ir.Location
    name = "/".join([*eqn.scope, eqn.primitive.name])
    if eqn.source is None:
        return location.name(name, context=ctx.context)
    place = location.file(eqn.source[0].co_filename, line_of(eqn.source), 0, context=ctx.context)
    return location.name(name, place, context=ctx.context)
