"""`bounded_while_loop`: a while loop of at most so many steps, which has a reverse mode.

The primitive carries a state like `while_loop`, and can also write out a slice per step, like `scan`. Partial
evaluation divides it into a loop that runs now, counts its steps and writes out what their derivatives need, and a
`counted_scan` of that many steps, which waits for tangents and which reverse mode runs backward. The primitives'
rules give loops of these two kinds again, so there are derivatives of every order.

Nothing in this saves memory. The public function does: it nests such loops, each but the innermost over segments, whose
bodies are checkpointed calls of the loop within.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from corejax import lax
from corejax.core import (
    ArrayLike,
    Jaxpr,
    JaxprEqn,
    ShapedArray,
    Var,
    aval_of,
    dtypes,
    eval_jaxpr,
    here,
    instantiate,
    stage,
    stage_closed,
    to_dim,
    vmap_jaxpr,
)
from corejax.errors import ConcretizationError, CorejaxTypeError, CorejaxValueError
from corejax.ir.surgery import dce
from corejax.plugin import Sample, carrying, define, hookimpl, not_linear
from corejax_control_flow._bounded_steps import Bounded, filled_rows, first_active, masked_rows, names_axis, shorter
from corejax_control_flow._python_loops import Carried
from corejax_control_flow._scan_body import Body
from corejax_control_flow._scan_lowering import Loop as Lowered
from corejax_control_flow._scan_rules import (
    batched,
    forward,
    lifted,
    settled as settled_body,
    split_body,
    stacked,
    varying_of,
)
from corejax_control_flow._scan_saving import saving_scan
from corejax_control_flow._stepped_lowering import count_type, lower_bounded
from corejax_control_flow._types import all_fit, all_match, text_of
from corejax_control_flow._while_rules import Loop, settled
from corejax_control_flow.checkpointing import bind_checkpoint
from corejax_control_flow.counted_scanning import counted_eqn
from corejax_control_flow.looping import bind_simplified, check_condition, check_functions, staged_loop
from corejax_control_flow.scanning import Carry

__all__ = ["bounded_while_loop"]

Flags = carrying.Flags


class BoundedWhileLoop:
    """`bounded_while_loop(cond_fun, body_fun, init_val, *, max_steps, checkpoints=None)`: `while_loop`, differentiable.

    Applies `body_fun` while `cond_fun` holds, as `while_loop` does and with the same results, but stops after
    `max_steps` steps if it still holds then. That bound, a Python integer, makes reverse mode possible; it costs no
    time, as no step is taken after the condition fails, forward or backward.

    Reverse mode keeps about `2 * sqrt(max_steps)` states and computes each step twice. `checkpoints` is how many may be
    kept at once: with `max_steps` of them nothing is computed again, and with `2 * n` if `n * n >= max_steps`, or
    `3 * n` if `n * n * n >= max_steps`, and so on, each step is computed 2, or 3, or so many times. Forward mode keeps
    nothing. Under `vmap`, each element stops when its own condition says so, and no step is evaluated at a state that
    the loop of no element reaches.

    >>> def root(a):
    ...     return lax.bounded_while_loop(lambda x: abs(x * x - a) > 1e-9, lambda x: (x + a / x) / 2.0, a, max_steps=50)
    >>> root(9.0).item(), lax.bounded_while_loop(lambda n: n < 100, lambda n: n + 1, 0, max_steps=9).item()
    (3.0..., 9)
    >>> import corejax as cj
    >>> abs(cj.grad(root)(9.0).item() - 1 / 6) < 1e-6
    True
    """

    name = "bounded_while_loop"
    holds = "loop"
    structural = True
    multiple_results = True
    symbolic_zeros = True

    transpose = not_linear("a loop whose condition depends on a value is not linear in it")

    def function(self, bind: Any) -> Any:
        def bounded_while_loop(cond_fun: Callable[[Any], ArrayLike], body_fun: Callable[[Any], Carry], init_val: Any, *,
                               max_steps: int, checkpoints: int | None = None) -> Carry:
            most = _integer("max_steps", max_steps, 1)
            sizes = segment_sizes(most, checkpoints)
            if carrying.runs_python():
                check_functions("bounded_while_loop", cond_fun, body_fun)
                started = Carried("bounded_while_loop: the body", init_val, "init_val")
                if started.ends(cond_fun, body_fun, partial(check_condition, "bounded_while_loop"), most):
                    return started.result  # type: ignore[no-any-return]
                # where the condition is hidden, so is how many steps are left: the loop begins again
            body, loop, operands = staged_loop("bounded_while_loop", cond_fun, body_fun, init_val)

            def bind(loop: Loop, operands: list[Any]) -> list[Any]:
                ends = loop.cond.out_avals[0].varying
                if ends:  # devices that take different numbers of steps must not wait for each other within one
                    operands = [carrying.varied(x, ends) for x in operands]
                    loop = settled(loop, [aval_of(x).varying for x in operands])
                return _bind_nested(loop, operands, most, sizes)
            return body.unflatten(bind_simplified(loop, operands, bind))  # type: ignore[no-any-return]
        return bounded_while_loop

    @hookimpl
    def abstract_eval(self, avals: Any, *, jaxpr: Jaxpr, cond_jaxpr: Jaxpr, cond_nconsts: int, num_consts: int,
                      num_carry: int, length: int) -> list[ShapedArray]:
        loop = Bounded(jaxpr, cond_jaxpr, cond_nconsts, num_consts, num_carry, length)
        _check(loop, avals)
        ends = cond_jaxpr.out_avals[0].varying  # where devices end at different steps
        carry, ys = loop.body.results(jaxpr.out_avals)
        return [carrying.along(aval, ends) for aval in (
            count_type(length), *carry, *[stacked(aval, length) for aval in ys])]

    @hookimpl
    def jvp(self, primals: Any, tangents: Any, **params: Any) -> Any:
        loop = Bounded(**params)
        found = forward(loop.body, carrying.nonzero(tangents[loop.cond_nconsts:]))
        _, const_dots, carry_dots = loop.operands(tangents)
        carry_dots = [instantiate(t) if nz else t for t, nz in zip(carry_dots, found.carry_nonzero, strict=True)]
        dots = [Var(aval.tangent) for aval in carrying.marked(loop.jaxpr.out_avals[:loop.num_carry],
                                                              found.carry_nonzero)]
        cond = loop.cond_jaxpr.replace(invars=[*loop.cond_jaxpr.invars, *dots])
        outs = bind_bounded(loop.with_body(found.body, cond), carrying.with_tangents(
            loop.operands(primals), ([], const_dots, carry_dots)))
        return carrying.part_tangents(outs, ([False], found.carry_nonzero, found.ys_nonzero))

    @hookimpl
    def vmap(self, axis: Any, args: Any, dims: Any, **params: Any) -> Any:
        loop = Bounded(**params)
        cond_consts, consts, carry = loop.operands(args)
        cond_dims, const_dims, carry_dims = loop.operands(dims)
        found = batched(loop.body, axis.size, axis.name, (*const_dims, *carry_dims))
        cond, (pred,) = vmap_jaxpr(loop.cond_jaxpr, axis.size, axis.name, (*cond_dims, *found.carry))
        if pred is not None and not loop.idles:
            if loop.jaxpr.effects or loop.cond_jaxpr.effects:
                return carrying.one_by_one(bounded_while_loop.primitive, axis, args, dims, params)
            return _each_on_its_own(loop, axis, args, dims)
        carry = [x if wanted is None else to_dim(x, d, wanted, axis.size)
                 for x, d, wanted in zip(carry, carry_dims, found.carry, strict=True)]
        outs = bind_bounded(loop.with_body(found.body, cond), [*cond_consts, *consts, *carry])
        return outs, [None, *found.carry, *[None if d is None else d + 1 for d in found.ys]]

    @hookimpl
    def xla_translation(self, ctx: Any, args: Any, **params: Any) -> Any:
        loop = Bounded(**params)
        lowered = Lowered(ctx, loop.jaxpr, loop.length, False, loop.num_consts, loop.num_carry)
        n = loop.cond_nconsts
        return lower_bounded(lowered, loop.cond_jaxpr, [*args[:n]], args[n:])

    @hookimpl
    def partial_eval(self, eqn: Any, unknown_in: Any) -> Any:
        loop = Bounded(**eqn.params)
        of_cond, of_consts, of_carry = loop.operands(unknown_in)
        n = loop.cond_nconsts
        split = split_body(loop.body, (*of_consts, *of_carry))
        known_cond = _known_cond(loop, (*of_cond, *split.unknown_out[:loop.num_carry]))
        if known_cond is None:
            return None, eqn, (True,) * len(eqn.outvars), []
        cond, reads = known_cond
        fresh = _rows(split.fresh_avals, loop.length, cond)
        shifted = {"operand": n, "result": 1, "fresh": 0}

        def remake(part: Body, invars: Any, outvars: Any) -> JaxprEqn:
            if part is split.staged:
                return counted_eqn(eqn, part, invars, outvars, loop.length)
            return _with_loop(eqn, loop.with_body(part, cond, sum(reads)), invars, outvars)

        return carrying.divide(eqn, split._replace(
            unknown_out=(False, *split.unknown_out),
            known_operands=[*carrying.marked(range(n), reads), *[i + n for i in split.known_operands]],
            residuals=[("result", 0), *[(where, i + shifted[where]) for where, i in split.residuals]]), remake, fresh)

    @hookimpl
    def recompute(self, eqn: JaxprEqn, unknown_in: Any, saved_by: carrying.Policy) -> Any:
        loop = Bounded(**eqn.params)
        of_cond, of_consts, of_carry = loop.operands(unknown_in)
        found, unknown = saving_scan(loop.body, (*of_consts, *of_carry), saved_by)
        known_cond = _known_cond(loop, (*of_cond, *found.unknown_out[:loop.num_carry]))
        if known_cond is None:
            return None, eqn, (True,) * len(eqn.outvars), []
        cond, reads = known_cond
        # what is saved is read step by step, and effects happen once: by a scan of as many steps, without condition
        saved = [("result", 0), *[(where, i + (where == "result")) for where, i in found.saved]]
        counted = len(saved) > 1 or bool(eqn.effects)

        def remake(part: Body, invars: Any, outvars: Any) -> JaxprEqn:
            if part is found.known:
                return _with_loop(eqn, loop.with_body(part, cond, sum(reads)), invars, outvars)
            if not counted:
                return eqn
            (count, *rows), own = invars[:len(saved)], invars[len(saved) + loop.cond_nconsts:]
            return counted_eqn(eqn, part, [count, *own, *rows], outvars[1:], loop.length)

        return carrying.recompute(
            eqn, found._replace(unknown_out=(False, *found.unknown_out), saved=saved if counted else []),
            (*[not read for read in reads], *unknown), remake,
            _rows(found.fresh_avals, loop.length, cond))

    @hookimpl
    def dce(self, eqn: Any, used_out: Any) -> Any:
        return carrying.shorten(eqn, used_out, shorter(Bounded(**eqn.params), tuple(used_out[1:])),
                                lambda loop, invars, outvars: _with_loop(eqn, loop, invars, outvars))

    @hookimpl
    def effects(self, avals: Any, *, jaxpr: Jaxpr, cond_jaxpr: Jaxpr) -> frozenset[Any]:
        return jaxpr.effects | cond_jaxpr.effects

    @hookimpl
    def carry(self, lift: Any, args: Any, **params: Any) -> Any:
        loop = Bounded(**params)
        for_cond, consts, carried = loop.operands(args)
        of_cond, found = lift.forms(for_cond), lifted(loop.body, lift, lift.forms([*consts, *carried]))
        cond = lift.decision(loop.cond_jaxpr, (*of_cond, *found.carry), "the condition of a loop")
        parts = lift.parts([*for_cond, *consts, *lift.raised(carried, found.carry)])
        outs = bind_bounded(loop.with_body(found.body, cond, lift.count(*of_cond)), parts)
        return lift.results(outs, (None, *found.carry, *found.ys))

    def widened(self, axes: Sequence[Any], **params: Any) -> dict[str, Any]:
        """The programs for operands that vary along these axes of a mesh."""
        return _settled(Bounded(**params), axes)._asdict()

    @hookimpl
    def samples(self, rng: Any) -> Iterator[Sample]:
        def sample(cond: Any, step: Any, cond_consts: list[Any], consts: list[Any], carry: list[Any],
                   length: int, **more: Any) -> Sample:
            def staged(fun: Any, args: list[Any], name: str) -> Jaxpr:
                return stage(fun, [aval_of(x) for x in (*args, *carry)], name).jaxpr

            return Sample([*cond_consts, *consts, *carry], Bounded(
                staged(step, consts, "body"), staged(cond, cond_consts, "cond"), len(cond_consts), len(consts),
                len(carry), length)._asdict(), **more)

        w, x, zero, three = rng.standard_normal(2), rng.standard_normal(2), np.int32(0), np.int32(3)

        def below(n: Any, i: Any, x: Any) -> list[Any]:
            return [lax.lt(i, n)]

        def step(w: Any, i: Any, x: Any) -> list[Any]:
            return [lax.add(i, np.int32(1)), lax.mul(lax.sin(x), w)]

        last = w * np.sin(w * np.sin(w * np.sin(x)))
        yield sample(below, step, [three], [w], [zero, x], 5, results=[three, three, last])
        yield sample(below, step, [np.int32(9)], [w], [zero, x], 3, results=[three, three, last])
        yield sample(below, step, [zero], [w], [zero, x], 3, results=[zero, zero, x])
        # steps that write something out: as many as there is room for
        yield sample(below, lambda w, i, x: [lax.add(i, np.int32(1)), lax.sin(x), lax.mul(x, w)], [three], [w],
                     [zero, x], 3, results=[three, three, np.sin(np.sin(np.sin(x))), [
                         w * x, w * np.sin(x), w * np.sin(np.sin(x))]])
        yield sample(lambda x: [lax.lt(x, 4.0)], lambda x: [lax.add(lax.mul(x, x), 1.0)], [], [], [w[0]], 20)
        # two elements that go on for one step and for two, in steps that change nothing where they don't
        counts = np.array([1, 2], np.int32)

        def each(n: Any, i: Any, x: Any) -> list[Any]:
            going = lax.lt(i, n)
            return [lax.add(i, lax.convert_element_type(going, i.dtype)), lax.select_n(going, x, lax.sin(x))]

        rows = sample(lambda n, i, x: [lax.lt(i, n)], each, [counts], [counts], [np.zeros(2, np.int32), x], 4,
                      results=[np.int32(2), counts, [np.sin(x[0]), np.sin(np.sin(x[1]))]],
                      exempt=dict.fromkeys(("a map is a loop", "nested maps are nested loops",
                                            "a named axis changes nothing", "a map is the same when staged",
                                            "maps of many rows and of more axes are loops"),
                                           "each counts as many steps as the one that takes most"))
        yield rows
        right = sample(below, step, [three], [w], [zero, x], 5)
        yield Sample([three, w, x, x], right.params, error=TypeError)
        yield Sample(right.args, {**right.params, "length": 0}, error=ValueError)


bounded_while_loop: Any = define(BoundedWhileLoop())


# Segments

def segment_sizes(max_steps: int, checkpoints: int | None) -> tuple[int, ...]:
    """How many segments there are at each level of nested loops; the last one is the number of steps in a segment.

    There are as few levels as keep the sum of the numbers at `checkpoints` or less. Their product is at least
    `max_steps`.

    >>> segment_sizes(1000, None), segment_sizes(1000, 1000), segment_sizes(1000, 30), segment_sizes(1000, 20)
    ((32, 32), (1000,), (10, 10, 10), (4, 4, 4, 4, 4))
    """
    if checkpoints is None:
        return _even_sizes(max_steps, 1 if max_steps <= 32 else 2)
    kept = _integer("checkpoints", checkpoints, 1)
    found = [_even_sizes(max_steps, levels) for levels in range(1, max(2, max_steps.bit_length() + 1))]
    for sizes in found:
        if sum(sizes) <= kept:
            return sizes
    least = min(map(sum, found))
    raise CorejaxValueError("bounded_while_loop: checkpoints is too small for that many steps", where=here(),
                            got=f"checkpoints={kept} for max_steps={max_steps}", wanted=f"at least {least}",
                            todo=f"leave out checkpoints, or give {least}: each step is then computed "
                                 f"{min(len(sizes) for sizes in found if sum(sizes) == least)} times")


def _even_sizes(max_steps: int, levels: int) -> tuple[int, ...]:
    """Numbers whose product is at least `max_steps`, about as large as one another, the largest first."""
    sizes = []
    rest = max_steps
    for level in range(levels, 0, -1):
        size = max(1, round(rest ** (1 / level)))
        size += size ** level < rest
        sizes.append(size)
        rest = -(-rest // size)
    return tuple(sizes)


def _bind_nested(loop: Loop, operands: list[Any], most: int, sizes: tuple[int, ...]) -> list[Any]:
    """The state after the last step, computed by as many nested loops as there are sizes."""
    nested = _nested(loop, most, sizes)
    n = len(operands) - len(loop.body.outvars)
    count = carrying.varied(np.zeros((), count_type(most).dtype), loop.cond.out_avals[0].varying)
    counters = [count] if len(sizes) > 1 else []
    return bind_bounded(nested, [*operands[:loop.cond_nconsts], *_shared(nested, operands[:n], loop), *counters,
                                 *operands[n:]])[1 + len(counters):]


def _shared(nested: Bounded, consts: Sequence[Any], loop: Loop) -> Sequence[Any]:
    """The constants that a step takes: those of the condition too, if it is a loop itself."""
    return consts if nested.idles else consts[loop.cond_nconsts:]


@carrying.remembered
def _nested(loop: Loop, most: int, sizes: tuple[int, ...]) -> Bounded:
    """The outermost of these loops. If there are several, each counts the steps that are taken in all of them."""
    n_cond, n_body, n_carry = loop.cond_nconsts, loop.body_nconsts, len(loop.body.outvars)
    if len(sizes) == 1:
        return Bounded(loop.body.replace(), loop.cond, n_cond, n_body, n_carry, most)
    count = carrying.along(count_type(most), loop.cond.out_avals[0].varying)
    of_cond, carry = loop.cond.in_avals[:n_cond], loop.cond.in_avals[n_cond:]
    consts = [*of_cond, *loop.body.in_avals[:n_body]]

    def cond(*operands: Any) -> list[Any]:
        (going,) = eval_jaxpr(loop.cond, (), *operands[:n_cond], *operands[n_cond + 1:])
        return [lax.bitwise_and(lax.lt(operands[n_cond], np.asarray(most, count.dtype)), going)]

    def step(*operands: Any) -> list[Any]:
        done = lax.add(operands[n_body], np.ones((), count.dtype))
        return [done, *eval_jaxpr(loop.body, (), *operands[:n_body], *operands[n_body + 1:])]

    bounded_cond = stage_closed(cond, [*of_cond, count, *carry], loop.cond.name)
    body = stage_closed(step, [*consts[n_cond:], count, *carry], loop.body.name)
    inner = Bounded(body, bounded_cond, n_cond, n_body, n_carry + 1, sizes[-1])
    for size in reversed(sizes[:-1]):
        inner = _over_segments(inner, [*consts, count, *carry], size)
    return inner


def _over_segments(loop: Bounded, avals: Sequence[ShapedArray], length: int) -> Bounded:
    """A loop that repeats a loop. Of what happens within, reverse mode keeps nothing."""
    n_consts = len(avals) - loop.num_carry
    first = 0 if loop.idles else loop.cond_nconsts  # a loop over segments passes on the condition's constants

    def within(*operands: Any) -> list[Any]:
        return bind_bounded(loop, [*operands[:loop.cond_nconsts], *operands[first:]])[1:]

    segment = stage_closed(within, avals, "segment")

    def step(*operands: Any) -> list[Any]:
        return bind_checkpoint(segment, operands, prevent_cse=False, as_one=True)

    def cond(*operands: Any) -> list[Any]:
        return [lax.broadcast(x, (1,)) for x in eval_jaxpr(loop.cond_jaxpr, (), *operands)]

    # a segment takes no steps where the condition doesn't hold, so it needs no mask under vmap
    going = loop.cond_jaxpr if loop.idles else stage_closed(cond, loop.cond_jaxpr.in_avals, loop.cond_jaxpr.name)
    return Bounded(stage_closed(step, avals, "segments"), going, loop.cond_nconsts, n_consts, loop.num_carry, length)


# Binding

def bind_bounded(loop: Bounded, operands: Sequence[Any]) -> list[Any]:
    """The number of steps, the carry after the last one, and what they write out."""
    loop = _settled(loop, varying_of(operands))
    return bounded_while_loop.primitive.bind(*operands, **loop._asdict())  # type: ignore[no-any-return]


def _settled(loop: Bounded, given: Sequence[Any]) -> Bounded:
    """The loop for operands that vary along these axes of a mesh; its carry varies as much after a step as before."""
    if not any(given) and not carrying.varies(loop.jaxpr, loop.cond_jaxpr):
        return loop
    for_cond, for_body, carry = loop.operands(given)
    ends = frozenset[Any]()
    while True:
        body = settled_body(loop.body, [*for_body, *carry], ends)
        grown = varying_of(body.jaxpr.invars[loop.num_consts:])
        cond = carrying.retyped(loop.cond_jaxpr, [*for_cond, *grown])
        if grown == carry and cond.outvars[0].aval.varying == ends:
            return loop._replace(jaxpr=body.jaxpr, cond_jaxpr=cond)
        carry, ends = grown, cond.outvars[0].aval.varying


def _rows(avals: Sequence[ShapedArray], length: int, cond: Jaxpr) -> list[ShapedArray]:
    """The types of values that are written out in each step: they vary where devices end at different steps."""
    return [carrying.along(stacked(aval, length), cond.out_avals[0].varying) for aval in avals]


def _with_loop(eqn: JaxprEqn, loop: Bounded, invars: Any, outvars: Any) -> JaxprEqn:
    """The same equation with another loop."""
    return eqn.replace(invars=invars, outvars=outvars, params=loop._asdict(),
                       effects=loop.jaxpr.effects | loop.cond_jaxpr.effects)


def _known_cond(loop: Bounded, unknown: Sequence[bool]) -> tuple[Jaxpr, Flags] | None:
    """The condition of the operands that are known, and which of its constants it reads; None if it reads others."""
    reads = dce(loop.cond_jaxpr, (True,))[1]
    if any([u and r for u, r in zip(unknown, reads, strict=True)]):
        return None
    n = loop.cond_nconsts
    taken = [*reads[:n], *[not u for u in unknown[n:]]]
    return loop.cond_jaxpr.replace(invars=carrying.marked(loop.cond_jaxpr.invars, taken)), reads[:n]


# Batching

def _each_on_its_own(loop: Bounded, axis: Any, args: Sequence[Any], dims: Sequence[Any]) -> tuple[list[Any], list[Any]]:
    """The loop for rows that end at different steps.

    What a step computes for a row that has ended isn't used. But it is computed, and multiplied by zero in reverse
    mode, so it has to be finite if the row's own steps were: an ended row takes its last step again and again, and one
    that takes no step at all takes those of the first row that does.
    """
    size = axis.size
    cond_dims, const_dims, carry_dims = loop.operands(dims)
    front = tuple([0 if d is not None else None for d in const_dims])
    masked, cond = masked_rows(loop, size, axis.name, (*cond_dims, *front))
    cond_consts, consts, carry = loop.operands(args)
    consts = [x if d is None else to_dim(x, d, 0, size) for x, d in zip(consts, const_dims, strict=True)]
    carry = [to_dim(x, d, 0, size) for x, d in zip(carry, carry_dims, strict=True)]
    (active,) = carrying.run(cond, [*cond_consts, *carry])
    states = carry
    if not names_axis(loop.jaxpr, axis.name):
        first = first_active(active, size)
        consts = [x if d is None else filled_rows(active, x, first) for x, d in zip(consts, const_dims, strict=True)]
        states = [filled_rows(active, x, first) for x in carry]
    counts = carrying.varied(np.zeros(size, count_type(loop.length).dtype), aval_of(active).varying)
    outs = bind_bounded(masked, [*cond_consts, *consts, active, counts, *carry, *states])
    n = loop.num_carry
    return [outs[2], *outs[3:3 + n], *outs[3 + 2 * n:]], [*[0] * (1 + n), *[1] * len(outs[3 + 2 * n:])]


# Checks

def _integer(name: str, value: Any, least: int) -> int:
    """An argument that is a number known when the program is traced."""
    if isinstance(value, (bool, np.bool_)):
        raise CorejaxTypeError(f"bounded_while_loop: {name} must be an integer", got=repr(value), where=here(),
                               wanted="a Python integer", todo=f"give the largest number of {_MEANING[name]}")
    try:
        found = operator.index(value)
    except ConcretizationError as error:
        raise ConcretizationError(
            f"bounded_while_loop: {name} must be known when the program is traced", where=here(),
            got=f"a traced {aval_of(value)}", wanted="a Python integer",
            todo="mark the argument as static (static_argnums), and let the condition count steps if fewer of them "
                 "are to be taken") from error
    except TypeError as error:
        raise CorejaxTypeError(f"bounded_while_loop: {name} must be an integer", got=repr(value)[:80],
                               wanted="a Python integer", where=here(), todo=f"pass {name}=int(...)") from error
    if found < least:
        raise CorejaxValueError(f"bounded_while_loop: {name} is too small", got=found, wanted=f"at least {least}",
                                where=here(), todo=f"give the largest number of {_MEANING[name]}")
    return found


_MEANING = {"max_steps": "steps that the loop may take", "checkpoints": "states that may be kept at once"}


def _check(loop: Bounded, avals: Sequence[ShapedArray]) -> None:
    """Raise if these aren't valid operands, condition and body of a loop."""
    n, n_carry = loop.cond_nconsts, loop.num_carry
    numbers = {"length": loop.length - 1, "cond_nconsts": n, "num_consts": loop.num_consts, "num_carry": n_carry,
               "results of a step": len(loop.jaxpr.outvars) - n_carry}
    if min(numbers.values()) < 0 or len(loop.jaxpr.invars) != loop.num_consts + n_carry:
        raise CorejaxValueError("bounded_while_loop: the numbers of operands don't fit the body",
                                primitive="bounded_while_loop", where=here(), got=loop[2:],
                                wanted=f"constants and a carry for {len(loop.jaxpr.invars)} inputs, and a length",
                                todo="count the constants of the condition, of the body, and the carry")
    cond_consts, in_cond = loop.cond_jaxpr.in_avals[:n], loop.cond_jaxpr.in_avals[n:]
    wanted = [*cond_consts, *loop.jaxpr.in_avals]
    if not all_fit(avals, wanted):
        raise _wrong("the operands don't fit condition and body", avals, wanted)
    _, _, carry = loop.operands(wanted)
    if not all_match(in_cond, carry):
        raise _wrong("the condition and the body take different carries", in_cond, carry)
    out_carry, _ = loop.body.results(loop.jaxpr.out_avals)
    if not all_fit(out_carry, carry):
        raise _wrong("the body returns a different carry than it takes", out_carry, carry)
    preds = loop.cond_jaxpr.out_avals
    if len(preds) != 1 or preds[0].dtype != dtypes.bool_:
        raise _wrong("the condition must return booleans", preds, [ShapedArray((), dtypes.bool_)])


def _wrong(problem: str, got: Sequence[ShapedArray], wanted: Sequence[ShapedArray]) -> CorejaxTypeError:
    return CorejaxTypeError(f"bounded_while_loop: {problem}", primitive="bounded_while_loop", where=here(),
                            got=text_of(got), wanted=text_of(wanted))
