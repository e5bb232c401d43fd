"""Checks of form: how many things a rule returns, and of which kind; for avals and NumPy arrays, their types too."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from corejax.base import elements
from corejax.base.avals import ShapedArray
from corejax.base.elements import ElementType
from corejax.base.errors import CorejaxTypeError, RuleError, kind_of
from corejax.base.source import here
from corejax.kernel.checks.blame import describe, rule_error

if TYPE_CHECKING:
    from corejax.kernel.primitive import Primitive


def check_avals(primitive: Primitive, result: object,
                hook: str = "abstract_eval") -> ShapedArray | tuple[ShapedArray, ...]:
    """abstract_eval's result: one `ShapedArray`, or a sequence of them for a primitive with multiple results."""
    if not primitive.multiple_results:
        if isinstance(result, ShapedArray):
            return result
        raise rule_error(primitive, hook, "didn't return a type", describe(result), "a ShapedArray",
                         "return ShapedArray(shape, dtype), or declare multiple_results = True")
    if isinstance(result, (list, tuple)) and all(isinstance(aval, ShapedArray) for aval in result):
        return tuple(result)
    raise rule_error(primitive, hook, "didn't return a sequence of types", describe(result),
                     "a sequence of ShapedArrays, as multiple_results is declared",
                     "return a list with one ShapedArray for each result")


def check_elements(primitive: Primitive, avals: Sequence[ShapedArray]) -> None:
    """Raise for operands with elements of packs' own types that the primitive isn't for."""
    for i, aval in enumerate(avals):
        element = elements.find(aval.dtype)
        if element is None or _has_rules_for(primitive, element):
            continue
        of = " or ".join([f"elements of type {name}" for name in primitive.element_types])
        why = element.refuses.get(primitive.name) or ("" if primitive.structural else f"its rules are for {of}" if of
                                                      else "they aren't numbers")
        if why:
            raise CorejaxTypeError(
                f"{primitive.name} ({primitive.origin}) doesn't take elements of type {element.name}: {why}",
                primitive=primitive.name, pack=primitive.origin, got=f"{aval} as operand {i}", where=here(),
                wanted=of or "numbers or booleans",
                todo=element.todo or f"use a function of the pack that brings {element.name}")


def check_made(primitive: Primitive, found: ShapedArray | tuple[ShapedArray, ...]) -> None:
    """Raise for results with elements of packs' own types that the primitive can't make."""
    for aval in found if isinstance(found, tuple) else (found,):
        element = elements.find(aval.dtype)
        if element is not None and not primitive.structural and not _has_rules_for(primitive, element):
            raise CorejaxTypeError(
                f"{primitive.name} ({primitive.origin}) doesn't make elements of type {element.name}",
                primitive=primitive.name, pack=primitive.origin, got=str(aval), wanted="numbers or booleans",
                where=here(), todo=element.todo or f"use a function of the pack that brings {element.name}")


def _has_rules_for(primitive: Primitive, element: ElementType) -> bool:
    return element.name in primitive.element_types or "*" in primitive.element_types


def check_jvp_pair(primitive: Primitive, result: Any) -> tuple[Any, Any]:
    """jvp's result: a pair (primals out, tangents out)."""
    if type(result) in (list, tuple) and len(result) == 2:
        return result[0], result[1]
    raise rule_error(primitive, "jvp", "didn't return a pair", describe(result), "(output, output tangent)",
                     "return both, the output first")


def check_sequence(primitive: Primitive, hook: str, result: object, count: int, what: str) -> Sequence[Any]:
    """A sequence with one entry for each of `count` things."""
    if isinstance(result, (list, tuple)) and len(result) == count:
        return result
    raise rule_error(primitive, hook, f"returned the wrong number of {what}", describe(result),
                     f"a sequence of {count}", f"return one entry for each of the {what}")


def check_types(primitive: Primitive, hook: str, avals: Sequence[ShapedArray], expected: Sequence[ShapedArray]) -> None:
    """Check that the types of results, weak types included, are those that abstract_eval announced."""
    check_sequence(primitive, hook, avals, len(expected), "results")
    for aval, wanted in zip(avals, expected, strict=True):
        if aval is not wanted:
            raise rule_error(primitive, hook, f"returned {aval}, wanted {wanted} as abstract_eval says", aval, wanted,
                             f"make {hook} and abstract_eval agree")


def no_array(primitive: Primitive, hook: str, value: object, expected: object) -> RuleError:
    """The error for a result that isn't an array."""
    return rule_error(primitive, hook, "returned something that isn't an array", describe(value), expected,
                      "return an array of that type")


def no_host_array(primitive: Primitive, out: object, expected: ShapedArray) -> RuleError:
    """The error for an impl that returned something other than a NumPy array."""
    return rule_error(primitive, "impl", f"returned {kind_of(out)}", describe(out), f"a NumPy array {expected}",
                      "return what NumPy computed, not None or a list")


def wrong_host_array(primitive: Primitive, out: object, expected: ShapedArray) -> RuleError:
    """The error for an impl that returned an array of the wrong type."""
    got = describe(out)
    return rule_error(primitive, "impl", f"returned {got}, wanted {expected} as abstract_eval says", got, expected,
                      "make impl and abstract_eval agree; the compiled program follows abstract_eval")


def wrong_count(primitive: Primitive, outs: object, count: int) -> RuleError:
    """The error for an impl that returned the wrong number of results."""
    got = len(outs) if isinstance(outs, (list, tuple)) else kind_of(outs)
    return rule_error(primitive, "impl", "returned the wrong number of results", got, f"a sequence of {count} arrays",
                      "return one array for each type that abstract_eval returns")


def wrong_count_of_partials(primitive: Primitive, n_operands: int, n_partials: int) -> RuleError:
    """The error for `partials` or `factors` that don't match the number of operands."""
    return rule_error(primitive, "jvp", "declares derivatives for a different number of operands",
                      f"{n_operands} operands", f"{n_partials}, as in its partials or factors",
                      "declare one function for each operand, None where the derivative is zero")


def check_list(primitive: Primitive, hook: str, outs: object) -> list[Any]:
    """The results of a primitive with several."""
    if isinstance(outs, (list, tuple)):
        return list(outs)
    raise rule_error(primitive, hook, "didn't return a sequence of results", describe(outs),
                     "a sequence, as multiple_results is declared", "return a list with one array for each result")


def check_linearized(primitive: Primitive, result: object) -> tuple[Any, Any, Any]:
    """linearize's result: the result of the primitive, the residuals, and the derivative as a function."""
    if not isinstance(result, (list, tuple)) or len(result) != 3 or not callable(result[2]):
        raise rule_error(primitive, "linearize", "didn't return a triple that ends in a function", describe(result),
                         "(result, residuals, lin)", "return these three, with lin(residuals, tangents)")
    return result[0], result[1], result[2]
