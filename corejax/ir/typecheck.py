"""Checks that a jaxpr is well formed: variables are bound once and before use, types are as the primitives infer."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from corejax.base.avals import ShapedArray
from corejax.base.errors import CorejaxError, CorejaxTypeError, RuleError
from corejax.base.source import at_hand, tell_where
from corejax.kernel.axes import AxisEnv
from corejax.kernel.binding import check_operands, ill_typed, names_of
from corejax.kernel.context import binding
from corejax.kernel.jaxpr import Effects, Jaxpr, JaxprEqn, Var, no_effects, subjaxprs
from corejax.kernel.printing import effect_texts
from corejax.kernel.varying import are_types_of


def typecheck(jaxpr: Jaxpr) -> None:
    """Raise a `CorejaxTypeError` that shows the ill-typed equation, unless `jaxpr` is well formed.

    Types must be equal to what `abstract_eval` (or the `typecheck` hook) infers from the operands' types, weak types
    included; but variables may vary along more axes of a mesh. The jaxprs in params are checked too. A jaxpr that has
    passed isn't checked again.
    """
    if "typechecked" in jaxpr._memo:
        return
    bound: set[Var] = set()
    for var in (*jaxpr.constvars, *jaxpr.invars):
        _check_binder(jaxpr, None, var, bound)
    effects = no_effects
    outer, around = at_hand.eqn, at_hand.around
    try:
        at_hand.around = sys._getframe(), outer, around
        for k, eqn in enumerate(jaxpr.eqns):
            at_hand.eqn = eqn
            check_operands(jaxpr, k, eqn.invars, bound)
            _check_params(jaxpr, k, eqn)
            with binding(_axes_within(eqn)):
                for inner in subjaxprs(eqn.params):
                    _check_inner(jaxpr, k, inner)
            avals = tuple([x.aval for x in eqn.invars])
            _check_types(jaxpr, k, eqn, avals)
            _check_effects(jaxpr, k, eqn, avals)
            if eqn.effects:
                effects = effects | eqn.effects
            for var in eqn.outvars:
                _check_binder(jaxpr, k, var, bound)
    except CorejaxError as error:
        tell_where(error)
        raise
    finally:
        at_hand.eqn, at_hand.around = outer, around
    check_operands(jaxpr, len(jaxpr.eqns), jaxpr.outvars, bound)
    if jaxpr.effects != effects:
        raise CorejaxTypeError("a jaxpr must have the effects of its equations", got=_effects_text(jaxpr.effects),
                               wanted=_effects_text(effects))
    jaxpr._memo["typechecked"] = True


def _check_binder(jaxpr: Jaxpr, k: int | None, var: Var, bound: set[Var]) -> None:
    if type(var) is not Var or not isinstance(var.aval, ShapedArray):
        raise ill_typed(jaxpr, k, "binds something that isn't a variable", got=repr(var),
                        wanted="a Var with a ShapedArray")
    if var in bound:
        raise ill_typed(jaxpr, k, f"binds `{names_of(jaxpr)[var]}` a second time", got=repr(var),
                     wanted="a variable that is bound once")
    bound.add(var)


def _check_params(jaxpr: Jaxpr, k: int, eqn: JaxprEqn) -> None:
    known = getattr(eqn.primitive, "params", None)
    at_least = getattr(eqn.primitive, "open_params", False)
    if known is not None and known != eqn.params.keys() and not (at_least and known <= eqn.params.keys()):
        raise ill_typed(jaxpr, k, "doesn't have the params of its primitive",
                        got=", ".join(sorted(eqn.params)) or "none",
                     wanted=", ".join(sorted(known)) or "none")


def _axes_within(eqn: JaxprEqn) -> AxisEnv:
    """The axes that programs among the params may name."""
    named = getattr(getattr(eqn.primitive, "plugin", None), "axes_within", None)
    return () if named is None else tuple(named(**eqn.params))


def _check_inner(jaxpr: Jaxpr, k: int, inner: Jaxpr) -> None:
    if inner.constvars:
        raise ill_typed(jaxpr, k, "has a jaxpr with constvars among its params", got=str(inner),
                     wanted="a jaxpr without constvars", todo="make them operands: consts_to_operands(closed)")
    try:
        typecheck(inner)
    except CorejaxTypeError as error:
        raise ill_typed(jaxpr, k, "has an ill-typed jaxpr among its params", got=str(error).replace("\n", "\n    "),
                     wanted="well-typed jaxprs") from error


def _check_types(jaxpr: Jaxpr, k: int, eqn: JaxprEqn, avals: tuple[ShapedArray, ...]) -> None:
    primitive = eqn.primitive
    hook = primitive.typecheck
    try:
        inferred = hook(avals, **eqn.params) if hook is not None else primitive.infer(avals, eqn.params)
    except RuleError:
        raise
    except CorejaxTypeError as error:
        raise ill_typed(jaxpr, k, f"has operands or params that {primitive.name} rejects",
                     got=str(error).replace("\n", "\n    ")) from error
    wanted = tuple(inferred) if primitive.multiple_results else (inferred,)
    got = tuple([v.aval for v in eqn.outvars])
    if got != wanted and not are_types_of(got, wanted):
        raise ill_typed(jaxpr, k, "has outputs of different types than its primitive infers", got=_types_text(got),
                     wanted=_types_text(wanted))


def _check_effects(jaxpr: Jaxpr, k: int, eqn: JaxprEqn, avals: tuple[ShapedArray, ...]) -> None:
    hook = eqn.primitive.effects
    if hook is not None:
        wanted = hook(avals, **eqn.params)
    else:
        wanted = no_effects.union(*[inner.effects for inner in subjaxprs(eqn.params)])
    if eqn.effects != wanted:
        raise ill_typed(jaxpr, k, "has different effects than its primitive", got=_effects_text(eqn.effects),
                     wanted=_effects_text(wanted))


def _types_text(avals: Sequence[ShapedArray]) -> str:
    return ", ".join(map(str, avals)) or "no outputs"


def _effects_text(effects: Effects) -> str:
    return f"{{{', '.join(effect_texts(effects))}}}"
