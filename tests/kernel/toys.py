"""Toy primitives: objects with the slots that the kernel reads, made without a plugin and without a pack.

`record(fun, *avals)` runs `fun` on recorders and gives the jaxpr of what it bound.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from corejax.base.avals import ShapedArray, aval_of
from corejax.base.effects import Effect
from corejax.errors import CorejaxTypeError
from corejax.ir import Jaxpr, JaxprEqn, Literal, Var, count_eqns, dce, eval_jaxpr, no_effects
from corejax.kernel.checks import checked

f64, weak = ShapedArray((), np.float64), ShapedArray((), np.float64, True)
vec = ShapedArray((3,), np.float64)


class Toy:
    """A primitive: evaluates with NumPy, or records if a `Recorder` is at work."""

    def __init__(self, name: str, infer: Callable[..., Any], impl: Callable[..., Any], params: Sequence[str] = (), *,
                 multiple_results: bool = False, **hooks: Any) -> None:
        self.name = name
        self.params = frozenset(params)
        self.multiple_results = multiple_results
        self.origin = "toys 1.0"
        self._infer, self._impl = infer, impl
        self.holds = None
        self.effects = self.dce = self.pretty = self.typecheck = None
        vars(self).update(hooks)
        if self.dce is not None:
            self.dce = checked(self, "dce", self.dce)  # as freezing does

    def infer(self, avals: tuple[ShapedArray, ...], params: dict[str, Any]) -> Any:
        return self._infer(avals, **params)

    def bind(self, *args: Any, **params: Any) -> Any:
        if Recorder.current is not None:
            return Recorder.current.record(self, args, params)
        return self._impl(*args, **params)

    def __repr__(self) -> str:
        return self.name


class Recorded:
    """A value of which only the variable is known."""

    def __init__(self, var: Var) -> None:
        self.var, self.aval = var, var.aval


class Recorder:
    """Collects equations."""

    current: Recorder | None = None

    def __init__(self) -> None:
        self.eqns: list[JaxprEqn] = []

    def atom(self, x: Any) -> Any:
        return x.var if isinstance(x, Recorded) else Literal(x, aval_of(x))

    def record(self, primitive: Toy, args: Sequence[Any], params: dict[str, Any]) -> Any:
        atoms = [self.atom(x) for x in args]
        avals = tuple([x.aval for x in atoms])
        out = primitive.infer(avals, params)
        outvars = [Var(aval) for aval in (out if primitive.multiple_results else (out,))]
        effects = primitive.effects(avals, **params) if primitive.effects else no_effects
        self.eqns.append(JaxprEqn(primitive, atoms, outvars, params, effects))
        boxed = [Recorded(v) for v in outvars]
        return boxed if primitive.multiple_results else boxed[0]


def record(fun: Callable[..., Any], *avals: ShapedArray) -> Jaxpr:
    """The jaxpr of what `fun` binds; it returns one value or a tuple."""
    recorder, outer = Recorder(), Recorder.current
    args = [Recorded(Var(aval)) for aval in avals]
    Recorder.current = recorder
    try:
        outs = fun(*args)
        outs = [recorder.atom(x) for x in (outs if isinstance(outs, (tuple, list)) else (outs,))]
    finally:
        Recorder.current = outer
    effects = no_effects.union(*[eqn.effects for eqn in recorder.eqns])
    return Jaxpr((), [x.var for x in args], outs, recorder.eqns, effects)


def _spread(avals: tuple[ShapedArray, ...]) -> ShapedArray:
    wide = max(avals, key=lambda aval: aval.ndim)
    if any(aval.shape not in ((), wide.shape) or aval.dtype != wide.dtype for aval in avals):
        raise CorejaxTypeError("operands differ in type", got=", ".join(map(str, avals)))
    return wide.update(weak_type=all(aval.weak_type for aval in avals))


def _unary(name: str, function: Callable[[Any], Any]) -> Toy:
    return Toy(name, lambda avals: avals[0], function)


def _call_dce(eqn: JaxprEqn, used_out: tuple[bool, ...]) -> Any:
    inner, used_in = dce(eqn.params["jaxpr"], used_out)
    if not any(used_out) and not inner.effects:
        return used_in, None
    return used_in, eqn.replace(
        invars=[x for x, used in zip(eqn.invars, used_in, strict=True) if used],
        outvars=[v for v, used in zip(eqn.outvars, used_out, strict=True) if used], params={"jaxpr": inner})


emitted: list[Any] = []

sin, cos, neg = _unary("sin", np.sin), _unary("cos", np.cos), _unary("neg", np.negative)
add = Toy("add", _spread, np.add)
mul = Toy("mul", _spread, np.multiply)
total = Toy("total", lambda avals, *, axes: ShapedArray([n for i, n in enumerate(avals[0].shape) if i not in axes],
                                                       avals[0].dtype),
            lambda x, *, axes: np.sum(x, axes), ["axes"])
pair = Toy("pair", lambda avals: (avals[0], avals[0]), lambda x: [x, -x], multiple_results=True)
IO = Effect("io")
emit = Toy("emit", lambda avals, *, tag: (), lambda x, *, tag: emitted.append((tag, x)) or [], ["tag"],
           multiple_results=True, effects=lambda avals, *, tag: frozenset((IO,)))
call = Toy("call", lambda avals, *, jaxpr: tuple(jaxpr.out_avals), lambda *args, jaxpr: eval_jaxpr(jaxpr, (), *args),
           ["jaxpr"], multiple_results=True, dce=_call_dce, effects=lambda avals, *, jaxpr: jaxpr.effects)
hidden = Toy("hidden", lambda avals, *, size, secret: avals[0], lambda x, **_: x, ["secret", "size"],
             pretty=lambda *, size, secret: {"size": size})


class _Anything(Toy):
    """Takes any operands and params; the type of its output is that of its first operand, else f64[]."""

    def infer(self, avals: tuple[ShapedArray, ...], params: dict[str, Any]) -> Any:
        return avals[0] if avals else f64


def anything(name: str = "anything", **hooks: Any) -> Toy:
    """A primitive that takes any operands and params."""
    made = _Anything(name, lambda avals: f64, lambda *args, **params: args[0], **hooks)
    made.params = None  # type: ignore[assignment]
    return made


free = anything("free")
toys: dict[str, Toy] = {p.name: p for p in (sin, cos, neg, add, mul, total, pair, emit, call, hidden, free)}


def chain(length: int) -> Jaxpr:
    """A jaxpr of `length` equations, each of which uses the output of the one before."""
    def fun(x: Any) -> Any:
        for _ in range(length // 2):
            x = sin.bind(mul.bind(x, 1.5))
        return x

    jaxpr = record(fun, f64)
    assert count_eqns(jaxpr) == length
    return jaxpr
