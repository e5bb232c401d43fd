"""Each equation knows the line of the user's code that made it, whichever transformation recorded it."""

from __future__ import annotations

import inspect
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import corejax as cj
from corejax import lax
from corejax.base.source import at_hand, line_of
from corejax.core import ShapedArray
from corejax.plugin import define, hookimpl

X = np.array([0.5, -0.25, 2.0])


def lines(jaxpr: Any) -> list[int]:
    """The line of each equation, counted from the start of this file."""
    assert all([__file__ == eqn.source[0].co_filename for eqn in jaxpr.eqns])
    return [line_of(eqn.source) for eqn in jaxpr.eqns]


def line(function: Callable[..., Any], text: str) -> int:
    """The first line of a function that has this text."""
    written, first = inspect.getsourcelines(function)
    return first + next(i for i, one in enumerate(written) if text in one)


def area(x: Any) -> Any:
    return lax.reduce_sum(lax.sin(x), (0,))


def test_what_the_backward_pass_binds_is_where_the_gradient_is_asked_for():
    def asking(x: Any) -> Any:
        return cj.grad(area)(x)  # asked

    found = lines(cj.make_jaxpr(asking)(X))
    forward, asked = line(area, "lax.sin"), line(asking, "asked")
    assert {forward, asked} == {*found}
    assert [*found] == sorted(found, key=[forward, asked].index)


def test_a_pullback_that_is_called_twice_has_two_places():
    def asking(x: Any) -> Any:
        _, pull = cj.vjp(area, x)
        (first,) = pull(1.0)  # once
        (second,) = pull(2.0)  # twice
        return first, second

    found = lines(cj.make_jaxpr(asking)(X))
    once, twice = line(asking, "once"), line(asking, "twice")
    assert found.count(once) == found.count(twice) > 0
    assert [*found] == sorted(found, key=[line(area, "lax.sin"), once, twice].index)


def test_a_users_own_backward_rule_keeps_its_lines():
    @cj.custom_vjp
    def halved(x: Any) -> Any:
        return lax.mul(x, 0.5)

    def backward(kept: Any, ct: Any) -> Any:
        doubled = lax.mul(ct, 2.0)  # of the rule
        return (lax.mul(doubled, kept),)  # also of the rule

    halved.defvjp(lambda x: (halved(x), x), backward)

    def asking(x: Any) -> Any:
        return cj.grad(lambda x: lax.reduce_sum(lax.cos(halved(lax.sin(x))), (0,)))(x)  # asked

    found = lines(cj.make_jaxpr(asking)(X))
    own, asked = [line(backward, "# of the rule"), line(backward, "# also of")], line(asking, "asked")
    at = found.index(own[0])
    assert own == found[at:at + 2]
    assert asked in found[:at] and asked in found[at + 2:]


class Doubled:
    name = "test_places_doubled"
    linear = (0,)

    @hookimpl
    def impl(self, args: Any) -> Any:
        return args[0] + args[0]

    @hookimpl
    def abstract_eval(self, avals: Any) -> Any:
        return avals[0]

    @hookimpl
    def transpose(self, cotangents: Any, args: Any) -> Any:
        return [lax.add(cotangents, cotangents)]  # by the rule


doubled = define(Doubled())


def test_a_rule_in_the_users_file_keeps_its_lines():
    found = lines(cj.make_jaxpr(lambda x: cj.grad(lambda x: area(doubled(x)))(x))(X))
    assert found.count(line(Doubled, "by the rule")) == 1


def test_gradients_within_gradients_each_have_their_place():
    def inner(x: Any) -> Any:
        return lax.reduce_sum(lax.mul(cj.grad(area)(x), x), (0,))  # inner

    def outer(x: Any) -> Any:
        return cj.grad(inner)(x)  # outer

    found = lines(cj.make_jaxpr(outer)(X))
    assert {line(area, "lax.sin"), line(inner, "# inner"), line(outer, "# outer")} == {*found}
    assert line(outer, "# outer") == found[-1]


def test_a_gradient_within_a_users_backward_rule_ends_with_it():
    @cj.custom_vjp
    def identity(x: Any) -> Any:
        return lax.mul(x, 1.0)

    def backward(kept: Any, ct: Any) -> Any:
        return (lax.mul(cj.grad(area)(kept), ct),)  # in the rule

    identity.defvjp(lambda x: (identity(x), x), backward)

    def asking(x: Any) -> Any:
        return cj.grad(lambda x: area(identity(lax.sin(x))))(x)  # asked

    found = lines(cj.make_jaxpr(asking)(X))
    asked = line(asking, "# asked")
    assert line(backward, "in the rule") in found
    assert asked == found[-1]


def test_threads_differentiate_at_places_of_their_own():
    ready = threading.Barrier(2)
    found: dict[str, list[int]] = {}

    def first(x: Any) -> Any:
        return cj.grad(area)(x)  # first

    def second(x: Any) -> Any:
        return cj.grad(area)(x)  # second

    def run(asking: Callable[..., Any]) -> None:
        ready.wait()
        for _ in range(20):
            found.setdefault(asking.__name__, []).extend(lines(cj.make_jaxpr(asking)(X)))

    threads = [threading.Thread(target=run, args=(asking,)) for asking in (first, second)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    forward = line(area, "lax.sin")
    assert {forward, line(first, "# first")} == {*found["first"]}
    assert {forward, line(second, "# second")} == {*found["second"]}


def test_a_failing_rule_leaves_no_place_behind():
    class Failing(Doubled):
        name = "test_places_failing"

        @hookimpl
        def transpose(self, cotangents: Any, args: Any) -> Any:
            raise ZeroDivisionError

    failing = define(Failing())
    with pytest.raises(ZeroDivisionError):
        cj.make_jaxpr(cj.grad(lambda x: area(failing(x))))(X)
    assert (None, None) == at_hand.inside
    assert ShapedArray((3,), "float64") == cj.make_jaxpr(cj.grad(area))(X).out_avals[0]
