"""How rules are derived from what plugins say: each kind of declaration, and rules that return something wrong."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import corejax as cj
from corejax import lax, taylor
from corejax.errors import CorejaxNotImplementedError, RuleError
from corejax.plugin import (
    Effect,
    Zero,
    define,
    factors,
    hookimpl,
    itself,
    not_differentiable,
    over,
    partials,
)


class Base:
    """A primitive whose values are those of a function."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function

    @hookimpl
    def abstract_eval(self, avals: Any) -> Any:
        return avals[0].update(weak_type=all([aval.weak_type for aval in avals]))

    @hookimpl
    def impl(self, args: Any) -> Any:
        return self._function(*args)


def made(name: str, function: Callable[..., Any], **said: Any) -> Any:
    """The function of a primitive that says this of itself."""
    return define(type("Plugin", (Base,), {"name": name, **said})(function))


def agrees(function: Callable[..., Any], *xs: float, order: int = 5) -> None:
    """Its series is that of derivatives of derivatives, along a curve."""
    def along(t: Any) -> Any:
        return function(*[x + t * (1.0 + i) + 0.5 * t * t for i, x in enumerate(xs)])

    wanted, derivative = [], along
    for _ in range(order + 1):
        wanted.append(float(derivative(0.0)))
        derivative = (lambda f: lambda t: cj.jvp(f, (t,), (1.0,))[1])(derivative)
    got = [float(d) for d in taylor.derivatives(along, 0.0, order)]
    np.testing.assert_allclose(got, wanted, rtol=1e-11, atol=1e-13)


def test_factors_with_feedback_and_over() -> None:
    agrees(made("j_exp", np.exp, jvp=factors(lambda out, x: out)), 0.4)
    agrees(made("j_log", np.log, jvp=factors(over(lambda out, x: x))), 1.4)
    agrees(made("j_root", np.sqrt, jvp=factors(over(lambda out, x: out + out))), 1.4)
    agrees(made("j_difference", lambda x, y: x - y, jvp=factors(1, -1)), 1.4, 0.3)
    agrees(made("j_first", lambda x, y: x + np.floor(y), jvp=factors(1, None)), 1.4, 0.3)


def test_functions_whose_derivatives_are_each_other() -> None:
    sine = made("j_sin", np.sin, jvp=factors(lambda out, x: cosine(x)))
    cosine = made("j_cos", np.cos, jvp=factors(lambda out, x: -sine(x)))
    agrees(sine, 0.4)
    eqns = [len(cj.make_jaxpr(lambda x, n=n: taylor.derivatives(sine, x, n))(0.4).eqns) for n in (4, 8, 16)]
    assert eqns[2] < 5 * eqns[1] < 25 * eqns[0]


def test_products_of_any_number_of_operands() -> None:
    times = made("j_times", lambda x, y: x * y, jvp=partials(itself, itself))
    agrees(times, 0.4, 1.2)
    agrees(lambda x: times(x, x), 0.4)
    triple = made("j_triple", lambda x, y, z: x * y * z, jvp=partials(itself, itself, itself))
    agrees(triple, 0.4, 1.2, -0.7)
    agrees(lambda x, y: triple(x, 2.0, y), 0.4, 1.2)
    agrees(lambda x: triple(x, x, x), 0.4)


def test_an_operand_in_which_it_is_not_linear_beside_some_in_which_it_is() -> None:
    scaled = made("j_scaled", lambda x, y: x * np.exp(y), jvp=partials(itself, lambda t, out, x, y: out * t))
    agrees(scaled, 0.4, 1.2)
    agrees(lambda x: scaled(x, 1.5), 0.4)
    agrees(lambda y: scaled(1.5, y), 0.4)


def test_linear_operands() -> None:
    mean = made("j_mean", lambda x, y: (x + y) / 2.0, linear=(0, 1),
                transpose=hookimpl(lambda self, cotangents, args: [cotangents / 2.0] * 2))
    agrees(mean, 0.4, 1.2)
    agrees(lambda x: mean(x, 3.0), 0.4)


