"""Bitwise and logical `and`, `or`, `xor` along axes, of booleans and integers."""

from __future__ import annotations

from typing import Any

import numpy as np

from corejax import lax  # noqa: F401  (for the examples)
from corejax.core import dtypes
from corejax.plugin import not_differentiable
from corejax_reductions._reduction import Axes, Reduction, defined

__all__ = ["reduce_and", "reduce_or", "reduce_xor"]


class _Logical(Reduction):
    jvp = not_differentiable("booleans and integers have no tangents")
    _kinds = "biu"
    _todo = "compare first: x != 0"

    def _sample(self, rng: Any, shape: Axes) -> Any:
        return rng.integers(0, 8, shape)


class ReduceAnd(_Logical):
    """`reduce_and(operand, axes)`: `and` along axes, bit by bit for integers; all bits set if there are no elements.

    >>> lax.reduce_and(np.array([[True, False], [True, True]]), (0,)).tolist()
    [True, False]
    """

    name = "reduce_and"
    _ufunc = np.bitwise_and
    _operation = "and"

    def _identity(self, dtype: np.dtype) -> Any:
        return dtype == dtypes.bool_ or ~np.zeros((), dtype)[()]


class ReduceOr(_Logical):
    """`reduce_or(operand, axes)`: `or` along axes, bit by bit for integers; no bit set if there are no elements.

    >>> lax.reduce_or(np.array([[True, False], [False, False]]), (0,)).tolist()
    [True, False]
    """

    name = "reduce_or"
    _ufunc = np.bitwise_or
    _operation = "or"

    def _identity(self, dtype: np.dtype) -> Any:
        return 0


class ReduceXor(_Logical):
    """`reduce_xor(operand, axes)`: exclusive `or` along axes, bit by bit for integers; no bit set if there are none.

    >>> lax.reduce_xor(np.array([[True, False], [True, True]]), (0,)).tolist()
    [False, True]
    """

    name = "reduce_xor"
    _ufunc = np.bitwise_xor
    _operation = "xor"

    def _identity(self, dtype: np.dtype) -> Any:
        return 0


reduce_and = defined(ReduceAnd())
reduce_or = defined(ReduceOr())
reduce_xor = defined(ReduceXor())
