"""Initializers: shapes, dtypes, variances, orthogonality."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import corejax as cj
from corejax import random
from corejax.nn import initializers
from refusals import assert_refused

KEY = random.key(0)
SCALING = {"glorot": ("fan_avg", 1.0), "xavier": ("fan_avg", 1.0), "lecun": ("fan_in", 1.0), "he": ("fan_in", 2.0),
           "kaiming": ("fan_in", 2.0)}
MAKERS = ["uniform", "normal", "truncated_normal", "orthogonal", "glorot_uniform", "glorot_normal", "lecun_uniform",
          "lecun_normal", "he_uniform", "he_normal", "xavier_uniform", "xavier_normal", "kaiming_uniform",
          "kaiming_normal"]


@pytest.mark.parametrize("name", MAKERS)
@pytest.mark.parametrize("dtype", [None, "float32", "float64", "bfloat16"])
def test_shapes_and_dtypes_are_those_asked_for(name, dtype):
    if name == "orthogonal" and dtype == "bfloat16":
        pytest.skip("there is no factorization in bfloat16")
    made = getattr(initializers, name)()(KEY, (6, 4), dtype)
    assert ((6, 4), dtype or "float64") == (made.shape, str(made.dtype))
    assert_array_equal(made, getattr(initializers, name)(dtype=dtype)(KEY, (6, 4)))
    compiled = cj.jit(lambda key: getattr(initializers, name)()(key, (6, 4), dtype))(KEY)
    rtol = 2e-2 if dtype == "bfloat16" else 1e-5
    assert_allclose(np.asarray(compiled).astype(float), np.asarray(made).astype(float), rtol=rtol, atol=1e-5)
    assert isinstance(getattr(initializers, name)(), initializers.Initializer)


@pytest.mark.parametrize("family", SCALING)
@pytest.mark.parametrize("kind", ["uniform", "normal"])
def test_variances_are_scaled_by_connections(family, kind):
    mode, scale = SCALING[family]
    made = np.asarray(getattr(initializers, f"{family}_{kind}")()(KEY, (300, 500)))
    fan = {"fan_in": 300, "fan_avg": 400}[mode]
    assert_allclose(made.var(), scale / fan, rtol=0.02)
    assert_allclose(made.mean(), 0, atol=4 * made.std() / np.sqrt(made.size))


@pytest.mark.parametrize("mode, fan", [("fan_in", 3 * 5 * 40), ("fan_out", 3 * 5 * 60), ("fan_avg", 3 * 5 * 50),
                                       ("fan_geo_avg", 15 * np.sqrt(40 * 60))])
def test_fields_of_convolutions_count(mode, fan):
    made = np.asarray(initializers.variance_scaling(2.0, mode, "normal")(KEY, (3, 5, 40, 60)))
    assert_allclose(made.var(), 2.0 / fan, rtol=0.03)
    moved = initializers.variance_scaling(2.0, mode, "normal", in_axis=0, out_axis=1)(KEY, (40, 60, 3, 5))
    assert_allclose(np.asarray(moved).var(), 2.0 / fan, rtol=0.03)


@pytest.mark.parametrize("kind", ["normal", "uniform", "truncated_normal"])
def test_complex_weights_have_the_variance_too(kind):
    made = np.asarray(initializers.variance_scaling(1.0, "fan_in", kind)(KEY, (400, 500), "complex128"))
    # JAX divides truncated ones by 0.953, of which the exact value is 0.962, so their variance is 2% too large.
    assert_allclose((np.abs(made) ** 2).mean(), 1 / 400, rtol=0.03 if kind == "truncated_normal" else 0.01)


@pytest.mark.parametrize("shape", [(5, 5), (3, 7), (7, 3), (2, 3, 4)])
@pytest.mark.parametrize("column_axis", [-1, 0])
def test_orthogonal_matrices_are(shape, column_axis):
    made = np.moveaxis(np.asarray(initializers.orthogonal(2.0, column_axis)(KEY, shape)), column_axis, -1)
    flat = made.reshape(-1, made.shape[-1])
    small = flat.T @ flat if flat.shape[0] >= flat.shape[1] else flat @ flat.T
    assert_allclose(small, 4 * np.eye(len(small)), atol=1e-12)


def test_kernels_are_orthogonal_in_the_middle():
    made = np.asarray(initializers.delta_orthogonal()(KEY, (3, 5, 2, 4)))
    assert_allclose(made[1, 2] @ made[1, 2].T, np.eye(2), atol=1e-12)
    assert 0 == np.abs(made).sum() - np.abs(made[1, 2]).sum()


def test_constants_need_no_key():
    assert_array_equal(initializers.zeros(None, (2,)), [0, 0])
    assert_array_equal(initializers.ones(None, (2,), "int32"), [1, 1])
    assert_array_equal(initializers.constant(np.arange(3))(None, (2, 3), "int32"), [[0, 1, 2]] * 2)
    with cj.config(default_bits=32):
        assert "float32" == str(initializers.zeros(None, ()).dtype)


def test_bounds_are_kept():
    assert (np.abs(initializers.truncated_normal(3.0)(KEY, (1000,))) <= 6).all()
    drawn = np.asarray(initializers.uniform(5.0)(KEY, (1000,)))
    assert drawn.min() >= 0 and 4.5 < drawn.max() < 5


WRONG = {
    "an unknown mode": (lambda: initializers.variance_scaling(1.0, "fan", "normal"), ValueError, "no such mode"),
    "an unknown distribution": (lambda: initializers.variance_scaling(1.0, "fan_in", "cauchy"), ValueError,
                                "no such distribution"),
    "one axis": (lambda: initializers.he_normal()(KEY, (3,)), ValueError, "an axis of inputs"),
    "no axes": (lambda: initializers.orthogonal()(KEY, ()), ValueError, "a matrix has two axes"),
    "an axis of inputs that isn't there": (lambda: initializers.he_normal(in_axis=5)(KEY, (3, 4)), ValueError,
                                           "out of bounds"),
    "a negative size": (lambda: initializers.normal()(KEY, (-1,)), ValueError, "can't be negative"),
    "a broken size": (lambda: initializers.normal()(KEY, (1.5,)), TypeError, "shape"),
    "no key": (lambda: initializers.normal()(None, (2,)), TypeError, "must be a key"),
    "a number as key": (lambda: initializers.uniform()(3, (2,)), TypeError, "must be a key"),
    "integers drawn": (lambda: initializers.normal()(KEY, (2,), "int32"), ValueError, "can't be drawn"),
    "an unknown dtype": (lambda: initializers.zeros(KEY, (2,), "wrong"), TypeError, "dtype"),
    "kernels of matrices": (lambda: initializers.delta_orthogonal()(KEY, (3, 4)), ValueError, "one to three axes"),
    "fewer outputs": (lambda: initializers.delta_orthogonal()(KEY, (3, 4, 2)), ValueError, "as many outputs"),
    "a constant of another shape": (lambda: initializers.constant(np.ones(3))(KEY, (2,)), ValueError, "shape"),
    "several keys": (lambda: initializers.normal()(random.split(KEY), (2,)), ValueError, "takes one key"),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_uses_are_told(case):
    assert_refused(*WRONG[case])
