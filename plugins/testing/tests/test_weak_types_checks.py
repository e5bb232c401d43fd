"""The kit finds a weak type that a primitive loses or makes up, and lets those pass that decide otherwise."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from corejax.core import ShapedArray
from corejax.plugin import define, hookimpl
from corejax.testing import ConformanceError, Sample, check_primitive

LAW = ["weak types pass through"]
PAIR = [Sample([np.ones(2), np.ones(2)])]


class Sum:
    """x + y, with a weak type by a rule of the test's choice."""

    name = "weak_test_sum"

    def __init__(self, rule: Any) -> None:
        self._rule = rule

    @hookimpl
    def impl(self, args: Any) -> Any:
        return args[0] + args[1]

    @hookimpl
    def abstract_eval(self, avals: Any) -> Any:
        return ShapedArray(avals[0].shape, avals[0].dtype, self._rule([aval.weak_type for aval in avals]))


def test_weak_if_all_are_is_right() -> None:
    assert ["held"] == [outcome.status for outcome in check_primitive(define(Sum(all)), PAIR, checks=LAW).outcomes]


@pytest.mark.parametrize(("rule", "problem"), [(any, "made up"), (lambda weak: False, "lost"),
                                               (lambda weak: True, "made up"), (lambda weak: weak[0], "made up")])
def test_other_rules_are_found(rule: Any, problem: str) -> None:
    with pytest.raises(ConformanceError, match=f"abstract_eval .*a weak type is {problem}"):
        check_primitive(define(Sum(rule)), PAIR, checks=LAW)


def test_operands_of_another_dtype_do_not_count() -> None:
    samples = [Sample([np.ones(4), np.int32(1)], {"slice_sizes": (2,)})]
    assert ["held"] == [outcome.status for outcome in check_primitive("dynamic_slice", samples, checks=LAW).outcomes]


@pytest.mark.parametrize("name", ["convert_element_type", "optimization_barrier", "argmax", "iota", "cond"])
def test_it_does_not_apply_where_something_else_decides(name: str) -> None:
    assert ["not applicable"] == [outcome.status for outcome in check_primitive(name, checks=LAW).outcomes[-1:]]
