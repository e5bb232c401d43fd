"""Sums, products, extremes, means and the like, along axes; running ones, too."""

# mypy: no-warn-return-any
# What roles return has no type that a checker knows.

from __future__ import annotations

import builtins
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

from corejax import lax
from corejax.core import Array, ArrayLike, DTypeLike, aval_of, dtypes
from corejax.errors import CorejaxValueError
from corejax.plugin import directly, operators, refused, shaping
from corejax_numpy._arrays import array, no_out
from corejax_numpy._choices import as_bool, canonical_axes
from corejax_numpy._in_memory import totals
from corejax_numpy._values import spread_to
from corejax_reductions import in_memory

__all__ = ["all", "amax", "amin", "any", "argmax", "argmin", "average", "count_nonzero", "cumprod", "cumsum",
           "cumulative_prod", "cumulative_sum", "max", "mean", "min", "prod", "ptp", "std", "sum", "var"]

Axes: TypeAlias = int | Sequence[int] | None


@directly(in_memory.sum, whole=True)
def sum(a: ArrayLike, axis: Axes = None, dtype: DTypeLike | None = None, out: None = None, keepdims: bool = False,
        initial: ArrayLike | None = None, where: ArrayLike | None = None, promote_integers: bool = True) -> Array:
    """The sum along axes, plus `initial`; of integers in their own dtype unless `promote_integers`.

    >>> jnp.sum(jnp.array([[1.0, 2.0], [3.0, 4.0]]), axis=0)
    Array([4., 6.], dtype=float64)
    """
    return operators.sum(array(a), axis, dtype, out, keepdims, initial, where, promote_integers)


@directly(in_memory.prod, whole=True)
def prod(a: ArrayLike, axis: Axes = None, dtype: DTypeLike | None = None, out: None = None, keepdims: bool = False,
         initial: ArrayLike | None = None, where: ArrayLike | None = None, promote_integers: bool = True) -> Array:
    """The product along axes, times `initial`; of integers in their own dtype unless `promote_integers`.

    >>> jnp.prod(jnp.array([[1.0, 2.0], [3.0, 4.0]]), axis=0)
    Array([3., 8.], dtype=float64)
    """
    return operators.prod(array(a), axis, dtype, out, keepdims, initial, where, promote_integers)


@directly(in_memory.max, whole=True)
def max(a: ArrayLike, axis: Axes = None, out: None = None, keepdims: bool = False, initial: ArrayLike | None = None,
        where: ArrayLike | None = None) -> Array:
    """The largest element along axes, or `initial` if that is larger; NaN if there is one.

    >>> jnp.max(jnp.array([[1.0, 5.0], [3.0, 4.0]]), axis=0)
    Array([3., 5.], dtype=float64)
    """
    return operators.max(array(a), axis, out, keepdims, initial, where)


@directly(in_memory.min, whole=True)
def min(a: ArrayLike, axis: Axes = None, out: None = None, keepdims: bool = False, initial: ArrayLike | None = None,
        where: ArrayLike | None = None) -> Array:
    """The smallest element along axes, or `initial` if that is smaller; NaN if there is one.

    >>> jnp.min(jnp.array([[1.0, 5.0], [3.0, 4.0]]), axis=0)
    Array([1., 4.], dtype=float64)
    """
    return operators.min(array(a), axis, out, keepdims, initial, where)


@directly(in_memory.max, whole=True)
def amax(a: ArrayLike, axis: Axes = None, out: None = None, keepdims: bool = False, initial: ArrayLike | None = None,
         where: ArrayLike | None = None) -> Array:
    """The same as `max`.

    >>> jnp.amax(jnp.array([1.0, 5.0]))
    Array(5., dtype=float64)
    """
    return operators.max(array(a), axis, out, keepdims, initial, where)


@directly(in_memory.min, whole=True)
def amin(a: ArrayLike, axis: Axes = None, out: None = None, keepdims: bool = False, initial: ArrayLike | None = None,
         where: ArrayLike | None = None) -> Array:
    """The same as `min`.

    >>> jnp.amin(jnp.array([1.0, 5.0]))
    Array(1., dtype=float64)
    """
    return operators.min(array(a), axis, out, keepdims, initial, where)


@directly(totals.ptp, whole=True)
def ptp(a: ArrayLike, axis: Axes = None, out: None = None, keepdims: bool = False) -> Array:
    """The largest element minus the smallest, along axes.

    >>> jnp.ptp(jnp.array([[1.0, 5.0], [3.0, 4.0]]), axis=0)
    Array([2., 1.], dtype=float64)
    """
    no_out("ptp", out)
    x = array(a)
    if aval_of(x).dtype == dtypes.bool_:
        raise refused("ptp", "booleans can't be subtracted", got=str(aval_of(x)), wanted="numbers",
                      todo="convert them first: x.astype(int)")
    return operators.max(x, axis, None, keepdims) - operators.min(x, axis, None, keepdims)


