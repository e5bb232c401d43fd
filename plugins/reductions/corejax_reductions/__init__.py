"""Reductions: sums, products, extrema, logic, positions, running sums; and the array methods built on them."""

from corejax_reductions.extrema import reduce_max, reduce_min
from corejax_reductions.logic import reduce_and, reduce_or
from corejax_reductions.positions import argmax, argmin
from corejax_reductions.products import reduce_prod
from corejax_reductions.sums import cumsum, reduce_sum

__all__ = [
    "argmax", "argmin", "cumsum", "reduce_and", "reduce_max", "reduce_min", "reduce_or", "reduce_prod", "reduce_sum",
]
