"""Every ordering of jit, vmap, jvp, grad and linearize to depth three, over programs with control flow.

`make test` and `make parity` try each ordering of two on two programs, and 50 of the 125 of three on one.

The oracles: the same program unrolled in Python, which decides on values and knows no control-flow primitive; a
fourth-order central difference of it in NumPy; and (where installed) jax.
"""

from __future__ import annotations

import numpy as np
import pytest

import corejax as cj
from corejax import lax
from exhaustive import DEPTHS, SOME, spread, to_depth
from structured_programs import PROGRAMS, Structured

X = np.array([0.3, -0.7, 1.1])
V = np.array([0.5, 0.25, -1.0])
BATCH = np.stack([np.ones(3), 0.5 * np.ones(3), np.array([1.5, -1.0, 0.2])])

KINDS = ("jit", "vmap", "jvp", "grad", "linearize")


class Eager:
    """The functions that unrolled programs use, by corejax."""

    sin, cos, exp, tanh, log1p = map(staticmethod, (lax.sin, lax.cos, lax.exp, lax.tanh, lax.log1p))


def transformations(api, array):
    """Each maps a function of a vector to a scalar to another; `api` is corejax or jax."""
    return {
        "jit": lambda f: api.jit(f),
        "vmap": lambda f: lambda x: api.vmap(lambda w: f(x * w))(array(BATCH)).sum(),
        "jvp": lambda f: lambda x: api.jvp(f, (x,), (array(V),))[1],
        "grad": lambda f: lambda x: (api.grad(f)(x) * array(V)).sum(),
        "linearize": lambda f: lambda x: api.linearize(f, x)[1](array(V)),
    }


#: What each means for an unrolled program: one derivative is as good as another, and nothing is mapped or compiled.
UNROLLED = {
    "jit": lambda f: f,
    "vmap": lambda f: lambda x: sum(f(x * cj.device_put(w)) for w in BATCH),
    **dict.fromkeys(("jvp", "grad", "linearize"), lambda f: lambda x: cj.jvp(f, (x,), (cj.device_put(V),))[1]),
}


def apply(names, table, f):
    for name in reversed(names):
        f = table[name](f)
    return f


def in_numpy(program, x):
    """The unrolled program on NumPy arrays."""
    return float(program.unrolled(np, x))


def directional(f, h=1e-4):
    """The derivative along V by a fourth-order central difference."""
    def df(x):
        return (8 * (f(x + h * V) - f(x - h * V)) - (f(x + 2 * h * V) - f(x - 2 * h * V))) / (12 * h)
    return df


def array(x):
    return cj.device_put(x)


@pytest.mark.sample(20)
@pytest.mark.parametrize("depth", DEPTHS)
@pytest.mark.parametrize("program", PROGRAMS, ids=str)
def test_every_ordering_agrees_with_the_unrolled_program(program, depth):
    table = transformations(cj, array)
    wanted: dict[tuple[str, ...], float] = {}
    for names in to_depth(KINDS, depth, program, PROGRAMS, Structured.allows):
        meaning = tuple("jvp" if n in ("grad", "linearize") else n for n in names if n != "jit")
        if meaning not in wanted:
            wanted[meaning] = float(apply(meaning, UNROLLED, lambda x: program.unrolled(Eager, x))(array(X)))
        got = float(apply(names, table, lambda x: program.structured(cj, lax, x))(array(X)))
        np.testing.assert_allclose(got, wanted[meaning], rtol=1e-9, atol=1e-9, err_msg=str(names))


def test_each_ordering_is_tried_on_some_programs():
    for depth, times in SOME.items():
        assert sorted(spread(KINDS, int(depth[-1])) * times) == sorted([
            names for program in PROGRAMS for names in to_depth(KINDS, depth, program, PROGRAMS, Structured.allows)])


@pytest.mark.parametrize("program", PROGRAMS, ids=str)
def test_first_derivatives_agree_with_differences_of_the_unrolled_program(program):
    table = transformations(cj, array)
    value = float(program.structured(cj, lax, array(X)))
    np.testing.assert_allclose(value, in_numpy(program, X), rtol=1e-12)
    numeric = directional(lambda x: in_numpy(program, x))(X)
    for name in ("jvp", "linearize", "grad"):
        if program.allows((name,)):
            got = float(table[name](lambda x: program.structured(cj, lax, x))(array(X)))
            np.testing.assert_allclose(got, numeric, rtol=1e-8, atol=1e-8, err_msg=name)


@pytest.mark.sample(20)
@pytest.mark.parametrize("depth", DEPTHS)
@pytest.mark.parametrize("program", PROGRAMS, ids=str)
def test_orderings_of_control_flow_agree_with_jax(program, depth):
    jax = pytest.importorskip("jax")
    jnp = pytest.importorskip("jax.numpy")
    jax.config.update("jax_enable_x64", True)
    ours, theirs = transformations(cj, array), transformations(jax, jnp.asarray)
    for names in to_depth(KINDS, depth, program, PROGRAMS, Structured.allows):
        if len(names) == 3 and not {"jit", "linearize"}.isdisjoint(names):
            continue  # time: to the unrolled program, all orderings are compared above
        got = apply(names, ours, lambda x: program.structured(cj, lax, x))(array(X))
        wanted = jax.jit(apply(names, theirs, lambda x: program.structured(jax, jax.lax, x)))(jnp.asarray(X))
        np.testing.assert_allclose(float(got), float(wanted), rtol=1e-9, atol=1e-9, err_msg=str(names))
