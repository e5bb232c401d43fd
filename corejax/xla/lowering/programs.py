"""Lowering: from a jaxpr to a StableHLO module.

Each computation is one module in an MLIR context of its own, so whatever it interned is freed with it. The walk is a
loop over the equations: for each, the primitive's rule for the platform turns MLIR values into MLIR values. All rules
get the same `Lowering` as their `ctx`; its view of the current equation moves along.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from corejax.arrays.partitions import PartitionSpec
from corejax.arrays.storage import is_common, to_numpy
from corejax.base import _jaxlib, dtypes
from corejax.base.avals import ShapedArray
from corejax.base.effects import ordered
from corejax.base.errors import CorejaxError, CorejaxTypeError, kind_of
from corejax.base.source import at_hand, describe, tell_where
from corejax.base.tracebacks import is_from_beneath
from corejax.interpreters.staging import stage_closed
from corejax.interpreters.stored import moved, on_stored
from corejax.ir.surgery import dce
from corejax.kernel.checks import (
    check_open,
    failed_lowering,
    failed_rule,
    foreign_value,
    rule_error,
    undeclared_effects,
    wrong_lowering,
)
from corejax.kernel.jaxpr import ClosedJaxpr, Jaxpr, JaxprEqn, Literal, no_effects
from corejax.kernel.keys import compiled_key, param_key
from corejax.xla.lowering import custom_calls
from corejax.xla.lowering.callback import checked_callback
from corejax.xla.lowering.custom_calls import Layouts
from corejax.xla.lowering.donation import donation
from corejax.xla.lowering.folding import DIVISIONS, divisible
from corejax.xla.lowering.locations import LocatedRules
from corejax.xla.lowering.nesting import Depth, order
from corejax.xla.lowering.ordering import InOrder, Tokens
from corejax.xla.lowering.packed import in_range
from corejax.xla.lowering.partitioning import Manual, Partitioning, Wanted, check_effects
from corejax.xla.lowering.types import Types, dense_attribute, describe_type

if TYPE_CHECKING:
    from corejax.arrays.meshes import AbstractMesh, Mesh
    from corejax.arrays.shardings import NamedSharding
    from corejax.kernel.primitive import Primitive, Rule

#: Array constants of at most this many elements are written into the module; larger ones become arguments.
BAKED_ELEMENTS = 64


#: The runtime's function that calls one of Python.
_CALLBACK = "xla_ffi_python_cpu_callback"


class _NoPrimitive(NamedTuple):
    """Stands for the primitive where a callback doesn't come from one."""

    name: str = "callback"
    origin: str = "corejax"


