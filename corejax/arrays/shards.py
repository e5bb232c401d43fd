"""The parts of an array that is divided among devices."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, final

from corejax.arrays import devices
from corejax.arrays.storage import home_of, is_on_device, live
from corejax.base import dtypes
from corejax.base.avals import ShapedArray

if TYPE_CHECKING:
    from corejax.arrays.array import Array
    from corejax.arrays.devices import Buffer, Device
    from corejax.arrays.shardings import Index, Sharding


@final
class Shard:
    """The part of an array that one device holds.

    >>> from corejax.arrays.array import device_put
    >>> shard = device_put(2.5).addressable_shards[0]
    >>> shard.index, shard.replica_id, shard.data
    ((), 0, Array(2.5, dtype=float64, weak_type=True))
    """

    __slots__ = ("device", "index", "replica_id", "data")
    device: Device
    index: Index
    """A slice for each dimension of the whole array."""
    replica_id: int
    """0 for the first device that holds this part, 1 for the second, and so on."""
    data: Array | None
    """The part, an array on that device; None if that belongs to another process."""

    def __init__(self, device: Device, index: Index, replica_id: int, data: Array | None) -> None:
        self.device, self.index, self.replica_id, self.data = device, index, replica_id, data

    def __repr__(self) -> str:
        return (f"Shard(device={self.device!r}, index={self.index}, replica_id={self.replica_id}, "
                f"data={self.data})")


def shards_of(array: Array, wrap: Callable[[Buffer, ShapedArray], Array], everywhere: bool = False) -> list[Shard]:
    """The parts of an array on the devices of this process, or of all processes, in the order of its sharding.

    `wrap` makes an array of a buffer.
    """
    home = home_of(array)
    sharding: Sharding = home.user_sharding
    whole = array.aval
    held: dict[Any, Array] = {home.device: array} if devices.is_addressable(home.device) else {}
    if is_on_device(array) and sharding.num_devices > 1:
        part = ShapedArray(sharding.shard_shape(whole.shape), whole.dtype, whole.weak_type)
        held = {devices.runtime.home_of(buffer._sharding).device: wrap(buffer, part)
                for buffer in home.shards(live(array))}
    return [Shard(device, index, replica, held.get(device)) for device, index, replica in
            zip(sharding.flat_devices, sharding.indices(whole.shape), sharding.tiling(whole.ndim).replicas, strict=True)
            if everywhere or device in held]


def described(array: Array, wrap: Callable[[Buffer, ShapedArray], Array], weak: str) -> str:
    """An array of which this process has some parts only, as text: what it is, and these parts."""
    aval, sharding = array.aval, array.sharding
    here = {_text_of(shard.index): shard.data for shard in shards_of(array, wrap)}
    parts = "".join([f"\n  [{index}] = {str(data).replace(_LINE, _LINE + '   ')}" for index, data in here.items()])
    return (f"Array(shape={aval.shape}, dtype={dtypes.long_name(aval.dtype)}{weak}, sharding={sharding}, of which this "
            f"process has{parts or ' nothing'})")


#: What separates lines.
_LINE = "\n"


def _text_of(index: Index) -> str:
    return ", ".join([":" if part.start is None else f"{part.start}:{part.stop}" for part in index])
