"""Complex functions at their special points, where libraries differ: signs of zeros, sides of cuts, infinities.

Elsewhere NumPy and a compiled program agree up to rounding. At these points the compiled program decides, so that a
function has the same conventions however it runs. There are usually few of them, and they are evaluated together.
"""

from __future__ import annotations

from cmath import isfinite
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from corejax.arrays.array import Array
from corejax.arrays.storage import to_numpy
from corejax.base.avals import ShapedArray
from corejax.base.late import late
from corejax.kernel.primitive import Primitive

if TYPE_CHECKING:
    from corejax.eager import dispatch
else:
    dispatch = late("corejax.eager.dispatch", keep=True)

_FEWEST = 8  # evaluated at a time, at least: batches are powers of two, so that few programs are needed


def at_special_points(out: Any, *args: Any) -> Any:
    """Where an operand is on an axis of the complex plane or not finite, or the result isn't finite."""
    products = [x.real * x.imag for x in args]  # may vanish or overflow elsewhere too, which only costs time
    if _all_finite(out, *products) and all([np.logical_and.reduce(product, None) for product in products]):
        return None
    mask = ~np.isfinite(out)
    for product in products:
        mask = mask | ~np.isfinite(product) | (product == 0)
    return mask


def where_infinite(out: Any, *args: Any) -> Any:
    """Where an operand or the result isn't finite."""
    if _all_finite(out, *args):
        return None
    mask = ~np.isfinite(out)
    for x in args:
        mask = mask | ~np.isfinite(x)
    return mask


def _all_finite(*arrays: Any) -> bool:
    """Whether all elements are finite. May be False for large finite numbers, if their sum isn't finite."""
    return all([isfinite(np.add.reduce(x, None)) for x in arrays])


def settle(primitive: Primitive, out: Any, args: Sequence[Any], compiled_at: Callable[..., Any],
           params: Mapping[str, Any] = MappingProxyType({})) -> Any:
    """The result, with elements from the compiled program at the places given by `compiled_at(out, *args)`, if any."""
    mask = compiled_at(out, *args)
    if mask is None:
        return out
    places = np.flatnonzero(mask)
    if not places.size:
        return out
    size = max(_FEWEST, 1 << (places.size - 1).bit_length())
    picked = []
    for x in args:
        some = np.ones(size, x.dtype)
        some[: places.size] = np.broadcast_to(x, out.shape).reshape(-1)[places]
        picked.append(Array.from_host(some, ShapedArray((size,), x.dtype)))
    settled = np.array(out)
    settled.reshape(-1)[places] = to_numpy(dispatch.apply_primitive(primitive, picked, params))[: places.size]
    return settled
