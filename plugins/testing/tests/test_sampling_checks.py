"""Samples that leave a value or a param open are a finding, and only those."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from corejax import lax
from corejax.plugin import Sample, define, hookimpl
from corejax.testing import ConformanceError, Report, check_primitive

TWO_WAYS = "values are given in two ways"
TWO_VALUES = "each param has two values"
X = np.array([0.5, 1.5])


class Decomposed:
    """3 x, by decompose alone."""

    name = "thrice"

    @hookimpl
    def decompose(self, args: Sequence[Any]) -> Any:
        (x,) = args
        return 3.0 * x


class Evaluated(Decomposed):
    """3 x, by impl too."""

    @hookimpl
    def impl(self, args: Sequence[Any]) -> Any:
        (x,) = args
        return (3.0 * x).astype(x.dtype)


class Lowered:
    """3 x, by a lowering alone."""

    name = "thrice"

    @hookimpl
    def abstract_eval(self, avals: Sequence[Any]) -> Any:
        (x,) = avals
        return x

    @hookimpl
    def xla_translation(self, ctx: Any, args: Sequence[Any]) -> Any:
        return ctx.lower(lambda x: 3.0 * x, *args)


def report(plugin: Any, *samples: Sample, check: str = TWO_WAYS, full: bool = False) -> Report:
    return check_primitive(define(plugin), samples, checks=[check], full=full)


@pytest.mark.parametrize("kind, hook, todo", [
    (Decomposed, "decompose", "or write impl"), (Lowered, "xla_translation", "or write impl")])
def test_a_value_without_anything_to_compare_with_is_a_failure_of_the_samples(kind: Any, hook: str, todo: str) -> None:
    with pytest.raises(ConformanceError, match=f"{hook} alone gives them(.|\n)*give results=(.|\n)*{todo}") as found:
        report(kind(), Sample([X]), Sample([X[0]]))
    (failure,) = found.value.failures
    assert "samples" == failure.hook


def test_where_line_leads_to_the_samples() -> None:
    class Sampled(Decomposed):
        @hookimpl
        def samples(self, rng: Any) -> Any:
            yield Sample([X])

    with pytest.raises(ConformanceError, match=r"where: .*test_sampling_checks.py:\d+ \(Sampled.samples\)"):
        check_primitive(define(Sampled()), checks=[TWO_WAYS])


@pytest.mark.parametrize("kind, samples", [
    (Evaluated, [Sample([X])]), (Decomposed, [Sample([X]), Sample([X[0]], results=np.array(1.5))]),
    (Lowered, [Sample([X], results=3.0 * X)])])
def test_two_rules_or_a_known_result_are_something_to_compare_with(kind: Any, samples: list[Sample]) -> None:
    assert ["held"] == [outcome.status for outcome in report(kind(), *samples).outcomes]


def test_what_gives_nothing_needs_no_value() -> None:
    assert ["not applicable"] == [o.status for o in report(Decomposed(), Sample([np.ones(0)])).outcomes]


class Scaled(Decomposed):
    """3 x, with a param that nothing but the type of its value tells apart."""

    @hookimpl
    def decompose(self, args: Sequence[Any], *, param: Any) -> Any:
        (x,) = args
        return 3.0 * x


@pytest.mark.parametrize("value", [2.0, False, "rows", None, np.dtype("int32"), (1, (2, None))])
def test_a_param_that_always_has_the_same_value_is_a_failure_of_the_samples(value: Any) -> None:
    same = [Sample([X], {"param": value}), Sample([X[0]], {"param": value})]
    with pytest.raises(ConformanceError, match="the param 'param' has the same value in all samples") as found:
        report(Scaled(), *same, Sample([X], {"param": 7}, error=TypeError), check=TWO_VALUES)
    (failure,) = found.value.failures
    assert "samples" == failure.hook
    assert report(Scaled(), *same, Sample([X], {"param": 7}), check=TWO_VALUES)


def test_values_that_only_differ_in_type_are_different() -> None:
    assert report(Scaled(), Sample([X], {"param": 1}), Sample([X], {"param": True}), check=TWO_VALUES)


@pytest.mark.parametrize("value", [lax.sin, (lax.sin, lax.cos), (1, object())])
def test_functions_and_the_like_need_no_second_value(value: Any) -> None:
    assert report(Scaled(), Sample([X], {"param": value}), check=TWO_VALUES)


def test_an_exempt_sample_speaks_for_all_and_goes_stale() -> None:
    exempt = Sample([X[0]], {"param": 1}, exempt={TWO_VALUES: "others come with the next version"})
    first, other = Sample([X], {"param": 1}), Sample([X], {"param": 2})
    for full in (False, True):
        found = report(Scaled(), first, exempt, check=TWO_VALUES, full=full)
        assert ["exempt"] == [outcome.status for outcome in found.outcomes]
    with pytest.raises(ConformanceError, match="no sample that is exempt from this law breaks it"):
        report(Scaled(), first, exempt, other, check=TWO_VALUES, full=True)
