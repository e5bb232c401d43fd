"""Bits as the compiler generates them, by `lax.rng_bit_generator`: fast on accelerators, and others on each of them.

`rbg` splits keys by Threefry; `unsafe_rbg` does so by the compiler's bits, too, of which nothing is known.
"""

from __future__ import annotations

from math import prod
from typing import Any

from corejax import lax
from corejax.core import Array
from corejax_random.generators import Generator
from corejax_random.threefry import THREEFRY

__all__ = ["RBG", "UNSAFE_RBG"]

#: How many blocks `unsafe_rbg` skips from one key to the next.
_APART = 10


class _Rbg(Generator):
    """Two keys of Threefry beside each other, which are the four words of the compiler's state."""

    def seed(self, words: Array) -> Any:
        return lax.concatenate([words, words], 0)

    def split(self, key: Array, shape: tuple[int, ...]) -> Any:
        return lax.concatenate([THREEFRY.split(half, shape) for half in (key[:2], key[2:])], len(shape))

    def fold_in(self, key: Array, data: Array) -> Any:
        return lax.concatenate([THREEFRY.fold_in(half, data) for half in (key[:2], key[2:])], 0)

    def random_bits(self, key: Array, bit_width: int, shape: tuple[int, ...]) -> Any:
        return lax.rng_bit_generator(key, shape, f"uint{bit_width}")[1]


class _UnsafeRbg(_Rbg):

    def split(self, key: Array, shape: tuple[int, ...]) -> Any:
        count = prod(shape)
        keys = lax.rng_bit_generator(key, (_APART * count, 4))[1]
        return lax.reshape(keys[::_APART], (*shape, 4))

    def fold_in(self, key: Array, data: Array) -> Any:
        words = lax.concatenate([data[None] & 0, data[None]], 0)
        return key ^ lax.rng_bit_generator(self.seed(words), (_APART, 4))[1][-1]


RBG = _Rbg("rbg", "rbg", (4,))
UNSAFE_RBG = _UnsafeRbg("unsafe_rbg", "urbg", (4,))
