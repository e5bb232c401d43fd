"""Types of operands and results: compared, and written out in errors."""

from __future__ import annotations

from collections.abc import Sequence

from corejax.core import ShapedArray


def all_match(avals: Sequence[ShapedArray], wanted: Sequence[ShapedArray]) -> bool:
    """Whether these are as many types as wanted, each with the wanted shape and dtype."""
    return len(avals) == len(wanted) and all([a.matches(w) for a, w in zip(avals, wanted, strict=True)])


def all_fit(avals: Sequence[ShapedArray], wanted: Sequence[ShapedArray]) -> bool:
    """The same, where each may also stand for what is wanted: it varies along no more axes of a mesh."""
    return len(avals) == len(wanted) and all([a.fits(w) for a, w in zip(avals, wanted, strict=True)])


def text_of(avals: Sequence[ShapedArray], none: str = "nothing") -> str:
    """The types, for an error; `none` says that there are none."""
    return ", ".join(map(str, avals)) or none
