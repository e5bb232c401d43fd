"""Array methods: `x.sum(axis=0)` calls `sum(x, axis=0)` of this module, and so does `numpy.sum(x, axis=0)`.

Signatures are NumPy's: `axis` is None (all axes), an integer or several; `where` leaves elements out; `out` must be
None. Sums and products of integers and booleans have the default integer dtype if that is wider; running sums and
products keep an integer dtype; means and variances of 64-bit integers have the default float dtype, those of narrower
ones float32.
"""

# mypy: no-warn-return-any
# A primitive may have several results, so what `define` returns gives Any; those of array methods are arrays.

from __future__ import annotations

import builtins
from collections.abc import Callable, Sequence
from functools import lru_cache
from math import prod as product_of
from typing import Any, TypeAlias

import numpy as np
from numpy.exceptions import ComplexWarning

from corejax import lax
from corejax.core import Array, ArrayLike, DTypeLike, aval_of, dtypes, warn
from corejax.errors import CorejaxTypeError, CorejaxValueError
from corejax.plugin import directly, families, refused, shaping
from corejax_reductions import _in_memory as in_memory, cumulative, sums
from corejax_reductions._reduction import accumulator, canonical_axes
from corejax_reductions.extrema import greatest, least, reduce_max, reduce_min
from corejax_reductions.logic import reduce_and, reduce_or
from corejax_reductions.positions import argmax as position_of_max, argmin as position_of_min
from corejax_reductions.products import reduce_prod

__all__ = ["all", "any", "argmax", "argmin", "cumprod", "cumsum", "max", "mean", "min", "prod", "std", "sum", "var"]

AxisSpec: TypeAlias = int | Sequence[int] | None


@directly(in_memory.sum, whole=True)
def sum(x: Array, axis: AxisSpec = None, dtype: DTypeLike | None = None, out: None = None, keepdims: bool = False,
        initial: ArrayLike | None = None, where: ArrayLike | None = None, promote_integers: bool = True) -> Array:
    """The sum along axes, plus `initial`; of integers in their own dtype unless `promote_integers`."""
    total = _accumulated("sum", sums.reduce_sum, x, 0, axis, dtype, out, keepdims, where, promote_integers)
    if initial is None:
        return total
    combine = lax.bitwise_or if total.dtype == dtypes.bool_ else lax.add
    return combine(total, _initial("sum", initial, total.dtype))


@directly(in_memory.prod, whole=True)
def prod(x: Array, axis: AxisSpec = None, dtype: DTypeLike | None = None, out: None = None, keepdims: bool = False,
         initial: ArrayLike | None = None, where: ArrayLike | None = None, promote_integers: bool = True) -> Array:
    """The product along axes, times `initial`; of integers in their own dtype unless `promote_integers`."""
    total = _accumulated("prod", reduce_prod, x, 1, axis, dtype, out, keepdims, where, promote_integers)
    if initial is None:
        return total
    combine = lax.bitwise_and if total.dtype == dtypes.bool_ else lax.mul
    return combine(total, _initial("prod", initial, total.dtype))


@directly(in_memory.max, whole=True)
def max(x: Array, axis: AxisSpec = None, out: None = None, keepdims: bool = False, initial: ArrayLike | None = None,
        where: ArrayLike | None = None) -> Array:
    """The largest element along axes, or `initial` if that is larger."""
    return _extreme("max", reduce_max, lax.max, least, x, axis, out, keepdims, initial, where)


@directly(in_memory.min, whole=True)
def min(x: Array, axis: AxisSpec = None, out: None = None, keepdims: bool = False, initial: ArrayLike | None = None,
        where: ArrayLike | None = None) -> Array:
    """The smallest element along axes, or `initial` if that is smaller."""
    return _extreme("min", reduce_min, lax.min, greatest, x, axis, out, keepdims, initial, where)


@directly(in_memory.mean, whole=True)
def mean(x: Array, axis: AxisSpec = None, dtype: DTypeLike | None = None, out: None = None, keepdims: bool = False, *,
         where: ArrayLike | None = None) -> Array:
    """The arithmetic mean along axes."""
    _no_out("mean", out)
    keepdims = shaping.as_flag("mean", "keepdims", keepdims)
    wanted, wide = _averaged_dtypes(x, dtype)
    if dtype is not None:
        x = _warned_of("mean", x, wanted)
    total = sum(x, axis, wide, None, keepdims, where=where)
    return _converted(lax.div(total, _count(x, axis, keepdims, where, wide)), wanted)


_mean = mean  # `var` has an argument of that name


