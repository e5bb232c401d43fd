"""`while_loop` and `fori_loop`: loops that end when a condition says so, and loops that count.

Each rule transforms condition and body and applies the loop of those: what they become is in `_while_forms`. A loop
that counts between bounds that are known when it is traced is a `scan`, so it has a reverse mode too; how often a
while loop runs is known only when it has run, so it has none.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from corejax import lax
from corejax.core import (
    Array,
    Jaxpr,
    JaxprEqn,
    ShapedArray,
    Staged,
    Var,
    WeakCache,
    Zero,
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
from corejax.ir.surgery import inline
from corejax.plugin import Sample, define, hookimpl, public
from corejax_control_flow._carry import check_carry, settle
from corejax_control_flow._mismatch import shown
from corejax_control_flow._scan_forms import Body
from corejax_control_flow._while_forms import Half, Loop, batched, forward, halves, shorten, simplify
from corejax_control_flow._while_lowering import lower_while
from corejax_control_flow.scanning import _scan

__all__ = ["fori_loop", "while_loop"]

_BOOL = ShapedArray((), dtypes.bool_)


class WhileLoop:
    """`while_loop(cond_fun, body_fun, init_val)`: `body_fun` again and again, as long as `cond_fun` holds.

    Starts from `init_val`, a pytree of arrays; `cond_fun(val)` returns a boolean, `body_fun(val)` the next value, of
    the same structure and types. Both are traced, and may close over arrays. Under `vmap`, each element stops when its
    own condition says so. Has no reverse mode, as nobody knows how many steps would have to be remembered: use
    `lax.scan`, or `lax.fori_loop` between bounds that are Python integers.

    >>> lax.while_loop(lambda x: x < 100.0, lambda x: x * 3.0, 1.0)
    Array(243., dtype=float64, weak_type=True)
    """

    name = "while_loop"
    multiple_results = True
    symbolic_zeros = True

    def function(self, bind: Any) -> Any:
        def while_loop(cond_fun: Callable[[Any], Any], body_fun: Callable[[Any], Any], init_val: Any) -> Any:
            _check_function("while_loop: the condition", cond_fun)
            _check_function("while_loop: the body", body_fun)
            leaves, tree = flatten(init_val)
            leaves = values(leaves, "while_loop", namer("init_val", init_val))
            _, in_tree = flatten((init_val,))

            def step(avals: list[ShapedArray]) -> tuple[Staged, Sequence[ShapedArray]]:
                staged = stage_function(body_fun, avals, in_tree, "while_loop: the body")
                return staged, staged.closed.out_avals

            leaves, body = settle(leaves, step)
            avals = [aval_of(x) for x in leaves]
            cond = stage_function(cond_fun, avals, in_tree, "while_loop: the condition")
            _check_condition(cond)
            check_carry("while_loop: the body", tree, avals, body.out_tree, body.closed.out_avals, "init_val")
            loop = Loop(cond.jaxpr, body.jaxpr, len(cond.consts), len(body.consts))
            return tree.unflatten(_while([*cond.consts, *body.consts, *leaves], loop))
        return while_loop

    @hookimpl
    def abstract_eval(self, avals: Any, *, cond_jaxpr: Jaxpr, body_jaxpr: Jaxpr, cond_nconsts: int, body_nconsts: int
                      ) -> list[ShapedArray]:
        _check(Loop(cond_jaxpr, body_jaxpr, cond_nconsts, body_nconsts), avals)
        return body_jaxpr.out_avals

    @hookimpl
    def jvp(self, primals: Any, tangents: Any, *, cond_jaxpr: Jaxpr, body_jaxpr: Jaxpr, cond_nconsts: int,
            body_nconsts: int) -> Any:
        loop = Loop(cond_jaxpr, body_jaxpr, cond_nconsts, body_nconsts)
        found = forward(loop, tuple([type(t) is not Zero for t in tangents]))
        cond_consts, body_consts, carry = loop.operands(primals)
        _, const_dots, carry_dots = loop.operands(tangents)
        carry_dots = [instantiate(t) for t, nz in zip(carry_dots, found.carry_nonzero, strict=True) if nz]
        outs = _while([*cond_consts, *body_consts, *[t for t in const_dots if type(t) is not Zero],
                       *carry, *carry_dots], found.loop)
        dots = iter(outs[len(carry):])
        return outs[: len(carry)], [next(dots) if nz else Zero(aval.tangent) for nz, aval in
                                    zip(found.carry_nonzero, body_jaxpr.out_avals, strict=True)]

    @hookimpl
    def transpose(self, cotangents: Any, args: Any) -> Any:
        raise CorejaxNotImplementedError(
            "while_loop has no reverse mode: how many steps would have to be remembered is not known before it has run",
            got="grad, vjp or a transposition through lax.while_loop, or lax.fori_loop with computed bounds",
            wanted="a loop of known length", primitive="while_loop", hook="transpose", where=here(),
            todo="use lax.scan, or lax.fori_loop between Python integers (an upper bound, and lax.cond or a select for "
                 "the steps to be left out); forward mode (jvp, jacfwd) works as it is")

    @hookimpl
    def vmap(self, axis: Any, args: Any, dims: Any, *, cond_jaxpr: Jaxpr, body_jaxpr: Jaxpr, cond_nconsts: int,
             body_nconsts: int) -> Any:
        loop = Loop(cond_jaxpr, body_jaxpr, cond_nconsts, body_nconsts)
        found = batched(loop, axis.size, axis.name, tuple(dims))
        if loop.effects and found.loop.cond.out_avals[0].shape:
            raise CorejaxNotImplementedError(
                "while_loop: under vmap the steps of elements that have stopped run too, so none may have effects",
                primitive="while_loop", hook="vmap", got=", ".join(sorted(map(str, loop.effects))), where=here(),
                wanted="a condition that is the same for all elements, or a loop without effects",
                todo="map with lax.map instead of vmap, or keep what the condition reads out of the mapped arguments")
        cond_consts, body_consts, carry = loop.operands(args)
        _, _, carry_dims = loop.operands(dims)
        carry = [x if wanted is None else to_dim(x, d, wanted, axis.size)
                 for x, d, wanted in zip(carry, carry_dims, found.carry, strict=True)]
        return _while([*cond_consts, *body_consts, *carry], found.loop), found.carry

    @hookimpl
    def xla_translation(self, ctx: Any, args: Any, *, cond_jaxpr: Jaxpr, body_jaxpr: Jaxpr, cond_nconsts: int,
                        body_nconsts: int) -> Any:
        return lower_while(ctx, Loop(cond_jaxpr, body_jaxpr, cond_nconsts, body_nconsts), args)

    @hookimpl
    def partial_eval(self, eqn: Any, unknown_in: Any) -> Any:
        found = halves(_loop_of(eqn), tuple(unknown_in))
        known = staged = None
        if found.known is not None:
            known = _with_half(eqn, found.known, [v for v, unknown in zip(eqn.outvars, found.unknown_out, strict=True)
                                                  if not unknown])
        if found.staged is not None:
            # what it computes again of the known results has no name in the program
            outvars = [v if unknown else Var(v.aval) for v, unknown, kept in
                       zip(eqn.outvars, found.unknown_out, found.staged.kept_out, strict=True) if kept]
            staged = _with_half(eqn, found.staged, outvars)
        return known, staged, found.unknown_out, []

    @hookimpl
    def dce(self, eqn: Any, used_out: Any) -> Any:
        if True not in used_out and not eqn.effects:
            return [False] * len(eqn.invars), None
        found = shorten(_loop_of(eqn), tuple(used_out))
        if found is None:
            return [True] * len(eqn.invars), eqn
        outvars = [v for v, kept in zip(eqn.outvars, found.kept_out, strict=True) if kept]
        return list(found.used_in), _with_half(eqn, Half(*found), outvars)

    @hookimpl
    def effects(self, avals: Any, *, cond_jaxpr: Jaxpr, body_jaxpr: Jaxpr) -> frozenset[Any]:
        return cond_jaxpr.effects | body_jaxpr.effects

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
                    "pullback under jit equals eager"), "a loop of unknown length has no reverse mode"), **more)

        w, x, zero, three = rng.standard_normal(2), rng.standard_normal(2), np.int32(0), np.int32(3)

        def step(w: Any, i: Any, x: Any) -> list[Any]:
            return [lax.add(i, np.int32(1)), lax.mul(lax.sin(x), w)]

        yield sample(lambda n, i, x: [lax.lt(i, n)], step, [zero], [w], [zero, x], results=[zero, x])
        yield sample(lambda n, i, x: [lax.lt(i, n)], step, [three], [w], [zero, x],
                     results=[three, w * np.sin(w * np.sin(w * np.sin(x)))])
        yield sample(lambda i, x, y: [lax.lt(i, three)], lambda i, x, y: [lax.add(i, np.int32(2)), y, lax.mul(x, y)],
                     [], [], [zero, w, x])
        yield sample(lambda x: [lax.lt(x, 4.0)], lambda x: [lax.add(lax.mul(x, x), 1.0)], [], [], [w[0]])
        yield sample(lambda i, x: [lax.lt(x, 4.0)], lambda i, x: [i, x], [], [], [zero, x], error=TypeError)


while_loop: Any = define(WhileLoop())


@public
def fori_loop(lower: Any, upper: Any, body_fun: Callable[[Any, Any], Any], init_val: Any, *,
              unroll: int | bool | None = None) -> Any:
    """`val = body_fun(i, val)` for each integer `i` from `lower` up to but without `upper`, from `val = init_val`.

    `val` is a pytree of arrays that keeps its structure and types. Bounds may also be floats: `i` then counts on by 1
    from `lower`. Between integers that are known when it is traced it is a `scan`: it has a reverse mode, and `unroll`
    steps are compiled into each round. Otherwise it is a `while_loop`.

    >>> lax.fori_loop(0, 5, lambda i, total: total + i, 0)
    Array(10, dtype=int64, weak_type=True)
    """
    _check_function("fori_loop: the body", body_fun)
    leaves, tree = flatten(init_val)
    leaves = values(leaves, "fori_loop", namer("init_val", init_val))
    bounds = _bounds(lower, upper)
    _, in_tree = flatten((0, init_val))

    def step(avals: list[ShapedArray]) -> tuple[Staged, Sequence[ShapedArray]]:
        staged = stage_function(body_fun, [bounds.counter, *avals], in_tree, "fori_loop: the body")
        return staged, staged.closed.out_avals

    leaves, body = settle(leaves, step)
    check_carry("fori_loop: the body", tree, [aval_of(x) for x in leaves], body.out_tree, body.closed.out_avals,
                "init_val")
    n_consts = len(body.consts)
    counting = _counting(body.jaxpr, n_consts)
    if bounds.known is not None:
        first, length = bounds.known
        outs = _scan([*body.consts, *values([first], "fori_loop", namer("lower", 0)), *leaves],
                     Body(counting.body, n_consts, len(leaves) + 1), length=length, reverse=False,
                     unroll=_unroll(unroll, length))
    elif unroll is None or unroll is False or unroll == 1:
        outs = _while([bounds.upper, *body.consts, bounds.lower, *leaves], Loop(*counting, 1, n_consts))
    else:
        raise CorejaxValueError("fori_loop: a loop with computed bounds can't be unrolled", got=f"unroll={unroll!r}",
                                wanted="bounds that are known when the loop is traced", where=here(),
                                todo="leave out unroll, or pass Python integers (static_argnums for those of a jit)")
    return tree.unflatten(outs[1:])


# Counting

class _Bounds(NamedTuple):
    """The bounds of a loop as values, the type of its index, and where it begins and its length if these are known."""

    lower: Any
    upper: Any
    counter: ShapedArray
    known: tuple[int, int] | None


def _bounds(lower: Any, upper: Any) -> _Bounds:
    found = [*values([lower], "fori_loop", lambda _: "lower"), *values([upper], "fori_loop", lambda _: "upper")]
    avals = [aval_of(x) for x in found]
    for name, aval, given in zip(("lower", "upper"), avals, (lower, upper), strict=True):
        if aval.shape or not (dtypes.is_integer(aval.dtype) or dtypes.is_float(aval.dtype)):
            raise CorejaxTypeError(f"fori_loop: {name} is not one integer", where=here(), got=f"{given!r:.60} ({aval})",
                                   wanted="an integer without axes", todo="count in integers, and compute with them")
    one, other = [(aval.dtype, aval.weak_type) for aval in avals]
    if one[0] != other[0] and one[1] == other[1]:
        raise CorejaxTypeError("fori_loop: the bounds differ in dtype",
                               got=f"{avals[0]} and {avals[1]}: {lower!r:.40}, {upper!r:.40}",
                               wanted="one dtype, which the index then has", where=here(), todo="convert one of them")
    if all([dtypes.is_integer(x.dtype) for x in avals]) and all(map(is_concrete, found)):
        start, end = [operator.index(x) for x in found]
        return _Bounds(found[0], found[1], aval_of(0), (start, max(0, end - start)))
    dtype, weak = dtypes.promote(one, other)
    counter = ShapedArray((), dtype, weak)
    first, last = [x if aval_of(x) is counter else _converted(x, counter) for x in found]
    return _Bounds(first, last, counter, None)


def _converted(x: Any, aval: ShapedArray) -> Any:
    if not is_concrete(x):
        return lax.convert_element_type.primitive.bind(x, new_dtype=aval.dtype, weak_type=aval.weak_type)
    return _constant(operator.index(x) if dtypes.is_integer(aval.dtype) else x, aval)


def _constant(value: Any, aval: ShapedArray) -> Array:
    dtypes.check_python_int(value, aval.dtype)
    return Array.from_host(np.asarray(value, aval.dtype), aval)


class _Counting(NamedTuple):
    """A condition of an upper bound, the index and a carry; a body that counts on."""

    cond: Jaxpr
    body: Jaxpr


def _count(jaxpr: Jaxpr, num_consts: int) -> _Counting:
    """The loop over a body of (constants, index, carry)."""
    index = jaxpr.invars[num_consts].aval
    following = stage(lambda i: [lax.add(i, _constant(1, index))], [index]).jaxpr
    new, (next_index,) = inline(following, [jaxpr.invars[num_consts]])
    body = jaxpr.replace(eqns=[*new, *jaxpr.eqns], outvars=[next_index, *jaxpr.outvars])
    carry = jaxpr.in_avals[num_consts + 1:]
    cond = stage(lambda upper, i, *_: [lax.lt(i, upper)], [index, index, *carry], "cond").jaxpr
    return _Counting(cond, body)


_counting = WeakCache(_count)


def _unroll(unroll: int | bool | None, length: int) -> int:
    """The number of steps in one round of the loop, between 1 and the number of all."""
    if unroll is None or isinstance(unroll, bool):
        return max(1, length) if unroll else 1
    try:
        found = operator.index(unroll)
    except TypeError as error:
        raise CorejaxTypeError("fori_loop: unroll is no integer", got=repr(unroll)[:80], where=here(),
                               wanted="a number of steps, or True for all of them", todo="pass an int") from error
    if found < 0:
        raise CorejaxValueError("fori_loop: unroll is negative", got=found, wanted="at least 1", where=here())
    return max(1, min(found, length))


# Binding

def _while(operands: Sequence[Any], loop: Loop) -> list[Any]:
    """The results of a loop, simplified."""
    simpler = simplify(loop)
    if simpler is None:
        return _bind(operands, loop)
    found = _bind([operands[i] for i in simpler.operands], simpler.loop)
    return [found[i] if where == "result" else operands[i] for where, i in simpler.results]


def _bind(operands: Sequence[Any], loop: Loop) -> list[Any]:
    if not loop.body.outvars and not loop.effects:
        return []
    return while_loop.primitive.bind(*operands, **_params(loop))  # type: ignore[no-any-return]


def _params(loop: Loop) -> dict[str, Any]:
    return {"cond_jaxpr": loop.cond, "body_jaxpr": loop.body, "cond_nconsts": loop.cond_nconsts,
            "body_nconsts": loop.body_nconsts}


def _loop_of(eqn: JaxprEqn) -> Loop:
    params = eqn.params
    return Loop(params["cond_jaxpr"], params["body_jaxpr"], params["cond_nconsts"], params["body_nconsts"])


def _with_half(eqn: JaxprEqn, half: Half, outvars: Sequence[Var]) -> JaxprEqn:
    """The equation of a part of the loop."""
    invars = [x for x, used in zip(eqn.invars, half.used_in, strict=True) if used]
    return eqn.replace(invars=invars, outvars=outvars, params=_params(half.loop), effects=half.loop.effects)


# Checks

def _check_function(what: str, fun: Any) -> None:
    if not callable(fun):
        raise CorejaxTypeError(f"{what} is no function", got=f"{kind_of(fun)}: {fun!r:.80}", wanted="a callable",
                               where=here(), todo="pass the function itself, without calling it")


def _check_condition(cond: Staged) -> None:
    """Refuse a condition that returns something else than one boolean."""
    avals, tree = cond.closed.out_avals, cond.out_tree
    one = tree == flatten(0)[1]
    if one and avals[0].matches(_BOOL):
        return
    got = str(avals[0]) if one else kind_of(tree.unflatten(range(tree.num_leaves)))
    raise CorejaxTypeError(
        f"while_loop: the condition{_named(cond)} returns no boolean", wanted="one boolean without axes, bool[]",
        got=f"{got}, {shown(tree)}" if avals and not one else got, where=here(),
        todo="reduce it by .all() or .any(); if each element has its own end, vmap the loop for one of them"
        if one and avals[0].dtype == _BOOL.dtype else "return a comparison: val < limit")


def _named(staged: Staged) -> str:
    name = staged.jaxpr.name
    return f" {name}" if name.isidentifier() else ""


def _check(loop: Loop, avals: Sequence[ShapedArray]) -> None:
    """Refuse operands, a condition or a body that are not those of a loop."""
    cond_consts, in_cond = loop.cond.in_avals[: loop.cond_nconsts], loop.cond.in_avals[loop.cond_nconsts:]
    wanted = [*cond_consts, *loop.body.in_avals]
    if not _match(avals, wanted):
        raise _wrong("the operands don't fit condition and body", avals, wanted)
    _, _, carry = loop.operands(wanted)
    if not _match(in_cond, carry):
        raise _wrong("the condition takes another carry than the body", in_cond, carry)
    if not _match(loop.body.out_avals, carry):
        raise _wrong("the body returns another carry than it takes", loop.body.out_avals, carry)
    preds = loop.cond.out_avals
    if len(preds) != 1 or preds[0].dtype != _BOOL.dtype:
        raise _wrong("the condition returns no boolean", preds, [_BOOL])
    shape = preds[0].shape
    if [aval for aval in carry if aval.shape[: len(shape)] != shape]:
        raise _wrong(f"each value of the carry begins by the axes of the condition, {list(shape)}", carry, preds)


def _match(avals: Sequence[ShapedArray], wanted: Sequence[ShapedArray]) -> bool:
    return len(avals) == len(wanted) and all([a.matches(w) for a, w in zip(avals, wanted, strict=True)])


def _wrong(problem: str, got: Sequence[ShapedArray], wanted: Sequence[ShapedArray]) -> CorejaxTypeError:
    return CorejaxTypeError(f"while_loop: {problem}", primitive="while_loop", where=here(),
                            got=", ".join(map(str, got)) or "nothing", wanted=", ".join(map(str, wanted)) or "nothing")
