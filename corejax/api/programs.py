"""What `jit` keeps for a function: a traced program for each signature, and how to run it."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from corejax.arrays.array import Array
from corejax.arrays.meshes import Mesh
from corejax.arrays.shardings import NamedSharding
from corejax.arrays.storage import DELETED, buffer_of, deleted_error
from corejax.base import caches
from corejax.base.errors import ConcretizationError
from corejax.base.holders import hold, is_holder
from corejax.base.trees import TreeDef, flatten
from corejax.eager.watched import watch
from corejax.installed.roles import roles
from corejax.ir.surgery import consts_to_operands
from corejax.kernel.jaxpr import ClosedJaxpr, Jaxpr, Var
from corejax.kernel.trace import Tracer, leak_error
from corejax.xla.cache.compile import Executable, compile_jaxpr
from corejax.xla.runtime import client
from corejax.xla.runtime.entries import Entry
from corejax.xla.runtime.execution import Calls, Parts
from corejax.xla.runtime.placement import (
    Whereabouts,
    common_home,
    home_at,
    marks,
    mesh_in,
    moved,
    request_for,
    whereabouts,
)
from corejax.xla.runtime.places import Division, Group, Place, Request

#: How many programs are kept for each function; one takes about 0.3 MB.
_MAX_PROGRAMS = 1024

#: How each argument or result is to be divided among devices; None where the user hasn't said.
Shardings: TypeAlias = tuple[NamedSharding | None, ...]

#: Maps leaves to the function's result.
Run = Callable[[Sequence[Any]], Any]


class Program:
    """A traced function: `run(leaves)` computes its result, `bind(leaves)` applies it under a transformation.

    `looked_up` counts the calls for which it was looked up, since there was no entry for them.
    """

    __slots__ = ("closed", "out_tree", "name", "donated", "inline", "keep_unused", "options", "in_shardings",
                 "out_shardings", "run", "executables", "looked_up", "_runner", "_call")
    run: Run

    def __init__(self, closed: ClosedJaxpr, out_tree: TreeDef | None, name: str, donated: tuple[bool, ...],
                 inline: bool, keep_unused: bool, options: Mapping[str, Any] | None = None,
                 in_shardings: Shardings = (), out_shardings: Shardings = ()) -> None:
        self.closed, self.out_tree, self.name = closed, out_tree, name
        self.donated, self.inline, self.keep_unused, self.options = donated, inline, keep_unused, options or {}
        self.in_shardings, self.out_shardings = in_shardings, out_shardings  # empty if there are none
        self.executables: list[Executable] = []  # only held here: what runs them doesn't refer to them
        self.looked_up = 0
        self._runner: Runner | None = None  # the only one there can be
        self._call: tuple[Jaxpr, tuple[Any, ...]] | None = None

    if not TYPE_CHECKING:
        def __getattr__(self, name: str) -> Any:
            if name == "run":  # which is set by the first run: an attribute before that would be a cycle
                return self._first_run
            raise AttributeError(name)

    @property
    def cacheable(self) -> bool:
        """Whether it can be used for other calls: not if it closes over a traced value."""
        return not any([isinstance(const, Tracer) or is_holder(const) and const.is_traced
                        for const in self.closed.consts])

    @property
    def holds(self) -> bool:
        """Whether it uses objects that hold arrays."""
        return hold(self.closed.in_avals, self.closed.consts)

    def unflatten(self, outs: Sequence[object]) -> Any:
        """The result with these leaves."""
        return outs[0] if self.out_tree is None else self.out_tree.unflatten(outs)

    def bind(self, leaves: Sequence[object]) -> Any:
        """Record a call in the program that is being traced."""
        jaxpr, consts = self._as_call()
        leaves = _constrained(leaves, self.in_shardings)
        outs = roles.staged_call(*consts, *leaves, jaxpr=jaxpr, name=self.name,
                                 donated=(False,) * len(consts) + self.donated, inline=self.inline,
                                 keep_unused=self.keep_unused)
        return self.unflatten(_constrained(outs, self.out_shardings))

    def _as_call(self) -> tuple[Jaxpr, tuple[Any, ...]]:
        """The program with what it closes over as its first operands, and these."""
        if self._call is None:
            self._call = consts_to_operands(self.closed)
        return self._call

    def run_watched(self, leaves: Sequence[Any]) -> Any:
        """`run`, told to whatever watches what is evaluated."""
        return self.unflatten(self.watched(leaves, lambda: flatten(self.run(leaves))[0]))

    def watched(self, leaves: Sequence[Any], apply: Callable[[], Sequence[Any]]) -> Sequence[Any]:
        """The results of `apply`, which runs it with these arguments: told to whatever watches what is evaluated."""
        jaxpr, consts = self._as_call()
        return watch(None, [*consts, *leaves], {"jaxpr": jaxpr, "name": self.name}, apply)

    def _first_run(self, leaves: Sequence[object]) -> Any:
        for const in self.closed.consts:
            if isinstance(const, Tracer):
                raise leak_error(const, self.name)
        if self.holds:  # so that it is a call of a program without holders, and `run` stays this function
            return self.bind(leaves)
        client.check_settings()
        client.places()  # starts the runtime, which knows how many devices there are
        if client.only_one_device() and self.mesh is None:
            self._runner = _compiled(self)
            self.run = self._runner.run
        else:
            self.run = _ByHome(self)
        return self.run(leaves)

    @property
    def moves(self) -> bool:
        """Whether it runs where its arguments are; else on the only device."""
        return type(self.run) is _ByHome

    def runner_for(self, leaves: Sequence[Any]) -> Runner | None:
        """What runs it with arguments at homes where arguments have been before; None if there is nothing yet."""
        run: Any = self.run
        return run.again.get(whereabouts(leaves)) if self.moves else self._runner

    @property
    def used(self) -> list[bool]:
        """For each argument, whether the program takes it. The others don't decide where it runs."""
        count = len(self.closed.jaxpr.invars)
        kept = set(range(count)) if self.keep_unused else set(without_unused(self.closed)[1])
        return [i in kept for i in range(count)]

    def home(self, leaves: Sequence[Any]) -> Place | Group | None:
        """Where it runs with these arguments: where they are, or the values that it closes over; None if all may move.
        """
        return common_home(leaves, self.closed.consts)

    @property
    def mesh(self) -> Mesh | None:
        """The mesh on which it must run, if it names one, or its arguments or results are to be divided."""
        chosen = [sharding for sharding in (*self.in_shardings, *self.out_shardings) if sharding is not None]
        return chosen[0].mesh if chosen else mesh_in(self.closed.jaxpr)  # type: ignore[return-value]

    def request(self, home: Place | Group | None, leaves: Sequence[Any]) -> Request:
        """How it is divided among several devices, with arguments that are there."""
        closed = self.closed
        return request_for(home, leaves, closed.in_avals, self.mesh,
                           self.in_shardings or [None] * len(closed.in_avals),
                           self.out_shardings or [None] * len(closed.out_avals), closed.consts)


