"""Reading and writing many windows of an array at once, at places that an array of indices holds.

XLA's law is that `gather` clamps a window's start so that it lies within the operand, and that a scatter leaves out a
window that does not. What else may happen to such indices (`mode`) is composed around the operations in lowering.

The last axis of the indices holds one coordinate for each entry of `start_index_map`; its other axes say how many
windows there are.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from corejax import lax
from corejax.core import Linear, ShapedArray, aval_of, dtypes, stage
from corejax.errors import CorejaxValueError
from corejax.plugin import Sample, define, hookimpl, not_differentiable, not_linear, partials
from corejax_lax_basic._axes import Shape, as_ints, dtype_kind, insert, same_dtype, shape_of, shifted, wrong
from corejax_lax_basic._lowering import axis_numbers, i64s
from corejax_lax_basic._windows import READ, WRITTEN
from corejax_lax_basic.creation import as_dtype, full
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
    jvp = partials(lambda x_dot, out, x, indices, **params: gather.primitive.bind(
        x_dot, indices, **{**params, "fill_value": 0 if params["mode"] == "fill" else None}), None)

    def function(self, bind: Any) -> Any:
        def gather(operand: Any, start_indices: Any, dimension_numbers: GatherDimensionNumbers,
                   slice_sizes: Sequence[int], *, unique_indices: bool = False, indices_are_sorted: bool = False,
                   mode: str | None = None, fill_value: Any = None) -> Any:
            sizes, numbers = as_ints("gather", "slice_sizes", slice_sizes), _canonical_numbers(dimension_numbers)
            mode, indices = canonical_mode("gather", mode), _wide(start_indices)
            fill_value = fill_value if mode == "fill" else None
            static = fill_value is None or type(fill_value) in dtypes.PYTHON_SCALARS
            out = bind(operand, indices, dimension_numbers=numbers, slice_sizes=sizes,
                       unique_indices=bool(unique_indices), indices_are_sorted=bool(indices_are_sorted),
                       mode=mode if static else "clip", fill_value=fill_value if static else None)
            return out if static else _filled(operand, indices, numbers, sizes, out, fill_value)
        return gather

    @hookimpl
    def impl(self, args: Any, *, dimension_numbers: Numbers, slice_sizes: Shape, mode: str, fill_value: Any) -> Any:
        x, indices = args
        offset_dims, collapsed, index_map, x_batch, index_batch = dimension_numbers
        places, valid = _places(x.shape, indices, index_map, x_batch, index_batch, slice_sizes, clamp=True,
                                check=mode == "fill")
        out = x[tuple(places)]  # windows first, then the axes within a window, of which some have size 1
        n = indices.ndim - 1
        if not valid.all():
            out = out.copy()
            out[~valid] = _fill_number(x.dtype, fill_value)
        out = out.reshape((*out.shape[:n], *[s for d, s in enumerate(slice_sizes) if d not in (*collapsed, *x_batch)]))
        windows = [d for d in range(out.ndim) if d not in offset_dims]
        return np.moveaxis(out, range(out.ndim), (*windows, *offset_dims))

    @hookimpl
    def abstract_eval(self, avals: Any, *, dimension_numbers: Numbers, slice_sizes: Shape, unique_indices: bool,
                      indices_are_sorted: bool, mode: str, fill_value: Any = None) -> ShapedArray:
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
             unique_indices: bool, indices_are_sorted: bool, mode: str, fill_value: Any) -> Any:
        (x, indices), (dim, index_dim) = args, dims
        offset, collapsed, index_map, x_batch, index_batch = dimension_numbers
        out_dim = 0
        if index_dim is not None:
            indices = move_axis(indices, index_dim, 0)
            offset, index_batch = shifted(offset, 0), shifted(index_batch, 0)
        if index_dim is not None and dim is not None:
            x, slice_sizes = move_axis(x, dim, 0), (min(1, axis.size), *slice_sizes)
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
        rows = {**plain, "dimension_numbers": ((1,), (0,), (0,), (), ()), "slice_sizes": (1, 4), "fill_value": 2}
        yield Sample([rng.standard_normal((3, 4)), np.array([[2], [3], [-1], [2]])], {**rows, "mode": "fill"})
        yield Sample([np.ones((3, 4)), np.array([[2, 0]])], {**rows, "mode": "fill"}, error=TypeError)


class _Scatter:
    """What all scatters share; each adds its name, its operation, and what it has of derivatives."""

    name = ""
    _operation = ""
    _ufunc: Any = None
    _exempt_of_overlaps: Mapping[str, str] = {}  # checks that don't hold where windows overlap, and why

    def function(self, bind: Any) -> Any:
        def scatter(operand: Any, scatter_indices: Any, updates: Any, dimension_numbers: ScatterDimensionNumbers, *,
                    indices_are_sorted: bool = False, unique_indices: bool = False, mode: str | None = None) -> Any:
            numbers = _canonical_numbers(dimension_numbers)
            mode = canonical_mode(self.name, mode)
            return bind(operand, _wide(scatter_indices), updates, dimension_numbers=numbers,
                        unique_indices=bool(unique_indices), indices_are_sorted=bool(indices_are_sorted),
                        mode="drop" if mode == "fill" else mode)
        scatter.__name__ = scatter.__qualname__ = self.name
        return scatter

    @hookimpl
    def impl(self, args: Any, *, dimension_numbers: Numbers, mode: str) -> Any:
        x, indices, updates = args
        window_dims, _, index_map, x_batch, index_batch = dimension_numbers
        sizes = _window_sizes(x.shape, updates.shape, dimension_numbers)
        clamp = mode == "clip"
        places, valid = _places(x.shape, indices, index_map, x_batch, index_batch, sizes, clamp=clamp, check=not clamp)
        windows = [d for d in range(updates.ndim) if d not in window_dims]
        new = updates.transpose((*windows, *window_dims)).reshape((*indices.shape[:-1], *sizes))
        if not valid.all():
            places, new = [np.broadcast_to(p, (*valid.shape, *p.shape[valid.ndim:]))[valid] for p in places], new[valid]
        out = np.array(x)
        if self._ufunc is None:
            out[tuple(places)] = new
        else:
            self._ufunc.at(out, tuple(places), new)
        return out

    @hookimpl
    def abstract_eval(self, avals: Any, *, dimension_numbers: Numbers, indices_are_sorted: bool, unique_indices: bool,
                      mode: str) -> ShapedArray:
        x, indices, updates = avals
        window_dims, inserted, index_map, x_batch, index_batch = dimension_numbers
        same_dtype(self.name, (x, updates))
        _check(self.name, x, indices, index_map, inserted, x_batch, index_batch)
        windows = tuple([n for d, n in enumerate(updates.shape) if d not in window_dims])
        fits = windows == indices.shape[:-1] and len(window_dims) + len(inserted) + len(x_batch) == x.ndim
        if not fits or any([s > n for s, n in zip(_window_sizes(x.shape, updates.shape, dimension_numbers), x.shape,
                                                  strict=True)]):
            raise wrong(self.name, "the updates don't fit the operand and the indices",
                        got=f"{updates} into {x} at {indices} with {ScatterDimensionNumbers(*dimension_numbers)}",
                        wanted="the indices' axes but the last, and a window axis for each operand axis not inserted",
                        todo="for x[i] along axis 0: inserted_window_dims=(0,), scatter_dims_to_operand_dims=(0,)")
        return ShapedArray(x.shape, x.dtype, x.weak_type and updates.weak_type)

    @hookimpl
    def vmap(self, axis: Any, args: Any, dims: Any, *, dimension_numbers: Numbers, indices_are_sorted: bool,
             unique_indices: bool, mode: str) -> Any:
        (x, indices, updates), (dim, index_dim, updates_dim) = args, dims
        x, updates = batch_in_front(x, dim, axis.size), batch_in_front(updates, updates_dim, axis.size)
        window_dims, inserted, index_map, x_batch, index_batch = [shifted(d, 0) for d in dimension_numbers]
        if index_dim is None:  # the batch axis is one more axis within each window
            window_dims, index_batch = (0, *window_dims), dimension_numbers[4]
        else:
            indices = move_axis(indices, index_dim, 0)
            x_batch, index_batch = (0, *x_batch), (0, *index_batch)
        numbers = (window_dims, inserted, index_map, x_batch, index_batch)
        primitive = _SCATTERS[self.name].primitive
        return primitive.bind(x, indices, updates, dimension_numbers=numbers, unique_indices=unique_indices, mode=mode,
                              indices_are_sorted=indices_are_sorted and index_dim is None), 0

    @hookimpl
    def xla_translation(self, ctx: Any, args: Any, *, dimension_numbers: Numbers, indices_are_sorted: bool,
                        unique_indices: bool, mode: str) -> Any:
        if mode == "clip":
            inside = {"dimension_numbers": dimension_numbers, "mode": "promise_in_bounds",
                      "unique_indices": unique_indices, "indices_are_sorted": indices_are_sorted}
            clipped = stage(lambda x, i, y: [_SCATTERS[self.name].primitive.bind(
                x, _clamped(i, shape_of(x), shape_of(y), dimension_numbers), y, **inside)], ctx.avals_in)
            return ctx.call(clipped, args, self.name)[0]
        window_dims, inserted, index_map, x_batch, index_batch = dimension_numbers
        numbers = axis_numbers(ctx, "scatter", {
            "update_window_dims": window_dims, "inserted_window_dims": inserted, "input_batching_dims": x_batch,
            "scatter_indices_batching_dims": index_batch, "scatter_dims_to_operand_dims": index_map,
            "index_vector_dim": len(ctx.avals_in[1].shape) - 1})
        out = ctx.op("stablehlo.scatter", args, {
            "scatter_dimension_numbers": numbers, "indices_are_sorted": ctx.ir.BoolAttr.get(indices_are_sorted),
            "unique_indices": ctx.ir.BoolAttr.get(unique_indices)}, regions=1)
        scalar = ctx.type_of(ShapedArray((), ctx.avals_in[0].dtype))
        body = out.owner.regions[0].blocks.append(scalar, scalar)
        with ctx.ir.InsertionPoint(body):
            kept = ctx.op(self._operation, [*body.arguments], None, [scalar]) if self._operation else body.arguments[1]
            ctx.op("stablehlo.return", [kept], None, [])
        return out

    @hookimpl
    def samples(self, rng: Any) -> Iterator[Sample]:
        for sizes, indices, new, numbers, mode in WRITTEN:
            yield Sample([rng.standard_normal(sizes), np.array(indices, np.int32), rng.standard_normal(new)], {
                "dimension_numbers": numbers, "mode": mode, "unique_indices": mode == "fill",
                "indices_are_sorted": False}, exempt=self._exempt_of_overlaps if mode == "clip" else None)


class Scatter(_Scatter):
    """`scatter(operand, scatter_indices, updates, dimension_numbers, ...)`: the operand with windows replaced.

    `mode` says what happens to windows out of bounds: "fill" or "drop" leaves them out, "clip" moves them inside,
    "promise_in_bounds" says that there are none. Where windows overlap, one of them wins.

    >>> numbers = ScatterDimensionNumbers((), inserted_window_dims=(0,), scatter_dims_to_operand_dims=(0,))
    >>> scatter(np.zeros(4), np.array([[3], [1]]), np.ones(2), numbers).tolist()
    [0.0, 1.0, 0.0, 1.0]
    """

    name = "scatter"
    linear = (0, 2)

    @hookimpl
    def transpose(self, cotangents: Any, args: Any, *, dimension_numbers: Numbers, indices_are_sorted: bool,
                  unique_indices: bool, mode: str) -> Any:
        x, indices, updates = args
        ct, sizes = cotangents, shape_of(updates)
        fixed = {"dimension_numbers": dimension_numbers, "indices_are_sorted": indices_are_sorted,
                 "unique_indices": unique_indices, "mode": mode}
        x_bar = updates_bar = None
        if type(x) is Linear:
            x_bar = scatter.primitive.bind(ct, indices, full(sizes, 0, aval_of(ct).dtype), **fixed)
        if type(updates) is Linear:
            updates_bar = _read_back(ct, indices, sizes, dimension_numbers, mode)
            if not unique_indices:  # only the window that won has a derivative: mark each element, see which arrived
                marks = reshape(lax.iota(np.int32, updates.aval.size), sizes)
                arrived = scatter.primitive.bind(full(shape_of(ct), -1, np.int32), indices, marks, **fixed)
                won = lax.eq(_read_back(arrived, indices, sizes, dimension_numbers, mode), marks)
                updates_bar = lax.select_n(won, full(sizes, 0, aval_of(ct).dtype), updates_bar)
        return [x_bar, None, updates_bar]


class ScatterAdd(_Scatter):
    """`scatter_add(operand, scatter_indices, updates, dimension_numbers, ...)`: adds windows; repeated ones all count.

    `mode` is as in `scatter`.
    """

    name = "scatter_add"
    linear = (0, 2)
    _operation = "stablehlo.add"
    _ufunc = np.add

    @hookimpl
    def transpose(self, cotangents: Any, args: Any, *, dimension_numbers: Numbers, mode: str) -> Any:
        x, indices, updates = args
        updates_bar = None
        if type(updates) is Linear:
            updates_bar = _read_back(cotangents, indices, shape_of(updates), dimension_numbers, mode)
        return [cotangents if type(x) is Linear else None, None, updates_bar]


class _ScatterBy(_Scatter):
    """A scatter that combines by something not linear."""

    jvp = not_differentiable("where indices repeat, its derivative depends on the order in which updates arrive")
    transpose = not_linear("products and extrema are not linear")


class ScatterMul(_ScatterBy):
    """`scatter_mul(operand, scatter_indices, updates, dimension_numbers, ...)`: multiplies windows by others."""

    name = "scatter_mul"
    _operation = "stablehlo.multiply"
    _ufunc = np.multiply
    _exempt_of_overlaps = {"extreme numbers agree": "whether a product under- or overflows depends on its order"}


class ScatterMin(_ScatterBy):
    """`scatter_min(operand, scatter_indices, updates, dimension_numbers, ...)`: the lesser of old and new."""

    name = "scatter_min"
    _operation = "stablehlo.minimum"
    _ufunc = np.minimum


class ScatterMax(_ScatterBy):
    """`scatter_max(operand, scatter_indices, updates, dimension_numbers, ...)`: the greater of old and new."""

    name = "scatter_max"
    _operation = "stablehlo.maximum"
    _ufunc = np.maximum


gather: Any = define(Gather())
scatter: Any = define(Scatter())
scatter_add: Any = define(ScatterAdd())
scatter_mul: Any = define(ScatterMul())
scatter_min: Any = define(ScatterMin())
scatter_max: Any = define(ScatterMax())

_SCATTERS = {f.primitive.name: f for f in (scatter, scatter_add, scatter_mul, scatter_min, scatter_max)}

_MODES = {None: "fill", "fill": "fill", "drop": "fill", "clip": "clip", "promise_in_bounds": "promise_in_bounds"}


def canonical_mode(primitive: str, mode: Any) -> str:
    """What happens to indices out of bounds: "fill", "clip" or "promise_in_bounds"."""
    found = _MODES.get(mode) if mode is None or isinstance(mode, str) else None
    if found is None:
        raise wrong(primitive, "no such mode for indices out of bounds", got=repr(mode),
                    wanted=", ".join(map(repr, _MODES)), todo="leave it out, or clip the indices yourself",
                    kind=CorejaxValueError)
    return found


def _canonical_numbers(numbers: Any) -> Numbers:
    if not isinstance(numbers, (tuple, list)) or len(numbers) != 5:
        raise wrong("gather or scatter", "dimension_numbers has another form", got=f"{numbers!r:.80}",
                    wanted="lax.GatherDimensionNumbers(...) or lax.ScatterDimensionNumbers(...)",
                    todo="say which axes of operand, indices and result belong together; or write x[...], x.at[...]")
    first, second, third, x_batch, index_batch = [as_ints("gather or scatter", "an axis", axes) for axes in numbers]
    return first, second, third, x_batch, index_batch


def _wide(indices: Any) -> Any:
    """Indices of at least 32 bits, so that sizes can be compared with them."""
    dtype = aval_of(indices).dtype
    return lax.convert_element_type(indices, np.int32) if dtype.itemsize < 4 and dtype_kind(dtype) in "iu" else indices


def _check(primitive: str, x: ShapedArray, indices: ShapedArray, index_map: Shape, dropped: Shape, x_batch: Shape,
           index_batch: Shape) -> None:
    if dtype_kind(indices.dtype) not in "iu" or not indices.ndim or indices.shape[-1] != len(index_map):
        raise wrong(primitive, "the indices don't fit", got=f"{indices} for coordinates {index_map}",
                    wanted=f"integers whose last axis has size {len(index_map)}",
                    todo="the last axis of the indices holds one coordinate for each entry of the map")
    for axes in ((*dropped, *x_batch), (*index_map, *x_batch)):
        if len(set(axes)) != len(axes) or any([not 0 <= d < x.ndim for d in axes]):
            raise wrong(primitive, f"the dimension numbers are not distinct axes of {x}", got=axes,
                        wanted=f"distinct axes below {x.ndim}", todo="an axis is indexed, batched or neither")
    if [x.shape[d] for d in x_batch] != [indices.shape[d] for d in index_batch]:
        raise wrong(primitive, "batching axes differ in size", got=f"{x_batch} of {x}, {index_batch} of {indices}",
                    wanted="equal sizes pair by pair", todo="pair each batching axis with one of its size")


def _places(shape: Shape, indices: Any, index_map: Shape, x_batch: Shape, index_batch: Shape, sizes: Shape, *,
            clamp: bool, check: bool) -> tuple[list[Any], Any]:
    """For each operand axis the positions (windows..., 1, .., size, .., 1), and if asked which windows lie within."""
    windows, ndim = indices.shape[:-1], len(shape)
    valid, places = np.ones(windows, np.bool_), []
    for d in range(ndim):
        start: Any = np.zeros(windows, np.int64)
        if d in index_map:
            start = indices[..., index_map.index(d)]
            last = shape[d] - sizes[d]
            if check:
                valid &= (start >= 0) & (start <= last)
            start = (np.clip(start, 0, last) if clamp else start).astype(np.int64)
        elif d in x_batch:
            along = index_batch[x_batch.index(d)]
            start = np.arange(shape[d]).reshape([-1 if a == along else 1 for a in range(len(windows))])
        within = np.arange(sizes[d]).reshape([-1 if a == d else 1 for a in range(ndim)])
        places.append(start.reshape((*start.shape, *([1] * ndim))) + within)
    return places, valid


def _window_sizes(shape: Shape, updates: Shape, numbers: Numbers) -> Shape:
    """The size of a scatter's windows along each operand axis."""
    window_dims, inserted, _, x_batch, _ = numbers
    sizes = iter([updates[d] if d < len(updates) else 0 for d in window_dims])
    return tuple([1 if d in inserted else min(1, n) if d in x_batch else next(sizes, 0) for d, n in enumerate(shape)])


