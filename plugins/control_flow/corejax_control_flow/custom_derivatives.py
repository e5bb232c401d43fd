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

import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np

from corejax import lax
from corejax.core import (
    Array,
    Axis,
    Jaxpr,
    Literal,
    ShapedArray,
    Tracer,
    Zero,
    aval_of,
    call_user,
    context,
    dtypes,
    eval_jaxpr,
    flatten,
    here,
    instantiate,
    jvp_jaxpr,
    namer,
    rebound,
    stage,
    to_dim,
    values,
    vmap_flat,
    vmap_jaxpr,
)
from corejax.errors import CorejaxError, CorejaxTypeError, CorejaxValueError, LeakedTracerError, kind_of
from corejax.ir import atom
from corejax.ir.surgery import consts_to_operands, dce
from corejax.plugin import Sample, carrying, define, hookimpl, roles, structures
from corejax_control_flow._closures import HashedOnce, Reached, reached, reached_at_once

__all__ = ["custom_call", "custom_pullback"]

Dims = Sequence[int | None]
Rule = Callable[..., Any]

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
        back = pullback.bwd(residuals, cts)
        return [None] * (len(residuals) + len(primals)) + carrying.marked(back, nonzero)

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


# Calls of users' functions, with checks of what they return

class Rules:
    """A function, with its author's rules for its derivatives."""

    def __init__(self, fun: Callable[..., Any], name: str) -> None:
        self.fun, self.name = fun, name
        self.jvp: Rule | None = None
        self.fwd: Rule | None = None
        self.bwd: Rule | None = None
        self.jvp_sees_zeros = self.vjp_sees_zeros = False
        self.identity = object()  # represents it in keys, which outlive it

    def __reduce_ex__(self, protocol: Any) -> Any:
        # A decorated function isn't what its name stands for, so it can't be pickled; but that has these rules.
        place = getattr(self.fun, "__module__", None), getattr(self.fun, "__qualname__", None)
        try:
            known = _rules_at(*place)
        except (AttributeError, ImportError, TypeError, ValueError):
            known = None
        return (_rules_at, place) if known is self else super().__reduce_ex__(protocol)


def _rules_at(module: Any, path: Any) -> Rules:
    """The rules of the function with custom derivatives of this name. It may be wrapped, by `jit` for instance."""
    found: Any = import_module(module)
    for name in path.split("."):
        found = getattr(found, name)
    while not isinstance(rules := getattr(getattr(found, "implementation", None), "rules", None), Rules):
        if not hasattr(found, "__wrapped__"):
            raise CorejaxValueError(f"{path} in {module} has no custom derivatives, but had some when it was pickled",
                                    got=kind_of(found), wanted="a function made by custom_jvp or custom_vjp",
                                    where=here(), todo="load it with the version of the module that wrote it")
        found = found.__wrapped__
    return rules


class PerturbedPrimal:
    """What a `fwd` rule with `symbolic_zeros=True` gets for each array: its `.value`, and whether it's `.perturbed`."""

    __slots__ = ("perturbed", "value")

    def __init__(self, value: Any, perturbed: bool) -> None:
        self.value, self.perturbed = value, perturbed

    def __repr__(self) -> str:
        return f"PerturbedPrimal(value={self.value!r}, perturbed={self.perturbed})"


