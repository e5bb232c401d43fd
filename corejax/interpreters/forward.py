"""Forward mode: each value travels with its tangent.

A tangent known to be zero is a `Zero`, which costs nothing; a value whose tangent is zero isn't boxed at all.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from corejax.arrays.array import Array
from corejax.arrays.storage import to_numpy
from corejax.base.avals import Linear, ShapedArray, Zero, aval_of
from corejax.base.caches import WeakCache
from corejax.base.dtypes import is_inexact
from corejax.base.errors import CorejaxTypeError, RuleError
from corejax.base.source import here
from corejax.interpreters import linearity
from corejax.interpreters.staging import StagingTrace, StagingTracer, stage_closed
from corejax.ir.arguments import check_each, for_each_output
from corejax.ir.interpret import eval_jaxpr
from corejax.kernel import checks
from corejax.kernel.axes import AxisEnv
from corejax.kernel.context import context
from corejax.kernel.factors import instantiate
from corejax.kernel.jaxpr import Jaxpr, Params
from corejax.kernel.primitive import Primitive
from corejax.kernel.trace import Trace, Tracer, as_value, check_belongs, derivative_error, leak_error
from corejax.kernel.varying import in_order, varied


class PrimalTracer(Tracer):
    """A value with something about how it changes: decisions see the value, which isn't given away without the rest."""

    __slots__ = ("primal",)
    primal: Any

    def peek(self, wanted: str) -> Any:
        if not self._trace.live:
            raise leak_error(self, wanted)
        primal = self.primal
        return primal.peek(wanted) if isinstance(primal, Tracer) else primal

    def concrete(self, wanted: str) -> Any:
        value = self.peek(wanted)
        if is_inexact(self.aval.dtype):  # integers have no derivative
            raise derivative_error(self, wanted)
        return value

    def __repr__(self) -> str:
        value = self._visible()
        shown = "" if value is None else f": {np.array2string(value, separator=', ')}"
        return f"{type(self).__name__}<{self.aval}{shown}>"

    def __str__(self) -> str:
        value = self._visible()
        return repr(self) if value is None else str(value)

    def _visible(self) -> Any:
        """The value to show; None if it isn't known or no longer available."""
        x: Any = self
        while isinstance(x, PrimalTracer) and x._trace.live:
            x = x.primal
        return to_numpy(x) if type(x) is Array and not x.is_deleted() else None


class JVPTracer(PrimalTracer):
    """A primal value with its tangent."""

    __slots__ = ("tangent",)

    def __init__(self, trace: Trace, primal: Any, tangent: Any) -> None:
        self._trace = trace
        self.aval = primal.aval
        self.primal = primal
        self.tangent = tangent


