"""Random indices: values, gradients and batches are jax's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

import corejax as cj
from exhaustive import exhaustive_unless
from random_indices import data, host, hosts, random_indexing, seeds

OPERATIONS = ["set", "add", "subtract", "multiply", "divide", "min", "max", "power"]


@pytest.fixture(scope="module")
def jax() -> Any:
    jax = pytest.importorskip("jax")
    jax.config.update("jax_enable_x64", True)
    return jax


def case_of(seed: int, **options: Any) -> tuple[Any, Any, Any, Any]:
    rng = np.random.default_rng(seed)
    case = random_indexing(rng, **options)
    return rng, case, data(rng, case.shape), data(rng, case.positions(mode="clip").shape)


def at_lists(index: Any) -> Any:
    """The index without lists, which jax doesn't take."""
    if isinstance(index, tuple):
        return tuple(at_lists(e) for e in index)
    return np.asarray(index, None if index else int) if isinstance(index, list) else index


@pytest.mark.parametrize("seed", exhaustive_unless(lambda seed: seed % 5 < 3, seeds(24)))
def test_parity_of_reading_its_gradient_and_its_batches_with_jax(jax: Any, seed: int) -> None:
    mode = ["clip", "fill", None][seed % 3]
    # without a mode jax clamps, yet its gradient there is zero: no derivative of what it computes
    _, case, x, w = case_of(seed, outside=mode is not None)
    if 0 in case.shape:
        pytest.skip("jax refuses to read from empty axes")

    def read(x: Any, numbers: Any) -> Any:
        return x.at[at_lists(case.index(numbers))].get(mode=mode)

    ours, theirs = cj.vjp(lambda x: cj.jit(read)(x, case.numbers), x), jax.vjp(
        lambda x: read(x, [jax.numpy.asarray(n) for n in case.numbers]), jax.numpy.asarray(x))
    assert_allclose(np.asarray(ours[0]), np.asarray(theirs[0]))
    assert_allclose(np.asarray(ours[1](w)[0]), np.asarray(theirs[1](jax.numpy.asarray(w))[0]))
    numbers = [np.stack([k, np.flip(k)]) for k in case.numbers]
    xs = np.stack([x, x + 1])
    assert_allclose(np.asarray(cj.vmap(read)(xs, numbers)), np.asarray(jax.vmap(read)(xs, numbers)))


