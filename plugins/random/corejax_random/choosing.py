"""Random order, and random choices: from arrays, from probabilities, from their logarithms."""

from __future__ import annotations

from math import ceil, log, prod
from typing import Any

import numpy as np

import corejax_numpy as jnp
from corejax import lax
from corejax.core import Array, ArrayLike, aval_of, dtypes, is_concrete
from corejax.errors import CorejaxTypeError, CorejaxValueError
from corejax.plugin import jit, operators, public, refused, shaping
from corejax_random._asked import Shape, placed, shape_over, sizes, typed
from corejax_random.keys import single_key
from corejax_random.quantiles import checked_mode, draw_gumbel
from corejax_random.uniforms import draw_bits, draw_integers, draw_unit, split

__all__ = ["categorical", "choice", "permutation"]

_WANTED = "an array or an integer"


@public
def permutation(key: ArrayLike, x: ArrayLike, axis: int = 0, independent: bool = False, *, out_sharding: Any = None
                ) -> Array:
    """The array in a random order along an axis, or the numbers below `x` if that is an integer.

    If `independent`, each of the rows along that axis has an order of its own.

    >>> sorted(random.permutation(random.key(0), 5).tolist())
    [0, 1, 2, 3, 4]
    """
    key, _ = single_key("permutation", key)
    aval = typed("permutation", "x", x, _WANTED)
    axis = shaping.canonical_axis("permutation", axis, aval.ndim or 1)
    if not aval.ndim:
        made = _shuffled_numbers(key, _count("permutation", "x", x))
    else:
        made = _permutation(key, x, axis, bool(independent))
    return placed(made, out_sharding)


def _count(name: str, what: str, x: Any) -> int:
    """An integer that says how many things there are, which the shape of the result depends on."""
    aval = aval_of(x)
    if not dtypes.is_integer(aval.dtype):
        raise refused(name, f"{what} must be an integer, or have an axis", got=aval, wanted="an integer, or an array",
                      todo="pass an array with at least one axis")
    if not is_concrete(x) and not isinstance(x, (int, np.integer, np.ndarray)):
        raise refused(name, f"{what} must be known when the program is traced: it says how many things there are",
                      got=aval, wanted="a static integer", todo="pass a Python number, or mark it static")
    return int(x)


@jit(static_argnums=(1,))
def _shuffled_numbers(key: Any, count: int) -> Any:
    return _shuffled(key, lax.iota(dtypes.default_dtype("i"), max(count, 0)), 0)


@jit(static_argnums=(2, 3))
def _permutation(key: Any, x: Any, axis: int, independent: bool) -> Any:
    return _permuted(key, x, axis, independent)


def _permuted(key: Any, x: Any, axis: int, independent: bool = False) -> Any:
    aval = aval_of(x)
    if independent and aval.ndim > 1 or aval.ndim == 1 and dtypes.kind(aval.dtype) != "E":  # keys can't be sorted
        return _shuffled(key, x, axis)
    return jnp.take(x, _shuffled(key, lax.iota(dtypes.default_dtype("i"), aval.shape[axis]), 0), axis)


def _shuffled(key: Any, x: Any, axis: int) -> Any:
    """Sorted by random words, so often that equal ones hardly matter."""
    aval = aval_of(x)
    rounds = ceil(3 * log(max(1, aval.size)) / log(2 ** 32 - 1))
    for _ in range(rounds):
        key, subkey = split(key)
        _, x = lax.sort_key_val(draw_bits(subkey, 32, aval.shape), x, axis)
    return x


@public
def choice(key: ArrayLike, a: ArrayLike, shape: Any = (), replace: bool = True, p: ArrayLike | None = None,
           axis: int = 0, mode: str | None = None) -> Array:
    """A random choice along an axis of `a`, or of the numbers below it if it is an integer.

    `p` are the probabilities, all alike if it isn't given. If not `replace`, nothing is chosen twice.

    >>> random.choice(random.key(0), np.array([10, 20, 30]), (4,)).shape
    (4,)
    """
    key, _ = single_key("choice", key)
    aval, shape = typed("choice", "a", a, _WANTED), sizes("choice", shape)
    axis = shaping.canonical_axis("choice", axis, aval.ndim) if aval.ndim else 0
    count = aval.shape[axis] if aval.ndim else _count("choice", "a", a)
    draws = prod(shape)
    if draws and count <= 0:
        raise refused("choice", "there is nothing to choose from", got=aval if aval.ndim else count,
                      wanted="at least one", todo="test the shape, which is static, first", kind=CorejaxValueError)
    if not replace and draws > count:
        raise refused("choice", "more can't be chosen than there are, if nothing is chosen twice",
                      got=f"{draws} of {count}", wanted=f"at most {count}", todo="pass replace=True",
                      kind=CorejaxValueError)
    if p is not None:
        _check_probabilities(p, count)
    mode = checked_mode("choice", mode)
    if not aval.ndim:
        return _chosen_number(key, p, count, shape, bool(replace), mode)  # type: ignore[no-any-return]
    return _chosen(key, a, p, shape, bool(replace), axis, mode)  # type: ignore[no-any-return]


