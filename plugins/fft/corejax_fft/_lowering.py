"""Transforms as StableHLO."""

from __future__ import annotations

from typing import Any

import numpy as np

from corejax.core import ShapedArray


def lower(ctx: Any, x: Any, name: str, lengths: tuple[int, ...]) -> Any:
    """A transform by its name; of nothing, or to nothing, it is zeros."""
    (aval,), (out,) = ctx.avals_in, ctx.avals_out
    if not aval.size or not out.size:
        zero = ctx.constant(np.zeros((), out.dtype))
        return ctx.op("stablehlo.broadcast_in_dim", [zero], {"broadcast_dimensions": ctx.attribute("array<i64>")})
    if name == "IRFFT" and len(lengths) > 1 and ctx.platform in ("cuda", "rocm"):
        return _by_single_axis(ctx, x, lengths)
    return _fft(ctx, x, name, lengths, out)


def _by_single_axis(ctx: Any, x: Any, lengths: tuple[int, ...]) -> Any:
    """IRFFT along several axes. The libraries of GPUs want a spectrum that is symmetric along all of them.

    Others read the symmetric half along the last axis alone, as NumPy does, after an inverse along the axes before it.
    """
    (aval,), (out,) = ctx.avals_in, ctx.avals_out
    first = aval.ndim - len(lengths)
    there = (*range(first), aval.ndim - 1, *range(first, aval.ndim - 1))
    moved = aval.update(shape=tuple([aval.shape[axis] for axis in there]))
    x = _fft(ctx, _transposed(ctx, x, there, moved), "IFFT", lengths[:-1], moved)
    back = (*range(first), *range(first + 1, aval.ndim), first)
    return _fft(ctx, _transposed(ctx, x, back, aval), "IRFFT", lengths[-1:], out)


def _transposed(ctx: Any, x: Any, axes: tuple[int, ...], out: ShapedArray) -> Any:
    return ctx.op("stablehlo.transpose", [x], {"permutation": _integers(ctx, axes)}, [ctx.type_of(out)])


def _fft(ctx: Any, x: Any, name: str, lengths: tuple[int, ...], out: ShapedArray) -> Any:
    return ctx.op("stablehlo.fft", [x], {"fft_type": ctx.attribute(f"#stablehlo<fft_type {name}>"),
                                         "fft_length": _integers(ctx, lengths)}, [ctx.type_of(out)])


def _integers(ctx: Any, values: tuple[int, ...]) -> Any:
    return ctx.attribute(f"array<i64: {', '.join(map(str, values))}>")
