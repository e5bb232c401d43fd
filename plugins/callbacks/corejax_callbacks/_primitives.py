"""What the primitives of this pack share: a call of a user's function, by itself, in a program, and for a batch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from corejax.core import Array, ShapedArray, describe, here, to_dim, to_numpy
from corejax.plugin import Effect, hookimpl
from corejax_callbacks import _values
from corejax_callbacks._calling import Callback, Each

#: The function is called once for each time that the program comes by, whenever that is.
CALLED = Effect("callback")

#: The same, in the order of the program.
CALLED_IN_ORDER = Effect("ordered_callback", ordered=True, refused={
    "devices": "devices don't wait for each other; pass ordered=False, or call it outside of the program for several"})


class Calls:
    """A primitive that calls `call` with its operands; its results are those of the types `results`."""

    multiple_results = True
    element_types = ("*",)
    operands = ("*operands",)

    @hookimpl
    def evaluate(self, args: Sequence[Any], *, call: Callback, results: tuple[ShapedArray, ...]) -> list[Any]:
        return evaluated(args, call, results)

    @hookimpl
    def xla_translation(self, ctx: Any, args: Sequence[Any], *, call: Callback, results: tuple[ShapedArray, ...]
                        ) -> list[Any]:
        return lowered(ctx, args, call, results)


def evaluated(args: Sequence[Any], call: Callback, results: Sequence[ShapedArray]) -> list[Any]:
    """The results of a call with arrays."""
    outs = call([to_numpy(x) for x in args], [x.aval for x in args], results, here())
    return [Array.from_host(_kept(x), aval) for x, aval in zip(outs, results, strict=True)]


def lowered(ctx: Any, args: Sequence[Any], call: Callback, results: Sequence[ShapedArray]) -> list[Any]:
    """The results of a call in a program."""
    avals, where = ctx.avals_in, describe(ctx.eqn.source)

    def run_as_is(*hosts: np.ndarray) -> list[np.ndarray]:
        return call(hosts, avals, results, where)

    def run(*stored: np.ndarray) -> list[np.ndarray]:
        hosts = [_values.from_program(x, aval) for x, aval in zip(stored, avals, strict=True)]
        outs = call(hosts, avals, results, where)
        return [_values.to_program(x, aval) for x, aval in zip(outs, results, strict=True)]

    as_is = all([_values.is_stored_as_is(aval) for aval in (*avals, *results)])
    found: list[Any] = ctx.callback(run_as_is if as_is else run, args, [aval.stored for aval in results])
    return found


def one_by_one(axis: Any, args: Sequence[Any], dims: Sequence[int | None], call: Callback) -> tuple[list[Any], Each]:
    """The operands for a call for each element of a batch, and what makes these calls."""
    return batches_first(axis, args, dims), Each(call, [dim is not None for dim in dims], axis.size)


def batches_first(axis: Any, args: Sequence[Any], dims: Sequence[int | None]) -> list[Any]:
    """The operands, with the axis of the batch first where they have it."""
    return [x if dim is None else to_dim(x, dim, 0, axis.size) for x, dim in zip(args, dims, strict=True)]


def with_axis(axis: Any, avals: Sequence[ShapedArray]) -> tuple[ShapedArray, ...]:
    """The types of batches of such values."""
    return tuple([aval.update(shape=(axis.size, *aval.shape)) for aval in avals])


#: What the calls of samples got, until the kit asks.
_seen: list[Any] = []


def seen() -> list[Any]:
    """What samples' functions were called with since this was last asked."""
    return [_seen.pop(0) for _ in range(len(_seen))]


def see(x: Any) -> Any:
    """x, which is kept for `seen`."""
    _seen.append(repr(np.asarray(x)))
    return x


def see_only(x: Any) -> None:
    """The same, without a result."""
    see(x)


def three(x: Any, batched: bool = False) -> np.ndarray:
    """Three doubles from any numbers, or from each last axis: for samples, whose results have one type."""
    host = np.real(np.asarray(x)).astype(np.float64)
    host = host if batched and host.ndim else host.reshape(-1)
    size = host.shape[-1]
    return host[..., np.arange(3) % size] if size else np.zeros((*host.shape[:-1], 3))


def _kept(host: np.ndarray) -> np.ndarray:
    """A copy that nobody else can write to."""
    copy = np.array(host)
    copy.flags.writeable = False
    return copy
