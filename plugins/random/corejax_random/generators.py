"""Random generators: what keys are made of, and how bits are made from a key. Packs may bring more of them.

A generator is the element type of its keys, too: those of `threefry2x32` have the dtype `key<fry>`.

>>> from corejax_random.generators import find
>>> find("threefry2x32"), find("fry") is find("threefry2x32")
(Generator('threefry2x32', key<fry>), True)
"""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches
from typing import Any

import numpy as np

from corejax.config import config
from corejax.core import Array, ShapedArray, dtypes, to_dim, vmap_flat
from corejax.errors import CorejaxKeyError, CorejaxTypeError, CorejaxValueError
from corejax.plugin import (
    ElementType,
    Setting,
    elements,
    entry_point_names,
    extended,
    find as find_primitive,
    load_entry_point,
    refused,
    settings,
)

__all__ = ["default_prng_impl", "prng_key"]

default_prng_impl = Setting("default_prng_impl", "threefry2x32", settings.Name(),
                            "the random generator of keys that are made without naming one")

GROUP = "corejax.random.generators"


class prng_key(extended):
    """The abstract class of keys, whatever their generator: `issubdtype(key.dtype, dtypes.prng_key)`."""


class Generator(ElementType):
    """A random generator, by the name `algorithm`; the element type of its keys is called `key<tag>`.

    Derive a class from it, with the four methods below. Each gets what is stored of one key, `u32[*key_shape]`, and
    computes with it by functions of `corejax`, so that the method can be traced. They are mapped over arrays of keys.
    An instance needs two entry points: in `corejax.random.generators` under the name `algorithm`, and in
    `corejax.dtypes` under the name `key<tag>`, by which arrays and programs from files are understood.

    A generator may have the first three again as `seed_in_memory(words)`, `split_in_memory(key, shape)` and
    `fold_in_in_memory(key, data)`, for one key in host memory: from Python's integers and ndarrays to ndarrays, with
    the same bits. These save the time to compile and to start programs.
    """

    seed_in_memory: Any = None
    split_in_memory: Any = None
    fold_in_in_memory: Any = None

    def __init__(self, algorithm: str, tag: str, key_shape: Sequence[int]) -> None:
        super().__init__(f"key<{tag}>", "uint32", key_shape, show=_shown, equal=self._equal, kind=prng_key,
                         todo="use the functions of corejax.random, or look inside with random.key_data(key)")
        self.algorithm, self.tag = algorithm, tag
        self.one_key = ShapedArray((), self.dtype)

    def seed(self, words: Array) -> Any:
        """A key, from the upper and the lower word of a seed: `u32[2]`."""
        raise self._missing("seed")

    def split(self, key: Array, shape: tuple[int, ...]) -> Any:
        """New keys, as `u32[*shape, *key_shape]`."""
        raise self._missing("split")

    def fold_in(self, key: Array, data: Array) -> Any:
        """A new key, from a key and a number, `u32[]`."""
        raise self._missing("fold_in")

    def random_bits(self, key: Array, bit_width: int, shape: tuple[int, ...]) -> Any:
        """An array of this shape, of unsigned integers with `bit_width` bits: 8, 16, 32 or 64."""
        raise self._missing("random_bits")

    def over(self, method: Any, args: Sequence[Any], ndim: int) -> Any:
        """What a method makes of arrays with `ndim` leading axes, which it is mapped over."""
        if not ndim:
            return method(*args)
        size = args[0].shape[0]
        (out,), (dim,) = vmap_flat(lambda *xs: [self.over(method, xs, ndim - 1)], size, None, list(args),
                                   [0] * len(args))
        return to_dim(out, dim, 0, size)

    def _equal(self, x: Array, y: Array) -> Any:
        words = [find_primitive("random_unwrap").bind_one(keys) for keys in (x, y)]
        return (words[0] == words[1]).all(tuple(range(-len(self.trailing), 0)))

    def _missing(self, method: str) -> CorejaxTypeError:
        return refused(self.algorithm, f"the generator has no method {method}", got=type(self).__name__,  # type: ignore[return-value]
                       wanted="a subclass of Generator with seed, split, fold_in and random_bits",
                       todo=f"write {type(self).__name__}.{method}")

    def __repr__(self) -> str:
        return f"Generator({self.algorithm!r}, {self.name})"


def _shown(words: np.ndarray) -> str:
    return ":".join([f"{word:08x}" for word in words.reshape(-1).tolist()])


def find(impl: Any = None, name: str = "key") -> Generator:
    """The generator that `impl` stands for: its name or tag, itself, or the dtype of its keys.

    None stands for the one that `config.default_prng_impl` names. `name` is the function that asks.
    """
    if impl is None:
        impl = config.default_prng_impl
    if isinstance(impl, str):
        return _named(impl, name)
    return impl if isinstance(impl, Generator) else generator_of(_dtype(impl, name), name)


def _dtype(impl: Any, name: str) -> np.dtype:
    try:
        return dtypes.canonical(impl)
    except CorejaxTypeError as error:
        raise refused(name, "this isn't a random generator", got=repr(impl)[:80],
                      wanted=f"one of {', '.join(entry_point_names(GROUP))}, or the dtype of a key",
                      todo="leave it out for the usual one") from error


def _named(impl: str, name: str) -> Generator:
    try:
        found = load_entry_point(GROUP, impl)
    except CorejaxKeyError:
        return _of_tag(impl, name)
    if not isinstance(found, Generator) or found.algorithm != impl:
        raise refused(name, f"the entry point {impl!r} of {GROUP} doesn't lead to a generator of that name",
                      got=repr(found)[:80], wanted=f"a Generator({impl!r}, ...)",
                      todo="correct the entry point of the pack that brings it")
    return found


def _of_tag(impl: str, name: str) -> Generator:
    of_tag = impl if impl.startswith("key<") else f"key<{impl}>"
    if dtypes.is_declared(of_tag):
        return generator_of(dtypes.canonical(of_tag), name)
    names = entry_point_names(GROUP)
    close = get_close_matches(impl, names, 1)
    todo = f"did you mean {close[0]!r}?" if close else "install the pack that brings it, or use one of these"
    raise refused(name, "no random generator has this name", got=repr(impl)[:80], wanted=", ".join(names), todo=todo,
                  kind=CorejaxValueError)


def generator_of(dtype: np.dtype, name: str = "key") -> Generator:
    """The generator whose keys have this dtype."""
    found = elements.find(dtype)
    if not isinstance(found, Generator):
        raise refused(name, "this isn't the dtype of keys", got=dtypes.short_name(dtype), wanted="the dtype of a key",
                      todo="make a key with random.key(0)")
    return found
