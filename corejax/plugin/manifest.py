"""What is installed: the entry points of the groups `corejax.*`, read once, without importing a pack.

Three environment variables choose among packs, by the names of their distributions: `COREJAX_PACKS=none` or a list
restricts them, `COREJAX_DISABLE_PACKS` removes some, `COREJAX_PREFER` says who wins where two provide the same.
"""

from __future__ import annotations

import os
import re
import threading
import warnings
from collections.abc import Iterable
from typing import Any, NamedTuple

import importlib_metadata

from corejax.errors import CorejaxValueError, CorejaxWarning, PackError
from corejax.plugin.registry import RULES, noun, suggestion

_PREFIX = "corejax."


class Entry(NamedTuple):
    """One line of a pack's entry points: `name = module:attr` in `group`."""

    group: str
    name: str
    module: str
    attr: str
    pack: Pack

    def __str__(self) -> str:
        return f"{self.name} = {self.module}:{self.attr}"


class Pack:
    """An installed distribution that provides something."""

    __slots__ = ("_distribution", "entries", "name")

    def __init__(self, name: str, distribution: Any) -> None:
        self.name = name
        self.entries: list[Entry] = []
        self._distribution = distribution

    @property
    def version(self) -> str:
        """Read from the metadata each time: only errors and listings ask."""
        try:
            return str(self._distribution.version)
        except Exception:  # broken metadata must not hide the error that is being described
            return "of unknown version"

    def __str__(self) -> str:
        return f"{self.name} {self.version}"


class Manifest:
    """All packs in use, and who provides what."""

    __slots__ = ("_groups", "_rules", "hidden", "packs", "prefer")

    def __init__(self, packs: Iterable[Pack]) -> None:
        found = {pack.name: pack for pack in packs}
        restricted, disabled = _names("COREJAX_PACKS", found, none=True), _names("COREJAX_DISABLE_PACKS", found)
        self.prefer = _names("COREJAX_PREFER", found) or []
        self.packs: dict[str, Pack] = {}
        self.hidden: dict[str, Pack] = {}
        for name, pack in found.items():
            out = (restricted is not None and name not in restricted) or name in (disabled or ())
            (self.hidden if out else self.packs)[name] = pack
        self._groups: dict[str, dict[str, list[Entry]]] = {}
        self._rules: dict[str, list[Entry]] = {}
        for pack in self.packs.values():
            for entry in pack.entries:
                self._groups.setdefault(entry.group, {}).setdefault(entry.name, []).append(entry)
                if entry.group == RULES:
                    self._rules.setdefault(entry.name.partition(":")[0], []).append(entry)

    def names(self, group: str) -> list[str]:
        """Everything that packs provide in a group."""
        return sorted(self._groups.get(group, ()))

    def providers(self, group: str, name: str) -> list[Entry]:
        """Every entry for one name."""
        return self._groups.get(group, {}).get(name, [])

    def rules(self, primitive: str) -> list[Entry]:
        """The entries of other packs' rules for a primitive."""
        return self._rules.get(primitive, [])

    def choose(self, group: str, name: str) -> Entry | None:
        """The one entry for a name; an error if packs conflict and the user made no choice."""
        entries = self.providers(group, name)
        if len(entries) < 2:
            return entries[0] if entries else None
        preferred = [entry for wanted in self.prefer for entry in entries if entry.pack.name == wanted]
        if preferred and (len(preferred) < 2 or preferred[0].pack is not preferred[1].pack):
            return preferred[0]
        raise PackError(
            f"the {noun(group)} {name!r} is provided more than once",
            got="; ".join(f"{entry.pack} ({entry.module}:{entry.attr})" for entry in entries), wanted="one provider",
            todo=f"choose with COREJAX_PREFER={entries[0].pack.name}, or uninstall all but one of them")

    def hidden_provider(self, groups: Iterable[str], name: str) -> Pack | None:
        """A pack that would provide the name if the environment didn't exclude it."""
        return next((pack for pack in self.hidden.values() for entry in pack.entries
                     if entry.name == name and entry.group in groups), None)


def _names(variable: str, packs: dict[str, Pack], none: bool = False) -> list[str] | None:
    text = os.environ.get(variable)
    if text is None:
        return None
    names = [_canonical(part) for part in text.split(",") if part.strip()]
    if none and names == ["none"]:
        return []
    for name in names:
        if name not in packs:
            raise CorejaxValueError(
                f"{variable} names a pack that is not installed", got=repr(name),
                wanted=f"some of: {', '.join(sorted(packs)) or 'no pack is installed'}",
                todo=suggestion(name, packs) or f"correct {variable}, or install the pack")
    return names or None


def _canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name.strip()).lower()


def _parse(pack: Pack, text: str) -> None:
    """Fill in the pack's entries; ValueError for a line that is no entry point."""
    group = ""
    for number, raw in enumerate(text.splitlines(), 1):
        line = raw.strip()
        if not line or line.startswith("#"):
            continue
        if line.startswith("[") and line.endswith("]"):
            group = line[1:-1].strip()
        elif group.startswith(_PREFIX):
            name, equals, value = line.partition("=")
            module, _, attr = value.partition("[")[0].partition(":")
            if not (equals and name.strip() and module.strip()):
                raise ValueError(f"line {number} of its entry points, {raw!r}, is not `name = module:attr`")
            pack.entries.append(Entry(group, name.strip(), module.strip(), attr.strip(), pack))


def _scan() -> list[Pack]:
    """The packs on the path; of two versions of one distribution, the first as Python's own imports do."""
    packs, seen = [], set()
    for distribution in importlib_metadata.distributions():
        name = "?"
        try:
            # The normalised name comes from the file's name: reading the metadata would cost ten times the whole scan.
            name = _canonical(getattr(distribution, "_normalized_name", None) or distribution.metadata["Name"])
            if name in seen:
                continue
            seen.add(name)
            text = distribution.read_text("entry_points.txt")
            if text and f"[{_PREFIX}" in text.replace(" ", ""):
                pack = Pack(name, distribution)
                _parse(pack, text)
                if pack.entries:
                    packs.append(pack)
        except Exception as error:  # whatever is wrong with one distribution, the others work
            warnings.warn(f"the distribution {name} is left out: its metadata is broken: {error}", CorejaxWarning,
                          stacklevel=2)
    return packs


_manifest: Manifest | None = None
_lock = threading.Lock()


def read() -> Manifest:
    """The manifest of this process."""
    global _manifest
    if _manifest is None:
        with _lock:
            if _manifest is None:
                _manifest = Manifest(_scan())
    return _manifest
