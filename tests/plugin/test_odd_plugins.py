"""Plugin objects that look right and are not, and who is blamed for what a rule does."""

from __future__ import annotations

from functools import lru_cache, partial
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from corejax import grad, vmap
from corejax.errors import CorejaxRuntimeError, PluginError, RuleError
from corejax.plugin import define, extend, hookimpl

X = np.arange(3.0)


class Double:
    """2 x."""

    def __init__(self, **attributes: Any) -> None:
        self.name = "odd_double"
        vars(self).update(attributes)

    @hookimpl
    def abstract_eval(self, avals: Any) -> Any:
        return avals[0]

    @hookimpl
    def impl(self, args: Any) -> Any:
        return args[0] * 2.0


class Called:
    """An object that can be called."""

    def __call__(self, args: Any) -> Any:
        return args[0] * 2.0


@pytest.mark.parametrize("marked", [hookimpl(Called()), hookimpl(partial(lambda by, args: args[0] * by, 2.0)),
                                    hookimpl(lru_cache(lambda args: args[0] * 2.0))])
def test_a_marked_object_that_is_no_method_is_told_so(marked: Any) -> None:
    with pytest.raises(PluginError, match="odd_double.impl .*: it is marked as a hook, but isn't a method"):
        define(Double(impl=marked))(X)


@pytest.mark.parametrize("made", [None, 3, Called()])
def test_a_function_declaration_that_makes_none_is_refused_by_name(made: Any) -> None:
    with pytest.raises(PluginError, match="odd_double .*: its `function` doesn't return a function"):
        define(Double(function=lambda bind: made))


@pytest.mark.parametrize("plugin", [None, SimpleNamespace(), SimpleNamespace(_impl=lambda args: args[0]),
                                    SimpleNamespace(symbolic_zeros=True)])
def test_an_extension_without_a_rule_is_refused(plugin: Any) -> None:
    double = define(Double())
    with pytest.raises(PluginError, match="odd_double .*: it provides no rules"):
        extend(double, plugin)
    np.testing.assert_array_equal(2.0 * X, double(X))


class NeverYields:
    """A wrapper that returns before it has yielded."""

    @hookimpl(wrapper=True)
    def impl(self, args: Any) -> Any:
        if args is None:
            yield
        return args[0]


def test_a_wrapper_that_does_not_yield_is_told_so() -> None:
    double = define(Double())
    extend(double, NeverYields(), replace=True)
    with pytest.raises(CorejaxRuntimeError, match="does not yield") as raised:
        double(X)
    assert "test_odd_plugins.py" in str(raised.value)
    assert any(["wrapped by extended in test_odd_plugins" in note for note in raised.value.__notes__])


class Forgetful:
    """A map that forgets where the batch axis is."""

    @hookimpl
    def vmap(self, axis: Any, args: Any, dims: Any) -> Any:
        return args[0] * 2.0


class Failing:
    """A map that raises."""

    @hookimpl
    def vmap(self, axis: Any, args: Any, dims: Any) -> Any:
        raise ZeroDivisionError


def test_an_error_of_a_rule_names_who_wrote_that_rule() -> None:
    double = define(Double())
    extend(double, Forgetful())
    with pytest.raises(RuleError, match=r"odd_double.vmap \(extended in test_odd_plugins\)") as wrong:
        vmap(double)(X)
    assert "extended in test_odd_plugins" == wrong.value.pack
    double = define(Double(impl=hookimpl(lambda args: None)))
    extend(double, Failing())
    with pytest.raises(ZeroDivisionError) as raised:
        vmap(double)(X)
    assert any(["odd_double.vmap (extended in test_odd_plugins)" in note for note in raised.value.__notes__])
    with pytest.raises(RuleError, match=r"odd_double.impl \(defined in test_odd_plugins\)"):
        double(X)


class Pair(Double):
    """(x, y), without a partial_eval that separates them."""

    def __init__(self) -> None:
        super().__init__(name="odd_pair", multiple_results=True)

    @hookimpl
    def abstract_eval(self, avals: Any) -> Any:
        return list(avals)

    @hookimpl
    def impl(self, args: Any) -> Any:
        return list(args)


def test_a_rule_that_binds_values_and_tangents_together_is_told_to_separate_them() -> None:
    pair = define(Pair())

    class Doubled(Double):
        @hookimpl
        def jvp(self, primals: Any, tangents: Any) -> Any:
            value, tangent = pair(*primals, *tangents)
            return value, tangent

    with pytest.raises(RuleError, match="odd_double.jvp .*: returned a result that isn't known until the tangents are"
                                        "(.|\n)*write the hook partial_eval of what it binds"):
        grad(define(Doubled()))(np.float64(1.0))


# Errors that are a rule's own

class Careless:
    """An impl with a mistake of its own."""

    name = "careless"

    @hookimpl
    def abstract_eval(self, avals: Any) -> Any:
        return avals[0]

    @hookimpl
    def impl(self, args: Any) -> Any:
        return args[0].nothing


@pytest.mark.parametrize("operands", [(1.0,), (X,), (1.0, X), (1.0, 2.0, 3.0)])
def test_an_error_of_a_rule_is_not_told_as_one_of_another(operands: Any) -> None:
    careless = define(Careless())
    with pytest.raises(AttributeError, match="has no attribute 'nothing'") as raised:
        careless(*operands)
    assert raised.value.__context__ is None and raised.value.__cause__ is None
