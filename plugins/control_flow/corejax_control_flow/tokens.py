"""Tokens: values that mean nothing but that something comes before something else. Experimental, as in JAX.

A token is an element type of this pack, stored as one boolean. It can be passed on like any array, through programs,
loops and maps, and nothing computes with it. What orders operations is that one needs the result of the other:
`after_all` is a value that the compiler can't make before each of its operands. Operations with effects don't take
tokens here: where these have an order, programs keep it by themselves.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from corejax.core import Array, ShapedArray, to_dim
from corejax.plugin import ElementType, Sample, define, hookimpl, not_differentiable, not_linear, refused

__all__ = ["TOKEN", "after_all", "create_token"]

TOKEN = ElementType("token", "bool", show=lambda stored: "token", todo="pass it on, or merge it with lax.after_all")

_NO_DERIVATIVE = not_differentiable("a token has no derivative")


class CreateToken:
    """`create_token()`: a token that nothing has to come before. An argument is ignored, as it is in JAX.

    >>> create_token()
    Array(token, dtype=token)
    """

    name = "create_token"
    element_types = ("token",)

    jvp = _NO_DERIVATIVE
    transpose = not_linear("it has no operands")

    def function(self, bind: Any) -> Any:
        def create_token(ignored: Any = None) -> Array:
            return bind()  # type: ignore[no-any-return]
        return create_token

    @hookimpl
    def abstract_eval(self, avals: Any) -> ShapedArray:
        if avals:
            raise refused(self.name, "it takes no operands", got=[*avals], wanted="none", todo="leave them out")
        return ShapedArray((), TOKEN.dtype)

    @hookimpl
    def impl(self, args: Any) -> Any:
        return np.zeros((), np.bool_)

    @hookimpl
    def vmap(self, axis: Any, args: Any, dims: Any) -> Any:
        return create_token(), None

    @hookimpl
    def xla_translation(self, ctx: Any, args: Any) -> Any:
        return ctx.constant(np.zeros((), np.bool_))

    @hookimpl
    def samples(self, rng: Any) -> Iterator[Sample]:
        yield Sample([])
        yield Sample([np.bool_(False)], error=TypeError)


create_token: Any = define(CreateToken())


class AfterAll:
    """`after_all(*tokens)`: a token that comes after each of these; they all have the same shape.

    >>> after_all(create_token(), create_token())
    Array(token, dtype=token)
    """

    name = "after_all"
    element_types = ("token",)
    operands = ("*tokens",)

    jvp = _NO_DERIVATIVE
    transpose = not_linear("tokens can't be added")

    @hookimpl
    def abstract_eval(self, avals: Any) -> ShapedArray:
        first = avals[0] if avals else ShapedArray((), TOKEN.dtype)
        for aval in avals:
            if aval.dtype != TOKEN.dtype:
                raise refused(self.name, "the operands must be tokens", got=[*avals], wanted="token[]",
                              todo="make one with lax.create_token()")
            if aval.shape != first.shape:
                raise refused(self.name, "the tokens differ in shape", got=[*avals], wanted="one shape",
                              todo="index or broadcast them first")
        return first

    @hookimpl
    def impl(self, args: Any) -> Any:
        return np.zeros(np.shape(args[0]) if args else (), np.bool_)

    @hookimpl
    def vmap(self, axis: Any, args: Any, dims: Any) -> Any:
        return after_all(*[to_dim(x, d, 0, axis.size) for x, d in zip(args, dims, strict=True)]), 0

    @hookimpl
    def xla_translation(self, ctx: Any, args: Any) -> Any:
        if not args:
            return ctx.constant(np.zeros((), np.bool_))
        made = ctx.op("stablehlo.optimization_barrier", args, out_types=[x.type for x in args])
        return made[0] if isinstance(made, list) else made

    @hookimpl
    def samples(self, rng: Any) -> Iterator[Sample]:
        one = create_token()
        yield Sample([one])
        yield Sample([one, create_token(), one])
        yield Sample([])
        yield Sample([one, np.bool_(False)], error=TypeError)


after_all: Any = define(AfterAll())