class UserCall:
    """A call of the user's function with arguments of a given structure; `fixed` are the arguments that aren't data.

    `originals` are the traced values that the operands before the arguments stand for, None where there was none, each
    with the name of its variable.
    """

    def __init__(self, rules: Rules, in_tree: Any, n_args: int, fixed: Mapping[int, Any]) -> None:
        self.rules, self.name = rules, rules.name
        self.in_tree, self.n_args, self.fixed = in_tree, n_args, fixed
        self.has_jvp, self.has_vjp = rules.jvp is not None, rules.fwd is not None
        self.out_tree: Any = None
        self.out_avals: Sequence[ShapedArray] | None = None
        self.n_consts = 0
        self.originals: tuple[tuple[weakref.ref[Tracer] | None, str], ...] = ()
        self._is_traced = self._is_unlike = False
        self._key: Any = object()

    def __corejax_key__(self) -> Any:
        return self._key

    @property
    def __corejax_unique__(self) -> bool:
        return self._is_unlike or True in self.is_traced_at

    def __corejax_rule__(self, hook: str) -> str:
        return f"the {hook} rule of {self.name}"

    def __getstate__(self) -> dict[str, Any]:
        originals = tuple([(None, name) for _, name in self.originals])  # nothing of them is left elsewhere
        return {**self.__dict__, "originals": originals, "_key": object()}

    def twin(self) -> UserCall:
        """A copy."""
        call = object.__new__(UserCall)
        call.__dict__.update(self.__dict__)
        return call

    def as_program(self, jaxpr: Jaxpr, found: Reached | None = None) -> UserCall:
        """The same call with a program; its rules have to return outputs of the program's types.

        `found` is what its Python functions read.
        """
        call = self.twin()
        call.out_avals, call._is_traced = jaxpr.out_avals, True
        if found is not None and found.key is None:
            call._is_unlike = True
        elif found is not None:
            call._key = _key_of((self.rules.identity, self.in_tree, found.key), self.fixed.items())
        return call

    def closing_over(self, values: Sequence[Any], names: Sequence[str] | None = None) -> UserCall:
        """The same call with more operands before the others, for these closed-over values."""
        call = self.twin()
        refs = [weakref.ref(x) if isinstance(x, Tracer) else None for x in values]
        call.originals = (*zip(refs, names or [""] * len(refs), strict=True), *self.originals)
        call.n_consts += len(refs)
        return call

    def names_of(self, flags: Sequence[bool]) -> list[str]:
        """The names of closed-over values, as far as they are known."""
        return sorted({name for (_, name), flag in zip(self.originals, flags, strict=True) if flag and name})

    @property
    def is_traced_at(self) -> list[bool]:
        """Which of the closed-over operands stand for traced values."""
        return [ref is not None for ref, _ in self.originals]

    # Calls

    def function(self) -> Callable[..., Any]:
        """The user's function as a function of just the arguments that are data."""
        fun = self.rules.fun
        return fun if not self.fixed else lambda *args: fun(*self._with_fixed(args))

    def primal(self, args: Sequence[Any]) -> list[Any]:
        n = self.n_consts
        out = self._run(args[:n], self.rules.fun, self._with_fixed(self.in_tree.unflatten(args[n:])), self.name)
        return self._outputs(out, self.name)

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        what, n = f"the jvp rule of {self.name}", self.n_consts
        dots = tangents[n:] if self.rules.jvp_sees_zeros else [_array(t) for t in tangents[n:]]
        args = (*self.fixed.values(), self.in_tree.unflatten(primals[n:]), self.in_tree.unflatten(dots))
        out, out_dot = _pair(self._run(primals[:n], self.rules.jvp, args, what), what,
                             "(output, tangent of the output)")
        outs = self._outputs(out, what)
        leaves, tree = flatten(out_dot)
        other = structures.tree_difference(tree, self.out_tree)
        if other is not None:
            raise CorejaxTypeError(f"{what} returns a tangent of a different structure than the output, at {other.path}"
                                   .removesuffix(", at "), where=here(),
                                   got=f"{other.got}, in {structures.shown(tree)}",
                                   wanted=f"{other.wanted}, in {structures.shown(self.out_tree)}",
                                   todo="return the tangent in the containers of the output")
        paths = [f"the output{path}" for path in structures.leaf_paths(tree)]
        return outs, _fitted(leaves, [x.aval.tangent for x in outs], paths, f"{what} returns a tangent", "its output")

    def fwd(self, primals: Sequence[Any], nonzero: Sequence[bool]) -> tuple[list[Any], list[Any], UserPullback]:
        what, n = f"the fwd rule of {self.name}", self.n_consts
        leaves = primals[n:]
        if self.rules.vjp_sees_zeros:
            leaves = [PerturbedPrimal(x, bool(nz)) for x, nz in zip(leaves, nonzero[n:], strict=True)]
        result = self._run(primals[:n], self.rules.fwd, self._with_fixed(self.in_tree.unflatten(leaves)), what)
        out, kept = _pair(result, what, "(output, residuals)")
        outs = self._outputs(out, what)
        pullback = UserPullback(self, kept, [aval_of(x).tangent for x in primals], [x.aval for x in outs])
        closed = carrying.marked(primals[:n], self.is_traced_at)  # for bwd, which may run when they are gone
        return outs, [*pullback.residuals_of(kept), *closed], pullback

    # Arguments and results

    def _run(self, consts: Sequence[Any], fun: Any, args: Sequence[Any], what: str) -> Any:
        """Call one of the user's functions, with these values for what it closes over."""
        if not self.originals:
            return _call(fun, args, what)
        tracers = [None if ref is None else ref() for ref, _ in self.originals]
        return rebound(lambda: _call(fun, args, what), tracers, consts)

    def _with_fixed(self, args: Sequence[Any]) -> tuple[Any, ...]:
        rest = iter(args)
        return tuple([self.fixed[i] if i in self.fixed else next(rest) for i in range(self.n_args)])

    def _outputs(self, out: Any, what: str) -> list[Any]:
        """The leaves of an output as arrays, checked against the program's types if there is a program."""
        leaves, tree = flatten(out)
        outs = values(leaves, what, namer("the output", out))
        if not self._is_traced:
            self.out_tree, self.out_avals = tree, [x.aval for x in outs]
            return outs
        other = structures.tree_difference(tree, self.out_tree)
        if other is not None:
            problem = f"{what} returns an output structured differently from {self.name}'s, at {other.path}"
            raise CorejaxTypeError(problem.removesuffix(", at "), where=here(),
                                   got=f"{other.got}, in {structures.shown(tree)}",
                                   wanted=f"{other.wanted}, in {structures.shown(self.out_tree)}",
                                   todo=f"return the output in the same containers as {self.name}")
        wanted = self.out_avals or ()
        wrong = [i for i, (x, aval) in enumerate(zip(outs, wanted, strict=True)) if not x.aval.matches(aval)]
        if wrong:
            paths = structures.leaf_paths(tree)
            raise CorejaxTypeError(
                f"{what} returns an output of a different type than {self.name}", where=here(),
                got="; ".join([f"{outs[i].aval} for the output{paths[i]}" for i in wrong]),
                wanted="; ".join([f"{wanted[i]} for the output{paths[i]}" for i in wrong]),
                todo=f"return what {self.name} returns for the same arguments")
        return [x if x.aval is aval else roles.convert(x, aval.dtype, aval.weak_type)
                for x, aval in zip(outs, wanted, strict=True)]


