"""What transformations make of a while loop: of its body and condition, and of which operands and results it has."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from corejax.core import Jaxpr, Var, jvp_jaxpr, partial_eval_jaxpr, vmap_jaxpr
from corejax.ir.surgery import dce, inline, reorder_invars, without_effects
from corejax.plugin import carrying

Flags = carrying.Flags
Dims = tuple[int | None, ...]


class Loop(NamedTuple):
    """Body and condition, and how many constants each takes."""

    body: Jaxpr
    cond: Jaxpr
    cond_nconsts: int
    body_nconsts: int

    def operands(self, items: Sequence[Any]) -> tuple[list[Any], list[Any], list[Any]]:
        """The items for the constants of the condition, for those of the body, and for the carry."""
        split = self.cond_nconsts + self.body_nconsts
        return [*items[: self.cond_nconsts]], [*items[self.cond_nconsts:split]], [*items[split:]]

    @property
    def effects(self) -> frozenset[Any]:
        """The effects of condition and body."""
        return self.cond.effects | self.body.effects


def settled(loop: Loop, given: Sequence[Any]) -> Loop:
    """The loop with a carry that varies along the same axes of a mesh before and after each step.

    `given` are the axes along which the operands vary. Where the condition varies, devices end at different steps, so
    the whole carry varies.
    """
    if not any(given) and not carrying.varies(loop.body, loop.cond):
        return loop
    for_cond, for_body, carry = loop.operands(given)
    while True:
        body, cond = carrying.retyped(loop.body, [*for_body, *carry]), carrying.retyped(loop.cond, [*for_cond, *carry])
        ends = cond.outvars[0].aval.varying
        before = [v.aval.varying for v in body.invars[loop.body_nconsts:]]
        carry = [old | new.aval.varying | ends for old, new in zip(before, body.outvars, strict=True)]
        if carry == before == [v.aval.varying for v in cond.invars[loop.cond_nconsts:]]:
            return loop._replace(body=carrying.retyped(body, (), carry), cond=cond)


# Simplification

class Simpler(NamedTuple):
    """A smaller loop that does the same: which operands it takes, and where each original result is found.

    ("result", i) is its i-th result, ("operand", i) the i-th original operand.
    """

    loop: Loop
    operands: list[int]
    results: list[carrying.Place]


@carrying.remembered
def simpler(loop: Loop) -> Simpler | None:
    """The loop without dead code, and with values that no step changes as constants; None if there is neither."""
    body, cond = loop.body, loop.cond
    cond_consts, body_consts, carry = loop.operands(range(loop.cond_nconsts + len(body.invars)))
    moves = [v is not out for v, out in zip(body.invars[loop.body_nconsts:], body.outvars, strict=True)]
    fixed = [not m for m in moves]
    kept = [True] * moves.count(True)
    parts = []
    for jaxpr, consts, used_out in ((cond, cond_consts, [True]), (body, body_consts, moves)):
        n = len(consts)
        at = range(n, n + len(carry))
        jaxpr = reorder_invars(jaxpr, [*range(n), *carrying.marked(at, fixed), *carrying.marked(at, moves)])
        smaller, used = _shortened(jaxpr, used_out, len(jaxpr.invars) - len(kept), kept)
        taken = carrying.marked([*consts, *carrying.marked(carry, fixed)], used[: len(used) - len(kept)])
        parts.append((smaller, taken, len(smaller.eqns) == len(jaxpr.eqns) and len(taken) == n))
    (new_cond, for_cond, same_cond), (new_body, for_body, same_body) = parts
    if all(moves) and same_cond and same_body:
        return None
    place = iter(range(len(kept)))
    results = [("result", next(place)) if m else ("operand", i) for m, i in zip(moves, carry, strict=True)]
    return Simpler(Loop(new_body, new_cond, len(for_cond), len(for_body)),
                   [*for_cond, *for_body, *carrying.marked(carry, moves)], results)


# Forward mode

class Forward(NamedTuple):
    """The loop over values and tangents: the body's constants and the carry are followed by their nonzero tangents."""

    loop: Loop
    carry_nonzero: Flags


