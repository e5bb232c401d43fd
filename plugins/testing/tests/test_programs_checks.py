"""Faults of programs, of their pieces, and of running again are caught by name; true rules raise no alarm."""

from __future__ import annotations

import gc
import threading
import time

import numpy as np
import pytest

import corejax as cj
from corejax import lax
from corejax.core import JaxprEqn, is_staging
from corejax.plugin import Sample, define, hookimpl
from corejax.testing import ConformanceError, check_primitive, pieces, programs, repetition
from corejax_testing.case import Case
from corejax_testing.check import Check
from corejax_testing.running import outcomes

CHECKS = {found.name: found for module in (programs, pieces, repetition) for found in vars(module).values()
          if isinstance(found, Check)}
QUICK = [name for name, each in CHECKS.items() if not each.full]
RNG = np.random.default_rng(0)
PAIR = Sample([RNG.uniform(0.5, 2, 3), RNG.uniform(0.5, 2, 3)])


class Turned:
    """(x cos t - y sin t, x sin t + y cos t): two results, with a param."""

    name = "turned"
    multiple_results = True

    def _bind(self, *args, **params):
        return define(self).primitive.bind(*args, **params)

    @hookimpl
    def decompose(self, args, *, angle):
        x, y = args
        cos, sin = np.cos(float(angle)), np.sin(float(angle))
        return [x * cos - y * sin, x * sin + y * cos]

    @hookimpl
    def vmap(self, axis, args, dims, *, angle):
        return cj.vmap(lambda *xs: self.decompose(xs, angle=angle), in_axes=tuple(dims))(*args), [0, 0]


def turned(angle=0.5, **more):
    return Sample(PAIR.args, {"angle": angle}, **more)


def failures(plugin, *samples, checks=QUICK, full=False):
    """The failures by check."""
    handle = define(plugin)
    try:
        check_primitive(handle, samples=samples or [turned()], checks=checks, full=full)
    except ConformanceError as error:
        return {failure.check: failure for failure in error.failures}
    return {}


def not_applicable(plugin, check, *samples, full=False):
    """The reasons why a check has nothing to say."""
    handle = define(plugin)
    [outcome] = outcomes(handle, samples=samples or [turned()], checks=[check], full=full)
    assert not outcome.failures
    return outcome.not_applicable


def test_a_true_primitive_raises_no_alarm():
    assert {} == failures(Turned())


def test_a_true_primitive_raises_no_alarm_in_the_full_mode():
    assert {} == failures(Turned(), checks=list(CHECKS), full=True)


@pytest.mark.parametrize("primitive", ["add", "dot_general", "iota", "reduce_sum", "cond", "while_loop", "xla_call"])
@pytest.mark.exhaustive  # test_conformance.py runs all checks on all of them
def test_shipped_primitives_raise_no_alarm(primitive):
    check_primitive(primitive, checks=QUICK)


# Text, keys, types

class Angle:
    """An angle that is equal to itself alone."""

    def __init__(self, value):
        self.value = value

    def __float__(self):
        return self.value


class Hooked(Turned):
    @hookimpl
    def samples(self, rng):
        yield turned(Angle(0.5))


def test_a_param_that_is_not_equal_when_built_anew_is_caught():
    found = failures(Hooked(), *Hooked().samples(RNG))["params are hashable"]
    assert "the param 'angle', built again, is not equal to itself" == found.problem
    assert "__corejax_key__" in found.todo


def test_an_unhashable_param_is_caught():
    found = failures(Turned(), turned(np.array(0.5)))["params are hashable"]
    assert "a param is not hashable" == found.problem


def test_a_param_without_text_is_refused_by_name():
    reasons = not_applicable(Turned(), "printed programs parse back", turned(Angle(0.5)))
    assert ("a param has no text: it prints in angle brackets, which is rejected by name",) == reasons


class Forgetful(Turned):
    """Its pretty hook hides nothing, but raises."""

    @hookimpl
    def pretty(self, *, angle):
        raise KeyError("degrees")


