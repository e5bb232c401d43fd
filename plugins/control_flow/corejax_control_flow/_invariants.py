"""What in the body of a loop is the same in each step, taken out of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from corejax.core import Jaxpr, JaxprEqn, Literal, Var, WeakCache
from corejax.ir.surgery import dce

Flags = tuple[bool, ...]


def _hoist(jaxpr: Jaxpr, num_consts: int) -> tuple[Jaxpr, Jaxpr] | None:
    """The part of a body that depends on its leading operands only, and the rest; None if there is no such part.

    The first maps those operands to values, the second takes these values after them. What depends on nothing at all
    stays: the compiler does better with a constant that it sees.
    """
    consts = jaxpr.invars[:num_consts]
    free: set[Any] = set()
    invariant: set[Any] = {*consts}
    outer: list[JaxprEqn] = []
    inner: list[JaxprEqn] = []
    for eqn in jaxpr.eqns:
        found = [x for x in eqn.invars if type(x) is not Literal and x not in free]
        if eqn.effects or not all([x in invariant for x in found]):
            inner.append(eqn)
            continue
        outer.append(eqn)
        if found:
            invariant.update(eqn.outvars)
        else:
            free.update(eqn.outvars)
            inner.append(eqn)
    used = _used(inner, jaxpr.outvars)
    taken: list[Var] = [v for eqn in outer for v in eqn.outvars if v in used and v not in free]
    if not taken:
        return None
    first, _ = dce(Jaxpr((), consts, taken, outer), (True,) * len(taken), instantiate=True)
    rest = jaxpr.replace(invars=[*consts, *taken, *jaxpr.invars[num_consts:]], eqns=inner)
    return first, dce(rest, (True,) * len(rest.outvars), instantiate=True)[0]


def _used(eqns: Sequence[JaxprEqn], outs: Sequence[Any]) -> set[Any]:
    """The variables that the equations and the outputs read."""
    return {x for eqn in eqns for x in eqn.invars if type(x) is not Literal}.union(
        [x for x in outs if type(x) is not Literal])


#: `hoist(jaxpr, num_consts)`: (outside, inside) or None.
hoist = WeakCache(_hoist)
