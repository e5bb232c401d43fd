"""Activations: values beside exact ones, derivatives beside differences, and both at infinities and kinks."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import corejax as cj
from corejax import nn
from refusals import assert_refused

INF = np.inf


def clip(x, low, high):
    return min(max(x, low), high)


def softplus(x):
    return mpmath.log1p(mpmath.exp(x))


def logistic(x):
    return 1 / (1 + mpmath.exp(-x))


#: The functions of one number, exactly.
EXACT = {
    "relu": lambda x: max(x, 0), "relu6": lambda x: clip(x, 0, 6), "hard_tanh": lambda x: clip(x, -1, 1),
    "leaky_relu": lambda x: x if x >= 0 else x * mpmath.mpf(0.01), "identity": lambda x: x,
    "hard_sigmoid": lambda x: mpmath.mpf(clip(x + 3, 0, 6)) / 6, "hard_silu": lambda x: x * clip(x + 3, 0, 6) / 6,
    "sparse_sigmoid": lambda x: mpmath.mpf(clip(x + 1, 0, 2)) / 2, "sigmoid": logistic, "tanh": mpmath.tanh,
    "silu": lambda x: x * logistic(x), "mish": lambda x: x * mpmath.tanh(softplus(x)), "softplus": softplus,
    "log_sigmoid": lambda x: -softplus(-x),
    "sparse_plus": lambda x: x if x >= 1 else (clip(x, -1, 1) + 1) ** 2 / 4, "soft_sign": lambda x: x / (1 + abs(x)),
    "squareplus": lambda x: (x + mpmath.sqrt(x * x + 4)) / 2, "elu": lambda x: x if x > 0 else mpmath.expm1(x),
    "celu": lambda x: x if x > 0 else mpmath.expm1(x),
    "selu": lambda x: mpmath.mpf(1.0507009873554805) * (x if x > 0 else mpmath.mpf(1.6732632423543772) *
                                                        mpmath.expm1(x)),
    "gelu": lambda x: x * (1 + mpmath.tanh(mpmath.sqrt(2 / mpmath.pi) * (x + mpmath.mpf(0.044715) * x ** 3))) / 2}

#: Where each has no derivative.
KINKS = {"relu": (0,), "relu6": (0, 6), "hard_tanh": (-1, 1), "leaky_relu": (0,), "hard_sigmoid": (-3, 3),
         "hard_silu": (-3, 3), "sparse_sigmoid": (-1, 1), "selu": (0,), "sparse_plus": (-1, 1),
         # of the second derivative
         "elu": (0,), "celu": (0,), "soft_sign": (0,)}

every_function = pytest.mark.parametrize("name", EXACT)
POINTS = np.concatenate([np.linspace(-9.0, 9.0, 37), [-30.0, 30.0, 1e-8, -1e-8]])


@every_function
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("way", ["eager", "compiled", "mapped"])
def test_values_are_exact_but_for_rounding(name, dtype, way):
    function = getattr(nn, name)
    call = {"eager": function, "compiled": cj.jit(function), "mapped": cj.vmap(function)}[way]
    x = POINTS.astype(dtype)
    found = np.asarray(call(x))
    assert found.dtype == dtype
    with mpmath.workdps(50):
        wanted = np.array([float(EXACT[name](mpmath.mpf(float(value)))) for value in x])
    unit = np.finfo(dtype).eps
    # gelu and mish are products with 1 + tanh(...), which cancels for negative numbers, as in their definition.
    slack = 60 * unit * np.maximum(np.abs(wanted), np.abs(x) * unit * 4) + (
        4 * unit * np.abs(x) if name in ("gelu", "mish", "squareplus") else 0)
    assert (np.abs(found - wanted) <= slack + np.finfo(dtype).tiny).all(), (found - wanted)[
        np.abs(found - wanted) > slack]


@every_function
def test_derivatives_are_those_of_differences(name):
    function = getattr(nn, name)
    x = POINTS[[min([abs(p - kink) for kink in KINKS.get(name, (99,))]) > 1e-3 for p in POINTS]]
    found = cj.vmap(cj.grad(function))(x)
    with mpmath.workdps(60):
        wanted = [float(mpmath.diff(EXACT[name], mpmath.mpf(float(value)))) for value in x]
    assert_allclose(found, wanted, rtol=1e-9, atol=1e-11)
    assert_allclose(cj.jit(cj.vmap(cj.grad(function)))(x), found, rtol=1e-12, atol=1e-13)
    second = cj.vmap(cj.grad(cj.grad(function)))(x)
    with mpmath.workdps(60):
        wanted = [float(mpmath.diff(EXACT[name], mpmath.mpf(float(value)), 2)) for value in x]
    assert_allclose(second, wanted, rtol=1e-7, atol=1e-8)


#: By function: values and derivatives at -infinity, infinity, and other points.
EDGES = {
    "relu": {-INF: (0, 0), INF: (INF, 1), 0.0: (0, 0)}, "relu6": {-INF: (0, 0), INF: (6, 0), 0.0: (0, 0), 6.0: (6, 0)},
    "hard_tanh": {-INF: (-1, 0), INF: (1, 0), 1.0: (1, 1), -1.0: (-1, 1)},
    "hard_sigmoid": {-INF: (0, 0), INF: (1, 0), 3.0: (1, 0)}, "hard_silu": {-INF: (0, 0), INF: (INF, 1)},
    "sparse_sigmoid": {-INF: (0, 0), INF: (1, 0)}, "sigmoid": {-INF: (0, 0), INF: (1, 0)},
    "silu": {-INF: (0, 0), INF: (INF, 1)}, "mish": {-INF: (0, 0), INF: (INF, 1)},
    "softplus": {-INF: (0, 0), INF: (INF, 1), 800.0: (800, 1)}, "log_sigmoid": {-INF: (-INF, 1), INF: (0, 0)},
    "sparse_plus": {-INF: (0, 0), INF: (INF, 1), 1.0: (1, 1)}, "soft_sign": {-INF: (-1, 0), INF: (1, 0)},
    "elu": {-INF: (-1, 0), INF: (INF, 1), 0.0: (0, 1)}, "celu": {-INF: (-1, 0), INF: (INF, 1), 0.0: (0, 1)},
    "selu": {-INF: (-1.7580993408473766, 0), INF: (INF, 1.0507009873554805)},
    "gelu": {-INF: (0, 0), INF: (INF, 1), 1e200: (1e200, 1), -1e200: (0, 0)},
    "tanh": {-INF: (-1, 0), INF: (1, 0)}, "leaky_relu": {-INF: (-INF, 0.01), INF: (INF, 1), 0.0: (0, 1)},
}


@pytest.mark.parametrize("name, x", [(name, x) for name, points in EDGES.items() for x in points])
@pytest.mark.parametrize("compiled", [False, True])
def test_limits_are_reached_with_their_derivatives(name, x, compiled):
    function = getattr(nn, name)
    value, slope = (cj.jit(cj.value_and_grad(function)) if compiled else cj.value_and_grad(function))(x)
    assert EDGES[name][x] == (pytest.approx(float(value), rel=1e-14), pytest.approx(float(slope), rel=1e-14))
    assert_array_equal(np.isnan(function(np.array([np.nan, x]))), [True, False])


def test_the_exact_gelu_is_x_times_the_share_below():
    with mpmath.workdps(40):
        wanted = [float(x * mpmath.ncdf(x)) for x in POINTS]
        slopes = [float(mpmath.ncdf(x) + x * mpmath.npdf(x)) for x in POINTS]
    assert_allclose(nn.gelu(POINTS, approximate=False), wanted, rtol=1e-13, atol=1e-300)
    assert_allclose(cj.vmap(cj.grad(lambda x: nn.gelu(x, approximate=False)))(POINTS), slopes, rtol=1e-12)
    ends = cj.vmap(cj.value_and_grad(lambda x: nn.gelu(x, approximate=False)))(np.array([-INF, INF]))
    assert_array_equal(np.asarray(ends), [[0.0, INF], [0.0, 1.0]])


def test_log1mexp_is_exact_near_both_ends():
    x = np.array([1e-300, 1e-10, 0.5, 0.69, 0.7, 5.0, 600.0])
    with mpmath.workdps(400):
        wanted = [float(mpmath.log(1 - mpmath.exp(-mpmath.mpf(value)))) for value in x]
    assert_allclose(nn.log1mexp(x), wanted, rtol=1e-15)
    assert_allclose(cj.jit(nn.log1mexp)(x), wanted, rtol=1e-15)
    assert_allclose(cj.vmap(cj.grad(nn.log1mexp))(x), 1 / np.expm1(x), rtol=1e-14)


def test_params_may_be_arrays_and_have_derivatives():
    x, alpha = np.array([-1.0, 2.0, -3.0]), np.array([0.5, 1.0, 2.0])
    assert_allclose(nn.elu(x, alpha), np.where(x > 0, x, alpha * np.expm1(x)))
    assert_allclose(nn.celu(x, alpha), np.where(x > 0, x, alpha * np.expm1(x / alpha)))
    assert_allclose(nn.leaky_relu(x, alpha), np.where(x > 0, x, alpha * x))
    assert_allclose(nn.squareplus(x, alpha), (x + np.sqrt(x ** 2 + alpha)) / 2)
    assert_allclose(cj.grad(lambda alpha: nn.elu(x, alpha).sum())(alpha), [np.expm1(-1.0), 0.0, np.expm1(-3.0)])
    assert_allclose(cj.jit(nn.elu)(x, 0.5), nn.elu(x, 0.5))


def test_glu_gates_one_half_by_the_other():
    x = np.arange(12.0).reshape(2, 6) - 5
    assert_allclose(nn.glu(x), x[:, :3] / (1 + np.exp(-x[:, 3:])))
    assert_allclose(nn.glu(x, axis=0), x[:1] / (1 + np.exp(-x[1:])))


@every_function
def test_integers_and_numbers_are_taken(name):
    function = getattr(nn, name)
    assert_allclose(function(np.arange(1, 4)), function(np.arange(1.0, 4.0)))
    assert_allclose(float(function(2)), float(function(2.0)))
    assert_allclose(function([1.0, -2.0]), function(np.array([1.0, -2.0])))
    assert (0, 3) == function(np.zeros((0, 3))).shape


@every_function
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_narrow_dtypes_are_within_their_rounding(name, dtype):
    x = POINTS.astype(cj.dtypes.bfloat16 if dtype == "bfloat16" else dtype)
    found = getattr(nn, name)(x)
    assert dtype == str(found.dtype)
    wanted = np.asarray(getattr(nn, name)(x.astype("float32")))
    unit = 2.0 ** (-7 if dtype == "bfloat16" else -10)
    assert (np.abs(np.asarray(found).astype("float32") - wanted) <= 8 * unit * np.maximum(np.abs(wanted), np.minimum(
        np.abs(x.astype("float32")), 1) * (name in ("gelu", "mish", "squareplus", "selu", "elu", "celu", "silu")))
            + 1e-4).all()


WRONG = {
    "text": (lambda: nn.relu("a"), TypeError, "isn't an array of numbers"),
    "an object": (lambda: nn.silu(object()), TypeError, "isn't an array of numbers"),
    "nothing": (lambda: nn.gelu(None), TypeError, "isn't an array of numbers"),
    "complex relu": (lambda: nn.relu(1j), TypeError, "takes real numbers"),
    "complex gelu": (lambda: nn.gelu(np.ones(2, complex)), TypeError, "takes real numbers"),
    "complex selu": (lambda: nn.selu(np.ones(2, complex)), TypeError, "takes real numbers"),
    "complex hard_tanh": (lambda: nn.hard_tanh(np.ones(2, complex)), TypeError, "takes real numbers"),
    "complex elu": (lambda: nn.elu(np.ones(2, complex)), TypeError, "takes real numbers"),
    "a key": (lambda: nn.relu(cj.random.key(0)), TypeError, "takes real numbers"),
    "no flag": (lambda: nn.gelu(1.0, approximate="tanh"), TypeError, "approximate"),
    "an odd axis": (lambda: nn.glu(np.ones(3)), ValueError, "two halves"),
    "a missing axis": (lambda: nn.glu(np.ones((2, 2)), axis=2), ValueError, "out of bounds"),
    "no axes": (lambda: nn.glu(1.0), ValueError, "out of bounds"),
    "an axis that isn't an integer": (lambda: nn.glu(np.ones(2), axis=0.5), TypeError, "integer"),
    "shapes that don't fit": (lambda: nn.elu(np.ones(3), np.ones(2)), TypeError, "shapes don't fit"),
    "a slope of text": (lambda: nn.leaky_relu(np.ones(3), "a"), TypeError, "isn't an array of numbers"),
    "a missing name": (lambda: nn.reluu, AttributeError, "did you mean relu"),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_uses_are_told(case):
    assert_refused(*WRONG[case])
