"""Comparisons of tangents of integers, as jax and NumPy have them."""

from __future__ import annotations

import operator

import numpy as np
import pytest

import corejax as cj

jax = pytest.importorskip("jax")

ZEROS = np.zeros((2, 3), cj.float0)


def tangent(m, shape=(2, 3)):
    """An array of float0 that reverse mode made."""
    n = np.ones(shape, int)
    return m.vjp(lambda n: n * 1.0, n)[1](np.ones(shape))[0]


PAIRS = {
    "of one kind": lambda m: (tangent(m), tangent(m)),
    "with NumPy's on the right": lambda m: (tangent(m), ZEROS),
    "with NumPy's on the left": lambda m: (ZEROS, tangent(m)),
    "of other shapes": lambda m: (tangent(m), tangent(m, (3,))),
    "of rank 0": lambda m: (tangent(m, ()), tangent(m)),
    "made by full": lambda m: (m.lax.full((4,), 0, cj.float0), m.lax.full((4,), 0, cj.float0)),
}


@pytest.mark.parametrize("name", PAIRS)
@pytest.mark.parametrize("compare", [operator.eq, operator.ne])
def test_arrays_of_float0_are_equal_as_in_jax(compare, name):
    ours, theirs = [np.asarray(compare(*PAIRS[name](m))) for m in (cj, jax)]
    np.testing.assert_array_equal(theirs, ours)
    assert theirs.dtype == ours.dtype


def test_array_equal_of_float0_is_as_in_jax():
    for n in (cj.numpy, jax.numpy):
        assert n.array_equal(ZEROS, ZEROS).item() and not n.array_equal(ZEROS, ZEROS[0]).item()


@pytest.mark.parametrize("compare", [operator.lt, operator.le, operator.gt, operator.ge])
def test_nothing_else_is_asked_of_float0(compare):
    for m in (cj, jax):
        with pytest.raises(TypeError):
            compare(tangent(m), tangent(m))
        with pytest.raises(TypeError):
            tangent(m) == 1  # noqa: B015
        with pytest.raises(TypeError):
            m.lax.eq(ZEROS, ZEROS)


def test_compiled_functions_compare_float0_like_others_though_jax_refuses():
    for compare, wanted in ((operator.eq, True), (operator.ne, False)):
        assert (np.full((2, 3), wanted) == np.asarray(cj.jit(compare)(ZEROS, ZEROS))).all()
        assert (np.full((2, 3), wanted) == np.asarray(cj.vmap(compare)(ZEROS, ZEROS))).all()
        with pytest.raises(TypeError):
            jax.jit(compare)(ZEROS, ZEROS)