class JVPTrace(Trace):
    """Applies a primitive's jvp rule if an operand has a tangent.

    Rules run under `parent`; the results they return belong to `base`, which differs from it if tangents are on a tape.
    """

    __slots__ = ("base",)
    parent: Trace
    base: Trace

    def __init__(self, parent: Trace) -> None:
        super().__init__(parent)
        self.base = parent

    def process(self, primitive: Primitive, args: Sequence[object], params: Params) -> Any:
        primals, tangents, active = [], [], False
        for x in args:
            if type(x) is JVPTracer and x._trace is self:
                primals.append(x.primal)
                tangents.append(x.tangent)
                active = True
            else:
                primals.append(x)
                tangents.append(None)
        parent = self.parent
        context.trace = parent
        try:
            if not active:
                return parent.process(primitive, primals, params)
            declared_neither = primitive.factors is None and primitive.linear is None
            count = len(parent.eqns) if declared_neither and type(parent) is StagingTrace else -1
            keep_zeros = primitive.symbolic_zeros
            for i, t in enumerate(tangents):
                if t is None:
                    x = primals[i]
                    if type(x) is not Array and not isinstance(x, Tracer):
                        primals[i] = x = parent.rule_operand(primitive, i, x)
                    tangents[i] = zero = Zero(x.aval.tangent)
                    if not keep_zeros:
                        tangents[i] = instantiate(zero)
            if primitive.effects is not None:
                checks.check_effects_allowed(primitive, "derivative", primals, params)
            try:
                result = primitive.jvp(tuple(primals), tuple(tangents), **params)
            except Exception as error:
                raise _failed(primitive, primals, params, error)  # noqa: B904
            if type(result) is not tuple or len(result) != 2:
                result = checks.check_jvp_pair(primitive, result)
            out, out_dot = result
            if count >= 0:
                self._check_linear(primitive, parent, count, primals, tangents, out_dot)
            if primitive.multiple_results:
                types = primitive.infer(tuple(map(aval_of, primals)), params)
                return self.box_all(primitive, "jvp", out, out_dot, types)
            if not primitive.jvp_binds_itself:
                expected = primitive.infer(tuple(map(aval_of, primals)), params)
                if getattr(out, "aval", None) is not expected or (
                        type(out) is not Array and getattr(out, "_trace", None) is not self.base):
                    out = checks.check_value(primitive, "jvp", out, expected, self.base)
        except RuleError as error:
            raise checks.of_user(error, primitive, params)  # noqa: B904
        finally:
            context.trace = self
        return self.box(primitive, "jvp", out, out_dot)

    def _check_linear(self, primitive: Primitive, parent: Trace, count: int, primals: Sequence[object],
                      tangents: Sequence[object], dots: object) -> None:
        """Check that a rule that was just traced is linear in the tangents, if they are all variables of the program.

        None of them may be a primal, too, as when somebody differentiates along x itself.
        """
        assert type(parent) is StagingTrace
        if type(dots) is StagingTracer and all([eqn.primitive is primitive for eqn in parent.eqns[count:]]):
            return
        variables = set()
        for t in tangents:
            if type(t) is StagingTracer and t._trace is parent:
                variables.add(t._var)
            elif type(t) is not Zero:
                return
        for x in primals:
            if type(x) is StagingTracer and x._var in variables:
                return
        linearity.check_staged(primitive, parent.eqns[count:], variables, dots)

    def box(self, primitive: Primitive, hook: str, out: Any, out_dot: Any) -> Any:
        """A result, which was checked before, with its tangent, which is checked here."""
        expected = out.aval.tangent
        if type(out_dot) is Zero:
            if out_dot.aval is not expected:
                out_dot = checks.check_tangent(primitive, hook, out_dot, expected, self.parent)
            return out
        if (type(out_dot) is not Array and getattr(out_dot, "_trace", None) is not self.parent) or (
                out_dot.aval is not expected):
            out_dot = checks.check_tangent(primitive, hook, out_dot, expected, self.parent)
        return JVPTracer(self, out, out_dot)

    def box_all(self, primitive: Primitive, hook: str, outs: Any, dots: Any,
                expected: Sequence[ShapedArray]) -> list[Any]:
        """The results of a primitive that has several, with their tangents."""
        outs = checks.check_outputs(primitive, hook, outs, expected, self.base)
        dots = checks.check_sequence(primitive, hook, dots, len(expected), "output tangents")
        return [self.box(primitive, hook, out, dot) for out, dot in zip(outs, dots, strict=True)]


def _failed(primitive: Primitive, primals: Sequence[object], params: Params, error: Exception) -> Exception:
    """What to raise when a jvp rule failed: if the operands are wrong, abstract_eval's own error."""
    if isinstance(error, (ValueError, IndexError)):  # perhaps from unpacking the operands
        primitive.infer(tuple(map(aval_of, primals)), params)
    return checks.failed(primitive, "jvp", error)


