"""Comparing what a case evaluates to with its compiled program; in the quick mode, one program serves many samples.

Compiling takes tens of milliseconds for any program, so one large program costs half as much as many small ones.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from corejax import jit
from corejax_testing.case import Case

Compare = Callable[[Case, Sequence[object], Sequence[object]], None]


class Comparison:
    """A case, lists of operands for it with what it evaluates to for each, and how to compare two lists of results."""

    def __init__(self, case: Case, calls: Sequence[Sequence[Any]], compare: Compare) -> None:
        self.case, self.calls, self.compare = case, calls, compare
        self.evaluated = [case.apply(*args) for args in calls]

    def call(self, k: int) -> Sequence[Any]:
        """The operands of the k-th call, or of the last one."""
        return self.calls[min(k, len(self.calls) - 1)]

    def check(self, k: int, computed: Sequence[object]) -> None:
        """Raise an error if the compiled program computes something different in the k-th call, or the last one."""
        self.compare(self.case, self.evaluated[min(k, len(self.calls) - 1)], computed)


def agree(case: Case, calls: Sequence[Sequence[Any]], compare: Compare) -> None:
    """Compare evaluating with compiling for each list of operands: now, or together with other samples if `waiting`."""
    comparison = Comparison(case, calls, compare)
    if case.waiting is not None and not case.representative:  # else other checks use its own program, too
        case.waiting.append(comparison)
        return
    compiled = jit(case.apply)
    for k, args in enumerate(calls):
        comparison.check(k, compiled(*args))


def doubtful(waiting: Sequence[Comparison]) -> set[int]:
    """Run one program for all of them. Return the numbers of the samples that need another check, each on its own."""
    if not waiting:
        return set()

    @jit
    def program(operands: Sequence[Sequence[Any]]) -> list[list[Any]]:
        return [each.case.apply(*args) for each, args in zip(waiting, operands, strict=True)]

    found: set[int] = set()
    for k in range(max([len(each.calls) for each in waiting])):
        try:
            results = program([each.call(k) for each in waiting])
        except (Exception, SystemExit):  # compiled one by one, they show whose fault it is
            return {each.case.number for each in waiting}
        for each, computed in zip(waiting, results, strict=True):
            try:
                each.check(k, computed)
            except (Exception, SystemExit):
                found.add(each.case.number)
    return found