class UserPullback:
    """What waits for cotangents: the `bwd` rule, and whatever isn't an array among the residuals of `fwd`."""

    def __init__(self, call: UserCall, kept: Any, in_avals: Sequence[ShapedArray], out_avals: Sequence[ShapedArray]
                 ) -> None:
        self.call, self.name = call, call.name
        self.in_avals, self.out_avals, self.out_tree = in_avals, tuple(out_avals), call.out_tree
        leaves, self._tree = flatten(kept)
        self._statics = [None if _is_array(x) else (x,) for x in leaves]
        self._closed = call.is_traced_at
        self.n_residuals = self._statics.count(None) + self._closed.count(True)
        self._key: Any = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_key": None}

    def __corejax_key__(self) -> Any:
        if self._key is None:
            call = self.call
            rules = [f for f in (call.rules.fun, call.rules.fwd, call.rules.bwd, call.rules.jvp) if f is not None]
            found = reached_at_once(rules, None, with_key=True) or reached(*rules)
            key = object() if found.key is None else found.key
            self._key = _key_of((call.rules.identity, call.in_tree, call._is_traced, key, self.out_tree, self._tree,
                                 *self.in_avals, *self.out_avals), [*call.fixed.items(), *self._statics])
        return self._key

    @property
    def __corejax_unique__(self) -> bool:
        return self.call.__corejax_unique__

    def __corejax_rule__(self, hook: str) -> str:
        return f"the {'bwd' if hook == 'transpose' else hook} rule of {self.name}"

    def residuals_of(self, kept: Any) -> list[Any]:
        """The arrays among the residuals of `fwd`."""
        arrays = [x for x in flatten(kept)[0] if _is_array(x)]
        return values(arrays, f"the fwd rule of {self.name}", lambda i: f"residual {i}")

    def bwd(self, residuals: Sequence[Any], cotangents: Sequence[Any]) -> list[Any]:
        call, what = self.call, f"the bwd rule of {self.name}"
        arrays = iter(residuals)
        kept = self._tree.unflatten([next(arrays) if s is None else s[0] for s in self._statics])
        consts = [next(arrays) if traced else None for traced in self._closed]
        cts = cotangents if call.rules.vjp_sees_zeros else [_array(ct) for ct in cotangents]
        args = (*call.fixed.values(), kept, self.out_tree.unflatten(cts))
        back = call._run(consts, call.rules.bwd, args, what)
        trees = call.in_tree.children()
        if not isinstance(back, (tuple, list)) or len(back) != len(trees):
            got = f" of {len(back)}" if isinstance(back, (tuple, list)) else ""
            raise CorejaxTypeError(
                f"{what} must return a tuple with one cotangent for each argument", got=_described(back) + got,
                wanted=f"a tuple of {len(trees)}", where=here(),
                todo="return (ct,)" if len(trees) == 1 else "return None for an argument whose cotangent is zero")
        leaves = [x for i, (ct, tree) in enumerate(zip(back, trees, strict=True)) for x in _up_to(tree, ct, i, what)]
        n = call.n_consts
        return [*map(Zero, self.in_avals[:n]), *_fitted(
            leaves, self.in_avals[n:], [f"args{path}" for path in structures.leaf_paths(call.in_tree)],
            f"{what} returns a cotangent", "its argument")]

    def backward_only(self) -> CorejaxError:
        """The error for computing it forward."""
        return CorejaxTypeError(
            f"{self.name} has no rule for forward mode", primitive="custom_pullback", where=here(),
            got="jvp, jacfwd, hessian or the result of linearize, of a function with a fwd and a bwd rule",
            wanted="reverse mode: grad, vjp, jacrev", todo=f"use these; or give it a rule: {self.name}.defjvp(...)")


