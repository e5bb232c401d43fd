"""Sums and extrema of windows.

A sum is linear. The derivative of a maximum is that of the first element that is the largest of its window.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from math import gcd
from typing import Any

import numpy as np

from corejax import lax
from corejax.core import Array, ArrayLike, ShapedArray, dtypes
from corejax.errors import CorejaxTypeError
from corejax.plugin import Sample, hookimpl, jit, not_linear, partials, public, refused, shaping
from corejax_windows._numbers import bound
from corejax_windows._windowing import Ints, Window, canonical, check_windows, handle_of, reduce_window, shape_of
from corejax_windows.selecting import select_and_gather_add

__all__ = ["reduce_window_max", "reduce_window_min", "reduce_window_shape_tuple", "reduce_window_sum"]

#: NumPy combines windows whose sizes along all axes add up to so much at most; for others a program is compiled.
_MOST_PLACES = 64


class _Pool:
    """A plugin that combines the elements of each window, starting from a value that changes nothing."""

    name = ""
    operands = ("operand",)
    transpose: Any = not_linear("of its operand; only its derivative is")

    _ufunc: np.ufunc
    _operation: str  # in StableHLO
    _kinds = "biufc"

    def function(self, bind: Callable[..., Array]) -> Any:
        def pool(operand: ArrayLike, window_dimensions: Sequence[int], window_strides: Sequence[int] | None = None,
                 padding: str | Sequence[tuple[int, int]] = "VALID", base_dilation: Sequence[int] | None = None,
                 window_dilation: Sequence[int] | None = None) -> Array:
            window = canonical(self.name, shape_of(operand), window_dimensions, window_strides, padding, base_dilation,
                               window_dilation)
            return bind(operand, **window.params())
        return pool

    def _identity(self, dtype: np.dtype) -> Any:
        """What is combined with any element without changing it, of this dtype."""
        raise NotImplementedError(type(self).__name__)

    @hookimpl
    def impl(self, args: Any, **params: Any) -> Any:
        (x,), window = args, Window(**params)
        if sum(window.window_dimensions) > _MOST_PLACES + x.ndim:
            return np.asarray(jit(lambda x: self._bind(x, **params))(x))
        for axis in reversed(range(x.ndim)):
            x = _combined(self._ufunc, x, self._identity(x.dtype), axis, window)
        return x

    @hookimpl
    def abstract_eval(self, avals: Any, *, window_dimensions: Ints, window_strides: Ints, padding: Any,
                      base_dilation: Ints, window_dilation: Ints) -> ShapedArray:
        (x,) = avals
        window = Window(window_dimensions, window_strides, padding, base_dilation, window_dilation)
        if dtypes.kind(x.dtype) not in self._kinds:
            raise refused(self.name, f"windows of {dtypes.long_name(x.dtype)} can't be combined in this way",
                          got=str(x), wanted="numbers", todo="convert it first, with x.astype(...)",
                          kind=CorejaxTypeError)
        return ShapedArray(check_windows(self.name, window, x.shape), x.dtype, x.weak_type)

    @hookimpl
    def vmap(self, axis: Any, args: Any, dims: Any, **params: Any) -> Any:
        return self._bind(args[0], **Window(**params).with_axis(dims[0]).params()), dims[0]

    @hookimpl
    def xla_translation(self, ctx: Any, args: Any, **params: Any) -> Any:
        (x,), (out,) = ctx.avals_in, ctx.avals_out
        init = ctx.constant(np.asarray(self._identity(x.dtype), x.dtype))
        window = Window(**params).trimmed(x.shape)
        if window.size < 2:
            starts = ctx.lower(lambda init: lax.broadcast_in_dim(init, out.shape, ()), init)
            if not window.size:
                return starts
            # XLA aborts the process over a reduction by windows of one element with negative padding.
            return self._combine(ctx, out, starts, ctx.lower(
                lambda x, init: window.part(window.padded(x, init), (0,) * x.ndim, out.shape), *args, init))
        (found,) = reduce_window(ctx, args, [init], ctx.out_types, window, lambda a, b: [self._combine(ctx, out, a, b)])
        return found

    def _combine(self, ctx: Any, out: ShapedArray, a: Any, b: Any) -> Any:
        """What two elements are combined to, as MLIR values."""
        return ctx.op(f"stablehlo.{self._operation}", [a, b], None, [a.type])

    @hookimpl
    def samples(self, rng: Any) -> Iterator[Sample]:
        for shape, params in _SAMPLED:
            yield Sample([_apart(rng, shape)], params, domain=(-3.0, 3.0))
        yield Sample([rng.integers(-9, 9, (4, 3)).astype(np.int8)], _params((2, 1), (1, 2)))
        yield Sample([rng.standard_normal(4) + 1j * rng.standard_normal(4)], _params((2,), padding=((1, 0),)))
        yield Sample([np.ones(3)], _params((0,)), error=ValueError)
        yield Sample([np.ones(3)], _params((2, 1)), error=TypeError)

    _bind: Callable[..., Any]


class ReduceWindowSum(_Pool):
    """`reduce_window_sum(operand, window_dimensions, window_strides=None, padding="VALID", ...)`: windows' sums.

    >>> lax.reduce_window_sum(np.array([1.0, 2.0, 3.0, 4.0]), (2,), padding="SAME").tolist()
    [3.0, 5.0, 7.0, 4.0]
    """

    name = "reduce_window_sum"
    linear = (0,)

    _ufunc = np.add
    _operation = "add"
    _kinds = "iufc"

    def _identity(self, dtype: np.dtype) -> Any:
        return np.zeros((), dtype)[()]

    @hookimpl
    def transpose(self, cotangents: Any, args: Any, **params: Any) -> Any:
        shape, window = args[0].aval.shape, Window(**params)
        counts = shape_of(cotangents)
        if 0 in (*shape, *counts):
            return [lax.full(shape, 0, args[0].aval.dtype)]
        # Place k of window o is element i where o * stride + k * dilation == i * base + low. From the element's side,
        # it is place size - 1 - k of a window that slides by base over the cotangents, which are stride apart.
        before = [reach - 1 - low for reach, (low, _) in zip(window.extent, window.padding, strict=True)]
        pads = [(low, base * (n - 1) + reach - low - ((count - 1) * stride + 1))
                for low, base, n, reach, count, stride in zip(
                    before, window.base_dilation, shape, window.extent, counts, window.window_strides, strict=True)]
        back = window._replace(window_strides=window.base_dilation, base_dilation=window.window_strides,
                               padding=tuple(pads))
        return [self._bind(cotangents, **back.params())]


class _Extremum(_Pool):
    def _combine(self, ctx: Any, out: ShapedArray, a: Any, b: Any) -> Any:
        if dtypes.is_complex(out.dtype):
            return ctx.lower(lax.max if self._operation == "maximum" else lax.min, a, b)
        return super()._combine(ctx, out, a, b)

    @hookimpl
    def samples(self, rng: Any) -> Iterator[Sample]:
        yield from super().samples(rng)
        yield Sample([rng.integers(0, 2, (4, 3)) > 0], _params((2, 2)))
        beyond = np.full(2, self._identity(np.dtype(np.float64)))
        yield Sample([np.ones(2)], _params((1,), (9,), ((5, 6),)), results=beyond,
                     exempt={"derivative": "no window has an element"})


class ReduceWindowMax(_Extremum):
    """`reduce_window_max(operand, window_dimensions, window_strides=None, padding="VALID", ...)`: windows' maxima.

    Where all of a window is padding, it is the least value of the dtype.

    >>> lax.reduce_window_max(np.array([1.0, 3.0, 2.0, 0.0]), (2,), (2,)).tolist()
    [3.0, 2.0]
    """

    name = "reduce_window_max"
    jvp = partials(lambda x_dot, out, x, **params: select_and_gather_add(x_dot, x, select_prim=lax.ge_p, **params))

    _ufunc = np.maximum
    _operation = "maximum"

    def _identity(self, dtype: np.dtype) -> Any:
        return bound(dtype, -1)


class ReduceWindowMin(_Extremum):
    """`reduce_window_min(operand, window_dimensions, window_strides=None, padding="VALID", ...)`: windows' minima.

    Where all of a window is padding, it is the greatest value of the dtype.

    >>> lax.reduce_window_min(np.array([1.0, 3.0, 2.0, 0.0]), (2,), (2,)).tolist()
    [1.0, 0.0]
    """

    name = "reduce_window_min"
    jvp = partials(lambda x_dot, out, x, **params: select_and_gather_add(x_dot, x, select_prim=lax.le_p, **params))

    _ufunc = np.minimum
    _operation = "minimum"

    def _identity(self, dtype: np.dtype) -> Any:
        return bound(dtype, 1)


@public
def reduce_window_shape_tuple(operand_shape: Sequence[int], window_dimensions: Sequence[int],
                              window_strides: Sequence[int], padding: Sequence[tuple[int, int]],
                              base_dilation: Sequence[int] | None = None,
                              window_dilation: Sequence[int] | None = None) -> Ints:
    """How many windows there are along each axis of an operand of this shape.

    >>> reduce_window_shape_tuple((8, 8), (2, 3), (2, 1), ((0, 0), (1, 1)))
    (4, 8)
    """
    name = "reduce_window_shape_tuple"
    shape = shaping.as_ints(name, "operand_shape", operand_shape)
    window = canonical(name, shape, window_dimensions, window_strides, padding, base_dilation, window_dilation)
    return check_windows(name, window, shape)


# By NumPy

def _combined(ufunc: np.ufunc, x: Any, start: Any, axis: int, window: Window) -> Any:
    """The windows' elements along one axis combined."""
    along = window.along(axis)
    (size,), (stride,), ((low, _),), (base,), (dilation,) = along
    n, count = x.shape[axis], along.out_shape((x.shape[axis],))[0]
    if size == stride == 1 and count == n and not low and base == 1:
        return x
    out = np.full((*x.shape[:axis], count, *x.shape[axis + 1:]), start, x.dtype)
    into, source = np.moveaxis(out, axis, 0), np.moveaxis(x, axis, 0)
    for k in range(size):
        reached = _reached(count, n, stride, k * dilation - low, base)
        if reached is not None:
            windows, elements = reached
            ufunc(into[windows], source[elements], out=into[windows])
    return out


