"""`conv_general_dilated`, the only convolution: any number of axes in space, strides, dilations, padding and groups.

It is bilinear. Without space it is the matrix product (batch, in) x (in, out); its derivatives by either operand are
convolutions in which batch and features have changed places, as in the derivatives of a matrix product.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from corejax import lax
from corejax.core import Array, ArrayLike, DTypeLike, Linear, ShapedArray, aval_of, dtypes
from corejax.errors import CorejaxValueError
from corejax.plugin import Sample, define, hookimpl, itself, jit, partials, refused
from corejax_lax_basic import PrecisionLike
from corejax_windows import _conv_grouped, _conv_host, _conv_lowering, _conv_maps, _conv_samples
from corejax_windows._conv_axes import merged, split
from corejax_windows.conv_dimension_numbers import (
    ConvGeneralDilatedDimensionNumbers,
    Numbers,
    canonical_numbers,
    check_numbers,
)
from corejax_windows.conv_shapes import (
    Geometry,
    Pads,
    Shape,
    as_pads,
    canonical_pads,
    dilated,
    group_count,
    positive,
    reordered,
    result_shape,
)

__all__ = ["conv_general_dilated"]

#: A level for each operand
Levels = tuple[str, str] | None


class ConvGeneralDilated:
    """`conv_general_dilated(lhs, rhs, window_strides, padding, ...)`: slide the window rhs over lhs, and sum products.

    `dimension_numbers` say which axes are batch, features and space: None for ("NCHW", "OIHW", "NCHW"), three other
    words, or a `ConvDimensionNumbers`; `window_strides`, `padding` and the dilations have an entry for each axis in
    space, in the order of the second word. `padding` is "SAME", "SAME_LOWER", "VALID", or pairs (before, after), where
    negative numbers remove elements. With `feature_group_count`, each group of output features sees its own group of
    input features; with `batch_group_count`, its own part of the batch.

    Sums are computed in, and returned as, `preferred_element_type` if it is given.

    >>> x, window = np.array([[[1.0, 2.0, 4.0, 8.0]]]), np.array([[[1.0, -1.0]]])
    >>> conv_general_dilated(x, window, (1,), "VALID").tolist()
    [[[-1.0, -2.0, -4.0]]]
    >>> conv_general_dilated(np.ones((1, 9, 9, 3)), np.ones((2, 2, 3, 5)), (1, 2), "SAME",
    ...                      dimension_numbers=("NHWC", "HWIO", "NHWC")).shape
    (1, 9, 5, 5)
    """

    name = "conv_general_dilated"
    operands = ("lhs", "rhs")

    def function(self, bind: Callable[..., Array]) -> Any:
        def conv_general_dilated(lhs: ArrayLike, rhs: ArrayLike, window_strides: Sequence[int],
                                 padding: str | Sequence[tuple[int, int]], lhs_dilation: Sequence[int] | None = None,
                                 rhs_dilation: Sequence[int] | None = None,
                                 dimension_numbers: ConvGeneralDilatedDimensionNumbers = None,
                                 feature_group_count: int = 1, batch_group_count: int = 1,
                                 precision: PrecisionLike = None,
                                 preferred_element_type: DTypeLike | None = None) -> Array:
            sizes = aval_of(lhs).shape, aval_of(rhs).shape
            numbers = canonical_numbers(self.name, len(sizes[0]), len(sizes[1]), dimension_numbers)
            space, window = [tuple([shape[d] for d in axes[2:]])
                             for shape, axes in zip(sizes, numbers[:2], strict=True)]
            strides = positive(self.name, "window_strides", window_strides, len(space))
            spread = positive(self.name, "lhs_dilation", lhs_dilation, len(space))
            apart = positive(self.name, "rhs_dilation", rhs_dilation, len(space))
            if isinstance(padding, str) and any([step != 1 for step in spread]):
                raise refused(self.name, f"padding={padding!r} has no meaning when lhs is dilated",
                              got=f"padding={padding!r}, lhs_dilation={spread}", wanted="a pair for each axis in space",
                              todo="give pairs, or use lax.conv_transpose", kind=CorejaxValueError)
            if preferred_element_type is not None:
                preferred_element_type = ShapedArray((), preferred_element_type).dtype
            return bind(lhs, rhs, window_strides=strides, lhs_dilation=spread, rhs_dilation=apart,
                        padding=canonical_pads(self.name, padding, space, dilated(window, apart), strides),
                        dimension_numbers=numbers,
                        feature_group_count=group_count(self.name, "feature_group_count", feature_group_count),
                        batch_group_count=group_count(self.name, "batch_group_count", batch_group_count),
                        precision=canonical_levels(self.name, precision),
                        preferred_element_type=preferred_element_type)
        return conv_general_dilated

    @hookimpl
    def impl(self, args: Any, *, window_strides: Shape, padding: Pads, lhs_dilation: Shape, rhs_dilation: Shape,
             dimension_numbers: Numbers, feature_group_count: int, batch_group_count: int,
             precision: Levels, preferred_element_type: np.dtype | None) -> Any:
        lhs, rhs = args
        if _conv_host.is_mostly_padding(lhs, dimension_numbers, padding, lhs_dilation):
            def program(lhs: Any, rhs: Any) -> Any:
                return conv_general_dilated.primitive.bind(
                    lhs, rhs, window_strides=window_strides, padding=padding, lhs_dilation=lhs_dilation,
                    rhs_dilation=rhs_dilation, dimension_numbers=dimension_numbers,
                    feature_group_count=feature_group_count, batch_group_count=batch_group_count,
                    precision=precision, preferred_element_type=preferred_element_type)
            return np.asarray(jit(program)(lhs, rhs))
        return _conv_host.convolution(lhs, rhs, dimension_numbers, window_strides, padding,
                                      (lhs_dilation, rhs_dilation), (feature_group_count, batch_group_count),
                                      preferred_element_type or lhs.dtype)

    @hookimpl
    def abstract_eval(self, avals: Any, *, window_strides: Shape, padding: Pads, lhs_dilation: Shape,
                      rhs_dilation: Shape, dimension_numbers: Numbers, feature_group_count: int,
                      batch_group_count: int, precision: Levels,
                      preferred_element_type: np.dtype | None) -> ShapedArray:
        lhs, rhs = avals
        dtype = _result_dtype(self.name, lhs, rhs, preferred_element_type)
        check_numbers(self.name, lhs.ndim, rhs.ndim, dimension_numbers)
        count = lhs.ndim - 2
        strides = positive(self.name, "window_strides", window_strides, count)
        spread = positive(self.name, "lhs_dilation", lhs_dilation, count)
        apart = positive(self.name, "rhs_dilation", rhs_dilation, count)
        pads = as_pads(self.name, padding, count)
        canonical_levels(self.name, precision)
        (batch, features, *space), (outs, ins, *window) = [
            [aval.shape[d] for d in axes] for aval, axes in zip(avals, dimension_numbers[:2], strict=True)]
        _check_groups(self.name, avals, group_count(self.name, "feature_group_count", feature_group_count),
                      group_count(self.name, "batch_group_count", batch_group_count), features, ins, outs)
        shape = result_shape(self.name, (batch, features, *dilated(space, spread)),
                             (outs, ins, *dilated(window, apart)), strides, pads, batch_group_count)
        return ShapedArray(reordered(shape, dimension_numbers[2]), dtype, lhs.weak_type and rhs.weak_type)

    jvp = partials(itself, itself)

    @hookimpl
    def transpose(self, cotangents: Any, args: Any, *, window_strides: Shape, padding: Pads, lhs_dilation: Shape,
                  rhs_dilation: Shape, dimension_numbers: Numbers, feature_group_count: int, batch_group_count: int,
                  precision: Levels, preferred_element_type: np.dtype | None) -> Any:
        lhs, rhs = args
        by_lhs = type(lhs) is Linear
        wanted, other = (lhs.aval, rhs) if by_lhs else (rhs.aval, lhs)
        ct = aval_of(cotangents)
        if not (ct.size and wanted.size and aval_of(other).size):  # without terms; its windows might have no size
            zeros = lax.full(wanted.shape, 0, wanted.dtype)
            return [zeros, None] if by_lhs else [None, zeros]
        if aval_of(other).dtype != ct.dtype:
            other = lax.convert_element_type(other, ct.dtype)
        sides = (wanted.shape, aval_of(rhs).shape) if by_lhs else (aval_of(lhs).shape, wanted.shape)
        geometry = Geometry((*sides, ct.shape), dimension_numbers, padding,
                            (lhs_dilation, rhs_dilation, window_strides))
        found = (_by_lhs if by_lhs else _by_rhs)(cotangents, other, geometry, Convolution(
            dimension_numbers, window_strides, lhs_dilation, rhs_dilation, feature_group_count, batch_group_count,
            {"precision": precision, "preferred_element_type": preferred_element_type}))
        if aval_of(found).dtype != wanted.dtype:
            found = lax.convert_element_type(found, wanted.dtype)
        return [found, None] if by_lhs else [None, found]

    @hookimpl
    def vmap(self, axis: Any, args: Any, dims: Any, **params: Any) -> Any:
        return _conv_maps.mapped(conv_general_dilated.primitive, axis.size, args, dims, params)

    @hookimpl
    def xla_translation(self, ctx: Any, args: Any, *, window_strides: Shape, padding: Pads, lhs_dilation: Shape,
                        rhs_dilation: Shape, dimension_numbers: Numbers, feature_group_count: int,
                        batch_group_count: int, precision: Levels, preferred_element_type: np.dtype | None) -> Any:
        if not all([aval.size for aval in (*ctx.avals_in, *ctx.avals_out)]):
            return _conv_lowering.zeros(ctx)
        if dtypes.kind(ctx.avals_in[0].dtype) == "c" and ctx.platform in ("cpu", "cuda", "rocm"):
            parts = None if preferred_element_type is None else np.empty(0, preferred_element_type).real.dtype
            real = {"window_strides": window_strides, "padding": padding, "lhs_dilation": lhs_dilation,
                    "rhs_dilation": rhs_dilation, "dimension_numbers": dimension_numbers,
                    "feature_group_count": feature_group_count, "batch_group_count": batch_group_count,
                    "precision": precision, "preferred_element_type": parts}
            return _conv_lowering.by_real_parts(ctx, args, lambda x, y: conv_general_dilated.primitive.bind(
                x, y, **real))
        conv = _conv_grouped.Grouped(dimension_numbers, window_strides, padding, lhs_dilation, rhs_dilation,
                                     feature_group_count, batch_group_count, ctx.avals_out[0].stored.dtype,
                                     ctx.avals_out[0].shape)
        way = _conv_grouped.way(conv, *[aval.shape for aval in ctx.avals_in]) if ctx.platform == "cpu" else None
        if way is not None:
            return ctx.lower(lambda x, y: way(x, y, conv), *args)
        return _conv_lowering.convolution(ctx, args, dimension_numbers, window_strides, padding,
                                          (lhs_dilation, rhs_dilation), (feature_group_count, batch_group_count),
                                          precision)

    @hookimpl
    def samples(self, rng: Any) -> Iterator[Sample]:
        return _conv_samples.samples(rng)


conv_general_dilated: Any = define(ConvGeneralDilated())


# Checks

def canonical_levels(name: str, precision: Any) -> Levels:
    """A precision as the names of two levels, or None: a convolution has no algorithms to choose from."""
    if precision is None:
        return None
    pair = tuple(precision) if type(precision) in (tuple, list) else (precision, precision)
    try:
        lhs, rhs = [str(lax.Precision(level.lower() if isinstance(level, str) else level)) for level in pair]
    except (TypeError, ValueError) as error:
        raise refused(name, "there is no such precision for a convolution", got=f"precision={precision!r:.80}",
                      wanted="None, 'default', 'high' or 'highest', a lax.Precision, or a pair of them",
                      todo="leave it out; to sum in another type, pass preferred_element_type",
                      kind=CorejaxValueError) from error
    return lhs, rhs


def _result_dtype(name: str, lhs: ShapedArray, rhs: ShapedArray, preferred: np.dtype | None) -> np.dtype:
    if lhs.dtype != rhs.dtype:
        raise refused(name, "operands differ in dtype", got=f"{lhs} and {rhs}", wanted="one dtype",
                      todo="convert with lax.convert_element_type or x.astype(...)")
    have = dtypes.kind(lhs.dtype)
    if have not in "biufc":
        raise refused(name, "only numbers are convolved", got=f"{lhs} and {rhs}", wanted="numbers or booleans",
                      todo="convert the operands to numbers first")
    if preferred is None or preferred == lhs.dtype:
        return lhs.dtype
    want = dtypes.kind(preferred)
    holds = {"b": "iufc", "i": "if", "u": "iuf", "f": "f", "c": "c"}[have]
    if want not in holds or dtypes.bits_of(preferred) < dtypes.bits_of(lhs.dtype):
        raise refused(name, f"preferred_element_type {dtypes.short_name(preferred)} can't hold sums of products of "
                      f"{dtypes.short_name(lhs.dtype)}", got=f"preferred_element_type={preferred} for {lhs}",
                      wanted=f"a dtype at least as wide, of kind {' or '.join(map(repr, holds))}",
                      todo="convert the result with lax.convert_element_type")
    return preferred


def _check_groups(name: str, avals: Sequence[ShapedArray], feature_groups: int, batch_groups: int, features: int,
                  ins: int, outs: int) -> None:
    lhs, rhs = avals
    if feature_groups > 1 and batch_groups > 1:
        raise refused(name, "features and batch can't both be in groups",
                      got=f"feature_group_count={feature_groups}, batch_group_count={batch_groups}",
                      wanted="1 for one of them", todo="convolve twice, or use cj.vmap", kind=CorejaxValueError)
    if features != ins * feature_groups:
        each = f" in each of {feature_groups} groups" if feature_groups > 1 else ""
        raise refused(name, f"lhs has {features} features, and the window takes {ins}{each}",
                      got=f"{lhs} and {rhs}", wanted="as many input features of rhs as lhs has, divided by "
                      "feature_group_count", todo="check the shapes and dimension_numbers; for one window for each "
                      "feature, pass feature_group_count", kind=CorejaxValueError)
    if outs % feature_groups:
        raise refused(name, f"feature_group_count={feature_groups} doesn't divide the output features",
                      got=f"{outs} output features in {rhs}", wanted="a multiple of feature_group_count",
                      todo="choose another number of groups", kind=CorejaxValueError)


# Transposes

class Convolution(NamedTuple):
    """The params of a convolution but its padding."""

    numbers: Numbers
    strides: Shape
    lhs_dilation: Shape
    rhs_dilation: Shape
    feature_groups: int
    batch_groups: int
    types: dict[str, Any]


def _swapped(axes: Shape) -> Shape:
    return (axes[1], axes[0], *axes[2:])


def _by_lhs(ct: Any, rhs: Any, geometry: Geometry, conv: Convolution) -> Any:
    """The cotangent of lhs: for (batch, in) x (in, out) it is (batch, out) x (out, in).

    Groups of input features are groups of its output features. If the batch is in groups, (group batch, in) is computed
    as (batch, group in).
    """
    lhs_axes, (outs, ins, *window), out_axes = conv.numbers
    groups = conv.feature_groups * conv.batch_groups
    if groups > 1:
        rhs = merged(split(rhs, outs, groups), outs, ins)
    found = conv_general_dilated.primitive.bind(
        ct, lax.rev(rhs, window), window_strides=conv.lhs_dilation, padding=geometry.lhs_pads(),
        lhs_dilation=conv.strides, rhs_dilation=conv.rhs_dilation,
        dimension_numbers=(out_axes, (ins, outs, *window), lhs_axes), feature_group_count=groups, batch_group_count=1,
        **conv.types)
    if conv.batch_groups == 1:
        return found
    return merged(split(found, lhs_axes[1], groups), lhs_axes[1], lhs_axes[0])


def _by_rhs(ct: Any, lhs: Any, geometry: Geometry, conv: Convolution) -> Any:
    """The cotangent of rhs: for (batch, in) x (in, out) it is (in, batch) x (batch, out).

    So groups of features become groups of the batch, and groups of the batch those of features.
    """
    lhs_axes, rhs_axes, out_axes = map(_swapped, conv.numbers)
    return conv_general_dilated.primitive.bind(
        lhs, ct, window_strides=conv.rhs_dilation, padding=geometry.rhs_pads(), lhs_dilation=conv.lhs_dilation,
        rhs_dilation=conv.strides, dimension_numbers=(lhs_axes, out_axes, rhs_axes),
        feature_group_count=conv.batch_groups, batch_group_count=conv.feature_groups, **conv.types)