class NoRule:
    """What stands on a tape for the derivatives by values that a function closes over: nothing is known of them.

    It is its own call, too.
    """

    n_residuals = n_consts = 0
    has_jvp = has_vjp = __corejax_unique__ = False

    def __init__(self, name: str, variables: Sequence[str], in_avals: Sequence[ShapedArray],
                 out_avals: Sequence[ShapedArray]) -> None:
        self.call, self.name, self.variables = self, name, tuple(variables)
        self.in_avals, self.out_avals = in_avals, tuple(out_avals)
        self._where = here()

    def __corejax_key__(self) -> Any:
        return self.name, self.variables, *self.in_avals, *self.out_avals

    def __corejax_rule__(self, hook: str) -> str:
        return f"the {hook} rule of {self.name}"

    def bwd(self, residuals: Sequence[Any], cotangents: Sequence[Any]) -> list[Any]:
        raise self.unknown()

    def backward_only(self) -> CorejaxError:
        """The error for computing it forward."""
        return self.unknown()

    def unknown(self) -> CorejaxTypeError:
        """The error where its tangents or cotangents would have to be known."""
        types = ", ".join(map(str, self.in_avals))
        which = f"{', '.join(self.variables)} ({types})" if self.variables else f"a closed-over {types}"
        return CorejaxTypeError(
            f"{self.name} is differentiated with respect to a value that it closes over", where=self._where,
            got=f"{which}, which depends on what is differentiated", primitive="custom_call",
            wanted="arguments only: its rules say nothing about other values",
            todo=f"make the value an argument of {self.name}, and of its rules; or stop_gradient it")


