"""`checkpoint`: what reverse mode keeps and what it computes again; and the barrier."""

from __future__ import annotations

import numpy as np
import pytest

import corejax as cj
from corejax import lax
from corejax.core import Jaxpr, ShapedArray, eval_jaxpr, stage, subjaxprs
from corejax.errors import CorejaxError
from corejax.interpreters import linearize as linearizing
from corejax.ir import count_eqns, dce, jaxpr_text, parse_jaxpr, typecheck

X = np.array([0.3, -0.7, 1.1])
V = np.array([0.5, 0.25, -1.0])


class Unhashable:
    __hash__ = None

    def __call__(self, primitive, *avals, **params):
        return True


def layer(x):
    return lax.sin(lax.sin(lax.sin(x))) * x


def total(f):
    return lambda x: f(x).sum()


def names(jaxpr: Jaxpr):
    """The names of all equations, those of programs in params included."""
    found = []
    for eqn in jaxpr.eqns:
        found.append(eqn.primitive.name)
        for inner in subjaxprs(eqn.params):
            found += names(inner)
    return found


def checkpoints(jaxpr: Jaxpr):
    return [eqn for eqn in jaxpr.eqns if eqn.primitive.name == "checkpoint_call"]


def kept(f, x):
    """The arrays that the linearization of `f` holds."""
    _, linear_map = linearizing.linearize(lambda x: [f(x)], [cj.device_put(x)])
    linear_map(cj.device_put(V))  # lets go of what nothing needs
    arrays = {id(x): x for eqn in linear_map.eqns for x in eqn[1] if hasattr(x, "aval") and isinstance(x, cj.Array)}
    return list(arrays.values())


# What it is for

def test_only_the_arguments_are_kept():
    assert 5 == len(kept(layer, X))
    (only,) = kept(cj.checkpoint(layer), X)
    np.testing.assert_array_equal(only, X)


def test_of_a_chain_of_layers_only_what_is_between_them_is_kept():
    f = cj.checkpoint(layer)
    one, two, three = kept(lambda x: f(f(f(x))), X)
    np.testing.assert_allclose(one, X)
    np.testing.assert_allclose(two, layer(X))
    np.testing.assert_allclose(three, layer(layer(X)))


def test_what_is_closed_over_is_kept_and_differentiated():
    def outer(x):
        y = lax.cos(x)
        return cj.checkpoint(lambda z: lax.sin(z * y))(x * 2.0).sum()

    plain = lambda x: lax.sin(x * 2.0 * lax.cos(x)).sum()
    np.testing.assert_allclose(cj.grad(outer)(X), cj.grad(plain)(X), rtol=1e-12)


def test_the_gradient_computes_the_function_once_more():
    plain = names(cj.make_jaxpr(cj.grad(total(layer)))(X).jaxpr)
    again = names(cj.make_jaxpr(cj.grad(total(cj.checkpoint(layer))))(X).jaxpr)
    assert 3 == plain.count("sin") and 3 == plain.count("cos")
    assert 6 == again.count("sin") and 3 == again.count("cos")


def test_what_is_known_is_in_place_and_what_waits_is_one_equation():
    closed = cj.make_jaxpr(cj.grad(total(cj.checkpoint(layer))))(X)
    (call,) = checkpoints(closed.jaxpr)
    assert call.params["differentiated"] and call.params["prevent_cse"]
    assert 2 == len(call.invars)
    assert 3 == [eqn.primitive.name for eqn in closed.eqns].count("sin")
    typecheck(closed.jaxpr)


def test_the_barrier_is_lowered_where_values_are_computed_again():
    def text(**options):
        return cj.jit(cj.grad(total(cj.checkpoint(layer, **options)))).lower(X).as_text()

    assert 1 == text().count("optimization_barrier")
    assert 0 == text(prevent_cse=False).count("optimization_barrier")
    assert 0 == cj.jit(cj.checkpoint(layer)).lower(X).as_text().count("optimization_barrier")


# Under every transformation, and in loops

TRANSFORMATIONS = {
    "jit": lambda f: cj.jit(f),
    "vmap": lambda f: lambda x: cj.vmap(lambda s: f(x * s))(np.array([1.0, 0.5])).sum(),
    "jvp": lambda f: lambda x: cj.jvp(f, (x,), (V,))[1],
    "linearize": lambda f: lambda x: cj.linearize(f, x)[1](V),
    "grad": lambda f: lambda x: (cj.grad(f)(x) * V).sum(),
    "checkpoint": lambda f: cj.checkpoint(f),
}


