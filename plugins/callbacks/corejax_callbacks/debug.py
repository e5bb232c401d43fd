"""To see what programs do: functions that they call, values that they print, and where their arrays are.

>>> import corejax as cj
>>> cj.jit(lambda x: cj.debug.print("x = {}", x))(2.0)
x = 2.0
"""

from corejax.sharding import visualize_array_sharding, visualize_sharding
from corejax_callbacks._calling import CallbackTimeout
from corejax_callbacks.breakpoints import breakpoint
from corejax_callbacks.debugging import callback, log, print

NAMESPACE = "debug"

__all__ = ["CallbackTimeout", "breakpoint", "callback", "log", "print", "visualize_array_sharding",
           "visualize_sharding"]
