"""How far apart right results may be: some units in the last place, or as many of the operands where results cancel.

A sum of positive and negative numbers may be 0 in one order and 1e-17 in another: no number of units of a result says
that this is right. So what counts is also the size of what went in: of the element at the same place for an elementwise
primitive, whose small results must stay exact where its operands are small, else of all elements together.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np

from corejax.core import aval_of, dtypes
from corejax_testing.case import Case
from corejax_testing.comparing import numbers, ulps_apart
from corejax_testing.elementwise import LARGEST, is_elementwise, size_of, sizes_of

#: How many units in the last place two ways of computing may be apart, unless a sample says more.
ULPS = 8.0


def ulps_of(case: Case) -> float:
    """The limit in units in the last place."""
    return ULPS if case.sample.ulps is None else case.sample.ulps


def slack(case: Case, *values: object) -> float:
    """The absolute tolerance of derivatives and pairings, for values of these precisions: from the operands' norm."""
    return case.atol + ULPS * _eps(*values) * min(_norm(case.args), LARGEST)


def distances(case: Case, wanted: object, got: object, calls: Sequence[Sequence[object]] | None = None) -> np.ndarray:
    """The distances in units in the last place, 0 where they are no larger than the operands' size explains.

    With `calls`, the results are those of several lists of operands, stacked.
    """
    distance = ulps_apart(wanted, got)
    wanted, got = numbers(wanted), numbers(got)
    if not distance.size or not dtypes.is_inexact(wanted.dtype) or float(distance.max()) <= ulps_of(case):
        return distance
    size = _sizes(case, case.args) if calls is None else np.stack([
        np.broadcast_to(_sizes(case, args), wanted.shape[1:]) for args in calls])
    wide = np.complex128 if dtypes.is_complex(wanted.dtype) else np.float64
    with np.errstate(all="ignore"):
        difference = np.abs(wanted.astype(wide) - got.astype(wide))
        return np.where(difference <= case.atol + ulps_of(case) * _eps(wanted) * size, 0.0, distance)


def _sizes(case: Case, args: Sequence[object]) -> np.ndarray:
    """The size of what went into each element of a result."""
    return sizes_of(args) if is_elementwise(case) else np.asarray(_norm(args))


def _norm(args: Sequence[object]) -> float:
    """The root of the sum of squares, scaled so that these don't overflow."""
    sizes = np.concatenate([np.zeros(1), *[size_of(x).ravel() for x in args]])
    largest = sizes.max()
    return float(largest * np.sqrt(np.square(sizes / largest).sum())) if largest else 0.0


def _eps(*values: object) -> float:
    infos: list[Any] = [ml_dtypes.finfo(numbers(x).real.dtype)  # type: ignore[no-untyped-call]
                        for x in values if dtypes.is_inexact(aval_of(x).dtype)]
    return max([float(info.eps) for info in infos], default=2.0 ** -52)
