"""The branches of a conditional after each transformation: from tuples of jaxprs to tuples of jaxprs, remembered.

The branches of one conditional take the same operands and return values of the same types, weak types aside. What a
transformation makes of each may differ, in which outputs have tangents, say; here they are brought together again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from corejax.core import (
    Atom,
    ClosedJaxpr,
    Jaxpr,
    Literal,
    ShapedArray,
    Var,
    WeakCache,
    context,
    jvp_jaxpr,
    split_jaxpr,
    stage,
    transpose_jaxpr,
    vmap_jaxpr,
)
from corejax.ir.surgery import dce, forwarded_outputs, inline, join_consts, select_outputs
from corejax.plugin import roles

Branches = tuple[Jaxpr, ...]
Flags = tuple[bool, ...]
Place = tuple[str, Any]


def remembered(function: Callable[..., Any]) -> Callable[..., Any]:
    """`function(branches, *key)`, computed once for as long as the first branch lives."""
    def compute(first: Jaxpr, rest: tuple[Jaxpr | None, ...], *key: Any) -> Any:
        return function((first, *[first if branch is None else branch for branch in rest]), *key)

    def call(branches: Branches, *key: Any) -> Any:
        first = branches[0]  # a key that held it would keep it alive
        return cache(first, tuple([None if branch is first else branch for branch in branches[1:]]), *key)

    cache: WeakCache[Any] = WeakCache(compute)
    return call


def either(rows: Sequence[Sequence[bool]]) -> Flags:
    """Where any of the rows holds."""
    return tuple([True in column for column in zip(*rows, strict=True)])


def out_avals(branches: Branches) -> list[ShapedArray]:
    """The types of the results: weak where each branch's is."""
    return [aval.update(weak_type=False) if aval.weak_type and not all([b.outvars[i].aval.weak_type for b in branches])
            else aval for i, aval in enumerate(branches[0].out_avals)]


# Closing over

def joined(closed: Sequence[ClosedJaxpr]) -> tuple[Branches, tuple[Any, ...]]:
    """Branches that take all their constants as leading operands, an object once, and these constants."""
    number: dict[int, int] = {}
    consts: list[Any] = []
    for const in [const for c in closed for const in c.consts]:
        if number.setdefault(id(const), len(consts)) == len(consts):
            consts.append(const)
    pattern = tuple([tuple([number[id(const)] for const in c.consts]) for c in closed])
    branches = tuple([c.jaxpr for c in closed])
    return (_joined(branches, pattern) if consts else branches), tuple(consts)


@remembered
def _joined(branches: Branches, pattern: tuple[tuple[int, ...], ...]) -> Branches:
    stand_ins = [object() for _ in range(1 + max([i for row in pattern for i in row]))]
    return tuple(join_consts([ClosedJaxpr(branch, [stand_ins[i] for i in row])
                              for branch, row in zip(branches, pattern, strict=True)])[0])


# Simplification

class Simpler(NamedTuple):
    """Smaller branches that do the same: which operands they take, and where each result is found.

    ("result", i) is their i-th, ("operand", i) the i-th operand of the original, ("value", x) is x whatever happens.
    """

    branches: Branches
    operands: list[int]
    results: list[Place]


@remembered
def simplify(branches: Branches) -> Simpler | None:
    """Without outputs on which all branches agree, outputs twice, and dead code; None if nothing is superfluous."""
    forwarded = [forwarded_outputs(branch) for branch in branches]
    results: list[Place] = []
    seen: dict[Any, Place] = {}
    kept: list[int] = []
    for i, atoms in enumerate(zip(*[branch.outvars for branch in branches], strict=True)):
        sources = {row[i] for row in forwarded}
        key = tuple([_identity(x) for x in atoms])
        if len(sources) == 1 and None not in sources:
            results.append(("operand", sources.pop()))
        elif type(atoms[0]) is Literal and len({*key}) == 1:
            results.append(("value", atoms[0].val))
        else:
            if key not in seen:
                seen[key] = "result", len(kept)
                kept.append(i)
            results.append(seen[key])
    selected = [branch if len(kept) == len(branch.outvars) else select_outputs(branch, kept) for branch in branches]
    smaller, used = _without_dead_code(selected, (True,) * len(kept))
    if all(used) and all([new is old for new, old in zip(smaller, branches, strict=True)]):
        return None
    return Simpler(_own(smaller, branches), [i for i, flag in enumerate(used) if flag], results)


def _identity(x: Atom) -> Any:
    """Equal for atoms of one branch, or literals of several, that are certainly the same value."""
    if type(x) is not Literal:
        return x
    return (x.aval, np.asarray(x.val).tobytes()) if not x.aval.shape else (x.aval, id(x.val))


def _without_dead_code(branches: Sequence[Jaxpr], used_out: Flags) -> tuple[Branches, Flags]:
    """The branches for some of their outputs, and which operands any of them needs."""
    used = either([dce(branch, used_out)[1] for branch in branches])
    return tuple([dce(branch, used_out, used)[0] for branch in branches]), used


def _own(branches: Branches, originals: Branches) -> Branches:
    """The branches as objects that are none of the originals, which a cache must not hold."""
    return tuple([branch.replace() if any([branch is old for old in originals]) else branch for branch in branches])


@remembered
def shorten(branches: Branches, used_out: Flags) -> tuple[Branches, Flags] | None:
    """The branches for the outputs that are used, and which operands these need; None if nothing is dead."""
    smaller, used_in = _without_dead_code(branches, used_out)
    if all([new is old for new, old in zip(smaller, branches, strict=True)]):
        return None
    return _own(smaller, branches), used_in


