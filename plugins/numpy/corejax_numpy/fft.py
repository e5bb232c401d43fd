"""`corejax.numpy.fft`: discrete Fourier transforms, with NumPy's names and signatures."""

# mypy: no-warn-return-any

from __future__ import annotations

from collections.abc import Sequence
from math import prod, sqrt
from typing import Any

import numpy as np

from corejax import lax
from corejax.core import Array, ArrayLike, DTypeLike, aval_of, dtypes
from corejax.errors import CorejaxNotImplementedError, CorejaxValueError
from corejax.plugin import directly, namespace, operators, refused, shaping
from corejax_numpy._arrays import array, no_out
from corejax_numpy._missing import instead_of

__all__ = ["fft", "fft2", "fftfreq", "fftn", "fftshift", "hfft", "ifft", "ifft2", "ifftn", "ifftshift", "ihfft",
           "irfft", "irfft2", "irfftn", "rfft", "rfft2", "rfftfreq", "rfftn"]

#: How many axes the primitive takes.
_MOST = 3


@directly(np.fft.fft, whole=True)
def fft(a: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = None, out: None = None) -> Array:
    """The transform along an axis, of its first `n` elements, or with zeros after them.

    `norm` says which of a transform and its inverse divides by the number of points: "backward" (the inverse, as with
    None), "forward", or "ortho" (each by its root).

    >>> jnp.fft.fft(jnp.array([1.0, 2.0, 3.0, 4.0]))
    Array([10.+0.j, -2.+2.j, -2.+0.j, -2.-2.j], dtype=complex128)
    """
    return _along_one("fft", a, n, axis, norm, out)


@directly(np.fft.ifft, whole=True)
def ifft(a: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = None, out: None = None) -> Array:
    """The inverse of `fft`.

    >>> jnp.fft.ifft(jnp.array([10.0, -2.0 + 2.0j, -2.0, -2.0 - 2.0j]))
    Array([1.+0.j, 2.+0.j, 3.+0.j, 4.+0.j], dtype=complex128)
    """
    return _along_one("ifft", a, n, axis, norm, out)


@directly(np.fft.rfft, whole=True)
def rfft(a: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = None, out: None = None) -> Array:
    """The transform of real numbers: its first half, the other one being its conjugate.

    >>> jnp.fft.rfft(jnp.array([1.0, 2.0, 3.0, 4.0]))
    Array([10.+0.j, -2.+2.j, -2.+0.j], dtype=complex128)
    """
    return _along_one("rfft", a, n, axis, norm, out)


@directly(np.fft.irfft, whole=True)
def irfft(a: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = None, out: None = None) -> Array:
    """The inverse of `rfft`: `n` real numbers, by default twice as many as half a spectrum has after its first.

    >>> jnp.fft.irfft(jnp.array([10.0, -2.0 + 2.0j, -2.0]))
    Array([1., 2., 3., 4.], dtype=float64)
    """
    return _along_one("irfft", a, n, axis, norm, out)


#: The norm that an inverse has for the same factors.
_OTHER = {None: "forward", "backward": "forward", "ortho": "ortho", "forward": "backward"}


@directly(np.fft.hfft, whole=True)
def hfft(a: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = None, out: None = None) -> Array:
    """The transform of numbers that are conjugate in pairs, of which half are given: `n` real numbers.

    >>> jnp.fft.hfft(jnp.array([1.0, 2.0, 3.0]))
    Array([ 8., -2.,  0., -2.], dtype=float64)
    """
    _check_norm("hfft", norm)
    x = array(a)
    return _along_one("hfft", lax.conj(x) if dtypes.is_complex(x.dtype) else x, n, axis, _OTHER[norm], out, "irfft")


@directly(np.fft.ihfft, whole=True)
def ihfft(a: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = None, out: None = None) -> Array:
    """The inverse of `hfft`.

    >>> jnp.fft.ihfft(jnp.array([8.0, -2.0, 0.0, -2.0]))
    Array([1.-0.j, 2.-0.j, 3.-0.j], dtype=complex128)
    """
    _check_norm("ihfft", norm)
    return lax.conj(_along_one("ihfft", a, n, axis, _OTHER[norm], out, "rfft"))

# Along several axes

