"""Products of operands with scales: by NumPy, and beside jax where it is installed."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.testing import assert_array_equal

import corejax as cj
from corejax import lax

RNG = np.random.default_rng(0)
CASES: list[tuple[Any, ...]] = [
    ((2, 8), (8, 3), (2, 4), (2, 3), None), ((2, 8), (8, 3), None, None, None), ((2, 8), (8, 3), (2, 1), None, None),
    ((4, 2, 8), (4, 8, 3), None, (4, 2, 3), None), ((1, 2), (2, 1), (1, 1), (1, 1), None),
    ((4, 2, 6), (5, 6, 4), (2, 2, 3), (5, 3, 2), (((0, 2), (2, 1)), ((), ()))),
    ((0, 4), (4, 3), (0, 2), None, None), ((3, 4, 2), (2, 3, 4), (3, 2, 2), (2, 3, 2), (((1,), (2,)), ((0,), (1,))))]


def operands(case: tuple[Any, ...], dtype: Any) -> tuple[Any, Any, dict[str, Any]]:
    left, right, *scales, numbers = case
    lhs, rhs = (RNG.integers(-4, 5, shape).astype(dtype) for shape in (left, right))
    drawn = [None if shape is None else 2.0 ** RNG.integers(-3, 4, shape) for shape in scales]
    return lhs, rhs, {"lhs_scale": drawn[0], "rhs_scale": drawn[1], "dimension_numbers": numbers}


def repeated(x: Any, scale: Any) -> Any:
    if scale is None:
        return x
    for axis, (n, m) in enumerate(zip(x.shape, scale.shape, strict=True)):
        scale = scale.repeat(n // m if m else 1, axis)
    return x * scale


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("call", [lambda f: f, cj.jit])
def test_scales_are_for_blocks(case: tuple[Any, ...], call: Any) -> None:
    lhs, rhs, options = operands(case, np.float32)
    scaled = [repeated(lhs.astype(float), options["lhs_scale"]), repeated(rhs.astype(float), options["rhs_scale"])]
    n = lhs.ndim
    numbers = options["dimension_numbers"] or (((n - 1,), (n - 2,)), (tuple(range(n - 2)),) * 2)
    expected = np.asarray(lax.dot_general(*scaled, numbers))  # exact, as all are small integers times powers of two
    for preferred, dtype in ((None, ml_dtypes.bfloat16), (np.float32, np.float32)):
        out = call(lambda lhs, rhs, preferred=preferred: lax.scaled_dot(
            lhs, rhs, **options, preferred_element_type=preferred))(lhs, rhs)
        assert dtype == out.dtype
        assert_array_equal(np.asarray(out, float), expected.astype(dtype).astype(float))


def test_it_has_derivatives_and_maps() -> None:
    lhs, rhs, options = operands(CASES[0], np.float32)
    scales = options["lhs_scale"], options["rhs_scale"]

    def total(x: Any, y: Any, a: Any, b: Any) -> Any:
        return lax.scaled_dot(x, y, lhs_scale=a, rhs_scale=b, preferred_element_type=np.float32).sum()

    x_bar, a_bar = cj.grad(total, (0, 2))(lhs, rhs, *scales)
    y_scaled = repeated(rhs.astype(float), scales[1]).sum(1)
    x_exact, a_exact = scales[0].repeat(2, 1) * y_scaled, (lhs * y_scaled).reshape(2, 4, 2)
    once = float(ml_dtypes.finfo(ml_dtypes.bfloat16).eps) / 2  # operands are bfloat16's, so their cotangents are
    assert np.all(np.abs(np.asarray(x_bar) - x_exact) <= once * np.abs(x_exact))
    assert np.all(np.abs(np.asarray(a_bar) - a_exact.sum(-1)) <= 4 * once * np.abs(a_exact).sum(-1))
    mapped = cj.vmap(total, (0, None, 0, None))(np.stack([lhs, 2 * lhs]), rhs, np.stack([scales[0]] * 2), scales[1])
    assert_array_equal(np.asarray(mapped), np.asarray(total(lhs, rhs, *scales)) * [1, 2])


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("dtype", [np.float32, ml_dtypes.float8_e4m3fn])
def test_it_is_that_of_jax(case: tuple[Any, ...], dtype: Any) -> None:
    jax = pytest.importorskip("jax")
    lhs, rhs, options = operands(case, dtype)
    options = {name: option.astype(np.float32) if name.endswith("scale") and option is not None else option
               for name, option in options.items()}
    theirs = jax.lax.scaled_dot(lhs, rhs, **options)
    ours = cj.jit(lambda x, y: lax.scaled_dot(x, y, **options))(lhs, rhs)
    assert theirs.dtype == ours.dtype
    assert_array_equal(np.asarray(theirs, float), np.asarray(ours, float))
