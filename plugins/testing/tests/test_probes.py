"""What the kit tries beyond the samples: another number of operands, platforms of which there is no device."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from corejax import lax
from corejax.core import ClosedJaxpr, aval_of, jaxpr_as_fun, stage, vmap_jaxpr
from corejax.errors import CorejaxNotImplementedError, CorejaxTypeError
from corejax.plugin import Sample, carrying, define, hookimpl
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


class Called:
    """A call of the program `jaxpr`; a test says what is wrong with it."""

    name = "called"
    operands = ("*operands",)
    multiple_results = True

    def __init__(self, strict: bool = True, evaluate: Callable[..., Any] | None = None) -> None:
        self._strict = strict
        if evaluate is not None:
            self.evaluate = hookimpl(evaluate)

    @hookimpl
    def abstract_eval(self, avals: Any, *, jaxpr: Any) -> Any:
        if self._strict:
            carrying.check_operands("called", jaxpr, avals)
        return jaxpr.out_avals

    @hookimpl
    def vmap(self, axis: Any, args: Any, dims: Any, *, jaxpr: Any) -> Any:
        if len(args) != len(jaxpr.invars):
            carrying.check_operands("called", jaxpr, [aval_of(x) for x in args])
        return jaxpr_as_fun(ClosedJaxpr(vmap_jaxpr(jaxpr, axis.size, None, dims)[0], ()))(*args), [0]

    @hookimpl
    def xla_translation(self, ctx: Any, args: Any, *, jaxpr: Any) -> Any:
        return ctx.call(jaxpr, args)


def run_by_the_way(args: Any, *, jaxpr: Any) -> Any:
    return jaxpr_as_fun(ClosedJaxpr(jaxpr, ()))(*args)


@pytest.mark.parametrize("faulty, words", [
    (Called(strict=False), "it accepts one more operand than the samples have"),
    (Called(evaluate=run_by_the_way), "one more operand than the samples have isn't rejected by name, evaluated")])
def test_a_program_says_how_many_operands_there_are(faulty: Any, words: str) -> None:
    sample = Sample([X], {"jaxpr": stage(lambda x: [lax.sin(x)], [aval_of(X)]).jaxpr})
    with pytest.raises(ConformanceError, match=words):
        check_primitive(define(faulty), [sample], checks=[OPERANDS])
    assert ["held"] == [outcome.status for outcome in check_primitive(
        define(Called()), [sample], checks=[OPERANDS]).outcomes]


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


# Dtypes, params and sizes that no sample has

TYPES, PARAMS = "every dtype that is accepted works", "params out of range are refused or work"
MAPS, SIZES = "maps of many rows and of more axes are loops", "values do not depend on how many there are"


def findings(primitive: Any, sample: Sample, check: str, full: bool = False) -> list[tuple[str, str]]:
    try:
        check_primitive(primitive, [sample], checks=[check], full=full)
    except ConformanceError as error:
        return [(failure.hook, failure.problem) for failure in error.failures]
    return []


class Thrice:
    """3 x, with hooks that a test replaces by faulty ones."""

    name = "thrice"

    @hookimpl
    def abstract_eval(self, avals: Sequence[Any]) -> Any:
        (x,) = avals
        return x

    @hookimpl
    def impl(self, args: Sequence[Any]) -> Any:
        (x,) = args
        return np.asarray(x + x + x, x.dtype)

    @hookimpl
    def xla_translation(self, ctx: Any, args: Sequence[Any]) -> Any:
        return ctx.lower(self._lowered, *args)

    def _lowered(self, x: Any) -> Any:
        return lax.bitwise_or(x, x) if x.dtype == bool else x + x + x

    @hookimpl
    def vmap(self, axis: Any, args: Sequence[Any], dims: Sequence[Any]) -> Any:
        return thrice(self)(*args), dims[0]


_MADE: dict[int, Any] = {}


def thrice(plugin: Thrice) -> Any:
    if id(plugin) not in _MADE:
        _MADE[id(plugin)] = plugin, define(plugin)
    return _MADE[id(plugin)][1]


MATRIX = Sample([np.arange(6.0).reshape(2, 3)])


@pytest.mark.parametrize("check", [TYPES, MAPS, SIZES])
def test_right_rule_passes_at_other_types_and_sizes(check: str) -> None:
    assert [] == findings(thrice(Thrice()), MATRIX, check)


def test_integers_that_are_accepted_and_cannot_be_lowered_are_a_finding() -> None:
    class Floats(Thrice):
        def _lowered(self, x: Any) -> Any:
            return lax.exp(lax.log(x)) * 3.0

    ((hook, problem),) = findings(thrice(Floats()), MATRIX, TYPES)
    assert ("xla_translation", "it accepts bool, which can't be lowered") == (hook, problem)


def test_integers_that_are_computed_in_another_way_are_a_finding() -> None:
    class Halved(Thrice):
        def _lowered(self, x: Any) -> Any:
            return x + x if x.dtype.kind == "i" else Thrice._lowered(self, x)

    ((hook, problem),) = findings(thrice(Halved()), MATRIX, TYPES)
    assert "ulps from impl's" in problem


@pytest.mark.parametrize("axes", ["rows", "axes"])
def test_map_that_is_wrong_for_many_rows_or_axes_is_a_finding(axes: str) -> None:
    class Small(Thrice):
        @hookimpl
        def vmap(self, axis: Any, args: Sequence[Any], dims: Sequence[Any]) -> Any:
            large = axis.size > 8 if axes == "rows" else args[0].ndim > 4
            return (2.0 if large else 1.0) * thrice(self)(*args), dims[0]

    ((hook, problem),) = findings(thrice(Small()), MATRIX, MAPS)
    assert ("vmap", True) == (hook, "vmap over 17 rows" in problem)


@pytest.mark.parametrize("hook", ["impl", "xla_translation"])
def test_rule_that_is_wrong_for_many_elements_is_a_finding(hook: str) -> None:
    class Short(Thrice):
        @hookimpl
        def impl(self, args: Sequence[Any]) -> Any:
            (x,) = args
            return Thrice.impl(self, args) if hook != "impl" or x.size <= 100 else x

        def _lowered(self, x: Any) -> Any:
            return Thrice._lowered(self, x) if hook == "impl" or x.size <= 100 else x

    ((blamed, problem),) = findings(thrice(Short()), MATRIX, SIZES)
    assert (hook, True) == (blamed, "elements isn't what each element gives" in problem)


class Summed:
    """The sum along an axis; `checked` says whether abstract_eval looks at the axis."""

    name = "summed"

    def __init__(self, checked: bool, longest: int = 10 ** 6) -> None:
        self._checked, self._longest = checked, longest

    @hookimpl
    def abstract_eval(self, avals: Sequence[Any], *, along: int) -> Any:
        (x,) = avals
        if self._checked and not 0 <= along < x.ndim:
            raise CorejaxTypeError("summed: there is no such axis", got=along, wanted=f"0 to {x.ndim - 1}")
        return x.update(shape=[n for k, n in enumerate(x.shape) if k != along])

    @hookimpl
    def impl(self, args: Sequence[Any], *, along: int) -> Any:
        (x,) = args
        return np.asarray(x.sum(along) if 0 <= along < x.ndim else np.zeros_like(x), x.dtype)

    @hookimpl
    def xla_translation(self, ctx: Any, args: Sequence[Any], *, along: int) -> Any:
        shape = ctx.avals_in[0].shape
        return ctx.lower(lambda x: lax.reduce_sum(x[:self._longest], axes=(along,)) if 0 <= along < x.ndim else x,
                         *args) if shape else args[0]


def test_param_out_of_range_that_gives_zeros_in_one_way_only_is_a_finding() -> None:
    sample = Sample([np.arange(1.0, 7.0).reshape(2, 3)], {"along": 0})
    ((_, problem),) = findings(define(Summed(checked=False)), sample, PARAMS)
    assert "ulps from impl's" in problem
    assert [] == findings(define(Summed(checked=True)), sample, PARAMS)


def test_param_out_of_range_that_makes_abstract_eval_stumble_is_a_finding() -> None:
    class Stumbling(Summed):
        @hookimpl
        def abstract_eval(self, avals: Sequence[Any], *, along: int) -> Any:
            (x,) = avals
            sizes = dict(enumerate(x.shape))
            del sizes[along]
            return x.update(shape=list(sizes.values()))

    ((hook, problem),) = findings(define(Stumbling(True)), Sample([np.ones((2, 3))], {"along": 0}), PARAMS)
    assert ("abstract_eval", "it stumbles over params instead of refusing them") == (hook, problem)


def test_lowering_that_is_wrong_along_long_axes_is_a_finding() -> None:
    sample = Sample([np.arange(1.0, 7.0)], {"along": 0})
    assert [] == findings(define(Summed(True)), sample, SIZES)
    ((hook, problem),) = findings(define(Summed(True, longest=100)), sample, SIZES)
    assert "if an axis has the size 129" in problem


class Bent(Thrice):
    """3 x, whose tangent is 3 x_dot for numbers below 2 only."""

    @hookimpl
    def abstract_eval(self, avals: Sequence[Any]) -> Any:
        return lax.floor.primitive.infer(tuple(avals), {})  # which refuses complex numbers

    @hookimpl
    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> Any:
        (x,), (x_dot,) = primals, tangents
        return thrice(self)(x), lax.select(x < 2.0, 3.0 * x_dot, 2.0 * x_dot)


def test_derivative_that_is_wrong_outside_the_domain_is_found_in_the_full_mode() -> None:
    law = "jvp agrees with differences outside the domain"
    inside = Sample([np.array([0.5, 0.75])], domain=(0.0, 1.5))
    ((hook, problem),) = findings(thrice(Bent()), inside, law, full=True)
    assert ("jvp", True) == (hook, "is not what differences say" in problem)
    assert [] == findings(thrice(Bent()), inside, "jvp agrees with differences")
