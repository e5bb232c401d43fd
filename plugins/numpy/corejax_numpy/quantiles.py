"""Medians, quantiles and percentiles: elements at a share of the way through the sorted ones, from one sort."""

# mypy: no-warn-return-any
# What roles return has no type that a checker knows.

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from corejax import lax
from corejax.core import Array, ArrayLike, aval_of, dtypes, is_concrete
from corejax.errors import CorejaxIndexError, CorejaxValueError
from corejax.plugin import directly, operators, refused, shaping
from corejax_numpy._arrays import array, no_out
from corejax_numpy._choices import along_last, as_inexact, canonical_axes, with_nan
from corejax_numpy._in_memory import order as in_memory_order
from corejax_numpy._values import spread_to

__all__ = ["median", "percentile", "quantile"]

Axes: TypeAlias = int | Sequence[int] | None

#: Methods that interpolate at n q + a + q (1 - a - b) - 1 of the places from 0, with a and b.
_CONTINUOUS = {"linear": (1.0, 1.0), "interpolated_inverted_cdf": (0.0, 1.0), "hazen": (0.5, 0.5),
               "weibull": (0.0, 0.0),
               "median_unbiased": (1 / 3, 1 / 3), "normal_unbiased": (3 / 8, 3 / 8)}
_METHODS = (*_CONTINUOUS, "lower", "higher", "midpoint", "nearest", "inverted_cdf", "averaged_inverted_cdf",
            "closest_observation")


@directly(in_memory_order.median)
def median(a: ArrayLike, axis: Axes = None, out: None = None, overwrite_input: bool = False,
           keepdims: bool = False) -> Array:
    """The middle element along axes, or the mean of the middle two; NaN if there is one.

    >>> jnp.median(jnp.array([5.0, 1.0, 3.0, 2.0]))
    Array(2.5, dtype=float64)
    """
    no_out("median", out)
    return at_shares("median", a, 0.5, axis, "linear", keepdims)


@directly(in_memory_order.quantile, arrays=2)
def quantile(a: ArrayLike, q: ArrayLike, axis: Axes = None, out: None = None, overwrite_input: bool = False,
             method: str = "linear", keepdims: bool = False, *, weights: ArrayLike | None = None,
             out_sharding: None = None) -> Array:
    """What a share `q` of the elements along axes is below, by one of NumPy's methods; NaN if there is one.

    >>> jnp.quantile(jnp.array([1.0, 2.0, 3.0, 5.0]), jnp.array([0.5, 0.75]))
    Array([2.5, 3.5], dtype=float64)
    """
    no_out("quantile", out)
    no_sharding("quantile", out_sharding)
    return at_shares("quantile", a, q, axis, method, keepdims, weights)


@directly(in_memory_order.percentile, arrays=2)
def percentile(a: ArrayLike, q: ArrayLike, axis: Axes = None, out: None = None, overwrite_input: bool = False,
               method: str = "linear", keepdims: bool = False, *, weights: ArrayLike | None = None,
               out_sharding: None = None) -> Array:
    """What `q` percent of the elements along axes are below, by one of NumPy's methods; NaN if there is one.

    >>> jnp.percentile(jnp.array([1.0, 2.0, 3.0, 5.0]), 75)
    Array(3.5, dtype=float64)
    """
    no_out("percentile", out)
    no_sharding("percentile", out_sharding)
    return at_shares("percentile", a, percent("percentile", q), axis, method, keepdims, weights)


def no_sharding(name: str, out_sharding: Any) -> None:
    """Refuse a sharding of the result."""
    if out_sharding is not None:
        raise refused(name, "the sharding of the result can't be chosen here", got="out_sharding=...",
                      wanted="out_sharding=None", todo="put the result where you want it: cj.device_put(x, sharding)")


def percent(name: str, q: Any) -> Any:
    """Shares for numbers of percent."""
    if type(q) in dtypes.PYTHON_SCALARS:
        return q / 100.0
    return np.true_divide(_numbers(name, q), 100.0) if is_concrete(q) or isinstance(q, (list, tuple)) and \
        is_concrete(array(q)) else array(q) / 100.0


def _numbers(name: str, q: Any) -> np.ndarray:
    found = np.asarray(array(q))
    if found.dtype.kind not in "biuf" and not dtypes.is_float(found.dtype):
        raise refused(name, "shares must be real numbers", got=str(found.dtype), wanted="numbers from 0 to 1",
                      todo="convert them first")
    return found


# How they are found

class Places(NamedTuple):
    """The places of two neighbours among sorted elements, and the weight of the second."""

    below: Any
    above: Any
    share: Any


