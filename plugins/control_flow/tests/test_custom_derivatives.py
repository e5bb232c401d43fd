"""closure_convert, custom_gradient, symbolic zeros, and the namespaces: what jax's programs use of them."""

from __future__ import annotations

import copy
import dataclasses
import functools

import numpy as np
import pytest

import corejax as cj
import corejax.custom_batching
import corejax.custom_derivatives as cd
from corejax import lax
from corejax.errors import CorejaxError

W = np.array([0.5, -1.0, 2.0])


def minimized(f, x):
    """f(x) with a derivative of its own, by what f closes over too: 10 times the right one, and twice by x."""
    converted, consts = cj.closure_convert(f, x)
    return inner(converted, x, *consts)


@functools.partial(cj.custom_vjp, nondiff_argnums=0)
def inner(f, x, *consts):
    return f(x, *consts)


def _fwd(f, x, *consts):
    return f(x, *consts), (x, consts)


def _bwd(f, kept, ct):
    x, consts = kept
    x_bar, *back = cj.vjp(f, x, *consts)[1](ct)
    return 2.0 * x_bar, *[10.0 * each for each in back]


inner.defvjp(_fwd, _bwd)

CONVERTED = {
    "grad": (lambda: cj.grad(lambda c: minimized(lambda x: x * c, 3.0))(2.0), 30.0),
    "grad by the argument": (lambda: cj.grad(lambda x: minimized(lambda x: x * W, x).sum())(1.0), 2 * W.sum()),
    "grad by both": (lambda: cj.grad(lambda c: minimized(lambda x: x * c, c))(3.0), 2 * 3.0 + 10 * 3.0),
    "jit(grad)": (lambda: cj.jit(cj.grad(lambda c: minimized(lambda x: x * c, 3.0)))(2.0), 30.0),
    "grad(jit)": (lambda: cj.grad(cj.jit(lambda c: minimized(lambda x: x * c, 3.0)))(2.0), 30.0),
    "vmap(grad)": (lambda: cj.vmap(cj.grad(lambda c: minimized(lambda x: x * c * c, 3.0)))(W), 60.0 * W),
    "grad(vmap)": (lambda: cj.grad(lambda c: cj.vmap(lambda z: minimized(lambda x: x * c * z, 3.0))(W).sum())(2.0),
                   30 * W.sum()),
    "grad(scan)": (lambda: cj.grad(lambda c: lax.scan(
        lambda s, _: (minimized(lambda x: x * c, s), None), 1.0, None, length=2)[0])(3.0), 10 * 3.0 + 10 * 2 * 3.0),
    "of what is computed from it": (lambda: cj.grad(lambda c: minimized(lambda x: x * lax.sin(c), 3.0))(2.0),
                                    30 * np.cos(2.0)),
    "of a tree": (lambda: cj.grad(lambda d: minimized(lambda x: x * d["a"] * d["b"][0], 3.0))(
        {"a": 2.0, "b": (5.0,)})["a"], 150.0),
    "second": (lambda: cj.grad(cj.grad(lambda c: minimized(lambda x: x * c * c, 3.0)))(2.0), 60.0),
}


@pytest.mark.parametrize("name", CONVERTED)
def test_closed_over_values_get_derivatives_as_arguments(name):
    run, expected = CONVERTED[name]
    np.testing.assert_allclose(run(), expected, rtol=1e-12)


def test_only_what_may_have_a_derivative_is_hoisted():
    def hoisted(f, x=3.0):
        return len(cj.closure_convert(f, x)[1])

    assert 0 == hoisted(lambda x: x * W)
    assert (1.0, 1.0) == cj.jvp(lambda c: c * hoisted(lambda x: x * c * c), (1.0,), (1.0,))
    assert 1 == cj.jit(lambda c, n: hoisted(lambda x: x * c + n))(2.0, 1)
    assert 0 == cj.vmap(lambda c: hoisted(lambda x: x * c), out_axes=None)(W)
    assert 1.0 == cj.grad(lambda c: cj.vmap(lambda z: c * hoisted(lambda x: x * c * z))(W)[0])(1.0)


