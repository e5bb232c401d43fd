# Written by `python -m corejax stubs`: don't edit it.

"""What the installed packs provide that may change, by name."""

from corejax.experimental import checkify as checkify
from corejax.experimental import multihost_utils as multihost_utils
from collections.abc import Callable
from corejax.core import Sharding
from typing import Any

def io_callback(callback: Callable[..., Any], result_shape_dtypes: Any, *args: Any, sharding: Sharding | None = None, ordered: bool = False, timeout: float | None = None, **kwargs: Any) -> Any:
    """The result of a Python function that does something, also in compiled programs: `callback(*args, **kwargs)`.

    It is called once for each time that the program comes by, whether or not anybody uses its results: in branches
    that are taken, and in each step of a loop. What it gets and returns is as for `cj.pure_callback`; `None` for
    `result_shape_dtypes` says that it returns nothing. It has no derivative.

    - `ordered`: the calls come in the order of the program, also after and before those of other programs. `cj.vmap`
      of one is an error, and so is a program for several devices. Under `cj.vmap`, one that isn't ordered is called
      for each element.
    - `timeout`: after so many seconds the call is abandoned, with an error.
    - `sharding`: a sharding with one device, from which JAX would make the call. Here it makes no difference.

    >>> import corejax as cj
    >>> seen = []
    >>> f = cj.jit(lambda x: (cj.experimental.io_callback(seen.append, None, x, ordered=True), x * 2)[1])
    >>> float(f(1.0)), float(f(3.0)), seen
    (2.0, 6.0, [Array(1., dtype=float64), Array(3., dtype=float64)])
    """
