"""Programs, one equation after the other, on intervals."""

from corejax.core import Literal, here
from corejax.errors import CorejaxNotImplementedError
from outside_intervals._values import is_interval

__all__ = ["evaluate", "rule"]

_RULES = {}


def rule(primitive, function=None):
    """Say what a primitive does with intervals: `function(*operands, **params)`, some of which are intervals.

    Takes the primitive or its public function. Without `function`, it is a decorator.
    """
    if function is None:
        return lambda function: rule(primitive, function)
    _RULES[getattr(primitive, "primitive", primitive)] = function
    return function


def evaluate(jaxpr, args):
    """The results of a program for operands of which some are intervals."""
    known = dict(zip(jaxpr.invars, args, strict=True))

    def read(atom):
        return atom.val if isinstance(atom, Literal) else known[atom]

    for eqn in jaxpr.eqns:
        found = _apply(eqn.primitive, [read(x) for x in eqn.invars], eqn.params)
        known.update(zip(eqn.outvars, found if eqn.primitive.multiple_results else [found], strict=True))
    return [read(x) for x in jaxpr.outvars]


def _apply(primitive, operands, params):
    if not any(map(is_interval, operands)):
        return primitive.bind(*operands, **params)
    if primitive not in _RULES:
        raise CorejaxNotImplementedError(
            f"{primitive.name} ({primitive.origin}) has no rule for intervals", primitive=primitive.name,
            where=here(), wanted="a primitive with one", todo="write one: @cj.interval.rule(primitive)")
    return _RULES[primitive](*operands, **params)
