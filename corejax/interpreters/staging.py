"""Staging: turn a Python function into a jaxpr by running it once on tracers.

Everything that the function binds becomes an equation, even if it doesn't depend on the arguments. Values that the
function closes over become constants: scalars are written into the equations, arrays and tracers of enclosing traces
become constvars.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from corejax.arrays.array import Array, as_array
from corejax.base.avals import ShapedArray, aval_of
from corejax.base.errors import CorejaxTypeError, LeakedTracerError
from corejax.base.holders import is_holder
from corejax.base.source import NOWHERE, at_hand, here
from corejax.ir.interpret import location
from corejax.ir.surgery import substitute
from corejax.kernel.context import context
from corejax.kernel.jaxpr import Atom, ClosedJaxpr, Jaxpr, JaxprEqn, Literal, Params, Var, are_unique, no_effects
from corejax.kernel.primitive import Primitive
from corejax.kernel.trace import Trace, Tracer, check_belongs, history, leak_error, operand_error

if TYPE_CHECKING:
    from corejax.base.source import Location


#: The scalar type of dtypes that packs declare, and of float0: no literal has one.
_VOID = np.void


class StagingTracer(Tracer):
    """Stands for a variable of the jaxpr being built."""

    __slots__ = ("_var",)

    def __init__(self, trace: StagingTrace, var: Var) -> None:
        self._trace = trace
        self.aval = var.aval
        self._var = var


class StagingTrace(Trace):
    """Records every primitive as an equation."""

    __slots__ = ("eqns", "effects", "constvars", "constvals", "_const_of", "_held")
    stages = True

    def __init__(self, parent: Trace) -> None:
        super().__init__(parent)
        self.eqns: list[JaxprEqn] = []
        self.effects = no_effects
        self.constvars: list[Var] = []
        self.constvals: list[Any] = []
        self._const_of: dict[int, Var] = {}
        self._held: dict[int, tuple[object, Array]] = {}

    def process(self, primitive: Primitive, args: Sequence[object], params: Params) -> Any:
        atoms: list[Atom] = []
        for x in args:
            if type(x) is StagingTracer and x._trace is self:
                atoms.append(x._var)
            else:
                try:
                    atoms.append(self.lift(x))
                except CorejaxTypeError as error:
                    raise operand_error(primitive, len(atoms), error) from None
        avals = tuple([atom.aval for atom in atoms])
        out = primitive.infer(avals, params)
        effects = no_effects
        if primitive.effects is not None:
            effects = primitive.effects(avals, **params)
            if effects:
                self.effects = self.effects | effects
        if type(out) is tuple:
            outvars = [Var(aval) for aval in out]
            self.eqns.append(JaxprEqn(primitive, atoms, outvars, params, effects, location(1), context.names))
            return [StagingTracer(self, var) for var in outvars]
        var = Var(out)
        self.eqns.append(JaxprEqn(primitive, atoms, (var,), params, effects, location(1), context.names))
        return StagingTracer(self, var)

    def process_one(self, primitive: Primitive, x: object) -> Any:
        # Written out, like `process_two`: each of our own frames makes finding the user's slower.
        if primitive.effects is not None or primitive.params or primitive.multiple_results:
            return super().process_one(primitive, x)
        atom = x._var if type(x) is StagingTracer and x._trace is self else self._atom(primitive, 0, x)
        var = Var(primitive.infer((atom.aval,), {}))
        self.eqns.append(JaxprEqn(primitive, (atom,), (var,), {}, no_effects, location(1), context.names))
        return StagingTracer(self, var)

    def process_two(self, primitive: Primitive, x: object, y: object, alike: ShapedArray | None = None) -> Any:
        if primitive.effects is not None or primitive.params or primitive.multiple_results:
            return super().process_two(primitive, x, y)
        left = x._var if type(x) is StagingTracer and x._trace is self else self._atom(primitive, 0, x)
        right = y._var if type(y) is StagingTracer and y._trace is self else self._atom(primitive, 1, y)
        var = Var(primitive.infer((left.aval, right.aval), {}))
        self.eqns.append(JaxprEqn(primitive, (left, right), (var,), {}, no_effects, location(1), context.names))
        return StagingTracer(self, var)

    def _atom(self, primitive: Primitive, i: int, x: object) -> Atom:
        try:
            return self.lift(x)
        except CorejaxTypeError as error:
            raise operand_error(primitive, i, error) from None

    def origin(self, tracer: Tracer) -> Location:
        made = tracer._var  # type: ignore[attr-defined]
        return next((eqn.source for eqn in self.eqns if any([var is made for var in eqn.outvars])), None)

    def new_arg(self, aval: ShapedArray) -> StagingTracer:
        return StagingTracer(self, Var(aval))

    def lift(self, x: object) -> Atom:
        """The atom for any value: a variable, a literal, or a constvar for a value from outside."""
        if type(x) is StagingTracer and x._trace is self:
            return x._var
        if isinstance(x, Tracer):
            check_belongs(x, self, "tracing")
            return self._constvar(x)
        array = x if type(x) is Array else self.held(x)
        if id(array) in self._const_of:
            return self._const_of[id(array)]
        aval = array.aval
        if not aval.shape and hasattr(array, "_host") and aval.dtype.type is not _VOID:
            return Literal(array, aval)
        return self._constvar(array)

    def held(self, x: object) -> Array:
        # By identity, so that a constant is one, however often and by whomever it is used; that keeps the id its own.
        found = self._held.get(id(x))
        if found is None:
            array = as_array(x, copy=True)
            if not array.aval.shape:
                return array
            found = self._held[id(x)] = x, array
        return found[1]

    def of_type(self, value: object, aval: ShapedArray) -> StagingTracer:
        """A tracer for a constant of which only the type is known; `value` takes its place among the constants."""
        return StagingTracer(self, self._constvar(value, aval))

    def _constvar(self, value: Any, aval: ShapedArray | None = None) -> Var:
        var = self._const_of.get(id(value))  # the list holds the value, so its id isn't reused
        if var is None:
            var = self._const_of[id(value)] = Var(value.aval if aval is None else aval)
            self.constvars.append(var)
            self.constvals.append(value)
        return var


def is_staging() -> bool:
    """Whether what is bound now ends up in a jaxpr. If not, values exist, perhaps beneath other transformations."""
    return context.trace.is_staging


class WideningTrace(StagingTrace):
    """Records a program anew whose inputs vary along more axes of a mesh than before.

    Programs in params may then get operands that vary along more axes than they expect: the plugin's `widened` says
    what the params are for those.
    """

    __slots__ = ()

    def process(self, primitive: Primitive, args: Sequence[object], params: Params) -> Any:
        widened = getattr(primitive.plugin, "widened", None)
        if widened is not None:
            params = {**params, **widened([aval_of(x).varying for x in args], **params)}
        return super().process(primitive, args, params)


def stage(fun: Callable[..., Sequence[Any]], in_avals: Sequence[ShapedArray], name: str = "",
          kind: type[StagingTrace] = StagingTrace) -> ClosedJaxpr:
    """The jaxpr of `fun`, which takes one tracer for each aval and returns a sequence of outputs."""
    previous = context.trace
    trace = kind(previous)
    tracers = [trace.new_arg(aval) for aval in in_avals]
    context.trace = trace
    try:
        outs = [trace.lift(out) for out in fun(*tracers)]
    finally:
        context.trace = previous
        trace.live = False
        eqns = trace.eqns
        if trace.forgets:
            trace.eqns = [eqn for eqn in eqns if not are_unique(eqn.params)]
    jaxpr = Jaxpr(trace.constvars, [t._var for t in tracers], outs, eqns, trace.effects, name)
    return ClosedJaxpr(jaxpr, trace.constvals)


def stage_closed(fun: Callable[..., Sequence[Any]], in_avals: Sequence[ShapedArray], name: str = "",
                 kind: type[StagingTrace] = StagingTrace) -> Jaxpr:
    """The same as a jaxpr without constvars: constants are written into it.

    For functions made by rules and interpreters: the values they close over are small, and the same at every call. The
    place of the call is kept out of it, since later ones use it as well.
    """
    outer = at_hand.inside
    try:
        at_hand.inside = sys._getframe(), NOWHERE
        closed = stage(fun, in_avals, name, kind)
    finally:
        at_hand.inside = outer
    if not closed.consts:
        return closed.jaxpr
    for const in closed.consts:
        if is_holder(const):
            raise const.not_an_array()
        if isinstance(const, Tracer):
            if not const._trace.live:
                raise leak_error(const, f"{name or 'a rule'} closes over a traced value")
            raise LeakedTracerError(
                f"a rule applied to the program {name or 'being transformed'} reads a traced value that isn't an "
                "operand of that program", got=history(const), where=here(),
                wanted="a rule whose traced values are arguments, or variables in its closure",
                todo="pass the value as an argument, or have the rule close over it, instead of fetching it from a "
                     "global, an attribute of a class, or a generator")
    literals = {v: Literal(c, c.aval) for v, c in zip(closed.jaxpr.constvars, closed.consts, strict=True)}
    return substitute(closed.jaxpr, literals)
