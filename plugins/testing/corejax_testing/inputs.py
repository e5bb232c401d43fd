"""Inputs for a search: the forms that a primitive's samples lead to, and elements for them.

A form is changed step by step. For each change, the first of the proposals that `abstract_eval` accepts is taken, and
without any the form stays as it was. So each input is valid, however a primitive relates its operands and params.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

import ml_dtypes
import numpy as np

from corejax.core import Primitive, aval_of, dtypes
from corejax.ir import subjaxprs
from corejax.plugin import Sample, elements
from corejax_testing.case import Case
from corejax_testing.comparing import host
from corejax_testing.forms import Form, carries_programs, form_of, resized, with_axis, with_shapes, without_axis
from corejax_testing.param_values import is_plain, replaced, simplicity, values_of

#: A source of choices: `choose(n)` is a number from 0 to n - 1. The smaller, the simpler is what it leads to.
Choose: TypeAlias = Callable[[int], int]

#: How many elements all operands and results of a form may have together.
_MOST_ELEMENTS = 3000

#: The largest size of an axis, as a rule, now and then, and seldom.
_SIZES = (5, 10, 131)

#: How many sizes are drawn for a form, and among how many places for one that changes alone: always as many, so that
#: what is chosen later doesn't change its meaning while a failing case is made smaller.
_DRAWN_SIZES, _PLACES = 4, 12

#: How many proposals are made for one change.
_MOST_PROPOSALS = 200

#: The dtypes to which those of a kind may change, the simplest first.
_OF_KIND: dict[str, tuple[np.dtype, ...]] = {
    "f": (dtypes.float64, dtypes.float32, dtypes.bfloat16, np.dtype(np.float16)),
    "c": (dtypes.complex128, dtypes.complex64),
    "i": tuple([np.dtype(f"int{n}") for n in (64, 32, 16, 8)]), "u": tuple([np.dtype(f"uint{n}") for n in (64, 8)])}

#: Python's number types, by corresponding dtype.
_SCALARS: dict[np.dtype, type] = {
    dtypes.bool_: bool, dtypes.int64: int, dtypes.float64: float, dtypes.complex128: complex}

#: How many elements of an operand are chosen one by one; further ones repeat them.
_CHOSEN = 40

#: The laws of special values: with an exemption from one of these, none is tried.
_SPECIAL = ("nans and infinities agree", "zeros keep their signs", "extreme integers agree")


class Forms:
    """The forms that a primitive accepts, as far as its samples lead to them."""

    def __init__(self, primitive: Primitive, samples: Sequence[Sample]) -> None:
        self.primitive = primitive
        found = [form_of(number, sample) for number, sample in enumerate(samples) if sample.error is None]
        self.templates = sorted(found, key=_complexity)
        self.stating = {number for number, sample in enumerate(samples) if sample.atol is not None}
        self.values = {name: values_of([form.params[name] for form in found if name in form.params])
                       for name in sorted(primitive.params)}

    def draw(self, choose: Choose) -> Form:
        """A form, whose simplicity follows that of the choices."""
        form = self.templates[choose(len(self.templates))]
        if not all([is_plain(value) or any(True for _ in subjaxprs({"": value})) for value in form.params.values()]):
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
        while form.rank > kept:
            dropped = self._first(form, (each for axis in reversed(range(form.rank))
                                         for each in without_axis(form, axis)))
            if dropped is form:
                break
            form = dropped
        for axis, size in added[:more] if form.shapes else ():
            form = self._first(form, with_axis(form, min(axis, form.rank), size))
        return form

    # Sizes

    def _with_sizes(self, form: Form, choose: Choose) -> Form:
        """With other sizes: each replaced everywhere, and sometimes in one place alone."""
        drawn = [_size(choose) for _ in range(_DRAWN_SIZES)]
        sizes = sorted({size for shape in form.shapes for size in shape})
        renamed = {size: drawn[k % len(drawn)] for k, size in enumerate(sizes)}
        everywhere = self._first(form, resized(form, renamed))
        if everywhere is form:
            for size in sizes:
                form = self._first(form, resized(form, {size: renamed[size]}))
        else:
            form = everywhere
        alone, place, size = choose(4), choose(_PLACES), drawn[-1]
        places = [(i, axis) for i, shape in enumerate(form.shapes) for axis in range(len(shape))]
        if places and alone == 3:
            i, axis = places[place % len(places)]
            form = self._first(form, [with_shapes(form, {i: replaced(form.shapes[i], axis, size)}),
                                      with_shapes(form, {i: ()})])
        return form

    # Params

    def _with_params(self, form: Form, choose: Choose) -> Form:
        """With other values of params: the simplest of those of all samples and their neighbours, or any.

        A sample that states `atol` does so for its own params, and keeps them.
        """
        for name, values in self.values.items():
            own, choice = choose(2), choose(len(values)) if values else 0
            if values and name in form.params and not own and form.number not in self.stating:
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
                form = self._first(form, [replace(form, scalars=replaced(form.scalars, i, is_scalar))])
        return form


def _as_scalar(x: np.ndarray) -> Any:
    """An array of rank 0 as a Python number."""
    return _SCALARS[x.dtype](x[()])


def _complexity(form: Form) -> tuple[Any, ...]:
    """The key by which the simplest form comes first: few operands, axes and elements, doubles."""
    return (len(form.shapes), sum([len(shape) for shape in form.shapes]),
            sum([math.prod(shape) for shape in form.shapes]), form.dtypes.count(dtypes.float64) < len(form.dtypes),
            [simplicity(value) for value in form.params.values()], form.number)


def _size(choose: Choose) -> int:
    return choose(_SIZES[(0, 0, 0, 0, 0, 1, 1, 2)[choose(8)]] + 1)


class Inputs:
    """The inputs for a primitive that its samples lead to."""

    def __init__(self, primitive: Primitive, samples: Sequence[Sample]) -> None:
        self.primitive, self.samples, self.forms = primitive, samples, Forms(primitive, samples)
        self.exempt = {name for sample in samples for name in sample.exempt}
        self.hull = _hull([x for sample in samples if sample.error is None for x in sample.args])

    def draw(self, choose: Choose) -> tuple[Sample, Form, bool]:
        """An input, the form that it has, and whether it may have special values."""
        form = self.forms.draw(choose)
        source = self.samples[form.number]
        alike = [each for each in self.samples if each.params == form.params and each.error is None and each.domain]
        domain = alike[0].domain if alike and source.domain and form.params != source.params else source.domain
        case = Case(self.primitive, Sample(source.args, form.params, domain, singular=source.singular), form.number)
        special = choose(5) == 4 and not self.exempt & {*_SPECIAL}
        args = []
        for i, aval in enumerate(form.avals):
            x = self._operand(case, i, form, special, choose)
            args.append(_as_scalar(x) if aval.weak_type else x)
        return Sample(args, form.params, domain, None, source.exempt, source.singular, source.ulps,
                      atol=source.atol), form, special

    def _operand(self, case: Case, i: int, form: Form, special: bool, choose: Choose) -> np.ndarray:
        shape, dtype, given = form.shapes[i], form.dtypes[i], host(case.args[i])
        domain, program = case.domain_of(i), carries_programs(form)
        if case.keeps(i) or elements.find(dtype) is not None or (
                program and domain is None and not dtypes.is_inexact(dtype)):
            return np.resize(given, shape).astype(dtype)
        if domain is None:
            domain = self.hull if dtypes.is_inexact(dtype) else (-3, 9)
        pool = _numbers_for(dtype, domain, case.sample.singular, special and not program)
        size = int(np.prod(shape))
        count = min(size, (1, 2, _CHOSEN, _CHOSEN)[choose(4)])
        chosen = [pool[choose(len(pool))] for _ in range(count)]
        with np.errstate(all="ignore"):
            return np.resize(np.array(chosen or [0]), shape).astype(dtype)


def _hull(args: Sequence[object]) -> tuple[float, float]:
    """The interval of the real numbers in samples that don't give any."""
    floats = [np.ravel(host(x)).real.astype(np.float64) for x in args if dtypes.is_inexact(aval_of(x).dtype)
              and elements.find(aval_of(x).dtype) is None]
    found = np.concatenate([np.zeros(0), *floats])
    found = found[np.isfinite(found)]
    return (max(float(found.min()), -3.0), min(float(found.max()), 3.0)) if found.size > 1 else (-2.0, 2.0)


def _numbers_for(dtype: np.dtype, domain: tuple[float, float], singular: Sequence[float], special: bool) -> list[Any]:
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