def test_a_program_that_does_not_print_is_caught():
    assert "KeyError" in failures(Forgetful())["printed programs parse back"].problem


HALF = ("a half",)


class ByIdentity:
    name = "by_identity"

    @hookimpl
    def abstract_eval(self, avals, *, part):
        return avals[0]

    @hookimpl
    def impl(self, args, *, part):
        return args[0] * (0.5 if part is HALF else 1.0)


def test_a_program_that_computes_something_else_when_read_back_is_caught():
    found = failures(ByIdentity(), Sample([np.arange(3.0)], {"part": HALF}), checks=["printed programs parse back"])
    assert "the program read back: result 0 has a different value" == found["printed programs parse back"].problem


class ListOfEffects(Turned):
    @hookimpl
    def effects(self, avals):
        return ["ink"]


def test_effects_that_are_no_frozenset_are_caught():
    found = failures(ListOfEffects())["effects are a frozenset"]
    assert "effects" == found.hook


class AnotherDerivativeWhenStaged(Turned):
    @hookimpl
    def jvp(self, primals, tangents, *, angle):
        return (self._bind(*primals, angle=angle),
                self._bind(*tangents, angle=-angle if is_staging() else angle))


def test_a_rule_that_gives_another_program_than_its_values_is_caught():
    found = failures(AnotherDerivativeWhenStaged())["transformed programs are typed"]
    assert "jvp" == found.hook
    assert "the program of jvp: result 0 has a different value" == found.problem


# Pieces

class SwapsWhatIsLeft(Turned):
    @hookimpl
    def dce(self, eqn, used_out):
        return [True, True], eqn.replace(outvars=eqn.outvars[::-1])


class KeepsWhatIsDead(Turned):
    @hookimpl
    def effects(self, avals):
        return frozenset()

    @hookimpl
    def dce(self, eqn, used_out):
        return [True, False], eqn


@pytest.mark.parametrize("faulty", [SwapsWhatIsLeft, KeepsWhatIsDead])
def test_a_dce_hook_that_changes_results_is_caught(faulty):
    found = failures(faulty())["dead results are removed"]
    assert ("turned", "dce") == (found.primitive, found.hook)


class AnotherDerivativeAlone(Turned):
    """Without the first result, its jvp takes the tangent of the first for that of the second."""

    @hookimpl
    def dce(self, eqn, used_out):
        if list(used_out) != [False, True]:
            return [True, True], eqn
        alone = define(AloneWithAnotherDerivative()).primitive
        return [True, True], eqn.replace(primitive=alone, outvars=eqn.outvars[1:])


class AloneWithAnotherDerivative:
    name = "turned"
    multiple_results = True

    @hookimpl
    def decompose(self, args, *, angle):
        return Turned().decompose(args, angle=angle)[1:]

    @hookimpl
    def jvp(self, primals, tangents, *, angle):
        return self.decompose(primals, angle=angle), Turned().decompose(tangents, angle=angle)[:1]


def test_a_dce_hook_that_changes_derivatives_is_caught():
    found = failures(AnotherDerivativeAlone())["a result alone has its tangent"]
    assert ("dce", "the tangent of result 1 alone: result 0 has a different value") == (found.hook, found.problem)


class ForgetsAResidual(Turned):
    """Runs x - x when only y is unknown, and takes it for x later."""

    @hookimpl
    def partial_eval(self, eqn, unknown_in):
        if unknown_in != (False, True) and list(unknown_in) != [False, True]:
            return None, eqn, [True, True], []
        fresh = type(eqn.outvars[0])(eqn.outvars[0].aval)
        other = type(eqn.outvars[0])(eqn.outvars[0].aval)
        known = JaxprEqn(eqn.primitive, [eqn.invars[0], eqn.invars[0]], [fresh, other], eqn.params, eqn.effects,
                         eqn.source)
        return known, eqn.replace(invars=[fresh, eqn.invars[1]]), [True, True], [fresh]


