"""Elementwise functions, what no law says of them: promotion, refusals, ties and singular points, conventions."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import corejax as cj
import corejax_lax_basic as basic
from corejax import lax
from corejax.core import Linear, aval_of
from corejax.packs import families
from corejax_lax_basic import (
    arithmetic,
    comparison,
    complex_parts,
    conversion,
    exponential,
    logic,
    rounding,
    selection,
    trigonometric,
)

MODULES = (arithmetic, comparison, complex_parts, conversion, exponential, logic, rounding, selection, trigonometric)
PRIMITIVES = {
    function.primitive.name: function.primitive
    for module in MODULES for function in [getattr(module, name) for name in module.__all__]
    if hasattr(function, "primitive")}


def test_scalars_take_the_dtype_of_the_array_beside_them_and_stay_weak():
    x = np.ones(3, np.float32)
    assert "f32[3]" == str(lax.add(x, 1).aval)
    assert "f32[3]" == str(lax.mul(2.0, x).aval)
    assert "~f64[]" == str(lax.add(1.0, 2.0).aval)
    assert "~f64[3]" == str(lax.full((3,), 1.0).aval)


def test_a_scalar_beyond_the_kind_of_the_array_is_refused():
    with pytest.raises(TypeError, match="add: operands differ in dtype"):
        lax.add(np.ones(3, np.int32), 1.5)
    with pytest.raises(OverflowError, match="300 doesn't fit"):
        lax.add(np.ones(3, np.int8), 300)


def test_arrays_of_different_dtype_or_shape_are_refused_by_name():
    with pytest.raises(TypeError, match=r"(?s)mul: operands differ in dtype.*f32\[3\], f64\[3\]"):
        lax.mul(np.ones(3, np.float32), np.ones(3))
    with pytest.raises(TypeError, match=r"(?s)mul: operands differ in shape.*f64\[3\], f64\[4\]"):
        lax.mul(np.ones(3), np.ones(4))


def test_a_scalar_operand_spreads_in_one_equation():
    jaxpr = cj.make_jaxpr(lambda x: x * 2.0)(np.ones(3, np.float32))
    assert ["mul"] == [eqn.primitive.name for eqn in jaxpr.eqns]


def test_the_gradient_of_a_spread_scalar_is_a_sum():
    x, y = np.float64(2.0), np.arange(3.0)
    assert 3.0 == float(cj.grad(lambda x: (x * y).sum())(x))
    assert 3.0 == float(cj.grad(lambda x: (x + y).sum())(x))
    assert -3.0 == float(cj.grad(lambda x: lax.sub(y, x).sum())(x))


def test_integer_division_follows_the_compiler():
    x, y = np.array([7, -7, 5, -2**31, 0], np.int32), np.array([2, 2, 0, -1, 0], np.int32)
    assert [3, -3, -1, -2**31, -1] == lax.div(x, y).tolist()
    assert [1, -1, 5, 0, 0] == lax.rem(x, y).tolist()
    assert [255] == lax.div(np.array([9], np.uint8), np.array([0], np.uint8)).tolist()


def test_derivatives_at_ties_and_singular_points():
    grad = cj.grad
    assert (0.5, 0.5) == tuple(map(float, grad(lax.max, (0, 1))(1.0, 1.0)))
    assert (0.5, 0.5) == tuple(map(float, grad(lax.min, (0, 1))(1.0, 1.0)))
    assert 1.0 == float(grad(lax.abs)(0.0))
    assert np.inf == float(grad(lax.sqrt)(0.0))
    assert 0.0 == float(grad(lax.pow, 1)(0.0, 0.0))
    assert np.isnan(float(grad(lax.pow)(0.0, 0.0)))
    assert 0.0 == float(grad(lambda x: lax.integer_pow(x, 0))(0.0))
    assert 0.0 == float(grad(lax.sign)(2.0))


def test_select_n_chooses_by_index_and_clamps_it():
    which = np.array([-1, 0, 1, 2, 5], np.int32)
    cases = [np.full(5, float(i)) for i in range(3)]
    assert [0.0, 0.0, 1.0, 2.0, 2.0] == lax.select_n(which, *cases).tolist()
    assert [0.0, 0.0, 1.0, 2.0, 2.0] == cj.jit(lax.select_n)(which, *cases).tolist()


def test_conversion_saturates_and_has_no_nan():
    x = np.array([np.nan, np.inf, -np.inf, 1e20, -3.7])
    assert [0, 127, -128, 127, -3] == lax.convert_element_type(x, np.int8).tolist()
    assert [0, 255, 0, 255, 0] == lax.convert_element_type(x, np.uint8).tolist()
    assert [0, 127, -128, 127, -3] == cj.jit(lambda x: lax.convert_element_type(x, np.int8))(x).tolist()


def test_rounding_methods():
    x = np.array([-2.5, -0.5, 0.5, 1.5, 2.4])
    assert [-3.0, -1.0, 1.0, 2.0, 2.0] == lax.round(x).tolist()
    assert [-2.0, -0.0, 0.0, 2.0, 2.0] == lax.round(x, lax.RoundingMethod.TO_NEAREST_EVEN).tolist()


def test_a_batched_scalar_beside_an_unbatched_vector():
    got = cj.vmap(lax.mul, in_axes=(0, None))(np.arange(2.0), np.arange(3.0))
    assert [[0.0, 0.0, 0.0], [0.0, 1.0, 2.0]] == got.tolist()


def test_the_facade_has_what_the_modules_have():
    for module in MODULES:
        assert set(module.__all__) <= set(basic.__all__)


def test_every_primitive_of_a_family_declares_what_it_is_not():
    for name, primitive in PRIMITIVES.items():
        assert primitive.vmap is not None and primitive.transpose is not None, name
    with pytest.raises(NotImplementedError, match="sin .* is not linear"):
        PRIMITIVES["sin"].transpose(np.ones(3), [Linear(aval_of(np.ones(3)))])


@pytest.mark.parametrize("dtype", ["float16", "float32", "complex64"])
def test_a_number_beyond_a_float_dtype_is_infinite_without_a_warning(dtype):
    x = np.ones(3, dtype)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for found in (cj.device_put(x) * 1e300, cj.jit(lambda x: x * 1e300)(x)):
            assert dtype == found.dtype and np.isinf(np.asarray(found)).all()


def test_weak_scalar_refuses_kinds_beyond_the_dtype():
    assert families.weak_scalar(1.5, np.dtype(np.int32)) is None
    assert "~i32[]" == str(families.weak_scalar(1, np.dtype(np.int32)).aval)
