"""Systems of linear equations in derivatives: one factorisation serves all of these, in both modes."""

from __future__ import annotations

from typing import Any

from corejax import lax
from corejax_linear_algebra._matrices import conjugate, product
from corejax_linear_algebra.pivoted import lu, lu_solve


def solved(a: Any, b: Any) -> Any:
    """a^-1 b, for square matrices a and as many matrices b."""
    factors, _, permutation = lu(lax.stop_gradient(a))
    return lax.custom_linear_solve(
        lambda x: product(a, x), b, lambda _, y: lu_solve(factors, permutation, y),
        lambda _, y: conjugate(lu_solve(factors, permutation, conjugate(y), adjoint=True)))
