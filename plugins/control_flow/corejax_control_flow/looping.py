"""`while_loop` and `fori_loop`: loops that end when a condition says so, and loops that count.

The condition takes its constants, then the carry; the body takes its own, then the carry, and returns the next carry.
Each rule transforms both and applies the loop of those. The condition returns a boolean array, and every value of the
carry has its axes as leading axes; once the condition is false at a position, the carry no longer changes there. Only
batching makes conditions that aren't scalars.

A loop that counts between bounds known at trace time is a `scan`, so it has a reverse mode too. The number of steps of
a while loop is only known once it has run, so it has none.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from corejax import lax
from corejax.core import (
    Array,
    ArrayLike,
    Atom,
    Jaxpr,
    JaxprEqn,
    Literal,
    ShapedArray,
    Var,
    aval_of,
    dtypes,
    flatten,
    here,
    instantiate,
    is_concrete,
    jvp_jaxpr,
    namer,
    partial_eval_jaxpr,
    stage,
    stage_function,
    to_dim,
    values,
    vmap_jaxpr,
)
from corejax.errors import CorejaxNotImplementedError, CorejaxTypeError, CorejaxValueError, kind_of
from corejax.ir.surgery import dce, inline, reorder_invars
from corejax.plugin import Sample, carrying, define, hookimpl, public, structures
from corejax_control_flow._python_loops import Carried
from corejax_control_flow._scan_body import Body
from corejax_control_flow._scan_lowering import while_op
from corejax_control_flow._types import all_fit, all_match, text_of
from corejax_control_flow.scanning import Carry, run_scan

__all__ = ["fori_loop", "while_loop", "while_p"]

Flags = carrying.Flags
Dims = tuple[int | None, ...]

_BOOL = ShapedArray((), dtypes.bool_)


class Loop(NamedTuple):
    """Body and condition, and how many constants each takes."""

    body: Jaxpr
    cond: Jaxpr
    cond_nconsts: int
    body_nconsts: int

    def operands(self, items: Sequence[Any]) -> tuple[list[Any], list[Any], list[Any]]:
        """The items for the constants of the condition, for those of the body, and for the carry."""
        split = self.cond_nconsts + self.body_nconsts
        return [*items[: self.cond_nconsts]], [*items[self.cond_nconsts:split]], [*items[split:]]

    @property
    def effects(self) -> frozenset[Any]:
        """The effects of condition and body."""
        return self.cond.effects | self.body.effects


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
        found = _forward(loop, carrying.nonzero(tangents))
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
        found = _batched(loop, axis.size, axis.name, tuple(dims))
        if loop.effects and found.loop.cond.out_avals[0].shape:
            raise CorejaxNotImplementedError(
                "while_loop: under vmap elements that have stopped keep running, so no step may have effects",
                primitive="while_loop", hook="vmap", got=", ".join(sorted(map(str, loop.effects))), where=here(),
                wanted="a condition that is the same for all elements, or a loop without effects",
                todo="map with lax.map instead of vmap, or don't map the arguments that the condition depends on")
        cond_consts, body_consts, carry = loop.operands(args)
        _, _, carry_dims = loop.operands(dims)
        carry = [x if wanted is None else to_dim(x, d, wanted, axis.size)
                 for x, d, wanted in zip(carry, carry_dims, found.carry, strict=True)]
        return _while(found.loop, [*cond_consts, *body_consts, *carry]), found.carry

    @hookimpl
    def xla_translation(self, ctx: Any, args: Any, *, cond_jaxpr: Jaxpr, body_jaxpr: Jaxpr, cond_nconsts: int,
                        body_nconsts: int) -> Any:
        lowering = _Lowering(ctx, Loop(body_jaxpr, cond_jaxpr, cond_nconsts, body_nconsts))
        return lowering.masked(args) if cond_jaxpr.out_avals[0].shape else lowering.plain(args)

    @hookimpl
    def partial_eval(self, eqn: Any, unknown_in: Any) -> Any:
        found = _halves(_loop_of(eqn), tuple(unknown_in))
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
        return carrying.shorten(eqn, used_out, _shorter(_loop_of(eqn), tuple(used_out)), partial(_with_loop, eqn))

    @hookimpl
    def effects(self, avals: Any, *, cond_jaxpr: Jaxpr, body_jaxpr: Jaxpr) -> frozenset[Any]:
        return cond_jaxpr.effects | body_jaxpr.effects

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
    bounds = _bounds(lower, upper)
    if bounds.counter.varying:  # then devices end at different steps
        leaves, tree = flatten(init_val)
        leaves = values(leaves, "fori_loop", namer("init_val", init_val))
        init_val = tree.unflatten(_varied(leaves, bounds.counter.varying))
    if carrying.runs_python() and (bounds.known or is_concrete(bounds.lower) and is_concrete(bounds.upper)):
        _unroll(unroll, 1)  # checked here, too
        started = Carried("fori_loop: the body", init_val, "init_val")
        for i in _indices(bounds):
            started.step(body_fun, i)
        return started.result  # type: ignore[no-any-return]
    body = carrying.stage_step(body_fun, init_val, "fori_loop: the body", [bounds.counter], root="init_val")
    leaves, n_consts = body.carry, len(body.consts)
    counting = _counting(body.jaxpr, n_consts)
    if bounds.known is not None:
        first, length = bounds.known
        outs = run_scan(Body(counting.body, n_consts, len(leaves) + 1),
                        [*body.consts, *values([first], "fori_loop", namer("lower", 0)), *leaves],
                        length=length, reverse=False, unroll=_unroll(unroll, length))
    elif unroll is None or unroll is False or unroll == 1:
        outs = _while(Loop(*counting, 1, n_consts), [bounds.upper, *body.consts, bounds.lower, *leaves])
    else:
        raise CorejaxValueError("fori_loop: a loop with computed bounds can't be unrolled", got=f"unroll={unroll!r}",
                                wanted="bounds that are known when the loop is traced", where=here(),
                                todo="leave out unroll, or pass Python integers (static_argnums for those of a jit)")
    return body.unflatten(outs[1:])  # type: ignore[no-any-return]


# Counting

class _Bounds(NamedTuple):
    """The bounds of a loop as values, the type of its index, and, if known, where it starts and its length."""

    lower: Any
    upper: Any
    counter: ShapedArray
    known: tuple[int, int] | None


def _bounds(lower: Any, upper: Any) -> _Bounds:
    found = [*values([lower], "fori_loop", lambda _: "lower"), *values([upper], "fori_loop", lambda _: "upper")]
    avals = [aval_of(x) for x in found]
    for name, aval, given in zip(("lower", "upper"), avals, (lower, upper), strict=True):
        if aval.shape or not (dtypes.is_integer(aval.dtype) or dtypes.is_float(aval.dtype)):
            raise CorejaxTypeError(f"fori_loop: {name} must be a single integer", where=here(),
                                   got=f"{given!r:.60} ({aval})",
                                   wanted="an integer without axes", todo="count in integers, and compute with them")
    one, other = [(aval.dtype, aval.weak_type) for aval in avals]
    if one[0] != other[0] and one[1] == other[1]:
        raise CorejaxTypeError("fori_loop: the bounds differ in dtype",
                               got=f"{avals[0]} and {avals[1]}: {lower!r:.40}, {upper!r:.40}",
                               wanted="one dtype, which is that of the index", where=here(), todo="convert one of them")
    whole = [_whole_number(x) for x in found]
    if whole[0] is not None and whole[1] is not None:
        return _Bounds(found[0], found[1], aval_of(0), (whole[0], max(0, whole[1] - whole[0])))
    dtype, weak = dtypes.promote(one, other)
    counter = ShapedArray((), dtype, weak)
    first, last = [x if aval_of(x).invariant is counter else _converted(x, counter) for x in found]
    return _Bounds(first, last, carrying.along(counter, avals[0].varying | avals[1].varying), None)


def _whole_number(x: Any) -> int | None:
    """The value of a bound, if it is known and a whole number."""
    if not is_concrete(x):
        return None
    if dtypes.is_integer(aval_of(x).dtype):
        return operator.index(x)
    value = float(x)
    return int(value) if value.is_integer() else None


def _converted(x: Any, aval: ShapedArray) -> Any:
    if not is_concrete(x):
        return lax.convert_element_type.primitive.bind(x, new_dtype=aval.dtype, weak_type=aval.weak_type)
    return _constant(operator.index(x) if dtypes.is_integer(aval.dtype) else x, aval)


def _constant(value: Any, aval: ShapedArray) -> Array:
    return Array.from_host(dtypes.number(value, aval.dtype), aval)


def _indices(bounds: _Bounds) -> Iterator[Any]:
    """The values of the index, one after the other."""
    if bounds.known is not None:
        first, length = bounds.known
        yield from (_constant(i, bounds.counter) for i in range(first, first + length))
        return
    i = bounds.lower
    while lax.lt(i, bounds.upper):
        yield i
        i = lax.add(i, _constant(1, bounds.counter))


class _Counting(NamedTuple):
    """A body that increments the index, and a condition of an upper bound, the index and a carry."""

    body: Jaxpr
    cond: Jaxpr


@carrying.remembered
def _counting(jaxpr: Jaxpr, num_consts: int) -> _Counting:
    """The counting loop for a body of (constants, index, carry)."""
    index = jaxpr.invars[num_consts].aval
    following = stage(lambda i: [lax.add(i, _constant(1, index.invariant))], [index]).jaxpr
    new, (next_index,) = inline(following, [jaxpr.invars[num_consts]])
    body = jaxpr.replace(eqns=[*new, *jaxpr.eqns], outvars=[next_index, *jaxpr.outvars])
    carry = jaxpr.in_avals[num_consts + 1:]
    cond = stage(lambda upper, i, *_: [lax.lt(i, upper)], [index, index, *carry], "cond").jaxpr
    return _Counting(body, cond)


def _unroll(unroll: int | bool | None, length: int) -> int:
    """The number of steps in one round of the loop, between 1 and the length of the loop."""
    if unroll is None or isinstance(unroll, (bool, np.bool_)):
        return max(1, length) if unroll else 1
    try:
        found = operator.index(unroll)
    except TypeError as error:
        raise CorejaxTypeError("fori_loop: unroll must be an integer", got=repr(unroll)[:80], where=here(),
                               wanted="a number of steps, or True for all of them", todo="pass an int") from error
    if found < 0:
        raise CorejaxValueError("fori_loop: unroll is negative", got=found, wanted="at least 1", where=here())
    return max(1, min(found, length))


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
    simpler = _simpler(loop)
    if simpler is None:
        return [*bind(loop, [*operands])]
    found = bind(simpler.loop, [operands[i] for i in simpler.operands])
    return [found[i] if where == "result" else operands[i] for where, i in simpler.results]


def _while(loop: Loop, operands: Sequence[Any]) -> list[Any]:
    return bind_simplified(loop, operands, _bind)


def _varied(xs: Sequence[Any], axes: frozenset[Any]) -> list[Any]:
    """The values, which also vary along these axes of a mesh."""
    return [carrying.varied(x, axes) for x in xs]


def settled(loop: Loop, given: Sequence[Any]) -> Loop:
    """The loop with a carry that varies along the same axes of a mesh before and after each step.

    `given` are the axes along which the operands vary. Where the condition varies, devices end at different steps, so
    the whole carry varies.
    """
    if not any(given) and not carrying.varies(loop.body, loop.cond):
        return loop
    for_cond, for_body, carry = loop.operands(given)
    while True:
        body, cond = carrying.retyped(loop.body, [*for_body, *carry]), carrying.retyped(loop.cond, [*for_cond, *carry])
        ends = cond.outvars[0].aval.varying
        before = [v.aval.varying for v in body.invars[loop.body_nconsts:]]
        carry = [old | new.aval.varying | ends for old, new in zip(before, body.outvars, strict=True)]
        if carry == before == [v.aval.varying for v in cond.invars[loop.cond_nconsts:]]:
            return loop._replace(body=carrying.retyped(body, (), carry), cond=cond)


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


# Simplification

class _Simpler(NamedTuple):
    """A smaller loop that does the same: which operands it takes, and where each original result is found.

    ("result", i) is its i-th result, ("operand", i) the i-th original operand.
    """

    loop: Loop
    operands: list[int]
    results: list[carrying.Place]


@carrying.remembered
def _simpler(loop: Loop) -> _Simpler | None:
    """The loop without dead code, and with values that no step changes as constants; None if there is neither."""
    body, cond = loop.body, loop.cond
    cond_consts, body_consts, carry = loop.operands(range(loop.cond_nconsts + len(body.invars)))
    moves = [v is not out for v, out in zip(body.invars[loop.body_nconsts:], body.outvars, strict=True)]
    fixed = [not m for m in moves]
    kept = [True] * moves.count(True)
    parts = []
    for jaxpr, consts, used_out in ((cond, cond_consts, [True]), (body, body_consts, moves)):
        n = len(consts)
        at = range(n, n + len(carry))
        jaxpr = reorder_invars(jaxpr, [*range(n), *carrying.marked(at, fixed), *carrying.marked(at, moves)])
        smaller, used = _shortened(jaxpr, used_out, len(jaxpr.invars) - len(kept), kept)
        taken = carrying.marked([*consts, *carrying.marked(carry, fixed)], used[: len(used) - len(kept)])
        parts.append((smaller, taken, len(smaller.eqns) == len(jaxpr.eqns) and len(taken) == n))
    (new_cond, for_cond, same_cond), (new_body, for_body, same_body) = parts
    if all(moves) and same_cond and same_body:
        return None
    place = iter(range(len(kept)))
    results = [("result", next(place)) if m else ("operand", i) for m, i in zip(moves, carry, strict=True)]
    return _Simpler(Loop(new_body, new_cond, len(for_cond), len(for_body)),
                   [*for_cond, *for_body, *carrying.marked(carry, moves)], results)


# Forward mode

class _Forward(NamedTuple):
    """The loop over values and tangents: the body's constants and the carry are followed by their nonzero tangents."""

    loop: Loop
    carry_nonzero: Flags


