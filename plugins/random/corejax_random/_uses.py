"""Uses of keys: where each is, and which of two count as one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from corejax.core import Again, Alternative, EachTurn

__all__ = ["Reused", "Use", "exclusive", "is_again", "is_each_turn", "is_untaken"]


class Use(NamedTuple):
    """Where a key is used: the places of the calls that lead there, and the scopes, both from the outermost."""

    places: tuple[Any, ...]
    scopes: tuple[str, ...]
    dtype: str


class Reused(Exception):
    """Raised where a key is used that was used before: by whom first, and by whom again."""

    def __init__(self, first: Use, again: Use) -> None:
        self.first, self.again = first, again


def exclusive(first: Use, again: Use) -> bool:
    """Whether these are one use: at most one of them counts, or the second repeats the first."""
    if any([type(x) is type(y) is Alternative and x.of == y.of and x != y for x in first.scopes for y in again.scopes]):
        return True
    repeated, repeating = [[name.of for name in use.scopes if type(name) is Again] for use in (first, again)]
    return repeated != repeating or (bool(repeated) and first.places == again.places)


def is_untaken(use: Use, case: int, scopes: Sequence[str]) -> bool:
    """Whether a key, which comes out of a conditional's branch of this number, was used in another one."""
    return any([type(name) is Alternative and name not in scopes and name != f"branch_{case}" for name in use.scopes])


def is_each_turn(scopes: Sequence[str]) -> bool:
    """Whether what happens in these scopes is meant for each turn of a loop."""
    return any([type(name) is EachTurn for name in scopes])


def is_again(scopes: Sequence[str]) -> bool:
    """Whether what happens in these scopes has happened before."""
    return any([type(name) is Again for name in scopes])
