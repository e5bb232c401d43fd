"""Rules run on series: what a primitive's jvp rule says of tangents is a differential equation for its series.

With y = f(x), the rule gives y' as a function R of x, x', and, by applying f again, of y. Run once on series, it makes
nodes, so that y_k = R_{k-1} / k. Where the rule applies f to the same operands, it gets y itself, whose lower
coefficients are all that R_{k-1} needs. That costs as much as a product of series for each product in the rule.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from corejax.core import (
    Primitive,
    Trace,
    Tracer,
    as_value,
    context,
    dtypes,
    here,
    instantiate,
    leak_error,
    param_key,
)
from corejax.errors import CorejaxTypeError, LostDerivativeError
from corejax.plugin import Zero
from corejax_taylor._coefficients import settled
from corejax_taylor._nodes import Application, Component, Constant, Derivative, Node, Params, Vanishing
from corejax_taylor._results import check_tangent, checked_pair

__all__: list[str] = []


class NodeTracer(Tracer):
    """A series, for rules."""

    __slots__ = ("node",)

    def __init__(self, trace: Trace, node: Node) -> None:
        self._trace = trace
        self.aval = node.aval
        self.node = node

    def peek(self, wanted: str) -> Any:
        trace = self._trace
        if not trace.live:
            raise leak_error(self, wanted)
        before = context.trace
        context.trace = trace.parent  # type: ignore[assignment]
        try:
            primal = self.node.primal
            return primal.peek(wanted) if isinstance(primal, Tracer) else primal
        finally:
            context.trace = before

    def concrete(self, wanted: str) -> Any:
        value = self.peek(wanted)
        if dtypes.is_inexact(self.aval.dtype):
            raise lost(self, wanted)
        return value


def lost(tracer: Tracer, wanted: str) -> LostDerivativeError:
    """The error for giving away a value whose series is being computed; `wanted` says what for."""
    return LostDerivativeError(
        f"{wanted} would lose the Taylor series of x", got=f"a value of type {tracer.aval} along a curve", where=here(),
        wanted="functions that can be differentiated: cj.lax, operators, array methods, and the NumPy functions that "
               "packs provide",
        todo="use these instead; or, if the value alone is wanted, lax.stop_gradient(x), which is a plain array here")


class Rule(Protocol):
    """Makes the node of a primitive's result, or those of its results."""

    def __call__(self, local: LocalTrace, primitive: Primitive, operands: Sequence[Node], params: Params) -> Any:
        """Called with the trace current under which coefficients are computed."""


class LocalTrace(Trace):
    """Turns what a rule applies into nodes: the same node for the same primitive with the same operands and params.

    Coefficients are computed under `parent`. Nodes made now will probably be asked for coefficients up to `order`.
    """

    __slots__ = ("begun_with", "known", "made", "order", "rule_of", "tracers")
    parent: Trace

    def __init__(self, parent: Trace, order: int, rule_of: Callable[[Primitive], Rule]) -> None:
        self.rule_of = rule_of
        self.parent, self.live, self.begun = parent, True, parent.begun
        self.forgets = self.knows_values = False
        self.order = order
        self.known: dict[Any, Any] = {}
        self.begun_with: dict[Any, FromJVP] = {}
        self.made: list[FromJVP] = []
        self.tracers: dict[Node, NodeTracer] = {}

    def process(self, primitive: Primitive, args: Sequence[Any], params: Params) -> Any:
        parent, operands, active = self.parent, [], False
        for i, x in enumerate(args):
            if type(x) is NodeTracer and x._trace is self:
                operands.append(x.node)
                active = True
            else:
                operands.append(self.constant(self.rule_operand(primitive, i, x)))
        context.trace = parent
        try:
            if not active:
                return parent.process(primitive, args, params)
            result = self.apply(primitive, operands, params)
        finally:
            context.trace = self
        return [self.shown(x) for x in result] if primitive.multiple_results else self.shown(result)

    def apply(self, primitive: Primitive, operands: Sequence[Node], params: Params) -> Any:
        """The node of the result, or those of the results. Called with `parent` current."""
        key = _key(primitive, operands, params)
        found = self.known.get(key)
        if found is None:
            begun = self.begun_with.get(key)
            found = begun.now() if begun is not None else self.rule_of(primitive)(self, primitive, operands, params)
            found = self.known.setdefault(key, found)
        return found

    def begin(self, node: FromJVP) -> None:
        """Remember a node whose results aren't known to it yet, since its rule may apply the primitive itself."""
        self.begun_with[_key(node.primitive, node.operands, node.params)] = node

    def constant(self, value: Any) -> Constant:
        """The node of a value that isn't a series; the same one for the same value."""
        key = "constant", id(value)
        found = self.known.get(key)
        if found is None:
            found = self.known[key] = Constant(value)  # keeps the value, and so its id
        return found

    def derivative(self, node: Node) -> Node:
        """The node of the derivative of a series."""
        if type(node) is Constant:
            return Vanishing(node.aval.tangent)
        source, i = (node.all, node.index) if type(node) is Component else (node, 0)
        known = source.derivative_of(i) if type(source) is FromJVP and not source.runs else None
        if known is not None:
            return known
        key = "derivative", id(node)
        found = self.known.get(key)
        if found is None:
            found = self.known[key] = Derivative(node)
        return found

    def shown(self, node: Node) -> Any:
        """A node as rules see it: constants are plain values."""
        if type(node) is Constant:
            return node.known[0]
        found = self.tracers.get(node)
        if found is None:
            found = self.tracers[node] = NodeTracer(self, node)
        return found

    def node_of(self, x: Any) -> Node:
        """The node behind what a rule returned."""
        if type(x) is NodeTracer and x._trace is self:
            return x.node
        return self.constant(as_value(x))

    def end(self) -> None:
        """Forget everything. Nodes refer to each other in circles, which would live until they are found."""
        self.live = False
        for node in self.made:
            node.forget()
        for each in self.known, self.begun_with, self.tracers, self.made:
            each.clear()


