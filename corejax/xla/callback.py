"""Python functions that compiled programs call.

The runtime neither checks what such a function returns nor keeps its exception, of which only the text survives. Both
are done here: what it returns must be of the declared type to the bit, and what it raises is kept aside, for the
caller of the program to raise in its stead.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from corejax import dtypes
from corejax.avals import ShapedArray
from corejax.errors import RuleError

#: What callbacks raised and no caller has collected yet; bounded, as an abandoned result is never asked for.
_raised: deque[tuple[Any, BaseException]] = deque(maxlen=64)


def checked_callback(function: Callable[..., Sequence[Any]], out_avals: tuple[ShapedArray, ...], name: str,
                     where: str | None) -> Callable[..., tuple[Any, ...]]:
    """`function` as the runtime calls it, with results checked and exceptions kept."""
    def called(*operands: Any) -> tuple[Any, ...]:
        try:
            # The runtime's memory is reused after the call; a function may keep its arguments.
            outs = function(*[np.array(x) for x in operands])
            return tuple(_checked(outs, out_avals, name, where))
        except BaseException as error:
            _raised.append((called, error))
            raise
    return called


def _checked(outs: Any, avals: tuple[ShapedArray, ...], name: str, where: str | None) -> list[Any]:
    if not isinstance(outs, (list, tuple)) or len(outs) != len(avals):
        got = len(outs) if isinstance(outs, (list, tuple)) else type(outs).__name__
        raise RuleError(f"{name}: the function called from a compiled program returned the wrong number of results",
                        primitive=name, hook="impl", got=got, wanted=f"a sequence of {len(avals)} arrays", where=where)
    return [_checked_one(out, aval, name, where) for out, aval in zip(outs, avals, strict=True)]


def _checked_one(out: Any, aval: ShapedArray, name: str, where: str | None) -> Any:
    host = out if isinstance(out, np.ndarray) else np.asarray(out)
    if host.shape != aval.shape or host.dtype != aval.dtype:
        raise RuleError(f"{name}: the function called from a compiled program returned an array of the wrong type",
                        primitive=name, hook="impl", got=f"{host.dtype}{list(host.shape)}", wanted=str(aval),
                        where=where, todo="make impl and abstract_eval agree")
    return np.zeros(aval.shape, np.bool_) if aval.dtype == dtypes.float0 else np.asarray(host, order="C")


def take_raised(callbacks: Sequence[Callable[..., Any]]) -> BaseException | None:
    """What one of these callbacks raised, if anything, given out once."""
    for entry in list(_raised):
        if any(entry[0] is callback for callback in callbacks):
            try:
                _raised.remove(entry)
            except ValueError:
                continue  # another thread was faster
            return entry[1]
    return None
