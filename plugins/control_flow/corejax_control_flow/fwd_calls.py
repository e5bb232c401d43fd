"""`custom_fwd_call`: a call of a fwd rule that becomes a call of the function itself where no residuals are wanted.

That is so on the way forward through a checkpoint, which keeps nothing. If the fwd rule is one call that can't be
shortened, such as a kernel, it would compute the residuals all the same. `defvjp(..., optimize_remat=True)` says that
the function computes the same output without them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from corejax import lax
from corejax.core import Jaxpr, ShapedArray, aval_of, eval_jaxpr, stage
from corejax.ir.surgery import dce
from corejax.plugin import Sample, carrying, define, hookimpl
from corejax_control_flow._branches import joined
from corejax_control_flow.call import xla_call

__all__ = ["custom_fwd_call"]


class CustomFwdCall:
    """`custom_fwd_call(*operands, fwd=..., primal=...)`: the output of a function, and the residuals of its fwd rule.

    Both are programs of the same operands; the results of `fwd` begin with those of `primal`.

    >>> sample = next(custom_fwd_call.primitive.samples(np.random.default_rng(0)))
    >>> len(custom_fwd_call(*sample.args, **sample.params))
    2
    """

    name = "custom_fwd_call"
    holds = "rule"
    structural = True
    tracks_varying = True
    operands = ("*operands",)
    multiple_results = True

    @hookimpl
    def abstract_eval(self, avals: Any, *, fwd: Jaxpr, primal: Jaxpr) -> list[ShapedArray]:
        carrying.check_operands("custom_fwd_call", fwd, avals)
        return fwd.out_avals

    @hookimpl
    def decompose(self, args: Any, *, fwd: Jaxpr, primal: Jaxpr) -> list[Any]:
        carrying.check_operands("custom_fwd_call", fwd, [aval_of(x) for x in args])
        return eval_jaxpr(fwd, (), *args)

    @hookimpl
    def dce(self, eqn: Any, used_out: Any) -> Any:
        fwd, primal = eqn.params["fwd"], eqn.params["primal"]
        n = len(primal.outvars)
        if all(used_out):
            return [True] * len(eqn.invars), eqn
        program, used_in = dce(fwd, used_out) if True in used_out[n:] else dce(primal, used_out[:n])
        shorter = carrying.Shorter(program, used_in, tuple(used_out))
        return carrying.shorten(eqn, used_out, shorter, partial(_called, eqn))

    @hookimpl
    def effects(self, avals: Any, *, fwd: Jaxpr, primal: Jaxpr) -> frozenset[Any]:
        return fwd.effects

    def widened(self, axes: Sequence[Any], *, fwd: Jaxpr, primal: Jaxpr) -> dict[str, Any]:
        """The programs for operands that vary along these axes of a mesh."""
        return {"fwd": carrying.retyped(fwd, axes), "primal": carrying.retyped(primal, axes)}

    @hookimpl
    def pretty(self, *, fwd: Jaxpr, primal: Jaxpr) -> Mapping[str, Any]:
        return {"fwd": fwd, "primal": primal}

    @hookimpl
    def samples(self, rng: Any) -> Iterator[Sample]:
        x = rng.standard_normal(3)
        fwd = stage(lambda x: [lax.sin(x), lax.cos(x)], [aval_of(x)], "fwd").jaxpr
        primal = stage(lambda x: [lax.sin(x)], [aval_of(x)], "f").jaxpr
        yield Sample([x], {"fwd": fwd, "primal": primal}, results=[np.sin(x), np.cos(x)])
        yield Sample([x, x], {"fwd": fwd, "primal": primal}, error=TypeError)


custom_fwd_call: Any = define(CustomFwdCall())


def call_fwd(call: Any, primals: Sequence[Any], nonzero: Sequence[bool]) -> tuple[list[Any], list[Any], Any]:
    """What `call.fwd(primals, nonzero)` returns, by way of this primitive."""
    pullbacks: list[Any] = []

    def fwd(*xs: Any) -> list[Any]:
        outs, residuals, pullback = call.fwd(xs, nonzero)
        pullbacks.append(pullback)
        return [*outs, *residuals]

    avals = [aval_of(x) for x in primals]
    closed = [stage(fwd, avals, call.name), stage(lambda *xs: call.primal(xs), avals, call.name)]
    programs, consts = joined(closed)
    found = custom_fwd_call.primitive.bind(*consts, *primals, fwd=programs[0], primal=programs[1])
    n = len(programs[1].outvars)
    return found[:n], found[n:], pullbacks[-1]


def _called(eqn: Any, jaxpr: Jaxpr, invars: Any, outvars: Any) -> Any:
    """The equation of a call of this program."""
    params = {"jaxpr": jaxpr, "name": jaxpr.name or "f", "donated": (), "inline": False, "keep_unused": False}
    return eqn.replace(primitive=xla_call.primitive, invars=invars, outvars=outvars, params=params,
                       effects=jaxpr.effects)
