"""Primitives that rearrange an array: they only move elements.

All are linear, so each only needs its transpose for both modes of differentiation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from math import prod
from typing import Any

import numpy as np

from corejax.core import Array, ArrayLike, ShapedArray
from corejax.plugin import Sample, define, hookimpl, public, refused, roles, shaping
from corejax_lax_basic._axes import Shape, check_shape, inverse, last_axes, shape_of
from corejax_lax_basic._lowering import i64s

__all__ = ["broadcast", "broadcast_in_dim", "collapse", "expand_dims", "reshape", "rev", "squeeze", "transpose"]


class BroadcastInDim:
    """`broadcast_in_dim(operand, shape, broadcast_dimensions)`: repeat along new axes and along axes of size 1.

    Axis i of the operand becomes axis `broadcast_dimensions[i]` of the result.

    >>> lax.broadcast_in_dim(np.arange(3.0), (2, 3), (1,)).tolist()
    [[0.0, 1.0, 2.0], [0.0, 1.0, 2.0]]
    """

    name = "broadcast_in_dim"
    structural = True
    cheap = True
    linear = (0,)

    def function(self, bind: Callable[..., Array]) -> Any:
        def broadcast_in_dim(operand: ArrayLike, shape: Sequence[int], broadcast_dimensions: Sequence[int]) -> Array:
            axes = shaping.as_ints("broadcast_in_dim", "broadcast_dimensions", broadcast_dimensions)
            return bind(operand, shape=shaping.as_ints("broadcast_in_dim", "shape", shape), broadcast_dimensions=axes)
        return broadcast_in_dim

    @hookimpl
    def impl(self, args: Any, *, shape: Shape, broadcast_dimensions: Shape) -> Any:
        (x,) = args
        out = np.empty(shape, x.dtype)
        if broadcast_dimensions != last_axes(x.ndim, len(shape)):
            spread = [1] * len(shape)
            for size, dim in zip(x.shape, broadcast_dimensions, strict=True):
                spread[dim] = size
            x = x.reshape(spread)
        out[...] = x
        return out

    @hookimpl
    def abstract_eval(self, avals: Any, *, shape: Shape, broadcast_dimensions: Shape) -> ShapedArray:
        (x,) = avals
        check_shape(self.name, "shape", shape)
        dims = broadcast_dimensions
        if len(dims) != x.ndim or list(dims) != sorted(set(dims)) or any([not 0 <= d < len(shape) for d in dims]):
            raise refused(self.name, f"broadcast_dimensions don't place {x} in {shape}", got=dims,
                          wanted=f"{x.ndim} strictly increasing axes below {len(shape)}, one for each operand axis",
                          todo="transpose the operand first if its axes are in another order")
        if any([size not in (1, shape[dim]) for size, dim in zip(x.shape, dims, strict=True)]):
            raise refused(self.name, f"{x} can't be broadcast to shape {shape} along {dims}",
                          got=f"sizes {x.shape}", wanted=f"each 1 or as in {tuple([shape[d] for d in dims])}",
                          todo="sizes must be equal or 1; check the shape or broadcast_dimensions")
        return ShapedArray(shape, x.dtype, x.weak_type)

    @hookimpl
    def transpose(self, cotangents: Any, args: Any, *, shape: Shape, broadcast_dimensions: Shape) -> Any:
        sizes = args[0].aval.shape
        summed = _repeated_axes(sizes, shape, broadcast_dimensions)
        ct = roles.sum_axes(cotangents, summed)
        return [ct if len(shape) - len(summed) == len(sizes) else reshape(ct, sizes)]

    @hookimpl
    def vmap(self, axis: Any, args: Any, dims: Any, *, shape: Shape, broadcast_dimensions: Shape) -> Any:
        (x,), (dim,) = args, dims
        # where the batch axis goes depends on where it is, so that nothing has to be transposed
        at = broadcast_dimensions[dim - 1] + 1 if dim else 0
        placed = shaping.insert(shaping.shifted(broadcast_dimensions, at), dim, at)
        return broadcast_in_dim(x, shaping.insert(shape, at, axis.size), placed), at

    @hookimpl
    def xla_translation(self, ctx: Any, args: Any, *, shape: Shape, broadcast_dimensions: Sequence[int]) -> Any:
        (x,), (aval,) = args, ctx.avals_in
        if 0 < aval.ndim < len(shape):
            # If the axes are added first, the compiler of jaxlib 0.10 folds later multiplications of a constant vector
            # by scalars; it doesn't across a single operation that both adds axes and repeats.
            placed = [1] * len(shape)
            for size, dim in zip(aval.shape, broadcast_dimensions, strict=True):
                placed[dim] = size
            x = ctx.op("stablehlo.reshape", args, None, [ctx.type_of(ShapedArray(placed, aval.dtype))])
            broadcast_dimensions = range(len(shape))
        return ctx.op("stablehlo.broadcast_in_dim", [x], {"broadcast_dimensions": i64s(ctx, broadcast_dimensions)})

    @hookimpl
    def samples(self, rng: Any) -> Iterator[Sample]:
        for sizes, shape, dims in [((), (), ()), ((), (2, 3), ()), ((3,), (2, 3), (1,)), ((1, 3), (2, 4, 3), (0, 2)),
                                   ((0,), (2, 0), (1,)), ((1,), (0,), (0,)), ((2, 1), (2, 1, 5), (0, 1)),
                                   ((2, 1), (2, 5), (0, 1)), ((2, 3), (2, 3), (0, 1))]:
            yield Sample([rng.standard_normal(sizes)], {"shape": shape, "broadcast_dimensions": dims})
        yield Sample([np.arange(3, dtype=np.int32)], {"shape": (3, 2), "broadcast_dimensions": (0,)})
        yield Sample([np.ones(3)], {"shape": (4,), "broadcast_dimensions": (0,)}, error=TypeError)


@lru_cache(maxsize=4096)
def _repeated_axes(sizes: Shape, shape: Shape, dims: Shape) -> Shape:
    """The axes along which broadcasting repeats."""
    kept = [d for size, d in zip(sizes, dims, strict=True) if size == shape[d]]
    return tuple([d for d in range(len(shape)) if d not in kept])


class Reshape:
    """`reshape(operand, new_sizes, dimensions=None)`: the same elements in row-major order, in another shape.

    With `dimensions`, the operand's axes are taken in that order first.

    >>> lax.reshape(np.arange(6), (2, 3)).shape
    (2, 3)
    """

    name = "reshape"
    structural = True
    cheap = True
    linear = (0,)

    def function(self, bind: Callable[..., Array]) -> Any:
        def reshape(operand: ArrayLike, new_sizes: Sequence[int], dimensions: Sequence[int] | None = None) -> Array:
            if dimensions is not None:
                permutation = shaping.as_ints("reshape", "dimensions", dimensions)
                if permutation != tuple(range(len(permutation))) or len(permutation) != len(shape_of(operand)):
                    operand = transpose(operand, permutation)
            return bind(operand, new_sizes=shaping.as_ints("reshape", "new_sizes", new_sizes))
        return reshape

    @hookimpl
    def impl(self, args: Any, *, new_sizes: Shape) -> Any:
        return args[0].reshape(new_sizes)

    @hookimpl
    def abstract_eval(self, avals: Any, *, new_sizes: Shape) -> ShapedArray:
        (x,) = avals
        check_shape(self.name, "new_sizes", new_sizes)
        if prod(new_sizes) != x.size:
            raise refused(self.name, f"{x} has {x.size} elements, the new shape {prod(new_sizes)}", got=new_sizes,
                          wanted=f"sizes whose product is {x.size}", todo="keep the number of elements")
        return ShapedArray(new_sizes, x.dtype, x.weak_type)

    @hookimpl
    def transpose(self, cotangents: Any, args: Any) -> Any:
        return [reshape(cotangents, args[0].aval.shape)]

    @hookimpl
    def vmap(self, axis: Any, args: Any, dims: Any, *, new_sizes: Shape) -> Any:
        return reshape(move_axis(args[0], dims[0], 0), (axis.size, *new_sizes)), 0

    @hookimpl
    def xla_translation(self, ctx: Any, args: Any) -> Any:
        return ctx.op("stablehlo.reshape", args)

    @hookimpl
    def samples(self, rng: Any) -> Iterator[Sample]:
        for sizes, new_sizes in [((), (1, 1)), ((6,), (2, 3)), ((2, 3), (3, 2)), ((1,), ()), ((0, 3), (2, 0)),
                                 ((2, 3, 4), (4, 6))]:
            yield Sample([rng.standard_normal(sizes)], {"new_sizes": new_sizes})
        yield Sample([np.ones(3)], {"new_sizes": (4,)}, error=TypeError)


class Squeeze:
    """`squeeze(array, dimensions)`: drop axes of size 1; negative axes count from the end.

    >>> lax.squeeze(np.ones((1, 3, 1)), (0, -1)).shape
    (3,)
    """

    name = "squeeze"
    structural = True
    cheap = True
    linear = (0,)

    def function(self, bind: Callable[..., Array]) -> Any:
        def squeeze(array: ArrayLike, dimensions: Sequence[int]) -> Array:
            return bind(array, dimensions=shaping.canonical_axes("squeeze", dimensions, len(shape_of(array))))
        return squeeze

    @hookimpl
    def impl(self, args: Any, *, dimensions: Shape) -> Any:
        return args[0].squeeze(dimensions)

    @hookimpl
    def abstract_eval(self, avals: Any, *, dimensions: Shape) -> ShapedArray:
        (x,) = avals
        shaping.check_axes(self.name, "dimensions", dimensions, x.ndim)
        if any([x.shape[d] != 1 for d in dimensions]):
            raise refused(self.name, f"only axes of size 1 can be dropped from {x}", got=f"dimensions {dimensions}",
                          wanted=f"among {tuple([d for d in range(x.ndim) if x.shape[d] == 1])}",
                          todo="reshape, index or reduce the other axes")
        return ShapedArray([n for d, n in enumerate(x.shape) if d not in dimensions], x.dtype, x.weak_type)

    @hookimpl
    def transpose(self, cotangents: Any, args: Any) -> Any:
        return [reshape(cotangents, args[0].aval.shape)]

    @hookimpl
    def vmap(self, axis: Any, args: Any, dims: Any, *, dimensions: Shape) -> Any:
        (x,), (dim,) = args, dims
        moved = shaping.shifted(dimensions, dim)
        return squeeze(x, moved), dim - sum([d < dim for d in moved])

    @hookimpl
    def xla_translation(self, ctx: Any, args: Any) -> Any:
        return ctx.op("stablehlo.reshape", args)

    @hookimpl
    def samples(self, rng: Any) -> Iterator[Sample]:
        for sizes, dimensions in [((1,), (0,)), ((1, 3, 1), (0, 2)), ((1, 0), (0,)), ((2, 3), ()), ((2, 1, 3), (1,))]:
            yield Sample([rng.standard_normal(sizes)], {"dimensions": dimensions})
        yield Sample([np.ones((1, 3))], {"dimensions": (1,)}, error=TypeError)


class Transpose:
    """`transpose(operand, permutation)`: axis i of the result is axis `permutation[i]` of the operand.

    >>> lax.transpose(np.ones((2, 3)), (1, 0)).shape
    (3, 2)
    """

    name = "transpose"
    structural = True
    cheap = True
    linear = (0,)

    def function(self, bind: Callable[..., Array]) -> Any:
        def transpose(operand: ArrayLike, permutation: Sequence[int]) -> Array:
            return bind(operand, permutation=shaping.as_ints("transpose", "permutation", permutation))
        return transpose

    @hookimpl
    def impl(self, args: Any, *, permutation: Shape) -> Any:
        return args[0].transpose(permutation)

    @hookimpl
    def abstract_eval(self, avals: Any, *, permutation: Shape) -> ShapedArray:
        (x,) = avals
        if sorted(permutation) != list(range(x.ndim)):
            raise refused(self.name, f"permutation must reorder the axes of {x}", got=permutation,
                          wanted=f"each of {tuple(range(x.ndim))} once", todo="name each axis once, none negative")
        return ShapedArray([x.shape[d] for d in permutation], x.dtype, x.weak_type)

    @hookimpl
    def transpose(self, cotangents: Any, args: Any, *, permutation: Shape) -> Any:
        return [transpose(cotangents, inverse(permutation))]

    @hookimpl
    def vmap(self, axis: Any, args: Any, dims: Any, *, permutation: Shape) -> Any:
        return transpose(args[0], (dims[0], *shaping.shifted(permutation, dims[0]))), 0

    @hookimpl
    def xla_translation(self, ctx: Any, args: Any, *, permutation: Shape) -> Any:
        return ctx.op("stablehlo.transpose", args, {"permutation": i64s(ctx, permutation)})

    @hookimpl
    def samples(self, rng: Any) -> Iterator[Sample]:
        for sizes, permutation in [((), ()), ((3,), (0,)), ((2, 3), (1, 0)), ((2, 3, 4), (2, 0, 1)),
                                   ((2, 3, 4), (0, 2, 1)), ((0, 2), (1, 0))]:
            yield Sample([rng.standard_normal(sizes)], {"permutation": permutation})
        yield Sample([np.ones((2, 3))], {"permutation": (0, 0)}, error=TypeError)


class Rev:
    """`rev(operand, dimensions)`: the elements in reverse order along some axes.

    >>> lax.rev(np.arange(3), (0,)).tolist()
    [2, 1, 0]
    """

    name = "rev"
    structural = True
    linear = (0,)

    def function(self, bind: Callable[..., Array]) -> Any:
        def rev(operand: ArrayLike, dimensions: Sequence[int]) -> Array:
            return bind(operand, dimensions=shaping.canonical_axes("rev", dimensions, len(shape_of(operand))))
        return rev

    @hookimpl
    def impl(self, args: Any, *, dimensions: Shape) -> Any:
        return np.flip(args[0], dimensions)

    @hookimpl
    def abstract_eval(self, avals: Any, *, dimensions: Shape) -> ShapedArray:
        (x,) = avals
        shaping.check_axes(self.name, "dimensions", dimensions, x.ndim)
        return x  # type: ignore[no-any-return]

    @hookimpl
    def transpose(self, cotangents: Any, args: Any, *, dimensions: Shape) -> Any:
        return [rev(cotangents, dimensions)]

    @hookimpl
    def vmap(self, axis: Any, args: Any, dims: Any, *, dimensions: Shape) -> Any:
        return rev(args[0], shaping.shifted(dimensions, dims[0])), dims[0]

    @hookimpl
    def xla_translation(self, ctx: Any, args: Any, *, dimensions: Shape) -> Any:
        return ctx.op("stablehlo.reverse", args, {"dimensions": i64s(ctx, dimensions)})

    @hookimpl
    def samples(self, rng: Any) -> Iterator[Sample]:
        for sizes, dimensions in [((3,), (0,)), ((2, 3), (0, 1)), ((2, 3, 4), (1,)), ((0, 2), (0,)), ((), ())]:
            yield Sample([rng.standard_normal(sizes)], {"dimensions": dimensions})
        yield Sample([np.ones((2, 3))], {"dimensions": (2,)}, error=IndexError)


broadcast_in_dim: Any = define(BroadcastInDim())
reshape: Any = define(Reshape())
squeeze: Any = define(Squeeze())
transpose: Any = define(Transpose())
rev: Any = define(Rev())


@public
def broadcast(operand: ArrayLike, sizes: Sequence[int]) -> Array:
    """Repeat the operand along new leading axes of these sizes.

    >>> broadcast(np.arange(2), (3,)).tolist()
    [[0, 1], [0, 1], [0, 1]]
    """
    sizes, shape = shaping.as_ints("broadcast", "sizes", sizes), shape_of(operand)
    axes = tuple(range(len(sizes), len(sizes) + len(shape)))
    return broadcast_in_dim(operand, (*sizes, *shape), axes)  # type: ignore[no-any-return]


@public
def expand_dims(array: ArrayLike, dimensions: Sequence[int]) -> Array:
    """The array with new axes of size 1 at these positions of the result; negative ones count from the end.

    >>> expand_dims(np.ones(3), (0, -1)).shape
    (1, 3, 1)
    """
    shape = shape_of(array)
    count = len(shaping.as_ints("expand_dims", "dimensions", dimensions))
    new = shaping.canonical_axes("expand_dims", dimensions, len(shape) + count)
    kept = tuple([d for d in range(len(shape) + count) if d not in new])
    sizes = [1] * (len(shape) + count)
    for d, size in zip(kept, shape, strict=True):
        sizes[d] = size
    return broadcast_in_dim(array, tuple(sizes), kept)  # type: ignore[no-any-return]


@public
def collapse(operand: ArrayLike, start_dimension: int, stop_dimension: int | None = None) -> Array:
    """The operand with the axes from `start_dimension` up to `stop_dimension` merged into one.

    >>> collapse(np.ones((2, 3, 4)), 0, 2).shape
    (6, 4)
    """
    shape = shape_of(operand)
    start = shaping.as_int("collapse", "start_dimension", start_dimension)
    stop = None if stop_dimension is None else shaping.as_int("collapse", "stop_dimension", stop_dimension)
    lo, hi, _ = slice(start, stop).indices(len(shape))
    if hi <= lo:
        raise refused("collapse", "no axes to join", got=f"axes {start_dimension} to {stop_dimension} of {shape}",
                      wanted="at least one axis", todo="start_dimension must be below stop_dimension")
    return reshape(operand, (*shape[:lo], prod(shape[lo:hi]), *shape[hi:]))  # type: ignore[no-any-return]


def move_axis(x: Any, src: int, dst: int) -> Any:
    """The array with the axis `src` at position `dst`; unchanged if it is there already."""
    ndim = len(shape_of(x))
    src, dst = shaping.canonical_axis("move_axis", src, ndim), shaping.canonical_axis("move_axis", dst, ndim)
    if src == dst:
        return x
    order = [d for d in range(ndim) if d != src]
    order.insert(dst, src)
    return transpose(x, tuple(order))


def expand(x: Any, size: int, axis: int) -> Any:
    """The array repeated `size` times along a new axis."""
    shape = shape_of(x)
    at = shaping.canonical_axis("expand", axis, len(shape) + 1)
    kept = tuple([d for d in range(len(shape) + 1) if d != at])
    return broadcast_in_dim(x, shaping.insert(shape, at, size), kept)
