"""Running checks: which ones, on which samples, and with which outcomes."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TypeAlias, cast

import numpy as np

from corejax.base.errors import CorejaxError, CorejaxKeyError, CorejaxWarning, suggestion
from corejax.base.source import here
from corejax.base.tracebacks import public
from corejax.inspect.explain import place_of_rule
from corejax.kernel.checks import whose
from corejax.kernel.declarations import Sample
from corejax.kernel.primitive import Function, Primitive
from corejax.packs.define import find
from corejax.testing.batches import compiles_programs
from corejax.testing.case import DEPARTURES, Case
from corejax.testing.catalogue import CHECKS
from corejax.testing.check import Check
from corejax.testing.compiled import Comparison, doubtful
from corejax.testing.packs import RULES_ARE_USED, Subject, contents_of, hooks_of, use_of
from corejax.testing.report import ConformanceError, Failure, Mismatch, NotApplicable, Outcome, Report
from corejax.testing.specification import HAS_SAMPLES, specified

#: The ways to pass a primitive: itself, its name, or its public function.
Named: TypeAlias = Primitive | str | Function

#: The number of samples for which the quick mode runs a costly check, if each transformation compiles a program.
FEW = 4

#: Its multiples, modulo 1, are evenly spread, however many one takes.
_GOLDEN = (5 ** 0.5 - 1) / 2


@public
def check_primitive(primitive: Named, samples: Iterable[Sample] | None = None, *, full: bool = False,
                    checks: Iterable[str] | None = None, stop_at_first: bool = False) -> Report:
    """Check all rules of a primitive against each other; raises a `ConformanceError` that lists what fails.

    `primitive` is a name that an installed pack provides, a primitive, or its public function. `samples` replace those
    of its hook `samples`. `full` adds the slow checks, `checks` chooses some by name.

    >>> check_primitive("sin", checks=["jvp agrees with differences"])
    Report(1 primitive: 1 checks held, 0 failed, ... s)
    """
    return _verdict(outcomes(primitive, samples, full=full, checks=checks, stop_at_first=stop_at_first))


@public
def check_pack(pack: str, *, full: bool = False, checks: Iterable[str] | None = None) -> Report:
    """Check every primitive that an installed distribution provides, or has rules for.

    Raises a `ConformanceError` that lists what fails. Rules for the primitives of others are checked with the other
    rules as if the user had chosen them, and the text of the report says who provides which hook.

    >>> check_pack("corejax-reductions", checks=["params are hashable"])
    Report(... primitives: ... checks held, 0 failed, ... s)
    """
    chosen = None if checks is None else [each.name for each in chosen_checks(full, checks)]
    contents, found, hooks = contents_of(pack), list[Outcome](), dict[str, dict[str, str]]()
    whole = contents.outcome(pack)
    found += [whole] if whole and whole.failures else []
    for subject in contents.subjects:
        with subject.chosen():
            primitive = primitive_of(subject.name)
            found += use_of(subject, primitive)
            found += outcomes(primitive, full=full, checks=chosen)
            hooks[primitive.name] = hooks_of(primitive)
    return _verdict(found, hooks, contents.notes)


def _verdict(found: Iterable[Outcome], hooks: Mapping[str, Mapping[str, str]] | None = None,
             notes: tuple[str, ...] = ()) -> Report:
    report = Report(tuple(found), hooks or {}, notes)
    if report.failures:
        causes = [failure.cause for failure in report.failures if failure.cause]
        raise ConformanceError(report.failures) from (causes[0] if causes else None)
    return report


def outcomes(primitive: Named, samples: Iterable[Sample] | None = None, *, full: bool = False,
             checks: Iterable[str] | None = None, stop_at_first: bool = False) -> Iterator[Outcome]:
    """Run the checks, and yield the outcome of each."""
    chosen = chosen_checks(full, checks)
    found = primitive_of(primitive)
    given, specification = specified(found, samples, [*CHECKS, *DEPARTURES], samples is None or checks is None)
    if checks is None or specification.failures:
        yield specification
    if not given or (stop_at_first and specification.failures):
        return
    for each in chosen:
        outcome = run_check(each, found, given, full)
        yield outcome
        if stop_at_first and outcome.failures:
            return


def outcome_of(subject: Subject, check: str, full: bool = False) -> Outcome:
    """Run one check by name, or one that isn't about single samples, on the hook's samples."""
    with subject.chosen():
        found = primitive_of(subject.name)
        return next(use_of(subject, found)) if check == RULES_ARE_USED else _outcome_of(found, check, full)


def _outcome_of(found: Primitive, check: str, full: bool) -> Outcome:
    given, specification = specified(found, None, [*CHECKS, *DEPARTURES])
    return specification if check == HAS_SAMPLES else run_check(CHECKS[check], found, given, full)


def chosen_checks(full: bool, names: Iterable[str] | None = None) -> list[Check]:
    """The checks of a mode, or the named ones."""
    if names is None:
        return [each for each in CHECKS.values() if full or not each.full]
    chosen = list(names)
    for name in chosen:
        if name not in CHECKS:
            raise CorejaxKeyError(f"there is no check {name!r}", got=repr(name), wanted=", ".join(CHECKS), where=here(),
                                  todo=suggestion(name, CHECKS) or "choose among these")
    return [CHECKS[name] for name in chosen]


def primitive_of(primitive: Named) -> Primitive:
    """The primitive of this name or function."""
    if isinstance(primitive, str):
        return find(primitive)
    return cast(Primitive, getattr(primitive, "primitive", primitive))


def run_check(each: Check, primitive: Primitive, samples: Sequence[Sample], full: bool = False) -> Outcome:
    """Run a check on all samples that it is for. In the full mode, one of the exempt samples must break the law."""
    start = time.perf_counter()
    cases = [Case(primitive, sample, number, each.name, full, samples) for number, sample in enumerate(samples)
             if (sample.error is not None) is each.errors]
    exempt = [case for case in cases if _reason(each, case)]
    raised = _raised(each, [case for case in cases if not _reason(each, case)])
    failures = [_failed(each, case, error) for case, error in raised
                if error is not None and not isinstance(error, NotApplicable)]
    if full and exempt and _shows_departure(each, exempt) and not any([_is_broken(each, case) for case in exempt]):
        failures.append(_failure(each, exempt[0], _stale(_reason(each, exempt[0]))))
    reasons = dict.fromkeys([_reason(each, case) for case in exempt])
    not_applicable = dict.fromkeys([str(error) for _, error in raised if isinstance(error, NotApplicable)])
    return Outcome(primitive.name, each.name, each.hook, tuple(failures), sum([error is None for _, error in raised]),
                   tuple(reasons), tuple(not_applicable), time.perf_counter() - start)


def _reason(each: Check, case: Case) -> str:
    """Why a sample is exempt from a check, by its name or in one word for several; empty if it isn't."""
    exempt = case.sample.exempt
    return exempt.get(each.name) or (exempt.get(each.departure, "") if each.departure else "")


