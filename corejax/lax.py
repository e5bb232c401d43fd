"""Everything that the installed packs provide, by name.

`lax.sin` is the function `sin` of whichever pack provides it, or else the primitive `sin` as a function. A name is
looked up, and its pack imported, when it is first used; `dir(lax)` lists all names without importing a pack.

`lax.sin_p` is the primitive itself, as in jaxprs. A pack may give one further names of this kind.
"""

from __future__ import annotations

from typing import Any

from corejax.base.caches import generation
from corejax.base.errors import CorejaxAttributeError, suggestion
from corejax.base.late import late
from corejax.base.source import error_without, here
from corejax.base.tracebacks import trim
from corejax.installed import groups, namespaces, registry
from corejax.installed.groups import ITSELF

__path__: list[str] = []  # a package to Python, so that packs may bring `corejax.lax.NAME`
_define = late("corejax.packs.define")
_kept: set[str] = set()


def __getattr__(name: str) -> Any:
    try:
        return _find(name)
    except Exception as error:
        trim(error)
        raise


def _find(name: str) -> Any:
    if name == "__all__":  # for `from corejax.lax import *`
        return __dir__()
    if name.startswith("__"):
        raise CorejaxAttributeError(f"module 'corejax.lax' has no attribute {name!r}")
    since = generation()
    entry = registry.installed().choose_function(name)
    if entry is None and namespaces.is_provided(f"lax.{name}"):
        return namespaces.load(f"lax.{name}")
    if entry is None and name.endswith(ITSELF) and registry.installed().choose_function(name.removesuffix(ITSELF)):
        found = _primitive(name)
    elif entry is None:
        below = _below(name)
        hints = (below,) if below else (
            suggestion(name, __dir__()), registry.install_hint(name, (groups.FUNCTIONS, groups.PRIMITIVES)))
        if registry.installed().hidden_provider((groups.NAMESPACES,), f"lax.{name}"):
            hints = (registry.install_hint(f"lax.{name}", (groups.NAMESPACES,)),)
        kind = error_without(__name__, name, 2)
        raise kind(
            f"no installed pack provides lax.{name}", got=registry.packs_in_use(), where=here(),
            wanted="a function or primitive of one of these: dir(lax) lists them",
            todo=" otherwise ".join([hint for hint in hints if hint]))
    elif entry.group == groups.PRIMITIVES:
        found = _define.find(name).function
    else:
        found = registry.load(entry.group, name)
        found = getattr(found, "primitive", found) if name.endswith(ITSELF) else found
    _kept.add(name)
    return registry.keep(found, globals(), name, since)


def _below(name: str) -> str:
    """Where a primitive is a function, if it isn't one here."""
    providers = registry.installed().providers(groups.PRIMITIVES, name.removesuffix(ITSELF))
    found = [space for entry in providers for space in entry.pack.below_lax()]
    return f"write cj.{found[0]}.{name}" if found else ""


def _primitive(name: str) -> Any:
    """The primitive that `NAME_p` stands for, if NAME is one rather than a function that is computed by others."""
    bare = name.removesuffix(ITSELF)
    if bare not in registry.installed().names(groups.PRIMITIVES):
        kind = error_without(__name__, name, 3)
        raise kind(f"there is no lax.{name}, as lax.{bare} isn't a primitive", got=f"a function, lax.{bare}",
                   wanted="the name of a primitive and _p", where=here(),
                   todo=f"call lax.{bare}: programs show the primitives that it is computed by")
    return _define.find(bare)


def _forget(function: str | None) -> None:
    for name in [name for name in _kept if function in (None, name) or name.endswith(ITSELF)]:
        _kept.discard(name)
        globals().pop(name, None)


registry.also_forget(_forget)


def __dir__() -> list[str]:
    found = registry.installed()
    below = [name.removeprefix("lax.") for name in found.names(groups.NAMESPACES) if name.startswith("lax.")]
    return sorted({*found.names_in_lax(), *below})
