"""Linearize: forward mode whose tangents are unknown.

Every primal is computed immediately, so Python control flow on values works; what the jvp rules do to tangents goes on
a tape. `LinearizeTrace` is `JVPTrace` over `TapeTrace` with a shortcut for the two most common kinds of rule, declared
factors and declared linearity: it writes down what the rule would have recorded, without running it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from corejax.arrays.array import Array
from corejax.base.avals import Linear, ShapedArray, Zero, aval_of
from corejax.base.dtypes import float0
from corejax.base.errors import CorejaxError, NotLinearError, RuleError
from corejax.interpreters import linearity
from corejax.interpreters.forward import JVPTrace, JVPTracer, run_jvp, tangent_of
from corejax.interpreters.partial_eval import TapeEqn, TapeTrace, TapeTracer, needed, replay
from corejax.kernel import checks
from corejax.kernel.context import context
from corejax.kernel.factors import Divisor, instantiate, plus_weighted
from corejax.kernel.jaxpr import Params, subjaxprs
from corejax.kernel.primitive import Primitive, Rule
from corejax.kernel.trace import as_value


class _WeightedSum:
    """The tape's own equation: operands (x0, w0, x1, w1, ...), unknown x and known w; the result is sum x_i * w_i.

    A weight is an array, a `Divisor`, 1 or -1.

    One such equation stands for everything that the factors of an elementwise primitive do to its tangents. Its
    transpose, ct * w_i for each unknown, is written out where tapes are run backward.
    """

    name, origin = "weighted_sum", "corejax"
    multiple_results = False
    effects = None

    def bind(self, *operands: Any) -> Any:
        """The sum, using operators and the roles `multiply` and `accumulate`."""
        total = None
        for x, w in zip(operands[::2], operands[1::2], strict=True):
            total = plus_weighted(total, x, w)
        return total

    def __reduce__(self) -> str:
        return "weighted_sum"


weighted_sum = _WeightedSum()


_new_linear: Callable[[], Linear] = partial(object.__new__, Linear)
_new_tracer: Callable[[], JVPTracer] = partial(object.__new__, JVPTracer)


class LinearizeTrace(JVPTrace):
    """A `JVPTrace` whose tangents are on a tape; `parent` is the tape's trace, `base` the one that computes primals."""

    __slots__ = ("eqns",)
    parent: TapeTrace

    def __init__(self, tape: TapeTrace) -> None:
        super().__init__(tape)
        self.base = tape.parent
        self.eqns = tape.eqns

    def process(self, primitive: Primitive, args: Sequence[object], params: Params) -> Any:
        factors = primitive.factors
        if primitive.linearize is not None or (
                factors is None and primitive.linear is None and not primitive.linear_in):
            return self._by_rule(primitive, args, params)
        primals: list[Any] = []
        unknowns: list[Linear | None] = []
        active = 0
        for x in args:
            if type(x) is JVPTracer and x._trace is self:
                primals.append(x.primal)
                t = x.tangent
                unknowns.append(t if type(t) is Linear else t._var)
                active += 1
            else:
                primals.append(x)
                unknowns.append(None)
        if active:
            if primitive.linear_in:
                return self._by_itself(primitive, args, primals, unknowns, params)
            if _spreads(primals, unknowns) if factors is not None else (
                    active < len(args) or primitive.multiple_results):
                return self._by_rule(primitive, args, params)
            if active < len(args):  # factors are rules
                primals = [self.rule_operand(primitive, i, x) for i, x in enumerate(primals)]
        context.trace = base = self.base
        try:
            out = base.process(primitive, primals, params)
            if not active:
                return out
            operands: Any = unknowns
            if factors is not None:
                operands = []
                for factor, unknown in zip(factors, unknowns, strict=True):
                    if unknown is not None and factor is not None:
                        operands.append(unknown)
                        operands.append(factor if type(factor) is int
                                        else self._weight(primitive, factor, out, primals, params))
                if not operands:
                    return out
                return self._taped(weighted_sum, tuple(operands), _no_params, out)
        finally:
            context.trace = self
        return self._taped(primitive, tuple(operands), params, out)

    def _by_itself(self, primitive: Primitive, args: Sequence[object], primals: Sequence[Any],
                   unknowns: Sequence[Linear | None], params: Params) -> Any:
        """For a primitive that is linear in each operand with a tangent: apply it to one tangent at a time."""
        linear_in, by_rule = primitive.linear_in, primitive.multiple_results or primitive.partial_eval is not None
        for i, unknown in enumerate(unknowns):
            # Where tangents have the types of their primals, so has the result's: nothing is left to be checked.
            if unknown is not None and (i not in linear_in or unknown.aval is not primals[i].aval):
                by_rule = True
        if by_rule:
            return self._by_rule(primitive, args, params)
        context.trace = base = self.base
        try:
            out = base.process(primitive, primals, params)
        finally:
            context.trace = self
        if out.aval.tangent is not out.aval:
            return self._by_rule(primitive, args, params)
        tape = self.parent
        operands = tuple([tape.operand(x) for x in primals])
        terms: list[Any] = []
        for i, unknown in enumerate(unknowns):
            if unknown is not None:
                applied = (*operands[:i], unknown, *operands[i + 1:])
                term = Linear(out.aval)
                self.eqns.append((primitive, applied, params, (term,)))
                terms += [term, 1]
        if len(terms) > 2:
            return self._taped(weighted_sum, tuple(terms), _no_params, out)
        return JVPTracer(self, out, terms[0])

    def process_one(self, primitive: Primitive, x: object) -> Any:
        factors = primitive.factors
        if factors is None or primitive.linearize is not None or type(x) is not JVPTracer or x._trace is not self:
            return super().process_one(primitive, x)
        primal, t = x.primal, x.tangent
        context.trace = base = self.base
        try:
            out = base.process_one(primitive, primal)
            weight = factors[0]
            if weight is None:
                return out
            if type(weight) is not int:
                try:
                    weight = weight(out, primal)
                except Exception as error:
                    raise checks.failed(primitive, "jvp", error)  # noqa: B904
                if type(weight) is not Array or weight.aval is not out.aval:
                    weight = self._check_weight(primitive, weight, out)
        finally:
            context.trace = self
        return self._taped(weighted_sum, (t if type(t) is Linear else t._var, weight), _no_params, out)

    def process_two(self, primitive: Primitive, x: object, y: object, alike: ShapedArray | None = None) -> Any:
        factors = primitive.factors
        if factors is None or primitive.linearize is not None:
            return super().process_two(primitive, x, y)
        p, q, t, u = x, y, None, None
        if type(x) is JVPTracer and x._trace is self:
            p, t = x.primal, x.tangent
            if type(t) is not Linear:
                t = t._var
        if type(y) is JVPTracer and y._trace is self:
            q, u = y.primal, y.tangent
            if type(u) is not Linear:
                u = u._var
        if alike is None and ((t is not None and not t.aval.shape and _has_axes(q))
                              or (u is not None and not u.aval.shape and _has_axes(p))):
            return self._by_rule(primitive, (x, y), {})
        context.trace = base = self.base
        try:
            out = base.process_two(primitive, p, q, alike)
            operands: Any = ()
            if t is not None and (f := factors[0]) is not None:
                if type(f) is not int:
                    if u is None and type(q) is not Array:
                        q = self.rule_operand(primitive, 1, q)
                    f = self._weight(primitive, f, out, (p, q), _no_params)
                operands = t, f
            if u is not None and (f := factors[1]) is not None:
                if type(f) is not int:
                    if t is None and type(p) is not Array:
                        p = self.rule_operand(primitive, 0, p)
                    f = self._weight(primitive, f, out, (p, q), _no_params)
                operands = (*operands, u, f)
        finally:
            context.trace = self
        return self._taped(weighted_sum, operands, _no_params, out) if operands else out

    def _taped(self, primitive: Primitive | _WeightedSum, operands: tuple[object, ...], params: Params,
               out: Any) -> JVPTracer:
        """The result `out` with a tangent that this equation, put on the tape, will give."""
        aval = out.aval
        var = _new_linear()
        var.aval = aval.tangent
        self.eqns.append((primitive, operands, params, (var,)))
        tracer = _new_tracer()
        tracer._trace = self
        tracer.aval = aval
        tracer.primal = out
        tracer.tangent = var
        return tracer

    def _weight(self, primitive: Primitive, factor: Any, out: Any, primals: Sequence[Any],
                params: Params) -> Any:
        """A factor as it is put on the tape: immutable, and of a type that preserves the tangent's."""
        try:
            weight = factor(out, *primals, **params) if params else factor(out, *primals)
        except Exception as error:
            raise checks.failed(primitive, "jvp", error)  # noqa: B904
        if type(weight) is Array and weight.aval is out.aval:
            return weight
        return self._check_weight(primitive, weight, out)

    def _check_weight(self, primitive: Primitive, weight: Any, out: Any) -> Any:
        """What a factor returned, after checking it."""
        value, aval = weight.value if type(weight) is Divisor else weight, out.aval
        if (type(value) is not Array and getattr(value, "_trace", None) is not self.base) or (
                value.aval is not aval and (value.aval.dtype is not aval.dtype or value.aval.shape != aval.shape)):
            value = checks.check_factor(primitive, value, out.aval, self.base)
            return Divisor(value) if type(weight) is Divisor else value
        return weight

    def box(self, primitive: Primitive, hook: str, out: object, out_dot: object) -> Any:
        boxed = super().box(primitive, hook, out, out_dot)
        if type(boxed) is JVPTracer and boxed._trace is self:
            tangent = boxed.tangent
            if type(tangent) is not TapeTracer or tangent._trace is not self.parent:
                linearity.check_constant(primitive, hook, tangent)
                return boxed.primal  # rules are linear, so a tangent that depends on no other is zero
        return boxed

    def _by_rule(self, primitive: Primitive, args: Sequence[object], params: Params) -> Any:
        """Run the rule on the tape. Only rules need tangents as tracers; until then a `Linear` is enough."""
        for x in args:
            if type(x) is JVPTracer and x._trace is self and type(x.tangent) is Linear:
                x.tangent = TapeTracer(self.parent, x.tangent)
        if primitive.linearize is not None:
            return self._by_linearize(primitive, primitive.linearize, args, params)
        before = len(self.eqns)
        try:
            out = JVPTrace.process(self, primitive, args, params)
            if len(self.eqns) > before:
                linearity.check_taped(primitive, self.eqns[before:])
        except NotLinearError as error:
            if error.primitive != primitive.name:
                raise
            del self.eqns[before:]
            return self._without_zero_terms(primitive, args, params)
        return out

    def _without_zero_terms(self, primitive: Primitive, args: Sequence[object], params: Params) -> Any:
        """`_by_rule`, but terms made from zero tangents are dropped, while constants are an error.

        The value can't tell them apart, since zero times infinity isn't zero. Here zero tangents are unknown like the
        others, and whatever was made from them alone is taken off the tape again.
        """
        known = [i for i, x in enumerate(args) if not (type(x) is JVPTracer and x._trace is self)
                 and aval_of(x).tangent.dtype is not float0]
        before = len(self.eqns)
        try:
            out, zeros = self._with_unknown(primitive, args, params, known)
        except NotLinearError:
            raise
        except CorejaxError:
            # What can't have a tangent (a value that a user's function closes over, say) made no term of its zero.
            del self.eqns[before:]
            possible = [i for i in known if self._may_be_unknown(primitive, args, params, i)]
            out, zeros = self._with_unknown(primitive, args, params, possible)
        context.trace = self.base
        try:
            self.eqns[before:] = without(zeros, self.eqns[before:])
            # The rules inside a program were checked when it was transformed, but they may have made a nan of a zero
            # tangent there.
            carries = next(subjaxprs(params), None) is not None
            linearity.check_taped(primitive, self.eqns[before:], nans=not carries)
        except RuleError as error:
            raise checks.of_user(error, primitive, params)  # noqa: B904
        finally:
            context.trace = self
        outs = [x.primal if type(x) is JVPTracer and x._trace is self and x.tangent._var in zeros else x
                for x in (out if primitive.multiple_results else [out])]
        return outs if primitive.multiple_results else outs[0]

    def _with_unknown(self, primitive: Primitive, args: Sequence[object], params: Params, positions: Sequence[int]
                      ) -> tuple[Any, set[Any]]:
        """Run the rule with unknown tangents for these operands, too; also return these tangents."""
        active = [*args]
        zeros: set[Any] = set()
        for i in positions:
            zero = TapeTracer(self.parent, Linear(aval_of(args[i]).tangent))
            zeros.add(zero._var)
            active[i] = JVPTracer(self, as_value(args[i]), zero)
        supposed, self.parent.supposes = self.parent.supposes, True
        try:
            return JVPTrace.process(self, primitive, active, params), zeros
        finally:
            self.parent.supposes = supposed

    def _may_be_unknown(self, primitive: Primitive, args: Sequence[object], params: Params, position: int) -> bool:
        """Whether the rule accepts a tangent for this operand. The tape stays as it is."""
        before = len(self.eqns)
        try:
            self._with_unknown(primitive, args, params, [position])
        except NotLinearError:
            return True
        except CorejaxError:
            return False
        finally:
            del self.eqns[before:]
        return True

    def _by_linearize(self, primitive: Primitive, rule: Rule, args: Sequence[Any], params: Params) -> Any:
        """Run the primitive's own linearize rule on the primals, and the function that it returns on the tape."""
        own = [type(x) is JVPTracer and x._trace is self for x in args]
        if True not in own:
            return JVPTrace.process(self, primitive, args, params)
        primals = [x.primal if o else self.rule_operand(primitive, i, x)
                   for i, (x, o) in enumerate(zip(args, own, strict=True))]
        tangents = [x.tangent if o else Zero(aval_of(x).tangent) for x, o in zip(args, own, strict=True)]
        try:
            context.trace = self.base
            expected = primitive.infer(tuple(map(aval_of, primals)), params)
            result = rule(tuple(primals), tuple(own), **params)
            out, residuals, lin = checks.check_linearized(primitive, result)
            context.trace = self.parent
            out_dot = lin(residuals, tuple(tangents))
        except Exception as error:
            raise checks.failed(primitive, "linearize", error)  # noqa: B904
        finally:
            context.trace = self
        if primitive.multiple_results:
            return self.box_all(primitive, "linearize", out, out_dot, expected)
        out = checks.check_value(primitive, "linearize", out, expected, self.base)
        return self.box(primitive, "linearize", out, out_dot)


