"""Jacobians of sparse functions: which results depend on which inputs, and so how few derivatives give them all.

A transformation of one's own, by a hook `sparsity` that it adds to every primitive: each element of a value travels
with the numbers of the inputs that it depends on. Inputs that no result has in common share one derivative, so that a
Jacobian with a few bands costs a few of them, whatever its size.

>>> f = lambda x: x[1:] * x[:-1]
>>> pattern(f, np.ones(4)).tolist()
[[1, 0], [2, 1], [3, 2]]
>>> colours(pattern(f, np.ones(4)), 4).tolist()
[0, 1, 0, 1]
>>> sparse_jacobian(f, np.array([1.0, 2.0, 3.0, 4.0]))[1].tolist()
[[1.0, 2.0], [2.0, 3.0], [3.0, 4.0]]
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

import corejax as cj
from corejax import lax
from corejax.core import Primitive, ShapedArray, Trace, Tracer, aval_of, context, dtypes, eval_jaxpr, subjaxprs
from corejax.plugin import families, transforming

# The transformation


class Inputs(NamedTuple):
    """The type of a value, and for each element the inputs that it depends on: one more axis, filled up with -1."""

    aval: ShapedArray
    rows: np.ndarray


def sparsity(args: Sequence[Any], avals: Sequence[Any]) -> Any:
    """`sparsity(args, avals, *, ...)`: the `Inputs` of each result, whose types are `avals`.

    Operands are `Inputs`, or values if they depend on no input.
    """


class SparsityTracer(Tracer):
    """A value of which only the type is known, and the inputs that it depends on."""

    __slots__ = ("inputs",)

    def __init__(self, trace: Trace, inputs: Inputs) -> None:
        self._trace, self.aval, self.inputs = trace, inputs.aval, inputs


class SparsityTrace(Trace):
    """Asks for the rule of each primitive that is applied to a tracer of its own; what isn't is computed."""

    __slots__ = ()

    def process(self, primitive: Primitive, args: Sequence[Any], params: Any) -> Any:
        assert self.parent is not None
        operands = [x.inputs if type(x) is SparsityTracer and x._trace is self else self.rule_operand(primitive, i, x)
                    for i, x in enumerate(args)]
        context.trace = self.parent
        try:
            if not any([type(x) is Inputs for x in operands]):
                return self.parent.process(primitive, operands, params)
            types = primitive.infer(tuple(map(aval_of, args)), params)
            avals = types if primitive.multiple_results else [types]
            found = transforming.apply_rule(SPARSITY, primitive, (operands, avals), args, params)
        finally:
            context.trace = self
        outs = [SparsityTracer(self, inputs) for inputs in found]
        return outs if primitive.multiple_results else outs[0]


def run(fun: Callable[..., Sequence[Any]], args: Sequence[Any]) -> list[Inputs]:
    """The inputs that each result of `fun` depends on."""
    parent = context.trace
    trace = SparsityTrace(parent)
    context.trace = trace
    try:
        outs = fun(*[SparsityTracer(trace, x) if type(x) is Inputs else x for x in args])
        for x in outs:
            transforming.check_belongs(x, trace, "sparsity")
    finally:
        context.trace = parent
        trace.live = False
    return [x.inputs if type(x) is SparsityTracer else _none(aval_of(x)) for x in outs]


# How rules are derived: none is written for any one primitive

def moved(_: Any, primitive: Primitive) -> Any:
    """A primitive that moves elements, whatever they are, moves the numbers of inputs as well."""
    def rule(args: Sequence[Any], avals: Sequence[Any], **params: Any) -> list[Inputs]:
        widths = [x.rows.shape[-1] for x in args if type(x) is Inputs]
        if 0 in widths:  # it may be an index that isn't known
            return anything(_, primitive)(args, avals, **params)  # type: ignore[no-any-return]
        width = max(widths)
        operands = [_widened(x.rows, width) if type(x) is Inputs else
                    np.full((*x.shape, width), -1) if dtypes.is_inexact(x.dtype) else x for x in args]
        axes = [-1 if y is not x else None for x, y in zip(args, operands, strict=True)]
        outs = cj.vmap(lambda *xs: primitive.bind(*xs, **params), axes, -1)(*operands)
        return [Inputs(aval, np.asarray(rows))
                for aval, rows in zip(avals, outs if primitive.multiple_results else [outs], strict=True)]
    runs_others = primitive.carry is not None or primitive.decompose is not None
    return rule if primitive.structural and not runs_others and not _is_a_row(primitive) else None


def elementwise(_: Any, primitive: Primitive) -> Any:
    """An element depends on whatever the same elements of the operands do, unless its derivative is zero."""
    def rule(args: Sequence[Any], avals: Sequence[Any], **params: Any) -> list[Inputs]:
        if not dtypes.is_inexact(avals[0].dtype):
            return [_none(avals[0])]
        shape = avals[0].shape
        rows = [np.broadcast_to(x.rows, (*shape, x.rows.shape[-1])) for x in args if type(x) is Inputs]
        return [Inputs(avals[0], _distinct(np.concatenate(rows, axis=-1)))]
    return rule if _is_a_row(primitive) else None


def run_once(_: Any, primitive: Primitive) -> Any:
    """A program that runs once is followed."""
    def rule(args: Sequence[Any], avals: Sequence[Any], **params: Any) -> list[Inputs]:
        programs = list(subjaxprs(params))
        if len(programs) != 1 or len(programs[0].invars) != len(args):
            return anything(_, primitive)(args, avals, **params)  # type: ignore[no-any-return]
        return run(partial(eval_jaxpr, programs[0], ()), args)
    return rule if primitive.carry is not None and primitive.holds in (None, "recomputed") else None


