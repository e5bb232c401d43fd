"""Carrying programs: a toolkit for primitives whose params hold jaxprs. Public as `corejax.plugin.carrying`.

A rule of such a primitive transforms the program, arranges operands for the new one, and binds the primitive again.
The transformations are in `corejax.core` (`jvp_jaxpr`, `transpose_jaxpr`, `vmap_jaxpr`) and here (`split_jaxpr`,
`without_dead_code`). The rest is here too, as it is easy to get slightly wrong: which tangents a program takes, what
its known half passes to the other, which operands are left, and when the types of a loop's carry have settled.

>>> from functools import partial
>>> from corejax.core import jvp_jaxpr, stage, transpose_jaxpr, vmap_jaxpr, ShapedArray
>>> from corejax.plugin import carrying, define, hookimpl
>>> class Call:
...     name = "demo_call"
...     multiple_results = True
...     symbolic_zeros = True
...     @hookimpl
...     def abstract_eval(self, avals, *, jaxpr):
...         carrying.check_operands("demo_call", jaxpr, avals)
...         return jaxpr.out_avals
...     @hookimpl
...     def jvp(self, primals, tangents, *, jaxpr):
...         return carrying.jvp(primals, tangents, partial(jvp_jaxpr, jaxpr), self._bind)
...     @hookimpl
...     def transpose(self, cotangents, args, *, jaxpr):
...         return carrying.transpose(cotangents, args, partial(transpose_jaxpr, jaxpr), self._bind)
...     @hookimpl
...     def vmap(self, axis, args, dims, *, jaxpr):
...         mapped, out_dims = vmap_jaxpr(jaxpr, axis.size, axis.name, dims)
...         return self._bind(mapped, args), out_dims
...     @hookimpl
...     def xla_translation(self, ctx, args, *, jaxpr):
...         return ctx.call(jaxpr, args)
...     @hookimpl
...     def partial_eval(self, eqn, unknown_in):
...         split = carrying.split_jaxpr(eqn.params["jaxpr"], unknown_in)
...         return carrying.divide(eqn, split, partial(carrying.with_jaxpr, eqn))
...     @hookimpl
...     def dce(self, eqn, used_out):
...         shorter = carrying.without_dead_code(eqn.params["jaxpr"], used_out)
...         return carrying.shorten(eqn, used_out, shorter, partial(carrying.with_jaxpr, eqn))
...     @hookimpl
...     def effects(self, avals, *, jaxpr):
...         return jaxpr.effects
...     def _bind(self, jaxpr, operands):
...         return demo_call.primitive.bind(*operands, jaxpr=jaxpr)
>>> demo_call = define(Call())
>>> import numpy as np, corejax as cj
>>> square = stage(lambda x: [x * x], [ShapedArray((), "float64")]).jaxpr
>>> slope = cj.grad(lambda x: demo_call(x, jaxpr=square)[0])
>>> x = np.float64(3.0)
>>> slope(x).item(), [eqn.primitive for eqn in cj.make_jaxpr(slope)(x).eqns]
(6.0, [demo_call, demo_call])
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence, Sized
from itertools import count
from typing import Any, Generic, NamedTuple, TypeVar

from corejax.base.avals import Linear, ShapedArray, Zero, aval_of
from corejax.base.caches import WeakCache
from corejax.base.errors import CorejaxNotImplementedError, CorejaxTypeError, RuleError
from corejax.base.source import here
from corejax.installed.roles import roles
from corejax.interpreters.batching import are_about, in_turn
from corejax.interpreters.calling import (
    StagedCall,
    StagedStep,
    call_python,
    runs_python,
    settle,
    stage_call,
    stage_step,
)
from corejax.interpreters.recomputing import (
    Decision,
    Offloadable,
    Policy,
    Recompute,
    Saveable,
    Saving,
    recompute,
    split_again,
    split_saving,
)
from corejax.interpreters.residuals import keep_small
from corejax.interpreters.splitting import Flags, Place, Split, split_jaxpr
from corejax.interpreters.staging import WideningTrace, stage_closed
from corejax.ir.arguments import check_jaxpr
from corejax.ir.interpret import eval_jaxpr
from corejax.ir.surgery import dce, reorder_invars, select_outputs
from corejax.kernel.axes import AxisEnv
from corejax.kernel.checks import refuse
from corejax.kernel.context import context
from corejax.kernel.jaxpr import Atom, Effects, Jaxpr, JaxprEqn, Literal, Var, no_effects, subjaxprs
from corejax.kernel.primitive import Primitive
from corejax.kernel.varying import Names, along, varied

__all__ = [
    "Decision", "Flags", "Offloadable", "Place", "Policy", "Recompute", "Saveable", "Saving", "Shorter", "Split",
    "StagedCall", "StagedStep", "along", "call_python", "check_operands", "divide", "effects_of", "either",
    "fixed_point", "hoist", "in_groups", "jvp", "keep_small", "marked", "nonzero", "one_by_one", "part_tangents",
    "recompute", "remembered", "retyped", "run", "runs_python", "settle", "shorten", "split_again", "split_jaxpr",
    "split_saving", "stage_call", "stage_step", "transpose", "varied", "varies", "with_jaxpr", "with_tangents",
    "with_zeros", "without_dead_code", "without_zeros",
]

P = TypeVar("P")
T = TypeVar("T")
Bind = Callable[[Any, list[Any]], Sequence[Any]]
"""`bind(program, operands)`: bind the primitive to another program and return the results."""
Remake = Callable[[Any, list[Any], list[Var]], JaxprEqn]
"""`remake(program, operands, outvars)`: an equation of the primitive for another program."""


def marked(items: Iterable[T], flags: Iterable[bool]) -> list[T]:
    """The items whose flag is set."""
    return [x for x, flag in zip(items, flags, strict=True) if flag]


def either(*rows: Iterable[bool]) -> Flags:
    """Where a flag is set in any of the rows."""
    return tuple([True in column for column in zip(*rows, strict=True)])


def remembered(function: Callable[..., T]) -> Callable[..., T]:
    """Cache `function(program, *key)` for each program, key, and set of axes that vmaps have named.

    A program is a jaxpr, or a tuple (maybe a named one) that begins with a jaxpr. The cache lives as long as that
    jaxpr, so the result must not refer to it: return `jaxpr.replace()`, which has the same equations, instead.
    """
    def compute(first: Jaxpr, kind: Any, rest: tuple[object, ...], axes: AxisEnv, *key: Any) -> T:
        if kind is None:
            return function(first, *key)
        parts = (first, *[first if x is _same else x for x in rest])
        return function(parts if kind is tuple else kind(*parts), *key)

    def call(program: Any, *key: Any) -> T:
        if type(program) is Jaxpr:
            return cache(program, None, (), context.axes, *key)
        kind: Any = type(program)
        first, rest = program[0], program[1:]
        if first in rest:  # in a key, it would be kept alive
            rest = tuple([_same if x is first else x for x in rest])
        return cache(first, kind, rest, context.axes, *key)

    cache: WeakCache[T] = WeakCache(compute)
    return call


_same = object()


# Calls

def check_operands(primitive: str, jaxpr: Jaxpr, avals: Sequence[ShapedArray]) -> None:
    """Raise if the operands don't match the inputs of the called jaxpr."""
    wanted = jaxpr.in_avals
    if len(avals) != len(wanted) or not all([a.fits(w) for a, w in zip(avals, wanted, strict=True)]):
        raise CorejaxTypeError(f"{primitive}: the operands don't fit the called jaxpr", primitive=primitive,
                               got=", ".join(map(str, avals)) or "no operands", where=here(),
                               wanted=", ".join(map(str, wanted)) or "no operands",
                               todo="pass one operand of the right type for each input of the jaxpr")


