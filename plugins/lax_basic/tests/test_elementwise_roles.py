"""The roles that the basic pack fills: what the kernel asks of them."""

from __future__ import annotations

import numpy as np
import pytest

import corejax as cj
from corejax import lax
from corejax.core import ShapedArray
from corejax.installed.roles import roles

X = np.arange(6.0).reshape(2, 3)


def test_zeros_have_the_type_asked_for():
    for aval in (ShapedArray((), "float32"), ShapedArray((2, 0), "bfloat16"), ShapedArray((3,), "int8", True),
                 ShapedArray((), "complex64", True)):
        assert aval == roles.zeros(aval).aval
    assert "float0[2]" == str(roles.zeros(ShapedArray((2,), cj.float0)).aval)


def test_accumulate_and_multiply():
    assert [2.0, 4.0] == roles.accumulate(np.array([1.0, 2.0]), np.array([1.0, 2.0])).tolist()
    assert [2.0, 4.0] == roles.multiply(np.array([1.0, 2.0]), np.float64(2.0)).tolist()


def test_expand_broadcast_and_move_axis():
    assert (2, 4, 3) == roles.expand(X, 4, 1).shape
    np.testing.assert_array_equal(np.broadcast_to(X[:, None, :], (2, 4, 3)), roles.broadcast(X, (2, 4, 3), (0, 2)))
    np.testing.assert_array_equal(X.T, roles.move_axis(X, 0, 1))


def test_sum_axes_undoes_a_broadcast():
    np.testing.assert_array_equal(X.sum((0, 1)), roles.sum_axes(X, (0, 1)))


def test_stack_and_index_by_static_and_traced_positions():
    stacked = roles.stack([X, X + 1])
    np.testing.assert_array_equal(X + 1, roles.index(stacked, 1))
    np.testing.assert_array_equal(X + 1, cj.jit(roles.index)(stacked, 1))


def test_convert():
    assert "~f32[2,3]" == str(roles.convert(X, "float32", True).aval)
    assert X is roles.convert(X, "float64")


def test_the_standard_basis_is_the_identity_in_the_arrays_shape():
    basis = roles.standard_basis(ShapedArray((2, 3), "float32"))
    np.testing.assert_array_equal(np.eye(6).reshape(6, 2, 3), basis)
    assert "f32[6,2,3]" == str(basis.aval)


@pytest.mark.parametrize("size", [0, 1, 3])
def test_sequential_map_stacks_the_results_of_the_slices(size):
    xs = np.arange(2.0 * size).reshape(size, 2)
    np.testing.assert_array_equal(2 * xs, roles.sequential_map(lambda slices: lax.mul(slices[0], 2.0), [xs]))
    first, second = roles.sequential_map(lambda slices: [lax.sin(slices[0]), slices[1]], [xs, xs])
    np.testing.assert_array_equal(np.sin(xs), first)
    np.testing.assert_array_equal(xs, second)
