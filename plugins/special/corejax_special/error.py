"""The error function, its complement and its inverse."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from corejax import lax
from corejax.plugin import define, factors, families
from corejax_special._polynomials import constant, is_double, lowered, polynomial

__all__ = ["erf", "erf_inv", "erfc"]

_SLOPE = 2.0 / math.sqrt(math.pi)


@lowered
def _erf(x: Any) -> Any:
    """x + x P(x^2) near zero, else 1 - erfc(|x|), of which only the digits that matter beside 1 are computed."""
    if not is_double(x):
        return _erf_single(x)
    y = _up_to(6.0, lax.abs(x))
    far = 1.0 - lax.exp(-(y * y)) * _scaled_complement(y)
    return lax.select(y < 1.0, x + x * polynomial("ERF_NEAR", y * y), lax.select(x < 0.0, -far, far))


def _erf_single(x: Any) -> Any:
    """With erfc(|x|) as P(|x|)^4, and the bit of the sign set at last."""
    y = lax.abs(x)
    near = x + x * polynomial("ERF_NEAR", x * x)
    far = 1.0 - lax.square(lax.square(polynomial("ERF_FAR", _up_to(4.0, y))))
    sign = lax.bitcast_convert_type(x, np.int32) & -(1 << 31)
    far = lax.bitcast_convert_type(lax.bitcast_convert_type(far, np.int32) | sign, np.float32)
    return lax.select(y < 1.125, near, far)


@lowered
def _erfc(x: Any) -> Any:
    """1 - erf(x) near zero, else exp(-x^2) times the smooth function exp(x^2) erfc(x).

    That function is (1 + excess) / 2x in float32: what is added to 1 is small there, and so are its rounding errors.
    """
    y = _up_to(_END[is_double(x)], lax.abs(x))
    near = (1.0 - x) - x * polynomial("ERFC_NEAR", y * y)
    power, rise = _exp_of_square(y)
    if is_double(x):
        scaled = _scaled_complement(y)
        far = power * (scaled + scaled * rise)
    else:
        excess = polynomial("ERFCX_OVER", y) / polynomial("ERFCX_UNDER", y)
        far = power * ((0.5 + 0.5 * (rise + excess * (1.0 + rise))) / y)
    return lax.select(y < 0.75, near, lax.select(x < 0.0, 2.0 - far, far))


_END = {True: 26.625, False: 9.375}  # where the power of two below first has the bits of zero


def _exp_of_square(y: Any) -> tuple[Any, Any]:
    """exp(-y^2) as 2^-k and what is missing: exp(-y^2) = 2^-k (1 + rise).

    As exp enlarges the rounding error of y^2, y without its last bits is squared, which is exact, and a rest is added.
    """
    dtype, whole, bias, fraction, dropped = _DOUBLE if is_double(y) else _SINGLE
    rounded = lax.bitcast_convert_type(lax.bitcast_convert_type(y, whole) & -(1 << dropped), dtype)
    rest = (y - rounded) * (y + rounded)
    k = lax.floor(y * y * (1.0 / math.log(2.0)) + 0.5)
    bits = lax.bitcast_convert_type(k + 1.5 * 2.0 ** fraction, whole)  # the last ones are those of k
    power = lax.bitcast_convert_type((bias - bits) * (1 << fraction), dtype)
    low, _ = constant("LOG_2_REST", y)
    left = (k * _LOG_2_HIGH - rounded * rounded) + (k * low - rest)
    return power, left * polynomial("RISING", left)


# A float's dtype, integers of its size, its bias, the bits of its fraction, and how many of them a square leaves out.
_SINGLE = np.float32, np.int32, 127, 23, 12
_DOUBLE = np.float64, np.int64, 1023, 52, 27
_LOG_2_HIGH = 355.0 / 512.0  # times a small integer, it is exact


def _scaled_complement(y: Any) -> Any:
    """exp(y^2) erfc(y) in float64, for y >= 0.75, up to where exp underflows."""
    inverse = 1.0 / (y + 2.0)
    return inverse * polynomial("ERFCX", (y - 2.0) * inverse)


def _up_to(end: float, x: Any) -> Any:
    """x, or the end where x is larger. Not lax.min, which takes longer; NaN stays."""
    return lax.select(x > end, end, x)


@lowered
def _erf_inv(x: Any) -> Any:
    """x (sqrt(pi) / 2 + w P(w)) with w = -log(1 - x^2), or where that is large a polynomial of its root."""
    w = -lax.log((1.0 - x) * (1.0 + x))
    slope, rest = constant("ERF_INV_SLOPE", x)
    near = x * (slope + (rest + w * polynomial("ERF_INV_NEAR", w)))
    far = polynomial("ERF_INV_FAR", lax.sqrt(w))
    found = lax.select(w < 5.0, near, lax.select(x < 0.0, -far, far))
    return lax.select(lax.abs(x) == 1.0, x * math.inf, found)


def _bell(x: Any, height: float) -> Any:
    return lax.mul(lax.exp(lax.neg(lax.square(x))), height)


erf = define(families.unary(
    "erf", None, hlo=_erf, dtypes="f", jvp=factors(lambda out, x: _bell(x, _SLOPE)),
    results={0.0: 0.0, 0.5: 0.5204998778130465, -2.0: -0.9953222650189527},
    doc="The error function: the integral of 2 / sqrt(pi) exp(-t * t) from 0 to x.",
    example="erf(0.5) -> Array(0.52049988, dtype=float64, weak_type=True)"))

erfc = define(families.unary(
    "erfc", None, hlo=_erfc, dtypes="f", jvp=factors(lambda out, x: _bell(x, -_SLOPE)),
    results={0.0: 1.0, 0.25: 0.7236736098317631, 5.0: 1.5374597944280349e-12},
    doc="1 - erf(x), which has all its digits for large x, too.",
    example="erfc(5.0) -> Array(1.53745979e-12, dtype=float64, weak_type=True)"))

erf_inv: Any = define(families.unary(
    "erf_inv", None, hlo=_erf_inv, dtypes="f",
    jvp=factors(lambda out, x: lax.mul(lax.exp(lax.square(out)), 1.0 / _SLOPE)), domain=(-0.95, 0.95),
    results={0.0: 0.0, 0.5204998778130465: 0.5, -0.9953222650189527: -2.0},
    doc="The inverse of erf: infinite at 1 and -1, NaN beyond.",
    example="erf_inv(0.5) -> Array(0.47693628, dtype=float64, weak_type=True)"))
