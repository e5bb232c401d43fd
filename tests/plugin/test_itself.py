"""`itself` among partials: the primitive, with the tangent in the operand's place."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import corejax as cj
from corejax import lax
from corejax.core import Linear, ShapedArray
from corejax.errors import PluginError, RuleError
from corejax.plugin import define, hookimpl, itself, not_linear, partials

X, Y = np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([[0.5, -1.0], [2.0, 0.25]])


class Product:
    """Matrix products, scaled, of which the third operand's derivative is declared zero."""

    name = "test_itself_product"
    jvp: Any = partials(itself, itself, None)

    @hookimpl
    def impl(self, args: Any, *, times: int) -> Any:
        x, y, _ = args
        return times * (x @ y)

    @hookimpl
    def abstract_eval(self, avals: Any, *, times: int) -> Any:
        x, y, _ = avals
        return ShapedArray((x.shape[0], y.shape[1]), x.dtype, x.weak_type and y.weak_type)

    @hookimpl
    def transpose(self, cotangents: Any, args: Any, *, times: int) -> Any:
        x, y, z = args
        if type(x) is Linear:
            return [product(cotangents, lax.transpose(y, (1, 0)), z, times=times), None, None]
        return [None, product(lax.transpose(x, (1, 0)), cotangents, z, times=times), None]


product: Any = define(Product())


def primitives(jaxpr: Any) -> list[str]:
    return [eqn.primitive.name for eqn in jaxpr.eqns]


@pytest.mark.parametrize("argnums", [(0,), (1,), (0, 1)])
def test_gradients_and_tangents_are_those_of_a_product(argnums):
    def total(x, y):
        return lax.reduce_sum(lax.sin(product(x, y, 1.0, times=2)), (0, 1))

    def known(x, y):
        return lax.reduce_sum(lax.sin(2.0 * (x @ y)), (0, 1))

    for ours, theirs in zip(cj.grad(total, argnums)(X, Y), cj.grad(known, argnums)(X, Y), strict=True):
        np.testing.assert_allclose(theirs, ours)
    np.testing.assert_allclose(cj.jvp(known, (X, Y), (Y, X))[1], cj.jvp(total, (X, Y), (Y, X))[1])
    second = [cj.grad(lambda x: lax.reduce_sum(lax.sin(cj.grad(f)(x, Y)), (0, 1)))(X) for f in (known, total)]  # noqa: B023
    np.testing.assert_allclose(*second)


def test_an_operand_that_is_both_factors_has_both_terms():
    np.testing.assert_allclose(cj.grad(lambda x: (x @ x).sum())(X),
                               cj.grad(lambda x: product(x, x, 1.0, times=1).sum())(X))


def test_an_operand_whose_derivative_is_zero_contributes_nothing():
    assert 0.0 == cj.grad(lambda z: product(X, Y, z, times=1).sum())(1.0)
    np.testing.assert_allclose(
        np.ones((2, 2)) @ Y.T, cj.grad(lambda x: product(x, Y, x.sum(), times=1).sum())(X))


def test_what_reverse_mode_records_is_the_primitive_on_each_tangent():
    _, linear_map = cj.linearize(lambda x, y: product(x, y, 1.0, times=2), X, Y)
    program = cj.make_jaxpr(linear_map)(X, Y)
    assert [product.primitive.name] * 2 == primitives(program)[:2]


def test_an_operand_changed_later_isnt_seen_by_the_pullback():
    y = Y.copy()
    _, pull = cj.vjp(lambda x: product(x, y, 1.0, times=1), X)
    before = np.asarray(pull(np.ones((2, 2)))[0])
    y[:] = 0.0
    np.testing.assert_array_equal(before, pull(np.ones((2, 2)))[0])


def test_weak_operands_have_strong_tangents():
    class Scaled(Product):
        name = "test_itself_scaled"
        jvp = partials(itself, itself)

        @hookimpl
        def impl(self, args: Any) -> Any:
            return args[0] * args[1]

        @hookimpl
        def abstract_eval(self, avals: Any) -> Any:
            return ShapedArray((), avals[0].dtype, all(aval.weak_type for aval in avals))

        @hookimpl
        def transpose(self, cotangents: Any, args: Any) -> Any:
            x, y = args
            return [scaled(cotangents, y), None] if type(x) is Linear else [None, scaled(x, cotangents)]

    scaled = define(Scaled())
    _, pull = cj.vjp(scaled, 2.0, 3.0)
    assert [3.0, 2.0] == [float(ct) for ct in pull(1.0)]
    assert 5.0 == cj.jvp(scaled, (2.0, 3.0), (1.0, 1.0))[1]


def test_a_result_of_another_type_for_tangents_is_refused():
    class Wide(Product):
        name = "test_itself_wide"
        jvp = partials(itself, None)

        @hookimpl
        def impl(self, args: Any) -> Any:
            return np.float32(1.0) * np.float32(args[0])

        @hookimpl
        def abstract_eval(self, avals: Any) -> Any:
            return ShapedArray((), np.float32 if avals[0].weak_type else np.float64)

        @hookimpl
        def transpose(self, cotangents: Any, args: Any) -> Any:
            return [cotangents, None]

    wide = define(Wide())
    with pytest.raises(RuleError, match="test_itself_wide.jvp"):
        cj.grad(lambda x: wide(x, 1.0))(2.0)


def test_a_rule_that_applies_it_to_two_tangents_is_refused():
    class Square(Product):
        name = "test_itself_square"

        @hookimpl
        def jvp(self, primals: Any, tangents: Any) -> Any:
            (x,), (t,) = primals, tangents
            return square(x), product(t, t, 1.0, times=1)

        @hookimpl
        def impl(self, args: Any) -> Any:
            return args[0] @ args[0]

        @hookimpl
        def abstract_eval(self, avals: Any) -> Any:
            return avals[0]

        transpose = not_linear()

    square = define(Square())
    with pytest.raises(RuleError, match="is not linear in the tangents"):
        cj.grad(lambda x: square(x).sum())(X)


def test_what_is_linear_in_an_operand_needs_a_transpose():
    class Contradictory(Product):
        name = "test_itself_contradictory"
        transpose = not_linear()

    with pytest.raises(PluginError, match="both linear and not linear"):
        define(Contradictory())(X, Y, 1.0, times=1)
