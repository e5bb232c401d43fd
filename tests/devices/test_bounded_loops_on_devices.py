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


def test_checkpointed_scans(line):
    def scan(every):
        def loop(w, x):
            return lax.scan(lambda c, _: (step(w, c), None), x, None, length=5, checkpoint_every=every)[0]
        mapped = cj.shard_map(loop, mesh=line, in_specs=(P(), P("x")), out_specs=P("x"))
        return lambda w: mapped(w, XS).sum()
    assert_allclose(cj.grad(scan(2))(0.9), cj.grad(scan(None))(0.9), rtol=1e-14)
