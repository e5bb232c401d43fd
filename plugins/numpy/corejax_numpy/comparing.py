"""Whether arrays are equal, or nearly so."""

# mypy: no-warn-return-any

from __future__ import annotations

from typing import Any

import numpy as np

from corejax.core import Array, ArrayLike
from corejax.plugin import NotDirectly, directly, operators
from corejax_lax_basic import promoted
from corejax_numpy import _real_functions as reals
from corejax_numpy._arrays import array
from corejax_numpy._picking import operand

__all__ = ["allclose", "array_equal", "array_equiv", "isclose"]


@directly(np.isclose, arrays=2, whole=True)
def isclose(a: ArrayLike, b: ArrayLike, rtol: ArrayLike = 1e-05, atol: ArrayLike = 1e-08,
            equal_nan: bool = False) -> Array:
    """Whether |a - b| is at most atol + rtol * |b|; infinities are close to themselves, NaN only if `equal_nan`.

    >>> jnp.isclose(jnp.array([1.0, 2.0]), jnp.array([1.0 + 1e-9, 2.1])).tolist()
    [True, False]
    """
    x, y = map(array, promoted((operand(a), operand(b)), "f"))
    near = operators.abs(x - y) <= array(atol) + array(rtol) * operators.abs(y)
    same = (near & reals.is_finite(y) & reals.is_finite(x)) | (x == y)
    return same | (reals.is_nan(x) & reals.is_nan(y)) if equal_nan else same


@directly(lambda a, b, rtol=1e-05, atol=1e-08, equal_nan=False: np.bool_(np.allclose(a, b, rtol, atol, equal_nan)),
          arrays=2)
def allclose(a: ArrayLike, b: ArrayLike, rtol: ArrayLike = 1e-05, atol: ArrayLike = 1e-08,
             equal_nan: bool = False) -> Array:
    """Whether all elements are close, see `isclose`.

    >>> jnp.allclose(jnp.array([1.0, 2.0]), jnp.array([1.0, 2.0 + 1e-9])).item()
    True
    """
    return operators.all(isclose(a, b, rtol, atol, equal_nan))


def _of_one_dtype(compare: Any) -> Any:
    """NumPy's function of two arrays of one dtype: it compares others without rounding them."""
    def call(a1: Any, a2: Any, *flags: Any) -> Any:
        if a1.dtype is not a2.dtype:
            raise NotDirectly
        return np.bool_(compare(a1, a2, *flags))
    return call


@directly(_of_one_dtype(np.array_equal), arrays=2, whole=True)
def array_equal(a1: ArrayLike, a2: ArrayLike, equal_nan: bool = False) -> Array:
    """Whether two arrays have the same shape and elements.

    >>> jnp.array_equal(jnp.array([1, 2]), jnp.array([1.0, 2.0])).item(), jnp.array_equal([1], [1, 1]).item()
    (True, False)
    """
    x, y = array(a1), array(a2)
    if x.aval.shape != y.aval.shape:
        return array(np.False_)
    same = x == y
    if equal_nan:
        same = same | (reals.is_nan(x) & reals.is_nan(y))
    return operators.all(same)


@directly(_of_one_dtype(np.array_equiv), arrays=2, whole=True)
def array_equiv(a1: ArrayLike, a2: ArrayLike) -> Array:
    """Whether two arrays broadcast together and are equal then.

    >>> jnp.array_equiv(jnp.array([1, 1]), 1).item(), jnp.array_equiv(jnp.array([1, 1]), jnp.ones(3)).item()
    (True, False)
    """
    x, y = array(a1), array(a2)
    try:
        np.broadcast_shapes(x.aval.shape, y.aval.shape)
    except ValueError:
        return array(np.False_)
    return operators.all(x == y)
