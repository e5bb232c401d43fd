"""`scan(checkpoint_every=k)`: the gradient of a scan, bit for bit, with fewer carries kept."""

from __future__ import annotations

import re

import numpy as np
import pytest
from numpy.testing import assert_allclose

import corejax as cj
from corejax import lax
from corejax.errors import CorejaxError

RNG = np.random.default_rng(5)
W, C, XS = RNG.uniform(-0.6, 0.6, (3, 3)), RNG.standard_normal(3), RNG.standard_normal((12, 3))


def loss(every, n=12, reverse=False, unroll=1):
    """A loop over a carry with an integer, of several outputs, which closes over weights that it uses twice."""
    def fun(w, c, xs):
        def step(carry, x):
            c, i = carry
            new = lax.tanh(c @ w + x["x"]) * lax.sin(w[0])
            return (new, i + 1), {"y": new * c, "i": i, "s": (new.sum(), None)}
        (c, _), ys = lax.scan(step, (c, 0), {"x": xs[:n], "none": None}, reverse=reverse, unroll=unroll,
                              checkpoint_every=every)
        return (ys["y"] ** 2).sum() + (c * c * c).sum() + (ys["s"][0] * ys["i"]).sum()
    return fun


def bits(tree):
    return [np.asarray(x).tobytes() for x in cj.tree.leaves(tree)]


