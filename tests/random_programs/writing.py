"""Programs as trees of statements, and their text: Python that any library with the interface of jax can run.

A statement assigns to slots; the text gives each assignment a name of its own, so that functions close over what was
there before them. `api` and `lax` are the library.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from .slots import SLOTS

Block = tuple["Statement", ...]
Keys = tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Statement:
    """How it is written, the blocks that it runs, and the slots that go into and come out of them."""

    kind: str
    write: Callable[[Writer, Statement], None]
    blocks: tuple[Block, ...] = ()
    args: Keys = ()
    outs: Keys = ()
    #: Words that stand for more that may be left out; `write` knows them.
    parts: tuple[str, ...] = ()
    #: May `args` and `outs` be fewer, when a failing program is made smaller?
    droppable: bool = True


class Writer:
    """The text of a program in the making: the lines, and the name that each slot goes by at this point."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.helpers: list[str] = []
        self.names: dict[object, str] = {}
        self.scope: dict[str, str] = {}
        self._depth = 1
        self._count: Counter[str] = Counter()

    def line(self, text: str) -> None:
        self.lines.append("    " * self._depth + text)

    def fresh(self, stem: str) -> str:
        self._count[stem] += 1
        return f"{stem}{self._count[stem]}"

    def format(self, template: str) -> str:
        """The template with each slot's present name: "{u} * 2" is "u3 * 2"."""
        return template.format(**self.scope)

    def rename(self, keys: Sequence[str]) -> str:
        """New names for the slots, to be assigned to: "u4, s2", or "(u4,)" for one alone."""
        for key in keys:
            self.scope[key] = self.fresh(key)
        return self.tuple(keys)

    def tuple(self, keys: Sequence[str]) -> str:
        names = [self.scope[key] for key in keys]
        return f"({', '.join(names)}{',' if len(names) == 1 else ''})"

    def list(self, keys: Sequence[str], last: str = "") -> str:
        return ", ".join([*[self.scope[key] for key in keys], *([last] if last else [])])

    def assign(self, keys: Sequence[str], value: str) -> None:
        """`value` is the text of an expression for a tuple of as many values."""
        self.line(f"{self.rename(keys) if keys else '_'} = {value}")

    def put(self, key: str, template: str) -> None:
        """One slot gets one value."""
        value = self.format(template)
        self.scope[key] = self.fresh(key)
        self.line(f"{self.scope[key]} = {value}")

    def block(self, block: Block) -> None:
        for statement in block:
            statement.write(self, statement)

    @contextmanager
    def function(self, params: Sequence[str], *, more: str = "", stem: str = "f", decorator: str = "",
                 closed: bool = False) -> Iterator[str]:
        """The lines of a `with` are the body of a function of these slots (after the parameters in `more`).

        One that is `closed` closes over constants alone.
        """
        name, outer = self.fresh(stem), self.scope
        self.scope = {key: key.upper() for key in outer} if closed else dict(outer)
        if decorator:
            self.line(f"@{decorator}")
        self.line(f"def {name}({', '.join([*([more] if more else []), *self._renamed(params)])}):")
        self._depth += 1
        yield name
        self._depth -= 1
        self.scope = outer

    def _renamed(self, keys: Sequence[str]) -> Sequence[str]:
        self.rename(keys)
        return [self.scope[key] for key in keys]

    def define(self, block: Block, params: Sequence[str], outs: Sequence[str], *, more: str = "", stem: str = "f",
               decorator: str = "", closed: bool = False) -> str:
        """A function that runs a block and returns slots as a tuple; its name."""
        with self.function(params, more=more, stem=stem, decorator=decorator, closed=closed) as name:
            self.block(block)
            self.line(f"return {self.tuple(outs)}")
        return name

    def helper(self, block: Block, params: Keys, outs: Keys, decorator: str) -> str:
        """A function at the top of the program, written once, which closes over constants alone."""
        key = (id(block), params, outs, decorator)
        if key not in self.names:
            lines, depth, self.lines, self._depth = self.lines, self._depth, [], 0
            self.names[key] = self.define(block, params, outs, stem="helper", decorator=decorator, closed=True)
            self.helpers += [*self.lines, ""]
            self.lines, self._depth = lines, depth
        return self.names[key]


def text(block: Block, slots: Keys) -> str:
    """The program as Python: functions at the top, and `program`, a function of the slots that returns them."""
    writer = Writer()
    writer.scope = {key: key for key in slots}
    writer.block(block)
    writer.line(f"return {writer.tuple(slots)}")
    header = f"def program({', '.join(slots)}):"
    return "\n".join([*writer.helpers, header, *writer.lines, ""])


def typed(keys: Sequence[str], *without: str) -> Keys:
    return tuple([key for key in keys if key not in without])


def differentiable(keys: Sequence[str]) -> Keys:
    return tuple([key for key in keys if SLOTS[key].differentiable and key != "a"])
