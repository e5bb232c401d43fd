"""Each fault of a vmap rule is caught by name; true rules raise no alarm.

Samples have the size of the kit's batches, so that a rule which takes one axis for another has results of right types.
"""

from __future__ import annotations

import numpy as np
import pytest

from corejax import lax
from corejax.core import Tracer, is_staging, to_dim
from corejax.plugin import Sample, define, hookimpl
from corejax.testing import ConformanceError, batching, check_primitive
from corejax_testing.batches import Batch, layouts
from corejax_testing.case import Case
from corejax_testing.check import Check
from corejax_testing.report import NotApplicable

CHECKS = [found.name for found in vars(batching).values() if isinstance(found, Check)]
RNG = np.random.default_rng(0)
PAIR = Sample([RNG.uniform(0.5, 2, 3), RNG.uniform(0.5, 2, 3)], domain=(0.5, 2.0))
INTEGERS = Sample([np.array([3, 1, 2]), np.array([5, 7, 9])])


class Bindable:
    """A plugin whose rules bind its own primitive."""

    def _bind(self, *args):
        return define(self)(*args)


class Weighted(Bindable):
    """x in reverse, times w, along the last axis."""

    name = "weighted"

    @hookimpl
    def decompose(self, args):
        x, w = args
        return lax.mul(lax.rev(x, (x.ndim - 1,)), w)

    @hookimpl
    def vmap(self, axis, args, dims):
        return self._bind(*[to_dim(x, d, 0, axis.size) for x, d in zip(args, dims, strict=True)]), 0


def failures(plugin, *samples, checks=CHECKS, full=False):
    """The failures by check."""
    handle = define(plugin)
    try:
        check_primitive(handle, samples=samples, checks=checks, full=full)
    except ConformanceError as error:
        found = {}
        for failure in error.failures:
            found.setdefault(failure.check, []).append(failure)
        return found
    return {}


def test_a_true_rule_raises_no_alarm():
    assert {} == failures(Weighted(), PAIR, INTEGERS)


def test_a_true_rule_raises_no_alarm_in_the_full_mode():
    assert {} == failures(Weighted(), PAIR, full=True)


class TakesTheBatchAxisToBeTheFirst(Weighted):
    @hookimpl
    def vmap(self, axis, args, dims):
        x, w = [to_dim(x, None, 0, axis.size) if d is None else x for x, d in zip(args, dims, strict=True)]
        return self._bind(x, w), 0


class SaysAnotherPlaceForTheBatchAxis(Weighted):
    @hookimpl
    def vmap(self, axis, args, dims):
        return super().vmap(axis, args, dims)[0], 1


class TakesEveryOperandToBeMapped(Weighted):
    @hookimpl
    def vmap(self, axis, args, dims):
        x, w = [lax.broadcast_in_dim(x, (axis.size, *x.shape), (0,)) if d is None else to_dim(x, d, 0, axis.size)
                for x, d in zip(args, dims, strict=True)]
        return self._bind(x, w), 0


class TurnsTheRowsAround(Weighted):
    @hookimpl
    def vmap(self, axis, args, dims):
        return lax.rev(super().vmap(axis, args, dims)[0], (0,)), 0


class GivesEachRowTheFirstWeights(Weighted):
    @hookimpl
    def vmap(self, axis, args, dims):
        x, w = [to_dim(x, d, 0, axis.size) for x, d in zip(args, dims, strict=True)]
        first = lax.slice_in_dim(w, 0, 1) if axis.size else w
        return self._bind(x, lax.broadcast_in_dim(first, w.shape, (0, 1)) if axis.size else w), 0


@pytest.mark.parametrize("faulty", [
    TakesTheBatchAxisToBeTheFirst, SaysAnotherPlaceForTheBatchAxis, TakesEveryOperandToBeMapped, TurnsTheRowsAround,
    GivesEachRowTheFirstWeights])
def test_a_map_that_is_no_loop_is_caught(faulty):
    found = failures(faulty(), PAIR)["a map is a loop"][0]
    assert ("weighted", "vmap") == (found.primitive, found.hook)
    assert "vmap with in_axes=" in found.problem
    assert "sample 0: weighted(f64[3]" in found.sample
    assert found.todo


def test_rows_of_integers_differ_so_that_a_permutation_of_them_is_caught():
    assert "a map is a loop" in failures(TurnsTheRowsAround(), INTEGERS)


class LooksAtTheFirstRow(Weighted):
    @hookimpl
    def vmap(self, axis, args, dims):
        if not axis.size:
            raise IndexError("there is no first row")
        return super().vmap(axis, args, dims)


def test_a_rule_that_needs_a_row_is_caught_by_the_empty_batch():
    found = failures(LooksAtTheFirstRow(), PAIR)
    assert ["maps of no slice and of one work"] == list(found)
    assert "IndexError" in found["maps of no slice and of one work"][0].problem


class ForgetsTheAxisWhenNested(Weighted):
    @hookimpl
    def vmap(self, axis, args, dims):
        if isinstance(args[0], Tracer) and type(args[0]).__name__ == "BatchTracer" and None not in dims:
            return self._bind(*args), 0
        return super().vmap(axis, args, dims)


def test_a_rule_that_is_wrong_inside_another_map_is_caught():
    assert ["nested maps are nested loops"] == list(failures(ForgetsTheAxisWhenNested(), *[PAIR] * 4))