# Forward and reverse mode

def forward(branches: Branches, nonzero: Flags) -> tuple[Branches, Flags]:
    """Branches of (values, nonzero tangents), and which outputs have tangents in any of them."""
    return _forward(branches, nonzero, context.axes)  # type: ignore[no-any-return]


@remembered
def _forward(branches: Branches, nonzero: Flags, axes: Any) -> tuple[Branches, Flags]:
    found = either([jvp_jaxpr(branch, nonzero)[1] for branch in branches])
    return tuple([jvp_jaxpr(branch, nonzero, found)[0] for branch in branches]), found


def backward(branches: Branches, linear: Flags, ct_nonzero: Flags) -> tuple[Branches, Flags]:
    """Transposed branches, and which linear operands get cotangents from any of them."""
    return _backward(branches, linear, ct_nonzero, context.axes)  # type: ignore[no-any-return]


@remembered
def _backward(branches: Branches, linear: Flags, ct_nonzero: Flags, axes: Any) -> tuple[Branches, Flags]:
    found = either([transpose_jaxpr(branch, linear, ct_nonzero)[1] for branch in branches])
    return tuple([transpose_jaxpr(branch, linear, ct_nonzero, found)[0] for branch in branches]), found


# Batching

def batched(branches: Branches, size: int, name: Any, dims: tuple[int | None, ...]
            ) -> tuple[Branches, tuple[int | None, ...]]:
    """Mapped branches, and where the batch axis of each output is, the same in all of them."""
    return _batched(branches, size, name, dims, context.axes)  # type: ignore[no-any-return]


@remembered
def _batched(branches: Branches, size: int, name: Any, dims: tuple[int | None, ...], axes: Any
             ) -> tuple[Branches, tuple[int | None, ...]]:
    found = [vmap_jaxpr(branch, size, name, dims)[1] for branch in branches]
    wanted = tuple([next((d for d in column if d is not None), None) for column in zip(*found, strict=True)])
    return tuple([vmap_jaxpr(branch, size, name, dims, wanted)[0] for branch in branches]), wanted


# Partial evaluation

class Halves(NamedTuple):
    """Branches in two: what runs now, and what waits.

    The first take the operands `known_operands` and return the known results and then values of the types `fresh`,
    residuals. The second take what `staged_operands` names: ("operand", i), ("result", i) of the whole, ("fresh", i).
    """

    known: Branches
    known_operands: list[int]
    fresh: list[ShapedArray]
    staged: Branches
    staged_operands: list[Place]
    unknown_out: Flags


def halves(branches: Branches, unknown_in: Flags) -> Halves:
    """Divide the branches by which operands are unknown."""
    return _halves(branches, unknown_in, context.axes)  # type: ignore[no-any-return]


@remembered
def _halves(branches: Branches, unknown_in: Flags, axes: Any) -> Halves:
    unknown_out = either([split_jaxpr(branch, unknown_in).unknown_out for branch in branches])
    splits = [split_jaxpr(branch, unknown_in, unknown_out) for branch in branches]
    known_operands = sorted({i for split in splits for i in split.known_operands})
    waiting = sorted({i for split in splits for i in split.staged_operands})
    fresh, slots = _shared_slots([split.fresh_avals for split in splits])
    shared = {place for split in splits for place in split.residuals if place[0] != "fresh"}
    places: list[Place] = [*sorted(shared), *[("fresh", i) for i in range(len(fresh))],
                           *[("operand", i) for i in waiting]]
    avals = {"operand": branches[0].in_avals, "result": branches[0].out_avals, "fresh": fresh}
    known, staged = [], []
    for split, own in zip(splits, slots, strict=True):
        n_outs = len(split.known.outvars) - len(own)
        invars = _binders(dict(zip(split.known_operands, split.known.invars, strict=True)), known_operands,
                          avals["operand"])
        values = dict(zip(own, split.known.outvars[n_outs:], strict=True))
        known.append(_with_all_outputs(split.known.replace(invars=invars), n_outs, values, fresh))
        found = [("fresh", own[i]) if where == "fresh" else (where, i) for where, i in split.residuals]
        binders = dict(zip([*found, *[("operand", i) for i in split.staged_operands]], split.staged.invars,
                           strict=True))
        staged.append(split.staged.replace(
            invars=[binders.get(place) or Var(avals[place[0]][place[1]]) for place in places]))
    fresh = out_avals(tuple(known))[len(unknown_out) - sum(unknown_out):]
    return Halves(tuple(known), known_operands, fresh, tuple(staged), places, unknown_out)


def _binders(own: dict[int, Var], wanted: Sequence[int], avals: Sequence[ShapedArray]) -> list[Var]:
    return [own.get(i) or Var(avals[i]) for i in wanted]


def _shared_slots(rows: Sequence[Sequence[ShapedArray]]) -> tuple[list[ShapedArray], list[list[int]]]:
    """Slots in which each row finds one of its own for each of its types, and which these are. Rows share them."""
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
    """A known half with an output for each slot: its own residuals, and zeros in the slots that others use."""
    eqns = [*jaxpr.eqns]
    outs = [*jaxpr.outvars[:n_outs]]
    made: dict[ShapedArray, Atom] = {}
    for i, aval in enumerate(fresh):
        if i not in values and aval not in made:
            new, (made[aval],) = inline(stage(lambda aval=aval: [roles.zeros(aval)], ()).jaxpr, ())
            eqns += new
        outs.append(values[i] if i in values else made[aval])
    return jaxpr.replace(eqns=eqns, outvars=outs)