# Transformed calls

class MappedCall:
    """A call mapped along an axis, with its rules mapped.

    Unless `out_dims` says where the axis is in the results, that is known once the call has run.
    """

    def __init__(self, call: Any, axis: Axis, dims: Dims, out_dims: Dims | None = None) -> None:
        self.call, self.axis, self.dims = call, axis, tuple(dims)
        self.name, self.n_consts = call.name, call.n_consts
        self.has_jvp, self.has_vjp = call.has_jvp, call.has_vjp
        self.out_dims: Dims = () if out_dims is None else tuple(out_dims)
        self._places = out_dims is not None
        self.out_avals: Sequence[ShapedArray] | None = None

    def __corejax_key__(self) -> Any:
        return self.call.__corejax_key__(), *self.mapping

    @property
    def mapping(self) -> tuple[Any, ...]:
        """How it is mapped."""
        return self.axis.size, _name_key(self.axis.name), self.dims, tuple(self.out_dims)

    @property
    def __corejax_unique__(self) -> bool:
        return self.call.__corejax_unique__  # type: ignore[no-any-return]

    def __corejax_rule__(self, hook: str) -> str:
        return self.call.__corejax_rule__(hook)  # type: ignore[no-any-return]

    def twin(self) -> MappedCall:
        """A copy."""
        call = MappedCall(self.call.twin(), self.axis, self.dims)
        call.out_dims, call.out_avals, call._places = self.out_dims, self.out_avals, self._places
        return call

    def as_program(self, jaxpr: Jaxpr) -> MappedCall:
        """The same call with a program."""
        return MappedCall(self.call, self.axis, self.dims, self.out_dims)

    def closing_over(self, values: Sequence[Any]) -> MappedCall:
        """The same call with more operands before the others, for these closed-over values."""
        call = self.twin()
        call.call, call.dims = self.call.closing_over(values), (*[None] * len(values), *self.dims)
        call.n_consts += len(values)
        return call

    def names_of(self, flags: Sequence[bool]) -> list[str]:
        """The names of closed-over values, as far as they are known."""
        return self.call.names_of(flags)  # type: ignore[no-any-return]

    def primal(self, args: Sequence[Any]) -> list[Any]:
        outs, dims = self._map(lambda *xs: self.call.primal(xs), args, self.dims)
        return self._placed(outs, dims, dims)

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        flows = carrying.nonzero(tangents)
        nonzero: list[bool] = []

        def rule(*args: Any) -> list[Any]:
            xs = args[: len(flows)]
            dots = carrying.with_zeros(args[len(flows):], flows, [aval_of(x).tangent for x in xs])
            outs, out_dots = self.call.jvp(xs, dots)
            nonzero[:] = carrying.nonzero(out_dots)
            return [*outs, *carrying.without_zeros(out_dots)]

        found, dims = self._map(rule, [*primals, *carrying.without_zeros(tangents)],
                                [*self.dims, *carrying.marked(self.dims, flows)])
        n = len(nonzero)
        rest, rest_dims = iter(found[n:]), iter(dims[n:])
        pairs = [(next(rest), next(rest_dims)) if nz else (None, None) for nz in nonzero]
        outs = self._placed(found[:n], dims[:n], [d if d is not None else t for d, (_, t) in
                                                  zip(dims[:n], pairs, strict=True)])
        return outs, [Zero(aval_of(x).tangent) if t is None else self._at(t, d, wanted)
                      for x, (t, d), wanted in zip(outs, pairs, self.out_dims, strict=True)]

    def fwd(self, primals: Sequence[Any], nonzero: Sequence[bool]) -> tuple[list[Any], list[Any], MappedPullback]:
        inner: list[Any] = []

        def rule(*xs: Any) -> list[Any]:
            outs, residuals, pullback = self.call.fwd(xs, nonzero)
            inner[:] = [pullback]
            return [*outs, *residuals]

        found, dims = self._map(rule, primals, self.dims)
        pullback = inner[0]
        n = len(found) - pullback.n_residuals
        # each slice of an output has its own cotangent, even if all slices are the same
        outs = self._placed(found[:n], dims[:n], [0 if d is None else d for d in dims[:n]])
        return outs, found[n:], MappedPullback(self, pullback, dims[n:])

    def _map(self, fun: Callable[..., Sequence[Any]], args: Sequence[Any], dims: Dims) -> tuple[list[Any], Any]:
        return vmap_flat(fun, self.axis.size, self.axis.name, args, dims)

    def _placed(self, outs: Sequence[Any], dims: Dims, wanted: Dims) -> list[Any]:
        """The results with the axis where it should be: at the places set before, or else at `wanted`."""
        if not self._places:
            self.out_dims = tuple(wanted)
        outs = [self._at(x, d, w) for x, d, w in zip(outs, dims, self.out_dims, strict=True)]
        self.out_avals = [aval_of(x) for x in outs]
        return outs

    def _at(self, x: Any, dim: int | None, wanted: int | None) -> Any:
        return x if wanted is None else to_dim(x, dim, wanted, self.axis.size)


