"""`while_loop` and `fori_loop`: loops that end when a condition says so, and loops that count.

The condition takes its constants, then the carry; the body takes its own, then the carry, and returns the next carry.
Each rule transforms both and applies the loop of those. The condition returns a boolean array, and every value of the
carry has its axes as leading axes; once the condition is false at a position, the carry no longer changes there. Only
batching makes conditions that aren't scalars.

A loop that counts between bounds known at trace time is a `scan`, so it has a reverse mode too. The number of steps of
a while loop is only known once it has run, so it has none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from corejax import lax
from corejax.core import (
    ArrayLike,
    Atom,
    Jaxpr,
    JaxprEqn,
    ShapedArray,
    Var,
    aval_of,
    dtypes,
    flatten,
    here,
    instantiate,
    is_concrete,
    namer,
    stage,
    stage_function,
    to_dim,
    values,
)
from corejax.errors import CorejaxNotImplementedError, CorejaxTypeError, CorejaxValueError, kind_of
from corejax.plugin import Sample, carrying, define, hookimpl, public, structures
from corejax_control_flow import _while_rules as rules
from corejax_control_flow._counting import bounds_of, counted, indices, steps_per_round
from corejax_control_flow._python_loops import Carried
from corejax_control_flow._scan_body import Body
from corejax_control_flow._scan_primitive import run_scan
from corejax_control_flow._types import all_fit, all_match, text_of
from corejax_control_flow._while_lowering import Lowering
from corejax_control_flow._while_rules import Loop, settled
from corejax_control_flow.scanning import Carry

__all__ = ["fori_loop", "while_loop", "while_p"]

Flags = carrying.Flags

_BOOL = ShapedArray((), dtypes.bool_)


class WhileLoop:
    """`while_loop(cond_fun, body_fun, init_val)`: apply `body_fun` repeatedly while `cond_fun` holds.

    Starts from `init_val`, a pytree of arrays; `cond_fun(val)` returns a boolean, `body_fun(val)` the next value, of
    the same structure and types. Both are traced, and may close over arrays. Under `vmap`, each element stops when its
    own condition says so. There is no reverse mode, since the number of steps to remember isn't known in advance: use
    `lax.bounded_while_loop`, `lax.scan`, or `lax.fori_loop` between bounds that are Python integers.

    >>> lax.while_loop(lambda x: x < 100.0, lambda x: x * 3.0, 1.0)
    Array(243., dtype=float64, weak_type=True)
    """

    name = "while_loop"
    holds = "loop"
    structural = True
    tracks_varying = True
    multiple_results = True
    symbolic_zeros = True

    def function(self, bind: Any) -> Any:
        def while_loop(cond_fun: Callable[[Any], ArrayLike], body_fun: Callable[[Any], Carry], init_val: Any) -> Carry:
            if carrying.runs_python():
                check_functions("while_loop", cond_fun, body_fun)
                started = Carried("while_loop: the body", init_val, "init_val")
                if started.ends(cond_fun, body_fun, partial(check_condition, "while_loop")):
                    return started.result  # type: ignore[no-any-return]
                init_val = started.value
            body, loop, operands = staged_loop("while_loop", cond_fun, body_fun, init_val)
            return body.unflatten(_while(loop, operands))  # type: ignore[no-any-return]
        return while_loop

    @hookimpl
    def abstract_eval(self, avals: Any, *, cond_jaxpr: Jaxpr, body_jaxpr: Jaxpr, cond_nconsts: int, body_nconsts: int
                      ) -> list[ShapedArray]:
        loop = Loop(body_jaxpr, cond_jaxpr, cond_nconsts, body_nconsts)
        _check(loop, avals)
        ends = cond_jaxpr.out_avals[0].varying  # where devices end at different steps
        _, _, given = loop.operands([*cond_jaxpr.in_avals[:cond_nconsts], *body_jaxpr.in_avals])
        return [carrying.along(aval, old.varying | ends) for aval, old in
                zip(body_jaxpr.out_avals, given, strict=True)]

    @hookimpl
    def jvp(self, primals: Any, tangents: Any, *, cond_jaxpr: Jaxpr, body_jaxpr: Jaxpr, cond_nconsts: int,
            body_nconsts: int) -> Any:
        loop = Loop(body_jaxpr, cond_jaxpr, cond_nconsts, body_nconsts)
        found = rules.forward(loop, carrying.nonzero(tangents))
        _, const_dots, carry_dots = loop.operands(tangents)
        carry_dots = [instantiate(t) if nz else t for t, nz in zip(carry_dots, found.carry_nonzero, strict=True)]
        outs = _while(found.loop, carrying.with_tangents(loop.operands(primals), ([], const_dots, carry_dots)))
        return carrying.part_tangents(outs, [found.carry_nonzero])

    @hookimpl
    def transpose(self, cotangents: Any, args: Any) -> Any:
        raise CorejaxNotImplementedError(
            "while_loop has no reverse mode: the number of steps to remember isn't known before it has run",
            got="grad, vjp or a transposition through lax.while_loop, or lax.fori_loop with computed bounds",
            wanted="a loop of known length", primitive="while_loop", hook="transpose", where=here(),
            todo="use lax.bounded_while_loop(..., max_steps=n), which stops as early; or lax.scan, or lax.fori_loop "
                 "between Python integers; forward mode (jvp, jacfwd) works as it is")

    @hookimpl
    def vmap(self, axis: Any, args: Any, dims: Any, *, cond_jaxpr: Jaxpr, body_jaxpr: Jaxpr, cond_nconsts: int,
             body_nconsts: int) -> Any:
        loop = Loop(body_jaxpr, cond_jaxpr, cond_nconsts, body_nconsts)
        found = rules.batched(loop, axis.size, axis.name, tuple(dims))
        if loop.effects and found.loop.cond.out_avals[0].shape:
            return carrying.one_by_one(while_loop.primitive, axis, args, dims, _params(loop))
        cond_consts, body_consts, carry = loop.operands(args)
        _, _, carry_dims = loop.operands(dims)
        carry = [x if wanted is None else to_dim(x, d, wanted, axis.size)
                 for x, d, wanted in zip(carry, carry_dims, found.carry, strict=True)]
        return _while(found.loop, [*cond_consts, *body_consts, *carry]), found.carry

    @hookimpl
    def xla_translation(self, ctx: Any, args: Any, *, cond_jaxpr: Jaxpr, body_jaxpr: Jaxpr, cond_nconsts: int,
                        body_nconsts: int) -> Any:
        lowering = Lowering(ctx, Loop(body_jaxpr, cond_jaxpr, cond_nconsts, body_nconsts))
        return lowering.masked(args) if cond_jaxpr.out_avals[0].shape else lowering.plain(args)

    @hookimpl
    def partial_eval(self, eqn: Any, unknown_in: Any) -> Any:
        found = rules.halves(_loop_of(eqn), tuple(unknown_in))
        known = staged = None
        if found.known is not None:
            outvars = carrying.marked(eqn.outvars, found.known.kept_out)
            known = _with_loop(eqn, found.known.program, carrying.marked(eqn.invars, found.known.used_in), outvars)
        if found.staged is not None:
            # known results that it computes again have no name in the program
            outvars = [v if unknown else Var(v.aval) for v, unknown in zip(eqn.outvars, found.unknown_out, strict=True)]
            staged = _with_loop(eqn, found.staged.program, carrying.marked(eqn.invars, found.staged.used_in),
                                carrying.marked(outvars, found.staged.kept_out))
        return known, staged, found.unknown_out, []

    @hookimpl
    def dce(self, eqn: Any, used_out: Any) -> Any:
        return carrying.shorten(eqn, used_out, rules.shorter(_loop_of(eqn), tuple(used_out)), partial(_with_loop, eqn))

    @hookimpl
    def effects(self, avals: Any, *, cond_jaxpr: Jaxpr, body_jaxpr: Jaxpr) -> frozenset[Any]:
        return cond_jaxpr.effects | body_jaxpr.effects

    @hookimpl
    def carry(self, lift: Any, args: Any, *, cond_jaxpr: Jaxpr, body_jaxpr: Jaxpr, cond_nconsts: int, body_nconsts: int
              ) -> Any:
        return rules.carry(Loop(body_jaxpr, cond_jaxpr, cond_nconsts, body_nconsts), lift, args, _while)

    def widened(self, axes: Sequence[Any], *, cond_jaxpr: Jaxpr, body_jaxpr: Jaxpr, cond_nconsts: int, body_nconsts: int
                ) -> dict[str, Any]:
        """The loop for operands that vary along these axes of a mesh."""
        return _params(settled(Loop(body_jaxpr, cond_jaxpr, cond_nconsts, body_nconsts), axes))

    @hookimpl
    def samples(self, rng: Any) -> Iterator[Sample]:
        def sample(cond: Any, body: Any, cond_consts: list[Any], body_consts: list[Any], carry: list[Any],
                   **more: Any) -> Sample:
            def staged(fun: Any, consts: list[Any], name: str) -> Jaxpr:
                return stage(fun, [aval_of(x) for x in (*consts, *carry)], name).jaxpr

            return Sample([*cond_consts, *body_consts, *carry], {
                "cond_jaxpr": staged(cond, cond_consts, "cond"), "body_jaxpr": staged(body, body_consts, "body"),
                "cond_nconsts": len(cond_consts), "body_nconsts": len(body_consts)}, exempt=dict.fromkeys((
                    "hessians are symmetric", "pullback is the adjoint of jvp", "pullback is linear",
                    "pullback under jit equals eager", "pullbacks of maps are loops of pullbacks"),
                    "a loop of unknown length has no reverse mode"), **more)

        w, x, zero, three = rng.standard_normal(2), rng.standard_normal(2), np.int32(0), np.int32(3)

        def step(w: Any, i: Any, x: Any) -> list[Any]:
            return [lax.add(i, np.int32(1)), lax.mul(lax.sin(x), w)]

        yield sample(lambda n, i, x: [lax.lt(i, n)], step, [zero], [w], [zero, x], results=[zero, x])
        yield sample(lambda n, i, x: [lax.lt(i, n)], step, [three], [w], [zero, x],
                     results=[three, w * np.sin(w * np.sin(w * np.sin(x)))])
        yield sample(lambda i, x, y: [lax.lt(i, three)], lambda i, x, y: [lax.add(i, np.int32(2)), y, lax.mul(x, y)],
                     [], [], [zero, w, x])
        yield sample(lambda x: [lax.lt(x, 4.0)], lambda x: [lax.add(lax.mul(x, x), 1.0)], [], [], [w[0]])
        # a step that replaces a value by one that may not be mapped where the first one is
        yield sample(lambda i, x: [lax.lt(i, three)], lambda w, i, x: [lax.add(i, np.int32(1)), lax.sin(w)], [], [w],
                     [zero, x], results=[three, np.sin(w)])
        # a loop for each of two elements, of another number of steps
        rows, counts = rng.standard_normal((2, 3)), np.array([1, 2], np.int32)
        yield sample(lambda n, i, x: [lax.lt(i, n)], lambda i, x: [lax.add(i, np.int32(1)), lax.sin(x)], [counts], [],
                     [np.zeros(2, np.int32), rows], results=[counts, [np.sin(rows[0]), np.sin(np.sin(rows[1]))]])
        yield sample(lambda i, x: [lax.lt(x, 4.0)], lambda i, x: [i, x], [], [], [zero, x], error=TypeError)
        right = sample(lambda x: [lax.lt(x, 4.0)], lambda x: [lax.add(lax.mul(x, x), 1.0)], [], [], [w[0]])
        yield Sample(right.args, {**right.params, "cond_nconsts": -1}, error=ValueError)


while_loop: Any = define(WhileLoop())

#: What jax.lax calls the primitive.
while_p = while_loop


@public
def fori_loop(lower: ArrayLike, upper: ArrayLike, body_fun: Callable[[Any, Any], Carry], init_val: Any, *,
              unroll: int | bool | None = None) -> Carry:
    """Start with `val = init_val`, run `val = body_fun(i, val)` for each `i` in `range(lower, upper)`, return `val`.

    `val` is a pytree of arrays that keeps its structure and types. Between integers that are known at trace time, the
    loop is a `scan`: it has a reverse mode, and `unroll` steps are compiled into each round. Otherwise it is a
    `while_loop`. Bounds may also be floats. Known ones that are whole numbers count as integers; otherwise `i` is a
    float, which counts up by 1 from `lower`.

    >>> lax.fori_loop(0, 5, lambda i, total: total + i, 0)
    Array(10, dtype=int64, weak_type=True)
    """
    _check_function("fori_loop: the body", body_fun)
    bounds = bounds_of(lower, upper)
    if bounds.counter.varying:  # then devices end at different steps
        leaves, tree = flatten(init_val)
        leaves = values(leaves, "fori_loop", namer("init_val", init_val))
        init_val = tree.unflatten(_varied(leaves, bounds.counter.varying))
    if carrying.runs_python() and (bounds.known or is_concrete(bounds.lower) and is_concrete(bounds.upper)):
        steps_per_round(unroll, 1)  # checked here, too
        started = Carried("fori_loop: the body", init_val, "init_val")
        for i in indices(bounds):
            started.step(body_fun, i)
        return started.result  # type: ignore[no-any-return]
    body = carrying.stage_step(body_fun, init_val, "fori_loop: the body", [bounds.counter], root="init_val")
    leaves, n_consts = body.carry, len(body.consts)
    counting = counted(body.jaxpr, n_consts)
    if bounds.known is not None:
        first, length = bounds.known
        outs = run_scan(Body(counting.body, n_consts, len(leaves) + 1),
                        [*body.consts, *values([first], "fori_loop", namer("lower", 0)), *leaves],
                        length=length, reverse=False, unroll=steps_per_round(unroll, length))
    elif unroll is None or unroll is False or unroll == 1:
        outs = _while(Loop(*counting, 1, n_consts), [bounds.upper, *body.consts, bounds.lower, *leaves])
    else:
        raise CorejaxValueError("fori_loop: a loop with computed bounds can't be unrolled", got=f"unroll={unroll!r}",
                                wanted="bounds that are known when the loop is traced", where=here(),
                                todo="leave out unroll, or pass Python integers (static_argnums for those of a jit)")
    return body.unflatten(outs[1:])  # type: ignore[no-any-return]


# Staging and binding

def staged_loop(what: str, cond_fun: Any, body_fun: Any, init_val: Any) -> tuple[carrying.StagedStep, Loop, list[Any]]:
    """The body as a step, and a loop of user's functions with its operands."""
    check_functions(what, cond_fun, body_fun)
    while True:
        body = carrying.stage_step(body_fun, init_val, f"{what}: the body", root="init_val")
        cond = stage_function(cond_fun, [aval_of(x) for x in body.carry], flatten((init_val,))[1],
                              f"{what}: the condition")
        check_condition(what, cond.closed.out_avals, cond.out_tree, cond.jaxpr.name)
        carry = _varied(body.carry, cond.closed.out_avals[0].varying)
        if all([x is old for x, old in zip(carry, body.carry, strict=True)]):
            break
        init_val = body.unflatten(carry)
    loop = Loop(body.jaxpr, cond.jaxpr, len(cond.consts), len(body.consts))
    return body, loop, [*cond.consts, *body.consts, *body.carry]