def run(jaxpr: Jaxpr, operands: Sequence[object]) -> list[Any]:
    """The results of a program, of exactly the types that it announces.

    Operands may be weakly typed where the inputs aren't, as numbers are, or the other way round.

    >>> import corejax as cj
    >>> double = cj.make_jaxpr(lambda x: x + x)(2.0).jaxpr
    >>> double.out_avals, run(double, [cj.lax.sin(0.0)])
    ([~f64[]], [Array(0., dtype=float64, weak_type=True)])
    """
    return eval_jaxpr(jaxpr, (), *[
        x if (own := aval_of(x)) is aval or own.weak_type is aval.weak_type
        else roles.convert(x, aval.dtype, aval.weak_type) for x, aval in zip(operands, jaxpr.in_avals, strict=True)])


def varies(*jaxprs: Jaxpr) -> bool:
    """Whether any input or output of these programs varies along an axis of a mesh."""
    return any([v.aval.varying for jaxpr in jaxprs for v in (*jaxpr.invars, *jaxpr.outvars)])


def retyped(jaxpr: Jaxpr, inputs: Sequence[Names] = (), outputs: Sequence[Names] = ()) -> Jaxpr:
    """The program with inputs, and outputs, that vary along these axes of a mesh too (cached); () changes none.

    A primitive in it that carries programs itself needs a method `widened`, see docs/hooks.md.
    """
    ins = tuple([v.aval.varying.union(axes) for v, axes in zip(jaxpr.invars, inputs, strict=True)]) if inputs else ()
    outs = tuple([
        v.aval.varying.union(axes) for v, axes in zip(jaxpr.outvars, outputs, strict=True)]) if outputs else ()
    if all([v.aval.varying == axes for v, axes in zip(jaxpr.invars, ins, strict=False)]) and (
            all([v.aval.varying == axes for v, axes in zip(jaxpr.outvars, outs, strict=False)])):
        return jaxpr
    return _retyped(jaxpr, ins, outs)


