"""What is done about matrices that have no decomposition: NaNs, or an error where a setting asks for it."""

from __future__ import annotations

from typing import Any

import numpy as np

from corejax.core import is_concrete
from corejax.errors import CorejaxError, CorejaxValueError
from corejax.plugin import failures_are_errors, refused

__all__ = ["FailedFactorizationError"]


class FailedFactorizationError(CorejaxValueError, np.linalg.LinAlgError):
    """A matrix has no such decomposition; raised by eager calls, where `cj.config.numerical_failures` is "error".

    >>> with cj.config(numerical_failures="error"):
    ...     try:
    ...         lax.linalg.cholesky(-np.eye(2))
    ...     except lax.linalg.FailedFactorizationError as error:
    ...         print(error.message)
    cholesky: a matrix isn't positive definite
    """


def checked(name: str, out: Any, operand: Any, problem: str, core: int = 2) -> Any:
    """The result of a factorisation; raises if it failed, if its elements are known and the setting asks for it.

    `core` is how many axes it has for each matrix: 1 for eigenvalues.
    """
    if failures_are_errors() and is_concrete(out):
        wrong = np.isnan(np.asarray(out)).any(tuple(range(-core, 0)))
        if wrong.any():
            raise _failed(name, np.argwhere(wrong)[0].tolist(), operand, problem)
    return out


def _failed(name: str, place: list[int], operand: Any, problem: str) -> CorejaxError:
    one = np.asarray(operand)[tuple(place)]
    finite = bool(np.isfinite(one).all())
    where = f"the matrix at {place} of " if place else ""
    return refused(name, problem if finite else "a matrix has elements that aren't finite",
                   got=f"{where}{np.asarray(operand).dtype}{list(np.asarray(operand).shape)}, {one!r:.200}",
                   wanted="matrices that have this decomposition", kind=FailedFactorizationError,
                   todo="look at the matrix; cj.config(numerical_failures='nan') gives NaNs instead of this error")
