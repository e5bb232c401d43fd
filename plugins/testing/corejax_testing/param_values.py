"""Values for params: those of samples, and others like them."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

#: How many values of a param are tried.
_MOST_VALUES = 40


def values_of(seen: Sequence[Any]) -> list[Any]:
    """Values for a param: those of samples and, for plain ones, their neighbours; none if there is no telling."""
    if not all([is_plain(value) for value in seen]):
        return []
    found: list[Any] = []
    for value in itertools.chain(seen, *map(_neighbours, seen)):
        if not any([equal(value, other) or value is other for other in found]):
            found.append(value)
    return sorted(found[:_MOST_VALUES], key=simplicity)


def is_plain(value: object) -> bool:
    """Whether it is a number, a string, a dtype, None, or a tuple of these."""
    if isinstance(value, tuple):
        return all([is_plain(part) for part in value])
    return value is None or isinstance(value, (bool, int, float, str, np.dtype))


def _neighbours(value: Any) -> Iterator[Any]:
    """Values near this one, in one number or in their order."""
    if isinstance(value, bool):
        yield not value
    elif isinstance(value, int):
        yield from (value + 1, value - 1, 0, 1, -value)
    elif isinstance(value, tuple):
        yield from (value[::-1], value[:-1])
        for place, part in enumerate(value):
            yield from [replaced(value, place, new) for new in itertools.islice(_neighbours(part), 2)]


def simplicity(value: Any) -> tuple[Any, ...]:
    """The key by which small numbers and short tuples come first."""
    if isinstance(value, tuple):
        return (2, len(value), sum([simplicity(part)[1] for part in value]), repr(value))
    if isinstance(value, (bool, int, float)):
        return (1, abs(value), value < 0, repr(value))
    return (0 if value is None else 3, 0, 0, repr(value) if is_plain(value) else "")


def equal(one: object, other: object) -> bool:
    """Whether two values are the same, or of one type and equal."""
    return one is other or (type(one) is type(other) and isinstance(one, (int, float, str, tuple)) and one == other)


def replaced(items: tuple[Any, ...], place: int, new: object) -> tuple[Any, ...]:
    """A tuple with another item in one place."""
    return (*items[:place], new, *items[place + 1:])