@remembered
def _retyped(jaxpr: Jaxpr, ins: tuple[Names, ...], outs: tuple[Names, ...]) -> Jaxpr:
    def fun(*xs: Any) -> list[Any]:
        found = eval_jaxpr(jaxpr, (), *xs)
        return [varied(x, axes) for x, axes in zip(found, outs, strict=True)] if outs else found

    avals = [along(aval, axes) for aval, axes in zip(jaxpr.in_avals, ins or [()] * len(jaxpr.invars), strict=True)]
    return stage_closed(fun, avals, jaxpr.name, WideningTrace)


def effects_of(program: Any) -> Effects:
    """The effects of a jaxpr, or of all the jaxprs in a tuple."""
    if type(program) is Jaxpr:
        return program.effects
    found = no_effects
    for part in program:
        if type(part) is Jaxpr and part.effects:
            found = found | part.effects
    return found


def jvp(primals: Sequence[object], tangents: Sequence[object], forward: Callable[[Flags], tuple[Any, Flags]], bind: Bind
        ) -> tuple[list[Any], list[Any]]:
    """The return value of a `jvp` hook: results, and their tangents.

    Like `jvp_jaxpr`, `forward(nonzero)` returns the program of (primals, nonzero tangents) -> (results, nonzero
    tangents), and which results have a tangent.
    """
    program, nonzero_out = forward(nonzero(tangents))
    return part_tangents(bind(program, with_tangents([primals], [tangents])), [nonzero_out])


def one_by_one(primitive: Primitive, axis: Any, args: Sequence[object], dims: Sequence[int | None],
               params: Mapping[str, Any]) -> tuple[Any, Any]:
    """The return value of a `vmap` hook: the primitive for one element of the batch after the other.

    For programs with effects which only happen for some elements: a branch, or the steps of a loop.
    """
    for jaxpr in subjaxprs(params):
        refuse(primitive, jaxpr.effects, "vmap")
    if axis.name is not None and are_about({**params}, axis.name):
        raise CorejaxNotImplementedError(
            f"{primitive.name}: its program has effects, and exchanges data along the mapped axis {axis.name!r}",
            primitive=primitive.name, pack=primitive.origin, hook="vmap", where=here(),
            got="an index or a condition that differs between the elements of a batch",
            wanted="one that is the same for all, or a program that has only one of the two",
            todo="take what exchanges data, or what has effects, out of the program")
    return in_turn(primitive, axis, args, dims, {**params})


def transpose(cotangents: Sequence[object], args: Sequence[object],
              backward: Callable[[Flags, Flags], tuple[Any, Flags]], bind: Bind) -> list[Any]:
    """The return value of a `transpose` hook: a cotangent for each linear operand.

    Like `transpose_jaxpr`, `backward(linear, nonzero)` returns the program of (other operands, nonzero cotangents) ->
    (nonzero cotangents), and which linear operands have one.
    """
    program, nonzero_in = backward(tuple([type(x) is Linear for x in args]), nonzero(cotangents))
    operands = [*[x for x in args if type(x) is not Linear], *without_zeros(cotangents)]
    found = bind(program, operands) if True in nonzero_in or effects_of(program) else ()
    _check_count(found, sum(nonzero_in))
    back = iter(with_zeros(found, nonzero_in, [x.aval for x in args if type(x) is Linear]))
    return [next(back) if type(x) is Linear else None for x in args]


