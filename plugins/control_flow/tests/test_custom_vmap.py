"""custom_vmap and sequential_vmap: the rule is what maps, in every order of transformations."""

from __future__ import annotations

import gc
import threading
import weakref
from functools import partial, reduce

import numpy as np
import pytest

import corejax as cj
from corejax import lax
from corejax.custom_batching import custom_vmap, sequential_vmap
from corejax.errors import CorejaxError
from corejax.ir.surgery import dce

RNG = np.random.default_rng(0)
X, Y = RNG.standard_normal((4, 3)), RNG.standard_normal((4, 3))
W = RNG.standard_normal(3)


def honest(seen=None):
    """A function with a rule that computes what the function does."""
    def plain(x, y):
        return lax.sin(x) * y, (x * y).sum()

    @custom_vmap
    def f(x, y):
        return plain(x, y)

    @f.def_vmap
    def rule(size, batched, x, y):
        if seen is not None:
            seen.append((size, batched))
        x, y = [z if b else lax.broadcast(z, (size,)) for z, b in zip((x, y), batched, strict=True)]
        return (lax.sin(x) * y, lax.reduce(x * y, 0.0, lax.add, tuple(range(1, x.ndim)))), (True, True)

    return f, plain


def scaled(by=10.0):
    """A function whose rule multiplies by a number, which shows where it was applied, and how often."""
    f = custom_vmap(lambda x, y: lax.sin(x) * y)
    f.def_vmap(lambda size, batched, x, y: (
        by * lax.sin(x) * y if all(batched) else
        by * lax.sin(x if batched[0] else lax.broadcast(x, (size,))) * (y if batched[1] else lax.broadcast(y, (size,))),
        True))
    return f


TRANSFORMS = {
    "jit": cj.jit,
    "vmap": cj.vmap,
    "jvp": lambda f: lambda x, y: cj.jvp(f, (x, y), (lax.cos(x), y * y))[1],
    "grad": lambda f: cj.grad(lambda x, y: sum(leaf.sum() for leaf in cj.tree.leaves(f(x, y))), (0, 1)),
    "linearize": lambda f: lambda x, y: cj.linearize(f, x, y)[1](y, x),
    "checkpoint": cj.checkpoint,
    "scan": lambda f: lambda x, y: lax.scan(lambda c, _: (c, f(x, y)), 0, None, length=2)[1],
    "cond": lambda f: lambda x, y: lax.cond(x.sum() > -100.0, f, f, x, y),
    "jacfwd": lambda f: cj.jacfwd(f), "jacrev": lambda f: cj.jacrev(f),
}
ORDERS = [(a, b, c) for a in TRANSFORMS for b in TRANSFORMS for c in TRANSFORMS if "vmap" in (a, b, c)]


@pytest.mark.sample(60)
@pytest.mark.parametrize("names", ORDERS, ids=" of ".join)
def test_a_rule_that_says_the_truth_changes_nothing(names):
    f, plain = honest()
    shape = (2, 3)[-names.count("vmap"):] if names.count("vmap") < 3 else (2, 2, 3)
    x, y = X.ravel()[:np.prod(shape)].reshape(shape), Y.ravel()[:np.prod(shape)].reshape(shape)
    if names.count("vmap") == 1:
        x, y = X[:2], Y[:2]
    got = reduce(lambda g, name: TRANSFORMS[name](g), names[::-1], f)(x, y)
    want = reduce(lambda g, name: TRANSFORMS[name](g), names[::-1], plain)(x, y)
    for a, b in zip(cj.tree.leaves(got), cj.tree.leaves(want), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-12)