class MappedPullback:
    """The pullback of a mapped call."""

    def __init__(self, call: MappedCall, pullback: Any, residual_dims: Dims) -> None:
        self.call, self.pullback, self.residual_dims = call, pullback, tuple(residual_dims)
        self.name, self.n_residuals = pullback.name, pullback.n_residuals
        size = call.axis.size
        self.in_avals = [_with_axis(a, d, size) for a, d in zip(pullback.in_avals, call.dims, strict=True)]
        self.out_avals = tuple([_with_axis(a, d, size) for a, d in zip(pullback.out_avals, call.out_dims, strict=True)])

    def __corejax_key__(self) -> Any:
        return self.pullback.__corejax_key__(), *self.call.mapping, self.residual_dims

    @property
    def __corejax_unique__(self) -> bool:
        return self.pullback.__corejax_unique__  # type: ignore[no-any-return]

    def __corejax_rule__(self, hook: str) -> str:
        return self.pullback.__corejax_rule__(hook)  # type: ignore[no-any-return]

    def bwd(self, residuals: Sequence[Any], cotangents: Sequence[Any]) -> list[Any]:
        call = self.call
        flows = carrying.nonzero(cotangents)
        nonzero: list[bool] = []

        def rule(*args: Any) -> list[Any]:
            cts = carrying.with_zeros(args[self.n_residuals:], flows, [a.tangent for a in self.pullback.out_avals])
            back = self.pullback.bwd(args[: self.n_residuals], cts)
            nonzero[:] = carrying.nonzero(back)
            return carrying.without_zeros(back)

        dims = [*self.residual_dims, *carrying.marked(call.out_dims, flows)]
        found, found_dims = call._map(rule, [*residuals, *carrying.without_zeros(cotangents)], dims)
        pairs = iter(zip(found, found_dims, strict=True))
        return [self._of_argument(*next(pairs), dim) if nz else Zero(aval)
                for nz, dim, aval in zip(nonzero, call.dims, self.in_avals, strict=True)]

    def backward_only(self) -> CorejaxError:
        """The error for computing it forward."""
        return self.pullback.backward_only()  # type: ignore[no-any-return]

    def _of_argument(self, ct: Any, found: int | None, dim: int | None) -> Any:
        """A cotangent with the axis where its argument has it; summed over the axis if the argument has none."""
        if dim is not None:
            return to_dim(ct, found, dim, self.call.axis.size)
        return ct if found is None else roles.sum_axes(ct, (found,))


