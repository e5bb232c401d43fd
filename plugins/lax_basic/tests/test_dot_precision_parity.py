"""Algorithms of products beside jax's: types of results, values, and what the CPU has."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.testing import assert_array_equal

import corejax as cj
from corejax import lax
from corejax.errors import CorejaxError

jax = pytest.importorskip("jax")

RNG = np.random.default_rng(0)
FLOATS = (np.float16, ml_dtypes.bfloat16, np.float32, np.float64, ml_dtypes.float8_e4m3fn)


def outcome(module: Any, jit: Any, precision: Any, preferred: Any, x: Any, y: Any) -> Any:
    """What a compiled product is; None if it is refused."""
    options = {"precision": precision, "preferred_element_type": preferred}
    try:
        return np.asarray(jit(lambda x, y: module.dot(x, y, **options))(x, y))
    except (CorejaxError, ValueError, TypeError):
        return None


@pytest.mark.sample(5)
@pytest.mark.parametrize("name", [preset.name for preset in lax.DotAlgorithmPreset])
def test_presets_are_those_of_jax(name: str) -> None:
    for dtype in FLOATS:
        x, y = RNG.standard_normal((5, 7)).astype(dtype), RNG.standard_normal((7, 3)).astype(dtype)
        for preferred in (None, np.float32, np.float16):
            expected = outcome(jax.lax, jax.jit, getattr(jax.lax.DotAlgorithmPreset, name), preferred, x, y)
            found = outcome(lax, cj.jit, name, preferred, x, y)
            assert (expected is None) == (found is None), (dtype, preferred)
            if expected is not None:
                assert expected.dtype == found.dtype
                assert_array_equal(expected.astype(np.float64), found.astype(np.float64))


@pytest.mark.parametrize("name", ["Precision", "DotAlgorithmPreset"])
def test_the_names_are_those_of_jax(name: str) -> None:
    theirs, ours = getattr(jax.lax, name), getattr(lax, name)
    assert [member.name for member in theirs] == [member.name for member in ours]
    assert [str(member) for member in theirs] == [str(member) for member in ours]
    assert jax.lax.DotAlgorithm._fields == lax.DotAlgorithm._fields
    assert jax.lax.DotAlgorithm._field_defaults == lax.DotAlgorithm._field_defaults
