"""The types of a call's arguments, told as fast as can be: they are the key under which programs are kept."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from corejax.arrays.array import Array
from corejax.base import trees
from corejax.base.avals import ShapedArray, aval_of
from corejax.base.config import config
from corejax.base.dtypes import PYTHON_SCALARS
from corejax.base.errors import CorejaxError, CorejaxTypeError
from corejax.interpreters.leaves import Namer, not_an_array

_MAX_REMEMBERED = 8192

_remembered: dict[Any, ShapedArray] = {}


def plain_aval(x: Any) -> ShapedArray | None:
    """The type of a NumPy array or a Python scalar; None for everything else."""
    kind = type(x)
    if kind is np.ndarray:
        key: Any = (x.shape, x.dtype)
    elif kind in PYTHON_SCALARS:
        key = (kind, config.default_bits)
    elif issubclass(kind, np.generic):
        key = kind if kind is not np.void else ((), x.dtype)
    elif issubclass(kind, np.ndarray) and not trees.is_registered(kind):
        key = (x.shape, x.dtype)
    else:
        return None
    found = _remembered.get(key)
    if found is not None:
        return found
    try:
        aval = aval_of(x)
    except CorejaxError:
        return None  # the slow path says what is wrong with it, and where it is
    if len(_remembered) >= _MAX_REMEMBERED:
        _remembered.clear()
    _remembered[key] = aval
    return aval


def types_of(values: Sequence[Any]) -> tuple[ShapedArray | None, ...]:
    """The types of arrays, NumPy's among them, and of scalars; None for everything else."""
    known = _remembered.get
    return tuple([x.aval if (kind := type(x)) is Array else
                  known((x.shape, x.dtype)) or plain_aval(x) if kind is np.ndarray else plain_aval(x) for x in values])


def avals_of(leaves: Sequence[Any], what: str, name: Namer) -> tuple[ShapedArray, ...]:
    """The types of leaves, or an error that names the one that has none."""
    return tuple([x.aval if type(x) is Array else plain_aval(x) or _aval(i, x, what, name)
                  for i, x in enumerate(leaves)])


def _aval(i: int, x: Any, what: str, name: Namer) -> ShapedArray:
    try:
        return aval_of(x)
    except CorejaxTypeError as error:
        raise not_an_array(x, what, name(i), error) from error
