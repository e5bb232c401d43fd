"""The places where a mask holds: as many as there are, or a static number of them."""

# mypy: no-warn-return-any
# What roles return has no type that a checker knows.

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from corejax import lax
from corejax.core import aval_of, dtypes
from corejax.plugin import operators
from corejax_numpy._searching import places_among

__all__ = ["count_of", "first_places", "unraveled"]


def count_of(mask: Any) -> Any:
    """How many elements of a vector of booleans hold."""
    return lax.reduce_sum(lax.convert_element_type(mask, dtypes.default_dtype("i")), (0,))


def first_places(mask: Any, size: int, fill: Any) -> Any:
    """The first `size` places at which a vector of booleans holds; `fill` where there are no more.

    The k-th place is the first at which k elements hold so far: running counts rise, so bisection finds it.
    """
    dtype = dtypes.default_dtype("i")
    length = aval_of(mask).size
    if not length:
        return lax.full((size,), 0, dtype) + fill
    so_far = lax.cumsum(lax.convert_element_type(mask, np.int32 if length < np.iinfo(np.int32).max else np.int64), 0)
    number = lax.iota(aval_of(so_far).dtype, size)
    found = lax.convert_element_type(places_among(so_far, number + 1, before_equal=True), dtype)
    return lax.select(lax.ge(found, lax.full_like(found, length)), lax.full_like(found, 0) + fill, found)


def unraveled(places: Any, shape: Sequence[int]) -> tuple[Any, ...]:
    """Places in the flattened array as places along each axis."""
    found: list[Any] = []
    for size in reversed(shape):
        divisor = max(size, 1)
        found.append(operators.mod(places, divisor))
        places = operators.floordiv(places, divisor)
    return tuple(reversed(found))
