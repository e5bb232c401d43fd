"""A pack with a primitive whose lowering is a kernel in C++: `decaying_sum`, sums along the last axis that forget.

Each step depends on the one before, so XLA alone would need a loop of many small steps.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from corejax.core import ShapedArray, here, to_dim
from corejax.errors import CorejaxTypeError
from corejax.plugin import Sample, define, hookimpl

__all__ = ["decaying_sum"]


class DecayingSum:
    """y[..., t] = x[..., t] + decay * y[..., t - 1]; with `reverse`, from the end."""

    name = "decaying_sum"
    linear = (0,)

    @hookimpl
    def abstract_eval(self, avals: Sequence[ShapedArray], *, decay: float = 0.9, reverse: bool = False) -> ShapedArray:
        (x,) = avals
        if not x.ndim or x.dtype not in (np.float32, np.float64):
            raise CorejaxTypeError("decaying_sum: wrong operand", primitive=self.name, got=str(x), where=here(),
                                   wanted="float32 or float64 with an axis", todo="convert it: x.astype(float)")
        return x

    @hookimpl
    def transpose(self, cotangents: Any, args: Sequence[Any], *, decay: float, reverse: bool) -> list[Any]:
        return [decaying_sum(cotangents, decay=decay, reverse=not reverse)]

    @hookimpl
    def vmap(self, axis: Any, args: Sequence[Any], dims: Sequence[Any], *, decay: float, reverse: bool) -> Any:
        # The kernel takes any leading axes, so the batch becomes the first of them.
        return decaying_sum(to_dim(args[0], dims[0], 0, axis.size), decay=decay, reverse=reverse), 0

    @hookimpl
    def xla_translation(self, ctx: Any, args: Sequence[Any], *, decay: float, reverse: bool) -> Any:
        (out,) = ctx.custom_call("corejax-native.decaying_sum", args, aliases={0: 0},
                                 backend_config={"decay": float(decay), "reverse": bool(reverse)})
        return out

    @hookimpl
    def samples(self, rng: np.random.Generator) -> Iterator[Sample]:
        yield Sample([np.array([8.0, 4.0, 2.0])], {"decay": 0.5, "reverse": False}, results=np.array([8.0, 8.0, 6.0]))
        yield Sample([rng.normal(size=(3, 4))], {"decay": 0.9, "reverse": False})
        yield Sample([rng.normal(size=5).astype(np.float32)], {"decay": 0.5, "reverse": True})
        yield Sample([rng.normal(size=(2, 0))], {"decay": 0.9, "reverse": False})


decaying_sum = define(DecayingSum())
