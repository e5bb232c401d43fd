"""What this pack provides for NumPy functions called with traced values.

`np.sum`, `np.mean`, `np.argmax` and others that ndarray has as methods call the array methods, without a table.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from corejax import lax
from corejax.core import aval_of, dtypes, from_array_like
from corejax.errors import CorejaxValueError
from corejax.plugin import operators, refused, shaping

__all__ = ["numpy_function", "numpy_ufunc"]

Function = Callable[..., Any]


def _of_array(method: Function) -> Function:
    """The array method as a function that accepts any array-like as its first argument."""
    def apply(a: Any, *args: Any, **kwargs: Any) -> Any:
        return method(from_array_like(a), *args, **kwargs)
    return apply


def _along_first(method: Function) -> Function:
    """`ufunc.reduce`: the array method, along the first axis by default."""
    def reduce(array: Any, axis: Any = 0, dtype: Any = None, *, keepdims: bool = False) -> Any:
        more = {} if dtype is None else {"dtype": dtype}
        return method(from_array_like(array), axis, keepdims=keepdims, **more)
    return reduce


def _of_bits(reduce: Function) -> Function:
    """`ufunc.reduce` of booleans or integers, along the first axis by default."""
    def apply(array: Any, axis: Any = 0, dtype: Any = None, *, keepdims: bool = False) -> Any:
        x = from_array_like(array)
        x = x if dtype is None else lax.convert_element_type(x, dtype)
        axes = _axes("reduce", axis, aval_of(x).ndim)
        found = reduce(x, axes)
        return lax.expand_dims(found, axes) if shaping.as_flag("reduce", "keepdims", keepdims) else found
    return apply


def _axes(name: str, axis: Any, ndim: int) -> tuple[int, ...]:
    return tuple(range(ndim)) if axis is None else shaping.canonical_axes(name, axis, ndim)


def _odd(array: Any, axis: Any = 0, *, keepdims: bool = False) -> Any:
    """`np.logical_xor.reduce`: whether an odd number of elements is nonzero."""
    return _of_bits(lax.reduce_xor)(lax.ne(from_array_like(array), 0), axis, keepdims=keepdims)


def _running(method: Function) -> Function:
    """`ufunc.accumulate`: the running results along the first axis by default."""
    def accumulate(array: Any, axis: int = 0, dtype: Any = None) -> Any:
        return method(from_array_like(array), axis, dtype)
    return accumulate


def _running_by(function: Function) -> Function:
    """The same by a function of `lax`, of booleans in order as well."""
    def accumulate(array: Any, axis: int = 0, dtype: Any = None) -> Any:
        x = from_array_like(array)
        x = x if dtype is None else lax.convert_element_type(x, dtype)
        if x.dtype == dtypes.bool_:
            return lax.ne(function(lax.convert_element_type(x, np.int8), axis), 0)
        return function(x, axis)
    return accumulate


def _running_logarithm(array: Any, axis: int = 0, dtype: Any = None) -> Any:
    """`np.logaddexp.accumulate`; of integers and booleans in floats, as by `np.logaddexp`."""
    x = from_array_like(array)
    wanted = dtypes.inexact(aval_of(x).dtype, aval_of(x).weak_type) if dtype is None else dtypes.canonical(dtype)
    return lax.cumlogsumexp(x if x.dtype == wanted else lax.convert_element_type(x, wanted), axis)


def _cumulative(method: Function, start: int) -> Function:
    """`np.cumulative_sum` and `np.cumulative_prod`, which may begin with the result for no elements."""
    def cumulative(x: Any, /, *, axis: int | None = None, dtype: Any = None, include_initial: bool = False) -> Any:
        x = from_array_like(x)
        ndim = aval_of(x).ndim
        if axis is None and ndim != 1:
            raise refused(method.__name__, "the axis must be given unless there is only one", got=str(aval_of(x)),
                          wanted="axis=...", todo="say along which axis", kind=CorejaxValueError)
        at = shaping.canonical_axis(method.__name__, 0 if axis is None else axis, ndim)
        found = method(x, at, dtype)
        if not include_initial:
            return found
        return lax.pad(found, start, [(int(d == at), 0, 0) for d in range(ndim)])
    return cumulative


def _running_ignoring_nan(method: Function, value: float) -> Function:
    def apply(a: Any, axis: int | None = None, dtype: Any = None) -> Any:
        return method(_without_nan(from_array_like(a), value), axis, dtype)
    return apply


def ptp(a: Any, axis: Any = None, *, keepdims: bool = False) -> Any:
    """`np.ptp`: the largest element minus the smallest."""
    return operators.max(a, axis, keepdims=keepdims) - operators.min(a, axis, keepdims=keepdims)


def count_nonzero(a: Any, axis: Any = None, *, keepdims: bool = False) -> Any:
    """`np.count_nonzero`."""
    return operators.sum(a if a.dtype == np.bool_ else lax.ne(a, 0), axis, np.int64, keepdims=keepdims)


def average(a: Any, axis: Any = None, weights: Any = None, returned: bool = False, *, keepdims: bool = False) -> Any:
    """`np.average`, with weights in the shape of `a`, or one for each position along the axis."""
    a, returned = from_array_like(a), shaping.as_flag("average", "returned", returned)
    if weights is None:
        found = operators.mean(a, axis, keepdims=keepdims)
        count = aval_of(a).size // max(aval_of(found).size, 1)
        return (found, lax.full(found.shape, float(count), found.dtype)) if returned else found
    weights = from_array_like(weights)
    if aval_of(weights).shape != aval_of(a).shape:
        if aval_of(weights).ndim != 1 or axis is None:
            raise refused("average", "the weights don't fit", got=f"{aval_of(a)} and {aval_of(weights)}",
                          wanted="weights of the same shape, or of one axis", todo="broadcast the weights first")
        at = shaping.canonical_axis("average", axis, aval_of(a).ndim)
        weights = lax.broadcast_in_dim(weights, aval_of(a).shape, (at,))
    if not any([dtypes.is_inexact(x.dtype) for x in (a, weights)]):  # products of integers may overflow
        dtype = dtypes.inexact(*dtypes.promote(*[(aval_of(x).dtype, aval_of(x).weak_type) for x in (a, weights)]))
        a, weights = lax.convert_element_type(a, dtype), lax.convert_element_type(weights, dtype)
    total = operators.sum(a * weights, axis, keepdims=keepdims)
    divisor = operators.sum(weights, axis, keepdims=keepdims)
    return (total / divisor, divisor) if returned else total / divisor


def _ignoring_nan(method: Function, value: float) -> Function:
    def apply(a: Any, axis: Any = None, dtype: Any = None, *, keepdims: bool = False) -> Any:
        return method(_without_nan(a, value), axis, dtype, keepdims=keepdims)
    return apply


def _without_nan(a: Any, value: float) -> Any:
    return lax.select(lax.ne(a, a), lax.full_like(a, value), a) if dtypes.is_inexact(a.dtype) else a


def nanmean(a: Any, axis: Any = None, dtype: Any = None, *, keepdims: bool = False) -> Any:
    """`np.nanmean`: the mean of the elements that are not NaN."""
    if not dtypes.is_inexact(a.dtype):
        return operators.mean(a, axis, dtype, keepdims=keepdims)
    return operators.mean(a, axis, dtype, keepdims=keepdims, where=lax.eq(a, a))


def trapezoid(y: Any, x: Any = None, dx: Any = 1.0, axis: int = -1) -> Any:
    """`np.trapezoid`: the integral along an axis, by the trapezoidal rule."""
    y = from_array_like(y)
    at = shaping.canonical_axis("trapezoid", axis, aval_of(y).ndim)
    size = aval_of(y).shape[at]
    widths = dx
    if x is not None:
        x = from_array_like(x)
        along = aval_of(x).ndim - 1 if aval_of(x).ndim == 1 else at
        points = aval_of(x).shape[along]
        widths = lax.slice_in_dim(x, 1, points, axis=along) - lax.slice_in_dim(x, 0, points - 1, axis=along)
        if aval_of(x).ndim == 1:
            widths = lax.reshape(widths, (points - 1, *[1] * (aval_of(y).ndim - 1 - at)))
    sides = lax.slice_in_dim(y, 1, size, axis=at) + lax.slice_in_dim(y, 0, size - 1, axis=at)
    return operators.sum(sides * widths / 2.0, at)

# Norms

def norm(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Any:
    """`np.linalg.norm`, except for those that need singular values."""
    ndim, keepdims = x.ndim, shaping.as_flag("norm", "keepdims", keepdims)
    if axis is None and ord is None:
        axis = tuple(range(ndim))
        found = _root_of_squares(x, axis, False)
        return lax.reshape(found, (1,) * ndim) if keepdims else found
    axes = _axes("norm", axis, ndim)
    if len(axes) == 1:
        return vector_norm(x, axis=axes[0], keepdims=keepdims, ord=2 if ord is None else ord)
    if len(axes) == 2:
        return _matrix_norm(x, axes, keepdims, ord)
    raise refused("norm", "only vectors and matrices have norms", got=f"axis={axis}", wanted="one axis or two",
                  todo="name the axes")


def vector_norm(x: Any, /, *, axis: Any = None, keepdims: bool = False, ord: Any = 2) -> Any:
    """`np.linalg.vector_norm`."""
    if ord == 2:
        return _root_of_squares(x, axis, keepdims)
    size = lax.abs(_as_inexact(x))
    if ord == np.inf:
        return operators.max(size, axis, keepdims=keepdims)
    if ord == -np.inf:
        return operators.min(size, axis, keepdims=keepdims)
    if ord == 0:
        return operators.sum(lax.convert_element_type(lax.ne(size, 0), size.dtype), axis, keepdims=keepdims)
    if ord == 1:
        return operators.sum(size, axis, keepdims=keepdims)
    if isinstance(ord, str):
        raise refused("norm", "unknown norm of a vector", got=repr(ord), wanted="a number", todo="pass a number")
    return operators.sum(size ** float(ord), axis, keepdims=keepdims) ** (1.0 / float(ord))


def _matrix_norm(x: Any, axes: tuple[int, ...], keepdims: bool, ord: Any) -> Any:
    if ord in (None, "fro"):
        return _root_of_squares(x, axes, keepdims)
    choose = {1: operators.max, -1: operators.min, np.inf: operators.max, -np.inf: operators.min}.get(ord)
    if choose is None:
        raise refused("norm", "this norm of a matrix needs its singular values", got=f"ord={ord!r}",
                      wanted="'fro', 1, -1, inf or -inf", todo="no installed pack computes them")
    rows, columns = axes
    summed, chosen = (rows, columns) if ord in (1, -1) else (columns, rows)
    found = choose(operators.sum(lax.abs(_as_inexact(x)), summed, keepdims=True), chosen, keepdims=True)
    return found if keepdims else lax.squeeze(found, axes)


def _root_of_squares(x: Any, axis: Any, keepdims: bool) -> Any:
    size = _as_inexact(x)
    squares = lax.square(lax.abs(size)) if dtypes.is_complex(size.dtype) else lax.square(size)
    return lax.sqrt(operators.sum(squares, axis, keepdims=keepdims))


def _as_inexact(x: Any) -> Any:
    return x if dtypes.is_inexact(x.dtype) else lax.convert_element_type(x, dtypes.default_dtype("f"))

# The tables

numpy_function: dict[Any, Function] = {
    np.amax: _of_array(operators.max), np.amin: _of_array(operators.min), np.ptp: ptp,
    np.count_nonzero: count_nonzero, np.average: average, np.nansum: _ignoring_nan(operators.sum, 0.0),
    np.nanprod: _ignoring_nan(operators.prod, 1.0), np.nanmean: nanmean, np.linalg.norm: norm,
    np.linalg.vector_norm: vector_norm, np.trapezoid: trapezoid,
    np.cumulative_sum: _cumulative(operators.cumsum, 0), np.cumulative_prod: _cumulative(operators.cumprod, 1),
    np.nancumsum: _running_ignoring_nan(operators.cumsum, 0.0),
    np.nancumprod: _running_ignoring_nan(operators.cumprod, 1.0),
    np.linalg.matrix_norm: lambda x, /, *, keepdims=False, ord="fro": _matrix_norm(x, (x.ndim - 2, x.ndim - 1),
                                                                                   keepdims, ord),
}

numpy_ufunc: dict[Any, Function] = {
    np.add.reduce: _along_first(operators.sum), np.multiply.reduce: _along_first(operators.prod),
    np.maximum.reduce: _along_first(operators.max), np.minimum.reduce: _along_first(operators.min),
    np.logical_and.reduce: _along_first(operators.all), np.logical_or.reduce: _along_first(operators.any),
    np.bitwise_and.reduce: _of_bits(lax.reduce_and), np.bitwise_or.reduce: _of_bits(lax.reduce_or),
    np.bitwise_xor.reduce: _of_bits(lax.reduce_xor), np.logical_xor.reduce: _odd,
    np.add.accumulate: _running(operators.cumsum), np.multiply.accumulate: _running(operators.cumprod),
    np.maximum.accumulate: _running_by(lax.cummax), np.minimum.accumulate: _running_by(lax.cummin),
    np.logaddexp.accumulate: _running_logarithm,
}
