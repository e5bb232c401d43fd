"""Who is to blame for a rule that returned something wrong or raised, and how that is reported."""

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
    """The owner of a faulty rule: a primitive, or something that stands for one."""

    @property
    def name(self) -> str: ...

    @property
    def origin(self) -> str: ...


def rule_error(primitive: Blamed, hook: str, problem: str, got: object, wanted: object, todo: str | None,
               kind: type[RuleError] = RuleError) -> RuleError:
    """The error for a rule of `primitive` that returned something wrong."""
    pack = whose(primitive, hook)
    return kind(f"{primitive.name}.{hook} ({pack}): {problem}", primitive=primitive.name, hook=hook, pack=pack,
                got=got, wanted=wanted, todo=todo, where=here())


def of_user(error: RuleError, primitive: Blamed, params: Mapping[str, object]) -> RuleError:
    """If the faulty rule is a user's function in a param, the same error naming that function, not the primitive.

    Such a param has a method `__corejax_rule__`, which maps the name of a hook to the name of the user's rule.
    """
    prefix = f"{primitive.name}.{error.hook} ({error.pack}): "
    if error.hook is None or not error.message.startswith(prefix):
        return error  # about another primitive's rule, or renamed already
    for value in params.values():
        name_of = getattr(value, "__corejax_rule__", None)
        if name_of is not None:
            error.message = f"{name_of(error.hook)}: {error.message.removeprefix(prefix)}"
            break
    return error


def whose(primitive: Blamed, hook: str) -> str:
    """Who wrote a rule: the primitive's own pack, or another one that adds rules to it or wraps them."""
    by_packs = getattr(primitive, "answers", {})  # to transformations
    provider: str = getattr(primitive, "providers", {}).get(hook) or next(
        (answer.provider for each, answer in [*by_packs.items()] if each.name == hook and answer.provider), "derived")
    return primitive.origin + provider.removeprefix("derived") if provider.startswith("derived") else provider


def describe(value: object) -> str:
    """The type of anything that a rule returned, for an error."""
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
    """What to raise when a hook raised: the same exception, with a note that names the hook.

    An error that already names a hook gets no note, nor does one from a user's function: that isn't the hook's fault.
    """
    if hook == "impl" and isinstance(error, ValueError) and "read-only" in str(error):
        wrong = rule_error(primitive, hook, "writes to its operands", str(error), "unchanged operands",
                           "compute into a new array: copy the operand first, or omit `out=`")
        wrong.__cause__, wrong.where = error, where or wrong.where
        return wrong
    if type(error) is RuleError and error.primitive is None:  # from a kit, which doesn't know for whom it works
        return rule_error(primitive, error.hook or hook, error.message, error.got, error.wanted, error.todo)
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
    """A batch axis as a rule returned it, for an error."""
    return repr(dim) if isinstance(dim, (int, str, float)) else describe(dim)
