"""The programs of a bounded while loop, and what rules make of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from corejax import lax
from corejax.core import Jaxpr, aval_of, eval_jaxpr, stage_closed, subjaxprs, vmap_jaxpr
from corejax.ir.surgery import dce
from corejax.plugin import carrying, roles
from corejax_control_flow._scan_body import Body
from corejax_control_flow._stepped_lowering import count_type
from corejax_control_flow.looping import while_loop

Flags = carrying.Flags


class Bounded(NamedTuple):
    """A loop: the program of a step, of constants and the carry; and the condition, of its own constants and the carry.

    A step returns the carry and then outputs. If the condition returns an array, the loop goes on while it holds
    anywhere, and its steps change nothing where it doesn't.
    """

    jaxpr: Jaxpr
    cond_jaxpr: Jaxpr
    cond_nconsts: int
    num_consts: int
    num_carry: int
    length: int

    @property
    def idles(self) -> bool:
        """Whether steps change nothing where the condition doesn't hold."""
        return bool(self.cond_jaxpr.out_avals[0].shape)

    @property
    def body(self) -> Body:
        """The step as that of a scan without inputs."""
        return Body(self.jaxpr, self.num_consts, self.num_carry)

    def operands(self, items: Sequence[Any]) -> tuple[list[Any], list[Any], list[Any]]:
        """The items for the constants of the condition, for those of the step, and for the carry."""
        split = self.cond_nconsts + self.num_consts
        return [*items[: self.cond_nconsts]], [*items[self.cond_nconsts:split]], [*items[split:]]

    def with_body(self, body: Body, cond: Jaxpr, cond_nconsts: int | None = None) -> Bounded:
        """The same loop with other programs."""
        n = self.cond_nconsts if cond_nconsts is None else cond_nconsts
        return Bounded(body.jaxpr, cond, n, body.num_consts, body.num_carry, self.length)


# Dead code

@carrying.remembered
def shorter(loop: Bounded, used_out: Flags) -> carrying.Shorter[Bounded] | None:
    """The loop without unused parts; None if it has none. A carry is used if the condition or another one needs it."""
    n, n_consts = loop.cond_nconsts, loop.num_consts
    carry_out, ys = loop.body.results(used_out)

    def step(carry: Flags) -> tuple[tuple[Jaxpr, Flags], Flags]:
        smaller, used = dce(loop.jaxpr, [*carry, *ys], [*[False] * n_consts, *carry])
        return (smaller, used), used[n_consts:]

    needed = carrying.either(carry_out, dce(loop.cond_jaxpr, (True,))[1][n:])
    carry, (smaller, used) = carrying.fixed_point(needed, step)
    cond, cond_used = dce(loop.cond_jaxpr, (True,), [*[False] * n, *carry])
    if smaller is loop.jaxpr and cond is loop.cond_jaxpr:
        return None
    body = Body(smaller if smaller is not loop.jaxpr else smaller.replace(), sum(used[:n_consts]), sum(carry))
    return carrying.Shorter(loop.with_body(body, cond, sum(cond_used[:n])),
                            (*cond_used[:n], *used[:n_consts], *carry), (True, *carry, *ys))


# Rows that end at different steps

def where_active(active: Any, new: Any, old: Any) -> Any:
    """The new values in the rows that are active, the old ones in the others; weak if the new ones are."""
    aval = aval_of(new)
    if len(aval.shape) > 1:
        active = lax.broadcast_in_dim(active, aval.shape, (0,))
    chosen = lax.select_n(active, old, new)
    return chosen if chosen.aval.weak_type is aval.weak_type else roles.convert(chosen, aval.dtype, aval.weak_type)


@carrying.remembered
def masked_rows(loop: Bounded, size: int, name: Any, dims: Sequence[int | None]
                ) -> tuple[Bounded, Jaxpr]:
    """The loop for rows, and the condition of each row.

    It carries which rows go on, how many steps each has taken, the states, and the states at which the last step of
    each row is taken. If steps add up rows, or exchange them, those that have ended take part with their last states.
    """
    exchanges = names_axis(loop.jaxpr, name)
    n_cond, n_consts, n = loop.cond_nconsts, loop.num_consts, loop.num_carry
    cond, _ = vmap_jaxpr(loop.cond_jaxpr, size, name, (*dims[:n_cond], *[0] * n), (0,))
    body, _ = vmap_jaxpr(loop.jaxpr, size, name, (*dims[n_cond:], *[0] * n), [0] * len(loop.jaxpr.outvars))
    count = count_type(loop.length)

    def step(*operands: Any) -> list[Any]:
        cond_consts, consts = operands[:n_cond], operands[n_cond:n_cond + n_consts]
        active, counts, *states = operands[n_cond + n_consts:]
        old = states[:n]
        at = old if exchanges else [
            where_active(active, x, last) for x, last in zip(old, states[n:], strict=True)]
        outs = eval_jaxpr(body, (), *consts, *at)
        new = [where_active(active, x, last) for x, last in zip(outs, old, strict=False)]
        (going,) = eval_jaxpr(cond, (), *cond_consts, *new)
        counts = lax.add(counts, lax.convert_element_type(active, count.dtype))
        ys = [where_active(active, y, roles.zeros(aval_of(y))) for y in outs[n:]]
        return [going, counts, *new, *at, *ys]

    carry = body.in_avals[n_consts:]
    going_on = cond.out_avals[0]
    flags = [going_on, carrying.along(count.update(shape=(size,)), going_on.varying), *carry, *carry]
    consts = [*cond.in_avals[:n_cond], *body.in_avals[:n_consts]]
    program = stage_closed(step, [*consts, *flags], body.name)
    going = stage_closed(lambda active, *_: [active], flags, cond.name)
    masked = Bounded(program, going, 0, len(consts), len(flags), loop.length)
    return masked, cond


@carrying.remembered
def names_axis(jaxpr: Jaxpr, name: Any) -> bool:
    """Whether an equation has this axis in its params, as those do that compute with all rows."""
    if name is None:
        return False
    params = [value for eqn in jaxpr.eqns for value in eqn.params.values() if not isinstance(value, Jaxpr)]
    named = [type(x) is type(name) and x == name for value in params
             for x in (value if type(value) is tuple else (value,))]
    return True in named or any([names_axis(inner, name) for eqn in jaxpr.eqns for inner in subjaxprs(eqn.params)])


def first_active(active: Any, size: int) -> Any:
    """The first row that is active, or the last one if none is."""
    if not size:
        return np.int32(0)

    def idle(i: Any) -> Any:
        here = lax.dynamic_index_in_dim(active, i, 0, keepdims=False)
        return lax.bitwise_and(lax.lt(i, np.int32(size - 1)), lax.bitwise_not(here))
    return while_loop(idle, lambda i: lax.add(i, np.int32(1)), np.int32(0))


def filled_rows(active: Any, x: Any, first: Any) -> Any:
    """The rows that are active; the first of them instead of the others."""
    if not aval_of(x).shape[0]:
        return x
    row = lax.stop_gradient(lax.dynamic_index_in_dim(x, first, 0))
    return where_active(active, x, lax.broadcast_in_dim(row, aval_of(x).shape, tuple(range(len(aval_of(x).shape)))))
