"""Identities: one that keeps derivatives, one that stops them, one that the compiler doesn't see through."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import numpy as np

from corejax.core import Array, Linear, ShapedArray, Zero, flatten, namer, values
from corejax.plugin import Sample, define, families, hookimpl, not_linear, partials

__all__ = ["copy", "optimization_barrier", "stop_gradient"]

Tree = TypeVar("Tree")


class Copy(families.Identity):
    """`copy(x)`: the same values in new memory.

    >>> copy(np.arange(3)).tolist()
    [0, 1, 2]
    """

    name = "copy"
    linear = (0,)

    @hookimpl
    def impl(self, args: Any) -> Any:
        return args[0].copy()

    @hookimpl
    def transpose(self, cotangents: Any, args: Any) -> Any:
        return [cotangents]

    @hookimpl
    def samples(self, rng: Any) -> Iterator[Sample]:
        for sizes in [(), (3,), (2, 0)]:
            yield Sample([rng.standard_normal(sizes)], {})
        yield Sample([np.arange(3)], {})


class StopGradient(families.Identity):
    """`stop_gradient(x)`: x, an array or a pytree of arrays, with a derivative of zero.

    >>> stop_gradient(np.float64(2.0)).tolist()
    2.0
    """

    name = "stop_gradient"

    def function(self, bind: Callable[..., Any]) -> Any:
        def stop_gradient(x: Tree) -> Tree:
            if isinstance(x, Array):  # as a rule; taking a tree apart would take longer than the rest
                return bind(x)  # type: ignore[no-any-return]
            leaves, tree = flatten(x)
            stopped: Tree = tree.unflatten(
                [bind(leaf) for leaf in values(leaves, "stop_gradient", namer("x", x))])
            return stopped
        return stop_gradient

    jvp = partials(None)
    transpose = not_linear("its derivative is zero, so no tangent ever passes through it")

    @hookimpl
    def samples(self, rng: Any) -> Iterator[Sample]:
        zero = "differences see the identity; that its derivative is zero is its purpose"
        for shape in ((3,), ()):
            yield Sample([rng.standard_normal(shape)], {}, exempt={
                "jvp agrees with differences": zero, "jvp agrees with complex steps": zero,
                "a zero derivative is of a constant": zero, "orderings to depth two agree": zero,
                "orderings to depth three agree": zero})
        yield Sample([np.ones((2, 0))], {})
        yield Sample([np.arange(3)], {})


class OptimizationBarrier:
    """`optimization_barrier(operand)`: a pytree of arrays, unchanged, behind a barrier for the compiler.

    The compiler doesn't move computations across it, or see that the values on both sides are equal. The whole operand
    is computed before any part of the result.

    >>> optimization_barrier({"x": 1.0, "y": np.arange(2)})
    {'x': Array(1., dtype=float64, weak_type=True), 'y': Array([0, 1], dtype=int64)}
    """

    name = "optimization_barrier"
    element_types = ("*",)
    multiple_results = True
    symbolic_zeros = True

    def function(self, bind: Callable[..., Any]) -> Any:
        def optimization_barrier(operand: Tree) -> Tree:
            leaves, tree = flatten(operand)
            xs = values(leaves, "optimization_barrier", namer("operand", operand))
            return tree.unflatten(bind(*xs) if xs else xs)  # type: ignore[no-any-return]
        return optimization_barrier

    @hookimpl
    def impl(self, args: Any) -> Any:
        return [np.asarray(x) for x in args]

    @hookimpl
    def abstract_eval(self, avals: Any) -> list[ShapedArray]:
        return list(avals)

    @hookimpl
    def jvp(self, primals: Any, tangents: Any) -> Any:
        return _barrier(*primals), _behind_barrier(tangents)

    @hookimpl
    def transpose(self, cotangents: Any, args: Any) -> Any:
        return [ct if type(x) is Linear else None for ct, x in zip(_behind_barrier(cotangents), args, strict=True)]

    @hookimpl
    def vmap(self, axis: Any, args: Any, dims: Any) -> Any:
        return _barrier(*args), dims

    @hookimpl
    def xla_translation(self, ctx: Any, args: Any) -> Any:
        made = ctx.op("stablehlo.optimization_barrier", args)
        return made if isinstance(made, list) else [made]

    @hookimpl
    def dce(self, eqn: Any, used_out: Any) -> Any:
        kept = eqn.replace(invars=[x for x, used in zip(eqn.invars, used_out, strict=True) if used],
                           outvars=[v for v, used in zip(eqn.outvars, used_out, strict=True) if used])
        return used_out, kept if True in used_out else None

    @hookimpl
    def samples(self, rng: Any) -> Iterator[Sample]:
        yield Sample([rng.standard_normal(3)], {})
        yield Sample([rng.standard_normal((2, 3)), rng.standard_normal(()), np.arange(3)], {})


def _barrier(*args: Any) -> list[Any]:
    return optimization_barrier.primitive.bind(*args)  # type: ignore[no-any-return]


def _behind_barrier(tangents: Any) -> list[Any]:
    """The tangents, with those that aren't zero behind a common barrier."""
    behind = iter(_barrier(*[t for t in tangents if type(t) is not Zero]))
    return [t if type(t) is Zero else next(behind) for t in tangents]


copy: Any = define(Copy())
optimization_barrier: Any = define(OptimizationBarrier())
stop_gradient: Any = define(StopGradient())
