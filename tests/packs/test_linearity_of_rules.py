"""Rules are held to linearity in the tangents; what is linear passes, whatever programs and infinities it goes through.

The oracle is the same function without `jit`, and central differences in float64.
"""

from __future__ import annotations

import numpy as np
import pytest

import corejax as cj
from corejax import lax
from corejax.core import ShapedArray, eval_jaxpr
from corejax.errors import NotLinearError, RuleError
from corejax.plugin import define, hookimpl

X = 0.5


def custom_square():
    square = cj.custom_jvp(lambda a: a * a)
    square.defjvp(lambda primals, tangents: (square(*primals), 2.0 * primals[0] * tangents[0]))
    return square


SQUARES = {
    "jit": lambda: cj.jit(lambda a: a * a),
    "scan": lambda: lambda a: lax.scan(lambda c, _: (c * a, None), a, None, length=1)[0],
    "fori_loop": lambda: lambda a: lax.fori_loop(0, 2, lambda i, c: c * a, 1.0),
    "map": lambda: lambda a: lax.map(lambda t: t * a * a, np.array([1.0, 2.0]))[0],
    "cond": lambda: lambda a: lax.cond(a > 0, lambda v: v * v, lambda v: v, a),
    "checkpoint": lambda: cj.checkpoint(lambda a: a * a),
    "custom_jvp": custom_square,
    "while_loop": lambda: lambda a: lax.while_loop(lambda s: s[0] < 2, lambda s: (s[0] + 1, s[1] * a), (0, 1.0))[1],
}
LOOPS = {
    "fori_loop": lambda square: lambda x: lax.fori_loop(0, 2, lambda i, c: c + lax.sin(square(x)), 0.0),
    "scan": lambda square: lambda x: lax.scan(lambda c, y: (c + lax.sin(square(x)) * y, None), 0.0, np.ones(2))[0],
    "map": lambda square: lambda x: lax.map(lambda y: lax.sin(square(x)) * y, np.ones(2)).sum(),
}


def difference(f, x, h=1e-6):
    return (float(f(x + h)) - float(f(x - h))) / (2 * h)


PAIRS = [*[("fori_loop", inner) for inner in SQUARES], ("scan", "jit"), ("map", "cond")]


