"""Special functions beside values known to 30 digits, at poles and limits, in each precision; and how they print."""

from __future__ import annotations

import math
import subprocess
import sys

import mpmath as mp
import numpy as np
import pytest

import corejax as cj
from corejax import lax
from corejax.errors import CorejaxNotImplementedError
from exhaustive import exhaustive_unless
from imports import ROOT
from special_points import Table, tables
from special_points.references import DIGITS, FUNCTIONS

pytestmark = pytest.mark.usefixtures("usual_code")

NAMES = ("erf", "erfc", "erf_inv", "bessel_i0e", "bessel_i1e", "lgamma", "digamma", "zeta", "polygamma", "igamma",
         "igammac", "igamma_grad_a", "random_gamma_grad", "betainc")
UNARY = NAMES[:7]
inf, nan = math.inf, math.nan

#: Where there is no number of so many digits: operands, and the value.
LIMITS = {
    "erf": [(inf, 1.0), (-inf, -1.0), (0.0, 0.0), (-0.0, -0.0), (1e300, 1.0)],
    "erfc": [(inf, 0.0), (-inf, 2.0), (0.0, 1.0), (1e300, 0.0)],
    "erf_inv": [(1.0, inf), (-1.0, -inf), (-0.0, -0.0), (1.0000001, nan), (-2.0, nan), (inf, nan), (-inf, nan)],
    "bessel_i0e": [(inf, 0.0), (-inf, 0.0), (0.0, 1.0)],
    "bessel_i1e": [(inf, 0.0), (-inf, -0.0), (0.0, 0.0), (-0.0, -0.0)],
    "lgamma": [(0.0, inf), (-0.0, inf), (-1.0, inf), (-7.0, inf), (-1e30, inf), (1.0, 0.0), (2.0, 0.0), (inf, inf),
               (-inf, inf)],
    "digamma": [(0.0, nan), (-0.0, nan), (-1.0, nan), (-7.0, nan), (-1e30, nan), (inf, inf), (-inf, nan)],
    "zeta": [(1.0, 2.0, inf), (0.5, 2.0, nan), (-1.0, 2.0, nan), (2.0, 0.0, inf), (3.0, 0.0, nan), (2.0, -4.0, inf),
             (3.0, -4.0, nan), (2.5, -0.5, nan), (2.0, inf, 0.0), (inf, 2.0, 0.0), (inf, 1.0, 1.0), (nan, 1.0, nan)],
    "polygamma": [(0.0, 0.0, nan), (1.0, 0.0, inf), (2.0, 0.0, nan), (1.0, -3.0, inf), (0.5, 2.0, nan),
                  (-1.0, 2.0, nan), (inf, 2.0, nan), (nan, 2.0, nan), (1.0, inf, 0.0), (0.0, inf, inf)],
    "igamma": [(1.0, 0.0, 0.0), (1.0, -0.0, 0.0), (1.0, inf, 1.0), (0.0, 1.0, 1.0), (0.0, inf, 1.0), (0.0, 0.0, nan),
               (inf, 1.0, 0.0), (inf, 0.0, 0.0), (inf, inf, nan), (-1.0, 1.0, nan), (1.0, -1.0, nan), (nan, 1.0, nan),
               (1e36, 1e36, 0.5), (1e30, 2e30, 1.0), (1e30, 1.0, 0.0), (1.0, 1e30, 1.0), (-inf, 1.0, nan)],
    "igammac": [(1.0, 0.0, 1.0), (1.0, -0.0, 1.0), (1.0, inf, 0.0), (0.0, 1.0, 0.0), (0.0, inf, 0.0), (0.0, 0.0, nan),
                (inf, 1.0, 1.0), (inf, 0.0, 1.0), (inf, inf, nan), (-1.0, 1.0, nan), (1.0, -1.0, nan), (nan, 1.0, nan),
                (1e36, 1e36, 0.5), (1e30, 2e30, 0.0), (1e30, 1.0, 1.0), (1.0, 1e30, 0.0), (1.0, -inf, nan)],
    "igamma_grad_a": [(1.0, 0.0, 0.0), (1.0, inf, 0.0), (0.0, 1.0, nan), (-1.0, 1.0, nan), (1.0, -1.0, nan),
                      (inf, 1.0, nan), (nan, 1.0, nan)],
    "random_gamma_grad": [(1.0, 0.0, 0.0), (0.0, 1.0, nan), (-1.0, 1.0, nan), (1.0, -1.0, nan), (inf, 1.0, nan),
                          (nan, 1.0, nan), (1e30, 1e30, 1.0)],
    "betainc": [(2.0, 3.0, 0.0, 0.0), (2.0, 3.0, 1.0, 1.0), (0.0, 2.0, 0.5, 1.0), (0.0, 2.0, 0.0, 0.0),
                (2.0, 0.0, 0.5, 0.0), (2.0, 0.0, 1.0, 1.0), (0.0, 0.0, 0.5, nan), (inf, 2.0, 0.5, 0.0),
                (inf, 2.0, 1.0, 1.0), (2.0, inf, 0.5, 1.0), (2.0, inf, 0.0, 0.0), (inf, inf, 0.5, nan),
                (-1.0, 2.0, 0.5, nan), (2.0, -1.0, 0.5, nan), (2.0, 2.0, -0.5, nan), (2.0, 2.0, 1.5, nan),
                (nan, 2.0, 0.5, nan), (2.0, nan, 0.5, nan), (1e30, 1e36, 0.5, 1.0), (1e36, 1e30, 0.5, 0.0),
                (1e30, 1e30, 0.5, 0.5)],
}


