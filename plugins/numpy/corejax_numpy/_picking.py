"""Choosing elements from two arrays by a condition: what `where` does, for arrays of any types and shapes."""

# mypy: no-warn-return-any

from __future__ import annotations

from typing import Any

from corejax import lax
from corejax.core import dtypes
from corejax.plugin import families
from corejax_lax_basic import broadcast_together, of_one_dtype
from corejax_numpy._arrays import array

__all__ = ["operand", "pick"]

_SCALARS = dtypes.PYTHON_SCALARS


def operand(x: Any) -> Any:
    """An operand for promotion: Python's numbers unchanged, anything else as an array."""
    return x if type(x) in _SCALARS else array(x)


def pick(condition: Any, x: Any, y: Any) -> Any:
    """The elements of x where the booleans hold, those of y elsewhere, in their common dtype and shape."""
    x, y = operand(x), operand(y)
    if type(x) in _SCALARS and type(y) not in _SCALARS:  # in the dtype of the array, even if that is weak
        x = _beside(x, y)
    elif type(y) in _SCALARS and type(x) not in _SCALARS:
        y = _beside(y, x)
    mask, x, y = broadcast_together([condition, *of_one_dtype((x, y))])
    return lax.select_n(mask, y, x)


def _beside(number: Any, x: Any) -> Any:
    if dtypes.kind(x.aval.dtype) not in "biufc":
        return number
    scalar = families.weak_scalar(number, x.aval.dtype)
    return number if scalar is None else scalar
