"""Numbers of less than a byte beside jax's: conversions, bits, promotion, and what functions take."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest

import corejax as cj
import corejax.numpy as jnp
from corejax import lax
from corejax.core import dtypes

jax = pytest.importorskip("jax")

NARROW = ("int2", "uint2", "int4", "uint4", "float4_e2m1fn")
OTHERS = ("bool", "int8", "uint8", "int16", "uint32", "int64", "float8_e4m3fn", "float8_e8m0fnu", "bfloat16",
          "float16", "float64", "complex64")
PAIRS = [(one, other) for one, other in product((*NARROW, *OTHERS), repeat=2) if one in NARROW or other in NARROW]


def numbers(name: str, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    if "int" in name:
        return rng.integers(-8, 8, 24).astype(dtypes.canonical(name))
    floats = np.concatenate([rng.uniform(-9, 9, 16), [np.nan, np.inf, -np.inf, 200.0, -200.0, 0.5, -0.5, 2.5]])
    floats = np.abs(floats) if name == "float8_e8m0fnu" else floats
    return floats.astype(np.float32).astype(dtypes.canonical(name))


def outcome(function: Callable[[Any], Any], x: Any) -> tuple[Any, ...] | None:
    """The type and the numbers of a result; None if it is refused."""
    try:
        out = np.asarray(function(x))
    except Exception:
        return None
    return out.dtype, out.shape, out.astype(complex).tobytes() if not np.isnan(out.astype(complex)).any() else str(out)


@pytest.mark.sample(8)
@pytest.mark.parametrize("of", (*NARROW, *OTHERS))
def test_conversions_and_bits_are_those_of_jax(of: str) -> None:
    x = numbers(of, len(of))
    differences = []
    for to in [other for one, other in PAIRS if one == of]:
        if of == "float4_e2m1fn" and "int" in to:
            continue  # jax makes the largest integer of 6.0
        for name, last in (("convert_element_type", ()), *[("bitcast_convert_type", (n,)) for n in (24, 2, 4, 8)]):
            def ours(x: Any, name: str = name, to: str = to) -> Any:
                return getattr(lax, name)(x, dtypes.canonical(to))

            def theirs(x: Any, name: str = name, to: str = to) -> Any:
                return getattr(jax.lax, name)(jax.numpy.asarray(x), dtypes.canonical(to))
            known = np.where(x == x, x, np.zeros_like(x)) if to == "float4_e2m1fn" else x  # which has no NaN
            rows = known.reshape(-1, *last) if last else known
            wanted = outcome(theirs, rows)
            differences += [(name, to, last, way) for way, run in (("eager", ours), ("jit", cj.jit(ours)))
                            if outcome(run, rows) != wanted]
    assert not differences


@pytest.mark.parametrize("name", NARROW)
def test_promotion_is_that_of_jax(name: str) -> None:
    def promoted(module: Any, other: Any) -> str:
        try:
            return str(np.dtype(module.promote_types(name, other)).name)
        except Exception:
            return "refused"
    for other in (*NARROW, *OTHERS, int, float, complex):
        assert promoted(jnp, other) == promoted(jax.numpy, other), other


@pytest.mark.parametrize("name", NARROW[:4])
@pytest.mark.parametrize("function", [
    "add", "sub", "mul", "div", "rem", "max", "min", "eq", "lt", "shift_left", "shift_right_logical",
    "shift_right_arithmetic", "clz", "neg", "sign", "square", "cumsum", "cumprod", "cummax", "sort", "reduce_sum",
    "reduce_max"])
def test_functions_give_what_jax_gives(name: str, function: str) -> None:
    rng = np.random.default_rng(len(function))
    x, y = [rng.integers(0 if name.startswith("u") else -2, 2, 9).astype(np.int8).astype(dtypes.canonical(name))
            for _ in range(2)]
    of_one = function in ("clz", "neg", "sign", "square", "sort")
    arguments: tuple[Any, ...] = (x,) if of_one else (x, 0) if function.startswith("cum") else (
        (x, (0,)) if function.startswith("reduce") else (x, y))
    wanted = outcome(lambda _: getattr(jax.lax, function)(*arguments), None)
    if function == "sort" and name.endswith("int2"):  # of which jax makes zeros
        wanted = x.dtype, x.shape, np.sort(x.astype(np.int8)).astype(complex).tobytes()
    assert wanted is not None
    assert outcome(lambda _: getattr(lax, function)(*arguments), None) == wanted
