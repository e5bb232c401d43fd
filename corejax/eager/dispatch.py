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
from corejax.xla.runtime.placement import common_place

_programs: BoundedCache[Any, Executable] = BoundedCache(1024)


def apply_primitive(primitive: Primitive, args: Sequence[Any], params: Mapping[str, object]) -> Any:
    """Apply a primitive to concrete arrays by running its compiled program."""
    avals = tuple([x.aval for x in args])
    key = (primitive, avals, param_key(params)) if params else (primitive, avals)
    place = None if client.only_one_device() else common_place(args)
    if place is not None:
        key = (*key, place)
    program = _programs.get(key)
    if program is None:
        since = generation()
        program = _programs.put(key, _compile(primitive, avals, params, place and place.device), since)
    return program.calls.call(args) if primitive.multiple_results else program.calls.call_for_one(args)


def _compile(primitive: Primitive, avals: tuple[ShapedArray, ...], params: Mapping[str, object],
             device: object) -> Executable:
    invars = [Var(aval) for aval in avals]
    out = primitive.infer(avals, params)
    outvars = [Var(aval) for aval in (out if type(out) is tuple else (out,))]
    effects = primitive.effects(avals, **params) if primitive.effects is not None else no_effects
    eqn = JaxprEqn(primitive, invars, outvars, params, effects, location())
    jaxpr = Jaxpr((), invars, outvars, (eqn,), effects, primitive.name)
    return compile_jaxpr(ClosedJaxpr(jaxpr), name=primitive.name, device=device)
