"""What the functions share: operands as arrays, what NumPy's functions are not for, arguments that are refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from corejax.core import Array, from_array_like
from corejax.errors import CorejaxTypeError
from corejax.plugin import refused

__all__ = ["array", "no_out"]

#: Anything that NumPy takes as an array, as an array of ours; lists with traced values, too.
array: Callable[[object], Array] = from_array_like


def no_out(name: str, out: Any) -> None:
    """Refuse an array to write to."""
    if out is not None:
        raise refused(name, "arrays are immutable, so the result can't be written to one", got="out=...",
                      wanted="out=None", todo="use the returned result", kind=CorejaxTypeError)
