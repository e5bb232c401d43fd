"""Random indices: eager, compiled and batched, against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import corejax as cj
from corejax.errors import CorejaxIndexError
from corejax_lax_basic.indexing import at
from random_indices import Indexing, data, host, hosts, random_indexing, read, seeds, written

OPERATIONS = ["set", "add", "subtract", "multiply", "divide", "min", "max", "power"]


def same(expected: Any, *found: Any) -> None:
    for out in found:
        assert (expected.shape, expected.dtype) == (out.shape, out.dtype)
        assert_array_equal(np.asarray(out), expected)


def close(expected: Any, *found: Any) -> None:
    for out in found:
        assert (expected.shape, expected.dtype) == (out.shape, out.dtype)
        assert_allclose(np.asarray(out), expected, rtol=1e-10, atol=1e-12)


def case_of(seed: int, **options: Any) -> tuple[Any, Indexing, Any]:
    rng = np.random.default_rng(seed)
    case = random_indexing(rng, **options)
    return rng, case, data(rng, case.shape)


def values_for(rng: Any, shape: tuple[int, ...]) -> Any:
    """Numbers that broadcast to a shape."""
    sizes = tuple(1 if rng.random() < 0.2 else n for n in shape[rng.integers(0, len(shape) + 1):])
    return data(rng, shape if rng.random() < 0.6 else sizes) + rng.choice([-2.0, 0.5])


@pytest.mark.parametrize("seed", seeds(90))
def test_reading_at_known_places(seed: int) -> None:
    _, case, x = case_of(seed)
    expected = x[case.index()]
    same(np.asarray(expected), host(x)[case.index()], read(x, case.positions()))
    same(np.asarray(expected), cj.vjp(lambda x: x[case.index()], x)[0])
    if seed % 4 == 0:
        same(np.asarray(expected), cj.device_put(x)[case.index()], cj.jit(lambda x: x[case.index()])(x))


@pytest.mark.parametrize("seed", seeds(60))
def test_reading_at_computed_places_clamps_them(seed: int) -> None:
    _, case, x = case_of(seed, outside=True)
    expected = read(x, case.positions(mode="clip"))
    same(expected, host(x)[case.index(hosts(case.numbers))])
    same(expected, cj.vjp(lambda x: x[case.index(hosts(case.numbers))], x)[0])
    if seed % 4 == 0:
        same(expected, cj.jit(lambda x, n: x[case.index(n)])(x, case.numbers))
        same(expected, host(x)[case.index([cj.device_put(n) for n in case.numbers])])


@pytest.mark.parametrize("mode", ["clip", "fill"])
@pytest.mark.parametrize("seed", seeds(36))
def test_reading_in_a_mode(seed: int, mode: str) -> None:
    _, case, x = case_of(seed, outside=True)
    expected = read(x, case.positions(mode=mode))
    same(expected, host(x).at[case.index()].get(mode=mode))
    same(expected, host(x).at[case.index(hosts(case.numbers))].get(mode=mode))
    if seed % 4 == 0:
        same(expected, cj.jit(lambda x, n: x.at[case.index(n)].get(mode=mode))(x, case.numbers))
    if mode == "fill":
        same(read(x, case.positions(mode=mode), -3), host(x).at[case.index()].get(mode=mode, fill_value=-3.0))


@pytest.mark.parametrize("seed", seeds(96))
def test_writing_at_known_places(seed: int) -> None:
    rng, case, x = case_of(seed)
    operation, positions = OPERATIONS[seed % len(OPERATIONS)], case.positions()
    v = values_for(rng, positions.shape)
    expected = written(x, positions, v, operation)
    close(expected, getattr(host(x).at[case.index()], operation)(v))
    if seed % 4 < 2:
        close(expected, cj.jit(lambda x, v: getattr(x.at[case.index()], operation)(v))(x, v))


@pytest.mark.parametrize("mode", [None, "drop", "fill", "clip"])
@pytest.mark.parametrize("seed", seeds(40))
def test_writing_at_computed_places(seed: int, mode: str | None) -> None:
    rng, case, x = case_of(seed, outside=True)
    operation, positions = OPERATIONS[seed % len(OPERATIONS)], case.positions(mode=mode or "drop")
    v = values_for(rng, positions.shape)
    if mode == "clip" and operation == "set" and len(np.unique(positions)) < positions.size:
        v = v.ravel()[0] if v.size else 0.5  # one of several wins: let them be equal
    expected = written(x, positions, v, operation)

    def write(x: Any, numbers: Any, v: Any) -> Any:
        return getattr(at(x)[case.index(numbers)], operation)(v, mode=mode)

    close(expected, write(host(x), hosts(case.numbers), v))
    if mode is not None:
        close(expected, getattr(host(x).at[case.index()], operation)(v, mode=mode))
    if seed % 4 < 2:
        close(expected, cj.jit(write)(x, case.numbers, v))


@pytest.mark.parametrize("seed", seeds(36))
def test_every_mapping_is_the_loop(seed: int) -> None:
    rng, case, x = case_of(seed, outside=True)
    mode, n = ["clip", "fill", None][seed % 3], 3
    operation = OPERATIONS[seed % len(OPERATIONS)]
    numbers = [rng.permuted(np.stack([k] * n), axis=0) if rng.random() < 0.5 else np.stack(
        [k, np.roll(k, 1), np.flip(k)]) for k in case.numbers]
    xs = data(rng, (n, *case.shape))
    vs = data(rng, (n, *case.positions(mode="clip").shape))
    if operation == "set":
        vs = vs * 0 + 0.5

    def both(x: Any, numbers: Any, v: Any) -> Any:
        part = at(x)[case.index(numbers)]
        return part.get(mode=mode), getattr(part, operation)(v, mode=mode)

    axis = int(rng.integers(0, len(case.shape) + 1))
    for x_axis, number_axis in ((axis, None), (None, 0), (axis, 0)):
        def take(k: int) -> Any:
            return (xs[k] if x_axis is not None else x, [m[k] for m in numbers]  # noqa: B023
                    if number_axis is not None else hosts(case.numbers), vs[k])  # noqa: B023
        expected = [both(host(x), hosts(m), v) for x, m, v in (take(k) for k in range(n))]
        mapped = cj.vmap(both, in_axes=(x_axis, number_axis, 0))
        args = (np.moveaxis(xs, 0, axis) if x_axis is not None else x,
                numbers if number_axis is not None else hosts(case.numbers), vs)
        if number_axis is not None and not numbers and x_axis is None:
            continue
        for call in (mapped, cj.jit(mapped)) if seed % 6 == 0 else (mapped,):
            for out, want in zip(call(*args), zip(*expected, strict=True), strict=True):
                close(np.stack([np.asarray(w) for w in want]), out)


@pytest.mark.parametrize("seed", seeds(100))
def test_what_numpy_refuses_is_refused(seed: int) -> None:
    _, case, x = case_of(seed, valid=False)
    try:
        expected = x[case.index()]
    except IndexError:
        for use in (lambda: host(x)[case.index()], lambda: host(x).at[case.index()].set(0.0),
                    lambda: cj.make_jaxpr(lambda x: x[case.index()])(x)):
            with pytest.raises(CorejaxIndexError) as caught:
                use()
            assert None not in (caught.value.got, caught.value.wanted, caught.value.where, caught.value.todo)
    else:
        same(expected, host(x)[case.index()])
