"""Running a mutant: does the conformance kit tell it from the true rule, and by which law?"""

from __future__ import annotations

import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import cache
from multiprocessing import get_context

from corejax.errors import PluginError
from corejax.plugin import Primitive
from corejax_testing import ConformanceError, Failure, check_primitive
from corejax_testing.running import chosen_checks

from .loading import load, load_from, standing_in
from .mutant import Mutant, source_of

#: The law that a mutant broke which was refused when its rules were collected.
REFUSED = "refused when loaded"


@dataclass(frozen=True)
class Outcome:
    """What the kit said to a mutant: the first law that failed, and the hook that it blamed; empty if none failed.

    `seconds` are of the processor, so that they don't depend on what else runs.
    """

    name: str
    check: str
    blamed: str
    said: str
    seconds: float

    @property
    def killed(self) -> bool:
        return bool(self.check)


def run(mutant: Mutant, first: str = "") -> Outcome:
    """Check a mutant in the quick mode, up to the first law that it breaks and the true rule keeps.

    The laws of the hook with the fault come first, and before them the law `first`, which it is known to break: whether
    one of all is broken doesn't depend on that, but how long it takes does.
    What isn't an error of corejax comes through: then the harness is broken, and the mutant isn't killed by that.
    """
    start = time.process_time()
    check, blamed, said = _fault(mutant, first)
    return Outcome(mutant.name, check, blamed, said, round(time.process_time() - start, 2))


def _fault(mutant: Mutant, first: str) -> tuple[str, str, str]:
    primitive = load(mutant)
    try:
        assert primitive.params is not None  # reading a rule collects and validates all
    except PluginError as error:
        return REFUSED, error.hook or "", str(error).partition("\n")[0]
    laws = [check.name for check in sorted(chosen_checks(full=False), key=lambda check: (
        check.name != first, check.hook != mutant.hook))]
    while (failure := _first_failure(primitive, laws)) is not None:
        if _true_rule_keeps(mutant.primitive, mutant.module, failure.check):
            return failure.check, failure.hook, failure.problem
        laws.remove(failure.check)
    return "", "", ""


def _first_failure(primitive: Primitive, laws: Sequence[str]) -> Failure | None:
    with standing_in(primitive):
        try:
            check_primitive(primitive, checks=laws, stop_at_first=True)
        except ConformanceError as error:
            return error.failures[0]
    return None


@cache
def _true_rule_keeps(primitive: str, module: str, law: str) -> bool:
    """Does the true rule, loaded as the mutant was, keep this law? Else its failure says nothing about the mutant."""
    return _first_failure(load_from(primitive, module, source_of(module)), [law]) is None


def run_all(mutants: Sequence[Mutant], processes: int = 1, first: Sequence[str] | None = None) -> list[Outcome]:
    """The outcomes of several mutants, in their order; `first` has for each the law to begin with."""
    laws = first or [""] * len(mutants)
    if processes == 1:
        return [run(mutant, law) for mutant, law in zip(mutants, laws, strict=True)]
    with ProcessPoolExecutor(processes, get_context("spawn")) as pool:
        return list(pool.map(run, mutants, laws, chunksize=4))
