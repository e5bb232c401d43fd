"""LAPACK as NumPy calls it, for arrays in host memory: the functions that compiled programs call, and the same values.

`np.linalg` would compute float32 in float64, which gives vectors other signs. What it calls itself doesn't, and
fills results with NaN instead of raising. Where there is no such function, a program is compiled even here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache, lru_cache
from typing import Any

import numpy as np

from corejax import lax
from corejax.core import Jaxpr, ShapedArray, stage

_FUNCTIONS = getattr(np.linalg, "_umath_linalg", None)


def function(name: str, x: np.ndarray) -> Callable[..., Any] | None:
    """What NumPy has under this name for such matrices: not for those of size 0, about which LAPACK isn't asked."""
    return _function(name, x.dtype.char) if x.size else None


@cache
def _function(name: str, char: str) -> Callable[..., Any] | None:
    found = getattr(_FUNCTIONS, name, None)
    return found if any([types.startswith(char + "->") for types in getattr(found, "types", ())]) else None


def is_ordinary(x: np.ndarray) -> bool:
    """Whether all elements are finite, and their largest is far from overflow and underflow."""
    root = float(np.sqrt(np.finfo(x.dtype).max))
    return bool(1.0 / root < np.abs(x).max() < root)


def compiled(primitive: Any, x: Any, params: Mapping[str, Any]) -> list[Any]:
    """The results of a compiled program, in host memory."""
    jaxpr = _program(primitive, x.shape, x.dtype, tuple(params.items()))
    return [np.asarray(out) for out in lax.xla_call(x, jaxpr=jaxpr, name=primitive.name)]


@lru_cache(maxsize=1024)
def _program(primitive: Any, shape: tuple[int, ...], dtype: np.dtype, params: tuple[tuple[str, Any], ...]) -> Jaxpr:
    def program(x: Any) -> list[Any]:
        return list(primitive.bind(x, **dict(params)))
    return stage(program, [ShapedArray(shape, dtype)], primitive.name).jaxpr
