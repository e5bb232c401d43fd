"""The hook `carry`: transformations of packs go through primitives that carry programs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from importlib.metadata import entry_points
from itertools import combinations, islice
from typing import Any, NamedTuple

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import corejax as cj
from corejax import lax
from corejax.core import aval_of, dtypes, subjaxprs
from corejax.errors import CorejaxNotImplementedError
from corejax.plugin import Effect, Sample, define, hookimpl
from corejax_testing.duals import DUALS, Dual, by_duals, by_jvp
from corejax_testing.running import primitive_of
from intervals import INTERVALS, JOINT, Interval

#: Each with whether it computes as its jvp does, to the last bit: the others run what their jvp doesn't look into.
CARRIERS = {
    "bounded_while_loop": True, "checkpoint_call": True, "checkpointed_scan": True, "cond": True, "counted_scan": True,
    "custom_linear_solve": False, "custom_root": False, "custom_vmap_call": True, "linear_call": False,
    "platform_dependent": True, "scan": True, "while_loop": True, "xla_call": True,
}

#: What is composed of others, so that each transformation goes through these.
COMPOSED = ("composite_call", "custom_fwd_call", "segmented_scan")

#: What takes a while to transform: three samples of each, or all.
EACH = [*[(name, 3) for name in CARRIERS],
        *[pytest.param(name, None, marks=pytest.mark.exhaustive) for name in CARRIERS]]

_NO_REVERSE = "pullback is linear"  # the law from which samples without a reverse mode are exempt


class Given(NamedTuple):
    """A sample, as a function of its operands."""

    primitive: Any
    sample: Sample

    @property
    def args(self) -> Sequence[Any]:
        return self.sample.args

    @property
    def inexact(self) -> list[int]:
        return [i for i, x in enumerate(self.args) if dtypes.is_inexact(aval_of(x).dtype)]

    def dots(self, seed: int = 0) -> dict[int, Any]:
        rng = np.random.default_rng(seed)
        return {i: rng.standard_normal(np.shape(self.args[i])).astype(aval_of(self.args[i]).dtype)
                for i in self.inexact}

    def __call__(self, *args: Any) -> list[Any]:
        return list(self.primitive.bind(*args, **self.sample.params))


def given(name: str) -> Iterator[Given]:
    primitive = primitive_of(name)
    for sample in primitive.samples(np.random.default_rng(0)):
        if sample.error is None:
            yield Given(primitive, sample)


def subsets(items: Sequence[int]) -> list[tuple[int, ...]]:
    """All that aren't empty, up to three items; of more items, each and all."""
    if len(items) > 3:
        return [*[(i,) for i in items], tuple(items)]
    return [chosen for size in range(1, len(items) + 1) for chosen in combinations(items, size)]


def both(one: Given, boxed: Sequence[int]) -> tuple[Any, Any, list[Any]]:
    """By dual numbers, by forward mode, and operands for both."""
    dots = one.dots()
    count = len(one.args)
    return by_duals(one, count, boxed), by_jvp(one, count, boxed), [*one.args, *[dots[i] for i in boxed]]


def assert_same(got: Sequence[Any], wanted: Sequence[Any], exact: bool = False) -> None:
    for x, y in zip(got, wanted, strict=True):
        assert aval_of(x).matches(aval_of(y))
        if exact:
            assert_array_equal(np.asarray(x), np.asarray(y))
        else:
            assert_allclose(np.asarray(x), np.asarray(y), rtol=1e-12, atol=1e-12)


# Dual numbers equal forward mode

def test_all_that_carries_programs_goes_through_them() -> None:
    names = entry_points(group="corejax.primitives")
    holding = {each.name for each in names if each.value.startswith("corejax_control_flow.")
               if any([next(subjaxprs(one.sample.params), None) for one in given(each.name)])}
    assert {*CARRIERS, *COMPOSED, "custom_call"} == holding
    assert {*CARRIERS} == {name for name in holding if primitive_of(name).carry is not None}
    assert all([primitive_of(name).decompose is not None for name in COMPOSED])


@pytest.mark.parametrize("name", [*CARRIERS, *COMPOSED])
def test_dual_numbers_equal_jvp_whatever_is_boxed(name: str) -> None:
    for one in given(name):
        for boxed in subsets(one.inexact):
            duals, jvp, operands = both(one, boxed)
            assert_same(duals(*operands), jvp(*operands), CARRIERS.get(name, True))