@pytest.mark.parametrize("prevent_cse", [True, False])
def test_the_body_of_a_scan(prevent_cse):
    def loop(f):
        return lambda x: lax.scan(lambda c, w: (f(c * w), None), x, np.array([1.0, 0.5, 2.0]))[0].sum()

    f = loop(cj.checkpoint(layer, prevent_cse=prevent_cse))
    np.testing.assert_allclose(cj.grad(f)(X), cj.grad(loop(layer))(X), rtol=1e-12)
    np.testing.assert_allclose(cj.vmap(cj.grad(f))(np.stack([X, V]))[1], cj.grad(loop(layer))(V), rtol=1e-12)
    scans = [eqn for eqn in cj.make_jaxpr(cj.grad(f))(X).eqns if eqn.primitive.name == "scan"]
    stacked = [v.aval.shape for v in scans[0].outvars if v.aval.shape == (3, 3)]
    assert 1 == len(stacked)  # what the layer takes in each step, and nothing from within it


def test_a_checkpointed_scan():
    def loop(x):
        return lax.scan(lambda c, _: (lax.sin(c) * x, c), x, None, length=4)[1].sum()

    np.testing.assert_allclose(cj.grad(cj.checkpoint(loop))(X), cj.grad(loop)(X), rtol=1e-12)


# Arguments

def test_keywords_statics_and_trees():
    @cj.checkpoint
    def f(tree, *, scale=1.0):
        return {"y": lax.sin(tree["x"]) * scale, "n": tree["n"]}

    out = f({"x": X, "n": 2}, scale=3.0)
    np.testing.assert_allclose(out["y"], 3 * np.sin(X))
    assert 2 == out["n"]
    np.testing.assert_allclose(cj.grad(lambda x: f({"x": x, "n": 2}, scale=3.0)["y"].sum())(X), 3 * np.cos(X))

    power = cj.checkpoint(lambda x, n: x if n == 0 else x * x, static_argnums=(1,))
    assert 1.0 == cj.grad(power)(3.0, 0)
    assert 6.0 == cj.grad(power)(3.0, 1)


def test_remat_is_another_name_and_both_decorate_with_options():
    assert cj.remat is cj.checkpoint

    @cj.remat(prevent_cse=False)
    def named(x):
        """Doc."""
        return lax.sin(x)

    assert ("named", "Doc.") == (named.__name__, named.__doc__)
    assert 1.0 == cj.grad(named)(0.0)


@pytest.mark.parametrize(("call", "message"), [
    (lambda: cj.checkpoint(3), "checkpoint: expected a function"),
    (lambda: cj.checkpoint(layer, policy="dots"), "a policy must be a function"),
    (lambda: cj.checkpoint(layer, policy=Unhashable()), "a policy must be hashable"),
    (lambda: cj.checkpoint(layer, prevent_cse=2), "prevent_cse must be True or False"),
    (lambda: cj.checkpoint(layer, prevent_cse=(1, 0)), "prevent_cse must be True or False"),
    (lambda: cj.checkpoint(layer, prevent_cse=(True,) * 3)(1.0), "prevent_cse must have a flag for each argument"),
    (lambda: cj.checkpoint(layer, concrete=True), "there is no concrete="),
    (lambda: cj.checkpoint(layer, static_argnames="nobody"), "static_argnames has 'nobody'"),
    (lambda: cj.checkpoint(layer, static_argnums="x"), "static_argnums must be positions"),
    (lambda: cj.checkpoint(layer)("x"), r"args\[0\] is a str"),
    (lambda: cj.checkpoint(lambda x: "x")(1.0), "result is a str"),
    (lambda: cj.checkpoint(layer)(1.0, 2.0), "doesn't take these arguments"),
    (lambda: cj.checkpoint(lambda x: x if x > 0 else -x)(1.0), "needs the value"),
])
def test_wrong_uses_are_refused_by_name(call, message):
    with pytest.raises(CorejaxError, match=message) as caught:
        call()
    assert __file__ in caught.value.where


# The equation

def test_it_prints_and_parses_back():
    closed = cj.make_jaxpr(cj.grad(total(cj.checkpoint(layer))))(X)
    full = jaxpr_text(closed, pretty=False)
    assert "checkpoint_call[" in full and "differentiated=True" in full
    assert full == jaxpr_text(parse_jaxpr(full), pretty=False)


def test_dead_results_and_what_they_need_are_removed():
    def f(x, y):
        return cj.checkpoint(lambda a, b: (lax.sin(a), lax.cos(b)))(x, y)[0]

    closed = cj.make_jaxpr(f)(X, V)
    smaller, used = dce(closed.jaxpr, [True])
    assert (True, False) == used
    (call,) = checkpoints(smaller)
    assert ["sin"] == names(call.params["jaxpr"])
    assert (1, 1) == (len(call.invars), len(call.outvars))
    np.testing.assert_allclose(eval_jaxpr(smaller, (), X)[0], np.sin(X))
    assert 0 == count_eqns(dce(closed.jaxpr.replace(outvars=closed.jaxpr.invars), [True, True])[0])


