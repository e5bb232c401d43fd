"""Choices between arrays, rows along axes, and values that a result depends on."""

# mypy: no-warn-return-any
# What roles return has no type that a checker knows.

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from corejax import lax
from corejax.core import Array, ShapedArray, Tracer, aval_of, dtypes
from corejax.errors import ConcretizationError, CorejaxValueError
from corejax.plugin import operators, refused, shaping
from corejax_lax_basic import of_one_dtype
from corejax_numpy._arrays import array

__all__ = ["along_last", "as_bool", "as_inexact", "canonical_axes", "flat", "fresh", "is_computed", "known",
           "plain_axis", "size_of", "with_nan"]


def known(name: str, x: Any, todo: str = "") -> np.ndarray:
    """The elements of an array on which a result's shape depends; `name` says in errors what needs them.

    Those of a value that is differentiated are known: what is read from them is a shape, or places.
    """
    if isinstance(x, Tracer):
        try:
            x = x.peek(name)
        except ConcretizationError as error:
            raise refused(name, "the shape of the result depends on values, and only their type is known here",
                          got=f"a traced {aval_of(x)}", wanted="known values, or a size", kind=ConcretizationError,
                          todo=todo or f"pass size=..., the static size of the result: jnp.{name}(..., size=n); what "
                          "is missing is filled") from error
    return np.asarray(x)


def fresh(x: np.ndarray) -> Array:
    """An array of ours for an ndarray that nobody else has."""
    if not x.shape:
        return array(x)
    x.setflags(write=False)
    return Array.from_host(x, ShapedArray(x.shape, dtypes.canonical(x.dtype)))


def is_computed(x: Any) -> bool:
    """Whether it is an array of ours or a traced value: its values don't belong to the program."""
    return type(x) is Array or isinstance(x, Tracer)


def size_of(name: str, size: Any) -> int:
    """A static size of a result."""
    count = shaping.as_int(name, "size", size)
    if count < 0:
        raise refused(name, "a size can't be negative", got=f"size={count}", wanted="0 or more",
                      todo="pass the size that the result shall have", kind=CorejaxValueError)
    return count


def canonical_axes(name: str, axis: Any, ndim: int) -> tuple[int, ...]:
    """Axes from 0; None stands for all of them."""
    return tuple(range(ndim)) if axis is None else shaping.canonical_axes(name, axis, ndim)


def plain_axis(name: str, x: Any, axis: Any) -> tuple[Any, int]:
    """The operand and an axis of it from 0; it is flattened if the axis is None."""
    if axis is None:
        return flat(x), 0
    return x, shaping.canonical_axis(name, axis, aval_of(x).ndim)


def flat(x: Any) -> Any:
    """All elements along one axis."""
    aval = aval_of(x)
    return x if aval.ndim == 1 else lax.reshape(x, (aval.size,))


def as_bool(x: Any) -> Any:
    """Whether each element is nonzero."""
    return x if aval_of(x).dtype == dtypes.bool_ else lax.ne(x, 0)


def as_inexact(x: Any) -> Any:
    """The numbers as floats, or as they are if they are inexact."""
    return of_one_dtype([x], "f")[0]


def with_nan(mask: Any, x: Any) -> Any:
    """NaN where the mask holds."""
    return lax.select(mask, lax.full_like(x, np.nan), x)


def along_last(x: Any, axes: tuple[int, ...]) -> tuple[Any, tuple[int, ...]]:
    """The array with these axes moved to the end and joined, and the shape of the others."""
    shape = aval_of(x).shape
    others = tuple([d for d in range(len(shape)) if d not in axes])
    kept = tuple([shape[d] for d in others])
    order = (*others, *axes)
    turned = x if order == tuple(range(len(shape))) else lax.transpose(x, order)
    return operators.reshape(turned, (*kept, prod([shape[d] for d in axes]))), kept