@carrying.remembered
def forward(loop: Loop, nonzero: Flags) -> Forward:
    """The loop with these tangents, none of which the condition takes."""
    _, consts, carry_in = loop.operands(nonzero)

    def step(carry: Flags) -> tuple[Jaxpr, Flags]:
        return jvp_jaxpr(loop.body, [*consts, *carry], carry)

    carry, dual = carrying.fixed_point(carry_in, step)
    body = carrying.in_groups(dual, (consts, carry), (carry,))
    dots = [Var(aval.tangent) for aval in carrying.marked(loop.body.out_avals, carry)]
    cond = loop.cond.replace(invars=[*loop.cond.invars, *dots])
    return Forward(Loop(body, cond, loop.cond_nconsts, len(consts) + sum(consts)), carry)


# Transformations of packs

def carry(loop: Loop, lift: Any, args: Sequence[Any], run: Any) -> list[Any]:
    """The results of a loop whose body and condition are transformed by a `Lift`."""
    for_cond, consts, carried = loop.operands(args)
    of_cond, of_consts = lift.forms(for_cond), lift.forms(consts)

    def step(forms: Any) -> Any:
        return lift.program(loop.body, (*of_consts, *forms))

    of_carry, _ = lift.settled(lift.forms(carried), step)
    body, _ = lift.program(loop.body, (*of_consts, *of_carry), of_carry)
    cond = lift.decision(loop.cond, (*of_cond, *of_carry), "the condition of a loop")
    lifted = Loop(body, cond, lift.count(*of_cond), lift.count(*of_consts))
    return lift.results(  # type: ignore[no-any-return]
        run(lifted, lift.parts([*for_cond, *consts, *lift.raised(carried, of_carry)])), of_carry)


# Batching

class Batched(NamedTuple):
    """The loop over batches, and where the batch axis of each carry is."""

    loop: Loop
    carry: list[int | None]


@carrying.remembered
def batched(loop: Loop, size: int, name: Any, dims: Dims) -> Batched:
    """The loop for operands batched along `dims`. For the carry, these only say whether a value is batched."""
    body, cond = loop.body, loop.cond
    cond_dims, body_dims, carry_in = loop.operands(dims)
    # a carry starts with the axes of the condition: a new axis goes after them, unless the condition has it too
    at = len(cond.out_avals[0].shape)
    carry = [None if d is None else at for d in carry_in]
    while True:
        mapped, found = vmap_jaxpr(body, size, name, (*body_dims, *carry), carry)
        grown = [at if old is None and new is not None else old for old, new in zip(carry, found, strict=True)]
        if grown == carry:
            mapped_cond, (pred,) = vmap_jaxpr(cond, size, name, (*cond_dims, *carry))
            if pred is not None:
                at, grown = 0, [0] * len(carry)
            if grown == carry:
                break
        carry = grown
    if pred is not None:
        mapped_cond, _ = vmap_jaxpr(cond, size, name, (*cond_dims, *carry), (0,))
    return Batched(loop._replace(body=mapped, cond=mapped_cond), carry)


# Dead code

@carrying.remembered
def shorter(loop: Loop, used_out: Flags) -> carrying.Shorter[Loop] | None:
    """The loop without unused parts; None if it has none. A carry is used if the condition or another one needs it."""
    n_consts = loop.body_nconsts

    def step(carry: Flags) -> tuple[tuple[Jaxpr, Flags], Flags]:
        smaller, used = _shortened(loop.body, carry, n_consts, carry)
        return (smaller, used), used[n_consts:]

    needed = carrying.either(used_out, dce(loop.cond, (True,))[1][loop.cond_nconsts:])
    carry, (body, used) = carrying.fixed_point(needed, step)
    cond, cond_used = _shortened(loop.cond, (True,), loop.cond_nconsts, carry)
    if body is loop.body and cond is loop.cond:
        return None
    for_cond, for_body = cond_used[:loop.cond_nconsts], used[:n_consts]
    return carrying.Shorter(Loop(body.replace(), cond, sum(for_cond), sum(for_body)),
                            (*for_cond, *for_body, *carry), carry)


