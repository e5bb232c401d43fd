"""Dual numbers as a transformation of a pack, which must equal forward mode: a test of the hook `carry`.

Where a primitive carries programs they go through these by `carry`, or by `decompose`; else they ask `jvp`. So any
difference from forward mode is due to how a primitive transforms its programs, or puts their operands together.

>>> import corejax as cj
>>> from corejax import lax
>>> fun = lambda x: [lax.fori_loop(0, 2, lambda i, y: y * x, x)]
>>> by_duals(fun, 1, [0])(2.0, 1.0) == by_jvp(fun, 1, [0])(2.0, 1.0)
True
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any, NamedTuple

from corejax.core import Primitive, ShapedArray, Zero, aval_of, dtypes, instantiate, jvp_flat
from corejax.plugin import transforming

Flat = Callable[..., Sequence[Any]]


class Dual(NamedTuple):
    """A value and its tangent."""

    x: Any
    dot: Any


def dual(args: Sequence[Any]) -> Any:
    """`dual(args, *, ...)`: a Dual for each result, or a plain value where the tangent is zero."""


def by_rule(lifting: transforming.Lifting, primitive: Primitive) -> Any:
    """The rule of a primitive that carries no programs: its `jvp`."""
    if primitive.jvp is None:
        return None

    def rule(args: Sequence[Any], /, **params: Any) -> Any:
        xs = [x.x if isinstance(x, Dual) else x for x in args]
        dots = [x.dot if isinstance(x, Dual) else Zero(aval_of(x).tangent) for x in args]
        outs, out_dots = primitive.jvp(xs, dots if primitive.symbolic_zeros else [*map(instantiate, dots)], **params)
        if not primitive.multiple_results:
            return outs if type(out_dots) is Zero else Dual(outs, out_dots)
        return [x if type(dot) is Zero else Dual(x, dot) for x, dot in zip(outs, out_dots, strict=True)]
    return rule


class Duals(transforming.Lifting):
    """Dual numbers, by programs wherever there are any."""

    boxes = Dual

    def avals(self, aval: ShapedArray, form: transforming.Form) -> Sequence[ShapedArray]:
        return [aval, aval.tangent]

    def raised(self, x: Any, form: transforming.Form) -> Any:
        return Dual(x, instantiate(Zero(aval_of(x).tangent)))


DUALS = Duals(dual, situation="derivative", ways={
    "by programs": transforming.from_programs, "by jvp": by_rule, "by decompose": transforming.from_decompose})


def by_duals(fun: Flat, count: int, boxed: Collection[int]) -> Flat:
    """The results and tangents of a function of `count` arrays, given these and then tangents of those `boxed`."""
    def run(*operands: Any) -> list[Any]:
        dots = iter(operands[count:])
        outs = DUALS.run(fun, [Dual(x, next(dots)) if i in boxed else x for i, x in enumerate(operands[:count])])
        values = [out.x if isinstance(out, Dual) else out for out in outs]
        return [*values, *[out.dot if isinstance(out, Dual) else instantiate(Zero(aval_of(out).tangent)) for out in outs
                           if isinstance(out, Dual) or dtypes.is_inexact(aval_of(out).dtype)]]
    return run


def by_jvp(fun: Flat, count: int, boxed: Collection[int]) -> Flat:
    """The same by forward mode."""
    def run(*operands: Any) -> list[Any]:
        dots = iter(operands[count:])
        xs = operands[:count]
        outs, out_dots = jvp_flat(fun, xs, [next(dots) if i in boxed else Zero(aval_of(x).tangent)
                                            for i, x in enumerate(xs)])
        return [*outs, *[instantiate(dot) for x, dot in zip(outs, out_dots, strict=True)
                         if dtypes.is_inexact(aval_of(x).dtype)]]
    return run
