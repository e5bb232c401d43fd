"""Eigenvalues, singular values and condensed forms beside jax: types, values, derivatives, maps; random params."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

import corejax as cj

jax = pytest.importorskip("jax")

QUICK = 16
VALUES, DERIVATIVES, MAPS = 400, 160, 240

DTYPES = ("float64", "float32", "complex128", "complex64")
FUNCTIONS = ("eigh", "svd", "eig", "schur", "eigh_of_a_triangle", "svd", "hessenberg", "tridiagonal")
DIFFERENTIABLE = ("eigh", "svd", "eig", "eigh_of_a_triangle", "svd_values", "eig_values", "svd", "qdwh")


@dataclass(frozen=True)
class Case:
    """A call: the function, its operand, and its params, with enumerations by name."""

    name: str
    x: np.ndarray
    params: dict[str, Any]

    def of(self, linalg: Any) -> Callable[[Any], tuple[Any, ...]]:
        params = {name: getattr(getattr(linalg, value[0]), value[1]) if isinstance(value, tuple) and isinstance(
            value[0], str) else value for name, value in self.params.items()}

        def call(x: Any) -> tuple[Any, ...]:
            outs = getattr(linalg, self.name.split("_")[0])(x, **params)
            return tuple(outs) if isinstance(outs, (tuple, list)) else (outs,)
        return call


class Draw:
    """Random matrices and params."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)

    def one_of(self, *values: Any) -> Any:
        return values[self.rng.integers(len(values))]

    def matrix(self, dtype: Any, *shape: int) -> np.ndarray:
        x = self.rng.standard_normal(shape)
        if np.dtype(dtype).kind == "c":
            x = x + 1j * self.rng.standard_normal(shape)
        return np.asarray(x, dtype)

    def of_eigh(self, size: int) -> dict[str, Any]:
        return {"lower": self.one_of(True, False), "sort_eigenvalues": self.one_of(True, False),
                "subset_by_index": self.one_of(None, (0, size)),
                "implementation": self.one_of(None, ("EighImplementation", "QR"))}

    def of_svd(self, k: int, full: bool, vectors: bool) -> dict[str, Any]:
        return {"full_matrices": full, "compute_uv": vectors, "subset_by_index": self.one_of(None, (0, k)),
                "algorithm": self.one_of(None, *[("SvdAlgorithm", name) for name in (
                    "DEFAULT", "QR", "DIVIDE_AND_CONQUER")])}

    def of_eig(self, left: bool, right: bool) -> dict[str, Any]:
        return {"compute_left_eigenvectors": left, "compute_right_eigenvectors": right,
                "implementation": self.one_of(None, ("EigImplementation", "LAPACK"))}


def hermitian(x: np.ndarray) -> np.ndarray:
    return np.asarray((x + np.swapaxes(x, -1, -2).conj()) / 2, x.dtype)


def random_case(seed: int) -> Case:
    draw = Draw(seed)
    name = FUNCTIONS[seed % len(FUNCTIONS)]
    dtype = DTYPES[draw.rng.integers(4)]
    batch = draw.one_of((), (), (2,), (3,), (2, 1), (0,))
    least = 1 if name in ("hessenberg", "tridiagonal") else 0
    n = int(draw.one_of(*[size for size in (0, 1, 2, 3, 3, 4, 5, 8) if size >= least]))
    m = n if name != "svd" else int(draw.one_of(0, 1, 2, 3, 4, 7))
    x = draw.matrix(dtype, *batch, m, n)
    if draw.rng.random() < 0.1 and x.size and name not in ("svd", "schur"):  # from some of which LAPACK never returns
        x[(0,) * x.ndim] = draw.one_of(np.nan, np.inf)
    if name.startswith("eigh"):
        return Case(name, x, draw.of_eigh(n) | ({"symmetrize_input": False} if name != "eigh" else {}))
    if name == "svd":
        return Case(name, x, draw.of_svd(min(m, n), draw.one_of(True, False), draw.one_of(True, True, False)))
    if name == "eig":
        return Case(name, x, draw.of_eig(draw.one_of(True, False), draw.one_of(True, False)))
    if name == "schur":
        return Case(name, x, {"compute_schur_vectors": draw.one_of(True, True, False)})
    return Case(name, x, {"lower": draw.one_of(True, False)} if name == "tridiagonal" else {})


def differentiable_case(seed: int) -> Case:
    """In double precision, with eigenvalues or singular values that are apart."""
    draw = Draw(seed)
    name = DIFFERENTIABLE[seed % len(DIFFERENTIABLE)]
    batch = draw.one_of((), (), (2,)) if name != "qdwh" else ()
    n = int(draw.one_of(1, 2, 3, 4))
    extra = int(draw.one_of(0, 1, 2)) if name in ("svd", "svd_values", "qdwh") else 0
    wide = name != "qdwh" and draw.one_of(True, False)
    shape = (n, n + extra) if wide else (n + extra, n)
    x = draw.matrix(draw.one_of("float64", "complex128"), *batch, *shape)
    x = x * 0.5 + np.eye(*shape) * np.arange(1.0, max(shape) + 1.0)[:, None][:shape[0]] * 2.0
    if name.startswith("eigh"):
        options = draw.of_eigh(n) | ({"symmetrize_input": False} if name != "eigh" else {})
        return Case(name, hermitian(x), options)
    if name.startswith("svd"):
        full = bool(name == "svd_values" or not extra and draw.one_of(True, False))
        return Case(name, x, draw.of_svd(n, full, name == "svd"))
    if name.startswith("eig"):
        sides = [(False, False)] if name == "eig_values" else [(True, True), (True, False), (False, True)]
        return Case(name, x, draw.of_eig(*draw.one_of(*sides)) | {"enable_eigvec_derivs": True})
    return Case(name, x, {})


