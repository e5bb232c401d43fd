"""Making up a program: which slots it has, and which statements."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .expressions import DIVISION, ORDINARY, SINGULAR, rows
from .slots import ALWAYS, RARELY, SOMETIMES, UNTYPED
from .writing import Block, Keys, Statement, Writer, differentiable, typed

Make = Callable[["Maker", int], Statement]


@dataclass(frozen=True)
class Kind:
    """A kind of statement: how often it comes, and the derivatives that don't go through it."""

    make: Make
    weight: float
    stops: str = ""


#: Filled by the modules that know the kinds.
KINDS: dict[str, Kind] = {}


def kind(weight: float = 1.0, stops: str = "", among: dict[str, Kind] = KINDS) -> Callable[[Make], Make]:
    """Enter a function as the maker of a kind of statement; `stops` is "reverse" or "forward"."""
    def enter(make: Make) -> Make:
        among[make.__name__] = Kind(make, weight, stops)
        return make
    return enter


@dataclass(frozen=True)
class Flavour:
    """What the programs of a mode have beyond the usual ones: slots, expressions, kinds of statements.

    `bits` is the width of numbers by default; so many transformations are nested at most.
    """

    slots: Keys = ()
    tables: tuple[dict[str, list[str]], ...] = ()
    kinds: Mapping[str, Kind] = field(default_factory=dict)
    bits: int = 64
    transformations: int = 3


USUAL = Flavour()


class Maker:
    """Makes up statements; `needs` are the derivatives that must go through all of them."""

    def __init__(self, rng: np.random.Generator, needs: frozenset[str], flavour: Flavour = USUAL) -> None:
        self.rng, self.needs = rng, needs
        self.kinds = [*KINDS.values(), *flavour.kinds.values()]
        extra = [str(key) for key in rng.permutation(SOMETIMES)[:int(self.choice([0, 1, 1, 2, 3]))]]
        self.divides = self.chance(0.08)
        extra += [key for key in flavour.slots if key not in extra]
        self.slots: Keys = (*ALWAYS, *[key for key in (*SOMETIMES, *RARELY)
                                       if key in extra or key == "i" and self.divides])
        tables = [ORDINARY, ORDINARY, *flavour.tables]
        if self.chance(0.4):
            tables.append(SINGULAR)
        if self.divides:
            tables += [DIVISION] * 4
        self.expressions = rows(self.slots, *tables)
        self.helpers: list[Callable[[], Statement]] = []

    def choice(self, items: Sequence[Any]) -> Any:
        return items[int(self.rng.integers(len(items)))]

    def chance(self, p: float) -> bool:
        return bool(self.rng.random() < p)

    def some(self, keys: Sequence[str], least: int = 0) -> Keys:
        """Some of the slots, in their order."""
        count = min(int(self.rng.integers(least, 4)), len(keys))
        chosen = {int(k) for k in self.rng.permutation(len(keys))[:count]}
        return tuple([key for k, key in enumerate(keys) if k in chosen])

    def typed(self, least: int = 0) -> Keys:
        return self.some(typed(self.slots, UNTYPED), least)

    def results(self, blocks: Sequence[Block], among: Sequence[str] = (), least: int = 0) -> Keys:
        """Slots for a function to return, more often those that its blocks assign to."""
        among = among or typed(self.slots, UNTYPED)
        assigned = {key for block in blocks for statement in block for key in statement.outs}
        chosen = {key for key in among if key in assigned and self.chance(0.7)} | {*self.some(among, least)[:2]}
        return tuple([key for key in among if key in chosen])

    def floats(self, least: int = 1) -> Keys:
        return self.some(differentiable(self.slots), least)

    def block(self, depth: int, size: int | None = None, needs: str = "") -> Block:
        """Some statements, with control flow `depth` deep; `needs` is a derivative that must go through."""
        outer, self.needs = self.needs, self.needs | {needs} - {""}
        found = tuple([self.statement(depth) for _ in range(size or int(self.rng.integers(1, 4)))])
        self.needs = outer
        return found

    def statement(self, depth: int) -> Statement:
        if depth and self.chance(0.55 if depth > 1 else 0.4):
            kinds = [k for k in self.kinds if k.stops not in self.needs]
            weights = np.array([k.weight for k in kinds])
            return kinds[int(self.rng.choice(len(kinds), p=weights / weights.sum()))].make(self, depth - 1)
        return self.expression()

    def expression(self) -> Statement:
        slot = self.choice(self.slots)
        key, template = self.choice([row for row in self.expressions if row[0] == slot])

        def write(w: Writer, st: Statement) -> None:
            w.put(key, template)
        return Statement("expression", write, outs=(key,), droppable=False)
