"""What the first of the two loops of a gradient writes out for the second: no more bytes than it has to."""

from __future__ import annotations

import numpy as np
from numpy.testing import assert_allclose

import corejax as cj
from corejax import lax
from corejax.ir import typecheck

RNG = np.random.default_rng(0)
N = 20
XS, C, W = RNG.uniform(0.5, 1.5, (4, N)), RNG.uniform(0.5, 1.5, N), RNG.uniform(0.5, 1.5, N)


def stacked(f, *args):
    """The shapes, for one step, of what the first loop of a gradient writes out; and what it computes."""
    closed = cj.make_jaxpr(cj.grad(f))(*args)
    typecheck(closed.jaxpr)
    first, second = [eqn for eqn in closed.jaxpr.eqns if eqn.primitive.name == "scan"]
    return ([v.aval.shape[1:] for v in first.outvars[first.params["num_carry"]:]],
            [eqn.primitive.name for eqn in first.params["jaxpr"].eqns],
            [eqn.primitive.name for eqn in second.params["jaxpr"].eqns])


def total(step):
    return lambda c: lax.scan(lambda c, x: (step(c, x), None), c, XS)[0].sum()


def unrolled(step):
    def f(c):
        for x in XS:
            c = step(c, x)
        return c.sum()
    return f


def assert_gradient_is_that_of_the_unrolled_loop(step):
    wanted = cj.grad(unrolled(step))(C)
    for grad in (cj.grad(total(step)), cj.jit(cj.grad(total(step)))):
        assert_allclose(grad(C), wanted, rtol=1e-9, atol=1e-12)


def test_a_repeated_value_is_kept_once():
    def step(c, x):
        scale = lax.exp(-(c * c).sum() / N)
        return lax.sin(c * scale)

    shapes, _, again = stacked(total(step), C)
    assert [()] == [s for s in shapes if s != (N,)]
    assert 2 == len([s for s in shapes if s == (N,)])  # c, and the cosine
    assert "broadcast_in_dim" in again
    assert_gradient_is_that_of_the_unrolled_loop(step)


def test_what_arithmetic_makes_of_kept_values_is_made_again():
    def softmax(c, x):
        e = lax.exp(c * x)
        return e / e.sum()

    shapes, known, again = stacked(total(softmax), C)
    assert [(), (N,)] == sorted(shapes)  # the sum, and e, of which the quotients are made again
    assert "exp" in known and "exp" not in again
    assert_gradient_is_that_of_the_unrolled_loop(softmax)


def test_what_is_dear_is_kept():
    def step(c, x):
        return lax.sin(lax.exp(c))

    shapes, known, again = stacked(total(step), C)
    assert [(N,), (N,)] == shapes  # the exponential, and the cosine
    assert {"exp", "sin", "cos"} <= set(known)
    assert {"mul"} == set(again)


def test_small_values_are_kept_as_they_are():
    def f(c):
        return lax.scan(lambda c, x: (c / (c + x), None), c, XS[:, :2])[0].sum()

    assert [(2,), (2,)] == stacked(f, C[:2])[0]


def test_inputs_and_constants_of_the_loop_cost_nothing():
    shapes, _, again = stacked(total(lambda c, x: c * (x * W + 1.0 - x)), C)
    assert [] == shapes
    assert ["mul", "add", "sub", "mul"] == again


def repeated(n):
    """x to the power of n, in each of two steps."""
    def step(c, x):
        for _ in range(n):
            c = c * x
        return c

    return lambda x: lax.scan(lambda c, _: (step(c, x), None), C, None, length=2)[0].sum()


def test_a_chain_is_made_again_in_order():
    assert_allclose(np.asarray(cj.grad(repeated(5))(np.ones(N) * 1.1)), 10 * C * 1.1 ** 9, rtol=1e-9)


def test_a_long_chain_is_made_again_without_recursion():
    shapes, known, again = stacked(repeated(3000), np.ones(N))
    assert ([(N,)], 3000) == (shapes, known.count("mul"))
    assert 3000 * 3 >= again.count("mul") >= 3000 * 2


def test_gradients_are_right_whatever_is_kept():
    def bodies(c, w, x):
        d = c[:, None] - c[None, :]
        r = (d * d).sum(1) + 0.1
        yield "differences", c + (d / (r * lax.sqrt(r))[:, None]).sum(1) * w
        yield "norm", (c - c.sum()) / lax.sqrt((c * c).sum() + x)
        yield "select", lax.select(c > x, c * w, -c / x)
        yield "mixed", lax.max(c, x) * lax.exp(-c / w) + (c * x - w) / (c + 2.0)

    for k in range(4):
        def looped(c, w, xs, k=k):
            def step(c, x):
                new = [*bodies(c, w, x)][k][1]
                return new, (new * x).sum()
            c, ys = lax.scan(step, c, xs)
            return c.sum() + ys.sum()

        def by_hand(c, w, xs, k=k):
            total = 0.0
            for i in range(3):
                c = [*bodies(c, w, xs[i])][k][1]
                total = total + (c * xs[i]).sum()
            return c.sum() + total

        args = C[:17], W[:17], XS[:3, :17]
        for got, wanted in zip(cj.grad(looped, (0, 1, 2))(*args), cj.grad(by_hand, (0, 1, 2))(*args), strict=True):
            assert_allclose(got, wanted, rtol=1e-8, atol=1e-10)
