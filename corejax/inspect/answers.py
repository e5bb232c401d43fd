"""Answers about names and installations, as objects that print as text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple


@dataclass(frozen=True)
class Hook:
    """A hook of a primitive.

    `how` is `written`, `declared`, `derived`, `fallback` (slow), `absent`, `missing` (an error if it is needed) or
    `conflict`; `why` says why its provider was chosen; `lost` has the other offers, with what becomes of them.
    """

    name: str
    how: str
    provider: str | None = None
    what: str = ""
    where: str | None = None
    why: str = ""
    cost: str = ""
    wrappers: tuple[str, ...] = ()
    lost: tuple[str, ...] = ()

    def lines(self) -> Iterator[str]:
        """As text, the first line without indentation."""
        at = f" at {self.where}" if self.where else ""
        if self.how == "derived":
            main = f"derived {self.what}{at}"
        elif self.how == "absent":
            main = "absent" + (f" (without it: {self.what})" if self.what else "")
        else:
            main = ", ".join(filter(None, (self.provider, self.how + (f": {self.what}" if self.what else "") + at)))
        yield f"{self.name}: {main}{f'; {self.why}' if self.why else ''}"
        if self.cost:
            yield f"  costs: {self.cost}; writing {self.name}, or decompose, removes it"
        yield from (f"  wrapped by: {wrapper}" for wrapper in self.wrappers)
        yield from (f"  {other}" for other in self.lost)


@dataclass(frozen=True)
class Provided:
    """A name in one group: a primitive, a function, a role, ...; `problem` says why it can't be used, if it can't."""

    kind: str
    name: str
    provider: str | None
    where: str | None = None
    why: str = ""
    params: str = ""
    hooks: Mapping[str, Hook] = field(default_factory=dict)
    lost: tuple[str, ...] = ()
    problem: str | None = None

    def lines(self) -> Iterator[str]:
        """As text."""
        article = "an" if self.kind[0] in "aeiou" else "a"
        yield f"{self.name} ({self.provider or 'nobody'}): {article} {self.kind}{f', {self.why}' if self.why else ''}"
        if self.where:
            yield f"  at {self.where}"
        if self.problem:
            yield "  CAN'T BE USED: " + self.problem.replace("\n", "\n  ")
        if self.params:
            yield f"  params: {self.params}"
        for hook in self.hooks.values():
            yield from (f"  {line}" for line in hook.lines())
        yield from (f"  {other}" for other in self.lost)


@dataclass(frozen=True, repr=False)
class Explanation:
    """What a name stands for, in each group of entry points that contains it."""

    name: str
    found: tuple[Provided, ...]

    @property
    def hooks(self) -> Mapping[str, Hook]:
        """The hooks of the primitive of this name."""
        return next((one.hooks for one in self.found if one.hooks), {})

    def __str__(self) -> str:
        return "\n".join(line for one in self.found for line in one.lines())

    def __repr__(self) -> str:
        what = ", ".join(f"{one.kind} of {one.provider or 'nobody'}" for one in self.found)
        return f"<explanation of {self.name}: {what}>"


@dataclass(frozen=True, repr=False)
class Listing:
    """A listing of what is installed: `rows` maps each pack to the facts about it."""

    rows: Mapping[str, Any]
    text: str
    what: str

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"<{self.what}>"


class Problem(NamedTuple):
    """Something wrong with a distribution, and what to do about it, if that is known."""

    pack: str
    problem: str
    todo: str = ""

    def __str__(self) -> str:
        return f"{self.pack}: {self.problem}" + (f"; {self.todo}" if self.todo else "")
