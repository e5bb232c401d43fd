"""`bitcast_convert_type` between widths, beside jax and NumPy: a narrower dtype adds an axis, a wider one takes it."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import corejax as cj
from corejax import lax
from corejax.errors import CorejaxError

jax = pytest.importorskip("jax")

DTYPES = ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float16", "float32", "float64",
          "complex64", "complex128", "bool", ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn]
SHAPES = [(), (4,), (3, 2), (2, 8), (5, 3), (0, 4), (4, 0)]


@pytest.fixture(autouse=True)
def _x64():
    with jax.enable_x64(True):
        yield


def bits(dtype: Any, shape: tuple[int, ...]) -> np.ndarray:
    dtype = np.dtype(dtype)
    rng = np.random.default_rng(3)
    if dtype == np.bool_:
        return rng.integers(0, 2, shape).astype(bool)
    drawn = rng.integers(0, 256, int(np.prod(shape)) * dtype.itemsize, dtype=np.uint8)
    return np.frombuffer(drawn.tobytes(), dtype).reshape(shape).copy()


@pytest.mark.sample(24)
@pytest.mark.parametrize("new", DTYPES, ids=lambda dtype: np.dtype(dtype).name)
@pytest.mark.parametrize("old", DTYPES, ids=lambda dtype: np.dtype(dtype).name)
def test_parity_of_widths(old, new):
    for shape in SHAPES:
        x = bits(old, shape)
        try:
            wanted = jax.lax.bitcast_convert_type(x, new)
        except (TypeError, ValueError):
            for run in (lax.bitcast_convert_type, cj.jit(lax.bitcast_convert_type, static_argnums=1)):
                with pytest.raises((TypeError, ValueError)) as caught:
                    run(x, new)
                assert isinstance(caught.value, CorejaxError)
            continue
        for run in (lax.bitcast_convert_type, cj.jit(lax.bitcast_convert_type, static_argnums=1)):
            found = run(x, new)
            assert (wanted.dtype, wanted.shape) == (found.dtype, found.shape)
            assert np.asarray(wanted).tobytes() == np.asarray(found).tobytes() == x.tobytes()


@pytest.mark.parametrize(("old", "new"), [("float64", "uint16"), ("uint8", "int32"), ("float32", "int32"),
                                          ("complex64", "complex64"), ("int16", ml_dtypes.bfloat16)], ids=str)
@pytest.mark.parametrize(("in_axis", "out_axis"), [(0, 0), (1, 0), (2, 0), (0, 1), (-1, -1)])
def test_parity_of_maps(old, new, in_axis, out_axis):
    """A map is a loop. (Some maps of wider dtypes are refused by jax, which mistakes the axis that it maps.)"""
    x = bits(old, (4, 4, 4))

    def f(x: Any) -> Any:
        return lax.bitcast_convert_type(x, new)

    slices = [np.asarray(jax.lax.bitcast_convert_type(one, new)) for one in np.moveaxis(x, in_axis, 0)]
    wanted = np.stack(slices, out_axis)
    for run in (cj.vmap(f, in_axis, out_axis), cj.jit(cj.vmap(f, in_axis, out_axis))):
        found = run(x)
        assert wanted.shape == found.shape
        assert wanted.tobytes() == np.asarray(found).tobytes()
