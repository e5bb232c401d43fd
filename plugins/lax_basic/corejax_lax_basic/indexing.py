"""`x[index]` and `x.at[index]`: all kinds of NumPy indexing, on arrays and tracers.

Static indices become slices, reversals and gathers; computed ones dynamic slices, gathers and scatters. A static index
out of bounds is an error. A computed one is clamped when reading, and skipped when writing, as in JAX. A `mode` applies
to both.
"""

# mypy: no-warn-return-any
# A primitive may have several results, so what `define` returns gives Any; those of `x.at` are arrays.

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.exceptions import ComplexWarning

from corejax import lax
from corejax.core import (
    Array,
    ArrayLike,
    ShapedArray,
    aval_of,
    check_callable,
    dtypes,
    from_array_like,
    here,
    is_concrete,
    warn,
)
from corejax.errors import CorejaxAttributeError, CorejaxError, CorejaxTypeError, suggestion
from corejax.plugin import calls_users, public, refused, roles, shaping
from corejax_lax_basic import _in_memory
from corejax_lax_basic._axes import Shape, dtype_kind, shape_of
from corejax_lax_basic._index_plan import Along, At, Bounds, Entry, New, resolve, spread
from corejax_lax_basic._placing import ScatterDimensionNumbers, canonical_mode
from corejax_lax_basic._reading import Layout, common_shape, getitem as getitem, index_shape, is_array, join, read, span
from corejax_lax_basic.creation import as_dtype, zero

__all__: list[str] = []  # these aren't functions of lax: the operators use them


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
        raise CorejaxTypeError("arrays are immutable: a part of one can't be assigned to", got="x.at[...] = value",
                               wanted="x.at[...].set(value)", where=here(),
                               todo="write x = x.at[...].set(value): it returns the changed array")

    if not TYPE_CHECKING:  # to type checkers, every name would be there
        def __getattr__(self, name: str) -> Any:
            do = name if name in _UPDATES else "set"
            raise _no_attribute("x.at", name, _UPDATES, f"name the part first: x.at[index].{do}(...)")

    def __repr__(self) -> str:
        return f"<at of {aval_of(self._x)}: index it, as in x.at[i].set(v)>"


