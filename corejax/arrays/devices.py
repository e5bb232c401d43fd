"""What arrays ask of whoever runs devices: where they can be put, and how. The runtime is handed in from above."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from corejax.base.avals import ShapedArray
from corejax.base.errors import CorejaxRuntimeError


class Device(Protocol):
    """A device, as the runtime shows it: with these, and with what else its release has."""

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
    """The memory of an array on a device, as the runtime shows it."""

    _sharding: Any

    def platform(self) -> str: ...

    def is_deleted(self) -> bool: ...

    def is_ready(self) -> bool: ...

    def block_until_ready(self) -> object: ...


class Place(Protocol):
    """A device with what it takes to put arrays there."""

    device: Device
    sharding: Any

    def put_copy(self, aval: ShapedArray, host: np.ndarray | np.generic) -> Buffer:
        """The buffer of an ndarray that may change afterwards."""

    def put_shared(self, aval: ShapedArray, host: np.ndarray | np.generic) -> Buffer:
        """The buffer of an ndarray that never changes; it may be the same memory."""


class Runtime(Protocol):
    """Who runs devices."""

    def place_of(self, device: object = None) -> Place:
        """The place of a device, by itself or by name; of the default one if None."""

    def place_with(self, sharding: object) -> Place:
        """The place of the buffers that have this sharding."""

    def check_not_forked(self) -> None:
        """Raise in a forked child, which can't use the runtime of its parent."""

    def runtime_error(self, error: BaseException) -> CorejaxRuntimeError:
        """What to raise for a failure of the runtime's own."""


runtime: Runtime


def run_by(chosen: Runtime) -> None:
    """Let this one run devices."""
    global runtime
    runtime = chosen
