"""Transformations of random programs, written for any library with the interface of jax.

Each takes a function of all slots that returns a pytree and gives another. Derivatives are with respect to some of the
arguments; the scalar that a gradient needs is a weighted sum of all inexact results.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .slots import NARROWED, Slot

Function = Callable[..., Any]

MATRIX = np.linspace(-1, 1, 300).reshape(100, 3)


class Transformations:
    """Those of one library, for functions of these slots, differentiable in those at `argnums`."""

    def __init__(self, api: Any, lax: Any, slots: Sequence[Slot], argnums: Sequence[int], mapped: Sequence[bool]
                 ) -> None:
        self.api, self.lax = api, lax
        self.slots, self.argnums, self.mapped = slots, tuple(argnums), tuple(mapped)
        self.real = slots[0].dtype  # that of `u`

    def apply(self, names: Sequence[str], fun: Function) -> Function:
        """The function under all of these, outermost first."""
        for name in reversed(names):
            fun = getattr(self, name)(fun)
        return fun

    def jit(self, fun: Function) -> Function:
        return self.api.jit(fun)  # type: ignore[no-any-return]

    def vmap(self, fun: Function) -> Function:
        axes = [0 if mapped else None for mapped in self.mapped]

        def mapped(*args: Any) -> Any:
            rows = [self.rows(x) if axis == 0 else x for x, axis in zip(args, axes, strict=True)]
            return self.api.vmap(fun, tuple(axes))(*rows)
        return mapped

    def grad(self, fun: Function) -> Function:
        def derivative(*args: Any) -> Any:
            def loss(*xs: Any) -> Any:
                return self.total(fun(*self.put(args, xs)))
            return self.api.grad(loss, tuple(range(len(self.argnums))))(*self.taken(args))
        return derivative

    def vjp(self, fun: Function) -> Function:
        def derivative(*args: Any) -> Any:
            outs, pullback = self.api.vjp(self.partly(fun, args), *self.taken(args))
            return outs, pullback([np.full(np.shape(x), 0.75 - 0.5 * (i % 2)).astype(self.dtype(x))
                                   for i, x in enumerate(outs)])
        return derivative

    def jvp(self, fun: Function) -> Function:
        return lambda *args: self.api.jvp(self.partly(fun, args), self.taken(args), self.dots())

    def linearize(self, fun: Function) -> Function:
        def derivative(*args: Any) -> Any:
            outs, linear = self.api.linearize(self.partly(fun, args), *self.taken(args))
            return outs, linear(*self.dots())
        return derivative

    # Parts of them

    def taken(self, args: Sequence[Any]) -> tuple[Any, ...]:
        return tuple([args[k] for k in self.argnums])

    def put(self, args: Sequence[Any], xs: Sequence[Any]) -> list[Any]:
        found = list(args)
        for k, x in zip(self.argnums, xs, strict=True):
            found[k] = x
        return found

    def partly(self, fun: Function, args: Sequence[Any]) -> Function:
        """A function of the differentiable arguments alone; its inexact results in a list."""
        return lambda *xs: self.inexact(fun(*self.put(args, xs)))

    def dots(self) -> tuple[Any, ...]:
        return tuple([self.slots[k].constant * self.slots[k].dtype.type(0.5) for k in self.argnums])

    def inexact(self, tree: Any) -> list[Any]:
        return [x for x in self.api.tree.leaves(tree) if self.kind(x) in "fcV"]

    def dtype(self, x: Any) -> Any:
        if hasattr(x, "dtype"):
            return np.dtype(x.dtype)
        return np.dtype(type(x)) if self.real.itemsize == 8 else NARROWED.get(np.dtype(type(x)), np.dtype(type(x)))

    def kind(self, x: Any) -> str:
        """A letter for the kind of dtype; V is bfloat16, for float0 there is none."""
        dtype = self.dtype(x)
        return "" if dtype.names is not None or dtype == np.dtype([("float0", np.void, 0)]) else dtype.kind

    def rows(self, x: Any) -> Any:
        """Two elements of a batch made of a value: it, and something like it."""
        both = self.lax.broadcast_in_dim(x, (2, *np.shape(x)), tuple(range(1, np.ndim(x) + 1)))
        column = np.array([0, 1]).reshape(2, *[1] * np.ndim(x))
        kind = self.kind(x)
        if kind == "b":
            return both ^ (column > 0)
        if kind in "iu":
            return both + column.astype(self.dtype(x))
        return both * (1 - column * 0.5).astype(self.dtype(x))

    def total(self, tree: Any) -> Any:
        """A scalar that depends on all inexact leaves."""
        found = self.real.type(0.0)
        for i, x in enumerate(self.inexact(tree)):
            weights = (1.0 + 0.25 * np.cos(np.arange(np.size(x)) + i)).reshape(np.shape(x)).astype(self.real)
            if self.kind(x) == "c":
                x = self.lax.real(x) - 0.5 * self.lax.imag(x)
            found = found + (self.lax.convert_element_type(x, self.real) * weights).sum()
        return found


NAMES = ("jit", "vmap", "grad", "jvp", "linearize", "vjp")
NEEDS = {"grad": "reverse", "vjp": "reverse", "jvp": "forward", "linearize": "forward"}
