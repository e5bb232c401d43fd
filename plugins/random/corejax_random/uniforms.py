"""Bits, and what is equally likely: floats between bounds, integers between bounds, two outcomes."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

from corejax import lax
from corejax.core import Array, ArrayLike, DTypeLike, aval_of, dtypes
from corejax.dtypes import finfo
from corejax.errors import CorejaxOverflowError, CorejaxValueError
from corejax.plugin import jit, public, refused
from corejax_lax_basic import broadcast_shapes
from corejax_random._asked import Shape, as_dtype, broadcast, common_shape, placed, real, sizes
from corejax_random.keyed import random_bits_p, random_split_p
from corejax_random.keys import single_key

__all__ = ["bernoulli", "bits", "rademacher", "randint", "uniform"]


@public
def bits(key: ArrayLike, shape: Any = (), dtype: DTypeLike | None = None, *, out_sharding: Any = None) -> Array:
    """Random bits, as unsigned integers.

    >>> [hex(word) for word in random.bits(random.key(0), (2,), "uint32").tolist()]
    ['0xf29a4fa7', '0xfa843692']
    """
    key, _ = single_key("bits", key)
    width = 8 * as_dtype("bits", dtype, "u").itemsize
    return placed(_bits(key, sizes("bits", shape), width), out_sharding)


@jit(static_argnums=(1, 2))
def _bits(key: Any, shape: Shape, width: int) -> Any:
    return draw_bits(key, width, shape)


def draw_bits(key: Any, width: int, shape: Shape) -> Any:
    """Random bits of a key, within a program."""
    return random_bits_p.primitive.bind(key, bit_width=width, shape=shape)


def split(key: Any, count: int = 2) -> list[Any]:
    """New keys, within a program."""
    keys = random_split_p.primitive.bind(key, shape=(count,))
    return [keys[i] for i in range(count)]


@public
def uniform(key: ArrayLike, shape: Any = (), dtype: DTypeLike | None = None, minval: ArrayLike = 0.0,
            maxval: ArrayLike = 1.0, *, out_sharding: Any = None) -> Array:
    """Floats from `minval` on, below `maxval`, all equally likely.

    >>> random.uniform(random.key(0), (3,), "float32", minval=-1.0)
    Array([ 0.895...,  0.957..., -0.335...], dtype=float32)
    """
    key, _ = single_key("uniform", key)
    dtype, shape = as_dtype("uniform", dtype), sizes("uniform", shape)
    if type(minval) is float and type(maxval) is float and minval == 0.0 and maxval == 1.0:
        return placed(_unit(key, shape, dtype), out_sharding)
    real("uniform", None, minval=minval, maxval=maxval)
    common_shape("uniform", shape, minval, maxval)
    return placed(_uniform(key, minval, maxval, shape, dtype), out_sharding)


@jit(static_argnums=(1, 2))
def _unit(key: Any, shape: Shape, dtype: np.dtype) -> Any:
    return draw_unit(key, shape, dtype)


@jit(static_argnums=(3, 4))
def _uniform(key: Any, minval: Any, maxval: Any, shape: Shape, dtype: np.dtype) -> Any:
    return draw_uniform(key, shape, dtype, minval, maxval)


def draw_unit(key: Any, shape: Shape, dtype: np.dtype) -> Any:
    """Floats from 0 on, below 1, within a program."""
    # The largest of them and 0: the compiler can't tell that it is what it was, and so rounds what is made of it as
    # it does what JAX makes of it.
    return lax.max(lax.full(shape, 0, dtype), _fractions(key, shape, dtype))


def _fractions(key: Any, shape: Shape, dtype: np.dtype) -> Any:
    """Floats from 0 on, below 1: random bits are the mantissa of floats from 1 on, below 2."""
    limits = finfo(dtype)
    width, mantissa = limits.bits, limits.nmant
    drawn = draw_bits(key, 8 if mantissa < 8 else width, shape)
    unsigned = np.dtype(f"uint{width}")
    if drawn.aval.dtype != unsigned:
        drawn, spare = lax.convert_element_type(drawn, unsigned), 8 - mantissa
    else:
        spare = width - mantissa
    one = np.array(1.0, dtype).view(unsigned)[()]
    ones = lax.bitwise_or(lax.shift_right_logical(drawn, unsigned.type(spare)), one)
    return lax.bitcast_convert_type(ones, dtype) - dtype.type(1.0)


def draw_uniform(key: Any, shape: Shape, dtype: np.dtype, minval: Any, maxval: Any) -> Any:
    """Floats between bounds, within a program."""
    low, high = [lax.convert_element_type(x, dtype) for x in (minval, maxval)]
    scaled = _fractions(key, shape, dtype) * (high - low) + low
    return lax.max(broadcast(low, shape), scaled)


# Integers


@public
def randint(key: ArrayLike, shape: Any, minval: ArrayLike, maxval: ArrayLike, dtype: DTypeLike | None = None, *,
            out_sharding: Any = None) -> Array:
    """Integers from `minval` on, below `maxval`; `minval` where that isn't above it.

    Bounds that the dtype doesn't hold are moved to the nearest that it does, `maxval` to one above the largest.

    >>> random.randint(random.key(0), (5,), 1, 7, "int32")
    Array([2, 1, 3, 2, 6], dtype=int32)
    """
    key, _ = single_key("randint", key)
    dtype, shape = as_dtype("randint", dtype, "iu"), sizes("randint", shape)
    minval, maxval = _bound("minval", minval), _bound("maxval", maxval)
    common_shape("randint", shape, minval, maxval)
    return placed(_randint(key, minval, maxval, shape, dtype), out_sharding)


def _bound(what: str, x: Any) -> Any:
    """A bound as an integer that fits some dtype."""
    if type(x) is int:
        default = dtypes.default_dtype("i")
        if np.iinfo(default).min <= x <= np.iinfo(default).max:
            return x
        if -2 ** 63 <= x < 2 ** 64:
            return np.int64(x) if x < 2 ** 63 else np.uint64(x)
        raise refused("randint", f"{what} doesn't fit any dtype", got=dtypes.shown(x),
                      wanted="an integer from -2**63 to 2**64 - 1", todo="leave out what no result can be",
                      kind=CorejaxOverflowError)
    real("randint", None, **{what: x})
    if dtypes.is_integer(aval_of(x).dtype):
        return x
    return lax.convert_element_type(x, dtypes.default_dtype("i"))


@jit(static_argnums=(3, 4))
def _randint(key: Any, minval: Any, maxval: Any, shape: Shape, dtype: np.dtype) -> Any:
    if dtype.itemsize >= 4:
        return draw_integers(key, shape, dtype, minval, maxval)
    limits = np.iinfo(dtype)
    low, high = [_clipped(lax.convert_element_type(x, np.int32), limits.min, most)
                 for x, most in ((minval, limits.max), (maxval, limits.max + 1))]
    return lax.convert_element_type(draw_integers(key, shape, np.dtype("int32"), low, high), dtype)


def draw_integers(key: Any, shape: Shape, dtype: np.dtype, minval: Any, maxval: Any) -> Any:
    """Integers between bounds, within a program: two words modulo the number of possible ones, put together."""
    limits = np.iinfo(dtype)
    most_above = np.iinfo(aval_of(maxval).dtype).max
    beyond = lax.gt(maxval, lax.full_like(maxval, min(limits.max, most_above)))
    low, high = [_within(x, dtype) for x in (minval, maxval)]
    unsigned = np.dtype(f"uint{8 * dtype.itemsize}")
    first, second = [draw_bits(one, 8 * dtype.itemsize, shape) for one in split(key)]
    common = broadcast_shapes(aval_of(low).shape, aval_of(high).shape)  # for which most of it is computed once
    low, high, beyond = [broadcast(x, common) for x in (low, high, beyond)]
    empty = lax.le(high, low)
    span = lax.select(empty, lax.full(common, 1, unsigned), lax.convert_element_type(high - low, unsigned))
    span = lax.select(lax.bitwise_and(beyond, lax.gt(high, low)), span + unsigned.type(1), span)
    carry = lax.rem(lax.full_like(span, 2 ** (4 * dtype.itemsize)), span)
    carry = lax.rem(carry * carry, span)
    remainder = _modulo(span, shape)
    offset = remainder(remainder(first) * broadcast(carry, shape) + remainder(second))
    return broadcast(low, shape) + lax.convert_element_type(offset, dtype)


def _modulo(span: Any, shape: Shape) -> Callable[[Any], Any]:
    """A function from an array of this shape to what is left of its elements by division by `span`, which is positive.

    Where many elements are divided by one number, they are multiplied by its reciprocal. That is too small by a part of
    2**bits, so the quotient is too small by at most one. Divisions would keep a whole program from being vectorized.
    """
    aval = aval_of(span)
    if aval.size == prod(shape):
        divisors = broadcast(span, shape)
        return lambda x: lax.rem(x, divisors)
    reciprocal = broadcast(lax.div(lax.full_like(span, np.iinfo(aval.dtype).max), span), shape)
    divisors = broadcast(span, shape)

    def remainder(x: Any) -> Any:
        left = x - lax.mulhi(x, reciprocal) * divisors
        return lax.select(lax.ge(left, divisors), left - divisors, left)
    return remainder


def _within(x: Any, dtype: np.dtype) -> Any:
    """Integers in a dtype, those that it doesn't hold replaced by the nearest that it does."""
    own, wanted = np.iinfo(aval_of(x).dtype), np.iinfo(dtype)
    return lax.convert_element_type(_clipped(x, max(own.min, wanted.min), min(own.max, wanted.max)), dtype)


