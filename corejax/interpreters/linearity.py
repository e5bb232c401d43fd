"""Checks that jvp rules are linear in the tangents.

Nothing is computed for this. A rule has left equations behind, on a tape or in a jaxpr. Each of their operands either
depends on a tangent or it doesn't, and the rules of the primitives applied say what may be done to one that does.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeAlias

import numpy as np

from corejax.arrays.array import is_concrete
from corejax.base.avals import Linear
from corejax.base.errors import CorejaxError, NotLinearError, RuleError
from corejax.base.source import at_hand, tell_where
from corejax.kernel import checks
from corejax.kernel.jaxpr import JaxprEqn, Var, subjaxprs
from corejax.kernel.primitive import Primitive, Rule
from corejax.kernel.trace import Tracer

Reached: TypeAlias = Callable[[JaxprEqn, set[Var]], Iterable[Var]]


def check_taped(primitive: Primitive, eqns: Sequence[Any], nans: bool = True) -> None:
    """Check that what a jvp rule put on the tape is linear in the tangents, as far as the equations' own rules tell.

    `nans` says whether a nan counts as a constant term.
    """
    for applied, operands, _, _ in eqns:
        if applied is not primitive:
            problem = _not_linear(applied, operands, [i for i, x in enumerate(operands) if type(x) is Linear], nans)
            if problem is not None:
                raise _error(primitive, problem)


def check_staged(primitive: Primitive, eqns: Sequence[JaxprEqn], tangents: Iterable[Var], outs: Any) -> None:
    """The same for equations of a jaxpr, in which a rule computed the tangents `outs` from the variables `tangents`.

    An equation that carries a program may have results that depend on no tangent although an operand does. Since that
    is expensive to find out, it is only done if the check fails otherwise.
    """
    problem = _first_problem(primitive, eqns, {*tangents}, _all_outputs)
    if problem is not None:
        problem = _first_problem(primitive, eqns, {*tangents}, _reached_outputs)
    if problem is not None:
        raise _error(primitive, problem)
    for out in outs if type(outs) in (list, tuple) else (outs,):
        if not isinstance(out, Tracer):
            check_constant(primitive, "jvp", out)


def check_constant(primitive: Primitive, hook: str, tangent: object) -> None:
    """Raise if a tangent that depends on no other isn't zero."""
    if _is_nonzero(tangent):
        raise _error(primitive, "a tangent that depends on no tangent of an operand", hook)


def _first_problem(primitive: Primitive, eqns: Sequence[JaxprEqn], depend: set[Var], reached: Reached) -> str | None:
    """What isn't linear in the variables `depend`. Variables computed from them are added to that set."""
    outer, around = at_hand.eqn, at_hand.around
    try:
        at_hand.around = sys._getframe(), outer, around
        for eqn in eqns:
            at_hand.eqn = eqn
            if depend.isdisjoint(eqn.invars):
                continue
            if eqn.primitive is not primitive:
                unknown = [i for i, x in enumerate(eqn.invars) if x in depend]
                problem = _not_linear(eqn.primitive, [getattr(x, "val", None) for x in eqn.invars], unknown)
                if problem is not None:
                    return problem
            depend.update(reached(eqn, depend))
    except CorejaxError as error:
        tell_where(error)
        raise
    finally:
        at_hand.eqn, at_hand.around = outer, around
    return None


def _all_outputs(eqn: JaxprEqn, depend: set[Var]) -> Iterable[Var]:
    return eqn.outvars


def _reached_outputs(eqn: JaxprEqn, depend: set[Var]) -> Iterable[Var]:
    """The results that certainly depend on one of these variables, by the primitive's own rules for its programs."""
    if next(subjaxprs(eqn.params), None) is None:
        return eqn.outvars
    if eqn.primitive.partial_eval is not None and not eqn.effects:
        unknown = eqn.primitive.partial_eval(eqn, tuple([x in depend for x in eqn.invars]))[2]
        if not all(unknown):
            return [v for v, u in zip(eqn.outvars, unknown, strict=True) if u]
    dce = eqn.primitive.dce
    return () if dce is None else _by_dce(eqn, dce, depend)


def _by_dce(eqn: JaxprEqn, dce: Rule, depend: set[Var]) -> Iterator[Var]:
    none = (False,) * len(eqn.outvars)
    if True in dce(eqn, none)[0] and not eqn.effects:
        return  # the rule keeps operands that nothing uses, so it says nothing about dependence
    for k, var in enumerate(eqn.outvars):
        used, _ = dce(eqn, (*none[:k], True, *none[k + 1:]))
        if any([u and x in depend for x, u in zip(eqn.invars, used, strict=True)]):
            yield var


def _not_linear(applied: Any, operands: Sequence[object], unknown: Sequence[int], nans: bool = True) -> str | None:
    """What a primitive does that isn't linear in the operands at `unknown`, the tangents; None if it is linear."""
    factors, jointly = applied.factors, applied.linear or ()
    if factors is not None:
        jointly = [i for i, factor in enumerate(factors) if type(factor) is int]
    if not set(unknown).difference(jointly):
        for i in set(jointly).difference(unknown):
            if i < len(operands) and _is_nonzero(operands[i], nans):
                return f"{applied.name} of a tangent and a constant"
    elif (len(unknown) > 1 and (factors is not None or applied.linear_in.issuperset(unknown))) or (
            _refuses_tangents(applied) or not applied.not_linear_in.isdisjoint(unknown)):
        return f"{applied.name} of {'a tangent' if len(unknown) == 1 else 'two tangents'}"
    return None


def _refuses_tangents(applied: Any) -> bool:
    """Whether a primitive is linear in no operand; with `partial_eval`, it may take values and tangents together."""
    return applied.partial_eval is None and getattr(applied.transpose, "refuses", False)


def _is_nonzero(value: object, nans: bool = True) -> bool:
    """Whether the value is known to have a nonzero element; without `nans`, a nan doesn't count as one."""
    if not is_concrete(value):
        return False
    found = np.asarray(value)
    return bool(found.any() if nans else found[found == found].any())


def _error(primitive: Primitive, got: str, hook: str = "jvp") -> RuleError:
    return checks.rule_error(primitive, hook, "is not linear in the tangents", got,
                             "sums of tangents, each multiplied by what depends on primals only",
                             "leave out constant terms, and products or other functions of tangents", NotLinearError)
