"""`dtype=`, `where=` and empty arrays, beside NumPy: each call eagerly and compiled."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.exceptions import ComplexWarning

import corejax as cj
import corejax.numpy as jnp

Call = Callable[[Any], Any]

NUMBERS = {"bool": [True, False, True], "int8": [1, -2, 3], "int64": [1, -2, 3], "float16": [1.5, -2, 3],
           "float32": [1.5, -2, 3], "float64": [1.5, -2, 3], "complex64": [1 + 1j, 2 - 2j, 3],
           "complex128": [1 + 1j, 2 - 2j, 3]}
TOTALS = ("sum", "prod", "mean", "var", "std", "nansum", "nanprod", "nanmean", "nanvar", "nanstd", "cumsum", "cumprod",
          "nancumsum", "nancumprod", "cumulative_sum", "cumulative_prod", "trace")
WANTED = ("bool", "int32", "int64", "float16", "float32", "float64", "complex64", "complex128")

#: Where NumPy refuses, or computes means and what follows from them in integers.
OTHERWISE = {"mean": "", "var": "bi", "std": "bi", "nanvar": "bi", "nanstd": "bi", "nanmean": "bi"}


def _numpy(call: Call, x: np.ndarray) -> Any:
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        return np.asarray(call(x))


def _check(call: Call, wanted: Any, x: np.ndarray) -> None:
    tolerance = 4e-3 if "16" in (x.dtype.name + wanted.dtype.name) else 3e-6
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ComplexWarning)
        for found in (call(jnp.asarray(x)), cj.jit(call)(x)):
            assert (wanted.shape, wanted.dtype) == (found.shape, found.dtype)
            np.testing.assert_allclose(np.asarray(found).astype(complex), wanted.astype(complex), rtol=tolerance)


@pytest.mark.sample(40)
@pytest.mark.parametrize("own", NUMBERS)
@pytest.mark.parametrize("name", TOTALS)
def test_totals_in_a_dtype_are_numpys(name: str, own: str) -> None:
    x = np.array(NUMBERS[own], own)
    x = x[:, None] * np.ones((1, 3), own) if name == "trace" else x
    for dtype in WANTED:
        if np.dtype(dtype).kind in OTHERWISE.get(name, "") or (x.dtype.kind == "b" and name == "trace"):
            continue
        wanted = _numpy(lambda x, d=dtype: getattr(np, name)(x, dtype=d), x)
        _check(lambda x, d=dtype: getattr(jnp, name)(x, dtype=d), wanted, x)


@pytest.mark.parametrize("name", ["var", "std", "nanvar", "nanstd"])
def test_real_variances_of_complex_numbers_keep_their_imaginary_parts(name: str) -> None:
    x = np.array([1j, 1 + 1j])
    with pytest.warns(ComplexWarning, match="imaginary parts are lost"):  # of the mean
        found = getattr(jnp, name)(jnp.asarray(x), dtype="float64")
    assert pytest.approx(1.25 if "var" in name else 1.25 ** 0.5) == found.item()
    assert "float64" == found.dtype.name
    of_narrow = getattr(jnp, name)(jnp.array([1, 3], "float16"), dtype="complex64")
    assert (1.0, "complex64") == (of_narrow.item(), of_narrow.dtype.name)


def test_a_mean_that_is_given_may_be_complex() -> None:
    x, mean = np.array([1j, 1 + 1j]), np.array([0.5 + 1j])
    assert 0.25 == np.var(x, dtype=float, mean=mean) == jnp.var(x, dtype=float, mean=mean).item()


@pytest.mark.parametrize("name", ["sum", "mean", "prod", "cumsum", "cumulative_prod", "nansum"])
def test_imaginary_parts_that_a_dtype_loses_are_warned_of_once(name: str) -> None:
    with pytest.warns(ComplexWarning, match="imaginary parts are lost") as caught:
        getattr(jnp, name)(jnp.array([1j, 2]), dtype=float)
    assert 1 == len(caught)


@pytest.mark.sample(15)
@pytest.mark.parametrize("own", ["int64", "float32", "float64", "complex64"])
@pytest.mark.parametrize("name", [
    "nanmean", "nanstd", "nanvar", "nansum", "nanprod", "mean", "var", "std", "sum", "prod"])
def test_totals_of_a_part_are_numpys(name: str, own: str) -> None:
    x = np.array([[1, 2, 5], [3, 9, 4]], own)
    if own != "int64":
        x[0, 1] = np.nan if "nan" in name else x[0, 1]
    for where in (np.array([[True, True, False], [True, False, True]]), np.array([True, False, True])):
        for options in ({}, {"axis": 0}, {"axis": 1, "keepdims": True}):
            wanted = _numpy(lambda x, w=where, o=options: getattr(np, name)(x, where=w, **o), x)
            call: Call = lambda x, w=where, o=options: getattr(jnp, name)(x, where=w, **o)  # type: ignore[misc]
            _check(call, wanted, x)


def test_sums_and_products_of_truth_values_from_an_initial_one() -> None:
    x = jnp.array([1, 0])
    assert (True, False) == (jnp.sum(x, dtype=bool, initial=False).item(), jnp.prod(x, dtype=bool, initial=True).item())


JOINED: dict[str, Call] = {
    "concatenate": lambda m: m.concatenate([np.int8([1]), np.uint64([2])], dtype="int32"),
    "stack": lambda m: m.stack([np.int8([1]), np.uint64([2])], dtype="int32"),
    "hstack": lambda m: m.hstack([np.int8([1]), np.uint64([2])], dtype="int32"),
    "vstack": lambda m: m.vstack([np.int8([1]), np.uint64([2])], dtype="int32"),
    "unsafely": lambda m: m.concatenate([np.float64([1.5]), np.uint64([2])], dtype="int32", casting="unsafe"),
    "poly": lambda m: m.poly([]), "poly of one": lambda m: m.poly([2.0]),
    "geomspace": lambda m: m.geomspace(1, 1000, 4, dtype=int), "down": lambda m: m.geomspace(1000, 1, 4, dtype="int32"),
    "negative": lambda m: m.geomspace(-1, -1000, 4, dtype=int), "of arrays": lambda m: m.geomspace(
        np.array([1, 2]), 1000, 4, dtype=int, axis=1), "logspace": lambda m: m.logspace(0, 8, 9, dtype=int),
    "linspace": lambda m: m.linspace(0, 10, 7, dtype=int), "linspace down": lambda m: m.linspace(0, -10, 7, dtype=int),
    "interp of complex64": lambda m: m.interp(np.array([0.5, 3]), np.array([0.0, 1]), np.array([1j, 2], "complex64")),
    "interp beyond": lambda m: m.interp(np.array([3.0]), np.array([0.0, 1]), np.array([1j, 2], "complex64"), right=3j),
    "interp over a period": lambda m: m.interp(
        np.array([2.5]), np.array([0.0, 1]), np.array([1j, 2], "complex64"), period=2.0),
}


@pytest.mark.parametrize("name", JOINED)
def test_dtypes_of_results_are_numpys(name: str) -> None:
    wanted = np.asarray(JOINED[name](np))
    for found in (JOINED[name](jnp), cj.jit(lambda: JOINED[name](jnp))()):
        assert (wanted.shape, wanted.dtype) == (found.shape, found.dtype)
        np.testing.assert_allclose(np.asarray(found), wanted, rtol=1e-14)


def test_computed_powers_that_miss_an_integer_by_rounding_are_that_integer() -> None:
    found = cj.jit(lambda start: jnp.geomspace(start, 10 ** 8, 9, dtype=int))(1)
    assert [10 ** k for k in range(9)] == found.tolist()


EMPTY = [((3, 0), (3, 0), 1), ((3, 0), (3, 0), 0), ((0, 3), (0, 3), 0), ((0,), (0,), 0), ((3, 0), (1, 0), 0),
         ((3, 2), (0, 2), 0), ((3, 0), (0,), None)]


@pytest.mark.parametrize(("shape", "own", "axis"), EMPTY, ids=str)
def test_nothing_is_taken_along_an_axis(shape: Any, own: Any, axis: int | None) -> None:
    wanted = np.take_along_axis(np.zeros(shape, np.float32), np.zeros(own, int), axis)
    x, places = jnp.zeros(shape, np.float32), jnp.zeros(own, int)
    use: Call = lambda x: jnp.take_along_axis(x, places, axis)
    for found in (use(x), cj.jit(use)(x), cj.vmap(use)(x[None])[0], jnp.take_along_axis(x, np.zeros(own, int), axis)):
        assert (wanted.shape, wanted.dtype) == (found.shape, found.dtype)
    assert shape == cj.grad(lambda x: use(x).sum())(x).shape
    if axis is not None:
        assert shape == jnp.put_along_axis(x, places, 1.0, axis, inplace=False).shape


@pytest.mark.parametrize("name", ["min", "max"])
@pytest.mark.parametrize(("shape", "axis"), [((0,), None), ((2, 0), 1), ((0, 0), (0, 1))])
def test_an_extreme_of_nothing_has_no_tangent(name: str, shape: Any, axis: Any) -> None:
    def use(x: Any) -> Any:
        return getattr(jnp, name)(x, axis=axis, initial=1.0)

    x = jnp.zeros(shape)
    for way in (use, cj.jit(use)):
        out, tangent = cj.jvp(way, (x,), (jnp.ones(shape),))
        assert out.shape == tangent.shape
        assert {1.0} == set(np.ravel(out).tolist())
        assert {0.0} == set(np.ravel(tangent).tolist())
        assert shape == cj.grad(lambda x, way=way: way(x).sum())(x).shape