@directly(in_memory.var, whole=True)
def var(x: Array, axis: AxisSpec = None, dtype: DTypeLike | None = None, out: None = None, ddof: float = 0,
        keepdims: bool = False, *, where: ArrayLike | None = None, mean: ArrayLike | None = None,
        correction: float | None = None) -> Array:
    """The variance along axes, with the divisor N - `ddof`; real for complex elements.

    `correction` is another name for `ddof`; a `mean` that is given isn't computed again.
    """
    spread, wanted = _about_mean("var", x, axis, dtype, out, ddof, keepdims, where, mean, correction)
    return _converted(spread, wanted)


def _about_mean(name: str, x: Any, axis: AxisSpec, dtype: Any, out: Any, ddof: Any, keepdims: bool, where: Any,
                mean: Any, correction: Any) -> tuple[Any, np.dtype]:
    """The variance, in the dtype that it is computed in, and the dtype of the result."""
    _no_out(name, out)
    keepdims = shaping.as_flag(name, "keepdims", keepdims)
    wanted, wide = _averaged_dtypes(x, dtype)
    real_mean = dtypes.is_complex(aval_of(x).dtype) and not dtypes.is_complex(wide)
    if real_mean and mean is None:
        mean = _mean(_warned_of(name, x, wide), axis, wide, keepdims=True, where=where)
    if real_mean:  # as in NumPy: distances in the plane, from a mean in the dtype that was asked for
        wide = dtypes.promote((aval_of(x).dtype, False), (wide, False))[0]
    values = _converted(x, wide)
    shape = values.shape
    centre = _mean(values, axis, keepdims=True, where=where) if mean is None else _converted(mean, wide)
    offset = lax.sub(values, _spread("mean", "the mean must fit the operand", centre, shape))
    if where is not None:  # before squaring: what is left out may be NaN, and so would its derivative
        offset = _masked("var", offset, where, 0)
    squares = lax.square(lax.abs(offset)) if dtypes.is_complex(wide) else lax.square(offset)
    total = sum(squares, axis, None, None, keepdims)
    count = _count(x, axis, keepdims, where, total.dtype)
    missing = _missing(ddof, correction)
    divisor = (builtins.max(count - missing, 0.0) if isinstance(count, float) else
               lax.max(lax.sub(count, missing), 0.0))  # with too few elements left, this is NaN or infinite
    return lax.div(total, divisor), _real_dtype(wanted) if dtype is None else wanted


def _real_dtype(dtype: np.dtype) -> np.dtype:
    return np.dtype(f"f{dtype.itemsize // 2}") if dtypes.is_complex(dtype) else dtype


def _missing(ddof: Any, correction: Any) -> float:
    """What the number of elements is less by in the divisor."""
    if correction is not None and ddof != 0:
        raise refused("var", "ddof and correction are the same thing", got=f"ddof={ddof}, correction={correction}",
                      wanted="only one of them", todo="leave out ddof", kind=CorejaxValueError)
    return float(ddof if correction is None else correction)


@directly(in_memory.std, whole=True)
def std(x: Array, axis: AxisSpec = None, dtype: DTypeLike | None = None, out: None = None, ddof: float = 0,
        keepdims: bool = False, *, where: ArrayLike | None = None, mean: ArrayLike | None = None,
        correction: float | None = None) -> Array:
    """The standard deviation along axes: the square root of `var`."""
    spread, wanted = _about_mean("std", x, axis, dtype, out, ddof, keepdims, where, mean, correction)
    real = _real_dtype(wanted)
    return _converted(lax.sqrt(_converted(spread, real) if dtypes.is_inexact(real) else spread), wanted)


@directly(in_memory.any, whole=True)
def any(x: Array, axis: AxisSpec = None, out: None = None, keepdims: bool = False, *,
        where: ArrayLike | None = None) -> Array:
    """Whether any element along the axes is nonzero."""
    return _truth("any", reduce_or, x, False, axis, out, keepdims, where)


@directly(in_memory.all, whole=True)
def all(x: Array, axis: AxisSpec = None, out: None = None, keepdims: bool = False, *,
        where: ArrayLike | None = None) -> Array:
    """Whether all elements along the axes are nonzero."""
    return _truth("all", reduce_and, x, True, axis, out, keepdims, where)


@directly(in_memory.argmax, whole=True)
def argmax(x: Array, axis: int | None = None, out: None = None, *, keepdims: bool = False) -> Array:
    """The position of the largest element along an axis, or in the flattened array: the first one, or the first NaN."""
    return _position("argmax", position_of_max, x, axis, out, keepdims)


@directly(in_memory.argmin, whole=True)
def argmin(x: Array, axis: int | None = None, out: None = None, *, keepdims: bool = False) -> Array:
    """The position of the smallest element along an axis, or in the flattened array: the first, or the first NaN."""
    return _position("argmin", position_of_min, x, axis, out, keepdims)


