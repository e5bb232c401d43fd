"""Numbers of events: of the Poisson, binomial and multinomial distributions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from corejax import lax
from corejax.core import Array, ArrayLike, DTypeLike, aval_of, dtypes
from corejax.dtypes import finfo
from corejax.errors import CorejaxValueError
from corejax.plugin import jit, public, refused
from corejax_random._asked import Shape, as_dtype, broadcast, common_shape, placed, real, sizes
from corejax_random.approximations import random_lgamma_p
from corejax_random.keyed import random_clone_p, random_split_p
from corejax_random.keys import single_key
from corejax_random.uniforms import draw_unit, split

__all__ = ["binomial", "multinomial", "poisson"]


def _either(key: Any) -> Any:
    """The same key, for one of two ways to draw, of which each number has one."""
    return random_clone_p.primitive.bind_one(key)


def _until_all(accept: Callable[[Any], tuple[Any, Any]], key: Any, shape: Shape, dtype: np.dtype, most: Any) -> Any:
    """Draw candidates until each was accepted, at most so often: -1 where none was.

    `accept(key)` is what was drawn, and whether it is accepted; it gets two keys.
    """
    def again(state: Any) -> Any:
        turn, found, done, key = state
        key, first, second = split(key, 3)
        drawn, accepted = accept((first, second))
        return turn + 1, lax.select(accepted, drawn, found), lax.bitwise_or(done, accepted), key

    def goes_on(state: Any) -> Any:
        return lax.bitwise_and(lax.bitwise_not(state[2]).any(), lax.lt(state[0], most))

    start = (np.zeros((), most.dtype), lax.full(shape, -1, dtype), lax.full(shape, False), key)
    return lax.while_loop(goes_on, again, start)[1]


# Poisson

@public
def poisson(key: ArrayLike, lam: ArrayLike, shape: Any = None, dtype: DTypeLike | None = None, *,
            out_sharding: Any = None) -> Array:
    """Numbers of the Poisson distribution: how many events happen where `lam` are expected.

    >>> random.poisson(random.key(0), 3.0, (4,)).dtype
    dtype('int64')
    """
    key, _ = single_key("poisson", key)
    dtype = as_dtype("poisson", dtype, "iu")
    real("poisson", None, lam=lam)
    return placed(_poisson(key, lam, common_shape("poisson", shape, lam), dtype), out_sharding)


@jit(static_argnums=(2, 3))
def _poisson(key: Any, lam: Any, shape: Shape, dtype: np.dtype) -> Any:
    lam = broadcast(lam, shape, np.dtype("float32"))
    is_small = lax.bitwise_or(lax.ne(lam, lam), lax.lt(lam, lax.full_like(lam, 10)))
    most = dtype.type(np.iinfo(dtype).max)
    few = _by_multiplying(_either(key), lax.select(is_small, lam, lax.full_like(lam, 0)), shape, dtype, most)
    many = _by_rejection(key, lax.select(is_small, lax.full_like(lam, 1e5), lam), shape, dtype, most)
    found = lax.select(is_small, few, many)
    return lax.select(lax.eq(lam, lax.full_like(lam, 0)), lax.full_like(found, 0), found)


def _by_multiplying(key: Any, lam: Any, shape: Shape, dtype: np.dtype, most: Any) -> Any:
    """Knuth's way for small numbers: multiply uniform ones until they are below exp(-lam)."""
    def again(state: Any) -> Any:
        turn, count, key, logs = state
        key, subkey = split(key)
        count = lax.select(lax.gt(logs, lax.neg(lam)), count + dtype.type(1), count)
        return turn + 1, count, key, logs + lax.log(draw_unit(subkey, shape, np.dtype("float32")))

    def goes_on(state: Any) -> Any:
        return lax.bitwise_and(lax.gt(state[3], lax.neg(lam)).any(), lax.lt(state[0], most))

    start = (np.zeros((), dtype), lax.full(shape, 0, dtype), key, lax.full(shape, 0, np.float32))
    return lax.while_loop(goes_on, again, start)[1] - dtype.type(1)


def _by_rejection(key: Any, lam: Any, shape: Shape, dtype: np.dtype, most: Any) -> Any:
    """Transformed rejection with squeeze, for larger ones: PTRS of Hörmann (1993)."""
    log_lam = lax.log(lam)
    b = 0.931 + 2.53 * lax.sqrt(lam)
    a = -0.059 + 0.02483 * b
    inverse_alpha = 1.1239 + 1.1328 / (b - 3.4)
    bound = 0.9277 - 3.6224 / (b - 2)

    def accept(keys: Any) -> tuple[Any, Any]:
        u = draw_unit(keys[0], shape, lam.dtype) - 0.5
        v = draw_unit(keys[1], shape, lam.dtype)
        left = 0.5 - lax.abs(u)
        k = lax.floor((2 * a / left + b) * u + lam + 0.43)
        s = lax.log(v * inverse_alpha / (a / (left * left) + b))
        fits = s <= -lam + k * log_lam - random_lgamma_p(k + 1)
        at_once = (left >= 0.07) & (v <= bound)
        never = (k < 0) | ((left < 0.013) & (v > left))
        return k, at_once | (~never & fits)

    return lax.convert_element_type(_until_all(accept, key, shape, lam.dtype, most), dtype)


