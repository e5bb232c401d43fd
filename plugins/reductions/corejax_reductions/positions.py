"""The positions of the largest and the smallest element along an axis."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from corejax import lax  # noqa: F401  (for the examples)
from corejax.core import Array, ArrayLike, DTypeLike, ShapedArray, aval_of, dtypes
from corejax.errors import CorejaxValueError
from corejax.plugin import Sample, hookimpl, not_linear, partials, refused, shaping
from corejax_reductions import _lowering
from corejax_reductions._reduction import Axes, check_dtype, defined
from corejax_reductions.extrema import greatest, least

__all__ = ["argmax", "argmin"]


class _Position:
    """The position of the first of equal elements, or of the first NaN if there is one."""

    name = ""
    jvp = partials(None)  # a step function: its derivative is zero
    transpose = not_linear("a position does not depend linearly on the elements")
    _find: Callable[..., Any]
    _direction: str

    def function(self, bind: Callable[..., Array]) -> Any:
        def position(operand: ArrayLike, axis: int, index_dtype: DTypeLike | None = None) -> Array:
            dtype = dtypes.default_dtype("i") if index_dtype is None else dtypes.canonical(index_dtype)
            at = shaping.canonical_axis(self.name, axis, aval_of(operand).ndim)
            return bind(operand, axes=(at,), index_dtype=dtype)
        return position

    @hookimpl
    def impl(self, args: Any, *, axes: Axes, index_dtype: np.dtype) -> Any:
        return np.asarray(self._find(args[0], axes[0])).astype(index_dtype)

    @hookimpl
    def abstract_eval(self, avals: Any, *, axes: Axes, index_dtype: np.dtype) -> ShapedArray:
        (x,) = avals
        if type(axes) is not tuple or len(axes) != 1:
            raise refused(self.name, "a position is found along exactly one axis", got=axes, wanted="axes=(axis,)",
                          todo="reshape the operand to look along several axes")
        shaping.check_axes(self.name, "axes", axes, x.ndim)
        check_dtype(self.name, x, "biuf", "complex numbers: take the position in their real part or their modulus")
        if not dtypes.is_integer(index_dtype):
            raise refused(self.name, "positions must be integers", got=f"index_dtype={index_dtype}",
                          wanted="an integer dtype", todo="pass int32 or int64")
        size = x.shape[axes[0]]
        if size == 0:
            raise refused(self.name, "an axis of size 0 has no element to find", got=str(x),
                          wanted=f"a positive size along axis {axes[0]}", todo="test the shape, which is static, first",
                          kind=CorejaxValueError)
        if size - 1 > np.iinfo(index_dtype).max:
            raise refused(self.name, f"{dtypes.short_name(index_dtype)} can't count to {size - 1}", got=str(x),
                          wanted="an index_dtype that holds every position", todo="pass int32 or int64",
                          kind=CorejaxValueError)
        return ShapedArray(shaping.without(x.shape, axes), index_dtype)

    @hookimpl
    def vmap(self, axis: Any, args: Any, dims: Any, *, axes: Axes, index_dtype: np.dtype) -> Any:
        moved = shaping.shifted(axes, dims[0])
        return self._bind(args[0], axes=moved, index_dtype=index_dtype), shaping.dim_without(dims[0], moved)

    @hookimpl
    def xla_translation(self, ctx: Any, args: Any, *, axes: Axes, index_dtype: np.dtype) -> Any:
        worst = (least if self._direction == "GT" else greatest)(ctx.avals_in[0].dtype)
        return _lowering.position(ctx, args[0], ctx.avals_in[0], axes[0], index_dtype, worst, self._direction)

    @hookimpl
    def samples(self, rng: Any) -> Iterator[Sample]:
        for shape, axis in [((1,), 0), ((5,), 0), ((2, 3), 1), ((3, 2, 2), 0)]:
            yield Sample([rng.standard_normal(shape)], {"axes": (axis,), "index_dtype": np.dtype(np.int32)})
        yield Sample([rng.standard_normal((2, 3, 4)).astype(np.float16)],
                     {"axes": (1,), "index_dtype": np.dtype(np.uint8)})
        yield Sample([rng.integers(0, 3, (4, 3))], {"axes": (0,), "index_dtype": np.dtype(np.int64)})
        yield Sample([np.array([1.0, np.nan, 3.0, np.nan])], {"axes": (0,), "index_dtype": np.dtype(np.int64)})
        yield Sample([np.ones((0,))], {"axes": (0,), "index_dtype": np.dtype(np.int32)}, error=ValueError)
        yield Sample([np.ones((200,))], {"axes": (0,), "index_dtype": np.dtype(np.int8)}, error=ValueError)

    _bind: Callable[..., Any]


class Argmax(_Position):
    """`argmax(operand, axis, index_dtype)`: the position of the largest element along an axis; NaN counts as largest.

    Among equal elements, it is the first. By default, `index_dtype` is the default integer dtype.

    >>> int(lax.argmax(np.array([1.0, 3.0, 2.0]), 0, np.int32))
    1
    """

    name = "argmax"
    _find = staticmethod(np.argmax)
    _direction = "GT"


class Argmin(_Position):
    """`argmin(operand, axis, index_dtype)`: the position of the smallest element along an axis; NaN counts as smallest.

    Among equal elements, it is the first. By default, `index_dtype` is the default integer dtype.

    >>> int(lax.argmin(np.array([1.0, 3.0, 2.0]), 0, np.int32))
    0
    """

    name = "argmin"
    _find = staticmethod(np.argmin)
    _direction = "LT"


argmax = defined(Argmax())
argmin = defined(Argmin())
