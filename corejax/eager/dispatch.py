"""Single primitives as compiled programs: for operands on a device, and for primitives without an `impl`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from corejax.base import trees
from corejax.base.avals import ShapedArray
from corejax.base.caches import BoundedCache, generation
from corejax.base.known_trees import OTHER
from corejax.base.source import location
from corejax.base.trees import TreeDef
from corejax.kernel.jaxpr import ClosedJaxpr, Jaxpr, JaxprEqn, Var, no_effects
from corejax.kernel.keys import param_key
from corejax.kernel.primitive import Primitive
from corejax.xla.cache.compile import Executable, compile_jaxpr
from corejax.xla.runtime import client
from corejax.xla.runtime.entries import MOST_ENTRIES, OFTEN, Entry, make_entry
from corejax.xla.runtime.placement import common_home, home_at, marks, mesh_of, moved, request_for, whereabouts
from corejax.xla.runtime.places import Group, Place


class Compiled:
    """A compiled program, and entries for operands that were in the same memories before.

    If it is a primitive without params, the entries are the primitive's, too.
    """

    __slots__ = ("executable", "out_tree", "primitive", "entries", "looked_up")

    def __init__(self, executable: Executable, out_tree: TreeDef | None, primitive: Primitive | None = None) -> None:
        self.executable, self.out_tree = executable, out_tree  # None for one result
        self.primitive = primitive
        self.entries: tuple[Entry, ...] = ()
        self.looked_up = 0

    def run(self, args: Sequence[Any]) -> Any:
        """Run it with operands that no entry took."""
        self.looked_up += 1
        if self.looked_up in OFTEN:
            self._add_entry(args)
        calls = self.executable.calls
        return calls.call_for_one(args) if self.out_tree is None else self.out_tree.unflatten(calls.call(args))

    def _add_entry(self, args: Sequence[Any]) -> None:
        since, several = generation(), not client.only_one_device()
        entry = make_entry(self.executable.calls.parts, self.executable.at, args, moves=several, out_tree=self.out_tree)
        if entry is not None:
            self.entries = (entry, *self.entries)
            primitive = self.primitive
            if primitive is not None:
                key = args[0].aval if len(args) == 1 else tuple([x.aval for x in args])
                known = primitive.entries.get(key, ())[:MOST_ENTRIES - 1]
                primitive.keep_entries(key, (entry, *known), since)


#: Programs by what is applied, the types of operands, and where these are if there are several devices.
Programs: TypeAlias = BoundedCache[Any, Compiled]
_programs: Programs = BoundedCache(1024)


def run(programs: Programs, key: tuple[Any, ...], args: Sequence[Any],
        compiled: Callable[..., Compiled | None], *what: Any) -> Any:
    """Run the program of this key, which `compiled(args, home, *what)` makes; `OTHER` if it makes none."""
    several = not client.only_one_device()
    program = programs.get((*key, whereabouts(args)) if several else key)
    if program is not None:
        for enter in program.entries:
            result = enter(args)
            if result is not OTHER:
                return result
        return program.run(args)
    since, home = generation(), common_home(args) if several else None
    if type(home) is Place:
        args = moved(args, home)
    if several:
        key = (*key, marks(map(home_at, args)))
    program = programs.get(key)
    if program is None:
        made = compiled(args, home, *what)
        if made is None:
            return OTHER
        program = programs.put(key, made, since)
    return program.run(args)


def apply_primitive(primitive: Primitive, args: Sequence[Any], params: Mapping[str, object]) -> Any:
    """Apply a primitive to concrete arrays by running its compiled program."""
    avals = tuple([x.aval for x in args])
    key: tuple[Any, ...] = (primitive, avals, param_key(params)) if params else (primitive, avals)
    return run(_programs, key, args, _compile, primitive, avals, params)


def _compile(args: Sequence[Any], home: Place | Group | None, primitive: Primitive, avals: tuple[ShapedArray, ...],
             params: Mapping[str, object]) -> Compiled:
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
    executable = compile_jaxpr(ClosedJaxpr(jaxpr), name=primitive.name, at=at)
    out_tree = trees.flatten(outvars)[1] if primitive.multiple_results else None
    return Compiled(executable, out_tree, primitive if not params and len(args) in (1, 2) else None)
