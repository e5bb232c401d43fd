"""Array methods: `x.sort(axis=0)` calls `sort(x, axis=0)` of this module, and so does `numpy.sort(x, axis=0)`.

Signatures are NumPy's, except that `sort` returns the sorted array: arrays never change. Every kind of sort is stable.
"""

# mypy: no-warn-return-any
# A primitive may have several results, so what `define` returns gives Any; those of array methods are arrays.

from __future__ import annotations

from corejax import lax
from corejax.core import Array, aval_of, dtypes
from corejax.plugin import refused, shaping
from corejax_sorting import ordering

__all__ = ["argsort", "sort"]

_KINDS = ("quicksort", "heapsort", "mergesort", "stable")


def sort(x: Array, axis: int | None = -1, kind: str | None = None, order: None = None, *,
         stable: bool | None = None) -> Array:
    """The elements in rising order along an axis, or of the flattened array if it is None; NaN comes last."""
    x, at = _along("sort", x, axis, kind, order)
    return ordering.sort(x, at)


def argsort(x: Array, axis: int | None = -1, kind: str | None = None, order: None = None, *,
            stable: bool | None = None) -> Array:
    """The places to take the elements from to have them in rising order; those of equal elements rise, too."""
    x, at = _along("argsort", x, axis, kind, order)
    aval = aval_of(x)
    places = lax.broadcasted_iota(dtypes.default_dtype("i"), aval.shape, at)
    return ordering.sort((x, places), at)[1]


def _along(method: str, x: Array, axis: int | None, kind: str | None, order: None) -> tuple[Array, int]:
    if not (kind is None or isinstance(kind, str) and kind in _KINDS) or order is not None:
        raise refused(method, "there is no such way to sort", got=f"kind={kind!r}, order={order!r}",
                      wanted="kind='stable' or None; order=None", todo="leave them out: every sort is stable")
    if axis is None or not aval_of(x).ndim and axis in (-1, 0):
        return lax.reshape(x, (aval_of(x).size,)), 0
    return x, shaping.canonical_axis(method, axis, aval_of(x).ndim)
