"""What `jit` keeps of a function: a traced program for each signature, and how to run it."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Sequence
from typing import Any

from corejax.errors import ConcretizationError
from corejax.interpreters.trace import Tracer, leak_error
from corejax.ir.jaxpr import ClosedJaxpr, Jaxpr, Var
from corejax.ir.surgery import consts_to_operands
from corejax.plugin.roles import roles
from corejax.xla import client
from corejax.xla.array import Array
from corejax.xla.compile import compile_jaxpr
from corejax.xla.storage import deleted_error, is_on_device

_MAX_PROGRAMS = 4096

Runner = Callable[[Sequence[Any]], list[Any]]


class Program:
    """A traced function: `run(leaves)` computes, `bind(leaves)` applies it under a transformation."""

    __slots__ = ("closed", "out_tree", "name", "donated", "inline", "keep_unused", "run", "_call")

    def __init__(self, closed: ClosedJaxpr, out_tree: Any, name: str, donated: tuple[bool, ...], inline: bool,
                 keep_unused: bool) -> None:
        self.closed, self.out_tree, self.name = closed, out_tree, name
        self.donated, self.inline, self.keep_unused = donated, inline, keep_unused
        self.run: Runner = self._first_run
        self._call: tuple[Jaxpr, tuple[Any, ...]] | None = None

    @property
    def cacheable(self) -> bool:
        """Does it hold for other calls too? Not if it closes over a traced value."""
        return not any([isinstance(const, Tracer) for const in self.closed.consts])

    def unflatten(self, outs: Sequence[Any]) -> Any:
        """The result with these leaves."""
        return outs[0] if self.out_tree is None else self.out_tree.unflatten(outs)

    def bind(self, leaves: Sequence[Any]) -> list[Any]:
        """One call in the program of whoever is tracing."""
        if self._call is None:
            self._call = consts_to_operands(self.closed)
        jaxpr, consts = self._call
        return roles.staged_call(*consts, *leaves, jaxpr=jaxpr, name=self.name,  # type: ignore[no-any-return]
                                 donated=(False,) * len(consts) + self.donated, inline=self.inline,
                                 keep_unused=self.keep_unused)

    def _first_run(self, leaves: Sequence[Any]) -> list[Any]:
        for const in self.closed.consts:
            if isinstance(const, Tracer):
                raise leak_error(const, self.name)
        self.run = _runner(self) if len(client.places()) == 1 else _ByDevice(self)
        return self.run(leaves)


class _ByDevice:
    """Runs on the device on which the first argument lives that lives on any."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.runners: dict[Any, Runner] = {}

    def __call__(self, leaves: Sequence[Any]) -> list[Any]:
        device = next((x.device for x in leaves if type(x) is Array and is_on_device(x)), None)
        run = self.runners.get(device)
        if run is None:
            run = self.runners[device] = _runner(self.program, device)
        return run(leaves)


def _runner(program: Program, device: Any = None) -> Runner:
    """The compiled program as a function of all leaves, though it may not take those it doesn't use."""
    closed, kept = program.closed, list(range(len(program.closed.jaxpr.invars)))
    if not program.keep_unused:
        closed, kept = without_unused(closed)
    donated = [k for k, i in enumerate(kept) if program.donated[i]]
    call = compile_jaxpr(closed, donated=donated, name=program.name, device=device).call
    if len(kept) == len(program.donated) and not any(program.donated):
        return call

    def run(leaves: Sequence[Any]) -> list[Any]:
        for x, gone in zip(leaves, program.donated, strict=True):
            if gone and type(x) is Array and x.is_deleted():
                raise deleted_error(x)  # here, as the runtime would write lines to stderr before it refuses
        outs = call([leaves[i] for i in kept])
        for x, gone in zip(leaves, program.donated, strict=True):
            if gone and type(x) is Array and not x.is_deleted():
                x.delete()
        return outs

    return run


def without_unused(closed: ClosedJaxpr) -> tuple[ClosedJaxpr, list[int]]:
    """The program without the arguments that nothing uses, and the positions of the others."""
    jaxpr = closed.jaxpr
    used = {atom for eqn in jaxpr.eqns for atom in eqn.invars if type(atom) is Var}
    used.update([atom for atom in jaxpr.outvars if type(atom) is Var])
    kept = [i for i, var in enumerate(jaxpr.invars) if var in used]
    if len(kept) == len(jaxpr.invars):
        return closed, kept
    return ClosedJaxpr(jaxpr.replace(invars=[jaxpr.invars[i] for i in kept]), closed.consts), kept


def explain_leak(error: ConcretizationError, leaves: Sequence[Any], name: str) -> Exception:
    """The error to raise where a compiled program was given a tracer."""
    for x in leaves:
        if isinstance(x, Tracer):
            return leak_error(x, name)
    return error


class Table:
    """The programs of one function under one set of options; it dies with the function."""

    __slots__ = ("flat", "general", "__weakref__")

    def __init__(self) -> None:
        #: For each width of Python scalars: programs by the types of arguments that are all leaves.
        self.flat: dict[int, dict[Any, Program]] = {64: {}, 32: {}}
        self.general: dict[Any, Program] = {}
        _tables.add(self)

    def put(self, key: Any, program: Program, flat_key: tuple[int, tuple[Any, ...]] | None) -> None:
        """Remember a program; under `flat_key` too if its arguments are all leaves."""
        if len(self.general) >= _MAX_PROGRAMS:
            self.clear()
        self.general[key] = program
        if flat_key is not None:
            self.flat[flat_key[0]][flat_key[1]] = program

    def clear(self) -> None:
        self.general.clear()
        for programs in self.flat.values():
            programs.clear()


_tables: weakref.WeakSet[Table] = weakref.WeakSet()
_of_function: weakref.WeakKeyDictionary[Any, dict[Any, Table]] = weakref.WeakKeyDictionary()
_lock = threading.Lock()


def table_of(fun: Callable[..., Any], options: Any) -> Table:
    """The table of a function: `jit(f)` made twice with the same options traces once."""
    try:
        with _lock:
            return _of_function.setdefault(fun, {}).setdefault(options, Table())
    except TypeError:
        return Table()  # a callable without hash or weak references has its own


def clear_programs() -> None:
    """Forget all traced programs."""
    for table in list(_tables):
        table.clear()
