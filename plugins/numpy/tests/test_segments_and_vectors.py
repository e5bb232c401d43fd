"""`corejax.ops`: reductions of segments. `corejax.flatten_util`: trees as vectors."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import corejax as cj
import corejax.numpy as jnp
from corejax.flatten_util import ravel_pytree
from corejax.ops import segment_max, segment_min, segment_prod, segment_sum

SEGMENTS = {"sum": (segment_sum, np.add, 0), "prod": (segment_prod, np.multiply, 1),
            "max": (segment_max, np.maximum, None), "min": (segment_min, np.minimum, None)}
every_reduction = pytest.mark.parametrize("name", SEGMENTS)


def by_rows(name, data, ids, count):
    """The same, row by row."""
    _, combine, empty = SEGMENTS[name]
    if empty is None:
        if data.dtype.kind in "iu":
            limits = np.iinfo(data.dtype)
            empty = limits.min if name == "max" else limits.max
        else:
            empty = (name == "min") if data.dtype == bool else -np.inf if name == "max" else np.inf
    out = np.full((count, *data.shape[1:]), empty, data.dtype)
    for row, i in zip(data, ids, strict=True):
        if 0 <= i < count:
            out[i] = combine(out[i], row)
    return out


@pytest.mark.sample(100)
@every_reduction
@pytest.mark.parametrize("dtype", ["float64", "float32", "int32", "uint8", "bool"])
@pytest.mark.parametrize("rows, count", [(12, 5), (12, 2), (0, 3), (5, 0), (7, 20)])
@pytest.mark.parametrize("bucket_size", [None, 1, 4, 100])
def test_segments_are_reduced_as_row_by_row(name, dtype, rows, count, bucket_size):
    if dtype == "bool" and name in ("sum", "prod"):
        pytest.skip("refused, see below")
    rng = np.random.default_rng(rows + count)
    data = (3 * rng.standard_normal((rows, 2))).astype(dtype)
    ids = rng.integers(-2, count + 2, rows)
    function = SEGMENTS[name][0]
    found = function(data, ids, count, bucket_size=bucket_size)
    assert found.dtype == dtype
    assert_allclose(np.asarray(found), by_rows(name, data, ids, count), rtol=1e-5 if dtype == "float32" else 1e-12)
    compiled = cj.jit(lambda data, ids: function(data, ids, count, bucket_size=bucket_size))(data, ids)
    assert_allclose(np.asarray(compiled), np.asarray(found), rtol=1e-5 if dtype == "float32" else 1e-12)


@every_reduction
def test_promises_change_nothing_that_is_promised(name):
    data, ids = np.array([3.0, 1.0, 2.0]), np.array([0, 2, 3])
    wanted = by_rows(name, data, ids, 4)
    assert_array_equal(SEGMENTS[name][0](data, ids, 4, indices_are_sorted=True, unique_indices=True), wanted)
    assert_array_equal(SEGMENTS[name][0](data, ids), wanted)
    assert_array_equal(SEGMENTS[name][0](data.tolist(), ids.tolist()), wanted)


@every_reduction
def test_segments_have_derivatives_and_maps(name):
    function = SEGMENTS[name][0]
    data, ids = np.array([3.0, 1.5, 2.0, -1.0]), np.array([0, 1, 0, 1])

    def total(data):
        return (jnp.arange(1.0, 3.0) * function(data, ids, 2) ** 2).sum()

    steps = 1e-6 * np.eye(4)
    differences = [(float(total(data + step)) - float(total(data - step))) / 2e-6 for step in steps]
    assert_allclose(cj.grad(total)(data), differences, rtol=1e-6)
    assert_allclose(cj.jit(cj.grad(total))(data), differences, rtol=1e-6)
    both = np.stack([data, 2 * data])
    assert_allclose(cj.vmap(lambda data: function(data, ids, 2))(both), [function(x, ids, 2) for x in both])
    others = np.array([[0, 1, 1, 0], [1, 1, 0, 5]])
    assert_allclose(cj.vmap(lambda ids: function(data, ids, 2))(others), [function(data, x, 2) for x in others])


def test_a_graph_passes_messages():
    edges = np.array([[0, 1], [1, 2], [2, 0], [0, 2]])
    nodes = np.arange(6.0).reshape(3, 2)
    adjacency = np.zeros((3, 3))
    np.add.at(adjacency, (edges[:, 1], edges[:, 0]), 1.0)
    found = cj.jit(lambda nodes: segment_sum(nodes[edges[:, 0]], edges[:, 1], 3))(nodes)
    assert_allclose(found, adjacency @ nodes)


def test_buckets_round_less():
    data = np.full(2 ** 16, 0.1, "float32")
    ids = np.zeros(len(data), int)
    exact = len(data) * float(np.float32(0.1))
    plain, buckets = [abs(float(segment_sum(data, ids, 1, bucket_size=size)[0]) - exact) for size in (None, 256)]
    assert buckets < plain / 10


WRONG = {
    "floats as segments": (lambda: segment_sum(np.ones(3), np.ones(3)), TypeError, "segments are told by integers"),
    "another length": (lambda: segment_sum(np.ones(3), np.ones(2, int)), ValueError, "each row needs a segment"),
    "a number": (lambda: segment_sum(1.0, 0), ValueError, "each row needs a segment"),
    "a negative count": (lambda: segment_max(np.ones(2), np.array([0, 1]), -1), ValueError, "can't be negative"),
    "a broken count": (lambda: segment_max(np.ones(2), np.array([0, 1]), 2.5), TypeError, "must be an integer"),
    "no count in a program": (lambda: cj.jit(segment_sum)(np.ones(2), np.array([0, 1])), TypeError, "must be given"),
    "a traced count": (lambda: cj.jit(segment_sum)(np.ones(2), np.array([0, 1]), 2), TypeError, "must be a number"),
    "sums of truth values": (lambda: segment_sum(np.ones(2, bool), np.array([0, 1])), TypeError, "no sums"),
    "products of truth values": (lambda: segment_prod(np.ones(2, bool), np.array([0, 1])), TypeError, "no sums"),
    "a bucket of no rows": (lambda: segment_min(np.ones(2), np.array([0, 1]), bucket_size=0), ValueError, "needs rows"),
    "an unknown mode": (lambda: segment_min(np.ones(2), np.array([0, 1]), mode="wrong"), ValueError, "unknown mode"),
    "text as data": (lambda: segment_sum("ab", np.array([0, 1])), TypeError, "not an array"),
    "a shorter vector": (lambda: ravel_pytree([1.0, 2.0])[1](np.ones(3)), ValueError, "the size of the tree"),
    "a matrix": (lambda: ravel_pytree([1.0, 2.0])[1](np.ones((1, 2))), ValueError, "the size of the tree"),
    "another dtype": (lambda: ravel_pytree([np.float32(1), 2])[1](np.ones(2, "float16")), TypeError, "another dtype"),
    "a leaf of text": (lambda: ravel_pytree({"a": [1.0, "x"]}), TypeError, r"the leaf \['a'\]\[1\] isn't an array"),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_uses_are_told(case):
    use, kind, text = WRONG[case]
    with pytest.raises(kind, match=text) as caught:
        use()
    assert isinstance(caught.value, cj.errors.CorejaxError)
    assert caught.value.got is not None and caught.value.todo is not None
    assert __file__ in caught.value.where


TREES = {
    "numbers": {"a": 1.0, "b": (2, True)}, "arrays": [np.arange(6.0).reshape(2, 3), np.ones(4)], "nothing": {},
    "dtypes": (np.arange(3, dtype="int8"), np.ones(2, "float32")), "empty": {"x": np.zeros((0, 3)), "y": 1.0},
    "complex": [np.array(2.0), np.array([1j])], "one": np.eye(2),
    "empty between": [np.ones(2), np.zeros(0), np.full(2, 3.0)],  # sliced out again in a program, it ended the process
    "numbers of more digits": {"rate": 1.1, "step": 10 ** 6, "weights": np.ones(3, "float16")}}


@pytest.mark.parametrize("name", TREES)
def test_a_tree_comes_back_from_its_vector(name):
    tree = TREES[name]
    vector, unravel = ravel_pytree(tree)
    assert 1 == vector.ndim
    back = unravel(vector)
    assert cj.tree.structure(tree) == cj.tree.structure(back)
    for x, y in zip(cj.tree.leaves(tree), cj.tree.leaves(back), strict=True):
        assert_array_equal(np.asarray(y), x)
        assert np.asarray(x).dtype == y.dtype
    assert_array_equal(cj.jit(lambda tree: ravel_pytree(tree)[0])(tree), vector)
    assert_array_equal(ravel_pytree(cj.jit(unravel)(vector))[0], vector)
    again = cj.jit(lambda tree: ravel_pytree(tree)[1](ravel_pytree(tree)[0]))(tree)
    assert_array_equal(ravel_pytree(again)[0], vector)


def test_functions_back_are_equal_for_trees_of_one_structure():
    first, second, third = [ravel_pytree({"w": w})[1] for w in (np.ones(3), np.zeros(3), np.ones(2))]
    assert first == second != third
    assert ravel_pytree([1.0])[1] == ravel_pytree([np.ones(())])[1]
    assert hash(first) == hash(second)
    assert "f64[3]" in repr(first)


def test_derivatives_go_through_vectors():
    params = {"w": np.arange(3.0), "b": np.array(2.0)}
    vector, unravel = ravel_pytree(params)

    def loss(vector):
        params = unravel(vector)
        return (params["w"] ** 2).sum() * params["b"]

    assert_allclose(cj.grad(loss)(vector), np.append(np.sum(params["w"] ** 2), 4 * params["w"]))
    assert (4, 4) == cj.hessian(loss)(vector).shape
    many = cj.vmap(unravel)(np.stack([vector, vector]))
    assert (2, 3) == many["w"].shape
