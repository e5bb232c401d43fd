"""Checks of tangent rules: they are linear, compute the primal, and do the same in each form that they are used in."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np

from corejax import jvp, linearize
from corejax.core import aval_of, dtypes
from corejax_testing.case import Case
from corejax_testing.check import check
from corejax_testing.comparing import host, worst, wrong_type
from corejax_testing.differences import vector
from corejax_testing.tangents import (
    Function,
    beyond,
    chosen,
    far,
    is_holomorphic,
    operands,
    precision,
    regular,
    same,
    smooth,
    staged,
    subsets,
    tangible,
    times,
    zeros_like,
)
from corejax_testing.tolerances import ULPS, distances, slack

# Linearity

@check("jvp", costly=True)
def jvp_is_linear(case: Case) -> None:
    """Tangents add up, scale, and are zero for zeros, and have the type of the result, in each precision."""
    for variant in case.variants():
        positions = tangible(variant)
        each = regular(variant, positions)
        xs = chosen(each.args, positions)
        _linear_at(each, smooth(each, positions), xs)


def _linear_at(case: Case, function: Function, xs: Sequence[object]) -> None:
    def tangents(vs: Sequence[object]) -> list[Any]:
        outs, dots = jvp(function, xs, vs)
        for k, (out, dot) in enumerate(zip(outs, dots, strict=True)):
            if not aval_of(dot).matches(aval_of(out).tangent):
                raise case.fail("jvp", f"the tangent of result {k} doesn't have its type", got=str(aval_of(dot)),
                                wanted=str(aval_of(out).tangent), todo="return a tangent of the result's type")
        return list(dots)

    us, vs = [[case.direction(x) for x in xs] for _ in range(2)]
    at_u, at_v = tangents(us), tangents(vs)
    eps = precision(*xs, *at_u)
    sizes = np.abs(vector(at_u)) + np.abs(vector(at_v))
    loose = 64 * eps * (sizes + sizes.max(initial=0.0)) + slack(case, *xs, *at_u)
    tight = 8 * eps * sizes + float(np.finfo(np.float32).tiny) + case.atol
    both = [np.asarray(u + v, host(u).dtype) for u, v in zip(us, vs, strict=True)]
    laws = [("of zero tangents is not zero", [zeros_like(x) for x in xs], np.zeros_like(vector(at_u)),
             np.full_like(sizes, case.atol))]
    if sizes.max(initial=0.0) < _largest(at_u) / 4:  # else narrow tangents may overflow along another direction
        laws += [
            ("of -2 v is not -2 times that of v", [times(-2, u) for u in us], -2 * vector(at_u), tight),
            ("of u + v is not the sum of theirs", both, vector(at_u) + vector(at_v), loose)]
    whole = len(laws) > 1 and all([dtypes.is_complex(host(x).dtype) for x in (*xs, *at_u)])
    if whole and is_holomorphic(function, xs, us):
        laws.append(("of i v is not i times that of v", [times(1j, u) for u in us], 1j * vector(at_u), loose))
    for problem, tangent, wanted, tolerance in laws:
        got = tangents(tangent)
        found = beyond(got, wanted, vector(got), tolerance)
        if found:
            raise case.fail("jvp", f"the tangent {problem}", got=found, wanted="a linear rule",
                            todo="each term of the tangent has exactly one factor that is a tangent")


def _largest(dots: Sequence[object]) -> float:
    """The largest number that each of these tangents can be."""
    infos: list[Any] = [ml_dtypes.finfo(np.dtype(host(dot).real.dtype))  # type: ignore[no-untyped-call]
                        for dot in dots if dtypes.is_inexact(aval_of(dot).dtype)]
    return min([float(info.max) for info in infos], default=np.inf)


@check("jvp")
def jvp_computes_the_primal(case: Case) -> None:
    """The results that jvp and linearize return beside tangents equal those of binding, in value and type."""
    for variant in (*case.variants(), *_with_scalars(case)):
        positions = tangible(variant)
        xs = chosen(variant.args, positions)
        function = variant.function_of(positions)
        bound = variant.apply(*variant.args)
        for name, outs in (("jvp", jvp(function, xs, [variant.direction(x) for x in xs])[0]),
                           ("linearize", linearize(function, *xs)[0])):
            for k, (aval, wanted, out) in enumerate(zip(variant.out_avals, bound, outs, strict=True)):
                found = wrong_type(aval, out)
                distance = distances(variant, wanted, out) if not found else np.zeros(0)
                if distance.size and distance.max() > (case.sample.ulps or ULPS):
                    found = worst(wanted, out, distance)
                if found:
                    raise case.fail("jvp", f"result {k} beside the tangent in {name} is not what binding gives",
                                    got=found, wanted=str(aval), todo="return what binding the primitive itself gives")


def _with_scalars(case: Case) -> list[Case]:
    """The case with Python numbers in place of operands of rank 0."""
    args = [x.item() if isinstance(x, (np.ndarray, np.generic)) and x.shape == () and i in case.doubles else x
            for i, x in enumerate(case.args)]
    variant = case.with_args(args)
    return [variant] if any([type(x) in (float, complex) for x in args]) and variant.is_accepted() else []


# The forms in which a rule is used

@check("jvp")
def symbolic_zeros_equal_instantiated_ones(case: Case) -> None:
    """A tangent known to be zero gives the same as an array of zeros, for each subset of operands."""
    positions = tangible(case)
    each = regular(case, positions)
    every = [i for i in range(len(each.args)) if i not in case.refused]
    function = smooth(each, every)
    for part in subsets(positions, case.full):
        vs = {i: each.direction(each.args[i]) for i in part}
        xs = chosen(each.args, part)
        wanted = jvp(function, chosen(each.args, every), [
            vs[i] if i in vs else zeros_like(each.args[i]) for i in every])[1]
        forms = {"a symbolic zero": jvp(smooth(each, part), xs, list(vs.values()))[1],
                 "linearize": linearize(smooth(each, part), *xs)[1](*vs.values())}
        for form, got in forms.items():
            found = far(wanted, got, 1e-10, atol=slack(case, *wanted))
            if found:
                raise case.fail("jvp", f"tangents of {operands(part)}: {form} gives a different result than zeros "
                                "for the other operands", got=found, wanted="the same",
                                todo="a Zero(aval) in tangents stands for zeros of that type")


@check("jvp")
def jvp_under_jit_equals_eager(case: Case) -> None:
    """The rule needs no values: traced, it does the same. The quick mode traces it, the full mode compiles it."""
    positions = tangible(case)
    each = regular(case, positions)
    xs = chosen(each.args, positions)
    n = len(xs)
    function = smooth(each, positions)

    def both(*args: Any) -> list[Any]:
        outs, dots = jvp(function, args[:n], args[n:])
        return [*outs, *dots]

    args = [*xs, *[each.direction(x) for x in xs]]
    same(case, "jvp", "traced, jvp gives something different", both(*args), staged(case, both, *args)(*args))


@check("jvp")
def linearize_equals_jvp(case: Case) -> None:
    """The linear function from linearize equals jvp: evaluated, traced, and when called again."""
    positions = tangible(case)
    each = regular(case, positions)
    for part in dict.fromkeys([(positions[0],), tuple(positions)]):
        function, xs = smooth(each, part), chosen(each.args, part)
        us, vs = [[each.direction(x) for x in xs] for _ in range(2)]
        linear: Function = linearize(function, *xs)[1]
        hook = "linearize" if case.primitive.linearize else "jvp"
        for name, called in (("", linear), (", traced,", staged(case, linear, *us))):
            for tangents in (us, vs):
                same(case, hook, f"linearize{name} gives a different tangent than jvp",
                      jvp(function, xs, tangents)[1], called(*tangents))
