"""`custom_vjp`: reverse rules that users give, alone and beside a forward rule, and what is refused."""

from __future__ import annotations

import itertools
import pickle
import sys
from functools import partial

import numpy as np
import pytest

import corejax as cj
from corejax import lax
from corejax.core import Zero, eval_jaxpr, jaxpr_as_fun
from corejax.errors import CorejaxError, CorejaxTypeError, CorejaxValueError
from corejax.ir import dce, typecheck

X = np.array([0.3, -0.7, 1.1])
V = np.array([0.5, 0.25, -1.0])


def tripled():
    """sin, whose derivative is said to be three times as large."""
    @cj.custom_vjp
    def f(x):
        return lax.sin(x)

    f.defvjp(lambda x: (lax.sin(x), x), lambda x, ct: (3.0 * ct * lax.cos(x),))
    return f


def tree():
    """A function of a tree, with two results."""
    @cj.custom_vjp
    def f(tree, z):
        return {"sin": lax.sin(tree["x"]) * z, "z": tree["n"] * z}

    def fwd(tree, z):
        return f.fun(tree, z), (tree, z, "a residual that is no array", tree["x"].shape)

    def bwd(residuals, ct):
        tree, z, text, shape = residuals
        assert isinstance(text, str) and all([type(size) is int for size in shape])
        x, n = tree["x"], tree["n"]
        return {"x": ct["sin"] * lax.cos(x) * z, "n": None}, ct["sin"] * lax.sin(x) + n * ct["z"]

    f.defvjp(fwd, bwd)
    return f


# What it is for

def test_the_rule_is_what_differentiates():
    f = tripled()
    np.testing.assert_allclose(f(X), np.sin(X))
    np.testing.assert_allclose(cj.jit(f)(X), np.sin(X))
    for grad in (cj.grad(lambda x: f(x).sum()), cj.jit(cj.grad(lambda x: f(x).sum())),
                 cj.grad(cj.jit(lambda x: f(x).sum())), cj.vmap(cj.grad(f)), cj.grad(lambda x: cj.vmap(f)(x).sum()),
                 cj.grad(lambda x: cj.vmap(cj.jit(f))(x).sum()), lambda x: np.diag(cj.jacrev(f)(x)),
                 lambda x: cj.vjp(f, x)[1](np.ones(3))[0]):
        np.testing.assert_allclose(grad(X), 3 * np.cos(X), rtol=1e-12)


def test_a_gradient_that_is_clipped():
    @cj.custom_vjp
    def clipped(x, limit):
        return x

    clipped.defvjp(lambda x, limit: (x, limit), lambda limit, ct: (lax.clamp(-limit, ct, limit), None))
    assert 1.0 == cj.grad(lambda x: 5.0 * clipped(x, 1.0))(2.0)
    np.testing.assert_array_equal([1.0, 2.0, 5.0], cj.vmap(cj.grad(lambda x, m: 5.0 * clipped(x, m)))(
        X, np.array([1.0, 2.0, 9.0])))
    assert 0.0 == cj.grad(lambda m: clipped(2.0, m))(3.0)


def test_python_control_flow_on_values_works_in_the_function_and_in_its_rules():
    @cj.custom_vjp
    def f(x):
        return lax.sin(x) if x > 0 else x * x

    def fwd(x):
        return f(x), ("positive" if x > 0 else "negative")

    def bwd(sign, ct):
        return (ct * 2.0 if sign == "positive" else -ct if ct > 5 else ct * 3.0,)

    f.defvjp(fwd, bwd)
    assert 4.0 == f(-2.0)
    assert (2.0, 3.0) == (cj.grad(f)(1.0), cj.grad(f)(-1.0))
    assert -10.0 == cj.vjp(f, -1.0)[1](10.0)[0]
    with pytest.raises(TypeError, match="needs the value"):
        cj.jit(f)(1.0)


