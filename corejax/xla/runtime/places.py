"""Where arrays can be: on one device (`Place`), or divided among several (`Spread`), which are a `Group`."""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, final

import numpy as np

from corejax.arrays.devices import is_addressable
from corejax.arrays.partitions import PartitionSpec
from corejax.arrays.shardings import Index, NamedSharding, SingleDeviceSharding
from corejax.arrays.storage import Host
from corejax.base import _jaxlib, elements, ending
from corejax.base.avals import ShapedArray
from corejax.base.errors import CorejaxRuntimeError
from corejax.base.source import here
from corejax.xla.runtime import backends
from corejax.xla.runtime.peers import Program

if TYPE_CHECKING:
    from corejax.arrays.devices import Device
    from corejax.arrays.meshes import Mesh

#: The runtime reads memory in place if it starts at a multiple of this.
_ALIGNMENT = 64


class _Home:
    """Somewhere to put arrays: the runtime's object for it, and how its programs' results become arrays."""

    __slots__ = ("sharding", "put", "own", "copying", "sharing", "_handlers", "__weakref__")

    def __init__(self, devices: Sequence[Device], sharding: Any) -> None:
        self.sharding = sharding
        self.put = _jaxlib.batched_device_put
        #: The positions of those of the devices that belong to this process.
        self.own = [i for i, device in enumerate(devices) if is_addressable(device)]
        within = [devices[i] for i in self.own]
        self.copying = _jaxlib.put_arguments(within, shared=False)
        self.sharing = _jaxlib.put_arguments(within, shared=True)
        self._handlers: weakref.WeakKeyDictionary[Any, Any] = weakref.WeakKeyDictionary()

    def assemble(self, aval: ShapedArray, shards: Sequence[Any]) -> Any:
        """The buffer that consists of a buffer on each device of this process, in their order."""
        return self.put(aval.stored, self.sharding, list(shards), *self.sharing)

    def handler(self, aval: ShapedArray) -> Any:
        """The function that turns a result of this type into an array."""
        aval = aval.stored
        found = self._handlers.get(aval)
        if found is None:
            found = self._handlers[aval] = _jaxlib.result_handler(_PlainAval(aval), self.sharding)
        return found


@final
class Place(_Home):
    """A device, with what it takes to put arrays there. Programs for it are lowered for the platform `compiler`, and
    compiled with `options`.

    Each device has two: arrays that are `fixed` stay where the user has put them; others move to those.
    """

    __slots__ = ("client", "device", "devices", "user_sharding", "backend", "platform", "compiler", "options", "fixed",
                 "twin")
    twin: Place
    """The other place of the same device."""

    def __init__(self, client: Any, device: Device, backend: backends.Offer, fixed: bool = False) -> None:
        self.devices = _jaxlib.device_list((device,))
        super().__init__((device,), _jaxlib.spread_sharding(self.devices, _jaxlib.tiles(None)))
        self.client = client
        self.device = device
        self.user_sharding = SingleDeviceSharding(device)
        self.backend, self.compiler, self.options = backend.name, backend.platform, backend.options
        self.platform: str = device.platform
        self.fixed = fixed

    @property
    def is_addressable(self) -> bool:
        """Whether the device belongs to this process."""
        return bool(self.own)

    is_readable = is_addressable
    is_common = True

    def put_copy(self, aval: ShapedArray, host: Host) -> Any:
        """A buffer for an ndarray that may change afterwards."""
        stored = aval.stored
        if stored is not aval:
            aval, host = stored, elements.of_stored(host)
        return self.put(aval, self.sharding, (host,), *self.copying)

    def put_shared(self, aval: ShapedArray, host: Host) -> Any:
        """A buffer for an ndarray that never changes; it may share its memory."""
        stored = aval.stored
        if stored is not aval:
            aval, host = stored, elements.of_stored(host)
        return self.put(aval, self.sharding, (host,), *self.sharing)

    def shards(self, buffer: Any) -> Sequence[Any]:
        """The buffer itself, its only part."""
        return [buffer]

    def read(self, buffer: Any, stored: ShapedArray) -> np.ndarray:
        """The elements of a buffer, read-only."""
        return _jaxlib.buffer_to_numpy(buffer, stored.shape, stored.dtype)


