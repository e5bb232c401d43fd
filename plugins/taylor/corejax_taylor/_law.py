"""The law that all rules `jet` keep, for the conformance kit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import factorial
from typing import Any

import numpy as np

import corejax as cj
from corejax.core import aval_of, dtypes
from corejax.errors import CorejaxError


def series_are_nested_derivatives(jets: Any, case: Any) -> str | None:
    """The coefficients of results along a curve are the derivatives that nested jvps give."""
    places, args = case.doubles, case.drawn()
    if not places:
        return "no operand is float64 or complex128"
    if not all([np.isfinite(np.asarray(args[i])).all() for i in places]):
        return "an operand isn't finite"
    order = 3 if case.full else 2
    curves = [[case.direction(args[i]) for _ in range(order)] for i in places]

    def function(*xs: Any) -> list[Any]:
        operands = list(args)
        for i, x in zip(places, xs, strict=True):
            operands[i] = x
        return [y for y in case.apply(*operands) if dtypes.is_inexact(aval_of(y).dtype)]

    try:
        wanted = _nested(function, [args[i] for i in places], curves)
    except CorejaxError as error:
        return f"nested jvps are refused: {error.message}"
    if not wanted[0]:
        return "no result has a derivative"
    outs = jets.run(function, [jets.boxes(args[i], tuple([c / factorial(k) for k, c in enumerate(terms, 1)]))
                               for i, terms in zip(places, curves, strict=True)])
    boxes = [jets.raised(x, (True,) * order) for x in outs]
    series = [[c * factorial(k) for k, c in enumerate(box.coefficients, 1)] for box in boxes]
    for k, of_order in enumerate(wanted):
        for found, right in zip([terms[k] for terms in series], of_order, strict=True):
            if not _close(np.asarray(found), np.asarray(right)):
                raise case.fail("jet", f"its derivative of order {k + 1} along a curve isn't that of nested jvps",
                                got=np.asarray(found).tolist(), wanted=np.asarray(right).tolist(),
                                todo="compare the rule with jvp, coefficient by coefficient: they are divided by k!")
    return None


def _nested(function: Callable[..., Any], xs: Sequence[Any], curves: Sequence[Sequence[Any]]) -> list[list[Any]]:
    def along(t: Any) -> list[Any]:
        moved = []
        for x, terms in zip(xs, curves, strict=True):
            y: Any = cj.device_put(x)
            power: Any = 1.0
            for k, term in enumerate(terms, 1):
                power = power * t / k
                y = y + term * power
            moved.append(y)
        return list(function(*moved))

    found = []
    derivative: Callable[[Any], list[Any]] = along
    for _ in curves[0]:
        derivative = _derivative(derivative)
        found.append(derivative(0.0))
    return found


def _derivative(function: Callable[[Any], list[Any]]) -> Callable[[Any], list[Any]]:
    return lambda t: cj.jvp(function, (t,), (1.0,))[1]


def _close(found: np.ndarray, wanted: np.ndarray) -> bool:
    """To 8 digits where the derivative has a number; where it has none, so has the coefficient."""
    a, b = found.astype(complex), wanted.astype(complex)
    good = np.isfinite(b)
    size = np.abs(b[good]).max(initial=1.0)
    return bool((np.abs(a[good] - b[good]) <= 1e-8 * size).all())
