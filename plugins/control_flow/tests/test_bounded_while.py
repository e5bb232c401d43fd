"""`bounded_while_loop`: values are while_loop's, derivatives those of as many steps written out."""

from __future__ import annotations

import re
from functools import partial

import numpy as np
import pytest
from numpy.testing import assert_allclose

import corejax as cj
from corejax import lax
from corejax.errors import CorejaxError, CorejaxNotImplementedError

W, X = np.array([0.7, -0.4, 0.9]), np.array([1.3, 0.2, -0.8])
ROWS = np.array([[1.0], [-0.5], [0.3]])
CHECKPOINTS = pytest.mark.parametrize(
    "max_steps, checkpoints", [(12, None), (12, 7), (12, 100), (300, None), (300, 17)])


def step(w, x):
    return lax.sin(x) * w + 0.1 * x * x


def powers(x, w, n, max_steps=12, checkpoints=None):
    """The n-th value of a sequence that starts with x."""
    return lax.bounded_while_loop(lambda s: s[0] < n, lambda s: (s[0] + 1, step(w, s[1])), (0, x),
                                  max_steps=max_steps, checkpoints=checkpoints)[1]


def unrolled(x, w, n):
    for _ in range(n):
        x = step(w, x)
    return x


def same(got, wanted, rtol=1e-12):
    for g, w in zip(cj.tree.leaves(got), cj.tree.leaves(wanted), strict=True):
        assert_allclose(np.asarray(g), np.asarray(w), rtol=rtol, atol=1e-14)


def bits(tree):
    return [np.asarray(x).tobytes() for x in cj.tree.leaves(tree)]


@CHECKPOINTS
@pytest.mark.parametrize("n", [0, 1, 5, 12])
def test_gradients_are_those_of_the_steps_written_out(max_steps, checkpoints, n):
    def loss(f):
        return lambda x, w: (f(x, w, n) ** 2).sum()

    loop = partial(powers, max_steps=max_steps, checkpoints=checkpoints)
    same(cj.value_and_grad(loss(loop), (0, 1))(X, W), cj.value_and_grad(loss(unrolled), (0, 1))(X, W))


@CHECKPOINTS
def test_values_are_while_loops_bit_for_bit(max_steps, checkpoints):
    def loop(kind, x, n):
        return kind(lambda s: s[0] < n, lambda s: (s[0] + 1, step(W, s[1])), (0, x))

    bounded = partial(lax.bounded_while_loop, max_steps=max_steps, checkpoints=checkpoints)
    assert bits(loop(lax.while_loop, X, 9)) == bits(loop(bounded, X, 9))
    assert bits(cj.jit(partial(loop, lax.while_loop))(X, 9)) == bits(cj.jit(partial(loop, bounded))(X, 9))
    ns = np.array([3, 0, 7])
    rows = np.stack([X, 2.0 * X, -X])
    assert bits(cj.vmap(partial(loop, lax.while_loop))(rows, ns)) == bits(cj.vmap(partial(loop, bounded))(rows, ns))


@pytest.mark.parametrize("max_steps, checkpoints", [
    (12, None), (12, 7), pytest.param(300, 17, marks=pytest.mark.exhaustive)])
def test_derivatives_of_every_order_in_every_mode(max_steps, checkpoints):
    def loss(f):
        return lambda x: (f(x, W * x[0], 4) ** 2).sum()

    loop, plain = loss(partial(powers, max_steps=max_steps, checkpoints=checkpoints)), loss(unrolled)
    ways = {
        "forward over reverse": lambda f: cj.jacfwd(cj.grad(f))(X),
        "reverse over reverse": lambda f: cj.jacrev(cj.grad(f))(X),
        "reverse over forward": lambda f: cj.grad(lambda x: cj.jvp(f, (x,), (W,))[1])(X),
        "forward over forward": lambda f: cj.jvp(lambda x: cj.jvp(f, (x,), (W,))[1], (X,), (W,)),
        "linearize": lambda f: cj.linearize(f, X)[1](W),
        "third": lambda f: cj.grad(lambda x: (cj.grad(lambda x: (cj.grad(f)(x) * W).sum())(x) * W).sum())(X),
    }
    for way in ways.values():
        same(way(loop), way(plain), 1e-10)


