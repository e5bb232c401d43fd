"""custom_linear_solve and custom_root: values, derivatives of every order, maps, programs, and what they refuse."""

from __future__ import annotations

import itertools
import re

import numpy as np
import pytest

import corejax as cj
from corejax import lax
from corejax.core import stage
from corejax.errors import CorejaxError, CorejaxNotImplementedError
from corejax.ir import dce

# A system with a matrix that isn't symmetric, solved by elimination, so that the solver could be differentiated itself

MATRIX = np.array([[3.0, 1.0, 0.5], [-1.0, 4.0, 0.25], [0.5, 0.75, 2.0]])
B = np.array([1.0, -2.0, 0.5])


def eliminated(a, b):
    """The solution of a x = b by elimination, element by element."""
    n = b.shape[0]
    rows = [[a[i, j] for j in range(n)] + [b[i]] for i in range(n)]
    for i, j in itertools.product(range(n), range(n)):
        if i != j:
            factor = rows[j][i] / rows[i][i]
            rows[j] = [x - factor * y for x, y in zip(rows[j], rows[i], strict=True)]
    return lax.concatenate([(rows[i][n] / rows[i][i]).reshape(1) for i in range(n)], 0)


def by_columns(matvec, b):
    """Solve with the matrix that `matvec` applies, which it looks up column by column."""
    columns = [matvec(np.eye(len(B))[i]) for i in range(len(B))]
    return eliminated(lax.transpose(lax.concatenate([c.reshape(1, -1) for c in columns], 0), (1, 0)), b)


def solved(a, b):
    return lax.custom_linear_solve(lambda x: lax.dot(a, x), b, by_columns, by_columns)


def iterated(a, b):
    """The same by Jacobi's iteration, which has no reverse mode of its own."""
    def solve(matvec, b):
        diagonal = np.diag(MATRIX)
        return lax.while_loop(lambda s: s[0] < 200, lambda s: (s[0] + 1, s[1] + (b - matvec(s[1])) / diagonal),
                              (0, b * 0.0))[1]
    return lax.custom_linear_solve(lambda x: lax.dot(a, x), b, solve, solve)


def energy(solve):
    return lambda a, b: (lax.sin(solve(a, b)) * solve(a, b)).sum()


def test_the_solution_solves_the_system():
    for solve in (solved, iterated, cj.jit(solved), cj.jit(iterated)):
        np.testing.assert_allclose(solve(MATRIX, B), np.linalg.solve(MATRIX, B), rtol=1e-12)


@pytest.mark.sample(3)
@pytest.mark.parametrize("transform", [
    lambda f: cj.grad(f, (0, 1)), lambda f: cj.jacfwd(f, (0, 1)), lambda f: cj.jit(cj.grad(f, (0, 1))),
    lambda f: cj.grad(cj.jit(f), (0, 1)), lambda f: cj.grad(cj.checkpoint(f), (0, 1)),
    lambda f: cj.jacfwd(cj.grad(f, 1), 0), lambda f: cj.jacrev(cj.grad(f, 0), 1),
    lambda f: cj.jacfwd(cj.jacfwd(f, 1), 0), lambda f: cj.jacrev(cj.jacfwd(f, 1), 0),
], ids=["reverse", "forward", "jit of grad", "grad of jit", "checkpoint", "forward over reverse",
        "reverse over reverse", "forward over forward", "reverse over forward"])
def test_derivatives_are_those_of_elimination(transform):
    found = transform(energy(iterated))(MATRIX, B)
    for x, y in zip(cj.tree.leaves(transform(energy(eliminated))(MATRIX, B)), cj.tree.leaves(found), strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-9, atol=1e-10)


def test_third_derivatives():
    def f(solve):
        return lambda t: solve(MATRIX + t * np.eye(3), B * lax.cos(t))[0]
    one, other = [cj.grad(cj.grad(cj.grad(f(solve))))(0.3) for solve in (eliminated, iterated)]
    np.testing.assert_allclose(one, other, rtol=1e-9)


