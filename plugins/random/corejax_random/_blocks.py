"""What the primitives of block functions have in common: words and a key in, as many words out, elementwise.

A block function mixes a few words of 32 bits with a key. Counters in, random bits out: so nothing is remembered from
one number to the next, and all of them can be computed at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from math import prod
from typing import Any

import numpy as np

from corejax import lax
from corejax.core import Jaxpr, ShapedArray, aval_of, stage_closed, to_dim
from corejax.errors import CorejaxValueError
from corejax.plugin import Sample, hookimpl, not_linear, refused

__all__ = ["APART", "FEW", "IN_TURNS", "Block", "counts", "in_lanes", "lanes", "of_lanes"]

_U32 = np.dtype("uint32")

#: The runtime runs a program at once, instead of in another thread, if the compiler counts less than 1,000 operations
#: in it, those of a loop once. So with so many elements, a loop is sooner done.
IN_TURNS = range(9, 21)

#: So many elements are computed by a function apart. They may be steps or rows that are then repeated along an axis,
#: and the compiler would compute a block for each element of that: it took four times the time. More are mostly used as
#: they are, and writing them to memory would take as long as computing them.
APART = range(21, 1025)


class Block:
    """A block function as a primitive: `words` words of a key, then a number of words, each a scalar or an array.

    `_mix(key, words)` computes with whatever has operators for uint32, wrapping around: arrays of NumPy or of corejax.
    `_mix_lanes(key, words, ones)` does the same with Python's integers that hold words in lanes; see `lanes`.
    `_mix_in_turns(key, words)`, if there is one, does it in a program by a loop, for arrays of `IN_TURNS` elements.
    """

    multiple_results = True
    transpose = not_linear("bits aren't linear in a key")
    _mix: Callable[[Any, Sequence[Any]], list[Any]]
    _mix_lanes: Callable[[Sequence[int], Sequence[int], int], list[int]]
    _mix_in_turns: Callable[[Any, Sequence[Any]], list[Any]] | None = None
    _known: Sequence[tuple[Sequence[int], Sequence[int], Sequence[int]]]

    def __init__(self, name: str, key: int, words: int, doc: str) -> None:
        self.name, self._key, self._words = name, key, words
        self.operands = (*[f"k{i}" for i in range(key)], *[f"x{i}" for i in range(words)])
        self.__doc__ = doc

    def attached(self, primitive: Any) -> None:
        """Note the primitive that this plugin has become."""
        self._primitive = primitive

    @hookimpl
    def impl(self, args: Sequence[Any]) -> list[Any]:
        shape = np.broadcast_shapes(*[x.shape for x in args])
        count = prod(shape)
        if 0 < count <= FEW:
            numbers = [in_lanes(np.broadcast_to(x, shape)) for x in args]
            words = self._mix_lanes(numbers[:self._key], numbers[self._key:], lanes(count)[0])
            return [of_lanes(x, count)[::2].reshape(shape) for x in words]
        outs = self._mix(args[:self._key], args[self._key:])
        return [np.broadcast_to(x, shape).astype(_U32) for x in outs]

    @hookimpl
    def abstract_eval(self, avals: Sequence[ShapedArray]) -> list[ShapedArray]:
        if len(avals) != self._key + self._words or any([x.dtype != _U32 for x in avals]):
            raise refused(self.name, "blocks are words of 32 bits", got=[str(x) for x in avals],
                          wanted=f"{self._key + self._words} operands of dtype uint32",
                          todo="convert them with x.astype(np.uint32)")
        shapes = {x.shape for x in avals if x.shape}
        if len(shapes) > 1:
            raise refused(self.name, "the words must be scalars, or arrays of one shape", got=[str(x) for x in avals],
                          wanted="one shape", todo="broadcast them first", kind=CorejaxValueError)
        return [ShapedArray(shapes.pop() if shapes else (), _U32)] * self._words

    @hookimpl
    def decompose(self, args: Sequence[Any]) -> list[Any]:
        shape = max([aval_of(x).shape for x in args], key=len)
        mix = self._mix_in_turns if self._mix_in_turns is not None and prod(shape) in IN_TURNS else self._mix
        outs = mix(args[:self._key], args[self._key:])
        return [x if aval_of(x).shape == shape else lax.broadcast(x, shape) for x in outs]

    @hookimpl
    def xla_translation(self, ctx: Any, args: Sequence[Any]) -> list[Any]:
        apart = prod(ctx.avals_out[0].shape) in APART
        return ctx.call(_program(self, tuple(ctx.avals_in)), args, self.name, inline=not apart)  # type: ignore[no-any-return]

    @hookimpl
    def vmap(self, axis: Any, args: Sequence[Any], dims: Sequence[int | None]) -> Any:
        sizes = [aval_of(x).shape[:d] + aval_of(x).shape[d + 1:] if d is not None else aval_of(x).shape
                 for x, d in zip(args, dims, strict=True)]
        shape = (axis.size, *max(sizes, key=len))
        moved = [x if d is None and not size else _spread(to_dim(x, d, 0, axis.size), shape)
                 for x, d, size in zip(args, dims, sizes, strict=True)]
        return self._primitive.bind(*moved), [0] * self._words

    @hookimpl
    def samples(self, rng: np.random.Generator) -> Iterator[Sample]:
        for key, words, result in self._known:
            yield Sample([np.array(x, _U32) for x in (*key, *words)], results=[np.array(x, _U32) for x in result])
        for shape in ((), (3,), (3, 4), (0,)):
            draw = [rng.integers(0, 2 ** 32, shape, _U32) for _ in range(self._words)]
            yield Sample([np.array(7, _U32)] * self._key + draw)
            yield Sample([rng.integers(0, 2 ** 32, shape, _U32)] * self._key + draw[:1] + [np.array(3, _U32)] * (
                self._words - 1))
        zeros = [np.zeros(3, _U32)] * (self._key + self._words)
        yield Sample([*zeros[1:], np.zeros(3, np.int32)], error=TypeError)
        yield Sample([*zeros[1:], np.zeros(2, _U32)], error=ValueError)


@lru_cache(maxsize=256)
def _program(block: Block, avals: tuple[ShapedArray, ...]) -> Jaxpr:
    return stage_closed(lambda *args: block.decompose(args), avals)


# A few words as one integer of Python's, for which each operation takes as long as for one word

#: So many words are mixed sooner as one integer than by NumPy, which takes 0.07 ms for any number of them.
FEW = 256


@lru_cache(maxsize=2 * FEW)
def lanes(count: int) -> tuple[int, int]:
    """Integers with so many lanes of 64 bits: with a one in each, and with the numbers 0, 1, 2, ...

    The lower half of a lane is a word. The upper one is room for what a word that is shifted or added to leaves there.
    """
    return in_lanes(np.ones(count, _U32)), in_lanes(np.arange(count, dtype=_U32))


def in_lanes(words: np.ndarray) -> int:
    """Words as one integer, each in a lane."""
    return int.from_bytes(words.astype("<u8").tobytes(), "little")


def of_lanes(number: int, count: int) -> np.ndarray:
    """The halves of all lanes, lower ones first."""
    return np.frombuffer(number.to_bytes(8 * count, "little"), "<u4")


def _spread(x: Any, shape: tuple[int, ...]) -> Any:
    return x if aval_of(x).shape == shape else lax.broadcast_in_dim(x, shape, (0,))


def counts(shape: tuple[int, ...]) -> tuple[Any, Any]:
    """The numbers 0, 1, 2, ... in an array of this shape, as their upper and lower words.

    It is made of one number for each axis, so that each device can make its own part of it.
    """
    if prod(shape) <= 2 ** 32:
        return np.uint32(0), _counts(shape, _U32)
    both = _counts(shape, np.dtype("uint64"))
    return [lax.convert_element_type(x, _U32) for x in (lax.shift_right_logical(both, np.uint64(32)), both)]  # type: ignore[return-value]


def _counts(shape: tuple[int, ...], dtype: np.dtype) -> Any:
    total: Any = None
    for dimension, size in enumerate(shape):
        if size != 1:
            step = prod(shape[dimension + 1:])
            along = lax.broadcasted_iota(dtype, shape, dimension)
            along = along if step == 1 else along * dtype.type(step)
            total = along if total is None else total + along
    return lax.full(shape, 0, dtype) if total is None else total
