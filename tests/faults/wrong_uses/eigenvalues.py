"""Eigenvalues, singular values, and condensed forms."""

from __future__ import annotations

from .case import Group

symmetric = Group("Eigenvalues of Hermitian matrices")
symmetric.add("a matrix that isn't square", "lax.linalg.eigh(np.ones((2, 3)))", ValueError, "f64[2,3]", "square",
              jax="jax.lax.linalg.eigh(np.ones((2, 3)))")
symmetric.add("a vector", "lax.linalg.eigh(np.ones(3))", TypeError, "f64[3]", "at least 2 axes")
symmetric.add("a list", "lax.linalg.eigh([[1.0, 2.0], [2.0, 1.0]])", TypeError, "list")
symmetric.add("half precision", "lax.linalg.eigh(np.ones((2, 2), np.float16))", TypeError, "f16", "f32")
symmetric.add("integers, as they are", "lax.linalg.eigh(np.eye(2, dtype=int), symmetrize_input=False)", TypeError,
              "i64", "f64")
symmetric.add("a part of the eigenvalues", "lax.linalg.eigh(np.eye(3), subset_by_index=(0, 2))", NotImplementedError,
              "(0, 2)", "[..., 0:2]")
symmetric.add("a part that is out of range", "lax.linalg.eigh(np.eye(3), subset_by_index=(2, 4))", ValueError,
              "(2, 4)", "3 eigenvalues")
symmetric.add("a part that isn't a pair", "lax.linalg.eigh(np.eye(3), subset_by_index=3)", TypeError, "3",
              "(start, end)")
symmetric.add("a word for an algorithm", "lax.linalg.eigh(np.eye(3), implementation='qr')", TypeError, "'qr'",
              "EighImplementation.QR", jax=None)
symmetric.add("an algorithm of GPUs", "lax.linalg.eigh(np.eye(3), implementation=lax.linalg.EighImplementation.JACOBI)",
              NotImplementedError, "JACOBI", "GPU")
symmetric.add("a word for a triangle", "lax.linalg.eigh(np.eye(3), lower='L')", TypeError, "lower", "'L'",
              "True or False")

general = Group("Eigenvalues of other matrices")
general.add("a matrix that isn't square", "lax.linalg.eig(np.ones((2, 3)))", ValueError, "f64[2,3]", "square")
general.add("integers", "lax.linalg.eig(np.eye(2, dtype=int))", TypeError, "i64", "x.astype")
general.add("an implementation of GPUs",
            "lax.linalg.eig(np.eye(2), implementation=lax.linalg.EigImplementation.MAGMA)", ValueError, "MAGMA",
            "LAPACK")
general.add("the derivative of eigenvectors", "cj.jvp(lax.linalg.eig, (np.eye(2),), (np.eye(2),))",
            NotImplementedError, "enable_eigvec_derivs=True")

singular = Group("Singular values")
singular.add("a vector", "lax.linalg.svd(np.ones(3))", TypeError, "f64[3]", "at least 2 axes")
singular.add("booleans", "lax.linalg.svd(np.ones((2, 2), bool))", TypeError, "bool", "f64")
singular.add("a part of full matrices", "lax.linalg.svd(np.ones((2, 3)), subset_by_index=(0, 1))", ValueError,
             "(0, 1)", "full_matrices=False")
singular.add("a part of the values", "lax.linalg.svd(np.ones((2, 3)), full_matrices=False, subset_by_index=(0, 1))",
             NotImplementedError, "(0, 1)", "[..., 0:1]")
singular.add("a word for an algorithm", "lax.linalg.svd(np.eye(2), algorithm='Jacobi')", TypeError, "'Jacobi'",
             "SvdAlgorithm.JACOBI")
singular.add("an algorithm of GPUs", "lax.linalg.svd(np.eye(2), algorithm=lax.linalg.SvdAlgorithm.POLAR)",
             NotImplementedError, "POLAR", "GPU")
singular.add("the derivative of full matrices", "cj.jvp(lax.linalg.svd, (np.ones((2, 3)),), (np.ones((2, 3)),))",
             NotImplementedError, "full_matrices=False")
singular.add("a traced flag", "cj.jit(lambda b: lax.linalg.svd(np.eye(2), compute_uv=b))(True)", TypeError,
             "compute_uv", "bool[]")

forms = Group("Condensed forms")
forms.add("sorted eigenvalues", "lax.linalg.schur(np.eye(2), sort_eig_vals=True)", NotImplementedError,
          "sort_eig_vals=True", "scipy")
forms.add("the derivative of a Schur form", "cj.jvp(lax.linalg.schur, (np.eye(2),), (np.eye(2),))",
          NotImplementedError, "schur", "derivative")
forms.add("nothing to reduce", "lax.linalg.tridiagonal(np.ones((0, 0)))", ValueError, "f64[0,0]", "at least one row")
forms.add("a matrix that isn't square", "lax.linalg.hessenberg(np.ones((2, 3)))", ValueError, "f64[2,3]", "square")
forms.add("a wide matrix", "lax.linalg.qdwh(np.ones((2, 3)))", ValueError, "f64[2,3]", "as many rows as columns")
forms.add("a batch of polar forms", "lax.linalg.qdwh(np.ones((2, 3, 3)))", TypeError, "f64[2,3,3]", "cj.vmap")
forms.add("steps that aren't counted", "lax.linalg.qdwh(np.eye(2), max_iterations=1.5)", TypeError, "max_iterations",
          "1.5")

GROUPS: tuple[Group, ...] = (symmetric, general, singular, forms)
