"""Checks of hooks that deal with equations. What they return is checked as a whole, whoever calls them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from corejax.base.avals import Linear, aval_of
from corejax.base.effects import SITUATIONS, Effect
from corejax.base.errors import CorejaxError, CorejaxNotImplementedError, RuleError
from corejax.base.source import here
from corejax.kernel.checks.blame import describe, failed, rule_error
from corejax.kernel.checks.forms import check_avals, check_types
from corejax.kernel.jaxpr import Atom, Effects, JaxprEqn, Var, subjaxprs
from corejax.kernel.varying import are_types_of

if TYPE_CHECKING:
    from corejax.kernel.primitive import Avals, Primitive, Rule


def checked(primitive: Primitive, hook: str, rule: Rule) -> Rule:
    """A rule for one of `WHOLE_RESULTS`, with its result checked."""
    check = WHOLE_RESULTS[hook]

    def call(*args: Any, **params: Any) -> Any:
        eqn = args[0] if args and isinstance(args[0], JaxprEqn) else None
        before = None if eqn is None else (tuple(eqn.invars), tuple(eqn.outvars), dict(eqn.params))
        try:
            result = rule(*args, **params)
        except Exception as error:
            raise failed(primitive, hook, error)  # noqa: B904
        if eqn is not None and before != (tuple(eqn.invars), tuple(eqn.outvars), eqn.params):
            raise rule_error(primitive, hook, "changes the equation that it was given", eqn, "the equation unchanged",
                             "make a new one: eqn.replace(params={**eqn.params, ...})")
        return check(primitive, result, *args, **params)
    return call


def check_effects(primitive: Primitive, result: object, *_: Any, **__: Any) -> Effects:
    """The effects of an equation, none of which refuses to be held by the primitive."""
    if not isinstance(result, frozenset):
        raise rule_error(primitive, "effects", "didn't return a set of effects", describe(result), "a frozenset",
                         "return frozenset((EFFECT,)), or frozenset() where there is none")
    for effect in result:
        if type(effect) is not Effect:
            raise rule_error(primitive, "effects", "returned something that is no effect", describe(effect), "Effects",
                             "declare it, EFFECT = Effect('mypack.log'), and return frozenset((EFFECT,))")
    if result and primitive.holds is not None:
        refuse(primitive, result, primitive.holds)
    return result


def check_effects_allowed(primitive: Primitive, situation: str, args: Sequence[object], params: Mapping[str, Any]
                          ) -> None:
    """Raise if the primitive has an effect that refuses this situation; programs among its params are asked inside."""
    assert primitive.effects is not None
    if next(subjaxprs(params), None) is None:
        avals = tuple([x.aval if type(x) is Linear else aval_of(x) for x in args])
        refuse(primitive, primitive.effects(avals, **params), situation)


def refuse(primitive: Primitive, effects: Effects, situation: str) -> None:
    """Raise if any of these effects refuses to happen in this situation."""
    found = sorted([effect for effect in effects if situation in effect.refused], key=repr)
    if found:
        reason, _, todo = found[0].refused[situation].partition("; ")
        raise CorejaxNotImplementedError(
            f"{primitive.name}: the effect {found[0]} can't happen {SITUATIONS[situation]}: {reason}",
            primitive=primitive.name, pack=primitive.origin, hook="effects", where=here(),
            got=f"the effects {', '.join(map(str, found))}", wanted=f"programs without {found[0]} there",
            todo=todo or "move what has the effect out of there")


def check_pretty(primitive: Primitive, result: object, **_: Any) -> Mapping[str, Any]:
    """The params to print."""
    if isinstance(result, Mapping) and all([isinstance(name, str) for name in result]):
        return result
    raise rule_error(primitive, "pretty", "didn't return a mapping of names", describe(result),
                     "a mapping of names to what to print", "return a dict, such as {'axes': axes}")


def check_typecheck(primitive: Primitive, result: object, avals: Avals, **params: Any) -> Any:
    """The types of the results, which must agree with abstract_eval."""
    types, expected = check_avals(primitive, result, "typecheck"), primitive.infer(avals, params)
    if isinstance(types, tuple):
        check_types(primitive, "typecheck", [t.invariant for t in types], [t.invariant for t in expected])
    else:
        check_types(primitive, "typecheck", [types.invariant], [expected.invariant])
    return expected


def check_dce(primitive: Primitive, result: object, eqn: JaxprEqn, used_out: Sequence[bool]
              ) -> tuple[Sequence[bool], JaxprEqn | None]:
    """Which operands a smaller equation uses, and that equation or None."""
    todo = "return (used_in, smaller equation or None), with one flag for each operand"
    if not isinstance(result, (list, tuple)) or len(result) != 2:
        raise rule_error(primitive, "dce", "didn't return a pair", describe(result), "(used_in, equation or None)",
                         todo)
    used_in, smaller = result
    if not _are_flags(used_in, len(eqn.invars)):
        raise rule_error(primitive, "dce", "doesn't say for each operand whether it is used", describe(used_in),
                         f"a sequence of {len(eqn.invars)} booleans", todo)
    if smaller is None:
        if any(used_out) or eqn.effects:
            raise rule_error(primitive, "dce", "dropped an equation that is needed", "None", "an equation", todo)
        return used_in, smaller
    if not isinstance(smaller, JaxprEqn):
        raise _no_equation(primitive, "dce", "smaller", smaller)
    needed = [v for v, used in zip(eqn.outvars, used_out, strict=True) if used]
    if not set(needed) <= set(smaller.outvars):
        raise rule_error(primitive, "dce", "dropped an output that is used", smaller,
                         f"all of {len(needed)} used outputs", todo)
    operands = [x for x, used in zip(eqn.invars, used_in, strict=True) if used]
    if list(smaller.invars) != operands:
        raise rule_error(primitive, "dce", "kept different operands than it says", smaller, f"{len(operands)} operands",
                         todo)
    _check_equation(primitive, "dce", "smaller", smaller)
    return used_in, smaller


def check_partial_eval(primitive: Primitive, result: object, eqn: JaxprEqn, unknown_in: Sequence[bool], *_: Any) -> Any:
    """Two equations or None, which outputs are unknown, and the residuals."""
    if not isinstance(result, (list, tuple)) or len(result) != 4:
        raise _bad_split(primitive, "didn't split the equation", describe(result), _DIVIDED)
    known, staged, unknown_out, residuals = result
    for name, part in (("known", known), ("staged", staged)):
        if part is not None:
            _check_equation(primitive, "partial_eval", name, part)
    if not _are_flags(unknown_out, len(eqn.outvars)):
        raise _bad_split(primitive, "doesn't say for each output whether it is unknown", describe(unknown_out),
                         f"a sequence of {len(eqn.outvars)} booleans")
    now = set(known.outvars) if known is not None else set()
    later = set(staged.outvars) if staged is not None else set()
    for i, (var, unknown) in enumerate(zip(eqn.outvars, unknown_out, strict=True)):
        if var not in (later if unknown else now):
            part = "staged" if unknown else "known"
            raise _bad_split(primitive, f"nothing computes output {i}", f"a {part} equation without it",
                             f"the {part} equation to have it among its outputs, as unknown_out says")
    given = {x for x, unknown in zip(eqn.invars, unknown_in, strict=True) if not unknown}
    _check_reads(primitive, "known", known, given)
    _check_reads(primitive, "staged", staged, now.union(eqn.invars))
    if not isinstance(residuals, (list, tuple)) or not now.issuperset(residuals):
        raise _bad_split(primitive, "names residuals that the known equation doesn't compute", describe(residuals),
                         "a sequence of variables, outputs of the known equation")
    return result


def check_recompute(primitive: Primitive, result: object, eqn: JaxprEqn, unknown_in: Sequence[bool], *_: Any) -> Any:
    """An equation or None, one that computes all results, which outputs are unknown, and what is saved; or None."""
    if result is None:
        return None
    if not isinstance(result, (list, tuple)) or len(result) != 4 or result[1] is None:
        raise _bad_split(primitive, "didn't split the equation", describe(result), _RECOMPUTED, "recompute")
    known, staged, unknown_out, saved = result
    for name, part in (("known", known), ("staged", staged)):
        if part is not None:
            _check_equation(primitive, "recompute", name, part)
    if not _are_flags(unknown_out, len(eqn.outvars)):
        raise _bad_split(primitive, "doesn't say for each output whether it is unknown", describe(unknown_out),
                         f"a sequence of {len(eqn.outvars)} booleans", "recompute")
    now = set(known.outvars) if known is not None else set()
    if not isinstance(saved, (list, tuple)) or not now.issuperset(saved):
        raise _bad_split(primitive, "saves what the known equation doesn't compute", describe(saved),
                         "a sequence of variables, outputs of the known equation", "recompute")
    missing = {*eqn.outvars} - {*staged.outvars, *saved}
    if missing:
        raise _bad_split(primitive, "the staged equation doesn't compute all outputs", f"{len(missing)} are missing",
                         "all outputs, but for those that are saved", "recompute")
    given = {x for x, unknown in zip(eqn.invars, unknown_in, strict=True) if not unknown}
    _check_reads(primitive, "known", known, given, "recompute")
    _check_reads(primitive, "staged", staged, {*saved, *eqn.invars}, "recompute")
    return result


def _check_reads(primitive: Primitive, name: str, eqn: JaxprEqn | None, readable: set[Atom],
                 hook: str = "partial_eval") -> None:
    if eqn is not None and not readable.issuperset([x for x in eqn.invars if type(x) is Var]):
        raise _bad_split(primitive, f"its {name} equation reads something that isn't computed before it", eqn,
                         "known operands" if name == "known" else "operands, and what the known equation gives", hook)


def _check_equation(primitive: Primitive, hook: str, name: str, eqn: object) -> None:
    """Check that this is an equation, and well typed."""
    if not isinstance(eqn, JaxprEqn):
        raise _no_equation(primitive, hook, name, eqn)
    infer = getattr(eqn.primitive, "infer", None)
    if infer is None:
        return  # an object that stands in for a primitive, in an equation that is only ever bound
    try:
        types = infer(tuple([x.aval for x in eqn.invars]), dict(eqn.params))
    except CorejaxError as error:
        raise rule_error(primitive, hook, f"its {name} equation is ill-typed", error.message, "a well-typed equation",
                         "give it the operands and params that its primitive takes") from error
    wanted = types if type(types) is tuple else (types,)
    got = tuple([v.aval for v in eqn.outvars])
    if got != wanted and not are_types_of(got, wanted):
        raise rule_error(primitive, hook, f"its {name} equation is ill-typed", describe(got), describe(wanted),
                         "give it output variables of the types that its primitive infers")


def _no_equation(primitive: Primitive, hook: str, name: str, eqn: object) -> RuleError:
    return rule_error(primitive, hook, f"its {name} equation isn't an equation", describe(eqn), "a JaxprEqn, or None",
                      "make it by eqn.replace(invars=..., outvars=..., params=...)")


def _are_flags(flags: object, count: int) -> bool:
    return isinstance(flags, (list, tuple)) and len(flags) == count and all([type(flag) is bool for flag in flags])


def _bad_split(primitive: Primitive, problem: str, got: object, wanted: str, hook: str = "partial_eval") -> RuleError:
    return rule_error(primitive, hook, problem, got, wanted,
                      f"return {_DIVIDED if hook == 'partial_eval' else _RECOMPUTED} that belong together")


#: What the two hooks return that split an equation.
_DIVIDED = "(known_eqn or None, staged_eqn or None, unknown_out, residual_vars)"
_RECOMPUTED = "(known_eqn or None, staged_eqn, unknown_out, saved_vars)"

WHOLE_RESULTS: dict[str, Rule] = {
    "effects": check_effects, "partial_eval": check_partial_eval, "recompute": check_recompute, "dce": check_dce,
    "pretty": check_pretty, "typecheck": check_typecheck}
