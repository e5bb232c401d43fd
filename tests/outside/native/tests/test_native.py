"""Values beside NumPy's, batches, derivatives beside differences, mistakes, and the laws of the kit."""

import numpy as np
import pytest

import corejax as cj
from corejax.errors import CorejaxTypeError
from corejax.testing import pack_tests
from outside_native import tridiagonal_solve

RNG = np.random.default_rng(0)
X = RNG.uniform(1.0, 2.0, (4, 3, 2, 6)) + np.array([0.0, 5.0, 0.0, 0.0]).reshape(4, 1, 1, 1)

test_rules = pack_tests("outside-native")


def by_numpy(below, middle, above, b):
    full = [np.diag(m) + np.diag(lo[1:], -1) + np.diag(hi[:-1], 1)
            for lo, m, hi in zip(*[x.reshape(-1, 6) for x in (below, middle, above)], strict=True)]
    return np.linalg.solve(np.stack(full), b.reshape(-1, 6, 1)).reshape(b.shape)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_it_solves_as_numpy_does_in_any_batch(dtype):
    x = X.astype(dtype)
    known, rtol = by_numpy(*X), 1e-5 if dtype is np.float32 else 1e-12
    np.testing.assert_allclose(tridiagonal_solve(*x), known, rtol=rtol)
    mapped = cj.jit(cj.vmap(tridiagonal_solve, in_axes=(1, 1, 1, 1), out_axes=1))(*x)
    np.testing.assert_allclose(mapped, known, rtol=rtol)
    shared = cj.vmap(tridiagonal_solve, in_axes=(None, None, None, 0))(*x[:3, 0, 0], x[3, :, 1])
    for row, b in zip(shared, x[3, :, 1], strict=True):
        np.testing.assert_allclose(row, tridiagonal_solve(*x[:3, 0, 0], b), rtol=rtol)


def test_gradients_nest():
    def loss(*args):
        return (tridiagonal_solve(*args) ** 2).sum()

    args, direction, h = list(X[:, 0, 0]), RNG.normal(size=(4, 6)), 1e-5
    slopes = cj.jit(cj.grad(loss, argnums=(0, 1, 2, 3)))(*args)
    forward = cj.jvp(loss, tuple(args), tuple(direction))[1]
    numeric = (loss(*(args + h * direction)) - loss(*(args - h * direction))) / (2.0 * h)
    np.testing.assert_allclose([np.vdot(slopes, direction), forward], numeric, rtol=1e-7)
    hessian = cj.jit(cj.hessian(lambda b: loss(*args[:3], b)))(args[3])
    inverse = np.stack([by_numpy(*args[:3], e) for e in np.eye(6)], axis=1)
    np.testing.assert_allclose(hessian, 2.0 * inverse.T @ inverse, rtol=1e-9, atol=1e-12)


def test_wrong_operands_are_refused():
    with pytest.raises(CorejaxTypeError, match="tridiagonal_solve: wrong operands"):
        tridiagonal_solve(np.ones(2), np.ones(3), np.ones(2), np.ones(3))
