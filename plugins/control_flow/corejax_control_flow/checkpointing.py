"""`checkpoint_call`: a call whose intermediate values reverse mode computes again instead of keeping them.

What is known is computed and forgotten but for the results. What waits for cotangents is the whole call once more: it
takes the call's own operands, so nothing else has to be kept for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from corejax import lax
from corejax.core import (
    Jaxpr,
    JaxprEqn,
    Linear,
    ShapedArray,
    WeakCache,
    Zero,
    aval_of,
    eval_jaxpr,
    flatten,
    here,
    jvp_jaxpr,
    namer,
    split_jaxpr,
    stage,
    stage_function,
    transpose_jaxpr,
    values,
    vmap_jaxpr,
)
from corejax.errors import CorejaxNotImplementedError
from corejax.ir.surgery import dce, select_outputs
from corejax.plugin import Sample, define, hookimpl
from corejax_control_flow._calls import Flags, check_operands, without_dead_code

__all__ = ["checkpoint_call"]


class CheckpointCall:
    """`checkpoint_call(*args, jaxpr=..., prevent_cse=True, differentiated=False)`: call a jaxpr that is computed again.

    The jaxpr has no constvars. `differentiated` marks a call that computes values a second time; with `prevent_cse`,
    the compiler is kept from finding out that they were computed before.
    """

    name = "checkpoint_call"
    multiple_results = True
    symbolic_zeros = True

    @hookimpl
    def evaluate(self, args: Any, *, jaxpr: Jaxpr) -> list[Any]:
        return eval_jaxpr(jaxpr, (), *args)

    @hookimpl
    def abstract_eval(self, avals: Any, *, jaxpr: Jaxpr, prevent_cse: bool = True, differentiated: bool = False
                      ) -> list[ShapedArray]:
        check_operands("checkpoint_call", jaxpr, avals)
        return jaxpr.out_avals

    @hookimpl
    def jvp(self, primals: Any, tangents: Any, *, jaxpr: Jaxpr, prevent_cse: bool, differentiated: bool) -> Any:
        forward, nonzero_out = jvp_jaxpr(jaxpr, tuple([type(t) is not Zero for t in tangents]))
        outs = _bind(*primals, *[t for t in tangents if type(t) is not Zero], jaxpr=forward, prevent_cse=prevent_cse,
                     differentiated=differentiated)
        n_outs = len(nonzero_out)
        dots = iter(outs[n_outs:])
        return outs[:n_outs], [next(dots) if nz else Zero(aval.tangent)
                               for nz, aval in zip(nonzero_out, jaxpr.out_avals, strict=True)]

    @hookimpl
    def transpose(self, cotangents: Any, args: Any, *, jaxpr: Jaxpr, prevent_cse: bool, differentiated: bool) -> Any:
        linear = tuple([type(x) is Linear for x in args])
        backward, nonzero = transpose_jaxpr(jaxpr, linear, tuple([type(ct) is not Zero for ct in cotangents]))
        operands = [*[x for x in args if type(x) is not Linear], *[ct for ct in cotangents if type(ct) is not Zero]]
        outs = iter(_bind(*operands, jaxpr=backward, prevent_cse=prevent_cse, differentiated=differentiated)
                    if True in nonzero or backward.effects else ())
        flows = iter(nonzero)
        return [(next(outs) if next(flows) else Zero(x.aval)) if lin else None
                for x, lin in zip(args, linear, strict=True)]

    @hookimpl
    def vmap(self, axis: Any, args: Any, dims: Any, *, jaxpr: Jaxpr, prevent_cse: bool, differentiated: bool) -> Any:
        mapped, out_dims = vmap_jaxpr(jaxpr, axis.size, axis.name, tuple(dims))
        return _bind(*args, jaxpr=mapped, prevent_cse=prevent_cse, differentiated=differentiated), out_dims

    @hookimpl
    def xla_translation(self, ctx: Any, args: Any, *, jaxpr: Jaxpr, prevent_cse: bool, differentiated: bool) -> Any:
        if prevent_cse and differentiated and args:
            # equal programs of equal operands are computed once: behind the barrier they are others
            made = ctx.op("stablehlo.optimization_barrier", args, out_types=[x.type for x in args])
            args = made if isinstance(made, list) else [made]
        return ctx.call(jaxpr, args, jaxpr.name or "checkpoint")

    @hookimpl
    def partial_eval(self, eqn: Any, unknown_in: Any) -> Any:
        jaxpr: Jaxpr = eqn.params["jaxpr"]
        if jaxpr.effects:
            raise CorejaxNotImplementedError(
                "checkpoint: in reverse mode a function with effects would have them twice",
                primitive="checkpoint_call", hook="partial_eval", wanted="a function without effects", where=here(),
                got=f"the effects {', '.join(sorted(map(str, jaxpr.effects)))}",
                todo="move what has effects out of the checkpointed function")
        halves = _halves(jaxpr, tuple(unknown_in))
        known = staged = None
        if halves.known is not None:
            operands = [eqn.invars[i] for i in halves.known_in]
            outvars = [v for v, unknown in zip(eqn.outvars, halves.unknown_out, strict=True) if not unknown]
            known = eqn.replace(primitive=_inlined, invars=operands, outvars=outvars, params={"jaxpr": halves.known})
        if halves.staged is not None:
            operands = [eqn.invars[i] for i in halves.staged_in]
            outvars = [v for v, unknown in zip(eqn.outvars, halves.unknown_out, strict=True) if unknown]
            staged = _with_program(eqn, halves.staged, operands, outvars, differentiated=True)
        return known, staged, halves.unknown_out, []

    @hookimpl
    def dce(self, eqn: Any, used_out: Any) -> Any:
        jaxpr = eqn.params["jaxpr"]
        if True not in used_out and not jaxpr.effects:
            return [False] * len(eqn.invars), None
        smaller, used_in = without_dead_code(jaxpr, used_out)
        if smaller is None:
            return list(used_in), eqn
        invars = [x for x, used in zip(eqn.invars, used_in, strict=True) if used]
        outvars = [v for v, used in zip(eqn.outvars, used_out, strict=True) if used]
        return list(used_in), _with_program(eqn, smaller, invars, outvars)

    @hookimpl
    def effects(self, avals: Any, *, jaxpr: Jaxpr) -> frozenset[Any]:
        return jaxpr.effects

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
        yield Sample([x, y], params(lambda x, y: [lax.mul(_bind(lax.mul(x, y), **one)[0], lax.cos(y)), lax.sin(x)],
                                    x, y))
        yield Sample([rng.standard_normal(4)], one, error=TypeError)


checkpoint_call: Any = define(CheckpointCall())


def call_checkpointed(fun: Callable[..., Any], args: tuple[Any, ...], prevent_cse: bool = True) -> Any:
    """`fun(*args)`, for pytrees, as one `checkpoint_call`."""
    leaves, in_tree = flatten(args)
    xs = values(leaves, "checkpoint", namer("args", args))
    staged = stage_function(fun, [x.aval for x in xs], in_tree, "checkpoint")
    outs = _bind(*staged.consts, *xs, jaxpr=staged.jaxpr, prevent_cse=prevent_cse, differentiated=False)
    return staged.out_tree.unflatten(outs)


def _bind(*args: Any, **params: Any) -> list[Any]:
    return checkpoint_call.primitive.bind(*args, **params)  # type: ignore[no-any-return]


def _with_program(eqn: JaxprEqn, jaxpr: Jaxpr, invars: Sequence[Any], outvars: Sequence[Any], **params: Any
                  ) -> JaxprEqn:
    """The same call, of another jaxpr."""
    return eqn.replace(invars=invars, outvars=outvars, params={**eqn.params, "jaxpr": jaxpr, **params},
                       effects=jaxpr.effects)


class _Inlined:
    """Stands for a primitive in the equation of what is known: its jaxpr is evaluated at once, in place."""

    name = "inlined"
    multiple_results = True

    def bind(self, *args: Any, jaxpr: Jaxpr) -> list[Any]:
        return eval_jaxpr(jaxpr, (), *args)


_inlined = _Inlined()


class _Halves:
    """What is known of a checkpointed program, and what waits: the whole of it, for the outputs that are unknown."""

    def __init__(self, jaxpr: Jaxpr, unknown_in: Flags) -> None:
        split = split_jaxpr(jaxpr, unknown_in)
        self.unknown_out = split.unknown_out
        self.known: Jaxpr | None = None
        self.staged: Jaxpr | None = None
        self.known_in: Sequence[int] = ()
        self.staged_in: Sequence[int] = ()
        waiting = [i for i, unknown in enumerate(split.unknown_out) if unknown]
        n_known = len(split.unknown_out) - len(waiting)
        if n_known:
            self.known, used = _needed(select_outputs(split.known, range(n_known)))
            self.known_in = [i for i, needed in zip(split.known_operands, used, strict=True) if needed]
        if waiting:
            self.staged, used = _needed(select_outputs(jaxpr, waiting))
            self.staged_in = [i for i, needed in enumerate(used) if needed]


def _needed(jaxpr: Jaxpr) -> tuple[Jaxpr, Flags]:
    return dce(jaxpr, (True,) * len(jaxpr.outvars))


_halves = WeakCache(_Halves)
