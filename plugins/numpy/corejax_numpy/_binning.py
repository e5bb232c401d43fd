"""Bins: their bounds, the bin of each element, and how many are in each."""

# mypy: no-warn-return-any
# What roles return has no type that a checker knows.

from __future__ import annotations

from typing import Any

import numpy as np

from corejax import lax
from corejax.core import aval_of, dtypes, is_concrete
from corejax.errors import CorejaxTypeError, CorejaxValueError
from corejax.plugin import operators, refused, shaping
from corejax_numpy._arrays import array
from corejax_numpy._choices import as_inexact, is_computed, known
from corejax_numpy._searching import places_among
from corejax_numpy._values import constant

__all__ = ["bin_of", "counted", "edges_of"]


def edges_of(name: str, x: Any, bins: Any, between: Any, weights: Any) -> Any:
    """The bounds: given ones, or those of equal bins."""
    if isinstance(bins, str):
        if weights is not None:
            raise refused(name, "bins can't be estimated from weighted elements", got=f"bins={bins!r}",
                          wanted="a number of bins", todo="pass one", kind=CorejaxTypeError)
        return _by_rule(name, x, bins, between)
    if is_computed(bins) and aval_of(bins).ndim or not is_computed(bins) and np.ndim(bins):
        given = array(bins)
        if aval_of(given).ndim != 1:
            raise refused(name, "bounds must be a vector", got=str(aval_of(given)), wanted="one axis",
                          todo="pass a number of bins, or their bounds", kind=CorejaxValueError)
        if is_concrete(given) and not np.all(np.diff(known(name, given)) >= 0):
            raise refused(name, "bounds must rise", got=str(known(name, given))[:60], wanted="rising numbers",
                          todo="sort them", kind=CorejaxValueError)
        return given
    count = shaping.as_int(name, "bins", bins)
    if count < 1:
        raise refused(name, "there must be a bin", got=f"bins={count}", wanted="1 or more", todo="pass more",
                      kind=CorejaxValueError)
    x = as_inexact(x)
    return _equal(*_ends(name, x, between), count, operators.real(x).dtype)


def _by_rule(name: str, x: Any, rule: str, between: Any) -> Any:
    values = known(name, x, "pass the number of bins: a rule by name needs the elements")
    try:
        found = np.histogram_bin_edges(values, rule, between)
    except (ValueError, TypeError) as error:
        raise refused(name, f"NumPy can't use this rule: {error}", got=f"bins={rule!r}", wanted="a number of bins",
                      todo="pass one", kind=CorejaxValueError) from error
    return array(found)


def _ends(name: str, x: Any, between: Any) -> tuple[Any, Any]:
    dtype = aval_of(x).dtype
    if between is not None:
        ends = list(between) if not is_computed(between) else [between[0], between[1]]
        if len(ends) != 2:
            raise refused(name, "a range has two ends", got=f"{len(ends)} numbers", wanted="(least, largest)",
                          todo="pass two numbers", kind=CorejaxValueError)
        if all([is_concrete(end) for end in ends]) and not float(ends[0]) <= float(ends[1]):
            raise refused(name, "the ends of the range are in the wrong order", got=str(between)[:60],
                          wanted="(least, largest)", todo="exchange them", kind=CorejaxValueError)
        low, high = [constant(name, end, dtype) for end in ends]
    elif aval_of(x).size:
        low, high = operators.min(x), operators.max(x)
    else:
        low, high = lax.full((), 0, dtype), lax.full((), 1, dtype)
    same = lax.eq(low, high)
    half = lax.full_like(low, 0.5)
    return lax.select(same, low - half, low), lax.select(same, high + half, high)


def _equal(low: Any, high: Any, count: int, dtype: np.dtype) -> Any:
    """Bounds of equal bins, exact at both ends."""
    steps = np.arange(count + 1).astype(dtype)
    line = (high - low) / float(count) * steps + low
    return operators.at(line)[count].set(high)


def bin_of(x: Any, edges: Any, equal: int) -> Any:
    """The bin of each element; as many as there are bins for elements that are in none.

    For that many equal bins, one is computed, and corrected by comparing with its bounds.
    """
    count = aval_of(edges).size - 1
    low, high = operators.getitem(edges, 0), operators.getitem(edges, count)
    x, edges = lax.stop_gradient(x), lax.stop_gradient(edges)
    if equal:
        scaled = (x - low) * (float(count) / (high - low))
        near = operators.astype(operators.clip(scaled, 0, count - 1), np.int32)
        near = near - operators.astype((x < edges[near]) & (near > 0), np.int32)
        found = near + operators.astype((x >= edges[near + 1]) & (near < count - 1), np.int32)
    else:
        found = places_among(edges, x, before_equal=False) - 1
        found = operators.clip(found, 0, count - 1)
    inside = (x >= low) & (x <= high)
    return lax.select(inside, found, lax.full_like(found, count))


def counted(places: Any, weights: Any, size: int) -> Any:
    """The sum of the weights of elements at each place, or their number; those beyond are left out."""
    dtype = dtypes.default_dtype("i") if weights is None else aval_of(weights).dtype
    if dtype == dtypes.bool_:
        weights, dtype = operators.astype(weights, dtypes.default_dtype("i")), dtypes.default_dtype("i")
    empty = lax.full((size,), 0, dtype)
    if not size or not aval_of(places).size:
        return empty
    return operators.at(empty)[places].add(1 if weights is None else weights, mode="drop")
