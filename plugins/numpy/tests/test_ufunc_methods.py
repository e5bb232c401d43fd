"""Methods of ufuncs beside NumPy's, eagerly and compiled, and their derivatives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import corejax as cj
import corejax.numpy as jnp
from corejax.core import from_array_like
from corejax.errors import CorejaxError
from elementwise_points import BINARY, off

#: NumPy's own reductions of these are wrong where processors compute several at once: `np.power.reduce([0.25, 3.0])`.
STEPWISE = ["pow", "float_power", "arctan2"]

#: All but one whose results can't be its operands.
NAMES = [name for name in BINARY if getattr(jnp, name).nout == 1 and name not in ("ldexp", *STEPWISE)]

FLOATS = np.array([[1.5, -0.5, 2.0, 0.0], [0.25, 3.0, -1.0, 1.0], [2.0, 2.0, 0.5, -2.5]])
WHOLE = np.array([[5, 2, 1, 3], [2, 7, 1, 2], [-1, 3, 4, 2]])

Method = Callable[[Any, Any], Any]

METHODS: dict[str, Method] = {
    "reduce": lambda f, x: f.reduce(x),
    "reduce along the last axis, kept": lambda f, x: f.reduce(x, axis=-1, keepdims=True),
    "reduce of one element": lambda f, x: f.reduce(x[:1]),
    "reduce of no elements": lambda f, x: f.reduce(x[:0]),
    "reduce from a start": lambda f, x: f.reduce(x, 1, initial=2),
    "reduce of some": lambda f, x: f.reduce(x, 0, initial=1, where=x > 0),
    "accumulate": lambda f, x: f.accumulate(x),
    "accumulate along the last axis": lambda f, x: f.accumulate(x, -1),
    "accumulate of no elements": lambda f, x: f.accumulate(x[:0]),
    "outer": lambda f, x: f.outer(x[0], x[:2]),
    "reduceat": lambda f, x: f.reduceat(x, np.array([0, 2, 1]), 1),
    "reduceat from one place": lambda f, x: f.reduceat(x, np.array([1])),
}

#: Those that can combine along several axes, in any order.
ALL_AXES = ["add", "multiply", "maximum", "minimum", "logical_and", "logical_or", "bitwise_and", "bitwise_or",
            "bitwise_xor", "gcd", "hypot", "logaddexp"]


def _of_numpy(method: Method, name: str, x: np.ndarray) -> Any:
    try:
        return np.asarray(method(getattr(np, name), x))
    except (TypeError, ValueError):
        return None


def _found(method: Method, name: str, x: Any) -> Any:
    try:
        return method(getattr(jnp, name), x)
    except CorejaxError as error:
        return error


def _differs(out: Any, wanted: np.ndarray) -> bool:
    return bool(off(out, wanted, 64.0, signed=False).any())


@pytest.mark.parametrize("kind", [pytest.param("floats", marks=pytest.mark.exhaustive), "whole numbers"])
def test_methods_are_numpys(kind: str) -> None:
    x, wrong, calls = FLOATS if kind == "floats" else WHOLE, [], {}
    for name in NAMES:
        for what, method in METHODS.items():
            wanted, out = _of_numpy(method, name, x), _found(method, name, from_array_like(x))
            if isinstance(out, Exception) or wanted is None:
                wrong += [f"{name}: {what}: {out}"] if wanted is not None else []
                continue
            calls[f"{name}: {what}"] = lambda x, method=method, name=name: method(getattr(jnp, name), x)
            if _differs(out, wanted):
                wrong.append(f"{name}: {what}: {out.aval} {out}, not {wanted.dtype} {wanted}")
            types = cj.eval_shape(calls[f"{name}: {what}"], x)
            assert (out.shape, out.dtype) == (types.shape, types.dtype)
    assert [] == wrong


@pytest.mark.parametrize("name", STEPWISE)
def test_reductions_go_from_the_first_to_the_last(name: str) -> None:
    x, f = np.abs(FLOATS) + 0.1, getattr(jnp, name)
    steps = [np.asarray(x[0], float)]
    for row in x[1:]:
        steps.append(getattr(np, name)(steps[-1], row))
    for found in (f.accumulate(x), cj.jit(f.accumulate)(x)):
        assert not _differs(found, np.stack(steps))
    for found in (f.reduce(x), cj.jit(f.reduce)(x), f.reduceat(x, [0])[0]):
        assert not _differs(found, steps[-1])


def test_some_reduce_along_several_axes() -> None:
    x = np.stack([np.abs(WHOLE), np.abs(WHOLE)[::-1]])
    for name in ALL_AXES:
        for options in ({"axis": None}, {"axis": (0, -1)}, {"axis": (2, 1), "keepdims": True}):
            wanted = getattr(np, name).reduce(x, **options)
            assert not _differs(getattr(jnp, name).reduce(x, **options), np.asarray(wanted)), name


PLACES: dict[str, Any] = {"indices": np.array([0, 2, 0]), "a pair": (np.array([0, 0, 1]), np.array([3, 3, 0]))}
MORE_PLACES: dict[str, Any] = {"a mask": np.array([True, False, True]), "a slice": slice(1), "one": -1}


@pytest.mark.parametrize("name", [*NAMES, *STEPWISE])
def test_at_applies_it_as_often_as_a_place_appears(name: str) -> None:
    f, theirs = getattr(jnp, name), getattr(np, name)
    for x in (FLOATS, WHOLE):
        wanted = _of_numpy(lambda f, x: f(x, 2), name, x)
        for places in {**PLACES, **(MORE_PLACES if name == "add" else {})}.values():
            if wanted is None or wanted.dtype != x.dtype:  # what an array of this dtype can't hold
                continue
            wanted = x.copy()
            theirs.at(wanted, places, 2)
            assert not _differs(f.at(x, places, 2, inplace=False), wanted)


@pytest.mark.parametrize("name", ["negative", "sqrt", "square", "absolute"])
def test_at_takes_functions_of_one_operand(name: str) -> None:
    x, places = np.array([1.0, 4.0, 16.0]), np.array([2, 0, 2])
    wanted = x.copy()
    getattr(np, name).at(wanted, places)
    def at(x: Any, places: Any) -> Any:
        return getattr(jnp, name).at(x, places, inplace=False)
    for found in (at(x, places), cj.jit(at)(x, places)):
        assert not _differs(found, wanted)


X = np.array([[0.5, 2.0, 1.5], [1.0, 0.25, 3.0]])

DIFFERENTIATED: dict[str, Callable[[Any], Any]] = {
    "add.reduce": lambda x: jnp.add.reduce(x ** 2, 1),
    "multiply.reduce": lambda x: jnp.multiply.reduce(x, 0),
    "maximum.accumulate": lambda x: jnp.maximum.accumulate(x, 1),
    "hypot.reduce": lambda x: jnp.hypot.reduce(x, 1),
    "arctan2.accumulate": lambda x: jnp.arctan2.accumulate(x, 1),
    "divide.outer": lambda x: jnp.divide.outer(x[0], x[1]),
    "power.reduce": lambda x: jnp.power.reduce(x),
    "logaddexp.reduce": lambda x: jnp.logaddexp.reduce(x, None),
    "multiply.reduceat": lambda x: jnp.multiply.reduceat(x, np.array([0, 1]), 1),
    "add.at": lambda x: jnp.add.at(x, np.array([0, 0]), x[1] ** 2, inplace=False),
    "multiply.at": lambda x: jnp.multiply.at(x, np.array([1, 1]), x[0], inplace=False),
    "subtract.at": lambda x: jnp.subtract.at(x, (np.array([1, 1]), 0), x[0, :2], inplace=False),
    "sqrt.at": lambda x: jnp.sqrt.at(x, np.array([1]), inplace=False),
    "divmod.outer": lambda x: jnp.divmod.outer(x[0], x[1] + 0.13)[1],
}


@pytest.mark.parametrize("name", DIFFERENTIATED)
def test_methods_are_differentiated_and_compiled(name: str) -> None:
    f = DIFFERENTIATED[name]

    def total(x: Any) -> Any:
        out = f(x)
        return (out * np.cos(np.arange(out.size)).reshape(out.shape)).sum()
    step = 1e-6
    slopes = [(float(total(X + step * d)) - float(total(X - step * d))) / (2 * step)
              for d in np.eye(X.size).reshape(-1, *X.shape)]
    for gradient in (cj.grad(total), cj.jit(cj.grad(total)), cj.jacfwd(total)):
        np.testing.assert_allclose(np.asarray(gradient(X)).ravel(), slopes, rtol=1e-5, atol=1e-8)
    np.testing.assert_allclose(np.asarray(cj.vmap(f, 1)(np.stack([X, X + 1], 1))), [f(X), f(X + 1)], rtol=1e-12)


def test_methods_say_what_is_wrong() -> None:
    for call, message in {
        lambda: jnp.sin.reduce(X): "two operands", lambda: jnp.divmod.accumulate(X): "two operands",
        lambda: jnp.subtract.reduce(X[:0]): "no identity", lambda: jnp.add.at(X, 0, 1.0): "immutable",
        lambda: jnp.subtract.reduce(X, where=X > 1): "no identity", lambda: jnp.add.reduceat(X, 1): "a vector",
        lambda: jnp.bitwise_and.reduce(X): "have bits", lambda: jnp.add.reduce(X, 2): "axis 2 is out of bounds",
    }.items():
        with pytest.raises(CorejaxError, match=message):
            call()


def test_functions_of_scalars_have_methods_too() -> None:
    halfway = jnp.frompyfunc(lambda x, y: x + (y - x) / 2, 2, 1)
    np.testing.assert_allclose(halfway.outer(X[0], X[1]), (X[0][:, None] + X[1]) / 2)
    np.testing.assert_allclose(halfway.accumulate(X, 1)[:, -1], halfway.reduce(X, 1))
    np.testing.assert_allclose(cj.grad(lambda x: halfway.reduce(x))(np.array([1.0, 2.0, 4.0])), [0.25, 0.25, 0.5])
