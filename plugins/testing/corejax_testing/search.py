"""Searching for counterexamples with hypothesis: inputs made of a primitive's samples, and the smallest that fails.

The module is imported on use, since hypothesis may not be installed.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import hypothesis
import numpy as np
from hypothesis import HealthCheck, Phase, Verbosity, configuration, strategies as st
from hypothesis.errors import Flaky

from corejax.core import Primitive, aval_of, dtypes
from corejax.plugin import Sample, elements
from corejax_testing.attempts import attempt, exemption, failed, quiet
from corejax_testing.case import Case
from corejax_testing.catalogue import CHECKS
from corejax_testing.check import Check
from corejax_testing.comparing import eps_of, host, numbers
from corejax_testing.effort import NO_COUNTEREXAMPLE, Search
from corejax_testing.forms import Form
from corejax_testing.inputs import Inputs
from corejax_testing.report import Failure, Mismatch, NotApplicable, Outcome
from corejax_testing.reproducing import program_for
from corejax_testing.tolerances import ULPS

#: Those that compare doubles with other dtypes themselves.
_OF_NARROW_TYPES = ("values in narrow types are those of doubles", "tangents in narrow types are those of doubles",
                    "cotangents in narrow types are those of doubles")

#: The laws that hold for any input, the cheap ones first. The others are about all samples together, or are exhaustive.
LAWS = (
    "impl and the compiled program agree", "the decomposition agrees", "weak types pass through",
    "python scalars give the announced weak types", "jvp computes the primal", "jvp agrees with differences",
    "jvp is linear", "linearize equals jvp", "pullback is the adjoint of jvp", "transpose is the adjoint",
    *_OF_NARROW_TYPES, "a map is a loop", "maps of no slice and of one work", "rows of a map do not touch each other",
    "symbolic zeros equal instantiated ones", "pullback is linear", "transformed programs are typed",
    "printed programs parse back", "abstract eval depends on types alone", "no rule writes to its operands",
    "memory layout makes no difference", "nested maps are nested loops", "second derivatives agree with differences",
    "programs split by what is known", "derivatives by any operands linearize", "dead results are removed")

#: Those that hold also for NaN, infinities and the extreme integers, and what exempts samples from these.
_OF_SPECIAL_VALUES = LAWS[:2]

#: Those that compare with differences. Where differences are along a line on which the function is smooth, although it
#: isn't around, a sample says so by an exemption from the law for special points.
_OF_DIFFERENCES = ("jvp agrees with differences", "second derivatives agree with differences")
_AT_SPECIAL_POINTS = "derivatives agree at special points"

#: How many times as many inputs hypothesis may make as are tried, since it makes many of them twice.
_AGAIN = 5

#: How often operands are changed by their rounding errors, to see how far results move.
_PERTURBED = 4

#: The hooks whose laws take random tangents and cotangents.
_WITH_DIRECTIONS = ("jvp", "transpose", "linearize", "partial_eval")

#: Where nothing is declared linear, this one finds out by experiment, and zeros, which shrinking leads to, mislead it.
_TRANSPOSES = "transpose is the adjoint"

class _Found(Exception):
    """A law doesn't hold for an input."""


class _Enough(BaseException):
    """The search has tried as much as it may, or taken as long."""


class SearchedCase(Case):
    """A case of a search, which tries other dtypes itself."""

    def variants(self) -> Iterator[Case]:
        if self.check in _OF_NARROW_TYPES:
            yield from super().variants()
        else:
            yield self


