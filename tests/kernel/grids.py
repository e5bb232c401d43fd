"""Devices that aren't there, and a runtime that has them: for tests of meshes and shardings."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np


class FakeDevice:
    """What meshes need to know of a device."""

    def __init__(self, id: int, platform: str = "cpu") -> None:
        self.id, self.platform = id, platform

    def __repr__(self) -> str:
        return f"{self.platform}:{self.id}"


class RemoteDevice(FakeDevice):
    """A device of one of several processes, of which this one has the number 0."""

    def __init__(self, id: int, process_index: int) -> None:
        super().__init__(id)
        self.process_index = process_index
        self.client = SimpleNamespace(process_index=lambda: 0)


DEVICES = [FakeDevice(i) for i in range(8)]


def grid(*shape: int) -> np.ndarray:
    """The first devices in this shape."""
    return np.array(DEVICES[:int(np.prod(shape))], object).reshape(shape)


class FakeRuntime:
    """A runtime that has these devices."""

    def devices(self, platform: str | None = None) -> list[Any]:
        return [device for device in DEVICES if platform in (None, device.platform)]
