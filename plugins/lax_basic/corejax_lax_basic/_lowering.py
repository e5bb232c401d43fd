"""Attributes of StableHLO operations, made from Python values; the bits of integers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from corejax.core import dtypes
from corejax.plugin import families


def i64s(ctx: Any, values: Sequence[int]) -> Any:
    """A dense array of 64-bit integers: axes, sizes, strides."""
    return ctx.ir.DenseI64ArrayAttr.get(values)


def i64(ctx: Any, value: int) -> Any:
    """One 64-bit integer."""
    return ctx.ir.IntegerAttr.get(ctx.ir.IntegerType.get_signless(64), value)


def axis_numbers(ctx: Any, kind: str, fields: Mapping[str, Sequence[int] | int]) -> Any:
    """Dimension numbers of the kind `dot`, `gather` or `scatter`; empty fields are left out, as the syntax requires."""
    text = ", ".join(f"{name} = {value if isinstance(value, int) else list(value)}"
                     for name, value in fields.items() if value != () and value != [])
    return ctx.ir.Attribute.parse(f"#stablehlo.{kind}<{text}>")


def bits_alone(ctx: Any, x: Any) -> Any:
    """An integer of the result's type: of less than a byte, its bits with zeros above them instead of the sign's."""
    aval = ctx.avals_out[0]
    if aval.dtype not in dtypes.PACKED:
        return x
    ones = families.constant_like(ctx, (1 << dtypes.bits_of(aval.dtype)) - 1, aval.stored)
    return ctx.op("stablehlo.and", [x, ones])
