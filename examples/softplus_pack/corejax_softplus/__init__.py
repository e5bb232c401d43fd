"""A pack with one primitive, written like a third-party pack.

>>> import corejax as cj
>>> from corejax_softplus import softplus
>>> cj.grad(softplus)(0.0)
Array(0.5, dtype=float64, weak_type=True)
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from corejax import lax
from corejax.plugin import Sample, define, hookimpl

__all__ = ["softplus"]


class Softplus:
    """log(1 + exp(x)), elementwise: a smooth max(x, 0), and exact where exp(x) would overflow.

    >>> softplus(0.0)
    Array(0.69314718, dtype=float64, weak_type=True)
    """

    name = "softplus"
    operands = ("x",)

    @hookimpl
    def decompose(self, args: Sequence[Any]) -> Any:
        (x,) = args
        # lax.add requires the same dtype, so complex x, whose absolute value is real, is rejected
        return lax.add(lax.max(x, 0.0), lax.log1p(lax.exp(-lax.abs(x))))

    @hookimpl
    def impl(self, args: Sequence[np.ndarray]) -> Any:
        (x,) = args
        return np.logaddexp(x, x.dtype.type(0))  # one pass over the array, where decompose takes six

    @hookimpl
    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        # Without this rule, the derivative at 0, which is 1/2, would be wrong: max and abs have none there.
        (x,), (x_dot,) = primals, tangents
        return softplus(x), lax.logistic(x) * x_dot

    @hookimpl
    def vmap(self, axis: Any, args: Sequence[Any], dims: Sequence[Any]) -> tuple[Any, Any]:
        # Elementwise, so the batch axis stays where it is. Without this rule, vmap would decompose softplus, and
        # differentiation after that would differentiate the parts.
        return softplus(args[0]), dims[0]

    @hookimpl
    def samples(self, rng: np.random.Generator) -> Iterator[Sample]:
        yield Sample([rng.normal(size=(3, 4))])
        yield Sample([rng.normal(size=5).astype(np.float32)])
        yield Sample([np.array([-1000.0, -0.5, 0.0, 0.5, 1000.0])])


softplus = define(Softplus())
