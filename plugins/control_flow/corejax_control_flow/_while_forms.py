"""How the programs of a while loop look after each transformation: from jaxprs to jaxprs, remembered.

The condition takes its constants, then the carry; the body takes its own, then the carry, and returns the next carry.
Here nothing is bound: the rules of `while_loop` put operands to what these functions return.

The condition returns a boolean of some shape, by which each value of the carry begins; what is carried at a position
stays as it is from when the condition is false there. Only batching makes conditions that are no scalars.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from corejax.core import (
    Jaxpr,
    JaxprEqn,
    Literal,
    Var,
    WeakCache,
    context,
    jvp_jaxpr,
    partial_eval_jaxpr,
    vmap_jaxpr,
)
from corejax.ir.surgery import dce, inline, reorder_invars

Flags = tuple[bool, ...]
Dims = tuple[int | None, ...]
Parts = tuple[list[Any], list[Any], list[Any]]


class Loop(NamedTuple):
    """Condition and body, and how many constants each takes."""

    cond: Jaxpr
    body: Jaxpr
    cond_nconsts: int
    body_nconsts: int

    def operands(self, items: Sequence[Any]) -> Parts:
        """What belongs to the constants of the condition, to those of the body, and to the carry."""
        split = self.cond_nconsts + self.body_nconsts
        return [*items[: self.cond_nconsts]], [*items[self.cond_nconsts:split]], [*items[split:]]

    @property
    def effects(self) -> frozenset[Any]:
        """Those of condition and body."""
        return self.cond.effects | self.body.effects


def _either(xs: Sequence[bool], ys: Sequence[bool]) -> list[bool]:
    return [x or y for x, y in zip(xs, ys, strict=True)]


def _marked(items: Sequence[Any], flags: Sequence[bool]) -> list[Any]:
    return [x for x, flag in zip(items, flags, strict=True) if flag]


def _loop(cond: Jaxpr, body: Jaxpr, cond_nconsts: int) -> Loop:
    return Loop(cond, body, cond_nconsts, len(body.invars) - len(body.outvars))


def _shortened(jaxpr: Jaxpr, used_out: Sequence[bool], n_consts: int, carry: Sequence[bool]
               ) -> tuple[Jaxpr, Flags]:
    """Without dead code, with these parts of the carry among the inputs whether it reads them or not."""
    return dce(jaxpr, used_out, [*[False] * n_consts, *carry])


# Simplification

class Simpler(NamedTuple):
    """A smaller loop that does the same: which operands it takes, and where each result is found.

    ("result", i) is its i-th, ("operand", i) the i-th operand of the original.
    """

    loop: Loop
    operands: list[int]
    results: list[tuple[str, int]]


def simplify(loop: Loop) -> Simpler | None:
    """A loop without what is superfluous, None if nothing is: what no step changes becomes a constant."""
    return _simplified(loop.body, loop.cond, loop.cond_nconsts)


def _simplify(body: Jaxpr, cond: Jaxpr, cond_nconsts: int) -> Simpler | None:
    loop = _loop(cond, body, cond_nconsts)
    cond_consts, body_consts, carry = loop.operands(range(cond_nconsts + len(body.invars)))
    moves = [v is not out for v, out in zip(body.invars[loop.body_nconsts:], body.outvars, strict=True)]
    fixed = [not m for m in moves]
    kept = [True] * moves.count(True)
    parts = []
    for jaxpr, consts, used_out in ((cond, cond_consts, [True]), (body, body_consts, moves)):
        n = len(consts)
        at = range(n, n + len(carry))
        jaxpr = reorder_invars(jaxpr, [*range(n), *_marked(at, fixed), *_marked(at, moves)])
        smaller, used = _shortened(jaxpr, used_out, len(jaxpr.invars) - len(kept), kept)
        taken = _marked([*consts, *_marked(carry, fixed)], used[: len(used) - len(kept)])
        parts.append((smaller, taken, len(smaller.eqns) == len(jaxpr.eqns) and len(taken) == n))
    (new_cond, for_cond, same_cond), (new_body, for_body, same_body) = parts
    if all(moves) and same_cond and same_body:
        return None
    place = iter(range(len(kept)))
    results = [("result", next(place)) if m else ("operand", i) for m, i in zip(moves, carry, strict=True)]
    return Simpler(Loop(new_cond, new_body, len(for_cond), len(for_body)),
                   [*for_cond, *for_body, *_marked(carry, moves)], results)


_simplified = WeakCache(_simplify)


# Forward mode

class Forward(NamedTuple):
    """The loop over values and tangents: constants of the body and the carry are followed by nonzero tangents."""

    loop: Loop
    carry_nonzero: list[bool]


def forward(loop: Loop, nonzero: Flags) -> Forward:
    """The loop for these tangents, of which the condition takes none."""
    return _forward(loop.body, loop.cond, loop.cond_nconsts, nonzero, context.axes)


def _stage_forward(body: Jaxpr, cond: Jaxpr, cond_nconsts: int, nonzero: Flags, axes: Any) -> Forward:
    loop = _loop(cond, body, cond_nconsts)
    _, consts, carry = loop.operands(nonzero)
    while True:
        dual, found = jvp_jaxpr(body, [*consts, *carry], carry)
        grown = _either(carry, found)
        if grown == carry:
            break
        carry = grown
    n, n_consts, n_dots = len(body.invars), loop.body_nconsts, consts.count(True)
    order = [*range(n_consts), *range(n, n + n_dots), *range(n_consts, n), *range(n + n_dots, len(dual.invars))]
    dots = [Var(v.aval.tangent) for v in _marked(body.invars[n_consts:], carry)]
    wider = cond.replace(invars=[*cond.invars, *dots])
    return Forward(Loop(wider, reorder_invars(dual, order), cond_nconsts, n_consts + n_dots), carry)


_forward = WeakCache(_stage_forward)


# Batching

class Batched(NamedTuple):
    """The loop over batches: where the batch axis of each carry is."""

    loop: Loop
    carry: list[int | None]


def batched(loop: Loop, size: int, name: Any, dims: Dims) -> Batched:
    """The loop for operands that are batched along `dims`; those of the carry only say whether."""
    return _batched(loop.body, loop.cond, loop.cond_nconsts, size, name, dims, context.axes)


def _stage_batched(body: Jaxpr, cond: Jaxpr, cond_nconsts: int, size: int, name: Any, dims: Dims, axes: Any
                   ) -> Batched:
    loop = _loop(cond, body, cond_nconsts)
    cond_dims, body_dims, carry_in = loop.operands(dims)
    # a carry begins by the axes of the condition: a new one goes behind them, unless the condition has it too
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
    return Batched(Loop(mapped_cond, mapped, cond_nconsts, loop.body_nconsts), carry)


_batched = WeakCache(_stage_batched)


# Dead code

class Shorter(NamedTuple):
    """The loop of some results: which operands it takes, and which results it has."""

    loop: Loop
    used_in: Flags
    kept_out: Flags


def shorten(loop: Loop, used_out: Flags) -> Shorter | None:
    """Without what is not used; None if everything is. A carry is used if the condition or another carry needs it."""
    return _shorter(loop.body, loop.cond, loop.cond_nconsts, used_out)


def _shorten(body: Jaxpr, cond: Jaxpr, cond_nconsts: int, used_out: Flags) -> Shorter | None:
    n_consts = _loop(cond, body, cond_nconsts).body_nconsts
    carry = _either(used_out, dce(cond, (True,))[1][cond_nconsts:])
    while True:
        smaller, used = _shortened(body, carry, n_consts, carry)
        grown = _either(carry, used[n_consts:])
        if grown == carry:
            break
        carry = grown
    smaller_cond, cond_used = _shortened(cond, (True,), cond_nconsts, carry)
    if smaller is body and smaller_cond is cond:
        return None
    for_cond, for_body = cond_used[:cond_nconsts], used[:n_consts]
    return Shorter(Loop(smaller_cond, smaller.replace(), for_cond.count(True), for_body.count(True)),
                   (*for_cond, *for_body, *carry), tuple(carry))


_shorter = WeakCache(_shorten)


# Partial evaluation

class Half(NamedTuple):
    """A part of a loop: which operands of the whole it takes, and which results of the whole it has."""

    loop: Loop
    used_in: Flags
    kept_out: Flags


class Halves(NamedTuple):
    """A loop in two: one that runs now, and one that waits.

    The second runs all of it again, as it needs what the first computes in each step; so some of its results are
    known. None stands for a part that has nothing to do.
    """

    known: Half | None
    staged: Half | None
    unknown_out: Flags


def halves(loop: Loop, unknown_in: Flags) -> Halves:
    """Divide a loop by which operands are unknown. If the condition is unknown, all of it waits."""
    return _halves(loop.body, loop.cond, loop.cond_nconsts, unknown_in, context.axes)


def _divide(body: Jaxpr, cond: Jaxpr, cond_nconsts: int, unknown_in: Flags, axes: Any) -> Halves:
    loop = _loop(cond, body, cond_nconsts)
    cond_consts, consts, carry = loop.operands(unknown_in)
    while True:
        first, second, found, n_residuals = partial_eval_jaxpr(body, [*consts, *carry], carry)
        grown = _either(carry, found)
        if grown == carry:
            break
        carry = grown
    known = [not unknown for unknown in carry]
    reads = dce(cond, (True,))[1]
    if any([u and r for u, r in zip([*cond_consts, *carry], reads, strict=True)]):
        return Halves(None, _whole(loop), (True,) * len(carry))
    if all(known):
        return Halves(_whole(loop), None, tuple(carry))
    now = None
    if True in known or first.effects or cond.effects:
        now = _known_half(loop, first, n_residuals, reads, [*consts, *carry])
    if first.effects:
        body = _Again(first, second, n_residuals, [*consts, *carry]).body(body)
    again = loop._replace(cond=without_effects(cond), body=body)
    shorter = shorten(again, tuple(carry))
    return Halves(now, _whole(again) if shorter is None else Half(*shorter), tuple(carry))


_halves = WeakCache(_divide)


def _whole(loop: Loop) -> Half:
    n_carry = len(loop.body.outvars)
    n = loop.cond_nconsts + loop.body_nconsts + n_carry
    return Half(loop._replace(body=loop.body.replace()), (True,) * n, (True,) * n_carry)


def _known_half(loop: Loop, first: Jaxpr, n_residuals: int, reads: Flags, unknown: Sequence[bool]) -> Half:
    """The loop over what is known of the carry."""
    known = [not u for u in unknown]
    of_consts, of_carry = known[: loop.body_nconsts], known[loop.body_nconsts:]
    n_consts, n_carry = of_consts.count(True), of_carry.count(True)
    results = first.replace(outvars=first.outvars[:n_carry])
    body, used = _shortened(results, (True,) * n_carry, n_consts, (True,) * n_carry)
    of_cond = reads[: loop.cond_nconsts]
    cond = loop.cond.replace(invars=_marked(loop.cond.invars, [*of_cond, *of_carry]))
    in_order = iter(used)
    of_body = [k and next(in_order) for k in of_consts]
    return Half(Loop(cond, body, of_cond.count(True), of_body.count(True)), (*of_cond, *of_body, *of_carry),
                tuple(of_carry))


class _Again(NamedTuple):
    """The two parts of a divided body, to be put together without the effects that the first has had by then."""

    known: Jaxpr
    staged: Jaxpr
    n_residuals: int
    unknown_in: list[bool]

    def body(self, original: Jaxpr) -> Jaxpr:
        """A body of the operands and results of the original."""
        eqns, outs = inline(without_effects(self.known), _marked(original.invars, [not u for u in self.unknown_in]))
        n = len(outs) - self.n_residuals
        new, unknown_outs = inline(self.staged, [*outs[n:], *_marked(original.invars, self.unknown_in)])
        known_outs, unknown = iter(outs[:n]), iter(unknown_outs)
        carry = self.unknown_in[len(original.invars) - len(original.outvars):]
        eqns += new
        return original.replace(eqns=eqns, outvars=[next(unknown) if u else next(known_outs) for u in carry],
                                effects=_effects(eqns))


def without_effects(jaxpr: Jaxpr) -> Jaxpr:
    """The jaxpr for its results only: an equation with effects stays if something is computed from it."""
    if not jaxpr.effects:
        return jaxpr
    live: set[Any] = {*jaxpr.outvars}
    kept = []
    for eqn in reversed(jaxpr.eqns):
        if not live.isdisjoint(eqn.outvars):
            kept.append(_without_effects_inside(eqn) if eqn.effects else eqn)
            live.update([x for x in eqn.invars if type(x) is not Literal])
    kept.reverse()
    return jaxpr.replace(eqns=kept, effects=_effects(kept))


def _without_effects_inside(eqn: JaxprEqn) -> JaxprEqn:
    """The same for the programs that an equation carries."""
    params: dict[str, Any] = {}
    for name, value in eqn.params.items():
        if type(value) is tuple:
            params[name] = tuple([without_effects(x) if isinstance(x, Jaxpr) else x for x in value])
        else:
            params[name] = without_effects(value) if isinstance(value, Jaxpr) else value
    effects = eqn.primitive.effects
    return eqn.replace(params=params, effects=effects(tuple([x.aval for x in eqn.invars]), **params))


def _effects(eqns: Sequence[JaxprEqn]) -> frozenset[Any]:
    return frozenset[Any]().union(*[eqn.effects for eqn in eqns])
