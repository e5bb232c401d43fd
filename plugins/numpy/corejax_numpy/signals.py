"""Convolutions and correlations of vectors, and windows."""

# mypy: no-warn-return-any

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from corejax import lax
from corejax.core import Array, ArrayLike, DTypeLike, aval_of, dtypes
from corejax.errors import CorejaxValueError
from corejax.plugin import directly, refused, shaping
from corejax_lax_basic import PrecisionLike, of_one_dtype
from corejax_numpy._arrays import array

__all__ = ["bartlett", "blackman", "convolve", "correlate", "hamming", "hanning", "kaiser"]


@directly(np.convolve, arrays=2)
def convolve(a: ArrayLike, v: ArrayLike, mode: str = "full", *, precision: PrecisionLike = None,
             preferred_element_type: DTypeLike | None = None) -> Array:
    """The convolution of two vectors: sums of a[k] v[n - k].

    `mode` is "full", "same" (as long as the longer one) or "valid" (without those sums that lack terms).

    >>> jnp.convolve(jnp.array([1.0, 2.0, 3.0]), jnp.array([1.0, 10.0]))
    Array([ 1., 12., 23., 30.], dtype=float64)
    """
    x, y = _vectors("convolve", a, v)
    if aval_of(x).size < aval_of(y).size:
        x, y = y, x
    return _slid("convolve", x, lax.rev(y, (0,)), mode, precision, preferred_element_type)


def _correlated_by_numpy(a: Any, v: Any, mode: Any = "valid") -> Any:
    return np.correlate(a, v, mode)


@directly(_correlated_by_numpy, arrays=2)
def correlate(a: ArrayLike, v: ArrayLike, mode: str = "valid", *, precision: PrecisionLike = None,
              preferred_element_type: DTypeLike | None = None) -> Array:
    """The correlation of two vectors: sums of a[n + k] conj(v[k]); `mode` as for `jnp.convolve`.

    >>> jnp.correlate(jnp.array([1.0, 2.0, 3.0]), jnp.array([1.0, 10.0]))
    Array([21., 32.], dtype=float64)
    """
    x, y = _vectors("correlate", a, v)
    y = lax.conj(y) if dtypes.is_complex(aval_of(y).dtype) else y
    if aval_of(x).size >= aval_of(y).size:
        return _slid("correlate", x, y, mode, precision, preferred_element_type)
    return lax.rev(_slid("correlate", y, x, mode, precision, preferred_element_type), (0,))


def _vectors(name: str, a: Any, v: Any) -> list[Any]:
    found = of_one_dtype((array(a), array(v)))
    if any([aval_of(x).ndim > 1 or not aval_of(x).size for x in found]):
        raise refused(name, "the operands must be vectors with elements", got=[aval_of(x) for x in found],
                      wanted="one axis each, with a size of at least 1", kind=CorejaxValueError,
                      todo="apply cj.vmap for a batch; lax.conv_general_dilated convolves images")
    return [x if aval_of(x).ndim else lax.expand_dims(x, (0,)) for x in found]


def _slid(name: str, x: Any, window: Any, mode: Any, precision: PrecisionLike, preferred: DTypeLike | None) -> Any:
    """The sums of products of x and a shorter window, at each place of it."""
    n = aval_of(window).size
    pads = {"full": (n - 1, n - 1), "same": (n // 2, n - 1 - n // 2), "valid": (0, 0)}
    if not isinstance(mode, str) or mode not in pads:
        raise refused(name, "there is no such mode", got=f"mode={mode!r}", wanted="'full', 'same' or 'valid'",
                      todo="pass one of these", kind=CorejaxValueError)
    if aval_of(x).dtype == dtypes.bool_:
        x, window = [lax.convert_element_type(part, np.float32) for part in (x, window)]
        return lax.ne(_slid(name, x, window, mode, precision, preferred), 0)
    found = lax.conv_general_dilated(lax.expand_dims(x, (0, 1)), lax.expand_dims(window, (0, 1)), (1,), [pads[mode]],
                                     precision=precision, preferred_element_type=preferred)
    return lax.squeeze(found, (0, 1))

# Windows

def _window(name: str, make: Callable[..., Any], size: Any, *more: Any) -> Any:
    return lax.convert_element_type(make(shaping.as_int(name, "M", size), *more), dtypes.default_dtype("f"))


@directly(np.bartlett, arrays=0)
def bartlett(M: int) -> Array:
    """A triangular window of M points, which is 0 at its ends.

    >>> jnp.bartlett(5)
    Array([0. , 0.5, 1. , 0.5, 0. ], dtype=float64)
    """
    return _window("bartlett", np.bartlett, M)


@directly(np.blackman, arrays=0)
def blackman(M: int) -> Array:
    """The Blackman window of M points: 0.42 - 0.5 cos(t) + 0.08 cos(2 t), for t from 0 to 2 pi.

    >>> jnp.round(jnp.blackman(3), 6) + 0.0
    Array([0., 1., 0.], dtype=float64)
    """
    return _window("blackman", np.blackman, M)


@directly(np.hamming, arrays=0)
def hamming(M: int) -> Array:
    """The Hamming window of M points: 0.54 - 0.46 cos(t), for t from 0 to 2 pi.

    >>> jnp.round(jnp.hamming(3), 6)
    Array([0.08, 1.  , 0.08], dtype=float64)
    """
    return _window("hamming", np.hamming, M)


@directly(np.hanning, arrays=0)
def hanning(M: int) -> Array:
    """The window of von Hann of M points: (1 - cos(t)) / 2, for t from 0 to 2 pi.

    >>> jnp.hanning(5)
    Array([0. , 0.5, 1. , 0.5, 0. ], dtype=float64)
    """
    return _window("hanning", np.hanning, M)


@directly(np.kaiser, arrays=0)
def kaiser(M: int, beta: ArrayLike) -> Array:
    """The Kaiser window of M points, which is the narrower the larger `beta` is.

    >>> jnp.round(jnp.kaiser(3, 2.0), 6)
    Array([0.438676, 1.      , 0.438676], dtype=float64)
    """
    size = shaping.as_int("kaiser", "M", M)
    if isinstance(beta, (int, float)):
        return _window("kaiser", np.kaiser, size, beta)
    b = array(beta)
    b = lax.convert_element_type(b, dtypes.inexact(b.dtype, b.weak_type))
    if size <= 1:
        return lax.full((max(size, 0),), 1, b.dtype)
    along = np.linspace(-1.0, 1.0, size)
    root = lax.convert_element_type(np.sqrt(np.maximum(1.0 - along * along, 0.0)), b.dtype)
    inner = array(lax.mul(root, b))
    # i0 is exp(|x|) times the scaled one, which doesn't overflow
    return lax.exp(lax.abs(inner) - lax.abs(b)) * lax.bessel_i0e(inner) / lax.bessel_i0e(b)
