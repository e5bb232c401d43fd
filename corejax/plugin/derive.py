"""Rules for hooks that a plugin left out: derived where they can be, refused by name where they can't.

From `decompose`, every rule follows by transforming the composition. From a declaration (`linear`, `partials`), the
jvp. Without either, vmap maps slice by slice and compiled code calls back into `impl`; each of these works at a cost
that a warning names once.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

from corejax.avals import ShapedArray, Zero, aval_of
from corejax.caches import BoundedCache
from corejax.config import config
from corejax.errors import CorejaxNotImplementedError, CorejaxWarning, MissingRuleError
from corejax.interpreters import batching, forward
from corejax.interpreters.reverse import transpose_function
from corejax.interpreters.staging import stage, stage_closed
from corejax.plugin import checks
from corejax.plugin.declarations import NotDifferentiable, NotLinear, Partials, hookimpl
from corejax.plugin.roles import operators, roles
from corejax.source import here, user_frame

Rule = Callable[..., Any]


def fill(slots: Any, primitive: Any) -> None:
    """Give every rule in `slots` a callable, for the primitive that is being frozen (`impl` may stay None).

    The rules made here refer to `primitive`, never to `slots`, which is a draft of it.
    """
    decomposes, own_jvp = slots.decompose is not None, slots.jvp is not None
    if slots.abstract_eval is None:
        slots.abstract_eval = _abstract_eval(primitive)
    _fill_jvp(slots, primitive)
    if isinstance(slots.transpose, NotLinear):
        slots.transpose = _refused(primitive, "transpose", slots.transpose.reason)
    elif slots.transpose is None:
        slots.transpose = _transpose(primitive) if decomposes else _missing(primitive, "transpose")
    if slots.vmap is None:
        if decomposes and own_jvp:
            slots.vmap = _vmap_keeping_jvp(primitive)
        else:
            slots.vmap = _vmap(primitive) if decomposes else _sequential_vmap(primitive)
    if slots.xla_translation is None:
        if decomposes:
            slots.xla_translation = _lowering(primitive)
        elif slots.impl is not None:
            slots.xla_translation = _callback(primitive)
        else:
            slots.xla_translation = _missing(primitive, "xla_translation")


def _fill_jvp(slots: Any, primitive: Any) -> None:
    declared = slots.jvp
    if isinstance(declared, NotDifferentiable):
        slots.jvp = _refused(primitive, "jvp", declared.reason)
    elif isinstance(declared, Partials):
        slots.jvp = _jvp_of_partials(primitive, declared.functions, slots.factors)
        slots.symbolic_zeros = slots.jvp_binds_itself = True
    elif declared is None and slots.linear is not None:
        slots.jvp = _jvp_of_linear(primitive, slots.linear)
        slots.symbolic_zeros = slots.jvp_binds_itself = True
    elif declared is None and slots.decompose is not None:
        slots.jvp = _jvp(primitive)
        slots.symbolic_zeros = True
    elif declared is None:
        slots.jvp = _missing(primitive, "jvp")


# From declarations

def _jvp_of_partials(primitive: Any, functions: Sequence[Rule | None], factors: Sequence[Any] | None) -> Rule:
    negated = [factor == -1 for factor in factors or [None] * len(functions)]

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
            out_dot = term if out_dot is None else roles.accumulate(out_dot, term)
        return out, Zero(out.aval.tangent) if out_dot is None else out_dot
    return jvp


def _jvp_of_linear(primitive: Any, positions: Sequence[int]) -> Rule:
    """d f(x, c) = f(x_dot, c) for an operand x in which f is linear, all of them together."""
    def jvp(primals: Sequence[Any], tangents: Sequence[Any], /, **params: Any) -> tuple[Any, Any]:
        outs = primitive.bind(*primals, **params)
        fixed = [i for i, t in enumerate(tangents) if type(t) is not Zero and i not in positions]
        if fixed:
            raise MissingRuleError(
                f"{primitive.name}.jvp ({primitive.origin}): operand {fixed[0]} has a tangent, and the primitive is "
                f"declared linear in {tuple(positions)} only", primitive=primitive.name, hook="jvp",
                pack=primitive.origin, got=f"a tangent of operand {fixed[0]}", where=here(),
                wanted=f"tangents of the operands {', '.join(map(str, positions))} only",
                todo="write a jvp rule, or use lax.stop_gradient on that operand")
        if all([type(t) is Zero for t in tangents]):
            return outs, ([Zero(o.aval.tangent) for o in outs] if primitive.multiple_results
                          else Zero(outs.aval.tangent))
        dots = [forward.instantiate(t) if i in positions else p
                for i, (t, p) in enumerate(zip(tangents, primals, strict=True))]
        return outs, primitive.bind(*dots, **params)
    return jvp


def _refused(primitive: Any, hook: str, reason: str) -> Rule:
    verb, what, todo = ("is not differentiable", "differentiated", "use lax.stop_gradient on its operands if a zero "
                        "derivative is meant") if hook == "jvp" else (
        "is not linear, so it has no transpose", "transposed", "differentiate first: cj.vjp transposes the derivative")

    def rule(*_: Any, **__: Any) -> Any:
        raise CorejaxNotImplementedError(
            f"{primitive.name} ({primitive.origin}) {verb}: {reason}", primitive=primitive.name, hook=hook,
            pack=primitive.origin, got=f"operands that depend on what is {what}", wanted="operands that don't",
            where=here(), todo=todo)
    return rule


def _missing(primitive: Any, hook: str) -> Rule:
    def rule(*_: Any, **__: Any) -> Any:
        raise MissingRuleError(
            f"{primitive.name} ({primitive.origin}) has no {hook} rule and none can be derived",
            primitive=primitive.name, hook=hook, pack=primitive.origin, where=here(),
            got=f"a plugin with {', '.join([h for h, whose in primitive.providers.items() if whose != 'derived'])}",
            wanted=f"a hook `{hook}`, or `decompose`, from which every rule follows",
            todo=f"write {hook} in the plugin, or provide it from another pack under corejax.rules; if it can't exist, "
                 + ("declare jvp = not_differentiable(reason)" if hook == "jvp"
                    else "declare transpose = not_linear(reason)"))
    return rule


# From decompose

def _function(primitive: Any, params: dict[str, Any]) -> Callable[..., list[Any]]:
    """`decompose` as a function from positional operands to a list of outputs."""
    def fun(*args: Any) -> list[Any]:
        out = primitive.decompose(args, **params)
        if primitive.multiple_results:
            return checks.check_list(primitive, "decompose", out)
        checks.check_array(primitive, "decompose", out)
        return [out]
    return fun


def _results(primitive: Any, outs: Sequence[Any]) -> Any:
    return outs if primitive.multiple_results else outs[0]


def _abstract_eval(primitive: Any) -> Rule:
    def abstract_eval(avals: Sequence[ShapedArray], /, **params: Any) -> Any:
        return _results(primitive, stage(_function(primitive, params), avals, primitive.name).out_avals)
    return abstract_eval


def _jvp(primitive: Any) -> Rule:
    def jvp(primals: Sequence[Any], tangents: Sequence[Any], /, **params: Any) -> tuple[Any, Any]:
        outs, dots = forward.jvp(_function(primitive, params), primals, tangents)
        return _results(primitive, outs), _results(primitive, dots)
    return jvp


def _transpose(primitive: Any) -> Rule:
    def transpose(cts: Any, args: Sequence[Any], /, **params: Any) -> list[Any]:
        cts = cts if primitive.multiple_results else [cts]
        return transpose_function(_function(primitive, params), args, cts)
    return transpose


def _vmap(primitive: Any) -> Rule:
    def vmap(axis: Any, args: Sequence[Any], dims: Sequence[int | None], /, **params: Any) -> tuple[Any, Any]:
        outs, out_dims = batching.vmap(_function(primitive, params), axis.size, axis.name, args, dims)
        return _results(primitive, outs), _results(primitive, out_dims)
    return vmap


class _Mapped:
    """A primitive with `decompose` and a jvp of its own, mapped along an axis: both are mapped, the jvp is not lost."""

    def __init__(self, primitive: Any, axis: Any, dims: tuple[int | None, ...]) -> None:
        self.name = f"mapped_{primitive.name}"
        self.multiple_results = primitive.multiple_results
        self.symbolic_zeros = True
        self._primitive, self._axis, self._dims = primitive, axis, dims

    @hookimpl
    def decompose(self, args: Sequence[Any], **params: Any) -> Any:
        return _results(self, self._map(_function(self._primitive, params), args, self._dims))

    @hookimpl
    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> tuple[Any, Any]:
        rule, count, zero_dots = self._primitive, len(primals), [False]
        outs_of: list[int] = []

        def fun(*slices: Any) -> list[Any]:
            given = iter(slices[count:])
            dots = [Zero(aval_of(x).tangent) if type(t) is Zero else next(given)
                    for x, t in zip(slices[:count], tangents, strict=True)]
            if not rule.symbolic_zeros:
                dots = [forward.instantiate(t) for t in dots]
            out, out_dot = rule.jvp(slices[:count], dots, **params)
            outs, out_dots = (out, out_dot) if rule.multiple_results else ([out], [out_dot])
            out_dots = [forward.instantiate(t) for t in out_dots]
            zero_dots[:] = [type(t) is Zero for t in out_dots]
            outs_of[:] = [len(outs)]
            return [*outs, *[t for t in out_dots if type(t) is not Zero]]

        nonzero = [(t, d) for t, d in zip(tangents, self._dims, strict=True) if type(t) is not Zero]
        mapped = self._map(fun, [*primals, *[t for t, _ in nonzero]], [*self._dims, *[d for _, d in nonzero]])
        outs, found = mapped[: outs_of[0]], iter(mapped[outs_of[0]:])
        dots = [Zero(aval_of(x).tangent) if zero else next(found) for x, zero in zip(outs, zero_dots, strict=True)]
        return _results(self, outs), _results(self, dots)

    def _map(self, fun: Rule, args: Sequence[Any], dims: Sequence[int | None]) -> list[Any]:
        outs, out_dims = batching.vmap(fun, self._axis.size, self._axis.name, args, dims)
        return [batching.to_dim(x, d, 0, self._axis.size) for x, d in zip(outs, out_dims, strict=True)]


def _vmap_keeping_jvp(primitive: Any) -> Rule:
    variants: BoundedCache[Any, Any] = BoundedCache(64)

    def vmap(axis: Any, args: Sequence[Any], dims: Sequence[int | None], /, **params: Any) -> tuple[Any, Any]:
        key = axis, tuple(dims)
        mapped = variants.get(key) or variants.put(key, primitive.variant(_Mapped(primitive, *key)))
        outs = mapped.bind(*args, **params)
        return outs, ([0] * len(outs) if primitive.multiple_results else 0)
    return vmap


def _lowering(primitive: Any) -> Rule:
    def lowering(ctx: Any, args: Sequence[Any], /, **params: Any) -> Any:
        jaxpr = stage_closed(_function(primitive, params), ctx.avals_in, primitive.name)
        for x, aval in zip(jaxpr.outvars, ctx.avals_out, strict=True):
            checks.check_output(primitive, "decompose", x, aval)
        return _results(primitive, ctx.call(jaxpr, args))
    return lowering


# From impl and abstract_eval alone

def _fallback(primitive: Any, hook: str, what: str) -> Callable[[], None]:
    """Tell the user, once, that a fallback is at work; or refuse it, if the configuration says so."""
    told = False

    def notify() -> None:
        nonlocal told
        message = f"{primitive.name} ({primitive.origin}) has no {hook} rule: {what}. Writing {hook} removes this."
        if config.fallbacks == "error":
            raise MissingRuleError(message, primitive=primitive.name, hook=hook, pack=primitive.origin, where=here(),
                                   got=f"no {hook}, and config.fallbacks = 'error'", wanted=f"the hook {hook}",
                                   todo="write the hook, or set config.fallbacks = 'warn'")
        if not told and config.fallbacks == "warn":
            told = True
            frame = user_frame()
            if frame is None:
                warnings.warn(message, CorejaxWarning, stacklevel=2)
            else:
                warnings.warn_explicit(message, CorejaxWarning, frame.f_code.co_filename, frame.f_lineno)
    return notify


def _sequential_vmap(primitive: Any) -> Rule:
    notify = _fallback(primitive, "vmap", "it is mapped one slice after the other, which is slow")

    def vmap(axis: Any, args: Sequence[Any], dims: Sequence[int | None], /, **params: Any) -> tuple[Any, Any]:
        notify()
        mapped = [roles.move_axis(x, d, 0) if d else x for x, d in zip(args, dims, strict=True) if d is not None]

        def one(slices: Sequence[Any]) -> Any:
            rest = iter(slices)
            return primitive.bind(*[x if d is None else next(rest) for x, d in zip(args, dims, strict=True)], **params)

        outs = roles.sequential_map(one, mapped)
        return outs, ([0] * len(outs) if primitive.multiple_results else 0)
    return vmap


def _callback(primitive: Any) -> Rule:
    notify = _fallback(primitive, "xla_translation", "compiled programs call back into Python for it, which is slow")

    def lowering(ctx: Any, args: Sequence[Any], /, **params: Any) -> Any:
        notify()
        out_avals = ctx.avals_out

        def call(*operands: Any) -> Sequence[Any]:
            out = primitive.impl(operands, **params)
            return out if primitive.multiple_results else (out,)

        return _results(primitive, ctx.callback(call, args, out_avals))
    return lowering
