"""`untaken`: an operand of a branch that isn't taken, where all branches run because the predicate is batched."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from corejax.plugin import Sample, define, families, hookimpl, partials

__all__ = ["untaken"]


class Untaken(families.Identity):
    """`untaken(x)`: x without derivatives: its tangent is zero, or its cotangent if it is itself a tangent.

    Whatever is computed from it won't be selected, so nothing is lost. Unlike `stop_gradient`, it may be applied to a
    tangent, which happens when a rule that carries one through a `cond` is mapped.

    >>> untaken(np.float64(2.0)).tolist()
    2.0
    """

    name = "untaken"

    jvp = partials(None)

    @hookimpl
    def transpose(self, cotangents: Any, args: Any) -> Any:
        return [None]

    @hookimpl
    def samples(self, rng: Any) -> Iterator[Sample]:
        zero = "differences see the identity; that its derivative is zero is its purpose"
        for shape in ((3,), ()):
            yield Sample([rng.standard_normal(shape)], {}, exempt=dict.fromkeys((
                "jvp agrees with differences", "jvp agrees with complex steps", "a zero derivative is of a constant",
                "orderings to depth two agree", "orderings to depth three agree",
                "transposing twice gives the original", "transpose is the adjoint"), zero))
        yield Sample([np.ones((2, 0))], {})
        yield Sample([np.arange(3)], {})


untaken: Any = define(Untaken())