def test_fwd_runs_at_once_and_bwd_when_a_cotangent_comes():
    ran = []
    f = cj.custom_vjp(lambda x: ran.append("primal") or x * 2.0)
    f.defvjp(lambda x: ran.append("fwd") or (x * 2.0, None), lambda _, ct: ran.append("bwd") or (ct * 2.0,))
    f(1.0)
    assert ["primal"] == ran
    _, pullback = cj.vjp(f, 1.0)
    assert ["primal", "fwd"] == ran
    pullback(1.0)
    assert ["primal", "fwd", "bwd"] == ran


# In every order

TRANSFORMATIONS = {
    "jit": lambda f: cj.jit(f),
    "vmap": lambda f: lambda x: cj.vmap(lambda s: f(x * s))(np.array([1.0, 0.5])).sum(),
    "jvp": lambda f: lambda x: cj.jvp(f, (x,), (V,))[1],
    "grad": lambda f: lambda x: (cj.grad(f)(x) * V).sum(),
    "checkpoint": lambda f: cj.checkpoint(f),
}


def _programs(f):
    def direct(x):
        out = f({"x": x, "n": 3}, lax.cos(x))
        return (out["sin"] * out["z"]).sum()

    def in_scan(x):
        return lax.scan(lambda c, _: (f({"x": c, "n": 2}, x)["sin"], None), x, None, length=3)[0].sum()

    def in_cond(x):
        return lax.cond(x.sum() > 0, lambda x: f({"x": x, "n": 2}, x)["sin"], lambda x: x, x).sum()

    def mapped(x):
        return cj.vmap(lambda s: f({"x": s, "n": 2}, x[0])["z"] + f({"x": x[1], "n": 2}, s)["sin"])(x).sum()

    def unused(x):
        return f({"x": x, "n": 2}, x)["z"].sum()

    return [direct, in_scan, in_cond, mapped, unused]


def _first_forward(ordering):
    """Is forward mode applied to the function itself, which has no rule for it?"""
    return next((name for name in ordering if name in ("jvp", "grad")), None) == "jvp"


@pytest.mark.sample(4)
@pytest.mark.parametrize("which", range(5))
@pytest.mark.parametrize("depth", [1, 2])
def test_rules_that_say_the_truth_change_no_value(which, depth):
    f = tree()
    for ordering in itertools.product(TRANSFORMATIONS, repeat=depth):
        if _first_forward(ordering):
            continue
        custom, plain = _programs(f)[which], _programs(f.fun)[which]
        for name in ordering:
            custom, plain = TRANSFORMATIONS[name](custom), TRANSFORMATIONS[name](plain)
        np.testing.assert_allclose(custom(X), plain(X), rtol=1e-9, atol=1e-12, err_msg=str(ordering))


def test_second_derivatives_differentiate_fwd_and_bwd():
    f = tripled()
    for second in (cj.grad(cj.grad(f)), cj.grad(cj.jit(cj.grad(f))), cj.jit(cj.grad(cj.grad(f))), cj.hessian(f)):
        np.testing.assert_allclose(second(0.3), -3 * np.sin(0.3), rtol=1e-12)
    np.testing.assert_allclose(cj.jvp(cj.grad(f), (0.3,), (2.0,))[1], -6 * np.sin(0.3), rtol=1e-12)


def test_nested_functions():
    inner = tripled()
    outer = cj.custom_vjp(lambda x: inner(x) * x)
    outer.defvjp(lambda x: (inner(x) * x, x), lambda x, ct: (ct * inner(x),))
    np.testing.assert_allclose(cj.grad(outer)(0.3), np.sin(0.3), rtol=1e-12)
    np.testing.assert_allclose(cj.grad(cj.grad(outer))(0.3), 3 * np.cos(0.3), rtol=1e-12)
    np.testing.assert_allclose(cj.vmap(cj.grad(cj.jit(cj.grad(outer))))(X), 3 * np.cos(X), rtol=1e-12)


