"""Polynomials, by their coefficients from the highest degree down."""

# mypy: no-warn-return-any

from __future__ import annotations

from typing import Any

import numpy as np

from corejax import lax
from corejax.core import Array, ArrayLike, aval_of, dtypes, is_concrete
from corejax.errors import CorejaxTypeError, CorejaxValueError
from corejax.plugin import directly, operators, public, refused, shaping
from corejax_lax_basic import broadcast_shapes, of_one_dtype
from corejax_numpy._arrays import array
from corejax_numpy._fitting import fitted
from corejax_numpy._in_memory import polynomials as in_memory
from corejax_numpy._matrices import floats
from corejax_numpy._picking import operand
from corejax_numpy.signals import convolve

__all__ = ["poly", "polyadd", "polyder", "polydiv", "polyfit", "polyint", "polymul", "polysub", "polyval", "roots"]


@directly(np.polyval, arrays=2)
def polyval(p: ArrayLike, x: ArrayLike, *, unroll: int = 16) -> Array:
    """The value of a polynomial at each element of `x`; `p` has its coefficients along the first axis.

    `unroll` is how many steps of Horner's method are written out in programs, as for `lax.scan`.

    >>> jnp.polyval(jnp.array([1.0, 0.0, 2.0]), jnp.array([1.0, 3.0]))
    Array([ 3., 11.], dtype=float64)
    """
    c, t = [array(v) for v in of_one_dtype((operand(p), operand(x)))]
    if not c.ndim:
        raise refused("polyval", "there is no axis of coefficients", got=str(c.aval), wanted="at least one axis",
                      todo="pass [p] for a constant", kind=CorejaxValueError)
    start = lax.full(broadcast_shapes(c.shape[1:], t.shape), 0, t.dtype)
    unroll, count = shaping.as_int("polyval", "unroll", unroll), c.shape[0]
    if count <= unroll:
        found = array(start)
        for k in range(count):
            found = found * t + c[k]
        return found
    return lax.scan(lambda y, one: (y * t + one, None), start, c, unroll=max(unroll, 1))[0]


@directly(in_memory.polyadd, arrays=2)
def polyadd(a1: ArrayLike, a2: ArrayLike) -> Array:
    """The sum of two polynomials.

    >>> jnp.polyadd(jnp.array([1.0, 2.0]), jnp.array([10.0, 0.0, 0.0]))
    Array([10.,  1.,  2.], dtype=float64)
    """
    x, y = _of_one_length("polyadd", a1, a2)
    return x + y


@directly(in_memory.polysub, arrays=2)
def polysub(a1: ArrayLike, a2: ArrayLike) -> Array:
    """The difference of two polynomials.

    >>> jnp.polysub(jnp.array([1.0, 2.0]), jnp.array([10.0, 0.0, 0.0]))
    Array([-10.,   1.,   2.], dtype=float64)
    """
    x, y = _of_one_length("polysub", a1, a2)
    return x - y


@public
def polymul(a1: ArrayLike, a2: ArrayLike, *, trim_leading_zeros: bool = False) -> Array:
    """The product of two polynomials. With `trim_leading_zeros`, the leading zeros of the factors are left out.

    >>> jnp.polymul(jnp.array([1.0, 1.0]), jnp.array([1.0, -1.0]))
    Array([ 1.,  0., -1.], dtype=float64)
    """
    x, y = [_vector("polymul", a) for a in (a1, a2)]
    if shaping.as_flag("polymul", "trim_leading_zeros", trim_leading_zeros):
        x, y = [_trimmed("polymul", a) for a in (x, y)]
    x, y = [a if a.size else array(lax.full((1,), 0, a.dtype)) for a in (x, y)]
    return convolve(x, y)


@public
def polydiv(u: ArrayLike, v: ArrayLike, *, trim_leading_zeros: bool = False) -> tuple[Array, Array]:
    """The quotient and the remainder of two polynomials.

    The remainder is as long as `u`, with zeros in front, unless `trim_leading_zeros`: then these are left out.

    >>> jnp.polydiv(jnp.array([1.0, 0.0, -1.0]), jnp.array([1.0, 1.0]))
    (Array([ 1., -1.], dtype=float64), Array([0., 0., 0.], dtype=float64))
    """
    x, y = [_vector("polydiv", a) for a in floats(u, v)]
    m, n = x.size - 1, y.size - 1
    if min(m, n) < 0:
        raise refused("polydiv", "a polynomial has a coefficient at least", got=f"{x.aval} and {y.aval}",
                      wanted="at least one element each", todo="pass [0.0] for zero", kind=CorejaxValueError)
    factors, rest = [], x
    for k in range(m - n + 1):
        factor = rest[k] / y[0]
        factors.append(lax.expand_dims(factor, (0,)))
        rest = rest - array(lax.pad(factor * y, np.zeros((), x.dtype), [(k, m - n - k, 0)]))
    quotient = lax.concatenate(factors, 0) if factors else lax.full((1,), 0, x.dtype)
    if shaping.as_flag("polydiv", "trim_leading_zeros", trim_leading_zeros):
        rest = _trimmed("polydiv", rest, float(np.sqrt(np.finfo(x.dtype).eps)))
    return quotient, rest


