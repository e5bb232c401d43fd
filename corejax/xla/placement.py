"""Where a computation happens: on the device on which its operands are, those in host memory apart."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from corejax.errors import CorejaxValueError
from corejax.source import here
from corejax.xla import client
from corejax.xla.array import Array


def common_place(values: Iterable[Any], closed_over: Iterable[Any] = ()) -> client.Place | None:
    """The one place of all values that are on a device; None if none is, an error if there are several."""
    found, first = _place(values, None, None, "arguments live on different devices")
    return _place(closed_over, found, first, "an argument, and a value that the function closes over, live on "
                  "different devices" if first is not None else
                  "values that the function closes over live on different devices")[0]


def _place(values: Iterable[Any], found: client.Place | None, first: Any,
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
