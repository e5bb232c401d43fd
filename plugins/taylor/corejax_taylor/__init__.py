"""`corejax.taylor`: Taylor series of functions along curves, which give derivatives of high order at quadratic cost.

>>> from corejax import lax, taylor
>>> y, series = taylor.jet(lax.exp, (0.0,), ([1.0, 0.0],))
>>> y, series[1]
(Array(1., dtype=float64, weak_type=True), Array(1., dtype=float64, weak_type=True))
>>> [float(d) for d in taylor.derivatives(lax.exp, 0.0, 4)]
[1.0, 1.0, 1.0, 1.0, 1.0]
"""

from __future__ import annotations

from corejax_taylor._declarations import composition, recurrence
from corejax_taylor._transformation import JET
from corejax_taylor.jets import derivatives, jet

NAMESPACE = "taylor"

__all__ = ["JET", "composition", "derivatives", "jet", "recurrence"]
