"""The primitive `scan`, and how loops are bound to it.

A body takes constants, then the carry, then one slice of each input, and returns the carry and then one slice of each
output. Each rule transforms the body and scans the result. This is simplified before it is bound: values that no step
changes aren't carried, and inputs aren't written again as outputs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from functools import partial
from typing import Any

import numpy as np

from corejax import lax
from corejax.core import (
    EachTurn,
    Jaxpr,
    ShapedArray,
    aval_of,
    context,
    eval_jaxpr,
    here,
    is_holder,
    named_scope,
    stage,
)
from corejax.errors import CorejaxTypeError, CorejaxValueError
from corejax.plugin import Sample, carrying, define, hookimpl, roles
from corejax_control_flow import _scan_rules as rules
from corejax_control_flow._scan_body import Body
from corejax_control_flow._scan_lowering import Loop, lower_scan
from corejax_control_flow._scan_rules import (
    body_of,
    row_of,
    settled,
    shorter,
    simplified,
    split_body,
    stacked,
    with_body,
)
from corejax_control_flow._scan_saving import recompute_scan
from corejax_control_flow._types import all_fit, text_of


class Scan:
    """`scan(*operands, jaxpr=..., length=..., reverse=..., num_consts=..., num_carry=..., unroll=...)`: a loop.

    The function that users call is in `scanning`.
    """

    name = "scan"
    holds = "loop"
    structural = True
    tracks_varying = True
    operands = ("*operands",)
    multiple_results = True
    symbolic_zeros = True

    @hookimpl
    def abstract_eval(self, avals: Any, *, jaxpr: Jaxpr, length: int, reverse: bool, num_consts: int, num_carry: int,
                      unroll: int) -> list[ShapedArray]:
        body = Body(jaxpr, num_consts, num_carry)
        _check(body, avals, length, unroll)
        carry, ys = body.results(jaxpr.out_avals)
        _, given, _ = body.operands(jaxpr.in_avals)
        carry = [carrying.along(aval, old.varying) for aval, old in zip(carry, given, strict=True)]
        return [*carry, *[stacked(aval, length) for aval in ys]]

    @hookimpl
    def jvp(self, primals: Any, tangents: Any, *, jaxpr: Jaxpr, num_consts: int, num_carry: int, **params: Any) -> Any:
        run = partial(run_scan, hoisting=True, **params)
        return rules.jvp(Body(jaxpr, num_consts, num_carry), primals, tangents, run)

    @hookimpl
    def transpose(self, cotangents: Any, args: Any, *, jaxpr: Jaxpr, num_consts: int, num_carry: int, reverse: bool,
                  **params: Any) -> Any:
        run = partial(run_scan, reverse=not reverse, hoisting=True, **params)
        return rules.transpose(Body(jaxpr, num_consts, num_carry), cotangents, args, run)

    @hookimpl
    def vmap(self, axis: Any, args: Any, dims: Any, *, jaxpr: Jaxpr, num_consts: int, num_carry: int, **params: Any
             ) -> Any:
        return rules.vmap(Body(jaxpr, num_consts, num_carry), axis, args, dims, partial(run_scan, **params))

    @hookimpl
    def xla_translation(self, ctx: Any, args: Any, *, jaxpr: Jaxpr, length: int, reverse: bool, num_consts: int,
                        num_carry: int, unroll: int) -> Any:
        return lower_scan(Loop(ctx, jaxpr, length, reverse, num_consts, num_carry), args, unroll)

    @hookimpl
    def partial_eval(self, eqn: Any, unknown_in: Any) -> Any:
        split = split_body(body_of(eqn), tuple(unknown_in))
        fresh = [stacked(aval, eqn.params["length"]) for aval in split.fresh_avals]
        return carrying.divide(eqn, split, partial(with_body, eqn), fresh)

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
        return rules.carry(Body(jaxpr, num_consts, num_carry), lift, args, partial(run_scan, **params, hoisting=True))

    def widened(self, axes: Sequence[Any], *, jaxpr: Jaxpr, num_consts: int, num_carry: int, **params: Any
                ) -> dict[str, Any]:
        """The step for operands that vary along these axes of a mesh."""
        return {"jaxpr": settled(Body(jaxpr, num_consts, num_carry), axes).jaxpr}

    @hookimpl
    def samples(self, rng: Any) -> Iterator[Sample]:
        def sample(fun: Any, consts: list[Any], carry: list[Any], xs: list[Any], results: Any = None, **params: Any
                   ) -> Sample:
            avals = [*map_avals([*consts, *carry]), *[row_of(aval_of(x)) for x in xs]]
            params = {"length": 3, "reverse": False, "unroll": 1, **params}
            return Sample([*consts, *carry, *xs], {"jaxpr": stage(fun, avals, "step").jaxpr, "num_consts": len(consts),
                                                   "num_carry": len(carry), **params}, results=results)

        def map_avals(args: list[Any]) -> list[ShapedArray]:
            return [aval_of(x) for x in args]

        w, c, xs = rng.standard_normal(2), rng.standard_normal(2), rng.standard_normal((3, 2))

        def step(w: Any, c: Any, x: Any) -> list[Any]:
            new = lax.mul(lax.sin(c), lax.add(w, x))
            return [new, lax.mul(new, x)]

        yield sample(step, [w], [c], [xs])
        yield sample(step, [w], [c], [xs], reverse=True, unroll=2)
        yield sample(lambda c, x: [x, lax.add(c, x)], [], [c], [xs], unroll=3)
        yield sample(lambda w, c: [lax.mul(c, w)], [w], [c], [])
        yield sample(lambda x: [lax.sin(x)], [], [], [xs])
        yield sample(lambda w, v, c, n, x, k: [
            lax.add(lax.mul(c, v), lax.mul(w, x)), lax.add(n, k), lax.mul(lax.convert_element_type(n, c.dtype), c), n],
            [w[0], w[1]], [c[0], np.int32(0)], [xs[:, 0], np.arange(3, dtype=np.int32)])
        yield sample(step, [w], [c], [xs[:0]], length=0)
        for length in (0, 1):
            few = sample(lambda c, x: [lax.mul(c, x), c], [], [c[0]], [xs[:length, 0]], length=length)
            yield Sample([0.5, *few.args[1:]], few.params)  # weaker than what the body takes
        yield sample(step, [w], [c], [xs[:1]], length=1)
        products = [c * xs[0], (c + xs[0]) * xs[1], (c + xs[0] + xs[1]) * xs[2]]
        yield sample(lambda w, c, x: [lax.add(c, x), w, *[lax.mul(c, x)] * 2], [w], [c], [xs],
                     [c + xs[0] + xs[1] + xs[2], [w, w, w], products, products])
        rows = rng.standard_normal((5, 2))
        sums = c + np.cumsum(rows[::-1], 0)[::-1]  # of each row and those after it
        before = [*sums[1:], c]
        yield sample(lambda c, x: [lax.add(c, x), lax.mul(c, x)], [], [c], [rows], [sums[0], before * rows],
                     reverse=True, unroll=2, length=5)
        wrong = sample(step, [w], [c], [xs], length=4)
        yield Sample(wrong.args, wrong.params, error=TypeError)
        right = sample(step, [w], [c], [xs])
        yield Sample(right.args, {**right.params, "unroll": 0}, error=ValueError)
        bare = sample(lambda w, c: [lax.mul(c, w)], [w], [c], [])
        yield Sample(bare.args, {**bare.params, "length": -1}, error=ValueError)
        yield Sample(right.args, {**right.params, "num_consts": -1}, error=ValueError)


#: Users find it as `lax.scan.primitive`.
scan_p: Any = define(Scan(), name="scan", module="corejax_control_flow.scanning")


# Binding

def run_scan(body: Body, operands: Sequence[Any], *, length: int, reverse: bool, unroll: int, hoisting: bool = False
             ) -> list[Any]:
    """Bind a scan, simplified; with `hoisting`, whatever depends only on constants is computed before the loop."""
    body = settled(body, [aval_of(x).varying for x in operands])
    if length == 0 or (length == 1 and not context.trace.is_staging and not any(map(is_holder, operands))):
        return _without_loop(body, operands, length)
    if hoisting:
        body, operands = hoisted(body, operands, length)
    simpler = simplified(body)
    if simpler is None:
        return _bind(body, operands, length, reverse, unroll)
    found = _bind(simpler.body, [operands[i] for i in simpler.operands], length, reverse, unroll)
    return [found[i] if where == "result" else operands[i] if where == "operand" else
            roles.expand(operands[i], length, 0) for where, i in simpler.results]


def hoisted(body: Body, operands: Sequence[Any], length: int) -> tuple[Body, Sequence[Any]]:
    """A body for which whatever depends only on constants is computed before the loop, and its operands."""
    parts = carrying.hoist(body.jaxpr, body.num_consts)
    if parts is None:
        return body, operands
    consts, rest = operands[: body.num_consts], operands[body.num_consts:]
    with named_scope(EachTurn("each_turn")) if length > 1 else nullcontext():
        found = eval_jaxpr(parts[0], (), *consts)
    return Body(parts[1], body.num_consts + len(found), body.num_carry), [*consts, *found, *rest]


def _without_loop(body: Body, operands: Sequence[Any], length: int) -> list[Any]:
    """The results of a scan of one step or none, which isn't worth compiling."""
    consts, carry, xs = body.operands(operands)
    carry_avals, y_avals = body.results(body.jaxpr.out_avals)
    ys: list[Any] = []
    if length:
        outs = carrying.run(body.jaxpr, [*consts, *carry, *[roles.index(x, 0) for x in xs]])
        carry, ys = body.results(outs)
        ys = [roles.expand(y, 1, 0) for y in ys]
    else:
        ys = [roles.zeros(stacked(aval, 0)) for aval in y_avals]
    return [*[roles.convert(c, aval.dtype, aval.weak_type) for c, aval in zip(carry, carry_avals, strict=True)], *ys]


