"""The sum along axes, which is linear."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import numpy as np

from corejax import lax
from corejax.core import dtypes
from corejax.plugin import Sample, hookimpl
from corejax_reductions._reduction import Axes, Reduction, defined

__all__ = ["reduce_sum"]


class ReduceSum(Reduction):
    """`reduce_sum(operand, axes)`: the sum along axes, in the operand's dtype; 0 if there are no elements.

    Floats narrower than 32 bits accumulate in float32.

    >>> lax.reduce_sum(np.array([[1.0, 2.0], [3.0, 4.0]]), (0,)).tolist()
    [4.0, 6.0]
    """

    name = "reduce_sum"
    linear = (0,)

    _ufunc = np.add
    _operation = "add"
    _wide = True
    _todo = "convert booleans to integers to count them"

    def _identity(self, dtype: np.dtype) -> Any:
        return 0

    @hookimpl
    def transpose(self, cotangents: Any, args: Any, *, axes: Axes) -> Any:
        shape = args[0].aval.shape
        return [spread(cotangents, shape, axes)]

    @hookimpl
    def samples(self, rng: Any) -> Iterator[Sample]:
        yield from super().samples(rng)
        yield Sample([np.ones(300, dtypes.bfloat16)], {"axes": (0,)}, results=300.0)  # where bfloat16 counts up to 256
        yield Sample([np.ones(2, np.bool_)], {"axes": (0,)}, error=TypeError)


def spread(x: Any, shape: Axes, axes: Axes) -> Any:
    """A reduction's result, repeated along the axes that were reduced."""
    return lax.broadcast_in_dim(x, shape, _other_axes(len(shape), axes))


@lru_cache(maxsize=1024)
def _other_axes(ndim: int, axes: Axes) -> Axes:
    return tuple([d for d in range(ndim) if d not in axes])


reduce_sum = defined(ReduceSum())
