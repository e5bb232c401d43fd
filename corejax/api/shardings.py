"""How users say that arguments and results are divided among devices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from corejax.arrays.meshes import Mesh, current_mesh
from corejax.arrays.partitions import PartitionSpec
from corejax.arrays.shardings import NamedSharding, Sharding, SingleDeviceSharding
from corejax.base import trees
from corejax.base.avals import ShapedArray
from corejax.base.errors import CorejaxError, CorejaxTypeError, CorejaxValueError
from corejax.base.keypaths import keystr
from corejax.base.prefixes import broadcast_prefix
from corejax.base.source import here
from corejax.interpreters.leaves import FlatFun, Namer

# Users pass a pytree of shardings, specs, and None where nothing is said.


def checked(shardings: Any, what: str) -> Any:
    """The same pytree with a NamedSharding at each place where something is said."""
    if shardings is None:
        return None
    found, treedef = trees.flatten_with_path(shardings, _is_none)
    return treedef.unflatten([_named(leaf, f"{what}{keystr(path)}") for path, leaf in found])


def _is_none(x: object) -> bool:
    return x is None


def _named(leaf: object, what: str) -> NamedSharding | None:
    if leaf is None or type(leaf) is NamedSharding:
        return leaf
    if type(leaf) is SingleDeviceSharding:
        return NamedSharding(Mesh(leaf.flat_devices, ("device",)), PartitionSpec())
    if type(leaf) is PartitionSpec:
        mesh = current_mesh()
        if mesh is None:
            raise CorejaxValueError(f"jit: {what} doesn't say which mesh it means", got=str(leaf), where=here(),
                                    wanted="a NamedSharding, or a spec within `with mesh:`",
                                    todo="write cj.NamedSharding(mesh, spec)")
        return NamedSharding(mesh, leaf)
    raise CorejaxTypeError(f"jit: {what} isn't a sharding", got=repr(leaf)[:80], where=here(),
                           wanted="a NamedSharding, or None where nothing is said",
                           todo="write cj.NamedSharding(mesh, cj.P('x'))")


def key_of(shardings: Any) -> Any:
    """A hashable value that is equal for equal shardings."""
    if shardings is None or isinstance(shardings, Sharding):
        return shardings
    leaves, treedef = trees.flatten(shardings, _is_none)
    return tuple(leaves), treedef


def of_arguments(shardings: Any, args: tuple[object, ...], avals: Sequence[ShapedArray], name: Namer
                 ) -> tuple[NamedSharding | None, ...]:
    """A sharding or None for each leaf; empty if there is none. Keyword arguments come last, and have none."""
    if shardings is None:
        return ()
    if isinstance(shardings, Sharding):
        found: list[Any] = [shardings] * len(trees.flatten(args)[0])
    else:
        if isinstance(shardings, (tuple, list)):
            if len(shardings) != len(args):
                raise CorejaxValueError("jit: in_shardings must have one entry for each positional argument",
                                        got=f"{len(shardings)} entries in in_shardings, {len(args)} positional "
                                        "arguments", wanted="the same number, static arguments not counted",
                                        where=here(), todo="write None for an argument about which nothing is said")
            shardings = tuple(shardings)
        found = broadcast_prefix(shardings, args, _is_none, names=("in_shardings", "args"))
    found += [None] * (len(avals) - len(found))
    return fitting(found, avals, lambda i: f"in_shardings for {name(i)}")


def of_results(shardings: Any, flat: FlatFun, avals: Sequence[ShapedArray]) -> tuple[NamedSharding | None, ...]:
    """A sharding or None for each leaf of the result; empty if there is none."""
    if shardings is None:
        return ()
    if isinstance(shardings, Sharding):
        found: list[Any] = [shardings] * len(avals)
    else:
        found = broadcast_prefix(shardings, flat.unflatten(list(avals)), _is_none, names=("out_shardings", "result"))
    return fitting(found, avals, lambda i: f"out_shardings for leaf {i} of the result" if len(avals) > 1 else
                   "out_shardings")


def fitting(found: Sequence[Any], avals: Sequence[ShapedArray], name: Namer) -> tuple[NamedSharding | None, ...]:
    """The same shardings, after checking that each fits its type."""
    for i, (sharding, aval) in enumerate(zip(found, avals, strict=True)):
        if sharding is not None:
            try:
                sharding.shard_shape(aval.shape)
            except CorejaxError as error:
                error.rephrase(f"jit: {name(i)}: {error.message}")
                raise
    return tuple(found)