@pytest.mark.sample(10)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", NAMES)
def test_values_are_as_accurate_as_promised(name, dtype):
    table = Table(name, dtype)
    got = np.asarray(cj.jit(getattr(lax, name))(*table.operands))
    assert dtype == got.dtype
    shares = table.errors(got) / table.allowed()
    worst = np.argmax(np.where(np.isnan(shares), inf, shares))
    where = [float(x[worst]) for x in table.operands]
    assert shares[worst] <= 1.0, f"{name}{where}: {got[worst]!r}, {table.in_ulps(got)[worst]:.2f} ulps off"


@pytest.mark.sample(5)
@pytest.mark.parametrize("name", NAMES)
def test_poles_limits_and_zeros(name):
    points = [*LIMITS[name], (*[nan] * len(LIMITS[name][0][:-1]), nan)]
    *operands, wanted = np.array(points).T
    for dtype in (np.float64, np.float32):
        with np.errstate(over="ignore"):
            args = [x.astype(dtype) for x in operands]
        got = np.asarray(getattr(lax, name)(*args))
        np.testing.assert_array_equal(got, wanted.astype(dtype), str(args))
        zero = wanted == 0.0
        np.testing.assert_array_equal(np.signbit(got[zero]), np.signbit(wanted[zero]), str(args))


@pytest.mark.parametrize("dtype", exhaustive_unless("bfloat16".__eq__, ["float16", "bfloat16"]))
def test_narrow_floats_are_computed_in_float32(dtype):
    dtype = np.dtype(dtype)
    x = np.linspace(0.125, 0.875, 7).astype(dtype)
    for name in NAMES:
        args = (x,) if name in UNARY else (np.ones(7, dtype), x) if name == "polygamma" else (x + 1, x)
        args = (x + 1, x + 2, x) if name == "betainc" else args
        got = getattr(lax, name)(*args)
        assert dtype == got.dtype
        wide = np.asarray(getattr(lax, name)(*[a.astype(np.float32) for a in args]))
        np.testing.assert_array_equal(np.asarray(got), wide.astype(dtype), name)


def test_odd_functions_are_odd_to_the_last_bit():
    x = np.linspace(0.0, 12.0, 241)
    for name, of in (("erf", x), ("erf_inv", x / 12.5), ("bessel_i1e", x)):
        f = getattr(lax, name)
        np.testing.assert_array_equal(np.asarray(f(-of)), -np.asarray(f(of)))
    np.testing.assert_array_equal(np.asarray(lax.bessel_i0e(-x)), np.asarray(lax.bessel_i0e(x)))


