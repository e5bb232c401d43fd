"""Factorisations and systems: reconstructions, SciPy's values, failures, conventions, GPUs' programs, kept programs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.linalg
from numpy.testing import assert_allclose, assert_array_equal

import corejax as cj
from corejax import lax
from corejax.core import ShapedArray, stage
from corejax.errors import CorejaxError, CorejaxNotImplementedError
from corejax.lax import linalg
from corejax.xla.lowering import programs

RNG = np.random.default_rng(0)
DTYPES = ("float32", "float64", "complex64", "complex128")


def draw(dtype: str, *shape: int) -> np.ndarray:
    x = RNG.standard_normal(shape)
    return (x + 1j * RNG.standard_normal(shape) if np.dtype(dtype).kind == "c" else x).astype(dtype)


def positive(dtype: str, *shape: int) -> np.ndarray:
    x = draw(dtype, *shape)
    return (x @ adjoint(x) + np.eye(shape[-1])).astype(dtype)


def adjoint(x: Any) -> np.ndarray:
    return np.swapaxes(np.asarray(x), -1, -2).conj()


def near(got: Any, wanted: Any, size: int) -> None:
    """Equal to within 50 eps times the size, relative to the largest element."""
    got, wanted = np.asarray(got), np.asarray(wanted)
    eps = np.finfo(got.dtype).eps
    assert_allclose(got, wanted, rtol=0.0, atol=50 * eps * size * max(1.0, float(np.abs(wanted).max())))


# Reconstructions

@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("size", [1, 3, 40])
def test_factors_multiply_to_the_matrix(dtype: str, size: int) -> None:
    a = positive(dtype, 2, size, size)
    for factor in (linalg.cholesky(a), cj.jit(linalg.cholesky)(a)):
        near(np.asarray(factor) @ adjoint(factor), a, size)
        assert_array_equal(np.triu(factor, 1), 0)


@pytest.mark.sample(6)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("m", "n"), [(3, 3), (5, 2), (2, 5), (40, 30)])
def test_lu_and_qr_multiply_to_the_matrix(dtype: str, m: int, n: int) -> None:
    x = draw(dtype, 2, m, n)
    factors, pivots, permutation = map(np.asarray, linalg.lu(x))
    k = min(m, n)
    left = np.tril(factors[..., :k], -1) + np.eye(m, k)
    near((left @ np.triu(factors[..., :k, :])).astype(dtype), np.take_along_axis(x, permutation[..., None], 1), m)
    assert_array_equal(permutation, linalg.lu_pivots_to_permutation(pivots, m))
    for full in (False, True):
        q, r = map(np.asarray, linalg.qr(x, full_matrices=full))
        near(q @ r, x, m)
        near(adjoint(q) @ q, np.broadcast_to(np.eye(q.shape[-1]), (2, q.shape[-1], q.shape[-1])), m)
        assert_array_equal(np.tril(r, -1), 0)
        q, r, places = map(np.asarray, linalg.qr(x, pivoting=True, full_matrices=full))
        near(q @ r, np.take_along_axis(x, places[:, None, :], 2), m)
        falling = np.abs(np.diagonal(r, axis1=-2, axis2=-1))
        assert (np.diff(falling, axis=-1) <= 1e-5).all()


@pytest.mark.parametrize("dtype", DTYPES)
def test_reflections_are_lapacks(dtype: str) -> None:
    a = draw(dtype, 5, 3)
    raw, taus = linalg.geqrf_p.bind(a)
    (wanted, wanted_taus), _ = scipy.linalg.qr(a, mode="raw")
    near(raw, wanted, 5)
    near(taus, wanted_taus, 5)
    q = scipy.linalg.qr(a)[0]
    near(linalg.householder_product(raw, taus), q[:, :3], 5)
    c = draw(dtype, 5, 5)
    near(linalg.ormqr(raw, taus, c), q @ c, 5)
    near(linalg.ormqr(raw, taus, c, transpose=True), adjoint(q) @ c, 5)
    near(linalg.ormqr(raw, taus, c, left=False), c @ q, 5)


@pytest.mark.sample(12)
@pytest.mark.parametrize("dtype", [*DTYPES, "float16", cj.bfloat16])
@pytest.mark.parametrize("lower", [False, True])
@pytest.mark.parametrize("transposed", ["N", "T", "C"])
def test_triangular_systems_are_solved_as_scipy_solves_them(dtype: Any, lower: bool, transposed: str) -> None:
    dtype = np.dtype(dtype)
    wide = dtype if dtype.itemsize >= 4 else np.dtype("float32")
    a = draw(wide.name, 4, 4) + 3 * np.eye(4, dtype=wide)
    b = draw(wide.name, 4, 2)
    for unit in (False, True):
        wanted = scipy.linalg.solve_triangular(a, b, trans=transposed, lower=lower, unit_diagonal=unit)
        params = {"lower": lower, "transpose_a": transposed != "N", "conjugate_a": transposed == "C",
                  "unit_diagonal": unit}
        got = np.asarray(linalg.triangular_solve(a.astype(dtype), b.astype(dtype), left_side=True, **params))
        assert dtype == got.dtype
        scale = float(np.abs(wanted).max()) + 1.0
        tolerance = 0.2 if dtype != wide else 1e-4 if wide.name in ("float32", "complex64") else 1e-12
        assert_allclose(got.astype(wide), wanted, rtol=0.0, atol=tolerance * scale)


def test_a_vector_is_a_right_side() -> None:
    a, b = draw("float64", 2, 3, 3) + 3 * np.eye(3), draw("float64", 2, 3)
    got = linalg.triangular_solve(a, b, left_side=True, lower=True)
    assert_allclose(got, np.linalg.solve(np.tril(a), b[..., None])[..., 0], rtol=1e-12)
    row = linalg.triangular_solve(a, b, lower=True)
    assert_allclose(row, np.linalg.solve(np.swapaxes(np.tril(a), 1, 2), b[..., None])[..., 0], rtol=1e-12)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("size", [1, 2, 7])
def test_tridiagonal_systems_are_solved(dtype: str, size: int) -> None:
    dl, du = draw(dtype, size), draw(dtype, size)
    d, b = draw(dtype, size) + np.dtype(dtype).type(4), draw(dtype, size, 2)
    dense = np.diag(dl[1:], -1) + np.diag(d) + np.diag(du[:-1], 1)
    near(dense @ np.asarray(linalg.tridiagonal_solve(dl, d, du, b)), b, size)
    near(dense @ np.asarray(linalg.tridiagonal_solve(dl, d, du, b, perturb_singular=True)), b, size)


def test_an_update_is_the_factor_of_the_sum() -> None:
    a, w = positive("float64", 4, 4), draw("float64", 4)
    r = np.linalg.cholesky(a).T
    updated = np.asarray(linalg.cholesky_update(r, w))
    near(updated.T @ updated, a + np.outer(w, w), 4)
    assert_array_equal(linalg.cholesky_update(-r, np.zeros(4)), -r)


def test_a_symmetric_product_has_its_lower_triangle_twice() -> None:
    a, c = draw("float64", 2, 3, 4), draw("float64", 2, 3, 3)
    got = np.asarray(linalg.symmetric_product(a, c, alpha=2.0, beta=-1.0, symmetrize_output=True))
    wanted = 2.0 * a @ np.swapaxes(a, 1, 2) - c
    assert_allclose(np.tril(got), np.tril(wanted), rtol=1e-12)
    assert_array_equal(got, np.swapaxes(got, 1, 2))


# Failures

def test_a_matrix_without_a_factor_gives_nans_and_leaves_others() -> None:
    a = np.stack([np.eye(2), -np.eye(2), np.full((2, 2), np.nan)])
    for factor in (linalg.cholesky(a), cj.jit(linalg.cholesky)(a)):
        assert_array_equal(factor[0], np.eye(2))
        for failed in np.asarray(factor[1:]):
            assert_array_equal(failed, [[np.nan, 0.0], [np.nan, np.nan]])
    assert np.isnan(cj.grad(lambda a: linalg.cholesky(a).sum())(-np.eye(2))).any()


@pytest.mark.parametrize("call", [
    lambda: linalg.cholesky(np.stack([np.eye(2), -np.eye(2)])),
    lambda: linalg.cholesky(cj.device_put(-np.eye(2))),
    lambda: linalg.tridiagonal_solve(*[np.zeros(3)] * 3, np.ones((3, 1))),
])
def test_a_failure_is_an_error_where_that_is_asked_for(call: Any) -> None:
    assert np.isnan(call()).any()
    with cj.config(numerical_failures="error"), pytest.raises(linalg.FailedFactorizationError) as info:
        call()
    assert isinstance(info.value, (CorejaxError, ValueError)) and isinstance(info.value, np.linalg.LinAlgError)


def test_a_failure_names_the_matrix() -> None:
    with cj.config(numerical_failures="error"):
        with pytest.raises(linalg.FailedFactorizationError, match=r"(?s)isn't positive definite.*the matrix at \[1\]"):
            linalg.cholesky(np.stack([np.eye(2), -np.eye(2)]))
        with pytest.raises(linalg.FailedFactorizationError, match="aren't finite"):
            linalg.cholesky(np.full((2, 2), np.nan))
        assert np.isnan(cj.jit(linalg.cholesky)(-np.eye(2))).any()  # a program has no errors
        linalg.cholesky(np.eye(2))


def test_singular_matrices_have_lu_decompositions_and_infinite_solutions() -> None:
    factors, _, _ = linalg.lu(np.zeros((2, 2)))
    assert_array_equal(factors, np.zeros((2, 2)))
    assert not np.isfinite(linalg.triangular_solve(np.zeros((2, 2)), np.ones((2, 2)))).any()
    solved = linalg.tridiagonal_solve(np.ones(2), np.ones(2), np.ones(2), np.ones((2, 1)), perturb_singular=True)
    assert np.isfinite(solved).all()


def test_the_slope_of_a_factor_that_is_missing_is_zero_above_the_diagonal_too() -> None:
    _, slope = cj.jvp(linalg.cholesky, (-np.eye(2),), (np.ones((2, 2)),))
    assert_array_equal([[np.nan, 0.0], [np.nan, np.nan]], slope)


# Conventions

def test_only_the_lower_triangle_is_read_and_has_a_gradient() -> None:
    a = positive("float64", 3, 3)
    garbled = np.tril(a) + np.triu(draw("float64", 3, 3), 1)
    lower = linalg.cholesky(garbled, symmetrize_input=False)
    assert_allclose(lower, np.linalg.cholesky(a), rtol=1e-12)
    slope = cj.grad(lambda a: linalg.cholesky(a, symmetrize_input=False).sum())(a)
    assert_array_equal(np.triu(slope, 1), 0)


def test_a_gradient_of_the_log_determinant_is_the_inverse() -> None:
    a = positive("float64", 4, 4)
    slope = cj.jit(cj.grad(lambda a: 2.0 * (lax.log(linalg.cholesky(a)[np.arange(4), np.arange(4)])).sum()))(a)
    assert_allclose(slope, np.linalg.inv(a), rtol=1e-9, atol=1e-12)


def test_the_namespace_has_functions_and_primitives() -> None:
    import corejax.lax.linalg as by_import
    assert by_import.cholesky is linalg.cholesky is cj.lax.linalg.cholesky
    assert {"cholesky", "cholesky_p", "triangular_solve_p", "lu_p", "geqrf_p"} <= set(dir(linalg))
    assert "cholesky" not in dir(lax) and "linalg" in dir(lax)
    assert "cholesky" in str(cj.make_jaxpr(linalg.cholesky)(np.eye(2)))
    assert linalg.cholesky.primitive is linalg.cholesky_p
    with pytest.raises(AttributeError, match=r"cj\.lax\.linalg\.lu"):
        _ = lax.lu
    with pytest.raises(AttributeError, match="choleski"):
        _ = linalg.choleski


@pytest.mark.parametrize("shape", [(0, 0), (2, 0, 0), (0, 3, 3), (0, 2), (2, 0)])
def test_empty_arrays_are_no_matter_for_lapack(shape: tuple[int, ...], capfd: pytest.CaptureFixture[str]) -> None:
    x = np.ones(shape)
    assert shape == cj.jit(linalg.lu)(x)[0].shape
    q, r = linalg.qr(x)
    assert shape == (np.asarray(q) @ np.asarray(r)).shape
    if shape[-1] == shape[-2]:
        assert shape == cj.jit(linalg.cholesky)(x).shape == linalg.triangular_solve(x, x).shape
    assert "" == capfd.readouterr().err


# GPUs, and programs that are kept

def lowered(function: Any, *shapes: tuple[int, ...], platform: str, dtype: Any = np.float32) -> str:
    closed = stage(lambda *xs: [out for out in [function(*xs)] for out in (
        out if isinstance(out, (list, tuple)) else [out])], [ShapedArray(shape, dtype) for shape in shapes])
    module = programs.lower_module(closed.jaxpr, closed.consts, "f", platform).module
    assert module.operation.verify()
    return str(module)


MATRIX, VECTOR = (4, 3, 3), (4, 3)


@pytest.mark.parametrize(("function", "shapes", "targets"), [
    (linalg.cholesky, [MATRIX], ["solver_potrf_ffi"]),
    (linalg.lu, [MATRIX], ["solver_getrf_ffi", "_lu_pivots_to_permutation"]),
    (linalg.qr, [MATRIX], ["solver_geqrf_ffi", "solver_orgqr_ffi"]),
    (lambda x: linalg.qr(x, pivoting=True, use_magma=False), [MATRIX], ["hybrid_geqp3", "solver_orgqr_ffi"]),
    (lambda a, t: linalg.ormqr(a, t, a), [MATRIX, VECTOR], ["solver_ormqr_ffi"]),
    (linalg.tridiagonal_solve, [VECTOR, VECTOR, VECTOR, MATRIX], ["sparse_gtsv2_ffi"]),
])
@pytest.mark.parametrize(("platform", "prefix"), [("cuda", "cu"), ("rocm", "hip")])
def test_gpus_have_functions_of_their_own(function: Any, shapes: Any, targets: list[str], platform: str,
                                          prefix: str) -> None:
    text = lowered(function, *shapes, platform=platform)
    for target in targets:
        assert f"@{prefix}{target}(" in text
    assert "lapack" not in text


def test_cuda_has_more_of_them() -> None:
    assert "@cu_cholesky_update_ffi(" in lowered(linalg.cholesky_update, (3, 3), (3,), platform="cuda")
    assert "@cusolver_syrk_ffi(" in lowered(linalg.symmetric_product, (3, 2), (3, 3), platform="cuda")
    assert "stablehlo.while" in lowered(linalg.cholesky_update, (3, 3), (3,), platform="rocm")


def test_the_compiler_of_a_tpu_has_its_own() -> None:
    assert "stablehlo.cholesky" in lowered(linalg.cholesky, MATRIX, platform="tpu")
    assert "@LuDecomposition(" in lowered(linalg.lu, MATRIX, platform="tpu")
    assert "@Qr(" in lowered(linalg.qr, MATRIX, platform="tpu")
    assert "stablehlo.triangular_solve" in lowered(linalg.triangular_solve, MATRIX, MATRIX, platform="tpu")
    with pytest.raises(CorejaxNotImplementedError, match="geqp3.*tpu"):
        lowered(lambda x: linalg.qr(x, pivoting=True), MATRIX, platform="tpu")


def in_a_new_process(code: str, **environment: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120,
                          env={**os.environ, **environment})
    assert (0, "") == (done.returncode, done.stderr)
    return done.stdout


_SOLVE = """
import sys, numpy as np, corejax as cj
from corejax.lax import linalg
a = np.array([[4.0, 2.0], [2.0, 5.0]])
solve = lambda a: linalg.triangular_solve(linalg.cholesky(a), np.ones(2), left_side=True, lower=True)
"""


def test_exported_programs_find_lapack_in_a_new_process(tmp_path: Path) -> None:
    path = tmp_path / "program"
    in_a_new_process(f"{_SOLVE}\nopen({str(path)!r}, 'wb').write(cj.export.export(cj.jit(solve))(a).serialize())")
    said = in_a_new_process(f"""
import sys, numpy as np, corejax as cj
loaded = cj.export.deserialize(open({str(path)!r}, 'rb').read())
assert 'jax' not in sys.modules
print(loaded.call(np.array([[4.0, 2.0], [2.0, 5.0]])).tolist())""")
    assert "[0.5, 0.25]" == said.strip()


def test_the_cache_keeps_programs_that_call_lapack(tmp_path: Path) -> None:
    code = f"{_SOLVE}\nprint(cj.jit(solve)(a).tolist())"
    for _ in range(2):
        assert "[0.5, 0.25]" == in_a_new_process(code, COREJAX_COMPILATION_CACHE_DIR=str(tmp_path)).strip()
    assert any(path.is_file() for path in tmp_path.rglob("*"))
