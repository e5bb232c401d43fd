"""`counted_scan`: a scan that stops after a number of steps that is an operand.

It is what reverse mode makes of a loop whose length is only known when it has run: see `bounded_loops`. Its rules are
those of `scan`, for the same kinds of bodies.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from corejax import lax
from corejax.core import (
    Atom,
    Jaxpr,
    JaxprEqn,
    ShapedArray,
    Var,
    aval_of,
    eval_jaxpr,
    here,
    stage,
    stage_closed,
    to_dim,
    vmap_jaxpr,
)
from corejax.errors import CorejaxNotImplementedError, CorejaxTypeError
from corejax.plugin import Sample, carrying, define, hookimpl, roles
from corejax_control_flow import _scan_rules as rules
from corejax_control_flow._bounded_steps import filled_rows, first_active, names_axis, where_active
from corejax_control_flow._scan_body import Body
from corejax_control_flow._scan_checks import check_scan
from corejax_control_flow._scan_lowering import Loop
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
from corejax_control_flow._segments import avals_of
from corejax_control_flow._stepped_lowering import count_type, lower_counted
from corejax_control_flow._types import text_of

__all__ = ["counted_scan"]


class CountedScan:
    """`counted_scan(count, *operands, jaxpr=..., length=..., reverse=..., num_consts=..., num_carry=...)`.

    The first `count` steps of a scan, or with `reverse` those steps from the last to the first. At most `length`; rows
    of outputs that no step writes are zero. If `count` is an array, as many steps as its largest element says are
    taken, and the body changes nothing in those that an element doesn't count.

    >>> body = stage(lambda c, x: [c + x, c * x], [ShapedArray((), "float64")] * 2).jaxpr
    >>> total, products = counted_scan(np.int32(2), 0.0, np.array([1.0, 2.0, 3.0]), jaxpr=body, length=3,
    ...                                reverse=False, num_consts=0, num_carry=1)
    >>> total.item(), products.tolist()
    (3.0, [0.0, 2.0, 0.0])
    """

    name = "counted_scan"
    holds = "loop"
    structural = True
    operands = ("count", "*operands")
    multiple_results = True
    symbolic_zeros = True

    @hookimpl
    def abstract_eval(self, avals: Any, *, jaxpr: Jaxpr, length: int, reverse: bool, num_consts: int, num_carry: int
                      ) -> list[ShapedArray]:
        count, *rest = avals
        body = Body(jaxpr, num_consts, num_carry)
        check_scan(self.name, body, rest, avals_of(body, length), length=length)
        if count.dtype != count_type(length).dtype:
            raise CorejaxTypeError("counted_scan: the number of steps has the wrong type", primitive=self.name,
                                   got=text_of([count]), wanted=text_of([count_type(length)]), where=here())
        carry, ys = body.results(jaxpr.out_avals)
        outs = [*carry, *[stacked(aval, length) for aval in ys]]
        return [carrying.along(aval, count.varying) for aval in outs]

    @hookimpl
    def jvp(self, primals: Any, tangents: Any, *, jaxpr: Jaxpr, num_consts: int, num_carry: int, **params: Any) -> Any:
        run = _counting(primals[0], **params)
        return rules.jvp(Body(jaxpr, num_consts, num_carry), primals[1:], tangents[1:], run)

    @hookimpl
    def transpose(self, cotangents: Any, args: Any, *, jaxpr: Jaxpr, length: int, reverse: bool, num_consts: int,
                  num_carry: int) -> Any:
        run = _counting(args[0], length=length, reverse=not reverse)
        return [None, *rules.transpose(Body(jaxpr, num_consts, num_carry), cotangents, args[1:], run)]

    @hookimpl
    def vmap(self, axis: Any, args: Any, dims: Any, *, jaxpr: Jaxpr, length: int, num_consts: int, num_carry: int,
             **params: Any) -> Any:
        body = Body(jaxpr, num_consts, num_carry)
        count, count_dim = args[0], dims[0]
        if count_dim is not None:
            count = to_dim(count, count_dim, 0, axis.size)
        if count_dim is None or len(aval_of(count).shape) > 1:  # steps that aren't counted change nothing as it is
            return rules.vmap(body, axis, args[1:], dims[1:], _counting(count, length=length, **params))
        if names_axis(jaxpr, axis.name):
            raise CorejaxNotImplementedError(
                "bounded_while_loop: rows that end at different steps can't be added up or exchanged in a derivative "
                "that is mapped", primitive=self.name, hook="vmap", where=here(),
                got=f"a step with a collective along {axis.name!r}",
                wanted="a condition that is the same for all rows, or a step of each row's own",
                todo="differentiate the mapped loop instead of mapping its derivative: grad(vmap(...))")
        consts, carry, xs = body.operands(args[1:])
        const_dims, carry_dims, x_dims = body.operands(dims[1:])
        xs, slice_dims = rules.rows_first(xs, x_dims, axis.size)
        xs = [x if d is None else to_dim(x, d + 1, 1, axis.size) for x, d in zip(xs, slice_dims, strict=True)]
        front = [None if d is None else 0 for d in slice_dims]
        body, ys_out = _masked(body, axis.size, axis.name, (*const_dims, *front), count_type(length))
        spare = _first_rows(count, carrying.marked(xs, [d is not None for d in front]), axis.size)
        carry = [to_dim(x, d, 0, axis.size) for x, d in zip(carry, carry_dims, strict=True)]
        operands = [count, *spare, *consts, *carry, lax.iota(count_type(length).dtype, length), *xs]
        outs = run_counted(body, count, operands, length=length, **params)
        return outs, [*[0] * num_carry, *[None if d is None else d + 1 for d in ys_out]]

    @hookimpl
    def xla_translation(self, ctx: Any, args: Any, *, jaxpr: Jaxpr, length: int, reverse: bool, num_consts: int,
                        num_carry: int) -> Any:
        return lower_counted(Loop(ctx, jaxpr, length, reverse, num_consts, num_carry), args[0], args[1:])

    @hookimpl
    def partial_eval(self, eqn: Any, unknown_in: Any) -> Any:
        if unknown_in[0]:
            return None, eqn, (True,) * len(eqn.outvars), []
        split = split_body(body_of(eqn), tuple(unknown_in[1:]))
        fresh = [carrying.along(stacked(aval, eqn.params["length"]), eqn.invars[0].aval.varying)
                 for aval in split.fresh_avals]
        return carrying.divide(eqn, split._replace(
            known_operands=[0, *[i + 1 for i in split.known_operands]],
            residuals=[("operand", 0), *[_after_count(place) for place in split.residuals]]),
            partial(_with_steps, eqn), fresh)

    @hookimpl
    def recompute(self, eqn: Any, unknown_in: Any, saved_by: carrying.Policy) -> Any:
        if unknown_in[0]:
            return None, eqn, (True,) * len(eqn.outvars), []
        return recompute_scan(eqn, unknown_in, saved_by, leading=1)

    @hookimpl
    def dce(self, eqn: Any, used_out: Any) -> Any:
        found = shorter(body_of(eqn), tuple(used_out))
        if found is not None:
            found = found._replace(used_in=(True, *found.used_in))
        return carrying.shorten(eqn, used_out, found, partial(with_body, eqn))

    @hookimpl
    def effects(self, avals: Any, *, jaxpr: Jaxpr) -> frozenset[Any]:
        return jaxpr.effects

    @hookimpl
    def carry(self, lift: Any, args: Any, *, jaxpr: Jaxpr, num_consts: int, num_carry: int, **params: Any) -> Any:
        count = lift.plain(args[0], "the number of steps of a loop")
        return rules.carry(Body(jaxpr, num_consts, num_carry), lift, args[1:], _counting(count, **params))

    def widened(self, axes: Sequence[Any], *, jaxpr: Jaxpr, num_consts: int, num_carry: int, **params: Any
                ) -> dict[str, Any]:
        """The step for operands that vary along these axes of a mesh."""
        return {"jaxpr": settled(Body(jaxpr, num_consts, num_carry), axes[1:], axes[0]).jaxpr}

    @hookimpl
    def samples(self, rng: Any) -> Iterator[Sample]:
        def sample(count: int, fun: Any, consts: list[Any], carry: list[Any], xs: list[Any], results: Any = None,
                   **params: Any) -> Sample:
            avals = [*[aval_of(x) for x in (*consts, *carry)],
                     *[aval_of(x).update(shape=aval_of(x).shape[1:]) for x in xs]]
            return Sample([np.int32(count), *consts, *carry, *xs], {
                "jaxpr": stage(fun, avals, "step").jaxpr, "num_consts": len(consts), "num_carry": len(carry),
                "length": 3, "reverse": False, **params}, results=results)

        w, c, xs = rng.standard_normal(2), rng.standard_normal(2), rng.standard_normal((3, 2))

        def step(w: Any, c: Any, x: Any) -> list[Any]:
            return [lax.mul(lax.sin(c), lax.add(w, x))]

        after = np.sin(np.sin(c) * (w + xs[0])) * (w + xs[1])
        yield sample(2, step, [w], [c], [xs], [after])
        back = np.sin(np.sin(c) * (w + xs[1])) * (w + xs[0])
        yield sample(2, step, [w], [c], [xs], [back], reverse=True)
        yield sample(3, step, [w], [c], [xs], reverse=True)
        yield sample(0, step, [w], [c], [xs], [c])
        yield sample(3, lambda c, x: [lax.add(c, x), lax.mul(c, x)], [], [c], [xs])
        yield sample(1, lambda x: [lax.sin(x)], [], [], [xs[:1]], length=1)
        yield Sample([np.float64(2.0), w, c, xs], sample(2, step, [w], [c], [xs]).params, error=TypeError)
        yield Sample([np.int32(2), w, c, xs[:2]], sample(2, step, [w], [c], [xs]).params, error=TypeError)


counted_scan: Any = define(CountedScan())


def run_counted(body: Body, count: Any, operands: Sequence[Any], *, length: int, reverse: bool) -> list[Any]:
    """Bind a counted scan, simplified.

    What depends only on constants stays in the steps: without any step, its derivative may be infinite.
    """
    body = settled(body, varying_of(operands), aval_of(count).varying)
    smaller = simplified(body)
    if smaller is None or aval_of(count).shape and "repeat" in [where for where, _ in smaller.results]:
        return _bind(body, count, operands, length, reverse)
    found = _bind(smaller.body, count, [operands[i] for i in smaller.operands], length, reverse)
    return [found[i] if where == "result" else operands[i] if where == "operand" else
            _repeated(operands[i], count, length) for where, i in smaller.results]


def _counting(count: Any, **params: Any) -> rules.Run:
    """Binds a counted scan to a body and operands."""
    return lambda body, operands: run_counted(body, count, operands, **params)


def _repeated(x: Any, count: Any, length: int) -> Any:
    """The same in each of so many rows, and zero in the others."""
    rows = roles.expand(x, length, 0)
    written = lax.lt(lax.iota(count_type(length).dtype, length), lax.broadcast(count, (length,)))
    return where_active(written, rows, roles.zeros(aval_of(rows)))


def _bind(body: Body, count: Any, operands: Sequence[Any], length: int, reverse: bool) -> list[Any]:
    if not body.jaxpr.outvars and not body.jaxpr.effects:
        return []
    return counted_scan.primitive.bind(  # type: ignore[no-any-return]
        count, *operands, jaxpr=body.jaxpr, length=length, reverse=reverse, num_consts=body.num_consts,
        num_carry=body.num_carry)


def _with_steps(eqn: JaxprEqn, body: Body, invars: Sequence[Atom], outvars: Sequence[Var]) -> JaxprEqn:
    """The same loop with another body, whose inputs vary where devices take different numbers of steps."""
    return with_body(eqn, settled(body, varying_of(invars[1:]), invars[0].aval.varying), invars, outvars)


def counted_eqn(eqn: JaxprEqn, body: Body, invars: Sequence[Atom], outvars: Sequence[Var], length: int) -> JaxprEqn:
    """An equation of a counted scan in place of another one; `invars` are the number of steps, then operands."""
    body = settled(body, varying_of(invars[1:]), invars[0].aval.varying)
    return eqn.replace(primitive=counted_scan.primitive, invars=invars, outvars=outvars, effects=body.jaxpr.effects,
                       params={"jaxpr": body.jaxpr, "length": length, "reverse": False, "num_consts": body.num_consts,
                               "num_carry": body.num_carry})


def _after_count(place: carrying.Place) -> carrying.Place:
    """The place of an operand, where the number of steps is the first one."""
    where, i = place
    return (where, i + 1) if where == "operand" else place


def _first_rows(counts: Any, xs: Sequence[Any], size: int) -> list[Any]:
    """What the first step reads of inputs with the batch axis behind that of steps; rows without steps read others'."""
    if not xs:
        return []
    active = lax.gt(counts, roles.zeros(aval_of(counts)))
    first = first_active(active, size)
    return [filled_rows(active, lax.stop_gradient(roles.index(x, 0)), first) for x in xs]