@pytest.mark.parametrize(("name", "count"), EACH)
def test_dual_numbers_equal_jvp_under_jit_and_vmap(name: str, count: int | None) -> None:
    for one in islice(given(name), count):
        duals, jvp, operands = both(one, one.inexact)
        assert_same(cj.jit(duals)(*operands), jvp(*operands))
        rows = [np.stack([x, x if i < len(one.args) else 2 * x]) for i, x in enumerate(operands)]
        assert_same(cj.vmap(duals)(*rows), cj.vmap(jvp)(*rows))
        mapped = (*[None] * len(one.args), *[0] * len(one.inexact))
        if one.inexact:
            few = [*operands[:len(one.args)], *rows[len(one.args):]]
            assert_same(cj.vmap(duals, mapped)(*few), cj.vmap(jvp, mapped)(*few))


@pytest.mark.parametrize(("name", "count"), EACH)
def test_dual_numbers_have_the_gradients_of_jvp(name: str, count: int | None) -> None:
    for one in islice(given(name), count):
        if _NO_REVERSE in one.sample.exempt or not one.inexact:
            continue
        duals, jvp, operands = both(one, one.inexact)
        places = (*one.inexact, *range(len(one.args), len(operands)))

        def total(outs: Sequence[Any]) -> Any:
            weighted = [(k + 1.5) * lax.sin(x).sum() for k, x in enumerate(outs) if dtypes.is_inexact(aval_of(x).dtype)]
            return sum(weighted[1:], start=weighted[0])

        got, wanted = [cj.grad(lambda *xs, f=f: total(f(*xs)), places)(*operands) for f in (duals, jvp)]
        assert_same(got, wanted)


@pytest.mark.parametrize(("name", "count"), EACH)
def test_dual_numbers_of_dual_numbers_equal_jvp_of_jvp(name: str, count: int | None) -> None:
    for one in islice(given(name), count):
        duals, jvp, operands = both(one, one.inexact)
        boxed = [*one.inexact, *range(len(one.args), len(operands))]
        more = [np.asarray(x) * 0.5 for i, x in enumerate(operands) if i in boxed]
        assert_same(by_duals(duals, len(operands), boxed)(*operands, *more),
                    by_jvp(jvp, len(operands), boxed)(*operands, *more))


# What users write

def loops(x: Any, n: Any) -> list[Any]:
    """Everything at once, with plain indices and conditions."""
    def step(c: Any, row: Any) -> Any:
        return c * row + x[0], cj.checkpoint(lambda c: lax.sin(c))(c)

    carry, rows = lax.scan(step, x[1], x)
    x = lax.switch(n, [lambda x: x * carry, lambda x: x + rows, lambda x: x], x)
    x = lax.fori_loop(0, n + 1, lambda i, x: x * x[0], x)
    return [lax.while_loop(lambda c: c[0] < n, lambda c: (c[0] + 1, c[1] - x), (0, x))[1],
            lax.bounded_while_loop(lambda c: c[0] < n, lambda c: (c[0] + 1, c[1] * x), (0, x), max_steps=5)[1]]


def test_intervals_hold_what_points_in_them_become() -> None:
    x, n = np.array([0.2, 0.4, -0.3]), np.int32(1)
    low, high = x - 0.01, x + 0.02
    for fun in (loops, cj.jit(loops)):
        outs = INTERVALS.run(fun, [Interval(low, high), n])
        for t in np.linspace(0.0, 1.0, 5):
            for out, y in zip(outs, fun(low + t * (high - low), n), strict=True):
                assert np.all(np.asarray(out.low) <= y + 1e-15) and np.all(y - 1e-15 <= np.asarray(out.high))
        for out, y in zip(INTERVALS.run(fun, [Interval(x, x), n]), loops(x, n), strict=True):
            assert_allclose(out.low, y, rtol=1e-12)
            assert_allclose(out.high, y, rtol=1e-12)
    rows = cj.vmap(lambda low, high: [[*out] for out in INTERVALS.run(loops, [Interval(low, high), n])])(
        np.stack([low, x]), np.stack([high, x]))
    for pair, out in zip(rows, outs, strict=True):
        assert_allclose(pair[0][0], out.low, rtol=1e-12)
        assert_allclose(pair[1][0], out.high, rtol=1e-12)


