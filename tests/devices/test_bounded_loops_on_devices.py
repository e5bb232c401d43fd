"""Bounded while loops that end apart on each device, and checkpointed scans: derivatives by what all share."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import corejax as cj
from corejax import P, lax

XS = np.linspace(0.5, 2.0, 8)


def step(w, x):
    return lax.sin(x) * w


@pytest.mark.parametrize("max_steps", [9, 100])
def test_each_device_takes_its_own_steps(line, max_steps):
    def loop(w, x):
        n = 1 + lax.axis_index("x") % 5
        return lax.bounded_while_loop(lambda s: s[0] < n, lambda s: (s[0] + 1, step(w, s[1])), (0, x),
                                      max_steps=max_steps)[1]

    def written_out(w):
        total = 0.0
        for i, x in enumerate(XS):
            for _ in range(1 + i % 5):
                x = step(w, x)
            total += x
        return total

    mapped = cj.shard_map(loop, mesh=line, in_specs=(P(), P("x")), out_specs=P("x"))

    def total(w):
        return mapped(w, XS).sum()

    for derivative in (lambda f: f, cj.grad, cj.hessian):
        assert_allclose(derivative(total)(0.9), derivative(written_out)(0.9), rtol=1e-12)


# What a loop starts with or closes over is the same on all devices, and varies after a step, or where steps end apart.

def bounded(w, x, n, max_steps=9):
    return lax.bounded_while_loop(lambda s: s[0] < n, lambda s: (s[0] + 1, step(w, s[1])), (0, x),
                                  max_steps=max_steps)[1]


def in_segments(w, x):
    return lax.scan(lambda c, _: (step(w, c), c), x, None, length=5, checkpoint_every=2)[0]


def own():
    return 1 + lax.axis_index("x") % 3


def in_branches(w, x):
    return x + lax.switch(lax.axis_index("x") % 3, [
        lambda: bounded(0.9, w, 3), lambda: bounded(0.9, w, 2, max_steps=100), lambda: in_segments(0.9, w)])


def in_a_scan(w, x):
    return x + lax.scan(lambda c, _: (bounded(0.9, c, 3) * x + in_segments(0.9, c), None), w, None, length=4,
                        checkpoint_every=2)[0]


def in_a_loop(w, x):
    return x + lax.bounded_while_loop(
        lambda s: s[0] < 3, lambda s: (s[0] + 1, bounded(w, s[1], 2) * x + in_segments(0.9, s[1])), (0, w),
        max_steps=50)[1]


def ends_apart(w, x):
    n = own()
    return x + lax.bounded_while_loop(lambda s: s[0] < n, lambda s: (s[0] + 1, bounded(0.9, s[1], 2)), (0, w),
                                      max_steps=50)[1]


def ends_apart_within(w, x):
    n = own()
    return x + lax.scan(lambda c, _: (bounded(w, c, n, max_steps=40) + w, None), w, None, length=3,
                        checkpoint_every=2)[0]


def of_rows(w, x):
    rows, ns = np.array([1.0, 2.0, 3.0]), np.array([2, 0, 1])
    slopes = cj.vmap(cj.grad(lambda y, n: bounded(w, y, n)))(rows * x, ns + lax.axis_index("x") % 2)
    return x * slopes.sum() + cj.vmap(lambda y, n: bounded(w, y, n))(rows * w, ns + own()).sum()


def under_a_policy(w, x):
    policy = cj.checkpoint_policies.save_anything_except_these_names("none")
    return cj.checkpoint(lambda w, x: bounded(w, w, own()) * x + in_segments(0.9, w), policy=policy)(w, x)


@pytest.mark.sample(4)
@pytest.mark.parametrize("fun", [
    in_branches, in_a_scan, in_a_loop, ends_apart, ends_apart_within, of_rows, under_a_policy])
def test_loops_of_what_varies_on_the_way(line, fun):
    def total(check_vma):
        def each(w, x):
            return fun(w, x[0])[None]
        mapped = cj.shard_map(each, mesh=line, in_specs=(P(), P("x")), out_specs=P("x"), check_vma=check_vma)
        return lambda w: mapped(w, XS).sum()

    def as_a_map(w):
        return cj.vmap(lambda x: fun(w, x), axis_name="x")(XS).sum()

    for derivative in (lambda f: f, cj.grad, cj.hessian):
        wanted = derivative(as_a_map)(0.9)
        assert_allclose(derivative(total(True))(0.9), wanted, rtol=1e-9)
        assert_allclose(cj.jit(derivative(total(False)))(0.9), wanted, rtol=1e-9)


def test_checkpointed_scans(line):
    def scan(every):
        def loop(w, x):
            return lax.scan(lambda c, _: (step(w, c), None), x, None, length=5, checkpoint_every=every)[0]
        mapped = cj.shard_map(loop, mesh=line, in_specs=(P(), P("x")), out_specs=P("x"))
        return lambda w: mapped(w, XS).sum()
    assert_allclose(cj.grad(scan(2))(0.9), cj.grad(scan(None))(0.9), rtol=1e-14)
