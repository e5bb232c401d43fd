"""What arrays need from the runtime: where they can be put, and how. The runtime itself is handed in from above."""

from __future__ import annotations

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


class Place(Protocol):
    """A device, with what it takes to put arrays there."""

    device: Device
    sharding: Any

    def put_copy(self, aval: ShapedArray, host: np.ndarray | np.generic) -> Buffer:
        """A buffer for an ndarray that may change afterwards."""

    def put_shared(self, aval: ShapedArray, host: np.ndarray | np.generic) -> Buffer:
        """A buffer for an ndarray that never changes; it may share its memory."""


class Runtime(Protocol):
    """Runs devices."""

    def place_of(self, device: object = None) -> Place:
        """The place of a device, given itself or by name, or of the default device for None."""

    def place_with(self, sharding: object) -> Place:
        """The place of buffers with this sharding."""

    def check_not_forked(self) -> None:
        """Raise in a forked child, which can't use its parent's runtime."""

    def runtime_error(self, error: BaseException) -> CorejaxRuntimeError:
        """The error to raise for a failure of the runtime."""


runtime: Runtime


def run_by(chosen: Runtime) -> None:
    """Use this runtime."""
    global runtime
    runtime = chosen
