"""`mul` with `out_dtype`, beside jax: values, types, derivatives, maps, and what is refused; `dot` of integers."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import corejax as cj
from corejax import lax
from corejax.errors import CorejaxError

jax = pytest.importorskip("jax")

DTYPES = ["int8", "uint8", "int32", "uint64", "float32", "float64", ml_dtypes.bfloat16, "complex64"]


@pytest.fixture(autouse=True)
def _x64():
    with jax.enable_x64(True):
        yield


def numbers(dtype: Any) -> np.ndarray:
    return np.array([[100, 3], [7, 120]]).astype(dtype)


def same(wanted: Any, found: Any) -> None:
    for x, y in zip(jax.tree.leaves(wanted), cj.tree.leaves(found), strict=True):
        assert (x.dtype, x.weak_type, x.shape) == (y.dtype, y.weak_type, y.shape)
        np.testing.assert_array_equal(np.asarray(x), np.asarray(y))


@pytest.mark.sample(24)
@pytest.mark.parametrize("out", DTYPES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_parity_of_products_into_other_dtypes(dtype, out):
    x, y = numbers(dtype), numbers("float32" if dtype == "complex64" else "int8")
    for a, b in ((x, x), (x, y), (y, x), (x, x[0, 0])):
        wanted = jax.lax.mul(a, b, out_dtype=out)
        same(wanted, lax.mul(a, b, out_dtype=out))
        same(wanted, cj.jit(lambda a, b: lax.mul(a, b, out_dtype=out))(a, b))


@pytest.mark.parametrize(("x", "y"), [(2.0, 3.0), (2, 3.0), (np.float64(2), 3), (np.int8(7), 3), (3, np.ones(2))])
def test_parity_of_numbers(x, y):
    same(jax.lax.mul(x, y, out_dtype="float32"), lax.mul(x, y, out_dtype="float32"))


def test_parity_of_derivatives_and_maps():
    x, v = np.array([1.5, -2.5], np.float32), np.array([0.5, 2.0], np.float32)

    def several(lib: Any) -> Any:
        def f(x: Any) -> Any:
            return lib.lax.mul(x, lib.lax.sin(x), out_dtype="float64")

        return [lib.jvp(f, (x,), (v,)), lib.grad(lambda x: f(x).sum())(x), lib.hessian(lambda x: f(x).sum())(x),
                lib.vmap(f)(x), lib.jit(lib.vmap(lib.grad(f)))(x)]
    for wanted, found in zip(jax.tree.leaves(several(jax)), cj.tree.leaves(several(cj)), strict=True):
        assert wanted.dtype == found.dtype
        np.testing.assert_allclose(wanted, found, rtol=1e-6)


@pytest.mark.parametrize("call", [
    lambda L: L.mul(np.ones(2), np.ones(3), out_dtype="int8"),
    lambda L: L.mul(np.ones(2, bool), np.ones(2, np.int8), out_dtype="int8"),
    lambda L: L.mul(np.ones(2), np.ones(2), out_dtype="foo"),
    lambda L: L.mul(np.ones(2), np.ones(2), out_dtype=3),
    lambda L: L.mul(np.array(["a"]), 1.0, out_dtype="float32"),
    lambda L: L.mul("a", 1.0, out_dtype="float32"),
    lambda L: L.mul(np.ones(2), np.ones(2), out_dtype=np.ones(2)),
])
def test_parity_of_what_is_refused(call):
    with pytest.raises((TypeError, ValueError)):
        call(jax.lax)
    with pytest.raises(TypeError) as caught:
        call(lax)
    assert isinstance(caught.value, CorejaxError)


def test_a_product_of_booleans_isnt_one_as_in_jax_without_out_dtype():
    with pytest.raises(CorejaxError, match="only numbers are multiplied"):
        lax.mul(np.ones(2), np.ones(2), out_dtype=bool)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint32"])
def test_parity_of_products_of_integers_into_integers_of_either_sign(dtype):
    x, y = np.array([[100, 3], [7, 120]]).astype(dtype), np.array([[-1, 5], [100, -128]]).astype(dtype)
    for preferred in map(np.dtype, ("int8", "uint8", "int16", "uint32", "int64", "float64")):
        def product(module: Any, preferred: np.dtype = preferred) -> Any:
            try:
                return module.dot(x, y, preferred_element_type=preferred)
            except TypeError:
                return None
        wanted, found = product(jax.lax), product(lax)
        assert (wanted is None) == (found is None), preferred
        same(wanted, found)
