"""Reading elements from the places that a sort found, along one axis."""

from __future__ import annotations

from typing import Any

import numpy as np

from corejax import lax
from corejax.core import aval_of


def place_dtype(size: int) -> np.dtype:
    """The narrowest of int32 and int64 that holds every place along an axis of this size."""
    return np.dtype(np.int32 if size <= np.iinfo(np.int32).max else np.int64)


def taken(x: Any, places: Any, dimension: int, *, unique: bool = False) -> Any:
    """The elements at places along an axis; along the other axes, each place is for the elements beside it.

    The other axes are batch axes of one gather, so that no index but the place is ever made.
    """
    ndim = aval_of(x).ndim
    if not aval_of(x).size:
        return lax.slice_in_dim(x, 0, aval_of(places).shape[dimension], axis=dimension)
    beside = tuple([d for d in range(ndim) if d != dimension])
    numbers = lax.GatherDimensionNumbers(offset_dims=(), collapsed_slice_dims=(dimension,),
                                         start_index_map=(dimension,), operand_batching_dims=beside,
                                         start_indices_batching_dims=beside)
    return lax.gather(x, lax.expand_dims(places, (ndim,)), numbers, (1,) * ndim, unique_indices=unique,
                      mode="promise_in_bounds")
