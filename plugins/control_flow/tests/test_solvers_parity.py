"""The adaptive solver and Newton's method of examples/ beside jax, which differentiates masked scans."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose

import corejax as cj

jax = pytest.importorskip("jax")

EXAMPLE = Path(__file__).parents[3] / "examples" / "adaptive_solver.py"
MOST = 60


@pytest.fixture(scope="module")
def solver():
    if not EXAMPLE.exists():
        pytest.skip("the examples aren't here")
    spec = importlib.util.spec_from_file_location("adaptive_solver", EXAMPLE)
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def masked(cond, body, init, *, max_steps):
    """A while loop that jax can differentiate: a scan of as many steps as there may be."""
    def step(state, _):
        going = cond(state)
        return jax.tree.map(lambda new, old: jax.numpy.where(going, new, old), body(state), state), None
    state = jax.tree.map(jax.numpy.asarray, init)
    return jax.lax.scan(step, state, None, length=max_steps)[0]


def pendulum(sin, stack):
    """The angle and the speed of a pendulum with friction."""
    return lambda p: lambda t, y: stack([y[1], -p[0] * sin(y[0]) - p[1] * y[1]])


@pytest.fixture(scope="module")
def runs(solver):
    ours, theirs = pendulum(cj.lax.sin, lambda xs: cj.lax.stack(xs, 0)), pendulum(jax.numpy.sin, jax.numpy.stack)

    def run(p, y, t1):
        return solver.solve(ours(p), y, 0.0, t1, tol=1e-5, max_steps=MOST)

    def beside(p, y, t1):
        # a slope that isn't weak, as in a state
        return solver.solve(theirs(p), y, jax.numpy.zeros(()), t1, tol=1e-5, max_steps=MOST, lax=jax.lax,
                            while_loop=masked)
    return run, beside


P, Y = np.array([1.5, 0.2]), np.array([1.2, 0.1])


def test_values_gradients_and_hessians_of_the_solver(runs):
    run, beside = runs
    got, steps = cj.jit(run)(P, Y, 2.0)
    wanted, jax_steps = jax.jit(beside)(P, Y, 2.0)
    assert 8 < int(steps) == int(jax_steps) < MOST
    assert_allclose(got, wanted, rtol=1e-12)
    grads = [d.grad(lambda p, y, t1, f=f: f(p, y, t1)[0][0], (0, 1, 2)) for d, f in ((cj, run), (jax, beside))]
    for ours, theirs in zip(cj.jit(grads[0])(P, Y, 2.0), jax.jit(grads[1])(P, Y, 2.0), strict=True):
        assert_allclose(ours, theirs, rtol=1e-9)


def test_solutions_of_many_lengths_at_once(runs):
    run, beside = runs
    ends = np.array([0.3, 2.0, 1.0])

    def total(vmap, f):
        return lambda p: (vmap(lambda t1: f(p, Y, t1)[0])(ends) ** 2).sum()
    got = cj.jit(cj.grad(total(cj.vmap, run)))(P)
    assert np.isfinite(np.asarray(got)).all()
    one_by_one = sum(np.asarray(jax.jit(jax.grad(lambda p, t=t: (beside(p, Y, t)[0] ** 2).sum()))(P)) for t in ends)
    assert_allclose(got, one_by_one, rtol=1e-9)


def test_newton(solver):
    def root(a):
        return solver.newton(lambda x: x ** 3 - a * x - 1.0, 2.0)

    def beside(a):
        x = jax.numpy.asarray(2.0)
        for _ in range(12):
            x = x - (x ** 3 - a * x - 1.0) / (3.0 * x * x - a)
        return x
    for order in (lambda d, f: f, lambda d, f: d.grad(f), lambda d, f: d.grad(d.grad(f))):
        assert_allclose(order(cj, root)(1.3), order(jax, beside)(1.3), rtol=1e-9)
