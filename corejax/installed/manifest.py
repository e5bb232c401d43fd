"""What is installed: the entry points of the groups `corejax.*`, read once, without importing a pack.

Environment variables choose among packs, by the names of their distributions: `COREJAX_PACKS=none` or a list
restricts them, `COREJAX_DISABLE_PACKS` removes some, `COREJAX_PREFER` says who wins if two provide the same.
A distribution with broken metadata is left out, and reported once.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from difflib import get_close_matches
from typing import Any, NamedTuple, Protocol

import importlib_metadata

from corejax.base.errors import CorejaxValueError, PackError, suggestion
from corejax.installed.groups import FUNCTIONS, GROUPS, PRIMITIVES, RULES, noun, report

_PREFIX = "corejax."
_REST = "(and all after it)"
_NAME = re.compile(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?")
_VALUE = re.compile(r"(?P<module>[^\W\d]\w*(\.[^\W\d]\w*)*)\s*(:\s*(?P<attr>[^\W\d]\w*(\.[^\W\d]\w*)*)\s*)?(\[.*\])?")

_STANDARD = re.compile(r"""([\w.-]+).*;.*\bextra\s*==\s*['"]std['"]""")


class Distribution(Protocol):
    """The attributes of distributions that are used here; the library's own class has changed between releases."""

    @property
    def version(self) -> str: ...

    @property
    def metadata(self) -> Any: ...

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


class Pack:
    """An installed distribution that provides something."""

    __slots__ = ("_distribution", "entries", "name")

    def __init__(self, name: str, distribution: Distribution) -> None:
        self.name = name
        self.entries: list[Entry] = []
        self._distribution = distribution

    @property
    def version(self) -> str:
        """Read from the metadata each time: it is only needed in errors and listings."""
        try:
            return str(self._distribution.version or "of unknown version")
        except Exception:  # broken metadata must not hide the error that is being described
            return "of unknown version"

    def __str__(self) -> str:
        return f"{self.name} {self.version}"


class Manifest:
    """All packs in use, and who provides what; `broken` maps distributions to what is wrong with their metadata."""

    __slots__ = ("_groups", "_rules", "broken", "hidden", "packs", "prefer", "shadowed")

    def __init__(self, packs: Iterable[Pack], broken: dict[str, str] | None = None,
                 shadowed: dict[str, Pack] | None = None) -> None:
        found = {pack.name: pack for pack in packs}
        self.broken, self.shadowed = broken or {}, shadowed or {}
        known = [*found, *self.broken]
        restricted, disabled = _names("COREJAX_PACKS", known, none=True), _names("COREJAX_DISABLE_PACKS", known)
        self.prefer = _names("COREJAX_PREFER", known) or []
        self.packs: dict[str, Pack] = {}
        self.hidden: dict[str, Pack] = {}
        out = {name for name in known
               if (restricted is not None and name not in restricted) or name in (disabled or ())}
        for name, pack in found.items():
            (self.hidden if name in out else self.packs)[name] = pack
        self.broken = {name: why for name, why in self.broken.items() if name not in out or name == _REST}
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
        """The entry for a name; raises if packs conflict and the user made no choice."""
        return self.one_of(group, name, self.providers(group, name))

    def choose_function(self, name: str) -> Entry | None:
        """The entry for a public function, or for a primitive of a pack that has no function of that name."""
        functions, primitives = self.providers(FUNCTIONS, name), self.providers(PRIMITIVES, name)
        packs = [entry.pack for entry in functions]
        entries = [*functions, *[entry for entry in primitives if entry.pack not in packs]]
        return self.one_of(FUNCTIONS if functions else PRIMITIVES, name, entries)

    def one_of(self, group: str, name: str, entries: list[Entry]) -> Entry | None:
        """The winner among several entries for the same name; raises if the user made no choice."""
        if len(entries) < 2:
            return entries[0] if entries else None
        preferred = [entry for wanted in self.prefer for entry in entries if entry.pack.name == wanted]
        if preferred and (len(preferred) < 2 or preferred[0].pack is not preferred[1].pack):
            return preferred[0]
        packs = sorted({entry.pack for entry in preferred or entries}, key=lambda pack: pack.name)
        raise PackError(
            f"the {noun(group)} {name!r} is provided more than once", pack=", ".join(map(str, packs)),
            got="; ".join(sorted(f"{entry.pack} ({entry.module}:{entry.attr})" for entry in entries)),
            wanted="one provider",
            todo=f"choose with COREJAX_PREFER={packs[0].name}, or uninstall all but one of them" if len(packs) > 1 else
            f"correct the entry points of {packs[0].name}, or leave it out with COREJAX_DISABLE_PACKS={packs[0].name}")

    def hidden_provider(self, groups: Iterable[str], name: str) -> Pack | None:
        """A pack that provides the name but is excluded by the environment."""
        return next((pack for pack in self.hidden.values() for entry in pack.entries
                     if entry.name == name and entry.group in groups), None)

    def faults(self) -> Iterator[tuple[str, str]]:
        """Problems with installed distributions, as (name, problem)."""
        for name, why in self.broken.items():
            yield name, f"the distribution {name} is left out: its metadata is broken: {why}"
        yield from self.several_versions()

    def several_versions(self) -> Iterator[tuple[str, str]]:
        """Packs that are installed in several versions, as (name, which version is used)."""
        for name, other in self.shadowed.items():
            pack = self.packs.get(name)
            if pack is not None and pack.version != other.version:
                yield name, (f"two versions of {name} are installed: {pack.version} is used, as it comes first on the "
                             f"path, and {other.version} isn't. Uninstall both, and install one")


