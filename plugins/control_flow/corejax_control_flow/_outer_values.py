"""Users' functions as programs, with the traced values that they and their rules close over as operands."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any, NamedTuple

from corejax.core import Jaxpr, ShapedArray, Var, belongs, context, forget_when_done, stage_function
from corejax_control_flow._closures import Reached, reached, reached_at_once


class Opened(NamedTuple):
    """A function as a program whose first operands are `consts`: what it and its rules close over, with its names."""

    jaxpr: Jaxpr
    consts: list[Any]
    names: list[str]
    out_tree: Any
    found: Reached


def opened(fun: Callable[..., Any], avals: Sequence[ShapedArray], in_tree: Any, name: str, search: Callable[[], Reached]
           ) -> Opened:
    """The program of a function; `search` finds what it and its rules can read."""
    staged = stage_function(fun, avals, in_tree, name)
    found = search()
    names = {id(x): each for x, each in found.tracers}
    known = {id(x) for x in staged.consts}
    more = [x for x, _ in found.tracers if id(x) not in known]
    jaxpr, consts = with_more(staged.jaxpr, more), [*more, *staged.consts]
    return Opened(jaxpr, consts, [names.get(id(x), "") for x in consts], staged.out_tree, found)


def with_more(jaxpr: Jaxpr, more: Sequence[Any]) -> Jaxpr:
    """The program with more operands, before the others, for these values, which only rules read."""
    return jaxpr.replace(invars=[*[Var(x.aval) for x in more], *jaxpr.invars]) if more else jaxpr


def outer_values(functions: Sequence[Any], owner: object, fixed: Collection[Any] = (), thoroughly: bool = False
                 ) -> Reached:
    """What these functions of an owner can read, and arguments that aren't data; of traced values, those valid here.

    With an owner, the functions are always the same, so that the key need not say which they are.
    """
    trace = context.trace
    if owner is not None and not (fixed or thoroughly):
        at_once = reached_at_once(functions, owner, with_key=trace.is_staging)
        if at_once is not None:
            return at_once
    everything = reached(*functions, *fixed, owner=owner, with_key=trace.is_staging)
    found = [(x, name) for x, name in everything.tracers if belongs(x, trace)]
    for x, _ in found:
        forget_when_done(x)
    return everything._replace(tracers=found, holders=[each for each in everything.holders if each[0].is_usable])
