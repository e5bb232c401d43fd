"""`corejax.checkify`: checks that programs make while they run, as values that can be asked afterwards.

>>> from corejax import checkify
>>> def f(x):
...     checkify.check(x > 0, "x must be positive")
...     return x
>>> err, y = checkify.checkify(f)(-1.0)
>>> err.get()
'x must be positive (`check` failed)'
"""

from __future__ import annotations

from corejax_checkify.checkifying import checkify
from corejax_checkify.checking import check, check_error, check_p, debug_check
from corejax_checkify.error import Error, init_error
from corejax_checkify.failures import (
    BatchedError,
    CheckError,
    DivisionByZeroError,
    ErrorCategory,
    FailedCheckError,
    JaxRuntimeError,
    NaNError,
    OOBError,
    all_checks,
    automatic_checks,
    div_checks,
    float_checks,
    index_checks,
    nan_checks,
    user_checks,
)

NAMESPACE = ("checkify", "experimental.checkify")

__all__ = [
    "BatchedError", "CheckError", "DivisionByZeroError", "Error", "ErrorCategory", "FailedCheckError",
    "JaxRuntimeError", "NaNError", "OOBError", "all_checks", "automatic_checks", "check", "check_error", "check_p",
    "checkify", "debug_check", "div_checks", "float_checks", "index_checks", "init_error", "nan_checks", "user_checks",
]
