"""The hook `carry` of `reduce`: transformations of packs go through the function that combines elements."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import corejax as cj
from corejax import lax
from corejax.core import aval_of, dtypes
from corejax.errors import CorejaxNotImplementedError
from corejax.plugin import transforming
from corejax_testing.duals import DUALS, Dual, by_duals, by_jvp
from corejax_testing.running import primitive_of


def test_dual_numbers_equal_jvp() -> None:
    primitive = primitive_of("reduce")
    for sample in primitive.samples(np.random.default_rng(0)):
        boxed = [i for i, x in enumerate(sample.args) if dtypes.is_inexact(aval_of(x).dtype)]
        if sample.error is not None or not boxed:
            continue

        def fun(*xs: Any, sample: Any = sample) -> list[Any]:
            return list(primitive.bind(*xs, **sample.params))

        for some in (boxed, boxed[:1], boxed[-1:]):
            operands = [*sample.args, *[np.cos(sample.args[i]) for i in some]]
            duals, jvp = [by(fun, len(sample.args), some) for by in (by_duals, by_jvp)]
            for run in (duals, cj.jit(duals)):
                for got, wanted in zip(run(*operands), jvp(*operands), strict=True):
                    assert aval_of(got) is aval_of(wanted)
                    assert_allclose(got, wanted, rtol=1e-12, atol=1e-12)
            rows = [np.stack([x, x]) for x in operands]
            for got, wanted in zip(cj.vmap(duals)(*rows), cj.vmap(jvp)(*rows), strict=True):
                assert_allclose(got, wanted, rtol=1e-12, atol=1e-12)


class Range(NamedTuple):
    low: Any
    high: Any


def bounds(args: Any) -> Any:
    """`bounds(args, *, ...)`: a Range for each result."""


class Ranges(transforming.Lifting):
    boxes = Range

    def raised(self, x: Any, form: Any) -> Any:
        return Range(x, x)


def test_ranges_are_combined_by_the_transformed_function() -> None:
    def rule(args: Any, /) -> Range:
        return Range(*[lax.add(*[x[i] if isinstance(x, Range) else x for x in args]) for i in range(2)])

    def product(args: Any, /) -> Range:
        (a, b), (c, d) = args
        ends = [lax.mul(a, c), lax.mul(a, d), lax.mul(b, c), lax.mul(b, d)]
        return Range(lax.min(lax.min(ends[0], ends[1]), lax.min(ends[2], ends[3])),
                     lax.max(lax.max(ends[0], ends[1]), lax.max(ends[2], ends[3])))

    rules = {"add": rule, "mul": product}
    ranges = Ranges(bounds, ways={"by programs": transforming.from_programs,
                                  "by a table": lambda lifting, primitive: rules.get(primitive.name)})
    low, high = np.array([[-1.0, 2.0, 0.5], [1.0, -3.0, 2.0]]), np.array([[1.0, 3.0, 0.5], [1.5, -2.0, 2.0]])
    # (1 + a) (1 + b) - 1 without a minus, which is associative and starts from 0
    combined = lambda x: [lax.reduce(x, 0.0, lambda a, b: a + b + a * b, (1,))]
    for run in (combined, cj.jit(combined)):
        (out,) = ranges.run(run, [Range(low, high)])
        for t in np.linspace(0.0, 1.0, 5):
            inner = np.prod(1.0 + low + t * (high - low), 1) - 1.0
            assert np.all(out.low <= inner + 1e-12) and np.all(inner - 1e-12 <= out.high)
        (exact,) = ranges.run(run, [Range(low, low)])
        assert_allclose(exact.low, np.prod(1.0 + low, 1) - 1.0, rtol=1e-12)
        assert_allclose(exact.low, exact.high, rtol=1e-12)


class Joint(type(DUALS)):  # type: ignore[misc]
    pointwise = False


def test_boxes_that_are_not_pointwise_are_not_combined_by_elements() -> None:
    joint, x = Joint(DUALS.spec, ways=DUALS.ways), np.arange(3.0)

    def combined(x: Any) -> Any:
        return lax.reduce(x, 0.0, lambda a, b: a + b + a * b, (0,))
    with pytest.raises(CorejaxNotImplementedError, match="reduce: dual: a reduction takes values apart"):
        joint.run(lambda x: [combined(x)], [Dual(x, x)])
    assert_array_equal(combined(x), joint.run(lambda x, y: [combined(y), x], [Dual(x, x), x])[0])
