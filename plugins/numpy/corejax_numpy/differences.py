"""Differences of neighbours, and what is built on them: derivatives, integrals, interpolation, unwrapped angles."""

# mypy: no-warn-return-any
# What roles return has no type that a checker knows.

from __future__ import annotations

from collections.abc import Sequence
from math import pi
from typing import Any

import numpy as np

from corejax import lax
from corejax.core import Array, ArrayLike, aval_of, dtypes
from corejax.errors import CorejaxTypeError, CorejaxValueError
from corejax.plugin import directly, operators, refused, shaping
from corejax_lax_basic import as_dtype, of_one_dtype
from corejax_numpy._arrays import array
from corejax_numpy._choices import as_inexact, canonical_axes, flat
from corejax_numpy._in_memory import lines as in_memory_lines
from corejax_numpy._picking import operand, pick
from corejax_numpy._searching import places_among
from corejax_numpy._values import constant, spread_to

__all__ = ["diff", "ediff1d", "gradient", "interp", "trapezoid", "unwrap"]


def _part(x: Any, at: int, start: int, stop: int) -> Any:
    """A slice along an axis; negative bounds count from the end."""
    size = aval_of(x).shape[at]
    first, last, _ = slice(start, stop if stop else None).indices(size)
    return lax.slice_in_dim(x, first, max(first, last), axis=at)


def _differences(x: Any, at: int) -> Any:
    """Each element less the one before it along an axis; for booleans, whether they differ."""
    size = aval_of(x).shape[at]
    later, earlier = _part(x, at, min(1, size), size), _part(x, at, 0, max(size - 1, 0) or -size)
    return lax.ne(later, earlier) if aval_of(x).dtype == dtypes.bool_ else lax.sub(later, earlier)


@directly(in_memory_lines.diff, whole=True)
def diff(a: ArrayLike, n: int = 1, axis: int = -1, prepend: ArrayLike | None = None,
         append: ArrayLike | None = None) -> Array:
    """Each element less the one before it along an axis, `n` times; `prepend` and `append` are joined to it first.

    >>> jnp.diff(jnp.array([1.0, 4.0, 9.0]))
    Array([3., 5.], dtype=float64)
    """
    x, times = array(a), shaping.as_int("diff", "n", n)
    if times < 0:
        raise refused("diff", "differences can't be taken less than 0 times", got=f"n={times}", wanted="0 or more",
                      todo="pass a count", kind=CorejaxValueError)
    if not aval_of(x).ndim:
        raise refused("diff", "a scalar has no neighbours", got=str(aval_of(x)), wanted="at least one axis",
                      todo="pass an array", kind=CorejaxValueError)
    at = shaping.canonical_axis("diff", axis, aval_of(x).ndim)
    if times == 0:
        return x
    ends = [_beside(part, x, at) for part in (prepend, append) if part is not None]
    if ends:
        x = lax.concatenate(of_one_dtype([*ends[:1 if prepend is not None else 0], x,
                                          *ends[1 if prepend is not None else 0:]]), at)
    for _ in range(times):
        x = _differences(x, at)
    return x


def _beside(part: Any, x: Any, at: int) -> Any:
    """What is joined to an array: a number becomes one element along the axis."""
    if type(part) in dtypes.PYTHON_SCALARS:
        part = of_one_dtype([part, x])[0]
    part = array(part)
    if aval_of(part).ndim:
        return part
    return spread_to(part, tuple([1 if d == at else n for d, n in enumerate(aval_of(x).shape)]))


