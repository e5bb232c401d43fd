"""`x[index]` and `x.at[index]`: every index that NumPy has, on arrays and tracers.

Static indices become slices, reversals and gathers; computed ones dynamic slices, gathers and scatters. A static index
out of bounds is an error. A computed one is clamped when read, and left out when written, as in JAX.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from corejax import lax
from corejax.core import aval_of, check_callable, here
from corejax.errors import CorejaxAttributeError, CorejaxError, CorejaxIndexError, CorejaxTypeError
from corejax.plugin import calls_users, public, registry
from corejax_lax_basic import shapes, slicing
from corejax_lax_basic._axes import Shape, dtype_kind, shape_of, wrong
from corejax_lax_basic._index_plan import Along, At, Dots, Entry, Flag, New, resolve, spread
from corejax_lax_basic.creation import as_dtype
from corejax_lax_basic.gathering import GatherDimensionNumbers, ScatterDimensionNumbers, canonical_mode

__all__: list[str] = []  # nothing of this is a function of lax: the operators use it

_slice, _squeeze = slicing.slice.primitive.bind, shapes.squeeze.primitive.bind
_ZEROS = (0,) * 64  # NumPy's greatest number of axes


def getitem(x: Any, index: Any) -> Any:
    """`x[index]`.

    >>> getitem(np.arange(12.0).reshape(3, 4), (slice(None, None, -2), [0, -1])).tolist()
    [[8.0, 11.0], [0.0, 3.0]]
    """
    shape = shape_of(x)
    if type(index) is int and shape and -shape[0] <= index < shape[0]:  # by far the most common
        first = index + shape[0] if index < 0 else index
        row = _slice(x, start_indices=(first, *_ZEROS[1:len(shape)]), limit_indices=(first + 1, *shape[1:]),
                     strides=None)
        return _squeeze(row, dimensions=(0,))
    return _read(x, resolve(shape, index), None, None)


def _read(x: Any, entries: Sequence[Entry], mode: str | None, fill_value: Any) -> Any:
    if any([_is_array(e) for e in entries]) or (mode is not None and any([type(e) is At and not e.static
                                                                          for e in entries])):
        return _read_gather(x, entries, mode, fill_value)
    entries = [e for e in entries if type(e) is not Dots]
    x = _cut(x, [e for e in entries if type(e) is Along or (type(e) is At and e.static)])
    computed = {e.axis: e.where for e in entries if type(e) is At and not e.static}
    if computed:
        sizes = tuple([1 if d in computed else n for d, n in enumerate(shape_of(x))])
        dtype = max([aval_of(i).dtype for i in computed.values()], key=lambda d: d.itemsize)
        starts = [_to_dtype(computed[d], dtype) if d in computed else as_dtype(0, dtype) for d in range(len(sizes))]
        x = slicing.dynamic_slice.primitive.bind(x, *starts, slice_sizes=sizes)
    dropped = tuple([e.axis for e in entries if type(e) is At])
    if not any([type(e) is New for e in entries]):
        return _squeeze(x, dimensions=dropped) if dropped else x
    shape = shape_of(x)
    if dropped:
        kept = [e for e in entries if type(e) is not At]
        return lax.reshape(x, tuple([shape[e.axis] if type(e) is Along else 1 for e in kept]))
    return lax.expand_dims(x, [i for i, e in enumerate(entries) if type(e) is New])


def _is_array(entry: Entry) -> bool:
    """Does it make the index an advanced one, in which scalars broadcast against arrays?"""
    return type(entry) is Flag or (type(entry) is At and len(np.shape(entry.where) if entry.static
                                                             else entry.where.shape) > 0)


def _to_dtype(x: Any, dtype: np.dtype) -> Any:
    return x if aval_of(x).dtype == dtype else lax.convert_element_type(x, dtype)


def _cut(x: Any, entries: Sequence[Along | At]) -> Any:
    """Slices, reversals and static integers, whose axes stay with size 1."""
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
        first, last = _span(e)
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


def _span(e: Along) -> tuple[int, int]:
    """The least and the greatest position of a slice; the least is 0 for an empty one."""
    if not e.length:
        return 0, 0
    ends = e.start, e.start + (e.length - 1) * e.step
    return min(ends), max(ends)


class Layout:
    """The result of an advanced index, axis by axis: ("index", k), ("axis", entry) or ("new", None).

    The axes of the broadcast index arrays stand where the arrays stood if these were next to each other, else in front.
    """

    def __init__(self, entries: Sequence[Entry]) -> None:
        self.advanced = [e for e in entries if type(e) in (At, Flag)]
        self.shape = _common_shape([_index_shape(e) for e in self.advanced])
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


def _index_shape(entry: Any) -> Shape:
    if type(entry) is Flag:
        return (entry.length,)
    return np.shape(entry.where) if entry.static else entry.where.shape


def _common_shape(shapes: Sequence[Shape]) -> Shape:
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError as error:
        raise wrong("indexing", "index arrays don't broadcast against each other",
                    got=" and ".join(map(str, shapes)), wanted="shapes that broadcast",
                    todo="for an outer product of indices, add axes: x[i[:, None], j]",
                    kind=CorejaxIndexError) from error


def _read_gather(x: Any, entries: Sequence[Entry], mode: str | None, fill_value: Any) -> Any:
    layout = Layout(entries)
    x = _cut(x, [e for e in entries if type(e) is Along])
    axes = [(kind, e) for kind, e in layout.axes if kind != "new"]
    indexed = [e for e in layout.advanced if type(e) is At]
    offset = tuple([i for i, (kind, _) in enumerate(axes) if kind == "axis"])
    if indexed:
        indices = _join([(e, tuple(range(len(layout.shape)))) for e in indexed], layout.shape)
        at = tuple([e.axis for e in indexed])
        sizes = tuple([1 if d in at else n for d, n in enumerate(shape_of(x))])
        numbers = GatherDimensionNumbers(offset, tuple(sorted(at)), at)
        known = all([e.static for e in indexed])
        x = lax.gather(x, indices, numbers, sizes, mode=mode or ("promise_in_bounds" if known else "clip"),
                       fill_value=fill_value)
    else:
        shape = tuple([layout.shape[e] if kind == "index" else e.length for kind, e in axes])
        x = lax.broadcast_in_dim(x, shape, offset)
    new = [i for i, (kind, _) in enumerate(layout.axes) if kind == "new"]
    return lax.expand_dims(x, new) if new else x


def _join(parts: Sequence[tuple[Any, Shape]], shape: Shape) -> Any:
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


@public
class Indexer:
    """`x.at`: index it to name a part, then say what the part becomes. `x` itself never changes.

    >>> Indexer(np.zeros(3))[1].set(5.0).tolist()
    [0.0, 5.0, 0.0]
    """

    __slots__ = ("_x",)

    def __init__(self, x: Any) -> None:
        self._x = x

    def __getitem__(self, index: Any) -> Part:
        return Part(self._x, index)

    def __setitem__(self, index: Any, value: Any) -> None:
        raise CorejaxTypeError("arrays are immutable: a part isn't assigned to", got="x.at[...] = value",
                               wanted="x.at[...].set(value)", where=here(),
                               todo="write x = x.at[...].set(value): it returns the changed array")

    def __getattr__(self, name: str) -> Any:
        do = name if name in _UPDATES else "set"
        raise _no_attribute("x.at", name, _UPDATES, f"name the part first: x.at[index].{do}(...)")

    def __repr__(self) -> str:
        return f"<at of {aval_of(self._x)}: index it, as in x.at[i].set(v)>"


@public
class Part:
    """A part of an array: each method gives the array with that part changed.

    Values broadcast to the part and take the array's dtype. `mode` treats computed indices out of bounds: by default
    they are clamped when read and left out when written; "clip", "fill" (or "drop") and "promise_in_bounds" say
    otherwise.
    """

    __slots__ = ("_x", "_entries")

    def __init__(self, x: Any, index: Any) -> None:
        self._x = x
        self._entries = resolve(shape_of(x), index)

    def get(self, *, indices_are_sorted: bool = False, unique_indices: bool = False, mode: str | None = None,
            fill_value: Any = None) -> Any:
        """The part itself."""
        if mode is not None:
            canonical_mode("x.at[...]", mode)
        return _read(self._x, self._entries, mode, fill_value)

    def set(self, values: Any, **options: Any) -> Any:
        """The array with the part replaced."""
        return self._write(lax.scatter, None, values, options)

    def add(self, values: Any, **options: Any) -> Any:
        """The array with values added to the part; a place that is indexed twice gets both."""
        return self._write(lax.scatter_add, lax.add, values, options)

    def subtract(self, values: Any, **options: Any) -> Any:
        """The array with values subtracted from the part."""
        return self.add(lax.neg(_fitting(values, self._x)), **options)

    def multiply(self, values: Any, **options: Any) -> Any:
        """The array with the part multiplied by values."""
        return self._write(lax.scatter_mul, lax.mul, values, options)

    def divide(self, values: Any, **options: Any) -> Any:
        """The array with the part divided by values."""
        ones = lax.full_like(self._x, 1)
        return lax.div(self._x, Part.of(ones, self._entries).multiply(values, **options))

    def power(self, values: Any, **options: Any) -> Any:
        """The array with the part raised to values."""
        ones = lax.full_like(self._x, 1)
        return lax.pow(self._x, Part.of(ones, self._entries).multiply(values, **options))

    def min(self, values: Any, **options: Any) -> Any:
        """The array with the lesser of the part and values."""
        return self._write(lax.scatter_min, lax.min, values, options)

    def max(self, values: Any, **options: Any) -> Any:
        """The array with the greater of the part and values."""
        return self._write(lax.scatter_max, lax.max, values, options)

    @calls_users
    def apply(self, function: Callable[[Any], Any], **options: Any) -> Any:
        """The array with an elementwise function applied to the part, once for each place."""
        check_callable(function, "x.at[...].apply")
        return self.set(function(self.get()), **options)

    mul = multiply

    @classmethod
    def of(cls, x: Any, entries: Sequence[Entry]) -> Part:
        """The part of another array of the same shape."""
        part: Part = object.__new__(cls)
        part._x, part._entries = x, list(entries)
        return part

    def __getattr__(self, name: str) -> Any:
        raise _no_attribute("x.at[...]", name, _UPDATES, registry.suggestion(name, _UPDATES) or "use one of them")

    def __repr__(self) -> str:
        return f"<part of {aval_of(self._x)}: .get(), .set(v), .add(v), ...>"

    def _write(self, scatter: Any, combine: Any, values: Any, options: dict[str, Any]) -> Any:
        """`scatter` where places may repeat; else read, `combine` and replace."""
        x, entries = self._x, self._entries
        _check_options(options)
        values = _fitting(values, x)
        computed = any([_is_array(e) or (type(e) is At and not e.static) for e in entries])
        repeated = combine is not None and any([_is_array(e) for e in entries]) and not _distinct(x, entries)
        if repeated and not options.get("unique_indices"):
            return _scatter(scatter, x, entries, values, options, unique=False)
        if combine is not None:
            part = _read(x, entries, None, None)
            values = combine(part, spread(values, shape_of(part), "the value"))
        if not computed:
            return _replace(x, entries, values)
        return _scatter(lax.scatter, x, entries, values, options, unique=_distinct(x, entries))


#: What can be done with a part.
_UPDATES = tuple([name for name, value in vars(Part).items() if callable(value) and not name.startswith("_")])
_OPTIONS = ("indices_are_sorted", "unique_indices", "mode")


def _no_attribute(of: str, name: str, names: Sequence[str], todo: str) -> CorejaxError:
    return CorejaxAttributeError(f"{of} has no {name!r}", got=name, wanted=f"one of: {', '.join(names)}", where=here(),
                                 todo=todo)


def _check_options(options: dict[str, Any]) -> None:
    for name in options:
        if name not in _OPTIONS:
            raise CorejaxTypeError(f"x.at[...] has no option {name!r}", got=name, where=here(),
                                   wanted=f"one of: {', '.join(_OPTIONS)}",
                                   todo=registry.suggestion(name, _OPTIONS) or "leave it out")
    if options.get("mode") is not None:
        canonical_mode("x.at[...]", options["mode"])


def at(x: Any) -> Indexer:
    """`x.at`."""
    return Indexer(x)


at.is_property = True  # type: ignore[attr-defined]


_KINDS = {"b": 0, "i": 1, "u": 1, "f": 2, "c": 3}


def _fitting(values: Any, x: Any) -> Any:
    """The values in the array's dtype; an error where that would lose their kind."""
    have, want = aval_of(values), aval_of(x)
    if _KINDS[dtype_kind(have.dtype)] > _KINDS[dtype_kind(want.dtype)]:
        raise wrong("indexing", f"{have} can't be put into {want} without losing its kind", got=str(have),
                    wanted=str(want.dtype), todo="convert one of them with .astype(...)")
    if have.dtype == want.dtype and (want.weak_type or not have.weak_type):
        return values
    return as_dtype(values, want.dtype)