ROUTES = {
    "vmap": (lambda f: cj.vmap(f)(W, W), 10 * np.sin(W) * W),
    "jit(vmap)": (lambda f: cj.jit(cj.vmap(f))(W, W), 10 * np.sin(W) * W),
    "vmap(jit)": (lambda f: cj.vmap(cj.jit(f))(W, W), 10 * np.sin(W) * W),
    "vmap(grad)": (lambda f: cj.vmap(cj.grad(f))(W, W), 10 * np.cos(W) * W),
    "vmap(grad) by both": (lambda f: cj.vmap(cj.grad(f, (0, 1)))(W, W)[1], 10 * np.sin(W)),
    "vmap(jit(grad))": (lambda f: cj.vmap(cj.jit(cj.grad(f)))(W, W), 10 * np.cos(W) * W),
    "vmap(grad(jit))": (lambda f: cj.vmap(cj.grad(cj.jit(f)))(W, W), 10 * np.cos(W) * W),
    "jit(vmap(grad))": (lambda f: cj.jit(cj.vmap(cj.grad(f)))(W, W), 10 * np.cos(W) * W),
    "grad(vmap)": (lambda f: cj.grad(lambda x: cj.vmap(f)(x, W).sum())(W), 10 * np.cos(W) * W),
    "vmap(hessian)": (lambda f: cj.vmap(cj.hessian(f))(W, W), -10 * np.sin(W) * W),
    "vmap(grad(grad))": (lambda f: cj.vmap(cj.grad(cj.grad(f)))(W, W), -10 * np.sin(W) * W),
    "vmap(jacrev(jacrev))": (lambda f: cj.vmap(cj.jacrev(cj.jacrev(f)))(W, W), -10 * np.sin(W) * W),
    "vmap(jacfwd(jacfwd))": (lambda f: cj.vmap(cj.jacfwd(cj.jacfwd(f)))(W, W), -10 * np.sin(W) * W),
    "vmap(linearize)": (lambda f: cj.vmap(lambda x: cj.linearize(f, x, x)[1](x, x))(W),
                        10 * (np.cos(W) * W + np.sin(W)) * W),
    "vmap(vjp) of a shared point": (lambda f: cj.vmap(lambda ct: cj.vjp(f, W[0], W[1])[1](ct)[0])(W),
                                    np.cos(W[0]) * W[1] * W),
    "vmap(vmap(jvp)) along a shared point": (
        lambda f: cj.vmap(lambda x: cj.vmap(lambda t: cj.jvp(f, (x, x), (t, t))[1])(W))(W),
        10 * np.outer(np.cos(W) * W + np.sin(W), W)),
    "vmap(scan)": (lambda f: cj.vmap(lambda x: lax.scan(lambda c, _: (f(c, 1.0), None), x, None, length=2)[0])(W),
                   10 * np.sin(10 * np.sin(W))),
    "vmap(grad(scan))": (lambda f: cj.vmap(cj.grad(
        lambda x: lax.scan(lambda c, _: (f(c, 1.0), None), x, None, length=2)[0]))(W),
        10 * np.cos(10 * np.sin(W)) * 10 * np.cos(W)),
    "vmap(cond)": (lambda f: cj.vmap(lambda x: lax.cond(x > 0.0, lambda: f(x, x), lambda: x))(W),
                   np.where(W > 0, 10 * np.sin(W) * W, W)),
    "grad(checkpoint(vmap))": (lambda f: cj.grad(lambda x: cj.checkpoint(cj.vmap(f))(x, W).sum())(W),
                               10 * np.cos(W) * W),
    "not mapped": (lambda f: f(W, W), np.sin(W) * W),
    "mapped by others": (lambda f: cj.vmap(lambda x: x * f(2.0, 3.0))(W), W * np.sin(2.0) * 3.0),
}


@pytest.mark.parametrize("name", ROUTES)
def test_the_rule_is_applied_wherever_the_function_is_mapped(name):
    run, expected = ROUTES[name]
    for _ in range(2):
        np.testing.assert_allclose(run(scaled()), expected, rtol=1e-12)


def test_the_rule_is_told_the_size_and_what_is_mapped():
    seen = []
    f, _ = honest(seen)
    cj.vmap(f)(X, Y)
    cj.vmap(f, (0, None))(X, W)
    cj.vmap(f, (None, 1))(X[:, 0], Y)
    cj.vmap(cj.vmap(f, (0, None)), (None, 0))(X, Y)
    assert [(4, [True, True]), (4, [True, False]), (3, [False, True]), (4, [True, False])] == seen


def test_it_takes_and_returns_trees_and_parts_that_are_not_mapped():
    @custom_vmap
    def f(d, n, none):
        assert none is None
        return {"x": d["x"] * n, "shape": d["x"].ndim, "none": None}

    @f.def_vmap
    def rule(size, batched, d, n, none):
        assert [{"x": True, "y": [False]}, False, None] == batched
        return {"x": d["x"] * n, "shape": 0, "none": None}, {"x": True, "shape": False, "none": None}

    axes = {"x": 0, "y": [None]}
    out = cj.vmap(f, (axes, None, None), out_axes={"x": 1, "shape": None, "none": None})({"x": X, "y": [W]}, 2, None)
    np.testing.assert_allclose(out["x"], 2 * X.T)
    assert 0 == out["shape"]


