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

from __future__ import annotations

from corejax import lax as lax  # for the example
from corejax.plugin import carrying
from corejax_control_flow import policies as checkpoint_policies
from corejax_control_flow.naming import checkpoint_name
from corejax_control_flow.saved import print_saved_residuals

__all__ = ["Offloadable", "Recompute", "Saveable", "checkpoint_name", "checkpoint_policies", "print_saved_residuals"]

NAMESPACE = "ad_checkpoint"

Offloadable = carrying.Offloadable
#: What a policy may return in place of True and False.
Saveable, Recompute = carrying.Saveable, carrying.Recompute
