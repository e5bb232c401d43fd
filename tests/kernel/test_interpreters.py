"""The interpreters, with toy primitives and no pack: forward, tape, reverse, batching, staging, and their nesting."""

from __future__ import annotations

import math

import numpy as np
import pytest
from calculus import add, calculus, cos, mul, neg, sin, square, total

from corejax.core import (
    Array,
    EvalTrace,
    Linear,
    ShapedArray,
    Zero,
    eval_jaxpr,
    jvp_jaxpr,
    partial_eval_jaxpr,
    stage,
    transpose_jaxpr,
)
from corejax.errors import CorejaxNotImplementedError, LeakedTracerError, MissingRuleError, RuleError
from corejax.interpreters import batching, forward, linearize, reverse
from corejax.interpreters.partial_eval import record
from corejax.kernel.context import context
from corejax.plugin import define, hookimpl, not_differentiable

F64 = ShapedArray((), np.float64)


@pytest.fixture(autouse=True)
def _roles():
    with calculus():
        yield


def value(x):
    return Array.from_host(np.asarray(x, np.float64), ShapedArray(np.shape(x), np.float64))


def fun(x):
    """sin(x) cos(x) - x^2, with derivative cos 2x - 2x."""
    return [add(mul(sin(x), cos(x)), neg(square(x)))]


FUN, SLOPE = math.sin(0.7) * math.cos(0.7) - 0.49, math.cos(1.4) - 1.4
CURVATURE = -2 * math.sin(1.4) - 2.0


def grad(f):
    def df(x):
        outs, pullback = reverse.vjp(f, [x])
        return pullback([value(1.0)])
    return df


def derivative(f):
    return lambda x: forward.jvp(f, [x], [value(1.0)])[1]


def test_traces_say_what_they_can_do():
    seen = []

    def watched(x):
        trace = context.trace
        seen.append((trace.knows_values, trace.is_mapping, trace.is_recording, trace.is_staging,
                     trace.may_differentiate))
        return [sin(x)]

    watched(value(0.5))
    batching.vmap(watched, 2, None, [value([0.5, 1.0])], [0])
    forward.jvp(watched, [value(0.5)], [value(1.0)])
    stage(watched, [F64])
    stage(lambda x: batching.vmap(watched, 2, None, [x], [0])[0], [ShapedArray((2,), np.float64)])
    stage(lambda x: forward.jvp(watched, [x], [x])[0], [F64])
    record(lambda x: watched(x), [Linear(F64)])
    assert [(True, False, False, False, False), (False, True, False, False, False), (False, False, False, False, True),
            (False, False, False, True, True), (False, True, False, True, True), (False, False, False, True, True),
            (False, False, True, False, True)] == seen


def test_evaluation():
    np.testing.assert_allclose(fun(value(0.7))[0], FUN, rtol=1e-12)


def test_forward_and_reverse_agree_with_calculus():
    x = value(0.7)
    np.testing.assert_allclose(derivative(fun)(x)[0], SLOPE, rtol=1e-14)
    np.testing.assert_allclose(grad(fun)(x)[0], SLOPE, rtol=1e-14)
    outs, linear_map = linearize.linearize(fun, [x])
    np.testing.assert_allclose(linear_map(value(2.0))[0], 2 * SLOPE, rtol=1e-14)
    np.testing.assert_allclose(linear_map(value(3.0))[0], 3 * SLOPE, rtol=1e-14)


@pytest.mark.parametrize("outer", [derivative, grad])
@pytest.mark.parametrize("inner", [derivative, grad])
def test_second_derivatives_in_every_order(outer, inner):
    np.testing.assert_allclose(outer(inner(fun))(value(0.7))[0], CURVATURE, rtol=1e-13)


def test_a_function_that_ignores_its_argument_has_a_symbolic_zero_tangent():
    outs, dots = forward.jvp(lambda x: [value(3.0)], [value(1.0)], [value(1.0)])
    assert type(dots[0]) is Zero
    assert type(reverse.vjp(lambda x: [value(3.0)], [value(1.0)])[1]([value(1.0)])[0]) is Zero


