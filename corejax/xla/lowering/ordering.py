"""Tokens: values of a program that keep ordered effects in order. Each operation with such an effect needs the last's.

They are those of a function or a region, which gets them as arguments and returns them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from corejax.base.effects import Effect
from corejax.kernel.checks import tokens_left_behind

if TYPE_CHECKING:
    from corejax.base._jaxlib import Block


class Tokens:
    """The last token of each ordered effect, and the block that it is in."""

    __slots__ = ("_last",)

    def __init__(self) -> None:
        self._last: dict[Effect, tuple[Any, Block]] = {}

    def take(self, ctx: Any, effects: Sequence[Effect]) -> list[Any]:
        """The tokens of these effects. Raises within a region that doesn't get and return them: order would be lost."""
        found = []
        for effect in effects:
            token, block = self._last.get(effect, (None, None))
            if token is None or block != ctx.ir.InsertionPoint.current.block:
                raise tokens_left_behind(ctx.eqn, effect)
            found.append(token)
        return found

    def put(self, ctx: Any, effects: Sequence[Effect], tokens: Sequence[Any]) -> None:
        """From now on, these are the tokens."""
        for effect, token in zip(effects, tokens, strict=True):
            self._last[effect] = token, ctx.ir.InsertionPoint.current.block
