"""The gamma distribution, and those that are made of it. Its numbers have derivatives with respect to its shape."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod
from typing import Any

import numpy as np

from corejax import lax
from corejax.core import Array, ArrayLike, DTypeLike, ShapedArray, aval_of, dtypes, to_dim
from corejax.dtypes import finfo
from corejax.errors import CorejaxTypeError, CorejaxValueError
from corejax.plugin import Sample, define, factors, hookimpl, jit, not_linear, public, refused, shaping
from corejax_random._asked import Shape, as_dtype, broadcast, common_shape, placed, real, shape_over, sizes
from corejax_random._drawing import drawn_by
from corejax_random.generators import generator_of
from corejax_random.keyed import random_split_p
from corejax_random.keys import single_key
from corejax_random.normals import draw_normal
from corejax_random.quantiles import draw_exponential
from corejax_random.threefry import THREEFRY
from corejax_random.uniforms import draw_signs, draw_unit, split

__all__ = ["ball", "beta", "chisquare", "dirichlet", "f", "gamma", "generalized_normal", "loggamma", "random_gamma_p",
           "t"]


# One number, by the method of Marsaglia and Tsang (2000)

def _one(key: Any, shape: Any, log_space: bool) -> Any:
    """A number of the gamma distribution with this shape, a scalar; or its logarithm."""
    dtype = aval_of(shape).dtype
    number = dtype.type
    is_large = lax.ge(shape, number(1))
    d = lax.select(is_large, shape, shape + number(1)) - number(1 / 3)
    c = number(1 / 3) / lax.sqrt(d)

    def rejected(state: Any) -> Any:
        _, square, cube, uniform = state
        return lax.bitwise_and(
            lax.ge(uniform, number(1) - number(0.0331) * (square * square)),
            lax.ge(lax.log(uniform), square * number(0.5) + d * (number(1) - cube + lax.log(cube))))

    def again(state: Any) -> Any:
        key, of_normal, of_uniform = split(state[0], 3)

        def once_more(inner: Any) -> Any:
            key, subkey = split(inner[0])
            x = draw_normal(subkey, (), dtype)
            return key, x, number(1) + x * c

        _, x, v = lax.while_loop(lambda inner: lax.le(inner[2], number(0)), once_more,
                                 (of_normal, number(0), number(-1)))
        return key, x * x, v * v * v, draw_unit(of_uniform, (), dtype)

    key, of_boost = split(key)
    _, _, cube, _ = lax.while_loop(rejected, again, (key, number(0), number(1), number(2)))
    if log_space:
        drawn = lax.neg(draw_exponential(of_boost, (), dtype))
        is_zero = lax.eq(drawn, number(0))
        boost = lax.select(lax.bitwise_or(is_large, is_zero), number(0), drawn * (number(1) / shape))
        return lax.log(d) + lax.log(cube) + boost
    drawn = number(1) - draw_unit(of_boost, (), dtype)
    return d * cube * lax.select(is_large, number(1), drawn ** (number(1) / shape))


def _slope(out: Any, keys: Any, shape: Any, *, log_space: bool) -> Any:
    """How the number changes with the shape, where it stays the same quantile."""
    if not log_space:
        return lax.random_gamma_grad(shape, out)
    number = lax.exp(out)
    number = lax.select(lax.eq(number, lax.full_like(number, 0)),
                        lax.full_like(number, float(finfo(aval_of(out).dtype).tiny)), number)
    return lax.random_gamma_grad(shape, number) / number


_BY_QUANTILES = ("the tangent is that of the quantile; the number itself jumps where another candidate is accepted, "
                 "and moves along with its candidate in between")
_ONCE = "the derivative of the quantile has no derivative itself"
_OTHER_BITS = "a key gives other numbers in another dtype"
#: Laws of the conformance kit that aren't about such a function.
_NOT_HELD = {
    "weak types pass through": "numbers that are drawn have a dtype",
    "jvp agrees with differences": _BY_QUANTILES, "second derivatives agree with differences": _ONCE,
    "hessians are symmetric": _ONCE, "orderings to depth two agree": _ONCE,
    **{f"{what} in narrow types are those of doubles": _OTHER_BITS
       for what in ("values", "tangents", "cotangents", "maps")}}


class Gamma:
    """random_gamma(keys, shape; log_space): numbers of the gamma distribution, or their logarithms.

    There is a key for each of the first axes; it is split for what these have.

    >>> key = THREEFRY.of(np.array([3, 5], np.uint32))
    >>> lax.random_gamma(key, np.array([0.5, 3.0]), log_space=False)
    Array([0.44692262, 0.68021051], dtype=float64)
    """

    name = "random_gamma"
    operands = ("keys", "shape")
    element_types = ("*",)
    transpose = not_linear("random numbers aren't linear in anything")
    jvp = factors(None, _slope)

    def attached(self, primitive: Any) -> None:
        """Note the primitive that this plugin has become."""
        self._primitive = primitive

    @hookimpl
    def abstract_eval(self, avals: Sequence[ShapedArray], *, log_space: bool) -> ShapedArray:
        keys, shape = avals
        generator_of(keys.dtype, self.name)
        if not dtypes.is_float(shape.dtype):
            raise refused(self.name, "the shape must be real", got=shape, wanted="a floating-point dtype",
                          todo="convert it: shape.astype(float)", kind=CorejaxTypeError)
        if shape.shape[:keys.ndim] != keys.shape:
            raise refused(self.name, "there must be a key for each of the first axes", got=[keys, shape],
                          wanted="keys whose shape the other one begins with", todo="pass one key",
                          kind=CorejaxValueError)
        return shape.update(weak_type=False)

    @hookimpl
    def decompose(self, args: Sequence[Any], *, log_space: bool) -> Any:
        keys, shape = args
        sizes, generator = aval_of(shape).shape, generator_of(aval_of(keys).dtype)
        each = random_split_p.primitive.bind(keys, shape=(prod(sizes[aval_of(keys).ndim:]),))
        shape = lax.convert_element_type(shape, aval_of(shape).dtype)
        found = generator.over(lambda key, one: _one(key, one, log_space),
                               [lax.reshape(each, (prod(sizes),)), lax.reshape(shape, (prod(sizes),))], 1)
        return lax.reshape(found, sizes)

    @hookimpl
    def vmap(self, axis: Any, args: Sequence[Any], dims: Sequence[int | None], *, log_space: bool) -> Any:
        moved = [to_dim(x, d, 0, axis.size) for x, d in zip(args, dims, strict=True)]
        return self._primitive.bind(*moved, log_space=log_space), 0

    @hookimpl
    def samples(self, rng: np.random.Generator) -> Iterator[Sample]:
        key = THREEFRY.of(np.array([3, 5], np.uint32))
        keys = THREEFRY.of(np.arange(4, dtype=np.uint32).reshape(2, 2))
        # JAX's numbers for this key.
        known = {False: [0.446922621717072, 0.6802105130538787], True: [-0.8053698051314602, -0.38535295070096276]}
        for log_space, numbers in known.items():
            yield Sample([key, np.array([0.5, 3.0])], {"log_space": log_space}, results=np.array(numbers),
                         exempt=_NOT_HELD)
        yield Sample([keys, np.array([[0.5, 3.0], [1.0, 20.0]])], {"log_space": False}, exempt=_NOT_HELD)
        yield Sample([key, np.zeros((0, 2))], {"log_space": False}, exempt=_NOT_HELD)
        yield Sample([key, np.array([1, 2])], {"log_space": False}, error=TypeError)
        yield Sample([keys, np.ones(3)], {"log_space": False}, error=ValueError)
        yield Sample([np.zeros(2, np.uint32), np.ones(3)], {"log_space": False}, error=TypeError)


random_gamma_p: Any = define(Gamma())


def draw_gamma(key: Any, shape_of: Any, shape: Shape, dtype: np.dtype, log_space: bool = False) -> Any:
    """Numbers of the gamma distribution, or their logarithms, within a program."""
    return random_gamma_p.primitive.bind(key, broadcast(shape_of, shape, dtype), log_space=log_space)


# Public functions

@public
def gamma(key: ArrayLike, a: ArrayLike, shape: Any = None, dtype: DTypeLike | None = None, *,
          out_sharding: Any = None) -> Array:
    """Numbers of the gamma distribution with shape `a`, and a density proportional to x**(a - 1) exp(-x).

    >>> random.gamma(random.key(0), 3.0, (2,)).shape
    (2,)
    """
    return _of_gamma("gamma", key, a, shape, dtype, out_sharding, False)


@public
def loggamma(key: ArrayLike, a: ArrayLike, shape: Any = None, dtype: DTypeLike | None = None, *,
             out_sharding: Any = None) -> Array:
    """The logarithms of numbers of the gamma distribution, also where these are too small for a float.

    >>> bool(random.loggamma(random.key(0), 1e-4) < -1000)
    True
    """
    return _of_gamma("loggamma", key, a, shape, dtype, out_sharding, True)


def _of_gamma(name: str, key: Any, a: Any, shape: Any, dtype: Any, out_sharding: Any, log_space: bool) -> Array:
    key, _ = single_key(name, key)
    dtype = as_dtype(name, dtype)
    real(name, None, a=a)
    return placed(_gamma(key, a, common_shape(name, shape, a), dtype, log_space), out_sharding)


@jit(static_argnums=(2, 3, 4))
def _gamma(key: Any, a: Any, shape: Shape, dtype: np.dtype, log_space: bool) -> Any:
    return draw_gamma(key, a, shape, dtype, log_space)


@public
def beta(key: ArrayLike, a: ArrayLike, b: ArrayLike, shape: Any = None, dtype: DTypeLike | None = None, *,
         out_sharding: Any = None) -> Array:
    """Numbers of the beta distribution, with a density proportional to x**(a - 1) (1 - x)**(b - 1).

    >>> random.beta(random.key(0), 2.0, 3.0, (2,)).shape
    (2,)
    """
    return drawn_by("beta", _beta, key, {"a": a, "b": b}, shape, dtype, out_sharding)


@jit(static_argnums=(3, 4))
def _beta(key: Any, a: Any, b: Any, shape: Shape, dtype: np.dtype) -> Any:
    logs = [draw_gamma(one, x, shape, dtype, True) for one, x in zip(split(key), (a, b), strict=True)]
    largest = lax.max(*logs)
    first, second = [lax.exp(x - largest) for x in logs]
    return first / (first + second)


@public
def dirichlet(key: ArrayLike, alpha: ArrayLike, shape: Any = None, dtype: DTypeLike | None = None, *,
              out_sharding: Any = None) -> Array:
    """Vectors of the Dirichlet distribution: numbers that sum to one along the last axis, which `alpha` has, too.

    >>> random.dirichlet(random.key(0), np.ones(3), (2,)).sum(-1)
    Array([1., 1.], dtype=float64)
    """
    key, _ = single_key("dirichlet", key)
    dtype = as_dtype("dirichlet", dtype)
    real("dirichlet", None, alpha=alpha)
    own = aval_of(alpha).shape
    if not own:
        raise refused("dirichlet", "alpha has a number for each part", got=aval_of(alpha), wanted="a vector",
                      todo="pass as many numbers as the vectors have", kind=CorejaxValueError)
    shape = shape_over("dirichlet", shape, own[:-1])
    return placed(_dirichlet(key, alpha, shape, dtype), out_sharding)


@jit(static_argnums=(2, 3))
def _dirichlet(key: Any, alpha: Any, shape: Shape, dtype: np.dtype) -> Any:
    logs = draw_gamma(key, alpha, (*shape, aval_of(alpha).shape[-1]), dtype, True)
    parts = lax.exp(logs - lax.stop_gradient(logs.max(-1, keepdims=True)))
    return parts / parts.sum(-1, keepdims=True)


@public
def chisquare(key: ArrayLike, df: ArrayLike, shape: Any = None, dtype: DTypeLike | None = None, *,
              out_sharding: Any = None) -> Array:
    """Sums of the squares of `df` standard normal numbers.

    >>> random.chisquare(random.key(0), 4.0, (2,)).shape
    (2,)
    """
    return drawn_by("chisquare", _chisquare, key, {"df": df}, shape, dtype, out_sharding)


@jit(static_argnums=(2, 3))
def _chisquare(key: Any, df: Any, shape: Shape, dtype: np.dtype) -> Any:
    return _draw_chisquare(key, df, shape, dtype)


def _draw_chisquare(key: Any, df: Any, shape: Shape, dtype: np.dtype) -> Any:
    half = lax.convert_element_type(df, dtype) / dtype.type(2)
    return lax.exp(draw_gamma(key, half, shape, dtype, True)) * dtype.type(2)


@public
def f(key: ArrayLike, dfnum: ArrayLike, dfden: ArrayLike, shape: Any = None, dtype: DTypeLike | None = None, *,
      out_sharding: Any = None) -> Array:
    """Numbers of the F distribution: quotients of two means of so many squares of standard normal numbers.

    >>> random.f(random.key(0), 4.0, 5.0, (2,)).shape
    (2,)
    """
    return drawn_by("f", _f, key, {"dfnum": dfnum, "dfden": dfden}, shape, dtype, out_sharding)


@jit(static_argnums=(3, 4))
def _f(key: Any, dfnum: Any, dfden: Any, shape: Shape, dtype: np.dtype) -> Any:
    under, over = [_draw_chisquare(one, df, shape, dtype) / broadcast(df, shape, dtype)
                   for one, df in zip(split(key), (dfden, dfnum), strict=True)]
    return over / under


@public
def t(key: ArrayLike, df: ArrayLike, shape: Any = None, dtype: DTypeLike | None = None, *,
      out_sharding: Any = None) -> Array:
    """Numbers of Student's t distribution with `df` degrees of freedom.

    >>> random.t(random.key(0), 4.0, (2,)).shape
    (2,)
    """
    return drawn_by("t", _t, key, {"df": df}, shape, dtype, out_sharding)


@jit(static_argnums=(2, 3))
def _t(key: Any, df: Any, shape: Shape, dtype: np.dtype) -> Any:
    of_normal, of_gamma = split(key)
    half = lax.convert_element_type(df, dtype) / dtype.type(2)
    drawn = draw_gamma(of_gamma, half, shape, dtype)
    return draw_normal(of_normal, shape, dtype) * lax.sqrt(broadcast(half, shape) / drawn)


@public
def generalized_normal(key: ArrayLike, p: ArrayLike, shape: Any = (), dtype: DTypeLike | None = None, *,
                       out_sharding: Any = None) -> Array:
    """Numbers with a density proportional to exp(-abs(x)**p): at p = 2 normal ones, with variance 1/2.

    >>> random.generalized_normal(random.key(0), 2.0, (2,)).shape
    (2,)
    """
    key, _ = single_key("generalized_normal", key)
    dtype = as_dtype("generalized_normal", dtype)
    real("generalized_normal", None, p=p)
    shape = common_shape("generalized_normal", shape, p)
    return placed(_generalized_normal(key, p, shape, dtype), out_sharding)


@jit(static_argnums=(2, 3))
def _generalized_normal(key: Any, p: Any, shape: Shape, dtype: np.dtype) -> Any:
    return _draw_generalized_normal(key, p, shape, dtype)


def _draw_generalized_normal(key: Any, p: Any, shape: Shape, dtype: np.dtype) -> Any:
    of_gamma, of_sign = split(key)
    drawn = draw_gamma(of_gamma, 1 / p, shape, dtype)
    return draw_signs(of_sign, shape, dtype) * drawn ** (1 / p)


@public
def ball(key: ArrayLike, d: int, p: ArrayLike = 2, shape: Any = (), dtype: DTypeLike | None = None, *,
         out_sharding: Any = None) -> Array:
    """Vectors of `d` numbers, uniformly distributed in the unit ball of the p-norm.

    >>> bool((abs(random.ball(random.key(0), 3, 1.0, (10,))).sum(-1) <= 1).all())
    True
    """
    key, _ = single_key("ball", key)
    d = shaping.as_int("ball", "d", d)
    if d < 0:
        raise refused("ball", "a size can't be negative", got=f"d={d}", wanted="0 or more", kind=CorejaxValueError,
                      todo="check how it is computed")
    real("ball", None, p=p)
    if aval_of(p).ndim:
        raise refused("ball", "p is one number", got=aval_of(p), wanted="a scalar", kind=CorejaxValueError,
                      todo="map it: cj.vmap")
    return placed(_ball(key, p, d, sizes("ball", shape), as_dtype("ball", dtype)), out_sharding)


@jit(static_argnums=(2, 3, 4))
def _ball(key: Any, p: Any, d: int, shape: Shape, dtype: np.dtype) -> Any:
    of_direction, of_size = split(key)
    direction = _draw_generalized_normal(of_direction, p, (*shape, d), dtype)
    size = (abs(direction) ** p).sum(-1) + draw_exponential(of_size, shape, dtype)
    return direction / (size ** (1 / p))[..., None]