def test_a_converted_function_takes_trees_and_is_used_again():
    converted, consts = cj.closure_convert(lambda d, x: {"y": d["a"] * x + W}, {"a": 1.0}, 2)
    assert [] == consts
    for a in (1.0, 5.0):
        np.testing.assert_allclose(converted({"a": a}, 3)["y"], a * 3 + W)
    np.testing.assert_allclose(cj.vmap(lambda a: converted({"a": a}, 2)["y"])(W), 2 * W[:, None] + W)


GRADIENTS = {
    "a tuple": (lambda c: cj.grad(c(lambda x: (x * x, lambda ct: (7.0 * ct,))))(3.0), 7.0),
    "one array": (lambda c: cj.grad(c(lambda x: (x * x, lambda ct: 7.0 * ct)))(3.0), 7.0),
    "two arguments": (lambda c: cj.grad(c(lambda x, y: (x * y, lambda ct: (ct * y, 5.0 * ct * x))), 1)(3.0, 4.0), 15.0),
    "what was computed": (lambda c: cj.vmap(cj.grad(c(lambda x: (lambda y: (y, lambda ct: ct * y))(lax.sin(x)))))(W),
                          np.sin(W)),
    "jit": (lambda c: cj.jit(cj.grad(c(lambda x: (x, lambda ct: ct * lax.cos(x)))))(0.0), 1.0),
    "grad(vmap)": (lambda c: cj.grad(lambda x: cj.vmap(c(lambda x: (x, lambda ct: ct * x)))(x).sum())(W), W),
    "vmap(jit(grad))": (lambda c: cj.vmap(cj.jit(cj.grad(c(lambda x: (x, lambda ct: ct * x)))))(W), W),
    "second": (lambda c: cj.grad(cj.grad(c(lambda x: (x * x, lambda ct: ct * x**3))))(3.0), 27.0),
    "a choice in Python": (lambda c: cj.grad(c(lambda x: (x, (lambda ct: ct) if x > 0 else (lambda ct: -ct))))(-3.0),
                           -1.0),
    "integers": (lambda c: cj.grad(c(lambda x, n: (x * n, lambda ct: (7.0 * ct, None))))(3.0, 2), 7.0),
    "an integer result": (lambda c: cj.grad(
        lambda x: c(lambda x: ((x, 3), lambda ct: (7.0 * ct[0],)))(x)[0])(3.0), 7.0),
    "a closed-over tracer": (lambda c: cj.jit(lambda k: cj.grad(c(lambda x: (k * x, lambda ct: ct * k * 10.0)))(3.0))(
        2.0), 20.0),
    "scan": (lambda c: cj.grad(lambda x: lax.scan(
        lambda s, _: (c(lambda x: (2.0 * x, lambda ct: ct * x))(s), None), x, None, length=2)[0])(3.0), 18.0),
    "checkpoint": (lambda c: cj.grad(cj.checkpoint(c(lambda x: (x, lambda ct: ct * lax.sin(x)))))(3.0), np.sin(3.0)),
}


@pytest.mark.parametrize("name", GRADIENTS)
def test_a_function_returns_its_derivative(name):
    run, expected = GRADIENTS[name]
    np.testing.assert_allclose(run(cj.custom_gradient), expected, rtol=1e-12)


def test_a_function_with_a_gradient_keeps_its_name():
    @cj.custom_gradient
    def named(x):
        """Doc."""
        return x, lambda ct: (ct,)

    assert ("named", "Doc.", True) == (named.__name__, named.__doc__, isinstance(named, cj.custom_vjp))


# Symbolic zeros

def test_rules_know_zeros_by_their_class():
    seen = []
    f = cj.custom_jvp(lambda x, y, n: x * y)

    @functools.partial(f.defjvp, symbolic_zeros=True)
    def rule(primals, tangents):
        seen.append([type(t) is cd.SymbolicZero for t in tangents])
        zero = tangents[1]
        assert ((), 0, 1, np.float64, False) == (zero.shape, zero.ndim, zero.size, zero.dtype, zero.weak_type)
        assert zero.aval.shape == ()
        return f(*primals), tangents[0] * primals[1]

    assert 3.0 == cj.grad(f)(2.0, np.float64(3.0), 1) == cj.jit(cj.grad(f))(2.0, np.float64(3.0), 1)
    assert [False, True, True] == seen[0]