@pytest.mark.parametrize("checkpoints", [None, 9, 64])
def test_rows_end_on_their_own(checkpoints):
    ns, rows = np.array([3, 0, 6, 1]), np.stack([X, 2.0 * X, -X, X + 1.0])
    loop = partial(powers, max_steps=20, checkpoints=checkpoints)

    def each(f, w):
        return sum((f(x, w, int(n)) ** 2).sum() for x, n in zip(rows, ns, strict=True))

    def mapped(w):
        return (cj.vmap(lambda x, n: loop(x, w, n))(rows, ns) ** 2).sum()

    same(cj.grad(mapped)(W), cj.grad(partial(each, unrolled))(W))
    same(cj.hessian(mapped)(W), cj.hessian(partial(each, unrolled))(W), 1e-10)
    grads = cj.vmap(lambda x, n: cj.grad(lambda w: loop(x, w, n).sum())(W))(rows, ns)
    same(grads, np.stack([cj.grad(lambda w, x=x, n=n: unrolled(x, w, n).sum())(W)
                          for x, n in zip(rows, ns.tolist(), strict=True)]))
    nested = cj.vmap(lambda w: cj.vmap(lambda x, n: cj.grad(lambda w: loop(x, w, n).sum())(w))(rows, ns))
    same(nested(np.stack([W, 2.0 * W]))[0], grads)
    twice = cj.grad(lambda w: (cj.vmap(lambda x, n: cj.grad(lambda x: loop(x, w, n).sum())(x))(rows, ns) ** 2).sum())
    same(twice(W), cj.grad(lambda w: sum((cj.grad(lambda x, n=n: unrolled(x, w, n).sum())(x) ** 2).sum()
                                         for x, n in zip(rows, ns.tolist(), strict=True)))(W), 1e-10)


def descent(x, end, w, checkpoints=None):
    """Steps that are singular where the loop ends: the derivative of a root of zero, and a division by zero."""
    def body(s):
        t, x = s
        h = lax.min(0.3, end - t)
        return t + h, x + w * lax.sqrt(end - t) * h + 0.01 / (end - t)
    return lax.bounded_while_loop(lambda s: s[0] < end, body, (0.0 * x, x), max_steps=40, checkpoints=checkpoints)[1]


@pytest.mark.parametrize("checkpoints", [None, 12, 40])
def test_no_step_is_evaluated_where_a_row_has_ended(checkpoints):
    def written_out(x, end, w):
        t = 0.0
        while t < end:
            h = min(0.3, end - t)
            t, x = t + h, x + w * lax.sqrt(end - t) * h + 0.01 / (end - t)
        return x

    ends, rows = np.array([0.0, 1.0, 0.0, 0.5, 2.0]), np.arange(1.0, 6.0)
    loop = partial(descent, checkpoints=checkpoints)

    def total(w):
        return (cj.vmap(lambda x, end: loop(x, end, w))(rows, ends) ** 2).sum()

    def plain(w):
        return sum(written_out(x, end, w) ** 2 for x, end in zip(rows, ends, strict=True))

    same(cj.grad(total)(0.3), cj.grad(plain)(0.3))
    same(cj.hessian(total)(0.3), cj.hessian(plain)(0.3))
    slopes = cj.vmap(cj.grad(loop, (0, 1, 2)), (0, 0, None))(rows, ends, 0.3)
    assert all(np.isfinite(np.asarray(x)).all() for x in slopes)
    inner = cj.grad(lambda w: (cj.vmap(lambda x, end: cj.grad(lambda x: loop(x, end, w) ** 2)(x))(rows, ends)).sum())
    same(inner(0.3), cj.grad(lambda w: sum(2.0 * written_out(x, end, w) for x, end in zip(
        rows, ends, strict=True)))(0.3))


@pytest.mark.parametrize("max_steps", [5, 40])
def test_rows_that_end_on_their_own_within_and_around_other_rows(max_steps):
    ns = np.array([2, 0, 3])

    def inner(x, n, scale):  # rows of a constant number of steps, and of as many as the loop around has taken
        rows = cj.vmap(lambda n: powers(x, W * scale, n, max_steps))(ns + n)
        return rows.sum(0) + powers(x, W, n, max_steps)

    def outer(x, n):
        return lax.bounded_while_loop(lambda s: s[0] < n, lambda s: (s[0] + 1, lax.tanh(inner(s[1], s[0], s[1][0]))),
                                      (0, x), max_steps=max_steps)[1]

    def written_out(x, n):
        for i in range(n):
            rows = [unrolled(x, W * x[0], k + i) for k in ns.tolist()]
            x = lax.tanh(rows[0] + rows[1] + rows[2] + unrolled(x, W, i))
        return x

    def total(x):
        return cj.vmap(outer)(x * ROWS, ns).sum()

    def plain(x):
        return sum(written_out(x * row, n).sum() for row, n in zip(ROWS, ns.tolist(), strict=True))

    for way in (lambda f: f, cj.grad, lambda f: cj.jit(cj.hessian(f))):
        same(way(total)(X), way(plain)(X), 1e-10)
    slopes = cj.vmap(cj.grad(lambda x, n: outer(x, n).sum()))(X * ROWS, ns)
    same(slopes, np.stack([cj.grad(lambda x, n=n: written_out(x, n).sum())(X * row)
                           for row, n in zip(ROWS, ns.tolist(), strict=True)]))


