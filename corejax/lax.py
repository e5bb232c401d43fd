"""Everything that the installed packs provide, by name.

`lax.sin` is the function `sin` of whichever pack provides it, or else the primitive `sin` as a function. A name is
looked up, and its pack imported, when it is first used; `dir(lax)` lists all names without importing a pack.

A name that several packs have means in a pack's modules what the packs have that it requires. In users' own modules it
is an error, until they prefer a pack.

`lax.sin_p` is the primitive itself, as in jaxprs. A pack may give one further names of this kind.
"""

from __future__ import annotations

from sys import _getframe
from types import FrameType
from typing import TYPE_CHECKING, Any

from corejax.base.caches import generation
from corejax.base.errors import CorejaxAttributeError, CorejaxError, suggestion
from corejax.base.late import late
from corejax.base.source import error_without, here
from corejax.base.tracebacks import trim
from corejax.installed import groups, namespaces, registry
from corejax.installed.groups import ITSELF
from corejax.installed.meanings import Meanings

if TYPE_CHECKING:
    from corejax.installed.distributions import Entry

__path__: list[str] = []  # a package to Python, so that packs may bring `corejax.lax.NAME`
_define = late("corejax.packs.define")
_kept: set[str] = set()


def __getattr__(name: str) -> Any:
    try:
        return _find(name, _getframe(1))
    except Exception as error:
        trim(error)
        raise


def _find(name: str, frame: FrameType) -> Any:
    if name == "__all__":  # for `from corejax.lax import *`
        return _all(frame)
    if name.startswith("__"):
        raise CorejaxAttributeError(f"module 'corejax.lax' has no attribute {name!r}")
    since = generation()
    entries = registry.installed().in_lax(name)
    if not entries:
        raise _unknown(name)
    if len(entries) > 1:
        return _meanings.find(name, entries, frame)
    if entries[0].group == groups.NAMESPACES:
        return namespaces.load(f"lax.{name}")
    _kept.add(name)
    return registry.keep(_load(entries[0], name), globals(), name, since)


def _load(entry: Entry, name: str) -> Any:
    """The object that an entry gives to a name."""
    if entry.group == groups.PRIMITIVES:
        primitive = _define.of_entry(entry)
        return primitive if name != entry.name else primitive.function
    found = registry.load_once(entry)
    return getattr(found, "primitive", found) if name.endswith(ITSELF) else found


_meanings = Meanings(__name__, _load)


def _all(frame: FrameType) -> list[str]:
    """The names for `from corejax.lax import *`.

    Those are left out of which nobody can tell what they mean there, and what a module that is being imported doesn't
    have yet: a pack's module may import all names, and then define some of them.
    """
    found, names = registry.installed(), []
    for name in __dir__():
        entries = found.in_lax(name)
        try:
            if len(entries) > 1:
                _meanings.find(name, entries, frame)
            elif registry.is_under_way(entries[0]):
                continue
            names.append(name)
        except CorejaxError as error:
            if isinstance(error, CorejaxAttributeError) or not any(map(registry.is_under_way, entries)):
                groups.report(("__all__", name), f"`from corejax.lax import *` leaves out {name!r}: {error.message}: "
                                                 f"{error.got}. {error.todo}")
    return names


def _unknown(name: str) -> CorejaxError:
    kind, bare = error_without(__name__, name, 3), name.removesuffix(ITSELF)
    if bare != name and registry.installed().in_lax(bare):  # a function that is computed by others
        return kind(f"there is no lax.{name}, as lax.{bare} isn't a primitive", got=f"a function, lax.{bare}",
                    wanted="the name of a primitive and _p", where=here(),
                    todo=f"call lax.{bare}: programs show the primitives that it is computed by")
    below = _below(name)
    hints = (below,) if below else (
        suggestion(name, __dir__()), registry.install_hint(name, (groups.FUNCTIONS, groups.PRIMITIVES)))
    if registry.installed().hidden_provider((groups.NAMESPACES,), f"lax.{name}"):
        hints = (registry.install_hint(f"lax.{name}", (groups.NAMESPACES,)),)
    return kind(
        f"no installed pack provides lax.{name}", got=registry.packs_in_use(), where=here(),
        wanted="a function or primitive of one of these: dir(lax) lists them",
        todo=" otherwise ".join([hint for hint in hints if hint]))


def _below(name: str) -> str:
    """Where a primitive is a function, if it isn't one here."""
    providers = registry.installed().providers(groups.PRIMITIVES, name.removesuffix(ITSELF))
    found = [space for entry in providers for space in entry.pack.below_lax()]
    return f"write cj.{found[0]}.{name}" if found else ""


def _forget(function: str | None) -> None:
    for name in [name for name in _kept if function in (None, name) or name.endswith(ITSELF)]:
        _kept.discard(name)
        globals().pop(name, None)


registry.also_forget(_forget)


def __dir__() -> list[str]:
    found = registry.installed()
    below = [name.removeprefix("lax.") for name in found.names(groups.NAMESPACES) if name.startswith("lax.")]
    return sorted({*found.names_in_lax(), *below})
