"""Activations: functions of each element."""

from __future__ import annotations

from math import sqrt
from typing import Any

import numpy as np

import corejax_numpy as jnp
from corejax import lax
from corejax.core import Array, ArrayLike, aval_of, dtypes
from corejax.errors import CorejaxValueError
from corejax.plugin import NotDirectly, directly, public, refused, shaping
from corejax_nn import rows
from corejax_nn._operands import floating, operand

__all__ = ["celu", "elu", "gelu", "glu", "hard_sigmoid", "hard_silu", "hard_swish", "hard_tanh", "identity",
           "leaky_relu", "log1mexp", "log_sigmoid", "mish", "relu", "relu6", "selu", "sigmoid", "silu", "soft_sign",
           "softplus", "sparse_plus", "sparse_sigmoid", "squareplus", "swish", "tanh"]


# Straight lines

@public
def relu(x: ArrayLike) -> Array:
    """The larger of x and 0. Its derivative at 0 is 0.

    >>> nn.relu(np.array([-2.0, 0.0, 3.0])).tolist(), cj.grad(nn.relu)(0.0).item()
    ([0.0, 0.0, 3.0], 0.0)
    """
    return _line("relu", x, rows.nn_relu, lambda x: lax.max(x, lax.full_like(x, 0)))  # type: ignore[no-any-return]


@public
def relu6(x: ArrayLike) -> Array:
    """x between 0 and 6. Its derivative at both ends is 0.

    >>> nn.relu6(np.array([-2.0, 3.0, 8.0])).tolist()
    [0.0, 3.0, 6.0]
    """
    return rows.nn_relu6.primitive.bind_one(floating("relu6", x))  # type: ignore[no-any-return]


@public
def hard_tanh(x: ArrayLike) -> Array:
    """x between -1 and 1. Its derivative at both ends is 1.

    >>> nn.hard_tanh(np.array([-2.0, 0.5, 8.0])).tolist()
    [-1.0, 0.5, 1.0]
    """
    return _line("hard_tanh", x, rows.nn_hard_tanh,  # type: ignore[no-any-return]
                 lambda x: lax.clamp(lax.full_like(x, -1), x, lax.full_like(x, 1)))


def _line(name: str, x: Any, row: Any, of_integers: Any) -> Any:
    x = operand(name, x)
    if dtypes.kind(aval_of(x).dtype) in "iu":
        return of_integers(x)
    return row.primitive.bind_one(floating(name, x))


@directly(lambda x, negative_slope=0.01: np.where(x >= 0, x, negative_slope * x), arrays=2, whole=True)
def leaky_relu(x: ArrayLike, negative_slope: ArrayLike = 0.01) -> Array:
    """x where it isn't negative, and x times a slope elsewhere. Its derivative at 0 is 1.

    >>> nn.leaky_relu(np.array([-2.0, 3.0])).tolist()
    [-0.02, 3.0]
    """
    values, slope = floating("leaky_relu", x), operand("leaky_relu", negative_slope)
    return jnp.where(values >= 0, values, slope * values)  # type: ignore[no-any-return]


@public
def identity(x: ArrayLike) -> Array:
    """x itself, as an array.

    >>> nn.identity(3.0)
    Array(3., dtype=float64, weak_type=True)
    """
    return operand("identity", x)  # type: ignore[no-any-return]


@public
def hard_sigmoid(x: ArrayLike) -> Array:
    """A straight line from 0 at -3 to 1 at 3.

    >>> nn.hard_sigmoid(np.array([-4.0, 0.0, 4.0])).tolist()
    [0.0, 0.5, 1.0]
    """
    return rows.nn_hard_sigmoid.primitive.bind_one(floating("hard_sigmoid", x))  # type: ignore[no-any-return]


@public
def hard_silu(x: ArrayLike) -> Array:
    """x times `hard_sigmoid(x)`; also called `hard_swish`.

    >>> nn.hard_silu(np.array([-4.0, 3.0])).tolist()
    [-0.0, 3.0]
    """
    return rows.nn_hard_silu.primitive.bind_one(floating("hard_silu", x))  # type: ignore[no-any-return]


hard_swish = hard_silu


