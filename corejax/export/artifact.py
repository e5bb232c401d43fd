"""A function as portable StableHLO: making, checking, reading it, and calling it from another program."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any

from corejax.arrays.array import as_array
from corejax.arrays.storage import to_numpy
from corejax.base import _jaxlib
from corejax.base.avals import ShapedArray
from corejax.base.errors import CorejaxError, CorejaxTypeError, CorejaxValueError
from corejax.base.source import describe, here
from corejax.kernel.jaxpr import ClosedJaxpr, Jaxpr, JaxprEqn
from corejax.kernel.trace import Tracer, leak_error
from corejax.xla.lowering.linking import call_linked
from corejax.xla.lowering.nesting import check_depth
from corejax.xla.lowering.partitioning import Wanted
from corejax.xla.lowering.programs import Lowering, lower_module
from corejax.xla.lowering.targets import first_calling, first_that, targets_of
from corejax.xla.lowering.types import Types, describe_type
from corejax.xla.runtime import kernels

if TYPE_CHECKING:
    from corejax.base._jaxlib import Module

#: The bytes at the start of a module: MLIR's, then the name of the format.
_MAGIC, _FORM = b"ML\xefR", b"StableHLO_v"

#: Functions of the runtime that any program may call by name, since compilers resolve them themselves.
STABLE_CALLS = frozenset(("Sharding", "SPMDFullToShardShape", "SPMDShardToFullShape"))


_lock = threading.Lock()


@cache
def _register_passes() -> None:
    _jaxlib.stablehlo.register_stablehlo_passes()


class Artifact:
    """A function of arrays: its types, and its program for one or more platforms.

    It is a param of the primitive that calls it, so it is identified by its content.
    """

    __slots__ = ("name", "in_avals", "out_avals", "modules", "devices", "_key", "__weakref__")

    def __init__(self, name: str, in_avals: Sequence[ShapedArray], out_avals: Sequence[ShapedArray],
                 modules: Sequence[tuple[tuple[str, ...], bytes]], devices: int = 1) -> None:
        self.name, self.in_avals, self.out_avals = name, tuple(in_avals), tuple(out_avals)
        self.modules = tuple(modules)
        self.devices = devices  # among how many it is divided
        parts = name, self.in_avals, self.out_avals, self.modules, devices
        self._key = hashlib.sha256(repr(parts).encode()).digest()

    def __corejax_key__(self) -> bytes:
        return self._key

    def __repr__(self) -> str:
        return f"<exported {self.name}>"

    @property
    def platforms(self) -> tuple[str, ...]:
        """The platforms that it was exported for."""
        return tuple([platform for platforms, _ in self.modules for platform in platforms])

    @property
    def custom_calls(self) -> tuple[str, ...]:
        """The functions of the runtime that it calls by name: kernels of packs, and others."""
        found: dict[str, None] = {}
        for _, module in self.modules:
            found |= dict.fromkeys(targets_of(read_module(_jaxlib.mlir_context(), module)))
        return tuple([target for target in found if target not in STABLE_CALLS])

    def module_for(self, platform: str) -> bytes:
        """The program for a platform."""
        for platforms, module in self.modules:
            if platform in platforms:
                return module
        raise CorejaxValueError(f"{self.name} was not exported for {platform}", got=platform, where=here(),
                                wanted=" or ".join(self.platforms),
                                todo=f"run it on one of these, or export it with platforms=({platform!r}, ...)")

    def lower(self, ctx: Lowering, args: Sequence[object]) -> list[Any]:
        """Add a call to the program that is being lowered, and return its results."""
        module = self.module_for(ctx.platform)
        types = [ctx.type_of(aval) for aval in self.out_avals]
        count = 1 if ctx.partitioning is None else ctx.partitioning.count
        if self.devices not in (1, count):
            raise CorejaxValueError(f"{self.name} was exported for {self.devices} devices", where=here(),
                                    got=f"a call on {count} device{'s' * (count != 1)}",
                                    wanted=f"arguments on {self.devices} devices", todo="put the arguments on a mesh "
                                    "first: cj.device_put(x, cj.NamedSharding(mesh, cj.P()))")
        return call_linked(ctx, self._key, lambda context: read_module(context, module), self.name, args, types)


# Making

def make(closed: ClosedJaxpr, name: str, platforms: Sequence[str], allowed: frozenset[str],
         wanted: Wanted | None = None) -> Artifact:
    """Make an artifact from a program, including its constants; `wanted` says how it is divided among devices."""
    if closed.effects:
        raise CorejaxValueError(f"{name} can't be exported: it has effects", where=here(),
                                got=", ".join(sorted(map(str, closed.effects))), wanted="a function of its arguments",
                                todo="move the effect out of the function")
    for const in closed.consts:
        if isinstance(const, Tracer):
            raise leak_error(const, name)
    consts = [to_numpy(as_array(const, copy=False)) for const in closed.consts]
    modules: dict[bytes, list[str]] = {}
    devices = 1
    for platform in platforms:
        lowering = lower_module(closed.jaxpr, consts, name, platform, wanted=wanted)
        devices = 1 if lowering.partitioning is None else lowering.partitioning.count
        check_depth(lowering.depth, name)
        _refuse_calls(lowering, closed.jaxpr, name, allowed)
        modules.setdefault(portable(lowering.module), []).append(platform)
    return Artifact(name, closed.in_avals, closed.out_avals, [(tuple(on), code) for code, on in modules.items()],
                    devices)


def portable(module: Module) -> bytes:
    """A module in the format that later and somewhat earlier releases can read.

    The version of the format is twelve weeks old, unless the module needs a newer one.
    """
    stablehlo, ir = _jaxlib.stablehlo, _jaxlib.ir
    with _lock:  # the table of passes is global, and not thread-safe
        _register_passes()
    with module.context, module.operation.location, silent(module.context):
        legal = ir.Module.parse(str(module))  # a copy, since passes modify the module
        # The format doesn't include the chlo dialect.
        _jaxlib.passmanager.PassManager.parse("builtin.module(func.func(chlo-legalize-to-stablehlo))").run(
            legal.operation)
        text = str(legal)
        weeks = stablehlo.StablehloCompatibilityRequirement.WEEK_12
        try:
            return _jaxlib.portable_bytes(ir.Module.parse(text),
                                          stablehlo.get_version_from_compatibility_requirement(weeks))
        except ValueError:
            return _jaxlib.portable_bytes(ir.Module.parse(text), stablehlo.get_current_version())


@contextmanager
def silent(context: Any) -> Iterator[None]:
    """Keep MLIR from printing diagnostics to stderr: the exception is enough."""
    handler = context.attach_diagnostic_handler(lambda _: True)
    try:
        yield
    finally:
        handler.detach()


# Reading

def version_of(module: bytes) -> str:
    """The version of the format that a module is written in."""
    start = module.find(_FORM) + len(_FORM)
    return module[start: module.find(b"\0", start)].decode("ascii", "replace")


def read_module(context: Any, module: bytes) -> Any:
    """Read an MLIR module from bytes, in a context; raises ValueError if they don't contain one."""
    if not module.startswith(_MAGIC):
        raise ValueError("not in MLIR's binary form")  # text would be parsed as text
    _jaxlib.with_partitioning(context)
    with context, silent(context):
        return _jaxlib.stablehlo.deserialize_portable_artifact(context, module)


