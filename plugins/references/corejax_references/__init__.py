"""`corejax.ref`: references to arrays that programs read and write in place, as JAX's mutable arrays.

>>> import corejax as cj
>>> total = cj.new_ref(np.zeros(3))
>>> @cj.jit
... def count(i):
...     total[i] += 1.0
>>> count(1), count(1), count(2)
(None, None, None)
>>> total
Ref([0., 2., 1.], dtype=float64)
>>> cj.freeze(total)
Array([0., 2., 1.], dtype=float64)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from corejax.plugin import namespace

NAMESPACE = "ref"

#: The modules, and the public names that each has.
_NAMES = {
    "references": "AbstractRef Ref empty_ref free_ref freeze new_ref",
    "access": "addupdate get set swap",
}

if TYPE_CHECKING:
    def __getattr__(name: str) -> Any: ...
else:
    __all__, __getattr__, __dir__ = namespace(__name__, _NAMES)
