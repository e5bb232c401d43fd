"""Running checks: what is chosen, what counts as a failure, what a report says."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from corejax import lax, make_jaxpr
from corejax.base import _jaxlib
from corejax.errors import CorejaxKeyError, MissingRuleError
from corejax.plugin import Sample, define, find, hookimpl
from corejax.testing import CHECKS, ConformanceError, check_pack, check_primitive
from corejax_testing.case import Case
from corejax_testing.catalogue import all_checks
from corejax_testing.check import check
from corejax_testing.packs import primitives_of
from corejax_testing.report import NotApplicable, Report
from corejax_testing.running import FEW, chosen_checks, run_check
from corejax_testing.specification import HAS_SAMPLES, samples_of

X = np.array([0.5, -1.5, 2.0])
JVP = "jvp agrees with differences"


class Cube:
    """x ** 3; `slope` is the factor of its derivative, `given` what the hook samples yields."""

    def __init__(self, slope: float = 3.0, given: Sequence[Any] = (Sample([X]),)) -> None:
        self.name = "cube"
        self._slope, self._given = slope, given

    @hookimpl
    def decompose(self, args: Sequence[Any]) -> Any:
        return args[0] * args[0] * args[0]

    @hookimpl
    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> Any:
        (x,), (x_dot,) = primals, tangents
        return x * x * x, self._slope * x * x * x_dot

    @hookimpl
    def vmap(self, axis: Any, args: Sequence[Any], dims: Sequence[Any]) -> Any:
        return args[0] * args[0] * args[0], dims[0]

    @hookimpl
    def samples(self, rng: np.random.Generator) -> Iterator[Any]:
        yield from self._given


def message(action: Callable[[], Any]) -> str:
    with pytest.raises(ConformanceError) as raised:
        action()
    return str(raised.value)


def cube(*given: Any, slope: float = 3.0) -> Any:
    return define(Cube(slope, given or (Sample([X]),)))


@check("jvp")
def always_held(case: Case) -> None:
    """Nothing is asked."""


@check("jvp")
def never_held(case: Case) -> None:
    """Nothing is enough."""
    raise case.fail("jvp", "it is not enough", got="this", wanted="that", todo="do more")


@check("vmap")
def crashing(case: Case) -> None:
    """It divides."""
    1 / 0  # noqa: B018


@check("jvp")
def never_applicable(case: Case) -> None:
    """Says nothing."""
    raise NotApplicable("there is nothing to say")


@check("impl")
def is_positive(case: Case) -> None:
    """Operands are positive."""
    if min(case.args[0]) < 0:
        raise case.fail("impl", "it is negative")


@check("impl", errors=True)
def of_errors(case: Case) -> None:
    """Errors only."""


# What is chosen

def test_correct_primitive_passes_by_name_function_and_handle() -> None:
    function = cube()
    for shown in (function, function.primitive):
        assert {"cube"} == set(check_primitive(shown, checks=[JVP]).primitives)
    assert {"neg"} == set(check_primitive("neg", checks=[JVP]).primitives)
    assert {"neg"} == set(check_primitive(lax.neg, checks=[JVP]).primitives)


def test_all_checks_of_the_quick_mode_run_once_and_in_order() -> None:
    report = check_primitive("neg")
    quick = [name for name, each in all_checks().items() if not each.full]
    assert [HAS_SAMPLES, *quick] == [outcome.check for outcome in report.outcomes]


def test_full_mode_adds_the_slow_checks() -> None:
    quick, full = chosen_checks(False), chosen_checks(True)
    assert list(all_checks()) == [each.name for each in full]
    assert [each.name for each in full if not each.full] == [each.name for each in quick]
    assert len(quick) < len(full)


def test_chosen_checks_run_whatever_their_mode() -> None:
    slow = next(name for name, each in CHECKS.items() if each.full)
    assert [slow, JVP] == [each.name for each in chosen_checks(False, [slow, JVP])]


def test_unknown_check_is_an_error_with_a_suggestion() -> None:
    with pytest.raises(CorejaxKeyError, match="no check 'jvp agrees with diferences'(.|\n)*did you mean 'jvp agrees"):
        check_primitive("neg", checks=["jvp agrees with diferences"])
    with pytest.raises(CorejaxKeyError, match="no check 'x'"):
        check_pack("corejax-softplus", checks=iter(["x"]))


def test_unknown_primitive_and_pack_are_errors_with_a_suggestion() -> None:
    with pytest.raises(CorejaxKeyError, match="(.|\n)*did you mean 'neg'"):
        check_primitive("neeg")
    with pytest.raises(CorejaxKeyError, match="no pack 'corejax-softpls'(.|\n)*did you mean 'corejax-softplus'"):
        check_pack("corejax-softpls")


def test_pack_goes_by_any_spelling_of_its_name() -> None:
    assert ["softplus"] == primitives_of("corejax-softplus") == primitives_of("Corejax_Softplus")


def test_check_pack_checks_each_primitive() -> None:
    names = primitives_of("corejax-reductions")
    assert names == list(check_pack("corejax-reductions", checks=["params are hashable"]).primitives)


# What the quick mode saves

SIZES = [Sample([np.arange(1.0, n + 2)]) for n in range(9)]


@pytest.fixture
def compilations(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """One entry for each program that is compiled."""
    made: list[int] = []
    compile_module = _jaxlib.compile_module
    monkeypatch.setattr(_jaxlib, "compile_module", lambda *args: made.append(1) or compile_module(*args))
    return made


class CubeOnTheHost(Cube):
    """Evaluated by NumPy."""

    @hookimpl
    def impl(self, args: Sequence[Any]) -> Any:
        return args[0] * args[0] * args[0]


def test_one_program_serves_samples_that_differ_in_their_shapes(compilations: list[int]) -> None:
    each = CHECKS["impl and the compiled program agree"]
    primitive = define(CubeOnTheHost()).primitive
    assert 9 == run_check(each, primitive, SIZES).held
    assert 4 == len(compilations)  # one of the largest sample in each precision, one of the others
    assert 9 == run_check(each, primitive, SIZES, full=True).held
    assert 4 + 9 * 3 - 3 == len(compilations)


@pytest.mark.parametrize("wrong", ["a value", "an error"])
def test_what_goes_wrong_in_one_program_for_many_samples_is_blamed_on_the_right_one(wrong: str) -> None:
    class Odd(CubeOnTheHost):
        """Wrong for two elements."""

        @hookimpl
        def xla_translation(self, ctx: Any, args: Sequence[Any]) -> Any:
            (aval,) = ctx.avals_in
            if aval.shape == (2,) and wrong == "an error":
                raise ZeroDivisionError
            power = 2 if aval.shape == (2,) else 3
            return ctx.call(make_jaxpr(lambda x: lax.integer_pow(x, power))(aval).jaxpr, args)[0]

    outcome = run_check(CHECKS["impl and the compiled program agree"], define(Odd()).primitive, SIZES)
    assert ["sample 1"] == [failure.sample.partition(":")[0] for failure in outcome.failures]
    assert 8 == outcome.held


class CubeByLoop(Cube):
    """Its derivative carries a program."""

    @hookimpl
    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> Any:
        (x,), (x_dot,) = primals, tangents
        return x * x * x, lax.fori_loop(0, 3, lambda i, total: total + x * x * x_dot, 0.0 * x_dot)


def test_costly_checks_run_on_few_samples_if_each_transformation_compiles_a_program() -> None:
    tried: list[int] = []

    @check("jvp", costly=True)
    def watching(case: Case) -> None:
        """Holds for all samples but one."""
        tried.append(case.number)
        if case.number == 0:
            raise NotApplicable("nothing to see")

    assert 8 == run_check(watching, cube().primitive, SIZES).held
    tried.clear()
    by_loop = define(CubeByLoop()).primitive
    assert FEW == run_check(watching, by_loop, SIZES).held
    assert FEW + 1 == len(tried) and max(tried) - min(tried) > 4
    assert 8 == run_check(watching, by_loop, SIZES, full=True).held


# Samples

def test_samples_and_random_numbers_are_the_same_each_time() -> None:
    drawn = []
    for _ in range(2):
        (sample,) = samples_of(define(Random()).primitive)
        drawn.append((sample.args[0], Case(cube().primitive, sample, 3, JVP).rng.normal()))
    np.testing.assert_array_equal(drawn[0][0], drawn[1][0])
    assert drawn[0][1] == drawn[1][1]
    assert drawn[0][1] != Case(cube().primitive, Sample([X]), 4, JVP).rng.normal()


class Random(Cube):
    """With random samples."""

    def __init__(self, source: Any = None) -> None:
        super().__init__()
        self._source = source

    @hookimpl
    def samples(self, rng: np.random.Generator) -> Iterator[Sample]:
        yield Sample([(self._source or rng).normal(size=3)])


def test_samples_that_differ_at_each_call_are_a_failure() -> None:
    assert check_primitive(define(Random()), checks=[JVP])
    text = message(lambda: check_primitive(define(Random(np.random.default_rng()))))
    assert "cube.samples" in text and "a second call with equal random numbers yields different ones" in text


def test_samples_by_hand_stand_in_for_those_of_the_hook() -> None:
    report = check_primitive(cube(slope=5.0), [Sample([np.zeros(3)])], checks=["jvp is linear"])
    assert [1] == [outcome.held for outcome in report.outcomes]
    text = message(lambda: check_primitive("neg", [Sample([np.array([True])])], checks=[JVP]))
    assert "neg.abstract_eval" in text or "neg.jvp" in text


class Bare:
    """Without samples."""

    name = "bare"

    @hookimpl
    def decompose(self, args: Sequence[Any]) -> Any:
        return args[0] * 2.0


@pytest.mark.parametrize("given", [None, []])
def test_primitive_without_samples_fails(given: Any) -> None:
    text = message(lambda: check_primitive(define(Bare()), given))
    assert "bare.samples" in text and "there is nothing to check it on" in text and "write `samples(self, rng)`" in text


@pytest.mark.parametrize("given, problem", [
    ((), "there is nothing to check it on"),
    (([X],), "it isn't a sample"),
    ((Sample([X], error=TypeError),), "each must raise an error"),
    ((Sample([X], error=ValueError("x")),), "error must be an exception class"),  # type: ignore[arg-type]
    ((Sample([X], domain=(1.0, 0.0)),), "domain must be an interval"),
    ((Sample([X], domain=[(0.0, 1.0), None]),), "give one interval, or 1"),
    ((Sample([X], exempt={JVP: " "}),), "is exempt from 'jvp agrees with differences' without a reason"),
    ((Sample([X], exempt={"jvp agrees with difference": "no"}),), "did you mean 'jvp agrees with differences'"),
])
def test_what_is_wrong_with_samples_is_told(given: Any, problem: str) -> None:
    text = message(lambda: check_primitive(define(Cube(given=given)), checks=[JVP]))
    assert "cube.samples" in text and f"check {HAS_SAMPLES!r}" in text and problem in text


def test_hook_samples_that_raises_is_a_failure_with_its_place() -> None:
    text = message(lambda: check_primitive(define(Random("no generator"))))
    assert "cube.samples" in text and "it raised AttributeError" in text and "test_running.py" in text


# What counts as a failure

def test_wrong_rule_is_named_with_hook_input_and_what_to_do() -> None:
    text = message(lambda: check_primitive(cube(slope=2.0), checks=[JVP]))
    assert text.startswith(f"1 failed check\n\ncube.jvp (defined in test_running), check {JVP!r}: ")
    for part in ("input:  sample 0: cube(f64[3] [0.5, -1.5, 2.0])", "got: ", "wanted: ", "to do: "):
        assert part in text


def test_failure_says_where_the_rule_is_or_the_row_of_the_table() -> None:
    with pytest.raises(ConformanceError) as raised:
        check_primitive(cube(slope=2.0), checks=[JVP])
    line = Cube.jvp.__code__.co_firstlineno
    assert f"{__file__}:{line} (Cube.jvp)" == raised.value.where
    assert 1 == str(raised.value).count("  where:  ")
    (failure,) = run_check(never_held, find("expm1"), [Sample([X])]).failures
    path, _, line_of_row = failure.where.rpartition(":")
    assert "expm1" in Path(path).read_text().splitlines()[int(line_of_row) - 1]


def test_all_failures_are_listed_unless_the_first_is_enough() -> None:
    function = cube(Sample([X]), Sample([2.0 * X]), slope=2.0)
    with pytest.raises(ConformanceError) as every:
        check_primitive(function)
    with pytest.raises(ConformanceError) as first:
        check_primitive(function, stop_at_first=True)
    assert 1 == len({failure.check for failure in first.value.failures})
    assert 1 < len({failure.check for failure in every.value.failures})
    assert first.value.failures[0].check == every.value.failures[0].check


def test_conformance_error_is_an_assertion_error_and_says_whose_fault_it_is() -> None:
    with pytest.raises(AssertionError) as raised:
        check_primitive(cube(slope=2.0), checks=[JVP])
    assert isinstance(raised.value, ConformanceError)
    assert ("cube", "jvp") == (raised.value.primitive, raised.value.hook)


def test_held_failed_and_not_applicable() -> None:
    primitive, samples = cube().primitive, [Sample([X]), Sample([X])]
    outcomes = [run_check(each, primitive, samples) for each in (always_held, never_held, never_applicable, of_errors)]
    assert ["held", "failed", "not applicable", "not applicable"] == [outcome.status for outcome in outcomes]
    assert [2, 0, 0, 0] == [outcome.held for outcome in outcomes]
    assert ("there is nothing to say",) == outcomes[2].not_applicable
    assert () == outcomes[3].not_applicable


def test_samples_of_errors_are_for_checks_of_errors_alone() -> None:
    samples = [Sample([X], error=TypeError), Sample([X])]
    assert [1, 1] == [run_check(each, cube().primitive, samples).held for each in (always_held, of_errors)]


def test_check_that_crashes_is_a_failure_of_its_hook_with_the_cause() -> None:
    (failure,) = run_check(crashing, cube().primitive, [Sample([X])]).failures
    assert isinstance(failure.cause, ZeroDivisionError)
    assert ("vmap", "it raised ZeroDivisionError") == (failure.hook, failure.problem)
    assert "1 / 0" in str(failure) and "test_running.py" in str(failure)


class Broken(Cube):
    """Its jvp rule raises."""

    def __init__(self, error: BaseException) -> None:
        super().__init__()
        self._error = error

    @hookimpl
    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> Any:
        raise self._error


@pytest.mark.parametrize("error", [ZeroDivisionError("oh"), SystemExit(3), MissingRuleError("no rule", hook="jvp")])
def test_rule_that_raises_is_a_failure_with_the_line_of_the_pack(error: BaseException) -> None:
    with pytest.raises(ConformanceError) as raised:
        check_primitive(define(Broken(error)), checks=[JVP])
    assert raised.value.__cause__ is error
    text = str(raised.value)
    assert f"it raised {type(error).__name__}" in text
    assert "test_running.py" in text and "raise self._error" in text


def test_keyboard_interrupt_passes() -> None:
    with pytest.raises(KeyboardInterrupt):
        check_primitive(define(Broken(KeyboardInterrupt())), checks=[JVP])


# Exemptions

def test_exempt_sample_is_not_checked_and_the_reason_is_reported() -> None:
    wrong = Sample([X], exempt={JVP: "its slope is a guess"})
    report = check_primitive(cube(wrong, slope=2.0), checks=[JVP])
    assert [("exempt", ("its slope is a guess",))] == [(o.status, o.exempt) for o in report.outcomes]
    assert "exempt: its slope is a guess" in str(report)


def test_other_samples_are_checked_beside_an_exempt_one() -> None:
    samples = [Sample([X], exempt={JVP: "its slope is a guess"}), Sample([X])]
    with pytest.raises(ConformanceError, match="sample 1"):
        check_primitive(cube(*samples, slope=2.0), checks=[JVP])


def test_exemption_that_is_needed_passes_in_the_full_mode_too() -> None:
    wrong = Sample([X], exempt={JVP: "its slope is a guess"})
    assert ["exempt"] == [o.status for o in check_primitive(cube(wrong, slope=2.0), full=True, checks=[JVP]).outcomes]


def test_stale_exemption_fails_in_the_full_mode_only() -> None:
    stale = cube(Sample([X], exempt={JVP: "its slope was a guess"}))
    assert ["exempt"] == [outcome.status for outcome in check_primitive(stale, checks=[JVP]).outcomes]
    text = message(lambda: check_primitive(stale, full=True, checks=[JVP]))
    assert "no sample that is exempt from this law breaks it" in text and "its slope was a guess" in text
    assert "cube.samples" in text


def test_exemption_of_several_samples_is_needed_if_one_of_them_breaks_the_law() -> None:
    good, bad = [Sample([x], exempt={"is positive": "it is a habit"}) for x in (np.ones(2), -np.ones(2))]
    assert [("exempt", 0), ("failed", 1), ("exempt", 0)] == [
        (outcome.status, len(outcome.failures))
        for outcome in [run_check(is_positive, cube().primitive, samples, full=True)
                        for samples in ([good, bad], [good, good], [bad])]]


# The report

def test_report_tells_the_time_of_each_primitive_and_check() -> None:
    report = check_primitive("neg", checks=[JVP, "params are hashable"])
    first, *lines, last = str(report).splitlines()
    assert first.startswith("neg: ") and first.endswith(" s")
    assert all("held" in line and line.endswith(" ms") for line in lines) and 2 == len(lines)
    assert last == repr(report)
    assert sum([outcome.seconds for outcome in report.outcomes]) == report.seconds > 0


def test_report_counts_primitives_checks_and_failures() -> None:
    failed = run_check(never_held, cube().primitive, [Sample([X])])
    held = run_check(always_held, cube().primitive, [Sample([X])])
    report = Report((failed, held, held))
    assert repr(report).startswith("Report(1 primitive: 2 checks held, 1 failed, ")
    assert list(failed.failures) == report.failures
    assert repr(Report(())).startswith("Report(0 primitives: 0 checks held")


def test_error_tells_each_check_once_with_the_other_inputs() -> None:
    failures = run_check(never_held, cube().primitive, [Sample([X])] * 3).failures
    text = str(ConformanceError(failures))
    assert text.startswith("1 failed check\n") and 1 == text.count("to do:")
    assert text.endswith("\n  also:   sample 1, sample 2")
    assert failures == ConformanceError(failures).failures


def test_error_shows_twenty_checks_and_how_many_more() -> None:
    (failure,) = run_check(never_held, cube().primitive, [Sample([X])]).failures
    text = str(ConformanceError([replace(failure, check=f"check {i}") for i in range(23)]))
    assert text.startswith("23 failed checks") and text.endswith("and 3 more") and 20 == text.count("to do:")
