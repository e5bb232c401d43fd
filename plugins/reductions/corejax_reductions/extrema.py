"""The largest and the smallest element along axes.

NaN wins over every number. Complex numbers are ordered by their real parts, then by their imaginary parts. Elements
that tie share the derivative equally.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import ml_dtypes
import numpy as np

from corejax import lax
from corejax.core import ShapedArray, dtypes
from corejax.plugin import Sample, hookimpl, partials
from corejax_reductions import _lowering
from corejax_reductions._reduction import Axes, Reduction, defined
from corejax_reductions.sums import reduce_sum, spread

__all__ = ["reduce_max", "reduce_min"]


def _shared_by_ties(x_dot: Any, out: Any, x: Any, *, axes: Axes) -> Any:
    """The mean of the tangents of the elements that are equal to the result."""
    beside = spread(out, x.shape, axes) if out.shape else out
    ties = lax.eq(x, beside)
    chosen = lax.convert_element_type(ties, x.dtype)
    total = reduce_sum(lax.mul(x_dot, chosen), axes)
    if 0 in [x.shape[d] for d in axes]:  # a constant, the result for no elements
        return total
    if x.dtype.itemsize >= 4:
        return lax.div(total, reduce_sum(chosen, axes))
    count = reduce_sum(lax.convert_element_type(ties, dtypes.float32), axes)  # narrow floats don't count far
    return lax.convert_element_type(lax.div(lax.convert_element_type(total, dtypes.float32), count), x.dtype)


class _Extremum(Reduction):
    jvp = partials(_shared_by_ties)
    _kinds = "biufc"
    _direction: str  # how a winner compares with the others

    @hookimpl
    def samples(self, rng: Any) -> Iterator[Sample]:
        yield from super().samples(rng)
        tied = np.array([[1 + 3j, 1 - 4j, 1 + 2j, 0], [1j, complex(np.nan, 1), 2, -1j]])
        yield Sample([tied], {"axes": (1,)}, exempt={"derivative": "NaN has none"})
        for dtype in (np.int8, np.uint8):
            bounds = np.iinfo(dtype)
            for bound in (bounds.min, bounds.max):
                yield Sample([np.full((2, 3), bound, dtype)], {"axes": (1,)}, results=np.full(2, bound, dtype))
            empty = self._identity(np.dtype(dtype))
            yield Sample([np.zeros((2, 0), dtype)], {"axes": (1,)}, results=np.full(2, empty, dtype))
        least = np.full(2, -np.inf if self._direction == "GT" else np.inf)
        yield Sample([np.zeros((2, 0))], {"axes": (1,)}, results=least)

    def _combine(self, ctx: Any, dtype: np.dtype) -> _lowering.Combine:
        return chooser(ctx, dtype, self._operation, self._direction)


class ReduceMax(_Extremum):
    """`reduce_max(operand, axes)`: the largest element along axes; the least value of the dtype if there is none.

    >>> lax.reduce_max(np.array([[1.0, 5.0], [3.0, 4.0]]), (0,)).tolist()
    [3.0, 5.0]
    """

    name = "reduce_max"
    _ufunc = np.maximum
    _operation = "maximum"
    _direction = "GT"

    def _identity(self, dtype: np.dtype) -> Any:
        return least(dtype)


class ReduceMin(_Extremum):
    """`reduce_min(operand, axes)`: the smallest element along axes; the greatest value of the dtype if there is none.

    >>> lax.reduce_min(np.array([[1.0, 5.0], [3.0, 4.0]]), (0,)).tolist()
    [1.0, 4.0]
    """

    name = "reduce_min"
    _ufunc = np.minimum
    _operation = "minimum"
    _direction = "LT"

    def _identity(self, dtype: np.dtype) -> Any:
        return greatest(dtype)


def chooser(ctx: Any, dtype: np.dtype, operation: str, direction: str) -> _lowering.Combine:
    """The larger or the smaller of two MLIR values of one type, elementwise."""
    if not dtypes.is_complex(dtype):
        return _lowering.binary(ctx, operation)
    both, either = _lowering.binary(ctx, "and"), _lowering.binary(ctx, "or")
    part_dtype = np.empty((), dtype).real.dtype

    def compare(x: Any, y: Any, way: str) -> Any:
        return _lowering.compare(ctx, x, y, way)

    def combine(x: Any, y: Any) -> Any:
        part = ctx.types[ShapedArray(tuple(x.type.shape), part_dtype)]
        (x_re, y_re), (x_im, y_im) = [[ctx.op(f"stablehlo.{name}", [z], None, [part]) for z in (x, y)]
                                      for name in ("real", "imag")]
        wins = either(compare(x_re, y_re, direction),
                      both(compare(x_re, y_re, "EQ"), compare(x_im, y_im, direction)))
        return _lowering.select(ctx, either(compare(x, x, "NE"), both(compare(y, y, "EQ"), wins)), x, y)
    return combine


def least(dtype: np.dtype) -> Any:
    """The least value of a dtype: minus infinity if it has one."""
    if dtypes.is_integer(dtype):
        return dtypes.integer_limits(dtype).min
    if dtypes.is_complex(dtype):
        return complex(-np.inf, -np.inf)
    return False if dtype == dtypes.bool_ else _infinity_or_bound(dtype, -1)


def greatest(dtype: np.dtype) -> Any:
    """The greatest value of a dtype: infinity if it has one."""
    if dtypes.is_integer(dtype):
        return dtypes.integer_limits(dtype).max
    if dtypes.is_complex(dtype):
        return complex(np.inf, np.inf)
    return True if dtype == dtypes.bool_ else _infinity_or_bound(dtype, 1)


def _infinity_or_bound(dtype: np.dtype, sign: int) -> Any:
    infinity = np.asarray(sign * np.inf, np.float32).astype(dtype)
    if np.isinf(infinity.astype(np.float32)):
        return infinity[()]
    bounds: Any = ml_dtypes.finfo(dtype)  # type: ignore[no-untyped-call]  # several float8 formats have no infinity
    return bounds.max if sign > 0 else bounds.min


reduce_max = defined(ReduceMax())
reduce_min = defined(ReduceMin())