def test_cotangents_of_what_is_not_mapped_are_summed():
    f = tree()
    args = {"x": X, "n": 2}, 0.5
    for call in (f, cj.jit(f)):
        mapped = cj.vmap(call, in_axes=({"x": 0, "n": None}, None))
        plain = cj.vmap(f.fun, in_axes=({"x": 0, "n": None}, None))
        for which in ("sin", "z"):
            np.testing.assert_allclose(cj.grad(lambda z: (mapped(args[0], z)[which] * V).sum())(0.5),  # noqa: B023
                                       cj.grad(lambda z: (plain(args[0], z)[which] * V).sum())(0.5))  # noqa: B023


def test_each_slice_of_an_output_that_is_not_mapped_has_its_own_cotangent():
    straight_through = cj.custom_vjp(lambda x, y: y * 1.0)
    straight_through.defvjp(lambda x, y: (y * 1.0, None), lambda _, ct: (ct, ct))
    for f in (straight_through, cj.jit(straight_through)):
        grads = cj.grad(lambda x, y: (cj.vmap(f, in_axes=(0, None))(x, y) * V).sum(), argnums=(0, 1))(X, 5.0)  # noqa: B023
        np.testing.assert_array_equal(V, grads[0])
        np.testing.assert_array_equal(V.sum(), grads[1])


def test_linear_transpose_goes_through_the_function():
    f = cj.custom_vjp(lambda x: 3.0 * x)
    f.defvjp(lambda x: (3.0 * x, None), lambda _, ct: (100.0 * ct,))
    assert 6.0 == cj.linear_transpose(f, 1.0)(2.0)[0]
    np.testing.assert_array_equal(3 * X, cj.linear_transpose(cj.vmap(f), X)(X)[0])


# Rules

def test_none_stands_for_zeros_of_a_leaf_or_of_an_argument():
    f = cj.custom_vjp(lambda tree, y: tree["a"] * tree["b"] * y)
    f.defvjp(lambda tree, y: (f(tree, y), None), lambda _, ct: ({"a": ct, "b": None}, None))
    for transform in (lambda f: f, cj.jit):
        grads = transform(cj.grad(f, argnums=(0, 1)))({"a": 1.0, "b": 2.0}, 3.0)
        assert ({"a": 1.0, "b": 0.0}, 0.0) == grads


@pytest.mark.parametrize("residual, bwd", [
    (None, lambda kept, ct: (1.0,)), (None, lambda kept, ct: (1,)), (None, lambda kept, ct: (lax.full((), 1.0),)),
    (1.0, lambda kept, ct: (kept,)), (2.0, lambda kept, ct: (kept * ct - 1.0,)),
    (lax.full((), 1.0), lambda kept, ct: (kept,))])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_weak_cotangents_are_taken_in_the_dtype_of_the_argument(residual, bwd, dtype):
    f = cj.custom_vjp(lax.sin)
    f.defvjp(lambda x: (lax.sin(x), residual), bwd)
    x = dtype(0.5)
    for transformed in (cj.grad(f), cj.grad(cj.jit(f)), cj.jit(cj.grad(f)), cj.grad(cj.checkpoint(f)),
                        lambda x: cj.vmap(cj.grad(f))(np.array([x]))[0],
                        cj.grad(lambda x: lax.fori_loop(0, 1, lambda i, c: f(c), x))):
        slope = transformed(x)
        assert (1.0, dtype) == (float(slope), slope.dtype)


def test_newtons_method_by_implicit_differentiation():
    @cj.custom_vjp
    def root(a):
        return lax.while_loop(lambda x: lax.abs(x * x - a) > 1e-12, lambda x: x - (x * x - a) / (2 * x), 1.0)

    root.defvjp(lambda a: (root(a), root(a)), lambda x, ct: (ct / (2 * x),))
    for transformed in (cj.grad(root), cj.jit(cj.grad(root)), cj.grad(cj.jit(root))):
        assert np.isclose(0.25, float(transformed(4.0)))
    assert np.isclose(-1 / 32, float(cj.grad(cj.grad(root))(4.0)))