@pytest.mark.parametrize("axes", [(None, 0), (0, None), (0, 1), (2, 0)], ids=str)
def test_maps_over_either_side(axes):
    many = [np.stack([x, 1.5 * x], axis) if axis is not None else x for x, axis in zip((MATRIX, B), axes, strict=True)]
    for f in (solved, cj.grad(energy(iterated), 1)):
        rows = [f(*[np.take(x, i, axis) if axis is not None else x for x, axis in zip(many, axes, strict=True)])
                for i in range(2)]
        for map_ in (cj.vmap(f, axes), cj.jit(cj.vmap(f, axes))):
            np.testing.assert_allclose(np.stack(rows), map_(*many), rtol=1e-9)


def test_a_map_binds_one_equation_and_leaves_unmapped_unknowns_alone():
    def f(a, b, c):
        return lax.custom_linear_solve(lambda xy: (a * xy[0], 2.0 * xy[1]), (b, c),
                                       lambda _, bc: (bc[0] / a, bc[1] / 2.0))
    jaxpr = cj.make_jaxpr(cj.vmap(f, (0, None, None), (0, None)))(np.ones(4), 1.0, 1.0).jaxpr
    solves = [eqn for eqn in jaxpr.eqns if eqn.primitive.name == "custom_linear_solve"]
    assert [[(4,), ()]] == [[v.aval.shape for v in eqn.outvars] for eqn in solves]


def test_pytrees_and_what_solvers_return_beside_the_solution():
    def solve(matvec, b):
        return {"x": b["x"] / 2.0, "y": [b["y"][0] / 4.0]}, {"steps": 3}

    def f(b):
        return lax.custom_linear_solve(lambda v: {"x": v["x"] * 2.0, "y": [v["y"][0] * 4.0]}, b, solve, symmetric=True,
                                       has_aux=True)
    b = {"x": np.ones(2), "y": [8.0]}
    for run in (f, cj.jit(f)):
        x, aux = run(b)
        assert ([0.5, 0.5], 2.0, 3) == (x["x"].tolist(), x["y"][0].item(), aux["steps"].item())
    gradient = cj.grad(lambda b: f(b)[0]["y"][0] ** 2)(b)
    assert ([0.0, 0.0], 1.0) == (gradient["x"].tolist(), gradient["y"][0].item())
    assert 1.0 == cj.vmap(cj.grad(lambda y: f({"x": 1.0, "y": [y]})[0]["y"][0] ** 2))(np.array([8.0])).item()


def test_what_a_solver_returns_beside_the_solution_is_dropped_if_unused():
    def f(b):
        return lax.custom_linear_solve(lambda x: 2.0 * x, b, lambda _, b: (b / 2.0, lax.exp(b)), has_aux=True)[0]
    closed = cj.make_jaxpr(f)(1.0)
    assert "exp" in str(closed)
    assert "exp" not in str(dce(closed.jaxpr, [True])[0])


def test_solutions_in_loops_and_branches():
    def f(a, b):
        x = lax.fori_loop(0, 3, lambda _, x: solved(a, x), b)
        return lax.cond(x[0] > 10.0, lambda: x, lambda: solved(a, x)).sum()
    expected = np.linalg.matrix_power(np.linalg.inv(MATRIX), 4)
    np.testing.assert_allclose((expected @ B).sum(), cj.jit(f)(MATRIX, B), rtol=1e-9)
    np.testing.assert_allclose(expected.T @ np.ones(3), cj.jit(cj.grad(f, 1))(MATRIX, B), rtol=1e-9)


