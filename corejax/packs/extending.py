"""Adding rules to a primitive from a notebook or a script: like `corejax.rules`, without an entry point."""

from __future__ import annotations

import sys

from corejax.base.errors import CorejaxTypeError, kind_of
from corejax.base.source import here
from corejax.base.tracebacks import public
from corejax.installed import registry
from corejax.kernel.primitive import Primitive
from corejax.packs import freeze
from corejax.packs.define import find


@public
def extend(primitive: Primitive, plugin: object, *, replace: bool = False) -> None:
    """Add missing hooks to somebody else's primitive, from an object with `@hookimpl` methods.

    `primitive` is its name, the primitive itself or its function. The plugin object adds hooks that have no answer yet,
    neither written nor derived; a lowering for one `platform` too. With `replace` it may also change answers: replace
    hooks, or wrap them. A mistake in it raises immediately, and leaves the primitive unchanged. A pack that calls this
    while it is imported can't consent for the user: what it would change counts only if the user prefers that pack.

    A primitive's rules are fixed when it is first used, so extend it before that.

    >>> from corejax.plugin import define, hookimpl
    >>> class Twice:
    ...     name = "extended_twice"
    ...     @hookimpl
    ...     def decompose(self, args):
    ...         return args[0] + args[0]
    >>> class InOneStep:
    ...     @hookimpl
    ...     def impl(self, args):
    ...         return args[0] * args[0].dtype.type(2)
    >>> twice = define(Twice())
    >>> extend(twice, InOneStep(), replace=True)
    >>> twice(3.0), twice.primitive.providers["impl"]
    (Array(6., dtype=float64, weak_type=True), 'extended in corejax.packs.extending')
    """
    module = sys._getframe(2).f_globals.get("__name__", "__main__")  # the caller of this entry
    freeze.extend(_primitive(primitive), plugin, f"extended in {module}", replace, registry.importing(module))


def _primitive(named: object) -> Primitive:
    if isinstance(named, str):
        return find(named)
    found = getattr(named, "primitive", named)
    if not isinstance(found, Primitive):
        raise CorejaxTypeError("there is no primitive to extend", got=kind_of(named), where=here(),
                               wanted="a primitive, its function or its name", todo="pass what define returned")
    return found
