"""Params that say which part of a decomposition to compute, and by which algorithm."""

from __future__ import annotations

from enum import Enum
from typing import Any, TypeVar

from corejax.errors import CorejaxNotImplementedError, CorejaxTypeError, CorejaxValueError
from corejax.plugin import refused

Choice = TypeVar("Choice", bound=Enum)


def check_choice(name: str, what: str, value: Any, choices: type[Choice]) -> None:
    """Raise unless the value is None, or a member of the enumeration."""
    if value is None or isinstance(value, choices):
        return
    members = ", ".join([str(choice) for choice in choices])
    raise refused(name, f"{what} must be a member of {choices.__name__}", got=f"{what}={value!r}",
                  wanted=f"None, or one of {members}", kind=CorejaxTypeError,
                  todo=f"write it with its class: {what}=lax.linalg.{next(iter(choices))}")


def canonical_subset(name: str, subset: Any) -> tuple[int, int] | None:
    """A param `subset_by_index` as a pair of integers, or None."""
    if subset is None:
        return None
    try:
        start, end = subset
        return start.__index__(), end.__index__()
    except (TypeError, ValueError, AttributeError):
        raise refused(name, "subset_by_index must be a pair of integers", got=f"subset_by_index={subset!r}",
                      wanted="None, or (start, end)", kind=CorejaxTypeError,
                      todo="write integers, which must be static: subset_by_index=(0, 3)") from None


def check_subset(name: str, subset: Any, size: int, what: str) -> None:
    """Raise unless a subset is the whole: no platform computes a part alone."""
    if canonical_subset(name, subset) in (None, (0, size)):
        return
    start, end = subset
    if not 0 <= start <= end <= size:
        raise refused(name, f"subset_by_index is out of range, as there are {size} {what}",
                      got=f"subset_by_index={subset}", wanted=f"(start, end) with 0 <= start <= end <= {size}",
                      kind=CorejaxValueError, todo="leave it out for all of them")
    raise refused(name, f"part of the {what} can't be computed alone: only TPUs have a way to, and they aren't served",
                  got=f"subset_by_index={subset}", wanted=f"None, or (0, {size})", kind=CorejaxNotImplementedError,
                  todo=f"compute all of them, and take the part: [..., {start}:{end}]")
