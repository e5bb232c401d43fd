"""Tokens: values of a program that keep ordered effects in order. Each operation with such an effect needs the last's.

They are those of a function or a region, which gets them as arguments and returns them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from corejax.base.effects import Effect, ordered
from corejax.kernel.checks import tokens_left_behind
from corejax.kernel.jaxpr import Effects, JaxprEqn, no_effects

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


class InOrder:
    """What a lowering rule's `ctx` has for effects that keep their order."""

    __slots__ = ("_literals", "_tokens", "context", "eqn", "ir")
    ir: Any
    context: Any
    eqn: JaxprEqn | None
    _tokens: Tokens
    _literals: dict[Any, Any]

    @property
    def token_type(self) -> Any:
        """The MLIR type of tokens, which keep the order of effects."""
        return self.ir.Type.parse("!stablehlo.token", self.context)

    def in_order(self, make: Callable[[list[Any], list[Any]], Sequence[Any]], effects: Effects | None = None
                 ) -> list[Any]:
        """The results of an operation that comes after what has the equation's ordered effects so far.

        `make(tokens, kinds)` inserts it: with a token for each of these effects before its other operands, and results
        of these types before its other results, which are what is returned. There are none if no effect is ordered.
        """
        if effects is None:
            effects = no_effects if self.eqn is None else self.eqn.effects
        kept = ordered(effects) if effects else []
        tokens = self._tokens.take(self, kept)
        made = make(tokens, [token.type for token in tokens])
        made = [made] if isinstance(made, self.ir.Value) else list(made)
        self._tokens.put(self, kept, made[:len(kept)])
        return made[len(kept):]

    @contextmanager
    def inside(self, block: Any, tokens: Sequence[Any]) -> Iterator[None]:
        """Insert what follows into a block of a region, where these are the tokens of the equation's ordered effects.

        The region returns `ctx.tokens` before its other results.
        """
        saved = self._tokens, self._literals
        self._literals = {}  # constants that are inserted in a region aren't visible outside
        self._tokens = Tokens()
        try:
            with self.ir.InsertionPoint(block):
                self._tokens.put(self, ordered(self.eqn.effects) if self.eqn else [], tokens)
                yield
        finally:
            self._tokens, self._literals = saved

    @property
    def tokens(self) -> list[Any]:
        """The tokens of the equation's ordered effects at this point."""
        return self._tokens.take(self, ordered(self.eqn.effects) if self.eqn else [])
