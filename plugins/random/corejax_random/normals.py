"""The normal distribution, and those that are made of it."""

from __future__ import annotations

from math import inf, sqrt
from typing import Any

import numpy as np

import corejax_numpy as jnp
from corejax import lax
from corejax.core import Array, ArrayLike, DTypeLike, aval_of, dtypes
from corejax.errors import CorejaxValueError
from corejax.plugin import jit, public, refused, shaping
from corejax_lax_basic import broadcast_shapes
from corejax_random._asked import Shape, as_dtype, broadcast, common_shape, placed, real, shape_over, sizes
from corejax_random._drawing import drawn, drawn_by
from corejax_random.approximations import random_erf_inv_p, random_erf_p
from corejax_random.keys import single_key
from corejax_random.uniforms import draw_signs, draw_uniform, split

__all__ = ["double_sided_maxwell", "lognormal", "maxwell", "multivariate_normal", "normal", "orthogonal",
           "truncated_normal"]


@public
def normal(key: ArrayLike, shape: Any = (), dtype: DTypeLike | None = None, *, out_sharding: Any = None) -> Array:
    """Numbers of the standard normal distribution; complex ones have variance 1 in both parts together.

    >>> random.normal(random.key(0), (3,), "float32")
    Array([ 1.622...,  2.025..., -0.433...], dtype=float32)
    """
    key, _ = single_key("normal", key)
    return placed(_normal(key, sizes("normal", shape), as_dtype("normal", dtype, "fc")), out_sharding)


@jit(static_argnums=(1, 2))
def _normal(key: Any, shape: Shape, dtype: np.dtype) -> Any:
    return draw_normal(key, shape, dtype)


def draw_normal(key: Any, shape: Shape, dtype: np.dtype) -> Any:
    """Standard normal numbers, within a program: the quantiles of uniform ones."""
    if dtypes.is_complex(dtype):
        part = np.dtype("float32" if dtype.itemsize == 8 else "float64")
        real_part, imag = [lax.convert_element_type(draw_normal(one, shape, part), dtype) for one in split(key)]
        return (real_part + dtype.type(1j) * imag) / dtype.type(sqrt(2))
    least = np.nextafter(np.array(-1.0, dtype), np.array(0.0, dtype), dtype=dtype)[()]
    drawn = draw_uniform(key, shape, dtype, least, dtype.type(1.0))
    return dtype.type(sqrt(2)) * random_erf_inv_p(drawn)


@public
def truncated_normal(key: ArrayLike, lower: ArrayLike, upper: ArrayLike, shape: Any = None,
                     dtype: DTypeLike | None = None, *, out_sharding: Any = None) -> Array:
    """Numbers of the standard normal distribution, given that they are between two bounds.

    >>> drawn = random.truncated_normal(random.key(0), -1.0, 2.0, (100,))
    >>> bool((drawn > -1.0).all() & (drawn < 2.0).all())
    True
    """
    key, _ = single_key("truncated_normal", key)
    dtype = as_dtype("truncated_normal", dtype)
    real("truncated_normal", None, lower=lower, upper=upper)
    shape = common_shape("truncated_normal", shape, lower, upper)
    return placed(_truncated_normal(key, lower, upper, shape, dtype), out_sharding)


@jit(static_argnums=(3, 4))
def _truncated_normal(key: Any, lower: Any, upper: Any, shape: Shape, dtype: np.dtype) -> Any:
    lower, upper = [lax.convert_element_type(x, dtype) for x in (lower, upper)]
    root = dtype.type(sqrt(2))
    low, high = [random_erf_p(x / root) for x in (lower, upper)]
    common = broadcast_shapes(low.aval.shape, high.aval.shape)
    drawn = root * random_erf_inv_p(draw_uniform(key, shape, dtype, broadcast(low, common), broadcast(high, common)))
    least, most = [broadcast(lax.nextafter(lax.stop_gradient(x), lax.full_like(x, towards)), shape)
                   for x, towards in ((lower, inf), (upper, -inf))]
    return lax.min(lax.max(drawn, least), most)


_ONE = np.float32(1)


@public
def lognormal(key: ArrayLike, sigma: ArrayLike = _ONE, shape: Any = None, dtype: DTypeLike | None = None, *,
              out_sharding: Any = None) -> Array:
    """The exponentials of normal numbers with standard deviation `sigma`.

    >>> random.lognormal(random.key(0), 0.5, (3,), "float32")
    Array([2.25..., 2.75..., 0.805...], dtype=float32)
    """
    return drawn_by("lognormal", _lognormal, key, {"sigma": sigma}, shape, dtype, out_sharding, "fc")


@jit(static_argnums=(2, 3))
def _lognormal(key: Any, sigma: Any, shape: Shape, dtype: np.dtype) -> Any:
    return lax.exp(draw_normal(key, shape, dtype) * broadcast(sigma, shape, dtype))


@public
def maxwell(key: ArrayLike, shape: Any = (), dtype: DTypeLike | None = None, *, out_sharding: Any = None) -> Array:
    """Lengths of vectors of three standard normal numbers: speeds of the particles of a gas.

    >>> random.maxwell(random.key(0), (3,)).shape
    (3,)
    """
    return drawn("maxwell", _maxwell, key, shape, dtype, out_sharding)


@jit(static_argnums=(1, 2))
def _maxwell(key: Any, shape: Shape, dtype: np.dtype) -> Any:
    return draw_maxwell(key, shape, dtype)


def draw_maxwell(key: Any, shape: Shape, dtype: np.dtype) -> Any:
    vectors = draw_normal(key, (*shape, 3), dtype)
    return lax.sqrt((vectors * vectors).sum(-1))


