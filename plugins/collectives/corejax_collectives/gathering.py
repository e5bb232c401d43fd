"""What all positions along named axes have, and sums of which each position keeps a part."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import numpy as np

from corejax import lax, tree
from corejax.core import Array, ShapedArray, aval_of, to_dim
from corejax.errors import CorejaxValueError
from corejax.plugin import Sample, define, hookimpl, public, refused, shaping
from corejax_collectives import _lowering, _positions
from corejax_collectives._axes import (
    Groups,
    Names,
    as_groups,
    as_names,
    bound,
    check_groups,
    is_among,
    others,
    same_along,
    size_of,
    tracked,
)
from corejax_collectives.positions import axis_index
from corejax_collectives.varying import cast, check_number, times

__all__ = ["all_gather", "all_gather_invariant", "psum_scatter", "reduce_scatter"]

#: A pytree of arrays.
Tree = TypeVar("Tree")


# For vmap rules

def all_positions(x: Any, dim: int | None, axis: Any, names: Names) -> Any:
    """The values at all positions along the named axes, one of which is being mapped, along a leading axis."""
    x, rest = to_dim(x, dim, 0, axis.size), others(names, axis.name)
    if not rest:
        return x
    return _positions.merged(_gather(cast(x, rest), rest, None, 1, False), axis.name, names)


def own_positions(x: Any, axis: Any, names: Names) -> Any:
    """The reverse: of what all positions have, those along the mapped axis, at this position along the others."""
    rest = others(names, axis.name)
    if not rest:
        return x
    parts = _positions.parted(x, axis.name, names)
    return lax.dynamic_index_in_dim(parts, axis_index(rest), 1, keepdims=False)


def by_gathering(axis: Any, x: Any, dim: int | None, names: Names, compute: Callable[[Any], Any]) -> tuple[Any, int]:
    """A vmap rule's result, where `compute` takes and returns the values at all positions along a leading axis."""
    return own_positions(compute(all_positions(x, dim, axis, names)), axis, names), 0


# All gather

