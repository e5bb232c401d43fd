"""Generators by block functions: counters are mixed with the key, all at once."""

from __future__ import annotations

from functools import reduce
from math import prod
from operator import xor
from typing import Any

import numpy as np

from corejax import lax
from corejax.core import Array
from corejax_random._blocks import FEW, counts, lanes, of_lanes
from corejax_random.generators import Generator

__all__ = ["Counting"]

_ZERO = np.uint32(0)


class Counting(Generator):
    """A generator whose keys are the two words of a block function's key.

    Counters have two words. In a block of more, they come first for bits, and last for new keys: so these differ.
    """

    def __init__(self, algorithm: str, tag: str, block: Any) -> None:
        super().__init__(algorithm, tag, (2,))
        self._block = block
        self._spare = block.primitive.plugin._words - 2

    def split(self, key: Array, shape: tuple[int, ...]) -> Any:
        return self._key(key, *[_ZERO] * self._spare, *counts(shape))

    def fold_in(self, key: Array, data: Array) -> Any:
        return self._key(key, *[_ZERO] * (self._spare + 1), data)

    def random_bits(self, key: Array, bit_width: int, shape: tuple[int, ...]) -> Any:
        words = self._apply(key, *counts(shape), *[_ZERO] * self._spare)
        if bit_width == 64:
            high, low = [lax.convert_element_type(x, np.uint64) for x in words[:2]]
            return lax.bitwise_or(lax.shift_left(high, np.uint64(32)), low)
        together = reduce(xor, words)
        return together if bit_width == 32 else lax.convert_element_type(together, f"uint{bit_width}")

    def split_in_memory(self, key: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
        count, plugin = prod(shape), self._block.primitive.plugin
        if count > FEW:
            numbers, zeros = np.arange(count, dtype=np.uint64), [np.zeros(count, np.uint32)] * self._spare
            words = (*zeros, (numbers >> np.uint64(32)).astype(np.uint32), numbers.astype(np.uint32))
            return np.stack(plugin._mix(key[:, None], words)[:2], -1).reshape(*shape, 2)
        first, second = key.tolist()
        ones, in_lanes = lanes(count)
        x, y, *_ = plugin._mix_lanes((first * ones, second * ones), (*[0] * (self._spare + 1), in_lanes), ones)
        return of_lanes(x | y << 32, count).reshape(*shape, 2)

    def fold_in_in_memory(self, key: np.ndarray, data: int) -> np.ndarray:
        mix = self._block.primitive.plugin._mix_lanes
        return np.array(mix(key.tolist(), (*[0] * (self._spare + 1), data), 1)[:2], np.uint32)

    def _apply(self, key: Any, *words: Any) -> Any:
        return self._block.primitive.bind(key[0], key[1], *words)

    def _key(self, key: Any, *words: Any) -> Any:
        """The first two words of blocks, along a last axis."""
        first, second = self._apply(key, *words)[:2]
        return lax.concatenate([lax.expand_dims(x, (first.ndim,)) for x in (first, second)], first.ndim)
