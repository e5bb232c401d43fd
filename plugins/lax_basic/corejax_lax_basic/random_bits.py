"""Random numbers as the compiler generates them: bits from a key and a counter, and numbers without a key."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from enum import IntEnum
from typing import Any

import numpy as np

from corejax.core import Array, ArrayLike, DTypeLike, ShapedArray, Zero, aval_of, dtypes, to_dim
from corejax.errors import CorejaxTypeError, CorejaxValueError
from corejax.plugin import (
    Effect,
    Sample,
    define,
    families,
    hookimpl,
    not_differentiable,
    not_linear,
    refused,
    roles,
    shaping,
)
from corejax_lax_basic._axes import Shape, all_weak, canonical_dtype, check_shape, same_dtype

__all__ = ["DRAWN", "RandomAlgorithm", "rng_bit_generator", "rng_uniform"]

#: The effect of `rng_uniform`: each call draws other numbers.
DRAWN = Effect("random_state")

_NAME = "rng_bit_generator"

#: How the compiler calls an algorithm, and how many words of 32 bits it makes at a time, for each number.
_ALGORITHMS = (("DEFAULT", 4), ("THREE_FRY", 2), ("PHILOX", 4))

_SIZES = {np.dtype("uint32"): 4, np.dtype("uint64"): 2}
_BITS = tuple(map(np.dtype, ("uint8", "uint16", "uint32", "uint64")))


class RandomAlgorithm(IntEnum):
    """How random bits are computed from a key: as the device does it by itself, or by one of two algorithms.

    >>> key, bits = rng_bit_generator(np.zeros(2, np.uint64), (2,), algorithm=RandomAlgorithm.RNG_THREE_FRY)
    >>> [hex(word) for word in bits.tolist()]
    ['0x6b200159', '0x99ba4efe']
    """

    RNG_DEFAULT = 0
    RNG_THREE_FRY = 1
    RNG_PHILOX = 2

    def __str__(self) -> str:
        return self.name


class RngBitGenerator:
    """`rng_bit_generator(key, shape, dtype=uint32, algorithm=RandomAlgorithm.RNG_DEFAULT)`: a new key, and random bits.

    The key is a vector of two uint64, a seed and a counter, or of the four uint32 that these consist of. The new key is
    for the next call: its counter has grown by the blocks that were used. The bits are unsigned integers. On the CPU,
    `RNG_DEFAULT` is `RNG_PHILOX`; elsewhere it may be something else.

    >>> key, bits = rng_bit_generator(np.zeros(2, np.uint64), (2, 2))
    >>> key.tolist(), [hex(word) for word in bits.ravel().tolist()]
    ([0, 1], ['0x6627e8d5', '0xe169c58d', '0xbc57ac4c', '0x9b00dbd8'])
    """

    name = _NAME
    multiple_results = True
    operands = ("key",)
    transpose = not_linear("bits aren't linear in a key")

    def function(self, bind: Callable[..., Any]) -> Callable[..., Any]:
        def rng_bit_generator(key: ArrayLike, shape: Sequence[int], dtype: DTypeLike = np.uint32,
                              algorithm: RandomAlgorithm | int = RandomAlgorithm.RNG_DEFAULT) -> tuple[Array, Array]:
            new_key, bits = bind(key, shape=shaping.as_ints(_NAME, "shape", shape), dtype=canonical_dtype(dtype),
                                 algorithm=_number(algorithm))
            return new_key, bits
        return rng_bit_generator

    @hookimpl
    def abstract_eval(self, avals: Sequence[ShapedArray], *, shape: Shape, dtype: np.dtype, algorithm: int
                      ) -> list[ShapedArray]:
        (key,) = avals
        check_shape(_NAME, "shape", shape)
        if key.shape != (_SIZES.get(key.dtype),):
            raise refused(_NAME, "that isn't a key", got=str(key), wanted="u64[2] or u32[4]",
                          todo="pass a seed and a counter: np.array([seed, 0], np.uint64)", kind=CorejaxTypeError)
        if dtype not in _BITS:
            raise refused(_NAME, "bits are unsigned integers", got=dtypes.long_name(dtype),
                          wanted=", ".join(map(str, _BITS)), todo="convert the bits afterwards", kind=CorejaxTypeError)
        _number(algorithm)
        return [key.update(weak_type=False), ShapedArray(shape, dtype)]

    @hookimpl
    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> Any:
        outs = rng_bit_generator.primitive.bind(*primals, **params)
        return outs, [Zero(aval_of(out).tangent) for out in outs]

    @hookimpl
    def vmap(self, axis: Any, args: Sequence[Any], dims: Sequence[int], **params: Any) -> Any:
        keys = to_dim(args[0], dims[0], 0, axis.size)
        outs = roles.sequential_map(lambda xs: rng_bit_generator.primitive.bind(xs[0], **params), [keys])
        return outs, [0, 0]

    @hookimpl
    def xla_translation(self, ctx: Any, args: Sequence[Any], *, algorithm: int) -> Any:
        (key,), (key_aval, bits_aval) = args, ctx.avals_out
        pair, halves = [ctx.type_of(ShapedArray(*each)) for each in (((2,), "uint64"), ((2, 2), "uint32"))]
        of_words = key_aval.dtype == np.uint32
        if of_words:
            rows = ctx.op("stablehlo.reshape", [key], None, [halves])
            key = ctx.op("stablehlo.bitcast_convert", [rows], None, [pair])
        name = ctx.attribute(f"#stablehlo<rng_algorithm {_ALGORITHMS[algorithm][0]}>")
        key, bits = ctx.op("stablehlo.rng_bit_generator", [key], {"rng_algorithm": name},
                           [pair, ctx.type_of(bits_aval)])
        if of_words:
            rows = ctx.op("stablehlo.bitcast_convert", [key], None, [halves])
            key = ctx.op("stablehlo.reshape", [rows], None, [ctx.type_of(key_aval)])
        return [key, bits]

    @hookimpl
    def samples(self, rng: np.random.Generator) -> Iterator[Sample]:
        # The known answers of both algorithms for seed 0 and counter 0, from their authors.
        known = {1: [0x6B200159, 0x99BA4EFE], 2: [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]}
        for algorithm, words in known.items():
            parts = np.array(words, np.uint32)
            for dtype in _BITS[2 * (algorithm == 1):]:
                bits = parts.view(dtype) if dtype.itemsize == 8 else parts.astype(dtype)
                yield Sample([np.zeros(2, np.uint64)], {"shape": bits.shape, "dtype": dtype, "algorithm": algorithm},
                             results=[np.array([0, 1], np.uint64), bits])
        params = {"shape": (2, 2), "dtype": np.dtype("uint32"), "algorithm": 2}
        yield Sample([np.zeros(4, np.uint32)], params, results=[np.array([0, 0, 1, 0], np.uint32), parts.reshape(2, 2)])
        yield Sample([np.array([7, 3], np.uint64)], {**params, "shape": (0, 2)}, results=[
            np.array([7, 3], np.uint64), np.zeros((0, 2), np.uint32)])
        for key in (np.zeros(3, np.uint32), np.zeros(2, np.int64), np.zeros((2, 2), np.uint64)):
            yield Sample([key], params, error=TypeError)
        yield Sample([np.zeros(2, np.uint64)], {**params, "dtype": np.dtype("int32")}, error=TypeError)
        yield Sample([np.zeros(2, np.uint64)], {**params, "algorithm": 3}, error=ValueError)


def _number(algorithm: Any) -> int:
    """The number of an algorithm, checked."""
    if isinstance(algorithm, int) and 0 <= algorithm < len(_ALGORITHMS):
        return int(algorithm)
    raise refused(_NAME, "there is no such algorithm", got=repr(algorithm), wanted="a RandomAlgorithm, or 0 to 2",
                  todo="use lax.RandomAlgorithm.RNG_DEFAULT", kind=CorejaxValueError)


rng_bit_generator: Any = define(RngBitGenerator())


_INTEGERS = tuple(map(np.dtype, ("int32", "int64", "uint32", "uint64")))
_FLOATS = tuple(map(np.dtype, (np.float16, dtypes.bfloat16, np.float32, np.float64)))


class RngUniform:
    """`rng_uniform(a, b, shape)`: numbers between `a` and `b`, from a generator of the device that has no key.

    Each call and each step of a loop gives other numbers, and nobody can have the same ones again, so a function that
    draws them can't be checkpointed or exported. Integers are below `b`; where `b <= a`, the results mean nothing.
    `rng_bit_generator` gives the same bits for the same key.

    >>> bool(rng_uniform(0.0, 1.0, (1000,)).max() < 1)
    True
    >>> rng_uniform(3, 4, (2,)).tolist()
    [3, 3]
    """

    name = "rng_uniform"
    operands = ("a", "b")
    jvp = not_differentiable("its numbers can't be drawn again beside other bounds")
    transpose = not_linear()

    def function(self, bind: Callable[..., Any]) -> Callable[..., Any]:
        def rng_uniform(a: ArrayLike, b: ArrayLike, shape: Sequence[int]) -> Array:
            a, b = families.match_scalars([a, b])
            return bind(a, b, shape=shaping.as_ints("rng_uniform", "shape", shape))  # type: ignore[no-any-return]
        return rng_uniform

    @hookimpl
    def abstract_eval(self, avals: Sequence[ShapedArray], *, shape: Shape) -> ShapedArray:
        a, b = avals
        check_shape(self.name, "shape", shape)
        if a.shape or b.shape:
            raise refused(self.name, "the bounds must be scalars", got=f"{a} and {b}", wanted="()",
                          todo="draw between 0 and 1, then multiply and add")
        same_dtype(self.name, avals)
        dtype = a.dtype
        if dtype not in (*_FLOATS, *_INTEGERS):
            raise refused(self.name, "numbers of this type can't be drawn", got=dtypes.long_name(dtype),
                          wanted=", ".join(map(str, (*_FLOATS, *_INTEGERS))), todo="convert the result",
                          kind=CorejaxTypeError)
        return ShapedArray(shape, dtype, all_weak(avals))

    @hookimpl
    def effects(self, avals: Sequence[ShapedArray], *, shape: Shape) -> frozenset[Effect]:
        return frozenset({DRAWN})

    @hookimpl
    def vmap(self, axis: Any, args: Sequence[Any], dims: Sequence[Any], *, shape: Shape) -> Any:
        bounds = [to_dim(x, d, 0, axis.size) for x, d in zip(args, dims, strict=True)]
        return roles.sequential_map(lambda xs: rng_uniform.primitive.bind(*xs, shape=shape), bounds), 0

    @hookimpl
    def xla_translation(self, ctx: Any, args: Sequence[Any], *, shape: Shape) -> Any:
        sizes = ctx.constant(np.array(shape, np.int64))
        how = {"rng_distribution": ctx.attribute("#stablehlo<rng_distribution UNIFORM>")}
        return ctx.op("stablehlo.rng", [*args, sizes], how, [ctx.type_of(ctx.avals_out[0])])

    @hookimpl
    def samples(self, rng: np.random.Generator) -> Iterator[Sample]:
        # The laws are about results that can be had twice: those without elements. What is drawn, tests look at.
        exempt = {"no counterexample is found": "each call gives other numbers",
                  "effects are declared": "what was drawn can't be seen of nothing"}
        for dtype in (*_FLOATS, *_INTEGERS):
            yield Sample([dtype.type(0), dtype.type(9)], {"shape": (0, 2)}, results=np.zeros((0, 2), dtype),
                         exempt=exempt)
        yield Sample([0, 9], {"shape": (0,)}, results=np.zeros(0, np.int64), exempt=exempt)
        for a, b in ((np.int8(0), np.int8(1)), (0j, 1j), (False, True), (np.float32(0), np.float64(1)),
                     (np.zeros(2), np.ones(2)), (0, 1.0)):
            yield Sample([a, b], {"shape": (2,)}, error=TypeError)
        yield Sample([0.0, 1.0], {"shape": (-1,)}, error=TypeError)


rng_uniform: Any = define(RngUniform())
