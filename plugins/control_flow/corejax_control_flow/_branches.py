"""Branches: programs of the same operands, with results of the same types, of which one is run.

A transformation may make them differ, say in which outputs have tangents, so here they are made to agree again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from corejax.core import (
    Atom,
    ClosedJaxpr,
    Jaxpr,
    ShapedArray,
    Staged,
    Var,
    aval_of,
    eval_jaxpr,
    here,
    jvp_jaxpr,
    stage,
    transpose_jaxpr,
    vmap_jaxpr,
)
from corejax.errors import CorejaxTypeError
from corejax.ir.surgery import dce, inline, join_consts
from corejax.plugin import carrying, roles, structures

Branches = tuple[Jaxpr, ...]
Dims = tuple[int | None, ...]
Flags = carrying.Flags
Place = tuple[str, Any]

#: An error describes at most this many leaves.
_SHOWN = 4


def out_avals_of(branches: Branches) -> list[ShapedArray]:
    """The types of the results: weak where the first branch's type is; they vary along the axes that any varies along.

    So JAX has it. The first branch of `cond` is `false_fun`, since the index of a false predicate is 0.
    """
    rows = zip(*[branch.out_avals for branch in branches], strict=True)
    return [row[0] if all([aval.varying == row[0].varying for aval in row]) else
            row[0].update(varying=frozenset().union(*[aval.varying for aval in row])) for row in rows]


def settled(branches: Branches, given: Sequence[frozenset[Any]], axes: frozenset[Any] = frozenset()) -> Branches:
    """The branches for operands that vary along these axes of a mesh, with results that vary along the same axes.

    Where the index varies, along `axes`, devices take different branches, so whatever goes in or comes out varies:
    no branch may sum over devices that take another one.
    """
    if not axes and not any(given) and not carrying.varies(*branches):
        return branches
    inputs = [own.union(axes, *[branch.invars[i].aval.varying for branch in branches]) for i, own in enumerate(given)]
    branches = tuple([carrying.retyped(branch, inputs) for branch in branches])
    outputs = [aval.varying | axes for aval in out_avals_of(branches)]
    return tuple([carrying.retyped(branch, (), outputs) for branch in branches])


def joined(closed: Sequence[ClosedJaxpr]) -> tuple[Branches, tuple[Any, ...]]:
    """Branches that take all their constants as leading operands, and these constants, each object once."""
    number: dict[int, int] = {}
    consts: list[Any] = []
    for const in [const for c in closed for const in c.consts]:
        if number.setdefault(id(const), len(consts)) == len(consts):
            consts.append(const)
    pattern = tuple([tuple([number[id(const)] for const in c.consts]) for c in closed])
    branches = tuple([c.jaxpr for c in closed])
    return (_with_consts(branches, pattern) if consts else branches), tuple(consts)


@carrying.remembered
def _with_consts(branches: Branches, pattern: tuple[tuple[int, ...], ...]) -> Branches:
    stand_ins = [object() for _ in range(1 + max([i for row in pattern for i in row]))]
    return tuple(join_consts([ClosedJaxpr(branch, [stand_ins[i] for i in row])
                              for branch, row in zip(branches, pattern, strict=True)])[0])


def without_dead_code(branches: Sequence[Jaxpr], used_out: Flags) -> tuple[Branches, Flags]:
    """The branches reduced to some of their outputs, and which operands any of them needs."""
    used = carrying.either(*[dce(branch, used_out)[1] for branch in branches])
    return tuple([dce(branch, used_out, used)[0] for branch in branches]), used


def lifted(branches: Branches, lift: Any, forms: Sequence[Any]) -> tuple[Branches, Sequence[Any]]:
    """The branches transformed by a `Lift`, for operands of these forms, and the forms of their results."""
    out_forms = lift.joined(*[lift.program(branch, forms)[1] for branch in branches])
    return tuple([lift.program(branch, forms, out_forms)[0] for branch in branches]), out_forms


def own_copies(branches: Branches, originals: Branches) -> Branches:
    """The branches, with copies in place of the originals, which a cache must not hold."""
    return tuple([branch.replace() if any([branch is old for old in originals]) else branch for branch in branches])


@carrying.remembered
def shorter(branches: Branches, used_out: Flags) -> carrying.Shorter[Branches] | None:
    """The branches reduced to the outputs that are used; None if nothing is dead."""
    smaller, used_in = without_dead_code(branches, used_out)
    if all([new is old for new, old in zip(smaller, branches, strict=True)]):
        return None
    return carrying.Shorter(own_copies(smaller, branches), used_in, used_out)


@carrying.remembered
def forward(branches: Branches, nonzero: Flags) -> tuple[Branches, Flags]:
    """Branches of (values, nonzero tangents), and which outputs have tangents in any of them."""
    found = carrying.either(*[jvp_jaxpr(branch, nonzero)[1] for branch in branches])
    return tuple([jvp_jaxpr(branch, nonzero, found)[0] for branch in branches]), found


@carrying.remembered
def backward(branches: Branches, linear: Flags, nonzero: Flags) -> tuple[Branches, Flags]:
    """Transposed branches, and which linear operands get cotangents from any of them."""
    found = carrying.either(*[transpose_jaxpr(branch, linear, nonzero)[1] for branch in branches])
    return tuple([transpose_jaxpr(branch, linear, nonzero, found)[0] for branch in branches]), found


@carrying.remembered
def batched(branches: Branches, size: int, name: Any, dims: Dims) -> tuple[Branches, Dims]:
    """Mapped branches, and where the batch axis of each output is (the same in all branches)."""
    found = [vmap_jaxpr(branch, size, name, dims)[1] for branch in branches]
    wanted = tuple([next((d for d in column if d is not None), None) for column in zip(*found, strict=True)])
    return tuple([vmap_jaxpr(branch, size, name, dims, wanted)[0] for branch in branches]), wanted


@carrying.remembered
def split(branches: Branches, unknown_in: Flags, axes: frozenset[Any] = frozenset()) -> carrying.Split[Branches]:
    """The branches split in two by which operands are unknown. The index varies along `axes` of a mesh."""
    unknown_out = carrying.either(*[carrying.split_jaxpr(branch, unknown_in).unknown_out for branch in branches])
    parts = [carrying.split_jaxpr(branch, unknown_in, unknown_out) for branch in branches]
    known_operands = sorted({i for one in parts for i in one.known_operands})
    fresh, slots = _shared_slots([[carrying.along(aval, axes) for aval in one.fresh_avals] for one in parts])
    shared = {place for one in parts for place in one.residuals if place[0] != "fresh"}
    waiting = {("operand", i) for one in parts for i in one.staged_operands}
    places: list[Place] = [*sorted(shared), *[("fresh", i) for i in range(len(fresh))], *sorted(waiting)]
    avals = {"operand": branches[0].in_avals, "result": branches[0].out_avals, "fresh": fresh}
    known, staged = [], []
    for one, own in zip(parts, slots, strict=True):
        n_outs = len(one.known.outvars) - len(own)
        binders: dict[Any, Var] = dict(zip(one.known_operands, one.known.invars, strict=True))
        half = one.known.replace(invars=[binders.get(i) or Var(branches[0].in_avals[i]) for i in known_operands])
        known.append(_with_all_outputs(half, n_outs, dict(zip(own, half.outvars[n_outs:], strict=True)), fresh))
        found = [("fresh", own[i]) if where == "fresh" else (where, i) for where, i in one.places]
        binders = dict(zip(found, one.staged.invars, strict=True))
        staged.append(one.staged.replace(
            invars=[binders.get(place) or Var(avals[place[0]][place[1]]) for place in places]))
    if carrying.varies(*known, *staged):
        known = [carrying.retyped(one, (), [*[()] * (len(one.outvars) - len(fresh)), *[a.varying for a in fresh]])
                 for one in known]
        inputs = [avals[where][i].varying for where, i in places]
        staged = [carrying.retyped(one, inputs) for one in staged]
    fresh = out_avals_of(tuple(known))[len(unknown_out) - sum(unknown_out):]
    return carrying.Split(tuple(known), tuple(staged), unknown_out, known_operands, (), places, fresh)


def _shared_slots(rows: Sequence[Sequence[ShapedArray]]) -> tuple[list[ShapedArray], list[list[int]]]:
    """Slots that rows share, such that each row has a separate one for each of its types; and which ones it has."""
    slots: list[ShapedArray] = []
    found = []
    for row in rows:
        free = [*range(len(slots))]
        own = []
        for aval in row:
            aval = aval.update(weak_type=False)
            i = next((i for i in free if slots[i] is aval), len(slots))
            if i == len(slots):
                slots.append(aval)
            else:
                free.remove(i)
            own.append(i)
        found.append(own)
    return slots, found


def _with_all_outputs(jaxpr: Jaxpr, n_outs: int, values: dict[int, Atom], fresh: Sequence[ShapedArray]) -> Jaxpr:
    """A known half with an output for each slot: its own residuals, and zeros in the slots that only others use."""
    eqns = [*jaxpr.eqns]
    outs = [*jaxpr.outvars[:n_outs]]
    made: dict[ShapedArray, Atom] = {}
    for i, aval in enumerate(fresh):
        if i not in values and aval not in made:
            new, (made[aval],) = inline(stage(lambda aval=aval: [roles.zeros(aval)], ()).jaxpr, ())
            eqns += new
        outs.append(values[i] if i in values else made[aval])
    return jaxpr.replace(eqns=eqns, outvars=outs)


def evaluated(branches: Branches, taken: int, operands: Sequence[Any]) -> list[Any]:
    """The results of one branch, in the types that all branches agree on."""
    outs = eval_jaxpr(branches[taken], (), *operands)
    return [x if aval_of(x).weak_type == aval.weak_type else roles.convert(x, aval.dtype, aval.weak_type)
            for x, aval in zip(outs, out_avals_of(branches), strict=True)]


def check_agreement(what: str, names: Sequence[str], staged: Sequence[Staged]) -> None:
    """Raise if the branches return different structures or types."""
    first = staged[0]
    for name, other in zip(names[1:], staged[1:], strict=True):
        difference = structures.tree_difference(other.out_tree, first.out_tree)
        if difference is not None:
            raise CorejaxTypeError(
                f"{what}: the branches return different structures, at result{difference.path}", where=here(),
                got=f"from {name}: {structures.shown(other.out_tree)}, with {difference.got} there",
                wanted=f"as from {names[0]}: {structures.shown(first.out_tree)}, with {difference.wanted} there",
                todo="return the same containers, with the same keys and lengths, from each branch")
        wrong = structures.type_differences(first.out_tree, other.closed.out_avals, first.closed.out_avals)
        if wrong:
            same_shape = all([d.got.partition("[")[2] == d.wanted.partition("[")[2] for d in wrong])
            got, wanted = ["; ".join([f"{getattr(d, side)} at result{d.path}" for d in wrong[:_SHOWN]])
                           for side in ("got", "wanted")]
            raise CorejaxTypeError(
                f"{what}: the branches return different types, at {', '.join([f'result{d.path}' for d in wrong])}",
                got=f"from {name}: {got}", wanted=f"as from {names[0]}: {wanted}", where=here(),
                todo="convert one of them: x.astype(...)" if same_shape else
                "return arrays of the same shapes from each branch")
