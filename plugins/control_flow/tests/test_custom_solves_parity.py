"""The same solves, roots, platforms and composites on jax: values, tangents, gradients, maps, and types."""

from __future__ import annotations

import re
from functools import partial

import numpy as np
import pytest
from numpy.testing import assert_allclose

import corejax as cj
from corejax import lax

jax = pytest.importorskip("jax")

RNG = np.random.default_rng(5)
A, B, V = np.eye(3) * 3.0 + RNG.uniform(-0.5, 0.5, (3, 3)), RNG.standard_normal(3), RNG.standard_normal(3)
AS, BS = np.stack([A, A + np.eye(3)]), np.stack([B, -B])


def programs(L):
    """Functions of a matrix and a vector, written once for both libraries; L is their lax."""
    def jacobi(matvec, b):
        return L.fori_loop(0, 40, lambda _, x: x + (b - matvec(x)) / 3.0, b * 0.0)

    def general(a, b):
        return L.custom_linear_solve(lambda x: L.dot(a, x), b, jacobi, jacobi)

    def symmetric(a, b):
        c = a + L.transpose(a, (1, 0))
        return L.custom_linear_solve(lambda x: L.dot(c, x) / 2.0, L.sin(b), jacobi, symmetric=True)

    def forward_only(a, b):
        return L.custom_linear_solve(lambda x: a[0, 0] * x, b, lambda _, b: b / a[0, 0])

    def of_a_tree(a, b):
        def solve(matvec, b):
            return {"p": b["p"] / a[0], "q": (b["q"][0] / 2.0,)}, b["p"].sum()
        x, aux = L.custom_linear_solve(lambda x: {"p": x["p"] * a[0], "q": (2.0 * x["q"][0],)},
                                       {"p": b, "q": (b[1],)}, solve, solve, has_aux=True)
        return x["p"] * x["q"][0], aux

    def root(a, b):
        def newton(f, x):
            return L.fori_loop(0, 30, lambda _, x: x - f(x) / (3.0 * x * x + 1.0), x)

        def solve(g, y):
            return y / g(np.ones(3))
        c = L.dot(a, b)
        return L.custom_root(lambda x: x * x * x + x - c, b, newton, solve)

    def root_of_a_number(a, b):
        def solve(f, x):
            return L.while_loop(lambda x: L.abs(f(x)) > 1e-14, lambda x: x - f(x) / L.exp(x), x), b
        x, aux = L.custom_root(lambda x: L.exp(x) - 1.5 - b[0] * b[0] * a[1, 1], 0.5, solve,
                               lambda g, y: y / g(1.0), has_aux=True)
        return x * b, aux

    def solve_in_a_root(a, b):
        def solve(g, y):
            return L.custom_linear_solve(g, y, lambda _, y: y / (a[0] * 2.0), symmetric=True)
        return L.custom_root(lambda x: a[0] * 2.0 * x - L.sin(b), b, lambda f, x: L.sin(b) / (a[0] * 2.0), solve)

    def platform(a, b):
        return L.platform_dependent(a, b, cpu=lambda a, b: L.dot(a, L.sin(b)), default=lambda a, b: b)

    return [general, symmetric, forward_only, of_a_tree, root, root_of_a_number, solve_in_a_root, platform]


PAIRS = list(zip(programs(lax), programs(jax.lax), strict=True))


def transformed(api, f, a, b, many_a, many_b):
    """What every transformation that both have gives, by name."""
    def energy(a, b):
        return sum(((x * x).sum() for x in api.tree.leaves(f(a, b))), 0.0)

    def first(a, b):
        return api.jvp(f, (a, b), (a * 0.5, V))

    found = {
        "value": f(a, b), "jvp": first(a, b), "second": api.jvp(first, (a, b), (a, V)),
        "vmap b": api.vmap(f, (None, 0))(a, many_b), "vmap a": api.vmap(f, (0, None))(many_a, b),
        "vmap of jvp": api.vmap(lambda a, b: api.jvp(f, (a, b), (a, b)), (0, 1))(many_a, many_b.T),
    }
    if f.__name__ in ("forward_only", "of_a_tree"):  # jax stumbles over the reverse mode of the second
        return found
    return found | {
        "grad": api.grad(api.jit(energy), (0, 1))(a, b), "hessian": api.jacfwd(api.grad(energy, 1), 1)(a, b),
        "reverse over reverse": api.jacrev(api.grad(energy, 1), 0)(a, b),
        "vmap of grad": api.vmap(api.grad(energy, (0, 1)))(many_a, many_b),
        "checkpoint": api.grad(api.checkpoint(energy), (0, 1))(a, b),
    }


@pytest.mark.parametrize(("ours", "theirs"), PAIRS, ids=[ours.__name__ for ours, _ in PAIRS])
def test_transformations_agree_with_jax(ours, theirs):
    found, wanted = [api.jit(partial(transformed, api, f))(A, B, AS, BS) for api, f in ((cj, ours), (jax, theirs))]
    for name, expected in wanted.items():
        for x, y in zip(cj.tree.leaves(found[name]), jax.tree.leaves(expected), strict=True):
            assert (y.shape, y.dtype) == (x.shape, x.dtype), name
            assert_allclose(x, y, rtol=1e-8, atol=1e-9, err_msg=name)


@pytest.mark.parametrize("value", [True, 3, 0.5, "log", np.float32(1), np.arange(3), [1, 2], (1.0, "a"), {"a": 1}, None,
                                   []], ids=str)
def test_a_composite_is_lowered_as_jax_lowers_it(value):
    texts = []
    for api in (cj, jax):
        f = api.lax.composite(lambda x, *, k, L=api.lax: L.sin(x), "test.f", version=2)
        lowered = api.jit(lambda x, f=f: f(x, k=value)).lower(1.0).as_text()
        texts.append([re.sub(r"%\w+", "%", line).strip() for line in lowered.splitlines() if "composite" in line])
    assert texts[1] == texts[0]


def test_float_bounds_and_sizes_of_numpy_as_in_jax():
    for api in (cj, jax):
        L = api.lax
        assert [3, 3.0, 4.5, 2, 6.0] == [float(x) for x in (
            L.fori_loop(0.0, 3.0, lambda i, c: c + i, 0),
            api.jit(lambda n, L=L: L.fori_loop(0.0, n, lambda i, c: c + i, 0.0))(3.0),
            api.jit(lambda n, L=L: L.fori_loop(0.5, n, lambda i, c: c + i, 0.0))(3.0),
            L.switch(np.int8(1), [lambda: 1, lambda: 2]),
            L.scan(lambda c, x: (c + x, x), 0.0, np.arange(4.0), length=np.int64(4), unroll=np.int64(2))[0])]
