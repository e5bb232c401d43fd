"""linear_call: both functions are used, each as the transpose of the other, in every order of transformations."""

from __future__ import annotations

import itertools
from functools import reduce

import numpy as np
import pytest

import corejax as cj
from corejax import lax
from corejax.custom_derivatives import linear_call
from corejax.errors import CorejaxError

RNG = np.random.default_rng(0)
X, R = RNG.standard_normal((2, 4)), RNG.uniform(1.0, 2.0, (2, 4))
M, V = RNG.standard_normal((3, 2)), RNG.standard_normal(2)


def divided(r, x, by=10.0):
    """x / r, whose transpose multiplies by a number, which shows where it was used."""
    return linear_call(lambda r, x: x / r, lambda r, ct: by * ct / r, r, x)


def product(r, x):
    """r * x, said by a linear_call that says the truth."""
    return linear_call(lambda r, x: r * x, lambda r, ct: r * ct, r, x)


ROUTES = {
    "call": (lambda: divided(R, X), X / R),
    "jit": (lambda: cj.jit(divided)(R, X), X / R),
    "vmap": (lambda: cj.vmap(divided)(R, X), X / R),
    "vmap of residuals": (lambda: cj.vmap(divided, (0, None))(R, X[0]), X[0] / R),
    "vmap of the linear": (lambda: cj.vmap(divided, (None, 1), out_axes=1)(R[:, 0], X), X / R[:, :1]),
    "jvp": (lambda: cj.jvp(lambda x: divided(R, x), (X,), (X,))[1], X / R),
    "jvp of residuals": (lambda: cj.jvp(lambda r: divided(r, X), (R,), (R,))[1], -X / R),
    "jvp of both": (lambda: cj.jvp(divided, (R, X), (R, R))[1], 1 - X / R),
    "grad": (lambda: cj.grad(lambda x: divided(R, x).sum())(X), 10 / R),
    "grad by residuals": (lambda: cj.grad(lambda r: divided(r, X).sum())(R), -X / R**2),
    "jit(grad)": (lambda: cj.jit(cj.grad(lambda x: divided(R, x).sum()))(X), 10 / R),
    "grad(jit)": (lambda: cj.grad(cj.jit(lambda x: divided(R, x).sum()))(X), 10 / R),
    "vmap(grad)": (lambda: cj.vmap(cj.grad(lambda x, r: divided(r, x).sum()))(X, R), 10 / R),
    "grad(vmap)": (lambda: cj.grad(lambda x: cj.vmap(divided)(R, x).sum())(X), 10 / R),
    "grad(vmap) of a shared argument": (lambda: cj.grad(lambda x: cj.vmap(divided, (0, None))(R, x).sum())(X[0]),
                                        (10 / R).sum(0)),
    "transpose": (lambda: cj.linear_transpose(lambda x: divided(R, x), X)(X)[0], 10 * X / R),
    "transpose twice": (lambda: cj.linear_transpose(
        lambda ct: cj.linear_transpose(lambda x: divided(R, x), X)(ct)[0], X)(X)[0], X / R),
    "vmap(transpose twice)": (lambda: cj.vmap(lambda r, x: cj.linear_transpose(
        lambda ct: cj.linear_transpose(lambda x: divided(r, x), x)(ct)[0], x)(x)[0])(R, X), X / R),
    "linearize": (lambda: cj.linearize(lambda x: divided(R, x), X)[1](R), np.ones((2, 4))),
    "hessian": (lambda: cj.hessian(lambda r: product(r, r * r))(2.0), 12.0),
    "jacrev": (lambda: cj.jacrev(lambda x: divided(R[0], x))(X[0]), np.diag(10 / R[0])),
    "jacfwd": (lambda: cj.jacfwd(lambda x: divided(R[0], x))(X[0]), np.diag(1 / R[0])),
    "scan": (lambda: cj.grad(lambda x: lax.scan(
        lambda c, _: (divided(2.0, c), None), x, None, length=3)[0])(3.0), 125.0),
    "vmap(scan)": (lambda: cj.vmap(cj.grad(lambda x: lax.scan(
        lambda c, _: (divided(2.0, c), None), x, None, length=3)[0]))(X[0]), np.full(4, 125.0)),
    "cond": (lambda: cj.grad(lambda x: lax.cond(x > 0.0, lambda: divided(2.0, x), lambda: x))(3.0), 5.0),
    "checkpoint": (lambda: cj.grad(cj.checkpoint(lambda x: divided(R, x).sum()))(X), 10 / R),
}