def _shows_departure(each: Check, exempt: Sequence[Case]) -> bool:
    """Whether exempt samples must break this law: of those that a departure names, only the first one."""
    first = next(other for other in CHECKS.values() if other.departure == each.departure)
    return first is each or any([each.name in case.sample.exempt for case in exempt])


def _raised(each: Check, cases: Sequence[Case]) -> list[tuple[Case, BaseException | None]]:
    """What the check raises for each sample, or None; the quick mode saves time where it can."""
    if not cases or cases[0].full:
        return [(case, _attempt(each, case)) for case in cases]
    if each.costly and len(cases) > FEW and any([compiles_programs(case) for case in cases]):
        return _raised_by_few(each, cases)
    waiting: list[Comparison] = []
    raised = [_attempt(each, case.sharing(waiting)) for case in cases]
    with _quiet():
        again = doubtful(waiting)
    again |= {comparison.case.number for comparison in waiting} & {
        case.number for case, error in zip(cases, raised, strict=True) if error is not None}
    return [(case, _attempt(each, case) if case.number in again else error)
            for case, error in zip(cases, raised, strict=True)]


def _raised_by_few(each: Check, cases: Sequence[Case]) -> list[tuple[Case, BaseException | None]]:
    """What it raises for each of some evenly spread samples, until it has held for `FEW` of them."""
    raised: dict[int, tuple[Case, BaseException | None]] = {}
    for place in sorted(range(len(cases)), key=lambda k: k * _GOLDEN % 1):
        raised[place] = cases[place], _attempt(each, cases[place])
        if sum([error is None for _, error in raised.values()]) == FEW:
            break
    return [raised[place] for place in sorted(raised)]


def _attempt(each: Check, case: Case) -> BaseException | None:
    """What a check raises for a sample; None if the law holds."""
    try:
        with _quiet():
            each.run(case)
    except (Exception, SystemExit) as error:  # a rule that raises when it should work fails the check
        return error
    return None


def _is_broken(each: Check, case: Case) -> bool:
    error = _attempt(each, case)
    return error is not None and not isinstance(error, NotApplicable)


@contextmanager
def _quiet() -> Iterator[None]:
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore", CorejaxWarning)  # fallbacks have their own check
        yield


def _failed(each: Check, case: Case, error: BaseException) -> Failure:
    if isinstance(error, Mismatch):
        return _failure(each, case, error)
    hook = error.hook if isinstance(error, CorejaxError) and error.hook else each.hook
    raised = Mismatch(hook, f"it raised {type(error).__name__}", got=str(error).replace("\n", "\n          "),
                      wanted="the law to hold: " + each.doc.partition("\n")[0],
                      todo="fix the rule; or exempt the sample from this check, with the reason")
    return _failure(each, case, raised, error)


def _stale(reason: str) -> Mismatch:
    return Mismatch("samples", "no sample that is exempt from this law breaks it", got=f"the exemption: {reason}",
                    wanted="exemptions only where a law is broken", todo="remove the exemption")


def _failure(each: Check, case: Case, mismatch: Mismatch, cause: BaseException | None = None) -> Failure:
    return Failure(case.primitive.name, whose(case.primitive, mismatch.hook), each.name, mismatch.hook, repr(case),
                   mismatch.problem, mismatch.got, mismatch.wanted, mismatch.todo, cause,
                   place_of_rule(case.primitive, mismatch.hook))
