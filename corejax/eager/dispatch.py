"""Single primitives as compiled programs: for operands on a device, and for primitives without an `impl`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from corejax.base.avals import ShapedArray
from corejax.base.caches import BoundedCache, generation
from corejax.base.source import location
from corejax.kernel.jaxpr import ClosedJaxpr, Jaxpr, JaxprEqn, Var, no_effects
from corejax.kernel.keys import param_key
from corejax.kernel.primitive import Primitive
from corejax.xla.cache.compile import Executable, compile_jaxpr
from corejax.xla.runtime import client
from corejax.xla.runtime.placement import common_home, home_at, marks, mesh_of, moved, request_for, whereabouts
from corejax.xla.runtime.places import Group, Place

_programs: BoundedCache[Any, Executable] = BoundedCache(1024)


def apply_primitive(primitive: Primitive, args: Sequence[Any], params: Mapping[str, object]) -> Any:
    """Apply a primitive to concrete arrays by running its compiled program."""
    avals = tuple([x.aval for x in args])
    key: tuple[Any, ...] = (primitive, avals, param_key(params)) if params else (primitive, avals)
    several = not client.only_one_device()
    program = _programs.get((*key, whereabouts(args)) if several else key)
    if program is None:
        since, home = generation(), common_home(args) if several else None
        if type(home) is Place:
            args = moved(args, home)
        if several:
            key = (*key, marks(map(home_at, args)))
        program = _programs.get(key) or _programs.put(key, _compile(primitive, args, avals, params, home), since)
    return program.calls.call(args) if primitive.multiple_results else program.calls.call_for_one(args)


def _compile(primitive: Primitive, args: Sequence[Any], avals: tuple[ShapedArray, ...], params: Mapping[str, object],
             home: Place | Group | None) -> Executable:
    invars = [Var(aval) for aval in avals]
    out = primitive.infer(avals, params)
    outvars = [Var(aval) for aval in (out if type(out) is tuple else (out,))]
    effects = primitive.effects(avals, **params) if primitive.effects is not None else no_effects
    eqn = JaxprEqn(primitive, invars, outvars, params, effects, location())
    jaxpr = Jaxpr((), invars, outvars, (eqn,), effects, primitive.name)
    mesh = mesh_of(params)
    at: Any = home
    if mesh is not None or type(home) is Group:
        at = request_for(home, args, avals, mesh, [None] * len(args), [None] * len(outvars))
    return compile_jaxpr(ClosedJaxpr(jaxpr), name=primitive.name, at=at)
