"""Beside jax.nn: names, signatures, values, derivatives, and the numbers that initializers draw."""

from __future__ import annotations

import inspect

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import corejax as cj
from attention_cases import drawn
from corejax import nn, random
from corejax.nn import initializers

jax = pytest.importorskip("jax")
jax.config.update("jax_enable_x64", True)

ELEMENTWISE = ["celu", "elu", "gelu", "hard_sigmoid", "hard_silu", "hard_swish", "hard_tanh", "identity", "leaky_relu",
               "log1mexp", "log_sigmoid", "mish", "relu", "relu6", "selu", "sigmoid", "silu", "soft_sign", "softplus",
               "sparse_plus", "sparse_sigmoid", "squareplus", "swish", "tanh"]
MAKERS = ["uniform", "normal", "truncated_normal", "orthogonal", "glorot_uniform", "glorot_normal", "lecun_uniform",
          "lecun_normal", "he_uniform", "he_normal"]


def test_parity_names_and_signatures_are_jax_s():
    pairs = [(jax.nn, nn), (jax.nn.initializers, initializers)]
    for theirs, ours in pairs:
        names = {name for name in dir(theirs) if not name.startswith("_")}
        assert set() == {name for name in names if not hasattr(ours, name)}
        for name in names - {"Initializer", "initializers"}:
            wanted, found = [inspect.signature(getattr(module, name)) for module in (theirs, ours)]
            described = [[(p.name, p.default) for p in each.parameters.values()] for each in (wanted, found)]
            assert described[0] == described[1], name


def draw(seed, dtype):
    rng = np.random.default_rng(seed)
    shape = tuple(rng.integers(0, 5, rng.integers(0, 3)))
    return np.asarray(rng.standard_normal(shape) * 10.0 ** rng.integers(-3, 2), dtype)


CALLS = [pytest.param(seed, marks=() if seed < 4 else pytest.mark.exhaustive) for seed in range(200)]


@pytest.mark.sample(2 * len(ELEMENTWISE))
@pytest.mark.parametrize("seed", CALLS)
@pytest.mark.parametrize("name", ELEMENTWISE)
def test_parity_values_and_slopes(name, seed):
    dtype = ("float64", "float32")[seed % 2]
    x = draw(seed, dtype)
    x = np.abs(x) + x.dtype.type(0.01) if name == "log1mexp" else x
    ours, theirs = getattr(nn, name), getattr(jax.nn, name)
    rtol = 1e-11 if dtype == "float64" else 2e-5
    # Where 1 + tanh or sums cancel, both have errors of the size of those of x.
    atol = (1e-13 if dtype == "float64" else 1e-6) * (1 + np.abs(x).max(initial=0))
    assert_allclose(ours(x), theirs(x), rtol=rtol, atol=atol)
    assert_allclose(cj.jit(ours)(x), theirs(x), rtol=rtol, atol=atol)
    slopes = cj.grad(lambda x: ours(x).sum())(x), jax.grad(lambda x: theirs(x).sum())(x)
    assert_allclose(*slopes, rtol=10 * rtol, atol=10 * atol)
    assert slopes[0].dtype == slopes[1].dtype


@pytest.mark.sample(10)
@pytest.mark.parametrize("seed", CALLS)
@pytest.mark.parametrize("name", ["softmax", "log_softmax", "logsumexp", "logmeanexp", "standardize"])
def test_parity_along_axes(name, seed):
    rng = np.random.default_rng(seed)
    x = 3 * rng.standard_normal((3, 4, 2))
    axis = [-1, 0, 1, (0, 1), (2, 0), None][seed % 6]
    mask = None if seed % 3 else rng.random(x.shape) < 0.7
    if mask is not None:
        mask[0, 0] = mask[:, :, 0] = mask[:, 0] = mask[0] = True  # JAX has NaN for what is masked whole
    options = {"axis": axis, "where": mask}
    ours, theirs = getattr(nn, name)(x, **options), getattr(jax.nn, name)(x, **options)
    rtol = 1e-8 if name == "standardize" else 1e-11  # the mean of squares less the square of the mean cancels
    assert_allclose(ours, theirs, rtol=rtol, atol=1e-13)
    weights = np.where(np.isfinite(theirs), rng.standard_normal(np.shape(theirs)), 0)

    def total(module, where):
        return lambda x: (where(weights != 0, module(x, **options), 0) * weights).sum()

    slopes = (cj.grad(total(getattr(nn, name), cj.numpy.where))(x),
              jax.grad(total(getattr(jax.nn, name), jax.numpy.where))(x))
    assert_allclose(*slopes, rtol=100 * rtol, atol=100 * rtol)


