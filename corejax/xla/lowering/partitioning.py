"""Programs for several devices: what a module says about who holds which part of which array.

The compiler divides a program by itself (XLA's partitioner, in the dialect Shardy) wherever it isn't told how. Within
a manual computation it doesn't: there, operations are those of each device, and collectives exchange data.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

from corejax.arrays.partitions import PartitionSpec
from corejax.arrays.shardings import NamedSharding
from corejax.base import _jaxlib
from corejax.base.avals import ShapedArray
from corejax.base.effects import Effect, ordered
from corejax.base.errors import CorejaxNotImplementedError, CorejaxValueError
from corejax.base.source import here

if TYPE_CHECKING:
    from corejax.arrays.devices import Device
    from corejax.arrays.meshes import AbstractMesh, Mesh
    from corejax.xla.lowering.programs import Lowering


#: The attribute of arguments and results of functions.
_SHARDING = "sdy.sharding"


#: Stands for the mesh of the first device alone.
_ONE = object()


class Wanted(NamedTuple):
    """How a program shall be divided: among which devices, and its arguments and results, where that is known."""

    devices: tuple[Device, ...]
    arguments: Sequence[NamedSharding | None]
    results: Sequence[NamedSharding | None]


class Manual(NamedTuple):
    """What is lowered now, if not operations on whole arrays: those of each device of a mesh, along these axes."""

    mesh: Mesh | AbstractMesh
    axes: frozenset[Hashable]


class Partitioning:
    """The part of a module that is about devices. It numbers them as the program will."""

    def __init__(self, ctx: Lowering, devices: tuple[Device, ...] | None) -> None:
        self.ctx = ctx
        self.devices = devices  # None until a mesh says which
        self.count = 0 if devices is None else len(devices)
        self._meshes: dict[Any, str] = {}
        _jaxlib.with_partitioning(ctx.context)

    # Attributes

    def sharding(self, sharding: NamedSharding, ndim: int) -> Any:
        """The attribute that says how an array with this many axes is divided."""
        return self._sharding(self._mesh(sharding.mesh), sharding.spec, ndim)

    def _sharding(self, mesh: str, spec: PartitionSpec, ndim: int, further: bool = False) -> Any:
        """`further`: the compiler may divide dimensions along more axes."""
        sdy, unconstrained = _jaxlib.sdy, PartitionSpec.UNCONSTRAINED
        dims = []
        for i in range(ndim):
            is_open = further or (i < len(spec) and spec[i] is unconstrained)
            axes = [sdy.AxisRefAttr.get(_axis(name)) for name in spec.names(i)]
            dims.append(sdy.DimensionShardingAttr.get(axes, not is_open))
        return sdy.TensorShardingAttr.get(mesh, dims)

    def _mesh(self, mesh: Mesh | AbstractMesh) -> str:
        """The name of a mesh in the module."""
        found = self._meshes.get(mesh)
        if found is None:
            sdy, ir = _jaxlib.sdy, self.ctx.ir
            order = self._order(mesh)
            attribute = sdy.MeshAttr.get([sdy.MeshAxisAttr.get(_axis(name), size) for name, size in mesh.shape.items()],
                                         order if order != list(range(len(order))) else [])
            found = self._meshes[mesh] = f"mesh{len(self._meshes) or ''}"
            with ir.InsertionPoint.at_block_begin(self.ctx.module.body):
                sdy.MeshOp(found, attribute)
        return found

    def _order(self, mesh: Any) -> list[int]:
        """The numbers of a mesh's devices; its own order if no other is known."""
        devices: tuple[Device, ...] | None = getattr(mesh, "flat_devices", None) if hasattr(mesh, "devices") else None
        if devices is not None and self.devices is None:
            self.devices = devices
        if self.count in (0, mesh.size) and (devices is None or devices == self.devices):
            self.count = mesh.size
            return list(range(mesh.size))
        if devices is None or self.devices is None or set(devices) != set(self.devices):
            raise CorejaxValueError("a program can't run on two different sets of devices", where=here(),
                                    got=f"{mesh}, and {self.count} other devices" if devices is None or len(devices) !=
                                    self.count else f"{mesh} of other devices than those of its arguments",
                                    wanted="meshes of the same devices",
                                    todo="move the arguments to the mesh with cj.device_put, or make one mesh")
        return [self.devices.index(device) for device in devices]

    def on_one(self, args: Sequence[Any], results: int) -> tuple[Sequence[Any], dict[str, Any]]:
        """The operands and attributes of an operation with so many results that only one device runs, for all of them,
        and its results must be made `whole`. Where operations are those of each device, each runs its own.
        """
        manual = self.ctx.manual
        if self.count < 2 or (manual is not None and manual.axes == set(manual.mesh.axis_names)):
            return args, {}
        if manual is not None:
            raise CorejaxNotImplementedError(
                "what happens once can't be in a program that is for each device along some axes of a mesh only",
                where=here(), got=f"shard_map along {sorted(map(str, manual.axes))} of {manual.mesh}",
                wanted="shard_map along all axes of the mesh", todo="leave out axis_names; or take the call out of it")
        sdy, ir = _jaxlib.sdy, self.ctx.ir
        if _ONE not in self._meshes:
            self._meshes[_ONE] = "one_device"
            with ir.InsertionPoint.at_block_begin(self.ctx.module.body):
                sdy.MeshOp("one_device", sdy.MeshAttr.get([], [0]))
        one = sdy.TensorShardingAttr.get("one_device", [])
        # Whole first, since the compiler warns of a way from divided to that device.
        return self.whole(args), {_SHARDING: sdy.TensorShardingPerValueAttr.get([one] * max(results, 1))}

    def whole(self, values: Sequence[Any]) -> list[Any]:
        """The values, with a copy on each device."""
        mesh = next((name for key, name in self._meshes.items() if key is not _ONE), None)
        if mesh is None:
            mesh, sdy = "all_devices", _jaxlib.sdy
            self._meshes[mesh] = mesh
            with self.ctx.ir.InsertionPoint.at_block_begin(self.ctx.module.body):
                sdy.MeshOp(mesh, sdy.MeshAttr.get([sdy.MeshAxisAttr.get("all", self.count)], []))
        return [x if not hasattr(x.type, "shape") else self.ctx._create("sdy.sharding_constraint", [x.type], [x], {
            "sharding": self._sharding(mesh, PartitionSpec(), len(x.type.shape))}).result for x in values]

    # The module

    def arguments(self, ir: Any, wanted: Sequence[NamedSharding | None], avals: Sequence[ShapedArray],
                  donation: Callable[[Any], Sequence[Any]] | None) -> list[Any]:
        """The attributes of the arguments of the main function."""
        others = donation(ir) if donation is not None else [ir.DictAttr.get({})] * len(avals)
        return [self._with(ir, other, sharding, aval) for other, sharding, aval in
                zip(others, wanted, avals, strict=True)]

    def finish(self, function: Any, wanted: Sequence[NamedSharding | None], avals: Sequence[ShapedArray]) -> None:
        """Complete the module, with the attributes of the results of its main function."""
        ir, module = self.ctx.ir, self.ctx.module.operation
        if any([sharding is not None for sharding in wanted]):
            function.attributes["res_attrs"] = ir.ArrayAttr.get([
                self._with(ir, ir.DictAttr.get({}), sharding, aval)
                for sharding, aval in zip(wanted, avals, strict=True)])
        i32 = ir.IntegerType.get_signless(32)
        module.attributes["mhlo.num_partitions"] = ir.IntegerAttr.get(i32, self.count or 1)
        module.attributes["mhlo.num_replicas"] = ir.IntegerAttr.get(i32, 1)

    def _with(self, ir: Any, other: Any, sharding: NamedSharding | None, aval: ShapedArray) -> Any:
        if sharding is None or sharding.mesh.size == 1:
            return other
        entries = {named.name: named.attr for named in other}
        return ir.DictAttr.get({**entries, _SHARDING: self.sharding(sharding, aval.stored.ndim)})

    # Operations

    def constrain(self, x: Any, sharding: NamedSharding) -> Any:
        """The same array, divided like this."""
        if sharding.mesh.size == 1:
            return x
        attribute = self.sharding(sharding, len(x.type.shape))
        return self.ctx._create("sdy.sharding_constraint", [x.type], [x], {"sharding": attribute}).result

    def manual(self, args: Sequence[Any], out_avals: Sequence[ShapedArray], manual: Manual,
               in_specs: Sequence[PartitionSpec], out_specs: Sequence[PartitionSpec], in_types: Sequence[Any],
               body: Callable[[Sequence[Any]], Sequence[Any]]) -> list[Any]:
        """A computation whose operations are those of each device, along the axes that are manual."""
        ctx = self.ctx
        if manual.mesh.size > 1:
            check_effects(ctx.eqn.effects if ctx.eqn is not None else ())
        outer = ctx.manual.axes if ctx.manual is not None else frozenset()
        inner = manual._replace(axes=manual.axes | outer)
        if manual.mesh.size == 1:  # the partitioner doesn't run for one device, whose part is the whole
            self._order(manual.mesh)
            with self._within(inner):
                return list(body(args))
        ir, sdy, mesh = ctx.ir, _jaxlib.sdy, self._mesh(manual.mesh)
        axes = [name for name in manual.mesh.axis_names if name in manual.axes - outer]
        partly = len(axes) + len(outer) < len(manual.mesh.axis_names)
        out_types = [ctx.types[aval] for aval in out_avals]

        def per_value(specs: Sequence[PartitionSpec], types: Sequence[Any]) -> Any:
            return sdy.TensorShardingPerValueAttr.get([
                self._sharding(mesh, spec, len(kind.shape), partly) for spec, kind in zip(specs, types, strict=True)])

        made = ctx._create("sdy.manual_computation", out_types, args, {
            "in_shardings": per_value(in_specs, [x.type for x in args]),
            "out_shardings": per_value(out_specs, out_types),
            "manual_axes": sdy.ManualAxesAttr.get([ir.StringAttr.get(_axis(name)) for name in axes]),
        }, None, 1)
        block = made.regions[0].blocks.append(*in_types)
        with ir.InsertionPoint(block), self._within(inner):
            ctx._create("sdy.return", [], body(list(block.arguments)))
        return list(made.results)

    @contextmanager
    def _within(self, manual: Manual) -> Iterator[None]:
        ctx = self.ctx
        saved = ctx.manual, ctx._literals
        ctx.manual, ctx._literals = manual, {}  # constants that are inserted in a region aren't visible outside
        try:
            yield
        finally:
            ctx.manual, ctx._literals = saved


