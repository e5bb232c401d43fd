"""Sorting beside NumPy: orders, ties, both ways in which programs sort, derivatives, maps, methods, and time."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import corejax as cj
from corejax import lax

RNG = np.random.default_rng(0)

#: Programs sort few elements by a comparator, many by packing them into words.
SIZES = (7, 300)

WAYS = {"eager": lambda f: f, "compiled": cj.jit}
every_way = pytest.mark.parametrize("way", WAYS)
every_size = pytest.mark.parametrize("size", SIZES)


@every_way
@every_size
@pytest.mark.parametrize("dtype", ["bool", "int8", "uint16", "int32", "uint64", "float16", "float32", "float64"])
def test_one_array_is_sorted_as_numpy_sorts_it(way, size, dtype):
    x = (RNG.standard_normal((size, 3)) * 100).astype(dtype)
    for axis in (0, 1):
        assert_array_equal(WAYS[way](lambda x, axis=axis: lax.sort(x, axis))(x), np.sort(x, axis))


@every_way
@every_size
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_subnormal_numbers_are_sorted_too(way, size, dtype):
    x = (RNG.integers(-5, 6, size) * np.finfo(dtype).tiny / 8).astype(dtype)
    assert_array_equal(WAYS[way](lax.sort)(x), np.sort(x))
    assert_array_equal(WAYS[way](lax.sort_key_val)(x, np.arange(size))[1], np.argsort(x, kind="stable"))


@every_way
@every_size
def test_zeros_keep_their_order_and_their_signs(way, size):
    x = np.where(RNG.random(size) < 0.5, 0.0, -0.0)
    assert_array_equal(np.signbit(WAYS[way](lax.sort)(x)), np.signbit(x))


@every_way
@every_size
@pytest.mark.parametrize("num_keys", [1, 2, 3])
def test_several_keys_are_sorted_lexicographically(way, size, num_keys):
    keys = [RNG.integers(0, 3, size).astype(np.int16), RNG.integers(-2, 2, size) * 0.5, RNG.random(size) < 0.5]
    places = np.arange(size)
    found = WAYS[way](lambda *xs: lax.sort(xs, num_keys=num_keys))(*keys, places)
    order = np.lexsort([key for key in reversed(keys[:num_keys])])
    for got, wanted in zip(found, (*keys, places), strict=True):
        assert_array_equal(got, wanted[order])


@every_way
@every_size
def test_more_keys_than_fit_into_words_are_sorted_as_well(way, size):
    keys = [RNG.integers(0, 2, size).astype(np.int64) for _ in range(5)]
    found = WAYS[way](lambda *xs: lax.sort(xs, num_keys=5))(*keys)
    assert_array_equal(np.stack(found), np.stack(keys)[:, np.lexsort(keys[::-1])])


@every_way
def test_complex_numbers_are_ordered_by_real_then_by_imaginary_parts(way):
    x = RNG.integers(-2, 3, 300) + 1j * RNG.integers(-2, 3, 300)
    assert_array_equal(WAYS[way](lax.sort)(x), np.sort(x))


@every_way
@pytest.mark.parametrize("dtype", ["bool", "uint8", "int32", "uint32", "int64", "uint64", "float16", "float64"])
def test_the_largest_are_those_that_a_sort_puts_last(way, dtype):
    x = (RNG.standard_normal((4, 300)) * 100).astype(dtype)
    for k in (0, 1, 10, 299, 300):
        values, places = WAYS[way](lambda x, k=k: lax.top_k(x, k))(x)
        ranks = np.unique(x, return_inverse=True)[1].reshape(x.shape)
        order = np.argsort(-ranks, 1, kind="stable")[:, :k]
        assert_array_equal(places, order)
        assert_array_equal(values, np.take_along_axis(x, order, 1))
        assert (places.dtype, values.dtype) == (np.int32, np.dtype(dtype))


@every_way
def test_approximations_are_exact(way):
    x = RNG.standard_normal((3, 2000)).astype(np.float32)
    values, places = WAYS[way](lambda x: lax.approx_min_k(x, 5, recall_target=0.5))(x)
    assert_array_equal(places, np.argsort(x, 1, kind="stable")[:, :5])
    assert_array_equal(values, np.sort(x, 1)[:, :5])
    values, places = WAYS[way](lambda x: lax.approx_max_k(x, 5, aggregate_to_topk=False))(x)
    assert_array_equal(values, np.sort(x, 1)[:, ::-1][:, :values.shape[1]])


def test_approximations_of_narrow_floats_put_nan_last():
    x = np.array([1.0, np.nan, -2.0, 3.0]).astype(cj.core.dtypes.canonical("float8_e5m2"))
    for f in WAYS.values():
        assert_array_equal(f(lambda x: lax.approx_min_k(x, 4))(x)[1], [2, 0, 3, 1])


# Derivatives and maps

@every_way
def test_tangents_move_with_their_elements_and_only_with_those(way):
    x, y, w = RNG.standard_normal((3, 300))
    order = np.argsort(x)
    pulled = WAYS[way](lambda x, y: cj.vjp(lambda *xs: lax.sort_key_val(*xs), x, y)[1]((w, 2.0 * w)))(x, y)
    back = np.argsort(order)
    assert_allclose(pulled[0], w[back])
    assert_allclose(pulled[1], 2.0 * w[back])
    assert_allclose(cj.jvp(lambda x: lax.sort_key_val(x, y)[1], (x,), (w,))[1], np.zeros(300))


def test_integers_beside_floats_have_no_derivative():
    keys, x = np.array([2, 0, 1]), np.array([5.0, 6.0, 7.0])
    assert_array_equal(cj.grad(lambda x: (lax.sort_key_val(keys, x)[1] * np.arange(3.0)).sum())(x), [2.0, 0.0, 1.0])


def test_a_gather_of_a_sort_has_no_index_but_the_places():
    program = cj.make_jaxpr(lambda x, t: cj.jvp(lax.sort, (x,), (t,)))(np.ones((40, 50)), np.ones((40, 50)))
    assert max(var.aval.size for eqn in program.jaxpr.eqns for var in eqn.outvars) == 40 * 50


@every_way
def test_maps_take_any_axis_and_operands_that_have_none(way):
    keys, values = RNG.standard_normal((4, 5)), RNG.standard_normal((5, 3))
    mapped = WAYS[way](cj.vmap(lambda k, v: lax.sort_key_val(k, v), in_axes=(None, 1), out_axes=1))
    for got, wanted in zip(mapped(keys[0], values), (keys[0], values), strict=True):
        order = np.argsort(keys[0])
        assert_array_equal(got, np.broadcast_to((wanted if wanted.ndim == 2 else wanted[:, None])[order], (5, 3)))
    top = WAYS[way](cj.vmap(lambda x: lax.top_k(x, 2)[0], in_axes=1))(keys)
    assert_array_equal(top, -np.sort(-keys.T)[:, :2])


# Methods

def test_methods_return_sorted_arrays():
    x = cj.device_put(np.array([[3.0, 1.0], [2.0, 4.0]]))
    assert [[1.0, 3.0], [2.0, 4.0]] == x.sort().tolist()
    assert [[1, 0], [0, 1]] == x.argsort(axis=0).tolist()
    assert [1.0, 2.0, 3.0, 4.0] == x.sort(None).tolist()


def test_numbers_from_another_process_are_sorted_exactly():
    x = np.array([0.926, -1.428, -1.187])
    for sent in (pickle.loads(pickle.dumps(x)), pickle.loads(pickle.dumps(lax.copy(x)))):
        assert sorted(x.tolist()) == lax.sort(sent).tolist()
