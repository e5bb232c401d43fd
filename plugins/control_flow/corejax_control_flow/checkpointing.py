"""`checkpoint_call`: a call whose intermediate values reverse mode recomputes instead of keeping them.

The known part is computed, and everything but its results is dropped. What waits for cotangents is the whole call
again: it takes the call's own operands, so nothing else has to be kept for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Any

import numpy as np

from corejax import lax
from corejax.core import (
    Again,
    Jaxpr,
    JaxprEqn,
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
from corejax.errors import CorejaxNotImplementedError
from corejax.ir.surgery import dce, select_outputs
from corejax.plugin import Sample, carrying, define, hookimpl

__all__ = ["checkpoint_call"]

Flags = carrying.Flags


class CheckpointCall:
    """`checkpoint_call(*operands, jaxpr=..., prevent_cse=True, differentiated=False)`: call a jaxpr, recomputed.

    The jaxpr has no constvars. `differentiated` marks a call that computes values a second time; `prevent_cse` keeps
    the compiler from noticing that they were computed before.

    >>> staged = stage(lambda x: [x + 1.0], [ShapedArray((), "float64")])
    >>> checkpoint_call(np.float64(2.0), jaxpr=staged.jaxpr)
    [Array(3., dtype=float64)]
    """

    name = "checkpoint_call"
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
    def abstract_eval(self, avals: Any, *, jaxpr: Jaxpr, prevent_cse: bool = True, differentiated: bool = False
                      ) -> list[ShapedArray]:
        carrying.check_operands("checkpoint_call", jaxpr, avals)
        return jaxpr.out_avals

    @hookimpl
    def jvp(self, primals: Any, tangents: Any, *, jaxpr: Jaxpr, **params: Any) -> Any:
        return carrying.jvp(primals, tangents, partial(jvp_jaxpr, jaxpr), partial(_bind, **params))

    @hookimpl
    def transpose(self, cotangents: Any, args: Any, *, jaxpr: Jaxpr, **params: Any) -> Any:
        return carrying.transpose(cotangents, args, partial(transpose_jaxpr, jaxpr), partial(_bind, **params))

    @hookimpl
    def vmap(self, axis: Any, args: Any, dims: Any, *, jaxpr: Jaxpr, **params: Any) -> Any:
        mapped, out_dims = vmap_jaxpr(jaxpr, axis.size, axis.name, tuple(dims))
        return _bind(mapped, args, **params), out_dims

    @hookimpl
    def xla_translation(self, ctx: Any, args: Any, *, jaxpr: Jaxpr, prevent_cse: bool, differentiated: bool) -> Any:
        if prevent_cse and differentiated and args:
            # equal programs of equal operands are computed once; the barrier makes these operands different
            made = ctx.op("stablehlo.optimization_barrier", args, out_types=[x.type for x in args])
            args = made if isinstance(made, list) else [made]
        return ctx.call(jaxpr, args, jaxpr.name or "checkpoint")

    @hookimpl
    def partial_eval(self, eqn: JaxprEqn, unknown_in: Any) -> Any:
        jaxpr: Jaxpr = eqn.params["jaxpr"]
        if jaxpr.effects:
            raise CorejaxNotImplementedError(
                "checkpoint: in reverse mode, the effects of the function would happen twice",
                primitive="checkpoint_call", hook="partial_eval", wanted="a function without effects", where=here(),
                got=f"the effects {', '.join(sorted(map(str, jaxpr.effects)))}",
                todo="move the effects out of the checkpointed function")
        split = _whole_again(jaxpr, tuple(unknown_in))

        def remake(part: Jaxpr, invars: Any, outvars: Any) -> JaxprEqn:
            if part is split.known:
                params = {"jaxpr": part, "again": eqn.params["differentiated"]}
                return eqn.replace(primitive=_inlined, invars=invars, outvars=outvars, params=params)
            return carrying.with_jaxpr(eqn, part, invars, outvars, differentiated=True)

        return carrying.divide(eqn, split, remake)

    @hookimpl
    def dce(self, eqn: Any, used_out: Any) -> Any:
        shorter = carrying.without_dead_code(eqn.params["jaxpr"], used_out)
        return carrying.shorten(eqn, used_out, shorter, partial(carrying.with_jaxpr, eqn))

    @hookimpl
    def effects(self, avals: Any, *, jaxpr: Jaxpr) -> frozenset[Any]:
        return jaxpr.effects

    def widened(self, axes: Sequence[Any], *, jaxpr: Jaxpr, **params: Any) -> dict[str, Any]:
        """The program for operands that vary along these axes of a mesh."""
        return {"jaxpr": carrying.retyped(jaxpr, axes)}

    @hookimpl
    def samples(self, rng: Any) -> Iterator[Sample]:
        def params(fun: Any, *args: Any) -> dict[str, Any]:
            return {"jaxpr": stage(fun, [aval_of(x) for x in args], "f").jaxpr, "prevent_cse": True,
                    "differentiated": False}

        x, y, count = rng.standard_normal(3), rng.standard_normal(3), np.arange(3, dtype=np.int32)
        one = params(lambda x: [lax.sin(lax.sin(x))], x)
        yield Sample([x], one)
        yield Sample([x], {**one, "differentiated": True})
        yield Sample([x], {**one, "differentiated": True, "prevent_cse": False})
        yield Sample([x, y], params(lambda x, y: [lax.mul(x, lax.sin(y)), x, lax.mul(2.0, y)], x, y))
        yield Sample([x, count], params(lambda x, count: [lax.mul(x, x), lax.add(count, count)], x, count))
        yield Sample([x, y], params(lambda x, y: [
            lax.mul(_bind(one["jaxpr"], [lax.mul(x, y)])[0], lax.cos(y)), lax.sin(x)], x, y))
        yield Sample([rng.standard_normal(4)], one, error=TypeError)
        yield Sample([x, x], one, error=TypeError)
        yield Sample([], one, error=TypeError)


checkpoint_call: Any = define(CheckpointCall())


def call_checkpointed(fun: Callable[..., Any], args: tuple[Any, ...], prevent_cse: bool = True) -> Any:
    """`fun(*args)`, for pytrees, as one `checkpoint_call`."""
    call = carrying.stage_call(fun, args, "checkpoint")
    return call.unflatten(_bind(call.jaxpr, call.operands, prevent_cse=prevent_cse))


def _bind(jaxpr: Jaxpr, args: Sequence[Any], *, prevent_cse: bool = True, differentiated: bool = False) -> list[Any]:
    return checkpoint_call.primitive.bind(  # type: ignore[no-any-return]
        *args, jaxpr=jaxpr, prevent_cse=prevent_cse, differentiated=differentiated)


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


def _needed(jaxpr: Jaxpr) -> tuple[Jaxpr, Flags]:
    return dce(jaxpr, (True,) * len(jaxpr.outvars))
