"""What belongs to the largest or the smallest element of each window: the derivatives of such extrema.

`select_and_gather_add` reads one number for each window, `select_and_scatter_add` writes it back: each is the other's
transpose. Of elements that tie, the first in the window is selected.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from math import prod
from typing import Any

import numpy as np

from corejax import lax
from corejax.core import Array, ArrayLike, Primitive, ShapedArray, dtypes, to_dim
from corejax.errors import CorejaxTypeError, CorejaxValueError
from corejax.plugin import Sample, hookimpl, itself, jit, partials, refused
from corejax_windows._doubling import doubled
from corejax_windows._numbers import bound, keeps
from corejax_windows._windowing import (
    Ints,
    Pads,
    Window,
    canonical,
    check_windows,
    handle_of,
    plain,
    reduce_window,
    same_types,
    shape_of,
)

__all__ = ["select_and_gather_add", "select_and_scatter_add"]

#: Windows of up to so many elements are taken apart: one slice of the operand for each place in a window.
MOST_PARTS = 32


class SelectAndGatherAdd:
    """`select_and_gather_add(tangents, operand, select_prim, window_dimensions, ...)`: what the windows' best have.

    For each window of the operand, the element of `tangents` where the operand is largest (`lax.ge_p`) or smallest
    (`lax.le_p`); 0 where all of a window is padding.

    >>> lax.select_and_gather_add(np.array([1, 2, 3, 4]), np.array([7.0, 9.0, 5.0, 6.0]), lax.ge_p, (2,), (2,)).tolist()
    [2, 4]
    """

    name = "select_and_gather_add"
    operands = ("tangents", "operand")
    jvp = partials(itself, None)
    not_linear_in = (1,)

    def function(self, bind: Callable[..., Array]) -> Any:
        def select_and_gather_add(tangents: ArrayLike, operand: ArrayLike, select_prim: Primitive,
                                  window_dimensions: Sequence[int], window_strides: Sequence[int] | None = None,
                                  padding: str | Sequence[tuple[int, int]] = "VALID",
                                  base_dilation: Sequence[int] | None = None,
                                  window_dilation: Sequence[int] | None = None) -> Array:
            window = canonical(self.name, shape_of(operand), window_dimensions, window_strides, padding, base_dilation,
                               window_dilation)
            return bind(tangents, operand, select_prim=select_prim, **window.params())
        return select_and_gather_add

    @hookimpl
    def impl(self, args: Any, *, select_prim: Primitive, **params: Any) -> Any:
        window = Window(**params)
        if window.size > MOST_PARTS:
            return np.asarray(jit(partial(self._bind, select_prim=select_prim, **params))(*args))
        return np.asarray(_gathered(args[0], args[1], select_prim, window))

    @hookimpl
    def abstract_eval(self, avals: Any, *, select_prim: Primitive, window_dimensions: Ints, window_strides: Ints,
                      padding: Pads, base_dilation: Ints, window_dilation: Ints) -> ShapedArray:
        t, x = avals
        _check_selection(self.name, select_prim, avals)
        window = Window(window_dimensions, window_strides, padding, base_dilation, window_dilation)
        out = check_windows(self.name, window, x.shape)
        if t.shape != x.shape:
            raise refused(self.name, "there must be a tangent for each element", got=f"{t} and {x}",
                          wanted="one shape for both", todo="broadcast the tangents first", kind=CorejaxTypeError)
        return ShapedArray(out, t.dtype, t.weak_type and (x.weak_type or x.dtype != t.dtype))

    @hookimpl
    def transpose(self, cotangents: Any, args: Any, *, select_prim: Primitive, **params: Any) -> Any:
        x, window = args[1], Window(**params)
        if any([d != 1 for d in window.window_dilation]) or cotangents.dtype != x.dtype:
            return [_scattered(cotangents, x, select_prim, window), None]
        wide = window.base_dilation
        if any([d != 1 for d in wide]):
            x = lax.pad(x, _worst(select_prim, x.dtype), [(0, 0, d - 1) for d in wide])
        out = select_and_scatter_add.primitive.bind(
            cotangents, x, select_prim=select_prim, window_dimensions=window.window_dimensions,
            window_strides=window.window_strides, padding=window.padding)
        if any([d != 1 for d in wide]):
            out = lax.slice(out, (0,) * len(wide), shape_of(out), wide)
        return [out, None]

    @hookimpl
    def vmap(self, axis: Any, args: Any, dims: Any, *, select_prim: Primitive, **params: Any) -> Any:
        at = next(dim for dim in dims if dim is not None)
        moved = [to_dim(x, dim, at, axis.size) for x, dim in zip(args, dims, strict=True)]
        window = Window(**params).with_axis(at)
        return self._bind(*moved, select_prim=select_prim, **window.params()), at

    @hookimpl
    def xla_translation(self, ctx: Any, args: Any, *, select_prim: Primitive, **params: Any) -> Any:
        (t, x), (out,) = ctx.avals_in, ctx.avals_out
        window = Window(**params).trimmed(x.shape)
        if not window.size or not out.size:
            return ctx.lower(lambda t: lax.full(out.shape, 0, out.dtype), args[0])
        if window.size <= MOST_PARTS:
            return ctx.lower(lambda t, x: _gathered(t, x, select_prim, window), *args)
        worst, nothing = _worst(select_prim, x.dtype), np.zeros((), t.dtype)
        if ctx.platform in ("cuda", "rocm"):  # which have no windows of several operands
            return ctx.lower(lambda t, x: doubled(
                lambda a, b: _better(select_prim, a, b), [x, t], [worst, nothing], Window(**params))[1], *args)
        types = [ctx.type_of(ShapedArray(out.shape, x.dtype)), *ctx.out_types]
        return reduce_window(
            ctx, [args[1], args[0]], [ctx.constant(worst), ctx.constant(nothing)], types, window,
            lambda *pair: ctx.lower(lambda a, s, b, t: _better(select_prim, (a, s), (b, t)), *pair))[1]

    @hookimpl
    def samples(self, rng: Any) -> Iterator[Sample]:
        for shape, params in _SAMPLED:
            yield Sample([rng.standard_normal(shape), _apart(rng, shape)], params, domain=(None, (-3.0, 3.0)))
        x = np.array([[2.0, 1.0, 1.5], [-4.0, 0.0, 3.0]])
        yield Sample([np.arange(6.0).reshape(2, 3), x], _params("ge", (1, 2)),
                     results=np.array([[0.0, 2.0], [4.0, 5.0]]))
        yield Sample([np.arange(4), np.array([3, -2, -2, 1], np.int8)], _params("le", (3,)), results=np.array([1, 1]))
        yield Sample([np.ones(3), np.ones(4)], _params("ge", (2,)), error=TypeError)
        yield Sample([np.ones(3), np.ones(3)], {**_params("ge", (2,)), "select_prim": lax.add_p}, error=ValueError)

    _bind: Callable[..., Any]


class SelectAndScatterAdd:
    """`select_and_scatter_add(source, operand, select_prim, window_dimensions, ...)`: sums at the windows' best.

    There is one element of `source` for each window of the operand. It is added at the place where that window is
    largest (`lax.ge_p`) or smallest (`lax.le_p`); the result has the shape of the operand.

    >>> x = np.array([7.0, 9.0, 5.0, 6.0])
    >>> lax.select_and_scatter_add(np.array([1.0, 2.0, 3.0]), x, lax.ge_p, (2,)).tolist()
    [0.0, 3.0, 0.0, 3.0]
    """

    name = "select_and_scatter_add"
    operands = ("source", "operand")
    jvp = partials(itself, None)
    not_linear_in = (1,)

    def function(self, bind: Callable[..., Array]) -> Any:
        def select_and_scatter_add(source: ArrayLike, operand: ArrayLike, select_prim: Primitive,
                                   window_dimensions: Sequence[int], window_strides: Sequence[int] | None = None,
                                   padding: str | Sequence[tuple[int, int]] = "VALID") -> Array:
            window = canonical(self.name, shape_of(operand), window_dimensions, window_strides, padding)
            return bind(source, operand, select_prim=select_prim, window_dimensions=window.window_dimensions,
                        window_strides=window.window_strides, padding=window.padding)
        return select_and_scatter_add

    @hookimpl
    def impl(self, args: Any, *, select_prim: Primitive, **params: Any) -> Any:
        (source, x), window = args, plain(**params)
        if not source.size or not x.size:
            return np.zeros(x.shape, x.dtype)
        if window.size > MOST_PARTS:
            return np.asarray(jit(partial(self._bind, select_prim=select_prim, **params))(*args))
        return np.asarray(_summed(source, x, select_prim, window))

    @hookimpl
    def abstract_eval(self, avals: Any, *, select_prim: Primitive, window_dimensions: Ints, window_strides: Ints,
                      padding: Pads) -> ShapedArray:
        source, x = avals
        _check_selection(self.name, select_prim, avals)
        same_types(self.name, avals, "source and operand")
        counts = check_windows(self.name, plain(window_dimensions, window_strides, padding), x.shape)
        if source.shape != counts:
            raise refused(self.name, "there must be one element of source for each window", got=f"{source}, for {x}",
                          wanted=f"a source of shape {counts}", kind=CorejaxTypeError,
                          todo="compute the number of windows with lax.reduce_window_shape_tuple")
        return ShapedArray(x.shape, source.dtype, source.weak_type and x.weak_type)

    @hookimpl
    def transpose(self, cotangents: Any, args: Any, *, select_prim: Primitive, **params: Any) -> Any:
        return [select_and_gather_add.primitive.bind(cotangents, args[1], select_prim=select_prim,
                                                     **plain(**params).params()), None]

    @hookimpl
    def vmap(self, axis: Any, args: Any, dims: Any, *, select_prim: Primitive, **params: Any) -> Any:
        at = next(dim for dim in dims if dim is not None)
        moved = [to_dim(x, dim, at, axis.size) for x, dim in zip(args, dims, strict=True)]
        window = plain(**params).with_axis(at)
        return self._bind(
            *moved, select_prim=select_prim, window_dimensions=window.window_dimensions,
            window_strides=window.window_strides, padding=window.padding), at

    @hookimpl
    def xla_translation(self, ctx: Any, args: Any, *, select_prim: Primitive, **params: Any) -> Any:
        (source, x), window = ctx.avals_in, plain(**params)
        if not source.size or not x.size:
            return ctx.lower(lambda s: lax.full(x.shape, 0, x.dtype), args[0])
        if window.size <= MOST_PARTS and ctx.platform == "cpu":
            return ctx.lower(lambda s, x: _summed(s, x, select_prim, window), *args)
        return ctx.lower(lambda s, x: _by_native(s, x, select_prim, window), *args)

    @hookimpl
    def samples(self, rng: Any) -> Iterator[Sample]:
        for shape, given in _SAMPLED:
            params = {name: given[name] for name in ("select_prim", "window_dimensions", "window_strides", "padding")}
            counts = plain(*list(params.values())[1:]).out_shape(shape)
            yield Sample([rng.standard_normal(counts), _apart(rng, shape)], params, domain=(None, (-3.0, 3.0)))
        x = np.array([[2.0, 1.0, 1.5, 3.0]])
        yield Sample([np.array([[5.0, 6.0, 7.0]]), x], {
            "select_prim": lax.le_p, "window_dimensions": (1, 2), "window_strides": (1, 1),
            "padding": ((0, 0), (0, 0))},
                     results=np.array([[0.0, 11.0, 7.0, 0.0]]))
        yield Sample([np.ones(3), np.ones(3)], params, error=TypeError)

    _bind: Callable[..., Any]


# By slices

def _gathered(t: Any, x: Any, select_prim: Primitive, window: Window) -> Any:
    """The tangents of the windows' best, from one slice of the operands for each place in a window.

    That is elementwise, so compilers make one pass of it, where windows of pairs are no program that they optimize.
    """
    out_shape, worst = window.out_shape(shape_of(x)), _worst(select_prim, x.dtype)
    if 0 in out_shape:
        return lax.full(out_shape, 0, t.dtype)
    present = [window.along(axis).present(n) for axis, n in enumerate(shape_of(x))]
    x, t = window.padded(x, worst), window.padded(t, np.zeros((), t.dtype))
    best, found = lax.full(out_shape, worst, x.dtype), lax.full(out_shape, 0, t.dtype)
    for offset in window.offsets():
        other = window.part(x, offset, out_shape)
        kept = keeps(select_prim, best, other)
        for axis, flags in enumerate(present):  # any number is selected over NaN, but padding isn't
            stride, start = window.window_strides[axis], offset[axis]
            missing = ~flags[start:start + stride * (out_shape[axis] - 1) + 1:stride]
            if missing.any():
                kept = lax.bitwise_or(kept, lax.broadcast_in_dim(missing, out_shape, (axis,)))
        best, found = lax.select(kept, best, other), lax.select(kept, found, window.part(t, offset, out_shape))
    return found


def _summed(source: Any, x: Any, select_prim: Primitive, window: Window) -> Any:
    """The source summed where the windows' best are, as one array for each place in a window.

    Places are added from the last to the first. So windows add to an element in the order of the windows, as
    `stablehlo.select_and_scatter` does, and the sums are the same to the bit.
    """
    shape, counts = shape_of(x), shape_of(source)
    padded = window.padded(x, _worst(select_prim, x.dtype))
    offsets = list(window.offsets())
    best, place = window.part(padded, offsets[0], counts), lax.full(counts, 0, np.int8)
    for i, offset in enumerate(offsets[1:], 1):
        other = window.part(padded, offset, counts)
        kept = keeps(select_prim, best, other)
        best, place = lax.select(kept, best, other), lax.select(kept, place, lax.full(counts, i, np.int8))
    combine = lax.bitwise_or if x.dtype == dtypes.bool_ else lax.add
    nothing, out = lax.full(counts, 0, x.dtype), None
    for i, offset in reversed(list(enumerate(offsets))):
        part = lax.select(lax.eq(place, np.int8(i)), source, nothing)
        ways = [(start, n - start - (stride * (count - 1) + 1), stride - 1) for start, n, stride, count in zip(
            offset, shape_of(padded), window.window_strides, counts, strict=True)]
        part = lax.pad(part, np.zeros((), x.dtype), ways)
        out = part if out is None else combine(out, part)
    return _unpadded(out, window, shape)


def _by_native(source: Any, x: Any, select_prim: Primitive, window: Window) -> Any:
    """The same by the compiler's operation, over an operand padded with the worst value: some crash over padding."""
    from corejax_windows.select_scattering import select_and_scatter

    shape = shape_of(x)
    combine = lax.bitwise_or if x.dtype == dtypes.bool_ else lax.add
    out = select_and_scatter(
        window.padded(x, _worst(select_prim, x.dtype)), lambda a, b: keeps(select_prim, a, b), window.window_dimensions,
        window.window_strides, ((0, 0),) * len(shape), source, np.zeros((), x.dtype), combine)
    return _unpadded(out, window, shape)


