"""Whose rule returned something wrong, or raised, and how that is reported."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

import numpy as np

from corejax.base import tracebacks
from corejax.base.avals import Linear, ShapedArray, Zero, aval_of
from corejax.base.dtypes import PYTHON_SCALARS
from corejax.base.errors import CorejaxError, RuleError, kind_of
from corejax.base.source import here, is_library, package_of


class Blamed(Protocol):
    """Whose rule is at fault: a primitive, or what stands for one."""

    @property
    def name(self) -> str: ...

    @property
    def origin(self) -> str: ...


def rule_error(primitive: Blamed, hook: str, problem: str, got: object, wanted: object, todo: str,
               kind: type[RuleError] = RuleError) -> RuleError:
    """The error for a rule of `primitive` that returned something wrong."""
    pack = whose(primitive, hook)
    return kind(f"{primitive.name}.{hook} ({pack}): {problem}", primitive=primitive.name, hook=hook, pack=pack,
                got=got, wanted=wanted, todo=todo, where=here())


def of_user(error: RuleError, primitive: Blamed, params: Mapping[str, object]) -> RuleError:
    """An error for a rule that a param holds, as a function of the user's, which it names in place of the primitive.

    Such a param has a method `__corejax_rule__`, from the name of a hook to what that rule is called.
    """
    prefix = f"{primitive.name}.{error.hook} ({error.pack}): "
    if error.hook is None or not error.message.startswith(prefix):
        return error  # of another primitive's rule, or told already
    for value in params.values():
        name_of = getattr(value, "__corejax_rule__", None)
        if name_of is not None:
            error.message = f"{name_of(error.hook)}: {error.message.removeprefix(prefix)}"
            break
    return error


def whose(primitive: Blamed, hook: str) -> str:
    """Who wrote a rule: the pack of the primitive, or another one that gives it rules, or wraps them."""
    provider: str = getattr(primitive, "providers", {}).get(hook, "derived")
    return primitive.origin + provider.removeprefix("derived") if provider.startswith("derived") else provider


def describe(value: object) -> str:
    """The type of whatever a rule returned, for an error."""
    if isinstance(value, (list, tuple)):
        inner = ", ".join([*map(describe, value[:4]), *["..."] * (len(value) > 4)])
        return f"({inner})" if isinstance(value, tuple) else f"[{inner}]"
    if value is None or isinstance(value, (Zero, Linear, ShapedArray)):
        return repr(value)
    if isinstance(value, (str, bytes, dict, set)):
        return f"{type(value).__name__} {value!r:.40}"
    order = "" if getattr(getattr(value, "dtype", None), "isnative", True) else " in another byte order"
    try:
        is_value = hasattr(value, "__array__") or type(value) in PYTHON_SCALARS
        return f"{aval_of(value)}{order}" if is_value else kind_of(value)
    except CorejaxError:
        return f"an array of {value.dtype}" if isinstance(value, (np.ndarray, np.generic)) else kind_of(value)


def failed(primitive: Blamed, hook: str, error: Exception, where: str | None = None) -> Exception:
    """What to raise for an exception that came out of a hook: the same, with a note that names the hook.

    An error that names a hook needs none, and the hook isn't responsible for what a function of the user's raised.
    """
    if hook == "impl" and isinstance(error, ValueError) and "read-only" in str(error):
        wrong = rule_error(primitive, hook, "writes to its operands", str(error), "operands as they were",
                           "compute into a new array: copy the operand first, or omit `out=`")
        wrong.__cause__, wrong.where = error, where or wrong.where
        return wrong
    plugin, named = getattr(primitive, "plugin", None), getattr(error, "primitive", None)
    if plugin is None or hasattr(error, "_hook") or named == primitive.name or getattr(error, "hook", None) is not None:
        return error
    own = type(plugin).__module__.partition(".")[0]
    part = error.__traceback__ and error.__traceback__.tb_next
    while part is not None:
        frame = part.tb_frame
        if not is_library(frame) and package_of(frame) not in (own, *tracebacks.TOOLS):
            return error
        part = part.tb_next
    error._hook, error._primitive = hook, primitive  # type: ignore[attr-defined]
    error.add_note(f"raised by {primitive.name}.{hook} ({whose(primitive, hook)}), for {where or here()}")
    return error


def describe_dim(dim: object) -> str:
    """Where a rule said that a batch axis is, for an error."""
    return repr(dim) if isinstance(dim, (int, str, float)) else describe(dim)
