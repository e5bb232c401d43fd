"""`cj.tree`: working with pytrees.

>>> from corejax import tree
>>> tree.map(lambda x, y: x + y, {"a": 1, "b": (2, 3)}, {"a": 10, "b": (20, 30)})
{'a': 11, 'b': (22, 33)}
"""

from typing import TYPE_CHECKING, Any

from corejax.base.late import find_in
from corejax.base.tracebacks import trim
from corejax.base.tree_functions import *  # noqa: F403
from corejax.base.tree_functions import __all__ as __all__

if not TYPE_CHECKING:  # so that type checkers refuse names that aren't there
    def __getattr__(name: str) -> Any:
        try:
            return find_in({}, __name__, name)
        except Exception as error:
            trim(error)
            raise


def __dir__() -> list[str]:
    return sorted(__all__)
