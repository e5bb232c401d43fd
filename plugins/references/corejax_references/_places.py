"""Where in an array something is read or written."""

from __future__ import annotations

from typing import Any, NamedTuple

from corejax.core import ShapedArray, aval_of, stage

__all__ = ["Place"]


class Place(NamedTuple):
    """A part of an array: one index, then another one into what that gives, ..."""

    indices: tuple[Any, ...]

    def of(self, x: Any) -> Any:
        """The part."""
        for index in self.indices:
            if index is not ...:
                x = x[index]
        return x

    def put(self, x: Any, part: Any) -> Any:
        """The array with another part."""
        first, *rest = self.indices
        return x.at[first].set(Place(tuple(rest)).put(x[first], part) if rest else part)

    def plus(self, x: Any, more: Any) -> Any:
        """The array with something added to the part."""
        first, *rest = self.indices
        if not rest:
            return x.at[first].add(more)
        return x.at[first].set(Place(tuple(rest)).plus(x[first], more))

    def shape_in(self, aval: ShapedArray) -> tuple[int, ...]:
        """The part's shape, in an array of this type."""
        shape: tuple[int, ...] = stage(lambda x: [self.of(x)], [aval]).out_avals[0].shape
        return shape

    def is_whole(self, aval: ShapedArray, x: Any) -> bool:
        """Whether the part is all of an array of this type, and `x` has its shape."""
        return all([index is ... for index in self.indices]) and aval_of(x).shape == aval.shape
