"""Attention as primitives: what queries find, its tangents, and the cotangents of its operands.

The second and the third take the results of the first: from these, scores are computed anew instead of being kept. Each
has `decompose`, which goes block by block; a pack may bring another platform's program for any.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set as AbstractSet
from typing import Any

import numpy as np

import corejax_numpy as jnp
from corejax import lax
from corejax.core import ShapedArray, Zero, aval_of, instantiate, to_dim
from corejax.plugin import Linear, Sample, define, hookimpl, refused
from corejax_nn._attention_samples import attentions, indifferent, odd_samples, wrt_some
from corejax_nn._attention_types import ALWAYS, RESULTS, Names, Window, by_name, check_alike, results_of
from corejax_nn._blocks import Block, Form, by_key, by_query, by_size, in_blocks, inside, outside, score_dtype

__all__ = ["nn_attention", "nn_attention_back", "nn_attention_forward"]

NAME = "dot_product_attention"


class Attention:
    """`nn_attention(query, key, value, *others, ...)`: what queries find, and the logarithms of their powers' sums.

    Shapes are `[B, T, N, H]` for queries, `[B, S, K, H]` for keys and values, `[B or 1, N or 1, T or 1, S or 1]` for
    bias and mask, `[B]` for lengths; `extras` names the others that are there. The results are `[B, T, N, H]`, and
    `[B, T, N]` in the dtype of scores.

    >>> x = np.zeros((1, 3, 2, 4))
    >>> out, log = lax.nn_attention(x, x, x, scale=0.5, is_causal=True, window=None, extras=())
    >>> out.shape, np.exp(log[0, :, 0]).round(9).tolist()
    ((1, 3, 2, 4), [1.0, 2.0, 3.0])
    """

    name = "nn_attention"
    operands = (*ALWAYS, "*others")
    multiple_results = True
    symbolic_zeros = True

    def _names(self, extras: Names, wrt: Names) -> Names:
        return *ALWAYS, *extras

    @hookimpl
    def abstract_eval(self, avals: Any, *, scale: float, is_causal: bool, window: Window, extras: Names
                      ) -> list[ShapedArray]:
        return results_of(self.name, avals, extras, window)

    @hookimpl
    def jvp(self, primals: Any, tangents: Any, *, extras: Names, **params: Any) -> Any:
        outs = nn_attention.primitive.bind(*primals, extras=extras, **params)
        wrt = tuple([name for name, t in zip(self._names(extras, ()), tangents, strict=True) if type(t) is not Zero])
        dots = [t for t in tangents if type(t) is not Zero]
        return outs, nn_attention_forward.primitive.bind(*primals, *outs, *dots, extras=extras, wrt=wrt, **params)

    @hookimpl
    def vmap(self, axis: Any, args: Any, dims: Any, *, extras: Names, **params: Any) -> Any:
        joined, batch = _batches_joined(axis, self._names(extras, ()), args, dims, shared={"bias", "mask"})
        outs = nn_attention.primitive.bind(*joined, extras=extras, **params)
        return [_apart(x, axis.size, batch) for x in outs], [0] * len(outs)

    @hookimpl
    def decompose(self, args: Any, *, scale: float, is_causal: bool, window: Window, extras: Names) -> list[Any]:
        def compute(block: Block) -> dict[str, Any]:
            scores = block.scores()
            most = scores.max(-1, keepdims=True, initial=-np.inf)
            base = jnp.where(most == -np.inf, 0, most)
            powers = lax.exp(scores - base)
            total = powers.sum(-1, keepdims=True)
            out = by_key(powers, block["value"]) / jnp.where(total == 0, 1, total)
            return {"out": out, "log": base + lax.log(total)}

        form = Form(scale, is_causal, window, extras)
        arrays = inside(dict(zip(self._names(extras, ()), args, strict=True)))
        return _as_results(in_blocks(form, arrays, compute), args[0])

    @hookimpl
    def samples(self, rng: Any) -> Iterator[Sample]:
        operands, params = indifferent(rng)
        mean = np.broadcast_to(operands["value"].mean(1, keepdims=True), (1, 3, 1, 2))
        yield Sample([*operands.values()], params, results=[mean, np.full((1, 3, 1), np.log(4.0))])
        for operands, params in attentions(rng):
            yield Sample([*operands.values()], params)
        yield from odd_samples(rng)


class AttentionForward:
    """`nn_attention_forward(*operands, out, log, *tangents, ...)`: tangents of the results of `nn_attention`.

    After the operands of that and its results come tangents of the operands that `wrt` names.
    """

    name = "nn_attention_forward"
    operands = (*ALWAYS, "*others")
    multiple_results = True

    def _names(self, extras: Names, wrt: Names) -> Names:
        return *ALWAYS, *extras, *RESULTS, *[f"{name}_dot" for name in wrt]

    @hookimpl
    def abstract_eval(self, avals: Any, *, scale: float, is_causal: bool, window: Window, extras: Names, wrt: Names
                      ) -> list[ShapedArray]:
        results = results_of(self.name, avals[:3 + len(extras)], extras, window)
        named = by_name(self.name, self._names(extras, wrt), avals, extras, wrt)
        check_alike(self.name, named, dict(zip(RESULTS, results, strict=True)))
        check_alike(self.name, named, {f"{x}_dot": named[x] for x in wrt})
        return results

    @hookimpl
    def transpose(self, cotangents: Any, args: Any, *, extras: Names, wrt: Names, **params: Any) -> Any:
        others, dots = args[:-len(wrt)], args[-len(wrt):]
        if any([type(x) is Linear for x in others]):
            raise refused(self.name, "it is linear in tangents only", got="an operand to transpose with respect to",
                          wanted="a tangent", todo="differentiate it: cj.vjp")
        wanted = tuple([name for name, dot in zip(wrt, dots, strict=True) if type(dot) is Linear])
        bars = [instantiate(ct) for ct in cotangents]
        found = iter(nn_attention_back.primitive.bind(*others, *bars, extras=extras, wrt=wanted, **params))
        return [None] * len(others) + [next(found) if type(dot) is Linear else None for dot in dots]

    @hookimpl
    def vmap(self, axis: Any, args: Any, dims: Any, *, extras: Names, wrt: Names, **params: Any) -> Any:
        joined, batch = _batches_joined(axis, self._names(extras, wrt), args, dims, shared={"bias", "mask"} - {*wrt})
        outs = nn_attention_forward.primitive.bind(*joined, extras=extras, wrt=wrt, **params)
        return [_apart(x, axis.size, batch) for x in outs], [0] * len(outs)

    @hookimpl
    def decompose(self, args: Any, *, scale: float, is_causal: bool, window: Window, extras: Names, wrt: Names
                  ) -> list[Any]:
        def compute(block: Block) -> dict[str, Any]:
            shares = block.shares()
            scores_dot, out_dot = jnp.zeros_like(shares), 0
            if "query" in wrt:
                scores_dot = scores_dot + scale * by_size(block["query_dot"], block["key"])
            if "key" in wrt:
                scores_dot = scores_dot + scale * by_size(block["query"], block["key_dot"])
            if "bias" in wrt:
                scores_dot = scores_dot + lax.convert_element_type(block["bias_dot"], aval_of(shares).dtype)
            log_dot = (shares * scores_dot).sum(-1, keepdims=True)
            if wrt != ("value",):
                out_dot = by_key(shares * (scores_dot - log_dot), block["value"])
            if "value" in wrt:
                out_dot = out_dot + by_key(shares, block["value_dot"])
            return {"out": out_dot, "log": log_dot}

        form = Form(scale, is_causal, window, extras)
        arrays = inside(dict(zip(self._names(extras, wrt), args, strict=True)))
        return _as_results(in_blocks(form, arrays, compute), args[0])

    @hookimpl
    def samples(self, rng: Any) -> Iterator[Sample]:
        operands, params = indifferent(rng)
        value_dot = rng.standard_normal((1, 4, 1, 2))
        mean = np.broadcast_to(value_dot.mean(1, keepdims=True), (1, 3, 1, 2))
        yield Sample([*operands.values(), *_found(operands, params), value_dot], {**params, "wrt": ("value",)},
                     results=[mean, np.zeros((1, 3, 1))])
        for operands, params in attentions(rng):
            for wrt in wrt_some(operands):
                dots = [rng.standard_normal(operands[name].shape) for name in wrt]
                yield Sample([*operands.values(), *_found(operands, params), *dots], {**params, "wrt": wrt})


class AttentionBack:
    """`nn_attention_back(*operands, out, log, out_bar, log_bar, ...)`: cotangents of the operands of `nn_attention`.

    After the operands of that come its results, and their cotangents. There is a result for each name in `wrt`.
    """

    name = "nn_attention_back"
    operands = (*ALWAYS, "*others")
    multiple_results = True

    def _names(self, extras: Names, wrt: Names) -> Names:
        return *ALWAYS, *extras, *RESULTS, "out_bar", "log_bar"

    @hookimpl
    def abstract_eval(self, avals: Any, *, scale: float, is_causal: bool, window: Window, extras: Names, wrt: Names
                      ) -> list[ShapedArray]:
        results = results_of(self.name, avals[:3 + len(extras)], extras, window)
        named = by_name(self.name, self._names(extras, wrt), avals, extras, wrt)
        check_alike(self.name, named, dict(zip((*RESULTS, "out_bar", "log_bar"), [*results, *results], strict=True)))
        return [named[name].update(weak_type=False) for name in wrt]

    @hookimpl
    def vmap(self, axis: Any, args: Any, dims: Any, *, extras: Names, wrt: Names, **params: Any) -> Any:
        joined, batch = _batches_joined(axis, self._names(extras, wrt), args, dims, shared={"bias", "mask"} - {*wrt})
        outs = nn_attention_back.primitive.bind(*joined, extras=extras, wrt=wrt, **params)
        found = dict(zip(wrt, [_apart(x, axis.size, batch) for x in outs], strict=True))
        if "bias" in wrt and _batch_of(args[at := self._names(extras, wrt).index("bias")], dims[at]) == 1:
            found["bias"] = found["bias"].sum(1, keepdims=True)  # of one bias for all batches
        return list(found.values()), [0] * len(found)

    @hookimpl
    def decompose(self, args: Any, *, scale: float, is_causal: bool, window: Window, extras: Names, wrt: Names
                  ) -> list[Any]:
        named = dict(zip(self._names(extras, wrt), args, strict=True))
        arrays = inside(named)

        def compute(block: Block) -> dict[str, Any]:
            shares, bars = block.shares(), {}
            if "value" in wrt:
                bars["value"] = by_query(shares, block["out_bar"])
            if wrt == ("value",):
                return bars
            wide = aval_of(shares).dtype
            out, out_bar = [lax.convert_element_type(block[name], wide) for name in ("out", "out_bar")]
            apart = (out * out_bar).sum(-1, keepdims=True) - block["log_bar"]
            scores_bar = shares * (by_size(block["out_bar"], block["value"]) - apart)
            if "bias" in wrt:
                shape = aval_of(block["bias"]).shape
                bars["bias"] = scores_bar.sum([i for i, n in enumerate(shape) if n == 1], keepdims=True)
            if "query" in wrt:
                bars["query"] = scale * by_key(scores_bar, block["key"])
            if "key" in wrt:
                bars["key"] = scale * by_query(scores_bar, block["query"])
            return bars

        found = in_blocks(Form(scale, is_causal, window, extras), arrays, compute, wrt)
        return [outside(name, found[name], aval_of(named[name]).dtype) for name in wrt]

    @hookimpl
    def samples(self, rng: Any) -> Iterator[Sample]:
        operands, params = indifferent(rng)
        results = _found(operands, params)
        out_bar, log_bar = rng.standard_normal((1, 3, 1, 2)), np.zeros((1, 3, 1))
        each = np.broadcast_to(out_bar.sum(1, keepdims=True) / 4, (1, 4, 1, 2))
        yield Sample([*operands.values(), *results, out_bar, log_bar], {**params, "wrt": ("value",)}, results=[each])
        for operands, params in attentions(rng):
            results = _found(operands, params)
            for wrt in wrt_some(operands):
                bars = [rng.standard_normal(x.shape) for x in results]
                yield Sample([*operands.values(), *results, *bars], {**params, "wrt": wrt})


# What the three have in common

def _as_results(found: Mapping[str, Any], query: Any) -> list[Any]:
    dtype = aval_of(query).dtype
    return [outside("out", found["out"], dtype), outside("log", found["log"], score_dtype(dtype))]


def _batches_joined(axis: Any, names: Names, args: Any, dims: Any, shared: AbstractSet[str]) -> tuple[list[Any], int]:
    """Operands whose axis of batches has a mapped one before it, and the number of batches without that.

    What is `shared` may stay the same for all batches.
    """
    batch = _batch_of(args[0], dims[0])
    joined = []
    for name, x, dim in zip(names, args, dims, strict=True):
        if dim is not None or name not in shared or aval_of(x).shape[0] != 1:
            x = to_dim(x, dim, 0, axis.size)
            rest = aval_of(x).shape[2:]
            x = lax.reshape(jnp.broadcast_to(x, (axis.size, batch, *rest)), (axis.size * batch, *rest))
        joined.append(x)
    return joined, batch


def _batch_of(x: Any, dim: int | None) -> int:
    """The number of batches of an operand with a mapped axis."""
    return aval_of(x).shape[1 if dim == 0 else 0]


def _found(operands: Mapping[str, Any], params: Mapping[str, Any]) -> list[np.ndarray]:
    return [np.asarray(x) for x in nn_attention.primitive.bind(*operands.values(), **params)]


def _apart(x: Any, size: int, batch: int) -> Any:
    """A result, with the mapped axis by itself again."""
    return lax.reshape(x, (size, batch, *aval_of(x).shape[1:]))


nn_attention: Any = define(Attention())
nn_attention_forward: Any = define(AttentionForward())
nn_attention_back: Any = define(AttentionBack())