def test_perturbations_of_nested_derivatives_are_not_confused():
    def outer(x):
        inner, = derivative(lambda y: [mul(x, y)])(value(2.0))
        return [mul(x, inner)]  # x * d(xy)/dy = x^2

    np.testing.assert_allclose(derivative(outer)(value(3.0))[0], 6.0)
    np.testing.assert_allclose(grad(outer)(value(3.0))[0], 6.0)


def test_vmap_of_a_gradient():
    xs = np.array([0.1, 0.7, -2.0])
    outs, dims = batching.vmap(lambda x: grad(fun)(x), 3, None, [value(xs)], [0])
    assert [0] == dims
    np.testing.assert_allclose(outs[0], np.cos(2 * xs) - 2 * xs, rtol=1e-13)


def test_what_a_vmapped_function_does_not_batch_stays_unbatched():
    outs, dims = batching.vmap(lambda x: [sin(value(0.5)), x], 3, None, [value(np.zeros(3))], [0])
    assert [None, 0] == dims


def test_staged_programs_evaluate_and_transform_like_functions():
    closed = stage(fun, [F64], "fun")
    again = lambda x: eval_jaxpr(closed.jaxpr, closed.consts, x)
    np.testing.assert_allclose(again(value(0.7))[0], FUN, rtol=1e-12)
    np.testing.assert_allclose(grad(again)(value(0.7))[0], SLOPE, rtol=1e-14)
    np.testing.assert_allclose(derivative(grad(again))(value(0.7))[0], CURVATURE, rtol=1e-13)


def test_staging_a_gradient_gives_a_program_for_the_gradient():
    closed = stage(grad(fun), [F64])
    np.testing.assert_allclose(eval_jaxpr(closed.jaxpr, closed.consts, value(0.7))[0], SLOPE, rtol=1e-14)


def test_jvp_jaxpr_has_outputs_for_nonzero_tangents_only():
    jaxpr = stage(lambda x, y: [sin(x), y], [F64, F64]).jaxpr
    dotted, nonzero = jvp_jaxpr(jaxpr, (True, False))
    assert (True, False) == nonzero
    assert 3 == len(dotted.invars) == len(dotted.outvars)
    _, y, dot = eval_jaxpr(dotted, (), value(0.5), value(2.0), value(3.0))
    np.testing.assert_allclose([y, dot], [2.0, 3 * math.cos(0.5)], rtol=1e-15)


def test_jvp_jaxpr_is_computed_once():
    jaxpr = stage(fun, [F64]).jaxpr
    assert jvp_jaxpr(jaxpr, (True,))[0] is jvp_jaxpr(jaxpr, [True])[0]


def test_partial_eval_jaxpr_divides_into_known_and_staged():
    jaxpr = stage(lambda x, y: [sin(x), mul(cos(x), y)], [F64, F64]).jaxpr
    known, staged, unknown_out, n_residuals = partial_eval_jaxpr(jaxpr, (False, True))
    assert ((False, True), 1) == (unknown_out, n_residuals)
    assert ["sin", "cos"] == [e.primitive.name for e in known.eqns]
    assert ["mul"] == [e.primitive.name for e in staged.eqns]
    out, residual = eval_jaxpr(known, (), value(0.5))
    np.testing.assert_allclose(eval_jaxpr(staged, (), residual, value(2.0))[0], 2 * math.cos(0.5), rtol=1e-15)


def test_transpose_jaxpr_evaluates_forward_what_is_not_linear():
    jaxpr = stage(lambda c, x: [mul(sin(c), neg(x))], [F64, F64]).jaxpr
    back, nonzero = transpose_jaxpr(jaxpr, (False, True), (True,))
    assert (True,) == nonzero
    np.testing.assert_allclose(eval_jaxpr(back, (), value(0.5), value(2.0))[0], -2 * math.sin(0.5), rtol=1e-15)


