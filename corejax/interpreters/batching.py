"""Batching: each value may carry an extra axis that the user's function doesn't see."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any, NamedTuple

from corejax.arrays.array import Array
from corejax.base.avals import ShapedArray, aval_of
from corejax.base.caches import WeakCache
from corejax.base.errors import CorejaxError, RuleError
from corejax.installed.roles import roles
from corejax.interpreters.staging import stage_closed
from corejax.ir.arguments import check_each, check_jaxpr
from corejax.ir.interpret import eval_jaxpr
from corejax.kernel import checks
from corejax.kernel.axes import AxisEnv, NamedAxis
from corejax.kernel.context import context
from corejax.kernel.jaxpr import Jaxpr, Params, subjaxprs
from corejax.kernel.primitive import Primitive
from corejax.kernel.trace import Trace, Tracer, check_belongs


class Axis(NamedTuple):
    """The mapped axis as vmap rules see it: its size, its name or None, and along what it is divided among devices.

    `spmd` is the name of an axis of a mesh, or a tuple of names; None if the user hasn't said.
    """

    size: int
    name: Hashable = None
    spmd: Hashable = None


class BatchTracer(Tracer):
    """A value with the batch axis at `dim`; `aval` is the type without it."""

    __slots__ = ("val", "dim")

    def __init__(self, trace: Trace, val: Any, dim: int, aval: ShapedArray) -> None:
        self._trace = trace
        self.val = val
        self.dim = dim
        self.aval = aval


class BatchTrace(Trace):
    """Applies a primitive's vmap rule if an operand is batched or the params name the axis."""

    __slots__ = ("axis", "known")
    is_mapping = True
    parent: Trace

    def __init__(self, parent: Trace, axis: Axis) -> None:
        super().__init__(parent)
        self.axis = axis
        self.known: dict[ShapedArray, tuple[int | None, ShapedArray]] = {}  # last dim and type, by result type

    def process(self, primitive: Primitive, args: Sequence[object], params: Params) -> Any:
        vals: list[Any] = []
        dims: list[int | None] = []
        batched = False
        for x in args:
            if type(x) is BatchTracer and x._trace is self:
                vals.append(x.val)
                dims.append(x.dim)
                batched = True
            else:
                vals.append(x if type(x) is Array else self.rule_operand(primitive, len(vals), x))
                dims.append(None)
        parent, axis = self.parent, self.axis
        context.trace = parent
        try:
            if not batched and (axis.name is None or not are_about(params, axis.name)):
                return parent.process(primitive, vals, params)
            if primitive.effects is not None:
                checks.check_effects_allowed(primitive, "vmap", args, params)
            # a program that wasn't traced yet only knows its result types once it has run
            runs_first = primitive.evaluate is not None
            expected: Any = None if runs_first else primitive.infer(tuple([aval_of(x) for x in args]), params)
            try:
                result = (primitive.vmap(axis, vals, dims, **params) if axis.spmd is None else
                          _divided(primitive, axis, vals, dims, params))
            except Exception as error:
                raise _failed(primitive, args, params, error)  # noqa: B904
            if runs_first:
                expected = primitive.infer(tuple([aval_of(x) for x in args]), params)
            if type(result) is not tuple or len(result) != 2:
                result = checks.check_sequence(primitive, "vmap", result, 2, "parts of (output, dim)")
            out, out_dim = result
        finally:
            context.trace = self
        if not primitive.multiple_results:
            return self._box(primitive, out, out_dim, expected)
        outs = checks.check_sequence(primitive, "vmap", out, len(expected), "outputs")
        out_dims = checks.check_sequence(primitive, "vmap", out_dim, len(expected), "output dims")
        return [self._box(primitive, o, d, aval) for o, d, aval in zip(outs, out_dims, expected, strict=True)]

    def process_one(self, primitive: Primitive, x: Any) -> Any:
        if not (type(x) is BatchTracer and x._trace is self and primitive.vmap_binds_itself and self.axis.spmd is None):
            return super().process_one(primitive, x)
        expected, parent = primitive.infer((x.aval,), {}), self.parent
        context.trace = parent
        try:
            out = parent.process_one(primitive, x.val)
        except Exception as error:
            raise _failed(primitive, (x,), {}, error)  # noqa: B904
        finally:
            context.trace = self
        return self._box(primitive, out, x.dim, expected)

    def process_two(self, primitive: Primitive, x: Any, y: Any, alike: ShapedArray | None = None) -> Any:
        if not primitive.vmap_binds_itself or self.axis.spmd is not None:
            return super().process_two(primitive, x, y, alike)
        left, right = type(x) is BatchTracer and x._trace is self, type(y) is BatchTracer and y._trace is self
        if left and right and x.dim == y.dim and x.aval.shape == y.aval.shape:
            val, other, dim = x.val, y.val, x.dim
        elif left and type(y) is Array and not y.aval.shape:
            val, other, dim = x.val, y, x.dim
        elif right and type(x) is Array and not x.aval.shape:
            val, other, dim = x, y.val, y.dim
        else:
            return super().process_two(primitive, x, y, alike)
        expected, parent = primitive.infer((x.aval, y.aval), {}), self.parent
        context.trace = parent
        try:
            out = parent.process_two(primitive, val, other)
        except Exception as error:
            raise _failed(primitive, (x, y), {}, error)  # noqa: B904
        finally:
            context.trace = self
        return self._box(primitive, out, dim, expected)

    def _box(self, primitive: Primitive, out: Any, dim: int | None, expected: ShapedArray) -> Any:
        wanted = self.known.get(expected)
        if wanted is None or dim is not wanted[0] or (
                type(out) is not Array and getattr(out, "_trace", None) is not self.parent) or (
                out.aval is not wanted[1]):
            out = checks.check_batched(primitive, out, dim, self.axis.size, expected, self.parent)
            self.known[expected] = dim, out.aval
        return out if dim is None else BatchTracer(self, out, dim, expected)


