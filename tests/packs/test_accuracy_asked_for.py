"""The option `accuracy` of elementwise functions: its values, what reaches the compiler, and the transformations."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import corejax as cj
from corejax import lax
from corejax.errors import CorejaxError
from corejax_lax_basic.accuracy import OPERATIONS

X = np.linspace(0.2, 0.9, 4)
HIGHEST, DEFAULT = lax.AccuracyMode.HIGHEST, lax.AccuracyMode.DEFAULT
ACCURACIES = [HIGHEST, DEFAULT, lax.Tolerance(ulps=2), lax.Tolerance(1e-30), lax.Tolerance(atol=1e-5, rtol=0.125)]


@pytest.mark.sample(4)
@pytest.mark.parametrize("name", OPERATIONS)
def test_values_and_derivatives_are_those_without(name: str) -> None:
    function: Any = getattr(lax, name)
    for accuracy in ACCURACIES:
        def asked(x: Any, accuracy: Any = accuracy) -> Any:
            return function(x, accuracy=accuracy)
        for dtype in ("float16", "float32", "float64", "complex64", "complex128"):
            if name == "cbrt" and dtype.startswith("complex"):
                continue
            x = X.astype(dtype)
            tolerance = 8 * float(np.finfo(dtype).eps)
            assert dtype == asked(x).dtype
            assert_allclose(np.asarray(asked(x)), np.asarray(cj.jit(function)(x)), rtol=tolerance)
            mine, plain = (cj.jvp(fun, (x,), (np.ones_like(x),))[1] for fun in (asked, function))
            assert_allclose(np.asarray(mine), np.asarray(plain), rtol=16 * tolerance)
        assert_array_equal(np.asarray(cj.vmap(asked)(X)), np.asarray(asked(X)))
        assert asked(0.5).aval is function(0.5).aval


@pytest.mark.parametrize(("name", "dtype", "lowered"), [
    *[(name, "float32", name != "exp2") for name in OPERATIONS], ("log1p", "float64", False), ("sin", "float64", True)])
def test_the_compiler_is_told_unless_there_is_a_formula(name: str, dtype: str, lowered: bool) -> None:
    for accuracy, told in ((HIGHEST, "<HIGHEST>"), (lax.Tolerance(1e-30, 0.25, 3), "atol = 1.000000e-30, rtol = 2.5")):
        text = cj.jit(lambda x, accuracy=accuracy: getattr(lax, name)(x, accuracy=accuracy)).lower(
            X.astype(dtype)).as_text()
        assert lowered == (told in text) and lowered == ("result_accuracy" in text)


def test_without_accuracy_a_program_is_as_it_was() -> None:
    plain = str(cj.make_jaxpr(lax.sin)(X))
    assert "with_accuracy" not in plain
    for accuracy in (None, DEFAULT):
        assert plain == str(cj.make_jaxpr(lambda x, accuracy=accuracy: lax.sin(x, accuracy=accuracy))(X))


def test_derivatives_of_sines_are_as_accurate() -> None:
    for accuracy, written in ((HIGHEST, "HIGHEST"), (lax.Tolerance(ulps=2), (0.0, 0.0, 2))):
        def twice(x: Any, accuracy: Any = accuracy) -> Any:
            return lax.sin(lax.cos(x, accuracy=accuracy), accuracy=accuracy)

        eqns = cj.make_jaxpr(cj.grad(twice))(0.5).eqns
        asked = [eqn.params for eqn in eqns if eqn.primitive.name == "with_accuracy"]
        assert ["cos", "cos", "sin", "sin"] == sorted([params["function"] for params in asked])
        assert {written} == {params["accuracy"] for params in asked}
        assert not {"sin", "cos"} & {eqn.primitive.name for eqn in eqns}


def test_tolerances_compare_by_value() -> None:
    assert lax.Tolerance(ulps=2) == lax.Tolerance(0.0, 0.0, 2) != lax.Tolerance(ulps=3)
    assert 1 == len({lax.Tolerance(1e-3), lax.Tolerance(atol=1e-3)})
    for wrong in ({}, {"atol": -1.0}, {"ulps": 1.5}, {"rtol": np.inf}, {"rtol": np.nan}, {"atol": "1"}):
        with pytest.raises(CorejaxError, match="Tolerance"):
            lax.Tolerance(**wrong)


@pytest.mark.parametrize("accuracy", ["highest", 3, 1e-3, (1.0, 1.0)])
def test_other_accuracies_are_refused(accuracy: Any) -> None:
    with pytest.raises(CorejaxError, match="sin: unknown accuracy"):
        lax.sin(0.5, accuracy=accuracy)
