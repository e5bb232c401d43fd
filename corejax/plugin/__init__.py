"""The doors: what a pack author imports.

>>> from corejax.plugin import define, hookimpl
>>> class Twice:
...     name = "twice"
...     @hookimpl
...     def decompose(self, args):
...         return args[0] + args[0]
>>> twice = define(Twice())
>>> twice.primitive
twice

Names are resolved when they are asked for, so that importing corejax loads neither pluggy nor the metadata of
installed distributions.
"""

from __future__ import annotations

from difflib import get_close_matches
from importlib import import_module
from typing import TYPE_CHECKING, Any

from corejax.source import error_without, here
from corejax.tracebacks import calls_users, public, trim

if TYPE_CHECKING:
    from corejax.avals import Linear, Zero
    from corejax.plugin import families
    from corejax.plugin.declarations import (
        Sample,
        factors,
        hookimpl,
        linear,
        not_differentiable,
        not_linear,
        over,
        partials,
    )
    from corejax.plugin.extending import extend
    from corejax.plugin.primitive import Primitive, define, find
    from corejax.plugin.roles import operators, provide, roles
    from corejax.xla.builtin import pjrt_client

#: The contract between kernel and packs. A plugin may state the one that it was written for as `api_version`.
API_VERSION = 1

_HOME = {
    "Linear": "corejax.avals", "Zero": "corejax.avals",
    **dict.fromkeys(("Sample", "factors", "hookimpl", "linear", "not_differentiable", "not_linear", "over", "partials"),
                    "corejax.plugin.declarations"),
    **dict.fromkeys(("Primitive", "define", "find"), "corejax.plugin.primitive"),
    "extend": "corejax.plugin.extending",
    "pjrt_client": "corejax.xla.builtin",
    **dict.fromkeys(("operators", "provide", "roles"), "corejax.plugin.roles"),
}
_MODULES = frozenset(("checks", "declarations", "derive", "explaining", "families", "freeze", "hookspecs", "manifest",
                      "registry"))

__all__ = [
    "API_VERSION", "Linear", "Primitive", "Sample", "Zero", "calls_users", "define", "extend", "factors", "families",
    "find", "hookimpl", "linear", "not_differentiable", "not_linear", "operators", "over", "partials", "pjrt_client",
    "provide", "public", "roles",
]


def __getattr__(name: str) -> Any:
    try:
        return _find(name)
    except Exception as error:
        trim(error)
        raise


def _find(name: str) -> Any:
    if name in _HOME:
        value = globals()[name] = getattr(import_module(_HOME[name]), name)
        return value
    if name in _MODULES:
        return import_module(f"corejax.plugin.{name}")
    close = get_close_matches(name, __all__, 1)
    kind = error_without(__name__, name, 2)
    raise kind(f"corejax.plugin has no {name!r}", got=name, wanted=f"one of: {', '.join(__all__)}", where=here(),
               todo=f"did you mean {close[0]!r}?" if close else "use one of these")


def __dir__() -> list[str]:
    return sorted(__all__)