@directly(in_memory.polyder)
def polyder(p: ArrayLike, m: int = 1) -> Array:
    """The coefficients of the m-th derivative of a polynomial.

    >>> jnp.polyder(jnp.array([1.0, 0.0, 2.0, 5.0]))
    Array([3., 0., 2.], dtype=float64)
    """
    x, m = _vector("polyder", p), _order("polyder", m)
    if not m:
        return x
    if not dtypes.is_inexact(x.dtype):
        x = array(lax.convert_element_type(x, dtypes.default_dtype("i")))
    if x.size <= m:
        return lax.full((0,), 0, x.dtype)
    return x[:x.size - m] * _factorials(np.arange(x.size - 1, m - 1, -1), m, x.dtype)


@directly(in_memory.polyint)
def polyint(p: ArrayLike, m: int = 1, k: ArrayLike | None = None) -> Array:
    """The coefficients of the m-th integral of a polynomial; `k` is the constant of each, or of all integrations.

    >>> jnp.polyint(jnp.array([3.0, 0.0, 2.0]), k=7.0)
    Array([1., 0., 2., 7.], dtype=float64)
    """
    (x, constants), m = floats(p, 0 if k is None else k), _order("polyint", m)
    x = _vector("polyint", x)
    constants = _vector("polyint", constants)
    if not m:
        return x
    if constants.size not in (1, m):
        raise refused("polyint", "there must be a constant for each integration", got=str(constants.aval),
                      wanted=f"one element, or {m}", todo="pass k=0.0 for zeros", kind=CorejaxValueError)
    constants = constants if constants.size == m else lax.broadcast_in_dim(constants, (m,), (0,))
    divisors = _factorials(np.arange(x.size + m - 1, -1, -1), m, x.dtype)
    return lax.concatenate((x, constants), 0) / divisors


@directly(in_memory.poly)
def poly(seq_of_zeros: ArrayLike) -> Array:
    """The polynomial with these zeros; the characteristic polynomial, if it is a square matrix. Without zeros, it is 1.

    >>> jnp.poly(jnp.array([1.0, 2.0]))
    Array([ 1., -3.,  2.], dtype=float64)
    """
    (x,) = floats(seq_of_zeros)
    if x.ndim == 2 and x.shape[0] == x.shape[1] and x.shape[0]:
        real = None if dtypes.is_complex(x.dtype) else x.dtype
        x = array(lax.linalg.eig(x, compute_left_eigenvectors=False, compute_right_eigenvectors=False)[0])
        found = poly(x)
        return found if real is None else lax.real(found)  # zeros come in conjugate pairs
    if x.ndim == 1 and not x.size:
        return lax.full((), 1, x.dtype)
    x = _vector("poly", x)
    found = array(lax.full((1,), 1, x.dtype))
    zero = np.zeros((), x.dtype)
    for k in range(x.size):
        longer = array(lax.pad(found, zero, [(0, 1, 0)]))
        found = longer - x[k] * array(lax.pad(found, zero, [(1, 0, 0)]))
    return found


@directly(in_memory.roots, sizes_vary=True)
def roots(p: ArrayLike, *, strip_zeros: bool = True) -> Array:
    """The zeros of a polynomial, in no order; always complex.

    How many there are depends on leading zeros among the coefficients. Without `strip_zeros`, they are one fewer than
    coefficients, NaN for each leading zero, so that the function can be traced.

    >>> jnp.roots(jnp.array([1.0, -3.0, 2.0])).real.tolist()
    [2.0, 1.0]
    """
    x = _vector("roots", *floats(p))
    if shaping.as_flag("roots", "strip_zeros", strip_zeros):
        x = _trimmed("roots", x, todo="pass strip_zeros=False")
        after = 0
        if is_concrete(x) and x.size:  # zeros at the end are roots that need no search
            after = x.size - 1 - int(np.flatnonzero(np.asarray(x))[-1])
            x = x[:x.size - after]
        found = _companion_values(x)
        return lax.concatenate((found, lax.full((after,), 0, aval_of(found).dtype)), 0) if after else found
    return _roots_and_nans(x)