def _axis(name: Hashable) -> str:
    return name if isinstance(name, str) else f"{type(name).__name__} {name!r}"


def check_effects(effects: Iterable[Effect]) -> None:
    """Raise if any of these effects can't happen in a program for several devices."""
    kept = ordered(effects)
    refused = [effect for effect in effects if "devices" in effect.refused]
    for effect in refused or kept:
        reason, _, todo = effect.refused.get("devices", "devices don't wait for each other").partition("; ")
        raise CorejaxNotImplementedError(
            f"the effect {effect} can't happen in a program for several devices: {reason}", where=here(),
            got=f"{'the ordered effect' if effect.ordered else 'the effect'} {effect}",
            wanted=f"a program for one device, or one without {effect}",
            todo=todo or "let it be unordered, or move it out of the program for several devices")


def constrain_within(ctx: Lowering, module: Any) -> None:
    """Let the function `main` of a module that is to be called divide its arguments and results by itself."""
    ir = ctx.ir
    function = next(op for op in module.body.operations if "sym_name" in op.attributes
                    and ir.StringAttr(op.attributes["sym_name"]).value == "main")
    block = function.entry_block
    returned = list(block.operations)[-1]
    for name, values in (("arg_attrs", list(block.arguments)), ("res_attrs", list(returned.operands))):
        if name not in function.attributes:
            continue
        for i, (value, entries) in enumerate(zip(values, function.attributes[name], strict=True)):
            if _SHARDING not in entries:
                continue
            before = ir.InsertionPoint.at_block_begin(block) if name == "arg_attrs" else ir.InsertionPoint(returned)
            with before:
                made = ctx._create("sdy.sharding_constraint", [value.type], [value],
                                   {"sharding": entries[_SHARDING]}).result
            if name == "arg_attrs":
                value.replace_all_uses_except(made, made.owner.operation)
            else:
                returned.operands[i] = made
        del function.attributes[name]
