"""Maps of convolutions, each as one convolution: the batch axis becomes part of the batch, of features, or of groups.

Groups are the slowest part of the axis that they divide, so a batch axis goes behind them, or becomes groups itself.
"""

from __future__ import annotations

from typing import Any

from corejax import lax
from corejax.core import ShapedArray, aval_of
from corejax.plugin import shaping
from corejax_windows._conv_axes import merged, split


def mapped(primitive: Any, size: int, args: Any, dims: Any, params: dict[str, Any]) -> tuple[Any, int]:
    """The convolution of every slice, and where the batch axis of the result is."""
    (lhs, rhs), (l_dim, r_dim) = args, dims
    if size == 0:
        return _empty(primitive, args, dims, params), 0
    (batch, features, *_), (outs, *_), (out_batch, out_features, *_) = params["dimension_numbers"]
    feature_groups, batch_groups = params["feature_group_count"], params["batch_group_count"]
    groups = feature_groups * batch_groups
    if r_dim is None:
        out = primitive.bind(_behind_groups(lhs, l_dim, batch, batch_groups), rhs, **params)
        return split(out, out_batch, size), out_batch
    if l_dim is None:
        out = primitive.bind(lhs, _behind_groups(rhs, r_dim, outs, groups), **params)
        if groups == 1:
            return split(out, out_features, size), out_features
        apart = split(split(out, out_features, groups), out_features + 1, size)
        return merged(apart, out_features, out_features + 1), out_features
    key, into = ("batch_group_count", batch) if batch_groups > 1 else ("feature_group_count", features)
    out = primitive.bind(merged(lhs, l_dim, into), merged(rhs, r_dim, outs), **{**params, key: params[key] * size})
    return split(out, out_features, size), out_features


def _behind_groups(x: Any, dim: int, axis: int, groups: int) -> Any:
    """The operand with its batch axis merged into `axis`, which is counted without it, behind the groups there."""
    if groups == 1:
        return merged(x, dim, axis)
    (at,) = shaping.shifted((axis,), dim)
    x = split(x, at, groups)  # the batch axis has moved on by one if it is behind
    return merged(merged(x, dim + (dim > at), axis + 1), axis, axis)


def _empty(primitive: Any, args: Any, dims: Any, params: dict[str, Any]) -> Any:
    """No slices: there is no convolution with so many groups as none."""
    avals = [aval_of(x) for x in args]
    slices = [aval if dim is None else aval.update(shape=shaping.without(aval.shape, (dim,)))
              for aval, dim in zip(avals, dims, strict=True)]
    out: ShapedArray = primitive.abstract_eval(slices, **params)
    return lax.full((0, *out.shape), 0, out.dtype)