@carrying.remembered
def _masked(body: Body, size: int, name: Any, dims: Sequence[int | None], count: ShapedArray
            ) -> tuple[Body, list[int | None]]:
    """The body for rows that each count steps of their own, and where the batch axis is in each output.

    The numbers of steps are a first constant, and the number of this step is a first input. `dims` are those of
    constants and inputs; each carry has the batch axis in front. Constants after the first are what a row reads of
    inputs with the axis in steps that it doesn't count: something finite, see `bounded_loops`.
    """
    n_consts, n_carry = body.num_consts, body.num_carry
    in_dims = (*dims[:n_consts], *[0] * n_carry, *dims[n_consts:])
    mapped, _ = vmap_jaxpr(body.jaxpr, size, name, in_dims, [0] * len(body.jaxpr.outvars))
    rows = [d is not None for d in dims[n_consts:]]
    fixed, carried, slices = Body(mapped, n_consts, n_carry).operands(mapped.in_avals)
    spare = carrying.marked(slices, rows)

    def step(counts: Any, *operands: Any) -> list[Any]:
        spare_rows = iter(operands[:len(spare)])
        consts, carry, (number, *xs) = Body(mapped, n_consts, n_carry).operands(operands[len(spare):])
        active = lax.lt(lax.broadcast(number, (size,)), counts)
        xs = [where_active(active, x, next(spare_rows)) if row else x for x, row in zip(xs, rows, strict=True)]
        outs = eval_jaxpr(mapped, (), *consts, *carry, *xs)
        old = [*carry, *[roles.zeros(aval_of(y)) for y in outs[n_carry:]]]
        return [where_active(active, new, x) for new, x in zip(outs, old, strict=True)]

    avals = [count.update(shape=(size,)), *spare, *fixed, *carried, count, *slices]
    program = stage_closed(step, avals, mapped.name)
    return Body(program, 1 + len(spare) + n_consts, n_carry), [0] * (len(mapped.outvars) - n_carry)
