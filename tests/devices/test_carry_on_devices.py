"""Dual numbers as a transformation of a pack equal forward mode in programs of several devices."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import corejax as cj
from corejax import P, lax
from corejax_testing.duals import by_duals, by_jvp

RNG = np.random.default_rng(0)
W, X = RNG.uniform(0.3, 0.9, 2), RNG.uniform(0.3, 0.9, (8, 2))


def assert_equal_to_jvp(fun, *xs):
    dots = [np.cos(x) for x in xs]
    for boxed in ([0], [1], [0, 1]):
        operands = [*xs, *[dots[i] for i in boxed]]
        wanted = by_jvp(fun, len(xs), boxed)(*operands)
        for run in (fun, cj.jit(fun)):
            for got, out in zip(by_duals(run, len(xs), boxed)(*operands), wanted, strict=True):
                assert out.aval is got.aval
                assert_allclose(got, out, rtol=1e-12)

    def total(transformed):
        return lambda *operands: sum([lax.sin(out).sum() for out in transformed(fun, 2, [0, 1])(*operands)])
    for got, out in zip(*[cj.grad(total(each), (0, 1, 2, 3))(*xs, *dots) for each in (by_duals, by_jvp)], strict=True):
        assert_allclose(got, out, rtol=1e-10)


def exchanged(w, x):
    total = lax.psum(x * w, "x")
    return [total, lax.all_gather(x[0], "x", tiled=True), lax.ppermute(x, "x", [(0, 1), (1, 0)]) * total,
            lax.psum_scatter(lax.all_gather(x, "x", tiled=True), "x", tiled=True)]


def looped(w, x):
    """Carries and branches that vary along the axis, from values that don't."""
    i = lax.axis_index("x")
    carry, rows = lax.scan(lambda c, row: (c * row + w, c), w, x)
    a = lax.cond(i % 2 == 0, lambda: carry, lambda: w)
    b = lax.bounded_while_loop(lambda c: c[0] < i, lambda c: (c[0] + 1, c[1] * x[0]), (0, w), max_steps=3)[1]
    c = lax.fori_loop(0, 2, lambda _, c: lax.sin(c) + lax.psum(x[0], "x"), w)
    return [rows, a[None], b[None], c[None], cj.checkpoint(lambda x: lax.sin(x * w))(x)]


@pytest.mark.parametrize("check_vma", [True, False])
@pytest.mark.parametrize("within", [exchanged, looped])
def test_dual_numbers_of_shard_map_equal_jvp(line, within, check_vma):
    specs = [P(), P("x"), P("x"), P("x")] if within is exchanged else P("x")
    fun = cj.shard_map(within, mesh=line, in_specs=(P(), P("x")), out_specs=specs, check_vma=check_vma)
    assert_equal_to_jvp(fun, W, X)


def test_dual_numbers_of_nested_maps_equal_jvp(grid):
    inner = cj.shard_map(lambda w, x: [lax.psum(x * w, "y"), lax.sin(x)], mesh=grid, axis_names={"y"},
                         in_specs=(P(), P("y")), out_specs=[P(), P("y")])

    def outer(w, x):
        total, y = inner(w, x)
        return [lax.psum(total, "x"), y]
    assert_equal_to_jvp(cj.shard_map(outer, mesh=grid, axis_names={"x"}, in_specs=(P(), P("x")),
                                     out_specs=[P(), P("x")]), W, X)


def test_dual_numbers_of_pmap_equal_jvp():
    fun = cj.pmap(lambda w, x: [x * lax.psum(lax.sin(x * w), "i"), lax.psum(x, "i")], axis_name="i", in_axes=(None, 0))
    assert_equal_to_jvp(fun, W, X)
