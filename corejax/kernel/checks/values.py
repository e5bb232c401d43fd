"""Checks of the values that rules return: arrays, or tracers valid where the rule ran, of the right type.

In the common case the interpreters compare types themselves (two `is` tests), and only come here if something is off,
which may be just a raw NumPy array in place of an `Array`. Each `check_*` returns the value in the kernel's form, or
raises a `RuleError`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from corejax.arrays.array import Array, as_array
from corejax.base import dtypes
from corejax.base.avals import ShapedArray, Zero
from corejax.base.errors import CorejaxError
from corejax.kernel.checks.blame import describe, describe_dim, rule_error
from corejax.kernel.checks.forms import check_sequence, no_array
from corejax.kernel.context import context, tracing
from corejax.kernel.factors import Divisor
from corejax.kernel.trace import Trace, Tracer, Value, belongs, leak_error
from corejax.kernel.varying import fitted, in_order, varied

if TYPE_CHECKING:
    from corejax.kernel.primitive import Primitive

#: What is accepted as an array besides `Array` and tracers.
_RAW = (np.ndarray, np.generic, *dtypes.PYTHON_SCALARS)


def check_value(primitive: Primitive, hook: str, value: Any, expected: ShapedArray, trace: Trace | None,
                what: str = "{}, wanted {}", todo: str = "return what binding the primitive itself gives") -> Any:
    """Check that a value is valid under `trace` and of exactly the type `expected`, weak type included."""
    value = check_array(primitive, hook, value, expected, trace)
    aval = value.aval
    if aval is expected:
        return value
    if aval.varying != expected.varying and aval.matches(expected) and aval.weak_type is expected.weak_type:
        return _varied(primitive, hook, value, expected, trace, what)
    if aval.matches(expected):
        todo = "return an array of that type; Python numbers, and what is made from them alone, are weak (~)"
    raise rule_error(primitive, hook, f"returned {what.format(value.aval, expected)}", value.aval, expected,
                            todo)


def _varied(primitive: Primitive, hook: str, value: Any, expected: ShapedArray, trace: Trace | None, what: str) -> Any:
    """A value that varies along fewer axes than expected, made to vary along all; an error if it is along more."""
    more = in_order(value.aval.varying - expected.varying)
    if more:
        names = ", ".join(map(str, more))
        raise rule_error(primitive, hook, f"returned {what.format(value.aval, expected)}: it varies along {names}",
                         value.aval, expected, f"sum it over {names}, or let what it belongs to vary along {names} too")
    with tracing(context.trace if trace is None else trace):
        return varied(value, expected.varying)


def check_home(primitive: Primitive, hook: str, tracer: Tracer, trace: Trace | None) -> None:
    """Check that a tracer belongs to `trace` or to one around it."""
    if belongs(tracer, trace):
        return
    if hook == "jvp" and tracer._trace.is_recording and tracer._trace.live and tracer._trace.parent is trace:
        raise rule_error(primitive, hook, "returned a result that isn't known until the tangents are",
                         f"{tracer.aval}, computed from a tangent", "results computed from the primals alone",
                         "keep tangents out of the results; if the rule binds values and tangents together, as that of "
                         "a loop does, write the hook partial_eval of what it binds (corejax.plugin.carrying helps)")
    of = "another transformation" if tracer._trace.live else "a transformation that has ended"
    raise rule_error(primitive, hook, f"returned a traced value from {of}", leak_error(tracer, "").got,
                            "a value computed from this call's operands",
                            "compute with what the rule is given, and don't keep any of it for later")


def check_array(primitive: Primitive, hook: str, value: object, expected: object, trace: Trace | None) -> Value:
    """Check a value whose type is checked elsewhere, or only partly matters."""
    if isinstance(value, Tracer):
        check_home(primitive, hook, value, trace)
        return value
    if type(value) is Array:
        return value
    try:
        if isinstance(value, _RAW):
            return as_array(value, copy=True)
    except CorejaxError:
        pass  # a dtype that no array can have
    raise no_array(primitive, hook, value, expected)


def check_outputs(primitive: Primitive, hook: str, outs: Any, expected: Any, trace: Trace | None) -> Any:
    """Check the results of a primitive, one value or a list, against the types that abstract_eval announced."""
    if type(expected) is not tuple:
        return check_value(primitive, hook, outs, expected, trace)
    outs = check_sequence(primitive, hook, outs, len(expected), "outputs")
    return [x if type(x) is Array and x.aval is aval else check_value(primitive, hook, x, aval, trace)
            for x, aval in zip(outs, expected, strict=True)]


def check_tangent(primitive: Primitive, hook: str, tangent: object, expected: ShapedArray, trace: Trace | None) -> Any:
    """Check that an output tangent has the tangent type of its primal."""
    if type(tangent) is Zero:
        if tangent.aval is expected:
            return tangent
        if tangent.aval.matches(expected) and not tangent.aval.weak_type:
            return Zero(expected)  # zeros are the same everywhere
        raise rule_error(primitive, hook, f"returned tangent {tangent!r}, wanted {expected} as its primal",
                                tangent, f"Zero({expected})", "return Zero(out.aval.tangent)")
    return check_value(primitive, hook, tangent, expected, trace, "tangent {}, wanted {} as its primal",
                       "return a tangent of the primal's shape and dtype; for integers and zeros, Zero(aval.tangent)")


def check_factor(primitive: Primitive, weight: Any, wanted: ShapedArray, trace: Trace | None) -> Any:
    """Check a factor that multiplies a tangent: it has the output's dtype, and its shape or rank 0."""
    if type(weight) is Divisor:
        return Divisor(check_factor(primitive, weight.value, wanted, trace))
    weight = check_array(primitive, "jvp", weight, f"a factor of type {wanted}", trace)
    aval = weight.aval
    if aval.dtype != wanted.dtype or (aval.shape and aval.shape != wanted.shape):
        raise rule_error(primitive, "jvp", "a factor doesn't fit the output", aval, wanted,
                                "return an array of the output's dtype, and of its shape or ()")
    return weight


