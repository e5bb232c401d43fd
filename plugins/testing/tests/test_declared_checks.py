"""Small primitives with one false declaration each: the kit finds it, names the hook, and says what to do."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from corejax import lax
from corejax.core import ShapedArray, Zero
from corejax.errors import CorejaxTypeError, CorejaxValueError
from corejax.plugin import define, hookimpl, itself, not_differentiable, not_linear, partials
from corejax.testing import CHECKS, Failure, Sample
from corejax_testing.running import run_check

UNSUPPORTED = "unsupported inputs are refused"
CONSTANT = "a zero derivative is of a constant"
GIVEN = "a derivative is given or declared missing"


class Cubed:
    """x cubed, of float64, right in every way; each test spoils one thing."""

    name = "cubed"
    transpose = not_linear()

    @hookimpl
    def impl(self, args: Any) -> Any:
        return args[0] ** 3

    @hookimpl
    def abstract_eval(self, avals: Any) -> Any:
        (x,) = avals
        if x.dtype != np.float64:
            raise CorejaxTypeError("cubed takes float64 only", got=str(x), wanted="f64", todo="convert it")
        return x

    @hookimpl
    def jvp(self, primals: Any, tangents: Any) -> Any:
        (x,), (t,) = primals, tangents
        return lax.mul(x, lax.mul(x, x)), lax.mul(lax.mul(3.0, lax.mul(x, x)), t)

    @hookimpl
    def vmap(self, axis: Any, args: Any, dims: Any) -> Any:
        return lax.mul(args[0], lax.mul(args[0], args[0])), dims[0]

    @hookimpl
    def xla_translation(self, ctx: Any, args: Any) -> Any:
        (x,) = args
        return ctx.op("stablehlo.multiply", [x, ctx.op("stablehlo.multiply", [x, x])])

    @hookimpl
    def samples(self, rng: Any) -> Iterator[Sample]:
        yield Sample([rng.standard_normal(3)])
        yield Sample([np.ones(3, np.float32)], error=TypeError)


def failures(plugin: Any, check: str, samples: list[Sample] | None = None) -> list[Failure]:
    """What one check finds in the primitive of a plugin."""
    primitive: Any = define(plugin).primitive  # type: ignore[attr-defined]
    given = list(primitive.samples(np.random.default_rng(0))) if samples is None else samples
    return list(run_check(CHECKS[check], primitive, given).failures)


@pytest.mark.parametrize("check", [
    name for name, check in CHECKS.items() if check.run.__module__.endswith((".declared", ".refusals"))])
def test_a_right_primitive_passes(check: str) -> None:
    assert [] == failures(Cubed(), check)


# Refusals

def test_an_input_that_is_taken_though_it_must_be_refused_is_found() -> None:
    class Lenient(Cubed):
        @hookimpl
        def abstract_eval(self, avals: Any) -> Any:
            return avals[0]

    (found,) = failures(Lenient(), UNSUPPORTED)
    assert "it accepts what it must reject, evaluated" == found.problem
    assert "TypeError" == found.wanted


@pytest.mark.parametrize(("error", "problem"), [
    (TypeError("cubed: no"), "as if the pack were wrong"),
    (CorejaxValueError("cubed: no", wanted="f64"), "with the wrong class"),
    (CorejaxTypeError("float64 only", wanted="f64"), "doesn't name the primitive"),
    (CorejaxTypeError("cubed: 'NoneType' object has no attribute 'shape'", wanted="f64"), "mentions internals"),
    (CorejaxTypeError("cubed: no"), "doesn't say what would be right")])
def test_a_refusal_that_helps_nobody_is_found(error: Exception, problem: str) -> None:
    class Refusing(Cubed):
        name = "cubed"

        @hookimpl
        def abstract_eval(self, avals: Any) -> Any:
            if avals[0].dtype != np.float64:
                raise type(error)(*error.args, **{key: value for key, value in vars(error).items()
                                                  if key == "wanted" and value})
            return avals[0]

    (found,) = failures(Refusing(), UNSUPPORTED)
    assert problem in found.problem
    assert "abstract_eval" == found.hook


def test_a_refusal_by_impl_alone_is_found_as_other_roads_have_no_impl() -> None:
    class Late(Cubed):
        @hookimpl
        def abstract_eval(self, avals: Any) -> Any:
            return avals[0]

        @hookimpl
        def impl(self, args: Any) -> Any:
            if args[0].dtype != np.float64:
                raise CorejaxTypeError("cubed takes float64 only", wanted="f64")
            return args[0] ** 3

    (found,) = failures(Late(), UNSUPPORTED)
    assert "staged by make_jaxpr" in found.problem


# Fallbacks

def test_a_missing_vmap_is_found_as_a_hidden_fallback() -> None:
    class Slow:
        name = "slow"
        impl, abstract_eval, samples = Cubed.impl, Cubed.abstract_eval, Cubed.samples

    hooks = {failure.hook for failure in failures(Slow(), "no fallback is hidden")}
    assert {"vmap"} == hooks


def test_a_missing_lowering_is_found_as_a_hidden_fallback_and_can_be_exempt() -> None:
    class Slow:
        name = "slow"
        impl, abstract_eval, samples, vmap = Cubed.impl, Cubed.abstract_eval, Cubed.samples, Cubed.vmap

    (found,) = failures(Slow(), "no fallback is hidden")
    assert "xla_translation" == found.hook
    assert "exempt" in found.todo
    told = Sample([np.ones(3)], exempt={"no fallback is hidden": "the library that it calls runs on the host"})
    assert [] == failures(Slow(), "no fallback is hidden", [told])


# Zero, missing, refused

def test_a_zero_derivative_of_a_function_that_changes_is_found() -> None:
    class Zeroed(Cubed):
        jvp = partials(None)

    (found,) = failures(Zeroed(), CONSTANT)
    assert "the derivative of result 0 by operand 0 is declared zero, but it changes" == found.problem
    assert "not_differentiable" in found.todo


def test_a_zero_that_a_rule_returns_is_checked_too() -> None:
    class Returned(Cubed):
        @hookimpl
        def jvp(self, primals: Any, tangents: Any) -> Any:
            out = lax.mul(primals[0], lax.mul(primals[0], primals[0]))
            return out, Zero(out.aval.tangent)

    assert failures(Returned(), CONSTANT)


def test_a_derivative_that_nobody_speaks_of_is_found() -> None:
    class Silent:
        name = "silent"
        impl, abstract_eval, samples, vmap = Cubed.impl, Cubed.abstract_eval, Cubed.samples, Cubed.vmap
        xla_translation = Cubed.xla_translation

    (found,) = failures(Silent(), GIVEN)
    assert "neither a derivative nor a declaration" in found.problem
    assert "not_differentiable" in found.todo


def test_a_declared_refusal_passes_and_one_in_other_words_is_found() -> None:
    class Refused(Cubed):
        jvp = not_differentiable("its derivative is a secret")

    assert [] == failures(Refused(), GIVEN)
    assert [] == failures(Refused(), CONSTANT)


def test_a_transpose_that_is_declared_missing_and_needed_is_found() -> None:
    class Doubled(Cubed):
        name = "doubled"

        @hookimpl
        def jvp(self, primals: Any, tangents: Any) -> Any:
            return doubled(primals[0]), doubled(tangents[0])

        @hookimpl
        def decompose(self, args: Any) -> Any:
            return lax.mul(args[0], 2.0)

    doubled: Any = define(Doubled())
    (found,) = run_check(CHECKS["what is not linear is never transposed"], doubled.primitive,
                         [Sample([np.ones(3)])]).failures
    assert "transpose" in f"{found.problem} {found.got} {found.todo}"


def test_a_derivative_that_binds_the_primitive_to_a_tangent_needs_its_transpose() -> None:
    class Own(Cubed):
        name = "own"

        @hookimpl
        def jvp(self, primals: Any, tangents: Any) -> Any:
            return own(primals[0]), own(tangents[0])

    own: Any = define(Own())
    (found,) = run_check(CHECKS["what is not linear is never transposed"], own.primitive,
                         [Sample([np.ones(3)])]).failures
    assert "linear" in f"{found.problem} {found.got}"


# Linearity

def test_an_operand_that_is_declared_linear_and_is_not_is_found() -> None:
    class Claimed:
        name = "claimed"
        linear = (0,)
        impl, abstract_eval, samples, vmap = Cubed.impl, Cubed.abstract_eval, Cubed.samples, Cubed.vmap
        xla_translation = Cubed.xla_translation

        @hookimpl
        def transpose(self, cotangents: Any, args: Any) -> Any:
            return [cotangents]

    (found,) = failures(Claimed(), "declared linear operands are linear")
    assert "result 0 is not linear in the operands (0,)" in found.problem


def test_operands_that_are_linear_each_alone_and_not_jointly_are_found() -> None:
    class Product:
        name = "product"
        linear = (0, 1)

        @hookimpl
        def decompose(self, args: Any) -> Any:
            return lax.mul(*args)

    assert failures(Product(), "declared linear operands are linear", [Sample([np.ones(3), np.ones(3)])])

    class Scaled(Product):
        name = "scaled"
        linear = (0,)

    assert [] == failures(Scaled(), "declared linear operands are linear", [Sample([np.ones(3), np.ones(3)])])


def test_an_operand_whose_partial_is_itself_and_in_which_it_is_not_linear_is_found() -> None:
    class Product:
        name = "product"
        jvp = partials(itself, itself)

        @hookimpl
        def decompose(self, args: Any) -> Any:
            return lax.mul(*args)

    assert [] == failures(Product(), "declared linear operands are linear", [Sample([np.ones(3), np.ones(3)])])

    class Power(Product):
        name = "power"

        @hookimpl
        def decompose(self, args: Any) -> Any:
            return args[0] * args[1] ** 2

    (found,) = failures(Power(), "declared linear operands are linear", [Sample([np.ones(3), np.ones(3)])])
    assert "result 0 is not linear in the operands (1,) that have `itself` among the partials" == found.problem


# Integers

def test_a_tangent_of_an_integer_result_is_found() -> None:
    class Counted:
        name = "counted"

        @hookimpl
        def impl(self, args: Any) -> Any:
            return np.floor(args[0]).astype(np.int64)

        @hookimpl
        def abstract_eval(self, avals: Any) -> Any:
            return ShapedArray(avals[0].shape, np.int64)

        @hookimpl
        def jvp(self, primals: Any, tangents: Any) -> Any:
            return counted(primals[0]), tangents[0]

    counted: Any = define(Counted())
    found = run_check(CHECKS[CONSTANT], counted.primitive, [Sample([np.ones(3)])]).failures
    assert "jvp" == found[0].hook


def test_a_rule_that_cannot_do_with_tangents_of_integers_is_found() -> None:
    class Power:
        name = "power"
        transpose = not_linear()

        @hookimpl
        def impl(self, args: Any) -> Any:
            return args[0] * args[1]

        @hookimpl
        def abstract_eval(self, avals: Any) -> Any:
            return avals[0]

        @hookimpl
        def jvp(self, primals: Any, tangents: Any) -> Any:
            (x, n), (t, n_dot) = primals, tangents
            return power(x, n), lax.add(lax.mul(t, lax.convert_element_type(n, np.float64)), lax.mul(n_dot, x))

    power: Any = define(Power())
    found = run_check(CHECKS["integers have no tangents"], power.primitive,
                      [Sample([np.ones(3), np.arange(3)])]).failures
    assert "jvp" == found[0].hook


# Types and params

def test_an_abstract_eval_that_depends_on_chance_is_found() -> None:
    chance = random.Random(0)

    class Moody(Cubed):
        @hookimpl
        def abstract_eval(self, avals: Any) -> Any:
            return ShapedArray(avals[0].shape, avals[0].dtype, chance.random() < 0.5)

    (found,) = failures(Moody(), "abstract eval depends on types alone", [Sample([np.ones(3)])])
    assert "abstract_eval" == found.hook
    assert "called again" in found.problem


def test_an_abstract_eval_that_applies_primitives_is_found() -> None:
    class Busy(Cubed):
        @hookimpl
        def abstract_eval(self, avals: Any) -> Any:
            lax.iota(np.float64, 3) + 1.0
            return avals[0]

    plugin = Busy()
    (found,) = failures(plugin, "abstract eval depends on types alone", [Sample([np.ones(4)])])
    assert "abstract_eval" == found.hook


def test_a_param_that_no_rule_reads_is_found() -> None:
    class Idle:
        name = "idle"

        @hookimpl
        def impl(self, args: Any, *, axis: int) -> Any:
            return args[0] * 2.0

        @hookimpl
        def abstract_eval(self, avals: Any, *, axis: int, scale: float) -> Any:
            return ShapedArray(avals[0].shape[axis:], avals[0].dtype)

    (found,) = failures(Idle(), "every param is read", [Sample([np.ones(3)], {"axis": 0, "scale": 1.0})])
    assert "no hook reads the param 'scale'" == found.problem