def test_polygamma_of_order_zero_is_digamma_and_others_are_zeta():
    x = np.array([0.3, 1.5, 20.0, -0.7])
    np.testing.assert_array_equal(np.asarray(lax.polygamma(0.0, x)), np.asarray(lax.digamma(x)))
    np.testing.assert_allclose(lax.polygamma(3.0, x), 6.0 * np.asarray(lax.zeta(4.0, x)), rtol=1e-15)


def test_large_orders_overflow_only_if_the_value_does():
    n, x = np.array([200.0, 180.0, 200.0, 150.0]), np.array([100.0, 90.0, 0.5, 1e5])
    wanted = [-9.1254246910962227e-28, -4.4510775756782988e-25, -inf, 0.0]
    np.testing.assert_allclose(lax.polygamma(n, x), wanted, rtol=2e-13)


def test_inverses_undo_each_other():
    x = np.linspace(-3.0, 3.0, 61)
    np.testing.assert_allclose(lax.erf_inv(lax.erf(x)), x, rtol=1e-11, atol=1e-16)


def test_each_is_one_equation_of_a_program():
    for name in NAMES:
        args = (0.5,) if name in UNARY else (2.0, 3.0, 0.5) if name == "betainc" else (2.0, 3.0)
        (eqn,) = cj.make_jaxpr(getattr(lax, name))(*args).eqns
        assert {"betainc": "regularized_incomplete_beta"}.get(name, name) == eqn.primitive.name


# Derivatives

@pytest.mark.parametrize(("name", "x", "wanted"), [
    ("erf", 0.0, 2.0 / math.sqrt(math.pi)), ("erf", inf, 0.0), ("erfc", -inf, 0.0),
    ("erf_inv", 0.0, math.sqrt(math.pi) / 2.0), ("erf_inv", 1.0, inf),
    ("lgamma", 1.0, -0.5772156649015329), ("digamma", 1.0, math.pi ** 2 / 6.0),
    ("bessel_i0e", 0.0, 0.0), ("bessel_i1e", 0.0, 0.5)])
def test_slopes_at_special_points(name, x, wanted):
    np.testing.assert_allclose(cj.grad(getattr(lax, name))(x), wanted, rtol=1e-15, atol=0.0)


def test_derivatives_of_lgamma_of_any_order():
    f, x = lax.lgamma, 1.5
    for order in range(1, 6):
        f = cj.grad(f)
        np.testing.assert_allclose(f(x), lax.polygamma(float(order - 1), x), rtol=1e-13)


def test_zeta_by_its_second_operand():
    x, q = np.array([2.0, 3.5]), np.array([0.7, 4.0])
    slopes = cj.grad(lambda q: lax.zeta(x, q).sum())(q)
    np.testing.assert_allclose(slopes, -x * np.asarray(lax.zeta(x + 1.0, q)), rtol=1e-15)


@pytest.mark.parametrize(("name", "reason"), [
    ("zeta", "no formula of known functions"), ("polygamma", "the order is a whole number"),
    ("igamma_grad_a", "no formula of known functions"), ("random_gamma_grad", "no formula of known functions")])
def test_derivatives_that_do_not_exist_are_refused_with_the_reason(name, reason):
    with pytest.raises(CorejaxNotImplementedError, match=reason):
        cj.grad(getattr(lax, name))(2.0, 3.0)


# Incomplete gamma functions

def test_incomplete_gamma_functions_add_up_to_one_where_formulas_meet():
    a = np.exp(np.linspace(-6.0, 12.0, 181))
    for ratio in (0.2999, 0.3001, 0.9999, 1.0001, 2.3528, 2.3531):
        for x in (a * ratio, np.full_like(a, 1.125 * ratio)):
            total = np.asarray(lax.igamma(a, x)) + np.asarray(lax.igammac(a, x))
            np.testing.assert_allclose(total, 1.0, rtol=1e-15)