def jvp(fun: Callable[..., Sequence[Any]], primals: Sequence[object], tangents: Sequence[object]
        ) -> tuple[list[Any], list[Any]]:
    """Outputs and output tangents of `fun`, which takes and returns sequences of arrays. Tangents may be `Zero`."""
    parent = context.trace
    return run_jvp(fun, JVPTrace(parent), parent, primals, tangents)


def run_jvp(fun: Callable[..., Sequence[Any]], trace: JVPTrace, caller: Trace, primals: Sequence[object],
         tangents: Sequence[object]) -> tuple[list[Any], list[Any]]:
    """`jvp` with the given trace; makes `caller` current again afterwards."""
    args = [p if type(t) is Zero else JVPTracer(
        trace, as_value(p), t if type(t) is Linear else tangent_of(as_value(t), aval_of(p)))
        for p, t in zip(primals, tangents, strict=True)]
    context.trace = trace
    try:
        results = fun(*args)
        outs, dots = [], []
        for x in results:
            if type(x) is JVPTracer and x._trace is trace:
                outs.append(x.primal)
                dots.append(x.tangent)
            else:
                check_belongs(x, trace, "differentiating")
                outs.append(x)
                dots.append(Zero(aval_of(x).tangent))
    finally:
        context.trace = caller
        trace.live = False
    return outs, dots


def tangent_of(t: Any, aval: ShapedArray) -> Any:
    """A tangent that varies along the same axes of a mesh as its primal, of type `aval`; raises if it is along more."""
    own = aval_of(t).varying
    if own == aval.varying:
        return t
    if own <= aval.varying:
        return varied(t, aval.varying)
    names = ", ".join(map(str, in_order(own - aval.varying)))
    raise CorejaxTypeError(f"a tangent varies along {names}, but its primal is the same there", got=str(aval_of(t)),
                           wanted=str(aval.tangent), where=here(),
                           todo=f"let the primal vary too: lax.pcast(x, axes, to='varying'), with axes={names}; or sum "
                                "the tangent over them")


def jvp_jaxpr(jaxpr: Jaxpr, nonzeros: Sequence[bool], instantiate_outs: bool | Sequence[bool] = False
              ) -> tuple[Jaxpr, tuple[bool, ...]]:
    """The jaxpr of `(primals, nonzero tangents) -> (outputs, nonzero output tangents)`, and which those are."""
    forced = for_each_output("jvp_jaxpr", jaxpr, instantiate_outs)
    return _jvp_jaxpr(jaxpr, tuple(nonzeros), forced, context.axes)


def _stage_jvp(jaxpr: Jaxpr, nonzeros: tuple[bool, ...], instantiate_outs: tuple[bool, ...], axes: AxisEnv
               ) -> tuple[Jaxpr, tuple[bool, ...]]:
    check_each("jvp_jaxpr", "nonzeros", nonzeros, len(jaxpr.invars), "input")
    check_each("jvp_jaxpr", "instantiate_outs", instantiate_outs, len(jaxpr.outvars), "output")
    avals: list[ShapedArray] = jaxpr.in_avals
    out_nonzeros: tuple[bool, ...] = ()

    def fun(*args: Any) -> list[Any]:
        nonlocal out_nonzeros
        primals, rest = args[: len(avals)], iter(args[len(avals):])
        tangents = [next(rest) if nz else Zero(a.tangent) for nz, a in zip(nonzeros, avals, strict=True)]
        outs, dots = jvp(partial(eval_jaxpr, jaxpr, ()), primals, tangents)
        dots = [instantiate(t) if force else t for t, force in zip(dots, instantiate_outs, strict=True)]
        out_nonzeros = tuple([type(t) is not Zero for t in dots])
        return [*outs, *[t for t in dots if type(t) is not Zero]]

    tangent_avals = [a.tangent for a, nz in zip(avals, nonzeros, strict=True) if nz]
    return stage_closed(fun, [*avals, *tangent_avals], jaxpr.name), out_nonzeros


_jvp_jaxpr = WeakCache(_stage_jvp)