def _clipped(x: Any, least: int, most: int) -> Any:
    return lax.min(lax.max(x, lax.full_like(x, least)), lax.full_like(x, most))


# Two outcomes

@public
def bernoulli(key: ArrayLike, p: ArrayLike = 0.5, shape: Any = None, mode: str = "low", *, out_sharding: Any = None
              ) -> Array:
    """True with probability `p`. In the mode "high", a probability far below that of a float's last bit counts, too.

    >>> random.bernoulli(random.key(0), 0.5, (4,)).dtype
    dtype('bool')
    """
    key, _ = single_key("bernoulli", key)
    if mode not in ("high", "low"):
        raise refused("bernoulli", "there is no such mode", got=f"mode={mode!r}", wanted="'low' or 'high'",
                      todo="leave it out", kind=CorejaxValueError)
    real("bernoulli", None, p=p)
    aval = aval_of(p)
    if not dtypes.is_float(aval.dtype):
        raise refused("bernoulli", "a probability is a float", got=aval, wanted="a floating-point dtype",
                      todo="convert it: p * 1.0")
    if isinstance(p, (float, np.floating)) and not 0 <= p <= 1:
        raise refused("bernoulli", "a probability is from 0 to 1", got=p, wanted="a number from 0 to 1",
                      todo="check how it is computed", kind=CorejaxValueError)
    return placed(_bernoulli(key, p, common_shape("bernoulli", shape, p), mode), out_sharding)


