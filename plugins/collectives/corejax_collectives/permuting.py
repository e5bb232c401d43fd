"""Values that move from position to position along named axes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias, TypeVar

import numpy as np

from corejax import lax, tree
from corejax.core import ShapedArray, aval_of, bound_axis, dtypes
from corejax.errors import CorejaxValueError
from corejax.plugin import Sample, define, hookimpl, public, refused, shaping
from corejax_collectives import _lowering, _positions
from corejax_collectives._axes import Names, as_names, is_among, others, size_of
from corejax_collectives.gathering import by_gathering
from corejax_collectives.positions import axis_index
from corejax_collectives.reducing import pmax, psum
from corejax_collectives.varying import cast

__all__ = ["pbroadcast", "ppermute", "pshuffle"]

#: A pytree of arrays.
Tree = TypeVar("Tree")

#: Pairs of positions: who sends, and who receives.
Perm: TypeAlias = tuple[tuple[int, int], ...]


class PPermute:
    """`ppermute(x, axis_name, perm)`: values sent from position to position, zeros where nothing arrives.

    `perm` is a sequence of pairs `(sender, receiver)`; each position sends and receives at most once. `x` may be a
    pytree.

    >>> import numpy as np, corejax as cj
    >>> ring = [(0, 1), (1, 2), (2, 0)]
    >>> cj.vmap(lambda x: lax.ppermute(x, "rows", ring), axis_name="rows")(np.array([1, 2, 3])).tolist()
    [3, 1, 2]
    """

    name = "ppermute"
    linear = (0,)

    def function(self, bind: Any) -> Any:
        def ppermute(x: Tree, axis_name: Any, perm: Sequence[tuple[int, int]]) -> Tree:
            names, pairs = as_names("ppermute", axis_name), as_perm("ppermute", perm)
            check_perm("ppermute", pairs, names)
            return tree.map(lambda leaf: bind(cast(leaf, names), axis_name=names, perm=pairs), x)  # type: ignore[no-any-return]
        return ppermute

    @hookimpl
    def abstract_eval(self, avals: Any, *, axis_name: Names, perm: Perm) -> ShapedArray:
        check_perm(self.name, perm, axis_name)
        return avals[0]  # type: ignore[no-any-return]

    @hookimpl
    def transpose(self, cotangents: Any, args: Any, *, axis_name: Names, perm: Perm) -> Any:
        back = tuple([(receiver, sender) for sender, receiver in perm])
        return [ppermute.primitive.bind(cotangents, axis_name=axis_name, perm=back)]

    @hookimpl
    def vmap(self, axis: Any, args: Any, dims: Any, *, axis_name: Names, perm: Perm) -> Any:
        (x,), (dim,) = args, dims
        if is_among(axis_name, axis.name):
            if dim is None and axis_name == (axis.name,) and len(perm) == axis.size:
                return x, None
            return by_gathering(axis, x, dim, axis_name, lambda whole: _positions.permuted(whole, perm))
        return ppermute.primitive.bind(x, axis_name=axis_name, perm=perm), dim

    @hookimpl
    def xla_translation(self, ctx: Any, args: Any, *, axis_name: Names, perm: Perm) -> Any:
        return ctx.op("stablehlo.collective_permute", args, _lowering.pairs(ctx, axis_name, perm))

    @hookimpl
    def samples(self, rng: Any) -> Iterator[Sample]:
        x = rng.standard_normal((3, 2))
        yield Sample([x], {"axis_name": ("i",), "perm": ((0, 1), (1, 2), (2, 0))}, axes={"i": 3}, results=x[[2, 0, 1]])
        yield Sample([x], {"axis_name": ("i",), "perm": ((2, 1),)}, axes={"i": 3},
                     results=np.stack([np.zeros(2), x[2], np.zeros(2)]))
        yield Sample([x], {"axis_name": ("i", "j"), "perm": ((0, 5), (3, 3), (5, 1))}, axes={"i": 3, "j": 2},
                     results=np.array([[0.0, x[2, 1]], [0.0, x[1, 1]], [0.0, x[0, 0]]]))
        yield Sample([x], {"axis_name": ("j",), "perm": ((0, 1), (1, 0))}, axes={"i": 3, "j": 2}, results=x[:, ::-1])
        yield Sample([x > 0], {"axis_name": ("i",), "perm": ((2, 0),)}, axes={"i": 3})
        yield Sample([x], {"axis_name": ("i",), "perm": ((0, 3),)}, axes={"i": 3}, error=ValueError)
        yield Sample([x], {"axis_name": ("i",), "perm": ((0, 1), (2, 1))}, axes={"i": 3}, error=ValueError)


ppermute: Any = define(PPermute())


def as_perm(primitive: str, perm: Any) -> Perm:
    """What a user passes for pairs of positions, as tuples of integers."""
    try:
        pairs = [tuple(pair) for pair in perm]
    except TypeError:
        pairs = [()]
    if any([len(pair) != 2 for pair in pairs]):
        raise refused(primitive, "perm must be a sequence of pairs", got=repr(perm)[:120],
                      wanted="pairs (sender, receiver) of positions", todo="write [(0, 1), (1, 0)]")
    return tuple([(shaping.as_int(primitive, "a position in perm", sender),
                   shaping.as_int(primitive, "a position in perm", receiver)) for sender, receiver in pairs])


def check_perm(primitive: str, perm: Any, names: Names) -> None:
    """Raise unless the pairs are of positions along the axes, each of which sends and receives at most once."""
    size = size_of(primitive, names)
    if type(perm) is not tuple or not all([0 <= i < size for pair in perm for i in pair]):
        raise refused(primitive, f"perm has a position that isn't one of the {size} along the axis",
                      got=repr(perm)[:120], wanted=f"positions from 0 to {size - 1}", kind=CorejaxValueError,
                      todo="take them modulo lax.axis_size(axis_name)")
    for what, ends in (("sends", [pair[0] for pair in perm]), ("receives", [pair[1] for pair in perm])):
        twice = [i for i in dict.fromkeys(ends) if ends.count(i) > 1]
        if twice:
            raise refused(primitive, f"position {twice[0]} {what} more than once", got=repr(perm)[:120],
                          wanted="at most one pair for each sender, and for each receiver", kind=CorejaxValueError,
                          todo="to send to several, use pbroadcast or all_gather")


@public
def pshuffle(x: Tree, axis_name: Any, perm: Sequence[int]) -> Tree:
    """`pshuffle(x, axis_name, perm)`: position i along the axis gets what position `perm[i]` has. See `ppermute`.

    >>> import numpy as np, corejax as cj
    >>> cj.vmap(lambda x: lax.pshuffle(x, "rows", [2, 0, 1]), axis_name="rows")(np.array([1, 2, 3])).tolist()
    [3, 1, 2]
    """
    places = shaping.as_ints("pshuffle", "a position in perm", perm)
    size = size_of("pshuffle", as_names("pshuffle", axis_name))
    if sorted(places) != list(range(size)):
        raise refused("pshuffle", "perm is not a permutation of the positions along the axis", got=repr(perm)[:120],
                      wanted=f"each integer from 0 to {size - 1}, once", kind=CorejaxValueError,
                      todo="use ppermute if not all positions send")
    return ppermute(x, axis_name, tuple(zip(places, range(size), strict=True)))  # type: ignore[no-any-return]


# From one to all

class PBroadcast:
    """`pbroadcast(x, axis_name, source)`: all positions along named axes get what the position `source` has.

    `x` may be a pytree.

    >>> import numpy as np, corejax as cj
    >>> cj.vmap(lambda x: lax.pbroadcast(x, "rows", 1), axis_name="rows")(np.array([1, 2, 3])).tolist()
    [2, 2, 2]
    """

    name = "pbroadcast"
    linear = (0,)

    def function(self, bind: Any) -> Any:
        def pbroadcast(x: Tree, axis_name: Any, source: int) -> Tree:
            names = as_names("pbroadcast", axis_name)
            at = shaping.as_int("pbroadcast", "source", source)
            _check_source(at, names)
            return tree.map(lambda leaf: bind(cast(leaf, names), axis_name=names, source=at), x)  # type: ignore[no-any-return]
        return pbroadcast

    @hookimpl
    def abstract_eval(self, avals: Any, *, axis_name: Names, source: int) -> ShapedArray:
        _check_source(source, axis_name)
        return avals[0]  # type: ignore[no-any-return]

    @hookimpl
    def transpose(self, cotangents: Any, args: Any, *, axis_name: Names, source: int) -> Any:
        return [_only_at(source, axis_name, psum(cotangents, axis_name))]

    @hookimpl
    def vmap(self, axis: Any, args: Any, dims: Any, *, axis_name: Names, source: int) -> Any:
        (x,), (dim,) = args, dims
        if not is_among(axis_name, axis.name):
            return pbroadcast.primitive.bind(x, axis_name=axis_name, source=source), dim
        sizes = [bound_axis(name, self.name).size for name in axis_name]
        along = [int(i) for i in np.unravel_index(source, sizes)]
        at = axis_name.index(axis.name)
        if dim is not None:
            x = lax.index_in_dim(x, along[at], dim, keepdims=False)
        rest = others(axis_name, axis.name)
        if rest:
            place = int(np.ravel_multi_index(shaping.without(along, (at,)), shaping.without(sizes, (at,))))
            x = pbroadcast.primitive.bind(x, axis_name=rest, source=place)
        return x, None

    @hookimpl
    def decompose(self, args: Any, *, axis_name: Names, source: int) -> Any:
        (x,) = args
        add = pmax if aval_of(x).dtype == dtypes.bool_ else psum
        return cast(add(_only_at(source, axis_name, x), axis_name), axis_name)

    @hookimpl
    def samples(self, rng: Any) -> Iterator[Sample]:
        x = rng.standard_normal((3, 2))
        yield Sample([x], {"axis_name": ("i",), "source": 1}, axes={"i": 3}, results=np.stack([x[1]] * 3))
        yield Sample([x], {"axis_name": ("j", "i"), "source": 5}, axes={"i": 3, "j": 2},
                     results=np.full((3, 2), x[2, 1]))
        yield Sample([x], {"axis_name": ("j",), "source": 0}, axes={"i": 3, "j": 2}, results=x[:, [0, 0]])
        yield Sample([x > 0], {"axis_name": ("i",), "source": 2}, axes={"i": 3})
        yield Sample([x], {"axis_name": ("i",), "source": 3}, axes={"i": 3}, error=ValueError)


pbroadcast: Any = define(PBroadcast())


def _check_source(source: Any, names: Names) -> None:
    size = size_of("pbroadcast", names)
    if type(source) is not int or not 0 <= source < size:
        raise refused("pbroadcast", f"no position is {source!r} along an axis of size {size}", got=f"source={source!r}",
                      wanted=f"an integer from 0 to {size - 1}", todo="count from 0", kind=CorejaxValueError)


def _only_at(source: int, names: Names, x: Any) -> Any:
    """The value at one position, zeros at the others."""
    here = lax.eq(axis_index(names), np.int32(source))
    return lax.select(lax.broadcast(here, aval_of(x).shape), x, lax.full_like(x, False))


def broadcast_on_gpu(ctx: Any, args: Any, *, axis_name: Names, source: int) -> Any:
    """The operation that XLA has for it on GPUs: the first of each group sends."""
    groups = [[row[source], *row[:source], *row[source + 1:]] for row in _lowering.partitions(ctx, axis_name)]
    return ctx.op("stablehlo.collective_broadcast", args,
                  {"replica_groups": _lowering.replica_groups(ctx, groups), **_lowering.channel(ctx)})


RULES = {f"corejax-collectives/pbroadcast:xla_translation@{platform}": broadcast_on_gpu
         for platform in ("cuda", "rocm")}
