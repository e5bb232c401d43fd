"""Families: whole plugins for elementwise primitives, each from one row of a table.

    sinh = define(families.unary(
        "sinh", np.sinh, hlo="chlo.sinh", dtypes="fc", jvp=factors(lambda out, x: lax.cosh(x)), domain=(-3.0, 3.0),
        doc="The hyperbolic sine."))

A row says what is specific: the name, the NumPy function, the StableHLO operation, the kinds of dtype it takes and the
derivative. The family provides the other hooks. With several operands, these are its laws:

- Operands have the same dtype. Their shapes are equal, or () for an operand that *spreads*: it pairs with each element.
- The result is weakly typed if every operand is.
- The public function takes Python scalars beside arrays: they get the array's dtype, and stay weak. Operands of one
  rank whose axes of size 1 fit are broadcast by it.

The functions `spread`, `unspread`, `align` and `spread_operands` handle spreading operands in rules. Use them in your
own plugins that follow the same laws, or subclass `Elementwise` and override hooks.
"""

from __future__ import annotations

from corejax.packs.families.elementwise import Elementwise, binary, comparison, draw, nary, unary
from corejax.packs.families.identities import Identity
from corejax.packs.families.scalars import match_scalars, matching_any, weak_scalar
from corejax.packs.families.settling import at_special_points, settle, where_infinite
from corejax.packs.families.spreading import (
    align,
    common_shape,
    constant_like,
    refused,
    spread,
    spread_operands,
    stretched,
    unspread,
)

__all__ = ["Elementwise", "Identity", "align", "at_special_points", "binary", "common_shape", "comparison",
           "constant_like", "draw", "match_scalars", "matching_any", "nary", "refused", "settle", "spread",
           "spread_operands", "stretched", "unary", "unspread", "weak_scalar", "where_infinite"]


def __dir__() -> list[str]:
    return sorted(__all__)
