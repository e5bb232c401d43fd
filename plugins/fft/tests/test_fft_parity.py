"""Fourier transforms beside jax: types, values, first and second derivatives, and maps, on random parameters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.testing import assert_allclose

import corejax as cj
from corejax import lax

jax = pytest.importorskip("jax")

QUICK, ALL = 12, 300

KINDS = ("fft", "ifft", "rfft", "irfft")
REAL = ("bool", "int8", "uint8", "int16", "uint32", "int32", "int64", "uint64", "float32", "float64")
ANY = (*REAL, "float16", ml_dtypes.bfloat16, "complex64", "complex128", "complex64", "complex128")


@dataclass(frozen=True)
class Case:
    """A transform, and an operand for it."""

    kind: str
    lengths: tuple[int, ...]
    x: np.ndarray

    def of(self, module: Any) -> Any:
        """The call on either library's lax."""
        kind = getattr(module.FftType, self.kind.upper()) if len(self.lengths) % 2 else self.kind
        return lambda x: module.fft(x, kind, self.lengths)

    @property
    def smooth(self) -> np.ndarray:
        """An operand in double precision, of the same shape."""
        rng = np.random.default_rng(self.x.size)
        x = rng.standard_normal(self.x.shape)
        return x if self.kind == "rfft" else x + 1j * rng.standard_normal(self.x.shape)


def random_case(seed: int) -> Case:
    rng = np.random.default_rng(seed)
    kind = KINDS[seed % 4]
    axes = int(rng.integers(1, 4))
    batch = [int(n) for n in rng.choice((1, 2, 3, 0), rng.integers(3), p=(0.3, 0.3, 0.3, 0.1))]
    lengths = tuple([int(n) for n in rng.choice((1, 2, 3, 4, 5, 7, 8, 12, 17, 30), axes)])
    if axes == 1 and seed % 5 == 0:
        lengths = (int(rng.integers(1, 400)),)
    sizes = (*lengths[:-1], lengths[-1] // 2 + 1) if kind == "irfft" else lengths
    dtype = np.dtype((REAL if kind == "rfft" else ANY)[rng.integers(len(REAL if kind == "rfft" else ANY))])
    x = rng.standard_normal((*batch, *sizes)) * 5
    if dtype.kind == "c":
        x = x + 1j * rng.standard_normal(x.shape)
    return Case(kind, lengths, (abs(x) if dtype.kind == "u" else x).astype(dtype))


def seeds() -> list[Any]:
    return [*range(QUICK), *[pytest.param(seed, marks=pytest.mark.exhaustive) for seed in range(QUICK, ALL)]]


def close(got: Any, wanted: Any) -> None:
    """The same type, and values up to the rounding of a sum."""
    assert (wanted.shape, wanted.dtype, wanted.weak_type) == (got.shape, got.dtype, got.aval.weak_type)
    if wanted.size:
        scale = float(abs(np.asarray(wanted)).max()) + 1e-30
        assert_allclose(np.asarray(got), np.asarray(wanted), rtol=0, atol=scale * 30 * np.finfo(wanted.dtype).eps)


@pytest.mark.parametrize("seed", seeds())
def test_values_and_types_are_those_of_jax(seed: int) -> None:
    case = random_case(seed)
    with jax.enable_x64(True):
        wanted = case.of(jax.lax)(case.x)
        for call in (case.of(lax), cj.jit(case.of(lax))):
            close(call(case.x), wanted)


@pytest.mark.parametrize("seed", seeds())
def test_derivatives_are_those_of_jax(seed: int) -> None:
    case = random_case(seed)
    x, direction = case.smooth, case.smooth[..., ::-1]
    weights = np.random.default_rng(seed).standard_normal(20_000)

    def second(module: Any) -> Any:
        def loss(x: Any) -> Any:
            out = case.of(module.lax)(x)
            weight = np.resize(weights, out.shape)
            parts = [out] if case.kind == "irfft" else [module.lax.real(out), module.lax.imag(out)]
            return sum([(module.lax.sin(part * (k + 0.5)) * weight).sum() for k, part in enumerate(parts)])
        slope = module.grad(loss)
        return lambda x: (*module.jvp(slope, (x,), (direction,)),
                          module.vjp(slope, x)[1](module.lax.conj(direction) if x.dtype.kind == "c" else direction)[0])

    with jax.enable_x64(True):
        wanted = jax.jit(second(jax))(x)
        for have, want in zip(second(cj)(x) if seed % 2 else cj.jit(second(cj))(x), wanted, strict=True):
            close(have, want)


@pytest.mark.parametrize("seed", seeds())
def test_transposes_are_those_of_jax(seed: int) -> None:
    case = random_case(seed)
    with jax.enable_x64(True):
        wanted, pull = jax.vjp(case.of(jax.lax), case.smooth)
        ct = np.asarray(wanted * (2.0 - 1j) if wanted.dtype == np.complex128 else wanted * 2.0)
        close(cj.vjp(case.of(lax), case.smooth)[1](ct)[0], pull(ct)[0])
        transposed = jax.linear_transpose(case.of(jax.lax), case.smooth)
        close(cj.linear_transpose(case.of(lax), case.smooth)(ct)[0], transposed(ct)[0])


@pytest.mark.parametrize("seed", seeds())
def test_maps_over_every_axis_are_those_of_jax(seed: int) -> None:
    case = random_case(seed)
    for axis in range(case.x.ndim + 1) if seed >= QUICK else [seed % (case.x.ndim + 1)]:
        x = np.stack([case.x, case.x[..., ::-1]], axis)
        with jax.enable_x64(True):
            wanted = jax.vmap(case.of(jax.lax), in_axes=axis, out_axes=axis)(x)
            mapped = cj.vmap(case.of(lax), in_axes=axis, out_axes=axis)
            close((mapped if seed % 2 else cj.jit(mapped))(x), wanted)


def test_programs_are_those_of_jax() -> None:
    with jax.enable_x64(True):
        for kind in KINDS:
            x = np.ones((2, 3, 4)) if kind == "rfft" else np.ones((2, 3, 4), complex)
            lengths = (3, 6 if kind == "irfft" else 4)
            mine = cj.make_jaxpr(lambda x, k=kind, n=lengths: lax.fft(x, k, n))(x).jaxpr.eqns
            other = jax.make_jaxpr(lambda x, k=kind, n=lengths: jax.lax.fft(x, k, n))(x).jaxpr.eqns[0].params["jaxpr"]
            (got,), (wanted,) = mine, other.eqns
            assert (wanted.primitive.name, dict(wanted.params)) == (got.primitive.name, dict(got.params))
            texts = [m.jit(lambda x, m=m, k=kind, n=lengths: m.lax.fft(x, k, n)).lower(x).as_text() for m in (cj, jax)]
            (mine_op,), (other_op,) = [[line.split("=", 1)[1].split("loc")[0].split() for line in text.splitlines()
                                        if "stablehlo.fft" in line] for text in texts]
            assert other_op[1:] == mine_op[1:]


def test_the_numbers_of_transforms_are_those_of_jax() -> None:
    assert {t.name: int(t) for t in jax.lax.FftType} == {t.name: int(t) for t in lax.FftType}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("value", [2, 2.0, np.int8(2), True])
def test_without_lengths_numbers_are_converted_as_by_jax(kind: str, value: Any) -> None:
    with jax.enable_x64(True):
        close(lax.fft(value, kind, ()), jax.lax.fft(value, kind, ()))