def _check_probabilities(p: Any, count: int) -> None:
    aval = typed("choice", "p", p, _WANTED)
    if aval.shape != (count,) or dtypes.kind(aval.dtype) not in "biuf":
        raise refused("choice", "there must be a probability for each thing", got=aval, wanted=f"{count} real numbers",
                      todo="pass probabilities along one axis", kind=CorejaxValueError)
    if is_concrete(p) or isinstance(p, np.ndarray):
        values = np.asarray(p).astype(np.float64)
        if count and not ((values >= 0).all() and values.sum() > 0 and np.isfinite(values).all()):
            raise refused("choice", "these aren't probabilities", got=f"from {values.min()} to {values.max()}",
                          wanted="finite numbers of 0 or more, not all zero", todo="check how they are computed",
                          kind=CorejaxValueError)
        if abs(values.sum() - 1) > 1e-2:
            raise refused("choice", "the probabilities don't sum to one", got=f"a sum of {values.sum():.6g}",
                          wanted="a sum of 1", todo="divide them by their sum", kind=CorejaxValueError)


@jit(static_argnums=(2, 3, 4, 5))
def _chosen_number(key: Any, p: Any, count: int, shape: Shape, replace: bool, mode: str) -> Any:
    dtype, draws = dtypes.default_dtype("i"), prod(shape)
    if p is None and not replace and draws:
        return lax.reshape(_shuffled(key, lax.iota(dtype, count), 0)[:draws], shape)
    return _indices(key, p, count, shape, replace, mode, dtype)


@jit(static_argnums=(3, 4, 5, 6))
def _chosen(key: Any, a: Any, p: Any, shape: Shape, replace: bool, axis: int, mode: str) -> Any:
    aval, dtype = aval_of(a), dtypes.default_dtype("i")
    around = aval.shape[:axis], aval.shape[axis + 1:]
    if not prod(shape):
        return lax.full((*around[0], *shape, *around[1]), 0, aval.dtype)
    if p is None and not replace:
        made = _permuted(key, a, axis)
        return lax.reshape(lax.slice_in_dim(made, 0, prod(shape), axis=axis), (*around[0], *shape, *around[1]))
    return jnp.take(a, _indices(key, p, aval.shape[axis], shape, replace, mode, dtype), axis)


def _indices(key: Any, p: Any, count: int, shape: Shape, replace: bool, mode: str, dtype: np.dtype) -> Any:
    if not prod(shape):
        return lax.full(shape, 0, dtype)
    if p is None:
        return draw_integers(key, shape, dtype, np.zeros((), dtype), np.full((), count, dtype))
    aval = aval_of(p)
    p = lax.convert_element_type(p, dtypes.inexact(aval.dtype, aval.weak_type))
    if not replace:
        scores = draw_gumbel(key, (count,), p.aval.dtype, mode) + lax.log(p)
        return lax.reshape(lax.convert_element_type(lax.top_k(scores, prod(shape))[1], dtype), shape)
    sums = lax.cumsum(p, 0)
    drawn = sums[-1] * (1 - draw_unit(key, shape, p.aval.dtype))
    return lax.convert_element_type(jnp.searchsorted(sums, drawn), dtype)


@public
def categorical(key: ArrayLike, logits: ArrayLike, axis: int = -1, shape: Any = None, replace: bool = True,
                mode: str | None = None, *, out_sharding: Any = None) -> Array:
    """Random indices along an axis; `logits` are the logarithms of what their probabilities are proportional to.

    If not `replace`, the indices along the first axes of `shape`, beyond those of the logits, differ.

    >>> random.categorical(random.key(0), np.log(np.array([0.1, 0.2, 0.7])), shape=(5,)).shape
    (5,)
    """
    key, _ = single_key("categorical", key)
    aval = typed("categorical", "logits", logits, _WANTED)
    axis = shaping.canonical_axis("categorical", axis, aval.ndim)
    if not dtypes.is_float(aval.dtype):
        raise refused("categorical", "logits are floats", got=aval, wanted="a floating-point dtype",
                      todo="convert them: logits.astype(float)", kind=CorejaxTypeError)
    batch = shaping.without(aval.shape, (axis,))
    shape = shape_over("categorical", shape, batch)
    count: int = aval.shape[axis]
    more: Shape = shape[:len(shape) - len(batch)]
    if prod(shape) and not count:
        raise refused("categorical", "there is nothing to choose from", got=aval, wanted=f"a size along axis {axis}",
                      todo="test the shape, which is static, first", kind=CorejaxValueError)
    if not replace and prod(more) > count:
        raise refused("categorical", "more can't be chosen than there are, if nothing is chosen twice",
                      got=f"{prod(more)} of {count}", wanted=f"at most {count}", todo="pass replace=True",
                      kind=CorejaxValueError)
    mode = checked_mode("categorical", mode)
    return placed(_categorical(key, logits, axis, shape, bool(replace), mode), out_sharding)


@jit(static_argnums=(2, 3, 4, 5))
def _categorical(key: Any, logits: Any, axis: int, shape: Shape, replace: bool, mode: str) -> Any:
    aval = aval_of(logits)
    batch = shaping.without(aval.shape, (axis,))
    more = shape[:len(shape) - len(batch)]
    if not replace:
        scores = logits + draw_gumbel(key, aval.shape, aval.dtype, mode)
        found = lax.top_k(jnp.moveaxis(scores, axis, -1), prod(more))[1]
        return lax.reshape(jnp.moveaxis(found, -1, 0), shape)
    own = list(shape[len(more):])
    own.insert(axis, aval.shape[axis])
    scores = draw_gumbel(key, (*more, *own), aval.dtype, mode) + lax.expand_dims(logits, tuple(range(len(more))))
    return operators.argmax(scores, axis=len(more) + axis)