class Runner(NamedTuple):
    """A compiled program, as a function of all leaves; in parts, or None; which leaves these take; where it runs."""

    run: Run
    parts: Parts | None
    kept: Sequence[int]
    at: Place | Division


class _ByHome:
    """Runs where its arguments are; on the default device if all of them may move."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.divided = program.mesh is not None
        self.used = program.used
        self.runners: dict[Any, Runner] = {}
        #: The same by what says fastest where arguments are.
        self.again: dict[Whereabouts, Runner] = {}

    def __call__(self, leaves: Sequence[Any]) -> Any:
        runner = self.again.get(whereabouts(leaves))
        return self._find(leaves) if runner is None else runner.run(leaves)

    def _find(self, leaves: Sequence[Any]) -> Any:
        program, deciding = self.program, only(leaves, self.used)
        home = program.home(deciding)
        spread = self.divided or type(home) is Group
        key = (home, *map(home_at, deciding)) if spread else home
        runner = self.runners.get(key)
        if runner is None:
            at: Any = program.request(home, deciding) if spread else home
            runner = self.runners[key] = _compiled(program, at)
        if type(runner.at) is Place and home is not None:
            there = moved(deciding, runner.at)
            leaves = [x if used else old for x, old, used in zip(there, leaves, self.used, strict=True)]
        self.again[marks(map(home_at, leaves))] = runner
        return runner.run(leaves)


def _compiled(program: Program, at: Place | Request | None = None) -> Runner:
    closed, kept = program.closed, list(range(len(program.closed.jaxpr.invars)))
    if not program.keep_unused:
        closed, kept = without_unused(closed)
    donated = [k for k, i in enumerate(kept) if program.donated[i]]
    if type(at) is Request:
        at = at._replace(arguments=tuple([at.arguments[i] for i in kept]))
    executable = compile_jaxpr(closed, donated=donated, name=program.name, options=program.options, at=at)
    program.executables.append(executable)
    run = _unflattened(program.out_tree, executable.calls)
    if len(kept) < len(program.donated):
        run = _of_kept(run, kept)
    if any(program.donated):
        run = _donating(run, program.donated)
    return Runner(run, executable.calls.parts, kept, executable.at)


def _constrained(values: Sequence[Any], shardings: Shardings) -> Sequence[Any]:
    """The same values, divided like this within the program that is being traced."""
    if not shardings:
        return values
    return [x if sharding is None else roles.constrain(x, sharding)
            for x, sharding in zip(values, shardings, strict=True)]


def _unflattened(out_tree: TreeDef | None, calls: Calls) -> Run:
    if out_tree is None:
        return calls.call_for_one
    call, unflatten = calls.call, out_tree.unflatten
    return lambda leaves: unflatten(call(leaves))


def _of_kept(run: Run, kept: Sequence[int]) -> Run:
    return lambda leaves: run([leaves[i] for i in kept])


def _donating(inner: Run, donated: Sequence[bool]) -> Run:
    places = [i for i, gone in enumerate(donated) if gone]

    def run(leaves: Sequence[Any]) -> Any:
        on_device, elsewhere = [], []
        for i in places:
            x = leaves[i]
            try:
                buffer = buffer_of(x)
            except (AttributeError, TypeError):
                elsewhere.append(x)
                continue
            if buffer.is_deleted():
                raise deleted_error(x)  # raised here since the runtime would first write to stderr
            on_device.append(x)
        out = inner(leaves)
        for x in on_device:
            x._buffer = DELETED  # `x.delete()`, without the call: at its next use, the runtime would write to stderr
        for x in elsewhere:
            if type(x) is Array:
                x.delete()
        return out
    return run


def only(leaves: Sequence[Any], used: Sequence[bool]) -> Sequence[Any]:
    """The leaves, with None in place of those that aren't used."""
    return leaves if False not in used else [x if flag else None for x, flag in zip(leaves, used, strict=True)]


