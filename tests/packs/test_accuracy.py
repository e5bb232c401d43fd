"""How far the elementwise functions are from the true values: NumPy's extended precision is the oracle."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import corejax as cj
from corejax import lax
from corejax_testing.comparing import ulps_apart

pytestmark = pytest.mark.usefixtures("usual_code")

#: The function in extended precision, the ranges to try, and how many ulps float32 and float64 may be apart.
FUNCTIONS: dict[str, tuple[Callable[[Any], Any], list[tuple[float, float]], float, float]] = {
    "acosh": (np.arccosh, [(1, 1.01), (1, 1.6), (1, 4), (1, 1e30)], 2, 4),
    "asinh": (np.arcsinh, [(-1e-3, 1e-3), (-3, 3), (-1e30, 1e30)], 2, 4),
    "atanh": (np.arctanh, [(-1e-3, 1e-3), (-0.5, 0.5), (-1, 1)], 2, 4),
    "cbrt": (np.cbrt, [(-3, 3), (-1e30, 1e30)], 2, 4),
    "exp2": (np.exp2, [(-1, 1), (-126, 127.9)], 2, 4),
    "log1p": (np.log1p, [(-1e-3, 1e-3), (-0.99999, 3), (-1, 1e30)], 3, 4),
}


def points(low: float, high: float, dtype: Any) -> Any:
    """Numbers in an interval: evenly spread, and of all magnitudes."""
    rng = np.random.default_rng(0)
    even = rng.uniform(low, high, 20_000)
    tiny, large = np.log(1e-30), np.log(max(abs(low), abs(high)))
    magnitudes = np.exp(rng.uniform(tiny, large, 20_000)) * rng.choice([-1.0, 1.0], 20_000)
    found = np.concatenate([even, magnitudes]).astype(dtype)
    return found[(found >= low) & (found <= high)]


@pytest.mark.skipif(np.finfo(np.longdouble).nmant < 63, reason="needs an extended precision")
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_compiled_functions_are_within_a_few_units_of_the_true_value(name: str, dtype: Any) -> None:
    true, ranges, single, double = FUNCTIONS[name]
    compiled = cj.jit(getattr(lax, name))
    for low, high in ranges:
        x = points(low, high, dtype)
        wanted = true(x.astype(np.longdouble))
        got = np.asarray(compiled(x))
        unit = np.spacing(np.abs(wanted).astype(dtype)).astype(np.longdouble)
        apart = np.where(got == wanted.astype(dtype), 0, np.abs(got.astype(np.longdouble) - wanted) / unit)
        assert apart.max() <= (single if dtype is np.float32 else double), (low, high, x[np.argmax(apart)])


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_floats_of_16_bits_are_rounded_once(name: str, dtype: Any) -> None:
    true, ranges, _, _ = FUNCTIONS[name]
    limit = 15.0 if dtype is np.float16 and name == "exp2" else 1e4
    for low, high in ranges:
        x = points(max(low, -limit), min(high, limit), dtype)
        x = x[(np.abs(x) >= float(ml_dtypes.finfo(dtype).smallest_normal)) | (x == 0)]
        wanted = true(x.astype(np.float64)).astype(dtype)
        with np.errstate(all="ignore"):
            for got in (cj.jit(getattr(lax, name))(x), getattr(lax, name)(x)):
                assert ulps_apart(wanted, np.asarray(got)).max() <= 1
