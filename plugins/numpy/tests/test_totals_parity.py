"""Totals, order, places and differences of corejax.numpy beside NumPy and jax: values, dtypes, derivatives."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import corejax as cj
import corejax.numpy as jnp
from corejax.errors import CorejaxError

jax = pytest.importorskip("jax")

TIED = np.array([[1.0, 3.0, 3.0], [2.0, 0.0, 0.0], [5.0, 5.0, 1.0]])
GAPS = np.array([[np.nan] * 3, [1.0, 2.0, 2.0], [4.0, np.nan, 1.0]])
TOTALS = ["sum", "prod", "max", "min", "mean", "var", "std", "ptp", "cumsum", "cumprod", "median", "sort", "average"]
NAN_TOTALS = ["nansum", "nanprod", "nanmax", "nanmin", "nanmean", "nanvar", "nanstd", "nancumsum", "nancumprod",
              "nanmedian"]


def kept(x):
    """The array as one of ours in host memory."""
    return cj.lax.add(x, x.dtype.type(0))


def derivatives(sin, grad, f):
    """The first two derivatives of something that isn't linear in what `f` returns."""
    first = grad(lambda y: sin(f(y, axis=1)).sum())
    return first, grad(lambda y: (first(y) ** 2).sum())


@pytest.mark.sample(8)
@pytest.mark.parametrize("name", TOTALS + NAN_TOTALS)
def test_derivatives_at_ties_zeros_and_nan_are_those_of_jax(name):
    x = GAPS if name.startswith("nan") else TIED
    ours = derivatives(cj.lax.sin, cj.grad, getattr(jnp, name))
    theirs = derivatives(jax.numpy.sin, jax.grad, getattr(jax.numpy, name))
    for got, wanted in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(np.asarray(got(x)), np.asarray(wanted(x)), atol=1e-10)
        np.testing.assert_allclose(np.asarray(cj.jit(got)(x)), np.asarray(wanted(x)), atol=1e-10)


