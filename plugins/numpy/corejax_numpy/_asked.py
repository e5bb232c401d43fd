"""Arguments that many functions share: dtypes, shapes, devices, and the order of elements in memory."""

from __future__ import annotations

from typing import Any

import numpy as np

from corejax.core import Array, Sharding, Tracer, aval_of, dtypes
from corejax.dtypes import result_type
from corejax.errors import CorejaxTypeError, CorejaxValueError
from corejax.plugin import refused, roles, shaping

__all__ = ["checked_order", "dtype_of", "placed", "shape", "static"]


def dtype_of(x: Any, allow_types: bool = True) -> np.dtype:
    """The dtype of a value or, unless that isn't allowed, the one that a type or a name stands for."""
    if allow_types and isinstance(x, (type, str, np.dtype)):
        return dtypes.canonical(x)
    if isinstance(x, (list, tuple)):
        from corejax_numpy._arrays import array

        return aval_of(array(x)).dtype
    return result_type(x)


def shape(name: str, value: Any) -> tuple[int, ...]:
    """A shape given as an integer or a sequence of integers, none negative."""
    sizes = shaping.as_ints(name, "a size", value.tolist() if isinstance(value, np.ndarray) else value)
    if any([size < 0 for size in sizes]):
        raise refused(name, "a size can't be negative", got=sizes, wanted="sizes of 0 or more", kind=CorejaxValueError,
                      todo="check how the shape is computed")
    return sizes


def static(name: str, what: str, value: Any) -> Any:
    """A number that the shape of a result depends on, as a Python or NumPy number."""
    if not isinstance(value, Array):
        return value
    if isinstance(value, Tracer) and dtypes.is_integer(value.dtype):
        try:
            return value.dtype.type(value.__index__())
        except TypeError as error:
            raise _not_static(name, what, value) from error
    try:
        return value.dtype.type(value.item())
    except (TypeError, ValueError) as error:
        raise _not_static(name, what, value) from error


def _not_static(name: str, what: str, value: Any) -> CorejaxTypeError:
    return refused(name, f"{what} must be a number that is known when the program is traced, since the shape of the "  # type: ignore[return-value]
                   "result depends on it", got=str(aval_of(value)), wanted="a static number without axes",
                   todo="pass a Python number: close over it, or mark it static")


def checked_order(name: str, order: Any, also: str = "") -> str:
    """The order of elements, "C" unless it is one of `also`; "A" and "K" mean what arrays have, which is "C"."""
    if order is None or order in ("C", "K", "A"):
        return "C"
    if isinstance(order, str) and order in also:
        return order
    raise refused(name, "arrays hold their elements in row-major order", got=f"order={order!r}", kind=CorejaxValueError,
                  wanted="order='C', 'A' or 'K'", todo="transpose the array if its axes should be in another order")


def placed(name: str, x: Any, device: Any, out_sharding: Any = None) -> Any:
    """The array on a device, or divided by a sharding; within a program, a sharding divides the value there."""
    if device is not None and out_sharding is not None:
        raise refused(name, "device and out_sharding both say where the result is", got=f"{device}, {out_sharding}",
                      wanted="one of them", todo="leave out one of them")
    place = out_sharding if device is None else device
    if place is None:
        return x
    if isinstance(x, Tracer):
        return roles.constrain(x, place) if isinstance(place, Sharding) else x
    return x.to_device(place)
