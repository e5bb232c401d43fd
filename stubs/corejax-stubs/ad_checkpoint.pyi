# Written by `python -m corejax stubs`: don't edit it.

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
f64[2]    16 B  checkpoint_name 'hidden', ...
"""

from corejax_control_flow import policies as checkpoint_policies
from corejax_control_flow.ad_checkpoint import Offloadable as Offloadable, Recompute as Recompute, Saveable as Saveable, print_saved_residuals as print_saved_residuals
from corejax_control_flow.naming import Tree

def checkpoint_name(x: Tree, name: str) -> Tree:
    """`checkpoint_name(x, name)`: x, an array or a pytree of arrays, with a name for policies of `checkpoint`.

    Those of `corejax.checkpoint_policies` go by names.

    >>> import corejax as cj
    >>> cj.ad_checkpoint.checkpoint_name({"a": 1.0}, "start")
    {'a': Array(1., dtype=float64, weak_type=True)}
    """
