"""Families: whole plugins for elementwise primitives, each from one row of a table.

    sinh = define(families.unary(
        "sinh", np.sinh, hlo="chlo.sinh", dtypes="fc", jvp=factors(lambda out, x: lax.cosh(x)), domain=(-3.0, 3.0),
        doc="The hyperbolic sine."))

A row says what differs: the name, the NumPy function, the StableHLO operation, the kinds of dtype it takes and the
derivative. The family brings the other hooks. Its law is that of elementwise functions with several operands:

- Operands have one dtype. Their shapes are equal, or () for an operand that *spreads*: it stands beside each element.
- The result is weakly typed if every operand is.
- The public function takes Python scalars beside arrays: they get the array's dtype, and stay weak.

The functions `spread`, `unspread`, `align` and `spread_operands` do the parts of the rules that spreading operands need;
use them in plugins of your own that follow the same law, or subclass `Elementwise` and override hooks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from corejax import dtypes as types
from corejax.avals import Linear, ShapedArray, aval_of
from corejax.errors import CorejaxOverflowError, CorejaxTypeError, MissingRuleError
from corejax.plugin.declarations import Declaration, Partials, Sample, hookimpl, not_linear
from corejax.plugin.roles import roles
from corejax.source import here
from corejax.xla.array import Array

Function = Callable[..., Any]

_NAMES = {"b": "booleans", "i": "signed integers", "u": "unsigned integers", "f": "floats", "c": "complex numbers"}
_SAMPLE_DTYPES = {"b": "bool", "i": "int32", "u": "uint8", "f": "float64", "c": "complex128"}
_ORDER = {"b": 0, "u": 1, "i": 1, "f": 2, "c": 3}


class Elementwise:
    """The plugin of an elementwise primitive. Build one with `unary`, `binary`, `nary` or `comparison`.

    A subclass may have hooks of its own, which come before those that its row would give.

    `_typed_from` is the position of the first operand that shares the common dtype: those before it have rules of
    their own, which a subclass checks in its `abstract_eval`.
    """

    _typed_from = 0

    def __init__(self, name: str, impl: Function, *, arity: int | None, hlo: str | Function, dtypes: str, jvp: Any,
                 doc: str, linear: tuple[int, ...] = (), transpose: Declaration | Sequence[Function | None] = (),
                 result: Function | None = None, domain: tuple[float, float] = (-2.0, 2.0)) -> None:
        self.name = name
        self.__doc__ = doc
        self._arity, self._kinds, self._result, self._domain = arity, dtypes, result, domain
        self._backward = () if isinstance(transpose, Declaration) else tuple(transpose)
        self._bind: Function = _not_defined
        backward: Any = transpose or not_linear(f"{name} is not linear in any operand")
        hooks = {
            "impl": hookimpl(_on_sequence(impl, arity)), "xla_translation": hookimpl(_lowering(hlo, arity)),
            "jvp": _spreading(jvp) if isinstance(jvp, Partials) and arity != 1 else jvp, "linear": linear or None,
            "transpose": backward if isinstance(backward, Declaration) else self._transpose}
        for hook, value in hooks.items():
            if value is not None and not hasattr(type(self), hook):
                setattr(self, hook, value)

    def function(self, bind: Function) -> Function:
        """The public function."""
        self._bind = bind
        if self._arity == 1:
            return lambda x: bind(x)
        if self._arity == 2:
            return _binary_function(bind)
        return lambda *operands: bind(*match_scalars(operands))

    @hookimpl
    def abstract_eval(self, avals: Sequence[ShapedArray]) -> ShapedArray:
        return self._type(avals)

    def _type(self, avals: Sequence[ShapedArray]) -> ShapedArray:
        """The result's type, from operands that are checked first."""
        if self._arity is not None and len(avals) != self._arity:
            raise refused(self.name, f"it takes {self._arity} operand{'s' * (self._arity != 1)}", avals,
                          f"{self._arity} positional arrays", "check the call")
        typed = avals[self._typed_from:]
        dtype = typed[0].dtype
        for aval in typed:
            if aval.dtype is not dtype and aval.dtype != dtype:
                raise refused(self.name, "operands differ in dtype", typed, "one dtype",
                              "convert with x.astype(...); the operators of Python promote by themselves")
        if types.kind(dtype) not in self._kinds:
            raise refused(self.name, f"it does not take {types.short_name(dtype)}", typed,
                          " or ".join([_NAMES[kind] for kind in self._kinds]), "convert with x.astype(...)")
        weak = all([aval.weak_type for aval in typed])
        return ShapedArray(common_shape(self.name, avals), self._result(dtype) if self._result else dtype, weak)

    @hookimpl
    def _transpose(self, cotangents: Any, args: Sequence[Any], **params: Any) -> list[Any]:
        found: list[Any] = []
        for i, x in enumerate(args):
            if type(x) is not Linear:
                found.append(None)
                continue
            backward = self._backward[i]
            if backward is None:
                raise MissingRuleError(f"{self.name} is not linear in operand {i}", primitive=self.name,
                                       hook="transpose", where=here(), todo="differentiate before transposing")
            found.append(unspread(backward(cotangents, *args, **params), x))
        return found

    @hookimpl
    def vmap(self, axis: Any, args: Sequence[Any], dims: Sequence[int | None], **params: Any) -> tuple[Any, int]:
        if len(args) == 1:
            return self._bind(args[0], **params), dims[0]  # type: ignore[return-value]
        args, dim = align(axis.size, args, dims)
        return self._bind(*args, **params), dim

    @hookimpl
    def samples(self, rng: Any) -> Iterator[Sample]:
        count = self._arity or 3
        patterns = [[shape] * count for shape in ((), (3,), (2, 3), (0,))]
        if count > 1:
            patterns += [[(3,) if i == k else () for i in range(count)] for k in range(count)]
        for kind in self._kinds:
            dtype = np.dtype(_SAMPLE_DTYPES[kind])
            for shapes in patterns if kind in "fc" else patterns[1:2]:
                yield Sample([draw(rng, shape, dtype, self._domain) for shape in shapes], {}, domain=self._domain)
        refused_kind = next((kind for kind in "bifc" if kind not in self._kinds), None)
        if refused_kind:
            yield Sample([np.ones(2, _SAMPLE_DTYPES[refused_kind])] * count, {}, error=TypeError)
        if count > 1:
            dtype = np.dtype(_SAMPLE_DTYPES[self._kinds[0]])
            yield Sample([np.ones(2 + i, dtype) for i in range(count)], {}, error=TypeError)


