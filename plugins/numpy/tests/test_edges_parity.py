"""Derivatives at the edges of choices, bounds, norms and totals beside jax's: both modes, and to order 2."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import corejax as cj
import corejax.numpy as jnp

jax = pytest.importorskip("jax")


Program = Callable[[Any, Any], Any]  # of a namespace and an array

V = np.array([0.0, 1.0, -2.0, 0.5])
TIES = np.array([2.0, -1.0, 2.0, -1.0])
ZEROS = np.zeros(3)
GAP = np.array([1.0, np.nan, np.inf, -np.inf])

EDGES: dict[str, tuple[Program, np.ndarray]] = {
    "where guards a square root": (lambda m, x: m.where(x > 0, m.sqrt(m.where(x > 0, x, 1.0)), 0.0), V),
    "where guards nothing": (lambda m, x: m.where(x > 0, m.sqrt(x), x), V),
    "where of NaN": (lambda m, x: m.where(m.isnan(x), 0.0, x * x), np.array([1.0, np.nan, 3.0])),
    "select": (lambda m, x: m.select([x > 0, x < 0], [x ** 2, x ** 3], m.sin(x)), V),
    "piecewise": (lambda m, x: m.piecewise(x, [x > 0], [m.exp, 7.0]), V),
    "clip at its ends": (lambda m, x: m.clip(x, 0.0, 1.0) ** 2, V),
    "clip from below": (lambda m, x: m.clip(x, 0.5) * x, V),
    "clip with crossed bounds": (lambda m, x: m.clip(x, 1.0, 0.0) * x, V),
    "clip by itself": (lambda m, x: m.clip(1.0, x, x * 2), V),
    "choose": (lambda m, x: m.choose(np.array([0, 1, 1, 0]), [x, x ** 2], mode="clip"), V),
    "round": (lambda m, x: m.round(x, 1) + x ** 2, V), "nan_to_num": (lambda m, x: m.nan_to_num(x) * x, GAP),
    "abs": (lambda m, x: m.abs(x) * x, V), "sign": (lambda m, x: m.sign(x) * x, V),
    "a norm at 0": (lambda m, x: m.linalg.norm(x), ZEROS), "norms at 0": (lambda m, x: m.linalg.norm(
        m.stack([x, x + 1]), axis=1), ZEROS),
    "a norm of order 1 at 0": (lambda m, x: m.linalg.norm(x, 1), ZEROS),
    "a norm of order infinity at ties": (lambda m, x: m.linalg.norm(x, np.inf), TIES),
    "max at ties": (lambda m, x: m.max(x) * x, TIES), "min at ties": (lambda m, x: m.min(x) * x, TIES),
    "maximum at ties": (lambda m, x: m.maximum(x, -x) * x, V), "minimum of itself": (lambda m, x: m.minimum(x, x), V),
    "var of one": (lambda m, x: m.var(x[:1]) * x, V), "std of one": (lambda m, x: m.std(x[:1]) * x, V),
    "std of equal ones": (lambda m, x: m.std(x - x + 1.0), V), "var without freedom": (lambda m, x: m.var(
        x[:1], ddof=1) * x, V),
    "sum of none": (lambda m, x: m.sum(x[:0]) * x, V), "prod of none": (lambda m, x: m.prod(x[:0]) * x, V),
    "mean of none": (lambda m, x: m.mean(x[:0]) * x, V), "prod with a zero": (lambda m, x: m.prod(x) * x, V),
    "prod with zeros": (lambda m, x: m.prod(x), np.array([0.0, 2.0, 0.0])),
    "cumprod with zeros": (lambda m, x: m.cumprod(x), np.array([2.0, 0.0, 3.0, 0.0])),
    "powers by 0, 1, 2": (lambda m, x: x ** 0 + x ** 1 + x ** 2, V),
    "powers by floats": (lambda m, x: m.power(m.abs(x), 1.0) + m.power(x, 2.0), V),
    "powers of 0": (lambda m, x: m.power(0.0, x[1:2]) + m.power(1.0, x[1:2]), V),
    "powers by an array of integers": (lambda m, x: m.power(x, np.array([0, 1, 2, 3])), V),
    "float_power": (lambda m, x: m.float_power(m.abs(x) + 0.5, x), V), "exp2": (lambda m, x: m.exp2(x), V),
    "logaddexp of equals": (lambda m, x: m.logaddexp(x, x), V), "arctan2 on an axis": (lambda m, x: m.arctan2(
        x, np.array([1.0, 0.0, 0.0, -1.0])), V),
    "ldexp": (lambda m, x: m.ldexp(x, np.array([1, -1, 2, 0])) * x, V), "log1p at 0": (lambda m, x: m.log1p(x ** 2), V),
    "frexp": (lambda m, x: m.frexp(x)[0] * x, V), "modf": (lambda m, x: m.modf(x * 1.3)[0] * x, V),
    "divmod": (lambda m, x: m.divmod(x, 0.75)[1] * x, V), "remainder": (lambda m, x: m.remainder(7.0, x[1:] + 0.1), V),
    "sinc": (lambda m, x: m.sinc(x), np.array([0.0, 1e-3, 0.1, 0.3, 1.0])),
    "isclose": (lambda m, x: m.where(m.isclose(x, 0.0), x, x ** 2), V), "unwrap": (lambda m, x: m.unwrap(x * 4), V),
    "roll": (lambda m, x: m.roll(x, 1) * x, V), "pad": (lambda m, x: m.pad(x * x, (2, 1), mode="reflect"), V),
    "pad by means": (lambda m, x: m.pad(x * x, (2, 1), mode="mean"), V), "insert": (lambda m, x: m.insert(
        x ** 2, np.array([0, 2]), x[:2]), V), "delete": (lambda m, x: m.delete(x ** 2, 1), V),
    "repeat": (lambda m, x: m.repeat(x, np.array([1, 0, 2, 1]), total_repeat_length=4) * x, V),
    "tile": (lambda m, x: m.tile(x ** 2, (2, 1)), V), "resize": (lambda m, x: m.resize(x ** 2, (2, 3)), V),
    "linspace": (lambda m, x: m.linspace(x[0], x[1] ** 2, 4), V), "geomspace": (lambda m, x: m.geomspace(
        x[1], x[3] ** 2, 3), V), "logspace": (lambda m, x: m.logspace(x[0], x[1], 3) * x[3], V),
    "block": (lambda m, x: m.block([[x ** 2, x], [x, x]]), V), "trim": (lambda m, x: m.stack([x, x ** 2], -1), V),
}

#: What isn't jax's, and why.
OTHERS: dict[str, str] = {
    "var without freedom": "NaN has the derivative NaN; there 0 by some operands",
    "ldexp": "a product has its second derivative at 0, too; there half of it",
}


def _orders(namespace: Any, gradient: Any, forward: Any, program: Program, x: Any) -> list[Any]:
    """A value, its gradient in both modes, and the second derivatives that one mode of the other gives."""
    def total(x: Any) -> Any:
        out = program(namespace, x)
        return namespace.sum(out * namespace.cos(namespace.arange(out.size * 1.0).reshape(out.shape)))
    return [program(namespace, x), gradient(total)(x), forward(total)(x), forward(gradient(total))(x)]


def _close(found: Any, wanted: Any) -> None:
    for ours, theirs in zip(found, wanted, strict=True):
        assert np.asarray(theirs).dtype == ours.dtype
        np.testing.assert_allclose(np.asarray(ours), np.asarray(theirs), rtol=1e-8, atol=1e-10)


@pytest.mark.sample(30)
@pytest.mark.parametrize("name", [name for name in EDGES if name not in OTHERS])
def test_derivatives_at_edges_are_those_of_jax(name: str) -> None:
    program, x = EDGES[name]
    wanted = jax.jit(lambda x: _orders(jax.numpy, jax.grad, jax.jacfwd, program, x))(x)
    _close(_orders(jnp, cj.grad, cj.jacfwd, program, cj.lax.copy(x)), wanted)


@pytest.mark.parametrize("name", [name if i % 6 == 0 else pytest.param(name, marks=pytest.mark.exhaustive)
                                  for i, name in enumerate(EDGES)])
def test_programs_are_mapped_over_the_last_axis(name: str) -> None:
    program, x = EDGES[name]
    batch = np.stack([x, x[::-1], x * 2], -1)
    found = cj.vmap(lambda x: program(jnp, x), -1, -1)(batch)
    rows = [np.asarray(program(jnp, batch[:, i])) for i in range(3)]
    np.testing.assert_allclose(np.asarray(found), np.stack(rows, -1), rtol=1e-12)