@directly(np.fft.fftn, whole=True)
def fftn(a: ArrayLike, s: Sequence[int] | None = None, axes: Sequence[int] | None = None, norm: str | None = None,
         out: None = None) -> Array:
    """The transform along several axes: all, those named, or the last, as many as there are sizes `s`.

    >>> jnp.fft.fftn(jnp.ones((2, 2)))
    Array([[4.+0.j, 0.+0.j],
           [0.+0.j, 0.+0.j]], dtype=complex128)
    """
    return _transformed("fftn", "fft", a, s, axes, norm, out)


@directly(np.fft.ifftn, whole=True)
def ifftn(a: ArrayLike, s: Sequence[int] | None = None, axes: Sequence[int] | None = None, norm: str | None = None,
          out: None = None) -> Array:
    """The inverse of `fftn`.

    >>> jnp.fft.ifftn(jnp.ones((2, 2)))
    Array([[1.+0.j, 0.+0.j],
           [0.+0.j, 0.+0.j]], dtype=complex128)
    """
    return _transformed("ifftn", "ifft", a, s, axes, norm, out)


@directly(np.fft.rfftn, whole=True)
def rfftn(a: ArrayLike, s: Sequence[int] | None = None, axes: Sequence[int] | None = None, norm: str | None = None,
          out: None = None) -> Array:
    """The transform of real numbers along several axes: half of it along the last one.

    >>> jnp.fft.rfftn(jnp.ones((2, 2, 2))).shape
    (2, 2, 2)
    """
    return _transformed("rfftn", "rfft", a, s, axes, norm, out)


@directly(np.fft.irfftn, whole=True)
def irfftn(a: ArrayLike, s: Sequence[int] | None = None, axes: Sequence[int] | None = None, norm: str | None = None,
           out: None = None) -> Array:
    """The inverse of `rfftn`.

    >>> jnp.fft.irfftn(jnp.array([[4.0, 0.0], [0.0, 0.0]]))
    Array([[1., 1.],
           [1., 1.]], dtype=float64)
    """
    return _transformed("irfftn", "irfft", a, s, axes, norm, out)


@directly(np.fft.fft2, whole=True)
def fft2(a: ArrayLike, s: Sequence[int] | None = None, axes: Sequence[int] = (-2, -1), norm: str | None = None,
         out: None = None) -> Array:
    """The transform along two axes.

    >>> jnp.fft.fft2(jnp.ones((3, 2, 2))).shape
    (3, 2, 2)
    """
    return _transformed("fft2", "fft", a, s, _two("fft2", axes), norm, out)


@directly(np.fft.ifft2, whole=True)
def ifft2(a: ArrayLike, s: Sequence[int] | None = None, axes: Sequence[int] = (-2, -1), norm: str | None = None,
          out: None = None) -> Array:
    """The inverse of `fft2`.

    >>> jnp.fft.ifft2(jnp.ones((3, 2, 2))).shape
    (3, 2, 2)
    """
    return _transformed("ifft2", "ifft", a, s, _two("ifft2", axes), norm, out)


@directly(np.fft.rfft2, whole=True)
def rfft2(a: ArrayLike, s: Sequence[int] | None = None, axes: Sequence[int] = (-2, -1), norm: str | None = None,
          out: None = None) -> Array:
    """The transform of real numbers along two axes: half of it along the last one.

    >>> jnp.fft.rfft2(jnp.ones((4, 4))).shape
    (4, 3)
    """
    return _transformed("rfft2", "rfft", a, s, _two("rfft2", axes), norm, out)


@directly(np.fft.irfft2, whole=True)
def irfft2(a: ArrayLike, s: Sequence[int] | None = None, axes: Sequence[int] = (-2, -1), norm: str | None = None,
           out: None = None) -> Array:
    """The inverse of `rfft2`.

    >>> jnp.fft.irfft2(jnp.ones((4, 3))).shape
    (4, 4)
    """
    return _transformed("irfft2", "irfft", a, s, _two("irfft2", axes), norm, out)

# Frequencies, and the order of a spectrum

