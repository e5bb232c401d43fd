"""What is installed: the entry points of the groups `corejax.*`, read once, without importing a pack.

Environment variables choose among packs, by the names of their distributions: `COREJAX_PACKS=none` or a list
restricts them, `COREJAX_DISABLE_PACKS` removes some, `COREJAX_PREFER` says who wins if two provide the same.
A distribution with broken metadata is left out, and reported once.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator

import importlib_metadata

from corejax.base.config import expect
from corejax.base.source import add_library_package
from corejax.installed import preferences
from corejax.installed.distributions import Distribution, Entry, Pack, parse
from corejax.installed.groups import (
    AT_TOP,
    BELOW_EXPERIMENTAL,
    BELOW_LAX,
    EXPERIMENTAL,
    FUNCTIONS,
    ITSELF,
    NAMESPACES,
    PREFIX,
    PRIMITIVES,
    RULES,
    SETTINGS,
    place,
    report,
)
from corejax.installed.requirements import canonical
from corejax.installed.scopes import Scopes, several
from corejax.installed.targets import EVERY, Choice, Target

_REST = "(and all after it)"
_NAME = re.compile(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?")

_OF_EXTRA = re.compile(r"""(?P<name>[\w.-]+).*;.*\bextra\s*==\s*['"](?P<extra>[\w.-]+)['"]""")
_KERNEL = "corejax"


