"""`scan`: a loop of known length in which each step reads a slice of each input and writes one of each output.

A body takes constants, then the carry, then one slice of each input, and returns the carry and then one slice of each
output. Each rule transforms the body and scans the result. This is simplified before it is bound: values that no step
changes aren't carried, and inputs aren't written again as outputs.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from functools import partial
from typing import Any, TypeVar

import numpy as np

from corejax import lax
from corejax.core import (
    EachTurn,
    Jaxpr,
    ShapedArray,
    Staged,
    aval_of,
    context,
    eval_jaxpr,
    flatten,
    here,
    named_scope,
    namer,
    paths_of,
    stage,
    stage_function,
    values,
    vmap_jaxpr,
)
from corejax.errors import ConcretizationError, CorejaxTypeError, CorejaxValueError, kind_of
from corejax.plugin import Sample, carrying, define, hookimpl, public, roles, shaping, structures
from corejax_control_flow import _scan_rules as rules
from corejax_control_flow._python_loops import Carried, mapped, scanned
from corejax_control_flow._scan_body import Body
from corejax_control_flow._scan_lowering import Loop, lower_scan
from corejax_control_flow._scan_rules import (
    body_of,
    row_of,
    shorter,
    simplified,
    split_body,
    stacked,
    with_body,
)
from corejax_control_flow._scan_saving import recompute_scan
from corejax_control_flow._types import all_fit, text_of

__all__ = ["map", "scan"]

# As a step returns them: what a loop starts with may be a number or an ndarray where the step returns an array.
Carry = TypeVar("Carry")
Stacked = TypeVar("Stacked")

Flags = carrying.Flags
Dims = tuple[int | None, ...]


class Scan:
    """`scan(f, init, xs=None, length=None, reverse=False, unroll=1, *, checkpoint_every=None)`: a loop over `xs`.

    `f(carry, x)` returns `(carry, y)`; `carry` starts as `init` and keeps its type, `x` is one slice of `xs` along the
    leading axis. Returns
    the last carry and the `y`s, stacked. All of them are pytrees of arrays. Without inputs, `xs` is None and `length`
    says how many steps there are; `reverse` starts at the end; `unroll` steps are compiled into each round of the loop
    (True: all of them). With `checkpoint_every`, reverse mode keeps the carry of every so many steps only, and computes
    the steps between them again: the gradient is the same. `_split_transpose` is there for JAX's sake, without effect.

    >>> total, sums = lax.scan(lambda total, x: (total + x, total), 0, lax.iota("int64", 5))
    >>> int(total), sums.tolist()
    (10, [0, 0, 1, 3, 6])
    """

    name = "scan"
    structural = True
    tracks_varying = True
    multiple_results = True
    symbolic_zeros = True

    def function(self, bind: Any) -> Any:
        def scan(f: Callable[[Any, Any], tuple[Carry, Stacked]], init: Any, xs: Any = None, length: int | None = None,
                 reverse: bool = False, unroll: int | bool = 1, _split_transpose: bool = False, *,
                 checkpoint_every: int | None = None) -> tuple[Carry, Stacked]:
            backward = shaping.as_flag("scan", "reverse", reverse)
            every = None if checkpoint_every is None else _integer("scan", "checkpoint_every", checkpoint_every, 1)
            init_leaves, carry_tree = flatten(init)
            x_leaves, x_tree = flatten(xs)
            init_leaves = values(init_leaves, "scan", namer("init", init))
            x_leaves = values(x_leaves, "scan", namer("xs", xs))
            steps = _length("scan", [aval_of(x) for x in x_leaves], xs, length)
            step = _Step(f, carry_tree, flatten((init, xs))[1], [aval_of(x) for x in x_leaves])
            if steps and carrying.runs_python():
                return scanned(f, Carried("scan: the body", init, "init"), x_tree.unflatten(x_leaves), steps, backward)
            init_leaves, staged = carrying.settle(init_leaves, step)
            step.check(staged, init_leaves)
            body = Body(staged.jaxpr, len(staged.consts), len(init_leaves))
            operands = [*staged.consts, *init_leaves, *x_leaves]
            loop: dict[str, Any] = {"length": steps, "reverse": backward, "unroll": _unroll(unroll, steps)}
            outs = (run_scan(body, operands, **loop) if every is None else
                    lax.checkpointed_scan(*operands, **body._asdict(), **loop, every=every))
            pair = staged.out_tree.unflatten(outs)
            return pair[0], pair[1]
        return scan

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

    def widened(self, axes: Sequence[Any], *, jaxpr: Jaxpr, num_consts: int, num_carry: int, **params: Any
                ) -> dict[str, Any]:
        """The step for operands that vary along these axes of a mesh."""
        return {"jaxpr": _settled(Body(jaxpr, num_consts, num_carry), [*axes]).jaxpr}

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


scan: Any = define(Scan())


@public
def map(f: Callable[[Any], Stacked], xs: Any, *, batch_size: int | None = None) -> Stacked:
    """Apply `f` to each slice of `xs` along its leading axes, one after the other, and stack the results.

    With `batch_size`, it is mapped over that many slices at a time; 0 is as None.

    >>> lax.map(lambda x: x * x, lax.iota("int64", 4)).tolist()
    [0, 1, 4, 9]
    """
    if not callable(f):
        raise _not_callable("map", f)
    leaves, tree = flatten(xs)
    leaves = values(leaves, "map", namer("xs", xs))
    avals = [aval_of(x) for x in leaves]
    length = _length("map", avals, xs, None)
    if length and carrying.runs_python():
        return mapped("map: the function", f, tree.unflatten(leaves), length)  # type: ignore[no-any-return]
    staged = stage_function(f, [row_of(aval) for aval in avals], flatten((xs,))[1], "map: the function")
    size = 0 if batch_size is None else _integer("map", "batch_size", batch_size, 0)
    outs = _map_batches(staged, leaves, length, size) if size else _map_slices(staged, leaves, length)
    return staged.out_tree.unflatten(outs)  # type: ignore[no-any-return]


def _map_slices(staged: Staged, xs: Sequence[Any], length: int) -> list[Any]:
    return run_scan(Body(staged.jaxpr, len(staged.consts), 0), [*staged.consts, *xs], length=length, reverse=False,
                    unroll=1)


def _map_batches(staged: Staged, xs: Sequence[Any], length: int, size: int) -> list[Any]:
    """The same, `size` slices at a time; the remaining ones go last, together."""
    jaxpr, n_consts = staged.jaxpr, len(staged.consts)

    def at_once(size: int) -> Jaxpr:
        dims = (None,) * n_consts + (0,) * len(xs)
        return vmap_jaxpr(jaxpr, size, None, dims, (0,) * len(jaxpr.outvars))[0]

    count, rest = divmod(length, size)
    outs: list[Any] = []
    if count:
        full = [lax.reshape(lax.slice_in_dim(x, 0, count * size), (count, size, *aval_of(x).shape[1:])) for x in xs]
        rows = run_scan(Body(at_once(size), n_consts, 0), [*staged.consts, *full], length=count, reverse=False,
                           unroll=1)
        outs = [lax.reshape(y, (count * size, *aval.shape)) for y, aval in zip(rows, jaxpr.out_avals, strict=True)]
    if rest or not count:
        last = eval_jaxpr(at_once(rest), (), *staged.consts, *[lax.slice_in_dim(x, count * size, length) for x in xs])
        outs = [lax.concatenate(pair, 0) for pair in zip(outs, last, strict=True)] if outs else last
    return outs


# Binding

def run_scan(body: Body, operands: Sequence[Any], *, length: int, reverse: bool, unroll: int, hoisting: bool = False
             ) -> list[Any]:
    """Bind a scan, simplified; with `hoisting`, whatever depends only on constants is computed before the loop."""
    body = _settled(body, [aval_of(x).varying for x in operands])
    if length == 0 or (length == 1 and not context.trace.is_staging):
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


def _settled(body: Body, given: list[Any]) -> Body:
    """The body with carries that vary along the same axes of a mesh before and after each step.

    `given` are the axes along which the operands vary.
    """
    if not any(given) and not carrying.varies(body.jaxpr):
        return body
    while True:
        jaxpr = carrying.retyped(body.jaxpr, given)
        consts, carry, xs = body.operands([v.aval.varying for v in jaxpr.invars])
        out, ys = body.results([v.aval.varying for v in jaxpr.outvars])
        given = [*consts, *[old | new for old, new in zip(carry, out, strict=True)], *xs]
        if given == [v.aval.varying for v in jaxpr.invars]:
            return body._replace(jaxpr=carrying.retyped(jaxpr, (), [*carry, *ys]))


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
    return scan.primitive.bind(  # type: ignore[no-any-return]
        *operands, jaxpr=body.jaxpr, length=length, reverse=reverse, num_consts=body.num_consts,
        num_carry=body.num_carry, unroll=unroll)


# Checks

class _Step:
    """Stages the user's body for a carry of given types, and checks it."""

    def __init__(self, f: Any, carry_tree: Any, in_tree: Any, x_avals: Sequence[ShapedArray]) -> None:
        if not callable(f):
            raise _not_callable("scan", f)
        self.f, self.carry_tree, self.in_tree = f, carry_tree, in_tree
        self.row_avals = [row_of(aval) for aval in x_avals]

    def __call__(self, carry_avals: Sequence[ShapedArray]) -> tuple[Staged, Sequence[ShapedArray]]:
        staged = stage_function(self.f, [*carry_avals, *self.row_avals], self.in_tree, "scan: the body")
        return staged, staged.closed.out_avals[: self._carry_of(staged).num_leaves]

    def _carry_of(self, staged: Staged) -> Any:
        """The structure of the carry that the body returns."""
        children = staged.out_tree.children()
        example = staged.out_tree.unflatten(range(staged.out_tree.num_leaves))
        if not isinstance(example, (tuple, list)) or len(children) != 2:
            raise CorejaxTypeError(
                "scan: the body must return a pair", where=here(), wanted="(carry, y), where y may be None",
                got=f"a {type(example).__name__} of {len(children)}" if children else "one array",
                todo="return the next carry and what to stack: `return carry, y`")
        return children[0]

    def check(self, staged: Staged, init: Sequence[Any]) -> None:
        """Raise if the body changes the carry's structure or a type."""
        tree = self._carry_of(staged)
        structures.check_carry("scan: the body", self.carry_tree, [aval_of(x) for x in init], tree,
                               staged.closed.out_avals[: tree.num_leaves])


