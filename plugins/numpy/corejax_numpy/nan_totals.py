"""Totals of the elements that aren't NaN."""

# mypy: no-warn-return-any
# What roles return has no type that a checker knows.

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

from corejax import lax
from corejax.core import Array, ArrayLike, DTypeLike, aval_of, dtypes
from corejax.errors import CorejaxValueError
from corejax.plugin import directly, operators, refused
from corejax_numpy._arrays import array, no_out
from corejax_numpy._choices import with_nan
from corejax_numpy._in_memory import nan as in_memory_nan, order as in_memory_order
from corejax_numpy.quantiles import at_shares, percent

__all__ = ["nanargmax", "nanargmin", "nancumprod", "nancumsum", "nanmax", "nanmean", "nanmedian", "nanmin",
           "nanpercentile", "nanprod", "nanquantile", "nanstd", "nansum", "nanvar"]

Axes: TypeAlias = int | Sequence[int] | None


@directly(in_memory_nan.nansum)
def nansum(a: ArrayLike, axis: Axes = None, dtype: DTypeLike | None = None, out: None = None, keepdims: bool = False,
           initial: ArrayLike | None = None, where: ArrayLike | None = None) -> Array:
    """The sum along axes of the elements that aren't NaN.

    >>> jnp.nansum(jnp.array([1.0, jnp.nan, 3.0]))
    Array(4., dtype=float64)
    """
    return operators.sum(_replaced(array(a), 0), axis, dtype, out, keepdims, initial, where)


@directly(in_memory_nan.nanprod)
def nanprod(a: ArrayLike, axis: Axes = None, dtype: DTypeLike | None = None, out: None = None, keepdims: bool = False,
            initial: ArrayLike | None = None, where: ArrayLike | None = None) -> Array:
    """The product along axes of the elements that aren't NaN.

    >>> jnp.nanprod(jnp.array([2.0, jnp.nan, 3.0]))
    Array(6., dtype=float64)
    """
    return operators.prod(_replaced(array(a), 1), axis, dtype, out, keepdims, initial, where)


def _replaced(x: Any, value: Any) -> Any:
    """The elements, with a value in place of NaN."""
    if not dtypes.is_inexact(aval_of(x).dtype):
        return x
    return lax.select(lax.ne(x, x), lax.full_like(x, value), x)


@directly(in_memory_nan.nanmax)
def nanmax(a: ArrayLike, axis: Axes = None, out: None = None, keepdims: bool = False, initial: ArrayLike | None = None,
           where: ArrayLike | None = None) -> Array:
    """The largest element along axes that isn't NaN; NaN if there is none.

    >>> jnp.nanmax(jnp.array([1.0, jnp.nan, 3.0]))
    Array(3., dtype=float64)
    """
    return _extreme(operators.max, -np.inf, a, axis, out, keepdims, initial, where)


@directly(in_memory_nan.nanmin)
def nanmin(a: ArrayLike, axis: Axes = None, out: None = None, keepdims: bool = False, initial: ArrayLike | None = None,
           where: ArrayLike | None = None) -> Array:
    """The smallest element along axes that isn't NaN; NaN if there is none.

    >>> jnp.nanmin(jnp.array([1.0, jnp.nan, 3.0]))
    Array(1., dtype=float64)
    """
    return _extreme(operators.min, np.inf, a, axis, out, keepdims, initial, where)


def _extreme(find: Any, worst: float, a: Any, axis: Axes, out: Any, keepdims: bool, initial: Any, where: Any) -> Any:
    x = array(a)
    dtype = aval_of(x).dtype
    if not dtypes.is_inexact(dtype):
        return find(x, axis, out, keepdims, initial, where)
    value = complex(worst, worst) if dtypes.is_complex(dtype) else worst
    found = find(_replaced(x, value), axis, out, keepdims, initial, where)
    if initial is not None:
        return found
    return with_nan(operators.all(lax.ne(x, x), axis, None, keepdims, where=where), found)


@directly(in_memory_nan.nanmean)
def nanmean(a: ArrayLike, axis: Axes = None, dtype: DTypeLike | None = None, out: None = None, keepdims: bool = False,
            where: ArrayLike | None = None) -> Array:
    """The mean along axes of the elements that aren't NaN; NaN if there is none.

    >>> jnp.nanmean(jnp.array([1.0, jnp.nan, 3.0]))
    Array(2., dtype=float64)
    """
    x = array(a)
    return operators.mean(x, axis, dtype, out, keepdims, where=_present(x, where))


def _present(x: Any, where: Any) -> Any:
    """Where there are elements that count: those of the mask that aren't NaN."""
    if not dtypes.is_inexact(aval_of(x).dtype):
        return where
    present = lax.eq(x, x)
    return present if where is None else present & array(where)


@directly(in_memory_nan.nanvar)
def nanvar(a: ArrayLike, axis: Axes = None, dtype: DTypeLike | None = None, out: None = None, ddof: float = 0,
           keepdims: bool = False, where: ArrayLike | None = None, mean: ArrayLike | None = None,
           correction: float | None = None) -> Array:
    """The variance along axes of the elements that aren't NaN; NaN if there are no more than `ddof`.

    >>> jnp.nanvar(jnp.array([1.0, jnp.nan, 3.0]))
    Array(1., dtype=float64)
    """
    x = array(a)
    present = _present(x, where)
    if present is None:
        return operators.var(x, axis, dtype, out, ddof, keepdims, mean=mean, correction=correction)
    if correction is not None and ddof != 0:
        raise refused("nanvar", "ddof and correction are the same thing", got=f"ddof={ddof}, correction={correction}",
                      wanted="only one of them", todo="leave out ddof", kind=CorejaxValueError)
    missing = float(ddof if correction is None else correction)
    found = operators.var(x, axis, dtype, out, 0, keepdims, where=present, mean=mean)
    if not missing:
        return found
    squares = operators.real(found)
    count = operators.sum(operators.astype(present, aval_of(squares).dtype), axis, None, None, keepdims)
    left = count - missing
    few = lax.le(left, lax.full_like(left, 0))
    factor = count / lax.select(few, lax.full_like(left, 1), left)
    return operators.astype(with_nan(few, squares * factor), found.dtype)


