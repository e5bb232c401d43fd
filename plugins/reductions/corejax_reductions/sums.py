"""Sums: along axes, and running along one axis. Both are linear."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from corejax import lax
from corejax.core import Array, ArrayLike, ShapedArray, aval_of
from corejax.plugin import Sample, hookimpl, shaping
from corejax_reductions import _lowering
from corejax_reductions._reduction import Axes, Reduction, accumulator, check_dtype, defined

__all__ = ["cumsum", "reduce_sum"]


class ReduceSum(Reduction):
    """`reduce_sum(operand, axes)`: the sum along axes, in the operand's dtype; 0 if there are no elements.

    Floats narrower than 32 bits accumulate in float32.

    >>> lax.reduce_sum(np.array([[1.0, 2.0], [3.0, 4.0]]), (0,)).tolist()
    [4.0, 6.0]
    """

    name = "reduce_sum"
    linear = (0,)

    _ufunc = np.add
    _operation = "add"
    _wide = True
    _todo = "convert booleans to integers to count them"

    def _identity(self, dtype: np.dtype) -> Any:
        return 0

    @hookimpl
    def transpose(self, cotangents: Any, args: Any, *, axes: Axes) -> Any:
        shape = args[0].aval.shape
        return [spread(cotangents, shape, axes)]

    @hookimpl
    def samples(self, rng: Any) -> Iterator[Sample]:
        yield from super().samples(rng)
        yield Sample([np.ones(2, np.bool_)], {"axes": (0,)}, error=TypeError)


class Cumsum:
    """`cumsum(operand, axis=0, reverse=False)`: element i is the sum of elements 0 to i, or i to the end if `reverse`.

    Floats narrower than 32 bits accumulate in float32.

    >>> lax.cumsum(np.array([1.0, 2.0, 3.0])).tolist()
    [1.0, 3.0, 6.0]
    """

    name = "cumsum"
    linear = (0,)

    def function(self, bind: Callable[..., Array]) -> Any:
        def cumsum(operand: ArrayLike, axis: int = 0, reverse: bool = False) -> Array:
            at = shaping.canonical_axis("cumsum", axis, aval_of(operand).ndim)
            return bind(operand, axis=at, reverse=bool(reverse))
        return cumsum

    @hookimpl
    def impl(self, args: Any, *, axis: int, reverse: bool) -> Any:
        (x,) = args
        wide = accumulator(x.dtype)
        if not reverse:
            return np.add.accumulate(x, axis, wide).astype(x.dtype, copy=False)
        sums = np.add.accumulate(np.flip(x, axis), axis, wide)
        return np.ascontiguousarray(np.flip(sums, axis)).astype(x.dtype, copy=False)

    @hookimpl
    def abstract_eval(self, avals: Any, *, axis: int, reverse: bool) -> ShapedArray:
        (x,) = avals
        shaping.check_axes(self.name, "axis", (axis,), x.ndim)
        check_dtype(self.name, x, "iufc", "convert booleans to integers to count them")
        return x  # type: ignore[no-any-return]

    @hookimpl
    def transpose(self, cotangents: Any, args: Any, *, axis: int, reverse: bool) -> Any:
        return [self._bind(cotangents, axis=axis, reverse=not reverse)]

    @hookimpl
    def vmap(self, args: Any, dims: Any, *, axis: int, reverse: bool) -> Any:
        # doesn't take the batch axis, since that argument has the same name as the param
        (x,), (dim,) = args, dims
        return self._bind(x, axis=axis + (axis >= dim), reverse=reverse), dim

    @hookimpl
    def xla_translation(self, ctx: Any, args: Any, *, axis: int, reverse: bool) -> Any:
        (aval,), (x,) = ctx.avals_in, args
        wide = accumulator(aval.dtype)
        if wide is aval.dtype:
            return _lowering.running_sum(ctx, x, aval, axis, reverse)
        x = _lowering.convert(ctx, x, aval.shape, wide)
        sums = _lowering.running_sum(ctx, x, ShapedArray(aval.shape, wide), axis, reverse)
        return _lowering.convert(ctx, sums, aval.shape, aval.dtype)

    @hookimpl
    def samples(self, rng: Any) -> Iterator[Sample]:
        for shape, axis in [((1,), 0), ((5,), 0), ((2, 3), 1), ((3, 2, 2), 0), ((4, 1, 5), 2), ((0,), 0), ((2, 0), 1)]:
            for reverse in (False, True):
                yield Sample([rng.standard_normal(shape)], {"axis": axis, "reverse": reverse}, exempt={
                    "zeros keep their signs": "the compiled sums start from 0, and 0 + -0 is 0"})
        yield Sample([np.arange(5, dtype=np.int32)], {"axis": 0, "reverse": False})
        yield Sample([np.ones(3)], {"axis": 1, "reverse": False}, error=IndexError)

    _bind: Callable[..., Any]


def spread(x: Any, shape: Axes, axes: Axes) -> Any:
    """A reduction's result, repeated along the axes that were reduced."""
    return lax.broadcast_in_dim(x, shape, tuple([d for d in range(len(shape)) if d not in axes]))


reduce_sum = defined(ReduceSum())
cumsum = defined(Cumsum())
