"""The runtime's clients. The default backend's is made when the first array or program goes to a device, those of other
backends when one of their devices is asked for.

A client doesn't survive `fork`: its threads are gone in the child, where using it would hang. So the child raises an
error that says so.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable, Sequence
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from corejax.arrays.shardings import NamedSharding, SingleDeviceSharding
from corejax.arrays.storage import to_numpy
from corejax.base import _jaxlib, ending
from corejax.base.config import AUTO, config
from corejax.base.errors import CorejaxRuntimeError, CorejaxValueError
from corejax.base.source import here
from corejax.xla.runtime import backends, peers
from corejax.xla.runtime.failures import runtime_error as runtime_error
from corejax.xla.runtime.places import Group, Home, Place, Spread

if TYPE_CHECKING:
    from corejax.arrays.devices import Device


class _State:
    """The places of all started backends: none before first use, and none in a forked child.

    Places of other processes are found by their devices and backends only.
    """

    def __init__(self) -> None:
        self.lock = threading.RLock()
        #: Those of this process, the default backend's first.
        self.places: list[Place] | None = None
        self.by_device: dict[Any, Place] = {}
        #: By the runtime's sharding objects, which are never freed: their hash changes as soon as somebody imports jax.
        self.by_sharding: dict[int, Home] = {}
        self.groups: dict[tuple[Any, ...], Group] = {}
        self.by_backend: dict[str, list[Place]] = {}
        self.starting = False
        self.forked = False
        #: By their owners: what exchanges functions that start programs; and what is to be done in a forked child.
        self.exchanges: weakref.WeakKeyDictionary[Any, Callable[[ending.By], None]] = weakref.WeakKeyDictionary()
        self.on_fork: list[Callable[[], None]] = []
        self.on_more: list[Callable[[], None]] = []


_state = _State()


def _after_fork() -> None:
    if _state.places is None:
        return
    _state.lock = threading.RLock()
    _state.forked = True
    for change in list(_state.exchanges.values()):
        change(lambda _: fork_error)
    for forget in _state.on_fork:
        forget()


def fork_error(*_: Any, **__: Any) -> Any:
    """Raise in a child process whose parent had started the runtime."""
    raise CorejaxRuntimeError(
        "the runtime was started before this process was forked, and can't be used in the child", where=here(),
        got=f"process {os.getpid()}", wanted="device arrays and compiled functions in the parent only",
        todo="start processes with multiprocessing's 'spawn' or 'forkserver' method, or fork before first use")


def exchangeable(owner: object, change: Callable[[ending.By], None]) -> None:
    """Call `change(by)` to exchange a function by another one while its owner is alive, in forked children and when the
    interpreter ends: so the hot path needs no check.
    """
    _state.exchanges[owner] = change
    ending.exchange_now(change)


def after_fork(forget: Callable[[], None]) -> Callable[[], None]:
    """Call `forget` in forked children."""
    _state.on_fork.append(forget)
    return forget


def _exchange(by: ending.By) -> None:
    """Exchange whatever starts programs or puts arrays somewhere."""
    for change in list(_state.exchanges.values()):
        change(by)
    for home in list(_state.by_sharding.values()):
        home.put = by(home.put)


def check_not_forked() -> None:
    """Raise in a forked child."""
    if _state.forked:
        fork_error()


# Starting

def places() -> list[Place]:
    """This process's places of all started backends, the default's first. The first call starts the default backend."""
    if _state.forked:
        fork_error()
    if _state.places is None:
        _start(config.backend)
    return _state.places  # type: ignore[return-value]


def _start(wanted: str) -> list[Place]:
    """The places of a backend in all processes; it is started if necessary. The first one started is the default."""
    # Packs are imported without the lock, since a module being imported may ask for a device.
    found = backends.candidates(wanted)
    with _state.lock:
        if _state.starting:
            raise CorejaxRuntimeError("a backend asks for devices while it makes its client", where=here(), got=wanted,
                                      wanted="a client that needs no other", todo="make arrays after it is made")
        if _state.places is not None and (wanted in _state.by_backend or wanted == AUTO):
            return _state.by_backend.get(wanted) or _state.by_backend[_state.places[0].backend]
        _state.starting = True
        try:
            peers.starting()
            chosen, client = backends.start(found, wanted)
            made = [_both_places(client, device, chosen) for device in client.devices()]
        finally:
            _state.starting = False
        return _add(chosen.name, made)


def _both_places(client: Any, device: Device, chosen: backends.Offer) -> Place:
    """The place of a device for arrays that may move; its twin is that for arrays that may not."""
    place, twin = Place(client, device, chosen), Place(client, device, chosen, fixed=True)
    place.twin, twin.twin = twin, place
    return place


def _add(backend: str, made: list[Place]) -> list[Place]:
    _state.by_backend[backend] = made
    _state.by_device.update({place.device: place for place in made})
    for place in made:
        _state.by_sharding[id(place.sharding)] = place
        _state.by_sharding[id(place.twin.sharding)] = place.twin
    own = [place for place in made if place.is_addressable]
    if _state.places is None:
        os.register_at_fork(after_in_child=_after_fork)
        ending.exchange(_exchange)
        _state.places = own
    else:
        _state.places = [*_state.places, *own]
        for forget in _state.on_more:
            forget()
    return made


def when_there_are_more(forget: Callable[[], None]) -> Callable[[], None]:
    """Call `forget` when another backend is started: what was cached for "all devices" is out of date then."""
    _state.on_more.append(forget)
    return forget


def check_settings() -> None:
    """Raise if the settings have changed since the runtime was started: it can't be started again."""
    if _state.places is None:
        return
    started, cpus = _state.places[0].backend, _state.by_backend.get(backends.ALWAYS.name)
    if config.backend not in (AUTO, started):
        raise _too_late("backend", config.backend, repr(started))
    count = None if cpus is None else sum([place.is_addressable for place in cpus])
    if config.num_cpu_devices is not None and count is not None and config.num_cpu_devices != count:
        raise _too_late("num_cpu_devices", config.num_cpu_devices, str(count))