@pytest.mark.parametrize("name", TOTALS + NAN_TOTALS)
def test_values_are_those_of_numpy_at_every_call_and_compiled(name):
    x, f = kept(GAPS if name.startswith("nan") else TIED), getattr(jnp, name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        wanted = getattr(np, name)(np.asarray(x), axis=1)
    for got in (f(x, axis=1), f(x, axis=1), f(x, axis=1), cj.jit(lambda y: f(y, axis=1))(x)):
        np.testing.assert_allclose(np.asarray(got), wanted, strict=True, rtol=1e-12)


@pytest.mark.parametrize("method", ["linear", "lower", "higher", "midpoint", "nearest", "inverted_cdf", "hazen",
                                    "averaged_inverted_cdf", "closest_observation", "interpolated_inverted_cdf",
                                    "weibull", "median_unbiased", "normal_unbiased"])
def test_quantiles_have_the_methods_of_numpy(method):
    for name in ("quantile", "nanquantile"):
        for q in (0.3, np.array([0.0, 0.5, 1.0])):
            got = getattr(jnp, name)(kept(GAPS), q, 1, method=method)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                wanted = getattr(np, name)(GAPS, q, 1, method=method)
            np.testing.assert_allclose(np.asarray(got), wanted, strict=True, atol=1e-12)


@pytest.mark.parametrize("method", ["scan", "scan_unrolled", "sort", "compare_all"])
def test_searchsorted_counts_nan_as_greatest(method):
    rising, v = np.array([0.0, 1.0, 1.0, np.nan]), np.array([[-1.0, 0.0], [1.0, np.nan]])
    for side in ("left", "right"):
        got = cj.jit(lambda v, side=side: jnp.searchsorted(rising, v, side, method=method))(v)
        np.testing.assert_array_equal(np.asarray(got), np.searchsorted(rising, v, side), strict=True)


@pytest.mark.parametrize("right", [False, True])
def test_digitize_takes_bounds_that_fall(right):
    x, bounds = np.array([1.0, 2.0, 2.5, 9.0]), np.array([5.0, 2.0, 1.0])
    np.testing.assert_array_equal(np.digitize(x, bounds, right), np.asarray(jnp.digitize(x, bounds, right)))


@pytest.mark.parametrize("options", [{"size": 2}, {"size": 6}, {"size": 6, "fill_value": -9}])
def test_sets_of_static_size_are_those_of_jax(options):
    a, b = np.array([3, 1, 1, 5, 7]), np.array([5, 3, 3, 9])
    for name in ("setdiff1d", "setxor1d", "union1d", "intersect1d"):
        got = cj.jit(lambda a, b, name=name: getattr(jnp, name)(a, b, **options))(a, b)
        np.testing.assert_array_equal(np.asarray(got), np.asarray(getattr(jax.numpy, name)(a, b, **options)))
    got = cj.jit(lambda a: jnp.unique(a, True, True, True, **options))(a)
    for one, other in zip(got, jax.numpy.unique(a, True, True, True, **options), strict=True):
        np.testing.assert_array_equal(np.asarray(one), np.asarray(other))


@pytest.mark.parametrize("part", [0, 1, 2])
def test_derivatives_of_interp_at_knots_are_those_of_jax(part):
    args = [np.array([-1.0, 0.0, 0.5, 1.0, 2.0, 3.0]), np.array([0.0, 1.0, 2.0]), np.array([1.0, 3.0, 2.0])]
    got = cj.grad(lambda *xs: cj.lax.sin(jnp.interp(*xs)).sum(), part)(*args)
    wanted = jax.grad(lambda *xs: jax.numpy.sin(jax.numpy.interp(*xs)).sum(), part)(*args)
    np.testing.assert_allclose(np.asarray(got), np.asarray(wanted), atol=1e-12)


@pytest.mark.parametrize("name", ["nonzero", "argwhere", "flatnonzero", "unique", "unique_values", "bincount"])
def test_shapes_that_depend_on_traced_values_need_a_size(name):
    with pytest.raises(TypeError, match="size=|length="):
        cj.jit(getattr(jnp, name))(np.array([1, 2]))


def test_places_of_differentiated_values_are_known():
    assert [6.0, 2.0, 0.0] == cj.grad(lambda x: (jnp.unique(x) ** 2).sum())(np.array([3.0, 1.0, 3.0])).tolist()
    assert [0.0, 4.0] == cj.grad(lambda x: (x[jnp.nonzero(x)] ** 2).sum())(np.array([0.0, 2.0])).tolist()


@pytest.mark.parametrize(("call", "match"), [
    (lambda: jnp.sum(TIED, out=TIED), "immutable"), (lambda: jnp.quantile(TIED, 2.0), "out of range"),
    (lambda: jnp.quantile(TIED, 0.5, method="no"), "no such method"), (lambda: jnp.put(TIED, 0, 1.0), "inplace=False"),
    (lambda: jnp.take(TIED, [99]), "out of bounds"), (lambda: jnp.bincount([-1]), "negative"),
    (lambda: jnp.partition(TIED, 9), "no element 9"), (lambda: jnp.gradient(TIED, edge_order=3), "edge_order=3"),
    (lambda: jnp.histogram(TIED, 3, None, True), "by name"), (lambda: jnp.interp(1.0, [1.0], [1.0, 2.0]), "points")])
def test_wrong_arguments_are_refused_by_name(call, match):
    with pytest.raises(CorejaxError, match=match):
        call()


def test_the_derivative_of_a_median_of_all_that_is_not_nan():
    assert [0.0, 1.0, 0.0] == cj.grad(jnp.nanmedian)(np.array([3.0, 2.0, 1.0])).tolist()
    assert [0.5, 0.0, 0.5] == cj.jit(cj.grad(jnp.nanmedian))(np.array([3.0, np.nan, 1.0])).tolist()


@pytest.mark.parametrize("name", ["sum", "prod", "max", "min", "mean", "var", "std", "ptp", "cumsum", "cumprod",
                                  "average", "nansum", "median", "trapezoid"])
def test_totals_of_numbers_in_the_program_have_their_type_for_good_as_in_jax(name):
    """Else 300 elements, counted as where(x, 1, 0).sum(), would be int8 beside an array of int8."""
    def beside(jnp, one, narrow):
        return (getattr(jnp, name)(jnp.where(jnp.ones(300) > 0, one, 2 * one)) * jnp.ones(300, narrow)).dtype
    for one, narrow in ((1.0, "float32"), (1, "int8")):
        assert beside(jax.numpy, one, narrow) == beside(jnp, one, narrow)
    assert 300 == (jnp.where(jnp.ones(300) > 0, 1, 0).sum() * jnp.int8(1)).item()
