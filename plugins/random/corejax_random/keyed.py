"""The primitives of keys. Whatever a generator does is one of them, so that programs say what becomes of a key."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from math import prod
from typing import Any

import numpy as np

from corejax import lax
from corejax.core import ShapedArray, aval_of, dtypes, to_dim
from corejax.errors import CorejaxTypeError, CorejaxValueError
from corejax.plugin import Sample, define, hookimpl, not_differentiable, not_linear, partials, refused
from corejax_random.generators import Generator, generator_of
from corejax_random.philox import PHILOX
from corejax_random.threefry import THREEFRY

__all__ = ["random_bits_p", "random_clone_p", "random_fold_in_p", "random_seed_p", "random_split_p", "random_unwrap_p",
           "random_wrap_p"]

Shape = tuple[int, ...]

_U32 = np.dtype("uint32")
_KEY = THREEFRY.of(np.array([3, 5], _U32))
_KEYS = THREEFRY.of(np.arange(6, dtype=_U32).reshape(3, 2))


class _OfKeys:
    """A primitive with an array of keys as its first operand; its other results' axes come after those of the array."""

    element_types = ("*",)
    transpose = not_linear("keys and bits aren't added")
    jvp: Any = partials(None)
    name: str

    def attached(self, primitive: Any) -> None:
        """Note the primitive that this plugin has become."""
        self._primitive = primitive

    def _generator(self, aval: ShapedArray) -> Generator:
        return generator_of(aval.dtype, self.name)

    @hookimpl
    def vmap(self, axis: Any, args: Sequence[Any], dims: Sequence[int | None], **params: Any) -> Any:
        moved = [to_dim(x, d, 0, axis.size) for x, d in zip(args, dims, strict=True)]
        return self._primitive.bind(*moved, **params), 0


class Wrap(_OfKeys):
    """random_wrap(words; dtype): keys, from what is stored of them along the last axes.

    >>> lax.random_wrap(np.array([0, 7], np.uint32), dtype=THREEFRY.dtype)
    Array(00000000:00000007, dtype=key<fry>)
    """

    name = "random_wrap"
    operands = ("words",)
    jvp = not_differentiable("keys have no derivatives")

    @hookimpl
    def impl(self, args: Sequence[Any], *, dtype: np.dtype) -> Any:
        return args[0]

    @hookimpl
    def abstract_eval(self, avals: Sequence[ShapedArray], *, dtype: np.dtype) -> ShapedArray:
        (words,), generator = avals, generator_of(dtype, self.name)
        ndim = words.ndim - len(generator.trailing)
        if words.dtype != _U32 or ndim < 0 or words.shape[ndim:] != generator.trailing:
            sizes = ", ".join(map(str, generator.trailing))
            raise refused(self.name, f"this isn't what keys of {generator.algorithm} are stored as",
                          got=str(words), wanted=f"u32[..., {sizes}]",
                          todo="pass random.key_data(key), or name the generator of these words: impl='...'",
                          kind=CorejaxTypeError)
        return ShapedArray(words.shape[:ndim], dtype)

    @hookimpl
    def xla_translation(self, ctx: Any, args: Sequence[Any], *, dtype: np.dtype) -> Any:
        return args[0]

    @hookimpl
    def samples(self, rng: np.random.Generator) -> Iterator[Sample]:
        for shape in ((), (3,), (2, 0)):
            yield Sample([rng.integers(0, 2 ** 32, (*shape, 2), _U32)], {"dtype": THREEFRY.dtype})
        yield Sample([np.array([3, 5], _U32)], {"dtype": PHILOX.dtype}, results=PHILOX.of(np.array([3, 5], _U32)))
        yield Sample([np.zeros(3, _U32)], {"dtype": THREEFRY.dtype}, error=TypeError)
        yield Sample([np.zeros(2, np.int32)], {"dtype": THREEFRY.dtype}, error=TypeError)


class Unwrap(_OfKeys):
    """random_unwrap(keys): what is stored of them, along the last axes.

    >>> lax.random_unwrap(_KEY)
    Array([3, 5], dtype=uint32)
    """

    name = "random_unwrap"
    operands = ("keys",)

    @hookimpl
    def impl(self, args: Sequence[Any]) -> Any:
        return args[0]

    @hookimpl
    def abstract_eval(self, avals: Sequence[ShapedArray]) -> ShapedArray:
        self._generator(avals[0])
        return avals[0].stored

    @hookimpl
    def xla_translation(self, ctx: Any, args: Sequence[Any]) -> Any:
        return args[0]

    @hookimpl
    def samples(self, rng: np.random.Generator) -> Iterator[Sample]:
        yield Sample([_KEY], results=np.array([3, 5], _U32))
        yield Sample([_KEYS])
        yield Sample([_KEYS[:0]])
        yield Sample([np.zeros(2, _U32)], error=TypeError)


