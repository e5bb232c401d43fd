"""Sending and receiving as two operations, on GPUs only: a token says which receipt belongs after which sending."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from corejax import lax
from corejax.core import Array, ArrayLike, ShapedArray, dtypes
from corejax.errors import CorejaxNotImplementedError
from corejax.plugin import Effect, Sample, define, hookimpl, not_differentiable, not_linear, refused
from corejax_collectives import _lowering
from corejax_collectives._axes import Names, as_names, is_among
from corejax_collectives.permuting import Perm, as_perm, check_perm
from corejax_collectives.varying import cast
from corejax_control_flow import TOKEN

__all__ = ["COMMUNICATION", "precv", "psend"]

COMMUNICATION = Effect("one-sided_communication")
_EFFECTS = frozenset({COMMUNICATION})
_NO_DERIVATIVE = "what is sent and what is received are two operations; ppermute has a derivative"


class PSend:
    """`psend(x, axis_name, perm)`: sends arrays from position to position; returns a token for `precv`. For GPUs.

    `perm` is a sequence of pairs `(sender, receiver)`, as for `ppermute`, which sends and receives at once, anywhere.

    >>> import numpy as np, corejax as cj
    >>> send = lambda x: lax.psend(x, "i", [(0, 1)])  # for two GPUs, in cj.pmap(..., axis_name="i")
    """

    name = "psend"
    operands = ("x",)
    element_types = ("token",)
    jvp = not_differentiable(_NO_DERIVATIVE)
    transpose = not_linear(_NO_DERIVATIVE)

    def function(self, bind: Any) -> Any:
        def psend(x: ArrayLike, axis_name: Any, perm: Sequence[tuple[int, int]]) -> Array:
            names = as_names("psend", axis_name)
            return bind(cast(x, names), axis_name=names, perm=as_perm("psend", perm))  # type: ignore[no-any-return]
        return psend

    @hookimpl
    def abstract_eval(self, avals: Any, *, axis_name: Names, perm: Perm) -> ShapedArray:
        check_perm(self.name, perm, axis_name)
        return ShapedArray((), TOKEN.dtype)

    @hookimpl
    def effects(self, avals: Any, *, axis_name: Names, perm: Perm) -> frozenset[Effect]:
        return _EFFECTS

    @hookimpl
    def vmap(self, axis: Any, args: Any, dims: Any, *, axis_name: Names, perm: Perm) -> Any:
        _check_between_devices(self.name, axis, axis_name)
        return psend.primitive.bind(args[0], axis_name=axis_name, perm=perm), None

    @hookimpl
    def xla_translation(self, ctx: Any, args: Any, *, axis_name: Names, perm: Perm) -> Any:
        raise _only_on_gpus(ctx)

    @hookimpl
    def samples(self, rng: Any) -> Iterator[Sample]:
        yield from ()


class PRecv:
    """`precv(token, out_shape, axis_name, perm)`: receives an array of the type of `out_shape`. For GPUs.

    `token` is that of the `psend` that sends it, or `lax.create_token()`. See `psend`.

    >>> import corejax as cj
    >>> lax.create_token().shape
    ()
    """

    name = "precv"
    operands = ("token",)
    element_types = ("token",)
    jvp = not_differentiable(_NO_DERIVATIVE)
    transpose = not_linear(_NO_DERIVATIVE)

    def function(self, bind: Any) -> Any:
        def precv(token: Array, out_shape: Any, axis_name: Any, perm: Sequence[tuple[int, int]]) -> Array:
            names = as_names("precv", axis_name)
            shape, dtype = getattr(out_shape, "shape", None), getattr(out_shape, "dtype", None)
            if shape is None or dtype is None:
                raise refused("precv", "needs the type of what is received", got=repr(out_shape)[:80],
                              wanted="something with shape and dtype", todo="pass a cj.ShapeDtypeStruct, or an array")
            return bind(cast(token, names), shape=tuple(shape),  # type: ignore[no-any-return]
                        dtype=dtypes.canonical(dtype), axis_name=names, perm=as_perm("precv", perm))
        return precv

    @hookimpl
    def abstract_eval(self, avals: Any, *, shape: tuple[int, ...], dtype: np.dtype, axis_name: Names, perm: Perm
                      ) -> ShapedArray:
        (token,) = avals
        check_perm(self.name, perm, axis_name)
        if token.dtype != TOKEN.dtype or token.shape:
            raise refused(self.name, "the first operand must be a token", got=str(token), wanted="what psend returns",
                          todo="pass the token of the psend that sends it, or lax.create_token()")
        return token.update(shape=shape, dtype=dtype)  # type: ignore[no-any-return]

    @hookimpl
    def effects(self, avals: Any, *, shape: tuple[int, ...], dtype: np.dtype, axis_name: Names, perm: Perm
                ) -> frozenset[Effect]:
        return _EFFECTS

    @hookimpl
    def vmap(self, axis: Any, args: Any, dims: Any, *, shape: tuple[int, ...], dtype: np.dtype, axis_name: Names,
             perm: Perm) -> Any:
        _check_between_devices(self.name, axis, axis_name)
        token = args[0] if dims[0] is None else lax.after_all(args[0])
        out = precv.primitive.bind(token, shape=(axis.size, *shape), dtype=dtype, axis_name=axis_name, perm=perm)
        return out, 0

    @hookimpl
    def xla_translation(self, ctx: Any, args: Any, *, shape: tuple[int, ...], dtype: np.dtype, axis_name: Names,
                        perm: Perm) -> Any:
        raise _only_on_gpus(ctx)

    @hookimpl
    def samples(self, rng: Any) -> Iterator[Sample]:
        yield from ()


psend: Any = define(PSend())
precv: Any = define(PRecv())


def _check_between_devices(name: str, axis: Any, names: Names) -> None:
    if is_among(names, axis.name):
        raise refused(name, "sends between devices, and a mapped axis is within one", got=repr(axis.name)[:80],
                      wanted="an axis of a mesh of devices", todo="use lax.ppermute, which works along any axis",
                      kind=CorejaxNotImplementedError)


def _only_on_gpus(ctx: Any) -> Exception:
    return refused(ctx.eqn.primitive.name, f"can't be compiled for {ctx.platform}: only GPUs send and receive by "
                   "themselves", got=f"platform {ctx.platform!r}", wanted="'cuda' or 'rocm'",
                   todo="use lax.ppermute, which works everywhere", kind=CorejaxNotImplementedError)


# Lowering: tokens are booleans here, and the compiler's own there; a barrier makes one wait for the other

def send_on_gpu(ctx: Any, args: Any, *, axis_name: Names, perm: Perm) -> Any:
    """The operation of GPUs."""
    token = _token(ctx)
    start = ctx.op("stablehlo.create_token", [], None, [token])
    done = ctx.op("stablehlo.send", [args[0], start], _lowering.pairs(ctx, axis_name, perm), [token])
    sent = ctx.constant(np.zeros((), np.bool_))
    return ctx.op("stablehlo.optimization_barrier", [sent, done], None, [sent.type, token])[0]


def receive_on_gpu(ctx: Any, args: Any, *, shape: tuple[int, ...], dtype: np.dtype, axis_name: Names, perm: Perm
                   ) -> Any:
    """The operation of GPUs."""
    token = _token(ctx)
    start = ctx.op("stablehlo.create_token", [], None, [token])
    _, start = ctx.op("stablehlo.optimization_barrier", [args[0], start], None, [args[0].type, token])
    return ctx.op("stablehlo.recv", [start], _lowering.pairs(ctx, axis_name, perm), [ctx.out_types[0], token])[0]


def _token(ctx: Any) -> Any:
    return ctx.ir.Type.parse("!stablehlo.token", ctx.context)


RULES = {f"corejax-collectives/{name}:xla_translation@{platform}": rule
         for name, rule in (("psend", send_on_gpu), ("precv", receive_on_gpu)) for platform in ("cuda", "rocm")}
