"""Running a jaxpr: bind its equations one after the other.

The current trace decides what binding means, so every transformation of a jaxpr is an evaluation of it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

from corejax.base import source
from corejax.base.errors import CorejaxError, CorejaxTypeError
from corejax.base.source import at_hand, tell_where
from corejax.base.tracebacks import public
from corejax.kernel.binding import check_bound
from corejax.kernel.context import context
from corejax.kernel.jaxpr import Atom, ClosedJaxpr, Jaxpr, Literal, Var
from corejax.kernel.varying import varied


def location(depth: int = 0) -> source.Location:
    """The place in the user's code that is running now, or that the equation being evaluated came from.

    The first is looked for from `depth` frames above the caller outward.
    """
    place: source.Location = getattr(at_hand.eqn, "source", None)
    return source.location(depth + 1) if place is None else place


class _Plan:
    """Precomputed for evaluating a jaxpr: the values of literals, and the variables last used in each equation.

    `varying` says along which axes the inputs vary; None if none does. `scoped` says whether any equation has a scope.
    """

    __slots__ = ("ends", "literals", "scoped", "varying")

    def __init__(self, jaxpr: Jaxpr) -> None:
        self.literals: dict[Atom, Any] = {x: x.val for x in jaxpr.outvars if type(x) is Literal}
        self.varying = [v.aval.varying for v in jaxpr.invars] if any([v.aval.varying for v in jaxpr.invars]) else None
        self.scoped = any([eqn.scope for eqn in jaxpr.eqns])
        self.ends: list[list[Var] | None] = []
        seen: set[Atom] = {*jaxpr.outvars}
        for eqn in reversed(jaxpr.eqns):
            ends: list[Var] = []
            for x in eqn.invars:
                if x not in seen:
                    seen.add(x)
                    if type(x) is Literal:
                        self.literals[x] = x.val
                    else:
                        ends.append(x)
            for v in eqn.outvars:
                if v not in seen:
                    ends.append(v)
            self.ends.append(ends or None)
        self.ends.reverse()


def eval_jaxpr(jaxpr: Jaxpr, consts: Sequence[object], *args: Any) -> list[Any]:
    """The outputs of a jaxpr for values of its constvars and invars.

    Traceable: each equation is bound under the current trace. Takes linear time, and drops every intermediate value
    after its last use. Whatever is bound meanwhile inherits the equation's place in the user's code, and its scope.
    """
    plan: _Plan | None = jaxpr._memo.get("plan")
    if plan is None:
        plan = jaxpr._memo["plan"] = _Plan(jaxpr)
    if len(consts) != len(jaxpr.constvars) or len(args) != len(jaxpr.invars):
        raise _arity_error(jaxpr, consts, args)
    if plan.varying is not None:
        args = tuple(map(varied, args, plan.varying))  # what is done to a value may depend on where its type varies
    env = plan.literals.copy()
    env.update(zip(jaxpr.constvars, consts, strict=True))
    env.update(zip(jaxpr.invars, args, strict=True))
    del consts, args
    read = env.__getitem__
    outer, around, names, scoped = at_hand.eqn, at_hand.around, context.names, plan.scoped
    try:
        at_hand.around = sys._getframe(), outer, around
        for eqn, ends in zip(jaxpr.eqns, plan.ends, strict=True):
            at_hand.eqn = eqn
            if scoped:
                context.names = (*names, *eqn.scope)
            primitive = eqn.primitive
            result = primitive.bind(*map(read, eqn.invars), **eqn.params)
            if primitive.multiple_results:
                env.update(zip(eqn.outvars, result, strict=True))
            else:
                env[eqn.outvars[0]] = result
            result = None
            if ends is not None:
                for var in ends:
                    del env[var]
        return [read(x) for x in jaxpr.outvars]
    except CorejaxError as error:
        tell_where(error)
        raise
    except KeyError as error:
        if error.args and type(error.args[0]) is Var and error.args[0] not in env:
            check_bound(jaxpr)
        raise
    finally:
        at_hand.eqn, at_hand.around, context.names = outer, around, names


def _arity_error(jaxpr: Jaxpr, consts: Sequence[object], args: Sequence[object]) -> CorejaxTypeError:
    return CorejaxTypeError(
        f"evaluating the jaxpr{' of ' + jaxpr.name if jaxpr.name else ''}: wrong number of values",
        got=f"{len(consts)} constants and {len(args)} arguments",
        wanted=f"{len(jaxpr.constvars)} constants and {len(jaxpr.invars)} arguments", where=source.here(),
        todo="arguments are passed flat, one for each invar: eval_jaxpr(jaxpr, consts, *args)")


def jaxpr_as_fun(closed: ClosedJaxpr) -> Callable[..., list[Any]]:
    """A closed jaxpr as a function from flat arguments to the list of outputs."""
    @public
    def fun(*args: Any) -> list[Any]:
        return eval_jaxpr(closed.jaxpr, closed.consts, *args)

    fun.__name__ = fun.__qualname__ = closed.jaxpr.name or "fun"
    return fun
