"""What arrays need from the runtime: where they can be put, and how. The runtime itself is handed in from above."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from corejax.base.avals import ShapedArray
from corejax.base.errors import CorejaxRuntimeError


class Device(Protocol):
    """A device of the runtime. Depending on the release, it has more attributes than these."""

    @property
    def id(self) -> int: ...

    @property
    def local_hardware_id(self) -> int: ...

    @property
    def platform(self) -> str: ...

    @property
    def device_kind(self) -> str: ...

    def __getattr__(self, name: str) -> Any: ...


class Buffer(Protocol):
    """The runtime's object for the memory of an array on a device."""

    _sharding: Any

    def platform(self) -> str: ...

    def is_deleted(self) -> bool: ...

    def is_ready(self) -> bool: ...

    def block_until_ready(self) -> object: ...


class Home(Protocol):
    """Where arrays can be: a device, or several; with what it takes to put arrays there."""

    @property
    def device(self) -> Device:
        """The device, or the first of several."""

    @property
    def user_sharding(self) -> Any:
        """Where this is, in the words of users."""

    @property
    def is_common(self) -> bool:
        """Whether every process that has a part of an array has all of it: all of them say the same."""

    @property
    def is_readable(self) -> bool:
        """Whether this process has all elements of what is there."""

    def shards(self, buffer: Any) -> Sequence[Any]:
        """The parts of a buffer that is there, one for each device of this process."""

    def assemble(self, aval: ShapedArray, shards: Sequence[Any]) -> Any:
        """The buffer that consists of these parts, one for each device of this process."""

    def read(self, buffer: Any, stored: ShapedArray) -> np.ndarray:
        """The elements of a buffer that is there, read-only."""

    def put_copy(self, aval: ShapedArray, host: np.ndarray | np.generic) -> Buffer:
        """A buffer for an ndarray that may change afterwards."""

    def put_shared(self, aval: ShapedArray, host: np.ndarray | np.generic) -> Buffer:
        """A buffer for an ndarray that never changes; it may share its memory."""


class Runtime(Protocol):
    """Runs devices."""

    def devices(self, platform: str | None = None) -> list[Device]:
        """The devices of the default backend, or those of a backend or platform by its name."""

    def home_for(self, target: object, ndim: int) -> Home:
        """Where to put arrays with this many axes: a sharding, a device, given itself or by name, or None."""

    def home_of(self, sharding: object) -> Home:
        """Where the buffers with this runtime's sharding are."""

    def check_not_forked(self) -> None:
        """Raise in a forked child, which can't use its parent's runtime."""

    def check_equal(self, what: str, array: Any, devices: Sequence[Device]) -> None:
        """Raise unless the processes of these devices, which all must call it, have the same array."""

    def runtime_error(self, error: BaseException) -> CorejaxRuntimeError:
        """The error to raise for a failure of the runtime."""


class Mover(Protocol):
    """Moves arrays from devices to devices."""

    def moved(self, x: Any, here: Home, there: Home) -> Any:
        """The array, which is here, at another home; None if the way through host memory is the better one."""


runtime: Runtime
mover: Mover


def run_by(chosen: Runtime, moves: Mover) -> None:
    """Use this runtime."""
    global runtime, mover
    runtime, mover = chosen, moves


def is_addressable(device: Device) -> bool:
    """Whether a device belongs to this process, rather than to another one that it works with."""
    client = getattr(device, "client", None)
    return client is None or bool(device.process_index == client.process_index())
