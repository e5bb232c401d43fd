"""Checks of transposes and pullbacks: the dot-product identity.

Cotangents are paired with tangents by the real part of their product, without conjugation; see `inner`.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import Any

import numpy as np

from corejax import jvp, linear_transpose, vjp
from corejax.core import Linear, Zero, as_value, aval_of, dtypes
from corejax.errors import CorejaxNotImplementedError, CorejaxTypeError, MissingRuleError, RuleError
from corejax_testing.case import Case
from corejax_testing.check import check
from corejax_testing.comparing import host
from corejax_testing.differences import vector
from corejax_testing.report import NotApplicable
from corejax_testing.tangents import (
    beyond,
    chosen,
    far,
    finite,
    operands,
    precision,
    regular,
    smooth,
    staged,
    subsets,
    tangible,
    with_complex,
    zeros_like,
)
from corejax_testing.tolerances import slack

Part = tuple[int, ...]


def inner(xs: Sequence[object], ys: Sequence[object]) -> tuple[float, float]:
    """The pairing of cotangents and tangents (the real part of the sum of products), and the sum of absolute values.

    The law of a transpose, `inner(ct, f(v)) == inner(transpose(ct), v)`, then even holds for functions that are linear
    only over the reals, such as `real` and `conj`. For those linear over the complex numbers, imaginary parts follow.
    """
    products = vector(xs) * vector(ys)
    return float(products.real.sum()), float(np.abs(products).sum())


# Pullbacks

@check("transpose")
def pullback_is_the_adjoint_of_jvp(case: Case) -> None:
    """<ct, jvp(v)> = <vjp(ct), v> for each subset of operands, in each precision, with cotangents of their types."""
    for variant in (*case.variants(), *islice(with_complex(case), 1, None)):
        positions = tangible(variant)
        each = regular(variant, positions)
        parts = subsets(positions, case.full)
        for part in parts if variant is case else parts[-1:]:
            _adjoint(each, part)


def _adjoint(case: Case, part: Sequence[int]) -> None:
    xs = chosen(case.args, part)
    function = case.function_of(part)
    outs, pull = vjp(function, *xs)
    cts = [_cotangent(case, out) for out in outs]
    vs = [case.direction(x) for x in xs]
    back = pull(cts)
    for i, x, ct in zip(part, xs, back, strict=True):
        if not aval_of(ct).matches(aval_of(x).tangent):
            raise case.fail("transpose", f"the cotangent of operand {i} doesn't have its type", got=str(aval_of(ct)),
                            wanted=str(aval_of(x).tangent), todo="sum over what the operand was broadcast along, and "
                            "convert to its dtype")
    dots = jvp(function, xs, vs)[1]
    left, right = inner(*_tangible_pairs(cts, dots)), inner(back, vs)
    found = _apart(left, right, precision(*xs, *outs), slack(case, *xs, *outs) * _weight(cts, vs))
    if found:
        raise case.fail("transpose", f"the pullback to {operands(part)} is not the adjoint of jvp", got=found,
                        wanted="<ct, jvp(v)> = <vjp(ct), v>, without conjugation",
                        todo="fix transpose of this primitive, or of what its jvp computes with")


@check("transpose")
def pullbacks_at_special_points_are_adjoint(case: Case) -> None:
    """Where operands are 0, 1 or -1, even if no derivative exists there, a pullback is as finite as tangents are."""
    if case.sample.domain is None:
        raise NotApplicable("it has no domain from which to take special points")
    if not case.representative:
        raise NotApplicable("another sample stands for this one")
    for variant in with_complex(case):
        positions = tangible(variant)
        for value in (0.0, 1.0, -1.0):
            args = variant.filled(value, positions, at_singular=True)
            if args is None:
                continue
            each, xs = variant.with_args(args), chosen(args, positions)
            if finite(jvp(smooth(each, positions), xs, [each.direction(x) for x in xs])[1]):
                _adjoint(each, positions)


@check("transpose")
def pullback_is_linear(case: Case) -> None:
    """Cotangents of operands add up and scale with those of results, any of which may be known to be zero."""
    positions = tangible(case)
    each = regular(case, positions, backward=True)
    xs = chosen(each.args, positions)
    outs, pull = vjp(each.function_of(positions), *xs)
    one, other = [[_cotangent(case, out) for out in outs] for _ in range(2)]
    both, twice = [[(_plus if dtypes.is_inexact(aval_of(a).dtype) else lambda a, b: a)(a, b)
                    for a, b in zip(one, more, strict=True)] for more in (other, one)]
    at_one, at_other, none = pull(one), pull(other), pull([zeros_like(out) for out in outs])
    wanted, rtol = vector(at_one) + vector(at_other), max(1e-10, 64 * precision(*xs, *outs))
    for problem, got, value in (("of u + v is not the sum of theirs", pull(both), wanted),
                                ("of 2 u is not twice that of u", pull(twice), 2 * vector(at_one)),
                                ("of zeros is not zero", none, 0 * wanted)):
        found = beyond(got, value, vector(got), rtol * (np.abs(wanted) + np.abs(wanted).max(initial=0.0))
                       + slack(case, *outs))
        if found:
            raise case.fail("transpose", f"the pullback {problem}", got=found, wanted="a linear rule",
                            todo="each term of a cotangent has exactly one factor that is a cotangent")
    smooths = [k for k, out in enumerate(outs) if dtypes.is_inexact(aval_of(out).dtype)]
    for k in smooths if len(smooths) > 1 else ():
        _with_zeros(each, positions, one, k, pull)


def _with_zeros(case: Case, positions: Sequence[int], cts: Sequence[Any], k: int, pull: Any) -> None:
    """Check that with a cotangent for one result, symbolic zeros and zeros for the others give the same."""
    function = case.function_of(positions)
    alone = vjp(lambda *xs: function(*xs)[k], *chosen(case.args, positions))[1](cts[k])
    padded = pull([ct if i == k else zeros_like(ct) for i, ct in enumerate(cts)])
    found = far(padded, alone, atol=slack(case, *alone))
    if found:
        raise case.fail("transpose", f"with a cotangent of result {k} alone, it gives a different result than with "
                        "zeros for the others", got=found, wanted="the same",
                        todo="a Zero(aval) in cotangents stands for zeros of that type")


@check("transpose")
def pullback_under_jit_equals_eager(case: Case) -> None:
    """The pullback can be traced, with or without its operands. Quick mode traces it, full mode compiles it."""
    positions = tangible(case)
    each = regular(case, positions, backward=True)
    function, xs = smooth(each, positions), chosen(each.args, positions)
    n = len(xs)
    pull = vjp(function, *xs)[1]
    cts = [each.direction(out) for out in function(*xs)]

    def whole(*args: Any) -> list[Any]:
        return list(vjp(function, *args[:n])[1](list(args[n:])))

    wanted = pull(cts)
    for what, got in (("", staged(case, whole, *xs, *cts)(*xs, *cts)),
                      (" by itself", staged(case, lambda *cts: list(pull(list(cts))), *cts)(*cts))):
        found = far(wanted, got, 1e-9, atol=slack(case, *wanted))
        if found:
            raise case.fail("transpose", f"traced{what}, the pullback gives something different", got=found,
                            wanted="the same", todo="compute with operations that can be traced")


# Transposes

@check("transpose")
def transpose_is_the_adjoint(case: Case) -> None:
    """<ct, f(v)> = <transpose(ct), v> for each subset of operands in which it is linear, in each precision.

    Without elements, results don't show in what it is linear: another sample does, and types are compared.
    """
    if not _has_elements(case):
        return _transposes_nothing(case)
    parts = linear_parts(case)
    for variant in (*case.variants(), *islice(with_complex(case), 1, None)):
        for part, whole in parts:
            if variant is case or part == whole:
                _transposes(variant, part, whole)


def _has_elements(case: Case) -> bool:
    return any([aval.size and dtypes.is_inexact(aval.dtype) for aval in case.out_avals])


def _transposes_nothing(case: Case) -> None:
    """Check the types of what the rule returns for cotangents without elements."""
    others = [Case(case.primitive, each, case.number, case.check, case.full) for each in case.alike()
              if each.params == case.params]
    other = next((each for each in others if _has_elements(each)), None)
    if other is None:
        raise NotApplicable("nothing is floating, or there are no elements")
    for part, _ in linear_parts(other):
        _transposed(case, part, case.args, [_cotangent(case, out) for out in case.apply(*case.args)])


def _transposes(case: Case, part: Part, whole: Part) -> None:
    """Check the rule itself, called in the way that a backward pass does."""
    args = _with_zeros_beside(case, part, whole)
    vs = [case.direction(x) for x in chosen(args, part)]
    outs = case.function_of(part, args)(*vs)
    cts = [_cotangent(case, out) for out in outs]
    back = _transposed(case, part, args, cts)
    eps = precision(*vs, *outs)
    found = _apart(inner(*_tangible_pairs(cts, outs)), inner(back, vs), eps,
                   slack(case, *vs, *outs) * _weight(cts, vs))
    if found:
        raise case.fail("transpose", f"with respect to {operands(part)} it is not the adjoint", got=found,
                        wanted="<ct, f(v)> = <transpose(ct), v>, without conjugation",
                        todo="fix the rule: its sign, its axes, or a missing or an extra conjugation")
    more = [_cotangent(case, out) for out in outs]
    total = [_plus(a, b) if dtypes.is_inexact(aval_of(a).dtype) else a for a, b in zip(cts, more, strict=True)]
    other, both = [_transposed(case, part, args, each) for each in (more, total)]
    size = np.abs(vector(back)) + np.abs(vector(other))
    found = beyond(both, vector(back) + vector(other), vector(both),
                   64 * eps * (size + size.max(initial=0.0)) + slack(case, *outs))
    if found:
        raise case.fail("transpose", f"with respect to {operands(part)} it is not linear in the cotangent", got=found,
                        wanted="transpose(a + b) = transpose(a) + transpose(b)",
                        todo="each term of a cotangent has exactly one factor that is a cotangent")


def _transposed(case: Case, part: Part, args: Sequence[object], cts: Sequence[object]) -> list[Any]:
    """What the rule returns for the chosen operands, after checking its form, with zeros for None."""
    primitive = case.primitive
    given = [Linear(aval_of(x).tangent) if i in part else as_value(x) for i, x in enumerate(args)]
    values = [Zero(aval_of(ct)) if aval_of(ct).dtype is dtypes.float0 else as_value(ct) for ct in cts]
    back = primitive.transpose(values if primitive.multiple_results else values[0], given, **case.params)
    if not isinstance(back, (list, tuple)) or len(back) != len(args):
        raise case.fail("transpose", "it doesn't return a sequence with an entry for each operand",
                        got=type(back).__name__
                        + f" of {len(back)}" * isinstance(back, (list, tuple)), wanted=f"a list of {len(args)}",
                        todo="return a cotangent, or None, for each operand")
    extra = [i for i, ct in enumerate(back) if i not in part and ct is not None and type(ct) is not Zero]
    if extra:
        raise case.fail("transpose", f"it returns a cotangent for operand {extra[0]}, which is a value", wanted="None",
                        got=str(aval_of(back[extra[0]])), todo="only what arrives as Linear(aval) has a cotangent")
    found = []
    for i in part:
        wanted, ct = aval_of(args[i]).tangent, back[i]
        if ct is None or type(ct) is Zero:
            ct = zeros_like(args[i])
        if not aval_of(ct).matches(wanted):
            raise case.fail("transpose", f"the cotangent of operand {i} doesn't have its type", got=str(aval_of(ct)),
                            wanted=str(wanted), todo="sum over what it was broadcast along; convert to its dtype")
        found.append(ct)
    return found


@check("transpose")
def transposing_twice_gives_the_original(case: Case) -> None:
    """The transpose of the transpose is the primitive: what the rule computes with has correct transposes, too."""
    for part, whole in linear_parts(case):
        args = _with_zeros_beside(case, part, whole)
        vs = [case.direction(x) for x in chosen(args, part)]
        function = smooth(case, part, args)
        outs = function(*vs)
        transposed = linear_transpose(function, *vs)
        back = linear_transpose(lambda *cts, transposed=transposed: transposed(list(cts)), *outs)(tuple(vs))
        found = far(outs, back, atol=slack(case, *outs))
        if found:
            raise case.fail("transpose", f"transposed twice with respect to {operands(part)}, it differs", got=found,
                            wanted="the primitive's own results", todo="fix the rule, or those that it computes with")


# The operands in which it is linear

def linear_parts(case: Case) -> list[tuple[Part, Part]]:
    """Sets of operands in which it is linear, by declaration or by experiment, the largest last.

    Each comes with a larger set: it is linear in the smaller set if the other operands of the larger one are zero.
    """
    declared = set(case.primitive.linear or ())
    positions = [i for i in case.inexact if case.avals[i].size]
    if not positions or not _has_elements(case):
        raise NotApplicable("nothing is floating, or there are no elements")
    if not finite(case.args) or precision(*case.args) > 1e-3:
        raise NotApplicable("not all operands are finite and precise enough to see whether it is linear")
    whole = tuple([i for i in positions if i in declared])
    if whole and not _is_linear(case, whole):
        raise case.fail("linear", "it isn't linear in the operands that it declares", got=f"linear = {whole}",
                        wanted="f(a u + b v) = a f(u) + b f(v)",
                        todo="declare the ones in which it is linear, or write jvp")
    found = {part: whole for part in (subsets(whole, True) if whole else ())}
    for larger in sorted(subsets(positions), key=len, reverse=True):
        if larger not in found and _is_linear(case, larger) and _has_rule(case, larger):
            found |= {part: larger for part in subsets(larger, True) if part not in found}
    if not found:
        raise NotApplicable("it is not linear in any operand, or declares no transpose")
    return sorted(found.items(), key=lambda item: (len(item[0]), item[0]))


def _is_linear(case: Case, part: Sequence[int]) -> bool:
    """Whether the results are jointly linear in these operands, with the others fixed."""
    function = smooth(case, part)
    xs = chosen(case.args, part)
    us, vs = [[case.direction(x) for x in xs] for _ in range(2)]
    eps = precision(*xs)
    at_u, at_v, at_sum, at_twice, at_zero = [vector(function(*values)) for values in (
        us, vs, list(map(_plus, us, vs)), list(map(_plus, us, us)), [zeros_like(x) for x in xs])]
    size = np.abs(at_u) + np.abs(at_v)
    tolerance = 64 * eps * (size + size.max(initial=0.0))
    return not (at_zero.any() or (np.abs(at_u + at_v - at_sum) > tolerance).any()
                or (np.abs(2 * at_u - at_twice) > tolerance).any())


def _has_rule(case: Case, part: Part) -> bool:
    """Whether it can be transposed with respect to these operands."""
    cts = [zeros_like(out) for out in case.apply(*case.args)]
    try:
        _transposed(case, part, case.args, cts)
    except (CorejaxNotImplementedError, CorejaxTypeError) as error:
        if isinstance(error, (RuleError, MissingRuleError)):
            raise
        return False
    return True


def _with_zeros_beside(case: Case, part: Part, whole: Part) -> list[Any]:
    """The operands, with zeros for those that are only in the larger set."""
    return [np.zeros(aval.shape, aval.dtype) if i in whole and i not in part else x
            for i, (x, aval) in enumerate(zip(case.args, case.avals, strict=True))]


def _cotangent(case: Case, out: object) -> Any:
    return case.direction(out) if dtypes.is_inexact(aval_of(out).dtype) else zeros_like(out)


def _tangible_pairs(cts: Sequence[object], dots: Sequence[object]) -> tuple[list[Any], list[Any]]:
    kept = [k for k, ct in enumerate(cts) if dtypes.is_inexact(aval_of(ct).dtype)]
    return [cts[k] for k in kept], [dots[k] for k in kept]


def _plus(x: object, y: object) -> np.ndarray:
    return np.asarray(host(x) + host(y), host(x).dtype)


def _weight(*factors: Sequence[object]) -> float:
    """The largest sum of what the errors of results are multiplied by in a pairing."""
    return max([float(np.abs(vector([x for x in each if dtypes.is_inexact(aval_of(x).dtype)])).sum())
                for each in factors], default=0.0)


def _apart(left: tuple[float, float], right: tuple[float, float], eps: float, atol: float) -> str | None:
    """None if two pairings agree as well as can be expected from their sizes; else what differs."""
    limit = max(1e-10, 200 * eps) * (left[1] + right[1]) + atol
    return None if abs(left[0] - right[0]) <= limit else f"{left[0]:.17g} and {right[0]:.17g}"
