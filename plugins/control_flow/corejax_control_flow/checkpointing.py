"""`checkpoint_call`: a call whose intermediate values reverse mode recomputes instead of keeping them.

The known part is computed, and everything but its results and what a policy saves is dropped. What waits for cotangents
is the whole call again: it takes the call's own operands, and what was saved.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Any

import numpy as np

from corejax import lax
from corejax.core import (
    Again,
    Jaxpr,
    JaxprEqn,
    Linear,
    ShapedArray,
    aval_of,
    eval_jaxpr,
    here,
    jvp_jaxpr,
    named_scope,
    stage,
    transpose_jaxpr,
    vmap_jaxpr,
)
from corejax.errors import CorejaxTypeError
from corejax.ir.surgery import dce, select_outputs
from corejax.plugin import Sample, carrying, define, hookimpl
from corejax_control_flow._known_calls import Origin, stage_known
from corejax_control_flow.policies import nothing_saveable

__all__ = ["checkpoint_call"]

Flags = carrying.Flags
Policy = carrying.Policy


class CheckpointCall:
    """`checkpoint_call(*operands, jaxpr=..., prevent_cse=True, differentiated=False, policy=None, as_one=False)`.

    A call of which reverse mode computes everything again.

    The jaxpr has no constvars. `differentiated` marks a call that computes values a second time; `prevent_cse`, a flag
    or one for each operand, keeps the compiler from noticing that they were computed before. A `policy` says what is
    saved; without one, nothing is. In another checkpointed program, its policy is asked about each operation within, or
    with `as_one` about the call.

    >>> staged = stage(lambda x: [x + 1.0], [ShapedArray((), "float64")])
    >>> checkpoint_call(np.float64(2.0), jaxpr=staged.jaxpr)
    [Array(3., dtype=float64)]
    """

    name = "checkpoint_call"
    holds = "recomputed"
    structural = True
    tracks_varying = True
    operands = ("*operands",)
    multiple_results = True
    symbolic_zeros = True

    @hookimpl
    def evaluate(self, args: Any, *, jaxpr: Jaxpr, differentiated: bool) -> list[Any]:
        if len(args) != len(jaxpr.invars):
            carrying.check_operands("checkpoint_call", jaxpr, [aval_of(x) for x in args])
        with _again(differentiated):
            return eval_jaxpr(jaxpr, (), *args)

    @hookimpl
    def abstract_eval(self, avals: Any, *, jaxpr: Jaxpr, prevent_cse: bool | Flags = True, differentiated: bool = False,
                      policy: Policy | None = None, as_one: bool = False) -> list[ShapedArray]:
        carrying.check_operands("checkpoint_call", jaxpr, avals)
        if type(prevent_cse) is tuple and len(prevent_cse) != len(avals):
            raise CorejaxTypeError("checkpoint_call: prevent_cse must have one flag for each operand", where=here(),
                                   primitive="checkpoint_call", got=len(prevent_cse), wanted=len(avals),
                                   todo="pass True or False, or a tuple of them")
        return jaxpr.out_avals

    @hookimpl
    def jvp(self, primals: Any, tangents: Any, *, jaxpr: Jaxpr, prevent_cse: bool | Flags, **params: Any) -> Any:
        if type(prevent_cse) is tuple:
            prevent_cse = (*prevent_cse, *carrying.marked(prevent_cse, carrying.nonzero(tangents)))
        return carrying.jvp(primals, tangents, partial(jvp_jaxpr, jaxpr),
                            partial(bind_checkpoint, prevent_cse=prevent_cse, **params))

    @hookimpl
    def transpose(self, cotangents: Any, args: Any, *, jaxpr: Jaxpr, prevent_cse: bool | Flags, **params: Any) -> Any:
        if type(prevent_cse) is tuple:
            values = carrying.marked(prevent_cse, [type(x) is not Linear for x in args])
            prevent_cse = (*values, *[True] * sum(carrying.nonzero(cotangents)))
        return carrying.transpose(cotangents, args, partial(transpose_jaxpr, jaxpr),
                                  partial(bind_checkpoint, prevent_cse=prevent_cse, **params))

    @hookimpl
    def vmap(self, axis: Any, args: Any, dims: Any, *, jaxpr: Jaxpr, **params: Any) -> Any:
        mapped, out_dims = vmap_jaxpr(jaxpr, axis.size, axis.name, tuple(dims))
        return bind_checkpoint(mapped, args, **params), out_dims

    @hookimpl
    def xla_translation(self, ctx: Any, args: Any, *, jaxpr: Jaxpr, prevent_cse: bool | Flags, differentiated: bool
                        ) -> Any:
        flags = prevent_cse if isinstance(prevent_cse, tuple) else (prevent_cse,) * len(args)
        behind = carrying.marked(args, flags)
        if behind and differentiated:
            # equal programs of equal operands are computed once; the barrier makes these operands different
            made = ctx.op("stablehlo.optimization_barrier", behind, out_types=[x.type for x in behind])
            others = iter(made if isinstance(made, list) else [made])
            args = [next(others) if flag else x for x, flag in zip(args, flags, strict=True)]
        return ctx.call(jaxpr, args, jaxpr.name or "checkpoint")

    @hookimpl
    def partial_eval(self, eqn: JaxprEqn, unknown_in: Any) -> Any:
        jaxpr: Jaxpr = eqn.params["jaxpr"]
        policy = eqn.params["policy"]
        if policy is None and jaxpr.effects:  # what comes of them is saved, since they happen once
            policy = nothing_saveable
        split = _whole_again(jaxpr, tuple(unknown_in)) if policy is None else _but_saved(
            jaxpr, tuple(unknown_in), policy)
        flags = eqn.params["prevent_cse"]
        if type(flags) is tuple:
            flags = tuple([flags[i] if where == "operand" else True for where, i in split.places])

        def remake(part: Jaxpr, invars: Any, outvars: Any) -> JaxprEqn:
            if part is split.known:
                params = {"jaxpr": part, "again": eqn.params["differentiated"]}
                return eqn.replace(primitive=_inlined, invars=invars, outvars=outvars, params=params)
            return carrying.with_jaxpr(eqn, part, invars, outvars, differentiated=True, prevent_cse=flags)

        return carrying.divide(eqn, split, remake)

    @hookimpl
    def recompute(self, eqn: JaxprEqn, unknown_in: Any, saved_by: Policy) -> Any:
        """The call in another one's program, whose policy decides."""
        if eqn.params["as_one"]:
            return None
        saving = carrying.split_saving(eqn.params["jaxpr"], unknown_in, saved_by)
        flags = eqn.params["prevent_cse"]

        def remake(part: Jaxpr, invars: Any, outvars: Any) -> JaxprEqn:
            own = flags
            if type(flags) is tuple:
                own = tuple(carrying.marked(flags, [not u for u in unknown_in])) if part is saving.known else (
                    *[True] * len(saving.saved), *flags)
            return carrying.with_jaxpr(eqn, part, invars, outvars, prevent_cse=own)

        return carrying.recompute(eqn, saving, unknown_in, remake)

    @hookimpl
    def dce(self, eqn: Any, used_out: Any) -> Any:
        shorter = carrying.without_dead_code(eqn.params["jaxpr"], used_out)
        flags = eqn.params["prevent_cse"]
        if type(flags) is tuple and shorter is not None:
            flags = tuple(carrying.marked(flags, shorter.used_in))
        return carrying.shorten(eqn, used_out, shorter, partial(carrying.with_jaxpr, eqn, prevent_cse=flags))

    @hookimpl
    def effects(self, avals: Any, *, jaxpr: Jaxpr) -> frozenset[Any]:
        return jaxpr.effects

    @hookimpl
    def carry(self, lift: Any, args: Any, *, jaxpr: Jaxpr, prevent_cse: bool | Flags, **params: Any) -> Any:
        forms = lift.forms(args)
        program, out_forms = lift.program(jaxpr, forms)
        if type(prevent_cse) is tuple:
            prevent_cse = tuple(lift.sides(prevent_cse, (True,) * len(jaxpr.outvars), forms, out_forms)[0])
        return lift.results(bind_checkpoint(program, lift.parts(args), prevent_cse=prevent_cse, **params), out_forms)

    def widened(self, axes: Sequence[Any], *, jaxpr: Jaxpr, **params: Any) -> dict[str, Any]:
        """The program for operands that vary along these axes of a mesh."""
        return {"jaxpr": carrying.retyped(jaxpr, axes)}

    @hookimpl
    def pretty(self, *, jaxpr: Jaxpr, prevent_cse: bool | Flags, differentiated: bool, policy: Policy | None,
               as_one: bool) -> Mapping[str, Any]:
        shown = {"jaxpr": jaxpr, "prevent_cse": prevent_cse, "differentiated": differentiated, "policy": policy,
                 "as_one": as_one}
        return {name: value for name, value in shown.items() if name not in ("policy", "as_one") or value}

    @hookimpl
    def samples(self, rng: Any) -> Iterator[Sample]:
        def params(fun: Any, *args: Any) -> dict[str, Any]:
            return {"jaxpr": stage(fun, [aval_of(x) for x in args], "f").jaxpr, "prevent_cse": True,
                    "differentiated": False, "policy": None, "as_one": False}

        x, y, count = rng.standard_normal(3), rng.standard_normal(3), np.arange(3, dtype=np.int32)
        one = params(lambda x: [lax.sin(lax.sin(x))], x)
        yield Sample([x], one)
        yield Sample([x], {**one, "differentiated": True})
        yield Sample([x], {**one, "differentiated": True, "prevent_cse": False, "as_one": True})
        yield Sample([x, y], params(lambda x, y: [lax.mul(x, lax.sin(y)), x, lax.mul(2.0, y)], x, y))
        yield Sample([x, count], params(lambda x, count: [lax.mul(x, x), lax.add(count, count)], x, count))
        nested = params(lambda x, y: [
            lax.mul(bind_checkpoint(one["jaxpr"], [lax.mul(x, y)])[0], lax.cos(y)), lax.sin(x)], x, y)
        yield Sample([x, y], nested)
        yield Sample([x, y], {**nested, "policy": _saves_sines, "prevent_cse": (False, True)})
        yield Sample([x, y], {**nested, "prevent_cse": (True,)}, error=TypeError)
        yield Sample([rng.standard_normal(4)], one, error=TypeError)
        yield Sample([x, x], one, error=TypeError)
        yield Sample([], one, error=TypeError)


