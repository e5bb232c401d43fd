"""Reading the part that an index names: with slices if possible, otherwise with a gather.

Static entries use `slice`, `rev` and `squeeze`; a computed integer uses `dynamic_slice`; index arrays use one `gather`,
in which integers broadcast against them. For arrays outside of transformations there are two shortcuts: NumPy's own
indexing in host memory, and on a device a program for each *size* of part, so reading at another place compiles
nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from corejax import lax
from corejax.core import Array, aval_of, context
from corejax.errors import CorejaxIndexError
from corejax.plugin import refused
from corejax_lax_basic import _in_memory, shapes, slicing
from corejax_lax_basic._axes import Shape, broadcast_shape, shape_of
from corejax_lax_basic._index_plan import Along, At, Dots, Entry, Flag, New, resolve, spread
from corejax_lax_basic._placing import GatherDimensionNumbers, fill_number
from corejax_lax_basic.creation import as_dtype

_slice, _squeeze = slicing.slice.primitive.bind, shapes.squeeze.primitive.bind
_ZEROS = (0,) * 64  # NumPy's greatest number of axes


def getitem(x: Any, index: Any) -> Any:
    """`x[index]`.

    >>> getitem(np.arange(12.0).reshape(3, 4), (slice(None, None, -2), [0, -1])).tolist()
    [[8.0, 11.0], [0.0, 3.0]]
    """
    if type(x) is Array and context.trace.knows_values:
        found = _of_array(x, index)
        if found is not None:
            return found
    shape = shape_of(x)
    if type(index) is int and shape and -shape[0] <= index < shape[0]:  # by far the most common
        first = index + shape[0] if index < 0 else index
        row = _slice(x, start_indices=(first, *_ZEROS[1:len(shape)]), limit_indices=(first + 1, *shape[1:]),
                     strides=None)
        return _squeeze(row, dimensions=(0,))
    return read(x, resolve(shape, index))


# Shortcuts

def _of_array(x: Array, index: Any) -> Any:
    """Read a part of a concrete array; None if there is no shortcut for it."""
    found = _in_memory.read(x, index)
    if found is not None or hasattr(x, "_host"):
        return found
    return _window(x, resolve(x.aval.shape, index))


def _window(x: Array, entries: Sequence[Entry]) -> Any:
    """The part as a single window, for integers and slices without steps; None for any other index."""
    starts: dict[int, int] = {}
    sizes, dropped, offset = list(x.aval.shape), list[int](), list[int]()
    for e in entries:
        if type(e) is At and e.static and type(e.where) is int:
            starts[e.axis], sizes[e.axis] = e.where, 1
            dropped.append(e.axis)
        elif type(e) is Along and (e.step == 1 or e.length == 1) and e.length:
            offset.append(len(offset))
            if not e.full:
                starts[e.axis], sizes[e.axis] = e.start, e.length
        else:
            return None
    if not starts or max(starts.values()) > np.iinfo(np.int32).max:
        return None
    numbers = GatherDimensionNumbers(tuple(offset), tuple(dropped), tuple(starts))
    return lax.gather(x, np.array(list(starts.values()), np.int32), numbers, tuple(sizes),
                      mode="promise_in_bounds")


# The general code

def read(x: Any, entries: Sequence[Entry], mode: str | None = None, fill_value: Any = None,
         promises: dict[str, bool] | None = None) -> Any:
    """The part that resolved entries name; `mode` says how to treat computed indices out of bounds."""
    indexed = [e for e in entries if type(e) is At]
    if any([is_array(e) for e in entries]) or (mode is not None and not all([e.static for e in indexed])):
        return _gathered(x, entries, mode, fill_value, promises or {})
    if not all([e.static for e in indexed]) and 0 in [shape_of(x)[e.axis] for e in indexed]:
        return _of_empty_axis(x, entries, mode, fill_value)
    entries = [e for e in entries if type(e) is not Dots]
    x = _cut(x, [e for e in entries if type(e) is Along or (type(e) is At and e.static)])
    computed = {e.axis: e.where for e in indexed if not e.static}
    if computed:
        sizes = tuple([1 if d in computed else n for d, n in enumerate(shape_of(x))])
        dtype = max([aval_of(i).dtype for i in computed.values()], key=lambda d: d.itemsize)
        starts = [_to_dtype(computed[d], dtype) if d in computed else as_dtype(0, dtype) for d in range(len(sizes))]
        x = slicing.dynamic_slice.primitive.bind(x, *starts, slice_sizes=sizes)
    dropped = tuple([e.axis for e in indexed])
    if not any([type(e) is New for e in entries]):
        return _squeeze(x, dimensions=dropped) if dropped else x
    shape = shape_of(x)
    if dropped:
        kept = [e for e in entries if type(e) is not At]
        return lax.reshape(x, tuple([shape[e.axis] if type(e) is Along else 1 for e in kept]))
    return lax.expand_dims(x, [i for i, e in enumerate(entries) if type(e) is New])


def is_array(entry: Entry) -> bool:
    """Whether the entry makes an index advanced, in which scalars broadcast against arrays."""
    return type(entry) is Flag or (type(entry) is At and len(np.shape(entry.where) if entry.static
                                                             else entry.where.shape) > 0)


def _to_dtype(x: Any, dtype: np.dtype) -> Any:
    return x if aval_of(x).dtype == dtype else lax.convert_element_type(x, dtype)


def _cut(x: Any, entries: Sequence[Along | At]) -> Any:
    """Apply slices, reversals and static integers; the axes of integers remain, with size 1."""
    shape = shape_of(x)
    starts, limits, steps = [0] * len(shape), list(shape), [1] * len(shape)
    backward, whole = [], True
    for e in entries:
        if type(e) is At:
            starts[e.axis], limits[e.axis], whole = e.where, e.where + 1, whole and shape[e.axis] == 1
            continue
        assert type(e) is Along
        if e.full:
            continue
        first, last = span(e)
        starts[e.axis], limits[e.axis], steps[e.axis] = first, last + 1 if e.length else first, abs(e.step)
        if e.length < 2:
            steps[e.axis] = 1
        elif e.step < 0:
            backward.append(e.axis)
        whole = whole and e.length == shape[e.axis]
    if not whole:
        strides = None if max(steps) == 1 else tuple(steps)
        x = _slice(x, start_indices=tuple(starts), limit_indices=tuple(limits), strides=strides)
    return lax.rev(x, tuple(backward)) if backward else x


def span(e: Along) -> tuple[int, int]:
    """The least and the greatest position of a slice; the least is 0 for an empty one."""
    if not e.length:
        return 0, 0
    ends = e.start, e.start + (e.length - 1) * e.step
    return min(ends), max(ends)


class Layout:
    """The result of an advanced index, axis by axis: ("index", k), ("axis", entry) or ("new", None).

    The axes of the broadcast index arrays take the arrays' place if these are next to each other; else they come first.
    """

    def __init__(self, entries: Sequence[Entry]) -> None:
        self.advanced = [e for e in entries if type(e) in (At, Flag)]
        self.shape = common_shape([index_shape(e) for e in self.advanced])
        spots = [i for i, e in enumerate(entries) if type(e) in (At, Flag)]
        together = bool(spots) and spots[-1] - spots[0] == len(spots) - 1
        before = len([e for e in entries[:spots[0]] if type(e) in (New, Along)]) if together else 0
        rest: list[tuple[str, Any]] = [("new", None) if type(e) is New else ("axis", e) for e in entries
                                       if type(e) in (New, Along)]
        index_axes: list[tuple[str, Any]] = [("index", k) for k in range(len(self.shape))]
        self.axes = [*rest[:before], *index_axes, *rest[before:]]

    def result_shape(self) -> Shape:
        """The shape of `x[index]`."""
        return tuple([1 if kind == "new" else self.shape[e] if kind == "index" else e.length for kind, e in self.axes])


def index_shape(entry: Any) -> Shape:
    """The shape of an entry's index."""
    if type(entry) is Flag:
        return (entry.length,)
    return np.shape(entry.where) if entry.static else entry.where.shape


