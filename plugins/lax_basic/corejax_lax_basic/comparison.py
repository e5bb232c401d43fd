"""Elementwise comparisons with boolean results. NaN differs from everything; other comparisons with it are False.

Those whose names end in `_to` go by the total order of floats, in which every number has a place, by its sign and bits:
-NaN < -inf < ... < -0.0 < 0.0 < ... < inf < NaN.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from corejax.core import dtypes
from corejax.plugin import define, families, partials

__all__ = ["eq", "eq_to", "ge", "gt", "le", "le_to", "lt", "lt_to", "ne"]

_CONSTANT = partials(None, None)

eq = define(families.comparison(
    "eq", np.equal, direction="EQ", dtypes="biufc", jvp=_CONSTANT, doc="Is x == y?",
    example="eq(np.array([1, 2, 3]), 2).tolist() -> [False, True, False]"))
ne = define(families.comparison(
    "ne", np.not_equal, direction="NE", dtypes="biufc", jvp=_CONSTANT, doc="Is x != y?",
    example="ne(np.array([1, 2, 3]), 2).tolist() -> [True, False, True]"))
lt = define(families.comparison(
    "lt", np.less, direction="LT", dtypes="biuf", jvp=_CONSTANT, doc="Is x < y?",
    example="lt(np.array([1, 2, 3]), 2).tolist() -> [True, False, False]"))
le = define(families.comparison(
    "le", np.less_equal, direction="LE", dtypes="biuf", jvp=_CONSTANT, doc="Is x <= y?",
    example="le(np.array([1, 2, 3]), 2).tolist() -> [True, True, False]"))
gt = define(families.comparison(
    "gt", np.greater, direction="GT", dtypes="biuf", jvp=_CONSTANT, doc="Is x > y?",
    example="gt(np.array([1, 2, 3]), 2).tolist() -> [False, False, True]"))
ge = define(families.comparison(
    "ge", np.greater_equal, direction="GE", dtypes="biuf", jvp=_CONSTANT, doc="Is x >= y?",
    example="ge(np.array([1, 2, 3]), 2).tolist() -> [False, True, True]"))


def _place(x: Any) -> Any:
    """Integers that are ordered as the numbers are in their total order."""
    if dtypes.kind(x.dtype) != "f":
        return x
    bits = x.view(f"i{x.dtype.itemsize}")
    return np.where(bits < 0, bits ^ np.iinfo(bits.dtype).max, bits)


def _in_total_order(compare: Callable[[Any, Any], Any], direction: str) -> dict[str, Any]:
    """The rules of a comparison by the total order."""
    def lower(ctx: Any, args: Any) -> Any:
        how = {"comparison_direction": ctx.attribute(f"#stablehlo<comparison_direction {direction}>")}
        if dtypes.kind(ctx.avals_in[0].dtype) == "f":
            how["compare_type"] = ctx.attribute("#stablehlo<comparison_type TOTALORDER>")
        return ctx.op("stablehlo.compare", args, how)

    return {"impl": lambda x, y: compare(_place(x), _place(y)), "hlo": lower, "dtypes": "biuf", "jvp": _CONSTANT,
            "result": lambda _: np.dtype(bool)}


eq_to = define(families.binary(
    "eq_to", **_in_total_order(np.equal, "EQ"), doc="Have x and y the same place in the total order?",
    example="eq_to(np.array([0.0, np.nan]), np.array([-0.0, np.nan])).tolist() -> [False, True]"))
lt_to = define(families.binary(
    "lt_to", **_in_total_order(np.less, "LT"), doc="Is x before y in the total order?",
    example="lt_to(np.array([-0.0, 1.0]), np.array([0.0, np.nan])).tolist() -> [True, True]"))
le_to = define(families.binary(
    "le_to", **_in_total_order(np.less_equal, "LE"), doc="Is x before y in the total order, or at the same place?",
    example="le_to(np.array([0.0, np.nan]), np.array([-0.0, np.nan])).tolist() -> [False, True]"))
