"""`cj.tree`: working with pytrees.

>>> from corejax import tree
>>> tree.map(lambda x, y: x + y, {"a": 1, "b": (2, 3)}, {"a": 10, "b": (20, 30)})
{'a': 11, 'b': (22, 33)}
"""

from corejax.base.facades import facade
from corejax.base.tree_functions import *  # noqa: F403
from corejax.base.tree_functions import __all__ as __all__

_, __getattr__, __dir__ = facade(__name__, {}, __all__)
