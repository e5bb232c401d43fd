"""What NumPy computes at once for arrays in host memory: operators, with its own promotion and broadcasting.

A result in a dtype that isn't ours isn't taken, so these functions only look at operands where a result in the right
dtype could have other values.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from corejax.plugin import NotDirectly

__all__ = ["FUNCTIONS"]


def _compared(compare: Any) -> Callable[[Any, Any], Any]:
    """A comparison of two arrays of one dtype: NumPy compares those of others without rounding them."""
    def call(x: Any, y: Any) -> Any:
        if x.dtype is not y.dtype:
            raise NotDirectly
        return compare(x, y)
    return call


def _quotient(x: Any, y: Any) -> Any:
    found = np.true_divide(x, y)
    if found.dtype.kind == "c":  # rounding differs from ours, and infinities
        raise NotDirectly
    return found


def _power(x: Any, y: Any) -> Any:
    found = np.power(x, y)
    if found.dtype.kind == "c" or _is_half(y):  # NumPy takes square roots, which differ at -inf and -0
        raise NotDirectly
    return found


def _is_half(y: Any) -> bool:
    """Whether it is a half, or an array of halves that are all in one place."""
    if type(y) is float:
        return y == 0.5
    return type(y) not in (int, bool) and bool(y.size) and not any(y.strides) and bool(y.flat[0] == 0.5)


#: From here on, quotients aren't exact, and halves are rounded in another way.
_LARGE = {"d": 2.0**50, "f": 2.0**21}


def _whole(found: Any, y: Any) -> Any:
    """What `floor_divide` gives; integers aren't divided by zero."""
    char = found.dtype.char
    if char in _LARGE and not np.count_nonzero(np.abs(found) > _LARGE[char]):
        return found
    if found.dtype.kind in "iu" and np.count_nonzero(y) == np.size(y):
        return found
    raise NotDirectly


def _rest(found: Any) -> Any:
    """What `remainder` gives."""
    if found.dtype.char in _LARGE or found.dtype.kind in "iu":
        return found
    raise NotDirectly


def _quotient_and_rest(x: Any, y: Any) -> tuple[Any, Any]:
    whole, rest = np.divmod(x, y)
    return _whole(whole, y), _rest(rest)


#: By the names of operators.
FUNCTIONS: dict[str, Callable[[Any, Any], Any]] = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "truediv": _quotient, "pow": _power,
    "floordiv": lambda x, y: _whole(np.floor_divide(x, y), y),
    "mod": lambda x, y: _rest(np.remainder(x, y)), "divmod": _quotient_and_rest,
    "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor,
    "lshift": np.left_shift, "rshift": np.right_shift, "matmul": lambda x, y: x @ y,
    "eq": _compared(np.equal), "ne": _compared(np.not_equal), "lt": _compared(np.less),
    "le": _compared(np.less_equal), "gt": _compared(np.greater), "ge": _compared(np.greater_equal)}