class Lowering(InOrder):
    """What a lowering rule sees as `ctx`: the current equation, and ways to make operations.

    `avals_in`, `avals_out` and `out_types` (MLIR types) belong to the equation. Operations are inserted at MLIR's
    current insertion point, so a rule that builds a region enters its block with `ir.InsertionPoint(block)` first.
    """

    __slots__ = ("out_types", "platform", "callbacks", "types", "module", "arguments", "partitioning", "manual",
                 "depth", "_create", "_made", "_with_regions", "_functions", "_names", "_rules", "_location",
                 "_attributes", "_built", "_underway")

    def __init__(self, platform: str, name: str) -> None:
        ir = self.ir = _jaxlib.ir
        self.platform = platform
        self.callbacks: list[Callable[..., Any]] = []
        self.context = _jaxlib.mlir_context()
        self._location = ir.Location.unknown(self.context)
        with self.context, self._location:
            self.module = ir.Module.create()
            self.module.operation.attributes["sym_name"] = ir.StringAttr.get(_symbol(name))
        self.types = Types(ir)
        self.eqn: JaxprEqn | None = None
        self.out_types: tuple[Any, ...] = ()
        #: The types of the main function's arguments.
        self.arguments: list[ShapedArray] = []
        #: What the module says about devices; None as long as that is nothing.
        self.partitioning: Partitioning | None = None
        self.manual: Manual | None = None
        self._create = ir.Operation.create
        self._made: Any = None
        self._with_regions: Any = None
        self._functions: dict[Hashable, tuple[Any, list[Any], Depth]] = {}
        self._built: list[Any] = []  # functions, callees first
        self.depth = Depth()  # of the current function, and of the whole module once it is complete
        self._names: dict[str, int] = {}
        self._rules: dict[Primitive, Rule] = {}
        self._literals: dict[Any, Any] = {}
        self._attributes: dict[str, Any] = {}
        self._underway: set[Hashable] = set()  # what is being lowered by functions
        self._tokens = Tokens()

    # The current equation

    @property
    def avals_in(self) -> list[ShapedArray]:
        """The types of the equation's operands."""
        return [atom.aval for atom in self.eqn.invars]  # type: ignore[union-attr]

    @property
    def avals_out(self) -> list[ShapedArray]:
        """The types of the equation's results."""
        return [var.aval for var in self.eqn.outvars]  # type: ignore[union-attr]

    @property
    def mesh(self) -> Mesh | AbstractMesh | None:
        """The mesh of devices for each of which the operations are; None where they are of whole arrays."""
        return None if self.manual is None else self.manual.mesh

    @property
    def manual_axes(self) -> frozenset[Hashable]:
        """The axes of this mesh along which the operations are for each device; the compiler divides along others."""
        return frozenset() if self.manual is None else self.manual.axes

    def type_of(self, aval: ShapedArray) -> Any:
        """The MLIR type of an aval."""
        return self.types[aval]

    # Making operations

    def attribute(self, text: str) -> Any:
        """The attribute that MLIR parses from this text, cached for each module."""
        found = self._attributes.get(text)
        if found is None:
            found = self._attributes[text] = self.ir.Attribute.parse(text, self.context)
        return found

    def op(self, name: str, operands: Sequence[object], attributes: dict[str, Any] | None = None,
           out_types: Sequence[Any] | None = None, regions: int = 0) -> Any:
        """Insert an operation by name. Returns its result, or the list of results unless there is exactly one.

        The result types are the equation's unless given. This takes a third of the time of the generated classes, and
        keeps the compiler from folding integer divisions by zero, which would kill the process.
        """
        context = self.context
        for x in operands:
            if getattr(x, "context", None) is not context:  # a value of another context crashes the bindings
                raise foreign_value(self.eqn, x)
        if name in DIVISIONS:
            operands = divisible(operands)
        wanted = self.out_types if out_types is None else out_types
        made = self._create(name, wanted, operands, attributes, None, regions)
        if regions:
            self._with_regions = made
        if len(wanted) != 1:
            return list(made.results)
        value = made.result
        if out_types is None:
            self._made = value
        return value

    @property
    def regions(self) -> Sequence[Any]:
        """The regions of the operation that `op` made last with any. Its results' `owner` has them too, but loads
        classes for all operations that exist, once in a process, which takes as long as compiling a small program.
        """
        found: Sequence[Any] = self._with_regions.regions
        return found

    def constant(self, value: object, aval: ShapedArray | None = None) -> Any:
        """A constant from a NumPy array or scalar, an Array, or a Python scalar with its aval."""
        host = np.asarray(value) if aval is None else np.asarray(value, aval.dtype)
        kind = self.types[ShapedArray(host.shape, host.dtype)]
        attribute = dense_attribute(self.ir, host, kind)
        return self._create("stablehlo.constant", [kind], [], {"value": attribute}).result

    def call(self, jaxpr: Jaxpr | ClosedJaxpr, args: Sequence[object], name: str = "", inline: bool = True
             ) -> list[Any]:
        """Call a jaxpr, outlined as a function of the module, and return its results. Equal jaxprs share a function.

        Without `inline`, compilers that can keep a function apart write its results to memory. Else they may compute
        each element anew for each element of what uses it.
        """
        consts: Sequence[Any] = ()
        if isinstance(jaxpr, ClosedJaxpr):
            consts, jaxpr = jaxpr.consts, jaxpr.jaxpr
        args = [*map(self.constant, map(_const_to_numpy, consts)), *self._own(args)]
        function, out_types = self.function(jaxpr, name)
        attributes = {"callee": function}
        if not inline:
            attributes["mhlo.frontend_attributes"] = self.attribute('{inlineable = "false"}')
        return self.in_order(lambda tokens, kinds: self._create(
            "func.call", [*kinds, *out_types], [*tokens, *args], attributes).results, jaxpr.effects)

    def function(self, jaxpr: Jaxpr, name: str = "") -> tuple[Any, list[Any]]:
        """Outline a jaxpr as a function of the module, for an operation that names one: its symbol, and result types.

        `call` is this and the operation `func.call`. The function of a jaxpr with ordered effects takes and returns
        their tokens before everything else.
        """
        self._check_declared(jaxpr)
        function, out_types, depth = self._function(jaxpr, name or jaxpr.name or "fn")
        self.depth = self.depth.above(depth, self.ir.InsertionPoint.current.block)
        return function, out_types

    def _own(self, values: Sequence[object]) -> Sequence[Any]:
        """The values, after checking that they all belong to this module's context."""
        for x in values:
            if getattr(x, "context", None) is not self.context:
                raise foreign_value(self.eqn, x)
        return values

    def _function(self, jaxpr: Jaxpr, name: str) -> tuple[Any, list[Any], Depth]:
        key = compiled_key(jaxpr), self.manual
        found = self._functions.get(key)
        if found is None:
            symbol = self._unique(_symbol(name))
            saved = self.eqn, self.out_types, self._literals, self.depth, self._tokens
            self.depth = Depth()
            try:
                build_function(self, symbol, jaxpr, "private")
                depth = self.depth
            finally:
                self.eqn, self.out_types, self._literals, self.depth, self._tokens = saved
            reference = self.ir.FlatSymbolRefAttr.get(symbol)
            found = self._functions[key] = reference, [self.types[aval] for aval in jaxpr.out_avals], depth
        return found

    def _unique(self, name: str) -> str:
        count = self._names.get(name, 0)
        self._names[name] = count + 1
        return name if not count and name != "main" else self._unique(f"{name}_{count}")

    def lower(self, function: Callable[..., Any], *args: Any) -> Any:
        """Insert what a Python function of arrays computes from these values; return its result, or a list of several.

        The function is traced, and its equations are lowered at the current insertion point, also within a region.
        """
        avals = [self.types.aval(x.type) for x in self._own(args)]
        single = False

        def flat(*xs: Any) -> Sequence[Any]:
            nonlocal single
            outs = function(*xs)
            single = not isinstance(outs, (list, tuple))
            return [outs] if single else outs

        key = self._within(avals)
        saved = self.eqn, self.out_types, self._literals, self._underway
        self._literals = {}  # constants that are inserted in a region aren't visible outside
        self._underway = {*self._underway, key}
        try:
            jaxpr = stage_closed(flat, avals, getattr(function, "__name__", "function"))
            self._check_declared(jaxpr)
            outs = lower_equations(self, jaxpr, dict(zip(jaxpr.invars, args, strict=True)))
        finally:
            self.eqn, self.out_types, self._literals, self._underway = saved
            self._made = None
        return outs[0] if single else outs

    def _within(self, avals: Sequence[ShapedArray]) -> Hashable:
        """What is being lowered; raises if it is being lowered already, since that would never end."""
        eqn = self.eqn
        if eqn is None:
            return None
        key = eqn.primitive, tuple(self.avals_in), param_key(eqn.params), tuple(avals)
        if key in self._underway:
            raise rule_error(eqn.primitive, "xla_translation", "lowers a function that applies the primitive itself",
                             f"{eqn.primitive.name} of {', '.join(map(str, self.avals_in))} within itself",
                             "a function of other primitives, or of smaller operands, so that it ends",
                             "compute it by other primitives")
        return key

    def fill(self, region: Any, types: Sequence[Any], body: Callable[..., Sequence[Any]]) -> None:
        """Give a region its block: `body` gets a value for each of these types, and returns those of the region."""
        block = region.blocks.append(*types)
        with self.ir.InsertionPoint(block):
            self._create("stablehlo.return", [], self._own(body(*block.arguments)))

    def custom_call(self, target: str, args: Sequence[object], *, out_types: Sequence[Any] | None = None,
                    backend_config: Mapping[str, object] | None = None, operand_layouts: Layouts = None,
                    result_layouts: Layouts = None, aliases: Mapping[int, int] | None = None,
                    has_side_effect: bool = False, api_version: int = 4,
                    attributes: dict[str, Any] | None = None) -> list[Any]:
        """Call the native function `target`, which a pack provides in the group `corejax.kernels`; return its results.

        The function reads `backend_config` by name. Layouts are "row" (the default), "column", or a sequence with one
        for each array: such a name, or the axes from the fastest to the slowest. `aliases`, `{operand: result}`, gives
        a result the memory of an operand, which is copied first if it is needed afterwards.
        """
        ir = self.ir
        operands = self._own(args)
        out_types = self.out_types if out_types is None else out_types
        attrs = {"call_target_name": ir.StringAttr.get(target), "api_version": self.attribute(f"{api_version} : i32"),
                 "has_side_effect": self.attribute("true" if has_side_effect else "false"),
                 "backend_config": custom_calls.config(ir, target, backend_config or {})}
        for name, layouts, types in (("operand_layouts", operand_layouts, [x.type for x in operands]),
                                     ("result_layouts", result_layouts, out_types)):
            attrs[name] = custom_calls.layouts(self, target, name, layouts, types)
        once: dict[str, Any] = {}
        if self.partitioning is not None and (has_side_effect or target == _CALLBACK):
            operands, once = self.partitioning.on_one(operands, len(out_types))
            attrs |= once
        if aliases:
            attrs["output_operand_aliases"] = custom_calls.aliases(
                self, target, aliases, [x.type for x in operands], out_types)
        results = list(self._create("stablehlo.custom_call", out_types, operands, attrs | (attributes or {})).results)
        # Else a result of the program could be where one device only has it, and the others have nothing.
        return self.partitioning.whole(results) if self.partitioning is not None and once else results

    def callback(self, function: Callable[..., Sequence[Any]], args: Sequence[Any],
                 out_avals: Sequence[ShapedArray], *, before: Callable[[], None] | None = None) -> list[Any]:
        """Call a Python function from the running program, with a NumPy array for each operand; return the results.

        The function must return an array of exactly the right type for each aval; anything else is an error when the
        program runs. If the equation has effects, the call is made once, and in order if they are ordered; else it may
        be left out if its results aren't used, and made more than once. `before` is called before each run of the
        program, and may raise to prevent it.
        """
        primitive = self.eqn.primitive if self.eqn else _NoPrimitive()
        where = describe(self.eqn.source) if self.eqn else None
        effects = self.eqn.effects if self.eqn else no_effects
        index = np.uint64(len(self.callbacks))
        skipped = len(ordered(effects))
        self.callbacks.append(checked_callback(function, tuple(out_avals), primitive, where, before, skipped))
        out_types = [self.types[aval] for aval in out_avals]
        return self.in_order(lambda tokens, kinds: self.custom_call(
            _CALLBACK, [*tokens, *args], out_types=[*kinds, *out_types], has_side_effect=bool(effects),
            backend_config={"index": index}))

    def _check_declared(self, jaxpr: Jaxpr) -> None:
        """Raise if an equation's lowering has effects that its primitive doesn't declare."""
        eqn = self.eqn
        if eqn is not None and jaxpr.effects and not jaxpr.effects <= eqn.effects:
            raise undeclared_effects(eqn, jaxpr.effects)

    # Several devices

    def on_devices(self, jaxpr: Jaxpr, args: Sequence[Any], mesh: Mesh | AbstractMesh, axes: frozenset[Hashable],
                   in_specs: Sequence[PartitionSpec], out_specs: Sequence[PartitionSpec]) -> list[Any]:
        """What a jaxpr computes on each device of a mesh from its parts of the operands; the results put together.

        Along the mesh's `axes`, the jaxpr is about the parts, and collectives in it exchange data between devices. The
        specs say how operands and results are divided along these axes.
        """
        in_types = [self.types[aval] for aval in jaxpr.in_avals]

        def body(parts: Sequence[Any]) -> list[Any]:
            return lower_equations(self, jaxpr, dict(zip(jaxpr.invars, parts, strict=True)))

        saved = self.eqn, self.out_types
        try:
            return self._partitioned().manual(self._own(args), self.avals_out, Manual(mesh, axes), in_specs, out_specs,
                                              in_types, body)
        finally:
            self.eqn, self.out_types = saved
            self._made = None

    def on_each_device(self, body: Callable[[], Any]) -> Any:
        """The equation's only result, made by `body` for each device along all axes of the mesh, manual or not.

        It must be the same along the axes that aren't manual.
        """
        assert self.manual is not None
        mesh = self.manual.mesh
        if self.manual_axes == set(mesh.axis_names):
            return body()
        every = Manual(mesh, frozenset(mesh.axis_names))
        return self._partitioned().manual([], self.avals_out, every, [], [PartitionSpec()], [], lambda _: [body()])[0]

    def constrain(self, x: Any, sharding: NamedSharding) -> Any:
        """The same array, divided among devices like this."""
        return self._partitioned().constrain(self._own([x])[0], sharding)

    def _partitioned(self) -> Partitioning:
        if self.partitioning is None:
            self.partitioning = Partitioning(self, None)
        return self.partitioning

    # The walk

    def literal(self, literal: Literal) -> Any:
        """The constant for a literal, inserted once in each function."""
        host = _const_to_numpy(literal.val)
        if host.dtype != literal.aval.dtype:
            host = host.astype(literal.aval.dtype)
        key = host.dtype, host.shape, host.tobytes()
        found = self._literals.get(key)
        if found is None:
            found = self._literals[key] = self.constant(host)
        return found


