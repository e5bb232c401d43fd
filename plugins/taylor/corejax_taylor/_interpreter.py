"""Taylor mode as a trace: each value travels with the coefficients of its series.

Inside, these are normalised: the coefficient of t^k is the k-th derivative over k!, so that products are convolutions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from corejax.core import (
    PrimalTracer,
    Primitive,
    Trace,
    as_value,
    aval_of,
    belongs,
    context,
    dtypes,
    leak_error,
)
from corejax.plugin import Zero, transforming
from corejax_taylor._coefficients import settled
from corejax_taylor._local import LocalTrace
from corejax_taylor._nodes import Given, Node, Params

__all__: list[str] = []


class JetTracer(PrimalTracer):
    """A primal value with its other coefficients, of which one at least isn't a `Zero`."""

    __slots__ = ("coefficients",)

    def __init__(self, trace: Trace, primal: Any, coefficients: tuple[Any, ...]) -> None:
        self._trace = trace
        self.aval = primal.aval
        self.primal = primal
        self.coefficients = coefficients


class JetTrace(Trace):
    """Applies primitives to values with coefficients up to `order`, by the rules of a transformation."""

    __slots__ = ("jets", "order")
    parent: Trace

    def __init__(self, parent: Trace, order: int, jets: transforming.Transformation) -> None:
        super().__init__(parent)
        self.order, self.jets = order, jets

    def process(self, primitive: Primitive, args: Sequence[Any], params: Params) -> Any:
        parent = self.parent
        context.trace = parent
        try:
            if not any([type(x) is JetTracer and x._trace is self for x in args]):
                return parent.process(primitive, args, params)
            if primitive.effects is not None:
                transforming.check_effects(self.jets, primitive, args, params)
            local = LocalTrace(parent, self.order, self.jets.rule)
            try:
                return self._apply(local, primitive, args, params)
            finally:
                local.end()
        finally:
            context.trace = self

    def _apply(self, local: LocalTrace, primitive: Primitive, args: Sequence[Any], params: Params) -> Any:
        given: dict[int, Node] = {}
        operands: list[Node] = []
        for i, x in enumerate(args):
            if type(x) is not JetTracer or x._trace is not self:
                operands.append(local.constant(local.rule_operand(primitive, i, x)))
                continue
            if id(x) not in given:
                given[id(x)] = Given(x.aval, (x.primal, *x.coefficients))
            operands.append(given[id(x)])
        result = local.apply(primitive, operands, params)
        return list(map(self.boxed, result)) if primitive.multiple_results else self.boxed(result)

    def boxed(self, node: Node) -> Any:
        """The series of a result, which isn't boxed if it is constant."""
        aval = node.aval
        primal = as_value(node.primal)
        if not dtypes.is_inexact(aval.dtype):
            return primal
        coefficients = tuple([settled(node.coefficient(k), aval.tangent) for k in range(1, self.order + 1)])
        return box(self, primal, coefficients)


def box(trace: JetTrace, primal: Any, coefficients: tuple[Any, ...]) -> Any:
    """A value with its coefficients; the value alone if they are all zero."""
    if all([type(c) is Zero for c in coefficients]):
        return primal
    return JetTracer(trace, primal, coefficients)


def jet_flat(jets: transforming.Transformation, fun: Callable[..., Sequence[Any]], order: int, primals: Sequence[Any],
             series: Sequence[Sequence[Any]]) -> tuple[list[Any], list[list[Any]]]:
    """The results of `fun`, which takes and returns sequences of arrays, and the normalised coefficients of each.

    Coefficients may be `Zero`; those of primals too.
    """
    parent = context.trace
    trace = JetTrace(parent, order, jets)
    args = [box(trace, as_value(x), tuple(terms)) for x, terms in zip(primals, series, strict=True)]
    context.trace = trace
    try:
        outs, coefficients = [], []
        for x in fun(*args):
            if type(x) is JetTracer and x._trace is trace:
                outs.append(x.primal)
                coefficients.append(list(x.coefficients))
                continue
            if not belongs(x, trace):
                raise leak_error(x, "computing a Taylor series")
            outs.append(x)
            coefficients.append([Zero(aval_of(x).tangent)] * order)
    finally:
        context.trace = parent
        trace.live = False
    return outs, coefficients
