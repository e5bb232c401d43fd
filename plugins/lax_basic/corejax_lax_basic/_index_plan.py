"""What an index expression means: checks each entry of `x[entries]`, resolves it, and assigns it to an axis of `x`.

Python integers, slices, None, Ellipsis and NumPy arrays are static and checked here. Arrays and tracers of integers are
computed: an index out of bounds is handled when the program runs. If the user names a mode, it applies to both.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from corejax import lax
from corejax.core import Array, Tracer, aval_of, dtypes, is_foreign, values
from corejax.errors import CorejaxError, CorejaxIndexError, CorejaxTypeError, CorejaxValueError, kind_of
from corejax.plugin import refused, shaping
from corejax_lax_basic._axes import Shape, dtype_kind
from corejax_lax_basic.creation import as_dtype

FULL = slice(None)


class Along(NamedTuple):
    """A slice of an axis: `length` elements from `start` by `step`, which may be negative."""

    axis: int
    start: int
    step: int
    length: int
    full: bool


class At(NamedTuple):
    """An index along an axis: an integer, or an array or tracer of integers; static if it is known to be in bounds."""

    axis: int
    where: Any
    static: bool


class Flag(NamedTuple):
    """A boolean scalar: an axis of length 1 or 0 that doesn't correspond to an axis of the operand."""

    length: int


class New(NamedTuple):
    """A new axis of size 1."""


class Dots(NamedTuple):
    """An ellipsis that stands for no axes. Like any ellipsis, it separates index arrays."""


Entry = Along | At | Flag | New | Dots


class Bounds(NamedTuple):
    """How to treat indices: `mode` is for those out of bounds (None: errors), `wrap` for negative ones."""

    mode: str | None = None
    wrap: bool = True


STRICT = Bounds()


def resolve(shape: Shape, index: Any, bounds: Bounds = STRICT) -> list[Entry]:
    """The entries of an index into an array of this shape, which cover each axis."""
    raw = [_plain(entry) for entry in (index if type(index) is tuple else (index,))]
    used = sum([_axes_of(entry) for entry in raw])
    if used > len(shape):
        raise refused("indexing", f"too many indices: the array has {len(shape)} axes", got=f"{used} indices",
                      wanted=f"at most {len(shape)}", todo="drop some, or add axes with None", kind=CorejaxIndexError)
    dots = [i for i, entry in enumerate(raw) if entry is Ellipsis]
    if len(dots) > 1:
        raise refused("indexing", "an index can have at most one ellipsis", got=f"{len(dots)} of them",
                      wanted="one `...`", todo="write the other axes out as `:`", kind=CorejaxIndexError)
    at = dots[0] if dots else len(raw)
    whole: list[Any] = [FULL] * (len(shape) - used)
    raw[at:at + len(dots)] = whole or [Ellipsis] * len(dots)
    entries: list[Entry] = []
    axis = 0
    for entry in raw:
        entries.extend(_entry(entry, shape, axis, bounds))
        axis += _axes_of(entry)
    return entries


def _plain(entry: Any) -> Any:
    """An index entry as None, Ellipsis, slice, bool, int, ndarray, `Array` or tracer."""
    kind = type(entry)
    if kind is int or kind is slice or entry is None or entry is Ellipsis or kind is bool:
        return entry
    if isinstance(entry, (np.bool_, np.integer)):
        return entry.item()
    if isinstance(entry, list):
        entry = _from_list(entry)
    if isinstance(entry, (np.ndarray, Array)):
        return _checked_array(entry)
    if is_foreign(entry):
        return _checked_array(*values([entry], "indexing", lambda _: "the index"))
    if hasattr(kind, "__index__"):
        return shaping.as_int("indexing", "the index", entry)
    raise _refused(entry)


def _refused(entry: Any) -> CorejaxError:
    return refused("indexing", f"an array can't be indexed by {kind_of(entry)}", got=f"{entry!r:.60}",
                   wanted="integers, slices, None, `...`, or arrays of integers or booleans",
                   todo="convert it to an integer, or to an array of integers")