# Binomial

@public
def binomial(key: ArrayLike, n: ArrayLike, p: ArrayLike, shape: Any = None, dtype: DTypeLike | None = None) -> Array:
    """Numbers of the binomial distribution: how many of `n` trials succeed with probability `p`; as floats.

    >>> random.binomial(random.key(0), 10, 0.5, (4,)).dtype
    dtype('float64')
    """
    key, _ = single_key("binomial", key)
    dtype = as_dtype("binomial", dtype)
    real("binomial", None, n=n, p=p)
    aval = aval_of(p)
    inner = dtypes.inexact(aval.dtype, aval.weak_type)
    return _binomial(key, n, p, common_shape("binomial", shape, n, p), inner, dtype)  # type: ignore[no-any-return]


@jit(static_argnums=(3, 4, 5))
def _binomial(key: Any, n: Any, p: Any, shape: Shape, inner: np.dtype, dtype: np.dtype) -> Any:
    return draw_binomial(key, broadcast(n, shape, inner), broadcast(p, shape, inner), dtype)


def draw_binomial(key: Any, n: Any, p: Any, dtype: np.dtype) -> Any:
    """Numbers of successes, of arrays of one shape and dtype, within a program."""
    shape, inner = p.aval.shape, p.aval.dtype

    def everywhere(value: float, like: Any = p) -> Any:
        return lax.full_like(like, value)

    is_half = lax.lt(p, everywhere(0.5))
    q = lax.select(is_half, p, everywhere(1.0) - p)  # the rarer of the two outcomes
    no_count = lax.bitwise_or(lax.ne(n, n), lax.lt(n, everywhere(0)))
    endless = lax.eq(lax.abs(n), everywhere(np.inf))
    no_chance, negative = lax.ne(q, q), lax.lt(q, everywhere(0))
    q = lax.select(lax.bitwise_or(no_chance, negative), everywhere(0.01), q)
    is_small = lax.bitwise_or(no_count, lax.le(n * q, everywhere(10.0)))
    n = lax.floor(n)
    most = dtype.type(finfo(dtype).max)
    few = _by_waiting(_either(key), lax.select(is_small, n, everywhere(0)), q, shape, inner, most)
    many = _btrs(key, lax.select(is_small, everywhere(1e4), n), lax.select(is_small, everywhere(0.5), q), shape, inner,
                 most)
    found = lax.convert_element_type(lax.select(is_small, few, many), dtype)
    wrong = lax.bitwise_or(lax.bitwise_or(negative, no_chance), no_count)
    found = lax.select(wrong, everywhere(np.nan, found), found)
    found = lax.select(lax.bitwise_and(endless, lax.bitwise_not(wrong)), everywhere(np.inf, found), found)
    as_it_is = lax.bitwise_or(lax.bitwise_or(is_half, no_count), lax.bitwise_or(no_chance, endless))
    return lax.select(as_it_is, found, lax.convert_element_type(n, dtype) - found)


def _by_waiting(key: Any, n: Any, q: Any, shape: Shape, dtype: np.dtype, most: Any) -> Any:
    """For few successes: wait for each of them, until there were enough trials."""
    failing = lax.log1p(lax.neg(q))

    def again(state: Any) -> Any:
        turn, count, trials, key = state
        subkey, key = split(key)
        count = lax.select(lax.le(trials, n), count + 1, count)
        return turn + 1, count, trials + lax.ceil(lax.log(draw_unit(subkey, shape, dtype)) / failing), key

    def goes_on(state: Any) -> Any:
        return lax.bitwise_and(lax.le(state[2], n).any(), lax.lt(state[0], most))

    start = (np.zeros((), most.dtype), lax.full(shape, 0, dtype), lax.full(shape, 0, dtype), key)
    return lax.while_loop(goes_on, again, start)[1] - 1


#: What Stirling's formula lacks of the logarithms of 0!, 1!, ..., 9!.
_LACKING = (0.0810614667953272, 0.0413406959554092, 0.0276779256849983, 0.02079067210376509, 0.0166446911898211,
            0.0138761288230707, 0.0118967099458917, 0.010411265261972, 0.00925546218271273, 0.00833056343336287)