@pytest.mark.parametrize("outer, inner", PAIRS)
def test_a_body_may_apply_anything_to_what_an_inner_program_makes_of_an_invariant(outer, inner):
    f = LOOPS[outer](SQUARES[inner]())
    wanted = difference(f, X)
    assert np.isclose(wanted, float(cj.jvp(cj.jit(f), (X,), (1.0,))[1]))
    if inner == "while_loop":
        return  # which has no reverse mode
    ways = (cj.grad(f), cj.grad(cj.jit(f)), cj.jit(cj.grad(f)), cj.grad(cj.checkpoint(f)),
            lambda x: cj.vmap(cj.grad(cj.jit(f)))(np.array([x]))[0])
    turn = PAIRS.index((outer, inner))
    for way in (ways[0], ways[1 + turn % 2], ways[3 + turn // 2 % 2]):
        assert np.isclose(wanted, float(way(X)))
    assert np.isclose(difference(cj.grad(f), X), float(cj.hessian(cj.jit(f))(X)))


def dual_square(p, t):
    return p * p, 2.0 * p * t


def jvp_of_jitted(p, t):
    return cj.jvp(cj.jit(lambda a: a * a), (p,), (t,))


def dual_custom(p, t):
    f = cj.custom_jvp(dual_square)
    f.defjvp(lambda primals, dots: (dual_square(*primals), (
        2.0 * primals[0] * dots[0], 2.0 * primals[1] * dots[0] + 2.0 * primals[0] * dots[1])))
    return f(p, t)


DUALS = {
    "jvp of a jitted function": jvp_of_jitted,
    "jit": cj.jit(dual_square),
    "cond": lambda p, t: lax.cond(p > 0, dual_square, lambda p, t: (p, t), p, t),
    "scan, in the carry": lambda p, t: lax.scan(lambda c, _: (dual_square(*c), None), (p, t), None, length=1)[0],
    "scan, in outputs": lambda p, t: [y[0] for y in lax.scan(
        lambda c, _: (c, dual_square(*c)), (p, t), None, length=2)[1]],
    "checkpoint": cj.checkpoint(dual_square),
    "vmap": lambda p, t: [y[0] for y in cj.vmap(dual_square)(lax.full((2,), 1.0) * p, lax.full((2,), 1.0) * t)],
    "custom_jvp": dual_custom,
}


@pytest.mark.parametrize("dual", DUALS)
def test_a_rule_may_take_primal_and_tangent_through_one_program(dual):
    f = cj.custom_jvp(lambda x: lax.sin(x * x))

    @f.defjvp
    def rule(primals, tangents):
        p, t = DUALS[dual](primals[0], tangents[0])
        return lax.sin(p), lax.cos(p) * t

    wanted = 2 * X * np.cos(X * X)
    for transformed in (cj.grad(f), cj.grad(cj.jit(f)), cj.jit(cj.grad(f)), cj.grad(cj.checkpoint(f)),
                        lambda x: cj.vmap(cj.grad(cj.jit(f)))(np.array([x]))[0],
                        lambda x: cj.jvp(cj.jit(f), (x,), (1.0,))[1]):
        assert np.isclose(wanted, float(transformed(X)))
    second = 2 * np.cos(X * X) - 4 * X * X * np.sin(X * X)
    assert np.isclose(second, float(cj.hessian(cj.jit(f))(X)))


@pytest.mark.parametrize("through", ["jit", "cond", "scan, in the carry", "checkpoint"])
@pytest.mark.parametrize("transform", [lambda f: cj.grad(f), lambda f: cj.grad(cj.jit(f)),
                                       lambda f: lambda x: cj.jvp(cj.jit(f), (x,), (1.0,))])
def test_a_function_of_a_tangent_that_comes_out_of_a_program_is_still_refused(through, transform):
    f = cj.custom_jvp(lambda x: lax.sin(x * x))

    @f.defjvp
    def rule(primals, tangents):
        p, t = DUALS[through](primals[0], tangents[0])
        return lax.sin(p), lax.sin(t)

    with pytest.raises(NotLinearError, match="the jvp rule of <lambda>: is not linear in the tangents") as caught:
        transform(f)(X)
    assert "sin of a tangent" == caught.value.got


@pytest.mark.parametrize("branches", [
    (lambda t: 2.0 * t, lambda t: 3.0 * t), (lambda t: t, lambda t: 0.0 * t)])
def test_a_rule_may_take_a_tangent_through_a_cond_that_is_mapped(branches):
    f = cj.custom_jvp(lambda x: x)
    f.defjvp(lambda p, t: (f(p[0]), lax.cond(p[0] > 0, *branches, t[0])))
    xs = np.array([1.0, -1.0])
    wanted = [float(branch(1.0)) for branch in branches]
    for transformed in (cj.grad(lambda x: cj.vmap(f)(x).sum()), cj.vmap(cj.grad(f)), cj.jit(cj.vmap(cj.grad(f))),
                        cj.grad(cj.jit(lambda x: cj.vmap(f)(x).sum())),
                        cj.grad(lambda x: lax.map(cj.vmap(f), x[None]).sum()),
                        lambda x: cj.jvp(cj.vmap(f), (x,), (np.ones(2),))[1]):
        assert wanted == transformed(xs).tolist()


class CallingLazily:
    """Carries a program, and says nothing of what its results depend on."""

    name = "calling_lazily"
    multiple_results = True

    @hookimpl
    def abstract_eval(self, avals, *, jaxpr):
        return jaxpr.out_avals

    @hookimpl
    def decompose(self, args, *, jaxpr):
        return eval_jaxpr(jaxpr, (), *args)

    @hookimpl
    def dce(self, eqn, used_out):
        return [True] * len(eqn.invars), eqn


def test_nothing_is_refused_where_dependence_is_not_told():
    calling = define(CallingLazily())
    aval = ShapedArray((), np.float64)
    jaxpr = cj.core.stage(lambda p, t: [lax.mul(p, p), lax.mul(p, t)], [aval, aval]).jaxpr
    f = cj.custom_jvp(lambda x: lax.sin(x * x))

    @f.defjvp
    def rule(primals, tangents):
        (p, t), x = calling(primals[0], tangents[0], jaxpr=jaxpr), primals[0]
        return lax.sin(p), 2.0 * lax.cos(x * x) * t

    out, dot = cj.jvp(cj.jit(f), (np.float64(X),), (1.0,))
    assert np.isclose(2 * X * np.cos(X * X), float(dot))
    assert np.isclose(np.sin(X * X), float(out))


# Infinities

def scaled_log():
    """log(x) * m, by a rule whose term for x is nan at x = 0."""
    f = cj.custom_jvp(lambda x, m: lax.log(x) * m)
    f.defjvp(lambda p, t: (f(*p), t[0] * p[1] / p[0] + lax.log(p[0]) * t[1]))
    return f


@pytest.mark.parametrize("transform", [
    lambda f: cj.grad(f)(2.0), lambda f: cj.jit(cj.grad(f))(2.0), lambda f: cj.grad(cj.jit(f))(2.0),
    lambda f: cj.vmap(cj.grad(f))(np.array([2.0]))[0], lambda f: cj.linearize(f, 2.0)[1](1.0),
    lambda f: cj.vjp(f, 2.0)[1](1.0)[0]])
def test_a_term_of_zero_tangents_is_dropped_though_it_is_nan(transform):
    f = scaled_log()
    assert float("-inf") == float(transform(lambda m: f(0.0, m)))


def test_a_tangent_made_of_zero_tangents_alone_is_zero():
    f = cj.custom_jvp(lambda x, m: lax.log(x) + 0.0 * m)
    f.defjvp(lambda p, t: (f(*p), t[0] / p[0]))
    assert 0.0 == float(cj.grad(lambda m: f(0.0, m))(2.0))


def test_terms_of_zero_tangents_are_dropped_in_rules_of_primitives():
    class Log:
        name = "log_of_product"

        @hookimpl
        def abstract_eval(self, avals):
            return avals[0]

        @hookimpl
        def impl(self, args):
            return np.log(args[0]) + args[1]

        @hookimpl
        def jvp(self, primals, tangents):
            (x, y), (x_dot, y_dot) = primals, tangents
            return log(x, y), lax.div(x_dot, x) + y_dot

    log = define(Log())
    zeros = np.zeros(2)
    assert [1.0, 1.0] == cj.grad(lambda y: log(zeros, y).sum())(np.ones(2)).tolist()


@pytest.mark.parametrize("constant", [1.0, float("nan"), float("inf")])
def test_a_constant_made_of_no_tangent_is_an_error(constant):
    f = cj.custom_jvp(lambda x, m: x * m)
    f.defjvp(lambda p, t: (f(*p), t[0] * p[1] + p[0] * t[1] + constant))
    with pytest.raises(RuleError, match="is not linear") as caught:
        cj.grad(lambda m: f(3.0, m))(2.0)
    assert "add of a tangent and a constant" == caught.value.got


# Loops that don't run

def nothing(body):
    return lambda x: lax.fori_loop(0, 0, lambda i, c: body(c, x), x)


NEVER = {
    "fori_loop": nothing(lambda c, x: c + lax.sqrt(x)),
    "scan": lambda x: lax.scan(lambda c, y: (c + lax.sqrt(x) * y, c * y), x, np.zeros(0))[0],
    "in a loop": lambda x: lax.fori_loop(0, 2, lambda i, c: nothing(lambda d, x: d + lax.sqrt(x))(x) + 0.0 * c, x),
    "around a loop": nothing(lambda c, x: lax.fori_loop(0, 2, lambda j, d: d + lax.sqrt(x), c)),
    "reversed": lambda x: lax.scan(lambda c, y: (c + lax.sqrt(x), c), x, None, length=0, reverse=True)[0],
}


@pytest.mark.parametrize("name", NEVER)
def test_what_was_taken_out_of_a_loop_does_not_act_if_the_loop_does_not_run(name):
    f = NEVER[name]
    for transformed in (cj.grad(f), cj.jit(cj.grad(f)), cj.grad(cj.jit(f)), cj.jit(cj.jacfwd(f)),
                        lambda x: cj.jit(cj.vmap(cj.grad(f)))(np.array([x]))[0]):
        assert 1.0 == float(transformed(0.0))
    assert 0.0 == float(cj.jit(cj.hessian(f))(0.0))


def test_a_map_over_nothing_has_a_derivative_of_zero():
    assert 0.0 == float(cj.jit(cj.grad(lambda x: lax.map(lambda y: y * lax.sqrt(x), np.zeros(0)).sum()))(0.0))
