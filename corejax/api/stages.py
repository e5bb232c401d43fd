"""The stages of a compiled function on pytrees: traced, lowered, compiled."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

from corejax.api.programs import Program, without_unused
from corejax.api.signatures import avals_of, plain_aval
from corejax.api.staging import struct_of
from corejax.api.statics import Statics
from corejax.arrays.array import Array
from corejax.arrays.storage import deleted_error
from corejax.base import trees
from corejax.base.avals import ShapedArray
from corejax.base.errors import CorejaxNotImplementedError, CorejaxTypeError, CorejaxValueError, kind_of
from corejax.base.prefixes import check_same_structure
from corejax.base.source import here
from corejax.base.tracebacks import public
from corejax.base.trees import TreeDef
from corejax.eager.watched import is_active
from corejax.interpreters.leaves import argument_namer
from corejax.kernel.jaxpr import ClosedJaxpr
from corejax.kernel.keys import shown
from corejax.kernel.trace import Tracer
from corejax.xla.cache import stages
from corejax.xla.cache.compile import wanted_by
from corejax.xla.lowering.partitioning import Wanted
from corejax.xla.runtime.options import settings_of
from corejax.xla.runtime.places import Place, Request


def check_arguments(leaves: Sequence[object], in_tree: TreeDef, dynamic: Any, in_tree_wanted: TreeDef,
                    in_avals: Sequence[ShapedArray], name: str, made: str) -> None:
    """Reject arguments that don't have the types that a program was `made` ("compiled") for."""
    if in_tree != in_tree_wanted:
        check_same_structure(in_tree_wanted.unflatten(in_avals), dynamic,
                             (f"the arguments it was {made} for", "(args, kwargs)"), name)
    name_leaf = argument_namer(*dynamic)
    for i, (got, wanted) in enumerate(zip(avals_of(leaves, name, name_leaf), in_avals, strict=True)):
        if not got.matches(wanted):
            raise CorejaxTypeError(f"{name}: {name_leaf(i)} has a different type than it was {made} for",
                                   got=str(got), wanted=str(wanted), where=here(), todo=(
                                       "convert it, or call the jitted function itself, which compiles again"
                                       if made == "compiled" else
                                       f"convert it, or have the function {made} for this type too"))


@public
class Stage:
    """What all stages know about their function: its name, and the types of its arguments and its result."""

    _program: Program
    _in_tree: TreeDef

    @property
    def fun_name(self) -> str:
        """The function's name."""
        return self._program.name

    @property
    def in_avals(self) -> list[ShapedArray]:
        """The types of the arguments' leaves."""
        return list(self._program.closed.in_avals)

    @property
    def out_avals(self) -> list[ShapedArray]:
        """The types of the result's leaves."""
        return list(self._program.closed.out_avals)

    @property
    def in_tree(self) -> TreeDef:
        """The structure of `(args, kwargs)`, without static arguments."""
        return self._in_tree

    @property
    def out_tree(self) -> TreeDef:
        """The structure of the result."""
        return trees.flatten(0)[1] if self._program.out_tree is None else self._program.out_tree

    @property
    def args_info(self) -> Any:
        """The pair `(args, kwargs)`, with a `ShapeDtypeStruct` for each array."""
        return self._in_tree.unflatten(list(map(struct_of, self.in_avals)))

    @property
    def out_info(self) -> Any:
        """The result, with a `ShapeDtypeStruct` for each array."""
        return self.out_tree.unflatten(list(map(struct_of, self.out_avals)))

    @property
    def donate_argnums(self) -> tuple[int, ...]:
        """The indices of the arguments' leaves that the program may overwrite."""
        return tuple([i for i, flag in enumerate(self._program.donated) if flag])

    def __reduce__(self) -> NoReturn:
        kind = type(self).__name__.lower()
        raise CorejaxTypeError(f"a {kind} function can't be pickled or copied", got=f"{kind} {self.fun_name}",
                               wanted="something that can be saved: a program without objects of this process",
                               where=here(), todo="write cj.export.export(f)(*args).serialize(), which gives bytes")

    def __repr__(self) -> str:
        ins, outs = (", ".join(map(str, avals)) for avals in (self.in_avals, self.out_avals))
        return f"{type(self).__name__}({self.fun_name}: ({ins}) -> ({outs}))"


