"""The error function and its relatives."""

import math

from corejax import lax
from corejax.plugin import define, factors, families

__all__ = ["erf", "erf_inv", "erfc"]

_SLOPE = 2.0 / math.sqrt(math.pi)

erf = define(families.unary(
    "erf", None, hlo="chlo.erf", dtypes="f", jvp=factors(lambda out, x: _SLOPE * lax.exp(-x * x)),
    results={0.5: math.erf(0.5)}, doc="The error function.", example="round(erf(0.5).item(), 12) -> 0.520499877813"))

erfc = define(families.unary(
    "erfc", None, hlo="chlo.erfc", dtypes="f", jvp=factors(lambda out, x: -_SLOPE * lax.exp(-x * x)),
    results={5.0: math.erfc(5.0)}, doc="1 - erf(x), without cancellation for large x."))

erf_inv = define(families.unary(
    "erf_inv", None, hlo="chlo.erf_inv", dtypes="f", jvp=factors(lambda out, x: lax.exp(out * out) / _SLOPE),
    domain=(-0.95, 0.95), results={math.erf(0.5): 0.5}, doc="The inverse of erf, on [-1, 1]."))
