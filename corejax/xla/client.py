"""The runtime's client: one for the process, made when the first array or program goes to a device.

A client doesn't survive `fork`: its threads are gone in the child, and using it there would wait for ever. So the
child refuses it by name.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable
from typing import Any

from corejax import _jaxlib
from corejax.errors import CorejaxRuntimeError, CorejaxValueError
from corejax.source import here


class Place:
    """A device with what it takes to put arrays there: its sharding and the two ways of transfer."""

    __slots__ = ("client", "device", "sharding", "platform", "compiler", "put", "copying", "sharing", "_handlers")

    def __init__(self, client: Any, device: Any) -> None:
        self.client = client
        self.device = device
        self.platform: str = device.platform
        self.compiler = compiler_of(device)
        self.sharding = _jaxlib.single_device_sharding(device)
        self.put = _jaxlib.batched_device_put
        self.copying = _jaxlib.put_arguments(device, self.sharding, shared=False)
        self.sharing = _jaxlib.put_arguments(device, self.sharding, shared=True)
        self._handlers: weakref.WeakKeyDictionary[Any, Any] = weakref.WeakKeyDictionary()

    def put_copy(self, aval: Any, host: Any) -> Any:
        """The buffer of an ndarray that may change afterwards."""
        return self.put(aval, self.sharding, (host,), *self.copying)

    def put_shared(self, aval: Any, host: Any) -> Any:
        """The buffer of an ndarray that never changes; it may be the same memory."""
        return self.put(aval, self.sharding, (host,), *self.sharing)

    def handler(self, aval: Any) -> Any:
        """What turns a result of this type into an array."""
        found = self._handlers.get(aval)
        if found is None:
            found = self._handlers[aval] = _jaxlib.result_handler(_PlainAval(aval), self.sharding)
        return found


def compiler_of(device: Any) -> str:
    """The platform for which programs are lowered: `cuda` or `rocm`, where a device calls itself `gpu`."""
    return getattr(device.client, "_raw_platform", None) or str(device.platform)


class _PlainAval:
    """The part of a type that the runtime asks for; it holds no reference to the interned aval."""

    __slots__ = ("shape", "dtype", "weak_type")

    def __init__(self, aval: Any) -> None:
        self.shape, self.dtype, self.weak_type = aval.shape, aval.dtype, False


class _State:
    """The client and its places; None before first use, and forgotten in a forked child."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.places: list[Place] | None = None
        self.forked = False
        self.on_fork: weakref.WeakKeyDictionary[Any, Callable[[Callable[..., Any]], None]] = (
            weakref.WeakKeyDictionary())


_state = _State()


def _after_fork() -> None:
    if _state.places is None:
        return
    _state.lock = threading.Lock()
    _state.forked = True
    for refuse in list(_state.on_fork.values()):
        refuse(fork_error)


def fork_error(*_: Any, **__: Any) -> Any:
    """Refuse to go on in a child process whose parent had started the runtime."""
    raise CorejaxRuntimeError(
        "the runtime was started before this process was forked, and can't be used in the child", where=here(),
        got=f"process {os.getpid()}", wanted="device arrays and compiled functions in the parent only",
        todo="start processes with multiprocessing's 'spawn' or 'forkserver' method, or fork before first use")


def refuse_after_fork(function: Callable[..., Any], refuse: Callable[[Callable[..., Any]], None]) -> None:
    """Call `refuse(fork_error)` in forked children if `function` still lives: so its hot path needs no check."""
    _state.on_fork[function] = refuse


def check_not_forked() -> None:
    """Raise in a forked child."""
    if _state.forked:
        fork_error()


def places() -> list[Place]:
    """All devices; the first call starts the runtime."""
    if _state.forked:
        fork_error()
    if _state.places is None:
        with _state.lock:
            if _state.places is None:
                client = _jaxlib.make_cpu_client()
                os.register_at_fork(after_in_child=_after_fork)
                _state.places = [Place(client, device) for device in client.devices()]
    return _state.places


def only_one_device() -> bool:
    """Is there nothing to choose from (or nothing started yet)?"""
    return _state.places is None or len(_state.places) == 1


def place_of(device: Any = None) -> Place:
    """The place of a device (one of `devices()`, a platform's name or None for the default)."""
    known = places()
    if device is None or device is known[0].device:
        return known[0]
    wanted: Callable[[Place], bool] = (lambda p: p.platform == device) if isinstance(device, str) else (
        lambda p: p.device is device or (type(p.device) is type(device) and p.device == device))
    for place in known:
        if wanted(place):
            return place
    raise CorejaxValueError(f"{device!r:.80} is not a device of this process", where=here(), got=repr(device)[:80],
                            wanted=", ".join(str(place.device) for place in known), todo="take one of cj.devices()")


def devices(platform: str | None = None) -> list[Any]:
    """The devices that programs can run on, those of one platform if it is named."""
    named = isinstance(platform, str)
    found = [place.device for place in places() if platform is None or (named and place.platform == platform)]
    if not found:
        raise CorejaxValueError(f"there is no device of platform {platform!r:.80}", where=here(), got=platform,
                                wanted=", ".join(sorted({place.platform for place in places()})),
                                todo="take one of cj.devices(), or install the runtime for that platform")
    return found


def default_platform() -> str:
    """The platform for which programs are lowered, without starting the runtime if that can be told without."""
    return _state.places[0].compiler if _state.places else "cpu"