def test_operands_that_do_not_fit_are_refused():
    jaxpr = stage(lambda x: [lax.sin(x)], [ShapedArray((3,), "float64")]).jaxpr
    with pytest.raises(TypeError, match="the operands don't fit"):
        lax.checkpoint_call(np.ones(4), jaxpr=jaxpr)
    np.testing.assert_allclose(lax.checkpoint_call(X, jaxpr=jaxpr)[0], np.sin(X))


@pytest.mark.parametrize("count", [0, 2])
def test_another_number_of_operands_is_refused_by_name_on_every_road(count):
    jaxpr = stage(lambda x: [lax.sin(x)], [ShapedArray((3,), "float64")]).jaxpr

    def call(*args):
        return lax.checkpoint_call(*args, jaxpr=jaxpr)

    args, rows = [X] * count, [np.stack([X, X])] * count
    for run in (lambda: call(*args), lambda: cj.jit(call)(*args), lambda: cj.make_jaxpr(call)(*args),
                lambda: cj.vmap(call, axis_size=2)(*rows), lambda: cj.jvp(call, args, args),
                lambda: cj.vjp(call, *args)):
        with pytest.raises(TypeError, match="^checkpoint_call: the operands don't fit the called jaxpr") as raised:
            run()
        assert isinstance(raised.value, CorejaxError) and "checkpoint_call" == raised.value.primitive


# optimization_barrier

def test_the_barrier_is_the_identity_on_trees_under_every_transformation():
    def f(x):
        tree = lax.optimization_barrier({"a": lax.sin(x), "b": [x, 3, np.arange(2)]})
        return (tree["a"] * tree["b"][0] * tree["b"][1]).sum()

    plain = lambda x: (lax.sin(x) * x * 3).sum()
    for name, transform in TRANSFORMATIONS.items():
        np.testing.assert_allclose(transform(f)(X), transform(plain)(X), rtol=1e-12, err_msg=name)
    np.testing.assert_allclose(cj.hessian(f)(X), cj.hessian(plain)(X), rtol=1e-12)
    assert () == lax.optimization_barrier(())
    with pytest.raises(TypeError, match=r"operand\['a'\] is a str"):
        lax.optimization_barrier({"a": "x"})


def test_the_barrier_stands_in_the_program_before_and_behind_it():
    closed = cj.make_jaxpr(cj.grad(lambda x: lax.sin(lax.optimization_barrier(x)).sum()))(X)
    assert 2 == names(closed.jaxpr).count("optimization_barrier")
    assert 1 == cj.jit(lambda x: lax.optimization_barrier((x, x))).lower(X).as_text().count("optimization_barrier")


def test_a_barrier_loses_what_nobody_needs():
    closed = cj.make_jaxpr(lambda x, y: lax.optimization_barrier((x, y))[1])(X, V)
    smaller, used = dce(closed.jaxpr, [True])
    assert (False, True) == used
    assert 1 == len(smaller.eqns[0].invars) == len(smaller.eqns[0].outvars)


# Beside jax

def test_parity_with_jax_in_values_and_numbers_of_equations():
    jax = pytest.importorskip("jax")
    jnp = jax.numpy

    def count(jaxpr):
        inner = [v for eqn in jaxpr.eqns for v in eqn.params.values() if hasattr(v, "eqns") or hasattr(v, "jaxpr")]
        return len(jaxpr.eqns) + sum(count(getattr(v, "jaxpr", v)) for v in inner)

    def programs(m, sin):
        f = m.checkpoint(lambda x: sin(sin(x)) * x)
        nested = m.checkpoint(lambda x: m.checkpoint(lambda y: sin(y) * x)(sin(x)))
        return [lambda x: f(x).sum(), lambda x: nested(x).sum(), lambda x: m.jit(f)(x).sum(),
                lambda x: m.lax.scan(lambda c, _: (f(c), None), x, None, length=3)[0].sum()]

    for i, (ours, theirs) in enumerate(zip(programs(cj, lax.sin), programs(jax, jnp.sin), strict=True)):
        for ours_of, theirs_of in [(ours, theirs), (cj.grad(ours), jax.grad(theirs))]:
            np.testing.assert_allclose(ours_of(X), np.asarray(theirs_of(X)), rtol=1e-6, err_msg=str(i))
            assert count_eqns(cj.make_jaxpr(ours_of)(X).jaxpr) <= count(jax.make_jaxpr(theirs_of)(X)), i
