"""The logarithm of the gamma function, and its derivatives."""

import math

import numpy as np

from corejax.plugin import define, factors, families

__all__ = ["digamma", "lgamma", "polygamma"]

lgamma = define(families.unary(
    "lgamma", None, hlo="chlo.lgamma", dtypes="f", jvp=factors(lambda out, x: digamma(x)), domain=(0.5, 4.0),
    results={0.5: math.lgamma(0.5)}, doc="log |gamma(x)|."))

digamma = define(families.unary(
    "digamma", None, hlo="chlo.digamma", dtypes="f", jvp=factors(lambda out, x: polygamma(x, order=1)),
    domain=(0.5, 4.0), results={1.0: -np.euler_gamma}, doc="The derivative of lgamma."))


def _lower(ctx, args, *, order):
    (aval,) = ctx.avals_in
    return ctx.op("chlo.polygamma", [ctx.constant(np.full(aval.shape, order, aval.dtype)), *args])


polygamma = define(families.unary(
    "polygamma", None, hlo=_lower, dtypes="f", params={"order": (1, 2)}, domain=(1.0, 4.0),
    jvp=factors(lambda out, x, *, order: polygamma(x, order=order + 1)), results={1.0: math.pi ** 2 / 6.0},
    doc="The derivative of digamma of this order."))
