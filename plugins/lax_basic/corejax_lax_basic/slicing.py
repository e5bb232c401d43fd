"""Taking parts out of arrays and putting parts back, at static and at computed places."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from corejax import lax
from corejax.core import Array, ArrayLike, Linear, ShapedArray, aval_of, dtypes, to_dim
from corejax.errors import CorejaxIndexError
from corejax.plugin import Sample, define, families, hookimpl, public, refused, shaping
from corejax_lax_basic._axes import Shape, as_list, dtype_kind, same_dtype, shape_of
from corejax_lax_basic._lowering import i64s
from corejax_lax_basic.creation import as_dtype
from corejax_lax_basic.shapes import expand_dims, squeeze

__all__ = ["dynamic_index_in_dim", "dynamic_slice", "dynamic_slice_in_dim", "dynamic_update_index_in_dim",
           "dynamic_update_slice", "dynamic_update_slice_in_dim", "index_in_dim", "slice", "slice_in_dim"]


class Slice:
    """`slice(operand, start_indices, limit_indices, strides=None)`: start to limit by strides, along each axis.

    >>> lax.slice(np.arange(10), (2,), (9,), (3,)).tolist()
    [2, 5, 8]
    """

    name = "slice"
    structural = True
    linear = (0,)

    def function(self, bind: Callable[..., Array]) -> Any:
        def slice(operand: ArrayLike, start_indices: Sequence[int], limit_indices: Sequence[int],
                  strides: Sequence[int] | None = None) -> Array:
            steps = None if strides is None else shaping.as_ints("slice", "strides", strides)
            if steps is not None and all([step == 1 for step in steps]):
                steps = None
            return bind(operand, start_indices=shaping.as_ints("slice", "start_indices", start_indices),
                        limit_indices=shaping.as_ints("slice", "limit_indices", limit_indices), strides=steps)
        return slice

    @hookimpl
    def impl(self, args: Any, *, start_indices: Shape, limit_indices: Shape, strides: Shape | None) -> Any:
        return args[0][tuple(map(builtins.slice, start_indices, limit_indices, strides or (1,) * len(start_indices)))]

    @hookimpl
    def abstract_eval(self, avals: Any, *, start_indices: Shape, limit_indices: Shape, strides: Shape | None
                      ) -> ShapedArray:
        (x,) = avals
        steps = (1,) * x.ndim if strides is None else strides
        got = f"start_indices {start_indices}, limit_indices {limit_indices}, strides {strides}"
        if not len(start_indices) == len(limit_indices) == len(steps) == x.ndim:
            raise refused(self.name, f"{x} has {x.ndim} axes", got=got, wanted=f"{x.ndim} entries each",
                          todo="give a start, a limit and a stride for each axis")
        for size, start, limit, step in zip(x.shape, start_indices, limit_indices, steps, strict=True):
            if not 0 <= start <= limit <= size or step < 1:
                raise refused(self.name, f"a slice of {x} is out of its bounds", got=got,
                              wanted="0 <= start <= limit <= size and stride >= 1 along each axis",
                              todo="x[...] accepts negative and overlong slices")
        return ShapedArray(sliced_shape(start_indices, limit_indices, steps), x.dtype, x.weak_type)

    @hookimpl
    def transpose(self, cotangents: Any, args: Any, *, start_indices: Shape, strides: Shape | None) -> Any:
        sizes, got = args[0].aval.shape, shape_of(cotangents)
        config = []
        for size, start, n, step in zip(sizes, start_indices, got, strides or (1,) * len(sizes), strict=True):
            covered = start + (1 + (n - 1) * step if n else 0)
            config.append((start, size - covered, step - 1))
        return [lax.pad(cotangents, as_dtype(0, aval_of(cotangents).dtype), config)]

    @hookimpl
    def vmap(self, axis: Any, args: Any, dims: Any, *, start_indices: Shape, limit_indices: Shape,
             strides: Shape | None) -> Any:
        (x,), (dim,) = args, dims
        steps = None if strides is None else shaping.insert(strides, dim, 1)
        starts, limits = shaping.insert(start_indices, dim, 0), shaping.insert(limit_indices, dim, axis.size)
        return slice(x, starts, limits, steps), dim

    @hookimpl
    def xla_translation(self, ctx: Any, args: Any, *, start_indices: Shape, limit_indices: Shape,
                        strides: Shape | None) -> Any:
        return ctx.op("stablehlo.slice", args, {
            "start_indices": i64s(ctx, start_indices), "limit_indices": i64s(ctx, limit_indices),
            "strides": i64s(ctx, strides or (1,) * len(start_indices))})

    @hookimpl
    def samples(self, rng: Any) -> Iterator[Sample]:
        for sizes, start, limit, strides in [
                ((5,), (1,), (4,), None), ((5,), (0,), (5,), (2,)), ((5,), (1,), (5,), (3,)),
                ((3, 4), (1, 0), (3, 2), None), ((3, 4), (0, 1), (3, 4), (2, 2)), ((3,), (2,), (2,), None),
                ((), (), (), None), ((4,), (1,), (1,), (2,))]:
            yield Sample([rng.standard_normal(sizes)],
                         {"start_indices": start, "limit_indices": limit, "strides": strides})
        yield Sample([np.ones(3)], {"start_indices": (0,), "limit_indices": (4,), "strides": None}, error=TypeError)


class DynamicSlice:
    """`dynamic_slice(operand, start_indices, slice_sizes)`: a part of static size that starts at computed indices.

    A negative start counts from the end; then starts are clamped so that the part is within the operand.

    >>> lax.dynamic_slice(np.arange(5), (np.int32(9),), (2,)).tolist()
    [3, 4]
    """

    name = "dynamic_slice"
    structural = True
    linear = (0,)

    def function(self, bind: Callable[..., Array]) -> Any:
        def dynamic_slice(operand: ArrayLike, start_indices: Sequence[ArrayLike] | ArrayLike,
                          slice_sizes: Sequence[int], *, allow_negative_indices: bool | Sequence[bool] = True
                          ) -> Array:
            starts = _starts("dynamic_slice", shape_of(operand), start_indices, allow_negative_indices)
            return bind(operand, *starts, slice_sizes=shaping.as_ints("dynamic_slice", "slice_sizes", slice_sizes))
        return dynamic_slice

    @hookimpl
    def impl(self, args: Any, *, slice_sizes: Shape) -> Any:
        x = args[0]
        return x[_window(x.shape, args[1:], slice_sizes)]

    @hookimpl
    def abstract_eval(self, avals: Any, *, slice_sizes: Shape) -> ShapedArray:
        x, *starts = avals
        _check_starts(self.name, x, starts)
        if len(slice_sizes) != x.ndim or any([not 0 <= n <= m for n, m in zip(slice_sizes, x.shape, strict=True)]):
            raise refused(self.name, f"slice_sizes do not fit into {x}", got=slice_sizes,
                          wanted="a size for each axis, at most the operand's", todo="ask for a smaller part")
        return ShapedArray(slice_sizes, x.dtype, x.weak_type)

    @hookimpl
    def transpose(self, cotangents: Any, args: Any) -> Any:
        x, *starts = args
        zeros = lax.full(shape_of(x), 0, aval_of(cotangents).dtype)
        return [dynamic_update_slice.primitive.bind(zeros, cotangents, *starts), *([None] * len(starts))]

    @hookimpl
    def vmap(self, axis: Any, args: Any, dims: Any, *, slice_sizes: Shape) -> Any:
        (x, *starts), (dim, *start_dims) = args, dims
        if any([d is not None for d in start_dims]):
            return _gather_windows(axis, x, dim, starts, start_dims, slice_sizes), 0
        starts = shaping.insert(starts, dim, as_dtype(0, aval_of(starts[0]).dtype if starts else np.dtype(np.int32)))
        return dynamic_slice.primitive.bind(x, *starts, slice_sizes=shaping.insert(slice_sizes, dim, axis.size)), dim

    @hookimpl
    def xla_translation(self, ctx: Any, args: Any, *, slice_sizes: Shape) -> Any:
        # The operation clamps its starts. But of two in a row, the compiler adds up those that aren't clamped yet.
        x, *starts = args
        clamped = [_clamped(ctx, start, aval, total - size) for start, aval, total, size in zip(
            starts, ctx.avals_in[1:], ctx.avals_in[0].shape, slice_sizes, strict=True)]
        return ctx.op("stablehlo.dynamic_slice", [x, *clamped], {"slice_sizes": i64s(ctx, slice_sizes)})

    @hookimpl
    def samples(self, rng: Any) -> Iterator[Sample]:
        for sizes, starts, wanted in [((5,), (1,), (3,)), ((5,), (4,), (3,)), ((5,), (-9,), (2,)), ((), (), ()),
                                      ((3, 4), (1, 2), (2, 1)), ((3, 4), (0, 7), (3, 0)), ((2, 0), (1, 0), (1, 0))]:
            yield Sample([rng.standard_normal(sizes), *map(np.int32, starts)], {"slice_sizes": wanted})
        yield Sample([rng.standard_normal((3, 4)), np.uint8(200), np.uint8(1)], {"slice_sizes": (2, 1)})
        yield Sample([np.ones(3), np.int32(0)], {"slice_sizes": (4,)}, error=TypeError)
        yield Sample([np.ones(3), np.zeros(1, np.int32)], {"slice_sizes": (1,)}, error=TypeError)
        yield Sample([np.ones((3, 2)), np.int32(0), np.int64(0)], {"slice_sizes": (1, 1)}, error=TypeError)


class DynamicUpdateSlice:
    """`dynamic_update_slice(operand, update, start_indices)`: the operand with a part replaced.

    The part's position is determined as in `dynamic_slice`.

    >>> lax.dynamic_update_slice(np.zeros(4), np.ones(2), (np.int32(1),)).tolist()
    [0.0, 1.0, 1.0, 0.0]
    """

    name = "dynamic_update_slice"
    structural = True
    linear = (0, 1)

    def function(self, bind: Callable[..., Array]) -> Any:
        def dynamic_update_slice(operand: ArrayLike, update: ArrayLike,
                                 start_indices: Sequence[ArrayLike] | ArrayLike, *,
                                 allow_negative_indices: bool | Sequence[bool] = True) -> Array:
            starts = _starts("dynamic_update_slice", shape_of(operand), start_indices, allow_negative_indices)
            return bind(operand, update, *starts)
        return dynamic_update_slice

    @hookimpl
    def impl(self, args: Any) -> Any:
        x, update, *starts = args
        out = np.array(x)
        out[_window(x.shape, starts, update.shape)] = update
        return out

    @hookimpl
    def abstract_eval(self, avals: Any) -> ShapedArray:
        x, update, *starts = avals
        same_dtype(self.name, (x, update))
        _check_starts(self.name, x, starts)
        if update.ndim != x.ndim or any([n > m for n, m in zip(update.shape, x.shape, strict=True)]):
            raise refused(self.name, "the update does not fit into the operand", got=f"{update} into {x}",
                          wanted="as many axes, none longer than the operand's", todo="reshape or slice the update")
        return ShapedArray(x.shape, x.dtype, x.weak_type and update.weak_type)

    @hookimpl
    def transpose(self, cotangents: Any, args: Any) -> Any:
        x, update, *starts = args
        ct, sizes = cotangents, shape_of(update)
        x_bar = update_bar = None
        if type(x) is Linear:
            hole = lax.full(sizes, 0, aval_of(ct).dtype)
            x_bar = dynamic_update_slice.primitive.bind(ct, hole, *starts)
        if type(update) is Linear:
            update_bar = dynamic_slice.primitive.bind(ct, *starts, slice_sizes=sizes)
        return [x_bar, update_bar, *([None] * len(starts))]

    @hookimpl
    def vmap(self, axis: Any, args: Any, dims: Any) -> Any:
        (x, update, *starts), (dim, update_dim, *start_dims) = args, dims
        x, update = to_dim(x, dim, 0, axis.size), to_dim(update, update_dim, 0, axis.size)
        if any([d is not None for d in start_dims]):
            return _scatter_windows(axis, x, update, starts, start_dims), 0
        first = as_dtype(0, aval_of(starts[0]).dtype if starts else np.dtype(np.int32))
        return dynamic_update_slice.primitive.bind(x, update, first, *starts), 0

    @hookimpl
    def xla_translation(self, ctx: Any, args: Any) -> Any:
        return ctx.op("stablehlo.dynamic_update_slice", args)

    @hookimpl
    def samples(self, rng: Any) -> Iterator[Sample]:
        for sizes, part, starts in [((5,), (3,), (1,)), ((5,), (3,), (4,)), ((5,), (0,), (2,)), ((), (), ()),
                                    ((3, 4), (2, 1), (1, 2)), ((3, 4), (3, 4), (-1, 5))]:
            yield Sample([rng.standard_normal(sizes), rng.standard_normal(part), *map(np.int32, starts)], {})
        yield Sample([np.ones(3), np.ones(4), np.int32(0)], {}, error=TypeError)
        yield Sample([np.ones(3), np.ones(1), np.zeros(1, np.int32)], {}, error=TypeError)


slice: Any = define(Slice())
dynamic_slice: Any = define(DynamicSlice())
dynamic_update_slice: Any = define(DynamicUpdateSlice())


def sliced_shape(starts: Shape, limits: Shape, steps: Shape) -> Shape:
    """The number of elements from start up to limit by step, along each axis."""
    return tuple([max(0, -((start - limit) // step)) for start, limit, step in zip(starts, limits, steps, strict=True)])


def _window(shape: Shape, starts: Sequence[Any], sizes: Shape) -> tuple[builtins.slice, ...]:
    """Where a part of these sizes is, with each start clamped so that it fits, which is XLA's law."""
    window = []
    for total, start, size in zip(shape, starts, sizes, strict=True):
        first = min(max(int(start), 0), total - size)
        window.append(builtins.slice(first, first + size))
    return tuple(window)


