"""`cj.lax.linalg`: factorisations, systems of equations, eigenvalues; of batches of matrices in the last two axes.

`linalg.cholesky_p` is the primitive of that name, as in jaxprs.
"""

from __future__ import annotations

from typing import Any

from corejax.errors import CorejaxAttributeError, suggestion
from corejax_linear_algebra import *  # noqa: F403
from corejax_linear_algebra import __all__ as __all__, _primitives

NAMESPACE = "lax.linalg"


def __getattr__(name: str) -> Any:
    found = _primitives.table().get(name)
    if found is None:
        raise CorejaxAttributeError(
            f"module 'corejax.lax.linalg' has no attribute {name!r}", got=f"lax.linalg.{name}",
            wanted="a function, or the name of a primitive and _p",
            todo=suggestion(name, __dir__()) or "dir(lax.linalg) lists them")
    return found


def __dir__() -> list[str]:
    return sorted([*__all__, *_primitives.table()])
