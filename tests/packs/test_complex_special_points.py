"""Complex functions on their cuts, at zeros of either sign, infinities and NaN: evaluated as they are compiled."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

import corejax as cj
from corejax import lax

pytestmark = pytest.mark.usefixtures("usual_code")

UNARY = ["abs", "acos", "asin", "atan", "conj", "cos", "cosh", "exp", "expm1", "imag", "log", "log1p", "logistic",
         "neg", "real", "rsqrt", "sign", "sin", "sinh", "sqrt", "square", "tan", "tanh"]
BINARY = ["add", "div", "mul", "pow", "sub"]
PARTS = [0.0, -0.0, 0.5, -0.5, 1.0, -1.0, 1.5, -1.5, np.inf, -np.inf, np.nan]
POINTS = np.array([complex(x, y) for x in PARTS for y in PARTS])


def agree(wanted, got, tolerance):
    """Up to rounding; zeros with their signs, infinities with theirs, and NaN where NaN is wanted."""
    wanted, got = [np.ravel(x).view(x.real.dtype) for x in (np.asarray(wanted), np.asarray(got))]
    np.testing.assert_allclose(got, wanted, rtol=tolerance, atol=tolerance)
    zero = (wanted == 0) & (got == 0)
    np.testing.assert_array_equal(np.signbit(wanted[zero]), np.signbit(got[zero]))


@pytest.mark.sample(20)
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("dtype", "tolerance"), [("complex128", 1e-13), ("complex64", 3e-6)])
@pytest.mark.parametrize("name", UNARY + BINARY)
def test_complex_functions_give_at_special_points_what_they_give_compiled(name, dtype, tolerance):
    z, function = POINTS.astype(dtype), getattr(lax, name)
    args = (z,) if name in UNARY else (np.repeat(z, len(z)), np.tile(z, len(z)))
    agree(cj.jit(function)(*args), function(*args), tolerance * (50 if name == "pow" else 1))


EDGES = POINTS[~np.isfinite(POINTS)]
STANDARD = {"acos": np.arccos, "acosh": np.arccosh, "asin": np.arcsin, "asinh": np.arcsinh, "atan": np.arctan,
            "atanh": np.arctanh, "expm1": lambda z: np.exp(z) - 1} | {  # NumPy's own expm1 is NaN there
    name: getattr(np, name) for name in ("cos", "cosh", "exp", "log", "log1p", "sin", "sinh", "sqrt", "tan", "tanh")}


@pytest.mark.sample(12)
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("dtype", "tolerance"), [("complex128", 1e-14), ("complex64", 1e-6)])
@pytest.mark.parametrize("name", STANDARD)
def test_at_infinities_and_nan_a_part_that_is_known_is_not_lost(name, dtype, tolerance):
    """Up to signs, many of which the standard leaves open."""
    z, function = EDGES.astype(dtype), getattr(lax, name)
    wanted = np.abs(STANDARD[name](z).view(z.real.dtype))
    np.testing.assert_allclose(np.abs(np.asarray(function(z)).view(z.real.dtype)), wanted, rtol=tolerance, atol=1e-15)
    np.testing.assert_allclose(np.abs(np.asarray(cj.jit(function)(z)).view(z.real.dtype)), wanted, tolerance, 1e-15)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("exponent", [-3, -2, -1, 0, 1, 2, 3])
def test_integer_powers_at_special_points(exponent):
    agree(cj.jit(lambda z: z ** exponent)(POINTS), lax.copy(POINTS) ** exponent, 1e-13)


def test_scalars_and_arrays_of_any_length_have_one_convention():
    cut = complex(1.5, -0.0)
    for z in (np.complex128(-cut), np.full((), -cut), np.full((2, 3), -cut), np.full(9, -cut),
              np.array([2 + 1j, -cut])):
        for function in (lax.sqrt, lax.asin, lax.log):
            agree(cj.jit(function)(z), function(z), 1e-13)
    assert cj.jit(lambda z: lax.sqrt(-z))(1.5 + 0j) == lax.sqrt(-lax.copy(1.5 + 0j))


def test_an_operator_alone_settles_its_special_points():
    program = "import corejax as cj, numpy as np; z = cj.lax.copy(np.array([0j])); print(z / z, z ** (0.5 - 1j))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert "[nan+nanj] [nan+nanj]\n" == done.stdout
