"""Functions with rules of their own for derivatives that read or write references, or keep them as residuals.

Their rules are Python functions, which run while what is around them is traced. Where derivatives are taken at once,
they get the references themselves, so whatever they do to these happens where they run: a bwd rule writes on the way
back. In a program, which is differentiated later, they get references of their own: what these hold comes and goes
with values on the way there, and with trails on the way back (`_trails`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

from corejax import lax
from corejax.core import Jaxpr, aval_of, context, eval_jaxpr, instantiate, rebound, stage
from corejax.errors import CorejaxError
from corejax.plugin import Zero, as_users_see, carrying
from corejax_references._cells import Cell, bound_around, mapped_here, read, replace
from corejax_references._traced_calls import CallWithReferences, TracedCall, unsupported
from corejax_references._trails import mapped_call, trails_here

__all__ = ["call_with_rules", "pullback_with_references"]


def call_with_rules(primitive: Any, args: Sequence[Any], params: Mapping[str, Any]) -> list[Any]:
    """A call of a function with rules, which gets references."""
    call, jaxpr, trace = params["call"], params["jaxpr"], context.trace
    if trace.knows_values:
        return call.primal(args) if jaxpr is None else eval_jaxpr(jaxpr, (), *args)
    if jaxpr is not None and (trace.stages or trace.is_mapping):
        unused = _unused(call, args, jaxpr)
        if unused:
            rest = [i for i in range(len(args)) if i not in unused]
            return primitive.bind(*[args[i] for i in rest], call=call.without(unused),  # type: ignore[no-any-return]
                                  jaxpr=jaxpr.replace(invars=[jaxpr.invars[i] for i in rest]))
        mapped = mapped_here(args)
        return _in_program(primitive, args, call, jaxpr) if mapped is None else mapped_call(
            primitive, args, params, mapped)
    if trace.is_transparent or not any([getattr(x, "_trace", None) is trace for x in args]):
        return bound_around(primitive, args, params)
    given = {i: x for i, x in enumerate(args) if isinstance(x, Cell)}
    dots = {}
    for i, x in given.items():
        if x._home is trace and isinstance(getattr(x._variable, "tangent", None), Cell):  # got with one to tangents
            given[i], dots[i] = x._variable.primal, x._variable.tangent
    return primitive.bind(  # type: ignore[no-any-return]
        *[x for x in args if not isinstance(x, Cell)], call=_AtOnce(call, given, dots), jaxpr=None)


def _in_program(primitive: Any, args: Sequence[Any], call: Any, jaxpr: Jaxpr) -> list[Any]:
    """A call in a program: of what the references hold, and of their trails."""
    refs = [x for x in args if isinstance(x, Cell)]
    trails, keep = trails_here(refs)
    traced = TracedCall(call, args, jaxpr)
    outs = primitive.bind(*[read(x) if isinstance(x, Cell) else x for x in args], *trails, call=traced,
                          jaxpr=traced.program)
    n = len(refs)
    held = [lax.stop_gradient(x) for x in outs[:n]]  # the rules say nothing of derivatives of that
    keep(outs[n:2 * n], held)
    for ref, x in carrying.marked([*zip(refs, held, strict=True)], traced.writes):
        replace(ref, x)
    return [*outs[2 * n:]]


def pullback_with_references(primitive: Any, args: Sequence[Any], params: Mapping[str, Any]) -> list[Any]:
    """What waits for cotangents, with references among the residuals of a fwd rule: they are kept beside them."""
    pullback = params["pullback"]
    refs = {i: x for i, x in enumerate(args) if isinstance(x, Cell)}
    if max(refs) >= pullback.n_residuals:
        raise unsupported(pullback.name, "it has rules for both modes")
    rest = [x for x in args if not isinstance(x, Cell)]
    return primitive.bind(*rest, **{**params, "pullback": _Pullback(pullback, refs, {}, pullback.call)})  # type: ignore[no-any-return]


def _unused(call: Any, args: Sequence[Any], jaxpr: Jaxpr) -> list[int]:
    """The places of references that a function and its rules could read, as they close over them, but don't use.

    The rules are tried for that: searching what they refer to finds more than they use.
    """
    read_by_function = {x for eqn in jaxpr.eqns for x in eqn.invars}
    places = [i for i, x in enumerate(args[:call.n_consts])
              if isinstance(x, Cell) and jaxpr.invars[i] not in read_by_function]
    if not places:
        return []
    closed_over = [x for x in args[:call.n_consts] if isinstance(x, Cell)]

    def rules(*xs: Any) -> list[Any]:
        xs = tuple(as_users_see(xs))
        refs = [x for x in xs[:call.n_consts] if isinstance(x, Cell)]
        return rebound(partial(_tried, call, xs), closed_over, refs)  # type: ignore[no-any-return]

    tried = stage(rules, [*map(aval_of, args)], call.name).jaxpr
    used = {x for eqn in tried.eqns for x in eqn.invars}
    return [i for i in places if tried.invars[i] not in used]


def _tried(call: Any, args: Sequence[Any]) -> list[Any]:
    """Nothing, once all rules have run with these arguments; or failed, as they will where a derivative is taken."""
    zeros = [Zero((x.aval.inner_aval if isinstance(x, Cell) else aval_of(x)).tangent) for x in args]
    with suppress(Exception):
        if call.has_jvp:
            call.jvp(args, [x if isinstance(y, Cell) else instantiate(x) for x, y in zip(zeros, args, strict=True)])
    with suppress(Exception):
        if call.has_vjp:
            _, residuals, pullback = call.fwd(args, [not isinstance(x, Cell) for x in args])
            pullback.bwd(residuals, [instantiate(Zero(aval.tangent)) for aval in pullback.out_avals])
    return []


class _AtOnce(CallWithReferences):
    """A call whose arguments at some places are references, which aren't operands."""

    def __init__(self, call: Any, refs: Mapping[int, Cell], dots: Mapping[int, Cell]) -> None:
        super().__init__(call)
        self.refs, self.dots = refs, dots
        self.n_consts = call.n_consts - sum([i < call.n_consts for i in refs])

    def _all(self, items: Sequence[Any], at: Mapping[int, Any]) -> list[Any]:
        rest = iter(items)
        return [at[i] if i in at else next(rest) for i in range(len(items) + len(at))]

    def primal(self, args: Sequence[Any]) -> Any:
        return self.call.primal(self._all(args, self.refs))

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> Any:
        zeros = {i: Zero(ref.aval.inner_aval.tangent) for i, ref in self.refs.items()}
        return self.call.jvp(self._all(primals, self.refs), self._all(tangents, {**zeros, **self.dots}))

    def fwd(self, primals: Sequence[Any], nonzero: Sequence[bool]) -> Any:
        outs, residuals, pullback = self.call.fwd(self._all(primals, self.refs),
                                                  self._all(nonzero, dict.fromkeys(self.refs, False)))
        kept = {i: x for i, x in enumerate(residuals) if isinstance(x, Cell)}
        return outs, [x for x in residuals if not isinstance(x, Cell)], _Pullback(pullback, kept, self.refs, self)


