"""Checks of all orderings of transformations to depth three.

A program is a function from a list of arrays to a list of arrays, and so is each transformation of it: `jvp` and
`linearize` give the tangents of the results as a function of operands and tangents, `vjp` the cotangents of the
operands as a function of operands and cotangents, `vmap` adds a leading axis to everything, `jit` changes nothing. All
tangents and cotangents are operands, so the next derivative is taken with respect to them too.

Each ordering is compared with what its outermost step should do to the ordering without it: a loop, differences, the
dot-product identity. The inner ordering gets the same check, so by induction all are right.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np

from corejax import jit, jvp, linearize, vjp, vmap
from corejax.core import dtypes
from corejax.errors import CorejaxNotImplementedError
from corejax_testing.batches import carries_programs, compiles_programs
from corejax_testing.case import DERIVATIVE, Case
from corejax_testing.check import check
from corejax_testing.comparing import eps_of, host, off
from corejax_testing.differences import along, vector
from corejax_testing.report import NotApplicable, no_derivative
from corejax_testing.tolerances import slack

Names = tuple[str, ...]
Function = Callable[..., list[Any]]
Arrays = list[Any]

#: How far results computed in different orders may be apart, relative to the largest, in units of `eps`.
EXACT = 4e6

#: How many orderings the quick mode tries for a sample: for one of its dtypes and params, for each other one like it,
#: and if each ordering compiles its own program.
QUICK, QUICK_LIKE_ANOTHER, QUICK_COMPILED = 16, 4, 2


class Program(NamedTuple):
    """A function of arrays, a way to draw operands for it, and how exact it is: relative to its results, and at all."""

    fun: Function
    draw: Callable[[], Arrays]
    eps: float
    atol: float


class Step(NamedTuple):
    """A transformation: the hook that it tests, the transformation itself, and what the result should compute."""

    hook: str
    transform: Callable[[Case, Program], Program]
    meaning: Callable[[Program, Arrays, Arrays], tuple[Arrays, Arrays, float]]


# The transformations, and what they mean: (got, wanted, tolerance) of operands and results

def _jit(case: Case, inner: Program) -> Program:
    return inner._replace(fun=jit(inner.fun))


def _vmap(case: Case, inner: Program) -> Program:
    return inner._replace(fun=vmap(inner.fun), draw=lambda: [
        np.stack(pair) for pair in zip(inner.draw(), inner.draw(), strict=True)])


def _loop(inner: Program, operands: Arrays, outs: Arrays) -> tuple[Arrays, Arrays, float]:
    rows = [inner.fun(*[x[k] for x in operands]) for k in range(2)]
    return outs, [np.stack([host(x) for x in column]) for column in zip(*rows, strict=True)], EXACT * inner.eps


def _jvp(case: Case, inner: Program) -> Program:
    def fun(*operands: Any) -> Arrays:
        n = len(operands) // 2
        return jvp(inner.fun, operands[:n], operands[n:])[1]
    return inner._replace(fun=fun, draw=lambda: _with_directions(case, inner.draw()))


def _linearize(case: Case, inner: Program) -> Program:
    def fun(*operands: Any) -> Arrays:
        n = len(operands) // 2
        return linearize(inner.fun, *operands[:n])[1](*operands[n:])
    return inner._replace(fun=fun, draw=lambda: _with_directions(case, inner.draw()))


def _differences(inner: Program, operands: Arrays, outs: Arrays) -> tuple[Arrays, Arrays, float]:
    n = len(operands) // 2

    def line(t: float) -> np.ndarray:
        return vector(inner.fun(*[x + t * dot for x, dot in zip(operands[:n], operands[n:], strict=True)]))
    found, got = along(line, inner.eps, inner.atol), vector(outs)
    with np.errstate(all="ignore"):
        near = np.abs(got - found.slope) <= 10 * found.tolerance
    return [got], [np.where(found.trusted & ~near, found.slope, got)], 0.0


def _vjp(case: Case, inner: Program) -> Program:
    def fun(*operands: Any) -> Arrays:
        outs, pullback = vjp(inner.fun, *operands[:n])
        return list(pullback(list(operands[n:])))

    def draw() -> Arrays:
        xs = inner.draw()
        return [*xs, *[case.direction(out) for out in inner.fun(*xs)]]
    n = len(inner.draw())
    return inner._replace(fun=fun, draw=draw)


def _pairing(inner: Program, operands: Arrays, outs: Arrays) -> tuple[Arrays, Arrays, float]:
    """The real parts of <cotangents of operands, tangents> and <cotangents of results, tangents of results>."""
    n = len(outs)
    rng = np.random.default_rng(n)
    dots = [(rng.standard_normal(x.shape) + (1j * rng.standard_normal(x.shape) if np.iscomplexobj(x) else 0)).astype(
        x.dtype) for x in map(host, operands[:n])]
    out_dots = jvp(inner.fun, tuple(operands[:n]), tuple(dots))[1]
    return [_inner(outs, dots)], [_inner(operands[n:], out_dots)], EXACT * inner.eps


def _inner(xs: Sequence[object], ys: Sequence[object]) -> np.ndarray:
    return np.asarray(sum([np.sum(host(x) * host(y)).real for x, y in zip(xs, ys, strict=True)]))


STEPS = {
    "jit": Step("xla_translation", _jit, lambda inner, operands, outs: (outs, inner.fun(*operands), 0.0)),
    "vmap": Step("vmap", _vmap, _loop),
    "jvp": Step("jvp", _jvp, _differences),
    "vjp": Step("transpose", _vjp, _pairing),
    "linearize": Step("jvp", _linearize, _differences),
}


def _with_directions(case: Case, xs: Arrays) -> Arrays:
    return [*xs, *[case.direction(x) for x in xs]]


# The checks

class Orderings:
    """The orderings for a case, each computed once."""

    def __init__(self, case: Case) -> None:
        self.case = case
        positions = case.differentiable
        inexact = [dtypes.is_inexact(aval.dtype) for aval in case.out_avals]
        plain = case.function_of(positions)

        def fun(*xs: Any) -> Arrays:
            return list(itertools.compress(plain(*xs), inexact))

        def draw() -> Arrays:
            drawn = case.drawn()
            return [host(drawn[i]).astype(case.avals[i].dtype) for i in positions]
        eps = max([eps_of(aval.dtype) for aval in (*case.avals, *case.out_avals) if dtypes.is_inexact(aval.dtype)])
        self.programs: dict[Names, Program] = {(): Program(fun, draw, eps, slack(case, *case.args))}
        self.runs: dict[Names, tuple[Arrays, Arrays]] = {}

    def program(self, names: Names) -> Program:
        """The program for an ordering, outermost step first."""
        if names not in self.programs:
            self.programs[names] = STEPS[names[0]].transform(self.case, self.program(names[1:]))
        return self.programs[names]

    def run(self, names: Names) -> tuple[Arrays, Arrays]:
        """Operands and results of an ordering without `jit`."""
        if names not in self.runs:
            program = self.program(names)
            operands = program.draw()
            self.runs[names] = operands, program.fun(*operands)
        return self.runs[names]

    def available(self) -> list[str]:
        """The steps that the primitive has rules for."""
        try:
            self.run(("jvp",))
        except CorejaxNotImplementedError as error:
            raise no_derivative(error) from None
        try:
            self.run(("vjp",))
        except CorejaxNotImplementedError:
            return [name for name in STEPS if name != "vjp"]
        return list(STEPS)

    def check(self, names: Names) -> None:
        """Compare an ordering with the meaning of its outermost step; or, if it has `jit`, with the same without."""
        plain = tuple([name for name in names if name != "jit"])
        operands, outs = self.run(plain)
        if plain != names:
            self.compare(names, self.program(names).fun(*operands), outs, EXACT * self.program(()).eps)
        else:
            step = STEPS[names[0]]
            if step.meaning is _differences and {*names[1:]} <= {"vmap"} and DERIVATIVE in self.case.sample.exempt:
                return  # differences of the value, which the derivative isn't meant to be that of
            self.compare(names, *step.meaning(self.program(names[1:]), operands, outs))

    def compare(self, names: Names, got: Arrays, wanted: Arrays, rtol: float) -> None:
        """Raise if the results of an ordering differ from what is wanted."""
        for i, (x, y) in enumerate(zip(wanted, got, strict=True)):
            difference = off(x, y, rtol, self.case.atol)
            if difference:
                outer, inner = names[0], " of ".join([*names[1:], "it"])
                what = "itself without jit" if "jit" in names else f"what {outer} of {inner} means"
                raise self.case.fail(
                    STEPS[outer].hook, f"{' of '.join(names)}: result {i} differs from {what}", got=difference,
                    wanted=_MEANINGS["jit" if "jit" in names else outer],
                    todo="look at the rules of the innermost transformations first: each is right without the outer one"
                    if len(names) > 1 else "see the checks of this rule alone")


_MEANINGS = {
    "jit": "the same without jit", "vmap": "a loop over the slices",
    "jvp": "difference quotients of the program within", "linearize": "difference quotients of the program within",
    "vjp": "<pullback(ct), tangent> = <ct, jvp(tangent)>"}


def orderings(steps: Sequence[str], depth: int) -> list[Names]:
    """All orderings of exactly this many steps."""
    return list(itertools.product(steps, repeat=depth))


@check("jvp", costly=True)
def orderings_to_depth_two_agree(case: Case) -> None:
    """Any two of jit, vmap, jvp, vjp and linearize, in either order, give what each of them should give."""
    found = Orderings(case)
    steps = found.available()
    names = orderings(steps, 2)
    if case.full:
        compiled = [each for each in names if "jit" in each]
        place, n = turn(case)
        names = [each for each in names if each not in compiled or each in compiled[place::n]]
    else:  # jit compiles: the full mode tries it
        count = QUICK_COMPILED if compiles_programs(case) else QUICK if case.representative else QUICK_LIKE_ANOTHER
        names = [each for each in names if "jit" not in each]
        names = [names[k] for k in case.rng.permutation(len(names))[:count]]
    for each in names:
        found.check(each)


@check("jvp", full=True)
def orderings_to_depth_three_agree(case: Case) -> None:
    """Any three of jit, vmap, jvp, vjp and linearize, in every order.

    Orderings that compile programs are distributed over the samples: each is tried on one of them.
    """
    found = Orderings(case)
    steps = found.available()
    names = orderings(steps, 3)
    compiled = names if carries_programs(case) else [each for each in names if "jit" in each]
    place, count = turn(case)
    left_out = {*compiled} - {*compiled[place::count]}
    for each in names:
        if each not in left_out:
            found.check(each)


def turn(case: Case) -> tuple[int, int]:
    """The index of a sample among those with derivatives that the check is for, and their number."""
    mates = []
    for number, sample in enumerate(case.samples):
        if sample.error is None and case.check not in sample.exempt:
            with suppress(NotApplicable):
                mates += [number] * bool(Case(case.primitive, sample, number).differentiable)
    return (mates.index(case.number), len(mates)) if case.number in mates else (0, 1)
