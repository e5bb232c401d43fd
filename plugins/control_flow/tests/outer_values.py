"""Functions with custom rules that close over a value traced outside: where, by what, and with what in between.

A `Case` is a program of a number y. It makes a value of y, a function of x with custom rules that reads it, something
that carries this function, and asks for the function's value or derivative at X. Then the program itself is transformed
by `outer`, from the inside to the outside. `expected` is what comes out, by hand.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any, NamedTuple

import numpy as np

X, Y, STEP = 0.7, 1.5, 0.5

KINDS = {"jvp": ("function", "rule", "both", "argument"), "vjp": ("function", "fwd", "bwd", "all", "argument")}
READS = {"both": ("function", "rule"), "all": ("function", "fwd", "bwd"), "argument": ("function", "rule")}
VALUES = ("number", "mask", "integer")
BETWEEN = ("nothing", "jit", "checkpoint", "scan", "cond", "switch", "fori_loop", "vmap", "custom_jvp", "custom_vjp")
OUTER = (
    ("jit",), ("vmap",), ("scan",), ("cond",), ("while_loop",), ("make_jaxpr",), ("eval_shape",), ("checkpoint",),
    ("grad",), ("jvp",), ("linearize",), ("jit", "vmap"), ("vmap", "jit"), ("scan", "jit"), ("jit", "grad"),
    ("grad", "jit"), ("vmap", "grad"), ("grad", "vmap"), ("jvp", "jit"), ("cond", "vmap"), ("grad", "grad"),
    ("checkpoint", "grad"), ("vmap", "vmap"))
ASKED = ("value", "grad", "jvp")

Scalar = Callable[[Any], Any]


class Case(NamedTuple):
    kind: str
    reads: str
    value: str
    between: str
    outer: tuple[str, ...]

    def __str__(self) -> str:
        return "-".join([self.kind, self.reads, self.value, self.between, "+".join(self.outer)])

    @property
    def read_by(self) -> tuple[str, ...]:
        return READS.get(self.reads, (self.reads,))

    @property
    def is_differentiated(self) -> bool:
        """Whether anything is differentiated by y."""
        return not {"grad", "jvp", "linearize"}.isdisjoint(self.outer)

    def asked(self) -> list[str]:
        """What can be asked for: no forward mode of fwd and bwd rules, no reverse mode of a loop like that."""
        return [asked for asked in ASKED if not (
            asked == "jvp" and (self.kind == "vjp" or self.between == "custom_vjp")
            or self.between == "custom_jvp" and self.kind == "vjp" and asked != "value")]

    # What comes out, by hand

    def expected(self, asked: str) -> float | None:
        """The result at Y; None if it takes a derivative of the function by what it closes over."""
        own = 3.0 if self.kind == "vjp" and "bwd" not in self.read_by else 1.0
        power = 2 if self.between in ("scan", "fori_loop") else 1

        def model(y: float) -> float:
            factor = {"number": y, "mask": 2.0 if y > 1.75 else 3.0, "integer": float(int(2 * y + 0.25))}[self.value]
            if asked == "value":
                return X * (factor if "function" in self.read_by else 2.0) ** power
            times = [name for name in self.read_by if name != "function"]
            return float((own * factor ** len(times)) ** power)

        if self.is_differentiated and asked == "value" and self.value == "number" and "function" in self.read_by:
            return None
        result = model
        for name in self.outer:
            result = _of_numbers(name, result)
        return result(Y)

    def may_be_refused(self, asked: str) -> bool:
        """Whether forward mode may compute a derivative by y that nobody needs, together with others."""
        return (asked != "value" and self.value == "number" and "function" in self.read_by
                and not {"jvp", "linearize"}.isdisjoint(self.outer))

    # The program

    def run(self, api: Any, asked: str, evaluate: Callable[..., Any]) -> Any:
        """The result, using `api`; `evaluate(closed_jaxpr, *args)` runs a traced program."""
        program = self._program(api, asked)
        for name in self.outer:
            program = _transformed(name, program, api, evaluate)
        return program(Y)

    def _program(self, api: Any, asked: str) -> Scalar:
        lax = api.lax

        def program(y: Any) -> Any:
            value = {"number": lambda: y, "mask": lambda: y > 1.75,
                     "integer": lambda: lax.convert_element_type(2.0 * y + 0.25, np.int32)}[self.value]()
            fun = _carried(self.between, self._custom(api, value), api)
            if asked == "value":
                return fun(X)
            return api.grad(fun)(X) if asked == "grad" else api.jvp(fun, (X,), (1.0,))[1]
        return program

    def _custom(self, api: Any, value: Any) -> Scalar:
        lax, reads = api.lax, self.read_by

        def factor(name: str, otherwise: float) -> Any:
            if name not in reads:
                return otherwise
            if self.value == "number":
                return value
            return lax.select(value, 2.0, 3.0) if self.value == "mask" else lax.convert_element_type(value, np.float64)

        if self.reads == "argument":  # a function that isn't data
            return self._of_function(api, lambda x: x * factor("function", 2.0))
        if self.kind == "jvp":
            fun = api.custom_jvp(lambda x: x * factor("function", 2.0))
            fun.defjvp(lambda xs, dots: (fun(*xs), dots[0] * factor("rule", 1.0)))
            return fun
        fun = api.custom_vjp(lambda x: x * factor("function", 2.0))
        fun.defvjp(lambda x: (fun(x), factor("fwd", 1.0)),
                   lambda kept, ct: (ct * kept * factor("bwd", 3.0),))
        return fun

    def _of_function(self, api: Any, argument: Scalar) -> Scalar:
        if self.kind == "jvp":
            fun = api.custom_jvp(lambda f, x: f(x), nondiff_argnums=(0,))
            fun.defjvp(lambda f, xs, dots: (fun(f, *xs), dots[0] * f(1.0)))
        else:
            fun = api.custom_vjp(lambda f, x: f(x), nondiff_argnums=(0,))
            fun.defvjp(lambda f, x: (f(x), None), lambda f, kept, ct: (3.0 * ct * f(1.0),))
        return lambda x: fun(argument, x)


def cases() -> list[Case]:
    """A third of all: any two of value, between and outer with each kind and each place that reads it."""
    return [Case(kind, reads, VALUES[i], BETWEEN[j], OUTER[k]) for kind, places in KINDS.items() for reads in places
            for i, j, k in product(range(len(VALUES)), range(len(BETWEEN)), range(len(OUTER)))
            if (i + j + k) % len(VALUES) == 0]


def _of_numbers(name: str, fun: Callable[[float], float]) -> Callable[[float], float]:
    """What a transformation makes of a function of numbers."""
    if name in ("vmap", "scan"):
        return lambda y: fun(y) + fun(y + STEP)
    if name in ("grad", "jvp", "linearize"):
        return lambda y: (fun(y + 1e-3) - fun(y - 1e-3)) / 2e-3
    return fun


def _transformed(name: str, fun: Scalar, api: Any, evaluate: Callable[..., Any]) -> Scalar:
    lax = api.lax
    table: dict[str, Callable[[Any], Any]] = {
        "jit": api.jit(fun), "checkpoint": api.checkpoint(fun), "grad": api.grad(fun),
        "jvp": lambda y: api.jvp(fun, (y,), (1.0,))[1],
        "linearize": lambda y: api.linearize(fun, y)[1](1.0),
        "vmap": lambda y: api.vmap(fun)(y + STEP * np.arange(2.0)).sum(),
        "scan": lambda y: lax.scan(lambda total, step: (total + fun(y + step), None), 0.0, STEP * np.arange(2.0))[0],
        "cond": lambda y: lax.cond(y > 0.0, fun, lambda y: 0.0 * y, y),
        "while_loop": lambda y: lax.while_loop(
            lambda c: c[0] < 1, lambda c: (c[0] + 1, c[1], fun(c[1])), (0, y, 0.0))[2],
        "make_jaxpr": lambda y: evaluate(api.make_jaxpr(fun)(y), y),
        "eval_shape": lambda y: fun(y) if api.eval_shape(fun, y).shape == () else None}
    return table[name]


def _carried(name: str, fun: Scalar, api: Any) -> Scalar:
    """The function, carried by something that stages it."""
    lax = api.lax
    if name == "custom_jvp":
        outer = api.custom_jvp(lambda x: fun(x))
        outer.defjvp(lambda xs, dots: api.jvp(fun, xs, dots))
        return outer
    if name == "custom_vjp":
        outer = api.custom_vjp(lambda x: fun(x))
        outer.defvjp(lambda x: api.vjp(fun, x), lambda back, ct: back(ct))
        return outer
    table: dict[str, Callable[[Any], Any]] = {
        "nothing": fun, "jit": api.jit(fun), "checkpoint": api.checkpoint(fun),
        "scan": lambda x: lax.scan(lambda c, _: (fun(c), None), x, None, 2)[0],
        "cond": lambda x: lax.cond(x > 0.0, fun, lambda x: x, x),
        "switch": lambda x: lax.switch((x > 0.0) * 1, [lambda x: x, fun], x),
        "fori_loop": lambda x: lax.fori_loop(0, 2, lambda _, c: fun(c), x),
        "vmap": lambda x: api.vmap(fun)(x * np.ones(2))[0]}
    return table[name]
