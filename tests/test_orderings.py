"""Every ordering of jit, vmap, jvp, grad and linearize to depth three, over a set of programs.

`make test` and `make parity` try each ordering of two on two programs, and 50 of the 125 of three on one.

A program is a function from a vector to a scalar. Each transformation below takes such a function to such a function,
and its meaning is also known numerically: so an ordering's result is compared with central differences in float64 of
the ordering without its outermost derivative, with the same ordering with jit taken out, and (where installed) jax.
"""

from __future__ import annotations

import numpy as np
import pytest

import corejax as cj
from corejax import lax
from exhaustive import DEPTHS, SOME, spread, to_depth

X = np.array([0.3, -0.7, 1.1])
V = np.array([0.5, 0.25, -1.0])
BATCH = np.stack([np.ones(3), 0.5 * np.ones(3)])


def polynomial(np_, x):
    return (x * x * x - 2.0 * x * x[0] + x).sum()


def transcendental(np_, x):
    return (np_.sin(x) * np_.exp(-x * x) + np_.tanh(x[1] * x)).sum()


def matrix_product(np_, x):
    a = np_.sin(x[:, None] * x[None, :])
    return (a @ x).sum() + (x @ a)[0]


def reductions(np_, x):
    return x.max() * (x * x).sum() + (x * x).mean() + np_.exp(x).prod()


def indexing(np_, x):
    return x[0] * x[-1] + (x[::-1] * x)[1:].sum() + np_.cos(x[1:]).sum() * x[0]


def branching(np_, x):
    return np_.where(x > 0.0, x * x, np_.sin(x)).sum()


PROGRAMS = [polynomial, transcendental, matrix_product, reductions, indexing, branching]


class CorejaxNumPy:
    """The few functions of numpy that the programs use, by corejax."""

    sin, cos, exp, tanh = staticmethod(lax.sin), staticmethod(lax.cos), staticmethod(lax.exp), staticmethod(lax.tanh)

    @staticmethod
    def where(pred, on_true, on_false):
        return lax.select(pred, on_true, on_false)


def transformations(api, scale):
    """Each maps a function of a vector to a scalar to another; `api` is corejax or jax."""
    return {
        "jit": lambda f: api.jit(f),
        "vmap": lambda f: lambda x: api.vmap(lambda w: f(x * w))(scale(BATCH)).sum(),
        "jvp": lambda f: lambda x: api.jvp(f, (x,), (scale(V),))[1],
        "grad": lambda f: lambda x: (api.grad(f)(x) * scale(V)).sum(),
        "linearize": lambda f: lambda x: api.linearize(f, x)[1](scale(V)),
    }


def directional(f, h=1e-5):
    """The derivative along V by a fourth-order central difference."""
    def df(x):
        return (8 * (f(x + h * V) - f(x - h * V)) - (f(x + 2 * h * V) - f(x - 2 * h * V))) / (12 * h)
    return df


#: What each transformation means, in NumPy.
MEANINGS = {
    "jit": lambda f: f,
    "vmap": lambda f: lambda x: sum(f(x * w) for w in BATCH),
    "jvp": directional,
    "grad": directional,
    "linearize": directional,
}

KINDS = tuple(MEANINGS)


def apply(names, table, f):
    for name in reversed(names):
        f = table[name](f)
    return f


def derivatives(names):
    return sum(MEANINGS[name] is directional for name in names)


@pytest.mark.sample(8)
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
@pytest.mark.parametrize("depth", DEPTHS)
def test_orderings_agree_with_each_other_and_with_differences(program, depth):
    table = transformations(cj, lambda x: x)

    def fun(x):
        return program(CorejaxNumPy, x)

    by_meaning: dict[tuple, list] = {}
    for names in to_depth(KINDS, depth, program, PROGRAMS):
        meaning = tuple("d" if MEANINGS[n] is directional else n for n in names if n != "jit")
        result = float(apply(names, table, fun)(cj.device_put(X)))
        by_meaning.setdefault(meaning, []).append((names, result))
    for meaning, results in by_meaning.items():
        plain = ["jvp" if m == "d" else m for m in meaning]
        reference = float(apply(plain, table, fun)(cj.device_put(X)))
        for names, result in results:
            np.testing.assert_allclose(result, reference, rtol=1e-10, atol=1e-10, err_msg=str(names))
        # One numeric derivative of the exact result of the rest: differences of differences lose too many digits.
        if "d" in meaning:
            first = meaning.index("d")
            rest = ["grad" if m == "d" else m for m in meaning[first + 1:]]
            inner = apply(rest, table, fun)
            numeric = directional(lambda x: float(inner(cj.device_put(x))))  # noqa: B023
            outer = apply([m for m in meaning[:first]], MEANINGS, numeric)
            np.testing.assert_allclose(reference, outer(X), rtol=1e-7, atol=1e-7, err_msg=str(meaning))


def test_each_ordering_is_tried_on_some_programs():
    for depth, times in SOME.items():
        assert sorted(spread(KINDS, int(depth[-1])) * times) == sorted([
            names for program in PROGRAMS for names in to_depth(KINDS, depth, program, PROGRAMS)])


@pytest.mark.sample(8)
@pytest.mark.parametrize("depth", DEPTHS)
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_orderings_agree_with_jax(program, depth):
    jax = pytest.importorskip("jax")
    jnp = pytest.importorskip("jax.numpy")
    jax.config.update("jax_enable_x64", True)
    ours, theirs = transformations(cj, lambda x: x), transformations(jax, jnp.asarray)
    for names in to_depth(KINDS, depth, program, PROGRAMS):
        if len(names) == 3 and "jit" in names[1:]:
            continue  # compile time: jit inside is covered by the test above, against the same without
        got = apply(names, ours, lambda x: program(CorejaxNumPy, x))(cj.device_put(X))
        wanted = jax.jit(apply(names, theirs, lambda x: program(jnp, x)))(jnp.asarray(X))
        np.testing.assert_allclose(float(got), float(wanted), rtol=1e-10, atol=1e-10, err_msg=str(names))
