"""Bounded while loops whose steps add up the rows of a map, or run on several devices."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

import corejax as cj
from corejax import lax
from corejax.errors import CorejaxNotImplementedError

ROWS = np.array([[1.0, 2.0], [2.0, 4.0], [9.0, 9.0]])


def growing(kind, xs, **more):
    """Rows that grow by the sum of all, also of those that have ended, which are as they were when they ended."""
    return cj.vmap(lambda x: kind(lambda s: s.sum() < 17, lambda s: s + 0.1 * lax.psum(s, "i"), x, **more),
                   axis_name="i")(xs)


def written_out(xs):
    while True:
        active = [np.asarray(lax.stop_gradient(x)).sum() < 17 for x in xs]
        if True not in active:
            return xs
        total = xs.sum(0)
        xs = lax.stack([x + 0.1 * total if a else x for x, a in zip(xs, active, strict=True)], 0)


@pytest.mark.parametrize("max_steps", [20, 200])
def test_rows_that_have_ended_take_part(max_steps):
    found = growing(lax.bounded_while_loop, ROWS, max_steps=max_steps)
    assert np.asarray(growing(lax.while_loop, ROWS)).tobytes() == np.asarray(found).tobytes()
    slopes = cj.grad(lambda xs: (growing(lax.bounded_while_loop, xs, max_steps=max_steps) ** 2).sum())(ROWS)
    assert_allclose(slopes, cj.grad(lambda xs: (written_out(xs) ** 2).sum())(ROWS), rtol=1e-12)


def test_a_mapped_derivative_of_such_a_loop_is_refused():
    def total(x):
        return lax.bounded_while_loop(lambda s: s.sum() < 29, lambda s: s + lax.psum(s, "i"), x, max_steps=20).sum()
    with pytest.raises(CorejaxNotImplementedError, match="rows that end at different steps can't be added up"):
        cj.vmap(cj.grad(total), axis_name="i")(ROWS)