def test_a_wrong_partial_eval_is_caught():
    found = failures(ForgetsAResidual())["programs split by what is known"]
    assert "partial_eval" == found.hook
    assert "with the operands [0] known: result 0 has a different value" == found.problem


class LinearizesByTheFirst(Turned):
    @hookimpl
    def linearize(self, primals, nonzero, *, angle):
        def lin(residuals, tangents):
            first = tangents[0] if nonzero[0] else np.zeros(3)
            return self._bind(first, np.zeros(3), angle=angle)
        return self._bind(*primals, angle=angle), [], lin


def test_a_linearize_hook_that_forgets_an_operand_is_caught():
    found = failures(LinearizesByTheFirst())["derivatives by any operands linearize"]
    assert "linearized by the operands [1]" in found.problem or "[0, 1]" in found.problem


class AnotherWhereStaged(Turned):
    @hookimpl
    def jvp(self, primals, tangents, *, angle):
        factor = 2.0 if is_staging() else 1.0
        return (self._bind(*primals, angle=angle),
                [factor * t for t in self._bind(*tangents, angle=angle)])


def test_a_derivative_that_is_another_inside_a_checkpoint_is_caught():
    found = failures(AnotherWhereStaged(), checks=["it works inside checkpoints and loops"])
    assert "checkpointed: the pullback" in found["it works inside checkpoints and loops"].problem


class EvaluatesSomethingElse(Turned):
    @hookimpl
    def evaluate(self, args, *, angle):
        return self.decompose(args, angle=angle + 1.0)


def test_an_evaluate_hook_that_differs_from_the_compiled_program_is_caught():
    found = failures(EvaluatesSomethingElse())["evaluate and the compiled program agree"]
    assert "evaluate" == found.hook


# Again, elsewhere

class One:
    """What rules of one operand share: its result is as its operand."""

    @hookimpl
    def abstract_eval(self, avals):
        return avals[0]


class Counted(One):
    name = "counted"

    def __init__(self):
        self._count = 0

    @hookimpl
    def impl(self, args):
        self._count += 1
        return args[0] + self._count


SINGLE = Sample([np.arange(3.0)])


def test_a_result_that_changes_from_run_to_run_is_caught():
    found = failures(Counted(), SINGLE)["runs are deterministic"]
    assert "run 2 differs from the first: the values differ" == found.problem


class Seldom(One):
    name = "seldom"

    def __init__(self, every):
        self._calls, self._every = 0, every

    @hookimpl
    def impl(self, args):
        self._calls += 1
        return args[0] + (self._calls % self._every == 0)


def test_a_result_that_changes_in_the_course_of_a_thousand_runs_is_caught(monkeypatch):
    check = "many runs give the same"
    monkeypatch.setattr(repetition, "LONGEST", 60.0)
    found = failures(Seldom(900), SINGLE)[check]
    assert ("impl", "one of many runs differs from the first") == (found.hook, found.problem)
    assert check not in failures(Seldom(10 ** 6), SINGLE)


def test_an_impl_that_takes_long_is_not_run_a_thousand_times(monkeypatch):
    monkeypatch.setattr(repetition, "LONGEST", 0.0)
    plugin = Seldom(10 ** 6)
    check_primitive(define(plugin), [SINGLE], checks=["many runs give the same"])
    assert 2 == plugin._calls


class Hashed(One):
    name = "hashed"

    @hookimpl
    def impl(self, args):
        return args[0] + hash("salt")

    @hookimpl
    def samples(self, rng):
        yield SINGLE


hashed = define(Hashed())


def test_a_result_that_depends_on_the_hash_seed_is_caught_by_another_process():
    checks = ["another process gives the same", "runs are deterministic"]
    with pytest.raises(ConformanceError) as caught:
        check_primitive(hashed, checks=checks, full=True)
    assert ["another process: the values differ"] == [failure.problem for failure in caught.value.failures]


class Plain(Hashed):
    name = "plain"

    @hookimpl
    def impl(self, args):
        return args[0] * 2.0


