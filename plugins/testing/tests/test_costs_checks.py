"""Rules that loop in Python are found by the size of their programs; what grows for other reasons isn't."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Any

import numpy as np
import pytest

import corejax as cj
from corejax import lax
from corejax.core import aval_of, to_dim
from corejax.plugin import Sample, define, hookimpl
from corejax.testing import ConformanceError, Report, check_primitive

MAPS = "maps cost the same for any batch"
DERIVATIVES = "derivatives cost the same for any size"
LOWERINGS = "lowerings cost the same for any size"
X = np.array([[0.5, 1.5, -1.0], [2.0, 0.1, 0.3]])


def rows(x: Any) -> list[Any]:
    """Each row, taken by an equation of its own."""
    return [x[k] for k in range(aval_of(x).shape[0])]


def stacked(xs: Sequence[Any]) -> Any:
    return lax.concatenate([lax.expand_dims(x, (0,)) for x in xs], 0)


class Sine:
    """sin; each test replaces a rule."""

    name = "costly_sine"

    @hookimpl
    def abstract_eval(self, avals: Sequence[Any]) -> Any:
        (x,) = avals
        return x

    @hookimpl
    def decompose(self, args: Sequence[Any]) -> Any:
        (x,) = args
        return lax.sin(x)

    @hookimpl
    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> Any:
        (x,), (t,) = primals, tangents
        return lax.sin(x), lax.cos(x) * t

    @hookimpl
    def vmap(self, axis: Any, args: Sequence[Any], dims: Sequence[Any]) -> Any:
        return lax.sin(args[0]), dims[0]


def report(plugin: Any, check: str, *samples: Sample) -> Report:
    return check_primitive(define(plugin), samples or [Sample([X])], checks=[check])


def problems(plugin: Any, check: str, *samples: Sample) -> list[tuple[str, str]]:
    """What the check finds, by the hook that it blames."""
    with pytest.raises(ConformanceError) as found:
        report(plugin, check, *samples)
    return [(failure.hook, failure.problem) for failure in found.value.failures]


@pytest.mark.parametrize("check", [MAPS, DERIVATIVES, LOWERINGS])
def test_rules_of_whole_arrays_pass(check: str) -> None:
    assert ["held"] == [outcome.status for outcome in report(Sine(), check).outcomes]


def test_a_map_that_loops_over_rows_is_found() -> None:
    class Looping(Sine):
        @hookimpl
        def vmap(self, axis: Any, args: Sequence[Any], dims: Sequence[Any]) -> Any:
            return stacked([lax.sin(row) for row in rows(to_dim(args[0], dims[0], 0, axis.size))]), 0

    ((hook, problem),) = problems(Looping(), MAPS)
    assert "vmap" == hook and "grows with the batch, with in_axes=(0,)" in problem


def test_a_map_that_loops_in_a_program_that_it_binds_is_found() -> None:
    class Inside(Sine):
        @hookimpl
        def vmap(self, axis: Any, args: Sequence[Any], dims: Sequence[Any]) -> Any:
            return cj.jit(lambda x: stacked([lax.sin(row) for row in rows(x)]))(args[0]), 0

    assert ["vmap"] == [hook for hook, _ in problems(Inside(), MAPS)]


def test_a_map_that_loops_if_only_the_second_operand_is_mapped_is_found() -> None:
    class Plus:
        name = "costly_plus"

        @hookimpl
        def decompose(self, args: Sequence[Any]) -> Any:
            x, y = args
            return lax.add(x, y)

        @hookimpl
        def vmap(self, axis: Any, args: Sequence[Any], dims: Sequence[Any]) -> Any:
            (x, y), (dim, other) = args, dims
            if dim is None:
                return stacked([lax.add(x, row) for row in rows(to_dim(y, other, 0, axis.size))]), 0
            return lax.add(to_dim(x, dim, 0, axis.size), to_dim(y, other, 0, axis.size)), 0

    ((_, problem),) = problems(Plus(), MAPS, Sample([X[0], X[1]]))
    assert "in_axes=(None, 0)" in problem


def test_a_map_by_a_scan_does_not_grow() -> None:
    class Scanned(Sine):
        @hookimpl
        def vmap(self, axis: Any, args: Sequence[Any], dims: Sequence[Any]) -> Any:
            return lax.scan(lambda carry, row: (carry, lax.sin(row)), (), to_dim(
                args[0], dims[0], 0, axis.size))[1], 0

    assert report(Scanned(), MAPS)


def test_a_loop_over_elements_in_a_derivative_is_found() -> None:
    class Looping(Sine):
        @hookimpl
        def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> Any:
            (x,), (t,) = primals, tangents
            return lax.sin(x), stacked([lax.cos(row) * row_dot for row, row_dot in zip(rows(x), rows(t), strict=True)])

    found = problems(Looping(), DERIVATIVES)
    assert [("jvp", "the program of the derivative grows with the size of operands")] == found


def test_a_loop_over_elements_in_a_transpose_is_found() -> None:
    class Summed:
        name = "costly_sum"
        linear = (0,)

        @hookimpl
        def decompose(self, args: Sequence[Any]) -> Any:
            (x,) = args
            return x.sum(0)

        @hookimpl
        def transpose(self, cotangents: Any, args: Sequence[Any]) -> Any:
            return [stacked([cotangents] * args[0].aval.shape[0])]

    assert ["transpose"] == [hook for hook, _ in problems(Summed(), DERIVATIVES)]


def total(args: Sequence[Any]) -> Any:
    (x,) = args
    return reduce(lax.add, rows(x))


def test_a_loop_over_elements_in_a_decomposition_or_a_lowering_is_found() -> None:
    class Decomposed:
        name = "costly_total"
        decompose = staticmethod(hookimpl(total))

    class Lowered:
        name = "costly_total"

        @hookimpl
        def abstract_eval(self, avals: Sequence[Any]) -> Any:
            (x,) = avals
            return x.update(shape=x.shape[1:])

        @hookimpl
        def xla_translation(self, ctx: Any, args: Sequence[Any]) -> Any:
            return ctx.lower(lambda x: total([x]), *args)

    for plugin, hook in ((Decomposed(), "decompose"), (Lowered(), "xla_translation")):
        found = problems(plugin, LOWERINGS)
        assert [(hook, "the program that is compiled grows with the size of operands")] == found


def test_halving_what_is_left_is_no_loop() -> None:
    class Halving:
        name = "costly_halving"

        @hookimpl
        def decompose(self, args: Sequence[Any]) -> Any:
            (x,) = args
            while (n := x.shape[0]) > 1:
                x = x[:n // 2] + x[n // 2:n // 2 * 2] if n % 2 == 0 else lax.concatenate(
                    [x[:1] + x[-1:], x[1:-1]], 0)
            return x[0]

    for check in (DERIVATIVES, LOWERINGS):
        assert ["held"] == [o.status for o in report(Halving(), check, Sample([np.ones(4)])).outcomes]


def test_many_operands_and_sizes_in_params_are_no_loop() -> None:
    class Joined:
        name = "costly_joined"
        operands = ("*xs",)

        @hookimpl
        def decompose(self, args: Sequence[Any], *, times: int) -> Any:
            return reduce(lax.add, [x.sum() for x in args] * times)

    for check in (MAPS, DERIVATIVES, LOWERINGS):
        found = report(Joined(), check, *[Sample([X] * n, {"times": n}) for n in (1, 2, 4)])
        assert ["held"] == [outcome.status for outcome in found.outcomes]


def test_as_many_results_as_rows_are_no_loop() -> None:
    class Apart:
        name = "costly_apart"
        multiple_results = True

        @hookimpl
        def decompose(self, args: Sequence[Any]) -> Any:
            (x,) = args
            return rows(x)

    for check in (DERIVATIVES, LOWERINGS):
        assert ["not applicable"] == [o.status for o in report(Apart(), check, Sample([np.ones((2, 1))])).outcomes]
        assert ["held"] == [o.status for o in report(Apart(), check, Sample([X])).outcomes]  # along the other axis


def test_exemption_with_a_reason_counts() -> None:
    class Decomposed:
        name = "costly_total"
        decompose = staticmethod(hookimpl(total))

    given = Sample([X], exempt={LOWERINGS: "it is for two or three rows"})
    assert ["exempt"] == [outcome.status for outcome in report(Decomposed(), LOWERINGS, given).outcomes]
