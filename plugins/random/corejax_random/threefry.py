"""Threefry-2x32 with 20 rounds (Salmon, Moraes, Dror and Shaw 2011): the generator of keys unless another is named."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from corejax import lax
from corejax.core import Array, aval_of
from corejax.plugin import define
from corejax_random._blocks import Block
from corejax_random._counting import Counting

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


def _mix_in_turns(key: Any, words: Sequence[Any]) -> list[Any]:
    """`_mix` in a loop of five turns."""
    shape = max([aval_of(x).shape for x in words], key=len)

    def turn(state: Any, given: Any) -> Any:
        (x, y), (shifts, *injected) = state, given
        for bits in shifts:
            bits = lax.broadcast(bits, shape)
            x = x + y
            y = lax.shift_left(y, bits) | lax.shift_right_logical(y, np.uint32(32) - bits)
            y = y ^ x
        return tuple([word + k for word, k in zip((x, y), injected, strict=True)]), None

    schedule = [*key, key[0] ^ key[1] ^ np.uint32(_PARITY)]
    of_x, of_y = [_stacked([schedule[(turn + i) % 3] for turn in range(5)]) for i in (1, 2)]
    numbers = lax.broadcast_in_dim(np.arange(1, 6, dtype=np.uint32), aval_of(of_y).shape, (0,))
    start = [word + k for word, k in zip(words, key, strict=True)]
    start = [x if aval_of(x).shape == shape else lax.broadcast(x, shape) for x in start]
    shifts = np.array([_ROTATIONS[turn % 2] for turn in range(5)], np.uint32)
    return list(lax.scan(turn, tuple(start), (shifts, of_x, of_y + numbers))[0])


def _stacked(words: Sequence[Any]) -> Any:
    return lax.concatenate([lax.expand_dims(word, (0,)) for word in words], 0)


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

    _mix, _mix_lanes, _mix_in_turns = staticmethod(_mix), staticmethod(_mix_lanes), staticmethod(_mix_in_turns)
    # From the tests of Random123, the authors' library.
    _known = (((0, 0), (0, 0), (0x6B200159, 0x99BA4EFE)),
             ((_MASK, _MASK), (_MASK, _MASK), (0x1CB996FC, 0xBB002BE7)),
             ((0x13198A2E, 0x03707344), (0x243F6A88, 0x85A308D3), (0xC4923A9C, 0x483DF7A0)))

    def __init__(self) -> None:
        super().__init__("threefry2x32", 2, 2, type(self).__doc__ or "")


threefry2x32_p: Any = define(Threefry2x32())


class _Threefry(Counting):
    """A seed's words are the key."""

    def seed(self, words: Array) -> Any:
        return words

    def seed_in_memory(self, words: list[int]) -> np.ndarray:
        return np.array(words, np.uint32)


THREEFRY = _Threefry("threefry2x32", "fry", threefry2x32_p)
