"""Arrays repeated along their axes, and cut into parts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate
from typing import Any

import numpy as np

from corejax.core import Array, ArrayLike, ShapedArray, Zero, instantiate
from corejax.errors import CorejaxValueError
from corejax.plugin import Sample, define, hookimpl, refused, roles, shaping
from corejax_lax_basic._axes import Shape, check_shape, shape_of
from corejax_lax_basic._lowering import i64s
from corejax_lax_basic.joining import concatenate
from corejax_lax_basic.shapes import reshape

__all__ = ["split", "tile"]


class Tile:
    """`tile(operand, reps)`: the operand repeated as a whole, a number of times along each axis.

    >>> tile(np.array([[1, 2]]), (2, 2)).tolist()
    [[1, 2, 1, 2], [1, 2, 1, 2]]
    """

    name = "tile"
    operands = ("operand",)
    structural = True
    linear = (0,)

    def function(self, bind: Callable[..., Array]) -> Any:
        def tile(operand: ArrayLike, reps: Sequence[int]) -> Array:
            return bind(operand, reps=shaping.as_ints("tile", "reps", reps))
        return tile

    @hookimpl
    def impl(self, args: Any, *, reps: Shape) -> Any:
        return np.tile(args[0], reps)

    @hookimpl
    def abstract_eval(self, avals: Any, *, reps: Shape) -> ShapedArray:
        (x,) = avals
        if type(reps) is not tuple or len(reps) != x.ndim or any([type(n) is not int or n < 0 for n in reps]):
            raise refused("tile", f"reps={reps} don't repeat {x}", got=reps, kind=CorejaxValueError,
                          wanted=f"a non-negative integer for each axis, of which there are {x.ndim}",
                          todo="reshape the operand first to give it more axes")
        shape = tuple([count * n for count, n in zip(reps, x.shape, strict=True)])
        return ShapedArray(shape, x.dtype, x.weak_type)

    @hookimpl
    def transpose(self, cotangents: Any, args: Any, *, reps: Shape) -> Any:
        shape = args[0].aval.shape
        between = [size for pair in zip(reps, shape, strict=True) for size in pair]
        return [roles.sum_axes(reshape(cotangents, between), range(0, 2 * len(shape), 2))]

    @hookimpl
    def vmap(self, axis: Any, args: Any, dims: Any, *, reps: Shape) -> Any:
        return tile.primitive.bind(args[0], reps=shaping.insert(reps, dims[0], 1)), dims[0]

    @hookimpl
    def xla_translation(self, ctx: Any, args: Any, *, reps: Shape) -> Any:
        (aval,) = ctx.avals_in
        between = tuple([size for pair in zip(reps, aval.shape, strict=True) for size in pair])
        spread = ctx.op("stablehlo.broadcast_in_dim", args, {"broadcast_dimensions": i64s(
            ctx, range(1, 2 * aval.ndim, 2))}, [ctx.type_of(aval.update(shape=between))])
        return ctx.op("stablehlo.reshape", [spread])

    @hookimpl
    def samples(self, rng: Any) -> Iterator[Sample]:
        for shape, reps in [((3,), (2,)), ((2, 3), (2, 1)), ((2, 3), (2, 3)), ((2, 1, 2), (1, 3, 2)), ((), ()),
                            ((2, 2), (0, 2)), ((0, 2), (2, 2)), ((2,), (1,))]:
            yield Sample([rng.standard_normal(shape)], {"reps": reps})
        yield Sample([np.array([[1, 2]])], {"reps": (2, 2)}, results=np.array([[1, 2, 1, 2], [1, 2, 1, 2]]))
        yield Sample([np.ones((2, 3))], {"reps": (2,)}, error=ValueError)
        yield Sample([np.ones(3)], {"reps": (-1,)}, error=ValueError)


class Split:
    """`split(operand, sizes, axis=0)`: the parts of the operand of these sizes, along an axis.

    >>> [part.tolist() for part in split(np.arange(5), (2, 3))]
    [[0, 1], [2, 3, 4]]
    """

    name = "split"
    operands = ("operand",)
    structural = True
    multiple_results = True
    symbolic_zeros = True
    linear = (0,)

    def function(self, bind: Callable[..., Any]) -> Any:
        def split(operand: ArrayLike, sizes: Sequence[int], axis: int = 0) -> list[Array]:
            at = shaping.canonical_axis("split", axis, len(shape_of(operand)))
            return list(bind(operand, sizes=shaping.as_ints("split", "sizes", sizes), dimension=at))
        return split

    @hookimpl
    def impl(self, args: Any, *, sizes: Shape, dimension: int) -> Any:
        return np.split(args[0], [*accumulate(sizes)][:-1], dimension) if sizes else []

    @hookimpl
    def abstract_eval(self, avals: Any, *, sizes: Shape, dimension: int) -> list[ShapedArray]:
        (x,) = avals
        shaping.check_axes(self.name, "dimension", (dimension,), x.ndim)
        if type(sizes) is not tuple:
            raise refused(self.name, "sizes must be a tuple", got=repr(sizes), wanted="a tuple of sizes",
                          todo="pass a tuple, also for a single part")
        check_shape(self.name, "sizes", sizes)
        if sum(sizes) != x.shape[dimension]:
            raise refused(self.name, "the sizes do not add up to the axis", got=f"{sizes}, together {sum(sizes)}",
                          wanted=f"sizes that sum to {x.shape[dimension]}", todo="cover the whole axis")
        return [x.update(shape=(*x.shape[:dimension], size, *x.shape[dimension + 1:])) for size in sizes]

    @hookimpl
    def transpose(self, cotangents: Any, args: Any, *, sizes: Shape, dimension: int) -> Any:
        if not sizes:
            return [instantiate(Zero(args[0].aval))]
        return [concatenate([*map(instantiate, cotangents)], dimension)]

    @hookimpl
    def vmap(self, axis: Any, args: Any, dims: Any, *, sizes: Shape, dimension: int) -> Any:
        (at,) = shaping.shifted((dimension,), dims[0])
        return split.primitive.bind(args[0], sizes=sizes, dimension=at), [dims[0]] * len(sizes)

    @hookimpl
    def xla_translation(self, ctx: Any, args: Any, *, sizes: Shape, dimension: int) -> Any:
        (aval,), start, outs = ctx.avals_in, 0, []
        for size, out in zip(sizes, ctx.out_types, strict=True):
            starts = [start * (d == dimension) for d in range(aval.ndim)]
            limits = [start + size if d == dimension else n for d, n in enumerate(aval.shape)]
            outs.append(ctx.op("stablehlo.slice", args, {"start_indices": i64s(ctx, starts), "limit_indices": i64s(
                ctx, limits), "strides": i64s(ctx, [1] * aval.ndim)}, [out]))
            start += size
        return outs

    @hookimpl
    def samples(self, rng: Any) -> Iterator[Sample]:
        for shape, sizes, dimension in [((5,), (2, 3), 0), ((2, 4), (1, 0, 3), 1), ((3, 2), (3,), 0),
                                        ((2, 3, 2), (1, 1, 1), 1), ((0, 2), (0, 0), 0)]:
            yield Sample([rng.standard_normal(shape)], {"sizes": sizes, "dimension": dimension})
        yield Sample([np.arange(5)], {"sizes": (2, 3), "dimension": 0}, results=[np.arange(2), np.arange(2, 5)])
        yield Sample([np.ones(3)], {"sizes": (1, 1), "dimension": 0}, error=TypeError)
        yield Sample([np.ones(3)], {"sizes": (4, -1), "dimension": 0}, error=TypeError)
        yield Sample([np.ones(3)], {"sizes": (3,), "dimension": 1}, error=IndexError)


tile: Any = define(Tile())
split: Any = define(Split())
