"""Levels and algorithms of products: their values, evaluated and compiled, and under the transformations."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import corejax as cj
from corejax import lax
from corejax.errors import CorejaxError, CorejaxValueError

RNG = np.random.default_rng(0)
X, Y = RNG.standard_normal((4, 6)), RNG.standard_normal((6, 3))
MATMUL = (((1,), (0,)), ((), ()))


def precision_of(fun: Any, *args: Any) -> list[Any]:
    """The precisions of all products in a program."""
    return [eqn.params["precision"] for eqn in cj.make_jaxpr(fun)(*args).eqns if eqn.primitive.name == "dot_general"]


@pytest.mark.parametrize(("precision", "written"), [
    (None, None), ("default", ("DEFAULT", "DEFAULT")), ("fastest", ("DEFAULT", "DEFAULT")),
    ("bfloat16", ("DEFAULT", "DEFAULT")), ("high", ("HIGH", "HIGH")), ("bfloat16_3x", ("HIGH", "HIGH")),
    ("tensorfloat32", ("HIGH", "HIGH")), ("float32", ("HIGHEST", "HIGHEST")), (lax.Precision.HIGH, ("HIGH", "HIGH")),
    ((lax.Precision.HIGH, lax.Precision.HIGHEST), ("HIGH", "HIGHEST")), (["high", "default"], ("HIGH", "DEFAULT")),
    (lax.DotAlgorithmPreset.DEFAULT, None), (lax.DotAlgorithmPreset.F32_F32_F32, "F32_F32_F32"),
    ("TF32_TF32_F32", "TF32_TF32_F32"),
    (lax.DotAlgorithm("float32", np.float32, "f4"), (np.dtype("f4"),) * 3 + (1, 1, 1, False))])
def test_a_precision_has_one_form_in_programs(precision: Any, written: Any) -> None:
    (found,) = precision_of(lambda x, y: lax.dot(x, y, precision=precision), X, Y)
    assert written == found
    closed = cj.make_jaxpr(lambda x, y: lax.dot(x, y, precision=precision))(X, Y)
    (again,) = precision_of(lambda x, y: lax.dot_general(x, y, MATMUL, precision=found), X, Y)
    assert written == again
    assert str(closed.jaxpr) == str(cj.ir.parse_jaxpr(str(closed.jaxpr)))


def test_names_of_levels() -> None:
    assert lax.Precision.HIGH is lax.Precision("tensorfloat32") and lax.Precision.DEFAULT is lax.Precision(None)
    assert ("HIGHEST", "Precision.HIGHEST") == (str(lax.Precision.HIGHEST), repr(lax.Precision.HIGHEST))
    with pytest.raises(ValueError, match="exact"):
        lax.Precision("exact")


@pytest.mark.parametrize(("precision", "rounded", "wanted"), [
    ("F64_F64_F64", np.float64, np.float64), ("F32_F32_F32", np.float32, np.float32),
    ("BF16_BF16_F32", ml_dtypes.bfloat16, np.float32), ("BF16_BF16_F32_X3", np.float32, np.float32),
    ("F16_F16_F16", np.float16, np.float16), (lax.DotAlgorithm("f2", "f2", "f2"), np.float16, np.float16)])
@pytest.mark.parametrize("call", [lambda f: f, cj.jit])
def test_algorithms_round_what_they_say(precision: Any, rounded: Any, wanted: Any, call: Any) -> None:
    out = call(lambda x, y: lax.dot(x, y, precision=precision))(X, Y)
    exact = X.astype(rounded).astype(np.float64) @ Y.astype(rounded).astype(np.float64)
    assert np.float64 == out.dtype
    eps = float(ml_dtypes.finfo(wanted).eps)
    assert_allclose(np.asarray(out), exact, rtol=0, atol=8 * eps)
    assert_array_equal(np.asarray(out), np.asarray(out).astype(wanted).astype(np.float64))


@pytest.mark.parametrize("preferred", [np.float32, np.float16, np.float64])
def test_the_result_has_the_preferred_type(preferred: Any) -> None:
    x, y = X.astype(np.float16), Y.astype(np.float16)
    for call in (lambda f: f, cj.jit):
        out = call(lambda x, y: lax.dot(x, y, precision="F32_F32_F32", preferred_element_type=preferred))(x, y)
        assert preferred == out.dtype
        assert_allclose(np.asarray(out, np.float64), x.astype(float) @ y.astype(float), rtol=0, atol=5e-3)


@pytest.mark.parametrize("precision", ["F16_F16_F32", "TF32_TF32_F32", "TF32_TF32_F32_X3", "BF16_BF16_BF16",
                                       "BF16_BF16_F32_X9", lax.DotAlgorithm("f2", "f2", "f4")])
def test_what_the_cpu_would_ignore_is_refused(precision: Any) -> None:
    for call in (lambda f: f, cj.jit):
        with pytest.raises(CorejaxValueError, match="there is no algorithm .* on the CPU"):
            call(lambda x, y: lax.dot(x, y, precision=precision))(X, Y)


def test_eight_bit_floats_are_asked_for() -> None:
    with pytest.raises(CorejaxError, match="8-bit floats"):
        lax.dot(X, Y, precision="ANY_F8_ANY_F8_F32")
    x, y = X.astype(ml_dtypes.float8_e4m3fn), Y.astype(ml_dtypes.float8_e5m2)
    closed = cj.make_jaxpr(lambda x, y: lax.dot(x, y, precision="ANY_F8_ANY_F8_ANY", preferred_element_type="f4"))(x, y)
    assert [np.float32] == [aval.dtype for aval in closed.out_avals]


@pytest.mark.parametrize("precision", ["F64_F64_F64", ("HIGH", "HIGHEST"), lax.DotAlgorithm("f8", "f8", "f8")])
def test_derivatives_and_maps_keep_the_precision(precision: Any) -> None:
    def loss(x: Any, y: Any) -> Any:
        return (lax.dot(x, y, precision=precision) ** 2).sum()

    (own,) = precision_of(loss, X, Y)
    assert [own] * 3 == precision_of(cj.grad(loss, (0, 1)), X, Y)
    assert [own] * 3 == precision_of(lambda x, y: cj.jvp(loss, (x, y), (x, y)), X, Y)
    assert [own] == precision_of(cj.vmap(loss, (-1, None)), np.stack([X] * 2, -1), Y)
    x_bar, y_bar = cj.grad(loss, (0, 1))(X, Y)
    assert_allclose(np.asarray(x_bar), 2 * (X @ Y) @ Y.T)
    assert_allclose(np.asarray(y_bar), X.T @ (2 * X @ Y))


def test_an_algorithm_is_exchanged_with_its_operands() -> None:
    algorithm = lax.DotAlgorithm(ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2, "f4")
    x, y = np.ones((4, 6), ml_dtypes.float8_e4m3fn), np.ones((3, 6), ml_dtypes.float8_e4m3fn)
    (found,) = precision_of(cj.vmap(lambda y: lax.dot(x, y, precision=algorithm)), y)
    assert (np.dtype(ml_dtypes.float8_e5m2), np.dtype(ml_dtypes.float8_e4m3fn)) == found[:2]


@pytest.mark.parametrize("algorithm", [
    lax.DotAlgorithm("f4", "f4", "f8"), lax.DotAlgorithm("f4", "f8", "f8"), lax.DotAlgorithm("i1", "i1", "i4"),
    lax.DotAlgorithm("f4", "f4", "f4", 1, 1, 3), lax.DotAlgorithm("f4", "f4", "f4", 2),
    lax.DotAlgorithm("f4", "f4", "f4", allow_imprecise_accumulation=True)])
def test_algorithms_that_no_device_has_are_refused(algorithm: Any) -> None:
    with pytest.raises(CorejaxError, match="there is no such algorithm"):
        cj.make_jaxpr(lambda x, y: lax.dot(x, y, precision=algorithm))(X, Y)
