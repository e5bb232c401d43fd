"""`custom_call`: a call of a function with custom derivatives: a jvp rule, a fwd and a bwd rule, or both.

Where nothing is being staged, the user's Python functions run on actual values, so they may look at them; a staged
program holds the function as a jaxpr, with the rules beside it. Forward mode applies the jvp rule. Reverse mode runs
fwd immediately and leaves a `custom_pullback` on the tape: the function of tangents whose transpose is bwd.

What is called is an object of the form

    primal(args) -> outs
    jvp(primals, tangents) -> outs, out_tangents          tangents may be `Zero`
    fwd(primals, nonzero) -> outs, residuals, pullback    `nonzero`: which primals have a tangent
    pullback.bwd(residuals, cotangents) -> cotangents of the primals, `Zero` among them

that knows the types of its results, `out_avals`, once it has run: a `UserCall`, or a transformed one. The first
`n_consts` of its arguments are values that the function and its rules close over. They have no tangent: where one
would have to be known, a `NoRule` says that there is no rule for it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from corejax import lax
from corejax.core import (
    Array,
    Jaxpr,
    Linear,
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
    jvp_jaxpr,
    stage,
    to_dim,
    values,
    vmap_jaxpr,
)
from corejax.errors import CorejaxError, CorejaxTypeError
from corejax.ir.surgery import consts_to_operands, dce
from corejax.plugin import Sample, carrying, define, hookimpl, roles
from corejax_control_flow._mapped_calls import MappedCall, MappedPullback
from corejax_control_flow._selected_calls import SelectedCall
from corejax_control_flow._unknown_derivatives import NoRule
from corejax_control_flow._user_rules import Rules, UserCall
from corejax_control_flow.fwd_calls import call_fwd

__all__ = ["custom_call", "custom_pullback"]

_OWN_KEY = {"params are hashable": "a user's function only equals itself, and each run of the samples makes a new one"}


class CustomCall:
    """`custom_call(*operands, call=..., jaxpr=...)`: call a function that has custom derivatives.

    `call` holds its rules. `jaxpr` is its program, whose first `call.n_consts` operands are values that it closes over;
    None if the Python function itself is run.

    >>> sample = next(custom_call.primitive.samples(np.random.default_rng(0)))
    >>> len(custom_call(*sample.args, **sample.params))
    2
    """

    name = "custom_call"
    holds = "rule"
    structural = True
    tracks_varying = True
    operands = ("*operands",)
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
        carrying.check_operands("custom_call", jaxpr, avals)
        return jaxpr.out_avals

    @hookimpl
    def decompose(self, args: Any, *, call: Any, jaxpr: Jaxpr | None) -> Any:
        return _run(args, call, jaxpr)

    @hookimpl
    def jvp(self, primals: Any, tangents: Any, *, call: Any, jaxpr: Jaxpr | None) -> Any:
        closed = carrying.nonzero(tangents[:call.n_consts])
        if True in closed:
            own = [*[Zero(aval_of(x).tangent) for x in primals[:call.n_consts]], *tangents[call.n_consts:]]
            outs, dots = self.jvp(primals, own, call=call, jaxpr=jaxpr)
            return outs, _without_rule(dots, primals, tangents, closed, call, jaxpr)
        if True not in carrying.nonzero(tangents):
            outs = _bind(*primals, call=call, jaxpr=jaxpr)
            return outs, [Zero(x.aval.tangent) for x in outs]
        # a staged equation may yet be transposed, so the rules that serve both modes are chosen then
        if call.has_vjp and (not call.has_jvp or context.trace.is_staging or context.trace.is_recording):
            return _by_pullback(call, primals, tangents)
        return call.jvp(primals, tangents)

    @hookimpl
    def vmap(self, axis: Any, args: Any, dims: Any, *, call: Any, jaxpr: Jaxpr | None) -> Any:
        if jaxpr is None:
            mapped = MappedCall(call, axis, dims)
            outs = _bind(*args, call=mapped, jaxpr=None)
            return outs, mapped.out_dims
        program, out_dims = vmap_jaxpr(jaxpr, axis.size, axis.name, dims)
        if None in out_dims:  # their tangents and cotangents may be batched
            program, out_dims = vmap_jaxpr(jaxpr, axis.size, axis.name, dims,
                                           [0 if d is None else None for d in out_dims])
        return _bind(*args, call=MappedCall(call, axis, dims, out_dims), jaxpr=program), out_dims

    @hookimpl
    def xla_translation(self, ctx: Any, args: Any, *, jaxpr: Jaxpr) -> Any:
        return ctx.call(jaxpr, args)

    @hookimpl
    def partial_eval(self, eqn: Any, unknown_in: Any) -> Any:
        """Results that depend only on known operands get a call of their own; the rest waits as a program.

        It has to be a program because it may be staged.
        """
        call, jaxpr = eqn.params["call"], eqn.params["jaxpr"]
        if jaxpr is None:
            closed = stage(lambda *xs: call.primal(xs), [x.aval for x in eqn.invars], call.name)
            jaxpr, consts = consts_to_operands(closed)
            eqn = eqn.replace(invars=[*[Literal(c, aval_of(c)) for c in consts], *eqn.invars], effects=jaxpr.effects,
                              params={"call": call.closing_over(consts).as_program(jaxpr), "jaxpr": jaxpr})
            unknown_in = (*[False] * len(consts), *unknown_in)
        unknown_out = carrying.split_jaxpr(jaxpr, unknown_in).unknown_out
        if all(unknown_out) or jaxpr.effects:
            return None, eqn, [True] * len(eqn.outvars), []
        _, known = self.dce(eqn, tuple([not unknown for unknown in unknown_out]))
        # its program reads none of the unknown operands, but its rules need something in their place
        known = known.replace(invars=[_zero(x.aval) if unknown else x
                                      for x, unknown in zip(eqn.invars, unknown_in, strict=True)])
        return known, self.dce(eqn, unknown_out)[1], unknown_out, []

    @hookimpl
    def dce(self, eqn: Any, used_out: Any) -> Any:
        call, jaxpr = eqn.params["call"], eqn.params["jaxpr"]
        if jaxpr is None or (all(used_out) and used_out):
            return [True] * len(eqn.invars), eqn
        shorter = carrying.Shorter(*dce(jaxpr, used_out, True), used_out)  # its rules take all operands
        return carrying.shorten(eqn, used_out, shorter, partial(carrying.with_jaxpr, eqn,
                                                                call=SelectedCall(call, used_out)))

    @hookimpl
    def effects(self, avals: Any, *, jaxpr: Jaxpr | None) -> frozenset[Any]:
        return frozenset() if jaxpr is None else jaxpr.effects

    def widened(self, axes: Sequence[Any], *, call: Any, jaxpr: Jaxpr | None) -> dict[str, Any]:
        """The program for operands that vary along these axes of a mesh."""
        return {"jaxpr": None if jaxpr is None else carrying.retyped(jaxpr, axes)}

    @hookimpl
    def pretty(self, *, call: Any, jaxpr: Jaxpr | None) -> Mapping[str, Any]:
        rules = {kind: call for kind, has in (("jvp", call.has_jvp), ("vjp", call.has_vjp)) if has}
        return {"name": call.name, "jaxpr": jaxpr, **rules}

    @hookimpl
    def samples(self, rng: Any) -> Iterator[Sample]:
        def sample(rules: Rules, *args: Any, **wrong: Any) -> Sample:
            call = UserCall(rules, flatten(args)[1], len(args), {})
            jaxpr = stage(lambda *xs: call.primal(xs), [aval_of(x) for x in args], call.name).jaxpr
            return Sample([*args], {"call": call.as_program(jaxpr), "jaxpr": jaxpr}, **wrong)

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
    """`custom_pullback(*residuals, *primals, *tangents, pullback=..., nonzero=...)`: waits for cotangents on a tape.

    It maps tangents of inputs, those that are `nonzero`, to tangents of outputs. Its transpose is the bwd rule. Only if
    there is a jvp rule too does it take primals, and can be computed forward.

    >>> sample = next(custom_pullback.primitive.samples(np.random.default_rng(0)))
    >>> len(custom_pullback(*sample.args, **sample.params))
    1
    """

    name = "custom_pullback"
    element_types = ("*",)
    tracks_varying = True
    operands = ("*values",)
    multiple_results = True
    symbolic_zeros = True

    @hookimpl
    def evaluate(self, args: Any, *, pullback: Any, nonzero: tuple[bool, ...]) -> Any:
        return self.decompose(args, pullback=pullback, nonzero=nonzero)

    @hookimpl
    def abstract_eval(self, avals: Any, *, pullback: Any, nonzero: tuple[bool, ...]) -> list[ShapedArray]:
        wanted = [aval for aval, nz in zip(pullback.in_avals, nonzero, strict=True) if nz]
        _check_values(avals, pullback, nonzero)
        tangents = avals[len(avals) - len(wanted):]
        if not all([t.fits(aval) for t, aval in zip(tangents, wanted, strict=True)]):
            raise CorejaxTypeError("custom_pullback: the tangents don't fit", primitive="custom_pullback", where=here(),
                                   got=", ".join(map(str, tangents)), wanted=", ".join(map(str, wanted)),
                                   todo="pass a tangent for each input that has one, of its type")
        return [aval.tangent for aval in pullback.out_avals if dtypes.is_inexact(aval.dtype)]

    @hookimpl
    def decompose(self, args: Any, *, pullback: Any, nonzero: tuple[bool, ...]) -> Any:
        call = pullback.call
        if not call.has_jvp:
            raise pullback.backward_only()
        _check_values(args, pullback, nonzero)
        _, primals, tangents = _parts(args, pullback, nonzero)
        dots = [Zero(aval_of(x).tangent) if t is None else t for x, t in zip(primals, tangents, strict=True)]
        _, out_dots = call.jvp(primals, dots)
        return [instantiate(t) for t, aval in zip(out_dots, pullback.out_avals, strict=True)
                if dtypes.is_inexact(aval.dtype)]

    @hookimpl
    def transpose(self, cotangents: Any, args: Any, *, pullback: Any, nonzero: tuple[bool, ...]) -> Any:
        residuals, primals, _ = _parts(args, pullback, nonzero)
        cts = carrying.with_zeros(cotangents, [dtypes.is_inexact(aval.dtype) for aval in pullback.out_avals],
                                  [aval.tangent for aval in pullback.out_avals])
        back = carrying.marked(pullback.bwd(residuals, cts), nonzero)
        n = len(residuals) + len(primals)
        # a rule around it may have made a tangent that is a number
        return [*[None] * n, *[ct if type(x) is Linear else None for ct, x in zip(back, args[n:], strict=True)]]

    @hookimpl
    def vmap(self, axis: Any, args: Any, dims: Any, *, pullback: Any, nonzero: tuple[bool, ...]) -> Any:
        size, n = axis.size, pullback.n_residuals
        _check_values(args, pullback, nonzero)
        _, primals, tangents = _parts(args, pullback, nonzero)
        residual_dims, primal_dims, tangent_dims = _parts(dims, pullback, nonzero)
        in_dims = [d if d is not None or primal is None else primal for d, primal in
                   zip(tangent_dims, primal_dims or [None] * len(nonzero), strict=True)]
        # a primal and its tangent have their batch axis in the same place
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
        x, y, dot = [rng.standard_normal(3) for _ in range(3)]

        def sample(rules: Rules, *xs: Any, nonzero: tuple[bool, ...] = (True,), **more: Any) -> Sample:
            call = UserCall(rules, flatten(xs)[1], len(xs), {})
            _, residuals, pullback = call.fwd(values(xs, "f", str), nonzero)
            primals = xs if rules.jvp else []
            return Sample([*map(np.asarray, residuals), *primals, dot], {"pullback": pullback, "nonzero": nonzero},
                          **more)

        both = Rules(lambda x: lax.sin(x), "f")
        both.fwd, both.bwd = lambda x: (lax.sin(x), x), lambda x, ct: (lax.mul(ct, lax.cos(x)),)
        both.jvp = lambda xs, dots: (lax.sin(xs[0]), lax.mul(lax.cos(xs[0]), dots[0]))
        yield sample(both, x, exempt=_OWN_KEY, results=[np.cos(x) * dot])
        sines = Rules(lambda x, y: lax.add(lax.sin(x), lax.sin(y)), "h")
        sines.fwd = lambda x, y: (sines.fun(x, y), (x, y))
        sines.bwd = lambda xs, ct: tuple([lax.mul(ct, lax.cos(x)) for x in xs])
        sines.jvp = lambda xs, dots: (sines.fun(*xs), lax.add(*[lax.mul(lax.cos(x), t) for x, t in zip(
            xs, dots, strict=True)]))
        yield sample(sines, x, y, nonzero=(False, True), exempt=_OWN_KEY, results=[np.cos(y) * dot])
        backward = Rules(lambda x: lax.sin(x), "g")
        backward.fwd, backward.bwd = both.fwd, both.bwd
        yield sample(backward, x, error=TypeError, exempt={
            "unsupported inputs are refused": "it is refused when it is run: reverse mode stages it and never runs it"})


custom_call: Any = define(CustomCall())
custom_pullback: Any = define(CustomPullback())


def _bind(*args: Any, **params: Any) -> list[Any]:
    return custom_call.primitive.bind(*args, **params)  # type: ignore[no-any-return]


def _zero(aval: ShapedArray) -> Literal:
    aval = aval.invariant
    return Literal(Array.from_host(np.zeros(aval.shape, aval.dtype), aval), aval)


def _run(args: Sequence[Any], call: Any, jaxpr: Jaxpr | None) -> list[Any]:
    if jaxpr is None:
        return call.primal(args)  # type: ignore[no-any-return]
    if len(args) != len(jaxpr.invars):
        carrying.check_operands("custom_call", jaxpr, [aval_of(x) for x in args])
    return eval_jaxpr(jaxpr, (), *args)


def _by_pullback(call: Any, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[list[Any], list[Any]]:
    """The outputs from the fwd rule, and their tangents as a `custom_pullback` of the inputs' tangents."""
    nonzero = carrying.nonzero(tangents)
    if call.optimize_remat and context.trace.is_staging:
        outs, residuals, pullback = call_fwd(call, primals, nonzero)
    else:
        outs, residuals, pullback = call.fwd(primals, nonzero)
    inexact = [dtypes.is_inexact(aval.dtype) for aval in pullback.out_avals]
    operands = [*residuals, *(primals if call.has_jvp else ()), *carrying.without_zeros(tangents)]
    dots = custom_pullback.primitive.bind(*operands, pullback=pullback, nonzero=nonzero) if True in inexact else ()
    return outs, carrying.with_zeros(dots, inexact, [aval.tangent for aval in pullback.out_avals])


