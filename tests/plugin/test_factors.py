"""`factors(...)`: weights of 1 and -1, and divisors, in each mode, and that each costs one equation."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import corejax as cj
from corejax import lax
from corejax.errors import CorejaxTypeError
from corejax.packs import families
from corejax.plugin import define, factors, not_differentiable, over, partials
from corejax.testing import check_primitive

minus: Any = define(families.binary(
    "minus", np.subtract, hlo="subtract", dtypes="f", jvp=factors(1, -1), doc="x - y."))
opposite: Any = define(families.unary("opposite", np.negative, hlo="negate", dtypes="f", jvp=factors(-1), doc="-x."))
ratio: Any = define(families.binary(
    "ratio", np.true_divide, hlo="divide", dtypes="f", domain=(0.5, 2.0), doc="x / y.",
    jvp=factors(over(lambda out, x, y: y), lambda out, x, y: lax.neg(lax.div(out, y)))))

X, Y = np.array([0.5, -1.5, 2.0]), np.array([1.25, 0.5, -3.0])


def names(fun: Any, *args: Any) -> list[str]:
    return [eqn.primitive.name for eqn in cj.make_jaxpr(fun)(*args).eqns]


def test_the_tangents_of_a_difference_are_subtracted() -> None:
    assert ["minus", "sub"] == names(lambda x, y: cj.jvp(minus, (x, y), (x, y)), X, Y)
    assert ["minus"] == names(lambda x: cj.jvp(lambda x: minus(x, Y), (x,), (x,)), X)
    assert ["minus", "neg"] == names(lambda y: cj.jvp(lambda y: minus(X, y), (y,), (y,)), Y)


def test_a_scalars_tangent_is_subtracted_without_being_spread_first() -> None:
    assert ["minus", "sub"] == names(lambda x, y: cj.jvp(minus, (x, y), (x, y)), X, np.float64(2.0))
    _, tangent = cj.jvp(minus, (X, 2.0), (Y, 3.0))
    np.testing.assert_array_equal(Y - 3.0, tangent)


def test_a_divisor_costs_one_division() -> None:
    assert ["ratio", "div"] == names(lambda x: cj.jvp(lambda x: ratio(x, Y), (x,), (x,)), X)
    assert ["ratio", "div"] == names(lambda x: cj.vjp(lambda x: ratio(x, Y), x)[1](x), X)


@pytest.mark.parametrize(("fun", "args", "slopes"), [
    (minus, (X, Y), (np.ones(3), -np.ones(3))),
    (opposite, (X,), (-np.ones(3),)),
    (ratio, (X, Y), (1 / Y, -X / Y**2)),
], ids=["minus", "opposite", "ratio"])
def test_derivatives_are_the_same_in_every_mode(fun: Any, args: Any, slopes: Any) -> None:
    everything = tuple(range(len(args)))
    forward = [np.diagonal(cj.jacfwd(fun, i)(*args)) for i in everything]
    reverse = cj.grad(lambda *xs: fun(*xs).sum(), everything)(*args)
    compiled = cj.jit(cj.grad(lambda *xs: fun(*xs).sum(), everything))(*args)
    _, linear = cj.linearize(fun, *args)
    replayed = sum(slopes, np.zeros(3))
    for slope, *found in zip(slopes, forward, reverse, compiled, strict=True):
        for derivative in found:
            np.testing.assert_allclose(derivative, slope, rtol=1e-13)
    np.testing.assert_allclose(linear(*[np.ones(3) for _ in args]), replayed, rtol=1e-13)


def test_second_derivatives_go_through_divisors() -> None:
    second = cj.grad(lambda y: cj.grad(lambda y: ratio(X, y).sum())(y).sum())(Y)
    np.testing.assert_allclose(second, 2 * X / Y**3, rtol=1e-12)


def test_a_divisor_of_another_type_is_refused_by_the_primitives_name() -> None:
    wrong = define(families.unary("wrong_ratio", np.copy, hlo="abs", dtypes="f", doc="Wrong.",
                                  jvp=factors(over(lambda out, x: np.ones(2)))))
    with pytest.raises(CorejaxTypeError, match="wrong_ratio.jvp"):
        cj.grad(lambda x: wrong(x).sum())(X)


@pytest.mark.parametrize("factor", [2, 0, -1.0, True, "x"])
def test_other_constants_are_no_factors(factor: Any) -> None:
    with pytest.raises(CorejaxTypeError, match="a factor must be a function, None, 1 or -1"):
        factors(factor)


NO_ORDER = not_differentiable("an order is a whole number")


@pytest.mark.parametrize("declared", [
    factors(NO_ORDER, lambda out, n, x: n), partials(NO_ORDER, lambda x_dot, out, n, x: n * x_dot)])
def test_one_operand_of_several_may_have_no_derivative(declared: Any) -> None:
    multiple = define(families.binary("multiple", np.multiply, hlo="multiply", dtypes="f", jvp=declared, doc="n x."))
    check_primitive(multiple)
    slope = cj.grad(lambda x: multiple(2.0, x) * multiple(3.0, x))
    assert cj.jit(slope)(1.0) == slope(1.0) == 12.0
    for differentiated in (cj.grad(multiple), cj.jit(cj.grad(lambda n, x: multiple(n * 1.0, x), (0, 1))),
                           lambda n, x: cj.jvp(multiple, (n, x), (1.0, 1.0))):
        with pytest.raises(NotImplementedError, match="multiple .* with respect to operand 0: an order is a whole"):
            differentiated(2.0, 3.0)