@public
class Traced(Stage):
    """A function traced for arguments of certain types."""

    def __init__(self, program: Program, in_tree: TreeDef, statics: Statics, static_key: Any = (),
                 at: Place | Request | None = None) -> None:
        self._program, self._in_tree = program, in_tree
        self._statics, self._static_key = statics, static_key
        self._at = at  # where its arguments are; None if they may move

    @property
    def jaxpr(self) -> ClosedJaxpr:
        """The program."""
        return self._program.closed

    @property
    def wanted(self) -> Wanted | None:
        """How it is divided among several devices, if that is said."""
        return wanted_by(self._at) if type(self._at) is Request else None

    def lower(self, platform: str | None = None, *, lowering_platforms: Sequence[str] | None = None) -> Lowered:
        """Lower it for a platform; by default, that of its arguments' device, or of the default device.

        JAX's `lowering_platforms` takes one name, too: a module is for one platform, and `cj.export` makes several.
        """
        if lowering_platforms:
            platform = _only_platform(platform, lowering_platforms)
        if platform is not None and not (isinstance(platform, str) and platform.isidentifier()):
            raise CorejaxTypeError("lower: a platform must be given by its name", where=here(),
                                   got=f"{kind_of(platform)}: {platform!r:.80}", wanted="'cpu', 'cuda' or another",
                                   todo="leave it out for the default")
        if self._program.holds:
            raise CorejaxNotImplementedError(
                f"lower: {self.fun_name} reads or writes objects that hold arrays, such as references", where=here(),
                got="a program that is made anew from what they hold, at each call",
                wanted="a function of arrays, whose results are all that it does",
                todo="lower a function that takes the array and returns the new one; within it, references may be made")
        at = self._at
        if platform is None and at is not None:
            platform = at.group.compiler if type(at) is Request else at.compiler
        closed, kept = self.jaxpr, list(range(len(self.jaxpr.in_avals)))
        if not self._program.keep_unused:
            closed, kept = without_unused(closed)
        donated = [k for k, i in enumerate(kept) if self._program.donated[i]]
        request = at._replace(arguments=tuple([at.arguments[i] for i in kept])) if type(at) is Request else None
        return Lowered(self, stages.lower_jaxpr(closed, donated, self._program.name, platform, request), kept)


def _only_platform(platform: str | None, names: Sequence[str]) -> str:
    """The platform among the `names` that `lower` got beside the argument `platform`."""
    names = (names,) if isinstance(names, str) else tuple(names)
    if len(names) != 1 or platform is not None:
        given = "" if platform is None else f" and platform={platform!r}"
        raise CorejaxValueError("lower: a program is lowered for one platform", where=here(),
                                got=f"lowering_platforms={names}{given}", wanted="one name",
                                todo="lower it for each; or write cj.export.export(f, platforms=...) for one object "
                                     "that runs on several")
    return names[0]


@public
class Lowered(Stage):
    """A function lowered to a StableHLO module."""

    def __init__(self, traced: Traced, flat: stages.Lowered, kept: list[int]) -> None:
        self.traced, self._flat, self._kept = traced, flat, kept
        self._program, self._in_tree = traced._program, traced._in_tree

    @property
    def platform(self) -> str:
        """The platform that it was lowered for."""
        return self._flat.platform

    @property
    def module(self) -> Any:
        """The MLIR module itself."""
        return self._flat.module

    def as_text(self, dialect: str = "stablehlo", *, debug_info: bool = False) -> str:
        """The module's text, before any optimization.

        `dialect` is "stablehlo", or "hlo" for the form that the compiler optimizes. With `debug_info`, each operation
        says which equation it comes from, and where that is in the source.
        """
        return self._flat.as_text(dialect, debug_info=debug_info)

    def cost_analysis(self) -> dict[str, float]:
        """The compiler's estimates of work for the unoptimized program: `flops` and others."""
        return self._flat.cost_analysis()

    def compile(self, compiler_options: Mapping[str, Any] | None = None, device: object = None) -> Compiled:
        """Compile it, with compiler options; these take precedence over those given to `jit`.

        Unless a device is given, it is compiled for the device of the arguments that it was traced with.

        >>> import corejax as cj
        >>> lowered = cj.jit(lambda x: x * x).lower(3.0)
        >>> lowered.compile({"xla_backend_optimization_level": 0})(4.0)
        Array(16., dtype=float64, weak_type=True)
        """
        options = {**self._program.options, **dict(settings_of(compiler_options))}
        place = self.traced._at
        if device is None and type(place) is Place and place.compiler == self.platform:
            device = place.device
        return Compiled(self.traced, self._flat.compile(options, device), self._kept)


