"""The distinct elements of an array, a static number of them."""

# mypy: no-warn-return-any
# What roles return has no type that a checker knows.

from __future__ import annotations

from math import prod
from typing import Any, NamedTuple

import numpy as np

from corejax import lax
from corejax.core import aval_of, dtypes
from corejax.errors import CorejaxValueError
from corejax.plugin import operators, refused, shaping
from corejax_numpy._choices import flat
from corejax_numpy._finding import first_places
from corejax_numpy._values import constant, spread_to

__all__ = ["Distinct", "distinct", "repeats"]


class Distinct(NamedTuple):
    """The distinct elements, the first place of each, each element's place among them, and how often each is there."""

    values: Any
    index: Any
    inverse: Any
    counts: Any


def repeats(rising: Any, equal_nan: bool) -> Any:
    """Whether each element of a sorted vector, or row of a matrix, is the same as the one before it."""
    size = aval_of(rising).shape[0]
    if not size:
        return lax.full((0,), False)
    one, other = lax.slice_in_dim(rising, 1, size), lax.slice_in_dim(rising, 0, size - 1)
    same = lax.eq(one, other)
    if equal_nan and dtypes.is_inexact(aval_of(rising).dtype):
        same = same | (lax.ne(one, one) & lax.ne(other, other))
    if aval_of(same).ndim > 1:
        same = lax.reduce_and(same, (1,))
    return lax.concatenate([lax.full((1,), False), same], 0)


def distinct(name: str, x: Any, axis: Any, equal_nan: bool, size: int, fill_value: Any) -> Distinct:
    """The first `size` distinct elements, or parts along an axis, filled up."""
    shape = aval_of(x).shape
    kept: tuple[int, ...] = ()
    default = dtypes.default_dtype("i")
    if axis is None:
        rows, at = flat(x), 0
    else:
        at = shaping.canonical_axis(name, axis, len(shape))
        kept = (*shape[:at], *shape[at + 1:])
        moved = lax.transpose(x, (at, *[d for d in range(len(shape)) if d != at]))
        rows = lax.reshape(moved, (shape[at], prod(kept)))
    length = aval_of(rows).shape[0]
    if not length:
        return _of_nothing(name, x, size, fill_value, at, kept)
    order = _order(rows, length, default)
    rising = operators.getitem(rows, order)
    new = ~repeats(rising, equal_nan)
    bounds = first_places(new, size + 1, length)
    starts, ends = lax.slice_in_dim(bounds, 0, size), lax.slice_in_dim(bounds, 1, size + 1)
    beyond = lax.ge(starts, length)
    starts = lax.select(beyond, lax.full_like(starts, 0), starts)
    values = _filled(operators.getitem(rising, starts), beyond, fill_value, size)
    inverse = lax.cumsum(lax.convert_element_type(new, default), 0) - 1
    inverse = operators.at(lax.full_like(inverse, 0))[order].set(inverse, unique_indices=True)
    if axis is None:
        inverse = lax.reshape(inverse, shape)
    else:
        values = lax.reshape(values, (size, *kept))
        values = lax.transpose(values, (*range(1, at + 1), 0, *range(at + 1, len(shape))))
    counts = lax.select(beyond, lax.full_like(ends, 0), ends - starts)
    return Distinct(values, operators.getitem(order, starts), inverse, counts)


def _order(rows: Any, length: int, dtype: np.dtype) -> Any:
    """The places of sorted rows: by the first column, then by the next."""
    places = lax.iota(dtype, length)
    if aval_of(rows).ndim == 1:
        return lax.sort((lax.stop_gradient(rows), places), 0, num_keys=1)[1]
    columns = [lax.index_in_dim(lax.stop_gradient(rows), k, axis=1, keepdims=False)
               for k in range(aval_of(rows).shape[1])]
    return lax.sort((*columns, places), 0, num_keys=len(columns))[-1] if columns else places


def _filled(values: Any, beyond: Any, fill_value: Any, size: int) -> Any:
    if fill_value is None or not size:  # the places beyond read the first element
        return values
    shape = aval_of(values).shape
    fill = constant("unique", fill_value, aval_of(values).dtype)
    if aval_of(fill).ndim:
        fill = flat(fill)
    return lax.select(lax.broadcast_in_dim(beyond, shape, (0,)), spread_to(fill, shape), values)


def _of_nothing(name: str, x: Any, size: int, fill_value: Any, at: int, kept: tuple[int, ...]) -> Distinct:
    if size and fill_value is None:
        raise refused(name, "of no elements, there is no least to fill up with", got=f"{aval_of(x)}, size={size}",
                      wanted="a fill value", todo="pass fill_value=...", kind=CorejaxValueError)
    default = dtypes.default_dtype("i")
    values = lax.full((*kept[:at], size, *kept[at:]), fill_value or 0, aval_of(x).dtype)
    none = lax.full((size,), 0, default)
    return Distinct(values, none, lax.full((0,) if kept else aval_of(x).shape, 0, default), none)