@carrying.remembered
def _forward(loop: Loop, nonzero: Flags) -> _Forward:
    """The loop with these tangents, none of which the condition takes."""
    _, consts, carry_in = loop.operands(nonzero)

    def step(carry: Flags) -> tuple[Jaxpr, Flags]:
        return jvp_jaxpr(loop.body, [*consts, *carry], carry)

    carry, dual = carrying.fixed_point(carry_in, step)
    body = carrying.in_groups(dual, (consts, carry), (carry,))
    dots = [Var(aval.tangent) for aval in carrying.marked(loop.body.out_avals, carry)]
    cond = loop.cond.replace(invars=[*loop.cond.invars, *dots])
    return _Forward(Loop(body, cond, loop.cond_nconsts, len(consts) + sum(consts)), carry)


# Batching

class _Batched(NamedTuple):
    """The loop over batches, and where the batch axis of each carry is."""

    loop: Loop
    carry: list[int | None]


@carrying.remembered
def _batched(loop: Loop, size: int, name: Any, dims: Dims) -> _Batched:
    """The loop for operands batched along `dims`. For the carry, these only say whether a value is batched."""
    body, cond = loop.body, loop.cond
    cond_dims, body_dims, carry_in = loop.operands(dims)
    # a carry starts with the axes of the condition: a new axis goes after them, unless the condition has it too
    at = len(cond.out_avals[0].shape)
    carry = [None if d is None else at for d in carry_in]
    while True:
        mapped, found = vmap_jaxpr(body, size, name, (*body_dims, *carry), carry)
        grown = [at if old is None and new is not None else old for old, new in zip(carry, found, strict=True)]
        if grown == carry:
            mapped_cond, (pred,) = vmap_jaxpr(cond, size, name, (*cond_dims, *carry))
            if pred is not None:
                at, grown = 0, [0] * len(carry)
            if grown == carry:
                break
        carry = grown
    if pred is not None:
        mapped_cond, _ = vmap_jaxpr(cond, size, name, (*cond_dims, *carry), (0,))
    return _Batched(loop._replace(body=mapped, cond=mapped_cond), carry)