def check(artifact: Artifact, allowed: frozenset[str]) -> None:
    """Raise if an artifact's modules can't be read, don't match its description, or call unstable functions."""
    for platforms, code in artifact.modules:
        context = _jaxlib.mlir_context()
        try:
            module = read_module(context, code)
        except ValueError as error:
            raise _unreadable(artifact.name, code) from error
        with context, module.operation.location:
            _check_signature(artifact, module)
        for target in targets_of(module):
            # one that is there for some platform only is an error if the program is to run on another
            if not kernels.provides(target) and not any([is_at_hand(target, one, allowed) for one in platforms]):
                if kernels.is_named_after_a_pack(target):
                    raise kernels.missing(target, platforms[0], program=f"the exported program {artifact.name}")
                raise CorejaxValueError(
                    f"{artifact.name}: the exported program calls a function of the runtime that may not be there",
                    got=target, wanted="kernels of installed packs, or one of those in allow_custom_calls",
                    where=here(),
                    todo=f"if you trust it, and this runtime has it, pass allow_custom_calls=({target!r},)")


def _unreadable(name: str, code: bytes) -> CorejaxError:
    written, newest = version_of(code), _jaxlib.stablehlo.get_current_version()
    newer = _number(written) > _number(newest)
    return CorejaxValueError(f"{name}: the exported program can't be read", got=f"StableHLO {written}", where=here(),
                             wanted=f"StableHLO {_jaxlib.stablehlo.get_minimum_version()} to {newest}",
                             todo="install a newer jaxlib" if newer else "export the function again")


