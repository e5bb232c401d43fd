"""Faults in the rules of factorisations and of systems of equations."""

from __future__ import annotations

from .mutant import mutants_of

TRIANGULAR, POSITIVE = "corejax_linear_algebra.triangular", "corejax_linear_algebra.positive_definite"
PIVOTED, ORTHOGONAL = "corejax_linear_algebra.pivoted", "corejax_linear_algebra.orthogonal"
TRIDIAGONAL = "corejax_linear_algebra.tridiagonal_systems"

MUTANTS = (
    *mutants_of("triangular_solve", TRIANGULAR, "TriangularSolve.transpose", (
        ("transpose", "param", "transpose_a=not transpose_a", "transpose_a=transpose_a"),
    )),
    *mutants_of("triangular_solve", TRIANGULAR, "TriangularSolve.vmap", (
        ("vmap", "axis", "return lax.reshape(out, b.shape), at", "return lax.reshape(out, b.shape), 0"),
    )),
    *mutants_of("triangular_solve", TRIANGULAR, "_by_matrix", (
        ("jvp", "sign", "a_dot = -(swapped(a_dot) if transpose_a else a_dot)",
         "a_dot = swapped(a_dot) if transpose_a else a_dot"),
        ("jvp", "missing case", "lower_part(a_dot, -int(unit_diagonal))", "lower_part(a_dot, 0)"),
    )),
    *mutants_of("cholesky", POSITIVE, "_slope", (
        ("jvp", "dropped term", "inner / (identity(factor.dtype, factor.shape[-1], batch=factor.shape[:-2]) + 1)",
         "inner"),
    )),
    *mutants_of("lu", PIVOTED, "_slope", (
        ("jvp", "order", "rows_of(x_dot, permutation)", "x_dot"),
        ("jvp", "dropped term", "product(left, lower_part(inner, -1)) + product(upper_part(inner), right)",
         "product(left, lower_part(inner, -1))"),
    )),
    *mutants_of("qr", ORTHOGONAL, "_thin_slope", (
        ("jvp", "missing case", 'if inner.dtype.kind == "c":', "if False:"),
    )),
    *mutants_of("qr", ORTHOGONAL, "_completion_slope", (
        ("jvp", "sign", "product(thin_dot, z_adjoint) - product(", "product(thin_dot, z_adjoint) + product("),
    )),
    *mutants_of("tridiagonal_solve", TRIDIAGONAL, "TridiagonalSolve.transpose", (
        ("transpose", "swapped operands", "bind(below, d, above, cotangents", "bind(above, d, below, cotangents"),
    )),
)
