"""Programs with references as programs without: what a reference holds is an operand, and a result if it is written."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from corejax.core import Atom, Jaxpr, JaxprEqn, Literal, Var, stage
from corejax.plugin import HolderType, carrying, roles
from corejax_references._primitives import get_p, get_trail_p, set_p, set_trail_p, trail_type
from corejax_references.effects import READING, WRITING

__all__ = ["any_of", "ordered", "pure", "trailed", "with_trails", "written"]

_OURS = frozenset((READING, WRITING))


@carrying.remembered
def written(jaxpr: Jaxpr) -> tuple[bool, ...]:
    """For each input of a program, whether it is a reference that is written to."""
    targets = {eqn.invars[0] for eqn in jaxpr.eqns if eqn.primitive is set_p} if WRITING in jaxpr.effects else ()
    return tuple([var in targets for var in jaxpr.invars])


@carrying.remembered
def trailed(jaxpr: Jaxpr) -> tuple[bool, ...]:
    """For each input of a program, whether it is a reference that has a trail in it."""
    targets = {eqn.invars[0] for eqn in jaxpr.eqns if eqn.primitive is set_trail_p} if WRITING in jaxpr.effects else ()
    return tuple([var in targets for var in jaxpr.invars])


@carrying.remembered
def with_trails(jaxpr: Jaxpr, flags: tuple[bool, ...]) -> Jaxpr:
    """The program with another reference after each that is marked: what that holds is the trail of the one before.

    What rules may write is written in it.
    """
    trails: dict[Atom, Var] = {}
    invars = []
    for var, flag in zip(jaxpr.invars, flags, strict=True):
        invars.append(var)
        if flag:
            kind: Any = type(var.aval)
            trails[var] = Var(kind(trail_type(var.aval.inner_aval)))  # type: ignore[attr-defined]
            invars.append(trails[var])
    eqns: list[JaxprEqn] = []
    for eqn in jaxpr.eqns:
        if eqn.primitive not in (get_trail_p, set_trail_p) or eqn.invars[0] not in trails:
            eqns.append(eqn)
            continue
        ref, *rest = eqn.invars
        if eqn.primitive is get_trail_p:
            eqns.append(eqn.replace(primitive=get_p, invars=[trails[ref]]))
        else:
            end, x = rest
            eqns.append(eqn.replace(primitive=set_p, invars=[trails[ref], end]))
            eqns.append(eqn.replace(primitive=set_p, invars=[ref, x]))
    return jaxpr.replace(invars=invars, eqns=eqns)


@carrying.remembered
def pure(jaxpr: Jaxpr, returned: tuple[bool, ...]) -> Jaxpr:
    """The program with an array in the place of each reference, which also returns what those that are marked hold.

    These results come first, in the order of the inputs.
    """
    holds: dict[Atom, Atom] = {}
    invars = []
    for var in jaxpr.invars:
        if isinstance(var.aval, HolderType):
            holds[var] = invar = Var(var.aval.inner_aval)  # type: ignore[attr-defined]
            invars.append(invar)
        else:
            invars.append(var)
    found: dict[Atom, Atom] = {}

    def read(x: Atom) -> Atom:
        return x if type(x) is Literal else found.get(x, x)

    eqns: list[JaxprEqn] = []
    for eqn in jaxpr.eqns:
        if eqn.primitive is get_p:
            found[eqn.outvars[0]] = holds[eqn.invars[0]]
        elif eqn.primitive is set_p:
            holds[eqn.invars[0]] = read(eqn.invars[1])
        elif eqn.primitive is get_trail_p:
            zeros = stage(lambda aval=eqn.outvars[0].aval: [roles.zeros(aval)], [], "zeros").jaxpr  # it leads nowhere
            eqns += zeros.eqns
            found[eqn.outvars[0]] = zeros.outvars[0]
        elif eqn.primitive is set_trail_p:
            pass
        elif found.keys().isdisjoint(eqn.invars):
            eqns.append(eqn)
        else:
            eqns.append(eqn.replace(invars=[read(x) for x in eqn.invars]))
    finals = [holds[var] for var, flag in zip(jaxpr.invars, returned, strict=True) if flag]
    return jaxpr.replace(invars=invars, eqns=eqns, outvars=[*finals, *map(read, jaxpr.outvars)],
                         effects=jaxpr.effects - _OURS)


def ordered(jaxpr: Jaxpr, invars: Sequence[int], outvars: Sequence[int]) -> Jaxpr:
    """The program with its inputs and its results in another order."""
    return jaxpr.replace(invars=[jaxpr.invars[i] for i in invars], outvars=[jaxpr.outvars[i] for i in outvars])


def any_of(flags: Sequence[Sequence[bool]]) -> Any:
    """Which places are marked in any of these."""
    return tuple([True in row for row in zip(*flags, strict=True)])
