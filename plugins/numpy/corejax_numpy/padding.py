"""Arrays with elements around them."""

# mypy: no-warn-return-any, disable-error-code="call-overload"

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from corejax import lax
from corejax.core import Array, Tracer, aval_of, dtypes
from corejax.errors import CorejaxValueError
from corejax.plugin import NotDirectly, directly, operators, refused, shaping
from corejax_numpy._arrays import array
from corejax_numpy._values import broadcasts, constant, spread
from corejax_numpy.ranges import linspace

__all__ = ["pad"]

Pairs = tuple[tuple[int, int], ...]

#: The keyword arguments of each mode, with their defaults.
_OPTIONS: dict[str, dict[str, Any]] = {
    "constant": {"constant_values": 0}, "edge": {}, "empty": {}, "linear_ramp": {"end_values": 0},
    "maximum": {"stat_length": None}, "mean": {"stat_length": None}, "median": {"stat_length": None},
    "minimum": {"stat_length": None}, "reflect": {"reflect_type": "even"}, "symmetric": {"reflect_type": "even"},
    "wrap": {},
}


def _in_numpy(array: Any, pad_width: Any, mode: str = "constant") -> Any:
    if mode not in ("constant", "edge", "reflect", "symmetric", "wrap"):
        raise NotDirectly
    return np.pad(array, pad_width, mode)


@directly(_in_numpy)
def pad(array: Any, pad_width: Any, mode: str | Callable[..., Any] = "constant", **kwargs: Any) -> Array:
    """The array with so many elements before and after it along each axis: `(before, after)`, for each axis or for all.

    What these are says `mode`: "constant" (`constant_values`), "edge", "linear_ramp" (to `end_values`), "maximum",
    "mean", "median", "minimum" (of `stat_length` elements), "reflect", "symmetric" (of `reflect_type` "even" or "odd"),
    "wrap", "empty"; or a function of a padded vector, its widths, the axis and the other arguments, which returns the
    vector.

    >>> pad(jnp.array([1, 2, 3]), (1, 2)), pad(jnp.array([1, 2, 3]), 2, mode="reflect")
    (Array([0, 1, 2, 3, 0, 0], dtype=int64), Array([3, 2, 1, 2, 3, 2, 1], dtype=int64))
    """
    x = _operand(array)
    widths = _pairs("pad_width", pad_width, x.ndim)
    if callable(mode):
        return _by_function(x, widths, mode, kwargs)
    if mode not in _OPTIONS:
        raise refused("pad", "there is no such mode", got=f"mode={mode!r}"[:80], kind=CorejaxValueError,
                      wanted=", ".join(_OPTIONS), todo="leave it out: it is 'constant'")
    unknown = [name for name in kwargs if name not in _OPTIONS[mode]]
    if unknown:
        raise refused("pad", f"the mode {mode!r} doesn't take {unknown[0]}", got=", ".join(kwargs),
                      kind=CorejaxValueError,
                      wanted=", ".join(_OPTIONS[mode]) or "no further arguments", todo="leave it out")
    options = {**_OPTIONS[mode], **kwargs}
    if mode in ("constant", "empty"):
        return _constant(x, widths, options.get("constant_values", 0))
    for axis, (low, high) in enumerate(widths):
        if low or high:
            if not x.shape[axis]:
                raise refused("pad", f"an empty axis has nothing to go on with by {mode!r}", got=str(x.aval),
                              wanted="mode='constant'", todo="pass another mode", kind=CorejaxValueError)
            x = _ALONG[mode](x, axis, low, high, mode, options)
    return x


_operand = array


def _pairs(what: str, value: Any, ndim: int) -> Pairs:
    """A number before and one after for each axis."""
    if isinstance(value, dict):
        value = [value.get(axis, value.get(axis - ndim, 0)) for axis in range(ndim)]
        value = [one if np.ndim(one) else (one, one) for one in value]
    if isinstance(value, Tracer):
        shaping.as_int("pad", what, value)
    try:
        given = np.asarray(value)
        if given.dtype.kind not in "iu" and given.size:
            raise TypeError("not integers")
        pairs = np.broadcast_to(given, (ndim, 2))
    except (TypeError, ValueError) as error:
        raise refused("pad", f"{what} must be integers", got=repr(value)[:80], kind=CorejaxValueError,
                      wanted=f"n, (before, after), or a pair for each of {ndim} axes",
                      todo="widths are static: they can't be traced values") from error
    if (pairs < 0).any():
        raise refused("pad", f"{what} can't be negative", got=repr(value)[:80], wanted="integers of 0 or more",
                      todo="index the array to cut off elements", kind=CorejaxValueError)
    return tuple([(int(low), int(high)) for low, high in pairs.tolist()])


def _values(name: str, value: Any, x: Any) -> Any:
    """A value before and one after for each axis, in the array's dtype."""
    if type(value) in dtypes.PYTHON_SCALARS:
        value = lax.convert_element_type(value, x.dtype) if type(value) is not int else constant("pad", value, x.dtype)
    value = operators.astype(_operand(value), x.dtype)
    if not broadcasts(value.shape, (x.ndim, 2)):
        raise refused("pad", f"{name} don't fit the axes", got=str(value.aval), kind=CorejaxValueError,
                      wanted=f"a number, (before, after), or a pair for each of {x.ndim} axes", todo="check them")
    return value


def _constant(x: Any, widths: Pairs, values: Any) -> Any:
    values, weak = _values("constant_values", values, x), x.aval.weak_type
    if weak:
        values = lax.convert_element_type.primitive.bind(values, new_dtype=x.dtype, weak_type=True)
    if not values.ndim:
        return lax.pad(x, values, [(low, high, 0) for low, high in widths])
    values = spread("pad", values, (x.ndim, 2))
    for axis, (low, high) in enumerate(widths):
        for side, config in ((0, (low, 0, 0)), (1, (0, high, 0))):
            x = lax.pad(x, values[axis, side], [config if d == axis else (0, 0, 0) for d in range(x.ndim)])
    return x


