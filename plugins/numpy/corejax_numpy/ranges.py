"""Numbers in steps: of equal size, or by equal factors."""

# mypy: no-warn-return-any, disable-error-code="call-overload"

from __future__ import annotations

from math import ceil
from typing import Any

import numpy as np

from corejax import lax
from corejax.core import Array, DTypeLike, aval_of, dtypes, is_concrete
from corejax.dtypes import result_type
from corejax.errors import CorejaxValueError
from corejax.plugin import directly, operators, refused, shaping
from corejax_lax_basic import promoted
from corejax_numpy._arrays import array
from corejax_numpy._asked import placed, static
from corejax_numpy._picking import operand
from corejax_numpy._values import constant, spread

__all__ = ["arange", "geomspace", "linspace", "logspace"]


# By steps

def _arange(start: Any, stop: Any = None, step: Any = None, dtype: Any = None, *, device: Any = None) -> Any:
    return np.arange(0, start, 1, dtype) if stop is None else np.arange(start, stop, 1 if step is None else step, dtype)


@directly(_arange, arrays=0)
def arange(start: Any, stop: Any = None, step: Any = None, dtype: DTypeLike | None = None, *, device: Any = None,
           out_sharding: Any = None) -> Array:
    """The numbers from `start` up to `stop`, without it, in steps; `arange(stop)` starts at 0.

    >>> arange(3), arange(1.0, 2.0, 0.5)
    (Array([0, 1, 2], dtype=int64), Array([1. , 1.5], dtype=float64))
    """
    if stop is None:
        start, stop = 0, start
    numbers = [static("arange", what, value) for what, value in (("start", start), ("stop", stop), ("step", step))
               if value is not None]
    if dtype is None:
        dtype = result_type(*numbers)
    return placed("arange", _counted(*numbers, dtype=dtypes.canonical(dtype)), device, out_sharding)


