"""Collectives along named axes."""

from __future__ import annotations

from .case import Group


def mapped(call: str, x: str = "np.ones((4, 6))") -> str:
    return f"cj.vmap(lambda x: {call}, axis_name='i')({x})"


axes = Group("Named axes")
axes.add("a sum over an axis that nobody named", "lax.psum(np.ones(3), 'i')", NameError, "psum", "'i'", "vmap")
axes.add("another axis than the map's", mapped("lax.pmean(x, 'rows')"), NameError, "pmean", "'rows'",
         "'i' of size 4")
axes.add("one of two axes that nobody named", mapped("lax.all_gather(x, ('i', 'j'))"), NameError, "'j'",
         "'i' of size 4")
axes.add("an axis that was named, in a function that is called later",
         "saved = []\n"
         "cj.vmap(lambda x: saved.append(lambda y: lax.pmax(y, 'i')) or x, axis_name='i')(np.ones(2))  # <-\n"
         "saved[0](np.ones(2))", NameError, "pmax", "'i'")
axes.add("the position along no axis", mapped("lax.axis_index(())"), ValueError, "axis_index", "()", "name")
axes.add("an axis twice", mapped("lax.pmax(x, ('i', 'i'))"), ValueError, "distinct", "('i', 'i')")
axes.add("an array for a name", mapped("lax.psum(x, x)"), TypeError, "name")
axes.add("None for a name", mapped("lax.axis_size(None)"), TypeError, "axis_size", "None")

groups = Group("Groups of positions")
groups.add("groups without all positions", mapped("lax.psum(x, 'i', axis_index_groups=[[0, 1], [2]])"), ValueError,
           "psum", "4 positions", "((0, 1), (2,))")
groups.add("a position in two groups", mapped("lax.pmax(x, 'i', axis_index_groups=[[0, 1], [1, 2, 3]])"), ValueError,
           "4 positions", "((0, 1), (1, 2, 3))")
groups.add("groups of different sizes to gather from",
           mapped("lax.all_gather(x, 'i', axis_index_groups=[[0], [1, 2, 3]])"), ValueError, "all_gather",
           "1, 3 positions", "one size")
groups.add("groups that are no sequences", mapped("lax.psum(x, 'i', axis_index_groups=[0, 1, 2, 3])"), TypeError,
           "axis_index_groups", "[0, 1, 2, 3]")
groups.add("groups of positions along an axis of the array", mapped("lax.psum(x, 0, axis_index_groups=[[0, 1]])"),
           ValueError, "names only", "lax.reduce_sum")

parts = Group("Parts for each position")
parts.add("a sum that can't be divided among the positions",
          mapped("lax.psum_scatter(x, 'i', tiled=True)"), ValueError, "psum_scatter", "size 6", "multiple of 4")
parts.add("more elements than positions", mapped("lax.psum_scatter(x, 'i')"), ValueError, "size 6", "tiled=True")
parts.add("an axis to divide that doesn't exist", mapped("lax.psum_scatter(x, 'i', scatter_dimension=1)"), IndexError,
          "axis 1", "-1 to 0")
parts.add("an exchange of axes of different sizes", mapped("lax.all_to_all(x, 'i', 0, 0)"), ValueError, "size 6",
          "size 4", "tiled=True")
parts.add("an exchange of parts that aren't equal", mapped("lax.all_to_all(x, 'i', 0, 0, tiled=True)"), ValueError,
          "all_to_all", "multiple of 4")
parts.add("an axis to exchange that doesn't exist", mapped("lax.pswapaxes(x, 'i', 2)"), IndexError, "axis 2")
parts.add("an axis to stack along that doesn't exist", mapped("lax.all_gather(x, 'i', axis=3)"), IndexError, "axis 3",
          "-2 to 1")
parts.add("text for tiled", mapped("lax.all_gather(x, 'i', tiled='no')"), TypeError, "tiled", "'no'")
parts.add("a sum of booleans in parts", mapped("lax.psum_scatter(x, 'i')", "np.ones((4, 4), bool)"), TypeError,
          "bool[4]", "lax.convert_element_type")
parts.add("sizes that are floats", mapped("lax.ragged_all_to_all(x, x, *[np.ones(4)] * 4, axis_name='i')"), TypeError,
          "input_offsets", "f64[4]", "integers")

moves = Group("From position to position")
moves.add("two senders to one receiver", mapped("lax.ppermute(x, 'i', [(0, 1), (2, 1)])"), ValueError, "position 1",
          "receives more than once")
moves.add("one sender to two receivers", mapped("lax.ppermute(x, 'i', [(0, 1), (0, 2)])"), ValueError, "position 0",
          "sends more than once", "pbroadcast")
moves.add("a position that there isn't", mapped("lax.ppermute(x, 'i', [(0, 4)])"), ValueError, "0 to 3",
          "lax.axis_size")
moves.add("a permutation as a list of integers", mapped("lax.ppermute(x, 'i', [1, 2, 3, 0])"), TypeError, "pairs",
          "[1, 2, 3, 0]")
moves.add("a shuffle that is no permutation", mapped("lax.pshuffle(x, 'i', [0, 0, 1, 2])"), ValueError, "pshuffle",
          "each integer from 0 to 3")
moves.add("a source that there isn't", mapped("lax.pbroadcast(x, 'i', 4)"), ValueError, "source=4", "0 to 3")
moves.add("a traced source", "cj.jit(cj.vmap(lambda x: lax.pbroadcast(x, 'i', lax.axis_index('i')), axis_name='i'))"
          "(np.ones(3))", TypeError, "i32[]", "concrete value")
moves.add("sending along a mapped axis", mapped("lax.psend(x, 'i', [(0, 1)])"), NotImplementedError, "psend",
          "lax.ppermute")

casts = Group("Casts of what varies")  # jax lists what it takes in any order
casts.add("a cast to nothing known", mapped("lax.pcast(x, 'i', to='sharded')"), ValueError, "to='sharded'",
          "to='varying'", jax=None)
casts.add("a cast that would need a sum", mapped("lax.pcast(x, 'i', to='invarying')"), ValueError, "psum",
          "to='varying'", jax=None)
casts.add("gathering to nothing known", mapped("lax.all_gather(x, 'i', to='all')"), ValueError, "to='all'",
          "to='invarying'", jax=None)

GROUPS: tuple[Group, ...] = (axes, groups, parts, moves, casts)