def _number(version: str) -> tuple[int, ...]:
    return tuple([int(part) for part in version.split(".") if part.isdecimal()])


def _check_signature(artifact: Artifact, module: Module) -> None:
    ir, functions = _jaxlib.ir, {}
    for operation in module.body.operations:
        if artifact.devices > 1 and isinstance(operation, _jaxlib.sdy.MeshOp):
            continue
        if not isinstance(operation, _jaxlib.func.FuncOp):
            raise _inconsistent(artifact, str(operation.operation.name), "functions only")
        functions[ir.StringAttr(operation.attributes["sym_name"]).value] = operation
    if "main" not in functions:
        raise _inconsistent(artifact, "no function `main`", "one, which is called")
    kind, types = functions["main"].type, Types(ir)
    for found, avals in ((kind.inputs, artifact.in_avals), (kind.results, artifact.out_avals)):
        if list(found) != [types[aval] for aval in avals]:
            raise _inconsistent(artifact, ", ".join(map(describe_type, found)), ", ".join(map(str, avals)))


def _inconsistent(artifact: Artifact, got: str, wanted: str) -> CorejaxError:
    return CorejaxValueError(f"{artifact.name}: the exported program is not what its description says", got=got,
                             wanted=wanted, where=here(), todo="export the function again")


# What a program calls

def is_at_hand(target: str, platform: str, allowed: frozenset[str]) -> bool:
    """Whether a function of the runtime is there wherever corejax and the packs in use are installed."""
    return target in STABLE_CALLS or target in allowed or kernels.provides(target, platform) or \
        kernels.is_own(target, platform)


def _refuse_calls(lowering: Lowering, jaxpr: Jaxpr, name: str, allowed: frozenset[str]) -> None:
    """Raise for a program that calls back into this process, or functions that another runtime may not have."""
    platform = lowering.platform
    if lowering.callbacks:
        eqn = first_that(lambda one: bool(one.callbacks), jaxpr, platform)
        raise _uncallable(name, eqn, "a call of a Python function of this process", "a program that needs no Python",
                          "write the hook xla_translation (or decompose) of that primitive, or leave it out")
    for target in targets_of(lowering.module):
        if not is_at_hand(target, platform, allowed):
            eqn = first_calling(target, jaxpr, platform)
            if kernels.provides(target):
                raise kernels.missing(target, platform, eqn)
            raise _uncallable(name, eqn, f"a call of {target!r}, a function of this runtime",
                              "calls of kernels of installed packs, or that allow_custom_calls names",
                              f"provide it in the group corejax.kernels; or pass allow_custom_calls=({target!r},) if "
                              "it is there wherever this is to run")


def _uncallable(name: str, eqn: JaxprEqn | None, got: str, wanted: str, todo: str) -> CorejaxError:
    by = f"; {eqn.primitive.name} ({eqn.primitive.origin}) makes it" if eqn else ""
    return CorejaxTypeError(f"{name} can't be exported: it calls something that isn't in the program", got=got + by,
                            wanted=wanted, where=describe(eqn.source) if eqn and eqn.source else here(), todo=todo)