@final
class Group:
    """Several devices, in an order, which run programs together: each computes a part of the arrays.

    A program refers to a device by its position in that order.
    """

    __slots__ = ("places", "devices", "processes", "client", "backend", "platform", "compiler", "options", "_spreads")

    def __init__(self, places: Sequence[Place]) -> None:
        first = places[0]
        self.places = tuple(places)
        self.devices = _jaxlib.device_list([place.device for place in places])
        self.processes = tuple(sorted({place.device.process_index for place in places}))
        self.client, self.backend, self.platform = first.client, first.backend, first.platform
        self.compiler, self.options = first.compiler, first.options
        self._spreads: dict[tuple[Any, int], Spread] = {}

    @property
    def device(self) -> Device:
        """The first of its devices."""
        return self.places[0].device

    @property
    def meets(self) -> bool:
        """Whether its devices belong to several processes, one of which is this one."""
        return len(self.processes) > 1 and any([place.is_addressable for place in self.places])

    def spread(self, sharding: NamedSharding, ndim: int) -> Spread:
        """How arrays with this many axes are divided by a sharding of these devices."""
        key = sharding, ndim
        found = self._spreads.get(key)
        if found is None:
            ids = _ids(sharding, ndim)
            found = self._spreads.setdefault(key, Spread(self, sharding, ids, ndim))
        return found

    def everywhere(self, ndim: int, mesh: Mesh) -> Spread:
        """A copy on each device."""
        return self.spread(NamedSharding(mesh, PartitionSpec()), ndim)

    def spread_by(self, tiles: Any, ndim: int, mesh: Mesh) -> Spread:
        """How the compiler has divided an array, in terms of this mesh if possible; None for not at all."""
        ids = None if tiles is None else _jaxlib.tile_ids(tiles, ndim)
        if ids is None:
            return self.everywhere(ndim, mesh)
        spec = _spec_for(ids, mesh)
        if spec is not None:
            return self.spread(NamedSharding(mesh, spec), ndim)
        sizes = [(f"axis{i}", size) for i, size in enumerate(ids.shape[:-1])]
        shape = {name: size for name, size in sizes if size > 1}
        devices = np.array(list(self.devices), object)[ids.reshape(-1)]
        own = type(mesh)(devices.reshape(*shape.values(), ids.shape[-1]), (*shape, "copies"))
        sharding = NamedSharding(own, PartitionSpec(*[name if size > 1 else None for name, size in sizes]))
        return self._spreads.setdefault((sharding, ndim), Spread(self, sharding, ids, ndim))


@final
class Spread(_Home):
    """How arrays with a number of axes are divided among the devices of a group."""

    __slots__ = ("group", "user_sharding", "ids", "has_copies", "_order", "_readers")
    fixed = True

    def __init__(self, group: Group, sharding: NamedSharding, ids: np.ndarray | None, ndim: int) -> None:
        super().__init__(list(group.devices), _jaxlib.spread_sharding(group.devices, _jaxlib.tiles(ids)))
        self.group, self.user_sharding = group, sharding
        self.ids = ids
        own, order = sharding.flat_devices, list(group.devices)
        self._order = None if list(own) == order else [own.index(device) for device in order]
        self.has_copies = ids is None or ids.shape[-1] > 1
        #: Positions of devices of this process that hold the whole array together; None if there are none.
        self._readers = _readers(ids, self.own)

    @property
    def device(self) -> Device:
        """The first of its devices."""
        return self.group.device

    def put_copy(self, aval: ShapedArray, host: Host) -> Any:
        """A buffer over all devices for an ndarray that may change afterwards."""
        if self.has_copies or not aval.size:
            # Copied here: the runtime fails if it shall copy the same memory to several devices.
            copy = memory_to_share(host.shape, host.dtype)
            copy[...] = host
            return self.put_shared(aval, copy)
        return self._put(aval, host, self.copying)

    def put_shared(self, aval: ShapedArray, host: Host) -> Any:
        """A buffer over all devices for an ndarray that never changes; it may share its memory."""
        return self._put(aval, host, self.sharing)

    def _put(self, aval: ShapedArray, host: Host, how: tuple[Any, ...]) -> Any:
        stored = aval.stored
        if stored is not aval:
            aval, host = stored, elements.of_stored(host)
        whole = np.asarray(host)
        parts = self.parts(aval.shape)
        return self.put(aval, self.sharding, [whole[parts[i]] for i in self.own], *how)

    def parts(self, shape: tuple[int, ...]) -> Sequence[Index]:
        """For each device, in the group's order, its part of an array of this shape."""
        found = self.user_sharding.indices(shape)  # in the order of a mesh, which may be the compiler's own
        return found if self._order is None else [found[i] for i in self._order]

    def shards(self, buffer: Any) -> Sequence[Any]:
        """The parts of a buffer over all devices that belong to this process, in the group's order."""
        return _jaxlib.buffer_shards(buffer)

    @property
    def is_readable(self) -> bool:
        """Whether devices of this process hold all of an array."""
        return self._readers is not None

    @property
    def is_common(self) -> bool:
        """Whether every process that has a part of an array has all of it: all of them say the same."""
        return len(self.group.processes) == 1 or self.ids is None or self.ids.shape[-1] == self.ids.size

    def read(self, buffer: Any, stored: ShapedArray) -> np.ndarray:
        """The elements of a buffer over all devices, read-only."""
        if self._readers is None:
            raise _unreadable(stored, self.user_sharding)
        shards = _jaxlib.buffer_shards(buffer)
        if self.ids is None or self.ids.shape[-1] == self.ids.size:
            return _jaxlib.buffer_to_numpy(shards[0], stored.shape, stored.dtype)
        held, parts = dict(zip(self.own, shards, strict=True)), self.parts(stored.shape)
        whole = memory_to_share(stored.shape, stored.dtype)
        buffer.block_until_ready()
        for i in self._readers:
            part = whole[parts[i]]
            part[...] = _jaxlib.buffer_to_numpy(held[i], part.shape, stored.dtype)
        whole.flags.writeable = False
        return whole


