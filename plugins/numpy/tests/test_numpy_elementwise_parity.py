"""The dtypes of functions of elements, and whether they are weak, beside jax's: with 64-bit types, and without."""

from __future__ import annotations

from typing import Any

import ml_dtypes  # noqa: F401, so that NumPy knows bfloat16
import numpy as np
import pytest

import corejax as cj
import corejax.numpy as jnp
from corejax.errors import CorejaxError
from elementwise_points import BINARY, UNARY, many

jax = pytest.importorskip("jax")

DTYPES = ("bool", "uint8", "int16", "int32", "uint32", "int64", "float16", "bfloat16", "float32", "float64",
          "complex64", "complex128")
NUMBERS = (2, 0.5, 1 + 2j)  # Python's booleans are weak here, and strong there

#: What only one of the two takes: angles and degrees of complex numbers, where NumPy refuses them, too.
REFUSED_HERE = {"arctan2", "deg2rad", "degrees", "rad2deg", "radians"}

#: Where jax counts in int32, whatever its settings, NumPy in int8: here, in the default integers.
OF_BOOLEANS_ALONE = {"square", "floor_divide", "divmod", "fmod", "mod", "remainder", "pow", "left_shift", "right_shift",
                     "bitwise_left_shift", "bitwise_right_shift"}

#: Results of weak operands that jax makes strong on its way, or weak.
STRONG_THERE = {"log2", "log10", "angle", "isfinite", "isinf", "signbit", "isposinf", "isneginf", "iscomplex", "isreal",
                "heaviside", "hypot", "logaddexp", "logaddexp2", "logical_and", "logical_or", "logical_xor", "pow",
                "gcd", "lcm"}

#: Of any operands in the default floats, as NumPy's.
ALWAYS_WIDE = {"float_power"}


def _types(out: Any) -> Any:
    return [(np.dtype(x.dtype).name, x.weak_type) for x in many(out)]


def _here(name: str, operands: tuple[Any, ...]) -> Any:
    try:
        return _types(tuple([out.aval for out in many(getattr(jnp, name)(*operands))]))
    except CorejaxError:
        return None


def _there(name: str, operands: tuple[Any, ...]) -> Any:
    try:
        return _types(jax.eval_shape(lambda: getattr(jax.numpy, name)(*operands)))
    except (TypeError, ValueError):
        return None


def _agree(name: str, kinds: list[str], here: Any, there: Any, bits: int) -> bool:
    if here == there or (name in REFUSED_HERE and here is None) or name in ALWAYS_WIDE:
        return True
    if {*kinds} == {"bool"} and name in OF_BOOLEANS_ALONE:
        return True
    if bits == 32 and "uint32" in kinds and {*kinds} & {"int16", "int32"}:
        return True  # nothing is narrowed, as int64 is there
    dropped = [[dtype for dtype, _ in out] for out in (here or (), there or ())]
    if "bool" in kinds and "int" in kinds and name == "pow":
        return True  # a Python integer counts as an int32 there
    return name in STRONG_THERE and dropped[0] == dropped[1]


@pytest.fixture(params=[64, 32], name="bits")
def _bits(request: pytest.FixtureRequest) -> Any:
    with jax.enable_x64(request.param == 64), cj.config(default_bits=request.param):
        yield request.param


def _operands(bits: int) -> list[Any]:
    dtypes = [d for d in DTYPES if bits == 64 or d not in ("int64", "float64", "complex128")]
    return [*[np.ones(2, np.dtype(d)) for d in dtypes], *NUMBERS]


def _kind(x: Any) -> str:
    return str(x.dtype) if isinstance(x, np.ndarray) else type(x).__name__


@pytest.mark.parametrize("names", [UNARY[::3], pytest.param(UNARY, marks=pytest.mark.exhaustive)], ids=["some", "all"])
def test_one_operands_dtypes_are_those_of_jax(names: list[str], bits: int) -> None:
    wrong = []
    for name in names:
        for x in _operands(bits):
            here, there = _here(name, (x,)), _there(name, (x,))
            if not _agree(name, [_kind(x)], here, there, bits):
                wrong.append(f"{name}({_kind(x)}): {here}, not {there}")
    assert [] == wrong


#: One of each way in which operands are promoted; `make test-all` has the others.
QUICK = ["add", "pow", "copysign", "ldexp"]


@pytest.mark.parametrize("name", [
    name if name in QUICK else pytest.param(name, marks=pytest.mark.exhaustive) for name in BINARY])
def test_two_operands_dtypes_are_those_of_jax(name: str, bits: int) -> None:
    wrong = []
    for x in _operands(bits):
        for y in _operands(bits):
            here, there = _here(name, (x, y)), _there(name, (x, y))
            if not _agree(name, [_kind(x), _kind(y)], here, there, bits):
                wrong.append(f"{name}({_kind(x)}, {_kind(y)}): {here}, not {there}")
    assert [] == wrong
