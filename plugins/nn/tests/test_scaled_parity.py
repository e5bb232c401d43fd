"""Beside JAX: what numbers are rounded to, bit for bit, and products and derivatives by its own rules.

Its products of numbers with scales are for GPUs only, so they are replaced by what its documentation says they are.
"""

from __future__ import annotations

from dataclasses import replace

import ml_dtypes
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import corejax as cj
from corejax import nn
from corejax_nn import scaled

jax = pytest.importorskip("jax")
jax.config.update("jax_enable_x64", True)
theirs = pytest.importorskip("jax._src.cudnn.scaled_matmul_stablehlo")

DTYPES = [np.dtype(each) for each in ("float32", ml_dtypes.bfloat16, "float16", "float64")]
every_mode = pytest.mark.parametrize("mode", ["mxfp8", "nvfp4"])


def sampled(count, kept):
    return [pytest.param(seed, marks=() if seed < kept else pytest.mark.exhaustive) for seed in range(count)]


def pairs_of_configs(mode, global_scales):
    """For each global scale, JAX's configuration and ours."""
    return [(jax.nn.get_scaled_dot_general_config(mode, jax.numpy.asarray(scale)),
             nn.get_scaled_dot_general_config(mode, scale)) for scale in np.float32(global_scales)[:, None]]


@every_mode
def test_parity_of_configurations(mode):
    (found, wanted), = [(ours, jaxs) for jaxs, ours in pairs_of_configs(mode, [0.5])]
    for name in ("mode", "block_size", "infer_only"):
        assert getattr(wanted, name) == getattr(found, name)
    for name in ("data_type", "scale_type"):
        assert np.dtype(getattr(wanted, name)) == getattr(found, name)
    assert_array_equal(wanted.global_scale, found.global_scale)
    default = [module.get_scaled_dot_general_config(mode).global_scale for module in (jax.nn, nn)]
    assert_array_equal(*default)
    assert mode == "mxfp8" or default[0].dtype == default[1].dtype


@every_mode
@pytest.mark.parametrize("wrap", [lambda f: f, cj.jit], ids=["eager", "jit"])
@pytest.mark.parametrize("seed", sampled(200, 4))
def test_parity_of_data_and_scales_bit_for_bit(seed, wrap, mode):
    rng, dtype = np.random.default_rng(seed), DTYPES[seed % 4]
    shape = [(2, 3, 96), (1, 4, 32), (3, 1, 64)][seed // 4 % 3]
    # In float16, JAX takes small scales for 0.
    x = rng.standard_normal(shape) * 10.0 ** rng.uniform(-1 if dtype == np.float16 else -8, 4, (*shape[:2], 1))
    x = x.astype(dtype)
    if dtype == np.float16:  # the first number that needs a larger scale, which JAX's compiler divides inexactly
        x[np.abs(np.frexp(x)[0]) == 448.25 / 512] = 0
    (jaxs, ours), = pairs_of_configs(mode, [10.0 ** rng.uniform(-3, 2)])
    if seed % 3 == 0 and mode == "mxfp8" and dtype != np.float16:
        changes = {"data_type": ml_dtypes.float8_e5m2, "block_size": 16}
        jaxs, ours = replace(jaxs, **changes), replace(ours, **changes)
    wanted, wanted_scales = [np.asarray(each) for each in theirs.quantize(jax.numpy.asarray(x), jaxs)]
    how, scale = scaled._format(ours)
    found, scales = wrap(lambda x: scaled._quantized(x, how, scale))(cj.numpy.asarray(x))
    assert wanted_scales.dtype == scales.dtype
    assert_array_equal(wanted_scales.view(np.uint8), np.asarray(scales).view(np.uint8))
    if mode == "mxfp8":
        assert wanted.dtype == found.dtype
        assert_array_equal(wanted.view(np.uint8), np.asarray(found).view(np.uint8))
    else:
        assert "float32" == found.dtype
        assert_array_equal(wanted.astype(np.float32), found)


@pytest.fixture(name="products")
def _products(monkeypatch):
    """JAX's products of numbers with scales, on any device."""
    def scaled_matmul(lhs, rhs, lhs_scales, rhs_scales, preferred_element_type=np.float32):
        whole = [data.astype(np.float32) * jax.numpy.repeat(
            scales.astype(np.float32), data.shape[-1] // scales.shape[-1], axis=-1)
            for data, scales in ((lhs, lhs_scales), (rhs, rhs_scales))]
        return jax.numpy.einsum("bmk,bnk->bmn", *whole, precision="highest").astype(preferred_element_type)

    monkeypatch.setattr(theirs, "scaled_matmul_wrapper", scaled_matmul)


#: Shapes and dimension numbers, of which JAX takes sizes only that blocks divide, and pairs of axes in one order.
CALLS = [
    ((32, 64), (64, 96), (((1,), (0,)), ((), ()))),
    ((2, 8, 32, 3, 8), (8, 2, 8, 3, 32), (((1, 4), (0, 2)), ((0, 3), (1, 3)))),
    ((64, 32), (96, 64), (((0,), (1,)), ((), ()))),
    ((2, 32, 64), (2, 32, 64), (((2,), (2,)), ((0,), (0,)))),
    ((64, 2, 32), (32, 64, 2), (((0,), (1,)), ((1,), (2,)))),
    ((2, 4, 8, 32), (4, 2, 8, 3, 32), (((1, 2), (0, 2)), ((0,), (1,)))),
]


# `make parity` compiles quickly, and then JAX rounds a number of float4 in some thousand otherwise.
@pytest.mark.parametrize("mode", ["mxfp8", pytest.param("nvfp4", marks=pytest.mark.exhaustive)])
@pytest.mark.parametrize("preferred", [np.float32, ml_dtypes.bfloat16, np.float16])
@pytest.mark.parametrize("call", sampled(len(CALLS), 2))
def test_parity_of_products_and_their_derivatives(products, call, preferred, mode):
    left, right, numbers = CALLS[call]
    rng, dtype = np.random.default_rng(call), DTYPES[call % 2]
    x, y = [rng.standard_normal(shape).astype(dtype) for shape in (left, right)]
    bar = rng.standard_normal(cj.eval_shape(lambda x, y: cj.lax.dot_general(x, y, numbers), x, y).shape)
    # Powers of two would make exact ties, which JAX breaks by chance: its compiler multiplies by rounded reciprocals.
    pairs = pairs_of_configs(mode, [0.0021, 0.0011, 0.004])

    def run(module, i):
        def call(x, y, bar):
            out, pull = module.vjp(lambda x, y: module.nn.scaled_dot_general(
                x, y, numbers, preferred, [pair[i] for pair in pairs]), x, y)
            return out, *pull(bar)
        return module.jit(call)(x, y, bar.astype(preferred))

    (wanted, *wanted_bars), (found, *found_bars) = run(jax, 0), run(cj, 1)
    assert wanted.dtype == found.dtype == preferred
    assert [dtype, dtype] == [each.dtype for each in found_bars]  # JAX's may have the dtype of the result
    for one, other, near in ((wanted, found, [preferred]), *[
            (one, other, [dtype, preferred]) for one, other in zip(wanted_bars, found_bars, strict=True)]):
        one, other = np.asarray(one, np.float32), np.asarray(other, np.float32)
        eps = max([float(ml_dtypes.finfo(each).eps) for each in near])
        assert_allclose(other, one, rtol=2 * eps, atol=4 * eps * np.abs(one).max())