class Seed(_OfKeys):
    """random_seed(seeds; dtype): keys, from integers, of which the lower 64 bits count.

    >>> lax.random_seed(np.array([7, -1]), dtype=THREEFRY.dtype)
    Array([00000000:00000007, ffffffff:ffffffff], dtype=key<fry>)
    """

    name = "random_seed"
    operands = ("seeds",)

    @hookimpl
    def abstract_eval(self, avals: Sequence[ShapedArray], *, dtype: np.dtype) -> ShapedArray:
        (seeds,), generator = avals, generator_of(dtype, self.name)
        if not dtypes.is_integer(seeds.dtype):
            raise refused(self.name, "a seed is an integer", got=str(seeds), wanted="an integer",
                          todo="convert it: seed.astype(int)")
        return ShapedArray(seeds.shape, generator.dtype)

    @hookimpl
    def decompose(self, args: Sequence[Any], *, dtype: np.dtype) -> Any:
        (seeds,), generator = args, generator_of(dtype, self.name)
        aval = aval_of(seeds)
        low = lax.convert_element_type(seeds, _U32)
        high = lax.full_like(low, 0)
        if aval.dtype.itemsize == 8:
            high = lax.convert_element_type(lax.shift_right_logical(seeds, lax.full_like(seeds, 32)), _U32)
        words = lax.concatenate([lax.expand_dims(x, (aval.ndim,)) for x in (high, low)], aval.ndim)
        return random_wrap_p.primitive.bind(generator.over(generator.seed, [words], aval.ndim), dtype=dtype)

    @hookimpl
    def samples(self, rng: np.random.Generator) -> Iterator[Sample]:
        for seed, words in ((np.int64(-1), [2 ** 32 - 1] * 2), (np.int32(7), [0, 7]),
                            (np.uint64(2 ** 40 + 3), [256, 3])):
            yield Sample([np.array(seed)], {"dtype": THREEFRY.dtype}, results=THREEFRY.of(np.array(words, _U32)))
        yield Sample([np.array(0)], {"dtype": PHILOX.dtype},
                     results=PHILOX.of(np.array([0x6627E8D5, 0xE169C58D], _U32)))
        yield Sample([np.arange(6).reshape(2, 3)], {"dtype": THREEFRY.dtype})
        yield Sample([np.zeros((0, 2), np.int8)], {"dtype": THREEFRY.dtype})
        yield Sample([np.zeros(3)], {"dtype": THREEFRY.dtype}, error=TypeError)


class Split(_OfKeys):
    """random_split(keys; shape): an array of new keys for each.

    >>> lax.random_split(_KEYS, shape=(2,)).shape
    (3, 2)
    """

    name = "random_split"
    operands = ("keys",)

    @hookimpl
    def abstract_eval(self, avals: Sequence[ShapedArray], *, shape: Shape) -> ShapedArray:
        (keys,) = avals
        self._generator(keys)
        _check_shape(self.name, shape)
        return ShapedArray((*keys.shape, *shape), keys.dtype)

    @hookimpl
    def decompose(self, args: Sequence[Any], *, shape: Shape) -> Any:
        return _rewrapped(args, lambda generator: lambda key: generator.split(key, shape))

    @hookimpl
    def samples(self, rng: np.random.Generator) -> Iterator[Sample]:
        words = np.array([[0x6B200159, 0x99BA4EFE]], _U32)
        yield Sample([THREEFRY.of(np.zeros(2, _U32))], {"shape": (1,)}, results=THREEFRY.of(words))
        for keys in (_KEY, _KEYS, _KEYS[:0]):
            yield Sample([keys], {"shape": (2, 3)})
        yield Sample([_KEY], {"shape": ()})
        yield Sample([np.zeros(2, _U32)], {"shape": (2,)}, error=TypeError)
        yield Sample([_KEY], {"shape": (-1,)}, error=ValueError)


class FoldIn(_OfKeys):
    """random_fold_in(keys, data): a new key for each, by a number.

    >>> lax.random_fold_in(_KEYS, np.arange(3, dtype=np.uint32)).shape
    (3,)
    """

    name = "random_fold_in"
    operands = ("keys", "data")
    jvp = partials(None, None)

    @hookimpl
    def abstract_eval(self, avals: Sequence[ShapedArray]) -> ShapedArray:
        keys, data = avals
        self._generator(keys)
        if data.dtype != _U32 or data.shape != keys.shape:
            raise refused(self.name, "each key needs a number", got=f"{data} for {keys}",
                          wanted=f"a uint32 array of shape {keys.shape}", todo="pass an integer for one key",
                          kind=CorejaxTypeError)
        return ShapedArray(keys.shape, keys.dtype)

    @hookimpl
    def decompose(self, args: Sequence[Any]) -> Any:
        return _rewrapped(args, lambda generator: generator.fold_in)

    @hookimpl
    def samples(self, rng: np.random.Generator) -> Iterator[Sample]:
        yield Sample([THREEFRY.of(np.zeros(2, _U32)), np.array(0, _U32)],
                     results=THREEFRY.of(np.array([0x6B200159, 0x99BA4EFE], _U32)))
        yield Sample([_KEYS, np.arange(3, dtype=_U32)])
        yield Sample([_KEYS[:0], np.zeros(0, _U32)])
        yield Sample([_KEY, np.zeros(3, _U32)], error=TypeError)
        yield Sample([_KEY, np.array(0)], error=TypeError)


