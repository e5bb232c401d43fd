"""corejax with parts of it taken out: what a program means without them, as an oracle where there is no jax."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import corejax as cj
from corejax import lax
from corejax.errors import ConcretizationError


class Uncompiled:
    """Without jit."""

    def __getattr__(self, name: str) -> Any:
        return getattr(cj, name)

    @staticmethod
    def jit(fun: Any) -> Any:
        return fun


class Plain(Uncompiled):
    """Without jit, checkpoint and batches: one element runs after the other."""

    @staticmethod
    def checkpoint(fun: Any, **options: Any) -> Any:
        return fun

    @staticmethod
    def vmap(fun: Callable[..., Any], in_axes: Any = 0, out_axes: Any = 0, axis_name: Any = None,
             axis_size: Any = None) -> Any:
        def mapped(*args: Any) -> Any:
            axes = in_axes if isinstance(in_axes, tuple) else (in_axes,) * len(args)
            size = axis_size or next(np.shape(x)[axis] for x, axis in zip(args, axes) if axis is not None)
            outs = [fun(*[x if axis is None else element(x, i, axis) for x, axis in zip(args, axes)])
                    for i in range(size)]
            if out_axes is None:
                return outs[0]
            if not isinstance(out_axes, tuple):
                return cj.tree.map(lambda *ys: stack(ys, out_axes), *outs)
            return tuple([stack(ys, axis) for ys, axis in zip(zip(*outs), out_axes)])
        return mapped


class PlainLax:
    """`lax` with control flow by Python, which takes one branch and runs one step after the other."""

    def __getattr__(self, name: str) -> Any:
        return getattr(lax, name)

    def cond(self, pred: Any, true_fun: Any, false_fun: Any, *operands: Any) -> Any:
        try:
            taken = true_fun if pred else false_fun
        except ConcretizationError:  # the body of a loop that never runs
            return lax.cond(pred, true_fun, false_fun, *operands)
        return taken(*operands)

    def switch(self, index: Any, branches: Any, *operands: Any) -> Any:
        try:
            taken = branches[min(max(int(index), 0), len(branches) - 1)]
        except ConcretizationError:
            return lax.switch(index, branches, *operands)
        return taken(*operands)

    def scan(self, f: Any, init: Any, xs: Any, length: Any = None, reverse: bool = False, unroll: Any = 1) -> Any:
        leaves, tree = cj.tree.flatten(xs)
        count = len(leaves[0]) if leaves else length
        rows: list[Any] = [None] * count
        carry = init
        for i in reversed(range(count)) if reverse else range(count):
            carry, rows[i] = f(carry, tree.unflatten([element(x, i, 0) for x in leaves]))
        if count:
            return carry, cj.tree.map(lambda *ys: stack(ys, 0), *rows)
        one = cj.tree.map(lambda x: np.zeros(np.shape(x)[1:], x.dtype), xs)
        return carry, cj.tree.map(lambda y: lax.full((0, *y.shape), 0, y.dtype), cj.eval_shape(f, init, one)[1])

    def map(self, f: Any, xs: Any) -> Any:
        return self.scan(lambda _, x: (None, f(x)), None, xs)[1]

    def while_loop(self, test: Any, body: Any, state: Any) -> Any:
        while test(state):
            state = body(state)
        return state

    def bounded_while_loop(self, test: Any, body: Any, state: Any, max_steps: int) -> Any:
        for _ in range(max_steps):
            if not test(state):
                break
            state = body(state)
        return state

    def fori_loop(self, lower: Any, upper: Any, body: Any, state: Any) -> Any:
        for i in range(int(lower), int(upper)):
            state = body(i, state)
        return state


def element(x: Any, i: int, axis: int) -> Any:
    return lax.index_in_dim(x, i, axis, keepdims=False)


def stack(ys: Any, axis: int) -> Any:
    ys = [lax.convert_element_type(y, np.asarray(y).dtype) if isinstance(y, (int, float)) else y for y in ys]
    return lax.concatenate([lax.expand_dims(y, (axis % (np.ndim(y) + 1),)) for y in ys], axis % (np.ndim(ys[0]) + 1))