def bind_simplified(loop: Loop, operands: Sequence[Any], bind: Callable[[Loop, list[Any]], Sequence[Any]]) -> list[Any]:
    """Bind a loop without dead code, and with values that no step changes as constants."""
    loop = settled(loop, [aval_of(x).varying for x in operands])
    smaller = rules.simpler(loop)
    if smaller is None:
        return [*bind(loop, [*operands])]
    found = bind(smaller.loop, [operands[i] for i in smaller.operands])
    return [found[i] if where == "result" else operands[i] for where, i in smaller.results]


def _while(loop: Loop, operands: Sequence[Any]) -> list[Any]:
    return bind_simplified(loop, operands, _bind)


def _varied(xs: Sequence[Any], axes: frozenset[Any]) -> list[Any]:
    """The values, which also vary along these axes of a mesh."""
    return [carrying.varied(x, axes) for x in xs]


def _bind(loop: Loop, operands: Sequence[Any]) -> list[Any]:
    if not loop.body.outvars and not loop.effects:
        return []
    return while_loop.primitive.bind(*operands, **_params(loop))  # type: ignore[no-any-return]


def _params(loop: Loop) -> dict[str, Any]:
    return {"cond_jaxpr": loop.cond, "body_jaxpr": loop.body, "cond_nconsts": loop.cond_nconsts,
            "body_nconsts": loop.body_nconsts}