@directly(in_memory_lines.ediff1d, whole=True)
def ediff1d(ary: ArrayLike, to_end: ArrayLike | None = None, to_begin: ArrayLike | None = None) -> Array:
    """Each element of the flattened array less the one before it, between other elements.

    >>> jnp.ediff1d(jnp.array([1.0, 4.0, 9.0]), to_begin=0.0)
    Array([0., 3., 5.], dtype=float64)
    """
    x = flat(array(ary))
    dtype = aval_of(x).dtype
    if dtype == dtypes.bool_:
        raise refused("ediff1d", "booleans can't be subtracted", got=str(aval_of(x)), wanted="numbers",
                      todo="convert them first: x.astype(int)")
    parts = [_differences(x, 0)]
    for name, end in (("to_end", to_end), ("to_begin", to_begin)):
        if end is None:
            continue
        found = flat(as_dtype(end, dtype) if type(end) is int else array(end))
        if np.promote_types(dtype, dtype) != dtype or "biufc".index(dtypes.kind(aval_of(found).dtype).replace(
                "u", "i")) > "biufc".index(dtypes.kind(dtype).replace("u", "i")):
            raise refused("ediff1d", f"{name} can't be stored beside the differences", got=str(aval_of(found)),
                          wanted=dtypes.long_name(dtype), todo="convert one of them with .astype(...)",
                          kind=CorejaxTypeError)
        found = operators.astype(found, dtype)
        parts = [*parts, found] if name == "to_end" else [found, *parts]
    return lax.concatenate(parts, 0)


# Derivatives and integrals on a grid

@directly(in_memory_lines.gradient, whole=True)
def gradient(f: ArrayLike, *varargs: ArrayLike, axis: int | Sequence[int] | None = None,
             edge_order: int | None = None) -> Array | tuple[Array, ...]:
    """The derivative along an axis by central differences, at the ends by one-sided ones; a tuple for several axes.

    `varargs` are the spacings, or the coordinates along each axis: one number for all, or one for each axis.

    >>> jnp.gradient(jnp.array([1.0, 2.0, 4.0, 8.0]))
    Array([1. , 1.5, 3. , 4. ], dtype=float64)
    """
    x = as_inexact(array(f))
    axes = canonical_axes("gradient", axis, aval_of(x).ndim)
    order = 1 if edge_order is None else shaping.as_int("gradient", "edge_order", edge_order)
    if order not in (1, 2):
        raise refused("gradient", "there are differences of two orders at the ends", got=f"edge_order={order}",
                      wanted="1 or 2", todo="leave it out: it is 1", kind=CorejaxValueError)
    spacings: list[Any] = [1.0] * len(axes) if not varargs else list(varargs) * (len(axes) if len(varargs) == 1 else 1)
    if len(spacings) != len(axes):
        raise refused("gradient", "each axis needs a spacing", got=f"{len(varargs)} for {len(axes)} axes",
                      wanted="one number, or as many spacings as axes", todo="pass one for each axis")
    found = [_along(x, at, spacing, order) for at, spacing in zip(axes, spacings, strict=True)]
    return found[0] if len(found) == 1 else tuple(found)


def _along(x: Any, at: int, spacing: Any, order: int) -> Any:
    size = aval_of(x).shape[at]
    if size < order + 1:
        raise refused("gradient", "there are too few elements along the axis", got=str(aval_of(x)),
                      wanted=f"at least {order + 1} of them", todo="pass more elements", kind=CorejaxValueError)
    ends = [_part(x, at, k, k + 1) for k in range(order + 1)]
    others = [_part(x, at, size - 1 - k, size - k) for k in range(order + 1)]
    before, here, after = _part(x, at, 0, size - 2) if size > 2 else _part(x, at, 0, -size), _part(
        x, at, 1, size - 1), _part(x, at, 2, size)
    place = spacing if type(spacing) in dtypes.PYTHON_SCALARS else array(spacing)
    if not aval_of(place).ndim:
        inner = (after - before) / (2.0 * place)
        first, last = [_one_sided(part, place, place, sign) for part, sign in ((ends, 1), (others, -1))]
    else:
        wide = _widths(x, at, place, size)
        one, other = _part(wide, at, 0, -1), _part(wide, at, 1, size - 1)
        inner = (before * (-other / (one * (one + other))) + here * ((other - one) / (one * other))
                 + after * (one / (other * (one + other))))
        first = _one_sided(ends, _part(wide, at, 0, 1), _part(wide, at, 1, 2) if order == 2 else None, 1)
        last = _one_sided(others, _part(wide, at, size - 2, size - 1),
                          _part(wide, at, size - 3, size - 2) if order == 2 else None, -1)
    return lax.concatenate(of_one_dtype([first, inner, last]), at)