@directly(in_memory.mean, whole=True)
def mean(a: ArrayLike, axis: Axes = None, dtype: DTypeLike | None = None, out: None = None, keepdims: bool = False, *,
         where: ArrayLike | None = None) -> Array:
    """The arithmetic mean along axes.

    >>> jnp.mean(jnp.array([[1.0, 2.0], [3.0, 4.0]]), axis=0)
    Array([2., 3.], dtype=float64)
    """
    return operators.mean(array(a), axis, dtype, out, keepdims, where=where)


@directly(in_memory.var, whole=True)
def var(a: ArrayLike, axis: Axes = None, dtype: DTypeLike | None = None, out: None = None, ddof: float = 0,
        keepdims: bool = False, *, where: ArrayLike | None = None, mean: ArrayLike | None = None,
        correction: float | None = None) -> Array:
    """The variance along axes, with the divisor N - `ddof`; `correction` is another name for `ddof`.

    `mean` may be given, in a shape that broadcasts to that of `a`, so that it isn't computed again.

    >>> jnp.var(jnp.array([1.0, 2.0, 3.0, 4.0]), ddof=1)
    Array(1.66666667, dtype=float64)
    """
    return operators.var(array(a), axis, dtype, out, ddof, keepdims, where=where, mean=mean, correction=correction)


@directly(in_memory.std, whole=True)
def std(a: ArrayLike, axis: Axes = None, dtype: DTypeLike | None = None, out: None = None, ddof: float = 0,
        keepdims: bool = False, *, where: ArrayLike | None = None, mean: ArrayLike | None = None,
        correction: float | None = None) -> Array:
    """The standard deviation along axes: the square root of `var`.

    >>> jnp.std(jnp.array([1.0, 2.0, 3.0, 4.0]))
    Array(1.11803399, dtype=float64)
    """
    return operators.std(array(a), axis, dtype, out, ddof, keepdims, where=where, mean=mean, correction=correction)


@directly(in_memory.any, whole=True)
def any(a: ArrayLike, axis: Axes = None, out: None = None, keepdims: bool = False, *,
        where: ArrayLike | None = None) -> Array:
    """Whether any element along the axes is nonzero.

    >>> jnp.any(jnp.array([[0.0, 1.0], [0.0, 0.0]]), axis=1)
    Array([ True, False], dtype=bool)
    """
    return operators.any(array(a), axis, out, keepdims, where=where)


@directly(in_memory.all, whole=True)
def all(a: ArrayLike, axis: Axes = None, out: None = None, keepdims: bool = False, *,
        where: ArrayLike | None = None) -> Array:
    """Whether all elements along the axes are nonzero.

    >>> jnp.all(jnp.array([[1.0, 1.0], [1.0, 0.0]]), axis=1)
    Array([ True, False], dtype=bool)
    """
    return operators.all(array(a), axis, out, keepdims, where=where)


@directly(in_memory.argmax, whole=True)
def argmax(a: ArrayLike, axis: int | None = None, out: None = None, keepdims: bool | None = None) -> Array:
    """The place of the largest element along an axis, or in the flattened array: the first one, or the first NaN.

    >>> jnp.argmax(jnp.array([1.0, 5.0, 5.0]))
    Array(1, dtype=int64)
    """
    return operators.argmax(array(a), axis, out, keepdims=False if keepdims is None else keepdims)


@directly(in_memory.argmin, whole=True)
def argmin(a: ArrayLike, axis: int | None = None, out: None = None, keepdims: bool | None = None) -> Array:
    """The place of the smallest element along an axis, or in the flattened array: the first one, or the first NaN.

    >>> jnp.argmin(jnp.array([1.0, 5.0, 1.0]))
    Array(0, dtype=int64)
    """
    return operators.argmin(array(a), axis, out, keepdims=False if keepdims is None else keepdims)


@directly(totals.count_nonzero, whole=True)
def count_nonzero(a: ArrayLike, axis: Axes = None, keepdims: bool = False) -> Array:
    """How many elements along the axes are nonzero.

    >>> jnp.count_nonzero(jnp.array([0.0, 3.0, 4.0]))
    Array(2, dtype=int64)
    """
    return operators.sum(as_bool(array(a)), axis, dtypes.default_dtype("i"), None, keepdims)


# Running

@directly(in_memory.cumsum, whole=True)
def cumsum(a: ArrayLike, axis: int | None = None, dtype: DTypeLike | None = None, out: None = None) -> Array:
    """Running sums along an axis, or of the flattened array.

    >>> jnp.cumsum(jnp.array([1.0, 2.0, 3.0]))
    Array([1., 3., 6.], dtype=float64)
    """
    return operators.cumsum(array(a), axis, dtype, out)


