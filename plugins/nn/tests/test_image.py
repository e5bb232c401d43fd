"""`corejax.image`: what filters must keep, derivatives, and JAX's numbers."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import corejax as cj
from corejax import image
from corejax.image import ResizeMethod
from refusals import assert_refused

FILTERS = ["linear", "cubic", "cubic-pytorch", "lanczos3", "lanczos5", "area"]
every_filter = pytest.mark.parametrize("method", FILTERS)
RNG = np.random.default_rng(0)


@every_filter
@pytest.mark.parametrize("antialias", [True, False])
@pytest.mark.parametrize("size", [1, 3, 7, 20])
def test_constants_stay_and_results_are_linear(method, antialias, size):
    assert_allclose(image.resize(np.full(7, 3.0), (size,), method, antialias), 3.0, rtol=1e-12)
    x, y = RNG.standard_normal((2, 7))
    parts = [image.resize(each, (size,), method, antialias) for each in (x, y, 2 * x - y)]
    assert_allclose(parts[2], 2 * parts[0] - parts[1], rtol=1e-9, atol=1e-12)
    assert_allclose(parts[0][::-1], image.resize(x[::-1].copy(), (size,), method, antialias), rtol=1e-9, atol=1e-12)


def test_known_results():
    assert_allclose(image.resize(np.array([1.0, 3.0]), (4,), "linear"), [1, 1.5, 2.5, 3])
    blocks = RNG.standard_normal((6, 8))
    assert_allclose(image.resize(blocks, (3, 2), "area"), blocks.reshape(3, 2, 2, 4).mean((1, 3)))
    assert_array_equal(image.resize(np.arange(6), (3,), "nearest"), [1, 3, 5])
    assert_array_equal(image.resize(np.array([[1, 2]]), (2, 4), "nearest"), [[1, 1, 2, 2]] * 2)
    ramp = np.arange(10.0)
    assert_allclose(np.diff(image.resize(ramp, (30,), "cubic"))[6:-6], 1 / 3, rtol=1e-9)


@every_filter
def test_axes_are_resized_one_by_one(method):
    x = RNG.standard_normal((2, 5, 6, 3))
    both = image.resize(x, (2, 8, 4, 3), method)
    assert_allclose(image.resize(image.resize(x, (2, 8, 6, 3), method), (2, 8, 4, 3), method), both, rtol=1e-12)
    assert_allclose(cj.jit(lambda x: image.resize(x, (2, 8, 4, 3), method))(x), both, rtol=1e-9, atol=1e-12)
    assert_allclose(cj.vmap(lambda x: image.resize(x, (8, 4, 3), method))(x), both, rtol=1e-9, atol=1e-12)
    assert_array_equal(image.resize(x, x.shape, method), x)
    assert (2, 0, 4, 3) == image.resize(x, (2, 0, 4, 3), method).shape


@every_filter
def test_derivatives_are_those_of_differences(method):
    x, scale, shift = RNG.standard_normal((6, 2)), np.array([1.31]), np.array([0.23])

    def total(x, scale, shift):
        return (image.scale_and_translate(x, (7, 2), (0,), scale, shift, method) ** 2).sum()

    slopes = cj.grad(total, (0, 1, 2))(x, scale, shift)
    step = np.zeros((6, 2))
    step[2, 1] = 1e-6
    ends = [float(total(x + sign * step, scale, shift)) for sign in (1, -1)]
    assert_allclose(slopes[0][2, 1], (ends[0] - ends[1]) / 2e-6, rtol=1e-6)
    for i, (up, down) in enumerate([((scale + 1e-6, shift), (scale - 1e-6, shift)),
                                    ((scale, shift + 1e-6), (scale, shift - 1e-6))], 1):
        assert_allclose(slopes[i], [(float(total(x, *up)) - float(total(x, *down))) / 2e-6], rtol=1e-5)
    assert_allclose(cj.jit(cj.grad(total))(x, scale, shift), slopes[0], rtol=1e-9, atol=1e-12)


def test_moving_by_whole_numbers_moves():
    x = np.arange(1.0, 6.0)
    for method in ("linear", "cubic", "lanczos3", "area"):
        moved = image.scale_and_translate(x, (5,), (0,), np.ones(1), np.array([2.0]), method)
        assert_allclose(moved, [0, 0, 1, 2, 3], atol=1e-12)


def test_dtypes_are_kept_or_made_floating():
    assert "float16" == str(image.resize(np.ones(4, "float16"), (2,), "linear").dtype)
    assert "float64" == str(image.resize(np.arange(4), (2,), "linear").dtype)
    assert "int64" == str(image.resize(np.arange(4), (2,), "nearest").dtype)
    assert "bool" == str(image.resize(np.ones(4, bool), (2,), ResizeMethod.NEAREST).dtype)


def test_places_are_exact_whatever_the_dtype():
    x = np.arange(2048.0) % 7
    for method in FILTERS:
        exact = image.resize(x, (300,), method)
        assert_allclose(image.resize(x.astype("float16"), (300,), method), exact, atol=2e-3)
        assert_allclose(image.resize(x.astype("float32"), (300,), method), exact, atol=1e-6)
        assert_allclose(image.resize(x + 2j * x, (300,), method), (1 + 2j) * np.asarray(exact), rtol=1e-12, atol=1e-12)


def test_methods_have_names():
    for name, method in {"bilinear": ResizeMethod.LINEAR, "bicubic": ResizeMethod.CUBIC, "area": ResizeMethod.AREA,
                         "nearest": ResizeMethod.NEAREST, "bicubic-pytorch": ResizeMethod.CUBIC_PYTORCH}.items():
        assert method is ResizeMethod.from_string(name)


X = np.ones((4, 4))
WRONG = {
    "an unknown method": (lambda: image.resize(X, (2, 2), "pil"), ValueError, "no such method"),
    "no method": (lambda: image.resize(X, (2, 2), None), ValueError, "no such method"),
    "too few sizes": (lambda: image.resize(X, (2,), "linear"), ValueError, "a size for each axis"),
    "a negative size": (lambda: image.resize(X, (2, -2), "linear"), ValueError, "a size for each axis"),
    "a broken size": (lambda: image.resize(X, (2, 2.5), "linear"), TypeError, "shape"),
    "text": (lambda: image.resize("a", (2,), "linear"), TypeError, "isn't an array"),
    "a complex scale": (lambda: image.scale_and_translate(X, (2, 2), (0,), np.ones(1) * 1j, np.ones(1), "linear"),
                        TypeError, "takes real numbers"),
    "keys": (lambda: image.resize(cj.random.split(cj.random.key(0)), (3,), "linear"), TypeError, "isn't an image"),
    "no flag": (lambda: image.resize(X, (2, 2), "linear", antialias="yes"), TypeError, "antialias"),
    "nearest, moved": (lambda: image.scale_and_translate(X, (2, 2), (0,), np.ones(1), np.ones(1), "nearest"),
                       ValueError, "has no filter"),
    "scales of other axes": (lambda: image.scale_and_translate(X, (2, 2), (0,), np.ones(2), np.ones(1), "linear"),
                             ValueError, "a number for each axis"),
    "a translation without axes": (lambda: image.scale_and_translate(X, (2, 2), (0,), np.ones(1), 1.0, "linear"),
                                   ValueError, "a number for each axis"),
    "an axis that isn't there": (lambda: image.scale_and_translate(X, (2, 2), (2,), np.ones(1), np.ones(1), "linear"),
                                 ValueError, "out of bounds"),
    "an axis twice": (lambda: image.scale_and_translate(X, (2, 2), (0, 0), np.ones(2), np.ones(2), "linear"),
                      ValueError, "axis"),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_uses_are_told(case):
    assert_refused(*WRONG[case])
