"""Random bits beside jax's, and what keys do under transformations."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import corejax as cj
from corejax import lax

KEY = np.array([12, 34], np.uint64)


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
