"""Everything that the installed packs provide, by name.

`lax.sin` is the function `sin` of whichever pack provides it, or else the primitive `sin` as a function. A name is
looked up, and its pack imported, when it is first used; `dir(lax)` lists all names without importing a pack.
"""

from __future__ import annotations

from typing import Any

from corejax import plugin
from corejax.errors import CorejaxAttributeError
from corejax.plugin import registry
from corejax.source import error_without, here
from corejax.tracebacks import trim


def __getattr__(name: str) -> Any:
    try:
        return _find(name)
    except Exception as error:
        trim(error)
        raise


def _find(name: str) -> Any:
    if name.startswith("__"):
        raise CorejaxAttributeError(f"module 'corejax.lax' has no attribute {name!r}")
    entry = plugin.manifest.read().choose_function(name)
    if entry is None:
        hints = (registry.suggestion(name, __dir__()),
                 registry.install_hint(name, (registry.FUNCTIONS, registry.PRIMITIVES)))
        kind = error_without(__name__, name, 2)
        raise kind(
            f"no installed pack provides lax.{name}", got=registry.packs_in_use(), where=here(),
            wanted="a function or primitive of one of these: dir(lax) lists them",
            todo=" otherwise ".join([hint for hint in hints if hint]))
    found = plugin.find(name).function if entry.group == registry.PRIMITIVES else registry.load(entry.group, name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    manifest = plugin.manifest.read()
    return sorted({*manifest.names(registry.FUNCTIONS), *manifest.names(registry.PRIMITIVES)})