class AllGather:
    """`all_gather(x, axis_name, *, axis_index_groups=None, axis=0, tiled=False, to="varying")`: what all have.

    The values are stacked along a new `axis`, or concatenated along that one if `tiled`. `x` may be a pytree. On a mesh
    whose axes are tracked, `to="invarying"` gives a result that is known to be the same on all devices.

    >>> import numpy as np, corejax as cj
    >>> cj.vmap(lambda x: lax.all_gather(x, "rows"), axis_name="rows")(np.array([1, 2])).tolist()
    [[1, 2], [1, 2]]
    """

    name = "all_gather"
    linear = (0,)

    def function(self, bind: Any) -> Any:
        def all_gather(x: Tree, axis_name: Any, *, axis_index_groups: Any = None, axis: int = 0, tiled: bool = False,
                       to: str = "varying") -> Tree:
            names, tiled = as_names("all_gather", axis_name), shaping.as_flag("all_gather", "tiled", tiled)
            if to not in ("varying", "invarying"):
                raise refused("all_gather", f"can't gather to {to!r}", got=f"to={to!r}"[:80],
                              wanted="to='varying' or to='invarying'", todo="leave it out", kind=CorejaxValueError)
            if not names:
                return x
            groups = as_groups("all_gather", axis_index_groups)
            if to == "invarying" and groups is not None:
                raise refused("all_gather", "what groups gather differs from group to group",
                              got="to='invarying' with axis_index_groups", wanted="one of them",
                              todo="leave out axis_index_groups", kind=CorejaxValueError)
            check_groups("all_gather", groups, size_of("all_gather", names), even=True)
            gather = _gather if to == "varying" or not tracked("all_gather", names) else _gather_invariant

            def of_leaf(leaf: Any) -> Any:
                at = shaping.canonical_axis("all_gather", axis, aval_of(leaf).ndim + (not tiled))
                return gather(cast(leaf, names), names, groups, at, tiled)
            return tree.map(of_leaf, x)  # type: ignore[no-any-return]
        return all_gather

    @hookimpl
    def abstract_eval(self, avals: Any, *, all_gather_dimension: int, axis_name: Names, axis_index_groups: Groups,
                      axis_size: int, tiled: bool) -> ShapedArray:
        return _gathered_type(self.name, avals[0], all_gather_dimension, axis_name, axis_index_groups, axis_size, tiled)

    @hookimpl
    def transpose(self, cotangents: Any, args: Any, *, all_gather_dimension: int, axis_name: Names,
                  axis_index_groups: Groups, axis_size: int, tiled: bool) -> Any:
        return [_scatter(cotangents, axis_name, axis_index_groups, all_gather_dimension, axis_size, tiled)]

    @hookimpl
    def vmap(self, axis: Any, args: Any, dims: Any, *, all_gather_dimension: int, axis_name: Names,
             axis_index_groups: Groups, axis_size: int, tiled: bool) -> Any:
        (x,), (dim,) = args, dims
        if is_among(axis_name, axis.name):
            if axis_index_groups is None:
                return _all_of(axis, x, dim, axis_name, all_gather_dimension, tiled), None

            def compute(whole: Any) -> Any:
                out = _positions.gathered(whole, axis_index_groups, all_gather_dimension, tiled)
                return _positions.of_groups(out, axis_index_groups)
            return by_gathering(axis, x, dim, axis_name, compute)
        at, out_dim = _beside_batch(all_gather_dimension, dim, tiled)
        return _gather(x, axis_name, axis_index_groups, at, tiled), out_dim

    @hookimpl
    def xla_translation(self, ctx: Any, args: Any, *, all_gather_dimension: int, axis_name: Names,
                        axis_index_groups: Groups, axis_size: int, tiled: bool) -> Any:
        return _lowering.all_gather(ctx, args[0], axis_name, axis_index_groups, all_gather_dimension, tiled)

    @hookimpl
    def samples(self, rng: Any) -> Iterator[Sample]:
        def params(axis: int, names: Names, size: int, tiled: bool = False, groups: Groups = None) -> dict[str, Any]:
            return {"all_gather_dimension": axis, "axis_name": names, "axis_index_groups": groups, "axis_size": size,
                    "tiled": tiled}

        x = rng.standard_normal((3, 2))
        yield Sample([x], params(0, ("i",), 3), axes={"i": 3}, results=np.stack([x] * 3))
        yield Sample([x], params(1, ("i",), 3), axes={"i": 3}, results=np.stack([x.T] * 3))
        yield Sample([x], params(0, ("i",), 3, True), axes={"i": 3}, results=np.stack([x.reshape(-1)] * 3))
        y = rng.standard_normal((3, 2, 2))
        yield Sample([y], params(1, ("j",), 2), axes={"i": 3, "j": 2})
        yield Sample([y], params(0, ("j", "i"), 6, True), axes={"i": 3, "j": 2})
        z = rng.standard_normal((4, 2))
        yield Sample([z], params(0, ("i",), 2, False, ((0, 2), (3, 1))), axes={"i": 4},
                     results=z[np.array([[0, 2], [3, 1], [0, 2], [3, 1]])])
        yield Sample([x], params(2, ("i",), 3), axes={"i": 3}, error=IndexError)
        yield Sample([x], params(0, ("i",), 2), axes={"i": 3}, error=ValueError)
        yield Sample([z], params(0, ("i",), 3, False, ((0, 1, 2), (3,))), axes={"i": 4}, error=ValueError)