def _counted(start: Any, stop: Any, step: Any = 1, *, dtype: np.dtype) -> Any:
    for number in (start, stop, step):
        if np.ndim(number) or not isinstance(number, (int, float, np.number)) or isinstance(number, complex):
            raise refused("arange", "start, stop and step must be real numbers", got=repr(number)[:80],
                          wanted="numbers without axes", todo="use jnp.linspace for complex numbers or arrays")
    if dtypes.kind(dtype) not in "iuf":
        raise refused("arange", f"it can't count in {dtypes.long_name(dtype)}", got=f"dtype={dtypes.long_name(dtype)}",
                      wanted="integers or floats", todo="convert the result")
    if step == 0:
        raise refused("arange", "the step is 0", got=step, wanted="a positive or negative step", kind=CorejaxValueError,
                      todo="use jnp.full for equal numbers")
    length = (stop - start) / step if not _are_whole(start, stop, step) else -((start - stop) // step)
    if length != length or abs(length) == np.inf:
        raise refused("arange", "that many numbers can't be counted", got=f"{start}, {stop}, {step}",
                      wanted="finite numbers", kind=CorejaxValueError, todo="check the bounds")
    size = max(0, ceil(length))
    for number in (start, start + step)[:size]:  # as far as NumPy looks
        if type(number) is int:
            dtypes.check_python_int(number, dtype)
    counted = lax.iota(dtype, size)
    if _are_whole(start, stop, step):
        by: Any = int(step)
    else:  # as NumPy: all steps are as the first one is rounded
        by = dtype.type(start + step) - dtype.type(start)
    if by != 1:
        counted = operators.mul(counted, _in(dtype, by))
    return operators.add(counted, _in(dtype, start)) if start != 0 else counted


def _are_whole(*numbers: Any) -> bool:
    return all([isinstance(n, (int, np.integer)) for n in numbers])


def _in(dtype: np.dtype, number: Any) -> Any:
    return np.asarray(number).astype(dtype)[()] if dtypes.is_integer(dtype) else dtype.type(number)


# Between bounds

@directly(lambda start, stop, num=50, endpoint=True, retstep=False, dtype=None, axis=0, *, device=None:
          np.linspace(start, stop, num, endpoint, retstep, dtype, axis), arrays=2)
def linspace(start: Any, stop: Any, num: int = 50, endpoint: bool = True, retstep: bool = False,
             dtype: DTypeLike | None = None, axis: int = 0, *, device: Any = None) -> Array | tuple[Array, ...]:
    """So many numbers at equal distances, along a new axis; with `retstep`, their distance, too.

    >>> linspace(0.0, 1.0, 3), linspace(0, 4, 4, endpoint=False)
    (Array([0. , 0.5, 1. ], dtype=float64), Array([0., 1., 2., 3.], dtype=float64))
    """
    line, step = _line("linspace", start, stop, num, shaping.as_flag("linspace", "endpoint", endpoint))
    line = placed("linspace", _as_asked("linspace", line, dtype, axis), device)
    return (line, step) if shaping.as_flag("linspace", "retstep", retstep) else line


def _line(name: str, start: Any, stop: Any, num: Any, endpoint: bool) -> tuple[Any, Any]:
    """Numbers along a first axis, and the step."""
    count = shaping.as_int(name, "a count", num)
    if count < 0:
        raise refused(name, "there can't be so many numbers", got=f"num={count}", wanted="num of 0 or more",
                      todo="check the count", kind=CorejaxValueError)
    start, stop = [operators.astype(x, aval_of(x).dtype) for x in promoted((operand(start), operand(stop)), "f")]
    gaps = count - 1 if endpoint else count
    dtype = aval_of(start).dtype
    whole = operators.sub(stop, start)
    step = operators.truediv(whole, constant(name, float(gaps), dtype)) if gaps > 0 else lax.full(
        aval_of(whole).shape, np.nan, dtype)
    ndim = aval_of(whole).ndim
    place = lax.broadcasted_iota(dtype, (count, *[1] * ndim), 0)
    line = operators.add(operators.mul(place, step if gaps > 0 else whole), start)
    if endpoint and count > 1:
        last = spread(name, stop, (1, *aval_of(whole).shape))
        line = lax.concatenate([lax.slice_in_dim(line, 0, count - 1), last], 0)
    return line, step


def _as_asked(name: str, line: Any, dtype: DTypeLike | None, axis: int) -> Any:
    """The numbers in the dtype that was asked for, along the axis that was."""
    if dtype is not None:
        wanted = dtypes.canonical(dtype)
        if dtypes.is_integer(wanted) and dtypes.is_float(line.dtype):
            line = lax.floor(line) if name == "linspace" else _snapped(line)
        line = operators.astype(line, wanted)
    at = shaping.canonical_axis(name, axis, line.ndim)
    return lax.transpose(line, (*range(1, at + 1), 0, *range(at + 1, line.ndim))) if at else line


def _snapped(powers: Any) -> Any:
    """Powers, with those that miss an integer by rounding errors at that integer: as integers they'd lose one."""
    nearest = lax.round(powers, lax.RoundingMethod.TO_NEAREST_EVEN)
    near = operators.abs(powers - nearest) <= operators.abs(nearest) * (32 * float(np.finfo(powers.dtype).eps))
    return lax.select(near, nearest, powers)


@directly(lambda start, stop, num=50, endpoint=True, base=10.0: np.logspace(start, stop, num, endpoint, base), arrays=2)
def logspace(start: Any, stop: Any, num: int = 50, endpoint: bool = True, base: Any = 10.0,
             dtype: DTypeLike | None = None, axis: int = 0) -> Array:
    """Powers of a base, whose exponents are at equal distances.

    >>> logspace(0, 2, 3)
    Array([  1.,  10., 100.], dtype=float64)
    """
    start, stop, base = array(start), array(stop), array(base)
    if base.ndim:  # it is broadcast beside the bounds
        ndim = max(start.ndim, stop.ndim, base.ndim)
        start, stop, base = [lax.reshape(x, (*[1] * (ndim - x.ndim), *x.shape)) for x in (start, stop, base)]
        base = lax.expand_dims(base, (0,))
    line, _ = _line("logspace", start, stop, num, shaping.as_flag("logspace", "endpoint", endpoint))
    return _as_asked("logspace", operators.pow(base, line), dtype, axis)


@directly(lambda start, stop, num=50, endpoint=True: np.geomspace(start, stop, num, endpoint), arrays=2)
def geomspace(start: Any, stop: Any, num: int = 50, endpoint: bool = True, dtype: DTypeLike | None = None,
              axis: int = 0) -> Array:
    """Numbers each of which is the one before times the same factor.

    >>> geomspace(1, 8, 4), geomspace(1, 1000, 4, dtype=int)
    (Array([1., 2., 4., 8.], dtype=float64), Array([   1,   10,  100, 1000], dtype=int64))
    """
    whole = dtype is not None and dtypes.is_integer(dtypes.canonical(dtype))
    if whole and is_concrete(start) and is_concrete(stop):  # NumPy's very powers: as integers, a bit less is one less
        ends = [np.asarray(end) for end in (start, stop)]
        count, to_end = shaping.as_int("geomspace", "a count", num), shaping.as_flag("geomspace", "endpoint", endpoint)
        if count >= 0 and all([end.dtype.char in "ldilq?bBhHILQ" for end in ends]):
            with np.errstate(all="ignore"):
                return _as_asked("geomspace", array(np.geomspace(*ends, count, to_end, dtypes.canonical(dtype))), dtype,
                                 axis)
    start, stop = [operators.astype(x, aval_of(x).dtype) for x in promoted((operand(start), operand(stop)), "f")]
    shape = np.broadcast_shapes(aval_of(start).shape, aval_of(stop).shape)
    start, stop = spread("geomspace", start, shape), spread("geomspace", stop, shape)
    sign = lax.sign(start)  # of complex numbers, the number divided by its size
    first, last = operators.truediv(start, sign), operators.truediv(stop, sign)
    line, _ = _line("geomspace", lax.log(first), lax.log(last), num, shaping.as_flag("geomspace", "endpoint", endpoint))
    line = operators.mul(lax.exp(line), sign)
    count = aval_of(line).shape[0]
    ends = [lax.expand_dims(start, (0,))] if count else []
    inner = lax.slice_in_dim(line, len(ends), max(count - (1 if endpoint else 0), len(ends)))
    ends += [inner, lax.expand_dims(stop, (0,))] if endpoint and count > 1 else [inner]
    return _as_asked("geomspace", lax.concatenate(ends, 0), dtype, axis)


def along(name: str, one: Any) -> Any:
    """The numbers that a slice stands for."""
    if not isinstance(one, slice) or one.stop is None:
        raise refused(name, "it is indexed with slices that have an end", got=repr(one)[:80], wanted="start:stop:step",
                      todo=f"write jnp.{name}[0:5], or jnp.{name}[0:5:3j] for 3 points")
    start = 0 if one.start is None else one.start
    step = 1 if one.step is None else one.step
    if isinstance(step, complex):
        return linspace(start, one.stop, int(abs(step)))
    return arange(start, one.stop, step)
