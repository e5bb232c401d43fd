"""Checks on what rules return, at the point where it enters the kernel.

Each `check_*` returns the result in the kernel's form or raises a `RuleError` that names the primitive, the hook, the
pack, what was returned and what was wanted. The interpreters compare types themselves in the common case (two `is`
tests) and come here only when something is off.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from corejax.avals import ShapedArray, Zero, aval_of
from corejax.errors import CorejaxError, RuleError
from corejax.source import here


def rule_error(primitive: Any, hook: str, problem: str, got: Any, wanted: Any, todo: str) -> RuleError:
    """The error for a rule of `primitive` that returned something wrong."""
    return RuleError(f"{primitive.name}.{hook} ({primitive.origin}): {problem}", primitive=primitive.name, hook=hook,
                     pack=primitive.origin, got=got, wanted=wanted, todo=todo, where=here())


def describe(value: Any) -> str:
    """The type of whatever a rule returned, for an error."""
    if isinstance(value, (list, tuple)):
        inner = ", ".join(map(describe, value))
        return f"({inner})" if isinstance(value, tuple) else f"[{inner}]"
    if value is None or isinstance(value, (Zero, ShapedArray)):
        return repr(value)
    try:
        return str(aval_of(value))
    except CorejaxError:
        return f"{type(value).__name__} {value!r:.40}"


def check_avals(primitive: Any, result: Any) -> ShapedArray | tuple[ShapedArray, ...]:
    """abstract_eval's result: one `ShapedArray`, or a sequence of them for a primitive with multiple results."""
    if not primitive.multiple_results:
        if isinstance(result, ShapedArray):
            return result
        raise rule_error(primitive, "abstract_eval", "returned no type", describe(result), "a ShapedArray",
                         "return ShapedArray(shape, dtype), or declare multiple_results = True")
    if isinstance(result, (list, tuple)) and all(isinstance(aval, ShapedArray) for aval in result):
        return tuple(result)
    raise rule_error(primitive, "abstract_eval", "returned no sequence of types", describe(result),
                     "a sequence of ShapedArrays, as multiple_results is declared",
                     "return a list with one ShapedArray for each result")


def check_jvp_pair(primitive: Any, result: Any) -> tuple[Any, Any]:
    """jvp's result: a pair (primals out, tangents out)."""
    if isinstance(result, (list, tuple)) and len(result) == 2:
        return result[0], result[1]
    raise rule_error(primitive, "jvp", "returned no pair", describe(result), "(output, output tangent)",
                     "return both, the output first")


def check_sequence(primitive: Any, hook: str, result: Any, count: int, what: str) -> Sequence[Any]:
    """A sequence with one entry for each of `count` things."""
    if isinstance(result, (list, tuple)) and len(result) == count:
        return result
    raise rule_error(primitive, hook, f"returned the wrong number of {what}", describe(result),
                     f"a sequence of {count}", f"return one entry for each of the {what}")


def check_output(primitive: Any, hook: str, out: Any, expected: ShapedArray) -> None:
    """A primal output has the type that abstract_eval announced."""
    aval = _aval_or_error(primitive, hook, out, expected)
    if not aval.matches(expected):
        raise rule_error(primitive, hook, f"returned {aval}, wanted {expected}", aval, expected,
                         "return what binding the primitive itself gives")


def check_tangent(primitive: Any, tangent: Any, expected: ShapedArray) -> None:
    """An output tangent has the tangent type of its primal."""
    aval = tangent.aval if type(tangent) is Zero else _aval_or_error(primitive, "jvp", tangent, expected)
    if not aval.matches(expected):
        raise rule_error(primitive, "jvp", f"returned tangent {aval}, wanted {expected} as its primal", aval, expected,
                         "return a tangent of the primal's shape and dtype; for integers and zeros, Zero(aval.tangent)")


def check_cotangent(primitive: Any, index: int, cotangent: Any, expected: ShapedArray) -> None:
    """The cotangent of an operand has the operand's type."""
    aval = cotangent.aval if type(cotangent) is Zero else _aval_or_error(primitive, "transpose", cotangent, expected)
    if not aval.matches(expected):
        raise rule_error(primitive, "transpose", f"returned cotangent {aval} for operand {index}, wanted {expected}",
                         aval, expected, "sum over what the operand was broadcast along; convert to its dtype")


def check_batched(primitive: Any, out: Any, dim: Any, size: int, expected: ShapedArray) -> None:
    """A batched output is the unbatched type with one more axis, of the batch's size, at `dim`."""
    aval = _aval_or_error(primitive, "vmap", out, expected)
    if dim is None:
        wanted: Any = expected
    elif type(dim) is int and 0 <= dim <= len(expected.shape):
        wanted = expected.update(shape=(*expected.shape[:dim], size, *expected.shape[dim:]))
    else:
        raise rule_error(primitive, "vmap", "returned a bad output dimension", repr(dim),
                         f"None or an int from 0 to {len(expected.shape)}", "return (output, dim of its batch axis)")
    if not aval.matches(wanted):
        raise rule_error(primitive, "vmap", f"returned {aval} with its batch axis at {dim}, wanted {wanted}", aval,
                         wanted, "each slice along the batch axis has the type of the unbatched result")


def wrong_count_of_partials(primitive: Any, n_operands: int, n_partials: int) -> RuleError:
    """The error for `partials` or `factors` that don't go with the operands."""
    return rule_error(primitive, "jvp", "declares the derivatives of another number of operands",
                      f"{n_operands} operands", f"{n_partials}, as in its partials or factors",
                      "declare one function for each operand, None where the derivative is zero")


def check_list(primitive: Any, hook: str, outs: Any) -> list[Any]:
    """The results of a primitive with several."""
    if isinstance(outs, (list, tuple)):
        return list(outs)
    raise rule_error(primitive, hook, "returned no sequence of results", describe(outs),
                     "a sequence, as multiple_results is declared", "return a list with one array for each result")


def check_array(primitive: Any, hook: str, out: Any) -> None:
    """A value whose type is checked elsewhere is an array at all."""
    if not hasattr(out, "aval"):
        _aval_or_error(primitive, hook, out, "an array")


def check_effects(primitive: Any, result: Any) -> frozenset[Any]:
    """The effects of an equation."""
    if isinstance(result, frozenset):
        return result
    raise rule_error(primitive, "effects", "returned no set of effects", describe(result), "a frozenset",
                     "return frozenset((effect,)), or frozenset() where there is none")


def check_partial_eval(primitive: Any, result: Any) -> Any:
    """partial_eval's result: two equations, which outputs are unknown, and the residuals."""
    if isinstance(result, (list, tuple)) and len(result) == 4:
        return result
    raise rule_error(primitive, "partial_eval", "didn't divide the equation", describe(result),
                     "(known_eqn or None, staged_eqn or None, unknown_out, residual_vars)", "return these four")


def check_pretty(primitive: Any, result: Any) -> Mapping[str, Any]:
    """What to print of the params."""
    if isinstance(result, Mapping):
        return result
    raise rule_error(primitive, "pretty", "returned no mapping", describe(result),
                     "a mapping of names to what to print", "return a dict, such as {'axes': axes}")


#: Hooks whose result is checked as a whole, whoever calls them.
WHOLE_RESULTS = {"effects": check_effects, "partial_eval": check_partial_eval, "pretty": check_pretty}


def _aval_or_error(primitive: Any, hook: str, value: Any, expected: ShapedArray | str) -> ShapedArray:
    try:
        return aval_of(value)
    except CorejaxError:
        raise rule_error(primitive, hook, "returned something that is no array", describe(value), expected,
                         "return an array of that type") from None
