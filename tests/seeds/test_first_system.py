"""What the first seed system shows, part by part, shown by corejax with the same result.

Each test names the thing that the document shows; the expected values come from calculus and NumPy, not from a run.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

import corejax as cj
from corejax import lax
from corejax.core import Literal, ShapedArray, Var, eval_jaxpr


def chain(x):
    """z = x - 2 sin x: the running example."""
    y = lax.sin(x) * 2.0
    z = -y + x
    return z


def derivative(fun):
    return lambda x: cj.jvp(fun, (x,), (1.0,))[1]


CHAIN_AT_3 = 3.0 - 2.0 * math.sin(3.0)
CHAIN_SLOPE_AT_3 = 1.0 - 2.0 * math.cos(3.0)


# Part 1: interpreters

def test_standard_evaluation():
    np.testing.assert_allclose(chain(3.0), CHAIN_AT_3, rtol=1e-15)


def test_jvp_of_a_primitive_gives_its_derivative():
    y, y_dot = cj.jvp(lax.sin, (3.0,), (1.0,))
    np.testing.assert_allclose([y, y_dot], [math.sin(3.0), math.cos(3.0)], rtol=1e-15)


def test_jvp_of_a_composition():
    y, y_dot = cj.jvp(chain, (3.0,), (1.0,))
    np.testing.assert_allclose([y, y_dot], [CHAIN_AT_3, CHAIN_SLOPE_AT_3], rtol=1e-15)


def test_nested_jvp_goes_round_the_four_derivatives_of_sine():
    d1, d2, d3, d4 = derivative(lax.sin), *[None] * 3
    d2 = derivative(d1)
    d3 = derivative(d2)
    d4 = derivative(d3)
    expected = [math.cos(3.0), -math.sin(3.0), -math.cos(3.0), math.sin(3.0)]
    np.testing.assert_allclose([d(3.0) for d in (d1, d2, d3, d4)], expected, rtol=1e-14)


@pytest.mark.parametrize(("x", "slope"), [(3.0, 2.0), (-3.0, 1.0)])
def test_python_control_flow_on_primal_values(x, slope):
    def fun(x):
        return 2.0 * x if x > 0.0 else x

    assert slope == derivative(fun)(x)
    assert slope == cj.grad(fun)(x)


def test_containers_as_inputs_and_outputs():
    def fun(x):
        y = lax.sin(x) * 2.0
        return {"hi": -y + x, "there": [x, y]}

    out, out_dot = cj.jvp(fun, (3.0,), (1.0,))
    assert ["hi", "there"] == sorted(out) == sorted(out_dot)
    np.testing.assert_allclose([out["hi"], *out["there"]], [CHAIN_AT_3, 3.0, 2 * math.sin(3.0)], rtol=1e-15)
    np.testing.assert_allclose([out_dot["hi"], *out_dot["there"]], [CHAIN_SLOPE_AT_3, 1.0, 2 * math.cos(3.0)],
                               rtol=1e-15)


def test_vmap_of_a_function_that_insists_on_scalars():
    def add_one(scalar):
        assert np.ndim(scalar) == 0
        return 1 + scalar

    np.testing.assert_array_equal(cj.vmap(add_one, (0,))(np.arange(3.0)), [1.0, 2.0, 3.0])


def test_jacfwd_by_vmap_of_jvp():
    def jacobian(fun, x):
        basis = np.eye(x.size).reshape(x.shape * 2)
        return cj.vmap(lambda v: cj.jvp(fun, (x,), (v,))[1], (0,))(basis)

    x = np.arange(3.0)
    np.testing.assert_allclose(jacobian(lax.sin, x), np.diag(np.cos(x)), rtol=1e-15)


# Part 2: jaxprs

def test_jaxpr_of_a_product_with_a_literal():
    jaxpr = cj.make_jaxpr(lambda x: 2.0 * x)(3.0).jaxpr
    (eqn,) = jaxpr.eqns
    assert "mul" == eqn.primitive.name
    literal, var = eqn.invars
    assert type(literal) is Literal and 2.0 == float(literal.val)
    assert var is jaxpr.invars[0]
    assert jaxpr.outvars[0] is eqn.outvars[0]
    assert ["~f64[]"] == [str(v.aval) for v in jaxpr.invars]


def test_staging_captures_what_does_not_depend_on_the_arguments():
    jaxpr = cj.make_jaxpr(lambda: lax.mul(2.0, 2.0))().jaxpr
    assert () == jaxpr.invars
    assert ["mul"] == [eqn.primitive.name for eqn in jaxpr.eqns]
    assert type(jaxpr.outvars[0]) is Var
    assert 4.0 == float(eval_jaxpr(jaxpr, ())[0])


def test_the_type_of_a_jaxpr():
    closed = cj.make_jaxpr(chain)(ShapedArray((), np.float64))
    assert [ShapedArray((), np.float64)] == closed.in_avals == closed.out_avals
    assert ["sin", "mul", "neg", "add"] == [eqn.primitive.name for eqn in closed.eqns]


# Part 3: jit

def test_jit_traces_once_for_equal_types():
    traces = []

    @cj.jit
    def fun(x, y):
        traces.append(1)
        return lax.sin(x) * lax.cos(y)

    np.testing.assert_allclose(fun(3.0, 4.0), math.sin(3.0) * math.cos(4.0), rtol=1e-14)
    np.testing.assert_allclose(fun(4.0, 5.0), math.sin(4.0) * math.cos(5.0), rtol=1e-14)
    assert 1 == len(traces)


def test_jit_of_a_reduction():
    assert 6.0 == float(cj.jit(lambda x: lax.reduce_sum(x, (0,)))(np.array([1.0, 2.0, 3.0])))


def test_jit_of_nested_derivatives():
    second = derivative(derivative(chain))
    np.testing.assert_allclose(second(3.0), 2.0 * math.sin(3.0), rtol=1e-14)
    np.testing.assert_allclose(cj.jit(second)(3.0), 2.0 * math.sin(3.0), rtol=1e-14)


def test_transformations_of_jitted_functions_do_not_trace_again():
    traces = []

    @cj.jit
    def fun(x):
        traces.append(1)
        return chain(x)

    for _ in range(2):
        y, y_dot = cj.jvp(fun, (3.0,), (1.0,))
        np.testing.assert_allclose([y, y_dot], [CHAIN_AT_3, CHAIN_SLOPE_AT_3], rtol=1e-14)
    assert 1 == len(traces)
    x = np.arange(3.0)
    np.testing.assert_allclose(cj.vmap(fun, (0,))(x), x - 2.0 * np.sin(x), rtol=1e-14)


def test_results_of_jit_stay_on_the_device():
    y = cj.jit(chain)(3.0)
    assert type(y) is cj.Array
    assert cj.devices()[0] in y.devices()
    np.testing.assert_allclose([-y, y + y], [-CHAIN_AT_3, 2 * CHAIN_AT_3], rtol=1e-14)


def test_a_nested_jit_prints_with_its_jaxpr():
    text = str(cj.make_jaxpr(cj.jit(chain))(3.0))
    assert "xla_call" in text
    assert text.count("lambda") == 2


# Part 4: linearize, vjp, grad

def test_linearize_a_primitive():
    y, sin_lin = cj.linearize(lax.sin, 3.0)
    np.testing.assert_allclose([y, sin_lin(1.0)], [math.sin(3.0), math.cos(3.0)], rtol=1e-15)


def test_linearize_a_jitted_function():
    y, f_lin = cj.linearize(cj.jit(chain), 3.0)
    np.testing.assert_allclose([y, f_lin(1.0)], [CHAIN_AT_3, CHAIN_SLOPE_AT_3], rtol=1e-14)


def test_linearize_jitted_functions_that_call_jitted_functions():
    @cj.jit
    def outer(x):
        return inner(x, lax.sin(x) * 2.0)

    @cj.jit
    def inner(x, y):
        return lax.cos(x) + y

    y, f_lin = cj.linearize(outer, 3.0)
    expected = [math.cos(3.0) + 2 * math.sin(3.0), -math.sin(3.0) + 2 * math.cos(3.0)]
    np.testing.assert_allclose([y, f_lin(1.0)], expected, rtol=1e-14)


def test_grad():
    y, f_vjp = cj.vjp(chain, 3.0)
    np.testing.assert_allclose([y, *f_vjp(1.0)], [CHAIN_AT_3, CHAIN_SLOPE_AT_3], rtol=1e-14)
    np.testing.assert_allclose(cj.grad(chain)(3.0), CHAIN_SLOPE_AT_3, rtol=1e-14)


def nested_calls(x):
    """Jitted closures over outer arguments, four deep, with a jvp in the middle."""
    @cj.jit
    def bar(y):
        def baz(w):
            q = cj.jit(lambda x: y)(x)
            q = q + cj.jit(lambda: y)()
            q = q + cj.jit(lambda y: w + y)(y)
            return cj.jit(lambda w: cj.jit(lax.sin)(x) * y)(1.0) + q

        p, t = cj.jvp(baz, (x + 1.0,), (y,))
        return t + (x * p)

    return bar(x)


@pytest.mark.parametrize(("fun", "value", "slope", "curvature"), [
    # The document applies its stress test to whichever `f` was defined last; here: to both candidates.
    (chain, CHAIN_AT_3, CHAIN_SLOPE_AT_3, 2 * math.sin(3.0)),
    # baz(x+1) = 3x + (x+1) + x sin x and its tangent is x, so the function is x + x (4x + 1 + x sin x).
    (nested_calls, 3 + 3 * (13 + 3 * math.sin(3.0)),
     2 + 8 * 3 + 2 * 3 * math.sin(3.0) + 9 * math.cos(3.0),
     8 + 2 * math.sin(3.0) + 4 * 3 * math.cos(3.0) - 9 * math.sin(3.0)),
])
def test_compositionality_stress(fun, value, slope, curvature):
    jit, grad, jvp, vmap = cj.jit, cj.grad, cj.jvp, cj.vmap
    values = [fun(3.0), jit(fun)(3.0), jvp(fun, (3.0,), (5.0,))[0], jvp(jit(fun), (3.0,), (5.0,))[0]]
    np.testing.assert_allclose(values, [value] * 4, rtol=1e-13)
    slopes = [grad(fun)(3.0), grad(jit(fun))(3.0), jit(grad(jit(fun)))(3.0), jvp(fun, (3.0,), (1.0,))[1],
              jvp(jit(fun), (3.0,), (1.0,))[1]]
    np.testing.assert_allclose(slopes, [slope] * 5, rtol=1e-13)
    curvatures = [grad(grad(fun))(3.0), grad(grad(jit(fun)))(3.0), grad(jit(grad(fun)))(3.0), jit(grad(grad(fun)))(3.0),
                  jvp(grad(fun), (3.0,), (1.0,))[1], jvp(jit(grad(fun)), (3.0,), (1.0,))[1],
                  jvp(grad(jit(fun)), (3.0,), (1.0,))[1], grad(lambda x: jvp(fun, (x,), (1.0,))[1])(3.0)]
    np.testing.assert_allclose(curvatures, [curvature] * 8, rtol=1e-13)
    many = vmap(jit(grad(jit(fun))))(np.array([3.0, 3.0]))
    np.testing.assert_allclose(many, [slope] * 2, rtol=1e-13)