@public
def double_sided_maxwell(key: ArrayLike, loc: ArrayLike, scale: ArrayLike, shape: Any = (),
                         dtype: DTypeLike | None = None) -> Array:
    """Numbers of the Maxwell distribution with a random sign, times `scale`, plus `loc`.

    The result has the axes of `shape`, then those of the parameters.

    >>> random.double_sided_maxwell(random.key(0), 0.0, np.ones(2), (3,)).shape
    (3, 2)
    """
    key, _ = single_key("double_sided_maxwell", key)
    dtype = as_dtype("double_sided_maxwell", dtype)
    real("double_sided_maxwell", None, loc=loc, scale=scale)
    params = common_shape("double_sided_maxwell", None, loc, scale)
    # JAX's result has the parameters' axes twice if no shape is given.
    shape = (*(sizes("double_sided_maxwell", shape) or params), *params)
    return _double_sided_maxwell(key, loc, scale, shape, dtype)  # type: ignore[no-any-return]


@jit(static_argnums=(3, 4))
def _double_sided_maxwell(key: Any, loc: Any, scale: Any, shape: Shape, dtype: np.dtype) -> Any:
    of_size, of_sign = split(key)
    return draw_signs(of_sign, shape, dtype) * draw_maxwell(of_size, shape, dtype) * scale + loc


@public
def multivariate_normal(key: ArrayLike, mean: ArrayLike, cov: ArrayLike, shape: Any = None,
                        dtype: DTypeLike | None = None, method: str = "cholesky", *, out_sharding: Any = None) -> Array:
    """Vectors of normal numbers with this mean and this covariance, along the last axis.

    `method` says how the covariance's root is found: "cholesky", or for singular ones "eigh" or "svd".

    >>> random.multivariate_normal(random.key(0), np.zeros(2), np.array([[2.0, 1.0], [1.0, 2.0]]), (5,)).shape
    (5, 2)
    """
    name = "multivariate_normal"
    key, _ = single_key(name, key)
    if method not in _ROOTS:
        raise refused(name, "there is no such method", got=f"method={method!r}", wanted=", ".join(map(repr, _ROOTS)),
                      todo="leave it out: it is 'cholesky'", kind=CorejaxValueError)
    real(name, None, mean=mean, cov=cov)
    ndims = aval_of(mean).ndim, aval_of(cov).ndim
    size = aval_of(mean).shape[-1] if ndims[0] else None
    if ndims[0] < 1 or ndims[1] < 2 or aval_of(cov).shape[-2:] != (size, size):
        raise refused(name, "the covariance must be a matrix with a row for each number of the mean",
                      got=[aval_of(mean), aval_of(cov)], wanted="shapes (..., n) and (..., n, n)",
                      todo="pass a vector and a matrix", kind=CorejaxValueError)
    inner = dtypes.inexact(*_promoted(mean, cov))
    wanted = inner if dtype is None else as_dtype(name, dtype)
    rows = shape_over(name, shape, aval_of(mean).shape[:-1], aval_of(cov).shape[:-2])
    return placed(_multivariate_normal(key, mean, cov, rows, inner, wanted, method), out_sharding)


def _promoted(*args: Any) -> tuple[np.dtype, bool]:
    return dtypes.promote(*[(aval_of(x).dtype, aval_of(x).weak_type) for x in args])


@jit(static_argnums=(3, 4, 5, 6))
def _multivariate_normal(key: Any, mean: Any, cov: Any, shape: Shape, inner: np.dtype, dtype: np.dtype, method: str
                         ) -> Any:
    mean, cov = [lax.convert_element_type(x, inner) for x in (mean, cov)]
    drawn = draw_normal(key, (*shape, mean.aval.shape[-1]), dtype)
    return mean + jnp.einsum("...ij,...j->...i", _ROOTS[method](cov), drawn)


def _by_eigenvalues(cov: Any) -> Any:
    values, vectors = jnp.linalg.eigh(cov)
    return vectors * lax.sqrt(values)[..., None, :]


def _by_singular_values(cov: Any) -> Any:
    left, values, _ = jnp.linalg.svd(cov)
    return left * lax.sqrt(values)[..., None, :]


_ROOTS = {"cholesky": jnp.linalg.cholesky, "eigh": _by_eigenvalues, "svd": _by_singular_values}


@public
def orthogonal(key: ArrayLike, n: int, shape: Any = (), dtype: DTypeLike | None = None, m: int | None = None, *,
               out_sharding: Any = None) -> Array:
    """Orthogonal matrices `n` by `n`, uniformly distributed; or `n` by `m`, with orthonormal rows or columns.

    >>> q = random.orthogonal(random.key(0), 3)
    >>> bool(abs(q @ q.T - np.eye(3)).max() < 1e-12)
    True
    """
    key, _ = single_key("orthogonal", key)
    rows = shaping.as_int("orthogonal", "n", n)
    columns = rows if m is None else shaping.as_int("orthogonal", "m", m)
    if rows < 0 or columns < 0:
        raise refused("orthogonal", "a size can't be negative", got=f"n={n}, m={m}", wanted="sizes of 0 or more",
                      todo="check how they are computed", kind=CorejaxValueError)
    shape, dtype = sizes("orthogonal", shape), as_dtype("orthogonal", dtype, "fc")
    return placed(_orthogonal(key, rows, columns, shape, dtype), out_sharding)


@jit(static_argnums=(1, 2, 3, 4))
def _orthogonal(key: Any, rows: int, columns: int, shape: Shape, dtype: np.dtype) -> Any:
    drawn = draw_normal(key, (*shape, max(rows, columns), min(rows, columns)), dtype)
    q, r = jnp.linalg.qr(drawn)
    made = q * jnp.sign(jnp.diagonal(r, 0, -2, -1))[..., None, :]
    return made.mT if rows < columns else made