def _clamped(ctx: Any, start: Any, aval: ShapedArray, last: int) -> Any:
    """A start in the bounds from 0 to `last`."""
    last = min(last, dtypes.integer_limits(aval.dtype).max)
    bounds = [ctx.constant(np.asarray(bound, aval.dtype)) for bound in (0, last)]
    return ctx.op("stablehlo.clamp", [bounds[0], start, bounds[1]], None, [ctx.type_of(aval)])


def _check_starts(primitive: str, x: ShapedArray, starts: Sequence[ShapedArray]) -> None:
    if len(starts) != x.ndim:
        raise refused(primitive, f"{x} has {x.ndim} axes", got=f"{len(starts)} start indices", wanted=f"{x.ndim}",
                      todo="give one scalar start index for each axis")
    if any([s.ndim or dtype_kind(s.dtype) not in "iu" or s.dtype != starts[0].dtype for s in starts]):
        raise refused(primitive, "start indices must be integer scalars of one dtype", got=", ".join(map(str, starts)),
                      wanted="scalars of one integer dtype", todo="convert them with lax.convert_element_type")


def _starts(primitive: str, shape: Shape, indices: Any, allow_negative: bool | Sequence[bool]) -> list[Any]:
    """A scalar for each axis, all of the same dtype; negative ones are counted from the end."""
    if not isinstance(indices, (list, tuple)):
        if len(shape_of(indices)) != 1:
            raise refused(primitive, "start indices must be a sequence", got=str(aval_of(indices)),
                          wanted="a list of scalars, or an array with one axis", todo="put a single index in a list")
        parts = [index_in_dim(indices, i, keepdims=False) for i in range(shape_of(indices)[0])]
    else:
        parts = list(indices)
    if len(parts) != len(shape):
        raise refused(primitive, "each axis needs a start index", got=f"{len(parts)} start indices",
                      wanted=f"{len(shape)}, for shape {shape}", todo="start at 0 along axes taken whole")
    allowed = ([allow_negative] * len(shape) if type(allow_negative) is bool
               else _flags(primitive, "allow_negative_indices", allow_negative, len(shape)))
    given = [aval_of(i).dtype for i in parts if not isinstance(i, int)]
    if any([dtype_kind(dtype) not in "iu" for dtype in given]):
        raise refused(primitive, "start indices must be integers", got=", ".join([str(aval_of(i)) for i in parts]),
                      wanted="integer scalars", todo="convert them with lax.convert_element_type")
    wanted = max(given, key=lambda d: (dtypes.bits_of(d), dtype_kind(d) == "i"), default=np.dtype(np.int32))
    if wanted.itemsize < 4 or any([size > dtypes.integer_limits(wanted).max for size in shape]):
        wanted = np.dtype(np.int64 if max(shape, default=0) > np.iinfo(np.int32).max else np.int32)
    return [_start(i, size, negative, wanted) for i, size, negative in zip(parts, shape, allowed, strict=True)]


