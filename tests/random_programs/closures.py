"""Statements that call functions with derivatives of their own, which close over values of the levels around them.

Such a function, or its rules, may use arguments of the program, carries of loops, elements of batches, operands of
branches, masks and integers. Between it and the derivative that is taken there are functions that are staged. Where
jax refuses, so may others.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from .making import Kind, Maker, kind
from .writing import Keys, Statement, Writer, differentiable

#: The kinds of statements here.
CLOSURES: dict[str, Kind] = {}

#: Slots that programs have for these.
MASKS_AND_INTEGERS: Keys = ("m", "i")

#: What is closed over: of any shape that a vector is multiplied by.
VALUES = ["lax.convert_element_type({m}, np.float64)", "lax.convert_element_type({i}, np.float64) * 0.25",
          "lax.convert_element_type({n}, np.float64)", "lax.convert_element_type({b}, np.float64) + 0.5",
          "lax.select({m}, U, V)", "lax.select({m}, {v}, lax.neg({v}))", "{v}", "{s}", "{u}", "lax.tanh({u} * {v})",
          "lax.dynamic_index_in_dim(U, {n} % 3, keepdims=False)", "lax.neg(MATRIX)[{n} % 5]", "lax.cumsum({v})",
          "lax.dynamic_index_in_dim({v}, {n} % 3, keepdims=False)", "{v}[{n} % 3]", "lax.neg(V)[{i} % 3]",
          "lax.select({b}, lax.convert_element_type({s}, np.float64), np.float64(0.5))",
          "lax.convert_element_type({u} > {v}, np.float64)", "lax.convert_element_type({s} > 0.1, np.float64)"]

#: Functions of (u, s) made of `{f}`, which is one: what may be between a function and the derivative. The rest of the
#: names are those of the level around.
LEVELS = {
    "jit": "api.jit({f})",
    "jit of lambda": "api.jit(lambda *xs: {f}(*xs))",
    "checkpoint": "api.checkpoint({f})",
    "scan": "lambda u, s: lax.scan(lambda c, _: ({f}(*c), None), (u, s), None, 2)[0]",
    "scan of values": "lambda u, s: lax.scan(lambda c, x: ({f}(c[0], c[1] + x), x), (u, s), {v})[0]",
    "scan of results": "lambda u, s: (u, lax.scan(lambda c, x: (c * 0.5, {f}(u, c)[1]), s, {i})[1].sum())",
    "cond": "lambda u, s: lax.cond({b}, {f}, lambda u, s: (u, s), u, s)",
    "cond of a mask": "lambda u, s: lax.cond({m}[0], lambda *xs: xs, {f}, u, s)",
    "cond of its own": "lambda u, s: lax.cond(s > 0.1, lambda *xs: {f}(*xs), lambda u, s: (u, s), u, s)",
    "switch": "lambda u, s: lax.switch({n}, [{f}, lambda u, s: (u, s), {f}], u, s)",
    "fori": "lambda u, s: lax.fori_loop(0, 2, lambda _, c: {f}(*c), (u, s))",
    "vmap": "lambda u, s: tuple([x.sum(0) * 0.5 for x in api.vmap({f}, (0, None))("
            "lax.broadcast_in_dim(u, (2, 3), (1,)), s)])",
    "vmap of values": "lambda u, s: tuple([x.sum(0) * 0.5 for x in api.vmap(lambda x: {f}(u, s * x))({v})])",
    "map": "lambda u, s: tuple([x.sum(0) * 0.25 for x in lax.map(lambda x: {f}(u, x), u)])",
}
FORWARD_LEVELS = {
    "while": "lambda u, s: lax.while_loop(lambda c: c[0] < 2, lambda c: (c[0] + 1, *{f}(c[1], c[2])), (0, u, s))[1:]",
    "while to a value": "lambda u, s: lax.fori_loop(0, {n} % 3, lambda _, c: {f}(*c), (u, s))",
    "jvp": "lambda u, s: api.jvp({f}, (u, s), (u * 0.5, s))[1]",
}
REVERSE_LEVELS = {"vjp": "lambda u, s: api.vjp({f}, u, s)[1]((u * 0.5, s))"}

#: A scalar made of the results (p, q): all of them, one of them, or none.
LOSSES = ["(p * p).sum() + q * q", "(p * p).sum() + q * q", "lax.sin(q)", "p.sum()", "(u * u).sum() * s + 0.0 * u[0]"]


def loss(make: Maker) -> str:
    return f"(lambda p, q: {make.choice(LOSSES)})(*{{g}}(u, s))"


#: How {g}, a function of (u, s), is used at {u} and {s}: an expression for a pair of their types.
REVERSE = [
    "api.grad(lambda u, s: {loss}, (0, 1))({u}, {s})",
    "api.jit(api.grad(lambda u, s: {loss}, (0, 1)))({u}, {s})",
    "api.value_and_grad(lambda u, s: {loss}, (0, 1))({u}, {s})[1]",
    "api.grad(lambda u, s: ((u * u).sum() * s, {g}(u, s)), (0, 1), has_aux=True)({u}, {s})[1]",
    "api.vjp({g}, {u}, {s})[1](({u} * 0.5, {s}))",
    "api.jit(lambda u, s: api.vjp({g}, u, s))({u}, {s})[1](({u} * 0.5, {s}))",
    "(lambda u: (u, u.sum()))(api.grad(lambda u: (lambda s: {loss})({s}))({u}))",
    "tuple([x.sum(0) for x in api.vmap(api.grad(lambda u, s: {loss}, (0, 1)), (None, 0))({u}, {v})])",
    "(lambda s: ({u} * s, s))(api.grad(lambda s: (lambda u: {loss})({u}))({s}))",
]
FORWARD = [
    "api.jvp({g}, ({u}, {s}), ({u} * 0.5, {s}))[1]",
    "api.jit(lambda u, s: api.jvp({g}, (u, s), (u * 0.5, s)))({u}, {s})[1]",
    "api.linearize({g}, {u}, {s})[1]({u} * 0.5, {s})",
    "(lambda s: api.jvp(lambda u: {g}(u, s), ({u},), ({u} * 0.5,))[1])({s})",
]
BOTH = [
    "(lambda x: (x[0], x[1]))(api.jvp(api.grad(lambda u, s: {loss}, (0, 1)), ({u}, {s}), ({u}, {s}))[1])",
    "api.grad(lambda u, s: sum([x.sum() for x in api.jvp({g}, (u, s), (u, s))[1]]), (0, 1))({u}, {s})",
]
PLAIN = ["{g}({u}, {s})", "{g}({u}, {s})", "api.jit({g})({u}, {s})",
         "api.vmap({g}, (None, None), None, axis_size=2)({u}, {s})"]


class Around:
    """What the two kinds share: what is closed over, what is between, what is done with the result."""

    def __init__(self, make: Maker, forward: bool) -> None:
        floats = differentiable(make.slots)
        self.values = [str(make.choice(VALUES)) for _ in range(3)]
        self.shielded: Keys = floats if make.chance(0.65) else ()
        self.named = make.chance(0.4)
        levels = {**LEVELS, **REVERSE_LEVELS} if not forward or make.chance(0.5) else dict(LEVELS)
        uses = [*PLAIN, *PLAIN, *REVERSE]
        if forward:
            uses += [*FORWARD, *FORWARD]
            if "reverse" not in make.needs and make.chance(0.4):  # no reverse step here, so loops of any length
                levels, uses = {**LEVELS, **FORWARD_LEVELS}, [*PLAIN, *FORWARD, *FORWARD]
            elif not REVERSE_LEVELS.keys() & levels.keys():
                uses += BOTH
        self.forward = forward
        self.levels = levels
        self.between = tuple([str(make.choice([*levels])) for _ in range(make.choice([0, 1, 1, 2, 3]))])
        self.use = str(make.choice(uses)).replace("{loss}", loss(make))
        self.dropped = make.chance(0.15)
        #: Which of the function and its two rules close over something.
        self.closing = make.choice([(True, True, True), (True, False, False), (False, True, False), (True, True, False),
                                    (False, False, True), (False, True, True)])

    @contextmanager
    def values_at(self, w: Writer) -> Iterator[list[str]]:
        """The texts of what the function and its rules use of this level; a constant where they close over none."""
        outer = w.scope
        w.scope = dict(outer)
        for key in self.shielded:
            w.put(key, f"lax.stop_gradient({{{key}}})")
        values = []
        for closing, value in zip(self.closing, self.values, strict=True):
            text = f"({w.format(value)})" if closing else "0.75"
            if closing and self.named:
                w.line(f"{(name := w.fresh('value'))} = {text}")
                text = name
            values.append(text)
        yield values
        w.scope = outer

    def call(self, w: Writer, st: Statement, name: str) -> None:
        """Use the function through the levels that are between."""
        for level in st.parts:
            w.line(f"{(outer := w.fresh('through'))} = {self.levels[level].format(f=name, **w.scope)}")
            name = outer
        pair = self.use.format(g=name, **w.scope)
        if self.dropped:
            w.line(f"_ = {pair}")
            return
        w.line(f"first, second = {pair}")
        w.put("u", "lax.tanh(first)")
        w.put("s", "lax.tanh(second)")


@kind(14, among=CLOSURES)
def closing_custom_jvp(make: Maker, depth: int) -> Statement:
    around = Around(make, forward=True)
    term = make.choice(["x_dot * lax.cos(x * {0}), y_dot + (x_dot * {1}).sum()", "x_dot * {0} * y, y_dot * {1}.sum()",
                        "x_dot + y_dot * x, y_dot * lax.tanh(y * {0}.sum()) + (x_dot * {1}).sum() * 0.5"])

    def write(w: Writer, st: Statement) -> None:
        with around.values_at(w) as (value, *others):
            with w.function(("u", "s"), decorator="api.custom_jvp") as name:
                w.put("u", f"lax.sin({{u}}) * {value}")
                w.block(st.blocks[0])
                w.line(f"return {w.tuple('us')}")
            w.line(f"@{name}.defjvp")
            terms = term.format(*[f"lax.broadcast_in_dim({x} * 1.0, (3,), ())" if x == "0.75" else f"({x} * V)"
                                  for x in others])
            w.line("def rule(primals, tangents):")
            w.line("    (x, y), (x_dot, y_dot) = primals, tangents")
            w.line(f"    return {name}(x, y), ({terms})")
        around.call(w, st, name)
    return Statement("closing_custom_jvp", write, (make.block(min(depth, 1), 1),), parts=around.between)


#: What the forward rule keeps, and the cotangents that the backward one returns of it.
KEPT = [("(x, y)", "x_bar * lax.cos(kept[0]) * {0} + y_bar, y_bar * kept[1]"),
        ("(x, y, {1})", "x_bar * kept[2], y_bar * kept[1] + (x_bar * {0}).sum()"),
        ("({1},)", "x_bar * kept[0], y_bar * 0.5"), ("None", "x_bar * {0}, y_bar"), ("y", "x_bar * {0} * kept, None")]


@kind(14, stops="forward", among=CLOSURES)
def closing_custom_vjp(make: Maker, depth: int) -> Statement:
    around = Around(make, forward=False)
    kept, cotangents = make.choice(KEPT)
    calls = make.chance(0.6)

    def write(w: Writer, st: Statement) -> None:
        with around.values_at(w) as (value, *others):
            with w.function(("u", "s"), decorator="api.custom_vjp") as name:
                w.put("u", f"lax.sin({{u}}) * {value}")
                w.block(st.blocks[0])
                w.line(f"return {w.tuple('us')}")
            forward, backward = w.fresh("forward"), w.fresh("backward")
            w.line(f"def {forward}(x, y):")
            w.line(f"    return {f'{name}(x, y)' if calls else f'(lax.sin(x) * {value}, y)'}, {kept.format(*others)}")
            w.line(f"def {backward}(kept, cts):")
            w.line("    x_bar, y_bar = cts")
            w.line(f"    return {cotangents.format(*others)}")
            w.line(f"{name}.defvjp({forward}, {backward})")
        around.call(w, st, name)
    return Statement("closing_custom_vjp", write, (make.block(min(depth, 1), 1),), parts=around.between)
