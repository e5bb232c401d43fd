"""What names of packs mean in a module: that depends on whose module it is, and on what that pack requires.

A pack's own modules look names up among the packs that it requires, so whatever else is installed changes nothing for
them. Only in users' modules is a name ambiguous as soon as two packs have it.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import FrameType

from corejax.base.errors import PackError
from corejax.base.source import package_of
from corejax.installed.distributions import Distribution, Entry, Pack, requires
from corejax.installed.groups import noun
from corejax.installed.isolation import is_machinery
from corejax.installed.requirements import Dependency, canonical, dependencies

_KERNEL, _MAIN = "corejax", "__main__"


def module_of(frame: FrameType | None) -> str:
    """The name of the module whose code uses something, from this frame outward: the kernel and imports ask for others.

    A module that runs as a script has its own name if Python was told that: `python -m NAME`; otherwise, it is "".
    """
    while frame is not None:
        name = frame.f_globals.get("__name__")
        if name == _MAIN:
            name = getattr(frame.f_globals.get("__spec__"), "name", "")
        if package_of(frame) != _KERNEL and not is_machinery(frame):
            return name if isinstance(name, str) else ""
        frame = frame.f_back
    return ""


def _is_shared(package: str) -> bool:
    """Is it a namespace package, in which several distributions may have theirs?"""
    module = sys.modules.get(package)
    return module is not None and hasattr(module, "__path__") and getattr(module, "__file__", None) is None


class Scopes:
    """Whose modules are whose, and who requires whom; found out when that is first asked."""

    __slots__ = ("_claims", "_distribution", "_lines", "_packs", "_tiers")

    def __init__(self, packs: Mapping[str, Pack], distribution: Callable[[str], Distribution | None]) -> None:
        self._packs, self._distribution = packs, distribution
        self._claims: dict[str, Counter[str]] = {}
        self._lines: dict[str, list[Dependency]] = {}
        self._tiers: dict[str, tuple[frozenset[str], ...]] = {}

    def pack_of(self, module: str) -> Pack | None:
        """The pack whose module this is: entry points of it lead into the package that holds the module.

        If entry points of several packs do, it is the one that is named like the package, or has most of them there.
        """
        claims = self._claims or self._claimed()
        package, _, rest = module.partition(".")
        while rest and _is_shared(package):
            part, _, rest = rest.partition(".")
            package = f"{package}.{part}"
        counts = claims.get(package, Counter())
        if canonical(package) in counts:
            return self._packs[canonical(package)]
        (name, most), (_, next_most) = [*counts.most_common(2), ("", 0), ("", 0)][:2]
        return self._packs[name] if most > next_most else None

    def tiers(self, pack: Pack) -> tuple[frozenset[str], ...]:
        """Where the pack's modules look names up: among what it requires, in itself, among what its extras require."""
        found = self._tiers.get(pack.name)
        if found is None:
            plain, every = self._required(pack.name, False), self._required(pack.name, True)
            found = self._tiers[pack.name] = plain, frozenset([pack.name]), every - plain
        return found

    def _claimed(self) -> dict[str, Counter[str]]:
        """For each module that entry points lead to, and each package around it, by how many of which pack."""
        claims: dict[str, Counter[str]] = {}
        for pack in self._packs.values():
            for module, count in Counter([entry.module for entry in pack.entries]).items():
                package = module
                while package:
                    claims.setdefault(package, Counter())[pack.name] += count
                    package = package.rpartition(".")[0]
        self._claims = claims
        return claims

    def _required(self, pack: str, with_its_extras: bool) -> frozenset[str]:
        """All distributions that a pack requires, directly or not, but for itself."""
        asked: dict[str, frozenset[str]] = {}
        waiting: list[tuple[str, frozenset[str]]] = [(pack, frozenset())]
        while waiting:
            name, extras = waiting.pop()
            if name in asked and extras <= asked[name]:
                continue
            asked[name] = extras | asked.get(name, frozenset())
            waiting += [(each.name, each.extras) for each in self._dependencies(name) if not each.needed_for
                        or each.needed_for & asked[name] or (with_its_extras and name == pack)]
        return frozenset(asked) - {pack}

    def _dependencies(self, name: str) -> list[Dependency]:
        if name not in self._lines:
            pack = self._packs.get(name)
            other = None if pack else self._distribution(name)
            lines: Iterable[str] = pack.requires if pack else requires(other) if other else ()
            self._lines[name] = dependencies(lines)
        return self._lines[name]


def several(group: str, name: str, entries: Sequence[Entry], user: Pack | None, required: bool) -> PackError:
    """The error for a name of which nobody can tell what it means.

    `user` is the pack that uses it, None for the user's own code; `required` whether it requires the providers.
    """
    packs = sorted({entry.pack for entry in entries}, key=lambda pack: pack.name)
    names, kind = [pack.name for pack in packs], noun(group)
    got = "; ".join(sorted(f"{entry.pack} ({entry.module}:{entry.attr})" for entry in entries))
    if len(packs) == 1:
        return PackError(
            f"the {kind} {name!r} is provided more than once", pack=str(packs[0]), got=got, wanted="one provider",
            todo=f"correct the entry points of {names[0]}, or leave it out with COREJAX_DISABLE_PACKS={names[0]}")
    choose = f"choose with COREJAX_PREFER={names[0]}"
    if user is None:
        return PackError(f"the {kind} {name!r} is provided more than once", pack=", ".join(map(str, packs)), got=got,
                         wanted="one provider", todo=f"{choose}, or uninstall all but one of them")
    if required:
        return PackError(
            f"{user} uses the {kind} {name!r}, which more than one of the packs that it requires provides",
            pack=str(user), got=got, wanted="one provider among the packs that it requires",
            todo=f"in {user.name}, import it from the package of the one that is meant; until then, {choose}")
    return PackError(
        f"{user} uses the {kind} {name!r}, which is provided more than once, and requires none of the providers",
        pack=str(user), got=got, wanted="one provider among the packs that it requires",
        todo=f"add {' or '.join(map(repr, names))} to the requirements of {user.name}; until then, {choose}")
