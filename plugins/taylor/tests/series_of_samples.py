"""Series of primitives with the inputs of their samples, by jets and by nested jvp."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

import corejax as cj
from corejax import taylor
from corejax.core import Primitive, as_value, aval_of, dtypes
from corejax.plugin import NotDifferentiable, Partials, Sample, entry_point_names, find


def primitives() -> list[str]:
    """The names of all installed primitives."""
    return sorted(entry_point_names("corejax.primitives"))


def samples(name: str) -> Iterator[tuple[Primitive, Sample]]:
    """The samples of a primitive that have results, floating operands with a derivative, and no axes."""
    primitive = find(name)
    if primitive.samples is None:
        return
    for sample in primitive.samples(np.random.default_rng(0)):
        if sample.error is None and not sample.axes and moving(primitive, sample):
            yield primitive, sample


def moving(primitive: Primitive, sample: Sample) -> list[int]:
    """The operands that get a curve."""
    jvp = getattr(primitive.plugin, "jvp", None)
    functions = jvp.functions if isinstance(jvp, Partials) else ()
    return [i for i, x in enumerate(sample.args) if dtypes.is_inexact(aval_of(x).dtype) and not (
        i < len(functions) and isinstance(functions[i], NotDifferentiable))]


def curve(rng: np.random.Generator, x: Any, order: int) -> list[Any]:
    """Derivatives of a curve that begins at x."""
    aval = aval_of(x)
    found = []
    for _ in range(order):
        drawn = rng.standard_normal(aval.shape)
        if dtypes.is_complex(aval.dtype):
            drawn = drawn + 1j * rng.standard_normal(aval.shape)
        found.append(np.asarray(drawn).astype(aval.dtype))
    return found


def functions(primitive: Primitive, sample: Sample) -> tuple[Any, list[Any]]:
    """The primitive as a function of its moving operands, to floating results; and these operands."""
    places = moving(primitive, sample)

    def function(*xs: Any) -> list[Any]:
        args = list(sample.args)
        for i, x in zip(places, xs, strict=True):
            args[i] = x
        out = primitive.bind(*args, **sample.params)
        outs = out if primitive.multiple_results else [out]
        return [y for y in outs if dtypes.is_inexact(y.aval.dtype)]
    return function, [sample.args[i] for i in places]


def by_jets(function: Any, xs: list[Any], curves: list[list[Any]]) -> list[list[Any]]:
    """The derivatives of each order, each a list of results."""
    outs, series = taylor.jet(function, tuple(xs), curves)
    return [[np.asarray(of_one[k]) for of_one in series] for k in range(len(curves[0]))]


def by_nesting(function: Any, xs: list[Any], curves: list[list[Any]]) -> list[list[Any]]:
    """The same by derivatives of derivatives."""
    def along(t: Any) -> list[Any]:
        return list(function(*[_at(t, [x, *terms])[0] for x, terms in zip(xs, curves, strict=True)]))

    found = []
    derivative: Any = along
    for _ in curves[0]:
        derivative = _derivative(derivative)
        found.append([np.asarray(y) for y in derivative(0.0)])
    return found


def last_by_one_jvp(function: Any, xs: list[Any], curves: list[list[Any]]) -> list[Any]:
    """The last derivatives, as derivatives of those before, which are a jet's of an order less."""
    def before(t: Any) -> list[Any]:
        moved = [_at(t, [x, *terms])[:-1] for x, terms in zip(xs, curves, strict=True)]
        outs, series = taylor.jet(function, tuple([x for x, *_ in moved]), [terms for _, *terms in moved])
        return [of_one[-1] for of_one in series] if len(curves[0]) > 1 else outs  # type: ignore[no-any-return]
    return [np.asarray(y) for y in _derivative(before)(0.0)]


def _at(t: Any, derivatives: list[Any]) -> list[Any]:
    """A polynomial with these derivatives at 0, and its derivatives, at t."""
    terms = [as_value(x) for x in derivatives]
    found = []
    for k in range(len(terms)):
        total = terms[-1]
        for j in range(len(terms) - 1, k, -1):
            total = terms[j - 1] + total * t / (j - k)
        found.append(total)
    return found


def _derivative(function: Any) -> Any:
    return lambda t: cj.jvp(function, (t,), (1.0,))[1]
