"""Meshes: devices in a grid whose axes have names."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from contextvars import ContextVar
from enum import Enum
from types import MappingProxyType
from typing import Any, Self, final

import numpy as np

from corejax.arrays import devices as runtimes
from corejax.arrays.devices import Device
from corejax.arrays.interned import Interned
from corejax.arrays.partitions import check_axis_name
from corejax.base.errors import CorejaxNotImplementedError, CorejaxTypeError, CorejaxValueError
from corejax.base.source import here
from corejax.base.tracebacks import public


class AxisType(Enum):
    """Who decides how arrays are divided along an axis of a mesh. `Auto`: the compiler, from what it is told."""

    Auto = "auto"
    Explicit = "explicit"
    Manual = "manual"

    def __repr__(self) -> str:
        return self.name


class AnyMesh(Interned):
    """What meshes with and without devices have in common: axes with names and sizes."""

    __slots__ = ("axis_names", "axis_sizes", "shape", "size")
    axis_names: tuple[Hashable, ...]
    axis_sizes: tuple[int, ...]
    shape: Mapping[Hashable, int]
    """The size of each axis by its name."""
    size: int
    """The number of devices."""

    @property
    def shape_tuple(self) -> tuple[tuple[Hashable, int], ...]:
        return tuple(self.shape.items())

    @property
    def ndim(self) -> int:
        return len(self.axis_names)

    @property
    def empty(self) -> bool:
        """Whether it has no devices."""
        return self.size == 0

    @property
    def axis_types(self) -> tuple[AxisType, ...]:
        return (AxisType.Auto,) * len(self.axis_names)

    def __repr__(self) -> str:
        axes = [f"{name!r}: {size}" for name, size in self.shape.items()]
        return f"{type(self).__name__}({', '.join(axes)})"

    def __corejax_text__(self, text: Callable[[object], str]) -> str:
        return f"<{self!r}>"


@final
@public
class Mesh(AnyMesh):
    """Devices in a grid, each of whose axes has a name.

    `devices` is an array or nested sequence of devices, with as many axes as there are `axis_names`. `make_mesh` is
    the shorter way if their order doesn't matter.

    >>> mesh = Mesh(runtimes.runtime.devices()[:1], "x")
    >>> mesh, mesh.shape["x"], mesh.size
    (Mesh('x': 1), 1, 1)

    Two meshes of the same devices with the same names are the same object. In `with mesh:`, functions that need a
    mesh and get none use this one.
    """

    __slots__ = ("devices", "flat_devices", "is_fully_addressable")
    devices: np.ndarray
    """The devices as an array of objects, which can't be written to."""
    flat_devices: tuple[Device, ...]
    """The devices in the order of this array."""
    is_fully_addressable: bool
    """Whether all devices belong to this process."""

    @public
    def __new__(cls, devices: Any, axis_names: Hashable | Iterable[Hashable],
                axis_types: Sequence[AxisType] | AxisType | None = None) -> Self:
        grid = _grid(devices)
        names = _names(axis_names)
        check_automatic(axis_types)
        if grid.ndim != len(names):
            raise CorejaxValueError("a mesh needs a name for each axis of its devices", where=here(),
                                    got=f"devices of shape {grid.shape}, and {_count(names)}",
                                    wanted=f"{grid.ndim} name{'s' * (grid.ndim != 1)}",
                                    todo="arrange them with numpy.array(devices).reshape(...), or call cj.make_mesh")
        flat = tuple(grid.flat)
        key = flat, grid.shape, names
        known = cls._known.get(key)
        if known is not None:
            return known  # type: ignore[no-any-return]
        _check_devices(flat)
        return cls._one(key, devices=grid, flat_devices=flat, axis_names=names, axis_sizes=grid.shape, size=len(flat),
                        shape=MappingProxyType(dict(zip(names, grid.shape, strict=True))),
                        is_fully_addressable=all([runtimes.is_addressable(device) for device in flat]))

    @property
    def device_ids(self) -> np.ndarray:
        """The number of each device, in an array of the mesh's shape."""
        return np.array([device.id for device in self.flat_devices], int).reshape(self.axis_sizes)

    @property
    def local_devices(self) -> list[Device]:
        """Those devices that belong to this process."""
        return [device for device in self.flat_devices if runtimes.is_addressable(device)]

    @property
    def abstract_mesh(self) -> AbstractMesh:
        """The same axes without devices."""
        return AbstractMesh(self.axis_sizes, self.axis_names)

    def __enter__(self) -> Self:
        _entered.set((*_entered.get(), self))
        return self

    def __exit__(self, *_: object) -> None:
        _entered.set(_entered.get()[:-1])

    def __reduce__(self) -> tuple[object, ...]:
        named = [(device.platform, device.id) for device in self.flat_devices]
        return _restored, (named, self.axis_sizes, self.axis_names)

    def __corejax_key__(self) -> tuple[object, ...]:
        return self.axis_names, self.axis_sizes, self.flat_devices