def _too_late(setting: str, got: object, started: str) -> CorejaxRuntimeError:
    return CorejaxRuntimeError(
        f"config.{setting} can't change once the runtime is started", got=repr(got), where=here(),
        wanted=f"{started}, as it was started", todo="set it before the first array goes to a device, or by "
        f"COREJAX_{setting.upper()}; cj.devices(name) gives the devices of another backend")


# Other processes

def check_equal(what: str, array: Any, devices: Sequence[Device]) -> None:
    """Raise unless the processes of these devices, which all must call it, have the same array. Others may call it."""
    group = group_of(devices)
    if group.meets:
        value = sha256(f"{array.aval} ".encode() + to_numpy(array).tobytes()).hexdigest()
        peers.check_equal(what, f"{array.aval}, sha256 {value[:16]}", group.processes)


# Devices

def only_one_device() -> bool:
    """Whether there is only one device, or no backend has been started yet."""
    return _state.places is None or len(_state.by_device) == 1


def place_of(device: object = None) -> Place:
    """The place of a device of this process, or None for the default."""
    if device is None:
        return places()[0]
    found = _place_anywhere(device)
    if not found.is_addressable:
        raise CorejaxValueError(f"{device} belongs to another process", where=here(),
                                got=f"a device of process {found.device.process_index}",
                                wanted=f"one of process {places()[0].device.process_index}: cj.local_devices()",
                                todo="take one of cj.local_devices(); or divide the array among all by a sharding")
    return found


def _place_anywhere(device: object) -> Place:
    """The place of one of `devices()`."""
    known = places()
    if device is known[0].device:
        return known[0]
    if isinstance(device, _jaxlib.Device) and device in _state.by_device:
        return _state.by_device[device]
    named = isinstance(device, str) and (device in backends.known() or _named(device))
    raise CorejaxValueError(f"{device!r:.80} is not a device of this process", where=here(), got=repr(device)[:80],
                            wanted=", ".join(str(place.device) for place in known),
                            todo=f"a name is not a device: pass cj.devices({device!r})[0]" if named
                                 else "take one of cj.devices()")


def home_of(sharding: Any) -> Home:
    """Where the buffers with this sharding are."""
    found = _state.by_sharding.get(id(sharding))
    if found is not None and found.sharding is sharding:
        return found
    return _state.by_device[_jaxlib.sharding_devices(sharding)[0]].twin  # the runtime's own, of a part of a buffer


def home_for(target: object, ndim: int) -> Home:
    """Where to put an array with this many axes: for a sharding, a device, or None for the default.

    What a user has put somewhere stays there, unless it is the default.
    """
    if target is None:
        return place_of()
    if isinstance(target, NamedSharding):
        return spread_of(target, ndim)
    if isinstance(target, SingleDeviceSharding):
        target = target.flat_devices[0]
    return place_of(target).twin


def group_of(devices: Sequence[Device]) -> Group:
    """The group of these devices in this order."""
    key = tuple(devices)
    found = _state.groups.get(key)
    if found is None:
        found = _state.groups.setdefault(key, Group([_place_anywhere(device) for device in key]))
    return found


def spread_of(sharding: NamedSharding, ndim: int) -> Spread:
    """Where arrays with this many axes and this sharding are."""
    return registered(group_of(sharding.flat_devices).spread(sharding, ndim))


def registered(spread: Spread) -> Spread:
    """The same, after making it known, so that its arrays can be found to be there."""
    _state.by_sharding.setdefault(id(spread.sharding), spread)
    return spread


def _named(name: str) -> list[Place]:
    """The places of a backend of this name, started if necessary, or else those of this platform among the started."""
    places()
    if name in _state.by_backend:
        return _state.by_backend[name]
    if name in backends.known():
        return _start(name)
    return [place for place in _state.by_device.values() if name in (place.compiler, place.platform)]


def devices(platform: str | None = None) -> list[Device]:
    """The devices of the default backend, in all processes; or those of a backend or platform by its name."""
    known = places()
    if platform is None:
        check_settings()
        return [place.device for place in _state.by_backend[known[0].backend]]
    found = _named(platform) if isinstance(platform, str) else []
    if not found:
        raise CorejaxValueError(f"there is no device of platform {platform!r:.80}", where=here(), got=platform,
                                wanted=", ".join(sorted({place.platform for place in known})),
                                todo="take one of cj.devices(), or install the runtime for that platform")
    return [place.device for place in found]


def default_platform() -> str:
    """The platform that programs are lowered for, without starting the runtime if possible."""
    if _state.places is None:
        best = next(backends.usable(backends.candidates(config.backend), config.backend), None)
        if best is not None and best.backend is backends.ALWAYS:
            return best.platform
    return places()[0].compiler