class _Pullback:
    """A pullback that gets references among its residuals, and has no cotangents for those that were arguments."""

    __corejax_unique__ = True

    def __init__(self, pullback: Any, refs: Mapping[int, Cell], dropped: Mapping[int, Cell], call: Any) -> None:
        self.pullback, self.refs, self.dropped = pullback, refs, dropped
        self.call, self.name = call, pullback.name
        self.in_avals = self._kept(pullback.in_avals)
        self.out_avals = pullback.out_avals
        self.n_residuals = pullback.n_residuals - len(refs)
        self.key = object()

    def _kept(self, items: Sequence[Any]) -> list[Any]:
        return [x for i, x in enumerate(items) if i not in self.dropped]

    def __corejax_key__(self) -> Any:
        return self.key

    def __corejax_rule__(self, hook: str) -> str:
        return self.pullback.__corejax_rule__(hook)  # type: ignore[no-any-return]

    def bwd(self, residuals: Sequence[Any], cotangents: Sequence[Any]) -> list[Any]:
        rest = iter(residuals)
        every = [self.refs[i] if i in self.refs else next(rest) for i in range(len(residuals) + len(self.refs))]
        return self._kept(self.pullback.bwd(every, cotangents))

    def backward_only(self) -> CorejaxError:
        return self.pullback.backward_only()  # type: ignore[no-any-return]
