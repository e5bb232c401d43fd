"""Rules that are wrong in one narrow type only are found, by the hook with the fault; right ones pass."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest

from corejax import lax
from corejax.plugin import Primitive, Sample, define, hookimpl
from corejax.testing import CHECKS, ConformanceError, Failure, check_primitive
from right_rules import RIGHT, Seeded, right

VALUES, TANGENTS, COTANGENTS, MAPS = CHECKED = [name for name in CHECKS if "in narrow types" in name]


class Narrow:
    """2 x y in each hook, or 3 x y where the fault is told to be: a hook, and a dtype."""

    def __init__(self, hook: str, dtype: str) -> None:
        self.name = f"twice_{hook}_{dtype}"
        self._fault = hook, dtype

    def _factor(self, hook: str, x: Any) -> float:
        return 3.0 if self._fault == (hook, np.dtype(x.dtype).name) else 2.0

    @hookimpl
    def abstract_eval(self, avals: Sequence[Any]) -> Any:
        x, y = avals
        lax.floor.primitive.infer((x,), {})  # which refuses integers
        return lax.mul.primitive.infer((x, y), {})

    @hookimpl
    def decompose(self, args: Sequence[Any]) -> Any:
        x, y = args
        return self._factor("decompose", x) * x * y

    @hookimpl
    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> Any:
        (x, y), (x_dot, y_dot) = primals, tangents
        return twice(self, x, y), twice(self, x_dot, y) + self._factor("jvp", x) * x * y_dot

    @hookimpl
    def transpose(self, cotangents: Any, args: Sequence[Any]) -> Any:
        return self._factor("transpose", args[1]) * cotangents * args[1], None

    @hookimpl
    def vmap(self, axis: Any, args: Sequence[Any], dims: Sequence[Any]) -> Any:
        x, y = [lax.broadcast(z, (axis.size,)) if dim is None else first(z, dim)
                for z, dim in zip(args, dims, strict=True)]
        return 0.5 * self._factor("vmap", x) * twice(self, x, y), 0

    @hookimpl
    def samples(self, rng: np.random.Generator) -> Iterator[Sample]:
        yield Sample([rng.normal(size=(2, 3)), rng.normal(size=(2, 3))], domain=(-2.0, 2.0))
        x, y = rng.normal(size=(2, 2))
        yield Sample([x, y], results=2.0 * x * y)


def first(x: Any, dim: int) -> Any:
    """An axis moved to the front."""
    return lax.transpose(x, (dim, *[i for i in range(x.ndim) if i != dim]))


_MADE: dict[int, Any] = {}


def twice(plugin: Narrow, *args: Any) -> Any:
    return _MADE[id(plugin)](*args)


def made(hook: str, dtype: str) -> Primitive:
    plugin = Narrow(hook, dtype)
    _MADE[id(plugin)] = function = define(plugin)
    return function.primitive


def failures(primitive: Primitive, checks: Sequence[str] = CHECKED) -> list[Failure]:
    try:
        check_primitive(primitive, checks=checks)
    except ConformanceError as error:
        return list(error.failures)
    return []


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("hook, law", [("decompose", VALUES), ("jvp", TANGENTS), ("transpose", COTANGENTS),
                                       ("vmap", MAPS)])
def test_rule_that_is_wrong_in_one_narrow_type_is_found_by_its_hook(hook: str, law: str, dtype: str) -> None:
    (failure, *_) = failures(made(hook, dtype), [law])
    assert (hook, True) == (failure.hook, f"in {dtype} is not the one of doubles" in failure.problem)


def test_right_rule_passes_whole() -> None:
    assert [] == failures(made("", ""))
    assert check_primitive(made("", ""))


@pytest.mark.parametrize("kind", RIGHT)
def test_rules_whose_results_cancel_pass_in_narrow_types(kind: type[Seeded]) -> None:
    found = {seed: failures(right(kind, seed).primitive) for seed in range(5)}
    assert {} == {seed: str(each[0]) for seed, each in found.items() if each}


class Halving:
    """x in steps of 1/8: it jumps, so that narrow types and doubles may be a step apart next to a jump."""

    name = "halving"

    @hookimpl
    def decompose(self, args: Sequence[Any]) -> Any:
        (x,) = args
        return lax.floor(lax.sin(x) * 8.0) / 8.0

    @hookimpl
    def samples(self, rng: np.random.Generator) -> Iterator[Sample]:
        yield Sample([np.arcsin(np.arange(-7, 8) / 8.0)], domain=(-1.5, 1.5))


def test_jumps_within_the_precision_of_the_type_are_no_finding() -> None:
    assert [] == failures(define(Halving()).primitive)


class Logistic:
    """The 20th step of a chaotic map: rounding errors of narrow types grow a millionfold."""

    name = "chaos"

    @hookimpl
    def decompose(self, args: Sequence[Any]) -> Any:
        (x,) = args
        for _ in range(20):
            x = 3.9 * x * (1.0 - x)
        return x

    @hookimpl
    def samples(self, rng: np.random.Generator) -> Iterator[Sample]:
        yield Sample([rng.uniform(0.2, 0.8, size=5)], domain=(0.1, 0.9))


def test_errors_that_the_function_itself_amplifies_are_no_finding() -> None:
    assert [] == failures(define(Logistic()).primitive)


def test_types_that_are_refused_are_not_asked_for() -> None:
    (outcome,) = check_primitive("shift_left", checks=[TANGENTS]).outcomes
    assert "not applicable" == outcome.status


def test_functions_of_bits_are_not_compared() -> None:
    sample = Sample([np.array(0.5)], {"new_dtype": np.dtype(np.int32)})  # of a float64 there are two, of a float32 one
    (outcome,) = check_primitive("bitcast_convert_type", [sample],
                                 checks=["values in narrow types are those of doubles"]).outcomes
    assert ("the shape of its result depends on the dtype of its operands",) == outcome.not_applicable