def test_types_of_all_kinds_go_through():
    @custom_vmap
    def f(n, b, z, x):
        return n + 1, lax.bitwise_not(b), z * 1j, x

    f.def_vmap(lambda size, batched, *args: (f.fun(*args), (True,) * 4))
    args = np.arange(3, dtype=np.int8), np.array([True, False, True]), np.ones(3, np.complex64), np.ones(3, np.float16)
    out = cj.vmap(f)(*args)
    assert ["int8", "bool", "complex64", "float16"] == [str(x.dtype) for x in out]
    dots = cj.jvp(lambda x: cj.vmap(f)(*args[:3], x)[3], (args[3],), (args[3],))[1]
    assert "float16" == dots.dtype
    grad = cj.grad(lambda x: cj.vmap(f)(*args[:3], x)[3].sum())(args[3])
    np.testing.assert_array_equal(np.ones(3), grad)


def test_a_map_of_nothing():
    assert (0,) == cj.vmap(scaled())(W[:0], W[:0]).shape
    assert (0,) == cj.vmap(cj.grad(scaled()))(W[:0], W[:0]).shape
    assert (0,) == cj.vmap(sequential_vmap(lambda x: x))(W[:0]).shape


def test_keywords_defaults_methods_and_partials():
    @custom_vmap
    def f(x, y=2.0):
        return x * y

    f.def_vmap(lambda size, batched, x, y: (100.0 * x * y, True))
    assert 6.0 == f(3.0) == f(y=2.0, x=3.0)
    assert isinstance(f(3.0), cj.Array)
    np.testing.assert_allclose(cj.vmap(lambda x: f(x=x))(W), 200 * W)
    np.testing.assert_allclose(cj.vmap(partial(f, y=3.0))(W), 300 * W)

    class Model:
        @custom_vmap
        def apply(self, x):
            return x

        @apply.def_vmap
        def rule(size, batched, self, x):
            return 7.0 * x, True

    cj.tree_util.register_static(Model)
    np.testing.assert_allclose(cj.vmap(Model().apply)(W), 7 * W)


def test_attributes_of_the_function_are_kept():
    def f(x):
        """Doc."""
    f.own = 3
    g = custom_vmap(f)
    rule = lambda size, batched, x: (x, True)
    assert rule is g.def_vmap(rule) and rule is g.vmap_rule
    assert ("f", "Doc.", 3, f, f, "<custom_vmap f>") == (
        g.__name__, g.__doc__, g.own, g.fun, g.__wrapped__, repr(g))


def test_rules_of_both_kinds_are_set_on_the_outer_wrapper():
    @cj.custom_vjp
    @custom_vmap
    def f(x):
        return lax.sin(x)

    f.def_vmap(lambda size, batched, x: (lax.cos(x), True))
    f.defvjp(lambda x: (f(x), x), lambda x, ct: (10.0 * ct,))
    np.testing.assert_allclose(cj.vmap(f)(W), np.cos(W))
    np.testing.assert_allclose(cj.vmap(cj.grad(f))(W), np.full(3, 10.0))

    g = custom_vmap(cj.custom_jvp(lambda x: lax.sin(x)))
    g.defjvp(lambda primals, tangents: (g.fun(*primals), 10.0 * tangents[0]))
    g.def_vmap(lambda size, batched, x: (lax.cos(x), True))
    assert 10.0 == cj.grad(g)(1.0)
    np.testing.assert_allclose(cj.vmap(cj.grad(g))(W), -np.sin(W))
    with pytest.raises(AttributeError, match="no attribute 'def_vmap'"):
        cj.custom_vjp(lambda x: x).def_vmap  # noqa: B018
    with pytest.raises(AttributeError, match="no attribute 'defjvp'"):
        custom_vmap(lambda x: x).defjvp  # noqa: B018


def test_a_rule_that_is_set_again_holds_from_then_on():
    f = custom_vmap(lambda x: x)
    f.def_vmap(lambda size, batched, x: (2.0 * x, True))
    mapped = [cj.vmap(f), cj.vmap(cj.jit(lambda x: f(x))), lambda x: cj.jit(cj.vmap(lambda x: f(x)))(x)]
    assert all([2.0 == g(np.ones(1))[0] for g in mapped])
    f.def_vmap(lambda size, batched, x: (3.0 * x, True))
    assert 3.0 == mapped[0](np.ones(1))[0] == cj.vmap(cj.jit(lambda x: f(x)))(np.ones(1))[0] == mapped[2](np.ones(1))[0]


# Values that the function and its rule close over

