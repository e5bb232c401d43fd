"""Derivatives by differences: five points on a line, and at which elements the result can be trusted.

>>> import numpy as np
>>> found = along(lambda t: np.abs(np.array([-1.0, 0.0, 1.0]) + t))
>>> found.slope.round(6).tolist(), found.trusted.tolist()
([-1.0, 0.0, 1.0], [True, False, True])
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np

from corejax.core import dtypes
from corejax_testing.comparing import host

#: Steps are tried one after the other, each for the elements that are still in doubt.
_SHRINKING = (1.0, 0.1, 0.01, 0.001)

#: The ratio of the two stencils' steps. It isn't a simple fraction, since evenly spaced points could mistake a sawtooth
#: for a smooth function.
_RATIO = 0.4371

#: How far differences may be from the derivative, relative to it.
_RELATIVE = 1e-6


@dataclass(frozen=True, slots=True)
class Slopes:
    """The derivative along a line: for each element, an estimate, how exact that is, and whether to trust it."""

    slope: np.ndarray
    tolerance: np.ndarray
    trusted: np.ndarray


def along(line: Callable[[float], np.ndarray], eps: float = 2.0 ** -52, atol: float = 0.0) -> Slopes:
    """The derivative at 0 of a function of a number, whose results have errors of a few `eps`, relative, and `atol`.

    Two stencils with different steps agree where the function is smooth, and disagree at a jump. A kink exactly in the
    middle shows as curvature that doesn't shrink with the step.
    """
    with np.errstate(all="ignore"):
        start = line(0.0)
        slope, tolerance = np.full_like(start, np.nan), np.zeros(start.shape)
        trusted = np.zeros(start.shape, bool)
        for factor in _SHRINKING:
            doubtful = ~trusted & np.isfinite(start)
            if not doubtful.any():
                break
            new = _at_step(line, start, eps ** 0.2 * factor, eps, atol)
            chosen = doubtful & (new.trusted | ~np.isfinite(slope))
            slope, tolerance = np.where(chosen, new.slope, slope), np.where(chosen, new.tolerance, tolerance)
            trusted = trusted | (doubtful & new.trusted)
    return Slopes(slope, tolerance, trusted)


def _at_step(line: Callable[[float], np.ndarray], start: np.ndarray, h: float, eps: float, atol: float) -> Slopes:
    short = _RATIO * h
    far, near, far_short, near_short = [(line(-t), line(t)) for t in (2 * h, h, 2 * short, short)]
    coarse, fine = _five_points(far, near, h), _five_points(far_short, near_short, short)
    size = np.max([np.abs(x) for x in (*far, *near, *far_short, *near_short)], axis=0)
    noise = (20 * eps * (size + min(_largest(size), 100.0)) + 4 * atol) / h
    tolerance = _RELATIVE * (np.abs(fine) + min(_largest(fine), 1.0)) + noise
    bends = [np.abs(right - 2 * start + left) / step for (left, right), step in ((near, h), (near_short, short))]
    kinked = (bends[1] > 0.7 * bends[0]) & (bends[1] > 100 * tolerance)
    return Slopes(fine, tolerance, np.isfinite(fine) & (np.abs(coarse - fine) <= tolerance) & ~kinked)


def _five_points(outer: tuple[np.ndarray, np.ndarray], inner: tuple[np.ndarray, np.ndarray], h: float) -> np.ndarray:
    return np.asarray((8 * (inner[1] - inner[0]) - (outer[1] - outer[0])) / (12 * h))


def _largest(x: np.ndarray) -> float:
    finite = np.abs(x[np.isfinite(x)])
    return float(finite.max()) if finite.size else 0.0


def of(function: Callable[..., Sequence[Any]], xs: Sequence[Any], directions: Sequence[Any], atol: float = 0.0
       ) -> Slopes:
    """The derivative of a function's results, all as one vector and known to `atol`, at `xs` along `directions`."""
    xs, directions = [host(x) for x in xs], [host(v) for v in directions]
    def line(t: float) -> np.ndarray:
        return vector(function(*[(x + t * v).astype(x.dtype) for x, v in zip(xs, directions, strict=True)]))

    return along(line, max([_eps(x) for x in function(*xs)], default=2.0 ** -52), atol)


def vector(results: Sequence[object]) -> np.ndarray:
    """All elements of some results, one after the other, in double precision."""
    arrays = [np.ravel(host(x)) for x in results]
    kind = np.complex128 if any([dtypes.is_complex(x.dtype) for x in arrays]) else np.float64
    return np.concatenate([x.astype(kind) for x in arrays]) if arrays else np.zeros(0)


def _eps(x: object) -> float:
    info: Any = ml_dtypes.finfo(np.dtype(host(x).real.dtype))  # type: ignore[no-untyped-call]
    return float(info.eps)
