"""Collectives in StableHLO: which devices of a mesh communicate, and with what operation."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from itertools import zip_longest
from math import prod
from typing import Any

import numpy as np

from corejax.core import ShapedArray
from corejax.errors import CorejaxNameError
from corejax.plugin import refused
from corejax_collectives._axes import Groups, Names

#: Collectives between partitions have the type 1, and one channel for all since they come in the same order everywhere.
_CHANNEL = "#stablehlo.channel_handle<handle = 1, type = 1>"


def mesh_of(ctx: Any, names: Names) -> Any:
    """The mesh for whose devices the program is; raises if it doesn't have these axes."""
    mesh = ctx.mesh
    known: Sequence[Hashable] = () if mesh is None else mesh.axis_names
    for name in names:
        if name not in known:
            raise refused(ctx.eqn.primitive.name, f"no axis is called {name!r} where the program is compiled",
                          got=repr(name)[:80], wanted=f"an axis of the mesh: {', '.join(map(repr, known))}" if known
                          else "an axis that a map has named", kind=CorejaxNameError,
                          todo="call it in a function that is mapped with this axis_name: by cj.vmap, cj.pmap or "
                               "cj.shard_map")
    return mesh


def partitions(ctx: Any, names: Names, groups: Groups = None) -> list[list[int]]:
    """The groups of devices that communicate, by their places in the mesh, in the order of positions along `names`."""
    mesh = mesh_of(ctx, names)
    known, sizes = list(mesh.axis_names), tuple(mesh.axis_sizes)
    chosen = [known.index(name) for name in names]
    every = np.moveaxis(np.arange(prod(sizes)).reshape(sizes), chosen, range(len(chosen)))
    rows = every.reshape(prod([sizes[axis] for axis in chosen]), -1).T.tolist()
    return rows if groups is None else [[row[i] for i in group] for row in rows for group in groups]


def replica_groups(ctx: Any, groups: Sequence[Sequence[int]]) -> Any:
    """The attribute for such groups; smaller ones are filled up with -1."""
    table = np.array([*zip_longest(*groups, fillvalue=-1)], np.int64).T
    return ctx.ir.DenseIntElementsAttr.get(np.ascontiguousarray(table))


def channel(ctx: Any) -> dict[str, Any]:
    """The attribute that makes a collective one between partitions."""
    return {"channel_handle": ctx.attribute(_CHANNEL)}


def integer(ctx: Any, value: int) -> Any:
    """An attribute of 64 bits."""
    return ctx.attribute(f"{value} : i64")


def _is_empty(ctx: Any) -> bool:
    """Whether the equation's result has no elements. There is nothing to exchange then, and operations refuse it."""
    return 0 in ctx.avals_out[0].shape


def _empty(ctx: Any) -> Any:
    (out,) = ctx.avals_out
    return ctx.constant(np.zeros(out.shape, out.dtype))


def all_reduce(ctx: Any, x: Any, names: Names, groups: Groups, combine: Callable[[Any, Any], Any]) -> Any:
    """The reduction over groups of devices."""
    return _reducing(ctx, "stablehlo.all_reduce", x, ctx.out_types[0], combine,
                     {"replica_groups": replica_groups(ctx, partitions(ctx, names, groups))})


def reduce_scatter(ctx: Any, x: Any, names: Names, groups: Groups, axis: int, size: int,
                   combine: Callable[[Any, Any], Any]) -> Any:
    """The reduction over groups of devices, of which each keeps one of `size` parts along an axis."""
    (aval,), (out,) = ctx.avals_in, ctx.avals_out
    if _is_empty(ctx):
        return _empty(ctx)
    shape = (*aval.shape[:axis], aval.shape[axis] // size, *aval.shape[axis + 1:])
    part = _reducing(ctx, "stablehlo.reduce_scatter", x, ctx.types[ShapedArray(shape, aval.dtype)], combine,
                     {"scatter_dimension": integer(ctx, axis),
                      "replica_groups": replica_groups(ctx, partitions(ctx, names, groups))})
    return part if shape == out.shape else ctx.op("stablehlo.reshape", [part])


def _reducing(ctx: Any, operation: str, x: Any, out_type: Any, combine: Callable[[Any, Any], Any],
              attributes: dict[str, Any]) -> Any:
    out = ctx.op(operation, [x], attributes | channel(ctx) | {"use_global_device_ids": ctx.attribute("unit")},
                 [out_type], 1)
    scalar = ctx.types[ShapedArray((), ctx.avals_in[0].dtype)]
    ctx.fill(ctx.regions[0], [scalar, scalar], lambda a, b: [ctx.lower(combine, a, b)])
    return out


def all_gather(ctx: Any, x: Any, names: Names, groups: Groups, axis: int, tiled: bool) -> Any:
    """What groups of devices have, stacked or concatenated along an axis."""
    (aval,) = ctx.avals_in
    if _is_empty(ctx):
        return _empty(ctx)
    if not tiled:
        shape = (*aval.shape[:axis], 1, *aval.shape[axis:])
        x = ctx.op("stablehlo.reshape", [x], None, [ctx.types[ShapedArray(shape, aval.dtype)]])
    return ctx.op("stablehlo.all_gather", [x],
                  {"all_gather_dim": integer(ctx, axis), "use_global_device_ids": ctx.attribute("unit"),
                   "replica_groups": replica_groups(ctx, partitions(ctx, names, groups)), **channel(ctx)})


def all_to_all(ctx: Any, x: Any, names: Names, groups: Groups, split_axis: int, concat_axis: int) -> Any:
    """Each device's parts of what the devices of its group have."""
    devices = partitions(ctx, names, groups)
    if len(devices[0]) == 1:
        return x
    if _is_empty(ctx):
        return _empty(ctx)
    return ctx.op("stablehlo.all_to_all", [x],
                  {"split_dimension": integer(ctx, split_axis), "concat_dimension": integer(ctx, concat_axis),
                   "split_count": integer(ctx, len(devices[0])),
                   "replica_groups": replica_groups(ctx, devices), **channel(ctx)})


def pairs(ctx: Any, names: Names, perm: Sequence[tuple[int, int]]) -> dict[str, Any]:
    """The attributes that say which device sends to which."""
    found = [[row[sender], row[receiver]] for row in partitions(ctx, names) for sender, receiver in perm]
    table = np.array(found, np.int64).reshape(-1, 2)
    return {"source_target_pairs": ctx.ir.DenseIntElementsAttr.get(table), **channel(ctx)}


def position(ctx: Any, name: Hashable) -> Any:
    """The position of the device along an axis of the mesh."""
    mesh = mesh_of(ctx, (name,))
    known, sizes = list(mesh.axis_names), tuple(mesh.axis_sizes)
    at = known.index(name)
    if sizes[at] == 1:
        return ctx.constant(np.zeros((), np.int32))

    def of_device() -> Any:
        place = ctx.types[ShapedArray((), np.uint32)]
        stride, size = [ctx.constant(np.uint32(value)) for value in (prod(sizes[at + 1:]), sizes[at])]
        device = ctx.op("stablehlo.partition_id", [], None, [place])
        along = ctx.op("stablehlo.divide", [device, stride], None, [place])
        return ctx.op("stablehlo.convert", [ctx.op("stablehlo.remainder", [along, size], None, [place])])
    return ctx.on_each_device(of_device)
