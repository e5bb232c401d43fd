"""Single values as arrays of a dtype, and values spread over a shape."""

# mypy: no-warn-return-any

from __future__ import annotations

from typing import Any

import numpy as np

from corejax import lax
from corejax.core import aval_of, dtypes, from_array_like
from corejax.errors import CorejaxValueError
from corejax.plugin import operators, refused
from corejax_lax_basic import as_dtype
from corejax_numpy._nested import of_nested

__all__ = ["broadcasts", "constant", "spread", "spread_to"]


def constant(name: str, value: Any, dtype: np.dtype) -> Any:
    """Anything array-like in a dtype; not weak. A Python integer that the dtype can't hold is an error."""
    kind = type(value)
    if kind is complex and not dtypes.is_complex(dtype):
        raise refused(name, "a complex number would lose its imaginary part", got=value, wanted="a complex dtype",
                      todo="pass x.real")
    if kind is int or kind is float:
        return as_dtype(value, dtype)
    if kind is list or kind is tuple:
        return of_nested(name, value, dtype)
    return operators.astype(from_array_like(value), dtype)


def broadcasts(shape: tuple[int, ...], sizes: tuple[int, ...]) -> bool:
    """Whether an array of one shape can be broadcast to the other."""
    lead = len(sizes) - len(shape)
    return lead >= 0 and all([m in (1, n) for m, n in zip(shape, sizes[lead:], strict=True)])


def spread(name: str, value: Any, sizes: tuple[int, ...]) -> Any:
    """The array broadcast to a shape."""
    value = from_array_like(value)
    shape = aval_of(value).shape
    if shape == sizes:
        return value
    if not broadcasts(shape, sizes):
        raise refused(name, f"{aval_of(value)} doesn't fit this shape", got=sizes, kind=CorejaxValueError,
                      wanted="along each axis, counted from the last, equal sizes or 1", todo="reshape it first")
    return spread_to(value, sizes)


def spread_to(x: Any, shape: tuple[int, ...]) -> Any:
    """An array broadcast to a shape that it fits."""
    own = aval_of(x).shape
    return x if own == shape else lax.broadcast_in_dim(x, shape, tuple(range(len(shape) - len(own), len(shape))))
