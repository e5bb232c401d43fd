"""What names of packs mean in a module: that depends on whose module it is, and on what that pack requires.

A pack's own modules look names up among the packs that it requires, so whatever else is installed changes nothing for
them. Only in users' modules is a name ambiguous as soon as two packs have it.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import FrameType
from typing import TYPE_CHECKING, Any

from corejax.base.errors import PackError
from corejax.base.late import late
from corejax.base.source import package_of
from corejax.installed.distributions import Distribution, Entry, Pack, requires
from corejax.installed.groups import noun
from corejax.installed.isolation import is_machinery
from corejax.installed.requirements import canonical

if TYPE_CHECKING:
    from corejax.installed import contents, dependencies
    from corejax.installed.dependencies import Dependency
else:  # they are only needed where several packs have a name
    contents, dependencies = late("corejax.installed.contents"), late("corejax.installed.dependencies")

_KERNEL, _MAIN, _BUILTINS = "corejax", "__main__", "builtins"


def variables_of(frame: FrameType | None) -> dict[str, Any]:
    """The global variables of the code that uses something, from this frame outward: the kernel and imports ask for
    others. Empty if there is none.

    Code without a module, such as what `exec` runs in a namespace of its own, asks for its caller; but where the kernel
    calls it, it is a user's function.
    """
    without_module = False
    while frame is not None:
        package = package_of(frame)
        if package == _KERNEL:
            if without_module:
                return {}
        elif not is_machinery(frame):
            if package in sys.modules and package != _BUILTINS:
                return frame.f_globals
            without_module = True
        frame = frame.f_back
    return {}


def module_of(variables: Mapping[str, Any]) -> str:
    """The name of the module that has these global variables.

    A module that runs as a script has its own name if Python was told that: `python -m NAME`; otherwise, it is "".
    """
    name = variables.get("__name__")
    if name == _MAIN:
        name = getattr(variables.get("__spec__"), "name", "")
    return name if isinstance(name, str) else ""


def _packages(module: str) -> list[str]:
    """The package that holds a module, and before it the namespace packages around it, the outermost first."""
    package, _, rest = module.partition(".")
    found = [package]
    while rest and _is_shared(found[-1]):
        part, _, rest = rest.partition(".")
        found.append(f"{found[-1]}.{part}")
    return found


def _is_shared(package: str) -> bool:
    """Is it a namespace package, in which several distributions may have theirs?"""
    module = sys.modules.get(package)
    return module is not None and hasattr(module, "__path__") and getattr(module, "__file__", None) is None


class Scopes:
    """Whose modules are whose, and who requires whom; found out when that is first asked."""

    __slots__ = ("_claims", "_distribution", "_lines", "_modules", "_packs", "_tiers")

    def __init__(self, packs: Mapping[str, Pack], distribution: Callable[[str], Distribution | None]) -> None:
        self._packs, self._distribution = packs, distribution
        self._claims: dict[str, Counter[str]] = {}
        self._lines: dict[str, list[Dependency]] = {}
        self._modules: dict[str, frozenset[str]] = {}
        self._tiers: dict[str, tuple[frozenset[str], ...]] = {}

    def pack_of(self, module: str) -> Pack | None:
        """The pack whose module this is: it has the package that holds the module.

        A namespace package is nobody's, unless only one pack has anything there.
        """
        if not module:
            return None
        *shared, package = _packages(module)
        name = self._owner(package)
        while shared and name is None:
            name = self._alone_in(shared.pop())
        return self._packs[name] if name is not None else None

    def tiers(self, pack: Pack) -> tuple[frozenset[str], ...]:
        """Where the pack's modules look names up: among what it requires, in itself, among what its extras require."""
        found = self._tiers.get(pack.name)
        if found is None:
            plain, every = self._required(pack.name, False), self._required(pack.name, True)
            found = self._tiers[pack.name] = plain, frozenset([pack.name]), every - plain
        return found

    def _owner(self, package: str) -> str | None:
        """The pack that has a package; of several the one that is named like it, or has most entry points there."""
        names, claims = self._having(package), self._claimed().get(package, Counter())
        if canonical(package) in names:
            return canonical(package)
        names.sort(key=lambda name: -claims[name])
        return names[0] if len(names) == 1 or (names and claims[names[0]] > claims[names[1]]) else None

    def _alone_in(self, package: str) -> str | None:
        """The only pack that has something in a namespace package, if its files aren't known: else they were asked."""
        names = self._having(package)
        known = any([module.startswith(f"{package}.") for name in names for module in self._modules_of(name)])
        return names[0] if len(names) == 1 and not known else None

    def _having(self, package: str) -> list[str]:
        """The packs whose files have a package, or if nobody's have it, those whose entry points lead into it."""
        found = [name for name in self._packs if package in self._modules_of(name)]
        return found or list(self._claimed().get(package, ()))

    def _modules_of(self, name: str) -> frozenset[str]:
        if name not in self._modules:
            self._modules[name] = contents.modules_of(self._packs[name].distribution)
        return self._modules[name]

    def _claimed(self) -> dict[str, Counter[str]]:
        """For each module that entry points lead to, and each package around it, by how many of which pack."""
        if self._claims:
            return self._claims
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
            self._lines[name] = dependencies.dependencies(lines)
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
    working = [pack.name for pack in packs if pack.failure is None] or names
    choose = f"choose with COREJAX_PREFER={working[0]}"
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
