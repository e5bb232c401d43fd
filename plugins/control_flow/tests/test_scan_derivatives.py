"""Derivatives of `scan` as a function: those of the loop unrolled in Python; and what they cost."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from numpy.testing import assert_allclose

import corejax as cj
from corejax import lax
from corejax.core import Linear, ShapedArray, Zero, aval_of, stage
from corejax.ir import count_eqns, typecheck

RNG = np.random.default_rng(1)
W, U, B = RNG.standard_normal((2, 2)), RNG.standard_normal((2, 2)), RNG.standard_normal(2)
H, XS = RNG.standard_normal(2), RNG.standard_normal((4, 2))


def loop(f, init, xs=None, length=None, reverse=False):
    """The loop unrolled, on values or tracers; outputs are arrays."""
    n = len(cj.tree.leaves(xs)[0]) if xs is not None else length
    carry, ys = init, [None] * n
    for i in reversed(range(n)) if reverse else range(n):
        carry, ys[i] = f(carry, None if xs is None else cj.tree.map(lambda x, i=i: x[i], xs))
    return carry, cj.tree.map(lambda *parts: lax.stack(parts), *ys)


# Programs of (w, u, b, h, xs) -> scalar; `scan` is lax.scan or the loop.

def rnn(scan, w, u, b, h, xs):
    def f(h, x):
        h = lax.tanh(lax.dot(w, h) + lax.dot(u, x) + b)
        return h, (h * h).sum()

    h, ys = scan(f, h, xs)
    return h.sum() + (ys * ys).sum()


def counting(scan, w, u, b, h, xs):
    """An integer in the carry, and one among the outputs."""
    def f(carry, x):
        h, n, total = carry
        h = lax.sin(h) * x + b
        return (h, n + 2, total + h.sum() * lax.convert_element_type(n, np.float64)), n

    (h, _, total), ns = scan(f, (h, 0, 0.0), xs)
    return h.sum() + total * lax.convert_element_type(ns.sum(), np.float64)


def backward(scan, w, u, b, h, xs):
    carry, ys = scan(lambda c, x: (c * x + lax.sin(b), c * 2.0), h, xs, reverse=True)
    return (carry * carry).sum() + lax.sin(ys).sum()


def invariant(scan, w, u, b, h, xs):
    """Much that is the same in each step, some of it carried."""
    def f(carry, x):
        h, same = carry
        heavy = lax.dot(lax.exp(w), lax.sin(same))
        return (h * heavy + x * lax.cos(b), same), (heavy, x, same * b)

    (h, same), ys = scan(f, (h, u[0]), xs)
    return (h * same).sum() + sum([(y * y).sum() for y in ys])


def swapping(scan, w, u, b, h, xs):
    """A tangent reaches each part of the carry only after some steps."""
    (p, q, r), _ = scan(lambda c, x: ((c[1], c[2] * c[0], lax.sin(x[0])), None), (h[0], b[0], w[0, 0]), xs)
    return p * q + r


def without_inputs(scan, w, u, b, h, xs):
    h, ys = scan(lambda h, _: (lax.sin(lax.dot(w, h)), h), h, None, length=3)
    return h.sum() + (ys * ys).sum()


def nested(scan, w, u, b, h, xs):
    def outer(h, x):
        def inner(g, y):
            return lax.sin(g) * y + lax.dot(w, g) * x, g * y

        g, ys = scan(inner, h, xs)
        return g * x, ys.sum()

    h, ys = scan(outer, h, xs)
    return h.sum() + (ys * ys).sum()


def called(scan, w, u, b, h, xs):
    body = cj.jit(lambda h, x, b: lax.sin(h) * x + b)
    h, _ = scan(lambda h, x: (body(h, x, b), None), h, xs)
    return (h * cj.jit(lambda h: scan(lambda c, x: (c * x, None), h, xs)[0])(h)).sum()


PROGRAMS = [rnn, counting, backward, invariant, swapping, without_inputs, nested, called]
ARGS = W, U, B, H, XS
by_name = pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)


def of(program, scan):
    return lambda *args: program(scan, *args)


@pytest.mark.sample(4)
@by_name
def test_gradients_equal_those_of_the_unrolled_loop(program):
    argnums = tuple(range(5))
    wanted = cj.grad(of(program, loop), argnums)(*ARGS)
    grad = cj.grad(of(program, lax.scan), argnums)
    for call in (grad, cj.jit(grad), cj.grad(cj.jit(of(program, lax.scan)), argnums)):
        for got, want in zip(call(*ARGS), wanted, strict=True):
            assert_allclose(got, want, rtol=1e-9, atol=1e-12)
    typecheck(cj.make_jaxpr(grad)(*ARGS).jaxpr)


def test_a_closed_over_tracer_of_an_enclosing_transformation():
    def f(a, scan):
        def g(b):
            return scan(lambda c, x: (lax.sin(c * a) + b * x, None), a * b, XS[:, 0])[0]
        return cj.grad(g)(0.3) * cj.jvp(g, (0.2,), (a,))[1]

    assert_allclose(cj.grad(f)(0.7, lax.scan), cj.grad(f)(0.7, loop), rtol=1e-10)
    assert_allclose(cj.vmap(lambda a: f(a, lax.scan))(B), [f(a, loop) for a in B], rtol=1e-10)


@pytest.mark.parametrize("dtype", [np.float32, np.complex128])
def test_other_dtypes_keep_theirs(dtype):
    xs, c = XS[:, 0].astype(dtype), dtype(0.5)

    def f(c, xs):
        carry, ys = lax.scan(lambda c, x: (c * x + 1, c), c, xs)
        return carry * ys.sum()

    grads = cj.grad(f, (0, 1), holomorphic=dtype is np.complex128)(c, xs)
    assert [dtype, dtype] == [g.dtype for g in grads]
    wanted = cj.grad(lambda c, xs: f(c, xs), (0, 1))(0.5, XS[:, 0])
    for got, want in zip(grads, wanted, strict=True):
        assert_allclose(got, want, rtol=1e-4)


# Rules

def linear_scan(kinds):
    """A scan that is linear in its second constant, its carry and its second input, in any order of each kind."""
    def body(*args):
        k, w = [args[kinds[0].index(kind)] for kind in (0, 1)]
        x, y = [args[3 + kinds[1].index(kind)] for kind in (0, 1)]
        c = args[2]
        return [c * k + w * x + y, c * x + y * k, w * k]

    aval = ShapedArray((), "float64")
    return stage(body, [aval] * 5).jaxpr


@pytest.mark.parametrize("kinds", list(itertools.product([(0, 1), (1, 0)], repeat=2)))
@pytest.mark.parametrize("zeros", list(itertools.product([False, True], repeat=3)))
def test_transposition_with_residuals_and_linear_operands_in_any_order(kinds, zeros):
    params = {"jaxpr": linear_scan(kinds), "length": 3, "reverse": False, "num_consts": 2, "num_carry": 1, "unroll": 1}
    consts, inputs = [1.5, -0.7], RNG.standard_normal((2, 3))
    args = [*[consts[kind] for kind in kinds[0]], 0.3, *[inputs[kind] for kind in kinds[1]]]
    linear = [*[kind == 1 for kind in kinds[0]], True, *[kind == 1 for kind in kinds[1]]]
    outs = lax.scan.primitive.bind(*args, **params)
    cts = [RNG.standard_normal(out.shape) for out in outs]
    given = [Zero(out.aval) if zero else ct for out, ct, zero in zip(outs, cts, zeros, strict=True)]
    back = lax.scan.primitive.transpose(
        given, [Linear(aval_of(x)) if lin else x for x, lin in zip(args, linear, strict=True)], **params)
    left = sum(float(np.vdot(ct, out)) for ct, out, zero in zip(cts, outs, zeros, strict=True) if not zero)
    right = sum(float(np.vdot(x, b)) for x, b, lin in zip(args, back, linear, strict=True)
                if lin and b is not None and type(b) is not Zero)
    assert_allclose(left, right, rtol=1e-12, atol=1e-12)
    assert [] == [b for b, lin in zip(back, linear, strict=True) if not lin and b is not None]


# What derivatives cost

def scans(jaxpr):
    return [eqn for eqn in jaxpr.eqns if eqn.primitive.name == "scan"]


def test_what_the_backward_pass_needs_is_stacked_once_and_inputs_not_at_all():
    def f(w, h, xs):
        return lax.scan(lambda h, x: (lax.tanh(lax.dot(w, h)) * x, h), h, xs)[1].sum()

    forward, back = scans(cj.make_jaxpr(cj.grad(f, (0, 1, 2)))(W, H, XS).jaxpr)
    # the carry, the h of each step (an output anyway), tanh of each step, its derivative
    assert 4 == len(forward.outvars)
    (w, xs) = forward.invars[0], forward.invars[-1]
    assert w in back.invars and xs in back.invars


def test_what_is_the_same_in_each_step_is_computed_once_before_the_loop():
    def f(w, h, xs):
        return lax.scan(lambda h, x: (lax.dot(lax.exp(w), h) * lax.sin(x), None), h, xs)[0].sum()

    jaxpr = cj.make_jaxpr(cj.grad(f, (0, 1)))(W, H, XS).jaxpr
    inside = [eqn.primitive.name for scan in scans(jaxpr) for eqn in scan.params["jaxpr"].eqns]
    outside = [eqn.primitive.name for eqn in jaxpr.eqns]
    assert 1 == outside.count("exp")
    assert "exp" not in inside


def test_known_inputs_of_an_unknown_loop_cost_no_stack():
    """`exp(b)` and a table depend on no step; both loops get them whole."""
    def f(h, b, xs):
        return lax.scan(lambda h, x: (h * lax.exp(b) * x, None), h, xs)[0].sum()

    closed = cj.make_jaxpr(lambda h: cj.linearize(lambda h: f(h, B, XS), h)[1](h))(H)
    sizes = [v.aval.size for scan in scans(closed.jaxpr) for v in scan.outvars]
    assert max(sizes) <= XS.size


def test_a_tangent_that_no_step_changes_is_not_carried():
    jaxpr = cj.make_jaxpr(lambda c, c_dot: cj.jvp(lambda c: lax.scan(lambda c, x: (c + x, c), c, XS)[0], (c,),
                                                  (c_dot,)))(H, H).jaxpr
    (eqn,) = scans(jaxpr)
    assert 1 == eqn.params["num_carry"]
    assert jaxpr.outvars[1] is jaxpr.invars[1]


def test_the_number_of_equations_does_not_depend_on_the_length():
    def count(n):
        xs = np.ones((n, 2))
        return count_eqns(cj.make_jaxpr(cj.grad(lambda *args: rnn(lax.scan, *args), (0, 1, 2, 3, 4)))(W, U, B, H, xs
                                                                                                    ).jaxpr)
    assert count(3) == count(10_000)


def test_bodies_are_transformed_once():
    def body(c, x):
        return lax.sin(c) * x, c

    def gradient():
        return cj.make_jaxpr(cj.grad(lambda c: lax.scan(body, c, XS)[0].sum()))(H)

    first, again = [[eqn.params["jaxpr"] for eqn in gradient().eqns if eqn.primitive.name == "scan"] for _ in range(2)]
    assert len(first) == 2
    assert [True, True] == [x is y for x, y in zip(first, again, strict=True)]


def test_gradients_through_a_map():
    def f(w, xs, mapping):
        return lax.sin(mapping(lambda x: lax.dot(w, x) * x, xs)).sum()

    wanted = cj.grad(f, (0, 1))(W, XS, lambda g, xs: lax.stack([g(x) for x in xs]))
    for batch_size in (None, 3):
        got = cj.grad(f, (0, 1))(W, XS, lambda g, xs, size=batch_size: lax.map(g, xs, batch_size=size))
        for x, y in zip(got, wanted, strict=True):
            assert_allclose(x, y, rtol=1e-10)
