"""Attributes of StableHLO operations, made from Python values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


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