def test_integers_have_no_cotangent():
    f = cj.custom_vjp(lambda x, n: (x * n, n + 1))
    f.defvjp(lambda x, n: (f(x, n), n), lambda n, ct: (ct[0] * n, np.zeros((), cj.float0)))
    for transform in (lambda f: f, cj.jit):
        assert 3.0 == transform(cj.grad(lambda x: f(x, 3)[0]))(2.0)
    only_integers = cj.custom_vjp(lambda x: (x > 0).sum())
    only_integers.defvjp(lambda x: (only_integers(x), None), lambda _, ct: (None,))
    np.testing.assert_array_equal(np.ones(3), cj.grad(lambda x: (x + only_integers(x)).sum())(X))


def test_arguments_that_are_no_data():
    @partial(cj.custom_vjp, nondiff_argnums=(0, 2))
    def apply(fun, x, n=2):
        return fun(x) * n

    apply.defvjp(lambda fun, x, n: (fun(x) * n, x), lambda fun, n, x, ct: (7.0 * n * ct * fun(x),))
    np.testing.assert_allclose(cj.grad(lambda x: apply(lax.cos, x))(0.0), 14.0)
    np.testing.assert_allclose(cj.jit(cj.grad(lambda x: apply(lax.cos, x, n=3)))(0.0), 21.0)
    np.testing.assert_allclose(cj.vmap(cj.grad(lambda x: apply(lax.sin, x)))(X), 14 * np.sin(X))


def test_an_optimization_that_jax_offers_changes_nothing():
    f = cj.custom_vjp(lambda x: 2.0 * x)
    f.defvjp(lambda x: (2.0 * x, None), lambda _, ct: (3.0 * ct,), optimize_remat=True)
    assert 3.0 == cj.grad(f)(1.0) == cj.grad(cj.checkpoint(f))(1.0)


def test_symbolic_zeros_are_shown_to_rules_that_ask_for_them():
    seen = []
    f = cj.custom_vjp(lambda x, y: (x * y, y))

    def fwd(x, y):
        seen.append((x.perturbed, y.perturbed))
        return (x.value * y.value, y.value), y.value

    def bwd(y, ct):
        seen.append([type(c) is Zero for c in ct])
        return ct[0] * y, None

    f.defvjp(fwd, bwd, symbolic_zeros=True)
    for grad in (cj.grad(lambda x: f(x, V)[0].sum()), cj.jit(cj.grad(lambda x: f(x, V)[0].sum())),
                 cj.grad(cj.jit(lambda x: f(x, V)[0].sum()))):
        np.testing.assert_allclose(grad(X), V)
    np.testing.assert_allclose(cj.vmap(cj.grad(lambda x: f(x, 2.0)[0]))(X), np.full(3, 2.0))
    assert [(True, False), [False, True]] * 4 == seen


def test_forward_mode_is_refused_with_the_way_out():
    f = tripled()
    _, f_lin = cj.linearize(f, 1.0)
    for use in (lambda: cj.jvp(f, (1.0,), (1.0,)), lambda: f_lin(1.0), lambda: cj.jacfwd(f)(1.0),
                lambda: cj.jvp(cj.jit(f), (1.0,), (1.0,)), lambda: cj.jit(lambda x: cj.jvp(f, (x,), (x,)))(1.0)):
        with pytest.raises(TypeError, match=r"f has no rule for forward mode(.|\n)*grad, vjp, jacrev(.|\n)*f\.defjvp"):
            use()


# Both kinds of rules

def both(first):
    """sin, with 10 times its derivative in forward mode and 100 times in reverse mode."""
    f = first(lambda x: lax.sin(x))
    f.defjvp(lambda p, t: (lax.sin(p[0]), 10.0 * t[0] * lax.cos(p[0])))
    f.defvjp(lambda x: (lax.sin(x), x), lambda x, ct: (100.0 * ct * lax.cos(x),))
    return f


