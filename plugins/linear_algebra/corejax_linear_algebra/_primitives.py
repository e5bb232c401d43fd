"""The primitives of this pack by their names in `lax.linalg`, as jax has them: `cholesky_p`."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from typing import Any

import corejax_linear_algebra


@cache
def table() -> dict[str, Any]:
    """The primitives that public modules export, by name: as functions, or as `NAME_p` where there is none."""
    modules = [import_module(f"{corejax_linear_algebra.__name__}.{module.name}")
               for module in iter_modules(corejax_linear_algebra.__path__)
               if not module.name.startswith("_") and module.name != "linalg"]
    exported = [getattr(module, name) for module in modules for name in module.__all__]
    found = [value.primitive for value in exported if hasattr(value, "primitive")]
    return {f"{primitive.name}_p": primitive for primitive in found}
