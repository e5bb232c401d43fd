"""Arrays over several devices, made of their parts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from corejax.arrays import devices
from corejax.arrays.array import Array, device_put
from corejax.arrays.shardings import Index, Sharding, canonical_shape
from corejax.arrays.storage import home_of, is_on_device, live
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
    devices hold it. No device, and not the host either, needs room for the whole array.
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
    allowed = sharding.device_set
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
    missing = [device for device in sharding.flat_devices if device not in held]
    if missing:
        raise CorejaxValueError(f"{what}: there must be an array on each device of the sharding", where=here(),
                                got=f"{len(held)} array{'s' * (len(held) != 1)}", wanted=f"{sharding.num_devices}",
                                todo=f"add those on {', '.join(map(str, missing))}")
    return _assembled(what, whole, sharding, [held[device] for device in sharding.flat_devices], dtype,
                      "the array on device")


def _checked(what: str, shape: Sequence[int], sharding: Sharding) -> tuple[int, ...]:
    """The shape as a tuple, if it can be divided by the sharding."""
    if not isinstance(sharding, Sharding):
        raise CorejaxTypeError(f"{what}: expected a sharding", got=kind_of(sharding), where=here(),
                               wanted="a NamedSharding, or a SingleDeviceSharding",
                               todo="write cj.NamedSharding(mesh, cj.P('x'))")
    whole = canonical_shape(shape)
    sharding.shard_shape(whole)
    return whole


def _assembled(what: str, whole: tuple[int, ...], sharding: Sharding, pieces: Sequence[Array], dtype: object,
               source: str) -> Array:
    """The array of these pieces, which are on the devices of the sharding."""
    part = sharding.shard_shape(whole)
    wanted = pieces[0].dtype if dtype is None else dtypes.canonical(dtype)
    for device, piece in zip(sharding.flat_devices, pieces, strict=True):
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
    return "one of: " + ", ".join(map(str, sharding.flat_devices))
