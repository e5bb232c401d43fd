"""Special functions: error, gamma, incomplete gamma and beta, zeta and Bessel functions."""

from corejax_special.bessel import bessel_i0e, bessel_i1e
from corejax_special.error import erf, erf_inv, erfc
from corejax_special.gamma import digamma, lgamma, polygamma
from corejax_special.incomplete_beta import betainc
from corejax_special.incomplete_gamma import igamma, igamma_grad_a, igammac, random_gamma_grad
from corejax_special.zeta import zeta

__all__ = [
    "bessel_i0e", "bessel_i1e", "betainc", "digamma", "erf", "erf_inv", "erfc", "igamma", "igamma_grad_a", "igammac",
    "lgamma", "polygamma", "random_gamma_grad", "zeta"]
