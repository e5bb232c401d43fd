"""The public function of a primitive, which users call."""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping, Sequence, Set
from functools import update_wrapper
from types import FunctionType
from typing import Any

from corejax.base.errors import PluginError, RuleError, kind_of
from corejax.base.source import here
from corejax.base.standins import replaced
from corejax.base.tracebacks import as_entry, calls_users, is_entry, trim
from corejax.kernel import checks
from corejax.kernel.declarations import Partials
from corejax.kernel.primitive import Function, Primitive
from corejax.packs.consistency import names_operands

_LETTERS = "xyzuvw"

#: What a structure says that is given another number of leaves than it has.
_NOT_FILLED = re.compile(r"Too \w+ leaves for PyTreeDef; expected (\d+)")


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
    function: Any = made if is_entry(made) else as_entry(update_wrapper(_guarded(made, primitive), made))
    if make is None or _names_no_argument(made):
        function.__signature__ = _signature(plugin, typed)
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


@calls_users
def _guarded(made: FunctionType, primitive: Primitive) -> Function:
    """A plugin's own function as an entry."""
    def function(*args: Any, **kwargs: Any) -> Any:
        try:
            return made(*args, **kwargs)
        except (Exception, SystemExit) as error:
            again = replaced(error, (args, kwargs))
            if again is None:
                wrong = _wrong_count(error, made, primitive)
                if wrong is not None:
                    trim(wrong)
                    raise wrong from None
                trim(error)
                raise
        return function(*again[0], **again[1])
    return function


def _wrong_count(error: BaseException, made: FunctionType, primitive: Primitive) -> RuleError | None:
    """The error for a structure that a plugin's function can't fill, as `bind` returned another number of results."""
    if isinstance(error, ValueError) and (found := _NOT_FILLED.match(str(error))) is not None:
        part = error.__traceback__
        while part is not None and part.tb_next is not None:
            part = part.tb_next
        if part is None or part.tb_frame.f_code is not made.__code__:
            return None
        return checks.rule_error(
            primitive, "abstract_eval", "announces a different number of results than its public function needs",
            str(error), f"{found[1]} results, for the structure that the function returns",
            "return a type for each result: for a call, jaxpr.out_avals")
    return None


def _bind_with_defaults(bind: Function, defaults: Mapping[str, object]) -> Function:
    return lambda *args, **params: bind(*args, **{**defaults, **params})


def _names_no_argument(function: FunctionType) -> bool:
    code = function.__code__
    return not code.co_argcount and not code.co_kwonlyargcount and not hasattr(function, "__wrapped__")


def _signature(plugin: object, typed: Function | None) -> inspect.Signature:
    """What tools show: the operands by their names, and the params as `typed`, which has them, declares them."""
    kind = inspect.Parameter
    parameters = () if typed is None else inspect.signature(typed).parameters.values()
    params = [p for p in parameters if p.kind in (p.KEYWORD_ONLY, p.VAR_KEYWORD)]
    result = "list[Array]" if _plain(plugin, "multiple_results") is True else "Array"
    operands = [kind(name.removeprefix("*"), kind.VAR_POSITIONAL if name[0] == "*" else kind.POSITIONAL_ONLY,
                     annotation="ArrayLike") for name in _operands(plugin, {p.name for p in params})]
    return inspect.Signature([*operands, *params], return_annotation=result)


def _operands(plugin: object, params: Set[str]) -> Sequence[str]:
    """The names of the operands: declared ones, or x, y, ... if a declaration tells how many there are."""
    declared, jvp, impl = [_plain(plugin, name) for name in ("operands", "jvp", "impl")]
    if names_operands(declared) and params.isdisjoint([name.removeprefix("*") for name in declared]):
        names: tuple[str, ...] = declared
        return names
    rule = getattr(impl, "per_operand", None)
    count = len(jvp.functions) if isinstance(jvp, Partials) else getattr(rule, "arity", None)
    letters = [letter for letter in _LETTERS if letter not in params]
    if count is None:
        return ["*args"]
    return letters[:count] if count <= len(letters) else [f"x{i}" for i in range(count)]


def _plain(plugin: object, name: str) -> Any:
    """An attribute as it is written: a property, which may raise, is not asked before the primitive is used."""
    found = inspect.getattr_static(plugin, name, None)
    return found.__func__ if isinstance(found, staticmethod) else found