def _flags(primitive: str, what: str, flags: Any, count: int) -> list[bool]:
    """A flag for each axis: as many are given, or one for all."""
    one = not isinstance(flags, (list, tuple)) and not getattr(flags, "ndim", None)
    each = [flags] * count if one else as_list(primitive, what, flags)
    return [shaping.as_flag(primitive, what, flag) for flag in each]


def _start(i: Any, size: int, allow_negative: bool, dtype: np.dtype) -> Any:
    if isinstance(i, (int, np.integer)):
        number = int(i) + size if i < 0 and allow_negative else int(i)
        return as_dtype(min(max(number, -1 if dtype.kind == "i" else 0), size), dtype)
    aval = aval_of(i)
    start = lax.convert_element_type(i, dtype) if aval.dtype != dtype else i
    if not allow_negative or dtype_kind(aval.dtype) == "u":
        return start
    return lax.select_n(lax.lt(start, as_dtype(0, dtype)), start, lax.add(start, as_dtype(size, dtype)))


def _batched_starts(axis: Any, starts: Sequence[Any], dims: Sequence[int | None]) -> Any:
    """The start indices of a batch as an array (batch, operand axis)."""
    return lax.concatenate([lax.broadcast_in_dim(s, (axis.size, 1), () if d is None else (0,))
                            for s, d in zip(starts, dims, strict=True)], 1)