def _distinct(x: Any, entries: Sequence[Entry]) -> bool:
    """Is each place indexed at most once, as far as is known now?"""
    arrays = [e for e in entries if _is_array(e) and type(e) is At]
    if not arrays:
        return True
    indexed = [e for e in entries if type(e) is At]
    if not all([e.static for e in indexed]):
        return False
    sizes = shape_of(x)
    common = _common_shape([_index_shape(e) for e in indexed])
    places = [np.broadcast_to(e.where, common) for e in indexed]
    flat = np.ravel_multi_index([p.ravel() for p in places], [sizes[e.axis] for e in indexed])
    return len(np.unique(flat)) == flat.size


def _replace(x: Any, entries: Sequence[Entry], values: Any) -> Any:
    """Write to slices and static integers: one update of a window if it has no gaps, else a selection."""
    shape = shape_of(x)
    sliced: list[Along | At] = [e for e in entries if isinstance(e, (Along, At))]
    part = tuple([e.length if type(e) is Along else 1 for e in entries if type(e) in (New, Along)])
    sizes = tuple([e.length if type(e) is Along else 1 for e in sliced])
    values = spread(values, part, "the value")
    if sizes != part:
        values = lax.reshape(values, sizes)
    backward = tuple([e.axis for e in sliced if type(e) is Along and e.step < 0 and e.length > 1])
    if backward:
        values = lax.rev(values, backward)
    if sizes == shape:
        return lax.copy(values)
    starts = [e.where if isinstance(e, At) else _span(e)[0] for e in sliced]
    steps = [abs(e.step) if type(e) is Along and e.length > 1 else 1 for e in sliced]
    if all([step == 1 for step in steps]):
        dtype = np.dtype(np.int32 if max(shape) <= np.iinfo(np.int32).max else np.int64)
        return lax.dynamic_update_slice(x, values, [as_dtype(s, dtype) for s in starts], allow_negative_indices=False)
    if not all(sizes):
        return x
    config = [(start, n - start - 1 - (count - 1) * step, step - 1)
              for n, start, count, step in zip(shape, starts, sizes, steps, strict=True)]
    inside = lax.pad(lax.full(sizes, True), False, config)
    return lax.select_n(inside, x, lax.pad(values, as_dtype(0, aval_of(values).dtype), config))