class AllGatherInvariant:
    """What all positions along tracked axes have: the same on all devices. `all_gather(..., to="invarying")`.

    >>> import numpy as np, corejax as cj
    >>> def everything(x):
    ...     return lax.all_gather_invariant(x, all_gather_dimension=0, axis_name=("i",), axis_size=2, tiled=False)
    >>> cj.vmap(everything, axis_name="i", out_axes=None)(np.array([1.0, 2.0])).tolist()
    [1.0, 2.0]
    """

    name = "all_gather_invariant"
    operands = ("x",)
    linear = (0,)
    tracks_varying = True

    @hookimpl
    def abstract_eval(self, avals: Any, *, all_gather_dimension: int, axis_name: Names, axis_size: int, tiled: bool
                      ) -> ShapedArray:
        out = _gathered_type(self.name, avals[0], all_gather_dimension, axis_name, None, axis_size, tiled)
        return same_along(out, axis_name)

    @hookimpl
    def transpose(self, cotangents: Any, args: Any, *, all_gather_dimension: int, axis_name: Names, axis_size: int,
                  tiled: bool) -> Any:
        size = aval_of(cotangents).shape[all_gather_dimension] // axis_size
        start = lax.mul(axis_index(axis_name), lax.full((), size, "int32"))
        part = lax.dynamic_slice_in_dim(cotangents, start, size, all_gather_dimension)
        return [part if tiled else lax.squeeze(part, (all_gather_dimension,))]

    @hookimpl
    def vmap(self, axis: Any, args: Any, dims: Any, *, all_gather_dimension: int, axis_name: Names, axis_size: int,
             tiled: bool) -> Any:
        (x,), (dim,) = args, dims
        if is_among(axis_name, axis.name):
            return _all_of(axis, x, dim, axis_name, all_gather_dimension, tiled), None
        at, out_dim = _beside_batch(all_gather_dimension, dim, tiled)
        return _gather_invariant(x, axis_name, None, at, tiled), out_dim

    @hookimpl
    def xla_translation(self, ctx: Any, args: Any, *, all_gather_dimension: int, axis_name: Names, axis_size: int,
                        tiled: bool) -> Any:
        return _lowering.all_gather(ctx, args[0], axis_name, None, all_gather_dimension, tiled)

    @hookimpl
    def samples(self, rng: Any) -> Iterator[Sample]:
        x = rng.standard_normal((3, 2))
        for axis, tiled, wanted in ((0, False, x), (1, False, x.T), (0, True, x.reshape(-1))):
            yield Sample([x], {"all_gather_dimension": axis, "axis_name": ("i",), "axis_size": 3, "tiled": tiled},
                         axes={"i": 3}, results=np.stack([wanted] * 3))
        yield Sample([rng.standard_normal((3, 2, 2))], {"all_gather_dimension": 0, "axis_name": ("j",), "axis_size": 2,
                                                        "tiled": True}, axes={"i": 3, "j": 2})


all_gather: Any = define(AllGather())
all_gather_invariant: Any = define(AllGatherInvariant())


def _gather(x: Any, names: Names, groups: Groups, axis: int, tiled: bool) -> Any:
    size = check_groups("all_gather", groups, size_of("all_gather", names), even=True)
    return all_gather.primitive.bind(x, all_gather_dimension=axis, axis_name=names, axis_index_groups=groups,
                                     axis_size=size, tiled=tiled)


def _gather_invariant(x: Any, names: Names, groups: Groups, axis: int, tiled: bool) -> Any:
    return all_gather_invariant.primitive.bind(x, all_gather_dimension=axis, axis_name=names,
                                               axis_size=size_of("all_gather", names), tiled=tiled)


def _gathered_type(name: str, x: ShapedArray, axis: int, names: Names, groups: Groups, size: int, tiled: bool
                   ) -> ShapedArray:
    _check_size(name, check_groups(name, groups, size_of(name, names), even=True), size)
    shaping.check_axes(name, "all_gather_dimension", (axis,), x.ndim + (not tiled))
    if tiled:
        return x.update(shape=(*x.shape[:axis], x.shape[axis] * size, *x.shape[axis + 1:]))
    return x.update(shape=shaping.insert(x.shape, axis, size))


def _check_size(name: str, found: int, size: Any) -> None:
    if size != found or type(size) is not int:
        raise refused(name, f"axis_size={size!r} is not the number of positions that communicate", got=repr(size)[:80],
                      wanted=found, todo="apply it by lax.all_gather or lax.psum_scatter, which find it",
                      kind=CorejaxValueError)