_no_params: Params = {}


def without(zeros: set[Linear], eqns: Sequence[TapeEqn]) -> list[TapeEqn]:
    """The tape simplified for unknowns that are zero. Those found to be zero as a result are added to `zeros`."""
    kept = []
    for primitive, operands, params, outs in eqns:
        unknown = [x for x in operands if type(x) is Linear]
        if zeros.issuperset(unknown):
            zeros.update(outs)
            continue
        if not zeros.isdisjoint(unknown):
            if primitive is weighted_sum:
                pairs = [operands[i:i + 2] for i in range(0, len(operands), 2) if operands[i] not in zeros]
                operands = tuple([x for pair in pairs for x in pair])
            else:
                operands = tuple([instantiate(Zero(x.aval)) if type(x) is Linear and x in zeros else x
                                  for x in operands])
        kept.append((primitive, operands, params, outs))
    return kept


def _spreads(primals: Sequence[object], unknowns: Sequence[Linear | None]) -> bool:
    """Whether an operand with a tangent has rank 0 and another has not, so that the tangent has to be broadcast."""
    for t in unknowns:
        if t is not None and not t.aval.shape:
            return any(map(_has_axes, primals))
    return False


def _has_axes(x: object) -> bool:
    return bool(x.aval.shape if type(x) is Array else getattr(x, "shape", ()))