def test_what_decides_must_be_plain() -> None:
    one = Interval(np.float64(0.0), np.float64(1.0))
    index = Interval(np.int32(0), np.int32(1))
    two = next(each for each in given("cond") if len(each.args) == 2)
    with pytest.raises(CorejaxNotImplementedError, match=r"cond: interval: the index of a branch is in a box"):
        INTERVALS.run(lambda i: lax.cond.primitive.bind(i, 1.0, **two.sample.params), [index])

    def greater(args: Sequence[Any]) -> Any:
        """`greater(args, *, ...)`: an interval of booleans."""

    class Fuzzy(type(INTERVALS)):  # type: ignore[misc]
        pass

    def compared(lifting: Any, primitive: Any) -> Any:
        def rule(args: Sequence[Any], /, **params: Any) -> Any:
            low, high = [primitive.bind(*[x[i] if isinstance(x, Interval) else x for x in args], **params)
                         for i in range(2)]
            return Interval(low, high)
        return rule if primitive.name == "lt" else None

    fuzzy = Fuzzy(greater, ways={**INTERVALS.ways, "comparisons": compared})
    for loop, name in ((lambda x: lax.while_loop(lambda c: c < 3.0, lambda c: c + 1.0, x), "while_loop"),
                       (lambda x: lax.bounded_while_loop(lambda c: c < 3.0, lambda c: c + 1.0, x, max_steps=4),
                        "bounded_while_loop")):
        with pytest.raises(CorejaxNotImplementedError, match=f"{name}: greater: the condition of a loop is in a box"):
            fuzzy.run(lambda x, loop=loop: [loop(x)], [one])
    body = next(given("counted_scan"))
    with pytest.raises(CorejaxNotImplementedError, match="counted_scan: interval: the number of steps of a loop is"):
        INTERVALS.run(body, [Interval(body.args[0], body.args[0]), *body.args[1:]])


def test_only_slices_of_pointwise_boxes_are_boxes() -> None:
    x = np.ones(3)
    box = Interval(x, x)
    with pytest.raises(CorejaxNotImplementedError, match=r"(?s)scan: interval: a loop over slices takes values apart"):
        JOINT.run(lambda x: [lax.scan(lambda c, row: (c, c + row), 0.0, x)[1]], [box])
    with pytest.raises(CorejaxNotImplementedError, match="a loop over slices"):  # made of slices
        JOINT.run(lambda x: [lax.scan(lambda c, _: (c, c + x[0]), 0.0, None, length=2)[1]], [box])
    # neither what is carried nor what is plain is taken apart
    (out,) = JOINT.run(lambda x: [lax.scan(lambda c, row: (c + x * row, row), x, np.arange(3.0))[0]], [box])
    assert_array_equal(4.0 * x, out.high)


def test_a_plain_result_of_one_branch_is_raised_where_another_returns_a_box() -> None:
    x = Interval(np.float64(0.25), np.float64(0.5))
    for n, wanted in ((0, (3.0, 3.0)), (1, (0.25, 0.5))):
        fun = cj.jit(lambda x, n: lax.switch(n, [lambda: (3.0, 1.0), lambda: (x, 2.0)]))
        (out, plain) = INTERVALS.run(fun, [x, np.int32(n)])
        assert wanted == (float(out.low), float(out.high))
        assert n + 1.0 == float(plain)


def test_a_carry_may_become_a_box_in_the_second_step() -> None:
    x = Interval(np.float64(0.25), np.float64(0.5))

    def end(out: Any, i: int) -> Any:  # without steps, nothing is boxed
        return out[i] if isinstance(out, Interval) else out

    def shifted(x: Any, length: int) -> list[Any]:
        (a, b, c), ys = lax.scan(lambda c, _: ((c[1], c[2], x), c[0]), (1.0, 2.0, 3.0), None, length=length)
        return [a, b, c, ys]

    for length, wanted in ((0, [1.0, 2.0, 3.0]), (1, [2.0, 3.0, 0.25]), (2, [3.0, 0.25, 0.25]), (4, [0.25] * 3)):
        a, b, c, ys = INTERVALS.run(cj.jit(lambda x, n=length: shifted(x, n)), [x])
        assert wanted == [float(end(out, 0)) for out in (a, b, c)]
        assert [1.0, 2.0, 3.0, 0.25][:length] == np.asarray(end(ys, 0)).tolist()
        assert [1.0, 2.0, 3.0, 0.5][:length] == np.asarray(end(ys, 1)).tolist()

    def looped(x: Any) -> Any:
        return lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, c[2], x), (0, 1.0, 2.0))
    n, a, b = INTERVALS.run(lambda x: [*looped(x)], [x])
    assert (3, 0.25, 0.5) == (int(n), float(a.low), float(b.high))