def test_a_composition() -> None:
    class Softplus:
        name = "j_softplus"

        @hookimpl
        def decompose(self, args: Any) -> Any:
            return lax.log1p(lax.exp(args[0]))
    agrees(define(Softplus()), 0.4)


def test_a_rule_of_values_and_tangents() -> None:
    def jvp(self: Any, primals: Any, tangents: Any) -> Any:
        (x,), (x_dot,) = primals, tangents
        return cube(x), 3.0 * x * x * x_dot
    cube = made("j_cube", lambda x: x ** 3, jvp=hookimpl(jvp))
    agrees(cube, 0.4)


def test_a_rule_that_sees_which_tangents_are_zero() -> None:
    seen: list[bool] = []

    def jvp(self: Any, primals: Any, tangents: Any) -> Any:
        (x, y), (x_dot, y_dot) = primals, tangents
        seen.append(type(y_dot) is Zero)
        dot = y * x_dot if seen[-1] else y * x_dot + x * y_dot
        return product(x, y), dot
    product = made("j_product", lambda x, y: x * y, jvp=hookimpl(jvp), symbolic_zeros=True)
    agrees(lambda x: product(x, 2.0), 0.4)
    assert all(seen)
    agrees(product, 0.4, 1.3)


def test_refusals_are_the_primitives_own() -> None:
    whole = made("j_whole", lambda x, y: x + y, jvp=not_differentiable("it has no slope"))
    half = made("j_half", lambda x, y: x + y, jvp=partials(lambda t, out, x, y: t, not_differentiable("not by y")))
    with pytest.raises(CorejaxNotImplementedError, match="it has no slope"):
        taylor.derivatives(lambda x: whole(x, 1.0), 1.0, 2)
    with pytest.raises(CorejaxNotImplementedError, match="not by y"):
        taylor.derivatives(lambda y: half(1.0, y), 1.0, 2)
    agrees(lambda x: half(x, 1.0), 0.4)
    nothing = made("j_nothing", lambda x, y: x + y)
    with pytest.raises(CorejaxNotImplementedError, match="j_nothing"):
        taylor.derivatives(lambda x: nothing(x, 1.0), 1.0, 1)


def test_an_effect_that_refuses_derivatives() -> None:
    once = Effect("j_effect", refused={"derivative": "it would count twice; leave it out"})
    counted = made("j_counted", lambda x: x, jvp=factors(1), effects=hookimpl(lambda self, avals: frozenset([once])))
    with pytest.raises(CorejaxNotImplementedError, match="it would count twice"):
        taylor.derivatives(counted, 1.0, 2)


@pytest.mark.parametrize(("returned", "message"), [
    (lambda out, t: out, "didn't return a pair"), (lambda out, t: (out, t, t), "didn't return a pair"),
    (lambda out, t: (out, lax.convert_element_type(t, np.float32)), "returned tangent f32"),
    (lambda out, t: (out, lax.broadcast(t, (2,))), r"returned tangent f64\[2\]"),
    (lambda out, t: (out, Zero(cj.core.ShapedArray((3,), float))), r"returned tangent f64\[3\]"),
], ids=["no pair", "three", "dtype", "shape", "zero"])
def test_a_wrong_result_of_a_rule_is_found_by_name(returned: Callable[..., Any], message: str) -> None:
    def jvp(self: Any, primals: Any, tangents: Any) -> Any:
        return returned(wrong(primals[0]), tangents[0])
    wrong = made("j_wrong", np.exp, jvp=hookimpl(jvp))
    with pytest.raises(RuleError, match=message) as caught:
        taylor.derivatives(wrong, 1.0, 2)
    assert (caught.value.primitive, caught.value.hook) == ("j_wrong", "jvp")