def _length(what: str, avals: Sequence[ShapedArray], xs: Any, length: Any) -> int:
    """The number of steps, on which the inputs and `length` must agree."""
    for i, aval in enumerate(avals):
        if not aval.shape:
            raise CorejaxValueError(f"{what}: xs{paths_of(xs)[i]} has no leading axis to scan over", got=str(aval),
                                    wanted="arrays of at least one axis", where=here(),
                                    todo="close over values that are the same in each step, or carry them")
    sizes = [aval.shape[0] for aval in avals]
    if len(set(sizes)) > 1:
        paths = paths_of(xs)
        raise CorejaxValueError(
            f"{what}: the leading axes of xs differ in size", where=here(), wanted="one size for all of them",
            got="; ".join([f"{aval} for xs{path}" for aval, path in zip(avals, paths, strict=True)]),
            todo="slice or pad them to one length")
    if length is None:
        if not sizes:
            raise CorejaxValueError(f"{what}: the number of steps isn't given", where=here(),
                                    got="no arrays in xs and no length", wanted="one of them",
                                    todo="give xs, or length=n")
        return sizes[0]
    given = _integer(what, "length", length, 0)
    if sizes and given != sizes[0]:
        raise CorejaxValueError(f"{what}: length must be the size of the leading axes of xs", where=here(),
                                got=f"length={given}", wanted=f"{sizes[0]}, as xs{paths_of(xs)[0]} is {avals[0]}",
                                todo="leave out length, or slice the inputs: x[:n]")
    return given


