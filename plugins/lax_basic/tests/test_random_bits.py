"""Random bits beside jax's, what keys do under transformations, and what happens without a key."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import corejax as cj
from corejax import lax
from corejax.errors import CorejaxNotImplementedError, CorejaxValueError

KEY = np.array([12, 34], np.uint64)


@pytest.mark.sample(4)
@pytest.mark.parametrize("algorithm", lax.RandomAlgorithm, ids=str)
@pytest.mark.parametrize("dtype", ["uint8", "uint16", "uint32", "uint64"])
def test_parity_of_keys_and_bits(dtype: str, algorithm: Any) -> None:
    theirs = pytest.importorskip("jax").lax
    rng = np.random.default_rng(int(algorithm))
    for shape in [(), (1,), (3,), (4, 2), (0,), (2, 3, 5), (1000,)]:
        key = rng.integers(0, 2 ** 64, 2, np.uint64)
        if len(shape) > 1:
            key[1] = np.iinfo(np.uint64).max - 1  # the counter begins again
        for one in (key, key.view(np.uint32)):
            wanted = theirs.rng_bit_generator(one, shape, dtype, theirs.RandomAlgorithm(int(algorithm)))
            for draw in (lax.rng_bit_generator, cj.jit(lax.rng_bit_generator, static_argnums=(1, 2, 3))):
                for x, y in zip(draw(one, shape, dtype, algorithm), wanted, strict=True):
                    assert_array_equal(np.asarray(x), np.asarray(y), strict=True)


def test_bits_are_even() -> None:
    for algorithm in lax.RandomAlgorithm:
        _, bits = lax.rng_bit_generator(KEY, (100_000,), np.uint8, algorithm)
        counts = np.bincount(np.asarray(bits), minlength=256)
        assert abs(((counts - 390.625) ** 2 / 390.625).sum() - 255) < 5 * np.sqrt(2 * 255)


def test_a_new_key_gives_what_comes_next() -> None:
    whole = lax.rng_bit_generator(KEY, (8,))[1]
    key, first = lax.rng_bit_generator(KEY, (4,))
    assert_array_equal(np.concatenate([first, lax.rng_bit_generator(key, (4,))[1]]), whole)


def test_maps_draw_for_each_key() -> None:
    keys = np.stack([KEY, KEY + 5, KEY * 3])
    for draw in (cj.vmap(lambda key: lax.rng_bit_generator(key, (3,))),
                 cj.jit(cj.vmap(lambda key: lax.rng_bit_generator(key, (3,))))):
        for i, (key, bits) in enumerate(zip(*draw(keys), strict=True)):
            one = lax.rng_bit_generator(keys[i], (3,))
            assert_array_equal(key, one[0])
            assert_array_equal(bits, one[1])


def test_a_loop_that_carries_a_key_is_differentiated() -> None:
    def noisy(x: Any) -> Any:
        def step(carry: Any, _: Any) -> Any:
            key, x = carry
            key, bits = lax.rng_bit_generator(key, ())
            return (key, x * (lax.convert_element_type(bits, np.float64) / 2.0 ** 32)), None
        return lax.scan(step, (KEY, x), None, length=3)[0][1]

    value = noisy(1.0)
    for slope in (cj.grad(noisy), cj.jit(cj.grad(noisy))):
        assert np.asarray(slope(2.0)) == pytest.approx(np.asarray(value))
    assert np.asarray(cj.jvp(noisy, (2.0,), (1.0,))[1]) == pytest.approx(np.asarray(value))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_numbers_without_a_key_are_even(dtype: str) -> None:
    a, b = lax.convert_element_type(np.array([-3.0, 1.0]), dtype)
    drawn = lax.rng_uniform(a, b, (100, 1000))
    assert dtype == drawn.dtype.name
    counts = np.histogram(np.asarray(drawn, np.float64), 16, (-3.0, 1.0))[0]
    assert counts.sum() == 100_000
    assert abs(((counts - 6250) ** 2 / 6250).sum() - 15) < 5 * np.sqrt(30)


@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.uint32, np.uint64])
def test_integers_without_a_key_are_even(dtype: Any) -> None:
    drawn = lax.rng_uniform(dtype(100), dtype(110), (50_000,))
    assert dtype == drawn.dtype
    counts = np.bincount(np.asarray(drawn).astype(np.int64) - 100, minlength=10)
    assert counts.shape == (10,)
    assert abs(((counts - 5000) ** 2 / 5000).sum() - 9) < 5 * np.sqrt(18)


def _drawn(*operands: Any) -> Any:
    return lax.rng_uniform(0.0, 1.0, ())


def test_no_number_without_a_key_is_drawn_twice() -> None:
    twice = cj.jit(lambda: (_drawn(), _drawn()))
    steps = lax.scan(lambda carry, _: (carry, _drawn()), 0.0, None, length=10)[1]
    rows = cj.vmap(lambda low: lax.rng_uniform(low, 1.0, (2,)))(np.zeros(3))
    mapped = cj.jit(cj.vmap(lambda low: lax.rng_uniform(low, 1.0, (2,))))(np.zeros(3))
    numbers = np.concatenate([np.ravel(np.asarray(x)) for x in (
        _drawn(), _drawn(), *twice(), *twice(), steps, rows, mapped)])
    assert len(set(numbers.tolist())) == len(numbers) == 28
    assert np.all((numbers >= 0) & (numbers < 1))


def test_steps_of_a_loop_that_is_differentiated_draw_once_each() -> None:
    def products(x: Any) -> Any:
        return lax.scan(lambda c, _: (c * _drawn(), c), x, None, length=5)[1]

    for function in (products, cj.jit(products)):
        values, pullback = cj.vjp(function, 1.0)
        slopes = [np.asarray(pullback(row)[0]) for row in np.eye(5)]
        assert_allclose(slopes, values, rtol=1e-15)  # other factors would differ in their first digit
        values = np.asarray(values)
        assert 4 == len(set((values[1:] / values[:-1]).tolist()))


def test_a_draw_stays_where_it_was_written() -> None:
    assert "random_state" in str(cj.make_jaxpr(_drawn)())
    value, pullback = cj.vjp(cj.jit(lambda x: x * _drawn()), 1.0)
    assert_array_equal(pullback(1.0)[0], value)
    value, pullback = cj.vjp(cj.jit(cj.checkpoint(lambda x: x * _drawn())), 1.0)  # what was drawn is saved
    assert_array_equal(pullback(1.0)[0], value)
    with pytest.raises(CorejaxValueError, match="random_state"):
        cj.export.export(cj.jit(_drawn))()
    with pytest.raises(CorejaxNotImplementedError, match="can't be drawn again"):
        cj.grad(lambda a: lax.rng_uniform(a, 1.0, ()))(0.5)
    assert cj.grad(lambda a: a * lax.rng_uniform(lax.stop_gradient(a), 1.0, ()))(0.5) >= 0.5
