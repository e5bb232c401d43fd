"""Faults that show only where transformations meet are caught by the check of orderings; true rules raise no alarm."""

from __future__ import annotations

import numpy as np
import pytest

from corejax import lax
from corejax.core import Tracer, is_staging
from corejax.plugin import Sample, define, hookimpl, not_differentiable, not_linear, partials
from corejax.testing import ConformanceError, check_primitive, orderings
from corejax_testing.case import Case
from corejax_testing.check import Check
from corejax_testing.orderings import STEPS, Orderings
from corejax_testing.report import NotApplicable

CHECKS = [found.name for found in vars(orderings).values() if isinstance(found, Check)]
TWO, THREE = "orderings to depth two agree", "orderings to depth three agree"
RNG = np.random.default_rng(0)
ONE = Sample([RNG.uniform(0.5, 1.5, 3)], domain=(0.5, 1.5))
COMPLEX = Sample([RNG.standard_normal(2) + 1j * RNG.standard_normal(2)], domain=(0.5, 1.5))


class Cube:
    """x to the third."""

    name = "cube"

    def _bind(self, x):
        return define(self)(x)

    @hookimpl
    def decompose(self, args):
        return args[0] * args[0] * args[0]

    @hookimpl
    def jvp(self, primals, tangents):
        (x,), (x_dot,) = primals, tangents
        return self._bind(x), 3.0 * (x * x) * x_dot

    @hookimpl
    def vmap(self, axis, args, dims):
        return self._bind(args[0]), dims[0]


def failures(plugin, *samples, checks=CHECKS[:1], full=False):
    """The failures by check."""
    handle = define(plugin)
    try:
        check_primitive(handle, samples=samples, checks=checks, full=full)
    except ConformanceError as error:
        return {failure.check: failure for failure in error.failures}
    return {}


def test_a_true_rule_raises_no_alarm():
    assert {} == failures(Cube(), ONE, COMPLEX)


def test_a_true_rule_raises_no_alarm_to_depth_three():
    assert {} == failures(Cube(), ONE, checks=CHECKS, full=True)


def test_all_orderings_to_depth_three_are_tried(monkeypatch):
    tried = []
    monkeypatch.setattr(Orderings, "check", lambda self, names: tried.append(names))
    failures(Cube(), ONE, checks=CHECKS, full=True)
    assert 5 ** 2 + 5 ** 3 == len(set(tried))
    assert set(STEPS) == {name for names in tried for name in names}


class NoSecondDerivative(Cube):
    @hookimpl
    def jvp(self, primals, tangents):
        (x,), (x_dot,) = primals, tangents
        return self._bind(x), 3.0 * lax.stop_gradient(x * x) * x_dot


def test_a_first_derivative_through_which_no_second_flows_is_caught():
    found = failures(NoSecondDerivative(), ONE)[TWO]
    assert ("cube", "jvp") == (found.primitive, found.hook)
    assert "of" in found.problem and "differs from what" in found.problem
    assert "sample 0: cube(f64[3]" in found.sample


class OneAxisOnly(Cube):
    """Its derivative is right for vectors only."""

    @hookimpl
    def jvp(self, primals, tangents):
        (x,), (x_dot,) = primals, tangents
        return self._bind(x), 3.0 * (x * x) * x_dot * (1.0 if x.ndim < 2 else 2.0)


def test_a_derivative_that_is_wrong_for_batches_is_caught():
    assert TWO in failures(OneAxisOnly(), ONE)


class AnotherWhenStaged(Cube):
    @hookimpl
    def jvp(self, primals, tangents):
        (x,), (x_dot,) = primals, tangents
        return self._bind(x), (2.0 if is_staging() else 3.0) * (x * x) * x_dot


def test_a_derivative_that_is_another_under_jit_is_caught():
    found = failures(AnotherWhenStaged(), ONE, full=True)[TWO]
    assert "jit" in found.problem and "itself without jit" in found.problem
    assert "xla_translation" in found.hook or "jvp" in found.hook


class AnotherForTracersOfTracers(Cube):
    """Right by itself and in every pair but for one that jvp, vmap and jvp make together."""

    @hookimpl
    def vmap(self, axis, args, dims):
        x, dim = args[0], dims[0]
        nested = isinstance(x, Tracer) and type(x).__name__ == "JVPTracer" and isinstance(x.primal, Tracer)
        return self._bind(x) * (2.0 if nested else 1.0), dim


def test_a_fault_of_three_transformations_is_caught_in_the_full_mode_only():
    assert {} == failures(AnotherForTracersOfTracers(), ONE)
    assert [THREE] == list(failures(AnotherForTracersOfTracers(), ONE, checks=CHECKS, full=True))


class Scaled:
    """2 x, with rules by hand."""

    name = "scaled"
    linear = (0,)

    @hookimpl
    def impl(self, args):
        return args[0] * 2

    @hookimpl
    def abstract_eval(self, avals):
        return avals[0]

    @hookimpl
    def vmap(self, axis, args, dims):
        return define(self)(*args), dims[0]

    @hookimpl
    def transpose(self, cotangents, args):
        return [cotangents * 3.0]


def test_a_wrong_transpose_is_caught_by_the_pairing_with_jvp():
    found = failures(Scaled(), ONE)[TWO]
    assert "transpose" == found.hook
    assert "vjp" in found.problem
    assert "<pullback(ct), tangent> = <ct, jvp(tangent)>" == found.wanted


class TwiceInLinearize(Cube):
    @hookimpl
    def linearize(self, primals, nonzero):
        (x,) = primals
        return self._bind(x), [x], lambda residuals, tangents: 6.0 * (residuals[0] * residuals[0]) * tangents[0]


def test_a_wrong_linearize_is_caught():
    assert TWO in failures(TwiceInLinearize(), ONE)


class Whole:
    """The whole part of x."""

    name = "whole"
    jvp = not_differentiable("it jumps")
    transpose = not_linear()

    @hookimpl
    def impl(self, args):
        return np.floor(args[0])

    @hookimpl
    def abstract_eval(self, avals):
        return avals[0]


def test_what_is_declared_not_differentiable_is_left_to_the_checks_of_batching():
    handle = define(Whole())
    with pytest.raises(NotApplicable, match="no derivative: whole .* not differentiable: it jumps"):
        Orderings(Case(handle.primitive, ONE, 0)).available()


class Forward(Cube):
    jvp = partials(lambda x_dot, out, x: lax.while_loop(
        lambda state: state[0] < 1, lambda state: (state[0] + 1, state[1] * 3.0 * (x * x)), (0, x_dot))[1])


def test_without_a_reverse_mode_the_other_steps_are_tried():
    handle = define(Forward())
    assert ["jit", "vmap", "jvp", "linearize"] == Orderings(Case(handle.primitive, ONE, 0)).available()


def test_a_result_of_low_precision_is_compared_in_its_own():
    check_primitive("convert_element_type", [Sample([np.linspace(1.1, 2.3, 4)], {
        "new_dtype": np.dtype(np.float32), "weak_type": False})], checks=CHECKS[:1], full=True)


@pytest.mark.parametrize("primitive", ["mul", "sin", "dot_general", "select_n", "reduce_max", "while_loop", "cond"])
@pytest.mark.exhaustive  # test_conformance.py runs all checks on all of them
def test_shipped_primitives_raise_no_alarm(primitive):
    check_primitive(primitive, checks=CHECKS[:1])
