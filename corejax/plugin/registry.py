"""Loading what packs provide, by group and name, when it is first used.

Nothing here knows what the groups mean. A pack that can't be imported is remembered as broken: each use of its names
raises a `PackError` with the original cause, and all other packs work.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from difflib import get_close_matches
from importlib import import_module
from typing import Any

from corejax import plugin
from corejax.errors import CorejaxError, CorejaxKeyError, CorejaxNotImplementedError, PackError
from corejax.source import add_library_package, here

PRIMITIVES = "corejax.primitives"
FUNCTIONS = "corejax.functions"
ROLES = "corejax.roles"
RULES = "corejax.rules"

_objects: dict[tuple[str, str], Any] = {}
_broken: dict[str, tuple[str, BaseException]] = {}
_MISSING = object()


def load(group: str, name: str) -> Any:
    """The object that an installed pack provides under this name."""
    found = _objects.get((group, name), _MISSING)
    if found is not _MISSING:
        return found
    entry = plugin.manifest.read().choose(group, name)
    if entry is None:
        raise unknown(group, name)
    return _objects.setdefault((group, name), load_entry(entry))


def load_entry(entry: Any) -> Any:
    """Import the entry's module and take its object."""
    if entry.pack.name in _broken:
        raise _broken_error(entry)
    module = sys.modules.get(entry.module)
    spec = getattr(module, "__spec__", None)
    if module is None or getattr(spec, "_initializing", False):
        module = _import(entry)
    value: Any = module
    for attr in filter(None, entry.attr.split(".")):
        value = getattr(value, attr, _MISSING)
        if value is _MISSING:
            raise PackError(
                f"{entry.pack}: the {noun(entry.group)} {entry.name!r} leads nowhere", pack=str(entry.pack),
                got=str(entry), wanted=f"an object {entry.attr!r} in the module {entry.module}", where=here(),
                todo="correct the pack's entry points, or reinstall it if they are stale")
    add_library_package(entry.module.partition(".")[0], entry.pack)
    return value


def _import(entry: Any) -> Any:
    before = frozenset(sys.modules)
    try:
        # Without a lock of our own: a module that is being imported by another thread may be waiting for us.
        return import_module(entry.module)
    except BaseException as error:
        _forget_modules(entry.module.partition(".")[0], before)
        if not isinstance(error, (Exception, SystemExit)):
            raise
        what = "exits the process" if isinstance(error, SystemExit) else "can't be imported"
        _broken.setdefault(entry.pack.name, (what, error))
        raise _broken_error(entry) from error


def _broken_error(entry: Any) -> PackError:
    what, cause = _broken[entry.pack.name]
    error = PackError(
        f"the pack {entry.pack} {what}, so its {noun(entry.group)} {entry.name!r} can't be used", pack=str(entry.pack),
        got=f"{type(cause).__name__}: {cause}", where=here(),
        todo=f"repair or uninstall {entry.pack.name}; COREJAX_DISABLE_PACKS={entry.pack.name} leaves it out")
    error.__cause__ = cause
    return error


def _forget_modules(package: str, before: frozenset[str]) -> None:
    """Take back what a failed import of `package` left in sys.modules."""
    for name in set(sys.modules) - before:
        if name == package or name.startswith(package + "."):
            module = sys.modules.pop(name, None)
            parent, _, child = name.rpartition(".")
            if module is not None and getattr(sys.modules.get(parent), child, None) is module:
                delattr(sys.modules[parent], child)


def noun(group: str) -> str:
    """How to call a thing of this group."""
    special = {"corejax.transforms": "transformation"}
    return special.get(group, group.rpartition(".")[2].removesuffix("s"))


def suggestion(name: str, names: Iterable[str]) -> str | None:
    """`did you mean 'sin'?`, if a name is close."""
    close = get_close_matches(name, list(names), 3, 0.6)
    return f"did you mean {' or '.join(map(repr, close))}?" if close else None


def unknown(group: str, name: str) -> CorejaxError:
    """The error for a name that no pack in use provides."""
    near = suggestion(name, plugin.manifest.read().names(group))
    hint = install_hint(name, (group,))
    if group == ROLES:
        return CorejaxNotImplementedError(f"no installed pack fills the role {name!r}", got=packs_in_use(),
                                          wanted="a pack with this role in use", where=here(),
                                          todo=f"{near} {hint}" if near else hint)
    return CorejaxKeyError(f"no installed pack provides the {noun(group)} {name!r}", got=packs_in_use(), where=here(),
                           wanted=f"the name of a {noun(group)} of one of these", todo=near or hint)


def install_hint(name: str, groups: Iterable[str]) -> str:
    """Which pack might provide a name."""
    manifest = plugin.manifest.read()
    pack = manifest.hidden_provider(groups, name)
    if pack is not None:
        return f"{pack} provides it, and COREJAX_PACKS or COREJAX_DISABLE_PACKS excludes that pack"
    if not manifest.packs:
        return "no pack is in use: pip install 'corejax[std]' brings the standard ones"
    return "pip install 'corejax[std]' if a standard pack is missing, or install the pack that provides it"


def packs_in_use() -> str:
    """What is installed and not excluded, for an error."""
    packs = plugin.manifest.read().packs
    return f"packs in use: {', '.join(sorted(packs)) or 'none'}"
