"""Shared by checks of derivatives: which operands, at which points, with which tangents."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import combinations
from typing import Any

import ml_dtypes
import numpy as np

from corejax import jit, jvp, linearize, make_jaxpr, vjp
from corejax.core import aval_of, dtypes
from corejax.errors import CorejaxNotImplementedError
from corejax.ir import eval_jaxpr
from corejax_testing import differences
from corejax_testing.case import Case
from corejax_testing.comparing import host
from corejax_testing.differences import vector
from corejax_testing.report import NotApplicable
from corejax_testing.tolerances import slack

Results = list[Any]
Function = Callable[..., Results]

#: How often operands are drawn to find suitable ones.
_DRAWS = 6


def smooth(case: Case, positions: Sequence[int], args: Sequence[Any] | None = None) -> Function:
    """The primitive as a function from some operands to those of its results that have tangents."""
    function = case.function_of(positions, args)
    kept = [k for k, aval in enumerate(case.out_avals) if dtypes.is_inexact(aval.dtype)]

    def smooth_results(*xs: Any) -> Results:
        outs = function(*xs)
        return [outs[k] for k in kept]
    return smooth_results


def chosen(args: Sequence[object], positions: Sequence[int]) -> list[Any]:
    """The operands at some positions."""
    return [args[i] for i in positions]


def tangible(case: Case) -> list[int]:
    """The operands that have tangents, unless the primitive is declared not differentiable."""
    if not any([dtypes.is_inexact(aval.dtype) for aval in case.out_avals]):
        raise NotApplicable("no result has a derivative")
    if not case.inexact:
        raise NotApplicable("no operand is floating")
    refuse_refusals(case, case.inexact)
    return case.inexact


def refuse_refusals(case: Case, positions: Sequence[int]) -> None:
    """Raise `NotApplicable` if a plugin declares that there is no derivative. A missing rule is something else.

    Other exceptions are ignored: the check will run into them again.
    """
    try:
        linearize(case.function_of(positions), *chosen(case.args, positions))
    except CorejaxNotImplementedError as error:
        if type(error) is CorejaxNotImplementedError and error.hook == "jvp":
            raise NotApplicable(str(error).partition("\n")[0]) from error
    except Exception:
        return


def regular(case: Case, positions: Sequence[int], backward: bool = False) -> Case:
    """This case, or one with operands from its domain, with a finite derivative: by jvp, or by vjp if `backward`."""
    for each in points(case):
        xs, function = chosen(each.args, positions), smooth(each, positions)
        if backward:
            outs, pull = vjp(function, *xs)
            found = list(pull([each.direction(out) for out in outs]))
        else:
            found = jvp(function, xs, [each.direction(x) for x in xs])[1]
        if np.isfinite(vector(found)).all():
            return each
    raise NotApplicable("no derivative is finite at these operands, and no domain is given to draw others from")


def points(case: Case) -> Iterator[Case]:
    """This case, and the same with drawn operands if it has a domain."""
    if not finite(case.args):
        raise NotApplicable("not all operands are finite")
    yield case
    if case.sample.domain is not None:
        for _ in range(_DRAWS):
            yield case.with_args(case.drawn())


def with_complex(case: Case) -> Iterator[Case]:
    """This case, and the same with complex numbers for its doubles if `abstract_eval` accepts them."""
    yield case
    if case.doubles and not any([dtypes.is_complex(aval.dtype) for aval in case.avals]):
        variant = case.with_args([host(x) + 1j * host(case.direction(x)) if i in case.doubles else x
                                  for i, x in enumerate(case.args)])
        if variant.is_accepted():
            yield variant


def finite(values: Sequence[object]) -> bool:
    """Whether there is no NaN and no infinity."""
    floats = [x for x in values if dtypes.is_inexact(aval_of(x).dtype)]
    return bool(np.isfinite(vector(floats)).all())


def subsets(positions: Sequence[int], everything: bool = False) -> list[tuple[int, ...]]:
    """Subsets of operands, single ones first; for many operands just these, pairs of neighbours, and all together."""
    count = len(positions)
    if count <= 3 or everything and count <= 6:
        return [part for size in range(1, count + 1) for part in combinations(positions, size)]
    pairs = zip(positions[:-1], positions[1:], strict=True)
    return [*[(i,) for i in positions], *pairs, tuple(positions)]


def staged(case: Case, function: Callable[..., Any], *args: Any) -> Callable[..., Any]:
    """A function of arrays as a program: compiled in the full mode, else evaluated step by step."""
    if case.full:
        compiled: Function = jit(function)
        return compiled
    closed = make_jaxpr(function)(*args)
    return lambda *xs: eval_jaxpr(closed.jaxpr, closed.consts, *xs)


def zeros_like(x: object) -> np.ndarray:
    """A tangent of zeros: of float0 for integers."""
    aval = aval_of(x).tangent
    return np.zeros(aval.shape, aval.dtype)


def precision(*values: Any) -> float:
    """The largest relative rounding error among the values' dtypes."""
    infos: list[Any] = [ml_dtypes.finfo(np.dtype(host(x).real.dtype))  # type: ignore[no-untyped-call]
                        for x in values if dtypes.is_inexact(aval_of(x).dtype)]
    return max([float(info.eps) for info in infos], default=2.0 ** -52)


