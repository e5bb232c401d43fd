"""Reading many windows of an array at once, at places given by an array of indices.

XLA's law is that `gather` clamps a window's start so that the window is within the operand. Other modes are composed
around the operation when it is lowered.

The last axis of the indices has a coordinate for each entry of `start_index_map`; the other axes enumerate windows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from corejax import lax
from corejax.core import Array, ArrayLike, ShapedArray, aval_of, dtypes, stage
from corejax.plugin import Sample, define, hookimpl, partials, refused, shaping
from corejax_lax_basic._axes import Shape, shape_of
from corejax_lax_basic._lowering import axis_numbers, i64s
from corejax_lax_basic._placing import (
    GatherDimensionNumbers,
    GatherScatterMode,
    Numbers,
    ScatterDimensionNumbers,
    canonical_mode,
    canonical_numbers,
    check_numbers,
    check_places,
    fill_number,
    places_of,
    rows_of,
    uppers,
    wide,
)
from corejax_lax_basic._windows import READ
from corejax_lax_basic.creation import as_dtype, full
from corejax_lax_basic.shapes import broadcast_in_dim, move_axis, reshape

__all__ = ["GatherDimensionNumbers", "GatherScatterMode", "gather"]


class Gather:
    """`gather(operand, start_indices, dimension_numbers, slice_sizes, ...)`: one window for each index vector.

    `mode` says what happens to windows out of bounds: "clip", the default, moves them inside, "fill" gives
    `fill_value`, "promise_in_bounds" says that there are none.

    >>> numbers = GatherDimensionNumbers(offset_dims=(), collapsed_slice_dims=(0,), start_index_map=(0,))
    >>> gather(np.arange(5) * 10, np.array([[3], [1]]), numbers, (1,)).tolist()
    [30, 10]
    """

    name = "gather"
    structural = True
    jvp = partials(lambda x_dot, out, x, indices, **params: gather.primitive.bind(
        x_dot, indices, **{**params, "fill_value": 0 if params["mode"] == "fill" else None}), None)

    def function(self, bind: Callable[..., Array]) -> Any:
        def gather(operand: ArrayLike, start_indices: ArrayLike, dimension_numbers: GatherDimensionNumbers,
                   slice_sizes: Sequence[int], *, unique_indices: bool = False, indices_are_sorted: bool = False,
                   mode: str | None = None, fill_value: ArrayLike | None = None) -> Array:
            sizes, numbers = shaping.as_ints("gather", "slice_sizes", slice_sizes), canonical_numbers(dimension_numbers)
            mode, indices = canonical_mode("gather", "clip" if mode is None else mode), wide(start_indices)
            fill_value = fill_value if mode == "fill" else None
            static = fill_value is None or type(fill_value) in dtypes.PYTHON_SCALARS
            out = bind(operand, indices, dimension_numbers=numbers, slice_sizes=sizes,
                       unique_indices=shaping.as_flag("gather", "unique_indices", unique_indices),
                       indices_are_sorted=shaping.as_flag("gather", "indices_are_sorted", indices_are_sorted),
                       mode=mode if static else "clip", fill_value=fill_value if static else None)
            return out if static else _filled(operand, indices, numbers, sizes, out, fill_value)
        return gather

    @hookimpl
    def impl(self, args: Any, *, dimension_numbers: Numbers, slice_sizes: Shape, mode: str, fill_value: Any) -> Any:
        x, indices = args
        offset_dims, collapsed, index_map, x_batch, index_batch = dimension_numbers
        n, rows = indices.ndim - 1, None
        if not x_batch:
            rows = rows_of(x.shape, indices, index_map, collapsed, slice_sizes, clamp=mode != "fill")
        if rows is not None:
            axes, where = rows
            out = x.transpose(axes)[where]
        else:
            places, valid = places_of(x.shape, indices, index_map, x_batch, index_batch, slice_sizes, clamp=True,
                                      check=mode == "fill")
            out = x[tuple(places)]  # windows first, then the axes within a window, some of size 1
            if not valid.all():
                out = out.copy()
                out[~valid] = fill_number(x.dtype, fill_value)
        out = out.reshape((*out.shape[:n], *[s for d, s in enumerate(slice_sizes) if d not in (*collapsed, *x_batch)]))
        if offset_dims == tuple(range(n, out.ndim)):
            return out
        windows = [d for d in range(out.ndim) if d not in offset_dims]
        return np.moveaxis(out, range(out.ndim), (*windows, *offset_dims))

    @hookimpl
    def abstract_eval(self, avals: Any, *, dimension_numbers: Numbers, slice_sizes: Shape, unique_indices: bool,
                      indices_are_sorted: bool, mode: str, fill_value: Any = None) -> ShapedArray:
        x, indices = avals
        offset_dims, collapsed, index_map, x_batch, index_batch = dimension_numbers
        check_numbers(self.name, x, indices, index_map, collapsed, x_batch, index_batch)
        if fill_value is not None and dtypes.kind(x.dtype) == "E":
            raise refused(self.name, f"a number can't stand for elements of type {dtypes.short_name(x.dtype)}",
                        got=f"fill_value={fill_value!r}", wanted="no fill_value", todo='use mode="clip", or select')
        dropped = (*collapsed, *x_batch)
        fits = len(slice_sizes) == x.ndim and all([0 <= s <= n for s, n in zip(slice_sizes, x.shape, strict=True)])
        if (not fits or any([slice_sizes[d] != 1 for d in collapsed])
                or any([slice_sizes[d] != min(1, x.shape[d]) for d in x_batch])
                or len(offset_dims) + len(dropped) != x.ndim):
            raise refused(self.name, f"slice_sizes or offset_dims don't fit {x}",
                          got=f"{slice_sizes} with {GatherDimensionNumbers(*dimension_numbers)}",
                          wanted="a size for each axis, 1 along collapsed and batching axes; an offset axis for others",
                          todo="for x[i] along axis 0: collapsed_slice_dims=(0,), start_index_map=(0,)")
        windows, offsets = iter(indices.shape[:-1]), iter([s for d, s in enumerate(slice_sizes) if d not in dropped])
        ndim = indices.ndim - 1 + len(offset_dims)
        check_places(self.name, offset_dims, ShapedArray((1,) * ndim, x.dtype), "offset_dims")
        return ShapedArray([next(offsets) if d in offset_dims else next(windows) for d in range(ndim)], x.dtype,
                           x.weak_type)

    @hookimpl
    def transpose(self, cotangents: Any, args: Any, *, dimension_numbers: Numbers, slice_sizes: Shape,
                  unique_indices: bool, indices_are_sorted: bool, mode: str) -> Any:
        x, indices = args
        zeros = full(shape_of(x), 0, aval_of(cotangents).dtype)
        return [lax.scatter_add(zeros, indices, cotangents, ScatterDimensionNumbers(*dimension_numbers), mode=mode,
                                unique_indices=unique_indices, indices_are_sorted=indices_are_sorted), None]

    @hookimpl
    def vmap(self, axis: Any, args: Any, dims: Any, *, dimension_numbers: Numbers, slice_sizes: Shape,
             unique_indices: bool, indices_are_sorted: bool, mode: str, fill_value: Any) -> Any:
        (x, indices), (dim, index_dim) = args, dims
        offset, collapsed, index_map, x_batch, index_batch = dimension_numbers
        out_dim = 0
        if index_dim is not None:
            indices = move_axis(indices, index_dim, 0)
            offset, index_batch = shaping.shifted(offset, 0), shaping.shifted(index_batch, 0)
        if index_dim is not None and dim is not None:
            x, slice_sizes = move_axis(x, dim, 0), (min(1, axis.size), *slice_sizes)
            collapsed, index_map = shaping.shifted(collapsed, 0), shaping.shifted(index_map, 0)
            x_batch, index_batch = (0, *shaping.shifted(x_batch, 0)), (0, *index_batch)
        elif dim is not None:  # the batch axis becomes another axis within each window
            slice_sizes = shaping.insert(slice_sizes, dim, axis.size)
            collapsed, index_map, x_batch = [shaping.shifted(axes, dim) for axes in (collapsed, index_map, x_batch)]
            rank = len([d for d in range(dim) if d not in (*collapsed, *x_batch)])
            out_dim = offset[rank - 1] + 1 if rank else 0
            offset = shaping.insert(shaping.shifted(offset, out_dim), rank, out_dim)
        numbers = (offset, collapsed, index_map, x_batch, index_batch)
        return gather.primitive.bind(x, indices, dimension_numbers=numbers, slice_sizes=slice_sizes,
                                     unique_indices=unique_indices and index_dim is None, mode=mode,
                                     indices_are_sorted=indices_are_sorted and index_dim is None,
                                     fill_value=fill_value), out_dim

    @hookimpl
    def xla_translation(self, ctx: Any, args: Any, *, dimension_numbers: Numbers, slice_sizes: Shape,
                        unique_indices: bool, indices_are_sorted: bool, mode: str, fill_value: Any) -> Any:
        if mode == "fill":
            clipped = {"dimension_numbers": dimension_numbers, "slice_sizes": slice_sizes, "fill_value": None,
                       "unique_indices": unique_indices, "indices_are_sorted": indices_are_sorted, "mode": "clip"}
            filled = stage(lambda x, i: [_filled(x, i, dimension_numbers, slice_sizes,
                                                 gather.primitive.bind(x, i, **clipped), fill_value)], ctx.avals_in)
            return ctx.call(filled, args, "gather")[0]
        offset, collapsed, index_map, x_batch, index_batch = dimension_numbers
        numbers = axis_numbers(ctx, "gather", {
            "offset_dims": offset, "collapsed_slice_dims": collapsed, "operand_batching_dims": x_batch,
            "start_indices_batching_dims": index_batch, "start_index_map": index_map,
            "index_vector_dim": len(ctx.avals_in[1].shape) - 1})
        return ctx.op("stablehlo.gather", args, {
            "dimension_numbers": numbers, "slice_sizes": i64s(ctx, slice_sizes),
            "indices_are_sorted": ctx.ir.BoolAttr.get(indices_are_sorted)})

    @hookimpl
    def samples(self, rng: Any) -> Iterator[Sample]:
        plain = {"unique_indices": False, "indices_are_sorted": False, "mode": "clip", "fill_value": None}
        for sizes, indices, numbers, wanted in READ:
            yield Sample([rng.standard_normal(sizes), np.array(indices, np.int32)],
                         {"dimension_numbers": numbers, "slice_sizes": wanted, **plain})
        promised = {**plain, "unique_indices": True, "indices_are_sorted": True}
        yield Sample([rng.standard_normal((3, 4)), np.array([[0], [2]], np.int32)],
                     {"dimension_numbers": ((0,), (1,), (1,), (), ()), "slice_sizes": (3, 1), **promised},
                     domain=((-2.0, 2.0), None))
        rows = {**plain, "dimension_numbers": ((1,), (0,), (0,), (), ()), "slice_sizes": (1, 4), "fill_value": 2}
        yield Sample([rng.standard_normal((3, 4)), np.array([[2], [3], [-1], [2]])], {**rows, "mode": "fill"},
                     exempt={"elements are moved whole": "a number can't stand for elements out of bounds"})
        yield Sample([np.ones((3, 4)), np.array([[2, 0]])], {**rows, "mode": "fill"}, error=TypeError)
        yield Sample([np.ones((3, 4)), np.array([[2]])], {**rows, "slice_sizes": (0, 4)}, error=TypeError)


gather: Any = define(Gather())


def _filled(x: Any, indices: Any, numbers: Numbers, sizes: Shape, out: Any, fill_value: Any) -> Any:
    """The gathered windows, with `fill_value` in place of those out of bounds."""
    upper = [n - s for n, s in zip(shape_of(x), sizes, strict=True)]
    inside = lax.bitwise_and(lax.ge(indices, as_dtype(0, aval_of(indices).dtype)),
                             lax.le(indices, uppers(indices, upper, numbers[2])))
    windows = shape_of(indices)[:-1]
    valid: Any = full(windows, True) if not numbers[2] else None
    for k in range(len(numbers[2])):
        column = reshape(lax.slice_in_dim(inside, k, k + 1, axis=len(windows)), windows)
        valid = column if valid is None else lax.bitwise_and(valid, column)
    shape = shape_of(out)
    valid = broadcast_in_dim(valid, shape, tuple([d for d in range(len(shape)) if d not in numbers[0]]))
    dtype = aval_of(out).dtype
    return lax.select_n(valid, full(shape, fill_number(dtype, fill_value), dtype), out)
