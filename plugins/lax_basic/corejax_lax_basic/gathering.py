"""Reading and writing many windows of an array at once, at places that an array of indices holds.

Both primitives follow XLA's law: `gather` clamps a window's start so that it lies within the operand; a scatter leaves
out a window that does not. Other treatments of such indices are composed around them (`mode`).

The last axis of the indices holds one coordinate for each entry of `start_index_map`; its other axes say how many
windows there are.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from corejax import lax
from corejax.core import Linear, ShapedArray, aval_of
from corejax.plugin import Sample, define, hookimpl, not_differentiable, not_linear

from corejax_lax_basic._axes import (Shape, as_ints, dtype_kind, insert, same_dtype, shape_of, shifted, wrong)
from corejax_lax_basic._lowering import axis_numbers, i64s
from corejax_lax_basic.creation import full
from corejax_lax_basic.shapes import batch_in_front, broadcast_in_dim, move_axis, reshape

__all__ = ["GatherDimensionNumbers", "ScatterDimensionNumbers", "gather", "scatter", "scatter_add", "scatter_max",
           "scatter_min", "scatter_mul"]

Numbers = tuple[Shape, Shape, Shape, Shape, Shape]


class GatherDimensionNumbers(NamedTuple):
    """Which axes of operand, indices and result belong together.

    `offset_dims`: the result's axes that run within a window. `collapsed_slice_dims`: operand axes of window size 1
    that the result lacks. `start_index_map[k]`: the operand axis of coordinate k. The batching axes pair an operand
    axis with an axis of the indices.
    """

    offset_dims: Shape
    collapsed_slice_dims: Shape
    start_index_map: Shape
    operand_batching_dims: Shape = ()
    start_indices_batching_dims: Shape = ()


class ScatterDimensionNumbers(NamedTuple):
    """The same for writing: `update_window_dims` are the axes of the updates that run within a window."""

    update_window_dims: Shape
    inserted_window_dims: Shape
    scatter_dims_to_operand_dims: Shape
    operand_batching_dims: Shape = ()
    scatter_indices_batching_dims: Shape = ()


class Gather:
    """`gather(operand, start_indices, dimension_numbers, slice_sizes, ...)`: one window for each index vector.

    `mode` says what happens to windows out of bounds: "clip" moves them inside, "fill" gives `fill_value`,
    "promise_in_bounds" says that there are none.

    >>> numbers = GatherDimensionNumbers(offset_dims=(), collapsed_slice_dims=(0,), start_index_map=(0,))
    >>> gather(np.arange(5) * 10, np.array([[3], [1]]), numbers, (1,)).tolist()
    [30, 10]
    """

    name = "gather"
    linear = (0,)

    def function(self, bind: Any) -> Any:
        def gather(operand: Any, start_indices: Any, dimension_numbers: GatherDimensionNumbers,
                   slice_sizes: Sequence[int], *, unique_indices: bool = False, indices_are_sorted: bool = False,
                   mode: str | None = None, fill_value: Any = None) -> Any:
            sizes, numbers = as_ints("gather", "slice_sizes", slice_sizes), tuple(map(tuple, dimension_numbers))
            mode = _canonical_mode("gather", mode)
            out = bind(operand, _wide(start_indices), dimension_numbers=numbers, slice_sizes=sizes,
                       unique_indices=bool(unique_indices), indices_are_sorted=bool(indices_are_sorted),
                       mode="clip" if mode == "fill" else mode)
            return out if mode != "fill" else _filled(operand, start_indices, numbers, sizes, out, fill_value)
        return gather

    @hookimpl
    def impl(self, args: Any, *, dimension_numbers: Numbers, slice_sizes: Shape) -> Any:
        x, indices = args
        offset_dims, collapsed, index_map, x_batch, _ = dimension_numbers
        places, _ = _places(x.shape, indices, index_map, x_batch, dimension_numbers[4], slice_sizes, clamp=True)
        out = x[tuple(places)]  # windows first, then the axes within a window, of which some have size 1
        n = indices.ndim - 1
        out = out.reshape(*out.shape[:n], *[s for d, s in enumerate(slice_sizes) if d not in (*collapsed, *x_batch)])
        windows = [d for d in range(out.ndim) if d not in offset_dims]
        return np.moveaxis(out, range(out.ndim), (*windows, *offset_dims))

    @hookimpl
    def abstract_eval(self, avals: Any, *, dimension_numbers: Numbers, slice_sizes: Shape, unique_indices: bool,
                      indices_are_sorted: bool, mode: str) -> ShapedArray:
        x, indices = avals
        offset_dims, collapsed, index_map, x_batch, index_batch = dimension_numbers
        _check(self.name, x, indices, index_map, collapsed, x_batch, index_batch)
        dropped = (*collapsed, *x_batch)
        fits = len(slice_sizes) == x.ndim and all([0 <= s <= n for s, n in zip(slice_sizes, x.shape, strict=True)])
        if not fits or any([slice_sizes[d] > 1 for d in dropped]) or len(offset_dims) + len(dropped) != x.ndim:
            raise wrong(self.name, f"slice_sizes or offset_dims don't fit {x}",
                        got=f"{slice_sizes} with {GatherDimensionNumbers(*dimension_numbers)}",
                        wanted="a size for each axis, 1 along collapsed and batching axes, an offset axis for the rest",
                        todo="for x[i] along axis 0: collapsed_slice_dims=(0,), start_index_map=(0,)")
        windows, offsets = iter(indices.shape[:-1]), iter([s for d, s in enumerate(slice_sizes) if d not in dropped])
        ndim = indices.ndim - 1 + len(offset_dims)
        return ShapedArray([next(offsets) if d in offset_dims else next(windows) for d in range(ndim)], x.dtype,
                           x.weak_type)

    @hookimpl
    def transpose(self, cotangents: Any, args: Any, *, dimension_numbers: Numbers, slice_sizes: Shape,
                  unique_indices: bool, indices_are_sorted: bool, mode: str) -> Any:
        x, indices = args
        zeros = full(shape_of(x), 0, aval_of(cotangents).dtype)
        return [scatter_add(zeros, indices, cotangents, ScatterDimensionNumbers(*dimension_numbers), mode=mode,
                            unique_indices=unique_indices, indices_are_sorted=indices_are_sorted), None]

    @hookimpl
    def vmap(self, axis: Any, args: Any, dims: Any, *, dimension_numbers: Numbers, slice_sizes: Shape,
             unique_indices: bool, indices_are_sorted: bool, mode: str) -> Any:
        (x, indices), (dim, index_dim) = args, dims
        offset, collapsed, index_map, x_batch, index_batch = dimension_numbers
        out_dim = 0
        if index_dim is not None:
            indices = move_axis(indices, index_dim, 0)
            offset, index_batch = shifted(offset, 0), shifted(index_batch, 0)
        if index_dim is not None and dim is not None:
            x, slice_sizes = move_axis(x, dim, 0), (1, *slice_sizes)
            collapsed, index_map = shifted(collapsed, 0), shifted(index_map, 0)
            x_batch, index_batch = (0, *shifted(x_batch, 0)), (0, *index_batch)
        elif dim is not None:  # the batch axis is one more axis within each window
            slice_sizes = insert(slice_sizes, dim, axis.size)
            collapsed, index_map, x_batch = shifted(collapsed, dim), shifted(index_map, dim), shifted(x_batch, dim)
            rank = len([d for d in range(dim) if d not in (*collapsed, *x_batch)])
            out_dim = offset[rank - 1] + 1 if rank else 0
            offset = insert(shifted(offset, out_dim), rank, out_dim)
        numbers = (offset, collapsed, index_map, x_batch, index_batch)
        return gather.primitive.bind(x, indices, dimension_numbers=numbers, slice_sizes=slice_sizes,
                                     unique_indices=unique_indices and index_dim is None, mode=mode,
                                     indices_are_sorted=indices_are_sorted and index_dim is None), out_dim

    @hookimpl
    def xla_translation(self, ctx: Any, args: Any, *, dimension_numbers: Numbers, slice_sizes: Shape,
                        indices_are_sorted: bool) -> Any:
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
        plain = {"unique_indices": False, "indices_are_sorted": False, "mode": "clip"}
        for sizes, indices, numbers, wanted in [
                ((5,), [[0], [4], [4]], ((), (0,), (0,), (), ()), (1,)),
                ((5,), [[-3], [9]], ((), (0,), (0,), (), ()), (1,)),
                ((3, 4), [[2], [0]], ((1,), (0,), (0,), (), ()), (1, 4)),
                ((3, 4), [[2, 1], [0, 3]], ((1, 2), (), (0, 1), (), ()), (2, 2)),
                ((2, 3, 4), [[[1], [2]], [[0], [0]]], ((2,), (1,), (1,), (0,), (0,)), (1, 1, 4))]:
            yield Sample([rng.standard_normal(sizes), np.array(indices, np.int32)],
                         {"dimension_numbers": numbers, "slice_sizes": wanted, **plain})


class Scatter:
    """The operand with windows replaced by, or combined with, those of `updates`.

    `mode` says what happens to windows out of bounds: "fill" (or "drop") leaves them out, "clip" moves them inside,
    "promise_in_bounds" says that there are none. Where several windows of `scatter` overlap, one of them wins.
    """

    def __init__(self, name: str, operation: str, ufunc: Any, identity: str) -> None:
        self.name, self.operation, self.ufunc, self.identity = name, operation, ufunc, identity
        if ufunc in (None, np.add):
            self.linear = (0, 2)
        else:
            self.jvp = not_differentiable("where indices repeat, its derivative depends on which update took part")
            self.transpose = not_linear("products and extrema are not linear")

    __corejax_private__ = ("operation", "ufunc", "identity")