def _widths(x: Any, at: int, place: Any, size: int) -> Any:
    """Distances of coordinates, along the axis."""
    if aval_of(place).shape != (size,):
        raise refused("gradient", "the coordinates don't fit the axis", got=str(aval_of(place)), kind=CorejaxValueError,
                      wanted=f"a number, or {size} coordinates", todo="pass one for each element along the axis")
    found = _differences(as_inexact(place), 0)
    return lax.reshape(found, tuple([size - 1 if d == at else 1 for d in range(aval_of(x).ndim)]))


def _one_sided(ends: Sequence[Any], one: Any, other: Any, sign: int) -> Any:
    """The derivative at the first of two or three neighbours, from their distances."""
    if len(ends) == 2:
        return (ends[1] - ends[0]) / one if sign > 0 else (ends[0] - ends[1]) / one
    slope = (ends[0] * -((2.0 * one + other) / (one * (one + other))) + ends[1] * ((one + other) / (one * other))
             + ends[2] * -(one / (other * (one + other))))
    return slope if sign > 0 else -slope


@directly(in_memory_lines.trapezoid, whole=True)
def trapezoid(y: ArrayLike, x: ArrayLike | None = None, dx: ArrayLike = 1.0, axis: int = -1) -> Array:
    """The integral along an axis by the trapezoidal rule, at coordinates `x` or at distances `dx`.

    >>> jnp.trapezoid(jnp.array([0.0, 1.0, 4.0]))
    Array(3., dtype=float64)
    """
    y = as_inexact(array(y))
    at = shaping.canonical_axis("trapezoid", axis, aval_of(y).ndim)
    size = aval_of(y).shape[at]
    widths: Any = dx
    if x is not None:
        points = array(x)
        if aval_of(points).ndim == 1:
            points = lax.reshape(points, (aval_of(points).size, *[1] * (aval_of(y).ndim - 1 - at)))
            widths = _differences(points, 0)
        else:
            widths = _differences(points, shaping.canonical_axis("trapezoid", axis, aval_of(points).ndim))
    if size > 1 and not aval_of(widths).shape:  # one sum of the elements, without moving any
        ends = _part(y, at, 0, 1) + _part(y, at, size - 1, size)
        inner = operators.sum(_part(y, at, 1, size - 1), at)
        return (operators.squeeze(ends, at) / 2.0 + inner) * widths
    sides = _part(y, at, min(1, size), size) + _part(y, at, 0, max(size - 1, 0) or -size)
    return operators.sum(sides * widths / 2.0, at)


# Lines through points

@directly(in_memory_lines.interp, arrays=3, whole=True)
def interp(x: ArrayLike, xp: ArrayLike, fp: ArrayLike, left: ArrayLike | str | None = None,
           right: ArrayLike | str | None = None, period: ArrayLike | None = None) -> Array:
    """The values at `x` of the line through the points (xp, fp), where `xp` rises; beyond its ends, as at them.

    `left` and `right` are the values beyond, or "extrapolate"; with a `period`, the line starts anew after it.

    >>> jnp.interp(jnp.array([0.5, 3.0]), jnp.array([0.0, 1.0]), jnp.array([1.0, 3.0]))
    Array([2., 3.], dtype=float64)
    """
    xp, fp = array(xp), array(fp)
    if aval_of(xp).ndim != 1 or aval_of(xp).shape != aval_of(fp).shape or not aval_of(xp).size:
        raise refused("interp", "the points don't fit together", got=f"{aval_of(xp)} and {aval_of(fp)}",
                      wanted="two vectors of one size, which isn't 0", todo="map over other axes with cj.vmap",
                      kind=CorejaxValueError)
    for name, side in (("left", left), ("right", right)):
        if isinstance(side, str) and side != "extrapolate":
            raise refused("interp", f"{name} has no such meaning", got=f"{name}={side!r}", kind=CorejaxValueError,
                          wanted="a value, 'extrapolate' or None", todo="leave it out")
    x, xp = of_one_dtype([operand(x), xp], "f")
    fp = as_inexact(fp)
    if dtypes.is_complex(aval_of(x).dtype):
        raise refused("interp", "places must be real", got=str(aval_of(x)), wanted="real numbers",
                      todo="interpolate along the real axis")
    if dtypes.is_complex(aval_of(fp).dtype):  # as wide as the places
        fp = of_one_dtype([fp, lax.full((), 0, aval_of(xp).dtype)])[0]
        x, xp = of_one_dtype([x, xp])
    else:
        x, xp, fp = of_one_dtype([x, xp, fp])
    if period is not None:
        if type(period) in dtypes.PYTHON_SCALARS and period == 0:
            raise refused("interp", "the period can't be zero", got="period=0", wanted="another number",
                          todo="leave it out", kind=CorejaxValueError)
        return _interpolated(*_periodic(x, xp, fp, period), "extrapolate", "extrapolate")
    return _interpolated(x, xp, fp, left, right)