@public
class Compiled(Stage):
    """A function compiled for arguments of certain types. Calling it with these runs it, and never traces.

    Static arguments may be left out of a call; their values are part of the program.
    """

    def __init__(self, traced: Traced, flat: stages.Compiled, kept: list[int]) -> None:
        self.traced, self._flat, self._kept = traced, flat, kept
        self._program, self._in_tree = traced._program, traced._in_tree
        args, kwargs = self._in_tree.unflatten(self.in_avals)
        plain = not kwargs and not self.donate_argnums and all([type(x) is ShapedArray for x in args])
        #: The argument types that need no further checks; None if arguments aren't all leaves.
        self._plain = args if plain and len(kept) == len(args) else None

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if not kwargs and not is_active() and (
                tuple([x.aval if type(x) is Array else plain_aval(x) for x in args]) == self._plain):
            return self.out_tree.unflatten(self._flat.executable.calls.call(args))
        return self._checked(args, kwargs)

    def _checked(self, args: tuple[object, ...], kwargs: dict[str, Any]) -> Any:
        """Call it with arguments of any kind."""
        traced, program = self.traced, self._program
        dynamic = self._dynamic(args, kwargs)
        leaves, in_tree = trees.flatten(dynamic)
        check_arguments(leaves, in_tree, dynamic, traced._in_tree, traced.in_avals, program.name, "compiled")
        for i, x in enumerate(leaves):
            if isinstance(x, Tracer):
                raise CorejaxTypeError(
                    f"{program.name}: {argument_namer(*dynamic)(i)} is a traced value, and a compiled program runs on "
                    "arrays", got=f"a tracer {x.aval}", wanted="an array", where=here(),
                    todo="under transformations call the jitted function itself")
        gone = [leaves[i] for i in self.donate_argnums if type(leaves[i]) is Array]
        for x in gone:
            if x.is_deleted():
                raise deleted_error(x)  # raised here since the runtime would first write to stderr
        def apply() -> Sequence[Any]:
            return self._flat(*[leaves[i] for i in self._kept])

        outs = program.watched(leaves, apply) if is_active() else apply()
        for x in gone:
            x.delete()  # even if the runtime took it: at its next use, that would write to stderr
        return self.out_tree.unflatten(outs)

    def _dynamic(self, args: tuple[object, ...], kwargs: dict[str, Any]) -> Any:
        """The arguments without static ones, which must have the values this was compiled for or be left out."""
        traced = self.traced
        statics = traced._statics
        if not traced._static_key:
            return args, kwargs
        if not statics.names & kwargs.keys() and len(args) == self._n_positional():
            return args, kwargs
        key = statics.key(args, kwargs)
        if key != traced._static_key:
            raise CorejaxValueError(
                f"{self.fun_name}: the static arguments differ from those that it was compiled for",
                got=_describe(key), wanted=_describe(traced._static_key), where=here(),
                todo="leave them out, or call the jitted function itself, which compiles again")
        return statics.split(args, kwargs)[1]

    def _n_positional(self) -> int:
        return len(self._in_tree.children()[0].children())

    def as_text(self) -> str:
        """The optimized program, in HLO."""
        return self._flat.as_text()

    def cost_analysis(self) -> dict[str, float]:
        """The compiler's estimates of work: `flops`, `bytes accessed` and others."""
        return self._flat.cost_analysis()

    def memory_analysis(self) -> Any:
        """What memory it takes, in bytes: `argument_size_in_bytes`, `output_...`, `temp_...`, `generated_code_...`."""
        return self._flat.memory_analysis()

    def runtime_executable(self) -> Any:
        """The runtime's own object."""
        return self._flat.executable.loaded

    @property
    def device(self) -> Any:
        """The device that it was compiled for."""
        return self._flat.executable.device


def _describe(key: tuple[Any, ...]) -> str:
    """Describe the static part of a call."""
    total, *chosen = key
    named = [f"args[{at}]={shown(atom):.60}" if isinstance(at, int) else f"{at}={shown(atom):.60}"
             for at, atom in chosen]
    return f"{', '.join(named) or 'none'}, in a call with {total} positional arguments"
