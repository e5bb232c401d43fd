"""The fixed point of the page on carrying programs: its value and its derivatives, in every order."""

from __future__ import annotations

import doctest
from pathlib import Path

import numpy as np
import pytest

import corejax as cj
from corejax import lax
from corejax.core import stage
from corejax.errors import CorejaxTypeError
from corejax.plugin import Sample
from corejax.testing import check_primitive

PAGE = Path(__file__).parents[3] / "docs/carrying-programs.md"


def of_the_page():
    """The function that the page defines, from its own code."""
    scope = {"__name__": __name__}
    for example in doctest.DocTestParser().get_examples(PAGE.read_text()):
        if example.source.startswith(("from ", "import ", "class FixedPoint", "fixed_point =")):
            exec(compile(example.source, str(PAGE), "exec"), scope)
    return scope["fixed_point"]


fixed_point = of_the_page()
TIGHT = {"tol": 1e-14}


def cosine(a):
    """The x for which x == a cos(x), for a single a."""
    return fixed_point(lambda x: a * lax.cos(x), 0.5, **TIGHT)


def cosines(a):
    """The same for an array."""
    return fixed_point(lambda x: a * lax.cos(x), np.full(np.shape(a), 0.5), **TIGHT)


def unrolled(a, steps=200):
    x = 0.5 + 0.0 * a
    for _ in range(steps):
        x = a * lax.cos(x)
    return x


def slope(a):
    """The derivative in closed form."""
    x = float(cosine(a))
    return np.cos(x) / (1.0 + a * np.sin(x))


A = np.array([-0.6, 0.1, 0.7])


def close(expected, got, rtol=1e-11):
    np.testing.assert_allclose(np.asarray(got), np.asarray(expected), rtol=rtol, atol=rtol)


# Values

def test_it_is_where_the_function_does_not_move():
    close(np.sqrt(2.0), fixed_point(lambda x: (x + 2.0 / x) / 2.0, 1.0))
    x = cosine(0.7)
    close(0.7 * np.cos(float(x)), x)
    close(x, cj.jit(cosine)(0.7))


def test_each_element_of_a_map_converges_like_alone():
    fast_and_slow = np.array([0.001, 0.9, -0.95])
    alone = [float(cosine(a)) for a in fast_and_slow]
    close(alone, cj.vmap(cosine)(fast_and_slow))
    close(alone, cj.jit(cj.vmap(cosine))(fast_and_slow))
    close(alone, cosines(fast_and_slow))
    primitives = [eqn.primitive.name for eqn in cj.make_jaxpr(cj.vmap(cosine))(fast_and_slow).eqns]
    assert 1 == primitives.count("demo_fixed_point") and "while_loop" not in primitives


def test_starting_points_may_be_mapped_alone():
    root = cj.vmap(lambda start: fixed_point(lambda x: (x + 2.0 / x) / 2.0, start))
    close([np.sqrt(2.0)] * 3, root(np.array([0.1, 1.0, 50.0])))


def test_it_stops_after_so_many_steps_and_at_nan():
    assert 8.0 == fixed_point(lambda x: 2.0 * x, 1.0, steps=3)
    assert np.isnan(fixed_point(lambda x: x * np.nan, 1.0))


def test_nothing_is_a_fixed_point_of_nothing():
    assert () == fixed_point(lambda x: x, ())


def test_narrow_floats_converge_to_their_own_precision():
    x = fixed_point(lambda x: lax.cos(x), np.float32(0.5), tol=1e-6)
    assert np.float32 == x.dtype
    close(0.7390851, x, 1e-6)


def test_complex_numbers_converge_too():
    x = fixed_point(lambda x: (x + (-1.0 + 0.0j) / x) / 2.0, 0.5 + 0.5j)
    close(1j, x)


def test_what_cannot_converge_is_refused():
    with pytest.raises(CorejaxTypeError, match="only floats converge"):
        fixed_point(lambda x: x + 1, 0)
    with pytest.raises(CorejaxTypeError, match="different structure than it was given, at x"):
        fixed_point(lambda x: (x, x), 1.0)
    with pytest.raises(CorejaxTypeError, match="x is a str, not an array"):
        fixed_point(lambda x: x, "one")


# Derivatives

