"""`corejax.flatten_util` beside jax.flatten_util: vectors of random trees, back, and derivatives through them."""

from __future__ import annotations

from collections import OrderedDict, namedtuple

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import corejax as cj
import corejax.numpy as jnp
from corejax.flatten_util import ravel_pytree

jax = pytest.importorskip("jax")
jax.config.update("jax_enable_x64", True)
theirs = pytest.importorskip("jax.flatten_util").ravel_pytree

Pair = namedtuple("Pair", ["first", "second"])
FLOATS = ["float64", "float32", "float16", "bfloat16"]
DTYPES = [*FLOATS, "int8", "int32", "int64", "uint8", "uint32", "bool", "complex64", "complex128"]
CALLS = [pytest.param(seed, marks=() if seed < 4 else pytest.mark.exhaustive) for seed in range(200)]


class Trees:
    """Random trees, of leaves of some dtypes and perhaps of Python's numbers."""

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)
        few = [DTYPES, FLOATS, ["float64"], ["float32"]][seed % 4]
        self.dtypes = self.rng.choice(few, int(self.rng.integers(1, 4)))
        self.has_numbers = self.rng.random() < 0.3 and len(few) > 1

    def tree(self, depth=3):
        kind = self.rng.integers(0, 8) if depth else 0
        if kind < 2:
            return self.leaf()
        if kind == 2:
            return None
        parts = [self.tree(depth - 1) for _ in range(2 if kind == 3 else self.rng.integers(0, 4))]
        if kind == 3:
            return Pair(*parts)
        if kind == 4:
            return parts
        if kind == 5:
            return tuple(parts)
        return (dict if kind == 6 else OrderedDict)(zip("cab", parts, strict=False))

    def leaf(self):
        if self.has_numbers and self.rng.random() < 0.3:
            return [1.5, 3, True, 2j][self.rng.integers(0, 4 if "complex128" in self.dtypes else 3)]
        dtype = np.dtype(getattr(jax.numpy, self.rng.choice(self.dtypes)))
        x = 5 * self.rng.standard_normal(self.rng.integers(0, 4, self.rng.integers(0, 4)))
        return np.asarray((np.abs(x) if dtype.kind == "u" else x + 1j if dtype.kind == "c" else x).astype(dtype))


def leaves(tree):
    return cj.tree.leaves(tree)


def assert_alike(found, wanted):
    assert cj.tree.structure(found) == cj.tree.structure(wanted)
    for x, y in zip(leaves(found), leaves(wanted), strict=True):
        assert (y.shape, y.dtype) == (x.shape, x.dtype)
        assert_array_equal(np.asarray(x), y)


@pytest.mark.parametrize("seed", CALLS)
def test_parity_of_vectors(seed):
    tree = Trees(seed).tree()
    (vector, unravel), (wanted, their_unravel) = ravel_pytree(tree), theirs(tree)
    kinds = {np.asarray(leaf).dtype for leaf in leaves(tree)}
    common = jnp.result_type(*kinds) if kinds else np.dtype(float)
    assert common == vector.dtype
    assert wanted.shape == vector.shape
    if wanted.dtype != common:  # JAX promotes int32 with float16 to float16, and has float32 for no leaves
        wanted = np.concatenate([np.ravel(leaf).astype(common) for leaf in leaves(tree)]) if kinds else np.zeros(0)
        expected = cj.tree.map(np.asarray, tree)
    else:
        expected = their_unravel(wanted)
    assert_array_equal(np.asarray(vector), wanted)
    assert_alike(unravel(vector), expected)
    assert_alike(cj.jit(unravel)(vector), expected)
    compiled, again = cj.jit(lambda tree: ravel_pytree(tree)[0]), cj.jit(lambda tree: ravel_pytree(tree)[1](
        ravel_pytree(tree)[0]))
    assert_alike([compiled(tree), again(tree)], [wanted, expected])
    assert unravel == ravel_pytree(cj.tree.map(np.asarray, tree))[1]


@pytest.mark.parametrize("seed", CALLS)
def test_parity_of_what_is_no_vector_of_the_tree(seed):
    trees = Trees(seed)
    tree = trees.tree()
    (vector, unravel), (wanted, their_unravel) = ravel_pytree(tree), theirs(tree)
    size = vector.shape[0]
    for shape in ((size + 1,), (max(size - 1, 0),), (size, 1), (1, size), ()):
        if shape == (size,):
            continue
        with pytest.raises(cj.errors.CorejaxValueError, match="doesn't have the size"):
            unravel(np.ones(shape, vector.dtype))
        if size and len(shape) < 2:  # of no leaves JAX takes anything, and of a matrix as many rows
            with pytest.raises((TypeError, ValueError)):
                their_unravel(np.ones(shape, wanted.dtype))
    other = np.ones(size, trees.rng.choice(["float64", "float32", "int32"]))
    outcomes = []
    for function, dtype in ((unravel, vector.dtype), (their_unravel, wanted.dtype)):
        try:
            outcomes.append([np.asarray(x) for x in leaves(function(other))])
        except TypeError:
            assert dtype != other.dtype
            outcomes.append("another dtype")
    if vector.dtype == wanted.dtype:
        assert_alike(*outcomes) if "another dtype" not in outcomes else outcomes[0] == outcomes[1]


@pytest.mark.parametrize("seed", CALLS)
def test_parity_of_slopes_through_vectors(seed):
    trees = Trees(seed)
    trees.dtypes, trees.has_numbers = [["float64"], ["float32"], ["float32", "float64"]][seed % 3], False
    tree = trees.tree()
    (vector, unravel), (wanted, their_unravel) = ravel_pytree(tree), theirs(tree)
    weights = [trees.rng.standard_normal(np.shape(leaf)).astype(leaf.dtype) for leaf in leaves(tree)]
    weights_of_all = trees.rng.standard_normal(vector.shape)

    def total(unravel, map):
        return lambda vector: sum([(weight * leaf ** 2).sum() for weight, leaf in zip(
            weights, map.leaves(unravel(vector)), strict=True)], 0 * vector.sum())

    def total_of_tree(ravel):
        return lambda tree: (weights_of_all * ravel(tree)[0] ** 3).sum()

    slopes = jax.grad(total(their_unravel, jax.tree))(wanted)
    slopes_of_tree = jax.grad(total_of_tree(theirs))(tree)
    rtol = 1e-12 if trees.dtypes == ["float64"] else 1e-5
    for compiled in (lambda f: f, cj.jit):
        found = compiled(cj.grad(total(unravel, cj.tree)))(vector)
        assert not leaves(tree) or slopes.dtype == found.dtype
        assert_allclose(found, slopes, rtol=rtol)
        found = compiled(cj.grad(total_of_tree(ravel_pytree)))(tree)
        assert cj.tree.structure(found) == cj.tree.structure(slopes_of_tree)
        for x, y in zip(leaves(found), leaves(slopes_of_tree), strict=True):
            assert y.dtype == x.dtype
            assert_allclose(x, y, rtol=rtol)
    direction = trees.rng.standard_normal(vector.shape).astype(vector.dtype)
    out, tangent = cj.jvp(lambda vector: ravel_pytree(unravel(vector))[0], (vector,), (direction,))
    assert_array_equal(out, vector)
    assert_allclose(tangent, direction, rtol=rtol)
    many = np.stack([vector, 2 * np.asarray(vector)])
    for x, y in zip(leaves(cj.vmap(unravel)(many)), jax.tree.leaves(jax.vmap(their_unravel)(many.astype(wanted.dtype))),
                    strict=True):
        assert_array_equal(x, y)