class Bits(_OfKeys):
    """random_bits(keys; bit_width, shape): unsigned integers, an array of this shape for each key.

    >>> lax.random_bits(_KEYS, bit_width=8, shape=(2,)).shape
    (3, 2)
    """

    name = "random_bits"
    operands = ("keys",)

    @hookimpl
    def abstract_eval(self, avals: Sequence[ShapedArray], *, bit_width: int, shape: Shape) -> ShapedArray:
        (keys,) = avals
        self._generator(keys)
        _check_shape(self.name, shape)
        if bit_width not in (8, 16, 32, 64):
            raise refused(self.name, "there are no unsigned integers of this width", got=repr(bit_width),
                          wanted="8, 16, 32 or 64", todo="draw more bits, and shift them", kind=CorejaxValueError)
        return ShapedArray((*keys.shape, *shape), f"uint{bit_width}")

    @hookimpl
    def decompose(self, args: Sequence[Any], *, bit_width: int, shape: Shape) -> Any:
        (keys,) = args
        generator = self._generator(aval_of(keys))
        return generator.over(lambda key: generator.random_bits(key, bit_width, shape),
                              [random_unwrap_p.primitive.bind(keys)], aval_of(keys).ndim)

    @hookimpl
    def samples(self, rng: np.random.Generator) -> Iterator[Sample]:
        yield Sample([THREEFRY.of(np.zeros(2, _U32))], {"bit_width": 32, "shape": (1,)},
                     results=np.array([0x6B200159 ^ 0x99BA4EFE], _U32))
        for bit_width in (8, 16, 32, 64):
            yield Sample([_KEY], {"bit_width": bit_width, "shape": (2, 3)})
        for keys in (_KEYS, _KEYS[:0]):
            yield Sample([keys], {"bit_width": 32, "shape": (2,)})
        yield Sample([_KEY], {"bit_width": 32, "shape": (0, 2)})
        yield Sample([_KEY], {"bit_width": 12, "shape": (2,)}, error=ValueError)
        yield Sample([np.zeros(2, _U32)], {"bit_width": 32, "shape": (2,)}, error=TypeError)


class Clone(_OfKeys):
    """random_clone(keys): the same keys, to be used again on purpose.

    >>> lax.random_clone(_KEY) == _KEY
    Array(True, dtype=bool)
    """

    name = "random_clone"
    operands = ("keys",)

    @hookimpl
    def impl(self, args: Sequence[Any]) -> Any:
        return args[0].copy()

    @hookimpl
    def abstract_eval(self, avals: Sequence[ShapedArray]) -> ShapedArray:
        self._generator(avals[0])
        return avals[0]

    @hookimpl
    def xla_translation(self, ctx: Any, args: Sequence[Any]) -> Any:
        return args[0]

    @hookimpl
    def samples(self, rng: np.random.Generator) -> Iterator[Sample]:
        for keys in (_KEY, _KEYS, _KEYS[:0]):
            yield Sample([keys], results=keys)
        yield Sample([np.zeros(2, _U32)], error=TypeError)


def _rewrapped(args: Sequence[Any], method: Callable[[Generator], Callable[..., Any]]) -> Any:
    """What a generator's method makes of keys and other operands: again keys."""
    keys, *others = args
    aval = aval_of(keys)
    generator = generator_of(aval.dtype)
    made = generator.over(method(generator), [random_unwrap_p.primitive.bind(keys), *others], aval.ndim)
    return random_wrap_p.primitive.bind(made, dtype=generator.dtype)


def _check_shape(name: str, shape: Any) -> None:
    if type(shape) is not tuple or any([type(size) is not int or size < 0 for size in shape]):
        raise refused(name, "this isn't a shape", got=repr(shape)[:80], wanted="a tuple of sizes of 0 or more",
                      todo="check how it is computed", kind=CorejaxValueError)
    if prod(shape) > 2 ** 64:
        raise refused(name, "one key gives 2**64 numbers", got=f"a shape of {prod(shape)} elements",
                      wanted="a smaller shape", todo="split the key", kind=CorejaxValueError)


random_wrap_p: Any = define(Wrap())
random_unwrap_p: Any = define(Unwrap())
random_seed_p: Any = define(Seed())
random_split_p: Any = define(Split())
random_fold_in_p: Any = define(FoldIn())
random_bits_p: Any = define(Bits())
random_clone_p: Any = define(Clone())
