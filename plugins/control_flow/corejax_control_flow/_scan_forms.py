"""How the body of a scan looks after each transformation: from jaxprs to jaxprs, remembered.

A body takes constants, then the carry, then one slice of each input, and returns the carry and then one slice of each
output. Here nothing is bound: the rules of `scan` put operands to what these functions return.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from corejax.core import (
    Atom,
    Jaxpr,
    Literal,
    ShapedArray,
    Split,
    Var,
    WeakCache,
    context,
    jvp_jaxpr,
    split_jaxpr,
    stage,
    transpose_jaxpr,
    vmap_jaxpr,
)
from corejax.ir.surgery import dce, inline, reorder_invars, select_outputs, substitute
from corejax.plugin import roles
from corejax_control_flow._residuals import keep_small

Flags = tuple[bool, ...]
Place = tuple[str, int]


class Body(NamedTuple):
    """The program of one step: its first operands are constants, the next the carry, the others slices of inputs."""

    jaxpr: Jaxpr
    num_consts: int
    num_carry: int

    def operands(self, items: Sequence[Any]) -> tuple[list[Any], list[Any], list[Any]]:
        """What belongs to constants, carry and inputs."""
        split = self.num_consts + self.num_carry
        return [*items[: self.num_consts]], [*items[self.num_consts:split]], [*items[split:]]

    def results(self, items: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        """What belongs to the carry and to outputs."""
        return [*items[: self.num_carry]], [*items[self.num_carry:]]


def _either(xs: Sequence[bool], ys: Sequence[bool]) -> list[bool]:
    return [x or y for x, y in zip(xs, ys, strict=True)]


def _marked(items: Sequence[Any], flags: Sequence[bool]) -> list[Any]:
    return [x for x, flag in zip(items, flags, strict=True) if flag]


# Simplification

class Simpler(NamedTuple):
    """A smaller scan that does the same: which operands it takes, and where each result is found.

    ("result", i) is its i-th, ("operand", i) the i-th operand of the original, ("repeat", i) that one for each step.
    """

    body: Body
    operands: list[int]
    results: list[Place]


def _simplify(jaxpr: Jaxpr, num_consts: int, num_carry: int) -> Simpler | None:
    """Without carries that no step changes, outputs that are inputs or constants, outputs twice, and dead code."""
    body = Body(jaxpr, num_consts, num_carry)
    consts, carry, xs = body.operands(jaxpr.invars)
    fixed = [v is out for v, out in zip(carry, jaxpr.outvars[:num_carry], strict=True)]
    found: dict[Any, Place] = {v: ("repeat", i) for i, v in enumerate(consts)}
    found.update({v: ("repeat", num_consts + i) for i, v in enumerate(carry) if fixed[i]})
    found.update({v: ("operand", num_consts + num_carry + i) for i, v in enumerate(xs)})
    order = [*range(num_consts), *[num_consts + i for i in range(num_carry) if fixed[i]],
             *[num_consts + i for i in range(num_carry) if not fixed[i]], *range(num_consts + num_carry,
                                                                                 len(jaxpr.invars))]
    results: list[Place] = []
    outs: list[Atom] = []
    for i, out in enumerate(jaxpr.outvars):
        if i < num_carry and fixed[i]:
            results.append(("operand", num_consts + i))
            continue
        if i < num_carry or type(out) is Literal or out not in found:
            results.append(("result", len(outs)))
            outs.append(out)
            if i >= num_carry and type(out) is Var:
                found[out] = results[-1]
        else:
            results.append(found[out])
    n_consts, n_carry = num_consts + sum(fixed), num_carry - sum(fixed)
    invars = [jaxpr.invars[i] for i in order]
    keep = [n_consts <= k < n_consts + n_carry for k in range(len(order))]
    smaller, used = dce(Jaxpr((), invars, outs, jaxpr.eqns, jaxpr.effects, jaxpr.name), (True,) * len(outs), keep)
    if all(used) and len(outs) == len(jaxpr.outvars) and len(smaller.eqns) == len(jaxpr.eqns):
        return None
    return Simpler(Body(smaller, sum(used[:n_consts]), n_carry), _marked(order, used), results)


#: `simplify(*body)`: a `Simpler`, or None if nothing is superfluous.
simplify = WeakCache(_simplify)


# Forward mode

class Forward(NamedTuple):
    """The scan of values and tangents: each group of operands and results is followed by its nonzero tangents."""

    body: Body
    carry_nonzero: list[bool]
    ys_nonzero: list[bool]


def forward(body: Body, nonzero: Flags) -> Forward:
    """The body for these tangents."""
    return _forward(*body, nonzero, context.axes)


def _stage_forward(jaxpr: Jaxpr, num_consts: int, num_carry: int, nonzero: Flags, axes: Any) -> Forward:
    body = Body(jaxpr, num_consts, num_carry)
    consts, carry, xs = body.operands(nonzero)
    while True:
        flags = [*consts, *carry, *xs]
        dual, found = jvp_jaxpr(jaxpr, flags, [*carry, *[False] * (len(jaxpr.outvars) - num_carry)])
        grown = _either(carry, found[:num_carry])
        if grown == carry:
            break
        carry = grown
    ys = [*found[num_carry:]]
    groups = _with_tangents(len(flags), body.operands(range(len(flags))), flags)
    outs = _with_tangents(len(found), body.results(range(len(found))), found)
    dual = select_outputs(reorder_invars(dual, [i for group in groups for i in group]), [i for g in outs for i in g])
    return Forward(Body(dual, len(groups[0]), len(groups[1])), carry, ys)


def _with_tangents(count: int, groups: Sequence[Sequence[int]], nonzero: Sequence[bool]) -> list[list[int]]:
    """Positions in each group, followed by the positions of its tangents, which come after all `count` values."""
    tangent_at: dict[int, int] = {}
    for i, nz in enumerate(nonzero):
        if nz:
            tangent_at[i] = count + len(tangent_at)
    return [[*group, *[tangent_at[i] for i in group if i in tangent_at]] for group in groups]


_forward = WeakCache(_stage_forward)


# Batching

class Batched(NamedTuple):
    """The scan of batches: where the batch axis of each carry is, and of each output of a step."""

    body: Body
    carry: list[int | None]
    ys: list[int | None]


def batched(body: Body, size: int, name: Any, dims: tuple[int | None, ...]) -> Batched:
    """The body for operands of one step that are batched along `dims`; those of the carry only say whether."""
    return _batched(*body, size, name, dims, context.axes)


def _stage_batched(jaxpr: Jaxpr, num_consts: int, num_carry: int, size: int, name: Any, dims: tuple[int | None, ...],
                   axes: Any) -> Batched:
    body = Body(jaxpr, num_consts, num_carry)
    consts, carry_in, xs = body.operands(dims)
    carry = [None if d is None else 0 for d in carry_in]
    settled = False
    while True:
        mapped, found = vmap_jaxpr(jaxpr, size, name, (*consts, *carry, *xs))
        out, ys = body.results(found)
        grown = [new if old is None else old for old, new in zip(carry, out, strict=True)]
        if grown == carry == out:
            break
        if grown == carry and settled:
            mapped, _ = vmap_jaxpr(jaxpr, size, name, (*consts, *carry, *xs), (*carry, *[None] * len(ys)))
            break
        if grown == carry:  # the axis has to be moved in each step, unless the carry begins where it ends
            settled = True
            grown = [old if new is None else new for old, new in zip(carry, out, strict=True)]
        carry = grown
    return Batched(Body(mapped, num_consts, num_carry), carry, ys)


_batched = WeakCache(_stage_batched)


# Reverse mode

class Backward(NamedTuple):
    """The scan that runs backward: what it takes and returns, and which cotangents are not zero.

    Its operands are the constants that are values; sums of the cotangents of the others, and cotangents of the carry;
    cotangents of the outputs, and the inputs that are values. Its results are those sums, the cotangents of the carry,
    and cotangents of the other inputs.
    """

    body: Body
    consts_nonzero: list[bool]
    carry_nonzero: list[bool]
    xs_nonzero: list[bool]


def backward(body: Body, linear: Flags, ct_nonzero: Flags) -> Backward:
    """The transposed body, by which operands are linear (each carry is) and which results have cotangents."""
    return _backward(*body, linear, ct_nonzero, context.axes)


def _stage_backward(jaxpr: Jaxpr, num_consts: int, num_carry: int, linear: Flags, ct_nonzero: Flags, axes: Any
                    ) -> Backward:
    body = Body(jaxpr, num_consts, num_carry)
    consts, _, xs = body.operands(linear)
    n_consts, n_xs = consts.count(True), xs.count(True)
    carry, ys = body.results(ct_nonzero)
    while True:
        back, nonzero = transpose_jaxpr(jaxpr, [*consts, *[True] * num_carry, *xs], [*carry, *ys],
                                        [*[False] * n_consts, *carry, *[False] * n_xs])
        grown = _either(carry, nonzero[n_consts:n_consts + num_carry])
        if grown == carry:
            break
        carry = grown
    consts_nonzero = [*nonzero[:n_consts]]
    summed = _summing(back, consts_nonzero.count(True), num_consts - n_consts, (len(xs) - n_xs, carry.count(True)))
    return Backward(summed, consts_nonzero, carry, [*nonzero[n_consts + num_carry:]])


def _summing(back: Jaxpr, n_sums: int, n_consts: int, sizes: tuple[int, int]) -> Body:
    """A transposed body as one step of a scan that sums up the cotangents of constants.

    `back` takes (constants, inputs, cotangents of the carry, cotangents of outputs); `sizes` are those of the middle.
    """
    n_xs, n_carry = sizes
    consts, xs = back.invars[:n_consts], back.invars[n_consts:n_consts + n_xs]
    rest = back.invars[n_consts + n_xs:]
    sums = [Var(x.aval.tangent) for x in back.outvars[:n_sums]]
    eqns, outs = [*back.eqns], []
    for total, ct in zip(sums, back.outvars, strict=False):
        add = stage(lambda x, y: [roles.accumulate(x, y)], [total.aval, ct.aval]).jaxpr
        new, (out,) = inline(add, [total, ct])
        eqns += new
        outs.append(out)
    invars = [*consts, *sums, *rest[:n_carry], *rest[n_carry:], *xs]
    step = back.replace(invars=invars, eqns=eqns, outvars=[*outs, *back.outvars[n_sums:]])
    return Body(step, n_consts, n_sums + n_carry)


_backward = WeakCache(_stage_backward)


# Dead code

class Shorter(NamedTuple):
    """The scan of some results: which operands it takes, and which results it has."""

    body: Body
    used_in: Flags
    kept_out: Flags


def _shorten(jaxpr: Jaxpr, num_consts: int, num_carry: int, used_out: Flags) -> Shorter | None:
    """Without what is not used; None if everything is. A carry is used if another carry or an output needs it."""
    body = Body(jaxpr, num_consts, num_carry)
    carry, ys = body.results(used_out)
    while True:
        keep = [*[False] * num_consts, *carry, *[False] * (len(jaxpr.invars) - num_consts - num_carry)]
        smaller, used = dce(jaxpr, [*carry, *ys], keep)
        grown = _either(carry, body.operands(used)[1])
        if grown == carry:
            break
        carry = grown
    if smaller is jaxpr:
        return None
    return Shorter(Body(smaller, sum(used[:num_consts]), sum(carry)), used, (*carry, *ys))


#: `shorten(*body, used_out)`: a `Shorter`, or None if nothing is dead.
shorten = WeakCache(_shorten)


# Partial evaluation

class Halves(NamedTuple):
    """A scan in two: one that runs now, and one that waits.

    The first takes the operands `known_operands` and returns the known results and then outputs for the second, of the
    types `fresh` (of a step). The second takes operands that are found where `staged_operands` says: ("operand", i),
    ("result", i) among the results of the whole, or ("fresh", i).
    """

    known: Body
    known_operands: list[int]
    fresh: list[ShapedArray]
    staged: Body
    staged_operands: list[Place]
    unknown_out: Flags


def halves(body: Body, unknown_in: Flags) -> Halves:
    """Divide a scan by which operands are unknown."""
    return _halves(*body, unknown_in, context.axes)


def _divide(jaxpr: Jaxpr, num_consts: int, num_carry: int, unknown_in: Flags, axes: Any) -> Halves:
    body = Body(jaxpr, num_consts, num_carry)
    consts, carry, xs = body.operands(unknown_in)
    while True:
        unknown = (*consts, *carry, *xs)
        split = split_jaxpr(jaxpr, unknown, (*carry, *[False] * (len(jaxpr.outvars) - num_carry)))
        grown = _either(carry, split.unknown_out[:num_carry])
        if grown == carry:
            free = [*range(num_consts), *range(num_consts + num_carry, len(unknown))]
            return _Halving(body, keep_small(split, free, num_carry), unknown).halves()
        carry = grown


_halves = WeakCache(_divide)


class _Halving:
    """A split body on its way to two scans.

    Each residual of a step becomes a constant or an input of the second scan. What the first scan has as an operand or
    returns anyway is handed on; what is the same in each step is computed again, from constants; the rest becomes
    further outputs of the first.
    """

    def __init__(self, body: Body, split: Split, unknown: Flags) -> None:
        self.body, self.split, self.unknown = body, split, unknown
        self.first = body.num_consts + body.num_carry  # the first operand that is an input
        self.known_of: dict[int, Var] = dict(zip(split.known_operands, split.known.invars, strict=True))
        n_residuals = len(split.residuals)
        self.staged_of: dict[int, Var] = dict(zip(split.staged_operands, split.staged.invars[n_residuals:],
                                                  strict=True))
        for i in range(body.num_consts, self.first):  # a carry stays one if no step reads it
            of = self.staged_of if unknown[i] else self.known_of
            of.setdefault(i, Var(body.jaxpr.invars[i].aval))
        results = [i for i, u in enumerate(split.unknown_out) if not u]
        self.known_result: dict[int, Atom] = dict(zip(results, split.known.outvars, strict=False))
        self.fresh_vars = split.known.outvars[len(results):]
        self.stacked = {self.known_result[i]: i for i in reversed(results) if i >= body.num_carry}
        self.extra: dict[Any, int] = {}  # what the first scan returns for the second
        self.consts: dict[int, Var] = {}  # constants of the second scan that are operands of the whole
        self.inputs: list[tuple[Place, Var]] = []

    def halves(self) -> Halves:
        """Place each residual, then put both scans together."""
        invariant = _invariant(self.split.known, [v for i, v in self.known_of.items() if i < self.body.num_consts])
        again: dict[Var, Var] = {}
        for (where, i), var in zip(self.split.residuals, self.split.staged.invars, strict=False):
            if where == "fresh" and self.fresh_vars[i] in invariant:
                again[var] = self.fresh_vars[i]  # type: ignore[assignment]
            elif where == "operand" and (i < self.body.num_consts or self._is_fixed(i)):
                self.consts[i] = var
            else:
                self.inputs.append((self._source(where, i), var))
        staged = self._recomputed(again)
        return Halves(*self._known(), *self._staged(staged), self.split.unknown_out)

    def _is_fixed(self, i: int) -> bool:
        return i < self.first and self.body.jaxpr.outvars[i - self.body.num_consts] is self.body.jaxpr.invars[i]

    def _source(self, where: str, i: int) -> Place:
        """Where the second scan finds an input: stacked by the first, unless it is there already."""
        if where == "operand" and i >= self.first:
            return "operand", i
        value = (self.known_of[i] if where == "operand" else self.known_result[i] if where == "result" else
                 self.fresh_vars[i])
        if value in self.stacked:
            return "result", self.stacked[value]
        return "fresh", self.extra.setdefault(value, len(self.extra))

    def _recomputed(self, again: dict[Var, Var]) -> Jaxpr:
        """The second body, computing these residuals from constants itself."""
        staged, known = self.split.staged, self.split.known
        if not again:
            return staged
        sources = [i for i in self.known_of if i < self.body.num_consts]
        recipe = Jaxpr((), [self.known_of[i] for i in sources], [*again.values()], known.eqns)
        recipe, used = dce(recipe, (True,) * len(again))
        args = [self.consts.setdefault(i, Var(self.known_of[i].aval)) for i in _marked(sources, used)]
        eqns, outs = inline(recipe, args)
        staged = substitute(staged, dict(zip(again, outs, strict=True)))
        return staged.replace(eqns=[*eqns, *staged.eqns])

    def _known(self) -> tuple[Body, list[int], list[ShapedArray]]:
        order = sorted(self.known_of)
        invars = [self.known_of[i] for i in order]
        keep = [self.body.num_consts <= i < self.first for i in order]
        outs = [*self.known_result.values(), *self.extra]
        known, used = dce(self.split.known.replace(invars=invars, outvars=outs), (True,) * len(outs), keep)
        order = _marked(order, used)
        n_consts = sum([i < self.body.num_consts for i in order])
        return Body(known, n_consts, sum(keep)), order, [x.aval for x in self.extra]

    def _staged(self, staged: Jaxpr) -> tuple[Body, list[Place]]:
        consts, carry, xs = [[i for i in sorted(self.staged_of) if low <= i < high] for low, high in (
            (0, self.body.num_consts), (self.body.num_consts, self.first), (self.first, len(self.unknown)))]
        own = self.staged_of
        invars = [*self.consts.values(), *[own[i] for i in (*consts, *carry)], *[v for _, v in self.inputs],
                  *[own[i] for i in xs]]
        places: list[Place] = [("operand", i) for i in (*self.consts, *consts, *carry)]
        places += [*[place for place, _ in self.inputs], *[("operand", i) for i in xs]]
        return Body(staged.replace(invars=invars), len(self.consts) + len(consts), len(carry)), places


def _invariant(jaxpr: Jaxpr, consts: Sequence[Var]) -> set[Any]:
    """The variables that depend on nothing but these, as no effect is involved."""
    found: set[Any] = {*consts}
    for eqn in jaxpr.eqns:
        if not eqn.effects and all([type(x) is Literal or x in found for x in eqn.invars]):
            found.update(eqn.outvars)
    return found
