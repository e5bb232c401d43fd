"""Rules for hooks that a plugin left out: derived where possible, otherwise an error that names them.

`decompose` gives every rule, by transforming the composition; a declaration (`linear`, `partials`) gives the jvp. Slow
substitutes for the rest are in `fallbacks`.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from corejax.arrays.array import Array
from corejax.base.avals import ShapedArray, Zero
from corejax.base.errors import MissingRuleError
from corejax.base.late import late
from corejax.base.source import here
from corejax.installed.roles import operators, roles
from corejax.kernel import checks
from corejax.kernel.context import context
from corejax.kernel.declarations import NotDifferentiable, NotLinear, Partials, itself
from corejax.kernel.factors import instantiate, weighted
from corejax.kernel.primitive import Primitive, Rule
from corejax.packs.fallbacks import CALLBACK, SEQUENTIAL, Note, callback, missing, refused, sequential_vmap
from corejax.packs.families.spreading import spread

if TYPE_CHECKING:
    from corejax.packs import decomposition
else:
    decomposition = late("corejax.packs.decomposition")  # it imports all the interpreters

MISSING = Note("missing", "nothing says what it is, and using it is an error")
COMPILED = Note("absent", "compiled for each call signature")


def fill(slots: SimpleNamespace, primitive: Primitive) -> None:
    """Give every rule in `slots` a callable, for the primitive that is being frozen (`impl` may stay None).

    The rules made here refer to `primitive`, never to `slots`, which is a draft of it. `slots.notes` gets a note for
    each hook that had no rule.
    """
    derived = {} if slots.decompose is None else decomposition.rules(primitive, own_jvp=slots.jvp is not None)
    notes = slots.notes
    if slots.abstract_eval is None:
        slots.abstract_eval, notes["abstract_eval"] = derived["abstract_eval"]
    if slots.impl is None:
        notes["impl"] = COMPILED if slots.evaluate is None else Note("absent", "evaluate is used")
    _fill_jvp(slots, primitive, derived.get("jvp"))
    if isinstance(slots.transpose, NotLinear):
        slots.transpose = refused(primitive, "transpose", slots.transpose.reason)
    elif slots.transpose is None:
        slots.transpose, notes["transpose"] = derived.get("transpose") or (missing(primitive, "transpose"), MISSING)
    if slots.vmap is None:
        slots.vmap, notes["vmap"] = derived.get("vmap") or (sequential_vmap(primitive), SEQUENTIAL)
    if slots.xla_translation is None:
        slots.xla_translation, notes["xla_translation"] = derived.get("xla_translation") or (
            (callback(primitive), CALLBACK) if slots.impl is not None else
            (missing(primitive, "xla_translation"), MISSING))


def _fill_jvp(slots: SimpleNamespace, primitive: Primitive, derived: tuple[Rule, Note] | None) -> None:
    declared = slots.jvp
    if isinstance(declared, NotDifferentiable):
        slots.jvp = refused(primitive, "jvp", declared.reason)
    elif isinstance(declared, Partials):
        functions = _with_refusals(primitive, declared.functions)
        slots.linear_in = frozenset([i for i, f in enumerate(functions) if f is itself])
        functions = tuple([_itself(primitive, i) if f is itself else f for i, f in enumerate(functions)])
        slots.factors = None if slots.factors is None else _with_refusals(primitive, slots.factors)
        slots.jvp = _jvp_of_partials(primitive, functions, slots.factors)
        slots.symbolic_zeros = slots.jvp_binds_itself = True
    elif declared is None and slots.linear is not None:
        slots.jvp = _jvp_of_linear(primitive, slots.linear)
        slots.symbolic_zeros = slots.jvp_binds_itself = True
    elif declared is None and derived is not None:
        slots.jvp, slots.notes["jvp"] = derived
        slots.symbolic_zeros = True
    elif declared is None:
        slots.jvp, slots.notes["jvp"] = missing(primitive, "jvp"), MISSING


def _with_refusals(primitive: Primitive, functions: Sequence[Any]) -> tuple[Any, ...]:
    """Partials or factors, with what raises the reason for operands that are declared not differentiable."""
    return tuple([refused(primitive, "jvp", f.reason, i) if isinstance(f, NotDifferentiable) else f
                  for i, f in enumerate(functions)])


def fits(primitive: Primitive, abstract_eval: Rule, count: int | None, linear: Sequence[int]) -> Rule:
    """`abstract_eval` with a check that the number of operands matches the declarations.

    The check is there because `abstract_eval` is the first rule to be called, and only once for each signature.
    """
    def checked(avals: Sequence[ShapedArray], /, **params: Any) -> Any:
        result = abstract_eval(avals, **params)
        if count is not None and len(avals) != count:
            raise checks.wrong_count_of_partials(primitive, len(avals), count)
        if linear and max(linear) >= len(avals):
            raise checks.rule_error(
                primitive, "jvp", f"is declared linear in operand {max(linear)}, which doesn't exist",
                f"{len(avals)} operand{'s' * (len(avals) != 1)}", f"linear = {tuple(linear)}, as declared",
                "count operands from 0")
        return result
    return checked


# From declarations

def _jvp_of_partials(primitive: Primitive, functions: Sequence[Rule | None], factors: Sequence[Any] | None) -> Rule:
    negated = [factor == -1 for factor in factors or [None] * len(functions)]
    if factors is not None:
        functions = [_times(primitive, factor) if callable(factor) else function
                     for factor, function in zip(factors, functions, strict=True)]

    def jvp(primals: Sequence[Any], tangents: Sequence[Any], /, **params: Any) -> tuple[Any, Any]:
        if len(tangents) != len(functions):
            raise checks.wrong_count_of_partials(primitive, len(tangents), len(functions))
        out = primitive.bind(*primals, **params)
        out_dot = None
        for partial, x_dot, minus in zip(functions, tangents, negated, strict=True):
            if partial is None or type(x_dot) is Zero:
                continue
            if minus and out_dot is not None:
                out_dot = operators.sub(out_dot, x_dot)
                continue
            term = partial(x_dot, out, *primals, **params)
            if factors is None and (
                    type(term) is not type(x_dot) or getattr(term, "aval", None) is not out.aval.tangent or (
                        type(term) is not Array and term._trace is not x_dot._trace)):
                term = checks.check_tangent(primitive, "jvp", term, out.aval.tangent, context.trace)
                if type(term) is Zero:
                    continue
            out_dot = term if out_dot is None else roles.accumulate(out_dot, term)
        return out, Zero(out.aval.tangent) if out_dot is None else out_dot
    return jvp


def _itself(primitive: Primitive, position: int) -> Rule:
    """The partial of an operand in which the primitive is linear."""
    def partial(x_dot: Any, out: Any, *primals: Any, **params: Any) -> Any:
        return primitive.bind(*primals[:position], x_dot, *primals[position + 1:], **params)
    return partial


def _times(primitive: Primitive, factor: Rule) -> Rule:
    """A partial that multiplies the tangent by a factor, which is checked."""
    def partial(x_dot: Any, out: Any, *primals: Any, **params: Any) -> Any:
        weight, aval = factor(out, *primals, **params), out.aval
        if type(weight) is not type(out) or (type(out) is not Array and weight._trace is not out._trace) or (
                weight.aval is not aval and (weight.aval.dtype is not aval.dtype or weight.aval.shape != aval.shape)):
            weight = checks.check_factor(primitive, weight, out.aval, context.trace)
        return spread(weighted(x_dot, weight), out)
    return partial


def _jvp_of_linear(primitive: Primitive, positions: Sequence[int]) -> Rule:
    """d f(x, c) = f(x_dot, c), where x are the operands in which f is jointly linear."""
    def jvp(primals: Sequence[object], tangents: Sequence[object], /, **params: Any) -> tuple[Any, Any]:
        outs = primitive.bind(*primals, **params)
        fixed = [i for i, t in enumerate(tangents) if type(t) is not Zero and i not in positions]
        if fixed:
            raise MissingRuleError(
                f"{primitive.name}.jvp ({primitive.origin}): operand {fixed[0]} has a tangent, but the primitive is "
                f"declared linear in {tuple(positions)} only", primitive=primitive.name, hook="jvp",
                pack=primitive.origin, got=f"a tangent of operand {fixed[0]}", where=here(),
                wanted=f"tangents of the operands {', '.join(map(str, positions))} only",
                todo="write a jvp rule, or use lax.stop_gradient on that operand")
        if all([type(t) is Zero for t in tangents]):
            return outs, ([Zero(o.aval.tangent) for o in outs] if primitive.multiple_results
                          else Zero(outs.aval.tangent))
        dots = [instantiate(t) if i in positions else p
                for i, (t, p) in enumerate(zip(tangents, primals, strict=True))]
        return outs, primitive.bind(*dots, **params)
    return jvp
