"""Softmax and its kin, one_hot and standardize: values, masks, derivatives, infinities."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import corejax as cj
import corejax.numpy as jnp
from corejax import nn
from refusals import assert_refused

INF = np.inf
RNG = np.random.default_rng(0)
X = RNG.standard_normal((3, 4, 5)) * 3
MASK = RNG.random((3, 4, 5)) < 0.6
MASK[..., 0] = MASK[0] = MASK[:, 1] = True


def powers(x, axes, mask):
    kept = np.where(mask, x, -INF)
    return np.exp(kept - kept.max(axes, keepdims=True))


#: In NumPy: of an array, axes and a mask.
EXACT = {
    "softmax": lambda x, axes, mask: powers(x, axes, mask) / powers(x, axes, mask).sum(axes, keepdims=True),
    "log_softmax": lambda x, axes, mask: np.log(powers(x, axes, mask) / powers(x, axes, mask).sum(axes, keepdims=True)),
    "logsumexp": lambda x, axes, mask: np.log(np.exp(np.where(mask, x, -INF)).sum(axes)),
    "logmeanexp": lambda x, axes, mask: np.log(np.exp(np.where(mask, x, -INF)).sum(axes) / mask.sum(axes)),
    "standardize": lambda x, axes, mask: (x - x.mean(axes, keepdims=True, where=mask)) / np.sqrt(
        x.var(axes, keepdims=True, where=mask) + 1e-5),
}
every_function = pytest.mark.parametrize("name", EXACT)


@every_function
@pytest.mark.parametrize("axis", [-1, 0, 1, (0, 2), (1, -1), None])
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("way", ["eager", "compiled", "on a device"])
def test_values_are_those_of_numpy(name, axis, masked, way):
    function = getattr(nn, name)
    mask = MASK if masked else np.ones_like(MASK)
    axes = tuple(range(3)) if axis is None else axis

    def call(x):
        return function(x, axis=axis, where=mask) if masked else function(x, axis=axis)

    x = cj.device_put(X) if way == "on a device" else X
    with np.errstate(divide="ignore"):
        wanted = EXACT[name](X, axes, mask)
    assert_allclose((cj.jit(call) if way == "compiled" else call)(x), wanted, rtol=1e-11, atol=1e-13)


@every_function
@pytest.mark.parametrize("axis", [-1, (0, 1), None])
@pytest.mark.parametrize("masked", [False, True])
def test_derivatives_are_those_of_differences(name, axis, masked):
    function, weights = getattr(nn, name), RNG.standard_normal(X.shape)
    mask = MASK if masked else None

    def total(x):
        out = function(x, axis=axis, where=mask)
        counts = mask if masked and out.shape == X.shape and name == "log_softmax" else True
        return (jnp.where(counts, out, 0) * (weights if out.shape == X.shape else 1.5)).sum()

    found = np.asarray(cj.grad(total)(X)).ravel()
    for i in (0, 7, 31, 59):
        step = np.zeros(X.size)
        step[i] = 1e-6
        step = step.reshape(X.shape)
        assert_allclose(found[i], (float(total(X + step)) - float(total(X - step))) / 2e-6, rtol=2e-7, atol=1e-8)
    assert_allclose(np.asarray(cj.jit(cj.grad(total))(X)).ravel(), found, rtol=1e-9, atol=1e-12)
    assert_allclose(cj.vmap(cj.grad(lambda row: function(row).sum() ** 2))(X[0]).shape, X[0].shape)
    direction = RNG.standard_normal(X.shape)
    second = cj.jvp(cj.grad(total), (X,), (direction,))[1]
    after, before = [np.asarray(cj.grad(total)(X + step * direction)) for step in (1e-6, -1e-6)]
    assert_allclose(second, (after - before) / 2e-6, rtol=1e-5, atol=1e-7)


def test_large_numbers_do_not_overflow():
    x = np.array([1000.0, 1000.0, -1000.0])
    assert_allclose(nn.softmax(x), [0.5, 0.5, 0.0])
    assert_allclose(nn.log_softmax(x), [-np.log(2), -np.log(2), -2000 - np.log(2)])
    assert_allclose(nn.logsumexp(x), 1000 + np.log(2))
    assert_allclose(nn.logmeanexp(x), 1000 + np.log(2 / 3))


# Where JAX has NaN, though the limit is known

@pytest.mark.parametrize("compiled", [False, True])
def test_a_row_that_is_masked_whole_is_zero_with_derivatives_of_zero(compiled):
    mask = np.array([[True, False], [False, False]])
    x = np.array([[1.0, 2.0], [3.0, 4.0]])

    def weighted(x):
        return (nn.softmax(x, where=mask) * np.array([1.0, 2.0])).sum()

    value, slope = (cj.jit(cj.value_and_grad(weighted)) if compiled else cj.value_and_grad(weighted))(x)
    assert 1.0 == value.item()
    assert_array_equal(slope, np.zeros((2, 2)))
    assert_array_equal(nn.softmax(x, where=mask), [[1, 0], [0, 0]])
    assert_array_equal(nn.log_softmax(x, where=mask), [[0, -INF], [-INF, -INF]])
    assert_array_equal(nn.logsumexp(x, axis=1, where=mask), [1.0, -INF])
    grads = cj.grad(lambda x: jnp.where(mask[:, 0], nn.logsumexp(x, axis=1, where=mask), 0).sum())(x)
    assert_array_equal(grads, [[1, 0], [0, 0]])


@pytest.mark.parametrize("compiled", [False, True])
def test_infinities_take_all(compiled):
    wrapped = cj.jit if compiled else lambda function: function
    assert_array_equal(wrapped(nn.softmax)(np.array([INF, 0.0, -INF])), [1, 0, 0])
    assert_array_equal(wrapped(nn.softmax)(np.array([INF, INF])), [0.5, 0.5])
    assert_array_equal(wrapped(nn.softmax)(np.array([0.0, -INF])), [1, 0])
    assert_array_equal(wrapped(nn.log_softmax)(np.array([0.0, -INF])), [0, -INF])
    assert INF == float(wrapped(nn.logsumexp)(np.array([INF, 0.0])))
    assert -INF == float(wrapped(nn.logsumexp)(np.array([-INF, -INF])))
    assert_array_equal(wrapped(cj.grad(nn.logsumexp))(np.array([INF, 0.0])), [1, 0])
    assert_array_equal(wrapped(cj.grad(nn.logsumexp))(np.array([0.0, -INF])), [1, 0])
    assert_array_equal(wrapped(cj.grad(lambda x: nn.softmax(x)[0]))(np.array([INF, 0.0])), [0, 0])
    assert np.isnan(wrapped(nn.softmax)(np.array([np.nan, 0.0]))).all()


# Factors and signs

def test_factors_count_and_have_signs():
    b = RNG.standard_normal(X.shape)
    total = (b * np.exp(X)).sum(1)
    out, sign = nn.logsumexp(X, axis=1, b=b, return_sign=True)
    assert_allclose(out, np.log(np.abs(total)), rtol=1e-9)
    assert_array_equal(sign, np.sign(total))
    plain = nn.logsumexp(X, axis=1, b=b)
    assert_array_equal(np.isnan(plain), total < 0)
    assert (3, 1, 5) == nn.logsumexp(X, axis=1, b=b, keepdims=True).shape
    slope = cj.grad(lambda b: nn.logsumexp(X, b=b, return_sign=True)[0])(np.abs(b))
    assert_allclose(slope, np.exp(X) / (np.abs(b) * np.exp(X)).sum(), rtol=1e-9)


def test_a_factor_of_zero_leaves_an_infinity_out_and_has_a_derivative():
    a, b = np.array([INF, 1.0]), np.array([0.0, 2.0])
    assert_allclose(float(nn.logsumexp(a, b=b)), 1 + np.log(2))
    slope = cj.grad(lambda b: nn.logsumexp(np.array([0.5, 1.0]), b=b))(b)
    assert_allclose(slope, np.exp([0.5, 1.0]) / (2 * np.e))


# Classes

def test_classes_are_rows_of_zeros_and_a_one():
    assert_array_equal(nn.one_hot(np.array([0, 2, -1, 3]), 3), [[1, 0, 0], [0, 0, 1], [0, 0, 0], [0, 0, 0]])
    assert (3, 2) == nn.one_hot(np.array([0, 1]), 3, axis=0).shape
    assert (2, 4, 3) == nn.one_hot(np.zeros((2, 3), int), 4, axis=1).shape
    assert "int8" == str(nn.one_hot(1, 3, dtype="int8").dtype)
    with cj.config(default_bits=32):
        assert "float32" == str(nn.one_hot(np.int32(1), 3).dtype)
    assert_array_equal(cj.jit(nn.one_hot, static_argnums=1)(np.array([1]), 2), [[0, 1]])
    assert (2, 0) == nn.one_hot(np.array([0, 1]), 0).shape


def test_classes_may_be_the_parts_of_an_axis():
    found = cj.vmap(lambda _: nn.one_hot(np.array([0, 2]), 3, axis="i"), axis_name="i", axis_size=3)(np.zeros(3))
    assert_array_equal(found.T, [[1, 0, 0], [0, 0, 1]])


# Means and widths

def test_what_is_standardized_has_mean_zero_and_variance_one():
    for algorithm in ("fast", "stable"):
        out = np.asarray(nn.standardize(X, axis=(0, 2), epsilon=0.0, algorithm=algorithm))
        assert_allclose(out.mean((0, 2)), 0, atol=1e-12)
        assert_allclose(out.var((0, 2)), 1, rtol=1e-9)
    assert_allclose(nn.standardize(X, mean=1.0, variance=4.0, epsilon=0.0), (X - 1) / 2)
    far = 1e8 + np.arange(4.0)
    assert_allclose(nn.standardize(far, epsilon=0.0, algorithm="stable"), (far - far.mean()) / far.std(), rtol=1e-7)


WRONG = {
    "text": (lambda: nn.softmax("a"), TypeError, "isn't an array"),
    "complex numbers": (lambda: nn.softmax(np.ones(2, complex)), TypeError, "takes real numbers"),
    "a mask of numbers": (lambda: nn.softmax(X, where=np.ones(5)), TypeError, "which elements count"),
    "a mask of another shape": (lambda: nn.softmax(X, where=np.ones(4, bool)), ValueError, "doesn't broadcast"),
    "a mask of text": (lambda: nn.log_softmax(X, where="a"), TypeError, "isn't an array"),
    "a missing axis": (lambda: nn.softmax(X, axis=3), ValueError, "out of bounds"),
    "an axis twice": (lambda: nn.logsumexp(X, axis=(0, 0)), ValueError, "axis"),
    "a broken axis": (lambda: nn.log_softmax(X, axis=1.5), TypeError, "integer"),
    "factors of another shape": (lambda: nn.logsumexp(X, b=np.ones(4)), ValueError, "shapes don't fit"),
    "complex factors": (lambda: nn.logsumexp(X, b=np.ones(5, complex)), TypeError, "takes real numbers"),
    "keepdims by text": (lambda: nn.logsumexp(X, keepdims="yes"), TypeError, "keepdims"),
    "a sign by text": (lambda: nn.logsumexp(X, return_sign="yes"), TypeError, "return_sign"),
    "a negative count": (lambda: nn.one_hot(1, -1), ValueError, "can't be negative"),
    "a broken count": (lambda: nn.one_hot(1, 2.5), TypeError, "num_classes"),
    "a traced count": (lambda: cj.jit(nn.one_hot)(1, 3), TypeError, "static"),
    "a missing new axis": (lambda: nn.one_hot(np.array([1]), 3, axis=2), ValueError, "out of bounds"),
    "an unnamed axis": (lambda: nn.one_hot(1, 3, axis="i"), NameError, "no axis is called"),
    "another size of a named axis": (lambda: cj.vmap(lambda _: nn.one_hot(1, 3, axis="i"), axis_name="i")(np.zeros(2)),
                                     ValueError, "a part for each class"),
    "a wrong dtype": (lambda: nn.one_hot(1, 3, dtype="wrong"), TypeError, "dtype"),
    "an unknown algorithm": (lambda: nn.standardize(X, algorithm="quick"), ValueError, "no such algorithm"),
    "a mean of text": (lambda: nn.standardize(X, mean="a"), TypeError, "array"),
    "a mean of another shape": (lambda: nn.standardize(X, mean=np.ones(4)), TypeError, "shapes don't fit"),
}


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("name", ["softmax", "log_softmax", "logsumexp", "logmeanexp", "standardize"])
def test_infinities_and_overflow_warn_of_nothing(name):
    with np.errstate(all="warn"):
        for x in ([INF, 1.0], [INF, INF], [-INF, -INF], [np.nan, 1.0], [1e308, 1e308, -1e308], [0.0, -1e4]):
            for _ in range(2):  # as the decorated function, then as NumPy's
                getattr(nn, name)(np.array(x))
            getattr(nn, name)(x)


@pytest.mark.parametrize("case", WRONG)
def test_wrong_uses_are_told(case):
    assert_refused(*WRONG[case])
