"""Python scalars beside arrays: they get the array's dtype, and stay weak."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from corejax.arrays.array import Array, new_array
from corejax.arrays.datamodel import ArrayLike
from corejax.base import dtypes
from corejax.base.avals import ShapedArray, aval_of
from corejax.base.errors import CorejaxOverflowError, CorejaxTypeError
from corejax.base.source import here
from corejax.base.standins import replaced
from corejax.base.tracebacks import as_entry, trim
from corejax.packs.families.spreading import stretched

_SCALARS = dtypes.PYTHON_SCALARS
_RANK = {bool: 0, int: 1, float: 2, complex: 3}
_RANK_OF_KIND = {"b": 0, "u": 1, "i": 1, "f": 2, "c": 3, "E": -1, "V": -1}

#: For each dtype: the highest kind of scalars that it accepts, a function that makes its scalars, their weak type, and
#: whether NumPy doesn't compute with them.
_weak: dict[np.dtype, tuple[int, Callable[[Any], Any], ShapedArray, bool]] = {}


def weak_scalar(value: object, dtype: np.dtype) -> Array | None:
    """A Python scalar as a weak array of this dtype; None if the dtype can't hold its kind.

    >>> weak_scalar(2, np.dtype("float32")), weak_scalar(2.5, np.dtype("int32"))
    (Array(2., dtype=float32, weak_type=True), None)
    """
    found = _weak.get(dtype)
    if found is None:
        found = _weak[dtype] = (_RANK_OF_KIND[dtypes.kind(dtype)], dtypes.maker(dtype), ShapedArray((), dtype, True),
                                dtype in dtypes.PACKED)
    rank, make, aval, packed = found
    if _RANK[type(value)] > rank:
        return None
    try:
        number = make(value)
        if packed:
            return Array.from_host(number, aval)
        array = new_array()
        array.aval = aval
        array._host = number
        return array
    except OverflowError as error:
        shown = dtypes.shown(value)
        raise CorejaxOverflowError(f"the Python number {shown} doesn't fit {aval}", got=shown,
                                   wanted=f"a number in the range of {aval.dtype}", where=here(),
                                   todo="convert the array to a wider dtype first") from error


def match_scalars(operands: Sequence[object]) -> Sequence[Any]:
    """The operands, with Python scalars converted to the dtype of the first array, if their kinds allow it."""
    for x in operands:
        if type(x) not in _SCALARS:
            dtype = aval_of(x).dtype
            break
    else:
        return operands
    found = []
    for x in operands:
        if type(x) in _SCALARS:
            scalar = weak_scalar(x, dtype)
            found.append(x if scalar is None else scalar)
        else:
            found.append(x)
    return found


def matching(bind: Callable[[object, object], Array]) -> Callable[[ArrayLike, ArrayLike], Array]:
    """A public function of two operands that matches scalars and calls `bind`, which takes just these two."""
    scalars = _SCALARS

    @as_entry
    def function(x: ArrayLike, y: ArrayLike) -> Array:
        try:
            if type(y) in scalars:
                if type(x) not in scalars:
                    scalar = weak_scalar(y, aval_of(x).dtype)
                    return bind(x, y if scalar is None else scalar)
            elif type(x) in scalars:
                scalar = weak_scalar(x, aval_of(y).dtype)
                return bind(x if scalar is None else scalar, y)
            return bind(x, y)
        except (Exception, SystemExit) as error:
            fitting = replaced(error, (x, y)) or stretched(error, (x, y))
            if fitting is None:
                trim(error)
                raise
        return function(*fitting)
    return function


def matching_into(bind: Callable[[object, object], Array], into: Callable[[Any, Any], Any]) -> Callable[..., Array]:
    """The same with an option `out_dtype`: unless it is None, the operands are made of it by `into(x, out_dtype)`."""
    scalars = _SCALARS

    @as_entry
    def function(x: ArrayLike, y: ArrayLike, *, out_dtype: dtypes.DTypeLike | None = None) -> Array:
        try:
            if out_dtype is not None:
                return bind(into(x, out_dtype), into(y, out_dtype))
            if type(y) in scalars:
                if type(x) not in scalars:
                    scalar = weak_scalar(y, aval_of(x).dtype)
                    return bind(x, y if scalar is None else scalar)
            elif type(x) in scalars:
                scalar = weak_scalar(x, aval_of(y).dtype)
                return bind(x if scalar is None else scalar, y)
            return bind(x, y)
        except (Exception, SystemExit) as error:
            fitting = replaced(error, (x, y)) or stretched(error, (x, y))
            if fitting is None:
                trim(error)
                raise
        return function(*fitting, out_dtype=out_dtype)
    function.__annotations__["out_dtype"] = into.__annotations__.get("out_dtype", Any)
    return function


def matching_any(bind: Callable[..., Any]) -> Callable[..., Any]:
    """A public function of any operands, and params, that matches scalars and calls `bind`."""
    def function(*operands: Any, **params: Any) -> Any:
        try:
            return bind(*match_scalars(operands), **params)
        except CorejaxTypeError as error:
            fitting = stretched(error, operands)
            if fitting is None:
                raise
        return bind(*match_scalars(fitting), **params)
    return function
