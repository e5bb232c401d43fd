"""Collectives: functions that combine values along the named axes of enclosing maps."""

from corejax_collectives.constraining import with_sharding_constraint
from corejax_collectives.exchanging import all_to_all, pswapaxes, ragged_all_to_all
from corejax_collectives.gathering import all_gather, all_gather_invariant, psum_scatter, reduce_scatter
from corejax_collectives.one_sided import precv, psend
from corejax_collectives.parallel_mapping import pmap
from corejax_collectives.permuting import pbroadcast, ppermute, pshuffle
from corejax_collectives.positions import axis_index, axis_size
from corejax_collectives.reducing import pmax, pmean, pmin, psum
from corejax_collectives.shard_mapping import shard_map
from corejax_collectives.varying import pcast, psum_invariant

__all__ = [
    "all_gather", "all_gather_invariant", "all_to_all", "axis_index", "axis_size", "pbroadcast", "pcast", "pmap",
    "pmax", "pmean", "pmin", "ppermute", "precv", "psend", "pshuffle", "psum", "psum_invariant", "psum_scatter",
    "pswapaxes", "ragged_all_to_all", "reduce_scatter", "shard_map", "with_sharding_constraint",
]