def build_function(ctx: Lowering, symbol: str, jaxpr: Jaxpr, visibility: str, consts: Sequence[object] = (),
                   arg_attributes: Callable[[Any], Sequence[Any]] | None = None) -> Any:
    """Add a function of the constvars and invars to the module; a const that isn't None is baked in instead."""
    ir, types = ctx.ir, ctx.types
    consts = consts or [None] * len(jaxpr.constvars)
    binders = [var for var, const in zip(jaxpr.constvars, consts, strict=True) if const is None] + [*jaxpr.invars]
    kept = ordered(jaxpr.effects) if jaxpr.effects else []
    passed = [ctx.token_type] * len(kept) if kept and visibility == "private" else []
    kind = ir.FunctionType.get([*passed, *[types[var.aval] for var in binders]],
                               [*passed, *[types[aval] for aval in jaxpr.out_avals]])
    function = _jaxlib.func.FuncOp(symbol, kind, visibility=visibility, ip=ir.InsertionPoint(ctx.module.body))
    if arg_attributes is not None:
        function.arg_attrs = ir.ArrayAttr.get(arg_attributes(ir))
    block = function.add_entry_block()
    ctx._literals, ctx._tokens = {}, Tokens()
    with ir.InsertionPoint(block):
        arguments = list(block.arguments)
        env = dict(zip(binders, arguments[len(passed):], strict=True))
        ctx._tokens.put(ctx, kept, arguments[:len(passed)] if passed else [
            ctx._create("stablehlo.create_token", [ctx.token_type], []).result for _ in kept])
        for var, const in zip(jaxpr.constvars, consts, strict=True):
            if const is not None:
                env[var] = ctx.constant(const)
        outs = lower_equations(ctx, jaxpr, env)
        ctx._create("func.return", [], [*ctx._tokens.take(ctx, kept), *outs] if passed else outs)
    ctx._built.append(function)
    return function


