"""Where a computation happens: on the device, or the devices, that its operands are on, except for those that may move.

What is in host memory moves, and what is on the default device without having been put there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from corejax.arrays.array import Array
from corejax.arrays.meshes import Mesh
from corejax.arrays.shardings import NamedSharding
from corejax.arrays.storage import Host, buffer_of, from_buffer, host_in_any_order, host_of, to_numpy
from corejax.base import _jaxlib
from corejax.base.avals import ShapedArray
from corejax.base.caches import WeakCache
from corejax.base.errors import CorejaxValueError
from corejax.base.source import here
from corejax.kernel.jaxpr import Jaxpr
from corejax.xla.runtime import client
from corejax.xla.runtime.places import Group, Home, Place, Request, Spread

#: For each value, the identity of the runtime's object that says where it is; None in host memory.
Whereabouts: TypeAlias = tuple[int | None, ...]


def in_memory(x: Array) -> tuple[Any, Place | None] | None:
    """The elements of an array, read-only, if they are in the processor's memory now; and the array's place.

    The elements are an ndarray or a scalar. Returns None for an array that isn't computed yet, that is on a device
    with memory of its own, or that is divided among devices. The place of an array in host memory is None.
    """
    try:
        return host_of(x), None
    except AttributeError:
        host = host_in_any_order(x)
    if host is not None:
        return host, None
    buffer = x._buffer
    client.check_not_forked()
    if buffer.is_deleted() or buffer.platform() != "cpu" or not buffer.is_ready():
        return None
    home = client.home_of(buffer._sharding)
    if type(home) is not Place:
        return None
    try:
        return from_buffer(buffer, x.aval), home
    except _jaxlib.RuntimeFailure:  # reading it in any other way raises the failure
        return None


def array_at(place: Place | None, host: Host, aval: ShapedArray) -> Array:
    """An array of these elements, which nobody else may write to, at this place."""
    if place is None:
        return Array.from_view(host, aval)
    return Array.from_device(place.put_shared(aval, np.asarray(host)), aval)


def common_home(values: Iterable[object], closed_over: Iterable[object] = ()) -> Place | Group | None:
    """Where a computation with these values happens; None if all of them may move, so that it is the default device.

    Raises if some stay on different devices.
    """
    found, first = _home(values, None, None, "arguments live on different devices")
    return _home(closed_over, found, first, "an argument, and a value that the function closes over, live on "
                 "different devices" if first is not None else
                 "values that the function closes over live on different devices")[0]


def home_at(x: object) -> Home | None:
    """Where an array on a device is; None for anything else."""
    if type(x) is not Array:
        return None
    try:
        return client.home_of(x._buffer._sharding)
    except AttributeError:  # it is in host memory, or deleted
        return None


def whereabouts(values: Sequence[Any]) -> Whereabouts:
    """Where values are, found as fast as possible: a key that is equal for those at equal homes."""
    try:
        return tuple([id(buffer_of(x)._sharding) for x in values])
    except (AttributeError, TypeError):  # some aren't on devices
        return marks([home_at(x) for x in values])


def marks(homes: Iterable[Home | None]) -> Whereabouts:
    """What `whereabouts` says of values at these homes."""
    return tuple([None if home is None else id(home.sharding) for home in homes])


def platform_of(values: Iterable[object]) -> str:
    """The platform that a program of these operands is lowered for: that of their device, or else the default one.

    >>> platform_of([1.0])
    'cpu'
    """
    home = common_home(values)
    return client.default_platform() if home is None else home.compiler


def moved(values: Sequence[Any], to: Place) -> Sequence[Any]:
    """The same values, those on other devices moved to this one. They are such that may move."""
    if to.device is client.place_of().device:
        return values
    homes = [home_at(x) for x in values]
    return [x if home is None or home.device is to.device
            else Array.from_device(to.put_copy(x.aval, to_numpy(x)), x.aval)
            for x, home in zip(values, homes, strict=True)]


# Several devices

def _mesh_in(jaxpr: Jaxpr, _: object = None) -> Mesh | None:
    """The mesh on which a program must run: the first one that the params of its equations name, if any."""
    for eqn in jaxpr.eqns:
        found = mesh_of(eqn.params)
        if found is not None:
            return found
    return None


mesh_in = WeakCache(_mesh_in)


def mesh_of(params: Mapping[str, Any]) -> Mesh | None:
    """The same for the params of a single equation."""
    jaxprs = []
    for value in params.values():
        for each in value if type(value) is tuple else (value,):
            found = each.mesh if type(each) is NamedSharding else each
            if type(found) is Mesh:
                return found
            if type(each) is Jaxpr:
                jaxprs.append(each)
    return next((mesh for jaxpr in jaxprs if (mesh := mesh_in(jaxpr)) is not None), None)


def request_for(home: Place | Group | None, values: Sequence[object], avals: Sequence[ShapedArray], mesh: Mesh | None,
                arguments: Sequence[NamedSharding | None], results: Sequence[NamedSharding | None],
                closed_over: Sequence[object] = ()) -> Request:
    """How to divide a program with these arguments, which are at `home`, so that it can use a mesh.

    `arguments` and `results` say what the user wants.
    """
    homes = [home_at(x) for x in values]
    named: list[Any] = [home.user_sharding.mesh for home in (*homes, *map(home_at, closed_over))
                        if type(home) is Spread]
    named += [sharding.mesh for sharding in (*arguments, *results) if sharding is not None]
    mesh = mesh or named[0]
    group = home if type(home) is Group else client.group_of(mesh.flat_devices)
    _check_same(home, group, mesh)
    for other in named:
        if other.flat_devices != tuple(group.devices):
            raise _other_devices(f"{other} of {_shown(client.group_of(other.flat_devices))}", group)
    spreads = []
    for aval, there, wanted in zip(avals, homes, arguments, strict=True):
        spread = there if type(there) is Spread else None
        if wanted is not None:
            wanted.shard_shape(aval.shape)  # raises if it doesn't fit
            if there is None and group.meets and not wanted.is_fully_replicated:
                raise _not_made_of_parts(aval, wanted)
            asked = client.spread_of(wanted, aval.stored.ndim)
            if spread is not None and not spread.user_sharding.is_equivalent_to(wanted, aval.ndim):
                raise CorejaxValueError("jit: an argument is divided in another way than in_shardings says",
                                        got=f"{aval} with {spread.user_sharding}", wanted=wanted, where=here(),
                                        todo="move it with cj.device_put(x, sharding), or leave in_shardings out: "
                                             "computation follows the arguments")
            spread = spread or asked
        spreads.append(spread)
    return Request(group, mesh, tuple(spreads), tuple(results))


def _not_made_of_parts(aval: ShapedArray, wanted: NamedSharding) -> CorejaxValueError:
    return CorejaxValueError(
        "jit: an argument of one process can't be divided among several: each would use its own elements",
        got=f"{aval} in host memory, and {wanted} in in_shardings", where=here(),
        wanted="an array over all processes", todo="make it with cj.make_array_from_process_local_data(sharding, x) of "
        "what each process has, or with cj.device_put(x, sharding) of what is the same in all")


def _check_same(home: Place | Group | None, group: Group, mesh: Mesh) -> None:
    if home is not None and list(home.devices) != list(group.devices):
        raise _other_devices(_shown(home), group)


def _other_devices(got: str, group: Group) -> CorejaxValueError:
    return CorejaxValueError("a computation can't use two different sets of devices", got=got, where=here(),
                             wanted=f"{_shown(group)}, in the same order",
                             todo="move the arguments with cj.device_put(x, sharding), or make one mesh")


def _home(values: Iterable[Any], found: Place | Group | None, first: Any,
          problem: str) -> tuple[Place | Group | None, Any]:
    for x in values:
        home = home_at(x)
        if home is None or not home.fixed:
            continue
        own: Place | Group = home.group if type(home) is Spread else home
        if found is None:
            found, first = own, x
        elif own is not found and list(own.devices) != list(found.devices):
            order = " in the same order" if set(own.devices) == set(found.devices) else ""
            raise CorejaxValueError(problem, where=here(), wanted=f"the same devices{order}, or values in host memory",
                                    got=f"{first.aval} on {_shown(found)}, {x.aval} on {_shown(own)}",
                                    todo="move them with cj.device_put(x, device), or to one sharding")
        elif type(own) is Group:
            found = own
    return found, first


def _shown(home: Place | Group) -> str:
    devices = list(home.devices)
    return str(devices[0]) if len(devices) == 1 else f"{len(devices)} devices, from {devices[0]} to {devices[-1]}"