@public
class Part:
    """A part of an array: each method gives the array with that part changed.

    Values broadcast to the part. What comes out is converted to the array's dtype. Without a `mode`, computed indices
    out of bounds are clamped when reading and skipped when writing, and static ones are errors. A mode applies to both:
    "clip" takes the nearest place, "fill" (or "drop") reads `fill_value` and writes nothing, and "promise_in_bounds"
    says that there are none. With `wrap_negative_indices=False`, negative indices are out of bounds.
    """

    __slots__ = ("_x", "_index")

    def __init__(self, x: Any, index: Any) -> None:
        self._x = x
        self._index = index

    def get(self, *, fill_value: ArrayLike | None = None, **options: Any) -> Array:
        """The part itself. `fill_value` is used for places out of bounds: by default NaN, or the dtype's extreme."""
        if not options and fill_value is None:
            return getitem(self._x, self._index)
        _check_options(options)
        bounds = _bounds(options)
        promises = {name: options.get(name, False) for name in ("indices_are_sorted", "unique_indices")}
        return read(self._x, resolve(shape_of(self._x), self._index, bounds), bounds.mode, fill_value, promises)

    def set(self, values: ArrayLike, **options: Any) -> Array:
        """The array with the part replaced."""
        return self._write(lax.scatter, None, values, options)

    def add(self, values: ArrayLike, **options: Any) -> Array:
        """The array with values added to the part; a place that is indexed twice gets both."""
        return self._write(lax.scatter_add, lax.add, values, options)

    def subtract(self, values: ArrayLike, **options: Any) -> Array:
        """The array with values subtracted from the part."""
        values = _unlisted(values)
        wide = _common(aval_of(values), aval_of(self._x))
        return self.add(lax.neg(_fitting(values, self._x) if wide is None else as_dtype(values, wide)), **options)

    def multiply(self, values: ArrayLike, **options: Any) -> Array:
        """The array with the part multiplied by values."""
        return self._write(lax.scatter_mul, lax.mul, values, options)

    def divide(self, values: ArrayLike, **options: Any) -> Array:
        """The array with the part divided by values; floats, if the elements were integers."""
        aval, divisor = aval_of(self._x), self._ones().multiply(values, **options)
        dtype = dtypes.inexact(aval.dtype, aval.weak_type)
        return lax.div(as_dtype(self._x, dtype), as_dtype(divisor, dtype))

    def power(self, values: ArrayLike, **options: Any) -> Array:
        """The array with the part raised to values."""
        return lax.pow(self._x, self._ones().multiply(values, **options))

    def min(self, values: ArrayLike, **options: Any) -> Array:
        """The array with the part replaced by the lesser of part and values."""
        return self._write(lax.scatter_min, lax.min, values, options)

    def max(self, values: ArrayLike, **options: Any) -> Array:
        """The array with the part replaced by the greater of part and values."""
        return self._write(lax.scatter_max, lax.max, values, options)

    @calls_users
    def apply(self, function: Callable[[Array], ArrayLike], **options: Any) -> Array:
        """The array with an elementwise function applied to the part; twice at a place that is indexed twice.

        There is no reverse mode if computed indices may repeat a place; `unique_indices=True` says that they don't.
        """
        check_callable(function, "x.at[...].apply")
        _check_options(options)
        bounds = _bounds(options)
        entries = resolve(shape_of(self._x), self._index, bounds)
        once = self.set(function(self._before(entries, bounds)), **options)
        if options.get("unique_indices") or 0 in shape_of(self._x) or _distinct(self._x, entries):
            return once
        named = Part(lax.full(shape_of(self._x), 0, np.int64), self._index).add(1, **options)
        counts = Part(named, self._index)._before(entries, bounds)

        def again(times: Any, x: Any) -> Any:
            """Apply the function once more, at the places that were indexed more than `times` times."""
            part = Part(x, self._index)
            before = part._before(entries, bounds)
            return part.set(lax.select(counts > times, function(before), before), **options)

        if not is_concrete(named):
            return roles.while_loop(lambda state: state[0] < named.max(), lambda state: (
                state[0] + 1, again(*state)), (1, once))[1]
        for times in range(1, int(np.asarray(named).max())):
            once = again(times, once)
        return once

    mul = multiply

    def _before(self, entries: Sequence[Entry], bounds: Bounds) -> Any:
        """The part before it is written; for skipped elements, any element that isn't NaN."""
        return read(self._x, entries, "clip" if bounds.mode == "fill" and 0 not in shape_of(self._x) else bounds.mode)

    def _ones(self) -> Part:
        """The same part of an array of ones."""
        return Part(lax.full_like(self._x, 1), self._index)

    if not TYPE_CHECKING:  # to type checkers, every name would be there
        def __getattr__(self, name: str) -> Any:
            raise _no_attribute("x.at[...]", name, _UPDATES, suggestion(name, _UPDATES) or "use one of them")

    def __repr__(self) -> str:
        return f"<part of {aval_of(self._x)}: .get(), .set(v), .add(v), ...>"

    def _write(self, scatter: Any, combine: Any, values: Any, options: dict[str, Any]) -> Any:
        """Write with a scatter for sums and products, and for extremes if places may repeat; else read and replace."""
        x, of_numbers = self._x, (scatter, combine)
        if combine in (lax.add, lax.mul) and aval_of(x).dtype == dtypes.bool_:  # of truth values: or, and
            scatter, combine = (lax.scatter_max, lax.max) if combine is lax.add else (lax.scatter_min, lax.min)
        out = None if options else _in_memory.changed(x, self._index, values, combine)
        if out is not None:
            return out
        if combine is not None:
            values = _unlisted(values)
            aval = aval_of(x)
            wide = _common(aval_of(values), aval)
            if wide is not None and wide != aval.dtype:  # combined in the dtype that both fit, and then converted
                _warn_of_loss(aval_of(values), aval)
                return as_dtype(Part(as_dtype(x, wide), self._index)._write(*of_numbers, values, options), aval.dtype)
        _check_options(options)
        bounds = _bounds(options)
        entries, values = resolve(shape_of(x), self._index, bounds), _fitting(values, x)
        if 0 in shape_of(x):
            spread(values, Layout(entries).result_shape(), "the value")
            return x
        sums = combine in (lax.add, lax.mul)
        arrays = [e for e in entries if is_array(e)]
        if sums and _is_window(entries):
            return _into_window(scatter, x, entries, values, bounds)
        unique = _distinct(x, entries)
        repeated = not (unique or options.get("unique_indices"))
        if combine is not None and (repeated or (sums and At in map(type, arrays))):
            return _scatter(scatter, x, entries, values, options, unique=unique)
        if combine is not None:
            part = self._before(entries, bounds)
            values = combine(part, spread(values, shape_of(part), "the value"))
        if arrays or not all([e.static for e in entries if type(e) is At]):
            return _scatter(lax.scatter, x, entries, values, options, unique=unique)
        return _replace(x, entries, values)