def lower_equations(ctx: Lowering, jaxpr: Jaxpr, env: dict[Any, Any]) -> list[Any]:
    """Lower each equation at the current insertion point, and return the values of the jaxpr's outputs."""
    types, rules, literal = ctx.types, ctx._rules, ctx.literal
    outer, around = at_hand.eqn, at_hand.around
    try:
        at_hand.around = sys._getframe(), outer, around
        for eqn in jaxpr.eqns:
            at_hand.eqn = eqn
            primitive, outvars = eqn.primitive, eqn.outvars
            args = [literal(x) if type(x) is Literal else env[x] for x in eqn.invars]
            rule = rules.get(primitive)
            if rule is None:
                rule = rules[primitive] = primitive.lowering(ctx.platform)
            ctx.eqn = eqn
            ctx.out_types = wanted = tuple([types[var.aval] for var in outvars])
            if types.of_packs and (element := moved(eqn)) is not None:
                program = on_stored(eqn, element)
                outs = lower_equations(ctx, program, dict(zip(program.invars, args, strict=True)))
                env.update(zip(outvars, outs, strict=True))
                continue
            ctx._made = None
            try:
                out = rule(ctx, args, **eqn.params)
            except Exception as error:
                raise failed_rule(eqn, error)  # noqa: B904
            if not primitive.multiple_results:
                if out is not ctx._made or out is None:
                    _check(ctx, out, wanted[0])
                env[outvars[0]] = out if not types.packed else in_range(ctx, out, outvars[0].aval, primitive)
                continue
            if not isinstance(out, Sequence) or len(out) != len(wanted):
                raise wrong_lowering(eqn, len(out) if isinstance(out, Sequence) else type(out).__name__,
                             f"a sequence of {len(wanted)} values")
            for var, value, kind in zip(outvars, out, wanted, strict=True):
                _check(ctx, value, kind)
                env[var] = value if not types.packed else in_range(ctx, value, var.aval, primitive)
    except CorejaxError as error:
        tell_where(error)
        raise
    finally:
        at_hand.eqn, at_hand.around = outer, around
    check_open(ctx.ir, jaxpr.eqns)
    return [literal(x) if type(x) is Literal else env[x] for x in jaxpr.outvars]