def at_shares(name: str, a: Any, q: Any, axis: Axes, method: str, keepdims: bool, weights: Any = None,
              ignore_nan: bool = False) -> Any:
    """Quantiles along axes, for `q` that is static or computed."""
    x, keepdims = array(a), shaping.as_flag(name, "keepdims", keepdims)
    if method not in _METHODS:
        raise refused(name, "there is no such method", got=f"method={method!r}", kind=CorejaxValueError,
                      wanted=f"one of: {', '.join(_METHODS)}", todo="leave it out: it is 'linear'")
    if dtypes.is_complex(aval_of(x).dtype):
        raise refused(name, "complex numbers have no quantiles", got=str(aval_of(x)), wanted="real numbers",
                      todo="take those of the real and imaginary parts, or of the absolute values")
    x, q = _in_one_dtype(name, as_inexact(x), q)
    axes = canonical_axes(name, axis, aval_of(x).ndim)
    rows, kept = along_last(x, axes)
    q_shape = q.shape if isinstance(q, np.ndarray) else aval_of(q).shape
    if not aval_of(rows).shape[-1]:
        if name in ("quantile", "percentile"):  # NumPy refuses these, and gives NaN for the others
            raise refused(name, "no elements have none in the middle", got=str(aval_of(x)), kind=CorejaxIndexError,
                          wanted="a positive size along the axes", todo="test the shape, which is static, first")
        found = lax.full((*kept, *q_shape), np.nan, aval_of(rows).dtype)
    elif weights is None:
        found = _unweighted(rows, q, method, ignore_nan)
    else:
        found = _weighted(name, rows, q, method, _weights_in_rows(name, weights, x, axes), ignore_nan)
    ndim = len(kept)
    if q_shape:
        found = lax.transpose(found, (*range(ndim, ndim + len(q_shape)), *range(ndim)))
    if not keepdims:
        return found
    return lax.reshape(found, (*q_shape, *[1 if d in axes else n for d, n in enumerate(aval_of(x).shape)]))


def _in_one_dtype(name: str, x: Any, q: Any) -> tuple[Any, Any]:
    """The elements in the dtype of the result, and the shares: an ndarray of doubles if they are known."""
    aval, of_q = aval_of(x), aval_of(q if type(q) in dtypes.PYTHON_SCALARS else array(q))
    if dtypes.is_complex(of_q.dtype):
        raise refused(name, "shares must be real numbers", got=str(of_q), wanted="numbers from 0 to 1",
                      todo="convert them first")
    dtype, _ = dtypes.promote((aval.dtype, aval.weak_type), (dtypes.inexact(of_q.dtype, of_q.weak_type),
                                                             of_q.weak_type))
    x = x if aval.dtype == dtype else lax.convert_element_type(x, dtype)
    if not (type(q) in dtypes.PYTHON_SCALARS or is_concrete(array(q))):
        return x, operators.astype(array(q), dtype)
    shares = _numbers(name, q).astype(np.float64)
    if not np.all((shares >= 0.0) & (shares <= 1.0)):
        raise refused(name, "a share is out of range", got=shares.tolist(), kind=CorejaxValueError,
                      wanted="numbers from 0 to 1, or 0% to 100%", todo="quantile takes 0.25 where percentile takes 25")
    return x, shares


def _unweighted(rows: Any, q: Any, method: str, ignore_nan: bool) -> Any:
    """The quantiles of each row, in the shape of the other axes and then of `q`."""
    rising = lax.sort(rows)
    kept, size = aval_of(rows).shape[:-1], aval_of(rows).shape[-1]
    if not ignore_nan:
        found = _between(rising, _places(q, size, method), per_row=False)
        last = lax.index_in_dim(rising, size - 1, axis=-1, keepdims=False)
        return with_nan(_beside(lax.ne(last, last), aval_of(found).shape), found)
    dtype = aval_of(rows).dtype
    wide = dtypes.float32 if dtype.itemsize < 4 else dtype
    count = operators.sum(lax.convert_element_type(lax.eq(rows, rows), wide), -1)
    shape = (*kept, *q.shape)
    shares = spread_to(array(q.astype(wide)) if isinstance(q, np.ndarray) else lax.convert_element_type(q, wide), shape)
    count = _beside(count, shape)
    found = _between(rising, _places(shares, lax.max(count, lax.full_like(count, 1)), method), per_row=True)
    return with_nan(lax.eq(count, lax.full_like(count, 0)), found)


def _beside(x: Any, shape: tuple[int, ...]) -> Any:
    """A value for each row, for each share as well."""
    return lax.broadcast_in_dim(x, shape, tuple(range(aval_of(x).ndim)))


def _places(q: Any, n: Any, method: str) -> Places:
    """Where the quantiles of n sorted elements are: by NumPy if both are known."""
    static = isinstance(q, np.ndarray)
    floor, ceil = (np.floor, np.ceil) if static else (lax.floor, lax.ceil)
    where: Any = np.where if static else _chosen
    if method in _CONTINUOUS:
        a, b = _CONTINUOUS[method]
        at = q * (n - 1) if method == "linear" else q * n + (q * (1.0 - a - b) + (a - 1.0))
        at = _within(at, n, static)
        return Places(floor(at), _within(floor(at) + 1, n, static), at - floor(at))
    at = q * (n - 1) if method in ("lower", "higher", "midpoint", "nearest") else q * n - 1
    if method == "closest_observation":
        at = at - 0.5
    low = floor(at)
    if method in ("midpoint", "averaged_inverted_cdf"):
        share = where(at == low, 0.0, 0.5) if method == "midpoint" else where(at == low, 0.5, 1.0)
        return Places(_within(low, n, static), _within(low + 1, n, static), share)
    exact = at == low
    if method == "closest_observation":
        exact = exact & (low - 2 * floor(low / 2) == 1)
    chosen = {"lower": lambda: low, "higher": lambda: ceil(at), "nearest": lambda: _rounded(at, static)}.get(
        method, lambda: where(exact, low, low + 1))()
    chosen = _within(chosen, n, static)
    return Places(chosen, chosen, chosen * 0)


