"""`scan`: a loop of known length, each step of which reads a slice of the inputs and writes one of the outputs.

Each rule transforms the body and scans the result: what a body becomes is in `_scan_forms`. A scan is simplified
before it is bound, so that what no step changes isn't carried, and what is an input already isn't written again.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from corejax import lax
from corejax.core import (
    Jaxpr,
    JaxprEqn,
    Linear,
    ShapedArray,
    Staged,
    Var,
    Zero,
    aval_of,
    context,
    eval_jaxpr,
    flatten,
    here,
    instantiate,
    namer,
    paths_of,
    stage,
    stage_function,
    to_dim,
    values,
    vmap_jaxpr,
)
from corejax.errors import ConcretizationError, CorejaxTypeError, CorejaxValueError, kind_of
from corejax.plugin import Sample, define, hookimpl, public, roles
from corejax_control_flow._carry import check_carry, settle
from corejax_control_flow._invariants import hoist
from corejax_control_flow._scan_forms import Body, backward, batched, forward, halves, shorten, simplify
from corejax_control_flow._scan_lowering import Loop, lower_scan

__all__ = ["map", "scan"]

Flags = tuple[bool, ...]


class Scan:
    """`scan(f, init, xs=None, length=None, reverse=False, unroll=1)`: a loop over the leading axis of `xs`.

    `f(carry, x)` returns `(carry, y)`; `carry` starts as `init` and keeps its type, `x` is one slice of `xs`. Returns
    the last carry and the `y`s, stacked. All of them are pytrees of arrays. Without inputs, `xs` is None and `length`
    says how many steps there are; `reverse` begins at the end; `unroll` steps are compiled into each round of the loop
    (True: all of them).

    >>> total, sums = lax.scan(lambda total, x: (total + x, total), 0, lax.iota("int64", 5))
    >>> int(total), sums.tolist()
    (10, [0, 0, 1, 3, 6])
    """

    name = "scan"
    multiple_results = True
    symbolic_zeros = True

    def function(self, bind: Any) -> Any:
        def scan(f: Callable[[Any, Any], Any], init: Any, xs: Any = None, length: int | None = None,
                 reverse: bool = False, unroll: int | bool = 1) -> tuple[Any, Any]:
            init_leaves, carry_tree = flatten(init)
            x_leaves, _ = flatten(xs)
            init_leaves = values(init_leaves, "scan", namer("init", init))
            x_leaves = values(x_leaves, "scan", namer("xs", xs))
            steps = _length("scan", [aval_of(x) for x in x_leaves], xs, length)
            step = _Step(f, carry_tree, flatten((init, xs))[1], [aval_of(x) for x in x_leaves])
            init_leaves, staged = settle(init_leaves, step)
            step.check(staged, init_leaves)
            outs = _scan([*staged.consts, *init_leaves, *x_leaves],
                         Body(staged.jaxpr, len(staged.consts), len(init_leaves)),
                         length=steps, reverse=_flag("reverse", reverse), unroll=_unroll(unroll, steps))
            pair = staged.out_tree.unflatten(outs)
            return pair[0], pair[1]
        return scan

    @hookimpl
    def abstract_eval(self, avals: Any, *, jaxpr: Jaxpr, length: int, reverse: bool, num_consts: int, num_carry: int,
                      unroll: int) -> list[ShapedArray]:
        body = Body(jaxpr, num_consts, num_carry)
        _check(body, avals, length)
        carry, ys = body.results(jaxpr.out_avals)
        return [*carry, *[_stacked(aval, length) for aval in ys]]

    @hookimpl
    def jvp(self, primals: Any, tangents: Any, *, jaxpr: Jaxpr, length: int, reverse: bool, num_consts: int,
            num_carry: int, unroll: int) -> Any:
        body = Body(jaxpr, num_consts, num_carry)
        found = forward(body, tuple([type(t) is not Zero for t in tangents]))
        const_dots, carry_dots, x_dots = body.operands(tangents)
        carry_dots = [instantiate(t) if nz else t for t, nz in zip(carry_dots, found.carry_nonzero, strict=True)]
        operands = []
        for group, dots in zip(body.operands(primals), (const_dots, carry_dots, x_dots), strict=True):
            operands += [*group, *[t for t in dots if type(t) is not Zero]]
        outs = iter(_scan(operands, found.body, length=length, reverse=reverse, unroll=unroll, hoisting=True))
        carry_avals, y_avals = body.results(jaxpr.out_avals)
        carry = [next(outs) for _ in carry_avals]
        carry_dots = [next(outs) if nz else Zero(aval.tangent)
                      for nz, aval in zip(found.carry_nonzero, carry_avals, strict=True)]
        ys = [next(outs) for _ in y_avals]
        y_dots = [next(outs) if nz else Zero(_stacked(aval, length).tangent)
                  for nz, aval in zip(found.ys_nonzero, y_avals, strict=True)]
        return [*carry, *ys], [*carry_dots, *y_dots]

    @hookimpl
    def transpose(self, cotangents: Any, args: Any, *, jaxpr: Jaxpr, length: int, reverse: bool, num_consts: int,
                  num_carry: int, unroll: int) -> Any:
        body = Body(jaxpr, num_consts, num_carry)
        consts, carry, xs = body.operands(args)
        linear = (*[type(x) is Linear for x in consts], *[True] * num_carry, *[type(x) is Linear for x in xs])
        found = backward(body, linear, tuple([type(ct) is not Zero for ct in cotangents]))
        ct_carry, ct_ys = body.results(cotangents)
        lin_consts = [x for x in consts if type(x) is Linear]
        operands = [
            *[x for x in consts if type(x) is not Linear],
            *[roles.zeros(x.aval.tangent) for x, nz in zip(lin_consts, found.consts_nonzero, strict=True) if nz],
            *[instantiate(ct) for ct, nz in zip(ct_carry, found.carry_nonzero, strict=True) if nz],
            *[ct for ct in ct_ys if type(ct) is not Zero], *[x for x in xs if type(x) is not Linear]]
        outs = iter(_scan(operands, found.body, length=length, reverse=not reverse, unroll=unroll, hoisting=True))
        ct_consts = iter([next(outs) if nz else None for nz in found.consts_nonzero])
        ct_init = [next(outs) if nz else None for nz in found.carry_nonzero]
        ct_xs = iter([next(outs) if nz else None for nz in found.xs_nonzero])
        return [*[next(ct_consts) if type(x) is Linear else None for x in consts],
                *[ct if type(x) is Linear else None for x, ct in zip(carry, ct_init, strict=True)],
                *[next(ct_xs) if type(x) is Linear else None for x in xs]]

    @hookimpl
    def vmap(self, axis: Any, args: Any, dims: Any, *, jaxpr: Jaxpr, length: int, reverse: bool, num_consts: int,
             num_carry: int, unroll: int) -> Any:
        body = Body(jaxpr, num_consts, num_carry)
        consts, carry, xs = body.operands(args)
        const_dims, carry_dims, x_dims = body.operands(dims)
        # the axis that is scanned over comes first; where the batch axis is behind it, it stays
        xs = [to_dim(x, d, 1, axis.size) if d == 0 else x for x, d in zip(xs, x_dims, strict=True)]
        slice_dims = [None if d is None else d - 1 if d else 0 for d in x_dims]
        found = batched(body, axis.size, axis.name, (*const_dims, *carry_dims, *slice_dims))
        carry = [x if wanted is None else to_dim(x, d, wanted, axis.size)
                 for x, d, wanted in zip(carry, carry_dims, found.carry, strict=True)]
        outs = _scan([*consts, *carry, *xs], found.body, length=length, reverse=reverse, unroll=unroll)
        return outs, [*found.carry, *[None if d is None else d + 1 for d in found.ys]]

    @hookimpl
    def xla_translation(self, ctx: Any, args: Any, *, jaxpr: Jaxpr, length: int, reverse: bool, num_consts: int,
                        num_carry: int, unroll: int) -> Any:
        return lower_scan(Loop(ctx, jaxpr, length, reverse, num_consts, num_carry), args, unroll)

    @hookimpl
    def partial_eval(self, eqn: Any, unknown_in: Any) -> Any:
        found = halves(_body_of(eqn), tuple(unknown_in))
        fresh = [Var(_stacked(aval, eqn.params["length"])) for aval in found.fresh]
        atoms = {"operand": eqn.invars, "result": eqn.outvars, "fresh": fresh}
        known = staged = None
        if found.known.jaxpr.outvars or found.known.jaxpr.effects:
            outvars = [v for v, unknown in zip(eqn.outvars, found.unknown_out, strict=True) if not unknown]
            known = _with_body(eqn, found.known, [eqn.invars[i] for i in found.known_operands], [*outvars, *fresh])
        operands = [atoms[where][i] for where, i in found.staged_operands]
        if found.staged.jaxpr.outvars or found.staged.jaxpr.effects:
            outvars = [v for v, unknown in zip(eqn.outvars, found.unknown_out, strict=True) if unknown]
            staged = _with_body(eqn, found.staged, operands, outvars)
        return known, staged, found.unknown_out, [v for v in operands if type(v) is Var and v not in eqn.invars]

    @hookimpl
    def dce(self, eqn: Any, used_out: Any) -> Any:
        body = _body_of(eqn)
        if True not in used_out and not eqn.effects:
            return [False] * len(eqn.invars), None
        found = shorten(*body, tuple(used_out))
        if found is None:
            return [True] * len(eqn.invars), eqn
        invars = [x for x, used in zip(eqn.invars, found.used_in, strict=True) if used]
        outvars = [v for v, kept in zip(eqn.outvars, found.kept_out, strict=True) if kept]
        return list(found.used_in), _with_body(eqn, found.body, invars, outvars)

    @hookimpl
    def effects(self, avals: Any, *, jaxpr: Jaxpr) -> frozenset[Any]:
        return jaxpr.effects

    @hookimpl
    def samples(self, rng: Any) -> Iterator[Sample]:
        def sample(fun: Any, consts: list[Any], carry: list[Any], xs: list[Any], results: Any = None, **params: Any
                   ) -> Sample:
            avals = [*map_avals([*consts, *carry]), *[_row(aval_of(x)) for x in xs]]
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
        yield sample(step, [w], [c], [xs[:1]], length=1)
        yield sample(lambda w, c, x: [lax.add(c, x), w, lax.mul(c, x)], [w], [c], [xs],
                     [c + xs[0] + xs[1] + xs[2], [w, w, w],
                      [c * xs[0], (c + xs[0]) * xs[1], (c + xs[0] + xs[1]) * xs[2]]])
        yield sample(lambda c, x: [lax.add(c, x), lax.mul(c, x)], [], [c], [xs],
                     [c + xs[2] + xs[1] + xs[0], [(c + xs[2] + xs[1]) * xs[0], (c + xs[2]) * xs[1], c * xs[2]]],
                     reverse=True)
        wrong = sample(step, [w], [c], [xs], length=4)
        yield Sample(wrong.args, wrong.params, error=TypeError)


scan: Any = define(Scan())


@public
def map(f: Callable[[Any], Any], xs: Any, *, batch_size: int | None = None) -> Any:
    """`f` of each slice of `xs` along its leading axes, one after the other, with the results stacked.

    With `batch_size`, so many slices at once.

    >>> lax.map(lambda x: x * x, lax.iota("int64", 4)).tolist()
    [0, 1, 4, 9]
    """
    if not callable(f):
        raise _not_callable("map", f)
    leaves, _ = flatten(xs)
    leaves = values(leaves, "map", namer("xs", xs))
    avals = [aval_of(x) for x in leaves]
    length = _length("map", avals, xs, None)
    staged = stage_function(f, [_row(aval) for aval in avals], flatten((xs,))[1], "map: the function")
    outs = (_map_slices(staged, leaves, length) if batch_size is None else
            _map_batches(staged, leaves, length, _integer("map", "batch_size", batch_size, 1)))
    return staged.out_tree.unflatten(outs)


def _map_slices(staged: Staged, xs: Sequence[Any], length: int) -> list[Any]:
    return _scan([*staged.consts, *xs], Body(staged.jaxpr, len(staged.consts), 0), length=length, reverse=False,
                 unroll=1)


def _map_batches(staged: Staged, xs: Sequence[Any], length: int, size: int) -> list[Any]:
    """The same, so many slices at once; what is left over goes last, together."""
    jaxpr, n_consts = staged.jaxpr, len(staged.consts)

    def at_once(size: int) -> Jaxpr:
        dims = (None,) * n_consts + (0,) * len(xs)
        return vmap_jaxpr(jaxpr, size, None, dims, (0,) * len(jaxpr.outvars))[0]

    count, rest = divmod(length, size)
    outs: list[Any] = []
    if count:
        full = [lax.reshape(lax.slice_in_dim(x, 0, count * size), (count, size, *aval_of(x).shape[1:])) for x in xs]
        stacked = _scan([*staged.consts, *full], Body(at_once(size), n_consts, 0), length=count, reverse=False,
                        unroll=1)
        outs = [lax.reshape(y, (count * size, *aval.shape)) for y, aval in zip(stacked, jaxpr.out_avals, strict=True)]
    if rest or not count:
        last = eval_jaxpr(at_once(rest), (), *staged.consts, *[lax.slice_in_dim(x, count * size, length) for x in xs])
        outs = [lax.concatenate(pair, 0) for pair in zip(outs, last, strict=True)] if outs else last
    return outs


# Binding

def _scan(operands: Sequence[Any], body: Body, *, length: int, reverse: bool, unroll: int, hoisting: bool = False
          ) -> list[Any]:
    """The results of a scan, simplified; with `hoisting`, what depends on constants only is computed before it."""
    if length == 0 or (length == 1 and not context.trace.is_staging):
        return _without_loop(operands, body, length)
    parts = hoist(body.jaxpr, body.num_consts) if hoisting else None
    if parts is not None:
        consts, rest = operands[: body.num_consts], operands[body.num_consts:]
        hoisted = eval_jaxpr(parts[0], (), *consts)
        operands = [*consts, *hoisted, *rest]
        body = Body(parts[1], body.num_consts + len(hoisted), body.num_carry)
    simpler = simplify(*body)
    if simpler is None:
        return _bind(operands, body, length, reverse, unroll)
    found = _bind([operands[i] for i in simpler.operands], simpler.body, length, reverse, unroll)
    return [found[i] if where == "result" else operands[i] if where == "operand" else
            roles.expand(operands[i], length, 0) for where, i in simpler.results]


def _without_loop(operands: Sequence[Any], body: Body, length: int) -> list[Any]:
    """The results of a scan of one step, or of none: not worth compiling."""
    consts, carry, xs = body.operands(operands)
    carry_avals, y_avals = body.results(body.jaxpr.out_avals)
    ys: list[Any] = []
    if length:
        outs = eval_jaxpr(body.jaxpr, (), *consts, *carry, *[roles.index(x, 0) for x in xs])
        carry, ys = body.results(outs)
        ys = [roles.expand(y, 1, 0) for y in ys]
    else:
        ys = [roles.zeros(_stacked(aval, 0)) for aval in y_avals]
    return [*[roles.convert(c, aval.dtype, aval.weak_type) for c, aval in zip(carry, carry_avals, strict=True)], *ys]


def _bind(operands: Sequence[Any], body: Body, length: int, reverse: bool, unroll: int) -> list[Any]:
    if not body.jaxpr.outvars and not body.jaxpr.effects:
        return []
    return scan.primitive.bind(  # type: ignore[no-any-return]
        *operands, jaxpr=body.jaxpr, length=length, reverse=reverse, num_consts=body.num_consts,
        num_carry=body.num_carry, unroll=unroll)


def _body_of(eqn: JaxprEqn) -> Body:
    return Body(eqn.params["jaxpr"], eqn.params["num_consts"], eqn.params["num_carry"])


def _with_body(eqn: JaxprEqn, body: Body, invars: Sequence[Any], outvars: Sequence[Var]) -> JaxprEqn:
    """The same loop with another body."""
    params = {**eqn.params, "jaxpr": body.jaxpr, "num_consts": body.num_consts, "num_carry": body.num_carry}
    return eqn.replace(invars=invars, outvars=outvars, params=params, effects=body.jaxpr.effects)


# Checks

class _Step:
    """The body that the user gave, staged for a carry of given types."""

    def __init__(self, f: Any, carry_tree: Any, in_tree: Any, x_avals: Sequence[ShapedArray]) -> None:
        if not callable(f):
            raise _not_callable("scan", f)
        self.f, self.carry_tree, self.in_tree = f, carry_tree, in_tree
        self.row_avals = [_row(aval) for aval in x_avals]

    def __call__(self, carry_avals: Sequence[ShapedArray]) -> tuple[Staged, Sequence[ShapedArray]]:
        staged = stage_function(self.f, [*carry_avals, *self.row_avals], self.in_tree, "scan: the body")
        return staged, staged.closed.out_avals[: self._carry_of(staged).num_leaves]

    def _carry_of(self, staged: Staged) -> Any:
        """The structure of the carry that the body returns."""
        children = staged.out_tree.children()
        example = staged.out_tree.unflatten(range(staged.out_tree.num_leaves))
        if not isinstance(example, (tuple, list)) or len(children) != 2:
            raise CorejaxTypeError(
                "scan: the body returns no pair", where=here(), wanted="(carry, y), where y may be None",
                got=f"a {type(example).__name__} of {len(children)}" if children else "one array",
                todo="return the next carry and what to stack: `return carry, y`")
        return children[0]

    def check(self, staged: Staged, init: Sequence[Any]) -> None:
        """Refuse a body whose carry changes its structure or a type."""
        tree = self._carry_of(staged)
        check_carry("scan: the body", self.carry_tree, [aval_of(x) for x in init], tree,
                    staged.closed.out_avals[: tree.num_leaves])


def _length(what: str, avals: Sequence[ShapedArray], xs: Any, length: Any) -> int:
    """The number of steps, as inputs and `length` agree on it."""
    for i, aval in enumerate(avals):
        if not aval.shape:
            raise CorejaxValueError(f"{what}: xs{paths_of(xs)[i]} has no leading axis to go along", got=str(aval),
                                    wanted="arrays of at least one axis", where=here(),
                                    todo="close over what is the same in each step, or carry it")
    sizes = [aval.shape[0] for aval in avals]
    if len(set(sizes)) > 1:
        paths = paths_of(xs)
        raise CorejaxValueError(
            f"{what}: the leading axes of xs differ in size", where=here(), wanted="one size for all of them",
            got="; ".join([f"{aval} for xs{path}" for aval, path in zip(avals, paths, strict=True)]),
            todo="cut or pad them to one length")
    if length is None:
        if not sizes:
            raise CorejaxValueError(f"{what}: nothing says how many steps there are", where=here(),
                                    got="no arrays in xs and no length", wanted="one of them",
                                    todo="give xs, or length=n")
        return sizes[0]
    given = _integer(what, "length", length, 0)
    if sizes and given != sizes[0]:
        raise CorejaxValueError(f"{what}: length is not the size of the leading axes of xs", where=here(),
                                got=f"length={given}", wanted=f"{sizes[0]}, as xs{paths_of(xs)[0]} is {avals[0]}",
                                todo="leave out length, or cut the inputs: x[:n]")
    return given


def _integer(what: str, name: str, value: Any, least: int) -> int:
    """An argument that is a number of things, known when the program is traced."""
    try:
        found = operator.index(value)
    except ConcretizationError as error:
        raise ConcretizationError(
            f"{what}: {name} must be known when the program is traced", got=f"a traced {aval_of(value)}",
            wanted="a Python integer", where=here(),
            todo="use lax.fori_loop or lax.while_loop for a number of steps that is computed, or mark the argument as "
                 "static (static_argnums)") from error
    except TypeError as error:
        raise CorejaxTypeError(f"{what}: {name} is no integer", got=repr(value), wanted="a Python integer",
                               where=here(), todo=f"pass {name}=int(...)") from error
    if found < least:
        raise CorejaxValueError(f"{what}: {name} is too small", got=found, wanted=f"at least {least}", where=here(),
                                todo=f"check how {name} is computed")
    return found


def _unroll(unroll: int | bool, length: int) -> int:
    """The number of steps in one round of the loop, between 1 and the number of all."""
    if isinstance(unroll, bool):
        return max(1, length) if unroll else 1
    return max(1, min(_integer("scan", "unroll", unroll, 0), length))


def _flag(name: str, value: Any) -> bool:
    if isinstance(value, (bool, int)):
        return bool(value)
    raise CorejaxTypeError(f"scan: {name} is a flag", got=repr(value)[:80], wanted="True or False", where=here())


def _not_callable(what: str, f: Any) -> CorejaxTypeError:
    return CorejaxTypeError(f"{what}: what to do in each step is no function", got=f"{kind_of(f)}: {f!r:.80}",
                            wanted="a callable", where=here(), todo=f"pass the function first: lax.{what}(f, ...)")


def _row(aval: ShapedArray) -> ShapedArray:
    """The type of a slice along the first axis."""
    return aval.update(shape=aval.shape[1:])


def _stacked(aval: ShapedArray, length: int) -> ShapedArray:
    """The type of so many values, stacked."""
    return aval.update(shape=(length, *aval.shape))


def _check(body: Body, avals: Sequence[ShapedArray], length: int) -> None:
    """Refuse operands, or a body, that are not those of a loop."""
    consts, carry, xs = body.operands(body.jaxpr.in_avals)
    wanted = [*consts, *carry, *[_stacked(aval, length) for aval in xs]]
    if len(avals) != len(wanted) or [a for a, w in zip(avals, wanted, strict=True) if not a.matches(w)]:
        raise CorejaxTypeError("scan: the operands don't fit the body", primitive="scan", where=here(),
                               got=", ".join([str(aval) for aval in avals]) or "no operands",
                               wanted=", ".join([str(aval) for aval in wanted]) or "no operands",
                               todo="pass constants, carry, and inputs with one slice for each step")
    carry_out, _ = body.results(body.jaxpr.out_avals)
    if len(carry_out) != len(carry) or [a for a, b in zip(carry_out, carry, strict=True) if not a.matches(b)]:
        raise CorejaxTypeError("scan: the body returns another carry than it takes", primitive="scan", where=here(),
                               got=", ".join([str(aval) for aval in carry_out]) or "none",
                               wanted=", ".join([str(aval) for aval in carry]) or "none")
