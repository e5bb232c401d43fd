"""Loops of a million steps: Python does the same for them as for loops of ten."""

from __future__ import annotations

import math
import sys

import numpy as np
import pytest

import corejax as cj
from corejax import lax
from corejax.ir import count_eqns

MANY = 1_000_000


def recurrence(c, xs):
    return lax.scan(lambda c, x: (lax.sin(c) * 0.9 + x, None), c, xs)[0]


def power(c, xs):
    return lax.fori_loop(0, len(xs), lambda i, c: c * 0.999 + lax.cos(xs[i]), c)


def mapped(c, xs):
    return lax.map(lambda x: lax.sin(x) * c, xs).sum()


PROGRAMS = [recurrence, power, mapped]
every_program = pytest.mark.parametrize("f", PROGRAMS, ids=[f.__name__ for f in PROGRAMS])


def python_calls(function):
    """How many Python functions are called."""
    count = 0

    def note(frame, event, arg):
        nonlocal count
        count += event == "call"

    sys.setprofile(note)
    try:
        function()
    finally:
        sys.setprofile(None)
    return count


def lowered(f, n):
    # a function that is new, so that nothing is remembered
    return lambda: cj.jit(cj.grad(lambda c, xs: f(c, xs))).lower(0.5, np.ones(n))


@every_program
def test_tracing_and_lowering_a_gradient_calls_as_many_functions_whatever_the_length(f):
    for n in (5, 6):
        lowered(f, n)()  # what is loaded or remembered at the first time
    # The least of three: a cache that is full is emptied, and then filled again.
    counts = {n: min([python_calls(lowered(f, n)) for _ in range(3)]) for n in (10, 1000, MANY)}
    assert counts[10] > 100
    assert max(counts.values()) <= 1.05 * min(counts.values()), counts


@every_program
def test_the_program_has_as_many_equations_whatever_the_length(f):
    sizes = {count_eqns(cj.make_jaxpr(cj.grad(f))(0.5, np.ones(n)).jaxpr) for n in (10, MANY)}
    assert 1 == len(sizes)


def test_a_million_steps_run_and_differentiate():
    def f(c, xs):
        return lax.scan(lambda c, x: (c + x * lax.sin(c), None), c, xs)[0]

    xs = np.full(MANY, 1e-6)
    wanted, slope = 0.5, 1.0
    for x in xs.tolist():
        slope *= 1.0 + x * math.cos(wanted)
        wanted += x * math.sin(wanted)
    np.testing.assert_allclose(cj.value_and_grad(f)(0.5, xs), [wanted, slope], rtol=1e-9)
    (sums,) = cj.grad(lambda c, xs: lax.scan(lambda c, x: (c + x * 2.0, None), c, xs)[0], argnums=(1,))(0.5, xs)
    assert (np.asarray(sums) == 2.0).all()


def test_a_million_rounds_of_a_while_loop_run_and_have_tangents():
    def f(x):
        return lax.while_loop(lambda state: state[0] < MANY, lambda state: (state[0] + 1, state[1] + x), (0, 0.0))[1]

    out, dot = cj.jvp(f, (0.5,), (1.0,))
    assert (0.5 * MANY, MANY) == (out, dot)
