"""Philox-4x32 with 10 rounds (Salmon, Moraes, Dror and Shaw 2011)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from corejax import lax
from corejax.core import Array
from corejax.plugin import define
from corejax_random._blocks import Block
from corejax_random._counting import Counting

__all__ = ["PHILOX", "philox4x32_p"]

_FACTORS = (0xD2511F53, 0xCD9E8D57)
_STEPS = (0x9E3779B9, 0xBB67AE85)
_MASK = 0xFFFFFFFF


def _product(factor: int, x: Any) -> tuple[Any, Any]:
    """The upper and the lower word of a product."""
    if isinstance(x, (np.ndarray, np.generic)):
        wide = x.astype(np.uint64) * np.uint64(factor)
        return (wide >> np.uint64(32)).astype(np.uint32), wide.astype(np.uint32)
    return lax.mulhi(x, lax.full_like(x, factor)), x * np.uint32(factor)


def _mix(key: Any, words: Sequence[Any]) -> list[Any]:
    a, b, c, d = words
    k, m = key
    for turn in range(10):
        if turn:
            k, m = k + np.uint32(_STEPS[0]), m + np.uint32(_STEPS[1])
        (high_a, low_a), (high_c, low_c) = _product(_FACTORS[0], a), _product(_FACTORS[1], c)
        a, b, c, d = high_c ^ b ^ k, low_c, high_a ^ d ^ m, low_a
    return [a, b, c, d]


def _mix_lanes(key: Sequence[int], words: Sequence[int], ones: int) -> list[int]:
    mask = _MASK * ones
    a, b, c, d = words
    k, m = key
    for turn in range(10):
        if turn:
            k, m = (k + _STEPS[0] * ones) & mask, (m + _STEPS[1] * ones) & mask
        of_a, of_c = a * _FACTORS[0], c * _FACTORS[1]  # which just fit into their lanes
        a, b, c, d = (of_c >> 32) & mask ^ b ^ k, of_c & mask, (of_a >> 32) & mask ^ d ^ m, of_a & mask
    return [a, b, c, d]


class Philox4x32(Block):
    """`philox4x32(k0, k1, x0, x1, x2, x3)`: four words, mixed with a key of two words.

    >>> [hex(word.item()) for word in philox4x32_p.primitive.bind(*[np.uint32(0)] * 6)]
    ['0x6627e8d5', '0xe169c58d', '0xbc57ac4c', '0x9b00dbd8']
    """

    _mix, _mix_lanes = staticmethod(_mix), staticmethod(_mix_lanes)
    # From the tests of Random123, the authors' library.
    _known = (((0, 0), (0, 0, 0, 0), (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
             ((_MASK, _MASK), (_MASK,) * 4, (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
             ((0xA4093822, 0x299F31D0), (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344),
              (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1)))

    def __init__(self) -> None:
        super().__init__("philox4x32", 2, 4, type(self).__doc__ or "")


philox4x32_p: Any = define(Philox4x32())


class _Philox(Counting):
    """A seed's words are mixed to a key."""

    def seed(self, words: Array) -> Any:
        return self._key(np.zeros(2, np.uint32), words[0], words[1], np.uint32(0), np.uint32(0))

    def seed_in_memory(self, words: list[int]) -> np.ndarray:
        return np.array(_mix_lanes((0, 0), (*words, 0, 0), 1)[:2], np.uint32)


PHILOX = _Philox("philox4x32", "phx4", philox4x32_p)
