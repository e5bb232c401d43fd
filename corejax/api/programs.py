"""What `jit` keeps for a function: a traced program for each signature, and how to run it."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from corejax.arrays.array import Array
from corejax.arrays.storage import deleted_error
from corejax.base import caches
from corejax.base.errors import ConcretizationError
from corejax.base.trees import TreeDef
from corejax.installed.roles import roles
from corejax.ir.surgery import consts_to_operands
from corejax.kernel.jaxpr import ClosedJaxpr, Jaxpr, Var
from corejax.kernel.trace import Tracer, leak_error
from corejax.xla.cache.compile import Executable, compile_jaxpr
from corejax.xla.runtime import client
from corejax.xla.runtime.execution import Calls
from corejax.xla.runtime.placement import common_place

#: How many programs are kept for each function; one takes about 0.3 MB.
_MAX_PROGRAMS = 1024

#: Maps leaves to the function's result.
Run = Callable[[Sequence[Any]], Any]


class Program:
    """A traced function: `run(leaves)` computes its result, `bind(leaves)` applies it under a transformation.

    `plain` is `run` in parts (see `Calls`), if there is one device and one result; else None.
    """

    __slots__ = ("closed", "out_tree", "name", "donated", "inline", "keep_unused", "options", "run", "plain",
                 "executables", "_call")

    def __init__(self, closed: ClosedJaxpr, out_tree: TreeDef | None, name: str, donated: tuple[bool, ...],
                 inline: bool, keep_unused: bool, options: Mapping[str, Any] | None = None) -> None:
        self.closed, self.out_tree, self.name = closed, out_tree, name
        self.donated, self.inline, self.keep_unused, self.options = donated, inline, keep_unused, options or {}
        self.run: Run = self._first_run
        self.plain: Any = None
        self.executables: list[Executable] = []  # only held here: what runs them doesn't refer to them
        self._call: tuple[Jaxpr, tuple[Any, ...]] | None = None

    @property
    def cacheable(self) -> bool:
        """Whether it can be used for other calls: not if it closes over a traced value."""
        return not any([isinstance(const, Tracer) for const in self.closed.consts])

    def unflatten(self, outs: Sequence[object]) -> Any:
        """The result with these leaves."""
        return outs[0] if self.out_tree is None else self.out_tree.unflatten(outs)

    def bind(self, leaves: Sequence[object]) -> Any:
        """Record a call in the program that is being traced."""
        if self._call is None:
            self._call = consts_to_operands(self.closed)
        jaxpr, consts = self._call
        outs = roles.staged_call(*consts, *leaves, jaxpr=jaxpr, name=self.name,
                                 donated=(False,) * len(consts) + self.donated, inline=self.inline,
                                 keep_unused=self.keep_unused)
        return self.unflatten(outs)

    def _first_run(self, leaves: Sequence[object]) -> Any:
        for const in self.closed.consts:
            if isinstance(const, Tracer):
                raise leak_error(const, self.name)
        client.check_settings()
        if len(client.places()) == 1:
            self.run, self.plain = _runners(self)
        else:
            self.run = _ByDevice(self)
        return self.run(leaves)


class _ByDevice:
    """Runs on the device of its arguments and of the values it closes over; on the default device if there is none."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.runners: dict[Any, Run] = {}

    def __call__(self, leaves: Sequence[object]) -> Any:
        place = common_place(leaves, self.program.closed.consts)
        run = self.runners.get(place)
        if run is None:
            run = self.runners[place] = _runners(self.program, place and place.device)[0]
        return run(leaves)


def _runners(program: Program, device: object = None) -> tuple[Run, Any]:
    """The compiled program as a function of all leaves, even if it doesn't take unused ones; and in parts, or None."""
    closed, kept = program.closed, list(range(len(program.closed.jaxpr.invars)))
    if not program.keep_unused:
        closed, kept = without_unused(closed)
    donated = [k for k, i in enumerate(kept) if program.donated[i]]
    executable = compile_jaxpr(closed, donated=donated, name=program.name, options=program.options,
                               device=device)
    program.executables.append(executable)
    run = _unflattened(program.out_tree, executable.calls)
    if len(kept) < len(program.donated):
        run = _of_kept(run, kept)
    elif program.out_tree is None and not donated:
        return run, executable.calls.plain
    return (_donating(run, program.donated) if any(program.donated) else run), None


def _unflattened(out_tree: TreeDef | None, calls: Calls) -> Run:
    if out_tree is None:
        return calls.call_for_one
    call, unflatten = calls.call, out_tree.unflatten
    return lambda leaves: unflatten(call(leaves))


def _of_kept(run: Run, kept: Sequence[int]) -> Run:
    return lambda leaves: run([leaves[i] for i in kept])


def _donating(inner: Run, donated: Sequence[bool]) -> Run:
    def run(leaves: Sequence[object]) -> Any:
        for x, gone in zip(leaves, donated, strict=True):
            if gone and type(x) is Array and x.is_deleted():
                raise deleted_error(x)  # raised here since the runtime would first write to stderr
        out = inner(leaves)
        for x, gone in zip(leaves, donated, strict=True):
            if gone and type(x) is Array and not x.is_deleted():
                x.delete()
        return out
    return run


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

    __slots__ = ("flat", "general", "__weakref__")

    def __init__(self) -> None:
        #: For each width of Python scalars: programs by the key that `Lookup` makes for a call.
        self.flat: dict[int, dict[Any, Program]] = {64: {}, 32: {}}
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
        self.check(since)

    def check(self, since: int) -> None:
        """Empty it if all was forgotten since that generation, in which what was added last was looked for."""
        if since != caches.generation():
            self.clear()

    def clear(self) -> None:
        self.general.clear()
        for programs in self.flat.values():
            programs.clear()


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


@client.when_there_are_more
def clear_programs() -> None:
    """Forget all traced programs."""
    caches.new_generation()
    for table in list(_tables):
        table.clear()


# Programs from a table run without checking whether this process was forked, so a forked child empties the tables.
client.refuse_after_fork(clear_programs, lambda _: clear_programs())
