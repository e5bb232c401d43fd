"""Derivatives that are meant to be those of something else, said in one word: all other laws are kept."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest

from corejax import lax
from corejax.plugin import Sample, define, hookimpl, not_linear
from corejax.testing import ConformanceError, check_primitive


class Straight:
    """Rounding down, with the derivative of the identity; nonlinear in the tangent if asked for."""

    transpose = not_linear()

    def __init__(self, value: Any = lax.floor, bent: bool = False, word: str = "derivative") -> None:
        self.name = "straight"
        self._value, self._bent, self._word = value, bent, word
        self._itself = define(self)

    @hookimpl
    def decompose(self, args: Sequence[Any]) -> Any:
        (x,) = args
        return self._value(x)

    @hookimpl
    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> Any:
        (x,), (x_dot,) = primals, tangents
        return self._itself(x), x_dot * x_dot if self._bent else x_dot

    @hookimpl
    def vmap(self, axis: Any, args: Sequence[Any], dims: Sequence[Any]) -> Any:
        return self._itself(args[0]), dims[0]

    @hookimpl
    def samples(self, rng: np.random.Generator) -> Iterator[Sample]:
        exempt = {self._word: "a straight-through estimator"} if self._word else {}
        yield Sample([rng.normal(size=(2, 3))], domain=(-2.0, 2.0), singular=(-1.0, 0.0, 1.0), exempt=exempt)
        yield Sample([np.array(0.5)], exempt=exempt, results=np.array(0.0))


def straight(*args: Any, **kwargs: Any) -> Any:
    return Straight(*args, **kwargs)._itself


def test_straight_through_estimator_needs_one_word() -> None:
    with pytest.raises(ConformanceError, match="jvp agrees with differences(.|\n)*derivatives agree at special points"):
        check_primitive(straight(word=""))
    report = check_primitive(straight())
    assert "exempt: a straight-through estimator" in str(report)
    assert "jvp agrees with differences" in [o.check for o in report.outcomes if o.status == "exempt"]


@pytest.mark.exhaustive
def test_all_laws_of_the_full_mode_are_kept_beside() -> None:
    assert check_primitive(straight(), full=True)


def test_departure_doesnt_excuse_a_rule_that_is_wrong_in_itself() -> None:
    with pytest.raises(ConformanceError, match="jvp is linear"):
        check_primitive(straight(bent=True))


def test_departure_that_isnt_one_is_stale_in_the_full_mode() -> None:
    with pytest.raises(ConformanceError, match="no sample that is exempt from this law breaks it"):
        check_primitive(straight(lambda x: x * 1.0), full=True, checks=["jvp agrees with differences"])


def test_exemption_from_a_decisive_law_is_stale_in_the_quick_mode_too() -> None:
    law = "a zero derivative is of a constant"
    sample = Sample([np.array([0.5, 1.5])], exempt={law: "its derivative is zero by intent"})
    assert check_primitive("stop_gradient", [sample], checks=[law])
    with pytest.raises(ConformanceError, match="no sample that is exempt from this law breaks it"):
        check_primitive("sin", [sample], checks=[law])


def test_misspelled_departure_is_told() -> None:
    with pytest.raises(ConformanceError, match="there is no check 'derivatives'(.|\n)*did you mean 'derivative'"):
        check_primitive(straight(word="derivatives"))
