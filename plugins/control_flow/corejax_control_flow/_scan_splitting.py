"""A scan in two: what runs now, and what waits for the unknown operands.

The step is split already (`carrying.split_jaxpr`). The second scan needs the residuals of every step, and a table says
where it has each from.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from corejax.core import Again, Atom, Jaxpr, Literal, Var
from corejax.ir.surgery import dce, inline, substitute
from corejax.plugin import carrying
from corejax_control_flow._scan_body import Body

Flags = carrying.Flags


def split_scan(body: Body, split: carrying.Split[Jaxpr], unknown: Flags) -> carrying.Split[Body]:
    """Make two scans of a split step. `unknown` are the operands that wait, the carry's as they are in every step."""
    now, waiting = _variables(body, split, unknown)
    table, stacked = _table(body, split, now)
    known, operands = _known(body, split, now, stacked)
    staged, places = _staged(body, split, now, waiting, table)
    return carrying.Split(known, staged, split.unknown_out, operands, (), places, [x.aval for x in stacked])


class _Now(NamedTuple):
    """The variables of the first step, by the operand or the output of the whole step that each is."""

    operands: dict[int, Var]
    results: dict[int, Atom]
    fresh: Sequence[Atom]


def _variables(body: Body, split: carrying.Split[Jaxpr], unknown: Flags) -> tuple[_Now, dict[int, Var]]:
    """Those of the first step, and the operands of the second, but for residuals."""
    now = dict(zip(split.known_operands, split.known.invars, strict=True))
    waiting = dict(zip(split.staged_operands, split.staged.invars[len(split.residuals):], strict=True))
    for i in range(body.num_consts, body.first_input):  # a carry stays one if no step reads it
        (waiting if unknown[i] else now).setdefault(i, Var(body.jaxpr.invars[i].aval))
    known_out = [i for i, u in enumerate(split.unknown_out) if not u]
    results = dict(zip(known_out, split.known.outvars, strict=False))
    return _Now(now, results, split.known.outvars[len(known_out):]), waiting


class _Row(NamedTuple):
    """A residual, by its variable in the second step, and where the second scan has it from: one of the others."""

    var: Var
    const: int | None = None
    """The operand of the whole scan that it is: it is the same in each step."""
    again: Atom | None = None
    """The variable of the first step that is computed again, from constants."""
    place: carrying.Place | None = None
    """What has a slice for each step: an input or an output of the whole scan, or what the first scan stacks."""


def _table(body: Body, split: carrying.Split[Jaxpr], now: _Now) -> tuple[list[_Row], dict[Atom, int]]:
    """A row for each residual; and what the first scan has to stack for them, beside the outputs of the whole."""
    invariant = _invariant(split.known, [v for i, v in now.operands.items() if i < body.num_consts])
    outputs = {now.results[i]: i for i in reversed(now.results) if i >= body.num_carry}
    rows, stacked = [], dict[Atom, int]()
    for (where, i), var in zip(split.residuals, split.staged.invars, strict=False):
        if where == "operand" and (i < body.num_consts or body.passes_on(i)):
            rows.append(_Row(var, const=i))
        elif where == "operand" and i >= body.first_input:
            rows.append(_Row(var, place=("operand", i)))
        elif where == "fresh" and now.fresh[i] in invariant:
            rows.append(_Row(var, again=now.fresh[i]))
        else:
            value = now.operands[i] if where == "operand" else now.results[i] if where == "result" else now.fresh[i]
            rows.append(_Row(var, place=("result", outputs[value]) if value in outputs else
                             ("fresh", stacked.setdefault(value, len(stacked)))))
    return rows, stacked


def _invariant(jaxpr: Jaxpr, consts: Sequence[Var]) -> set[Any]:
    """The variables that depend only on these, through equations without effects."""
    found: set[Any] = {*consts}
    for eqn in jaxpr.eqns:
        if not eqn.effects and all([type(x) is Literal or x in found for x in eqn.invars]):
            found.update(eqn.outvars)
    return found


def _known(body: Body, split: carrying.Split[Jaxpr], now: _Now, stacked: dict[Atom, int]) -> tuple[Body, list[int]]:
    """The first scan, and the operands of the whole that it takes."""
    order = sorted(now.operands)
    keep = [body.num_consts <= i < body.first_input for i in order]
    outs = [*now.results.values(), *stacked]
    known, used = dce(split.known.replace(invars=[now.operands[i] for i in order], outvars=outs),
                      (True,) * len(outs), keep)
    order = carrying.marked(order, used)
    return Body(known, sum([i < body.num_consts for i in order]), sum(keep)), order


def _staged(body: Body, split: carrying.Split[Jaxpr], now: _Now, waiting: dict[int, Var], table: Sequence[_Row]
            ) -> tuple[Body, list[carrying.Place]]:
    """The second scan, and where its operands come from."""
    consts = {row.const: row.var for row in table if row.const is not None}
    staged = _computing_again(body, split, now, table, consts)
    inputs = [row for row in table if row.place is not None]
    own_consts, carry, xs = [[i for i in sorted(waiting) if low <= i < high] for low, high in (
        (0, body.num_consts), (body.num_consts, body.first_input), (body.first_input, len(body.jaxpr.invars)))]
    invars = [*consts.values(), *[waiting[i] for i in (*own_consts, *carry)], *[row.var for row in inputs],
              *[waiting[i] for i in xs]]
    places: list[carrying.Place] = [("operand", i) for i in (*consts, *own_consts, *carry)]
    places += [row.place for row in inputs if row.place is not None]
    places += [("operand", i) for i in xs]
    return Body(staged.replace(invars=invars), len(consts) + len(own_consts), len(carry)), places


def _computing_again(body: Body, split: carrying.Split[Jaxpr], now: _Now, table: Sequence[_Row],
                     consts: dict[int, Var]) -> Jaxpr:
    """The second step, which computes some residuals itself; `consts` gets the constants that it needs for that."""
    again = {row.var: row.again for row in table if row.again is not None}
    if not again:
        return split.staged
    sources = [i for i in now.operands if i < body.num_consts]
    eqns = [eqn for eqn in split.known.eqns if not eqn.effects]  # which happen once
    recipe = Jaxpr((), [now.operands[i] for i in sources], [*again.values()], eqns)
    recipe, used = dce(recipe, (True,) * len(again))
    args = [consts.setdefault(i, Var(now.operands[i].aval)) for i in carrying.marked(sources, used)]
    inlined, outs = inline(recipe, args)
    scope = Again("again")
    eqns = [eqn.replace(scope=(*eqn.scope, scope)) for eqn in inlined]
    staged = substitute(split.staged, dict(zip(again, outs, strict=True)))
    return staged.replace(eqns=[*eqns, *staged.eqns])