def _gather_windows(axis: Any, x: Any, dim: int | None, starts: Any, start_dims: Any, sizes: Shape) -> Any:
    axes = tuple(range(len(sizes)))
    indices = _batched_starts(axis, starts, start_dims)
    if dim is None:
        numbers = lax.GatherDimensionNumbers(tuple([a + 1 for a in axes]), (), axes)
        return lax.gather(x, indices, numbers, sizes, mode="clip")
    numbers = lax.GatherDimensionNumbers(tuple([a + 1 for a in axes]), (), tuple([a + (a >= dim) for a in axes]),
                                         operand_batching_dims=(dim,), start_indices_batching_dims=(0,))
    return lax.gather(x, indices, numbers, shaping.insert(sizes, dim, min(1, axis.size)), mode="clip")


def _scatter_windows(axis: Any, x: Any, update: Any, starts: Any, start_dims: Any) -> Any:
    axes = tuple(range(1, len(starts) + 1))
    numbers = lax.ScatterDimensionNumbers(axes, (), axes, (0,), (0,))
    return lax.scatter(x, _batched_starts(axis, starts, start_dims), update, numbers, mode="clip", unique_indices=True)


@public
def slice_in_dim(operand: ArrayLike, start_index: int | None, limit_index: int | None, stride: int = 1,
                 axis: int = 0) -> Array:
    """A slice along one axis; None and negative bounds mean the same as in Python's slices.

    >>> slice_in_dim(np.arange(5), 1, -1).tolist()
    [1, 2, 3]
    """
    shape = shape_of(operand)
    at = shaping.canonical_axis("slice_in_dim", axis, len(shape))
    size = shape[at]
    start = 0 if start_index is None else shaping.as_int("slice_in_dim", "start_index", start_index)
    limit = size if limit_index is None else shaping.as_int("slice_in_dim", "limit_index", limit_index)
    start, limit = start + size if start < 0 else start, limit + size if limit < 0 else limit
    starts, limits, steps = [0] * len(shape), list(shape), [1] * len(shape)
    starts[at], limits[at], steps[at] = start, limit, shaping.as_int("slice_in_dim", "stride", stride)
    return slice(operand, tuple(starts), tuple(limits), tuple(steps))  # type: ignore[no-any-return]