class SelectedCall:
    """A call that leaves out results that aren't needed."""

    def __init__(self, call: Any, used: Sequence[bool]) -> None:
        self.call, self.used = call, tuple(used)
        self.name, self.n_consts = call.name, call.n_consts
        self.has_jvp, self.has_vjp = call.has_jvp, call.has_vjp

    def __corejax_key__(self) -> Any:
        return self.call.__corejax_key__(), self.used

    @property
    def __corejax_unique__(self) -> bool:
        return self.call.__corejax_unique__  # type: ignore[no-any-return]

    def __corejax_rule__(self, hook: str) -> str:
        return self.call.__corejax_rule__(hook)  # type: ignore[no-any-return]

    def names_of(self, flags: Sequence[bool]) -> list[str]:
        """The names of closed-over values, as far as they are known."""
        return self.call.names_of(flags)  # type: ignore[no-any-return]

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        outs, dots = self.call.jvp(primals, tangents)
        return self._of(outs), self._of(dots)

    def fwd(self, primals: Sequence[Any], nonzero: Sequence[bool]) -> tuple[list[Any], list[Any], SelectedPullback]:
        outs, residuals, pullback = self.call.fwd(primals, nonzero)
        return self._of(outs), residuals, SelectedPullback(self, pullback)

    def _of(self, xs: Sequence[Any]) -> list[Any]:
        return carrying.marked(xs, self.used)


class SelectedPullback:
    """The pullback of a call that leaves out some results: their cotangents are zero."""

    def __init__(self, call: SelectedCall, pullback: Any) -> None:
        self.call, self.pullback = call, pullback
        self.name, self.n_residuals, self.in_avals = pullback.name, pullback.n_residuals, pullback.in_avals
        self.out_avals = tuple(call._of(pullback.out_avals))

    def __corejax_key__(self) -> Any:
        return self.pullback.__corejax_key__(), self.call.used

    @property
    def __corejax_unique__(self) -> bool:
        return self.pullback.__corejax_unique__  # type: ignore[no-any-return]

    def __corejax_rule__(self, hook: str) -> str:
        return self.pullback.__corejax_rule__(hook)  # type: ignore[no-any-return]

    def bwd(self, residuals: Sequence[Any], cotangents: Sequence[Any]) -> list[Any]:
        cts = carrying.with_zeros(cotangents, self.call.used, [aval.tangent for aval in self.pullback.out_avals])
        return self.pullback.bwd(residuals, cts)  # type: ignore[no-any-return]

    def backward_only(self) -> CorejaxError:
        """The error for computing it forward."""
        return self.pullback.backward_only()  # type: ignore[no-any-return]


# Helpers

def _name_key(name: Any) -> Any:
    return None if name is None else (type(name), name)


def _with_axis(aval: ShapedArray, dim: int | None, size: int) -> ShapedArray:
    return aval if dim is None else aval.update(shape=(*aval.shape[:dim], size, *aval.shape[dim:]))


def _key_of(known: tuple[Any, ...], values: Iterable[Any]) -> Any:
    """A key made from these parts and from users' values; a unique one if those can't be compared."""
    try:
        return HashedOnce((*known, *[atom(x) for x in values]))
    except CorejaxTypeError:
        return object()


def _call(fun: Any, args: Sequence[Any], what: str) -> Any:
    """Call a user's function; if it uses a traced value that is no longer one, the error says how it got there."""
    try:
        return call_user(fun, args, what)
    except LeakedTracerError as error:
        gone = [name for x, name in reached(fun).tracers if not x._trace.live]
        if not gone:
            raise
        raise LeakedTracerError(
            f"{what} closes over a value of a transformation that has ended", got=error.got, where=error.where,
            wanted="values that it is given", todo="make it an argument of the function: rules then get it as a "
                                                   "primal, or may keep it as a residual") from error


