"""What dimension numbers mean: which windows of an array a gather reads and a scatter writes, and where they are."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Any, NamedTuple

import numpy as np

from corejax import lax
from corejax.core import ShapedArray, aval_of, dtypes
from corejax.errors import CorejaxValueError
from corejax.plugin import public, refused, shaping
from corejax_lax_basic._axes import Shape, dtype_kind
from corejax_lax_basic.shapes import broadcast_in_dim

Numbers = tuple[Shape, Shape, Shape, Shape, Shape]


class GatherDimensionNumbers(NamedTuple):
    """How axes of operand, indices and result correspond.

    `offset_dims`: the result's axes within a window. `collapsed_slice_dims`: operand axes of window size 1 that the
    result doesn't have. `start_index_map[k]`: the operand axis of coordinate k. The batching axes pair an operand axis
    with an axis of the indices.

    >>> GatherDimensionNumbers((), collapsed_slice_dims=(0,), start_index_map=(0,)).offset_dims
    ()
    """

    offset_dims: Shape
    collapsed_slice_dims: Shape
    start_index_map: Shape
    operand_batching_dims: Shape = ()
    start_indices_batching_dims: Shape = ()


class ScatterDimensionNumbers(NamedTuple):
    """The same for writing: `update_window_dims` are the axes of the updates within a window.

    >>> ScatterDimensionNumbers((), inserted_window_dims=(0,), scatter_dims_to_operand_dims=(0,)).update_window_dims
    ()
    """

    update_window_dims: Shape
    inserted_window_dims: Shape
    scatter_dims_to_operand_dims: Shape
    operand_batching_dims: Shape = ()
    scatter_indices_batching_dims: Shape = ()


class GatherScatterMode(StrEnum):
    """What happens to windows out of bounds, as a name or as a string.

    `CLIP` moves them inside. `FILL_OR_DROP` reads a constant, and writes nothing. `PROMISE_IN_BOUNDS` says that there
    are none.

    >>> GatherScatterMode.from_any("drop") is GatherScatterMode.FILL_OR_DROP
    True
    """

    CLIP = "clip"
    FILL_OR_DROP = "fill"
    PROMISE_IN_BOUNDS = "promise_in_bounds"

    @staticmethod
    @public
    def from_any(mode: str | None) -> GatherScatterMode:
        """The mode of a name; FILL_OR_DROP for None."""
        return GatherScatterMode(canonical_mode("GatherScatterMode", mode))


_MODES = {None: "fill", "fill": "fill", "drop": "fill", "clip": "clip", "promise_in_bounds": "promise_in_bounds"}


def canonical_mode(primitive: str, mode: Any) -> str:
    """What happens to indices out of bounds: "fill", "clip" or "promise_in_bounds"."""
    found = _MODES.get(mode) if mode is None or isinstance(mode, str) else None
    if found is None:
        raise refused(primitive, "unknown mode for indices out of bounds", got=repr(mode),
                      wanted=", ".join(map(repr, _MODES)), todo="leave it out, or clip the indices yourself",
                      kind=CorejaxValueError)
    return found


def canonical_numbers(numbers: Any) -> Numbers:
    """Dimension numbers as plain tuples."""
    if not isinstance(numbers, (tuple, list)) or len(numbers) != 5:
        raise refused("gather or scatter", "dimension_numbers has the wrong form", got=f"{numbers!r:.80}",
                      wanted="lax.GatherDimensionNumbers(...) or lax.ScatterDimensionNumbers(...)",
                      todo="say which axes of operand, indices and result belong together; or write x[...], x.at[...]")
    first, second, third, x_batch, index_batch = [
        shaping.as_ints("gather or scatter", "an axis", axes) for axes in numbers]
    return first, second, third, x_batch, index_batch


def wide(indices: Any) -> Any:
    """Indices of at least 32 bits, so that they can be compared with sizes."""
    dtype = aval_of(indices).dtype
    return lax.convert_element_type(indices, np.int32) if dtype.itemsize < 4 and dtype_kind(dtype) in "iu" else indices


def check_numbers(primitive: str, x: ShapedArray, indices: ShapedArray, index_map: Shape, dropped: Shape,
                  x_batch: Shape, index_batch: Shape) -> None:
    """Reject indices and dimension numbers that don't fit an operand."""
    if dtype_kind(indices.dtype) not in "iu" or not indices.ndim or indices.shape[-1] != len(index_map):
        raise refused(primitive, "the indices don't fit the dimension numbers",
                      got=f"{indices} for coordinates {index_map}",
                      wanted=f"integers whose last axis has size {len(index_map)}",
                      todo="the last axis of the indices holds one coordinate for each entry of the map")
    for axes in ((*dropped, *x_batch), (*index_map, *x_batch)):
        if len(set(axes)) != len(axes) or any([not 0 <= d < x.ndim for d in axes]):
            raise refused(primitive, f"the dimension numbers must be distinct axes of {x}", got=axes,
                          wanted=f"distinct axes below {x.ndim}", todo="an axis is indexed, batched or neither")
    if [x.shape[d] for d in x_batch] != [indices.shape[d] for d in index_batch]:
        raise refused(primitive, "batching axes differ in size", got=f"{x_batch} of {x}, {index_batch} of {indices}",
                      wanted="equal sizes pair by pair", todo="pair each batching axis with one of its size")


