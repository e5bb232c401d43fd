"""Where functions of elements are compared: special values of every dtype, and how near results must be to others."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

import corejax.numpy as jnp

DTYPES = ("bool", "uint8", "int16", "int32", "int64", "uint64", "float16", "bfloat16", "float32", "float64",
          "complex64", "complex128")

#: Functions of elements that aren't objects with methods.
PLAIN = ("real", "imag", "angle", "sinc", "i0", "iscomplex", "isreal", "isposinf", "isneginf")


def ufuncs(nin: int) -> list[str]:
    """The names of functions of so many operands, each under its first name alone."""
    found: dict[int, str] = {}
    for name in jnp.__all__:
        function = getattr(jnp, name)
        if isinstance(function, jnp.ufunc) and function.nin == nin:
            found.setdefault(id(function), name)
    return [*found.values()]


UNARY, BINARY = [*ufuncs(1), *PLAIN], ufuncs(2)

_FLOATS = [np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.0, 3.0, 2.5, 3.7, -3.7, 30.25, -1.5, 1e-3]
_COMPLEX = [0, 1, -1, 1j, -1j, 1 + 2j, -1.5 + 0.5j, -0.5 - 2j, 3 - 0.25j, complex(-0.0, 0.0), 1e-2 + 1e-2j]


def special(dtype: Any) -> np.ndarray:
    """Zeros, infinities, NaN, the largest, the smallest and some usual numbers, as far as the dtype has them."""
    dtype = np.dtype(dtype)
    if dtype.kind == "b":
        return np.array([False, True])
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        some = [info.min, info.min + 1, 0, 1, 2, 3, 7, 100, info.max - 1, info.max]
        return np.array(some + [-1, -2, -7] * (dtype.kind == "i"), dtype)
    if dtype.kind == "c":
        return np.array(_COMPLEX, dtype)
    info_of_floats = ml_dtypes.finfo(dtype)
    ends = [info_of_floats.tiny, -info_of_floats.smallest_subnormal, info_of_floats.max, info_of_floats.min]
    return np.array([*_FLOATS, *map(float, ends)]).astype(dtype)


def pairs(dtype: Any) -> tuple[np.ndarray, np.ndarray]:
    """Each with each: two arrays of one shape, since compiled programs multiply by what they would divide rows by."""
    x, y = np.meshgrid(special(dtype), special(dtype), indexing="ij")
    return x.ravel(), y.ravel()


def is_subnormal(x: np.ndarray) -> np.ndarray:
    """Which elements compiled programs take for zeros."""
    if x.dtype.kind not in "fV":
        return np.zeros(x.shape, bool)
    return np.asarray((x != 0) & (abs(x) < ml_dtypes.finfo(x.dtype).tiny))


def off(got: Any, wanted: Any, ulps: float = 16.0, signed: bool = True, flushed: bool = False) -> np.ndarray:
    """Which elements differ; of zeros, also the signs if `signed`; `flushed`: subnormal results may be zeros."""
    got, wanted = np.asarray(got), np.asarray(wanted)
    assert (wanted.shape, wanted.dtype) == (got.shape, got.dtype)
    if got.dtype.kind in "biu":
        return got != wanted
    if got.dtype.kind == "c":
        parts = off(got.real, wanted.real, ulps, False, flushed) | off(got.imag, wanted.imag, ulps, False, flushed)
        near = abs(got - wanted) <= ulps * ml_dtypes.finfo(got.dtype).eps * abs(wanted)
        return parts & ~(np.isfinite(wanted) & near)
    info = ml_dtypes.finfo(got.dtype)
    a, b = got.astype(np.float64), wanted.astype(np.float64)
    least = float(info.tiny if flushed else info.smallest_subnormal)
    wrong = ~np.isclose(a, b, rtol=ulps * float(info.eps), atol=ulps * least, equal_nan=True)
    if signed:
        wrong |= (a == 0) & (b == 0) & (np.signbit(a) != np.signbit(b))
    return wrong


def many(out: Any) -> tuple[Any, ...]:
    """The results of a function that may have several."""
    return tuple(out) if isinstance(out, (tuple, list)) else (out,)


def report(name: str, wrong: np.ndarray, operands: tuple[Any, ...], got: Any, wanted: Any) -> list[str]:
    """The first three of the elements that differ, in words."""
    got, wanted = np.asarray(got), np.asarray(wanted)
    return [f"{name}({', '.join(str(x[i]) for x in operands)}): {got[i]}, not {wanted[i]}"
            for i in np.flatnonzero(wrong)[:3]]