@pytest.mark.parametrize("first", [cj.custom_jvp, cj.custom_vjp])
def test_with_both_forward_mode_uses_the_one_and_reverse_mode_the_other(first):
    f = both(first)

    def loop(x):
        return lax.scan(lambda c, _: (f(c), None), x, None, length=2)[0]

    forward = {"jvp": f, "of jit": cj.jit(f), "of vmap": lambda x: cj.vmap(f)(x * np.ones(2))[0],
               "of vmap of jit": lambda x: cj.vmap(cj.jit(f))(x * np.ones(2))[0], "of checkpoint": cj.checkpoint(f)}
    for name, g in forward.items():
        np.testing.assert_allclose(cj.jvp(g, (0.3,), (1.0,))[1], 10 * np.cos(0.3), err_msg=name)
        np.testing.assert_allclose(cj.jit(lambda x: cj.jvp(g, (x,), (1.0,))[1])(0.3), 10 * np.cos(0.3))  # noqa: B023
        np.testing.assert_allclose(cj.vmap(lambda x: cj.jvp(g, (x,), (1.0,))[1])(X), 10 * np.cos(X))  # noqa: B023
        np.testing.assert_allclose(cj.grad(g)(0.3), 100 * np.cos(0.3), err_msg=name)
        np.testing.assert_allclose(cj.jit(cj.grad(g))(0.3), 100 * np.cos(0.3), err_msg=name)
        np.testing.assert_allclose(cj.vmap(cj.grad(g))(X), 100 * np.cos(X), err_msg=name)
    assert 100.0 == cj.jvp(loop, (0.0,), (1.0,))[1]
    assert 10000.0 == cj.grad(loop)(0.0)
    np.testing.assert_allclose(cj.linearize(f, 0.3)[1](1.0), 10 * np.cos(0.3))
    np.testing.assert_allclose(cj.vmap(lambda x: cj.linearize(cj.jit(f), x)[1](x))(X), 10 * np.cos(X) * X)


@pytest.mark.parametrize("first", [cj.custom_jvp, cj.custom_vjp])
def test_with_both_second_derivatives_differentiate_the_rule_that_was_used_first(first):
    f = both(first)
    for wrap in (lambda f: f, cj.jit):
        for second in (cj.jacfwd(cj.grad(wrap(f))), cj.jacrev(cj.grad(wrap(f)))):
            np.testing.assert_allclose(second(0.3), -100 * np.sin(0.3), rtol=1e-12)
        for second in (cj.jacfwd(cj.jacfwd(wrap(f))), cj.jacrev(cj.jacfwd(wrap(f)))):
            np.testing.assert_allclose(second(0.3), -10 * np.sin(0.3), rtol=1e-12)


# The equations

def test_what_the_gradient_leaves_is_fwd_and_bwd():
    f = tripled()
    closed = cj.make_jaxpr(cj.grad(lambda x: f(x).sum()))(X)
    found = [eqn.primitive.name for eqn in closed.eqns]
    assert 1 == found.count("sin") == found.count("cos")
    assert not {"custom_call", "custom_pullback"} & set(found)
    typecheck(closed.jaxpr)


def test_dead_results_are_removed_and_the_rules_still_fit():
    f = tree()
    closed = cj.make_jaxpr(lambda x: f({"x": x, "n": 3}, x)["z"])(X)
    smaller, _ = dce(closed.jaxpr, [True])
    (call,) = smaller.eqns
    assert "sin" not in [eqn.primitive.name for eqn in call.params["jaxpr"].eqns]
    np.testing.assert_allclose(cj.grad(lambda x: eval_jaxpr(smaller, closed.consts, x)[0].sum())(X), np.full(3, 3.0))


