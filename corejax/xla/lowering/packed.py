"""Integers of less than a byte, which programs store as bytes, whose values are in the range of the narrow dtype.

XLA has such types, but not all of its programs with them are right: after `x * x + x` it forgets to take the lowest
bits, and where it joins arrays of 2 bits it ends the process (decision 0057).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from corejax.base import dtypes
from corejax.base.avals import ShapedArray
from corejax.kernel.primitive import Primitive


def in_range(ctx: Any, value: Any, aval: ShapedArray, primitive: Primitive) -> Any:
    """A result of a primitive, with the lowest bits taken if it is a packed integer.

    What only moves elements, or carries a program, leaves them in range.
    """
    dtype = aval.dtype
    if dtype not in dtypes.PACKED or primitive.structural:
        return value
    kind, stored = [value.type], aval.stored.dtype
    above = np.full((), 8 - dtypes.bits_of(dtype), stored)
    amount = ctx.op("stablehlo.broadcast_in_dim", [ctx.constant(above)],
                    {"broadcast_dimensions": ctx.ir.DenseI64ArrayAttr.get([])}, kind)
    upper = ctx.op("stablehlo.shift_left", [value, amount], None, kind)
    signed = "arithmetic" if dtypes.kind(dtype) == "i" else "logical"
    return ctx.op(f"stablehlo.shift_right_{signed}", [upper, amount], None, kind)
