"""What a wrong use is: a snippet, and what its error must be."""

from __future__ import annotations

import re
import textwrap
from dataclasses import dataclass, field

#: The line that fails is marked so in a snippet, unless it is the last one.
MARK = re.compile(r"  # <-$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class WrongUse:
    """A program of a few lines that is wrong, the built-in class of its error, and words that the message has.

    `jax` is the program for jax if its spelling differs; None if there is no counterpart. `environment` holds
    environment variables: the snippet then runs in a Python of its own. `located` is False where the error comes from
    outside of the snippet's own lines, as from the environment.
    """

    name: str
    group: str
    code: str
    error: type[Exception]
    words: tuple[str, ...]
    jax: str | None
    environment: dict[str, str] = field(default_factory=dict)
    local: bool = False

    @property
    def title(self) -> str:
        """The name that no other has."""
        return f"{self.group}: {self.name}"

    @property
    def line(self) -> int:
        """The number of the line that fails."""
        for number, line in enumerate(self.code.splitlines(), 1):
            if MARK.search(line):
                return number
        return len(self.code.splitlines())


def plain(code: str) -> str:
    """A snippet without its indentation."""
    return textwrap.dedent(code).strip() + "\n"


class Group:
    """Collects the wrong uses under one heading."""

    def __init__(self, title: str) -> None:
        self.title = title
        self.cases: list[WrongUse] = []

    def add(self, name: str, code: str, error: type[Exception], *words: str, jax: str | None = "",
            environment: dict[str, str] | None = None, local: bool = False) -> None:
        """One more; the same program is run for jax unless `jax` says otherwise."""
        same = code if jax == "" else jax
        self.cases.append(WrongUse(name, self.title, plain(code), error, words, None if same is None else plain(same),
                                   environment or {}, local))
