"""Solves, roots and choices of a platform beside jax: derivatives of every order, everywhere, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import corejax as cj
from corejax import lax
from corejax.errors import CorejaxError

jax = pytest.importorskip("jax")
cnp = pytest.importorskip("corejax.numpy")


@pytest.fixture(autouse=True)
def _x64():
    with jax.enable_x64(True):
        yield


def solves(lib: Any, L: Any, xp: Any, rng: np.random.Generator) -> dict[str, Callable[[], Any]]:
    n = int(rng.integers(1, 5))
    matrix = np.eye(n) * 3 + rng.uniform(-0.3, 0.3, (n, n))
    m, b, v = [xp.asarray(x) for x in (matrix, rng.standard_normal(n), rng.standard_normal(n))]
    mc, bc = m + 1j * xp.asarray(rng.uniform(-0.3, 0.3, (n, n))), b + 1j * v
    few = xp.asarray(rng.standard_normal((3, n)))

    def solve(m: Any, b: Any) -> Any:
        return L.custom_linear_solve(lambda x: xp.dot(m, x), b, lambda _, b: xp.linalg.solve(m, b),
                                     lambda _, b: xp.linalg.solve(m.T, b))

    def forward_only(b: Any) -> Any:
        return L.custom_linear_solve(lambda x: xp.dot(m, x), b, lambda _, b: xp.linalg.solve(m, b))

    def with_aux(m: Any, b: Any, aux: Callable[[Any], Any] = lambda b: b.sum()) -> Any:
        return L.custom_linear_solve(lambda x: xp.dot(m, x), b, lambda _, b: (xp.linalg.solve(m, b), aux(b)),
                                     lambda _, b: (xp.linalg.solve(m.T, b), aux(b)), has_aux=True)

    def hermitian(b: Any) -> Any:
        a = mc + mc.conj().T
        return L.custom_linear_solve(lambda x: xp.dot(a, x), b, lambda _, b: xp.linalg.solve(a, b), symmetric=True)

    def of_a_tree(b: Any, c: Any) -> Any:
        return L.custom_linear_solve(lambda t: {"x": t["x"] * 2.0, "y": t["y"] * c}, {"x": b, "y": b[0]},
                                     lambda _, t: {"x": t["x"] / 2.0, "y": t["y"] / c}, symmetric=True)

    def total(tree: Any) -> Any:
        return sum([xp.sin(x).sum() for x in lib.tree.leaves(tree)])

    def energy(m: Any, b: Any) -> Any:
        return total(solve(m, b))

    grad, vmap, jvp, jit = lib.grad, lib.vmap, lib.jvp, lib.jit
    return {
        "third": lambda: lib.jacfwd(lib.hessian(energy, 1), 0)(m, b),
        "third, in reverse": lambda: lib.jacrev(lib.jacrev(grad(energy, 1), 0), 1)(m, b),
        "fourth": lambda: grad(grad(grad(grad(lambda t: energy(m * (1.0 + t), b)))))(0.1),
        "complex": lambda: (solve(mc, bc), lib.vjp(solve, mc, bc)[1](bc), jvp(solve, (mc, bc), (mc * 0.3, bc))),
        "holomorphic": lambda: grad(lambda m, b: solve(m, b).sum(), (0, 1), holomorphic=True)(mc, bc),
        "hermitian": lambda: lib.vjp(hermitian, bc)[1](bc),
        "transposed": lambda: lib.linear_transpose(lambda b: solve(m, b), b)(v),
        "vmap of grad": lambda: vmap(grad(energy, (0, 1)), (None, 0))(m, few),
        "grad of vmap": lambda: grad(lambda m: vmap(solve, (None, 0))(m, few).sum())(m),
        "vmap of columns": lambda: vmap(solve, (None, 1), 1)(m, few.T),
        "jvp of grad": lambda: jvp(grad(energy, (0, 1)), (m, b), (m * 0.2, v)),
        "grad of jvp": lambda: grad(lambda m: jvp(lambda b: solve(m, xp.sin(b)), (b,), (v,))[1].sum())(m),
        "grad of scan": lambda: grad(lambda m: L.scan(lambda c, _: (solve(m, c), c), b, None, length=3)[1].sum())(m),
        "grad of cond": lambda: grad(lambda b: L.cond(b[0] > 0, lambda b: solve(m, b), lambda b: b, b).sum())(b),
        "while_loop": lambda: L.while_loop(lambda c: xp.abs(c).max() > 1e-3, lambda c: solve(m, c), b),
        "checkpoint": lambda: jit(grad(lib.checkpoint(energy), (0, 1)))(m, b),
        "aux": lambda: jvp(with_aux, (m, b), (m, b)),
        "aux of ints": lambda: jvp(lambda m, b: with_aux(m, b, lambda b: xp.arange(3))[0], (m, b), (m, b)),
        "aux that isn't there": lambda: with_aux(m, b, lambda b: None),
        "vmap of aux": lambda: vmap(with_aux, (None, 0))(m, few),
        "vmap of aux that is the same": lambda: vmap(lambda b: with_aux(m, b, lambda b: xp.arange(3)))(few),
        "a tree": lambda: grad(lambda b, c: total(of_a_tree(b, c)), (0, 1))(b, 2.0),
        "numbers": lambda: grad(lambda c: L.custom_linear_solve(lambda x: c * x, 3.0, lambda _, b: b / c,
                                                                symmetric=True))(2.0),
        "nothing": lambda: L.custom_linear_solve(lambda x: 2.0 * x, b[:0], lambda _, b: b / 2.0, symmetric=True),
        # refused
        "without transpose_solve": lambda: grad(lambda b: forward_only(b).sum())(b),
        "without transpose_solve, transposed": lambda: lib.linear_transpose(forward_only, b)(v),
        "another shape": lambda: L.custom_linear_solve(lambda x: xp.zeros(7), b, lambda _, b: b, symmetric=True),
        "a solution of another shape": lambda: L.custom_linear_solve(lambda x: x, b, lambda _, b: b[:0]),
        "a solution of another structure": lambda: L.custom_linear_solve(lambda x: x, b, lambda _, b: (b,)),
        "no aux": lambda: L.custom_linear_solve(lambda x: x, b, lambda _, b: b, symmetric=True, has_aux=True),
        "no function": lambda: L.custom_linear_solve(3, b, lambda _, b: b),
        "no solver": lambda: L.custom_linear_solve(lambda x: x, b, 3),
        "a solver of one argument": lambda: L.custom_linear_solve(lambda x: x, b, lambda b: b),
    }


def roots(lib: Any, L: Any, xp: Any, rng: np.random.Generator) -> dict[str, Callable[[], Any]]:
    b = xp.asarray(rng.standard_normal(3))

    def root(c: Any, guess: Any) -> Any:
        return L.custom_root(lambda x: x**3 + x - c, guess, lambda f, x: L.fori_loop(
            0, 60, lambda _, x: x - f(x) / (3 * x * x + 1), x), lambda g, y: y / g(xp.ones_like(y)))

    grad, vmap = lib.grad, lib.vmap
    return {
        "fourth": lambda: grad(grad(grad(grad(lambda c: root(c, 0.0)))))(1.3),
        "reverse over forward": lambda: lib.jacrev(lib.jacfwd(lambda c: root(c, xp.zeros(3))))(b),
        "forward over reverse": lambda: lib.jit(lib.jacfwd(lib.jacrev(lambda c: root(c, xp.zeros(3)))))(b),
        "vmap of grad": lambda: vmap(grad(lambda c: root(c, 0.0)))(b),
        "vmap of guesses": lambda: vmap(lambda x: root(1.0, x))(b),
        "grad by the guess": lambda: grad(lambda x: root(1.0, x))(0.5),
        "another structure": lambda: L.custom_root(lambda x: (x,), b, lambda f, x: x, lambda g, y: y),
        "a root of another structure": lambda: L.custom_root(lambda x: x, b, lambda f, x: (x,), lambda g, y: y),
        "a tangent of another structure": lambda: grad(lambda c: L.custom_root(
            lambda x: x - c, b, lambda f, x: x, lambda g, y: (y,)).sum())(b),
        "no function": lambda: L.custom_root(1.0, b, lambda f, x: x, lambda g, y: y),
    }


def platforms(lib: Any, L: Any, xp: Any, rng: np.random.Generator) -> dict[str, Callable[[], Any]]:
    b = xp.asarray(rng.standard_normal(3))
    choose, jit, one = L.platform_dependent, lib.jit, np.float64(2.0)

    def double(x: Any) -> Any:
        return x * 2.0

    def cube(x: Any) -> Any:
        return x**3

    return {
        "the platform": lambda: choose(b, cpu=cube, default=double),
        "all others": lambda: choose(b, tpu=cube, default=double),
        "only this one": lambda: choose(b, cpu=cube),
        "none for it": lambda: choose(b, tpu=cube),
        "none for it, compiled": lambda: jit(lambda b: choose(b, tpu=cube))(b),
        "none": lambda: choose(b),
        "no operands": lambda: choose(cpu=lambda: 1.0, default=lambda: 2.0),
        "one function for two": lambda: choose(b, cuda=cube, rocm=cube, default=double),
        "a platform that nobody knows": lambda: choose(b, abacus=cube, default=double),
        "gpu": lambda: choose(b, gpu=cube, default=double),
        "no function": lambda: choose(b, cpu=1, default=double),
        "jit of vmap of grad": lambda: jit(lib.vmap(lib.grad(lambda b: choose(b, cpu=cube, default=double))))(b),
        "hessian": lambda: jit(lib.hessian(lambda b: choose(b, cpu=cube, default=double).sum()))(b),
        "transposed": lambda: lib.linear_transpose(lambda b: choose(b, cpu=double, default=lambda x: x), b)(b),
        "a tree": lambda: choose((b, {"a": b}), cpu=lambda t: t[1], default=lambda t: {"a": t[0]}),
        "in scan": lambda: L.scan(lambda c, x: (choose(c, x, cpu=xp.add, default=xp.multiply), c), 0.0, b),
        "in cond": lambda: L.cond(True, lambda x: choose(x, cpu=cube, default=double), lambda x: x, b),
        "a weak result": lambda: jit(lambda x: choose(x, cpu=lambda x: 1.0, default=lambda x: x))(one),
        "a strong result": lambda: jit(lambda x: choose(x, cpu=lambda x: x, default=lambda x: 1.0))(one),
        "the default first": lambda: jit(lambda x: choose(x, default=lambda x: x, cpu=lambda x: 1.0))(one),
        "another dtype": lambda: jit(lambda x: choose(x, cpu=cube, default=lambda x: x.astype("float32")))(b),
        "another structure": lambda: jit(lambda x: choose(x, cpu=cube, default=lambda x: (x,)))(b),
    }


def described(x: Any) -> tuple[Any, ...]:
    weak = getattr(x, "weak_type", None)
    return np.shape(x), np.asarray(x).dtype, weak


LIBRARIES = ((jax, jax.lax, jax.numpy), (cj, lax, cnp))
CASES = [(programs, name) for programs in (solves, roots, platforms)
         for name in programs(*LIBRARIES[1], np.random.default_rng(0))]


@pytest.mark.sample(30)
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("programs", "name"), CASES, ids=[f"{f.__name__}: {name}" for f, name in CASES])
def test_parity_of_every_order(programs, name, seed):
    theirs, ours = [programs(*library, np.random.default_rng(seed))[name] for library in LIBRARIES]
    try:
        wanted = theirs()
    except Exception as error:
        with pytest.raises(Exception) as caught:
            ours()
        assert isinstance(caught.value, CorejaxError), error
        return
    found = ours()
    assert str(jax.tree.structure(wanted)) == str(cj.tree.structure(found))
    for x, y in zip(jax.tree.leaves(wanted), cj.tree.leaves(found), strict=True):
        assert described(x) == described(y)
        np.testing.assert_allclose(x, y, rtol=1e-6, atol=1e-8)