def _check(ctx: Lowering, value: object, wanted: object) -> None:
    if not isinstance(value, ctx.ir.Value):
        raise wrong_lowering(ctx.eqn, kind_of(value), f"a value of type {describe_type(wanted)}")
    if value.context is not ctx.context:
        raise foreign_value(ctx.eqn, value)
    if value.type != wanted:
        raise wrong_lowering(ctx.eqn, describe_type(value.type), describe_type(wanted))


def lower_module(jaxpr: Jaxpr, consts: Sequence[object], name: str, platform: str, donated: Sequence[int] = (),
                 located: bool = False, wanted: Wanted | None = None) -> Lowering:
    """Lower a jaxpr to a module. A const that isn't None is baked in; the other constvars are leading arguments.

    `wanted` says how the program is divided among several devices. An equation that can't be lowered, such as a
    derivative that doesn't exist, is left out if nothing needs its results.
    """
    try:
        return _lower_module(jaxpr, consts, name, platform, donated, located, wanted)
    except CorejaxError as error:
        needed = dce(jaxpr, (True,) * len(jaxpr.outvars), instantiate=True)[0]
        if len(needed.eqns) == len(jaxpr.eqns):
            raise
        try:
            return _lower_module(needed, consts, name, platform, donated, located, wanted)
        except CorejaxError:
            raise error from None


