"""Eigenvalues, singular values, condensed forms: what they are, and derivatives that no choice of vectors changes."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import corejax as cj
from corejax.errors import CorejaxNotImplementedError
from corejax.lax import linalg

DTYPES = ("float32", "float64", "complex64", "complex128")
WAYS = {"eager": lambda f: f, "compiled": cj.jit}

every_way = pytest.mark.parametrize("way", WAYS.values(), ids=list(WAYS))
every_dtype = pytest.mark.parametrize("dtype", DTYPES)


def matrix(*shape, dtype="float64", seed=0):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal(shape) + 1j * rng.standard_normal(shape)
    return (x if np.dtype(dtype).kind == "c" else x.real).astype(dtype)


def adjoint(x):
    return np.swapaxes(np.asarray(x), -1, -2).conj()


def hermitian(x):
    return (x + adjoint(x)) / 2


def close(got, wanted, size):
    eps = np.finfo(np.asarray(wanted).dtype).eps
    assert_allclose(got, wanted, rtol=0, atol=50 * eps * size * max(1.0, np.abs(wanted).max(initial=0.0)))


def orthonormal(v):
    close(adjoint(v) @ np.asarray(v), np.broadcast_to(np.eye(v.shape[-1], dtype=v.dtype), (
        *v.shape[:-2], v.shape[-1], v.shape[-1])), max(v.shape[-2:]))


@every_way
@every_dtype
def test_eigh_diagonalizes(way, dtype):
    for shape in ((2, 4, 4), (30, 30)):
        x = matrix(*shape, dtype=dtype)
        v, w = way(linalg.eigh)(x)
        h = hermitian(x)
        orthonormal(v)
        close(np.asarray(v) * np.asarray(w)[..., None, :] @ adjoint(v), h, shape[-1])
        assert (np.diff(np.asarray(w)) >= 0).all()
        assert (dtype, np.finfo(dtype).dtype) == (v.dtype, w.dtype)


@every_way
@pytest.mark.parametrize("lower", [True, False])
def test_eigh_reads_one_triangle(way, lower):
    x = hermitian(matrix(4, 4, dtype="complex128"))
    garbage = np.where(np.tri(4, k=-1).T if lower else np.tri(4, k=-1), np.nan, x)
    v, w = way(lambda x: linalg.eigh(x, lower=lower, symmetrize_input=False))(garbage)
    close(np.asarray(v) * np.asarray(w) @ adjoint(v), x, 4)


@pytest.mark.sample(8)
@every_way
@every_dtype
@pytest.mark.parametrize("algorithm", [None, "QR", "DIVIDE_AND_CONQUER"])
def test_svd_puts_the_matrix_together_again(way, dtype, algorithm):
    chosen = None if algorithm is None else linalg.SvdAlgorithm[algorithm]
    for shape in ((2, 3, 5), (30, 20)):
        x = matrix(*shape, dtype=dtype)
        k = min(shape[-2:])
        for full in (True, False):
            u, s, vh = way(lambda x, full=full: linalg.svd(x, full_matrices=full, algorithm=chosen))(x)
            orthonormal(u)
            orthonormal(adjoint(vh))
            close(np.asarray(u)[..., :k] * np.asarray(s)[..., None, :] @ np.asarray(vh)[..., :k, :], x, max(shape))
            assert (np.diff(np.asarray(s)) <= 0).all()
        close(way(lambda x: linalg.svd(x, compute_uv=False))(x), s, max(shape))


@every_way
@every_dtype
def test_eig_has_vectors_of_both_sides(way, dtype):
    for shape in ((5, 5), (2, 1, 1)):
        x = matrix(*shape, dtype=dtype)
        w, vl, vr = map(np.asarray, way(linalg.eig)(x))
        close(x @ vr, vr * w[..., None, :], 10 * shape[-1])
        close(adjoint(vl) @ x, w[..., :, None] * adjoint(vl), 10 * shape[-1])
        only_right = way(lambda x: linalg.eig(x, compute_left_eigenvectors=False))(x)
        close(only_right[1], vr, 50)
        assert np.result_type(dtype, "complex64") == w.dtype == vl.dtype


@every_dtype
def test_schur_and_hessenberg_forms_are_similar_to_the_matrix(dtype):
    x = matrix(2, 5, 5, dtype=dtype)
    t, z = cj.jit(linalg.schur)(x)
    orthonormal(z)
    close(np.asarray(z) @ np.asarray(t) @ adjoint(z), x, 50)
    below = np.tril(np.asarray(t), -1 if np.dtype(dtype).kind == "c" else -2)
    assert_array_equal(below, np.zeros_like(below))
    assert_array_equal(linalg.schur(x, compute_schur_vectors=False)[0].shape, x.shape)
    h, taus = map(np.asarray, linalg.hessenberg(x))
    q = np.broadcast_to(np.eye(5, dtype=dtype), x.shape).copy()
    q[:, 1:, 1:] = linalg.householder_product(np.ascontiguousarray(h[:, 1:, :-1]), taus)
    orthonormal(q)
    close(q @ np.triu(h, -1) @ adjoint(q), x, 50)


@every_dtype
@pytest.mark.parametrize("lower", [True, False])
def test_a_tridiagonal_matrix_has_the_eigenvalues_of_the_matrix(dtype, lower):
    x = hermitian(matrix(2, 5, 5, dtype=dtype))
    reduced, d, e, taus = map(np.asarray, linalg.tridiagonal(x, lower=lower))
    assert d.dtype == e.dtype == np.finfo(dtype).dtype
    t = np.stack([np.diag(d[i]) + np.diag(e[i], 1) + np.diag(e[i], -1) for i in range(2)])
    close(np.linalg.eigvalsh(t), np.linalg.eigvalsh(x), 50)
    assert_array_equal(np.diagonal(reduced, axis1=1, axis2=2).real, d)


@every_way
def test_qdwh_gives_the_polar_form(way):
    for shape, dtype in (((6, 4), "float64"), ((3, 3), "complex128"), ((4, 4), "float32")):
        x = matrix(*shape, dtype=dtype)
        u, h, count, converged = way(linalg.qdwh)(x)
        orthonormal(u)
        close(np.asarray(u) @ np.asarray(h), x, 10 * shape[0])
        assert np.linalg.eigvalsh(np.asarray(h)).min() > 0
        assert converged.item() and 0 < count.item() <= 10


@every_way
def test_matrices_without_elements_have_results_without_elements(way):
    for shape in ((0, 3, 3), (0, 0), (2, 0, 0)):
        x = np.zeros(shape)
        batch, n = shape[:-2], shape[-1]
        assert [(*batch, n, n), (*batch, n)] == [y.shape for y in way(linalg.eigh)(x)]
        assert [(*batch, n), (*batch, n, n), (*batch, n, n)] == [y.shape for y in way(linalg.eig)(x)]
        assert [shape, shape] == [y.shape for y in way(linalg.schur)(x)]
    for full in (True, False):
        for shape in ((0, 3), (3, 0), (2, 0, 3)):
            x = np.zeros(shape)
            wanted = np.linalg.svd(x, full_matrices=full)
            for got, want in zip(way(lambda x, full=full: linalg.svd(x, full_matrices=full))(x), wanted, strict=True):
                assert_array_equal(got, want)


@every_way
def test_matrices_that_are_not_finite_give_nans_and_leave_the_others_alone(way):
    x = np.stack([np.diag([1.0, 2.0]), np.full((2, 2), np.nan), np.array([[np.inf, 0.0], [0.0, 1.0]])])
    for f in (linalg.eigh, linalg.svd, linalg.eig, linalg.schur):
        outs = way(f)(x)
        for out in outs:
            assert np.isnan(np.asarray(out)[1]).any()
            assert_array_equal(np.isfinite(np.asarray(out)[0]), True)
    with cj.config(numerical_failures="error"):
        for f in (linalg.eigh, linalg.svd, linalg.eig, linalg.schur):
            with pytest.raises(np.linalg.LinAlgError, match="finite"):
                f(x)
            f(x[:1])


@every_way
def test_an_infinity_ends_neither_the_process_nor_its_progress(way):
    x = matrix(2, 3, 4)
    x[0, 0, 0] = np.inf  # with which LAPACK's gesdd goes on forever
    for out in way(linalg.svd)(x):
        assert np.isnan(np.asarray(out)[0]).all()
        assert np.isfinite(np.asarray(out)[1]).all()


def along(f, x, v, h=1e-5):
    return (np.asarray(f(x + h * v)) - np.asarray(f(x - h * v))) / (2 * h)


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("symmetrize", [True, False])
def test_what_eigh_puts_together_has_the_derivatives_of_differences(dtype, symmetrize):
    x = hermitian(matrix(4, 4, dtype=dtype)) + np.diag([1.0, 4.0, 7.0, 10.0])
    v = hermitian(matrix(4, 4, dtype=dtype, seed=1))

    def powers(x):  # no phase of a vector counts
        vectors, w = linalg.eigh(x, symmetrize_input=symmetrize)
        whole = vectors * cj.lax.exp(0.1 * w).astype(vectors.dtype)
        return whole @ (cj.lax.conj(vectors) if dtype == "complex128" else vectors).T

    def slope(x):
        return cj.jvp(powers, (x,), (v,))[1]
    assert_allclose(slope(x), along(powers, x, v), rtol=1e-7, atol=1e-7)
    assert_allclose(cj.jvp(slope, (x,), (v,))[1], along(slope, x, v), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(("dtype", "shape"), [("float64", (4, 2)), ("float64", (3, 3)), ("complex128", (2, 4))])
def test_what_svd_puts_together_has_the_derivatives_of_differences(dtype, shape):
    x, v = (matrix(*shape, dtype=dtype, seed=seed) for seed in (0, 1))

    def polar(x):  # u vh, the nearest matrix with orthonormal columns or rows
        u, _, vh = linalg.svd(x, full_matrices=False)
        return u @ vh

    def slope(x):
        return cj.jvp(polar, (x,), (v,))[1]
    assert_allclose(slope(x), along(polar, x, v), rtol=1e-6, atol=1e-6)
    assert_allclose(cj.jvp(slope, (x,), (v,))[1], along(slope, x, v), rtol=1e-5, atol=1e-5)
    y = matrix(*shape, dtype=dtype, seed=2)
    products = (np.asarray(cj.vjp(polar, x)[1](y)[0]) * v).sum(), (np.asarray(slope(x)) * y).sum()
    assert_allclose(products[0].real, products[1].real, rtol=1e-10)  # cotangents of complex numbers aren't conjugated


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_derivatives_of_eig_are_those_of_differences(dtype):
    x = matrix(3, 3, dtype=dtype) * 0.3 + np.diag([1.0, 4.0, 7.0])
    v = matrix(3, 3, dtype=dtype, seed=1)

    def values(x):
        return linalg.eig(x, compute_left_eigenvectors=False, compute_right_eigenvectors=False)[0]
    assert_allclose(cj.jvp(values, (x,), (v,))[1], along(values, x, v), rtol=1e-7, atol=1e-7)
    for place in (1, 2):
        def vectors(x, place=place):
            return linalg.eig(x, enable_eigvec_derivs=True)[place]
        assert_allclose(cj.jvp(vectors, (x,), (v,))[1], along(vectors, x, v), rtol=1e-6, atol=1e-6)


def test_what_has_no_derivative_says_so():
    square = matrix(3, 3)
    for f, x, word in ((linalg.svd, matrix(3, 2), "full"), (linalg.eig, square, "enable_eigvec_derivs"),
                       (linalg.schur, square, "Schur"), (linalg.hessenberg, square, "Hessenberg"),
                       (linalg.tridiagonal, square, "tridiagonal")):
        with pytest.raises(CorejaxNotImplementedError, match=word):
            cj.jvp(f, (x,), (x,))
    with pytest.raises(CorejaxNotImplementedError, match="while_loop"):
        cj.grad(lambda x: linalg.qdwh(x)[0].sum())(square)


def test_maps_and_batches_give_the_same():
    xs = matrix(3, 4, 2, 4, seed=3)
    for f in (linalg.eigh, linalg.svd, linalg.schur, linalg.eig):
        for got, want in zip(cj.vmap(cj.vmap(f, in_axes=1))(xs), f(np.swapaxes(xs, 1, 2)), strict=True):
            assert_allclose(got, want, rtol=1e-12, atol=1e-13)


def test_use_of_magma_is_deprecated():
    with pytest.warns(DeprecationWarning, match="use_magma"):
        linalg.eig(np.eye(2), use_magma=False)