def _companion_values(x: Any) -> Any:
    n = x.size - 1
    if n < 1:
        return lax.full((0,), 0, np.result_type(x.dtype, np.complex64))
    zero = np.zeros((), x.dtype)
    first = lax.expand_dims(-x[1:] / x[0], (0,))
    rows, columns = [lax.broadcasted_iota(np.int32, (n, n), axis) for axis in (0, 1)]
    below = lax.convert_element_type(lax.eq(rows, lax.add(columns, np.int32(1))), x.dtype)
    matrix = array(lax.pad(first, zero, [(0, n - 1, 0), (0, 0, 0)])) + below
    return lax.linalg.eig(matrix, compute_left_eigenvectors=False, compute_right_eigenvectors=False)[0]


def _roots_and_nans(x: Any) -> Any:
    """The roots, with the leading zeros moved to the end, where each makes a root 0, and these replaced by NaN."""
    size = x.size
    if size < 2:
        return lax.full((0,), 0, np.result_type(x.dtype, np.complex64))
    places = lax.iota(np.int32, size)
    leading = lax.reduce_min(lax.select(array(x != 0), places, lax.full_like(places, size)), (0,))
    x = lax.select(lax.broadcast_in_dim(lax.eq(leading, np.int32(size)), (size,), ()), lax.full_like(x, 1), x)
    moved = operators.getitem(array(x), ((array(places) + leading) % size,))
    found = _companion_values(moved)
    zero = array(found) == 0
    _, order = lax.sort((lax.convert_element_type(zero, np.int32), places[:size - 1]), dimension=0, num_keys=1)
    found = operators.getitem(array(found), (order,))
    kept = array(places[:size - 1]) < np.int32(size - 1) - leading
    return lax.select(kept, found, lax.full_like(found, complex(np.nan, np.nan)))

# Fits

@directly(in_memory.polyfit, arrays=2)
def polyfit(x: ArrayLike, y: ArrayLike, deg: int, rcond: float | None = None, full: bool = False,
            w: ArrayLike | None = None, cov: bool | str = False) -> Array | tuple[Array, ...]:
    """The polynomial of degree `deg` for which the squares of p(x) - y are smallest; each weighted by `w`, if given.

    `full` adds the sums of squares, the rank, singular values and `rcond`, up to which these count as 0, relatively to
    the largest. `cov` adds the covariance of the coefficients; "unscaled" if weights are known errors.

    >>> jnp.round(jnp.polyfit(jnp.array([0.0, 1.0, 2.0]), jnp.array([1.0, 3.0, 5.0]), 1), 6)
    Array([2., 1.], dtype=float64)
    """
    return fitted(x, y, shaping.as_int("polyfit", "deg", deg), rcond, full, w, cov)

# Parts

def _vector(name: str, p: Any) -> Any:
    x = array(p)
    if x.ndim > 1:
        raise refused(name, "coefficients or zeros are along one axis", got=str(x.aval), wanted="one axis",
                      todo="apply cj.vmap for a batch", kind=CorejaxValueError)
    return x if x.ndim else array(lax.expand_dims(x, (0,)))


def _of_one_length(name: str, a1: Any, a2: Any) -> list[Any]:
    parts = [_vector(name, a) for a in of_one_dtype((operand(a1), operand(a2)))]
    size = max([x.size for x in parts])
    return [x if x.size == size else array(lax.pad(x, np.zeros((), x.dtype), [(size - x.size, 0, 0)])) for x in parts]


def _order(name: str, m: Any) -> int:
    order = shaping.as_int(name, "m", m)
    if order < 0:
        raise refused(name, "the order can't be negative", got=f"m={order}", wanted="m >= 0",
                      todo="use polyint for integrals, polyder for derivatives", kind=CorejaxValueError)
    return order


def _factorials(highest: np.ndarray, count: int, dtype: np.dtype) -> Any:
    """The products of so many factors, from these numbers down, but none below 1."""
    found = np.ones(highest.shape)
    with np.errstate(over="ignore"):
        for i in range(min(count, int(highest[0]))):
            found *= np.maximum(highest - i, 1)
        return found.astype(dtype) if dtypes.is_inexact(dtype) else array(lax.convert_element_type(found, dtype))


def _trimmed(name: str, x: Any, tolerance: float = 0.0, todo: str = "leave trim_leading_zeros out") -> Any:
    """The coefficients without leading ones that are 0, or nearly so."""
    if not is_concrete(x):
        raise refused(name, "how many leading zeros there are is unknown in a trace", got=str(aval_of(x)),
                      wanted="coefficients that aren't traced", todo=todo, kind=CorejaxTypeError)
    kept = np.flatnonzero(np.abs(np.asarray(x)) > tolerance)
    return x[int(kept[0]) if kept.size else x.size:]