@directly(in_memory.cumsum, whole=True)
def cumsum(x: Array, axis: int | None = None, dtype: DTypeLike | None = None, out: None = None) -> Array:
    """Running sums along an axis, or of the flattened array."""
    return _running("cumsum", cumulative.cumsum, x, axis, dtype, out)


@directly(in_memory.cumprod, whole=True)
def cumprod(x: Array, axis: int | None = None, dtype: DTypeLike | None = None, out: None = None) -> Array:
    """Running products along an axis, or of the flattened array."""
    return _running("cumprod", cumulative.cumprod, x, axis, dtype, out)


# Shared by the methods

def _accumulated(name: str, reduce: Callable[..., Any], x: Any, identity: int, axis: AxisSpec, dtype: Any, out: Any,
                 keepdims: bool, where: Any, promote: bool = True) -> Any:
    if out is not None:
        _no_out(name, out)
    aval = aval_of(x)
    if dtype is not None or aval.weak_type or not dtypes.is_inexact(aval.dtype):
        promote = promote if promote is True else shaping.as_flag(name, "promote_integers", promote)
        wanted = _summed_dtype(x, dtype, promote)
        if dtype is not None:
            x = _warned_of(name, x, wanted)
        x = _converted(x, wanted)
        if wanted == dtypes.bool_:  # sums and products of truth values are theirs, too
            reduce = reduce_and if identity else reduce_or
    if where is not None:
        x = _masked(name, x, where, identity)
    axes = canonical_axes(name, axis, len(aval.shape))
    total = reduce.primitive.bind(x, axes=axes)  # type: ignore[attr-defined]
    return total if keepdims is False else _kept(name, total, aval.shape, axes, keepdims)


def _running(name: str, accumulate: Callable[..., Any], x: Any, axis: int | None, dtype: Any, out: Any) -> Any:
    _no_out(name, out)
    wanted = _summed_dtype(x, dtype, at_least_default=False)
    if dtype is not None:
        x = _warned_of(name, x, wanted)
    x = _converted(x, wanted)
    if axis is None:
        x, axis = lax.reshape(x, (aval_of(x).size,)), 0
    if wanted == dtypes.bool_:  # sums and products of truth values are theirs, too
        accumulate = {cumulative.cumsum: cumulative.cummax, cumulative.cumprod: cumulative.cummin}[accumulate]
        return lax.ne(accumulate(lax.convert_element_type(x, np.int8), axis), 0)
    return accumulate(x, axis)


def _extreme(name: str, reduce: Callable[..., Any], choose: Callable[..., Any], identity: Callable[..., Any], x: Any,
             axis: AxisSpec, out: Any, keepdims: bool, initial: Any, where: Any) -> Any:
    _no_out(name, out)
    aval = aval_of(x)
    axes = canonical_axes(name, axis, aval.ndim)
    if initial is None and where is not None:
        raise refused(name, "with `where`, there may be no elements, so an initial value is needed", got="initial=None",
                      wanted="an initial value", todo="pass initial=...", kind=CorejaxValueError)
    if initial is None and 0 in [aval.shape[a] for a in axes]:
        raise refused(name, "an array without elements has no extreme", got=str(aval),
                      wanted="a positive size along the axes",
                      todo="pass initial=..., or test the shape first", kind=CorejaxValueError)
    if aval.weak_type:
        x = _converted(x, aval.dtype)
    if where is not None:
        x = _masked(name, x, where, identity(aval.dtype))
    found = _kept(name, reduce(x, axes), aval.shape, axes, keepdims)
    return found if initial is None else choose(found, _initial(name, initial, aval.dtype))


def _initial(name: str, initial: Any, dtype: np.dtype) -> Any:
    if aval_of(initial).shape:
        raise refused(name, "the initial value must be a number", got=str(aval_of(initial)), wanted="a scalar",
                      todo="combine an array with the result instead", kind=CorejaxValueError)
    scalar = families.weak_scalar(initial, dtype) if type(initial) in dtypes.PYTHON_SCALARS else None
    return _converted(initial if scalar is None else scalar, dtype)


def _truth(name: str, reduce: Callable[..., Any], x: Any, identity: bool, axis: AxisSpec, out: Any, keepdims: bool,
           where: Any) -> Any:
    _no_out(name, out)
    aval = aval_of(x)
    x = _converted(x if aval.dtype == dtypes.bool_ else lax.ne(x, 0), dtypes.bool_)
    if where is not None:
        x = _masked(name, x, where, identity)
    axes = canonical_axes(name, axis, aval.ndim)
    return _kept(name, reduce(x, axes), aval.shape, axes, keepdims)


def _position(name: str, find: Callable[..., Any], x: Any, axis: int | None, out: Any, keepdims: bool) -> Any:
    _no_out(name, out)
    shape = aval_of(x).shape
    if axis is None:
        found = find(lax.reshape(x, (product_of(shape),)), 0)
        return _kept(name, found, shape, tuple(range(len(shape))), keepdims)
    axis = shaping.canonical_axis(name, axis, len(shape))
    return _kept(name, find(x, axis), shape, (axis,), keepdims)


