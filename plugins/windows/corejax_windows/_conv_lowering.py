"""Convolutions as StableHLO."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from corejax import lax
from corejax_windows.conv_dimension_numbers import Numbers
from corejax_windows.conv_shapes import Pads, Shape


def convolution(ctx: Any, args: Sequence[Any], numbers: Numbers, strides: Shape, pads: Pads,
                dilations: tuple[Shape, Shape], groups: tuple[int, int], levels: tuple[str, str] | None) -> Any:
    """The operation, in a precision of these levels."""
    count = len(strides)
    attributes = {
        "dimension_numbers": _numbers(ctx, numbers), "window_strides": _i64s(ctx, strides),
        "padding": ctx.attribute(f"dense<{[list(pair) for pair in pads] if count else ''}> : tensor<{count}x2xi64>"),
        "lhs_dilation": _i64s(ctx, dilations[0]), "rhs_dilation": _i64s(ctx, dilations[1]),
        "window_reversal": ctx.attribute(f"array<i1{': ' if count else ''}{', '.join(['false'] * count)}>"),
        "feature_group_count": ctx.attribute(f"{groups[0]} : i64"),
        "batch_group_count": ctx.attribute(f"{groups[1]} : i64")}
    if levels is not None:
        attributes["precision_config"] = ctx.attribute(
            f"[{', '.join([f'#stablehlo<precision {level}>' for level in levels])}]")
    return ctx.op("stablehlo.convolution", args, attributes)


def _i64s(ctx: Any, values: Sequence[int]) -> Any:
    return ctx.ir.DenseI64ArrayAttr.get(values)


def _numbers(ctx: Any, numbers: Numbers) -> Any:
    """For each array, what each of its axes is: `[b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1]`."""
    texts = []
    for names, axes in zip(("bf", "oi", "bf"), numbers, strict=True):
        entries = [*names, *map(str, range(len(axes) - 2))]
        texts.append(f"[{', '.join([entries[axes.index(d)] for d in range(len(axes))])}]")
    return ctx.attribute(f"#stablehlo.conv<{texts[0]}x{texts[1]}->{texts[2]}>")


def by_real_parts(ctx: Any, args: Sequence[Any], convolve: Callable[[Any, Any], Any]) -> Any:
    """A convolution of complex operands by three of real ones: XLA's own is slow on CPUs, and missing on GPUs.

    Rounding errors are relative to the larger of the real and the imaginary part.
    """
    def product(x: Any, y: Any) -> Any:
        re, im, re_y, im_y = lax.real(x), lax.imag(x), lax.real(y), lax.imag(y)
        shared = convolve(re + im, re_y)
        return lax.complex(shared - convolve(im, re_y + im_y), shared + convolve(re, im_y - re_y))
    return ctx.lower(product, *args)


def zeros(ctx: Any) -> Any:
    """Sums without terms: StableHLO has no windows without elements."""
    (out,) = ctx.avals_out
    scalar = ctx.constant(np.zeros((), out.dtype))
    return ctx.op("stablehlo.broadcast_in_dim", [scalar], {"broadcast_dimensions": ctx.attribute("array<i64>")})