def _loop_of(eqn: JaxprEqn) -> Loop:
    params = eqn.params
    return Loop(params["body_jaxpr"], params["cond_jaxpr"], params["cond_nconsts"], params["body_nconsts"])


def _with_loop(eqn: JaxprEqn, loop: Loop, invars: Sequence[Atom], outvars: Sequence[Var]) -> JaxprEqn:
    """The same equation with another loop."""
    return eqn.replace(invars=invars, outvars=outvars, params=_params(loop), effects=loop.effects)


# Checks

def _check_function(what: str, fun: Any) -> None:
    if not callable(fun):
        raise CorejaxTypeError(f"{what} must be a function", got=f"{kind_of(fun)}: {fun!r:.80}", wanted="a callable",
                               where=here(), todo="pass the function itself, without calling it")


def check_functions(what: str, cond_fun: Any, body_fun: Any) -> None:
    _check_function(f"{what}: the condition", cond_fun)
    _check_function(f"{what}: the body", body_fun)


def check_condition(what: str, avals: Sequence[ShapedArray], tree: Any, name: str) -> None:
    """Raise unless the condition returns a single boolean."""
    one = tree == flatten(0)[1]
    if one and avals[0].matches(_BOOL):
        return
    named = f" {name}" if name.isidentifier() else ""
    got = str(avals[0]) if one else kind_of(tree.unflatten(range(tree.num_leaves)))
    raise CorejaxTypeError(
        f"{what}: the condition{named} must return a boolean", wanted="one boolean without axes, bool[]",
        got=f"{got}, {structures.shown(tree)}" if avals and not one else got, where=here(),
        todo="reduce it by .all() or .any(); if each element stops on its own, vmap the loop of a single element"
        if one and avals[0].dtype == _BOOL.dtype else "return a comparison: val < limit")