plain = define(Plain())


def test_another_process_gives_the_same_for_a_true_primitive():
    [outcome] = outcomes(plain, checks=["another process gives the same"], full=True)
    assert ("held", ()) == (outcome.status, outcome.failures)


def test_another_process_is_not_asked_for_what_it_can_not_import():
    [reason] = not_applicable(Counted(), "another process gives the same", SINGLE, full=True)
    assert "no place from which it can be imported" in reason


def test_another_process_is_not_asked_for_what_a_script_defines(monkeypatch):
    handle = define(Plain(), module="__main__")
    monkeypatch.setattr("__main__.plain", handle, raising=False)
    [outcome] = outcomes(handle, samples=[SINGLE], checks=["another process gives the same"], full=True)
    assert ("it is defined in a script or a session, which another process does not have",) == outcome.not_applicable


def test_a_primitive_at_whose_place_another_stands_can_not_be_pickled():
    class Impostor(Plain):
        pass
    [reason] = not_applicable(Impostor(), "the primitive can be pickled", SINGLE)
    assert "there is another primitive" in reason


class Leaky(Turned):
    _kept: list = []

    @hookimpl
    def jvp(self, primals, tangents, *, angle):
        self._last = lax.neg(primals[0])
        return self._bind(*primals, angle=angle), self._bind(*tangents, angle=angle)


class LeakyTranspose(Turned):
    linear = (0, 1)

    @hookimpl
    def transpose(self, cotangents, args, *, angle):
        self._cache = {"ct": [cotangents[0]]}
        return self._bind(*cotangents, angle=-angle)


class LeakyClass(Leaky):
    @hookimpl
    def jvp(self, primals, tangents, *, angle):
        self._kept.append(tangents[1])
        return self._bind(*primals, angle=angle), self._bind(*tangents, angle=angle)


_everything = []


class LeakyGlobal(Turned):
    @hookimpl
    def vmap(self, axis, args, dims, *, angle):
        _everything.append(args[0])
        return super().vmap(axis, args, dims, angle=angle)


@pytest.mark.parametrize(("faulty", "hook", "holder"), [
    (Leaky, "jvp", "Leaky._last"), (LeakyTranspose, "transpose", "LeakyTranspose._cache"),
    (LeakyGlobal, "vmap", "a list outside of the plugin")])
def test_a_rule_that_keeps_a_traced_value_is_caught_and_the_holder_named(faulty, hook, holder):
    gc.unfreeze()  # who holds something is told of what the collector knows, and the list is older than this test
    found = failures(faulty())["no tracer outlives its transformation"]
    _everything.clear()
    assert (hook, f"held by {holder}") == (found.hook, found.got)
    assert "a traced value is still alive" in found.problem


def test_a_traced_value_in_an_attribute_of_the_class_is_caught():
    found = failures(LeakyClass())["no tracer outlives its transformation"]
    LeakyClass._kept.clear()
    assert "jvp" == found.hook


class Shared(One):
    """Keeps its operand in the plugin between two steps."""

    name = "shared"

    @hookimpl
    def impl(self, args):
        self._x = args[0] + threading.get_ident() % 1000
        time.sleep(0.002)
        return self._x - threading.get_ident() % 1000

    @hookimpl
    def jvp(self, primals, tangents):
        return define(self)(*primals), tangents[0]

    @hookimpl
    def vmap(self, axis, args, dims):
        return define(self)(*args), dims[0]


def test_state_that_threads_share_is_caught():
    found = failures(Shared(), SINGLE, checks=["threads do not disturb each other"], full=True)
    assert "computes something different" in found["threads do not disturb each other"].problem


def test_what_a_transformed_primitive_is_checked_under_is_all_of_the_transformations():
    case = Case(define(Turned()).primitive, turned(), 0)
    assert ["it", "vmap", "jvp", "linearize", "the result of linearize", "vjp"] == [
        each.name for each in programs.transformed(case)]
