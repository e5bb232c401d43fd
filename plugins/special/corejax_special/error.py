"""The error function, its complement and its inverse."""

from __future__ import annotations

import math
from collections.abc import Sequence
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
    y = lax.abs(x)
    near = x + x * polynomial("ERF_NEAR", x * x)
    if is_double(x):
        joint, end = 1.0, 6.0
        y = lax.select(y > end, end, y)  # not lax.min, which takes longer; NaN stays
        far = 1.0 - lax.exp(-(y * y)) * _scaled_complement(y)
    else:
        joint, end = 1.125, 4.0
        far = 1.0 - lax.square(lax.square(polynomial("ERF_FAR", lax.select(y > end, end, y))))
    return lax.select(y < joint, near, lax.select(x < 0.0, -far, far))


def _erfc(ctx: Any, args: Sequence[Any]) -> Any:
    """1 - erf(x) up to 1, else exp(-x^2) times the smooth function exp(x^2) erfc(x).

    As exp enlarges the rounding error of x^2, the square of x rounded to some bits is used, which is exact, and a rest.
    """
    if ctx.avals_in[0].dtype == np.float64:
        return ctx.lower(_erfc_double, *args)
    (aval,) = ctx.avals_in
    single = aval.update(dtype=np.dtype("float32"))
    x = ctx.lower(lambda x: lax.convert_element_type(x, single.dtype), *args)
    bits = ctx.lower(_bits_of_power, x)
    power = ctx.op("stablehlo.bitcast_convert", [bits], out_types=[ctx.type_of(single)])
    return ctx.lower(lambda *args: lax.convert_element_type(_erfc_single(*args), aval.dtype), x, bits, power)


def _erfc_double(x: Any) -> Any:
    y, rounded, rest = _halves(x, 28.0, 256.0)
    scaled = _scaled_complement(y)
    far = lax.exp(-(rounded * rounded)) * (scaled - scaled * (rest * polynomial("FALLING", rest)))
    return _near_or_far(x, far)


def _erfc_single(x: Any, bits: Any, power: Any) -> Any:
    """With exp(-x^2) as a power of two, which is exact, and a factor near 1: so nothing is rounded twice."""
    y, rounded, rest = _halves(x, 10.5, 64.0)
    exponent = lax.convert_element_type(bits, np.float32) * 2.0 ** -23 - 127.0
    left = (-(rounded * rounded) - exponent * _LOG_2_HIGH) - (rest + exponent * _LOG_2_LOW)
    scaled = _scaled_complement(y)
    return _near_or_far(x, power * (scaled + scaled * (left * polynomial("RISING", left))))


_LOG_2_HIGH = 355.0 / 512.0  # times a small integer, it is exact
_LOG_2_LOW = math.log(2.0) - _LOG_2_HIGH


def _halves(x: Any, end: float, steps: float) -> tuple[Any, Any, Any]:
    """y = |x| up to an end, beyond which erfc underflows; y rounded; and what the square of that lacks of y^2."""
    y = lax.abs(x)
    y = lax.select(y > end, end, y)
    rounded = lax.floor(y * steps) * (1.0 / steps)
    return y, rounded, (y - rounded) * (y + rounded)


def _bits_of_power(x: Any) -> Any:
    """Those of the power of two nearest to exp(-x^2), as a float32, or of zero where it is subnormal."""
    y = lax.abs(x)
    biased = lax.floor(127.5 - y * y * (1.0 / math.log(2.0)))
    return lax.convert_element_type(lax.select(biased < 0.0, 0.0, biased), np.int32) * (1 << 23)


def _near_or_far(x: Any, far: Any) -> Any:
    near = (1.0 - x) - x * polynomial("ERFC_NEAR", x * x)
    return lax.select(lax.abs(x) < 1.0, near, lax.select(x < 0.0, 2.0 - far, far))


def _scaled_complement(y: Any) -> Any:
    """exp(y^2) erfc(y), for y >= 1; for float32, up to 10.5."""
    if is_double(y):
        inverse = 1.0 / (y + 3.0)
        return inverse * polynomial("ERFCX", (y - 3.0) * inverse)
    pieces = [polynomial(f"ERFCX_{k}", y) for k in (1, 2, 3, 4)]  # each over so short a range that terms don't cancel
    return lax.select(y < 3.375, lax.select(y < 1.875, *pieces[:2]), lax.select(y < 6.0, *pieces[2:]))


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