def check_places(primitive: str, axes: Shape, x: ShapedArray, what: str) -> None:
    """Reject axes that aren't those of an array, each once and in their order."""
    if any([not 0 <= d < x.ndim for d in axes]) or list(axes) != sorted({*axes}):
        raise refused(primitive, f"{what} must be axes of an array of rank {x.ndim}, in order", got=axes,
                      wanted=f"different axes below {x.ndim}, in order", todo="correct the dimension numbers")


def places_of(shape: Shape, indices: Any, index_map: Shape, x_batch: Shape, index_batch: Shape, sizes: Shape, *,
              clamp: bool, check: bool) -> tuple[list[Any], Any]:
    """Positions (windows..., 1, .., size, .., 1) for each operand axis and, if `check`, which windows are inside."""
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


def rows_of(shape: Shape, indices: Any, index_map: Shape, dropped: Shape, sizes: Shape, *, clamp: bool
            ) -> tuple[Shape, tuple[Any, ...]] | None:
    """The windows of `places_of` as NumPy's own indexing, which is much faster: `x.transpose(axes)[where]`.

    That is possible for a single window, or for windows that are whole along each axis that isn't indexed and dropped.
    None for others, and for windows out of bounds that `clamp` doesn't move inside.
    """
    if indices.ndim == 1:
        first = [0] * len(shape)
        for d, start in zip(index_map, indices.tolist(), strict=True):
            first[d] = inside = min(max(start, 0), shape[d] - sizes[d])
            if inside != start and not clamp:
                return None
        return tuple(range(len(shape))), tuple([slice(n, n + size) for n, size in zip(first, sizes, strict=True)])
    rest = tuple([d for d in range(len(shape)) if d not in index_map])
    if not index_map or set(index_map) != set(dropped) or any([sizes[d] != shape[d] for d in rest]):
        return None
    starts: list[Any] = []
    for k, d in enumerate(index_map):
        start, last = indices[..., k], shape[d] - 1
        if sizes[d] != 1:
            return None
        if start.size and not (start.min() >= 0 and start.max() <= last):
            if not clamp:
                return None
            start = np.clip(start, 0, last)
        starts.append(start)
    return (*index_map, *rest), tuple(starts)


def window_sizes(shape: Shape, updates: Shape, numbers: Numbers) -> Shape:
    """The size of a scatter's windows along each operand axis."""
    window_dims, inserted, _, x_batch, _ = numbers
    sizes = iter([updates[d] if d < len(updates) else 0 for d in window_dims])
    return tuple([1 if d in inserted else min(1, n) if d in x_batch else next(sizes, 0) for d, n in enumerate(shape)])


def uppers(indices: Any, upper: Sequence[int], index_map: Shape) -> Any:
    """The last valid start for each coordinate, broadcast to the indices' type."""
    aval = aval_of(indices)
    largest = dtypes.integer_limits(aval.dtype).max  # of a narrow dtype, indices can't be out of bounds beyond it
    last = np.array([min(upper[d], largest) for d in index_map], aval.dtype)
    return broadcast_in_dim(last, aval.shape, (aval.ndim - 1,))


def fill_number(dtype: np.dtype, fill_value: Any) -> Any:
    """The value for windows out of bounds."""
    kind = dtype_kind(dtype)
    if kind == "E":
        dtype = ShapedArray((), dtype).stored.dtype
        kind = dtype_kind(dtype)
    if fill_value is not None or kind in "fc":
        return np.nan if fill_value is None else fill_value
    limits = None if kind == "b" else dtypes.integer_limits(dtype)
    return True if limits is None else limits.min if kind == "i" else limits.max