def test_the_pullback_prints_its_name():
    f = tripled()
    text = str(cj.make_jaxpr(lambda x: cj.linearize(cj.jit(f), x)[0])(X)) + str(
        cj.make_jaxpr(lambda x: cj.jvp(cj.jit(f), (x,), (x,)))(X))
    assert "custom_pullback[" in text and "name='f'" in text and "<opaque>" in text


def test_new_rules_are_used_from_then_on():
    f = tripled()
    assert 3.0 == cj.jit(cj.grad(lambda x: f(x)))(0.0)
    f.defvjp(lambda x: (lax.sin(x), None), lambda _, ct: (7.0 * ct,))
    assert 7.0 == cj.grad(f)(0.0)
    assert 7.0 == cj.jit(cj.grad(lambda x: f(x)))(0.0)


# Closed-over values

def test_closed_over_values_may_be_mapped_and_not_differentiated():
    def outer(y):
        def f(x):
            return x * y
        custom = cj.custom_vjp(f)
        custom.defvjp(lambda x: (custom(x), None), lambda _, ct: (ct * 5.0,))
        return custom(2.0)

    np.testing.assert_allclose(cj.vmap(outer)(X), 2 * X)
    np.testing.assert_allclose(cj.jit(cj.vmap(outer))(X), 2 * X)
    for transform in (cj.grad, lambda f: cj.grad(cj.jit(f)), lambda f: cj.jit(cj.grad(f))):
        with pytest.raises(CorejaxError, match="f is differentiated with respect to a value that it closes over"):
            transform(outer)(1.0)


def test_a_rule_may_close_over_what_is_transformed():
    def outer(y):
        f = cj.custom_vjp(lambda x: x * 2.0)
        f.defvjp(lambda x: (x * 2.0, None), lambda _, ct: (ct * y,))
        return f(y)

    for transform in (lambda f: f, cj.jit):
        assert 3.0 == cj.grad(transform(outer))(3.0) == cj.jit(cj.grad(outer))(3.0)
        assert 1.0 == cj.grad(cj.grad(transform(outer)))(3.0)
        np.testing.assert_allclose(cj.vmap(cj.grad(transform(outer)))(X), X)


# Wrong uses

def custom(fwd, bwd):
    f = cj.custom_vjp(lambda x, tree: x * tree["a"])
    f.defvjp(fwd, bwd)
    return f


def good(x, tree):
    return x * tree["a"], None


@pytest.mark.parametrize(("fwd", "bwd", "message"), [
    (lambda x, t: x, None, "the fwd rule of <lambda> must return a pair"),
    (lambda x: x, None, "the fwd rule of <lambda>: the function doesn't take these arguments"),
    (lambda x, t: ("no", None), None, "the fwd rule of <lambda>: the output is a str"),
    (good, lambda r: r, "the bwd rule of <lambda>: the function doesn't take these arguments"),
    (good, lambda r, ct: ct, r"must return a tuple with one cotangent for each argument(.|\n)*got: +f64"),
    (good, lambda r, ct: (ct,), r"must return a tuple with one cotangent for each(.|\n)*got: +a tuple of 1(.|\n)*of 2"),
    (good, lambda r, ct: (ct, ct), r"a cotangent structured differently from args\[1\](.|\n)*got: +an array"),
    (good, lambda r, ct: (ct, {"b": ct}), r"a cotangent structured differently from args\[1\](.|\n)*the keys 'b'"),
    (good, lambda r, ct: (X, None), r"returns a cotangent of a different type than its argument(.|\n)*f64\[3\] for args"
                                    r"\[0\](.|\n)*wanted: f64\[\] for args\[0\]"),
    (good, lambda r, ct: (ct, {"a": np.float32(0)}), r"f32\[\] for args\[1\]\['a'\](.|\n)*wanted: f64\[\] for args"),
    (good, lambda r, ct: (ct, {"a": "no"}), r"a str for args\[1\]\['a'\]"),
])
def test_wrong_rules_are_refused_with_their_function_and_the_leaf(fwd, bwd, message):
    f = custom(fwd, bwd or (lambda r, ct: (None, None)))
    for transform in (cj.grad, lambda f: cj.jit(cj.grad(f))):
        with pytest.raises(CorejaxError, match=message) as caught:
            transform(lambda x: f(x, {"a": x}))(1.0)
        assert __file__ in caught.value.where