def _chosen(mask: Any, x: Any, y: Any) -> Any:
    shape, dtype = aval_of(mask).shape, aval_of(x).dtype if hasattr(x, "aval") else dtypes.default_dtype("f")
    return lax.select(mask, *[v if hasattr(v, "aval") else lax.full(shape, v, dtype) for v in (x, y)])


def _rounded(x: Any, static: bool) -> Any:
    return np.rint(x) if static else lax.round(x, lax.RoundingMethod.TO_NEAREST_EVEN)


def _within(at: Any, n: Any, static: bool) -> Any:
    """A place among n, in floats."""
    if static:
        return np.clip(at, 0, n - 1)
    return operators.clip(at, 0, n - 1)


def _between(rising: Any, places: Places, per_row: bool) -> Any:
    """Elements between neighbours along the last axis."""
    below, above, share = places
    low = _at(rising, below, per_row)
    if isinstance(share, np.ndarray) and not np.any(share):
        return low
    high, dtype = _at(rising, above, per_row), aval_of(low).dtype
    shape = aval_of(low).shape
    weights = spread_to(share.astype(dtype) if isinstance(share, np.ndarray) else
                        lax.convert_element_type(share, dtype), shape)
    mixed = lax.add(lax.mul(low, 1 - weights), lax.mul(high, weights))
    if isinstance(share, np.ndarray) and np.all(share):
        return mixed
    return lax.select(spread_to(share == 0, shape), low, mixed)  # infinity times zero


def _at(rising: Any, places: Any, per_row: bool) -> Any:
    """Elements along the last axis: at the same places in each row, or at places for each row."""
    if isinstance(places, np.ndarray):
        return operators.getitem(rising, (..., int(places) if not places.ndim else places.astype(np.int64)))
    kept = aval_of(rising).shape[:-1]
    shape = aval_of(places).shape
    at = lax.convert_element_type(places, np.int64)
    if not per_row or not kept:
        return operators.getitem(rising, (..., at))
    rows = [np.arange(n).reshape((n,) + (1,) * (len(shape) - d - 1)) for d, n in enumerate(kept)]
    return operators.getitem(rising, (*rows, at))


# With weights

def _weights_in_rows(name: str, weights: Any, x: Any, axes: tuple[int, ...]) -> Any:
    weights = array(weights)
    shape, own = aval_of(x).shape, aval_of(weights).shape
    if own != shape:
        if own != tuple([shape[d] for d in axes]):
            raise refused(name, "the weights don't fit", got=f"{aval_of(x)} and {aval_of(weights)}",
                          wanted="weights of the same shape, or of the shape of the axes", kind=CorejaxValueError,
                          todo="name the axis that they are along")
        order = tuple(sorted(range(len(axes)), key=lambda k: axes[k]))
        sizes = tuple([n if d in axes else 1 for d, n in enumerate(shape)])
        weights = spread_to(lax.reshape(lax.transpose(weights, order), sizes), shape)
    return along_last(operators.astype(weights, aval_of(x).dtype), axes)[0]


def _weighted(name: str, rows: Any, q: Any, method: str, weights: Any, ignore_nan: bool) -> Any:
    """The first element with at least a share `q` of the weights up to it."""
    if method != "inverted_cdf":
        raise refused(name, "weights have a meaning for one method only", got=f"method={method!r}",
                      wanted="method='inverted_cdf'", todo="pass that method", kind=CorejaxValueError)
    missing = lax.ne(rows, rows)
    if ignore_nan:
        weights = lax.select(missing, lax.full_like(weights, 0), weights)
    rising, beside = lax.sort((rows, weights), -1, num_keys=1)
    ndim, size = aval_of(rows).ndim, aval_of(rows).shape[-1]
    so_far = lax.cumsum(beside, ndim - 1)
    shares = so_far / lax.slice_in_dim(so_far, size - 1, size, axis=-1)
    shares = lax.select(lax.eq(so_far, lax.full_like(so_far, 0)), lax.full_like(shares, -1), shares)
    q = q.astype(aval_of(shares).dtype) if isinstance(q, np.ndarray) else q
    before = operators.lt(operators.reshape(shares, (*aval_of(shares).shape[:-1], *[1] * q.ndim, size)), q[..., None])
    places = operators.sum(lax.convert_element_type(before, np.int64), -1)
    found = _at(rising, operators.clip(places, 0, size - 1), per_row=True)
    unknown = operators.all(missing, -1) if ignore_nan else operators.any(missing, -1)
    return with_nan(_beside(unknown, aval_of(found).shape), found)