def _integer(what: str, name: str, value: Any, least: int) -> int:
    """An argument that is a count, known when the program is traced."""
    try:
        found = int(value) if isinstance(value, float) and value.is_integer() else operator.index(value)
    except ConcretizationError as error:
        raise ConcretizationError(
            f"{what}: {name} must be known when the program is traced", got=f"a traced {aval_of(value)}",
            wanted="a Python integer", where=here(),
            todo="use lax.fori_loop or lax.while_loop for a computed number of steps, or mark the argument as "
                 "static (static_argnums)") from error
    except TypeError as error:
        raise CorejaxTypeError(f"{what}: {name} must be an integer", got=repr(value), wanted="a Python integer",
                               where=here(), todo=f"pass {name}=int(...)") from error
    if found < least:
        raise CorejaxValueError(f"{what}: {name} is too small", got=found, wanted=f"at least {least}", where=here(),
                                todo=f"check how {name} is computed")
    return found


def _unroll(unroll: int | bool, length: int) -> int:
    """The number of steps in one round of the loop, between 1 and the length of the loop."""
    if isinstance(unroll, (bool, np.bool_)):
        return max(1, length) if unroll else 1
    return max(1, min(_integer("scan", "unroll", unroll, 0), length))


def _not_callable(what: str, f: Any) -> CorejaxTypeError:
    return CorejaxTypeError(f"{what}: the body must be a function", got=f"{kind_of(f)}: {f!r:.80}",
                            wanted="a callable", where=here(), todo=f"pass the function first: lax.{what}(f, ...)")


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
