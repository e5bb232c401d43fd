"""Samples from which the kit could learn nothing are failures; right primitives of rare kinds raise no alarm."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import repeat
from typing import Any

import numpy as np
import pytest

from corejax import lax
from corejax.plugin import Effect, Sample, define, hookimpl, not_linear, partials
from corejax.testing import ConformanceError, check_primitive
from corejax_testing.specification import HAS_SAMPLES

X = np.array([0.5, -1.5, 2.0])
JVP = "jvp agrees with differences"
SPECIAL = "nans and infinities agree"


class Sine:
    """sin; `sign` is that of its derivative, `given` what the hook samples gives."""

    def __init__(self, given: Any, sign: float = 1.0) -> None:
        self.name = "given_sine"
        self._given, self._sign = given, sign

    @hookimpl
    def decompose(self, args: Sequence[Any]) -> Any:
        (x,) = args
        return lax.sin(x)

    @hookimpl
    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> Any:
        return lax.sin(primals[0]), self._sign * lax.cos(primals[0]) * tangents[0]

    @hookimpl
    def vmap(self, axis: Any, args: Sequence[Any], dims: Sequence[Any]) -> Any:
        return lax.sin(args[0]), dims[0]

    @hookimpl
    def samples(self, rng: np.random.Generator) -> Any:
        return iter(self._given)


def problems(function: Any, samples: Any = None, checks: Any = None) -> list[str]:
    """The problems that the samples have."""
    try:
        check_primitive(function, samples, checks=checks)
    except ConformanceError as error:
        return [failure.problem for failure in error.failures if failure.check == HAS_SAMPLES]
    return []


@pytest.mark.parametrize("x", [X.astype(np.float32), X.astype(np.complex64), np.ones((0, 3)), np.full(2, np.nan)])
def test_a_wrong_derivative_that_no_sample_shows_is_no_pass(x: np.ndarray) -> None:
    wrong = define(Sine([Sample([x])], sign=-1.0))
    assert "none can be used to compare derivatives" in problems(wrong)[0]
    assert "none can be used to compare derivatives" in problems(define(Sine([], sign=-1.0)), [Sample([x])])[0]
    assert [] == problems(define(Sine([Sample([x]), Sample([X])])))


def test_chosen_checks_take_whatever_samples_are_given_by_hand() -> None:
    assert [] == problems(define(Sine([])), [Sample([X.astype(np.float32)])], ["params are hashable"])


def test_what_has_no_derivative_in_double_precision_needs_no_such_sample() -> None:
    assert [] == problems("not", [Sample([np.array([True])])])


def test_samples_without_an_end_are_a_failure_and_do_not_hang() -> None:
    for function, samples in ((define(Sine(repeat(Sample([X])))), None), ("neg", repeat(Sample([X])))):
        with pytest.raises(ConformanceError, match="there are more than 1000 samples"):
            check_primitive(function, samples, checks=[JVP])


@pytest.mark.parametrize("sample, problem", [
    (Sample([[1.0, 2.0]]), "operand 0 is not an array"),
    (Sample([None]), "operand 0 is not an array"),
    (Sample([X], {"beta": 2.0}), "its params don't match those of the primitive"),
    (Sample([X], ulps=np.inf), "ulps must be a bound"),
    (Sample([X], ulps=-1.0), "ulps must be a bound"),
    (Sample([X], ulps="8"), "ulps must be a bound"),  # type: ignore[arg-type]
    (Sample([X], domain=(0.0, np.inf)), "domain must be an interval"),
    (Sample([X], domain=(-1.7e308, 1.7e308)), "domain must be an interval"),
    (Sample([X], domain=(0.0, 1.0), singular=("0",)), "a singular point must be a number"),  # type: ignore[arg-type]
    (Sample([X], domain=(0.0, 1.0), singular=(np.nan,)), "a singular point must be a number"),
])
def test_what_cannot_be_meant_is_told_of_the_sample_and_not_of_a_rule(sample: Sample, problem: str) -> None:
    found = problems(define(Sine([Sample([X]), sample])), checks=["params are hashable"])
    assert 1 == len(found) and problem in found[0]


# No false alarms

def test_python_numbers_with_a_domain_stay_python_numbers() -> None:
    assert check_primitive(define(Sine([Sample([0.5], domain=(-1.0, 1.0), results=np.sin(0.5))])))


class Length:
    """sqrt(x x): its second derivative is what rounding leaves of two terms."""

    name = "given_length"

    @hookimpl
    def decompose(self, args: Sequence[Any]) -> Any:
        return lax.sqrt(args[0] * args[0])


def test_second_derivatives_that_cancel_are_symmetric() -> None:
    xs = np.random.default_rng(1).normal(size=(4, 40))
    assert check_primitive(define(Length()), [Sample([x]) for x in xs], checks=["hessians are symmetric"])


class Rotated:
    """c (x + i x): both operands decide about the weak type."""

    name = "given_rotated"

    @hookimpl
    def decompose(self, args: Sequence[Any]) -> Any:
        return args[0] * lax.complex(args[1], args[1])


def test_a_complex_result_of_a_real_operand_too_may_be_strong() -> None:
    assert check_primitive(define(Rotated()), [Sample([X + 1j, X])], checks=["weak types pass through"])


class Noted:
    """x, with an effect."""

    name = "given_noted"
    jvp = partials(lambda tangent, out, x: tangent)
    transpose = not_linear()

    @hookimpl
    def abstract_eval(self, avals: Sequence[Any]) -> Any:
        return avals[0]

    @hookimpl
    def impl(self, args: Sequence[Any]) -> Any:
        return args[0].copy()

    @hookimpl
    def xla_translation(self, ctx: Any, args: Sequence[Any]) -> Any:
        return args[0]

    @hookimpl
    def vmap(self, axis: Any, args: Sequence[Any], dims: Sequence[Any]) -> Any:
        return noted(args[0]), dims[0]

    @hookimpl
    def effects(self, avals: Sequence[Any]) -> frozenset[str]:
        return frozenset((Effect("sample_note"),))

    @hookimpl
    def samples(self, rng: np.random.Generator) -> Iterator[Sample]:
        yield Sample([rng.normal(size=3)], domain=(-1.0, 1.0),
                     exempt={"effects are declared": "it only says that it has one"})


noted = define(Noted())


def test_a_differentiable_primitive_with_effects_passes() -> None:
    assert check_primitive(noted)


# What only special values show

class Filled:
    """sin by impl and lowering; the decomposition makes `filler` of NaN."""

    def __init__(self, filler: float) -> None:
        self.name, self._filler = "given_filled", filler

    @hookimpl
    def decompose(self, args: Sequence[Any]) -> Any:
        (x,) = args
        return lax.select(x != x, lax.full_like(x, self._filler), lax.sin(x))

    @hookimpl
    def impl(self, args: Sequence[Any]) -> Any:
        return np.sin(args[0])

    @hookimpl
    def xla_translation(self, ctx: Any, args: Sequence[Any]) -> Any:
        return ctx.op("stablehlo.sine", [args[0]])


def test_a_decomposition_that_differs_at_nan_is_found() -> None:
    given = [Sample([X], domain=(-1.0, 1.0))]
    assert check_primitive(define(Filled(np.nan)), given, checks=[SPECIAL])
    with pytest.raises(ConformanceError, match="given_filled.decompose(.|\n)*different for special values"):
        check_primitive(define(Filled(7.0)), given, checks=[SPECIAL])