class Manifest:
    """All packs in use, and who provides what; `broken` maps distributions to what is wrong with their metadata.

    `tools` are distributions that only bring commands, checks and namespaces with functions for these: they are there
    whichever packs `COREJAX_PACKS` names.
    """

    __slots__ = ("_groups", "_preferred", "_rules", "broken", "hidden", "misspelled", "packs", "scopes", "shadowed",
                 "tools")

    def __init__(self, packs: Iterable[Pack], broken: dict[str, str] | None = None,
                 shadowed: dict[str, Pack] | None = None) -> None:
        found = {pack.name: pack for pack in packs}
        self.broken, self.shadowed = broken or {}, shadowed or {}
        known = [*found, *self.broken]
        restricted, disabled = _names("COREJAX_PACKS", known, none=True), _names("COREJAX_DISABLE_PACKS", known)
        self.packs: dict[str, Pack] = {}
        self.tools: dict[str, Pack] = {}
        self.hidden: dict[str, Pack] = {}
        out = {name for name in known
               if (restricted is not None and name not in restricted) or name in (disabled or ())}
        for name, pack in found.items():
            if pack.is_tool() and name not in (disabled or ()):
                self.tools[name] = pack
            else:
                (self.hidden if name in out else self.packs)[name] = pack
        self.broken = {name: why for name, why in self.broken.items() if name not in out or name == _REST}
        self.scopes = Scopes(found, distribution)
        self._groups: dict[str, dict[str, list[Entry]]] = {}
        self._rules: dict[str, list[tuple[Target, Entry]]] = {}
        self.misspelled: list[Entry] = []
        for pack in self.all().values():
            for entry in pack.entries:
                self._groups.setdefault(entry.group, {}).setdefault(entry.name, []).append(entry)
                if entry.group == RULES:
                    target = Target.parse(entry.name)
                    if target is None:
                        self.misspelled.append(entry)
                    else:
                        self._rules.setdefault(target.owner, []).append((target, entry))
        self._preferred: tuple[Choice, ...] = ()
        self._preferred = self.choices("COREJAX_PREFER", (os.environ.get("COREJAX_PREFER") or "").split(","))

    def all(self) -> dict[str, Pack]:
        """The packs in use, and the tools."""
        return {**self.packs, **self.tools}

    def names(self, group: str) -> list[str]:
        """Everything that packs provide in a group."""
        return sorted(self._groups.get(group, ()))

    def providers(self, group: str, name: str) -> list[Entry]:
        """Every entry for one name."""
        return self._groups.get(group, {}).get(name, [])

    def rules(self, owner: str, primitive: str | None = None) -> list[tuple[Target, Entry]]:
        """The rules for a distribution's primitives, or for one of them and, as tables, for every one."""
        found = self._rules.get(owner, [])
        return found if primitive is None else [rule for rule in found if rule[0].primitive in (primitive, EVERY)]

    def rule_owners(self) -> list[str]:
        """The distributions for whose primitives there are rules, installed or not."""
        return sorted(self._rules)

    def choices(self, where: str, texts: Iterable[str]) -> tuple[Choice, ...]:
        """What a user prefers, from its text; an error if it names what isn't there."""
        packs = {**self.all(), **self.hidden}
        return tuple([preferences.read(where, text, packs, self.broken) for text in texts if text.strip()])

    @property
    def preferences(self) -> preferences.Preferences:
        """What the user prefers now."""
        return preferences.now(self._preferred)

    def choose(self, group: str, name: str) -> Entry | None:
        """The entry for a name; raises if packs conflict and the user made no choice."""
        return self.one_of(group, name, self.providers(group, name))

    def choose_function(self, name: str) -> Entry | None:
        """The entry for a public function, or for a primitive of a pack that has no function of that name."""
        entries = self._functions(name)
        return self.one_of(FUNCTIONS if self.providers(FUNCTIONS, name) else PRIMITIVES, name, entries)

    def in_lax(self, name: str) -> list[Entry]:
        """The entries of which `lax.NAME` is one, at most one of each pack; for NAME_p, those of primitives."""
        entries = _first_of_each([*self._functions(name), *self.providers(NAMESPACES, BELOW_LAX + name)])
        if not name.endswith(ITSELF):
            return entries
        bare = name.removesuffix(ITSELF)
        packs = [entry.pack for entry in self._functions(bare)]
        return _first_of_each(
            [*entries, *[entry for entry in self.providers(PRIMITIVES, bare) if entry.pack in packs]])

    def at_top(self, name: str) -> list[Entry]:
        """The entries of which `cj.NAME` is one, at most one of each pack."""
        return _first_of_each([*self.providers(NAMESPACES, name), *self.providers(FUNCTIONS, AT_TOP + name)])

    def in_experimental(self, name: str) -> list[Entry]:
        """The entries of which `cj.experimental.NAME` is one, at most one of each pack."""
        return _first_of_each([*self.providers(NAMESPACES, BELOW_EXPERIMENTAL + name),
                               *self.providers(FUNCTIONS, EXPERIMENTAL + name)])

    def called(self, group: str, name: str) -> tuple[str, list[Entry]]:
        """What users call the function, primitive or module of this name, and all entries of what is called so."""
        where, bare = place(group, name)
        find = {"cj": self.at_top, "experimental": self.in_experimental, "lax": self.in_lax}[where]
        return f"{where}.{bare}", find(bare)

    def _functions(self, name: str) -> list[Entry]:
        primitives = [entry for entry in self.providers(PRIMITIVES, name) if not entry.pack.below_lax()]
        return _first_of_each([*self.providers(FUNCTIONS, name), *primitives])

    def names_in_lax(self) -> list[str]:
        """Every function of `lax`, and every primitive that is one."""
        functions = [name for name in self.names(FUNCTIONS)
                     if not name.startswith((AT_TOP, EXPERIMENTAL)) and not name.endswith(ITSELF)]
        primitives = [name for name in self.names(PRIMITIVES) if not all(
            [entry.pack.below_lax() for entry in self.providers(PRIMITIVES, name)])]
        return sorted({*functions, *primitives})

    def names_at(self, where: str) -> list[str]:
        """The names of functions and modules of packs in a place: "cj" or "experimental"."""
        found = [place(group, name) for group in (FUNCTIONS, NAMESPACES) for name in self.names(group)]
        return sorted({name for there, name in found if there == where})

    def one_of(self, group: str, name: str, entries: list[Entry], user: Pack | None = None) -> Entry | None:
        """The winner among several entries for the same name; raises if packs conflict and the user made no choice.

        In the modules of a pack, the `user` of the name, only those count that it requires if any of them has the name.
        """
        if len(entries) < 2:
            return entries[0] if entries else None
        for required in self.scopes.tiers(user) if user is not None else ():
            found = [entry for entry in entries if entry.pack.name in required]
            if found:
                return self._preferred_of(group, name, found, user, True)
        return self._preferred_of(group, name, entries, user, False)

    def _preferred_of(self, group: str, name: str, entries: list[Entry], user: Pack | None, required: bool) -> Entry:
        """The only entry, or the one that the user prefers."""
        if len(entries) > 1:
            now = self.preferences
            degrees = [now.of(entry.pack.name, name).degree for entry in entries]
            entries = [entry for entry, degree in zip(entries, degrees, strict=True) if degree == max(degrees)]
        if len(entries) > 1:
            raise several(group, name, entries, user, required)
        return entries[0]

    def hidden_provider(self, groups: Iterable[str], name: str) -> Pack | None:
        """A pack that provides the name but is excluded by the environment."""
        return next((pack for pack in self.hidden.values() for entry in pack.entries
                     if entry.name == name and entry.group in groups), None)

    def faults(self) -> Iterator[tuple[str, str]]:
        """Problems with installed distributions, as (name, problem)."""
        for name, why in self.broken.items():
            yield name, f"the distribution {name} is left out: its metadata is broken: {why}"
        yield from self.several_versions()
        yield from self.misspelled_rules()

    def misspelled_rules(self) -> Iterator[tuple[str, str]]:
        """The rules whose names don't say for whose primitive they are, each with how it is spelled."""
        for entry in self.misspelled:
            primitive, rest = (part.strip("'\" ") for part in f"{entry.name.rpartition('/')[2]}:".split(":")[:2])
            owners = [other.pack.name for other in self.providers(PRIMITIVES, primitive)] or ["DISTRIBUTION"]
            hook = rest if rest.isidentifier() else "HOOK"
            spelled = " or ".join([f"{owner}/{primitive}:{hook}" for owner in owners])
            yield entry.pack.name, (
                f"the rule {entry.name!r} of {entry.pack} is left out: its name must say whose primitive it is for and "
                f"which hook it is: {spelled} (for one platform, xla_translation@PLATFORM), leading to that one rule")

    def several_versions(self) -> Iterator[tuple[str, str]]:
        """Packs that are installed in several versions, as (name, which version is used)."""
        for name, other in self.shadowed.items():
            pack = self.all().get(name)
            if pack is not None and pack.version != other.version:
                yield name, (f"two versions of {name} are installed: {pack.version} is used, as it comes first on the "
                             f"path, and {other.version} isn't. Uninstall both, and install one")