# The rows

def unary(name: str, impl: Function, *, hlo: str | Function, dtypes: str, jvp: Any, doc: str, **options: Any) -> Elementwise:
    """A function of one operand.

    impl: the NumPy function. hlo: the operation's name, or a lowering `(ctx, args) -> value`. dtypes: the kinds it
    takes, of `b i u f c`. jvp: `factors`, `partials`, `not_differentiable`, or None beside `linear`. Options: `result`, a
    function from the operands' dtype to the result's; `transpose`, for each operand a function
    `(cotangent, *args) -> cotangent` or None where it isn't linear; `linear`, the operands in which it is linear
    jointly; `domain`, the interval that samples are drawn from.
    """
    return Elementwise(name, impl, arity=1, hlo=hlo, dtypes=dtypes, jvp=jvp, doc=doc, **options)


def nary(name: str, impl: Function, arity: int | None, *, hlo: str | Function, dtypes: str, jvp: Any, doc: str,
         **options: Any) -> Elementwise:
    """A function of several operands, of any number if `arity` is None; the rest is as for `unary`."""
    return Elementwise(name, impl, arity=arity, hlo=hlo, dtypes=dtypes, jvp=jvp, doc=doc, **options)


def binary(name: str, impl: Function, *, hlo: str | Function, dtypes: str, jvp: Any, doc: str, **options: Any) -> Elementwise:
    """A function of two operands; the rest is as for `unary`."""
    return Elementwise(name, impl, arity=2, hlo=hlo, dtypes=dtypes, jvp=jvp, doc=doc, **options)


