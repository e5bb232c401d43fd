"""Right rules pass, whatever their random numbers; a sample may say how far apart results may be, in every check."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest

from corejax import lax
from corejax.plugin import Sample, define, hookimpl
from corejax.testing import ConformanceError, check_primitive
from corejax_testing.case import Case
from corejax_testing.tolerances import distances, slack
from exhaustive import exhaustive_unless
from right_rules import MIXING, RIGHT, Seeded, right


@pytest.mark.sample(2)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("kind", RIGHT)
@pytest.mark.parametrize("seeds", exhaustive_unless(lambda seeds: seeds.start == 0, [
    range(3), *[range(first, first + 10) for first in range(3, 203, 10)]]))
def test_right_rules_pass_at_every_seed(kind: type[Seeded], seeds: range) -> None:
    wrong = {}
    for seed in seeds:
        try:
            check_primitive(right(kind, seed))
        except ConformanceError as error:
            wrong[seed] = str(error)
    assert {} == wrong


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("kind", exhaustive_unless(lambda kind: MIXING.index(kind) % 3 == 2, MIXING))
def test_right_rules_pass_whatever_elements_depend_on(kind: type[Seeded]) -> None:
    check_primitive(right(kind, 0))


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("kind", exhaustive_unless(lambda kind: kind.__name__ in ("SumFromTheEnd", "Counted"),
                                                   [*MIXING, *RIGHT]))
def test_right_rules_pass_in_the_full_mode(kind: type[Seeded]) -> None:
    check_primitive(right(kind, 0), full=True)


def test_primitive_without_results_passes() -> None:
    assert check_primitive("dce_sink", checks=["values do not depend on how many there are"])


class Noisy:
    """3 x, evaluated with an error of 1e-7 of either sign, whatever the size of x."""

    def __init__(self, atol: float | None, error: float = 1e-7) -> None:
        self.name = "noisy"
        self._atol, self._error = atol, error

    @hookimpl
    def abstract_eval(self, avals: Sequence[Any]) -> Any:
        return lax.floor.primitive.infer(tuple(avals), {})  # which refuses what isn't floating

    @hookimpl
    def decompose(self, args: Sequence[Any]) -> Any:
        (x,) = args
        return 3.0 * x

    @hookimpl
    def impl(self, args: Sequence[Any]) -> Any:
        (x,) = args
        part = np.abs(np.asarray(x.real, float))
        noise = np.where((part > 1e-3) & (part < 9.0), np.sign(np.sin(1e9 * np.minimum(part, 9.0))), 0.0)
        return np.where(noise == 0.0, 3 * x, 3 * x + np.asarray(self._error * noise).astype(x.dtype)).astype(x.dtype)

    @hookimpl
    def samples(self, rng: np.random.Generator) -> Iterator[Sample]:
        yield Sample([rng.normal(size=(2, 3))], domain=(-2.0, 2.0), atol=self._atol)
        yield Sample([rng.normal(size=4)], atol=self._atol)


def test_absolute_tolerance_counts_in_every_check() -> None:
    with pytest.raises(ConformanceError, match="impl and the compiled program agree"):
        check_primitive(define(Noisy(None)))
    assert check_primitive(define(Noisy(2e-7)))
    with pytest.raises(ConformanceError, match="impl and the compiled program agree"):
        check_primitive(define(Noisy(2e-7, 1e-5)))


@pytest.mark.parametrize("atol", [-1.0, np.nan, "much"])
def test_absolute_tolerance_that_is_none_is_told(atol: Any) -> None:
    with pytest.raises(ConformanceError, match="atol must be a bound"):
        check_primitive("neg", [Sample([np.ones(2)], atol=atol)])


class Logarithm:
    """log(1 + x), evaluated without care for small x: wrong by 1e-16, which is much if x is 1e-10."""

    name = "careless"

    @hookimpl
    def decompose(self, args: Sequence[Any]) -> Any:
        return lax.log1p(args[0])

    @hookimpl
    def impl(self, args: Sequence[Any]) -> Any:
        return np.log(1 + args[0].astype(float)).astype(args[0].dtype)


def test_small_results_of_elementwise_functions_must_be_exact_where_their_operands_are_small() -> None:
    careless = define(Logarithm())
    assert check_primitive(careless, [Sample([np.array([0.5, 2.0])])], checks=["impl and the compiled program agree"])
    for tiny in (np.array(1e-10), np.array([0.5, 1e-10, 2.0])):
        with pytest.raises(ConformanceError, match="ulps from impl's"):
            check_primitive(careless, [Sample([tiny])], checks=["impl and the compiled program agree"])


def test_sums_may_be_off_by_units_of_their_operands() -> None:
    x = np.array([1e3, 1.0, -1e3])
    case = Case(lax.reduce_sum.primitive, Sample([x], {"axes": (0,)}), 0)
    assert 0.0 == distances(case, 1.0, 1.0 + 1e-12) < distances(case, 1.0, 1.0 + 1e-11)
    assert 0.0 < slack(case, x) < 1e-12
