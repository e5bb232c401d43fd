"""Running checks: which ones, on which samples, and with which outcomes."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import Any, TypeAlias, cast

from corejax.core import Primitive, here
from corejax.errors import CorejaxKeyError, CorejaxModuleNotFoundError, suggestion
from corejax.plugin import Function, Sample, find, public
from corejax_testing.attempts import Culprits, attempt, broken, exemption, failed, failure, quiet
from corejax_testing.batches import compiles_programs
from corejax_testing.case import DEPARTURES, Case
from corejax_testing.catalogue import all_checks
from corejax_testing.check import Check
from corejax_testing.compiled import Comparison, doubtful
from corejax_testing.effort import NO_COUNTEREXAMPLE, Search, Searched, effort_of
from corejax_testing.mapped import under_maps
from corejax_testing.packs import RULES_ARE_USED, Subject, contents_of, hooks_of, use_of
from corejax_testing.progress import Progress
from corejax_testing.report import ConformanceError, Mismatch, NotApplicable, Outcome, Report
from corejax_testing.specification import HAS_SAMPLES, specified

#: The ways to pass a primitive: itself, its name, or its public function.
Named: TypeAlias = Primitive | str | Function

#: The number of samples for which the quick mode runs a costly check, if each transformation compiles a program.
FEW = 4

#: Its multiples, modulo 1, are evenly spread, however many one takes.
_GOLDEN = (5 ** 0.5 - 1) / 2


@public
def check_primitive(primitive: Named, samples: Iterable[Sample] | None = None, *, full: bool = False,
                    checks: Iterable[str] | None = None, stop_at_first: bool = False, search: Searched = False
                    ) -> Report:
    """Check all rules of a primitive against each other; raises a `ConformanceError` that lists what fails.

    `primitive` is a name that an installed pack provides, a primitive, or its public function. `samples` replace those
    of its hook `samples`. `full` adds the slow checks, `checks` chooses some by name. `search=True`, or a `Search` that
    says how much to try, also tries inputs that are like the samples, and reports the smallest that breaks a law.

    >>> check_primitive("sin", checks=["jvp agrees with differences"])
    Report(1 primitive: 1 checks held, 0 failed, ... s)
    """
    with Progress() as progress:
        return _verdict(outcomes(primitive, samples, full=full, checks=checks, stop_at_first=stop_at_first,
                                 search=search, progress=progress))


@public
def check_pack(pack: str, *, full: bool = False, checks: Iterable[str] | None = None, search: Searched = False
               ) -> Report:
    """Check every primitive that an installed distribution provides, or has rules for.

    Raises a `ConformanceError` that lists what fails. Rules for the primitives of others are checked with the other
    rules as if the user had chosen them, and the text of the report says who provides which hook. The options are those
    of `check_primitive`.

    >>> check_pack("corejax-reductions", checks=["params are hashable"])
    Report(... primitives: ... checks held, 0 failed, ... s)
    """
    chosen = None if checks is None else [each.name for each in chosen_checks(full, checks)]
    contents, found, hooks = contents_of(pack), list[Outcome](), dict[str, dict[str, str]]()
    whole = contents.outcome(pack)
    found += [whole] if whole and whole.failures else []
    with Progress(len(contents.subjects)) as progress:
        for subject in contents.subjects:
            with subject.chosen():
                primitive = primitive_of(subject.name)
                found += use_of(subject, primitive)
                laws = laws_for(subject) if chosen is None else chosen
                found += outcomes(primitive, full=full, checks=laws, search=search, rules=subject.choices,
                                  progress=progress)
                hooks[primitive.name] = hooks_of(primitive, subject.transformations)
    return _verdict(found, hooks, contents.notes)


def _verdict(found: Iterable[Outcome], hooks: Mapping[str, Mapping[str, str]] | None = None,
             notes: tuple[str, ...] = ()) -> Report:
    report = Report(tuple(found), hooks or {}, notes)
    if report.failures:
        causes = [failure.cause for failure in report.failures if failure.cause]
        raise ConformanceError(report.failures) from (causes[0] if causes else None)
    return report


def outcomes(primitive: Named, samples: Iterable[Sample] | None = None, *, full: bool = False,
             checks: Iterable[str] | None = None, stop_at_first: bool = False, search: Searched = False,
             rules: Sequence[str] = (), progress: Progress | None = None) -> Iterator[Outcome]:
    """Run the checks, and yield the outcome of each. `rules` are those of other packs that are in effect."""
    progress = progress or Progress()
    chosen, effort = chosen_checks(full, None if checks is None else (checks := list(checks))), effort_of(search)
    if effort:
        check_hypothesis()
    found, samples = under_maps(primitive_of(primitive), samples)
    progress.primitive(found.name, [*[each.name for each in chosen], *[NO_COUNTEREXAMPLE] * bool(effort)])
    laws = [*all_checks(), *DEPARTURES, NO_COUNTEREXAMPLE]
    given, specification = specified(found, samples, laws, samples is None or checks is None)
    if checks is None or specification.failures:
        yield specification
    if not given or (stop_at_first and specification.failures):
        return
    for each in chosen:
        progress.check(each.name)
        outcome = run_check(each, found, given, full)
        yield outcome
        if stop_at_first and outcome.failures:
            return
    if effort:
        progress.check(NO_COUNTEREXAMPLE)
        yield _searched(found, given, effort, full, None if checks is None else chosen, rules,
                                       progress.part)
    progress.finished()


def _searched(*args: Any) -> Outcome:
    """The outcome of a search, whose module imports hypothesis."""
    found: Outcome = import_module("corejax_testing.search").search_for(*args)
    return found


def check_hypothesis() -> None:
    """Raise an error if hypothesis, which searches need, isn't installed."""
    if find_spec("hypothesis") is None:
        raise CorejaxModuleNotFoundError(
            "searching for counterexamples needs hypothesis, which isn't installed", got="search=True", where=here(),
            wanted="hypothesis 6", todo="pip install 'corejax-testing[search]', or leave out search")


