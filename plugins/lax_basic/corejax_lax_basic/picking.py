"""A short way to gather."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from corejax import lax
from corejax.core import Array, ArrayLike, aval_of
from corejax.plugin import public, refused, shaping
from corejax_lax_basic._axes import as_list, dtype_kind, shape_of
from corejax_lax_basic._index_plan import from_end
from corejax_lax_basic.gathering import GatherDimensionNumbers, gather
from corejax_lax_basic.stacking import stack

__all__ = ["index_take"]


@public
def index_take(src: ArrayLike, idxs: Sequence[ArrayLike], axes: Sequence[int]) -> Array:
    """The parts of `src` at vectors of indices along some axes, stacked along a first axis. Negative indices wrap.

    >>> index_take(np.arange(6).reshape(2, 3), [np.array([0, -1])], (1,)).tolist()
    [[0, 3], [2, 5]]
    """
    shape = shape_of(src)
    dims, vectors = shaping.canonical_axes("index_take", axes, len(shape)), as_list("index_take", "idxs", idxs)
    avals = [aval_of(x) for x in vectors]
    if len(vectors) != len(dims) or not vectors or any(
            [aval.ndim != 1 or aval.shape != avals[0].shape or dtype_kind(aval.dtype) not in "iu" for aval in avals]):
        raise refused("index_take", "the indices don't fit the axes", got=", ".join(map(str, avals)) or "none",
                      wanted=f"for each axis, of which there are {len(dims)}, a vector of integers; all of one size",
                      todo="reshape the indices to vectors")
    places = [lax.convert_element_type(from_end(x, shape[dim], True), np.int64)
              for x, dim in zip(vectors, dims, strict=True)]
    numbers = GatherDimensionNumbers(tuple(range(1, len(shape) - len(dims) + 1)), dims, dims)
    sizes = [1 if dim in dims else size for dim, size in enumerate(shape)]
    return gather(src, stack(places, 1), numbers, sizes)  # type: ignore[no-any-return]

