# Written by `python -m corejax stubs`: don't edit it.

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

from corejax_references.access import addupdate as addupdate, get as get, set as set, swap as swap
from corejax_references.references import AbstractRef as AbstractRef, Ref as Ref, empty_ref as empty_ref, free_ref as free_ref, freeze as freeze, new_ref as new_ref