def _names(variable: str, packs: Iterable[str], none: bool = False) -> list[str] | None:
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
                wanted=f"one or more of: {', '.join(sorted(packs)) or 'no pack is installed'}",
                todo=suggestion(name, packs) or f"correct {variable}, or install the pack")
    return names or None


def _canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name.strip()).lower()


# Reading metadata

def _parse(pack: Pack, text: str) -> None:
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
        elif group.startswith(_PREFIX):
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
    if group.startswith(_PREFIX) and group not in GROUPS and (close := get_close_matches(group, GROUPS, 1, 0.85)):
        raise ValueError(f"line {number} of its entry points names the group {group!r}, which doesn't exist: "
                         f"did you mean {close[0]!r}?")


def _is_husk(distribution: Distribution) -> bool:
    """Whether it is the remains of a distribution that was removed: a folder without metadata."""
    return not any(distribution.read_text(name) for name in ("METADATA", "PKG-INFO"))


def scan() -> Manifest:
    """Everything on the path. If a distribution is there twice, the first one counts, as in Python's own imports."""
    packs: dict[str, Pack] = {}
    broken: dict[str, str] = {}
    shadowed: dict[str, Pack] = {}
    seen: dict[str, Distribution] = {}
    for distribution in _distributions(broken):
        name, provides = "", True
        try:
            text = distribution.read_text("entry_points.txt")
            provides = f"[{_PREFIX}" in (text or "").replace(" ", "")
            name = _name(distribution)
            if not provides:
                seen.setdefault(name, distribution)
                continue
            pack = Pack(name, distribution)
            if name in seen and (name in packs or name in broken or not _is_husk(seen[name])):
                shadowed.setdefault(name, pack)
                continue
            seen[name] = distribution
            _parse(pack, text or "")
            if pack.entries:
                packs[name] = pack
        except Exception as error:  # whatever is wrong with one distribution, the others still work
            if name or provides:
                broken.setdefault(name or _label(distribution), _reason(error))
    return Manifest(packs.values(), broken, shadowed)


def _distributions(broken: dict[str, str]) -> Iterator[Distribution]:
    """All installed distributions; if a finder fails, those found before it."""
    try:
        yield from importlib_metadata.distributions()
    except Exception as error:
        broken[_REST] = f"looking for them failed: {_reason(error)}"


def _name(distribution: Distribution) -> str:
    # The normalized name comes from the file name: reading the metadata would take ten times as long as the whole scan.
    name = _canonical(getattr(distribution, "_normalized_name", None) or distribution.metadata["Name"])
    if not _NAME.fullmatch(name):
        raise ValueError(f"{name!r} isn't the name of a distribution: a failed uninstall may have left it behind")
    return name


def _label(distribution: Distribution) -> str:
    """A label for a distribution whose name can't be read."""
    return os.path.basename(str(getattr(distribution, "_path", "?"))).partition("-")[0]


def _reason(error: Exception) -> str:
    return str(error) if type(error) is ValueError else f"{type(error).__name__}: {error}"


def distribution(name: str) -> Distribution | None:
    """The installed distribution of this name, with `name`, `version` and `locate_file`; None if there is none."""
    try:
        return importlib_metadata.distribution(name)
    except importlib_metadata.PackageNotFoundError:
        return None


def standard() -> list[str]:
    """The packs that the kernel's extra `std` names; stubs, which it names too, are for type checkers only."""
    requires = getattr(distribution("corejax"), "requires", None) or ()
    names = [_canonical(found[1]) for found in map(_STANDARD.match, requires) if found]
    return [name for name in names if not name.endswith("-stubs")]


_kept: dict[str, Manifest] = {}


def read() -> Manifest:
    """The manifest of this process."""
    found = _kept.get("it")
    if found is None:
        # No lock, since finders on sys.meta_path are other people's code: several threads may scan, one result is kept.
        made = scan()
        found = _kept.setdefault("it", made)
        if found is made:
            for name, fault in found.faults():
                report((name, "metadata"), fault)
    return found