def common_shape(shapes: Sequence[Shape]) -> Shape:
    """The shape that index arrays broadcast to."""
    found = broadcast_shape(shapes)
    if found is None:
        raise refused("indexing", "index arrays don't broadcast against each other",
                      got=" and ".join(map(str, shapes)), wanted="shapes that broadcast",
                      todo="for an outer product of indices, add axes: x[i[:, None], j]",
                      kind=CorejaxIndexError)
    return found


def _gathered(x: Any, entries: Sequence[Entry], mode: str | None, fill_value: Any, promises: dict[str, bool]) -> Any:
    layout = Layout(entries)
    indexed = [e for e in layout.advanced if type(e) is At]
    if 0 in [shape_of(x)[e.axis] for e in indexed]:
        return _of_empty_axis(x, entries, mode, fill_value)
    x = _cut(x, [e for e in entries if type(e) is Along])
    axes = [(kind, e) for kind, e in layout.axes if kind != "new"]
    offset = tuple([i for i, (kind, _) in enumerate(axes) if kind == "axis"])
    if indexed:
        indices = join([(e, tuple(range(len(layout.shape)))) for e in indexed], layout.shape)
        at = tuple([e.axis for e in indexed])
        sizes = tuple([1 if d in at else n for d, n in enumerate(shape_of(x))])
        numbers = GatherDimensionNumbers(offset, tuple(sorted(at)), at)
        known = all([e.static for e in indexed])
        x = lax.gather(x, indices, numbers, sizes, mode="promise_in_bounds" if known else mode or "clip",
                       fill_value=fill_value, **promises)
    else:
        shape = tuple([layout.shape[e] if kind == "index" else e.length for kind, e in axes])
        x = lax.broadcast_in_dim(x, shape, offset)
    new = [i for i, (kind, _) in enumerate(layout.axes) if kind == "new"]
    return lax.expand_dims(x, new) if new else x


