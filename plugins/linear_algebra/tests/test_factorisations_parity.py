"""Factorisations and systems beside jax: types, values, derivatives of first and second order, maps; random params."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import corejax as cj

jax = pytest.importorskip("jax")

QUICK, ALL = 36, 720

DTYPES = ("float64", "float32", "complex128", "complex64")
FUNCTIONS = ("cholesky", "lower_cholesky", "triangular_solve", "lu", "qr", "pivoted_qr", "tridiagonal_solve",
             "triangular_solve", "householder_product", "ormqr", "symmetric_product", "cholesky_update")

#: Those that have derivatives in jax.
DIFFERENTIABLE = ("cholesky", "lower_cholesky", "triangular_solve", "lu", "qr", "pivoted_qr", "tridiagonal_solve")


@dataclass(frozen=True)
class Case:
    """A call: the function, its operands, and its params."""

    name: str
    operands: tuple[np.ndarray, ...]
    params: dict[str, Any]

    def of(self, linalg: Any) -> Callable[..., tuple[Any, ...]]:
        function = getattr(linalg, {"lower_cholesky": "cholesky", "pivoted_qr": "qr"}.get(self.name, self.name))

        def call(*xs: Any) -> tuple[Any, ...]:
            outs = function(*xs, **self.params)
            return tuple(outs) if isinstance(outs, (tuple, list)) else (outs,)
        return call

    @property
    def tolerance(self) -> float:
        return 2e-3 if self.operands[0].dtype.itemsize // (1 + (self.operands[0].dtype.kind == "c")) == 4 else 1e-9

    def normal(self, cotangents: Sequence[Any]) -> Sequence[Any]:
        """Of a matrix of which one triangle is read, only Hermitian changes count."""
        if self.name != "lower_cholesky":
            return cotangents
        return [(g + np.swapaxes(g, -1, -2).conj()) / 2 for g in map(np.asarray, cotangents)]


class Draw:
    """Random operands of a dtype and a batch."""

    def __init__(self, seed: int, real: bool) -> None:
        self.rng = np.random.default_rng(seed)
        self.dtype = np.dtype(DTYPES[self.rng.integers(2 if real else 4)])
        self.batch = [(), (), (2,), (2, 1), (0,)][self.rng.choice(5, p=[0.4, 0.2, 0.25, 0.1, 0.05])]

    def array(self, *shape: int) -> np.ndarray:
        x = self.rng.standard_normal((*self.batch, *shape))
        return (x + 1j * self.rng.standard_normal(x.shape) if self.dtype.kind == "c" else x).astype(self.dtype)

    def flag(self) -> bool:
        return bool(self.rng.integers(2))

    def size(self, least: int = 0) -> int:
        return max(least, int(self.rng.choice([1, 2, 3, 4, 5, 0], p=[0.15, 0.25, 0.3, 0.15, 0.1, 0.05])))

    def regular(self, m: int, n: int) -> np.ndarray:
        x: np.ndarray = self.array(m, n) + (3.0 * np.eye(m, n)).astype(self.dtype)
        return x

    def positive(self, n: int) -> np.ndarray:
        x = self.array(n, n)
        return (x @ np.swapaxes(x, -1, -2).conj() + 2.0 * np.eye(n)).astype(self.dtype)


def random_case(seed: int) -> Case:
    name = FUNCTIONS[seed % len(FUNCTIONS)]
    draw = Draw(seed, name in ("symmetric_product", "cholesky_update"))
    m, n = draw.size(), draw.size()
    if name == "cholesky":
        return Case(name, (draw.positive(n),), {})
    if name == "lower_cholesky":
        return Case(name, (draw.positive(n),), {"symmetrize_input": False})
    if name == "triangular_solve":
        flags = ("left_side", "lower", "transpose_a", "conjugate_a", "unit_diagonal")
        params = {flag: draw.flag() for flag in flags}
        vector = draw.rng.random() < 0.2
        b = draw.array(n) if vector else draw.array(*((n, m) if params["left_side"] else (m, n)))
        return Case(name, (draw.regular(n, n), b), params)
    if name == "lu":
        return Case(name, (draw.regular(m, n),), {})
    if name in ("qr", "pivoted_qr"):
        return Case(name, (draw.regular(m, n),), {"full_matrices": draw.flag(), "pivoting": name == "pivoted_qr",
                                                  "use_magma": [None, True, False][draw.rng.integers(3)]})
    if name == "tridiagonal_solve":
        d = draw.array(n) + draw.dtype.type(4)
        return Case(name, (draw.array(n), d, draw.array(n), draw.array(n, m)), {"perturb_singular": draw.flag()})
    if name == "householder_product":
        n = min(m, n)
        return Case(name, (draw.array(m, n), draw.array(int(draw.rng.integers(n + 1)))), {})
    if name == "ormqr":
        left = draw.flag()
        c = draw.array(*((m, draw.size()) if left else (draw.size(), m)))
        return Case(name, (draw.array(m, n), draw.array(min(m, n)), c), {"left": left, "transpose": draw.flag()})
    if name == "symmetric_product":
        return Case(name, (draw.array(m, n), draw.positive(m)), {
            "alpha": float(draw.rng.normal()), "beta": float(draw.rng.integers(2)), "symmetrize_output": draw.flag()})
    draw.batch = ()
    return Case(name, (np.triu(draw.regular(n, n)), draw.array(n)), {})


def seeds() -> list[Any]:
    return [*range(QUICK), *[pytest.param(seed, marks=pytest.mark.exhaustive) for seed in range(QUICK, ALL)]]


def same(got: Any, wanted: Any, tolerance: float) -> None:
    got, wanted = np.asarray(got), np.asarray(wanted)
    assert (wanted.shape, wanted.dtype) == (got.shape, got.dtype)
    if wanted.dtype.kind in "iub" or not wanted.size:
        np.testing.assert_array_equal(got, wanted)
        return
    scale = 1.0 + float(np.abs(np.nan_to_num(wanted)).max())
    np.testing.assert_allclose(got, wanted, rtol=0.0, atol=tolerance * scale)


def all_same(got: Sequence[Any], wanted: Sequence[Any], tolerance: float) -> None:
    for mine, theirs in zip(got, wanted, strict=True):
        same(mine, theirs, tolerance)


@pytest.mark.parametrize("seed", seeds())
def test_values_and_types_are_those_of_jax(seed: int) -> None:
    case = random_case(seed)
    with jax.enable_x64(True):
        wanted = jax.jit(case.of(jax.lax.linalg))(*case.operands)
        for call in (case.of(cj.lax.linalg), cj.jit(case.of(cj.lax.linalg))):
            all_same(call(*case.operands), wanted, case.tolerance)


def derivatives(case: Case, library: Any) -> Callable[..., Any]:
    """Tangents, cotangents, and tangents of cotangents, in one program."""
    call = case.of(library.lax.linalg)

    def inexact(*xs: Any) -> tuple[Any, ...]:
        return tuple([out for out in call(*xs) if np.dtype(out.dtype).kind in "fc"])

    def compute(xs: Any, dots: Any, cts: Any) -> Any:
        def pulled(*xs: Any) -> Any:
            return library.vjp(inexact, *xs)[1](cts)
        return library.jvp(inexact, xs, dots)[1], pulled(*xs), library.jvp(pulled, xs, dots)[1]
    return compute


@pytest.mark.sample(18)
@pytest.mark.parametrize("seed", seeds())
def test_derivatives_are_those_of_jax(seed: int) -> None:
    case = random_case(seed)
    if case.name not in DIFFERENTIABLE:
        pytest.skip("jax has none")
    shape = case.operands[0].shape
    if case.name == "pivoted_qr" and len(shape) > 2:
        pytest.skip("jax has no rule for batches that works")
    if case.name == "pivoted_qr" and shape[0] < shape[1]:
        pytest.skip("jax's rule leaves the last columns of x where they were, which differences refute")
    draw = Draw(seed, False)
    draw.dtype, draw.batch = case.operands[0].dtype, ()
    dots = tuple([draw.array(*x.shape) for x in case.operands])
    if case.name == "lower_cholesky":
        dots = tuple(case.normal(dots))
    with jax.enable_x64(True):
        outs = [out for out in case.of(cj.lax.linalg)(*case.operands) if np.dtype(out.dtype).kind in "fc"]
        cts = tuple([draw.array(*out.shape) for out in outs])
        tangents, pulled, second = cj.jit(derivatives(case, cj))(case.operands, dots, cts)
        wanted = jax.jit(derivatives(case, jax))(case.operands, dots, cts)
    tolerance = 20 * case.tolerance
    all_same(tangents, wanted[0], tolerance)
    all_same(case.normal(pulled), case.normal(wanted[1]), tolerance)
    all_same(case.normal(second), case.normal(wanted[2]), 10 * tolerance)


@pytest.mark.parametrize("seed", seeds())
def test_maps_are_those_of_jax(seed: int) -> None:
    case = random_case(seed)
    if case.name == "cholesky_update":
        pytest.skip("jax has none")
    rng = np.random.default_rng(seed)
    mapped = rng.integers(0, 2, len(case.operands)).astype(bool)
    mapped[rng.integers(len(mapped))] = True
    axes, operands = [], []
    for x, is_mapped in zip(case.operands, mapped, strict=True):
        axis = int(rng.integers(x.ndim + 1)) if is_mapped else None
        axes.append(axis)
        operands.append(x if axis is None else np.stack([x, x * 1.25, x * 0.75], axis))
    with jax.enable_x64(True):
        got = cj.jit(cj.vmap(case.of(cj.lax.linalg), in_axes=tuple(axes)))(*operands)
        wanted = jax.jit(jax.vmap(case.of(jax.lax.linalg), in_axes=tuple(axes)))(*operands)
    all_same(got, wanted, 10 * case.tolerance)
