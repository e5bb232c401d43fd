"""Derivatives through random indices: against sums over places, against differences, and of each other."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import corejax as cj
from corejax import lax
from corejax_lax_basic.indexing import at
from random_indices import Indexing, data, host, hosts, random_indexing, read, seeds, written

OPERATIONS = ["set", "add", "subtract", "multiply", "divide", "min", "max", "power"]
MODES = [None, "clip", "fill", "drop"]


def case_of(seed: int) -> tuple[Any, Indexing, Any, Any]:
    """A generator, an index, an operand and weights of what is read."""
    rng = np.random.default_rng(seed)
    case = random_indexing(rng, outside=True)
    return rng, case, data(rng, case.shape), data(rng, case.positions(mode="clip").shape)


def slope(f: Any, x: Any, direction: Any, h: float = 1e-5) -> Any:
    """The derivative of f at x along a direction, by differences."""
    return (np.asarray(f(x + h * direction)) - np.asarray(f(x - h * direction))) / (2 * h)


def total(x: Any) -> Any:
    return x.sum()


@pytest.mark.parametrize("seed", seeds(40))
def test_the_derivative_of_reading_is_reading_and_its_transpose_adds(seed: int) -> None:
    rng, case, x, w = case_of(seed)
    mode = [None, "clip", "fill"][seed % 3]
    positions = case.positions(mode=mode or "clip")
    numbers, x_dot = [cj.device_put(n) for n in case.numbers] if seed % 5 == 0 else case.numbers, data(rng, case.shape)

    def f(x: Any, numbers: Any) -> Any:
        return at(x)[case.index(numbers)].get(mode=mode or "clip")

    calls = (f, cj.jit(f)) if seed % 5 == 0 else (f,)
    for call in calls:
        out, out_dot = cj.jvp(lambda x: call(x, numbers), (x,), (x_dot,))  # noqa: B023
        assert_array_equal(read(x, positions), np.asarray(out))
        assert_array_equal(read(x_dot, positions, 0), np.asarray(out_dot))
        assert_allclose(np.asarray(cj.vjp(lambda x: call(x, numbers), x)[1](w)[0]),  # noqa: B023
                        written(x * 0, positions, w, "add"), rtol=1e-12)


@pytest.mark.parametrize("seed", seeds(36))
def test_second_derivatives_through_reading(seed: int) -> None:
    rng, case, x, w = case_of(seed)
    positions, x_dot = case.positions(mode="clip"), data(rng, case.shape)

    def f(x: Any) -> Any:
        return total(w * lax.sin(at(x)[case.index()].get(mode="clip")))

    flat = positions.ravel()
    expected = written(x * 0, positions, -w * np.sin(read(x, positions)) * read(x_dot, positions), "add")
    for gradient in (cj.grad(f), cj.jit(cj.grad(f))) if seed % 5 == 0 else (cj.grad(f),):
        assert_allclose(np.asarray(gradient(x)), written(x * 0, positions, w * np.cos(read(x, positions)), "add"),
                        rtol=1e-12)
        assert_allclose(np.asarray(cj.jvp(gradient, (x,), (x_dot,))[1]), expected, rtol=1e-10, atol=1e-12)
    if flat.size and seed % 3 == 0:
        assert_allclose(np.asarray(cj.grad(lambda x: total(x_dot * cj.grad(f)(x)))(x)), expected, rtol=1e-10,
                        atol=1e-12)


def distinct(case: Indexing, mode: str | None) -> bool:
    """Is every place named once?"""
    positions = case.positions(mode=mode)
    return len(np.unique(positions[positions >= 0])) == (positions >= 0).sum()


@pytest.mark.sample(24)
@pytest.mark.parametrize("seed", seeds(72))
def test_derivatives_of_writing_are_differences(seed: int) -> None:
    rng, case, x, v = case_of(seed)
    operation, mode = OPERATIONS[seed % len(OPERATIONS)], MODES[seed // len(OPERATIONS) % len(MODES)]
    if operation == "set" and not distinct(case, mode or "drop"):
        operation = "add"
    x_dot, v_dot, ct = data(rng, x.shape), data(rng, v.shape), data(rng, x.shape)
    v, computed = v + 0.37, seed % 3 != 0

    def f(x: Any, v: Any) -> Any:
        numbers = [cj.device_put(n) for n in case.numbers] if computed and seed % 6 == 1 else case.numbers
        index = case.index(hosts(numbers) if computed else None)
        return getattr(at(x)[index], operation)(v, mode=mode if computed else mode or "drop")

    out, (x_slope, v_slope) = f(x, v), (slope(lambda x: f(x, v), x, x_dot), slope(lambda v: f(x, v), v, v_dot))
    for call in (f, cj.jit(f)) if seed % 8 == 0 else (f,):
        primal, tangent = cj.jvp(call, (x, v), (x_dot, v_dot))
        assert_allclose(np.asarray(primal), np.asarray(out), rtol=1e-12)
        assert_allclose(np.asarray(tangent), x_slope + v_slope, rtol=1e-6, atol=1e-6)
        x_bar, v_bar = cj.vjp(call, x, v)[1](ct)
        assert_allclose((np.asarray(x_bar) * x_dot).sum(), (ct * x_slope).sum(), rtol=1e-6, atol=1e-6)
        assert_allclose((np.asarray(v_bar) * v_dot).sum(), (ct * v_slope).sum(), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("seed", seeds(24))
def test_second_derivatives_of_writing_are_differences_of_the_first(seed: int) -> None:
    rng, case, x, v = case_of(seed)
    operation, mode = ["multiply", "add", "power", "divide", "max", "set"][seed % 6], MODES[1 + seed // 6 % 3]
    if operation == "set" and not distinct(case, mode):
        operation = "multiply"
    x_dot, v_dot, ct = data(rng, x.shape), data(rng, v.shape), data(rng, x.shape)

    def f(x: Any, v: Any) -> Any:
        return total(ct * lax.sin(getattr(at(x)[case.index()], operation)(v + 0.37, mode=mode)))

    gradient = cj.grad(f, argnums=(0, 1))
    dots = cj.jvp(gradient, (x, v), (x_dot, v_dot))[1]
    h = 1e-5
    for k in range(2):
        ahead, behind = gradient(x + h * x_dot, v + h * v_dot)[k], gradient(x - h * x_dot, v - h * v_dot)[k]
        assert_allclose(np.asarray(dots[k]), (np.asarray(ahead) - np.asarray(behind)) / (2 * h), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("seed", seeds(24))
def test_gradients_of_a_batch_are_those_of_its_examples(seed: int) -> None:
    rng, case, x, w = case_of(seed)
    operation, mode = OPERATIONS[1 + seed % 7], ["clip", "fill"][seed % 2]
    xs, numbers = data(rng, (3, *case.shape)), [np.stack([k, np.flip(k), np.roll(k, 1)]) for k in case.numbers]

    def f(x: Any, numbers: Any) -> Any:
        part = at(x)[case.index(numbers)]
        return total(w * part.get(mode=mode, fill_value=0.5)) + total(lax.sin(getattr(part, operation)(w, mode=mode)))

    gradient = cj.grad(f)
    expected = [np.asarray(gradient(xs[k], hosts([n[k] for n in numbers]))) for k in range(3)]
    for call in (cj.vmap(gradient), cj.jit(cj.vmap(gradient))) if seed % 8 == 0 else (cj.vmap(gradient),):
        assert_allclose(np.asarray(call(xs, numbers)), np.stack(expected), rtol=1e-10, atol=1e-12)


def test_repeated_factors_count_in_every_derivative_zeros_too() -> None:
    i = np.array([0, 1, 0, 0, 5])

    def product(v: Any) -> Any:
        return at(np.array([2.0, 3.0]))[host(i)].multiply(v)

    v = np.array([0.0, 5.0, 0.0, 7.0, 11.0])
    jacobian = np.asarray(cj.jacrev(product)(v))
    assert_array_equal([[0, 0, 0, 0, 0], [0, 3, 0, 0, 0]], jacobian)
    assert_array_equal(jacobian, np.asarray(cj.jacfwd(product)(v)))
    second = np.asarray(cj.hessian(lambda v: product(v)[0])(v))
    expected = np.zeros((5, 5))
    expected[0, 2] = expected[2, 0] = 14.0  # 2 * v0 * v2 * v3
    assert_array_equal(expected, second)


@pytest.mark.parametrize("operation", ["min", "max"])
def test_extremes_that_tie_share_their_derivative_evenly(operation: str) -> None:
    x, i, v = np.array([1.0, 1.0, 1.0]), host(np.array([0, 0, 1])), np.ones(3)
    x_bar, v_bar = cj.grad(lambda x, v: total(getattr(at(x)[i], operation)(v)), argnums=(0, 1))(x, v)
    assert_allclose([1 / 3, 1 / 2, 1], np.asarray(x_bar))
    assert_allclose([1 / 3, 1 / 3, 1 / 2], np.asarray(v_bar))


@pytest.mark.parametrize("within", [(1,), (1, 2)])
def test_windows_that_overlap_in_part_multiply(within: tuple[int, ...]) -> None:
    x, rng = np.arange(1.0, 13).reshape(3, 4), np.random.default_rng(0)
    if within == (1,):
        indices, y = np.array([[0], [2], [0]]), rng.random((3, 4))
        numbers = lax.ScatterDimensionNumbers((1,), (0,), (0,))
    else:
        indices, y = np.array([[0, 1], [1, 0], [0, 1]]), rng.random((3, 2, 2))
        numbers = lax.ScatterDimensionNumbers((1, 2), (), (0, 1))
    ct = rng.random((3, 4))

    def f(x: Any, y: Any) -> Any:
        return total(ct * lax.scatter_mul(x, indices, y, numbers))

    for k in range(2):
        gradient = np.asarray(cj.grad(f, argnums=k)(x, y))
        direction = rng.random((x, y)[k].shape)
        along = slope(lambda z: f(*((z, y) if k == 0 else (x, z))), (x, y)[k], direction)  # noqa: B023
        assert_allclose((gradient * direction).sum(), along, rtol=1e-8)


def test_factors_of_batches_in_another_order_multiply() -> None:
    numbers = lax.ScatterDimensionNumbers((), (2,), (2,), (0, 1), (1, 0))
    x, rng = np.arange(1.0, 25).reshape(2, 3, 4), np.random.default_rng(0)
    indices, y, ct = rng.integers(0, 4, (3, 2, 5, 1)), rng.random((3, 2, 5)) + 0.5, rng.random((2, 3, 4))

    def f(y: Any) -> Any:
        return total(ct * lax.scatter_mul(x, indices, y, numbers))

    direction = rng.random(y.shape)
    assert_allclose((np.asarray(cj.grad(f)(y)) * direction).sum(), slope(f, y, direction), rtol=1e-8)
