"""What the kernel and the packs need reductions to do, under the names of the roles."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from corejax_reductions.sums import reduce_sum

__all__ = ["sum_axes"]


def sum_axes(x: Any, axes: Sequence[int]) -> Any:
    """The sum of `x` along axes, in its own dtype: what transposing a broadcast needs."""
    return reduce_sum.primitive.bind(x, axes=tuple(axes)) if axes else x