def test_derivatives_of_incomplete_gamma_functions_are_each_others():
    a, x = np.array([0.3, 2.0, 40.0]), np.array([0.7, 3.5, 38.0])
    by_a, by_x = cj.vmap(cj.grad(lax.igamma, (0, 1)))(a, x)
    np.testing.assert_array_equal(np.asarray(lax.igamma_grad_a(a, x)), np.asarray(by_a))
    np.testing.assert_allclose(-np.asarray(lax.random_gamma_grad(a, x)) * by_x, by_a, rtol=1e-13)
    for f, g in zip(cj.vmap(cj.grad(lax.igammac, (0, 1)))(a, x), (by_a, by_x), strict=True):
        np.testing.assert_array_equal(np.asarray(f), -np.asarray(g))


def test_mixed_derivatives_agree_in_either_order():
    a, x = np.array([0.3, 2.0, 40.0]), np.array([0.7, 3.5, 38.0])
    one = cj.vmap(cj.grad(lambda a, x: cj.grad(lax.igamma, 1)(a, x)))(a, x)
    other = cj.vmap(cj.grad(lambda a, x: cj.grad(lax.igamma)(a, x), 1))(a, x)
    np.testing.assert_allclose(one, other, rtol=1e-12)


# The incomplete beta function

def test_incomplete_beta_functions_of_both_sides_add_up_to_one():
    a, b = (np.exp(x) for x in np.meshgrid(np.linspace(-5.0, 12.0, 18), np.linspace(-5.0, 12.0, 18)))
    for x in (0.125, 0.5, 0.8125):  # 1 - x is exact
        one, other = lax.betainc(a, b, np.full_like(a, x)), lax.betainc(b, a, np.full_like(a, 1.0 - x))
        np.testing.assert_allclose(np.asarray(one) + np.asarray(other), 1.0, rtol=2e-14)


@pytest.mark.parametrize("deviations", exhaustive_unless((-6.0).__eq__, [-6.0, -1.0, 3.0]))  # mpmath takes long
def test_incomplete_beta_of_huge_exponents_is_normal_with_its_skewness(deviations):
    a, b = 2e8, 3e8
    x = 0.4 + deviations * math.sqrt(0.24 / 5e8)
    with mp.workdps(30):
        wanted = float(FUNCTIONS["betainc"].value(mp.mpf(a), mp.mpf(b), mp.mpf(x)))
    np.testing.assert_allclose(lax.betainc(a, b, x), wanted, rtol=2e-11)


def test_derivative_of_betainc_by_x_and_none_by_the_exponents():
    x = np.array([0.1, 0.5, 0.8])
    slopes = cj.vmap(cj.grad(lambda x: lax.betainc(2.0, 3.0, x)))(x)
    np.testing.assert_allclose(slopes, 12.0 * x * (1 - x) ** 2, rtol=1e-14)
    for argument in (0, 1):
        with pytest.raises(CorejaxNotImplementedError, match="no formula of known functions"):
            cj.grad(lax.betainc, argument)(2.0, 3.0, 0.5)


# What is computed by programs of this checkout

def test_coefficients_are_those_that_the_tool_computes():
    tool = ROOT / "tools/special_coefficients.py"
    done = subprocess.run([sys.executable, tool, "--check"], capture_output=True, text=True)
    assert 0 == done.returncode, done.stderr


def test_tables_are_those_that_mpmath_computes():
    with mp.workdps(DIGITS):
        for key, table in tables().items():
            function = FUNCTIONS[key.split()[0]]
            for *operands, high, low, _ in table[::17]:
                value = function.value(*map(mp.mpf, operands))
                assert (high, low) == (float(value), float(value - float(value))), (key, operands)


def test_probabilities_are_no_larger_than_one() -> None:
    ends = [5e-324, 1e-300, 1e-20, 0.5, 1.0, 30.0, 1e4, 1e8, 1e20, 1e300]
    a, b, x = [each.ravel() for each in np.meshgrid(ends, ends, [1e-300, 1e-10, 0.3, 0.5, 0.999999])]
    for found in (lax.betainc(a, b, x), lax.igamma(a, b), lax.igammac(a, b)):
        values = np.asarray(found)
        assert not ((values < 0) | (values > 1)).any()
