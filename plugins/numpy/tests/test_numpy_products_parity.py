"""First and second derivatives of products, linalg, fft and polynomials beside JAX."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import corejax as cj
import corejax.numpy as jnp

jax = pytest.importorskip("jax")

Function = Callable[..., Any]


def _numbers(shape: tuple[int, ...]) -> Any:
    return np.random.default_rng([7, *shape]).standard_normal(shape)


def _total(module: Any, function: Function) -> Function:
    """A weighted sum of all results that are real."""
    def total(x: Any) -> Any:
        outs = function(module, x)
        found = 0.0
        for i, y in enumerate(outs if isinstance(outs, (tuple, list)) else [outs]):
            y = y.real * 0.7 + y.imag * 0.3 if y.dtype.kind == "c" else y
            weights = np.cos(np.arange(np.prod(y.shape, dtype=int)) + i).reshape(y.shape)
            found = found + (y * weights).sum() if y.dtype.kind == "f" else found
        return found
    return total


def _check(function: Function, x: Any, twice: bool = True) -> None:
    ours, theirs = cj.grad(_total(jnp, function)), jax.grad(_total(jax.numpy, function))
    np.testing.assert_allclose(np.asarray(ours(x)), np.asarray(theirs(x)), 1e-7, 1e-7)
    if twice:
        found, wanted = cj.jvp(ours, (x,), (x,))[1], jax.jvp(theirs, (x,), (x,))[1]
        np.testing.assert_allclose(np.asarray(found), np.asarray(wanted), 1e-7, 1e-7)


CASES: dict[str, tuple[tuple[int, ...], Function]] = {
    "det": ((4, 4), lambda m, x: m.linalg.det(x)),
    "slogdet": ((2, 3, 3), lambda m, x: m.linalg.slogdet(x)),
    "slogdet of complex numbers": ((4, 4), lambda m, x: m.linalg.slogdet(x + 1j * x.T)),
    "inv": ((3, 3), lambda m, x: m.linalg.inv(x)),
    "solve": ((2, 3, 3), lambda m, x: m.linalg.solve(x, np.ones((3, 2)))),
    "pinv": ((4, 3), lambda m, x: m.linalg.pinv(x)),
    "lstsq": ((4, 3), lambda m, x: m.linalg.lstsq(x, np.arange(4.0))[0]),
    "svd": ((4, 3), lambda m, x: [abs(y) for y in m.linalg.svd(x, full_matrices=False)]),
    "eigh": ((3, 3), lambda m, x: [abs(y) for y in m.linalg.eigh(x)]),
    "qr": ((4, 3), lambda m, x: tuple(m.linalg.qr(x))),
    "matrix_power": ((3, 3), lambda m, x: m.linalg.matrix_power(x, -2)),
    "norm 3": ((5,), lambda m, x: m.linalg.norm(x, 3)),
    "nuclear norm": ((2, 3, 4), lambda m, x: m.linalg.matrix_norm(x, ord="nuc")),
    "polyfit": ((5,), lambda m, x: m.polyfit(x, np.arange(5.0) ** 2, 2)),
    "polyval": ((2,), lambda m, x: m.polyval(np.arange(1.0, 30.0) * 0.01, x)),
    "convolve": ((5,), lambda m, x: m.convolve(x, x[:3], "same")),
    "einsum": ((3, 3), lambda m, x: m.einsum("ij,kj,jl->l", x, x, x)),
    "irfft": ((4, 6), lambda m, x: m.fft.irfft(x, 5, norm="ortho")),
    "rfftn": ((2, 2, 3, 2), lambda m, x: m.fft.rfftn(x)),
    "kaiser": ((), lambda m, x: m.kaiser(5, abs(x) + 1.0)),
}


@pytest.mark.sample(5)
@pytest.mark.parametrize("name", CASES)
def test_derivatives_of_both_orders_are_jaxs_parity(name: str) -> None:
    shape, function = CASES[name]
    _check(function, _numbers(shape))


@pytest.mark.parametrize(("name", "x"), [
    ("det", np.ones((4, 4))), ("det", np.diag([1.0, 2.0, 3.0, 0.0])), ("det", np.zeros((3, 3))),
    ("slogdet", np.ones((3, 3))), ("norm", np.zeros(3)), ("pinv", np.ones((3, 2))), ("pinv", np.eye(3))])
def test_derivatives_at_singular_points_are_jaxs_parity(name: str, x: Any) -> None:
    _check(lambda m, x: getattr(m.linalg, name)(x), x, twice=False)
