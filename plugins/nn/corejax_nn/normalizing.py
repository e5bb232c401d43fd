"""Functions along axes: of probabilities and their logarithms, and what makes numbers comparable."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

import corejax_numpy as jnp
from corejax import lax
from corejax.core import Array, ArrayLike, DTypeLike, aval_of, dtypes
from corejax.dtypes import result_type
from corejax.errors import CorejaxValueError
from corejax.plugin import NotDirectly, custom_jvp, directly, public, refused, shaping
from corejax_nn._operands import floating, operand

__all__ = ["log_softmax", "logmeanexp", "logsumexp", "one_hot", "softmax", "standardize"]

Axes = Any


def _axes(name: str, axis: Axes, ndim: int) -> tuple[int, ...]:
    return tuple(range(ndim)) if axis is None else shaping.canonical_axes(name, axis, ndim)


def _mask(name: str, where: Any, shape: tuple[int, ...]) -> Any:
    """A mask, of the shape of what it masks."""
    if where is None:
        return None
    where = operand(name, where)
    if aval_of(where).dtype != dtypes.bool_:
        raise refused(name, "where must say which elements count", got=aval_of(where), wanted="booleans",
                      todo="compare: where=x != 0")
    try:
        return jnp.broadcast_to(where, shape)
    except (ValueError, TypeError) as error:
        raise refused(name, "where doesn't broadcast to x", got=aval_of(where), wanted=f"booleans for shape {shape}",
                      todo="check the axes of where", kind=CorejaxValueError) from error


def _powers(x: Any, axes: tuple[int, ...], mask: Any) -> tuple[Any, Any]:
    """The largest element along axes, and exp(x - largest): 1 for each that is the largest, even if it is infinite."""
    most = jnp.max(x, axis=axes, keepdims=True, initial=-np.inf, where=mask)
    return most, _exp(_apart(x, most), mask)


def _exp(x: Any, mask: Any) -> Any:
    return lax.exp(x) if mask is None else jnp.where(mask, lax.exp(x), 0)


def _apart(x: Any, most: Any) -> Any:
    """x less the largest: 0 for each that is the largest, even if it is infinite."""
    return jnp.where(x == most, 0, x - most)


def _apart_in_memory(x: Any, most: Any) -> Any:
    return np.where(x == most, x.dtype.type(0), x - most)


def _largest(x: Any, axis: Any) -> Any:
    return np.maximum.reduce(x, axis=axis, keepdims=True)  # without the method's wrapper in Python


def _sum(x: Any, axis: Any) -> Any:
    return np.add.reduce(x, axis=axis, keepdims=True)


# Probabilities

def _softmax_in_memory(x: Any, axis: Any = -1, where: Any = None) -> Any:
    if where is not None or x.dtype.kind != "f" or not x.size or not x.ndim:
        raise NotDirectly
    powers = np.exp(_apart_in_memory(x, _largest(x, axis)))
    return powers / _sum(powers, axis)


@directly(_softmax_in_memory, whole=True)
def softmax(x: ArrayLike, axis: Axes = -1, where: ArrayLike | None = None) -> Array:
    """exp(x), divided by the sum of these along axes. Elements that `where` leaves out get 0.

    Rows of which nothing counts are 0, with derivatives of 0. An infinity takes all, and several share it.

    >>> nn.softmax(np.array([0.0, np.log(3.0)])).tolist()
    [0.25, 0.75]
    >>> nn.softmax(np.array([[1.0, 2.0], [3.0, 4.0]]), where=np.array([[True, False], [False, False]]))
    Array([[1., 0.],
           [0., 0.]], dtype=float64)
    """
    x = floating("softmax", x)
    axes, mask = _axes("softmax", axis, aval_of(x).ndim), _mask("softmax", where, aval_of(x).shape)
    return _shares(x, mask, axes)  # type: ignore[no-any-return]


@partial(custom_jvp, nondiff_argnums=(2,))
def _shares(x: Any, mask: Any, axes: tuple[int, ...]) -> Any:
    _, powers = _powers(x, axes, mask)
    total = jnp.sum(powers, axis=axes, keepdims=True)
    return powers / (total if mask is None else jnp.where(total == 0, 1, total))


@_shares.defjvp
def _shares_jvp(axes: tuple[int, ...], primals: Any, tangents: Any) -> Any:
    out, x_dot = _shares(*primals, axes), tangents[0]
    return out, out * (x_dot - jnp.sum(out * x_dot, axis=axes, keepdims=True))


def _log_softmax_in_memory(x: Any, axis: Any = -1, where: Any = None) -> Any:
    if where is not None or x.dtype.kind != "f" or not x.size or not x.ndim:
        raise NotDirectly
    apart = _apart_in_memory(x, _largest(x, axis))
    return apart - np.log(_sum(np.exp(apart), axis))


@directly(_log_softmax_in_memory, whole=True)
def log_softmax(x: ArrayLike, axis: Axes = -1, where: ArrayLike | None = None) -> Array:
    """The logarithm of `softmax`, without losing small ones. Elements that `where` leaves out get -infinity.

    >>> nn.log_softmax(np.array([0.0, 1000.0])).tolist()
    [-1000.0, 0.0]
    """
    x = floating("log_softmax", x)
    axes, mask = _axes("log_softmax", axis, aval_of(x).ndim), _mask("log_softmax", where, aval_of(x).shape)
    return _log_shares(x, mask, axes)  # type: ignore[no-any-return]


@partial(custom_jvp, nondiff_argnums=(2,))
def _log_shares(x: Any, mask: Any, axes: tuple[int, ...]) -> Any:
    apart = _apart(x, jnp.max(x, axis=axes, keepdims=True, initial=-np.inf, where=mask))
    shares = apart - lax.log(jnp.sum(_exp(apart, mask), axis=axes, keepdims=True))
    return shares if mask is None else jnp.where(mask, shares, -np.inf)


@_log_shares.defjvp
def _log_shares_jvp(axes: tuple[int, ...], primals: Any, tangents: Any) -> Any:
    x, mask = primals
    out, x_dot = _log_shares(x, mask, axes), tangents[0]
    slope = x_dot - jnp.sum(lax.exp(out) * x_dot, axis=axes, keepdims=True)
    return out, slope if mask is None else jnp.where(mask, slope, 0)


# Logarithms of sums

def _logsumexp_in_memory(a: Any, axis: Any = None, b: Any = None, keepdims: bool = False, return_sign: bool = False,
                         where: Any = None) -> Any:
    if where is not None or b is not None or return_sign or a.dtype.kind != "f" or not a.size or not a.ndim:
        raise NotDirectly
    most = _largest(a, axis)
    total = most + np.log(_sum(np.exp(_apart_in_memory(a, most)), axis))
    return total if keepdims else total.squeeze(axis)


@directly(_logsumexp_in_memory, whole=True)
def logsumexp(a: ArrayLike, axis: Axes = None, b: ArrayLike | None = None, keepdims: bool = False,
              return_sign: bool = False, where: ArrayLike | None = None) -> Any:
    """log(sum(b exp(a))) along axes, which doesn't overflow; with `return_sign`, of the absolute value, and the sign.

    Elements that `where` leaves out don't count. An infinity has the whole derivative, and several share it.

    >>> nn.logsumexp(np.array([1000.0, 1000.0])).item() - 1000.0
    0.69314718...
    >>> cj.grad(nn.logsumexp)(np.array([np.inf, 0.0])).tolist()
    [1.0, 0.0]
    """
    a = floating("logsumexp", a)
    if b is not None:
        b = floating("logsumexp", b)
        dtype = result_type(a, b)
        a, b = jnp.broadcast_arrays(*[lax.convert_element_type(x, dtype) for x in (a, b)])
    axes, mask = _axes("logsumexp", axis, aval_of(a).ndim), _mask("logsumexp", where, aval_of(a).shape)
    keep = shaping.as_flag("logsumexp", "keepdims", keepdims)
    out, sign = _log_of_sum(a, b, mask, axes)
    if not shaping.as_flag("logsumexp", "return_sign", return_sign):
        out = out if b is None else jnp.where(sign < 0, np.nan, out)
    out, sign = [x if keep else lax.squeeze(x, axes) for x in (out, sign)]
    return (out, sign) if return_sign else out


@partial(custom_jvp, nondiff_argnums=(3,))
def _log_of_sum(a: Any, b: Any, mask: Any, axes: tuple[int, ...]) -> Any:
    if b is None:  # an infinite one gives the right sum as it is, so no element has to be compared with it
        most = jnp.max(a, axis=axes, keepdims=True, initial=-np.inf, where=mask)
        base = jnp.where(jnp.isinf(most), 0, most)
        total = jnp.sum(lax.exp(a - base), axis=axes, keepdims=True, where=mask)
        return base + lax.log(total), lax.sign(total)
    most, powers = _powers(a, axes, _counted(b, mask))
    total = jnp.sum(b * powers, axis=axes, keepdims=True)
    return most + lax.log(lax.abs(total)), lax.sign(jnp.where(most == -np.inf, 0, total))


def _counted(b: Any, mask: Any) -> Any:
    """What counts: an element with the factor 0 doesn't, even if it is infinite."""
    if b is None:
        return mask
    return b != 0 if mask is None else lax.bitwise_and(mask, b != 0)


