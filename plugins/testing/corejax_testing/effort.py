"""How much a search for counterexamples tries."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from corejax.core import here
from corejax.errors import CorejaxValueError

#: The name of the outcome of a search.
NO_COUNTEREXAMPLE = "no counterexample is found"


@dataclass(frozen=True, slots=True)
class Search:
    """How much to try for each primitive: at most so many inputs, and for at most so many seconds.

    The same `seed` gives the same inputs, as long as hypothesis and the modules around are the same, since hypothesis
    also takes numbers from their code. Another seed gives others.

    >>> Search(max_examples=1000, seed=1)
    Search(max_examples=1000, seconds=60.0, seed=1)
    """

    max_examples: int = 100
    seconds: float = 60.0
    seed: int = 0

    def __post_init__(self) -> None:
        for name, least in (("max_examples", 1), ("seconds", 0.0)):
            value = getattr(self, name)
            if not isinstance(value, (int, float)) or value < least:
                raise CorejaxValueError(f"{name} of a search must be a number from {least} on", got=repr(value),
                                        wanted=f"Search({name}=...)", where=here(), todo="give a larger number")


#: What may be passed as `search=`: whether to search, or how much to try.
Searched: TypeAlias = "bool | Search"


def effort_of(search: Searched) -> Search | None:
    """How much to try; None if there is no search."""
    if isinstance(search, Search):
        return search
    return Search() if search else None