def _divided(primitive: Primitive, axis: Axis, vals: Sequence[Any], dims: Sequence[int | None], params: Params) -> Any:
    """What the rule returns; programs that it maps along this axis are divided along the same axes of a mesh."""
    before = context.spmd
    context.spmd = axis.spmd
    try:
        return primitive.vmap(axis, vals, dims, **params)
    finally:
        context.spmd = before


def are_about(params: Params, name: object) -> bool:
    """Whether the params name the axis: directly, in a tuple, or in an equation of a jaxpr."""
    for value in params.values():
        if type(value) is Jaxpr:
            if _jaxpr_names(value, name):
                return True
        elif type(value) is tuple:
            if any([_jaxpr_names(v, name) if type(v) is Jaxpr else type(v) is type(name) and v == name for v in value]):
                return True
        elif type(value) is type(name) and value == name:
            return True
    return False


_jaxpr_names = WeakCache(lambda jaxpr, name: any([are_about(eqn.params, name) for eqn in jaxpr.eqns]))


def without_axis(aval: ShapedArray, dim: int) -> ShapedArray:
    """The type of a slice along `dim`."""
    return aval.update(shape=(*aval.shape[:dim], *aval.shape[dim + 1:]))


def with_axis(aval: ShapedArray, dim: int | None, size: int) -> ShapedArray:
    """The type with a new axis of this size at `dim`; the type itself if `dim` is None."""
    return aval if dim is None else aval.update(shape=(*aval.shape[:dim], size, *aval.shape[dim:]))


def vmap(fun: Callable[..., Sequence[Any]], size: int, axis_name: object, args: Sequence[Any],
         in_dims: Sequence[int | None], spmd: Hashable = None) -> tuple[list[Any], list[int | None]]:
    """Outputs of `fun` mapped over the axes `in_dims` of `args`, and where the mapped axis is in each."""
    caller, axes = context.trace, context.axes
    trace = BatchTrace(caller, Axis(size, axis_name, spmd))
    boxed = [x if d is None else BatchTracer(trace, x, d, without_axis(x.aval, d))
             for x, d in zip(args, in_dims, strict=True)]
    context.trace = trace
    if axis_name is not None:
        context.axes = (*axes, NamedAxis(axis_name, size))
    try:
        outs: list[Any] = []
        dims: list[int | None] = []
        for x in fun(*boxed):
            own = type(x) is BatchTracer and x._trace is trace
            if not own:
                check_belongs(x, caller, "vmap")
            outs.append(x.val if own else x)
            dims.append(x.dim if own else None)
    finally:
        context.trace, context.axes = caller, axes
        trace.live = False
    return outs, dims


