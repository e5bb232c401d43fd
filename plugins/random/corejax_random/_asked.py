"""Arguments that many distributions share: dtypes, shapes, parameters that broadcast, and where results are."""

from __future__ import annotations

from typing import Any

import numpy as np

from corejax import lax
from corejax.core import Array, DTypeLike, ShapedArray, Sharding, Tracer, aval_of, dtypes
from corejax.errors import CorejaxTypeError, CorejaxValueError
from corejax.plugin import refused, roles, shaping
from corejax_lax_basic import broadcast_shapes

__all__ = ["as_dtype", "broadcast", "common_shape", "placed", "real", "shape_over", "sizes", "typed"]

Shape = tuple[int, ...]

#: The dtypes that each word of an error stands for.
_KINDS = {"f": "a floating-point dtype", "fc": "a floating-point or complex dtype", "iu": "an integer dtype",
          "u": "an unsigned integer dtype", "iufc": "a dtype of numbers"}


def as_dtype(name: str, dtype: DTypeLike | None, kinds: str = "f") -> np.dtype:
    """The dtype of a result; None is the default one of the first of these kinds, `config.default_bits` wide."""
    if dtype is None:
        return dtypes.default_dtype(kinds[0])
    found = dtypes.canonical(dtype)
    if dtypes.kind(found) not in kinds:
        raise refused(name, "numbers of this dtype can't be drawn", got=dtypes.short_name(found), wanted=_KINDS[kinds],
                      todo="convert the result with .astype", kind=CorejaxValueError)
    return found


def sizes(name: str, shape: Any) -> Shape:
    """A shape, checked."""
    if type(shape) is tuple and not shape:
        return ()
    found = shaping.as_ints(name, "shape", shape)
    for size in found:
        if size < 0:
            raise refused(name, "a size can't be negative", got=f"shape={found}", wanted="sizes of 0 or more",
                          todo="check how the shape is computed", kind=CorejaxValueError)
    return found


def common_shape(name: str, shape: Any, *params: Any) -> Shape:
    """The shape of a result: given, or that to which parameters broadcast. They must broadcast to a given one."""
    return shape_over(name, shape, *[aval_of(x).shape for x in params])


def shape_over(name: str, shape: Any, *shapes: Shape) -> Shape:
    """The same, by the shapes that must broadcast to it."""
    wanted = None if shape is None else sizes(name, shape)
    try:
        found: Shape = broadcast_shapes(*shapes)
        if wanted is None or broadcast_shapes(wanted, found) == wanted:
            return found if wanted is None else wanted
    except (ValueError, TypeError):
        pass
    raise refused(name, "the parameters don't broadcast to the result's shape" if wanted is not None else
                  "the parameters don't broadcast together", got=", ".join(map(str, shapes)),
                  wanted="one shape" if wanted is None else f"shapes that broadcast to {wanted}",
                  todo="check the parameters' shapes", kind=CorejaxValueError)


def typed(name: str, what: str, x: Any, wanted: str = "a number or an array") -> ShapedArray:
    """The type of an argument that should be an array."""
    try:
        return aval_of(x)
    except CorejaxTypeError as error:
        raise refused(name, f"{what} must be {wanted}", got=f"a {type(x).__name__}", wanted=wanted,
                      todo="convert it with np.asarray") from error


def real(name: str, dtype: np.dtype | None, **params: Any) -> None:
    """Raise unless the parameters are real numbers, and no wider than the dtype of the result if that is given."""
    for param, x in params.items():
        aval = typed(name, param, x)
        if dtypes.kind(aval.dtype) not in "biuf":
            raise refused(name, f"{param} must be real", got=aval, wanted="real numbers",
                          todo="take its real part, or key_data(key) of a key")
        is_wide = dtype is not None and aval.dtype.itemsize > dtype.itemsize
        if is_wide and dtypes.is_float(aval.dtype) and not aval.weak_type:
            raise refused(name, f"{param} would be narrowed to {dtypes.short_name(dtype)}", got=aval,  # type: ignore[arg-type]
                          wanted=f"at most {dtypes.short_name(dtype)}",  # type: ignore[arg-type]
                          todo=f"convert it with .astype, or pass dtype={dtypes.long_name(aval.dtype)!r}")


def broadcast(x: Any, shape: Shape, dtype: np.dtype | None = None) -> Any:
    """The array in this dtype, repeated to a shape."""
    if dtype is not None and (aval_of(x).dtype != dtype or aval_of(x).weak_type):
        x = lax.convert_element_type(x, dtype)
    size = aval_of(x).shape
    if size == shape:
        return x
    kept = [i for i, n in enumerate(size) if n == shape[len(shape) - len(size) + i]]
    if len(kept) < len(size):
        x = lax.reshape(x, tuple([size[i] for i in kept]))
    return lax.broadcast_in_dim(x, shape, tuple([len(shape) - len(size) + i for i in kept]))


def placed(x: Array, out_sharding: Any) -> Array:
    """A result, divided as a sharding says."""
    if out_sharding is None:
        return x
    if isinstance(x, Tracer):
        return roles.constrain(x, out_sharding) if isinstance(out_sharding, Sharding) else x
    return x.to_device(out_sharding)
