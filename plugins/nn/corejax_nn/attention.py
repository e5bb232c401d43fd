"""Attention: what each query finds among keys, by how much it wants each."""

from __future__ import annotations

from math import sqrt
from typing import Any, Literal, overload

import numpy as np

from corejax import lax
from corejax.core import Array, ArrayLike, aval_of
from corejax.errors import CorejaxTypeError, CorejaxValueError
from corejax.plugin import public, refused, shaping
from corejax_nn._attention_types import results_of
from corejax_nn._operands import floating, operand
from corejax_nn.attending import nn_attention

__all__ = ["dot_product_attention"]

NAME = "dot_product_attention"


@overload
def dot_product_attention(
        query: ArrayLike, key: ArrayLike, value: ArrayLike, bias: ArrayLike | None = None,
        mask: ArrayLike | None = None, *, scale: ArrayLike | None = None, is_causal: bool = False,
        query_seq_lengths: ArrayLike | None = None, key_value_seq_lengths: ArrayLike | None = None,
        local_window_size: int | tuple[int, int] | None = None, implementation: Literal["xla", "cudnn"] | None = None,
        return_residual: Literal[False] = False) -> Array: ...


@overload
def dot_product_attention(
        query: ArrayLike, key: ArrayLike, value: ArrayLike, bias: ArrayLike | None = None,
        mask: ArrayLike | None = None, *, scale: ArrayLike | None = None, is_causal: bool = False,
        query_seq_lengths: ArrayLike | None = None, key_value_seq_lengths: ArrayLike | None = None,
        local_window_size: int | tuple[int, int] | None = None, implementation: Literal["xla", "cudnn"] | None = None,
        return_residual: Literal[True]) -> tuple[Array, Array]: ...


@public
def dot_product_attention(
        query: ArrayLike, key: ArrayLike, value: ArrayLike, bias: ArrayLike | None = None,
        mask: ArrayLike | None = None, *, scale: ArrayLike | None = None, is_causal: bool = False,
        query_seq_lengths: ArrayLike | None = None, key_value_seq_lengths: ArrayLike | None = None,
        local_window_size: int | tuple[int, int] | None = None, implementation: Literal["xla", "cudnn"] | None = None,
        return_residual: bool = False) -> Array | tuple[Array, Array]:
    """For each query, the mean of values, weighted by `softmax(scale * query @ key + bias)` over the keys that count.

    Shapes are `[B, T, N, H]` for queries and `[B, S, K, H]` for keys and values, or without B; each of K heads of keys
    serves N / K heads of queries. Bias and mask broadcast to `[B, N, T, S]`. A score counts if the mask is True; with
    `is_causal`, if the key is at the query's position or before; with `local_window_size`, if it is at most so many
    before or (before, after) it; if both are within the lengths of their batch, `[B]`. A query for which none counts
    finds 0.

    `scale` is 1 / sqrt(H) unless given. Memory is for the scores of some queries at a time, also for derivatives of any
    order, so it grows with the number of positions, not with its square. `implementation` is accepted, and changes
    nothing: what computes is the primitive `nn_attention`, for which a pack may bring another platform's program. With
    `return_residual`, the result is a pair, with the logarithms of the sums of exp(score), `[B, T, N]`.

    >>> x = np.eye(3)[:, None, :]
    >>> nn.dot_product_attention(x, x, x, scale=np.log(2.0), is_causal=True)[:, 0].round(3).tolist()
    [[1.0, 0.0, 0.0], [0.333, 0.667, 0.0], [0.25, 0.25, 0.5]]
    """
    if implementation not in (None, "xla", "cudnn"):
        raise refused(NAME, "there is no such implementation", got=repr(implementation), todo="leave it out",
                      wanted="'xla', 'cudnn' or None", kind=CorejaxValueError)
    arrays = [floating(NAME, x) for x in (query, key, value)]
    without_batch = aval_of(arrays[0]).ndim == 3
    given = {"bias": bias, "mask": mask, "query_lengths": query_seq_lengths, "key_lengths": key_value_seq_lengths}
    extras = {name: operand(NAME, x) for name, x in given.items() if x is not None}
    if without_batch:
        arrays = [lax.expand_dims(x, (0,)) if aval_of(x).ndim == 3 else x for x in arrays]
    for name in ("bias", "mask"):
        if name in extras and aval_of(extras[name]).ndim < 4:
            extras[name] = lax.expand_dims(extras[name], tuple(range(4 - aval_of(extras[name]).ndim)))
    if "bias" in extras:
        extras["bias"] = floating(NAME, extras["bias"])
    arrays[0], factor = _scaled(arrays[0], scale)
    operands, names, window = [*arrays, *extras.values()], tuple(extras), _window(local_window_size)
    results_of(NAME, [aval_of(x) for x in operands], names, window)
    out, log = nn_attention.primitive.bind(*operands, scale=factor, window=window, extras=names,
                                           is_causal=shaping.as_flag(NAME, "is_causal", is_causal))
    if without_batch:
        out, log = [lax.squeeze(x, (0,)) for x in (out, log)]
    if not shaping.as_flag(NAME, "return_residual", return_residual):
        return out  # type: ignore[no-any-return]
    return out, lax.convert_element_type(log, aval_of(out).dtype)


def _scaled(query: Any, scale: Any) -> tuple[Any, float]:
    """The queries and a number, for the scale: one that isn't known yet is in the queries."""
    if scale is None:
        return query, 1 / sqrt(max(aval_of(query).shape[-1], 1)) if aval_of(query).ndim else 1.0
    if isinstance(scale, (int, float, np.integer, np.floating)) and not isinstance(scale, bool):
        return query, float(scale)
    factor = floating(NAME, scale)
    if aval_of(factor).ndim:
        raise refused(NAME, "the scale must be one number", got=aval_of(factor), wanted="a scalar",
                      todo="multiply query by the scales of heads", kind=CorejaxValueError)
    return query * lax.convert_element_type(factor, aval_of(query).dtype), 1.0


def _window(size: Any) -> tuple[int, int] | None:
    if size is None:
        return None
    sizes = shaping.as_ints(NAME, "local_window_size", size)
    if isinstance(size, bool) or len(sizes) not in (1, 2):
        raise refused(NAME, "local_window_size must be one number, or two", got=repr(size)[:80],
                      wanted="how many keys count before each query, and how many after", kind=CorejaxTypeError,
                      todo="pass (before, after)")
    return sizes[0], sizes[-1]
