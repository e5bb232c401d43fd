"""`custom_call`: a call of a function with derivatives of its own, by a jvp rule, by a fwd and a bwd rule, or both.

Where nothing is being staged the user's Python functions run on the values at hand, so that they may look at them; a
program that is staged holds the function as a jaxpr, and the rules beside it. Forward mode applies the jvp rule.
Reverse mode runs fwd now and leaves a `custom_pullback` on the tape: the function of tangents whose transpose is bwd.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from corejax import lax
from corejax.core import (
    Array,
    Jaxpr,
    Literal,
    ShapedArray,
    Zero,
    aval_of,
    context,
    dtypes,
    eval_jaxpr,
    flatten,
    here,
    instantiate,
    split_jaxpr,
    stage,
    to_dim,
    values,
    vmap_jaxpr,
)
from corejax.errors import CorejaxTypeError
from corejax.ir.surgery import consts_to_operands, dce
from corejax.plugin import Sample, define, hookimpl
from corejax_control_flow._calls import check_operands
from corejax_control_flow._derived_calls import MappedCall, MappedPullback, SelectedCall
from corejax_control_flow._user_calls import Rules, UserCall

__all__ = ["custom_call", "custom_pullback"]

_OWN_KEY = {"params are hashable": "a user's function is equal to itself alone, and the samples make one anew"}


class CustomCall:
    """`custom_call(*args, call=..., jaxpr=...)`: call a function that has derivatives of its own.

    `call` holds its rules. `jaxpr` is its program, of which the first `call.n_consts` operands are values that it
    closes over; None where it runs as it is.
    """

    name = "custom_call"
    multiple_results = True
    symbolic_zeros = True

    @hookimpl
    def evaluate(self, args: Any, *, call: Any, jaxpr: Jaxpr | None) -> Any:
        return _run(args, call, jaxpr)

    @hookimpl
    def abstract_eval(self, avals: Any, *, call: Any, jaxpr: Jaxpr | None) -> Sequence[ShapedArray]:
        if jaxpr is None:
            if call.out_avals is not None:
                return call.out_avals  # type: ignore[no-any-return]
            return stage(lambda *xs: call.primal(xs), avals, call.name).jaxpr.out_avals
        check_operands("custom_call", jaxpr, avals)
        return jaxpr.out_avals

    @hookimpl
    def decompose(self, args: Any, *, call: Any, jaxpr: Jaxpr | None) -> Any:
        return _run(args, call, jaxpr)

    @hookimpl
    def jvp(self, primals: Any, tangents: Any, *, call: Any) -> Any:
        n = call.n_consts
        if any([type(t) is not Zero for t in tangents[:n]]):
            aval = next(x.aval for x, t in zip(primals, tangents, strict=False) if type(t) is not Zero)
            raise CorejaxTypeError(
                f"{call.name} is differentiated with respect to a value that it closes over", where=here(),
                got=f"a closed-over {aval} that depends on what is differentiated", primitive="custom_call",
                wanted="arguments only: its rules say nothing of other values",
                todo=f"make the value an argument of {call.name}, and of its rules; or stop_gradient it")
        primals, tangents = primals[n:], tangents[n:]
        # what is staged may still be transposed: a rule for both is chosen then
        if call.has_vjp and (not call.has_jvp or context.trace.is_staging or context.trace.is_recording):
            return _by_pullback(call, primals, tangents)
        return call.jvp(primals, tangents)

    @hookimpl
    def vmap(self, axis: Any, args: Any, dims: Any, *, call: Any, jaxpr: Jaxpr | None) -> Any:
        own_dims = dims[call.n_consts:]
        if jaxpr is None:
            mapped = MappedCall(call, axis, own_dims)
            outs = _bind(*args, call=mapped, jaxpr=None)
            return outs, mapped.out_dims
        program, out_dims = vmap_jaxpr(jaxpr, axis.size, axis.name, dims)
        if None in out_dims:  # tangents and cotangents there may be a batch
            program, out_dims = vmap_jaxpr(jaxpr, axis.size, axis.name, dims,
                                           [0 if d is None else None for d in out_dims])
        return _bind(*args, call=MappedCall(call, axis, own_dims, out_dims), jaxpr=program), out_dims

    @hookimpl
    def xla_translation(self, ctx: Any, args: Any, *, jaxpr: Jaxpr) -> Any:
        return ctx.call(jaxpr, args)

    @hookimpl
    def partial_eval(self, eqn: Any, unknown_in: Any) -> Any:
        """What depends on known operands only is a call of its own; what waits is a program, as it may be staged."""
        call, jaxpr = eqn.params["call"], eqn.params["jaxpr"]
        if jaxpr is None:
            closed = stage(lambda *xs: call.primal(xs), [x.aval for x in eqn.invars], call.name)
            jaxpr, consts = consts_to_operands(closed)
            eqn = eqn.replace(invars=[*[Literal(c, aval_of(c)) for c in consts], *eqn.invars], effects=jaxpr.effects,
                              params={"call": call.as_program(jaxpr, len(consts)), "jaxpr": jaxpr})
            unknown_in = (*[False] * len(consts), *unknown_in)
        unknown_out = split_jaxpr(jaxpr, unknown_in).unknown_out
        if all(unknown_out) or jaxpr.effects:
            return None, eqn, [True] * len(eqn.outvars), []
        _, known = self.dce(eqn, tuple([not unknown for unknown in unknown_out]))
        # its program reads none of the unknown operands; its rules are given something in their place
        known = known.replace(invars=[_zero(x.aval) if unknown else x
                                      for x, unknown in zip(eqn.invars, unknown_in, strict=True)])
        return known, self.dce(eqn, unknown_out)[1], unknown_out, []

    @hookimpl
    def dce(self, eqn: Any, used_out: Any) -> Any:
        call, jaxpr = eqn.params["call"], eqn.params["jaxpr"]
        if jaxpr is None or (all(used_out) and used_out):
            return [True] * len(eqn.invars), eqn
        if True not in used_out and not jaxpr.effects:
            return [False] * len(eqn.invars), None
        smaller, used_in = dce(jaxpr, used_out, True)
        outvars = [v for v, used in zip(eqn.outvars, used_out, strict=True) if used]
        return list(used_in), eqn.replace(outvars=outvars, effects=smaller.effects, params={
            "call": SelectedCall(call, used_out), "jaxpr": smaller})

    @hookimpl
    def effects(self, avals: Any, *, jaxpr: Jaxpr | None) -> frozenset[Any]:
        return frozenset() if jaxpr is None else jaxpr.effects

    @hookimpl
    def pretty(self, *, call: Any, jaxpr: Jaxpr | None) -> Mapping[str, Any]:
        rules = {kind: call for kind, has in (("jvp", call.has_jvp), ("vjp", call.has_vjp)) if has}
        return {"name": call.name, "jaxpr": jaxpr, **rules}

    @hookimpl
    def samples(self, rng: Any) -> Iterator[Sample]:
        def sample(rules: Rules, *args: Any, **wrong: Any) -> Sample:
            call = UserCall(rules, flatten(args)[1], len(args), {})
            jaxpr = stage(lambda *xs: call.primal(xs), [aval_of(x) for x in args], call.name).jaxpr
            return Sample([*args], {"call": call.as_program(jaxpr, 0), "jaxpr": jaxpr}, **wrong)

        by_jvp = Rules(lambda x, y: (lax.sin(x), lax.mul(x, y)), "f")
        by_jvp.jvp = lambda xs, dots: (by_jvp.fun(*xs), (
            lax.mul(lax.cos(xs[0]), dots[0]), lax.add(lax.mul(dots[0], xs[1]), lax.mul(xs[0], dots[1]))))
        by_vjp = Rules(lambda x: lax.sin(x), "g")
        by_vjp.fwd, by_vjp.bwd = lambda x: (lax.sin(x), x), lambda x, ct: (lax.mul(ct, lax.cos(x)),)
        x, y = rng.standard_normal(3), rng.standard_normal(3)
        yield sample(by_jvp, x, y, exempt=_OWN_KEY)
        yield sample(by_vjp, x, exempt=_OWN_KEY | dict.fromkeys((
            "transformed programs are typed", "derivatives by any operands linearize",
            "threads do not disturb each other", "maps of jvps and jvps of maps are loops",
            "orderings to depth two agree", "orderings to depth three agree",
            "jvp agrees with differences", "jvp agrees with complex steps", "second derivatives agree with differences",
            "third derivatives agree with differences", "jvp is linear", "jvp computes the primal",
            "symbolic zeros equal instantiated ones", "jvp under jit equals eager", "linearize equals jvp",
            "hessians are symmetric", "pullback is the adjoint of jvp"), "a fwd and a bwd rule give no forward mode"))
        yield Sample([rng.standard_normal(4)], sample(by_vjp, x).params, error=TypeError)


class CustomPullback:
    """`custom_pullback(*residuals, *primals, *tangents, pullback=..., nonzero=...)`: what waits for cotangents.

    Tangents of outputs, from those of inputs that are `nonzero`. Its transpose is the bwd rule. Only where there is a
    jvp rule too does it take primals, and can be computed forward.
    """

    name = "custom_pullback"
    multiple_results = True
    symbolic_zeros = True

    @hookimpl
    def abstract_eval(self, avals: Any, *, pullback: Any, nonzero: tuple[bool, ...]) -> list[ShapedArray]:
        wanted = [aval for aval, nz in zip(pullback.in_avals, nonzero, strict=True) if nz]
        tangents = avals[len(avals) - len(wanted):]
        if not all([t.matches(aval) for t, aval in zip(tangents, wanted, strict=True)]):
            raise CorejaxTypeError("custom_pullback: the tangents don't fit", primitive="custom_pullback", where=here(),
                                   got=", ".join(map(str, tangents)), wanted=", ".join(map(str, wanted)),
                                   todo="pass a tangent for each input that has one, of its type")
        return [aval.tangent for aval in pullback.out_avals if dtypes.is_inexact(aval.dtype)]

    @hookimpl
    def decompose(self, args: Any, *, pullback: Any, nonzero: tuple[bool, ...]) -> Any:
        call = pullback.call
        if not call.has_jvp:
            raise CorejaxTypeError(
                f"{call.name} has no rule for forward mode", primitive="custom_pullback", where=here(),
                got="jvp, jacfwd, hessian or the result of linearize, of a function with a fwd and a bwd rule",
                wanted="reverse mode: grad, vjp, jacrev", todo=f"use these; or give it a rule: {call.name}.defjvp(...)")
        _, primals, tangents = _parts(args, pullback, nonzero)
        dots = [Zero(aval_of(x).tangent) if t is None else t for x, t in zip(primals, tangents, strict=True)]
        _, out_dots = call.jvp(primals, dots)
        return [instantiate(t) for t, aval in zip(out_dots, pullback.out_avals, strict=True)
                if dtypes.is_inexact(aval.dtype)]

    @hookimpl
    def evaluate(self, args: Any, *, pullback: Any, nonzero: tuple[bool, ...]) -> Any:
        return self.decompose(args, pullback=pullback, nonzero=nonzero)

    @hookimpl
    def transpose(self, cotangents: Any, args: Any, *, pullback: Any, nonzero: tuple[bool, ...]) -> Any:
        residuals, primals, _ = _parts(args, pullback, nonzero)
        given = iter(cotangents)
        cts = [next(given) if dtypes.is_inexact(aval.dtype) else Zero(aval.tangent) for aval in pullback.out_avals]
        back = pullback.bwd(residuals, cts)
        return [None] * (len(residuals) + len(primals)) + [ct for ct, nz in zip(back, nonzero, strict=True) if nz]

    @hookimpl
    def vmap(self, axis: Any, args: Any, dims: Any, *, pullback: Any, nonzero: tuple[bool, ...]) -> Any:
        size, n = axis.size, pullback.n_residuals
        _, primals, tangents = _parts(args, pullback, nonzero)
        residual_dims, primal_dims, tangent_dims = _parts(dims, pullback, nonzero)
        in_dims = [d if d is not None or primal is None else primal for d, primal in
                   zip(tangent_dims, primal_dims or [None] * len(nonzero), strict=True)]
        # a primal and its tangent have their axis in one place
        primals = [x if w is None else to_dim(x, d, w, size)
                   for x, d, w in zip(primals, primal_dims, in_dims[: len(primals)], strict=True)]
        moved = [to_dim(t, d, w, size) if w is not None else t
                 for t, d, w, nz in zip(tangents, tangent_dims, in_dims, nonzero, strict=True) if nz]
        mapped = MappedCall(pullback.call, axis, in_dims, (0,) * len(pullback.out_avals))
        batched = MappedPullback(mapped, pullback, residual_dims)
        outs = custom_pullback.primitive.bind(*args[:n], *primals, *moved, pullback=batched, nonzero=nonzero)
        return outs, [0] * len(outs)

    @hookimpl
    def pretty(self, *, pullback: Any, nonzero: tuple[bool, ...]) -> Mapping[str, Any]:
        return {"name": pullback.name, "nonzero": nonzero, "pullback": pullback}

    @hookimpl
    def samples(self, rng: Any) -> Iterator[Sample]:
        def sample(rules: Rules, **more: Any) -> Sample:
            x, dot = rng.standard_normal(3), rng.standard_normal(3)
            _, residuals, pullback = UserCall(rules, flatten((x,))[1], 1, {}).fwd(values([x], "f", str), (True,))
            primals = [x] if rules.jvp else []
            return Sample([*map(np.asarray, residuals), *primals, dot], {"pullback": pullback, "nonzero": (True,)},
                          **more)

        both = Rules(lambda x: lax.sin(x), "f")
        both.fwd, both.bwd = lambda x: (lax.sin(x), x), lambda x, ct: (lax.mul(ct, lax.cos(x)),)
        both.jvp = lambda xs, dots: (lax.sin(xs[0]), lax.mul(lax.cos(xs[0]), dots[0]))
        yield sample(both, exempt=_OWN_KEY)
        backward = Rules(lambda x: lax.sin(x), "g")
        backward.fwd, backward.bwd = both.fwd, both.bwd
        yield sample(backward, error=TypeError, exempt={
            "unsupported inputs are refused": "it is refused when it is run: reverse mode stages it and never runs it"})


custom_call: Any = define(CustomCall())
custom_pullback: Any = define(CustomPullback())


def _bind(*args: Any, **params: Any) -> list[Any]:
    return custom_call.primitive.bind(*args, **params)  # type: ignore[no-any-return]


def _zero(aval: ShapedArray) -> Literal:
    return Literal(Array.from_host(np.zeros(aval.shape, aval.dtype), aval), aval)


def _run(args: Sequence[Any], call: Any, jaxpr: Jaxpr | None) -> list[Any]:
    return call.primal(args) if jaxpr is None else eval_jaxpr(jaxpr, (), *args)  # type: ignore[no-any-return]


def _by_pullback(call: Any, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[list[Any], list[Any]]:
    """The outputs by the fwd rule, and their tangents as a `custom_pullback` of those of the inputs."""
    nonzero = tuple([type(t) is not Zero for t in tangents])
    outs, residuals, pullback = call.fwd(primals, nonzero)
    if not any([dtypes.is_inexact(aval.dtype) for aval in pullback.out_avals]):
        return outs, [Zero(aval.tangent) for aval in pullback.out_avals]
    operands = [*residuals, *(primals if call.has_jvp else ()), *[t for t in tangents if type(t) is not Zero]]
    dots = iter(custom_pullback.primitive.bind(*operands, pullback=pullback, nonzero=nonzero))
    return outs, [next(dots) if dtypes.is_inexact(aval.dtype) else Zero(aval.tangent) for aval in pullback.out_avals]


def _parts(items: Sequence[Any], pullback: Any, nonzero: Sequence[bool]) -> tuple[Any, Any, list[Any]]:
    """Residuals, primals (if it has them), and a tangent for each input, None for those that are zero."""
    n = pullback.n_residuals
    m = n + len(nonzero) * pullback.call.has_jvp
    tangents = iter(items[m:])
    return items[:n], items[n:m], [next(tangents) if nz else None for nz in nonzero]
