"""A shortcut for arrays in host memory: NumPy's own indexing reads and writes them.

It is used if nothing is being transformed. Each function returns None for anything that it can't handle: an index or
values that NumPy rejects, or may interpret differently from us. The general code then does the work, or reports what is
wrong. The `impl`s of `gather`, `scatter` and the like aren't called here, while those of operations are.
"""

from __future__ import annotations

import operator
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from corejax.core import Array, ShapedArray, array_at, context, dtypes, in_memory
from corejax.plugin import elements
from corejax_lax_basic._axes import Shape, dtype_kind

#: Entries of an index that NumPy takes unchanged.
_PLAIN = frozenset([int, slice, type(None), type(Ellipsis), bool])

_SCALARS = np.integer, np.bool_

#: Ufuncs that do bitwise the same as an `impl`, in place, even if places repeat.
_IN_PLACE = {operator.add: np.add, operator.mul: np.multiply}

#: The kinds of numbers, in order: values are never converted to a lower kind.
_KINDS = {"E": -1, "b": 0, "i": 1, "u": 1, "f": 2, "c": 3}

_PYTHON = {bool: 0, int: 1, float: 2}

#: From this many bytes on, a program on the device copies faster than this code, which makes two copies.
_MANY = 1 << 18

_MOST = np.iinfo(np.int64).max
_NUMPYS_OWN = 256  # dtypes with smaller numbers are, including structured ones such as float0


def read(x: Array, index: Any) -> Array | None:
    """`x[index]`."""
    found = in_memory(x)
    if found is None:
        return None
    host, place = found
    if type(host) is not np.ndarray:
        return None
    kind = type(index)
    try:
        if kind is tuple:
            for entry in index:
                if type(entry) not in _PLAIN:
                    index = tuple([e if type(e) in _PLAIN else _of_numpy(e, place) for e in index])
                    break
        elif kind not in _PLAIN:
            index = _of_numpy(index, place)
        out = host[index]
    except Exception:  # the general code reports what is wrong, and clamps computed indices
        return None
    if type(out) is np.ndarray:
        out.setflags(0)  # type: ignore[call-arg,arg-type]  # read-only: faster by position
    part = _part_of(x.aval, out.shape)
    return array_at(place, out, part) if part is not None else None


@lru_cache(maxsize=1024)
def _part_of(aval: ShapedArray, shape: Shape) -> ShapedArray | None:
    """The type of a part of an array of this type; None if some primitives refuse its elements."""
    element = elements.find(aval.dtype)
    if element is not None and element.refuses:
        return None
    return ShapedArray(shape, aval.dtype, aval.weak_type)


def _of_numpy(entry: Any, place: Any) -> Any:
    """An entry in a form that NumPy takes; a string, which NumPy rejects, if it needs a closer look."""
    kind = type(entry)
    if kind is Array:
        found = in_memory(entry)
        if found is None or found[1] not in (None, place):
            return ""
        entry = found[0]
    elif kind is list:
        if not entry:
            return entry
        entry = np.asarray(entry)
    elif kind is not np.ndarray:
        return entry if isinstance(entry, _SCALARS) else ""
    letter = entry.dtype.kind
    if letter not in "biu":
        return ""  # NumPy would take text as the name of a field, and float0 has one
    if letter == "u" and entry.dtype.itemsize > 4 and entry.size and entry.max() > _MOST:
        return ""  # NumPy would take it as a negative index
    return entry


def changed(x: Any, index: Any, values: Any, operation: Any) -> Array | None:
    """`x.at[index].set(values)`, or the same with an operation that combines the part with values.

    A place that is indexed twice is combined twice.
    """
    if type(x) is not Array or not context.trace.knows_values or x.aval.weak_type:
        return None
    found, dtype = in_memory(x), x.aval.dtype
    if found is None or (dtype.kind == "V" and dtype.num < _NUMPYS_OWN):
        return None
    host, place = found
    if type(host) is not np.ndarray or not host.size or (place is not None and host.nbytes > _MANY):
        return None
    try:
        places, new = _places(index, place), _values(values, dtype, place)
        if places is None or new is None:
            return None
        out = host.copy()
        if operation is None:
            out[places.entries] = new
        elif not _combined(out, places, new, operation):
            return None
    except Exception:  # the general code reports what is wrong, and skips computed indices out of bounds
        return None
    out.setflags(0)  # type: ignore[call-arg,arg-type]  # read-only: faster by position
    # A copy is in row-major order, as `x` is; `array_at` would look.
    return Array.from_host(out, x.aval) if place is None else array_at(place, out, x.aval)


class _Places(NamedTuple):
    """An index in NumPy's form, and whether it has arrays of integers, or entries that `ufunc.at` doesn't accept."""

    entries: tuple[Any, ...]
    integers: bool
    special: bool


def _places(index: Any, place: Any) -> _Places | None:
    entries, integers, special = [], False, False
    for e in index if type(index) is tuple else (index,):
        kind = type(e)
        if kind in _PLAIN:
            special = special or e is None or kind is bool
        else:
            if kind is list and set(map(type, e)) != _INTEGER:
                return None
            e = _of_numpy(e, place)
            if type(e) is str:
                return None
            if e.dtype.kind == "b":
                special = True
            elif e.ndim == 1:  # with more axes, NumPy's last write needn't be the last in order
                e, integers = np.ascontiguousarray(e), True
            elif e.ndim:
                return None
        entries.append(e)
    return _Places(tuple(entries), integers, special)


_INTEGER = frozenset([int])


def _values(values: Any, dtype: np.dtype, place: Any) -> Any:
    """Values of this dtype, as NumPy arrays; None if they have to be converted or rejected."""
    kind = type(values)
    rank = _PYTHON.get(kind)
    if rank is not None:
        return dtypes.number(values, dtype) if rank <= _KINDS[dtype_kind(dtype)] else None
    if kind is Array and values.aval.dtype == dtype:
        found = in_memory(values)
        return None if found is None or found[1] not in (None, place) else found[0]
    return values if (kind is np.ndarray or isinstance(values, np.generic)) and values.dtype == dtype else None


def _combined(out: Any, places: _Places, new: Any, operation: Any) -> bool:
    """Combine a part of `out` in place; False if that isn't possible here."""
    impl, ufunc = operation.primitive.impl, _IN_PLACE.get(operation.primitive.of_two)
    if out.dtype.kind not in "iuf" or impl is None or (places.integers and (places.special or ufunc is None)):
        return False
    with np.errstate(all="ignore"):
        if places.integers:
            dropped = [e for e in places.entries if type(e) not in (slice, type(Ellipsis))]
            if new.ndim > out.ndim + 1 - len(dropped):  # NumPy 2.4 reads out of bounds here
                return False
            ufunc.at(out, places.entries, new)  # type: ignore[union-attr]
            return True
        part = out[places.entries]
        new = impl((part, new))
    if new.shape != part.shape or new.dtype != out.dtype:
        return False
    out[places.entries] = new
    return True