def test_fwd_and_bwd_see_what_is_perturbed():
    seen = []
    f = cj.custom_vjp(lambda x, y: (x * y, x))

    def fwd(x, y):
        seen.append((x.perturbed, y.perturbed))
        assert isinstance(x, cd.CustomVJPPrimal)
        values = cd.custom_vjp_primal_tree_values((x, y))
        return (values[0] * values[1], values[0]), values

    def bwd(kept, cts):
        assert isinstance(cts[1], cd.SymbolicZero)
        return cts[0] * kept[1], cts[1]

    f.defvjp(fwd, bwd, symbolic_zeros=True)
    assert 3.0 == cj.grad(lambda x: f(x, 3.0)[0])(2.0)
    assert [(True, False)] == seen


def test_zeros_of_values():
    zero = cd.SymbolicZero.from_primal_value(np.arange(3))
    assert ((3,), cj.float0, 3) == (zero.shape, zero.dtype, zero.size)
    assert cj.core.Zero is cd.SymbolicZero
    assert "Zero(f64[3])" == repr(cd.zero_from_primal(W, symbolic_zeros=True))
    np.testing.assert_array_equal(np.zeros(3), cd.zero_from_primal(W))
    assert cj.float0 == cd.zero_from_primal(3).dtype
    primal = cd.CustomVJPPrimal(1.0, perturbed=True)
    assert primal == copy.copy(primal)
    assert cd.CustomVJPPrimal(1.0, False) == dataclasses.replace(primal, perturbed=False)
    assert "CustomVJPPrimal(value=1.0, perturbed=True)" == repr(primal)
    assert {"a": 1.0, "b": [1.0, None]} == cd.custom_vjp_primal_tree_values({"a": primal, "b": [primal, None]})


# The wrappers

@pytest.mark.parametrize("kind", [cj.custom_jvp, cj.custom_vjp])
def test_a_wrapper_keeps_what_a_function_has(kind):
    def f(x):
        """Doc."""
        return x
    f.own, f.fun, f.implementation = 7, "its own", "too"
    g = kind(f)
    assert ("f", "Doc.", f, 7, f, __name__) == (g.__name__, g.__doc__, g.__wrapped__, g.own, g.fun, g.__module__)
    assert g.jvp is None and g.fwd is None and g.bwd is None
    assert 3.0 == kind(lambda: 3.0).fun()


def test_rules_can_be_read_back():
    f = cj.custom_jvp(lambda x: x)
    rule = f.defjvp(lambda primals, tangents: (primals[0], 3.0 * tangents[0]))
    assert rule is f.jvp and (1.0, 6.0) == f.jvp((1.0,), (2.0,))
    g = cj.custom_vjp(lambda x: x)
    fwd, bwd = lambda x: (x, 2.0), lambda r, ct: (r * ct,)
    assert g.defvjp(fwd, bwd) is None and (fwd, bwd) == (g.fwd, g.bwd)


def test_wrappers_of_wrappers_have_rules_of_their_own():
    f = cj.custom_jvp(lambda x: x)
    f.defjvp(lambda primals, tangents: (primals[0], 3.0 * tangents[0]))
    g = cj.custom_vjp(f)
    g.defvjp(lambda x: (f(x), None), lambda _, ct: (5.0 * ct,))
    assert (3.0, 5.0, 3.0) == (cj.grad(f)(1.0), cj.grad(g)(1.0), cj.jvp(f, (1.0,), (1.0,))[1])
    assert f.implementation is not g.implementation and g.__wrapped__ is f


def test_a_function_that_wraps_another_is_searched_for_traced_values_too():
    def slope(c, x):
        f = cj.custom_jvp(lambda x: 2.0 * x)

        @functools.wraps(f)
        def scaled(x):
            return c * x

        f.defjvp(lambda primals, tangents: (f(*primals), scaled(tangents[0])))
        return cj.grad(f)(x)

    assert 3.0 == cj.jit(slope)(3.0, 2.0)
    np.testing.assert_allclose(cj.vmap(cj.jit(slope))(W, W), W)


