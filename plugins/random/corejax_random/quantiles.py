"""Distributions whose numbers are made of one uniform number each, mostly by inverse distribution functions."""

from __future__ import annotations

from math import pi
from typing import Any

import numpy as np

from corejax import lax
from corejax.core import Array, ArrayLike, DTypeLike, aval_of, dtypes
from corejax.dtypes import finfo
from corejax.errors import CorejaxValueError
from corejax.plugin import jit, public, refused
from corejax_random._asked import Shape, as_dtype, broadcast, common_shape, placed, real, sizes
from corejax_random._drawing import drawn, drawn_by
from corejax_random.approximations import random_log1p_p
from corejax_random.keys import single_key
from corejax_random.normals import draw_normal
from corejax_random.uniforms import draw_bits, draw_uniform, draw_unit, split

__all__ = ["cauchy", "exponential", "geometric", "gumbel", "laplace", "logistic", "pareto", "rayleigh", "triangular",
           "wald", "weibull_min"]


# Without parameters

def draw_exponential(key: Any, shape: Shape, dtype: np.dtype) -> Any:
    """Exponentially distributed numbers, within a program."""
    return lax.neg(random_log1p_p(lax.neg(draw_unit(key, shape, dtype))))


@jit(static_argnums=(1, 2))
def _exponential(key: Any, shape: Shape, dtype: np.dtype) -> Any:
    return draw_exponential(key, shape, dtype)


@jit(static_argnums=(1, 2))
def _cauchy(key: Any, shape: Shape, dtype: np.dtype) -> Any:
    drawn = draw_uniform(key, shape, dtype, dtype.type(finfo(dtype).eps), dtype.type(1.0))
    return lax.tan(dtype.type(pi) * (drawn - dtype.type(0.5)))


@jit(static_argnums=(1, 2))
def _laplace(key: Any, shape: Shape, dtype: np.dtype) -> Any:
    drawn = draw_uniform(key, shape, dtype, dtype.type(-1.0 + finfo(dtype).epsneg), dtype.type(1.0))
    return lax.sign(drawn) * random_log1p_p(lax.neg(lax.abs(drawn)))


@jit(static_argnums=(1, 2))
def _logistic(key: Any, shape: Shape, dtype: np.dtype) -> Any:
    drawn = draw_uniform(key, shape, dtype, dtype.type(finfo(dtype).tiny), dtype.type(1.0))
    return lax.log(drawn) - random_log1p_p(lax.neg(drawn))


@public
def exponential(key: ArrayLike, shape: Any = (), dtype: DTypeLike | None = None, *, out_sharding: Any = None) -> Array:
    """Numbers of the exponential distribution, with density exp(-x).

    >>> random.exponential(random.key(0), (3,)).shape
    (3,)
    """
    return drawn("exponential", _exponential, key, shape, dtype, out_sharding)


@public
def cauchy(key: ArrayLike, shape: Any = (), dtype: DTypeLike | None = None, *, out_sharding: Any = None) -> Array:
    """Numbers of the Cauchy distribution, with a density proportional to 1 / (1 + x**2).

    >>> random.cauchy(random.key(0), (3,)).shape
    (3,)
    """
    return drawn("cauchy", _cauchy, key, shape, dtype, out_sharding)


@public
def laplace(key: ArrayLike, shape: Any = (), dtype: DTypeLike | None = None, *, out_sharding: Any = None) -> Array:
    """Numbers of the Laplace distribution, with density exp(-abs(x)) / 2.

    >>> random.laplace(random.key(0), (3,)).shape
    (3,)
    """
    return drawn("laplace", _laplace, key, shape, dtype, out_sharding)


@public
def logistic(key: ArrayLike, shape: Any = (), dtype: DTypeLike | None = None, *, out_sharding: Any = None) -> Array:
    """Numbers of the logistic distribution, whose distribution function is 1 / (1 + exp(-x)).

    >>> random.logistic(random.key(0), (3,)).shape
    (3,)
    """
    return drawn("logistic", _logistic, key, shape, dtype, out_sharding)


_MODES = ("low", "high", "highest")


@public
def gumbel(key: ArrayLike, shape: Any = (), dtype: DTypeLike | None = None, mode: str | None = None, *,
           out_sharding: Any = None) -> Array:
    """Numbers of the Gumbel distribution, whose distribution function is exp(-exp(-x)).

    `mode` says how far its tails reach: "low" (the usual one) has a number for each of a float's bits, "high" also
    those between, at twice the price; "highest" is that, more exactly for float32.

    >>> random.gumbel(random.key(0), (3,)).shape
    (3,)
    """
    key, _ = single_key("gumbel", key)
    mode = checked_mode("gumbel", mode)
    return placed(_gumbel(key, sizes("gumbel", shape), as_dtype("gumbel", dtype), mode), out_sharding)