def _reached(count: int, n: int, stride: int, shift: int, base: int) -> tuple[slice, slice] | None:
    """The windows of which one place is an element, and these elements: i * base == o * stride + shift."""
    first, last = max(0, -(shift // stride)), min(count - 1, ((n - 1) * base - shift) // stride)
    step = base // gcd(stride, base)
    start = next((o for o in range(first, min(first + step, last + 1)) if not (o * stride + shift) % base), None)
    if start is None:
        return None
    begin, hop = (start * stride + shift) // base, step * stride // base
    end = begin + (last - start) // step * hop
    return slice(start, last + 1, step), slice(begin, end + 1, hop)


# Samples

def _params(sizes: Ints, strides: Ints | None = None, padding: Any = None, base: Ints | None = None,
            dilation: Ints | None = None) -> dict[str, Any]:
    ones = (1,) * len(sizes)
    return Window(sizes, strides or ones, padding or ((0, 0),) * len(sizes), base or ones, dilation or ones).params()


def _apart(rng: Any, shape: Ints) -> Any:
    """Distinct values, far from each other, so that differences don't see ties."""
    return (rng.permutation(int(np.prod(shape))).reshape(shape) - 2.3) * 0.5


_SAMPLED: list[tuple[Ints, dict[str, Any]]] = [
    ((), _params(())), ((6,), _params((3,), (2,), ((1, 1),))), ((2, 5), _params((1, 2), (1, 3), ((0, 0), (-1, 2)))),
    ((4, 3), _params((2, 2), (2, 1), ((0, 1), (2, 0)), (2, 2), (2, 1))),
    ((0, 3), _params((1, 2))), ((2, 3), _params((3, 1)))]


reduce_window_sum: Any = handle_of(ReduceWindowSum())
reduce_window_max: Any = handle_of(ReduceWindowMax())
reduce_window_min: Any = handle_of(ReduceWindowMin())
