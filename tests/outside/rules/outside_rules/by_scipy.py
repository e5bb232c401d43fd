"""Evaluation by SciPy, for a pack that only compiles. Imported when one of these functions is first evaluated."""

from scipy import special

__all__ = ["impls"]


def _by(function):
    return lambda args: function(args[0].astype(float)).astype(args[0].dtype)


impls = {"erf": _by(special.erf), "erfc": _by(special.erfc), "erf_inv": _by(special.erfinv),
         "lgamma": _by(special.gammaln), "digamma": _by(special.digamma)}
