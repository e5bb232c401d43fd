"""What pack authors import.

>>> from corejax.plugin import define, hookimpl
>>> class Twice:
...     name = "twice"
...     @hookimpl
...     def decompose(self, args):
...         return args[0] + args[0]
>>> twice = define(Twice())
>>> twice.primitive
twice

Names are resolved on first use, so importing corejax loads neither pluggy nor the metadata of installed distributions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from corejax.base.late import find_in, homes
from corejax.base.tracebacks import calls_users, public, trim

if TYPE_CHECKING:
    from corejax.api.arrays import devices
    from corejax.api.jit import jit
    from corejax.base import structures
    from corejax.base.avals import Linear, Zero
    from corejax.base.elements import ElementType
    from corejax.base.source import add_library_package
    from corejax.eager.direct import NotDirectly, directly
    from corejax.installed.roles import operators, provide, roles
    from corejax.interpreters import carrying
    from corejax.kernel.declarations import (
        Sample,
        factors,
        hookimpl,
        itself,
        linear,
        not_differentiable,
        not_linear,
        over,
        partials,
        per_operand,
    )
    from corejax.kernel.hookspecs import API_VERSION
    from corejax.kernel.primitive import Primitive
    from corejax.packs import elements, families, shaping
    from corejax.packs.define import define, find
    from corejax.packs.extending import extend
    from corejax.packs.failures import failures_are_errors
    from corejax.packs.shaping import refused
    from corejax.xla.runtime.builtin import pjrt_client
    from corejax.xla.runtime.kernels import Kernel

#: This module has no submodules any more; their old names are redirected.
__path__: list[str] = []

_HOME = homes({
    "corejax.api.arrays": "devices",
    "corejax.api.jit": "jit",
    "corejax.base.avals": "Linear Zero",
    "corejax.base.elements": "ElementType",
    "corejax.base.source": "add_library_package",
    "corejax.base.structures": "=structures",
    "corejax.eager.direct": "NotDirectly directly",
    "corejax.installed.roles": "operators provide roles",
    "corejax.interpreters.carrying": "=carrying",
    "corejax.kernel.declarations":
        "Sample factors hookimpl itself linear not_differentiable not_linear over partials per_operand",
    "corejax.kernel.hookspecs": "API_VERSION",
    "corejax.kernel.primitive": "Primitive",
    "corejax.packs.define": "define find",
    "corejax.packs.elements": "=elements",
    "corejax.packs.extending": "extend",
    "corejax.packs.failures": "failures_are_errors",
    "corejax.packs.families": "=families",
    "corejax.packs.shaping": "=shaping refused",
    "corejax.xla.runtime.builtin": "pjrt_client",
    "corejax.xla.runtime.kernels": "Kernel",
})

__all__ = [
    "API_VERSION", "ElementType", "Kernel", "Linear", "NotDirectly", "Primitive", "Sample", "Zero",
    "add_library_package", "calls_users", "carrying", "define", "devices", "directly", "elements", "extend",
    "factors", "failures_are_errors", "families", "find", "hookimpl", "itself", "jit", "linear", "not_differentiable",
    "not_linear", "operators", "over", "partials", "per_operand", "pjrt_client", "provide", "public", "refused",
    "roles", "shaping", "structures",
]


if not TYPE_CHECKING:  # so that type checkers refuse names that aren't there
    def __getattr__(name: str) -> Any:
        try:
            return find_in(_HOME, __name__, name)
        except Exception as error:
            trim(error)
            raise


def __dir__() -> list[str]:
    return sorted(__all__)