def closing(c):
    f = custom_vmap(lambda x: c * x)
    f.def_vmap(lambda size, batched, x: (100.0 * c * x, True))
    return f


OUTER = {
    "jit": (lambda: cj.jit(lambda c: cj.vmap(closing(c))(W))(2.0), 200 * W),
    "jit inside": (lambda: cj.vmap(cj.jit(lambda c, x: closing(c)(x)), (None, 0))(2.0, W), 200 * W),
    "another vmap": (lambda: cj.vmap(lambda c: cj.vmap(closing(c))(W))(np.arange(2.0)), np.outer([0, 100], W)),
    "jvp": (lambda: cj.jvp(lambda c: cj.vmap(closing(c))(W), (2.0,), (1.0,))[1], 100 * W),
    "grad": (lambda: cj.grad(lambda c: cj.vmap(closing(c))(W).sum())(2.0), 100 * W.sum()),
    "jvp inside": (lambda: cj.vmap(lambda x: cj.jvp(lambda c: closing(c)(x), (2.0,), (1.0,))[1])(W), 100 * W),
    "not mapped": (lambda: cj.grad(lambda c: closing(c)(3.0))(2.0), 3.0),
    "scan": (lambda: lax.scan(lambda c, _: (c + 1.0, cj.vmap(closing(c))(W)), 1.0, None, length=2)[1],
             np.outer([100, 200], W)),
    "jit(scan(grad))": (lambda: cj.jit(lambda: lax.scan(lambda c, _: (c + 1.0, cj.vmap(cj.grad(closing(c)))(W)), 1.0,
                                                        None, length=2)[1])(), np.outer([100, 200], np.ones(3))),
}


@pytest.mark.parametrize("name", OUTER)
def test_they_may_close_over_what_is_traced_outside(name):
    run, expected = OUTER[name]
    np.testing.assert_allclose(run(), expected)


# sequential_vmap

def test_a_loop_takes_only_one_branch_for_each_element():
    @sequential_vmap
    def f(x, d):
        return {"y": lax.cond(x > 0.0, lambda: x * d["w"], lambda: -x)}

    expected = np.where(W > 0, W * 2.0, -W)
    np.testing.assert_allclose(cj.vmap(f, (0, None))(W, {"w": 2.0})["y"], expected)
    np.testing.assert_allclose(cj.jit(cj.vmap(f, (0, None)))(W, {"w": 2.0})["y"], expected)
    twice = cj.vmap(cj.vmap(f, (0, None)), (0, None))
    np.testing.assert_allclose(twice(X, {"w": 2.0})["y"], np.where(X > 0, 2 * X, -X))
    slopes = cj.vmap(cj.grad(lambda x, d: f(x, d)["y"]), (0, None))
    np.testing.assert_allclose(slopes(W, {"w": 2.0}), np.where(W > 0, 2, -1))
    assert "while" in cj.jit(cj.vmap(f, (0, None))).lower(W, {"w": 2.0}).as_text()
    assert "scan" in str(cj.make_jaxpr(cj.vmap(f, (0, None)))(W, {"w": 2.0}))


# Programs

def test_it_is_one_equation_until_it_is_mapped():
    f, _ = honest()
    jaxpr = cj.make_jaxpr(f)(W, W)
    assert ["custom_vmap_call"] == [eqn.primitive.name for eqn in jaxpr.eqns]
    assert "custom_vmap_call" not in str(cj.make_jaxpr(cj.vmap(f))(X, Y))
    assert "custom_vmap_call[" in str(cj.make_jaxpr(cj.grad(lambda x: f(x, W)[1]))(W))
    text = str(jaxpr)
    assert "name='f'" in text and "vmap=" in text


def test_a_call_whose_results_are_not_used_is_dropped():
    jaxpr = cj.make_jaxpr(lambda x: cj.grad(scaled())(x, 2.0))(2.0).jaxpr
    assert 2 == [eqn.primitive.name for eqn in jaxpr.eqns].count("custom_vmap_call")
    assert 1 == [eqn.primitive.name for eqn in dce(jaxpr, [True])[0].eqns].count("custom_vmap_call")


def test_it_lets_go_of_what_its_function_holds():
    class Big:
        pass

    big = Big()
    alive = weakref.ref(big)
    f = custom_vmap(lambda x, big=big: x)
    f.def_vmap(lambda size, batched, x: (x, True))
    cj.jit(cj.vmap(lambda x, big=big: custom_vmap_of(lambda x: x if big else -x)(x)))(W)
    del f, big
    gc.collect()
    assert alive() is None


