"""Operations on jaxprs that transformations and higher-order primitives share.

None of them modifies a jaxpr: each returns a new one, or the same if there is nothing to do.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from corejax.base.errors import CorejaxError, CorejaxValueError
from corejax.base.source import at_hand, here, tell_where
from corejax.kernel.jaxpr import Atom, ClosedJaxpr, Jaxpr, JaxprEqn, Literal, Var, no_effects, subjaxprs


def consts_to_operands(closed: ClosedJaxpr) -> tuple[Jaxpr, tuple[Any, ...]]:
    """The jaxpr with its constvars as leading invars, and the values for these.

    >>> from corejax.ir import parse_jaxpr
    >>> jaxpr = parse_jaxpr("{ lambda a:f64[3] ; b:f64[]. let c:f64[3] = mul a b in (c,) }")
    >>> consts_to_operands(ClosedJaxpr(jaxpr, ["the constant"]))
    ({ lambda ; a:f64[3] b:f64[]. let c:f64[3] = mul a b in (c,) }, ('the constant',))
    """
    jaxpr = closed.jaxpr
    if not jaxpr.constvars:
        return jaxpr, ()
    return jaxpr.replace(constvars=(), invars=(*jaxpr.constvars, *jaxpr.invars)), closed.consts


def close(jaxpr: Jaxpr, consts: Sequence[object]) -> ClosedJaxpr:
    """The inverse of `consts_to_operands`: leading invars become constvars with these values.

    >>> from corejax.ir import parse_jaxpr
    >>> close(parse_jaxpr("{ lambda ; a:f64[3] b:f64[]. let c:f64[3] = mul a b in (c,) }"), ["the constant"])
    { lambda a:f64[3] ; b:f64[]. let c:f64[3] = mul a b in (c,) }
    """
    n = len(consts)
    if not n:
        return ClosedJaxpr(jaxpr) if not jaxpr.constvars else ClosedJaxpr(jaxpr, consts)
    return ClosedJaxpr(jaxpr.replace(constvars=(*jaxpr.constvars, *jaxpr.invars[:n]), invars=jaxpr.invars[n:]), consts)


def join_consts(closed: Sequence[ClosedJaxpr]) -> tuple[list[Jaxpr], tuple[Any, ...]]:
    """Jaxprs that all take the same leading operands: the constants of all of them, each object once.

    >>> from corejax.ir import parse_jaxpr
    >>> one = parse_jaxpr("{ lambda a:f64[] ; b:f64[]. let c:f64[] = add a b in (c,) }")
    >>> two = parse_jaxpr("{ lambda a:f64[] b:f64[] ; c:f64[]. let d:f64[] = fma a b c in (d,) }")
    >>> jaxprs, consts = join_consts([ClosedJaxpr(one, ["k"]), ClosedJaxpr(two, ["m", "k"])])
    >>> consts, *jaxprs
    (('k', 'm'), { lambda ; a:f64[] b:f64[] c:f64[]. let d:f64[] = add a c in (d,) }, \
{ lambda ; a:f64[] b:f64[] c:f64[]. let d:f64[] = fma b a c in (d,) })
    """
    merged = [dedup_consts(c) for c in closed]
    joint: dict[int, tuple[Any, Any]] = {}
    for c in merged:
        for var, const in zip(c.jaxpr.constvars, c.consts, strict=True):
            joint.setdefault(id(const), (const, var.aval))
    jaxprs = []
    for c in merged:
        own = {id(const): var for var, const in zip(c.jaxpr.constvars, c.consts, strict=True)}
        binders = [own.get(key) or Var(aval) for key, (_, aval) in joint.items()]
        jaxprs.append(c.jaxpr.replace(constvars=(), invars=(*binders, *c.jaxpr.invars)))
    return jaxprs, tuple([const for const, _ in joint.values()])


def dedup_consts(closed: ClosedJaxpr) -> ClosedJaxpr:
    """The same jaxpr, with a single constvar for each distinct constant object.

    >>> from corejax.ir import parse_jaxpr
    >>> jaxpr = parse_jaxpr("{ lambda a:f64[] b:f64[] ; . let c:f64[] = add a b in (c,) }")
    >>> dedup_consts(ClosedJaxpr(jaxpr, ["k", "k"]))
    { lambda a:f64[] ; . let b:f64[] = add a a in (b,) }
    """
    first: dict[int, tuple[Var, Any]] = {}
    same: dict[Var, Atom] = {}
    for var, const in zip(closed.jaxpr.constvars, closed.consts, strict=True):
        kept, _ = first.setdefault(id(const), (var, const))
        if kept is not var:
            same[var] = kept
    return ClosedJaxpr(substitute(closed.jaxpr, same), [c for _, c in first.values()]) if same else closed


def substitute(jaxpr: Jaxpr, atoms: Mapping[Var, Atom]) -> Jaxpr:
    """The jaxpr with atoms in place of some of its variables, which its head no longer binds.

    >>> from corejax.ir import parse_jaxpr
    >>> jaxpr = parse_jaxpr("{ lambda a:f64[] ; b:f64[]. let c:f64[] = mul a b in (c, a) }")
    >>> substitute(jaxpr, {jaxpr.constvars[0]: Literal(2.0, jaxpr.constvars[0].aval)})
    { lambda ; a:f64[]. let b:f64[] = mul 2.0:f64[] a in (b, 2.0:f64[]) }
    """
    if not atoms:
        return jaxpr
    get = atoms.get
    eqns = []
    for eqn in jaxpr.eqns:
        if not atoms.keys().isdisjoint(eqn.invars):
            eqn = eqn.replace(invars=[x if type(x) is Literal else get(x, x) for x in eqn.invars])
        eqns.append(eqn)
    return jaxpr.replace(constvars=[v for v in jaxpr.constvars if v not in atoms], eqns=eqns,
                         invars=[v for v in jaxpr.invars if v not in atoms],
                         outvars=[x if type(x) is Literal else get(x, x) for x in jaxpr.outvars])


def inline(jaxpr: Jaxpr, args: Sequence[Atom], consts: Sequence[Atom] = ()) -> tuple[list[JaxprEqn], list[Atom]]:
    """The equations of a jaxpr, applied to atoms of another one and with new output variables; and its results.

    >>> from corejax.ir import parse_jaxpr
    >>> inner = parse_jaxpr("{ lambda ; a:f64[]. let b:f64[] = sin a c:f64[] = mul a b in (c, a) }")
    >>> x = Var(inner.in_avals[0])
    >>> eqns, outs = inline(inner, [x])
    >>> Jaxpr((), [x], outs, eqns).eqns == inner.eqns, outs[1] is x
    (False, True)
    """
    env: dict[Atom, Atom] = dict(zip((*jaxpr.constvars, *jaxpr.invars), (*consts, *args), strict=True))
    eqns = []
    for eqn in jaxpr.eqns:
        invars = [x if type(x) is Literal else env[x] for x in eqn.invars]
        outvars = [Var(v.aval) for v in eqn.outvars]
        env.update(zip(eqn.outvars, outvars, strict=True))
        eqns.append(eqn.replace(invars=invars, outvars=outvars))
    return eqns, [x if type(x) is Literal else env[x] for x in jaxpr.outvars]


def reorder_invars(jaxpr: Jaxpr, order: Sequence[int]) -> Jaxpr:
    """The jaxpr with its invars in another order: the new i-th is the old `order[i]`-th.

    >>> from corejax.ir import parse_jaxpr
    >>> reorder_invars(parse_jaxpr("{ lambda ; a:f64[] b:i64[]. let in (a, b) }"), [1, 0])
    { lambda ; a:i64[] b:f64[]. let in (b, a) }
    """
    if sorted(order) != list(range(len(jaxpr.invars))):
        raise CorejaxValueError("the new order of the invars is not a permutation", got=list(order),
                                wanted=f"each of 0 to {len(jaxpr.invars) - 1} once", where=here())
    return jaxpr.replace(invars=[jaxpr.invars[i] for i in order])


def move_invars(jaxpr: Jaxpr, to_front: Sequence[bool]) -> Jaxpr:
    """The jaxpr with the marked invars first; otherwise the order stays the same.

    >>> from corejax.ir import parse_jaxpr
    >>> move_invars(parse_jaxpr("{ lambda ; a:i64[] b:f64[] c:f32[]. let in (a,) }"), [False, True, True])
    { lambda ; a:f64[] b:f32[] c:i64[]. let in (c,) }
    """
    return reorder_invars(jaxpr, sorted(range(len(jaxpr.invars)), key=lambda i: not _flags(jaxpr, to_front)[i]))


def _flags(jaxpr: Jaxpr, flags: Sequence[bool]) -> Sequence[bool]:
    if len(flags) != len(jaxpr.invars):
        raise CorejaxValueError("one flag for each invar", got=len(flags), wanted=len(jaxpr.invars), where=here())
    return flags


def select_outputs(jaxpr: Jaxpr, indices: Iterable[int]) -> Jaxpr:
    """The jaxpr with these outputs, in this order; equations stay (see `dce`).

    >>> from corejax.ir import parse_jaxpr
    >>> select_outputs(parse_jaxpr("{ lambda ; a:i64[] b:f64[]. let in (a, b) }"), [1, 1])
    { lambda ; a:i64[] b:f64[]. let in (b, b) }
    """
    return jaxpr.replace(outvars=[jaxpr.outvars[i] for i in indices])


def forwarded_outputs(jaxpr: Jaxpr) -> tuple[int | None, ...]:
    """For each output that is an input, the index of that invar; else None.

    >>> from corejax.ir import parse_jaxpr
    >>> forwarded_outputs(parse_jaxpr("{ lambda ; a:f64[] b:f64[]. let c:f64[] = sin a in (c, b) }"))
    (None, 1)
    """
    index = {var: i for i, var in enumerate(jaxpr.invars)}
    return tuple([None if type(x) is Literal else index.get(x) for x in jaxpr.outvars])


def count_eqns(jaxpr: Jaxpr, recursive: bool = True) -> int:
    """The number of equations, including those of jaxprs in params (each time that one occurs).

    >>> from corejax.ir import parse_jaxpr
    >>> count_eqns(parse_jaxpr("{ lambda ; . let () = call[jaxpr={ lambda ; . let () = halt in () }] in () }"))
    2
    """
    total, todo = 0, [jaxpr]
    while todo:
        eqns = todo.pop().eqns
        total += len(eqns)
        if recursive:
            todo += [inner for eqn in eqns for inner in subjaxprs(eqn.params)]
    return total


def dce(jaxpr: Jaxpr, used_outputs: Sequence[bool], instantiate: bool | Sequence[bool] = False
        ) -> tuple[Jaxpr, tuple[bool, ...]]:
    """The jaxpr reduced to the used outputs, without dead equations and inputs; and which inputs it kept.

    An equation with effects is alive. A primitive with a `dce` hook shortens its own equations. Inputs marked in
    `instantiate` are always kept, and so are constvars.

    >>> from corejax.ir import parse_jaxpr
    >>> jaxpr = parse_jaxpr("{ lambda ; a:f64[] b:f64[]. let c:f64[] = sin a d:f64[] = cos b in (c, d) }")
    >>> dce(jaxpr, [False, True])
    ({ lambda ; a:f64[]. let b:f64[] = cos a in (b,) }, (False, True))
    """
    if len(used_outputs) != len(jaxpr.outvars):
        raise CorejaxValueError("dce: one flag for each output", got=len(used_outputs), wanted=len(jaxpr.outvars),
                                where=here())
    outvars = [x for x, used in zip(jaxpr.outvars, used_outputs, strict=True) if used]
    live: set[Var] = {x for x in outvars if type(x) is not Literal}
    kept, changed = _live_eqns(jaxpr.eqns, live)
    keep = [instantiate] * len(jaxpr.invars) if isinstance(instantiate, bool) else _flags(jaxpr, instantiate)
    used_inputs = tuple([bool(forced) or v in live for v, forced in zip(jaxpr.invars, keep, strict=True)])
    if not changed and all(used_inputs) and all(used_outputs):
        return jaxpr, used_inputs
    effects = no_effects.union(*[eqn.effects for eqn in kept if eqn.effects])
    invars = [v for v, used in zip(jaxpr.invars, used_inputs, strict=True) if used]
    return Jaxpr(jaxpr.constvars, invars, outvars, kept, effects, jaxpr.name), used_inputs


def dce_closed(closed: ClosedJaxpr, used_outputs: Sequence[bool], instantiate: bool | Sequence[bool] = False
               ) -> tuple[ClosedJaxpr, tuple[bool, ...]]:
    """`dce` for a closed jaxpr; also drops unused constants."""
    n = len(closed.consts)
    jaxpr, consts = consts_to_operands(closed)
    flags = [instantiate] * len(closed.jaxpr.invars) if isinstance(instantiate, bool) else instantiate
    jaxpr, used = dce(jaxpr, used_outputs, [False] * n + list(flags))
    return close(jaxpr, [c for c, keep in zip(consts, used[:n], strict=True) if keep]), used[n:]


def _live_eqns(eqns: Sequence[JaxprEqn], live: set[Var]) -> tuple[list[JaxprEqn], bool]:
    """The equations that `live` depends on, in order, and whether any was changed or dropped.

    The variables that they read are added to `live`.
    """
    kept: list[JaxprEqn] = []
    changed = False
    outer, around = at_hand.eqn, at_hand.around
    try:
        at_hand.around = sys._getframe(), outer, around
        for eqn in reversed(eqns):
            at_hand.eqn = eqn
            new: JaxprEqn | None = eqn
            if not eqn.effects and live.isdisjoint(eqn.outvars):
                new = None
            elif (hook := eqn.primitive.dce) is not None:
                new = hook(eqn, tuple([v in live for v in eqn.outvars]))[1]
            changed = changed or new is not eqn
            if new is not None:
                kept.append(new)
                live.update([x for x in new.invars if type(x) is not Literal])
    except CorejaxError as error:
        tell_where(error)
        raise
    finally:
        at_hand.eqn, at_hand.around = outer, around
    kept.reverse()
    return kept, changed


def without_effects(jaxpr: Jaxpr) -> Jaxpr:
    """The jaxpr for its results alone: equations with effects only stay if a result depends on them."""
    if not jaxpr.effects:
        return jaxpr
    live: set[Atom] = {*jaxpr.outvars}
    kept = []
    for eqn in reversed(jaxpr.eqns):
        if not live.isdisjoint(eqn.outvars):
            kept.append(equation_without_effects(eqn) if eqn.effects else eqn)
            live.update([x for x in eqn.invars if type(x) is not Literal])
    kept.reverse()
    return jaxpr.replace(eqns=kept, effects=no_effects.union(*[eqn.effects for eqn in kept]))


def equation_without_effects(eqn: JaxprEqn) -> JaxprEqn:
    """The same for the programs that an equation with effects carries."""
    params: dict[str, Any] = {}
    for name, value in eqn.params.items():
        if type(value) is tuple:
            params[name] = tuple([without_effects(x) if isinstance(x, Jaxpr) else x for x in value])
        else:
            params[name] = without_effects(value) if isinstance(value, Jaxpr) else value
    effects = eqn.primitive.effects
    assert effects is not None  # the equation has some
    return eqn.replace(params=params, effects=effects(tuple([x.aval for x in eqn.invars]), **params))