def _check(loop: Loop, avals: Sequence[ShapedArray]) -> None:
    """Raise if these aren't valid operands, condition and body of a loop."""
    if min(loop.cond_nconsts, loop.body_nconsts) < 0:
        raise CorejaxValueError("while_loop: the numbers of constants can't be negative", primitive="while_loop",
                                where=here(), got=(loop.cond_nconsts, loop.body_nconsts), wanted="numbers from 0 on",
                                todo="count the first operands, and those after them")
    cond_consts, in_cond = loop.cond.in_avals[: loop.cond_nconsts], loop.cond.in_avals[loop.cond_nconsts:]
    wanted = [*cond_consts, *loop.body.in_avals]
    if not all_fit(avals, wanted):
        raise _wrong("the operands don't fit condition and body", avals, wanted)
    _, _, carry = loop.operands(wanted)
    if not all_match(in_cond, carry):
        raise _wrong("the condition and the body take different carries", in_cond, carry)
    if not all_fit(loop.body.out_avals, carry):
        raise _wrong("the body returns a different carry than it takes", loop.body.out_avals, carry)
    preds = loop.cond.out_avals
    if len(preds) != 1 or preds[0].dtype != _BOOL.dtype:
        raise _wrong("the condition must return a boolean", preds, [_BOOL])
    shape = preds[0].shape
    if [aval for aval in carry if aval.shape[: len(shape)] != shape]:
        raise _wrong(f"each value of the carry must begin with the axes of the condition, {list(shape)}", carry, preds)


def _wrong(problem: str, got: Sequence[ShapedArray], wanted: Sequence[ShapedArray]) -> CorejaxTypeError:
    return CorejaxTypeError(f"while_loop: {problem}", primitive="while_loop", where=here(),
                            got=text_of(got), wanted=text_of(wanted))
