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

from corejax.arrays.storage import read_only
from corejax.base.avals import ShapedArray
from corejax.base.errors import RuleError
from corejax.kernel import checks

#: What callbacks raised and no caller has collected yet; bounded, as an abandoned result is never asked for.
_raised: deque[tuple[Any, BaseException]] = deque(maxlen=64)


def checked_callback(function: Callable[..., Sequence[Any]], out_avals: tuple[ShapedArray, ...],
                     primitive: checks.Blamed, where: str | None,
                     before: Callable[[], None] | None = None) -> Callable[..., tuple[Any, ...]]:
    """`function` as the runtime calls it, with results checked and exceptions kept.

    `before` is called whenever a program that calls it is about to run, in the thread of whoever runs it.
    """
    hook = getattr(function, "hook", "xla_translation")
    who = "" if hook == "impl" else "the function that it has called back "

    def wrong(out: object, wanted: str) -> RuleError:
        got = checks.describe(out)
        error = checks.rule_error(primitive, hook, f"{who}returned {got}, wanted {wanted}", got, wanted,
                                  f"make {hook} and abstract_eval agree; this was called by a compiled program")
        error.where = where
        return error

    def called(*operands: Any) -> tuple[Any, ...]:
        try:
            try:
                outs = function(*map(_owned, operands))
            except Exception as error:
                raise checks.failed(primitive, hook, error, where)  # noqa: B904
            return tuple(checks.check_called_back(outs, out_avals, wrong))
        except BaseException as error:
            _raised.append((called, error))
            raise
    called.before = before  # type: ignore[attr-defined]
    return called


def _owned(operand: object) -> Any:
    """A copy: the runtime's memory is reused after the call, and a function may keep its arguments, not change them."""
    return read_only(np.array(operand))


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