@final
@public
class AbstractMesh(AnyMesh):
    """The names and sizes of a mesh's axes, without devices.

    >>> AbstractMesh((2, 4), ("x", "y"))
    AbstractMesh('x': 2, 'y': 4)
    """

    __slots__ = ()

    @public
    def __new__(cls, axis_sizes: Sequence[int], axis_names: Hashable | Iterable[Hashable],
                axis_types: Sequence[AxisType] | AxisType | None = None) -> Self:
        sizes, names = _sizes(axis_sizes), _names(axis_names)
        check_automatic(axis_types)
        _check_pairs(sizes, names)
        return cls._one((sizes, names), axis_names=names, axis_sizes=sizes, size=math.prod(sizes),
                        shape=MappingProxyType(dict(zip(names, sizes, strict=True))))

    @property
    def abstract_mesh(self) -> AbstractMesh:
        return self

    @property
    @public
    def flat_devices(self) -> tuple[Device, ...]:
        raise CorejaxValueError("an abstract mesh has no devices", got=repr(self), wanted="a Mesh", where=here(),
                                todo="make one of the same axes: cj.make_mesh(mesh.axis_sizes, mesh.axis_names)")

    @property
    def is_fully_addressable(self) -> bool:
        return all([runtimes.is_addressable(device) for device in self.flat_devices])

    def __reduce__(self) -> tuple[object, ...]:
        return AbstractMesh, (self.axis_sizes, self.axis_names)

    def __corejax_key__(self) -> tuple[object, ...]:
        return self.axis_names, self.axis_sizes


@public
def make_mesh(axis_shapes: Sequence[int], axis_names: Hashable | Iterable[Hashable],
              axis_types: Sequence[AxisType] | AxisType | None = None, *,
              devices: Sequence[Device] | None = None) -> Mesh:
    """A mesh with axes of these sizes and names, of the first of `devices` (default: the default backend's).

    >>> make_mesh((1, 1), ("x", "y"))
    Mesh('x': 1, 'y': 1)

    Axes are automatic: the compiler decides how a result is divided, unless it is told.
    """
    sizes, names = _sizes(axis_shapes), _names(axis_names)
    check_automatic(axis_types)
    _check_pairs(sizes, names)
    there = list(runtimes.runtime.devices() if devices is None else _grid(devices).flat)
    wanted = math.prod(sizes)
    if wanted > len(there):
        more = ("; for more devices of the CPU, set config.num_cpu_devices before the first computation"
                if {device.platform for device in there} <= {"cpu"} else "")
        raise CorejaxValueError(f"a mesh of {_product(sizes)} needs more devices than there are", where=here(),
                                got=f"{len(there)} device{'s' * (len(there) != 1)}", wanted=str(wanted),
                                todo=f"choose sizes whose product is at most {len(there)}{more}")
    return Mesh(np.array(there[:wanted], object).reshape(sizes), names)


# The current one

_entered: ContextVar[tuple[Mesh, ...]] = ContextVar("_entered", default=())


def current_mesh() -> Mesh | None:
    """The mesh of the innermost `with mesh:` around the call."""
    entered = _entered.get()
    return entered[-1] if entered else None


# Checks

def _grid(devices: Any) -> np.ndarray:
    """An array of devices of its own, which can't be written to."""
    try:
        grid = np.array(devices, object)
    except ValueError:  # parts of lengths that NumPy can't make an array of
        grid = np.array([None])
    for device in grid.flat:
        if isinstance(device, (list, tuple)) or (device is None and devices is not None):
            raise CorejaxValueError("the devices of a mesh must form a full grid", got=repr(devices)[:80],
                                    wanted="rows of equal lengths", where=here(),
                                    todo="arrange them with numpy.array(devices).reshape(...)")
        if not (hasattr(device, "id") and hasattr(device, "platform")):
            raise CorejaxTypeError("a mesh is made of devices", got=repr(device)[:80], wanted="devices of the runtime",
                                   where=here(), todo="take them from cj.devices()")
    grid.flags.writeable = False
    return grid


