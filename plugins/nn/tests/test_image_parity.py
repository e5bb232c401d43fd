"""`corejax.image` beside jax.image: values and derivatives, of every method and of random calls."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import corejax as cj
from corejax import image

jax = pytest.importorskip("jax")
jax.config.update("jax_enable_x64", True)
jax_image = pytest.importorskip("jax.image")

FILTERS = ["linear", "cubic", "cubic-pytorch", "lanczos3", "lanczos5", "area"]
DTYPES = ["float64", "float32", "float16", "bfloat16", "int32", "uint8", "complex64", "complex128"]
CALLS = [pytest.param(seed, marks=() if seed < 4 else pytest.mark.exhaustive) for seed in range(200)]


def drawn(rng, dtype, shape):
    x = 10 * rng.standard_normal(shape)
    x = x + 1j * rng.standard_normal(shape) if dtype.startswith("complex") else x
    return (abs(x) if dtype == "uint8" else x).astype(np.dtype(getattr(jax.numpy, dtype)))


def for_jax(x):
    """corejax.nn makes the default dtype of any integers; JAX only of those of 64 bits, of others float32."""
    return x.astype("int64") if x.dtype in ("int32", "uint8") else x


def assert_alike(found, wanted):
    """Along each axis products with weights are rounded and added, in any order of axes."""
    assert (wanted.shape, wanted.dtype) == (found.shape, found.dtype)
    eps = float(jax.numpy.finfo(wanted.dtype).eps)
    found, wanted = [np.asarray(x, None if eps < 1e-4 else "f4") for x in (found, wanted)]
    assert_allclose(found, wanted, rtol=0, atol=20 * max(eps, 1e-14) * (1 + np.abs(wanted).max(initial=0)))


@pytest.mark.sample(8)
@pytest.mark.parametrize("method", ["nearest", *FILTERS])
@pytest.mark.parametrize("antialias", [True, False])
def test_parity_of_every_method(method, antialias):
    rng = np.random.default_rng(0)
    for old, new in (((6,), (3,)), ((6,), (13,)), ((5, 7, 3), (10, 4, 3)), ((1, 5), (3, 2))):
        x = rng.standard_normal(old)
        assert_alike(image.resize(x, new, method, antialias), jax_image.resize(x, new, method, antialias))
    x, numbers = rng.standard_normal((6, 5)), (np.array([1.5]), np.array([-1.03]))
    if method != "nearest":
        assert_alike(*[module.scale_and_translate(x, (7, 5), (0,), *numbers, method, antialias)
                       for module in (image, jax_image)])


@pytest.mark.parametrize("seed", CALLS)
def test_parity_of_resize(seed):
    rng = np.random.default_rng(seed)
    method, dtype, antialias = ["nearest", *FILTERS][seed % 7], DTYPES[seed // 7 % len(DTYPES)], bool(seed % 2)
    ndim = int(rng.integers(1, 4))
    largest = [400, 30, 8][ndim - 1]
    old = rng.integers(1, largest, ndim)
    new = np.where(rng.random(ndim) < 0.2, old, rng.integers(0 if rng.random() < 0.1 else 1, largest, ndim))
    x, new = drawn(rng, dtype, old), tuple(new.tolist())
    wanted = jax_image.resize(x if method == "nearest" else for_jax(x), new, method, antialias)
    for function in (image.resize, cj.jit(image.resize, static_argnums=(1, 2, 3))):
        found = function(x, new, method, antialias)
        if method == "nearest":
            assert_array_equal(np.asarray(found), wanted)
            assert wanted.dtype == found.dtype
        else:
            assert_alike(found, wanted)
    if dtype in ("float64", "float32"):
        weights = rng.standard_normal(new).astype(dtype)
        assert_alike(cj.grad(lambda x: (weights * image.resize(x, new, method, antialias)).sum())(x),
                     jax.jit(jax.grad(lambda x: (weights * jax_image.resize(x, new, method, antialias)).sum()))(x))
        both = np.stack([x, 2 * x])
        assert_alike(cj.vmap(lambda x: image.resize(x, new, method, antialias))(both),
                     jax.vmap(lambda x: jax_image.resize(x, new, method, antialias))(both))


@pytest.mark.parametrize("seed", CALLS)
def test_parity_of_scale_and_translate(seed):
    rng = np.random.default_rng(seed)
    method, dtype, antialias = FILTERS[seed % 6], DTYPES[seed // 6 % len(DTYPES)], bool(seed // 2 % 2)
    ndim = int(rng.integers(1, 4))
    largest = [60, 20, 8][ndim - 1]
    x, new = drawn(rng, dtype, rng.integers(1, largest, ndim)), tuple(rng.integers(1, largest, ndim).tolist())
    axes = tuple(rng.permutation(ndim)[:rng.integers(1, ndim + 1)].tolist())
    new = tuple(size if i in axes else x.shape[i] for i, size in enumerate(new))
    axes = tuple(axis - ndim * int(rng.integers(0, 2)) for axis in axes)
    scale, translation = np.exp(0.7 * rng.standard_normal(len(axes))), 2 * rng.standard_normal(len(axes))
    if seed % 5 == 0:
        scale, translation = rng.choice([0.5, 1.0, 2.0], len(axes)), np.rint(translation)
    options = method, antialias

    def of(module):
        return lambda x, *numbers: module.scale_and_translate(x, new, axes, *numbers, *options)

    wanted = jax.jit(of(jax_image))(for_jax(x), scale, translation)
    for function in (of(image), cj.jit(of(image))):
        assert_alike(function(x, scale, translation), wanted)
    if dtype not in ("float64", "float32", "int32"):
        return
    weights = rng.standard_normal(new)

    def total(module):
        return lambda *args: (weights * of(module)(*args)).sum()

    which = (1, 2) if dtype == "int32" else (0, 1, 2)
    slopes = [module.jit(module.grad(total(images), which))(for_jax(x), scale, translation)
              for module, images in ((cj, image), (jax, jax_image))]
    for found, wanted in zip(*slopes, strict=True):
        assert wanted.dtype == found.dtype
        tolerance = 1e-9 if dtype != "float32" else 1e-4  # sums of as many products, of slopes of up to 10
        assert_allclose(found, wanted, rtol=tolerance, atol=tolerance * (1 + np.abs(wanted).max(initial=0)))
