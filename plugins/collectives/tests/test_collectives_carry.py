"""The hook `carry` of maps over devices: transformations of packs go through them and the collectives within."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import corejax as cj
from corejax import P, lax
from corejax.core import aval_of, dtypes
from corejax.errors import CorejaxNotImplementedError
from corejax_testing.duals import DUALS, Dual, by_duals, by_jvp
from corejax_testing.running import primitive_of


class Joint(type(DUALS)):  # type: ignore[misc]
    """Dual numbers of which slices aren't slices of boxes, or so it says."""

    pointwise = False


JOINT = Joint(DUALS.spec, ways=DUALS.ways)


def assert_same(got: Sequence[Any], wanted: Sequence[Any], rtol: float = 1e-12) -> None:
    for x, y in zip(got, wanted, strict=True):
        assert_allclose(np.asarray(x), np.asarray(y), rtol=rtol, atol=rtol)


@pytest.mark.parametrize("name", ["shard_map", "xla_pmap"])
def test_dual_numbers_equal_jvp(name: str) -> None:
    primitive = primitive_of(name)
    for sample in primitive.samples(np.random.default_rng(0)):
        if sample.error is not None:
            continue
        inexact = [i for i, x in enumerate(sample.args) if dtypes.is_inexact(aval_of(x).dtype)]
        n = len(sample.args)

        def fun(*xs: Any, sample: Any = sample) -> list[Any]:
            return list(primitive.bind(*xs, **sample.params))

        for boxed in [chosen for size in range(1, len(inexact) + 1) for chosen in combinations(inexact, size)]:
            operands = [*sample.args, *[np.cos(sample.args[i]) for i in boxed]]
            duals, jvp = by_duals(fun, n, boxed), by_jvp(fun, n, boxed)
            for got, wanted in zip(duals(*operands), jvp(*operands), strict=True):
                assert_array_equal(np.asarray(got), np.asarray(wanted))
            assert_same(cj.jit(duals)(*operands), jvp(*operands))
            rows = [np.stack([x, 2 * x]) for x in operands]
            assert_same(cj.vmap(duals)(*rows), cj.vmap(jvp)(*rows))
            more = [x * 0.5 for x in operands]
            every = range(len(operands))
            assert_same(by_duals(duals, len(operands), every)(*operands, *more),
                        by_jvp(jvp, len(operands), every)(*operands, *more))
            gradients = [cj.grad(lambda *xs, f=f: sum([lax.sin(out).sum() for out in f(*xs)]), tuple(every))(*operands)
                         for f in (duals, jvp)]
            assert_same(*gradients)


@pytest.mark.parametrize("check_vma", [True, False])
def test_constants_and_plain_results_within_a_map(check_vma: bool) -> None:
    """Results that vary as they are said to, whatever their arrays are made from."""
    mesh = cj.make_mesh((1,), ("i",))

    def part(x: Any, y: Any) -> Any:
        total = lax.psum(x, "i")
        rows, _ = lax.scan(lambda c, row: (c + row * total[0], None), x, y)
        where = lax.cond(y[0, 0] > 0.0, lambda: rows, lambda: 2.0 * y[0])
        return total, rows, where, y, y * 2.0

    fun = cj.shard_map(part, mesh=mesh, in_specs=(P(), P("i")),
                       out_specs=(P(), P("i"), P("i"), P("i"), P("i")), check_vma=check_vma)
    x, y = np.array([0.3, 0.7]), np.array([[0.5, 1.0], [2.0, -1.0]])
    operands = [x, y, np.cos(x), np.sin(y)]
    for boxed in ((0,), (1,), (0, 1)):
        given = [x, y, *[operands[2 + i] for i in boxed]]
        for f in (fun, cj.jit(fun)):
            assert_same(by_duals(f, 2, boxed)(*given), by_jvp(f, 2, boxed)(*given))


def test_dual_numbers_of_a_mapped_function_with_collectives() -> None:
    def fun(x: Any) -> list[Any]:
        return [cj.vmap(lambda x: x * lax.psum(lax.sin(x), "i") + lax.all_gather(x, "i")[0], axis_name="i")(x)]

    x = np.array([0.2, 0.4, 0.9])
    assert_same(by_duals(fun, 1, [0])(x, np.cos(x)), by_jvp(fun, 1, [0])(x, np.cos(x)))


def test_boxes_that_are_not_pointwise_are_not_divided_among_devices() -> None:
    mesh = cj.make_mesh((1,), ("i",))
    x = np.ones(2)
    whole = cj.shard_map(lambda x: lax.sin(x), mesh=mesh, in_specs=P("i"), out_specs=P("i"))
    with pytest.raises(CorejaxNotImplementedError, match="shard_map: dual: what each device does takes values apart"):
        JOINT.run(lambda x: [whole(x)], [Dual(x, x)])
    assert_array_equal(np.sin(x), JOINT.run(lambda x, y: [whole(y), x], [Dual(x, x), x])[0])
