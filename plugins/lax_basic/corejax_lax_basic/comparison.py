"""Elementwise comparisons with boolean results. NaN differs from everything; other comparisons with it are False."""

from __future__ import annotations

import numpy as np

from corejax.plugin import define, families, partials

__all__ = ["eq", "ge", "gt", "le", "lt", "ne"]

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
