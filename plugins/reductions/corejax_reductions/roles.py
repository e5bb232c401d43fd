"""What the kernel and other packs need from reductions. Each name here is that of a role."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from corejax_reductions.cumulative import cumsum
from corejax_reductions.sums import reduce_sum

__all__ = ["running_sum", "sum_axes"]


def sum_axes(x: Any, axes: Sequence[int]) -> Any:
    """The sum of `x` along axes, in its own dtype. This is the transpose of a broadcast."""
    return reduce_sum.primitive.bind(x, axes=tuple(axes)) if axes else x


def running_sum(x: Any, axis: int) -> Any:
    """The sums of the elements up to each one along an axis, in the dtype of `x`."""
    return cumsum.primitive.bind(x, axis=axis, reverse=False)