def seeds(count: int) -> list[Any]:
    return [*range(QUICK), *[pytest.param(seed, marks=pytest.mark.exhaustive) for seed in range(QUICK, count)]]


def tolerance(dtype: Any) -> float:
    return 1e-3 if np.dtype(dtype) in (np.float32, np.complex64) else 1e-8


def same(got: Any, wanted: Any, weak: bool = True) -> None:
    assert (wanted.shape, wanted.dtype) == (got.shape, got.dtype)
    if weak:
        assert wanted.weak_type == got.aval.weak_type
    close = tolerance(wanted.dtype)
    largest = np.nanmax(np.abs(np.nan_to_num(np.asarray(wanted), posinf=0, neginf=0)), initial=1.0)
    assert_allclose(np.asarray(got), np.asarray(wanted), rtol=close, atol=close * largest)


@pytest.mark.parametrize("seed", seeds(VALUES))
def test_values_and_types_are_those_of_jax(seed: int) -> None:
    case = random_case(seed)
    with jax.enable_x64(True):
        wanted = jax.jit(case.of(jax.lax.linalg))(case.x)
        ours = case.of(cj.lax.linalg)
        for function in (ours, cj.jit(ours)):
            for got, want in zip(function(case.x), wanted, strict=True):
                same(got, want)


@pytest.mark.sample(6)
@pytest.mark.parametrize("seed", seeds(DERIVATIVES))
def test_derivatives_of_two_orders_are_those_of_jax(seed: int) -> None:
    case = differentiable_case(seed)
    draw = Draw(seed + 10_000)
    vs = [draw.matrix(case.x.dtype, *case.x.shape) for _ in range(2)]
    if case.name == "eigh_of_a_triangle":  # jax takes the Hermitian part of the matrix when it differentiates
        vs = [hermitian(v) for v in vs]
    with jax.enable_x64(True):
        weights = [draw.matrix(out.dtype, *out.shape) for out in jax.eval_shape(case.of(jax.lax.linalg), case.x)]

        def derivatives(module: Any) -> Callable[..., Any]:
            def function(x: Any) -> Any:
                return [out for out in case.of(module.lax.linalg)(x) if out.dtype.kind in "fc"]

            def forward(x: Any) -> Any:
                return module.jvp(function, (x,), (vs[0],))[1]

            def backward(x: Any) -> Any:
                return module.vjp(function, x)[1](weights[:len(function(x))])[0]

            def both(x: Any) -> Any:
                back = [] if case.name == "qdwh" else [backward(x), module.jvp(backward, (x,), (vs[1],))[1]]
                return [*forward(x), *module.jvp(forward, (x,), (vs[1],))[1], *back]
            return both
        wanted = jax.jit(derivatives(jax))(case.x)
        ours = derivatives(cj)
        for got, want in zip((cj.jit(ours) if seed % 2 else ours)(case.x), wanted, strict=True):
            same(got, want, weak=False)


@pytest.mark.parametrize("seed", seeds(MAPS))
def test_maps_over_every_axis_are_those_of_jax(seed: int) -> None:
    case = random_case(seed + 20_000)
    at = seed % (case.x.ndim + 1)
    xs = np.stack([case.x, np.flip(case.x)], at)
    with jax.enable_x64(True):
        out_axes = seed % 2
        wanted = jax.jit(jax.vmap(case.of(jax.lax.linalg), in_axes=at, out_axes=out_axes))(xs)
        ours = cj.vmap(case.of(cj.lax.linalg), in_axes=at, out_axes=out_axes)
        for got, want in zip((cj.jit(ours) if seed % 3 else ours)(xs), wanted, strict=True):
            same(got, want)


@pytest.mark.sample(1)
@pytest.mark.parametrize("name", ["eigh", "svd", "eig"])
def test_where_values_are_repeated_derivatives_are_finite_exactly_where_those_of_jax_are(name: str) -> None:
    options: dict[str, Any] = {"svd": {"full_matrices": False}, "eig": {"enable_eigvec_derivs": True}}.get(name, {})
    x_dots = np.random.default_rng(0).standard_normal((2, 3, 3))
    for x in (np.eye(3), np.zeros((3, 3)), np.diag([1.0, 1.0, 2.0]), np.diag([0.0, 1.0, 2.0]), np.zeros((3, 2))):
        if x.shape[1] == 2 and name != "svd":
            continue
        for x_dot in (x_dots[0][:, :x.shape[1]], hermitian(x_dots[1])[:, :x.shape[1]], np.eye(3)[:, :x.shape[1]]):
            with jax.enable_x64(True):
                wanted = jax.jvp(lambda x: getattr(jax.lax.linalg, name)(x, **options), (x,), (x_dot,))[1]
                for apply in (lambda f: f, cj.jit):
                    got = apply(lambda x, d: cj.jvp(lambda x: getattr(cj.lax.linalg, name)(x, **options), (x,), (d,))[1]
                                )(x, x_dot)
                    for have, want in zip(got, wanted, strict=True):
                        assert np.array_equal(np.isfinite(have), np.isfinite(want)), (name, x, have, want)
                        finite = np.isfinite(np.asarray(want))
                        assert_allclose(np.asarray(have)[finite], np.asarray(want)[finite], rtol=1e-9, atol=1e-9)
