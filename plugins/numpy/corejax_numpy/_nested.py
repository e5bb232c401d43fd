"""Nested lists of numbers and arrays, as one array."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from corejax import lax
from corejax.core import Array, ShapedArray, aval_of, context, dtypes, from_array_like
from corejax.errors import CorejaxError, CorejaxOverflowError, CorejaxValueError
from corejax.plugin import operators, refused
from corejax_lax_basic import as_dtype

__all__ = ["of_nested"]

_NUMBERS = frozenset(dtypes.PYTHON_SCALARS)
_FEW = 32
_EXACT = 2 ** 53  # floats hold all integers up to this one
_WIDE = dtypes.int64, np.dtype(np.uint64)


def of_nested(name: str, x: Any, dtype: np.dtype | None, as_numpy: bool = False) -> Any:
    """The array of a list or tuple, in a dtype or else in the common one of its elements; never weak.

    Unlike in NumPy, that one isn't widened by Python's numbers beside arrays and NumPy's scalars. A Python integer that
    it can't hold is an error; or if `as_numpy`, and all are Python's integers, they are as wide as NumPy makes them.
    """
    if dtype is None and context.trace.knows_values and _are_numbers(x):
        host = _in_memory(name, x)
        kind = host.dtype.kind
        if kind in "bifc" and host.dtype is dtypes.default_dtype(kind) and (kind != "f" or _has_float(x)):
            return _array(host)
    leaves: list[Any] = []
    kinds = _take_leaves(x, leaves)
    if dtype is None:
        dtype = _common(kinds, leaves, as_numpy)
    ends = _ends(leaves) if int in kinds else (0, 0)
    if not _holds(dtype, *ends):
        raise _misfit(name, x, dtype)
    known = all([kind in _NUMBERS or issubclass(kind, (np.ndarray, np.generic)) for kind in kinds])
    if not known or dtypes.kind(dtype) not in "biufc":
        return _stacked(name, x, iter([_leaf(leaf, dtype) for leaf in leaves]))
    if not dtypes.is_integer(dtype):
        host = _in_memory(name, x)
        if host.dtype not in dtypes.ALL:  # NumPy keeps integers of more than 64 bits as they are
            is_complex = any([dtypes.is_complex(aval_of(leaf).dtype) for leaf in leaves])
            host = _in_memory(name, x, np.dtype(complex if is_complex else float))
    elif all([aval_of(leaf).dtype.kind in "biu" for leaf in leaves]):
        host = _in_memory(name, x, dtype)  # floats would round them
    elif max(-ends[0], ends[1]) <= _EXACT:
        host = _in_memory(name, x)
    else:
        return _stacked(name, x, iter([_leaf(leaf, dtype) for leaf in leaves]))
    return operators.astype(_array(host), dtype)


def _common(kinds: set[type], leaves: list[Any], as_numpy: bool) -> np.dtype:
    """The dtype of these elements together."""
    if not leaves:
        return dtypes.default_dtype("f")
    if not kinds <= _NUMBERS:
        avals = [aval_of(leaf) for leaf in leaves]
        return dtypes.promote(*[(aval.dtype, aval.weak_type) for aval in avals])[0]
    kind = "c" if complex in kinds else "f" if float in kinds else "i" if int in kinds else "b"
    own = dtypes.default_dtype(kind)
    if kind == "i" and as_numpy:
        return next((dtype for dtype in (own, *_WIDE) if _holds(dtype, *_ends(leaves))), own)
    return own


def _ends(leaves: list[Any]) -> tuple[int, int]:
    """The smallest and the largest of Python's integers."""
    numbers = [leaf for leaf in leaves if type(leaf) is int]
    return min(numbers), max(numbers)


def _holds(dtype: np.dtype, low: int, high: int) -> bool:
    if not dtypes.is_integer(dtype):
        return True
    info = dtypes.integer_limits(dtype)
    return bool(info.min <= low and high <= info.max)


def _leaf(x: Any, dtype: np.dtype) -> Any:
    return as_dtype(x, dtype) if type(x) in _NUMBERS else operators.astype(from_array_like(x), dtype)


def _are_numbers(x: Any) -> bool:
    """Whether nested lists surely have nothing but Python's numbers: the sum of these is one, too.

    Looking at each type of many takes as long as NumPy does. Where operations are traced, there must be no such sum.
    """
    try:
        if type(x[0]) in (list, tuple):
            return all([_are_numbers(part) for part in x])
        if len(x) <= _FEW:
            return _NUMBERS.issuperset(map(type, x))
        with np.errstate(all="ignore"):
            return type(x[0]) in _NUMBERS and type(sum(x)) in _NUMBERS
    except Exception:  # it is empty, or holds something else
        return False


def _has_float(x: Any) -> bool:
    """Whether there is a float among numbers; NumPy makes floats of some integers, too."""
    return any(map(_has_float, x)) if type(x[0]) in (list, tuple) else float in map(type, x)


def _take_leaves(x: Any, leaves: list[Any]) -> set[type]:
    """Add all that isn't a list or tuple to `leaves`; the types of these."""
    kinds = set(map(type, x))
    if kinds <= _NUMBERS or list not in kinds and tuple not in kinds:
        leaves.extend(x)
        return kinds
    found: set[type] = set()
    for part in x:
        if isinstance(part, (list, tuple)):
            found |= _take_leaves(part, leaves)
        else:
            leaves.append(part)
            found.add(type(part))
    return found


def _in_memory(name: str, x: Any, dtype: np.dtype | None = None) -> np.ndarray:
    try:
        return np.array(x, dtype)
    except (OverflowError, ValueError, TypeError) as error:
        if isinstance(error, OverflowError):
            raise _misfit(name, x, dtype or dtypes.float64) from error
        raise refused(name, "the lists don't have one shape", got=repr(x)[:80], kind=CorejaxValueError,
                      wanted="at each depth, parts of one shape", todo=f"NumPy says: {error}") from error


def _misfit(name: str, x: Any, dtype: np.dtype) -> CorejaxError:
    return refused(name, "an integer doesn't fit the dtype", got=_shown(x), wanted=f"integers that {dtype.name} holds",
                   todo="give a dtype that holds it: dtype=float, or an unsigned one", kind=CorejaxOverflowError)


def _shown(x: Any) -> str:
    try:
        return repr(x)[:80]
    except ValueError:  # Python refuses to print huge integers
        return "huge integers"


def _array(host: np.ndarray) -> Array:
    host.setflags(write=False)
    return Array.from_host(host if host.shape else host[()], ShapedArray(host.shape, host.dtype))


def _stacked(name: str, x: Any, leaves: Iterator[Any]) -> Any:
    """The nested lists, with these in place of their leaves, in order."""
    if not isinstance(x, (list, tuple)):
        return next(leaves)
    parts = [_stacked(name, part, leaves) for part in x]
    if not parts or any([part.shape != parts[0].shape for part in parts]):
        raise refused(name, "the lists don't have one shape", got=[part.aval for part in parts][:6],
                      wanted="at each depth, parts of one shape", todo="make them equally long",
                      kind=CorejaxValueError)
    return lax.stack(parts)
