"""What a check that failed is: exceptions, a class for each kind of check, and the sets of kinds that users choose."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from corejax.errors import CorejaxValueError

__all__: list[str] = []


class JaxRuntimeError(CorejaxValueError):
    """A check failed while a program ran. What is thrown is of one of the classes below."""


#: The same, by a name that says what it is.
CheckError = JaxRuntimeError


class FailedCheckError(CheckError):
    """A `check` of the user's."""


class NaNError(CheckError, FloatingPointError):
    """An operation made a NaN."""


class OOBError(CheckError, IndexError):
    """An index was out of bounds."""


class DivisionByZeroError(CheckError, ZeroDivisionError):
    """A division by zero."""


class BatchedError(CheckError):
    """Checks failed for some elements of a batch: `errors` has the exception of each, by its index."""

    def __init__(self, message: str, *, errors: Mapping[tuple[int, ...], CheckError] | None = None,
                 where: str | None = None, todo: str | None = None) -> None:
        super().__init__(message, where=where, todo=todo)
        self.errors = dict(errors or {})


#: A kind of check: the class of what is thrown when one fails.
ErrorCategory: TypeAlias = type[CheckError]
Errors: TypeAlias = frozenset[ErrorCategory]

user_checks: Errors = frozenset({FailedCheckError})
nan_checks: Errors = frozenset({NaNError})
index_checks: Errors = frozenset({OOBError})
div_checks: Errors = frozenset({DivisionByZeroError})
float_checks: Errors = nan_checks | div_checks
automatic_checks: Errors = float_checks | index_checks
all_checks: Errors = automatic_checks | user_checks