@public
def sparse_sigmoid(x: ArrayLike) -> Array:
    """A straight line from 0 at -1 to 1 at 1: the derivative of `sparse_plus`.

    >>> nn.sparse_sigmoid(np.array([-4.0, 0.0, 4.0])).tolist()
    [0.0, 0.5, 1.0]
    """
    return rows.nn_sparse_sigmoid.primitive.bind_one(floating("sparse_sigmoid", x))  # type: ignore[no-any-return]


# Smooth ones

@public
def sigmoid(x: ArrayLike) -> Array:
    """1 / (1 + exp(-x)).

    >>> nn.sigmoid(0.0).item()
    0.5
    """
    return lax.logistic(floating("sigmoid", x, complexes=True))  # type: ignore[no-any-return]


@public
def tanh(x: ArrayLike, /) -> Array:
    """The hyperbolic tangent.

    >>> nn.tanh(0.0).item()
    0.0
    """
    return lax.tanh(floating("tanh", x, complexes=True))  # type: ignore[no-any-return]


@public
def silu(x: ArrayLike) -> Array:
    """x times `sigmoid(x)`; also called `swish`. At -infinity it is 0, as its limit is.

    >>> nn.silu(np.array([0.0, -np.inf])).tolist()
    [0.0, -0.0]
    """
    return rows.nn_silu.primitive.bind_one(floating("silu", x))  # type: ignore[no-any-return]


swish = silu


@public
def mish(x: ArrayLike) -> Array:
    """x times tanh(softplus(x)).

    >>> nn.mish(np.array([0.0, -np.inf])).tolist()
    [0.0, -0.0]
    """
    return rows.nn_mish.primitive.bind_one(floating("mish", x))  # type: ignore[no-any-return]


@public
def softplus(x: ArrayLike) -> Array:
    """log(1 + exp(x)), which doesn't overflow.

    >>> nn.softplus(np.array([-800.0, 800.0])).tolist()
    [0.0, 800.0]
    """
    return rows.nn_softplus.primitive.bind_one(floating("softplus", x))  # type: ignore[no-any-return]


@directly(lambda x: -(np.maximum(-x, 0) + np.log1p(np.exp(-np.abs(x)))), whole=True)
def log_sigmoid(x: ArrayLike) -> Array:
    """log(sigmoid(x)), which doesn't overflow.

    >>> nn.log_sigmoid(np.array([-800.0, 800.0])).tolist()
    [-800.0, -0.0]
    """
    return lax.neg(rows.nn_softplus.primitive.bind_one(lax.neg(floating("log_sigmoid", x))))  # type: ignore[no-any-return]


@public
def sparse_plus(x: ArrayLike) -> Array:
    """0 up to -1, x from 1 on, and (x + 1)**2 / 4 in between.

    >>> nn.sparse_plus(np.array([-2.0, 0.0, 2.0])).tolist()
    [0.0, 0.25, 2.0]
    """
    return rows.nn_sparse_plus.primitive.bind_one(floating("sparse_plus", x))  # type: ignore[no-any-return]


@public
def soft_sign(x: ArrayLike) -> Array:
    """x / (1 + |x|).

    >>> nn.soft_sign(np.array([1.0, -np.inf])).tolist()
    [0.5, -1.0]
    """
    return rows.nn_soft_sign.primitive.bind_one(floating("soft_sign", x))  # type: ignore[no-any-return]


@directly(lambda x, b=4: (x + np.sqrt(x * x + b)) * 0.5, arrays=2, whole=True)
def squareplus(x: ArrayLike, b: ArrayLike = 4) -> Array:
    """(x + sqrt(x**2 + b)) / 2.

    >>> nn.squareplus(0.0).item()
    1.0
    """
    values = floating("squareplus", x)
    return 0.5 * (values + jnp.sqrt(lax.square(values) + operand("squareplus", b)))  # type: ignore[no-any-return]


