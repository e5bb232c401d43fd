"""Rules derived from what primitives say for jvp, and functions that make rules of recurrences and of compositions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

from corejax.core import Primitive, as_value, aval_of, dtypes, eval_jaxpr, subjaxprs, tracing
from corejax.plugin import transforming
from corejax_taylor._local import FromJVP, LocalTrace, Rule, results
from corejax_taylor._nodes import Application, Constant, Given, Linear, Node, Params, Product, Recurrence, Sum

__all__: list[str] = []


def _type(primitive: Primitive, operands: Sequence[Node], params: Params) -> Any:
    return primitive.infer(tuple([x.aval for x in operands]), params)


def _moving(operands: Sequence[Node]) -> list[int]:
    return [i for i, x in enumerate(operands) if type(x) is not Constant]


def by_jvp(local: LocalTrace, primitive: Primitive, operands: Sequence[Node], params: Params) -> Any:
    """The rule derived from the jvp rule."""
    if primitive.multiple_results:
        return _several_by_jvp(local, primitive, operands, params)
    aval = _type(primitive, operands, params)
    node = FromJVP(aval, local, primitive, operands, params)
    return node if dtypes.is_inexact(aval.dtype) else Constant(node.value())


def _several_by_jvp(local: LocalTrace, primitive: Primitive, operands: Sequence[Node], params: Params) -> list[Node]:
    node = FromJVP((), local, primitive, operands, params)
    local.begin(node)
    if primitive.evaluate is not None:  # a program that wasn't traced yet only knows its result types once it has run
        node.coefficient(0)
    node.aval = _type(primitive, operands, params)
    return results(node, node.aval)


@cache
def linear(positions: tuple[int, ...] | None) -> Rule:
    """The rule of a primitive that is linear in these operands, jointly; in all but the first if that is None."""
    def rule(local: LocalTrace, primitive: Primitive, operands: Sequence[Node], params: Params) -> Any:
        chosen: Sequence[int] = range(1, len(operands)) if positions is None else positions
        if not set(_moving(operands)) <= set(chosen):
            return by_jvp(local, primitive, operands, params)
        avals = _type(primitive, operands, params)
        node = Linear(avals, primitive, operands, params, chosen)
        if primitive.multiple_results:
            return results(node, avals)
        return node if dtypes.is_inexact(avals.dtype) else Constant(node.value())
    return rule


def sums(local: LocalTrace, primitive: Primitive, operands: Sequence[Node], params: Params) -> Any:
    """The rule of a primitive whose factors are 1 and -1."""
    assert primitive.factors is not None
    return Sum(_type(primitive, operands, params), primitive, operands, params, primitive.factors)


@cache
def product(positions: frozenset[int], commutes: bool = False) -> Rule:
    """The rule of a primitive that is linear in each of these operands while the others are fixed."""
    def rule(local: LocalTrace, primitive: Primitive, operands: Sequence[Node], params: Params) -> Any:
        moving = _moving(operands)
        if not set(moving) <= positions:
            return by_jvp(local, primitive, operands, params)
        return Product(_type(primitive, operands, params), primitive, operands, params, moving, commutes)
    return rule


def decomposed(local: LocalTrace, primitive: Primitive, operands: Sequence[Node], params: Params) -> Any:
    """The rule of a primitive that is other primitives."""
    assert primitive.decompose is not None
    return composed(primitive.decompose)(local, primitive, operands, params)


def composed(function: Callable[..., Any]) -> Rule:
    """The rule of a primitive whose result is that of a function `f(args, **params)` of other primitives."""
    def rule(local: LocalTrace, primitive: Primitive, operands: Sequence[Node], params: Params) -> Any:
        with tracing(local):
            out = function([local.shown(x) for x in operands], **params)
        return list(map(local.node_of, out)) if primitive.multiple_results else local.node_of(out)
    return rule


def recurrent(step: Callable[..., Any]) -> Rule:
    """The rule of a primitive with a recurrence `f(k, out, *operands, **params)`: see `Recurrence`."""
    def rule(local: LocalTrace, primitive: Primitive, operands: Sequence[Node], params: Params) -> Application:
        return Recurrence(_type(primitive, operands, params), primitive, operands, params, step)
    return rule


def carried(jets: transforming.Lifting, box: Callable[..., Any]) -> Rule:
    """The rule of a primitive that carries programs, by its hook `carry`."""
    def rule(local: LocalTrace, primitive: Primitive, operands: Sequence[Node], params: Params) -> Any:
        if not all([type(x) in (Given, Constant) for x in operands]):  # their coefficients may wait for the result
            return _called(local, primitive, operands, params)
        orders = range(1, local.order + 1)
        args = [x.known[0] if type(x) is Constant else box(x.primal, tuple([x.coefficient(k) for k in orders]))
                for x in operands]
        assert primitive.carry is not None
        outs = primitive.carry(jets.lift(primitive), args, **params)
        found = [Given(aval_of(x.primal), [x.primal, *x.coefficients]) if jets.form(x) is not None else
                 Constant(as_value(x)) for x in (outs if primitive.multiple_results else [outs])]
        return found if primitive.multiple_results else found[0]
    return rule


def _called(local: LocalTrace, primitive: Primitive, operands: Sequence[Node], params: Params) -> Any:
    """The nodes of a call: those of its program, if it has one that runs once; else by the jvp rule."""
    programs = list(subjaxprs(params))
    runs_once = primitive.holds in (None, "recomputed") and len(programs) == 1
    if not runs_once or len(programs[0].invars) != len(operands) or not primitive.multiple_results:
        return by_jvp(local, primitive, operands, params)
    with tracing(local):
        outs = eval_jaxpr(programs[0], (), *[local.shown(x) for x in operands])
    return list(map(local.node_of, outs))