def test_vectors_reduce_and_expand():
    x = np.array([0.3, -1.0])
    grads = grad(lambda x: [total(mul(sin(x), x), axis=0)])(value(x))
    np.testing.assert_allclose(grads[0], np.sin(x) + x * np.cos(x), rtol=1e-14)


def test_a_pullback_does_not_see_later_writes_to_an_operand():
    y = np.array([2.0, 3.0])
    _, pullback = reverse.vjp(lambda x: [mul(x, y)], [value(np.ones(2))])
    y[:] = 100.0
    np.testing.assert_array_equal([2.0, 3.0], pullback([value(np.ones(2))])[0])


def test_an_impl_that_applies_primitives_is_evaluated_inside():
    class Nested:
        name = "nested"

        @hookimpl
        def impl(self, args):
            return np.asarray(mul(args[0], sin(args[0])))

        @hookimpl
        def abstract_eval(self, avals):
            return avals[0]

    np.testing.assert_allclose(define(Nested())(value(0.7)), 0.7 * math.sin(0.7), rtol=1e-15)


def test_a_runtime_error_of_an_impl_passes_through_and_is_raised_once():
    calls = []

    class Failing:
        name = "failing"

        @hookimpl
        def impl(self, args):
            calls.append(1)
            raise RuntimeError("cannot enter context: no")

        @hookimpl
        def abstract_eval(self, avals):
            return avals[0]

    with pytest.raises(RuntimeError, match="no"):
        define(Failing())(value(0.7))
    assert 1 == len(calls)


def test_a_linearize_rule_takes_the_place_of_the_jvp_in_reverse_mode():
    class Cube:
        """x^3, whose linearize rule keeps 3 x^2."""

        name = "cube"

        @hookimpl
        def decompose(self, args):
            return mul(mul(args[0], args[0]), args[0])

        @hookimpl
        def linearize(self, primals, nonzero):
            assert (True,) == nonzero
            x, = primals
            square = mul(x, x)
            slope = add(add(square, square), square)
            calls.append("linearize")
            return mul(square, x), slope, lambda slope, tangents: mul(tangents[0], slope)

    calls = []
    cube = define(Cube())
    np.testing.assert_allclose(grad(lambda x: [cube(x)])(value(2.0))[0], 12.0)
    np.testing.assert_allclose(derivative(grad(lambda x: [cube(x)]))(value(2.0))[0], 12.0)
    assert 2 == len(calls)


def test_vmap_of_a_decomposed_primitive_keeps_its_own_jvp():
    class Sqrtlike:
        """x * x with the derivative 7, which no decomposition would give."""

        name = "sqrtlike"

        @hookimpl
        def decompose(self, args):
            return mul(args[0], args[0])

        @hookimpl
        def jvp(self, primals, tangents):
            return sqrtlike(*primals), mul(tangents[0], value(7.0) if not tangents[0].aval.shape else
                                           value(np.full(tangents[0].aval.shape, 7.0)))

    sqrtlike = define(Sqrtlike())
    xs = value(np.arange(3.0))

    def mapped(x):
        outs, dims = batching.vmap(lambda x: [sqrtlike(x)], 3, None, [x], [0])
        return [batching.to_dim(outs[0], dims[0], 0, 3)]

    np.testing.assert_array_equal([0.0, 1.0, 4.0], mapped(xs)[0])
    np.testing.assert_array_equal([7.0] * 3, forward.jvp(mapped, [xs], [value(np.ones(3))])[1][0])
    outs, pullback = reverse.vjp(mapped, [xs])
    np.testing.assert_array_equal([7.0] * 3, pullback([value(np.ones(3))])[0])


# What goes wrong

def test_leaked_tracers_are_found_at_bind():
    leaked = []
    grad(lambda x: leaked.append(x) or [x])(value(1.0))
    with pytest.raises(LeakedTracerError, match="used after the transformation that made it ended"):
        sin(leaked[0])
    stage(lambda x: leaked.append(x) or [x], [F64])
    with pytest.raises(LeakedTracerError, match="used after"):
        stage(lambda x: [add(x, leaked[1])], [F64])


