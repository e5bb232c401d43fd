"""Splitting a jaxpr for a primitive that carries it: what runs now, what waits, and what one passes on.

`partial_eval_jaxpr` decides which equations go where. An equation that carries a jaxpr needs more: no part returns what
its caller already has, nothing is returned twice, and neither part takes operands that it doesn't use.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Generic, NamedTuple, TypeVar

from corejax.base.avals import ShapedArray
from corejax.base.caches import WeakCache
from corejax.base.errors import CorejaxError
from corejax.base.source import at_hand, tell_where
from corejax.interpreters.partial_eval import divide
from corejax.ir.arguments import check_each, for_each_output
from corejax.ir.surgery import dce, substitute
from corejax.kernel.axes import AxisEnv
from corejax.kernel.context import context
from corejax.kernel.jaxpr import Atom, Jaxpr, Literal, Var

P = TypeVar("P")
Flags = tuple[bool, ...]
Place = tuple[str, int]
"""Where a part's operand comes from: ("operand", i) or ("result", i) of the whole, or ("fresh", i)."""


class Split(NamedTuple, Generic[P]):
    """A program in two parts. Each is a jaxpr, or whatever a primitive combines several jaxprs into.

    `known` maps the inputs at `known_operands` to the known outputs and then the fresh residuals; `staged` maps the
    residuals and then the inputs at `staged_operands` to the unknown outputs. `residuals` says where each residual
    comes from: ("operand", i) is the i-th input, ("result", i) the i-th output of the whole, ("fresh", i) the i-th
    fresh one.
    """

    known: P
    staged: P
    unknown_out: Flags
    known_operands: Sequence[int]
    staged_operands: Sequence[int]
    residuals: Sequence[Place]
    fresh_avals: Sequence[ShapedArray]

    @property
    def places(self) -> list[Place]:
        """Where each operand of the staged part comes from."""
        return [*self.residuals, *[("operand", i) for i in self.staged_operands]]


def split_jaxpr(jaxpr: Jaxpr, unknown_in: Sequence[bool], instantiate: bool | Sequence[bool] = False) -> Split[Jaxpr]:
    """Split by which inputs are unknown; `instantiate` forces outputs to be unknown."""
    return _split_jaxpr(jaxpr, tuple(unknown_in), for_each_output("split_jaxpr", jaxpr, instantiate), context.axes)


def _split(jaxpr: Jaxpr, unknown_in: Flags, instantiate: Flags, axes: AxisEnv) -> Split[Jaxpr]:
    check_each("split_jaxpr", "unknown_in", unknown_in, len(jaxpr.invars), "input")
    check_each("split_jaxpr", "instantiate", instantiate, len(jaxpr.outvars), "output")
    if _waits_whole(jaxpr, unknown_in, instantiate):
        first = unknown_in.index(True)
        whole = jaxpr.replace()  # not the cache's own key; its equations are the same, so they aren't split again
        return Split(Jaxpr((), (), (), ()), whole, (True,) * len(jaxpr.outvars), (),
                     tuple(range(first, len(unknown_in))), tuple([("operand", i) for i in range(first)]), ())
    known, staged, unknown_out, count = divide(jaxpr, unknown_in, instantiate)
    n_outs = len(known.outvars) - count
    known_at = [i for i, unknown in enumerate(unknown_in) if not unknown]
    unknown_at = [i for i, unknown in enumerate(unknown_in) if unknown]
    place_of: dict[Atom, tuple[str, int]] = {v: ("operand", i) for v, i in zip(known.invars, known_at, strict=True)}
    results = [i for i, unknown in enumerate(unknown_out) if not unknown]
    for atom, i in zip(known.outvars, results, strict=False):
        if type(atom) is Var:
            place_of.setdefault(atom, ("result", i))
    staged, values = _with_distinct_residuals(staged, known.outvars[n_outs:])
    staged, used = dce(staged, (True,) * len(staged.outvars))
    values = [x for x, needed in zip(values, used, strict=False) if needed]
    fresh = [x for x in values if x not in place_of]
    place_of.update({x: ("fresh", i) for i, x in enumerate(fresh)})
    known, used_known = dce(known.replace(outvars=[*known.outvars[:n_outs], *fresh]), (True,) * (n_outs + len(fresh)))
    return Split(
        known, staged, unknown_out,
        tuple([i for i, needed in zip(known_at, used_known, strict=True) if needed]),
        tuple([i for i, needed in zip(unknown_at, used[len(used) - len(unknown_at):], strict=True) if needed]),
        tuple([place_of[x] for x in values]), tuple([x.aval for x in fresh]))


def _waits_whole(jaxpr: Jaxpr, unknown_in: Flags, instantiate: Flags) -> bool:
    """Whether nothing runs now, nothing is dead, and the operands are in order, as in linear parts.

    Without this, each level of nested linear programs would be split again by each level around it.
    """
    if True not in unknown_in or False in unknown_in[unknown_in.index(True):]:
        return False
    unknown: set[Var] = {v for v, u in zip(jaxpr.invars, unknown_in, strict=True) if u}
    outer, around = at_hand.eqn, at_hand.around
    try:
        at_hand.around = sys._getframe(), outer, around
        for eqn in jaxpr.eqns:
            at_hand.eqn = eqn
            if unknown.isdisjoint(eqn.invars):
                return False
            if eqn.primitive.partial_eval is not None:
                flags = tuple([x in unknown for x in eqn.invars])
                if False in flags and eqn.primitive.partial_eval(eqn, flags)[0] is not None:
                    return False
            unknown.update(eqn.outvars)
    except CorejaxError as error:
        tell_where(error)
        raise
    finally:
        at_hand.eqn, at_hand.around = outer, around
    if not all([force or x in unknown for x, force in zip(jaxpr.outvars, instantiate, strict=True)]):
        return False
    return dce(jaxpr, (True,) * len(jaxpr.outvars))[0] is jaxpr


def _with_distinct_residuals(staged: Jaxpr, atoms: Sequence[Atom]) -> tuple[Jaxpr, list[Var]]:
    """The staged part with each residual once and literals written in; the residuals, as atoms of the known part."""
    first: dict[Var, Var] = {}
    replaced: dict[Var, Atom] = {}
    for atom, var in zip(atoms, staged.invars, strict=False):
        if type(atom) is Literal:
            replaced[var] = atom
        elif first.setdefault(atom, var) is not var:
            replaced[var] = first[atom]
    return substitute(staged, replaced), list(first)


_split_jaxpr = WeakCache(_split)
