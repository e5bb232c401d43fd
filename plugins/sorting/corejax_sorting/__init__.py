"""Sorting: whole arrays by one key or several, the largest elements, and the array methods built on them."""

from corejax_sorting.approximating import approx_max_k, approx_min_k, approx_top_k
from corejax_sorting.largest import top_k
from corejax_sorting.ordering import sort, sort_key_val

__all__ = ["approx_max_k", "approx_min_k", "approx_top_k", "sort", "sort_key_val", "top_k"]