@pytest.mark.parametrize("name", ROUTES)
def test_the_transpose_is_used_wherever_it_is_transposed(name):
    run, expected = ROUTES[name]
    for _ in range(2):
        np.testing.assert_allclose(run(), expected, rtol=1e-12)


TRANSFORMS = {
    "jit": cj.jit, "vmap": cj.vmap, "checkpoint": cj.checkpoint,
    "jvp": lambda f: lambda r, x: cj.jvp(f, (r, x), (lax.cos(r), x * x))[1],
    "grad": lambda f: cj.grad(lambda r, x: f(r, x).sum() if not isinstance(f(r, x), tuple) else
                              f(r, x)[0].sum() + f(r, x)[1].sum(), (0, 1)),
    "jacrev": lambda f: cj.jacrev(f), "jacfwd": lambda f: cj.jacfwd(f, 1),
}


@pytest.mark.sample(40)
@pytest.mark.parametrize("names", [*itertools.product(TRANSFORMS, repeat=3)], ids=" of ".join)
def test_one_that_says_the_truth_changes_nothing(names):
    r, x = RNG.uniform(1.0, 2.0, (2, *[2] * (names.count("vmap") + 1)))
    got = reduce(lambda g, name: TRANSFORMS[name](g), names[::-1], product)(r, x)
    want = reduce(lambda g, name: TRANSFORMS[name](g), names[::-1], lambda r, x: r * x)(r, x)
    for a, b in zip(cj.tree.leaves(got), cj.tree.leaves(want), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-10)


def test_it_is_the_adjoint_that_its_author_wrote():
    def apply(m, v):
        return linear_call(lambda m, v: lax.dot(m, v), lambda m, ct: lax.dot(ct, m), m, v)

    u = RNG.standard_normal(3)
    back, = cj.linear_transpose(lambda v: apply(M, v), V)(u)
    np.testing.assert_allclose(np.dot(u, apply(M, V)), np.dot(back, V))
    np.testing.assert_allclose(cj.jacrev(apply, 1)(M, V), M)
    np.testing.assert_allclose(cj.grad(lambda m: (apply(m, V) * u).sum())(M), np.outer(u, V))
    np.testing.assert_allclose(cj.vmap(cj.jacrev(apply, 1), (0, None))(np.stack([M, 2 * M]), V), np.stack([M, 2 * M]))


def test_trees_with_several_parts():
    def apply(r, x):
        return linear_call(lambda r, x: [x["a"] * r[0], x["b"][0] + x["a"], None],
                           lambda r, ct: {"a": ct[0] * r[0] + 7.0 * ct[1], "b": (5.0 * ct[1], None)}, r, x)

    x = {"a": 1.0, "b": (2.0, None)}
    assert [2.0, 3.0, None] == apply((2.0, "unused")[:1], x)
    grads = cj.grad(lambda x: sum(apply((2.0,), x)[:2]))(x)
    assert {"a": 9.0, "b": (5.0, None)} == grads
    assert {"a": 2.0, "b": (0.0, None)} == cj.grad(lambda x: apply((2.0,), x)[0])(x)
    assert 0.0 == cj.grad(lambda a: apply((2.0,), {"a": a, "b": x["b"]})[2] or 0.0 * a)(1.0)


def test_cotangents_may_be_plain_numbers():
    f = lambda x: linear_call(lambda _, x: 3.0 * x[0], lambda _, ct: (3.0, 0), (), x)
    grads = cj.grad(lambda x, y: f((x, y)), (0, 1))(np.float64(1.0), np.float64(2.0))
    assert (3.0, 0.0) == grads


def test_functions_may_call_each_other():
    def forth(r, x):
        return linear_call(lambda r, x: x * r, back, r, x)

    def back(r, ct):
        return linear_call(lambda r, ct: 10.0 * r * ct, forth, r, ct)

    assert 20.0 == cj.grad(forth, 1)(2.0, 3.0) == cj.jit(cj.grad(forth, 1))(2.0, 3.0)
    twice = cj.linear_transpose(lambda ct: cj.linear_transpose(lambda x: forth(2.0, x), 3.0)(ct)[0], 3.0)
    assert (2.0,) == twice(1.0)


def closing(r):
    return lambda x: linear_call(lambda _, x: x / r, lambda _, ct: 10.0 * ct / r, (), x)


