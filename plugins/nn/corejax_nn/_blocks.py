"""Attention, block by block: a block of queries is compared with all keys that it sees, and its scores are forgotten.

Inside, arrays have the axes `[batch, key head, query head of this, query, size]`, or `[batch, key head, key, size]`;
bias and mask `[batch, key head, query head of this, query, key]`, where 1 stands for all. Scores that don't count are
-infinity. A query for which none counts finds 0, and its sum of powers has the logarithm -infinity.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from math import prod
from typing import Any, NamedTuple

import numpy as np

import corejax_numpy as jnp
from corejax import lax
from corejax.core import aval_of, dtypes
from corejax.plugin import checkpoint

__all__ = ["Arrays", "Block", "Form", "by_key", "by_query", "by_size", "in_blocks", "inside", "outside", "score_dtype"]

#: A block has so many queries, or fewer if its scores would be more than these; few scores are one block.
QUERIES, MANY, FEW = 128, 2 ** 23, 2 ** 20

#: Queries that don't see all keys are cut into so many parts at most, each with the keys that some of it see.
PARTS = 4

#: Where the axes of queries and of keys are.
QUERY_AXIS = {"query": 3, "out": 3, "log": 3, "out_bar": 3, "log_bar": 3, "query_dot": 3, "bias": 3, "bias_dot": 3,
              "mask": 3}
KEY_AXIS = {"key": 2, "value": 2, "key_dot": 2, "value_dot": 2, "bias": 4, "bias_dot": 4, "mask": 4}

Arrays = Mapping[str, Any]


class Form(NamedTuple):
    """What is known of an attention before its operands: how scores are scaled, and which of them count.

    `extras` names the operands that follow query, key and value: of "bias", "mask", "query_lengths", "key_lengths".
    """

    scale: float
    is_causal: bool
    window: tuple[int, int] | None
    extras: tuple[str, ...]


def score_dtype(dtype: np.dtype) -> np.dtype:
    """In what scores are computed: float32, if that isn't narrower."""
    return dtype if dtype.itemsize > 4 else np.dtype(np.float32)


# The axes inside

def inside(named: Arrays) -> dict[str, Any]:
    """Operands as they are used inside."""
    heads = aval_of(named["key"]).shape[2]
    return {name: _inside(name, x, heads) for name, x in named.items()}


def _inside(name: str, x: Any, heads: int) -> Any:
    if name in ("query_lengths", "key_lengths"):
        x = lax.expand_dims(x, (1, 2, 3, 4))
        return x if dtypes.bits_of(x.dtype) >= 32 else lax.convert_element_type(x, np.int32)
    if name in ("key", "value", "key_dot", "value_dot"):
        return lax.transpose(x, (0, 2, 1, 3))
    if name in ("bias", "bias_dot", "mask"):
        return _by_group(x, heads)
    if name in ("log", "log_bar"):
        x = lax.expand_dims(x, (3,))
    return _by_group(lax.transpose(x, (0, 2, 1, 3)), heads)


