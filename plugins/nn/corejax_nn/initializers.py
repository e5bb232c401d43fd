"""`corejax.nn.initializers`: what a layer's weights are at first.

Each function here gives an initializer: a function of a key, a shape and a dtype. `zeros` and `ones` are such already.

>>> from corejax import random
>>> from corejax.nn import initializers
>>> initializers.he_normal()(random.key(0), (3, 4)).shape
(3, 4)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import pi, prod, sqrt
from typing import Any, Protocol, runtime_checkable

import numpy as np

import corejax_numpy as jnp
from corejax import lax
from corejax.core import Array, ArrayLike, DTypeLike, dtypes
from corejax.errors import CorejaxValueError
from corejax.plugin import public, refused, shaping
from corejax_random import normal as draw_normal, split, truncated_normal as draw_truncated, uniform as draw_uniform

__all__ = ["Initializer", "constant", "delta_orthogonal", "glorot_normal", "glorot_uniform", "he_normal", "he_uniform",
           "kaiming_normal", "kaiming_uniform", "lecun_normal", "lecun_uniform", "normal", "ones", "orthogonal",
           "truncated_normal", "uniform", "variance_scaling", "xavier_normal", "xavier_uniform", "zeros"]

Axes = int | Sequence[int]


@runtime_checkable
class Initializer(Protocol):
    """A function of a key, a shape and a dtype."""

    def __call__(self, key: Any, shape: Any, dtype: DTypeLike | None = None, out_sharding: Any = None) -> Array:
        """The first values of an array of this shape."""


def _initializer(name: str, dtype: DTypeLike | None, draw: Callable[[Any, tuple[int, ...], np.dtype], Any]
                 ) -> Initializer:
    """An initializer by `draw(key, shape, dtype)`; the dtype is a default for the one of the call."""
    @public
    def init(key: Any, shape: Any, dtype: DTypeLike | None = dtype, out_sharding: Any = None) -> Array:
        found = dtypes.default_dtype("f") if dtype is None else dtypes.canonical(dtype)
        made = draw(key, _sizes(name, shape), found)
        return made if out_sharding is None else jnp.asarray(made, device=out_sharding)  # type: ignore[no-any-return]

    init.__name__ = init.__qualname__ = name
    return init


def _sizes(name: str, shape: Any) -> tuple[int, ...]:
    sizes = shaping.as_ints(name, "shape", shape) if shape != () else ()
    for size in sizes:
        if size < 0:
            raise refused(name, "a size can't be negative", got=f"shape={sizes}", wanted="sizes of 0 or more",
                          todo="check how the shape is computed", kind=CorejaxValueError)
    return sizes


# The same for all

@public
def zeros(key: Any, shape: Any, dtype: DTypeLike | None = None, out_sharding: Any = None) -> Array:
    """An initializer of zeros.

    >>> zeros(random.key(0), (2,))
    Array([0., 0.], dtype=float64)
    """
    return constant(0)(key, shape, dtype, out_sharding)


@public
def ones(key: Any, shape: Any, dtype: DTypeLike | None = None, out_sharding: Any = None) -> Array:
    """An initializer of ones.

    >>> ones(random.key(0), (2,))
    Array([1., 1.], dtype=float64)
    """
    return constant(1)(key, shape, dtype, out_sharding)


@public
def constant(value: ArrayLike, dtype: DTypeLike | None = None) -> Initializer:
    """An initializer of one value, or of an array that broadcasts to the shape.

    >>> constant(3)(random.key(0), (2,), "int32")
    Array([3, 3], dtype=int32)
    """
    return _initializer("constant", dtype, lambda key, shape, dtype: jnp.full(shape, value, dtype))


# Drawn from one distribution

@public
def uniform(scale: Any = 1e-2, dtype: DTypeLike | None = None) -> Initializer:
    """An initializer of numbers between 0 and `scale`.

    >>> bool((uniform(2.0)(random.key(0), (100,)) < 2.0).all())
    True
    """
    return _initializer("uniform", dtype, lambda key, shape, dtype: _scaled(draw_uniform(key, shape, dtype), scale))


@public
def normal(stddev: Any = 1e-2, dtype: DTypeLike | None = None) -> Initializer:
    """An initializer of normal numbers with this standard deviation.

    >>> normal(5.0)(random.key(0), (2,), "float32").dtype
    dtype('float32')
    """
    return _initializer("normal", dtype, lambda key, shape, dtype: _scaled(draw_normal(key, shape, dtype), stddev))


@public
def truncated_normal(stddev: Any = 1e-2, dtype: DTypeLike | None = None, lower: Any = -2.0, upper: Any = 2.0
                     ) -> Initializer:
    """An initializer of normal numbers between two bounds, which are in standard deviations.

    >>> bool((abs(truncated_normal(1.0)(random.key(0), (100,))) <= 2.0).all())
    True
    """
    return _initializer("truncated_normal", dtype, lambda key, shape, dtype: _scaled(
        draw_truncated(key, lower, upper, shape, dtype), stddev))


def _scaled(x: Any, scale: Any) -> Any:
    return x * jnp.asarray(scale, x.dtype)


# Scaled by the number of connections

_MODES = ("fan_in", "fan_out", "fan_avg", "fan_geo_avg")
_DISTRIBUTIONS = ("truncated_normal", "normal", "uniform")

#: The standard deviation of a standard normal number between -2 and 2; and JAX's of a complex one in a disc, which is
#: 1% too small.
_WIDTH, _WIDTH_IN_DISC = 0.87962566103423978, 0.95311164380491208


@public
def variance_scaling(scale: Any, mode: str, distribution: str, in_axis: Axes = -2, out_axis: Axes = -1,
                     batch_axis: Axes = (), dtype: DTypeLike | None = None) -> Initializer:
    """An initializer whose variance is `scale` over the number of inputs, of outputs, or their mean.

    `mode` is "fan_in", "fan_out", "fan_avg" or "fan_geo_avg"; `distribution` is "truncated_normal" (at two standard
    deviations), "normal" or "uniform". Axes that are none of those given belong to the field that each output sees.

    >>> init = variance_scaling(1.0, "fan_in", "normal")
    >>> bool(abs(init(random.key(0), (400, 300)).std() * 20.0 - 1.0) < 0.01)
    True
    """
    if mode not in _MODES:
        raise _unknown("mode", mode, _MODES)
    if distribution not in _DISTRIBUTIONS:
        raise _unknown("distribution", distribution, _DISTRIBUTIONS)

    def draw(key: Any, shape: tuple[int, ...], dtype: np.dtype) -> Any:
        fan_in, fan_out = _fans(shape, in_axis, out_axis, batch_axis)
        count = {"fan_in": fan_in, "fan_out": fan_out, "fan_avg": (fan_in + fan_out) / 2,
                 "fan_geo_avg": sqrt(fan_in * fan_out)}[mode]
        variance = jnp.asarray(scale / count if count else np.inf, dtype)
        if distribution == "normal":
            return draw_normal(key, shape, dtype) * lax.sqrt(variance)
        if distribution == "uniform":
            if dtypes.is_complex(dtype):
                return _in_disc(key, shape, dtype) * lax.sqrt(2 * variance)
            return draw_uniform(key, shape, dtype, -1) * lax.sqrt(3 * variance)
        if dtypes.is_complex(dtype):
            return _normal_in_disc(2, key, shape, dtype) * (lax.sqrt(variance) / jnp.asarray(_WIDTH_IN_DISC, dtype))
        return draw_truncated(key, -2, 2, shape, dtype) * (lax.sqrt(variance) / jnp.asarray(_WIDTH, dtype))

    return _initializer("variance_scaling", dtype, draw)


def _unknown(what: str, got: Any, known: Sequence[str]) -> CorejaxValueError:
    return refused("variance_scaling", f"there is no such {what}", got=repr(got)[:80], wanted=", ".join(known),  # type: ignore[return-value]
                   todo="use one of these", kind=CorejaxValueError)


def _fans(shape: tuple[int, ...], in_axis: Axes, out_axis: Axes, batch_axis: Axes) -> tuple[float, float]:
    """The numbers of inputs of each output, and of outputs of each input."""
    if len(shape) < 2:
        raise refused("variance_scaling", "weights have an axis of inputs and one of outputs", got=f"shape={shape}",
                      wanted="two axes or more", todo="use normal or uniform for other arrays", kind=CorejaxValueError)
    inputs, outputs, batch = [prod([shape[i] for i in shaping.canonical_axes("variance_scaling", axes, len(shape))])
                              for axes in (in_axis, out_axis, batch_axis)]
    field = prod(shape) / (inputs * outputs * batch) if inputs * outputs * batch else 1.0
    return inputs * field, outputs * field


def _in_disc(key: Any, shape: tuple[int, ...], dtype: np.dtype) -> Any:
    """Complex numbers that are uniform in the unit disc."""
    of_length, of_angle = split(key)
    real = np.dtype("float32" if dtype.itemsize == 8 else "float64")
    length = lax.sqrt(draw_uniform(of_length, shape, real)).astype(dtype)
    angle = (2 * pi * draw_uniform(of_angle, shape, real)).astype(dtype)
    return length * lax.exp(jnp.asarray(1j, dtype) * angle)


def _normal_in_disc(upper: Any, key: Any, shape: tuple[int, ...], dtype: np.dtype) -> Any:
    """Complex normal numbers in a disc."""
    of_length, of_angle = split(key)
    real = np.dtype("float32" if dtype.itemsize == 8 else "float64")
    share = (1 - jnp.exp(jnp.asarray(-upper ** 2, real))) * draw_uniform(of_length, shape, real)
    length = lax.sqrt(lax.neg(lax.log(1 - share))).astype(dtype)
    angle = (2 * pi * draw_uniform(of_angle, shape, real)).astype(dtype)
    return length * lax.exp(jnp.asarray(1j, dtype) * angle)


def _scaling(name: str, scale: float, mode: str, distribution: str, doc: str) -> Callable[..., Initializer]:
    @public
    def initializer(in_axis: Axes = -2, out_axis: Axes = -1, batch_axis: Axes = (), dtype: DTypeLike | None = None
                    ) -> Initializer:
        return variance_scaling(scale, mode, distribution, in_axis, out_axis, batch_axis, dtype)

    initializer.__name__ = initializer.__qualname__ = name
    initializer.__doc__ = f"""{doc}: `variance_scaling({scale}, "{mode}", "{distribution}")`.

    >>> {name}()(random.key(0), (3, 4)).shape
    (3, 4)
    """
    return initializer


glorot_uniform = _scaling("glorot_uniform", 1.0, "fan_avg", "uniform", "Glorot's and Bengio's of 2010")
glorot_normal = _scaling("glorot_normal", 1.0, "fan_avg", "truncated_normal", "The same, normal")
lecun_uniform = _scaling("lecun_uniform", 1.0, "fan_in", "uniform", "LeCun's of 1998")
lecun_normal = _scaling("lecun_normal", 1.0, "fan_in", "truncated_normal", "The same, normal")
he_uniform = _scaling("he_uniform", 2.0, "fan_in", "uniform", "He's of 2015, for layers before `relu`")
he_normal = _scaling("he_normal", 2.0, "fan_in", "truncated_normal", "The same, normal")
xavier_uniform, xavier_normal = glorot_uniform, glorot_normal
kaiming_uniform, kaiming_normal = he_uniform, he_normal


# Orthogonal

@public
def orthogonal(scale: Any = 1.0, column_axis: int = -1, dtype: DTypeLike | None = None) -> Initializer:
    """An initializer of matrices with orthogonal rows or columns, whichever are fewer; `column_axis` is the columns'.

    >>> weights = orthogonal()(random.key(0), (2, 3))
    >>> np.allclose(weights @ weights.T, np.eye(2))
    True
    """
    def draw(key: Any, shape: tuple[int, ...], dtype: np.dtype) -> Any:
        if len(shape) < 2:
            raise refused("orthogonal", "a matrix has two axes", got=f"shape={shape}", wanted="two axes or more",
                          todo="give the axes of inputs and outputs", kind=CorejaxValueError)
        column = shaping.canonical_axis("orthogonal", column_axis, len(shape))
        columns = shape[column]
        rows = prod(shape) // columns if columns else 0
        drawn = draw_normal(key, (max(rows, columns), min(rows, columns)), dtype)
        q, r = jnp.linalg.qr(drawn)
        q = q * jnp.sign(jnp.diagonal(r))
        q = q.T if rows < columns else q
        q = jnp.moveaxis(jnp.reshape(q, (*shape[:column], *shape[column + 1:], columns)), -1, column)
        return _scaled(q, scale)

    return _initializer("orthogonal", dtype, draw)


@public
def delta_orthogonal(scale: Any = 1.0, column_axis: int = -1, dtype: DTypeLike | None = None) -> Initializer:
    """An initializer of kernels of convolutions that are orthogonal in the middle and zero elsewhere.

    >>> delta_orthogonal()(random.key(0), (3, 2, 4)).shape
    (3, 2, 4)
    """
    def draw(key: Any, shape: tuple[int, ...], dtype: np.dtype) -> Any:
        if len(shape) not in (3, 4, 5):
            raise refused("delta_orthogonal", "kernels have one to three axes of places, then inputs and outputs",
                          got=f"shape={shape}", wanted="three to five axes", todo="use orthogonal for matrices",
                          kind=CorejaxValueError)
        if shape[-1] < shape[-2]:
            raise refused("delta_orthogonal", "there must be at least as many outputs as inputs", got=f"shape={shape}",
                          wanted="shape[-1] >= shape[-2]", todo="use orthogonal", kind=CorejaxValueError)
        matrix = orthogonal(scale, column_axis, dtype)(key, shape[-2:], dtype)
        middle = tuple([(size - 1) // 2 for size in shape[:-2]])
        return jnp.zeros(shape, dtype).at[middle].set(matrix)

    return _initializer("delta_orthogonal", dtype, draw)