@directly(lambda x, alpha=1.0: np.where(x > 0, x, alpha * np.expm1(np.minimum(x, 0))), arrays=2, whole=True)
def elu(x: ArrayLike, alpha: ArrayLike = 1.0) -> Array:
    """x where it is positive, and alpha (exp(x) - 1) elsewhere.

    >>> nn.elu(np.array([-np.inf, 2.0])).tolist()
    [-1.0, 2.0]
    """
    values, scale = floating("elu", x), operand("elu", alpha)
    return jnp.where(values > 0, values, scale * lax.expm1(_up_to_zero(values)))  # type: ignore[no-any-return]


@directly(lambda x, alpha=1.0: np.where(x > 0, x, alpha * np.expm1(np.minimum(x, 0) / alpha)), arrays=2, whole=True)
def celu(x: ArrayLike, alpha: ArrayLike = 1.0) -> Array:
    """x where it is positive, and alpha (exp(x / alpha) - 1) elsewhere, so that the slope at 0 is 1.

    >>> nn.celu(np.array([-np.inf, 2.0]), 0.5).tolist()
    [-0.5, 2.0]
    """
    values, scale = floating("celu", x), operand("celu", alpha)
    return jnp.where(values > 0, values, scale * jnp.expm1(_up_to_zero(values) / scale))  # type: ignore[no-any-return]


def _up_to_zero(x: Any) -> Any:
    """x where it isn't positive, else 0, without derivative."""
    return lax.select(x > 0, lax.full_like(x, 0), x)


@public
def selu(x: ArrayLike) -> Array:
    """1.0507 times `elu(x, 1.673)`: with it, layers keep mean 0 and variance 1.

    >>> nn.selu(np.array([-np.inf, 1.0])).tolist()
    [-1.75809934084737..., 1.0507009873554...]
    """
    return rows.nn_selu.primitive.bind_one(floating("selu", x))  # type: ignore[no-any-return]


@public
def gelu(x: ArrayLike, approximate: bool = True) -> Array:
    """x times the share of the normal distribution below x; by a hyperbolic tangent if `approximate`.

    >>> nn.gelu(np.array([0.0, 1.0])).tolist(), nn.gelu(1.0, approximate=False).item()
    ([0.0, 0.841191990...], 0.841344746...)
    """
    values = floating("gelu", x)
    if shaping.as_flag("gelu", "approximate", approximate):
        return rows.nn_gelu_tanh.primitive.bind_one(values)  # type: ignore[no-any-return]
    far = lax.full_like(values, 40)
    near: Any = lax.clamp(lax.neg(far), values, far)  # beyond, the share is 0 or 1
    return lax.select(lax.gt(values, far), values, near * (0.5 * lax.erfc(near * -sqrt(0.5))))  # type: ignore[no-any-return]


def _glu_in_memory(x: Any, axis: int = -1) -> Any:
    half, odd = divmod(x.shape[axis], 2)
    if odd or x.dtype.kind != "f":
        raise NotDirectly
    before = (slice(None),) * (axis % x.ndim)
    return x[(*before, slice(half))] / (np.exp(-x[(*before, slice(half, None))]) + x.dtype.type(1))


@directly(_glu_in_memory, whole=True)
def glu(x: ArrayLike, axis: int = -1) -> Array:
    """The first half along an axis, times the `sigmoid` of the second.

    >>> nn.glu(np.array([2.0, 0.0])).tolist()
    [1.0]
    """
    values = floating("glu", x)
    along = shaping.canonical_axis("glu", axis, aval_of(values).ndim)
    size = aval_of(values).shape[along]
    if size % 2:
        raise refused("glu", "the axis must have two halves", wanted="an even size",
                      got=f"{aval_of(values)}, which has {size} along axis {along}", kind=CorejaxValueError,
                      todo="pass the axis along which both halves are")
    first, second = [lax.slice_in_dim(values, start, start + size // 2, axis=along) for start in (0, size // 2)]
    return first * lax.logistic(second)  # type: ignore[no-any-return]


@public
def log1mexp(x: ArrayLike) -> Array:
    """log(1 - exp(-x)) for positive x, which is exact where exp(-x) is near 0 or 1.

    >>> nn.log1mexp(np.array([1e-20, 50.0])).tolist()
    [-46.0517018598..., -1.92874984796...e-22]
    """
    return rows.nn_log1mexp.primitive.bind_one(floating("log1mexp", x))  # type: ignore[no-any-return]