def test_threads_map_at_once():
    f = scaled()
    found = {}

    def work(i):
        found[i] = np.asarray(cj.jit(cj.vmap(cj.grad(f)))(W + i, W))
    threads = [threading.Thread(target=work, args=(i,)) for i in range(6)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    for i in range(6):
        np.testing.assert_allclose(found[i], 10 * np.cos(W + i) * W)


# What is refused

def mapped(rule, fun=lambda x: x):
    f = custom_vmap(fun)
    f.def_vmap(rule)
    return lambda: cj.vmap(f)(np.ones(3))


REFUSED = {
    "no function": (lambda: custom_vmap(3), TypeError, "custom_vmap: expected a function"),
    "no function for a rule": (lambda: custom_vmap(lambda x: x).def_vmap(3), TypeError, "a rule must be a function"),
    "no rule": (lambda: custom_vmap(lambda x: x)(1.0), AttributeError, "called before it has a rule"),
    "no rule, mapped": (lambda: cj.vmap(custom_vmap(lambda x: x))(W), AttributeError, "called before it has a rule"),
    "not a pair": (mapped(lambda n, b, x: x), TypeError, "def_vmap rule of <lambda> must return a pair"),
    "three results": (mapped(lambda n, b, x: (x, True, 1)), TypeError, "must return a pair"),
    "nothing": (mapped(lambda n, b, x: None), TypeError, "must return a pair"),
    "flags of another structure": (mapped(lambda n, b, x: ((x, x), True), lambda x: (x, x)), TypeError,
                                   "doesn't say what is batched"),
    "None for a flag": (mapped(lambda n, b, x: (x, None)), TypeError, "doesn't say what is batched"),
    "a list for a tuple": (mapped(lambda n, b, x: ((x, x), [True, True]), lambda x: (x, x)), TypeError,
                           "wanted: a tuple of 2"),
    "a number for a flag": (mapped(lambda n, b, x: (x, 0)), TypeError, "must say True or False"),
    "an axis for a flag": (mapped(lambda n, b, x: (x, 1)), TypeError, "an int: 1"),
    "another structure": (mapped(lambda n, b, x: ((x, x), (True, True))), TypeError, "output structured differently"),
    "another size": (mapped(lambda n, b, x: (x[:2], True)), TypeError, "f64[2] for the output"),
    "without the axis": (mapped(lambda n, b, x: (x[0], True)), TypeError, "f64[3], as it is said to be batched"),
    "with the axis": (mapped(lambda n, b, x: (x, False)), TypeError, "wanted: f64[], as it is said to be not batched"),
    "another dtype": (mapped(lambda n, b, x: (x.astype(np.int32), True)), TypeError, "got:    i32[3] for the output"),
    "not an array": (mapped(lambda n, b, x: ("text", True)), TypeError, "the output is a str, not an array"),
    "other arguments": (mapped(lambda n, b: (1.0, True)), TypeError, "doesn't take these arguments"),
    "a closed-over value that is mapped": (lambda: cj.vmap(lambda c, x: closing(c)(x))(W, W), ValueError,
                                           "mapped along an axis of a value that it closes over"),
    "a keyword-only argument": (lambda: custom_vmap_of(lambda x, *, y: x)(1.0, y=2.0), TypeError,
                                "all arguments of <lambda> must be positional"),
    "an unknown argument": (lambda: custom_vmap_of(lambda x: x)(1.0, z=2.0), TypeError, "doesn't take these arguments"),
    "text as an argument": (lambda: cj.vmap(lambda x: custom_vmap_of(lambda x, s: x)(x, "text"))(W), TypeError,
                            "args[1] is a str"),
    "a value in Python": (lambda: cj.vmap(custom_vmap_of(lambda x: x if x > 0 else -x))(W), TypeError,
                          "concrete value"),
}


def custom_vmap_of(fun):
    f = custom_vmap(fun)
    f.def_vmap(lambda size, batched, *args: (args[0], True))
    return f


@pytest.mark.parametrize("name", REFUSED)
def test_wrong_uses_say_what_to_do(name):
    run, kind, message = REFUSED[name]
    with pytest.raises(CorejaxError) as caught:
        run()
    assert isinstance(caught.value, kind)
    text = str(caught.value)
    assert message in text
    assert "got:" in text and "wanted:" in text and "test_custom_vmap.py" in text


def test_an_error_of_the_rule_comes_through():
    with pytest.raises(ZeroDivisionError):
        mapped(lambda n, b, x: 1 / 0)()
