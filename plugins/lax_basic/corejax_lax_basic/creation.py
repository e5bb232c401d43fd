"""Arrays made from just a type."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from math import copysign
from typing import Any

import numpy as np

from corejax import lax
from corejax.core import Array, ArrayLike, DTypeLike, ShapedArray, aval_of, dtypes
from corejax.plugin import Sample, define, hookimpl, not_differentiable, not_linear, public, refused, shaping
from corejax_lax_basic._axes import Shape, canonical_dtype, check_shape, dtype_kind, shape_of
from corejax_lax_basic._lowering import i64
from corejax_lax_basic.shapes import broadcast_in_dim

__all__ = ["broadcasted_iota", "empty", "full", "full_like", "iota"]

_NO_OPERANDS = "it has no operands, so nothing flows through it"


class Iota:
    """`iota(dtype, size)`: 0, 1, 2, ... as an array with one axis; see `broadcasted_iota` for more axes.

    >>> lax.iota(np.int32, 3).tolist()
    [0, 1, 2]
    """

    name = "iota"
    jvp = not_differentiable(_NO_OPERANDS)
    transpose = not_linear(_NO_OPERANDS)

    def function(self, bind: Callable[..., Array]) -> Any:
        def iota(dtype: DTypeLike, size: int) -> Array:
            return bind(dtype=canonical_dtype(dtype), shape=(shaping.as_int("iota", "size", size),), dimension=0)
        return iota

    @hookimpl
    def impl(self, args: Any, *, dtype: np.dtype, shape: Shape, dimension: int) -> Any:
        count = np.arange(shape[dimension]).astype(dtype, copy=False)
        if len(shape) == 1:
            return count
        out = np.empty(shape, dtype)
        out[...] = count.reshape([-1 if d == dimension else 1 for d in range(len(shape))])
        return out

    @hookimpl
    def abstract_eval(self, avals: Any, *, dtype: np.dtype, shape: Shape, dimension: int) -> ShapedArray:
        if avals:
            raise refused(self.name, "it takes no operands", got=f"{len(avals)} operands", wanted="params only",
                          todo="give dtype, shape and dimension by keyword")
        check_shape(self.name, "shape", shape)
        if dtype_kind(dtype) not in "iufc":
            name = dtypes.long_name(dtype)
            raise refused(self.name, f"it can't count in {name}", got=name,
                          wanted="an integer, floating-point or complex dtype", todo="compare an integer iota instead")
        if not 0 <= dimension < len(shape):
            raise refused(self.name, f"dimension must be an axis of shape {shape}", got=dimension,
                          wanted=f"an axis from 0 to {len(shape) - 1}", todo="give the shape at least that many axes")
        return ShapedArray(shape, dtype)

    @hookimpl
    def vmap(self, axis: Any, args: Any, dims: Any, *, dtype: np.dtype, shape: Shape, dimension: int) -> Any:
        return broadcasted_iota(dtype, shape, dimension), None

    @hookimpl
    def xla_translation(self, ctx: Any, args: Any, *, dimension: int) -> Any:
        return ctx.op("stablehlo.iota", args, {"iota_dimension": i64(ctx, dimension)})

    @hookimpl
    def samples(self, rng: Any) -> Iterator[Sample]:
        for dtype, shape, dimension in [(np.int32, (3,), 0), (np.float64, (2, 3), 1), (np.complex64, (2, 3), 0),
                                        (np.uint8, (0,), 0), (np.int8, (200,), 0)]:
            yield Sample([], {"dtype": np.dtype(dtype), "shape": shape, "dimension": dimension})
        yield Sample([], {"dtype": np.dtype(bool), "shape": (3,), "dimension": 0}, error=TypeError)


iota: Any = define(Iota())


@public
def broadcasted_iota(dtype: DTypeLike, shape: Sequence[int], dimension: int) -> Array:
    """An array of this shape, with each element's index along `dimension`.

    >>> broadcasted_iota(np.int32, (2, 3), 1).tolist()
    [[0, 1, 2], [0, 1, 2]]
    """
    shape = shaping.as_ints("broadcasted_iota", "shape", shape)
    return iota.primitive.bind(dtype=canonical_dtype(dtype), shape=shape,  # type: ignore[no-any-return]
                               dimension=shaping.canonical_axis("broadcasted_iota", dimension, len(shape)))


@public
def full(shape: Sequence[int], fill_value: ArrayLike, dtype: DTypeLike | None = None) -> Array:
    """An array filled with the scalar `fill_value`; by default, of the fill value's type.

    >>> full((2,), 7, np.float32).dtype.name
    'float32'
    """
    sizes = shaping.as_ints("full", "shape", shape)
    if shape_of(fill_value) != ():
        raise refused("full", "the fill value must be a scalar", got=str(aval_of(fill_value)), wanted="a scalar",
                      todo="use lax.broadcast_in_dim to spread an array")
    if dtype is not None:
        fill_value = as_dtype(fill_value, canonical_dtype(dtype))
    elif type(fill_value) is bool:
        fill_value = np.bool_(fill_value)  # booleans are never weak
    if type(fill_value) is Array and fill_value.aval.dtype is dtypes.float0:  # which has one value, and no operations
        return Array.from_host(np.zeros(sizes, dtypes.float0), ShapedArray(sizes, dtypes.float0))
    return broadcast_in_dim.primitive.bind(fill_value, shape=sizes, broadcast_dimensions=())  # type: ignore[no-any-return]


def as_dtype(value: Any, dtype: np.dtype) -> Any:
    """The scalar in a (strong) dtype; a Python number that an integer dtype can't hold is an error."""
    kind: Any = type(value)
    if kind is int or kind is bool or (kind is float and dtypes.is_inexact(dtype)):
        if dtypes.kind(dtype) == "E":
            return lax.convert_element_type(value, dtype)  # which refuses them
        # A new array each time, since whoever gets it may donate it to a program, which deletes it.
        return Array.from_host(*_constant(kind, value, copysign(1.0, value) if kind is float else 0.0, dtype))
    aval = aval_of(value)
    return lax.convert_element_type(value, dtype) if aval.dtype != dtype or aval.weak_type else value


