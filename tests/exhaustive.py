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


#: How far to nest transformations: of depth three `make test` tries a share, which differs from program to program.
DEPTHS = ("1", "2", "some of 3", pytest.param("3", marks=pytest.mark.exhaustive))


def to_depth(kinds: Sequence[str], depth: str, program: T, programs: Sequence[T],
             allowed: Callable[[T, Names], bool] = lambda program, names: True) -> list[Names]:
    """The orderings of one of `DEPTHS` for a program that are allowed; of some, each has one of all the programs."""
    found = orderings(kinds, int(depth[-1]))
    if depth.startswith("some"):
        takers = [[taker for taker in programs if allowed(taker, names)] for names in found]
        return [names for i, names in enumerate(found) if takers[i][i % len(takers[i])] is program]
    return [names for names in found if allowed(program, names)]