def operands(positions: Sequence[int]) -> str:
    """Describe operands."""
    return f"operand{'s' * (len(positions) != 1)} {', '.join(map(str, positions))}"


def far(wanted: Sequence[object], got: Sequence[object], rtol: float = 1e-10, size: float = 0.0,
        atol: float = 0.0) -> str | None:
    """None if results agree, relative to their elements, to the largest of these, and to `size`; else what differs."""
    rtol = max(rtol, 64 * precision(*wanted))
    return beyond(wanted, vector(wanted), vector(got), rtol * (_sizes(vector(wanted)) + size) + atol)


def beyond(results: Sequence[object], wanted: np.ndarray, got: np.ndarray, tolerance: np.ndarray) -> str | None:
    """None if all elements are within their tolerances; else describes the one that is farthest off."""
    with np.errstate(all="ignore"):
        same = (wanted == got) | (np.isnan(wanted) & np.isnan(got))
        distance = np.where(same, 0.0, np.abs(wanted - got) - tolerance)
    distance = np.where(np.isnan(distance), np.inf, distance)
    if not distance.size or distance.max() <= 0:
        return None
    index = int(np.argmax(distance))
    return f"{got[index]!s} instead of {wanted[index]!s}, {place(results, index)}"


def _sizes(x: np.ndarray) -> np.ndarray:
    sizes = np.abs(x)
    finite = sizes[np.isfinite(sizes)]
    return np.asarray(sizes + (finite.max() if finite.size else 0.0))


def place(results: Sequence[object], index: int) -> str:
    """Where an element of the results' vector is."""
    for k, x in enumerate(results):
        aval = aval_of(x)
        if index < aval.size:
            at = ", ".join([str(int(i)) for i in np.unravel_index(index, aval.shape)]) if aval.shape else ""
            return f"result {k}" + f" at ({at})" * bool(at)
        index -= aval.size
    return "no result"


def same(case: Case, hook: str, problem: str, wanted: Sequence[object], got: Sequence[object],
         beside: Sequence[object] = ()) -> None:
    """Fail unless results in two forms agree in types and values.

    If results are what remains after cancellation, `beside` has numbers of the size of those that canceled.
    """
    types = [[str(aval_of(x).tangent) for x in results] for results in (wanted, got)]
    size = float(np.abs(vector(beside)).max(initial=0.0))
    found = far(wanted, got, 1e-9, size, slack(case, *wanted)) if types[0] == types[1] else (
        f"({', '.join(types[1])}), not ({', '.join(types[0])})")
    if found:
        raise case.fail(hook, problem, got=found, wanted="the same",
                        todo="compute with operations that can be traced and differentiated, on arguments alone")


def is_holomorphic(function: Function, xs: Sequence[object], vs: Sequence[object]) -> bool:
    """Whether, by differences, the derivative along i v is i times the one along v."""
    real, imaginary = [differences.of(function, xs, [times(factor, v) for v in vs]) for factor in (1, 1j)]
    both = real.trusted & imaginary.trusted
    distance = np.abs(np.where(both, imaginary.slope - 1j * real.slope, 0))
    return bool(both.all() and (distance <= real.tolerance + imaginary.tolerance).all())


def times(factor: object, x: object) -> np.ndarray:
    """An operand or tangent times a number, in its own type, or complex if the number is."""
    x = host(x)
    rotated = isinstance(factor, complex) and not dtypes.is_complex(x.dtype)
    return np.asarray(x * factor).astype(np.complex128 if rotated else x.dtype)
