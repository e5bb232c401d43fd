"""Python functions that compiled programs call.

The runtime neither checks what such a function returns nor keeps its exceptions, only their text. Both are done here:
results must have exactly the declared types, and exceptions are set aside, for the caller of the program to raise.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from itertools import count
from typing import Any

import numpy as np

from corejax.arrays.storage import read_only
from corejax.base import ending
from corejax.base.avals import ShapedArray
from corejax.base.errors import RuleError
from corejax.kernel import checks

#: Exceptions of callbacks that no caller has collected yet; bounded, since some results are never asked for.
_raised: deque[tuple[Any, BaseException]] = deque(maxlen=64)

_turns = count()


def checked_callback(function: Callable[..., Sequence[Any]], out_avals: tuple[ShapedArray, ...],
                     primitive: checks.Blamed, where: str | None,
                     before: Callable[[], None] | None = None, tokens: int = 0) -> Callable[..., tuple[Any, ...]]:
    """`function` in the form that the runtime calls, with results checked and exceptions kept.

    `before` is called whenever a program that uses it is about to run, in the thread that runs it. The runtime passes
    this many `tokens` before the operands, and ends the process if they don't come back before the results.

    Where devices wait for each other, a program must go on after an exception, or they would wait for good: whoever
    runs it sets `goes_on`, and asks afterwards (`take_raised`).
    """
    hook = getattr(function, "hook", "xla_translation")
    who = "" if hook == "impl" else "the function that it has called back "

    def wrong(out: object, wanted: str) -> RuleError:
        got = checks.describe(out)
        error = checks.rule_error(primitive, hook, f"{who}returned {got}, wanted {wanted}", got, wanted,
                                  f"make {hook} and abstract_eval agree; this was called by a compiled program")
        error.where = where
        return error

    @ending.called_back
    def called(*operands: Any) -> tuple[Any, ...]:
        ending.stop_if_too_late()
        try:
            try:
                outs = function(*map(_read_only_copy, operands[tokens:]))
            except Exception as error:
                raise checks.failed(primitive, hook, error, where)  # noqa: B904
            return (*operands[:tokens], *checks.check_called_back(outs, out_avals, wrong))
        except BaseException as error:
            _raised.append((called, error))
            if not called.goes_on:  # type: ignore[attr-defined]
                raise
            # Now this, now that, so that a loop ends which waits for either.
            filler = next(_turns) % 2
            return (*operands[:tokens], *[np.full(aval.shape, filler, aval.dtype) for aval in out_avals])
        finally:
            ending.stop_if_too_late()
    called.before, called.goes_on = before, False  # type: ignore[attr-defined]
    return called


def _read_only_copy(operand: object) -> Any:
    """A read-only copy: the runtime reuses its memory after the call, but the function may keep its arguments."""
    return read_only(np.array(operand))


def take_raised(callbacks: Sequence[Callable[..., Any]]) -> BaseException | None:
    """An exception raised by one of these callbacks, if any. Each is returned only once."""
    for entry in list(_raised):
        if any(entry[0] is callback for callback in callbacks):
            try:
                _raised.remove(entry)
            except ValueError:
                continue  # another thread took it first
            return entry[1]
    return None
