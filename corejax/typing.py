"""Types for annotations: what counts as an array, and as a dtype.

>>> from corejax.typing import ArrayLike
>>> def double(x: ArrayLike) -> ArrayLike:
...     return x + x
"""

from typing import TYPE_CHECKING

from corejax.base.facades import facade

if TYPE_CHECKING:
    from corejax.arrays.datamodel import ArrayLike as ArrayLike
    from corejax.base.dtypes import DTypeLike as DTypeLike
else:  # so that type checkers refuse names that aren't there
    __all__, __getattr__, __dir__ = facade(__name__, {
        "corejax.arrays.datamodel": "ArrayLike", "corejax.base.dtypes": "DTypeLike"})
