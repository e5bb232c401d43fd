"""Special functions for corejax."""

from outside_special.error_functions import erf, erf_inv, erfc
from outside_special.gamma_functions import digamma, lgamma, polygamma

__all__ = ["digamma", "erf", "erf_inv", "erfc", "lgamma", "polygamma"]