def _no_out(name: str, out: Any) -> None:
    if out is not None:
        raise refused(name, "arrays are immutable, so the result can't be written to one", got="out=...",
                      wanted="out=None", todo="use the returned result", kind=CorejaxTypeError)


def _kept(name: str, x: Any, shape: tuple[int, ...], axes: tuple[int, ...], keepdims: bool) -> Any:
    """The result, with the reduced axes kept at size 1 if `keepdims` is set."""
    if not shaping.as_flag(name, "keepdims", keepdims) or not axes:
        return x
    return lax.reshape(x, _with_ones(shape, axes))


@lru_cache(maxsize=4096)
def _with_ones(shape: tuple[int, ...], axes: tuple[int, ...]) -> tuple[int, ...]:
    return tuple([1 if d in axes else n for d, n in enumerate(shape)])


def _converted(x: Any, dtype: np.dtype) -> Any:
    """The operand in this dtype, and not weak: what is computed of many elements isn't a number in the program."""
    aval = aval_of(x)
    kept = aval.dtype == dtype and not aval.weak_type and hasattr(x, "aval")
    return x if kept else lax.convert_element_type(x, dtype)


def _summed_dtype(x: Any, dtype: Any, at_least_default: bool = True) -> np.dtype:
    """The dtype of sums and products: the requested one; else numbers at least as wide as the default integer."""
    if dtype is not None:
        return dtypes.canonical(dtype)
    own, default = aval_of(x).dtype, dtypes.default_dtype("i")
    if own == dtypes.bool_:
        return default
    if at_least_default and dtypes.is_integer(own) and own.itemsize < default.itemsize:
        return np.dtype(f"{dtypes.kind(own)}{default.itemsize}")
    return own


def _warned_of(name: str, x: Any, dtype: np.dtype) -> Any:
    """The operand, without its imaginary parts if that dtype can't hold them: there is a warning of this, once."""
    if not dtypes.is_complex(aval_of(x).dtype) or dtypes.is_complex(dtype) or dtype == dtypes.bool_:
        return x
    warn(f"{name}: with dtype={dtypes.long_name(dtype)}, the imaginary parts are lost", ComplexWarning)
    return lax.real(x)


def _averaged_dtypes(x: Any, dtype: Any) -> tuple[np.dtype, np.dtype]:
    """The dtype of a mean, and the one to sum in: a sum can exceed the range or precision that the mean needs."""
    aval = aval_of(x)
    wanted = dtypes.inexact(aval.dtype, aval.weak_type) if dtype is None else dtypes.canonical(dtype)
    if dtypes.is_complex(wanted) or (dtypes.is_inexact(aval.dtype) and dtypes.is_inexact(wanted)):
        return wanted, accumulator(wanted)
    return wanted, dtypes.float64 if wanted == dtypes.float64 else dtypes.default_dtype("f")


def _masked(name: str, x: Any, where: Any, value: Any) -> Any:
    """`x` with `value` where the mask is false; the mask broadcasts to the shape of `x`."""
    return lax.select(_spread_mask(name, where, x.shape), x, lax.full(x.shape, value, x.dtype))


def _spread_mask(name: str, where: Any, shape: tuple[int, ...]) -> Any:
    mask = aval_of(where)
    if mask.dtype != dtypes.bool_:
        raise refused(name, "`where` must be a mask of the elements", got=str(mask),
                      wanted=f"booleans of a shape that broadcasts to {shape}", todo="compare to get booleans")
    return _spread(name, "`where` must be a mask of the elements", where, shape)


def _spread(name: str, problem: str, x: Any, shape: tuple[int, ...]) -> Any:
    """`x` broadcast to the shape of the operand."""
    own = aval_of(x)
    lead = len(shape) - own.ndim
    if lead < 0 or [n for n, m in zip(shape[lead:], own.shape, strict=True) if m not in (1, n)]:
        raise refused(name, problem, got=str(own), wanted=f"a shape that broadcasts to {shape}",
                      todo="reshape it to the last axes of the operand")
    return lax.broadcast_in_dim(x, shape, tuple(range(lead, len(shape))))


def _count(x: Any, axis: AxisSpec, keepdims: bool, where: Any, dtype: np.dtype) -> Any:
    """How many elements go into each result: a Python number, unless there is a mask."""
    aval = aval_of(x)
    if where is not None:
        return sum(lax.convert_element_type(_spread_mask("mean", where, aval.shape), dtype), axis, None, None, keepdims)
    return float(product_of([aval.shape[a] for a in canonical_axes("mean", axis, aval.ndim)]))