def _up_to(tree: Any, ct: Any, i: int, what: str) -> list[Any]:
    """The cotangents of an argument's leaves; None stands for zeros, for one leaf or for the whole argument."""
    if ct is None:
        return [None] * tree.num_leaves
    try:
        return tree.flatten_up_to(ct)  # type: ignore[no-any-return]
    except ValueError as error:
        found = flatten(ct, lambda x: x is None)[1]
        other = structures.tree_difference(found, tree)
        path, got, wanted = ("", structures.shown(found), structures.shown(tree)) if other is None else other
        raise CorejaxTypeError(f"{what} returns a cotangent structured differently from args[{i}], at args[{i}]{path}",
                               got=got, wanted=f"{wanted}, or None for zeros", where=here(),
                               todo="return each cotangent in the containers of its argument") from error


def _fitted(leaves: Sequence[Any], avals: Sequence[ShapedArray], paths: Sequence[str], what: str, of: str) -> list[Any]:
    """Tangents or cotangents in the types wanted, zeros as `Zero`. The error names all that don't fit."""
    fitted = [_fit(x, aval) for x, aval in zip(leaves, avals, strict=True)]
    wrong = [i for i, x in enumerate(fitted) if x is None]
    if not wrong:
        return fitted
    integers = any([avals[i].dtype is dtypes.float0 for i in wrong])
    raise CorejaxTypeError(
        f"{what} of a different type than {of}", where=here(),
        got="; ".join([f"{_described(leaves[i])} for {paths[i]}" for i in wrong]),
        wanted="; ".join([f"{avals[i]} for {paths[i]}" for i in wrong]),
        todo="for integers return np.zeros(shape, cj.float0)" if integers else
             "return an array of the same shape and dtype as its counterpart: reshape, sum or convert it")


def _fit(x: Any, wanted: ShapedArray) -> Any:
    """A tangent or cotangent as a value of the type wanted, or a `Zero`; None if it doesn't fit."""
    if x is None:
        return Zero(wanted)
    if type(x) is Zero:
        return Zero(wanted) if x.aval.shape == wanted.shape else None
    try:
        aval = aval_of(x)
    except CorejaxError:
        return None
    if aval.matches(wanted) and not aval.weak_type:
        return Zero(wanted) if wanted.dtype is dtypes.float0 else values([x], "", str)[0]
    if not aval.weak_type or aval.shape != wanted.shape or wanted.dtype is dtypes.float0 or (
            dtypes.promote((aval.dtype, True), (wanted.dtype, False))[0] != wanted.dtype):
        return None
    return roles.convert(values([x], "", str)[0], wanted.dtype)


def _array(t: Any) -> Any:
    """A tangent as an array, even if it is a `Zero` of float0."""
    if type(t) is Zero and t.aval.dtype is dtypes.float0:
        return Array.from_host(np.zeros(t.aval.shape, dtypes.float0), t.aval.invariant)
    return instantiate(t)


def _is_array(x: Any) -> bool:
    return hasattr(x, "aval") or isinstance(x, (np.ndarray, np.generic))


def _pair(result: Any, what: str, wanted: str) -> tuple[Any, Any]:
    if isinstance(result, (tuple, list)) and len(result) == 2:
        return result[0], result[1]
    got = f" of {len(result)}" if isinstance(result, (tuple, list)) else ""
    raise CorejaxTypeError(f"{what} must return a pair", got=_described(result) + got, wanted=wanted, where=here(),
                           todo="return both, the output first")


def _described(x: Any) -> str:
    try:
        return str(aval_of(x))
    except CorejaxError:
        return kind_of(x)