@directly(in_memory_nan.nanstd)
def nanstd(a: ArrayLike, axis: Axes = None, dtype: DTypeLike | None = None, out: None = None, ddof: float = 0,
           keepdims: bool = False, where: ArrayLike | None = None, mean: ArrayLike | None = None,
           correction: float | None = None) -> Array:
    """The standard deviation along axes of the elements that aren't NaN: the square root of `nanvar`.

    >>> jnp.nanstd(jnp.array([1.0, jnp.nan, 3.0]))
    Array(1., dtype=float64)
    """
    x = array(a)
    if not dtypes.is_inexact(aval_of(x).dtype):
        return operators.std(x, axis, dtype, out, ddof, keepdims, where=where, mean=mean, correction=correction)
    return lax.sqrt(nanvar(x, axis, dtype, out, ddof, keepdims, where, mean, correction))


@directly(in_memory_nan.nanargmax)
def nanargmax(a: ArrayLike, axis: int | None = None, out: None = None, keepdims: bool | None = None) -> Array:
    """The place of the largest element along an axis that isn't NaN; -1 if there is none.

    >>> jnp.nanargmax(jnp.array([1.0, jnp.nan, 3.0]))
    Array(2, dtype=int64)
    """
    return _position(operators.argmax, -np.inf, a, axis, out, keepdims)


@directly(in_memory_nan.nanargmin)
def nanargmin(a: ArrayLike, axis: int | None = None, out: None = None, keepdims: bool | None = None) -> Array:
    """The place of the smallest element along an axis that isn't NaN; -1 if there is none.

    >>> jnp.nanargmin(jnp.array([jnp.nan, 3.0, 1.0]))
    Array(2, dtype=int64)
    """
    return _position(operators.argmin, np.inf, a, axis, out, keepdims)


def _position(find: Any, worst: float, a: Any, axis: int | None, out: Any, keepdims: bool | None) -> Any:
    x, keepdims = array(a), False if keepdims is None else keepdims
    found = find(_replaced(x, worst), axis, out, keepdims=keepdims)
    if not dtypes.is_inexact(aval_of(x).dtype):
        return found
    none = operators.all(lax.ne(x, x), axis, None, keepdims)
    return lax.select(none, lax.full_like(found, -1), found)


@directly(in_memory_nan.nancumsum)
def nancumsum(a: ArrayLike, axis: int | None = None, dtype: DTypeLike | None = None, out: None = None) -> Array:
    """Running sums along an axis, or of the flattened array, with NaN as 0.

    >>> jnp.nancumsum(jnp.array([1.0, jnp.nan, 3.0]))
    Array([1., 1., 4.], dtype=float64)
    """
    return operators.cumsum(_replaced(array(a), 0), axis, dtype, out)


@directly(in_memory_nan.nancumprod)
def nancumprod(a: ArrayLike, axis: int | None = None, dtype: DTypeLike | None = None, out: None = None) -> Array:
    """Running products along an axis, or of the flattened array, with NaN as 1.

    >>> jnp.nancumprod(jnp.array([2.0, jnp.nan, 3.0]))
    Array([2., 2., 6.], dtype=float64)
    """
    return operators.cumprod(_replaced(array(a), 1), axis, dtype, out)


@directly(in_memory_order.nanmedian)
def nanmedian(a: ArrayLike, axis: Axes = None, out: None = None, overwrite_input: bool = False,
              keepdims: bool = False) -> Array:
    """The median along axes of the elements that aren't NaN; NaN if there is none.

    >>> jnp.nanmedian(jnp.array([1.0, jnp.nan, 3.0]))
    Array(2., dtype=float64)
    """
    no_out("nanmedian", out)
    return at_shares("nanmedian", a, 0.5, axis, "linear", keepdims, None, True)


@directly(in_memory_order.nanquantile, arrays=2)
def nanquantile(a: ArrayLike, q: ArrayLike, axis: Axes = None, out: None = None, overwrite_input: bool = False,
                method: str = "linear", keepdims: bool = False, *, weights: ArrayLike | None = None) -> Array:
    """The quantiles along axes of the elements that aren't NaN; NaN if there is none.

    >>> jnp.nanquantile(jnp.array([1.0, jnp.nan, 3.0]), 0.25)
    Array(1.5, dtype=float64)
    """
    no_out("nanquantile", out)
    return at_shares("nanquantile", a, q, axis, method, keepdims, weights, True)


@directly(in_memory_order.nanpercentile, arrays=2)
def nanpercentile(a: ArrayLike, q: ArrayLike, axis: Axes = None, out: None = None, overwrite_input: bool = False,
                  method: str = "linear", keepdims: bool = False, *, weights: ArrayLike | None = None) -> Array:
    """The percentiles along axes of the elements that aren't NaN; NaN if there is none.

    >>> jnp.nanpercentile(jnp.array([1.0, jnp.nan, 3.0]), 25)
    Array(1.5, dtype=float64)
    """
    no_out("nanpercentile", out)
    return at_shares("nanpercentile", a, percent("nanpercentile", q), axis, method, keepdims, weights, True)