def test_parity_of_what_has_options():
    x = np.random.default_rng(0).standard_normal((4, 6))
    for axis in (0, 1, -1):
        assert_allclose(nn.glu(x, axis), jax.nn.glu(x, axis), rtol=1e-13)
    assert_allclose(nn.gelu(x, approximate=False), jax.nn.gelu(x, approximate=False), rtol=1e-12)
    for options in ({"dtype": "int32"}, {"axis": 0, "dtype": "float32"}, {"axis": 1, "dtype": "float64"}):
        classes = np.array([[0, 3, -1], [2, 1, 9]])
        wanted = jax.nn.one_hot(classes, 4, **options)
        assert_array_equal(nn.one_hot(classes, 4, **options), wanted)
    b = np.random.default_rng(1).standard_normal((4, 6))
    for options in ({"b": b, "return_sign": True}, {"b": b, "axis": 1}, {"b": abs(b), "keepdims": True, "axis": 0}):
        for found, wanted in zip(cj.tree.leaves(nn.logsumexp(x, **options)),
                                 jax.tree.leaves(jax.nn.logsumexp(x, **options)), strict=True):
            assert_allclose(found, wanted, rtol=1e-12)
    for options in ({"algorithm": "stable"}, {"mean": 1.0}, {"variance": np.ones((4, 1)), "epsilon": 0.1}):
        assert_allclose(nn.standardize(x, **options), jax.nn.standardize(x, **options), rtol=1e-12)


@pytest.mark.sample(24)
@pytest.mark.parametrize("dtype", ["float64", "float32", "complex128"])
@pytest.mark.parametrize("shape", [(5, 7), (7, 5), (3, 4, 2)])
@pytest.mark.parametrize("name", MAKERS)
def test_parity_initializers_draw_jax_s_numbers(name, shape, dtype):
    if dtype == "complex128" and name in ("uniform", "truncated_normal"):
        pytest.skip("real numbers only")
    wanted = getattr(jax.nn.initializers, name)()(jax.random.key(3), shape, dtype)
    found = getattr(initializers, name)()(random.key(3), shape, dtype)
    rtol, atol = (1e-5, 1e-6) if dtype == "float32" else (1e-10, 1e-12)
    assert_allclose(found, wanted, rtol=rtol, atol=atol)
    assert found.dtype == wanted.dtype


@pytest.mark.parametrize("mode", ["fan_in", "fan_out", "fan_avg", "fan_geo_avg"])
@pytest.mark.parametrize("distribution", ["normal", "uniform", "truncated_normal"])
def test_parity_of_scaling(mode, distribution):
    options = {"in_axis": (0, 1), "out_axis": 3, "batch_axis": 2}
    found, wanted = [module.variance_scaling(2.0, mode, distribution, **options)(key, (2, 3, 4, 5), "float64")
                     for module, key in ((initializers, random.key(1)), (jax.nn.initializers, jax.random.key(1)))]
    assert_allclose(found, wanted, rtol=1e-11)
    for shape in ((3, 4, 5), (2, 3, 4, 4), (2, 1, 3, 2, 3)):
        found, wanted = [module.delta_orthogonal()(key, shape) for module, key in (
            (initializers, random.key(1)), (jax.nn.initializers, jax.random.key(1)))]
        assert_allclose(found, wanted, atol=1e-12)


@pytest.mark.parametrize("seed", CALLS)
def test_parity_attention(seed):
    arrays, options, weights = drawn(seed, every_row_counts=True)  # JAX has the mean of all values for other rows
    every = tuple(range(len(arrays)))

    def found(module):
        def loss(*xs):
            out = module.nn.dot_product_attention(*xs, **options)
            return (out * weights).sum(), out
        slopes, out = module.jit(module.grad(loss, every, has_aux=True))(*arrays)
        return [out, *slopes]

    for x, y in zip(found(cj), found(jax), strict=True):
        assert x.dtype == y.dtype
        assert_allclose(x, y, rtol=1e-5, atol=1e-5)  # its softmax is in float32, also of doubles