def _from_list(entry: list[Any]) -> Any:
    if not entry:
        return np.zeros(0, np.int64)
    if _holds_arrays(entry):
        return _stacked(entry)
    try:
        return np.asarray(entry)
    except ValueError as error:
        raise _refused(entry) from error


def _holds_arrays(entry: list[Any]) -> bool:
    return any([isinstance(item, Array) or (isinstance(item, list) and _holds_arrays(item))
                for item in entry])


def _stacked(entry: Sequence[Any]) -> Any:
    """A list that contains arrays or tracers of integers, as one array; as a mask if all are booleans."""
    parts = [_checked_array(_stacked(item) if isinstance(item, list) else
                            item if isinstance(item, Array) else np.asarray(item)) for item in entry]
    flags = [type(part) is bool or (isinstance(part, np.ndarray) and part.dtype.kind == "b") for part in parts]
    if all(flags):
        return np.asarray(parts)
    return lax.stack([lax.convert_element_type(part, np.int64) for part in parts], 0)


def _checked_array(entry: Any) -> Any:
    aval = None if isinstance(entry, np.ndarray) and entry.dtype.kind not in "biufcV" else aval_of(entry)
    if aval is None or dtype_kind(aval.dtype) not in "biu":
        raise refused("indexing", "an index array must hold integers or booleans", got=str(aval or entry.dtype),
                      wanted="an integer or boolean dtype", todo="convert it with .astype(int)")
    if aval.dtype.kind == "b":
        if isinstance(entry, Tracer):
            raise refused("indexing",
                          "the shape of x[mask] depends on the values of the mask, which are not known here",
                          got=str(aval), wanted="a mask that is known when the program is traced",
                          todo="use lax.select(mask, x, other), or compute the mask outside of the "
                               "transformed function")
        entry = np.asarray(entry)
        return entry if entry.ndim else bool(entry)
    return int(entry) if isinstance(entry, np.ndarray) and not entry.ndim else entry


def _axes_of(entry: Any) -> int:
    """How many axes of the operand an entry consumes."""
    if entry is None or entry is Ellipsis or type(entry) is bool:
        return 0
    return entry.ndim if isinstance(entry, np.ndarray) and entry.dtype.kind == "b" else 1


def _entry(entry: Any, shape: Shape, axis: int, bounds: Bounds) -> list[Entry]:
    kind = type(entry)
    if kind is slice:
        return [_along(entry, shape[axis], axis)]
    if kind is int:
        return [_at_number(entry, shape[axis], axis, bounds)]
    if entry is None:
        return [New()]
    if entry is Ellipsis:
        return [Dots()]
    if kind is bool:
        return [Flag(int(entry))]
    if not isinstance(entry, np.ndarray):
        return [At(axis, from_end(entry, shape[axis], bounds.wrap), False)]
    if entry.dtype.kind == "b":
        if entry.shape != shape[axis:axis + entry.ndim]:
            raise refused("indexing", "a mask doesn't fit the axes that it covers", got=f"shape {entry.shape}",
                          wanted=f"shape {shape[axis:axis + entry.ndim]}", todo="make the mask as long as the array",
                          kind=CorejaxIndexError)
        return [At(axis + k, positions, True) for k, positions in enumerate(entry.nonzero())]
    return [_at_numbers(entry, shape[axis], axis, bounds)]


def _at_number(number: int, size: int, axis: int, bounds: Bounds) -> At:
    """A static integer, counted from the start."""
    if (-size if bounds.wrap else 0) <= number < size:
        return At(axis, number + size if number < 0 else number, True)
    if bounds.mode == "fill":  # any number out of bounds will do
        return At(axis, np.array(size if number > 0 else -1), False)
    if bounds.mode == "clip" and size:
        return At(axis, size - 1 if number > 0 else 0, True)
    if bounds.mode == "clip":
        return At(axis, np.array(0), False)
    raise refused("indexing", f"index {number} is out of bounds for axis {axis} of size {size}", got=number,
                  wanted=f"an index from {-size if bounds.wrap else 0} to {size - 1}" if size
                  else "no index: the axis is empty", kind=CorejaxIndexError,
                  todo='check the index, or say what happens out of bounds: x.at[i].get(mode="clip")')