# Dead code

@carrying.remembered
def _shorter(loop: Loop, used_out: Flags) -> carrying.Shorter[Loop] | None:
    """The loop without unused parts; None if it has none. A carry is used if the condition or another one needs it."""
    n_consts = loop.body_nconsts

    def step(carry: Flags) -> tuple[tuple[Jaxpr, Flags], Flags]:
        smaller, used = _shortened(loop.body, carry, n_consts, carry)
        return (smaller, used), used[n_consts:]

    needed = carrying.either(used_out, dce(loop.cond, (True,))[1][loop.cond_nconsts:])
    carry, (body, used) = carrying.fixed_point(needed, step)
    cond, cond_used = _shortened(loop.cond, (True,), loop.cond_nconsts, carry)
    if body is loop.body and cond is loop.cond:
        return None
    for_cond, for_body = cond_used[:loop.cond_nconsts], used[:n_consts]
    return carrying.Shorter(Loop(body.replace(), cond, sum(for_cond), sum(for_body)),
                            (*for_cond, *for_body, *carry), carry)


def _shortened(jaxpr: Jaxpr, used_out: Sequence[bool], n_consts: int, carry: Sequence[bool]
               ) -> tuple[Jaxpr, Flags]:
    """The jaxpr without dead code, keeping these parts of the carry as inputs even if it doesn't read them."""
    return dce(jaxpr, used_out, [*[False] * n_consts, *carry])


