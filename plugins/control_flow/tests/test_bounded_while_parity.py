"""Bounded while loops beside jax, which differentiates a scan that masks the steps after the end."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

import corejax as cj
from corejax import lax

jax = pytest.importorskip("jax")

SAMPLE = 6
SEEDS = [pytest.param(seed, marks=pytest.mark.exhaustive) if seed >= SAMPLE else seed for seed in range(200)]
MOST = 14


def program(rng):
    """A random condition and body, written once for both libraries: of weights, a count, a vector and a number."""
    ops = [rng.integers(0, 9) for _ in range(rng.integers(2, 6))]
    last, limit, turned = int(rng.integers(0, MOST + 3)), rng.uniform(0.5, 6.0), bool(rng.integers(0, 2))

    def cond(L, w, s):
        i, x, t = s
        going = t < limit + 0.1 * w[0]
        return (i < last) & going if turned else (i < last) & (L.abs(x).sum() < 5.0 + limit)

    def body(L, w, s):
        i, x, t = s
        for op in ops:
            if op == 0:
                x = L.sin(x) * w
            elif op == 1:
                x = x + 0.3 * w * t
            elif op == 2:
                x = L.tanh(x @ x * w)
            elif op == 3:
                x = x / (1.0 + x * x)
            elif op == 4:
                t = t + 0.2 * L.exp(-(x * x).sum())
            elif op == 5:
                x = L.cond(t > 1.0, lambda x: x * 0.9, lambda x: L.cos(x), x)
            elif op == 6:
                x = L.fori_loop(0, 3, lambda k, x: x + 0.1 * L.sin(x), x)
            elif op == 7:
                x = x * (1.0 + 0.05 * i)
            else:
                t = t * 1.1 + 0.01 * w[1]
        return i + 1, x, t + 0.3
    return cond, body


def of_corejax(cond, body, checkpoints):
    def run(w, x, t):
        return lax.bounded_while_loop(lambda s: cond(lax, w, s), lambda s: body(lax, w, s), (0, x, t), max_steps=MOST,
                                      checkpoints=checkpoints)
    return run


def of_jax(cond, body):
    def run(w, x, t):
        def step(s, _):
            going = cond(jax.lax, w, s)
            return jax.tree.map(lambda new, old: jax.lax.select(
                jax.lax.broadcast(going, new.shape), new, old), body(jax.lax, w, s), s), None
        return jax.lax.scan(step, (jax.numpy.asarray(0), x, t), None, length=MOST)[0]
    return run


@pytest.mark.parametrize("seed", SEEDS)
def test_random_loops(seed):
    rng = np.random.default_rng(seed)
    cond, body = program(rng)
    w, x, t = rng.uniform(0.3, 1.5, 3), rng.uniform(-1.5, 1.5, 3), rng.uniform(0.0, 1.0)
    rows, ts = rng.uniform(-1.5, 1.5, (4, 3)), rng.uniform(0.0, 3.0, 4)
    ours, theirs = of_corejax(cond, body, [None, 8, 9, MOST][seed % 4]), of_jax(cond, body)

    def compare(ours, theirs, *args):
        pairs = zip(cj.tree.leaves(cj.jit(ours)(*args)), jax.tree.leaves(jax.jit(theirs)(*args)), strict=True)
        for got, wanted in pairs:
            assert_allclose(np.asarray(got), np.asarray(wanted), rtol=1e-9, atol=1e-11)

    def loss(run):
        def total(w, x, t):
            _, x, t = run(w, x, t)
            return (x * x).sum() + t * t
        return total

    compare(ours, theirs, w, x, t)
    compare(cj.grad(loss(ours), (0, 1, 2)), jax.grad(loss(theirs), (0, 1, 2)), w, x, t)
    if seed % 3 == 0:
        compare(cj.hessian(loss(ours)), jax.hessian(loss(theirs)), w, x, t)
    elif seed % 3 == 1:
        compare(cj.vmap(cj.grad(loss(ours), (0, 1)), (None, 0, 0)),
                jax.vmap(jax.grad(loss(theirs), (0, 1)), (None, 0, 0)), w, rows, ts)
    else:
        compare(cj.grad(lambda w: cj.vmap(loss(ours), (None, 0, 0))(w, rows, ts).sum()),
                jax.grad(lambda w: jax.vmap(loss(theirs), (None, 0, 0))(w, rows, ts).sum()), w)