@_log_of_sum.defjvp
def _log_of_sum_jvp(axes: tuple[int, ...], primals: Any, tangents: Any) -> Any:
    a, b, mask = primals
    most, powers = _powers(a, axes, _counted(b, mask))
    total = jnp.sum(powers if b is None else b * powers, axis=axes, keepdims=True)
    out, sign = most + lax.log(lax.abs(total)), lax.sign(jnp.where(most == -np.inf, 0, total))
    slope = powers * tangents[0] if b is None else b * powers * tangents[0]
    if b is not None:
        most = jnp.max(a, axis=axes, keepdims=True, initial=-np.inf, where=_counted(b, mask))
        grown = lax.exp(a - jnp.where(jnp.isinf(most), 0, most))  # also where b is 0
        slope = slope + (grown if mask is None else jnp.where(mask, grown, 0)) * tangents[1]
    changed = jnp.sum(slope, axis=axes, keepdims=True) / jnp.where(total == 0, 1, total)
    return (out, sign), (changed, lax.full_like(sign, 0))


@public
def logmeanexp(x: ArrayLike, axis: Axes = None, where: ArrayLike | None = None, keepdims: bool = False) -> Array:
    """The logarithm of the mean of exp(x) along axes.

    >>> nn.logmeanexp(np.array([1000.0, 1000.0])).item()
    1000.0
    """
    x = floating("logmeanexp", x)
    axes, mask = _axes("logmeanexp", axis, aval_of(x).ndim), _mask("logmeanexp", where, aval_of(x).shape)
    total = logsumexp(x, axes, keepdims=keepdims, where=mask)
    count: Any = np.prod([aval_of(x).shape[i] for i in axes], dtype=float)
    if mask is not None:
        count = lax.convert_element_type(jnp.sum(mask, axis=axes, keepdims=keepdims), aval_of(x).dtype)
    return total - jnp.log(count).astype(aval_of(x).dtype)  # type: ignore[no-any-return]