checkpoint_call: Any = define(CheckpointCall())


def call_checkpointed(fun: Callable[..., Any], args: tuple[Any, ...], prevent_cse: bool | Flags = True,
                      policy: Policy | None = None, origin: tuple[Any, ...] | None = None) -> Any:
    """`fun(*args)`, for pytrees, as one `checkpoint_call`; `prevent_cse` is a flag, or one for each leaf.

    `origin`: the user's function, its fixed arguments, and a key that is equal if these are.
    """
    if carrying.runs_python():
        return carrying.call_python(fun, args, "checkpoint")
    call = stage_known(fun, args, "checkpoint", None if origin is None else Origin(*origin))
    if type(prevent_cse) is tuple:  # what the function closes over comes first
        prevent_cse = (*[True] * (len(call.operands) - len(prevent_cse)), *prevent_cse)
    return call.unflatten(bind_checkpoint(call.jaxpr, call.operands, prevent_cse=prevent_cse, policy=policy))


def bind_checkpoint(jaxpr: Jaxpr, args: Sequence[Any], *, prevent_cse: bool | Flags = True,
                    differentiated: bool = False, policy: Policy | None = None, as_one: bool = False) -> list[Any]:
    """The results of a program, computed again in reverse mode."""
    return checkpoint_call.primitive.bind(  # type: ignore[no-any-return]
        *args, jaxpr=jaxpr, prevent_cse=prevent_cse, differentiated=differentiated, policy=policy, as_one=as_one)