def to_dim(x: object, dim: int | None, wanted: int, size: int) -> Any:
    """`x` with its batch axis moved from `dim` to `wanted`; repeated along a new one if it has none."""
    if dim is None:
        return roles.expand(x, size, wanted)
    return x if dim == wanted else roles.move_axis(x, dim, wanted)


def in_turn(primitive: Primitive, axis: Axis, args: Sequence[object], dims: Sequence[int | None], params: Params
            ) -> tuple[Any, Any]:
    """What a vmap rule returns that applies the primitive to one slice after the other."""
    mapped = [to_dim(x, d, 0, axis.size) for x, d in zip(args, dims, strict=True) if d is not None]

    def one(slices: Sequence[object]) -> Any:
        rest = iter(slices)
        return primitive.bind(*[x if d is None else next(rest) for x, d in zip(args, dims, strict=True)], **params)

    outs = roles.sequential_map(one, mapped)
    return outs, ([0] * len(outs) if primitive.multiple_results else 0)


def _failed(primitive: Primitive, args: Sequence[object], params: Params, error: Exception) -> Exception:
    """What to raise for an error of a vmap rule: operands that don't fit a program in the params come first.

    Where results are only known once the rule has run, `abstract_eval`, which refuses them, hasn't been called yet.
    """
    if primitive.evaluate is not None and any(True for _ in subjaxprs(params)):
        try:
            primitive.infer(tuple([aval_of(x) for x in args]), params)
        except CorejaxError as refusal:
            if not isinstance(refusal, RuleError):
                refusal.__suppress_context__ = True
                return refusal
    return checks.failed(primitive, "vmap", error)


def vmap_jaxpr(jaxpr: Jaxpr, size: int, axis_name: Hashable, in_dims: Sequence[int | None],
               out_dims: Sequence[int | None] | None = None) -> tuple[Jaxpr, tuple[int | None, ...]]:
    """The mapped jaxpr, and the dims of its outputs; `out_dims` forces them, except where it is None."""
    check_jaxpr("vmap_jaxpr", jaxpr)
    return _vmap_jaxpr(jaxpr, size, axis_name, tuple(in_dims), None if out_dims is None else tuple(out_dims),
                       context.axes, context.spmd)


def _stage_vmap(jaxpr: Jaxpr, size: int, axis_name: Hashable, in_dims: tuple[int | None, ...],
                wanted: tuple[int | None, ...] | None, axes: AxisEnv, spmd: Hashable
                ) -> tuple[Jaxpr, tuple[int | None, ...]]:
    check_each("vmap_jaxpr", "in_dims", in_dims, len(jaxpr.invars), "input")
    if wanted is not None:
        check_each("vmap_jaxpr", "out_dims", wanted, len(jaxpr.outvars), "output")
    found: tuple[int | None, ...] = ()

    def fun(*args: Any) -> list[Any]:
        nonlocal found
        outs, dims = vmap(lambda *xs: eval_jaxpr(jaxpr, (), *xs), size, axis_name, args, in_dims, spmd)
        if wanted is not None:
            outs = [x if w is None else to_dim(x, d, w, size) for x, d, w in zip(outs, dims, wanted, strict=True)]
            dims = [d if w is None else w for d, w in zip(dims, wanted, strict=True)]
        found = tuple(dims)
        return outs

    avals = [with_axis(aval, dim, size) for aval, dim in zip(jaxpr.in_avals, in_dims, strict=True)]
    return stage_closed(fun, avals, jaxpr.name), found


_vmap_jaxpr = WeakCache(_stage_vmap)