@pytest.mark.parametrize("a", A)
def test_first_derivatives_are_those_in_closed_form_and_of_differences(a):
    h = 1e-6
    differences = (float(cosine(a + h)) - float(cosine(a - h))) / (2 * h)
    for derivative in (cj.grad(cosine), cj.jit(cj.grad(cosine)), cj.grad(cj.jit(cosine)), cj.jacfwd(cosine),
                       lambda a: cj.jvp(cosine, (a,), (1.0,))[1], lambda a: cj.linearize(cosine, a)[1](1.0)):
        close(slope(a), derivative(a))
        close(differences, derivative(a), 1e-8)


def test_derivatives_are_those_of_many_steps_unrolled():
    for derivative in (cj.grad, lambda f: cj.grad(cj.grad(f)), lambda f: cj.jacfwd(cj.grad(f)), cj.hessian,
                       lambda f: cj.grad(cj.jacfwd(f))):
        close([derivative(unrolled)(a) for a in A], [derivative(cosine)(a) for a in A], 1e-9)
    close(cj.grad(cj.grad(cj.grad(unrolled)))(0.3), cj.grad(cj.grad(cj.grad(cosine)))(0.3), 1e-8)


def test_maps_of_gradients_and_gradients_of_maps_agree():
    slopes = [slope(a) for a in A]
    close(slopes, cj.vmap(cj.grad(cosine))(A))
    close(slopes, cj.jit(cj.vmap(cj.grad(cosine)))(A))
    close(slopes, cj.grad(lambda a: cj.vmap(cosine)(a).sum())(A))
    close(slopes, cj.grad(lambda a: cosines(a).sum())(A))
    close(np.diag(slopes), cj.jacfwd(cosines)(A))
    close(np.diag(slopes), cj.jacrev(cj.vmap(cosine))(A))
    close(cj.vmap(cj.grad(cj.grad(unrolled)))(A), cj.vmap(cj.grad(cj.grad(cosine)))(A), 1e-9)
    close(np.diag(cj.vmap(cj.grad(cj.grad(unrolled)))(A)), cj.hessian(lambda a: cj.vmap(cosine)(a).sum())(A), 1e-9)


def test_systems_of_equations_have_the_derivatives_of_the_implicit_function_theorem():
    rng = np.random.default_rng(0)
    m, b = 0.3 * rng.standard_normal((4, 4)), rng.standard_normal(4)

    def solve(m, b):
        return fixed_point(lambda x: lax.sin(m @ x) + b, np.zeros(4), **TIGHT)
    x = np.asarray(solve(m, b))
    inner = np.diag(np.cos(m @ x))
    by_b = np.linalg.inv(np.eye(4) - inner @ m)
    close(by_b, cj.jacrev(solve, argnums=1)(m, b))
    close(by_b, cj.jacfwd(solve, argnums=1)(m, b))
    by_m = np.einsum("ij,jk,l->ikl", by_b, inner, x)
    close(by_m, cj.jacrev(solve)(m, b))
    close(by_m, cj.jit(cj.jacfwd(solve))(m, b))
    batch = rng.standard_normal((3, 4))
    close([cj.jacrev(solve, argnums=1)(m, b) for b in batch], cj.vmap(cj.jacrev(solve, argnums=1), (None, 0))(m, batch))


def test_a_linear_system_solved_by_it_is_differentiated_as_such():
    m = np.array([[0.2, 0.3], [-0.1, 0.4]])
    inverse = np.linalg.inv(np.eye(2) - m)

    def solve(b):
        return fixed_point(lambda x: m @ x + b, np.zeros(2), **TIGHT)
    close(inverse, cj.jacfwd(solve)(np.ones(2)))
    close(inverse, cj.jacrev(solve)(np.ones(2)))
    close(np.zeros((2, 2, 2)), cj.hessian(solve)(np.ones(2)))


def test_states_are_pytrees_and_so_is_what_is_closed_over():
    def solve(params):
        def step(state):
            return {"x": params["a"] * lax.cos(state["y"][0]), "y": (params["b"] * lax.sin(state["x"]),)}
        return fixed_point(step, {"x": 0.0, "y": (np.zeros(()),)}, **TIGHT)

    def unroll(params):
        x, y = 0.0 * params["a"], 0.0 * params["b"]
        for _ in range(100):
            x, y = params["a"] * lax.cos(y), params["b"] * lax.sin(x)
        return x * y

    def product(params):
        state = solve(params)
        return state["x"] * state["y"][0]
    params = {"a": 0.5, "b": 0.3}
    expected, got = cj.grad(unroll)(params), cj.grad(product)(params)
    assert expected.keys() == got.keys()
    for name in params:
        close(expected[name], got[name], 1e-9)
    close(cj.hessian(unroll)(params)["a"]["b"], cj.hessian(product)(params)["a"]["b"], 1e-9)