class Searching:
    """A search for an input of a primitive that breaks a law."""

    def __init__(self, primitive: Primitive, samples: Sequence[Sample], laws: Sequence[Check], full: bool,
                 effort: Search, told: Callable[[float], None]) -> None:
        self.primitive, self.full, self.effort, self.told = primitive, full, effort, told
        self.inputs = Inputs(primitive, samples)
        self.laws = [law for law in laws if not _departs(primitive, samples, law)]
        self.start = time.perf_counter()
        self.tried = 0
        self.known: dict[Any, tuple[Case, Check, BaseException] | None] = {}
        self.smallest: tuple[Case, Form, Check, BaseException] | None = None

    def run(self) -> tuple[Case, Form, Check, BaseException] | None:
        """The smallest input found that breaks a law, with this law and what its check raised; None without any."""
        settings = hypothesis.settings(
            max_examples=_AGAIN * self.effort.max_examples, deadline=None, database=None, verbosity=Verbosity.quiet,
            phases=(Phase.generate, Phase.shrink), suppress_health_check=list(HealthCheck), report_multiple_bugs=False)

        @st.composite
        def inputs(draw: Callable[[Any], Any]) -> tuple[Sample, Form, bool]:
            with quiet():
                return self.inputs.draw(lambda n: draw(_below(n)) if n > 1 else 0)

        @hypothesis.seed(self.effort.seed)
        @settings
        @hypothesis.given(inputs())
        def holds(drawn: tuple[Sample, Form, bool]) -> None:
            self._try(*drawn)

        try:
            with _stored_nowhere():
                holds()
        except (_Found, _Enough, Flaky):  # hypothesis calls it flaky if the time is up while it shrinks
            pass
        return self.smallest

    def _try(self, sample: Sample, form: Form, special: bool) -> None:
        elapsed = time.perf_counter() - self.start
        if elapsed > self.effort.seconds:
            raise _Enough
        self.told(max(elapsed / self.effort.seconds, min(self.tried / self.effort.max_examples, 1.0)))
        key = _key(sample)
        if key not in self.known:
            if self.tried >= self.effort.max_examples and self.smallest is None:
                raise _Enough
            self.tried += 1
            self.known[key] = self._broken(sample, special)
        broken = self.known[key]
        if broken is not None:
            case, law, error = broken
            self.laws = [law]  # what becomes smaller must break the same law
            self.smallest = case, form, law, error
            raise _Found

    def _broken(self, sample: Sample, special: bool) -> tuple[Case, Check, BaseException] | None:
        """The first law that the input breaks, with what its check raised."""
        for law in self.laws:
            case = SearchedCase(self.primitive, sample, 0, law.name, self.full)
            if special and law.name not in _OF_SPECIAL_VALUES:
                continue
            error = attempt(law, case)
            if error is not None and not _is_of_no_use(error) and not self._is_rounding(law, sample, error):
                return case, law, error
        return None


    def _is_rounding(self, law: Check, sample: Sample, error: BaseException) -> bool:
        """Whether the law holds but for what the function makes of rounding errors of the operands."""
        if not isinstance(error, Mismatch):
            return False
        case = SearchedCase(self.primitive, sample, 0, law.name, self.full)
        try:
            spread = max([_spread(case, args) for args in (case.args, case.drawn())])  # as the laws draw first
            if law.hook in _WITH_DIRECTIONS:
                spread = max(spread, _of_directions(case))
        except Exception:  # the law says more
            return False
        loose = Sample(sample.args, sample.params, sample.domain, None, sample.exempt, sample.singular, sample.ulps,
                       atol=(sample.atol or 0.0) + ULPS * spread)
        return bool(spread) and attempt(law, SearchedCase(self.primitive, loose, 0, law.name, self.full)) is None


@contextmanager
def _stored_nowhere() -> Iterator[None]:
    """What hypothesis stores meanwhile, such as the constants of modules, goes to a folder that is deleted.

    It would leave the folder `.hypothesis` wherever a user checks a pack.
    """
    before: Any = configuration.storage_directory()
    with tempfile.TemporaryDirectory() as folder:
        configuration.set_hypothesis_home_dir(folder)
        try:
            yield
        finally:
            configuration.set_hypothesis_home_dir(getattr(before, "path", before))  # older versions return the path