def _names(axis_names: Any) -> tuple[Hashable, ...]:
    if isinstance(axis_names, str):
        return (axis_names,)
    if not isinstance(axis_names, Iterable):
        raise CorejaxTypeError("the axes of a mesh need names", got=repr(axis_names)[:80], where=here(),
                               wanted="a string, or a tuple of strings", todo="write ('x',) for one axis")
    names = tuple(axis_names)
    for position, name in enumerate(names):
        check_axis_name(name, f"axis_names[{position}] of a mesh")
    for position, name in enumerate(names):
        if name in names[:position]:
            raise CorejaxValueError("each axis of a mesh needs a name of its own", got=repr(names), where=here(),
                                    wanted=f"{name!r} once", todo="rename one of the two axes")
    return names


def _sizes(sizes: Any) -> tuple[int, ...]:
    try:
        found = tuple([int(size.__index__()) for size in sizes])
    except (TypeError, AttributeError) as error:
        raise CorejaxTypeError("the sizes of a mesh's axes must be integers", got=repr(sizes)[:80], where=here(),
                               wanted="a sequence of integers", todo="write (8,) for one axis of 8") from error
    for size in found:
        if size < 1:
            raise CorejaxValueError("an axis of a mesh must have at least one device", got=repr(found), where=here(),
                                    wanted="sizes of 1 or more", todo="leave the axis out, or give it size 1")
    return found


def _check_pairs(sizes: tuple[int, ...], names: tuple[Hashable, ...]) -> None:
    if len(sizes) != len(names):
        raise CorejaxValueError("a mesh needs a name for each of its axes", got=f"sizes {sizes}, and {_count(names)}",
                                wanted=f"{len(sizes)} name{'s' * (len(sizes) != 1)}", where=here(),
                                todo="give as many names as sizes")


def check_automatic(axis_types: Any) -> None:
    """Raise for axes of other types than `AxisType.Auto`."""
    types = axis_types if isinstance(axis_types, (tuple, list)) else (axis_types,)
    for kind in types:
        if kind is not None and kind is not AxisType.Auto:
            raise CorejaxNotImplementedError(
                "explicit axes of meshes aren't supported: types don't say how arrays are divided", where=here(),
                got=f"axis_types={axis_types!r}", wanted="AxisType.Auto", todo="leave axis_types out")


def _check_devices(flat: tuple[Device, ...]) -> None:
    if not flat:
        raise CorejaxValueError("a mesh needs at least one device", got="no devices", wanted="some of cj.devices()",
                                where=here(), todo="check how the devices were chosen")
    if len(set(flat)) != len(flat):
        twice = next(device for position, device in enumerate(flat) if device in flat[:position])
        raise CorejaxValueError("a mesh can't have a device twice", got=f"{twice} at {flat.count(twice)} positions",
                                wanted="each device once", where=here(),
                                todo="use fewer devices; for more devices of the CPU, set config.num_cpu_devices")
    platforms = {device.platform for device in flat}
    if len(platforms) > 1:
        raise CorejaxValueError("the devices of a mesh must be of one platform", got=", ".join(sorted(platforms)),
                                wanted="one of them", where=here(), todo="take the devices of cj.devices(platform)")


def _restored(named: list[tuple[str, int]], sizes: tuple[int, ...], names: tuple[Hashable, ...]) -> Mesh:
    """Unpickle a mesh: it has those devices of this process that have the same numbers."""
    there = {(device.platform, device.id): device for device in runtimes.runtime.devices(named[0][0])}
    missing = [f"{platform}:{number}" for platform, number in named if (platform, number) not in there]
    if missing:
        raise CorejaxValueError("a pickled mesh has devices that this process doesn't have", where=here(),
                                got=", ".join(missing), wanted=", ".join([f"{kind}:{i}" for kind, i in there]),
                                todo="unpickle it where there are as many devices; for more devices of the CPU, set "
                                     "config.num_cpu_devices before the first computation")
    return Mesh(np.array([there[each] for each in named], object).reshape(sizes), names)


def _count(names: tuple[Hashable, ...]) -> str:
    return f"{len(names)} name{'s' * (len(names) != 1)}: {', '.join(map(repr, names))}" if names else "no names"


def _product(sizes: tuple[int, ...]) -> str:
    return f"{' x '.join(map(str, sizes))} = {math.prod(sizes)}" if len(sizes) > 1 else str(math.prod(sizes))