@public
def index_in_dim(operand: ArrayLike, index: int, axis: int = 0, keepdims: bool = True) -> Array:
    """The slice at a static index along one axis, with or without that axis.

    >>> index_in_dim(np.arange(5), -1, keepdims=False).tolist()
    4
    """
    shape = shape_of(operand)
    at = shaping.canonical_axis("index_in_dim", axis, len(shape))
    number, size = shaping.as_int("index_in_dim", "index", index), shape[at]
    if not -size <= number < size:
        raise refused("index_in_dim", f"index {number} is out of bounds for axis {at} of size {size}", got=number,
                      wanted=f"an index from {-size} to {size - 1}", todo="check the index", kind=CorejaxIndexError)
    number += size * (number < 0)
    out = slice_in_dim(operand, number, number + 1, axis=at)
    return out if shaping.as_flag("index_in_dim", "keepdims", keepdims) else squeeze(out, (at,))


def _along(shape: Shape, at: int, index: Any) -> list[Any]:
    starts: list[Any] = [0] * len(shape)
    starts[at] = index
    return starts


@public
def dynamic_slice_in_dim(operand: ArrayLike, start_index: ArrayLike, slice_size: int, axis: int = 0, *,
                         allow_negative_indices: bool = True) -> Array:
    """`slice_size` elements along one axis, from a computed start.

    >>> dynamic_slice_in_dim(np.arange(5), np.int32(2), 2).tolist()
    [2, 3]
    """
    shape = shape_of(operand)
    at = shaping.canonical_axis("dynamic_slice_in_dim", axis, len(shape))
    sizes = list(shape)
    sizes[at] = shaping.as_int("dynamic_slice_in_dim", "slice_size", slice_size)
    return dynamic_slice(operand, _along(shape, at, start_index), tuple(sizes),  # type: ignore[no-any-return]
                         allow_negative_indices=allow_negative_indices)