def test_what_a_partial_leaves_open_is_not_filled_in():
    f = cj.custom_vjp(functools.partial(lambda k, x, y=2.0: k * x * y, 3.0))
    f.defvjp(lambda x: (6.0 * x, None), lambda _, ct: (7.0 * ct,))
    assert (12.0, 7.0) == (f(2.0), cj.grad(f)(2.0))


def test_a_traced_argument_that_is_not_data_has_no_derivative_in_custom_jvp():
    f = cj.custom_jvp(lambda x, a: x * a, nondiff_argnums=1)
    f.defjvp(lambda a, primals, tangents: (primals[0] * a, 10.0 * tangents[0] * a))
    assert 30.0 == cj.jit(lambda x, a: cj.grad(f)(x, a))(2.0, 3.0)
    assert 0.0 == cj.grad(f, 1)(2.0, 3.0) == cj.grad(lambda a: cj.grad(f)(2.0, a))(3.0)
    np.testing.assert_allclose(cj.vmap(cj.grad(f))(W, W), 10 * W)
    g = cj.custom_vjp(lambda x, a: x * a, nondiff_argnums=1)
    g.defvjp(lambda x, a: (x * a, None), lambda a, _, ct: (10.0 * ct * a,))
    assert 10.0 == cj.grad(lambda a: cj.grad(g)(2.0, a))(3.0)
    with pytest.raises(TypeError, match="with respect to a value that it closes over"):
        cj.grad(g, 1)(2.0, 3.0)


def rematerialized(optimized):
    f = cj.custom_vjp(lambda x: lax.sin(x))
    f.defvjp(lambda x: (lax.tanh(x), x), lambda x, ct: (ct * x,), optimize_remat=optimized)
    return f


@pytest.mark.parametrize(("name", "route"), {
    "grad": lambda f: cj.grad(lambda x: f(x) * f(x)), "jit": lambda f: cj.jit(cj.grad(lambda x: f(x) * f(x))),
    "vmap": lambda f: cj.grad(lambda x: cj.vmap(lambda x: f(x) * f(x))(x * W).sum()),
}.items())
def test_the_way_forward_through_a_checkpoint_computes_the_function_and_not_fwd(name, route):
    counts = [str(cj.make_jaxpr(route(cj.checkpoint(rematerialized(flag))))(2.0)).count("= tanh ")
              for flag in (False, True)]
    assert [2, 0] == counts


def test_optimizing_a_checkpoint_changes_no_derivative():
    def f(optimized):
        f = cj.custom_vjp(lambda x, y: (lax.sin(x) * y, x))
        f.defvjp(lambda x, y: ((lax.sin(x) * y, x), (x, y)),
                 lambda r, ct: (lax.cos(r[0]) * r[1] * ct[0] + ct[1], lax.sin(r[0]) * ct[0]),
                 optimize_remat=optimized)
        return lambda x: cj.checkpoint(lambda x: sum(f(x, 3.0 * x)))(x)

    for route in (cj.grad, lambda f: cj.jit(cj.grad(f)), lambda f: cj.grad(cj.grad(f)), lambda f: cj.hessian(cj.jit(f)),
                  lambda f: lambda x: cj.vmap(cj.grad(f))(x * W), lambda f: cj.jacrev(lambda x: cj.vmap(f)(x * W)),
                  lambda f: cj.grad(lambda x: lax.scan(lambda c, _: (f(c), None), x, None, length=3)[0])):
        np.testing.assert_allclose(route(f(True))(0.7), route(f(False))(0.7), rtol=1e-12)


# Namespaces

def test_the_namespaces_are_at_hand():
    assert cj.custom_derivatives is cd and cj.custom_batching is corejax.custom_batching
    assert cj.custom_jvp is cd.custom_jvp and cj.custom_vjp is cd.custom_vjp
    assert cj.closure_convert is cd.closure_convert and cj.custom_gradient is cd.custom_gradient
    assert not hasattr(lax, "custom_gradient") and not hasattr(cj, "custom_vmap")


