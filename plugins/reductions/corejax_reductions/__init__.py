"""Reductions: sums, products, extrema, logic, positions, running results; and the array methods built on them.

`in_memory` has what NumPy computes at once, for packs with functions of the same kind; `combining`, what primitives
have in common that combine elements by a function.
"""

from corejax_reductions import _in_memory as in_memory  # noqa: F401  # for other packs
from corejax_reductions.associative import associative_scan
from corejax_reductions.combining import (
    Combining as Combining,
    Program as Program,
    converted as converted,
    halves as halves,
    is_compiled as is_compiled,
    norm as norm,
    only_equation as only_equation,
    product_of_complex as product_of_complex,
    program_of as program_of,
    with_tangents as with_tangents,
)
from corejax_reductions.cumulative import cumlogsumexp, cummax, cummin, cumprod, cumsum, linear_recurrence
from corejax_reductions.extrema import reduce_max, reduce_min
from corejax_reductions.logic import reduce_and, reduce_or, reduce_xor
from corejax_reductions.positions import argmax, argmin
from corejax_reductions.products import reduce_prod
from corejax_reductions.reducing import reduce
from corejax_reductions.sums import reduce_sum

__all__ = [
    "argmax", "argmin", "associative_scan", "cumlogsumexp", "cummax", "cummin", "cumprod", "cumsum",
    "linear_recurrence", "reduce", "reduce_and", "reduce_max", "reduce_min", "reduce_or", "reduce_prod", "reduce_sum",
    "reduce_xor",
]
