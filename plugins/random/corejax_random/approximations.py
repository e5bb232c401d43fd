"""Functions as the compiler approximates them by itself: less exactly than those of the same names in `lax`.

Random numbers are JAX's to the last bit, so they need these.
"""

from __future__ import annotations

import math
from typing import Any

from corejax import lax
from corejax.plugin import define, factors, families

__all__ = ["random_erf_inv_p", "random_erf_p", "random_lgamma_p", "random_log1p_p"]

_SLOPE = 2.0 / math.sqrt(math.pi)

random_erf_p: Any = define(families.unary(
    "random_erf", None, hlo=lambda ctx, args: ctx.op("chlo.erf", args), dtypes="f",
    jvp=factors(lambda out, x: lax.mul(lax.exp(lax.neg(lax.square(x))), _SLOPE)),
    results={0.0: 0.0, 0.5: 0.5204998778130465},
    doc="The error function, as the compiler approximates it.",
    example="lax.random_erf(0.0) -> Array(0., dtype=float64, weak_type=True)"))

random_log1p_p: Any = define(families.unary(
    "random_log1p", None, hlo="log_plus_one", dtypes="f", jvp=factors(lambda out, x: 1.0 / (1.0 + x)),
    domain=(-0.95, 5.0), results={0.0: 0.0, 1.0: math.log(2.0)}, doc="log(1 + x), as the compiler approximates it.",
    example="lax.random_log1p(0.0) -> Array(0., dtype=float64, weak_type=True)"))

random_erf_inv_p: Any = define(families.unary(
    "random_erf_inv", None, hlo=lambda ctx, args: ctx.op("chlo.erf_inv", args), dtypes="f",
    jvp=factors(lambda out, x: lax.mul(lax.exp(lax.square(out)), 1.0 / _SLOPE)), domain=(-0.95, 0.95),
    results={0.0: 0.0, 0.5204998778130465: 0.5},
    doc="The inverse of the error function, as the compiler approximates it.",
    example="lax.random_erf_inv(0.0) -> Array(0., dtype=float64, weak_type=True)"))

random_lgamma_p: Any = define(families.unary(
    "random_lgamma", None, hlo=lambda ctx, args: ctx.op("chlo.lgamma", args), dtypes="f",
    jvp=factors(lambda out, x: lax.digamma(x)), domain=(0.5, 9.0), results={1.0: 0.0, 4.0: math.log(6.0)},
    doc="The logarithm of the gamma function, as the compiler approximates it.",
    example="lax.random_lgamma(1.0) -> Array(0., dtype=float64, weak_type=True)"))
