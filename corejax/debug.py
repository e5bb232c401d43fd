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

from typing import TYPE_CHECKING

from corejax.base.facades import facade

if TYPE_CHECKING:
    from corejax.arrays.drawing import (
        Drawing as Drawing,
        visualize_array_sharding as visualize_array_sharding,
        visualize_sharding as visualize_sharding,
    )
else:  # so that type checkers refuse names that aren't there
    __all__, __getattr__, __dir__ = facade(__name__, {
        "corejax.arrays.drawing": "Drawing visualize_array_sharding visualize_sharding",
    })