@public
def dynamic_index_in_dim(operand: ArrayLike, index: ArrayLike, axis: int = 0, keepdims: bool = True, *,
                         allow_negative_indices: bool = True) -> Array:
    """The slice at a computed index along one axis, with or without that axis.

    >>> dynamic_index_in_dim(np.arange(5), np.int32(2), keepdims=False).tolist()
    2
    """
    out = dynamic_slice_in_dim(operand, index, 1, axis, allow_negative_indices=allow_negative_indices)
    return out if shaping.as_flag("dynamic_index_in_dim", "keepdims", keepdims) else squeeze(out, (axis,))


@public
def dynamic_update_slice_in_dim(operand: ArrayLike, update: ArrayLike, start_index: ArrayLike, axis: int, *,
                                allow_negative_indices: bool = True) -> Array:
    """The operand with a part along one axis replaced, from a computed start.

    >>> dynamic_update_slice_in_dim(np.arange(4), np.array([8, 9]), np.int32(1), 0).tolist()
    [0, 8, 9, 3]
    """
    shape = shape_of(operand)
    at = shaping.canonical_axis("dynamic_update_slice_in_dim", axis, len(shape))
    return dynamic_update_slice(operand, update, _along(shape, at, start_index),  # type: ignore[no-any-return]
                                allow_negative_indices=allow_negative_indices)


@public
def dynamic_update_index_in_dim(operand: ArrayLike, update: ArrayLike, index: ArrayLike, axis: int, *,
                                allow_negative_indices: bool = True) -> Array:
    """The operand with the slice at a computed index along one axis replaced.

    >>> dynamic_update_index_in_dim(np.arange(3), np.int64(9), np.int32(1), 0).tolist()
    [0, 9, 2]
    """
    shape = shape_of(operand)
    at = shaping.canonical_axis("dynamic_update_index_in_dim", axis, len(shape))
    _, update = families.match_scalars((operand, update))
    if len(shape_of(update)) != len(shape):
        update = expand_dims(update, (at,))
    return dynamic_update_slice_in_dim(operand, update, index, at, allow_negative_indices=allow_negative_indices)
