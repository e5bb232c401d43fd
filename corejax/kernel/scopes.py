"""Scopes that say more than a name: how what happens in them relates to what the program as a whole does.

Rules that change how often something is computed open them, by `named_scope`, for whoever counts what a program does.
An equation has them in its `scope`.
"""

from __future__ import annotations

from itertools import count
from typing import Self

_numbers = count()


class Meaningful(str):
    """A scope's name with a meaning. Those with the same `of` belong together; by default it is a new number."""

    __slots__ = ("of",)
    of: int

    def __new__(cls, name: str, of: int | None = None) -> Self:
        made = super().__new__(cls, name)
        made.of = next(_numbers) if of is None else of
        return made

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (str(self), self.of)


class Alternative(Meaningful):
    """For each element, only what happens in one of the scopes with this `of` counts, and this is the one of a name.

    So a conditional whose condition differs among elements says which branch an equation comes from.
    """

    __slots__ = ()


class EachTurn(Meaningful):
    """What happens here once is done for each turn of a loop, which all do the same."""

    __slots__ = ()


class Again(Meaningful):
    """What happens here has happened before, and is computed once more instead of being kept."""

    __slots__ = ()
