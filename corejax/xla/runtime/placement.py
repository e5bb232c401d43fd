"""Where a computation happens: on the device that its operands are on, except for those in host memory."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from corejax.arrays.array import Array
from corejax.arrays.storage import Host, from_buffer, host_of
from corejax.base import _jaxlib
from corejax.base.avals import ShapedArray
from corejax.base.errors import CorejaxValueError
from corejax.base.source import here
from corejax.xla.runtime import client


def in_memory(x: Array) -> tuple[Any, client.Place | None] | None:
    """The elements of an array, read-only, if they are in the processor's memory now; and the array's place.

    The elements are an ndarray or a scalar. Returns None for an array that isn't computed yet, or that is on a device
    with memory of its own. The place of an array in host memory is None.
    """
    try:
        return host_of(x), None
    except AttributeError:
        buffer = x._buffer
    client.check_not_forked()
    if buffer.is_deleted() or buffer.platform() != "cpu" or not buffer.is_ready():
        return None
    place = client.place_of(_jaxlib.buffer_device(buffer))
    try:
        return from_buffer(buffer, x.aval), place
    except _jaxlib.RuntimeFailure:  # reading it in any other way raises the failure
        return None


def array_at(place: client.Place | None, host: Host, aval: ShapedArray) -> Array:
    """An array of these elements, which nobody else may write to, at this place."""
    if place is None:
        return Array.from_host(host, aval)
    return Array.from_device(place.put_shared(aval, np.asarray(host)), aval)


def common_place(values: Iterable[object], closed_over: Iterable[object] = ()) -> client.Place | None:
    """The common place of all values that are on a device; None if none is. Raises if there are several places."""
    found, first = _place(values, None, None, "arguments live on different devices")
    return _place(closed_over, found, first, "an argument, and a value that the function closes over, live on "
                  "different devices" if first is not None else
                  "values that the function closes over live on different devices")[0]


def platform_of(values: Iterable[object]) -> str:
    """The platform that a program of these operands is lowered for: that of their device, or else the default one.

    >>> platform_of([1.0])
    'cpu'
    """
    place = common_place(values)
    return client.default_platform() if place is None else place.compiler


def _place(values: Iterable[object], found: client.Place | None, first: Any,
           problem: str) -> tuple[client.Place | None, Any]:
    for x in values:
        if type(x) is not Array:
            continue
        try:
            sharding = x._buffer._sharding
        except AttributeError:  # it is in host memory, or deleted
            continue
        if found is None:
            found, first = client.place_with(sharding), x
        elif found.sharding is not sharding and found is not client.place_with(sharding):
            raise CorejaxValueError(problem, where=here(), wanted="one device, or values in host memory",
                                    got=f"{first.aval} on {found.device}, {x.aval} on {x.device}",
                                    todo="move them with cj.device_put(x, device)")
    return found, first