#: What can be done with a part.
_UPDATES = tuple([name for name, value in vars(Part).items() if callable(value) and not name.startswith("_")])
_OPTIONS = ("indices_are_sorted", "unique_indices", "mode", "wrap_negative_indices")


def _no_attribute(of: str, name: str, names: Sequence[str], todo: str) -> CorejaxError:
    return CorejaxAttributeError(f"{of} has no {name!r}", got=name, wanted=f"one of: {', '.join(names)}", where=here(),
                                 todo=todo)


def _check_options(options: dict[str, Any]) -> None:
    """Raise for options that don't exist, and make bools of flags."""
    for name in options:
        if name not in _OPTIONS:
            raise CorejaxTypeError(f"x.at[...] has no option {name!r}", got=name, where=here(),
                                   wanted=f"one of: {', '.join(_OPTIONS)}",
                                   todo=suggestion(name, _OPTIONS) or "leave it out")
        if name != "mode":
            options[name] = shaping.as_flag("x.at[...]", name, options[name])


def _bounds(options: dict[str, Any]) -> Bounds:
    mode = options.get("mode")
    return Bounds(None if mode is None else canonical_mode("x.at[...]", mode),
                  options.get("wrap_negative_indices", True))


def at(x: Array) -> Indexer:
    """`x.at`."""
    return Indexer(x)


at.is_property = True  # type: ignore[attr-defined]


def _unlisted(values: Any) -> Any:
    """An array in place of a list or tuple."""
    return from_array_like(values) if isinstance(values, (list, tuple)) else values


def _fitting(values: Any, x: Any) -> Any:
    """The values in the array's dtype, with a warning if it can't hold all of theirs."""
    values = _unlisted(values)
    have, want = aval_of(values), aval_of(x)
    if have.dtype == want.dtype and (want.weak_type or not have.weak_type):
        return values
    if "E" in (dtype_kind(have.dtype), dtype_kind(want.dtype)):
        raise refused("indexing", f"{have} can't be stored in {want}", got=str(have),
                      wanted=dtypes.long_name(want.dtype), todo="use functions of the pack that brings the elements")
    if _common(have, want) != want.dtype:
        _warn_of_loss(have, want)
    return as_dtype(values, want.dtype)


def _warn_of_loss(have: ShapedArray, want: ShapedArray) -> None:
    name = dtypes.long_name(want.dtype)
    warn(f"x.at[...]: values of type {have} are converted to {name}, which can't hold all of them. This will be"
         f" an error: convert them first, with .astype({name!r})", FutureWarning)
    if dtypes.is_complex(have.dtype) and not dtypes.is_complex(want.dtype):
        warn("x.at[...]: the imaginary part of complex values is lost in an array of real numbers", ComplexWarning)


@lru_cache(maxsize=1024)
def _common(have: ShapedArray, want: ShapedArray) -> np.dtype | None:
    """The dtype that values of both types have in common; None if they have none, as small floats of two formats."""
    if "E" in (dtype_kind(have.dtype), dtype_kind(want.dtype)):
        return None
    try:
        return dtypes.promote((want.dtype, want.weak_type), (have.dtype, have.weak_type))[0]
    except CorejaxTypeError:
        return None