def checked_mode(name: str, mode: str | None) -> str:
    """The mode of Gumbel numbers; None is the usual one."""
    if mode is None:
        return _MODES[0]
    if mode not in _MODES:
        raise refused(name, "there is no such mode", got=f"mode={mode!r}", wanted=", ".join(map(repr, _MODES)),
                      todo="leave it out: it is 'low'", kind=CorejaxValueError)
    return mode


@jit(static_argnums=(1, 2, 3))
def _gumbel(key: Any, shape: Shape, dtype: np.dtype, mode: str) -> Any:
    return draw_gumbel(key, shape, dtype, mode)


def draw_gumbel(key: Any, shape: Shape, dtype: np.dtype, mode: str = "low") -> Any:
    """Numbers of the Gumbel distribution, within a program."""
    tiny, mantissa = dtype.type(finfo(dtype).tiny), finfo(dtype).nmant
    if mode == "low":
        return _twice_logged(draw_uniform(key, shape, dtype, tiny, dtype.type(1.0)))
    if mode == "highest" and dtype == np.float32:
        return _finest_gumbel(key, shape)
    both = draw_unit(key, (2, *shape), dtype)
    high, low = both[0], both[1]
    finer = high + dtype.type(2.0 ** -mantissa) * low + tiny
    drawn = lax.select(lax.ge(high, lax.full_like(high, 0.5)), high, finer)
    return lax.neg(lax.log(lax.neg(random_log1p_p(lax.neg(drawn)))))


def _twice_logged(x: Any) -> Any:
    return lax.neg(lax.log(lax.neg(lax.log(x))))


def _finest_gumbel(key: Any, shape: Shape) -> Any:
    """From 64 bits each: a float32 below 1/2 that is as exact as it can be there, for either tail."""
    word = np.uint32
    drawn = draw_bits(key, 32, (2, *shape))
    high, low = drawn[0], drawn[1]
    is_left = lax.lt(high, lax.full_like(high, 2 ** 31))
    carries = lax.convert_element_type(lax.eq(low, lax.full_like(low, 2 ** 32 - 1)), word)
    # The other half is minus the number, in 64 bits.
    not_high, not_low = lax.bitwise_not(high) + carries, lax.bitwise_not(low) + word(1)
    x = _as_fraction(lax.select(is_left, high, not_high), lax.select(is_left, low, not_low))
    return lax.select(is_left, lax.neg(lax.log(lax.neg(random_log1p_p(lax.neg(x))))), _twice_logged(x))


def _as_fraction(high: Any, low: Any) -> Any:
    """The float32 that two words are as a fraction, rounded down."""
    word = np.uint32
    zeros, low_zeros = lax.clz(high), lax.clz(low)
    is_small = lax.eq(zeros, lax.full_like(zeros, 32))
    moved = lax.bitwise_or(lax.shift_left(high, zeros), lax.select(
        is_small, lax.shift_left(low, low_zeros), lax.shift_right_logical(low, word(32) - zeros)))
    mantissa = lax.bitwise_and(lax.shift_right_logical(moved, lax.full_like(moved, 8)),
                               lax.full_like(moved, 2 ** 23 - 1))
    exponent = word(126) - lax.select(is_small, word(32) + low_zeros, zeros)
    exponent = lax.bitwise_and(lax.shift_left(exponent, lax.full_like(exponent, 23)),
                               lax.full_like(exponent, 2 ** 30 - 2 ** 22))
    return lax.bitcast_convert_type(lax.bitwise_or(exponent, mantissa), np.float32)


# With parameters

@public
def pareto(key: ArrayLike, b: ArrayLike, shape: Any = None, dtype: DTypeLike | None = None, *,
           out_sharding: Any = None) -> Array:
    """Numbers of the Pareto distribution, with density b / x**(b + 1) from 1 on.

    >>> random.pareto(random.key(0), 2.0, (3,)).shape
    (3,)
    """
    return drawn_by("pareto", _pareto, key, {"b": b}, shape, dtype, out_sharding)


@jit(static_argnums=(2, 3))
def _pareto(key: Any, b: Any, shape: Shape, dtype: np.dtype) -> Any:
    return lax.exp(draw_exponential(key, shape, dtype) / broadcast(b, shape, dtype))


@public
def rayleigh(key: ArrayLike, scale: ArrayLike, shape: Any = None, dtype: DTypeLike | None = None, *,
             out_sharding: Any = None) -> Array:
    """Lengths of vectors of two normal numbers with standard deviation `scale`.

    >>> random.rayleigh(random.key(0), 2.0, (3,)).shape
    (3,)
    """
    return drawn_by("rayleigh", _rayleigh, key, {"scale": scale}, shape, dtype, out_sharding)