@jit(static_argnums=(2, 3))
def _bernoulli(key: Any, p: Any, shape: Shape, mode: str) -> Any:
    dtype = aval_of(p).dtype
    p = broadcast(p, shape, dtype)
    if mode == "low":
        return lax.lt(draw_unit(key, shape, dtype), p)
    both = draw_unit(key, (2, *shape), dtype)
    fine = both[1] * dtype.type(2.0 ** -finfo(dtype).nmant)
    return lax.lt(fine, p - both[0])


@public
def rademacher(key: ArrayLike, shape: Any = (), dtype: DTypeLike | None = None, *, out_sharding: Any = None) -> Array:
    """1 or -1, with probability 1/2 each.

    >>> abs(random.rademacher(random.key(0), (4,), "int8")).tolist()
    [1, 1, 1, 1]
    """
    key, _ = single_key("rademacher", key)
    dtype = dtypes.default_dtype("i") if dtype is None else as_dtype("rademacher", dtype, "iufc")
    return placed(_rademacher(key, sizes("rademacher", shape), dtype), out_sharding)


@jit(static_argnums=(1, 2))
def _rademacher(key: Any, shape: Shape, dtype: np.dtype) -> Any:
    return draw_signs(key, shape, dtype)


def draw_signs(key: Any, shape: Shape, dtype: np.dtype) -> Any:
    """1 or -1, within a program."""
    positive = lax.lt(draw_unit(key, shape, dtypes.default_dtype("f")), dtypes.default_dtype("f").type(0.5))
    return lax.convert_element_type(positive, dtype) * dtype.type(2) - dtype.type(1)