def _saves_sines(primitive: Any, *avals: ShapedArray, **params: Any) -> bool:
    return primitive.name == "sin"  # type: ignore[no-any-return]


def _again(differentiated: bool) -> AbstractContextManager[None]:
    """A scope for what is computed a second time."""
    return named_scope(Again("again")) if differentiated else nullcontext()


class _Inlined:
    """Stands for a primitive in the equation of the known part: its jaxpr is evaluated immediately, in place."""

    name = "inlined"
    multiple_results = True

    def bind(self, *args: Any, jaxpr: Jaxpr, again: bool) -> list[Any]:
        with _again(again):
            return eval_jaxpr(jaxpr, (), *args)


_inlined = _Inlined()


@carrying.remembered
def _whole_again(jaxpr: Jaxpr, unknown_in: Flags) -> carrying.Split[Jaxpr]:
    """Split a checkpointed program. The part that waits is all of it, reduced to the outputs that are unknown."""
    split = carrying.split_jaxpr(jaxpr, unknown_in)
    waiting = [i for i, unknown in enumerate(split.unknown_out) if unknown]
    n_known = len(split.unknown_out) - len(waiting)
    known, known_in = _needed(select_outputs(split.known, range(n_known)))
    staged, staged_in = _needed(select_outputs(jaxpr, waiting))
    return carrying.Split(known, staged, split.unknown_out, carrying.marked(split.known_operands, known_in),
                          carrying.marked(range(len(unknown_in)), staged_in), (), ())


@carrying.remembered
def _but_saved(jaxpr: Jaxpr, unknown_in: Flags, policy: Policy) -> carrying.Split[Jaxpr]:
    """The same, but what waits takes the values that a policy saves."""
    return carrying.split_again(jaxpr, unknown_in, policy)


def _needed(jaxpr: Jaxpr) -> tuple[Jaxpr, Flags]:
    return dce(jaxpr, (True,) * len(jaxpr.outvars))
