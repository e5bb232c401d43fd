"""`jet` and `derivatives`: with other transformations, of Python, of types; what they cost."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from math import factorial
from typing import Any

import ml_dtypes
import mpmath
import numpy as np
import pytest

import corejax as cj
import corejax.numpy as jnp
from corejax import lax, taylor
from corejax.errors import CorejaxError, LeakedTracerError, LostDerivativeError


def nested(function: Callable[[Any], Any], x: Any, order: int) -> list[float]:
    """The value and derivatives, by derivatives of derivatives."""
    found = []
    for _ in range(order + 1):
        found.append(float(function(x)))
        function = _derivative(function)
    return found


def _derivative(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda x: cj.jvp(function, (x,), (1.0,))[1]


def floats(found: Any) -> list[float]:
    return [float(d) for d in found]


def mixed(x: Any) -> Any:
    return lax.exp(lax.sin(x)) * x + lax.tanh(x) / (x * x + 1.0)


# What they are

SCALAR: dict[str, tuple[Any, Any, float]] = {
    "exp": (lax.exp, mpmath.exp, 0.3), "log": (lax.log, mpmath.log, 1.7), "sin": (lax.sin, mpmath.sin, 0.4),
    "tan": (lax.tan, mpmath.tan, 0.4), "tanh": (lax.tanh, mpmath.tanh, 0.4), "sqrt": (lax.sqrt, mpmath.sqrt, 1.3),
    "rsqrt": (lax.rsqrt, lambda x: 1 / mpmath.sqrt(x), 1.3), "atan": (lax.atan, mpmath.atan, 0.3),
    "asinh": (lax.asinh, mpmath.asinh, 0.3), "acosh": (lax.acosh, mpmath.acosh, 1.8),
    "atanh": (lax.atanh, mpmath.atanh, 0.3), "erf": (lax.erf, mpmath.erf, 0.4),
    "lgamma": (lax.lgamma, mpmath.loggamma, 2.3), "digamma": (lax.digamma, mpmath.digamma, 2.3),
    "cbrt": (lax.cbrt, mpmath.cbrt, 1.4), "expm1": (lax.expm1, mpmath.expm1, 0.2),
    "log1p": (lax.log1p, mpmath.log1p, 0.2), "logistic": (lax.logistic, lambda x: 1 / (1 + mpmath.exp(-x)), 0.3),
    "pow": (lambda x: lax.pow(x, 1.7), lambda x: x ** mpmath.mpf(1.7), 1.2),
    "reciprocal": (lambda x: 1.0 / x, lambda x: 1 / x, 1.2),
}


@pytest.mark.parametrize("name", SCALAR)
def test_derivatives_to_the_tenth_are_those_of_mpmath(name: str) -> None:
    function, known, x = SCALAR[name]
    with mpmath.workdps(40):
        wanted = [float(c * factorial(k)) for k, c in enumerate(mpmath.taylor(known, mpmath.mpf(x), 10))]
    np.testing.assert_allclose(floats(taylor.derivatives(function, x, 10)), wanted, rtol=1e-11)


def test_a_solution_of_y_prime_equal_to_y_is_its_own_derivative() -> None:
    assert floats(taylor.derivatives(lax.exp, 0.0, 12)) == [1.0] * 13


def test_polynomials_are_exact_at_zero() -> None:
    assert floats(taylor.derivatives(lambda x: x ** 3 - 2.0 * x, 0.0, 5)) == [0.0, -2.0, 0.0, 6.0, 0.0, 0.0]
    assert floats(taylor.derivatives(lambda x: lax.pow(x, 3.0), 0.0, 5)) == [0.0, 0.0, 0.0, 6.0, 0.0, 0.0]
    assert floats(taylor.derivatives(lambda x: lax.pow(x, 2.5), 0.0, 2)) == [0.0, 0.0, 0.0]


def test_a_curve_in_several_arguments_that_are_trees() -> None:
    curve = {"a": [1.0, 0.5, -1.0], "b": [2.0, 0.0, 3.0]}

    def function(d: Any, z: Any) -> Any:
        return {"product": d["a"] * lax.sin(d["b"]) * z, "z": z}

    def along(t: Any) -> Any:
        a, b = [v + t * (v1 + t * v2 / 2) for v, v1, v2 in curve.values()]
        return function({"a": a, "b": b}, 3.0 + t)["product"]

    terms = [{key: c[k] for key, c in curve.items()} for k in (1, 2)]
    out, series = taylor.jet(function, ({key: c[0] for key, c in curve.items()}, 3.0), (terms, [1.0, 0.0]))
    np.testing.assert_allclose([out["product"], *series["product"]], nested(along, 0.0, 2), rtol=1e-13)
    assert (floats(series["z"]), float(out["z"])) == ([1.0, 0.0], 3.0)


def test_coefficients_instead_of_derivatives() -> None:
    _, scaled = taylor.jet(lax.exp, (0.0,), ([1.0, 0.0, 0.0],))
    _, plain = taylor.jet(lax.exp, (0.0,), ([1.0, 0.0, 0.0],), factorial_scaled=False)
    assert (floats(scaled), floats(plain)) == ([1.0, 1.0, 1.0], [1.0, 0.5, 1 / 6])


def test_the_value_is_that_of_the_function() -> None:
    for function in (mixed, lambda x: lax.pow(x, 3.0), lambda x: x ** -3, lambda x: jnp.linalg.norm(x)):
        x = np.array([0.3, 1.7])
        assert np.asarray(function(x)).tobytes() == np.asarray(taylor.jet(function, (x,), ([x, x],))[0]).tobytes()


# Transformed

@pytest.mark.parametrize("how", ["jit of", "jit in", "vmap of", "vmap in", "grad of", "grad in", "jvp in", "jets"])
def test_transformations_nest_in_either_order(how: str) -> None:
    x = 0.7
    wanted = nested(mixed, x, 4)
    got: Any = {
        "jit of": lambda: cj.jit(lambda x: taylor.derivatives(mixed, x, 4))(x),
        "jit in": lambda: taylor.derivatives(cj.jit(mixed), x, 4),
        "vmap of": lambda: [d[1] for d in cj.vmap(lambda x: taylor.derivatives(mixed, x, 4))(np.array([0.1, x]))],
        "vmap in": lambda: [d[1] for d in taylor.derivatives(cj.vmap(mixed), np.array([0.1, x]), 4)],
        "grad of": lambda: [*wanted[:1], *[cj.grad(lambda x, k=k: taylor.derivatives(mixed, x, k)[k])(x)
                                           for k in range(4)]],
        "grad in": lambda: [*wanted[:1], *taylor.derivatives(cj.grad(mixed), x, 3)],
        "jvp in": lambda: [*wanted[:1], *taylor.derivatives(_derivative(mixed), x, 3)],
        "jets": lambda: [*wanted[:2], *taylor.derivatives(lambda x: taylor.derivatives(mixed, x, 2)[2], x, 2)],
    }[how]()
    np.testing.assert_allclose(floats(got), wanted, rtol=1e-12)


def test_the_function_may_close_over_traced_values() -> None:
    def second(a: Any) -> Any:
        return taylor.derivatives(lambda x: x * x * lax.sin(a * x), 2.0, 2)[2]
    assert float(cj.grad(second)(3.0)) == pytest.approx(
        (float(second(3.0 + 1e-5)) - float(second(3.0 - 1e-5))) / 2e-5, rel=1e-7)


@pytest.mark.parametrize("loop", [
    lambda x: lax.fori_loop(0, 3, lambda i, c: c * lax.sin(c), x),
    lambda x: lax.scan(lambda c, _: (lax.sin(c) + c, None), x, None, length=3)[0],
    lambda x: lax.cond(x > 0.0, lambda x: x * lax.exp(x), lambda x: x, x),
    lambda x: lax.while_loop(lambda c: c < 5.0, lambda c: c * c + 1.0, x),
    lambda x: cj.checkpoint(mixed)(x),
], ids=["fori_loop", "scan", "cond", "while_loop", "checkpoint"])
def test_programs_in_params(loop: Callable[[Any], Any]) -> None:
    np.testing.assert_allclose(floats(taylor.derivatives(loop, 0.5, 3)), nested(loop, 0.5, 3), rtol=1e-12)


def test_a_custom_rule_counts() -> None:
    @cj.custom_jvp
    def twice(x: Any) -> Any:
        return lax.sin(x)

    @twice.defjvp
    def _(primals: Any, tangents: Any) -> Any:
        return twice(primals[0]), 2.0 * lax.cos(primals[0]) * tangents[0]

    wanted = nested(twice, 0.5, 4)
    assert wanted[1] == 2.0 * np.cos(0.5)
    np.testing.assert_allclose(floats(taylor.derivatives(twice, 0.5, 4)), wanted, rtol=1e-14)
    np.testing.assert_allclose(floats(taylor.derivatives(cj.jit(twice), 0.5, 4)), wanted, rtol=1e-14)


# In Python

def test_values_decide_in_python() -> None:
    def function(x: Any) -> Any:
        return x * x if x > 0 else -x
    assert floats(taylor.derivatives(function, 3.0, 2)) == [9.0, 6.0, 2.0]
    assert floats(taylor.derivatives(function, -3.0, 2)) == [3.0, -1.0, 0.0]


def test_a_value_shows_itself_and_is_not_given_away(capsys: pytest.CaptureFixture[str]) -> None:
    taylor.derivatives(lambda x: print(x, repr(x), f"{x:.2f}"), 1.5, 1)
    assert capsys.readouterr().out == "1.5 JetTracer<~f64[]: 1.5> 1.50\n"
    for give in (np.asarray, float, lambda x: x.item(), lambda x: x.tolist()):
        with pytest.raises(LostDerivativeError, match="would lose the derivative of x"):
            taylor.derivatives(give, 1.5, 1)
    assert floats(taylor.derivatives(lambda x: float(lax.stop_gradient(x)) * x, 2.0, 1)) == [4.0, 2.0]


def test_a_value_that_outlives_its_jet_is_found() -> None:
    kept: list[Any] = []
    taylor.derivatives(lambda x: kept.append(x), 1.0, 1)
    with pytest.raises(LeakedTracerError):
        kept[0] + 1.0
    with pytest.raises(LeakedTracerError):
        taylor.derivatives(lambda x: kept[0], 1.0, 1)


def test_the_context_is_restored_after_an_error() -> None:
    def fail(x: Any) -> Any:
        raise ZeroDivisionError
    with pytest.raises(ZeroDivisionError):
        taylor.derivatives(fail, 1.0, 2)
    assert float(lax.sin(0.0)) == 0.0


def test_a_primitive_without_derivative_says_so_itself() -> None:
    with pytest.raises(CorejaxError, match="polygamma"):
        taylor.derivatives(lambda m: lax.polygamma(m, 2.0), 1.0, 2)


# Types

@pytest.mark.parametrize("dtype", [np.float32, np.complex64, np.complex128, ml_dtypes.bfloat16])
def test_series_have_the_dtype_of_the_value(dtype: Any) -> None:
    x = np.asarray([0.5, 0.25]).astype(dtype)
    out, series = taylor.jet(mixed, (x,), ([x, x],))
    assert [np.dtype(dtype)] * 3 == [out.dtype, *[c.dtype for c in series]]


def test_series_are_weak_where_the_value_is() -> None:
    out, (first, second) = taylor.jet(lambda x: x * x, (2.0,), ([1.0, 0.0],))
    assert (out.weak_type, first.weak_type, second.weak_type) == (True, True, True)
    assert not any([d.weak_type for d in taylor.derivatives(mixed, np.float64(2.0), 2)])


def test_shapes_of_any_rank_and_no_elements() -> None:
    for shape in ((), (0,), (2, 0), (2, 3)):
        x = np.full(shape, 0.5)
        found = taylor.derivatives(mixed, x, 3)
        assert [shape] * 4 == [d.shape for d in found]
        wanted = nested(mixed, 0.5, 3)
        assert all([np.allclose(d, w) for d, w in zip(found, wanted, strict=True)])


def test_constants_and_integers_have_zero_series() -> None:
    out, series = taylor.jet(lambda x: (3, lax.floor(x), x.astype(int), 2.5), (1.5,), ([1.0],))
    assert [float(x) for x in out] == [3.0, 1.0, 1.0, 2.5]
    assert [c[0].dtype for c in series] == [cj.float0, np.float64, cj.float0, np.float64]
    assert float(series[1][0]) == float(series[3][0]) == 0.0


def test_an_integer_argument_beside_others() -> None:
    out, series = taylor.jet(lambda x, n: x ** 2 * n, (1.5, 3), ([1.0, 0.0], [np.zeros((), cj.float0)] * 2))
    assert (float(out), floats(series)) == (6.75, [9.0, 6.0])


# Cost

def _count(function: Callable[[Any], Any], order: int) -> int:
    return len(cj.make_jaxpr(lambda x: taylor.derivatives(function, x, order))(0.3).eqns)


def test_the_cost_grows_with_the_square_of_the_order() -> None:
    steps = [lax.sin, lax.exp, lax.tanh, lambda x: x * x, lax.logistic, lax.cos, lambda x: 1.0 / (x + 2.0), lax.atan,
             lambda x: lax.sqrt(x + 3.0), lax.erf]
    counts = [_count(lambda x: reduce(lambda y, step: step(y), steps, x), order) for order in range(1, 13)]
    differences = np.diff(counts, 3)  # of a polynomial of degree 2: none, but for what is halved
    assert counts[11] < 4.2 * counts[5]
    assert np.abs(differences).max() < 0.05 * counts[11]


def test_nested_derivatives_grow_exponentially_and_series_do_not() -> None:
    def by_nesting(order: int) -> int:
        function: Any = mixed
        for _ in range(order):
            function = _derivative(function)
        return len(cj.make_jaxpr(function)(0.3).eqns)
    assert by_nesting(6) > 20 * by_nesting(2)
    assert _count(mixed, 6) < 6 * _count(mixed, 2)


def test_a_jet_leaves_no_garbage() -> None:
    import gc
    taylor.derivatives(mixed, 0.5, 4)
    gc.collect()
    gc.disable()
    try:
        taylor.derivatives(mixed, 0.5, 4)
        assert gc.collect() == 0
    finally:
        gc.enable()


@pytest.mark.parametrize("f, x", [
    (lambda r: 4.0 * (r ** -12 - r ** -6), np.float32(1e4)), (lambda x: (x + 1.0) ** -6.0, np.float16(7)),
    (lambda x: x ** -60.0, np.float32(5)), (lambda x: lax.integer_pow(x, -2), np.float64(0))])
def test_negative_powers_neither_overflow_nor_vanish_on_the_way(f: Any, x: Any) -> None:
    _, (slope,) = taylor.jet(f, (x,), ([np.ones_like(x)],))
    np.testing.assert_allclose(slope, cj.jvp(f, (x,), (np.ones_like(x),))[1], rtol=1e-2, atol=1e-37)


def test_reverse_mode_through_powers_at_zero() -> None:
    for f in (lambda y: y ** 2.5, lambda y: lax.reduce_sum(y[None] ** 2.5, axes=(0,))):
        assert 0.0 == cj.grad(lambda x, f=f: taylor.derivatives(f, x, 1)[1])(0.0).item()


def test_powers_at_zero() -> None:
    assert [0.0, 0.0, 2.0, 0.0] == [d.item() for d in taylor.derivatives(lambda x: x ** 2.0, 0.0, 3)]
    assert [0.0, 0.0, 0.0] == [d.item() for d in taylor.derivatives(lambda x: x ** 3.5, 0.0, 2)]


@pytest.mark.parametrize("dtype, most", [("float16", 7), ("float32", 33), ("float64", 170), ("bfloat16", 33)])
def test_orders_whose_factorials_are_too_large_are_refused(dtype: str, most: int) -> None:
    x = np.asarray(1.0).astype(cj.dtypes.bfloat16 if dtype == "bfloat16" else dtype)
    assert most + 1 == len(taylor.derivatives(lambda x: x, x, most))
    with pytest.raises(CorejaxError, match=f"derivatives of order {most + 1} are too many for {dtype}"):
        taylor.derivatives(lambda x: x, x, most + 1)
    zeros = [np.zeros_like(x)] * most
    _, terms = taylor.jet(lambda x: x, (x,), ([*zeros, np.ones_like(x)],), factorial_scaled=False)
    assert 1.0 == float(terms[-1])


def test_integers_may_have_zeros_and_numbers_spread() -> None:
    y, (dy,) = taylor.jet(lambda x, n: x * n, (2.0, 3), ([1.0], [0]))
    assert (6.0, 3.0) == (y.item(), dy.item())
    _, (dy,) = taylor.jet(lax.sin, (np.zeros(2),), ([1.0],))
    assert [1.0, 1.0] == dy.tolist()
