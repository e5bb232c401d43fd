"""Nested lists of numbers and arrays, as one array."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from corejax import lax
from corejax.core import Array, ShapedArray, aval_of, context, dtypes, from_array_like
from corejax.errors import CorejaxError, CorejaxOverflowError, CorejaxValueError
from corejax.plugin import operators, refused

__all__ = ["of_nested"]

_NUMBERS = frozenset(dtypes.PYTHON_SCALARS)
_INTEGERS = frozenset((int, bool))
_FEW = 32


def of_nested(name: str, x: Any, dtype: np.dtype | None) -> Any:
    """The array of a list or tuple, in a dtype or else in the common one of its elements; never weak.

    Unlike in NumPy, that one isn't widened by Python's numbers beside arrays and NumPy's scalars.
    """
    if dtype is None and context.trace.knows_values and _are_numbers(x):
        host = _in_memory(name, x)
        if host.dtype.kind in "bifc" and host.dtype is dtypes.default_dtype(host.dtype.kind):
            return _array(host)
    leaves: list[Any] = []
    kinds = _take_leaves(x, leaves)
    if kinds <= _NUMBERS:
        return _of_numbers(name, x, kinds, dtype)
    if dtype is None:
        avals = [aval_of(leaf) for leaf in leaves]
        dtype = dtypes.promote(*[(aval.dtype, aval.weak_type) for aval in avals])[0]
    if all([kind in _NUMBERS or issubclass(kind, (np.ndarray, np.generic)) for kind in kinds]):
        host = _in_memory(name, x)
        if host.dtype in dtypes.ALL:
            return operators.astype(_array(host), dtype)
    return _stacked(name, x, iter([operators.astype(from_array_like(leaf), dtype) for leaf in leaves]))


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


def _of_numbers(name: str, x: Any, kinds: set[type], dtype: np.dtype | None) -> Any:
    """The array of nested lists of Python's numbers."""
    if dtype is not None and dtypes.is_integer(dtype) and kinds <= _INTEGERS:
        return _array(_in_memory(name, x, dtype))
    host = _in_memory(name, x)
    if host.dtype.kind not in "bifc":
        raise _misfit(name, x, "Python's integers are taken as int64")
    if dtype is not None:
        return operators.astype(_array(host), dtype)
    own = dtypes.default_dtype(host.dtype.kind)
    return _array(host if host.dtype == own else _in_memory(name, x, own))


def _in_memory(name: str, x: Any, dtype: np.dtype | None = None) -> np.ndarray:
    try:
        return np.array(x, dtype)
    except (OverflowError, ValueError, TypeError) as error:
        if isinstance(error, OverflowError):
            raise _misfit(name, x, str(error)) from error
        raise refused(name, "the lists don't have one shape", got=repr(x)[:80], kind=CorejaxValueError,
                      wanted="at each depth, parts of one shape", todo=f"NumPy says: {error}") from error


def _misfit(name: str, x: Any, why: str) -> CorejaxError:
    return refused(name, "an integer doesn't fit the dtype", got=repr(x)[:80], wanted=why,
                   todo="give a dtype that holds it: dtype=float, or an unsigned one", kind=CorejaxOverflowError)


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
