"""Axes split in two, and two merged into one."""

from __future__ import annotations

from typing import Any

from corejax import lax
from corejax.core import aval_of


def split(x: Any, axis: int, count: int) -> Any:
    """An axis in `count` equal parts: as two axes, of which the first says which part."""
    shape = aval_of(x).shape
    return lax.reshape(x, (*shape[:axis], count, shape[axis] // count, *shape[axis + 1:]))


def merged(x: Any, source: int, into: int) -> Any:
    """The axis `source` merged into another, as the slower one; `into` is counted without `source`."""
    shape = aval_of(x).shape
    order = [d for d in range(len(shape)) if d != source]
    rest = [shape[d] for d in order]
    order.insert(into, source)
    if order != [*range(len(shape))]:
        x = lax.transpose(x, order)
    return lax.reshape(x, (*rest[:into], shape[source] * rest[into], *rest[into + 1:]))