def test_a_fwd_rule_whose_output_is_not_that_of_the_program_is_refused():
    f = custom(lambda x, t: ((x,), None), lambda r, ct: (None, None))
    with pytest.raises(TypeError, match="returns an output structured differently from <lambda>"):
        cj.jit(cj.grad(lambda x: f(x, {"a": x})))(1.0)
    f = custom(lambda x, t: (X, None), lambda r, ct: (None, None))
    with pytest.raises(TypeError, match=r"returns an output of a different type than <lambda>(.|\n)*f64\[3\] for"):
        cj.jit(cj.grad(lambda x: f(x, {"a": x})))(1.0)


@pytest.mark.parametrize(("call", "kind", "message"), [
    (lambda: cj.custom_vjp(lambda x: x)(1.0), AttributeError, r"<lambda> is called before it has a rule(.|\n)*defvjp"),
    (lambda: cj.custom_vjp(lambda x: x).defvjp(print, 3), TypeError, "a rule must be a function"),
    (lambda: cj.custom_vjp("f"), TypeError, "custom_vjp: expected a function"),
    (lambda: cj.custom_vjp(lambda x: x, nondiff_argnums=(0.5,)), TypeError, "nondiff_argnums must be positions"),
    (lambda: tripled()(1.0, 2.0), TypeError, "f doesn't take these arguments"),
])
def test_wrong_uses_are_refused_by_name(call, kind, message):
    with pytest.raises(CorejaxError, match=message) as caught:
        call()
    assert isinstance(caught.value, kind)
    assert __file__ in caught.value.where


# Beside jax

def test_parity_with_jax():
    jax = pytest.importorskip("jax")

    def programs(m, sin, cos):
        f = m.custom_vjp(lambda x, y: (sin(x) * y, y * y))
        f.defvjp(lambda x, y: ((sin(x) * y, y * y), (x, y)),
                 lambda r, ct: (3.0 * ct[0] * cos(r[0]) * r[1], ct[0] * sin(r[0]) + 5.0 * ct[1]))
        g = partial(m.custom_vjp, nondiff_argnums=(0,))(lambda fun, x: fun(x))
        g.defvjp(lambda fun, x: (fun(x), x), lambda fun, x, ct: (ct * fun(x),))
        return [lambda x: (f(x, cos(x))[0] * f(x, x)[1]).sum(), lambda x: g(sin, x).sum(),
                lambda x: m.lax.scan(lambda c, _: (f(c, x)[0], None), x, None, length=3)[0].sum(),
                lambda x: m.vmap(lambda s: f(s, x[0])[0])(x).sum()]

    ours, theirs = programs(cj, lax.sin, lax.cos), programs(jax, jax.lax.sin, jax.lax.cos)
    for i, (a, b) in enumerate(zip(ours, theirs, strict=True)):
        for transform in (lambda m, f: m.grad(f), lambda m, f: lambda x: m.vmap(m.grad(f))(np.stack([X, V]) * x)):
            np.testing.assert_allclose(transform(cj, a)(X), np.asarray(transform(jax, b)(X)), rtol=2e-5, atol=2e-6,
                                       err_msg=str(i))


@cj.custom_vjp
def decorated(x):
    return lax.sin(x)


decorated.defvjp(lambda x: (decorated(x), x), lambda x, ct: (2.0 * ct,))


@cj.jit
@cj.custom_vjp
def wrapped(x):
    return lax.sin(x)


