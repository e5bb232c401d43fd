"""Random programs with control flow under random transformations.

The oracles: the same program in plain Python, which takes one branch, runs one step after the other and one element of
a batch after the other; and (where installed) jax. A failure names the seed and the program.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import corejax as cj
from corejax import lax
from corejax.core import eval_jaxpr
from corejax.ir import parse_jaxpr, typecheck
from random_programs import Block, program

ARGS = (np.array([0.3, -0.7, 1.1]), np.array([0.5, 0.25, -1.0]), np.float64(0.4), np.int64(1), np.bool_(True))
DOTS = (np.array([1.0, 0.5, -0.25]), np.array([-0.3, 0.8, 0.1]), np.float64(0.7))
FLOAT0 = np.zeros((), cj.float0)
KEYS = ("u", "v", "s", "n", "b")


# Plain Python

class PlainLax:
    """`lax` without control-flow primitives."""

    def __getattr__(self, name: str) -> Any:
        return getattr(lax, name)

    def cond(self, pred: Any, true_fun: Any, false_fun: Any, *operands: Any) -> Any:
        return (true_fun if pred else false_fun)(*operands)

    def switch(self, index: Any, branches: Any, *operands: Any) -> Any:
        return branches[min(max(int(index), 0), len(branches) - 1)](*operands)

    def scan(self, f: Any, init: Any, xs: Any, length: Any = None, reverse: bool = False, unroll: Any = 1) -> Any:
        leaves, tree = cj.tree.flatten(xs)
        count = len(leaves[0]) if leaves else length
        rows: list[Any] = [None] * count
        carry = init
        for i in reversed(range(count)) if reverse else range(count):
            carry, rows[i] = f(carry, tree.unflatten([cj.device_put(x)[i] for x in leaves]))
        if count:
            return carry, cj.tree.map(lambda *ys: stack(ys, 0), *rows)
        return carry, cj.tree.map(lambda y: np.zeros((0, *np.shape(y)), np.asarray(y).dtype), f(init, None)[1])

    def map(self, f: Any, xs: Any) -> Any:
        return self.scan(lambda _, x: (None, f(x)), None, xs)[1]

    def while_loop(self, test: Any, body: Any, state: Any) -> Any:
        while test(state):
            state = body(state)
        return state

    def fori_loop(self, lower: Any, upper: Any, body: Any, state: Any) -> Any:
        for i in range(int(lower), int(upper)):
            state = body(i, state)
        return state


class Plain:
    """The transformations of which the program in plain Python makes use, without programs and batches."""

    jvp, grad, vjp, custom_jvp, custom_vjp = map(
        staticmethod, (cj.jvp, cj.grad, cj.vjp, cj.custom_jvp, cj.custom_vjp))

    @staticmethod
    def jit(fun: Any) -> Any:
        return fun

    checkpoint = jit

    @staticmethod
    def vmap(fun: Any, in_axes: Any, out_axes: Any = 0, axis_name: Any = None) -> Any:
        def mapped(*args: Any) -> Any:
            size = next(np.shape(x)[axis] for x, axis in zip(args, in_axes) if axis is not None)
            outs = [fun(*[x if axis is None else element(x, i, axis) for x, axis in zip(args, in_axes)])
                    for i in range(size)]
            if isinstance(outs[0], dict):
                return {k: stack([out[k] for out in outs], out_axes[k]) for k in outs[0]}
            if isinstance(outs[0], tuple):
                axes = out_axes if isinstance(out_axes, tuple) else (out_axes,) * len(outs[0])
                return tuple([stack(ys, axis) for ys, axis in zip(zip(*outs), axes)])
            return stack(outs, out_axes)
        return mapped


def element(x: Any, i: int, axis: int) -> Any:
    return lax.index_in_dim(x, i, axis, keepdims=False)


def stack(ys: Any, axis: int) -> Any:
    ys = [lax.convert_element_type(y, np.asarray(y).dtype) if isinstance(y, (int, float)) else y for y in ys]
    return lax.concatenate([lax.expand_dims(y, (axis % (np.ndim(y) + 1),)) for y in ys], axis % (np.ndim(ys[0]) + 1))


# Transformations

Case = Callable[[Any, Any], Any]


class Cases:
    """A program under transformations, as functions of the library: `case(api, lax)`."""

    def __init__(self, seed: int, block: Block) -> None:
        rng = np.random.default_rng(seed)
        self.block = block
        self.size = int(rng.choice([1, 2, 3]))
        self.axes = [[None, 0, -1][int(rng.integers(3))] if k < 2 else [None, 0][int(rng.integers(2))]
                     for k in range(5)]
        self.axes[int(rng.integers(5))] = 0
        self.out_axes = {"u": int(rng.choice([0, 1, -1])), "v": 0, "s": 0, "n": 0, "b": 0}
        self.name = [{}, {"axis_name": "z"}][int(rng.integers(2))]
        self.argnums = tuple(sorted(rng.permutation(3)[: int(rng.integers(1, 4))].tolist()))
        self.zeros = [bool(rng.integers(2)) for _ in range(3)]

    def outputs(self, api: Any, lx: Any) -> Any:
        return lambda *args: self.block.run(api, lx, dict(zip(KEYS, args)))

    def loss(self, api: Any, lx: Any) -> Any:
        def loss(*args: Any) -> Any:
            e = self.outputs(api, lx)(*args)
            return (e["u"] * DOTS[1]).sum() + (e["v"] * DOTS[0]).sum() * 0.5 + e["s"] * 1.5
        return loss

    def batch(self, size: int) -> list[Any]:
        def rows(x: Any) -> list[Any]:
            change = {"b": lambda i: x ^ bool(i % 2), "i": lambda i: x + i}.get(
                x.dtype.kind, lambda i: x * (1 - 0.6 * i) + 0.1 * i)
            return [change(i) for i in range(max(1, size))]
        stacked = [x if a is None else np.stack(rows(x), a if x.ndim else 0) for x, a in zip(ARGS, self.axes)]
        if not size:
            return [x if a is None else x.take([], a) for x, a in zip(stacked, self.axes)]
        return stacked

    def all(self) -> dict[str, Case]:
        found: dict[str, Case] = {
            "value": lambda api, lx: self.outputs(api, lx)(*ARGS),
            "jit": lambda api, lx: api.jit(self.outputs(api, lx))(*ARGS),
            "vmap": lambda api, lx: self.mapped(api, self.outputs(api, lx), self.out_axes)(*self.batch(self.size)),
            "jit vmap": lambda api, lx: api.jit(self.mapped(api, self.outputs(api, lx), self.out_axes))(
                *self.batch(self.size))}
        if self.block.forward:
            found |= {"jvp": self.jvp, "jvp float0": self.jvp_of_all, "vmap jvp": self.vmap_of_jvp}
        if self.block.reverse:
            found |= {
                "grad": lambda api, lx: api.grad(self.loss(api, lx), self.argnums)(*ARGS),
                "jit grad": lambda api, lx: api.jit(api.grad(self.loss(api, lx), self.argnums))(*ARGS),
                "vjp": self.vjp,
                "vmap grad": lambda api, lx: self.mapped(api, api.grad(self.loss(api, lx), self.argnums))(
                    *self.batch(self.size)),
                "grad vmap": lambda api, lx: api.grad(lambda *args: self.mapped(
                    api, self.loss(api, lx))(*args).sum(), self.argnums)(*self.batch(self.size))}
        if self.block.reverse and self.block.forward:
            found |= {"grad grad": self.grad_of_grad, "jvp grad": self.jvp_of_grad, "grad jvp": self.grad_of_jvp}
        return found

    def mapped(self, api: Any, fun: Any, out_axes: Any = 0) -> Any:
        return api.vmap(fun, tuple(self.axes), out_axes, **self.name)

    def jvp(self, api: Any, lx: Any) -> Any:
        return api.jvp(lambda *args: floats(self.outputs(api, lx)(*args, *ARGS[3:])), ARGS[:3], DOTS)

    def jvp_of_all(self, api: Any, lx: Any) -> Any:
        return [floats(e) for e in api.jvp(self.outputs(api, lx), ARGS, (*DOTS, FLOAT0, FLOAT0))]

    def vmap_of_jvp(self, api: Any, lx: Any) -> Any:
        def derivative(*args: Any) -> Any:
            return api.jvp(lambda u: self.loss(api, lx)(u, *args[1:]), args[:1], DOTS[:1])
        return self.mapped(api, derivative)(*self.batch(self.size))

    def vjp(self, api: Any, lx: Any) -> Any:
        outs, pullback = api.vjp(lambda *args: self.outputs(api, lx)(*args, *ARGS[3:]), *ARGS[:3])
        cts = [ct * (not zero) for ct, zero in zip((DOTS[1], DOTS[0], np.float64(2.0)), self.zeros)]
        return outs, pullback(dict(zip(KEYS, (*cts, FLOAT0, FLOAT0))))

    def grad_of_grad(self, api: Any, lx: Any) -> Any:
        return api.grad(lambda u, *rest: (api.grad(self.loss(api, lx))(u, *rest) * DOTS[0]).sum(), self.argnums)(*ARGS)

    def jvp_of_grad(self, api: Any, lx: Any) -> Any:
        return api.jvp(lambda u: api.grad(self.loss(api, lx), self.argnums)(u, *ARGS[1:]), ARGS[:1], DOTS[:1])

    def grad_of_jvp(self, api: Any, lx: Any) -> Any:
        return api.grad(lambda u, *rest: api.jvp(lambda u: self.loss(api, lx)(u, *rest), (u,), DOTS[:1])[1],
                        self.argnums)(*ARGS)


def floats(e: dict[str, Any]) -> dict[str, Any]:
    return {k: x for k, x in e.items() if k not in "nb"}


def assert_same(got: Any, wanted: Any, what: str, exact_types: bool = False) -> None:
    """`wanted` may be what jax returned."""
    ours, theirs = cj.tree.leaves(got), cj.tree.leaves(wanted)
    assert len(ours) == len(theirs), what
    for x, y in zip(map(np.asarray, ours), map(np.asarray, theirs), strict=True):
        assert x.shape == y.shape, what
        assert not exact_types or x.dtype == y.dtype, what
        if x.dtype.kind != "V":
            np.testing.assert_allclose(x.astype(float), y.astype(float), rtol=1e-7, atol=1e-9, err_msg=what)


def chosen(seed: int, table: dict[str, Case], count: int) -> list[str]:
    names = [*table]
    return [names[i] for i in np.random.default_rng(seed).permutation(len(names))[:count]]


@pytest.mark.parametrize("seed", range(24))
def test_a_random_program_is_its_plain_form_under_transformations(seed):
    block = program(seed)
    table = Cases(seed, block).all()
    for name in chosen(seed, table, 3):
        what = f"seed {seed}: {name} of {block.text}"
        assert_same(table[name](cj, lax), table[name](Plain, PlainLax()), what)


@pytest.mark.parametrize("seed", range(100, 112))
def test_a_random_program_prints_parses_and_evaluates_alike(seed):
    block = program(seed)
    loss = Cases(seed, block).loss(cj, lax)
    for fun in [loss, cj.grad(loss)] if block.reverse else [loss]:
        closed = cj.make_jaxpr(fun)(*ARGS)
        typecheck(closed.jaxpr)
        wanted = fun(*ARGS)
        assert_same(eval_jaxpr(closed.jaxpr, closed.consts, *ARGS), [wanted], block.text)
        if "opaque" not in str(closed.jaxpr):
            parsed = parse_jaxpr(str(closed.jaxpr), lambda name: getattr(lax, name).primitive)
            typecheck(parsed)
            assert str(parsed) == str(closed.jaxpr)
            assert_same(eval_jaxpr(parsed, closed.consts, *ARGS), [wanted], block.text)


@pytest.mark.parametrize("seed", range(200, 208))
def test_a_random_program_agrees_with_jax(seed):
    jax = pytest.importorskip("jax")
    jax.config.update("jax_enable_x64", True)
    block = program(seed)
    table = Cases(seed, block).all()
    for name in chosen(seed, table, 2):
        what = f"seed {seed}: {name} of {block.text}"
        assert_same(table[name](cj, lax), table[name](jax, jax.lax), what, exact_types=True)
