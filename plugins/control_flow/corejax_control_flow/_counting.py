"""What `fori_loop` counts: its bounds, the values of the index, and the loop that increments it."""

from __future__ import annotations

import operator
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from corejax import lax
from corejax.core import Array, Jaxpr, ShapedArray, aval_of, dtypes, here, is_concrete, stage, values
from corejax.errors import CorejaxTypeError, CorejaxValueError
from corejax.ir.surgery import inline
from corejax.plugin import carrying


class Bounds(NamedTuple):
    """The bounds of a loop as values, the type of its index, and, if known, where it starts and its length."""

    lower: Any
    upper: Any
    counter: ShapedArray
    known: tuple[int, int] | None


def bounds_of(lower: Any, upper: Any) -> Bounds:
    found = [*values([lower], "fori_loop", lambda _: "lower"), *values([upper], "fori_loop", lambda _: "upper")]
    avals = [aval_of(x) for x in found]
    for name, aval, given in zip(("lower", "upper"), avals, (lower, upper), strict=True):
        if aval.shape or not (dtypes.is_integer(aval.dtype) or dtypes.is_float(aval.dtype)):
            raise CorejaxTypeError(f"fori_loop: {name} must be a single integer", where=here(),
                                   got=f"{given!r:.60} ({aval})",
                                   wanted="an integer without axes", todo="count in integers, and compute with them")
    one, other = [(aval.dtype, aval.weak_type) for aval in avals]
    if one[0] != other[0] and one[1] == other[1]:
        raise CorejaxTypeError("fori_loop: the bounds differ in dtype",
                               got=f"{avals[0]} and {avals[1]}: {lower!r:.40}, {upper!r:.40}",
                               wanted="one dtype, which is that of the index", where=here(), todo="convert one of them")
    whole = [_whole_number(x) for x in found]
    if whole[0] is not None and whole[1] is not None:
        return Bounds(found[0], found[1], aval_of(0), (whole[0], max(0, whole[1] - whole[0])))
    dtype, weak = dtypes.promote(one, other)
    counter = ShapedArray((), dtype, weak)
    first, last = [x if aval_of(x).invariant is counter else _converted(x, counter) for x in found]
    return Bounds(first, last, carrying.along(counter, avals[0].varying | avals[1].varying), None)


def _whole_number(x: Any) -> int | None:
    """The value of a bound, if it is known and a whole number."""
    if not is_concrete(x):
        return None
    if dtypes.is_integer(aval_of(x).dtype):
        return operator.index(x)
    value = float(x)
    return int(value) if value.is_integer() else None


def _converted(x: Any, aval: ShapedArray) -> Any:
    if not is_concrete(x):
        return lax.convert_element_type.primitive.bind(x, new_dtype=aval.dtype, weak_type=aval.weak_type)
    return _constant(operator.index(x) if dtypes.is_integer(aval.dtype) else x, aval)


def _constant(value: Any, aval: ShapedArray) -> Array:
    return Array.from_host(dtypes.number(value, aval.dtype), aval)


def indices(bounds: Bounds) -> Iterator[Any]:
    """The values of the index, one after the other."""
    if bounds.known is not None:
        first, length = bounds.known
        yield from (_constant(i, bounds.counter) for i in range(first, first + length))
        return
    i = bounds.lower
    while lax.lt(i, bounds.upper):
        yield i
        i = lax.add(i, _constant(1, bounds.counter))


class Counting(NamedTuple):
    """A body that increments the index, and a condition of an upper bound, the index and a carry."""

    body: Jaxpr
    cond: Jaxpr


@carrying.remembered
def counted(jaxpr: Jaxpr, num_consts: int) -> Counting:
    """The counting loop for a body of (constants, index, carry)."""
    index = jaxpr.invars[num_consts].aval
    following = stage(lambda i: [lax.add(i, _constant(1, index.invariant))], [index]).jaxpr
    new, (next_index,) = inline(following, [jaxpr.invars[num_consts]])
    body = jaxpr.replace(eqns=[*new, *jaxpr.eqns], outvars=[next_index, *jaxpr.outvars])
    carry = jaxpr.in_avals[num_consts + 1:]
    cond = stage(lambda upper, i, *_: [lax.lt(i, upper)], [index, index, *carry], "cond").jaxpr
    return Counting(body, cond)


def steps_per_round(unroll: int | bool | None, length: int) -> int:
    """The number of steps in one round of the loop, between 1 and the length of the loop."""
    if unroll is None or isinstance(unroll, (bool, np.bool_)):
        return max(1, length) if unroll else 1
    try:
        found = operator.index(unroll)
    except TypeError as error:
        raise CorejaxTypeError("fori_loop: unroll must be an integer", got=repr(unroll)[:80], where=here(),
                               wanted="a number of steps, or True for all of them", todo="pass an int") from error
    if found < 0:
        raise CorejaxValueError("fori_loop: unroll is negative", got=found, wanted="at least 1", where=here())
    return max(1, min(found, length))