# Tangents and cotangents

def nonzero(xs: Iterable[object]) -> Flags:
    """Which tangents (or cotangents) are not known to be zero."""
    return tuple([type(x) is not Zero for x in xs])


def without_zeros(xs: Iterable[object]) -> list[Any]:
    """The tangents (or cotangents) that are not known to be zero."""
    return [x for x in xs if type(x) is not Zero]


def with_zeros(found: Iterable[object], flags: Iterable[bool], avals: Iterable[ShapedArray]) -> list[Any]:
    """The inverse of `without_zeros`: the next of `found` where a flag is set, a `Zero` elsewhere."""
    rest = iter(found)
    return [next(rest) if nz else Zero(aval) for nz, aval in zip(flags, avals, strict=True)]


def with_tangents(groups: Sequence[Iterable[object]], tangents: Sequence[Iterable[object]]) -> list[Any]:
    """Values and tangents as operands: each group of values, followed by its nonzero tangents."""
    operands: list[Any] = []
    for group, dots in zip(groups, tangents, strict=True):
        operands += group
        operands += without_zeros(dots)
    return operands


def part_tangents(outs: Sequence[object], groups: Sequence[Sequence[bool]]) -> tuple[list[Any], list[Any]]:
    """Take results in groups apart: all values, and a tangent for each. Flags say which values have one."""
    _check_count(outs, sum([len(flags) + sum(flags) for flags in groups]))
    values: list[Any] = []
    dots: list[Any] = []
    start = 0
    for flags in groups:
        middle = start + len(flags)
        group, start = outs[start:middle], middle + sum(flags)
        values += group
        tangents = iter(outs[middle:start])
        dots += [next(tangents) if nz else Zero(aval_of(x).tangent) for x, nz in zip(group, flags, strict=True)]
    return values, dots


def in_groups(dual: Jaxpr, operands: Sequence[Sequence[bool]], results: Sequence[Sequence[bool]]) -> Jaxpr:
    """The jaxpr `dual` from `jvp_jaxpr`, reordered: each group of operands or results is followed by its tangents.

    Flags say which values have a tangent.
    """
    return select_outputs(reorder_invars(dual, _places(operands)), _places(results))


def _places(groups: Sequence[Sequence[bool]]) -> list[int]:
    """The order that puts the tangents of each group after its values, where all values came first."""
    values, tangents = count(), count(sum([len(flags) for flags in groups]))
    return [next(at) for flags in groups for at in (*[values] * len(flags), *[tangents] * sum(flags))]


# Equations

def with_jaxpr(eqn: JaxprEqn, jaxpr: Jaxpr, invars: Sequence[Atom], outvars: Sequence[Var], **params: Any) -> JaxprEqn:
    """The same call of another jaxpr, in the param `jaxpr`."""
    return eqn.replace(invars=invars, outvars=outvars, params={**eqn.params, "jaxpr": jaxpr, **params},
                       effects=jaxpr.effects)


def divide(eqn: JaxprEqn, split: Split[Any], remake: Remake, fresh_avals: Sequence[ShapedArray] | None = None
           ) -> tuple[JaxprEqn | None, JaxprEqn | None, Flags, list[Var]]:
    """The return value of a `partial_eval` hook: equations for both parts of a program, or None for one with no use.

    `fresh_avals` are the types of the equation's fresh residuals if they differ from the program's: scan stacks them.
    """
    fresh = [Var(aval) for aval in (split.fresh_avals if fresh_avals is None else fresh_avals)]
    atoms = {"operand": eqn.invars, "result": eqn.outvars, "fresh": fresh}
    waiting = [atoms[where][i] for where, i in split.places]
    unknown = split.unknown_out
    _check_count(eqn.outvars, len(unknown))
    known = staged = None
    outvars = [*[v for v, u in zip(eqn.outvars, unknown, strict=True) if not u], *fresh]
    if outvars or effects_of(split.known):
        known = remake(split.known, [eqn.invars[i] for i in split.known_operands], outvars)
    outvars = marked(eqn.outvars, unknown)
    if outvars or effects_of(split.staged):
        staged = remake(split.staged, waiting, outvars)
    return known, staged, unknown, [v for v in waiting if type(v) is Var and v not in eqn.invars]


