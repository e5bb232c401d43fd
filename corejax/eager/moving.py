"""Moving arrays among devices by a program that divides them in another way, and does nothing else."""

from __future__ import annotations

from typing import Any

from corejax.arrays.array import Array
from corejax.arrays.storage import to_numpy
from corejax.base.caches import BoundedCache, generation
from corejax.base.errors import CorejaxValueError
from corejax.base.source import here as here_in_source
from corejax.kernel.jaxpr import ClosedJaxpr, Jaxpr, Var
from corejax.xla.cache.compile import Executable, compile_jaxpr
from corejax.xla.runtime import client
from corejax.xla.runtime.places import Home, Request, Spread

_programs: BoundedCache[Any, Executable] = BoundedCache(256)


def moved(x: Array, here: Home, there: Home) -> Array | None:
    """The array, which is here, at another home; None if the way through host memory is the better one."""
    if type(here) is not Spread or type(there) is not Spread:
        return None
    if here.group is not there.group:
        return None if here.is_common else _through_copies(x, here, there)
    # Devices that compute in host memory have it all at hand: a program takes two to ten times as long there.
    return None if here.group.platform == "cpu" and here.is_common else by_program(x, here, there)


def _through_copies(x: Array, here: Spread, there: Spread) -> Array:
    """An array of several processes on other devices, or on the same in another order: each process gets all of it."""
    if not here.own:
        raise CorejaxValueError(
            "device_put: this process has no part of the array", where=here_in_source(),
            got=f"{x.aval} with {here.user_sharding}", wanted="an array with parts on devices of this process",
            todo="call it in the processes that have parts, and move to their devices only")
    mesh: Any = here.user_sharding.mesh
    copies = by_program(x, here, client.registered(here.group.everywhere(x.aval.stored.ndim, mesh)))
    return Array.from_device(there.put_shared(x.aval, to_numpy(copies)), x.aval)


def by_program(x: Array, here: Spread, there: Spread) -> Array:
    """The same for homes of the same devices, which exchange the parts among themselves."""
    key = x.aval, here, there
    program = _programs.get(key)
    if program is None:
        since, var = generation(), Var(x.aval)
        mesh: Any = there.user_sharding.mesh
        at = Request(here.group, mesh, (here,), (there.user_sharding,))
        same = ClosedJaxpr(Jaxpr((), (var,), (var,), ()))
        program = _programs.put(key, compile_jaxpr(same, name="device_put", at=at), since)
    return program.calls.call_for_one((x,))