def without_unused(closed: ClosedJaxpr) -> tuple[ClosedJaxpr, list[int]]:
    """The program without unused arguments, and the positions of the others."""
    jaxpr = closed.jaxpr
    used = {atom for eqn in jaxpr.eqns for atom in eqn.invars if type(atom) is Var}
    used.update([atom for atom in jaxpr.outvars if type(atom) is Var])
    kept = [i for i, var in enumerate(jaxpr.invars) if var in used]
    if len(kept) == len(jaxpr.invars):
        return closed, kept
    return ClosedJaxpr(jaxpr.replace(invars=[jaxpr.invars[i] for i in kept]), closed.consts), kept


def explain_leak(error: ConcretizationError, leaves: Sequence[object], name: str) -> Exception:
    """The error to raise if a compiled program was given a tracer."""
    for x in leaves:
        if isinstance(x, Tracer):
            return leak_error(x, name)
    return error


class Table:
    """The programs of one function under one set of options; it dies with the function."""

    __slots__ = ("flat", "entries", "general", "__weakref__")

    def __init__(self) -> None:
        #: For each width of Python scalars: programs by the key that `Lookup` makes for a call.
        self.flat: dict[int, dict[Any, Program]] = {64: {}, 32: {}}
        #: Entries by static arguments and names of keywords, and by the first argument's type: the newest first.
        self.entries: dict[int, dict[Any, tuple[Entry, ...]]] = {64: {}, 32: {}}
        self.general: dict[Any, Program] = {}
        _tables.add(self)
        caches.also_clear(self)

    def put(self, key: object, program: Program, since: int) -> None:
        """Add a program that was looked for in that generation; if there are too many, the oldest are dropped."""
        self.general[key] = program
        if len(self.general) > _MAX_PROGRAMS:
            gone = {id(self.general.pop(oldest, None)) for oldest in list(self.general)[: _MAX_PROGRAMS // 8]}
            for programs in self.flat.values():
                for signature in [each for each, known in list(programs.items()) if id(known) in gone]:
                    programs.pop(signature, None)
            for entries in self.entries.values():
                entries.clear()
        self.check(since)

    def check(self, since: int) -> None:
        """Empty it if all was forgotten since that generation, in which what was added last was looked for."""
        if since != caches.generation():
            self.clear()

    def clear(self) -> None:
        self.general.clear()
        for programs in self.flat.values():
            programs.clear()
        for entries in self.entries.values():
            entries.clear()


_tables: weakref.WeakSet[Table] = weakref.WeakSet()
_of_function: weakref.WeakKeyDictionary[Any, dict[Any, Table]] = weakref.WeakKeyDictionary()
_lock = threading.Lock()


def table_of(fun: Callable[..., Any], options: object) -> Table:
    """The table of a function: `jit(f)` made twice with the same options traces once."""
    try:
        with _lock:
            return _of_function.setdefault(fun, {}).setdefault(options, Table())
    except TypeError:
        return Table()  # a callable without hash or weak references has its own


@client.after_fork  # since programs from a table run without checking for it
@client.when_there_are_more
def clear_programs() -> None:
    """Forget all traced programs."""
    caches.new_generation()
    for table in list(_tables):
        table.clear()