@pytest.mark.parametrize("seed", exhaustive_unless(lambda seed: seed % 5 < 3, seeds(24)))
def test_parity_of_writing_and_its_gradients_with_jax(jax: Any, seed: int) -> None:
    rng, case, x, v = case_of(seed, outside=True)
    operation, mode = OPERATIONS[seed % len(OPERATIONS)], ["drop", "clip", None][seed // len(OPERATIONS) % 3]
    positions = case.positions(mode=mode or "drop")
    repeated = len(np.unique(positions)) < positions.size
    if 0 in case.shape or (repeated and operation == "set"):
        pytest.skip("jax refuses empty axes; of several values that are set, any may win")
    ct = data(rng, x.shape)

    def write(x: Any, numbers: Any, v: Any) -> Any:
        return getattr(x.at[at_lists(case.index(numbers))], operation)(v, mode=mode)

    jnp = jax.numpy
    numbers = [jnp.asarray(n) for n in case.numbers]
    if (repeated and operation in ("multiply", "divide", "power")) or (mode == "clip" and operation in ("min", "max")):
        # jax has no derivative, or infinite ones
        assert_allclose(np.asarray(write(host(x), hosts(case.numbers), host(v))),
                        np.asarray(write(jnp.asarray(x), numbers, v)), rtol=1e-12)
        return
    ours = cj.vjp(lambda x, v: write(x, hosts(case.numbers), v), x, v)
    unique = {"unique_indices": True} if operation in ("multiply", "divide", "power") else {}
    theirs = jax.vjp(lambda x, v: getattr(x.at[at_lists(case.index(numbers))], operation)(v, mode=mode, **unique),
                     jnp.asarray(x), jnp.asarray(v))
    assert_allclose(np.asarray(ours[0]), np.asarray(theirs[0]), rtol=1e-12)
    for mine, its in zip(ours[1](ct), theirs[1](jnp.asarray(ct)), strict=True):
        assert_allclose(np.asarray(mine), np.asarray(its), rtol=1e-10, atol=1e-12)


NUMBERS = [
    ((5,), [[0], [4], [-3], [9]], ((), (0,), (0,)), (1,)),
    ((3, 4), [[2], [0], [5]], ((1,), (0,), (0,)), (1, 4)),
    ((3, 4), [[2, 1], [0, 3], [-1, 1]], ((1, 2), (), (0, 1)), (2, 2)),
    ((3, 4), [[1, 2]], ((1,), (0,), (1, 0)), (1, 2)),
    ((2, 3, 4), [[[1], [2]], [[0], [7]]], ((2,), (1,), (1,), (0,), (0,)), (1, 1, 4))]


@pytest.mark.parametrize("mode", [None, "clip", "fill", "promise_in_bounds"])
@pytest.mark.parametrize("shape, indices, numbers, sizes", NUMBERS, ids=str)
def test_parity_of_gather_with_jax(jax: Any, shape: Any, indices: Any, numbers: Any, sizes: Any, mode: Any) -> None:
    x, i = data(np.random.default_rng(0), shape), np.array(indices, np.int32)
    if mode == "promise_in_bounds":
        i = np.clip(i, 0, 0)

    def f(lax: Any, x: Any) -> Any:
        return lax.gather(x, i, lax.GatherDimensionNumbers(*numbers), sizes, mode=mode)

    ours, theirs = cj.vjp(lambda x: f(cj.lax, x), x), jax.vjp(lambda x: f(jax.lax, x), jax.numpy.asarray(x))
    assert_allclose(np.asarray(ours[0]), np.asarray(theirs[0]))
    if mode is None:  # jax clamps then, and leaves out what it clamped when it differentiates
        return
    w = data(np.random.default_rng(1), ours[0].shape)
    assert_allclose(np.asarray(ours[1](w)[0]), np.asarray(theirs[1](jax.numpy.asarray(w))[0]))


@pytest.mark.sample(24)
@pytest.mark.parametrize("mode", ["clip", "drop"])
@pytest.mark.parametrize("name", ["scatter", "scatter_add", "scatter_mul", "scatter_min", "scatter_max"])
@pytest.mark.parametrize("shape, indices, numbers, sizes", NUMBERS, ids=str)
def test_parity_of_scatters_with_jax(jax: Any, shape: Any, indices: Any, numbers: Any, sizes: Any, name: str,
                                     mode: Any) -> None:
    rng, i = np.random.default_rng(0), np.array(indices, np.int32)
    x = data(rng, shape)
    out = jax.eval_shape(lambda x: jax.lax.gather(x, i, jax.lax.GatherDimensionNumbers(*numbers), sizes), x)
    y, ct = data(rng, out.shape) + 0.3, data(rng, shape)
    unique = mode != "clip"

    def f(lax: Any, x: Any, y: Any) -> Any:
        return getattr(lax, name)(x, i, y, lax.ScatterDimensionNumbers(*numbers), mode=mode, unique_indices=unique)

    if name == "scatter" and not unique:
        y = np.full(y.shape, 0.5)
    jnp = jax.numpy
    if mode == "clip" and name in ("scatter_mul", "scatter_min", "scatter_max"):  # jax has none, or a wrong one
        assert_allclose(np.asarray(cj.jit(lambda x, y: f(cj.lax, x, y))(x, y)), np.asarray(f(jax.lax, x, y)))
        return
    ours = cj.vjp(lambda x, y: f(cj.lax, x, y), x, y)
    theirs = jax.vjp(lambda x, y: f(jax.lax, x, y), jnp.asarray(x), jnp.asarray(y))
    assert_allclose(np.asarray(ours[0]), np.asarray(theirs[0]))
    for mine, its in zip(ours[1](ct), theirs[1](jnp.asarray(ct)), strict=True):
        if name == "scatter" and not unique:
            mine, its = mine.sum(), its.sum()  # which one won may differ
        assert_allclose(np.asarray(mine), np.asarray(its), rtol=1e-10, atol=1e-12)
