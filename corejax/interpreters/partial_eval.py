"""Partial evaluation: run what is known now, put the rest on a tape.

An unknown value is a `Linear`: it has a type but no value, and its identity is its name on the tape. (Partial
evaluation itself doesn't require linearity; reverse mode, which tapes exist for, does.) An operand of a tape equation
is a `Linear` or a known value.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeAlias

from corejax.arrays.array import Array
from corejax.base.avals import Linear, ShapedArray, aval_of
from corejax.base.caches import WeakCache
from corejax.base.source import at_hand
from corejax.interpreters.staging import StagingTracer, stage_closed
from corejax.ir.arguments import check_each, for_each_output
from corejax.ir.interpret import eval_jaxpr
from corejax.kernel.axes import AxisEnv
from corejax.kernel.context import context
from corejax.kernel.jaxpr import Atom, Jaxpr, JaxprEqn, Literal, Params, Var, are_unique, no_effects
from corejax.kernel.primitive import Primitive, Rule
from corejax.kernel.trace import Trace, Tracer, check_belongs
from corejax.kernel.varying import varied

#: A waiting equation: (primitive, operands, params, outputs). Operands are `Linear`s and known values, outputs are
#: `Linear`s. It is a plain tuple because reverse mode makes one for every step of the user's function.
TapeEqn: TypeAlias = tuple[Any, Sequence[Any], Params, Sequence[Linear]]


class PartOf(dict[str, Any]):
    """The params of an equation that stems from a `decompose` rule, and whose rule that is: for errors about it."""

    __slots__ = ("whose",)

    def __init__(self, params: Params, whose: str) -> None:
        super().__init__(params)
        self.whose = whose


def mark_parts(trace: Trace, start: int, whose: str) -> None:
    """Mark the equations that a trace has recorded since the `start`-th, if they carry programs.

    Others are transposed by themselves, or their errors say enough.
    """
    eqns: list[Any] = getattr(trace, "eqns", [])
    for i in range(start, len(eqns)):
        eqn = eqns[i]
        primitive, params = (eqn[0], eqn[2]) if type(eqn) is tuple else (eqn.primitive, eqn.params)
        if type(params) is PartOf or getattr(primitive, "partial_eval", None) is None:
            continue
        marked = PartOf(params, whose)
        eqns[i] = (primitive, eqn[1], marked, eqn[3]) if type(eqn) is tuple else eqn.replace(params=marked)


class TapeTracer(Tracer):
    """An unknown value."""

    __slots__ = ("_var",)

    def __init__(self, trace: Trace, var: Linear) -> None:
        self._trace = trace
        self.aval = var.aval
        self._var = var


class TapeTrace(Trace):
    """Passes primitives whose operands are all known to its parent, and records the others."""

    __slots__ = ("eqns", "supposes")
    is_recording = True
    parent: Trace

    def __init__(self, parent: Trace) -> None:
        super().__init__(parent)
        self.eqns: list[TapeEqn] = []
        self.supposes = False

    def end(self) -> list[TapeEqn]:
        """The equations, when it ends."""
        self.live = False
        eqns = self.eqns
        if self.forgets:
            self.eqns = [eqn for eqn in eqns if not are_unique(eqn[2])]
        return eqns

    def unknown(self, aval: ShapedArray) -> TapeTracer:
        return TapeTracer(self, Linear(aval))

    def process(self, primitive: Primitive, args: Sequence[object], params: Params) -> Any:
        for x in args:
            if type(x) is TapeTracer and x._trace is self:
                break
        else:
            context.trace = parent = self.parent
            try:
                return parent.process(primitive, args, params)
            finally:
                context.trace = self
        if primitive.partial_eval is not None:
            return self._split(primitive, primitive.partial_eval, args, params)
        operands = tuple([self.operand(x) for x in args])
        out = primitive.infer(tuple([x.aval for x in operands]), params)
        if type(out) is tuple:
            outs = [Linear(aval) for aval in out]
            self.eqns.append((primitive, operands, params, outs))
            return [TapeTracer(self, var) for var in outs]
        var = Linear(out)
        self.eqns.append((primitive, operands, params, (var,)))
        return TapeTracer(self, var)

    def operand(self, x: object) -> Any:
        """A value as it is put on the tape: its `Linear` if unknown, else something immutable."""
        if type(x) is TapeTracer and x._trace is self:
            return x._var
        if type(x) is Array or type(x) is Linear:
            return x
        if isinstance(x, Tracer):
            check_belongs(x, self, "linearizing")
            return x
        return self.held(x)

    def _split(self, primitive: Primitive, rule: Rule, args: Sequence[object], params: Params) -> list[Any]:
        """Let the primitive split itself: evaluate its known equation, record its staged one."""
        operands = [self.operand(x) for x in args]
        avals = tuple([x.aval for x in operands])
        effects = primitive.effects(avals, **params) if primitive.effects is not None else no_effects
        eqn = JaxprEqn(primitive, [Var(aval) for aval in avals], [Var(aval) for aval in primitive.infer(avals, params)],
                       params, effects)
        known, staged, unknown_out, _ = rule(eqn, tuple([type(x) is Linear for x in operands]))
        env: dict[Atom, Any] = dict(zip(eqn.invars, operands, strict=True))
        if known is not None:
            context.trace = self.parent
            try:
                values = known.primitive.bind(*[_read(env, v) for v in known.invars], **known.params)
            finally:
                context.trace = self
            env.update(zip(known.outvars, values, strict=True))
        if staged is not None:
            outs = [Linear(v.aval) for v in staged.outvars]
            env.update(zip(staged.outvars, outs, strict=True))
            inputs = [self.operand(_read(env, v)) for v in staged.invars]
            params, source = dict(staged.params), getattr(at_hand.eqn, "params", None)
            if type(source) is PartOf and getattr(at_hand.eqn, "primitive", None) is primitive:
                params = PartOf(params, source.whose)
            self.eqns.append((staged.primitive, inputs, params, outs))
        return [TapeTracer(self, env[v]) if type(env[v]) is Linear else env[v] for v in eqn.outvars]


def _read(env: dict[Atom, Any], atom: Atom) -> Any:
    return atom.val if type(atom) is Literal else env[atom]


def record(fun: Callable[..., Sequence[Any]], args: Sequence[object]) -> tuple[list[TapeEqn], list[Any]]:
    """Run `fun` with the `Linear`s among `args` unknown: the tape, and the outputs (values or `Linear`s)."""
    caller = context.trace
    trace = TapeTrace(caller)
    boxed = [TapeTracer(trace, x) if type(x) is Linear else x for x in args]
    context.trace = trace
    try:
        outs = [trace.operand(x) for x in fun(*boxed)]
    finally:
        context.trace = caller
        eqns = trace.end()
    return eqns, outs


def replay(eqns: Sequence[TapeEqn], env: dict[Linear, Any]) -> None:
    """Run a tape forward: `env` maps the unknowns to values; the values of all outputs are added to it."""
    for primitive, operands, params, outs in eqns:
        out = primitive.bind(*[env[x] if type(x) is Linear else x for x in operands], **params)
        for var, value in zip(outs, out if primitive.multiple_results else (out,), strict=True):
            env[var] = value if value.aval is var.aval else varied(value, var.aval.varying)


def needed(eqns: Sequence[TapeEqn], outs: Sequence[object]) -> list[TapeEqn]:
    """The equations that `outs` depend on, and those with effects, in order."""
    wanted = {x for x in outs if type(x) is Linear}
    kept = []
    for eqn in reversed(eqns):
        primitive, operands, params, outs_of_eqn = eqn
        if not wanted.isdisjoint(outs_of_eqn) or (
                primitive.effects is not None and primitive.effects(tuple([aval_of(x) for x in operands]), **params)):
            kept.append(eqn)
            wanted.update([x for x in operands if type(x) is Linear])
    kept.reverse()
    return kept


def partial_eval_jaxpr(jaxpr: Jaxpr, unknown_in: Sequence[bool], instantiate: bool | Sequence[bool] = False
                       ) -> tuple[Jaxpr, Jaxpr, tuple[bool, ...], int]:
    """Divide a jaxpr: (known, staged, which outputs are unknown, number of residuals).

    known: known inputs -> known outputs + residuals; staged: residuals + unknown inputs -> unknown outputs.
    `instantiate` forces outputs to be unknown.
    """
    forced = for_each_output("partial_eval_jaxpr", jaxpr, instantiate)
    return _partial_eval_jaxpr(jaxpr, tuple(unknown_in), forced, context.axes)


def divide(jaxpr: Jaxpr, unknown_in: tuple[bool, ...], instantiate: tuple[bool, ...], axes: AxisEnv = ()
           ) -> tuple[Jaxpr, Jaxpr, tuple[bool, ...], int]:
    """`partial_eval_jaxpr` without its cache, for callers that cache what they make from it."""
    check_each("partial_eval_jaxpr", "unknown_in", unknown_in, len(jaxpr.invars), "input")
    check_each("partial_eval_jaxpr", "instantiate", instantiate, len(jaxpr.outvars), "output")
    unknowns = [Linear(aval) for aval, u in zip(jaxpr.in_avals, unknown_in, strict=True) if u]
    known_avals = [aval for aval, u in zip(jaxpr.in_avals, unknown_in, strict=True) if not u]
    unknown_out: tuple[bool, ...] = ()
    n_residuals = 0
    staged: Jaxpr | None = None

    def fun(*known_in: Any) -> list[Any]:
        nonlocal unknown_out, n_residuals, staged
        known, unknown = iter(known_in), iter(unknowns)
        eqns, outs = record(partial(eval_jaxpr, jaxpr, ()),
                            [next(unknown) if u else next(known) for u in unknown_in])
        unknown_out = tuple([type(x) is Linear or force for x, force in zip(outs, instantiate, strict=True)])
        wanted = [x for x, u in zip(outs, unknown_out, strict=True) if u]
        staged, residuals = _tape_to_jaxpr(needed(eqns, wanted), unknowns, wanted, jaxpr.name)
        n_residuals = len(residuals)
        return [*[x for x, u in zip(outs, unknown_out, strict=True) if not u], *residuals]

    known = stage_closed(fun, known_avals, jaxpr.name)
    assert staged is not None
    return known, staged, unknown_out, n_residuals


def _tape_to_jaxpr(eqns: Sequence[TapeEqn], unknowns: Sequence[Linear], outs: Sequence[object], name: str
                   ) -> tuple[Jaxpr, list[Any]]:
    """A tape as a jaxpr whose inputs are (residuals, unknowns), and the values of the residuals."""
    var_of: dict[Linear, Var] = {x: Var(x.aval) for x in unknowns}
    residuals: dict[int, tuple[Var, Any]] = {}

    def atom(x: object) -> Atom:
        if type(x) is Linear:
            return var_of[x]
        if type(x) is Array and not x.aval.shape and hasattr(x, "_host"):
            return Literal(x, x.aval)
        key = id(x._var) if type(x) is StagingTracer else id(x)
        if key not in residuals:
            residuals[key] = Var(aval_of(x)), x
        return residuals[key][0]

    new_eqns = []
    effects = no_effects
    for primitive, operands, params, defined in eqns:
        inputs = [atom(x) for x in operands]
        outvars = [var_of.setdefault(x, Var(x.aval)) for x in defined]
        eff = no_effects
        if primitive.effects is not None:
            eff = primitive.effects(tuple([x.aval for x in inputs]), **params)
            effects = effects | eff
        new_eqns.append(JaxprEqn(primitive, inputs, outvars, params, eff))
    out_atoms = [atom(x) for x in outs]
    invars = [*[var for var, _ in residuals.values()], *[var_of[x] for x in unknowns]]
    return Jaxpr((), invars, out_atoms, new_eqns, effects, name), [value for _, value in residuals.values()]


_partial_eval_jaxpr = WeakCache(divide)
