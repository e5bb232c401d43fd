"""Functions of sizes, and short ways to gather and scatter: beside NumPy, and beside jax where it is installed."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import corejax as cj
from corejax import lax

X = np.arange(24.0).reshape(2, 3, 4)
ROWS = lax.ScatterDimensionNumbers((), (0,), (0,))


@pytest.mark.parametrize("shapes", [(), ((),), ((3,),), ((1, 3), (2, 1)), ((0,), (1,)), ((4, 1, 2), (3, 1), ())])
def test_broadcast_shapes_are_those_of_numpy(shapes: tuple[tuple[int, ...], ...]) -> None:
    assert np.broadcast_shapes(*shapes) == lax.broadcast_shapes(*shapes)


@pytest.mark.parametrize("reps", [(1, 1, 1), (2, 1, 3), (0, 2, 1), (1, 1, 2)])
def test_tiles_are_those_of_numpy_and_have_derivatives(reps: tuple[int, ...]) -> None:
    assert_array_equal(np.tile(X, reps), np.asarray(lax.tile(X, reps)))
    gradient = cj.grad(lambda x: (lax.tile(x, reps) * 2.0).sum())(X)
    assert_array_equal(np.full(X.shape, 2.0 * np.prod(reps)), np.asarray(gradient))
    assert (3, *[n * m for n, m in zip(reps, X.shape, strict=True)]) == cj.vmap(lambda x: lax.tile(x, reps))(
        np.stack([X] * 3)).shape


def test_operands_are_brought_to_a_shape_or_a_rank() -> None:
    assert_array_equal(np.broadcast_to(X[0, 0], (3, 4)), np.asarray(lax.broadcast_like(X[0, 0], X[0])))
    assert_array_equal(np.asarray(lax.broadcast_like(X[:, :1], X)), np.broadcast_to(X[:, :1], X.shape))
    assert (1, 1, 2, 3, 4) == lax.broadcast_to_rank(X, 5).shape
    with pytest.raises(ValueError, match="ask for fewer axes: an array has at most 64"):
        lax.broadcast_to_rank(X, 65)
    with pytest.raises(ValueError, match="squeeze or reshape it to remove axes"):
        lax.broadcast_to_rank(X, 2)
    assert (2, 3) == lax.empty((2, 3), np.int8).shape and np.int8 == lax.empty(3, np.int8).dtype


def test_parts_along_an_axis() -> None:
    for axis in (0, 1, -1):
        parts = lax.unstack(X, axis)
        for k, part in enumerate(parts):
            assert_array_equal(np.take(X, k, axis), np.asarray(part))
    assert () == lax.unstack(np.zeros((2, 0)), 1)


def test_index_take_is_indexing_with_vectors() -> None:
    first, second = np.array([0, -1, 1]), np.array([3, 0, -2])
    assert_array_equal(X[first], np.asarray(lax.index_take(X, [first], (0,))))
    assert_array_equal(X[first, :, second], np.asarray(lax.index_take(X, [first, second], (0, 2))))
    gradient = cj.grad(lambda x: lax.index_take(x, [first, second], (0, 2)).sum())(X)
    wanted = np.zeros(X.shape)
    np.add.at(wanted, (first, slice(None), second), 1.0)
    assert_array_equal(wanted, np.asarray(gradient))


def test_scatter_sub_subtracts_each_update() -> None:
    x, at, updates = np.zeros(4), np.array([[1], [1], [9]]), np.array([1.0, 2.0, 4.0])
    assert_array_equal([0, -3, 0, 0], np.asarray(lax.scatter_sub(x, at, updates, ROWS)))
    assert_array_equal([0, -3, 0, -4], np.asarray(lax.scatter_sub(x, at, updates, ROWS, mode="clip")))
    assert_array_equal([-1, -1, 0], np.asarray(cj.grad(lambda u: lax.scatter_sub(x, at, u, ROWS).sum())(updates)))


@pytest.mark.parametrize("mode", lax.GatherScatterMode)
def test_modes_have_names(mode: str) -> None:
    at, numbers = np.array([[1], [2]]), lax.GatherDimensionNumbers((), (0,), (0,))
    assert_array_equal([1.0, 2.0], np.asarray(lax.gather(np.arange(4.0), at, numbers, (1,), mode=mode)))
    assert mode is lax.GatherScatterMode.from_any(mode.value)


@pytest.mark.parametrize("padding", ["SAME", "SAME_LOWER", "VALID", "same"])
def test_parity_of_pads_shapes_and_dtypes(padding: str) -> None:
    jlax = pytest.importorskip("jax").lax
    for sizes in [((5, 8), (2, 3), (1, 2)), ((7,), (1,), (3,)), ((1, 4, 9), (4, 4, 2), (2, 1, 5)), ((), (), ())]:
        assert jlax.padtype_to_pads(*sizes, padding) == lax.padtype_to_pads(*sizes, padding)
    for value in (np.float32, "int8", np.zeros(2, np.uint8), np.complex64(1)):
        assert jlax.dtype(value) == lax.dtype(value)
    assert_array_equal(jlax.shape_as_value((2, 3)), lax.shape_as_value((2, 3)))


def test_large_unsigned_places_to_take_are_beyond_the_end() -> None:
    x = np.arange(10.0, 60.0, 10.0)
    for place in (2 ** 64 - 3, 2 ** 63, 5):
        taken = lax.index_take(x, [np.array([place, 1], np.uint64)], (0,))
        assert [50.0, 20.0] == np.asarray(taken).tolist()
