"""`segmented_scan`: the steps of a checkpointed scan that wait for tangents, and how reverse mode takes them back.

It is transposed segment by segment, from the last to the first: the steps of a segment are computed again from its
start, and then transposed. The sums of cotangents pass from one segment to the next, so they are added up in the order
in which scan adds them up.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from corejax import lax
from corejax.core import (
    Jaxpr,
    Linear,
    ShapedArray,
    aval_of,
    here,
    instantiate,
    stage,
    stage_closed,
)
from corejax.errors import CorejaxValueError
from corejax.plugin import Sample, carrying, define, hookimpl, roles
from corejax_control_flow._scan_body import Body
from corejax_control_flow._scan_checks import check_scan
from corejax_control_flow._scan_primitive import run_scan
from corejax_control_flow._scan_rules import backward, settled, split_body, stacked
from corejax_control_flow._segments import Segments, avals_of, run_segments

__all__ = ["segmented_scan"]

Flags = carrying.Flags


class SegmentedScan:
    """`segmented_scan(*operands, ..., unknown=...)`: those results of a checkpointed scan that depend on tangents.

    `unknown` says which operands of the scan are tangents, a carry as it is in every step. In place of a carry that
    isn't, it takes what that is at the start of each segment; what it is in between is computed again.

    >>> sample = next(segmented_scan.primitive.samples(np.random.default_rng(0)))
    >>> len(segmented_scan(*sample.args, **sample.params))
    2
    """

    name = "segmented_scan"
    structural = True
    operands = ("*operands",)
    multiple_results = True

    @hookimpl
    def abstract_eval(self, avals: Any, *, jaxpr: Jaxpr, length: int, reverse: bool, num_consts: int, num_carry: int,
                      unroll: int, every: int, unknown: Flags) -> list[ShapedArray]:
        body = Body(jaxpr, num_consts, num_carry)
        if len(unknown) != len(jaxpr.invars) or min(every, length) < 1:
            raise CorejaxValueError("segmented_scan: a number is wrong", primitive=self.name, where=here(),
                                    got=f"length={length}, every={every}, and {len(unknown)} flags",
                                    wanted=f"at least 1, and {len(jaxpr.invars)} flags", todo="check these params")
        starts = -(-length // every)
        consts, carry, xs = body.operands(body.jaxpr.in_avals)
        _, of_carry, _ = body.operands(unknown)
        wanted = [*consts, *[aval if u else stacked(aval, starts) for aval, u in zip(carry, of_carry, strict=True)],
                  *[stacked(aval, length) for aval in xs]]
        check_scan(self.name, body, avals, wanted, unroll=unroll)
        unknown_out = split_body(body, unknown).unknown_out
        if unknown_out[:num_carry] != tuple(of_carry):
            raise CorejaxValueError("segmented_scan: a carry is unknown after a step if it is before", where=here(),
                                    primitive=self.name, got=of_carry, wanted=[*unknown_out[:num_carry]],
                                    todo="say of each carry whether it depends on a tangent in any step")
        carry, ys = body.results(jaxpr.out_avals)
        return carrying.marked([*carry, *[stacked(aval, length) for aval in ys]], unknown_out)

    @hookimpl
    def decompose(self, args: Any, *, jaxpr: Jaxpr, length: int, reverse: bool, num_consts: int, num_carry: int,
                  unroll: int, every: int, unknown: Flags) -> list[Any]:
        body = Body(jaxpr, num_consts, num_carry)
        segments = Segments.of(length, every, reverse)
        consts, carry, xs = body.operands(args)
        _, of_carry, _ = body.operands(unknown)
        dots, starts = carrying.marked(carry, of_carry), carrying.marked(carry, [not u for u in of_carry])

        def program(size: int) -> Body:
            return _tangents(body, unknown, size, reverse, unroll)

        dots, ys = run_segments(segments, program, consts, dots, starts, xs)
        return [*dots, *[segments.join(*parts) for parts in ys]]

    @hookimpl
    def transpose(self, cotangents: Any, args: Any, *, jaxpr: Jaxpr, length: int, reverse: bool, num_consts: int,
                  num_carry: int, unroll: int, every: int, unknown: Flags) -> list[Any]:
        body = Body(jaxpr, num_consts, num_carry)
        segments, nonzero = Segments.of(length, every, reverse), carrying.nonzero(cotangents)
        found = _backward_of(body, unknown, nonzero)
        of_consts, of_carry, of_xs = body.operands([not u for u in unknown])
        consts, carry, xs = body.operands(args)
        cts = [*[roles.zeros(aval_of(args[i]).tangent) for i in found.consts],
               *[instantiate(ct) for ct, nz in zip(cotangents, found.carry_nonzero, strict=False) if nz]]

        def program(size: int) -> Body:
            return _cotangents(body, unknown, nonzero, size, reverse, unroll)

        cts, ct_xs = run_segments(
            segments, program, carrying.marked(consts, of_consts), cts, carrying.marked(carry, of_carry),
            [*carrying.marked(xs, of_xs), *carrying.without_zeros(cotangents[of_carry.count(False):])], backward=True)
        back: list[Any] = [None] * len(args)
        dots = [i for i in range(body.num_consts, body.first_input) if unknown[i]]
        for i, ct in zip([*found.consts, *carrying.marked(dots, found.carry_nonzero)], cts, strict=True):
            back[i] = ct
        for i, parts in zip(found.xs, ct_xs, strict=True):
            back[i] = segments.join(*parts)
        # a tangent that is known after all, such as a carry that starts as zero, gets none
        back = [ct if type(x) is Linear else None for ct, x in zip(back, args, strict=True)]
        return back

    def widened(self, axes: Sequence[Any], *, jaxpr: Jaxpr, num_consts: int, num_carry: int, **params: Any
                ) -> dict[str, Any]:
        """The step for operands that vary along these axes of a mesh."""
        return {"jaxpr": settled(Body(jaxpr, num_consts, num_carry), axes).jaxpr}

    @hookimpl
    def samples(self, rng: Any) -> Iterator[Sample]:
        w, c, xs = rng.standard_normal(2), rng.standard_normal(2), rng.standard_normal((5, 2))
        c_dot, starts = rng.standard_normal(2), rng.standard_normal((3, 2))
        step = stage(lambda w, c, c_dot, x: [lax.mul(lax.sin(c), w), lax.mul(lax.mul(lax.cos(c), w), c_dot),
                                             lax.mul(c_dot, x)], [aval_of(x) for x in (w, c, c_dot, xs[0])]).jaxpr
        params = {"jaxpr": step, "length": 5, "reverse": False, "num_consts": 1, "num_carry": 2, "unroll": 1,
                  "every": 2, "unknown": (False, False, True, False)}

        def results(order: Sequence[int], every: int) -> list[Any]:
            dot, dots, value, values = c_dot, [c_dot] * 5, c, starts[::-1] if order[0] else starts
            for k, i in enumerate(order):
                value = values[k // every] if k % every == 0 else np.sin(value) * w
                dots[i], dot = dot * xs[i], np.cos(value) * w * dot
            return [dot, np.stack(dots)]

        yield Sample([w, starts, c_dot, xs], params, results=results(range(5), 2))
        yield Sample([w, starts, c_dot, xs], {**params, "reverse": True}, results=results(range(4, -1, -1), 2))
        yield Sample([w, starts[:2], c_dot, xs], {**params, "every": 3, "unroll": 2})
        linear = stage(lambda c, x: [lax.mul(c, x)], [aval_of(c), aval_of(c)]).jaxpr
        yield Sample([c_dot, xs[:2]], {**params, "jaxpr": linear, "length": 2, "num_consts": 0, "num_carry": 1,
                                       "unknown": (True, False)})
        yield Sample([w, c, c_dot, xs], params, error=TypeError)
        yield Sample([w, starts, c_dot, xs], {**params, "every": 0}, error=ValueError)


segmented_scan: Any = define(SegmentedScan())


@carrying.remembered
def _tangents(body: Body, unknown: Flags, size: int, reverse: bool, unroll: int) -> Body:
    """The program of a segment: (constants, tangents, carries, inputs) -> (tangents, outputs)."""
    split = split_body(body, unknown)
    consts, carry, xs = body.operands(range(len(unknown)))
    dots, values = [i for i in carry if unknown[i]], [i for i in carry if not unknown[i]]
    order = [*consts, *dots, *values, *xs]
    avals = avals_of(body, size)

    def segment(*operands: Any) -> list[Any]:
        env = dict(zip(order, operands, strict=True))
        return run_scan(split.staged, _staged_operands(split, env, size, reverse, unroll), length=size,
                        reverse=reverse, unroll=unroll)
    return Body(stage_closed(segment, [avals[i] for i in order], "segment"), len(consts), len(dots))


def _staged_operands(split: carrying.Split[Body], env: dict[int, Any], size: int, reverse: bool, unroll: int
                     ) -> list[Any]:
    """The operands of what waited, in a segment: residuals are computed again. `env` has those of the whole scan."""
    found = run_scan(split.known, [env[i] for i in split.known_operands], length=size, reverse=reverse, unroll=unroll)
    results = [i for i, u in enumerate(split.unknown_out) if not u]
    place = {("result", i): x for i, x in zip(results, found, strict=False)}
    place.update({("fresh", i): x for i, x in enumerate(found[len(results):])})
    return [env.get(i) if where == "operand" else place[where, i] for where, i in split.places]


class _Transposed(NamedTuple):
    """The scan that runs backward, and the operands of the whole scan for which it has cotangents."""

    body: Body
    carry_nonzero: Flags
    consts: list[int]
    xs: list[int]


@carrying.remembered
def _backward_of(body: Body, unknown: Flags, nonzero: Flags) -> _Transposed:
    """What reverse mode makes of the steps that waited."""
    split = split_body(body, unknown)
    found = backward(split.staged, _linear(split, unknown), nonzero)
    consts, _, xs = split.staged.operands([
        i if where == "operand" and unknown[i] else None for where, i in split.places])
    return _Transposed(found.body, found.carry_nonzero,
                       carrying.marked([i for i in consts if i is not None], found.consts_nonzero),
                       carrying.marked([i for i in xs if i is not None], found.xs_nonzero))


def _linear(split: carrying.Split[Body], unknown: Flags) -> Flags:
    """Which operands of what waited are tangents."""
    return tuple([where == "operand" and unknown[i] for where, i in split.places])


@carrying.remembered
def _cotangents(body: Body, unknown: Flags, nonzero: Flags, size: int, reverse: bool, unroll: int) -> Body:
    """The program of a segment backward: (constants, cotangents, carries, inputs, those of outputs) -> cotangents."""
    split, found = split_body(body, unknown), _backward_of(body, unknown, nonzero)
    known = [[i for i in group if not unknown[i]] for group in body.operands(range(len(unknown)))]
    consts, carry, xs = known
    avals = avals_of(body, size)
    _, cts, rows = found.body.operands(found.body.jaxpr.in_avals)
    n_carry = split.staged.num_carry
    n_rows = sum(nonzero[n_carry:])
    of_consts, of_carry, of_xs = split.staged.operands(_linear(split, unknown))

    def segment(*operands: Any) -> list[Any]:
        known = iter(operands)
        env = {i: next(known) for i in consts}
        given = [next(known) for _ in cts]
        env.update({i: next(known) for i in (*carry, *xs)})
        values = _staged_operands(split, env, size, reverse, unroll)
        fixed, _, slices = split.staged.operands(values)
        return run_scan(found.body, [
            *[x for x, u in zip(fixed, of_consts, strict=True) if not u], *given, *known,
            *[x for x, u in zip(slices, of_xs, strict=True) if not u]],
            length=size, reverse=not reverse, unroll=unroll, hoisting=True)

    in_avals = [*[avals[i] for i in consts], *cts, *[avals[i] for i in (*carry, *xs)],
                *[stacked(aval, size) for aval in rows[:n_rows]]]
    return Body(stage_closed(segment, in_avals, "segment"), len(consts), len(cts))