def comparison(name: str, impl: Function, *, direction: str, dtypes: str, jvp: Any, doc: str) -> Elementwise:
    """A function of two operands with boolean result; `direction` is StableHLO's name for the order, as "LT"."""
    attribute = f"#stablehlo<comparison_direction {direction}>"

    def lower(ctx: Any, args: Sequence[Any]) -> Any:
        return ctx.op("stablehlo.compare", args, {"comparison_direction": ctx.ir.Attribute.parse(attribute)})

    return Elementwise(name, impl, arity=2, hlo=lower, dtypes=dtypes, jvp=jvp, doc=doc, result=lambda dtype: types.bool_)


# What the rules of spreading operands share

def spread(x: Any, out: Any) -> Any:
    """`x`, repeated to the shape of `out` if it has rank 0 and `out` has not."""
    shape = out.aval.shape
    return x if not shape or aval_of(x).shape == shape else roles.broadcast(x, shape, ())


def unspread(ct: Any, operand: Linear) -> Any:
    """The cotangent of an operand that may have been spread: the sum over the axes along which it was."""
    if operand.aval.shape or not ct.aval.shape:
        return ct
    return roles.sum_axes(ct, tuple(range(len(ct.aval.shape))))


def align(size: int, args: Sequence[Any], dims: Sequence[int | None]) -> tuple[list[Any], int]:
    """The operands of a vmap rule in the form in which the primitive takes them, and where their batch axis is.

    Each has the batch axis at the same place, or rank 0. A batched scalar beside arrays becomes an array.
    """
    shapes = [aval_of(x).shape for x in args]
    rank = max([len(s) - (d is not None) for s, d in zip(shapes, dims, strict=True)])
    dim, full = 0, None
    for s, d in zip(shapes, dims, strict=True):
        if len(s) - (d is not None) == rank:
            if d is not None:
                dim, full = d, s
                break
            full = full or (size, *s)
    out: list[Any] = []
    for x, s, d in zip(args, shapes, dims, strict=True):
        if d is None:
            out.append(roles.expand(x, size, dim) if s else x)
        elif len(s) == rank + 1:
            out.append(x if d == dim else roles.move_axis(x, d, dim))
        else:
            out.append(roles.broadcast(x, full, (dim,)))
    return out, dim


def spread_operands(ctx: Any, args: Sequence[Any]) -> Sequence[Any]:
    """In a lowering: the values, with those of rank 0 repeated to the result's shape."""
    eqn = ctx.eqn
    shape = eqn.outvars[0].aval.shape
    if not shape:
        return args
    out = list(args)
    for i, atom in enumerate(eqn.invars):
        if not atom.aval.shape:
            out[i] = _repeat(ctx, args[i], ShapedArray(shape, atom.aval.dtype))
    return out


def constant_like(ctx: Any, value: Any, aval: ShapedArray | None = None) -> Any:
    """In a lowering: a constant with this number everywhere, of the first operand's type or of another."""
    aval = aval or ctx.eqn.invars[0].aval
    scalar = ctx.constant(np.asarray(value).astype(aval.dtype))
    return _repeat(ctx, scalar, aval) if aval.shape else scalar


def _repeat(ctx: Any, scalar: Any, aval: ShapedArray) -> Any:
    return ctx.op("stablehlo.broadcast_in_dim", [scalar],
                  {"broadcast_dimensions": ctx.ir.DenseI64ArrayAttr.get([])}, [ctx.type_of(aval)])


def common_shape(name: str, avals: Sequence[ShapedArray]) -> tuple[int, ...]:
    """The shape of the operands that don't spread, or an error."""
    shape: tuple[int, ...] = ()
    for aval in avals:
        if aval.shape != shape and aval.shape:
            if shape:
                raise refused(name, "operands differ in shape", avals, "equal shapes, or scalars beside them",
                              "broadcast with lax.broadcast_in_dim; the operators of Python broadcast by themselves")
            shape = aval.shape
    return shape


