"""Checks of first and higher derivatives against difference quotients."""

from __future__ import annotations

from typing import Any

import numpy as np

from corejax import jvp, vjp
from corejax.core import aval_of, dtypes
from corejax_testing import differences
from corejax_testing.case import DERIVATIVE, Case
from corejax_testing.check import check
from corejax_testing.comparing import host
from corejax_testing.differences import vector
from corejax_testing.report import NotApplicable
from corejax_testing.tangents import (
    Function,
    beyond,
    chosen,
    is_holomorphic,
    operands,
    points,
    refuse_refusals,
    regular,
    same,
    smooth,
    subsets,
    with_complex,
)
from corejax_testing.tolerances import slack

#: Of operands with more elements, each isn't moved alone.
_MOST = 64

_KINDS = {1: "the tangent", 2: "the second derivative", 3: "the third derivative"}


# Differences

@check("jvp", departure=DERIVATIVE)
def jvp_agrees_with_differences(case: Case) -> None:
    """Tangents agree with differences, along random directions of each subset of operands, at several points."""
    for variant in with_complex(case):
        parts = subsets(_differentiated(variant), case.full)
        for positions in parts if variant is case else parts[-1:]:
            _slopes_hold(variant, positions, 1)


@check("jvp", departure=DERIVATIVE)
def derivatives_agree_at_special_points(case: Case) -> None:
    """Where operands are 0, 1 or -1, or all elements are equal, tangents are right as far as a derivative exists."""
    for variant in with_complex(case):
        positions = _differentiated(variant)
        together = tuple(positions)
        if variant.sample.domain is None:
            raise NotApplicable("it has no domain from which to take special points")
        ordinary = float(variant.rng.uniform(0.25, 0.75))
        for value in (0.0, 1.0, -1.0, ordinary):
            for part in dict.fromkeys([*[(i,) for i in positions], together]):
                args = variant.filled(value, part)
                if args is not None and (value != ordinary or part == together):
                    _special(variant, args, part, together)


def _special(case: Case, args: list[Any], part: tuple[int, ...], together: tuple[int, ...]) -> None:
    """Check along each operand, and along the line on which the chosen ones stay equal, where ties aren't kinks."""
    for moved in dict.fromkeys([*[(i,) for i in together], part]):
        xs = chosen(args, moved)
        if moved == part:
            agrees(case, smooth(case, moved, args), xs, moved, 1, [np.ones_like(host(x)) for x in xs])
        if len(moved) == 1:
            agrees(case, smooth(case, moved, args), xs, moved, 1)


@check("jvp", departure=DERIVATIVE)
def jvp_agrees_with_complex_steps(case: Case) -> None:
    """If the primitive also takes complex numbers, f(x + ih) gives the derivative to the last digits."""
    positions = _differentiated(case)
    each = regular(case, positions)
    xs = [host(x) for x in chosen(each.args, positions)]
    if any([dtypes.is_complex(x.dtype) for x in xs]):
        raise NotApplicable("its operands are complex already")
    args = list(each.args)
    for i, x in zip(positions, xs, strict=True):
        args[i] = x.astype(np.complex128)
    wide = each.with_args(args)
    if not wide.is_accepted() or not all([dtypes.is_complex(aval.dtype) for aval in wide.out_avals]):
        raise NotApplicable("it has no complex results for complex operands")
    vs = [_along(case, x) for x in xs]
    if not is_holomorphic(smooth(wide, positions), chosen(args, positions), vs):
        raise NotApplicable("it is not holomorphic at real numbers")
    function = smooth(wide, positions)
    steps, others = [vector(function(*[x + 1j * h * v for x, v in zip(xs, vs, strict=True)])).imag / h
                     for h in (1e-20, 1e-12)]
    size = np.abs(steps)
    if (np.abs(steps - others) > 1e-11 * (size + size.max(initial=0.0))).any():
        raise NotApplicable("its complex form loses small imaginary parts")
    outs, dots = jvp(smooth(each, positions), xs, vs)
    found = beyond(outs, steps, vector(dots), 1e-12 * (size + size.max(initial=0.0)) + slack(case, *outs))
    if found:
        raise case.fail("jvp", "the tangent differs from f(x + ih).imag / h", got=found, wanted="the same to 1e-12",
                        todo="look for a constant with too few digits, or a formula that loses some")


@check("jvp", costly=True)
def second_derivatives_agree_with_differences(case: Case) -> None:
    """Tangents of tangents agree with differences of tangents: what jvp computes with has correct derivatives, too."""
    positions = _differentiated(case)
    for part in dict.fromkeys([*subsets(positions)[:len(positions)], tuple(positions)]):
        _slopes_hold(case, part, 2)


@check("jvp", full=True)
def third_derivatives_agree_with_differences(case: Case) -> None:
    """The same for tangents of tangents of tangents."""
    _slopes_hold(case, tuple(_differentiated(case)), 3)