@directly(in_memory.cumprod, whole=True)
def cumprod(a: ArrayLike, axis: int | None = None, dtype: DTypeLike | None = None, out: None = None) -> Array:
    """Running products along an axis, or of the flattened array.

    >>> jnp.cumprod(jnp.array([1.0, 2.0, 3.0]))
    Array([1., 2., 6.], dtype=float64)
    """
    return operators.cumprod(array(a), axis, dtype, out)


@directly(totals.cumulative_sum, whole=True)
def cumulative_sum(x: ArrayLike, /, *, axis: int | None = None, dtype: DTypeLike | None = None, out: None = None,
                   include_initial: bool = False) -> Array:
    """Running sums along an axis, of at least the default integer dtype; they may begin with the sum of nothing, 0.

    >>> jnp.cumulative_sum(jnp.array([1.0, 2.0]), include_initial=True)
    Array([0., 1., 3.], dtype=float64)
    """
    return _cumulative("cumulative_sum", operators.cumsum, 0, array(x), axis, dtype, out, include_initial)


@directly(totals.cumulative_prod, whole=True)
def cumulative_prod(x: ArrayLike, /, *, axis: int | None = None, dtype: DTypeLike | None = None, out: None = None,
                    include_initial: bool = False) -> Array:
    """Running products along an axis, of at least the default integer dtype; they may begin with that of nothing, 1.

    >>> jnp.cumulative_prod(jnp.array([2.0, 3.0]), include_initial=True)
    Array([1., 2., 6.], dtype=float64)
    """
    return _cumulative("cumulative_prod", operators.cumprod, 1, array(x), axis, dtype, out, include_initial)


def _cumulative(name: str, running: Any, start: int, x: Any, axis: int | None, dtype: Any, out: None,
                include_initial: bool) -> Any:
    no_out(name, out)
    aval = aval_of(x)
    if not aval.ndim or axis is None and aval.ndim != 1:
        raise refused(name, "the axis must be given unless there is exactly one", got=str(aval), wanted="axis=...",
                      todo="say along which axis", kind=CorejaxValueError)
    at = shaping.canonical_axis(name, 0 if axis is None else axis, aval.ndim)
    default = dtypes.default_dtype("i")
    if dtype is None and dtypes.is_integer(aval.dtype) and aval.dtype.itemsize < default.itemsize:
        dtype = np.dtype(f"{dtypes.kind(aval.dtype)}{default.itemsize}")
    found = running(x, at, dtype)
    if not shaping.as_flag(name, "include_initial", include_initial):
        return found
    return lax.pad(found, start, [(int(d == at), 0, 0) for d in range(aval.ndim)])


# With weights

@directly(totals.average, whole=True)
def average(a: ArrayLike, axis: Axes = None, weights: ArrayLike | None = None, returned: bool = False,
            keepdims: bool = False) -> Array | tuple[Array, ...]:
    """The mean along axes by weights in the shape of `a`, or of those axes; `returned` gives their sum beside it.

    >>> jnp.average(jnp.array([1.0, 2.0, 3.0]), weights=jnp.array([2.0, 1.0, 1.0]))
    Array(1.75, dtype=float64)
    """
    x, with_sum = array(a), shaping.as_flag("average", "returned", returned)
    if weights is None:
        found = operators.mean(x, axis, None, None, keepdims)
        count = aval_of(x).size // builtins.max(aval_of(found).size, 1)
        return (found, lax.full(aval_of(found).shape, float(count), aval_of(found).dtype)) if with_sum else found
    by = _weights_beside(x, array(weights), axis)
    dtype = dtypes.inexact(*dtypes.promote(*[(aval_of(one).dtype, aval_of(one).weak_type) for one in (x, by)]))
    x, by = operators.astype(x, dtype), operators.astype(by, dtype)
    divisor = operators.sum(by, axis, None, None, keepdims)
    found = operators.sum(x * by, axis, None, None, keepdims) / divisor
    return (found, divisor) if with_sum else found


def _weights_beside(x: Any, weights: Any, axis: Axes) -> Any:
    """The weights in the shape of `x`."""
    shape, own = aval_of(x).shape, aval_of(weights).shape
    if own == shape:
        return weights
    axes = None if axis is None else canonical_axes("average", axis, len(shape))
    if axes is None or own != tuple([shape[d] for d in axes]):
        raise refused("average", "the weights don't fit", got=f"{aval_of(x)} and {aval_of(weights)}",
                      wanted="weights of the same shape, or of the shape of the axes", kind=CorejaxValueError,
                      todo="name the axis that they are along, or broadcast them first")
    order = sorted(range(len(axes)), key=lambda k: axes[k])
    sizes = tuple([n if d in axes else 1 for d, n in enumerate(shape)])
    return spread_to(lax.reshape(lax.transpose(weights, tuple(order)), sizes), shape)
