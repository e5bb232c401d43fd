"""Arrays cut into parts."""

# mypy: no-warn-return-any

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from corejax import lax
from corejax.core import Array
from corejax.errors import CorejaxValueError
from corejax.plugin import directly, refused, shaping
from corejax_numpy._arrays import array
from corejax_numpy._asked import static

__all__ = ["array_split", "dsplit", "hsplit", "split", "vsplit"]


def _cuts(name: str, size: int, where: Any, equal: bool) -> list[tuple[int, int]]:
    """The bounds of each part along an axis of this size."""
    if np.ndim(where):
        places = [0, *shaping.as_ints(name, "an index", tuple([static(name, "an index", i) for i in where])), size]
        bounds = [slice(a, b).indices(size)[:2] for a, b in zip(places, [*places[1:-1], None], strict=False)]
        return [(start, max(start, stop)) for start, stop in bounds]
    count = shaping.as_int(name, "a number of parts", where)
    if count <= 0:
        raise refused(name, "there can't be so many parts", got=count, wanted="at least 1", kind=CorejaxValueError,
                      todo="pass a positive number, or the indices at which to cut")
    if equal and size % count:
        raise refused(name, "the parts would differ in size", got=f"{size} into {count}", kind=CorejaxValueError,
                      wanted="parts of equal size",
                      todo="use jnp.array_split, or pass the indices at which to cut")
    each, more = divmod(size, count)
    ends = [each * i + min(i, more) for i in range(count + 1)]
    return list(zip(ends, ends[1:], strict=False))


def _split(name: str, ary: Any, where: Any, axis: int, equal: bool = True) -> list[Array]:
    ary = array(ary)
    at = shaping.canonical_axis(name, axis, ary.ndim)
    bounds = _cuts(name, ary.shape[at], where, equal)
    sizes = tuple([stop - start for start, stop in bounds])
    if all([start == end for (start, _), (_, end) in zip(bounds[1:], bounds, strict=False)]):
        return lax.split(ary, sizes, at)
    return [lax.slice_in_dim(ary, start, stop, axis=at) for start, stop in bounds]


@directly(lambda ary, where, axis=0: np.split(ary, where, axis))
def split(ary: Any, indices_or_sections: int | Sequence[int], axis: int = 0) -> list[Array]:
    """So many equal parts along an axis, or the parts between the indices that are given.

    >>> split(jnp.arange(4), 2), split(jnp.arange(4), [1])
    ([Array([0, 1], dtype=int64), Array([2, 3], dtype=int64)], [Array([0], dtype=int64), Array([1, 2, 3], dtype=int64)])
    """
    return _split("split", ary, indices_or_sections, axis)


@directly(lambda ary, where, axis=0: np.array_split(ary, where, axis))
def array_split(ary: Any, indices_or_sections: int | Sequence[int], axis: int = 0) -> list[Array]:
    """So many parts along an axis, which may differ in size by one, or the parts between the indices.

    >>> [part.tolist() for part in array_split(jnp.arange(5), 2)]
    [[0, 1, 2], [3, 4]]
    """
    return _split("array_split", ary, indices_or_sections, axis, equal=False)


@directly(np.vsplit)
def vsplit(ary: Any, indices_or_sections: int | Sequence[int]) -> list[Array]:
    """Parts along the first axis, of at least two.

    >>> [part.tolist() for part in vsplit(jnp.eye(2), 2)]
    [[[1.0, 0.0]], [[0.0, 1.0]]]
    """
    return _split("vsplit", _with_axes("vsplit", ary, 2), indices_or_sections, 0)


@directly(np.hsplit)
def hsplit(ary: Any, indices_or_sections: int | Sequence[int]) -> list[Array]:
    """Parts along the second axis, or of a vector.

    >>> [part.tolist() for part in hsplit(jnp.eye(2), 2)]
    [[[1.0], [0.0]], [[0.0], [1.0]]]
    """
    ary = _with_axes("hsplit", ary, 1)
    return _split("hsplit", ary, indices_or_sections, 1 if ary.ndim > 1 else 0)


@directly(np.dsplit)
def dsplit(ary: Any, indices_or_sections: int | Sequence[int]) -> list[Array]:
    """Parts along the third axis.

    >>> [part.shape for part in dsplit(jnp.ones((2, 3, 4)), 2)]
    [(2, 3, 2), (2, 3, 2)]
    """
    return _split("dsplit", _with_axes("dsplit", ary, 3), indices_or_sections, 2)


def _with_axes(name: str, ary: Any, least: int) -> Any:
    ary = array(ary)
    if ary.ndim < least:
        raise refused(name, f"the operand needs at least {least} axes", got=str(ary.aval),
                      wanted=f"{least} axes or more",
                      todo="use jnp.split with an axis", kind=CorejaxValueError)
    return ary
