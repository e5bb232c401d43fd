"""Functions applied at indices: beside a loop over windows in NumPy, and beside jax where it is installed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import corejax as cj
from corejax import lax
from corejax.errors import CorejaxTypeError
from corejax_lax_basic._windows import WRITTEN

RNG = np.random.default_rng(0)
PLAIN = lax.ScatterDimensionNumbers((), (0,), (0,))


def halved(x: Any) -> Any:
    return x * 0.5 + 1.0


def marked(case: tuple[Any, ...], unique: bool) -> tuple[Any, Any, Any, dict[str, Any]]:
    sizes, indices, new, numbers, mode = case
    options = {"update_shape": new, "mode": mode, "unique_indices": unique}
    return RNG.standard_normal(sizes), np.array(indices, np.int32), lax.ScatterDimensionNumbers(*numbers), options


def counts(x: Any, indices: Any, numbers: Any, options: dict[str, Any]) -> Any:
    """How often each element is in a window."""
    rest = {name: value for name, value in options.items() if name != "update_shape"} | {"unique_indices": False}
    return np.asarray(lax.scatter_add(np.zeros(x.shape, int), indices, np.ones(options["update_shape"], int), numbers,
                                      **rest))


@pytest.mark.parametrize("case", WRITTEN)
def test_it_is_applied_as_often_as_there_are_windows(case: tuple[Any, ...]) -> None:
    x, indices, numbers, options = marked(case, False)
    times = counts(x, indices, numbers, options)
    expected = np.where(times, 2.0 + (x - 2.0) * 0.5 ** times, x)

    def applied(x: Any, indices: Any) -> Any:
        return lax.scatter_apply(x, indices, halved, numbers, **options)

    for call in (applied, cj.jit(applied)):
        assert_allclose(np.asarray(call(x, indices)), expected)
    if times.max(initial=0) < 2:
        alone = lax.scatter_apply(x, indices, halved, numbers, **{**options, "unique_indices": True})
        assert_allclose(np.asarray(alone), expected)
    ct = RNG.standard_normal(x.shape)
    assert_allclose(np.asarray(cj.vjp(lambda x: applied(x, indices), x)[1](ct)[0]), ct * 0.5 ** times)
    stacked = cj.vmap(applied)(np.stack([x, x * 2]), np.stack([indices, indices]))
    assert_allclose(np.asarray(stacked[0]), expected)
    assert_allclose(np.asarray(cj.vmap(applied, (None, 0))(x, np.stack([indices] * 2))[1]), expected)
    assert_allclose(np.asarray(cj.vmap(applied, (-1, None), -1)(np.stack([x] * 2, -1), indices)[..., 0]), expected)


def test_functions_may_use_other_values_and_have_their_types() -> None:
    indices = np.array([[2], [2], [0]])
    out = cj.grad(lambda a: lax.scatter_apply(
        np.ones(3), indices, lambda x: x * a, PLAIN, update_shape=(3,)).sum())(3.0)
    assert 2 * 3.0 + 1.0 == out.item()
    integers = lax.scatter_apply(np.arange(3), indices, lambda x: lax.convert_element_type(7, np.int64), PLAIN,
                                 update_shape=(3,))
    assert_array_equal(np.asarray(integers), [7, 1, 7])
    weak = lax.scatter_apply(np.ones(3, np.float32), indices, lambda x: 2.0 * x, PLAIN, update_shape=(3,))
    assert np.float32 == weak.dtype and not weak.aval.weak_type


def test_one_window_or_none() -> None:
    one = lax.scatter_apply(np.ones(3), np.array([1]), halved, PLAIN)
    assert_array_equal(np.asarray(one), [1.0, 1.5, 1.0])
    none = lax.scatter_apply(np.ones(3), np.zeros((0, 1), int), halved, PLAIN, update_shape=(0,))
    assert_array_equal(np.asarray(none), np.ones(3))


@pytest.mark.parametrize(("func", "words"), [
    (lambda x: x > 0, "func must return what it takes"), (lambda x: (x, x), "func must return what it takes"),
    (lambda x: np.ones(2), "func must return what it takes"), (3, "func must be a function")])
def test_functions_that_return_something_else_are_refused(func: Any, words: str) -> None:
    with pytest.raises(CorejaxTypeError, match=words):
        lax.scatter_apply(np.ones(3), np.array([[1]]), func, PLAIN, update_shape=(1,))


@pytest.mark.parametrize("case", WRITTEN)
def test_it_is_that_of_jax(case: tuple[Any, ...]) -> None:
    jax = pytest.importorskip("jax")
    x, indices, numbers, options = marked(case, False)
    theirs = jax.lax.scatter_apply(x, indices, halved, jax.lax.ScatterDimensionNumbers(*numbers), **options)
    ours = cj.jit(lambda x, indices: lax.scatter_apply(x, indices, halved, numbers, **options))(x, indices)
    assert_allclose(np.asarray(ours), np.asarray(theirs))