def _key(primitive: Primitive, operands: Sequence[Node], params: Params) -> Any:
    try:
        return (primitive, *map(id, operands), *(param_key(params) if params else ()))
    except CorejaxTypeError:  # params of a primitive that is never put into a program
        return (primitive, *map(id, operands), *[(name, id(value)) for name, value in params.items()])


def results(node: Application, avals: Sequence[Any]) -> list[Node]:
    """The nodes of the results of a primitive that has several; those of integers are constant."""
    found: list[Node] = []
    for i, aval in enumerate(avals):
        found.append(Component(aval, node, i) if dtypes.is_inexact(aval.dtype) else
                     Constant(as_value(node.coefficient(0)[i])))
    return found


class FromJVP(Application):
    """A primitive's series by its jvp rule, which is run when a coefficient after the first is asked for."""

    __slots__ = ("dots", "local", "order", "outs", "runs")

    def __init__(self, aval: Any, local: LocalTrace, primitive: Primitive, operands: Sequence[Node], params: Params
                 ) -> None:
        super().__init__(aval, primitive, operands, params)
        self.local: Any = local
        self.order = local.order
        self.dots: Any = None
        self.outs: Any = None
        self.runs = False
        local.made.append(self)

    def forget(self) -> None:
        """Let go of other nodes. No more coefficients can be computed."""
        self.dots = self.outs = self.local = None

    def compute(self, k: int) -> Any:
        if k == 0:
            return self._first()
        self._run()
        found = [settled(dot.integral(k), aval.tangent) for dot, aval in zip(self.dots, self._avals(), strict=True)]
        return found if self.primitive.multiple_results else found[0]

    def _first(self) -> Any:
        """The values. A rule may compute them in its own way: a user's, or a loop of values with their tangents."""
        if self.primitive.jvp_binds_itself or self.order <= 0 or self.runs:
            return self.value()
        self._run()
        if self.known:  # the rule has asked for them
            return self.known[0]
        values = [None if out is self else out.coefficient(0) for out in self.outs]
        if any([x is None for x in values]):
            return self.value()
        return values if self.primitive.multiple_results else values[0]

    def now(self) -> list[Node]:
        """The results, for the node's own rule: they are values that are computed now."""
        if not self.known:
            self.known.append(self.value())
            self.aval = [x.aval for x in self.known[0]]
        return results(self, self.aval)

    def _avals(self) -> Sequence[Any]:
        return self.aval if self.primitive.multiple_results else (self.aval,)

    def _run(self) -> None:
        if self.dots is not None:
            return
        local, primitive = self.local, self.primitive
        primals = tuple([local.shown(x) for x in self.operands])
        before, order = context.trace, local.order
        tangents = tuple(map(self._tangent, self.operands))
        context.trace, local.order, self.runs = local, self.order - 1, True
        try:
            outs, dots = checked_pair(primitive, primitive.jvp(primals, tangents, **self.params))
        finally:
            context.trace, local.order, self.runs = before, order, False
        self.outs = [self._not_itself(local.node_of(x)) for x in outs]
        found = [Vanishing(dot.aval) if type(dot) is Zero else local.node_of(dot) for dot in dots]
        for out, dot in zip(map(as_value, outs), found, strict=True):
            check_tangent(primitive, dot.aval, out.aval.tangent)
        self.dots = found

    def _not_itself(self, node: Node) -> Node:
        return self if type(node) is Component and node.all is self else node

    def _tangent(self, x: Node) -> Any:
        dot = self.local.derivative(x)
        if type(dot) is not Vanishing:
            return self.local.shown(dot)
        zero = Zero(dot.aval)
        return zero if self.primitive.symbolic_zeros else instantiate(zero)

    def derivative_of(self, i: int) -> Node | None:
        """The node of the derivative of the i-th result, if there is one of the right type."""
        self._run()
        dot: Node = self.dots[i]
        return dot if dot.aval is self._avals()[i].tangent else None
