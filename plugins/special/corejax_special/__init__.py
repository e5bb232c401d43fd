"""Special functions: error, gamma, zeta and Bessel functions."""

from corejax_special.bessel import bessel_i0e, bessel_i1e
from corejax_special.error import erf, erf_inv, erfc
from corejax_special.gamma import digamma, lgamma, polygamma
from corejax_special.zeta import zeta

__all__ = ["bessel_i0e", "bessel_i1e", "digamma", "erf", "erf_inv", "erfc", "lgamma", "polygamma", "zeta"]