def outcome_of(subject: Subject, check: str, full: bool = False, effort: Search | None = None) -> Outcome:
    """Run one check by name, or one that isn't about single samples, on the hook's samples."""
    with subject.chosen():
        found = primitive_of(subject.name)
        if check == RULES_ARE_USED:
            return next(use_of(subject, found))
        found, _ = under_maps(found, None)
        given, specification = specified(found, None, [*all_checks(), *DEPARTURES, NO_COUNTEREXAMPLE])
        if check == NO_COUNTEREXAMPLE:
            laws = laws_for(subject)
            chosen = None if laws is None else chosen_checks(full, laws)
            outcome = _searched(found, given, effort, full, chosen, subject.choices)
            return outcome
        return specification if check == HAS_SAMPLES else run_check(all_checks()[check], found, given, full)


def laws_for(subject: Subject) -> list[str] | None:
    """The names of the laws to check, if the pack has rules of transformations only for it; None if all."""
    asked = subject.transformations
    return [each.name for each in all_checks().values() if each.hook in asked] if asked else None


def chosen_checks(full: bool, names: Iterable[str] | None = None) -> list[Check]:
    """The checks of a mode, or the named ones."""
    checks = all_checks(derived=full or names is not None)
    if names is None:
        return [each for each in checks.values() if full or not each.full]
    chosen = list(names)
    for name in chosen:
        if name not in checks:
            raise CorejaxKeyError(f"there is no check {name!r}", got=repr(name), wanted=", ".join(checks), where=here(),
                                  todo=suggestion(name, checks) or "choose among these")
    return [checks[name] for name in chosen]


def primitive_of(primitive: Named) -> Primitive:
    """The primitive of this name or function."""
    if isinstance(primitive, str):
        return find(primitive)
    return cast(Primitive, getattr(primitive, "primitive", primitive))


def run_check(each: Check, primitive: Primitive, samples: Sequence[Sample], full: bool = False) -> Outcome:
    """Run a check on all samples that it is for. If it is decisive, or the mode full, an exempt one must break it."""
    start = time.perf_counter()
    cases = [Case(primitive, sample, number, each.name, full, samples) for number, sample in enumerate(samples)
             if (sample.error is not None) is each.errors]
    exempt = [case for case in cases if exemption(each, case)]
    raised = _raised(each, [case for case in cases if not exemption(each, case)])
    culprits: Culprits = {}
    failures = [failed(each, case, error, culprits) for case, error in raised
                if error is not None and not isinstance(error, NotApplicable)]
    sharp = full or each.decisive
    if sharp and exempt and _shows_departure(each, exempt) and not any([broken(each, case) for case in exempt]):
        failures.append(failure(each, exempt[0], _stale(exemption(each, exempt[0]))))
    reasons = dict.fromkeys([exemption(each, case) for case in exempt])
    not_applicable = dict.fromkeys([str(error) for _, error in raised if isinstance(error, NotApplicable)])
    return Outcome(primitive.name, each.name, each.hook, tuple(failures), sum([error is None for _, error in raised]),
                   tuple(reasons), tuple(not_applicable), time.perf_counter() - start)


def _shows_departure(each: Check, exempt: Sequence[Case]) -> bool:
    """Whether exempt samples must break this law: of those that a departure names, only the first one."""
    first = next(other for other in all_checks().values() if other.departure == each.departure)
    return first is each or any([each.name in case.sample.exempt for case in exempt])


def _raised(each: Check, cases: Sequence[Case]) -> list[tuple[Case, BaseException | None]]:
    """What the check raises for each sample, or None; the quick mode saves time where it can."""
    if not cases or cases[0].full:
        return [(case, attempt(each, case)) for case in cases]
    if each.costly and len(cases) > FEW and any([compiles_programs(case) for case in cases]):
        return _raised_by_few(each, cases)
    waiting: list[Comparison] = []
    raised = [attempt(each, case.sharing(waiting)) for case in cases]
    with quiet():
        again = doubtful(waiting)
    again |= {comparison.case.number for comparison in waiting} & {
        case.number for case, error in zip(cases, raised, strict=True) if error is not None}
    return [(case, attempt(each, case) if case.number in again else error)
            for case, error in zip(cases, raised, strict=True)]


def _raised_by_few(each: Check, cases: Sequence[Case]) -> list[tuple[Case, BaseException | None]]:
    """What it raises for each of some evenly spread samples, until it has held for `FEW` of them."""
    raised: dict[int, tuple[Case, BaseException | None]] = {}
    for place in sorted(range(len(cases)), key=lambda k: k * _GOLDEN % 1):
        raised[place] = cases[place], attempt(each, cases[place])
        if sum([error is None for _, error in raised.values()]) == FEW:
            break
    return [raised[place] for place in sorted(raised)]


def _stale(reason: str) -> Mismatch:
    return Mismatch("samples", "no sample that is exempt from this law breaks it", got=f"the exemption: {reason}",
                    wanted="exemptions only where a law is broken", todo="remove the exemption")
