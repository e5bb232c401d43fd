"""Forms of inputs: the shapes, dtypes and params of a primitive's samples, and variations that it accepts as well.

A form is changed step by step. Each step proposes what could follow from the change elsewhere, such as another size in
all operands that have it and in a shape among the params; the first proposal that `abstract_eval` accepts is taken, and
without any the form stays as it was. So each form is valid, however primitives relate their operands and params.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import ml_dtypes
import numpy as np

from corejax.base import dtypes, elements
from corejax.base.avals import ShapedArray, aval_of
from corejax.kernel.declarations import Sample
from corejax.kernel.jaxpr import subjaxprs
from corejax.kernel.primitive import Primitive

#: A source of choices: `choose(n)` is a number from 0 to n - 1. The smaller, the simpler is what it leads to.
Choose: TypeAlias = Callable[[int], int]
Shape: TypeAlias = tuple[int, ...]

#: How many elements all operands and results of a form may have together.
_MOST_ELEMENTS = 3000

#: The largest size of an axis, as a rule, now and then, and seldom.
_SIZES = (5, 10, 131)

#: How many sizes are drawn for a form, and among how many places for one that changes alone: always as many, so that
#: what is chosen later doesn't change its meaning while a failing case is made smaller.
_DRAWN_SIZES, _PLACES = 4, 12

#: How many proposals are made for one change.
_MOST_PROPOSALS = 200

#: How many values of a param are tried.
_MOST_VALUES = 40

#: The dtypes to which those of a kind may change, the simplest first.
_OF_KIND: dict[str, tuple[np.dtype, ...]] = {
    "f": (dtypes.float64, dtypes.float32, dtypes.bfloat16, np.dtype(np.float16)),
    "c": (dtypes.complex128, dtypes.complex64),
    "i": tuple([np.dtype(f"int{n}") for n in (64, 32, 16, 8)]), "u": tuple([np.dtype(f"uint{n}") for n in (64, 8)])}

#: Python's number types, by corresponding dtype.
_SCALARS: dict[np.dtype, type] = {
    dtypes.bool_: bool, dtypes.int64: int, dtypes.float64: float, dtypes.complex128: complex}


@dataclass(frozen=True)
class Form:
    """The types of operands, which of these are Python numbers, and the params. `number` is the sample it came from."""

    number: int
    shapes: tuple[Shape, ...]
    dtypes: tuple[np.dtype, ...]
    scalars: tuple[bool, ...]
    params: Mapping[str, Any]

    @property
    def avals(self) -> tuple[ShapedArray, ...]:
        """The types of the operands."""
        return tuple([ShapedArray(shape, dtype, scalar) for shape, dtype, scalar in
                      zip(self.shapes, self.dtypes, self.scalars, strict=True)])


class Forms:
    """The forms that a primitive accepts, as far as its samples lead to them."""

    def __init__(self, primitive: Primitive, samples: Sequence[Sample]) -> None:
        self.primitive = primitive
        found = [form_of(number, sample) for number, sample in enumerate(samples) if sample.error is None]
        self.templates = sorted(found, key=_complexity)
        self.values = {name: _values_of([form.params[name] for form in found if name in form.params])
                       for name in sorted(primitive.params)}

    def draw(self, choose: Choose) -> Form:
        """A form, whose simplicity follows that of the choices."""
        form = self.templates[choose(len(self.templates))]
        if not all([_is_plain(value) or any(True for _ in subjaxprs({"": value})) for value in form.params.values()]):
            return form  # a function, say, which may take such operands only
        form = self._with_axes(form, choose)
        form = self._with_sizes(form, choose)
        form = self._with_params(form, choose)
        form = self._with_dtypes(form, choose)
        return self._with_scalars(form, choose)

    def accepts(self, form: Form) -> bool:
        """Whether `abstract_eval` takes this, and neither it nor the results are too large."""
        if sum([math.prod(shape) for shape in form.shapes]) > _MOST_ELEMENTS:
            return False
        try:
            outs = self.primitive.infer(form.avals, dict(form.params))
        except Exception:  # also those that aren't refusals: a check of its own looks for these
            return False
        found = outs if self.primitive.multiple_results else [outs]
        return bool(sum([aval.size for aval in found]) <= _MOST_ELEMENTS)

    def _first(self, form: Form, proposals: Iterable[Form]) -> Form:
        return next((each for each in itertools.islice(proposals, _MOST_PROPOSALS) if self.accepts(each)), form)

    # Axes

    def _with_axes(self, form: Form, choose: Choose) -> Form:
        """With some axes of the operands of highest rank removed, and others added."""
        kept, more, added = choose(4), choose(4), [(choose(4), choose(3)) for _ in range(3)]
        while _rank(form) > kept:
            dropped = self._first(form, (each for axis in reversed(range(_rank(form)))
                                         for each in _without_axis(form, axis)))
            if dropped is form:
                break
            form = dropped
        for axis, size in added[:more] if form.shapes else ():
            form = self._first(form, _with_axis(form, min(axis, _rank(form)), size))
        return form

    # Sizes

    def _with_sizes(self, form: Form, choose: Choose) -> Form:
        """With other sizes: each replaced everywhere, and sometimes in one place alone."""
        drawn = [_size(choose) for _ in range(_DRAWN_SIZES)]
        sizes = sorted({size for shape in form.shapes for size in shape})
        renamed = {size: drawn[k % len(drawn)] for k, size in enumerate(sizes)}
        everywhere = self._first(form, _resized(form, renamed))
        if everywhere is form:
            for size in sizes:
                form = self._first(form, _resized(form, {size: renamed[size]}))
        else:
            form = everywhere
        alone, place, size = choose(4), choose(_PLACES), drawn[-1]
        places = [(i, axis) for i, shape in enumerate(form.shapes) for axis in range(len(shape))]
        if places and alone == 3:
            i, axis = places[place % len(places)]
            form = self._first(form, [_with_shapes(form, {i: _replaced(form.shapes[i], axis, size)}),
                                      _with_shapes(form, {i: ()})])
        return form

    # Params

    def _with_params(self, form: Form, choose: Choose) -> Form:
        """With other values of params: the simplest of those of all samples and their neighbours, or any."""
        for name, values in self.values.items():
            own, choice = choose(2), choose(len(values)) if values else 0
            if values and name in form.params and not own:
                form = self._first(form, [replace(form, params={**form.params, name: values[choice]})])
        return form

    # Types

    def _with_dtypes(self, form: Form, choose: Choose) -> Form:
        """With other dtypes of the same kinds, equal ones alike."""
        for dtype in dict.fromkeys(form.dtypes):
            choices = _OF_KIND.get(dtypes.kind(dtype), ()) if elements.find(dtype) is None else ()
            if choices:
                new = choices[choose(len(choices))]
                found = tuple([new if each == dtype else each for each in form.dtypes])
                scalars = tuple([flag and each in _SCALARS for flag, each in zip(form.scalars, found, strict=True)])
                form = self._first(form, [replace(form, dtypes=found, scalars=scalars)])
        return form

    def _with_scalars(self, form: Form, choose: Choose) -> Form:
        """With Python numbers for some operands of rank 0."""
        for i, (shape, dtype) in enumerate(zip(form.shapes, form.dtypes, strict=True)):
            is_scalar = choose(4) == 3
            if not shape and dtype in _SCALARS:
                form = self._first(form, [replace(form, scalars=_replaced(form.scalars, i, is_scalar))])
        return form


def form_of(number: int, sample: Sample) -> Form:
    """The form of a sample."""
    avals = [aval_of(x) for x in sample.args]
    return Form(number, tuple([aval.shape for aval in avals]), tuple([aval.dtype for aval in avals]),
                tuple([type(x) in dtypes.PYTHON_SCALARS for x in sample.args]), dict(sample.params))


def carries_programs(form: Form) -> bool:
    """Whether there are programs among its params."""
    return any([True for _ in subjaxprs(dict(form.params))])


def as_scalar(x: np.ndarray) -> Any:
    """An array of rank 0 as a Python number."""
    return _SCALARS[x.dtype](x[()])


def _complexity(form: Form) -> tuple[Any, ...]:
    """The key by which the simplest form comes first: few operands, axes and elements, doubles."""
    return (len(form.shapes), sum([len(shape) for shape in form.shapes]),
            sum([math.prod(shape) for shape in form.shapes]), form.dtypes.count(dtypes.float64) < len(form.dtypes),
            [_simplicity(value) for value in form.params.values()], form.number)


def _rank(form: Form) -> int:
    return max([len(shape) for shape in form.shapes], default=0)


def _size(choose: Choose) -> int:
    return choose(_SIZES[(0, 0, 0, 0, 0, 1, 1, 2)[choose(8)]] + 1)


def _replaced(items: tuple[Any, ...], place: int, new: object) -> tuple[Any, ...]:
    return (*items[:place], new, *items[place + 1:])


def _with_shapes(form: Form, shapes: Mapping[int, Shape]) -> Form:
    return replace(form, shapes=tuple([shapes.get(i, shape) for i, shape in enumerate(form.shapes)]),
                   scalars=tuple([scalar and not shapes.get(i) for i, scalar in enumerate(form.scalars)]))


# Proposals of what follows from another shape

def _resized(form: Form, sizes: Mapping[int, int]) -> Iterator[Form]:
    """With sizes replaced in all operands, and in the params in one of several ways."""
    new = _with_shapes(form, {i: tuple([sizes[size] if size in sizes else size for size in shape])
                              for i, shape in enumerate(form.shapes)})
    totals = {math.prod(old): math.prod(shape) for old, shape in zip(form.shapes, new.shapes, strict=True)}
    largest = max([size for shape in new.shapes for size in shape], default=0)

    def renamed(value: int) -> int:
        return sizes.get(value, value)

    def of_totals(value: Any) -> Iterator[Any]:
        if _is_shape(value) and value and math.prod(value) in totals:
            yield (totals[math.prod(value)], *[1] * (len(value) - 1))

    ways = [lambda value: [_leaves(renamed, value)], _as_it_is,
            lambda value: [_leaves(lambda leaf: min(leaf, largest), value)], of_totals]
    yield from _with_each_param(new, ways)


def _with_axis(form: Form, axis: int, size: int) -> Iterator[Form]:
    """With another axis in all operands of the highest rank, or in all that have axes, or in all."""
    rank = _rank(form)
    for least in dict.fromkeys((rank, 1, 0)):
        shapes = {i: (*shape[:axis], size, *shape[axis:]) for i, shape in enumerate(form.shapes) if len(shape) >= least}

        def longer(value: Any) -> Iterator[Any]:
            if isinstance(value, tuple) and len(value) == rank and _is_flat(value):
                for new in dict.fromkeys((size, 0, rank, axis, *value[:1])):
                    yield (*value[:axis], new, *value[axis:])
                yield tuple([leaf + (leaf >= axis) for leaf in (*value[:axis], axis - 1, *value[axis:])])
            elif isinstance(value, tuple) and len(value) == rank:
                yield (*value[:axis], value[0] if value else (0, 0, 0), *value[axis:])

        def moved(value: Any) -> Iterator[Any]:
            yield _leaves(lambda leaf: leaf + (leaf >= axis), value)

        yield from _with_each_param(_with_shapes(form, shapes), [_as_it_is, longer, moved])


def _without_axis(form: Form, axis: int) -> Iterator[Form]:
    """Without this axis in all operands of the highest rank, or in all that have it."""
    rank = _rank(form)
    for least in dict.fromkeys((rank, axis + 1)):
        shapes = {i: (*shape[:axis], *shape[axis + 1:]) for i, shape in enumerate(form.shapes) if len(shape) >= least}

        def shorter(value: Any) -> Iterator[Any]:
            if isinstance(value, tuple) and len(value) == rank:
                rest = (*value[:axis], *value[axis + 1:])
                yield rest
                if _is_flat(value):
                    yield tuple([leaf - (leaf > value[axis]) for leaf in rest])

        def moved(value: Any) -> Iterator[Any]:
            yield _leaves(lambda leaf: leaf - (leaf > axis), value)
            if _is_flat(value):
                yield tuple([leaf - (leaf > axis) for leaf in value if leaf != axis])

        yield from _with_each_param(_with_shapes(form, shapes), [_as_it_is, moved, shorter])


def _with_each_param(form: Form, ways: Sequence[Callable[[Any], Iterable[Any]]]) -> Iterator[Form]:
    """With every combination of what these ways make of each param, the first ones first."""
    choices = []
    for value in form.params.values():
        found: list[Any] = []
        for way in ways:
            found += [new for new in way(value) if not any([_equal(new, other) for other in found])]
        choices.append(found or [value])
    for values in itertools.product(*choices):
        yield replace(form, params=dict(zip(form.params, values, strict=True)))


def _as_it_is(value: Any) -> list[Any]:
    return [value]


def _leaves(change: Callable[[int], int], value: Any) -> Any:
    """A param with its integers changed, in tuples too."""
    if isinstance(value, tuple):
        return tuple([_leaves(change, part) for part in value])
    return change(value) if type(value) is int else value


def _is_flat(value: object) -> bool:
    return isinstance(value, tuple) and all([type(leaf) is int for leaf in value])


def _is_shape(value: object) -> bool:
    return isinstance(value, tuple) and _is_flat(value) and all([leaf >= 0 for leaf in value])


def _equal(one: object, other: object) -> bool:
    return one is other or (type(one) is type(other) and isinstance(one, (int, float, str, tuple)) and one == other)


# Values of params

def _values_of(seen: Sequence[Any]) -> list[Any]:
    """Values for a param: those of samples and, for plain ones, their neighbours; none if there is no telling."""
    if not all([_is_plain(value) for value in seen]):
        return []
    found: list[Any] = []
    for value in itertools.chain(seen, *map(_neighbours, seen)):
        if not any([_equal(value, other) or value is other for other in found]):
            found.append(value)
    return sorted(found[:_MOST_VALUES], key=_simplicity)


def _is_plain(value: object) -> bool:
    if isinstance(value, tuple):
        return all([_is_plain(part) for part in value])
    return value is None or isinstance(value, (bool, int, float, str, np.dtype))


def _neighbours(value: Any) -> Iterator[Any]:
    """Values near this one, in one number or in their order."""
    if isinstance(value, bool):
        yield not value
    elif isinstance(value, int):
        yield from (value + 1, value - 1, 0, 1, -value)
    elif isinstance(value, tuple):
        yield from (value[::-1], value[:-1])
        for place, part in enumerate(value):
            yield from [_replaced(value, place, new) for new in itertools.islice(_neighbours(part), 2)]


def _simplicity(value: Any) -> tuple[Any, ...]:
    """The key by which small numbers and short tuples come first."""
    if isinstance(value, tuple):
        return (2, len(value), sum([_simplicity(part)[1] for part in value]), repr(value))
    if isinstance(value, (bool, int, float)):
        return (1, abs(value), value < 0, repr(value))
    return (0 if value is None else 3, 0, 0, repr(value) if _is_plain(value) else "")


# Elements

def numbers_for(dtype: np.dtype, domain: tuple[float, float], singular: Sequence[float], special: bool) -> list[Any]:
    """Numbers of a dtype within a domain, the simplest first, with NaN and the like at the end if `special`."""
    low, high = domain
    if dtype == dtypes.bool_:
        return [False, True]
    if not dtypes.is_inexact(dtype):
        info = np.iinfo(dtype)
        least, most = max(math.ceil(low), info.min), min(math.floor(high), info.max)
        found = sorted(range(least, most + 1), key=lambda x: (abs(x), x < 0))[:40]
        return [*found, *[info.min, info.max] * special]
    gap = 0.05 * (high - low)
    grid = [round(low + (high - low) * ((k * 0.6180339887) % 1), 3) for k in range(1, 40)]
    real: list[Any] = [x for x in (0.0, 1.0, -1.0, 2.0, -2.0, 3.0, 0.5, -0.5, *grid) if low <= x <= high and not any(
        [abs(x - point) < gap for point in singular])] or [0.5 * (low + high)]
    if special:
        real = real[:8]
    if dtypes.is_complex(dtype):
        return [*real[:4], *[complex(x, y) for x, y in zip(real, reversed(real), strict=True)]]
    return [*real, *_special(dtype) * special]


def _special(dtype: np.dtype) -> list[float]:
    info: Any = ml_dtypes.finfo(dtype)  # type: ignore[no-untyped-call]
    return [-0.0, np.inf, -np.inf, np.nan] if not np.isnan(float(info.max)) else []