def _scatter(scatter: Any, x: Any, entries: Sequence[Entry], values: Any, options: dict[str, Any], *,
             unique: bool) -> Any:
    layout = Layout(entries)
    values = spread(values, layout.result_shape(), "the value")
    axes = [(kind, e) for kind, e in layout.axes if kind != "new"]
    if len(axes) != len(layout.axes):
        values = lax.reshape(values, tuple([layout.shape[e] if kind == "index" else e.length for kind, e in axes]))
    window = tuple([i for i, (kind, e) in enumerate(axes) if kind == "axis" and e.full])
    places = [(kind, e) for kind, e in axes if not (kind == "axis" and e.full)]
    shape = tuple([layout.shape[e] if kind == "index" else e.length for kind, e in places])
    index_axes = tuple([i for i, (kind, _) in enumerate(places) if kind == "index"])
    parts: list[tuple[Any, Shape]] = [(e, index_axes) for e in layout.advanced if type(e) is At]
    for i, (kind, e) in enumerate(places):
        if kind == "axis":  # a slice with gaps or bounds: its positions, as one more index
            parts.append((At(e.axis, e.start + e.step * np.arange(e.length), True), (i,)))
    at = tuple([e.axis for e, _ in parts])
    if not at:  # boolean scalars alone: all of the array, or nothing
        sliced = [e for e in entries if type(e) is Along]
        if not all(layout.shape):
            return x
        return _replace(x, sliced, lax.reshape(values, tuple([e.length for e in sliced])))
    numbers = ScatterDimensionNumbers(window, tuple(sorted(at)), at)
    known = all([e.static for e, _ in parts])
    return scatter(x, _join(parts, shape), values, numbers, mode="promise_in_bounds" if known else options.get("mode"),
                   unique_indices=unique or bool(options.get("unique_indices")),
                   indices_are_sorted=bool(options.get("indices_are_sorted")))