def _all_of(axis: Any, x: Any, dim: int | None, names: Names, at: int, tiled: bool) -> Any:
    """What all positions have, with the mapped axis among those that communicate: the same for each."""
    out = _positions.moved(all_positions(x, dim, axis, names), 0, at)
    return _positions.folded(out, at) if tiled else out


def _beside_batch(axis: int, dim: int | None, tiled: bool) -> tuple[int, int | None]:
    """The axis of the result that is gathered, and its batch axis, of an operand that has one at `dim`."""
    if dim is None:
        return axis, None
    if dim <= axis:
        return axis + 1, dim
    return axis, dim + (not tiled)


# Sums of which each position keeps a part

#: What errors call it: by the function that users call, and by the primitive.
_SCATTER = "psum_scatter (reduce_scatter)"


class ReduceScatter:
    """The sum over positions along named axes, of which each keeps a part. `psum_scatter` applies it.

    >>> import numpy as np, corejax as cj
    >>> def part(x):
    ...     return lax.reduce_scatter(x, axis_name=("i",), scatter_dimension=0, axis_index_groups=None, axis_size=2,
    ...                               tiled=False)
    >>> cj.vmap(part, axis_name="i")(np.array([[1.0, 2.0], [3.0, 4.0]])).tolist()
    [4.0, 6.0]
    """

    name = "reduce_scatter"
    operands = ("x",)
    linear = (0,)

    @hookimpl
    def abstract_eval(self, avals: Any, *, axis_name: Names, scatter_dimension: int, axis_index_groups: Groups,
                      axis_size: int, tiled: bool) -> ShapedArray:
        (x,) = avals
        _check_size(_SCATTER, check_groups(_SCATTER, axis_index_groups, size_of(_SCATTER, axis_name),
                                            even=True), axis_size)
        shaping.check_axes(_SCATTER, "scatter_dimension", (scatter_dimension,), x.ndim)
        check_number(_SCATTER, x)
        before, size, after = (x.shape[:scatter_dimension], x.shape[scatter_dimension],
                               x.shape[scatter_dimension + 1:])
        if size % axis_size if tiled else size != axis_size:
            raise refused(_SCATTER, f"axis {scatter_dimension} of size {size} can't be divided among {axis_size} "
                          "positions", got=str(x), wanted=f"a multiple of {axis_size}" if tiled else
                          f"{axis_size}, an element for each", kind=CorejaxValueError,
                          todo="pad the axis" if tiled else "pass tiled=True to give each several elements")
        shape = (*before, size // axis_size, *after) if tiled else (*before, *after)
        return x.update(shape=shape)  # type: ignore[no-any-return]

    @hookimpl
    def transpose(self, cotangents: Any, args: Any, *, axis_name: Names, scatter_dimension: int,
                  axis_index_groups: Groups, axis_size: int, tiled: bool) -> Any:
        return [_gather(cotangents, axis_name, axis_index_groups, scatter_dimension, tiled)]

    @hookimpl
    def vmap(self, axis: Any, args: Any, dims: Any, *, axis_name: Names, scatter_dimension: int,
             axis_index_groups: Groups, axis_size: int, tiled: bool) -> Any:
        (x,), (dim,) = args, dims
        at = scatter_dimension
        if not is_among(axis_name, axis.name):
            if dim is None:
                return _scatter(x, axis_name, axis_index_groups, at, axis_size, tiled), None
            out_dim = dim - (dim > at and not tiled)
            return _scatter(x, axis_name, axis_index_groups, at + (dim <= at), axis_size, tiled), out_dim
        if axis_index_groups is not None:
            return by_gathering(axis, x, dim, axis_name,
                                lambda whole: _positions.scattered(whole, axis_index_groups, at, tiled))
        total = times(x, axis.size) if dim is None else lax.reduce_sum(x, (dim,))
        sizes = [each.size for each in bound(self.name, axis_name)]
        shape = aval_of(total).shape
        total = _positions.moved(_positions.split(total, at, sizes), at + axis_name.index(axis.name), 0)
        total = lax.reshape(total, (axis.size, *shape[:at], shape[at] // axis.size, *shape[at + 1:]))
        rest = others(axis_name, axis.name)
        if rest:
            return _scatter(total, rest, None, at + 1, axis_size // axis.size, tiled), 0
        return (total if tiled else lax.squeeze(total, (at + 1,))), 0

    @hookimpl
    def xla_translation(self, ctx: Any, args: Any, *, axis_name: Names, scatter_dimension: int,
                        axis_index_groups: Groups, axis_size: int, tiled: bool) -> Any:
        return _lowering.reduce_scatter(ctx, args[0], axis_name, axis_index_groups, scatter_dimension, axis_size,
                                        lax.add)

    @hookimpl
    def samples(self, rng: Any) -> Iterator[Sample]:
        def params(axis: int, names: Names, size: int, tiled: bool = False, groups: Groups = None) -> dict[str, Any]:
            return {"scatter_dimension": axis, "axis_name": names, "axis_index_groups": groups, "axis_size": size,
                    "tiled": tiled}

        x = rng.standard_normal((3, 3, 6))
        yield Sample([x], params(0, ("i",), 3), axes={"i": 3}, results=x.sum(0))
        yield Sample([x], params(1, ("i",), 3, True), axes={"i": 3},
                     results=np.stack(np.split(x.sum(0), 3, 1)))
        y = rng.standard_normal((3, 2, 6, 2))
        yield Sample([y], params(0, ("j", "i"), 6), axes={"i": 3, "j": 2})
        yield Sample([y], params(0, ("i",), 3, True), axes={"i": 3, "j": 2})
        yield Sample([y], params(1, ("j",), 2), axes={"i": 3, "j": 2})
        z = rng.standard_normal((4, 2))
        total = [z[0] + z[2], z[3] + z[1]]
        yield Sample([z], params(0, ("i",), 2, False, ((0, 2), (3, 1))), axes={"i": 4},
                     results=np.array([total[0][0], total[1][1], total[0][1], total[1][0]]))
        yield Sample([x], params(1, ("i",), 3), axes={"i": 3}, error=ValueError)
        yield Sample([x], params(2, ("i",), 3), axes={"i": 3}, error=IndexError)
        yield Sample([x > 0], params(0, ("i",), 3), axes={"i": 3}, error=TypeError)


reduce_scatter: Any = define(ReduceScatter())


def _scatter(x: Any, names: Names, groups: Groups, axis: int, size: int, tiled: bool) -> Any:
    return reduce_scatter.primitive.bind(x, axis_name=names, scatter_dimension=axis, axis_index_groups=groups,
                                         axis_size=size, tiled=tiled)


@public
def psum_scatter(x: Tree, axis_name: Any, *, scatter_dimension: int = 0, axis_index_groups: Any = None,
                 tiled: bool = False) -> Tree:
    """`psum_scatter(x, axis_name, *, scatter_dimension=0, axis_index_groups=None, tiled=False)`: each keeps a part.

    Position i along the axis gets element i, along `scatter_dimension`, of the sum over all positions; if `tiled`, the
    i-th of as many equal parts. `x` may be a pytree.

    >>> import numpy as np, corejax as cj
    >>> cj.vmap(lambda x: lax.psum_scatter(x, "rows"), axis_name="rows")(np.array([[1, 2], [30, 40]])).tolist()
    [31, 42]
    """
    names, tiled = as_names("psum_scatter", axis_name), shaping.as_flag("psum_scatter", "tiled", tiled)
    if not names:
        return x
    groups = as_groups("psum_scatter", axis_index_groups)
    size = check_groups("psum_scatter", groups, size_of("psum_scatter", names), even=True)

    def of_leaf(leaf: Any) -> Array:
        at = shaping.canonical_axis("psum_scatter", scatter_dimension, aval_of(leaf).ndim)
        return _scatter(cast(leaf, names), names, groups, at, size, tiled)  # type: ignore[no-any-return]
    return tree.map(of_leaf, x)  # type: ignore[no-any-return]
