"""Keys: made from seeds, split into others, and looked into."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from operator import index
from typing import Any

import numpy as np

from corejax import lax
from corejax.config import config
from corejax.core import Array, ArrayLike, ShapedArray, aval_of, context, dtypes, is_on_device, to_numpy
from corejax.errors import CorejaxOverflowError, CorejaxTypeError, CorejaxValueError
from corejax.plugin import elements, public, refused, shaping
from corejax_random.generators import Generator, find, generator_of
from corejax_random.keyed import (
    random_clone_p,
    random_fold_in_p,
    random_seed_p,
    random_split_p,
    random_unwrap_p,
    random_wrap_p,
)

__all__ = ["PRNGKey", "clone", "fold_in", "key", "key_data", "key_dtype", "key_impl", "split", "wrap_key_data"]

_LEAST, _MOST = -2 ** 63, 2 ** 64 - 1
_WORD = 2 ** 32 - 1


# From seeds

@public
def key(seed: ArrayLike, *, impl: Any = None, dtype: Any = None) -> Array:
    """A key, from an integer. `impl` is a generator's name; `dtype` that of keys of such a generator.

    All 64 bits of the seed count, from -2**63 to 2**64 - 1. A negative one of Python's is taken as 64 bits, or under
    `default_bits=32` as 32 if it has no more; one of an array as its dtype has it.

    >>> random.key(42), random.key(0, impl="rbg").dtype.names
    (Array(00000000:0000002a, dtype=key<fry>), ('key<rbg>',))
    """
    return _from_seed("key", seed, _generator("key", impl, dtype))


@public
def PRNGKey(seed: ArrayLike, *, impl: Any = None) -> Array:
    """What is stored of `key(seed)`, as an array of words. Every function here takes these words as a key, too.

    >>> random.PRNGKey(42)
    Array([ 0, 42], dtype=uint32)
    """
    return random_unwrap_p.primitive.bind_one(_from_seed("PRNGKey", seed, find(impl, "PRNGKey")))  # type: ignore[no-any-return]


def _generator(name: str, impl: Any, dtype: Any) -> Generator:
    if dtype is None:
        return find(impl, name)
    if impl is not None:
        raise refused(name, "impl and dtype both name a generator", got=f"impl={impl!r:.40}, dtype={dtype!r:.40}",
                      wanted="one of them", todo="leave out one of them", kind=CorejaxValueError)
    return find(dtype, name)


def _from_seed(name: str, seed: Any, generator: Generator) -> Array:
    if type(seed) is int or isinstance(seed, int) and not isinstance(seed, bool):
        return _from_int(name, index(seed), generator)
    try:
        aval = aval_of(seed)
    except CorejaxTypeError:
        aval = None
    if aval is None or not dtypes.is_integer(aval.dtype):
        is_key = aval is not None and isinstance(elements.find(aval.dtype), Generator)
        raise refused(name, "this is a key already" if is_key else "a seed is an integer",
                      got=f"a {type(seed).__name__}" if aval is None else aval, wanted="an integer",
                      todo="use it as it is, or fold_in(key, number)" if is_key else "pass an integer, such as 0")
    if aval.ndim:
        raise refused(name, "a key is made from one seed", got=aval, wanted="a scalar",
                      todo=f"map it: cj.vmap(random.{name})(seeds)")
    return random_seed_p.primitive.bind(seed, dtype=generator.dtype)  # type: ignore[no-any-return]


def _from_int(name: str, seed: int, generator: Generator) -> Array:
    if not _LEAST <= seed <= _MOST:
        raise refused(name, "a seed has 64 bits", got=dtypes.shown(seed), wanted="an integer from -2**63 to 2**64 - 1",
                      todo="hash it to 64 bits, or fold its parts in with fold_in", kind=CorejaxOverflowError)
    high = seed >> 32 & _WORD
    if seed < 0 and seed >= -2 ** 31 and config.default_bits == 32:
        high = 0
    words = [high, seed & _WORD]
    if generator.seed_in_memory is not None and not config.debug_key_reuse:
        return _made(generator, generator.seed_in_memory(words), generator.one_key)
    number = np.uint64(high << 32 | words[1])
    return random_seed_p.primitive.bind(number, dtype=generator.dtype)  # type: ignore[no-any-return]


def _made(generator: Generator, words: np.ndarray, aval: ShapedArray) -> Array:
    host = generator.of(words)
    return Array.from_host(host if aval.shape else host[()], aval)


# From keys

@public
def split(key: ArrayLike, num: int | Sequence[int] = 2) -> Array:
    """New keys, as many as `num` says, or an array of this shape. Don't use the key for anything else.

    >>> a, b = random.split(random.key(0))
    >>> random.split(a, (2, 3)).shape
    (2, 3)
    """
    shape = _sizes("split", num)
    keys, raw = single_key("split", key)
    words = _in_memory(keys)
    if words is not None and (generator := generator_of(keys.dtype)).split_in_memory is not None:
        made = _made(generator, generator.split_in_memory(words, shape), _many(generator, shape))
    else:
        made = random_split_p.primitive.bind(keys, shape=shape)
    return key_data(made) if raw else made


def _sizes(name: str, num: Any) -> tuple[int, ...]:
    shape = shaping.as_ints(name, "num", num)
    for size in shape:
        if size < 0:
            raise refused(name, "a number of keys can't be negative", got=num, wanted="sizes of 0 or more",
                          todo="check how it is computed", kind=CorejaxValueError)
    return shape


@lru_cache(maxsize=1024)
def _many(generator: Generator, shape: tuple[int, ...]) -> ShapedArray:
    return ShapedArray(shape, generator.dtype)


@public
def fold_in(key: ArrayLike, data: ArrayLike) -> Array:
    """A new key, from a key and a number of 32 bits, such as that of a step.

    >>> random.fold_in(random.key(0), 7)
    Array(a1ef7a4d:116eb6b3, dtype=key<fry>)
    """
    keys, raw = single_key("fold_in", key)
    number = _word(data)
    words = _in_memory(keys) if type(number) is int else None
    if words is not None and (generator := generator_of(keys.dtype)).fold_in_in_memory is not None:
        made = _made(generator, generator.fold_in_in_memory(words, number), generator.one_key)
    else:
        made = random_fold_in_p.primitive.bind(keys, np.uint32(number) if type(number) is int else number)
    return key_data(made) if raw else made


def _word(data: Any) -> Any:
    """A number to fold in: an integer from 0 to 2**32 - 1, or a traced array, of which the lower 32 bits count."""
    if isinstance(data, (int, np.integer)) and not isinstance(data, (bool, np.bool_)):
        number = index(data)
        if not 0 <= number <= _WORD and isinstance(data, int):
            raise refused("fold_in", "the number to fold in has 32 bits", got=dtypes.shown(number),
                          wanted="an integer from 0 to 2**32 - 1",
                          todo="take it modulo 2**32, or fold in its parts one after the other",
                          kind=CorejaxOverflowError)
        return number & _WORD
    aval = aval_of(data)
    if not dtypes.is_integer(aval.dtype):
        raise refused("fold_in", "only an integer can be folded in", got=aval, wanted="an integer",
                      todo="convert it: data.astype(int)")
    if aval.ndim:
        raise refused("fold_in", "one number is folded in at a time", got=aval, wanted="a scalar",
                      todo="map it: cj.vmap(random.fold_in, in_axes=(None, 0))(key, numbers)")
    return data if aval.dtype == np.uint32 else lax.convert_element_type(data, np.uint32)


@public
def clone(key: ArrayLike) -> Array:
    """The same key, to use it once more on purpose: `config.debug_key_reuse` takes it for another one.

    >>> random.clone(random.key(0)) == random.key(0)
    Array(True, dtype=bool)
    """
    keys, raw = as_keys("clone", key)
    made = random_clone_p.primitive.bind_one(keys)
    return key_data(made) if raw else made


# What keys are made of

@public
def key_data(keys: ArrayLike) -> Array:
    """What is stored of keys: an array of words, with the words of each key along its last axes.

    >>> random.key_data(random.key(42))
    Array([ 0, 42], dtype=uint32)
    """
    keys, raw = as_keys("key_data", keys)
    return random_unwrap_p.primitive.bind_one(keys)  # type: ignore[no-any-return]


@public
def wrap_key_data(key_bits_array: ArrayLike, *, impl: Any = None, dtype: Any = None) -> Array:
    """The keys of which this is what is stored; the inverse of `key_data`.

    >>> random.wrap_key_data(random.PRNGKey(42)) == random.key(42)
    Array(True, dtype=bool)
    """
    generator = _generator("wrap_key_data", impl, dtype)
    return random_wrap_p.primitive.bind(key_bits_array, dtype=generator.dtype)  # type: ignore[no-any-return]


@public
def key_impl(keys: ArrayLike) -> str:
    """The name of the generator of keys.

    >>> random.key_impl(random.key(0))
    'threefry2x32'
    """
    return generator_of(as_keys("key_impl", keys)[0].dtype).algorithm


@public
def key_dtype(impl_spec: Any = None) -> np.dtype:
    """The dtype of keys of a generator.

    >>> random.key(0).dtype == random.key_dtype("threefry2x32")
    True
    """
    return find(impl_spec, "key_dtype").dtype


# Arguments of functions

def as_keys(name: str, key: Any) -> tuple[Array, bool]:
    """An argument that should be keys, and whether it was an array of words."""
    if isinstance(key, Array):
        aval = key.aval
    else:
        try:
            aval = aval_of(key)
        except CorejaxTypeError:
            raise _no_key(name, f"a {type(key).__name__}") from None
    if isinstance(elements.find(aval.dtype), Generator):
        return key, False
    generator = find(None, name)
    ndim = len(generator.trailing)
    if aval.dtype != np.uint32 or aval.shape[aval.ndim - ndim:] != generator.trailing or aval.ndim < ndim:
        raise _no_key(name, aval)
    return random_wrap_p.primitive.bind(key, dtype=generator.dtype), True


def single_key(name: str, key: Any) -> tuple[Array, bool]:
    """The same for an argument that should be one key."""
    keys, raw = as_keys(name, key)
    if keys.aval.ndim:
        raise refused(name, "this takes one key", got=keys.aval, wanted=f"{dtypes.short_name(keys.dtype)}[]",
                      todo=f"pick one, keys[0], or map the function over all: cj.vmap(random.{name})",
                      kind=CorejaxValueError)
    return keys, raw


def _no_key(name: str, got: Any) -> CorejaxTypeError:
    return refused(name, "the first argument must be a key", got=got, wanted="a key, or the words of one",  # type: ignore[return-value]
                   todo="make one: random.key(0), and split it for each use")


def _in_memory(keys: Any) -> np.ndarray | None:
    """What is stored of one key, if it is in host memory, and nothing is traced or looks on."""
    if not context.trace.knows_values or type(keys) is not Array or is_on_device(keys) or config.debug_key_reuse:
        return None
    return generator_of(keys.dtype).stored(to_numpy(keys))
