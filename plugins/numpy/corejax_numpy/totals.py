"""Sums, products, extremes, means and the like, along axes; running ones, too."""

# mypy: no-warn-return-any
# What roles return has no type that a checker knows.

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from corejax.core import Array, ArrayLike, DTypeLike
from corejax.plugin import directly, operators
from corejax_numpy._arrays import array

__all__ = ["sum"]


@directly(np.sum)
def sum(a: ArrayLike, axis: int | Sequence[int] | None = None, dtype: DTypeLike | None = None, out: None = None,
        keepdims: bool = False, initial: ArrayLike | None = None, where: ArrayLike | None = None) -> Array:
    """The sum along axes, plus `initial`.

    >>> jnp.sum(jnp.array([[1.0, 2.0], [3.0, 4.0]]), axis=0)
    Array([4., 6.], dtype=float64)
    """
    return operators.sum(array(a), axis, dtype, out, keepdims, initial, where)
