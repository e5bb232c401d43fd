"""Samples of convolutions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from corejax.core import dtypes
from corejax.plugin import Sample

_EXEMPT = {
    "nans and infinities agree": "XLA multiplies with the zeros of padding and dilation in some algorithms only",
    "zeros keep their signs": "sums of products of zeros may start from 0.0 or from the first product"}

# For sums that cancel, computed in a different order than in the compiled program.
_SUM_ULPS = 1000.0

_PLAIN = ((0, 1, 2), (0, 1, 2), (0, 1, 2))
_IMAGES = ((0, 3, 1, 2), (3, 2, 0, 1), (0, 3, 1, 2))
_MIXED = ((2, 0, 3, 1), (1, 3, 0, 2), (3, 1, 0, 2))

#: Shapes of lhs and rhs, dimension numbers, and the params that aren't plain.
_CASES: list[tuple[Any, ...]] = [
    ((2, 2, 5), (3, 2, 2), _PLAIN, {}),
    ((1, 2, 4), (3, 2, 3), _PLAIN, {"strides": (2,), "padding": ((2, 1),), "lhs_dilation": (3,), "rhs_dilation": (2,)}),
    ((1, 1, 2), (1, 1, 4), _PLAIN, {}),  # the window doesn't fit
    ((1, 4, 5), (4, 2, 2), _PLAIN, {"feature_groups": 2, "padding": ((1, 0),)}),
    ((1, 3, 4), (6, 1, 2), _PLAIN, {"feature_groups": 3, "rhs_dilation": (2,)}),
    ((4, 3, 4), (2, 3, 2), _PLAIN, {"batch_groups": 2, "strides": (2,), "padding": ((0, 1),)}),
    ((1, 3, 3, 2), (2, 2, 2, 3), _IMAGES, {"strides": (1, 2), "padding": ((0, 1), (1, 1))}),
    ((2, 3, 1, 4), (2, 3, 1, 2), _MIXED, {"padding": ((-1, 1), (1, 0)), "lhs_dilation": (1, 2)}),
    ((2, 3), (4, 3), ((0, 1), (0, 1), (1, 0)), {}),
    ((2, 0, 3), (2, 0, 2), _PLAIN, {}),
    ((0, 1, 3), (2, 1, 2), _PLAIN, {})]


def _params(numbers: Any = _PLAIN, strides: Sequence[int] | None = None, padding: Any = None,
            lhs_dilation: Sequence[int] | None = None, rhs_dilation: Sequence[int] | None = None,
            feature_groups: int = 1, batch_groups: int = 1, precision: Any = None, preferred: Any = None) -> Any:
    ones = (1,) * (len(numbers[0]) - 2)
    return {"dimension_numbers": numbers, "window_strides": strides or ones, "lhs_dilation": lhs_dilation or ones,
            "padding": ((0, 0),) * len(ones) if padding is None else padding, "rhs_dilation": rhs_dilation or ones,
            "feature_group_count": feature_groups, "batch_group_count": batch_groups, "precision": precision,
            "preferred_element_type": None if preferred is None else np.dtype(preferred)}


def samples(rng: np.random.Generator) -> Iterator[Sample]:
    """Every param, dtypes, sizes of 0 and 1, and errors."""
    for lhs, rhs, numbers, others in _CASES:
        yield Sample([rng.standard_normal(lhs), rng.standard_normal(rhs)], _params(numbers, **others),
                     ulps=_SUM_ULPS, exempt=_EXEMPT)
    x, y = np.array([[[1, 2, 4, 8]]], np.int32), np.array([[[1, 3, 10]]], np.int32)
    yield Sample([x, y], _params(strides=(2,), padding=((2, 1),), lhs_dilation=(2,), rhs_dilation=(3,)),
                 results=np.array([[[40, 81]]], np.int32))
    narrow = np.arange(8, dtype=np.int8).reshape(2, 4, 1)
    yield Sample([narrow, np.array([[[1]], [[10]], [[100]], [[3]]], np.int8)],
                 _params(feature_groups=4, preferred="int64"),
                 results=np.array([[[0], [10], [200], [9]], [[4], [50], [600], [21]]]))
    yield Sample([narrow[:, :1], np.array([[[1]], [[10]]], np.int8)], _params(batch_groups=2, preferred="float32"),
                 results=np.array([[[0], [40]]], np.float32))
    numbers = ((2, 0, 1), (1, 2, 0), (0, 2, 1))
    yield Sample([np.array([[[1], [2]], [[3], [4]]]), np.array([[[1, 10]], [[100, 1000]]])], _params(numbers),
                 results=np.array([[[4231]]]))
    complexes = rng.standard_normal((2, 2, 4)) + 1j * rng.standard_normal((2, 2, 4))
    yield Sample([complexes, complexes[:, :, :2]], _params(padding=((1, 0),)), ulps=_SUM_ULPS, exempt=_EXEMPT)
    yield Sample([rng.standard_normal((2, 2, 3)).astype(np.float32), rng.standard_normal((1, 2, 2)).astype(np.float32)],
                 _params(precision=("HIGHEST", "DEFAULT"), preferred="float64"))
    yield Sample([rng.standard_normal((1, 1, 3)).astype(dtypes.bfloat16), np.ones((1, 1, 2), dtypes.bfloat16)],
                 _params())
    yield from _errors()


def _errors() -> Iterator[Sample]:
    x, y = np.ones((2, 2, 5)), np.ones((4, 2, 2))
    for others in ({"strides": (0,)}, {"padding": ((-3, -3),)}, {"rhs_dilation": (0,)}, {"feature_groups": 2},
                   {"batch_groups": 3}, {"padding": ((1, 1), (1, 1))}, {"lhs_dilation": (2, 2)}):
        yield Sample([x, y], _params(**others), error=ValueError)
    yield Sample([x, y], _params(((0, 1, 1), (0, 1, 2), (0, 1, 2))), error=TypeError)
    yield Sample([x, y.astype(np.float32)], _params(), error=TypeError)
    yield Sample([x, y], _params(preferred="float32"), error=TypeError)
    yield Sample([x, y[0]], _params(), error=TypeError)
    yield Sample([np.ones((1, 4, 5)), y[:3]], _params(feature_groups=2), error=ValueError)