def test_a_loop_of_no_steps_has_derivatives_where_its_steps_are_singular():
    def loop(w, n=0):
        return lax.bounded_while_loop(lambda s: s[0] < n, lambda s: (s[0] + 1, s[1] * (1.0 / w)), (0, 1.0),
                                      max_steps=4)[1]
    slopes = [cj.grad(loop), cj.grad(cj.grad(loop)), cj.grad(cj.grad(cj.grad(loop)))]
    assert [0.0] * 3 == [slope(0.0).item() for slope in slopes]
    assert [0.0] * 3 == [cj.jit(slope)(0.0).item() for slope in slopes]
    ns, ws = np.array([0, 2]), np.array([0.0, 2.0])
    same(cj.vmap(cj.grad(cj.grad(loop)))(ws, ns), np.array([0.0, 0.375]))
    same(cj.vmap(lambda n: cj.grad(cj.grad(loop))(2.0, n))(ns), np.array([0.0, 0.375]))
    same(cj.hessian(lambda w: cj.vmap(loop)(w, ns).sum())(ws), np.array([[0.0, 0.0], [0.0, 0.375]]))


def test_under_jit_scan_cond_and_checkpoint():
    def scanned(w):
        return lax.scan(lambda x, n: (powers(x, w, n), x.sum()), X, np.array([2, 0, 3]))[0].sum()

    def written_out(w):
        return unrolled(X, w, 5).sum()

    same(cj.grad(scanned)(W), cj.grad(written_out)(W))
    same(cj.jit(cj.grad(scanned))(W), cj.grad(written_out)(W))
    same(cj.grad(cj.checkpoint(scanned))(W), cj.grad(written_out)(W))
    same(cj.hessian(cj.jit(scanned))(W), cj.hessian(written_out)(W))
    chosen = cj.jit(cj.grad(lambda w, p: lax.cond(p, lambda: powers(X, w, 5).sum(), lambda: w.sum())))
    same(chosen(W, True), cj.grad(written_out)(W))
    same(chosen(W, False), np.ones(3))
    assert bits(cj.jit(cj.grad(scanned))(W)) == bits(cj.jit(cj.grad(scanned))(W))


def test_nested_loops():
    def inner(x, n):
        return lax.bounded_while_loop(lambda s: s[0] < n, lambda s: (s[0] + 1, lax.sin(s[1]) + 0.1), (0, x),
                                      max_steps=9)

    def outer(x):
        return lax.bounded_while_loop(lambda s: s[0] < 4, lambda s: (s[0] + 1, inner(s[1], s[0])[1]), (0, x),
                                      max_steps=40)[1].sum()

    def written_out(x):
        for i in range(4):
            for _ in range(i):
                x = lax.sin(x) + 0.1
        return x.sum()

    same(cj.grad(outer)(X), cj.grad(written_out)(X))
    same(cj.hessian(outer)(X), cj.hessian(written_out)(X), 1e-10)


@pytest.mark.parametrize("loop", [
    lambda r: lax.bounded_while_loop(lambda s: s[0] < 2, lambda s: (s[0] + 1, lax.tanh(r) + 0.1 * s[1]), (0, r),
                                     max_steps=4)[1],
    lambda r: lax.scan(lambda c, _: (lax.tanh(r) + 0.1 * c, None), r, None, length=4, checkpoint_every=2)[0]])
def test_a_scan_may_repeat_a_loop_of_what_it_closes_over(loop):
    """Its derivative computes values and tangents of that loop once, before all steps."""
    def scanned(r):
        return lax.scan(lambda c, x: (c * x + loop(r), lax.sin(c)), r, np.arange(3.0))[1].sum()

    def written_out(r):
        c, total = r, 0.0
        for x in range(3):
            c, total = c * x + loop(r), total + lax.sin(c)
        return total.sum()

    for way in (cj.grad, lambda f: cj.jit(cj.grad(f)), cj.hessian, lambda f: lambda x: cj.jvp(f, (x,), (W,))[1]):
        same(way(scanned)(X), way(written_out)(X))


