"""What the functions share: operands as arrays, what NumPy's functions are not for, arguments that are refused."""

from __future__ import annotations

from typing import Any

from corejax.core import Array, from_array_like
from corejax.errors import CorejaxTypeError
from corejax.plugin import refused
from corejax_numpy._nested import of_nested

__all__ = ["array", "no_out"]


def array(x: Any) -> Any:
    """Anything that NumPy takes as an array, as an array of ours; lists with traced values, too."""
    if isinstance(x, Array):
        return x
    return of_nested("an array", x, None, as_numpy=True) if isinstance(x, (list, tuple)) else from_array_like(x)


def no_out(name: str, out: Any) -> None:
    """Refuse an array to write to."""
    if out is not None:
        raise refused(name, "arrays are immutable, so the result can't be written to one", got="out=...",
                      wanted="out=None", todo="use the returned result", kind=CorejaxTypeError)