def test_a_tracer_in_python_control_flow_says_what_to_do():
    from corejax.errors import ConcretizationError

    def branch(x):
        return [x if x else neg(x)]

    with pytest.raises(ConcretizationError, match="lax.cond"):
        stage(branch, [ShapedArray((), bool)])


def test_a_missing_rule_is_named():
    class Opaque:
        name = "opaque"

        @hookimpl
        def impl(self, args):
            return args[0]

        @hookimpl
        def abstract_eval(self, avals):
            return avals[0]

    opaque = define(Opaque())
    with pytest.raises(MissingRuleError, match="opaque .* has no jvp rule"):
        grad(lambda x: [opaque(x)])(value(1.0))


def test_a_derivative_declared_impossible_gives_its_reason():
    class Stepwise:
        name = "stepwise"
        jvp = not_differentiable("it jumps everywhere")

        @hookimpl
        def impl(self, args):
            return args[0]

        @hookimpl
        def abstract_eval(self, avals):
            return avals[0]

    stepwise = define(Stepwise())
    with pytest.raises(CorejaxNotImplementedError, match="it jumps everywhere"):
        grad(lambda x: [stepwise(x)])(value(1.0))


def wrong(hook, result):
    """The identity with one rule that returns `result`."""
    class Wrong:
        name = f"wrong_{hook}"

        @hookimpl
        def impl(self, args):
            return result if hook == "impl" else args[0]

        @hookimpl
        def abstract_eval(self, avals):
            return result if hook == "abstract_eval" else avals[0]

        @hookimpl
        def jvp(self, primals, tangents):
            return result if hook == "jvp" else (handle(*primals), handle(*tangents))

        @hookimpl
        def transpose(self, cotangents, args):
            return result if hook == "transpose" else [cotangents]

        @hookimpl
        def vmap(self, axis, args, dims):
            return result if hook == "vmap" else (handle(*args), dims[0])

    handle = define(Wrong())
    return handle


VECTOR = np.zeros(2)
SINGLE = np.float32(0)


@pytest.mark.parametrize(("hook", "result"), [
    ("impl", None), ("impl", VECTOR), ("impl", SINGLE), ("impl", [0.0]),
    ("abstract_eval", None), ("abstract_eval", 3.0),
    ("jvp", None), ("jvp", 1.0), ("jvp", (1.0, None)), ("jvp", (None, 1.0)), ("jvp", (0.7, VECTOR)),
    ("jvp", (VECTOR, 1.0)), ("jvp", (0.7, SINGLE)), ("jvp", (0.7, 1.0, 2.0)),
    ("transpose", None), ("transpose", 1.0), ("transpose", []), ("transpose", [1.0, 2.0]), ("transpose", [VECTOR]),
    ("transpose", [SINGLE]), ("transpose", ["no"]),
    ("vmap", None), ("vmap", VECTOR), ("vmap", (np.zeros(3), None)), ("vmap", (np.zeros(4), 0)),
    ("vmap", (np.zeros(3), 1)), ("vmap", (np.zeros(3), "0")), ("vmap", (np.zeros(3, np.float32), 0)),
    ("vmap", (None, 0)),
])
def test_a_wrong_rule_output_is_an_error_that_names_primitive_and_hook(hook, result):
    handle = wrong(hook, result)
    uses = {
        "impl": lambda: handle(value(0.7)),
        "abstract_eval": lambda: handle(value(0.7)),
        "jvp": lambda: grad(lambda x: [handle(x)])(value(0.7)),
        "transpose": lambda: grad(lambda x: [handle(x)])(value(0.7)),
        "vmap": lambda: batching.vmap(lambda x: [handle(x)], 3, None, [value(np.ones(3))], [0]),
    }
    with pytest.raises(RuleError, match=rf"wrong_{hook}\.{hook}") as caught:
        uses[hook]()
    assert (f"wrong_{hook}", hook) == (caught.value.primitive, caught.value.hook)
    assert caught.value.wanted is not None
    assert isinstance(context.trace, EvalTrace)
