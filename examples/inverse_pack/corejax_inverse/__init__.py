"""Functions run backward: `inverse(f)(f(x))` is x.

>>> import corejax as cj
>>> from corejax import lax
>>> f = lambda x: lax.exp(lax.tanh(x) * 2.0 + 1.0)
>>> round(float(inverse(f)(f(0.25))), 12)
0.25
"""

from corejax_inverse._rules import Undo, Unknown, undo
from corejax_inverse._solving import solve
from corejax_inverse._transformation import INVERSE
from corejax_inverse.inverting import inverse

#: Users find it as `cj.inverses`, and the function itself as `cj.inverse`.
NAMESPACE = "inverses"

__all__ = ["INVERSE", "Undo", "Unknown", "inverse", "solve", "undo"]