def test_what_condition_and_body_close_over_is_differentiated():
    def loop(a, b):
        return lax.bounded_while_loop(lambda x: (x * a).sum() < 30.0, lambda x: x * b + a, a, max_steps=50).sum()

    def written_out(a, b):
        x = a
        while (x * a).sum() < 30.0:
            x = x * b + a
        return x.sum()

    a, b = np.array([1.0, 2.0]), np.array([1.3, 0.7])
    same(cj.grad(loop, (0, 1))(a, b), cj.grad(written_out, (0, 1))(a, b))
    same(cj.jvp(loop, (a, b), (b, a)), cj.jvp(written_out, (a, b), (b, a)))


def test_at_most_max_steps_are_taken():
    def count(max_steps, checkpoints=None):
        return lax.bounded_while_loop(lambda n: n < 1000, lambda n: n + 1, 0, max_steps=max_steps,
                                      checkpoints=checkpoints).item()
    for most in (1, 2, 7, 33, 100, 997):
        assert [most] * 2 == [count(most), count(most, most)]
    assert 1000 == count(10 ** 12)
    grad = cj.grad(lambda x: lax.bounded_while_loop(lambda s: True, lambda x: 2.0 * x, x, max_steps=37))
    assert 2.0 ** 37 == grad(1.0).item()


def test_steps_that_are_not_taken_cost_nothing():
    """A bound of a billion steps, of which four are taken: masked steps would take minutes."""
    loop = partial(powers, max_steps=10 ** 9, checkpoints=60)
    same(cj.grad(lambda x: loop(x, W, 4).sum())(X), cj.grad(lambda x: unrolled(x, W, 4).sum())(X))


def test_memory_grows_with_the_root_of_the_bound():
    def temporary(max_steps, checkpoints=None):
        x = np.ones(1000)
        grad = cj.jit(cj.grad(lambda x: powers(x, 0.9, max_steps, max_steps, checkpoints).sum()))
        return grad.lower(x).compile().memory_analysis().temp_size_in_bytes / x.nbytes  # in states

    assert temporary(10_000) < 2.5 * 200
    assert temporary(10_000, 40) < 120
    assert temporary(10_000, 10_000) > 9_000


def test_types_are_while_loops():
    for init in (1, 1.0, np.float32(1.0), np.int8(3), (1, 2.0), {"a": np.ones(2, np.float32), "b": None}):
        def body(s):
            return cj.tree.map(lambda x: x * 2, s)

        def cond(s):
            return (cj.tree.leaves(s)[0] < 40).all()
        usual = cj.eval_shape(lambda init=init: lax.while_loop(cond, body, init))
        assert str(usual) == str(cj.eval_shape(lambda init=init: lax.bounded_while_loop(cond, body, init, max_steps=9)))
    settled = lax.bounded_while_loop(lambda x: x < 9, lambda x: x * np.float32(1.5), 1, max_steps=40)
    assert "float32" == str(settled.dtype)
    assert not settled.weak_type


def test_integers_and_empty_arrays_in_the_state():
    def loop(x):
        def body(s):
            return {"n": s["n"] + 1, "x": s["x"] * x, "none": None, "e": s["e"], "b": ~s["b"]}
        init = {"n": np.int32(0), "x": 1.0, "none": None, "e": np.zeros((0, 2)), "b": np.array([True, False])}
        out = lax.bounded_while_loop(lambda s: s["n"] < 3, body, init, max_steps=50)
        return out["x"] + out["e"].sum(), out
    (value, out), slope = cj.value_and_grad(loop, has_aux=True)(2.0)
    assert (8.0, 12.0, 3, [False, True]) == (value.item(), slope.item(), out["n"].item(), out["b"].tolist())
    integers = cj.grad(lambda x: x * lax.bounded_while_loop(lambda n: n < 5, lambda n: n + 2, 0, max_steps=9))
    assert 6.0 == integers(1.0).item()
    state = lax.bounded_while_loop(lambda s: True, lambda s: (), (), max_steps=3)
    assert () == state


def test_float32_and_complex_states():
    def loop(x, n=3):
        return lax.bounded_while_loop(lambda s: s[0] < n, lambda s: (s[0] + 1, s[1] * s[1]), (0, x), max_steps=40)[1]
    found = cj.grad(loop)(np.float32(1.1))
    assert "float32" == str(found.dtype)
    assert_allclose(found, 8 * np.float32(1.1) ** 7, rtol=1e-5)
    z = 0.6 + 0.8j
    assert_allclose(cj.grad(loop, holomorphic=True)(z), 8 * z ** 7)