def check_cotangent(primitive: Primitive, index: int, cotangent: object, expected: ShapedArray, trace: Trace) -> Any:
    """Check that an operand's cotangent has the operand's type; returns None for one that is zero.

    It may vary along other axes than the operand: see `corejax.kernel.varying`.
    """
    if cotangent is None:
        return None
    if type(cotangent) is Zero and cotangent.aval.invariant is expected.invariant:
        return None
    if type(cotangent) is Zero:
        raise rule_error(primitive, "transpose", f"returned {cotangent!r} for operand {index}", cotangent,
                                f"Zero({expected}), or None", "return None where the cotangent is zero")
    expected = expected.strong  # never weak
    cotangent = check_array(primitive, "transpose", cotangent, expected, trace)
    found = expected.update(varying=cotangent.aval.varying)
    cotangent = check_value(primitive, "transpose", cotangent, found, trace,
                            f"cotangent {{}} for operand {index}, wanted {{}}",
                            "sum over what the operand was broadcast along; convert to its dtype")
    return fitted(cotangent, expected)


def check_no_cotangent(primitive: Primitive, index: int, cotangent: object) -> None:
    """Check that there is no cotangent for an operand that is a value."""
    if type(cotangent) is not Zero:
        raise rule_error(primitive, "transpose", f"returned a cotangent for operand {index}, which is a value",
                                describe(cotangent), "None", "return cotangents of the Linear operands only")


def check_batched(primitive: Primitive, out: object, dim: object, size: int, expected: ShapedArray, trace: Trace
                  ) -> Any:
    """Check that a batched output has the unbatched type with one more axis, of the batch's size, at `dim`."""
    if dim is None:
        wanted = expected
    elif type(dim) is int and 0 <= dim <= len(expected.shape):
        wanted = expected.update(shape=(*expected.shape[:dim], size, *expected.shape[dim:]))
    else:
        raise rule_error(primitive, "vmap", "returned an invalid output dimension", describe_dim(dim),
                                f"None or an int from 0 to {len(expected.shape)}",
                                "return (output, dim of its batch axis)")
    return check_value(primitive, "vmap", out, wanted, trace, f"{{}} with its batch axis at {dim}, wanted {{}}",
                       "each slice along the batch axis has the type of the unbatched result")