# Along one axis

def _part(x: Any, axis: int, start: int, stop: int) -> Any:
    return lax.slice_in_dim(x, start, stop, axis=axis)


def _around(low: Any, x: Any, high: Any, axis: int) -> Any:
    return lax.concatenate([part for part in (low, x, high) if part.shape[axis]], axis)


def _wide(one: Any, axis: int, size: int) -> Any:
    """An array of size 1 along an axis, repeated along it."""
    return spread("pad", one, (*one.shape[:axis], size, *one.shape[axis + 1:]))


def _edge(x: Any, axis: int, low: int, high: int, mode: str, options: Any) -> Any:
    size = x.shape[axis]
    return _around(_wide(_part(x, axis, 0, 1), axis, low), x, _wide(_part(x, axis, size - 1, size), axis, high), axis)


def _ramp(x: Any, axis: int, low: int, high: int, mode: str, options: Any) -> Any:
    values = spread("pad", _values("end_values", options["end_values"], x), (x.ndim, 2))
    size = x.shape[axis]
    sides = []
    for side, width, place in ((0, low, 0), (1, high, size - 1)):
        edge = lax.squeeze(_part(x, axis, place, place + 1), (axis,))
        ramp = linspace(values[axis, side], edge, width, endpoint=False, dtype=x.dtype, axis=axis)
        sides.append(lax.rev(ramp, (axis,)) if side else ramp)
    return _around(sides[0], x, sides[1], axis)


def _statistic(x: Any, axis: int, low: int, high: int, mode: str, options: Any) -> Any:
    size, given = x.shape[axis], options["stat_length"]
    lengths = (size, size) if given is None else _pairs("stat_length", given, x.ndim)[axis]
    if 0 in lengths and mode in ("maximum", "minimum"):
        raise refused("pad", f"no elements have no {mode}", got=f"stat_length={given}", wanted="at least 1",
                      todo="leave it out", kind=CorejaxValueError)
    before = _part(x, axis, 0, min(lengths[0], size))
    after = _part(x, axis, size - min(lengths[1], size), size)
    sides = [_wide(_of_part(part, axis, mode), axis, width) for part, width in ((before, low), (after, high))]
    return _around(sides[0], x, sides[1], axis)


def _of_part(part: Any, axis: int, mode: str) -> Any:
    if mode == "median":
        from corejax_numpy import median

        found = median(part, axis=axis, keepdims=True)
    else:
        name = {"maximum": "max", "minimum": "min", "mean": "mean"}[mode]
        found = getattr(operators, name)(part, axis=axis, keepdims=True)
    if not dtypes.is_inexact(part.dtype) and dtypes.is_inexact(aval_of(found).dtype):
        found = operators.round(found)
    return operators.astype(found, part.dtype)


def _mirrored(x: Any, axis: int, low: int, high: int, mode: str, options: Any) -> Any:
    """Elements that are reflected at the ends, or that start again there."""
    size, odd = x.shape[axis], options.get("reflect_type", "even")
    if odd not in ("even", "odd"):
        raise refused("pad", "there is no such reflection", got=f"reflect_type={odd!r}", wanted="'even' or 'odd'",
                      todo="leave it out: it is 'even'", kind=CorejaxValueError)
    if mode == "reflect" and size == 1:
        return _edge(x, axis, low, high, mode, options)
    if odd == "odd":
        return _odd(x, axis, low, high, mode)
    gap = 1 if mode == "reflect" else 0
    if max(low, high) > size - gap:
        return _taken(x, axis, np.pad(np.arange(size), (low, high), mode))
    if mode == "wrap":
        return _around(_part(x, axis, size - low, size), x, _part(x, axis, 0, high), axis)
    before, after = _part(x, axis, gap, gap + low), _part(x, axis, size - gap - high, size - gap)
    return _around(lax.rev(before, (axis,)), x, lax.rev(after, (axis,)), axis)


def _odd(x: Any, axis: int, low: int, high: int, mode: str) -> Any:
    """Reflected through the elements at the ends, so that what goes up goes on upwards."""
    size = x.shape[axis]
    period = 2 * (size - 1) if mode == "reflect" else 2 * size
    turns, place = np.divmod(np.arange(-low, size + high), period)
    back = place >= size
    place = np.where(back, period - place - (mode == "symmetric"), place)
    first, last = _part(x, axis, 0, 1), _part(x, axis, size - 1, size)
    shape = [-1 if d == axis else 1 for d in range(x.ndim)]
    sign, lift, rise = [n.astype(x.dtype).reshape(shape) for n in (np.where(back, -1, 1), 2 * back, 2 * turns)]
    return _taken(x, axis, place) * sign + last * lift + (last - first) * rise


def _taken(x: Any, axis: int, places: np.ndarray) -> Any:
    return operators.getitem(x, (*[slice(None)] * axis, places))


_ALONG: dict[str, Callable[..., Any]] = {
    "edge": _edge, "linear_ramp": _ramp, **dict.fromkeys(("maximum", "mean", "median", "minimum"), _statistic),
    **dict.fromkeys(("reflect", "symmetric", "wrap"), _mirrored)}


def _by_function(x: Any, widths: Pairs, function: Callable[..., Any], kwargs: dict[str, Any]) -> Any:
    from corejax_numpy import apply_along_axis

    x = _constant(x, widths, 0)
    for axis, pair in enumerate(widths):
        x = apply_along_axis(function, axis, x, pair, axis, kwargs)
    return x
