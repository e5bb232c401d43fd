"""SplitMix64 (Steele, Lea and Flood 2014) as a generator for `corejax.random`: 64 bits of state, counted up and mixed.

>>> from corejax import random
>>> key = random.key(1234567, impl="splitmix64")
>>> key.aval, random.bits(key, (2,), "uint64").tolist()
(key<splitmix64>[], [6457827717110365317, 3203168211198807973])
"""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from corejax import lax
from corejax.core import Array
from corejax_random import Generator

__all__ = ["SPLITMIX"]

_STEP = np.uint64(0x9E3779B97F4A7C15)


def _mixed(state: Any) -> Any:
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        state = (state ^ (state >> np.uint64(shift))) * np.uint64(factor)
    return state ^ (state >> np.uint64(31))


def _state(key: Array) -> Any:
    return (key[0].astype("uint64") << np.uint64(32)) | key[1].astype("uint64")


def _words(states: Any) -> Any:
    return lax.concatenate([x.astype("uint32")[..., None] for x in (states >> np.uint64(32), states)], states.ndim)


def _stream(state: Any, shape: tuple[int, ...]) -> Any:
    return _mixed(state + (lax.iota("uint64", prod(shape)).reshape(shape) + np.uint64(1)) * _STEP)


class SplitMix(Generator):
    """Bits count up from the key's state; new keys count up from its complement, mixed."""

    def seed(self, words: Array) -> Any:
        return words

    def split(self, key: Array, shape: tuple[int, ...]) -> Any:
        return _words(_stream(_mixed(~_state(key)), shape))

    def fold_in(self, key: Array, data: Array) -> Any:
        return _words(_mixed(_mixed(~_state(key)) ^ _mixed(data.astype("uint64") + _STEP)))

    def random_bits(self, key: Array, bit_width: int, shape: tuple[int, ...]) -> Any:
        return (_stream(_state(key), shape) >> np.uint64(64 - bit_width)).astype(f"uint{bit_width}")


SPLITMIX = SplitMix("splitmix64", "splitmix64", (2,))