ending.doors(Spread, "read")

Home: TypeAlias = Place | Spread


@final
class Request(NamedTuple):
    """How a program shall be divided among a group. The compiler decides where there is None.

    It names the axes of the mesh where it has decided something.
    """

    group: Group
    mesh: Mesh
    arguments: tuple[Spread | None, ...]
    results: tuple[NamedSharding | None, ...]

    @property
    def open_results(self) -> list[bool]:
        """For each result, whether the compiler decides about any of its dimensions."""
        return [wanted is None or PartitionSpec.UNCONSTRAINED in wanted.spec for wanted in self.results]


@final
class Division(NamedTuple):
    """How a program is divided among a group: where each argument is expected, and where each result will be; and
    whether the devices wait for each other in it, as they exchange data. If they belong to several processes, `program`
    is what these must agree on.
    """

    group: Group
    arguments: tuple[Spread, ...]
    results: tuple[Spread, ...]
    exchanges: bool
    program: Program | None


def memory_to_share(shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    """A new ndarray, not initialized, that a device which computes in host memory can read in place."""
    size = prod(shape) * dtype.itemsize
    memory = np.empty(size + _ALIGNMENT, np.uint8)
    start = -address(memory) % _ALIGNMENT
    return memory[start:start + size].view(dtype).reshape(shape)


def address(array: np.ndarray) -> int:
    """Where the memory of an ndarray starts."""
    return array.__array_interface__["data"][0]  # type: ignore[no-any-return]


class _PlainAval:
    """The part of a type that the runtime needs, without a reference to the interned aval."""

    __slots__ = ("shape", "dtype", "weak_type")

    def __init__(self, aval: ShapedArray) -> None:
        self.shape, self.dtype, self.weak_type = aval.shape, aval.dtype, False


def _ids(sharding: NamedSharding, ndim: int) -> np.ndarray | None:
    """The devices of each tile, by position in the mesh: an axis for each of the array's, and one for copies."""
    counts, positions, _ = sharding.tiling(ndim)
    if prod(counts) == 1:
        return None
    tiles: dict[tuple[int, ...], list[int]] = {}
    for device, position in enumerate(positions):
        tiles.setdefault(position, []).append(device)
    return np.array([tiles[position] for position in np.ndindex(counts)]).reshape(*counts, -1)


def _readers(ids: np.ndarray | None, own: Sequence[int]) -> list[int] | None:
    """For each tile, the first of the devices at these positions that holds it; None if one has no such device."""
    if ids is None:
        return list(own[:1]) or None
    mine = set(own)
    found = [next((i for i in holders if i in mine), None) for holders in ids.reshape(-1, ids.shape[-1]).tolist()]
    return None if None in found else found  # type: ignore[return-value]


def _unreadable(stored: ShapedArray, sharding: NamedSharding) -> CorejaxRuntimeError:
    return CorejaxRuntimeError(
        "this process doesn't hold the whole array: parts of it are on devices of others", where=here(),
        got=f"{stored} with {sharding}", wanted="an array whose elements are all in this process",
        todo="call corejax.multihost_utils.process_allgather(x) in all processes; or read the parts that are here, "
             "from x.addressable_shards")


def _spec_for(ids: np.ndarray, mesh: Mesh) -> PartitionSpec | None:
    """The spec by which a mesh divides an array in this way, if there is one."""
    ndim, wanted = ids.ndim - 1, np.sort(ids, axis=-1)

    def search(entries: tuple[Any, ...]) -> PartitionSpec | None:
        if len(entries) == ndim:
            own = _ids(NamedSharding(mesh, PartitionSpec(*entries)), ndim)
            same = own is not None and own.shape == ids.shape and bool((np.sort(own, axis=-1) == wanted).all())
            while entries[-1] is None:
                entries = entries[:-1]
            return PartitionSpec(*entries) if same else None
        used = PartitionSpec(*entries).all_names()
        free = [name for name in mesh.axis_names if mesh.shape[name] > 1 and name not in used]
        for names in _sequences(free, mesh, ids.shape[len(entries)]):
            found = search((*entries, names or None))
            if found is not None:
                return found
        return None

    return search(())


def _sequences(free: Sequence[Any], mesh: Mesh, size: int) -> list[tuple[Any, ...]]:
    """The sequences of these axes whose sizes have a given product."""
    if size == 1:
        return [()]
    return [(name, *rest) for name in free if size % mesh.shape[name] == 0
            for rest in _sequences([n for n in free if n != name], mesh, size // mesh.shape[name])]