def _distinct(x: Any, entries: Sequence[Entry]) -> bool:
    """Whether each place is known to be indexed at most once."""
    arrays = [e for e in entries if is_array(e) and type(e) is At]
    if not arrays:
        return True
    indexed = [e for e in entries if type(e) is At]
    if not all([e.static for e in indexed]):
        return False
    sizes = shape_of(x)
    common = common_shape([index_shape(e) for e in indexed])
    places = [np.broadcast_to(e.where, common) for e in indexed]
    flat = np.ravel_multi_index([p.ravel() for p in places], [sizes[e.axis] for e in indexed])
    return len(np.unique(flat)) == flat.size


def _replace(x: Any, entries: Sequence[Entry], values: Any) -> Any:
    """Write to slices and static integers: an update of a window if there are no gaps, else a selection."""
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
    starts = [e.where if isinstance(e, At) else span(e)[0] for e in sliced]
    steps = [abs(e.step) if type(e) is Along and e.length > 1 else 1 for e in sliced]
    if all([step == 1 for step in steps]):
        dtype = np.dtype(np.int32 if max(shape) <= np.iinfo(np.int32).max else np.int64)
        return lax.dynamic_update_slice(x, values, [as_dtype(s, dtype) for s in starts], allow_negative_indices=False)
    if not all(sizes):
        return x
    config = [(start, n - start - 1 - (count - 1) * step, step - 1)
              for n, start, count, step in zip(shape, starts, sizes, steps, strict=True)]
    inside = lax.pad(lax.full(sizes, True), False, config)
    return lax.select_n(inside, x, lax.pad(values, zero(aval_of(values).dtype), config))


def _is_window(entries: Sequence[Entry]) -> bool:
    """Whether they name a part without gaps, but not the whole array."""
    return (not any([is_array(e) or (type(e) is Along and e.step != 1 and e.length > 1) for e in entries])
            and any([type(e) is At or (type(e) is Along and not e.full) for e in entries]))


def _into_window(scatter: Any, x: Any, entries: Sequence[Entry], values: Any, bounds: Bounds) -> Any:
    """Scatter to a part without gaps: a window that starts at static or computed integers."""
    part = tuple([e.length if type(e) is Along else 1 for e in entries if type(e) in (New, Along)])
    sizes = tuple([e.length for e in entries if type(e) is Along])
    values = spread(values, part, "the value")
    if sizes != part:
        values = lax.reshape(values, sizes)
    starts = [At(e.axis, span(e)[0], True) if isinstance(e, Along) else e for e in entries
              if isinstance(e, At) or (isinstance(e, Along) and not e.full)]
    inserted = tuple([e.axis for e in entries if type(e) is At])
    numbers = ScatterDimensionNumbers(tuple(range(len(sizes))), inserted, tuple([e.axis for e in starts]))
    known = all([e.static for e in starts])
    small = max(shape_of(x)) <= np.iinfo(np.int32).max
    where = (np.array([e.where for e in starts], np.int32 if small else np.int64) if known
             else join([(e, ()) for e in starts], ()))
    return scatter(x, where, values, numbers, unique_indices=True,
                   mode="promise_in_bounds" if known else bounds.mode)


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
        if kind == "axis":  # a slice with gaps or bounds: its positions become another index
            parts.append((At(e.axis, e.start + e.step * np.arange(e.length), True), (i,)))
    at = tuple([e.axis for e, _ in parts])
    if not at:  # only boolean scalars: the whole array, or nothing
        sliced = [e for e in entries if type(e) is Along]
        if not all(layout.shape):
            return x
        return _replace(x, sliced, lax.reshape(values, tuple([e.length for e in sliced])))
    numbers = ScatterDimensionNumbers(window, tuple(sorted(at)), at)
    known = all([e.static for e, _ in parts])
    # the user's promise is about the user's indices, not about positions of slices
    in_order = options.get("indices_are_sorted", False) and len(parts) == len(layout.advanced)
    return scatter(x, join(parts, shape), values, numbers, mode="promise_in_bounds" if known else options.get("mode"),
                   unique_indices=unique or options.get("unique_indices", False), indices_are_sorted=in_order)