def _shortened(jaxpr: Jaxpr, used_out: Sequence[bool], n_consts: int, carry: Sequence[bool]
               ) -> tuple[Jaxpr, Flags]:
    """The jaxpr without dead code, keeping these parts of the carry as inputs even if it doesn't read them."""
    return dce(jaxpr, used_out, [*[False] * n_consts, *carry])


# Partial evaluation

class Halves(NamedTuple):
    """A loop split in two: one that runs now, and one that waits.

    The second runs the whole loop again, since it needs what the first computes in each step; so some of its results
    are known. None stands for a part that has nothing to do.
    """

    known: carrying.Shorter[Loop] | None
    staged: carrying.Shorter[Loop] | None
    unknown_out: Flags


@carrying.remembered
def halves(loop: Loop, unknown_in: Flags) -> Halves:
    """Split a loop by which operands are unknown. If the condition is unknown, the whole loop waits."""
    body = loop.body
    cond_consts, consts, carry_in = loop.operands(unknown_in)

    def step(carry: Flags) -> tuple[tuple[Jaxpr, Jaxpr, int], Flags]:
        first, second, found, n_residuals = partial_eval_jaxpr(body, [*consts, *carry], carry)
        return (first, second, n_residuals), found

    carry, (first, second, n_residuals) = carrying.fixed_point(carry_in, step)
    reads = dce(loop.cond, (True,))[1]
    if any([u and r for u, r in zip([*cond_consts, *carry], reads, strict=True)]):
        return Halves(None, _whole(loop), (True,) * len(carry))
    if not any(carry):
        return Halves(_whole(loop), None, carry)
    now = None
    if not all(carry) or first.effects or loop.cond.effects:
        now = _known_half(loop, first, n_residuals, reads, [*consts, *carry])
    if first.effects:
        body = _Again(first, second, n_residuals, [*consts, *carry]).body(body)
    again = loop._replace(cond=without_effects(loop.cond), body=body)
    return Halves(now, shorter(again, carry) or _whole(again), carry)


def _whole(loop: Loop) -> carrying.Shorter[Loop]:
    n_carry = len(loop.body.outvars)
    n = loop.cond_nconsts + loop.body_nconsts + n_carry
    return carrying.Shorter(loop._replace(body=loop.body.replace()), (True,) * n, (True,) * n_carry)


def _known_half(loop: Loop, first: Jaxpr, n_residuals: int, reads: Flags, unknown: Sequence[bool]
                ) -> carrying.Shorter[Loop]:
    """The loop over the known part of the carry."""
    known = [not u for u in unknown]
    of_consts, of_carry = known[: loop.body_nconsts], known[loop.body_nconsts:]
    n_consts, n_carry = of_consts.count(True), of_carry.count(True)
    results = first.replace(outvars=first.outvars[:n_carry])
    body, used = _shortened(results, (True,) * n_carry, n_consts, (True,) * n_carry)
    of_cond = reads[: loop.cond_nconsts]
    cond = loop.cond.replace(invars=carrying.marked(loop.cond.invars, [*of_cond, *of_carry]))
    in_order = iter(used)
    of_body = [k and next(in_order) for k in of_consts]
    return carrying.Shorter(Loop(body, cond, sum(of_cond), sum(of_body)), (*of_cond, *of_body, *of_carry),
                            tuple(of_carry))


class _Again(NamedTuple):
    """The two parts of a split body, to be joined without the effects that the first has already had by then."""

    known: Jaxpr
    staged: Jaxpr
    n_residuals: int
    unknown_in: list[bool]

    def body(self, original: Jaxpr) -> Jaxpr:
        """A body with the operands and results of the original."""
        known_in = carrying.marked(original.invars, [not u for u in self.unknown_in])
        eqns, outs = inline(without_effects(self.known), known_in)
        n = len(outs) - self.n_residuals
        new, unknown_outs = inline(self.staged, [*outs[n:], *carrying.marked(original.invars, self.unknown_in)])
        known_outs, unknown = iter(outs[:n]), iter(unknown_outs)
        carry = self.unknown_in[len(original.invars) - len(original.outvars):]
        eqns += new
        return original.replace(eqns=eqns, outvars=[next(unknown) if u else next(known_outs) for u in carry],
                                effects=frozenset().union(*[eqn.effects for eqn in eqns]))
