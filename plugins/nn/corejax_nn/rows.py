"""Activations of one operand, as primitives: with derivatives that are right where formulas give 0 times infinity.

Each is a row: what NumPy computes, what programs compute, and the derivative. A product with a factor that vanishes
faster is taken with the nearest finite number, so it is 0 at infinity as its limit is.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from math import pi, sqrt
from typing import Any

import numpy as np

from corejax import lax
from corejax.core import aval_of
from corejax.dtypes import finfo
from corejax.plugin import define, factors, families

__all__ = ["nn_gelu_tanh", "nn_hard_sigmoid", "nn_hard_silu", "nn_hard_tanh", "nn_log1mexp", "nn_mish", "nn_relu",
           "nn_relu6", "nn_selu", "nn_silu", "nn_soft_sign", "nn_softplus", "nn_sparse_plus", "nn_sparse_sigmoid"]

SELU_ALPHA, SELU_SCALE = 1.6732632423543772848170429916717, 1.0507009873554804934193349852946
_GELU, _CUBE = sqrt(2 / pi), 0.044715


def _row(name: str, of_array: Callable[[Any], Any], of_value: Callable[[Any], Any], slope: Callable[[Any, Any], Any],
         **options: Any) -> Any:
    """A row by functions of ndarrays and of values in programs, and the derivative by result and operand."""
    def impl(x: Any) -> Any:
        return np.asarray(of_array(x), dtype=x.dtype)[()]

    return define(families.unary(
        name, impl, dtypes="f", hlo=lambda ctx, args: ctx.lower(of_value, *args), jvp=factors(slope), **options))


def _where(condition: Any, x: Any, y: Any) -> Any:
    """`select` between values and numbers; one of them is a value."""
    like = x if not isinstance(x, (int, float)) else y
    x, y = [lax.full_like(like, part) if isinstance(part, (int, float)) else part for part in (x, y)]
    return lax.select(condition, x, y)


def _finite(x: Any) -> Any:
    """The number, or the nearest finite one."""
    least, most = limits(aval_of(x).dtype)
    return lax.clamp(least, x, most)


@lru_cache(maxsize=16)
def limits(dtype: np.dtype) -> tuple[Any, Any]:
    """The least and the largest finite number of a dtype."""
    found = finfo(dtype)
    return dtype.type(found.min), dtype.type(found.max)


def _nearest(x: Any) -> Any:
    return _between(x, *limits(x.dtype))


def _between(x: Any, low: Any, high: Any) -> Any:
    """`np.clip`, in half the time."""
    return np.minimum(np.maximum(x, low), high)


def _soft_sign(x: Any) -> Any:
    return x / (abs(x) + x.dtype.type(1))


def _softplus(x: Any) -> Any:
    return np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x)))


def _softplus_value(x: Any) -> Any:
    return lax.max(x, lax.full_like(x, 0)) + lax.log1p(lax.exp(lax.neg(lax.abs(x))))


def _within(x: Any, low: float, high: float) -> Any:
    return lax.bitwise_and(x > low, x < high)


# Straight lines

nn_relu = _row(
    "nn_relu", lambda x: np.maximum(x, 0), lambda x: lax.max(x, lax.full_like(x, 0)),
    lambda out, x: _where(x > 0, lax.full_like(x, 1), 0), singular=(0.0,), cheap=True,
    doc="The larger of x and 0; its derivative at 0 is 0.", example="nn_relu(-1.0).item() -> 0.0")
nn_relu6 = _row(
    "nn_relu6", lambda x: np.minimum(np.maximum(x, 0), 6),
    lambda x: lax.min(lax.max(x, lax.full_like(x, 0)), lax.full_like(x, 6)),
    lambda out, x: _where(_within(x, 0, 6), lax.full_like(x, 1), 0), singular=(0.0, 6.0), cheap=True,
    doc="x between 0 and 6.", example="nn_relu6(7.0).item() -> 6.0")
nn_hard_tanh = _row(
    "nn_hard_tanh", lambda x: _between(x, -1, 1), lambda x: lax.clamp(lax.full_like(x, -1), x, lax.full_like(x, 1)),
    lambda out, x: _where(lax.abs(x) > 1, lax.full_like(x, 0), 1), singular=(-1.0, 1.0), cheap=True,
    doc="x between -1 and 1.", example="nn_hard_tanh(-3.0).item() -> -1.0")
nn_hard_sigmoid = _row(
    "nn_hard_sigmoid", lambda x: _between(x + x.dtype.type(3), 0, 6) / x.dtype.type(6),
    lambda x: lax.clamp(lax.full_like(x, 0), x + 3, lax.full_like(x, 6)) / 6,
    lambda out, x: _where(_within(x, -3, 3), lax.full_like(x, 1 / 6), 0), singular=(-3.0, 3.0), cheap=True,
    doc="A straight line from 0 at -3 to 1 at 3.", example="nn_hard_sigmoid(0.0).item() -> 0.5")
nn_sparse_sigmoid = _row(
    "nn_sparse_sigmoid", lambda x: _between(x + x.dtype.type(1), 0, 2) / x.dtype.type(2),
    lambda x: lax.clamp(lax.full_like(x, 0), x + 1, lax.full_like(x, 2)) / 2,
    lambda out, x: _where(lax.abs(x) < 1, lax.full_like(x, 0.5), _where(lax.abs(x) == 1, lax.full_like(x, 0.25), 0)),
    singular=(-1.0, 1.0), cheap=True,
    doc="A straight line from 0 at -1 to 1 at 1.", example="nn_sparse_sigmoid(0.0).item() -> 0.5")

# Smooth ones

nn_softplus = _row(
    "nn_softplus", _softplus, _softplus_value, lambda out, x: lax.logistic(x), ulps=4,
    doc="log(1 + exp(x)), without overflow.", example="nn_softplus(800.0).item() -> 800.0")
nn_sparse_plus = _row(
    "nn_sparse_plus",  # the parabola touches the line at 1 and is above it elsewhere
    lambda x: np.maximum(x, np.square(_between(x, -1, 1) + x.dtype.type(1)) * x.dtype.type(0.25)),
    lambda x: lax.max(x, lax.square(lax.clamp(lax.full_like(x, -1), x, lax.full_like(x, 1)) + 1) * 0.25),
    lambda out, x: nn_sparse_sigmoid(x), singular=(-1.0, 1.0), ulps=2,
    doc="0 up to -1, x from 1 on, a parabola in between.", example="nn_sparse_plus(0.0).item() -> 0.25")
nn_soft_sign = _row(
    "nn_soft_sign", lambda x: _soft_sign(_nearest(x)), lambda x: _soft_sign(_finite(x)),
    lambda out, x: lax.square(lax.full_like(x, 1) / (lax.abs(x) + 1)), singular=(0.0,), ulps=2,
    doc="x / (1 + |x|).", example="nn_soft_sign(1.0).item() -> 0.5")
nn_silu = _row(
    "nn_silu", lambda x: np.maximum(x, limits(x.dtype)[0]) / (x.dtype.type(1) + np.exp(-x)),
    lambda x: lax.max(x, lax.full_like(x, limits(x.dtype)[0])) * lax.logistic(x),
    lambda out, x: _silu_slope(x), ulps=6,
    doc="x times its logistic.", example="nn_silu(0.0).item() -> 0.0")
nn_mish = _row(
    "nn_mish", lambda x: np.maximum(x, limits(x.dtype)[0]) * np.tanh(_softplus(x)),
    lambda x: lax.max(x, lax.full_like(x, limits(x.dtype)[0])) * lax.tanh(_softplus_value(x)),
    lambda out, x: _mish_slope(x), ulps=8, doc="x times the hyperbolic tangent of softplus(x).",
    example="nn_mish(0.0).item() -> 0.0")
nn_selu = _row(
    "nn_selu", lambda x: x.dtype.type(SELU_SCALE) * np.where(x > 0, x, x.dtype.type(SELU_ALPHA) * np.expm1(
        np.where(x > 0, x.dtype.type(0), x))),  # a minimum would lose the sign of zero
    lambda x: SELU_SCALE * _where(x > 0, x, SELU_ALPHA * lax.expm1(_where(x > 0, 0, x))),
    lambda out, x: _where(x > 0, lax.full_like(x, SELU_SCALE), (SELU_SCALE * SELU_ALPHA) * lax.exp(
        _where(x > 0, 0, x))), singular=(0.0,), ulps=4,
    doc="x above 0, 1.673 (exp(x) - 1) below, all times 1.0507.", example="nn_selu(0.0).item() -> 0.0")
nn_hard_silu = _row(
    "nn_hard_silu", lambda x: np.maximum(x, limits(x.dtype)[0]) * (
        _between(x + x.dtype.type(3), 0, 6) / x.dtype.type(6)),
    lambda x: lax.max(x, lax.full_like(x, limits(x.dtype)[0])) * nn_hard_sigmoid(x),
    lambda out, x: nn_hard_sigmoid(x) + _where(_within(x, -3, 3), x / 6, 0), singular=(-3.0, 3.0), ulps=2,
    doc="x times hard_sigmoid(x).", example="nn_hard_silu(3.0).item() -> 3.0")
nn_gelu_tanh = _row(
    "nn_gelu_tanh", lambda x: _gelu(x), lambda x: _gelu_value(x), lambda out, x: _gelu_slope(x), ulps=16,
    doc="x times the normal distribution's share below x, by a hyperbolic tangent.",
    example="nn_gelu_tanh(0.0).item() -> 0.0")
nn_log1mexp = _row(
    "nn_log1mexp", lambda x: np.where(x < np.log(2), np.log(-np.expm1(-x)), np.log1p(-np.exp(-x))),
    lambda x: _where(x < float(np.log(2)), lax.log(lax.neg(lax.expm1(lax.neg(x)))),
                     lax.log1p(lax.neg(lax.exp(lax.neg(x))))),
    lambda out, x: lax.full_like(x, 1) / lax.expm1(x), domain=(0.05, 4.0), ulps=6,
    doc="log(1 - exp(-x)), for positive x.", example="nn_log1mexp(800.0).item() -> -0.0")


def _silu_slope(x: Any) -> Any:
    share = lax.logistic(x)
    return share + _finite(x) * (share * (1 - share))


def _mish_slope(x: Any) -> Any:
    t = lax.tanh(nn_softplus(x))
    return t + _finite(x) * ((1 - lax.square(t)) * lax.logistic(x))


def _gelu(x: Any) -> Any:
    kind = x.dtype.type
    inner = kind(_GELU) * (x + kind(_CUBE) * (x * x * x))
    return np.maximum(x, limits(x.dtype)[0]) * (kind(0.5) * (kind(1) + np.tanh(inner)))


def _gelu_value(x: Any) -> Any:
    inner = _GELU * (x + _CUBE * (x * x * x))
    return lax.max(x, lax.full_like(x, limits(x.dtype)[0])) * (0.5 * (1 + lax.tanh(inner)))


def _gelu_slope(x: Any) -> Any:
    t = lax.tanh(_GELU * (x + _CUBE * (x * x * x)))  # as above, so that compilers compute it once
    z = lax.clamp(lax.full_like(x, -20), x, lax.full_like(x, 20))  # beyond, t is 1 or -1
    return 0.5 * (1 + t) + (0.5 * _GELU) * z * (1 - lax.square(t)) * (1 + (3 * _CUBE) * lax.square(z))
