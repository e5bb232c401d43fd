"""NumPy's functions that sort, and take medians and quantiles, of traced values: beside NumPy itself."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import corejax as cj

RNG = np.random.default_rng(0)

X = RNG.standard_normal((3, 4, 5))

NUMPY = {
    "sort": np.sort, "sort axis": lambda x: np.sort(x, axis=0), "sort all": lambda x: np.sort(x, axis=None),
    "sort kind": lambda x: np.sort(x, kind="mergesort"), "argsort": np.argsort,
    "argsort axis": lambda x: np.argsort(x, axis=1), "lexsort": lambda x: np.lexsort((x, x > 0), axis=1),
    "median": np.median, "median axes": lambda x: np.median(x, axis=(0, 2), keepdims=True),
    "quantile": lambda x: np.quantile(x, [0.1, 0.5, 1.0], axis=1),
    "quantile of quantiles": lambda x: np.quantile(x, [[0.2, 0.4]], axis=(0, 1), keepdims=True),
    "percentile": lambda x: np.percentile(x, 30.0),
    **{method: lambda x, method=method: np.quantile(x, [0.13, 0.5, 0.77], axis=2, method=method)
       for method in ("lower", "higher", "midpoint", "nearest")},
}


@pytest.mark.parametrize("name, with_nan", [*itertools.product(NUMPY, [False, True])])
def test_numpys_functions_of_traced_values_are_numpys(name, with_nan):
    x = np.where(np.arange(5) == 2, np.nan, X) if with_nan else X
    wanted, got = NUMPY[name](x), cj.jit(NUMPY[name])(x)
    assert (wanted.shape, wanted.dtype) == (got.shape, got.dtype)
    assert_allclose(got, wanted, rtol=1e-14)


def test_gradients_of_a_median_are_those_of_the_middle():
    assert_array_equal(cj.grad(np.median)(np.array([3.0, 1.0, 2.0, 5.0])), [0.5, 0.0, 0.5, 0.0])


@pytest.mark.parametrize("call", [
    lambda x: np.quantile(x, 1.5), lambda x: np.quantile(x, 0.5, method="guessed")], ids=["share", "method"])
def test_what_quantiles_do_not_take_is_refused(call):
    with pytest.raises(cj.errors.CorejaxValueError):
        cj.jit(lambda x: call(x) + x)(np.ones(3))
