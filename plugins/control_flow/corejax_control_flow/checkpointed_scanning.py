"""`lax.scan(..., checkpoint_every=k)`: a scan of which reverse mode keeps every k-th carry.

Forward, `checkpointed_scan` is a scan. Partial evaluation makes it one over segments of k steps that also writes out
the carries at which they start, and a `segmented_scan`, which waits for tangents.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from corejax import lax
from corejax.core import (
    Array,
    ArrayLike,
    Atom,
    Jaxpr,
    JaxprEqn,
    ShapedArray,
    Var,
    aval_of,
    context,
    here,
    stage,
    stage_closed,
)
from corejax.errors import CorejaxNotImplementedError, CorejaxValueError
from corejax.ir.surgery import select_outputs, without_effects
from corejax.plugin import Sample, carrying, define, hookimpl, not_linear, roles
from corejax_control_flow import _scan_rules as rules
from corejax_control_flow._scan_body import Body
from corejax_control_flow._scan_checks import check_scan
from corejax_control_flow._scan_lowering import Loop, lower_scan
from corejax_control_flow._scan_primitive import hoisted, run_scan, scan_p
from corejax_control_flow._scan_rules import (
    body_of,
    settled,
    shorter,
    simplified,
    split_body,
    stacked,
    varying_of,
    with_body,
)
from corejax_control_flow._scan_saving import recompute_scan
from corejax_control_flow._segments import Segments, avals_of, run_segments
from corejax_control_flow.segmented_scanning import segmented_scan

__all__ = ["checkpointed_scan"]

Flags = carrying.Flags


class CheckpointedScan:
    """`checkpointed_scan(*operands, jaxpr=..., length=..., reverse=..., num_consts=..., num_carry=..., unroll=...,
    every=...)`: a scan of which reverse mode keeps the carry of every `every`-th step only.

    >>> body = stage(lambda c, x: [c * x], [ShapedArray((), "float64")] * 2).jaxpr
    >>> checkpointed_scan(1.0, np.array([2.0, 3.0, 4.0]), jaxpr=body, length=3, reverse=False, num_consts=0,
    ...                   num_carry=1, unroll=1, every=2)[0].item()
    24.0
    """

    name = "checkpointed_scan"
    holds = "recomputed"
    structural = True
    operands = ("*operands",)
    multiple_results = True
    symbolic_zeros = True

    transpose = not_linear("a linear scan is bound as scan, since it has no carries to keep")

    def function(self, bind: Any) -> Any:
        def checkpointed_scan(*operands: ArrayLike, jaxpr: Jaxpr, length: int, reverse: bool, num_consts: int,
                              num_carry: int, unroll: int, every: int) -> list[Array]:
            return run_checkpointed(Body(jaxpr, num_consts, num_carry), operands, length=length, reverse=reverse,
                                    unroll=unroll, every=every)
        return checkpointed_scan

    @hookimpl
    def abstract_eval(self, avals: Any, *, jaxpr: Jaxpr, length: int, reverse: bool, num_consts: int, num_carry: int,
                      unroll: int, every: int) -> list[ShapedArray]:
        body = Body(jaxpr, num_consts, num_carry)
        check_scan(self.name, body, avals, avals_of(body, length), unroll=unroll, every=every)
        if length < 0:
            raise CorejaxValueError(f"{self.name}: the number of steps can't be negative", primitive=self.name,
                                    where=here(), got=length, wanted="a number from 0 on",
                                    todo="check how it is computed")
        carry, ys = body.results(jaxpr.out_avals)
        return [*carry, *[stacked(aval, length) for aval in ys]]

    @hookimpl
    def jvp(self, primals: Any, tangents: Any, *, jaxpr: Jaxpr, num_consts: int, num_carry: int, **params: Any) -> Any:
        return rules.jvp(Body(jaxpr, num_consts, num_carry), primals, tangents, _hoisting(**params))

    @hookimpl
    def vmap(self, axis: Any, args: Any, dims: Any, *, jaxpr: Jaxpr, num_consts: int, num_carry: int, **params: Any
             ) -> Any:
        return rules.vmap(Body(jaxpr, num_consts, num_carry), axis, args, dims, partial(run_checkpointed, **params))

    @hookimpl
    def xla_translation(self, ctx: Any, args: Any, *, jaxpr: Jaxpr, length: int, reverse: bool, num_consts: int,
                        num_carry: int, unroll: int) -> Any:
        return lower_scan(Loop(ctx, jaxpr, length, reverse, num_consts, num_carry), args, unroll)

    @hookimpl
    def partial_eval(self, eqn: Any, unknown_in: Any) -> Any:
        body, params, unknown = body_of(eqn), eqn.params, tuple(unknown_in)
        split = split_body(body, unknown)
        again = without_effects(body.jaxpr)
        needed = again.effects | split.staged.jaxpr.effects
        if needed:
            raise CorejaxNotImplementedError(
                "scan: with checkpoint_every, reverse mode computes steps again, and what these steps do can't be left "
                "out the second time", primitive="checkpointed_scan", hook="partial_eval", where=here(),
                got=f"the effects {', '.join(sorted(map(str, needed)))}, with results or operands that the derivative "
                "needs", wanted="effects whose results aren't used",
                todo="leave out checkpoint_every, or move the effects out of the loop")
        if not split.fresh_avals or not params["length"]:  # then nothing would be kept in any case
            fresh = [stacked(aval, params["length"]) for aval in split.fresh_avals]
            return carrying.divide(eqn, split, partial(_as_scan, eqn), fresh)
        unknown = (*unknown[:body.num_consts], *split.unknown_out[:body.num_carry], *unknown[body.first_input:])
        segments = Segments.of(params["length"], params["every"], params["reverse"])
        consts, carry, xs = body.operands(eqn.invars)
        starts = {i: Var(stacked(v.aval, segments.starts.length)) for i, v in enumerate(carry)
                  if not split.unknown_out[i]}
        known_out = [v for v, u in zip(eqn.outvars, split.unknown_out, strict=True) if not u]
        known = eqn.replace(primitive=_first_run, invars=[eqn.invars[i] for i in split.known_operands],
                            outvars=[*known_out, *starts.values()], params={
                                "split": split, "segments": segments, "unroll": params["unroll"]})
        staged = eqn.replace(primitive=segmented_scan.primitive, effects=frozenset(),
                             params={**params, "jaxpr": again, "unknown": unknown},
                             invars=[*consts, *[starts.get(i, v) for i, v in enumerate(carry)], *xs],
                             outvars=carrying.marked(eqn.outvars, split.unknown_out))
        return known, staged, split.unknown_out, [*starts.values()]

    @hookimpl
    def recompute(self, eqn: Any, unknown_in: Any, saved_by: carrying.Policy) -> Any:
        return recompute_scan(eqn, unknown_in, saved_by)

    @hookimpl
    def dce(self, eqn: Any, used_out: Any) -> Any:
        return carrying.shorten(eqn, used_out, shorter(body_of(eqn), tuple(used_out)), partial(with_body, eqn))

    @hookimpl
    def effects(self, avals: Any, *, jaxpr: Jaxpr) -> frozenset[Any]:
        return jaxpr.effects

    @hookimpl
    def carry(self, lift: Any, args: Any, *, jaxpr: Jaxpr, num_consts: int, num_carry: int, **params: Any) -> Any:
        return rules.carry(Body(jaxpr, num_consts, num_carry), lift, args, _hoisting(**params))

    def widened(self, axes: Sequence[Any], *, jaxpr: Jaxpr, num_consts: int, num_carry: int, **params: Any
                ) -> dict[str, Any]:
        """The step for operands that vary along these axes of a mesh."""
        return {"jaxpr": settled(Body(jaxpr, num_consts, num_carry), axes).jaxpr}

    @hookimpl
    def samples(self, rng: Any) -> Iterator[Sample]:
        w, c, xs = rng.standard_normal(2), rng.standard_normal(2), rng.standard_normal((5, 2))
        params = {"jaxpr": _step(w, c, xs[0]), "length": 5, "reverse": False, "num_consts": 1, "num_carry": 1,
                  "unroll": 1, "every": 2}

        def results(order: Sequence[int]) -> list[Any]:
            carry, ys = c, [c] * 5
            for i in order:
                ys[i], carry = carry * xs[i], np.sin(carry) * (w + xs[i])
            return [carry, np.stack(ys)]

        yield Sample([w, c, xs], params, results=results(range(5)))
        yield Sample([w, c, xs], {**params, "reverse": True, "every": 3}, results=results(range(4, -1, -1)))
        yield Sample([w, c, xs], {**params, "every": 7, "unroll": 2})
        yield Sample([w, c, xs[:2]], {**params, "length": 2, "every": 1})
        yield Sample([w, c, xs[:0]], {**params, "length": 0})
        powers = stage(lambda c: [lax.mul(c, c)], [aval_of(c)]).jaxpr
        yield Sample([c], {**params, "jaxpr": powers, "num_consts": 0, "length": 3}, results=[c ** 8])
        yield Sample([w, xs], {**params, "jaxpr": stage(lambda w, x: [lax.mul(w, lax.sin(x))], [aval_of(c)] * 2).jaxpr,
                               "num_carry": 0}, results=[w * np.sin(xs)])
        yield Sample([w, c, xs[:2]], params, error=TypeError)
        yield Sample([w, c, xs], {**params, "every": 0}, error=ValueError)


checkpointed_scan: Any = define(CheckpointedScan())


def run_checkpointed(body: Body, operands: Sequence[Any], *, length: int, reverse: bool, unroll: int, every: int
                     ) -> list[Any]:
    """Bind a checkpointed scan, simplified."""
    body = settled(body, varying_of(operands))
    if length == 0 or (length == 1 and not context.trace.is_staging):  # run_scan makes no loop of these
        return run_scan(body, operands, length=length, reverse=reverse, unroll=unroll)
    smaller = simplified(body)
    program, taken = (body, operands) if smaller is None else (
        smaller.body, [operands[i] for i in smaller.operands])
    does_something = program.jaxpr.outvars or program.jaxpr.effects
    found = checkpointed_scan.primitive.bind(
        *taken, jaxpr=program.jaxpr, length=length, reverse=reverse, num_consts=program.num_consts,
        num_carry=program.num_carry, unroll=unroll, every=every) if does_something else []
    return [*found] if smaller is None else [
        found[i] if where == "result" else operands[i] if where == "operand" else roles.expand(operands[i], length, 0)
        for where, i in smaller.results]


def _hoisting(*, length: int, **params: Any) -> rules.Run:
    """Binds a checkpointed scan; whatever depends only on constants is computed before the loop."""
    return lambda body, operands: run_checkpointed(*hoisted(body, operands, length), length=length, **params)


def _as_scan(eqn: JaxprEqn, body: Body, invars: Sequence[Atom], outvars: Sequence[Var]) -> JaxprEqn:
    """The equation of a scan that isn't checkpointed."""
    params = {name: value for name, value in eqn.params.items() if name != "every"}
    return with_body(eqn.replace(primitive=scan_p.primitive, params=params), body, invars, outvars)