@check("jvp", costly=True)
def hessians_are_symmetric(case: Case) -> None:
    """Forward over reverse gives the matrix of second derivatives, reverse over forward its transpose: the same."""
    positions = _differentiated(case)
    each = regular(case, positions)
    function, xs = smooth(each, positions), chosen(each.args, positions)
    us, vs = [[each.direction(x) for x in xs] for _ in range(2)]
    ws = [each.direction(out) for out in function(*xs)]

    def gradient(*xs: Any) -> list[Any]:
        return list(vjp(function, *xs)[1](ws))

    def slope(*xs: Any) -> list[Any]:
        return list(jvp(function, xs, vs)[1])

    first = gradient(*xs)
    along_v, along_u = [jvp(gradient, xs, dots)[1] for dots in (vs, us)]
    same(case, "jvp", "forward over reverse and reverse over forward differ: second derivatives are not symmetric",
         along_v, vjp(slope, *xs)[1](ws), first)
    same(case, "transpose", "forward over reverse and reverse over reverse differ", along_u, vjp(gradient, *xs)[1](us),
         first)


def _differentiated(case: Case) -> list[int]:
    positions = case.differentiable
    refuse_refusals(case, positions)
    return positions


def _slopes_hold(case: Case, positions: tuple[int, ...], order: int) -> None:
    """Check that the derivative of this order agrees with differences of the one before, at enough points."""
    wanted = 1 if case.sample.domain is None else 4 if case.full else 2
    for each in points(case):
        function, xs = _before(each, smooth(each, positions), chosen(each.args, positions), order)
        wanted -= agrees(case, function, xs, positions, order)
        if not wanted:
            return
    if case.sample.domain is None or wanted > 1:
        raise case.fail("samples", "for most elements, differences can't be trusted: jumps, kinks, or NaN",
                        got=f"operands {positions}", wanted="operands around which the results are smooth",
                        todo="give a domain= to draw others from, and singular= points to keep away from; or exempt it")


def _before(case: Case, function: Function, xs: list[Any], order: int) -> tuple[Function, list[Any]]:
    """The derivative of the order below, as a function of operands and the tangents of lower orders."""
    for _ in range(order - 1):
        function, xs = _tangent_of(function, len(xs)), [*xs, *[_along(case, x) for x in xs]]
    return function, xs


def _tangent_of(function: Function, n: int) -> Function:
    return lambda *args: list(jvp(function, args[:n], args[n:])[1])


def agrees(case: Case, function: Function, xs: list[Any], positions: tuple[int, ...], order: int,
            ones: list[Any] | None = None) -> bool:
    """Whether most elements could be compared; fails if one of these is wrong.

    With `ones`, several operands may move together, through a point where there is no derivative.
    """
    vs = ones or [_along(case, x) for x in xs]
    outs, dots = jvp(function, xs, vs)
    found = differences.of(function, xs, vs, slack(case, *outs))
    kept = found.trusted if ones is None else found.trusted & np.isfinite(vector(dots))
    slope, got = np.where(kept, found.slope, 0), np.where(kept, vector(dots), 0)
    wrong = beyond(outs, slope, got, found.tolerance)
    if wrong and ones is None:
        exists = _exists(case, function, xs, vs, found)
        wrong = beyond(outs, np.where(exists, slope, 0), np.where(exists, got, 0), found.tolerance)
    if wrong:
        raise case.fail("jvp", f"{_KINDS[order]} along {operands(positions)} is not what differences say", got=wrong,
                        wanted=f"within {found.tolerance[kept].max():.1e}",
                        todo="fix the derivative; or, if it does not exist there, say so in the sample: singular= "
                        "points of its domain=")
    return bool(2 * kept.sum() >= kept.size)


def _exists(case: Case, function: Function, xs: list[Any], vs: list[Any], found: differences.Slopes) -> np.ndarray:
    """For which results the slopes along single elements of a direction add up to that along it, as a derivative's do.

    The middle one of three equal numbers has a slope along every line, but no derivative.
    """
    atol = slack(case, *function(*xs))
    total, error, sure = np.zeros_like(found.slope), found.tolerance, found.trusted
    for k, v in enumerate(vs):
        if v.size > _MOST:
            return sure
        for place in range(v.size):
            alone = [np.where(np.arange(w.size).reshape(w.shape) == place, w, 0) if j == k else np.zeros_like(w)
                     for j, w in enumerate(vs)]
            one = differences.of(function, xs, alone, atol)
            total, error, sure = total + one.slope, error + one.tolerance, sure & one.trusted
    with np.errstate(all="ignore"):
        return np.asarray(sure & (np.abs(found.slope - total) <= 4 * error))


def _along(case: Case, x: object) -> np.ndarray:
    """A random direction, with elements scaled to those of x if these are large."""
    aval = aval_of(x)
    return np.asarray(case.direction(x) * np.maximum(1.0, np.abs(host(x))), aval.dtype)
