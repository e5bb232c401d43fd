"""Faults in the rules of eigenvalues, singular values and condensed forms."""

from __future__ import annotations

from .mutant import mutants_of

SYMMETRIC, GENERAL = "corejax_linear_algebra.eigenvalues", "corejax_linear_algebra.general_eigenvalues"
SINGULAR, FORMS = "corejax_linear_algebra.singular_values", "corejax_linear_algebra.condensed_forms"

MUTANTS = (
    *mutants_of("eigh", SYMMETRIC, "Eigh.impl", (
        ("impl", "param", '"eigh_lo" if lower else "eigh_up"', '"eigh_lo"'),
        ("impl", "order", "return v, w", "return np.flip(v, -1), np.flip(w, -1)"),
    )),
    *mutants_of("eigh", SYMMETRIC, "Eigh.jvp", (
        ("jvp", "dropped term", "diagonal(real)", "diagonal(real) * 0.5"),
    )),
    *mutants_of("svd", SINGULAR, "SVD.abstract_eval", (
        ("abstract_eval", "dtype", "real_dtype(x.dtype), weak)", "x.dtype, weak)"),
    )),
    *mutants_of("svd", SINGULAR, "SVD.vmap", (
        ("vmap", "axis", "return outs, [0] * len(outs)", "return outs, [0, *[1] * (len(outs) - 1)]"),
    )),
    *mutants_of("svd", SINGULAR, "_turned", (
        ("jvp", "dropped term", "if m > n:", "if m > n + 9:"),
        ("jvp", "swapped operands", "by_columns, by_rows = columns * inner, rows * inner",
         "by_columns, by_rows = rows * inner, columns * inner"),
    )),
    *mutants_of("eig", GENERAL, "Eig.jvp", (
        ("jvp", "conj", "_tangents(conjugate(w), vl, adjoint(x_dot))", "_tangents(w, vl, adjoint(x_dot))"),
    )),
    *mutants_of("schur", FORMS, "Schur.xla_translation", (
        ("xla_translation", "swapped operands", "*[form, vectors][:len(ctx.avals_out)]",
         "*[vectors, form][:len(ctx.avals_out)]"),
    )),
    *mutants_of("tridiagonal", FORMS, "Tridiagonal.xla_translation", (
        ("xla_translation", "param", '_lapack.letter("L" if lower else "U")', '_lapack.letter("U")'),
    )),
)
