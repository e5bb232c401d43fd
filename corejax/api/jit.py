"""`jit`: trace a function once for each signature, compile it, call the compiled program."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, ParamSpec, TypeVar, overload

from corejax.api import retraces, shardings
from corejax.api.arguments import wraps
from corejax.api.calls import Lookup, make_call
from corejax.api.programs import Program, explain_leak, only, table_of
from corejax.api.retraces import Signature
from corejax.api.signatures import avals_of, types_of
from corejax.api.stages import Lowered, Traced
from corejax.api.staging import ShapeDtypeStruct, abstract_leaves, trace_program
from corejax.api.statics import Statics, choose, static_names, static_positions
from corejax.base import trees
from corejax.base.avals import ShapedArray
from corejax.base.caches import generation
from corejax.base.config import config
from corejax.base.errors import ConcretizationError, CorejaxTypeError, CorejaxValueError
from corejax.base.source import NOWHERE, at_hand, here, is_librarys
from corejax.base.standins import without_standins
from corejax.base.tracebacks import public
from corejax.base.trees import TreeDef
from corejax.eager.evaluate import EvalTrace
from corejax.eager.watched import is_watched
from corejax.interpreters.calling import call_python, runs_python
from corejax.interpreters.leaves import (
    FlatFun,
    argument_namer,
    call_root,
    check_callable,
    name_of,
    values,
    with_kwargs,
)
from corejax.kernel.context import context
from corejax.kernel.keys import param_key
from corejax.xla.runtime.options import settings_of
from corejax.xla.runtime.places import Group

if TYPE_CHECKING:
    from corejax.api.protocols import Jitted

P = ParamSpec("P")
R = TypeVar("R")

Positions = int | Sequence[int] | None
Names = str | Iterable[str] | None


class _Options(NamedTuple):
    static_argnums: tuple[int, ...]
    static_argnames: tuple[str, ...]
    donate_argnums: tuple[int, ...]
    donate_argnames: tuple[str, ...]
    inline: bool
    keep_unused: bool
    compiler_options: tuple[Any, ...]
    in_shardings: Any
    out_shardings: Any


@overload
def jit(fun: Callable[P, R], *, static_argnums: Positions = ..., static_argnames: Names = ...,
        donate_argnums: Positions = ..., donate_argnames: Names = ..., inline: bool = ..., keep_unused: bool = ...,
        compiler_options: Mapping[str, Any] | None = ..., in_shardings: Any = ..., out_shardings: Any = ...
        ) -> Jitted[P, R]: ...
@overload
def jit(fun: None = None, *, static_argnums: Positions = ..., static_argnames: Names = ...,
        donate_argnums: Positions = ..., donate_argnames: Names = ..., inline: bool = ..., keep_unused: bool = ...,
        compiler_options: Mapping[str, Any] | None = ..., in_shardings: Any = ..., out_shardings: Any = ...
        ) -> Callable[[Callable[P, R]], Jitted[P, R]]: ...
@public
def jit(fun: Callable[..., Any] | None = None, *, static_argnums: Positions = None, static_argnames: Names = None,
        donate_argnums: Positions = None, donate_argnames: Names = None, inline: bool = False,
        keep_unused: bool = False, compiler_options: Mapping[str, Any] | None = None, in_shardings: Any = None,
        out_shardings: Any = None) -> Any:
    """Compile a function: the result does the same as one program, compiled at the first call with these types.

    `static_*`: arguments that aren't data; they must be hashable, and each new value is traced again. `donate_*`:
    arguments whose memory the program may overwrite; they can't be used afterwards. `inline`: when traced within
    another program, put the equations there instead of a call. `keep_unused`: keep arguments that the program
    ignores. `compiler_options`: options for the compiler, by name; within another program, that program's options
    apply instead. `in_shardings`, `out_shardings`: how arguments and results are divided among the devices of a mesh:
    a sharding for all, or one for each argument (for each result), or for each leaf of it; `None` where nothing is
    said: arguments stay as they are, and the compiler decides about results.

    The result has the methods `trace`, `lower`, `eval_shape` (all with the arguments of a call) and `clear_cache`.

    >>> import corejax as cj
    >>> @cj.jit
    ... def f(x, y):
    ...     return x * y + 1.0
    >>> f(2.0, 3.0)
    Array(7., dtype=float64, weak_type=True)
    """
    if fun is None:
        return partial(jit, static_argnums=static_argnums, static_argnames=static_argnames, inline=inline,
                       donate_argnums=donate_argnums, donate_argnames=donate_argnames, keep_unused=keep_unused,
                       compiler_options=compiler_options, in_shardings=in_shardings, out_shardings=out_shardings)
    check_callable(fun, "jit")
    options = _Options(static_positions(static_argnums, "jit"), static_names(static_argnames, "jit"),
                       static_positions(donate_argnums, "jit", "donate_argnums"),
                       static_names(donate_argnames, "jit", "donate_argnames"), bool(inline), bool(keep_unused),
                       settings_of(compiler_options), shardings.checked(in_shardings, "in_shardings"),
                       shardings.checked(out_shardings, "out_shardings"))
    staging = _Staging(fun, options)
    result: Any = wraps(fun, make_call(staging.call, staging.lookup))
    result.trace, result.lower, result.eval_shape = staging.trace, staging.lower, staging.eval_shape
    result.clear_cache = staging.table.clear
    return result


class _Staging:
    """A function with its options and its programs: the part of `jit` that isn't on the fast path."""

    def __init__(self, fun: Callable[..., Any], options: _Options) -> None:
        self.fun, self.options = fun, options
        self.name = name_of(fun)
        self.statics = Statics(fun, options.static_argnums, options.static_argnames, "jit")
        self.donate_nums, self.donate_names = choose(fun, options.donate_argnums, options.donate_argnames, "jit",
                                                     "donate_arg")
        both: Any = (self.statics.nums & self.donate_nums) or (self.statics.names & self.donate_names)
        if both:
            raise CorejaxValueError("jit: an argument can't be both static and donated", got=f"{sorted(both)} is both",
                                    wanted="one of static_* and donate_*", where=here(),
                                    todo="remove it from one of the two")
        self.table = table_of(fun, options._replace(
            compiler_options=param_key(dict(options.compiler_options)),
            in_shardings=shardings.key_of(options.in_shardings), out_shardings=shardings.key_of(options.out_shardings)))
        self.lookup = Lookup(self.table, self.statics)

    def call(self, args: tuple[Any, ...], kwargs: dict[str, Any], place: Any = None) -> Any:
        """Call it with any arguments, under any transformation; `place` is where `Lookup` expects the program."""
        since = generation()
        function, dynamic = self.statics.split(args, kwargs)
        if runs_python():
            return call_python(with_kwargs(function), dynamic, "jit", argument_namer(*dynamic))
        static_key = self.statics.key(args, kwargs)
        leaves, in_tree = trees.flatten(dynamic, None, call_root)
        avals: tuple[Any, ...] = types_of(leaves)
        if None in avals:
            leaves = without_standins(leaves)
            avals = avals_of(leaves, "jit", argument_namer(*dynamic))
        signature = Signature(in_tree, avals, static_key, config.default_bits, context.axes)
        try:
            program = self.table.general.get(signature)
        except Exception as error:
            raise _incomparable(error) from error
        if program is None:
            if config.explain_retraces and self.table.general:
                retraces.tell(self.name, list(self.table.general), signature, argument_namer(*dynamic))
            program = self._trace(function, dynamic, in_tree, avals)
            if program.cacheable:
                self.table.put(signature, program, since)
        if place is not None and program.cacheable and not context.axes:
            known, key = place
            known[key] = program
            self.table.check(since)
        trace = context.trace
        if type(trace) is not EvalTrace and not is_watched(trace):
            return program.bind(values(leaves, "jit", argument_namer(*dynamic)))
        try:
            return program.run(leaves) if type(trace) is EvalTrace else program.run_watched(leaves)
        except ConcretizationError as error:
            raise explain_leak(error, leaves, self.name) from error

    def _trace(self, function: Callable[..., Any], dynamic: Any, in_tree: TreeDef | None,
               avals: Sequence[ShapedArray]) -> Program:
        options = self.options
        ins = shardings.of_arguments(options.in_shardings, dynamic[0], avals, argument_namer(*dynamic))
        flat = FlatFun(with_kwargs(function), in_tree, "jit")
        outer = at_hand.inside
        try:
            if is_librarys(self.fun):  # other callers will use this program
                at_hand.inside = sys._getframe(), NOWHERE
            closed = trace_program(flat, avals, self.name)
        finally:
            at_hand.inside = outer
        outs = shardings.of_results(options.out_shardings, flat, closed.out_avals)
        return Program(closed, flat.out_tree, self.name, self._donated(dynamic), options.inline, options.keep_unused,
                       dict(options.compiler_options), ins, outs)

    def _donated(self, dynamic: Any) -> tuple[bool, ...]:
        """Whether each leaf is donated."""
        args, kwargs = dynamic
        if not self.donate_nums and not self.donate_names:
            return (False,) * len(trees.flatten(dynamic)[0])
        # positions include static arguments
        at = [i for i in range(len(args) + len(self.statics.nums)) if i not in self.statics.nums]
        chosen = [*[i in self.donate_nums for i in at[: len(args)]], *[k in self.donate_names for k in sorted(kwargs)]]
        parts = [*args, *[kwargs[k] for k in sorted(kwargs)]]
        return tuple([gone for part, gone in zip(parts, chosen, strict=True) for _ in trees.flatten(part)[0]])

    # Stages

    @public
    def trace(self, *args: Any, **kwargs: Any) -> Traced:
        """The traced program for these arguments, which may be `ShapeDtypeStruct`s."""
        function, dynamic = self.statics.split(args, kwargs)
        leaves, in_tree = trees.flatten(dynamic, None, call_root)
        avals = abstract_leaves(leaves, "jit", argument_namer(*dynamic))
        program = self._trace(function, dynamic, in_tree, avals)
        asked = tuple([x.sharding if type(x) is ShapeDtypeStruct else None for x in leaves])
        if not program.in_shardings and any([sharding is not None for sharding in asked]):
            program.in_shardings = shardings.fitting(asked, avals, argument_namer(*dynamic))
        deciding = only(leaves, program.used)
        home: Any = program.home(deciding)
        at = program.request(home, deciding) if program.mesh is not None or type(home) is Group else home
        return Traced(program, in_tree, self.statics, self.statics.key(args, kwargs), at)

    @public
    def lower(self, *args: Any, **kwargs: Any) -> Lowered:
        """The program for these arguments in StableHLO."""
        return self.trace(*args, **kwargs).lower()

    @public
    def eval_shape(self, *args: Any, **kwargs: Any) -> Any:
        """The types of the result for these arguments."""
        return self.trace(*args, **kwargs).out_info


def _incomparable(error: Exception) -> CorejaxTypeError:
    return CorejaxTypeError("jit: a static argument, or the static part of a pytree node, can't be compared",
                            got=f"{type(error).__name__}: {error}", where=here(),
                            wanted="values with == and hash: they are part of the key of the traced program",
                            todo="make arrays ordinary arguments, or data fields of the class; make lists tuples")