def close(got, wanted):
    for g, w in zip(cj.tree.leaves(got), cj.tree.leaves(wanted), strict=True):
        assert_allclose(np.asarray(g), np.asarray(w), rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("n, every, reverse, unroll", [
    (0, 3, False, 1), (1, 4, False, 1), (7, 1, True, 1), (7, 3, True, 2), (7, 20, True, 1), (12, 5, False, True),
    *[pytest.param(*case, marks=pytest.mark.exhaustive) for case in (
        (1, 1, True, 1), (2, 1, False, 1), (7, 2, False, 1), (7, 7, False, 1), (12, 3, True, 1))]])
def test_gradients_are_the_same_bit_for_bit(n, every, reverse, unroll):
    plain = cj.grad(loss(None, n, reverse, unroll), (0, 1, 2))(W, C, XS)
    found = cj.grad(loss(every, n, reverse, unroll), (0, 1, 2))(W, C, XS)
    if unroll == 1:  # a round of several steps, which are compiled together, isn't the same as one of fewer
        assert bits(plain) == bits(found)
    close(found, plain)
    close(cj.jit(cj.value_and_grad(loss(every, n, reverse, unroll), (0, 1, 2)))(W, C, XS)[1], plain)


def test_values_are_the_same_bit_for_bit():
    for run in (lambda f: f, cj.jit, lambda f: cj.vmap(f, (None, 0, None))):
        c = np.stack([C, 2.0 * C]) if run not in (cj.jit,) and run(len) is not len else C
        assert bits(run(loss(None))(W, c, XS)) == bits(run(loss(5))(W, c, XS))


@pytest.mark.parametrize("every, reverse", [(3, True), pytest.param(5, False, marks=pytest.mark.exhaustive)])
def test_derivatives_of_every_order_in_every_mode(every, reverse):
    ways = {
        "hessian": lambda f: cj.hessian(f, 1)(W, C, XS),
        "reverse over reverse": lambda f: cj.grad(lambda w: (cj.grad(f, 1)(w, C, XS) ** 2).sum())(W),
        "jvp": lambda f: cj.jvp(f, (W, C, XS), (W, C, XS)),
        "jvp of grad": lambda f: cj.jvp(lambda w: cj.grad(f)(w, C, XS), (W,), (W * W,)),
        "grad of jvp": lambda f: cj.grad(lambda w: cj.jvp(lambda w: f(w, C, XS), (w,), (W,))[1])(W),
        "vmap of grad": lambda f: cj.vmap(lambda c: cj.grad(f, (0, 2))(W, c, XS))(np.stack([C, 2.0 * C])),
        "grad of vmap": lambda f: cj.grad(lambda w: cj.vmap(lambda c: f(w, c, XS))(np.stack([C, -C])).sum())(W),
        "linearize": lambda f: cj.linearize(f, W, C, XS)[1](W, C, XS),
        "checkpoint": lambda f: cj.grad(cj.checkpoint(f))(W, C, XS),
    }
    for way in ways.values():
        close(way(loss(every, 8, reverse)), way(loss(None, 8, reverse)))


def test_memory_is_that_of_a_segment():
    def temporary(every, n=10_000):
        def total(x):
            return lax.scan(lambda x, _: (1.01 * lax.sin(x), None), x, None, length=n, checkpoint_every=every)[0].sum()
        x = np.ones(100)
        return cj.jit(cj.grad(total)).lower(x).compile().memory_analysis().temp_size_in_bytes / x.nbytes  # in states

    assert temporary(None) > 9_000
    assert temporary(100) < 2.2 * 100
    assert temporary(1000) < 1.2 * 1000


def test_a_linear_loop_keeps_nothing_and_can_be_transposed():
    def total(c):
        return lax.scan(lambda c, x: (c * x[0], None), c, XS, checkpoint_every=4)[0]
    (back,) = cj.linear_transpose(total, C)(np.ones(3))
    assert_allclose(back, np.full(3, XS[:, 0].prod()))


WRONG = {
    "zero": (0, "checkpoint_every is too small"),
    "negative": (-3, "checkpoint_every is too small"),
    "a fraction": (2.5, "checkpoint_every must be an integer"),
    "text": ("3", "checkpoint_every must be an integer"),
    "an array": (np.ones(2), "checkpoint_every must be an integer"),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_uses_are_answered(name):
    every, message = WRONG[name]
    with pytest.raises(CorejaxError, match=re.escape(f"scan: {message}")):
        lax.scan(lambda c, x: (c, x), 0.0, np.ones(3), checkpoint_every=every)
    with pytest.raises(CorejaxError, match="checkpoint_every must be known"):
        cj.jit(lambda n: lax.scan(lambda c, x: (c, x), 0.0, np.ones(3), checkpoint_every=n))(2)


def test_unrolled_rounds_give_the_same_bits():
    def total(unroll):
        return lambda c: lax.scan(lambda c, x: (lax.sin(c) * x, c), c, XS, unroll=unroll, _split_transpose=False)

    wanted = bits(total(1)(C))
    assert [wanted] * 4 == [bits(total(unroll)(C)) for unroll in (2, 5, True, 100)]
    grads = [bits(cj.grad(lambda c, u=u: total(u)(c)[0].sum())(C)) for u in (1, 3, 12)]
    assert grads[:1] * 3 == grads
    loops = [cj.jit(total(unroll)).lower(C).as_text().count("stablehlo.while") for unroll in (1, 5, True)]
    assert [1, 1, 0] == loops
    found = [lax.fori_loop(0, 7, lambda i, x: lax.sin(x) + i, C, unroll=unroll) for unroll in (None, 1, 3, True)]
    assert 1 == len({np.asarray(x).tobytes() for x in found})


@pytest.mark.parametrize("size", [1, 2, 5, 7, 20])
def test_maps_in_batches(size):
    xs = {"x": RNG.standard_normal((7, 3)), "n": np.arange(7)}
    found = lax.map(lambda s: (lax.sin(s["x"]) * s["n"], s["x"].sum()), xs, batch_size=size)
    assert_allclose(found[0], np.sin(xs["x"]) * xs["n"][:, None], rtol=1e-14)
    assert_allclose(found[1], xs["x"].sum(1), rtol=1e-14)
    slopes = cj.grad(lambda x: lax.map(lambda x: (x ** 3).sum(), x, batch_size=size).sum())(xs["x"])
    assert_allclose(slopes, 3.0 * xs["x"] ** 2)