class ChangesWithTheAxisName(Weighted):
    @hookimpl
    def vmap(self, axis, args, dims):
        out, dim = super().vmap(axis, args, dims)
        return (out if axis.name is None else lax.neg(out)), dim


def test_a_rule_that_gives_something_else_for_a_named_axis_is_caught():
    found = failures(ChangesWithTheAxisName(), PAIR)
    assert ["a named axis changes nothing"] == list(found)


class DependsOnStaging(Weighted):
    @hookimpl
    def vmap(self, axis, args, dims):
        out, dim = super().vmap(axis, args, dims)
        return (lax.neg(out) if is_staging() else out), dim


class NeedsValues(Weighted):
    @hookimpl
    def vmap(self, axis, args, dims):
        if axis.size and bool(args[0].sum() < -1e9):
            return super().vmap(axis, args[::-1], dims[::-1])
        return super().vmap(axis, args, dims)


@pytest.mark.parametrize("faulty", [DependsOnStaging, NeedsValues])
def test_a_rule_that_does_not_work_on_traced_values_is_caught(faulty):
    assert "a map is the same when staged" in failures(faulty(), PAIR)


class MixesTheRows(Weighted):
    @hookimpl
    def vmap(self, axis, args, dims):
        out, dim = super().vmap(axis, args, dims)
        return out + 0.0 * out.sum(), dim


def test_a_rule_that_lets_rows_touch_each_other_is_caught():
    found = failures(MixesTheRows(), PAIR)
    assert ["rows of a map do not touch each other"] == list(found)
    assert "a row of nan changes other rows" in found["rows of a map do not touch each other"][0].problem


class ForgetsTheDerivative(Weighted):
    @hookimpl
    def vmap(self, axis, args, dims):
        x, w = args
        return super().vmap(axis, (x, lax.stop_gradient(w)), dims)


def test_a_rule_through_which_no_derivative_flows_is_caught():
    found = failures(ForgetsTheDerivative(), PAIR)
    assert ["maps of jvps and jvps of maps are loops", "pullbacks of maps are loops of pullbacks",
            "transposes of maps are loops of transposes"] == list(found)


class ForgetsTheSum(Bindable):
    """x times y, linear in either; its map by y alone pulls back to the first row."""

    name = "product"
    linear = (0,)

    @hookimpl
    def abstract_eval(self, avals):
        return avals[0]

    @hookimpl
    def impl(self, args):
        return args[0] * args[1]

    @hookimpl
    def transpose(self, cotangents, args):
        return [self._bind(cotangents, args[1]), None]

    @hookimpl
    def vmap(self, axis, args, dims):
        x, y = args
        if dims[0] is None:
            first = to_dim(x, None, 0, axis.size)
            rest = to_dim(lax.stop_gradient(x), None, 0, axis.size)
            x = lax.select_n(lax.eq(lax.broadcasted_iota("int32", first.shape, 0), 0), rest, first)
        return lax.mul(*[to_dim(each, d, 0, axis.size) for each, d in zip((x, y), (0, dims[1]), strict=True)]), 0


def test_a_map_whose_transpose_forgets_rows_is_caught():
    found = failures(ForgetsTheSum(), Sample([RNG.uniform(0.5, 2, 3), RNG.uniform(0.5, 2, 3)]))
    assert "transposes of maps are loops of transposes" in found


class Tripled(Bindable):
    """Three times x."""

    name = "tripled"
    linear = (0,)

    @hookimpl
    def abstract_eval(self, avals):
        return avals[0]

    @hookimpl
    def impl(self, args):
        return args[0] * 3

    @hookimpl
    def vmap(self, axis, args, dims):
        return lax.convert_element_type(self._bind(*args), args[0].dtype), dims[0]


def test_a_rule_that_loses_the_weak_type_is_caught():
    found = failures(Tripled(), Sample([2.0]))["a map is a loop"][0]
    assert "vmap" == found.hook
    assert "wanted" in str(found) and "~f64[3]" in str(found)


def test_every_choice_of_mapped_axes_is_tried_where_there_are_few():
    case = Case(define(Weighted()).primitive, PAIR, 0)
    assert {(a, b) for a in (None, 0, 1) for b in (None, 0, 1)} - {(None, None)} == set(layouts(case, 16))


def test_of_many_choices_of_mapped_axes_every_subset_is_tried():
    case = Case(define(Weighted()).primitive, Sample([np.zeros((1, 1, 1, 1))] * 3), 0)
    found = {tuple(d is not None for d in dims) for dims in layouts(case, 16)}
    assert 7 == len(found)


def test_an_operand_that_the_sample_keeps_is_the_same_in_each_row():
    batch = Batch(Case(define(Weighted()).primitive, Sample(PAIR.args, domain=[(0.0, 1.0), None]), 0), 3)
    assert [True, True] == [batch.rows[k][1] is PAIR.args[1] for k in (1, 2)]
    assert not np.array_equal(batch.rows[1][0], batch.rows[2][0])


def test_without_operands_there_is_nothing_to_map():
    with pytest.raises(NotApplicable, match="no operands"):
        layouts(Case(define(Weighted()).primitive, Sample([]), 0), 16)


@pytest.mark.parametrize("primitive", ["add", "clamp", "dot_general", "dynamic_slice", "gather", "cumsum", "cond"])
@pytest.mark.exhaustive  # test_conformance.py runs all checks on all of them
def test_shipped_primitives_raise_no_alarm(primitive):
    check_primitive(primitive, checks=CHECKS)
