"""Primitives made by hand, for testing what is below the doors: a name, a type rule and a lowering, no more."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from corejax.arrays.array import as_array
from corejax.base.avals import ShapedArray
from corejax.base.caches import BoundedCache
from corejax.kernel.jaxpr import ClosedJaxpr, Jaxpr, JaxprEqn, Literal, Var


class Toy:
    """What the compile path asks of a primitive."""

    origin = "toys 1.0"
    effects = dce = None

    def __init__(self, name: str, lowering: Callable[..., Any], infer: Callable[..., Any] | None = None,
                 multiple_results: bool = False) -> None:
        self.name, self._lowering, self._infer = name, lowering, infer
        self.multiple_results = multiple_results
        self.lowered = 0
        entered: BoundedCache[Any, Any] = BoundedCache(8)
        self.entries, self.keep_entries = entered._entries, entered.replace

    def lowering(self, platform: str) -> Callable[..., Any]:
        self.lowered += 1
        return self._lowering

    def infer(self, avals: Sequence[ShapedArray], params: Any) -> Any:
        return self._infer(avals, **params) if self._infer else max(avals, key=lambda aval: aval.ndim)


def elementwise(name: str, operation: str) -> Toy:
    def rule(ctx: Any, args: Sequence[Any]) -> Any:
        shape = ctx.avals_out[0].shape
        spread = [x if aval.shape == shape else ctx.op(
            "stablehlo.broadcast_in_dim", [x], {"broadcast_dimensions": ctx.ir.DenseI64ArrayAttr.get([])},
            ctx.out_types) for x, aval in zip(args, ctx.avals_in, strict=True)]
        return ctx.op(operation, spread)
    return Toy(name, rule)


add = elementwise("add", "stablehlo.add")
mul = elementwise("mul", "stablehlo.multiply")
sin = elementwise("sin", "stablehlo.sine")

#: Two results: the sum and the difference.
add_sub = Toy("add_sub", lambda ctx, args: [
    ctx.op("stablehlo.add", args, None, ctx.out_types[:1]),
    ctx.op("stablehlo.subtract", args, None, ctx.out_types[:1])],
    lambda avals: (avals[0], avals[0]), multiple_results=True)

#: A nested program.
call = Toy("call", lambda ctx, args, *, jaxpr: ctx.call(jaxpr, args), lambda avals, *, jaxpr: tuple(jaxpr.out_avals),
           multiple_results=True)


def host(function: Callable[..., Any], out_aval: ShapedArray | None = None) -> Toy:
    """A primitive that is a Python function on NumPy arrays."""
    return Toy(getattr(function, "__name__", "host"),
               lambda ctx, args: ctx.callback(lambda *xs: (function(*xs),), args, ctx.avals_out)[0],
               lambda avals: out_aval or avals[0])


class Build:
    """Writes a jaxpr equation by equation."""

    def __init__(self, *in_avals: ShapedArray) -> None:
        self.invars = [Var(aval) for aval in in_avals]
        self.constvars: list[Var] = []
        self.consts: list[Any] = []
        self.eqns: list[JaxprEqn] = []

    def const(self, value: Any) -> Var:
        array = as_array(value, copy=True)
        self.constvars.append(Var(array.aval))
        self.consts.append(array)
        return self.constvars[-1]

    def __call__(self, primitive: Toy, *atoms: Any, **params: Any) -> Any:
        operands = [x if isinstance(x, (Var, Literal)) else literal(x) for x in atoms]
        out = primitive.infer([x.aval for x in operands], params)
        outvars = [Var(aval) for aval in (out if isinstance(out, tuple) else (out,))]
        self.eqns.append(JaxprEqn(primitive, operands, outvars, params))
        return outvars if primitive.multiple_results else outvars[0]

    def returns(self, *atoms: Any, name: str = "") -> ClosedJaxpr:
        return ClosedJaxpr(Jaxpr(self.constvars, self.invars, atoms, self.eqns, name=name), self.consts)


def literal(value: Any) -> Literal:
    array = as_array(value, copy=True)
    return Literal(array, array.aval)


def chain(length: int, aval: ShapedArray) -> ClosedJaxpr:
    """sin(x + y) over and over."""
    b = Build(aval, aval)
    x, y = b.invars
    for i in range(length):
        x = b(add, x, y) if i % 2 == 0 else b(sin, x)
    return b.returns(x)
