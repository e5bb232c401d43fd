"""Bitwise logic, which is logical for booleans, and shifts of integers."""

from __future__ import annotations

from typing import Any

import numpy as np

from corejax.core import dtypes
from corejax.plugin import define, families, partials
from corejax_lax_basic._lowering import bits_alone

__all__ = ["bitwise_and", "bitwise_not", "bitwise_or", "bitwise_xor", "shift_left", "shift_right_arithmetic",
           "shift_right_logical"]

_CONSTANT = partials(None, None)


# NumPy's shifts by a negative number of bits, or by at least as many as there are, give what XLA's give.

def _logical_right(x: Any, y: Any) -> Any:
    unsigned = np.dtype(f"u{x.dtype.itemsize}")
    return np.right_shift(np.asarray(x).view(unsigned), np.asarray(y).view(unsigned)).view(x.dtype)


def _arithmetic_right(x: Any, y: Any) -> Any:
    signed = np.dtype(f"i{x.dtype.itemsize}")  # the highest bit counts as the sign, even for unsigned integers
    return np.right_shift(np.asarray(x).view(signed), np.asarray(y).view(signed)).view(x.dtype)


def _lower_logical_right(ctx: Any, args: Any) -> Any:
    return ctx.op("stablehlo.shift_right_logical", [bits_alone(ctx, args[0]), args[1]])


def _lower_arithmetic_right(ctx: Any, args: Any) -> Any:
    x, y = args
    dtype = ctx.avals_out[0].dtype
    if dtype in dtypes.PACKED and dtypes.kind(dtype) == "u":  # the sign bit isn't the highest of the byte
        above = families.constant_like(ctx, 8 - dtypes.bits_of(dtype), ctx.avals_out[0].stored)
        x = ctx.op("stablehlo.shift_right_arithmetic", [ctx.op("stablehlo.shift_left", [x, above]), above])
    return ctx.op("stablehlo.shift_right_arithmetic", [x, y])


bitwise_and = define(families.binary(
    "and", np.bitwise_and, hlo="and", dtypes="biu", jvp=_CONSTANT, doc="x and y.",
    example="bitwise_and(6, 3).item() -> 2"))
bitwise_or = define(families.binary(
    "or", np.bitwise_or, hlo="or", dtypes="biu", jvp=_CONSTANT, doc="x or y.",
    example="bitwise_or(6, 3).item() -> 7"))
bitwise_xor = define(families.binary(
    "xor", np.bitwise_xor, hlo="xor", dtypes="biu", jvp=_CONSTANT, doc="x or else y.",
    example="bitwise_xor(6, 3).item() -> 5"))
bitwise_not = define(families.unary(
    "not", np.invert, hlo="not", dtypes="biu", jvp=partials(None), doc="Not x.",
    example="bitwise_not(6).item() -> -7"))

shift_left = define(families.binary(
    "shift_left", np.left_shift, hlo="shift_left", dtypes="iu", jvp=_CONSTANT, domain=(0, 4),
    doc="x shifted left by y bits, filled with zeros.", example="shift_left(1, 3).item() -> 8"))
shift_right_arithmetic = define(families.binary(
    "shift_right_arithmetic", _arithmetic_right,
    hlo=_lower_arithmetic_right, dtypes="iu", jvp=_CONSTANT, domain=(0, 4),
    doc="x shifted right by y bits, filled with the sign bit.", example="shift_right_arithmetic(-8, 1).item() -> -4"))
shift_right_logical = define(families.binary(
    "shift_right_logical", _logical_right, hlo=_lower_logical_right, dtypes="iu", jvp=_CONSTANT,
    domain=(0, 4), doc="x shifted right by y bits, filled with zeros.",
    example="shift_right_logical(np.int8(-8), np.int8(1)).item() -> 124"))
