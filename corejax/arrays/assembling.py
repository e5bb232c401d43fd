"""Arrays over several devices, made of their parts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

from corejax.arrays import devices
from corejax.arrays.array import Array, as_array, device_put
from corejax.arrays.devices import Device, is_addressable
from corejax.arrays.shardings import Index, Sharding, canonical_shape
from corejax.arrays.storage import home_of, is_on_device, live, to_numpy
from corejax.base import dtypes
from corejax.base.avals import ShapedArray
from corejax.base.errors import CorejaxTypeError, CorejaxValueError, kind_of
from corejax.base.source import here
from corejax.base.tracebacks import calls_users, check_call, public


@public
@calls_users
def make_array_from_callback(shape: Sequence[int], sharding: Sharding, data_callback: Callable[[Index], Any],
                             dtype: object = None) -> Array:
    """An array whose parts are what a function returns, which is called with the index of each.

    >>> import numpy as np
    >>> from corejax.arrays.shardings import SingleDeviceSharding
    >>> whole = np.arange(6.0).reshape(2, 3)
    >>> make_array_from_callback(whole.shape, SingleDeviceSharding(devices.runtime.devices()[0]), lambda i: whole[i])
    Array([[0., 1., 2.],
           [3., 4., 5.]], dtype=float64)

    An index is a tuple of slices, one for each dimension. The function is called once for each part, even if several
    devices hold it. No device, and not the host either, needs room for the whole array. Each of several processes makes
    the parts of its own devices; one without a device of the sharding must say the `dtype`.
    """
    whole = _checked("make_array_from_callback", shape, sharding)
    if not callable(data_callback):
        raise CorejaxTypeError("make_array_from_callback: expected a function", got=kind_of(data_callback),
                               wanted="a function that returns the part at an index", where=here(),
                               todo="pass lambda index: x[index] for an array x that has all elements")
    made: dict[tuple[int, ...], Array] = {}
    pieces = []
    for device, index, position in zip(sharding.flat_devices, sharding.indices(whole), sharding.tiling(
            len(whole)).positions, strict=True):
        if not is_addressable(device):
            continue
        value: Any = made.get(position)
        if value is None:
            try:
                value = data_callback(index)
            except TypeError as error:
                check_call(error, "make_array_from_callback", data_callback)
                raise
        pieces.append(device_put(value, device))
        made.setdefault(position, pieces[-1])
    return _assembled("make_array_from_callback", whole, sharding, pieces, dtype, "the function's result for device")


@public
def make_array_from_single_device_arrays(shape: Sequence[int], sharding: Sharding, arrays: Sequence[Array], *,
                                         dtype: object = None) -> Array:
    """An array whose parts are these arrays, one on each device of the sharding, in any order. Nothing is copied.

    Each of several processes has those on its own devices.

    >>> import numpy as np
    >>> from corejax.arrays.shardings import SingleDeviceSharding
    >>> device = devices.runtime.devices()[0]
    >>> make_array_from_single_device_arrays((3,), SingleDeviceSharding(device), [device_put(np.ones(3), device)])
    Array([1., 1., 1.], dtype=float64)
    """
    what = "make_array_from_single_device_arrays"
    whole = _checked(what, shape, sharding)
    if not isinstance(arrays, Sequence):
        raise CorejaxTypeError(f"{what}: expected a list of arrays", got=kind_of(arrays), where=here(),
                               wanted="an Array for each device, in a list or tuple",
                               todo="cj.device_put(x, sharding) divides one array by itself")
    held: dict[Any, Array] = {}
    allowed = sharding.addressable_devices
    for position, array in enumerate(arrays):
        if type(array) is not Array:
            raise CorejaxTypeError(f"{what}: arrays[{position}] is not on a device", got=kind_of(array), where=here(),
                                   wanted="an Array on one device",
                                   todo="put it there first: cj.device_put(x, device)")
        home = home_of(array)
        device, divided = home.device, is_on_device(array) and len(home.shards(live(array))) != 1
        if divided or device not in allowed:
            raise CorejaxValueError(f"{what}: arrays[{position}] must be on one device of the sharding", where=here(),
                                    got=str(array.sharding), wanted=_named(sharding),
                                    todo="pass its parts: [s.data for s in x.addressable_shards]" if divided else
                                    "put it there: cj.device_put(x, device)")
        if device in held:
            raise CorejaxValueError(f"{what}: two of the arrays are on one device", got=f"two on {device}",
                                    wanted="an array on each device of the sharding", where=here(),
                                    todo="put one of them on another device: cj.device_put(x, device)")
        held[device] = array if is_on_device(array) else device_put(array, device)
    own = _own(sharding)
    missing = [device for device in own if device not in held]
    if missing:
        raise CorejaxValueError(f"{what}: there must be an array on each device of the sharding", where=here(),
                                got=f"{len(held)} array{'s' * (len(held) != 1)}", wanted=f"{len(own)}",
                                todo=f"add those on {', '.join(map(str, missing))}")
    return _assembled(what, whole, sharding, [held[device] for device in own], dtype, "the array on device")


@public
def make_array_from_process_local_data(sharding: Sharding, local_data: Any, global_shape: Sequence[int] | None = None
                                       ) -> Array:
    """An array over several processes of what each of them has: the parts of its own devices, put together.

    >>> import numpy as np
    >>> from corejax.arrays.shardings import SingleDeviceSharding
    >>> make_array_from_process_local_data(SingleDeviceSharding(devices.runtime.devices()[0]), np.ones(3))
    Array([1., 1., 1.], dtype=float64)

    A dimension of `local_data` has either what this process's devices have of it, in the sharding's order, or all of
    it. Without `global_shape`, it is the first, and each process must have an equal share of the dimension.
    """
    what = "make_array_from_process_local_data"
    data = as_array(local_data, copy=False)
    if not isinstance(sharding, Sharding):
        raise _no_sharding(what, sharding)
    counts, positions, _ = sharding.tiling(data.ndim)
    own = [(device, position) for device, position in zip(sharding.flat_devices, positions, strict=True)
           if is_addressable(device)]
    if not own:
        raise CorejaxValueError(f"{what}: this process has no device of the sharding", got=str(sharding), where=here(),
                                wanted="a sharding with devices of each process that calls it",
                                todo="call it only in processes whose devices the mesh has")
    along = [sorted({position[i] for _, position in own}) for i in range(data.ndim)]
    if len({position for _, position in own}) != prod(map(len, along)):
        raise CorejaxValueError(f"{what}: the parts of this process's devices aren't one block of the array",
                                where=here(),
                                got=f"{sharding} with the devices {', '.join([str(device) for device, _ in own])}",
                                wanted="a mesh in which each process has a block of devices",
                                todo="make it of one part after the other, by make_array_from_callback")
    whole = _whole_shape(what, data, counts, along, global_shape)
    part = sharding.shard_shape(whole)
    for i, (size, full) in enumerate(zip(data.shape, whole, strict=True)):
        if size not in (full, part[i] * len(along[i])):
            raise CorejaxValueError(f"{what}: dimension {i} of the local data has the wrong size", where=here(),
                                    got=f"size {size}, in shape {data.shape}",
                                    wanted=f"{part[i] * len(along[i])}, this process's share of {full}"
                                    + (f"; or {full}, all of it" if part[i] * len(along[i]) != full else ""),
                                    todo="pass what belongs on this process's devices")
    pieces = []
    for device, position in own:
        starts = [n * (at if size == full else there.index(at)) for at, n, size, full, there in
                  zip(position, part, data.shape, whole, along, strict=True)]
        index = tuple([slice(start, start + n) for start, n in zip(starts, part, strict=True)])
        pieces.append(device_put(to_numpy(data)[index], device))
    return _assembled(what, whole, sharding, pieces, data.dtype, "the part for device")


def _whole_shape(what: str, data: Array, counts: Sequence[int], along: Sequence[Sequence[int]],
                 given: Sequence[int] | None) -> tuple[int, ...]:
    """The shape of the whole array: as given, or as follows from this process's share of each dimension."""
    if given is not None:
        whole = canonical_shape(given)
        if len(whole) != data.ndim:
            raise CorejaxValueError(f"{what}: the local data has another rank than the whole", where=here(),
                                    got=f"shape {data.shape}, and global_shape {whole}", wanted="the same rank",
                                    todo="reshape the data")
        return whole
    for i, (size, count, there) in enumerate(zip(data.shape, counts, along, strict=True)):
        if size % len(there) or count % len(there):
            raise CorejaxValueError(f"{what}: the size of dimension {i} of the whole array isn't known", where=here(),
                                    wanted="an equal share in each process", todo="pass global_shape",
                                    got=f"size {size} here, and this process has {len(there)} of {count} parts")
    return tuple([size // len(there) * count for size, count, there in zip(data.shape, counts, along, strict=True)])


def _checked(what: str, shape: Sequence[int], sharding: Sharding) -> tuple[int, ...]:
    """The shape as a tuple, if it can be divided by the sharding."""
    if not isinstance(sharding, Sharding):
        raise _no_sharding(what, sharding)
    whole = canonical_shape(shape)
    sharding.shard_shape(whole)
    return whole


def _no_sharding(what: str, sharding: object) -> CorejaxTypeError:
    return CorejaxTypeError(f"{what}: expected a sharding", got=kind_of(sharding), where=here(),
                            wanted="a NamedSharding, or a SingleDeviceSharding",
                            todo="write cj.NamedSharding(mesh, cj.P('x'))")


def _own(sharding: Sharding) -> list[Device]:
    """The devices of a sharding that belong to this process, in its order."""
    return [device for device in sharding.flat_devices if is_addressable(device)]


def _assembled(what: str, whole: tuple[int, ...], sharding: Sharding, pieces: Sequence[Array], dtype: object,
               source: str) -> Array:
    """The array of these pieces, which are on this process's devices of the sharding."""
    part = sharding.shard_shape(whole)
    if dtype is None and not pieces:
        raise CorejaxTypeError(f"{what}: the dtype isn't known in a process without parts", got="dtype=None",
                               wanted="the dtype of the other processes' parts", where=here(), todo="pass dtype=...")
    wanted = pieces[0].dtype if dtype is None else dtypes.canonical(dtype)
    for device, piece in zip(_own(sharding), pieces, strict=True):
        if piece.shape != part:
            raise CorejaxValueError(f"{what}: {source} {device} has the wrong shape", got=f"shape {piece.shape}",
                                    wanted=f"shape {part}, its part of {whole} by {sharding}", where=here(),
                                    todo="check how the parts were made; the index says which one it is")
        if piece.dtype != wanted or not is_on_device(piece):
            raise CorejaxTypeError(f"{what}: {source} {device} has the wrong dtype", got=dtypes.long_name(piece.dtype),
                                   wanted=dtypes.long_name(wanted) + (", as on the first device" if dtype is None
                                                                      else ""),
                                   where=here(), todo="convert the parts to one dtype: x.astype(...)")
    aval = ShapedArray(whole, wanted)
    home = devices.runtime.home_for(sharding, aval.stored.ndim)
    return Array.from_device(home.assemble(aval.stored, [live(piece) for piece in pieces]), aval)


def _named(sharding: Sharding) -> str:
    return "one of: " + ", ".join(map(str, _own(sharding)))
