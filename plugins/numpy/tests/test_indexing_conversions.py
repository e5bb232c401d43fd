"""Values that an array's dtype can't hold, stored by `x.at`: they are converted, with a warning, as JAX does."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.exceptions import ComplexWarning

import corejax as cj
import corejax.numpy as jnp
from corejax import lax
from corejax.errors import CorejaxError

Use = Callable[[Any], Any]

UPDATES: dict[str, tuple[list[float], Use]] = {  # of integers 1, 2, 3
    "set": ([1, 2, 3], lambda x: x.at[0].set(1.7)),
    "set a NumPy float": ([1, 2, 3], lambda x: x.at[0].set(np.float32(1.7))),
    "set to NaN": ([0, 2, 3], lambda x: x.at[0].set(jnp.nan)), "add": ([2, 2, 3], lambda x: x.at[0].add(1.7)),
    "subtract": ([0, 2, 3], lambda x: x.at[0].subtract(1.7)), "multiply": ([2, 2, 3], lambda x: x.at[0].multiply(2.7)),
    "divide": ([0.5, 2.0, 3.0], lambda x: x.at[0].divide(2.7)), "power": ([1, 4, 3], lambda x: x.at[1].power(2.7)),
    "min": ([-1, 2, 3], lambda x: x.at[0].min(-1.7)), "max": ([7, 2, 3], lambda x: x.at[0].max(7.7)),
    "apply": ([2, 2, 3], lambda x: x.at[0].apply(lambda part: part + 1.7)),
    "a slice": ([1, 2, 3], lambda x: x.at[:2].set(np.array([1.7, 2.7]))),
    "a list": ([1, 2, 3], lambda x: x.at[:2].set([1.7, 2.7])),
    "everything": ([1, 1, 1], lambda x: x.at[:].set(1.7)),
    "by a mask": ([1, 2, 1], lambda x: x.at[np.array([True, False, True])].set(1.7)),
    "by indices": ([5, 2, 3], lambda x: x.at[jnp.array([0, 0])].add(jnp.array([1.7, 2.7]))),
    "out of bounds": ([1, 2, 3], lambda x: x.at[5].set(1.7, mode="drop")),
}


@pytest.mark.parametrize("name", UPDATES)
def test_floats_stored_among_integers_are_converted_with_a_warning(name: str) -> None:
    wanted, use = UPDATES[name]
    x = jnp.array([1, 2, 3])
    for call in (lambda: use(x), lambda: cj.jit(use)(x), lambda: cj.vmap(use)(x[None])[0]):
        with pytest.warns(FutureWarning, match=r"converted to int64, which can't hold all of them") as caught:
            found = call()
        assert (wanted, "float64" if name == "divide" else "int64") == (found.tolist(), found.dtype.name)
        assert {__file__} == {warning.filename for warning in caught}


ARITHMETIC: dict[str, tuple[str, Any, Use]] = {  # of 10, 10, 10 in a dtype
    "a product": ("int64", [5, 10, 10], lambda x: x.at[0].multiply(0.5)),
    "repeated sums": ("int64", [11, 10, 10], lambda x: x.at[np.array([0, 0, 0])].add(0.6)),
    "a difference": ("int64", [9, 10, 10], lambda x: x.at[0].subtract(0.5)),
    "a narrow product": ("uint8", [5, 10, 10], lambda x: x.at[0].multiply(0.5)),
    "a narrow sum": ("uint8", [10, 255, 10], lambda x: x.at[1].add(300.0)),
    "sums in small floats": ("bfloat16", [310, 10, 10], lambda x: x.at[np.zeros(300, int)].add(np.ones(300, "f4"))),
    "the lesser": ("uint8", [10, 253, 10], lambda x: x.at[1].min(np.int8(-3))),
    "the greater": ("uint8", [10, 10, 10], lambda x: x.at[1].max(np.int8(-3))),
    "signs": ("uint8", [10, 13, 10], lambda x: x.at[1].subtract(np.int8(-3))),
    "a sum of complex numbers": ("float64", [11, 10, 10], lambda x: x.at[0].add(1 + 1j)),
    "a sum of truth values": ("bool", [True] * 3, lambda x: x.at[0].add(-2)),
}


@pytest.mark.parametrize("name", ARITHMETIC)
def test_values_are_combined_before_they_are_converted(name: str) -> None:
    dtype, wanted, use = ARITHMETIC[name]
    x = jnp.full(3, 10).astype(dtype)
    for call in (use, cj.jit(use)):
        with pytest.warns(FutureWarning, match=f"converted to {dtype}"):
            assert (wanted, dtype) == (call(x).tolist(), call(x).dtype.name)


def test_jax_combines_and_converts_in_the_same_order() -> None:
    jax = pytest.importorskip("jax")
    jax.config.update("jax_enable_x64", True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for dtype, wanted, use in ARITHMETIC.values():
            assert wanted == use(jax.numpy.full(3, 10).astype(dtype)).tolist(), dtype


def test_they_have_no_derivative() -> None:
    def total(v: Any) -> Any:
        return jnp.zeros(3, int).at[0].set(v).sum().astype(float) + v

    with pytest.warns(FutureWarning, match="int64"):
        assert 1.0 == cj.grad(total)(1.7) == cj.jit(cj.grad(total))(1.7)
    with pytest.warns(FutureWarning, match="int64"):
        out, tangent = cj.jvp(lambda v: jnp.zeros(3, int).at[0].set(v), (1.7,), (1.0,))
    assert ([1, 0, 0], cj.float0) == (out.tolist(), tangent.dtype)
    with pytest.warns(FutureWarning, match="int64"):
        assert [[1, 0], [2, 0]] == cj.vmap(lambda v: jnp.zeros(2, int).at[0].set(v))(jnp.array([1.7, 2.5])).tolist()


@pytest.mark.parametrize(("dtype", "value", "wanted"), [
    ("uint8", 300.7, 255), ("bool", 2, True), ("int32", np.int64(-1), -1), ("uint32", np.int64(5), 5),
    ("float32", np.float64(1.5), 1.5), ("float16", jnp.bfloat16(1.5), 1.5), ("int64", np.uint64(7), 7)], ids=str)
def test_any_value_that_promotion_would_widen_the_array_for_is_warned_of(dtype: str, value: Any, wanted: Any) -> None:
    with pytest.warns(FutureWarning, match=f"converted to {dtype}"):
        found = jnp.zeros(2, dtype).at[0].set(value)
    assert (wanted, dtype) == (found[0].item(), found.dtype.name)


@pytest.mark.parametrize(("dtype", "value"), [
    ("float32", 1.5), ("float32", 2), ("float32", np.int64(2)), ("int8", 3), ("int64", np.int8(3)), ("int64", True),
    ("complex64", 1.5), ("float64", [1.5, 2.5]), ("bool", True)], ids=str)
def test_values_that_fit_are_stored_without_one(dtype: str, value: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert np.ravel(value).tolist() == jnp.zeros(2, dtype).at[:np.size(value)].set(value)[:np.size(value)].tolist()


def test_imaginary_parts_that_are_lost_are_warned_of() -> None:
    with pytest.warns(ComplexWarning, match="imaginary part"), pytest.warns(FutureWarning, match="float64"):
        assert [2.0, 0.0] == jnp.zeros(2).at[0].set(2 + 1j).tolist()


def test_sums_and_products_of_booleans_are_or_and_and() -> None:
    x, places = jnp.array([True, False]), jnp.array([0, 1, 1])
    for use, wanted in [(lambda x: x.at[1].add(True), [True, True]),
                        (lambda x: x.at[0].multiply(False), [False, False]),
                        (lambda x: x.at[places].add(jnp.array([False, True, False])), [True, True]),
                        (lambda x: x.at[places].multiply(jnp.array([True, True, False])), [True, False])]:
        assert wanted == use(x).tolist() == cj.jit(use)(x).tolist()


def test_primitives_of_lax_still_want_one_dtype() -> None:
    numbers = lax.ScatterDimensionNumbers((), (0,), (0,))
    with pytest.raises(CorejaxError, match="dtype"):
        lax.scatter(jnp.zeros(3, int), jnp.array([[0]]), jnp.array([1.7]), numbers)