# Partial evaluation

class _Halves(NamedTuple):
    """A loop split in two: one that runs now, and one that waits.

    The second runs the whole loop again, since it needs what the first computes in each step; so some of its results
    are known. None stands for a part that has nothing to do.
    """

    known: carrying.Shorter[Loop] | None
    staged: carrying.Shorter[Loop] | None
    unknown_out: Flags


@carrying.remembered
def _halves(loop: Loop, unknown_in: Flags) -> _Halves:
    """Split a loop by which operands are unknown. If the condition is unknown, the whole loop waits."""
    body = loop.body
    cond_consts, consts, carry_in = loop.operands(unknown_in)

    def step(carry: Flags) -> tuple[tuple[Jaxpr, Jaxpr, int], Flags]:
        first, second, found, n_residuals = partial_eval_jaxpr(body, [*consts, *carry], carry)
        return (first, second, n_residuals), found

    carry, (first, second, n_residuals) = carrying.fixed_point(carry_in, step)
    reads = dce(loop.cond, (True,))[1]
    if any([u and r for u, r in zip([*cond_consts, *carry], reads, strict=True)]):
        return _Halves(None, _whole(loop), (True,) * len(carry))
    if not any(carry):
        return _Halves(_whole(loop), None, carry)
    now = None
    if not all(carry) or first.effects or loop.cond.effects:
        now = _known_half(loop, first, n_residuals, reads, [*consts, *carry])
    if first.effects:
        body = _Again(first, second, n_residuals, [*consts, *carry]).body(body)
    again = loop._replace(cond=_without_effects(loop.cond), body=body)
    return _Halves(now, _shorter(again, carry) or _whole(again), carry)


