"""Shardings: which part of an array is on which device."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, NamedTuple, Self, TypeAlias, final

from corejax.arrays import devices as runtimes
from corejax.arrays.devices import Device
from corejax.arrays.interned import Interned
from corejax.arrays.meshes import AbstractMesh, AnyMesh, Mesh
from corejax.arrays.partitions import PartitionSpec
from corejax.base.caches import BoundedCache
from corejax.base.errors import CorejaxNotImplementedError, CorejaxTypeError, CorejaxValueError, kind_of
from corejax.base.source import here
from corejax.base.tracebacks import public

#: The part of an array that a device holds: a slice for each dimension.
Index: TypeAlias = tuple[slice, ...]
_WHOLE = slice(None)


class Tiling(NamedTuple):
    """How a sharding divides arrays of one rank."""

    counts: tuple[int, ...]
    """For each dimension, into how many parts it is divided."""
    positions: tuple[tuple[int, ...], ...]
    """For each device, in the order of the sharding, which of these parts it holds."""
    replicas: tuple[int, ...]
    """For each device, how many devices before it hold the same part."""


#: The message of what the base class leaves open.
_EACH_KIND = "each kind of sharding says this itself"

_tilings: BoundedCache[tuple[Sharding, int], Tiling] = BoundedCache(1024)
_indices: BoundedCache[tuple[Sharding, tuple[int, ...]], tuple[Index, ...]] = BoundedCache(1024)


@public
class Sharding(Interned):
    """Says which part of an array is on which device: a `NamedSharding` or a `SingleDeviceSharding`."""

    __slots__ = ()

    @public
    def __new__(cls, *_: Any, **__: Any) -> Self:
        raise CorejaxTypeError("Sharding is the base of shardings, and says nothing by itself", got="Sharding(...)",
                               wanted="a NamedSharding, or a SingleDeviceSharding", where=here(),
                               todo="write cj.NamedSharding(mesh, cj.P('x'))")

    @property
    def flat_devices(self) -> tuple[Device, ...]:
        """Its devices, in the order in which programs number them."""
        raise NotImplementedError(_EACH_KIND)

    @property
    def is_fully_replicated(self) -> bool:
        """Whether each device holds the whole array."""
        raise NotImplementedError(_EACH_KIND)

    @property
    def is_fully_addressable(self) -> bool:
        """Whether all of its devices belong to this process."""
        raise NotImplementedError(_EACH_KIND)

    def _tile(self, ndim: int) -> tuple[tuple[int, ...], tuple[tuple[int, ...], ...]]:
        """The counts and positions of a tiling."""
        raise NotImplementedError(_EACH_KIND)

    # What follows from these

    @property
    def num_devices(self) -> int:
        return len(self.flat_devices)

    @property
    def device_set(self) -> set[Device]:
        """Its devices."""
        return set(self.flat_devices)

    @property
    def addressable_devices(self) -> set[Device]:
        """Those of its devices that belong to this process."""
        return {device for device in self.flat_devices if runtimes.is_addressable(device)}

    @property
    def memory_kind(self) -> None:
        """None: the default memory of each device."""
        return None

    def tiling(self, ndim: int) -> Tiling:
        """How it divides arrays of this rank; raises if it says more than that many dimensions have."""
        known = _tilings.get((self, ndim))
        if known is None:
            counts, positions = self._tile(ndim)
            seen: dict[tuple[int, ...], int] = {}
            replicas = []
            for position in positions:
                replicas.append(seen.get(position, 0))
                seen[position] = replicas[-1] + 1
            known = _tilings.put((self, ndim), Tiling(counts, positions, tuple(replicas)))
        return known

    def indices(self, shape: tuple[int, ...]) -> tuple[Index, ...]:
        """For each device, in the order of `flat_devices`, its part of an array of this shape."""
        known = _indices.get((self, shape))
        if known is None:
            part = self.shard_shape(shape)
            counts, positions, _ = self.tiling(len(shape))
            known = _indices.put((self, shape), tuple([
                tuple([slice(i * n, (i + 1) * n) if count > 1 else _WHOLE
                       for i, n, count in zip(position, part, counts, strict=True)]) for position in positions]))
        return known

    def shard_shape(self, global_shape: Sequence[int]) -> tuple[int, ...]:
        """The shape of each device's part of an array of this shape."""
        shape = canonical_shape(global_shape)
        counts = self.tiling(len(shape)).counts
        for dimension, (size, count) in enumerate(zip(shape, counts, strict=True)):
            if size % count:
                raise self._indivisible(shape, dimension, count)
        return tuple([size // count for size, count in zip(shape, counts, strict=True)])

    def devices_indices_map(self, global_shape: Sequence[int]) -> Mapping[Device, Index]:
        """The part that each device holds of an array of this shape."""
        return dict(zip(self.flat_devices, self.indices(canonical_shape(global_shape)), strict=True))

    def addressable_devices_indices_map(self, global_shape: Sequence[int]) -> Mapping[Device, Index]:
        """The same for the devices that belong to this process."""
        everywhere = self.devices_indices_map(global_shape)
        return {device: index for device, index in everywhere.items() if runtimes.is_addressable(device)}

    def is_equivalent_to(self, other: Sharding, ndim: int) -> bool:
        """Whether both put the same parts of an array of this rank on the same devices."""
        if not isinstance(other, Sharding):
            raise CorejaxTypeError("only shardings are equivalent to each other", got=kind_of(other), where=here(),
                                   wanted="a Sharding", todo="pass x.sharding, or a NamedSharding")
        if self is other:
            return True
        return self._places() == other._places() and self.tiling(ndim) == other.tiling(ndim)

    def _places(self) -> object:
        """What two shardings must have in common besides their tilings in order to be equivalent."""
        return self.flat_devices

    def _indivisible(self, shape: tuple[int, ...], dimension: int, count: int) -> CorejaxValueError:
        raise NotImplementedError(_EACH_KIND)

    def __corejax_text__(self, text: Callable[[object], str]) -> str:
        return f"<{self!r}>"

    def with_memory_kind(self, kind: str | None) -> Self:
        """The same sharding: there is only the default memory."""
        _check_memory(kind)
        return self


@final
@public
class NamedSharding(Sharding):
    """Divides the dimensions of arrays along the axes of a mesh, as a spec says.

    >>> sharding = NamedSharding(AbstractMesh((2, 4), ("x", "y")), PartitionSpec("x", None))
    >>> sharding.shard_shape((6, 3)), sharding.num_devices
    ((3, 3), 8)
    """

    __slots__ = ("mesh", "spec", "is_fully_replicated")
    mesh: Mesh | AbstractMesh
    spec: PartitionSpec
    is_fully_replicated: bool

    @public
    def __new__(cls, mesh: Mesh | AbstractMesh, spec: PartitionSpec, *, memory_kind: str | None = None) -> Self:
        if memory_kind is None and isinstance(mesh, AnyMesh) and isinstance(spec, PartitionSpec):
            known = cls._known.get((mesh, spec))
            if known is not None:
                return known  # type: ignore[no-any-return]
        if not isinstance(mesh, AnyMesh):
            raise CorejaxTypeError("a NamedSharding needs a mesh", got=kind_of(mesh), wanted="a Mesh", where=here(),
                                   todo="make one: cj.make_mesh((8,), 'x')")
        if not isinstance(spec, PartitionSpec):
            raise CorejaxTypeError("a NamedSharding needs a PartitionSpec", got=repr(spec)[:80], where=here(),
                                   wanted="a PartitionSpec, such as P('x', None)",
                                   todo="write P() for arrays that every device holds completely" if spec is None
                                   else "write P(...) around the names")
        _check_memory(memory_kind)
        check_axes(mesh, spec)
        divided = any([mesh.shape[name] > 1 for name in spec.all_names()])
        return cls._one((mesh, spec), mesh=mesh, spec=spec, is_fully_replicated=not divided)

    @property
    def flat_devices(self) -> tuple[Device, ...]:
        return self.mesh.flat_devices

    @property
    def num_devices(self) -> int:
        return self.mesh.size

    @property
    def is_fully_addressable(self) -> bool:
        return self.mesh.is_fully_addressable

    def update(self, *, mesh: Mesh | AbstractMesh | None = None, spec: PartitionSpec | None = None) -> NamedSharding:
        """The same sharding on another mesh, or with another spec."""
        return NamedSharding(self.mesh if mesh is None else mesh, self.spec if spec is None else spec)

    def _tile(self, ndim: int) -> tuple[tuple[int, ...], tuple[tuple[int, ...], ...]]:
        spec, mesh = self.spec, self.mesh
        if len(spec) > ndim:
            raise CorejaxValueError(
                "a PartitionSpec has more entries than the array has dimensions", where=here(),
                got=f"{spec} for an array of rank {ndim}", wanted=f"at most {ndim} entr{'y' if ndim == 1 else 'ies'}",
                todo="write P(): a scalar can't be divided" if not ndim else "leave out entries, from the end or None")
        axes = [[mesh.axis_names.index(name) for name in spec.names(i)] for i in range(ndim)]
        sizes = mesh.axis_sizes
        positions = []
        for coordinates in itertools.product(*map(range, sizes)):
            position = []
            for of_dimension in axes:
                at = 0
                for axis in of_dimension:
                    at = at * sizes[axis] + coordinates[axis]
                position.append(at)
            positions.append(tuple(position))
        return tuple([max(part) + 1 for part in zip(*positions, strict=True)]), tuple(positions)

    def _places(self) -> object:
        return self.mesh.flat_devices if isinstance(self.mesh, Mesh) else self.mesh.size

    def _indivisible(self, shape: tuple[int, ...], dimension: int, count: int) -> CorejaxValueError:
        names = self.spec.names(dimension)
        sizes = " and ".join([f"{name!r} of size {self.mesh.shape[name]}" for name in names])
        lower, upper = shape[dimension] // count * count, -(-shape[dimension] // count) * count
        return CorejaxValueError(
            f"dimension {dimension} can't be divided evenly over mesh ax{'is' if len(names) == 1 else 'es'} {sizes}",
            got=f"size {shape[dimension]}, in shape {shape} with {self.spec}", wanted=f"a multiple of {count}",
            where=here(), todo=f"pad it to {upper}" + (f" or cut it to {lower}" if lower else "")
            + ", or divide another dimension")

    def __repr__(self) -> str:
        return f"NamedSharding(mesh={self.mesh}, spec={self.spec})"

    def __reduce__(self) -> tuple[object, ...]:
        return NamedSharding, (self.mesh, self.spec)

    def __corejax_key__(self) -> tuple[object, ...]:
        return self.mesh, self.spec


@final
@public
class SingleDeviceSharding(Sharding):
    """Puts whole arrays on one device.

    >>> sharding = SingleDeviceSharding(runtimes.runtime.devices()[0])
    >>> sharding.shard_shape((6, 3)), sharding.is_fully_replicated
    ((6, 3), True)
    """

    __slots__ = ("flat_devices",)
    flat_devices: tuple[Device, ...]

    @public
    def __new__(cls, device: Device, *, memory_kind: str | None = None) -> Self:
        known = cls._known.get((device,)) if memory_kind is None and isinstance(device, Hashable) else None
        if known is not None:
            return known  # type: ignore[no-any-return]
        if not (hasattr(device, "id") and hasattr(device, "platform")):
            raise CorejaxTypeError("a SingleDeviceSharding needs a device", got=repr(device)[:80], where=here(),
                                   wanted="a device of the runtime", todo="take it from cj.devices()")
        _check_memory(memory_kind)
        return cls._one((device,), flat_devices=(device,))

    @property
    def is_fully_replicated(self) -> bool:
        return True

    @property
    def is_fully_addressable(self) -> bool:
        return runtimes.is_addressable(self.flat_devices[0])

    def _tile(self, ndim: int) -> tuple[tuple[int, ...], tuple[tuple[int, ...], ...]]:
        return (1,) * ndim, ((0,) * ndim,)

    def __repr__(self) -> str:
        return f"SingleDeviceSharding(device={self.flat_devices[0]!r})"

    def __reduce__(self) -> tuple[object, ...]:
        return _restored, (self.flat_devices[0].platform, self.flat_devices[0].id)

    def __corejax_key__(self) -> tuple[object, ...]:
        return self.flat_devices


def check_axes(mesh: AnyMesh, spec: PartitionSpec) -> None:
    """Raise unless each axis of the spec is one of the mesh, and used once."""
    used: set[Hashable] = set()
    for name in spec.all_names():
        if name not in mesh.shape:
            raise CorejaxValueError(f"the mesh has no axis {name!r}", got=f"{spec} on {mesh}", where=here(),
                                    wanted=f"one of: {', '.join(map(repr, mesh.axis_names))}",
                                    todo="use a name of the mesh, or make a mesh with this axis")
        if name in used:
            raise CorejaxValueError(f"the mesh axis {name!r} can't divide two dimensions of one array", where=here(),
                                    got=str(spec), wanted="each axis at most once",
                                    todo="put None in place of one of them, or use another axis")
        used.add(name)


def _check_memory(kind: object) -> None:
    if kind is not None:
        raise CorejaxNotImplementedError("arrays are in the default memory of their devices", got=f"{kind!r}"[:80],
                                         wanted="memory_kind=None", where=here(), todo="leave memory_kind out")


def canonical_shape(shape: Any) -> tuple[int, ...]:
    """A shape as a tuple of Python integers; raises for anything else."""
    if type(shape) is tuple and all([type(size) is int for size in shape]):
        return shape
    try:
        return tuple([int(size.__index__()) for size in shape])
    except (TypeError, AttributeError) as error:
        raise CorejaxTypeError("a shape must hold integers", got=repr(shape)[:80], wanted="a sequence of integers",
                               where=here(), todo="pass x.shape; write (8,) for one dimension of 8") from error


def _restored(platform: str, number: int) -> SingleDeviceSharding:
    """Unpickle a sharding: it is on that device of this process which has the same number."""
    there = {device.id: device for device in runtimes.runtime.devices(platform)}
    if number not in there:
        raise CorejaxValueError("a pickled sharding is on a device that this process doesn't have", where=here(),
                                got=f"{platform}:{number}", wanted=", ".join([f"{platform}:{i}" for i in there]),
                                todo="unpickle it where there are as many devices; for more devices of the CPU, set "
                                     "config.num_cpu_devices before the first computation")
    return SingleDeviceSharding(there[number])
