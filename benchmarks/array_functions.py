"""Convolutions, pooling, factorisations and Fourier transforms, for `python -m benchmarks.functions`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

#: A function of either library that gives what is timed, and its operands.
Case = tuple[Callable[[Any], Callable[..., Any]], list[np.ndarray]]


def windows() -> dict[str, Case]:
    """Convolutions and pooling, forward and backward."""
    rng = np.random.default_rng(4)
    x = rng.standard_normal((8, 56, 56, 64)).astype(np.float32)
    kernels = {"3x3": ((3, 3, 64, 64), 1), "1x1": ((1, 1, 64, 128), 1), "depthwise": ((3, 3, 1, 64), 64)}
    found: dict[str, Case] = {}
    for name, (shape, groups) in kernels.items():
        def convolve(lib: Any, groups: int = groups) -> Callable[..., Any]:
            return lambda x, w: lib.lax.conv_general_dilated(
                x, w, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"), feature_group_count=groups)
        kernel = rng.standard_normal(shape).astype(np.float32)
        found[f"conv {name}"] = convolve, [x, kernel]
        found[f"conv {name}, gradient"] = _slopes(convolve, (0, 1)), [x, kernel]
    for size in (2, 3):
        def pool(lib: Any, size: int = size) -> Callable[..., Any]:
            return lambda x: lib.lax.reduce_window(x, -np.inf, lib.lax.max, (1, size, size, 1), (1, 2, 2, 1), "SAME")
        found[f"max pooling {size}x{size}"] = pool, [x]
        found[f"max pooling {size}x{size}, gradient"] = _slopes(pool, (0,)), [x]
    return found


def _slopes(make: Callable[[Any], Callable[..., Any]], argnums: tuple[int, ...]) -> Callable[[Any], Callable[..., Any]]:
    """The gradients of the sum of squares."""
    return lambda lib: lib.grad(lambda *args: (make(lib)(*args) ** 2).sum(), argnums)


def by_cholesky(lib: Any) -> Callable[..., Any]:
    """Solves systems with positive definite matrices."""
    def solve(a: Any, b: Any) -> Any:
        factor = lib.lax.linalg.cholesky(a)
        y = lib.lax.linalg.triangular_solve(factor, b, left_side=True, lower=True)
        return lib.lax.linalg.triangular_solve(factor, y, left_side=True, lower=True, transpose_a=True)
    return solve


def by_lu(lib: Any) -> Callable[..., Any]:
    """Solves systems with any matrices."""
    def solve(a: Any, b: Any) -> Any:
        factors, _, rows = lib.lax.linalg.lu(a)
        y = lib.lax.linalg.triangular_solve(factors, b[rows], left_side=True, lower=True, unit_diagonal=True)
        return lib.lax.linalg.triangular_solve(factors, y, left_side=True)
    return solve


def matrices() -> dict[str, Case]:
    """Factorisations, and what is solved by them."""
    rng = np.random.default_rng(5)
    many, large = rng.standard_normal((256, 64, 64)), rng.standard_normal((1000, 1000))
    definite = many @ many.swapaxes(1, 2) + 64.0 * np.eye(64)
    found: dict[str, Case] = {}
    for dtype in ("f4", "f8"):
        right, one = rng.standard_normal((256, 64, 8)).astype(dtype), rng.standard_normal((1000, 1)).astype(dtype)
        found[f"Cholesky solve, batched {dtype}"] = by_cholesky, [definite.astype(dtype), right]
        found[f"Cholesky solve, gradient {dtype}"] = _slopes(by_cholesky, (0, 1)), [definite.astype(dtype), right]
        found[f"LU solve of 1,000 {dtype}"] = by_lu, [large.astype(dtype), one]
        found[f"qr of 64x64, batched {dtype}"] = lambda lib: lib.lax.linalg.qr, [many.astype(dtype)]
        found[f"eigh of 64x64, batched {dtype}"] = lambda lib: lib.lax.linalg.eigh, [definite[:64].astype(dtype)]
        found[f"svd of 200x100 {dtype}"] = (
            lambda lib: lambda x: lib.lax.linalg.svd(x, full_matrices=False)), [large[:200, :100].astype(dtype)]
        found[f"svd of 16x16, batched {dtype}"] = lambda lib: lib.lax.linalg.svd, [many[:, :16, :16].astype(dtype)]
    return found


def transforms() -> dict[str, Case]:
    """Fourier transforms of one long row, and of many."""
    rng = np.random.default_rng(6)
    found: dict[str, Case] = {}
    for shape, words in {(2 ** 20,): "of 2^20", (256, 1024): "of 256 rows of 1,024"}.items():
        x = rng.standard_normal(shape)
        for dtype, kind in {"f4": "RFFT", "f8": "RFFT", "c8": "FFT", "c16": "FFT"}.items():
            found[f"{kind.lower()} {words} {dtype}"] = (
                lambda lib, kind=kind, n=shape[-1]: lambda a: lib.lax.fft(a, kind, (n,))), [x.astype(dtype)]
    return found
