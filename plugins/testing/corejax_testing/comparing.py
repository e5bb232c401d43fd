"""Comparing results: types, distances in units in the last place, tolerances. NaN equals NaN.

Distances are in units in the last place of the wanted value, so the same bound fits every magnitude:

>>> import numpy as np
>>> ulps_apart(np.array([1.0, np.nan, np.inf]), np.array([1.0 + 2**-52, np.nan, np.inf])).tolist()
[1.0, 0.0, 0.0]
"""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from corejax.core import Array, aval_of, dtypes, to_numpy
from corejax.plugin import elements


def host(x: object) -> np.ndarray:
    """A result as an ndarray; of elements of a pack's own type, as they are in host memory."""
    return to_numpy(x) if type(x) is Array else np.asarray(x)


def contents(x: object) -> tuple[object, ...] | None:
    """What an array holds, to the last bit; None for anything else, a traced value included."""
    if not (isinstance(x, np.ndarray) or type(x) is Array):
        return None
    held = host(x)
    return held.shape, held.dtype, held.tobytes()


def numbers(x: object) -> np.ndarray:
    """A result as an ndarray of numbers, such as are stored of elements of a pack's own type."""
    return np.asarray(elements.of_stored(host(x)))


def eps_of(dtype: np.dtype) -> float:
    """The relative precision of a floating or complex dtype."""
    info: Any = ml_dtypes.finfo(np.empty(0, dtype).real.dtype)  # type: ignore[no-untyped-call]
    return float(info.eps)


def ulps_apart(wanted: object, got: object) -> np.ndarray:
    """For each element, the distance in units in the last place of the wanted one; infinite if only one is NaN.

    Subnormal numbers count as zeros, since compiled programs may flush them. Integers and booleans are equal or
    infinitely far apart. For the parts of a complex number, the unit is that of the larger part.
    """
    wanted, got = numbers(wanted), numbers(got)
    if not dtypes.is_inexact(wanted.dtype):
        return np.where(wanted == got, 0.0, np.inf)
    real = np.dtype(wanted.real.dtype)
    info: Any = ml_dtypes.finfo(real)  # type: ignore[no-untyped-call]
    w, g = _wide(wanted), _wide(got)
    with np.errstate(all="ignore"):
        size = np.maximum(np.abs(w.real), np.abs(w.imag)) if np.iscomplexobj(w) else np.abs(w)
        tiny, eps = float(info.smallest_normal), float(info.eps)
        unit = np.where(np.isfinite(size), np.exp2(np.floor(np.log2(np.maximum(size, tiny)))), 1.0) * eps
        parts = [(w.real, g.real), (w.imag, g.imag)] if np.iscomplexobj(w) else [(w, g)]
        return np.asarray(np.max([_distance(a, b, unit, tiny) for a, b in parts], axis=0))


def _distance(wanted: np.ndarray, got: np.ndarray, unit: np.ndarray, tiny: float) -> np.ndarray:
    wanted, got = [np.where(np.abs(x) < tiny, 0.0, x) for x in (wanted, got)]
    same = (wanted == got) | (np.isnan(wanted) & np.isnan(got))
    return np.where(same, 0.0, np.where(np.isfinite(wanted) & np.isfinite(got), np.abs(wanted - got) / unit, np.inf))


def _wide(x: np.ndarray) -> np.ndarray:
    return x.astype(np.complex128 if np.iscomplexobj(x) else np.float64)


def worst(wanted: object, got: object, distance: np.ndarray) -> str:
    """Describe where two arrays are farthest apart."""
    wanted, got = numbers(wanted), numbers(got)
    place = np.unravel_index(int(np.argmax(distance)), distance.shape) if distance.ndim else ()
    at = f" at {tuple(map(int, place))}" if place else ""
    return f"{got[place]!s} instead of {wanted[place]!s}{at}"


def off(wanted: object, got: object, rtol: float, atol: float = 0.0) -> str | None:
    """None if the arrays agree to `atol`, and relative to their largest finite element; else what differs."""
    wanted, got = numbers(wanted), numbers(got)
    if wanted.shape != got.shape:
        return f"the shape {got.shape} instead of {wanted.shape}"
    if not wanted.size:
        return None
    w, g = [_wide(x) if dtypes.is_inexact(x.dtype) else x.astype(np.float64) for x in (wanted, got)]
    with np.errstate(all="ignore"):
        finite = np.abs(w[np.isfinite(w)])
        scale = max(1.0, float(finite.max())) if finite.size else 1.0
        both_nan = np.isnan(w) & np.isnan(g)
        distance = np.where((w == g) | both_nan, 0.0, np.where(np.isfinite(w) & np.isfinite(g), np.abs(w - g), np.inf))
    limit = atol + rtol * scale
    return None if float(distance.max()) <= limit else worst(wanted, got, distance)


def wrong_type(wanted: object, got: object) -> str | None:
    """None if a value has this aval (weak type included), else the one it has."""
    aval = aval_of(got)
    return None if aval == wanted else str(aval)
