"""To see what programs do: which devices hold which part of an array.

>>> import corejax as cj
>>> mesh = cj.make_mesh((1,), "x")
>>> cj.debug.visualize_sharding((8,), cj.NamedSharding(mesh, cj.P("x")))
shape (8,), P('x') on Mesh('x': 1)
   0:8
┌───────┐
│ cpu 0 │
└───────┘
"""

from typing import TYPE_CHECKING, Any

from corejax.base.late import find_in, homes
from corejax.base.tracebacks import trim

if TYPE_CHECKING:
    from corejax.arrays.drawing import Drawing, visualize_array_sharding, visualize_sharding

_HOME = homes({"corejax.arrays.drawing": "Drawing visualize_array_sharding visualize_sharding"})

__all__ = ["Drawing", "visualize_array_sharding", "visualize_sharding"]


if not TYPE_CHECKING:  # so that type checkers refuse names that aren't there
    def __getattr__(name: str) -> Any:
        try:
            return find_in(_HOME, __name__, name)
        except Exception as error:
            trim(error)
            raise


def __dir__() -> list[str]:
    return sorted(__all__)
