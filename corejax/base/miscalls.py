"""Calls of public functions with arguments that their signatures don't have: the error says what they take."""

from __future__ import annotations

import re
from inspect import Signature, signature
from types import FunctionType
from typing import Any

from corejax.base.errors import CorejaxTypeError, suggestion

__all__ = ["check_miscall", "is_miscall"]

_UNEXPECTED = re.compile(r"unexpected keyword argument '(\w+)'")


def check_miscall(error: TypeError, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Raise our own error if `error`, caught where `function` was called, is Python's about the arguments.

    No frame of the function is in its traceback then.
    """
    if type(error) is not TypeError or type(function) is not FunctionType or _has_frames(error):
        return
    name, own = _name(function, args), function.__qualname__
    reason = str(error).removeprefix(f"{own}() ")
    is_method = "." in own.rpartition("<locals>.")[2]
    takes = _plainly(signature(function), is_method)
    wrong = _UNEXPECTED.search(reason)
    hint = suggestion(wrong[1], takes.parameters) if wrong else None
    if is_method:  # which Python counts the object for
        reason = re.sub(r"\d+(?= (to|positional|were|was)\b)", lambda count: str(int(count[0]) - 1), reason)
    told = CorejaxTypeError(f"{name}: {reason}", got=_counted(len(args) - is_method, kwargs), wanted=f"{name}{takes}",
                            todo=hint or "pass the arguments that it takes")
    told._is_miscall = True  # type: ignore[attr-defined]
    raise told from None


def is_miscall(error: TypeError) -> bool:
    """Whether `check_miscall` raised this error, which others may tell in terms of what the user called."""
    return getattr(error, "_is_miscall", False)


def _has_frames(error: TypeError) -> bool:
    return error.__traceback__ is not None and error.__traceback__.tb_next is not None


def _name(function: FunctionType, args: tuple[Any, ...]) -> str:
    """A function's name; for calls of an object, the object's."""
    if function.__name__ == "__call__" and args:
        return str(getattr(args[0], "__name__", type(args[0]).__name__))
    return function.__name__


def _counted(count: int, kwargs: dict[str, Any]) -> str:
    return ", ".join([f"{count or 'no'} positional argument{'s' * (count != 1)}", *[f"{key}=..." for key in kwargs]])


def _plainly(takes: Signature, is_method: bool) -> Signature:
    """Without annotations, and without the object of a method."""
    parameters = [each.replace(annotation=each.empty) for each in takes.parameters.values()]
    return Signature(parameters[is_method:])
