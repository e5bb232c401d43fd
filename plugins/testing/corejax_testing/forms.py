"""Forms of inputs: shapes, dtypes and params; and what may follow elsewhere from a change of shapes.

What a primitive takes as sizes, axes or shapes among its params isn't known. So a change proposes every way in which
the params could follow it, the most likely ones first.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np

from corejax.core import ShapedArray, aval_of, dtypes
from corejax.ir import subjaxprs
from corejax.plugin import Sample
from corejax_testing.param_values import equal

Shape: TypeAlias = tuple[int, ...]


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

    @property
    def rank(self) -> int:
        """The highest rank of an operand."""
        return max([len(shape) for shape in self.shapes], default=0)


def form_of(number: int, sample: Sample) -> Form:
    """The form of a sample."""
    avals = [aval_of(x) for x in sample.args]
    return Form(number, tuple([aval.shape for aval in avals]), tuple([aval.dtype for aval in avals]),
                tuple([type(x) in dtypes.PYTHON_SCALARS for x in sample.args]), dict(sample.params))


def carries_programs(form: Form) -> bool:
    """Whether there are programs among its params."""
    return any([True for _ in subjaxprs(dict(form.params))])


def with_shapes(form: Form, shapes: Mapping[int, Shape]) -> Form:
    """With other shapes for some operands."""
    return replace(form, shapes=tuple([shapes.get(i, shape) for i, shape in enumerate(form.shapes)]),
                   scalars=tuple([scalar and not shapes.get(i) for i, scalar in enumerate(form.scalars)]))


# What follows from another shape

def resized(form: Form, sizes: Mapping[int, int]) -> Iterator[Form]:
    """With sizes replaced in all operands, and in the params in one of several ways."""
    new = with_shapes(form, {i: tuple([sizes[size] if size in sizes else size for size in shape])
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


def with_axis(form: Form, axis: int, size: int) -> Iterator[Form]:
    """With another axis in all operands of the highest rank, or in all that have axes, or in all."""
    rank = form.rank
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

        yield from _with_each_param(with_shapes(form, shapes), [_as_it_is, longer, moved])


def without_axis(form: Form, axis: int) -> Iterator[Form]:
    """Without this axis in all operands of the highest rank, or in all that have it."""
    rank = form.rank
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

        yield from _with_each_param(with_shapes(form, shapes), [_as_it_is, moved, shorter])


def _with_each_param(form: Form, ways: Sequence[Callable[[Any], Iterable[Any]]]) -> Iterator[Form]:
    """With every combination of what these ways make of each param, the first ones first."""
    choices = []
    for value in form.params.values():
        found: list[Any] = []
        for way in ways:
            found += [new for new in way(value) if not any([equal(new, other) for other in found])]
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
