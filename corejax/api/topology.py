"""Which devices there are, and in which process."""

from __future__ import annotations

from typing import TYPE_CHECKING

from corejax.arrays.devices import is_addressable
from corejax.base.errors import CorejaxValueError
from corejax.base.source import here
from corejax.base.tracebacks import public
from corejax.xla.runtime import client

if TYPE_CHECKING:
    from corejax.arrays.devices import Device


@public
def devices(platform: str | None = None) -> list[Device]:
    """The devices that programs can run on, or only those of one platform; if processes have joined, those of all.

    >>> import corejax as cj
    >>> cj.devices("cpu")[0].platform
    'cpu'
    """
    return client.devices(platform)


@public
def local_devices(process_index: int | None = None, backend: str | None = None) -> list[Device]:
    """The devices of this process, or of another one; of the default backend, or of one by its name.

    >>> import corejax as cj
    >>> cj.local_devices() == cj.devices()  # unless processes have joined
    True
    """
    everywhere = client.devices(backend)
    if process_index is None:
        return [device for device in everywhere if is_addressable(device)]
    found = [device for device in everywhere if device.process_index == process_index]
    if not found:
        raise CorejaxValueError(f"there is no process {process_index!r:.80} with devices", where=here(),
                                got=f"process_index={process_index!r:.80}",
                                wanted=f"an int from 0 to {max(device.process_index for device in everywhere)}",
                                todo="leave it out for this process; cj.process_count() says how many there are")
    return found


@public
def device_count(backend: str | None = None) -> int:
    """How many devices there are, in all processes together.

    >>> import corejax as cj
    >>> cj.device_count() == len(cj.devices())
    True
    """
    return len(client.devices(backend))


@public
def local_device_count(backend: str | None = None) -> int:
    """How many devices this process has.

    >>> import corejax as cj
    >>> cj.local_device_count() == len(cj.local_devices())
    True
    """
    return len(local_devices(None, backend))


@public
def process_index(backend: str | None = None) -> int:
    """The number of this process among those that have joined: 0 if there is no other.

    >>> import corejax as cj
    >>> cj.process_index()
    0
    """
    return int(local_devices(None, backend)[0].process_index)


@public
def process_count(backend: str | None = None) -> int:
    """How many processes have joined: 1 if there is no other.

    >>> import corejax as cj
    >>> cj.process_count()
    1
    """
    return len({device.process_index for device in client.devices(backend)})


@public
def default_backend() -> str:
    """The platform of the default backend's devices.

    >>> import corejax as cj
    >>> cj.default_backend() == cj.devices()[0].platform
    True
    """
    return client.place_of().platform
