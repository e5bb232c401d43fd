"""Branches in two, the second of which computes everything again but for what a policy saves.

What one branch saves is in a slot that others share, where they put zeros or values of their own.
"""

from __future__ import annotations

from typing import Any

from corejax.core import Var
from corejax.plugin import carrying
from corejax_control_flow._branches import Branches, Flags, _shared_slots, _with_all_outputs, out_avals_of


@carrying.remembered
def saving(branches: Branches, unknown_in: Flags, policy: carrying.Policy, axes: frozenset[Any] = frozenset()
           ) -> carrying.Saving[Branches]:
    """The branches split by which operands are unknown. The index varies along `axes` of a mesh."""
    parts = [carrying.split_saving(branch, unknown_in, policy) for branch in branches]
    unknown_out = carrying.either(*[one.unknown_out for one in parts])
    rows = [[var.aval for var in one.staged.invars[:len(one.saved)]] for one in parts]
    fresh, slots = _shared_slots([[carrying.along(aval, axes) for aval in row] for row in rows])
    known, staged = [], []
    for branch, one, own in zip(branches, parts, slots, strict=True):
        found = iter(one.known.outvars)
        outs = {i: next(found) for i, unknown in enumerate(one.unknown_out) if not unknown}
        others = [*found]
        values = [outs[i] if where == "result" else others[i] for where, i in one.saved]
        kept = [outs[i] for i, unknown in enumerate(unknown_out) if not unknown]
        half = one.known.replace(outvars=kept)
        known.append(_with_all_outputs(half, len(kept), dict(zip(own, values, strict=True)), fresh))
        binders = dict(zip(own, one.staged.invars, strict=False))
        slot_vars = [binders.get(i) or Var(aval) for i, aval in enumerate(fresh)]
        staged.append(one.staged.replace(invars=[*slot_vars, *branch.invars]))
    n_known = len(unknown_out) - sum(unknown_out)
    if carrying.varies(*known, *staged):
        known = [carrying.retyped(one, (), [*[()] * n_known, *[aval.varying for aval in fresh]]) for one in known]
        inputs = [aval.varying for aval in (*fresh, *branches[0].in_avals)]
        staged = [carrying.retyped(one, inputs) for one in staged]
    fresh = out_avals_of(tuple(known))[n_known:]
    return carrying.Saving(tuple(known), tuple(staged), unknown_out, [("fresh", i) for i in range(len(fresh))], fresh)
