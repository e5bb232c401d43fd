"""Each position along named axes gives a part of what it has to each other one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeVar

import numpy as np

from corejax import lax, tree
from corejax.core import Array, ArrayLike, ShapedArray, aval_of, dtypes
from corejax.errors import CorejaxValueError
from corejax.plugin import Sample, define, hookimpl, public, refused, shaping
from corejax_collectives import _lowering, _positions
from corejax_collectives._axes import Groups, Names, as_groups, as_names, check_groups, is_among, size_of
from corejax_collectives.gathering import all_gather, by_gathering
from corejax_collectives.positions import axis_index
from corejax_collectives.varying import cast

__all__ = ["all_to_all", "pswapaxes", "ragged_all_to_all"]

#: A pytree of arrays.
Tree = TypeVar("Tree")


class AllToAll:
    """`all_to_all(x, axis_name, split_axis, concat_axis, *, axis_index_groups=None, tiled=False)`: exchanges parts.

    Each position divides `split_axis` among all positions, and stacks what it gets along a new axis, which the result
    has at `concat_axis`. So `split_axis`, which must be as large as the named axis, and the named axis change places.
    If `tiled`, `split_axis` is divided into as many equal parts, and parts are concatenated along `concat_axis`. `x`
    may be a pytree.

    >>> import numpy as np, corejax as cj
    >>> x = np.arange(4).reshape(2, 2)
    >>> cj.vmap(lambda row: lax.all_to_all(row, "rows", 0, 0), axis_name="rows")(x).tolist()
    [[0, 2], [1, 3]]
    """

    name = "all_to_all"
    linear = (0,)

    def function(self, bind: Any) -> Any:
        def all_to_all(x: Tree, axis_name: Any, split_axis: int, concat_axis: int, *, axis_index_groups: Any = None,
                       tiled: bool = False) -> Tree:
            names, tiled = as_names("all_to_all", axis_name), shaping.as_flag("all_to_all", "tiled", tiled)
            groups = as_groups("all_to_all", axis_index_groups)
            size = check_groups("all_to_all", groups, size_of("all_to_all", names), even=True)

            def of_leaf(leaf: Any) -> Any:
                ndim = aval_of(leaf).ndim
                parts, stacked = [shaping.canonical_axis("all_to_all", axis, ndim) for axis in (split_axis,
                                                                                               concat_axis)]
                if not tiled:
                    _check_whole(aval_of(leaf), parts, size)
                if not tiled and parts != stacked:
                    # a new axis to concatenate along: `stacked` counts without the axis that is split, which vanishes
                    stacked += parts < stacked
                    leaf = lax.expand_dims(leaf, (stacked,))
                    parts += stacked <= parts
                out = bind(cast(leaf, names), split_axis=parts, concat_axis=stacked, axis_name=names,
                           axis_index_groups=groups, tiled=tiled)
                return out if tiled or parts == stacked else lax.squeeze(out, (parts,))
            return tree.map(of_leaf, x)  # type: ignore[no-any-return]
        return all_to_all

    @hookimpl
    def abstract_eval(self, avals: Any, *, split_axis: int, concat_axis: int, axis_name: Names,
                      axis_index_groups: Groups, tiled: bool) -> ShapedArray:
        (x,) = avals
        size = check_groups(self.name, axis_index_groups, size_of(self.name, axis_name), even=True)
        for what, axis in (("split_axis", split_axis), ("concat_axis", concat_axis)):
            shaping.check_axes(self.name, what, (axis,), x.ndim)
        shape = list(x.shape)
        if shape[split_axis] % size:
            raise refused(self.name, f"axis {split_axis} of size {shape[split_axis]} can't be divided among {size} "
                          "positions", got=str(x), wanted=f"a multiple of {size}", todo="pad the axis",
                          kind=CorejaxValueError)
        shape[split_axis] //= size
        shape[concat_axis] *= size
        return x.update(shape=tuple(shape))  # type: ignore[no-any-return]

    @hookimpl
    def transpose(self, cotangents: Any, args: Any, *, split_axis: int, concat_axis: int, axis_name: Names,
                  axis_index_groups: Groups, tiled: bool) -> Any:
        return [_exchange(cotangents, axis_name, axis_index_groups, concat_axis, split_axis, tiled)]

    @hookimpl
    def vmap(self, axis: Any, args: Any, dims: Any, *, split_axis: int, concat_axis: int, axis_name: Names,
             axis_index_groups: Groups, tiled: bool) -> Any:
        (x,), (dim,) = args, dims
        if is_among(axis_name, axis.name):
            return by_gathering(axis, x, dim, axis_name, lambda whole: _positions.exchanged(
                whole, axis_index_groups, split_axis, concat_axis))
        if dim is not None:
            split_axis, concat_axis = shaping.shifted((split_axis, concat_axis), dim)
        return _exchange(x, axis_name, axis_index_groups, split_axis, concat_axis, tiled), dim

    @hookimpl
    def xla_translation(self, ctx: Any, args: Any, *, split_axis: int, concat_axis: int, axis_name: Names,
                        axis_index_groups: Groups, tiled: bool) -> Any:
        return _lowering.all_to_all(ctx, args[0], axis_name, axis_index_groups, split_axis, concat_axis)

    @hookimpl
    def samples(self, rng: Any) -> Iterator[Sample]:
        def params(split_axis: int, concat_axis: int, names: Names, tiled: bool = True, groups: Groups = None
                   ) -> dict[str, Any]:
            return {"split_axis": split_axis, "concat_axis": concat_axis, "axis_name": names,
                    "axis_index_groups": groups, "tiled": tiled}

        x = rng.standard_normal((3, 6, 2))
        yield Sample([x], params(0, 1, ("i",)), axes={"i": 3},
                     results=np.stack([np.concatenate([part[2 * i:2 * i + 2] for part in x], 1) for i in range(3)]))
        yield Sample([x[:, :3]], params(0, 0, ("i",), False), axes={"i": 3}, results=x[:, :3].swapaxes(0, 1))
        y = rng.standard_normal((3, 2, 2, 6))
        yield Sample([y], params(1, 0, ("j", "i")), axes={"i": 3, "j": 2})
        yield Sample([y], params(1, 0, ("j",)), axes={"i": 3, "j": 2})
        z = rng.standard_normal((4, 2))
        yield Sample([z], params(0, 0, ("i",), True, ((0, 2), (3, 1))), axes={"i": 4},
                     results=np.array([z[[0, 2], 0], z[[3, 1], 1], z[[0, 2], 1], z[[3, 1], 0]]))
        yield Sample([x], params(1, 0, ("i",)), axes={"i": 3}, error=ValueError)
        yield Sample([x], params(0, 2, ("i",)), axes={"i": 3}, error=IndexError)


all_to_all: Any = define(AllToAll())


def _exchange(x: Any, names: Names, groups: Groups, split_axis: int, concat_axis: int, tiled: bool) -> Any:
    return all_to_all.primitive.bind(x, split_axis=split_axis, concat_axis=concat_axis, axis_name=names,
                                     axis_index_groups=groups, tiled=tiled)


def _check_whole(x: ShapedArray, axis: int, size: int) -> None:
    if x.shape[axis] != size:
        raise refused("all_to_all", f"axis {axis} of size {x.shape[axis]} is exchanged for an axis of size {size}",
                      got=str(x), wanted=f"{size} elements along axis {axis}, one for each position",
                      todo="pass tiled=True to divide it into equal parts", kind=CorejaxValueError)


@public
def pswapaxes(x: Tree, axis_name: Any, axis: int, *, axis_index_groups: Any = None) -> Tree:
    """`pswapaxes(x, axis_name, axis, *, axis_index_groups=None)`: a named axis and one of the array change places.

    It is `all_to_all(x, axis_name, axis, axis)`: the two must have the same size.

    >>> import numpy as np, corejax as cj
    >>> x = np.arange(4).reshape(2, 2)
    >>> cj.vmap(lambda row: lax.pswapaxes(row, "rows", 0), axis_name="rows")(x).tolist()
    [[0, 2], [1, 3]]
    """
    return all_to_all(x, axis_name, axis, axis, axis_index_groups=axis_index_groups)  # type: ignore[no-any-return]


# Parts of different sizes

class RaggedAllToAll:
    """`ragged_all_to_all(operand, output, input_offsets, send_sizes, output_offsets, recv_sizes, *, axis_name, ...)`.

    Each position sends rows of `operand` to each other one. The result is `output` with the rows written that arrive.
    The four vectors of integers have the same size, a multiple of the number of positions, and are divided among the
    receivers. Part k is the `send_sizes[k]` rows from `input_offsets[k]` on; the receiver has them from
    `output_offsets[k]` on. `recv_sizes` says of how many rows the parts are that arrive; it must agree with what is
    sent. Parts must not overlap where they arrive. With `axis_index_groups`, positions exchange within groups.

    >>> import numpy as np, corejax as cj
    >>> def exchange(rows):  # each of two positions sends its first row to the first, and its second to the second
    ...     me, two = lax.axis_index("i"), lax.iota("int32", 2)
    ...     at, one = lax.full_like(two, 0) + me, lax.full_like(two, 1)
    ...     return lax.ragged_all_to_all(rows, lax.full_like(rows, 0.0), two, one, at, one, axis_name="i")
    >>> cj.vmap(exchange, axis_name="i")(np.array([[1.0, 2.0], [3.0, 4.0]])).tolist()
    [[1.0, 3.0], [2.0, 4.0]]
    """

    name = "ragged_all_to_all"
    operands = ("operand", "output", "input_offsets", "send_sizes", "output_offsets", "recv_sizes")

    def function(self, bind: Any) -> Any:
        def ragged_all_to_all(operand: ArrayLike, output: ArrayLike, input_offsets: ArrayLike, send_sizes: ArrayLike,
                              output_offsets: ArrayLike, recv_sizes: ArrayLike, *, axis_name: Any,
                              axis_index_groups: Any = None) -> Array:
            names, groups = as_names(self.name, axis_name), as_groups(self.name, axis_index_groups)
            check_groups(self.name, groups, size_of(self.name, names), even=True)
            args = [cast(x, names) for x in (operand, output, input_offsets, send_sizes, output_offsets, recv_sizes)]
            return bind(*args, axis_name=names, axis_index_groups=groups)  # type: ignore[no-any-return]
        return ragged_all_to_all

    @hookimpl
    def abstract_eval(self, avals: Any, *, axis_name: Names, axis_index_groups: Groups) -> ShapedArray:
        operand, output, *vectors = avals
        size = check_groups(self.name, axis_index_groups, size_of(self.name, axis_name), even=True)
        for name, aval in zip(self.operands[2:], vectors, strict=True):
            if dtypes.kind(aval.dtype) not in "iu" or aval.ndim != 1 or aval.shape != vectors[0].shape:
                raise refused(self.name, f"{name} must be a vector of integers, as large as the others", got=str(aval),
                              wanted=f"integers of shape {vectors[0].shape if vectors[0].ndim == 1 else '(k,)'}",
                              todo="give an offset or a size for each part")
        count = vectors[0].size
        if not count or count % size:
            raise refused(self.name, f"{count} parts can't be divided among {size} positions", got=str(vectors[0]),
                          wanted=f"a positive multiple of {size}", todo="give as many parts for each receiver",
                          kind=CorejaxValueError)
        if not operand.ndim or operand.dtype != output.dtype or operand.shape[1:] != output.shape[1:]:
            raise refused(self.name, "rows of the operand don't fit the output", got=[operand, output],
                          wanted="the same dtype, and the same shape but for the first axis", todo="convert or reshape "
                          "one of them")
        return output.update(weak_type=operand.weak_type and output.weak_type)  # type: ignore[no-any-return]

    @hookimpl
    def decompose(self, args: Any, *, axis_name: Names, axis_index_groups: Groups) -> Any:
        operand, output, *vectors = args
        # what all have: a leading axis for the senders
        rows, starts, sizes, targets = [all_gather(x, axis_name, axis_index_groups=axis_index_groups)
                                        for x in (operand, *[lax.convert_element_type(x, np.int32)
                                                             for x in vectors[:3]])]
        senders, length, *rest = aval_of(rows).shape
        here = axis_index(axis_name)
        if axis_index_groups is not None:
            ranks = np.argsort([i for group in axis_index_groups for i in group]) % len(axis_index_groups[0])
            here = lax.dynamic_index_in_dim(np.asarray(ranks, np.int32), here, keepdims=False)
        count = aval_of(starts).shape[1] // senders

        def mine(x: Any) -> Any:
            part = lax.dynamic_slice_in_dim(x, lax.mul(here, np.int32(count)), count, 1)
            return lax.reshape(part, (senders * count, 1))

        starts, sizes, targets = mine(starts), mine(sizes), mine(targets)
        total = aval_of(output).shape[0]
        if not total or not length:
            both_weak = aval_of(operand).weak_type and aval_of(output).weak_type
            return output if both_weak else lax.convert_element_type(output, aval_of(output).dtype)
        # of each row of the output: how far it is into each part, and which part it belongs to, if any
        within = lax.broadcasted_iota(np.int32, (senders * count, total), 1) - targets
        inside = lax.bitwise_and(within >= 0, within < sizes)
        part = lax.argmax(inside, 0, np.int32)
        row = lax.reduce_max(lax.select(inside, within + starts, lax.full_like(within, 0)), (0,))
        sender = lax.div(part, lax.full_like(part, count))
        source = lax.add(lax.mul(sender, lax.full_like(part, length)), row)
        found = lax.index_take(_positions.folded(rows, 0), (source,), (0,))
        reached = lax.broadcast_in_dim(lax.reduce_or(inside, (0,)), (total, *rest), (0,))
        return lax.select(reached, found, output)

    @hookimpl
    def samples(self, rng: Any) -> Iterator[Sample]:
        offsets, sizes = np.array([[0, 1], [0, 1]], np.int32), np.array([[1, 2], [1, 1]], np.int32)
        targets, arriving = np.array([[0, 0], [1, 2]], np.int32), np.array([[1, 1], [2, 1]], np.int32)
        x, whole, kept = rng.standard_normal((2, 3)), {"axis_name": ("i",), "axis_index_groups": None}, [None] * 4
        wanted = np.full((2, 4), 9.0)
        wanted[0, :2], wanted[1, :3] = [x[0, 0], x[1, 0]], [x[0, 1], x[0, 2], x[1, 1]]
        domain = [(-3.0, 3.0), (-3.0, 3.0), *kept]
        yield Sample([x, np.full((2, 4), 9.0), offsets, sizes, targets, arriving], whole, domain, axes={"i": 2},
                     results=wanted)
        one = np.ones((4, 2), np.int32)
        yield Sample([rng.standard_normal((4, 2, 2)), rng.standard_normal((4, 3, 2)), 0 * one, one,
                      np.array([[0, 0], [0, 0], [1, 1], [1, 1]], np.int32), one],
                     {"axis_name": ("i",), "axis_index_groups": ((0, 2), (3, 1))}, domain, axes={"i": 4})
        two = np.ones((2, 2, 2), np.int32)
        yield Sample([rng.standard_normal((2, 2, 3)), rng.standard_normal((2, 2, 3)), 0 * two, two,
                      np.array([[[1, 1], [2, 2]]] * 2, np.int32), two],
                     {"axis_name": ("j",), "axis_index_groups": None}, domain, axes={"i": 2, "j": 2})
        yield Sample([x, wanted, offsets * 1.0, sizes, targets, arriving], whole, axes={"i": 2}, error=TypeError)
        yield Sample([x, wanted, *[np.ones((2, 3), np.int32)] * 4], whole, axes={"i": 2}, error=ValueError)
        yield Sample([x, wanted > 0, offsets, sizes, targets, arriving], whole, axes={"i": 2}, error=TypeError)


ragged_all_to_all: Any = define(RaggedAllToAll())


def ragged_on_gpu(ctx: Any, args: Any, *, axis_name: Names, axis_index_groups: Groups) -> Any:
    """The operation that XLA has for it on GPUs."""
    groups = _lowering.replica_groups(ctx, _lowering.partitions(ctx, axis_name, axis_index_groups))
    return ctx.op("stablehlo.custom_call", args,
                  {"call_target_name": ctx.ir.StringAttr.get("ragged_all_to_all"),
                   "api_version": ctx.attribute("4 : i32"),
                   "backend_config": ctx.ir.DictAttr.get({"replica_groups": groups,
                                                          "channel_id": _lowering.integer(ctx, 1)})})


RULES = {f"corejax-collectives/ragged_all_to_all:xla_translation@{platform}": ragged_on_gpu
         for platform in ("cuda", "rocm")}