def _at_numbers(numbers: Any, size: int, axis: int, bounds: Bounds) -> At:
    """A static array of integers, counted from the start."""
    least, most = (int(numbers.min()), int(numbers.max())) if numbers.size else (0, -1)
    inside = (-size if bounds.wrap else 0) <= least and most < size
    if not inside and bounds.mode not in ("clip", "fill"):
        _at_number(most if most >= size else least, size, axis, bounds)
    if most > np.iinfo(np.int64).max:
        numbers = np.minimum(numbers, np.asarray(size, numbers.dtype))
    positions = numbers.astype(np.int64)
    if bounds.wrap:
        positions = np.where(positions < 0, positions + size, positions)
    if not inside and bounds.mode == "clip" and size:
        return At(axis, np.clip(positions, 0, size - 1), True)
    return At(axis, positions, inside)


def _along(entry: slice, size: int, axis: int) -> Along:
    for part in (entry.start, entry.stop, entry.step):
        if isinstance(part, Tracer):
            raise refused("indexing", "the bounds of a slice are traced, so its size isn't known", got=_bounds(entry),
                          wanted="static bounds",
                          todo="use lax.dynamic_slice_in_dim(x, start, size), whose size is static")
        if part is not None and not hasattr(part, "__index__"):
            raise refused("indexing", "the bounds of a slice must be integers", got=f"{entry!r:.80}",
                          wanted="integers or None", todo="convert them with int(...)")
    try:
        start, stop, step = entry.indices(size)
    except ValueError as error:
        raise refused("indexing", "the step of a slice can't be zero", got=f"{entry!r:.80}",
                      wanted="a step other than 0",
                      todo="use x[None] or lax.broadcast_in_dim to repeat elements", kind=CorejaxValueError) from error
    count = len(range(start, stop, step))
    return Along(axis, start, step, count, step == 1 and count == size)


def _bounds(entry: slice) -> str:
    """A slice as it is written between brackets, with traced parts shown as their types."""
    parts = ["" if p is None else str(p.aval) if isinstance(p, Tracer) else repr(p)
             for p in (entry.start, entry.stop, entry.step)]
    return ":".join(parts if parts[2] else parts[:2])


def from_end(index: Any, size: int, wrap: bool) -> Any:
    """A computed index, signed and with at least 32 bits; negative ones count from the end if they wrap."""
    aval = aval_of(index)
    dtype = aval.dtype
    if dtype_kind(dtype) == "u" and dtype.itemsize > 2:
        index = lax.min(index, as_dtype(min(size, dtypes.integer_limits(dtype).max), dtype))
    if dtype.itemsize < 4 or dtype_kind(dtype) == "u" or size > dtypes.integer_limits(dtype).max:
        dtype = np.dtype(np.int32 if size < np.iinfo(np.int32).max else np.int64)
    if dtype != aval.dtype:
        index = lax.convert_element_type(index, dtype)
    if dtype_kind(aval.dtype) == "u" or not wrap:
        return index
    zero, total = as_dtype(0, dtype), as_dtype(size, dtype)
    return lax.select_n(lax.lt(index, zero), index, lax.add(index, total))


def spread(value: Any, shape: Shape, what: str) -> Any:
    """The value broadcast to a shape, like NumPy does."""
    aval = aval_of(value)
    sizes = aval.shape
    if sizes == shape:
        return value
    while len(sizes) > len(shape) and sizes[0] == 1:
        value, sizes = lax.squeeze(value, (0,)), sizes[1:]
    offset = len(shape) - len(sizes)
    if offset < 0 or any([s not in (1, n) for s, n in zip(sizes, shape[offset:], strict=True)]):
        raise refused("indexing", f"{what} doesn't broadcast to the indexed part", got=str(aval),
                      wanted=f"shape {shape}, or one that broadcasts to it", todo="reshape it, or index another part",
                      kind=CorejaxTypeError)
    return lax.broadcast_in_dim(value, shape, tuple(range(offset, len(shape))))
