"""Moving arrays among devices by a program that divides them in another way, and does nothing else."""

from __future__ import annotations

from typing import Any

from corejax.arrays.array import Array
from corejax.base.caches import BoundedCache, generation
from corejax.kernel.jaxpr import ClosedJaxpr, Jaxpr, Var
from corejax.xla.cache.compile import Executable, compile_jaxpr
from corejax.xla.runtime.places import Home, Request, Spread

_programs: BoundedCache[Any, Executable] = BoundedCache(256)


def moved(x: Array, here: Home, there: Home) -> Array | None:
    """The array, which is here, at another home; None if the way through host memory is the better one."""
    if type(here) is not Spread or type(there) is not Spread or here.group is not there.group:
        return None
    # Devices that compute in host memory have it all at hand: a program takes two to ten times as long there.
    return None if here.group.platform == "cpu" and here.is_readable else by_program(x, here, there)


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
