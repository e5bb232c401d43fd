"""The runtime's clients. The default backend's is made when the first array or program goes to a device, those of other
backends when one of their devices is asked for.

A client doesn't survive `fork`: its threads are gone in the child, where using it would hang. So the child raises an
error that says so.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from corejax.arrays.storage import Host
from corejax.base import _jaxlib, elements
from corejax.base.avals import ShapedArray
from corejax.base.config import AUTO, config
from corejax.base.errors import CorejaxRuntimeError, CorejaxValueError
from corejax.base.source import here
from corejax.xla.runtime import backends
from corejax.xla.runtime.failures import runtime_error as runtime_error

if TYPE_CHECKING:
    from corejax.arrays.devices import Device


class Place:
    """A device, with what it takes to put arrays there: its sharding and two ways to transfer them.

    Programs for it are lowered for the platform `compiler`, and compiled with `options`.
    """

    __slots__ = ("client", "device", "sharding", "backend", "platform", "compiler", "options", "put", "copying",
                 "sharing", "_handlers")

    def __init__(self, client: Any, device: Device, backend: backends.Offer) -> None:
        self.client = client
        self.device = device
        self.backend, self.compiler, self.options = backend.name, backend.platform, backend.options
        self.platform: str = device.platform
        self.sharding = _jaxlib.single_device_sharding(device)
        self.put = _jaxlib.batched_device_put
        self.copying = _jaxlib.put_arguments(device, self.sharding, shared=False)
        self.sharing = _jaxlib.put_arguments(device, self.sharding, shared=True)
        self._handlers: weakref.WeakKeyDictionary[Any, Any] = weakref.WeakKeyDictionary()

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

    def handler(self, aval: ShapedArray) -> Any:
        """The function that turns a result of this type into an array."""
        aval = aval.stored
        found = self._handlers.get(aval)
        if found is None:
            found = self._handlers[aval] = _jaxlib.result_handler(_PlainAval(aval), self.sharding)
        return found


class _PlainAval:
    """The part of a type that the runtime needs, without a reference to the interned aval."""

    __slots__ = ("shape", "dtype", "weak_type")

    def __init__(self, aval: ShapedArray) -> None:
        self.shape, self.dtype, self.weak_type = aval.shape, aval.dtype, False


class _State:
    """The places of all started backends: none before first use, and none in a forked child."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        #: All of them, the default backend's first.
        self.places: list[Place] | None = None
        self.by_device: dict[Any, Place] = {}
        self.by_backend: dict[str, list[Place]] = {}
        self.starting = False
        self.forked = False
        self.on_fork: weakref.WeakKeyDictionary[Any, Callable[[Callable[..., Any]], None]] = (
            weakref.WeakKeyDictionary())
        self.on_more: list[Callable[[], None]] = []


_state = _State()


def _after_fork() -> None:
    if _state.places is None:
        return
    _state.lock = threading.RLock()
    _state.forked = True
    for refuse in list(_state.on_fork.values()):
        refuse(fork_error)


def fork_error(*_: Any, **__: Any) -> Any:
    """Raise in a child process whose parent had started the runtime."""
    raise CorejaxRuntimeError(
        "the runtime was started before this process was forked, and can't be used in the child", where=here(),
        got=f"process {os.getpid()}", wanted="device arrays and compiled functions in the parent only",
        todo="start processes with multiprocessing's 'spawn' or 'forkserver' method, or fork before first use")


def refuse_after_fork(function: Callable[..., Any], refuse: Callable[[Callable[..., Any]], None]) -> None:
    """Call `refuse(fork_error)` in forked children if `function` is still alive, so its hot path needs no check."""
    _state.on_fork[function] = refuse


def check_not_forked() -> None:
    """Raise in a forked child."""
    if _state.forked:
        fork_error()


# Starting

def places() -> list[Place]:
    """The places of all started backends, the default one's first. The first call starts the default backend."""
    if _state.forked:
        fork_error()
    if _state.places is None:
        _start(config.backend)
    return _state.places  # type: ignore[return-value]


def _start(wanted: str) -> list[Place]:
    """The places of a backend, which is started if necessary. The first one started is the default."""
    # Packs are imported without the lock, since a module being imported may ask for a device.
    found = backends.candidates(wanted)
    with _state.lock:
        if _state.starting:
            raise CorejaxRuntimeError("a backend asks for devices while it makes its client", where=here(), got=wanted,
                                      wanted="a client that needs no other", todo="make arrays after it is made")
        if _state.places is not None and (wanted in _state.by_backend or wanted == AUTO):
            return _state.by_backend.get(wanted, _state.places)
        _state.starting = True
        try:
            chosen, client = backends.start(found, wanted)
            made = [Place(client, device, chosen) for device in client.local_devices()]
        finally:
            _state.starting = False
        return _add(chosen.name, made)


def _add(backend: str, made: list[Place]) -> list[Place]:
    _state.by_backend[backend] = made
    _state.by_device.update({place.device: place for place in made})
    if _state.places is None:
        os.register_at_fork(after_in_child=_after_fork)
        _state.places = made
    else:
        _state.places = [*_state.places, *made]
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
    if config.num_cpu_devices is not None and cpus is not None and config.num_cpu_devices != len(cpus):
        raise _too_late("num_cpu_devices", config.num_cpu_devices, str(len(cpus)))


def _too_late(setting: str, got: object, started: str) -> CorejaxRuntimeError:
    return CorejaxRuntimeError(
        f"config.{setting} can't change once the runtime is started", got=repr(got), where=here(),
        wanted=f"{started}, as it was started", todo="set it before the first array goes to a device, or by "
        f"COREJAX_{setting.upper()}; cj.devices(name) gives the devices of another backend")


# Devices

def only_one_device() -> bool:
    """Whether there is only one device, or no backend has been started yet."""
    return _state.places is None or len(_state.places) == 1


def place_of(device: object = None) -> Place:
    """The place of a device (one of `devices()`, the name of a backend or platform, or None for the default)."""
    known = places()
    if device is None or device is known[0].device:
        return known[0]
    if isinstance(device, str):
        found = _named(device)
        if found:
            return found[0]
    elif isinstance(device, _jaxlib.Device) and device in _state.by_device:
        return _state.by_device[device]
    raise CorejaxValueError(f"{device!r:.80} is not a device of this process", where=here(), got=repr(device)[:80],
                            wanted=", ".join(str(place.device) for place in known), todo="take one of cj.devices()")


def place_with(sharding: object) -> Place:
    """The place of arrays with this sharding."""
    # Not looked up by the sharding, since its hash changes as soon as somebody imports jax.
    return _state.by_device[_jaxlib.sharding_device(sharding)]


def _named(name: str) -> list[Place]:
    """The places of a backend of this name, started if necessary, or else those of this platform among the started."""
    known = places()
    if name in _state.by_backend:
        return _state.by_backend[name]
    if name in backends.known():
        return _start(name)
    return [place for place in known if name in (place.compiler, place.platform)]


def devices(platform: str | None = None) -> list[Device]:
    """The devices of the default backend; or those of a backend or platform by its name."""
    known = places()
    if platform is None:
        check_settings()
        return [place.device for place in known if place.backend == known[0].backend]
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
