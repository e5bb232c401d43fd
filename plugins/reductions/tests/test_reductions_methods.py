"""Array methods that reduce: NumPy's signatures and results, on arrays and on tracers."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import corejax as cj
from corejax.errors import CorejaxError
from exhaustive import exhaustive_unless


@pytest.fixture
def rng():
    return np.random.default_rng(2)


METHODS = ["sum", "prod", "max", "min", "mean", "var", "std", "any", "all", "argmax", "argmin", "cumsum", "cumprod"]
ONE_AXIS = ["argmax", "argmin", "cumsum", "cumprod"]
DTYPES = [np.float64, np.float32, np.int64, np.int8, np.uint8, np.bool_]
AXES = [None, 0, -1, (0, 2), (-1, 0)]


def check(x, name, **options):
    """The method gives NumPy's result; eagerly, traced, and through numpy's function.

    It is of NumPy's type, but that float32 is enough for means of narrow integers, and running sums and products keep
    their type.
    """
    wanted = np.asarray(getattr(x, name)(**options))
    if x.dtype.kind in "biu" and x.dtype.itemsize < 8 and "dtype" not in options:
        if name in ("mean", "var", "std"):
            wanted = wanted.astype(np.float32)
        elif name in ("cumsum", "cumprod") and x.dtype != np.bool_:
            wanted = wanted.astype(x.dtype)

    def method(y):
        return getattr(y, name)(**options)

    array = cj.device_put(x)
    for got in (method(array), cj.jit(method)(array), getattr(np, name)(array, **options)):
        np.testing.assert_allclose(np.asarray(got), wanted, rtol=1e-6, strict=True, err_msg=f"{name} {options}")


#: Every method with every dtype, the axes with float64; the rest of the product is exhaustive.
CASES = [(name, dtype, axis) for dtype in DTYPES for name in METHODS for axis in AXES
         if not (isinstance(axis, tuple) and name in ONE_AXIS)
         and not (dtype is np.bool_ and name in ("var", "std"))]  # NumPy refuses to subtract booleans


def is_one_of_pairs(case):
    name, dtype, axis = case
    return dtype is np.float64 or axis == AXES[(DTYPES.index(dtype) + METHODS.index(name)) % 3]


@pytest.mark.sample(50)
@pytest.mark.parametrize("case", exhaustive_unless(is_one_of_pairs, CASES),
                         ids=[f"{name}-{dtype.__name__}-{axis}" for name, dtype, axis in CASES])
def test_methods_agree_with_numpy(rng, case):
    name, dtype, axis = case
    x = (rng.standard_normal((3, 4, 2)) * 2).astype(dtype)
    kept = (AXES.index(axis) + METHODS.index(name) + DTYPES.index(dtype)) % 2
    check(x, name, axis=axis, **({"keepdims": True} if kept and name not in ("cumsum", "cumprod") else {}))


@pytest.mark.sample(50)
@pytest.mark.parametrize("values", [
    np.array([[2.5, np.nan, -0.0], [np.inf, -3.5, 1e300]]), np.array([[True, False], [True, True]]),
    np.linspace(0.5, 1.5, 99, dtype=np.float32), np.array([[100, 100], [-100, 3]], np.int8), np.zeros((3, 0), np.int32),
    np.array([2**63, 2**63 - 1], np.uint64), np.zeros((0, 3)), np.array(2.5), np.array([1 + 2j, complex(np.inf, -1)]),
    np.array([[60000, 60000]], np.float16), np.array([1, 2.5, -3], ml_dtypes.bfloat16),
], ids=lambda values: f"{values.dtype}{list(values.shape)}")
@pytest.mark.parametrize("name", METHODS)
def test_arrays_in_host_memory_give_what_tracers_give_at_every_call(name, values):
    x = cj.core.from_array_like(values)
    for options in ({}, {"axis": -1}, {"axis": 0, **({} if name.startswith("cum") else {"keepdims": True})}):
        def method(y):
            return getattr(y, name)(**options)  # noqa: B023
        try:
            wanted = cj.make_jaxpr(method)(x)
        except CorejaxError as error:
            for _ in range(2):
                with pytest.raises(type(error)):
                    method(x)
            continue
        for found in (method(x), method(x)):
            assert wanted.out_avals[0] == found.aval
            np.testing.assert_allclose(np.asarray(found).astype(complex), np.asarray(cj.jit(method)(x)).astype(complex),
                                       rtol=1e-2 if values.dtype.itemsize == 2 else 1e-5)


@pytest.mark.parametrize("name", ["sum", "prod", "mean", "cumsum", "var"])
def test_methods_take_a_dtype(rng, name):
    check(rng.integers(0, 3, (3, 4)), name, axis=1, dtype=np.float32)


@pytest.mark.parametrize("name", ["sum", "prod", "max", "min"])
def test_methods_take_an_initial_value_and_a_mask(rng, name):
    x = rng.standard_normal((3, 4))
    check(x, name, axis=0, initial=2.5)
    check(x, name, axis=1, initial=0.5, where=x > 0)
    check(x, name, initial=0.5, where=np.array([True, False, True, True]))


@pytest.mark.parametrize("name", ["mean", "var", "std", "any", "all"])
def test_methods_take_a_mask(rng, name):
    x = rng.standard_normal((3, 4))
    check(x, name, axis=1, where=x < 1.5)
    check(x, name, where=np.array([True, False, True, True]))


def test_variance_takes_delta_degrees_of_freedom_and_complex_numbers(rng):
    x = rng.standard_normal((3, 4))
    check(x, "var", axis=0, ddof=1)
    check(x, "std", ddof=2)
    check(x + 1j * rng.standard_normal((3, 4)), "var", axis=1)
    check(x + 1j * rng.standard_normal((3, 4)), "std")
    check(x + 1j * rng.standard_normal((3, 4)), "mean")


def test_the_mean_of_half_precision_does_not_overflow():
    x = cj.device_put(np.full(1000, 1000, np.float16))
    assert 1000.0 == x.mean()
    assert np.float16 == x.mean().dtype


def test_methods_differentiate(rng):
    x, v = rng.standard_normal((3, 4)), rng.standard_normal((3, 4))
    h = 1e-5
    for name in ["sum", "prod", "max", "min", "mean", "var", "std", "cumsum"]:
        def f(x):
            return (getattr(x, name)(axis=1) ** 2).sum()  # noqa: B023
        numeric = (f(x + h * v) - f(x - h * v)) / (2 * h)
        np.testing.assert_allclose((np.asarray(cj.grad(f)(x)) * v).sum(), numeric, rtol=1e-6, err_msg=name)


def test_a_sum_over_all_axes_is_one_equation():
    assert 1 == len(cj.make_jaxpr(lambda x: x.sum())(np.ones((2, 3))).eqns)
    assert 1 == len(cj.make_jaxpr(lambda x: x.max(axis=0))(np.ones((2, 3))).eqns)


@pytest.mark.parametrize(("call", "kind", "message"), [
    (lambda x: x.sum(axis=2), IndexError, "axis 2 is out of bounds"),
    (lambda x: x.sum(axis=(0, 0)), ValueError, "an axis appears twice"),
    (lambda x: x.sum(out=np.ones(3)), TypeError, "immutable"),
    (lambda x: x.max(where=np.ones((2, 3), bool)), ValueError, "an initial value is needed"),
    (lambda x: x[:0].max(axis=0), ValueError, "without elements has no extreme"),
    (lambda x: x.sum(where=np.ones(2, bool)), TypeError, "`where` must be a mask"),
    (lambda x: x.sum(where=np.ones((2, 3))), TypeError, "`where` must be a mask")])
def test_wrong_arguments_are_refused(call, kind, message):
    for run in (call, cj.jit(call)):
        with pytest.raises(kind, match=message) as caught:
            run(cj.device_put(np.ones((2, 3))))
        assert isinstance(caught.value, CorejaxError)
