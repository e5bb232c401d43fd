"""Factorisations of matrices, and systems of equations."""

from __future__ import annotations

from .case import Group

cholesky = Group("Cholesky decompositions")
cholesky.add("of a matrix that isn't square", "lax.linalg.cholesky(np.ones((2, 3)))", ValueError, "f64[2,3]", "square")
cholesky.add("of a vector", "lax.linalg.cholesky(np.ones(3))", TypeError, "f64[3]", "at least 2 axes",
             jax="lax.linalg.cholesky(np.ones(3), symmetrize_input=False)")
cholesky.add("of integers as they are", "lax.linalg.cholesky(np.eye(2, dtype=int), symmetrize_input=False)", TypeError,
             "i64[2,2]", "float")
cholesky.add("of a list", "lax.linalg.cholesky([[1.0, 0.0], [0.0, 1.0]])", TypeError, "list")
cholesky.add("of half precision", "lax.linalg.cholesky(np.eye(2, dtype=np.float16))", TypeError, "f16", "f32")
cholesky.add("text for a flag", "lax.linalg.cholesky(np.eye(2), symmetrize_input='no')", TypeError, "'no'",
             "True or False")
cholesky.add("looked for in lax", "lax.cholesky(np.eye(2))", AttributeError, "cj.lax.linalg.cholesky")
cholesky.add("of an indefinite matrix, where failures are errors",
             "with cj.config(numerical_failures='error'):\n    lax.linalg.cholesky(-np.eye(2))", ValueError,
             "isn't positive definite", jax=None)
cholesky.add("an update by two vectors", "lax.linalg.cholesky_update(np.eye(3), np.ones((3, 2)))", TypeError,
             "f64[3,2]", "cj.vmap")
cholesky.add("an update by a vector of another size", "lax.linalg.cholesky_update(np.eye(3), np.ones(2))", ValueError,
             "f64[2]", "size 3")

systems = Group("Systems of equations")
systems.add("a triangular matrix that isn't square", "lax.linalg.triangular_solve(np.ones((2, 3)), np.ones((2, 2)))",
            ValueError, "f64[2,3]", "square")
systems.add("a right side that doesn't fit", "lax.linalg.triangular_solve(np.eye(3), np.ones((2, 4)), left_side=True)",
            ValueError, "f64[2,4]", "as many rows")
systems.add("the right side's own batch", "lax.linalg.triangular_solve(np.eye(3), np.ones((5, 3, 3)))", TypeError,
            "f64[5,3,3]", "one batch", "in_axes=None")
systems.add("operands of two types", "lax.linalg.triangular_solve(np.eye(2, dtype='f4'), np.ones((2, 2)))", TypeError,
            "f32[2,2]", "f64[2,2]", "one dtype")
systems.add("a traced flag", "cj.jit(lambda a, lower: lax.linalg.triangular_solve(a, a, lower=lower))(np.eye(2), True)",
            TypeError, "lower", "bool[]")
systems.add("diagonals of different sizes",
            "lax.linalg.tridiagonal_solve(np.ones(2), np.ones(3), np.ones(2), np.ones((3, 1)))", TypeError, "f64[2]",
            "one shape")
systems.add("a vector beside diagonals", "lax.linalg.tridiagonal_solve(*[np.ones(3)] * 4)", TypeError, "f64[3]",
            "b[..., None]")
systems.add("a singular matrix, where failures are errors", """
    zeros = np.zeros(2)
    with cj.config(numerical_failures='error'):
        lax.linalg.tridiagonal_solve(zeros, zeros, zeros, np.ones((2, 1)))""", ValueError, "singular", jax=None)

factors = Group("LU and QR decompositions")
factors.add("LU of a vector", "lax.linalg.lu(np.ones(3))", TypeError, "f64[3]", "at least 2 axes")
factors.add("LU of booleans", "lax.linalg.lu(np.ones((2, 2), bool))", TypeError, "bool[2,2]")
factors.add("a permutation smaller than its exchanges",
            "lax.linalg.lu_pivots_to_permutation(np.zeros(3, np.int32), 2)", ValueError, "permutation_size=2",
            "at least 3")
factors.add("exchanges in 64 bits", "lax.linalg.lu_pivots_to_permutation(np.zeros(3, np.int64), 3)", TypeError,
            "i64[3]", "i32")
factors.add("QR of integers", "lax.linalg.qr(np.ones((2, 2), int))", TypeError, "i64[2,2]", "astype")
factors.add("QR, by a library that isn't there", "lax.linalg.qr(np.eye(2), use_magma='maybe')", TypeError, "'maybe'",
            "None", jax=None)
factors.add("the derivative of reflections",
            "cj.grad(lambda a: lax.linalg.householder_product(a, np.ones(2)).sum())(np.eye(2))", NotImplementedError,
            "householder_product", "lax.linalg.qr")
factors.add("more columns than rows of reflections",
            "lax.linalg.householder_product(np.ones((2, 3)), np.ones(2))", ValueError, "f64[2,3]", "columns")
factors.add("reflections applied from the wrong side",
            "lax.linalg.ormqr(np.ones((3, 2)), np.ones(2), np.ones((2, 3)))", ValueError, "f64[2,3]", "left=False")
factors.add("a symmetric product beside a matrix that doesn't fit",
            "lax.linalg.symmetric_product(np.ones((2, 3)), np.ones((3, 3)))", ValueError, "f64[3,3]", "2 by 2")
factors.add("a traced factor", "cj.jit(lambda s: lax.linalg.symmetric_product(np.eye(2), np.eye(2), alpha=s))(2.0)",
            TypeError, "alpha", "static")

GROUPS: tuple[Group, ...] = (cholesky, systems, factors)