def composed(_: Any, primitive: Primitive) -> Any:
    """A composition is followed, unless its derivative is another one."""
    def rule(args: Sequence[Any], avals: Sequence[Any], **params: Any) -> list[Inputs]:
        return run(transforming.composition(primitive, params), args)
    return rule if primitive.decompose is not None and primitive.providers["jvp"] == "derived" else None


def anything(_: Any, primitive: Primitive) -> Any:
    """For all that nothing is known of: each element may depend on whatever any operand does."""
    def rule(args: Sequence[Any], avals: Sequence[Any], **params: Any) -> list[Inputs]:
        every = np.unique(np.concatenate([x.rows.ravel() for x in args if type(x) is Inputs]))
        every = every[every >= 0][::-1]
        return [Inputs(aval, np.broadcast_to(every, (*aval.shape, every.size))) for aval in avals]
    return rule


SPARSITY = transforming.Transformation(sparsity, situation="derivative", ways={
    "by moving numbers": moved, "elementwise": elementwise, "by following its program": run_once,
    "by following its composition": composed, "as anything may depend on anything": anything})


def _is_a_row(primitive: Primitive) -> bool:
    return isinstance(primitive.plugin, families.Elementwise) or primitive is lax.convert_element_type.primitive


def _none(aval: Any) -> Inputs:
    return Inputs(aval, np.full((*aval.shape, 0), -1))


def _widened(rows: np.ndarray, width: int) -> np.ndarray:
    return np.pad(rows, [(0, 0)] * (rows.ndim - 1) + [(0, width - rows.shape[-1])], constant_values=-1)


def _distinct(rows: np.ndarray) -> np.ndarray:
    """Each row without repetitions, its largest number first, and no row longer than need be."""
    rows = np.sort(np.maximum(rows, -1), axis=-1)
    rows[..., 1:][rows[..., 1:] == rows[..., :-1]] = -1
    return np.sort(rows, axis=-1)[..., ::-1][..., : int((rows >= 0).sum(-1).max(initial=0))]


# Sparse Jacobians

def pattern(fun: Callable[[Any], Any], x: np.ndarray) -> np.ndarray:
    """For each element of the result of a function of an array, the inputs that it may depend on; -1 fills up rows."""
    (out,) = run(lambda x: [fun(x)], [Inputs(aval_of(x), np.arange(x.size).reshape(*x.shape, 1))])
    return _distinct(out.rows.reshape(out.aval.size, out.rows.shape[-1]))


def colours(rows: np.ndarray, size: int) -> np.ndarray:
    """A number for each of `size` inputs, so that no row has two inputs of one number: each gets the least it can."""
    beside: list[set[int]] = [set() for _ in range(size)]
    lists = [row[row >= 0].tolist() for row in rows]
    for row in lists:
        for j in row:
            beside[j].update(row)
    found = np.full(size, -1)
    for j in range(size):
        taken = {int(found[k]) for k in beside[j]}
        found[j] = next(c for c in range(size) if c not in taken)
    return found


def sparse_jacobian(fun: Callable[[Any], Any], x: np.ndarray) -> tuple[np.ndarray, Any]:
    """The inputs that each result depends on, and its derivatives with respect to these."""
    rows = pattern(fun, x)
    numbers = colours(rows, x.size)
    return rows, compressed(fun, rows, numbers)(x)


def compressed(fun: Callable[[Any], Any], rows: np.ndarray, numbers: np.ndarray) -> Callable[[Any], Any]:
    """A compiled function of x: for each result the derivatives with respect to the inputs in its row."""
    which, place = numbers[np.maximum(rows, 0)], np.arange(len(rows))[:, None]
    count = int(numbers.max(initial=0)) + 1

    @cj.jit
    def values(x: Any) -> Any:
        seeds = lax.reshape((numbers == np.arange(count)[:, None]).astype(x.dtype), (count, *x.shape))
        found = cj.vmap(lambda v: cj.jvp(fun, (x,), (v,))[1].reshape(-1))(seeds)
        return lax.select(rows >= 0, found[which, place], lax.full_like(found, 0, shape=rows.shape))
    return values


def reaction(x: Any) -> Any:
    """A reaction that spreads along a line: each result depends on three neighbours."""
    return lax.exp(-x[1:-1]) * x[1:-1] + 100.0 * (x[2:] - 2.0 * x[1:-1] + x[:-2])


def main() -> None:
    """Show the Jacobian of a function with three bands, and what it costs beside all of it."""
    size = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    x = np.linspace(0.0, 1.0, size)
    start = time.perf_counter()
    rows = pattern(reaction, x)
    numbers = colours(rows, size)
    print(f"{size} inputs, {numbers.max() + 1} colours, found in {time.perf_counter() - start:.3f} s")
    sparse, dense = compressed(reaction, rows, numbers), cj.jit(cj.jacfwd(reaction))
    values, whole = sparse(x), np.asarray(dense(x))
    print("largest difference:", np.abs(np.take_along_axis(whole, rows, 1) - values).max())
    for name, function in (("compressed", sparse), ("jacfwd", dense)):
        start = time.perf_counter()
        function(x).block_until_ready()
        print(f"{name}: {time.perf_counter() - start:.4f} s")


if __name__ == "__main__":
    main()