def _multiples(n: int) -> Any:
    return np.concatenate((np.arange((n - 1) // 2 + 1), np.arange(-(n // 2), 0)))


@directly(lambda n, d=1.0: _multiples(n) / (d * n), arrays=0)
def fftfreq(n: int, d: ArrayLike = 1.0, *, dtype: DTypeLike | None = None, device: Any = None) -> Array:
    """The frequencies of a transform of `n` points, at a distance of `d` from each other.

    >>> jnp.fft.fftfreq(4)
    Array([ 0.  ,  0.25, -0.5 , -0.25], dtype=float64)
    """
    n = _points("fftfreq", n)
    return _frequencies(_multiples(n), n, d, dtype, device)


@directly(lambda n, d=1.0: np.arange(n // 2 + 1) / (d * n), arrays=0)
def rfftfreq(n: int, d: ArrayLike = 1.0, *, dtype: DTypeLike | None = None, device: Any = None) -> Array:
    """The frequencies of half a spectrum: those of `rfft`.

    >>> jnp.fft.rfftfreq(4)
    Array([0.  , 0.25, 0.5 ], dtype=float64)
    """
    n = _points("rfftfreq", n)
    return _frequencies(np.arange(n // 2 + 1), n, d, dtype, device)


@directly(np.fft.fftshift, whole=True)
def fftshift(x: ArrayLike, axes: int | Sequence[int] | None = None) -> Array:
    """The spectrum with the frequency 0 in the middle.

    >>> jnp.fft.fftshift(jnp.fft.fftfreq(4))
    Array([-0.5 , -0.25,  0.  ,  0.25], dtype=float64)
    """
    return _rolled("fftshift", x, axes, 0)


@directly(np.fft.ifftshift, whole=True)
def ifftshift(x: ArrayLike, axes: int | Sequence[int] | None = None) -> Array:
    """The inverse of `fftshift`.

    >>> jnp.fft.ifftshift(jnp.fft.fftshift(jnp.arange(3)))
    Array([0, 1, 2], dtype=int64)
    """
    return _rolled("ifftshift", x, axes, 1)

# Parts

def _along_one(name: str, a: Any, n: Any, axis: Any, norm: Any, out: Any, kind: str = "") -> Any:
    if isinstance(axis, (list, tuple)):
        raise refused(name, "one axis is transformed", got=f"axis={axis!r}", wanted="an integer",
                      todo=f"use jnp.fft.{name}n for several", kind=CorejaxValueError)
    return _transformed(name, kind or name, a, None if n is None else (n,), (axis,), norm, out)


def _two(name: str, axes: Any) -> Any:
    if len(shaping.as_ints(name, "axes", axes)) != 2:
        raise refused(name, "there must be two axes", got=f"axes={axes!r}", wanted="a pair of integers",
                      todo=f"use jnp.fft.{name.removesuffix('2')}n for other numbers", kind=CorejaxValueError)
    return axes


def _transformed(name: str, kind: str, a: Any, s: Any, axes: Any, norm: Any, out: Any) -> Any:
    """The transform `kind` along axes, by the primitive, which transforms the last ones."""
    no_out(name, out)
    x = array(a)
    at, sizes = _axes_and_sizes(name, kind, x, s, axes)
    scale = _check_norm(name, norm, prod(sizes), kind in ("ifft", "irfft"))
    if not at:
        if kind in ("rfft", "irfft"):
            raise refused(name, "one axis at least is transformed", got=str(x.aval), wanted="an axis",
                          todo="pass a vector", kind=CorejaxValueError)
        return x if dtypes.is_complex(x.dtype) else lax.convert_element_type(
            x, np.result_type(dtypes.inexact(x.dtype), np.complex64))
    if kind == "rfft" and x.dtype.itemsize == 2 and dtypes.is_inexact(x.dtype):
        x = array(lax.convert_element_type(x, np.float32))
    order = (*[d for d in range(x.ndim) if d not in at], *at)
    moved = order != tuple(range(x.ndim))
    x = array(lax.transpose(x, order)) if moved else x
    x = _of_sizes(x, (*sizes[:-1], sizes[-1] // 2 + 1) if kind == "irfft" else sizes)
    found = array(_along_last(x, kind, sizes))
    if scale != 1:
        found = found * scale
    return lax.transpose(found, tuple([order.index(d) for d in range(found.ndim)])) if moved else found


def _along_last(x: Any, kind: str, sizes: tuple[int, ...]) -> Any:
    """The transform along the last axes; of more than three, the others after those of real numbers, or before."""
    count, ndim = len(sizes), aval_of(x).ndim
    if count <= _MOST:
        return lax.fft(x, kind, sizes)
    rest, back = sizes[:count - _MOST], ndim - _MOST
    there = (*range(ndim - count), *range(back, ndim), *range(ndim - count, back))
    home = tuple([there.index(d) for d in range(ndim)])

    def others(x: Any, kind: str) -> Any:
        return lax.transpose(_along_last(lax.transpose(x, there), kind, rest), home)
    if kind in ("fft", "rfft"):
        return others(lax.fft(x, kind, sizes[-_MOST:]), "fft")
    return lax.fft(others(_complex(x), "ifft"), kind, sizes[-_MOST:])


def _complex(x: Any) -> Any:
    aval = aval_of(x)
    return x if dtypes.is_complex(aval.dtype) else lax.convert_element_type(
        x, np.result_type(dtypes.inexact(aval.dtype), np.complex64))


def _axes_and_sizes(name: str, kind: str, x: Any, s: Any, axes: Any) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The axes to transform, and the number of points of each."""
    given = None if s is None else tuple([-1 if n is None else shaping.as_int(name, "a size", n) for n in s])
    if axes is not None:
        at = shaping.canonical_axes(name, shaping.as_ints(name, "axes", axes), x.ndim)
    elif given is not None:
        at = tuple(range(x.ndim))[max(x.ndim - len(given), 0):]
    else:
        at = tuple(range(x.ndim))
    if given is not None and len(given) != len(at):
        raise refused(name, "there must be a size for each axis", got=f"s={s!r}, axes={axes!r} of {x.aval}",
                      wanted=f"{len(at)} sizes", todo="leave s out, to transform all elements", kind=CorejaxValueError)
    own = [x.shape[d] for d in at]
    if kind == "irfft" and at:
        own[-1] = max(0, 2 * (own[-1] - 1))
    sizes = tuple(own if given is None else [size if n == -1 else n for n, size in zip(given, own, strict=True)])
    if any([n < 1 for n in sizes]):
        raise refused(name, "there must be points to transform", got=f"sizes {sizes}", wanted="at least 1 each",
                      todo="leave out axes without elements", kind=CorejaxValueError)
    return at, sizes


def _of_sizes(x: Any, sizes: tuple[int, ...]) -> Any:
    """The array with its last axes cut off, or filled up with zeros, to these sizes."""
    lead = x.ndim - len(sizes)
    own = x.shape[lead:]
    if own == sizes:
        return x
    x = lax.slice(x, (0,) * x.ndim, (*x.shape[:lead], *map(min, own, sizes)))
    more = [(0, max(0, n - m), 0) for m, n in zip(own, sizes, strict=True)]
    return array(lax.pad(x, np.zeros((), aval_of(x).dtype), [*[(0, 0, 0)] * lead, *more]))


def _check_norm(name: str, norm: Any, points: int = 1, inverse: bool = False) -> float:
    """The factor for results of the primitive, which divides inverses by the number of points."""
    if norm is None or norm == "backward":
        return 1.0
    if norm not in ("ortho", "forward"):
        raise refused(name, "there is no such norm", got=f"norm={norm!r}", wanted="'backward', 'ortho' or 'forward'",
                      todo="leave it out", kind=CorejaxValueError)
    factor = sqrt(points) if norm == "ortho" else float(points)
    return factor if inverse else 1.0 / factor


def _points(name: str, n: Any) -> int:
    count = shaping.as_int(name, "n", n)
    if count < 1:
        raise refused(name, "there must be points", got=f"n={count}", wanted="n >= 1", todo="pass a positive number",
                      kind=CorejaxValueError)
    return count


def _frequencies(multiples: Any, n: int, d: Any, dtype: Any, device: Any) -> Any:
    if device is not None:
        raise refused("fftfreq", "frequencies can't be made on a device", got=f"device={device!r}", wanted="None",
                      todo="move them with cj.device_put", kind=CorejaxNotImplementedError)
    step = array(d)
    wanted = dtypes.canonical(dtype) if dtype is not None else dtypes.default_dtype("f")
    if not dtypes.is_inexact(wanted):
        raise refused("fftfreq", "frequencies aren't integers", got=f"dtype={wanted}", wanted="a floating-point dtype",
                      todo="leave dtype out", kind=CorejaxValueError)
    return lax.convert_element_type(multiples, wanted) / (lax.convert_element_type(step, wanted) * n)


def _rolled(name: str, x: Any, axes: Any, up: int) -> Any:
    y = array(x)
    for axis in range(y.ndim) if axes is None else shaping.canonical_axes(name, axes, y.ndim):
        size = y.shape[axis]
        at = (size + 1 - up) // 2  # the place that comes first
        parts = [lax.slice_in_dim(y, at, size, axis=axis), lax.slice_in_dim(y, 0, at, axis=axis)]
        y = array(lax.concatenate(parts, axis))
    return operators.copy(y) if not y.ndim else y


_, __getattr__, __dir__ = namespace(__name__, {}, __all__, instead_of)