# Classes, and what is comparable

def _one_hot_in_memory(x: Any, num_classes: int, *, dtype: Any = None, axis: Any = -1) -> Any:
    if dtype is not None or type(axis) is not int or axis != -1 or x.dtype.kind not in "iu":
        raise NotDirectly
    return (x[..., None] == np.arange(num_classes, dtype=x.dtype)).astype(np.float64)


@directly(_one_hot_in_memory)
def one_hot(x: Any, num_classes: int, *, dtype: DTypeLike | None = None, axis: Any = -1) -> Array:
    """For each number a row of zeros, with 1 at its place; all zeros if it isn't from 0 to `num_classes` - 1.

    The new axis is the last one, or `axis`. If that is the name of an axis of a map, each part gets its number.

    >>> nn.one_hot(np.array([1, 5]), 3)
    Array([[0., 1., 0.],
           [0., 0., 0.]], dtype=float64)
    """
    x = operand("one_hot", x)
    wanted = dtypes.default_dtype("f") if dtype is None else dtypes.canonical(dtype)
    (count,) = shaping.as_ints("one_hot", "num_classes", num_classes)
    if count < 0:
        raise refused("one_hot", "the number of classes can't be negative", got=count, wanted="0 or more",
                      todo="check how it is computed", kind=CorejaxValueError)
    if isinstance(axis, (int, np.integer)):
        ndim = aval_of(x).ndim
        place = shaping.canonical_axis("one_hot", axis, ndim + 1)
        classes = lax.broadcasted_iota(aval_of(x).dtype if dtypes.is_integer(aval_of(x).dtype) else wanted,
                                       (1,) * place + (count,) + (1,) * (ndim - place), place)
        return lax.convert_element_type(jnp.expand_dims(x, place) == classes, wanted)  # type: ignore[no-any-return]
    if lax.axis_size(axis) != count:
        raise refused("one_hot", "the axis doesn't have a part for each class", kind=CorejaxValueError,
                      got=f"the axis {axis!r} of size {lax.axis_size(axis)}", wanted=f"num_classes={count}",
                      todo="pass its size")
    return lax.convert_element_type(x == lax.axis_index(axis), wanted)  # type: ignore[no-any-return]