def _unpadded(out: Any, window: Window, shape: Ints) -> Any:
    """What an array with padding has where the operand is; 0 where negative padding cut it off."""
    if all([low >= 0 and high >= 0 for low, high in window.padding]):
        starts = [low for low, _ in window.padding]
        return lax.slice(out, starts, [low + n for low, n in zip(starts, shape, strict=True)])
    return lax.pad(out, np.zeros((), out.dtype), [(-low, -high, 0) for low, high in window.padding])


def _scattered(source: Any, x: Any, select_prim: Primitive, window: Window) -> Any:
    """The same for windows with gaps: where each window's best is, counted from 1, and a scatter to there."""
    shape = shape_of(x)
    places = lax.reshape(lax.iota(np.int64, prod(shape)), shape)
    found = select_and_gather_add.primitive.bind(lax.add(places, np.int64(1)), x, select_prim=select_prim,
                                                 **window.params())
    numbers = lax.ScatterDimensionNumbers((), (0,), (0,))
    count = prod(shape_of(source))
    sums = lax.scatter_add(lax.full((prod(shape) + 1,), 0, source.dtype), lax.reshape(found, (count, 1)),
                           lax.reshape(source, (count,)), numbers)
    return lax.reshape(lax.slice(sums, (1,), (prod(shape) + 1,)), shape)