def _of_empty_axis(x: Any, entries: Sequence[Entry], mode: str | None, fill_value: Any) -> Any:
    """A part of an array with an indexed axis that is empty: the part is empty too, or filled."""
    shape, aval = Layout(entries).result_shape(), aval_of(x)
    if 0 not in shape and mode != "fill":
        axis = next(e.axis for e in entries if type(e) is At and not aval.shape[e.axis])
        raise refused("indexing", f"axis {axis} is empty, so no index into it is in bounds",
                      got=f"an index into {aval}", wanted="an axis with elements",
                      todo='say which value to use instead: x.at[i].get(mode="fill")',
                      kind=CorejaxIndexError)
    number = fill_number(aval.dtype, fill_value) if mode == "fill" else 0
    return lax.full(shape, number, aval.dtype)


def join(parts: Sequence[tuple[Any, Shape]], shape: Shape) -> Any:
    """Indices as one array `(*shape, coordinate)`; each part broadcasts along the given axes of `shape`."""
    if all([e.static for e, _ in parts]):
        spread_out = [np.broadcast_to(_placed(np.asarray(e.where, np.int64), axes, shape), shape) for e, axes in parts]
        joined = np.stack(spread_out, -1)
        small = not joined.size or joined.max() <= np.iinfo(np.int32).max
        return joined.astype(np.int32) if small else joined
    wide = any([aval_of(e.where).dtype.itemsize > 4 for e, _ in parts if not e.static])
    dtype = np.dtype(np.int64 if wide else np.int32)
    columns = []
    for e, axes in parts:
        index = np.asarray(e.where, dtype) if e.static else _to_dtype(e.where, dtype)
        ndim = len(shape_of(index))
        kept = spread(index, tuple([shape[a] for a in axes[len(axes) - ndim:]]), "an index")
        columns.append(lax.broadcast_in_dim(kept, (*shape, 1), axes[len(axes) - ndim:]))
    return columns[0] if len(columns) == 1 else lax.concatenate(columns, len(shape))


def _placed(index: Any, axes: Shape, shape: Shape) -> Any:
    sizes = [1] * len(shape)
    for a, n in zip(axes[len(axes) - index.ndim:], index.shape, strict=True):
        sizes[a] = n
    return index.reshape(sizes)
