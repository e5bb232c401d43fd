"""Checks on what rules return, where it enters the kernel: on its form. `interpreters.outputs` has those on values.

Each `check_*` returns the result in the kernel's form or raises a `RuleError` that names the primitive, the hook, the
pack, what was returned and what was wanted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from corejax.base import tracebacks
from corejax.base.avals import Linear, ShapedArray, Zero, aval_of
from corejax.base.dtypes import PYTHON_SCALARS
from corejax.base.errors import CorejaxError, RuleError, kind_of
from corejax.base.source import here, is_library, package_of

if TYPE_CHECKING:
    from corejax.kernel.primitive import Primitive


class Blamed(Protocol):
    """Whose rule is at fault: a primitive, or what stands for one."""

    @property
    def name(self) -> str: ...

    @property
    def origin(self) -> str: ...


def rule_error(primitive: Blamed, hook: str, problem: str, got: Any, wanted: Any, todo: str,
               kind: type[RuleError] = RuleError) -> RuleError:
    """The error for a rule of `primitive` that returned something wrong."""
    pack = whose(primitive, hook)
    return kind(f"{primitive.name}.{hook} ({pack}): {problem}", primitive=primitive.name, hook=hook, pack=pack,
                got=got, wanted=wanted, todo=todo, where=here())


def of_user(error: RuleError, primitive: Primitive, params: Mapping[str, Any]) -> RuleError:
    """An error for a rule that a param holds, as a function of the user's, which it names in place of the primitive.

    Such a param has a method `__corejax_rule__`, from the name of a hook to what that rule is called.
    """
    if error.primitive == primitive.name and error.hook is not None:
        for value in params.values():
            name_of = getattr(value, "__corejax_rule__", None)
            if name_of is not None:
                problem = error.message.removeprefix(f"{primitive.name}.{error.hook} ({error.pack}): ")
                error.message = f"{name_of(error.hook)}: {problem}"
    return error


def whose(primitive: Blamed, hook: str) -> str:
    """Who wrote a rule: the pack of the primitive, or another one that gives it rules, or wraps them."""
    provider: str = getattr(primitive, "providers", {}).get(hook, "derived")
    return primitive.origin + provider.removeprefix("derived") if provider.startswith("derived") else provider


def describe(value: Any) -> str:
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


def check_avals(primitive: Primitive, result: Any,
                hook: str = "abstract_eval") -> ShapedArray | tuple[ShapedArray, ...]:
    """abstract_eval's result: one `ShapedArray`, or a sequence of them for a primitive with multiple results."""
    if not primitive.multiple_results:
        if isinstance(result, ShapedArray):
            return result
        raise rule_error(primitive, hook, "returned no type", describe(result), "a ShapedArray",
                         "return ShapedArray(shape, dtype), or declare multiple_results = True")
    if isinstance(result, (list, tuple)) and all(isinstance(aval, ShapedArray) for aval in result):
        return tuple(result)
    raise rule_error(primitive, hook, "returned no sequence of types", describe(result),
                     "a sequence of ShapedArrays, as multiple_results is declared",
                     "return a list with one ShapedArray for each result")


def check_jvp_pair(primitive: Primitive, result: Any) -> tuple[Any, Any]:
    """jvp's result: a pair (primals out, tangents out)."""
    if type(result) in (list, tuple) and len(result) == 2:
        return result[0], result[1]
    raise rule_error(primitive, "jvp", "returned no pair", describe(result), "(output, output tangent)",
                     "return both, the output first")


def check_sequence(primitive: Primitive, hook: str, result: Any, count: int, what: str) -> Sequence[Any]:
    """A sequence with one entry for each of `count` things."""
    if isinstance(result, (list, tuple)) and len(result) == count:
        return result
    raise rule_error(primitive, hook, f"returned the wrong number of {what}", describe(result),
                     f"a sequence of {count}", f"return one entry for each of the {what}")


def check_types(primitive: Primitive, hook: str, avals: Sequence[Any], expected: Sequence[Any]) -> None:
    """Types of results, weak types included, are those that abstract_eval announced."""
    check_sequence(primitive, hook, avals, len(expected), "results")
    for aval, wanted in zip(avals, expected, strict=True):
        if aval is not wanted:
            raise rule_error(primitive, hook, f"returned {aval}, wanted {wanted} as abstract_eval says", aval, wanted,
                             f"make {hook} and abstract_eval agree")


def no_array(primitive: Primitive, hook: str, value: Any, expected: Any) -> RuleError:
    """The error for a result that is no array."""
    return rule_error(primitive, hook, "returned something that is no array", describe(value), expected,
                      "return an array of that type")


def no_host_array(primitive: Primitive, out: Any, expected: ShapedArray) -> RuleError:
    """The error for an impl that returned no NumPy array."""
    return rule_error(primitive, "impl", f"returned {kind_of(out)}", describe(out), f"a NumPy array {expected}",
                      "return what NumPy computed, not None or a list")


def wrong_host_array(primitive: Primitive, out: Any, expected: ShapedArray) -> RuleError:
    """The error for an impl that returned an array of another type."""
    got = describe(out)
    return rule_error(primitive, "impl", f"returned {got}, wanted {expected} as abstract_eval says", got, expected,
                      "make impl and abstract_eval agree; the compiled program follows abstract_eval")


def wrong_count(primitive: Primitive, outs: Any, count: int) -> RuleError:
    """The error for an impl that returned another number of results."""
    got = len(outs) if isinstance(outs, (list, tuple)) else kind_of(outs)
    return rule_error(primitive, "impl", "returned the wrong number of results", got, f"a sequence of {count} arrays",
                      "return one array for each type that abstract_eval returns")


def failed(primitive: Blamed, hook: str, error: Exception, where: str | None = None) -> Exception:
    """What to raise for an exception that came out of a hook: the same, with a note that names the hook.

    An error that names a hook needs none, and what a function of the user's raised is no affair of the hook's.
    """
    if hook == "impl" and isinstance(error, ValueError) and "read-only" in str(error):
        wrong = rule_error(primitive, hook, "writes to its operands", str(error), "operands as they were",
                           "compute into a new array: copy the operand first, or leave `out=` away")
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


def describe_dim(dim: Any) -> str:
    """Where a rule said that a batch axis is, for an error."""
    return repr(dim) if isinstance(dim, (int, str, float)) else describe(dim)


def wrong_count_of_partials(primitive: Primitive, n_operands: int, n_partials: int) -> RuleError:
    """The error for `partials` or `factors` that don't go with the operands."""
    return rule_error(primitive, "jvp", "declares the derivatives of another number of operands",
                      f"{n_operands} operands", f"{n_partials}, as in its partials or factors",
                      "declare one function for each operand, None where the derivative is zero")


def check_list(primitive: Primitive, hook: str, outs: Any) -> list[Any]:
    """The results of a primitive with several."""
    if isinstance(outs, (list, tuple)):
        return list(outs)
    raise rule_error(primitive, hook, "returned no sequence of results", describe(outs),
                     "a sequence, as multiple_results is declared", "return a list with one array for each result")


def check_linearized(primitive: Primitive, result: Any) -> tuple[Any, Any, Any]:
    """linearize's result: what it computes, what it keeps, and the derivative as a function."""
    if not isinstance(result, (list, tuple)) or len(result) != 3 or not callable(result[2]):
        raise rule_error(primitive, "linearize", "returned no triple that ends in a function", describe(result),
                         "(result, residuals, lin)", "return these three, with lin(residuals, tangents)")
    return result[0], result[1], result[2]
