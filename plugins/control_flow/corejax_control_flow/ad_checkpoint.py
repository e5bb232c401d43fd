"""`corejax.ad_checkpoint`: names for values that `cj.checkpoint` may save, and a look at what is saved.

>>> import numpy as np, corejax as cj
>>> from corejax.ad_checkpoint import checkpoint_name, print_saved_residuals
>>> save = cj.checkpoint_policies.save_only_these_names("hidden")
>>> @cj.checkpoint(policy=save)
... def layer(w, x):
...     return lax.tanh(checkpoint_name(w @ x, "hidden"))
>>> print_saved_residuals(layer, np.ones((2, 3)), np.ones(3))
f64[2,3]  48 B  the argument w
f64[3]    24 B  the argument x
f64[2]    16 B  name 'hidden', ...
"""

from __future__ import annotations

from typing import TypeVar

from corejax import lax as lax  # for the example
from corejax.core import flatten, here, namer, values
from corejax.errors import CorejaxTypeError, kind_of
from corejax.plugin import carrying, public
from corejax_control_flow import policies as checkpoint_policies
from corejax_control_flow.naming import name as named
from corejax_control_flow.saved import print_saved_residuals

__all__ = ["Offloadable", "Recompute", "Saveable", "checkpoint_name", "checkpoint_policies", "print_saved_residuals"]

NAMESPACE = "ad_checkpoint"

Tree = TypeVar("Tree")

Offloadable = carrying.Offloadable
#: What a policy may return in place of True and False.
Saveable, Recompute = carrying.Saveable, carrying.Recompute


@public
def checkpoint_name(x: Tree, name: str) -> Tree:
    """x, an array or a pytree of arrays, with a name for policies: those of `corejax.checkpoint_policies` go by names.

    >>> import corejax as cj
    >>> cj.ad_checkpoint.checkpoint_name({"a": 1.0}, "start")
    {'a': Array(1., dtype=float64, weak_type=True)}
    """
    if not isinstance(name, str):
        raise CorejaxTypeError("checkpoint_name: the name must be a string", got=f"{kind_of(name)}: {name!r:.60}",
                               wanted="a string", where=here(), todo="checkpoint_name(x, 'attention')")
    leaves, tree = flatten(x)
    found: Tree = tree.unflatten([named.primitive.bind(leaf, name=name)
                                  for leaf in values(leaves, "checkpoint_name", namer("x", x))])
    return found
