"""Arrays stacked along a new axis, and the parts of an array along an axis; each is the other's transpose."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from corejax.core import Array, ArrayLike, Linear, ShapedArray, Zero, instantiate, to_dim
from corejax.errors import CorejaxValueError
from corejax.plugin import Sample, define, hookimpl, refused, shaping
from corejax_lax_basic._axes import all_weak, as_list, same_dtype, shape_of
from corejax_lax_basic._lowering import i64, i64s

__all__ = ["stack", "unstack"]


class Stack:
    """`stack(operands, axis=0)`: arrays of the same shape, stacked along a new axis.

    >>> stack([np.zeros(2), np.ones(2)]).tolist()
    [[0.0, 0.0], [1.0, 1.0]]
    """

    name = "stack"
    structural = True
    symbolic_zeros = True

    def function(self, bind: Callable[..., Array]) -> Any:
        def stack(operands: Sequence[ArrayLike] | ArrayLike, axis: int = 0) -> Array:
            operands = as_list("stack", "the operands", operands)
            if not operands:
                raise _nothing()
            return bind(*operands, dimension=shaping.canonical_axis("stack", axis, len(shape_of(operands[0])) + 1))
        return stack

    @hookimpl
    def impl(self, args: Any, *, dimension: int) -> Any:
        return np.stack(args, dimension)

    @hookimpl
    def abstract_eval(self, avals: Any, *, dimension: int) -> ShapedArray:
        if not avals:
            raise _nothing()
        first = avals[0]
        same_dtype(self.name, avals)
        if any([aval.shape != first.shape for aval in avals]):
            raise refused(self.name, "operands differ in shape", got=", ".join(map(str, avals)), wanted="equal shapes",
                          todo="broadcast, pad or slice the operands to a common shape")
        shaping.check_axes(self.name, "dimension", (dimension,), first.ndim + 1)
        return ShapedArray(shaping.insert(first.shape, dimension, len(avals)), first.dtype, all_weak(avals))

    @hookimpl
    def jvp(self, primals: Any, tangents: Any, *, dimension: int) -> Any:
        out = stack.primitive.bind(*primals, dimension=dimension)
        if all([type(t) is Zero for t in tangents]):
            return out, Zero(out.aval.tangent)
        return out, stack.primitive.bind(*map(instantiate, tangents), dimension=dimension)

    @hookimpl
    def transpose(self, cotangents: Any, args: Any, *, dimension: int) -> Any:
        parts = unstack.primitive.bind(cotangents, dimension=dimension)
        return [part if type(x) is Linear else None for x, part in zip(args, parts, strict=True)]

    @hookimpl
    def vmap(self, axis: Any, args: Any, dims: Any, *, dimension: int) -> Any:
        dim = dims[0]
        if dim is None or any([d != dim for d in dims]):
            args, dim = [to_dim(x, d, 0, axis.size) for x, d in zip(args, dims, strict=True)], 0
            return stack.primitive.bind(*args, dimension=dimension + 1), 0
        before = dimension <= dim
        return stack.primitive.bind(*args, dimension=dimension + (not before)), dim + before

    @hookimpl
    def xla_translation(self, ctx: Any, args: Any, *, dimension: int) -> Any:
        one = ctx.avals_out[0].update(shape=shaping.insert(ctx.avals_in[0].shape, dimension, 1))
        parts = [ctx.op("stablehlo.reshape", [x], None, [ctx.type_of(one)]) for x in args]
        return ctx.op("stablehlo.concatenate", parts, {"dimension": i64(ctx, dimension)})

    @hookimpl
    def samples(self, rng: Any) -> Iterator[Sample]:
        for shape, count, axis in [((2, 3), 2, 0), ((2, 3), 3, 1), ((2,), 1, 1), ((), 2, 0), ((0, 2), 2, 2)]:
            yield Sample([rng.standard_normal(shape) for _ in range(count)], {"dimension": axis})
        yield Sample([np.arange(3), np.arange(3, 6)], {"dimension": 1}, results=np.array([[0, 3], [1, 4], [2, 5]]))
        yield Sample([np.ones(2), np.ones(3)], {"dimension": 0}, error=TypeError)
        yield Sample([np.ones(2), np.ones(2, np.float32)], {"dimension": 0}, error=TypeError)
        yield Sample([np.ones(2)], {"dimension": 2}, error=IndexError)


class Unstack:
    """`unstack(x, axis=0)`: the parts of an array along an axis, which they don't have.

    >>> [part.tolist() for part in unstack(np.array([[1, 2], [3, 4]]), axis=1)]
    [[1, 3], [2, 4]]
    """

    name = "unstack"
    operands = ("x",)
    structural = True
    multiple_results = True
    symbolic_zeros = True
    linear = (0,)

    def function(self, bind: Callable[..., Any]) -> Any:
        def unstack(x: ArrayLike, axis: int = 0) -> tuple[Array, ...]:
            return tuple(bind(x, dimension=shaping.canonical_axis("unstack", axis, len(shape_of(x)))))
        return unstack

    @hookimpl
    def impl(self, args: Any, *, dimension: int) -> Any:
        return list(np.moveaxis(args[0], dimension, 0))

    @hookimpl
    def abstract_eval(self, avals: Any, *, dimension: int) -> list[ShapedArray]:
        (x,) = avals
        shaping.check_axes(self.name, "dimension", (dimension,), x.ndim)
        return [x.update(shape=shaping.without(x.shape, (dimension,)))] * x.shape[dimension]

    @hookimpl
    def transpose(self, cotangents: Any, args: Any, *, dimension: int) -> Any:
        return [stack.primitive.bind(*map(instantiate, cotangents), dimension=dimension)]

    @hookimpl
    def vmap(self, axis: Any, args: Any, dims: Any, *, dimension: int) -> Any:
        (at,) = shaping.shifted((dimension,), dims[0])
        outs = unstack.primitive.bind(args[0], dimension=at)
        return outs, [shaping.dim_without(dims[0], (at,))] * len(outs)

    @hookimpl
    def xla_translation(self, ctx: Any, args: Any, *, dimension: int) -> Any:
        (x,), (aval,) = args, ctx.avals_in
        one = [ctx.type_of(aval.update(shape=tuple([1 if d == dimension else n for d, n in enumerate(aval.shape)])))]
        outs = []
        for place, out in enumerate(ctx.out_types):
            starts = [place * (d == dimension) for d in range(aval.ndim)]
            limits = [place + 1 if d == dimension else n for d, n in enumerate(aval.shape)]
            part = ctx.op("stablehlo.slice", [x], {"start_indices": i64s(ctx, starts), "limit_indices": i64s(
                ctx, limits), "strides": i64s(ctx, [1] * aval.ndim)}, one)
            outs.append(ctx.op("stablehlo.reshape", [part], None, [out]))
        return outs

    @hookimpl
    def samples(self, rng: Any) -> Iterator[Sample]:
        # an equation for each part is meant: programs grow with the axis, as the number of results does
        for shape, axis in [((2, 3), 0), ((2, 3), 1), ((2,), 0), ((0, 2), 1), ((1, 2, 2), 2)]:
            yield Sample([rng.standard_normal(shape)], {"dimension": axis})
        yield Sample([np.arange(6).reshape(2, 3)], {"dimension": 1}, results=[
            np.array([0, 3]), np.array([1, 4]), np.array([2, 5])])
        yield Sample([np.ones(2)], {"dimension": 1}, error=IndexError)


def _nothing() -> Exception:
    return refused("stack", "there is nothing to stack", got="no operands", wanted="at least one array",
                   todo="pass a non-empty sequence", kind=CorejaxValueError)


stack: Any = define(Stack())
unstack: Any = define(Unstack())
