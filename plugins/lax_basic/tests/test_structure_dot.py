"""dot_general and the products made of it, against einsum and matmul."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.testing import assert_allclose

import corejax as cj
from corejax import lax
from corejax.errors import CorejaxTypeError
from corejax_lax_basic.linear_algebra import matmul
from value_checks import check_value

RNG = np.random.default_rng(0)

def test_dot_general_is_a_sum_of_products() -> None:
    x, y = RNG.standard_normal((2, 3, 4, 5)), RNG.standard_normal((3, 5, 2, 6))
    check_value(lambda x, y: lax.dot_general(x, y, (((3,), (1,)), ((1, 0), (0, 2)))), [x, y],
                np.einsum("yzab,zbyc->zyac", x, y))


@pytest.mark.parametrize(("dtype", "preferred"), [(np.int8, np.int32), (ml_dtypes.bfloat16, np.float32),
                                                  (np.float32, np.float64), (np.int8, np.float32),
                                                  (np.float16, np.float32)])
def test_preferred_element_type_is_what_comes_out(dtype: Any, preferred: Any) -> None:
    x, y = (RNG.integers(-90, 90, shape).astype(dtype) for shape in ((4, 7), (7, 3)))
    expected = x.astype(np.float64) @ y.astype(np.float64)
    check_value(lambda x, y: lax.dot(x, y, preferred_element_type=preferred), [x, y], expected.astype(preferred))


def test_gradients_of_narrow_operands_keep_their_dtype() -> None:
    x, y = (RNG.standard_normal(shape).astype(ml_dtypes.bfloat16) for shape in ((4, 7), (7, 3)))
    out, back = cj.vjp(lambda x, y: lax.dot(x, y, preferred_element_type=np.float32), x, y)
    assert out.dtype == np.float32
    x_bar, y_bar = back(np.ones((4, 3), np.float32))
    assert (x_bar.dtype, y_bar.dtype) == (x.dtype, y.dtype)
    assert_allclose(np.asarray(x_bar, np.float64), np.ones((4, 3)) @ y.astype(np.float64).T, rtol=2e-2)


def test_complex_gradients_are_not_conjugated() -> None:
    x, y = (RNG.standard_normal(3) + 1j * RNG.standard_normal(3) for _ in range(2))
    x_bar, y_bar = cj.vjp(lax.dot, x, y)[1](np.complex128(1))
    assert_allclose(np.asarray(x_bar), y)
    assert_allclose(np.asarray(y_bar), x)


@pytest.mark.parametrize("precision", ["highest", "default", ("high", "highest"), None])
def test_precision_is_accepted(precision: Any) -> None:
    x, y = RNG.standard_normal((2, 3)), RNG.standard_normal((3, 4))
    check_value(lambda x, y: lax.dot(x, y, precision=precision), [x, y], x @ y)


def test_precision_stays_with_its_operand_where_a_map_swaps_them() -> None:
    x, y = RNG.standard_normal((2, 3)), RNG.standard_normal((5, 3))
    mapped = cj.vmap(lambda b: lax.dot(x, b, precision=("highest", "default")))
    (eqn,) = cj.make_jaxpr(mapped)(y).eqns
    assert [(5, 3), (2, 3)] == [var.aval.shape for var in eqn.invars]
    assert ("DEFAULT", "HIGHEST") == eqn.params["precision"]


def test_batch_matmul() -> None:
    x, y = RNG.standard_normal((5, 2, 3)), RNG.standard_normal((5, 3, 4))
    check_value(lax.batch_matmul, [x, y], x @ y)


@pytest.mark.parametrize(("left", "right"), [
    ((3,), (3,)), ((2, 3), (3,)), ((3,), (3, 2)), ((2, 3), (3, 4)), ((5, 2, 3), (3, 4)), ((2, 3), (5, 3, 4)),
    ((5, 2, 3), (5, 3, 4)), ((5, 1, 2, 3), (4, 3, 2)), ((1, 2, 3), (5, 3, 4)), ((5, 2, 3), (1, 3, 4)),
    ((3,), (5, 3, 4)),
    ((5, 2, 3), (3,)), ((1, 2, 3), (1, 3, 4)), ((4, 1, 2, 3), (1, 5, 3, 2)), ((0, 2, 3), (3, 4))])
def test_matmul_broadcasts_as_numpy_does(left: Any, right: Any) -> None:
    x, y = RNG.standard_normal(left), RNG.standard_normal(right)
    check_value(matmul, [x, y], np.matmul(x, y))


A, B = np.ones((2, 3)), np.ones((3, 4))


@pytest.mark.parametrize(("call", "text"), [
    (lambda: lax.dot_general(A, A, (((1,), (0,)), ((), ()))), "contracting axes differ in size"),
    (lambda: lax.dot_general(A, B, (((2,), (0,)), ((), ()))), "must be distinct axes"),
    (lambda: lax.dot_general(A, B, ((1, 0), ())), "the wrong form"),
    (lambda: lax.dot_general(A, B.astype(np.float32), (((1,), (0,)), ((), ()))), "differ in dtype"),
    (lambda: lax.dot(A.astype("int32"), B.astype("int32"), preferred_element_type=np.int8), "preferred_element_type"),
    (lambda: lax.dot(A, B, preferred_element_type=np.int64), "preferred_element_type"),
    (lambda: lax.dot(A, B, precision="best"), "unknown precision"),
    (lambda: lax.dot(A, A), "dot: .*that fit"),
    (lambda: lax.batch_matmul(np.ones(3), np.ones(3)), "batch_matmul"),
    (lambda: matmul(np.float64(1), A), "matmul"),
    (lambda: matmul(A, A), "matmul"),
])
def test_wrong_use_is_refused_by_name(call: Any, text: str) -> None:
    with pytest.raises(CorejaxTypeError, match=text):
        call()


@pytest.mark.parametrize(("dtype", "preferred", "tolerance"), [
    ("float64", "float32", 1e-6), ("float32", "float16", 1e-3), ("complex128", "complex64", 1e-6)])
def test_a_narrower_element_type_rounds_what_was_summed_in_the_operands(dtype, preferred, tolerance):
    x, y = [RNG.uniform(0.5, 1.5, shape).astype(dtype) for shape in ((3, 40), (40, 2))]
    for function in (lax.dot, cj.jit(lax.dot, static_argnames="preferred_element_type")):
        got = function(x, y, preferred_element_type=preferred)
        assert preferred == got.dtype
        np.testing.assert_allclose(np.asarray(got), x @ y, rtol=tolerance)
