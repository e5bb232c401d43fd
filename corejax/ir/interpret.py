"""Running a jaxpr: bind its equations one after the other.

What binding means is the current trace's affair, so every transformation of a jaxpr is an evaluation of it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from corejax import source
from corejax.errors import CorejaxTypeError
from corejax.ir.jaxpr import ClosedJaxpr, Jaxpr, JaxprEqn, Literal
from corejax.ir.typecheck import unbound_error

# What evaluating one equation needs: slots of operands, of the output or outputs, and of what dies after it.
_Step: TypeAlias = tuple[JaxprEqn, list[int], int | list[int], Sequence[int]]


class _Replaying(threading.local):
    """The equation that this thread is evaluating, None outside of `eval_jaxpr`."""

    eqn: JaxprEqn | None = None


replaying = _Replaying()


def location() -> source.Location:
    """The place in the user's code that is running now, or that the equation being evaluated came from."""
    eqn = replaying.eqn
    if eqn is None or eqn.source is None:
        return source.location()
    return eqn.source


class _Plan:
    """A jaxpr laid out for evaluation: every value has a slot; `constants` fill those of literals beforehand."""

    __slots__ = ("n_args", "constants", "steps", "outs")

    def __init__(self, jaxpr: Jaxpr) -> None:
        slots: dict[Any, int] = {var: i for i, var in enumerate((*jaxpr.constvars, *jaxpr.invars))}
        self.n_args = len(slots)
        constants: list[Any] = []

        def slot(atom: Any) -> int:
            if type(atom) is not Literal:
                return slots[atom]
            constants.append(atom.val)
            return self.n_args + len(constants) - 1

        steps: list[_Step] = []
        last_use = [-1] * self.n_args
        for k, eqn in enumerate(jaxpr.eqns):
            try:
                ins = [slot(x) for x in eqn.invars]
            except KeyError:
                raise unbound_error(jaxpr, k) from None
            outs = range(self.n_args + len(constants), self.n_args + len(constants) + len(eqn.outvars))
            constants += [None] * len(outs)
            slots.update(zip(eqn.outvars, outs, strict=True))
            last_use += [-1] * (outs.stop - len(last_use))
            for i, x in zip(ins, eqn.invars, strict=True):
                last_use[i] = k if type(x) is not Literal else -1
            for i in outs:
                last_use[i] = k
            steps.append((eqn, ins, list(outs) if eqn.primitive.multiple_results else outs[0], []))
        try:
            self.outs = [slot(x) for x in jaxpr.outvars]
        except KeyError:
            raise unbound_error(jaxpr, len(steps)) from None
        _bury(steps, last_use, self.outs)
        self.constants, self.steps = constants, steps


def _bury(steps: list[_Step], last_use: list[int], outs: list[int]) -> None:
    """Tell each step which slots nobody reads after it."""
    for i in outs:
        if i < len(last_use):
            last_use[i] = -1
    for i, k in enumerate(last_use):
        if k >= 0:
            steps[k][3].append(i)  # type: ignore[attr-defined]


def eval_jaxpr(jaxpr: Jaxpr, consts: Sequence[Any], *args: Any) -> list[Any]:
    """The outputs of a jaxpr for values of its constvars and invars.

    Traceable: each equation is bound under the current trace. Takes linear time, and lets go of every intermediate value
    after its last use. An equation bound meanwhile inherits the place in the user's code of the one it stems from.
    """
    plan: _Plan | None = jaxpr._memo.get("plan")
    if plan is None:
        plan = jaxpr._memo["plan"] = _Plan(jaxpr)
    if len(consts) != len(jaxpr.constvars) or len(consts) + len(args) != plan.n_args:
        raise _arity_error(jaxpr, consts, args)
    env = [*consts, *args, *plan.constants]
    del consts, args
    outer = replaying.eqn
    try:
        for eqn, ins, outs, dead in plan.steps:
            replaying.eqn = eqn
            result = eqn.primitive.bind(*[env[i] for i in ins], **eqn.params)
            if type(outs) is int:
                env[outs] = result
            else:
                for i, value in zip(outs, result, strict=True):  # type: ignore[arg-type]
                    env[i] = value
                value = None
            result = None
            for i in dead:
                env[i] = None
    finally:
        replaying.eqn = outer
    return [env[i] for i in plan.outs]


def _arity_error(jaxpr: Jaxpr, consts: Sequence[Any], args: Sequence[Any]) -> CorejaxTypeError:
    return CorejaxTypeError(
        f"evaluating the jaxpr{' of ' + jaxpr.name if jaxpr.name else ''}: wrong number of values",
        got=f"{len(consts)} constants and {len(args)} arguments",
        wanted=f"{len(jaxpr.constvars)} constants and {len(jaxpr.invars)} arguments", where=source.here(),
        todo="arguments are passed flat, one for each invar: eval_jaxpr(jaxpr, consts, *args)")


def jaxpr_as_fun(closed: ClosedJaxpr) -> Callable[..., list[Any]]:
    """The function that a closed jaxpr describes: flat arguments to the list of outputs."""
    def fun(*args: Any) -> list[Any]:
        return eval_jaxpr(closed.jaxpr, closed.consts, *args)

    fun.__name__ = fun.__qualname__ = closed.jaxpr.name or "fun"
    return fun