def _first_of_each(entries: Iterable[Entry]) -> list[Entry]:
    """Of each pack the entries of the first group in which it has any."""
    found: list[Entry] = []
    for entry in entries:
        if all([other.group == entry.group for other in found if other.pack is entry.pack]):
            found.append(entry)
    return found


def _names(variable: str, packs: Iterable[str], none: bool = False) -> list[str] | None:
    text = os.environ.get(variable)
    if text is None:
        return None
    names = [canonical(part) for part in text.split(",") if part.strip()]
    if none and names == ["none"]:
        return []
    for name in names:
        if name not in packs:
            raise preferences.not_installed(variable, name, packs)
    return names or None


# Reading metadata

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
            provides = f"[{PREFIX}" in (text or "").replace(" ", "")
            name = _name(distribution)
            if not provides:
                seen.setdefault(name, distribution)
                continue
            pack = Pack(name, distribution)
            if name in seen and (name in packs or name in broken or not _is_husk(seen[name])):
                shadowed.setdefault(name, pack)
                continue
            seen[name] = distribution
            parse(pack, text or "")
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
    name = canonical(getattr(distribution, "_normalized_name", None) or distribution.metadata["Name"])
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


def copies(name: str) -> list[Distribution]:
    """Every installed distribution of this name, in the order of the path: the first one counts."""
    found: dict[str, Distribution] = {}
    for each in importlib_metadata.distributions(name=name):
        found.setdefault(os.path.realpath(str(getattr(each, "_path", id(each)))), each)
    return list(found.values())


def standard() -> list[str]:
    """The packs that the kernel's extra `std` names; stubs, which it names too, are for type checkers only."""
    return [name for name in _of_extra("std") if not name.endswith("-stubs")]


def bringing(namespace: str) -> str | None:
    """The distribution that the kernel's extra of this name says brings a namespace, if there is such an extra."""
    found = _of_extra(namespace)
    return found[0] if len(found) == 1 and found[0].startswith(f"{_KERNEL}-") else None


def _of_extra(extra: str) -> list[str]:
    """What the kernel's extra of this name brings."""
    requires = getattr(distribution(_KERNEL), "requires", None) or ()
    return [canonical(found["name"]) for found in map(_OF_EXTRA.match, requires)
            if found and found["extra"] == extra]


_kept: dict[str, Manifest] = {}


def read() -> Manifest:
    """The manifest of this process."""
    found = _kept.get("it")
    if found is None:
        # No lock, since finders on sys.meta_path are other people's code: several threads may scan, one result is kept.
        made = scan()
        found = _kept.setdefault("it", made)
        if found is made:
            for pack in found.all().values():  # whatever it provides, its frames aren't the user's
                for package in {entry.module.partition(".")[0] for entry in pack.entries}:
                    add_library_package(package, pack)
            expect(found.names(SETTINGS))
            for name, fault in found.faults():
                report((name, "metadata"), fault)
    return found