class LinearMap:
    """A linear function recorded on a tape, from tangents of the inputs to tangents of the outputs."""

    __slots__ = ("eqns", "ins", "outs", "_pruned")

    def __init__(self, eqns: list[TapeEqn], ins: Sequence[Linear | None], outs: Sequence[Any]) -> None:
        self.eqns = eqns
        self.ins = ins  # None for an input without tangents (an integer)
        self.outs = outs  # a Linear, a Zero, or a value that doesn't depend on the inputs
        self._pruned = False

    def __call__(self, *tangents: Any) -> list[Any]:
        """Apply it; may be repeated, under any transformation."""
        if not self._pruned:
            self.eqns, self._pruned = needed(self.eqns, self.outs), True
        env = {var: t if type(t) is Array and t.aval is var.aval else tangent_of(t, var.aval)
               for var, t in zip(self.ins, tangents, strict=True) if var is not None}
        replay(self.eqns, env)
        return [env[x] if type(x) is Linear else instantiate(x) for x in self.outs]


def linearize(fun: Callable[..., Sequence[Any]], primals: Sequence[object]) -> tuple[list[Any], LinearMap]:
    """Outputs of `fun` at `primals`, and its derivative there as a `LinearMap`."""
    caller = context.trace
    tape = TapeTrace(caller)
    ins: list[Linear | None] = []
    tangents: list[Any] = []
    for p in primals:
        aval = aval_of(p).tangent
        var = Linear(aval) if aval.dtype is not float0 else None
        ins.append(var)
        tangents.append(Zero(aval) if var is None else var)
    trace = LinearizeTrace(tape)
    try:
        outs, dots = run_jvp(fun, trace, caller, primals, tangents)
        ends = [x if type(x) is Zero else tape.operand(x) for x in dots]
    finally:
        eqns = tape.end()
        trace.eqns = tape.eqns
    return outs, LinearMap(eqns, ins, ends)