def _whole(loop: Loop) -> carrying.Shorter[Loop]:
    n_carry = len(loop.body.outvars)
    n = loop.cond_nconsts + loop.body_nconsts + n_carry
    return carrying.Shorter(loop._replace(body=loop.body.replace()), (True,) * n, (True,) * n_carry)


def _known_half(loop: Loop, first: Jaxpr, n_residuals: int, reads: Flags, unknown: Sequence[bool]
                ) -> carrying.Shorter[Loop]:
    """The loop over the known part of the carry."""
    known = [not u for u in unknown]
    of_consts, of_carry = known[: loop.body_nconsts], known[loop.body_nconsts:]
    n_consts, n_carry = of_consts.count(True), of_carry.count(True)
    results = first.replace(outvars=first.outvars[:n_carry])
    body, used = _shortened(results, (True,) * n_carry, n_consts, (True,) * n_carry)
    of_cond = reads[: loop.cond_nconsts]
    cond = loop.cond.replace(invars=carrying.marked(loop.cond.invars, [*of_cond, *of_carry]))
    in_order = iter(used)
    of_body = [k and next(in_order) for k in of_consts]
    return carrying.Shorter(Loop(body, cond, sum(of_cond), sum(of_body)), (*of_cond, *of_body, *of_carry),
                            tuple(of_carry))


class _Again(NamedTuple):
    """The two parts of a split body, to be joined without the effects that the first has already had by then."""

    known: Jaxpr
    staged: Jaxpr
    n_residuals: int
    unknown_in: list[bool]

    def body(self, original: Jaxpr) -> Jaxpr:
        """A body with the operands and results of the original."""
        known_in = carrying.marked(original.invars, [not u for u in self.unknown_in])
        eqns, outs = inline(_without_effects(self.known), known_in)
        n = len(outs) - self.n_residuals
        new, unknown_outs = inline(self.staged, [*outs[n:], *carrying.marked(original.invars, self.unknown_in)])
        known_outs, unknown = iter(outs[:n]), iter(unknown_outs)
        carry = self.unknown_in[len(original.invars) - len(original.outvars):]
        eqns += new
        return original.replace(eqns=eqns, outvars=[next(unknown) if u else next(known_outs) for u in carry],
                                effects=_effects(eqns))


