"""The types of a call's arguments, found as fast as possible: they are the key that programs are stored under."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from corejax.arrays.array import Array
from corejax.base import trees
from corejax.base.avals import ShapedArray, aval_of, known_aval, scalar_aval
from corejax.base.dtypes import PYTHON_SCALARS
from corejax.base.errors import CorejaxError, CorejaxTypeError
from corejax.base.standins import StandIn
from corejax.interpreters.leaves import Namer, not_an_array


def plain_aval(x: Any) -> ShapedArray | None:
    """The type of a NumPy array or a Python scalar; None for everything else."""
    kind = type(x)
    if kind in PYTHON_SCALARS:
        return scalar_aval(PYTHON_SCALARS[kind])
    if not issubclass(kind, (np.ndarray, np.generic)) or (
            kind is not np.ndarray and issubclass(kind, np.ndarray) and trees.is_registered(kind)):
        return None
    found = known_aval((x.shape, x.dtype))
    if found is not None:
        return found
    try:
        return aval_of(x)
    except CorejaxError:
        return None  # the slow path reports what is wrong with it, and where it is


def types_of(values: Sequence[Any]) -> tuple[ShapedArray | None, ...]:
    """The types of arrays (including NumPy's) and scalars; None for everything else."""
    return tuple([x.aval if (kind := type(x)) is Array else
                  known_aval((x.shape, x.dtype)) or plain_aval(x) if kind is np.ndarray else plain_aval(x)
                  for x in values])


def avals_of(leaves: Sequence[object], what: str, name: Namer) -> tuple[ShapedArray, ...]:
    """The types of leaves. The error names a leaf that has none."""
    return tuple([x.aval if type(x) is Array else plain_aval(x) or _aval(i, x, what, name)
                  for i, x in enumerate(leaves)])


def _aval(i: int, x: object, what: str, name: Namer) -> ShapedArray:
    try:
        return aval_of(x)
    except StandIn:
        raise
    except CorejaxTypeError as error:
        raise not_an_array(x, what, name(i), error) from error
