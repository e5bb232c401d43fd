"""What the array API standard asks of `corejax.numpy` and of arrays, besides functions."""

from __future__ import annotations

import numpy as np
import pytest

import corejax as cj
from corejax import lax, numpy as jnp


def test_arrays_and_traced_values_lead_to_the_namespace():
    def look(x):
        assert jnp is x.__array_namespace__()
        assert jnp is x.__array_namespace__(api_version="2023.12")
        return x

    for x in (lax.sin(1.0), cj.device_put(np.zeros(3))):
        look(x)
        cj.make_jaxpr(look)(x)
        cj.jvp(look, (x,), (x,))
        cj.vmap(look)(np.zeros((2, 3)))
    assert "2024.12" == jnp.__array_api_version__


def test_other_versions_of_the_standard_are_refused():
    for version in ("1999.12", "2035.12", 2024):
        with pytest.raises(ValueError, match="array API standard") as info:
            lax.sin(1.0).__array_namespace__(api_version=version)
        assert "2024.12" in info.value.wanted and repr(version) in info.value.got


def test_its_own_names_are_not_among_the_functions():
    assert {name for name in (*jnp.__all__, *dir(jnp)) if name.startswith("_")} == set()


def test_arrays_are_on_its_devices():
    info = jnp.__array_namespace_info__()
    assert cj.devices() == info.devices() and info.default_device() in info.devices()
    assert info.default_device() == lax.sin(1.0).device == cj.device_put(np.zeros(2)).device


def test_default_dtypes_follow_the_default_bits():
    info = jnp.__array_namespace_info__()
    assert {"real floating": np.float64, "complex floating": np.complex128, "integral": np.int64,
            "indexing": np.int64} == info.default_dtypes()
    with cj.config(default_bits=32):
        assert {"real floating": np.float32, "complex floating": np.complex64, "integral": np.int32,
                "indexing": np.int32} == info.default_dtypes(device=info.default_device())


@pytest.mark.parametrize(("kind", "names"), {
    "bool": "bool", "signed integer": "int8 int16 int32 int64", "unsigned integer": "uint8 uint16 uint32 uint64",
    "integral": "int8 int16 int32 int64 uint8 uint16 uint32 uint64", "real floating": "float32 float64",
    "complex floating": "complex64 complex128", ("bool", "real floating"): "bool float32 float64"}.items(), ids=str)
def test_dtypes_of_a_kind(kind, names):
    found = jnp.__array_namespace_info__().dtypes(kind=kind)
    assert {name: np.dtype(name) for name in names.split()} == found


def test_all_dtypes_and_a_kind_that_is_none():
    info = jnp.__array_namespace_info__()
    assert 13 == len(info.dtypes()) == 1 + len(info.dtypes(kind="numeric"))
    for kind in ("float", ("bool", "text"), 3):
        with pytest.raises(ValueError, match="kind of dtype"):
            info.dtypes(kind=kind)


def test_what_it_says_that_arrays_can_do_they_do():
    assert {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 64} == (
        jnp.__array_namespace_info__().capabilities())
    x = cj.device_put(np.array([3.0, 0.0, 2.0]))
    np.testing.assert_array_equal([3.0, 2.0], x[x > 1.0])
    deepest = cj.device_put(np.ones((1,) * 64))
    assert 64 == lax.sin(deepest).ndim


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float32", "float64", "complex64", "complex128"])
def test_the_sign_of_either_zero_is_zero(dtype):
    x = jnp.asarray([0.0, -0.0, 2.0, -3.0]).astype(dtype)
    for found in (jnp.sign(x), jnp.sign(x), cj.jit(jnp.sign)(x), cj.vmap(jnp.sign)(x)):
        assert [0, 0, 1, -1] == found.tolist() and x.dtype == found.dtype
        assert not np.signbit(np.asarray(jnp.real(found[:2])).astype("float64")).any()
    assert 0.0 == cj.grad(jnp.sign)(-0.0)
