"""Attentions drawn at random, and what they mean, written out over all scores at once."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

import corejax.numpy as jnp


class Drawn(NamedTuple):
    """Arrays that have derivatives, query, key, value and maybe bias; the other options; weights of the result."""

    arrays: list[np.ndarray]
    options: dict[str, Any]
    weights: np.ndarray


def drawn(seed: int, dtype: str = "float64", every_row_counts: bool = False) -> Drawn:
    """An attention; `every_row_counts` leaves none for which all scores are masked."""
    rng = np.random.default_rng(seed)

    def between(low: int, high: int) -> int:
        return int(rng.integers(low, high + 1))

    batch, key_heads, group, size = between(1, 3), between(1, 2), between(1, 2), between(1, 4)
    queries, keys, heads = between(1, 19), between(1, 19), key_heads * group
    full = batch, heads, queries, keys

    def shape() -> tuple[int, ...]:
        return tuple([n if rng.random() < 0.5 else 1 for n in full])

    key, value = rng.standard_normal((2, batch, keys, key_heads, size))
    arrays = [rng.standard_normal((batch, queries, heads, size)), key, value]
    if rng.random() < 0.5:
        arrays.append(rng.standard_normal(shape()))
    options: dict[str, Any] = {}
    if rng.random() < 0.4:
        options["mask"] = rng.random(shape()) < 0.8
        options["mask"][..., 0] |= every_row_counts
    if rng.random() < 0.4:
        options["is_causal"] = True
    if rng.random() < 0.4 and not (every_row_counts and (queries > keys or "mask" in options)):
        options["local_window_size"] = between(0, 4), between(0, 4)
    lowest = int(every_row_counts)
    if rng.random() < 0.3:
        options["query_seq_lengths"] = rng.integers(0, queries + 1, batch).astype(np.int32)
    if rng.random() < 0.3 and not (every_row_counts and "local_window_size" in options):
        options["key_value_seq_lengths"] = rng.integers(lowest, keys + 1, batch).astype(np.int32)
    if rng.random() < 0.3:
        options["scale"] = 0.7
    return Drawn([x.astype(dtype) for x in arrays], options, rng.standard_normal(arrays[0].shape).astype(dtype))


def plainly(query: Any, key: Any, value: Any, bias: Any = None, *, mask: Any = None, is_causal: bool = False,
            local_window_size: Any = None, query_seq_lengths: Any = None, key_value_seq_lengths: Any = None,
            scale: Any = None) -> Any:
    """What queries find."""
    batch, queries, heads, size = query.shape
    _, keys, key_heads, _ = key.shape
    key, value = [jnp.repeat(x, heads // key_heads, axis=2) for x in (key, value)]
    scores = jnp.einsum("btnh,bsnh->bnts", query, key) * (size ** -0.5 if scale is None else scale)
    if bias is not None:
        scores = scores + bias
    here, there = np.arange(queries)[:, None], np.arange(keys)
    counts = np.ones((batch, heads, queries, keys), bool) if mask is None else np.broadcast_to(
        mask, (batch, heads, queries, keys))
    if is_causal:
        counts = counts & (there <= here)
    if local_window_size is not None:
        counts = counts & (there >= here - local_window_size[0]) & (there <= here + local_window_size[1])
    if query_seq_lengths is not None:
        counts = counts & (here < query_seq_lengths[:, None, None, None])
    if key_value_seq_lengths is not None:
        counts = counts & (there < key_value_seq_lengths[:, None, None, None])
    powers = jnp.where(counts, jnp.exp(jnp.where(counts, scores, 0)), 0)
    total = powers.sum(-1, keepdims=True)
    return jnp.einsum("bnts,bsnh->btnh", powers / jnp.where(total == 0, 1, total), value)
