"""Rules for primitives of other packs: what is missing there, and what somebody may prefer."""

import warnings

import numpy as np

from corejax import lax
from corejax.core import to_dim
from corejax.plugin import factors, hookimpl, partials

__all__ = ["erf_on_cpu", "finite_slope", "map_searchsorted", "no_slope", "warn_of_logarithms"]

#: Positions are constant between their jumps: for those who want zeros rather than an error.
no_slope = partials(None, None)


def map_searchsorted(axis, args, dims):
    """Compares every element with every other, as one vector can't be searched for a batch of vectors."""
    rising, x = [to_dim(x, d, 0, axis.size) for x, d in zip(args, dims, strict=True)]
    rows = lax.broadcast_in_dim(rising, (*x.shape, rising.shape[1]), (0, x.ndim))
    return (rows < lax.expand_dims(x, (x.ndim,))).sum(-1), 0


def erf_on_cpu(ctx, args):
    """The error function to seven digits, by one exponential, for float32; others are left to the owner."""
    if ctx.avals_in[0].dtype != np.float32:
        return None
    return ctx.lower(_quick_erf, *args)


def _quick_erf(x):
    t = 1.0 / (1.0 + 0.3275911 * lax.abs(x))
    series = t * (0.254829592 + t * (-0.284496736 + t * (1.421413741 + t * (-1.453152027 + t * 1.061405429))))
    return lax.sign(x) * (1.0 - series * lax.exp(-x * x))


#: The slope of a square root at 0 is 0 rather than infinite.
finite_slope = factors(lambda out, x: lax.select(out == 0.0, out, 0.5 / lax.select(out == 0.0, out + 1.0, out)))


@hookimpl(wrapper=True)
def warn_of_logarithms(args):
    """For looking for a NaN: says where an infinite or undefined logarithm is evaluated."""
    out = yield
    if not np.isfinite(out).all():
        warnings.warn("a logarithm is not finite", RuntimeWarning, stacklevel=2)
    return out
