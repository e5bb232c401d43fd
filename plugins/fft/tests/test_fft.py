"""Fourier transforms beside their definition and NumPy: conventions, identities, empty arrays, cost, exports."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import corejax as cj
from corejax import lax

RNG = np.random.default_rng(0)

KINDS = ("fft", "ifft", "rfft", "irfft")

WAYS = {"eager": lambda f: f, "compiled": cj.jit, "mapped": lambda f: lambda x: cj.vmap(f)(x[None])[0]}
every_way = pytest.mark.parametrize("way", WAYS)
every_kind = pytest.mark.parametrize("kind", KINDS)


def numbers(*shape):
    return RNG.standard_normal(shape) + 1j * RNG.standard_normal(shape)


def operand(kind, *lengths):
    if kind == "irfft":
        return numbers(*lengths[:-1], lengths[-1] // 2 + 1)
    return RNG.standard_normal(lengths) if kind == "rfft" else numbers(*lengths)


@every_way
@pytest.mark.parametrize("n", [1, 2, 3, 8, 13])
def test_a_transform_is_a_product_with_roots_of_unity(way, n):
    x = numbers(n)
    roots = np.exp(-2j * np.pi * np.outer(np.arange(n), np.arange(n)) / n)
    assert_allclose(WAYS[way](lambda x: lax.fft(x, "fft", (n,)))(x), roots @ x, atol=1e-13)
    assert_allclose(WAYS[way](lambda x: lax.fft(x, "ifft", (n,)))(x), roots.conj() @ x / n, atol=1e-13)
    assert_allclose(WAYS[way](lambda x: lax.fft(x, "rfft", (n,)))(x.real), (roots @ x.real)[:n // 2 + 1], atol=1e-13)


@every_way
@every_kind
@pytest.mark.parametrize("lengths", [(6,), (7,), (4, 5), (3, 6), (2, 3, 4), (8, 1, 9)])
def test_transforms_are_those_of_numpy(way, kind, lengths):
    x = operand(kind, *lengths)
    wanted = getattr(np.fft, kind + "n")(x, lengths, tuple(range(len(lengths))))
    assert_allclose(WAYS[way](lambda x: lax.fft(x, kind, lengths))(x), wanted, atol=1e-13)


@every_way
@pytest.mark.parametrize("n", [1, 2, 5, 8])
def test_the_inverse_ignores_imaginary_parts_that_no_real_signal_has(way, n):
    spectrum = lax.fft(RNG.standard_normal(n), "rfft", (n,))
    wrong = np.asarray(spectrum) + 1j * (np.arange(n // 2 + 1) % max(1, n / 2) == 0)
    inverse = WAYS[way](lambda x: lax.fft(x, "irfft", (n,)))
    assert_allclose(inverse(wrong), inverse(spectrum), atol=1e-15)


@pytest.mark.parametrize("n", [1, 2, 5, 8])
def test_gradients_of_energies_are_those_of_parsevals_theorem(n):
    """The energy of a signal is the sum of its squares, and that of its spectrum divided by n."""
    x = RNG.standard_normal(n)
    energy = cj.grad(lambda x: (abs(lax.fft(x, "fft", (n,))) ** 2).sum() / n)
    assert_allclose(energy(x), 2 * x, atol=1e-13)
    there_and_back = cj.grad(lambda x: (lax.fft(lax.fft(x, "rfft", (n,)), "irfft", (n,)) ** 2).sum())
    assert_allclose(there_and_back(x), 2 * x, atol=1e-13)
    assert_allclose(cj.hessian(lambda x: (lax.fft(lax.fft(x, "rfft", (n,)), "irfft", (n,)) ** 2).sum())(x),
                    2 * np.eye(n), atol=1e-13)


@every_kind
@pytest.mark.parametrize("lengths", [(1,), (2,), (5,), (6,), (2, 3), (3, 4), (2, 1, 4)])
def test_transposes_are_adjoint_in_real_and_imaginary_parts(kind, lengths):
    x = operand(kind, *lengths)
    out, pull = cj.vjp(lambda x: lax.fft(x, kind, lengths), x)
    ct = RNG.standard_normal(out.shape) + (1j * RNG.standard_normal(out.shape) if out.dtype.kind == "c" else 0)
    assert_allclose(np.sum(np.asarray(pull(ct)[0]) * x).real, np.sum(ct * np.asarray(out)).real, atol=1e-12)


def test_a_convolution_is_a_product_of_spectra():
    x, kernel = RNG.standard_normal(12), RNG.standard_normal(12)

    @cj.jit
    def convolved(x, kernel):
        return lax.fft(lax.fft(x, "rfft", (12,)) * lax.fft(kernel, "rfft", (12,)), "irfft", (12,))

    wanted = [np.sum(x * kernel[(k - np.arange(12)) % 12]) for k in range(12)]
    assert_allclose(convolved(x, kernel), wanted, atol=1e-13)
    matrix = cj.jacrev(convolved)(x, kernel)
    assert_allclose(matrix, kernel[(np.arange(12)[:, None] - np.arange(12)) % 12], atol=1e-13)
    assert_allclose(cj.jacfwd(convolved)(x, kernel), matrix, atol=1e-13)


@every_way
@pytest.mark.parametrize(("kind", "shape", "lengths", "result"), [
    ("fft", (0, 4), (4,), (0, 4)), ("fft", (4, 0), (0,), (4, 0)), ("ifft", (0,), (0,), (0,)),
    ("fft", (4, 0), (4, 0), (4, 0)), ("rfft", (0, 4), (4,), (0, 3)), ("rfft", (0, 4), (0, 4), (0, 3)),
    ("rfft", (2, 0), (0,), (2, 1)), ("irfft", (0, 3), (4,), (0, 4)), ("irfft", (0, 3), (0, 4), (0, 4)),
    ("irfft", (3, 1), (3, 0), (3, 0)), ("irfft", (1,), (0,), (0,))])
def test_nothing_has_a_transform_of_zeros(way, kind, shape, lengths, result):
    x = np.zeros(shape, np.float32 if kind == "rfft" else np.complex64)
    out = WAYS[way](lambda x: lax.fft(x, kind, lengths))(x)
    assert_array_equal(out, np.zeros(result))
    assert out.dtype == (np.float32 if kind == "irfft" else np.complex64)
    pulled, = WAYS[way](lambda x: cj.vjp(lambda x: lax.fft(x, kind, lengths), x)[1](
        lax.full(result, 1, out.dtype)))(x) if way != "mapped" else cj.vjp(
            lambda x: lax.fft(x, kind, lengths), x)[1](np.ones(result, out.dtype))
    assert_array_equal(pulled, np.zeros(shape))


@pytest.mark.parametrize(("given", "found"), [
    ("bool", "complex64"), ("int8", "complex64"), ("uint32", "complex64"), ("int64", "complex128"),
    ("uint64", "complex128"), ("float16", "complex64"), ("float32", "complex64"), ("float64", "complex128")])
def test_real_numbers_become_complex_ones_of_their_precision(given, found):
    assert lax.fft(np.ones(4, given), "fft", (4,)).dtype == found
    if given != "float16":
        assert lax.fft(np.ones(4, given), "rfft", (4,)).dtype == found
    assert not lax.fft(lax.broadcast(1.0, (4,)), "fft", (4,)).weak_type


@pytest.mark.parametrize("kind", ["rfft", "RFFT", lax.FftType.RFFT])
@pytest.mark.parametrize("lengths", [(2, 3), [2, 3], np.array([2, 3]), (np.int32(2), np.int64(3))])
def test_a_transform_goes_by_its_name_in_either_case_or_by_its_type(kind, lengths):
    x = RNG.standard_normal((2, 3))
    assert_allclose(lax.fft(x, kind, lengths), np.fft.rfft2(x), atol=1e-14)
    (equation,) = cj.make_jaxpr(lambda x: lax.fft(x, kind, lengths))(x).jaxpr.eqns
    assert {"fft_type": lax.FftType.RFFT, "fft_lengths": (2, 3)} == equation.params


def test_a_batch_axis_before_the_transformed_ones_stays_where_it_is():
    x = numbers(5, 3, 4)
    program = cj.make_jaxpr(cj.vmap(lambda x: lax.fft(x, "fft", (4,)), in_axes=1, out_axes=1))(x).jaxpr
    assert ["fft"] == [eqn.primitive.name for eqn in program.eqns]


def test_a_program_takes_one_operation_for_each_transform_and_for_each_transpose():
    def operations(f, x):
        return cj.jit(f).lower(x).as_text().count("stablehlo.fft")

    for kind in KINDS:
        x = operand(kind, 3, 8)
        assert operations(lambda x, kind=kind: lax.fft(x, kind, (3, 8)), x) == 1
        assert operations(lambda x, kind=kind: cj.linear_transpose(lambda x: lax.fft(x, kind, (3, 8)), x)(
            lax.fft(x, kind, (3, 8))), x) == 2


@pytest.mark.parametrize("platform", ["cuda", "rocm"])
def test_gpus_invert_a_spectrum_of_several_axes_one_after_the_other(platform):
    x = numbers(5, 2, 3, 3)
    f = cj.jit(lambda x: lax.fft(x, "irfft", (2, 3, 4)))
    text = f.trace(x).lower(platform).as_text()
    assert (2, 2) == (text.count("stablehlo.fft"), text.count("stablehlo.transpose"))
    assert "tensor<5x3x2x3xcomplex<f64>>" in text
    # the same steps, on this machine
    moved = lax.fft(lax.transpose(x, (0, 3, 1, 2)), "ifft", (2, 3))
    assert_allclose(lax.fft(lax.transpose(moved, (0, 2, 3, 1)), "irfft", (4,)), f(x), atol=1e-14)


def test_exported_programs_with_transforms_load_and_have_gradients():
    x = RNG.standard_normal((3, 8))

    def energy(x):
        return (abs(lax.fft(x, "rfft", (3, 8))) ** 2).sum()

    loaded = cj.export.deserialize(cj.export.export(energy, vjp_order=2)(x).serialize())
    assert_allclose(loaded.call(x), energy(x), rtol=1e-13)
    assert_allclose(cj.grad(loaded.call)(x), cj.grad(energy)(x), rtol=1e-12)
    hessian = cj.jvp(cj.grad(energy), (x,), (x,))[1]
    assert_allclose(cj.vjp(cj.grad(loaded.call), x)[1](x)[0], hessian, rtol=1e-12)


_CACHED = """
import numpy as np, corejax as cj
from corejax import lax
f = cj.jit(cj.grad(lambda x: abs(lax.fft(x, "rfft", (16,))).sum()))
print(f(np.arange(16.0)).tolist())
"""


def test_another_process_finds_compiled_transforms_in_the_cache(tmp_path):
    env = {**os.environ, "COREJAX_COMPILATION_CACHE_DIR": str(tmp_path)}
    first, second = [subprocess.run([sys.executable, "-c", _CACHED], env=env, capture_output=True, text=True,
                                    check=True).stdout for _ in range(2)]
    assert first == second
    assert [*tmp_path.rglob("*")]


def test_scans_and_checkpoints_take_transforms():
    x = numbers(4, 8)

    def step(carry, row):
        carry = lax.fft(carry * row, "fft", (8,)) * 0.2
        return carry, lax.real(carry).sum()

    def loss(x):
        last, sums = lax.scan(cj.checkpoint(step), x[0], x)
        return lax.imag(last).sum() + (sums ** 2).sum()

    def unrolled(x):
        carry, total = x[0], 0.0
        for row in range(4):
            carry, out = step(carry, x[row])
            total = total + out ** 2
        return lax.imag(carry).sum() + total

    assert_allclose(cj.jit(cj.grad(loss))(x), cj.grad(unrolled)(x), rtol=1e-10)
    rows = cj.vmap(cj.grad(cj.jit(loss)))(np.stack([x, x * 0.5]))
    assert_allclose(rows[1], cj.grad(unrolled)(x * 0.5), rtol=1e-10)
