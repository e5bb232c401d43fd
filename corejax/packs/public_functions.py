"""The public function of a primitive, which users call."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from types import FunctionType
from typing import Any

from corejax.base.errors import PluginError, kind_of
from corejax.base.source import here
from corejax.base.tracebacks import as_entry, public, trim
from corejax.kernel.primitive import Function, Primitive


def public_function(primitive: Primitive) -> Function:
    """The plugin's own function or, by default, one that binds; with a name and documentation."""
    plugin = primitive.plugin
    typed = getattr(plugin, "abstract_eval", None) or getattr(plugin, "decompose", None)
    defaults = primitive.defaults
    bind = primitive.bind if not defaults else _bind_with_defaults(primitive.bind, defaults)
    make = getattr(plugin, "function", None)
    made: Any = make(bind) if make is not None else _default_function(bind)
    if not isinstance(made, FunctionType):
        raise PluginError(
            f"{primitive.name} (in {primitive.module}): its `function` doesn't return a function",
            primitive=primitive.name,
            got=kind_of(made), wanted="a function that calls bind(*arrays, **params)", where=here(),
            todo="return the function that it defines: `function` gets bind, and is not called with operands")
    made.__name__ = made.__qualname__ = primitive.name
    made.__module__ = primitive.module or type(plugin).__module__
    made.__doc__ = made.__doc__ or inspect.getdoc(plugin)
    function: Any = public(made)
    if make is None:
        function.__signature__ = _signature(typed)
    function.primitive = primitive
    return function  # type: ignore[no-any-return]


def _default_function(bind: Function) -> Function:
    @as_entry
    def function(*args: Any, **params: Any) -> Any:
        try:
            return bind(*args, **params)
        except (Exception, SystemExit) as error:
            trim(error)
            raise
    return function


def _bind_with_defaults(bind: Function, defaults: Mapping[str, object]) -> Function:
    return lambda *args, **params: bind(*args, **{**defaults, **params})


def _signature(typed: Function | None) -> inspect.Signature:
    parameters = () if typed is None else inspect.signature(typed).parameters.values()
    params = [p.replace(annotation=p.empty) for p in parameters if p.kind in (p.KEYWORD_ONLY, p.VAR_KEYWORD)]
    return inspect.Signature([inspect.Parameter("args", inspect.Parameter.VAR_POSITIONAL), *params])
