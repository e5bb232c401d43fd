"""Lowerings of functions for which the compiler's own are many units in the last place off.

Each is a sequence of ordinary operations, the same on every platform. What rounding takes away from a sum is carried
beside it. Complex numbers are left to the compiler; narrower floats are computed in float32.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import comb, log
from typing import Any

import numpy as np

from corejax import lax
from corejax.core import dtypes

__all__ = ["LN2", "acosh", "asinh", "atanh", "by_formula", "cbrt", "cbrt_with", "exp2", "log1p"]

LN2 = log(2.0)

#: From here on 1 + x is x, and x * x doesn't overflow yet.
_LARGE = {np.dtype(np.float32): 1e9, np.dtype(np.float64): 1e17}


def by_formula(formula: Callable[[Any], Any], otherwise: Callable[..., Any] | str, *, only: Sequence[np.dtype] = ()
               ) -> Callable[..., Any]:
    """A lowering by a formula of arrays in float32 and float64, or `only` some of these; else by another lowering."""
    def lower(ctx: Any, args: Sequence[Any]) -> Any:
        dtype = ctx.avals_in[0].dtype
        wide = dtypes.float32 if dtype.itemsize < 4 else dtype
        if dtypes.is_complex(dtype) or only and wide not in only:
            return ctx.op(otherwise, args) if isinstance(otherwise, str) else otherwise(ctx, args)
        if wide == dtype:
            return ctx.lower(formula, *args)
        return ctx.lower(lambda x: lax.convert_element_type(formula(lax.convert_element_type(x, wide)), dtype), *args)
    return lower


def log1p(x: Any) -> Any:
    """log(1 + x)."""
    return lax.select(x == 0.0, x, _log1p(x, 0.0))


def asinh(x: Any) -> Any:
    """log(x + sqrt(x^2 + 1)), as log1p of |x| + x^2 / (1 + sqrt(x^2 + 1)) with the sign of x."""
    magnitude = lax.abs(x)
    large = magnitude > _LARGE[x.dtype]
    small = lax.select(large, lax.full_like(x, 0.0), magnitude)
    total, lost = _sum(small, _kept(small * (small / (lax.sqrt(small * small + 1.0) + 1.0))))
    return _with_sign(_log1p_or_log2(large, magnitude, total, lost), x)


def acosh(x: Any) -> Any:
    """log(x + sqrt(x^2 - 1)), as log1p of t + sqrt(t (t + 2)) for t = x - 1; in float32, by a series near 1."""
    large = x > _LARGE[x.dtype]
    t = lax.select(large, lax.full_like(x, 0.0), x - 1.0)
    t = lax.select(t < 0.0, t * np.nan, t)
    root = lax.sqrt(t * (t + 2.0))
    out = _log1p_or_log2(large, x, *_sum(lax.max(root, t), lax.min(root, t)))
    if x.dtype == np.float64:
        return out
    # 2 asinh(s) for s = sqrt(t / 2), which is small
    terms = [(-1) ** k * comb(2 * k, k) / (4.0 ** k * (2 * k + 1)) for k in range(1, 11)]
    return lax.select(x < 1.5, _corrected(lax.sqrt(t * 2.0), terms, t * 0.5), out)


def atanh(x: Any) -> Any:
    """Half the logarithm of (1 + x) / (1 - x); in float32, by a series where |x| isn't large."""
    out = (_log1p(x, 0.0) - _log1p(-x, 0.0)) * 0.5
    if x.dtype == np.float64:
        return lax.select(lax.abs(x) < 1e-8, x, out)
    return lax.select(lax.abs(x) < 0.4, _corrected(x, [1 / (2 * k + 1) for k in range(1, 9)], x * x), out)


def exp2(x: Any) -> Any:
    """2 to the power of x: of its fraction by exp, of its whole part by writing the exponent."""
    info = np.finfo(x.dtype)
    lowest, highest = 2.0 * info.minexp, 2.0 * info.maxexp
    x = lax.clamp(lowest, x, highest)
    whole = lax.round(x, 1)
    half = lax.round(whole * 0.5, 1)
    return lax.exp((x - whole) * LN2) * _power_of_two(half) * _power_of_two(whole - half)


def cbrt(ctx: Any, args: Sequence[Any]) -> Any:
    """The compiler's operation, but for subnormal floats, for which it is wrong: they count as zeros."""
    return cbrt_with(ctx, args, None)


def cbrt_with(ctx: Any, args: Sequence[Any], attributes: dict[str, Any] | None) -> Any:
    """The same, with attributes for the compiler's operation."""
    def corrected(x: Any, root: Any) -> Any:
        smallest = np.finfo(np.float32 if x.dtype.itemsize < 4 else x.dtype).smallest_normal
        return lax.select(lax.abs(x) < float(smallest), x * 0.0, root)
    return ctx.lower(corrected, *args, ctx.op("stablehlo.cbrt", args, attributes))


# Parts

def _log1p(x: Any, lost: Any) -> Any:
    """log(1 + x + lost), for `lost` less than a unit in the last place of x."""
    total = _kept(x + 1.0)
    rest = lax.select(x < 1.0, x - (total - 1.0), (x - total) + 1.0)
    logarithm, more = lax.log(total), (rest + lost) / total
    return lax.select(lax.is_finite(more), logarithm + more, logarithm)


def _log1p_or_log2(large: Any, x: Any, total: Any, lost: Any) -> Any:
    """log(1 + total + lost); where it is large, log(2 x)."""
    none = lax.full_like(x, 0.0)
    return _log1p(lax.select(large, x, total), lax.select(large, none, lost)) + lax.select(large, none + LN2, none)


def _sum(large: Any, small: Any) -> tuple[Any, Any]:
    """The sum, and what rounding took away from it."""
    total = _kept(large + small)
    return total, small - (total - large)


def _kept(x: Any) -> Any:
    """The same, as the compiler doesn't know: it would simplify (a + b) - b to a, or round a * b + c only once."""
    return lax.max(x, -1e30)


def _corrected(first: Any, terms: Sequence[float], x: Any) -> Any:
    """first (1 + terms[0] x + terms[1] x^2 + ...), for terms and x so small that the sum is rounded only once."""
    total = lax.full_like(x, 0.0)
    for term in reversed(terms):
        total = (total + term) * x
    return first + first * total


def _with_sign(x: Any, of: Any) -> Any:
    """x, with the sign of another number: also where this is a zero."""
    return lax.select(of == 0.0, of, x * lax.sign(of))


def _power_of_two(x: Any) -> Any:
    """2 to the power of a whole number in the range of normal exponents."""
    info = np.finfo(x.dtype)
    bits = np.dtype(f"int{info.bits}")
    shift = np.full(x.shape, info.nmant, bits)
    exponent = lax.convert_element_type(x + (info.maxexp - 1.0), bits)
    return lax.bitcast_convert_type(lax.shift_left(exponent, shift), x.dtype)
