"""Programs with control flow made up at random, for any library with the interface of jax.

A program maps an environment to one of the same types: two vectors u and v, a scalar s, an integer n and a flag b. It
is a list of statements: arithmetic, or a control-flow function, a transformation or a function with derivatives of its
own, applied to further lists. What a statement computes with may be an operand of it, or closed over.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

Env = dict[str, Any]
Run = Callable[[Any, Any, Env], Env]

KEYS = ("u", "v", "s", "n", "b")
WEIGHTS = np.array([0.5, -1.25, 2.0])
MATRIX = np.linspace(-1, 1, 300).reshape(100, 3)

ARITHMETIC: list[tuple[str, Callable[[Any, Env], Any]]] = [
    ("u", lambda lax, e: lax.sin(e["u"]) * e["v"] + e["s"]),
    ("v", lambda lax, e: lax.tanh(e["u"] * WEIGHTS + e["v"])),
    ("s", lambda lax, e: (e["u"] * e["v"]).sum() * 0.5),
    ("s", lambda lax, e: lax.cos(e["s"]) * e["u"][1]),
    ("u", lambda lax, e: lax.select(e["u"] > e["v"], e["u"], e["v"] * 0.5)),
    ("v", lambda lax, e: e["v"] * lax.stop_gradient(e["s"]) - 1.0),
    ("n", lambda lax, e: (e["n"] * 2 + 1) % 5),
    ("n", lambda lax, e: lax.convert_element_type(e["s"] * 3.0, np.int64)),
    ("b", lambda lax, e: e["s"] > 0.1),
    ("b", lambda lax, e: (e["u"] < e["v"]).any()),
    ("b", lambda lax, e: ~e["b"]),
    ("s", lambda lax, e: lax.tanh(lax.dynamic_index_in_dim(e["u"], e["n"] % 3, keepdims=False))),
    ("u", lambda lax, e: lax.tanh(e["u"] * lax.convert_element_type(e["n"], np.float64) + WEIGHTS)),
    ("s", lambda lax, e: e["s"] * lax.convert_element_type(e["b"], np.float64) + 0.25),
    ("u", lambda lax, e: (MATRIX * e["u"]).sum(axis=0) * 0.02),
    ("v", lambda lax, e: e["u"]),
    ("u", lambda lax, e: lax.stop_gradient(e["v"])),
    ("s", lambda lax, e: lax.tanh(lax.log(lax.abs(e["s"]) + 1.5)) * e["v"].max()),
]


@dataclass(frozen=True)
class Block:
    """Statements, in a form to run and in one to read, and which derivatives go through them."""

    run: Run
    text: str
    reverse: bool = True
    forward: bool = True


class Maker:
    """Makes up programs; `reverse` and `forward` say which derivatives must go through all of them."""

    def __init__(self, seed: int, reverse: bool, forward: bool) -> None:
        self.rng = np.random.default_rng(seed)
        self.reverse, self.forward = reverse, forward
        self.kinds = [self.cond, self.switch, self.scan, self.scan, self.fori, self.map, self.vmap, self.vmap_of_flags,
                      self.checkpoint, self.jit, self.custom_jvp, self.jvp, self.grad]
        self.irreversible = [self.while_loop, self.while_loop, self.computed_fori]

    def choice(self, items: Sequence[Any]) -> Any:
        return items[int(self.rng.integers(len(items)))]

    def keys(self, least: int = 0) -> list[str]:
        count = int(self.rng.integers(least, len(KEYS) + 1))
        return [KEYS[i] for i in sorted(self.rng.permutation(len(KEYS))[:count])]

    def block(self, depth: int, size: int | None = None) -> Block:
        steps = [self.statement(depth) for _ in range(size or int(self.rng.integers(1, 4)))]

        def run(api: Any, lax: Any, e: Env) -> Env:
            for step in steps:
                e = step.run(api, lax, e)
            return e
        return _block(run, "; ".join([step.text for step in steps]), *steps)

    def statement(self, depth: int) -> Block:
        kinds: list[Any] = [None, None]
        if depth:
            kinds += [*self.kinds, *([] if self.reverse else self.irreversible),
                      *([] if self.forward else [self.custom_vjp] * 2)]
        kind = self.choice(kinds)
        if kind is not None:
            return kind(depth - 1)  # type: ignore[no-any-return]
        i = int(self.rng.integers(len(ARITHMETIC)))
        key, fun = ARITHMETIC[i]
        return Block(lambda api, lax, e: {**e, key: fun(lax, e)}, f"{key}{i}")

    def predicate(self) -> Callable[[Env], Any]:
        tests = [lambda e: e["b"], lambda e: e["s"] > 0.2, lambda e: e["n"] % 2 == 0]
        return self.choice([*tests, *tests, lambda e: True, lambda e: e["n"]])  # type: ignore[no-any-return]

    # Control flow

    def cond(self, depth: int) -> Block:
        blocks, test, args, outs = [self.block(depth), self.block(depth)], self.predicate(), self.keys(), self.keys()
        form = int(self.rng.integers(3))

        def run(api: Any, lax: Any, e: Env) -> Env:
            def branch(block: Block) -> Callable[..., Any]:
                def fun(*operands: Any) -> Any:
                    new = operands[0] if form == 0 else dict(zip(args, operands if form == 1 else operands[0]))
                    out = _part(block.run(api, lax, {**e, **new}), outs)
                    return (out, None) if form == 2 else out
                return fun

            values = [e[k] for k in args]
            operands: Any = (_part(e, args),) if form == 0 else values if form == 1 else (values,)
            found = lax.cond(test(e), *map(branch, blocks), *operands)
            return {**e, **(found[0] if form == 2 else found)}
        return _block(run, f"cond{form}({args} -> {outs}: {_texts(blocks)})", *blocks)

    def switch(self, depth: int) -> Block:
        blocks = [self.block(depth) for _ in range(int(self.rng.integers(1, 4)))]
        args, outs = self.keys(), self.keys(1)

        def run(api: Any, lax: Any, e: Env) -> Env:
            branches = [lambda new, block=block: _part(block.run(api, lax, {**e, **new}), outs) for block in blocks]
            return {**e, **lax.switch(e["n"], branches, _part(e, args))}
        return _block(run, f"switch({args} -> {outs}: {_texts(blocks)})", *blocks)

    def scan(self, depth: int) -> Block:
        body, carried = self.block(depth), self.keys()
        form, collected = int(self.rng.integers(5)), int(self.rng.integers(4))
        reverse, unroll, weak = self.choice([False, True]), self.choice([1, 1, 2, 3, True]), self.rng.integers(4) == 0
        count = (3, 3, 3, 1, 0)[form]

        def run(api: Any, lax: Any, e: Env) -> Env:
            xs = {0: e["u"], 1: {"a": e["u"], "k": np.arange(3)}}.get(form)
            init = {**_part(e, carried), **_part({"s": 0.0, "n": 1}, {*carried} & {"s", "n"} if weak else ())}

            def step(carry: Env, x: Any) -> Any:
                now = {**e, **carry}
                now |= {0: lambda: {"s": now["s"] * x}, 1: lambda: {"s": now["s"] + x["a"], "n": now["n"] + x["k"]}
                        }.get(form, dict)()
                now = body.run(api, lax, now)
                return _part(now, carried), (None, now["s"], (now["s"], now["u"], now["n"]),
                                             {"x": x, "c": e["s"], "b": now["b"]})[collected]

            last, ys = lax.scan(step, init, xs, None if form == 0 else count, reverse=reverse, unroll=unroll)
            e = {**e, **last}
            if collected == 1 and count == 3:
                e["v"] = ys
            if collected == 2:
                e["v"] = ys[1].sum(axis=0) + ys[0].sum() + lax.convert_element_type(ys[2].sum(), np.float64)
            if collected == 3:
                e["s"] = e["s"] + ys["c"].sum() * 0.5
                e["u"] = ys["x"] if form == 0 else e["u"]
            return e
        text = f"scan{form}{collected}({carried} reverse={reverse} unroll={unroll} weak={weak}: {body.text})"
        return _block(run, text, body)

    def fori(self, depth: int) -> Block:
        body, carried = self.block(depth), self.keys()
        lower, count = int(self.rng.integers(-1, 2)), int(self.rng.integers(4))

        def run(api: Any, lax: Any, e: Env) -> Env:
            def step(i: Any, carry: Env) -> Env:
                now = {**e, **carry}
                return _part(body.run(api, lax, {**now, "n": now["n"] + i}), carried)
            return {**e, **lax.fori_loop(lower, lower + count, step, _part(e, carried))}
        return _block(run, f"fori({carried} {count}: {body.text})", body)

    def computed_fori(self, depth: int) -> Block:
        body, carried = self.block(depth), self.keys()

        def run(api: Any, lax: Any, e: Env) -> Env:
            def step(i: Any, carry: Env) -> Env:
                now = {**e, **carry}
                return _part(body.run(api, lax, {**now, "n": now["n"] + i}), carried)
            return {**e, **lax.fori_loop(0, e["n"] % 4, step, _part(e, carried))}
        return Block(run, f"computed_fori({carried}: {body.text})", False, body.forward)

    def while_loop(self, depth: int) -> Block:
        body, carried, form = self.block(depth), self.keys(), int(self.rng.integers(3))

        def run(api: Any, lax: Any, e: Env) -> Env:
            def test(state: Any) -> Any:
                i, now = state[0], {**e, **state[1]}
                return (i < 3, (i < 4) & (now["s"] < 0.8), (i < 3) & ~now["b"] | (i < 1))[form]

            def step(state: Any) -> Any:
                return state[0] + 1, _part(body.run(api, lax, {**e, **state[1]}), carried)
            return {**e, **lax.while_loop(test, step, (0, _part(e, carried)))[1]}
        return Block(run, f"while{form}({carried}: {body.text})", False, body.forward)

    def map(self, depth: int) -> Block:
        body = self.block(depth)

        def run(api: Any, lax: Any, e: Env) -> Env:
            def fun(x: Any) -> Any:
                return body.run(api, lax, {**e, "s": x[0], "n": e["n"] + x[1]})["s"]
            return {**e, "u": lax.map(fun, (e["u"], np.arange(3)))}
        return _block(run, f"map({body.text})", body)

    # Transformations

    def wrapped(self, depth: int, name: str) -> Block:
        body, args, outs = self.block(depth), self.keys(), self.keys()

        def run(api: Any, lax: Any, e: Env) -> Env:
            fun = getattr(api, name)(lambda new: _part(body.run(api, lax, {**e, **new}), outs))
            return {**e, **fun(_part(e, args))}
        return _block(run, f"{name}({args} -> {outs}: {body.text})", body)

    def checkpoint(self, depth: int) -> Block:
        return self.wrapped(depth, "checkpoint")

    def jit(self, depth: int) -> Block:
        return self.wrapped(depth, "jit")

    def vmap(self, depth: int) -> Block:
        body = self.block(depth)
        name = self.choice([{}, {"axis_name": "i"}])

        def run(api: Any, lax: Any, e: Env) -> Env:
            def fun(a: Any, w: Any) -> Any:
                out = body.run(api, lax, {**e, "s": a, "u": w})
                return out["s"], out["v"]
            columns = lax.broadcast_in_dim(e["v"], (3, 2), (0,)) * np.array([1.0, 0.5])
            s, v = api.vmap(fun, (0, -1), (0, 1), **name)(e["u"][:2], columns)
            return {**e, "s": s.sum(), "v": v.sum(axis=1)}
        return _block(run, f"vmap({body.text})", body)

    def vmap_of_flags(self, depth: int) -> Block:
        body = self.block(depth)

        def run(api: Any, lax: Any, e: Env) -> Env:
            def fun(n: Any, b: Any) -> Any:
                out = body.run(api, lax, {**e, "n": n, "b": b})
                return out["s"], out["u"], out["n"]
            s, u, n = api.vmap(fun, (0, 0), (0, -1, 0))(e["n"] + np.arange(2), np.array([True, False]))
            return {**e, "s": s.sum(), "u": u[:, 0] - 0.5 * u[:, 1], "n": n.max()}
        return _block(run, f"vmap_of_flags({body.text})", body)

    def jvp(self, depth: int) -> Block:
        forward, self.forward = self.forward, True
        body = self.block(depth)
        self.forward = forward

        def run(api: Any, lax: Any, e: Env) -> Env:
            def fun(u: Any, s: Any) -> Any:
                out = body.run(api, lax, {**e, "u": u, "s": s})
                return out["s"], out["v"]
            (_, v), (s_dot, v_dot) = api.jvp(fun, (e["u"], e["s"]), (e["v"], e["s"] * 0.5))
            return {**e, "s": lax.tanh(s_dot), "v": lax.tanh(v + v_dot)}
        return _block(run, f"jvp({body.text})", body)

    def grad(self, depth: int) -> Block:
        reverse, self.reverse = self.reverse, True
        body = self.block(depth)
        self.reverse = reverse

        def run(api: Any, lax: Any, e: Env) -> Env:
            u, s = api.grad(lambda u, s: body.run(api, lax, {**e, "u": u, "s": s})["s"], (0, 1))(e["u"], e["s"])
            return {**e, "s": lax.tanh(s), "u": lax.tanh(u)}
        return _block(run, f"grad({body.text})", body)

    # Functions with derivatives of their own: not those of the function, so that it shows which are used

    def custom_jvp(self, depth: int) -> Block:
        body, other = self.block(depth), self.block(depth)

        def run(api: Any, lax: Any, e: Env) -> Env:
            @api.custom_jvp
            def fun(u: Any, s: Any, n: Any) -> Any:
                out = body.run(api, lax, {**FIXED, "u": u, "s": s, "n": n})
                return out["u"], {"s": out["s"]}

            @fun.defjvp
            def rule(primals: Any, tangents: Any) -> Any:
                (u, s, n), (u_dot, s_dot, _) = primals, tangents
                out = other.run(api, lax, {**FIXED, "u": u, "s": s, "n": n})
                return fun(u, s, n), (u_dot * out["s"] + s_dot, {"s": (u_dot * out["v"]).sum() - s_dot * 0.5})

            u, found = fun(e["u"], e["s"], e["n"])
            return {**e, "u": u, "s": found["s"]}
        return _block(run, f"custom_jvp({_texts([body, other])})", body, other)

    def custom_vjp(self, depth: int) -> Block:
        body, other = self.block(depth), self.block(depth)

        def run(api: Any, lax: Any, e: Env) -> Env:
            @api.custom_vjp
            def fun(u: Any, s: Any, n: Any) -> Any:
                out = body.run(api, lax, {**FIXED, "u": u, "s": s, "n": n})
                return out["u"], {"s": out["s"]}

            def backward(kept: Any, cts: Any) -> Any:
                (u, rest), (u_bar, s_bar) = kept, (cts[0], cts[1]["s"])
                out = other.run(api, lax, {**FIXED, "u": u, **rest})
                return u_bar * out["v"] + s_bar, s_bar * out["s"] + u_bar.sum(), None

            fun.defvjp(lambda u, s, n: (fun(u, s, n), (u, {"s": s, "n": n})), backward)
            u, found = fun(e["u"], e["s"], e["n"])
            return {**e, "u": u, "s": found["s"]}
        block = _block(run, f"custom_vjp({_texts([body, other])})", body, other)
        return Block(block.run, block.text, block.reverse, False)


#: What functions with rules of their own close over, which must be no tracers.
FIXED: Env = {"u": WEIGHTS, "v": WEIGHTS * 0.5, "s": np.float64(0.5), "n": np.int64(1), "b": np.bool_(True)}


def _block(run: Run, text: str, *parts: Block) -> Block:
    return Block(run, text, all([p.reverse for p in parts]), all([p.forward for p in parts]))


def _part(e: Env, keys: Any) -> Env:
    return {k: e[k] for k in keys}


def _texts(blocks: Sequence[Block]) -> str:
    return " ".join([f"[{block.text}]" for block in blocks])


def program(seed: int, depth: int = 2, size: int = 2) -> Block:
    """A program; derivatives of some kind go through each."""
    reverse, forward = [(True, True), (True, True), (False, True), (True, False)][seed % 4]
    return Maker(seed, reverse, forward).block(depth, size)
