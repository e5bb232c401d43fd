"""What this pack provides for NumPy functions called with traced values.

`np.sort` and `np.argsort` call the array methods, without a table.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from corejax import lax
from corejax.core import aval_of, dtypes, from_array_like
from corejax.plugin import operators, refused, shaping

__all__ = ["numpy_function"]

_METHODS = ("linear", "lower", "higher", "midpoint", "nearest")


def lexsort(keys: Any, axis: int = -1) -> Any:
    """`np.lexsort`: the places in the order of the last key, then of the one before it."""
    keys = [from_array_like(key) for key in keys]
    if not keys:
        raise refused("lexsort", "there is no key", got="an empty sequence", wanted="at least one key",
                      todo="pass a sequence of arrays; the last is the primary key")
    aval = aval_of(keys[0])
    at = shaping.canonical_axis("lexsort", axis, aval.ndim)
    places = lax.broadcasted_iota(dtypes.default_dtype("i"), aval.shape, at)
    return lax.sort((*reversed(keys), places), at, num_keys=len(keys))[-1]


def median(a: Any, axis: Any = None, *, keepdims: bool = False) -> Any:
    """`np.median`: the middle element along axes, or the mean of the middle two; NaN if there is one."""
    return quantile(a, 0.5, axis, keepdims=keepdims, _name="median")


def percentile(a: Any, q: Any, axis: Any = None, *, method: str = "linear", keepdims: bool = False) -> Any:
    """`np.percentile`, by the methods that `quantile` has."""
    return quantile(a, np.true_divide(_static("percentile", q), 100.0), axis, method=method, keepdims=keepdims,
                    _name="percentile")


def quantile(a: Any, q: Any, axis: Any = None, *, method: str = "linear", keepdims: bool = False,
             _name: str = "quantile") -> Any:
    """`np.quantile` for static `q`, by linear interpolation, or the element below or above, or the nearest."""
    a, q = from_array_like(a), np.asarray(_static(_name, q), float)
    if method not in _METHODS:
        raise refused(_name, "there is no such method", got=f"method={method!r}",
                      wanted=f"one of: {', '.join(_METHODS)}", todo="leave it out: it is 'linear'")
    if not np.all((q >= 0.0) & (q <= 1.0)):
        raise refused(_name, "a share is out of range", got=q.tolist(), wanted="numbers from 0 to 1, or 0% to 100%",
                      todo="np.quantile takes 0.25 where np.percentile takes 25")
    ndim, keepdims = aval_of(a).ndim, shaping.as_flag(_name, "keepdims", keepdims)
    axes = tuple(range(ndim)) if axis is None else shaping.canonical_axes(_name, axis, ndim)
    rows, kept = _in_rows(a, axes)
    if not dtypes.is_float(aval_of(rows).dtype):
        rows = lax.convert_element_type(rows, dtypes.default_dtype("f"))
    size = aval_of(rows).shape[-1]
    if not size:
        raise refused(_name, "no elements have none in the middle", got=str(aval_of(a)),
                      wanted="a positive size along the axes", todo="test the shape, which is static, first")
    rising = lax.sort(rows)
    found = _between(rising, np.ravel(q) * (size - 1), method)
    is_nan = lax.ne(rising, rising)
    last = lax.broadcast_in_dim(lax.slice_in_dim(is_nan, size - 1, size, axis=-1), aval_of(found).shape,
                                tuple(range(aval_of(found).ndim)))
    found = lax.select(last, lax.full_like(found, np.nan), found)
    shape = tuple([1 if d in axes else n for d, n in enumerate(aval_of(a).shape)]) if keepdims else kept
    return lax.reshape(lax.transpose(found, (len(kept), *range(len(kept)))), (*q.shape, *shape))


def _static(name: str, q: Any) -> Any:
    try:
        return np.asarray(q, float)
    except (TypeError, ValueError) as error:
        raise refused(name, "the shares must be known", got=repr(q), wanted="numbers that aren't traced",
                      todo="close over them, or mark them static") from error


def _in_rows(a: Any, axes: tuple[int, ...]) -> tuple[Any, tuple[int, ...]]:
    """The array with the axes moved to the end and joined, and the shape of the others."""
    shape = aval_of(a).shape
    others = [d for d in range(len(shape)) if d not in axes]
    kept = tuple([shape[d] for d in others])
    size = int(np.prod([shape[d] for d in axes]))
    return lax.reshape(lax.transpose(a, (*others, *axes)), (*kept, size)), kept


def _between(rising: Any, at: np.ndarray, method: str) -> Any:
    """Elements at fractional places along the last axis."""
    below, above = np.floor(at), np.ceil(at)
    if method == "nearest":
        return _at(rising, np.rint(at))
    if method in ("lower", "higher"):
        return _at(rising, below if method == "lower" else above)
    low, high = _at(rising, below), _at(rising, above)
    share = np.where(below == above, 0.0, 0.5) if method == "midpoint" else at - below
    shape, dtype = aval_of(low).shape, aval_of(low).dtype
    weights = np.broadcast_to(share.astype(dtype), shape)
    # exact where both are equal or infinite
    return lax.select(lax.eq(low, high), low, lax.add(lax.mul(low, 1 - weights), lax.mul(high, weights)))


def _at(rising: Any, places: np.ndarray) -> Any:
    return operators.getitem(rising, (..., places.astype(int)))


# The table

numpy_function: dict[Any, Callable[..., Any]] = {
    np.lexsort: lexsort, np.median: median, np.percentile: percentile, np.quantile: quantile,
}
