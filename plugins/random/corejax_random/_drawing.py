"""Calls of programs that draw floats: what many distributions do with their arguments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from corejax.core import Array
from corejax_random._asked import as_dtype, common_shape, placed, real, sizes
from corejax_random.keys import single_key

__all__ = ["drawn", "drawn_by"]


def drawn(name: str, program: Callable[..., Any], key: Any, shape: Any, dtype: Any, out_sharding: Any) -> Array:
    """What `program(key, shape, dtype)` draws: floats of a distribution without parameters."""
    key, _ = single_key(name, key)
    return placed(program(key, sizes(name, shape), as_dtype(name, dtype)), out_sharding)


def drawn_by(name: str, program: Callable[..., Any], key: Any, params: dict[str, Any], shape: Any, dtype: Any,
             out_sharding: Any, kinds: str = "f") -> Array:
    """What `program(key, *params, shape, dtype)` draws, with parameters that broadcast and aren't narrowed."""
    key, _ = single_key(name, key)
    dtype = as_dtype(name, dtype, kinds)
    real(name, dtype, **params)
    shape = common_shape(name, shape, *params.values())
    return placed(program(key, *params.values(), shape, dtype), out_sharding)