def _lacking(k: Any) -> Any:
    """What Stirling's formula lacks of log(k!)."""
    square = (k + 1) * (k + 1)
    formula = (1 / 12 - (1 / 360 - 1 / 1260 / square) / square) / (k + 1)
    whole = lax.convert_element_type(lax.clamp(lax.full_like(k, 0), lax.floor(k), lax.full_like(k, 9)), np.int32)
    known = lax.convert_element_type(np.array(_LACKING), k.dtype)
    return lax.select(lax.le(k, lax.full_like(k, 9)), known[whole], formula)


def _btrs(key: Any, n: Any, p: Any, shape: Shape, dtype: np.dtype, most: Any) -> Any:
    """Transformed rejection with squeeze, for many successes: BTRS of Hörmann (1993)."""
    deviation = lax.sqrt(n * p * (1 - p))
    b = 1.15 + 2.53 * deviation
    a = -0.0873 + 0.0248 * b + 0.01 * p
    c = n * p + 0.5
    bound = 0.92 - 4.2 / b
    odds = p / (1 - p)
    alpha = (2.83 + 5.1 / b) * deviation
    m = lax.floor((n + 1) * p)

    def accept(keys: Any) -> tuple[Any, Any]:
        u = draw_unit(keys[0], shape, dtype) - 0.5
        v = draw_unit(keys[1], shape, dtype)
        left = 0.5 - lax.abs(u)
        at_once = (left >= 0.07) & (v <= bound)
        k = lax.floor((2 * a / left + b) * u + c)
        never = (k < 0) | (k > n)
        height = lax.log(v * alpha / (a / (left * left) + b))
        likely = ((m + 0.5) * lax.log((m + 1) / (odds * (n - m + 1)))
                  + (n + 1) * lax.log((n - m + 1) / (n - k + 1))
                  + (k + 0.5) * lax.log(odds * (n - k + 1) / (k + 1))
                  + _lacking(m) + _lacking(n - m) - _lacking(k) - _lacking(n - k))
        return k, at_once | (~never & (height <= likely))

    return _until_all(accept, key, shape, dtype, most)


@public
def multinomial(key: ArrayLike, n: ArrayLike, p: ArrayLike, *, shape: Any = None, dtype: DTypeLike | None = None,
                unroll: int | bool = 1) -> Array:
    """How many of `n` trials have each of several outcomes, whose probabilities are along the last axis of `p`.

    >>> random.multinomial(random.key(0), 10, np.array([0.2, 0.3, 0.5])).sum()
    Array(10., dtype=float64)
    """
    key, _ = single_key("multinomial", key)
    real("multinomial", None, n=n, p=p)
    own = aval_of(p).shape
    if not own:
        raise refused("multinomial", "p has a probability for each outcome", got=aval_of(p), wanted="a vector",
                      todo="pass as many probabilities as there are outcomes", kind=CorejaxValueError)
    found = own if shape is None else sizes("multinomial", shape)
    common_shape("multinomial", found, p)
    common_shape("multinomial", found[:-1], n)
    promoted, weak = dtypes.promote(*[(aval_of(x).dtype, aval_of(x).weak_type) for x in (n, p)])
    inner = dtypes.inexact(promoted, weak)
    wanted = dtypes.default_dtype("f") if dtype is None else as_dtype("multinomial", dtype, "iuf")
    return _multinomial(key, n, p, found, inner, wanted, unroll)  # type: ignore[no-any-return]


@jit(static_argnums=(3, 4, 5, 6))
def _multinomial(key: Any, n: Any, p: Any, shape: Shape, inner: np.dtype, dtype: np.dtype, unroll: Any) -> Any:
    n, p = broadcast(n, shape[:-1], inner), broadcast(p, shape, inner)
    p = lax.transpose(p, (len(shape) - 1, *range(len(shape) - 1)))
    remaining = lax.cumsum(p, 0, reverse=True)
    shares = p / lax.select(lax.eq(remaining, lax.full_like(remaining, 0)), lax.full_like(remaining, 1), remaining)
    keys = split_many(key, shape[-1])

    def draw(left: Any, of_one: Any) -> Any:
        share, key = of_one
        share = lax.clamp(lax.full_like(share, 0), share, lax.full_like(share, 1))
        count = draw_binomial(key, left, share, inner)
        return left - count, count

    _, found = lax.scan(draw, n, (shares, keys), unroll=unroll)
    return lax.convert_element_type(lax.transpose(found, (*range(1, len(shape)), 0)), dtype)


def split_many(key: Any, count: int) -> Any:
    """An array of new keys, within a program."""
    return random_split_p.primitive.bind(key, shape=(count,))