# Two elements

def _better(select_prim: Primitive, a: Sequence[Any], b: Sequence[Any]) -> list[Any]:
    """Of two elements with what belongs to each, the first if it is selected over the second."""
    kept = keeps(select_prim, a[0], b[0])
    return [lax.select(kept, x, y) for x, y in zip(a, b, strict=True)]


def _worst(select_prim: Primitive, dtype: np.dtype) -> Any:
    """What is selected over no number."""
    return np.asarray(bound(dtype, -1 if select_prim is lax.ge_p else 1), dtype)


# Checks and samples

def _check_selection(name: str, select_prim: Any, avals: Sequence[ShapedArray]) -> None:
    if select_prim is not lax.ge_p and select_prim is not lax.le_p:
        raise refused(name, "what is selected must be the largest or the smallest element", got=select_prim,
                      wanted="lax.ge_p or lax.le_p", kind=CorejaxValueError,
                      todo="select_and_scatter takes any function that says which of two elements to select")
    for aval in avals:
        if dtypes.kind(aval.dtype) not in "biufc":
            raise refused(name, f"elements of type {dtypes.short_name(aval.dtype)} have no order", got=str(aval),
                          wanted="numbers or booleans", todo="convert them to numbers")


def _params(select: str, sizes: Ints, strides: Ints | None = None, padding: Pads | None = None,
            base: Ints | None = None, dilation: Ints | None = None) -> dict[str, Any]:
    ones = (1,) * len(sizes)
    window = Window(sizes, strides or ones, padding or ((0, 0),) * len(sizes), base or ones, dilation or ones)
    return {"select_prim": lax.ge_p if select == "ge" else lax.le_p, **window.params()}


def _apart(rng: Any, shape: Ints) -> Any:
    """Distinct values, far from each other, so that differences don't see ties."""
    return (rng.permutation(prod(shape)).reshape(shape) - 2.3) * 0.5


_SAMPLED: list[tuple[Ints, dict[str, Any]]] = [
    ((), _params("ge", ())), ((4,), _params("ge", (3,), (2,), ((1, 1),), (2,))),
    ((2, 5), _params("le", (1, 2), (1, 2), ((0, 0), (-1, 2)))), ((7, 6), _params("le", (6, 6), None, ((1, 0), (0, 0)))),
    ((4, 3), _params("ge", (2, 2), (2, 1), ((0, 1), (2, 0)), (2, 2), (2, 1))), ((2, 0), _params("ge", (2, 1)))]


select_and_gather_add: Any = handle_of(SelectAndGatherAdd())
select_and_scatter_add: Any = handle_of(SelectAndScatterAdd())