def test_they_have_jaxs_names():
    jax = pytest.importorskip("jax")
    for ours, theirs in ((cd, jax.custom_derivatives), (cj.custom_batching, jax.custom_batching)):
        wanted = {name for name in dir(theirs) if not name.startswith("_") and not name.endswith("_p")}
        assert wanted == {*ours.__all__}


# What is refused

def convert(*args, on=(1.0,)):
    converted, _ = cj.closure_convert(lambda *xs: sum(xs), *on)
    return converted(*args)


REFUSED = {
    "convert: no function": (lambda: cj.closure_convert(3, 1.0), TypeError, "closure_convert: expected a function"),
    "convert: text": (lambda: cj.closure_convert(lambda x: x, "text"), TypeError, "example_args[0] is a str"),
    "convert: other arguments": (lambda: cj.closure_convert(lambda: 1.0, 1.0), TypeError, "doesn't take these"),
    "convert: fewer": (lambda: convert(), TypeError, "called with other arguments than it was converted for"),
    "convert: more": (lambda: convert(1.0, 2.0), TypeError, "called with other arguments"),
    "convert: another structure": (lambda: convert([1.0]), TypeError, "called with other arguments"),
    "convert: another shape": (lambda: convert(W), TypeError, "got:    f64[3] for args[0]"),
    "convert: another dtype": (lambda: convert(np.float32(1)), TypeError, "got:    f32[] for args[0]"),
    "gradient: no function": (lambda: cj.custom_gradient(3), TypeError, "custom_gradient: expected a function"),
    "gradient: no pair": (lambda: cj.custom_gradient(lambda x: x)(1.0), TypeError, "must return a pair"),
    "gradient: no rule": (lambda: cj.custom_gradient(lambda x: (x, x))(1.0), TypeError, "must return a function after"),
    "gradient: too few cotangents": (lambda: cj.grad(cj.custom_gradient(lambda x, y: (x * y, lambda ct: ct)))(1.0, 2.0),
                                     TypeError, "a tuple with one cotangent for each argument"),
    "gradient: another shape": (lambda: cj.grad(cj.custom_gradient(lambda x: (x, lambda ct: (W,))))(1.0), TypeError,
                                "f64[3] for args[0]"),
    "gradient: a keyword": (lambda: cj.custom_gradient(lambda x, y: (x, lambda ct: ct))(1.0, y=2.0), TypeError,
                            "unexpected keyword argument 'y'"),
    "gradient: a value in Python": (lambda: cj.grad(cj.custom_gradient(
        lambda x: (x, lambda ct: ct if ct > 0 else -ct)))(1.0), TypeError, "concrete value"),
    "gradient: forward": (lambda: cj.jvp(cj.custom_gradient(lambda x: (x, lambda ct: ct)), (1.0,), (1.0,)), TypeError,
                          "no rule for forward mode"),
    "zeros: other leaves": (lambda: cd.custom_vjp_primal_tree_values({"a": 3.0}), TypeError, "a float: 3.0"),
    "zeros: text": (lambda: cd.zero_from_primal("text"), TypeError, "not an array"),
    "jvp: a rule that is no function": (lambda: cj.custom_jvp(lambda x: x).defjvp(3), TypeError, "must be a function"),
    "vjp: a flag": (lambda: cj.custom_vjp(lambda x: x).defvjp(lambda x: x, lambda r, ct: ct, symbolic_zeros=3),
                    TypeError, "symbolic_zeros"),
    "vjp: another flag": (lambda: cj.custom_vjp(lambda x: x).defvjp(
        lambda x: x, lambda r, ct: ct, optimize_remat="yes"), TypeError, "optimize_remat"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_wrong_uses_say_what_to_do(name):
    run, kind, message = REFUSED[name]
    with pytest.raises(CorejaxError) as caught:
        run()
    assert isinstance(caught.value, kind)
    text = str(caught.value)
    assert message in text and "wanted:" in text and "test_custom_derivatives.py" in text
