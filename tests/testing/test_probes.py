"""What the kit tries beyond the samples: another number of operands, platforms of which there is no device."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from corejax import lax
from corejax.errors import CorejaxNotImplementedError
from corejax.plugin import Sample, define, hookimpl
from corejax.testing import ConformanceError, Report, check_primitive

OPERANDS = "one operand more or less is refused"
PLATFORMS = "it lowers for every platform"
X = np.array([0.5, 1.5])


class Twice:
    """2 x, by the function of the operands that a test gives."""

    name = "twice"

    def __init__(self, decompose: Callable[[Sequence[Any]], Any]) -> None:
        self._decompose = decompose

    @hookimpl
    def decompose(self, args: Sequence[Any]) -> Any:
        return self._decompose(args)


def strict(args: Sequence[Any]) -> Any:
    (x,) = args
    return x + x


def test_operands_that_are_swallowed_are_a_finding() -> None:
    with pytest.raises(ConformanceError, match="it accepts one more operand than the samples have"):
        check_primitive(define(Twice(lambda args: args[0] + args[0])), [Sample([X])], checks=[OPERANDS])
    assert check_primitive(define(Twice(strict)), [Sample([X])], checks=[OPERANDS])


def test_operands_that_may_be_missing_are_a_finding() -> None:
    def at_most_two(args: Sequence[Any]) -> Any:
        x, y = (*args, 0.0)[:2] if len(args) < 3 else args
        return x + y

    with pytest.raises(ConformanceError, match="it accepts one operand less than the samples have"):
        check_primitive(define(Twice(at_most_two)), [Sample([X, X])], checks=[OPERANDS])


def test_any_number_of_operands_is_declared_or_shown_by_samples() -> None:
    def total(args: Sequence[Any]) -> Any:
        return sum(args[1:], args[0])

    class Declared(Twice):
        operands = ("x", "*others")

    assert check_primitive(define(Declared(total)), [Sample([X, X])], checks=[OPERANDS])
    assert check_primitive(define(Twice(total)), [Sample([X, X]), Sample([X])], checks=[OPERANDS])


class Lowered(Twice):
    """Lowered by a rule of a test where it isn't for the CPU."""

    def __init__(self, elsewhere: Callable[[Any, Sequence[Any]], Any]) -> None:
        super().__init__(strict)
        self._elsewhere = elsewhere

    @hookimpl
    def xla_translation(self, ctx: Any, args: Sequence[Any]) -> Any:
        return ctx.lower(lambda x: strict([x]), *args) if ctx.platform == "cpu" else self._elsewhere(ctx, args)


def lowered(elsewhere: Callable[[Any, Sequence[Any]], Any]) -> Report:
    return check_primitive(define(Lowered(elsewhere)), [Sample([X])], checks=[PLATFORMS])


def broken(ctx: Any, args: Sequence[Any]) -> Any:
    raise ZeroDivisionError("on another platform")


def ill_typed(ctx: Any, args: Sequence[Any]) -> Any:
    return ctx.op("stablehlo.convert", args, None, [ctx.type_of(ctx.avals_out[0].update(dtype=np.dtype("int32")))])


@pytest.mark.parametrize("elsewhere, words", [(broken, "on another platform"), (ill_typed, "xla_translation")])
def test_lowering_for_a_platform_without_a_device_that_fails_is_a_finding(elsewhere: Any, words: str) -> None:
    with pytest.raises(ConformanceError, match=f"it can't be lowered for cuda(.|\n)*{words}"):
        lowered(elsewhere)


def test_lowering_that_says_for_what_it_is_passes() -> None:
    def refused(ctx: Any, args: Sequence[Any]) -> Any:
        raise CorejaxNotImplementedError("twice is for the CPU", got=ctx.platform, wanted="cpu")

    assert ["not applicable"] == [outcome.status for outcome in lowered(refused).outcomes]
    added = lowered(lambda ctx, args: ctx.lower(lax.add, *args, *args))
    assert ["held"] == [outcome.status for outcome in added.outcomes]