def _bind(body: Body, operands: Sequence[Any], length: int, reverse: bool, unroll: int) -> list[Any]:
    if not body.jaxpr.outvars and not body.jaxpr.effects:
        return []
    return scan_p.primitive.bind(  # type: ignore[no-any-return]
        *operands, jaxpr=body.jaxpr, length=length, reverse=reverse, num_consts=body.num_consts,
        num_carry=body.num_carry, unroll=unroll)


# Checks

def _check(body: Body, avals: Sequence[ShapedArray], length: int, unroll: int) -> None:
    """Raise if these aren't valid operands and body of a scan, or it can't be unrolled like that."""
    if unroll < 1:
        raise CorejaxValueError("scan: a round of the loop must have at least one step", primitive="scan",
                                where=here(), got=f"unroll={unroll}", wanted="at least 1", todo="give unroll=1")
    if length < 0:
        raise CorejaxValueError("scan: the number of steps can't be negative", primitive="scan", where=here(),
                                got=f"length={length}", wanted="a number from 0 on", todo="check how it is computed")
    if min(body.num_consts, body.num_carry) < 0:
        raise CorejaxValueError("scan: the numbers of constants and of carried values can't be negative",
                                primitive="scan", where=here(), got=(body.num_consts, body.num_carry),
                                wanted="numbers from 0 on", todo="count the first operands, and those after them")
    consts, carry, xs = body.operands(body.jaxpr.in_avals)
    wanted = [*consts, *carry, *[stacked(aval, length) for aval in xs]]
    if not all_fit(avals, wanted):
        raise CorejaxTypeError("scan: the operands don't fit the body", primitive="scan", where=here(),
                               got=text_of(avals, "no operands"), wanted=text_of(wanted, "no operands"),
                               todo="pass constants, carry, and inputs with one slice for each step")
    carry_out, _ = body.results(body.jaxpr.out_avals)
    if not all_fit(carry_out, carry):
        raise CorejaxTypeError("scan: the body returns a different carry than it takes", primitive="scan", where=here(),
                               got=text_of(carry_out, "none"), wanted=text_of(carry, "none"))
