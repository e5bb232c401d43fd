"""Programs solved for what isn't known, by running equations forward and backward."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from corejax.core import Atom, Jaxpr, JaxprEqn, Literal, Var, here
from corejax.errors import CorejaxValueError
from corejax.ir.surgery import dce
from corejax.plugin import transforming
from corejax_inverse._rules import Unknown

__all__ = ["solve"]


def solve(transformation: transforming.Transformation, jaxpr: Jaxpr, args: Sequence[Any], outs: Sequence[Any],
          consts: Sequence[Any] = ()) -> list[Any]:
    """The inputs that are unknown among `args`, in order, from the others and the outputs.

    An equation whose operands are known runs forward; one whose results are known runs backward, by its rule. So each
    unknown has to be found in one way only: a program that uses it twice is solved if one of the uses gives it.
    """
    jaxpr, _ = dce(jaxpr, (True,) * len(jaxpr.outvars), True)  # a result that nobody has can't be undone
    known: dict[Var, Any] = dict(zip(jaxpr.constvars, consts, strict=True))
    known.update([(v, x) for v, x in zip(jaxpr.invars, args, strict=True) if type(x) is not Unknown])
    for atom, x in zip(jaxpr.outvars, outs, strict=True):
        if type(atom) is Var:
            known.setdefault(atom, x)
    waiting = list(jaxpr.eqns)
    while waiting and not all([v in known for v in jaxpr.invars]):
        count = len(waiting)
        waiting = [eqn for eqn in waiting if not _forward(eqn, known)]
        waiting = [eqn for eqn in reversed(waiting) if not _backward(transformation, eqn, known)][::-1]
        if len(waiting) == count:
            break
    missing = [v for v in jaxpr.invars if v not in known]
    if missing:
        raise _not_one_to_one(transformation, waiting, known)
    return [known[v] for v, x in zip(jaxpr.invars, args, strict=True) if type(x) is Unknown]


def _read(known: dict[Var, Any], atom: Atom) -> Any:
    return atom.val if isinstance(atom, Literal) else known[atom]


def _has(known: dict[Var, Any], atom: Atom) -> bool:
    return isinstance(atom, Literal) or atom in known


def _forward(eqn: JaxprEqn, known: dict[Var, Any]) -> bool:
    """Run an equation if its operands are known."""
    if not all([_has(known, atom) for atom in eqn.invars]):
        return False
    out = eqn.primitive.bind(*[_read(known, atom) for atom in eqn.invars], **eqn.params)
    for v, x in zip(eqn.outvars, out if eqn.primitive.multiple_results else [out], strict=True):
        known.setdefault(v, x)
    return True


def _backward(transformation: transforming.Transformation, eqn: JaxprEqn, known: dict[Var, Any]
              ) -> bool:
    """Run an equation backward if its results are known, and it has a rule for the operands that aren't."""
    if not all([v in known for v in eqn.outvars]):
        return False
    unknown = [atom for atom in eqn.invars if isinstance(atom, Var) and atom not in known]
    if len(set(unknown)) < len(unknown):
        return False
    try:
        found = _undone(transformation, eqn, known)
    except NotImplementedError:  # perhaps it can run forward later
        return False
    known.update(zip(unknown, found, strict=True))
    return True


def _undone(transformation: transforming.Transformation, eqn: JaxprEqn, known: dict[Var, Any]) -> list[Any]:
    """The unknown operands of an equation whose results are known."""
    outs = [known[v] for v in eqn.outvars]
    rule = transformation.rule(eqn.primitive)
    found: list[Any] = rule(
        outs if eqn.primitive.multiple_results else outs[0],
        [_read(known, atom) if _has(known, atom) else Unknown(atom.aval) for atom in eqn.invars], **eqn.params)
    return found


def _not_one_to_one(transformation: transforming.Transformation, waiting: Sequence[JaxprEqn], known: dict[Var, Any]
                    ) -> Exception:
    """Why there is an unknown left: an equation with known results that has no inverse, or several unknowns."""
    stuck = [eqn for eqn in waiting if all([v in known for v in eqn.outvars])]
    for eqn in reversed(stuck):
        unknown = [atom for atom in eqn.invars if not _has(known, atom)]
        if len(set(unknown)) == len(unknown):
            try:
                _undone(transformation, eqn, known)
            except NotImplementedError as error:
                return error
    return CorejaxValueError(
        f"{transformation.name}: the function isn't one-to-one, as far as its equations tell", where=here(),
        got=str(stuck[-1])[:200] if stuck else "a result that doesn't depend on the argument",
        wanted="equations with one unknown operand when their results are known", hook=transformation.name,
        todo="use what is unknown once, or return what it can be found by, too")