def test_integers_may_be_closed_over_and_unused_values_have_zero_gradients():
    def power(a, n):
        return fixed_point(lambda x: 0.1 * a * x ** 2 + 0.1 * n, 0.0, **TIGHT)
    assert cj.grad(power)(1.0, 3) > 0.0
    assert 0.0 == cj.grad(lambda a: fixed_point(lambda x: 0.5 * x + 1.0, a))(3.0)
    assert 0.0 == cj.jvp(lambda a: fixed_point(lambda x: 0.5 * x + 1.0, a), (3.0,), (1.0,))[1]


def test_fixed_points_nest_within_each_other_and_in_loops():
    def nested(a):
        return fixed_point(lambda x: a * lax.cos(x) + 0.1 * cosine(0.1 * x * a), 0.0, **TIGHT)

    def unroll(a):
        x = 0.0 * a
        for _ in range(60):
            x = a * lax.cos(x) + 0.1 * unrolled(0.1 * x * a, 12)
        return x
    close(unroll(0.4), nested(0.4))
    close(cj.grad(unroll)(0.4), cj.grad(nested)(0.4), 1e-9)

    def in_a_scan(a):
        return lax.scan(lambda c, _: (cosine(c), None), a, None, length=3)[0]
    close(slope(0.7) * slope(float(cosine(0.7))) * slope(float(cosine(cosine(0.7)))), cj.grad(in_a_scan)(0.7))
    close(cj.grad(in_a_scan)(0.7), cj.jit(cj.grad(cj.checkpoint(in_a_scan)))(0.7))


def test_nothing_is_kept_of_the_steps():
    program = cj.make_jaxpr(cj.grad(cosine))(0.7)
    solves = [eqn for eqn in program.eqns if eqn.primitive.name == "demo_fixed_point"]
    assert 2 == len(solves)  # one for the value, one on the way back
    assert all(not x.aval.shape for eqn in solves for x in (*eqn.invars, *eqn.outvars))


@cj.custom_vjp
def cosine_by_rules(x):
    return lax.cos(x)


cosine_by_rules.defvjp(lambda x: (cosine_by_rules(x), x), lambda x, ct: (-lax.sin(x) * ct,))


@pytest.mark.parametrize("step", [
    lambda a, x: lax.cond(x > 0.2, lambda x: a * lax.cos(x), lambda x: a + 0.0 * x, x),
    lambda a, x: lax.scan(lambda c, _: (a * lax.cos(c), None), x, None, length=2)[0],
    lambda a, x: cj.jit(lambda x: a * lax.cos(x))(x),
    lambda a, x: cj.checkpoint(lambda x: a * lax.cos(x))(x),
    lambda a, x: a * cosine_by_rules(x)], ids=["cond", "scan", "jit", "checkpoint", "custom_vjp"])
def test_steps_may_carry_programs_of_their_own(step):
    def solve(a):
        return fixed_point(lambda x: step(a, x), 0.1, **TIGHT)
    close(slope(0.7), cj.grad(solve)(0.7))
    close(slope(0.7), cj.jit(cj.vmap(cj.grad(solve)))(np.array([0.7, 0.1]))[0])


# The laws

def samples():
    def sample(step, args, consts, results, tol=1e-15, steps=2000):
        jaxpr = stage(step, [cj.core.aval_of(x) for x in args]).jaxpr
        return Sample(args, {"jaxpr": jaxpr, "consts": consts, "tol": tol, "steps": steps}, results=results,
                      domain=[(0.2, 0.6)] * consts + [None] * (len(args) - consts))
    yield sample(lambda x: [lax.cos(x)], [np.array(0.5)], 0, [np.array(0.7390851332151607)])
    yield sample(lambda a, x: [a * lax.cos(x)], [np.array(0.5), np.array(0.0)], 1, [np.array(0.45018361129487355)],
                 1e-16, 1000)


@pytest.mark.exhaustive
def test_the_primitive_keeps_the_laws_of_the_conformance_kit():
    check_primitive(fixed_point, list(samples()))
