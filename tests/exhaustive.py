"""What `make test` runs of what is exhaustive: a fixed share, spread evenly. `make test-all` runs the rest as well."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

import pytest

T = TypeVar("T")

Names = tuple[str, ...]


def exhaustive_unless(keep: Callable[[Any], bool], cases: Iterable[Any]) -> list[Any]:
    """The cases of a parametrised test, those that aren't kept marked as exhaustive."""
    return [case if keep(case) else pytest.param(case, marks=pytest.mark.exhaustive) for case in cases]


def orderings(kinds: Sequence[str], depth: int) -> list[Names]:
    """All orderings of exactly so many transformations."""
    return list(itertools.product(kinds, repeat=depth))


#: How far to nest transformations; of some orderings each is tried on so many programs.
DEPTHS = ("1", "some of 2", "some of 3", *[pytest.param(depth, marks=pytest.mark.exhaustive) for depth in ("2", "3")])
SOME = {"some of 2": 4, "some of 3": 1}


def to_depth(kinds: Sequence[str], depth: str, program: T, programs: Sequence[T],
             allowed: Callable[[T, Names], bool] = lambda program, names: True) -> list[Names]:
    """The orderings that are allowed for a program, of one of `DEPTHS`."""
    found = [names for names in orderings(kinds, int(depth[-1])) if allowed(program, names)]
    if depth not in SOME:
        return found
    takers = {names: [taker for taker in programs if allowed(taker, names)] for names in found}
    places = {names: i for i, names in enumerate(orderings(kinds, int(depth[-1])))}
    return [names for names in found
            if (takers[names].index(program) - places[names]) % len(takers[names]) < SOME[depth]]
