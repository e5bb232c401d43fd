"""A scan in the step of a scan reads and writes the rows of the outer one's arrays where they are."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import corejax as cj
from corejax import lax

Scan = Callable[..., Any]


def in_python(f: Any, carry: Any, xs: Any, reverse: bool = False, unroll: int = 1) -> Any:
    """What a scan computes, step by step."""
    n = len(cj.tree.leaves(xs)[0])
    ys: list[Any] = [None] * n
    for i in reversed(range(n)) if reverse else range(n):
        carry, ys[i] = f(carry, cj.tree.map(lambda x, i=i: x[i], xs))
    return carry, cj.tree.map(lambda *rows: np.stack(rows), *ys)


def rows(outer: Scan, inner: Scan) -> Callable[[Any, Any], Any]:
    """A scan whose steps scan two of their three inputs, and return two outputs of that and two of their own."""
    def step(c: Any, x: Any) -> Any:
        return lax.sin(c) * 0.9 + x["a"], (c * x["a"], x["b"] + c)

    def steps(c: Any, x: Any) -> Any:
        before = c * 2.0 + x["z"]
        c, (first, second) = inner(step, before, {"a": x["a"], "b": x["b"]})
        return c * 0.5 + before, (first, second, c, x["z"] + 1.0)

    return lambda c, xs: outer(steps, c, xs)


def inputs(*shape: int) -> Any:
    generator = np.random.default_rng(0)
    return {"a": generator.normal(size=shape), "b": generator.normal(size=(*shape, 3)),
            "z": generator.normal(size=shape[0])}


def close(found: Any, wanted: Any) -> None:
    for x, y in zip(cj.tree.leaves(found), cj.tree.leaves(wanted), strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize(("backward", "inner_backward", "unroll", "inner_unroll"), [
    *itertools.product([False, True], [False, True], [1, 2], [1, 3])])
def test_nested_scans_compute_what_their_steps_do(backward: bool, inner_backward: bool, unroll: int, inner_unroll: int
                                                  ) -> None:
    def program(scan: Scan) -> Callable[[Any, Any], Any]:
        return rows(lambda *args: scan(*args, reverse=backward, unroll=unroll),
                    lambda *args: scan(*args, reverse=inner_backward, unroll=inner_unroll))

    close(cj.jit(program(lax.scan))(0.3, inputs(5, 7)), program(in_python)(0.3, inputs(5, 7)))


@pytest.mark.parametrize("shape", [(1, 3), (3, 1), (2, 2)])
def test_few_steps(shape: tuple[int, int]) -> None:
    close(cj.jit(rows(lax.scan, lax.scan))(0.3, inputs(*shape)), rows(in_python, in_python)(0.3, inputs(*shape)))


def test_derivatives_and_batches_of_nested_scans() -> None:
    def total(scan: Scan) -> Callable[[Any, Any], Any]:
        def of(c: Any, xs: Any) -> Any:
            end, ys = rows(scan, scan)(c, xs)
            return sum([(y * y).sum() for y in cj.tree.leaves(ys)], end)
        return of

    xs = inputs(4, 5)
    wanted = cj.grad(total(in_python_traced), (0, 1))(0.3, xs)
    close(cj.jit(cj.grad(total(lax.scan), (0, 1)))(0.3, xs), wanted)
    batch = cj.tree.map(lambda x: np.stack([x, 2.0 * x]), xs)
    found = cj.jit(cj.vmap(rows(lax.scan, lax.scan), (None, 0)))(0.3, batch)
    for i in range(2):
        close(cj.tree.map(lambda y, i=i: y[i], found),
              rows(in_python, in_python)(0.3, cj.tree.map(lambda x, i=i: x[i], batch)))


def in_python_traced(f: Any, carry: Any, xs: Any) -> Any:
    n = cj.tree.leaves(xs)[0].shape[0]
    ys = []
    for i in range(n):
        carry, y = f(carry, cj.tree.map(lambda x, i=i: x[i], xs))
        ys.append(y)
    return carry, cj.tree.map(lambda *rows: lax.concatenate([lax.expand_dims(row, (0,)) for row in rows], 0), *ys)


def test_three_levels() -> None:
    def program(scan: Scan) -> Callable[[Any, Any], Any]:
        def step(c: Any, x: Any) -> Any:
            return lax.sin(c) + x, c * x

        return lambda c, xs: scan(lambda c, x: scan(lambda c, x: scan(step, c, x), c, x, reverse=True), c, xs)

    for c, xs in ((0.3, np.random.default_rng(0).normal(size=(3, 4, 5))),
                  (np.zeros(2), np.random.default_rng(0).normal(size=(3, 4, 5, 2)))):
        close(cj.jit(program(lax.scan))(c, xs), program(in_python)(c, xs))


def test_rows_of_numbers_are_not_copied() -> None:
    compiled = cj.jit(lambda c, xs: lax.scan(lambda c, x: lax.scan(lambda c, x: (c + x, c), c, x), c, xs))
    text = compiled.lower(0.0, np.zeros((11, 13))).as_text()
    assert "tensor<1x1xf64>" in text and "13xf64>" in text
    assert "tensor<13xf64>" not in text and "tensor<1x13xf64>" not in text


@pytest.mark.parametrize("step", [
    lambda c, x: (lax.scan(lambda c, x: (c + x, None), c, x)[0] + x[0], x),  # used for something else, too
    lambda c, x: (c, lax.scan(lambda c, x: (c + x, c + x), c, lax.sin(x))[1] * 2.0),  # made of it
    lambda c, x: (lax.scan(lambda c, x: (c + x, None), c, x)[0] + lax.scan(lambda c, x: (c * x, x), c, x)[0], None),
    lambda c, x: lax.scan(lambda c, x: (c + x, c), c, lax.slice_in_dim(x, 0, 0)),
    lambda c, x: (c, [lax.scan(lambda c, x: (c + x, c), c, x)[1]] * 2)])
def test_rows_that_are_used_otherwise(step: Any) -> None:
    xs = np.random.default_rng(0).normal(size=(3, 4))
    close(cj.jit(lambda c, xs: lax.scan(step, c, xs))(0.5, xs), _each(step, 0.5, xs))


def _each(step: Any, c: Any, xs: Any) -> Any:
    """The same, where each step is a program of its own."""
    ys = []
    for x in xs:
        c, y = step(c, x)
        ys.append(y)
    return c, cj.tree.map(lambda *rows: np.stack(rows), *ys)


@pytest.mark.parametrize("dtype", ["int4", "bool", "float32", "complex64"])
def test_rows_of_any_type(dtype: str) -> None:
    xs = lax.convert_element_type(np.arange(12).reshape(3, 4) % 2, dtype)
    found = cj.jit(lambda xs: lax.scan(lambda c, x: lax.scan(lambda c, x: (c, x), c, x), 0, xs))(xs)[1]
    assert found.dtype == xs.dtype and np.asarray(found).tobytes() == np.asarray(xs).tobytes()
