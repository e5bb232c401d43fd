"""Functions run backward: values, programs, transformations, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import corejax as cj
from corejax import lax
from corejax.errors import CorejaxError
from corejax.plugin import define, families, not_differentiable
from corejax.testing import check_pack
from corejax_inverse import INVERSE, Unknown, inverse, undo

X = np.array([-0.5, 0.0, 0.5])


def chain(x: Any) -> Any:
    return lax.exp(lax.tanh(x) * 2.0 + 1.0)


def _with_own_derivative(x: Any) -> Any:
    function = cj.custom_jvp(lambda y: lax.expm1(y))
    function.defjvp(lambda primals, tangents: (function(*primals), tangents[0]))
    return function(x)


PROGRAMS: dict[str, Callable[[Any], Any]] = {
    "a chain": chain,
    "a call": cj.jit(chain),
    "calls in calls": cj.jit(lambda x: cj.jit(chain)(x) - 1.0),
    "checkpoint": cj.checkpoint(chain),
    "a call that gives its operand's memory away": cj.jit(lambda x: chain(x) * 2.0, donate_argnums=0, keep_unused=True),
    "checkpoint, each operand": cj.checkpoint(chain, prevent_cse=False),
    "a map over devices": cj.shard_map(chain, mesh=cj.make_mesh((1,), ("i",)), in_specs=cj.P("i"), out_specs=cj.P("i")),
    "a rule of its own": _with_own_derivative,
    "a known branch": lambda x: lax.switch(1, [lambda y: y, chain, lax.neg], x),
    "a loop": lambda x: lax.fori_loop(0, 3, lambda i, c: lax.tanh(c) * 2.0, x),
    "a loop with slices": lambda x: lax.scan(lambda c, t: (c * 2.0 + lax.sin(t), None), x, np.arange(4.0))[0],
    "a loop from the end": lambda x: lax.scan(lambda c, t: (c + t, None), x, np.arange(4.0), reverse=True)[0],
    "shapes": lambda x: lax.rev(lax.reshape(x * 2.0, (3, 1)).T, (1,)),
    "what doesn't depend on it": lambda x: (x + lax.sin(np.float64(3.0))) / lax.reduce_sum(np.ones(3), axes=(0,)),
    "both sides": lambda x: 3.0 - 2.0 / (4.0 - x),
    "powers": lambda x: (x + 2.0) ** 3,
    "odd powers of negative numbers": lambda x: lax.pow(x * 3.0, np.float64(3.0)),
    "roots": lambda x: lax.pow(x + 2.0, 0.5),
    "reciprocals": lambda x: lax.pow(x + 2.0, np.float64(-1.0)),
    "sums": lambda x: lax.cumsum(x, 0),
    "sums from the end": lambda x: lax.cumsum(x, 0, reverse=True),
    "functions of corejax-special": lambda x: lax.erf_inv(lax.erf(x) * 0.5),
    "an inverse": lambda x: inverse(lambda y: lax.log(y + 3.0))(x),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_it_undoes(name: str) -> None:
    f = PROGRAMS[name]
    np.testing.assert_allclose(inverse(f, X)(f(X.copy())), X, atol=1e-14, rtol=1e-13)


@pytest.mark.parametrize("name", PROGRAMS)
def test_it_undoes_when_it_is_compiled(name: str) -> None:
    f = PROGRAMS[name]
    np.testing.assert_allclose(cj.jit(inverse(f, X))(f(X)), X, atol=1e-14, rtol=1e-13)


def test_a_branch_whose_index_is_only_known_when_it_runs_is_undone() -> None:
    def f(i: Any, x: Any) -> Any:
        return lax.switch(i, [lambda y: lax.exp(y), lambda y: y * 3.0], x)

    back = cj.jit(lambda i, y: inverse(lambda x: f(i, x))(y))
    for i in (0, 1):
        np.testing.assert_allclose(back(i, f(i, X)), X, atol=1e-15)


def test_it_is_mapped_and_differentiated() -> None:
    y = chain(X)
    slopes = cj.vmap(cj.grad(chain))(X)
    np.testing.assert_allclose(cj.vmap(cj.grad(inverse(chain)))(y), 1.0 / slopes, rtol=1e-12)
    np.testing.assert_allclose(cj.jit(cj.vmap(inverse(chain)))(y), X, atol=1e-14)
    np.testing.assert_allclose(cj.jvp(lambda x: inverse(chain)(chain(x)), (X,), (np.ones(3),))[1], 1.0, rtol=1e-12)


def test_layers_of_a_flow_are_undone() -> None:
    w = np.random.default_rng(0).standard_normal((2, 2))

    def layer(x: Any, y: Any) -> tuple[Any, Any]:
        hidden = lax.tanh(lax.dot(x, w))
        return x, y * lax.exp(hidden) + lax.sin(x)

    def flow(parts: tuple[Any, Any]) -> tuple[Any, Any]:
        x, y = parts
        for _ in range(4):
            y, x = layer(x, y)
        return x, y

    parts = X[:2], X[1:]
    for found, wanted in zip(inverse(flow)(flow(parts)), parts, strict=True):
        np.testing.assert_allclose(found, wanted, atol=1e-12)


def test_a_loop_gives_back_its_slices_and_its_start() -> None:
    def f(start_and_xs: tuple[Any, Any]) -> tuple[Any, Any]:
        return lax.scan(lambda c, x: (c * 2.0 + x, c), *start_and_xs)

    given = np.float64(1.5), np.arange(4.0)
    for found, wanted in zip(inverse(f)(f(given)), given, strict=True):
        np.testing.assert_allclose(found, wanted)


def test_integers_and_another_type_of_argument() -> None:
    assert [3, 5] == inverse(lambda n: -(n + 7))(np.array([-10, -12])).tolist()
    narrow = np.float32(0.5)
    found = inverse(lambda x: lax.convert_element_type(lax.exp(x), np.float64), narrow)(np.float64(1.0))
    assert ("float32", 0.0) == (str(found.dtype), found.item())


def test_a_row_of_a_pack_has_its_inverse_beside_its_derivative() -> None:
    softsign = define(families.unary(
        "demo_softsign", lambda x: x / (1.0 + np.abs(x)), dtypes="f", jvp=not_differentiable("a demonstration"),
        hlo=lambda ctx, args: ctx.lower(lambda x: x / (1.0 + lax.abs(x)), *args), doc="x / (1 + |x|).",
        rules={"inverse": undo(lambda out, x: out / (1.0 - lax.abs(out)))}))
    np.testing.assert_allclose(inverse(lambda x: softsign(x) * 2.0)(2.0 * softsign(X)), X)
    assert "declared" == INVERSE.answer(softsign.primitive).how


def test_the_kit_holds_all_rules_to_the_law() -> None:
    report = check_pack("corejax-inverse", checks=["inverse: what is undone is what was applied"])
    assert sum([outcome.held for outcome in report.outcomes]) > 50


REFUSED: dict[str, tuple[Callable[[Any], Any], str]] = {
    "sine": (lax.sin, "sin (corejax-lax-basic 0.1.0) has no inverse: the sine takes each value again and again"),
    "absolute value": (lax.abs, "abs (corejax-lax-basic 0.1.0) has no inverse: the absolute values of x and of -x"),
    "square": (lambda x: x ** 2, "it isn't one-to-one in operand 0"),
    "even real power": (lambda x: lax.pow(x, np.float64(2.0)), "pow: it isn't one-to-one in operand 0"),
    "power of zero": (lambda x: lax.pow(x, np.float64(0.0)), "pow: it isn't one-to-one in operand 0"),
    "the other error function": (lax.erfc, "has no inverse: 1 - erfc(x) has lost what is small"),
    "to a dtype with fewer digits": (lambda x: lax.convert_element_type(lax.convert_element_type(
        x, np.float32), "bfloat16"), "may lose something"),
    "a longer shape": (lambda x: x * np.ones(1), "isn't one-to-one"),
    "product with itself": (lambda x: x * x, "isn't one-to-one, as far as its equations tell"),
    "used twice": (lambda x: x + lax.exp(x), "it isn't one-to-one in the operands 0 and 1 together"),
    "constant": (lambda x: 3.0, "a result that doesn't depend on the argument"),
    "part of it": (lambda x: lax.floor(x), "floor (corejax-lax-basic 0.1.0) has no inverse rule"),
    "sum": (lambda x: lax.reduce_sum(lax.exp(x), axes=()) + x, "in the operands 0 and 1 together"),
    "while": (lambda x: lax.while_loop(lambda c: c < 3.0, lambda c: c * 2.0, x), "how many steps it took isn't known"),
    "decided by it": (lambda x: lax.cond(x > 0.0, lambda y: y * 2.0, lambda y: y * 3.0, x), "the index of a branch"),
    "carries it as a constant": (
        lambda x: lax.scan(lambda c, t: (c * x, None), 1.0, None, length=2)[0], "a loop whose constants are unknown"),
    "spread": (lambda x: x + np.zeros(3), "isn't one-to-one"),
    "rounded": (lambda x: lax.convert_element_type(x, np.float32), "a conversion of float64 to float32 may lose"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_not_one_to_one_is_refused(name: str) -> None:
    f, message = REFUSED[name]
    y = f(np.float64(0.5))
    with pytest.raises(CorejaxError) as caught:
        inverse(f, np.float64(0.5))(y)
    assert message in str(caught.value)


@pytest.mark.parametrize("wrong, message", [
    (lambda: inverse(3), "inverse"),
    (lambda: inverse(chain)((1.0, 2.0)), "is not an array"),
    (lambda: inverse(lambda x: (x, x))(1.0), "doesn't return a tree like this"),
    (lambda: inverse(chain, X)(1.0), "doesn't return values of these types"),
    (lambda: inverse(chain)("y"), "inverse"),
    (lambda: INVERSE.rule(lax.exp.primitive)(np.float64(1.0), [Unknown(cj.core.aval_of(X))]), "one-to-one"),
])
def test_wrong_uses(wrong: Callable[[], Any], message: str) -> None:
    with pytest.raises(CorejaxError, match=message):
        wrong()
