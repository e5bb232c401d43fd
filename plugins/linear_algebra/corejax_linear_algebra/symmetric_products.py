"""Products of matrices with their own transposes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from corejax import lax
from corejax.core import Array, ArrayLike, ShapedArray, dtypes
from corejax.plugin import Sample, define, hookimpl, refused, shaping
from corejax_linear_algebra import _cusolver
from corejax_linear_algebra._matrices import REAL, all_weak, lower_part, matrices, mismatch, product, swapped, typed

__all__ = ["symmetric_product"]

_ACCEPTED = (*REAL, np.dtype(np.float16), dtypes.bfloat16)


class SymmetricProduct:
    """`symmetric_product(a_matrix, c_matrix, *, alpha=1.0, beta=0.0, symmetrize_output=False)`: alpha a a^T + beta c.

    GPUs compute the lower triangle only; with `symmetrize_output`, its transpose is put in place of the upper one.

    >>> lax.linalg.symmetric_product(np.array([[1.0], [2.0]]), np.eye(2), beta=1.0).tolist()
    [[2.0, 2.0], [2.0, 5.0]]
    """

    name = "symmetric_product"
    operands = ("a_matrix", "c_matrix")

    def function(self, bind: Callable[..., Any]) -> Any:
        def symmetric_product(a_matrix: ArrayLike, c_matrix: ArrayLike, *, alpha: float = 1.0, beta: float = 0.0,
                              symmetrize_output: bool = False) -> Array:
            out = bind(a_matrix, c_matrix, alpha=_as_float("alpha", alpha), beta=_as_float("beta", beta))
            if shaping.as_flag("symmetric_product", "symmetrize_output", symmetrize_output):
                out = lower_part(out) + swapped(lower_part(out, -1))
            return out  # type: ignore[no-any-return]
        return symmetric_product

    @hookimpl
    def abstract_eval(self, avals: Any, *, alpha: float = 1.0, beta: float = 0.0) -> ShapedArray:
        a, c = avals
        _, [(m, _), shape] = matrices(self.name, avals, (2, 2), _ACCEPTED)
        if shape != (m, m):
            raise mismatch(self.name, "c must have the shape of the product", [a, c], f"a {m} by {m} matrix c",
                           "without c, pass zeros of that shape")
        return typed(c, c.shape, c.dtype, all_weak(avals))

    @hookimpl
    def decompose(self, args: Any, *, alpha: float, beta: float) -> Any:
        a, c = args
        return _scaled(product(a, swapped(a)), alpha) + _scaled(c, beta)

    @hookimpl
    def samples(self, rng: Any) -> Iterator[Sample]:
        a, c = rng.standard_normal((2, 3)), rng.standard_normal((2, 2))
        yield Sample([a, c], {"alpha": 1.0, "beta": 0.5}, results=a @ a.T + 0.5 * c, ulps=1e3)
        a, c = rng.standard_normal((2, 3, 1)), rng.standard_normal((2, 3, 3))
        yield Sample([a, c], {"alpha": -2.0, "beta": 0.0}, results=-2.0 * a @ np.swapaxes(a, -1, -2), ulps=1e3)
        yield Sample([np.ones((2, 0)), np.ones((2, 2))], {"alpha": 1.0, "beta": 2.0}, results=np.full((2, 2), 2.0))
        yield Sample([np.ones((2, 3)), np.ones((3, 3))], {"alpha": 1.0, "beta": 0.5}, error=ValueError)
        yield Sample([np.ones((2, 3), complex), np.ones((2, 2), complex)], {"alpha": 1.0, "beta": 0.5},
                     error=TypeError)


def _scaled(x: Any, factor: float) -> Any:
    return lax.mul(x, lax.full_like(x, factor))


def _as_float(what: str, value: Any) -> float:
    if isinstance(value, (bool, int, float, np.integer, np.floating)):
        return float(value)
    raise refused("symmetric_product", f"{what} must be a static number", got=f"{what}={value!r:.80}",
                  wanted="a Python or NumPy real number", todo="multiply the operands, if it is traced")


symmetric_product: Any = define(SymmetricProduct())


def symmetric_product_on_cuda(ctx: Any, args: Any, *, alpha: float, beta: float) -> Any:
    """cuBLAS's function."""
    a, c = ctx.avals_in
    scalar = ShapedArray((), a.dtype)
    factors = [ctx.constant(np.asarray(value, a.dtype)) for value in (alpha, beta)]
    return _cusolver.call(ctx, "syrk", [*args, *factors], [a, c, scalar, scalar], ctx.avals_out, {1: 0},
                          columns=False, transpose=False)[0]


RULES = {"corejax-linear-algebra/symmetric_product:xla_translation@cuda": symmetric_product_on_cuda}
