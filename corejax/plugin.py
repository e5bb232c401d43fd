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

from corejax.base.source import error_without, here
from corejax.base.tracebacks import calls_users, public, trim

if TYPE_CHECKING:
    from corejax.base.avals import Linear, Zero
    from corejax.installed.roles import operators, provide, roles
    from corejax.interpreters import carrying
    from corejax.kernel.declarations import (
        Sample,
        factors,
        hookimpl,
        linear,
        not_differentiable,
        not_linear,
        over,
        partials,
        per_operand,
    )
    from corejax.kernel.hookspecs import API_VERSION
    from corejax.kernel.primitive import Primitive
    from corejax.packs import families
    from corejax.packs.define import define, find
    from corejax.packs.extending import extend
    from corejax.xla.runtime.builtin import pjrt_client

#: Nothing lies beneath this module; names that did are found where they are now.
__path__: list[str] = []

_HOME = {
    "API_VERSION": "corejax.kernel.hookspecs", "Linear": "corejax.base.avals", "Primitive": "corejax.kernel.primitive",
    "Zero": "corejax.base.avals", "extend": "corejax.packs.extending", "pjrt_client": "corejax.xla.runtime.builtin",
    **dict.fromkeys(("Sample", "factors", "hookimpl", "linear", "not_differentiable", "not_linear", "over", "partials",
                    "per_operand"),
                    "corejax.kernel.declarations"),
    **dict.fromkeys(("define", "find"), "corejax.packs.define"),
    **dict.fromkeys(("operators", "provide", "roles"), "corejax.installed.roles"),
}
_MODULES = {"carrying": "corejax.interpreters.carrying", "families": "corejax.packs.families"}

__all__ = [
    "API_VERSION", "Linear", "Primitive", "Sample", "Zero", "calls_users", "carrying", "define", "extend", "factors",
    "families", "find", "hookimpl", "linear", "not_differentiable", "not_linear", "operators", "over", "partials",
    "per_operand", "pjrt_client", "provide", "public", "roles",
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
        return import_module(_MODULES[name])
    close = get_close_matches(name, __all__, 1)
    kind = error_without(__name__, name, 2)
    raise kind(f"corejax.plugin has no {name!r}", got=name, wanted=f"one of: {', '.join(__all__)}", where=here(),
               todo=f"did you mean {close[0]!r}?" if close else "use one of these")


def __dir__() -> list[str]:
    return sorted(__all__)