@pytest.mark.parametrize("length", [0, 1])
def test_short_scans_and_empty_operands(length: int) -> None:
    x, rows = np.zeros((0,)), np.ones((length, 0))

    def fun(x: Any, rows: Any) -> list[Any]:
        return [*lax.scan(lambda c, row: (lax.sin(c + row), c), x, rows)]

    for run in (fun, cj.jit(fun)):
        carry, ys = INTERVALS.run(run, [Interval(x, x), Interval(rows, rows)])
        assert (0,) == carry.high.shape
        assert (length, 0) == (ys.high if isinstance(ys, Interval) else ys).shape  # without steps, nothing is boxed


def test_programs_without_operands_and_results() -> None:
    x = Interval(np.float64(1.0), np.float64(2.0))
    plain, box = INTERVALS.run(lambda x: [cj.jit(lambda: lax.sin(1.0))(), cj.jit(lambda x: (x, 3.0))(x)[0]], [x])
    assert np.sin(1.0) == float(plain)
    assert (1.0, 2.0) == (float(box.low), float(box.high))
    assert [] == INTERVALS.run(lambda x: cj.jit(lambda x: [])(x), [x])


def test_types_of_numbers_are_kept() -> None:
    """Weak ones, and those of boxes whose arrays aren't equally weak."""
    for dual in (Dual(0.5, 1.0), Dual(0.5, np.float64(1.0)), Dual(np.float64(0.5), 1.0)):
        weak = aval_of(dual.x).weak_type

        def fun(x: Any) -> list[Any]:
            return [lax.fori_loop(0, 2, lambda i, c: c * 2.0, x), lax.cond(True, lambda x: x, lambda x: x * 3.0, x)]
        for run in (fun, cj.jit(fun)):
            for out in DUALS.run(run, [dual]):
                assert (weak, False) == (out.x.aval.weak_type, out.dot.aval.weak_type)
    (out,) = INTERVALS.run(lambda x: [cj.jit(lambda x: x + 1.0)(x)], [Interval(0.5, np.float64(1.0))])
    assert (False, False) == (out.low.aval.weak_type, out.high.aval.weak_type)
    (narrow,) = INTERVALS.run(lambda x: [cj.jit(lambda x: x + 1.0)(x)], [Interval(np.float32(1), np.float32(1))])
    assert np.float32 == narrow.low.dtype


def test_donated_boxes_donate_all_their_arrays() -> None:
    step = cj.jit(lambda x, y: x * 2.0 + y, donate_argnums=0)
    x, y = cj.device_put(np.ones(3)), np.ones(3)
    program = cj.make_jaxpr(lambda low, high, y: [
        *INTERVALS.run(lambda x, y: [step(x, y)], [Interval(low, high), y])[0]])(x, x, y)
    (eqn,) = program.eqns
    assert (True, True, False) == eqn.params["donated"]
    (out,) = INTERVALS.run(lambda x, y: [step(x, y)], [Interval(x, x), y])
    assert_array_equal(3.0 * y, out.high)


# What users' rules say

def test_a_rule_for_vmap_maps_boxes() -> None:
    calls = []

    @cj.custom_batching.custom_vmap
    def fun(x: Any, y: Any) -> Any:
        return x * y

    @fun.def_vmap
    def rule(axis_size: int, in_batched: Any, x: Any, y: Any) -> Any:
        calls.append(tuple(in_batched))
        return x * y + 1.0, True

    x, y = np.arange(1.0, 3.0), np.float64(3.0)
    low, high = cj.vmap(lambda a, b: tuple(INTERVALS.run(lambda x: [fun(x, y)], [Interval(a, b)])[0]))(x, x + 1)
    assert_array_equal(3.0 * x + 1.0, low)
    assert_array_equal(3.0 * (x + 1) + 1.0, high)
    assert [(True, False)] == calls