def _lower_module(jaxpr: Jaxpr, consts: Sequence[object], name: str, platform: str, donated: Sequence[int],
                  located: bool, wanted: Wanted | None) -> Lowering:
    ctx = Lowering(platform, f"jit_{name}")
    if located:
        ctx._rules = LocatedRules(ctx)
    ctx._names["main"] = 1
    baked = list(consts)
    free = [var for var, const in zip(jaxpr.constvars, baked, strict=True) if const is None]
    ctx.arguments = [var.aval for var in (*free, *jaxpr.invars)]
    attributes: Callable[[Any], Sequence[Any]] | None = None
    if donated:
        attributes = partial(donation, offset=len(free), jaxpr=jaxpr, donated=frozenset(donated))
    try:
        with ctx.context, ctx._location:
            if wanted is not None:
                if len(wanted.devices) > 1:
                    check_effects(jaxpr.effects)
                ctx.partitioning = Partitioning(ctx, wanted.devices)
                attributes = partial(ctx.partitioning.arguments, wanted=wanted.arguments, avals=ctx.arguments,
                                     donation=attributes)
            function = build_function(ctx, "main", jaxpr, "public", baked, attributes)
            if ctx.partitioning is not None:
                results = [None] * len(jaxpr.outvars) if wanted is None else wanted.results
                ctx.partitioning.finish(function, results, jaxpr.out_avals)
            order(ctx.module.body, ctx._built, ctx.depth)
    except Exception as error:
        if isinstance(error, CorejaxError) or ctx.eqn is None or not is_from_beneath(error):
            raise
        raise failed_lowering(ctx.eqn, error) from error
    ctx.eqn, ctx._literals, ctx._built = None, {}, []
    return ctx


def _const_to_numpy(value: Any) -> np.ndarray:
    return to_numpy(value) if hasattr(value, "aval") else np.asarray(value)


def bake(consts: Sequence[Any]) -> list[Any | None]:
    """For each constant, its ndarray if it is small enough to be baked into the module, else None.

    What is divided among processes isn't: none of them has all of it.
    """
    for const in consts:
        if not hasattr(const, "aval") and not isinstance(const, (np.ndarray, np.generic)):
            raise CorejaxTypeError("a jaxpr's constant is not an array", got=type(const).__name__)
    return [_const_to_numpy(const) if const.size <= BAKED_ELEMENTS and const.dtype != dtypes.float0
            and (not hasattr(const, "aval") or is_common(const)) else None for const in consts]


def _symbol(name: str) -> str:
    return re.sub(r"[^\w.$-]+", "_", name).strip("_") or "fn"
