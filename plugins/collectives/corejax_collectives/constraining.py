"""`with_sharding_constraint`: within a program, saying how a value is divided among devices."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import Any, TypeVar

import numpy as np

from corejax import lax, tree
from corejax.core import Mesh, NamedSharding, PartitionSpec, ShapedArray, Trace, aval_of, context, keystr
from corejax.errors import CorejaxError, CorejaxValueError
from corejax.plugin import Sample, define, devices, hookimpl, public, refused
from corejax_collectives import _specs

__all__ = ["sharding_constraint", "with_sharding_constraint"]

#: A pytree of arrays.
Tree = TypeVar("Tree")


class ShardingConstraint:
    """`sharding_constraint(x, *, sharding)`: the same array, divided among devices as the sharding says.

    >>> import numpy as np, corejax as cj
    >>> sharding = cj.NamedSharding(cj.make_mesh((1,), ("x",)), cj.P("x"))
    >>> lax.sharding_constraint(np.arange(3.0), sharding=sharding).tolist()
    [0.0, 1.0, 2.0]
    """

    name = "sharding_constraint"
    operands = ("x",)
    linear = (0,)
    structural = True

    @hookimpl
    def abstract_eval(self, avals: Any, *, sharding: NamedSharding) -> ShapedArray:
        (x,) = avals
        try:
            sharding.tiling(x.ndim)  # sizes needn't be multiples: the compiler pads
        except CorejaxError as error:
            error.rephrase(f"{self.name}: {error.message}")
            raise
        return x  # type: ignore[no-any-return]

    @hookimpl
    def transpose(self, cotangents: Any, args: Any, *, sharding: NamedSharding) -> Any:
        return [sharding_constraint.primitive.bind(cotangents, sharding=sharding)]

    @hookimpl
    def vmap(self, axis: Any, args: Any, dims: Any, *, sharding: NamedSharding) -> Any:
        (x,), (dim,) = args, dims
        entry: Hashable = PartitionSpec.UNCONSTRAINED if axis.spmd is None else axis.spmd
        spec = _specs.inserted(sharding.spec, dim, entry)
        return sharding_constraint.primitive.bind(x, sharding=sharding.update(spec=spec)), dim

    @hookimpl
    def xla_translation(self, ctx: Any, args: Any, *, sharding: NamedSharding) -> Any:
        return ctx.constrain(args[0], sharding)

    @hookimpl
    def samples(self, rng: Any) -> Iterator[Sample]:
        mesh = Mesh(devices()[:1], ("i",))  # one device is what everybody has
        x = rng.standard_normal((2, 3))
        for spec in (PartitionSpec(), PartitionSpec(None, "i")):
            yield Sample([x], {"sharding": NamedSharding(mesh, spec)}, results=x)
        yield Sample([np.arange(3)], {"sharding": NamedSharding(mesh, PartitionSpec("i"))})
        yield Sample([x], {"sharding": NamedSharding(mesh, PartitionSpec(None, None, "i"))}, error=ValueError)


sharding_constraint: Any = define(ShardingConstraint())


def constrain(x: Any, sharding: NamedSharding) -> Any:
    """The role `constrain`: the same value, divided like this."""
    return sharding_constraint.primitive.bind(x, sharding=sharding)


def _is_leaf(x: object) -> bool:
    return x is None or isinstance(x, PartitionSpec)


@public
def with_sharding_constraint(x: Tree, shardings: Any) -> Tree:
    """The same arrays, divided among devices as `shardings` says: one for all, or a prefix of the pytree `x`.

    A `PartitionSpec` stands for a sharding on the mesh of `with mesh:`. `P.UNCONSTRAINED` leaves a dimension to the
    compiler. Within `jit`, sizes needn't be multiples of those of the mesh: 10 over 8 is fine. Outside of it, arrays
    are moved, and all parts of an array have one size.

    >>> import numpy as np, corejax as cj
    >>> sharding = cj.NamedSharding(cj.make_mesh((1,), ("x",)), cj.P("x"))
    >>> cj.jit(lambda x: lax.with_sharding_constraint(x * 2.0, sharding))(np.arange(3.0)).tolist()
    [0.0, 2.0, 4.0]
    """
    chosen = [_named(leaf, f"shardings{keystr(path)}")
              for path, leaf in tree.flatten_with_path(shardings, is_leaf=_is_leaf)[0]]
    treedef = tree.structure(shardings, is_leaf=_is_leaf)
    leaves, structure = tree.flatten(x)
    wanted = chosen * len(leaves) if treedef == tree.structure(0) else tree.leaves(tree.broadcast(
        treedef.unflatten(chosen), x, is_leaf=_is_leaf), is_leaf=_is_leaf)
    return structure.unflatten([leaf if sharding is None else _constrained(leaf, sharding, i)  # type: ignore[no-any-return]
                                for i, (leaf, sharding) in enumerate(zip(leaves, wanted, strict=True))])


def _named(leaf: Any, what: str) -> NamedSharding | None:
    if leaf is None or isinstance(leaf, NamedSharding):
        return leaf
    if not isinstance(leaf, PartitionSpec):
        raise refused("with_sharding_constraint", f"{what} isn't a sharding", got=repr(leaf)[:80],
                      wanted="a NamedSharding, or a PartitionSpec within `with mesh:`",
                      todo="write cj.NamedSharding(mesh, cj.P('x'))")
    mesh = _specs.mesh_around()
    if mesh is None:
        raise refused("with_sharding_constraint", f"{what} doesn't say which mesh it means", got=str(leaf),
                      wanted="a NamedSharding, or a spec within `with mesh:`", kind=CorejaxValueError,
                      todo="write cj.NamedSharding(mesh, spec)")
    return NamedSharding(mesh, leaf)


def _is_moved() -> bool:
    """Whether values are moved at once, to where a sharding says, rather than by a program that is being made."""
    trace: Trace | None = context.trace
    while trace is not None:
        if trace.stages or trace.is_mapping:  # a mapped axis may be divided in any way
            return False
        trace = trace.parent
    return True


def _constrained(x: Any, sharding: NamedSharding, i: int) -> Any:
    for axis in context.axes:
        if axis.mesh is not None and axis.name in sharding.spec.all_names():
            raise refused("with_sharding_constraint", f"axis {axis.name!r} is mapped over by the shard_map around the "
                          "call: values are each device's own along it", got=str(sharding.spec),
                          wanted="axes that the compiler divides along", todo="leave it out of the spec",
                          kind=CorejaxValueError)
    try:
        if _is_moved():
            sharding.shard_shape(aval_of(x).shape)
        return lax.sharding_constraint(x, sharding=sharding)
    except CorejaxError as error:
        if error.primitive is None:
            error.rephrase(f"with_sharding_constraint: leaf {i}: {error.message}")
        raise
