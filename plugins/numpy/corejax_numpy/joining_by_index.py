"""`r_` and `c_`: arrays, numbers and slices joined by what looks like an index."""

# mypy: no-warn-return-any

from __future__ import annotations

from typing import Any

from corejax import lax
from corejax.errors import CorejaxValueError
from corejax.plugin import operators, public, refused
from corejax_lax_basic import of_one_dtype
from corejax_numpy._arrays import array
from corejax_numpy.ranges import along

__all__ = ["c_", "r_"]


class _Joined:
    """Joins what it is indexed with: arrays, numbers, and slices, which stand for `arange` or `linspace`.

    A text before these has up to three numbers: the axis along which to join; the least number of axes; and where the
    axes of an array with fewer go, -1 for last. Or it is "r" or "c": a vector then becomes a row or a column.
    """

    def __init__(self, name: str, axis: int, least: int, first: int) -> None:
        self._name, self._layout = name, (axis, least, first)

    @public
    def __getitem__(self, key: Any) -> Any:
        parts, (axis, least, first) = list(key) if isinstance(key, tuple) else [key], self._layout
        matrix = parts.pop(0) if parts and isinstance(parts[0], str) and parts[0] in ("r", "c") else ""
        if parts and isinstance(parts[0], str):
            axis, least, first = self._asked(parts.pop(0))
        if not parts:
            raise refused(self._name, "there is nothing to join", got="no arrays", wanted="at least one array or slice",
                          todo=f"write jnp.{self._name}[1:3, 5]", kind=CorejaxValueError)
        joined = lax.concatenate(of_one_dtype([self._with_axes(part, least, first) for part in parts]), axis)
        return lax.expand_dims(joined, (0 if matrix == "r" else 1,)) if matrix and joined.ndim == 1 else joined

    def _asked(self, text: str) -> tuple[int, int, int]:
        try:
            numbers = [int(number) for number in text.split(",")]
            axis, least, first = (*numbers, *self._layout[len(numbers):])
            return axis, least, first
        except ValueError as error:
            raise refused(self._name, "the text doesn't say how to join", got=repr(text), kind=CorejaxValueError,
                          wanted="'axis', 'axis,ndim' or 'axis,ndim,start', in integers; or 'r' or 'c'",
                          todo="leave it out, or use jnp.stack") from error

    def _with_axes(self, part: Any, least: int, first: int) -> Any:
        """A part as an array with at least so many axes."""
        if isinstance(part, str):
            raise refused(self._name, "a text may only come first", got=repr(part),
                          wanted="an array, a number, a slice",
                          todo="move it to the front", kind=CorejaxValueError)
        if isinstance(part, slice):
            part = along(self._name, part)
        x = array(part)
        missing = least - x.ndim
        if missing <= 0:
            return x
        before = missing if first == -1 else min(first, missing) if first >= 0 else max(missing + first + 1, 0)
        return operators.reshape(x, (*[1] * before, *x.shape, *[1] * (missing - before)))

    def __repr__(self) -> str:
        return f"jnp.{self._name}"


r_ = _Joined("r_", 0, 1, -1)
c_ = _Joined("c_", -1, 2, 0)
