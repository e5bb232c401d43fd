"""What a fault is: distributions that are broken in some way, a program that uses them, and what must come of it."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Pack:
    """A distribution: the text of its entry points, and its files by their path.

    `version` None leaves out the metadata itself; `later` puts it in a folder further along the path.
    """

    name: str
    entries: str | bytes | None
    files: Mapping[str, str] = field(default_factory=dict)
    version: str | None = "1.0"
    metadata: str | None = None
    later: bool = False

    @property
    def folder(self) -> str:
        """The folder of its metadata."""
        return f"{self.name.replace('-', '_')}-{self.version or '1.0'}.dist-info"


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault. `error` is the class that the program raises, None if it works; `words` are in its message.

    `cause` is the class of the error's cause; `again` says what the second run gives, "same" for the same error and
    else a value; `warned` are words of a warning. `explain` is the name to explain, whose error is the same. With an
    `environment` it gets a process of its own.
    """

    name: str
    group: str
    packs: tuple[Pack, ...]
    code: str
    error: str | None
    words: tuple[str, ...]
    cause: str | None = None
    again: str = "same"
    warned: tuple[str, ...] = ()
    explain: str | None = None
    left: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)

    @property
    def title(self) -> str:
        """The name that no other has."""
        return f"{self.group}: {self.name}"

    @property
    def packages(self) -> list[str]:
        """The top-level packages of its packs."""
        return sorted({path.partition("/")[0].removesuffix(".py") for pack in self.packs for path in pack.files})


def text(code: str) -> str:
    """A text without its indentation."""
    return textwrap.dedent(code).strip("\n") + "\n"


def primitives(**values: str) -> str:
    """Entry points of primitives."""
    return "[corejax.primitives]\n" + "".join(f"{name} = {value}\n" for name, value in values.items())


def functions(**values: str) -> str:
    """Entry points of functions."""
    return primitives(**values).replace("primitives", "functions")


def roles(**values: str) -> str:
    """Entry points of roles."""
    return primitives(**values).replace("primitives", "roles")


TWICE = '''
from corejax.plugin import define, hookimpl
import numpy as np

class Twice:
    name = "{name}"

    @hookimpl
    def abstract_eval(self, avals):
        return avals[0]

    @hookimpl
    def impl(self, args):
        return np.multiply(args[0], 2.0)

{name} = define(Twice())
'''


def twice(name: str) -> str:
    """A module with a primitive that works."""
    return TWICE.format(name=name).lstrip("\n")


def one(name: str, code: str, value: str = "") -> tuple[Pack, ...]:
    """A pack of one module with one primitive, both called `name`."""
    entries = primitives(**{name: value or f"{name}:{name}"})
    return (Pack(name.replace("_", "-"), entries, {f"{name}.py": text(code)}),)


class Group:
    """Collects the faults under one heading."""

    def __init__(self, title: str) -> None:
        self.title = title
        self.faults: list[Fault] = []

    def add(self, name: str, packs: tuple[Pack, ...], code: str, error: str | None, *words: str,
            cause: str | None = None, again: str = "same", warned: tuple[str, ...] = (), explain: str | None = None,
            left: tuple[str, ...] = (), environment: Mapping[str, str] | None = None) -> None:
        """One more; `left` are the packages that stay in `sys.modules`."""
        self.faults.append(Fault(name, self.title, packs, text(code), error, words, cause, again, warned, explain,
                                 left, environment or {}))
