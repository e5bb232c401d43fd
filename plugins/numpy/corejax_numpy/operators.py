"""Array methods of NumPy's functions: `x.take(i)` calls `take(x, i)` of this module.

Methods that are functions of `corejax.numpy`, too, call these when they are used.
"""

# mypy: no-warn-return-any

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

from corejax import lax
from corejax.core import Array, ArrayLike, DTypeLike, aval_of, dtypes
from corejax.errors import CorejaxTypeError, CorejaxValueError
from corejax.plugin import refused

__all__ = ["argpartition", "byteswap", "choose", "compress", "copy_to_host_async", "diagonal", "fill", "flat",
           "nonzero",
           "partition", "ptp", "put", "repeat", "searchsorted", "take", "tobytes", "trace", "view"]

F = TypeVar("F", bound=Callable[..., Any])


def _property(function: F) -> F:
    function.is_property = True  # type: ignore[attr-defined]
    return function


# Methods that are functions

def argpartition(x: Array, kth: int, axis: int = -1) -> Array:
    """The places to take elements from so that the kth smallest is in its place, between smaller and larger ones."""
    from corejax_numpy import argpartition as function

    return function(x, kth, axis)


def partition(x: Array, kth: int, axis: int = -1) -> Array:
    """The elements with the kth smallest in its place, between smaller and larger ones: another array."""
    from corejax_numpy import partition as function

    return function(x, kth, axis)


def choose(x: Array, choices: Any, out: None = None, mode: str = "raise") -> Array:
    """From the arrays of a sequence, the elements of those that the integers of `x` say."""
    from corejax_numpy import choose as function

    return function(x, choices, out, mode)


def compress(x: Array, condition: Any, axis: int | None = None, out: None = None, *, size: int | None = None,
             fill_value: ArrayLike = 0) -> Array:
    """The parts along an axis for which a condition holds."""
    from corejax_numpy import compress as function

    return function(condition, x, axis, out=out, size=size, fill_value=fill_value)