def refused(name: str, problem: str, avals: Sequence[ShapedArray], wanted: str, todo: str) -> CorejaxTypeError:
    """The error for operands that the primitive `name` doesn't take."""
    return CorejaxTypeError(f"{name}: {problem}", primitive=name, got=", ".join(map(str, avals)), wanted=wanted,
                            where=here(), todo=todo)


def weak_scalar(value: Any, dtype: np.dtype) -> Array | None:
    """A Python scalar as a weak array of this dtype; None if its kind is beyond the dtype's."""
    if _ORDER[types.PYTHON_SCALARS[type(value)]] > _ORDER[types.kind(dtype)]:
        return None
    try:
        return Array.from_host(dtype.type(value), ShapedArray((), dtype, True))
    except OverflowError as error:
        raise CorejaxOverflowError(f"the Python number {value} doesn't fit {types.short_name(dtype)}", got=value,
                                   wanted=f"a number of the range of {types.short_name(dtype)}", where=here(),
                                   todo="convert the array to a wider dtype first") from error


def match_scalars(operands: Sequence[Any]) -> Sequence[Any]:
    """The operands, with Python scalars in the dtype of the first array among them, if their kinds allow it."""
    scalars = types.PYTHON_SCALARS
    dtype = next((aval_of(x).dtype for x in operands if type(x) not in scalars), None)
    if dtype is None or dtype is types.float0:
        return operands
    return [(x if (matched := weak_scalar(x, dtype)) is None else matched) if type(x) in scalars else x for x in operands]


def draw(rng: Any, shape: tuple[int, ...], dtype: np.dtype, domain: tuple[float, float]) -> Any:
    """A random array of a dtype, with elements (their real and imaginary parts) in an interval."""
    low, high = domain
    kind = types.kind(dtype)
    if kind == "b":
        return rng.integers(0, 2, shape).astype(dtype)
    if kind in "iu":
        return rng.integers(max(0, int(low)) if kind == "u" else int(low), int(high) + 2, shape).astype(dtype)
    drawn = rng.uniform(low, high, shape)
    return np.asarray(drawn + 1j * rng.uniform(low, high, shape) if kind == "c" else drawn).astype(dtype)


# From what a row says to hooks

def _on_sequence(impl: Function, arity: int | None) -> Function:
    if arity == 1:
        return lambda args: impl(args[0])
    if arity == 2:
        return lambda args: impl(args[0], args[1])
    return lambda args: impl(*args)


def _lowering(hlo: str | Function, arity: int | None) -> Function:
    if isinstance(hlo, str):
        name = hlo if "." in hlo else f"stablehlo.{hlo}"
        if arity == 1:
            return lambda ctx, args: ctx.op(name, args)
        return lambda ctx, args: ctx.op(name, spread_operands(ctx, args))
    return hlo if arity == 1 else lambda ctx, args: hlo(ctx, spread_operands(ctx, args))


def _spreading(declared: Partials) -> Partials:
    """The same derivatives, whose contributions have the result's shape also for an operand that spreads."""
    def spreading(partial: Function) -> Function:
        return lambda tangent, out, *args, **params: spread(partial(tangent, out, *args, **params), out)

    declared.functions = tuple([None if f is None else spreading(f) for f in declared.functions])
    return declared


def _binary_function(bind: Function) -> Function:
    scalars = types.PYTHON_SCALARS

    def function(x: Any, y: Any) -> Any:
        if type(x) in scalars or type(y) in scalars:
            x, y = match_scalars((x, y))
        return bind(x, y)
    return function


def _not_defined(*_: Any, **__: Any) -> Any:
    raise CorejaxTypeError("a family's plugin is used before define() was called on it", todo="write f = define(plugin)")
