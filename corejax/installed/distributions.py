"""Packs: installed distributions, with their entry points as their metadata has them."""

from __future__ import annotations

import re
from difflib import get_close_matches
from typing import Any, NamedTuple, Protocol

from corejax.installed import requirements
from corejax.installed.groups import BELOW_LAX, CHECKS, COMMANDS, GROUPS, NAMESPACES, PREFIX, PRIMITIVES

_VALUE = re.compile(r"(?P<module>[^\W\d]\w*(\.[^\W\d]\w*)*)\s*(:\s*(?P<attr>[^\W\d]\w*(\.[^\W\d]\w*)*)\s*)?(\[.*\])?")

_FOLD = re.compile(r"\n[ \t]+")
_REQUIRES, _VERSION = (re.compile(rf"^{name}:[ \t]*(.*?)[ \t\r]*$", re.MULTILINE | re.IGNORECASE)
                       for name in ("Requires-Dist", "Version"))


class Distribution(Protocol):
    """The attributes of distributions that are used here; the library's own class has changed between releases."""

    @property
    def version(self) -> str: ...

    @property
    def metadata(self) -> Any: ...

    @property
    def requires(self) -> list[str] | None: ...

    def read_text(self, filename: str, /) -> str | None: ...

    def locate_file(self, path: str, /) -> Any: ...


class Entry(NamedTuple):
    """A line of a pack's entry points: `name = module:attr` in `group`."""

    group: str
    name: str
    module: str
    attr: str
    pack: Pack

    def __str__(self) -> str:
        return f"{self.name} = {self.module}:{self.attr}" if self.attr else f"{self.name} = {self.module}"


class Failure(NamedTuple):
    """Why a pack is broken: the problem, the exception and its place as text, and the exception."""

    problem: str
    words: str
    cause: BaseException

    def __str__(self) -> str:
        return f"{self.problem}: {self.words}"


class Pack:
    """An installed distribution that provides something. Its `failure` is why it is broken, if it is known to be."""

    __slots__ = ("_distribution", "_version", "entries", "failure", "name")

    def __init__(self, name: str, distribution: Distribution) -> None:
        self.name = name
        self.entries: list[Entry] = []
        self.failure: Failure | None = None
        self._distribution = distribution
        self._version = ""

    @property
    def version(self) -> str:
        """Read from the metadata when it is first asked for: finding it takes as long as all else of a scan."""
        if not self._version:
            try:
                found = _lines(self._distribution, _VERSION)
                self._version = str(found[0] if found else self._distribution.version or "of unknown version")
            except Exception:  # broken metadata must not hide the error that is being described
                self._version = "of unknown version"
        return self._version

    @property
    def distribution(self) -> Distribution:
        """What its metadata is read from."""
        return self._distribution

    @property
    def requires(self) -> list[str]:
        """The lines of its metadata that say what it requires; none if its metadata is broken."""
        return requires(self._distribution)

    def requirement(self, distribution: str) -> requirements.Requirement | None:
        """What it requires of another distribution; None if it requires nothing of it, or its metadata is broken."""
        of_it = [each for each in requirements.parse(self.requires) if each.name == distribution]
        return min(of_it, key=lambda each: each.optional) if of_it else None

    def fail(self, problem: str, words: str, cause: BaseException) -> Failure:
        """It is broken, for the first reason found."""
        failure = self.failure = self.failure or Failure(problem, words, cause)
        return failure  # another thread may forget it

    def is_tool(self) -> bool:
        """Whether it brings commands or checks and nothing that programs compute with, at most a namespace beside."""
        found = {entry.group for entry in self.entries}
        return bool(found & {COMMANDS, CHECKS}) and found <= {COMMANDS, CHECKS, NAMESPACES}

    def below_lax(self) -> list[str]:
        """Its namespaces below `lax`, such as `lax.linalg`: there its primitives are functions, and not in `lax`."""
        return [entry.name for entry in self.entries if entry.group == NAMESPACES and entry.name.startswith(BELOW_LAX)]

    def __str__(self) -> str:
        return f"{self.name} {self.version}"


def requires(distribution: Distribution) -> list[str]:
    """The lines of metadata that say what a distribution requires; none if its metadata is broken."""
    try:
        found = _lines(distribution, _REQUIRES)
        return list(distribution.requires or ()) if found is None else found
    except Exception:  # broken metadata must not hide what is being described
        return []


def _lines(distribution: Distribution, wanted: re.Pattern[str]) -> list[str] | None:
    """What these lines of its metadata say, without parsing all of it, which takes a hundred times as long.

    None if there is no such file.
    """
    text = distribution.read_text("METADATA")
    return wanted.findall(_FOLD.sub(" ", text.partition("\n\n")[0])) if text else None


# Reading entry points

def parse(pack: Pack, text: str) -> None:
    """Fill in the pack's entries; raises ValueError for a line that isn't an entry point."""
    group, seen = None, set()
    for number, raw in enumerate(text.splitlines(), 1):
        line = raw.strip()
        if not line or line[0] in "#;":
            continue
        if line[0] == "[":
            group = line[1:-1].strip()
            _check_group(group, number, raw)
        elif group is None:
            raise ValueError(f"line {number} of its entry points, {raw!r}, isn't in a group: "
                             f"put `[{PRIMITIVES}]`, or another one, above it")
        elif group.startswith(PREFIX):
            name, _, value = line.partition("=")
            name = name.rstrip()
            match = _VALUE.fullmatch(value.strip())
            if not (name and match):
                raise ValueError(f"line {number} of its entry points, {raw!r}, is not `name = module:attr`")
            entry = Entry(group, name, match["module"], match["attr"] or "", pack)
            if entry not in seen:  # duplicate lines are harmless
                seen.add(entry)
                pack.entries.append(entry)


def _check_group(group: str, number: int, raw: str) -> None:
    """Raise for a misspelled group, which would otherwise be ignored silently."""
    if not raw.rstrip().endswith("]"):
        raise ValueError(f"line {number} of its entry points, {raw!r}, is not `[group]`")
    if group.startswith(PREFIX) and group not in GROUPS and (close := get_close_matches(group, GROUPS, 1, 0.85)):
        raise ValueError(f"line {number} of its entry points names the group {group!r}, which doesn't exist: "
                         f"did you mean {close[0]!r}?")