def _read_back(ct: Any, indices: Any, updates_shape: Shape, numbers: Numbers, mode: str) -> Any:
    """What stands in the windows that a scatter wrote; 0 for those that it left out."""
    sizes = _window_sizes(shape_of(ct), updates_shape, numbers)
    return gather(ct, indices, GatherDimensionNumbers(*numbers), sizes, mode="fill" if mode == "drop" else mode,
                  fill_value=0)


def _uppers(indices: Any, upper: Sequence[int], index_map: Shape) -> Any:
    """The last valid start for each coordinate, spread to the indices' type."""
    aval = aval_of(indices)
    last = np.array([upper[d] for d in index_map], aval.dtype)
    return broadcast_in_dim(last, aval.shape, (aval.ndim - 1,))


def _clamped(indices: Any, shape: Shape, updates: Shape, numbers: Numbers) -> Any:
    """The indices of a scatter, moved so that each window lies within the operand."""
    zero, sizes = as_dtype(0, aval_of(indices).dtype), _window_sizes(shape, updates, numbers)
    upper = [n - s for n, s in zip(shape, sizes, strict=True)]
    return lax.max(lax.min(indices, _uppers(indices, upper, numbers[2])), zero)


def _filled(x: Any, indices: Any, numbers: Numbers, sizes: Shape, out: Any, fill_value: Any) -> Any:
    """The gathered windows, but `fill_value` for those that are out of bounds."""
    upper = [n - s for n, s in zip(shape_of(x), sizes, strict=True)]
    inside = lax.bitwise_and(lax.ge(indices, as_dtype(0, aval_of(indices).dtype)),
                             lax.le(indices, _uppers(indices, upper, numbers[2])))
    windows = shape_of(indices)[:-1]
    valid: Any = full(windows, True) if not numbers[2] else None
    for k in range(len(numbers[2])):
        column = reshape(lax.slice_in_dim(inside, k, k + 1, axis=len(windows)), windows)
        valid = column if valid is None else lax.bitwise_and(valid, column)
    shape = shape_of(out)
    valid = broadcast_in_dim(valid, shape, tuple([d for d in range(len(shape)) if d not in numbers[0]]))
    dtype = aval_of(out).dtype
    return lax.select_n(valid, full(shape, _fill_number(dtype, fill_value), dtype), out)


def _fill_number(dtype: np.dtype, fill_value: Any) -> Any:
    """What stands for a window that is out of bounds."""
    kind = dtype_kind(dtype)
    if fill_value is not None or kind in "fc":
        return np.nan if fill_value is None else fill_value
    return True if kind == "b" else np.iinfo(dtype).min if kind == "i" else np.iinfo(dtype).max
