"""Threefry-2x32 with 20 rounds (Salmon, Moraes, Dror and Shaw 2011): the generator of keys unless another is named."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from corejax import lax
from corejax.core import Array
from corejax.plugin import define
from corejax_random._blocks import FEW, Block, counts, joined, lanes, of_lanes
from corejax_random.generators import Generator

__all__ = ["THREEFRY", "threefry2x32_p"]

_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
_SHIFTS = [[(bits, 32 - bits) for bits in _ROTATIONS[turn % 2]] for turn in range(5)]
_PARITY = 0x1BD11BDA
_MASK = 0xFFFFFFFF


def _mix(key: Any, words: Sequence[Any]) -> list[Any]:
    schedule = [*key, key[0] ^ key[1] ^ np.uint32(_PARITY)]
    x, y = [word + k for word, k in zip(words, schedule, strict=False)]
    for turn in range(5):
        for bits in _ROTATIONS[turn % 2]:
            x = x + y
            y = (y << np.uint32(bits)) | (y >> np.uint32(32 - bits))
            y = y ^ x
        x = x + schedule[(turn + 1) % 3]
        y = y + (schedule[(turn + 2) % 3] + np.uint32(turn + 1))
    return [x, y]


def _mix_lanes(key: Sequence[int], words: Sequence[int], ones: int) -> list[int]:
    mask = _MASK * ones
    first, second = key
    third = first ^ second ^ _PARITY * ones
    x, y = (words[0] + first) & mask, (words[1] + second) & mask
    injected = ((second, third + ones), (third, first + 2 * ones), (first, second + 3 * ones),
                (second, third + 4 * ones), (third, first + 5 * ones))
    for shifts, (of_x, of_y) in zip(_SHIFTS, injected, strict=True):
        for left, right in shifts:
            x = (x + y) & mask
            y = (y << left | y >> right) & mask ^ x
        x, y = (x + of_x) & mask, (y + of_y) & mask
    return [x, y]


class Threefry2x32(Block):
    """`threefry2x32(k0, k1, x0, x1)`: two words, mixed with a key of two words.

    >>> [hex(word.item()) for word in threefry2x32_p.primitive.bind(*[np.uint32(0)] * 4)]
    ['0x6b200159', '0x99ba4efe']
    """

    _mix, _mix_lanes = staticmethod(_mix), staticmethod(_mix_lanes)
    # From the tests of Random123, the authors' library.
    _known = (((0, 0), (0, 0), (0x6B200159, 0x99BA4EFE)),
             ((_MASK, _MASK), (_MASK, _MASK), (0x1CB996FC, 0xBB002BE7)),
             ((0x13198A2E, 0x03707344), (0x243F6A88, 0x85A308D3), (0xC4923A9C, 0x483DF7A0)))

    def __init__(self) -> None:
        super().__init__("threefry2x32", 2, 2, type(self).__doc__ or "")


threefry2x32_p: Any = define(Threefry2x32())


class _Threefry(Generator):
    """Keys are the key of a block function, and so are the seed's words; counters are the numbers from 0."""

    def seed(self, words: Array) -> Any:
        return words

    def split(self, key: Array, shape: tuple[int, ...]) -> Any:
        return pairs(key, shape)

    def seed_in_memory(self, words: list[int]) -> np.ndarray:
        return np.array(words, np.uint32)

    def split_in_memory(self, key: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
        count = prod(shape)
        if count > FEW:
            numbers = np.arange(count, dtype=np.uint64)
            words = (numbers >> np.uint64(32)).astype(np.uint32), numbers.astype(np.uint32)
            return np.stack(_mix(key[:, None], words), -1).reshape(*shape, 2)
        first, second = key.tolist()
        ones, in_lanes = lanes(count)
        x, y = _mix_lanes((first * ones, second * ones), (0, in_lanes), ones)
        return of_lanes(x | y << 32, count).reshape(*shape, 2)

    def fold_in(self, key: Array, data: Array) -> Any:
        return lax.concatenate([x[None] for x in _apply(key, np.uint32(0), data)], 0)

    def fold_in_in_memory(self, key: np.ndarray, data: int) -> np.ndarray:
        return np.array(_mix_lanes(key.tolist(), (0, data), 1), np.uint32)

    def random_bits(self, key: Array, bit_width: int, shape: tuple[int, ...]) -> Any:
        words = _apply(key, *counts(shape))
        return joined(words, bit_width, words[0] ^ words[1])


def pairs(key: Array, shape: tuple[int, ...]) -> Any:
    """Pairs of words along a last axis, of the key `u32[2]` and the numbers from 0."""
    return lax.concatenate([lax.expand_dims(x, (len(shape),)) for x in _apply(key, *counts(shape))], len(shape))


def _apply(key: Array, *words: Any) -> Any:
    return threefry2x32_p.primitive.bind(key[0], key[1], *words)


THREEFRY = _Threefry("threefry2x32", "fry", (2,))