def test_a_rule_for_vmap_is_for_pointwise_boxes() -> None:
    @cj.custom_batching.sequential_vmap
    def fun(x: Any) -> Any:
        return x + 1.0

    def ends(low: Any, high: Any) -> list[Any]:
        return [*JOINT.run(lambda x: [fun(x)], [Interval(low, high)])[0]]

    y = np.float64(3.0)
    assert [4.0, 5.0] == [*map(float, cj.jit(ends)(y, y + 1.0))]
    with pytest.raises(CorejaxNotImplementedError, match="custom_vmap_call: interval: a rule for vmap takes values"):
        cj.vmap(cj.jit(ends))(np.ones(2), np.ones(2))


def test_many_values_may_become_boxes_one_after_the_other() -> None:
    x, many = Interval(np.float64(0.25), np.float64(0.5)), 130

    def shifted(x: Any, cs: Any) -> Any:
        return lax.fori_loop(0, many, lambda i, cs: [*cs[1:], x], cs)

    outs = INTERVALS.run(cj.jit(lambda x: shifted(x, [np.float64(0.0)] * many)), [x])
    assert [(0.25, 0.5)] * many == [(float(out.low), float(out.high)) for out in outs]


def test_a_solver_is_transformed_as_it_is_written() -> None:
    def solve(matvec: Any, b: Any) -> Any:
        return b * 0.5

    b = Interval(np.array([1.0, 2.0]), np.array([2.0, 4.0]))
    (out,) = INTERVALS.run(lambda b: [lax.custom_linear_solve(lambda x: 2.0 * x, b, solve, symmetric=True)], [b])
    assert_array_equal([1.0, 2.0], out.high)
    (root,) = INTERVALS.run(lambda a: [lax.custom_root(lambda x: 2.0 * x - a, a, lambda f, x: x * 0.5,
                                                       lambda g, y: y * 0.5)], [b])
    assert_array_equal([0.5, 1.0], root.low)


# Effects

NOTED = Effect("noted")


class Note:
    """carry_note(x) = x, with an effect, and it writes x down."""

    name = "carry_note"

    def __init__(self) -> None:
        self._seen: list[float] = []

    @hookimpl
    def abstract_eval(self, avals: Any) -> Any:
        return avals[0]

    @hookimpl
    def impl(self, args: Any) -> Any:
        self._seen.append(float(args[0]))
        return args[0]

    @hookimpl
    def effects(self, avals: Any) -> Any:
        return frozenset({NOTED})

    @hookimpl
    def xla_translation(self, ctx: Any, args: Any) -> Any:
        def write(x: Any) -> list[Any]:
            self._seen.append(float(x))
            return [x]
        return ctx.callback(write, args, ctx.avals_out)[0]


note_plugin = Note()
note = define(note_plugin)


def test_effects_in_programs_happen_once_for_each_run() -> None:
    x, n = Interval(np.float64(0.25), np.float64(0.5)), np.float64(7.0)

    def fun(x: Any, n: Any) -> Any:
        return x + note(n)

    def after(what: Any, *more: Any) -> list[float]:
        note_plugin._seen.clear()
        cj.block_until_ready([out.high for out in INTERVALS.run(lambda x, n: [what(x, n)], [x, n])])
        return list(note_plugin._seen)

    assert [7.0] == after(cj.jit(fun))
    assert [7.0] == after(lambda x, n: lax.cond(n > 0.0, fun, lambda x, n: x, x, n))
    assert [7.0] == after(cj.checkpoint(fun))
    assert [7.0] * 3 == after(lambda x, n: lax.fori_loop(0, 3, lambda i, c: fun(c, n), x))
    assert [7.0] * 2 == after(lambda x, n: lax.while_loop(lambda c: c[0] < 2, lambda c: (c[0] + 1, fun(c[1], n)),
                                                          (0, x))[1])
    # nobody said what becomes of an effect of a box
    with pytest.raises(CorejaxNotImplementedError, match="carry_note"):
        INTERVALS.run(lambda x: [cj.jit(note)(x)], [x])