def _periodic(x: Any, xp: Any, fp: Any, period: Any) -> tuple[Any, Any, Any]:
    period = operators.abs(constant("interp", period, aval_of(xp).dtype))
    x, xp = x % period, xp % period
    xp, fp = lax.sort((xp, fp), 0, num_keys=1)
    size = aval_of(xp).size
    ends = lax.slice_in_dim(xp, size - 1, size) - period, lax.slice_in_dim(xp, 0, 1) + period
    return (x, lax.concatenate([ends[0], xp, ends[1]], 0),
            lax.concatenate([lax.slice_in_dim(fp, size - 1, size), fp, lax.slice_in_dim(fp, 0, 1)], 0))


def _interpolated(x: Any, xp: Any, fp: Any, left: Any, right: Any) -> Any:
    size = aval_of(xp).size
    end = operators.clip(places_among(xp, x, before_equal=False), 1, max(size - 1, 1))
    start = operators.clip(end - 1, 0, size - 1)
    end = operators.clip(end, 0, size - 1)
    x0, x1 = operators.getitem(xp, start), operators.getitem(xp, end)
    f0, f1 = operators.getitem(fp, start), operators.getitem(fp, end)
    width = x1 - x0
    tiny = float(np.spacing(np.finfo(aval_of(xp).dtype).eps)) if aval_of(xp).dtype.isbuiltin == 1 else 0.0
    flat_ = lax.le(lax.abs(width), lax.full_like(width, tiny))
    slope = (f1 - f0) / lax.select(flat_, lax.full_like(width, 1), width)
    at_end = lax.eq(x, x1)  # exact there, as it is at the start
    line = slope * (x - lax.select(at_end, x1, x0)) + lax.select(at_end, f1, f0)
    found = lax.select(flat_, f0, line)
    if not isinstance(left, str):
        found = pick(x < operators.getitem(xp, 0), operators.getitem(fp, 0) if left is None else left, found)
    if not isinstance(right, str):
        found = pick(x > operators.getitem(xp, size - 1), operators.getitem(fp, size - 1) if right is None else right,
                       found)
    return found


@directly(in_memory_lines.unwrap, whole=True)
def unwrap(p: ArrayLike, discont: ArrayLike | None = None, axis: int = -1, period: ArrayLike = 2 * pi) -> Array:
    """Angles without jumps: multiples of the period are added, so that no step is larger than half of it.

    >>> jnp.unwrap(jnp.array([0.0, 3.0, 6.5]), period=6.0)
    Array([0. , 3. , 0.5], dtype=float64)
    """
    x = array(p)
    if dtypes.is_complex(aval_of(x).dtype):
        raise refused("unwrap", "angles must be real", got=str(aval_of(x)), wanted="real numbers",
                      todo="take jnp.angle first")
    at = shaping.canonical_axis("unwrap", axis, aval_of(x).ndim)
    turn: Any = period
    whole = dtypes.is_integer(aval_of(x).dtype) and dtypes.is_integer(aval_of(
        period if type(period) in dtypes.PYTHON_SCALARS else array(period)).dtype)
    x = x if whole else of_one_dtype([x, period], "f")[0]
    size = aval_of(x).shape[at]
    if not size:
        return x
    half = turn // 2 if whole else turn / 2
    step = _differences(x, at)
    turned = (step + half) % turn - half
    ambiguous = (turned == -half) & (step > 0)
    if whole:
        ambiguous = ambiguous & (turn % 2 == 0)
    turned = pick(ambiguous, half, turned)
    limit = half if discont is None else operators.clip(array(discont), half, None)
    moved = pick(operators.abs(step) < limit, 0, turned - step)
    first = _part(x, at, 0, 1)
    rest = _part(x, at, 1, size) + operators.cumsum(moved, at)
    return lax.concatenate(of_one_dtype([first, rest]), at)
