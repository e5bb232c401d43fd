"""Checks that every variable of a jaxpr is bound before it is used, and that literals have the types they state."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from corejax.base import dtypes
from corejax.base.avals import aval_of
from corejax.base.errors import CorejaxTypeError
from corejax.base.source import describe
from corejax.kernel.jaxpr import Atom, Jaxpr, Literal, Var
from corejax.kernel.printing import Names, equation_text


def check_bound(jaxpr: Jaxpr) -> None:
    """Raise if an equation, or the list of outputs, uses a variable that isn't bound before it."""
    bound: set[Var] = {*jaxpr.constvars, *jaxpr.invars}
    for k, eqn in enumerate(jaxpr.eqns):
        check_operands(jaxpr, k, eqn.invars, bound)
        bound.update(eqn.outvars)
    check_operands(jaxpr, len(jaxpr.eqns), jaxpr.outvars, bound)


def check_operands(jaxpr: Jaxpr, k: int, atoms: Sequence[Atom], bound: set[Var]) -> None:
    """Check the operands of equation `k`, or the list of outputs: variables are bound, literals of their types."""
    for x in atoms:
        if type(x) is Literal:
            _check_literal(jaxpr, k, x)
        elif x not in bound:
            raise _unbound(jaxpr, k, x)


def _unbound(jaxpr: Jaxpr, k: int, var: Atom) -> CorejaxTypeError:
    return ill_typed(jaxpr, k, f"uses `{names_of(jaxpr)[var]}`, which is not bound before it", got=repr(var),
                  wanted="a variable of this jaxpr: a constvar, an invar, or an output of an earlier equation")


def _check_literal(jaxpr: Jaxpr, k: int, literal: Literal) -> None:
    aval, value = literal.aval, literal.val
    kind = dtypes.PYTHON_SCALARS.get(type(value))
    if kind is not None:
        fits = aval.shape == () and dtypes.kind(aval.dtype).replace("u", "i") == kind
    else:
        fits = aval.matches(aval_of(value))
    if not fits:
        got = type(value).__name__ if kind is not None else aval_of(value)
        raise ill_typed(jaxpr, k, "has a literal that isn't of the type that it states",
                     got=f"{np.asarray(value)!s:.60} of type {got}", wanted=f"a value of type {aval}")


def ill_typed(jaxpr: Jaxpr, k: int | None, problem: str, **parts: Any) -> CorejaxTypeError:
    """An error that shows equation `k`; it is about the binders if `k` is None, about the outputs if past the last."""
    if k is None:
        return CorejaxTypeError(f"ill-typed jaxpr: its head {problem}", **parts)
    if k == len(jaxpr.eqns):
        return CorejaxTypeError(f"ill-typed jaxpr: its list of outputs {problem}", **parts)
    eqn = jaxpr.eqns[k]
    shown = equation_text(eqn, names_of(jaxpr)).replace("\n", "\n    ")
    return CorejaxTypeError(f"ill-typed jaxpr: equation {k} {problem}\n    {shown}", where=describe(eqn.source),
                            primitive=eqn.primitive.name, **parts)


def names_of(jaxpr: Jaxpr) -> Names:
    """The names that printing the jaxpr would use (except for `_`)."""
    names = Names()
    used = {x for eqn in jaxpr.eqns for x in eqn.invars}.union(jaxpr.outvars)
    for var in (*jaxpr.constvars, *jaxpr.invars, *[v for eqn in jaxpr.eqns for v in eqn.outvars if v in used]):
        names[var]
    return names
