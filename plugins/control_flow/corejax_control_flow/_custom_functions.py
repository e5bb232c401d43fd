"""What `custom_jvp` and `custom_vjp` return: functions whose derivatives their author sets."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import update_wrapper
from typing import Any

from corejax import lax
from corejax.core import (
    Jaxpr,
    Tracer,
    Zero,
    aval_of,
    check_callable,
    context,
    dtypes,
    flatten,
    here,
    instantiate,
    is_holder,
    name_of,
    namer,
    values,
)
from corejax.errors import CorejaxAttributeError, CorejaxIndexError, CorejaxTypeError, LeakedTracerError, kind_of
from corejax.plugin import roles, shaping
from corejax_control_flow._closures import Reached
from corejax_control_flow._outer_values import opened, outer_values, with_more
from corejax_control_flow._positional import Positional
from corejax_control_flow._user_rules import Rules, UserCall
from corejax_control_flow.custom_derivatives import custom_call


class CustomDerivatives:
    """A function with custom derivatives: what `custom_jvp` and `custom_vjp` call.

    Its `rules` are set by `defjvp`, `defjvps` and `defvjp`. If it has both kinds, forward mode uses the jvp rule and
    reverse mode the vjp rules.
    """

    def __init__(self, fun: Callable[..., Any], nondiff: Sequence[int], kind: str) -> None:
        check_callable(fun, kind)
        update_wrapper(self, fun, updated=())
        self.fun, self.kind, self.nondiff = fun, kind, tuple(sorted(nondiff))
        self.rules = Rules(fun, name_of(fun))
        self._by_position = Positional(fun, kind)

    def defjvp(self, jvp: Callable[..., Any], symbolic_zeros: bool = False) -> Callable[..., Any]:
        _check_rule(jvp, "defjvp")
        sees_zeros = shaping.as_flag("defjvp", "symbolic_zeros", symbolic_zeros)
        rules = self._changed()
        rules.jvp, rules.jvp_sees_zeros = jvp, sees_zeros
        return jvp

    def defjvps(self, *jvps: Callable[..., Any] | None) -> None:
        if self.nondiff:
            raise CorejaxTypeError("defjvps needs a function whose arguments are all differentiated", where=here(),
                                   got=f"nondiff_argnums={self.nondiff}", wanted="a rule for all arguments",
                                   todo="write one rule with defjvp")
        for jvp in jvps:
            if jvp is not None:
                _check_rule(jvp, "defjvps")
        self.defjvp(_Sum(self, jvps), True)

    def defvjp(self, fwd: Callable[..., Any], bwd: Callable[..., Any], symbolic_zeros: bool = False,
               optimize_remat: bool = False) -> None:
        _check_rule(fwd, "defvjp")
        _check_rule(bwd, "defvjp")
        sees_zeros = shaping.as_flag("defvjp", "symbolic_zeros", symbolic_zeros)
        optimize_remat = shaping.as_flag("defvjp", "optimize_remat", optimize_remat)
        rules = self._changed()
        rules.optimize_remat = optimize_remat
        rules.fwd, rules.bwd, rules.vjp_sees_zeros = fwd, bwd, sees_zeros

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self.rules.jvp is None and self.rules.fwd is None:
            missing = f"{self.rules.name}.{'defjvp(rule)' if self.kind == 'custom_jvp' else 'defvjp(fwd, bwd)'}"
            raise CorejaxAttributeError(f"{self.kind}: {self.rules.name} is called before it has a rule", where=here(),
                                        got="no rule for its derivative", wanted=f"{missing} before the first call",
                                        todo="define the rule next to the function")
        xs, call = self._prepared(args, kwargs)
        trace = context.trace
        mapped = trace.is_mapping and trace.may_differentiate and any(map(is_holder, xs))  # whose rules run later
        if mapped or trace.is_staging and not (trace.is_transparent and self._is_known(xs, call)):
            call, jaxpr, consts = self._staged(xs, call)
            outs = custom_call.primitive.bind(*consts, *xs, call=call, jaxpr=jaxpr)
        elif trace.knows_values:
            outs = custom_call.primitive.bind(*xs, call=call, jaxpr=None)
        else:
            call, outs = self._at_once(xs, call)
        return call.out_tree.unflatten(outs)

    def _is_known(self, xs: Sequence[Any], call: UserCall) -> bool:
        """Whether nothing traced takes part in a call, so that it is evaluated even while a program is traced."""
        return not any([isinstance(x, Tracer) for x in xs]) and not self._reached(call).tracers

    def _at_once(self, xs: Sequence[Any], call: UserCall) -> tuple[UserCall, list[Any]]:
        """The call under a transformation that computes at once, and its results."""
        traced = self._reached(call).tracers
        if not traced:
            try:
                return call, custom_call.primitive.bind(*xs, call=call, jaxpr=None)
            except LeakedTracerError:  # perhaps there is one in a global variable
                traced = self._reached(call, thoroughly=True).tracers
                if not traced:
                    raise
        consts = [x for x, _ in traced]
        call = call.closing_over(consts, [name for _, name in traced])
        return call, custom_call.primitive.bind(*consts, *xs, call=call, jaxpr=None)

    def __repr__(self) -> str:
        return f"<{self.kind} {self.rules.name}>"

    def _changed(self) -> Rules:
        """The rules, about to be changed. They get a new identity, since programs made before have the old ones."""
        self.rules.identity = object()
        return self.rules

    def _prepared(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> tuple[list[Any], UserCall]:
        """The arrays in the arguments, and a call of the function with arguments of this structure."""
        args = self._by_position(args, kwargs)
        for i in self.nondiff:
            if i >= len(args):
                raise CorejaxIndexError(f"{self.kind}: {self.rules.name} is called without an argument number {i}",
                                        got=f"{len(args)} arguments", where=here(),
                                        wanted=f"more than {i}, as nondiff_argnums={self.nondiff}",
                                        todo="pass that argument, or change nondiff_argnums")
        own = {i: x for i, x in enumerate(args) if i not in self.nondiff}
        leaves, in_tree = flatten(tuple(own.values()))
        xs = values(leaves, self.rules.name, namer("args", own))
        fixed = {i: _without_tangent(args[i]) if self.kind == "custom_jvp" else args[i] for i in self.nondiff}
        return xs, UserCall(self.rules, in_tree, len(args), fixed)

    def _staged(self, xs: Sequence[Any], call: UserCall) -> tuple[UserCall, Jaxpr, list[Any]]:
        """The call with a program, and values that the function or its rules close over, which become operands."""
        jaxpr, consts, names, call.out_tree, found = opened(
            call.function(), [x.aval for x in xs], call.in_tree, call.name, lambda: self._reached(call))
        known = {*map(id, consts), *map(id, xs)}
        more = [(x, variable) for x, variable in found.holders if id(x) not in known]
        jaxpr, consts = with_more(jaxpr, [x for x, _ in more]), [*[x for x, _ in more], *consts]
        names = [*[variable for _, variable in more], *names]
        if consts:
            call = call.closing_over(consts, names)
        return call.as_program(jaxpr, found), jaxpr, consts

    def _reached(self, call: UserCall, thoroughly: bool = False) -> Reached:
        """What the function and its rules can read."""
        return outer_values(self.__corejax_reads__(), self, call.fixed.values(), thoroughly)

    def __corejax_reads__(self) -> list[Any]:
        rules = self.rules
        return [f for f in (rules.fun, rules.jvp, rules.fwd, rules.bwd) if f is not None]


def _without_tangent(x: Any) -> Any:
    """A traced value that the author of a function declares not to be differentiated: JAX takes that at its word."""
    return lax.stop_gradient(x) if isinstance(x, Tracer) and dtypes.is_inexact(x.dtype) else x


class _Sum:
    """The jvp rule made by `defjvps`: a sum over the arguments."""

    def __init__(self, fun: CustomDerivatives, jvps: Sequence[Callable[..., Any] | None]) -> None:
        self.fun, self.jvps = fun, jvps

    def __call__(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        if len(primals) != len(self.jvps):
            raise CorejaxTypeError(f"defjvps: {self.fun} doesn't have as many arguments as it has rules",
                                   got=f"{len(primals)} arguments", wanted=f"{len(self.jvps)} rules", where=here(),
                                   todo="give one rule for each argument, or None")
        out = self.fun(*primals)
        leaves, tree = flatten(out)
        total: list[Any] = [Zero(aval_of(x).tangent) for x in leaves]
        for jvp, tangent in zip(self.jvps, tangents, strict=True):
            dots, in_tree = flatten(tangent)
            if jvp is None or all([type(t) is Zero for t in dots]):
                continue
            term = jvp(in_tree.unflatten([instantiate(t) for t in dots]), out, *primals)
            terms = tree.flatten_up_to(term)
            total = [t if type(old) is Zero else roles.accumulate(old, t) for old, t in zip(total, terms, strict=True)]
        return out, tree.unflatten(total)


def _check_rule(rule: Any, what: str) -> None:
    if not callable(rule):
        raise CorejaxTypeError(f"{what}: a rule must be a function", got=f"{kind_of(rule)}: {rule!r:.80}", where=here(),
                               wanted="a callable", todo=f"pass the function itself: {what}(rule)")
