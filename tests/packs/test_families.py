"""Rows of the families of elementwise primitives, as a pack writes them."""

from __future__ import annotations

import numpy as np

import corejax as cj
from corejax.plugin import define, factors, families
from corejax.testing import check_primitive

doubled = define(families.unary(
    "doubled_in_a_row", None, hlo=lambda ctx, args: ctx.op("stablehlo.add", [args[0], args[0]]), dtypes="f",
    jvp=factors(lambda out, x: x * 0.0 + 2.0), doc="2 x"))
twice_the_sum = define(families.binary(
    "twice_the_sum", None, hlo=lambda ctx, args: ctx.op("stablehlo.add", [
        ctx.op("stablehlo.add", args), ctx.op("stablehlo.add", args)]), dtypes="f",
    jvp=factors(lambda out, x, y: out * 0.0 + 2.0, lambda out, x, y: out * 0.0 + 2.0), doc="2 (x + y)"))


def test_a_row_without_a_numpy_function_is_compiled_and_keeps_the_laws() -> None:
    check_primitive(doubled)
    check_primitive(twice_the_sum, checks=["jvp agrees with differences", "pullback is the adjoint of jvp",
                                           "a map is a loop", "no fallback is hidden"])


def test_a_row_without_a_numpy_function_takes_numbers_arrays_and_devices() -> None:
    assert 4.0 == float(doubled(2.0)) and [0.0, 2.0] == doubled(np.arange(2.0)).tolist()
    assert 6.0 == float(twice_the_sum(1.0, cj.device_put(2.0)))


def test_explain_says_in_which_row_a_rule_is_written() -> None:
    hooks = cj.plugins.explain(doubled).hooks
    assert {hooks[name].where.rpartition(":")[0] for name in ("vmap", "xla_translation", "jvp")} == {__file__}
    assert "corejax_lax_basic" in (cj.plugins.explain("sin").hooks["impl"].where or "")