def test_a_solve_of_integers_has_a_value():
    f = cj.jit(lambda b: lax.custom_linear_solve(lambda x: 2 * x, b, lambda _, b: b // 2))
    assert (np.int64, [1, 2]) == ((found := f(np.array([2, 4]))).dtype, found.tolist())


def test_numbers_are_converted_to_what_the_functions_make_of_them():
    for f in (lax.custom_linear_solve, lambda m, b, s: lax.custom_root(lambda x: m(x) - b, b, lambda _, x: s(m, x), s)):
        assert np.float64 == f(lambda x: 2.0 * x, 1, lambda _, b: b / 2.0).dtype
        assert np.float32 == f(lambda x: np.float32(2.0) * x, 1.0, lambda _, b: b / np.float32(2.0)).dtype


def test_complex_systems():
    def f(a, b):
        return lax.custom_linear_solve(lambda x: a * x, b, lambda _, b: b / a, lambda _, b: b / a)
    a, b = 1.0 + 2.0j, 3.0 - 1.0j
    for one, other in zip(cj.vjp(f, a, b)[1](1j), cj.vjp(lambda a, b: b / a, a, b)[1](1j), strict=True):
        np.testing.assert_allclose(other, one, rtol=1e-13)


def test_the_linear_transpose_solves_with_the_transpose():
    found, = cj.linear_transpose(lambda b: solved(MATRIX, b), B)(B)
    np.testing.assert_allclose(np.linalg.solve(MATRIX.T, B), found, rtol=1e-12)


def test_equal_solves_share_one_program():
    def f(b):
        return lax.custom_linear_solve(lambda x: 2.0 * x, b, lambda _, b: b / 2.0, symmetric=True)
    one, other = [cj.make_jaxpr(lambda b: f(b))(1.0).eqns[0].params for _ in range(2)]
    assert one["solve"] is other["solve"]
    assert one["matvec"] is other["matvec"]


# Roots

def newton(f, x):
    """Newton's method, for independent equations."""
    def step(x):
        y, slope = cj.jvp(f, (x,), (x * 0.0 + 1.0,))
        return x - y / slope
    return lax.while_loop(lambda x: (lax.abs(f(x)) > 1e-13).any(), step, x)


def scalar_solve(g, y):
    return y / g(1.0)


def kepler(mean, eccentricity):
    """The eccentric anomaly: E - e sin E = M."""
    return lax.custom_root(lambda x: x - eccentricity * lax.sin(x) - mean, mean, newton, scalar_solve)


def unrolled(mean, eccentricity):
    x = mean
    for _ in range(12):
        x = x - (x - eccentricity * lax.sin(x) - mean) / (1.0 - eccentricity * lax.cos(x))
    return x


@pytest.mark.sample(4)
@pytest.mark.parametrize("transform", [
    lambda f: f, lambda f: cj.jit(f), lambda f: cj.grad(f, (0, 1)), lambda f: cj.jit(cj.grad(f, (0, 1))),
    lambda f: cj.hessian(f, (0, 1)), lambda f: cj.jacrev(cj.jacrev(f, 1), 0), lambda f: cj.jacrev(cj.jacfwd(f, 1), 0),
    lambda f: cj.grad(cj.grad(cj.grad(f, 1), 1), 1), lambda f: cj.grad(cj.checkpoint(f), 1),
    lambda f: cj.grad(lambda m, e: lax.scan(lambda c, _: (f(c, e), None), m, None, length=2)[0], (0, 1)),
    lambda f: cj.grad(lambda m, e: lax.cond(m > 0.0, f, lambda m, e: m, m, e), (0, 1)),
], ids=["value", "jit", "grad", "jit of grad", "hessian", "reverse over reverse", "reverse over forward", "third",
        "checkpoint", "scan", "cond"])
def test_a_root_is_differentiated_as_one(transform):
    found = transform(kepler)(0.7, 0.4)
    for x, y in zip(cj.tree.leaves(transform(unrolled)(0.7, 0.4)), cj.tree.leaves(found), strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-11)


def test_roots_under_a_map():
    means, ones = np.array([0.1, 0.9, 2.0]), np.array([0.2, 0.3, 0.4])
    for axes, args in (((0, None), (means, 0.4)), ((None, 0), (0.7, ones)), ((0, 0), (means, ones))):
        for f, g in ((kepler, unrolled), (cj.grad(kepler, 1), cj.grad(unrolled, 1))):
            np.testing.assert_allclose(cj.vmap(g, axes)(*args), cj.vmap(f, axes)(*args), rtol=1e-11)
            np.testing.assert_allclose(cj.vmap(g, axes)(*args), cj.jit(cj.vmap(f, axes))(*args), rtol=1e-11)


def test_a_system_of_equations_whose_tangents_are_found_by_a_linear_solve():
    """x² + y² = r², x = s y, as a pytree; g linearized at the root is transposed through custom_linear_solve."""
    def f(r, s):
        return lambda v: {"circle": v["circle"] ** 2 + v["line"] ** 2 - r * r, "line": v["circle"] - s * v["line"]}

    def known(r, s):
        y = r / lax.sqrt(1.0 + s * s)
        return {"circle": s * y, "line": y}

    def solve(g, b):
        p, q = g({"circle": 1.0, "line": 0.0}), g({"circle": 0.0, "line": 1.0})
        det = p["circle"] * q["line"] - q["circle"] * p["line"]
        return {"circle": (b["circle"] * q["line"] - b["line"] * q["circle"]) / det,
                "line": (p["circle"] * b["line"] - p["line"] * b["circle"]) / det}

    def root(r, s):
        return lax.custom_root(f(r, s), {"circle": 1.0, "line": 1.0}, lambda f, _: (known(r, s), 7),
                               lambda g, b: lax.custom_linear_solve(g, b, solve, solve), has_aux=True)

    assert 7 == root(2.0, 0.5)[1].item()
    for transform in (lambda h: cj.grad(h, (0, 1)), lambda h: cj.hessian(h, (0, 1)),
                      lambda h: cj.jit(cj.jacrev(cj.grad(h))),
                      lambda h: lambda r, s: cj.vmap(cj.grad(h), (0, None))(np.array([r, 3.0]), s)):
        one, other = [transform(h)(2.0, 0.5) for h in (lambda r, s: known(r, s)["circle"],
                                                      lambda r, s: root(r, s)[0]["circle"])]
        for x, y in zip(cj.tree.leaves(one), cj.tree.leaves(other), strict=True):
            np.testing.assert_allclose(x, y, rtol=1e-11, atol=1e-12)


def test_the_guess_has_no_influence_on_a_derivative():
    def f(guess, a):
        return lax.custom_root(lambda x: x * x - a, guess, newton, scalar_solve)
    assert (0.0, 0.25) == tuple(x.item() for x in cj.grad(f, (0, 1))(1.5, 4.0))


# What is refused

def test_reverse_mode_needs_a_solver_for_the_transpose():
    def f(b):
        return lax.custom_linear_solve(lambda x: 2.0 * x, b, lambda _, b: b / 2.0)
    assert 0.5 == cj.jvp(f, (1.0,), (1.0,))[1].item()
    with pytest.raises(CorejaxNotImplementedError, match="transposed system(.|\n)*transpose_solve"):
        cj.grad(f)(1.0)


def test_it_is_not_transposed_by_the_matrix():
    with pytest.raises(CorejaxError, match="custom_linear_solve|linear"):
        cj.linear_transpose(lambda a: lax.custom_linear_solve(
            lambda x: a * x, 1.0, lambda _, b: b, symmetric=True), 2.0)(1.0)


def test_programs_that_do_not_fit_are_refused_where_they_are_bound():
    params = next(lax.custom_linear_solve.primitive.samples(np.random.default_rng(0))).params
    for name in ("matvec", "vecmat", "transpose_solve"):
        other = stage(lambda x: [x], [cj.core.aval_of(1.0)]).jaxpr
        with pytest.raises(TypeError, match=re.escape(f"the program {name}")):
            cj.make_jaxpr(lambda d, b, p=params | {name: other}: lax.custom_linear_solve.primitive.bind(d, b, **p))(
                np.ones(3), np.ones(3))


@pytest.mark.parametrize("consts", [-1, 3])
def test_a_number_of_constants_that_cannot_be_is_refused(consts):
    params = next(lax.custom_linear_solve.primitive.samples(np.random.default_rng(0))).params
    with pytest.raises(ValueError, match=f"there can't be {consts} constants"):
        lax.custom_linear_solve.primitive.bind(np.ones(3), np.ones(3), **params | {"consts": consts})


def test_a_symmetric_system_has_each_program_once():
    traced = []

    def solve(matvec, b):
        traced.append(b)
        return b / matvec(np.ones(2))

    jaxpr = cj.make_jaxpr(lambda b: lax.custom_linear_solve(lambda x: 2.0 * x, b, solve, symmetric=True))(np.ones(2))
    (eqn,) = [eqn for eqn in jaxpr.eqns if eqn.primitive.name == "custom_linear_solve"]
    assert 1 == len(traced)
    assert eqn.params["vecmat"] is eqn.params["matvec"] and eqn.params["transpose_solve"] is eqn.params["solve"]