def _without_rule(dots: Sequence[Any], primals: Sequence[Any], tangents: Sequence[Any], closed: Sequence[bool],
                  call: Any, jaxpr: Jaxpr | None) -> list[Any]:
    """The results' tangents `dots` with what nobody knows: how they depend on the tangents of closed-over values.

    That may not matter: the derivative by an argument alone may be wanted, or another result. So it is an error only
    where these tangents are computed, or their cotangents.
    """
    flags = (*closed, *[False] * (len(primals) - len(closed)))
    depend = _depend(call, jaxpr, primals, flags)
    if True not in depend:
        return [*dots]
    lost = carrying.without_zeros(tangents[:len(closed)])
    pullback = NoRule(call.name, call.names_of(closed), [aval_of(t) for t in lost],
                      [t.aval for t in carrying.marked(dots, depend)])
    if context.trace.is_supposing:
        raise pullback.unknown()
    found = iter(custom_pullback.primitive.bind(*lost, pullback=pullback, nonzero=(True,) * len(lost)))
    return [dot if not d else next(found) if type(dot) is Zero else roles.accumulate(dot, next(found))
            for dot, d in zip(dots, depend, strict=True)]


def _depend(call: Any, jaxpr: Jaxpr | None, primals: Sequence[Any], nonzero: tuple[bool, ...]) -> Sequence[bool]:
    """Which results have a tangent if these arguments have one, by what the function does and not by its rules."""
    avals = [aval_of(x) for x in primals]
    try:
        if jaxpr is None:
            twin = call.twin()  # which may come to know other things of its results
            jaxpr = stage(lambda *xs: twin.primal(xs), avals, call.name).jaxpr
            nonzero = (*[False] * len(jaxpr.constvars), *nonzero)
            jaxpr = jaxpr.replace(constvars=(), invars=[*jaxpr.constvars, *jaxpr.invars])
        return jvp_jaxpr(jaxpr, nonzero)[1]
    except CorejaxError:  # it looks at values, or has no derivative: that is why it has rules
        if jaxpr is None:
            return [dtypes.is_inexact(aval.dtype) for aval in call.out_avals]
        unknown = carrying.split_jaxpr(jaxpr, nonzero).unknown_out
        return [u and dtypes.is_inexact(aval.dtype) for u, aval in zip(unknown, jaxpr.out_avals, strict=True)]


def _check_values(values: Sequence[Any], pullback: Any, nonzero: Sequence[bool]) -> None:
    wanted = pullback.n_residuals + len(nonzero) * pullback.call.has_jvp + sum(nonzero)
    if len(values) != wanted:
        raise CorejaxTypeError("custom_pullback: wrong number of operands", primitive="custom_pullback", where=here(),
                               got=len(values), wanted=wanted,
                               todo="pass the residuals, the primals if there is a jvp rule, and a tangent for each "
                                    "input that has one")


def _parts(items: Sequence[Any], pullback: Any, nonzero: Sequence[bool]) -> tuple[Any, Any, list[Any]]:
    """Residuals, primals (if the pullback has them), and a tangent for each input, None if it is zero."""
    n = pullback.n_residuals
    m = n + len(nonzero) * pullback.call.has_jvp
    tangents = iter(items[m:])
    return items[:n], items[n:m], [next(tangents) if nz else None for nz in nonzero]
