"""The logarithm of the gamma function, and its derivatives."""

import numpy as np

from corejax.core import dtypes
from corejax.plugin import Sample, define, factors, families, hookimpl, partials, refused

__all__ = ["digamma", "lgamma", "polygamma"]

lgamma = define(families.unary(
    "lgamma", None, hlo="chlo.lgamma", dtypes="f", jvp=factors(lambda out, x: digamma(x)), domain=(0.5, 4.0),
    doc="log |gamma(x)|."))

digamma = define(families.unary(
    "digamma", None, hlo="chlo.digamma", dtypes="f", jvp=factors(lambda out, x: polygamma(x, order=1)),
    domain=(0.5, 4.0), doc="The derivative of lgamma."))


class Polygamma:
    """The derivative of digamma of this order, elementwise."""

    name = "polygamma"
    operands = ("x",)
    jvp = partials(lambda x_dot, out, x, *, order: x_dot * polygamma(x, order=order + 1))

    @hookimpl
    def abstract_eval(self, avals, *, order):
        (x,) = avals
        if dtypes.kind(x.dtype) != "f":
            raise refused(self.name, "wrong operand", got=x, wanted="floats", todo="convert it: x.astype(float)")
        return x

    @hookimpl
    def vmap(self, axis, args, dims, *, order):
        return polygamma(args[0], order=order), dims[0]

    @hookimpl
    def xla_translation(self, ctx, args, *, order):
        (aval,) = ctx.avals_in
        orders = ctx.constant(np.full(aval.shape, order, aval.dtype))
        return ctx.op("chlo.polygamma", [orders, *args])

    @hookimpl
    def samples(self, rng):
        yield Sample([rng.uniform(1.0, 4.0, (2, 3))], {"order": 1}, domain=(1.0, 4.0))
        yield Sample([np.array(2.5)], {"order": 2}, domain=(1.0, 4.0))


polygamma = define(Polygamma())
