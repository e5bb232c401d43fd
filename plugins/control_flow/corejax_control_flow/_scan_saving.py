"""A scan in two, the second of which takes every step again but for what a policy saves.

What is saved in each step is stacked by the first, and read by the second as its last inputs. Counted and checkpointed
scans are divided by the same functions, and while loops of bounded length by a part of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from corejax.core import Atom, Jaxpr, JaxprEqn, Var
from corejax.plugin import carrying
from corejax_control_flow._scan_body import Body
from corejax_control_flow._scan_rules import body_of, settled, stacked, varying_of, with_body

Flags = carrying.Flags


def recompute_scan(eqn: JaxprEqn, unknown_in: Sequence[bool], saved_by: carrying.Policy, leading: int = 0) -> Any:
    """The return value of a `recompute` hook; the first `leading` operands are known, and each part takes them."""
    found, unknown = saving_scan(body_of(eqn), tuple(unknown_in[leading:]), saved_by)
    n = len(found.saved)

    def remake(part: Body, invars: Sequence[Atom], outvars: Sequence[Var]) -> JaxprEqn:
        if part is found.staged:  # what was saved are inputs, after its own
            invars = [*invars[n:], *invars[:n]]
        return with_body(eqn, settled(part, varying_of(invars[leading:]), ends), invars, outvars)

    ends = frozenset[Any]().union(*varying_of(eqn.invars[:leading]))  # where devices take steps of their own number
    fresh = [carrying.along(stacked(aval, eqn.params["length"]), ends) for aval in found.fresh_avals]
    return carrying.recompute(eqn, found, (*unknown_in[:leading], *unknown), remake, fresh)


@carrying.remembered
def saving_scan(body: Body, unknown_in: Flags, policy: carrying.Policy) -> tuple[carrying.Saving[Body], Flags]:
    """Two scans, the second of which takes every step again, but for what a policy saves; and which operands wait.

    The second takes what was saved as its last inputs.
    """
    consts, carry_in, xs = body.operands(unknown_in)

    def step(carry: Flags) -> tuple[carrying.Saving[Jaxpr], Flags]:
        found = carrying.split_saving(body.jaxpr, [*consts, *carry, *xs], policy)
        return found, found.unknown_out[:body.num_carry]

    carry, found = carrying.fixed_point(carry_in, step)
    unknown_out = (*carry, *found.unknown_out[body.num_carry:])
    outs = iter(found.known.outvars)
    results = {i: next(outs) for i, unknown in enumerate(found.unknown_out) if not unknown}
    fresh = [*outs]
    saved: list[carrying.Place] = []
    for where, i in found.saved:
        if where == "result" and i < body.num_carry:  # of a carry, the scan returns the last one
            saved.append(("fresh", len(fresh)))
            fresh.append(results[i])
        else:
            saved.append((where, i))
    known = found.known.replace(outvars=[*[results[i] for i, unknown in enumerate(unknown_out) if not unknown], *fresh])
    n = len(saved)
    staged = found.staged.replace(invars=[*found.staged.invars[n:], *found.staged.invars[:n]])
    parts = Body(known, consts.count(False), carry.count(False)), Body(staged, body.num_consts, body.num_carry)
    return carrying.Saving(*parts, unknown_out, saved, [x.aval for x in fresh]), (*consts, *carry, *xs)
