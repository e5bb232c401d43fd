"""Reductions as functions: values, dtypes, singular inputs, refusals; eager and compiled, against NumPy."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import corejax as cj
from corejax import lax
from corejax.core import ShapedArray
from corejax.errors import CorejaxError

REDUCTIONS = {
    "reduce_sum": np.add, "reduce_prod": np.multiply, "reduce_max": np.maximum, "reduce_min": np.minimum,
    "reduce_and": np.bitwise_and, "reduce_or": np.bitwise_or,
}
NUMERIC = ["reduce_sum", "reduce_prod", "reduce_max", "reduce_min"]
@pytest.fixture
def rng():
    return np.random.default_rng(0)


def both_ways(fun, *args):
    """The result evaluated eagerly, and compiled; they have one type."""
    eager, compiled = fun(*args), cj.jit(fun)(*args)
    assert (eager.shape, eager.dtype) == (compiled.shape, compiled.dtype)
    return np.asarray(eager), np.asarray(compiled)


def operand(rng, name, shape, dtype):
    if name in ("reduce_and", "reduce_or"):
        return rng.integers(0, 100, shape).astype(dtype)
    if np.dtype(dtype).kind == "c":
        return (rng.standard_normal(shape) + 1j * rng.standard_normal(shape)).astype(dtype)
    return (rng.standard_normal(shape) * 3).astype(dtype)


@pytest.mark.parametrize("name", REDUCTIONS)
@pytest.mark.parametrize("axes", [(0, -1), (1,), ()])
def test_reductions_agree_with_numpy(rng, name, axes):
    x = operand(rng, name, (2, 3, 4), np.int64 if name in ("reduce_and", "reduce_or") else np.float64)
    for got in both_ways(lambda x: getattr(lax, name)(x, axes), x):
        np.testing.assert_allclose(got, REDUCTIONS[name].reduce(x, axis=axes), rtol=1e-12, strict=True)


def test_integer_sums_wrap_around():
    x = np.full(5, 100, np.int8)
    for got in both_ways(lambda x: lax.reduce_sum(x, (0,)), x):
        np.testing.assert_array_equal(got, np.int8(-12), strict=True)


@pytest.mark.parametrize("dtype", [ml_dtypes.bfloat16, np.float16])
@pytest.mark.parametrize("name", ["reduce_sum", "cumsum"])
def test_sums_of_narrow_floats_accumulate_in_float32(rng, dtype, name):
    x = rng.random(3000).astype(dtype)
    if name == "cumsum":
        wanted = np.cumsum(x.astype(np.float32)).astype(dtype)
        got_both = both_ways(lax.cumsum, x)
    else:
        wanted = x.astype(np.float32).sum().astype(dtype)
        got_both = both_ways(lambda x: lax.reduce_sum(x, (0,)), x)
    for got in got_both:
        assert got.dtype == dtype
        np.testing.assert_allclose(got.astype(np.float64), np.asarray(wanted, np.float64), rtol=1e-2)


@pytest.mark.parametrize("name", ["reduce_max", "reduce_min"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16, ml_dtypes.bfloat16])
def test_nan_wins_over_every_number(name, dtype):
    x = np.array([[1, np.nan, -3], [np.inf, 2, -np.inf]], dtype)
    for got in both_ways(lambda x: getattr(lax, name)(x, (1,)), x):
        assert [True, False] == np.isnan(got).tolist()


@pytest.mark.parametrize("name", ["reduce_max", "reduce_min"])
def test_complex_numbers_are_ordered_by_real_then_imaginary_part(name):
    x = np.array([1 + 5j, 3 - 1j, 3 + 2j, 1 - 7j])
    wanted = {"reduce_max": 3 + 2j, "reduce_min": 1 - 7j}[name]
    for got in both_ways(lambda x: getattr(lax, name)(x, (0,)), x):
        assert wanted == got


@pytest.mark.parametrize("name", ["reduce_max", "reduce_min", "reduce_or", "reduce_and"])
def test_booleans_reduce(name):
    x = np.array([[True, False], [True, True]])
    wanted = (np.any if name in ("reduce_max", "reduce_or") else np.all)(x, axis=0)
    for got in both_ways(lambda x: getattr(lax, name)(x, (0,)), x):
        np.testing.assert_array_equal(got, wanted, strict=True)


@pytest.mark.parametrize(("name", "dtype", "identity"), [
    ("reduce_sum", np.int8, 0), ("reduce_prod", np.float32, 1), ("reduce_max", np.int16, -2**15),
    ("reduce_max", np.uint8, 0), ("reduce_min", np.uint8, 255), ("reduce_max", np.float32, -np.inf),
    ("reduce_min", ml_dtypes.bfloat16, np.inf), ("reduce_max", np.bool_, False), ("reduce_min", np.bool_, True),
    ("reduce_and", np.bool_, True), ("reduce_and", np.uint8, 255), ("reduce_and", np.int32, -1),
    ("reduce_or", np.bool_, False)])
def test_a_reduction_of_nothing_gives_the_identity(name, dtype, identity):
    for got in both_ways(lambda x: getattr(lax, name)(x, (0,)), np.zeros((0, 2), dtype)):
        assert (np.dtype(dtype), (2,)) == (got.dtype, got.shape)
        assert [identity, identity] == got.tolist()


@pytest.mark.parametrize("name", ["argmax", "argmin"])
def test_positions_along_an_axis_counted_from_the_end(rng, name):
    x = rng.integers(0, 4, (5, 6, 7))
    for got in both_ways(lambda x: getattr(lax, name)(x, -2, np.uint8), x):
        np.testing.assert_array_equal(got, getattr(np, name)(x, -2).astype(np.uint8), strict=True)


@pytest.mark.parametrize("name", ["argmax", "argmin"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32, ml_dtypes.bfloat16])
def test_the_first_nan_is_the_position_and_the_first_of_ties(name, dtype):
    x = np.array([[1, np.nan, 3, np.nan], [2, 2, 2, 2], [np.inf, -np.inf, np.inf, -np.inf]], dtype)
    wanted = [1, 0, 0 if name == "argmax" else 1]
    for got in both_ways(lambda x: getattr(lax, name)(x, 1, np.int32), x):
        assert wanted == got.tolist()


@pytest.mark.parametrize("name", ["argmax", "argmin"])
def test_the_first_of_many_nans_is_found_in_a_long_array(name):
    x = np.arange(100_000.0)
    x[[500, 77, 99_000]] = np.nan
    for got in both_ways(lambda x: getattr(lax, name)(x, 0, np.int64), x):
        assert 77 == got


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("dtype", [np.float64, np.int8, np.complex64])
def test_cumsum_of_many_elements_agrees_with_numpy_along_every_axis(rng, reverse, dtype):
    shape = 2, 1000
    x = operand(rng, "cumsum", shape, dtype)
    for axis in range(-len(shape), len(shape)):
        flipped = np.flip(x, axis) if reverse else x
        wanted = np.cumsum(flipped, axis, dtype=dtype)
        wanted = np.flip(wanted, axis) if reverse else wanted
        for got in both_ways(lambda x: lax.cumsum(x, axis, reverse=reverse), x):  # noqa: B023
            np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-5, strict=True)


def test_cumsum_compiles_to_a_program_of_constant_size():
    sizes = [len(cj.jit(lax.cumsum).lower(np.zeros(n)).as_text()) for n in (100, 100_000)]
    assert sizes[1] - sizes[0] < 200


def test_axes_may_be_negative_or_a_list_or_one_integer():
    x = np.arange(6.0).reshape(2, 3)
    for axes in [(-1,), [1], 1, -1]:
        assert [3.0, 12.0] == lax.reduce_sum(x, axes).tolist()


def test_weak_types_stay_weak():
    assert "~f64[]" in str(cj.make_jaxpr(lambda x: lax.reduce_sum(x, ()))(1.0).jaxpr.outvars[0].aval)
    assert not cj.make_jaxpr(lambda x: lax.reduce_sum(x, (0,)))(np.ones(3)).jaxpr.outvars[0].aval.weak_type


def test_a_reduction_is_one_equation_with_the_params_of_jax():
    (eqn,) = cj.make_jaxpr(lambda x: lax.reduce_max(x, (1, 0)))(np.ones((2, 3))).eqns
    assert ("reduce_max", {"axes": (0, 1)}) == (eqn.primitive.name, dict(eqn.params))
    (eqn,) = cj.make_jaxpr(lambda x: lax.argmin(x, 1, np.int32))(np.ones((2, 3))).eqns
    assert ("argmin", {"axes": (1,), "index_dtype": np.dtype(np.int32)}) == (eqn.primitive.name, dict(eqn.params))
    assert [ShapedArray((2,), np.int32)] == [v.aval for v in eqn.outvars]


X = np.ones((2, 3))


@pytest.mark.parametrize(("call", "kind", "message"), [
    (lambda: lax.reduce_sum(X, (2,)), IndexError, "axis 2 is out of bounds for 2 dimensions"),
    (lambda: lax.reduce_sum(X, (0, -2)), ValueError, "an axis appears twice"),
    (lambda: lax.reduce_sum(X, (0.5,)), TypeError, "an axis must be an integer"),
    (lambda: lax.reduce_sum(np.ones(3, bool), (0,)), TypeError, "dtype bool can't be reduced this way"),
    (lambda: lax.reduce_or(X, (0,)), TypeError, "compare first"),
    (lambda: lax.argmax(X, 2, np.int32), IndexError, "axis 2 is out of bounds"),
    (lambda: lax.argmax(X, 0, np.float32), TypeError, "positions must be integers"),
    (lambda: lax.argmax(X.astype(complex), 0, np.int32), TypeError, "complex numbers"),
    (lambda: lax.argmax(np.ones((0, 3)), 0, np.int32), ValueError, "no element to find"),
    (lambda: lax.argmax(np.ones(300), 0, np.int8), ValueError, "can't count to 299"),
    (lambda: lax.cumsum(X, 2), IndexError, "axis 2 is out of bounds"),
    (lambda: lax.cumsum(np.ones(3, bool)), TypeError, "dtype bool"),
    (lambda: lax.reduce_sum.primitive.bind(X, axes=(-1,)), IndexError, "not distinct axes"),
    (lambda: lax.reduce_sum.primitive.bind(X, axes=(0, 0)), IndexError, "not distinct axes"),
    (lambda: lax.argmax.primitive.bind(X, axes=(0, 1), index_dtype=np.dtype(np.int32)), TypeError, "exactly one axis")])
def test_wrong_operands_and_params_are_refused_by_name(call, kind, message):
    with pytest.raises(kind, match=message) as caught:
        call()
    assert isinstance(caught.value, CorejaxError)
    assert caught.value.todo


@pytest.mark.parametrize("name", [*NUMERIC, "argmax", "cumsum"])
def test_reductions_agree_with_jax(rng, name):
    jax = pytest.importorskip("jax")
    jax.config.update("jax_enable_x64", True)
    for dtype in (np.float64, np.float32, np.int32, np.uint8, np.float16):
        x = operand(rng, name, (4, 5), dtype)
        arguments = {"argmax": (1, np.int32), "cumsum": (1,)}.get(name, ((1,),))
        wanted = np.asarray(getattr(jax.lax, name)(x, *arguments))
        for got in both_ways(lambda x: getattr(lax, name)(x, *arguments), x):  # noqa: B023
            np.testing.assert_allclose(got, wanted, rtol=1e-2 if dtype == np.float16 else 1e-5, strict=True)