wrapped.__wrapped__.defvjp(lambda x: (wrapped(x), x), lambda x, ct: (3.0 * ct,))


@pytest.mark.parametrize("f, factor", [(decorated, 2.0), (wrapped, 3.0)])
@pytest.mark.parametrize("change", [lambda f: f, cj.vmap, cj.jit])
def test_what_comes_of_a_decorated_function_can_be_pickled(f, factor, change):
    x = np.ones(2)
    pull = pickle.loads(pickle.dumps(cj.vjp(change(f), x)[1]))
    np.testing.assert_array_equal(factor * x, pull(x)[0])
    program = cj.make_jaxpr(lambda x: lax.scan(lambda c, t: (f(t), c), x[0], x))(x)
    again = jaxpr_as_fun(pickle.loads(pickle.dumps(program)))
    np.testing.assert_array_equal(factor, cj.grad(lambda x: again(x)[0])(x)[1])


def test_a_function_with_rules_that_its_name_does_not_lead_to_is_told_so_by_pickle():
    def local(x):
        return lax.sin(x)
    local = cj.custom_vjp(local)
    local.defvjp(lambda x: (local(x), x), lambda x, ct: (ct,))
    with pytest.raises(CorejaxTypeError, match="can't be pickled(.|\n)*at the top of a module"):
        pickle.dumps(cj.vjp(local, 1.0)[1])


def test_a_pickle_of_a_function_that_lost_its_rules_is_refused_by_name(monkeypatch):
    data = pickle.dumps(cj.vjp(decorated, 1.0)[1])
    monkeypatch.setattr(sys.modules[__name__], "decorated", lax.sin)
    with pytest.raises(CorejaxValueError, match="decorated in .* has no custom derivatives, but had some"):
        pickle.loads(data)


def test_a_tangent_that_a_rule_around_it_made_of_a_number():
    split = cj.custom_jvp(lambda x: (x, x * x))
    split.defjvp(lambda primals, tangents: (split(*primals), (tangents[0] * 3.0, 0.0)))
    joined = cj.custom_vjp(lambda x, y: x * y)
    joined.defvjp(lambda x, y: (joined(x, y), (x, y)), lambda xy, ct: (ct * xy[1] * 5.0, ct * xy[0]))
    f = cj.jit(lambda x: joined(*split(x)))
    np.testing.assert_allclose(3.0 * 5.0 * 4.0, cj.grad(f)(2.0))
    np.testing.assert_allclose(3.0 * 5.0 * 4.0, cj.jit(cj.grad(f))(2.0))
    np.testing.assert_allclose([60.0, 135.0], cj.vmap(cj.grad(f))(np.array([2.0, 3.0])))


def test_whatever_array_a_rule_returns_for_an_integer_has_no_effect():
    mask, steps = np.array([True, False]), np.array([1, 2])
    for of_mask, of_steps in ((mask, steps), (0.0 * mask, 0), (np.zeros(2, cj.float0), None)):
        f = cj.custom_vjp(lambda x, mask, n: (x * mask).sum() * 2.0)
        f.defvjp(lambda x, mask, n, f=f: (f(x, mask, n), mask),
                 lambda mask, ct, a=of_mask, b=of_steps: (2.0 * ct * mask, a, b if b is None else b * np.ones((), int)))
        n = steps if np.ndim(of_steps) else 3
        np.testing.assert_array_equal([2.0, 0.0], cj.grad(f)(np.ones(2), mask, n))
        np.testing.assert_array_equal([2.0, 0.0], cj.jit(cj.grad(f))(np.ones(2), mask, n))
    with pytest.raises(CorejaxTypeError, match="returns a cotangent of a different type than its argument"):
        g = cj.custom_vjp(lambda x, n: x * 1.0)
        g.defvjp(lambda x, n: (g(x, n), None), lambda _, ct: (ct, np.zeros(3, int)))
        cj.grad(g)(1.0, 2)
