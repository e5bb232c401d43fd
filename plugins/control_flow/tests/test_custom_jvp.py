"""`custom_jvp`: forward rules that users give, under every transformation, and what is refused."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

import corejax as cj
from corejax import lax
from corejax.core import Jaxpr, Zero, eval_jaxpr, subjaxprs
from corejax.errors import CorejaxError
from corejax.ir import count_eqns, dce, jaxpr_text, parse_jaxpr, typecheck
from corejax.xla.cache.compile import _executables

X = np.array([0.3, -0.7, 1.1])
V = np.array([0.5, 0.25, -1.0])


def tripled():
    """sin, whose derivative is said to be three times as large: what rules do shows in the results."""
    @cj.custom_jvp
    def f(x):
        return lax.sin(x)

    @f.defjvp
    def rule(primals, tangents):
        (x,), (x_dot,) = primals, tangents
        return f(x), 3.0 * lax.cos(x) * x_dot

    return f


def pair():
    """A function of a tree, with two results."""
    @cj.custom_jvp
    def f(tree, z):
        return {"sin": lax.sin(tree["x"]) * z, "z": tree["n"] * z}

    @f.defjvp
    def rule(primals, tangents):
        (tree, z), (tree_dot, z_dot) = primals, tangents
        x, n = tree["x"], tree["n"]
        return f(tree, z), {"sin": lax.cos(x) * z * tree_dot["x"] + lax.sin(x) * z_dot, "z": n * z_dot}

    return f


def names(jaxpr: Jaxpr):
    found = []
    for eqn in jaxpr.eqns:
        found.append(eqn.primitive.name)
        for inner in subjaxprs(eqn.params):
            found += names(inner)
    return found


# What it is for

def test_the_rule_is_what_differentiates():
    f = tripled()
    np.testing.assert_allclose(f(X), np.sin(X))
    for grad in (cj.grad(lambda x: f(x).sum()), cj.jit(cj.grad(lambda x: f(x).sum())),
                 cj.grad(cj.jit(lambda x: f(x).sum())), cj.vmap(cj.grad(f)), cj.grad(lambda x: cj.vmap(f)(x).sum()),
                 cj.grad(lambda x: cj.vmap(cj.jit(f))(x).sum()), lambda x: cj.jvp(f, (x,), (np.ones(3),))[1],
                 lambda x: cj.linearize(f, x)[1](np.ones(3)), lambda x: np.diag(cj.jacfwd(f)(x))):
        np.testing.assert_allclose(grad(X), 3 * np.cos(X), rtol=1e-12)


def test_a_stable_derivative_where_the_plain_one_overflows():
    @cj.custom_jvp
    def log1pexp(x):
        return lax.log(1.0 + lax.exp(x))

    plain = log1pexp.fun

    @log1pexp.defjvp
    def rule(primals, tangents):
        (x,), (x_dot,) = primals, tangents
        return log1pexp(x), (1.0 - 1.0 / (1.0 + lax.exp(x))) * x_dot

    assert np.isnan(cj.grad(plain)(1000.0))
    assert 1.0 == cj.grad(log1pexp)(1000.0)
    points = np.array([-2.0, 0.5, 3.0])
    np.testing.assert_allclose(cj.vmap(cj.grad(log1pexp))(points), cj.vmap(cj.grad(plain))(points), rtol=1e-12)
    np.testing.assert_allclose(cj.vmap(cj.grad(cj.grad(log1pexp)))(points), cj.vmap(cj.grad(cj.grad(plain)))(points),
                               rtol=1e-9)


def test_python_control_flow_on_values_works_in_the_function_and_in_its_rule():
    @cj.custom_jvp
    def f(x):
        return lax.sin(x) if x > 0 else x * x

    @f.defjvp
    def rule(primals, tangents):
        (x,), (x_dot,) = primals, tangents
        return f(x), (2.0 * x_dot if x > 0 else 3.0 * x_dot)

    assert 4.0 == f(-2.0)
    assert (2.0, 3.0) == (cj.grad(f)(1.0), cj.grad(f)(-1.0))
    assert 3.0 == cj.jvp(f, (-1.0,), (1.0,))[1]
    assert 3.0 == cj.jvp(cj.vmap(lambda y: f(-1.0) * y), (np.ones(2),), (np.full(2, 3.0),))[1][0]
    with pytest.raises(TypeError, match="needs the value"):
        cj.jit(f)(1.0)


def test_sizes_may_depend_on_values_where_nothing_is_staged():
    @cj.custom_jvp
    def first(x):
        return x[: int(x[0])]

    first.defjvp(lambda primals, tangents: (first(*primals), 2.0 * tangents[0][: int(primals[0][0])]))
    np.testing.assert_array_equal([2.0, 2.0, 0.0], cj.grad(lambda x: first(x).sum())(np.array([2.0, 5.0, 5.0])))
    np.testing.assert_array_equal([2.0, 0.0, 0.0], cj.grad(lambda x: first(x).sum())(np.array([1.0, 5.0, 5.0])))


# Under every transformation

TRANSFORMATIONS = {
    "jit": lambda f: cj.jit(f),
    "vmap": lambda f: lambda x: cj.vmap(lambda s: f(x * s))(np.array([1.0, 0.5])).sum(),
    "jvp": lambda f: lambda x: cj.jvp(f, (x,), (V,))[1],
    "linearize": lambda f: lambda x: cj.linearize(f, x)[1](V),
    "grad": lambda f: lambda x: (cj.grad(f)(x) * V).sum(),
    "checkpoint": lambda f: cj.checkpoint(f),
}


def _programs(f):
    """Uses of a function of a tree, in other primitives that carry programs, and mapped with constants."""
    def direct(x):
        out = f({"x": x, "n": 3}, lax.cos(x))
        return (out["sin"] * out["z"]).sum()

    def in_scan(x):
        return lax.scan(lambda c, _: (f({"x": c, "n": 2}, x)["sin"], None), x, None, length=3)[0].sum()

    def in_cond(x):
        return lax.cond(x.sum() > 0, lambda x: f({"x": x, "n": 2}, x)["sin"], lambda x: x, x).sum()

    def mapped(x):
        return cj.vmap(lambda s: f({"x": s, "n": 2}, x[0])["z"] + f({"x": x[1], "n": 2}, s)["sin"])(x).sum()

    def nested(x):
        g = cj.custom_jvp(lambda x: f({"x": x, "n": 1}, x)["sin"])
        g.defjvp(lambda p, t: cj.jvp(g.fun, p, t))
        return g(x).sum()

    return [direct, in_scan, in_cond, mapped, nested]


@pytest.mark.parametrize("which", range(5))
@pytest.mark.parametrize("name", TRANSFORMATIONS)
def test_a_rule_that_says_the_truth_changes_no_value(which, name):
    f, transform = pair(), TRANSFORMATIONS[name]
    custom, plain = _programs(f)[which], _programs(f.fun)[which]
    np.testing.assert_allclose(transform(custom)(X), transform(plain)(X), rtol=1e-9, atol=1e-12)


def test_second_derivatives_differentiate_the_rule():
    f = tripled()
    for second in (cj.grad(cj.grad(f)), cj.grad(cj.jit(cj.grad(f))), cj.hessian(f), cj.jacrev(cj.jacfwd(f))):
        np.testing.assert_allclose(second(0.3), -3 * np.sin(0.3), rtol=1e-12)


def test_second_derivatives_of_a_loop_are_those_of_its_steps():
    f = cj.custom_jvp(lambda x, y: lax.sin(x) * y)
    f.defjvp(lambda p, t: (f(*p), 3.0 * lax.cos(p[0]) * p[1] * t[0] + lax.sin(p[0]) * t[1]))
    loop = lambda x: lax.scan(lambda c, _: (f(c, x), None), x, None, length=2)[0].sum()
    unrolled = lambda x: f(f(x, x), x).sum()
    for second in (cj.hessian, lambda f: cj.jacrev(cj.jacrev(f)), lambda f: cj.jacrev(cj.jacfwd(f))):
        np.testing.assert_allclose(second(loop)(X), second(unrolled)(X), rtol=1e-12)


def test_a_tangent_may_be_batched_where_the_output_is_not():
    @cj.custom_jvp
    def straight_through(x, y):
        return y * 1.0

    straight_through.defjvp(lambda p, t: (p[1] * 1.0, t[0]))
    for f in (straight_through, cj.jit(straight_through)):
        mapped = cj.vmap(f, in_axes=(0, None))
        out, dot = cj.jvp(lambda x, g=mapped: g(x, 5.0), (X,), (V,))
        np.testing.assert_array_equal(np.full(3, 5.0), out)
        np.testing.assert_array_equal(V, dot)
        np.testing.assert_array_equal(V, cj.grad(lambda x, g=mapped: (g(x, 5.0) * V).sum())(X))


def test_linear_transpose_goes_through_the_function():
    f = cj.custom_jvp(lambda x: 3.0 * x)
    f.defjvp(lambda p, t: (f(*p), 100.0 * t[0]))
    assert 6.0 == cj.linear_transpose(f, 1.0)(2.0)[0]
    assert 6.0 == cj.jit(lambda ct: cj.linear_transpose(f, 1.0)(ct)[0])(2.0)
    np.testing.assert_array_equal(3 * X, cj.linear_transpose(cj.vmap(f), X)(X)[0])


def test_what_waits_on_a_tape_may_be_applied_where_a_program_is_staged():
    f = tripled()
    outer = cj.custom_jvp(lambda x: x)
    outer.defjvp(lambda p, t: (p[0], f(t[0])))  # not linear, yet it shows that the function itself is applied
    _, f_lin = cj.linearize(outer, X)
    np.testing.assert_allclose(f_lin(V), np.sin(V))
    np.testing.assert_allclose(cj.jit(f_lin)(V), np.sin(V))
    np.testing.assert_allclose(cj.jvp(f_lin, (V,), (X,))[1], 3 * np.cos(V) * X)


# Ways to give rules, and arguments

def test_one_rule_for_each_argument():
    @cj.custom_jvp
    def f(x, y, z):
        return {"a": x["v"] * y, "b": z * 1.0}

    f.defjvps(lambda t, ans, x, y, z: {"a": 2.0 * t["v"] * y, "b": ans["b"] * 0.0},
              lambda t, ans, x, y, z: {"a": 3.0 * t * x["v"], "b": ans["b"] * 0.0}, None)
    grads = cj.grad(lambda *args: f(*args)["a"].sum(), argnums=(0, 1, 2))({"v": X}, V, X)
    np.testing.assert_allclose(grads[0]["v"], 2 * V)
    np.testing.assert_allclose(grads[1], 3 * X)
    np.testing.assert_array_equal(np.zeros(3), grads[2])
    assert ["mul"] == [n for n in names(cj.make_jaxpr(lambda y: cj.jvp(
        lambda y: f({"v": X}, y, X)["a"], (y,), (V,))[1])(V).jaxpr) if n == "mul"][:1]


def test_arguments_that_are_no_data():
    @partial(cj.custom_jvp, nondiff_argnums=(0,))
    def apply(fun, x, n=2):
        return fun(x) * n

    apply.defjvp(lambda fun, p, t: (apply(fun, *p), 7.0 * fun(p[0]) * t[0]))
    assert 7.0 == cj.grad(lambda x: apply(lax.cos, x))(0.0)
    np.testing.assert_allclose(apply(lax.cos, X, n=3), 3 * np.cos(X))

    @cj.custom_jvp(nondiff_argnames="mode")
    def named(x, mode="plain"):
        return x if mode == "plain" else x * x

    named.defjvp(lambda mode, p, t: (named(*p, mode), (1.0 if mode == "plain" else 10.0) * t[0]))
    assert (1.0, 10.0) == (cj.grad(named)(2.0), cj.grad(lambda x: named(x, mode="square"))(2.0))
    assert 10.0 == cj.jit(cj.grad(lambda x: named(mode="square", x=x)))(2.0)


def test_values_that_are_no_data_may_be_arrays():
    f = cj.custom_jvp(lambda w, x: w * x, nondiff_argnums=0)
    f.defjvp(lambda w, p, t: (w * p[0], w * t[0]))
    for w in (V, cj.device_put(V), [1.0, 2.0]):
        scale = w if not isinstance(w, list) else 1.0
        np.testing.assert_allclose(cj.grad(lambda x, s=scale: f(s, x).sum())(X), scale * np.ones(3))
    np.testing.assert_allclose(cj.vmap(lambda w: f(w, 2.0))(X), 2 * X)
    np.testing.assert_allclose(cj.jit(lambda w, x: f(w, x))(X, V), X * V)


def test_methods():
    class Model:
        factor = 5.0

        @partial(cj.custom_jvp, nondiff_argnums=(0,))
        def scaled(self, x):
            return x * 2.0

        @scaled.defjvp
        def rule(self, primals, tangents):
            return primals[0] * 2.0, self.factor * tangents[0]

    assert 5.0 == cj.grad(Model().scaled)(1.0)


def test_it_has_the_name_and_the_documentation_of_the_function():
    @cj.custom_jvp
    def named(x):
        """Doc."""
        return x

    assert ("named", "Doc.", "<custom_jvp named>") == (named.__name__, named.__doc__, repr(named))


def test_integers_have_tangents_of_float0():
    seen = []

    @cj.custom_jvp
    def f(x, n):
        return x * n, n + 1

    @f.defjvp
    def rule(primals, tangents):
        seen.append(tangents[1].dtype)
        return f(*primals), (tangents[0] * primals[1], np.zeros((), cj.float0))

    for grad in (cj.grad(lambda x: f(x, 3)[0]), cj.jit(cj.grad(lambda x: f(x, 3)[0])),
                 lambda x: cj.jvp(lambda x: f(x, 3), (x,), (1.0,))[1][0]):
        assert 3.0 == grad(2.0)
    assert {cj.float0} == {*seen}


def test_symbolic_zeros_are_shown_to_rules_that_ask_for_them():
    seen = []

    @cj.custom_jvp
    def f(x, y):
        return x * y

    def rule(primals, tangents):
        seen.append([type(t) is Zero for t in tangents])
        assert [p.shape for p in primals] == [t.shape for t in tangents]
        (x, y), (x_dot, _) = primals, tangents
        return x * y, x_dot * y

    f.defjvp(rule, symbolic_zeros=True)
    np.testing.assert_allclose(cj.grad(lambda x: f(x, V).sum())(X), V)
    np.testing.assert_allclose(cj.jit(cj.grad(lambda x: f(x, V).sum()))(X), V)
    np.testing.assert_allclose(cj.vmap(cj.grad(lambda x: f(x, 2.0)))(X), np.full(3, 2.0))
    np.testing.assert_allclose(cj.grad(lambda x: cj.vmap(f, in_axes=(0, None))(x, 2.0).sum())(X), np.full(3, 2.0))
    assert [[False, True]] * 4 == seen


# Values that functions close over

def test_closed_over_values_are_operands_of_the_program():
    def outer(y):
        f = cj.custom_jvp(lambda x: x * y)
        f.defjvp(lambda p, t: (f(*p), 5.0 * t[0]))
        return f(2.0 * y.sum()) if y.shape else f(2.0)

    np.testing.assert_allclose(cj.vmap(outer)(X), 2 * X)
    np.testing.assert_allclose(cj.vmap(cj.jit(outer))(X), 2 * X)
    closed = cj.make_jaxpr(outer)(1.5)
    (call,) = closed.eqns
    assert 2 == len(call.invars) == len(call.params["jaxpr"].invars)
    typecheck(closed.jaxpr)
    table = cj.device_put(V)
    g = cj.custom_jvp(lambda x: x * table)
    g.defjvp(lambda p, t: (g(*p), 5.0 * t[0]))
    np.testing.assert_allclose(cj.jit(cj.grad(lambda x: g(x).sum()))(X), np.full(3, 5.0))


@pytest.mark.parametrize("transform", [cj.grad, lambda f: cj.jit(cj.grad(f)), lambda f: cj.grad(cj.jit(f))])
def test_differentiating_a_closed_over_value_is_refused(transform):
    def outer(y):
        def f(x):
            return x * y
        custom = cj.custom_jvp(f)
        custom.defjvp(lambda p, t: (custom(*p), t[0]))
        return custom(2.0)

    with pytest.raises(CorejaxError, match="f is differentiated with respect to a value that it closes over") as caught:
        transform(outer)(1.0)
    assert __file__ in caught.value.where


@pytest.mark.parametrize("transform", [cj.grad, lambda f: cj.jit(cj.grad(f)), lambda f: cj.grad(cj.jit(f))])
def test_a_rule_may_close_over_what_is_differentiated(transform):
    def outer(y):
        f = cj.custom_jvp(lambda x: x * 2.0)
        f.defjvp(lambda p, t: (f(*p), t[0] * y))
        return f(y)

    assert 3.0 == transform(outer)(3.0)
    assert 1.0 == transform(cj.grad(outer))(3.0)


# The equation

def test_it_prints_its_name_its_program_and_that_there_are_rules():
    text = str(cj.make_jaxpr(tripled())(X))
    assert "custom_call[" in text and "name='f'" in text and "jvp=<opaque>" in text and "sin" in text
    assert "vjp" not in text
    full = jaxpr_text(cj.make_jaxpr(tripled())(X), pretty=False)
    with pytest.raises(CorejaxError, match="opaque"):
        parse_jaxpr(full)


def test_dead_results_are_removed_and_the_rule_still_fits():
    f = pair()

    def program(x):
        return f({"x": x, "n": 3}, x)["z"]

    closed = cj.make_jaxpr(program)(X)
    smaller, _ = dce(closed.jaxpr, [True])
    typecheck(smaller)
    assert "sin" in names(closed.jaxpr) and "sin" not in names(smaller)
    fun = lambda x: eval_jaxpr(smaller, closed.consts, x)[0].sum()
    np.testing.assert_allclose(cj.grad(fun)(X), np.full(3, 3.0))
    np.testing.assert_allclose(cj.grad(lambda x: cj.vmap(lambda s: eval_jaxpr(smaller, closed.consts, x * s)[0])(
        np.ones(2)).sum())(X), np.full(3, 6.0))
    assert 0 == count_eqns(dce(closed.jaxpr.replace(outvars=closed.jaxpr.invars), [True])[0])


def test_a_function_that_is_traced_again_is_the_same_program():
    f = tripled()
    calls = [cj.make_jaxpr(lambda x: f(x) * 2.0)(X).eqns[0] for _ in range(2)]
    assert calls[0].params["call"].__corejax_key__() == calls[1].params["call"].__corejax_key__()
    assert calls[0].params["jaxpr"] is calls[1].params["jaxpr"]
    other = cj.make_jaxpr(tripled())(X).eqns[0]
    assert calls[0].params["call"].__corejax_key__() != other.params["call"].__corejax_key__()


def test_samples_evaluate_and_compile_alike():
    for sample in lax.custom_call.primitive.samples(np.random.default_rng(0)):
        def f(*args, params=sample.params):
            return lax.custom_call.primitive.bind(*args, **params)

        if sample.error is not None:
            with pytest.raises(sample.error, match="the operands don't fit"):
                f(*sample.args)
            continue
        for here, there in zip(f(*sample.args), cj.jit(f)(*sample.args), strict=True):
            np.testing.assert_allclose(here, there, rtol=1e-12)


# Wrong uses

def custom(jvp=None):
    f = cj.custom_jvp(lambda x: {"y": x * 2.0})
    if jvp is not None:
        f.defjvp(jvp)
    return f


@pytest.mark.parametrize(("rule", "message"), [
    (lambda p, t: {"y": p[0]}, r"the jvp rule of <lambda> must return a pair"),
    (lambda p, t: ({"y": p[0]}, t[0]), r"returns a tangent of a different structure than the output"),
    (lambda p, t: ({"y": p[0]}, {"y": X}),
     r"returns a tangent of a different type than its output(.|\n)*f64\[3\] for the "
                                           r"output\['y'\](.|\n)*wanted: f64\[\] for the output\['y'\]"),
    (lambda p, t: ({"y": p[0]}, {"y": np.float32(1)}), r"returns a tangent of a different type than its output"),
    (lambda p, t: ({"y": p[0]}, {"y": "no"}),
     r"returns a tangent of a different type(.|\n)*a str for the output\['y'\]"),
    (lambda p, t: ({"y": "no"}, {"y": t[0]}), r"the output\['y'\] is a str"),
    (lambda p: 1, r"the jvp rule of <lambda>: the function doesn't take these arguments"),
])
def test_a_wrong_rule_is_refused_with_its_function_and_the_leaf(rule, message):
    f = custom(rule)
    for transform in (cj.grad, lambda f: cj.jit(cj.grad(f))):
        with pytest.raises(CorejaxError, match=message) as caught:
            transform(lambda x: f(x)["y"])(1.0)
        assert __file__ in caught.value.where


@pytest.mark.parametrize(("rule", "message"), [
    (lambda p, t: ((p[0],), (t[0],)), "returns an output structured differently from <lambda>"),
    (lambda p, t: ({"y": X}, {"y": X}), r"returns an output of a different type than <lambda>(.|\n)*f64\[3\] for the "
                                        r"output\['y'\]"),
])
def test_a_rule_whose_output_is_not_that_of_the_program_is_refused(rule, message):
    f = custom(rule)
    with pytest.raises(CorejaxError, match=message):
        cj.jit(cj.grad(lambda x: f(x)["y"]))(1.0)


@pytest.mark.parametrize(("call", "kind", "message"), [
    (lambda: custom()(1.0), AttributeError, "is called before it has a rule"),
    (lambda: custom().defjvp(3), TypeError, "a rule must be a function"),
    (lambda: custom().defjvps(3), TypeError, "a rule must be a function"),
    (lambda: cj.custom_jvp(3), TypeError, "custom_jvp: expected a function"),
    (lambda: cj.custom_jvp(lambda x: x, nondiff_argnums=2), ValueError, "there is no such argument"),
    (lambda: cj.custom_jvp(lambda x: x, nondiff_argnames="y"), ValueError, "there is no such argument"),
    (lambda: custom(lambda p, t: None)(y=1.0), TypeError, "doesn't take these arguments"),
    (lambda: custom(lambda p, t: None)("x"), TypeError, r"args\[0\] is a str"),
    (lambda: cj.custom_jvp(lambda x: x, nondiff_argnums=0).defjvps(None), TypeError, "whose arguments are all"),
])
def test_wrong_uses_are_refused_by_name(call, kind, message):
    with pytest.raises(CorejaxError, match=message) as caught:
        call()
    assert isinstance(caught.value, kind)
    assert __file__ in caught.value.where


def test_keyword_only_arguments_have_no_position():
    f = cj.custom_jvp(lambda x, *, n=1: x * n)
    f.defjvp(lambda p, t: (p[0], t[0]))
    with pytest.raises(TypeError, match="all arguments of <lambda> must be positional"):
        f(1.0, n=2)
    assert 3.0 == f(3.0)  # with its default


def test_as_many_rules_as_arguments():
    f = cj.custom_jvp(lambda x, y: x * y)
    f.defjvps(lambda t, ans, x, y: t)
    with pytest.raises(TypeError, match="doesn't have as many arguments as it has rules"):
        cj.grad(f)(1.0, 2.0)


# Beside jax

def test_parity_with_jax():
    jax = pytest.importorskip("jax")

    def programs(m, sin, cos):
        @m.custom_jvp
        def f(x, y):
            return sin(x) * y, y * y

        f.defjvp(lambda p, t: (f(*p), (3.0 * cos(p[0]) * p[1] * t[0] + sin(p[0]) * t[1], 5.0 * t[1])))
        g = m.custom_jvp(lambda x: f(x, x)[0])
        g.defjvps(lambda t, ans, x: t * ans)
        h = partial(m.custom_jvp, nondiff_argnums=(0,))(lambda fun, x: fun(x))
        h.defjvp(lambda fun, p, t: (fun(p[0]), fun(p[0]) * t[0]))
        return [lambda x: (f(x, cos(x))[0] * f(x, x)[1]).sum(), lambda x: g(x).sum(), lambda x: h(sin, x).sum(),
                lambda x: m.lax.scan(lambda c, _: (f(c, x)[0], None), x, None, length=3)[0].sum(),
                lambda x: m.vmap(lambda s: f(s, x[0])[0])(x).sum()]

    ours, theirs = programs(cj, lax.sin, lax.cos), programs(jax, jax.lax.sin, jax.lax.cos)
    for i, (a, b) in enumerate(zip(ours, theirs, strict=True)):
        for name in ("grad", "jit", "hessian")[: 2 if i == 3 else 3]:  # jax forgets the rule in a scan's hessian
            np.testing.assert_allclose(getattr(cj, name)(a)(X), np.asarray(getattr(jax, name)(b)(X)), rtol=2e-5,
                                       atol=2e-6, err_msg=f"{i} {name}")


def test_a_rule_made_anew_compiles_nothing_anew():
    def gradient():
        @cj.custom_jvp
        def f(x):
            return lax.sin(x)

        f.defjvp(lambda primals, tangents: (f(*primals), tangents[0] * lax.cos(primals[0])))
        return cj.grad(lambda x: lax.scan(lambda c, _: (f(c), None), x, None, length=5)[0])(1.0)

    first, count = gradient(), len(_executables._cache)
    assert float(first) == float(gradient())
    assert count == len(_executables._cache)


@pytest.mark.parametrize("tangent", [0.0, 0, lax.full((), 0.0)])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_weak_tangents_are_taken_in_the_dtype_of_the_output(tangent, dtype):
    f = cj.custom_jvp(lax.sin)
    f.defjvp(lambda primals, tangents: (lax.sin(primals[0]), tangent))
    x = dtype(0.5)
    for transformed in (cj.grad(f), cj.grad(cj.jit(f)), cj.jit(cj.grad(f)), lambda x: cj.jvp(f, (x,), (x,))[1]):
        slope = transformed(x)
        assert (0.0, dtype) == (float(slope), slope.dtype)


def dividing_by_u(w):
    """u w s, whose rule divides the tangent of u by u."""
    f = cj.custom_jvp(lambda u, s: u * w * s)

    @f.defjvp
    def rule(xs, dots):
        out = f(*xs)
        return out, dots[0] / xs[0] + dots[1] * lax.full_like(out, 3.0)

    return f


@pytest.mark.parametrize("program", [
    lambda f, s: lax.scan(lambda c, _: (c + f(np.zeros(2), s).sum(), None), 0.0, None, length=2)[0] / 2.0,
    lambda f, s: lax.cond(s > 0.0, lambda: f(np.zeros(2), s).sum(), lambda: s)])
@pytest.mark.parametrize("derivative", [cj.grad, lambda f: lambda s: cj.linearize(f, s)[1](1.0)])
def test_what_a_function_closes_over_needs_no_tangent_if_a_zero_one_is_multiplied_by_infinity(program, derivative):
    assert 6.0 == derivative(partial(program, dividing_by_u(np.array([1.0, 2.0]))))(0.5)


def test_a_nan_made_of_a_zero_tangent_inside_a_loop_is_no_constant_term():
    f = dividing_by_u(1.0)
    assert 6.0 == cj.grad(lambda s: lax.scan(lambda c, _: (c + f(0.0, s), None), 0.0, None, length=2)[0])(0.5)


def test_a_constant_term_is_refused_in_a_loop_too():
    @cj.custom_jvp
    def f(x):
        return x

    f.defjvp(lambda xs, dots: (f(*xs), dots[0] + 1.0))
    with pytest.raises(CorejaxError, match="is not linear in the tangents"):
        cj.grad(lambda s: lax.scan(lambda c, _: (c + f(s), None), 0.0, None, length=2)[0])(0.5)