OUTER = {
    "jit": (lambda: cj.jit(lambda r, x: cj.grad(closing(r))(x))(2.0, 3.0), 5.0),
    "jit inside": (lambda: cj.grad(cj.jit(lambda x, r: closing(r)(x)))(3.0, 2.0), 5.0),
    "vmap": (lambda: cj.vmap(lambda r, x: cj.grad(closing(r))(x))(R[0], X[0]), 10 / R[0]),
    "jit(vmap(jit))": (lambda: cj.jit(cj.vmap(cj.jit(lambda r, x: cj.grad(cj.jit(closing(r)))(x))))(R[0], X[0]),
                       10 / R[0]),
    "jvp": (lambda: cj.jvp(lambda r: closing(r)(3.0), (2.0,), (1.0,))[1], -0.75),
    "grad": (lambda: cj.grad(lambda r: closing(r)(3.0))(2.0), -0.75),
    "grad(grad)": (lambda: cj.grad(lambda r: cj.grad(closing(r))(3.0))(2.0), -2.5),
    "scan": (lambda: lax.scan(lambda r, _: (r + 1.0, cj.grad(closing(r))(1.0)), 1.0, None, length=2)[1], [10.0, 5.0]),
    "cond": (lambda: cj.jit(cj.grad(lambda x, r: lax.cond(x > 0.0, closing(r), lambda x: x, x)))(3.0, 2.0), 5.0),
}


@pytest.mark.parametrize("name", OUTER)
def test_functions_may_close_over_what_is_traced_outside(name):
    run, expected = OUTER[name]
    np.testing.assert_allclose(run(), expected)


def test_the_program_shows_it():
    jaxpr = cj.make_jaxpr(cj.grad(divided, 1))(2.0, 3.0)
    assert ["linear_call"] * 2 == [eqn.primitive.name for eqn in jaxpr.eqns if eqn.primitive.name == "linear_call"]
    assert "transpose=" in str(jaxpr)


def test_complex_numbers_and_small_floats():
    z = np.ones(2, np.complex64) * (1 + 2j)
    times = lambda x: linear_call(lambda _, x: 1j * x, lambda _, ct: 1j * ct, (), x)
    np.testing.assert_allclose(cj.linear_transpose(times, z)(z)[0], 1j * z)
    assert "float16" == cj.grad(lambda x: divided(np.float16(2), x))(np.float16(3)).dtype
    assert "float32" == cj.vmap(cj.grad(divided, 1))(np.ones(2, np.float32), np.ones(2, np.float32)).dtype


REFUSED = {
    "no function": (lambda: linear_call(3, lambda r, ct: ct, (), 1.0), TypeError, "fun must be a function"),
    "no transpose": (lambda: linear_call(lambda r, x: x, None, (), 1.0), TypeError, "fun_transpose must be a function"),
    "integers": (lambda: linear_call(lambda r, x: x, lambda r, ct: ct, (), 3), TypeError, "linear_args must be floats"),
    "integers as results": (lambda: linear_call(lambda r, x: 3, lambda r, ct: ct, (), 3.0), TypeError,
                            "the results of <lambda> must be floats"),
    "text": (lambda: linear_call(lambda r, x: x, lambda r, ct: ct, "text", 3.0), TypeError, "args[0] is a str"),
    "another structure": (lambda: cj.grad(lambda x: linear_call(lambda r, x: (x, x), lambda r, ct: ct, (), x)[0])(3.0),
                          TypeError, "structured differently than what <lambda> is linear in"),
    "another shape": (lambda: cj.grad(lambda x: linear_call(lambda r, x: x, lambda r, ct: np.ones(3), (), x))(3.0),
                      TypeError, "f64[3] for the result"),
    "another dtype": (lambda: cj.grad(lambda x: linear_call(
        lambda r, x: x, lambda r, ct: ct.astype(np.float32), (), x))(3.0), TypeError, "f32[] for the result"),
    "transposed by residuals": (lambda: cj.linear_transpose(lambda r: divided(r, 3.0), 2.0)(1.0), NotImplementedError,
                                "linear in linear_args alone"),
    "other arguments": (lambda: linear_call(lambda x: x, lambda r, ct: ct, (), 3.0), TypeError,
                        "doesn't take these arguments"),
    "other arguments back": (lambda: cj.grad(lambda x: linear_call(lambda r, x: x, lambda ct: ct, (), x))(3.0),
                             TypeError, "doesn't take these arguments"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_wrong_uses_say_what_to_do(name):
    run, kind, message = REFUSED[name]
    with pytest.raises(CorejaxError) as caught:
        run()
    assert isinstance(caught.value, kind)
    text = str(caught.value)
    assert message in text and "wanted:" in text and "test_linear_call.py" in text