def _by_group(x: Any, heads: int) -> Any:
    """`[b, n, t, s]`, with the heads of queries beside those of keys."""
    b, n, t, s = aval_of(x).shape
    return lax.reshape(x, (b, 1, 1, t, s) if n == 1 else (b, heads, n // heads, t, s))


def outside(name: str, x: Any, dtype: np.dtype) -> Any:
    """A result in the axes of the operand of this name."""
    if name not in ("key", "value"):
        b, k, g, t, s = aval_of(x).shape
        x = lax.reshape(x, (b, k * g, t, s))
    if name != "bias":
        x = lax.transpose(x, (0, 2, 1, 3))
    return lax.convert_element_type(lax.squeeze(x, (3,)) if name == "log" else x, dtype)


# All blocks

def in_blocks(form: Form, arrays: Arrays, compute: Callable[[Block], dict[str, Any]], wrt: Sequence[str] = ()
              ) -> dict[str, Any]:
    """What a function finds for each block, put together along queries and batches.

    Results have the names and axes of arrays. Those in `wrt` are cotangents, summed where blocks share the array.
    """
    batch, heads, group, queries, _ = _shape(arrays["query"])
    size, together = _sizes(batch, heads * group, queries, _shape(arrays["key"])[2])

    def some(number: Any) -> dict[str, Any]:
        part = {name: _slice(x, 0, number, together) for name, x in arrays.items()}
        return _in_parts(form, part, compute, wrt, size)

    shared = [name for name in wrt if _shape(arrays[name])[0] == 1 < batch]
    return _in_turn(some, max(batch // together, 1), 0, _zeros(arrays, shared))


def _sizes(batch: int, heads: int, queries: int, keys: int) -> tuple[int, int]:
    """How many queries a block has, and of how many batches."""
    each = heads * keys
    if batch * queries * each <= FEW:
        return max(queries, 1), max(batch, 1)
    size = min(queries, QUERIES)
    fitting = [n for n in range(1, batch + 1) if batch % n == 0 and n * size * each <= MANY]
    together = max(fitting, default=1)
    return max(1, min(size, MANY // (together * each))), together


def _in_parts(form: Form, arrays: Arrays, compute: Callable[[Block], dict[str, Any]], wrt: Sequence[str], size: int
              ) -> dict[str, Any]:
    """The same for all queries of some batches."""
    queries, keys = _shape(arrays["query"])[3], _shape(arrays["key"])[2]
    shared = [name for name in wrt if name not in QUERY_AXIS or _shape(arrays[name])[3] == 1 < queries]
    sums, parts = _zeros(arrays, shared), []
    for first, end in _parts(form, queries, size):
        low, high = _seen(form, first, end, keys)
        part = {name: _cut(_cut(x, QUERY_AXIS.get(name), first, end), KEY_AXIS.get(name), low, high)
                for name, x in arrays.items()}
        found = _in_part(form, part, compute, shared, first, low, min(size, end - first))
        for name in wrt:
            found[name] = _among(found[name], KEY_AXIS.get(name), low, _shape(arrays[name]))
        sums = {name: total + found.pop(name) for name, total in sums.items()}
        parts.append(found)
    return {**sums, **{name: lax.concatenate([part[name] for part in parts], 3) for name in parts[0]}}


def _parts(form: Form, queries: int, size: int) -> Iterator[tuple[int, int]]:
    """Where parts of the queries begin and end: each is of whole blocks, but a last one may be less than a block."""
    whole = queries - queries % size
    sees_all = not form.is_causal and form.window is None
    step = whole if sees_all else -(-whole // (size * PARTS)) * size
    for first in range(0, whole, max(step, 1)):
        yield first, min(first + step, whole)
    if whole < queries or not queries:
        yield whole, queries


def _seen(form: Form, first: int, end: int, keys: int) -> tuple[int, int]:
    """The keys that these queries may see."""
    low, high = 0, keys
    if form.is_causal:
        high = min(high, end)
    if form.window is not None:
        low, high = max(low, first - form.window[0]), min(high, end + form.window[1])
    low = min(low, keys)
    return low, max(low, high)


def _in_part(form: Form, arrays: Arrays, compute: Callable[[Block], dict[str, Any]], shared: Sequence[str],
             first_query: int, first_key: int, size: int) -> dict[str, Any]:
    """The same for queries that see the same keys."""
    def some(number: Any) -> dict[str, Any]:
        part = {name: _slice(x, QUERY_AXIS.get(name), number, size) for name, x in arrays.items()}
        return compute(Block(form, part, first_query + number * size, first_key))

    count = _shape(arrays["query"])[3] // max(size, 1)
    return _in_turn(some, max(count, 1), 3, _zeros(arrays, shared))


def _in_turn(some: Callable[[Any], dict[str, Any]], count: int, axis: int, sums: dict[str, Any]) -> dict[str, Any]:
    """What a function of a number finds for each: side by side along an axis, or added to `sums`.

    Derivatives of derivatives compute each turn anew, too.
    """
    if count == 1:
        return some(np.int32(0))
    again = checkpoint(some)

    def turn(sums: dict[str, Any], number: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        found = again(number)
        return {name: total + found.pop(name) for name, total in sums.items()}, found

    sums, found = lax.scan(turn, sums, np.arange(count, dtype=np.int32))
    return {**sums, **{name: lax.collapse(jnp.moveaxis(x, 0, axis), axis, axis + 2) for name, x in found.items()}}


def _shape(x: Any) -> tuple[int, ...]:
    return aval_of(x).shape


def _slice(x: Any, axis: int | None, number: Any, size: int) -> Any:
    """The piece with this number, of the size, unless there is one for all."""
    return x if axis is None or _shape(x)[axis] <= size else lax.dynamic_slice_in_dim(x, number * size, size, axis)


def _cut(x: Any, axis: int | None, low: int, high: int) -> Any:
    return x if axis is None or _shape(x)[axis] == 1 else lax.slice_in_dim(x, low, high, axis=axis)


def _among(x: Any, axis: int | None, low: int, shape: tuple[int, ...]) -> Any:
    """A cotangent of some keys, from `low`, as one of all keys of an array that has this shape."""
    if axis is None or _shape(x)[axis] == shape[axis]:
        return x
    return jnp.pad(x, [(low, size - low - _shape(x)[i]) if i == axis else (0, 0) for i, size in enumerate(shape)])


def _zeros(arrays: Arrays, names: Sequence[str]) -> dict[str, Any]:
    dtype = score_dtype(aval_of(arrays["query"]).dtype)
    return {name: jnp.zeros(_shape(arrays[name]), dtype) for name in names}


# One block

class Block:
    """Arrays of a block of queries, and of the keys that they see; `block["query"]`."""

    def __init__(self, form: Form, arrays: Arrays, first_query: Any, first_key: int) -> None:
        self.form, self.arrays, self.first_query, self.first_key = form, arrays, first_query, first_key

    def __getitem__(self, name: str) -> Any:
        return self.arrays[name]

    def scores(self) -> Any:
        """How much each query wants each key."""
        found = by_size(self["query"], self["key"]) * self.form.scale
        if "bias" in self.arrays:
            found = found + lax.convert_element_type(self["bias"], aval_of(found).dtype)
        for counts in self._counting():
            found = jnp.where(counts, found, -np.inf)
        return found

    def _counting(self) -> Iterator[Any]:
        """Conditions for a score to count."""
        queries = self.first_query + np.arange(_shape(self["query"])[3], dtype=np.int32)[:, None]
        keys = np.arange(_shape(self["key"])[2], dtype=np.int32) + np.int32(self.first_key)
        if self.form.is_causal:
            yield keys <= queries
        if self.form.window is not None:
            before, after = [np.int32(np.clip(n, -2 ** 30, 2 ** 30)) for n in self.form.window]
            yield (keys >= queries - before) & (keys <= queries + after)
        if "query_lengths" in self.arrays:
            yield queries < self["query_lengths"]
        if "key_lengths" in self.arrays:
            yield keys < self["key_lengths"]
        if "mask" in self.arrays:
            yield self["mask"]

    def shares(self) -> Any:
        """How much of each value each query gets, from the logarithms of the sums."""
        log = self["log"]
        return lax.exp(self.scores() - jnp.where(log == -np.inf, 0, log))


# Products, in the dtype of scores

def by_size(x: Any, y: Any) -> Any:
    """For each query and key: the sum of products along `size`."""
    return _product(x, y, 2, 2)


def by_key(x: Any, y: Any) -> Any:
    """For each query, the sum over keys of scores times what keys have."""
    return _product(lax.convert_element_type(x, aval_of(y).dtype), y, 2, 1)


def by_query(x: Any, y: Any) -> Any:
    """For each key, the sum over queries of scores times what queries have."""
    return _product(lax.convert_element_type(x, aval_of(y).dtype), y, 1, 1)


def _product(x: Any, y: Any, of_x: int, of_y: int) -> Any:
    """Each is a matrix for each head of keys, with all queries of this head in one axis."""
    batch, heads, *rows, size = _shape(x)
    flat = [lax.reshape(each, (batch * heads, prod(_shape(each)[2:-1]), _shape(each)[-1])) for each in (x, y)]
    found = lax.dot_general(*flat, (((of_x,), (of_y,)), ((0,), (0,))),
                            preferred_element_type=score_dtype(aval_of(x).dtype))
    rows = rows if of_x == 2 else [size]
    return lax.reshape(found, (batch, heads, *rows, _shape(found)[-1]))