@jit(static_argnums=(2, 3))
def _rayleigh(key: Any, scale: Any, shape: Shape, dtype: np.dtype) -> Any:
    logs = lax.log(draw_unit(key, shape, dtype))
    return broadcast(scale, shape, dtype) * lax.sqrt(logs * dtype.type(-2.0))


@public
def weibull_min(key: ArrayLike, scale: ArrayLike, concentration: ArrayLike, shape: Any = (),
                dtype: DTypeLike | None = None) -> Array:
    """Numbers of the Weibull distribution: exponential ones to the power 1 / concentration, times `scale`.

    >>> random.weibull_min(random.key(0), 1.0, 2.0, (3,)).shape
    (3,)
    """
    key, _ = single_key("weibull_min", key)
    dtype = as_dtype("weibull_min", dtype)
    real("weibull_min", None, scale=scale, concentration=concentration)
    shape = common_shape("weibull_min", sizes("weibull_min", shape) or None, scale, concentration)
    return _weibull_min(key, scale, concentration, shape, dtype)  # type: ignore[no-any-return]


@jit(static_argnums=(3, 4))
def _weibull_min(key: Any, scale: Any, concentration: Any, shape: Shape, dtype: np.dtype) -> Any:
    return draw_exponential(key, shape, dtype) ** (1.0 / concentration) * scale


@public
def triangular(key: ArrayLike, left: ArrayLike, mode: ArrayLike, right: ArrayLike, shape: Any = None,
               dtype: DTypeLike | None = None, *, out_sharding: Any = None) -> Array:
    """Numbers whose density rises linearly from `left` to `mode`, and falls from there to `right`.

    >>> random.triangular(random.key(0), 0.0, 1.0, 3.0, (3,)).shape
    (3,)
    """
    params = {"left": left, "mode": mode, "right": right}
    return drawn_by("triangular", _triangular, key, params, shape, dtype, out_sharding)


@jit(static_argnums=(4, 5))
def _triangular(key: Any, left: Any, mode: Any, right: Any, shape: Shape, dtype: np.dtype) -> Any:
    left, mode, right = [broadcast(x, shape, dtype) for x in (left, mode, right)]
    drawn = draw_unit(key, shape, dtype)
    rising = left + lax.sqrt(drawn * (right - left) * (mode - left))
    falling = right - lax.sqrt((1 - drawn) * (right - left) * (right - mode))
    return lax.select(lax.lt(drawn, (mode - left) / (right - left)), rising, falling)


@public
def wald(key: ArrayLike, mean: ArrayLike, shape: Any = None, dtype: DTypeLike | None = None, *,
         out_sharding: Any = None) -> Array:
    """Numbers of the Wald distribution, the inverse Gaussian one with scale 1.

    >>> random.wald(random.key(0), 2.0, (3,)).shape
    (3,)
    """
    return drawn_by("wald", _wald, key, {"mean": mean}, shape, dtype, out_sharding)


@jit(static_argnums=(2, 3))
def _wald(key: Any, mean: Any, shape: Shape, dtype: np.dtype) -> Any:
    mean = broadcast(mean, shape, dtype)
    of_normal, of_unit = split(key)
    drawn = draw_normal(of_normal, shape, dtype)
    y = drawn * drawn
    root = lax.sqrt(4 * mean * y + mean * mean * (y * y))
    x = mean + mean * mean * y / 2 - mean / 2 * root
    return lax.select(lax.le(draw_unit(of_unit, shape, dtype), mean / (mean + x)), x, mean * mean / x)


@public
def geometric(key: ArrayLike, p: ArrayLike, shape: Any = None, dtype: DTypeLike | None = None, *,
              out_sharding: Any = None) -> Array:
    """How many trials it takes until the first success, if each succeeds with probability `p`.

    >>> random.geometric(random.key(0), 0.25, (4,)).dtype
    dtype('int64')
    """
    key, _ = single_key("geometric", key)
    dtype = as_dtype("geometric", dtype, "iu")
    real("geometric", None, p=p)
    aval = aval_of(p)
    inner = dtypes.inexact(aval.dtype, aval.weak_type)
    return placed(_geometric(key, p, common_shape("geometric", shape, p), inner, dtype), out_sharding)


@jit(static_argnums=(2, 3, 4))
def _geometric(key: Any, p: Any, shape: Shape, inner: np.dtype, dtype: np.dtype) -> Any:
    drawn = draw_unit(key, shape, inner)
    drawn = lax.select(lax.eq(drawn, lax.full_like(drawn, 0)), lax.full_like(drawn, 1), drawn)
    failing = broadcast(random_log1p_p(lax.neg(lax.convert_element_type(p, inner))), shape)
    return lax.convert_element_type(lax.floor(lax.log(drawn) / failing) + 1, dtype)
