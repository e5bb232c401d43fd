"""Random programs with collectives in loops, branches, calls, maps and derivatives."""

from __future__ import annotations

import random
from typing import Any

import numpy as np

import corejax as cj
from corejax import lax
from corejax.core import Jaxpr
from devices import typed, varied

VEC = (2,)


class Program:
    """A function of some vectors, chosen at random; calling it twice does the same."""

    def __init__(self, seed: int, axes: tuple[str, ...], forward_only: bool = False) -> None:
        rng = random.Random(seed)
        self.axes, self.forward_only, self.backward_only = axes, forward_only, seed % 3 == 0 and not forward_only
        self.types = [typed(VEC, *[name for name in axes if rng.random() < 0.5]) for _ in range(rng.randint(2, 3))]
        self.seed, self.depth = rng.random(), rng.randint(1, 3)

    def __call__(self, *args: Any) -> list[Any]:
        return _Maker(random.Random(self.seed), self).body(list(args), self.depth, frozenset(), 3)


class _Maker:
    def __init__(self, rng: random.Random, program: Program) -> None:
        self.rng, self.program = rng, program

    def body(self, known: list[Any], depth: int, diverged: frozenset, n_outs: int) -> list[Any]:
        known = list(known)
        for _ in range(self.rng.randint(2, 4)):
            known.append(self.step(known, depth, diverged))
        return [known[-1], *self.rng.sample(known, min(n_outs, len(known)) - 1)]

    def fun(self, known: list[Any], depth: int, diverged: frozenset, n_outs: int = 1) -> Any:
        """A function of one more vector, which closes over what is known."""
        seed = self.rng.random()

        def made(*xs: Any) -> Any:
            outs = _Maker(random.Random(seed), self.program).body([*known, *xs], depth, diverged, n_outs)
            return outs[0] if n_outs == 1 else tuple(outs)
        return made

    def step(self, known: list[Any], depth: int, diverged: frozenset) -> Any:
        rng = self.rng
        a, b = rng.choice(known), rng.choice(known)
        names = tuple([name for name in self.program.axes if name not in diverged and rng.random() < 0.6])
        simple = ["mul", "add", "sin", "mix", "constant", "zero", "vary", "total", "total", "stop"]
        deep = ["jit", "jit_one", "checkpoint", "scan", "scan_xs", "fori", "cond", "cond", "cond_closed", "switch",
                "vmap", "composite", "solve", "pytree_scan"]
        deep += ["custom_vjp", "custom_vjp"] if self.program.backward_only else ["custom_jvp", "jvp", "linearize"]
        if self.program.forward_only:
            deep += ["while", "while"]
        elif not diverged:
            deep += ["grad", "grad", "vjp", "grad_scan"]
        what = rng.choice(simple if not depth or rng.random() < 0.3 else deep)
        return getattr(self, what)(known, a, b, names, depth - 1, diverged)

    def mul(self, known, a, b, names, depth, diverged):
        return a * b

    def add(self, known, a, b, names, depth, diverged):
        return a * 0.5 - b

    def sin(self, known, a, b, names, depth, diverged):
        return lax.sin(a)

    def mix(self, known, a, b, names, depth, diverged):
        return lax.concatenate([a[1:], b[:1]], 0) * a.sum()

    def constant(self, known, a, b, names, depth, diverged):
        return a * np.array([0.3, 0.7]) + 0.1

    def zero(self, known, a, b, names, depth, diverged):
        return lax.floor(a) + b * 0.0 + 0.25

    def stop(self, known, a, b, names, depth, diverged):
        return lax.stop_gradient(a) * b

    def vary(self, known, a, b, names, depth, diverged):
        return varied(a, *names) if names else a * 0.9

    def total(self, known, a, b, names, depth, diverged):
        return lax.psum(a, names) * 0.3 if names else lax.cos(b)

    def jit(self, known, a, b, names, depth, diverged):
        x, y = cj.jit(self.fun(known[-2:], depth, diverged, 2))(a, b)
        return x + y

    def jit_one(self, known, a, b, names, depth, diverged):
        f = cj.jit(self.fun(known[:2], depth, diverged))
        return f(a) + f(b)

    def checkpoint(self, known, a, b, names, depth, diverged):
        return cj.checkpoint(self.fun(known, depth, diverged))(a, b)

    def composite(self, known, a, b, names, depth, diverged):
        return lax.composite(self.fun([], depth, diverged), "test.f")(a, b)

    def scan(self, known, a, b, names, depth, diverged):
        f = self.fun(known, depth, diverged, 2)
        c, ys = lax.scan(lambda c, _: f(c), a, None, length=self.rng.randint(0, 3), reverse=self.rng.random() < 0.5)
        return c + ys.sum(0)

    def pytree_scan(self, known, a, b, names, depth, diverged):
        f = self.fun([known[0]], depth, diverged, 2)
        c, _ = lax.scan(lambda c, _: ((c[1], f(c[0])[0] * 0.5), None), (a, b), None, length=2)
        return c[0] * c[1]

    def scan_xs(self, known, a, b, names, depth, diverged):
        f = self.fun(known[-2:], depth, diverged, 2)
        c, ys = lax.scan(lambda c, x: f(c * x), a, lax.concatenate([b, a], 0), unroll=self.rng.randint(1, 2))
        return c * ys[1]

    def grad_scan(self, known, a, b, names, depth, diverged):
        f = self.fun(known, depth, diverged)
        return cj.grad(lambda a: lax.psum(lax.scan(lambda c, x: (f(c) * x, c), a, b)[0].sum(), self.program.axes))(a)

    def fori(self, known, a, b, names, depth, diverged):
        f = self.fun(known, depth, diverged)
        return lax.fori_loop(0, 2, lambda i, c: f(c) * 0.5, a)

    def _diverged(self, pred, diverged):
        return diverged | pred.aval.varying

    def cond(self, known, a, b, names, depth, diverged):
        pred = b.sum() > 1.0
        inner = self._diverged(pred, diverged)
        f, g = [self.fun(known[-2:], depth, inner, 2) for _ in range(2)]
        x, y = lax.cond(pred, f, g, a)
        return x - y

    def cond_closed(self, known, a, b, names, depth, diverged):
        pred = lax.sin(b * 5.0)[0] > 0.2
        inner = self._diverged(pred, diverged)
        f = self.fun(known, depth, inner)
        return lax.cond(pred, lambda: f(a), lambda: b)

    def switch(self, known, a, b, names, depth, diverged):
        index = (a[0] * 3.0).astype("int32")
        inner = self._diverged(index, diverged)
        return lax.switch(index, [self.fun(known[:1], depth, inner), lambda x: np.ones(2), lambda x: x * b], a)

    def vmap(self, known, a, b, names, depth, diverged):
        f = self.fun(known, depth, diverged)
        return cj.vmap(lambda s: f(a * s))(b)[:, 0]

    def custom_jvp(self, known, a, b, names, depth, diverged):
        plain = self.fun([], depth, frozenset(self.program.axes))
        f = cj.custom_jvp(lambda a, b: plain(a, b))
        f.defjvp(lambda xs, dots: cj.jvp(plain, xs, dots))
        return f(a, b)

    def custom_vjp(self, known, a, b, names, depth, diverged):
        plain = self.fun([], depth, frozenset(self.program.axes))  # mapped rules would sum under another convention
        f = cj.custom_vjp(lambda a, b: plain(a, b))
        f.defvjp(lambda a, b: (plain(a, b), (a, b)), lambda xs, ct: cj.vjp(plain, *xs)[1](ct))
        return f(a, b)

    def jvp(self, known, a, b, names, depth, diverged):
        f = self.fun(known, depth, diverged)
        out, dot = cj.jvp(f, (a,), (a * 0.3,))
        return out * dot

    def linearize(self, known, a, b, names, depth, diverged):
        out, f = cj.linearize(self.fun(known, depth, diverged), a)
        return out + f(np.ones(2)) - f(a)

    def grad(self, known, a, b, names, depth, diverged):
        f = self.fun(known, depth, diverged)
        return cj.grad(lambda a: lax.psum(lax.sin(f(a)).sum(), self.program.axes))(a)

    def vjp(self, known, a, b, names, depth, diverged):
        f = self.fun(known[-1:], depth, diverged, 2)
        outs, pull = cj.vjp(f, a, b)
        return pull((outs[0], outs[1] * 2.0))[self.rng.randint(0, 1)]

    def solve(self, known, a, b, names, depth, diverged):
        scale = 2.0 + lax.sin(b)
        return lax.custom_linear_solve(lambda z: z * scale, a, lambda f, y: y / scale, symmetric=True)

    def __getattr__(self, name):
        if name == "while":
            return self._while
        raise AttributeError(name)

    def _while(self, known, a, b, names, depth, diverged):
        inner = diverged | b.aval.varying | a.aval.varying
        f = self.fun([], 0, inner | frozenset(self.program.axes))
        return lax.while_loop(lambda c: c[1] < b.sum() * 3.0, lambda c: (f(c[0]) * 0.5, c[1] + 1.0), (a, 0.0))[0]


def diverging_sums(jaxpr: Jaxpr, diverged: frozenset = frozenset()) -> list[Any]:
    """Sums over devices of which some may run another branch, or another number of steps."""
    found = []
    for eqn in jaxpr.eqns:
        inner = diverged
        if eqn.primitive.name == "psum_invariant" and diverged.intersection(eqn.params["axes"]):
            found.append(eqn)
        if eqn.primitive.name == "cond":
            inner = diverged | eqn.invars[0].aval.varying
        if eqn.primitive.name == "while_loop":
            inner = diverged | eqn.params["cond_jaxpr"].outvars[0].aval.varying
        for value in eqn.params.values():
            for part in value if isinstance(value, tuple) else (value,):
                if isinstance(part, Jaxpr):
                    found += diverging_sums(part, inner)
    return found
