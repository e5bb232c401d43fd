"""What `make test` runs of what is exhaustive: a fixed share, spread evenly. `make test-all` runs the rest as well."""

from __future__ import annotations

import itertools
import zlib
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any, TypeVar

import pytest

T = TypeVar("T")

Names = tuple[str, ...]


def exhaustive_unless(keep: Callable[[Any], bool], cases: Iterable[Any]) -> list[Any]:
    """The cases of a parametrised test, those that aren't kept marked as exhaustive."""
    return [case if keep(case) else pytest.param(case, marks=pytest.mark.exhaustive) for case in cases]


def leave_samples(tests: Iterable[Any]) -> None:
    """Of a test that is marked `sample(n)`, mark all cases as exhaustive but n of those that aren't marked so."""
    cases = defaultdict(list)
    for test in tests:
        marked, left_out = [test.get_closest_marker(name) for name in ("sample", "exhaustive")]
        if marked and not left_out and hasattr(test, "callspec"):
            cases[test.parent.nodeid, test.originalname].append(test)
    for each in cases.values():
        (count,) = each[0].get_closest_marker("sample").args
        for test in by_turns(each)[count:]:
            test.add_marker(pytest.mark.exhaustive)


def by_turns(cases: Iterable[Any]) -> list[Any]:
    """The cases of one test in an order that is always the same, first those with most values that none before had."""
    first, seen = [], set[Hashable]()
    waiting = [(case, {_value(*each) for each in case.callspec.params.items()})
               for case in sorted(cases, key=lambda case: zlib.crc32(case.name.encode()))]
    for least in range(max([len(values) for _, values in waiting], default=0), 0, -1):
        others = []
        for case, values in waiting:
            if len(values - seen) >= least:
                first.append(case)
                seen |= values
            else:
                others.append((case, values))
        waiting = others
    return [*first, *[case for case, _ in waiting]]


def _value(name: str, value: object) -> Hashable:
    """The value of an argument, to be compared with others: 1, 1.0 and True aren't the same."""
    try:
        hash(value)
    except TypeError:
        return (name, type(value), id(value))
    return (name, type(value), value)


def orderings(kinds: Sequence[str], depth: int) -> list[Names]:
    """All orderings of exactly so many transformations."""
    return list(itertools.product(kinds, repeat=depth))


def spread(kinds: Sequence[str], depth: int) -> list[Names]:
    """All orderings of one or two; of three, 2 / n of them: every pair of kinds in any two places, with two others."""
    return [names for names in orderings(kinds, depth) if depth < 3 or sum(map(kinds.index, names)) % len(kinds) < 2]


#: How far to nest transformations; of some orderings each is tried on so many programs.
DEPTHS = ("1", "some of 2", "some of 3", *[pytest.param(depth, marks=pytest.mark.exhaustive) for depth in ("2", "3")])
SOME = {"some of 2": 2, "some of 3": 1}


def to_depth(kinds: Sequence[str], depth: str, program: T, programs: Sequence[T],
             allowed: Callable[[T, Names], bool] = lambda program, names: True) -> list[Names]:
    """The orderings that are allowed for a program, of one of `DEPTHS`."""
    if depth not in SOME:
        return [names for names in orderings(kinds, int(depth)) if allowed(program, names)]
    found = []
    for place, names in enumerate(spread(kinds, int(depth[-1]))):
        takers = [taker for taker in programs if allowed(taker, names)]
        if program in takers and (takers.index(program) - place) % len(takers) < SOME[depth]:
            found.append(names)
    return found
