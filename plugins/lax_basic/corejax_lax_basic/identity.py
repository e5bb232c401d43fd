"""The two identities: one that keeps derivatives, and one that stops them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from corejax.core import ShapedArray
from corejax.plugin import Sample, define, hookimpl, not_linear, partials

__all__ = ["copy", "stop_gradient"]


class Copy:
    """`copy(x)`: the same values in memory of their own.

    >>> copy(np.arange(3)).tolist()
    [0, 1, 2]
    """

    name = "copy"
    linear = (0,)

    @hookimpl
    def impl(self, args: Any) -> Any:
        return args[0].copy()

    @hookimpl
    def abstract_eval(self, avals: Any) -> ShapedArray:
        return avals[0]  # type: ignore[no-any-return]

    @hookimpl
    def transpose(self, cotangents: Any, args: Any) -> Any:
        return [cotangents]

    @hookimpl
    def vmap(self, axis: Any, args: Any, dims: Any) -> Any:
        return copy(args[0]), dims[0]

    @hookimpl
    def xla_translation(self, ctx: Any, args: Any) -> Any:
        return args[0]

    @hookimpl
    def samples(self, rng: Any) -> Iterator[Sample]:
        for sizes in [(), (3,), (2, 0)]:
            yield Sample([rng.standard_normal(sizes)], {})
        yield Sample([np.arange(3)], {})


class StopGradient:
    """`stop_gradient(x)`: x, whose derivative counts as zero.

    >>> stop_gradient(np.float64(2.0)).tolist()
    2.0
    """

    name = "stop_gradient"

    @hookimpl
    def impl(self, args: Any) -> Any:
        return args[0]

    @hookimpl
    def abstract_eval(self, avals: Any) -> ShapedArray:
        return avals[0]  # type: ignore[no-any-return]

    jvp = partials(None)
    transpose = not_linear("its derivative is zero, so no tangent ever passes through it")

    @hookimpl
    def vmap(self, axis: Any, args: Any, dims: Any) -> Any:
        return stop_gradient(args[0]), dims[0]

    @hookimpl
    def xla_translation(self, ctx: Any, args: Any) -> Any:
        return args[0]

    @hookimpl
    def samples(self, rng: Any) -> Iterator[Sample]:
        # finite differences see the identity, so only the values of its derivatives are known, not their meaning
        yield Sample([rng.standard_normal(3)], {}, exempt={"jvp": "the derivative is zero by definition"})
        yield Sample([np.arange(3)], {}, exempt={"jvp": "the derivative is zero by definition"})


copy: Any = define(Copy())
stop_gradient: Any = define(StopGradient())