def _spread(case: Case, args: Sequence[Any]) -> float:
    """How far results move if floating operands change by their rounding errors, each time that they are added up."""
    outs = [numbers(out) for out in case.apply(*args)]
    found, rng = [0.0], np.random.default_rng(0)
    for _ in range(_PERTURBED):
        for out, other in zip(outs, map(numbers, case.apply(*[_moved(x, rng) for x in args])), strict=True):
            if dtypes.is_inexact(out.dtype):
                wide = np.complex128 if dtypes.is_complex(out.dtype) else np.float64
                distance = np.abs(out.astype(wide) - other.astype(wide))
                found.append(float(distance[np.isfinite(distance)].max(initial=0.0)))
    return max(found) * max([1, *[host(x).size for x in args]])


def _of_directions(case: Case) -> float:
    """The rounding errors of a sum of tangents or cotangents, which are about 1, whatever the operands are."""
    avals = [aval for aval in (*case.avals, *case.out_avals) if dtypes.is_inexact(aval.dtype)]
    return max([eps_of(aval.dtype) for aval in avals], default=0.0) * sum([aval.size for aval in avals])


def _moved(x: Any, rng: np.random.Generator) -> Any:
    """An operand, each element of which is one unit of precision larger or smaller."""
    aval = aval_of(x)
    if not dtypes.is_inexact(aval.dtype) or elements.find(aval.dtype) is not None:
        return x
    return np.asarray(host(x) * (1 + eps_of(aval.dtype) * rng.choice((-1, 1), aval.shape))).astype(aval.dtype)


def _departs(primitive: Primitive, samples: Sequence[Sample], law: Check) -> bool:
    """Whether samples are exempt from a law: there is no telling whether inputs like them are."""
    exempt = {name for sample in samples for name in sample.exempt}
    return bool([True for sample in samples if exemption(law, Case(primitive, sample, 0))]) or (
        law.name in _OF_DIFFERENCES and _AT_SPECIAL_POINTS in exempt)


def _is_of_no_use(error: BaseException) -> bool:
    """Whether it says that the law doesn't apply, or can't be checked with such operands."""
    return isinstance(error, NotApplicable) or (isinstance(error, Mismatch) and error.hook == "samples")


def _below(n: int) -> st.SearchStrategy[int]:
    return st.integers(0, n - 1)


def _key(sample: Sample) -> Any:
    operands = tuple([(type(x), host(x).dtype, host(x).shape, host(x).tobytes()) for x in sample.args])
    return operands, repr(sample.params), repr(sample.domain)


def laws_of(primitive: Primitive, full: bool, chosen: Sequence[Check] | None = None) -> list[Check]:
    """The laws that are tried on each input: those for any input, or the chosen ones."""
    if chosen is not None:
        return [each for each in chosen if not each.errors]
    by_experiment = {_TRANSPOSES} if primitive.linear is None else set()
    return [CHECKS[name] for name in LAWS if (full or not CHECKS[name].full) and name not in by_experiment]


def search_for(primitive: Primitive, samples: Sequence[Sample], effort: Search, full: bool = False,
               chosen: Sequence[Check] | None = None, rules: Sequence[str] = (),
               told: Callable[[float], None] = lambda done: None) -> Outcome:
    """Search for an input that breaks a law; the outcome counts the inputs that were tried."""
    exempt = {sample.exempt[NO_COUNTEREXAMPLE]: None for sample in samples if NO_COUNTEREXAMPLE in sample.exempt}
    if exempt:
        return Outcome(primitive.name, NO_COUNTEREXAMPLE, "", (), 0, tuple(exempt), (), 0.0)
    searching = Searching(primitive, samples, laws_of(primitive, full, chosen), full, effort, told)
    found = searching.run() if searching.inputs.forms.templates else None
    failures: tuple[Failure, ...] = ()
    if found is not None:
        case, form, law, error = found
        made = failed(law, case, error)
        text = program_for(primitive, case.sample, samples[form.number], form.number, law.name, full, rules)
        failures = (replace(made, sample=repr(case).partition(": ")[2], program=text),)
    return Outcome(primitive.name, NO_COUNTEREXAMPLE, "", failures, searching.tried, (), (),
                   time.perf_counter() - searching.start)