def test_finite_differences():
    def loop(x):
        return lax.bounded_while_loop(lambda s: s.sum() > 0.5, lambda s: 0.8 * s * lax.cos(0.1 * x), x * x,
                                      max_steps=99, checkpoints=30).sum()
    h = 1e-6
    numeric = [(loop(X + h * e) - loop(X - h * e)).item() / (2.0 * h) for e in np.eye(3)]
    assert_allclose(cj.grad(loop)(X), numeric, rtol=1e-7)


def loop_of(cond=lambda x: x < 3.0, body=lambda x: x + 1.0, init=1.0, **more):
    return lax.bounded_while_loop(cond, body, init, **{"max_steps": 5, **more})


WRONG = {
    "no bound": (lambda: lax.bounded_while_loop(lambda x: x < 3, lambda x: x + 1, 0), "max_steps"),
    "a bound of zero": (lambda: loop_of(max_steps=0), "max_steps is too small"),
    "a negative bound": (lambda: loop_of(max_steps=-2), "max_steps is too small"),
    "a bound that is a float": (lambda: loop_of(max_steps=5.0), "max_steps must be an integer"),
    "a bound that is a bool": (lambda: loop_of(max_steps=True), "max_steps must be an integer"),
    "a bound that is None": (lambda: loop_of(max_steps=None), "max_steps must be an integer"),
    "a traced bound": (lambda: cj.jit(lambda n: loop_of(max_steps=n))(5), "max_steps must be known"),
    "few checkpoints": (lambda: loop_of(max_steps=1000, checkpoints=5), "checkpoints is too small for that many steps"),
    "no checkpoints": (lambda: loop_of(checkpoints=0), "checkpoints is too small"),
    "checkpoints by a float": (lambda: loop_of(checkpoints=4.0), "checkpoints must be an integer"),
    "checkpoints by a bool": (lambda: loop_of(checkpoints=True), "checkpoints must be an integer"),
    "traced checkpoints": (lambda: cj.jit(lambda n: loop_of(checkpoints=n))(5), "checkpoints must be known"),
    "a condition that is a value": (lambda: loop_of(cond=True), "the condition must be a function"),
    "a body that is a value": (lambda: loop_of(body=1.0), "the body must be a function"),
    "a condition of numbers": (lambda: loop_of(cond=lambda x: x), "must return a boolean"),
    "a condition of many": (lambda: loop_of(cond=lambda x: x < np.ones(3)), "must return a boolean"),
    "a condition of a pair": (lambda: loop_of(cond=lambda x: (x < 3, x)), "must return a boolean"),
    "a body of another structure": (lambda: loop_of(body=lambda x: (x, x)), "a carry of a different structure"),
    "a body of another shape": (lambda: loop_of(body=lambda x: x * np.ones(2)), "the body"),
    "a body of another dtype": (lambda: loop_of(init=np.float32(1.0), body=lambda x: x * np.float64(2.0)), "the body"),
    "a state of text": (lambda: loop_of(init="one"), "init_val"),
    "a body without argument": (lambda: loop_of(body=lambda: 1.0), "argument"),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_uses_are_answered(name):
    use, message = WRONG[name]
    with pytest.raises((CorejaxError, TypeError), match=re.escape(message)) as caught:
        use()
    if name != "no bound":
        assert "bounded_while_loop" in str(caught.value) or "argument" in message


def test_while_loop_says_that_there_is_a_loop_with_a_reverse_mode():
    with pytest.raises(CorejaxNotImplementedError, match="use lax.bounded_while_loop"):
        cj.grad(lambda x: lax.while_loop(lambda x: x < 3.0, lambda x: x * x, x))(2.0)


def test_a_step_may_return_numbers():
    def f(x, limit):
        return lax.bounded_while_loop(lambda c: c[0] > limit, lambda c: (0.5, c[1] + c[0]), (x, x), max_steps=3)
    xs, limits = np.array([1.5, 0.2, 1.0]), np.array([1.0, 0.7, 0.4])
    wanted = [[0.5, 0.2, 0.5], [3.0, 0.2, 3.0]]
    for mapped in (cj.vmap(f), cj.jit(cj.vmap(f)), cj.vmap(cj.jit(f))):
        np.testing.assert_array_equal(wanted, mapped(xs, limits))
    rows = cj.vmap(lambda x: cj.vmap(f, (None, 0))(x, limits))(xs)
    np.testing.assert_array_equal(np.diagonal(np.asarray(rows), axis1=1, axis2=2), wanted)
    # the second part: x + x + 0.5, x, and x + x
    np.testing.assert_array_equal([2.0, 1.0, 2.0], cj.vmap(cj.grad(lambda x, limit: f(x, limit)[1]))(xs, limits))
