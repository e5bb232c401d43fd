"""Attentions for the conformance kit, small ones: their blocks are whole."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from corejax.plugin import Sample
from corejax_nn._attention_types import ALWAYS, Names

__all__ = ["attentions", "indifferent", "odd_samples", "wrt_some"]

_PLAIN: dict[str, Any] = {"scale": 0.5, "is_causal": False, "window": None, "extras": ()}


def attentions(rng: Any) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Operands by their names, and params."""
    drawn = rng.standard_normal
    lengths = {"query_lengths": np.array([3, 1], np.int32), "key_lengths": np.array([0, 2])}
    cases: list[tuple[tuple[int, ...], int, int, dict[str, Any], dict[str, Any]]] = [
        ((1, 2, 1, 3), 3, 1, {"is_causal": True}, {}),
        ((2, 3, 2, 1), 4, 1, {"window": (1, 0), "scale": 1.0},
         {"bias": drawn((1, 2, 3, 4)), "mask": rng.random((2, 1, 1, 4)) < 0.7, **lengths})]
    for (batch, queries, of_queries, size), keys, heads, options, extras in cases:
        key, value = drawn((2, batch, keys, heads, size))
        yield ({"query": drawn((batch, queries, of_queries, size)), "key": key, "value": value, **extras},
               {**_PLAIN, **options, "extras": tuple(extras)})


def indifferent(rng: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """An attention where each of four keys is wanted as much as the others, so each query finds the mean."""
    key, value = rng.standard_normal((2, 1, 4, 1, 2))
    return {"query": np.zeros((1, 3, 1, 2)), "key": key, "value": value}, _PLAIN


def wrt_some(operands: Mapping[str, Any]) -> list[Names]:
    """With respect to what to differentiate."""
    return [(*ALWAYS, "bias")] if "bias" in operands else [ALWAYS, ("query",)]


def odd_samples(rng: Any) -> Iterator[Sample]:
    """No query, and operands that don't fit."""
    x = rng.standard_normal((1, 2, 1, 3))
    yield Sample([x[:, :0], x, x], _PLAIN)
    yield Sample([x, x[0], x], _PLAIN, error=ValueError)
    yield Sample([x, x, x[..., :2]], _PLAIN, error=ValueError)
    yield Sample([x, x.astype(np.float32), x], _PLAIN, error=TypeError)