def _without_effects(jaxpr: Jaxpr) -> Jaxpr:
    """The jaxpr for its results alone: equations with effects only stay if a result depends on them."""
    if not jaxpr.effects:
        return jaxpr
    live: set[Any] = {*jaxpr.outvars}
    kept = []
    for eqn in reversed(jaxpr.eqns):
        if not live.isdisjoint(eqn.outvars):
            kept.append(_without_effects_inside(eqn) if eqn.effects else eqn)
            live.update([x for x in eqn.invars if type(x) is not Literal])
    kept.reverse()
    return jaxpr.replace(eqns=kept, effects=_effects(kept))


def _without_effects_inside(eqn: JaxprEqn) -> JaxprEqn:
    """The same for the programs that an equation carries."""
    params: dict[str, Any] = {}
    for name, value in eqn.params.items():
        if type(value) is tuple:
            params[name] = tuple([_without_effects(x) if isinstance(x, Jaxpr) else x for x in value])
        else:
            params[name] = _without_effects(value) if isinstance(value, Jaxpr) else value
    effects = eqn.primitive.effects
    assert effects is not None  # the equation has some
    return eqn.replace(params=params, effects=effects(tuple([x.aval for x in eqn.invars]), **params))


def _effects(eqns: Sequence[JaxprEqn]) -> frozenset[Any]:
    return frozenset[Any]().union(*[eqn.effects for eqn in eqns])


# StableHLO

class _Lowering(NamedTuple):
    """A loop in StableHLO. Constants pass through it unchanged, which costs nothing."""

    ctx: Any
    loop: Loop

    def _cond(self, operands: Sequence[Any]) -> Any:
        cond_consts, _, carry = self.loop.operands(operands)
        return self.ctx.call(self.loop.cond, [*cond_consts, *carry], "while_cond")[0]

    def _body(self, operands: Sequence[Any]) -> list[Any]:
        cond_consts, body_consts, carry = self.loop.operands(operands)
        return [*cond_consts, *body_consts, *self.ctx.call(self.loop.body, [*body_consts, *carry], "while_body")]

    def plain(self, args: Sequence[Any]) -> list[Any]:
        """The loop for a condition that is a single boolean."""
        outs = while_op(self.ctx, args, lambda *state: [self._cond(state)], lambda *state: self._body(state))
        return self.loop.operands(outs)[2]

    def masked(self, args: Sequence[Any]) -> list[Any]:
        """The loop that runs while any boolean holds, and changes the carry only where it holds.

        The condition for the next round is part of the state, so it is evaluated once per round.
        """
        ctx, n = self.ctx, self.loop.cond_nconsts + self.loop.body_nconsts

        def body(going: Any, *state: Any) -> list[Any]:
            new = self._body(state)
            new[n:] = [self._select(going, x, y) for x, y in zip(new[n:], state[n:], strict=True)]
            return [self._cond(new), *new]

        outs = while_op(ctx, [self._cond(args), *args], lambda going, *_: [self._any(going)], body)
        return outs[1 + n:]

    def _select(self, going: Any, new: Any, old: Any) -> Any:
        """The new value where the loop goes on, else the old one. Their leading axes are those of the condition."""
        ctx, shape = self.ctx, new.type.shape
        if shape != going.type.shape:
            axes = ctx.ir.DenseI64ArrayAttr.get(range(len(going.type.shape)))
            kind = ctx.type_of(ShapedArray(tuple(shape), dtypes.bool_))
            going = ctx.op("stablehlo.broadcast_in_dim", [going], {"broadcast_dimensions": axes}, [kind])
        return ctx.op("stablehlo.select", [going, new, old], None, [new.type])

    def _any(self, going: Any) -> Any:
        ctx = self.ctx
        scalar = ctx.type_of(ShapedArray((), dtypes.bool_))
        axes = ctx.ir.DenseI64ArrayAttr.get(range(len(going.type.shape)))
        found = ctx.op("stablehlo.reduce", [going, ctx.constant(np.False_)], {"dimensions": axes}, [scalar], 1)
        block = ctx.regions[0].blocks.append(scalar, scalar)
        with ctx.ir.InsertionPoint(block):
            ctx.op("stablehlo.return", [ctx.op("stablehlo.or", block.arguments, None, [scalar])], None, [])
        return found


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