class Shorter(NamedTuple, Generic[P]):
    """A program without dead code, with flags for the operands it still takes and the results it still has."""

    program: P
    used_in: Flags
    kept_out: Flags


def shorten(eqn: JaxprEqn, used_out: Sequence[bool], shorter: Shorter[Any] | None, remake: Remake
            ) -> tuple[list[bool], JaxprEqn | None]:
    """The return value of a `dce` hook, given the program without dead code, or None if nothing was dead."""
    if True not in used_out and not eqn.effects:
        return [False] * len(eqn.invars), None
    if shorter is None:
        return [True] * len(eqn.invars), eqn
    program, used_in, kept_out = shorter
    return list(used_in), remake(program, marked(eqn.invars, used_in), marked(eqn.outvars, kept_out))


def without_dead_code(jaxpr: Jaxpr, used_out: Sequence[bool]) -> Shorter[Jaxpr] | None:
    """The jaxpr reduced to the results that are used (cached); None if nothing is dead."""
    check_jaxpr("without_dead_code", jaxpr)
    return _without_dead_code(jaxpr, tuple(used_out))


@remembered
def _without_dead_code(jaxpr: Jaxpr, used_out: Flags) -> Shorter[Jaxpr] | None:
    smaller, used_in = dce(jaxpr, used_out)
    return None if smaller is jaxpr else Shorter(smaller, used_in, used_out)


def _check_count(results: Sized, wanted: int) -> None:
    """Raise unless a primitive has as many results as its program. Who calls the rule adds the primitive's name."""
    if len(results) != wanted:
        raise RuleError("announces a different number of results than its program has", hook="abstract_eval",
                        got=f"{len(results)} results", wanted=f"{wanted}, as its program has", where=here(),
                        todo="return a type for each result: for a call, jaxpr.out_avals")


# Loops

def fixed_point(start: Iterable[bool], step: Callable[[Flags], tuple[T, Iterable[bool]]]) -> tuple[Flags, T]:
    """The smallest superset of the given flags that a loop's step maps to itself, and what `step` made for it.

    `step(flags)` transforms the body for a carry with these flags, and returns the result and the carry's new flags.
    """
    flags = tuple(start)
    while True:
        made, found = step(flags)
        grown = either(flags, found)
        if grown == flags:
            return flags, made
        flags = grown


@remembered
def hoist(jaxpr: Jaxpr, num_consts: int) -> tuple[Jaxpr, Jaxpr] | None:
    """The part of a loop's body that is the same in each step, and the rest; None if there is no such part.

    The first maps the leading operands, which no step changes, to values; the second takes these values after them.
    Equations without inputs stay in the body: the compiler does better with a constant that it can see.
    """
    consts = jaxpr.invars[:num_consts]
    free: set[Var] = set()
    invariant: set[Var] = {*consts}
    outer: list[JaxprEqn] = []
    inner: list[JaxprEqn] = []
    for eqn in jaxpr.eqns:
        found = [x for x in eqn.invars if type(x) is not Literal and x not in free]
        if eqn.effects or not all([x in invariant for x in found]):
            inner.append(eqn)
            continue
        outer.append(eqn)
        if found:
            invariant.update(eqn.outvars)
        else:
            free.update(eqn.outvars)
            inner.append(eqn)
    read = {x for atoms in (*[eqn.invars for eqn in inner], jaxpr.outvars) for x in atoms if type(x) is not Literal}
    taken: list[Var] = [v for eqn in outer for v in eqn.outvars if v in read and v not in free]
    if not taken:
        return None
    first, _ = dce(Jaxpr((), consts, taken, outer), (True,) * len(taken), instantiate=True)
    rest = jaxpr.replace(invars=[*consts, *taken, *jaxpr.invars[num_consts:]], eqns=inner)
    return first, dce(rest, (True,) * len(rest.outvars), instantiate=True)[0]
