"""Values beside NumPy's, derivatives beside differences, transformations nested, and the laws of the kit."""

import numpy as np
import pytest

import corejax as cj
from corejax.testing import pack_tests
from outside_lapack import argsort, cholesky, fft, searchsorted, sort_rows, triangular_solve

RNG = np.random.default_rng(0)

test_rules = pack_tests("outside-lapack")


def positive(*shape):
    a = RNG.normal(size=shape)
    return a @ np.swapaxes(a, -1, -2) + 2.0 * np.eye(shape[-1])


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_cholesky_of_batches_is_that_of_numpy(dtype):
    a = positive(2, 4, 3, 3).astype(dtype)
    for factor in (cholesky(a), cj.jit(cholesky)(a), cj.vmap(cj.vmap(cholesky, in_axes=1), in_axes=1)(
            np.moveaxis(a, (0, 1), (2, 1)))):
        assert factor.dtype == dtype
    np.testing.assert_allclose(cholesky(a), np.linalg.cholesky(a), rtol=1e-5 if dtype is np.float32 else 1e-12)
    assert np.isnan(cholesky(-a)).all()


def test_the_determinant_by_cholesky_has_the_derivatives_that_it_should():
    a = positive(3, 3)

    def half_log_det(a):
        return cj.lax.log(cj.vmap(lambda i: cholesky(a)[i, i])(np.arange(3))).sum()

    slope = cj.jit(cj.grad(half_log_det))(a)
    np.testing.assert_allclose(slope + slope.T, np.linalg.inv(a), rtol=1e-10)
    h, direction = 1e-5, positive(3, 3)
    second = cj.jvp(cj.grad(half_log_det), (a,), (direction,))[1]
    numeric = (cj.grad(half_log_det)(a + h * direction) - cj.grad(half_log_det)(a - h * direction)) / (2.0 * h)
    np.testing.assert_allclose(second, numeric, rtol=1e-6)


def test_triangular_systems_map_over_either_operand():
    a, b = RNG.normal(size=(4, 3, 3)) + 3.0 * np.eye(3), RNG.normal(size=(3, 2))
    solved = cj.vmap(triangular_solve, in_axes=(0, None))(a, b)
    np.testing.assert_allclose(solved, np.linalg.solve(np.tril(a), b), rtol=1e-10)


def test_fft_of_any_axis_and_back():
    x = RNG.normal(size=(3, 4, 5)) + 1j * RNG.normal(size=(3, 4, 5))
    np.testing.assert_allclose(cj.jit(cj.vmap(fft, in_axes=1))(x), np.fft.fft(np.moveaxis(x, 1, 0)), rtol=1e-10)
    np.testing.assert_allclose(fft(fft(x), inverse=True), x, rtol=1e-10)


def test_sorting_moves_slopes_along():
    x = RNG.normal(size=(3, 4))
    weights = np.arange(12.0).reshape(3, 4)
    np.testing.assert_array_equal(cj.jit(sort_rows)(x), np.sort(x))
    slope = cj.jit(cj.vmap(cj.grad(lambda x, w: (sort_rows(x) * w).sum())))(x, weights)
    np.testing.assert_array_equal(np.take_along_axis(slope, np.argsort(x), 1), weights)
    np.testing.assert_array_equal(argsort(np.array([2.0, np.nan, 1.0])), [2, 0, 1])


def test_arrays_have_the_method_and_numpy_finds_it():
    x = RNG.normal(size=(3, 4))
    np.testing.assert_array_equal(cj.device_put(x).partition(1, axis=0), np.sort(x, axis=0))
    np.testing.assert_array_equal(cj.jit(lambda x: np.partition(x, 1, axis=0))(x), np.sort(x, axis=0))


def test_searching_is_as_numpy_does_it():
    rising, x = np.sort(RNG.normal(size=9)), RNG.normal(size=(2, 3))
    np.testing.assert_array_equal(searchsorted(rising, x), np.searchsorted(rising, x))