@lru_cache(maxsize=1024)
def _constant(kind: Any, value: Any, sign: float, dtype: np.dtype) -> tuple[Any, ShapedArray]:
    # kind and sign are part of the key: True is not 1, and -0.0 is not 0.0
    return dtypes.number(value, dtype), ShapedArray((), dtype)


def zero(dtype: np.dtype) -> Array:
    """Zero in a (strong) dtype; of a pack's own elements, the one that is stored as zeros."""
    return Array.from_host(*_zero(dtype))


@lru_cache(maxsize=64)
def _zero(dtype: np.dtype) -> tuple[Any, ShapedArray]:
    return np.zeros((), dtype), ShapedArray((), dtype)


@public
def full_like(x: Any, fill_value: ArrayLike, dtype: DTypeLike | None = None,
              shape: Sequence[int] | None = None) -> Array:
    """An array filled with `fill_value`, with the dtype and shape of `x` unless they are given.

    >>> full_like(np.zeros(2, np.float32), 7)
    Array([7., 7.], dtype=float32)
    """
    if shape is None:
        shape = x.shape if hasattr(x, "shape") else shape_of(x)
    if dtype is None:
        dtype = x.dtype if hasattr(x, "dtype") else aval_of(x).dtype
        if getattr(x, "weak_type", False) and isinstance(fill_value, (bool, int, float, complex)):
            kinds = {"b": bool, "i": int, "u": int, "f": float, "c": complex}
            filled = full(shape, kinds[dtype_kind(dtype)](fill_value))
            if aval_of(filled).dtype != dtype:  # a weak type that isn't that of Python's numbers
                filled = lax.convert_element_type.primitive.bind(filled, new_dtype=dtype, weak_type=True)
            return filled
    return full(shape, fill_value, dtype)


@public
def empty(shape: Sequence[int], dtype: DTypeLike) -> Array:
    """An array for values that don't matter, which are zeros.

    >>> empty((2, 3), np.float32).shape
    (2, 3)
    """
    return full(shape, 0, dtype)