# The first run

class _FirstRun:
    """Stands for a primitive in the equation of what runs now: its results, and the carries that segments start with.

    It is evaluated immediately, in place.
    """

    name = "first_run"
    multiple_results = True

    def bind(self, *operands: Any, split: carrying.Split[Body], segments: Segments, unroll: int) -> list[Any]:
        body = _without_fresh(split)
        consts, carry, xs = body.operands(operands)

        def program(size: int) -> Body:
            def segment(*operands: Any) -> list[Any]:
                _, carry, _ = body.operands(operands)
                outs, ys = body.results(run_scan(body, operands, length=size, reverse=segments.reverse, unroll=unroll))
                return [*outs, *ys, *[roles.expand(x, 1, 0) for x in carry]]
            return Body(stage_closed(segment, avals_of(body, size), "segment"), len(consts), len(carry))

        carry, ys = run_segments(segments, program, consts, carry, [], xs, keeps=True)
        n = len(ys) - len(carry)
        return [*carry, *[segments.join(*parts) for parts in ys[:n]],
                *[segments.starts.join(*parts) for parts in ys[n:]]]


_first_run = _FirstRun()


def _without_fresh(split: carrying.Split[Body]) -> Body:
    """What a split scan computes now, without the residuals."""
    jaxpr, n_consts, n_carry = split.known
    return Body(select_outputs(jaxpr, range(split.unknown_out.count(False))), n_consts, n_carry)


def _step(w: Any, c: Any, x: Any) -> Jaxpr:
    """The step of samples."""
    return stage(lambda w, c, x: [lax.mul(lax.sin(c), lax.add(w, x)), lax.mul(c, x)],
                 [aval_of(w), aval_of(c), aval_of(x)]).jaxpr