def _standardize_in_memory(x: Any, axis: Any = -1, mean: Any = None, variance: Any = None, epsilon: Any = 1e-5,
                           where: Any = None, *, algorithm: str = "fast") -> Any:
    others = mean, variance, where
    if others != (None, None, None) or type(epsilon) is not float or x.dtype.kind != "f" or not x.size or not x.ndim:
        raise NotDirectly
    if algorithm not in ("fast", "stable"):
        raise NotDirectly
    middle = _mean(x, axis)
    apart = x - middle
    spread = (np.maximum(_mean(x * x, axis) - middle * middle, 0) if algorithm == "fast"
              else _mean(apart * apart, axis))
    return apart / np.sqrt(spread + epsilon)


def _mean(x: Any, axis: Any) -> Any:
    """`x.mean(axis, keepdims=True)`, in half the time for a few numbers."""
    if x.dtype.itemsize < 4:  # which NumPy sums in float32
        return x.mean(axis, keepdims=True)
    total = _sum(x, axis)
    return total / total.dtype.type(x.size // total.size)


@directly(_standardize_in_memory, whole=True)
def standardize(x: ArrayLike, axis: Axes = -1, mean: ArrayLike | None = None, variance: ArrayLike | None = None,
                epsilon: ArrayLike = 1e-5, where: ArrayLike | None = None, *, algorithm: str = "fast") -> Array:
    """x, moved and scaled to have the mean 0 and, but for `epsilon`, the variance 1 along axes.

    The variance is that of squares less the square of the mean, or, by the algorithm "stable", that of differences
    from the mean, which loses nothing where the mean is large. Only elements in `where` count.

    >>> nn.standardize(np.array([1.0, 3.0]), epsilon=0.0).tolist()
    [-1.0, 1.0]
    """
    values = floating("standardize", x)
    aval = aval_of(values)
    axes, mask = _axes("standardize", axis, aval.ndim), _mask("standardize", where, aval.shape)
    if algorithm not in ("fast", "stable"):
        raise refused("standardize", "there is no such algorithm", got=repr(algorithm), wanted="'fast' or 'stable'",
                      todo="leave it out", kind=CorejaxValueError)

    def mean_of(x: Any) -> Any:
        return jnp.mean(x, axis=axes, keepdims=True, where=mask)

    middle: Any = mean_of(values) if mean is None else operand("standardize", mean)
    spread: Any = None if variance is None else operand("standardize", variance)
    if spread is None and algorithm == "fast":
        spread = jnp.maximum(mean_of(lax.square(values)) - jnp.square(middle), 0)
    elif spread is None:
        spread = mean_of(jnp.square(values - middle))
    scale = jnp.asarray(spread + operand("standardize", epsilon)).astype(aval.dtype)
    return (values - middle) * lax.rsqrt(scale)  # type: ignore[no-any-return]