def diagonal(x: Array, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Array:
    """The diagonals of the matrices along two axes."""
    from corejax_numpy import diagonal as function

    return function(x, offset, axis1, axis2)


def nonzero(x: Array, *, size: int | None = None, fill_value: Any = None) -> tuple[Array, ...]:
    """The indices along each axis of the elements that aren't zero."""
    from corejax_numpy import nonzero as function

    return function(x, size=size, fill_value=fill_value)


def ptp(x: Array, axis: int | Sequence[int] | None = None, out: None = None, keepdims: bool = False) -> Array:
    """The largest element less the smallest along axes."""
    from corejax_numpy import ptp as function

    return function(x, axis, out, keepdims)


def repeat(x: Array, repeats: Any, axis: int | None = None, *, total_repeat_length: int | None = None,
           out_sharding: Any = None) -> Array:
    """Each element repeated: so many times, or each by a count of its own."""
    from corejax_numpy import repeat as function

    if total_repeat_length is out_sharding is None:
        return function(x, repeats, axis)
    return function(x, repeats, axis, total_repeat_length=total_repeat_length, out_sharding=out_sharding)


def searchsorted(x: Array, v: Any, side: str = "left", sorter: Any = None, *, method: str = "scan") -> Array:
    """Where to insert values into the rising elements of a vector to keep them so."""
    from corejax_numpy import searchsorted as function

    if method == "scan":
        return function(x, v, side, sorter)  # which NumPy may compute at once
    return function(x, v, side, sorter, method=method)


def take(x: Array, indices: Any, axis: int | None = None, out: None = None, mode: str | None = None,
         unique_indices: bool = False, indices_are_sorted: bool = False, fill_value: Any = None) -> Array:
    """The parts at indices along an axis, or the elements at places in row-major order."""
    from corejax_numpy import take as function

    if out is mode is fill_value is None and not unique_indices and not indices_are_sorted:
        return function(x, indices, axis)  # which NumPy may compute at once
    return function(x, indices, axis, out, mode, unique_indices, indices_are_sorted, fill_value)


def trace(x: Array, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: DTypeLike | None = None, out: None = None
          ) -> Array:
    """The sums of the diagonals of the matrices along two axes."""
    from corejax_numpy import trace as function

    return function(x, offset, axis1, axis2, dtype, out)


# What would change an array

def _immutable(name: str, instead: str) -> CorejaxTypeError:
    return refused(name, "arrays are immutable", got=f"x.{name}(...)", wanted=instead,  # type: ignore[return-value]
                   todo=f"write x = {instead}: it returns the changed array")


def fill(x: Array, value: ArrayLike) -> Array:
    """Refused, since arrays are immutable: `jnp.full_like(x, value)` is another array."""
    raise _immutable("fill", "jnp.full_like(x, value)")


def put(x: Array, indices: Any, values: Any, mode: str = "raise") -> Array:
    """Refused, since arrays are immutable: `jnp.put(x, indices, values, inplace=False)` is another array."""
    raise _immutable("put", "jnp.put(x, indices, values, inplace=False)")


# Elements in other forms

@_property
def flat(x: Array) -> Array:
    """All elements along one axis."""
    return lax.reshape(x, (aval_of(x).size,))


def tobytes(x: Array, order: str | None = "C") -> bytes:
    """The bytes of the elements, in row-major order or, with `order="F"`, in column-major order."""
    if order not in ("C", "F", "A", "K", None):
        raise refused("tobytes", "there is no such order", got=f"order={order!r}", wanted="'C' or 'F'",
                      todo="leave it out: it is 'C'", kind=CorejaxValueError)
    return np.asarray(x).tobytes("F" if order == "F" else "C")


def copy_to_host_async(x: Array) -> None:
    """Nothing: an array is copied when it is read."""


def view(x: Array, dtype: DTypeLike | None = None, type: None = None) -> Array:
    """The same bits taken as elements of another dtype; if that is wider or narrower, the last axis changes."""
    if type is not None:
        raise refused("view", "there is one class of arrays", got=f"type={type!r}"[:80], wanted="type=None",
                      todo="leave it out")
    aval = aval_of(x)
    wanted = aval.dtype if dtype is None else dtypes.canonical(dtype)
    if wanted == aval.dtype:
        return x
    have, want = dtypes.bits_of(aval.dtype), dtypes.bits_of(wanted)
    if not aval.ndim and have != want:
        raise refused("view", "the size of a single element can't change", got=f"{aval} as {wanted.name}",
                      wanted=f"a dtype of {have} bits", todo="give it an axis first: x[None]", kind=CorejaxValueError)
    lead, last = aval.shape[:-1], aval.shape[-1] if aval.ndim else 1
    if last * have % want:
        raise refused("view", "the last axis doesn't hold a whole number of elements", got=f"{aval} as {wanted.name}",
                      wanted=f"a multiple of {want} bits, not {last * have}", todo="pad or slice it",
                      kind=CorejaxValueError)
    parts = _bits(_parts(x), lead, _part_dtype(wanted))
    whole = _whole(parts, (*lead, last * have // want), wanted)
    return whole if aval.ndim else lax.reshape(whole, ())


def byteswap(x: Array, inplace: bool = False) -> Array:
    """The elements with their bytes, or those of their real and imaginary parts, in reverse order."""
    if inplace:
        raise _immutable("byteswap", "x.byteswap()")
    aval, parts = aval_of(x), _parts(x)
    dtype = aval_of(parts).dtype
    if dtype.itemsize == 1:
        return x
    one_byte = lax.bitcast_convert_type(parts, dtypes.canonical("uint8"))
    swapped = lax.bitcast_convert_type(lax.rev(one_byte, (aval_of(one_byte).ndim - 1,)), dtype)
    return lax.reshape(_whole(swapped, aval.shape or (1,), aval.dtype), aval.shape)


def _part_dtype(dtype: np.dtype) -> np.dtype:
    """The dtype of what elements consist of: real and imaginary parts; booleans are bytes."""
    if dtypes.is_complex(dtype):
        return dtypes.canonical(f"float{4 * dtype.itemsize}")
    return dtypes.canonical("uint8") if dtype == dtypes.bool_ else dtype


def _parts(x: Array) -> Any:
    """The parts of all elements along a new last axis."""
    aval = aval_of(x)
    if dtypes.is_complex(aval.dtype):
        return lax.stack([lax.real(x), lax.imag(x)], -1)
    x = lax.convert_element_type(x, _part_dtype(aval.dtype)) if aval.dtype == dtypes.bool_ else x
    return lax.reshape(x, (*aval.shape, 1))


def _bits(parts: Any, lead: tuple[int, ...], dtype: np.dtype) -> Any:
    """The bits of parts as those of another dtype, all of them along the last axis."""
    aval = aval_of(parts)
    have, want = dtypes.bits_of(aval.dtype), dtypes.bits_of(dtype)
    count = aval.shape[-1] * (aval.shape[-2] if aval.ndim > len(lead) + 1 else 1)
    groups = (count * have // want, want // have) if want > have else (count,)
    found = lax.bitcast_convert_type(lax.reshape(parts, (*lead, *groups)), dtype)
    return lax.reshape(found, (*lead, count * have // want))


def _whole(parts: Any, shape: tuple[int, ...], dtype: np.dtype) -> Any:
    """The elements of these parts."""
    if dtypes.is_complex(dtype):
        pairs = lax.reshape(parts, (*shape, 2))
        real, imag = [lax.index_in_dim(pairs, i, -1, keepdims=False) for i in (0, 1)]
        return lax.complex(real, imag)
    parts = lax.reshape(parts, shape)
    return lax.ne(parts, np.uint8(0)) if dtype == dtypes.bool_ else parts
